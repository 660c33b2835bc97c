// softmax_attention_body.h - tiled softmax attention of one utterance and head, once per instruction set; see
// softmax_attention.h.
#include <math.h>

#include "paper/cpu/softmax_attention.h"
#include "paper/cpu/softmax_products.h"

enum {
    TILE = LIN_SOFTMAX_TILE,
    BLOCK_QUERIES = BLOCK_VECTORS * LIN_WIDTH,
    MOST_BLOCKS = LIN_SOFTMAX_CHUNK / BLOCK_QUERIES, // that meet a tile of keys while it is in the cache
    WIDEST = 256,                                    // wider heads: one block, so that the scratch suffices up to E = 1024
    FEW = 4
};
_Static_assert(LIN_SOFTMAX_CHUNK % BLOCK_QUERIES == 0, "the blocks of queries of a work item are those of the utterance");

// The scale of queries, and that of gradients.
LIN_INLINE float LIN_NAME(query_scale)(int E) { return (float)(1.4426950408889634 / sqrt(E)); }
LIN_INLINE float LIN_NAME(gradient_scale)(int E) { return (float)(1 / sqrt(E)); }

// Lane i of the vectors from lane c on, as floats.
LIN_INLINE vf LIN_NAME(lane_numbers)(int c)
{
    float numbers[LIN_WIDTH];
    for (int i = 0; i < LIN_WIDTH; i++) numbers[i] = (float)(c + i);
    return vload(numbers);
}

// Frames that the queries up to row i - 1 see.
LIN_INLINE int LIN_NAME(seen)(const lin_softmax_head *x, int i) { return x->past + (x->causal ? i : x->T); }

/* Scores [n, lanes] of keys first .. first+n-1: those that a query does not see become -inf. Query 0 is frame `frame`. */
LIN_INLINE void LIN_NAME(mask)(float *s, size_t lanes, int n, int first, int frame)
{
    for (int j = first > frame ? 0 : frame + 1 - first; j < n; j++)
        for (size_t c = 0; c < lanes; c += LIN_WIDTH) {
            const vf hidden = vset((float)(first + j - frame)); // lanes before this one do not see the key
            float *at = s + (size_t)j * lanes + c;
            vstore(at, vblend(vgt(hidden, LIN_NAME(lane_numbers)((int)c)), vset(-INFINITY), vload(at)));
        }
}

/* Scores [n, lanes] become powers of two, relative to the maximum of the keys so far; top, sum and factor [lanes]: that maximum,
 * the sum of the powers, and what earlier sums are multiplied by. */
LIN_INLINE void LIN_NAME(exponentials)(float *s, size_t lanes, int n, float *top, float *sum, float *factor, int C)
{
    vf most[BLOCK_VECTORS], total[BLOCK_VECTORS];
    LIN_UNROLL
    for (int c = 0; c < C; c++) most[c] = vload(top + c * LIN_WIDTH);
    for (int j = 0; j < n; j++)
        LIN_UNROLL
        for (int c = 0; c < C; c++) most[c] = vmax(most[c], vload(s + (size_t)j * lanes + c * LIN_WIDTH));
    LIN_UNROLL
    for (int c = 0; c < C; c++) {
        const vf scale = LIN_NAME(power_of_two)(vload(top + c * LIN_WIDTH) - most[c]);
        vstore(factor + c * LIN_WIDTH, scale);
        vstore(top + c * LIN_WIDTH, most[c]);
        total[c] = vrounded(vload(sum + c * LIN_WIDTH) * scale);
    }
    for (int j = 0; j < n; j++)
        LIN_UNROLL
        for (int c = 0; c < C; c++) {
            float *at = s + (size_t)j * lanes + c * LIN_WIDTH;
            const vf power = LIN_NAME(power_of_two)(vload(at) - most[c]);
            vstore(at, power);
            total[c] += power;
        }
    LIN_UNROLL
    for (int c = 0; c < C; c++) vstore(sum + c * LIN_WIDTH, total[c]);
}

