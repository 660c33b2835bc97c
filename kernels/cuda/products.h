/*
 * products.h - products of fragments in near fp32 or in tf32 precision, for kernels with their own matrix products.
 *
 * Internal to kernels/cuda/. SPLIT 0: operands are rounded to tf32. SPLIT 1: x = big + small, both tf32, and three of the four
 * products: the dropped one is 2^-22 of the result.
 */
#ifndef LIN_KERNELS_CUDA_PRODUCTS_H
#define LIN_KERNELS_CUDA_PRODUCTS_H

#include <cuda_bf16.h>

#include "kernels/cuda/ptx.h"

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

#endif
