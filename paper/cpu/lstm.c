// lstm.c - LSTM: the frames of a group of utterances advance together, so that one product reads the recurrent weights for all of
// them.
//
// A work item is one direction of one group. Its utterances are sorted by length, so those that still run at step s are the first
// ones, and their states h are rows of one matrix in the scratch. Forwards, step s is frame s of direction 0 and frame T-1-s of
// direction 1; backwards it is the other way round. The product adds the terms of a row in the same order whatever the number of
// rows (linear.h): so neither the groups nor a split of the frames into calls change a bit.
//
// `ahead` is the distance in memory, in elements of h, to the frame that is computed next: it belongs to another utterance, which
// the hardware prefetcher cannot predict, so its values are prefetched.
#include <string.h>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_lstm_cell,
                     (float *h, float *c, float *gates, float *hs, float *cs, const float *sums, int U, ptrdiff_t ahead));
LIN_DISPATCH_DECLARE(void, lin_lstm_cell_backward,
                     (float *dgates, float *kept, float *dc, const float *dh, const float *sums, const float *c,
                      const float *c_before, const float *gates, int U, ptrdiff_t ahead));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

LIN_INLINE vf lstm_sigmoid(vf x)
{
    vf y = vmax(vset(-87.0f), vmin(vset(87.0f), x));
    vf shifted = vfma(y, vset(-LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER; // e^-x = 2^k e^r, as in vexp
    vf r = vfma(k, vset(0x1.bd0106p-13f), vfma(k, vset(-0x1.63p-1f), -y));
    return 1.0f / (1.0f + (vf)((vu)vexp_reduced(r) + ((vu)shifted << 23)));
}

/* tanh x = (e^2x - 1) / (e^2x - 1 + 2), with e^2x - 1 = 2^k (e^r - 1) + (2^k - 1): accurate near 0 too. From |x| = 10 on it
 * is 1. */
LIN_INLINE vf lstm_tanh(vf x)
{
    vf y = vmax(vset(-20.0f), vmin(vset(20.0f), x + x));
    vf shifted = vfma(y, vset(LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER;
    vf r = vfma(k, vset(0x1.bd0106p-13f), vfma(k, vset(-0x1.63p-1f), y)); // as in vexp
    vf power = (vf)(((vu)shifted << 23) + 0x3F800000u);
    vf top = vfma(power, vexpm1_reduced(r), power - 1.0f);
    return top / (top + 2.0f);
}

// The first n lanes; n is a literal LIN_WIDTH in all vectors but the last of a row.
/* Units u .. u+n-1 of lin_lstm_cell: gates and c, then h. */
LIN_INLINE void lstm_units(float *c, float *gates, float *cs, const float *sums, int U, int u, int n)
{
    vf a[4];
    LIN_UNROLL
    for (int j = 0; j < 4; j++) {
        vf sum = vlanes(gates + j * U + u, 0, n) + vlanes(sums + j * U + u, 0, n);
        a[j] = j == 2 ? lstm_tanh(sum) : lstm_sigmoid(sum);
        vput_lanes(gates + j * U + u, a[j], 0, n);
    }
    vf cell = vfma(a[1], vlanes(cs + u, 0, n), a[0] * a[2]);
    vput_lanes(cs + u, cell, 0, n);
    vput_lanes(c + u, cell, 0, n);
}

LIN_INLINE void lstm_output(float *h, float *hs, const float *cs, const float *o, int u, int n)
{
    vf out = vlanes(o + u, 0, n) * lstm_tanh(vlanes(cs + u, 0, n));
    vput_lanes(hs + u, out, 0, n);
    vput_lanes(h + u, out, 0, n);
}

/* gates [4, U] = their activations, with sums [4, U] = R h added before; c and cs = the new cell from the old cs; h and hs = the
 * output. Two loops, because the latency of a gate and of tanh(c) in one exceeds what a processor can reorder. */
void LIN_NAME(lin_lstm_cell)(float *h, float *c, float *gates, float *hs, float *cs, const float *sums, int U, ptrdiff_t ahead)
{
    const int whole = U / LIN_WIDTH * LIN_WIDTH;
    for (int u = 0; u < whole; u += LIN_WIDTH) {
        for (int j = 0; j < 4; j++) __builtin_prefetch(gates + 4 * ahead + j * U + u, 1);
        lstm_units(c, gates, cs, sums, U, u, LIN_WIDTH);
    }
    if (whole < U) lstm_units(c, gates, cs, sums, U, whole, U - whole);
    for (int u = 0; u < whole; u += LIN_WIDTH) lstm_output(h, hs, cs, gates + 3 * U, u, LIN_WIDTH);
    if (whole < U) lstm_output(h, hs, cs, gates + 3 * U, whole, U - whole);
}

/* Units u .. u+n-1 of lin_lstm_cell_backward. */
LIN_INLINE void lstm_units_backward(float *dgates, float *kept, float *dc, const float *dh, const float *sums,
                                    const float *c, const float *c_before, const float *gates, int U, int u, int n)
{
    vf i = vlanes(gates + u, 0, n), f = vlanes(gates + U + u, 0, n);
    vf g = vlanes(gates + 2 * U + u, 0, n), o = vlanes(gates + 3 * U + u, 0, n);
    vf y = lstm_tanh(vlanes(c + u, 0, n)),
       up = vlanes(dh + u, 0, n) + vlanes(sums + u, 0, n);
    vf before = c_before ? vlanes(c_before + u, 0, n) : (vf){0};
    vf d = vfma(up * o, 1.0f - y * y, vlanes(dc + u, 0, n));
    vf out[4] = {d * g * (i * (1.0f - i)), d * before * (f * (1.0f - f)), d * i * (1.0f - g * g), up * y * (o * (1.0f - o))};
    LIN_UNROLL
    for (int j = 0; j < 4; j++) {
        vput_lanes(dgates + j * U + u, out[j], 0, n);
        vput_lanes(kept + j * U + u, out[j], 0, n);
    }
    vput_lanes(dc + u, d * f, 0, n);
}

/* dgates and kept [4, U] from the gates' activations, dh plus sums (the gradient of h), dc (the gradient of c from the frames
 * after, on return that for the frame before), c and the c before (NULL: zeros). */
void LIN_NAME(lin_lstm_cell_backward)(float *dgates, float *kept, float *dc, const float *dh, const float *sums, const float *c,
                                      const float *c_before, const float *gates, int U, ptrdiff_t ahead)
{
    const int whole = U / LIN_WIDTH * LIN_WIDTH;
    for (int u = 0; u < whole; u += LIN_WIDTH) {
        for (int j = 0; j < 4; j++) {
            __builtin_prefetch(gates + 4 * ahead + j * U + u);
            __builtin_prefetch(dgates + 4 * ahead + j * U + u, 1);
        }
        __builtin_prefetch(dh + ahead + u);
        if (c_before) __builtin_prefetch(c_before + ahead + u);
        lstm_units_backward(dgates, kept, dc, dh, sums, c, c_before, gates, U, u, LIN_WIDTH);
    }
    if (whole < U) lstm_units_backward(dgates, kept, dc, dh, sums, c, c_before, gates, U, whole, U - whole);
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum {
    MOST = 64, // utterances of a group
    LEAST = 4, // ... that are worth a thread
    SHARES = 8 // of U floats in the scratch per utterance
};

/* y [rows, n] = x [rows, k] wᵀ at step s; room: rows k floats. */
typedef void product(float *y, const float *x, float *room, const float *packed, int rows, int n, int k, int s);

// R, 1.6 MB with U = 320, is larger than a second-level cache.
static void product_fp32(float *y, const float *x, float *room, const float *packed, int rows, int n, int k, int s)
{
    (void)room;
    LIN_DISPATCH(lin_linear_turned)(y, x, packed, rows, n, k, s % 2);
}

typedef struct lstm_job {
    const lin_exec *exec;
    const float *packed; // of each direction, `pitch` floats apart
    size_t pitch;
    product *multiply;
    const int *offsets;
    int B, U, D, group; // D directions, `group` utterances in each work item
    float *h, *cells, *gates;
    float *const *states;
    size_t at;
    float *dgates, *dR;
    lin_tile_product *weight_gradient;
    const float *dh, *h_in, *c_in, *gates_in;
    lin_tiling tiling;
} lstm_job;

static size_t pitch_of(size_t weight_size) { return (weight_size + 15) / 16 * 16; }

// Utterances in a work item: all threads get some, and each has room in the scratch.
static int group_size(const lin_exec *exec, int B, int U, int D)
{
    const int room = LIN_SCRATCH_BYTES / (int)sizeof(float) / (SHARES * U), most = room < MOST ? room : MOST;
    const int parts = (exec->n_threads + D - 1) / D, even = lin_round_up((B + parts - 1) / parts, LEAST);
    return most < 1 || B == 0 ? 1 : even < most ? even : most;
}

/* The utterances of a work item that have frames, the longest first. */
typedef struct group {
    int n, direction, step; // from one frame to the next, in rows
    int utterance[MOST], frames[MOST], row[MOST];
} group;

// later_first: direction 0 begins at the last frame of an utterance and direction 1 at the first.
static void group_of(group *g, const lstm_job *job, int piece, int later_first)
{
    const int first = piece / job->D * job->group, end = first + job->group < job->B ? first + job->group : job->B;
    g->n = 0;
    g->direction = piece % job->D;
    const int reverse = (g->direction == 1) != later_first;
    g->step = reverse ? -1 : 1;
    for (int b = first; b < end; b++) {
        const int frames = job->offsets[b + 1] - job->offsets[b];
        int i = g->n;
        if (frames <= 0) continue;
        for (; i > 0 && g->frames[i - 1] < frames; i--) {
            g->utterance[i] = g->utterance[i - 1];
            g->frames[i] = g->frames[i - 1];
            g->row[i] = g->row[i - 1];
        }
        g->utterance[i] = b;
        g->frames[i] = frames;
        g->row[i] = reverse ? job->offsets[b + 1] - 1 : job->offsets[b];
        g->n++;
    }
}

// The utterances that have a frame s, and the distance in rows from frame s of utterance i to the frame that is computed next.
static int running(const group *g, int n, int s)
{
    while (n > 0 && g->frames[n - 1] <= s) n--;
    return n;
}

static int rows_ahead(const group *g, int n, int s, int i)
{
    if (i + 1 < n) return g->row[i + 1] - g->row[i];
    return s + 1 < g->frames[0] ? g->row[0] + g->step - g->row[i] : 0;
}

static float *state_of(const lstm_job *job, int b) { return job->states && job->states[b] ? job->states[b] + job->at : NULL; }

static void forward_piece(void *context, int piece, int thread)
{
    const lstm_job *job = context;
    const int U = job->U;
    const size_t width = (size_t)U, D = (size_t)job->D;
    group g;
    group_of(&g, job, piece, 0);
    const size_t d = (size_t)g.direction, rows = (size_t)g.n;
    float *hs = lin_scratch(job->exec, thread), *cs = hs + rows * width, *sums = cs + rows * width,
          *room = sums + rows * 4 * width;
    for (int i = 0; i < g.n; i++) {
        const float *state = state_of(job, g.utterance[i]);
        for (int part = 0; part < 2; part++) {
            float *to = (part ? cs : hs) + (size_t)i * width;
            if (state) memcpy(to, state + (size_t)part * width, width * sizeof *to);
            else memset(to, 0, width * sizeof *to);
        }
    }
    for (int s = 0, n = g.n; (n = running(&g, n, s)) > 0; s++) {
        job->multiply(sums, hs, room, job->packed + d * job->pitch, n, 4 * U, U, s);
        for (int i = 0; i < n; i++) {
            const size_t at = ((size_t)g.row[i] * D + d) * width, r = (size_t)i * width;
            LIN_DISPATCH(lin_lstm_cell)
            (job->h + at, job->cells + at, job->gates + 4 * at, hs + r, cs + r, sums + 4 * r, U,
             (ptrdiff_t)rows_ahead(&g, n, s, i) * (ptrdiff_t)(D * width));
        }
        for (int i = 0; i < n; i++) g.row[i] += g.step;
    }
    for (int i = 0; i < g.n; i++) {
        float *state = state_of(job, g.utterance[i]);
        if (!state) continue;
        memcpy(state, hs + (size_t)i * width, width * sizeof *state);
        memcpy(state + width, cs + (size_t)i * width, width * sizeof *state);
    }
}

// A product below LIN_THREAD_WORK is done sooner than another thread wakes up.
static lin_pool *pool_for(const lin_exec *exec, const lin_segments *segments, int U, int D)
{
    return (size_t)segments->rows * (size_t)D * 4 * (size_t)U * (size_t)U < LIN_THREAD_WORK ? NULL : exec->pool;
}

// multiply: by weights in the form that they are packed in, weight_size floats.
static void forward(product *multiply, size_t weight_size, lin_exec *exec, float *h, float *cells, float *gates,
                    const float *packed, const lin_segments *segments, int U, int directions, float *const *states, size_t at)
{
    lstm_job job = {.multiply = multiply, .pitch = pitch_of(weight_size), .exec = exec, .packed = packed, .U = U, .D = directions,
                    .h = h, .cells = cells, .gates = gates, .states = directions == 1 ? states : NULL, .at = at,
                    .offsets = segments->offsets, .B = segments->B, .group = group_size(exec, segments->B, U, directions)};
    const int groups = (job.B + job.group - 1) / job.group;
    lin_pool_run(pool_for(exec, segments, U, directions), groups * directions, forward_piece, &job);
}

void lin_cpu_lstm_forward(lin_exec *exec, float *h, float *cells, float *gates, const float *packed, const lin_segments *segments,
                          int U, int directions, float *const *states, size_t at)
{
    forward(product_fp32, lin_cpu_weight_size(4 * U, U), exec, h, cells, gates, packed, segments, U, directions, states, at);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

static void backward_piece(void *context, int piece, int thread)
{
    const lstm_job *job = context;
    const int U = job->U;
    const size_t width = (size_t)U, D = (size_t)job->D;
    group g;
    group_of(&g, job, piece, 1);
    const size_t d = (size_t)g.direction, rows = (size_t)g.n;
    float *dc = lin_scratch(job->exec, thread), *sums = dc + rows * width, *kept = sums + rows * width;
    float *room = kept + rows * 4 * width;
    memset(dc, 0, 2 * rows * width * sizeof *dc); // and sums
    for (int s = 0, n = g.n; (n = running(&g, n, s)) > 0; s++) {
        if (s > 0) job->multiply(sums, kept, room, job->packed + d * job->pitch, n, U, 4 * U, s);
        for (int i = 0; i < n; i++) {
            const size_t at = ((size_t)g.row[i] * D + d) * width, r = (size_t)i * width;
            const ptrdiff_t before = g.step * (ptrdiff_t)(D * width);
            LIN_DISPATCH(lin_lstm_cell_backward)
            (job->dgates + 4 * at, kept + 4 * r, dc + r, job->dh + at, sums + r, job->c_in + at,
             s + 1 < g.frames[i] ? job->c_in + at + before : NULL, job->gates_in + 4 * at, U,
             (ptrdiff_t)rows_ahead(&g, n, s, i) * (ptrdiff_t)(D * width));
        }
        for (int i = 0; i < n; i++) g.row[i] += g.step;
    }
}

// A rectangle of dR: the products of each frame's dgates with h of the frame before, as one product of all rows with the rows
// beside them. Where two utterances meet, there is no frame before.
static void weight_piece(void *context, int piece, int thread)
{
    const lstm_job *job = context;
    const int U = job->U, parts = job->tiling.n_parts * job->tiling.k_parts, rows = job->offsets[job->B];
    const size_t d = (size_t)(piece / parts), D = (size_t)job->D, width = (size_t)U, next = D * width;
    lin_tile tile = lin_tiling_tile(&job->tiling, piece % parts, 4 * U, U);
    tile.ldw = width;
    tile.ldy = 4 * next;
    tile.ldx = next;
    tile.cuts = job->offsets + 1;
    tile.n_cuts = job->B - 1;
    job->weight_gradient(job->dR + d * 4 * width * width, NULL, job->dgates + (d ? 0 : 4 * next) + d * 4 * width,
                         job->h_in + (d ? next : 0) + d * width, rows - 1, tile, lin_scratch(job->exec, thread));
}

static void backward(product *multiply, size_t weight_size, lin_tile_product *weight_gradient, lin_exec *exec, float *dgates,
                     float *dR, const float *dh, const float *h, const float *cells, const float *gates, const float *packed,
                     const lin_segments *segments, int U, int directions)
{
    lin_pool *pool = pool_for(exec, segments, U, directions);
    lstm_job job = {.multiply = multiply, .pitch = pitch_of(weight_size), .weight_gradient = weight_gradient, .exec = exec,
                    .packed = packed, .U = U, .D = directions, .dgates = dgates, .dR = dR, .dh = dh, .h_in = h, .c_in = cells,
                    .gates_in = gates, .offsets = segments->offsets, .B = segments->B,
                    .group = group_size(exec, segments->B, U, directions),
                    .tiling = lin_linear_tiling(4 * U, U, directions, pool ? exec->n_threads : 1)};
    lin_pool_run(pool, (job.B + job.group - 1) / job.group * directions, backward_piece, &job);
    if (segments->rows > 1) lin_pool_run(pool, directions * job.tiling.n_parts * job.tiling.k_parts, weight_piece, &job);
}

void lin_cpu_lstm_backward(lin_exec *exec, float *dgates, float *dR, const float *dh, const float *h, const float *cells,
                           const float *gates, const float *packed, const lin_segments *segments, int U, int directions)
{
    backward(product_fp32, lin_cpu_weight_size(U, 4 * U), LIN_DISPATCH(lin_linear_tile), exec, dgates, dR, dh, h, cells, gates,
             packed, segments, U, directions);
}

#if LIN_HAS_BF16
/* ---- weights packed in bf16 ------------------------------------------------------------------------------------------------ */

static void product_bf16(float *y, const float *x, float *room, const float *packed, int rows, int n, int k, int s)
{
    (void)s;
    LIN_BF16(lin_bf16_round)(room, x, rows, k);
    LIN_BF16(lin_bf16_rows)(y, room, packed, NULL, rows, n, lin_bf16_words(k), LIN_LINEAR, NULL);
}

void lin_cpu_bf16_lstm_forward(lin_exec *exec, float *h, float *cells, float *gates, const float *packed,
                               const lin_segments *segments, int U, int directions, float *const *states, size_t at)
{
    forward(product_bf16, lin_cpu_bf16_weight_size(4 * U, U), exec, h, cells, gates, packed, segments, U, directions, states, at);
}

void lin_cpu_bf16_lstm_backward(lin_exec *exec, float *dgates, float *dR, const float *dh, const float *h, const float *cells,
                                const float *gates, const float *packed, const lin_segments *segments, int U, int directions)
{
    backward(product_bf16, lin_cpu_bf16_weight_size(U, 4 * U), LIN_BF16(lin_bf16_tile), exec, dgates, dR, dh, h, cells, gates,
             packed, segments, U, directions);
}
#endif
#endif
