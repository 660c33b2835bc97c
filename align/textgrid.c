// textgrid.c - reads Praat's TextGrids; see textgrid.h.

#include "align/textgrid.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

/* ---- free-standing numbers, texts and flags -------------------------------------------------------------------------------- */

typedef enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_FLAG } token_kind;

typedef struct reader {
    const char *text;
    size_t n, at;
    const char *name;
    int line;
    token_kind kind;
    double number;
    size_t begin, length; // of a text or flag, without its quotes or brackets
    lin_textgrid *grid;
} reader;

static lin_status bad(const reader *r, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->name, r->line, what);
}

static lin_status next_text(reader *r, lin_error *err)
{
    const int line = r->line;
    r->begin = ++r->at;
    for (; r->at < r->n; r->at++) {
        if (r->text[r->at] == '\n') r->line++;
        if (r->text[r->at] != '"') continue;
        if (r->at + 1 >= r->n || r->text[r->at + 1] != '"') {
            r->kind = TOKEN_TEXT;
            r->length = r->at++ - r->begin;
            return LIN_OK;
        }
        r->at++; // "" is a quote within a text
    }
    r->line = line;
    return bad(r, "a text has no closing quote", err);
}

static lin_status next(reader *r, lin_error *err)
{
    for (;;) {
        for (; r->at < r->n && lin_is_blank(r->text[r->at]); r->at++) r->line += r->text[r->at] == '\n';
        r->kind = TOKEN_END;
        if (r->at == r->n) return LIN_OK;
        const char c = r->text[r->at];
        if (c == '"') return next_text(r, err);
        if (c == '!') { // a comment, to the end of the line
            while (r->at < r->n && r->text[r->at] != '\n') r->at++;
            continue;
        }
        const size_t from = r->at;
        while (r->at < r->n && !lin_is_blank(r->text[r->at])) r->at++;
        const size_t n = r->at - from;
        if (c == '<' && n > 2 && r->text[r->at - 1] == '>') {
            r->kind = TOKEN_FLAG;
            r->begin = from + 1;
            r->length = n - 2;
            return LIN_OK;
        }
        if (lin_text_number(r->text + from, n, &r->number)) {
            r->kind = TOKEN_NUMBER;
            return LIN_OK;
        }
    }
}

static lin_status is_missing(const reader *r, const char *what, lin_error *err)
{
    const char *why = r->kind == TOKEN_END ? ": the file is truncated" : "";
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s is missing%s", r->name, r->line, what, why);
}

static lin_status want_number(reader *r, const char *what, double *value, lin_error *err)
{
    LIN_TRY(next(r, err));
    *value = r->number;
    return r->kind == TOKEN_NUMBER ? LIN_OK : is_missing(r, what, err);
}

static lin_status want_text(reader *r, const char *what, lin_error *err)
{
    LIN_TRY(next(r, err));
    return r->kind == TOKEN_TEXT ? LIN_OK : is_missing(r, what, err);
}

static int text_is(const reader *r, const char *what)
{
    return r->length == strlen(what) && !memcmp(r->text + r->begin, what, r->length);
}

static lin_status want_count(reader *r, const char *what, int *n, lin_error *err)
{
    double value;
    LIN_TRY(want_number(r, what, &value, err));
    // Every interval and every tier takes more than a byte, so a count above the file's size is wrong.
    if (!(value >= 0) || value > (double)r->n || value > INT32_MAX || value != (double)(int)value)
        return bad(r, "a bad count", err);
    *n = (int)value;
    return LIN_OK;
}

// Two quotes become one; control characters become blanks.
static lin_status keep(reader *r, size_t *at, lin_error *err)
{
    lin_textgrid *g = r->grid;
    LIN_TRY(lin_grow(&g->text, &g->text_capacity, g->text_used + r->length + 1, 1, "a TextGrid", err));
    *at = g->text_used;
    for (size_t i = 0; i < r->length; i++) {
        const char c = r->text[r->begin + i];
        g->text[g->text_used++] = (unsigned char)c < 32 || c == 127 ? ' ' : c;
        if (c == '"') i++;
    }
    g->text[g->text_used++] = 0;
    return LIN_OK;
}

/* ---- the grid -------------------------------------------------------------------------------------------------------------- */

static lin_status read_interval(reader *r, double *at_s, lin_error *err)
{
    const double slack = 1e-3; // numbers may be rounded
    lin_textgrid *g = r->grid;
    lin_textgrid_interval v;
    LIN_TRY(want_number(r, "the start of an interval", &v.start_s, err));
    LIN_TRY(want_number(r, "the end of an interval", &v.end_s, err));
    LIN_TRY(want_text(r, "the text of an interval", err));
    if (v.end_s < v.start_s || v.start_s < *at_s - slack)
        return bad(r, "an interval ends before it begins, or begins before the last one ends", err);
    if (v.start_s < *at_s) v.start_s = *at_s < v.end_s ? *at_s : v.end_s;
    *at_s = v.end_s;
    LIN_TRY(keep(r, &v.text, err));
    LIN_TRY(lin_grow(&g->intervals, &g->intervals_capacity, g->n_intervals + 1, sizeof *g->intervals, "a TextGrid", err));
    g->intervals[g->n_intervals++] = v;
    return LIN_OK;
}

