/*
 * cuda.h - shared by the files of the CUDA backend: the execution context, launching, and every operation by name.
 *
 * Internal to kernels/cuda/; other code calls through the table that lin_backend_open gives. The same sources are compiled
 * twice: by nvcc into liblinnet_cuda.so, and as C++ against tests/emulation/, whose <cuda_runtime.h> and <cublasLt.h> run them
 * on the host. So a kernel is launched with LIN_LAUNCH, not <<<>>>, all shared memory is dynamic and declared with LIN_SHARED,
 * and instructions without a C++ name are at the end of this file. Nothing else may depend on whether the code runs on a GPU or
 * in the emulation.
 *
 *   __global__ void scale(float *y, const float *x, size_t n, float a) { ... }
 *   void lin_cuda_scale(lin_exec *exec, ...)
 *   {
 *       if (n == 0) return;
 *       LIN_LAUNCH(exec, scale, blocks, 256, 0, y, x, n, a); // a template in brackets: LIN_LAUNCH(exec, (scale<4>), ...
 *   }
 *
 * Sums run in a fixed order, without atomics on floats. Pointers may be aligned to only 4 bytes: kernels with wider accesses
 * check the alignment at the launch and have a narrow form.
 */
#ifndef LIN_KERNELS_CUDA_CUDA_H
#define LIN_KERNELS_CUDA_CUDA_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "base/hash.h"
#include "kernels/ops.h"
}

/* ---- execution context ----------------------------------------------------------------------------------------------------- */

struct lin_cuda_plans; /* for the matrix products: linear.cu */

enum { LIN_CUDA_ALLOWED = 96 };

struct lin_exec {
    int device, multiprocessors;
    size_t shared_most; // bytes of shared memory that a block may request
    const void *allowed[LIN_CUDA_ALLOWED]; // the kernels that may have as much
    int n_allowed;
    lin_precision precision;
    cudaStream_t stream, copies; // copies: of upload_beside
    cudaEvent_t fences[LIN_FENCES], copied;
    int capturing;
    int reads_host; // the GPU reads pageable host memory directly, at any later time
    struct lin_cuda_plans *plans;
    void **scratch; /* blocks, the last the largest; older ones are kept, because graphs may hold their addresses */
    int n_scratch;
    size_t scratch_bytes; /* of the last */
    cudaError_t error;    /* the first since finish; while it is set, operations do nothing */
    char what[96];        /* the operation in progress at that time */
};

/* At least `bytes` of scratch, 256-byte aligned, not zeroed, valid until the calling operation returns. NULL if memory is short:
 * the error is recorded in exec, and the operation must return. */
void *lin_cuda_scratch(lin_exec *exec, size_t bytes);

/* Utterances beyond so many bytes of scratch are processed in several launches: LINNET_CUDA_SCRATCH, or 1 GiB. */
size_t lin_cuda_most_scratch(void);

/* Records the first error. Returns 1 if error is cudaSuccess and none was recorded before. */
int lin_cuda_check(lin_exec *exec, cudaError_t error, const char *what);

/* 1 if nothing failed so far; makes the exec's GPU the current device of this host thread. Launching calls it; any other call of
 * CUDA for an exec must call it first. */
int lin_cuda_ready(lin_exec *exec);

/* The most blocks of a kernel that can run at the same time; 0 if the GPU has no cooperative launches. */
int lin_cuda_resident(lin_exec *exec, const void *kernel, int threads, size_t shared_bytes);

/* Allows a kernel `bytes` of dynamic shared memory, which may be more than 48 KiB: once per exec and kernel, and as much as a
 * block may have, so that no later launch of any exec has to change it; and asks for as many of its blocks on a multiprocessor as
 * shared memory can hold. */
