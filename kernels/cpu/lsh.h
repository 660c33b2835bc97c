/*
 * lsh.h - LSH attention of one utterance and one head, once per instruction set. lsh.c has the threads, ops_table.h the definition.
 *
 * Sorting. The projections q R are matrix products that end in an argmax: nothing of them is stored. A counting sort orders each
 * round. The buckets of the round are stored in lse until then, so the length of an utterance is not limited by scratch.
 *
 * Tiles. A chunk of the sorted frames is divided into tiles of at most LSH_TILE frames, gathered into slots of scratch: queries, which
 * are the keys as well, their transpose, and values. The tiles of a chunk and of the one before it meet in pairs, S = Q Qᵀ of the two
 * tiles at a time, so a tile is gathered once where the slots hold two chunks, which is so for all usual chunks.
 *
 * Forward. The softmax of a frame runs over pairs of tiles and over rounds with a running maximum m and sum l (Milakov & Gimelshein
 * 2018). Between two rounds y and lse hold the state: m = lse, l = 1, sums = y. lse = -inf: the frame has seen no other yet.
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

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lsh_head.h"
#include "kernels/cpu/simd.h"

#if LIN_WIDTH == 16
#define ROWS 8 // of 32 registers: 8 rows of 2 vectors of sums, 2 vectors of b
#else
#define ROWS 4 // of 16 registers: 4 rows of 2 vectors of sums, 2 vectors of b, and the broadcast value
#endif
_Static_assert(LIN_WIDTH % ROWS == 0, "a tile padded to whole vectors has whole blocks of rows");

enum { LSH_TILE = 64, LSH_SLOTS = 8 };
#define LSH_SELF_SCORE -1e5f
#define LSH_LEAST_NORM 1e-6f

/* The frames of one tile. Rows are [tile, Ep], transposes [Ep, lanes], the others [lanes]. */
typedef struct LIN_NAME(slot) {
    int number, n, first; // the tile, -1 if none; its frames, and where they begin in the order
    const int *frames;
    float *q, *qt;                   // queries and their transpose
    float *v;                        // forward: values
    float *vt, *dy, *dq, *dv;        // backward: values transposed; dy; the sums of the gradients
    float *w, *D, *lse, *c, *square; // w_j; D_i; lse_i; c_j; 1 / |q_j|², 0 if the norm is LSH_LEAST_NORM
    int *index;                      // the frames, INT_MAX past the end
} LIN_NAME(slot);

typedef struct LIN_NAME(tiles) {
    const lin_lsh_head *head;
    const int *order;                        // of the round
    int chunk, tile, per_chunk, rows, lanes; // frames of a chunk and of a tile; tiles of a chunk; tile padded to blocks, to vectors
    int Ep, backward, n_slots, next;
    LIN_NAME(slot) slots[LSH_SLOTS];
    float *S, *dS;       // [rows, lanes]
    float *sums, *m, *l; // forward: of the tile of queries, [rows, Ep], [lanes], [lanes]
} LIN_NAME(tiles);

/* ---- the product ----------------------------------------------------------------------------------------------------------------- */

/* ROWS rows of `vectors` vectors: c (+)= sum_k a[r, k] b[k]; element (r, k) of a is at r * row + k * step. */
LIN_INLINE void LIN_NAME(lsh_block)(float *c, size_t pitch, const float *a, size_t row, size_t step, const float *b, size_t b_pitch,
                                    int k, int vectors, int add)
{
    vf sum[ROWS][2];
    LIN_UNROLL
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < vectors; i++) sum[r][i] = add ? vload(c + (size_t)r * pitch + i * LIN_WIDTH) : (vf){0};
    for (int j = 0; j < k; j++) {
        vf b0 = vload(b + (size_t)j * b_pitch), b1 = vectors > 1 ? vload(b + (size_t)j * b_pitch + LIN_WIDTH) : b0;
        LIN_UNROLL
        for (int r = 0; r < ROWS; r++) {
            vf x = vset(a[(size_t)r * row + (size_t)j * step]);
            sum[r][0] = vfma(x, b0, sum[r][0]);
            if (vectors > 1) sum[r][1] = vfma(x, b1, sum[r][1]);
        }
    }
    LIN_UNROLL
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < vectors; i++) vstore(c + (size_t)r * pitch + i * LIN_WIDTH, sum[r][i]);
}

