/*
 * linear_body.h - the loops of the matrix product, included by linear.c, linear_bf16.c and linear_int8.c, which define, most of
 * it with linear_vectors.h,
 *
 *   LINEAR(name)                   LIN_NAME of the exported functions: rows, turned, tile
 *   PAIRS                          1 if a vector holds pairs of bf16 and vec_fma adds both products of a pair (linear_bf16.c),
 *                                  else 0
 *   TAIL                           0 if not defined. Eight-bit operands (linear_int8.h): the last so many of the k floats of a
 *                                  row of x, and rows of a panel, are not multiplied: they are what vec_scaled takes
 *   vec_scaled(sum, b, b_step, a)  TAIL only: a vector of sums as floats, from the tail of the panel at b and of the row at a
 *   vec_fma(a, b, c)               a b + c
 *   vec_factor                     vset, or a macro: what vec_fma takes as its a
 *   PANEL                          columns of a whole panel of packed weights: 48, or 24 (linear.h)
 *   MAIN_ROWS                      the most rows of a register block
 *   VECS_AT_ONCE                   {0, for 1 row, for 2, ... for MAIN_ROWS}: the most vectors of a panel in a block of that many
 *                                  rows
 *   PANELS_AT_ONCE                 {0, for 1 row, ... for MAIN_ROWS - 1}: whole panels per block when only that many rows, or
 *                                  half as many, are left: few rows have too few independent sums in one panel to hide the
 *                                  latency of additions
 *   FEW_AHEAD                      0, or how many floats ahead weights are prefetched that only 2 to MAIN_ROWS rows use
 *   OWN_TILES                      1 if dw has register blocks of its own, which copy x as they read it, else 0; 1 needs
 *                                  3 LANES = PANEL
 *   BLOCKS(F)                      F(rows, panels, vectors of each panel) for every block that these numbers can lead to
 *
 * Every block computes an output element the same way: sum = +0; sum = fma(a[t], b[t], sum) for t = 0, 1, 2, ...; so its bits do
 * not depend on the block that computes it.
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/linear_vectors.h"

#ifndef vec_factor
#define vec_factor vset
#endif
#ifndef TAIL
#define TAIL 0
#define vec_scaled(sum, b, b_step, a) (sum)
#endif

enum { MAX_BLOCK_ROWS = 8, MAX_BLOCK_VECS = 12, LINE = 16 };

// Floats of the next panel that each step of a group of rows prefetches.
enum { GROUP_FETCHES = MAIN_ROWS * PANEL / LANES < 24 ? 8 : LINE };

// Floats of an expected state that each step of a block prefetches: a line every 24 cycles.
enum { EXPECTED_STEP = MAIN_ROWS * PANEL / LANES < 24 ? LINE / 4 : LINE };

// `steps` products of R values of a with P panels of V vectors of b. Value r of step t is a[r a_row + t a_step]; the values of
// the next R rows are a_next further on. Each step prefetches *ahead and *expected, what a later operation reads, and advances
// them by their steps; where there is nothing to prefetch they are in the cache, since an address that is not mapped is looked up
// each time. `once`: there is one group of rows, so no later rows find the weights in the cache; each step prefetches the weights
// FEW_AHEAD further on instead.
typedef struct operands {
    const float *a, *b, *ahead, *expected;
    size_t a_row, a_step, a_next, b_panel, b_step, ahead_step, expected_step;
    int steps, once;
} operands;

// The destination of the sums: columns 0 .. columns-1 of y; the panel's other columns are not stored.
typedef struct result {
    float *y;
    size_t ldy;
    int columns;
    int add;           // y += sum; else y = max(floor, sum + bias)
    const float *bias; // NULL for none
    float floor;       // 0 for ReLU, else -infinity
} result;

// `groups` times R rows. R, P, V and `once` are literals at every call, so that the sums live in registers.
LIN_INLINE NO_MEMSET void block(const int R, const int P, const int V, const int once, int groups, const operands *from,
                            const result *to)
{
    const float *first = from->a;
    const size_t a_row = from->a_row, a_step = from->a_step, b_panel = from->b_panel, b_step = from->b_step;
    const size_t ahead_step = from->ahead_step, expected_step = from->expected_step, ldy = to->ldy;
    const float *ahead = from->ahead, *expected = from->expected;
    float *y = to->y;
    for (; groups > 0; groups--, first += from->a_next, y += (size_t)R * ldy) {
        vf sum[MAX_BLOCK_ROWS][MAX_BLOCK_VECS];
        const float *a = first, *b = from->b;
        LIN_UNROLL
        for (int r = 0; r < R; r++) {
            LIN_UNROLL
            for (int v = 0; v < P * V; v++) sum[r][v] = vset(0.0f);
        }
        // Prefetch y so that it is in the cache at the end: in a narrow panel at the beginning, in a wide one a row at a time,
        // since 24 lines at once would take up all miss buffers, and loads of b would wait for them.
        const int wide = PANEL != LIN_PANEL_AVX2;
        if (R == MAIN_ROWS && !wide && from->steps >= 64) {
            LIN_UNROLL
            for (int r = 0; r < R; r++) {
                __builtin_prefetch(y + (size_t)r * ldy, 1, 3);
                __builtin_prefetch(y + (size_t)r * ldy + P * V * LANES - 1, 1, 3);
            }
        }
        const int parts = R == MAIN_ROWS && wide && P * V * LANES == PANEL ? R : 0, every = parts ? from->steps / parts : 0;
        const float *soon = y;
        for (int part = parts; part >= 0; part--, soon += ldy) { // the steps after each row's prefetch, then those left over
            if (part > 0) {
                __builtin_prefetch(soon, 1, 3);
                __builtin_prefetch(soon + LINE, 1, 3);
                __builtin_prefetch(soon + PANEL - 1, 1, 3);
            }
            for (int t = part > 0 ? every : from->steps - parts * every; t > 0; t--) {
                vf column[MAX_BLOCK_VECS];
                LIN_UNROLL
                for (int v = 0; v < P * V; v++) column[v] = vload(b + (size_t)(v / V) * b_panel + v % V * LANES);
                LIN_UNROLL
                for (int r = 0; r < R; r++) {
                    vf value = vec_factor(a[(size_t)r * a_row]);
                    LIN_UNROLL
                    for (int v = 0; v < P * V; v++) sum[r][v] = vec_fma(value, column[v], sum[r][v]);
                }
                if (once) {
                    LIN_UNROLL
                    for (int p = 0; p < P; p++) {
                        const float *later = b + (size_t)p * b_panel + FEW_AHEAD;
                        __builtin_prefetch(later, 0, 2);
                        if (V * LANES > LINE) __builtin_prefetch(later + LINE, 0, 2);
                    }
                } else if (R == MAIN_ROWS) {
                    __builtin_prefetch(ahead, 0, 2); // a step of other blocks is too short to hide the prefetch
                    __builtin_prefetch(expected, 0, 2);
                }
                expected += expected_step;
                ahead += ahead_step;
                a += a_step;
                b += b_step;
            }
        }
        const vf lowest = vset(to->floor);
        LIN_UNROLL
        for (int v = 0; v < P * V; v++) {
            const int c = v / V * PANEL + v % V * LANES, left = to->columns - c;
            const float *const tail = b + (size_t)(v / V) * b_panel + v % V * LANES; // behind the last step, as is a
            float *out = y + c;
            (void)tail;
            if (left <= 0) continue;
            if (left >= LANES) {
                if (to->add) {
                    LIN_UNROLL
                    for (int r = 0; r < R; r++, out += ldy) vstore(out, vload(out) + sum[r][v]);
                } else {
                    vf bias = to->bias ? vload(to->bias + c) : vset(-0.0f); // x + -0 is x, including the sign of zero
                    LIN_UNROLL
                    for (int r = 0; r < R; r++, out += ldy) {
                        const vf y_r = vec_scaled(sum[r][v], tail, b_step, a + (size_t)r * a_row);
                        vstore(out, vmax(lowest, y_r + bias));
                    }
                }
            } else if (to->add) {
                LIN_UNROLL
                for (int r = 0; r < R; r++, out += ldy) vstore_n(out, vload_n(out, left) + sum[r][v], left);
            } else {
                vf bias = to->bias ? vload_n(to->bias + c, left) : vset(-0.0f);
                LIN_UNROLL
                for (int r = 0; r < R; r++, out += ldy) {
                    const vf y_r = vec_scaled(sum[r][v], tail, b_step, a + (size_t)r * a_row);
                    vstore_n(out, vmax(lowest, y_r + bias), left);
                }
            }
        }
    }
}

#define BLOCK_DEFINE(R, P, V)                                                                                                    \
    static __attribute__((noinline)) NO_MEMSET void block_##R##_##P##_##V(int groups, const operands *from, const result *to)    \
    {                                                                                                                            \
        if (FEW_AHEAD && R > 1 && from->once) block(R, P, V, 1, 1, from, to);                                                    \
        else block(R, P, V, 0, groups, from, to);                                                                                \
    }
BLOCKS(BLOCK_DEFINE)

static void block_run(int rows, int panels, int vecs, int groups, const operands *from, const result *to)
{
#define BLOCK_CASE(R, P, V)                                                                                                      \
    case (R * 16 + P) * 16 + V:                                                                                                  \
        block_##R##_##P##_##V(groups, from, to);                                                                                 \
        break;
    switch ((rows * 16 + panels) * 16 + vecs) {
        BLOCKS(BLOCK_CASE)
    default:
        break;
    }
}

static const unsigned char vecs_at_once[MAIN_ROWS + 1] = VECS_AT_ONCE, panels_at_once[MAIN_ROWS] = PANELS_AT_ONCE;

// One panel times `groups` times `rows` <= MAIN_ROWS rows, in parts of as many vectors as the registers hold.
static void panel_run(int rows, int groups, int width, const operands *all, const result *whole)
{
    const int most = vecs_at_once[rows], columns = whole->columns < width ? whole->columns : width;
    int left = (columns + LANES - 1) / LANES;
    if (left <= most) {
        block_run(rows, 1, left, groups, all, whole);
        return;
    }
    operands from = *all;
    result to = *whole;
    to.columns = columns;
    for (int vecs; left > 0; left -= vecs) {
        // Four vectors are split two and two, not three and one: one vector alone does not keep the multipliers busy.
        vecs = left < most ? left : left == most + 1 && most > 2 ? most - 1 : most;
        block_run(rows, 1, vecs, groups, &from, &to);
        from.b += vecs * LANES;
        to.y += vecs * LANES;
        if (to.bias) to.bias += vecs * LANES;
        to.columns -= vecs * LANES;
    }
}

// `rows` < MAIN_ROWS rows times the panels of columns first .. end-1, several panels at once if the rows alone would not fill the
// registers.
static void few_columns(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k, int first,
                        int end, operands from, result to)
{
    from.a = x;
    from.once = 1;
    for (int c = first, width; c < end && rows; c += width) {
        int panels = panels_at_once[rows];
        for (; panels > 1; panels /= 2) { // if the last of them is whole, so are those before it
            const int last = c + (panels - 1) * PANEL;
            if (last < n && lin_panel_width(n, last, PANEL) == PANEL) break;
        }
        width = lin_panel_width(n, c, PANEL);
        from.b = packed + (size_t)c * (size_t)k;
        from.b_step = (size_t)width;
        to.bias = bias ? bias + c : NULL;
        to.columns = n - c;
        to.y = y + c;
        if (panels > 1) {
            block_run(rows, panels, PANEL / LANES, 1, &from, &to);
            width = panels * PANEL;
        } else {
            panel_run(rows, 1, width, &from, &to);
        }
    }
}

// Lets `steps` steps prefetch an expected state, if there is one.
static void take_expected(lin_expected *e, size_t steps, operands *from)
{
    while (e && e->b < e->B && (e->done >= e->count || !e->states[e->b])) {
        e->b++;
        e->done = 0;
    }
    from->expected_step = 0;
    from->expected = from->b;
    if (!e || e->b >= e->B) return;
    const size_t left = e->count - e->done;
    from->expected = e->states[e->b] + e->at + e->done;
    from->expected_step = left < steps * EXPECTED_STEP ? (left + steps - 1) / steps : EXPECTED_STEP;
    e->done += steps * from->expected_step;
}

void LINEAR(rows)(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int k, lin_activation act,
                  lin_expected *expected)
{
    int rest = rows % MAIN_ROWS, whole = rows - rest, before = 0;
    // 9 rows are split 5 and 4, not 8 and 1: a single row waits for loads of the weights.
    if (whole && rest && rest < MAIN_ROWS / 2) {
        whole -= MAIN_ROWS;
        before = (MAIN_ROWS + rest + 1) / 2;
        rest = MAIN_ROWS + rest - before;
    }
    operands from = {.a_row = (size_t)k, .a_step = 1, .b_panel = (size_t)PANEL * (size_t)k, .steps = k - TAIL};
    result to = {.ldy = (size_t)n, .floor = act == LIN_RELU ? 0.0f : -INFINITY};
    from.a_next = (size_t)MAIN_ROWS * (size_t)k;
    from.ahead = x;
    for (int c = 0, width; c < n && whole; c += width) { // in this order a panel stays in the cache during all rows
        width = lin_panel_width(n, c, PANEL);
        // The first rows of this panel prefetch the next panel, GROUP_FETCHES floats per step. The others, in the first panel,
        // prefetch the rows after them, which follow in memory.
        const int groups = whole / MAIN_ROWS, next = c + width < n ? lin_panel_width(n, c + width, PANEL) : 0;
        const int some = (next + GROUP_FETCHES - 1) / GROUP_FETCHES, prefetching = groups < some ? groups : some;
        from.b = packed + (size_t)c * (size_t)k;
        from.b_step = (size_t)width;
        from.once = groups == 1;
        to.bias = bias ? bias + c : NULL;
        to.columns = n - c;
        to.y = y + c;
        from.a = x;
        for (int g = 0, several; g < groups; g += several) {
            several = groups - g;
            from.ahead = from.b; // already in the cache
            from.ahead_step = 0;
            if (g < prefetching) {
                several = prefetching;
                from.ahead = from.b + (size_t)width * (size_t)k;
                from.ahead_step = groups < some ? LINE : GROUP_FETCHES;
            } else if (c == 0 && several > 1) {
                several--;
                from.ahead = from.a + from.a_next;
                from.ahead_step = MAIN_ROWS;
            }
            take_expected(expected, (size_t)several * (size_t)k, &from);
            panel_run(MAIN_ROWS, several, width, &from, &to);
            from.a += (size_t)several * from.a_next;
            to.y += (size_t)several * MAIN_ROWS * to.ldy;
        }
    }
    few_columns(y + (size_t)whole * (size_t)n, x + (size_t)whole * (size_t)k, packed, bias, before, n, k, 0, n, from, to);
    whole += before;
    few_columns(y + (size_t)whole * (size_t)n, x + (size_t)whole * (size_t)k, packed, bias, rest, n, k, 0, n, from, to);
}

#if !PAIRS && !TAIL
void LINEAR(turned)(float *y, const float *x, const float *packed, int rows, int n, int k, int backwards)
{
    enum { SPAN = 4 * PANEL }; // as many panels as a block of one row
    if (rows >= MAIN_ROWS || !backwards) {
        LINEAR(rows)(y, x, packed, NULL, rows, n, k, LIN_LINEAR, NULL);
        return;
    }
    const operands from = {.a_row = (size_t)k, .a_step = 1, .b_panel = (size_t)PANEL * (size_t)k, .steps = k, .ahead = x};
    const result to = {.ldy = (size_t)n, .floor = -INFINITY};
    int first = (n - 1) / SPAN * SPAN, end = n;
    if (first > 0 && n - first <= LIN_COLUMN_GROUP) first -= SPAN; // no panel may begin at the last 16 columns (linear.h)
    for (; first >= 0; end = first, first -= SPAN) few_columns(y, x, packed, NULL, rows, n, k, first, end, from, to);
}
#endif

#if !TAIL
/* ---- backward: a rectangle of dw ------------------------------------------------------------------------------------------- */

