/*
 * linear.h - what linear.cu shares with the attention block and norms: bf16 numbers in memory and products of them.
 *
 * Internal to kernels/cuda/. A bf16 matrix of k columns has rows of lin_cuda_padded(k) elements.
 */
#ifndef LIN_KERNELS_CUDA_LINEAR_H
#define LIN_KERNELS_CUDA_LINEAR_H

#include "kernels/cuda/cuda.h"

typedef uint16_t bf16;

/* Padded number of columns of a bf16 matrix of k columns. */
static inline int lin_cuda_padded(int k) { return (k + 7) / 8 * 8; }

static __device__ __forceinline__ bf16 to_bf16(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
static __device__ __forceinline__ float from_bf16(bf16 x) { return __bfloat162float(__ushort_as_bfloat16(x)); }

// Eight neighbouring elements, 16-byte aligned.
static __device__ __forceinline__ void load8(float (&v)[8], const float *x)
{
    const float4 a = reinterpret_cast<const float4 *>(x)[0], b = reinterpret_cast<const float4 *>(x)[1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

static __device__ __forceinline__ void load8(float (&v)[8], const bf16 *x)
{
    const uint4 in = *reinterpret_cast<const uint4 *>(x);
    const uint32_t pairs[4] = {in.x, in.y, in.z, in.w};
#pragma unroll
    for (int i = 0; i < 4; i++) v[2 * i] = from_bf16((bf16)pairs[i]), v[2 * i + 1] = from_bf16((bf16)(pairs[i] >> 16));
}

static __device__ __forceinline__ void store8(float *to, const float (&v)[8])
{
    reinterpret_cast<float4 *>(to)[0] = make_float4(v[0], v[1], v[2], v[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

static __device__ __forceinline__ void store8(bf16 *to, const float (&v)[8])
{
    uint4 out;
    out.x = to_bf16(v[0]) | (uint32_t)to_bf16(v[1]) << 16;
    out.y = to_bf16(v[2]) | (uint32_t)to_bf16(v[3]) << 16;
    out.z = to_bf16(v[4]) | (uint32_t)to_bf16(v[5]) << 16;
    out.w = to_bf16(v[6]) | (uint32_t)to_bf16(v[7]) << 16;
    *reinterpret_cast<uint4 *>(to) = out;
}

// to [rows, lin_cuda_padded(k)] = x [rows, k] in bf16.
void lin_cuda_narrow(lin_exec *exec, void *to, const float *x, int rows, int k);

// With operands in bf16: y [rows, n] = x [rows, k] wᵀ + bias, or, with narrow_y, y in bf16 and without a bias; packed as
// weights_pack does it in bf16. n and k are multiples of 8, x and y aligned to 16 bytes.
void lin_cuda_narrow_forward(lin_exec *exec, void *y, const void *x, const float *packed, const float *bias, int rows, int n,
                             int k, int narrow_y);
// dw [n, k] += dyᵀ x, db [n] += column sums of dy (db may be NULL) with dy [rows, n] and x [rows, k] in bf16, 16-byte aligned.
void lin_cuda_narrow_backward_weight(lin_exec *exec, float *dw, float *db, const void *dy, const void *x, int rows, int n, int k);

#endif
