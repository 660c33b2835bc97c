/*
 * linear.h - the layout of packed weights, and the loops of the matrix product that exist once per instruction set.
 *
 * Packed weights of w [n, k]: the n output columns are rounded up to 16 and divided into panels of the width that suits the
 * instruction set in use: 48 columns, the last one or two 16 or 32 if fewer are left; or 24 (AVX2), the last one or two 16. So
 * every output width wastes at most 15 columns. A panel of `width` columns that begins at column c is at element c * k and holds
 * [k, width], with zeros for the missing columns. Weights must be packed again after lin_cpu_select.
 *
 * Internal to linear*.c and the LSTM of paper/.
 */
#ifndef LIN_KERNELS_CPU_LINEAR_H
#define LIN_KERNELS_CPU_LINEAR_H

#include "kernels/cpu/cpu.h"

enum { LIN_COLUMN_GROUP = 16, LIN_PANEL = 48, LIN_PANEL_AVX2 = 24 };

static inline int lin_round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

/* Width of a whole panel of the instruction set in use. */
static inline int lin_panel(void)
{
#if defined(__x86_64__)
    return lin_cpu_level() == LIN_ISA_AVX2 ? LIN_PANEL_AVX2 : LIN_PANEL;
#else
    return LIN_PANEL;
#endif
}

/* Width of the panel that begins at `column` of n columns; whole panels are `panel` wide. 64 remaining columns become 32 + 32,
 * and with narrow panels 32 become 16 + 16: a single panel of 16, or of 8, would not keep the multipliers busy. */
static inline int lin_panel_width(int n, int column, int panel)
{
    const int left = lin_round_up(n, LIN_COLUMN_GROUP) - column;
    if (panel == LIN_PANEL_AVX2) return left == 32 || left < panel ? 16 : panel;
    return left == 64 ? 32 : left < panel ? left : panel;
}

/* Panels are numbered from the left: their number, and the first column of one. All but the last two are whole. */
static inline int lin_panel_count(int n, int panel)
{
    const int padded = lin_round_up(n, LIN_COLUMN_GROUP);
    return panel == LIN_PANEL_AVX2 ? padded / LIN_PANEL * 2 + padded % LIN_PANEL / 16 : (padded + panel - 1) / panel;
}

static inline int lin_panel_start(int n, int number, int panel)
{
    const int column = number * panel, padded = lin_round_up(n, LIN_COLUMN_GROUP);
    if (panel == LIN_PANEL_AVX2) return column > padded / LIN_PANEL * LIN_PANEL ? column - 8 : column;
    return column > 0 && padded - column == 16 ? column - 16 : column;
}

/* Panels of an item of weights_pack, packed either way. */
static inline int lin_item_panels(const lin_packing *item, int panel)
{
    return lin_panel_count(item->transposed ? item->k : item->n, panel);
}

/* One panel of packed weights, number `piece` of a matrix [n, k], from w, the panel's first element in it. */
typedef void lin_pack_panel(float *packed, const float *w, int n, int k, int piece, int panel);

/* A panel [k, width] from `rows` rows of w [.., k]; columns beyond them are not written. Any x86-64 processor with AVX2. */
void lin_pack_rows_avx2(float *to, const float *w, int rows, int k, int width);

_Static_assert((size_t)LIN_PANEL * LIN_HALF_COLUMNS * sizeof(float) <= LIN_SCRATCH_BYTES, "scratch holds the rows of a panel");

/* The table's weights_pack: packs panel by panel on the threads of exec, with the functions for panels along w's rows and
 * columns. */
void lin_pack_panels(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items, int panel,
                     lin_pack_panel *straight, lin_pack_panel *transposed);

/* A product below this many multiply-adds (30 us on one core of 2024) may be done before another thread wakes up. */
enum { LIN_THREAD_WORK = 1 << 22 };

/* y [rows, n] = act(x [rows, k] wᵀ + bias) on the calling thread. expected: what to prefetch meanwhile, where nothing that the
 * product itself needs is; may be NULL. */
LIN_DISPATCH_DECLARE(void, lin_linear_rows,
                     (float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k,
                      lin_activation act, lin_expected *expected));

/* The table's linear_forward on the threads of exec. round: converts rows of x to rows of `words` words in a thread's scratch,
 * which must have room for at least one; NULL: x is multiplied as it is, and words is k. */
typedef void lin_row_rounding(float *words, const float *x, int rows, int k);
typedef void lin_row_product(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k,
                             lin_activation act, lin_expected *expected);
