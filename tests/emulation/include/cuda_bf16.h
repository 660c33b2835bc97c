/* cuda_bf16.h - bf16 numbers as kernels/cuda/ uses them: conversions, rounded to nearest, ties to even. See cuda_runtime.h. */
#ifndef LIN_EMULATION_CUDA_BF16_H
#define LIN_EMULATION_CUDA_BF16_H

#include <cuda_runtime.h>

struct __nv_bfloat16 {
    unsigned short bits;
};

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return {x}; }
static inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const unsigned bits = __float_as_uint(x);
    if (x != x) return {0x7FFF}; // the device's NaN
    return {(unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

#endif