/* c [rows, columns] (+)= a b over k; rows of ROWS and columns of LIN_WIDTH are computed whole. */
LIN_INLINE void LIN_NAME(lsh_multiply)(float *c, size_t pitch, const float *a, size_t row, size_t step, const float *b,
                                       size_t b_pitch, int rows, int k, int columns, int add)
{
    for (int i = 0; i < columns; i += 2 * LIN_WIDTH)
        for (int r = 0; r < rows; r += ROWS) {
            float *to = c + (size_t)r * pitch + i;
            if (columns - i > LIN_WIDTH)
                LIN_NAME(lsh_block)(to, pitch, a + (size_t)r * row, row, step, b + i, b_pitch, k, 2, add);
            else
                LIN_NAME(lsh_block)(to, pitch, a + (size_t)r * row, row, step, b + i, b_pitch, k, 1, add);
        }
}

static __attribute__((noinline)) void LIN_NAME(lsh_write)(float *c, size_t pitch, const float *a, size_t row, const float *b,
                                                          size_t b_pitch, int rows, int k, int columns)
{
    LIN_NAME(lsh_multiply)(c, pitch, a, row, 1, b, b_pitch, rows, k, columns, 0);
}

static __attribute__((noinline)) void LIN_NAME(lsh_add)(float *c, size_t pitch, const float *a, size_t row, size_t step,
                                                        const float *b, size_t b_pitch, int rows, int k, int columns)
{
    LIN_NAME(lsh_multiply)(c, pitch, a, row, step, b, b_pitch, rows, k, columns, 1);
}

/* ---- sorting --------------------------------------------------------------------------------------------------------------------- */

/* The largest and the smallest projection of a row so far, by lane, and their columns. */
typedef struct LIN_NAME(extremes) {
    vf high, low;
    vi at_high, at_low;
} LIN_NAME(extremes);

LIN_INLINE void LIN_NAME(lsh_extend)(LIN_NAME(extremes) *x, vf value, vi column)
{
    vm above = vgt(value, x->high), below = vgt(x->low, value);
    x->high = vblend(above, value, x->high);
    x->at_high = viblend(above, column, x->at_high);
    x->low = vblend(below, value, x->low);
    x->at_low = viblend(below, column, x->at_low);
}

/* The ROWS rows of a [ROWS, Ep] times n columns of R, at most `vectors` vectors, from column c on. */
LIN_INLINE void LIN_NAME(lsh_project)(LIN_NAME(extremes) *x, const float *a, size_t Ep, const float *R, size_t rotations, int E, int c,
                                      int n, int vectors)
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
        for (int i = 0; i < vectors; i++) LIN_NAME(lsh_extend)(x + r, sum[r][i], lane + (c + i * LIN_WIDTH));
}

/* Lanes past the last column are projections of 0: they are chosen only where all are 0, and then column 0 comes first. */
static int LIN_NAME(lsh_bucket)(const LIN_NAME(extremes) *x, int columns)
{
    float high[LIN_WIDTH], low[LIN_WIDTH], best = -INFINITY;
    int at_high[LIN_WIDTH], at_low[LIN_WIDTH], bucket = INT_MAX;
    vstore(high, x->high);
    vstore(low, x->low);
    vistore(at_high, x->at_high);
    vistore(at_low, x->at_low);
    for (int i = 0; i < LIN_WIDTH; i++) best = high[i] > best ? high[i] : best;
    for (int i = 0; i < LIN_WIDTH; i++) best = -low[i] > best ? -low[i] : best;
    for (int i = 0; i < LIN_WIDTH; i++)
        if (high[i] == best && at_high[i] < bucket) bucket = at_high[i];
    for (int i = 0; i < LIN_WIDTH; i++)
        if (-low[i] == best && at_low[i] + columns < bucket) bucket = at_low[i] + columns;
    return bucket < 2 * columns ? bucket : 2 * columns - 1;
}

