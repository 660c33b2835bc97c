// combiner.c - the hypotheses of an utterance by the sound of two networks; see combiner.h.

#include "linnet/combiner.h"

#include <math.h>

#include "base/memory.h"
#include "decoder/rows.h"
#include "linnet/second_network.h"

// In place of the logarithm of 0: a hypothesis that the second network excludes comes after all others, in their order.
static const double LEAST = -1e6;

struct lin_combiner {
    lin_second_network *network;
    int V;
    double weight, blank; // blank: added to the natural logarithm of each row's blank
    double *p;            // [rows, V + 1]: probabilities divided by the largest one of the row, and its logarithm
    int rows;
    int32_t *labels;      // of a hypothesis
    double *sums;
    size_t room, room_labels, room_sums;
};

lin_status lin_combiner_create(const lin_recognizer *first, const lin_decoding *decoding, int n_threads, lin_combiner **combiner,
                               lin_error *err)
{
    const lin_recognizer *second = decoding->combined;
    *combiner = NULL;
    if (!second || !(decoding->combine_weight > 0)) return LIN_OK;
    lin_combiner *c = lin_calloc(1, sizeof *c);
    if (!c) return lin_no_memory(err, "a second network", sizeof *c);
    c->V = second->V;
    c->weight = decoding->combine_weight;
    c->blank = -decoding->blank_penalty;
    const lin_status status = lin_second_network_create(first, second, n_threads, decoding->language, &c->network, err);
    if (status == LIN_OK) *combiner = c;
    else lin_combiner_destroy(c);
    return status;
}

void lin_combiner_destroy(lin_combiner *c)
{
    if (!c) return;
    lin_second_network_destroy(c->network);
    lin_free(c->p);
    lin_free(c->labels);
    lin_free(c->sums);
    lin_free(c);
}

void lin_combiner_begin(lin_combiner *c)
{
    if (c) c->rows = 0;
}

static lin_status keep_rows(void *context, const float *logp, int n, lin_error *err)
{
    lin_combiner *c = context;
    const size_t columns = (size_t)c->V + 1;
    const lin_status status =
        lin_grow(&c->p, &c->room, ((size_t)c->rows + (size_t)n) * columns, sizeof *c->p, "rows of a second network", err);
    for (int t = 0; t < n && status == LIN_OK; t++) {
        double *p = c->p + (size_t)c->rows++ * columns;
        p[c->V] = lin_sums_scaled(logp + (size_t)t * (size_t)c->V, c->V, p);
        p[0] *= exp(c->blank);
    }
    return status;
}

lin_status lin_combiner_push(lin_combiner *c, const float *frames, int n, lin_error *err)
{
    return c ? lin_second_network_run(c->network, frames, n, keep_rows, c, err) : LIN_OK;
}

// Natural logarithm of the sum over all alignments of the labels; NAN of rows that are no numbers.
static double sum_of(lin_combiner *c, int n)
{
    lin_sums q = {.labels = c->labels, .sums = c->sums, .n = n};
    double ends[2];
    lin_sums_begin(&q, 0, -INFINITY);
    for (int t = 0; t < c->rows; t++) {
        const double *p = c->p + (size_t)t * ((size_t)c->V + 1);
        if (!isfinite(p[c->V])) return NAN;
        lin_sums_row(&q, p, p[c->V], c->rows - 1 - t);
    }
    lin_sums_ends(&q, ends);
    const double most = fmax(ends[0], ends[1]);
    return most > LEAST ? most + log1p(exp(fmin(ends[0], ends[1]) - most)) : LEAST;
}

lin_status lin_combiner_score(lin_combiner *c, const lin_path *settled, lin_path *tail, lin_error *err)
{
    const size_t n = (size_t)settled->n_phones + (size_t)tail->n_phones;
    lin_status status = lin_grow(&c->labels, &c->room_labels, n + 1, sizeof *c->labels, "hypotheses", err);
    if (status == LIN_OK) status = lin_grow(&c->sums, &c->room_sums, 2 * n + 2, sizeof *c->sums, "hypotheses", err);
    if (status != LIN_OK || !c->rows) return status;
    int k = 0;
    c->labels[k++] = 0;
    for (int i = 0; i < settled->n_phones; i++) c->labels[k++] = settled->phones[i].label;
    for (int i = 0; i < tail->n_phones; i++) c->labels[k++] = tail->phones[i].label;
    const double second = sum_of(c, k - 1), change = c->weight * (second - tail->acoustic);
    if (isnan(change)) return LIN_OK;
    tail->acoustic += change;
    tail->score += change;
    return LIN_OK;
}
