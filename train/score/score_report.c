// score_report.c - scores as text, and what all reports share: pairs, the confusion matrix, the worst utterances; see
// score_report.h.

#include "train/score/score_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

/* ---- forms ----------------------------------------------------------------------------------------------------------------- */

static void put_number(lin_buffer *out, double value, int digits)
{
    if (isnan(value)) lin_buffer_char(out, '-');
    else lin_buffer_fixed(out, value, digits);
}

void lin_score_put(lin_buffer *out, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    for (; *form; form++) {
        size_t plain = strcspn(form, "%");
        lin_buffer_bytes(out, form, plain);
        form += plain;
        if (!*form) break;
        const char *text;
        switch (*++form) {
        case 's': lin_buffer_text(out, va_arg(args, const char *)); break;
        case 'h':
            text = va_arg(args, const char *);
            lin_buffer_html(out, text, strlen(text));
            break;
        case 'd': lin_buffer_integer(out, va_arg(args, long long)); break;
        case '0': case '1': case '2': case '3': case '4': put_number(out, va_arg(args, double), *form - '0'); break;
        default:
            lin_buffer_char(out, '%');
            form--;
        }
    }
    va_end(args);
}

void lin_score_put_intervals(lin_buffer *out, const char *form, const lin_bootstrap_interval *u, const lin_bootstrap_interval *s)
{
    lin_buffer_text(out, "95 % interval ");
    lin_score_put(out, form, 100 * u->low, 100 * u->high, (long long)u->units, "utterances");
    if (s->units > 1) lin_buffer_text(out, ", ");
    if (s->units > 1) lin_score_put(out, form, 100 * s->low, 100 * s->high, (long long)s->units, "speakers");
}

/* ---- pairs ----------------------------------------------------------------------------------------------------------------- */