/* The buckets of frames t .. t+n-1, n <= ROWS; a [ROWS, Ep] is scratch. */
static void LIN_NAME(lsh_buckets)(int *buckets, const lin_lsh_head *h, const float *R, int t, int n, int columns, float *a)
{
    LIN_NAME(extremes) x[ROWS];
    const size_t Ep = (size_t)vround(h->E), rotations = (size_t)h->lsh.rotations;
    for (int r = 0; r < ROWS; r++) {
        x[r] = (LIN_NAME(extremes)){.high = vset(-INFINITY), .low = vset(INFINITY)};
        const int row = t + (r < n ? r : 0);
        memcpy(a + (size_t)r * Ep, h->q + (size_t)row * h->qv_stride, (size_t)h->E * sizeof(float));
    }
    int c = 0;
    for (; columns - c >= 2 * LIN_WIDTH; c += 2 * LIN_WIDTH)
        LIN_NAME(lsh_project)(x, a, Ep, R, rotations, h->E, c, LIN_WIDTH, 2);
    for (; columns - c >= LIN_WIDTH; c += LIN_WIDTH) LIN_NAME(lsh_project)(x, a, Ep, R, rotations, h->E, c, LIN_WIDTH, 1);
    if (c < columns) LIN_NAME(lsh_project)(x, a, Ep, R, rotations, h->E, c, columns - c, 1);
    for (int r = 0; r < n; r++) buckets[r] = LIN_NAME(lsh_bucket)(x + r, columns);
}

