// [variants] Linear attention with other feature maps: ref/ against the recurrence with features written here, finite
// differences, and PyTorch; the CPU at lengths around its chunks and up to 2,400 frames, at large inputs, in pieces; random
// features against softmax attention.
#include "base/memory.h"
#include "train/lab/npy.h"
#include "kernels/ops.h"
#include "paper/networks.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

static const lin_ops_f64 *ref;
static lin_exec *ref_exec;
static const char *const isas[] = {"portable", "avx2", "avx512"};
enum { N_ISAS = 3 };

static void setup(void)
{
    ref = lin_ops_ref();
    ck_assert_int_eq(ref->exec_create(ref, 1, &ref_exec, NULL), LIN_OK);
}

static void teardown(void) { ref->exec_destroy(ref_exec); }

static lin_segments segments_of(const int *offsets, int B)
{
    lin_segments s = {.B = B, .rows = offsets[B], .offsets = offsets};
    for (int b = 0; b < B; b++)
        if (offsets[b + 1] - offsets[b] > s.longest) s.longest = offsets[b + 1] - offsets[b];
    return s;
}

static lin_map poly2_of(int E) { return (lin_map){LIN_MAP_POLY2, E * (E + 3) / 2 + 1}; }

static double *filled(size_t n, uint64_t key, double lo, double hi)
{
    double *x = test_buffer(n, sizeof *x);
    test_fill_f64(x, n, key, lo, hi);
    return x;
}

/* ---- ref/ ------------------------------------------------------------------------------------------------------------------ */

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// The features of kernels/ops.h, in another way than ref/: poly2 as the square of the vector (u, 1) with itself, read along its
// upper triangle; random as an exponential of a distance, exp(|omega|^2/2 - |u - omega|^2/2).
static void features(double *phi, const double *x, const double *omega, const lin_map *map, int E)
{
    double u[16], root = sqrt(2);
    int n = 0;
    for (int e = 0; e < E; e++) u[e] = x[e] / sqrt(sqrt(E));
    u[E] = 1;
    if (map->kind == LIN_MAP_RANDOM) {
        for (int d = 0; d < map->D; d++) {
            double distance = 0;
            for (int e = 0; e < E; e++) distance += pow(u[e] - omega[d * E + e], 2);
            phi[d] = exp((dot(omega + d * E, omega + d * E, E) - distance) / 2) / sqrt(map->D);
        }
        return;
    }
    for (int i = 0; i < E; i++) phi[n++] = u[i] * u[i];
    for (int i = 0; i <= E; i++)
        for (int j = i + 1; j < E; j++) phi[n++] = root * u[i] * u[j];
    for (int i = 0; i <= E; i++) phi[n++] = (i < E ? root : 1) * u[i] * u[E];
    ck_assert_int_eq(n, map->D);
}

// The recurrence over S and z (eq. 16-20) from a state that it changes; causal.
static void recurrence(double *y, double *state, const double *qkv, const double *omega, const lin_map *map, int T, int H, int E)
{
    const int C = H * E, D = map->D;
    for (int t = 0; t < T; t++)
        for (int h = 0; h < H; h++) {
            const double *q = qkv + t * 3 * C + h * E, *rows = omega ? omega + h * D * E : NULL;
            double fq[64], fk[64], denominator = 1e-6, *out = y + t * C + h * E;
            features(fq, q, rows, map, E);
            features(fk, q + C, rows, map, E);
            for (int m = 0; m < E; m++) out[m] = 0;
            for (int d = 0; d < D; d++) {
                double *S = state + (h * D + d) * (E + 1);
                for (int m = 0; m < E; m++) S[m] += fk[d] * q[2 * C + m];
                S[E] += fk[d];
                for (int m = 0; m < E; m++) out[m] += fq[d] * S[m];
                denominator += fq[d] * S[E];
            }
            for (int m = 0; m < E; m++) out[m] /= denominator;
        }
}

enum { ROWS = 9, HEADS = 2, WIDTH = 3, C = HEADS * WIDTH };

