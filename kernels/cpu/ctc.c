/*
 * ctc.c - connectionist temporal classification (Graves et al. 2006), the sum of its losses, and the denominator of maximum
 * mutual information: one work item per utterance.
 *
 * Probabilities are not logarithms but pairs (m, e), value m 2^e, m a float near 1 and e an integer. They have the range of the
 * log domain (e^-1e4 is representable), but sums and products cost a few instructions instead of exponentials and logarithms, and
 * the error of a thousand operations is only that of a thousand roundings. Zero is (0, ZERO). A NaN in logp stays a NaN in m and
 * in the loss.
 *
 * The states of the label sequence are in two arrays: B[u], the blank before label u (u = U: after the last), and L[u], label u.
 *   alpha, frame t included:     B'[u] = (B[u] + L[u-1]) y_blank       L'[u] = (L[u] + B[u] + L[u-1] if it differs) y_label(u)
 *   beta,  frame t not included: B[u] = GB[u] + GL[u]                  L[u] = GL[u] + GB[u+1] + GL[u+1] if it differs
 *   with G = beta y of frame t+1. d loss / d logit_v = y_v - sum of alpha beta / p over the states that emit v.
 * Only states that can be reached from the start and can reach the end are computed.
 *
 * alpha is computed forwards in time but needed backwards. It is kept in the block that the caller gives: if that does not hold
 * the rows of all frames, some rows are kept and the stretch after each is recomputed from it. The bits do not depend on the
 * block's size.
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(double, lin_ctc_utterance,
                     (float *dlogits, const float *logp, int T, const int *labels, int U, int V, double scale, void *scratch,
                      size_t scratch_bytes));
LIN_DISPATCH_DECLARE(double, lin_denominator_utterance,
                     (float *dlogits, const float *logp, int T, int V, const lin_trigrams *q, float scale, float *rows));

/* ---- CTC, for each instruction set ----------------------------------------------------------------------------------------- */

enum { CTC_ZERO = -(1 << 29), CTC_NEVER = -80000 };

/* The states of a frame: mantissas and exponents of B and L, each [LIN_WIDTH + N + LIN_WIDTH] with zeros at both ends. */
typedef struct ctc_row {
    float *bm, *lm;
    int32_t *be, *le;
} ctc_row;

typedef struct ctc_job {
    const float *logp;
    const int *labels;
    float *dlogits;
    int T, U, V, N, capacity; // N = U+1 rounded up; capacity rows of alpha
    size_t pitch;             // N + 2 LIN_WIDTH
    float *mantissas;         // [capacity + 5, 2, pitch]
    int32_t *exponents, *skip; // skip [pitch]: 0 if L[u] may directly follow L[u-1], else CTC_ZERO
    float *shares;             // [N]
    ctc_row after[2]; // G of the next frame, and of this one
    float scale, p_inverse;
    int32_t p_exponent;
} ctc_job;

typedef struct pair {
    vf m;
    vi e;
} pair;

// 2^d for d <= 127, 0 for d <= -127.
LIN_INLINE vf power(vi d) { return (vf)((vimax(d, viset(-127)) + 127) << 23); }

// The value with m normalised to [1, 2), or zero, or NaN.
LIN_INLINE pair tidy(vf m, vi e)
{
    vi shift = ((vi)m >> 23) - 127; // m is not negative
    pair y = {m * (vf)((127 - shift) << 23), vimax(e + shift, viset(CTC_ZERO))};
    y.e = viblend(veq(m, (vf){0}), viset(CTC_ZERO), y.e);
    return y;
}

LIN_INLINE pair plus(pair a, pair b)
{
    pair y;
    y.e = vimax(a.e, b.e);
    y.m = vfma(a.m, power(a.e - y.e), b.m * power(b.e - y.e));
    return y;
}

LIN_INLINE pair plus3(pair a, pair b, pair c)
{
    pair y;
    y.e = vimax(vimax(a.e, b.e), c.e);
    y.m = vfma(a.m, power(a.e - y.e), vfma(b.m, power(b.e - y.e), c.m * power(c.e - y.e)));
    return y;
}

