/*
 * segments.h - which utterance a row belongs to, found on the device: the host knows only how many utterances and rows there are.
 *
 * lin_segments.offsets lies in the GPU's memory, so a kernel that is divided by rows looks its first row up, 32 places at a time
 * (three rounds for 32,768 utterances), and walks from there, or has the rows of its tile looked up together.
 */
#ifndef LIN_KERNELS_CUDA_SEGMENTS_H
#define LIN_KERNELS_CUDA_SEGMENTS_H

#include "kernels/cuda/cuda.h"

/* The utterance of row < offsets[B], the same in all lanes; a whole warp must take part. */
static __device__ __forceinline__ int lin_utterance_of(const int *offsets, int B, int row)
{
    const int lane = (int)(threadIdx.x & 31);
    int low = 0, high = B - 1; // the first utterance that ends behind the row is one of low .. high
    while (low < high) {
        const int step = (high - low) / 32 + 1, probe = min(low + (lane + 1) * step - 1, high);
        const unsigned behind = __ballot_sync(0xffffffffu, offsets[probe + 1] > row);
        if (!behind) return high;
        const int first = __ffs((int)behind) - 1;
        high = min(low + (first + 1) * step - 1, high);
        low += first * step;
    }
    return low;
}

/* utterances[i] of row0 + i, i < n <= 32. By one whole warp; others may read the table after a barrier. */
static __device__ __forceinline__ void lin_utterances_of_tile(int *utterances, const int *offsets, int B, int row0, int n)
{
    const int lane = (int)(threadIdx.x & 31), row = row0 + lane;
    int low = lin_utterance_of(offsets, B, row0), high = n > 1 ? lin_utterance_of(offsets, B, row0 + n - 1) : low;
    if (lane >= n) return;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (offsets[middle + 1] > row) high = middle;
        else low = middle + 1;
    }
    utterances[lane] = low;
}

#endif