// A step of a block takes ROWS_A_STEP rows of dy and x. DEPTH rows are summed in registers before they are added to dw: fixed,
// since the bits of dw depend on it.
enum { ROWS_A_STEP = PAIRS ? 2 : 1, STEPS = 192, DEPTH = STEPS * ROWS_A_STEP };

// A block prefetches a line after so many steps. One after each step of the narrow blocks would be more than memory gives: the
// lines under way would take up all miss buffers, and the block's own loads would wait for them.
enum { AHEAD_EVERY = OWN_TILES ? 4 : 1, AHEAD_ROWS = STEPS / AHEAD_EVERY };

#if PAIRS // pack_x and pack_dy are those of the file that includes this one
// Zeros for the rows cuts[i] - 1 of those from `first` on that pack_dy has packed; returns the first cut behind them.
static int pack_cuts(float *packed, const lin_tile *tile, int cut, int first, int rows)
{
    const size_t stride = (size_t)(rows + 1) / 2 * MAIN_ROWS;
    for (; cut < tile->n_cuts && tile->cuts[cut] <= first + rows; cut++) {
        const int r = tile->cuts[cut] - 1 - first;
        if (r < 0) continue;
        unsigned char *half = (unsigned char *)(packed + (size_t)(r / 2) * MAIN_ROWS) + r % 2 * 2;
        for (int i = tile->n0; i < tile->n1; i += MAIN_ROWS, half += stride * sizeof *packed)
            for (size_t j = 0; j < MAIN_ROWS; j++) memset(half + j * sizeof *packed, 0, 2);
    }
    return cut;
}
#else
// The values of dy that one step of a block uses.
typedef float tile_row __attribute__((vector_size(4 * MAIN_ROWS), aligned(4), may_alias));