START_TEST(ref_is_a_recurrence)
{
    const lin_map maps[] = {poly2_of(WIDTH), {LIN_MAP_RANDOM, 7}};
    const int offsets[] = {0, ROWS}, cuts[] = {0, 1, 1, 4, ROWS};
    const lin_segments all = segments_of(offsets, 1);
    for (int m = 0; m < 2; m++) {
        const lin_map *map = &maps[m];
        const size_t count = (size_t)(HEADS * map->D * (WIDTH + 1));
        double *qkv = filled(ROWS * 3 * C, 1, -1, 1), *omega = filled((size_t)(HEADS * map->D * WIDTH), 2, -1, 1), y[ROWS * C];
        double want[ROWS * C], *state = test_buffer(count, sizeof *state), *whole = test_buffer(count, sizeof *whole),
               *pieces = test_buffer(count, sizeof *pieces), *tables[] = {whole, pieces}, warm[ROWS * C];
        memset(state, 0, count * sizeof *state);
        recurrence(warm, state, qkv, omega, map, 3, HEADS, WIDTH); // a state that frames have left
        memcpy(whole, state, count * sizeof *state);
        memcpy(pieces, state, count * sizeof *state);
        recurrence(want, state, qkv, omega, map, ROWS, HEADS, WIDTH);
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &all, map, HEADS, WIDTH, 1, tables, 0);
        test_close_f64("y", y, want, ROWS * C, 1e-13);
        test_close_f64("the state", whole, state, count, 1e-13);
        for (int i = 0; i < 4; i++) {
            const int piece_offsets[] = {0, cuts[i + 1] - cuts[i]};
            const lin_segments piece = segments_of(piece_offsets, 1);
            ref->mapped_attention_forward(ref_exec, y + cuts[i] * C, qkv + cuts[i] * 3 * C, omega, &piece, map, HEADS, WIDTH, 1,
                                          tables + 1, 0);
        }
        test_close_f64("y in pieces", y, want, ROWS * C, 1e-13);
        test_close_f64("the state after pieces", pieces, state, count, 1e-13);
        // The last frame sees the same keys in both directions.
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &all, map, HEADS, WIDTH, 1, NULL, 0);
        ref->mapped_attention_forward(ref_exec, want, qkv, omega, &all, map, HEADS, WIDTH, 0, NULL, 0);
        test_close_f64("the last frame", y + (ROWS - 1) * C, want + (ROWS - 1) * C, C, 1e-14);
        double *buffers[] = {qkv, omega, state, whole, pieces};
        for (int i = 0; i < 5; i++) {
            test_guards(buffers[i], "mapped_attention_forward");
            test_buffer_free(buffers[i]);
        }
    }
}
END_TEST

// Two frames by hand, E = 1: weights (q k + 1)^2.
START_TEST(poly2_by_hand)
{
    const double qkv[] = {0.5, -1, 3, -2, 0.25, 7}; // (q, k, v) of two frames
    const int offsets[] = {0, 2};
    const lin_segments two = segments_of(offsets, 1);
    const lin_map map = poly2_of(1);
    const double a = 0.25, b = 1.125 * 1.125, c = 9, d = 0.25;
    const double causal[] = {a * 3 / (a + 1e-6), (c * 3 + d * 7) / (c + d + 1e-6)};
    const double full[] = {(a * 3 + b * 7) / (a + b + 1e-6), causal[1]};
    double y[2];
    ck_assert_int_eq(map.D, 3);
    ref->mapped_attention_forward(ref_exec, y, qkv, NULL, &two, &map, 1, 1, 1, NULL, 0);
    test_close_f64("causal", y, causal, 2, 1e-15);
    ref->mapped_attention_forward(ref_exec, y, qkv, NULL, &two, &map, 1, 1, 0, NULL, 0);
    test_close_f64("bidirectional", y, full, 2, 1e-15);
}
END_TEST

