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
    fold(const float *__restrict__ partial, int parts, int width, lin_cuda_total a, lin_cuda_total b, lin_cuda_total c)
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
        float *to = owned < a.n ? a.to + owned : owned < a.n + b.n ? b.to + (owned - a.n) : c.to + (owned - a.n - b.n);
        *to += sum;
    }
}

void lin_cuda_fold(lin_exec *exec, const float *partial, int parts, lin_cuda_total a, lin_cuda_total b, lin_cuda_total c)
{
    const int width = a.n + b.n + c.n;
    if (parts == 0 || width == 0) return;
    LIN_LAUNCH(exec, fold, lin_cuda_blocks((size_t)width, FOLD), dim3(FOLD, FOLD), FOLD * (FOLD + 1) * sizeof(float), partial,
               parts, width, a, b, c);
}

static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    sum_columns(float *__restrict__ partial, const float *__restrict__ x, int rows, int n, int rows_each)
{
    lin_sum_slice<1, 1>(partial, rows, n, rows_each,
                        [=](float (&v)[1], int row, int column) { v[0] = x[(size_t)row * (size_t)n + (size_t)column]; });
}

void lin_cuda_sum_columns(lin_exec *exec, float *to, const float *x, int rows, int n)
{
    const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, 1, 1);
    if (!s.partial) return;
    LIN_LAUNCH(exec, sum_columns, s.grid, s.block, s.shared_bytes, s.partial, x, rows, n, s.rows_each);
    lin_cuda_fold(exec, s.partial, s.slices, {to, n});
}