static __attribute__((noinline)) void LIN_NAME(exponentials_of)(float *s, size_t lanes, int n, float *top, float *sum,
                                                                float *factor)
{
    const int C = (int)lanes / LIN_WIDTH;
    if (C == 1) LIN_NAME(exponentials)(s, lanes, n, top, sum, factor, 1);
    if (C == 2) LIN_NAME(exponentials)(s, lanes, n, top, sum, factor, 2);
#if BLOCK_VECTORS > 2
    if (C == 3) LIN_NAME(exponentials)(s, lanes, n, top, sum, factor, 3);
#endif
}

// A block of queries, n from row i on: transposed, with the running sums of each lane.
typedef struct LIN_NAME(block_state) {
    int i, n, lanes;
    float *q, *out, *top, *sum, *factor;
} LIN_NAME(block_state);

// Returns the scratch behind the block.
static float *LIN_NAME(begin_block)(LIN_NAME(block_state) *b, const lin_softmax_head *x, int i, int n, float *scratch)
{
    const size_t lanes = (size_t)vround(n), matrix = (size_t)x->E * lanes;
    *b = (LIN_NAME(block_state)){.i = i, .n = n, .lanes = vround(n), .q = scratch, .out = scratch + matrix};
    b->top = b->out + matrix;
    b->sum = b->top + lanes;
    b->factor = b->sum + lanes;
    LIN_NAME(pack_columns)(b->q, lanes, x->q + (size_t)i * x->stride, x->stride, n, x->E, LIN_NAME(query_scale)(x->E));
    for (int c = 0; c < b->lanes; c += LIN_WIDTH) {
        vstore(b->top + c, vset(-INFINITY));
        vstore(b->sum + c, (vf){0});
    }
    return b->factor + lanes;
}

// The tile of keys from j on; s has room for its scores.
static void LIN_NAME(forward_tile)(LIN_NAME(block_state) *b, const lin_softmax_head *x, int j, float *s)
{
    const int keys = LIN_NAME(least)(TILE, LIN_NAME(seen)(x, b->i + b->n) - j);
    const size_t at = (size_t)j * x->stride_k, pitch = (size_t)b->lanes;
    LIN_NAME(multiply)(&(LIN_NAME(product)){.out = s, .a = x->k + at, .b = b->q, .out_stride = pitch, .a_stride = x->stride_k,
                                            .b_stride = pitch, .rows = keys, .columns = b->lanes, .inner = x->E});
    if (x->causal) LIN_NAME(mask)(s, pitch, keys, j, x->past + b->i);
    LIN_NAME(exponentials_of)(s, pitch, keys, b->top, b->sum, b->factor);
    LIN_NAME(multiply_t)(&(LIN_NAME(product)){.out = b->out, .a = x->v + at, .b = s, .factor = j ? b->factor : NULL,
                                              .out_stride = pitch, .a_stride = x->stride_k, .b_stride = pitch, .rows = x->E,
                                              .columns = b->lanes, .inner = keys, .add = j > 0});
}

static void LIN_NAME(end_block)(const LIN_NAME(block_state) *b, const lin_softmax_head *x)
{
    for (int c = 0; c < b->n && x->lse_out; c++)
        x->lse_out[(size_t)(b->i + c) * x->H] = (b->top[c] + log2f(b->sum[c])) * 0x1.62e43p-1f;
    for (int c = 0; c < b->lanes; c += LIN_WIDTH) vstore(b->factor + c, 1.0f / vload(b->sum + c));
    LIN_NAME(unpack_columns)(x->y_out + (size_t)b->i * x->width, x->width, b->out, (size_t)b->lanes, b->n, x->E, b->factor);
}

