/*
 * attention.c - linear attention: a work item is one head of one utterance.
 *
 * All passes use one kernel, `scan`: for each frame, the outer product of two vectors is added to a matrix S of E x P floats,
 * S += a bᵀ, and a third vector reads it, out += qᵀ S. The forward pass is (a, b, q) = (φ(k), v, φ(q)). In the backward pass
 * (Katharopoulos et al. 2020, Algorithm 1, with the normaliser), where y = num / den, G = dy / den and g = -(dy.y) / den:
 *   dφ(q_i) = S_i G_i + z_i g_i                            forward scan of Sᵀ:  (v, φ(k), G)
 *   dφ(k_i) = R_i v_i + r_i,  R_i = sum_{j>=i} φ(q_j) G_jᵀ reverse scan of Rᵀ:  (G, φ(q), v),  r_i = sum_{j>=i} φ(q_j) g_j
 *   dv_i    = R_iᵀ φ(k_i)                                  reverse scan of R:   (φ(q), G, φ(k))
 * so no pass needs a sum across the lanes of a vector except for den and dy.y.
 *
 * With decays a_i: S_i = a_i S_{i-1} + φ(k_i) v_iᵀ, and R_i = a_{i+1} R_{i+1} + φ(q_i) G_iᵀ; z and r likewise. The gradient of
 * log a needs only terms that are computed anyway (Yang et al. 2023, appendix C):
 *   d log a_i = sum_{t>=i} φ(q_t).dφ(q_t) - φ(k_t).dφ(k_t),  where φ(q_t).dφ(q_t) = num.G + (den - eps) g = -eps g
 *
 * A block of S stays in registers over all frames of a chunk. Chunks are gathered into scratch with E padded with zeros to Ep, a
 * multiple of LIN_WIDTH. The sums of a frame run in the same order wherever the frame is in its chunk, and S is float in
 * registers and in memory, so splitting the rows into calls changes no bit.
 *
 * Scratch holds the three matrices of a head of up to MOST_WIDTH.
 */
#include <assert.h>

#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_attention_head_forward,
                     (float *y, const float *qkv, const float *gates, size_t gate_step, int T, int H, int E, int causal,
                      float *state, const float *later, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_attention_head_backward,
                     (float *dqkv, float *dgates, const float *dy, const float *qkv, const float *gates, size_t gate_step,
                      const float *y, int T, int H, int E, int causal, float *scratch));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

// A block of S, of ROWS rows (or HALF of them, at the end) and VECS vectors of columns, is in registers, beside b, SUMS sums of
// each vector, and broadcast values. FETCHED: the cache lines that a block prefetches for each frame.
#if LIN_WIDTH == 16
#define ROWS 16
#define VECS 1
#define FETCHED 3
#elif defined(__aarch64__) // of 32 registers: 16 of S, 2 of b, 4 sums
#define ROWS 8
#define VECS 2
#define FETCHED 1
#else // of 16 registers: 8 of S, 2 of b, 4 sums
#define ROWS 4
#define VECS 2
#define FETCHED 1
#endif
#define SUMS (4 / VECS)
#define HALF (ROWS / 2)
_Static_assert(LIN_WIDTH % HALF == 0 && SUMS <= HALF, "a padded head is a whole number of row blocks");

enum { HEAD_CHUNK = 16 }; // 16 frames of all arrays of a head of 64 stay in a first-level cache of 32 KB
enum { MOST_WIDTH = 256 }; // as in lin_config_check
_Static_assert((3 * MOST_WIDTH + 6 * 4 + 2) * MOST_WIDTH + 4 * HEAD_CHUNK + LIN_WIDTH <= LIN_SCRATCH_BYTES / sizeof(float),
               "the widest head fits the scratch");

/* The data of one (utterance, head). All vectors of a chunk are [frames, Ep]; matrices are [rows, P], where rows is E, rounded up
 * to whole blocks, and P is Ep, or E in a state. later: NULL, or the state that is prefetched. */