void lin_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k,
                        lin_activation act, int words, lin_row_rounding *round, lin_row_product *product);

/* y [rows, n] = x [rows, k] wᵀ on the calling thread, the same bits; backwards: a few rows read the weights from the last column
 * to the first. If weights larger than a cache are read repeatedly, reversing the direction each time reads the cached ones
 * first, before they are evicted. */
LIN_DISPATCH_DECLARE(void, lin_linear_turned,
                     (float *y, const float *x, const float *packed, int rows, int n, int k, int backwards));

/* A rectangle of dw [n, k]: rows n0 <= i < n1, columns k0 <= j < k1. Adds dyᵀ x there, and, where db is not NULL, the column sums
 * of dy to db[n0 .. n1-1]. Rows of dw, dy and x are ldw, ldy and ldx floats apart. Rows cuts[i] - 1 of dy count as zeros; cuts
 * [n_cuts] ascends, and with cuts db is NULL. n1 - n0 <= LIN_TILE_N and k1 - k0 <= LIN_TILE_K; scratch: LIN_SCRATCH_BYTES. */
enum { LIN_TILE_N = 192, LIN_TILE_K = 384 };
typedef struct lin_tile {
    int n0, n1, k0, k1;
    size_t ldw, ldy, ldx;
    const int *cuts;
    int n_cuts;
} lin_tile;
typedef void lin_tile_product(float *dw, float *db, const float *dy, const float *x, int rows, lin_tile tile, float *scratch);
LIN_DISPATCH_DECLARE(void, lin_linear_tile,
                     (float *dw, float *db, const float *dy, const float *x, int rows, lin_tile tile, float *scratch));

/* The table's linear_backward_weight, tile by tile on the threads of exec. */
void lin_linear_weight_gradient(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n, int k,
                                lin_tile_product *product);

/* How `copies` matrices dw [n, k] are divided into tiles, so that the busiest thread has the least to do. An element of dw is
 * computed the same way in every tile, so the division does not change its bits. */
typedef struct lin_tiling {
    int n_parts, k_parts, tile_n, tile_k;
} lin_tiling;
lin_tiling lin_linear_tiling(int n, int k, int copies, int threads);

/* Rectangle `piece` of n_parts * k_parts, without distances and cuts. */
lin_tile lin_tiling_tile(const lin_tiling *tiling, int piece, int n, int k);

/* ---- operands in bf16, for processors with AVX512-BF16 or arm64's BFDOT ---------------------------------------------------- */

/* Operands are rounded to bf16, sums are in fp32. Both operands are pairs: a 32-bit word holds elements 2t (low half) and 2t+1
 * of a row; with an odd k the missing one is 0. A word is stored in place of a float, so packed weights have the layout above
 * with (k+1)/2 words in place of k floats. Rounding is to nearest even; values that are subnormal in bf16 count as 0 in
 * products. */
#if LIN_HAS_BF16
#if defined(__aarch64__)
#define LIN_BF16(function) function##_neonbf16
#else
#define LIN_BF16(function) function##_avx512bf16
#endif

/* Number of words of a row of k elements. */
static inline int lin_bf16_words(int k) { return k / 2 + k % 2; }

/* words [rows, lin_bf16_words(k)] = x [rows, k], rounded. */
void LIN_BF16(lin_bf16_round)(float *words, const float *x, int rows, int k);

/* A panel [lin_bf16_words(k), width] of packed weights: a column of it is the words of one of the `rows` rows of w [rows, k]. */
void LIN_BF16(lin_bf16_pack_rows)(float *panel, const float *w, int rows, int k, int width);

/* A panel [lin_bf16_words(rows), width] whose words are the pairs of rows 2t and 2t+1 of w, in its first `columns` columns; rows
 * of w are ld floats apart. In both panels the other words are 0; width is 16, 32 or 48. */
void LIN_BF16(lin_bf16_pack_columns)(float *panel, const float *w, int rows, size_t ld, int columns, int width);

/* y [rows, n] = act(x wᵀ + bias) on the calling thread; x [rows, words] and the packed weights as above; expected
 * as in lin_linear_rows. */
void LIN_BF16(lin_bf16_rows)(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int words,
                               lin_activation act, lin_expected *expected);

/* As lin_linear_tile: adds dyᵀ x, both rounded, to dw. Pairs are of rows 2t and 2t+1; db sums dy as it is. */
void LIN_BF16(lin_bf16_tile)(float *dw, float *db, const float *dy, const float *x, int rows, lin_tile tile, float *scratch);
#endif

#endif
