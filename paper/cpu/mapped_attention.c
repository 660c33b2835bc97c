/*
 * mapped_attention.c - linear attention with other feature maps (lin_map): a work item is one head of one utterance.
 *
 * As in kernels/cpu/attention.c, all passes use one kernel, `scan`: for each frame, the outer product of two vectors is added to
 * a matrix M, M += a bᵀ, and a third vector reads it, out += qᵀ M. With y = num / den, G = dy / den and g = -(dy.y) / den:
 *   num_i   = S_iᵀ φ(q_i)           forward scan of S:  (φ(k), v, φ(q)),  den_i = φ(q_i) z_i + eps,  z_i = sum_{j<=i} φ(k_j)
 *   dφ(q_i) = S_i G_i + z_i g_i     forward scan of Sᵀ: (v, φ(k), G)
 *   dφ(k_i) = R_i v_i + r_i         reverse scan of Rᵀ: (G, φ(q), v),     r_i = sum_{j>=i} φ(q_j) g_j
 *   dv_i    = R_iᵀ φ(k_i)           reverse scan of R:  (φ(q), G, φ(k))
 * (Katharopoulos et al. 2020, eq. 13-15, with the normaliser.) Without a direction the sums run over all frames first.
 *
 * Cost per frame and head, in floating-point operations (φ': the gradient of φ), and state of a stream:
 *              φ, φ'                      forward          backward                 state, bytes per head
 *   poly2      about D, 2 D               4 D E + 2 φ      12 D E + 5 φ + 2 φ'      4 D (E + 1), D = E (E + 3) / 2 + 1
 *   random     2 D E (and 20 D for exp)   8 D E            28 D E                   4 D (E + 1)
 *   elu + 1    E (attention.c)            4 E E            12 E E                   4 E (E + 1)
 * E 32, poly2: D 561, 72 thousand operations forward, 74,052 bytes.
 *
 * φ is computed for a chunk of frames, in scratch. Vectors of a chunk are kept in panels of PANEL elements: element x of frame f
 * is at (x / PANEL * chunk + f) PANEL + x % PANEL, so that the frames which meet one block of M lie side by side, and no two of
 * them share a cache set because D is a power of 2. M is kept in blocks of PANEL x LIN_WIDTH, each of which stays in registers
 * over a chunk; S of a stream stays in its state.
 * The sums of a frame run in the same order wherever the frame is in its chunk, and M is float in registers and in memory, so
 * splitting the rows into calls changes no bit. A product of the frames of a chunk with one another, φ(q) φ(k), would save
 * nothing: each frame costs D E multiplications for reading S and D E for adding to it in both forms.
 *
 * Scratch: one matrix at a time, so the backward pass computes φ once for each pass. E up to 64 with D up to 1,024 (random) or
 * E (E + 3) / 2 + 1 (poly2) fit.
 */
#include <math.h>

#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_mapped_head_forward,
                     (float *y, const float *qkv, const float *omega, int T, const lin_map *map, int H, int E, int causal,
                      float *state, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_mapped_head_backward,
                     (float *dqkv, const float *dy, const float *qkv, const float *omega, const float *y, int T,
                      const lin_map *map, int H, int E, int causal, float *scratch));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

#if LIN_WIDTH == 16
#define PANEL 16 // of 32 registers: 16 rows, 4 sums, b
#else
#define PANEL 8 // of 16 registers: 8 rows, 4 sums, b, and the broadcast value
#endif

enum { MAPPED_CHUNK = 32 };

/* The data of one (utterance, head), and its scratch. Vectors in panels have room for `chunk` frames. */
typedef struct mapped {
    int T, E, D, Ep, Dp, chunk; /* Ep, Dp: rounded up to PANEL */
    lin_map_kind kind;
    float scale, share; /* E^(-1/4), 1 / sqrt(D) */
    size_t stride, out_stride;
    const float *q, *k, *v, *y, *dy, *omega;
    float *dq, *dk, *dv;
    float *M, *z;          /* S, Sᵀ, R or Rᵀ; z or r [Dp] */
    float *rest;           /* the rows of M past the first `whole` panels of them, as blocks */
    int whole;
    size_t down, across, pitch; /* floats in M from block to block, and from row to row of a block */
    float *columns;        /* omegaᵀ: [Dp / PANEL, E, PANEL] */
    float *fq, *fk, *gf;   /* φ(q), φ(k), a gradient of one of them; in panels */
    float *ce, *G, *oe;    /* v, dy / den, a result; in panels */
    float *uq, *uk;        /* [chunk, Ep + PANEL]: q and k times scale, then zeros */
    float *rows[2];        /* [Dp + 2 PANEL]: φ or its gradient of one frame, and of the next one */
    float *sums;           /* [chunk, LIN_WIDTH] */
    float *inverse, *g;    /* [chunk] */
} mapped;

