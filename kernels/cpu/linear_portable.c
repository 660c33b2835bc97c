// linear_portable.c - the loops of the matrix product for any machine, with vector extensions; see linear.h.

// Vectors of four floats, which every 64-bit machine has; without a fused multiply-add if the machine lacks one.
#define LIN_SUFFIX portable
#define PAIRS 0
#include "kernels/cpu/linear_four.h"

#if defined(__aarch64__)
#include <arm_neon.h>
static inline vec vec_fma(vec a, vec b, vec c) { return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
#else
static inline vec vec_fma(vec a, vec b, vec c) { return a * b + c; }
#endif

#include "kernels/cpu/linear_body.h"
