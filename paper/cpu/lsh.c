/*
 * lsh.c - LSH attention (Reformer; Kitaev et al. 2020), defined in kernels/ops.h: a work item is one head of one utterance.
 *
 * Sorting. The projections q R are matrix products that end in an argmax: nothing of them is stored. A counting sort orders each
 * round. The buckets of the round are stored in lse until then, so the length of an utterance is not limited by scratch.
 *
 * Tiles. A chunk of the sorted frames is divided into tiles of at most LSH_TILE frames, gathered into slots of scratch: queries,
 * which are the keys as well, their transpose, and values. A tile of queries meets the tiles of its chunk and of the one before
 * it, one S = Q Qᵀ after another. Each tile is gathered once per round if the slots hold the tiles of two chunks.
 *
 * Forward. The softmax of a frame runs over pairs of tiles and over rounds with a running maximum m and sum l (Milakov &
 * Gimelshein 2018). Between two rounds y and lse hold the state: m = lse, l = 1, sums = y. lse = -inf: no other frame seen yet.
 *
 * Backward. p_ij = exp(s_ij - lse_i) for each pair, D_i = dy_i . y_i, dS_ij = p_ij (dy_i . v_j - D_i). With s_ij = w_j q_i . q_j,
 * w_j = 1 / (|q_j| sqrt(E)), and the gradient of k = q / |q|:
 *   dv_j += sum_i p_ij dy_i
 *   dq_i += sum_j dS_ij w_j q_j
 *   dq_j += sum_i dS_ij w_j q_i - q_j c_j / |q_j|²,     c_j = sum_i dS_ij s_ij
 * A slot holds the sums of its frames until another tile takes its place.
 */
#include <limits.h>
#include <math.h>

#include "paper/cpu/softmax_products.h"

/* Pointers are to the head's part of the first row; row t is at + t * stride of its matrix. */
typedef struct lin_lsh_head {
    int T, E, causal;
    lin_lsh lsh;
    size_t qv_stride, y_stride, lse_stride; /* floats from one row to the next */
    size_t order_stride;                    /* ints from one round to the next */
    size_t rotations_stride;                /* floats from one round of R to the next */
    const float *q, *v, *R, *dy, *y_in, *lse_in;
    float *y, *lse, *dq, *dv;
    int *order_out;   /* lin_lsh_head_sort writes it, */
    const int *order; /* and the others read it */
    float *scratch;   /* LIN_SCRATCH_BYTES */
} lin_lsh_head;

/* Columns of R in use: half the number of buckets. */
static inline int lin_lsh_columns(const lin_lsh *lsh, int T)
{
    const int64_t span = 2 * (int64_t)lsh->chunk, half = (T + span - 1) / span;
    return half < lsh->rotations ? (int)half : lsh->rotations;
}

LIN_DISPATCH_DECLARE(void, lin_lsh_head_sort, (const lin_lsh_head *head));
LIN_DISPATCH_DECLARE(void, lin_lsh_head_forward, (const lin_lsh_head *head));
LIN_DISPATCH_DECLARE(void, lin_lsh_head_backward, (const lin_lsh_head *head));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

#if LIN_WIDTH == 16
#define ROWS 8 // rows that are projected at once; of 32 registers: 8 rows of 2 vectors of sums, 2 vectors of R
#else
#define ROWS 4 // of 16 registers: 4 rows of 2 vectors of sums, 2 vectors of R, and the broadcast value
#endif
_Static_assert(LIN_WIDTH % ROWS == 0, "the buckets of LIN_WIDTH rows are found at once");

enum { LSH_TILE = 64, LSH_SLOTS = 8 };
#define LSH_SELF_SCORE -1e5f
#define LSH_LEAST_NORM 1e-6f

