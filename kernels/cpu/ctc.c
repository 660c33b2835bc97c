// CTC: one work item per utterance; and the sum of its losses.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu/cpu.h"

/*
 * Rows of alpha are kept in the thread's scratch if it holds those of 2 sqrt(T) frames: then each row is computed at most twice.
 * An utterance with more labels gets a block of its own during the call, of that many rows but at most MOST_BLOCK bytes. Beyond
 * that (hours of speech in one utterance), or if there is no memory, rows are recomputed more often. LEAST_ROWS is the minimum
 * for any result.
 */
enum { LEAST_ROWS = 8 };
static const size_t MOST_BLOCK = (size_t)512 << 20;

LIN_DISPATCH_DECLARE(double, lin_ctc_utterance,
                     (float *dlogits, const float *logp, int T, const int *labels, int U, int V, double scale, void *scratch,
                      size_t scratch_bytes));

typedef struct ctc_job {
    const lin_exec *exec;
    double *loss, scale;
    float *dlogits;
    const float *logp;
    const int *offsets, *labels, *label_offsets;
    int V;
} ctc_job;

// The least number of frames for the labels: one each, and a blank between equal ones.
static int frames_needed(const int *labels, int U)
{
    int n = U;
    for (int u = 1; u < U; u++) n += labels[u] == labels[u - 1];
    return n;
}

// Bytes for `rows` rows of alpha and the other rows that lin_ctc_utterance needs (ctc.h).
static size_t bytes_of(size_t rows, int U)
{
    const size_t pitch = (size_t)U + 1 + 4 * 16; // at most: 16 lanes of margin at both ends, and rounded up
    return (16 * rows + 8) * pitch;
}

// The loss; -1 if there is no memory for rows of this length.
static double utterance_loss(const ctc_job *job, int thread, float *gradient, const float *logp, int T, const int *labels, int U)
{
    const size_t wanted = bytes_of(gradient ? 2 * (size_t)sqrt((double)T) + LEAST_ROWS : LEAST_ROWS, U);
    const size_t least = bytes_of(LEAST_ROWS, U);
    size_t bytes = LIN_SCRATCH_BYTES;
    void *block = NULL;
    if (wanted > bytes) {
        const size_t own = wanted < MOST_BLOCK ? wanted : least < MOST_BLOCK ? MOST_BLOCK : least;
        block = lin_alloc(own, 1);
        if (block) bytes = own;
        else if (least > bytes) return -1;
    }
    const double loss = LIN_DISPATCH(lin_ctc_utterance)(gradient, logp, T, labels, U, job->V, job->scale,
                                                        block ? block : lin_scratch(job->exec, thread), bytes);
    lin_free(block);
    return loss;
}

static void utterance_piece(void *context, int b, int thread)
{
    const ctc_job *job = context;
    size_t first = (size_t)job->offsets[b] * (size_t)job->V;
    int T = job->offsets[b + 1] - job->offsets[b], U = job->label_offsets[b + 1] - job->label_offsets[b];
    const int *labels = job->labels ? job->labels + job->label_offsets[b] : NULL;
    float *gradient = job->dlogits ? job->dlogits + first : NULL;
    job->loss[b] = -1;
    if (U <= T && frames_needed(labels, U) <= T)
        job->loss[b] = utterance_loss(job, thread, gradient, job->logp + first, T, labels, U);
    if (job->loss[b] == -1 && gradient) memset(gradient, 0, (size_t)T * (size_t)job->V * sizeof *gradient);
}

void lin_cpu_ctc(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments, const int *labels,
                 const int *label_offsets, int most_labels, int V, const double *scale)
{
    assert(lin_segments_hold(segments) && V > 0 && label_offsets && (!dlogits || (scale && dlogits != logp)));
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
