// linear_bf16.c - the matrix product of operands rounded to bf16: packing weights, the product over them; see linear.h.
//
// The loops are those of linear_body.h over words: their multiply-add, vdpbf16ps or bfdot, adds both products of a pair to a
// sum. A vector of pairs is stored as floats: only that multiply-add and additions interpret the values; all other instructions
// move them.
#include <string.h>

#include "kernels/cpu/linear_vectors.h"

#if !LIN_HAS_BF16
typedef int lin_bf16_is_elsewhere; // ISO C requires a declaration in every file
#elif defined(LIN_ONCE)

size_t lin_cpu_bf16_weight_size(int n, int k) { return lin_cpu_weight_size(n, lin_bf16_words(k)); }

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

static void pack_panel(float *packed, const float *w, int n, int k, int piece, int whole_panel)
{
    const int c0 = lin_panel_start(n, piece, whole_panel), width = lin_panel_width(n, c0, whole_panel);
    LIN_BF16(lin_bf16_pack_rows)(packed + (size_t)c0 * (size_t)lin_bf16_words(k), w,
                                 n - c0 < width ? n - c0 : width, k, width);
}

// The panels run over the k columns of w; each has n rows.
static void pack_panel_transposed(float *packed, const float *w, int n, int k, int piece, int whole_panel)
{
    const int c0 = lin_panel_start(k, piece, whole_panel), width = lin_panel_width(k, c0, whole_panel);
    LIN_BF16(lin_bf16_pack_columns)(packed + (size_t)c0 * (size_t)lin_bf16_words(n), w, n, (size_t)k,
                                    k - c0 < width ? k - c0 : width, width);
}

void lin_cpu_bf16_weights_pack(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items)
{
    lin_pack_panels(exec, packed, values, items, n_items, LIN_PANEL, pack_panel, pack_panel_transposed);
}

/* ---- products -------------------------------------------------------------------------------------------------------------- */

void lin_cpu_bf16_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows,
                                 int n, int k, lin_activation act)
{
    lin_linear_forward(exec, y, x, packed, bias, rows, n, k, act, lin_bf16_words(k), LIN_BF16(lin_bf16_round),
                       LIN_BF16(lin_bf16_rows));
}

void lin_cpu_bf16_linear_backward_weight(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n,
                                         int k)
{
    lin_linear_weight_gradient(exec, dw, db, dy, x, rows, n, k, LIN_BF16(lin_bf16_tile));
}

#else

/* ---- for the instruction set ----------------------------------------------------------------------------------------------- */

#define LINEAR(name) LIN_NAME(lin_bf16_##name)
#define PAIRS 1
#if LIN_WIDTH == 16
#define vec_fma(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#else
#define vec_factor vec_first
static inline vf vec_fma(vf a, vf b, vf c)
{
    return (vf)vbfdotq_laneq_f32((float32x4_t)c, vreinterpretq_bf16_f32((float32x4_t)b), vreinterpretq_bf16_f32((float32x4_t)a),
                                  0);
}
#endif

/* ---- operands of the weight gradient: a word is the pair of an element of row 2t and the one below it, in row 2t + 1 ------- */

#if LIN_WIDTH == 16

static inline vf paired(vf even, vf odd)
{
    const __m512i low = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); // places: 0, 16, 1, 17, ...
    const __m512i places = _mm512_or_si512(low, _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(16)), 16));
    return (vf)_mm512_permutexvar_epi16(places, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

// Columns of dy as tiles [(rows + 1) / 2, MAIN_ROWS] of words, with zeros for the missing columns of the last one; db, if not
// NULL, += the columns' sums, which are not rounded.
static void pack_dy(float *packed, float *db, const float *dy, int rows, size_t ld, int columns)
{
    const size_t stride = (size_t)(rows + 1) / 2 * MAIN_ROWS;
    for (; columns > 0; columns -= LANES, dy += LANES, packed += 2 * stride) {
        const float *from = dy;
        float *to = packed;
        vf sum = {0};
        for (int t = 0; t < rows; t += 2, from += 2 * ld, to += MAIN_ROWS) {
            const vf even = vlanes(from, 0, columns), odd = t + 1 < rows ? vlanes(from + ld, 0, columns) : (vf){0};
            const __m512d words = (__m512d)paired(even, odd);
            _mm256_storeu_pd((double *)to, _mm512_castpd512_pd256(words));
            if (columns > MAIN_ROWS) _mm256_storeu_pd((double *)(to + stride), _mm512_extractf64x4_pd(words, 1));
            sum = sum + even + odd;
        }
        if (!db) continue;
        vput_lanes(db, vlanes(db, 0, columns) + sum, 0, columns);
        db += LANES;
    }
}

#else

static inline vf paired(vf even, vf odd)
{
    const uint16x4_t low = vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)even));
    const uint16x4_t high = vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)odd));
    return (vf)vreinterpretq_f32_u32(vorrq_u32(vmovl_u16(low), vshll_n_u16(high, 16)));
}