enum { TILES = LIN_PANEL / MAIN_ROWS };

// The first `columns` columns of x as a panel [rows, PANEL], the others zero.
static void pack_x(float *packed, const float *x, int rows, size_t ld, int columns)
{
    if (columns >= PANEL) {
        for (int t = 0; t < rows; t++, x += ld, packed += PANEL) {
            LIN_UNROLL
            for (int v = 0; v < PANEL / LANES; v++) vstore(packed + v * LANES, vload(x + v * LANES));
        }
        return;
    }
    for (int t = 0; t < rows; t++, x += ld, packed += PANEL) {
        memcpy(packed, x, (size_t)columns * sizeof *packed);
        memset(packed + columns, 0, (size_t)(PANEL - columns) * sizeof *packed);
    }
}

// Columns of dy as tiles [rows, MAIN_ROWS], with zeros for the missing columns of the last one; db, if not NULL, += their sums.
static void pack_dy(float *packed, float *db, const float *dy, int rows, size_t ld, int columns)
{
    const size_t stride = (size_t)rows * MAIN_ROWS;
    for (; columns >= LIN_PANEL; columns -= LIN_PANEL, dy += LIN_PANEL, packed += LIN_PANEL * (size_t)rows) {
        tile_row sum[TILES] = {{0}};
        const float *from = dy;
        for (int t = 0; t < rows; t++, from += ld) {
            LIN_UNROLL
            for (int i = 0; i < TILES; i++) {
                const tile_row row = *(const tile_row *)(from + i * MAIN_ROWS);
                *(tile_row *)(packed + (size_t)i * stride + (size_t)t * MAIN_ROWS) = row;
                sum[i] += row;
            }
        }
        if (!db) continue;
        LIN_UNROLL
        for (int i = 0; i < TILES; i++) *(tile_row *)(db + i * MAIN_ROWS) += sum[i];
        db += LIN_PANEL;
    }
    for (; columns >= MAIN_ROWS; columns -= MAIN_ROWS, dy += MAIN_ROWS, packed += stride) {
        tile_row sum = {0};
        const float *from = dy;
        for (int t = 0; t < rows; t++, from += ld) {
            const tile_row row = *(const tile_row *)from;
            *(tile_row *)(packed + (size_t)t * MAIN_ROWS) = row;
            sum += row;
        }
        if (!db) continue;
        *(tile_row *)db += sum;
        db += MAIN_ROWS;
    }
    if (columns == 0) return;
    float sum[MAIN_ROWS] = {0};
    for (int t = 0; t < rows; t++, dy += ld, packed += MAIN_ROWS) {
        for (int i = 0; i < columns; i++) sum[i] += packed[i] = dy[i];
        for (int i = columns; i < MAIN_ROWS; i++) packed[i] = 0;
    }
    for (int i = 0; db && i < columns; i++) db[i] += sum[i];
}