typedef struct one_head {
    int T, E, Ep, rows, P, chunk;
    size_t stride; // floats from one frame of qkv to the next
    const float *q, *k, *v, *y, *dy, *later;
    float *dq, *dk, *dv;
    size_t out_stride;
    float *fq, *fk, *cv, *G, *o1, *o2, *S, *R, *Rt, *z, *r, *inverse, *g;
    const float *gates;   // NULL: no decay
    float *dgates;        // may be NULL
    size_t gate_step;     // floats from one frame of gates to the next; 0: the same for all
    size_t heads;         // floats from one frame of dgates to the next
    float *decay, *slope; // a of each place of the chunk, and its d log a / d gate
    double future;        // sum of d log a over the frames after
} one_head;

LIN_INLINE vf phi(vf x) { return vblend(vgt(x, (vf){0}), x + 1.0f, vexp(x)); }

/* What a scan prefetches while it sums: for each frame that it scans, a head's part of a later frame of some matrices. These
 * parts are too far apart in memory for the hardware prefetcher. */
typedef struct ahead {
    int count, lines;     // matrices; cache lines of a head's part of a frame
    const float *from[6]; // the first frame's part
    ptrdiff_t step[6];    // floats from one frame to the next
} ahead;

// Frame t of x and those after it, or before it if the direction is -1.
LIN_INLINE void fetch(ahead * next, const float *x, size_t stride, int t, int direction)
{
    next->from[next->count] = x + (size_t)t * stride;
    next->step[next->count++] = (ptrdiff_t)stride * direction;
}

// R rows and V vectors of columns: S, b and out begin at the columns, a and q at the rows. R and V are literals at every call.
// Only `lanes` floats of the last vector of a row of S belong to it. Block `number` of a scan prefetches the lines from
// FETCHED * number on and, if not NULL, the state that is scanned after this S.
LIN_INLINE void scan_block(const one_head *h, const int R, const int V, int lanes, float *S, const float *a,
                           const float *b, const float *q, float *out, int n, int update, int read, int forget,
                           const ahead * next, int number, const float *later)
{
    const size_t pitch = (size_t)h->P, step = (size_t)h->Ep;
    uintptr_t line[FETCHED], line_step[FETCHED];
    LIN_UNROLL
    for (int i = 0; i < FETCHED; i++) {
        const int k = number * FETCHED + i;
        const int some = next && k < next->count * next->lines; // else prefetch a line that is in the cache already
        line[i] = some ? (uintptr_t)(next->from[k / next->lines] + k % next->lines * 16) : (uintptr_t)S;
        line_step[i] = some ? (uintptr_t)next->step[k / next->lines] * sizeof(float) : 0;
    }
    vf s[ROWS][VECS];
    LIN_UNROLL
    for (int e = 0; e < R; e++) {
        LIN_UNROLL
        for (int v = 0; v < V; v++) s[e][v] = vlanes(S + (size_t)e * pitch + v * LIN_WIDTH, 0, lanes);
    }
    for (int e = 0; later && e < R; e++) __builtin_prefetch(later + (size_t)e * pitch, 1);
    for (int f = 0; f < n; f++, a += step, b += step, q += step, out += step) {
        const vf keep = forget ? vset(h->decay[f]) : (vf){0};
        vf bf[VECS], sum[SUMS][VECS];
        LIN_UNROLL
        for (int i = 0; i < FETCHED; i++) {
            __builtin_prefetch((const void *)line[i]);
            line[i] += line_step[i];
        }
        LIN_UNROLL
        for (int v = 0; v < V; v++) bf[v] = update ? vload(b + v * LIN_WIDTH) : (vf){0};
        LIN_UNROLL
        for (int e = 0; e < R; e++) {
            const vf ae = update ? vset(a[e]) : (vf){0}, qe = read ? vset(q[e]) : (vf){0};
            LIN_UNROLL
            for (int v = 0; v < V; v++) {
                if (forget) s[e][v] *= keep;
                if (update) s[e][v] = vfma(ae, bf[v], s[e][v]);
                if (read) sum[e % SUMS][v] = e < SUMS ? qe * s[e][v] : vfma(qe, s[e][v], sum[e % SUMS][v]);
            }
        }
        LIN_UNROLL
        for (int v = 0; read && v < V; v++) {
            vf all = SUMS == 4 ? (sum[0][v] + sum[1][v]) + (sum[SUMS - 2][v] + sum[SUMS - 1][v]) : sum[0][v] + sum[1][v];
            vstore(out + v * LIN_WIDTH, vload(out + v * LIN_WIDTH) + all);
        }
    }
    LIN_UNROLL
    for (int e = 0; e < R; e++) {
        LIN_UNROLL
        for (int v = 0; update && v < V; v++) vput_lanes(S + (size_t)e * pitch + v * LIN_WIDTH, s[e][v], 0, lanes);
    }
}