/* The frames of one tile. Rows are [tile, Ep], transposes [Ep, lanes], the others [lanes]. */
typedef struct slot {
    int number, n, first; // the tile, -1 if none; its frames, and where they begin in the order
    const int *frames;
    float *q, *qt;                   // queries and their transpose
    float *v;                        // values
    float *vt, *dy, *dq, *dv;        // backward: values transposed; dy; the sums of the gradients
    float *w, *D, *lse, *c, *square; // w_j; D_i; lse_i; c_j; 1 / |q_j|², 0 if the norm is LSH_LEAST_NORM
    int *index;                      // the frames, INT_MAX past the end
} slot;

typedef struct tiles {
    const lin_lsh_head *head;
    const int *order;                        // of the round
    int chunk, tile, per_chunk, lanes; // frames of a chunk and of a tile; tiles of a chunk; tile rounded up to whole vectors
    int Ep, backward, n_slots, next;
    slot slots[LSH_SLOTS];
    float *S, *dS;       // [tile, lanes]
    float *sums, *m, *l; // forward: of the tile of queries, [tile, Ep], [lanes], [lanes]
} tiles;

/* ---- sorting --------------------------------------------------------------------------------------------------------------- */

/* The largest and the smallest projection of a row so far, by lane, and their columns. */
typedef struct extremes {
    vf high, low;
    vi at_high, at_low;
} extremes;

LIN_INLINE void lsh_extend(extremes *x, vf value, vi column)
{
    vm above = vgt(value, x->high), below = vgt(x->low, value);
    x->high = vblend(above, value, x->high);
    x->at_high = viblend(above, column, x->at_high);
    x->low = vblend(below, value, x->low);
    x->at_low = viblend(below, column, x->at_low);
}

/* The ROWS rows of a [ROWS, Ep] times n columns of R, at most `vectors` vectors, from column c on. */
LIN_INLINE void lsh_project(extremes *x, const float *a, size_t Ep, const float *R, size_t rotations, int E,
                            int c, int n, int vectors)
{
    vf sum[ROWS][2] = {{{0}}};
    vi lane;
    for (int i = 0; i < LIN_WIDTH; i++) lane[i] = i;
    for (int e = 0; e < E; e++) {
        const float *b = R + (size_t)e * rotations + c;
        vf b0 = n < LIN_WIDTH ? vload_n(b, n) : vload(b), b1 = vectors > 1 ? vload(b + LIN_WIDTH) : b0;
        LIN_UNROLL
        for (int r = 0; r < ROWS; r++) {
            vf q = vset(a[(size_t)r * Ep + (size_t)e]);
            sum[r][0] = vfma(q, b0, sum[r][0]);
            if (vectors > 1) sum[r][1] = vfma(q, b1, sum[r][1]);
        }
    }
    LIN_UNROLL
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < vectors; i++) lsh_extend(x + r, sum[r][i], lane + (c + i * LIN_WIDTH));
}

/* The buckets of LIN_WIDTH rows: the largest of [q R; -q R], the first one where several are equal. Lanes past the last column
 * are projections of 0: they are largest only where all are 0, and then column 0 comes first. */
static vi lsh_largest(const extremes *x, int columns)
{
    vf value[LIN_WIDTH], index[LIN_WIDTH], best = vset(-INFINITY);
    vi bucket = viset(INT_MAX);
    for (int r = 0; r < LIN_WIDTH; r++) {
        const vm negative = vgt(-x[r].low, x[r].high);
        value[r] = vblend(negative, -x[r].low, x[r].high);
        index[r] = (vf)viblend(negative, x[r].at_low + columns, x[r].at_high);
    }
    transpose(value);
    transpose(index);
    for (int i = 0; i < LIN_WIDTH; i++) best = vmax(value[i], best);
    for (int i = 0; i < LIN_WIDTH; i++) bucket = vimin(bucket, viblend(veq(value[i], best), (vi)index[i], viset(INT_MAX)));
    return vimin(bucket, viset(2 * columns - 1)); // not finite: any bucket will do
}

