/*
 * softmax_attention.c - softmax attention in tiles, and with all scores in memory; a work item is some rows of one head of one
 * utterance.
 *
 * Queries lie in the lanes of the vectors: a block of queries is transposed once, [E, queries], and then meets the keys in tiles
 * of LIN_SOFTMAX_TILE, each of which is a small matrix product S = K Qᵀ [keys, queries], the exponentials with the running
 * maximum and sum of each lane (Milakov & Gimelshein 2018; Dao et al. 2022), and a product Oᵀ += Vᵀ P. No pass needs a sum across
 * the lanes, keys and values are read in place, and the bits of a query depend only on its own values and on the keys up to it:
 * tiles begin at multiples of LIN_SOFTMAX_TILE from the utterance's first frame, cached frames included, and every sum runs in
 * the order of the keys.
 *
 * At most four queries, as of a live stream, have a path of their own with the keys in the lanes and the same sums. A key that
 * a query does not see has the weight 0, so a value that is not finite may reach up to 63 frames before its own.
 *
 * Scores are in units of ln 2: queries are multiplied by log2(e) / sqrt(E), and exponentials are powers of two.
 *
 * With all scores in memory each step runs over the whole of p [T, T] before the next begins: the scores, their softmax, the
 * product with the values. Panels of the right-hand matrices are packed into scratch.
 */
#include <math.h>
#include <string.h>

#include "paper/cpu/softmax_products.h"

/* LIN_SOFTMAX_CHUNK: rows of a work item, a multiple of every block of queries. */
enum { LIN_SOFTMAX_TILE = 64, LIN_SOFTMAX_CHUNK = 192 };

/* One head of one utterance. Frame i of q, dq: + i stride; of y, dy: + i width; of lse: + i H. Frame j of k, v, dk, dv: + j
 * stride_k; the first `past` of them have no query. Pointers that a pass does not use are not read. */
typedef struct lin_softmax_head {
    int T, past, E, causal;
    size_t stride, stride_k, width, H;
    const float *q, *k, *v, *y, *dy, *lse;
    float *y_out, *lse_out, *dq, *dk, *dv;
} lin_softmax_head;

/* y_out, and lse_out if it is not NULL, of rows first .. end-1. */
LIN_DISPATCH_DECLARE(void, lin_softmax_rows_forward, (const lin_softmax_head *head, int first, int end, float *scratch));

/* Frames first .. end-1 (multiples of LIN_SOFTMAX_CHUNK, or T) of dq, of dk and dv, or, LIN_SOFTMAX_ALL, all three of all frames.
 * All ways give the same bits. past is 0. */
typedef enum lin_softmax_part { LIN_SOFTMAX_ALL, LIN_SOFTMAX_QUERIES, LIN_SOFTMAX_KEYS } lin_softmax_part;
LIN_DISPATCH_DECLARE(void, lin_softmax_part_backward,
                     (const lin_softmax_head *head, lin_softmax_part part, int first, int end, float *scratch));

