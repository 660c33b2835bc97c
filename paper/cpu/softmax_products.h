/*
 * softmax_products.h - parts of softmax attention, once per instruction set: small matrix products, transposes, powers of two.
 *
 * All products are one kernel: out [rows, columns] = sum over x of a[r, x] b[x, columns], where a is in memory in any place, its
 * elements broadcast, and b is packed, a whole number of vectors wide. Each sum runs in the order of x, one (fused) multiply-add
 * per term, so its bits do not depend on the block that it is computed in.
 */
#ifndef LIN_PAPER_CPU_SOFTMAX_PRODUCTS_H
#define LIN_PAPER_CPU_SOFTMAX_PRODUCTS_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

// A register block: BLOCK_ROWS x at most BLOCK_VECTORS sums.
#if LIN_WIDTH == 16
#define BLOCK_ROWS 8 // of 32 registers: 24 sums, 3 of b, the broadcast value
#define BLOCK_VECTORS 3
#elif LIN_WIDTH == 8
#define BLOCK_ROWS 4 // of 16 registers: 12 sums, 3 of b, the broadcast value
#define BLOCK_VECTORS 3
#else
#define BLOCK_ROWS 4 // of 16 registers: 8 sums, 2 of b, the broadcast value, a product
#define BLOCK_VECTORS 2
#endif

/* ---- products -------------------------------------------------------------------------------------------------------------- */

/* One product. a[r, x] = by_row ? a[r a_stride + x] : a[x a_stride + r]. */
typedef struct matmul {
    float *out;          /* [rows, columns], out_stride floats from row to row */
    const float *factor; /* [columns], by which out is multiplied before; NULL: 1 */
    const float *a, *b;  /* b [inner, columns rounded up to whole vectors], b_stride floats from row to row */
    size_t out_stride, a_stride, b_stride;
    int rows, columns, inner, add; /* add: to out */
} matmul;

// Rows r .. r+G-1, vectors from column c on: C of them.
LIN_INLINE void block(const matmul *p, int r, int c, int by_row, int G, int C)
{
    vf sum[BLOCK_ROWS][BLOCK_VECTORS];
    float *out = p->out + (size_t)r * p->out_stride;
    const float *a = p->a + (by_row ? (size_t)r * p->a_stride : (size_t)r), *b = p->b + c;
    const size_t row = by_row ? p->a_stride : 1, step = by_row ? 1 : p->a_stride, b_stride = p->b_stride;
    LIN_UNROLL
    for (int g = 0; g < G; g++)
        LIN_UNROLL
        for (int v = 0; v < C; v++) {
            const int at = c + v * LIN_WIDTH;
            sum[g][v] = p->add ? vlanes(out + (size_t)g * p->out_stride, at, p->columns) : (vf){0};
            if (p->factor) sum[g][v] = vrounded(sum[g][v] * vload(p->factor + at));
        }
    for (int x = 0; x < p->inner; x++, a += step, b += b_stride) {
        vf bv[BLOCK_VECTORS];
        LIN_UNROLL
        for (int v = 0; v < C; v++) bv[v] = vload(b + v * LIN_WIDTH);
        LIN_UNROLL
        for (int g = 0; g < G; g++) {
            const vf s = vset(a[(size_t)g * row]);
            LIN_UNROLL
            for (int v = 0; v < C; v++) sum[g][v] = vfma(s, bv[v], sum[g][v]);
        }
    }
    LIN_UNROLL
    for (int g = 0; g < G; g++)
        LIN_UNROLL
    for (int v = 0; v < C; v++) vput_lanes(out + (size_t)g * p->out_stride, sum[g][v], c + v * LIN_WIDTH, p->columns);
}

LIN_INLINE void block_column(const matmul *p, int c, int by_row, int C)
{
    int r = 0;
    for (; r + BLOCK_ROWS <= p->rows; r += BLOCK_ROWS) block(p, r, c, by_row, BLOCK_ROWS, C);
#if BLOCK_ROWS > 4
    if (p->rows - r >= 4) {
        block(p, r, c, by_row, 4, C);
        r += 4;
    }
#endif
    if (p->rows - r >= 2) {
        block(p, r, c, by_row, 2, C);
        r += 2;
    }
    if (p->rows > r) block(p, r, c, by_row, 1, C);
}

LIN_INLINE void block_columns(const matmul *p, int by_row)
{
    for (int c = 0, C; c < p->columns; c += C * LIN_WIDTH) {
        int left = (p->columns - c + LIN_WIDTH - 1) / LIN_WIDTH;
        C = left < BLOCK_VECTORS ? left : left == BLOCK_VECTORS + 1 ? (left + 1) / 2 : BLOCK_VECTORS;
        if (C == 1) block_column(p, c, by_row, 1);
        if (C == 2) block_column(p, c, by_row, 2);
#if BLOCK_VECTORS > 2
        if (C == 3) block_column(p, c, by_row, 3);
#endif
    }
}

// a by rows, and by columns.
static __attribute__((noinline, unused)) void multiply(const matmul *p) { block_columns(p, 1); }
static __attribute__((noinline, unused)) void multiply_t(const matmul *p) { block_columns(p, 0); }

/* ---- transposes ------------------------------------------------------------------------------------------------------------ */

