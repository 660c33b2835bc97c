// linear_int8_neoni8mm.c - the eight-bit product for arm64 with products of small matrices (FEAT_I8MM); see linear_int8.h.
//
// smmla multiplies two rows by two columns, eight elements of each, in one instruction: twice the products of a dot product.
// Words and panels are those of neondot, which takes a row that is left over.
//
//   words t, t + 1 of two rows:        a = r0w0 r0w1 | r1w0 r1w1
//   of four columns of a panel:        c0w0 c1w0 c2w0 c3w0 and c0w1 c1w1 c2w1 c3w1
//   their pairs, zip1 and zip2:        c0w0 c0w1 | c1w0 c1w1 and c2w0 c2w1 | c3w0 c3w1
//   smmla adds to                      r0c0 r0c1 | r1c0 r1c1 and r0c2 r0c3 | r1c2 r1c3
#include <math.h>

#include "kernels/cpu/linear_int8.h"
#include "kernels/cpu/linear_vectors.h"

// The most pairs of rows, and vectors of columns, of a block: 24 sums, 6 pairs of columns and one of rows in 32 registers.
enum { PAIRS = 4, VECS = 3 };

// Where a block begins: rows of x and y, a column of the panel.
typedef struct place {
    float *y;
    const float *x, *panel, *bias; // bias: of the first column, or NULL
    size_t ldy, ldx, width;
    int steps, columns; // words of x; columns of y from the first on
    float floor;
} place;

static inline int8x16_t two_rows(const float *row, size_t ldx)
{
    return vreinterpretq_s8_f32(vcombine_f32(vld1_f32(row), vld1_f32(row + ldx)));
}

// A row's four columns: sums as floats, as vec_scaled of linear_int8.c; tail: behind the panel's words; a: behind x's.
static inline void put(const place *at, float *y, int32x4_t sum, const float *tail, const float *a, int v)
{
    const int left = at->columns - v * LANES;
    if (left <= 0) return;
    const int32x4_t whole = vmlsq_s32(sum, (int32x4_t)vset(a[1]), (int32x4_t)vload(tail + at->width));
    const vf scaled = (vf)vcvtq_f32_s32(whole) * vload(tail) * vset(a[0]), lowest = vset(at->floor);
    const float *bias = at->bias ? at->bias + v * LANES : NULL;
    y += v * LANES;
    if (left >= LANES) {
        vstore(y, vmax(lowest, scaled + (bias ? vload(bias) : vset(-0.0F))));
    } else {
        vstore_n(y, vmax(lowest, scaled + (bias ? vload_n(bias, left) : vset(-0.0F))), left);
    }
}

// 2 P rows and 4 V columns. P and V are literals, so that the sums live in registers.
LIN_INLINE void block(const int P, const int V, const place *at)
{
    const size_t width = at->width;
    const float *x = at->x, *b = at->panel;
    int32x4_t sum[PAIRS][2 * VECS];
    LIN_UNROLL
    for (int p = 0; p < P; p++) {
        LIN_UNROLL
        for (int v = 0; v < 2 * V; v++) sum[p][v] = vdupq_n_s32(0);
    }
    for (int t = 0; t < at->steps; t += 2, x += 2, b += 2 * width) {
        int8x16_t columns[2 * VECS];
        // Beyond the last word are tails: a step of one word multiplies x's by 0.
        const int both = t + 1 < at->steps;
        LIN_UNROLL
        for (int v = 0; v < V; v++) {
            const float32x4_t first = vld1q_f32(b + v * LANES);
            const float32x4_t second = both ? vld1q_f32(b + width + v * LANES) : vdupq_n_f32(0);
            columns[2 * v] = vreinterpretq_s8_f32(vzip1q_f32(first, second));
            columns[2 * v + 1] = vreinterpretq_s8_f32(vzip2q_f32(first, second));
        }
        LIN_UNROLL
        for (int p = 0; p < P; p++) {
            const int8x16_t rows = two_rows(x + (size_t)(2 * p) * at->ldx, at->ldx);
            LIN_UNROLL
            for (int v = 0; v < 2 * V; v++) sum[p][v] = vmmlaq_s32(sum[p][v], rows, columns[v]);
        }
    }
    const float *tail = at->panel + (size_t)at->steps * width;
    LIN_UNROLL
    for (int p = 0; p < P; p++) {
        const float *a = at->x + (size_t)(2 * p) * at->ldx + at->steps;
        float *y = at->y + (size_t)(2 * p) * at->ldy;
        LIN_UNROLL
        for (int v = 0; v < V; v++) {
            const int64x2_t left = vreinterpretq_s64_s32(sum[p][2 * v]), right = vreinterpretq_s64_s32(sum[p][2 * v + 1]);
            put(at, y, vreinterpretq_s32_s64(vzip1q_s64(left, right)), tail + v * LANES, a, v);
            put(at, y + at->ldy, vreinterpretq_s32_s64(vzip2q_s64(left, right)), tail + v * LANES, a + at->ldx, v);
        }
    }
}

#define BLOCK(P, V)                                                                                                              \
    case P * 4 + V:                                                                                                              \
        block(P, V, at);                                                                                                         \
        break;
#define BLOCKS_OF(P) BLOCK(P, 1) BLOCK(P, 2) BLOCK(P, 3)
static __attribute__((noinline)) void run(int pairs, int vecs, const place *at)
{
    switch (pairs * 4 + vecs) {
        BLOCKS_OF(1)
        BLOCKS_OF(2)
        BLOCKS_OF(3)
        BLOCKS_OF(4)
    default:
        break;
    }
}

void lin_int8_rows_neoni8mm(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k,
                            lin_activation act, lin_expected *expected)
{
    const int even = rows & ~1;
    place at = {.ldy = (size_t)n, .ldx = (size_t)k, .steps = k - LIN_INT8_TAIL, .floor = act == LIN_RELU ? 0.0F : -INFINITY};
    for (int c = 0; even && c < n; c += (int)at.width) {
        at.width = (size_t)lin_panel_width(n, c, LIN_PANEL);
        for (int first = 0; first < (int)at.width && c + first < n; first += VECS * LANES) {
            const int vecs = ((int)at.width - first) / LANES < VECS ? ((int)at.width - first) / LANES : VECS;
            at.panel = packed + (size_t)c * (size_t)k + first;
            at.bias = bias ? bias + c + first : NULL;
            at.columns = n - c - first;
            for (int r = 0; r < even; r += 2 * PAIRS) {
                at.y = y + (size_t)r * at.ldy + c + first;
                at.x = x + (size_t)r * at.ldx;
                run(even - r < 2 * PAIRS ? (even - r) / 2 : PAIRS, vecs, &at);
            }
        }
    }
    if (even == rows) return;
    lin_int8_rows_neondot(y + (size_t)even * at.ldy, x + (size_t)even * at.ldx, packed, bias, 1, n, k, act, expected);
}
