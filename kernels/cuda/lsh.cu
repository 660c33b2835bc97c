// LSH attention: the operations; see lsh.h.
#include "kernels/cuda/lsh.h"

static int nothing_to_do(lin_exec *exec, const lin_segments *segments, const lin_lsh *lsh, int H, int E)
{
    return segments->B == 0 || segments->rows == 0 || lsh->rounds == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec);
}

static lsh_job job_of(const float *qv, const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    lsh_job job = {};
    job.qv = qv;
    job.order = order;
    job.offsets = segments->offsets;
    job.rows = segments->rows;
    job.H = H;
    job.E = E;
    job.causal = causal;
    job.chunk = lsh->chunk;
    job.rounds = lsh->rounds;
    return job;
}

void lin_cuda_lsh_forward(lin_exec *exec, float *y, float *lse, int *order, const float *qv, const float *R,
                          const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    if (nothing_to_do(exec, segments, lsh, H, E)) return;
    lin_lsh_sort(exec, order, qv, R, segments, lsh, H, E);
    lsh_job job = job_of(qv, order, segments, lsh, H, E, causal);
    float *terms = (float *)lin_cuda_scratch(exec, 2 * (size_t)segments->rows * (size_t)H * sizeof(float));
    if (!terms) return;
    job.y = y;
    job.lse = lse;
    job.terms = terms;
    lin_lsh_terms(exec, terms, job);
    lin_lsh_forward_general(exec, job, segments);
}

void lin_cuda_lsh_backward(lin_exec *exec, float *dqv, const float *dy, const float *qv, const float *y, const float *lse,
                           const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    if (nothing_to_do(exec, segments, lsh, H, E)) return;
    lsh_job job = job_of(qv, order, segments, lsh, H, E, causal);
    float *terms = (float *)lin_cuda_scratch(exec, 2 * (size_t)segments->rows * (size_t)H * sizeof(float));
    if (!terms) return;
    job.y = const_cast<float *>(y);
    job.lse = const_cast<float *>(lse);
    job.dy = dy;
    job.dqv = dqv;
    job.terms = terms;
    lin_lsh_terms(exec, terms, job);
    lin_lsh_backward_general(exec, job, segments);
}
