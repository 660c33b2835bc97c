// score_compare.c - bootstrap intervals, and the matched-pair comparison of two systems; see score_compare.h.

#include "train/score/score_compare.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"

static lin_bootstrap_unit unit_of(const lin_score_counts *c)
{
    return (lin_bootstrap_unit){.errors = c->sub + c->del + c->ins, .tokens = c->n_ref};
}

static int units_of(const lin_score_counts *counts, int n, lin_bootstrap_unit *units)
{
    for (int i = 0; i < n; i++) units[i] = unit_of(&counts[i]);
    return n;
}

// The utterances of each speaker in a row: those of speaker k are sorted[begin[k] .. begin[k + 1]).
static void sort_by_speaker(const lin_score *s, const lin_bootstrap_unit *units, lin_bootstrap_unit *sorted, int *begin)
{
    const int n_speakers = s->speakers.n, n = s->ref.n;
    memset(begin, 0, ((size_t)n_speakers + 2) * sizeof *begin);
    for (int u = 0; u < n; u++) begin[s->speaker_of[u] + 2]++;
    for (int k = 2; k <= n_speakers; k++) begin[k] += begin[k - 1];
    for (int u = 0; u < n; u++) sorted[begin[s->speaker_of[u] + 1]++] = units[u];
}

static lin_status draw(const lin_score *s, const lin_bootstrap_options *o, lin_bootstrap_unit *units, lin_bootstrap_unit *sorted,
                       int *begin, lin_score_intervals *v, lin_error *err)
{
    const int n_speakers = v->by_speaker ? s->speakers.n : 0;
    int n = units_of(s->by_utterance, s->ref.n, units);
    lin_status status = lin_bootstrap_rate(units, n, o, &v->utterances, err);
    if (status == LIN_OK) sort_by_speaker(s, units, sorted, begin);
    for (int k = 0; k < n_speakers && status == LIN_OK; k++)
        status = lin_bootstrap_rate(sorted + begin[k], begin[k + 1] - begin[k], o, &v->by_speaker[k], err);
    if (status == LIN_OK) status = lin_bootstrap_rate(units, units_of(s->by_speaker, s->speakers.n, units), o, &v->speakers, err);
    return status;
}

lin_status lin_score_bootstrap(const lin_score *s, const lin_bootstrap_options *o, int by_speaker, lin_score_intervals *v,
                               lin_error *err)
{
    size_t n = (size_t)s->ref.n, n_speakers = (size_t)s->speakers.n;
    *v = (lin_score_intervals){.resamples = o->resamples, .seed = o->seed};
    lin_bootstrap_unit *units = lin_alloc(n, sizeof *units), *sorted = lin_alloc(n, sizeof *sorted);
    int *begin = lin_alloc(n_speakers + 2, sizeof *begin);
    if (by_speaker) v->by_speaker = lin_calloc(n_speakers, sizeof *v->by_speaker);
    lin_status status = LIN_OK;
    const int whole = units && sorted && begin && (!by_speaker || v->by_speaker);
    if (!whole) status = lin_no_memory(err, "a bootstrap", 2 * n * sizeof *units);
    else status = draw(s, o, units, sorted, begin, v, err);
    lin_free(units);
    lin_free(sorted);
    lin_free(begin);
    if (status != LIN_OK) lin_score_intervals_free(v);
    return status;
}

void lin_score_intervals_free(lin_score_intervals *v)
{
    lin_free(v->by_speaker);
    *v = (lin_score_intervals){0};
}

/* ---- two systems ----------------------------------------------------------------------------------------------------------- */

// Sums over the segments.
typedef struct sums {
    int n;
    double sum, squares;
} sums;

// Skips insertions and counts them in *errors; *at is then at a reference token or the end.
static int pass_insertions(const lin_edit_pair *pairs, int n, int *at, int *errors)
{
    const int begin = *at;
    for (; *at < n && pairs[*at].ref < 0; ++*at) *errors += !pairs[*at].is_right;
    return *at > begin;
}

static void close_segment(sums *t, int *a, int *b)
{
    if (*a || *b) {
        double d = *a - *b;
        t->n++;
        t->sum += d;
        t->squares += d * d;
    }
    *a = *b = 0;
}

// The same token may have different numbers in the two scores, so a token is right if it is aligned with itself.
static void add_segments(const lin_edit_pair *x, int n_x, const lin_edit_pair *y, int n_y, sums *t)
{
    int i = 0, j = 0, errors_x = 0, errors_y = 0, right = 0; // consecutive tokens that both have right
    for (;;) {
        if (pass_insertions(x, n_x, &i, &errors_x) | pass_insertions(y, n_y, &j, &errors_y)) right = 0;
        if (i == n_x || j == n_y) break;
        int wrong_x = !x[i].is_right, wrong_y = !y[j].is_right;
        i++;
        j++;
        errors_x += wrong_x;
        errors_y += wrong_y;
        right = wrong_x || wrong_y ? 0 : right + 1;
        if (right == 2) close_segment(t, &errors_x, &errors_y);
    }
    close_segment(t, &errors_x, &errors_y);
}

