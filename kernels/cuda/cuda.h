/*
 * cuda.h - shared by the files of the CUDA backend: the execution context, launching, and every operation by name.
 *
 * Internal to kernels/cuda/; other code calls through the table that lin_backend_open gives. The same sources are compiled twice:
 * by nvcc into liblinnet_cuda.so, and as C++ against tests/emulation/, whose <cuda_runtime.h> and <cublasLt.h> run them on the
 * host. So a kernel is launched with LIN_LAUNCH, not <<<>>>, all shared memory is dynamic and declared with LIN_SHARED, and
 * instructions without a C++ name are in ptx.h. Nothing else may depend on whether the code runs on a GPU or in the emulation.
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

/* At least `bytes` of scratch, 256-byte aligned, not zeroed, valid until the calling operation returns. NULL if there is no
 * memory: the error is recorded in exec, and the operation must return. */
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

/* Sum and maximum over a warp, the same in all lanes; all 32 must take part. */
static __device__ __forceinline__ float lin_warp_sum(float v)
{
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

static __device__ __forceinline__ float lin_warp_max(float v)
{
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
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

/* Dropout as the operations that have it draw it: the mask's key, and the number that element 0 has in the whole matrix. */
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

#endif
