// Greedy CTC decoding of many streams (Graves et al. 2006, section 3.2), with the phones, frames and confidences of
// decoder/greedy. One warp per utterance. First it finds the best labels of up to 32 rows, which are independent; then all lanes
// process these rows in order, each with the same state.
#include <math.h>

#include "kernels/cuda/cuda.h"

enum { GREEDY_THREADS = 128 };

// Index and value of the largest of a row, the first of equals, in all lanes; -1 if one is NaN or the largest is infinite.
static __device__ __forceinline__ int best_of(const float *row, int V, float *value)
{
    const int lane = (int)(threadIdx.x % 32);
    float top = lane < V ? row[lane] : -INFINITY;
    int best = lane < V ? lane : V, ordered = top == top;
    for (int v = lane + 32; v < V; v += 32) {
        const float x = row[v];
        ordered &= x == x;
        if (x > top) {
            top = x;
            best = v;
        }
    }
    for (int o = 16; o; o /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, top, o);
        const int its = __shfl_xor_sync(0xffffffffu, best, o);
        if (other > top || (other == top && its < best)) {
            top = other;
            best = its;
        }
    }
    *value = top;
    return __all_sync(0xffffffffu, ordered) && isfinite(top) ? best : -1;
}

static __global__ void greedy_utterances(lin_phone *phones, int *n_phones, const float *logp, const int *offsets, int B, int V,
                                         lin_run *runs, const int *slots)
{
    const int lane = (int)(threadIdx.x % 32);
    const size_t b = ((size_t)blockIdx.x * GREEDY_THREADS + threadIdx.x) / 32;
    if (b >= (size_t)B) return; // the whole warp returns
    const int slot = slots[b], first = offsets[b], end = offsets[b + 1];
    if (slot < 0) {
        if (lane == 0) n_phones[b] = 0;
        return;
    }
    lin_run run = runs[slot];
    int n = 0;
    for (int row0 = first; row0 < end && n >= 0; row0 += 32) {
        const int rows = min(32, end - row0);
        int label = 0; // of row row0 + lane
        float logp_of_label = 0;
        for (int i = 0; i < rows; i++) {
            float value;
            const int best = best_of(logp + (size_t)(row0 + i) * (size_t)V, V, &value);
            if (lane == i) {
                label = best;
                logp_of_label = value;
            }
        }
        if (__any_sync(0xffffffffu, label < 0)) {
            n = -1;
            break;
        }
        for (int i = 0; i < rows; i++) {
            const int now = __shfl_sync(0xffffffffu, label, i);
            const float value = __shfl_sync(0xffffffffu, logp_of_label, i);
            if (now != run.label) {
                if (run.label > 0 && !run.emitted) {
                    const double mean = run.sum_logp / (double)(run.frame - run.start);
                    if (lane == 0) {
                        const lin_phone phone = {run.label, (float)exp(mean < 0 ? mean : 0), run.start, run.frame};
                        phones[(size_t)first + (size_t)n] = phone;
                    }
                    n++;
                }
                run.label = now;
                run.emitted = 0;
                run.start = run.frame;
                run.sum_logp = 0;
            }
            run.sum_logp += (double)value;
            run.frame++;
        }
    }
    if (lane) return;
    n_phones[b] = n;
    if (n >= 0) runs[slot] = run;
}

void lin_cuda_greedy(lin_exec *exec, lin_phone *phones, int *n_phones, const float *logp, const lin_segments *segments, int V,
                     lin_run *runs, const int *slots)
{
    if (segments->B < 1) return;
    LIN_LAUNCH(exec, greedy_utterances, lin_cuda_blocks((size_t)segments->B, GREEDY_THREADS / 32), GREEDY_THREADS, 0, phones,
               n_phones, logp, segments->offsets, segments->B, V, runs, slots);
}