// The blocks of R rows from `row` on; returns the number of the next block.
LIN_INLINE int scan_rows(const one_head *h, const int R, int row, float *S, const float *a, const float *b,
                         const float *q, float *out, int n, int update, int read, int forget, const ahead * next,
                         int number)
{
    const size_t at = (size_t)row * (size_t)h->P;
    const float *later = h->later ? h->later + at : NULL;
    const int columns = h->P;
    int c = 0;
    for (; c + VECS * LIN_WIDTH <= columns; c += VECS * LIN_WIDTH)
        scan_block(h, R, VECS, LIN_WIDTH, S + at + c, a + row, b + c, q + row, out + c, n, update, read, forget, next, number++,
                   later ? later + c : NULL);
    for (; c + LIN_WIDTH <= columns; c += LIN_WIDTH)
        scan_block(h, R, 1, LIN_WIDTH, S + at + c, a + row, b + c, q + row, out + c, n, update, read, forget, next, number++,
                   later ? later + c : NULL);
    if (c < columns)
        scan_block(h, R, 1, columns - c, S + at + c, a + row, b + c, q + row, out + c, n, update, read, forget, next, number++,
                   later ? later + c : NULL);
    return number;
}

/* For n frames: S *= decay if `forget`, S += a bᵀ if `update`, then out += qᵀ S if `read`. S is [rows, P]. */
LIN_INLINE void scan(const one_head *h, float *S, const float *a, const float *b, const float *q, float *out, int n,
                     int update, int read, int forget, const ahead * next)
{
    int number = 0, row = 0; // of the block
    for (; row + ROWS <= h->rows; row += ROWS)
        number = scan_rows(h, ROWS, row, S, a, b, q, out, n, update, read, forget, next, number);
    if (row < h->rows) scan_rows(h, HALF, row, S, a, b, q, out, n, update, read, forget, next, number);
}

static __attribute__((noinline)) void scan_both(const one_head *h, float *S, const float *a, const float *b,
                                                const float *q, float *out, int n, const ahead * next)
{
    scan(h, S, a, b, q, out, n, 1, 1, 0, next);
}

static __attribute__((noinline)) void scan_decayed(const one_head *h, float *S, const float *a, const float *b,
                                                   const float *q, float *out, int n, const ahead * next)
{
    scan(h, S, a, b, q, out, n, 1, 1, 1, next);
}

static __attribute__((noinline)) void scan_update(const one_head *h, float *S, const float *a, const float *b, int n,
                                                  const ahead * next)
{
    scan(h, S, a, b, a, NULL, n, 1, 0, 0, next);
}

static __attribute__((noinline)) void scan_read(const one_head *h, float *S, const float *q, float *out, int n,
                                                const ahead * next)
{
    scan(h, S, q, q, q, out, n, 0, 1, 0, next);
}

// φ of the lanes from e; 0 past the end of the head, because φ(0) is 1 and would count.
LIN_INLINE vf phi_lanes(const float *p, int e, int E)
{
    if (E - e >= LIN_WIDTH) return phi(vload(p + e));
    float padded[LIN_WIDTH] = {0};
    vstore_n(padded, phi(vload_n(p + e, E - e)), E - e);
    return vload(padded);
}

// Prefetches keys and values, or all inputs, of the frames from t on in this direction, if there is a frame t. The last ones may
// belong to another utterance, which costs little.
LIN_INLINE ahead keys_ahead(const one_head *h, int t, int direction)
{
    ahead next = {.lines = (h->E + 15) / 16};
    if (t < 0 || t >= h->T) return next;
    fetch(&next, h->k, h->stride, t, direction);
    fetch(&next, h->v, h->stride, t, direction);
    return next;
}

LIN_INLINE ahead inputs_ahead(const one_head *h, int t, int direction)
{
    ahead next = keys_ahead(h, t, direction);
    if (next.count) fetch(&next, h->q, h->stride, t, direction);
    return next;
}