// Rows first .. end-1: at most MOST_BLOCKS blocks.
static void LIN_NAME(forward_blocks)(const lin_softmax_head *x, int first, int end, float *scratch)
{
    LIN_NAME(block_state) blocks[MOST_BLOCKS];
    int n = 0;
    for (int i = first; i < end; i += BLOCK_QUERIES)
        scratch = LIN_NAME(begin_block)(&blocks[n++], x, i, LIN_NAME(least)(BLOCK_QUERIES, end - i), scratch);
    for (int j = 0; j < LIN_NAME(seen)(x, end); j += TILE)
        for (int b = 0; b < n; b++)
            if (j < LIN_NAME(seen)(x, blocks[b].i + blocks[b].n)) LIN_NAME(forward_tile)(&blocks[b], x, j, scratch);
    for (int b = 0; b < n; b++) LIN_NAME(end_block)(&blocks[b], x);
}

/* ---- a few queries: keys in the lanes -------------------------------------------------------------------------------------- */

// A live stream has some rows at a time, fewer than a vector has lanes. Their scores are computed with the keys in the lanes and
// their values with the columns of v in the lanes; each sum has the terms and the order of forward_tile, so the bits are the
// same.

LIN_INLINE float LIN_NAME(largest)(const float *s, int n)
{
    vf most = vload(s);
    for (int j = LIN_WIDTH; j < n; j += LIN_WIDTH) most = vmax(most, vload(s + j));
    return vsum_max(most);
}