void LIN_NAME(lin_lsh_head_sort)(const lin_lsh_head *h);
void LIN_NAME(lin_lsh_head_sort)(const lin_lsh_head *h)
{
    const int columns = lin_lsh_columns(&h->lsh, h->T);
    float *a = h->scratch;
    int *starts = (int *)(a + ROWS * vround(h->E)), buckets[ROWS];
    for (int round = 0; round < h->lsh.rounds; round++) {
        int *order = h->order_out + (size_t)round * h->order_stride;
        memset(starts, 0, (size_t)(2 * columns) * sizeof *starts);
        for (int t = 0; t < h->T; t += ROWS) {
            const int n = h->T - t < ROWS ? h->T - t : ROWS;
            LIN_NAME(lsh_buckets)(buckets, h, h->R + (size_t)round * h->rotations_stride, t, n, columns, a);
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

/* ---- tiles ----------------------------------------------------------------------------------------------------------------------- */

LIN_INLINE int LIN_NAME(lsh_least)(int a, int b) { return a < b ? a : b; }

/* Floats of a slot, and of what all slots share, for tiles of n frames. */
static size_t LIN_NAME(lsh_slot_size)(int n, int Ep, int backward)
{
    const size_t rows = (size_t)((n + ROWS - 1) / ROWS * ROWS) * (size_t)Ep, transposed = (size_t)vround(n) * (size_t)Ep;
    return (backward ? 4 * rows + 2 * transposed : 2 * rows + transposed) + 6 * (size_t)vround(n);
}

static size_t LIN_NAME(lsh_shared_size)(int n, int Ep)
{
    const size_t rows = (size_t)((n + ROWS - 1) / ROWS * ROWS), lanes = (size_t)vround(n);
    return 2 * rows * lanes + rows * (size_t)Ep + 2 * lanes;
}

/* Chooses the size of the tiles and divides the scratch: at least two slots, which E up to 4096 allows. */
static void LIN_NAME(lsh_lay_out)(LIN_NAME(tiles) *t, const lin_lsh_head *h, int backward)
{
    const size_t room = LIN_SCRATCH_BYTES / sizeof(float);
    int most = LSH_TILE;
    *t = (LIN_NAME(tiles)){.head = h, .Ep = vround(h->E), .backward = backward, .chunk = LIN_NAME(lsh_least)(h->lsh.chunk, h->T)};
    while (most > 1 && LIN_NAME(lsh_shared_size)(most, t->Ep) + 2 * LIN_NAME(lsh_slot_size)(most, t->Ep, backward) > room) most /= 2;
    t->per_chunk = (t->chunk + most - 1) / most;
    t->tile = (t->chunk + t->per_chunk - 1) / t->per_chunk;
    t->per_chunk = (t->chunk + t->tile - 1) / t->tile;
    t->rows = (t->tile + ROWS - 1) / ROWS * ROWS;
    t->lanes = vround(t->tile);
    const size_t slot_size = LIN_NAME(lsh_slot_size)(t->tile, t->Ep, backward);
    const size_t rows = (size_t)t->rows * (size_t)t->Ep, transposed = (size_t)t->lanes * (size_t)t->Ep, lanes = (size_t)t->lanes;
    const size_t slots = (room - LIN_NAME(lsh_shared_size)(t->tile, t->Ep)) / slot_size;
    t->n_slots = slots < LSH_SLOTS ? (int)slots : LSH_SLOTS;
    t->S = h->scratch;
    t->dS = t->S + (size_t)t->rows * lanes;
    t->sums = t->dS + (size_t)t->rows * lanes;
    t->m = t->sums + rows;
    t->l = t->m + lanes;
    for (int i = 0; i < t->n_slots; i++) {
        LIN_NAME(slot) *s = t->slots + i;
        float *p = t->l + lanes + (size_t)i * slot_size;
        s->q = p;
        s->qt = s->q + rows;
        s->v = s->dy = s->qt + transposed;
        s->dq = s->dy + rows; // the rest of the rows: backward only
        s->dv = s->dq + rows;
        s->vt = s->dv + rows;
        s->w = backward ? s->vt + transposed : s->v + rows;
        s->D = s->w + lanes;
        s->lse = s->D + lanes;
        s->c = s->lse + lanes;
        s->square = s->c + lanes;
        s->index = (int *)(s->square + lanes);
    }
}

// Copies row f, E floats, to `rows`, and to column f of `transposed`, either may be NULL; returns the sum of squares.
LIN_INLINE float LIN_NAME(lsh_take)(const LIN_NAME(tiles) *t, float *rows, float *transposed, const float *from, int f)
{
    const int E = t->head->E;
    vf sum = {0};
    for (int e = 0; e < E; e += LIN_WIDTH) {
        vf x = E - e >= LIN_WIDTH ? vload(from + e) : vload_n(from + e, E - e);
        if (rows) vstore(rows + (size_t)f * (size_t)t->Ep + e, x);
        sum = vfma(x, x, sum);
    }
    for (int e = 0; transposed && e < E; e++) transposed[(size_t)e * (size_t)t->lanes + (size_t)f] = from[e];
    return vsum(sum);
}

LIN_INLINE void LIN_NAME(lsh_clear)(float *p, size_t n)
{
    for (size_t i = 0; i < n; i += LIN_WIDTH) vstore(p + i, (vf){0});
}

// What the backward pass needs of frame f of a tile besides queries.
static void LIN_NAME(lsh_take_gradient)(const LIN_NAME(tiles) *t, LIN_NAME(slot) *s, int f)
{
    const lin_lsh_head *h = t->head;
    const size_t frame = (size_t)s->frames[f];
    const float *dy = h->dy + frame * h->y_stride, *y = h->y_in + frame * h->y_stride;
    vf sum = {0};
    for (int e = 0; e < h->E; e += LIN_WIDTH) {
        const int n = LIN_NAME(lsh_least)(h->E - e, LIN_WIDTH);
        sum = vfma(n < LIN_WIDTH ? vload_n(dy + e, n) : vload(dy + e), n < LIN_WIDTH ? vload_n(y + e, n) : vload(y + e), sum);
    }
    LIN_NAME(lsh_take)(t, NULL, s->vt, h->v + frame * h->qv_stride, f);
    LIN_NAME(lsh_take)(t, s->dy, NULL, dy, f);
    s->D[f] = vsum(sum);
    s->lse[f] = h->lse_in[frame * h->lse_stride];
}

// Prefetches what the tile after this one gathers for its frame f.
LIN_INLINE void LIN_NAME(lsh_fetch)(const LIN_NAME(tiles) *t, const LIN_NAME(slot) *s, int f)
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

static void LIN_NAME(lsh_fill)(LIN_NAME(tiles) *t, LIN_NAME(slot) *s, int number)
{
    const lin_lsh_head *h = t->head;
    const int chunk = number / t->per_chunk, at = number % t->per_chunk * t->tile;
    const size_t rows = (size_t)t->rows * (size_t)t->Ep;
    const float root = sqrtf((float)h->E);
    s->number = number;
    s->first = chunk * t->chunk + at;
    s->n = LIN_NAME(lsh_least)(LIN_NAME(lsh_least)(t->tile, t->chunk - at), h->T - s->first);
    s->frames = t->order + s->first;
    // What is past the end is undefined but for the index, which hides it: each product sums over the n frames alone.
    for (int f = s->n; f < t->lanes; f++) s->index[f] = INT_MAX;
    for (int f = 0; f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f];
        LIN_NAME(lsh_fetch)(t, s, f);
        const float norm = sqrtf(LIN_NAME(lsh_take)(t, s->q, s->qt, h->q + frame * h->qv_stride, f));
        const int small = norm <= LSH_LEAST_NORM;
        s->index[f] = s->frames[f];
        s->w[f] = 1 / ((small ? LSH_LEAST_NORM : norm) * root);
        s->square[f] = small ? 0 : 1 / (norm * norm);
        if (t->backward)
            LIN_NAME(lsh_take_gradient)(t, s, f);
        else
            LIN_NAME(lsh_take)(t, s->v, NULL, h->v + frame * h->qv_stride, f);
    }
    if (!t->backward) return;
    LIN_NAME(lsh_clear)(s->dq, rows);
    LIN_NAME(lsh_clear)(s->dv, rows);
    LIN_NAME(lsh_clear)(s->c, (size_t)t->lanes);
}

// Adds the gradients of a slot to those of its frames.
static void LIN_NAME(lsh_flush)(LIN_NAME(tiles) *t, LIN_NAME(slot) *s)
{
    const lin_lsh_head *h = t->head;
    for (int f = 0; t->backward && s->number >= 0 && f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f] * h->qv_stride, row = (size_t)f * (size_t)t->Ep;
        const vf along = vset(-s->c[f] * s->square[f]);
        for (int e = 0; e < h->E; e += LIN_WIDTH) {
            const int n = LIN_NAME(lsh_least)(h->E - e, LIN_WIDTH);
            float *dq = h->dq + frame + e, *dv = h->dv + frame + e;
            vf q = vfma(vload(s->q + row + e), along, vload(s->dq + row + e)), v = vload(s->dv + row + e);
            if (n == LIN_WIDTH) {
                vstore(dq, vload(dq) + q);
                vstore(dv, vload(dv) + v);
            } else {
                vstore_n(dq, vload_n(dq, n) + q, n);
                vstore_n(dv, vload_n(dv, n) + v, n);
            }
        }
    }
    s->number = -1;
}

/* The slot that holds a tile; `pinned` (may be NULL) keeps its tile. */
static LIN_NAME(slot) *LIN_NAME(lsh_slot)(LIN_NAME(tiles) *t, int number, const LIN_NAME(slot) *pinned)
{
    for (int i = 0; i < t->n_slots; i++)
        if (t->slots[i].number == number) return t->slots + i;
    LIN_NAME(slot) *s = t->slots + t->next;
    if (s == pinned) s = t->slots + (t->next + 1) % t->n_slots;
    t->next = (int)(s - t->slots + 1) % t->n_slots;
    LIN_NAME(lsh_flush)(t, s);
    LIN_NAME(lsh_fill)(t, s, number);
    return s;
}

// Scores of a query, -inf where it does not see the key; no key past the end of the tile has a number below INT_MAX.
LIN_INLINE vf LIN_NAME(lsh_masked)(vf score, vi key, vi query, int causal)
{
    const vi hidden = (vi)(key == query) | (causal ? (vi)(key > query) : (vi)(key == viset(INT_MAX)));
    return (vf)((hidden & (vi)vset(-INFINITY)) | (~hidden & (vi)score));
}

/* ---- forward --------------------------------------------------------------------------------------------------------------------- */

// Reads the state of the queries of a tile from y and lse.
static void LIN_NAME(lsh_resume)(LIN_NAME(tiles) *t, const LIN_NAME(slot) *s, int round)
{
    const lin_lsh_head *h = t->head;
    for (int f = 0; f < t->rows; f++) {
        const size_t frame = f < s->n ? (size_t)s->frames[f] : 0;
        const int fresh = round == 0 || f >= s->n;
        t->m[f] = fresh ? -INFINITY : h->lse[frame * h->lse_stride];
        t->l[f] = fresh || t->m[f] == -INFINITY ? 0 : 1;
        if (fresh)
            LIN_NAME(lsh_clear)(t->sums + (size_t)f * (size_t)t->Ep, (size_t)t->Ep);
        else
            LIN_NAME(lsh_take)(t, t->sums, NULL, h->y + frame * h->y_stride, f);
    }
    for (int f = t->rows; f < t->lanes; f++) t->m[f] = t->l[f] = 0;
}

// Writes it back. In the last round, a frame that has seen no other sees itself.
static void LIN_NAME(lsh_suspend)(LIN_NAME(tiles) *t, const LIN_NAME(slot) *s, int round)
{
    const lin_lsh_head *h = t->head;
    const int last = round == h->lsh.rounds - 1;
    for (int f = 0; f < s->n; f++) {
        const size_t frame = (size_t)s->frames[f];
        const int alone = t->l[f] == 0;
        const float *from = alone && last ? s->v : t->sums, inverse = alone ? 1 : 1 / t->l[f];
        float *y = h->y + frame * h->y_stride;
        for (int e = 0; e < h->E; e += LIN_WIDTH) {
            vf value = vload(from + (size_t)f * (size_t)t->Ep + e) * inverse;
            if (h->E - e >= LIN_WIDTH)
                vstore(y + e, value);
            else
                vstore_n(y + e, value, h->E - e);
        }
        float lse = alone ? -INFINITY : (float)((double)t->m[f] + log((double)t->l[f]));
        if (alone && last) lse = LSH_SELF_SCORE + logf((float)h->lsh.rounds);
        h->lse[frame * h->lse_stride] = lse;
    }
}

// The softmax of S of a pair of tiles: S becomes exp(s - m), and the sums so far are scaled to the new m.
static void LIN_NAME(lsh_softmax)(LIN_NAME(tiles) *t, const LIN_NAME(slot) *queries, const LIN_NAME(slot) *keys)
{
    const int causal = t->head->causal, lanes = vround(keys->n), n = queries->n;
    float *top = t->dS; // free in the forward pass
    for (int i = 0; i < n; i++) {
        float *S = t->S + (size_t)i * (size_t)t->lanes;
        const vi query = viset(queries->index[i]);
        vf most = vset(t->m[i]);
        for (int j = 0; j < lanes; j += LIN_WIDTH) {
            vf score = LIN_NAME(lsh_masked)(vload(S + j) * vload(keys->w + j), viload(keys->index + j), query, causal);
            most = vmax(score, most);
            vstore(S + j, score);
        }
        top[i] = vsum_max(most);
    }
    for (int i = n; i < vround(n); i++) top[i] = 0;
    for (int i = 0; i < n; i += LIN_WIDTH) { // top becomes the new m, or 0 where there is none, m the factor of the sums
        const vf m = vload(t->m + i), most = vload(top + i);
        const vf safe = vblend(veq(most, vset(-INFINITY)), (vf){0}, most);
        const vf scale = vexp(m - safe);
        vstore(top + i, safe);
        vstore(t->m + i, scale);
    }
    for (int i = 0; i < n; i++) {
        float *S = t->S + (size_t)i * (size_t)t->lanes, *sums = t->sums + (size_t)i * (size_t)t->Ep;
        const vf scale = vset(t->m[i]);
        vf total = {0};
        for (int j = 0; j < lanes; j += LIN_WIDTH) {
            vf p = vexp(vload(S + j) - top[i]);
            total += p;
            vstore(S + j, p);
        }
        for (int e = 0; e < t->Ep; e += LIN_WIDTH) vstore(sums + e, vload(sums + e) * scale);
        t->l[i] = t->l[i] * t->m[i] + vsum(total);
        t->m[i] = t->l[i] == 0 ? -INFINITY : top[i];
    }
}

static void LIN_NAME(lsh_forward_tile)(LIN_NAME(tiles) *t, int number, int n_tiles, int round)
{
    const int chunk = number / t->per_chunk, from = chunk > 0 ? (chunk - 1) * t->per_chunk : 0;
    const int end = LIN_NAME(lsh_least)((chunk + 1) * t->per_chunk, n_tiles);
    const LIN_NAME(slot) *queries = LIN_NAME(lsh_slot)(t, number, NULL);
    const size_t Ep = (size_t)t->Ep, lanes = (size_t)t->lanes;
    LIN_NAME(lsh_resume)(t, queries, round);
    for (int other = from; other < end; other++) {
        const LIN_NAME(slot) *keys = LIN_NAME(lsh_slot)(t, other, queries);
        LIN_NAME(lsh_write)(t->S, lanes, queries->q, Ep, keys->qt, lanes, queries->n, t->head->E, vround(keys->n));
        LIN_NAME(lsh_softmax)(t, queries, keys);
        LIN_NAME(lsh_add)(t->sums, Ep, t->S, lanes, 1, keys->v, Ep, queries->n, keys->n, t->Ep);
    }
    LIN_NAME(lsh_suspend)(t, queries, round);
}

// Starts a round; returns the number of its tiles.
static int LIN_NAME(lsh_begin)(LIN_NAME(tiles) *t, int round)
{
    const lin_lsh_head *h = t->head;
    const int chunks = h->T / t->chunk, rest = h->T % t->chunk;
    t->order = h->order + (size_t)round * h->order_stride;
    t->next = 0;
    for (int i = 0; i < t->n_slots; i++) t->slots[i].number = -1;
    return chunks * t->per_chunk + (rest + t->tile - 1) / t->tile;
}

void LIN_NAME(lin_lsh_head_forward)(const lin_lsh_head *h);
void LIN_NAME(lin_lsh_head_forward)(const lin_lsh_head *h)
{
    LIN_NAME(tiles) t;
    LIN_NAME(lsh_lay_out)(&t, h, 0);
    for (int round = 0; round < h->lsh.rounds; round++) {
        const int n_tiles = LIN_NAME(lsh_begin)(&t, round);
        for (int number = 0; number < n_tiles; number++) LIN_NAME(lsh_forward_tile)(&t, number, n_tiles, round);
    }
}

/* ---- backward -------------------------------------------------------------------------------------------------------------------- */

// From S (products) and dS (dy . v) of a pair of tiles: S becomes p, dS becomes dS_ij w_j, and the keys' c grow.
static void LIN_NAME(lsh_softmax_gradient)(LIN_NAME(tiles) *t, const LIN_NAME(slot) *queries, const LIN_NAME(slot) *keys)
{
    const int causal = t->head->causal, lanes = vround(keys->n);
    for (int j = 0; j < lanes; j += LIN_WIDTH) {
        const vf w = vload(keys->w + j);
        const vi key = viload(keys->index + j);
        vf c = vload(keys->c + j);
        for (int i = 0; i < queries->n; i++) {
            float *S = t->S + (size_t)i * (size_t)t->lanes + j, *dS = t->dS + (size_t)i * (size_t)t->lanes + j;
            const vf score = vload(S) * w;
            const vf p = vexp(LIN_NAME(lsh_masked)(score, key, viset(queries->index[i]), causal) - queries->lse[i]);
            const vf d = p * (vload(dS) - queries->D[i]);
            c = vfma(d, score, c);
            vstore(S, p);
            vstore(dS, d * w);
        }
        vstore(keys->c + j, c);
    }
}

static void LIN_NAME(lsh_backward_pair)(LIN_NAME(tiles) *t, const LIN_NAME(slot) *queries, const LIN_NAME(slot) *keys)
{
    const int E = t->head->E;
    const size_t Ep = (size_t)t->Ep, lanes = (size_t)t->lanes;
    LIN_NAME(lsh_write)(t->S, lanes, queries->q, Ep, keys->qt, lanes, queries->n, E, vround(keys->n));
    LIN_NAME(lsh_write)(t->dS, lanes, queries->dy, Ep, keys->vt, lanes, queries->n, E, vround(keys->n));
    LIN_NAME(lsh_softmax_gradient)(t, queries, keys);
    LIN_NAME(lsh_add)(queries->dq, Ep, t->dS, lanes, 1, keys->q, Ep, queries->n, keys->n, t->Ep);
    LIN_NAME(lsh_add)(keys->dq, Ep, t->dS, 1, lanes, queries->q, Ep, keys->n, queries->n, t->Ep);
    LIN_NAME(lsh_add)(keys->dv, Ep, t->S, 1, lanes, queries->dy, Ep, keys->n, queries->n, t->Ep);
}

void LIN_NAME(lin_lsh_head_backward)(const lin_lsh_head *h);
void LIN_NAME(lin_lsh_head_backward)(const lin_lsh_head *h)
{
    LIN_NAME(tiles) t;
    LIN_NAME(lsh_lay_out)(&t, h, 1);
    const size_t bytes = (size_t)h->E * sizeof(float);
    for (int f = 0; f < h->T; f++) { // of a frame that saw only itself, dv = dy
        const int alone = h->lse_in[(size_t)f * h->lse_stride] < LSH_SELF_SCORE / 2;
        memset(h->dq + (size_t)f * h->qv_stride, 0, bytes);
        memset(h->dv + (size_t)f * h->qv_stride, 0, bytes);
        if (alone) memcpy(h->dv + (size_t)f * h->qv_stride, h->dy + (size_t)f * h->y_stride, bytes);
    }
    for (int round = 0; round < h->lsh.rounds; round++) {
        const int n_tiles = LIN_NAME(lsh_begin)(&t, round);
        for (int number = 0; number < n_tiles; number++) {
            const int chunk = number / t.per_chunk, from = chunk > 0 ? (chunk - 1) * t.per_chunk : 0;
            const int end = LIN_NAME(lsh_least)((chunk + 1) * t.per_chunk, n_tiles);
            const LIN_NAME(slot) *queries = LIN_NAME(lsh_slot)(&t, number, NULL);
            for (int other = from; other < end; other++)
                LIN_NAME(lsh_backward_pair)(&t, queries, LIN_NAME(lsh_slot)(&t, other, queries));
        }
        for (int i = 0; i < t.n_slots; i++) LIN_NAME(lsh_flush)(&t, t.slots + i);
    }
}

#undef ROWS