// Columns of dy as tiles [(rows + 1) / 2, MAIN_ROWS] of words, with zeros for the missing columns of the last one; db, if not
// NULL, += the columns' sums, which are not rounded.
static void pack_dy(float *packed, float *db, const float *dy, int rows, size_t ld, int columns)
{
    enum { VECS = MAIN_ROWS / LANES };
    for (; columns > 0; columns -= MAIN_ROWS, dy += MAIN_ROWS) {
        const float *from = dy;
        vf sum[VECS] = {{0}};
        for (int t = 0; t < rows; t += 2, from += 2 * ld) {
            for (int v = 0; v < VECS; v++, packed += LANES) {
                const vf even = vpadded(from, v * LANES, columns);
                const vf odd = t + 1 < rows ? vpadded(from + ld, v * LANES, columns) : (vf){0};
                vstore(packed, paired(even, odd));
                sum[v] = sum[v] + even + odd;
            }
        }
        if (!db) continue;
        for (int i = 0; i < MAIN_ROWS && i < columns; i++) db[i] += sum[i / LANES][i % LANES];
        db += MAIN_ROWS;
    }
}

#endif

void LIN_BF16(lin_bf16_pack_columns)(float *panel, const float *w, int rows, size_t ld, int columns, int width)
{
    for (int t = 0; t < rows; t += 2, w += 2 * ld) {
        for (int c = 0; c < width; c += LANES, panel += LANES) {
            const vf odd = t + 1 < rows ? vpadded(w + ld, c, columns) : (vf){0};
            vstore(panel, paired(vpadded(w, c, columns), odd));
        }
    }
}

// The first `columns` columns of x as a panel [(rows + 1) / 2, PANEL] of words, the others zero.
static void pack_x(float *packed, const float *x, int rows, size_t ld, int columns)
{
    LIN_BF16(lin_bf16_pack_columns)(packed, x, rows, ld, columns, PANEL);
}

#include "kernels/cpu/linear_body.h"

/* ---- rounding, and packing rows of weights --------------------------------------------------------------------------------- */

// Up to 2 LANES floats, the others zero, as LANES words.
static inline vf words_of(const float *x, int count)
{
    const vf low = vpadded(x, 0, count), high = vpadded(x, LANES, count);
#if LIN_WIDTH == 16
    return (vf)_mm512_cvtne2ps_pbh(high, low);
#else
    return (vf)vreinterpretq_f32_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)low), (float32x4_t)high));
#endif
}

void LIN_BF16(lin_bf16_round)(float *words, const float *x, int rows, int k)
{
    for (; rows > 0; rows--, x += k, words += lin_bf16_words(k)) {
        int t = 0;
        for (; t + 2 * LANES <= k; t += 2 * LANES) vstore(words + t / 2, words_of(x + t, 2 * LANES));
        if (t < k) vstore_n(words + t / 2, words_of(x + t, k - t), lin_bf16_words(k - t));
    }
}

#if LIN_WIDTH == 16

// Transposes 16 vectors: each round rotates the bits of the index (row, lane) by one.
static inline void transpose(vf *t)
{
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(LANES / 2));
    for (int round = 0; round < 4; round++) {
        vf s[LANES];
        LIN_UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            s[2 * i] = _mm512_permutex2var_ps(t[i], low, t[i + LANES / 2]);
            s[2 * i + 1] = _mm512_permutex2var_ps(t[i], high, t[i + LANES / 2]);
        }
        LIN_UNROLL
        for (int i = 0; i < LANES; i++) t[i] = s[i];
    }
}

void LIN_BF16(lin_bf16_pack_rows)(float *panel, const float *w, int rows, int k, int width)
{
    const size_t row = (size_t)k;
    for (int t = 0; t < k; t += 2 * LANES, panel += LANES * (size_t)width) {
        const int words = (k - t + 1) / 2 < LANES ? (k - t + 1) / 2 : LANES;
        for (int c = 0; c < width; c += LANES) {
            vf block[LANES];
            for (int i = 0; i < LANES; i++) {
                block[i] = c + i < rows ? words_of(w + (size_t)(c + i) * row + t, k - t) : (vf){0};
            }
            transpose(block);
            for (int i = 0; i < words; i++) vstore(panel + (size_t)i * (size_t)width + c, block[i]);
        }
    }
}

#else

void LIN_BF16(lin_bf16_pack_rows)(float *panel, const float *w, int rows, int k, int width)
{
    for (int t = 0; t < k; t += 2 * LANES, panel += LANES * (size_t)width) {
        const int words = lin_bf16_words(k - t) < LANES ? lin_bf16_words(k - t) : LANES;
        for (int c = 0; c < width; c++) {
            float word[LANES];
            vstore(word, c < rows ? words_of(w + (size_t)c * (size_t)k + t, k - t) : (vf){0});
            for (int i = 0; i < words; i++) panel[(size_t)i * (size_t)width + (size_t)c] = word[i];
        }
    }
}

#endif
#endif