#if defined __clang__ || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif

#if LIN_WIDTH == 16
#define INTERLEAVE_LOW(a, b) SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(a, b) SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LIN_WIDTH == 8
#define INTERLEAVE_LOW(a, b) SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(a, b) SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define INTERLEAVE_LOW(a, b) SHUFFLE(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) SHUFFLE(a, b, 2, 6, 3, 7)
#endif

/* Transposes LIN_WIDTH vectors: each round rotates the bits of the index (row, lane) by one. */
LIN_INLINE void transpose(vf *t)
{
    LIN_UNROLL
    for (int round = 1; round < LIN_WIDTH; round *= 2) {
        vf s[LIN_WIDTH];
        LIN_UNROLL
        for (int i = 0; i < LIN_WIDTH / 2; i++) {
            s[2 * i] = INTERLEAVE_LOW(t[i], t[i + LIN_WIDTH / 2]);
            s[2 * i + 1] = INTERLEAVE_HIGH(t[i], t[i + LIN_WIDTH / 2]);
        }
        LIN_UNROLL
        for (int i = 0; i < LIN_WIDTH; i++) t[i] = s[i];
    }
}

/* to [E, pitch] = the transpose of n rows of E floats times factor; columns past n are 0. pitch is a whole number of vectors. */
static __attribute__((noinline, unused)) void pack_columns(float *to, size_t pitch, const float *from, size_t stride,
                                                           int n, int E, float factor)
{
    for (int r = 0; r < (int)pitch; r += LIN_WIDTH)
        for (int e = 0; e < E; e += LIN_WIDTH) {
            vf t[LIN_WIDTH];
            const int whole = r + LIN_WIDTH <= n && e + LIN_WIDTH <= E;
            const float *source = from + (size_t)r * stride;
            float *place = to + (size_t)e * pitch + r;
            LIN_UNROLL
            for (int i = 0; i < LIN_WIDTH && whole; i++, source += stride) t[i] = vload(source + e) * factor;
            for (int i = 0; i < LIN_WIDTH && !whole; i++, source += stride)
                t[i] = r + i < n ? vlanes(source, e, E) * factor : (vf){0};
            transpose(t);
            LIN_UNROLL
            for (int i = 0; i < LIN_WIDTH && whole; i++, place += pitch) vstore(place, t[i]);
            for (int i = 0; i < LIN_WIDTH && !whole; i++, place += pitch)
                if (e + i < E) vstore(place, t[i]);
        }
}

/* The opposite: row i of `to` = column i of from [E, pitch] times factor[i], for i < n. */
static __attribute__((noinline, unused)) void unpack_columns(float *to, size_t stride, const float *from, size_t pitch,
                                                             int n, int E, const float *factor)
{
    for (int r = 0; r < n; r += LIN_WIDTH)
        for (int e = 0; e < E; e += LIN_WIDTH) {
            vf t[LIN_WIDTH];
            const int whole = r + LIN_WIDTH <= n && e + LIN_WIDTH <= E;
            const float *source = from + (size_t)e * pitch + r;
            const vf scale = vload(factor + r);
            float *place = to + (size_t)r * stride;
            LIN_UNROLL
            for (int i = 0; i < LIN_WIDTH && whole; i++, source += pitch) t[i] = vload(source) * scale;
            for (int i = 0; i < LIN_WIDTH && !whole; i++, source += pitch) t[i] = e + i < E ? vload(source) * scale : (vf){0};
            transpose(t);
            LIN_UNROLL
            for (int i = 0; i < LIN_WIDTH && whole; i++, place += stride) vstore(place + e, t[i]);
            for (int i = 0; i < LIN_WIDTH && !whole; i++, place += stride)
                if (r + i < n) vput_lanes(place, t[i], e, E);
        }
}

/* to [n, pitch] = n rows of E floats times factor; columns past E are 0. */
static __attribute__((noinline, unused)) void pack_rows(float *to, size_t pitch, const float *from, size_t stride,
                                                        int n, int E, float factor)
{
    for (int r = 0; r < n; r++)
        for (int e = 0; e < E; e += LIN_WIDTH)
            vstore(to + (size_t)r * pitch + e, vlanes(from + (size_t)r * stride, e, E) * factor);
}

/* ---- powers of two --------------------------------------------------------------------------------------------------------- */

/* 2^x for x <= 127, relative error below 1.7e-7; exactly 1 for 0, exactly 0 from -127 down; NaN for NaN. */
LIN_INLINE vf power_of_two(vf x)
{
    x = vmax(vset(-127.0f), x);
    const vf shifted = x + LIN_ROUNDER, r = x - (shifted - LIN_ROUNDER);
    vf q = vset(0x1.5bba14p-10f); // 2^r for |r| <= 1/2: 1 + r times the best fit of degree 4
    q = vfma(q, r, vset(0x1.3cea88p-7f));
    q = vfma(q, r, vset(0x1.c6b752p-5f));
    q = vfma(q, r, vset(0x1.ebf9bcp-3f));
    q = vfma(q, r, vset(0x1.62e42ap-1f));
    q = vfma(q, r, vset(1.0f));
    return (vf)((vu)q + ((vu)shifted << 23)); // LIN_ROUNDER puts the integer nearest to x in the low bits
}

#endif
