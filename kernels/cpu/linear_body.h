/*
 * linear_body.h - the loops of the matrix product, included once per instruction set by linear_<set>.c, which defines
 *
 *   LIN_SUFFIX                     portable, avx2, avx512
 *   vec, LANES                     a vector of LANES floats
 *   vec_load, vec_store, vec_set1, vec_add, vec_fma(a, b, c) = a b + c, vec_max(a, b) = a > b ? a : b (so b where one is NaN)
 *   vec_load_part, vec_store_part  the first `count` lanes only, 0 < count < LANES; the others read as 0
 *   MAIN_ROWS, MAIN_VECS           the register block of many rows: MAIN_ROWS x MAIN_VECS sums
 *   PAIR_VECS, SINGLE_VECS         the most vectors of one panel against two rows and against one
 *   PAIR_PANELS, SINGLE_PANELS     whole panels taken at once there: few rows give few independent sums, so they go wide
 *   BLOCKS(F)                      F(rows, panels, vectors of each panel) for every block that these numbers can lead to
 *
 * Every block computes an output element the same way: sum = +0; sum = fma(a[t], b[t], sum) for t = 0, 1, 2, ...; so its bits do not
 * depend on which block it falls into.
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/linear.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

enum { MAX_BLOCK_ROWS = 8, MAX_BLOCK_VECS = 12 };

// `steps` products of R values of a with P panels of V vectors of b. Value r of step t is a[r a_row + t a_step].
typedef struct operands {
    const float *a, *b;
    size_t a_row, a_step, b_panel, b_step;
    int steps;
} operands;

// Where the sums go: columns 0 .. columns-1 of y, the rest of the panel does not exist.
typedef struct result {
    float *y;
    size_t ldy;
    int columns;
    int add;           // y += sum; else y = max(floor, sum + bias)
    const float *bias; // NULL for none
    float floor;       // 0 for ReLU, else -infinity
} result;

// R, P and V are literals at every call, so that the sums live in registers.
INLINE void block(const int R, const int P, const int V, const operands *from, const result *to)
{
    vec sum[MAX_BLOCK_ROWS][MAX_BLOCK_VECS];
    const float *a = from->a, *b = from->b;
    const size_t a_row = from->a_row, a_step = from->a_step, b_panel = from->b_panel, b_step = from->b_step;
    UNROLL
    for (int r = 0; r < R; r++) {
        UNROLL
        for (int v = 0; v < P * V; v++) sum[r][v] = vec_set1(0.0f);
    }
    for (int t = from->steps; t > 0; t--) {
        vec column[MAX_BLOCK_VECS];
        UNROLL
        for (int v = 0; v < P * V; v++) column[v] = vec_load(b + (size_t)(v / V) * b_panel + v % V * LANES);
        UNROLL
        for (int r = 0; r < R; r++) {
            vec value = vec_set1(a[(size_t)r * a_row]);
            UNROLL
            for (int v = 0; v < P * V; v++) sum[r][v] = vec_fma(value, column[v], sum[r][v]);
        }
        a += a_step;
        b += b_step;
    }
    const size_t ldy = to->ldy;
    const vec lowest = vec_set1(to->floor);
    UNROLL
    for (int v = 0; v < P * V; v++) {
        int c = v / V * LIN_PANEL + v % V * LANES, left = to->columns - c;
        if (left <= 0) continue;
        float *y = to->y + c;
        if (left >= LANES) {
            if (to->add) {
                UNROLL
                for (int r = 0; r < R; r++) vec_store(y + (size_t)r * ldy, vec_add(vec_load(y + (size_t)r * ldy), sum[r][v]));
            } else {
                vec bias = to->bias ? vec_load(to->bias + c) : vec_set1(-0.0f); // x + -0 is x, to the sign of zero
                UNROLL
                for (int r = 0; r < R; r++) vec_store(y + (size_t)r * ldy, vec_max(lowest, vec_add(sum[r][v], bias)));
            }
        } else if (to->add) {
            UNROLL
            for (int r = 0; r < R; r++) {
                vec_store_part(y + (size_t)r * ldy, vec_add(vec_load_part(y + (size_t)r * ldy, left), sum[r][v]), left);
            }
        } else {
            vec bias = to->bias ? vec_load_part(to->bias + c, left) : vec_set1(-0.0f);
            UNROLL
            for (int r = 0; r < R; r++) vec_store_part(y + (size_t)r * ldy, vec_max(lowest, vec_add(sum[r][v], bias)), left);
        }
    }
}

#define BLOCK_DEFINE(R, P, V)                                                                                                       \
    static __attribute__((noinline)) void block_##R##_##P##_##V(const operands *from, const result *to) { block(R, P, V, from, to); }
BLOCKS(BLOCK_DEFINE)

static void block_run(int rows, int panels, int vecs, const operands *from, const result *to)
{
#define BLOCK_CASE(R, P, V)                                                                                                         \
    case (R * 16 + P) * 16 + V:                                                                                                     \
        block_##R##_##P##_##V(from, to);                                                                                            \
        break;
    switch ((rows * 16 + panels) * 16 + vecs) {
        BLOCKS(BLOCK_CASE)
    default:
        break;
    }
}

// One panel against at most MAIN_ROWS rows, in pieces of as many vectors as the registers hold.
static void panel_run(int rows, int width, operands from, result to)
{
    int most = rows == 1 ? SINGLE_VECS : rows == 2 ? PAIR_VECS : MAIN_VECS;
    if (to.columns > width) to.columns = width;
    for (int left = (to.columns + LANES - 1) / LANES, vecs; left > 0; left -= vecs) {
        // Four vectors are two and two rather than three and one: a lone one does not keep the units busy.
        vecs = left < most ? left : left == most + 1 && most > 2 ? most - 1 : most;
        block_run(rows, 1, vecs, &from, &to);
        from.b += vecs * LANES;
        to.y += vecs * LANES;
        if (to.bias) to.bias += vecs * LANES;
        to.columns -= vecs * LANES;
    }
}

void LIN_NAME(lin_linear_rows)(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k,
                               lin_activation act)
{
    const int rest = rows % MAIN_ROWS, whole = rows - rest;
    operands from = {.a_row = (size_t)k, .a_step = 1, .b_panel = (size_t)LIN_PANEL * (size_t)k, .steps = k};
    result to = {.ldy = (size_t)n, .floor = act == LIN_RELU ? 0.0f : -INFINITY};
    for (int c = 0, width; c < n && whole; c += width) { // in this order a panel stays in the cache while the rows pass
        width = lin_panel_width(n, c);
        from.b = packed + (size_t)c * (size_t)k;
        from.b_step = (size_t)width;
        to.bias = bias ? bias + c : NULL;
        to.columns = n - c;
        for (int r = 0; r < whole; r += MAIN_ROWS) {
            from.a = x + (size_t)r * (size_t)k;
            to.y = y + (size_t)r * (size_t)n + c;
            panel_run(MAIN_ROWS, width, from, to);
        }
    }
    from.a = x + (size_t)whole * (size_t)k;
    for (int c = 0, width; c < n && rest; c += width) {
        const int panels = rest == 1 ? SINGLE_PANELS : rest == 2 ? PAIR_PANELS : 1, last = c + (panels - 1) * LIN_PANEL;
        width = lin_panel_width(n, c);
        from.b = packed + (size_t)c * (size_t)k;
        from.b_step = (size_t)width;
        to.bias = bias ? bias + c : NULL;
        to.columns = n - c;
        to.y = y + (size_t)whole * (size_t)n + c;
        if (panels > 1 && last < n && lin_panel_width(n, last) == LIN_PANEL) { // then those before it are whole, too
            block_run(rest, panels, LIN_PANEL / LANES, &from, &to);
            width = panels * LIN_PANEL;
        } else {
            panel_run(rest, width, from, to);
        }
    }
}

/* ---- backward: a rectangle of dw ---------------------------------------------------------------------------------------------- */