/* The buckets of frames t .. t+n-1, n <= LIN_WIDTH; a [LIN_WIDTH, Ep] is scratch. */
static vi lsh_buckets(const lin_lsh_head *h, const float *R, int t, int n, int columns, float *a)
{
    extremes x[LIN_WIDTH];
    const size_t Ep = (size_t)vround(h->E), rotations = (size_t)h->lsh.rotations;
    for (int r = 0; r < LIN_WIDTH; r++) {
        const int row = t + (r < n ? r : 0);
        x[r] = (extremes){.high = vset(-INFINITY), .low = vset(INFINITY)};
        memcpy(a + (size_t)r * Ep, h->q + (size_t)row * h->qv_stride, (size_t)h->E * sizeof(float));
    }
    for (int r = 0; r < n; r += ROWS) {
        const float *rows = a + (size_t)r * Ep;
        int c = 0;
        for (; columns - c >= 2 * LIN_WIDTH; c += 2 * LIN_WIDTH)
            lsh_project(x + r, rows, Ep, R, rotations, h->E, c, LIN_WIDTH, 2);
        for (; columns - c >= LIN_WIDTH; c += LIN_WIDTH)
            lsh_project(x + r, rows, Ep, R, rotations, h->E, c, LIN_WIDTH, 1);
        if (c < columns) lsh_project(x + r, rows, Ep, R, rotations, h->E, c, columns - c, 1);
    }
    return lsh_largest(x, columns);
}

void LIN_NAME(lin_lsh_head_sort)(const lin_lsh_head *h)
{
    const int columns = lin_lsh_columns(&h->lsh, h->T);
    float *a = h->scratch;
    int *starts = (int *)(a + LIN_WIDTH * vround(h->E)), buckets[LIN_WIDTH];
    for (int round = 0; round < h->lsh.rounds; round++) {
        int *order = h->order_out + (size_t)round * h->order_stride;
        memset(starts, 0, (size_t)(2 * columns) * sizeof *starts);
        for (int t = 0; t < h->T; t += LIN_WIDTH) {
            const int n = least(h->T - t, LIN_WIDTH);
            vistore(buckets, lsh_buckets(h, h->R + (size_t)round * h->rotations_stride, t, n, columns, a));
            for (int r = 0; r < n; r++) {
                starts[buckets[r]]++;
                memcpy(h->lse + (size_t)(t + r) * h->lse_stride, buckets + r, sizeof *buckets);
            }
        }
        for (int i = 0, sum = 0; i < 2 * columns; i++) {
            const int n = starts[i];
            starts[i] = sum;
            sum += n;
        }
        for (int t = 0; t < h->T; t++) {
            int bucket;
            memcpy(&bucket, h->lse + (size_t)t * h->lse_stride, sizeof bucket);
            order[starts[bucket]++] = t;
        }
    }
}

/* ---- tiles ----------------------------------------------------------------------------------------------------------------- */

/* Floats of a slot, and of what all slots share, for tiles of n frames. */
static size_t lsh_slot_size(int n, int Ep, int backward)
{
    const size_t rows = (size_t)n * (size_t)Ep, transposed = (size_t)vround(n) * (size_t)Ep;
    return (backward ? 4 * rows + 2 * transposed : 2 * rows + transposed) + 6 * (size_t)vround(n);
}

static size_t lsh_shared_size(int n, int Ep)
{
    const size_t lanes = (size_t)vround(n);
    return 2 * (size_t)n * lanes + (size_t)n * (size_t)Ep + 2 * lanes;
}

