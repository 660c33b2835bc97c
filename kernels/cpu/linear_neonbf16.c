// linear_neonbf16.c - the loops of the bf16 matrix product for arm64 with BFDOT; see linear_bf16.h.

#include <arm_neon.h>

#include "kernels/cpu/linear_bf16.h"

// As in linear_avx512bf16.c: a word is a pair of bf16 stored as a float, and only the dot product and additions interpret the
// values.
#define LIN_SUFFIX neonbf16
#define PAIRS 1
#include "kernels/cpu/linear_four.h"

// vec_fma multiplies all lanes of b by the first of a, so a may be the register that a float has been loaded to.
#if !defined(__clang__)
static inline vec factor(float s)
{
    vec v;
    __asm__("" : "=w"(v) : "0"(s));
    return v;
}
#define vec_factor factor
#endif

static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec)vbfdotq_laneq_f32((float32x4_t)c, vreinterpretq_bf16_f32((float32x4_t)b), vreinterpretq_bf16_f32((float32x4_t)a),
                                  0);
}

// Up to four floats, the others zero.
static inline vec some(const float *p, int count)
{
    return count >= LANES ? vec_load(p) : count > 0 ? vec_load_part(p, count) : (vec){0};
}

/* ---- operands of the weight gradient: a word is the pair of an element of row 2t and the one below it, in row 2t + 1 ------- */

static inline vec paired(vec even, vec odd)
{
    const uint16x4_t low = vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)even));
    const uint16x4_t high = vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)odd));
    return (vec)vreinterpretq_f32_u32(vorrq_u32(vmovl_u16(low), vshll_n_u16(high, 16)));
}

void lin_bf16_pack_columns_neonbf16(float *panel, const float *w, int rows, size_t ld, int columns, int width)
{
    for (int t = 0; t < rows; t += 2, w += 2 * ld) {
        for (int c = 0; c < width; c += LANES, panel += LANES) {
            const vec odd = t + 1 < rows ? some(w + ld + c, columns - c) : (vec){0};
            vec_store(panel, paired(some(w + c, columns - c), odd));
        }
    }
}

// The first `columns` columns of x as a panel [(rows + 1) / 2, PANEL] of words, the others zero.
static void pack_x(float *packed, const float *x, int rows, size_t ld, int columns)
{
    lin_bf16_pack_columns_neonbf16(packed, x, rows, ld, columns, PANEL);
}

// Columns of dy as tiles [(rows + 1) / 2, MAIN_ROWS] of words, with zeros for the missing columns of the last one; db, if not
// NULL, += the columns' sums, which are not rounded.
static void pack_dy(float *packed, float *db, const float *dy, int rows, size_t ld, int columns)
{
    enum { VECS = MAIN_ROWS / LANES };
    for (; columns > 0; columns -= MAIN_ROWS, dy += MAIN_ROWS) {
        const float *from = dy;
        vec sum[VECS] = {{0}};
        for (int t = 0; t < rows; t += 2, from += 2 * ld) {
            for (int v = 0; v < VECS; v++, packed += LANES) {
                const int left = columns - v * LANES;
                const vec even = some(from + v * LANES, left);
                const vec odd = t + 1 < rows ? some(from + ld + v * LANES, left) : (vec){0};
                vec_store(packed, paired(even, odd));
                sum[v] = sum[v] + even + odd;
            }
        }
        if (!db) continue;
        for (int i = 0; i < MAIN_ROWS && i < columns; i++) db[i] += sum[i / LANES][i % LANES];
        db += MAIN_ROWS;
    }
}

#include "kernels/cpu/linear_body.h"

/* ---- rounding -------------------------------------------------------------------------------------------------------------- */

// Up to eight floats, the others zero, as four words.
static inline vec words_of(const float *x, int count)
{
    const bfloat16x8_t low = vcvtq_low_bf16_f32((float32x4_t)some(x, count));
    return (vec)vreinterpretq_f32_bf16(vcvtq_high_bf16_f32(low, (float32x4_t)some(x + LANES, count - LANES)));
}

void lin_bf16_round_neonbf16(float *words, const float *x, int rows, int k)
{
    for (; rows > 0; rows--, x += k, words += lin_bf16_words(k)) {
        int t = 0;
        for (; t + 2 * LANES <= k; t += 2 * LANES) vec_store(words + t / 2, words_of(x + t, 2 * LANES));
        if (t < k) vec_store_part(words + t / 2, words_of(x + t, k - t), lin_bf16_words(k - t));
    }
}

/* ---- packing rows of weights ----------------------------------------------------------------------------------------------- */

void lin_bf16_pack_rows_neonbf16(float *panel, const float *w, int rows, int k, int width)
{
    for (int t = 0; t < k; t += 2 * LANES, panel += LANES * (size_t)width) {
        const int words = lin_bf16_words(k - t) < LANES ? lin_bf16_words(k - t) : LANES;
        for (int c = 0; c < width; c++) {
            float word[LANES];
            vec_store(word, c < rows ? words_of(w + (size_t)c * (size_t)k + t, k - t) : (vec){0});
            for (int i = 0; i < words; i++) panel[(size_t)i * (size_t)width + (size_t)c] = word[i];
        }
    }
}
