/*
 * sums.h - sums over the rows of a matrix: the gradients of biases and of the gains of norms.
 *
 * Internal to kernels/cuda/. Two stages, both in a fixed order that does not depend on the GPU: blocks of 32 x 8 threads add up a
 * slice of the rows each (lin_sum_slice), and lin_cuda_fold adds up the slices. The kernels of norm.cu that hold whole rows in
 * registers, and that of conv.cu, whose threads hold a window of rows, have the terms of many sums at hand and make the first
 * stage themselves.
 *
 *   static __global__ void __launch_bounds__(LIN_SUM_THREADS)
 *   squares(float *partial, const float *x, int rows, int n, int rows_each)
 *   {
 *       lin_sum_slice<1, 1>(partial, rows, n, rows_each, [=](float (&v)[1], int row, int column) { ... v[0] = ...; });
 *   }
 *
 *   const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, 1, 1);
 *   if (!s.partial) return;
 *   LIN_LAUNCH(exec, squares, s.grid, s.block, s.shared_bytes, s.partial, x, rows, n, s.rows_each);
 *   lin_cuda_fold(exec, s.partial, s.slices, {to, n});
 */
#ifndef LIN_KERNELS_CUDA_SUMS_H
#define LIN_KERNELS_CUDA_SUMS_H

#include "kernels/cuda/cuda.h"

enum { LIN_SUM_ACROSS = 32, LIN_SUM_DOWN = 8, LIN_SUM_THREADS = LIN_SUM_ACROSS * LIN_SUM_DOWN };

typedef struct lin_cuda_sums {
    float *partial; // scratch [slices, n_sums, n]; NULL: no memory, and the error is recorded
    int slices, rows_each;
    dim3 grid, block;
    size_t shared_bytes;
} lin_cuda_sums;

/* The first stage of n_sums sums for each of n columns, by threads that have `columns` neighbouring ones. */
lin_cuda_sums lin_cuda_sums_begin(lin_exec *exec, int rows, int n, int columns, int n_sums);

/* Where n neighbouring sums are added. */
typedef struct lin_cuda_total {
    float *to;
    int n;
} lin_cuda_total;

/* The second stage: the sums over parts of partial [parts, a.n + b.n + c.n] are added to a, then b, then c. */
void lin_cuda_fold(lin_exec *exec, const float *partial, int parts, lin_cuda_total a, lin_cuda_total b = {},
                   lin_cuda_total c = {});

/* Both stages: to [n] += the column sums of x [rows, n]. */
void lin_cuda_sum_columns(lin_exec *exec, float *to, const float *x, int rows, int n);

/*
 * By all threads of a block. terms(v, row, column): v[s * COLUMNS + i] is what (row, column + i) adds to sum s; it is called once
 * for each row and each thread's first column, so it may do other things with these elements. n must be a multiple of COLUMNS.
 */
template <int COLUMNS, int SUMS, typename Terms>
static __device__ __forceinline__ void lin_sum_slice(float *__restrict__ partial, int rows, int n, int rows_each, Terms terms)
{
    constexpr int WIDTH = LIN_SUM_ACROSS * COLUMNS, EACH = SUMS * COLUMNS;
    LIN_SHARED(float, sums); // [LIN_SUM_DOWN, SUMS, WIDTH]
    const int column = (int)blockIdx.x * WIDTH + (int)threadIdx.x * COLUMNS;
    const int first = (int)blockIdx.y * rows_each, end = rows - first < rows_each ? rows : first + rows_each;
    float sum[EACH] = {};
    if (column < n) {
#pragma unroll (COLUMNS == 1 ? 8 : 1) // loads in flight
        for (int row = first + (int)threadIdx.y; row < end; row += LIN_SUM_DOWN) {
            float v[EACH];
            terms(v, row, column);
#pragma unroll
            for (int i = 0; i < EACH; i++) sum[i] += v[i];
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sums[((int)threadIdx.y * SUMS + i / COLUMNS) * WIDTH + (int)threadIdx.x * COLUMNS + i % COLUMNS] = sum[i];
    __syncthreads();
    for (int i = (int)threadIdx.y * LIN_SUM_ACROSS + (int)threadIdx.x; i < SUMS * WIDTH; i += LIN_SUM_THREADS) {
        const int to = (int)blockIdx.x * WIDTH + i % WIDTH;
        if (to >= n) continue;
        float total = 0;
        for (int y = 0; y < LIN_SUM_DOWN; y++) total += sums[y * SUMS * WIDTH + i];
        partial[((size_t)blockIdx.y * SUMS + (size_t)(i / WIDTH)) * (size_t)n + (size_t)to] = total;
    }
}

#endif
