// The denominator of maximum mutual information: one work item per utterance.
#include <assert.h>
#include <math.h>

#include "base/memory.h"
#include "kernels/cpu/cpu.h"

LIN_DISPATCH_DECLARE(double, lin_denominator_utterance,
                     (float *dlogits, const float *logp, int T, int V, const lin_trigrams *q, float scale, float *rows));

typedef struct denominator_job {
    double *sums, *loss;
    float *dlogits, scale;
    const float *logp;
    const int *offsets, *label_offsets;
    const lin_trigrams *trigrams;
    int V;
} denominator_job;

static void denominator_piece(void *context, int b, int thread)
{
    const denominator_job *job = context;
    const size_t V = (size_t)job->V, at = (size_t)job->offsets[b] * V;
    const int T = job->offsets[b + 1] - job->offsets[b], U = job->label_offsets[b + 1] - job->label_offsets[b];
    (void)thread;
    job->sums[b] = 0;
    if (U == 0 || U > T) return;
    float *gradient = job->dlogits ? job->dlogits + at : NULL;
    float *rows = lin_alloc(((size_t)T + 3) * 2 * V * V + 2 * V, sizeof *rows);
    job->sums[b] = NAN;
    if (rows)
        job->sums[b] = LIN_DISPATCH(lin_denominator_utterance)(gradient, job->logp + at, T, job->V, job->trigrams, job->scale,
                                                               rows);
    lin_free(rows);
    if (!isnan(job->sums[b])) return;
    for (size_t i = 0; i < (size_t)T * V && gradient; i++) gradient[i] = NAN;
    if (job->loss) job->loss[b] = NAN; // which ends a training
}

void lin_cpu_denominator(lin_exec *exec, double *sums, double *loss, float *dlogits, const float *logp,
                         const lin_segments *segments, const int *label_offsets, const lin_trigrams *trigrams, int V,
                         double weight, const double *scale)
{
    const float factor = dlogits ? (float)(weight * *scale) : 0;
    denominator_job job = {sums, loss, dlogits, factor, logp, segments->offsets, label_offsets, trigrams, V};
    lin_pool_run(exec->pool, segments->B, denominator_piece, &job);
}