/* The decays and slopes of n frames: place f of the chunk is frame t + f * direction; before and after the utterance the gate
 * counts as 0. With e = exp(-gate): a = (1 / (1 + e))^(1/16), d log a / d gate = e / (1 + e) / 16. */
static void take_decays(one_head *h, int t, int direction, int n)
{
    for (int f = 0; f < n; f++, t += direction) h->decay[f] = t >= 0 && t < h->T ? h->gates[(size_t)t * h->gate_step] : 0;
    for (int f = n; f < vround(n); f++) h->decay[f] = 0;
    for (int f = 0; f < n; f += LIN_WIDTH) {
        vf e = vexp(-vmax(vset(-80.0f), vload(h->decay + f))), share = 1.0f / (1.0f + e);
        vstore(h->decay + f, vsqrt(vsqrt(vsqrt(vsqrt(share)))));
        vstore(h->slope + f, e * share * 0.0625f);
    }
}

LIN_INLINE float kept(const one_head *h, int f) { return h->gates ? h->decay[f] : 1.0f; }

/* Writes φ(k) and v of frame t to place f of the chunk, and z = keep z + φ(k) if z is not NULL. */
LIN_INLINE void take_key(const one_head *h, int t, int f, float *z, float keep)
{
    const float *k = h->k + (size_t)t * h->stride, *v = h->v + (size_t)t * h->stride;
    float *fk = h->fk + (size_t)f * (size_t)h->Ep, *cv = h->cv + (size_t)f * (size_t)h->Ep;
    for (int e = 0; e < h->E; e += LIN_WIDTH) {
        vf key = phi_lanes(k, e, h->E);
        vstore(fk + e, key);
        vstore(cv + e, vlanes(v, e, h->E));
        if (z) vstore(z + e, vload(z + e) * keep + key);
    }
}

/* Writes φ(q) of frame t to place f; returns its denominator φ(q).z + eps. */
LIN_INLINE float take_query(const one_head *h, int t, int f)
{
    const float *q = h->q + (size_t)t * h->stride;
    float *fq = h->fq + (size_t)f * (size_t)h->Ep;
    vf sum = {0};
    for (int e = 0; e < h->E; e += LIN_WIDTH) {
        vf query = phi_lanes(q, e, h->E);
        vstore(fq + e, query);
        sum = vfma(query, vload(h->z + e), sum);
    }
    return vsum(sum) + 1e-6f;
}

/* Writes G = dy / den of frame t to place f; returns g = -(dy.y) / den. */
LIN_INLINE void take_gradient(const one_head *h, int t, int f, float inverse)
{
    const float *dy = h->dy + (size_t)t * h->out_stride, *y = h->y + (size_t)t * h->out_stride;
    float *G = h->G + (size_t)f * (size_t)h->Ep;
    vf sum = {0};
    for (int e = 0; e < h->E; e += LIN_WIDTH) {
        vf up = vlanes(dy, e, h->E);
        vstore(G + e, up * inverse);
        sum = vfma(up, vlanes(y, e, h->E), sum);
    }
    h->inverse[f] = inverse;
    h->g[f] = -vsum(sum) * inverse;
}

// One frame of to = from * (phi ? φ' : 1); φ' = min(φ, 1), since φ is e^x for x <= 0 and above 1 elsewhere.
LIN_INLINE void put_gradient(float *to, const float *from, const float *phi, int E)
{
    for (int e = 0; e < E; e += LIN_WIDTH) {
        vf value = vload(from + e);
        vput_lanes(to, phi ? value * vmin(vset(1.0f), vload(phi + e)) : value, e, E);
    }
}

// Divides the scratch among the arrays of a head.
static void lay_out(one_head *h, int T, int E, float *scratch)
{
    h->T = T;
    h->E = E;
    h->Ep = vround(E);
    h->rows = (E + HALF - 1) / HALF * HALF;
    h->P = h->Ep;
    h->chunk = least(least(HEAD_CHUNK, 1024 / h->Ep), T);
    size_t vectors = (size_t)h->chunk * (size_t)h->Ep, matrix = (size_t)h->P * (size_t)h->rows;
    float **parts[] = {&h->fq, &h->fk, &h->cv, &h->G, &h->o1, &h->o2};
    for (int i = 0; i < 6; i++, scratch += vectors) *parts[i] = scratch;
    float **matrices[] = {&h->S, &h->R, &h->Rt};
    for (int i = 0; i < 3; i++, scratch += matrix) *matrices[i] = scratch;
    h->z = scratch;
    h->r = h->z + h->Ep;
    h->inverse = h->r + h->Ep;
    h->g = h->inverse + HEAD_CHUNK;
    h->decay = h->g + HEAD_CHUNK;
    h->slope = h->decay + HEAD_CHUNK + LIN_WIDTH; // one place more than a chunk
}