LIN_INLINE pair times(pair a, pair b) { return tidy(a.m * b.m, a.e + b.e); }

LIN_INLINE pair get(const float *m, const int32_t *e) { return (pair){vload(m), viload(e)}; }

LIN_INLINE void put(float *m, int32_t *e, pair y)
{
    vstore(m, y.m);
    vistore(e, y.e);
}

/* e^x as a pair, for x <= 0 or slightly above. Finite x below CTC_NEVER are raised to it,
 * so that no sum of exponents overflows. */
LIN_INLINE pair exp_pair(vf x)
{
    vf bounded = vblend(vgt(vset((float)CTC_NEVER), x), vset((float)CTC_NEVER), x);
    vf shifted = vfma(bounded, vset(LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER;
    // ln 2 in three parts; the first two are short enough that their product with k is exact for all |k| < 2^17.
    vf r = vfma(k, vset(-0x1.6p-1f), bounded);
    r = vfma(k, vset(-0x1.7p-8f), r);
    r = vfma(k, vset(-0x1.0bfbe8p-15f), r);
    vi whole = (vi)shifted - 0x4B400000;
    vm never = vgt(vset(-3.402823e38f), x), number = veq(x, x);
    return (pair){vblend(never, (vf){0}, vexp_reduced(r)), viblend(never, viset(CTC_ZERO), viblend(number, whole, (vi){0}))};
}

static ctc_row row_of(const ctc_job *job, int i)
{
    size_t at = 2 * (size_t)i * job->pitch + LIN_WIDTH;
    float *m = job->mantissas + at;
    int32_t *e = job->exponents + at;
    return (ctc_row){m, m + job->pitch, e, e + job->pitch};
}

static void clear_row(const ctc_job *job, ctc_row row)
{
    for (int u = -LIN_WIDTH; u < job->N + LIN_WIDTH; u += LIN_WIDTH) {
        pair zero = {{0}, viset(CTC_ZERO)};
        put(row.bm + u, row.be + u, zero);
        put(row.lm + u, row.le + u, zero);
    }
}

/* First and one past the last u of the vectors that hold live states of frame t;
 * sets the vectors around them in `row` to zero. */
LIN_INLINE void band(const ctc_job *job, int t, ctc_row row, int *from, int *to)
{
    int low = job->U - job->T + t, high = job->U < t ? job->U : t;
    *from = low > 0 ? low / LIN_WIDTH * LIN_WIDTH : 0;
    *to = high / LIN_WIDTH * LIN_WIDTH + LIN_WIDTH;
    pair zero = {{0}, viset(CTC_ZERO)};
    put(row.bm + *from - LIN_WIDTH, row.be + *from - LIN_WIDTH, zero);
    put(row.lm + *from - LIN_WIDTH, row.le + *from - LIN_WIDTH, zero);
    put(row.bm + *to, row.be + *to, zero);
    put(row.lm + *to, row.le + *to, zero);
}

// y of the labels from u in frame t; lanes past the last label have probability 0.
LIN_INLINE pair label_probability(const ctc_job *job, int t, int u)
{
    const float *frame = job->logp + (size_t)t * (size_t)job->V;
    float x[LIN_WIDTH];
    if (u + LIN_WIDTH <= job->U) {
        for (int i = 0; i < LIN_WIDTH; i++) x[i] = frame[job->labels[u + i]];
    } else {
        for (int i = 0; i < LIN_WIDTH; i++) x[i] = u + i < job->U ? frame[job->labels[u + i]] : -INFINITY;
    }
    return exp_pair(vload(x));
}

static void alpha_step(const ctc_job *job, ctc_row now, ctc_row before, int t)
{
    int from, to;
    band(job, t, now, &from, &to);
    pair blank = exp_pair(vset(job->logp[(size_t)t * (size_t)job->V]));
    for (int u = from; u < to; u += LIN_WIDTH) {
        pair B = get(before.bm + u, before.be + u), L = get(before.lm + u, before.le + u);
        pair last = get(before.lm + u - 1, before.le + u - 1);
        put(now.bm + u, now.be + u, times(plus(B, last), blank));
        last.e += viload(job->skip + u);
        put(now.lm + u, now.le + u, times(plus3(L, B, last), label_probability(job, t, u)));
    }
}

/* One frame of the backward pass: from G of frame t+1 and alpha of frame t, computes the gradient row and G of frame t. */
static void beta_step(ctc_job *job, ctc_row alpha, int t)
{
    ctc_row after = job->after[0], now = job->after[1];
    int from, to;
    band(job, t, now, &from, &to);
    pair blank = exp_pair(vset(job->logp[(size_t)t * (size_t)job->V]));
    vf blank_share = {0}, p_inverse = vset(job->p_inverse);
    vi p_exponent = viset(job->p_exponent), most = viset(127);
    for (int u = from; u < to; u += LIN_WIDTH) {
        pair GB = get(after.bm + u, after.be + u), GL = get(after.lm + u, after.le + u);
        pair next_B = get(after.bm + u + 1, after.be + u + 1);
        pair next_L = get(after.lm + u + 1, after.le + u + 1);
        next_L.e += viload(job->skip + u + 1);
        pair B = plus(GB, GL), L = plus3(GL, next_B, next_L);
        vi room_B = vimin(B.e + viload(alpha.be + u) - p_exponent, most);
        vi room_L = vimin(L.e + viload(alpha.le + u) - p_exponent, most);
        blank_share += B.m * vload(alpha.bm + u) * p_inverse * power(room_B);
        vstore(job->shares + u, L.m * vload(alpha.lm + u) * p_inverse * power(room_L));
        put(now.bm + u, now.be + u, times(B, blank));
        put(now.lm + u, now.le + u, times(L, label_probability(job, t, u)));
    }
    job->after[0] = now;
    job->after[1] = after;

    const float *logp = job->logp + (size_t)t * (size_t)job->V;
    float *row = job->dlogits + (size_t)t * (size_t)job->V;
    for (int v = 0; v < job->V; v += LIN_WIDTH) vput_lanes(row, vexp(vlanes(logp, v, job->V)), v, job->V);
    row[0] -= vsum(blank_share);
    for (int u = from; u < to && u < job->U; u++) row[job->labels[u]] -= job->shares[u];
    for (int v = 0; v < job->V; v++) row[v] *= job->scale;
}

// Divides a stretch of n frames for which `room` rows are too few: returns the number of checkpoints; *length: the frames between
// two. Takes the fewest checkpoints that leave room for each part; if no number does, half of the rows, and the parts are divided
// again.
static int checkpoints(int n, int room, int *length)
{
    int kept = 1;
    while (kept < room / 2 && (n + kept) / (kept + 1) > room - kept) kept++;
    *length = (n + kept) / (kept + 1);
    return kept;
}

/* alpha of frames t0 .. t1-1 from `start`, that of frame t0-1, into rows `base` and up: all of it, or checkpoints if there are
 * too few rows. Returns the row of the last frame. */
static ctc_row advance(const ctc_job *job, ctc_row start, int t0, int t1, int base)
{
    int n = t1 - t0, room = job->capacity - base, length = n + 1, all = n <= room;
    if (!all && room > 1) checkpoints(n, room, &length);
    ctc_row before = start;
    for (int done = 1; done <= n; done++) {
        int row = all ? base + done - 1 : done % length == 0 ? base + done / length - 1 : job->capacity + done % 2;
        ctc_row now = row_of(job, row);
        alpha_step(job, now, before, t0 + done - 1);
        before = now;
    }
    return before;
}

/* The backward pass over frames t0 .. t1-1, last first, after `advance` with the same arguments. */
static void retreat(ctc_job *job, ctc_row start, int t0, int t1, int base)
{
    int n = t1 - t0, room = job->capacity - base, length;
    if (n <= room) {
        for (int t = t1 - 1; t >= t0; t--) beta_step(job, row_of(job, base + t - t0), t);
        return;
    }
    if (room <= 1) { // no row to spare: alpha of every frame is computed from the start of the stretch
        for (int t = t1 - 1; t >= t0; t--) beta_step(job, advance(job, start, t0, t + 1, job->capacity), t);
        return;
    }
    int kept = checkpoints(n, room, &length);
    for (int i = kept; i >= 0; i--) {
        int first = t0 + i * length, end = first + length < t1 ? first + length : t1;
        if (first >= end) continue;
        ctc_row from = i ? row_of(job, base + i - 1) : start;
        advance(job, from, first, end, base + kept);
        retreat(job, from, first, end, base + kept);
    }
}

/* The loss, or -1 where there is no path; dlogits [T, V] may be NULL. scratch_bytes hold at least 8 rows (ctc.c). */
double LIN_NAME(lin_ctc_utterance)(float *dlogits, const float *logp, int T, const int *labels, int U, int V, double scale,
                                   void *scratch, size_t scratch_bytes)
{
    ctc_job job = {.logp = logp, .labels = labels, .dlogits = dlogits, .T = T, .U = U, .V = V, .scale = (float)scale};
    job.N = vround(U + 1);
    job.pitch = (size_t)job.N + 2 * LIN_WIDTH;
    size_t rows = (scratch_bytes - 8 * job.pitch) / (16 * job.pitch);
    if (rows > (size_t)T + 5) rows = (size_t)T + 5;
    job.capacity = (int)rows - 5;
    job.mantissas = scratch;
    job.exponents = (int32_t *)(job.mantissas + 2 * rows * job.pitch);
    job.shares = (float *)(job.exponents + 2 * rows * job.pitch);
    job.skip = (int32_t *)(job.shares + job.pitch) + LIN_WIDTH;
    for (int u = -LIN_WIDTH; u < job.N + LIN_WIDTH; u++)
        job.skip[u] = u >= 1 && u < U && labels[u] != labels[u - 1] ? 0 : CTC_ZERO;

    // Before the first frame: at the first blank with probability 1.
    ctc_row start = row_of(&job, job.capacity + 2);
    clear_row(&job, start);
    start.bm[0] = 1;
    start.be[0] = 0;
    ctc_row last = advance(&job, start, 0, T, dlogits ? 0 : job.capacity);
    double p = (double)last.bm[U];
    int32_t exponent = last.be[U];
    if (U > 0) {
        double label = (double)last.lm[U - 1];
        int32_t top = last.le[U - 1] > exponent ? last.le[U - 1] : exponent;
        p = ldexp(p, exponent - top < -1000 ? -1000 : exponent - top) +
            ldexp(label, last.le[U - 1] - top < -1000 ? -1000 : last.le[U - 1] - top);
        exponent = top;
    }
    if (p == 0 || exponent <= CTC_ZERO / 2) return -1;
    double loss = -(log(p) + exponent * 0.69314718055994530942);
    if (!dlogits) return loss;

    job.p_inverse = (float)(1 / p);
    job.p_exponent = exponent;
    job.after[0] = row_of(&job, job.capacity + 3);
    job.after[1] = row_of(&job, job.capacity + 4);
    clear_row(&job, job.after[0]);
    job.after[0].bm[U] = 1; // after the last frame: at the last blank with probability 1
    job.after[0].be[U] = 0;
    retreat(&job, start, 0, T, 0);
    return loss;
}

/* ---- the denominator, for each instruction set ----------------------------------------------------------------------------- */

/*
 * The sum over all label sequences of an utterance.
 *
 * A state is the last two labels (a, b), and whether the last frame was a blank (B) or b itself (L): [b, a]. Label 0 stands for
 * none before the first. With the trigrams `next`, `again` and `end` (kernels/ops.h) and the probabilities y of a frame:
 *   alpha, frame t included:     B'[b,a] = (B + L)[b,a] y_blank
 *                                L'[c,b] = (L[c,b] + sum_a (B + L)[b,a] next[b,a,c] + (c = b) sum_a B[b,a] again[b,a]) y_c
 *   beta,  frame t not included: both[b,a] = y_blank B'[b,a] + sum_c next[b,a,c] y_c L'[c,b]
 *                                B[b,a] = both[b,a] + again[b,a] y_b L'[b,b]      L[b,a] = both[b,a] + y_b L'[b,a]
 * Each frame's states are divided by their sum, whose logarithms are added.
 */

// y [n] += x[n] * by
LIN_INLINE void add_row(float *y, const float *x, float by, int n)
{
    for (int i = 0; i < n; i += LIN_WIDTH) vput_lanes(y, vfma(vlanes(x, i, n), vset(by), vlanes(y, i, n)), i, n);
}

LIN_INLINE float dot(const float *x, const float *y, int n)
{
    vf sum = {0};
    for (int i = 0; i < n; i += LIN_WIDTH) sum = vfma(vlanes(x, i, n), vlanes(y, i, n), sum);
    return vsum(sum);
}

// states [2, V, V], B then L: divided by their sum, which is returned; 0 if it is 0 or not finite.
LIN_INLINE double normalise(float *states, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)states[i];
    if (!(sum > 0 && sum < INFINITY)) return 0;
    const float inverse = (float)(1 / sum);
    for (int i = 0; i < n; i++) states[i] *= inverse;
    return sum;
}

static double forward_frame(float *now, const float *before, const float *y, const lin_trigrams *q, int V, float *sums)
{
    const size_t S = (size_t)V * (size_t)V;
    for (size_t i = 0; i < S; i++) now[i] = (before[i] + before[S + i]) * y[0];
    for (int c = 0; c < V; c++) now[S + (size_t)c] = 0;
    for (int b = 0; b < V; b++) {
        const float *B = before + (size_t)b * (size_t)V, *L = B + S, *next = q->next + (size_t)b * S;
        memset(sums, 0, (size_t)V * sizeof *sums);
        for (int a = 0; a < V; a++) {
            const float s = B[a] + L[a];
            if (s != 0) add_row(sums, next + (size_t)a * (size_t)V, s, V);
        }
        sums[b] = dot(B, q->again + (size_t)b * (size_t)V, V);
        for (int c = 1; c < V; c++) {
            const size_t at = S + (size_t)c * (size_t)V + (size_t)b;
            now[at] = (before[at] + sums[c]) * y[c];
        }
    }
    return normalise(now, (int)(2 * S));
}

// beta of a frame from that of the next, and the next frame's y.
static double backward_frame(float *now, const float *after, const float *y, const lin_trigrams *q, int V, float *sums)
{
    const size_t S = (size_t)V * (size_t)V;
    for (int b = 0; b < V; b++) {
        const size_t row = (size_t)b * (size_t)V;
        memset(sums, 0, (size_t)V * sizeof *sums);
        for (int c = 1; c < V; c++) {
            const float g = y[c] * after[S + (size_t)c * (size_t)V + (size_t)b];
            if (g != 0 && c != b) add_row(sums, q->back + (row + (size_t)c) * (size_t)V, g, V);
        }
        const float repeated = b ? y[b] * after[S + row + (size_t)b] : 0;
        for (int a = 0; a < V; a++) {
            const size_t at = row + (size_t)a;
            const float both = y[0] * after[at] + sums[a];
            now[at] = both + q->again[at] * repeated;
            now[S + at] = b ? both + y[b] * after[S + at] : 0;
        }
    }
    return normalise(now, (int)(2 * S));
}

// rows: [T + 3, 2, V, V] and 2 V more. Returns ln of the sum, and adds to dlogits (not NULL) scale (share of each label - its
// probability); NaN if it is not positive.
double LIN_NAME(lin_denominator_utterance)(float *dlogits, const float *logp, int T, int V, const lin_trigrams *q, float scale,
                                           float *rows)
{
    const size_t S = (size_t)V * (size_t)V, pitch = 2 * S;
    float *beta[2] = {rows + (size_t)(T + 1) * pitch, rows + (size_t)(T + 2) * pitch};
    float *y = rows + (size_t)(T + 3) * pitch, *sums = y + V;
    double total = 0, last = 0;
    memset(rows, 0, pitch * sizeof *rows);
    rows[0] = 1; // nothing yet: as after a blank
    for (int t = 0; t < T; t++) {
        for (int v = 0; v < V; v++) y[v] = expf(logp[(size_t)t * (size_t)V + (size_t)v]);
        const double sum = forward_frame(rows + (size_t)(t + 1) * pitch, rows + (size_t)t * pitch, y, q, V, sums);
        if (sum == 0) return NAN;
        total += log(sum);
    }
    for (size_t i = 0; i < S; i++) {
        last += (double)(rows[(size_t)T * pitch + i] + rows[(size_t)T * pitch + S + i]) * (double)q->end[i];
        beta[0][i] = beta[0][S + i] = q->end[i];
    }
    if (!(last > 0)) return NAN;
    for (int t = T; t-- > 0 && dlogits;) {
        const float *alpha = rows + (size_t)(t + 1) * pitch, *b = beta[(T - 1 - t) & 1];
        float *out = dlogits + (size_t)t * (size_t)V;
        float share = 0, whole = 0;
        for (int v = 0; v < V; v++) y[v] = expf(logp[(size_t)t * (size_t)V + (size_t)v]);
        for (int v = 0; v < V; v++) share += dot(alpha + (size_t)v * (size_t)V, b + (size_t)v * (size_t)V, V);
        sums[0] = share;
        for (int v = 1; v < V; v++)
            sums[v] = dot(alpha + S + (size_t)v * (size_t)V, b + S + (size_t)v * (size_t)V, V);
        for (int v = 0; v < V; v++) whole += sums[v];
        if (!(whole >= FLT_MIN)) return NAN; // subnormal or 0: shares have lost bits or are missing
        for (int v = 0; v < V; v++) out[v] += scale * (sums[v] / whole - y[v]);
        if (t && backward_frame(beta[(T - t) & 1], b, y, q, V, sums) == 0) return NAN;
    }
    return total + log(last);
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

/*
 * Rows of alpha are kept in the thread's scratch if it holds those of 2 sqrt(T) frames: then each row is computed at most twice.
 * An utterance with more labels gets a block of its own during the call, of that many rows but at most MOST_BLOCK bytes. Beyond
 * that (hours of speech in one utterance), or if there is no memory, rows are recomputed more often. LEAST_ROWS is the minimum
 * for any result.
 */
enum { LEAST_ROWS = 8 };
static const size_t MOST_BLOCK = (size_t)512 << 20;

typedef struct losses_job {
    const lin_exec *exec;
    double *loss, scale;
    float *dlogits;
    const float *logp;
    const int *offsets, *labels, *label_offsets;
    int V;
} losses_job;

// The least number of frames for the labels: one each, and a blank between equal ones.
static int frames_needed(const int *labels, int U)
{
    int n = U;
    for (int u = 1; u < U; u++) n += labels[u] == labels[u - 1];
    return n;
}

// Bytes for `rows` rows of alpha and the other rows that lin_ctc_utterance needs.
static size_t bytes_of(size_t rows, int U)
{
    const size_t pitch = (size_t)U + 1 + 4 * 16; // at most: 16 lanes of margin at both ends, and rounded up
    return (16 * rows + 8) * pitch;
}

// The loss; -1 if there is no memory for rows of this length.
static double utterance_loss(const losses_job *job, int thread, float *gradient, const float *logp, int T, const int *labels,
                             int U)
{
    const size_t wanted = bytes_of(gradient ? 2 * (size_t)sqrt((double)T) + LEAST_ROWS : LEAST_ROWS, U);
    const size_t least = bytes_of(LEAST_ROWS, U);
    size_t bytes = LIN_SCRATCH_BYTES;
    void *block = NULL;
    if (wanted > bytes) {
        const size_t own = wanted < MOST_BLOCK ? wanted : least < MOST_BLOCK ? MOST_BLOCK : least;
        block = lin_alloc(own, 1);
        if (block) bytes = own;
        else if (least > bytes) return -1;
    }
    const double loss = LIN_DISPATCH(lin_ctc_utterance)(gradient, logp, T, labels, U, job->V, job->scale,
                                                        block ? block : lin_scratch(job->exec, thread), bytes);
    lin_free(block);
    return loss;
}

static void utterance_piece(void *context, int b, int thread)
{
    const losses_job *job = context;
    size_t first = (size_t)job->offsets[b] * (size_t)job->V;
    int T = job->offsets[b + 1] - job->offsets[b], U = job->label_offsets[b + 1] - job->label_offsets[b];
    const int *labels = job->labels ? job->labels + job->label_offsets[b] : NULL;
    float *gradient = job->dlogits ? job->dlogits + first : NULL;
    job->loss[b] = -1;
    if (U <= T && frames_needed(labels, U) <= T)
        job->loss[b] = utterance_loss(job, thread, gradient, job->logp + first, T, labels, U);
    if (job->loss[b] == -1 && gradient) memset(gradient, 0, (size_t)T * (size_t)job->V * sizeof *gradient);
}

void lin_cpu_ctc(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments, const int *labels,
                 const int *label_offsets, int most_labels, int V, const double *scale)
{
    assert(lin_segments_hold(segments) && V > 0 && label_offsets && (!dlogits || (scale && dlogits != logp)));
    (void)most_labels;
    losses_job job = {exec, loss, dlogits ? *scale : 0, dlogits, logp, segments->offsets, labels, label_offsets, V};
    lin_pool_run(exec->pool, segments->B, utterance_piece, &job);
}

void lin_cpu_tally_losses(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                          const int *label_offsets)
{
    (void)exec;
    double sum = 0;
    if (tally->bad) return;
    for (int b = 0; b < segments->B; b++) {
        int T = segments->offsets[b + 1] - segments->offsets[b], U = label_offsets[b + 1] - label_offsets[b];
        if (U > T) continue;
        if (!isfinite(loss[b]) || loss[b] < 0) {
            tally->bad = LIN_BAD_LOSS;
            tally->bad_index = b;
            return;
        }
        sum += loss[b];
    }
    tally->loss += sum;
}

typedef struct denominator_job {
    double *sums, *loss;
    float *dlogits, scale;
    const float *logp;
    const int *offsets, *label_offsets;
    const lin_trigrams *trigrams;
    int V;
} denominator_job;

static void denominator_piece(void *context, int b, int thread)
{
    const denominator_job *job = context;
    const size_t V = (size_t)job->V, at = (size_t)job->offsets[b] * V;
    const int T = job->offsets[b + 1] - job->offsets[b], U = job->label_offsets[b + 1] - job->label_offsets[b];
    (void)thread;
    job->sums[b] = 0;
    if (U == 0 || U > T) return;
    float *gradient = job->dlogits ? job->dlogits + at : NULL;
    float *rows = lin_alloc(((size_t)T + 3) * 2 * V * V + 2 * V, sizeof *rows);
    job->sums[b] = NAN;
    if (rows)
        job->sums[b] = LIN_DISPATCH(lin_denominator_utterance)(gradient, job->logp + at, T, job->V, job->trigrams, job->scale,
                                                               rows);
    lin_free(rows);
    if (!isnan(job->sums[b])) return;
    for (size_t i = 0; i < (size_t)T * V && gradient; i++) gradient[i] = NAN;
    if (job->loss) job->loss[b] = NAN; // ends the training
}

void lin_cpu_denominator(lin_exec *exec, double *sums, double *loss, float *dlogits, const float *logp,
                         const lin_segments *segments, const int *label_offsets, const lin_trigrams *trigrams, int V,
                         double weight, const double *scale)
{
    const float factor = dlogits ? (float)(weight * *scale) : 0;
    denominator_job job = {sums, loss, dlogits, factor, logp, segments->offsets, label_offsets, trigrams, V};
    lin_pool_run(exec->pool, segments->B, denominator_piece, &job);
}
#endif