static int by_tokens(const void *x, const void *y)
{
    const lin_confused_pair *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static int by_sum(const void *x, const void *y)
{
    const lin_confused_pair *p = x, *q = y;
    long long m = p->a_as_b + p->b_as_a, n = q->a_as_b + q->b_as_a;
    if (m != n) return m > n ? -1 : 1;
    return by_tokens(x, y);
}

lin_status lin_score_confused_pairs(const lin_score *s, lin_confused_pair **pairs, int *n, lin_error *err)
{
    const int n_confusions = (int)s->n_confusions;
    const lin_score_confusion *c = s->confusions;
    int found = 0, joined = 0;
    lin_confused_pair *p = lin_alloc((size_t)n_confusions, sizeof *p);
    *pairs = p;
    *n = 0;
    if (!p) return lin_no_memory(err, "a table of errors", (size_t)n_confusions * sizeof *p);
    for (int i = 0; i < n_confusions; i++) {
        if (c[i].ref < 0 || c[i].hyp < 0) continue;
        if (c[i].ref < c[i].hyp) p[found++] = (lin_confused_pair){.a = c[i].ref, .b = c[i].hyp, .a_as_b = c[i].count};
        else p[found++] = (lin_confused_pair){.a = c[i].hyp, .b = c[i].ref, .b_as_a = c[i].count};
    }
    if (found) qsort(p, (size_t)found, sizeof *p, by_tokens);
    for (int i = 0; i < found; i++) {
        if (joined && !by_tokens(&p[joined - 1], &p[i])) {
            p[joined - 1].a_as_b += p[i].a_as_b;
            p[joined - 1].b_as_a += p[i].b_as_a;
        } else {
            p[joined++] = p[i];
        }
    }
    if (joined) qsort(p, (size_t)joined, sizeof *p, by_sum);
    for (int i = 0; i < joined; i++) {
        if (p[i].a_as_b >= p[i].b_as_a) continue;
        p[i] = (lin_confused_pair){.a = p[i].b, .b = p[i].a, .a_as_b = p[i].b_as_a, .b_as_a = p[i].a_as_b};
    }
    *n = joined;
    return LIN_OK;
}

/* ---- the matrix ------------------------------------------------------------------------------------------------------------ */

// Vowels from front to back, glides and liquids, nasals, stops, affricates, fricatives: neighbours are confused most.
static const char order_of_phones[] =
    " iy ih ix ey eh ae aa aw ay ah ax ax-h ao oy ow uh uw ux er axr y w l el r m em n en nx ng eng b d g "
    "p t k dx q bcl dcl gcl pcl tcl kcl jh ch z zh v dh s sh f th hh hv h# pau epi sil ";

typedef struct ranked {
    const char *text;
    int token, place; // place among the phones
    long long errors;
} ranked;

static int place_of(const char *text)
{
    size_t n = strlen(text);
    for (const char *at = order_of_phones; (at = strchr(at, ' ')) && at[1]; at++) {
        size_t k = 0;
        while (k < n && (at[1 + k] | 32) == (text[k] | 32) && at[1 + k] != ' ') k++;
        if (k == n && at[1 + k] == ' ') return (int)(at - order_of_phones);
    }
    return (int)sizeof order_of_phones;
}

static int by_errors(const void *x, const void *y)
{
    const ranked *p = x, *q = y;
    if (p->errors != q->errors) return p->errors > q->errors ? -1 : 1;
    return p->token < q->token ? -1 : p->token > q->token;
}

static int by_place(const void *x, const void *y)
{
    const ranked *p = x, *q = y;
    if (p->place != q->place) return p->place < q->place ? -1 : 1;
    return strcmp(p->text, q->text);
}

static void fill(const lin_score *s, const int *row_of, lin_score_matrix *m)
{
    const size_t width = (size_t)m->n + 1;
    const lin_score_confusion *c = s->confusions;
    for (int i = 0; i < m->n; i++) m->counts[(size_t)i * width + (size_t)i] = s->by_token[m->tokens[i]].correct;
    for (size_t i = 0; i < s->n_confusions; i++) {
        int ref = c[i].ref < 0 ? m->n : row_of[c[i].ref], hyp = c[i].hyp < 0 ? m->n : row_of[c[i].hyp];
        if (ref >= 0 && hyp >= 0) m->counts[(size_t)ref * width + (size_t)hyp] = c[i].count;
    }
}

lin_status lin_score_matrix_make(const lin_score *s, int max, lin_score_matrix *m, lin_error *err)
{
    const int n = s->tokens.n, shown = n < max ? n : max;
    const size_t cells = ((size_t)shown + 1) * ((size_t)shown + 1);
    *m = (lin_score_matrix){.n = shown, .left_out = n - shown};
    m->tokens = lin_alloc((size_t)shown, sizeof *m->tokens);
    m->counts = lin_calloc(cells, sizeof *m->counts);
    ranked *r = lin_alloc((size_t)n, sizeof *r);
    int *row_of = lin_alloc((size_t)n, sizeof *row_of);
    if (m->tokens && m->counts && r && row_of) {
        for (int i = 0; i < n; i++) {
            const lin_score_token_counts *c = &s->by_token[i];
            r[i] = (ranked){.text = lin_score_token(s, i), .token = i, .errors = c->sub + c->del + c->ins + c->put};
            row_of[i] = -1;
        }
        if (n) qsort(r, (size_t)n, sizeof *r, by_errors);
        for (int i = 0; i < shown; i++) r[i].place = place_of(r[i].text);
        if (shown) qsort(r, (size_t)shown, sizeof *r, by_place);
        for (int i = 0; i < shown; i++) row_of[m->tokens[i] = r[i].token] = i;
        fill(s, row_of, m);
    }
    int failed = !m->tokens || !m->counts || !r || !row_of;
    lin_free(r);
    lin_free(row_of);
    if (!failed) return LIN_OK;
    lin_score_matrix_free(m);
    return lin_no_memory(err, "a confusion matrix", cells * sizeof *m->counts);
}

void lin_score_matrix_free(lin_score_matrix *m)
{
    lin_free(m->tokens);
    lin_free(m->counts);
    *m = (lin_score_matrix){0};
}

/* ---- the worst utterances -------------------------------------------------------------------------------------------------- */

static long long errors_in(const lin_score *s, int u)
{
    const lin_score_counts *c = &s->by_utterance[u];
    return c->sub + c->del + c->ins;
}

int lin_score_worst(const lin_score *s, int *utterances, int most)
{
    int n = 0;
    for (int u = 0; u < s->ref.n; u++) {
        const long long errors = errors_in(s, u);
        int at = n;
        for (; at > 0 && errors_in(s, utterances[at - 1]) < errors; at--)
            if (at < most) utterances[at] = utterances[at - 1];
        if (!errors || at == most) continue;
        utterances[at] = u;
        if (n < most) n++;
    }
    return n;
}

enum { NAME_WIDTH = 24, COLUMN = 9 };

static void cell(lin_buffer *out, double value, int digits)
{
    size_t from = out->n;
    put_number(out, value, digits);
    lin_buffer_pad(out, from, COLUMN, 1);
}

static void title(lin_buffer *out, const char *text)
{
    size_t from = out->n;
    lin_buffer_text(out, text);
    lin_buffer_pad(out, from, COLUMN, 1);
}

static void row(lin_buffer *out, const char *name, const lin_score_counts *c)
{
    size_t from = out->n;
    lin_buffer_text(out, name);
    lin_buffer_pad(out, from, NAME_WIDTH, 0);
    cell(out, (double)c->utterances, 0);
    cell(out, (double)c->n_ref, 0);
    cell(out, lin_score_percent(c->correct, c->n_ref), 2);
    cell(out, lin_score_percent(c->sub, c->n_ref), 2);
    cell(out, lin_score_percent(c->del, c->n_ref), 2);
    cell(out, lin_score_percent(c->ins, c->n_ref), 2);
    cell(out, 100 * lin_score_rate(c), 2);
    cell(out, lin_score_percent(c->wrong, c->utterances), 2);
    lin_buffer_char(out, '\n');
}

static void errors_of(lin_buffer *out, const char *what, const lin_score_counts *c)
{
    lin_score_put(out, "%s %2 %: %d substitutions, %d deletions, %d insertions in %d tokens of %d utterances\n", what,
                  100 * lin_score_rate(c), c->sub, c->del, c->ins, c->n_ref, c->utterances);
}

static void header(lin_buffer *out, const char *first, const char *what)
{
    static const char *const titles[] = {"utts", "tokens", "% corr", "% sub", "% del", "% ins"};
    size_t from = out->n;
    lin_buffer_text(out, first);
    lin_buffer_pad(out, from, NAME_WIDTH, 0);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) title(out, titles[i]);
    from = out->n;
    lin_buffer_format(out, "  %% %s", what);
    lin_buffer_pad(out, from, COLUMN, 1);
    title(out, "% utts");
    lin_buffer_char(out, '\n');
}

