// What the reports of a score share: pairs, the confusion matrix, the worst utterances.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/score/score_report.h"

void lin_score_put_level(lin_buffer *out, double level)
{
    double percent = 100 * level;
    lin_buffer_fixed(out, percent, fabs(percent - round(percent)) < 0.005 ? 0 : 2);
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
    int n_confusions, found = 0, joined = 0;
    const lin_score_confusion *c = lin_score_confusions(s, &n_confusions);
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
    int n_confusions;
    const lin_score_confusion *c = lin_score_confusions(s, &n_confusions);
    for (int i = 0; i < m->n; i++) {
        lin_score_token_counts counts;
        lin_score_token(s, m->tokens[i], &counts);
        m->counts[(size_t)i * width + (size_t)i] = counts.correct;
    }
    for (int i = 0; i < n_confusions; i++) {
        int ref = c[i].ref < 0 ? m->n : row_of[c[i].ref], hyp = c[i].hyp < 0 ? m->n : row_of[c[i].hyp];
        if (ref >= 0 && hyp >= 0) m->counts[(size_t)ref * width + (size_t)hyp] = c[i].count;
    }
}

lin_status lin_score_matrix_make(const lin_score *s, int max, lin_score_matrix *m, lin_error *err)
{
    const int n = lin_score_tokens(s), shown = n < max ? n : max;
    const size_t cells = ((size_t)shown + 1) * ((size_t)shown + 1);
    *m = (lin_score_matrix){.n = shown, .left_out = n - shown};
    m->tokens = lin_alloc((size_t)shown, sizeof *m->tokens);
    m->counts = lin_calloc(cells, sizeof *m->counts);
    ranked *r = lin_alloc((size_t)n, sizeof *r);
    int *row_of = lin_alloc((size_t)n, sizeof *row_of);
    if (m->tokens && m->counts && r && row_of) {
        for (int i = 0; i < n; i++) {
            lin_score_token_counts c;
            r[i] = (ranked){.text = lin_score_token(s, i, &c), .token = i};
            r[i].errors = c.sub + c.del + c.ins + c.put;
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

typedef struct bad {
    int utterance;
    long long errors;
} bad;

static int by_badness(const void *x, const void *y)
{
    const bad *p = x, *q = y;
    if (p->errors != q->errors) return p->errors > q->errors ? -1 : 1;
    return p->utterance < q->utterance ? -1 : p->utterance > q->utterance;
}

lin_status lin_score_worst(const lin_score *s, int max, int **utterances, int *n, lin_error *err)
{
    const int all = lin_score_utterances(s);
    int found = 0;
    bad *b = lin_alloc((size_t)all, sizeof *b);
    *n = 0;
    *utterances = lin_alloc((size_t)max, sizeof **utterances);
    if (!b || !*utterances) {
        lin_free(b);
        lin_free(*utterances);
        *utterances = NULL;
        return lin_no_memory(err, "a report", (size_t)all * sizeof *b);
    }
    for (int u = 0; u < all; u++) {
        lin_score_counts c;
        lin_score_utterance(s, u, &c);
        if (c.wrong) b[found++] = (bad){.utterance = u, .errors = c.sub + c.del + c.ins};
    }
    if (found) qsort(b, (size_t)found, sizeof *b, by_badness);
    for (; *n < found && *n < max; ++*n) (*utterances)[*n] = b[*n].utterance;
    lin_free(b);
    return LIN_OK;
}