static lin_status read_tier(reader *r, lin_error *err)
{
    lin_textgrid *g = r->grid;
    double start, end, time;
    int n = 0;
    LIN_TRY(lin_grow(&g->tiers, &g->tiers_capacity, (size_t)g->n_tiers + 1, sizeof *g->tiers, "a TextGrid", err));
    LIN_TRY(want_text(r, "the class of a tier", err));
    lin_tier *t = &g->tiers[g->n_tiers];
    *t = (lin_tier){.is_points = text_is(r, "TextTier"), .first = (int)g->n_intervals};
    if (!t->is_points && !text_is(r, "IntervalTier")) return bad(r, "a tier is neither an IntervalTier nor a TextTier", err);
    LIN_TRY(want_text(r, "the name of a tier", err));
    LIN_TRY(keep(r, &t->name, err));
    LIN_TRY(want_number(r, "the start of a tier", &start, err));
    LIN_TRY(want_number(r, "the end of a tier", &end, err));
    LIN_TRY(want_count(r, "the number of intervals", &n, err));
    double at_s = -1e300;
    for (int i = 0; i < n; i++) {
        if (t->is_points) {
            LIN_TRY(want_number(r, "the time of a point", &time, err));
            LIN_TRY(want_text(r, "the text of a point", err));
        } else {
            LIN_TRY(read_interval(r, &at_s, err));
        }
    }
    t->n = t->is_points ? 0 : n;
    g->n_tiers++;
    return LIN_OK;
}

static lin_status read_grid(reader *r, lin_error *err)
{
    double start, end;
    int n = 0;
    LIN_TRY(next(r, err));
    if (r->kind != TOKEN_TEXT || !text_is(r, "ooTextFile"))
        return bad(r, "this is not a TextGrid: it does not begin with \"ooTextFile\"", err);
    LIN_TRY(want_text(r, "the kind of object", err));
    if (!text_is(r, "TextGrid")) return bad(r, "this is a file of Praat, but not a TextGrid", err);
    LIN_TRY(want_number(r, "the start", &start, err));
    LIN_TRY(want_number(r, "the end", &end, err));
    LIN_TRY(next(r, err));
    if (r->kind != TOKEN_FLAG) return bad(r, "the line that says whether there are tiers (<exists>) is missing", err);
    if (!text_is(r, "exists")) return LIN_OK;
    LIN_TRY(want_count(r, "the number of tiers", &n, err));
    if (n > LIN_TEXTGRID_TIERS) return bad(r, "there are too many tiers", err);
    for (int i = 0; i < n; i++) LIN_TRY(read_tier(r, err));
    return LIN_OK;
}

lin_status lin_textgrid_parse(const char *bytes, size_t n, const char *name, lin_textgrid *grid, lin_error *err)
{
    char *own;
    *grid = (lin_textgrid){0};
    LIN_TRY(lin_unicode_clean(bytes, n, name, LIN_UNICODE_ANY, &own, &bytes, &n, err));
    reader r = {.text = bytes, .n = n, .at = lin_text_mark(bytes, n), .name = name, .line = 1, .grid = grid};
    const lin_status status = read_grid(&r, err);
    lin_free(own);
    if (status != LIN_OK) lin_textgrid_free(grid);
    return status;
}

/* ---- choice of tiers ------------------------------------------------------------------------------------------------------- */

static int has_label(const lin_textgrid *g, const lin_textgrid_interval *v)
{
    return g->text[v->text + strspn(g->text + v->text, " ")] != 0;
}

static double labelled(const lin_textgrid *g, const lin_tier *t)
{
    double sum = 0;
    for (int i = 0; i < t->n; i++) {
        const lin_textgrid_interval *v = &g->intervals[t->first + i];
        if (has_label(g, v)) sum += v->end_s - v->start_s;
    }
    return sum;
}

// Seconds in which both tiers have a label.
static double common(const lin_textgrid *g, const lin_tier *a, const lin_tier *b)
{
    double sum = 0;
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        const lin_textgrid_interval *x = &g->intervals[a->first + i], *y = &g->intervals[b->first + j];
        const double from = x->start_s > y->start_s ? x->start_s : y->start_s, to = x->end_s < y->end_s ? x->end_s : y->end_s;
        if (to > from && has_label(g, x) && has_label(g, y)) sum += to - from;
        if (x->end_s < y->end_s) {
            i++;
        } else {
            j++;
        }
    }
    return sum;
}

int lin_textgrid_choose(lin_textgrid *g)
{
    int n = 0;
    for (int t = 0; t < g->n_tiers; t++) {
        lin_tier *tier = &g->tiers[t];
        const double all = labelled(g, tier);
        double upon = 0;
        for (int k = 0; k < t; k++) {
            if (g->tiers[k].chosen) upon += common(g, &g->tiers[k], tier);
        }
        tier->chosen = all > 0 && upon < all / 2 && strcasecmp(g->text + tier->name, "notes") != 0;
        n += tier->chosen;
    }
    return n;
}

const char *lin_textgrid_text(const lin_textgrid *g, size_t at) { return g->text + at; }

void lin_textgrid_free(lin_textgrid *g)
{
    lin_free(g->tiers);
    lin_free(g->intervals);
    lin_free(g->text);
    *g = (lin_textgrid){0};
}