/* With all scores in memory, p [T, T]; the backward pass leaves dL/ds there. */
LIN_DISPATCH_DECLARE(void, lin_softmax_naive_head_forward, (const lin_softmax_head *head, float *p, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_softmax_naive_head_backward, (const lin_softmax_head *head, float *p, float *scratch));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

enum {
    TILE = LIN_SOFTMAX_TILE,
    BLOCK_QUERIES = BLOCK_VECTORS * LIN_WIDTH,
    MOST_BLOCKS = LIN_SOFTMAX_CHUNK / BLOCK_QUERIES, // that meet a tile of keys while it is in the cache; E up to 256 fits
    FEW = 4
};
_Static_assert(LIN_SOFTMAX_CHUNK % BLOCK_QUERIES == 0, "the blocks of queries of a work item are those of the utterance");

// The scale of queries, and that of gradients.
LIN_INLINE float query_scale(int E) { return (float)(1.4426950408889634 / sqrt(E)); }
LIN_INLINE float gradient_scale(int E) { return (float)(1 / sqrt(E)); }

// Lane i of the vectors from lane c on, as floats.
LIN_INLINE vf lane_numbers(int c)
{
    float numbers[LIN_WIDTH];
    for (int i = 0; i < LIN_WIDTH; i++) numbers[i] = (float)(c + i);
    return vload(numbers);
}

// Frames that the queries up to row i - 1 see.
LIN_INLINE int seen(const lin_softmax_head *x, int i) { return x->past + (x->causal ? i : x->T); }

/* Scores [n, lanes] of keys first .. first+n-1: those that a query does not see become -inf. Query 0 is frame `frame`. */
LIN_INLINE void mask(float *s, size_t lanes, int n, int first, int frame)
{
    for (int j = first > frame ? 0 : frame + 1 - first; j < n; j++)
        for (size_t c = 0; c < lanes; c += LIN_WIDTH) {
            const vf hidden = vset((float)(first + j - frame)); // lanes before this one do not see the key
            float *at = s + (size_t)j * lanes + c;
            vstore(at, vblend(vgt(hidden, lane_numbers((int)c)), vset(-INFINITY), vload(at)));
        }
}

/* Scores [n, lanes] become powers of two, relative to the maximum of the keys so far; top, sum and factor [lanes]: that maximum,
 * the sum of the powers, and what earlier sums are multiplied by. */
LIN_INLINE void exponentials(float *s, size_t lanes, int n, float *top, float *sum, float *factor, int C)
{
    vf most[BLOCK_VECTORS], total[BLOCK_VECTORS];
    LIN_UNROLL
    for (int c = 0; c < C; c++) most[c] = vload(top + c * LIN_WIDTH);
    for (int j = 0; j < n; j++)
        LIN_UNROLL
        for (int c = 0; c < C; c++) most[c] = vmax(most[c], vload(s + (size_t)j * lanes + c * LIN_WIDTH));
    LIN_UNROLL
    for (int c = 0; c < C; c++) {
        const vf scale = power_of_two(vload(top + c * LIN_WIDTH) - most[c]);
        vstore(factor + c * LIN_WIDTH, scale);
        vstore(top + c * LIN_WIDTH, most[c]);
        total[c] = vrounded(vload(sum + c * LIN_WIDTH) * scale);
    }
    for (int j = 0; j < n; j++)
        LIN_UNROLL
        for (int c = 0; c < C; c++) {
            float *at = s + (size_t)j * lanes + c * LIN_WIDTH;
            const vf power = power_of_two(vload(at) - most[c]);
            vstore(at, power);
            total[c] += power;
        }
    LIN_UNROLL
    for (int c = 0; c < C; c++) vstore(sum + c * LIN_WIDTH, total[c]);
}

static __attribute__((noinline)) void exponentials_of(float *s, size_t lanes, int n, float *top, float *sum,
                                                      float *factor)
{
    const int C = (int)lanes / LIN_WIDTH;
    if (C == 1) exponentials(s, lanes, n, top, sum, factor, 1);
    if (C == 2) exponentials(s, lanes, n, top, sum, factor, 2);
#if BLOCK_VECTORS > 2
    if (C == 3) exponentials(s, lanes, n, top, sum, factor, 3);
#endif
}

// A block of queries, n from row i on: transposed, with the running sums of each lane.
typedef struct block_state {
    int i, n, lanes;
    float *q, *out, *top, *sum, *factor;
} block_state;

// Returns the scratch behind the block.
static float *begin_block(block_state *b, const lin_softmax_head *x, int i, int n, float *scratch)
{
    const size_t lanes = (size_t)vround(n), matrix = (size_t)x->E * lanes;
    *b = (block_state){.i = i, .n = n, .lanes = vround(n), .q = scratch, .out = scratch + matrix};
    b->top = b->out + matrix;
    b->sum = b->top + lanes;
    b->factor = b->sum + lanes;
    pack_columns(b->q, lanes, x->q + (size_t)i * x->stride, x->stride, n, x->E, query_scale(x->E));
    for (int c = 0; c < b->lanes; c += LIN_WIDTH) {
        vstore(b->top + c, vset(-INFINITY));
        vstore(b->sum + c, (vf){0});
    }
    return b->factor + lanes;
}

// The tile of keys from j on; s has room for its scores.
static void forward_tile(block_state *b, const lin_softmax_head *x, int j, float *s)
{
    const int keys = least(TILE, seen(x, b->i + b->n) - j);
    const size_t at = (size_t)j * x->stride_k, pitch = (size_t)b->lanes;
    multiply(&(matmul){.out = s, .a = x->k + at, .b = b->q, .out_stride = pitch, .a_stride = x->stride_k,
                                            .b_stride = pitch, .rows = keys, .columns = b->lanes, .inner = x->E});
    if (x->causal) mask(s, pitch, keys, j, x->past + b->i);
    exponentials_of(s, pitch, keys, b->top, b->sum, b->factor);
    multiply_t(&(matmul){.out = b->out, .a = x->v + at, .b = s, .factor = j ? b->factor : NULL,
                                              .out_stride = pitch, .a_stride = x->stride_k, .b_stride = pitch, .rows = x->E,
                                              .columns = b->lanes, .inner = keys, .add = j > 0});
}

static void end_block(const block_state *b, const lin_softmax_head *x)
{
    for (int c = 0; c < b->n && x->lse_out; c++)
        x->lse_out[(size_t)(b->i + c) * x->H] = (b->top[c] + log2f(b->sum[c])) * 0x1.62e43p-1f;
    for (int c = 0; c < b->lanes; c += LIN_WIDTH) vstore(b->factor + c, 1.0f / vload(b->sum + c));
    unpack_columns(x->y_out + (size_t)b->i * x->width, x->width, b->out, (size_t)b->lanes, b->n, x->E, b->factor);
}

// Rows first .. end-1: at most MOST_BLOCKS blocks.
static void forward_blocks(const lin_softmax_head *x, int first, int end, float *scratch)
{
    block_state blocks[MOST_BLOCKS];
    int n = 0;
    for (int i = first; i < end; i += BLOCK_QUERIES)
        scratch = begin_block(&blocks[n++], x, i, least(BLOCK_QUERIES, end - i), scratch);
    for (int j = 0; j < seen(x, end); j += TILE)
        for (int b = 0; b < n; b++)
            if (j < seen(x, blocks[b].i + blocks[b].n)) forward_tile(&blocks[b], x, j, scratch);
    for (int b = 0; b < n; b++) end_block(&blocks[b], x);
}

/* ---- a few queries: keys in the lanes -------------------------------------------------------------------------------------- */

// A live stream has some rows at a time, fewer than a vector has lanes. Their scores are computed with the keys in the lanes and
// their values with the columns of v in the lanes; each sum has the terms and the order of forward_tile, so the bits are the
// same.

LIN_INLINE float largest(const float *s, int n)
{
    vf most = vload(s);
    for (int j = LIN_WIDTH; j < n; j += LIN_WIDTH) most = vmax(most, vload(s + j));
    return vsum_max(most);
}

/* out [R, columns c .. c+C vectors] = out factor + p v over n keys; with `sum`, also sum = sum factor + the sum of p. */
LIN_INLINE void few_values(float *out, size_t Ep, const float *p, const float *v, size_t stride, int n,
                           const float *factor, float *sum, int R, int C)
{
    vf acc[FEW][2], total[FEW];
    LIN_UNROLL
    for (int r = 0; r < R; r++) {
        total[r] = sum ? vrounded(vset(sum[r]) * factor[r]) : vset(0);
        LIN_UNROLL
        for (int c = 0; c < C; c++) acc[r][c] = vrounded(vload(out + (size_t)r * Ep + c * LIN_WIDTH) * factor[r]);
    }
    for (int j = 0; j < n; j++, v += stride) {
        vf value[2];
        LIN_UNROLL
        for (int c = 0; c < C; c++) value[c] = vload(v + c * LIN_WIDTH);
        LIN_UNROLL
        for (int r = 0; r < R; r++) {
            const vf power = vset(p[r * TILE + j]);
            if (sum) total[r] += power;
            LIN_UNROLL
            for (int c = 0; c < C; c++) acc[r][c] = vfma(power, value[c], acc[r][c]);
        }
    }
    LIN_UNROLL
    for (int r = 0; r < R; r++) {
        if (sum) vstore_n(sum + r, total[r], 1);
        LIN_UNROLL
        for (int c = 0; c < C; c++) vstore(out + (size_t)r * Ep + c * LIN_WIDTH, acc[r][c]);
    }
}

static __attribute__((noinline)) void few_values_of(float *out, int Ep, const float *p, const float *v, size_t stride,
                                                    int n, const float *factor, float *sum, int R)
{
    const size_t pitch = (size_t)Ep;
    int c = 0;
    for (; c + 2 * LIN_WIDTH <= Ep; c += 2 * LIN_WIDTH, sum = NULL) {
        if (R == 1) few_values(out + c, pitch, p, v + c, stride, n, factor, sum, 1, 2);
        if (R == 2) few_values(out + c, pitch, p, v + c, stride, n, factor, sum, 2, 2);
        if (R == 4) few_values(out + c, pitch, p, v + c, stride, n, factor, sum, 4, 2);
    }
    if (c == Ep) return;
    if (R == 1) few_values(out + c, pitch, p, v + c, stride, n, factor, sum, 1, 1);
    if (R == 2) few_values(out + c, pitch, p, v + c, stride, n, factor, sum, 2, 1);
    if (R == 4) few_values(out + c, pitch, p, v + c, stride, n, factor, sum, 4, 1);
}

// Rows of p [R, TILE]: scores of keys first .. first+n-1 become powers of two, 0 for keys that a row does not see; row 0 sees
// `seen` keys.
LIN_INLINE void few_powers(float *p, int first, int n, int seen, float *top, float *factor, int R)
{
    float most[LIN_WIDTH] = {0};
    for (int r = 0; r < R; r++) {
        float *row = p + r * TILE;
        for (int j = least(n, seen + r - first); j < vround(n); j++)
            if (j >= 0) row[j] = -INFINITY;
        most[r] = largest(row, n);
        most[r] = top[r] > most[r] ? top[r] : most[r];
    }
    vstore(factor, power_of_two(vload(top) - vload(most)));
    memcpy(top, most, (size_t)R * sizeof *top);
    for (int r = 0; r < R; r++)
        for (int j = 0; j < n; j += LIN_WIDTH)
            vstore(p + r * TILE + j, power_of_two(vload(p + r * TILE + j) - most[r]));
}

// Prefetches the tile of keys or values from frame j on: a stream's are in memory, too far apart for the hardware prefetcher.
LIN_INLINE void call_tile(const float *x, size_t stride, int j, int end, int E)
{
    for (int f = j; f < j + TILE && f < end; f++)
        for (int e = 0; e < E; e += 16) __builtin_prefetch(x + (size_t)f * stride + e);
}

static void forward_few(const lin_softmax_head *x, int i, int n, float *scratch)
{
    const int E = x->E, Ep = vround(E), end = seen(x, i + n), R = n == 3 ? 4 : n;
    const size_t pitch = (size_t)Ep, rows = FEW * pitch;
    float *q = scratch, *out = q + rows, *k = out + rows, *v = k + (size_t)E * TILE, *p = v + pitch * TILE;
    float top[LIN_WIDTH] = {0}, sum[LIN_WIDTH] = {0}, factor[LIN_WIDTH];
    for (size_t c = 0; c < 2 * rows; c += LIN_WIDTH) vstore(q + c, (vf){0});
    for (int r = 0; r < R; r++) top[r] = -INFINITY;
    pack_rows(q, pitch, x->q + (size_t)i * x->stride, x->stride, n, E, query_scale(E));
    for (int j = 0; j < end; j += TILE) {
        const int keys = least(TILE, end - j);
        const float *values = x->v + (size_t)j * x->stride_k;
        call_tile(x->k, x->stride_k, j + TILE, end, E);
        pack_columns(k, (size_t)vround(keys), x->k + (size_t)j * x->stride_k, x->stride_k, keys, E, 1);
        multiply(&(matmul){.out = p, .a = q, .b = k, .out_stride = TILE, .a_stride = pitch,
                                                .b_stride = (size_t)vround(keys), .rows = R, .columns = vround(keys),
                                                .inner = E});
        call_tile(x->v, x->stride_k, j + TILE, end, E);
        few_powers(p, j, keys, seen(x, i + 1), top, factor, R);
        if (Ep > E) pack_rows(v, pitch, values, x->stride_k, keys, E, 1);
        few_values_of(out, Ep, p, Ep > E ? v : values, Ep > E ? pitch : x->stride_k, keys, factor, sum, R);
    }
    for (int r = 0; r < n; r++) {
        if (x->lse_out) x->lse_out[(size_t)(i + r) * x->H] = (top[r] + log2f(sum[r])) * 0x1.62e43p-1f;
        for (int e = 0; e < E; e += LIN_WIDTH)
            vput_lanes(x->y_out + (size_t)(i + r) * x->width, vload(out + (size_t)r * pitch + e) * (1.0f / sum[r]), e,
                      E);
    }
}

void LIN_NAME(lin_softmax_rows_forward)(const lin_softmax_head *head, int first, int end, float *scratch)
{
    const int few = (end - first) % BLOCK_QUERIES <= FEW ? (end - first) % BLOCK_QUERIES : 0; // behind the last whole block
    forward_blocks(head, first, end - few, scratch);
    if (few) forward_few(head, end - few, few, scratch);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// A block of queries: transposed in the lanes (q and dy scaled), and by rows of Ep floats.
typedef struct queries {
    int i, n, lanes, E, Ep;
    float *q, *dy, *dq, *q_rows, *dy_rows, *p, *ds, *lse, *own, *ones;
} queries;

// Takes the block's memory from *scratch. p and ds are set by the caller.
static queries take_queries(const lin_softmax_head *x, int i, int n, int want_dq, float **scratch)
{
    queries b = {.i = i, .n = n, .lanes = vround(n), .E = x->E, .Ep = vround(x->E)};
    const size_t lanes = (size_t)b.lanes, matrix = (size_t)b.E * lanes, rows = (size_t)b.Ep * (size_t)n;
    float **parts[] = {&b.q, &b.dy, &b.dq, &b.q_rows, &b.dy_rows, &b.lse, &b.own, &b.ones};
    const size_t sizes[] = {matrix, matrix, matrix, rows, rows, lanes, lanes, lanes};
    for (int k = 0; k < 8; *scratch += sizes[k++]) *parts[k] = *scratch;
    const float *q = x->q + (size_t)i * x->stride, *dy = x->dy + (size_t)i * x->width, *y = x->y + (size_t)i * x->width;
    const float scale = gradient_scale(b.E);
    pack_columns(b.q, lanes, q, x->stride, n, b.E, query_scale(b.E));
    pack_columns(b.dy, lanes, dy, x->width, n, b.E, scale);
    pack_rows(b.q_rows, (size_t)b.Ep, q, x->stride, n, b.E, 1);
    pack_rows(b.dy_rows, (size_t)b.Ep, dy, x->width, n, b.E, 1);
    for (int c = 0; c < b.lanes; c++) {
        vf sum = {0};
        for (int e = 0; e < b.E && c < n; e += LIN_WIDTH)
            sum = vfma(vlanes(y + (size_t)c * x->width, e, b.E), vload(b.dy_rows + c * b.Ep + e), sum);
        b.own[c] = vsum(sum) * scale;
        b.lse[c] = c < n ? x->lse[(size_t)(i + c) * x->H] * LIN_LOG2E : INFINITY;
        b.ones[c] = 1;
    }
    for (size_t c = 0; want_dq && c < matrix; c += LIN_WIDTH) vstore(b.dq + c, (vf){0});
    return b;
}

// p = 2^(p - lse), ds = p (ds - own), [n, lanes].
static __attribute__((noinline)) void score_gradients(const queries *b, int n)
{
    for (int c = 0; c < b->lanes; c += LIN_WIDTH) {
        const vf lse = vload(b->lse + c), own = vload(b->own + c);
        for (int j = 0; j < n; j++) {
            const size_t at = (size_t)(j * b->lanes + c);
            const vf p = power_of_two(vload(b->p + at) - lse);
            vstore(b->p + at, p);
            vstore(b->ds + at, p * (vload(b->ds + at) - own));
        }
    }
}

// A block of queries and n keys from j on.
static void backward_tile(const lin_softmax_head *x, const queries *b, int j, int n, lin_softmax_part part)
{
    const size_t at = (size_t)j * x->stride_k, lanes = (size_t)b->lanes, Ep = (size_t)b->Ep;
    matmul product = {.out = b->p, .a = x->k + at, .b = b->q, .out_stride = lanes, .a_stride = x->stride_k,
                                 .b_stride = lanes, .rows = n, .columns = b->lanes, .inner = b->E};
    multiply(&product);
    product.out = b->ds;
    product.a = x->v + at;
    product.b = b->dy;
    multiply(&product);
    if (x->causal) mask(b->p, lanes, n, j, b->i);
    score_gradients(b, n);
    if (part != LIN_SOFTMAX_KEYS)
        multiply_t(&(matmul){.out = b->dq, .a = x->k + at, .b = b->ds, .out_stride = lanes,
                                                  .a_stride = x->stride_k, .b_stride = lanes, .rows = b->E, .columns = b->lanes,
                                                  .inner = n, .add = 1});
    if (part == LIN_SOFTMAX_QUERIES) return;
    product = (matmul){.out = x->dv + at, .a = b->p, .b = b->dy_rows, .out_stride = x->stride_k, .a_stride = lanes,
                                  .b_stride = Ep, .rows = n, .columns = b->E, .inner = b->n, .add = 1};
    multiply(&product);
    product.out = x->dk + at;
    product.a = b->ds;
    product.b = b->q_rows;
    multiply(&product);
}

// Queries first .. end-1, at most MOST_BLOCKS blocks, and keys first_key .. end_key-1.
static void backward_blocks(const lin_softmax_head *x, lin_softmax_part part, int first, int end, int first_key,
                            int end_key, float *scratch)
{
    queries blocks[MOST_BLOCKS];
    int n = 0;
    for (int i = first; i < end; i += BLOCK_QUERIES)
        blocks[n++] = take_queries(x, i, least(BLOCK_QUERIES, end - i), part != LIN_SOFTMAX_KEYS, &scratch);
    for (int j = first_key; j < end_key; j += TILE)
        for (int k = 0; k < n; k++) {
            queries *b = &blocks[k];
            const int keys = least(TILE, least(end_key, seen(x, b->i + b->n)) - j);
            b->p = scratch;
            b->ds = scratch + TILE * b->lanes;
            if (keys > 0) backward_tile(x, b, j, keys, part);
        }
    for (int k = 0; k < n && part != LIN_SOFTMAX_KEYS; k++)
        unpack_columns(x->dq + (size_t)blocks[k].i * x->stride, x->stride, blocks[k].dq, (size_t)blocks[k].lanes,
                       blocks[k].n, x->E, blocks[k].ones);
}

void LIN_NAME(lin_softmax_part_backward)(const lin_softmax_head *head, lin_softmax_part part, int first, int end, float *scratch)
{
    const lin_softmax_head *x = head;
    const int E = x->E, keys = part == LIN_SOFTMAX_KEYS;
    const int first_key = keys ? first : 0, end_key = keys ? end : x->T;
    for (int j = first_key; part != LIN_SOFTMAX_QUERIES && j < end_key; j++)
        for (int e = 0; e < E; e += LIN_WIDTH) {
            vput_lanes(x->dk + (size_t)j * x->stride_k, (vf){0}, e, E);
            vput_lanes(x->dv + (size_t)j * x->stride_k, (vf){0}, e, E);
        }
    const int first_query = keys && !x->causal ? 0 : first, end_query = keys ? x->T : end;
    for (int i = first_query; i < end_query; i += LIN_SOFTMAX_CHUNK)
        backward_blocks(x, part, i, least(end_query, i + LIN_SOFTMAX_CHUNK), first_key, end_key, scratch);
}

enum { PANEL = 8 * LIN_WIDTH, DEPTH = 128, ROWS_AT_ONCE = 256 };

// p [T, T] = q kᵀ in units of ln 2; causal: only the panels on and below the diagonal.
static void naive_scores(const lin_softmax_head *x, float *p, float *scratch)
{
    for (int j = 0; j < x->T; j += PANEL) {
        const int keys = least(PANEL, x->T - j), first = x->causal ? j : 0;
        const size_t pitch = (size_t)vround(keys);
        pack_columns(scratch, pitch, x->k + (size_t)j * x->stride_k, x->stride_k, keys, x->E,
                     query_scale(x->E));
        multiply(&(matmul){.out = p + (size_t)first * (size_t)x->T + j,
                                                .a = x->q + (size_t)first * x->stride, .b = scratch, .out_stride = (size_t)x->T,
                                                .a_stride = x->stride, .b_stride = pitch, .rows = x->T - first, .columns = keys,
                                                .inner = x->E});
    }
}

// A row of p: n scores in units of ln 2 become probabilities, the others 0.
LIN_INLINE void naive_softmax(float *p, int n, int T)
{
    vf top = vset(p[0]), sum = {0};
    int whole = n / LIN_WIDTH * LIN_WIDTH, rest = n - whole;
    float last[LIN_WIDTH];
    for (int j = 0; j < whole; j += LIN_WIDTH) top = vmax(vload(p + j), top);
    vstore(last, vset(-INFINITY));
    if (rest) memcpy(last, p + whole, (size_t)rest * sizeof *p);
    const float most = vsum_max(vmax(vload(last), top));
    for (int j = 0; j < whole; j += LIN_WIDTH) {
        const vf power = power_of_two(vload(p + j) - most);
        vstore(p + j, power);
        sum += power;
    }
    const vf end = power_of_two(vload(last) - most); // lanes past the end: 0
    const float scale = 1.0f / vsum(sum + end);
    for (int j = 0; j < whole; j += LIN_WIDTH) vstore(p + j, vload(p + j) * scale);
    if (rest) vstore_n(p + whole, end * scale, rest);
    memset(p + n, 0, (size_t)(T - n) * sizeof *p);
}

/* out [T, E] (by frames, out_stride) = a b with a = p, or, transposed, its transpose, and b [T, E] by frames, times factor. */
static void naive_sums(float *out, size_t out_stride, const lin_softmax_head *x, const float *p, int transposed,
                       const float *b, size_t b_stride, float factor, float *scratch)
{
    const int T = x->T;
    const size_t Ep = (size_t)vround(x->E);
    for (int f = 0; f < T; f += DEPTH) {
        const int n = least(DEPTH, T - f), from = x->causal && !transposed ? f : 0;
        const int end = x->causal && transposed ? f + n : T; // p is 0 above its diagonal
        pack_rows(scratch, Ep, b + (size_t)f * b_stride, b_stride, n, x->E, factor);
        matmul product = {.out = out + (size_t)from * out_stride, .out_stride = out_stride, .a_stride = (size_t)T,
                                     .b = scratch, .b_stride = Ep, .rows = end - from, .columns = x->E, .inner = n, .add = f > 0};
        product.a = transposed ? p + (size_t)f * (size_t)T : p + (size_t)from * (size_t)T + f;
        if (transposed && x->causal && f > 0) { // rows that this panel is the first to reach: from zero
            product.rows = f;
            multiply_t(&product);
            product.out += (size_t)f * out_stride;
            product.a += f;
            product.rows = n;
            product.add = 0;
        }
        if (transposed)
            multiply_t(&product);
        else
            multiply(&product);
    }
}

void LIN_NAME(lin_softmax_naive_head_forward)(const lin_softmax_head *head, float *p, float *scratch)
{
    const lin_softmax_head *x = head;
    naive_scores(x, p, scratch);
    for (int i = 0; i < x->T; i++) naive_softmax(p + (size_t)i * (size_t)x->T, x->causal ? i + 1 : x->T, x->T);
    naive_sums(x->y_out, x->width, x, p, 0, x->v, x->stride_k, 1, scratch);
}

// Rows first .. first+n-1 of p become dL/ds = p (dy v - dy y), times 1 / sqrt(E); dp [n, T].
static void naive_score_gradients(const lin_softmax_head *x, float *p, int first, int n, float *scratch)
{
    const float scale = gradient_scale(x->E);
    const int end = x->causal ? first + n : x->T;
    for (int j = 0; j < end; j += PANEL) {
        const int keys = least(PANEL, end - j), from = x->causal && j > first ? j : first;
        const size_t pitch = (size_t)vround(keys);
        float *own = scratch, *v = own + ROWS_AT_ONCE, *dp = v + (size_t)x->E * pitch;
        pack_columns(v, pitch, x->v + (size_t)j * x->stride_k, x->stride_k, keys, x->E, scale);
        for (int i = from; i < first + n; i++) {
            const float *dy = x->dy + (size_t)i * x->width, *y = x->y + (size_t)i * x->width;
            vf sum = {0};
            for (int e = 0; e < x->E; e += LIN_WIDTH) sum = vfma(vlanes(dy, e, x->E), vlanes(y, e, x->E), sum);
            own[i - from] = vsum(sum) * scale;
        }
        multiply(&(matmul){.out = dp, .a = x->dy + (size_t)from * x->width, .b = v, .out_stride = pitch,
                                                .a_stride = x->width, .b_stride = pitch, .rows = first + n - from,
                                                .columns = (int)pitch, .inner = x->E});
        for (int i = from; i < first + n; i++)
            for (int c = 0; c < keys; c += LIN_WIDTH) {
                float *at = p + (size_t)(i - first) * (size_t)x->T + j;
                const vf d = vload(dp + (size_t)(i - from) * pitch + c) - own[i - from];
                vput_lanes(at, vlanes(at, c, keys) * d, c, keys);
            }
    }
}

void LIN_NAME(lin_softmax_naive_head_backward)(const lin_softmax_head *head, float *p, float *scratch)
{
    const lin_softmax_head *x = head;
    naive_sums(x->dv, x->stride_k, x, p, 1, x->dy, x->width, 1, scratch);
    for (int i = 0; i < x->T; i += ROWS_AT_ONCE)
        naive_score_gradients(x, p + (size_t)i * (size_t)x->T, i, least(ROWS_AT_ONCE, x->T - i), scratch);
    naive_sums(x->dq, x->stride, x, p, 0, x->k, x->stride_k, 1, scratch);
    naive_sums(x->dk, x->stride_k, x, p, 1, x->q, x->stride, 1, scratch);
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { SMALL = 1 << 18 }; // multiply-adds of one product; with fewer, starting a second thread costs more time than it saves

typedef struct softmax_job {
    const lin_exec *exec;
    float *y, *lse_out, *dqkv, *p;
    const float *qkv, *dy, *y_in, *lse;
    const int *offsets;
    int H, E, causal, layer;
    const lin_cache *caches;
    int chunks; // work items of a head
} softmax_job;

static int rows_of(const softmax_job *job, int b) { return job->offsets[b + 1] - job->offsets[b]; }

static const lin_cache *cache_of(const softmax_job *job, int b)
{
    return job->causal && job->caches && job->caches[b].kv ? &job->caches[b] : NULL;
}

// Head h of utterance b.
static lin_softmax_head head_of(const softmax_job *job, int b, int h)
{
    size_t C = (size_t)job->H * (size_t)job->E, row = (size_t)job->offsets[b], column = (size_t)h * (size_t)job->E;
    size_t wide = row * 3 * C + column, narrow = row * C + column, one = row * (size_t)job->H + (size_t)h;
    const float *q = job->qkv + wide;
    lin_softmax_head x = {.T = rows_of(job, b), .E = job->E, .causal = job->causal, .stride = 3 * C, .stride_k = 3 * C,
                          .width = C, .H = (size_t)job->H, .q = q, .k = q + C, .v = q + 2 * C};
    if (job->y) x.y_out = job->y + narrow;
    if (job->lse_out) x.lse_out = job->lse_out + one;
    if (job->y_in) x.y = job->y_in + narrow;
    if (job->dy) x.dy = job->dy + narrow;
    if (job->lse) x.lse = job->lse + one;
    if (job->dqkv) {
        x.dq = job->dqkv + wide;
        x.dk = x.dq + C;
        x.dv = x.dk + C;
    }
    const lin_cache *cache = cache_of(job, b);
    if (cache) {
        x.past = cache->n;
        x.stride_k = 2 * C;
        x.k = (const float *)cache->kv + (size_t)job->layer * (size_t)cache->capacity * 2 * C + column;
        x.v = x.k + C;
    }
    return x;
}

// Appends the keys and values of utterance b's rows to its cache.
static void append(const softmax_job *job, int b)
{
    const lin_cache *cache = cache_of(job, b);
    size_t C = (size_t)job->H * (size_t)job->E;
    if (!cache) return;
    float *to = (float *)cache->kv + ((size_t)job->layer * (size_t)cache->capacity + (size_t)cache->n) * 2 * C;
    for (int t = job->offsets[b]; t < job->offsets[b + 1]; t++, to += 2 * C)
        memcpy(to, job->qkv + ((size_t)t * 3 + 1) * C, 2 * C * sizeof *to);
}

static lin_pool *pool_for(const lin_exec *exec, const softmax_job *job, int B)
{
    size_t products = 0;
    for (int b = 0; b < B; b++) {
        const lin_cache *cache = cache_of(job, b);
        size_t T = (size_t)rows_of(job, b);
        products += T * (T + (cache ? (size_t)cache->n : 0)) * (size_t)(job->H * job->E);
    }
    return products < SMALL ? NULL : exec->pool;
}

// Chunk, head and utterance of a work item. The last chunks are first: causal ones have the most keys.
static int chunk_of(const softmax_job *job, int piece, int *b, int *h)
{
    *h = piece / job->chunks % job->H;
    *b = piece / job->chunks / job->H;
    return job->chunks - 1 - piece % job->chunks;
}

static int chunks_in(int rows) { return (rows + LIN_SOFTMAX_CHUNK - 1) / LIN_SOFTMAX_CHUNK; }

static void forward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b, h, first = chunk_of(job, piece, &b, &h) * LIN_SOFTMAX_CHUNK, T = rows_of(job, b);
    if (first >= T) return;
    const lin_softmax_head head = head_of(job, b, h);
    LIN_DISPATCH(lin_softmax_rows_forward)(&head, first, least(T, first + LIN_SOFTMAX_CHUNK), lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_forward(lin_exec *exec, float *y, float *lse, const float *qkv, const lin_segments *segments, int H, int E,
                             int causal, const lin_cache *caches, int layer)
{
    softmax_job job = {.exec = exec, .y = y, .lse_out = lse, .qkv = qkv, .offsets = segments->offsets, .H = H, .E = E,
                       .causal = causal, .caches = caches, .layer = layer, .chunks = chunks_in(segments->longest)};
    for (int b = 0; b < segments->B; b++) append(&job, b);
    lin_pool_run(pool_for(exec, &job, segments->B), segments->B * H * job.chunks, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b, h, chunk = chunk_of(job, piece, &b, &h), chunks = job->chunks / 2, T = rows_of(job, b);
    const lin_softmax_head head = head_of(job, b, h);
    lin_softmax_part part = job->chunks == 1 ? LIN_SOFTMAX_ALL : chunk < chunks ? LIN_SOFTMAX_QUERIES : LIN_SOFTMAX_KEYS;
    int first = job->chunks == 1 ? 0 : chunk % chunks * LIN_SOFTMAX_CHUNK;
    int end = job->chunks == 1 ? T : least(T, first + LIN_SOFTMAX_CHUNK);
    if (first < T) LIN_DISPATCH(lin_softmax_part_backward)(&head, part, first, end, lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y, const float *lse,
                              const lin_segments *segments, int H, int E, int causal)
{
    softmax_job job = {.exec = exec, .dqkv = dqkv, .qkv = qkv, .dy = dy, .y_in = y, .lse = lse, .offsets = segments->offsets,
                       .H = H, .E = E, .causal = causal};
    // Separate passes over queries and keys take 7 products instead of 5: only if there are too few heads for the threads.
    lin_pool *pool = pool_for(exec, &job, segments->B);
    job.chunks = pool && segments->B * H < exec->n_threads && segments->longest > 0 ? 2 * chunks_in(segments->longest) : 1;
    lin_pool_run(pool, segments->B * H * job.chunks, backward_piece, &job);
}

// The probabilities of head h of utterance b.
static float *scores_of(const softmax_job *job, int b, int h)
{
    size_t T = (size_t)rows_of(job, b);
    return job->p + lin_softmax_scores(job->offsets, b, job->H) + (size_t)h * T * T;
}

static void naive_forward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b = piece / job->H, h = piece % job->H;
    const lin_softmax_head head = head_of(job, b, h);
    LIN_DISPATCH(lin_softmax_naive_head_forward)(&head, scores_of(job, b, h), lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_naive_forward(lin_exec *exec, float *y, float *p, const float *qkv, const lin_segments *segments, int H,
                                   int E, int causal)
{
    softmax_job job = {.exec = exec, .y = y, .p = p, .qkv = qkv, .offsets = segments->offsets, .H = H, .E = E, .causal = causal};
    lin_pool_run(pool_for(exec, &job, segments->B), segments->B * H, naive_forward_piece, &job);
}

static void naive_backward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b = piece / job->H, h = piece % job->H;
    const lin_softmax_head head = head_of(job, b, h);
    LIN_DISPATCH(lin_softmax_naive_head_backward)(&head, scores_of(job, b, h), lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_naive_backward(lin_exec *exec, float *dqkv, float *p, const float *dy, const float *qkv, const float *y,
                                    const lin_segments *segments, int H, int E, int causal)
{
    softmax_job job = {.exec = exec, .dqkv = dqkv, .p = p, .qkv = qkv, .dy = dy, .y_in = y, .offsets = segments->offsets, .H = H};
    job.E = E;
    job.causal = causal;
    lin_pool_run(pool_for(exec, &job, segments->B), segments->B * H, naive_backward_piece, &job);
}
#endif
