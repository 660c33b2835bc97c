/*
 * segments.h - finds the utterance of a row on the device: the host knows only the number of utterances and of rows.
 *
 * lin_segments.offsets is in the GPU's memory. A kernel that is divided by rows searches for the utterance of its first row, 32
 * places at a time (three rounds for 32,768 utterances), and goes on from there, or finds the utterances of all rows of its tile
 * together.
 */
#ifndef LIN_KERNELS_CUDA_SEGMENTS_H
#define LIN_KERNELS_CUDA_SEGMENTS_H

#include "kernels/cuda/cuda.h"

/* The utterance of row < offsets[B], the same in all lanes; a whole warp must take part. */
static __device__ __forceinline__ int lin_utterance_of(const int *offsets, int B, int row)
{
    const int lane = (int)(threadIdx.x & 31);
    int low = 0, high = B - 1; // low .. high contains the first utterance that ends after the row
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

/* utterances[i] = the utterance of row0 + i, i < n <= 32. By one whole warp; others may read the table after a barrier. */
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