// An utterance with alternatives is one segment: its words may differ.
static void add_whole(const lin_score *x, const lin_score *y, int u, sums *t)
{
    int errors_x = (int)unit_of(&x->by_utterance[u]).errors, errors_y = (int)unit_of(&y->by_utterance[u]).errors;
    close_segment(t, &errors_x, &errors_y);
}

static lin_matched_pairs judge(const sums *t)
{
    lin_matched_pairs m = {.segments = t->n, .p = 1};
    if (t->n) m.mean = t->sum / t->n;
    if (t->n < 2 || t->squares == 0) return m;
    m.deviation = sqrt((t->squares - t->sum * m.mean) / (t->n - 1));
    m.z = m.mean / (m.deviation / sqrt(t->n));
    m.p = erfc(fabs(m.z) / sqrt(2));
    return m;
}

// The next pair at or after `at` that has a reference token, or n.
static int next_ref(const lin_edit_pair *pairs, int n, int at)
{
    while (at < n && pairs[at].ref < 0) at++;
    return at;
}

static lin_status same_reference(const lin_score *x, const lin_score *y, int u, lin_error *err)
{
    int n_p, n_q, i = 0, j = 0;
    const char *id = lin_score_utterance(x, u);
    const lin_edit_pair *p = lin_score_alignment(x, u, &n_p), *q = lin_score_alignment(y, u, &n_q);
    int same = !strcmp(id, lin_score_utterance(y, u));
    if (same && lin_score_has_choices(x, u)) return LIN_OK; // the systems may have chosen different words of the reference
    for (; same; i++, j++) {
        i = next_ref(p, n_p, i);
        j = next_ref(q, n_q, j);
        if (i == n_p || j == n_q) break;
        same = !strcmp(lin_score_token(x, p[i].ref), lin_score_token(y, q[j].ref));
    }
    char shown[LIN_QUOTE];
    if (same && i == n_p && j == n_q) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "the references of the two systems differ in utterance '%s'",
                    lin_quote(shown, id, strlen(id)));
}

static lin_status draw_both(const lin_score *x, const lin_score *y, const lin_bootstrap_options *o, lin_bootstrap_unit *a,
                            lin_bootstrap_unit *b, lin_score_comparison *c, lin_error *err)
{
    int n = units_of(x->by_utterance, x->ref.n, a);
    units_of(y->by_utterance, y->ref.n, b);
    for (int u = 0; u < n; u++) {
        c->better += a[u].errors < b[u].errors;
        c->worse += a[u].errors > b[u].errors;
    }
    LIN_TRY(lin_bootstrap_difference(a, b, n, o, &c->utterances, err));
    n = units_of(x->by_speaker, x->speakers.n, a);
    units_of(y->by_speaker, y->speakers.n, b);
    return lin_bootstrap_difference(a, b, n, o, &c->speakers, err);
}

lin_status lin_score_compare(const lin_score *x, const lin_score *y, const lin_bootstrap_options *o, lin_score_comparison *c,
                             lin_error *err)
{
    const int n = x->ref.n;
    lin_score_counts total = x->total;
    lin_status status = LIN_OK;
    sums t = {0};
    *c = (lin_score_comparison){.other = y->total};
    c->difference = lin_score_rate(&total) - lin_score_rate(&c->other);
    if (n != y->ref.n || x->speakers.n != y->speakers.n)
        return lin_fail(err, LIN_MISMATCH, "the references of the two systems differ: %d and %d utterances of %d and %d speakers",
                        n, y->ref.n, x->speakers.n, y->speakers.n);
    for (int u = 0; u < n && status == LIN_OK; u++) {
        int n_p, n_q;
        LIN_TRY(same_reference(x, y, u, err));
        const lin_edit_pair *p = lin_score_alignment(x, u, &n_p), *q = lin_score_alignment(y, u, &n_q);
        if (lin_score_has_choices(x, u)) add_whole(x, y, u, &t);
        else add_segments(p, n_p, q, n_q, &t);
    }
    c->segments = judge(&t);
    lin_bootstrap_unit *a = lin_alloc((size_t)n, sizeof *a), *b = lin_alloc((size_t)n, sizeof *b);
    if (!a || !b) status = lin_no_memory(err, "a comparison", 2 * (size_t)n * sizeof *a);
    else status = draw_both(x, y, o, a, b, c, err);
    lin_free(a);
    lin_free(b);
    return status;
}
