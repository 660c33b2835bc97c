// linear_portable.c - the loops of the matrix product for any machine, with vector extensions; see linear.h.

#include <string.h>

// Vectors of four floats, which every 64-bit machine has; without a fused multiply-add if the machine lacks one.
#define LIN_SUFFIX portable
#define PAIRS 0
#define LANES 4
typedef float vec __attribute__((vector_size(16)));
typedef int vec_mask __attribute__((vector_size(16)));

static inline vec vec_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vec_store(float *p, vec v) { memcpy(p, &v, sizeof v); }

static inline vec vec_load_part(const float *p, int count)
{
    vec v = {0};
    memcpy(&v, p, (size_t)count * sizeof *p);
    return v;
}

static inline void vec_store_part(float *p, vec v, int count) { memcpy(p, &v, (size_t)count * sizeof *p); }

static inline vec vec_set1(float s) { return (vec){s, s, s, s}; }

static inline vec vec_add(vec a, vec b) { return a + b; }

static inline vec vec_max(vec a, vec b)
{
    vec_mask a_wins = a > b;
    return (vec)(((vec_mask)a & a_wins) | ((vec_mask)b & ~a_wins));
}

#if defined(__aarch64__)
#include <arm_neon.h>
static inline vec vec_fma(vec a, vec b, vec c) { return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
// 24 sums in 32 registers.
#define MAIN_ROWS 8
#define VECS_AT_ONCE {0, 6, 6, 4, 4, 3, 3, 3, 3}
#define PANELS_AT_ONCE {0, 1, 1, 1, 1, 1, 1, 1}
#define MORE_ROWS_OF(F, V) F(5, 1, V) F(6, 1, V) F(7, 1, V) F(8, 1, V)
#define MORE_BLOCKS(F) MORE_ROWS_OF(F, 1) MORE_ROWS_OF(F, 2) MORE_ROWS_OF(F, 3) F(3, 1, 4) F(4, 1, 4)
#else
static inline vec vec_fma(vec a, vec b, vec c) { return a * b + c; }
// 8 sums in 16 registers, one of which holds the product
#define MAIN_ROWS 4
#define VECS_AT_ONCE {0, 6, 4, 2, 2}
#define PANELS_AT_ONCE {0, 1, 1, 1}
#define MORE_BLOCKS(F)
#endif

#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V)
#define WIDE_OF(F, V) F(1, 1, V) F(2, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) WIDE_OF(F, 4) WIDE_OF(F, 5) WIDE_OF(F, 6) MORE_BLOCKS(F)

#define PANEL LIN_PANEL
#define FEW_AHEAD 0
#include "kernels/cpu/linear_body.h"