// Zeros for the rows cuts[i] - 1 of those from `first` on that pack_dy has packed; returns the first cut behind them.
static int pack_cuts(float *packed, const lin_tile *tile, int cut, int first, int rows)
{
    for (; cut < tile->n_cuts && tile->cuts[cut] <= first + rows; cut++) {
        if (tile->cuts[cut] <= first) continue;
        float *row = packed + (size_t)(tile->cuts[cut] - 1 - first) * MAIN_ROWS;
        for (int i = tile->n0; i < tile->n1; i += MAIN_ROWS, row += (size_t)rows * MAIN_ROWS)
            memset(row, 0, MAIN_ROWS * sizeof *row);
    }
    return cut;
}
#endif

// What the calls for one panel prefetch: columns of cache lines, in pieces of AHEAD_ROWS rows.
typedef struct lines {
    const float *x, *dy; // the first column of each
    size_t ldx, ldy;
    int of_x, of_dy, calls; // columns, and calls for the panel
    int piece, share;       // the next piece; all pieces divided among the calls so far, modulo `calls`
} lines;

// Where the next call prefetches, if it does, and the distance of rows there. The calls for a panel cover all its pieces, evenly.
static const float *look_ahead(lines *next, size_t *ahead_step)
{
    enum { PIECES = DEPTH / AHEAD_ROWS };
    next->share += (next->of_x + next->of_dy) * PIECES;
    if (next->share < next->calls) return NULL;
    next->share -= next->calls;
    const int column = next->piece / PIECES, row = next->piece % PIECES * AHEAD_ROWS;
    next->piece++;
    if (column < next->of_x) {
        *ahead_step = next->ldx;
        return next->x + column * LINE + (size_t)row * next->ldx;
    }
    *ahead_step = next->ldy;
    return next->dy + (column - next->of_x) * LINE + (size_t)row * next->ldy;
}

