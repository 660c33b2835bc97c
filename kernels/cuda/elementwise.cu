// Operations that treat every element alike, four elements per thread: one draw of 64 random bits gives the dropout of four.
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

typedef struct span {
    size_t count;
    int wide; // all pointers are aligned to 16 bytes
} span;

static __device__ __forceinline__ float4 load(const float *x, size_t group, span s)
{
    const size_t i = 4 * group;
    if (s.wide && i + 4 <= s.count) return *reinterpret_cast<const float4 *>(x + i);
    float4 v = make_float4(0, 0, 0, 0);
    if (i < s.count) v.x = x[i];
    if (i + 1 < s.count) v.y = x[i + 1];
    if (i + 2 < s.count) v.z = x[i + 2];
    if (i + 3 < s.count) v.w = x[i + 3];
    return v;
}

static __device__ __forceinline__ void store(float *y, float4 v, size_t group, span s)
{
    const size_t i = 4 * group;
    if (s.wide && i + 4 <= s.count) {
        *reinterpret_cast<float4 *>(y + i) = v;
        return;
    }
    if (i < s.count) y[i] = v.x;
    if (i + 1 < s.count) y[i + 1] = v.y;
    if (i + 2 < s.count) y[i + 2] = v.z;
    if (i + 3 < s.count) y[i + 3] = v.w;
}

// y = x + dropout(r), or y = dropout(r) where x is NULL. y may be x or r, so nothing here is __restrict__.
static __global__ void __launch_bounds__(THREADS) drop(float *y, const float *x, const float *r, span s, lin_cuda_mask mask)
{
    const size_t group = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (4 * group >= s.count) return;
    float4 v = load(r, group, s);
    if (mask.key) v = lin_cuda_drop4(v, lin_cuda_bits4(lin_cuda_draw_of(mask), group), mask);
    if (x) {
        const float4 a = load(x, group, s);
        v = make_float4(a.x + v.x, a.y + v.y, a.z + v.z, a.w + v.w);
    }
    store(y, v, group, s);
}

static __global__ void __launch_bounds__(THREADS) relu_gradient(float *dx, const float *dy, const float *y, span s, float scale)
{
    const size_t group = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (4 * group >= s.count) return;
    const float4 up = load(dy, group, s), out = load(y, group, s);
    store(dx,
          make_float4(out.x > 0 ? up.x * scale : 0, out.y > 0 ? up.y * scale : 0, out.z > 0 ? up.z * scale : 0,
                      out.w > 0 ? up.w * scale : 0),
          group, s);
}

static unsigned blocks_of(size_t count) { return lin_cuda_blocks((count + 3) / 4, THREADS); }

void lin_cuda_dropout(lin_exec *exec, float *y, const float *x, size_t count, const lin_dropout *dropout)
{
    const lin_cuda_mask mask = lin_cuda_mask_of(dropout);
    const span s = {count, lin_cuda_aligned(x, y)};
    if (count == 0 || (!mask.key && x == y)) return;
    LIN_LAUNCH(exec, drop, blocks_of(count), THREADS, 0, y, (const float *)NULL, x, s, mask);
}

void lin_cuda_add_dropout(lin_exec *exec, float *y, const float *x, const float *r, size_t count, const lin_dropout *dropout)
{
    const span s = {count, lin_cuda_aligned(x, y, r)};
    if (count == 0) return;
    LIN_LAUNCH(exec, drop, blocks_of(count), THREADS, 0, y, x, r, s, lin_cuda_mask_of(dropout));
}

void lin_cuda_relu_backward(lin_exec *exec, float *dx, const float *dy, const float *y, size_t count, double scale)
{
    const span s = {count, lin_cuda_aligned(dx, dy, y)};
    if (count == 0) return;
    LIN_LAUNCH(exec, relu_gradient, blocks_of(count), THREADS, 0, dx, dy, y, s, (float)scale);
}
