/*
 * ctc.h - connectionist temporal classification (Graves et al. 2006) of one utterance, once per instruction set.
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
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

enum { CTC_ZERO = -(1 << 29), CTC_NEVER = -80000 };

/* The states of a frame: mantissas and exponents of B and L, each [LIN_WIDTH + N + LIN_WIDTH] with zeros at both ends. */
typedef struct LIN_NAME(ctc_row) {
    float *bm, *lm;
    int32_t *be, *le;
} LIN_NAME(ctc_row);

typedef struct LIN_NAME(ctc_job) {
    const float *logp;
    const int *labels;
    float *dlogits;
    int T, U, V, N, capacity; // N = U+1 rounded up; capacity rows of alpha
    size_t pitch;             // N + 2 LIN_WIDTH
    float *mantissas;         // [capacity + 5, 2, pitch]
    int32_t *exponents, *skip; // skip [pitch]: 0 if L[u] may directly follow L[u-1], else CTC_ZERO
    float *shares;             // [N]
    LIN_NAME(ctc_row) after[2]; // G of the next frame, and of this one
    float scale, p_inverse;
    int32_t p_exponent;
} LIN_NAME(ctc_job);

typedef struct LIN_NAME(pair) {
    vf m;
    vi e;
} LIN_NAME(pair);

// 2^d for d <= 127, 0 for d <= -127.
LIN_INLINE vf LIN_NAME(power)(vi d) { return (vf)((vimax(d, viset(-127)) + 127) << 23); }

// The value with m normalised to [1, 2), or zero, or NaN.
LIN_INLINE LIN_NAME(pair) LIN_NAME(tidy)(vf m, vi e)
{
    vi shift = ((vi)m >> 23) - 127; // m is not negative
    LIN_NAME(pair) y = {m * (vf)((127 - shift) << 23), vimax(e + shift, viset(CTC_ZERO))};
    y.e = viblend(veq(m, (vf){0}), viset(CTC_ZERO), y.e);
    return y;
}

LIN_INLINE LIN_NAME(pair) LIN_NAME(plus)(LIN_NAME(pair) a, LIN_NAME(pair) b)
{
    LIN_NAME(pair) y;
    y.e = vimax(a.e, b.e);
    y.m = vfma(a.m, LIN_NAME(power)(a.e - y.e), b.m * LIN_NAME(power)(b.e - y.e));
    return y;
}

LIN_INLINE LIN_NAME(pair) LIN_NAME(plus3)(LIN_NAME(pair) a, LIN_NAME(pair) b, LIN_NAME(pair) c)
{
    LIN_NAME(pair) y;
    y.e = vimax(vimax(a.e, b.e), c.e);
    y.m = vfma(a.m, LIN_NAME(power)(a.e - y.e), vfma(b.m, LIN_NAME(power)(b.e - y.e), c.m * LIN_NAME(power)(c.e - y.e)));
    return y;
}

LIN_INLINE LIN_NAME(pair) LIN_NAME(times)(LIN_NAME(pair) a, LIN_NAME(pair) b) { return LIN_NAME(tidy)(a.m * b.m, a.e + b.e); }

LIN_INLINE LIN_NAME(pair) LIN_NAME(get)(const float *m, const int32_t *e)
{
    LIN_NAME(pair) y = {vload(m), viload(e)};
    return y;
}

LIN_INLINE void LIN_NAME(put)(float *m, int32_t *e, LIN_NAME(pair) y)
{
    vstore(m, y.m);
    vistore(e, y.e);
}

/* e^x as a pair, for x <= 0 or slightly above. Finite x below CTC_NEVER are raised to it,
 * so that no sum of exponents overflows. */