/* out [R, columns c .. c+C vectors] = out factor + p v over n keys; with `sum`, also sum = sum factor + the sum of p. */
LIN_INLINE void LIN_NAME(few_values)(float *out, size_t Ep, const float *p, const float *v, size_t stride, int n,
                                     const float *factor, float *sum, int R, int C)
{
    vf acc[FEW][2], total[FEW];
    LIN_UNROLL
    for (int r = 0; r < R; r++) {
        if (sum) total[r] = vrounded(vset(sum[r]) * factor[r]);
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

static __attribute__((noinline)) void LIN_NAME(few_values_of)(float *out, int Ep, const float *p, const float *v, size_t stride,
                                                              int n, const float *factor, float *sum, int R)
{
    const size_t pitch = (size_t)Ep;
    int c = 0;
    for (; c + 2 * LIN_WIDTH <= Ep; c += 2 * LIN_WIDTH, sum = NULL) {
        if (R == 1) LIN_NAME(few_values)(out + c, pitch, p, v + c, stride, n, factor, sum, 1, 2);
        if (R == 2) LIN_NAME(few_values)(out + c, pitch, p, v + c, stride, n, factor, sum, 2, 2);
        if (R == 4) LIN_NAME(few_values)(out + c, pitch, p, v + c, stride, n, factor, sum, 4, 2);
    }
    if (c == Ep) return;
    if (R == 1) LIN_NAME(few_values)(out + c, pitch, p, v + c, stride, n, factor, sum, 1, 1);
    if (R == 2) LIN_NAME(few_values)(out + c, pitch, p, v + c, stride, n, factor, sum, 2, 1);
    if (R == 4) LIN_NAME(few_values)(out + c, pitch, p, v + c, stride, n, factor, sum, 4, 1);
}

// Rows of p [R, TILE]: scores of keys first .. first+n-1 become powers of two, 0 for keys that a row does not see; row 0 sees
// `seen` keys.
LIN_INLINE void LIN_NAME(few_powers)(float *p, int first, int n, int seen, float *top, float *factor, int R)
{
    float most[LIN_WIDTH] = {0};
    for (int r = 0; r < R; r++) {
        float *row = p + r * TILE;
        for (int j = LIN_NAME(least)(n, seen + r - first); j < vround(n); j++)
            if (j >= 0) row[j] = -INFINITY;
        most[r] = LIN_NAME(largest)(row, n);
        most[r] = top[r] > most[r] ? top[r] : most[r];
    }
    vstore(factor, LIN_NAME(power_of_two)(vload(top) - vload(most)));
    memcpy(top, most, (size_t)R * sizeof *top);
    for (int r = 0; r < R; r++)
        for (int j = 0; j < n; j += LIN_WIDTH)
            vstore(p + r * TILE + j, LIN_NAME(power_of_two)(vload(p + r * TILE + j) - most[r]));
}

// Prefetches the tile of keys or values from frame j on: those of a stream are in memory, too far apart for the hardware's
// prefetcher.
LIN_INLINE void LIN_NAME(call_tile)(const float *x, size_t stride, int j, int end, int E)
{
    for (int f = j; f < j + TILE && f < end; f++)
        for (int e = 0; e < E; e += 16) __builtin_prefetch(x + (size_t)f * stride + e);
}

static void LIN_NAME(forward_few)(const lin_softmax_head *x, int i, int n, float *scratch)
{
    const int E = x->E, Ep = vround(E), end = LIN_NAME(seen)(x, i + n), R = n == 3 ? 4 : n;
    const size_t pitch = (size_t)Ep, rows = FEW * pitch;
    float *q = scratch, *out = q + rows, *k = out + rows, *v = k + (size_t)E * TILE, *p = v + pitch * TILE;
    float top[LIN_WIDTH] = {0}, sum[LIN_WIDTH] = {0}, factor[LIN_WIDTH];
    for (size_t c = 0; c < 2 * rows; c += LIN_WIDTH) vstore(q + c, (vf){0});
    for (int r = 0; r < R; r++) top[r] = -INFINITY;
    LIN_NAME(pack_rows)(q, pitch, x->q + (size_t)i * x->stride, x->stride, n, E, LIN_NAME(query_scale)(E));
    for (int j = 0; j < end; j += TILE) {
        const int keys = LIN_NAME(least)(TILE, end - j);
        const float *values = x->v + (size_t)j * x->stride_k;
        LIN_NAME(call_tile)(x->k, x->stride_k, j + TILE, end, E);
        LIN_NAME(pack_columns)(k, (size_t)vround(keys), x->k + (size_t)j * x->stride_k, x->stride_k, keys, E, 1);
        LIN_NAME(multiply)(&(LIN_NAME(product)){.out = p, .a = q, .b = k, .out_stride = TILE, .a_stride = pitch,
                                                .b_stride = (size_t)vround(keys), .rows = R, .columns = vround(keys),
                                                .inner = E});
        LIN_NAME(call_tile)(x->v, x->stride_k, j + TILE, end, E);
        LIN_NAME(few_powers)(p, j, keys, LIN_NAME(seen)(x, i + 1), top, factor, R);
        if (Ep > E) LIN_NAME(pack_rows)(v, pitch, values, x->stride_k, keys, E, 1);
        LIN_NAME(few_values_of)(out, Ep, p, Ep > E ? v : values, Ep > E ? pitch : x->stride_k, keys, factor, sum, R);
    }
    for (int r = 0; r < n; r++) {
        if (x->lse_out) x->lse_out[(size_t)(i + r) * x->H] = (top[r] + log2f(sum[r])) * 0x1.62e43p-1f;
        for (int e = 0; e < E; e += LIN_WIDTH)
            LIN_NAME(put_lanes)(x->y_out + (size_t)(i + r) * x->width, vload(out + (size_t)r * pitch + e) * (1.0f / sum[r]), e,
                                E);
    }
}

void LIN_NAME(lin_softmax_rows_forward)(const lin_softmax_head *head, int first, int end, float *scratch)
{
    const int most = head->E <= WIDEST ? LIN_SOFTMAX_CHUNK : BLOCK_QUERIES;
    const int few = (end - first) % BLOCK_QUERIES <= FEW ? (end - first) % BLOCK_QUERIES : 0; // behind the last whole block
    for (int i = first; i < end - few; i += most)
        LIN_NAME(forward_blocks)(head, i, LIN_NAME(least)(end - few, i + most), scratch);
    if (few) LIN_NAME(forward_few)(head, end - few, few, scratch);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// A block of queries: transposed in the lanes (q and dy scaled), and by rows of Ep floats.
typedef struct LIN_NAME(queries) {
    int i, n, lanes, E, Ep;
    float *q, *dy, *dq, *q_rows, *dy_rows, *p, *ds, *lse, *own, *ones;
} LIN_NAME(queries);

// Takes the block's memory from *scratch. p and ds are set by the caller.
static LIN_NAME(queries) LIN_NAME(take_queries)(const lin_softmax_head *x, int i, int n, int want_dq, float **scratch)
{
    LIN_NAME(queries) b = {.i = i, .n = n, .lanes = vround(n), .E = x->E, .Ep = vround(x->E)};
    const size_t lanes = (size_t)b.lanes, matrix = (size_t)b.E * lanes, rows = (size_t)b.Ep * (size_t)n;
    float **parts[] = {&b.q, &b.dy, &b.dq, &b.q_rows, &b.dy_rows, &b.lse, &b.own, &b.ones};
    const size_t sizes[] = {matrix, matrix, matrix, rows, rows, lanes, lanes, lanes};
    for (int k = 0; k < 8; *scratch += sizes[k++]) *parts[k] = *scratch;
    const float *q = x->q + (size_t)i * x->stride, *dy = x->dy + (size_t)i * x->width, *y = x->y + (size_t)i * x->width;
    const float scale = LIN_NAME(gradient_scale)(b.E);
    LIN_NAME(pack_columns)(b.q, lanes, q, x->stride, n, b.E, LIN_NAME(query_scale)(b.E));
    LIN_NAME(pack_columns)(b.dy, lanes, dy, x->width, n, b.E, scale);
    LIN_NAME(pack_rows)(b.q_rows, (size_t)b.Ep, q, x->stride, n, b.E, 1);
    LIN_NAME(pack_rows)(b.dy_rows, (size_t)b.Ep, dy, x->width, n, b.E, 1);
    for (int c = 0; c < b.lanes; c++) {
        vf sum = {0};
        for (int e = 0; e < b.E && c < n; e += LIN_WIDTH)
            sum = vfma(LIN_NAME(lanes)(y + (size_t)c * x->width, e, b.E), vload(b.dy_rows + c * b.Ep + e), sum);
        b.own[c] = vsum(sum) * scale;
        b.lse[c] = c < n ? x->lse[(size_t)(i + c) * x->H] * LIN_LOG2E : INFINITY;
        b.ones[c] = 1;
    }
    for (size_t c = 0; want_dq && c < matrix; c += LIN_WIDTH) vstore(b.dq + c, (vf){0});
    return b;
}

// p = 2^(p - lse), ds = p (ds - own), [n, lanes].
static __attribute__((noinline)) void LIN_NAME(score_gradients)(const LIN_NAME(queries) *b, int n)
{
    for (int c = 0; c < b->lanes; c += LIN_WIDTH) {
        const vf lse = vload(b->lse + c), own = vload(b->own + c);
        for (int j = 0; j < n; j++) {
            const size_t at = (size_t)(j * b->lanes + c);
            const vf p = LIN_NAME(power_of_two)(vload(b->p + at) - lse);
            vstore(b->p + at, p);
            vstore(b->ds + at, p * (vload(b->ds + at) - own));
        }
    }
}

// A block of queries and n keys from j on.
static void LIN_NAME(backward_tile)(const lin_softmax_head *x, const LIN_NAME(queries) *b, int j, int n, lin_softmax_part part)
{
    const size_t at = (size_t)j * x->stride_k, lanes = (size_t)b->lanes, Ep = (size_t)b->Ep;
    LIN_NAME(product) product = {.out = b->p, .a = x->k + at, .b = b->q, .out_stride = lanes, .a_stride = x->stride_k,
                                 .b_stride = lanes, .rows = n, .columns = b->lanes, .inner = b->E};
    LIN_NAME(multiply)(&product);
    product.out = b->ds;
    product.a = x->v + at;
    product.b = b->dy;
    LIN_NAME(multiply)(&product);
    if (x->causal) LIN_NAME(mask)(b->p, lanes, n, j, b->i);
    LIN_NAME(score_gradients)(b, n);
    if (part != LIN_SOFTMAX_KEYS)
        LIN_NAME(multiply_t)(&(LIN_NAME(product)){.out = b->dq, .a = x->k + at, .b = b->ds, .out_stride = lanes,
                                                  .a_stride = x->stride_k, .b_stride = lanes, .rows = b->E, .columns = b->lanes,
                                                  .inner = n, .add = 1});
    if (part == LIN_SOFTMAX_QUERIES) return;
    product = (LIN_NAME(product)){.out = x->dv + at, .a = b->p, .b = b->dy_rows, .out_stride = x->stride_k, .a_stride = lanes,
                                  .b_stride = Ep, .rows = n, .columns = b->E, .inner = b->n, .add = 1};
    LIN_NAME(multiply)(&product);
    product.out = x->dk + at;
    product.a = b->ds;
    product.b = b->q_rows;
    LIN_NAME(multiply)(&product);
}

// Queries first .. end-1, at most MOST_BLOCKS blocks, and keys first_key .. end_key-1.
static void LIN_NAME(backward_blocks)(const lin_softmax_head *x, lin_softmax_part part, int first, int end, int first_key,
                                      int end_key, float *scratch)
{
    LIN_NAME(queries) blocks[MOST_BLOCKS];
    int n = 0;
    for (int i = first; i < end; i += BLOCK_QUERIES)
        blocks[n++] = LIN_NAME(take_queries)(x, i, LIN_NAME(least)(BLOCK_QUERIES, end - i), part != LIN_SOFTMAX_KEYS, &scratch);
    for (int j = first_key; j < end_key; j += TILE)
        for (int k = 0; k < n; k++) {
            LIN_NAME(queries) *b = &blocks[k];
            const int keys = LIN_NAME(least)(TILE, LIN_NAME(least)(end_key, LIN_NAME(seen)(x, b->i + b->n)) - j);
            b->p = scratch;
            b->ds = scratch + TILE * b->lanes;
            if (keys > 0) LIN_NAME(backward_tile)(x, b, j, keys, part);
        }
    for (int k = 0; k < n && part != LIN_SOFTMAX_KEYS; k++)
        LIN_NAME(unpack_columns)(x->dq + (size_t)blocks[k].i * x->stride, x->stride, blocks[k].dq, (size_t)blocks[k].lanes,
                                 blocks[k].n, x->E, blocks[k].ones);
}

void LIN_NAME(lin_softmax_part_backward)(const lin_softmax_head *head, lin_softmax_part part, int first, int end, float *scratch)
{
    const lin_softmax_head *x = head;
    const int E = x->E, keys = part == LIN_SOFTMAX_KEYS, most = E <= WIDEST ? LIN_SOFTMAX_CHUNK : BLOCK_QUERIES;
    const int first_key = keys ? first : 0, end_key = keys ? end : x->T;
    for (int j = first_key; part != LIN_SOFTMAX_QUERIES && j < end_key; j++)
        for (int e = 0; e < E; e += LIN_WIDTH) {
            LIN_NAME(put_lanes)(x->dk + (size_t)j * x->stride_k, (vf){0}, e, E);
            LIN_NAME(put_lanes)(x->dv + (size_t)j * x->stride_k, (vf){0}, e, E);
        }
    const int first_query = keys && !x->causal ? 0 : first, end_query = keys ? x->T : end;
    for (int i = first_query; i < end_query; i += most)
        LIN_NAME(backward_blocks)(x, part, i, LIN_NAME(least)(end_query, i + most), first_key, end_key, scratch);
}