/* Chooses the size of the tiles and divides the scratch: at least two slots, for which E up to 256 leaves room. */
static void lsh_lay_out(tiles *t, const lin_lsh_head *h, int backward)
{
    const size_t room = LIN_SCRATCH_BYTES / sizeof(float);
    *t = (tiles){.head = h, .Ep = vround(h->E), .backward = backward, .chunk = least(h->lsh.chunk, h->T)};
    t->per_chunk = (t->chunk + LSH_TILE - 1) / LSH_TILE;
    t->tile = (t->chunk + t->per_chunk - 1) / t->per_chunk;
    t->per_chunk = (t->chunk + t->tile - 1) / t->tile;
    t->lanes = vround(t->tile);
    const size_t slot_size = lsh_slot_size(t->tile, t->Ep, backward);
    const size_t rows = (size_t)t->tile * (size_t)t->Ep, transposed = (size_t)t->lanes * (size_t)t->Ep, lanes = (size_t)t->lanes;
    const size_t slots = (room - lsh_shared_size(t->tile, t->Ep)) / slot_size;
    t->n_slots = slots < LSH_SLOTS ? (int)slots : LSH_SLOTS;
    t->S = h->scratch;
    t->dS = t->S + (size_t)t->tile * lanes;
    t->sums = t->dS + (size_t)t->tile * lanes;
    t->m = t->sums + rows;
    t->l = t->m + lanes;
    for (int i = 0; i < t->n_slots; i++) {
        slot *s = t->slots + i;
        float *p = t->l + lanes + (size_t)i * slot_size;
        s->q = p;
        s->qt = s->q + rows;
        s->v = s->dv = s->qt + transposed; // the backward pass needs v only until it is transposed
        s->dy = s->v + rows;
        s->dq = s->dy + rows;
        s->vt = s->dq + rows;
        s->w = backward ? s->vt + transposed : s->v + rows;
        s->D = s->w + lanes;
        s->lse = s->D + lanes;
        s->c = s->lse + lanes;
        s->square = s->c + lanes;
        s->index = (int *)(s->square + lanes);
    }
}

// Copies E floats to row f of `rows`, padded with zeros to Ep; returns the sum of their products with other.
LIN_INLINE float lsh_take(const tiles *t, float *rows, const float *from, const float *other, int f)
{
    const int E = t->head->E;
    vf sum = {0};
    for (int e = 0; e < E; e += LIN_WIDTH) {
        vf x = vlanes(from, e, E);
        vstore(rows + (size_t)f * (size_t)t->Ep + e, x);
        sum = vfma(x, vlanes(other, e, E), sum);
    }
    return vsum(sum);
}

// Prefetches what the tile after this one gathers for its frame f.
LIN_INLINE void lsh_fetch(const tiles *t, const slot *s, int f)
{
    const lin_lsh_head *h = t->head;
    if (s->first + s->n + f >= h->T) return;
    const size_t frame = (size_t)s->frames[s->n + f];
    for (int e = 0; e < h->E; e += 16) {
        __builtin_prefetch(h->q + frame * h->qv_stride + e);
        __builtin_prefetch(h->v + frame * h->qv_stride + e);
        if (!t->backward) {
            __builtin_prefetch(h->y + frame * h->y_stride + e, 1);
            continue;
        }
        __builtin_prefetch(h->dy + frame * h->y_stride + e);
        __builtin_prefetch(h->y_in + frame * h->y_stride + e);
        __builtin_prefetch(h->dq + frame * h->qv_stride + e, 1);
        __builtin_prefetch(h->dv + frame * h->qv_stride + e, 1);
    }
}

static void lsh_fill(tiles *t, slot *s, int number)
{
    const lin_lsh_head *h = t->head;
    const int chunk = number / t->per_chunk, at = number % t->per_chunk * t->tile;
    const size_t rows = (size_t)t->tile * (size_t)t->Ep;
    const float root = sqrtf((float)h->E);
    s->number = number;
    s->first = chunk * t->chunk + at;
    s->n = least(least(t->tile, t->chunk - at), h->T - s->first);
    s->frames = t->order + s->first;
    // What is past the end is undefined but for the index, which hides it: each product sums over the n frames alone.
    for (int f = s->n; f < t->lanes; f++) s->index[f] = INT_MAX;
    for (int f = 0; f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f];
        const float *q = h->q + frame * h->qv_stride, *v = h->v + frame * h->qv_stride;
        lsh_fetch(t, s, f);
        s->index[f] = s->frames[f];
        s->square[f] = lsh_take(t, s->q, q, q, f);
        lsh_take(t, s->v, v, v, f);
        if (!t->backward) continue;
        s->D[f] = lsh_take(t, s->dy, h->dy + frame * h->y_stride, h->y_in + frame * h->y_stride, f);
        s->lse[f] = h->lse_in[frame * h->lse_stride];
    }
    for (int f = 0; f < s->n; f++) {
        const float norm = sqrtf(s->square[f]);
        s->w[f] = 1 / ((norm > LSH_LEAST_NORM ? norm : LSH_LEAST_NORM) * root);
        s->square[f] = norm > LSH_LEAST_NORM ? 1 / (norm * norm) : 0;
    }
    pack_columns(s->qt, (size_t)t->lanes, s->q, (size_t)t->Ep, s->n, h->E, 1);
    if (!t->backward) return;
    pack_columns(s->vt, (size_t)t->lanes, s->v, (size_t)t->Ep, s->n, h->E, 1);
    vclear(s->dq, rows);
    vclear(s->dv, rows); // in the place of v
    vclear(s->c, (size_t)t->lanes);
}