// During panel p of x: the next panel, which may be the first one of the next block of rows, and a share of the next block of dy.
// More would push out of a second-level cache of 512 KB what this block needs. Only whole blocks are prefetched, so that no
// address is outside.
static void look_from(lines *next, const lin_tile *tile, const float *x, const float *dy, int p, int panels, int whole, int more)
{
    const int width = tile->k1 - tile->k0, last = p == panels - 1, lines_of_dy = (tile->n1 - tile->n0) / LINE;
    const int c = last ? 0 : (p + 1) * PANEL, columns = c + PANEL < width ? c + PANEL : width;
    const int first = (c + LINE - 1) / LINE, end = (columns + LINE - 1) / LINE;
    const int first_dy = p * lines_of_dy / panels, end_dy = (p + 1) * lines_of_dy / panels;
    next->piece = next->share = 0;
    next->of_x = next->of_dy = 0;
    if (last ? more : whole) {
        next->x = x + (last ? (size_t)DEPTH * tile->ldx : 0) + first * LINE;
        next->of_x = end > first ? end - first : 0;
    }
    if (more) {
        next->dy = dy + (size_t)DEPTH * tile->ldy + first_dy * LINE;
        next->of_dy = end_dy - first_dy;
    }
}

#if OWN_TILES
// `steps` steps of a block: sums of MAIN_ROWS rows and V vectors.
LIN_INLINE void dw_steps(const int V, const int copying, const int steps, vf sum[MAIN_ROWS][MAX_BLOCK_VECS], const float *a,
                     const float *b, size_t ldb, float *copy)
{
    LIN_UNROLL
    for (int t = 0; t < steps; t++, a += MAIN_ROWS, b += ldb) {
        vf column[MAX_BLOCK_VECS];
        LIN_UNROLL
        for (int v = 0; v < V; v++) {
            column[v] = vload(b + v * LANES);
            if (copying) vstore(copy + t * PANEL + v * LANES, column[v]);
        }
        LIN_UNROLL
        for (int r = 0; r < MAIN_ROWS; r++) {
            const vf value = vec_factor(a[r]);
            LIN_UNROLL
            for (int v = 0; v < V; v++) sum[r][v] = vec_fma(value, column[v], sum[r][v]);
        }
    }
}

