// Linear layers: cublasLt, and plain kernels for what it does not support.
//
// Row-major matrices are column-major ones with rows and columns exchanged, so y [rows, n] = x [rows, k] wᵀ is written as
//   D [n, rows] = wᵀ x     A = w, column-major [k, n], transposed    B = x, column-major [k, rows]
// and dw [n, k] += dyᵀ x as
//   D [k, n] += x dyᵀ      A = x, column-major [k, rows]             B = dy, column-major [n, rows], transposed.
//
// bf16: packed weights are bf16 in the block of floats, rows padded with zeros to a multiple of 8 columns (16 bytes); activations
// are converted into scratch with the same padding, so that the products are aligned for any k. The gradients of weights are then
// products of tf32: converting both operands would move twice the bytes of the product itself. Where both are in memory as bf16
// (feedforward.cu, attention_block.cu), they are products of bf16.
#include "kernels/cuda/linear.h"
#include "kernels/cuda/sums.h"

enum {
    TILE = 64,        // of the plain product, rows and columns
    STEP = 16,        // of its inner dimension
    PACK_TILE = 32,   // of packing
    PACK_DOWN = 8,    // rows of its threads
    PACK_ITEMS = 100, // per launch: kernel parameters are limited to 4 KiB
    CONVERT_THREADS = 256,
    SLICE_TILE = 128, // of the products of slices, rows and columns
    TILES = 132,      // of all slices: the multiprocessors of an H100
    SLICES_THREADS = 256,
};

static __device__ __forceinline__ float value_of(float x) { return x; }
static __device__ __forceinline__ float value_of(bf16 x) { return from_bf16(x); }

size_t lin_cuda_weight_size(int n, int k)
{
    // As many floats as either form needs: bf16 rows of few columns are longer than fp32 ones.
    const size_t narrow = (size_t)lin_cuda_padded(k) / 2;
    return (size_t)n * ((size_t)k > narrow ? (size_t)k : narrow);
}

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

typedef struct pack_item {
    size_t from, to;
    int n, k, transposed, first_tile;
} pack_item;

typedef struct pack_items {
    int count;
    pack_item items[PACK_ITEMS];
} pack_items;

// One block per tile of one of the matrices. The packed form of w is w, that of its transpose is its transpose; both are written
// along their rows, from shared memory.
template <typename T>
static __global__ void __launch_bounds__(PACK_TILE *PACK_DOWN)
    pack(float *packed, const float *__restrict__ values, const __grid_constant__ pack_items list)
{
    LIN_SHARED(float, tile); // [PACK_TILE, PACK_TILE + 1]
    int at = 0;              // the last item whose first tile is not after this one
    for (int left = list.count; left > 1;) {
        const int half = (left + 1) / 2;
        if ((int)blockIdx.x >= list.items[at + half].first_tile) at += half, left -= half;
        else left = half;
    }
    const int n = list.items[at].n, k = list.items[at].k, transposed = list.items[at].transposed;
    const int index = (int)blockIdx.x - list.items[at].first_tile;
    const int rows = transposed ? k : n, columns = transposed ? n : k; // of the packed matrix
    const int width = sizeof(T) == 2 ? (columns + 7) / 8 * 8 : columns;
    const int across = (width + PACK_TILE - 1) / PACK_TILE;
    const int row0 = index / across * PACK_TILE, column0 = index % across * PACK_TILE;
    const float *w = values + list.items[at].from;
    T *to = reinterpret_cast<T *>(packed + list.items[at].to);
    const int tx = (int)threadIdx.x;
    for (int ty = (int)threadIdx.y; ty < PACK_TILE; ty += PACK_DOWN) {
        const int i = (transposed ? column0 : row0) + ty, j = (transposed ? row0 : column0) + tx; // of w
        tile[ty * (PACK_TILE + 1) + tx] = i < n && j < k ? w[(size_t)i * (size_t)k + (size_t)j] : 0;
    }
    __syncthreads();
    for (int ty = (int)threadIdx.y; ty < PACK_TILE; ty += PACK_DOWN) {
        const int r = row0 + ty, c = column0 + tx;
        if (r >= rows || c >= width) continue;
        const float v = transposed ? tile[tx * (PACK_TILE + 1) + ty] : tile[ty * (PACK_TILE + 1) + tx];
        if constexpr (sizeof(T) == 2) to[(size_t)r * (size_t)width + (size_t)c] = to_bf16(v);
        else to[(size_t)r * (size_t)width + (size_t)c] = v;
    }
}