// S and z from a state [E+1, E], or zeros. S of a state that is a whole number of blocks is used in place.
static void read_state(one_head *h, float *state)
{
    const size_t E = (size_t)h->E;
    vclear(h->z, (size_t)h->Ep);
    if (state) memcpy(h->z, state + E * E, E * sizeof(float));
    if (state && h->rows == h->E) {
        h->S = state;
        h->P = h->E;
        for (size_t e = 0; h->later && e < E; e += 16) __builtin_prefetch(h->later + E * E + e, 1);
        return;
    }
    h->later = NULL;
    vclear(h->S, (size_t)h->rows * (size_t)h->P);
    for (size_t e = 0; state && e < E; e++) memcpy(h->S + e * (size_t)h->P, state + e * E, E * sizeof(float));
}

LIN_INLINE void scan_causal(const one_head *h, float *S, const float *a, const float *b, const float *q,
                            float *out, int n, const ahead * next)
{
    if (h->gates) scan_decayed(h, S, a, b, q, out, n, next);
    else scan_both(h, S, a, b, q, out, n, next);
}

static void write_state(const one_head *h, float *state)
{
    const size_t E = (size_t)h->E;
    for (size_t e = 0; h->S != state && e < E; e++) memcpy(state + e * E, h->S + e * (size_t)h->P, E * sizeof(float));
    memcpy(state + E * E, h->z, E * sizeof(float));
}

void LIN_NAME(lin_attention_head_forward)(float *y, const float *qkv, const float *gates, size_t gate_step, int T, int H, int E,
                                          int causal, float *state, const float *later, float *scratch)
{
    const size_t C = (size_t)H * (size_t)E;
    one_head h = {.stride = 3 * C, .out_stride = C, .gates = gates, .gate_step = gate_step, .q = qkv, .k = qkv + C,
                  .v = qkv + 2 * C, .later = later};
    lay_out(&h, T, E, scratch);
    read_state(&h, state);
    for (int t = 0; !causal && t < T; t += h.chunk) {
        int n = least(h.chunk, T - t);
        const ahead next = keys_ahead(&h, t + n, 1);
        for (int f = 0; f < n; f++) take_key(&h, t + f, f, h.z, 1.0f);
        scan_update(&h, h.S, h.fk, h.cv, n, &next);
    }
    for (int t = 0; t < T; t += h.chunk) {
        int n = least(h.chunk, T - t);
        if (gates) take_decays(&h, t, 1, n);
        ahead next = inputs_ahead(&h, t + n, 1);
        fetch(&next, y, h.out_stride, t, 1); // to write
        for (int f = 0; f < n; f++) {
            if (causal) take_key(&h, t + f, f, h.z, kept(&h, f));
            h.inverse[f] = 1.0f / take_query(&h, t + f, f);
        }
        vclear(h.o1, (size_t)n * (size_t)h.Ep);
        if (causal) scan_causal(&h, h.S, h.fk, h.cv, h.fq, h.o1, n, &next);
        else scan_read(&h, h.S, h.fq, h.o1, n, &next);
        h.later = NULL;
        for (int f = 0; f < n; f++) {
            float *out = y + (size_t)(t + f) * h.out_stride;
            const float *sums = h.o1 + (size_t)f * (size_t)h.Ep;
            for (int e = 0; e < E; e += LIN_WIDTH) vput_lanes(out, vload(sums + e) * h.inverse[f], e, E);
        }
    }
    if (state) write_state(&h, state);
}