// dw of MAIN_ROWS rows and V vectors += a tile of dy [steps, MAIN_ROWS] times b [steps, ldb].
LIN_INLINE NO_MEMSET void dw_block(const int V, const int copying, float *dw, size_t ldw, const float *a, const float *b,
                                   size_t ldb, float *copy, int steps, const float *ahead, size_t ahead_step)
{
    vf sum[MAIN_ROWS][MAX_BLOCK_VECS];
    LIN_UNROLL
    for (int r = 0; r < MAIN_ROWS; r++) {
        LIN_UNROLL
        for (int v = 0; v < V; v++) sum[r][v] = vset(0.0f);
        __builtin_prefetch(dw + (size_t)r * ldw, 1, 3);
        __builtin_prefetch(dw + (size_t)r * ldw + V * LANES - 1, 1, 3);
    }
    for (; steps >= AHEAD_EVERY; steps -= AHEAD_EVERY, a += AHEAD_EVERY * MAIN_ROWS, b += AHEAD_EVERY * ldb) {
        dw_steps(V, copying, AHEAD_EVERY, sum, a, b, ldb, copy);
        __builtin_prefetch(ahead, 0, 2);
        ahead += ahead_step;
        if (copying) copy += AHEAD_EVERY * PANEL;
    }
    for (; steps > 0; steps--, a += MAIN_ROWS, b += ldb) {
        dw_steps(V, copying, 1, sum, a, b, ldb, copy);
        if (copying) copy += PANEL;
    }
    LIN_UNROLL
    for (int r = 0; r < MAIN_ROWS; r++, dw += ldw) {
        LIN_UNROLL
        for (int v = 0; v < V; v++) vstore(dw + v * LANES, vload(dw + v * LANES) + sum[r][v]);
    }
}

