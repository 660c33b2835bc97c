// CTC: one piece of work per utterance; and the sum of its losses.
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

/* Labels for which the rows of at least ten frames fit into a thread's scratch; with more there is said to be no path. (They would
 * have to be spoken in one utterance: more than ten minutes of speech.) */
enum { MOST_LABELS = 5000 };

LIN_DISPATCH_DECLARE(double, lin_ctc_utterance, (float *dlogits, const float *logp, int T, const int *labels, int U, int V,
                                                 double scale, void *scratch));

typedef struct ctc_job {
    const lin_exec *exec;
    double *loss, scale;
    float *dlogits;
    const float *logp;
    const int *offsets, *labels, *label_offsets;
    int V;
} ctc_job;

// Frames that the labels need at least: one each, and a blank between equal ones.
static int frames_needed(const int *labels, int U)
{
    int n = U;
    for (int u = 1; u < U; u++) n += labels[u] == labels[u - 1];
    return n;
}

static void utterance_piece(void *context, int b, int thread)
{
    const ctc_job *job = context;
    size_t first = (size_t)job->offsets[b] * (size_t)job->V;
    int T = job->offsets[b + 1] - job->offsets[b], U = job->label_offsets[b + 1] - job->label_offsets[b];
    const int *labels = job->labels ? job->labels + job->label_offsets[b] : NULL;
    float *gradient = job->dlogits ? job->dlogits + first : NULL;
    job->loss[b] = -1;
    if (U <= MOST_LABELS && U <= T && frames_needed(labels, U) <= T)
        job->loss[b] = LIN_DISPATCH(lin_ctc_utterance)(gradient, job->logp + first, T, labels, U, job->V, job->scale,
                                                       lin_scratch(job->exec, thread));
    if (job->loss[b] == -1 && gradient) memset(gradient, 0, (size_t)T * (size_t)job->V * sizeof *gradient);
}

void lin_cpu_ctc(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments, const int *labels,
                 const int *label_offsets, int most_labels, int V, const double *scale)
{
    (void)most_labels;
    ctc_job job = {exec, loss, dlogits ? *scale : 0, dlogits, logp, segments->offsets, labels, label_offsets, V};
    lin_pool_run(exec->pool, segments->B, utterance_piece, &job);
}

void lin_cpu_tally_losses(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                          const int *label_offsets)
{
    (void)exec;
    double sum = 0;
    if (tally->bad) return;
    for (int b = 0; b < segments->B; b++) {
        int T = segments->offsets[b + 1] - segments->offsets[b], U = label_offsets[b + 1] - label_offsets[b];
        if (U > T) continue;
        if (!isfinite(loss[b]) || loss[b] < 0) {
            tally->bad = LIN_BAD_LOSS;
            tally->bad_index = b;
            return;
        }
        sum += loss[b];
    }
    tally->loss += sum;
}