// One row of a list of errors: the count, the count per hundred of the token, and the tokens.
static void list_row(lin_buffer *out, const lin_score *s, long long count, long long of, int a, const char *between, int b)
{
    cell(out, (double)count, 0);
    cell(out, lin_score_percent(count, of), 2);
    lin_buffer_text(out, "  ");
    if (a >= 0) lin_buffer_text(out, lin_score_token(s, a));
    lin_buffer_text(out, between);
    if (b >= 0) lin_buffer_text(out, lin_score_token(s, b));
    lin_buffer_char(out, '\n');
}

static void list_title(lin_buffer *out, const char *what, long long n, const char *of)
{
    lin_score_put(out, "%s (%d in all)\n", what, n);
    title(out, "count");
    title(out, of);
    lin_buffer_char(out, '\n');
}

// kind: 0 substitutions, 1 deletions, 2 insertions
static void list_errors(const lin_score_report *r, int kind, const char *what, long long total, const char *of, lin_buffer *out)
{
    const lin_score_confusion *c = r->score->confusions;
    int shown = 0;
    list_title(out, what, total, of);
    for (size_t i = 0; i < r->score->n_confusions && shown < r->confusions; i++) {
        if (kind != (c[i].ref < 0 ? 2 : c[i].hyp < 0 ? 1 : 0)) continue;
        const lin_score_token_counts t = r->score->by_token[kind == 2 ? c[i].hyp : c[i].ref];
        list_row(out, r->score, c[i].count, kind == 2 ? t.correct + t.put + t.ins : t.n_ref, c[i].ref, kind ? "" : " -> ",
                 c[i].hyp);
        shown++;
    }
    lin_buffer_char(out, '\n');
}

