/*
 * linear_four.h - vectors of four floats and block sizes of the matrix product for any machine. Included by linear_portable.c and
 * linear_neonbf16.c, which define vec_fma and include linear_body.h.
 */
#include <string.h>

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
// 24 sums in 32 registers. gcc would load all factors of a step first, for which there are not enough.
#if !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define MAIN_ROWS 8
#define VECS_AT_ONCE {0, 6, 6, 4, 4, 3, 3, 3, 3}
#define PANELS_AT_ONCE {0, 1, 1, 1, 1, 1, 1, 1}
#define MORE_ROWS_OF(F, V) F(5, 1, V) F(6, 1, V) F(7, 1, V) F(8, 1, V)
#define MORE_BLOCKS(F) MORE_ROWS_OF(F, 1) MORE_ROWS_OF(F, 2) MORE_ROWS_OF(F, 3) F(3, 1, 4) F(4, 1, 4)
#else
// 8 sums in 16 registers, one of which holds the product
#define MAIN_ROWS 4
#define VECS_AT_ONCE {0, 6, 4, 2, 2}
#define PANELS_AT_ONCE {0, 1, 1, 1}
#define MORE_BLOCKS(F)
#endif

#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V)
#define WIDE_OF(F, V) F(1, 1, V) F(2, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) WIDE_OF(F, 4) WIDE_OF(F, 5) WIDE_OF(F, 6) MORE_BLOCKS(F)

#define OWN_TILES 0
#define PANEL LIN_PANEL
#define FEW_AHEAD 0