LIN_INLINE LIN_NAME(pair) LIN_NAME(exp_pair)(vf x)
{
    vf bounded = vblend(vgt(vset((float)CTC_NEVER), x), vset((float)CTC_NEVER), x);
    vf shifted = vfma(bounded, vset(LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER;
    // ln 2 in three parts; the first two are short enough that their product with k is exact for all |k| < 2^17.
    vf r = vfma(k, vset(-0x1.6p-1f), bounded);
    r = vfma(k, vset(-0x1.7p-8f), r);
    r = vfma(k, vset(-0x1.0bfbe8p-15f), r);
    vi whole = (vi)shifted - 0x4B400000;
    vm never = vgt(vset(-3.402823e38f), x), number = veq(x, x);
    LIN_NAME(pair)
    y = {vblend(never, (vf){0}, vexp_reduced(r)), viblend(never, viset(CTC_ZERO), viblend(number, whole, (vi){0}))};
    return y;
}

static LIN_NAME(ctc_row) LIN_NAME(row_of)(const LIN_NAME(ctc_job) *job, int i)
{
    size_t at = 2 * (size_t)i * job->pitch + LIN_WIDTH;
    LIN_NAME(ctc_row) row = {job->mantissas + at, job->mantissas + at + job->pitch, job->exponents + at,
                             job->exponents + at + job->pitch};
    return row;
}

static void LIN_NAME(clear_row)(const LIN_NAME(ctc_job) *job, LIN_NAME(ctc_row) row)
{
    for (int u = -LIN_WIDTH; u < job->N + LIN_WIDTH; u += LIN_WIDTH) {
        LIN_NAME(pair) zero = {{0}, viset(CTC_ZERO)};
        LIN_NAME(put)(row.bm + u, row.be + u, zero);
        LIN_NAME(put)(row.lm + u, row.le + u, zero);
    }
}

/* First and one past the last u of the vectors that hold live states of frame t;
 * sets the vectors around them in `row` to zero. */
LIN_INLINE void LIN_NAME(band)(const LIN_NAME(ctc_job) *job, int t, LIN_NAME(ctc_row) row, int *from, int *to)
{
    int low = job->U - job->T + t, high = job->U < t ? job->U : t;
    *from = low > 0 ? low / LIN_WIDTH * LIN_WIDTH : 0;
    *to = high / LIN_WIDTH * LIN_WIDTH + LIN_WIDTH;
    LIN_NAME(pair) zero = {{0}, viset(CTC_ZERO)};
    LIN_NAME(put)(row.bm + *from - LIN_WIDTH, row.be + *from - LIN_WIDTH, zero);
    LIN_NAME(put)(row.lm + *from - LIN_WIDTH, row.le + *from - LIN_WIDTH, zero);
    LIN_NAME(put)(row.bm + *to, row.be + *to, zero);
    LIN_NAME(put)(row.lm + *to, row.le + *to, zero);
}

// y of the labels from u in frame t; lanes past the last label have probability 0.
LIN_INLINE LIN_NAME(pair) LIN_NAME(label_probability)(const LIN_NAME(ctc_job) *job, int t, int u)
{
    const float *frame = job->logp + (size_t)t * (size_t)job->V;
    float x[LIN_WIDTH];
    if (u + LIN_WIDTH <= job->U) {
        for (int i = 0; i < LIN_WIDTH; i++) x[i] = frame[job->labels[u + i]];
    } else {
        for (int i = 0; i < LIN_WIDTH; i++) x[i] = u + i < job->U ? frame[job->labels[u + i]] : -INFINITY;
    }
    return LIN_NAME(exp_pair)(vload(x));
}

static void LIN_NAME(alpha_step)(const LIN_NAME(ctc_job) *job, LIN_NAME(ctc_row) now, LIN_NAME(ctc_row) before, int t)
{
    int from, to;
    LIN_NAME(band)(job, t, now, &from, &to);
    LIN_NAME(pair) blank = LIN_NAME(exp_pair)(vset(job->logp[(size_t)t * (size_t)job->V]));
    for (int u = from; u < to; u += LIN_WIDTH) {
        LIN_NAME(pair) B = LIN_NAME(get)(before.bm + u, before.be + u), L = LIN_NAME(get)(before.lm + u, before.le + u);
        LIN_NAME(pair) last = LIN_NAME(get)(before.lm + u - 1, before.le + u - 1);
        LIN_NAME(put)(now.bm + u, now.be + u, LIN_NAME(times)(LIN_NAME(plus)(B, last), blank));
        last.e += viload(job->skip + u);
        LIN_NAME(put)
        (now.lm + u, now.le + u, LIN_NAME(times)(LIN_NAME(plus3)(L, B, last), LIN_NAME(label_probability)(job, t, u)));
    }
}

/* One frame of the backward pass: from G of frame t+1 and alpha of frame t, computes the gradient row and G of frame t. */
static void LIN_NAME(beta_step)(LIN_NAME(ctc_job) *job, LIN_NAME(ctc_row) alpha, int t)
{
    LIN_NAME(ctc_row) after = job->after[0], now = job->after[1];
    int from, to;
    LIN_NAME(band)(job, t, now, &from, &to);
    LIN_NAME(pair) blank = LIN_NAME(exp_pair)(vset(job->logp[(size_t)t * (size_t)job->V]));
    vf blank_share = {0}, p_inverse = vset(job->p_inverse);
    vi p_exponent = viset(job->p_exponent), most = viset(127);
    for (int u = from; u < to; u += LIN_WIDTH) {
        LIN_NAME(pair) GB = LIN_NAME(get)(after.bm + u, after.be + u), GL = LIN_NAME(get)(after.lm + u, after.le + u);
        LIN_NAME(pair) next_B = LIN_NAME(get)(after.bm + u + 1, after.be + u + 1);
        LIN_NAME(pair) next_L = LIN_NAME(get)(after.lm + u + 1, after.le + u + 1);
        next_L.e += viload(job->skip + u + 1);
        LIN_NAME(pair) B = LIN_NAME(plus)(GB, GL), L = LIN_NAME(plus3)(GL, next_B, next_L);
        vi room_B = vimin(B.e + viload(alpha.be + u) - p_exponent, most);
        vi room_L = vimin(L.e + viload(alpha.le + u) - p_exponent, most);
        blank_share += B.m * vload(alpha.bm + u) * p_inverse * LIN_NAME(power)(room_B);
        vstore(job->shares + u, L.m * vload(alpha.lm + u) * p_inverse * LIN_NAME(power)(room_L));
        LIN_NAME(put)(now.bm + u, now.be + u, LIN_NAME(times)(B, blank));
        LIN_NAME(put)(now.lm + u, now.le + u, LIN_NAME(times)(L, LIN_NAME(label_probability)(job, t, u)));
    }
    job->after[0] = now;
    job->after[1] = after;

    const float *logp = job->logp + (size_t)t * (size_t)job->V;
    float *row = job->dlogits + (size_t)t * (size_t)job->V;
    int whole = job->V / LIN_WIDTH * LIN_WIDTH, rest = job->V - whole;
    for (int v = 0; v < whole; v += LIN_WIDTH) vstore(row + v, vexp(vload(logp + v)));
    if (rest) vstore_n(row + whole, vexp(vload_n(logp + whole, rest)), rest);
    row[0] -= vsum(blank_share);
    for (int u = from; u < to && u < job->U; u++) row[job->labels[u]] -= job->shares[u];
    for (int v = 0; v < job->V; v++) row[v] *= job->scale;
}

// Divides a stretch of n frames for which `room` rows are too few: returns the number of checkpoints, *length the frames between
// them. Takes the fewest checkpoints that leave room for each part; if no number does, half of the rows, and parts are divided
// again.
static int LIN_NAME(checkpoints)(int n, int room, int *length)
{
    int kept = 1;
    while (kept < room / 2 && (n + kept) / (kept + 1) > room - kept) kept++;
    *length = (n + kept) / (kept + 1);
    return kept;
}

/* alpha of frames t0 .. t1-1 from `start`, that of frame t0-1, into rows `base` and up: all of it, or checkpoints if there are
 * too few rows. Returns the row of the last frame. */
static LIN_NAME(ctc_row) LIN_NAME(advance)(const LIN_NAME(ctc_job) *job, LIN_NAME(ctc_row) start, int t0, int t1, int base)
{
    int n = t1 - t0, room = job->capacity - base, length = n + 1, all = n <= room;
    if (!all && room > 1) LIN_NAME(checkpoints)(n, room, &length);
    LIN_NAME(ctc_row) before = start;
    for (int done = 1; done <= n; done++) {
        int row = all ? base + done - 1 : done % length == 0 ? base + done / length - 1 : job->capacity + done % 2;
        LIN_NAME(ctc_row) now = LIN_NAME(row_of)(job, row);
        LIN_NAME(alpha_step)(job, now, before, t0 + done - 1);
        before = now;
    }
    return before;
}

/* The backward pass over frames t0 .. t1-1, last first, after `advance` with the same arguments. */
static void LIN_NAME(retreat)(LIN_NAME(ctc_job) *job, LIN_NAME(ctc_row) start, int t0, int t1, int base)
{
    int n = t1 - t0, room = job->capacity - base, length;
    if (n <= room) {
        for (int t = t1 - 1; t >= t0; t--) LIN_NAME(beta_step)(job, LIN_NAME(row_of)(job, base + t - t0), t);
        return;
    }
    if (room <= 1) { // no row to spare: alpha of every frame is computed from the start of the stretch
        for (int t = t1 - 1; t >= t0; t--) LIN_NAME(beta_step)(job, LIN_NAME(advance)(job, start, t0, t + 1, job->capacity), t);
        return;
    }
    int kept = LIN_NAME(checkpoints)(n, room, &length);
    for (int i = kept; i >= 0; i--) {
        int first = t0 + i * length, end = first + length < t1 ? first + length : t1;
        if (first >= end) continue;
        LIN_NAME(ctc_row) from = i ? LIN_NAME(row_of)(job, base + i - 1) : start;
        LIN_NAME(advance)(job, from, first, end, base + kept);
        LIN_NAME(retreat)(job, from, first, end, base + kept);
    }
}

/* The loss, or -1 where there is no path; dlogits [T, V] may be NULL. scratch_bytes hold at least 8 rows (ctc.c). */
double LIN_NAME(lin_ctc_utterance)(float *dlogits, const float *logp, int T, const int *labels, int U, int V, double scale,
                                   void *scratch, size_t scratch_bytes);
double LIN_NAME(lin_ctc_utterance)(float *dlogits, const float *logp, int T, const int *labels, int U, int V, double scale,
                                   void *scratch, size_t scratch_bytes)
{
    LIN_NAME(ctc_job) job = {.logp = logp, .labels = labels, .dlogits = dlogits, .T = T, .U = U, .V = V, .scale = (float)scale};
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
    LIN_NAME(ctc_row) start = LIN_NAME(row_of)(&job, job.capacity + 2);
    LIN_NAME(clear_row)(&job, start);
    start.bm[0] = 1;
    start.be[0] = 0;
    LIN_NAME(ctc_row) last = LIN_NAME(advance)(&job, start, 0, T, dlogits ? 0 : job.capacity);
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
    job.after[0] = LIN_NAME(row_of)(&job, job.capacity + 3);
    job.after[1] = LIN_NAME(row_of)(&job, job.capacity + 4);
    LIN_NAME(clear_row)(&job, job.after[0]);
    job.after[0].bm[U] = 1; // after the last frame: at the last blank with probability 1
    job.after[0].be[U] = 0;
    LIN_NAME(retreat)(&job, start, 0, T, 0);
    return loss;
}