static lin_status list_pairs(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_confused_pair *p;
    int n;
    LIN_TRY(lin_score_confused_pairs(r->score, &p, &n, err));
    list_title(out, "most confused pairs", n, "% both");
    for (int i = 0; i < n && i < r->confusions; i++) {
        const long long both = r->score->by_token[p[i].a].n_ref + r->score->by_token[p[i].b].n_ref;
        list_row(out, r->score, p[i].a_as_b + p[i].b_as_a, both, p[i].a, " <-> ", p[i].b);
    }
    lin_buffer_char(out, '\n');
    lin_free(p);
    return LIN_OK;
}

static lin_status lists(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_score_counts total = r->score->total;
    list_errors(r, 0, "substitutions", total.sub, "% of ref", out);
    list_errors(r, 1, "deletions", total.del, "% of ref", out);
    list_errors(r, 2, "insertions", total.ins, "% of hyp", out);
    return list_pairs(r, out, err);
}

static void notes(const lin_score_report *r, lin_buffer *out)
{
    const lin_score *s = r->score;
    const lin_score_intervals *v = r->intervals;
    char shown[LIN_QUOTE];
    if (s->n_without_line)
        lin_score_put(out, "%d utterances have no line in the CTM hypothesis and count as deleted\n",
                      (long long)s->n_without_line);
    if (s->n_deleted) lin_score_put(out, "%d tokens were deleted by the map\n", s->n_deleted);
    for (int i = 0; i < s->unmapped.n; i++) {
        lin_buffer_text(out, i ? i == 20 ? ", ..." : ", " : "not in the map, scored as they are: ");
        if (i == 20) break;
        lin_buffer_text(out, lin_quote(shown, lin_symbols_text(&s->unmapped, i), s->unmapped.items[i].n));
    }
    if (s->unmapped.n) lin_buffer_char(out, '\n');
    if (v && v->utterances.units > 1) {
        lin_score_put_intervals(out, "[%2, %2] over %d %s", &v->utterances, &v->speakers);
        lin_score_put(out, " (bootstrap, %d resamples, seed %d)\n", (long long)v->resamples, (long long)v->seed);
    }
}

static void compared(const lin_score_report *r, lin_buffer *out)
{
    const lin_score_comparison *c = r->comparison;
    lin_score_put(out, "against %s: ", r->other_name ? r->other_name : "the other");
    errors_of(out, r->measure, &c->other);
    lin_score_put(out, "difference %2 points", 100 * c->difference);
    if (c->utterances.interval.units > 1) {
        lin_buffer_text(out, ", ");
        lin_score_put_intervals(out, "[%2, %2] over %d %s", &c->utterances.interval, &c->speakers.interval);
    }
    lin_score_put(out, "\nprobability of improvement %1 % over utterances", 100 * c->utterances.improvement);
    if (c->speakers.interval.units > 1) lin_score_put(out, ", %1 % over speakers", 100 * c->speakers.improvement);
    lin_score_put(out, "; better in %d utterances, worse in %d\n", c->better, c->worse);
    lin_score_put(out, "matched pairs: %d segments, mean difference %3 errors, ", (long long)c->segments.segments,
                  c->segments.mean);
    if (isfinite(c->segments.z)) lin_score_put(out, "z %3, ", c->segments.z);
    lin_score_put(out, "p %s%4\n", c->segments.p < 0.0001 ? "< " : "", fmax(0.0001, c->segments.p));
}

lin_status lin_score_text(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    const lin_score *s = r->score;
    char name[LIN_QUOTE];
    for (int u = 0; r->alignments && u < s->ref.n; u++) lin_score_align(r, u, out);
    if (r->utterances) {
        header(out, "utterance", r->measure);
        for (int u = 0; u < s->ref.n; u++) row(out, lin_score_utterance(s, u), &s->by_utterance[u]);
        lin_buffer_char(out, '\n');
    }
    LIN_TRY(r->confusions > 0 ? lists(r, out, err) : LIN_OK);
    header(out, "speaker", r->measure);
    for (int i = 0; i < s->speakers.n; i++) {
        const char *speaker = lin_score_speaker(s, i);
        row(out, lin_quote(name, speaker, strlen(speaker)), &s->by_speaker[i]);
    }
    row(out, "all", &s->total);
    lin_buffer_char(out, '\n');
    notes(r, out);
    if (r->comparison) compared(r, out);
    errors_of(out, r->measure, &s->total); // the last line, which scripts read
    return lin_buffer_status(out, err);
}

/* ---- what an error rate is called, by the tokens of the reference ---------------------------------------------------------- */

