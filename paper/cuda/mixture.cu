// mixture.cu - a mixture of discretised logistics: a block per utterance, a thread per row; see paper/mixture.h. The sum of a
// loss has a fixed order: a thread's rows, then the threads.
#include "kernels/cuda/cuda.h"
#include "paper/mixture.h"

LIN_MIXTURE_ROW(float)

enum { THREADS = 128 };

// dx may be x.
static __global__ void __launch_bounds__(THREADS) mixture_rows(double *__restrict__ loss, float *dx, const float *x,
                                                               const int *__restrict__ offsets, const int *__restrict__ targets,
                                                               int M, const double *__restrict__ scale)
{
    LIN_SHARED(double, sums);
    const int b = (int)blockIdx.x, tid = (int)threadIdx.x, width = 3 * M;
    double sum = 0;
    for (int t = offsets[b] + tid; t < offsets[b + 1]; t += THREADS) {
        float *to = dx ? dx + (size_t)t * (size_t)width : NULL;
        if (targets[t] >= 0) sum += lin_mixture_row_float(to, x + (size_t)t * (size_t)width, M, targets[t], to ? *scale : 0);
        else
            for (int i = 0; to && i < width; i++) to[i] = 0;
    }
    sums[tid] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (tid < half) sums[tid] += sums[tid + half];
    }
    if (tid == 0) loss[b] = sums[0];
}

void lin_cuda_mixture(lin_exec *exec, double *loss, float *dx, const float *x, const lin_segments *segments, const int *targets,
                      int M, const double *scale)
{
    if (segments->B == 0) return;
    LIN_LAUNCH(exec, mixture_rows, segments->B, THREADS, THREADS * sizeof(double), loss, dx, x, segments->offsets, targets, M,
               scale);
}