/* ---- the scan -------------------------------------------------------------------------------------------------------------- */

/* For n frames: block += a bᵀ if `update`, then out += qᵀ block if `read`. */
LIN_INLINE void mapped_block(float *block, size_t pitch, const float *a, const float *b, const float *q, float *out,
                             int n, int update, int read)
{
    vf s[PANEL];
    LIN_UNROLL
    for (int e = 0; e < PANEL; e++) s[e] = vload(block + (size_t)e * pitch);
    for (int f = 0; f < n; f++, a += PANEL, b += PANEL, q += PANEL, out += PANEL) {
        vf bf = update ? vload(b) : (vf){0}, sum[4];
        LIN_UNROLL
        for (int e = 0; e < PANEL; e++) {
            if (update) s[e] = vfma(vset(a[e]), bf, s[e]);
            if (read) sum[e % 4] = e < 4 ? vset(q[e]) * s[e] : vfma(vset(q[e]), s[e], sum[e % 4]);
        }
        if (read) vstore(out, vload(out) + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
    }
    if (update) {
        LIN_UNROLL
        for (int e = 0; e < PANEL; e++) vstore(block + (size_t)e * pitch, s[e]);
    }
}

/* The same for M [rows, columns]; a and q have `rows` elements, b and out have `columns`. */
LIN_INLINE void mapped_scan(const mapped *h, const float *a, const float *b, const float *q, float *out,
                            int n, int rows, int columns, int update, int read)
{
    const int across = columns / LIN_WIDTH, down = rows / PANEL, panel = h->chunk * PANEL;
    for (int i = 0; i < across * down; i++) { // the longer side in the outer loop: its vectors are read once
        const int r = rows > columns ? i / across : i % down, c = rows > columns ? i % across : i / down;
        const size_t row = (size_t)r * (size_t)panel;
        const size_t column = (size_t)(c * LIN_WIDTH / PANEL) * (size_t)panel + (size_t)(c * LIN_WIDTH % PANEL);
        if (r < h->whole)
            mapped_block(h->M + (size_t)r * h->down + (size_t)c * h->across, h->pitch, a + row, b + column, q + row,
                         out + column, n, update, read);
        else
            mapped_block
            (h->rest + c * (PANEL * LIN_WIDTH), LIN_WIDTH, a + row, b + column, q + row, out + column, n, update, read);
    }
}

static __attribute__((noinline)) void mapped_scan_both(const mapped *h, const float *a, const float *b,
                                                       const float *q, float *out, int n, int rows, int columns)
{
    mapped_scan(h, a, b, q, out, n, rows, columns, 1, 1);
}

static __attribute__((noinline)) void mapped_scan_update(const mapped *h, const float *a, const float *b,
                                                         int n, int rows, int columns)
{
    mapped_scan(h, a, b, a, h->gf, n, rows, columns, 1, 0);
}

static __attribute__((noinline)) void mapped_scan_read(const mapped *h, const float *q, float *out, int n,
                                                       int rows, int columns)
{
    mapped_scan(h, q, out, q, out, n, rows, columns, 0, 1);
}

/* Of every panel of φ(k) and φ(q) or a gradient, see below: the place of frame 0. */
LIN_INLINE float *mapped_at(const mapped *h, const float *panels, int x)
{
    return (float *)panels + (size_t)(x / PANEL) * (size_t)(h->chunk * PANEL) + x % PANEL;
}

/* ---- vectors of a chunk ---------------------------------------------------------------------------------------------------- */

/* Frames t, t + step, ... of a matrix of E columns, each times its factor (NULL: 1), in panels; 0 past E. */
static void mapped_take(const mapped *h, float *panels, const float *x, size_t stride, int t, int step, int n,
                        const float *factor)
{
    for (int f = 0; f < n; f++, t += step) {
        const float *from = x + (size_t)t * stride;
        const vf by = vset(factor ? factor[f] : 1.0f);
        for (int e = 0; e < h->Ep; e += LIN_WIDTH) vstore(mapped_at(h, panels, e) + f * PANEL, vpadded(from, e, h->E) * by);
    }
}

/* The reverse: rows of E elements from panels. */
static void mapped_put(const mapped *h, float *x, size_t stride, int t, int step, int n, const float *panels,
                       const float *factor)
{
    for (int f = 0; f < n; f++, t += step) {
        float *to = x + (size_t)t * stride;
        const vf by = vset(factor ? factor[f] : 1.0f);
        for (int e = 0; e < h->E; e += LIN_WIDTH) vput_lanes(to, vload(mapped_at(h, panels, e) + f * PANEL) * by, e, h->E);
    }
}

/* ---- the feature maps ------------------------------------------------------------------------------------------------------ */

LIN_INLINE float *mapped_input(const mapped *h, const float *u, int f)
{
    return (float *)u + (size_t)f * (size_t)(h->Ep + PANEL);
}

/* u of frames t, t + step, ... */
static void mapped_inputs(const mapped *h, float *u, const float *x, int t, int step, int n)
{
    for (int f = 0; f < n; f++, t += step) {
        const float *from = x + (size_t)t * h->stride;
        float *to = mapped_input(h, u, f);
        for (int e = 0; e < h->Ep + PANEL; e += LIN_WIDTH) vstore(to + e, vpadded(from, e, h->E) * h->scale);
    }
}

/* poly2: φ of one frame in `to`: u_i², √2 u_i u_j (i < j), √2 u_i, 1, zeros. A run of products is written in whole vectors; what
 * they hold beyond its end is overwritten by the next one. */
static void mapped_poly2(const mapped *h, float *to, const float *u)
{
    const float root = 0x1.6a09e6p0f;
    for (int e = 0; e < h->E; e += LIN_WIDTH) vstore(to + e, vload(u + e) * vload(u + e));
    to += h->E;
    for (int i = 0; i + 1 < h->E; i++) {
        const int run = h->E - 1 - i;
        const vf factor = vset(root * u[i]);
        for (int j = 0; j < run; j += LIN_WIDTH) vstore(to + j, factor * vload(u + i + 1 + j));
        to += run;
    }
    for (int e = 0; e < h->E; e += LIN_WIDTH) vstore(to + e, vload(u + e) * root);
    to += h->E;
    for (int i = 0; i < PANEL; i += LIN_WIDTH) vstore(to + i, (vf){0});
    *to = 1;
}

/* du [Ep] from the gradient of φ. */
static void mapped_poly2_back(const mapped *h, float *du, const float *gradients, const float *u)
{
    const float root = 0x1.6a09e6p0f, *from = gradients + h->E, *linear = gradients + h->D - 1 - h->E;
    float lane[LIN_WIDTH];
    for (int i = 0; i < LIN_WIDTH; i++) lane[i] = (float)i;
    const vf lanes = vload(lane);
    for (int e = 0; e < h->Ep; e += LIN_WIDTH)
        vstore(du + e, vfma(vload(u + e) * 2.0f, vload(gradients + e), vload(linear + e) * root));
    for (int i = 0; i + 1 < h->E; i++) {
        const int run = h->E - 1 - i;
        const vf factor = vset(root * u[i]);
        vf sum = {0};
        for (int j = 0; j < run; j += LIN_WIDTH) {
            const float *uj = u + i + 1 + j;
            float *dj = du + i + 1 + j;
            const vf gradient = vblend(vgt(vset((float)(run - j)), lanes), vload(from + j), (vf){0});
            vstore(dj, vfma(factor, gradient, vload(dj)));
            sum = vfma(vload(uj), gradient, sum);
        }
        du[i] += root * vsum(sum);
        from += run;
    }
}

/* The part of x . columns for `frames` frames and LIN_WIDTH features: plain sums in order of e. */
LIN_INLINE void mapped_project(const mapped *h, float *to, const float *columns, const float *u, int frames)
{
    const size_t pitch = (size_t)(h->Ep + PANEL);
    vf sum[8];
    LIN_UNROLL
    for (int f = 0; f < frames; f++) sum[f] = (vf){0};
    for (int e = 0; e < h->E; e++) {
        const vf column = vload(columns + (size_t)e * PANEL);
        LIN_UNROLL
        for (int f = 0; f < frames; f++) sum[f] = vfma(vset(u[(size_t)f * pitch + (size_t)e]), column, sum[f]);
    }
    LIN_UNROLL
    for (int f = 0; f < frames; f++) vstore(to + f * PANEL, sum[f]);
}

static void mapped_random(const mapped *h, float *panels, const float *u, int n)
{
    for (int x = 0; x < h->Dp; x += LIN_WIDTH) {
        float *to = mapped_at(h, panels, x);
        const float *columns = h->columns + (size_t)(x / PANEL) * (size_t)(h->E * PANEL) + x % PANEL;
        int f = 0;
        for (; f + 8 <= n; f += 8) mapped_project(h, to + f * PANEL, columns, mapped_input(h, u, f), 8);
        for (; f + 4 <= n; f += 4) mapped_project(h, to + f * PANEL, columns, mapped_input(h, u, f), 4);
        for (; f < n; f++) mapped_project(h, to + f * PANEL, columns, mapped_input(h, u, f), 1);
    }
    for (int f = 0; f < n; f++) {
        const float *x = mapped_input(h, u, f);
        vf squares = {0};
        for (int e = 0; e < h->Ep; e += LIN_WIDTH) squares = vfma(vload(x + e), vload(x + e), squares);
        const float half = 0.5f * vsum(squares);
        for (int d = 0; d < h->D; d += LIN_WIDTH) {
            float *to = mapped_at(h, panels, d) + f * PANEL;
            // At most |omega_d|² / 2, so below 88, where vexp ends, unless omega is no draw of Gaussians. vmin(88, NaN) is NaN.
            const vf value = vexp(vmin(vset(88.0f), vload(to) - half)) * h->share;
            vstore(to, (vf){0});
            vput_lanes(to, value, 0, h->D - d);
        }
        for (int d = vround(h->D); d < h->Dp; d += LIN_WIDTH) vstore(mapped_at(h, panels, d) + f * PANEL, (vf){0});
    }
}

/* u and φ of frames t, t + step, ... of q or k. */
static void mapped_features(const mapped *h, float *panels, float *u, const float *x, int t, int step, int n)
{
    mapped_inputs(h, u, x, t, step, n);
    if (h->kind == LIN_MAP_RANDOM) {
        mapped_random(h, panels, u, n);
        return;
    }
    // A frame is copied after the next one is computed: loads that overlap several stores wait until these are in the cache.
    for (int f = 0; f <= n; f++) {
        if (f < n) mapped_poly2(h, h->rows[f % 2], mapped_input(h, u, f));
        const float *row = h->rows[(f + 1) % 2];
        for (int d = 0; f > 0 && d < h->Dp; d += LIN_WIDTH)
            vstore(mapped_at(h, panels, d) + (f - 1) * PANEL, vload(row + d));
    }
}

// Row f of gf in order.
LIN_INLINE void mapped_gradient_row(const mapped *h, int f)
{
    for (int d = 0; d < h->Dp; d += LIN_WIDTH) vstore(h->rows[f % 2] + d, vload(mapped_at(h, h->gf, d) + f * PANEL));
}

/* The elements from e of frames f .. f+frames-1 of (gradient φ) omega: du, without the part of |u|². Gradients times φ are in
 * gf. */
LIN_INLINE void mapped_unproject(const mapped *h, int f, int e, int frames)
{
    vf sum[4];
    LIN_UNROLL
    for (int i = 0; i < frames; i++) sum[i] = (vf){0};
    for (int d = 0; d < h->D; d++) {
        const float *w = mapped_at(h, h->gf, d) + f * PANEL;
        const vf omega = vlanes(h->omega + (size_t)d * (size_t)h->E, e, h->E);
        LIN_UNROLL
        for (int i = 0; i < frames; i++) sum[i] = vfma(vset(w[i * PANEL]), omega, sum[i]);
    }
    LIN_UNROLL
    for (int i = 0; i < frames; i++) vstore(mapped_at(h, h->oe, e) + (f + i) * PANEL, sum[i]);
}

/* The gradient in gf of φ (in panels; not read for poly2) passed on to x: rows t, t + step, ... of dx. Uses oe. */
static void mapped_pass(const mapped *h, float *dx, const float *phi, const float *u, int t, int step, int n)
{
    if (h->kind == LIN_MAP_RANDOM) {
        vclear(h->sums, (size_t)n * LIN_WIDTH);
        for (int d = 0; d < h->Dp; d += LIN_WIDTH)
            for (int f = 0; f < n; f++) {
                float *gradient = mapped_at(h, h->gf, d) + f * PANEL, *sum = h->sums + f * LIN_WIDTH;
                const vf w = vload(gradient) * vload(mapped_at(h, phi, d) + f * PANEL);
                vstore(gradient, w);
                vstore(sum, vload(sum) + w);
            }
        for (int e = 0; e < h->E; e += LIN_WIDTH) {
            int f = 0;
            for (; f + 4 <= n; f += 4) mapped_unproject(h, f, e, 4);
            for (; f < n; f++) mapped_unproject(h, f, e, 1);
        }
    }
    float du[128];
    for (int f = 0; f < n; f++) {
        const float *input = mapped_input(h, u, f);
        if (h->kind == LIN_MAP_POLY2) {
            if (f == 0) mapped_gradient_row(h, f);
            if (f + 1 < n) mapped_gradient_row(h, f + 1);
            mapped_poly2_back(h, du, h->rows[f % 2], input);
        }
        const vf total = vset(h->kind == LIN_MAP_RANDOM ? vsum(vload(h->sums + f * LIN_WIDTH)) : 0);
        for (int e = 0; e < h->Ep; e += LIN_WIDTH) {
            float *to = mapped_at(h, h->oe, e) + f * PANEL;
            const vf value = h->kind == LIN_MAP_RANDOM ? vload(to) - vload(input + e) * total : vload(du + e);
            vstore(to, value * h->scale);
        }
    }
    mapped_put(h, dx, h->stride, t, step, n, h->oe, NULL);
}

/* ---- z and r --------------------------------------------------------------------------------------------------------------- */

/* inverse[f] = 1 / (φ(q_f) z + eps), with φ(k) of the frames up to f added to z if `keys`; z itself changes if `keep`. */
static void mapped_denominators(const mapped *h, int n, int keys, int keep)
{
    vclear(h->sums, (size_t)n * LIN_WIDTH);
    for (int d = 0; d < h->Dp; d += LIN_WIDTH) {
        vf z = vload(h->z + d);
        const float *fk = mapped_at(h, h->fk, d), *fq = mapped_at(h, h->fq, d);
        for (int f = 0; f < n; f++) {
            float *sum = h->sums + f * LIN_WIDTH;
            if (keys) z += vload(fk + f * PANEL);
            vstore(sum, vfma(vload(fq + f * PANEL), z, vload(sum)));
        }
        if (keep) vstore(h->z + d, z);
    }
    for (int f = 0; f < n; f++) h->inverse[f] = 1.0f / (vsum(vload(h->sums + f * LIN_WIDTH)) + 1e-6f);
}

/* For each frame in turn: z += phi * by (phi NULL: nothing; by NULL: 1), then gf = z * times (NULL: 1), if `start`. */
static void mapped_starts(const mapped *h, const float *phi, const float *by, const float *times, int n,
                          int start)
{
    for (int d = 0; d < h->Dp; d += LIN_WIDTH) {
        vf z = vload(h->z + d);
        const float *add = phi ? mapped_at(h, phi, d) : NULL;
        float *to = mapped_at(h, h->gf, d);
        for (int f = 0; f < n; f++) {
            if (add) z = by ? vfma(vload(add + f * PANEL), vset(by[f]), z) : z + vload(add + f * PANEL);
            if (start) vstore(to + f * PANEL, times ? z * times[f] : z);
        }
        vstore(h->z + d, z);
    }
}

/* ---- scratch and states ---------------------------------------------------------------------------------------------------- */

LIN_INLINE float *mapped_room(float **scratch, size_t n)
{
    float *p = *scratch;
    *scratch += (n + 15) / 16 * 16;
    return p;
}

/* Divides the scratch among the arrays of a head, and packs omega. */
static void mapped_lay_out(mapped *h, int T, int H, int E, const lin_map *map, const float *omega,
                           float *scratch)
{
    const size_t C = (size_t)H * (size_t)E;
    h->T = T;
    h->E = E;
    h->D = map->D;
    h->kind = map->kind;
    h->omega = omega;
    h->stride = 3 * C;
    h->out_stride = C;
    h->Ep = (E + PANEL - 1) / PANEL * PANEL;
    h->Dp = (map->D + PANEL - 1) / PANEL * PANEL;
    h->scale = 1.0f / sqrtf(sqrtf((float)E));
    h->share = 1.0f / sqrtf((float)map->D);
    const size_t Dp = (size_t)h->Dp, Ep = (size_t)h->Ep, wide = (size_t)E * (map->kind == LIN_MAP_RANDOM);
    h->M = mapped_room(&scratch, Dp * Ep);
    h->z = mapped_room(&scratch, Dp);
    for (int i = 0; i < 2; i++) h->rows[i] = mapped_room(&scratch, Dp + 2 * PANEL);
    h->columns = mapped_room(&scratch, Dp * wide);
    h->rest = mapped_room(&scratch, PANEL * Ep);
    const size_t fixed = Dp * (Ep + 3 + wide) + PANEL * Ep + 4 * PANEL + 16 * 16,
                 each = 3 * Dp + 5 * Ep + 2 * PANEL + LIN_WIDTH + 2;
    h->chunk = least(MAPPED_CHUNK, (int)((LIN_SCRATCH_BYTES / sizeof(float) - fixed) / each));
    h->chunk = least(h->chunk, T);
    const size_t n = (size_t)h->chunk;
    float **features[] = {&h->fq, &h->fk, &h->gf}, **vectors[] = {&h->ce, &h->G, &h->oe}, **inputs[] = {&h->uq, &h->uk};
    for (int i = 0; i < 3; i++) *features[i] = mapped_room(&scratch, n * Dp);
    for (int i = 0; i < 3; i++) *vectors[i] = mapped_room(&scratch, n * Ep);
    for (int i = 0; i < 2; i++) *inputs[i] = mapped_room(&scratch, n * (Ep + PANEL));
    h->sums = mapped_room(&scratch, n * LIN_WIDTH);
    h->inverse = mapped_room(&scratch, n);
    h->g = mapped_room(&scratch, n);
    for (int d = 0; wide && d < h->Dp; d += PANEL) {
        float *to = h->columns + (size_t)d * (size_t)E;
        const float *from = omega + (size_t)d * (size_t)E;
        const int rows = least(PANEL, h->D - d);
        if (rows < PANEL) vclear(to, (size_t)(E * PANEL));
        for (int e = 0; e < E && rows == PANEL; e++) {
            LIN_UNROLL
            for (int i = 0; i < PANEL; i++) to[e * PANEL + i] = from[i * E + e];
        }
        for (int e = 0; e < E && rows < PANEL; e++)
            for (int i = 0; i < rows; i++) to[e * PANEL + i] = from[i * E + e];
    }
}

/* M [rows, columns], zeros, in blocks. */
static void mapped_clear_matrix(mapped *h, int rows, int columns)
{
    h->whole = rows / PANEL;
    h->across = PANEL * LIN_WIDTH;
    h->down = (size_t)(columns / LIN_WIDTH) * h->across;
    h->pitch = LIN_WIDTH;
    vclear(h->M, (size_t)rows * (size_t)columns);
    vclear(h->z, (size_t)h->Dp);
}

// The LIN_WIDTH elements from e of row d of S.
LIN_INLINE float *mapped_S(const mapped *h, int d, int e)
{
    const int r = d / PANEL, c = e / LIN_WIDTH;
    if (r < h->whole) return h->M + (size_t)r * h->down + (size_t)c * h->across + (size_t)(d % PANEL) * h->pitch;
    return h->rest + c * (PANEL * LIN_WIDTH) + d % PANEL * LIN_WIDTH;
}

/* S and z from a state [D, E+1], or zeros. If E is a whole number of vectors, S stays where it is, but for the rows of the last
 * panel if that is not full: a few frames of a stream cost less than copying its state. */
static void mapped_read_state(mapped *h, float *state)
{
    const int E = h->E, in_place = state && E % LIN_WIDTH == 0;
    vclear(h->rest, (size_t)(PANEL * h->Ep));
    if (in_place) {
        h->M = state;
        h->whole = h->D / PANEL;
        h->across = LIN_WIDTH;
        h->pitch = (size_t)E + 1;
        h->down = PANEL * h->pitch;
        vclear(h->z, (size_t)h->Dp);
    } else
        mapped_clear_matrix(h, h->Dp, h->Ep);
    for (int d = 0; state && d < h->D; d++, state += E + 1) {
        h->z[d] = state[E];
        for (int e = 0; e < E && !(in_place && d < h->whole * PANEL); e += LIN_WIDTH)
            vstore(mapped_S(h, d, e), vlanes(state, e, E));
    }
}

static void mapped_write_state(const mapped *h, float *state)
{
    const int E = h->E, in_place = h->M == state;
    for (int d = 0; d < h->D; d++, state += E + 1) {
        state[E] = h->z[d];
        for (int e = 0; e < E && !(in_place && d < h->whole * PANEL); e += LIN_WIDTH)
            vput_lanes(state, vload(mapped_S(h, d, e)), e, E);
    }
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

static void mapped_keys(const mapped *h, int t, int step, int n)
{
    mapped_features(h, h->fk, h->uk, h->k, t, step, n);
}

static void mapped_queries(const mapped *h, int t, int step, int n)
{
    mapped_features(h, h->fq, h->uq, h->q, t, step, n);
}

void LIN_NAME(lin_mapped_head_forward)(float *y, const float *qkv, const float *omega, int T, const lin_map *map, int H, int E,
                                       int causal, float *state, float *scratch)
{
    mapped h = {.q = qkv, .k = qkv + (size_t)H * (size_t)E, .v = qkv + 2 * (size_t)H * (size_t)E};
    mapped_lay_out(&h, T, H, E, map, omega, scratch);
    mapped_read_state(&h, state);
    for (int t = 0; !causal && t < T; t += h.chunk) {
        const int n = least(h.chunk, T - t);
        mapped_keys(&h, t, 1, n);
        mapped_take(&h, h.ce, h.v, h.stride, t, 1, n, NULL);
        mapped_starts(&h, h.fk, NULL, NULL, n, 0);
        mapped_scan_update(&h, h.fk, h.ce, n, h.Dp, h.Ep);
    }
    for (int t = 0; t < T; t += h.chunk) {
        const int n = least(h.chunk, T - t);
        mapped_queries(&h, t, 1, n);
        vclear(h.oe, (size_t)h.chunk * (size_t)h.Ep);
        if (causal) {
            mapped_keys(&h, t, 1, n);
            mapped_take(&h, h.ce, h.v, h.stride, t, 1, n, NULL);
        }
        mapped_denominators(&h, n, causal, causal);
        if (causal)
            mapped_scan_both(&h, h.fk, h.ce, h.fq, h.oe, n, h.Dp, h.Ep);
        else
            mapped_scan_read(&h, h.fq, h.oe, n, h.Dp, h.Ep);
        mapped_put(&h, y, h.out_stride, t, 1, n, h.oe, h.inverse);
    }
    if (state) mapped_write_state(&h, state);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

/* Each of the three passes adds frames to its matrix and reads it for frames: both for a chunk in turn (causal), or all are added
 * first. 1 / den and g of a frame are stored in the first elements of its dv and dk until the passes that write these; each reads
 * the values of a chunk before it writes. */
enum mapped_passes { PASS_DQ, PASS_DK, PASS_DV };

// G = dy / den from the stored 1 / den.
static void mapped_take_gradients(const mapped *h, int t, int step, int n)
{
    for (int f = 0; f < n; f++) {
        h->inverse[f] = h->dv[(size_t)(t + f * step) * h->stride];
        h->g[f] = h->dk[(size_t)(t + f * step) * h->stride];
    }
    mapped_take(h, h->G, h->dy, h->out_stride, t, step, n, h->inverse);
}

// Loads the vectors whose products are added to the matrix: Sᵀ += v φ(k)ᵀ, Rᵀ += G φ(q)ᵀ, R += φ(q) Gᵀ.
static void mapped_load_update(const mapped *h, int pass, int t, int step, int n)
{
    if (pass == PASS_DQ) {
        mapped_keys(h, t, step, n);
        mapped_take(h, h->ce, h->v, h->stride, t, step, n, NULL);
        return;
    }
    mapped_queries(h, t, step, n);
    mapped_take_gradients(h, t, step, n);
}

// Loads the vectors that read the matrix, and the start of their results. both: the same frames were just loaded for the update.
static void mapped_load_read(const mapped *h, int pass, int t, int step, int n, int both)
{
    if (pass == PASS_DQ) {
        mapped_queries(h, t, step, n);
        mapped_denominators(h, n, both, 0);
        for (int f = 0; f < n; f++) {
            const float *up = h->dy + (size_t)(t + f * step) * h->out_stride,
                        *out = h->y + (size_t)(t + f * step) * h->out_stride;
            vf sum = {0};
            for (int e = 0; e < h->E; e += LIN_WIDTH) sum = vfma(vlanes(up, e, h->E), vlanes(out, e, h->E), sum);
            h->g[f] = -vsum(sum) * h->inverse[f];
        }
        mapped_take(h, h->G, h->dy, h->out_stride, t, step, n, h->inverse);
        mapped_starts(h, both ? h->fk : NULL, NULL, h->g, n, 1);
        return;
    }
    if (pass == PASS_DK) {
        mapped_take(h, h->ce, h->v, h->stride, t, step, n, NULL);
        mapped_starts(h, both ? h->fq : NULL, h->g, NULL, n, 1);
        if (h->kind == LIN_MAP_POLY2) // its gradient needs no φ
            mapped_inputs(h, h->uk, h->k, t, step, n);
        else
            mapped_keys(h, t, step, n);
        return;
    }
    mapped_keys(h, t, step, n);
    vclear(h->oe, (size_t)h->chunk * (size_t)h->Ep);
}

static void mapped_finish(const mapped *h, int pass, int t, int step, int n)
{
    if (pass == PASS_DQ) {
        mapped_pass(h, h->dq, h->fq, h->uq, t, step, n);
        for (int f = 0; f < n; f++) {
            h->dv[(size_t)(t + f * step) * h->stride] = h->inverse[f];
            h->dk[(size_t)(t + f * step) * h->stride] = h->g[f];
        }
    } else if (pass == PASS_DK)
        mapped_pass(h, h->dk, h->fk, h->uk, t, step, n);
    else
        mapped_put(h, h->dv, h->stride, t, step, n, h->oe, NULL);
}

static void mapped_backward_pass(mapped *h, int pass, int causal)
{
    const int step = causal && pass != PASS_DQ ? -1 : 1, first = step > 0 ? 0 : h->T - 1;
    const int features_down = pass == PASS_DV;
    const int rows = features_down ? h->Dp : h->Ep, columns = features_down ? h->Ep : h->Dp;
    const float *a = pass == PASS_DQ ? h->ce : pass == PASS_DK ? h->G : h->fq;
    const float *b = pass == PASS_DQ ? h->fk : pass == PASS_DK ? h->fq : h->G;
    const float *q = pass == PASS_DQ ? h->G : pass == PASS_DK ? h->ce : h->fk;
    float *out = features_down ? h->oe : h->gf;
    mapped_clear_matrix(h, rows, columns);
    for (int done = 0; !causal && done < h->T; done += h->chunk) {
        const int n = least(h->chunk, h->T - done);
        mapped_load_update(h, pass, done, 1, n);
        if (pass == PASS_DQ) mapped_starts(h, h->fk, NULL, NULL, n, 0);
        if (pass == PASS_DK) mapped_starts(h, h->fq, h->g, NULL, n, 0);
        mapped_scan_update(h, a, b, n, rows, columns);
    }
    for (int done = 0; done < h->T; done += h->chunk) {
        const int n = least(h->chunk, h->T - done), t = first + done * step;
        if (causal) mapped_load_update(h, pass, t, step, n);
        mapped_load_read(h, pass, t, step, n, causal);
        if (causal)
            mapped_scan_both(h, a, b, q, out, n, rows, columns);
        else
            mapped_scan_read(h, q, out, n, rows, columns);
        mapped_finish(h, pass, t, step, n);
    }
}

void LIN_NAME(lin_mapped_head_backward)(float *dqkv, const float *dy, const float *qkv, const float *omega, const float *y, int T,
                                        const lin_map *map, int H, int E, int causal, float *scratch)
{
    const size_t C = (size_t)H * (size_t)E;
    mapped h = {.q = qkv, .k = qkv + C, .v = qkv + 2 * C, .dq = dqkv, .dk = dqkv + C, .dv = dqkv + 2 * C, .y = y, .dy = dy};
    mapped_lay_out(&h, T, H, E, map, omega, scratch);
    mapped_backward_pass(&h, PASS_DQ, causal);
    mapped_backward_pass(&h, PASS_DK, causal);
    mapped_backward_pass(&h, PASS_DV, causal);
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { SMALL = 32768 }; // below this many multiplications per direction, a second thread costs more time than it saves

typedef struct mapped_job {
    const lin_exec *exec;
    const lin_map *map;
    float *y, *dqkv;
    const float *qkv, *omega, *dy, *y_in;
    const int *offsets;
    int H, E, causal;
    float *const *states;
    size_t at;
} mapped_job;

static const float *omega_of(const mapped_job *job, size_t head)
{
    return job->map->kind == LIN_MAP_RANDOM ? job->omega + head * (size_t)job->map->D * (size_t)job->E : NULL;
}

static void forward_piece(void *context, int piece, int thread)
{
    const mapped_job *job = context;
    const int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    const size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    const int has_state = job->causal && job->states && job->states[b];
    float *state = has_state ? job->states[b] + job->at + head * (size_t)job->map->D * (E + 1) : NULL;
    if (T > 0)
        LIN_DISPATCH(lin_mapped_head_forward)
        (job->y + row * C + head * E, job->qkv + row * 3 * C + head * E, omega_of(job, head), T, job->map, job->H, job->E,
         job->causal, state, lin_scratch(job->exec, thread));
}

void lin_cpu_mapped_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *omega,
                                      const lin_segments *segments, const lin_map *map, int H, int E, int causal,
                                      float *const *states, size_t at)
{
    mapped_job job = {.exec = exec, .map = map, .y = y, .qkv = qkv, .omega = omega, .offsets = segments->offsets, .H = H, .E = E,
                      .causal = causal, .states = states, .at = at};
    lin_pool_run(lin_threads_for(exec, segments->rows, H * E * map->D, SMALL), segments->B * H, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const mapped_job *job = context;
    const int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    const size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    const size_t narrow = row * C + head * E, wide = row * 3 * C + head * E;
    if (T > 0)
        LIN_DISPATCH(lin_mapped_head_backward)(job->dqkv + wide, job->dy + narrow, job->qkv + wide, omega_of(job, head),
                                               job->y_in + narrow, T, job->map, job->H, job->E, job->causal,
                                               lin_scratch(job->exec, thread));
}

void lin_cpu_mapped_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *omega,
                                       const float *y, const lin_segments *segments, const lin_map *map, int H, int E, int causal)
{
    mapped_job job = {.exec = exec, .map = map, .dqkv = dqkv, .qkv = qkv, .omega = omega, .dy = dy, .y_in = y, .H = H, .E = E,
                      .offsets = segments->offsets, .causal = causal};
    lin_pool_run(lin_threads_for(exec, segments->rows, H * E * map->D, SMALL), segments->B * H, backward_piece, &job);
}
#endif