// Adds the gradients of a slot to those of its frames.
static void lsh_flush(tiles *t, slot *s)
{
    const lin_lsh_head *h = t->head;
    for (int f = 0; t->backward && s->number >= 0 && f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f] * h->qv_stride, row = (size_t)f * (size_t)t->Ep;
        const vf along = vset(-s->c[f] * s->square[f]);
        for (int e = 0; e < h->E; e += LIN_WIDTH) {
            float *dq = h->dq + frame, *dv = h->dv + frame;
            const vf q = vfma(vload(s->q + row + e), along, vload(s->dq + row + e)), v = vload(s->dv + row + e);
            vput_lanes(dq, vlanes(dq, e, h->E) + q, e, h->E);
            vput_lanes(dv, vlanes(dv, e, h->E) + v, e, h->E);
        }
    }
    s->number = -1;
}

/* The slot that holds a tile; `pinned` (may be NULL) keeps its tile. */
static slot *lsh_slot(tiles *t, int number, const slot *pinned)
{
    for (int i = 0; i < t->n_slots; i++)
        if (t->slots[i].number == number) return t->slots + i;
    slot *s = t->slots + t->next;
    if (s == pinned) s = t->slots + (t->next + 1) % t->n_slots;
    t->next = (int)(s - t->slots + 1) % t->n_slots;
    lsh_flush(t, s);
    lsh_fill(t, s, number);
    return s;
}

// Scores of a query, -inf where it does not see the key; no key past the end of the tile has a number below INT_MAX.
LIN_INLINE vf lsh_masked(vf score, vi key, vi query, int causal)
{
    const vi hidden = (vi)(key == query) | (causal ? (vi)(key > query) : (vi)(key == viset(INT_MAX)));
    return (vf)((hidden & (vi)vset(-INFINITY)) | (~hidden & (vi)score));
}

// S [n, lanes] = rows [n, Ep] times a transpose [Ep, lanes] of which `columns` are in use.
static void lsh_products(float *S, const float *rows, const float *transposed, const tiles *t, int n,
                         int columns)
{
    const size_t lanes = (size_t)t->lanes;
    multiply(&(matmul){.out = S, .out_stride = lanes, .a = rows, .a_stride = (size_t)t->Ep, .b = transposed,
        .b_stride = lanes, .rows = n, .columns = vround(columns), .inner = t->head->E});
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

// Reads the state of the queries of a tile from y and lse.
static void lsh_resume(tiles *t, const slot *s, int round)
{
    const lin_lsh_head *h = t->head;
    for (int f = 0; f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f];
        const float *y = h->y + frame * h->y_stride;
        t->m[f] = round > 0 ? h->lse[frame * h->lse_stride] : -INFINITY;
        t->l[f] = t->m[f] == -INFINITY ? 0 : 1;
        if (round > 0) lsh_take(t, t->sums, y, y, f);
    }
    if (round == 0) vclear(t->sums, (size_t)s->n * (size_t)t->Ep);
}