// V vectors of columns of dw: `tiles` blocks. The first one copies the panel b to `copy` [steps, PANEL] as it reads it, for the
// others: of rows 3 KB apart only few fit into a cache of 8 ways.
LIN_INLINE NO_MEMSET void dw_panel(const int V, const result *to, const operands *from, float *copy, int tiles, lines *next)
{
    const float *a = from->a, *b = from->b;
    float *dw = to->y;
    for (int i = 0; i < tiles; i++, a += from->a_next, dw += MAIN_ROWS * to->ldy) {
        size_t step = 0;
        const float *ahead = look_ahead(next, &step);
        if (!ahead) ahead = b; // already in the cache
        if (i == 0) {
            dw_block(V, 1, dw, to->ldy, a, b, from->b_step, copy, from->steps, ahead, step);
            b = copy;
        } else {
            dw_block(V, 0, dw, to->ldy, a, b, PANEL, NULL, from->steps, ahead, step);
        }
    }
}

static __attribute__((noinline)) NO_MEMSET void dw_panel_2(const result *to, const operands *from, float *copy, int tiles,
                                                            lines *next)
{
    dw_panel(2, to, from, copy, tiles, next);
}

static __attribute__((noinline)) NO_MEMSET void dw_panel_3(const result *to, const operands *from, float *copy, int tiles,
                                                            lines *next)
{
    dw_panel(3, to, from, copy, tiles, next);
}
#endif