// Frames t .. t+n-1, in order, of the forward scan: dq from Sᵀ and z. In the causal form the chunk's own keys are added to S and
// z.
static void query_gradient(one_head *h, int t, int n, int causal)
{
    if (h->gates) take_decays(h, t, 1, n);
    ahead next = inputs_ahead(h, t + n, 1);
    if (next.count) {
        fetch(&next, h->dy, h->out_stride, t + n, 1);
        fetch(&next, h->y, h->out_stride, t + n, 1);
    }
    fetch(&next, h->dq, h->stride, t, 1); // to write
    for (int f = 0; f < n; f++) {
        if (causal) take_key(h, t + f, f, h->z, kept(h, f));
        take_gradient(h, t + f, f, 1.0f / take_query(h, t + f, f));
        float *start = h->o1 + (size_t)f * (size_t)h->Ep;
        for (int e = 0; e < h->Ep; e += LIN_WIDTH) vstore(start + e, vload(h->z + e) * h->g[f]);
    }
    if (causal) scan_causal(h, h->S, h->cv, h->fk, h->G, h->o1, n, &next);
    else scan_read(h, h->S, h->G, h->o1, n, &next);
    for (int f = 0; f < n; f++) {
        size_t at = (size_t)f * (size_t)h->Ep;
        put_gradient(h->dq + (size_t)(t + f) * h->stride, h->o1 + at, h->fq + at, h->E);
    }
}

// dk and dv of frames whose sums are in o1 and o2.
static void put_key_gradients(one_head *h, int t, int step, int n)
{
    for (int f = 0; f < n; f++, t += step) {
        size_t at = (size_t)f * (size_t)h->Ep;
        put_gradient(h->dk + (size_t)t * h->stride, h->o1 + at, h->fk + at, h->E);
        put_gradient(h->dv + (size_t)t * h->stride, h->o2 + at, NULL, h->E);
    }
}

// dgates of frames t, t-1, ..., t-n+1, whose dφ(k) are in o1.
static void put_gate_gradients(one_head *h, int t, int n)
{
    for (int f = 0; f < n; f++, t--) {
        const float *key = h->fk + (size_t)f * (size_t)h->Ep, *gradient = h->o1 + (size_t)f * (size_t)h->Ep;
        vf sum = {0};
        for (int e = 0; e < h->Ep; e += LIN_WIDTH) sum = vfma(vload(key + e), vload(gradient + e), sum);
        h->future -= (double)vsum(sum) + 1e-6 * (double)h->g[f];
        h->dgates[(size_t)t * h->heads] = (float)((double)h->slope[f + 1] * h->future);
    }
}

LIN_INLINE void add_scaled(float *r, const float *x, float factor, int n)
{
    for (int e = 0; e < n; e += LIN_WIDTH) vstore(r + e, vfma(vload(x + e), vset(factor), vload(r + e)));
}

static void causal_backward(one_head *h)
{
    int T = h->T;
    for (int t = 0; t < T; t += h->chunk) {
        int n = least(h->chunk, T - t);
        query_gradient(h, t, n, 1);
        // 1/den and g are stored where dk and dv go until the reverse scan, which reads a chunk's values before it writes its
        // gradients.
        for (int f = 0; f < n; f++) {
            h->dk[(size_t)(t + f) * h->stride] = h->inverse[f];
            h->dv[(size_t)(t + f) * h->stride] = h->g[f];
        }
    }
    for (int t = T - 1; t >= 0; t -= h->chunk) {
        int n = least(h->chunk, t + 1);
        ahead next = inputs_ahead(h, t - n, -1);
        if (next.count) {
            fetch(&next, h->dy, h->out_stride, t - n, -1);
            fetch(&next, h->dk, h->stride, t - n, -1); // to read 1/den and g, and to write
            fetch(&next, h->dv, h->stride, t - n, -1);
        }
        if (h->gates) take_decays(h, t + 1, -1, n + 1); // R decays by the a of the frame after
        for (int f = 0; f < n; f++) {                             // place f holds frame t - f: reversed in time
            size_t at = (size_t)f * (size_t)h->Ep, frame = (size_t)(t - f) * h->stride;
            float inverse = h->dk[frame], g = h->dv[frame], keep = kept(h, f);
            const float *dy = h->dy + (size_t)(t - f) * h->out_stride;
            take_key(h, t - f, f, NULL, 1.0f);
            h->g[f] = g;
            for (int e = 0; e < h->E; e += LIN_WIDTH) {
                vf query = phi_lanes(h->q + frame, e, h->E), r = vfma(query, vset(g), vload(h->r + e) * keep);
                vstore(h->fq + at + e, query);
                vstore(h->G + at + e, vlanes(dy, e, h->E) * inverse);
                vstore(h->r + e, r);
                vstore(h->o1 + at + e, r);
            }
        }
        vclear(h->o2, (size_t)n * (size_t)h->Ep);
        scan_causal(h, h->Rt, h->G, h->fq, h->cv, h->o1, n, &next);
        scan_causal(h, h->R, h->fq, h->G, h->fk, h->o2, n, NULL);
        if (h->dgates) put_gate_gradients(h, t, n);
        put_key_gradients(h, t, -1, n);
    }
}

