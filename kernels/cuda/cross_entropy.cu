// Cross entropy with a target per frame: a block per utterance for the losses, then a thread per element for the gradient,
// which may overwrite the log-probabilities. The sum of a loss has a fixed order: a thread's frames, then the threads.
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    sum_losses(double *__restrict__ loss, const float *__restrict__ logp, const int *__restrict__ offsets,
               const int *__restrict__ targets, int V)
{
    LIN_SHARED(double, sums);
    const int b = (int)blockIdx.x, tid = (int)threadIdx.x;
    double sum = 0;
    for (int t = offsets[b] + tid; t < offsets[b + 1]; t += THREADS)
        if (targets[t] >= 0) sum -= (double)logp[(size_t)t * (size_t)V + (size_t)targets[t]];
    sums[tid] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (tid < half) sums[tid] += sums[tid + half];
    }
    if (tid == 0) loss[b] = sums[0];
}

// dlogits may be logp.
static __global__ void __launch_bounds__(THREADS) gradient(float *dlogits, const float *logp, const int *__restrict__ targets,
                                                           const double *__restrict__ scale, size_t count, int V)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const size_t row = i / (size_t)V;
    const int target = targets[row], v = (int)(i - row * (size_t)V);
    dlogits[i] = target < 0 ? 0 : (float)*scale * (expf(logp[i]) - (v == target ? 1.0f : 0.0f));
}

void lin_cuda_cross_entropy(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments,
                            const int *targets, int V, const double *scale)
{
    const size_t count = (size_t)segments->rows * (size_t)V;
    if (segments->B == 0) return;
    LIN_LAUNCH(exec, sum_losses, segments->B, THREADS, THREADS * sizeof(double), loss, logp, segments->offsets, targets, V);
    if (!dlogits || count == 0) return;
    LIN_LAUNCH(exec, gradient, lin_cuda_blocks(count, THREADS), THREADS, 0, dlogits, logp, targets, scale, count, V);
}
