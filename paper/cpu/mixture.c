// mixture.c - a mixture of discretised logistics, one work item per utterance; see paper/mixture.h.

#include <string.h>

#include "kernels/cpu/cpu.h"
#include "paper/mixture.h"

// gcc 12 for arm64 stops with an internal error when it vectorises this.
#if defined(__aarch64__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
LIN_MIXTURE_ROW(float)

enum { SMALL = 64 }; // below this many rows, starting a second thread costs more time than it saves

typedef struct mixture_job {
    double *loss, scale;
    float *dx;
    const float *x;
    const int *offsets, *targets;
    int M;
} mixture_job;

static void mixture_piece(void *context, int b, int thread)
{
    const mixture_job *job = context;
    const size_t width = 3 * (size_t)job->M;
    (void)thread;
    double loss = 0;
    for (int t = job->offsets[b]; t < job->offsets[b + 1]; t++) {
        float *to = job->dx ? job->dx + (size_t)t * width : NULL;
        if (job->targets[t] >= 0)
            loss += lin_mixture_row_float(to, job->x + (size_t)t * width, job->M, job->targets[t], job->scale);
        else if (to) memset(to, 0, width * sizeof *to);
    }
    job->loss[b] = loss;
}

void lin_cpu_mixture(lin_exec *exec, double *loss, float *dx, const float *x, const lin_segments *segments, const int *targets,
                     int M, const double *scale)
{
    mixture_job job = {loss, dx ? *scale : 0, dx, x, segments->offsets, targets, M};
    lin_pool_run(segments->rows < SMALL ? NULL : exec->pool, segments->B, mixture_piece, &job);
}