// Rows of dy and x that are summed in registers before they are added to dw. Fixed, since the bits of dw depend on it.
enum { DEPTH = 256 };

// Columns c0 .. c1-1 of source [steps, ld] as panels: each [steps, width], the missing columns of the last one zero.
static void pack_columns(float *packed, const float *source, int steps, size_t ld, int c0, int c1, int width)
{
    for (int c = c0; c < c1; c += width, packed += (size_t)steps * (size_t)width) {
        int used = c1 - c < width ? c1 - c : width;
        const float *from = source + c;
        float *to = packed;
        for (int t = 0; t < steps; t++, from += ld, to += width) {
            if (used == width) {
                memcpy(to, from, (size_t)width * sizeof *to);
            } else {
                memcpy(to, from, (size_t)used * sizeof *to);
                memset(to + used, 0, (size_t)(width - used) * sizeof *to);
            }
        }
    }
}

static void add_column_sums(float *db, const float *dy, int steps, size_t ld, int n0, int n1)
{
    float sum[LIN_TILE_N] = {0};
    for (int t = 0; t < steps; t++, dy += ld) {
        for (int i = n0; i < n1; i++) sum[i - n0] += dy[i];
    }
    for (int i = n0; i < n1; i++) db[i] += sum[i - n0];
}

void LIN_NAME(lin_linear_tile)(float *dw, float *db, const float *dy, const float *x, int rows, int n, int k, lin_tile tile,
                               float *scratch)
{
    float *const packed_x = scratch, *const packed_dy = scratch + DEPTH * (LIN_TILE_K + LIN_PANEL);
    for (int r = 0; r < rows; r += DEPTH) {
        const int steps = rows - r < DEPTH ? rows - r : DEPTH;
        const float *block_dy = dy + (size_t)r * (size_t)n;
        pack_columns(packed_x, x + (size_t)r * (size_t)k, steps, (size_t)k, tile.k0, tile.k1, LIN_PANEL);
        pack_columns(packed_dy, block_dy, steps, (size_t)n, tile.n0, tile.n1, MAIN_ROWS);
        if (db) add_column_sums(db, block_dy, steps, (size_t)n, tile.n0, tile.n1);
        operands from = {.a_row = 1, .a_step = MAIN_ROWS, .b_step = LIN_PANEL, .steps = steps};
        result to = {.ldy = (size_t)k, .add = 1};
        for (int c = tile.k0; c < tile.k1; c += LIN_PANEL) {
            from.b = packed_x + (size_t)(c - tile.k0) * (size_t)steps;
            to.columns = tile.k1 - c;
            for (int i = tile.n0; i < tile.n1; i += MAIN_ROWS) {
                from.a = packed_dy + (size_t)(i - tile.n0) * (size_t)steps;
                to.y = dw + (size_t)i * (size_t)k + c;
                panel_run(tile.n1 - i < MAIN_ROWS ? tile.n1 - i : MAIN_ROWS, LIN_PANEL, from, to);
            }
        }
    }
}
