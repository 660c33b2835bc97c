// [variants] Linear attention with other feature maps, of ref/: against the recurrence with features written here, and
// finite differences; random features against softmax attention. Against PyTorch: tests/model/test_golden_f64.c; the backends:
// ops_cases_mapped.c.
#include "paper/networks.h"
#include "tests/kernels/kernel_support.h"

static lin_map poly2_of(int E) { return (lin_map){LIN_MAP_POLY2, E * (E + 3) / 2 + 1}; }

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
    const lin_segments all = segments_at(offsets, 1);
    for (int m = 0; m < 2; m++) {
        const lin_map *map = &maps[m];
        const size_t count = (size_t)(HEADS * map->D * (WIDTH + 1));
        double *qkv = test_random_f64(ROWS * 3 * C, 1, -1, 1), y[ROWS * C],
               *omega = test_random_f64((size_t)(HEADS * map->D * WIDTH), 2, -1, 1);
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
            const lin_segments piece = segments_at(piece_offsets, 1);
            ref->mapped_attention_forward(ref_exec, y + cuts[i] * C, qkv + cuts[i] * 3 * C, omega, &piece, map, HEADS, WIDTH, 1,
                                          tables + 1, 0);
        }
        test_close_f64("y in pieces", y, want, ROWS * C, 1e-13);
        test_close_f64("the state after pieces", pieces, state, count, 1e-13);
        // The last frame sees the same keys in both directions.
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &all, map, HEADS, WIDTH, 1, NULL, 0);
        ref->mapped_attention_forward(ref_exec, want, qkv, omega, &all, map, HEADS, WIDTH, 0, NULL, 0);
        test_close_f64("the last frame", y + (ROWS - 1) * C, want + (ROWS - 1) * C, C, 1e-14);
        TEST_FREE(qkv, omega, state, whole, pieces);
    }
}
END_TEST

typedef struct mapped_case {
    lin_map map;
    int causal;
    double *qkv, *omega, *weights, y[ROWS * C];
    lin_segments segments;
} mapped_case;

static double loss(void *context)
{
    mapped_case *c = context;
    ref->mapped_attention_forward(ref_exec, c->y, c->qkv, c->omega, &c->segments, &c->map, HEADS, WIDTH, c->causal, NULL, 0);
    return dot(c->y, c->weights, ROWS * C);
}

START_TEST(gradient)
{
    const int offsets[] = {0, 1, 1, ROWS};
    enum { N = ROWS * 3 * C };
    for (int form = 0; form < 4; form++) {
        mapped_case c = {.map = form / 2 ? (lin_map){LIN_MAP_RANDOM, 5} : poly2_of(WIDTH), .causal = form % 2};
        double dqkv[N];
        c.segments = segments_at(offsets, 3);
        c.qkv = test_random_f64(N, 5, -0.8, 0.8);
        c.omega = test_random_f64((size_t)(HEADS * c.map.D * WIDTH), 6, -1, 1);
        c.weights = test_random_f64(ROWS * C, 7, -1, 1);
        test_poison(dqkv, sizeof dqkv);
        loss(&c);
        ref->mapped_attention_backward(ref_exec, dqkv, c.weights, c.qkv, c.omega, c.y, &c.segments, &c.map, HEADS, WIDTH,
                                       c.causal);
        test_gradient(form / 2 ? "random features" : "poly2", loss, &c, c.qkv, dqkv, N);
        TEST_FREE(c.qkv, c.omega, c.weights);
    }
}
END_TEST

/* ---- random features are softmax attention in the mean --------------------------------------------------------------------- */

// Root mean square difference from softmax attention over some draws of D features, for values of about 1.
static double distance_from_softmax(int D)
{
    enum { T = 60, E = 8, DRAWS = 20 };
    const int offsets[] = {0, T};
    const lin_segments all = segments_at(offsets, 1);
    const lin_map map = {LIN_MAP_RANDOM, D};
    double *qkv = test_random_f64(T * 3 * E, 31, -1, 1), y[T * E], want[T * E], lse[T], sum = 0;
    float *rows = test_buffer((size_t)(D * E), sizeof *rows);
    ref->softmax_forward(ref_exec, want, lse, qkv, &all, 1, E, 1, NULL, 0);
    for (int draw = 0; draw < DRAWS; draw++) {
        lin_random_features(rows, 1, D, E, (uint64_t)draw);
        double *omega = test_widened(rows, (size_t)(D * E));
        ref->mapped_attention_forward(ref_exec, y, qkv, omega, &all, &map, 1, E, 1, NULL, 0);
        for (int i = 0; i < T * E; i++) sum += (y[i] - want[i]) * (y[i] - want[i]);
        test_buffer_free(omega);
    }
    TEST_FREE(rows, qkv);
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

TEST_MAIN_WITH(ref_begin, ref_end, "mapped", TEST(ref_is_a_recurrence), TEST(gradient), TEST(random_features_approach_softmax))