// Writes it back. In the last round, a frame that has seen no other sees itself.
static void lsh_suspend(tiles *t, const slot *s, int round)
{
    const lin_lsh_head *h = t->head;
    const int last = round == h->lsh.rounds - 1;
    for (int f = 0; f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f];
        const int alone = t->l[f] == 0;
        const float *from = alone && last ? s->v : t->sums, inverse = alone ? 1 : 1 / t->l[f];
        float *y = h->y + frame * h->y_stride;
        for (int e = 0; e < h->E; e += LIN_WIDTH)
            vput_lanes(y, vload(from + (size_t)f * (size_t)t->Ep + e) * inverse, e, h->E);
        float lse = alone ? -INFINITY : (float)((double)t->m[f] + log((double)t->l[f]));
        if (alone && last) lse = LSH_SELF_SCORE + logf((float)h->lsh.rounds);
        h->lse[frame * h->lse_stride] = lse;
    }
}

// The softmax of rows i .. i+n-1 of S, n <= LIN_WIDTH, of a pair of tiles: S becomes exp(s - m), and the sums so far are scaled
// to the new m. The largest and the sum of each row are found for all rows at once, by a transpose.
static void lsh_softmax(tiles *t, const slot *queries, const slot *keys, int i, int n)
{
    const int causal = t->head->causal, lanes = vround(keys->n);
    const vf infinite = vset(-INFINITY), old = vload(t->m + i);
    vf across[LIN_WIDTH], top = old, total = {0};
    float safe[LIN_WIDTH], scale[LIN_WIDTH];
    for (int r = 0; r < LIN_WIDTH; r++) across[r] = infinite;
    for (int r = 0; r < n; r++) {
        float *S = t->S + (size_t)(i + r) * (size_t)t->lanes;
        const vi query = viset(queries->index[i + r]);
        for (int j = 0; j < lanes; j += LIN_WIDTH) {
            const vf score = lsh_masked(vload(S + j) * vload(keys->w + j), viload(keys->index + j), query, causal);
            across[r] = vmax(score, across[r]);
            vstore(S + j, score);
        }
    }
    transpose(across);
    for (int r = 0; r < LIN_WIDTH; r++) top = vmax(across[r], top);
    vstore(safe, vblend(veq(top, infinite), (vf){0}, top));
    vstore(scale, vexp(old - vload(safe)));
    for (int r = 0; r < LIN_WIDTH; r++) across[r] = (vf){0};
    for (int r = 0; r < n; r++) {
        float *S = t->S + (size_t)(i + r) * (size_t)t->lanes, *sums = t->sums + (size_t)(i + r) * (size_t)t->Ep;
        for (int j = 0; j < lanes; j += LIN_WIDTH) {
            const vf p = vexp(vload(S + j) - safe[r]);
            across[r] += p;
            vstore(S + j, p);
        }
        for (int e = 0; e < t->Ep; e += LIN_WIDTH) vstore(sums + e, vload(sums + e) * scale[r]);
    }
    transpose(across);
    for (int r = 0; r < LIN_WIDTH; r++) total += across[r];
    vstore(t->m + i, top);
    vstore(t->l + i, vfma(vload(t->l + i), vload(scale), total));
}

static void lsh_forward_tile(tiles *t, int number, int n_tiles, int round)
{
    const int chunk = number / t->per_chunk, from = chunk > 0 ? (chunk - 1) * t->per_chunk : 0;
    const int end = least((chunk + 1) * t->per_chunk, n_tiles);
    const slot *queries = lsh_slot(t, number, NULL);
    const size_t Ep = (size_t)t->Ep;
    lsh_resume(t, queries, round);
    for (int other = from; other < end; other++) {
        const slot *keys = lsh_slot(t, other, queries);
        lsh_products(t->S, queries->q, keys->qt, t, queries->n, keys->n);
        for (int i = 0; i < queries->n; i += LIN_WIDTH)
            lsh_softmax(t, queries, keys, i, least(LIN_WIDTH, queries->n - i));
        multiply(&(matmul){.out = t->sums, .out_stride = Ep, .a = t->S, .a_stride = (size_t)t->lanes,
            .b = keys->v, .b_stride = Ep, .rows = queries->n, .columns = t->Ep, .inner = keys->n, .add = 1});
    }
    lsh_suspend(t, queries, round);
}

