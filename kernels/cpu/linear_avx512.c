// linear_avx512.c - the loops of the matrix product for AVX-512; see linear.h.

#include "kernels/cpu/linear_avx512.h"

#define LIN_SUFFIX avx512
#define PAIRS 0
#define vec_fma(a, b, c) _mm512_fmadd_ps(a, b, c)

#include "kernels/cpu/linear_body.h"