static void full_backward(one_head *h)
{
    int T = h->T;
    for (int t = 0; t < T; t += h->chunk) {
        int n = least(h->chunk, T - t);
        const ahead next = keys_ahead(h, t + n, 1);
        for (int f = 0; f < n; f++) take_key(h, t + f, f, h->z, 1.0f);
        scan_update(h, h->S, h->cv, h->fk, n, &next);
    }
    for (int t = 0; t < T; t += h->chunk) {
        int n = least(h->chunk, T - t);
        query_gradient(h, t, n, 0);
        for (int f = 0; f < n; f++) add_scaled(h->r, h->fq + (size_t)f * (size_t)h->Ep, h->g[f], h->Ep);
        scan_update(h, h->Rt, h->G, h->fq, n, NULL);
        scan_update(h, h->R, h->fq, h->G, n, NULL);
    }
    for (int t = 0; t < T; t += h->chunk) {
        int n = least(h->chunk, T - t);
        ahead next = keys_ahead(h, t + n, 1);
        fetch(&next, h->dk, h->stride, t, 1); // to write
        fetch(&next, h->dv, h->stride, t, 1);
        for (int f = 0; f < n; f++) {
            take_key(h, t + f, f, NULL, 1.0f);
            memcpy(h->o1 + (size_t)f * (size_t)h->Ep, h->r, (size_t)h->Ep * sizeof(float));
        }
        vclear(h->o2, (size_t)n * (size_t)h->Ep);
        scan_read(h, h->Rt, h->cv, h->o1, n, &next);
        scan_read(h, h->R, h->fk, h->o2, n, NULL);
        put_key_gradients(h, t, 1, n);
    }
}

void LIN_NAME(lin_attention_head_backward)(float *dqkv, float *dgates, const float *dy, const float *qkv, const float *gates,
                                           size_t gate_step, const float *y, int T, int H, int E, int causal, float *scratch)
{
    size_t C = (size_t)H * (size_t)E;
    one_head h = {.stride = 3 * C, .out_stride = C, .y = y, .dy = dy, .gates = gates, .dgates = dgates, .gate_step = gate_step,
                  .heads = (size_t)H, .q = qkv, .k = qkv + C, .v = qkv + 2 * C, .dq = dqkv, .dk = dqkv + C, .dv = dqkv + 2 * C};
    lay_out(&h, T, E, scratch);
    vclear(h.S, 3 * (size_t)h.rows * (size_t)h.P);
    vclear(h.z, 2 * (size_t)h.Ep);
    if (causal) causal_backward(&h);
    else full_backward(&h);
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum {
    SMALL = 2048, // below this many values, starting a second thread costs more time than it saves
    AHEAD = 2,    // work items
    FEW = 64      // up to so many rows of an utterance are still in the caches from the operation before
};

typedef struct attention_job {
    const lin_exec *exec;
    float *y, *dqkv, *dgates;
    const float *qkv, *gates, *dy, *y_in;
    const int *offsets;
    int B, H, E, causal, constant;
    float *const *states;
    size_t at;
} attention_job;

static float *state_of(const attention_job *job, int piece)
{
    const int b = piece / job->H;
    const size_t E = (size_t)job->E, head = (size_t)(piece % job->H);
    return job->causal && job->states && job->states[b] ? job->states[b] + job->at + head * (E + 1) * E : NULL;
}

// The gates of a head from a row on, and the floats from one row to the next.
static const float *gates_of(const attention_job *job, size_t row, size_t head, size_t *step)
{
    *step = job->constant ? 0 : (size_t)job->H;
    return job->gates ? job->gates + row * *step + head : NULL;
}

// The state of a later work item, to be prefetched: the states of many streams are in memory, not in caches. NULL: none, or there
// are several threads, of which another one may run that work item.
static const float *later_state(const attention_job *job, int piece)
{
    return !job->exec->pool && piece + AHEAD < job->B * job->H ? state_of(job, piece + AHEAD) : NULL;
}

// Loads rows first .. end-1 of a matrix into the cache by reading them in order: the hardware prefetcher follows reads, but not
// prefetch instructions.
static void read_rows(const float *x, size_t first, size_t end, size_t columns)
{
    for (size_t i = first * columns; i < end * columns; i += 16) (void)*(const volatile float *)(x + i);
}

// Reads a part of the next utterance's rows; the work items of all heads together read all of them. Whole rows are read twice as
// fast as the parts of rows that a head needs.
static void read_next(const attention_job *job, int piece)
{
    const int b = piece / job->H + 1;
    if (b >= job->B || job->offsets[b + 1] - job->offsets[b] < FEW) return;
    const size_t C = (size_t)job->H * (size_t)job->E, H = (size_t)job->H, head = (size_t)(piece % job->H);
    const size_t row = (size_t)job->offsets[b], T = (size_t)job->offsets[b + 1] - row;
    const size_t first = row + T * head / H, end = row + T * (head + 1) / H;
    read_rows(job->qkv, first, end, 3 * C);
    if (!job->dqkv) return;
    read_rows(job->dy, first, end, C);
    read_rows(job->y_in, first, end, C);
}

static void forward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    float *state = state_of(job, piece);
    size_t step;
    const float *gates = gates_of(job, row, head, &step);
    read_next(job, piece);
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_forward)
        (job->y + row * C + head * E, job->qkv + row * 3 * C + head * E, gates, step, T, job->H, job->E, job->causal, state,
         later_state(job, piece), lin_scratch(job->exec, thread));
}