// Central differences of fourth order of sum(weights * y).
START_TEST(gradient_of_ref)
{
    const int offsets[] = {0, 1, 1, ROWS};
    const lin_segments segments = segments_of(offsets, 3);
    const double h = 1e-3, steps[] = {-2 * h, -h, h, 2 * h};
    for (int form = 0; form < 4; form++) {
        const lin_map map = form / 2 ? (lin_map){LIN_MAP_RANDOM, 5} : poly2_of(WIDTH);
        const int causal = form % 2;
        enum { N = ROWS * 3 * C };
        double *qkv = filled(N, 5, -0.8, 0.8), *omega = filled((size_t)(HEADS * map.D * WIDTH), 6, -1, 1);
        double *weights = filled(ROWS * C, 7, -1, 1), y[ROWS * C], dqkv[N], largest = 0.01, numeric[N];
        test_poison(dqkv, sizeof dqkv);
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &segments, &map, HEADS, WIDTH, causal, NULL, 0);
        ref->mapped_attention_backward(ref_exec, dqkv, weights, qkv, omega, y, &segments, &map, HEADS, WIDTH, causal);
        for (int i = 0; i < N; i++) {
            double keep = qkv[i], at[4];
            for (int s = 0; s < 4; s++) {
                qkv[i] = keep + steps[s];
                ref->mapped_attention_forward(ref_exec, y, qkv, omega, &segments, &map, HEADS, WIDTH, causal, NULL, 0);
                at[s] = dot(y, weights, ROWS * C);
            }
            qkv[i] = keep;
            numeric[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
            largest = fmax(largest, fabs(numeric[i]));
        }
        for (int i = 0; i < N; i++)
            test_require(fabs(dqkv[i] - numeric[i]) <= 1e-8 * largest,
                         "kind %d causal %d: element %d is %.12g, by differences %.12g", (int)map.kind, causal, i, dqkv[i],
                         numeric[i]);
        double *buffers[] = {qkv, omega, weights};
        for (int i = 0; i < 3; i++) test_buffer_free(buffers[i]);
    }
}
END_TEST

/* ---- PyTorch --------------------------------------------------------------------------------------------------------------- */

static float *golden_file(const char *path, size_t rows, int width)
{
    lin_error err = {0};
    float *file;
    size_t n;
    int columns;
    ck_assert_msg(lin_npy_read(path, &file, &n, &columns, &err) == LIN_OK, "%s", err.message);
    ck_assert(n == rows && columns == width);
    return file;
}

START_TEST(golden)
{
    enum { N = 42, D = 7 };
    const char *const paths[] = {"tests/golden/mapped_poly2_full.npy", "tests/golden/mapped_poly2_causal.npy",
                                 "tests/golden/mapped_random_full.npy", "tests/golden/mapped_random_causal.npy"};
    const int offsets[] = {0, 5, N};
    const lin_segments segments = segments_of(offsets, 2);
    float *rows = golden_file("tests/golden/mapped_omega.npy", HEADS * D, WIDTH);
    double omega[HEADS * D * WIDTH];
    for (int i = 0; i < HEADS * D * WIDTH; i++) omega[i] = (double)rows[i];
    lin_free(rows);
    for (int form = 0; form < 4; form++) {
        const lin_map map = form / 2 ? (lin_map){LIN_MAP_RANDOM, D} : poly2_of(WIDTH);
        float *file = golden_file(paths[form], N, 8 * C);
        double qkv[N * 3 * C], dy[N * C], y[N * C], dqkv[N * 3 * C], want_y[N * C], want_dqkv[N * 3 * C];
        for (int t = 0; t < N; t++)
            for (int c = 0; c < 8 * C; c++) {
                const double value = (double)file[t * 8 * C + c];
                if (c < 3 * C) qkv[t * 3 * C + c] = value;
                else if (c < 4 * C) dy[t * C + c - 3 * C] = value;
                else if (c < 5 * C) want_y[t * C + c - 4 * C] = value;
                else want_dqkv[t * 3 * C + c - 5 * C] = value;
            }
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &segments, &map, HEADS, WIDTH, form % 2, NULL, 0);
        ref->mapped_attention_backward(ref_exec, dqkv, dy, qkv, omega, y, &segments, &map, HEADS, WIDTH, form % 2);
        test_close_f64("y", y, want_y, N * C, 2e-7);
        test_close_f64("dqkv", dqkv, want_dqkv, N * 3 * C, 2e-7);
        lin_free(file);
    }
}
END_TEST