// Starts a round; returns the number of its tiles.
static int lsh_begin(tiles *t, int round)
{
    const lin_lsh_head *h = t->head;
    const int chunks = h->T / t->chunk, rest = h->T % t->chunk;
    t->order = h->order + (size_t)round * h->order_stride;
    t->next = 0;
    for (int i = 0; i < t->n_slots; i++) t->slots[i].number = -1;
    return chunks * t->per_chunk + (rest + t->tile - 1) / t->tile;
}

void LIN_NAME(lin_lsh_head_forward)(const lin_lsh_head *h)
{
    tiles t;
    lsh_lay_out(&t, h, 0);
    for (int round = 0; round < h->lsh.rounds; round++) {
        const int n_tiles = lsh_begin(&t, round);
        for (int number = 0; number < n_tiles; number++) lsh_forward_tile(&t, number, n_tiles, round);
    }
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// From S (products) and dS (dy . v) of a pair of tiles: S becomes p, dS becomes dS_ij w_j, and the keys' c grow.
static void lsh_softmax_gradient(tiles *t, const slot *queries, const slot *keys)
{
    const int causal = t->head->causal, lanes = vround(keys->n);
    for (int j = 0; j < lanes; j += LIN_WIDTH) {
        const vf w = vload(keys->w + j);
        const vi key = viload(keys->index + j);
        vf c = vload(keys->c + j);
        for (int i = 0; i < queries->n; i++) {
            float *S = t->S + (size_t)i * (size_t)t->lanes + j, *dS = t->dS + (size_t)i * (size_t)t->lanes + j;
            const vf score = vload(S) * w;
            const vf p = vexp(lsh_masked(score, key, viset(queries->index[i]), causal) - queries->lse[i]);
            const vf d = p * (vload(dS) - queries->D[i]);
            c = vfma(d, score, c);
            vstore(S, p);
            vstore(dS, d * w);
        }
        vstore(keys->c + j, c);
    }
}

static void lsh_backward_pair(tiles *t, const slot *queries, const slot *keys)
{
    const size_t Ep = (size_t)t->Ep;
    matmul p = {.out_stride = Ep, .a_stride = (size_t)t->lanes, .b_stride = Ep, .columns = t->Ep, .add = 1};
    lsh_products(t->S, queries->q, keys->qt, t, queries->n, keys->n);
    lsh_products(t->dS, queries->dy, keys->vt, t, queries->n, keys->n);
    lsh_softmax_gradient(t, queries, keys);
    p.rows = queries->n;
    p.inner = keys->n;
    p.out = queries->dq;
    p.a = t->dS;
    p.b = keys->q;
    multiply(&p);
    p.rows = keys->n;
    p.inner = queries->n;
    p.out = keys->dq;
    p.b = queries->q;
    multiply_t(&p);
    p.out = keys->dv;
    p.a = t->S;
    p.b = queries->dy;
    multiply_t(&p);
}

void LIN_NAME(lin_lsh_head_backward)(const lin_lsh_head *h)
{
    tiles t;
    lsh_lay_out(&t, h, 1);
    const size_t bytes = (size_t)h->E * sizeof(float);
    for (int f = 0; f < h->T; f++) { // of a frame that saw only itself, dv = dy
        const int alone = h->lse_in[(size_t)f * h->lse_stride] < LSH_SELF_SCORE / 2;
        memset(h->dq + (size_t)f * h->qv_stride, 0, bytes);
        memset(h->dv + (size_t)f * h->qv_stride, 0, bytes);
        if (alone) memcpy(h->dv + (size_t)f * h->qv_stride, h->dy + (size_t)f * h->y_stride, bytes);
    }
    for (int round = 0; round < h->lsh.rounds; round++) {
        const int n_tiles = lsh_begin(&t, round);
        for (int number = 0; number < n_tiles; number++) {
            const int chunk = number / t.per_chunk, from = chunk > 0 ? (chunk - 1) * t.per_chunk : 0;
            const int end = least((chunk + 1) * t.per_chunk, n_tiles);
            const slot *queries = lsh_slot(&t, number, NULL);
            for (int other = from; other < end; other++)
                lsh_backward_pair(&t, queries, lsh_slot(&t, other, queries));
        }
        for (int i = 0; i < t.n_slots; i++) lsh_flush(&t, t.slots + i);
    }
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { SMALL = 1024 }; // below this many values, starting a second thread costs more time than it saves

typedef struct lsh_job {
    const lin_exec *exec;
    float *y, *lse, *dqv;
    int *order_out;
    const float *qv, *R, *dy, *y_in, *lse_in;
    const int *order;
    const lin_segments *segments;
    const lin_lsh *lsh;
    int H, E, causal;
} lsh_job;

// Set-up shared by forward and backward.
static lin_lsh_head head_of(const lsh_job *job, int piece, int thread)
{
    const int *offsets = job->segments->offsets, b = piece / job->H;
    const size_t E = (size_t)job->E, C = (size_t)job->H * E, h = (size_t)(piece % job->H), row = (size_t)offsets[b];
    const float *q = job->qv + row * 2 * C + h * E;
    return (lin_lsh_head){.T = offsets[b + 1] - offsets[b], .E = job->E, .causal = job->causal, .lsh = *job->lsh,
                          .qv_stride = 2 * C, .y_stride = C, .lse_stride = (size_t)job->H,
                          .order_stride = (size_t)job->H * (size_t)job->segments->rows,
                          .rotations_stride = C * (size_t)job->lsh->rotations, .q = q, .v = q + C,
                          .order = job->order + h * (size_t)job->segments->rows + row,
                          .scratch = lin_scratch(job->exec, thread)};
}

static void forward_piece(void *context, int piece, int thread)
{
    const lsh_job *job = context;
    const size_t E = (size_t)job->E, h = (size_t)(piece % job->H), H = (size_t)job->H;
    const size_t row = (size_t)job->segments->offsets[piece / job->H];
    lin_lsh_head head = head_of(job, piece, thread);
    if (head.T == 0) return;
    head.R = job->R + h * E * (size_t)job->lsh->rotations;
    head.order_out = job->order_out + (head.order - job->order);
    head.y = job->y + (row * H + h) * E;
    head.lse = job->lse + row * H + h;
    LIN_DISPATCH(lin_lsh_head_sort)(&head);
    LIN_DISPATCH(lin_lsh_head_forward)(&head);
}

void lin_cpu_lsh_forward(lin_exec *exec, float *y, float *lse, int *order, const float *qv, const float *R,
                         const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    lsh_job job = {.exec = exec, .y = y, .lse = lse, .order_out = order, .order = order, .qv = qv, .R = R, .segments = segments,
                   .lsh = lsh, .H = H, .E = E, .causal = causal};
    lin_pool_run(lin_threads_for(exec, segments->rows, H * E, SMALL), segments->B * H, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const lsh_job *job = context;
    const size_t E = (size_t)job->E, h = (size_t)(piece % job->H), H = (size_t)job->H;
    const size_t row = (size_t)job->segments->offsets[piece / job->H];
    lin_lsh_head head = head_of(job, piece, thread);
    if (head.T == 0) return;
    head.dy = job->dy + (row * H + h) * E;
    head.y_in = job->y_in + (row * H + h) * E;
    head.lse_in = job->lse_in + row * H + h;
    head.dq = job->dqv + (head.q - job->qv);
    head.dv = head.dq + H * E;
    LIN_DISPATCH(lin_lsh_head_backward)(&head);
}

void lin_cpu_lsh_backward(lin_exec *exec, float *dqv, const float *dy, const float *qv, const float *y, const float *lse,
                          const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    lsh_job job = {.exec = exec, .dqv = dqv, .dy = dy, .qv = qv, .y_in = y, .lse_in = lse, .order = order, .segments = segments,
                   .lsh = lsh, .H = H, .E = E, .causal = causal};
    lin_pool_run(lin_threads_for(exec, segments->rows, H * E, SMALL), segments->B * H, backward_piece, &job);
}
#endif