int lin_cuda_allow_shared(lin_exec *exec, const void *kernel, size_t bytes, const char *what);
#define LIN_ALLOW_SHARED(exec, kernel, bytes)                                                                                    \
    lin_cuda_allow_shared(exec, reinterpret_cast<const void *>(kernel), (bytes), "shared memory of " #kernel)

/* grid and block are dim3 or numbers. LIN_LAUNCH_TOGETHER: a cooperative launch, whose blocks run at the same time and may wait
 * for each other (lin_signal, lin_await); at most lin_cuda_resident blocks, and one argument, a structure. */
#ifdef __CUDACC__
#define LIN_LAUNCH(exec, kernel, grid, block, shared_bytes, ...)                                                                 \
    do {                                                                                                                         \
        if (!lin_cuda_ready(exec)) break;                                                                                        \
        kernel<<<(grid), (block), (shared_bytes), (exec)->stream>>>(__VA_ARGS__);                                                \
        lin_cuda_check(exec, cudaGetLastError(), "launching " #kernel);                                                          \
    } while (0)
#define LIN_LAUNCH_TOGETHER(exec, kernel, grid, block, shared_bytes, job)                                                        \
    do {                                                                                                                         \
        if (!lin_cuda_ready(exec)) break;                                                                                        \
        void *arguments[] = {&(job)};                                                                                            \
        lin_cuda_check(exec,                                                                                                     \
                       cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(kernel), (grid), (block), arguments,           \
                                                   (shared_bytes), (exec)->stream),                                              \
                       "launching " #kernel);                                                                                    \
    } while (0)
#define LIN_SHARED(T, name)                                                                                                      \
    extern __shared__ __align__(16) unsigned char lin_shared_bytes[];                                                            \
    T *name = reinterpret_cast<T *>(lin_shared_bytes)
#else
#define LIN_LAUNCH(exec, kernel, grid, block, shared_bytes, ...)                                                                 \
    do {                                                                                                                         \
        if (!lin_cuda_ready(exec)) break;                                                                                        \
        emulated_launch((exec)->stream, #kernel, (grid), (block), (shared_bytes), emulated_bind(kernel)(__VA_ARGS__));           \
        lin_cuda_check(exec, cudaGetLastError(), "launching " #kernel);                                                          \
    } while (0)
#define LIN_LAUNCH_TOGETHER(exec, kernel, grid, block, shared_bytes, job)                                                        \
    do {                                                                                                                         \
        if (!lin_cuda_ready(exec)) break;                                                                                        \
        emulated_launch((exec)->stream, #kernel, (grid), (block), (shared_bytes), emulated_bind(kernel)(job), true);             \
        lin_cuda_check(exec, cudaGetLastError(), "launching " #kernel);                                                          \
    } while (0)
#define LIN_SHARED(T, name) T *name = reinterpret_cast<T *>(emulated_shared())
#endif

/* ---- small helpers --------------------------------------------------------------------------------------------------------- */

static inline int lin_cuda_aligned(const void *a, const void *b = NULL, const void *c = NULL, const void *d = NULL,
                                   const void *e = NULL)
{
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | (uintptr_t)e) & 15) == 0;
}

static inline unsigned lin_cuda_blocks(size_t count, size_t per_block) { return (unsigned)((count + per_block - 1) / per_block); }

/* Sum over the LANES neighbours, and maximum over a warp, the same in all lanes; all 32 must take part. */
template <int LANES = 32, typename T> static __device__ __forceinline__ T lin_warp_sum(T v)
{
#pragma unroll
    for (int o = LANES / 2; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

static __device__ __forceinline__ float lin_warp_max(float v)
{
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

/* Sum over a block of so many warps, the same in all threads, in a fixed order. shared: one for each warp. */
template <typename T> static __device__ __forceinline__ T lin_block_sum(T v, T *shared, unsigned warps)
{
    T sum = 0;
    v = lin_warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    for (unsigned w = 0; w < warps; w++) sum += shared[w];
    return sum;
}

/* Dropout: bits are LIN_RANDOM of hash.h, see lin_dropout. threshold = round(p 65536), scale = 1/(1-p). */
typedef struct lin_cuda_mask {
    const uint64_t *key; /* NULL: nothing is dropped */
    uint64_t site, width;
    unsigned threshold;
    float scale;
} lin_cuda_mask;

static inline lin_cuda_mask lin_cuda_mask_of(const lin_dropout *d)
{
    lin_cuda_mask m = {NULL, 0, 0, 0, 1.0f};
    if (d && d->p > 0) {
        m.key = d->key;
        m.site = d->site;
        m.width = d->width;
        m.threshold = (unsigned)(d->p * 65536 + 0.5);
        m.scale = (float)(1 / (1 - d->p));
    }
    return m;
}

/* What operations with dropout need to draw it: the mask's key, and the index of element 0 in the whole matrix. */
typedef struct lin_cuda_draw {
    uint64_t key, first;
} lin_cuda_draw;

static __device__ __forceinline__ lin_cuda_draw lin_cuda_draw_of(lin_cuda_mask m)
{
    lin_cuda_draw d = {0, 0};
    if (m.key) d.key = lin_random_key(*m.key, m.site);
    if (m.key && m.width) d.first = m.key[1] * m.width;
    return d;
}

/* The random bits of elements 4 group .. 4 group + 3: one draw, or parts of two if the part does not begin at a multiple of 4. */
static __device__ __forceinline__ uint64_t lin_cuda_bits4(lin_cuda_draw d, size_t group)
{
    const uint64_t at = d.first / 4 + group, low = lin_random_bits(d.key, at);
    const unsigned shift = 16 * (unsigned)(d.first % 4);
    return shift ? low >> shift | lin_random_bits(d.key, at + 1) << (64 - shift) : low;
}

/* Dropout of four elements with their bits. A choice, not a product with 0: dropped values may be infinite. */
static __device__ __forceinline__ float4 lin_cuda_drop4(float4 v, uint64_t bits, lin_cuda_mask m)
{
    const unsigned low = (unsigned)bits, high = (unsigned)(bits >> 32);
    return make_float4((low & 0xFFFFu) >= m.threshold ? v.x * m.scale : 0, low >> 16 >= m.threshold ? v.y * m.scale : 0,
                       (high & 0xFFFFu) >= m.threshold ? v.z * m.scale : 0, high >> 16 >= m.threshold ? v.w * m.scale : 0);
}

/* ---- the operations, described in kernels/ops.h ---------------------------------------------------------------------------- */

/* backend.cu: context, memory, ordering, graphs; and the table. Exported from liblinnet_cuda.so. */
extern "C" __attribute__((visibility("default"))) lin_status lin_cuda_open(int device, lin_precision precision,
                                                                           const lin_ops **ops, lin_error *err);
extern "C" __attribute__((visibility("default"))) int lin_cuda_device(int i, lin_device *device);
extern "C" __attribute__((visibility("default"))) int lin_cuda_interface(void); /* LIN_CUDA_INTERFACE of kernels/ops.h */

#define DECLARE(name) __typeof__(*((lin_ops *)0)->name) lin_cuda_##name;
LIN_ALL_OPERATIONS(DECLARE)
#undef DECLARE

/* linear.cu */
lin_status lin_cuda_plans_create(lin_exec *exec, lin_error *err);
void lin_cuda_plans_destroy(lin_exec *exec);

/* ---- instructions without a C++ name --------------------------------------------------------------------------------------- */

/*
 * Instructions without a C++ name: tensor-core products, asynchronous copies, signals between blocks. On the host, where
 * the kernels are tested, the emulation replaces them (tests/emulation).
 *
 * m16n8k8, tf32 operands, fp32 sums (PTX ISA, "Matrix Fragments for mma.m16n8k8").
 * With g = lane / 4 and t = lane % 4 a lane holds
 *   a[0] A[g][t]       a[1] A[g+8][t]     a[2] A[g][t+4]     a[3] A[g+8][t+4]      A [16, 8]
 *   b[0] B[t][g]       b[1] B[t+4][g]                                              B [8, 8]
 *   c[0] C[g][2t]      c[1] C[g][2t+1]    c[2] C[g+8][2t]    c[3] C[g+8][2t+1]     C [16, 8]
 */
#ifdef __CUDACC__

/* Rounded to the nearest tf32 (10 bits of mantissa), as a float. */
__device__ __forceinline__ float lin_tf32(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

/* 2^x in one instruction, as exact as the fast exponential; results below 2^-126 are 0. */
__device__ __forceinline__ float lin_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* C += A B over a warp. Operands must have been rounded with lin_tf32. All 32 lanes take part. */
__device__ __forceinline__ void lin_mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
                   "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

/* Hides the value of x from the compiler, so that what depends on it is computed here and not hoisted out of a loop. */
__device__ __forceinline__ void lin_opaque(float &x) { asm volatile("" : "+f"(x)); }

/* Global to shared memory without passing through registers: 16 or 4 bytes, both addresses aligned to as many. The calling thread
 * may read the bytes after lin_copy_wait, other threads after a barrier that follows it. */
__device__ __forceinline__ void lin_copy_async16(void *shared, const void *global)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}

__device__ __forceinline__ void lin_copy_async4(void *shared, const void *global)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(global) : "memory");
}

/* lin_copy_commit ends a group of copies; lin_copy_wait waits until at most N of the latest groups are incomplete. */
__device__ __forceinline__ void lin_copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N> __device__ __forceinline__ void lin_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Between the blocks of a cooperative launch (LIN_LAUNCH_TOGETHER). lin_signal adds 1 to *at, after everything that the calling
 * thread has written, and that other threads of its block have written before a barrier that precedes the call, can be seen
 * by all blocks. lin_await returns when *at is at least `value`: what was written before the signals can then be read, also by
 * other threads after a barrier, with loads that bypass the first-level cache (__ldcg). */
__device__ __forceinline__ void lin_signal(unsigned *at)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
}

__device__ __forceinline__ void lin_await(const unsigned *at, unsigned value)
{
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(at) : "memory");
    while (seen < value);
}

/* Starts loading the line of an address into the second-level cache. */
__device__ __forceinline__ void lin_prefetch(const void *global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

#else

static inline float lin_tf32(float x) { return emulated_tf32(x); }
static inline float lin_exp2(float x)
{
    const float y = exp2f(x);
    return y < 0x1p-126f ? 0 : y;
}
static inline void lin_mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2]) { emulated_mma_tf32(c, a, b); }
static inline void lin_opaque(float &) {}
static inline void lin_copy_async16(void *shared, const void *global) { emulated_copy_async(shared, global, 16); }
static inline void lin_copy_async4(void *shared, const void *global) { emulated_copy_async(shared, global, 4); }
static inline void lin_copy_commit(void) { emulated_copy_commit(); }
template <int N> static inline void lin_copy_wait(void) { emulated_copy_wait(N); }
static inline void lin_signal(unsigned *at) { atomicAdd(at, 1u); }
static inline void lin_await(const unsigned *at, unsigned value, EMULATED_HERE) { emulated_await(at, value, file, line); }
static inline void lin_prefetch(const void *) {}

#endif

/* ---- products of fragments ------------------------------------------------------------------------------------------------- */

/*
 * Products of fragments in near fp32 or in tf32 precision, for kernels with their own matrix products.
 *
 * SPLIT 0: operands are rounded to tf32. SPLIT 1: x = big + small, both tf32, and three of the four
 * products: the dropped one is 2^-22 of the result.
 */
// Rounded to the nearest bf16, as a float.
static __device__ __forceinline__ float lin_bf16(float x) { return __bfloat162float(__float2bfloat16_rn(x)); }

// A number as an operand of multiply().
template <int SPLIT> static __device__ __forceinline__ float operand(float x) { return SPLIT ? x : lin_tf32(x); }

template <int SPLIT> static __device__ __forceinline__ void multiply(float (&c)[4], const float (&a)[4], const float (&b)[2])
{
    if constexpr (!SPLIT) {
        lin_mma_tf32(c, a, b);
    } else {
        float a_big[4], a_small[4], b_big[2], b_small[2];
        for (int i = 0; i < 4; i++) {
            a_big[i] = lin_tf32(a[i]);
            a_small[i] = lin_tf32(a[i] - a_big[i]);
        }
        for (int i = 0; i < 2; i++) {
            b_big[i] = lin_tf32(b[i]);
            b_small[i] = lin_tf32(b[i] - b_big[i]);
        }
        lin_mma_tf32(c, a_small, b_big);
        lin_mma_tf32(c, a_big, b_small);
        lin_mma_tf32(c, a_big, b_big);
    }
}

/* ---- the utterance of a row ------------------------------------------------------------------------------------------------ */

/*
 * Finds the utterance of a row on the device: the host knows only the number of utterances and of rows.
 *
 * lin_segments.offsets is in the GPU's memory. A kernel that is divided by rows searches for the utterance of its first row, 32
 * places at a time (three rounds for 32,768 utterances), and goes on from there, or finds the utterances of all rows of its tile
 * together.
 */
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

/* ---- sums over the rows of a matrix ---------------------------------------------------------------------------------------- */

/*
 * Sums over the rows of a matrix: the gradients of biases and of the gains of norms.
 *
 * Two stages, both in a fixed order that does not depend on the GPU: blocks of 32 x 8 threads add up a
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
enum { LIN_SUM_ACROSS = 32, LIN_SUM_DOWN = 8, LIN_SUM_THREADS = LIN_SUM_ACROSS * LIN_SUM_DOWN };

typedef struct lin_cuda_sums {
    float *partial; // scratch [slices, n_sums, n]; NULL: no memory, and the error is recorded
    int slices, rows_each;
    dim3 grid, block;
    size_t shared_bytes;
} lin_cuda_sums;

/* The first stage of n_sums sums for each of n columns, by threads that have `columns` neighbouring ones. */
lin_cuda_sums lin_cuda_sums_begin(lin_exec *exec, int rows, int n, int columns, int n_sums);

/* n neighbouring totals to which sums are added. */
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