/* ---- the CPU --------------------------------------------------------------------------------------------------------------- */

/* One head of the CPU's input, its results, and ref/'s. */
typedef struct head_case {
    lin_map map;
    int T, E, causal;
    float *qkv, *dy, *omega, *y, *dqkv;
} head_case;

static head_case make_case(lin_map map, int T, int E, int causal, double size)
{
    const size_t n = (size_t)T * (size_t)E, no = (size_t)map.D * (size_t)E;
    head_case c = {map, T, E, causal, test_buffer_shifted(3 * n, sizeof(float), 1), test_buffer(n, sizeof(float)),
                   test_buffer(no, sizeof(float)), test_buffer_shifted(n, sizeof(float), 1), test_buffer(3 * n, sizeof(float))};
    test_fill_f32(c.qkv, 3 * n, 11, -size, size);
    test_fill_f32(c.dy, n, 12, -1, 1);
    lin_random_features(c.omega, 1, map.D, E, 13);
    return c;
}

static void free_case(head_case *c)
{
    float *all[] = {c->qkv, c->dy, c->omega, c->y, c->dqkv};
    for (int i = 0; i < 5; i++) {
        test_guards(all[i], "mapped attention");
        test_buffer_free(all[i]);
    }
}

static void run_case(head_case *c, const lin_ops *ops, lin_exec *exec)
{
    const int offsets[] = {0, c->T};
    const lin_segments all = segments_of(offsets, 1);
    const size_t n = (size_t)c->T * (size_t)c->E;
    test_poison(c->y, n * sizeof *c->y);
    test_poison(c->dqkv, 3 * n * sizeof *c->y);
    ops->mapped_attention_forward(exec, c->y, c->qkv, c->omega, &all, &c->map, 1, c->E, c->causal, NULL, 0);
    ops->mapped_attention_backward(exec, c->dqkv, c->dy, c->qkv, c->omega, c->y, &all, &c->map, 1, c->E, c->causal);
}

static double *widened(const float *x, size_t n)
{
    double *y = test_buffer(n, sizeof *y);
    for (size_t i = 0; i < n; i++) y[i] = (double)x[i];
    return y;
}

// Under each instruction set of this machine, with each number of threads: against ref/, and the same bits for any number of
// threads.
static void check_case(head_case *c, double tolerance)
{
    const size_t n = (size_t)c->T * (size_t)c->E;
    const int offsets[] = {0, c->T};
    const lin_segments all = segments_of(offsets, 1);
    double *qkv = widened(c->qkv, 3 * n), *dy = widened(c->dy, n), *omega = widened(c->omega, (size_t)(c->map.D * c->E));
    double *y = test_buffer(n, sizeof *y), *dqkv = test_buffer(3 * n, sizeof *dqkv);
    float *first = test_buffer(3 * n, sizeof *first);
    char what[100];
    ref->mapped_attention_forward(ref_exec, y, qkv, omega, &all, &c->map, 1, c->E, c->causal, NULL, 0);
    ref->mapped_attention_backward(ref_exec, dqkv, dy, qkv, omega, y, &all, &c->map, 1, c->E, c->causal);
    for (int i = 0; i < N_ISAS; i++) {
        if (lin_cpu_select(isas[i], NULL) != LIN_OK) continue;
        for (int threads = 1; threads <= 3; threads += 2) {
            lin_exec *exec;
            ck_assert_int_eq(lin_ops_cpu()->exec_create(lin_ops_cpu(), threads, &exec, NULL), LIN_OK);
            run_case(c, lin_ops_cpu(), exec);
            snprintf(what, sizeof what, "%s, kind %d T %d E %d D %d causal %d", isas[i], (int)c->map.kind, c->T, c->E, c->map.D,
                     c->causal);
            test_close_f32(what, c->y, y, n, tolerance);
            test_close_f32(what, c->dqkv, dqkv, 3 * n, 10 * tolerance);
            if (threads > 1) test_same_f32(what, c->dqkv, first, 3 * n);
            if (n) memcpy(first, c->dqkv, 3 * n * sizeof *first);
            lin_ops_cpu()->exec_destroy(exec);
        }
    }
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
    double *all_buffers[] = {qkv, dy, omega, y, dqkv};
    for (int i = 0; i < 5; i++) test_buffer_free(all_buffers[i]);
    test_buffer_free(first);
}