void lin_cuda_weights_pack(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items)
{
    const int narrow = exec->precision == LIN_PRECISION_BF16;
    for (int first = 0; first < n_items; first += PACK_ITEMS) {
        pack_items list;
        int tiles = 0;
        list.count = n_items - first < PACK_ITEMS ? n_items - first : PACK_ITEMS;
        for (int i = 0; i < list.count; i++) {
            const lin_packing *p = &items[first + i];
            const int rows = p->transposed ? p->k : p->n, columns = p->transposed ? p->n : p->k;
            const int width = narrow ? lin_cuda_padded(columns) : columns;
            list.items[i] = {p->from, p->to, p->n, p->k, p->transposed, tiles};
            tiles += (rows + PACK_TILE - 1) / PACK_TILE * ((width + PACK_TILE - 1) / PACK_TILE);
        }
        if (tiles == 0) continue;
        const dim3 block(PACK_TILE, PACK_DOWN);
        const size_t shared = PACK_TILE * (PACK_TILE + 1) * sizeof(float);
        if (narrow) LIN_LAUNCH(exec, (pack<bf16>), tiles, block, shared, packed, values, list);
        else LIN_LAUNCH(exec, (pack<float>), tiles, block, shared, packed, values, list);
    }
}

/* ---- activations in bf16 --------------------------------------------------------------------------------------------------- */

// to [rows, lin_cuda_padded(k)] from x [rows, k]: eight elements per thread.
static __global__ void __launch_bounds__(CONVERT_THREADS)
    convert(bf16 *__restrict__ to, const float *__restrict__ x, size_t groups, int across, int k, int wide)
{
    const size_t i = (size_t)blockIdx.x * CONVERT_THREADS + threadIdx.x;
    if (i >= groups) return;
    float v[8];
    if (wide) {
        load8(v, x + 8 * i);
    } else {
        const size_t row = i / (size_t)across;
        const int column = (int)(i - row * (size_t)across) * 8;
        const float *from = x + row * (size_t)k;
        for (int j = 0; j < 8; j++) v[j] = column + j < k ? from[column + j] : 0;
    }
    store8(to + 8 * i, v);
}

static size_t converted_bytes(int rows, int k)
{
    return ((size_t)rows * (size_t)lin_cuda_padded(k) * sizeof(bf16) + 255) / 256 * 256;
}

void lin_cuda_narrow(lin_exec *exec, void *to, const float *x, int rows, int k)
{
    const int across = lin_cuda_padded(k) / 8;
    const size_t groups = (size_t)rows * (size_t)across;
    LIN_LAUNCH(exec, convert, lin_cuda_blocks(groups, CONVERT_THREADS), CONVERT_THREADS, 0, (bf16 *)to, x, groups, across, k,
               k % 8 == 0 && lin_cuda_aligned(x));
}

/* ---- plain products -------------------------------------------------------------------------------------------------------- */

// out [rows, columns] = act(sum_t a(i, t) b(j, t) + bias), or += the sum. a(i, t) = a[i ai + t at]; either ai or at is 1, and the
// tiles are read along that direction; b likewise. Correct for every size and alignment, but slow: used only where cublasLt is
// not.
typedef struct plain_shape {
    int rows, columns, inner;
    size_t ai, at, bj, bt;
    int round; // round operands to bf16 first
    int add, relu;
} plain_shape;

template <typename T>
static __device__ __forceinline__ void load_tile(float *to, const T *from, int i0, int t0, int n, int inner, size_t si, size_t st,
                                                 int round)
{
    for (int e = (int)threadIdx.x; e < TILE * STEP; e += 256) {
        const int i = st == 1 ? e / STEP : e % TILE, t = st == 1 ? e % STEP : e / TILE;
        float v = 0;
        if (i0 + i < n && t0 + t < inner) v = value_of(from[(size_t)(i0 + i) * si + (size_t)(t0 + t) * st]);
        to[t * (TILE + 1) + i] = round ? from_bf16(to_bf16(v)) : v;
    }
}

static __device__ __forceinline__ void put(float *to, float v) { *to = v; }
static __device__ __forceinline__ void put(bf16 *to, float v) { *to = to_bf16(v); }