// The tiles of one panel of x, which is read in place or from its copy; *from and *to advance to the rows that are left over.
static void tiles_run(operands *from, result *to, float *copy, int tiles, lines *next)
{
#if OWN_TILES
    if (tiles > 0 && from->b != copy && to->columns > LANES) {
        (to->columns >= PANEL ? dw_panel_3 : dw_panel_2)(to, from, copy, tiles, next);
        from->b = copy;
        from->b_step = PANEL;
        from->a += (size_t)tiles * from->a_next;
        to->y += (size_t)tiles * MAIN_ROWS * to->ldy;
        tiles = 0;
    }
#else
    (void)copy;
#endif
    for (int i = 0; i < tiles; i++) {
        from->ahead = AHEAD_EVERY > 1 ? NULL : look_ahead(next, &from->ahead_step);
        if (!from->ahead) {
            from->ahead = from->b; // already in the cache
            from->ahead_step = 0;
        }
        panel_run(MAIN_ROWS, 1, PANEL, from, to);
        from->a += from->a_next;
        to->y += MAIN_ROWS * to->ldy;
    }
}

void LINEAR(tile)(float *dw, float *db, const float *dy, const float *x, int rows, lin_tile tile, float *scratch)
{
    const int height = tile.n1 - tile.n0, width = tile.k1 - tile.k0;
    const int tiles = height / MAIN_ROWS, rest = height % MAIN_ROWS, panels = (width + PANEL - 1) / PANEL;
    float *const packed_dy = scratch, *const packed_x = scratch + STEPS * (LIN_TILE_N + MAIN_ROWS);
    lines next = {.ldx = tile.ldx, .ldy = tile.ldy, .calls = tiles};
    for (int r = 0, cut = 0; r < rows; r += DEPTH) {
        const int now = rows - r < DEPTH ? rows - r : DEPTH, steps = (now + ROWS_A_STEP - 1) / ROWS_A_STEP;
        const float *block_x = x + (size_t)r * tile.ldx + tile.k0, *block_dy = dy + (size_t)r * tile.ldy + tile.n0;
        pack_dy(packed_dy, db ? db + tile.n0 : NULL, block_dy, now, tile.ldy, height);
        cut = pack_cuts(packed_dy, &tile, cut, r, now);
        operands from = {.a_row = 1, .a_step = MAIN_ROWS, .a_next = (size_t)steps * MAIN_ROWS, .steps = steps};
        result to = {.ldy = tile.ldw, .add = 1};
        for (int p = 0; p < panels; p++) {
            const int c = p * PANEL, left = width - c;
            const int in_place = !PAIRS && (left >= PANEL || left % LANES == 0); // no vector may reach past the end of x
            if (!in_place) pack_x(packed_x, block_x + c, now, tile.ldx, left);
            from.b = from.expected = in_place ? block_x + c : packed_x;
            from.b_step = in_place ? tile.ldx : PANEL;
            from.a = packed_dy;
            to.columns = left;
            to.y = dw + (size_t)tile.n0 * tile.ldw + tile.k0 + c;
            look_from(&next, &tile, block_x, block_dy, p, panels, now == DEPTH, rows - r >= 2 * DEPTH);
            tiles_run(&from, &to, packed_x, tiles, &next);
            from.ahead = from.b;
            from.ahead_step = 0;
            if (rest) panel_run(rest, 1, PANEL, &from, &to);
        }
    }
}
#endif