START_TEST(lengths)
{
    const int T[] = {0, 1, 2, 31, 32, 33, 63, 64, 97, 2400};
    for (int form = 0; form < 4; form++)
        for (int t = 0; t < 10; t++) {
            const int E = t % 2 ? 8 : 5;
            const lin_map map = form / 2 ? (lin_map){LIN_MAP_RANDOM, t % 2 ? 32 : 19} : poly2_of(E);
            head_case c = make_case(map, T[t], E, form % 2, 0.8);
            check_case(&c, 5e-5);
            free_case(&c);
        }
}
END_TEST

// Inputs far from 0: products of poly2 up to 1e8 and more, random features near the ends of a float's range. Nothing overflows.
START_TEST(large_inputs)
{
    for (int form = 0; form < 4; form++) {
        head_case c = make_case(form / 2 ? (lin_map){LIN_MAP_RANDOM, 40} : poly2_of(16), 50, 16, form % 2, form / 2 ? 8 : 300);
        for (int i = 0; i < N_ISAS; i++) {
            lin_exec *exec;
            if (lin_cpu_select(isas[i], NULL) != LIN_OK) continue;
            ck_assert_int_eq(lin_ops_cpu()->exec_create(lin_ops_cpu(), 1, &exec, NULL), LIN_OK);
            run_case(&c, lin_ops_cpu(), exec);
            for (int e = 0; e < 50 * 16; e++)
                test_require(isfinite(c.y[e]), "%s, form %d: y %d is %g", isas[i], form, e, (double)c.y[e]);
            for (int e = 0; e < 3 * 50 * 16; e++)
                test_require(isfinite(c.dqkv[e]), "%s, form %d: dqkv %d is %g", isas[i], form, e, (double)c.dqkv[e]);
            lin_ops_cpu()->exec_destroy(exec);
        }
        free_case(&c);
    }
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
}
END_TEST

// 500 frames at once, and frame by frame or in threes from a state: the same bits, the state too.
START_TEST(a_stream_gives_the_bits_of_the_batch)
{
    for (int form = 0; form < 2 * N_ISAS; form++) {
        enum { T = 500, E = 32 };
        const lin_map map = form % 2 ? (lin_map){LIN_MAP_RANDOM, 64} : poly2_of(E);
        const size_t count = (size_t)map.D * (E + 1);
        lin_exec *exec;
        if (lin_cpu_select(isas[form / 2], NULL) != LIN_OK) continue;
        ck_assert_int_eq(lin_ops_cpu()->exec_create(lin_ops_cpu(), 1, &exec, NULL), LIN_OK);
        head_case c = make_case(map, T, E, 1, 1);
        run_case(&c, lin_ops_cpu(), exec);
        float *whole = test_buffer(count, sizeof *whole), *state = test_buffer(count, sizeof *state), *table[] = {whole},
              y[T * E];
        const int offsets[] = {0, T};
        const lin_segments all = segments_of(offsets, 1);
        memset(whole, 0, count * sizeof *whole);
        lin_ops_cpu()->mapped_attention_forward(exec, y, c.qkv, c.omega, &all, &map, 1, E, 1, table, 0);
        test_same_f32("with a state", y, c.y, T * E);
        table[0] = state;
        for (int at_once = 1; at_once <= 3; at_once += 2) {
            memset(state, 0, count * sizeof *state);
            for (int t = 0; t < T; t += at_once) {
                const int piece_offsets[] = {0, T - t < at_once ? T - t : at_once};
                const lin_segments piece = segments_of(piece_offsets, 1);
                lin_ops_cpu()->mapped_attention_forward(exec, y + t * E, c.qkv + t * 3 * E, c.omega, &piece, &map, 1, E, 1, table,
                                                        0);
            }
            test_same_f32("y of the stream", y, c.y, T * E);
            test_same_f32("state of the stream", state, whole, count);
        }
        test_guards(state, "mapped_attention_forward");
        test_buffer_free(whole);
        test_buffer_free(state);
        free_case(&c);
        lin_ops_cpu()->exec_destroy(exec);
    }
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
}
END_TEST