template <typename D, typename X, typename W>
static __global__ void __launch_bounds__(256)
    plain(D *out, const X *__restrict__ a, const W *__restrict__ b, const float *bias, plain_shape s)
{
    LIN_SHARED(float, shared);
    float *const as = shared, *const bs = shared + STEP * (TILE + 1);
    const int row0 = (int)blockIdx.x * TILE, column0 = (int)blockIdx.y * TILE;
    const int ti = (int)threadIdx.x / 16 * 4, tj = (int)threadIdx.x % 16;
    float sum[4][4] = {};
    for (int t0 = 0; t0 < s.inner; t0 += STEP) {
        load_tile(as, a, row0, t0, s.rows, s.inner, s.ai, s.at, s.round);
        load_tile(bs, b, column0, t0, s.columns, s.inner, s.bj, s.bt, s.round);
        __syncthreads();
        for (int t = 0; t < STEP; t++) {
            float va[4], vb[4];
#pragma unroll
            for (int q = 0; q < 4; q++) va[q] = as[t * (TILE + 1) + ti + q], vb[q] = bs[t * (TILE + 1) + tj + 16 * q];
#pragma unroll
            for (int p = 0; p < 4; p++)
#pragma unroll
                for (int q = 0; q < 4; q++) sum[p][q] = fmaf(va[p], vb[q], sum[p][q]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const int i = row0 + ti + p, j = column0 + tj + 16 * q;
            if (i >= s.rows || j >= s.columns) continue;
            D *to = out + (size_t)i * (size_t)s.columns + (size_t)j;
            float v = sum[p][q] + (bias ? bias[j] : 0);
            if (s.add) v += value_of(*to);
            put(to, s.relu && v < 0 ? 0 : v);
        }
}

template <typename D, typename X, typename W>
static void plain_product(lin_exec *exec, D *out, const X *a, const W *b, const float *bias, const plain_shape *shape)
{
    const plain_shape s = *shape;
    const dim3 grid(lin_cuda_blocks((size_t)s.rows, TILE), lin_cuda_blocks((size_t)s.columns, TILE));
    LIN_LAUNCH(exec, (plain<D, X, W>), grid, 256, 2 * STEP * (TILE + 1) * sizeof(float), out, a, b, bias, s);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

void lin_cuda_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows, int n,
                             int k, lin_activation act)
{
    if (rows == 0 || n == 0 || !lin_cuda_ready(exec)) return;
    const int narrow = exec->precision == LIN_PRECISION_BF16;
    const lin_cuda_product p = {1, narrow, 0, rows, n, narrow ? lin_cuda_padded(k) : k, act, 0};
    if (n > 1 && k > 1) {
        const void *operand = x;
        if (narrow) {
            void *scratch = lin_cuda_scratch(exec, converted_bytes(rows, k));
            if (!scratch) return;
            lin_cuda_narrow(exec, scratch, x, rows, k);
            operand = scratch;
        }
        if (lin_cuda_multiply(exec, &p, y, packed, operand, bias) || exec->error != cudaSuccess) return;
    }
    plain_shape s = {};
    s.rows = rows, s.columns = n, s.inner = k;
    s.ai = (size_t)k, s.at = 1, s.bj = (size_t)p.k, s.bt = 1;
    s.round = narrow, s.relu = act == LIN_RELU;
    if (narrow) plain_product(exec, y, x, reinterpret_cast<const bf16 *>(packed), bias, &s);
    else plain_product(exec, y, x, packed, bias, &s);
}

void lin_cuda_narrow_forward(lin_exec *exec, void *y, const void *x, const float *packed, const float *bias, int rows, int n,
                             int k, int narrow_y)
{
    if (rows == 0 || !lin_cuda_ready(exec)) return;
    const lin_cuda_product p = {1, 1, narrow_y, rows, n, k, LIN_LINEAR, 0};
    if (lin_cuda_multiply(exec, &p, y, packed, x, bias) || exec->error != cudaSuccess) return;
    plain_shape s = {};
    s.rows = rows, s.columns = n, s.inner = k;
    s.ai = (size_t)k, s.at = 1, s.bj = (size_t)k, s.bt = 1;
    const bf16 *from = (const bf16 *)x, *w = reinterpret_cast<const bf16 *>(packed);
    if (narrow_y) plain_product(exec, (bf16 *)y, from, w, bias, &s);
    else plain_product(exec, (float *)y, from, w, bias, &s);
}

/* ---- the gradients of weights and biases ----------------------------------------------------------------------------------- */

// dw has few elements, each a sum over all rows: its tiles are too few for a GPU. So the rows are divided into slices, as many as
// together have about TILES tiles, which are one product of cublasLt; a kernel adds the slices up in their order. The number of
// slices is the same on all GPUs.

// dw [n, k] += the slices' products in their order, then the products of the rows that are left.
template <typename T>
static __global__ void __launch_bounds__(SLICES_THREADS)
    add_slices(float *__restrict__ dw, const float *__restrict__ partial, int slices, const T *__restrict__ dy,
               const T *__restrict__ x, int rest, int n, int k)
{
    const unsigned count = (unsigned)(n * k), i = blockIdx.x * SLICES_THREADS + threadIdx.x;
    if (i >= count) return;
    const float *from = partial + i;
    float sum = 0;
#pragma unroll 8
    for (int s = 0; s < slices; s++) sum += from[(size_t)s * count];
    const T *a = dy + i / (unsigned)k, *b = x + i % (unsigned)k;
#pragma unroll 4
    for (int t = 0; t < rest; t++) sum = fmaf(value_of(a[(size_t)t * (size_t)n]), value_of(b[(size_t)t * (size_t)k]), sum);
    dw[i] += sum;
}

// 0 if the product is not one for slices.
template <typename T>
static int multiply_slices(lin_exec *exec, float *dw, const T *dy, const T *x, const lin_cuda_product *whole)
{
    const int rows = whole->rows, n = whole->n, k = whole->k;
    const int tiles = (n + SLICE_TILE - 1) / SLICE_TILE * ((k + SLICE_TILE - 1) / SLICE_TILE);
    const int fewest = lin_cuda_slice_rows(exec), most = fewest ? rows / fewest : 0;
    lin_cuda_product p = *whole;
    p.slices = TILES / tiles < most ? TILES / tiles : most;
    if (p.slices < 2 || n % 4 != 0 || k % 4 != 0) return 0;
    const size_t count = (size_t)n * (size_t)k;
    float *partial = (float *)lin_cuda_scratch(exec, (size_t)p.slices * count * sizeof *partial);
    if (!partial) return 1;
    p.rows = rows / p.slices;
    if (!lin_cuda_multiply(exec, &p, partial, x, dy, NULL)) return 0;
    const size_t done = (size_t)p.rows * (size_t)p.slices;
    LIN_LAUNCH(exec, add_slices<T>, lin_cuda_blocks(count, SLICES_THREADS), SLICES_THREADS, 0, dw, partial, p.slices,
               dy + done * (size_t)n, x + done * (size_t)k, rows - (int)done, n, k);
    return 1;
}

void lin_cuda_linear_backward_weight(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n,
                                     int k)
{
    if (rows == 0 || n == 0 || !lin_cuda_ready(exec)) return;
    if (db) lin_cuda_sum_columns(exec, db, dy, rows, n);
    const lin_cuda_product p = {0, 0, 0, rows, n, k, LIN_LINEAR, 0};
    if (multiply_slices(exec, dw, dy, x, &p) || exec->error != cudaSuccess) return;
    if (n > 1 && k > 1 && (lin_cuda_multiply(exec, &p, dw, x, dy, NULL) || exec->error != cudaSuccess)) return;
    plain_shape s = {};
    s.rows = n, s.columns = k, s.inner = rows;
    s.ai = 1, s.at = (size_t)n, s.bj = 1, s.bt = (size_t)k;
    s.add = 1;
    plain_product(exec, dw, dy, x, NULL, &s);
}

// n is a multiple of 8.
static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    sum_narrow(float *__restrict__ partial, const bf16 *__restrict__ x, int rows, int n, int rows_each)
{
    lin_sum_slice<8, 1>(partial, rows, n, rows_each,
                        [=](float (&v)[8], int row, int column) { load8(v, x + (size_t)row * (size_t)n + (size_t)column); });
}

void lin_cuda_narrow_backward_weight(lin_exec *exec, float *dw, float *db, const void *dy, const void *x, int rows, int n, int k)
{
    if (rows == 0 || !lin_cuda_ready(exec)) return;
    if (db) {
        const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, 8, 1);
        if (!s.partial) return;
        LIN_LAUNCH(exec, sum_narrow, s.grid, s.block, s.shared_bytes, s.partial, (const bf16 *)dy, rows, n, s.rows_each);
        lin_cuda_fold(exec, s.partial, s.slices, {db, n});
    }
    const lin_cuda_product p = {0, 1, 0, rows, n, k, LIN_LINEAR, 0};
    if (multiply_slices(exec, dw, (const bf16 *)dy, (const bf16 *)x, &p) || exec->error != cudaSuccess) return;
    if (lin_cuda_multiply(exec, &p, dw, x, dy, NULL) || exec->error != cudaSuccess) return;
    plain_shape s = {};
    s.rows = n, s.columns = k, s.inner = rows;
    s.ai = 1, s.at = (size_t)n, s.bj = 1, s.bt = (size_t)k;
    s.add = 1;
    plain_product(exec, dw, (const bf16 *)dy, (const bf16 *)x, NULL, &s);
}
