// greedy.c - CTC decoding by the best label of each frame; see greedy.h.

#include "decoder/greedy.h"

#include <assert.h>
#include <math.h>

void lin_greedy_reset(lin_greedy *g, int n_outputs, int64_t first_frame, int carry)
{
    int32_t label = carry ? g->label : -1;
    *g = (lin_greedy){.n_outputs = n_outputs, .label = label, .emitted = label > 0, .start = first_frame, .frame = first_frame};
}

// Of a state that lin_greedy_reset began, or that was checked (decoder/search.c) after it was loaded.
static int holds(const lin_greedy *g)
{
    return g->n_outputs >= 1 && g->label >= -1 && g->label < g->n_outputs && g->start <= g->frame;
}

int lin_greedy_pending(const lin_greedy *g, lin_greedy_phone *phone)
{
    if (g->label <= 0 || g->emitted) return 0;
    assert(g->start < g->frame); // a run has a frame at least
    double mean = g->sum_logp / (double)(g->frame - g->start);
    float confidence = (float)exp(mean < 0 ? mean : 0);
    *phone = (lin_greedy_phone){.label = g->label, .confidence = confidence, .start = g->start, .end = g->frame};
    return 1;
}

// Index of the largest of n values, the first of equal ones; -1 if one is NaN or the largest is infinite.
static int best_of(const float *row, int n)
{
    int best = 0, ordered = row[0] == row[0];
    for (int i = 1; i < n; i++) {
        ordered &= row[i] == row[i];
        if (row[i] > row[best]) best = i;
    }
    return ordered && isfinite(row[best]) ? best : -1;
}

lin_status lin_greedy_push(lin_greedy *greedy, const float *logp, int n_frames, lin_greedy_phone *phones, int capacity,
                           int *n_phones, lin_error *err)
{
    lin_greedy g = *greedy;
    int n = 0;
    *n_phones = 0;
    if (n_frames < 0 || g.n_outputs < 1) return lin_fail(err, LIN_INVALID, "greedy decoding of %d frames", n_frames);
    if (capacity < n_frames) {
        return lin_fail(err, LIN_TOO_SMALL, "room for %d phones, but %d frames may give as many phones", capacity, n_frames);
    }
    assert(holds(&g));
    for (int t = 0; t < n_frames; t++) {
        const float *row = logp + (int64_t)t * g.n_outputs;
        int label = best_of(row, g.n_outputs);
        if (label < 0) {
            return lin_fail(err, LIN_NUMERIC, "frame %lld: the log-probabilities are not numbers", (long long)g.frame);
        }
        if (label != g.label) {
            n += lin_greedy_pending(&g, &phones[n]);
            g.label = label;
            g.emitted = 0;
            g.start = g.frame;
            g.sum_logp = 0;
        }
        g.sum_logp += (double)row[label];
        g.frame++;
    }
    *greedy = g;
    *n_phones = n;
    return LIN_OK;
}

void lin_greedy_finish(lin_greedy *g, lin_greedy_phone *phone, int *n_phones)
{
    *n_phones = lin_greedy_pending(g, phone);
    if (*n_phones) g->emitted = 1;
}