// Phones of TIMIT and of other toolkits, besides those that lin_phones_read knows.
static const char *const others[] = {"bcl", "dcl", "gcl", "kcl", "pcl", "tcl",  "vcl", "cl", "epi", "pau",
                                     "h#",  "q",   "ax",  "ix",  "axr", "ax-h", "ux",  "nx", "dx",  "eng",
                                     "em",  "en",  "el",  "hv",  "sil", "spn",  "nsn", "sp"};

static int is_phone(const lin_phones *phones, const char *token)
{
    lin_phone_read read;
    int stress = 0;
    if (lin_phones_read(phones, token, strlen(token), &read, 1, &stress) == 1) return 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!strcmp(token, others[i])) return 1;
    }
    return 0;
}

const char *lin_score_measure(const lin_score *score, const lin_phones *phones)
{
    long long n = 0, n_phones = 0, n_sure = 0, n_long = 0;
    for (int i = 0; i < score->tokens.n; i++) {
        const long long n_ref = score->by_token[i].n_ref;
        const char *token = lin_score_token(score, i);
        const int phone = is_phone(phones, token);
        n += n_ref;
        n_phones += phone ? n_ref : 0;
        n_sure += phone && (lin_phones_is_own(phones) || strlen(token) > 1) ? n_ref : 0; // "b" may be a letter
        n_long += !phone && (int)lin_utf8_count(token) > 2 ? n_ref : 0;
    }
    if (n && n_sure && n_phones >= n - n / 10) return "PER";
    return n_long > n / 2 ? "WER" : "ER";
}

/* ---- one utterance as sclite's "-o pralign" prints it ---------------------------------------------------------------------- */

static void blanks(lin_buffer *out, size_t n) { lin_buffer_pad(out, out->n, n, 0); }

// A token in a column of `width` characters and a blank after it; NULL is a gap: stars as long as the token of the other side, or
// blanks beside an optional word.
static void put_token(lin_buffer *out, const char *text, size_t width, int is_wrong, int capitals)
{
    if (!text) {
        for (size_t i = 0; i < width; i++) lin_buffer_char(out, is_wrong ? '*' : ' ');
        lin_buffer_char(out, ' ');
        return;
    }
    for (const char *c = text; *c; c++)
        lin_buffer_char(out, is_wrong && capitals ? lin_upper(*c) : *c);
    blanks(out, width - lin_utf8_count(text) + 1);
}

static size_t column(const lin_score *s, const lin_edit_pair *p)
{
    const size_t ref = p->ref < 0 ? 0 : lin_utf8_count(lin_score_token(s, p->ref)),
                 hyp = p->hyp < 0 ? 0 : lin_utf8_count(lin_score_token(s, p->hyp));
    return ref > hyp ? ref : hyp;
}

void lin_score_align(const lin_score_report *r, int u, lin_buffer *out)
{
    const lin_score *s = r->score;
    const lin_score_counts c = s->by_utterance[u];
    int n;
    const lin_edit_pair *p = lin_score_alignment(s, u, &n);
    const long long counts[] = {c.correct, c.sub, c.del, c.ins};
    lin_buffer_format(out, "id: (%s)\nScores: (#C #S #D #I)", lin_score_utterance(s, u));
    for (int i = 0; i < 4; i++) lin_buffer_format(out, " %lld", counts[i]);
    if (!n) { // sclite prints no empty lines
        lin_buffer_text(out, "\n\n");
        return;
    }
    lin_buffer_text(out, "\nREF:  ");
    for (int i = 0; i < n; i++) put_token(out, lin_score_token(s, p[i].ref), column(s, &p[i]), !p[i].is_right, !r->keep_case);
    lin_buffer_text(out, "\nHYP:  ");
    for (int i = 0; i < n; i++) put_token(out, lin_score_token(s, p[i].hyp), column(s, &p[i]), !p[i].is_right, !r->keep_case);
    lin_buffer_text(out, "\nEval: ");
    for (int i = 0; i < n; i++) {
        lin_buffer_char(out, p[i].is_right ? ' ' : p[i].ref < 0 ? 'I' : p[i].hyp < 0 ? 'D' : 'S');
        blanks(out, column(s, &p[i]));
    }
    lin_buffer_text(out, "\n\n");
}