static void run(lin_exec *exec, const lin_segments *segments, lin_pool_work piece, attention_job *job)
{
    assert(lin_segments_hold(segments) && job->H > 0 && job->E > 0 && job->E <= MOST_WIDTH);
    assert(!job->states || job->causal); // sums over all frames of an utterance cannot be continued
    job->exec = exec;
    job->offsets = segments->offsets;
    job->B = segments->B;
    lin_pool_run(lin_threads_for(exec, segments->rows, job->H * job->E, SMALL), segments->B * job->H, piece, job);
}

void lin_cpu_attention_forward(lin_exec *exec, float *y, const float *qkv, const lin_segments *segments, int H, int E, int causal,
                               float *const *states, size_t at)
{
    attention_job job = {.y = y, .qkv = qkv, .H = H, .E = E, .causal = causal, .states = states, .at = at};
    run(exec, segments, forward_piece, &job);
}

void lin_cpu_decayed_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *gates, int constant,
                                       const lin_segments *segments, int H, int E, float *const *states, size_t at)
{
    attention_job job = {.y = y, .qkv = qkv, .gates = gates, .constant = constant, .H = H, .E = E, .causal = 1, .states = states,
                         .at = at};
    run(exec, segments, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    size_t narrow = row * C + head * E, wide = row * 3 * C + head * E, step;
    const float *gates = gates_of(job, row, head, &step);
    float *dgates = job->dgates ? job->dgates + row * (size_t)job->H + head : NULL;
    read_next(job, piece);
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_backward)
        (job->dqkv + wide, dgates, job->dy + narrow, job->qkv + wide, gates, step, job->y_in + narrow, T, job->H, job->E,
         job->causal, lin_scratch(job->exec, thread));
}

void lin_cpu_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y,
                                const lin_segments *segments, int H, int E, int causal)
{
    attention_job job = {.dqkv = dqkv, .qkv = qkv, .dy = dy, .y_in = y, .H = H, .E = E, .causal = causal};
    run(exec, segments, backward_piece, &job);
}

void lin_cpu_decayed_attention_backward(lin_exec *exec, float *dqkv, float *dgates, const float *dy, const float *qkv,
                                        const float *gates, int constant, const float *y, const lin_segments *segments, int H,
                                        int E)
{
    attention_job job = {.dqkv = dqkv, .dgates = dgates, .qkv = qkv, .gates = gates, .constant = constant, .dy = dy, .y_in = y,
                         .H = H, .E = E, .causal = 1};
    run(exec, segments, backward_piece, &job);
}
#endif