// A NaN in q reaches its own frame alone; in k or v, that frame and the later ones (causal), or all.
START_TEST(not_a_number)
{
    enum { T = 40, E = 8, AT = 21 };
    lin_exec *exec;
    ck_assert_int_eq(lin_ops_cpu()->exec_create(lin_ops_cpu(), 1, &exec, NULL), LIN_OK);
    for (int form = 0; form < 12; form++) {
        const int part = form / 4, causal = form % 2;
        head_case c = make_case(form / 2 % 2 ? (lin_map){LIN_MAP_RANDOM, 20} : poly2_of(E), T, E, causal, 0.8);
        c.qkv[(AT * 3 + part) * E + 5] = NAN;
        run_case(&c, lin_ops_cpu(), exec);
        for (int t = 0; t < T; t++) {
            int any = 0;
            for (int e = 0; e < E; e++) any |= isnan(c.y[t * E + e]);
            const int expected = part == 0 ? t == AT : causal ? t >= AT : 1;
            test_require(any == expected, "form %d, part %d: frame %d %s NaN", form, part, t, any ? "holds a" : "holds no");
        }
        free_case(&c);
    }
    lin_ops_cpu()->exec_destroy(exec);
}
END_TEST

/* ---- random features are softmax attention in the mean --------------------------------------------------------------------- */

// Root mean square difference from softmax attention over some draws of D features, for values of about 1.
static double distance_from_softmax(int D)
{
    enum { T = 60, E = 8, DRAWS = 20 };
    const int offsets[] = {0, T};
    const lin_segments all = segments_of(offsets, 1);
    const lin_map map = {LIN_MAP_RANDOM, D};
    double *qkv = filled(T * 3 * E, 31, -1, 1), y[T * E], want[T * E], lse[T], sum = 0;
    float *rows = test_buffer((size_t)(D * E), sizeof *rows);
    ref->softmax_forward(ref_exec, want, lse, qkv, &all, 1, E, 1, NULL, 0);
    for (int draw = 0; draw < DRAWS; draw++) {
        lin_random_features(rows, 1, D, E, (uint64_t)draw);
        double *omega = widened(rows, (size_t)(D * E));
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &all, &map, 1, E, 1, NULL, 0);
        for (int i = 0; i < T * E; i++) sum += (y[i] - want[i]) * (y[i] - want[i]);
        test_buffer_free(omega);
    }
    test_buffer_free(rows);
    test_buffer_free(qkv);
    return sqrt(sum / (T * E * DRAWS));
}

// The error falls like 1 / sqrt(D): sixteen times the features, a quarter of the error.
START_TEST(random_features_approach_softmax)
{
    const double few = distance_from_softmax(32), some = distance_from_softmax(512), many = distance_from_softmax(8192);
    ck_assert_msg(few < 0.3 && few > 0.02, "32 features: %g", few);
    ck_assert_msg(few / some > 2.8 && few / some < 5.6, "32 and 512 features: %g, %g", few, some);
    ck_assert_msg(some / many > 2.8 && some / many < 5.6, "512 and 8,192 features: %g, %g", some, many);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "mapped", TEST(ref_is_a_recurrence), TEST(poly2_by_hand), TEST(gradient_of_ref), TEST(golden),
               TEST(lengths), TEST(large_inputs), TEST(not_a_number), TEST(a_stream_gives_the_bits_of_the_batch),
               TEST(random_features_approach_softmax))
