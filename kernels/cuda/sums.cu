// Sums over the rows of a matrix: how they are divided, and the second stage; see sums.h.
#include "kernels/cuda/sums.h"

enum {
    FOLD = 32,
    FEWEST_ROWS = 64, // of a slice
    BLOCKS = 1024,    // about what a GPU runs at once, and a constant, so that sums are the same on all GPUs
};

lin_cuda_sums lin_cuda_sums_begin(lin_exec *exec, int rows, int n, int columns, int n_sums)
{
    lin_cuda_sums s = {};
    const unsigned across = lin_cuda_blocks((size_t)n, LIN_SUM_ACROSS * (size_t)columns);
    const int most = BLOCKS / (int)across;
    s.slices = (rows + FEWEST_ROWS - 1) / FEWEST_ROWS;
    if (s.slices > most) s.slices = most ? most : 1;
    s.rows_each = (rows + s.slices - 1) / s.slices;
    s.slices = (rows + s.rows_each - 1) / s.rows_each;
    s.grid = dim3(across, (unsigned)s.slices);
    s.block = dim3(LIN_SUM_ACROSS, LIN_SUM_DOWN);
    s.shared_bytes = LIN_SUM_THREADS * (size_t)columns * (size_t)n_sums * sizeof(float);
    s.partial = (float *)lin_cuda_scratch(exec, (size_t)s.slices * (size_t)n_sums * (size_t)n * sizeof(float));
    return s;
}

// One warp for 32 columns and every 32nd part; then the warps' sums in order.
static __global__ void __launch_bounds__(FOLD *FOLD)
    fold(float *a, float *b, const float *__restrict__ partial, int parts, int n_a, int width)
{
    LIN_SHARED(float, sums); // [FOLD, FOLD + 1]
    const int column = (int)blockIdx.x * FOLD + (int)threadIdx.x;
    float sum = 0;
    if (column < width) {
        for (int i = (int)threadIdx.y; i < parts; i += FOLD) sum += partial[(size_t)i * (size_t)width + (size_t)column];
    }
    sums[threadIdx.y * (FOLD + 1) + threadIdx.x] = sum;
    __syncthreads();
    // Transposed: each warp adds up one column.
    sum = lin_warp_sum(sums[threadIdx.x * (FOLD + 1) + threadIdx.y]);
    const int owned = (int)blockIdx.x * FOLD + (int)threadIdx.y;
    if (threadIdx.x == 0 && owned < width) {
        float *to = owned < n_a ? a + owned : b + (owned - n_a);
        *to += sum;
    }
}

void lin_cuda_fold(lin_exec *exec, float *a, int n_a, float *b, int n_b, const float *partial, int parts)
{
    const int width = n_a + n_b;
    if (parts == 0 || width == 0) return;
    LIN_LAUNCH(exec, fold, lin_cuda_blocks((size_t)width, FOLD), dim3(FOLD, FOLD), FOLD * (FOLD + 1) * sizeof(float), a, b, partial,
               parts, n_a, width);
}
