// [cuda] Linear attention with other feature maps on the CUDA backend against the explicit N x N sums in double: slices of
// features, chunks of rows, states passed from call to call.
#include "base/rng.h"
#include "tests/cuda/device.h"

enum { MOST_B = 4 };

static const lin_ops *ops;
static lin_exec *exec;
static uint64_t counter;

static void setup(void)
{
    test_device_memory();
    ops = test_device(LIN_PRECISION_FP32);
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    counter = 0;
}

static void teardown(void)
{
    ops->exec_destroy(exec);
    test_device_memory_end();
}

static void done(void)
{
    lin_error err = {0};
    ck_assert_msg(ops->finish(exec, &err) == LIN_OK, "%s", err.message);
}

typedef struct shape {
    int B, lengths[MOST_B], H, E;
    lin_map map;
    int causal;
} shape;

static float *filled(size_t n, double range)
{
    float *x = test_buffer_shifted(n, sizeof *x, 1);
    for (size_t i = 0; i < n; i++) x[i] = (float)(range * (2 * lin_random_uniform(43, counter++) - 1));
    return x;
}

/* ---- the reference --------------------------------------------------------------------------------------------------------- */

static void features(double *phi, const float *x, const float *omega, const shape *s)
{
    const double scale = pow(s->E, -0.25);
    double norm = 0;
    int d = 0;
    for (int i = 0; i < s->E; i++) norm += scale * scale * (double)x[i] * (double)x[i];
    for (; s->map.kind == LIN_MAP_RANDOM && d < s->map.D; d++) {
        double sum = 0;
        for (int e = 0; e < s->E; e++) sum += (double)omega[d * s->E + e] * scale * (double)x[e];
        phi[d] = exp(sum - norm / 2) / sqrt(s->map.D);
    }
    if (s->map.kind == LIN_MAP_RANDOM) return;
    for (int i = 0; i < s->E; i++) phi[d++] = scale * scale * (double)x[i] * (double)x[i];
    for (int i = 0; i < s->E; i++)
        for (int j = i + 1; j < s->E; j++) phi[d++] = sqrt(2) * scale * scale * (double)x[i] * (double)x[j];
    for (int i = 0; i < s->E; i++) phi[d++] = sqrt(2) * scale * (double)x[i];
    phi[d] = 1;
}

// dx += the gradient through x: through phi (random), or da of a = (x . z / sqrt(E) + 1)^2.
static void add_random(double *dx, const double *dphi, const double *phi, const float *x, const float *omega, const shape *s)
{
    const double scale = pow(s->E, -0.25);
    for (int d = 0; d < s->map.D; d++)
        for (int e = 0; e < s->E; e++) dx[e] += scale * dphi[d] * phi[d] * ((double)omega[d * s->E + e] - scale * (double)x[e]);
}

static void head_answer(double *y, double *dqkv, size_t first, int T, int h, const shape *s, const float *qkv, const float *dy,
                        const float *omega)
{
    const size_t C = (size_t)(s->H * s->E), at = (size_t)(h * s->E), D = (size_t)s->map.D;
    double *fq = calloc(4 * (size_t)T * D + 1, sizeof *fq), *fk = fq + (size_t)T * D, *gq = fk + (size_t)T * D,
           *gk = gq + (size_t)T * D;
    for (int i = 0; i < T; i++) {
        const float *q = qkv + (first + (size_t)i) * 3 * C + at;
        features(fq + (size_t)i * D, q, omega, s);
        features(fk + (size_t)i * D, q + C, omega, s);
    }
    for (int i = 0; i < T; i++) {
        const size_t row = (first + (size_t)i) * C + at;
        const int n = s->causal ? i + 1 : T;
        double *a = calloc((size_t)T, sizeof *a), sum = 1e-6, c = 0;
        for (int j = 0; j < n; j++) {
            for (size_t d = 0; d < D; d++) a[j] += fq[(size_t)i * D + d] * fk[(size_t)j * D + d];
            sum += a[j];
        }
        for (int e = 0; e < s->E; e++) {
            double numerator = 0;
            for (int j = 0; j < n; j++) numerator += a[j] * (double)qkv[(first + (size_t)j) * 3 * C + 2 * C + at + (size_t)e];
            y[row + (size_t)e] = numerator / sum;
            c -= y[row + (size_t)e] * (double)dy[row + (size_t)e];
        }
        for (int j = 0; j < n; j++) {
            const size_t key = (first + (size_t)j) * 3 * C + at, query = (first + (size_t)i) * 3 * C + at;
            double da = c, root = 1;
            for (int e = 0; e < s->E; e++) {
                da += (double)dy[row + (size_t)e] * (double)qkv[key + 2 * C + (size_t)e];
                root += (double)qkv[query + (size_t)e] * (double)qkv[key + C + (size_t)e] / sqrt(s->E);
                dqkv[key + 2 * C + (size_t)e] += a[j] / sum * (double)dy[row + (size_t)e];
            }
            da /= sum;
            for (int e = 0; e < s->E && s->map.kind == LIN_MAP_POLY2; e++) {
                dqkv[query + (size_t)e] += da * 2 * root / sqrt(s->E) * (double)qkv[key + C + (size_t)e];
                dqkv[key + C + (size_t)e] += da * 2 * root / sqrt(s->E) * (double)qkv[query + (size_t)e];
            }
            for (size_t d = 0; d < D; d++) {
                gq[(size_t)i * D + d] += da * fk[(size_t)j * D + d];
                gk[(size_t)j * D + d] += da * fq[(size_t)i * D + d];
            }
        }
        free(a);
    }
    for (size_t i = 0; i < (size_t)T && s->map.kind == LIN_MAP_RANDOM; i++) {
        const size_t query = (first + i) * 3 * C + at;
        add_random(dqkv + query, gq + i * D, fq + i * D, qkv + query, omega, s);
        add_random(dqkv + query + C, gk + i * D, fk + i * D, qkv + query + C, omega, s);
    }
    free(fq);
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------- */

static const shape shapes[] = {{4, {9, 0, 1, 20}, 2, 5, {LIN_MAP_POLY2, 21}, 0}, {2, {8, 17}, 1, 32, {LIN_MAP_POLY2, 561}, 0},
                               {1, {11}, 2, 1, {LIN_MAP_POLY2, 3}, 0},           {2, {16, 7}, 2, 32, {LIN_MAP_RANDOM, 128}, 0},
                               {1, {23}, 1, 12, {LIN_MAP_RANDOM, 150}, 0},       {1, {9}, 1, 70, {LIN_MAP_RANDOM, 50}, 0},
                               {1, {10}, 1, 256, {LIN_MAP_RANDOM, 33}, 0},       {1, {12}, 1, 64, {LIN_MAP_POLY2, 2145}, 0}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

// The rows in pieces, the sums of the first utterance in a state; y [rows of the first, C] of the whole.
static void run_pieces(const shape *s, const float *qkv, const float *omega, const double *y)
{
    const size_t C = (size_t)(s->H * s->E), n = (size_t)(s->H * s->map.D * (s->E + 1));
    const int T = s->lengths[0];
    float *state = test_buffer(n + 3, sizeof *state), **states = test_buffer(1, sizeof *states), *out;
    memset(state, 0, (n + 3) * sizeof *state);
    *states = state;
    for (int t = 0, piece = 1; t < T; t += piece, piece = piece * 3 + 1) {
        if (piece > T - t) piece = T - t;
        lin_segments segments = segments_of(&piece, 1);
        out = test_buffer((size_t)piece * C, sizeof *out);
        ops->mapped_attention_forward(exec, out, qkv + (size_t)t * 3 * C, omega, &segments, &s->map, s->H, s->E, 1, states, 3);
        done();
        test_close_scaled_f32("y of a piece", out, y + (size_t)t * C, (size_t)piece * C, 2e-5, 0.1);
        test_buffer_free(out);
        segments_free(segments);
    }
    double sum = 0;
    for (size_t d = 0; d < (size_t)s->map.D; d++) {
        double *phi = calloc((size_t)s->map.D, sizeof *phi), z = 0;
        for (int t = 0; t < T && d % 7 == 0; t++) {
            features(phi, qkv + (size_t)t * 3 * C + C, omega, s);
            z += phi[d];
        }
        if (d % 7 == 0)
            ck_assert_msg(fabs((double)state[3 + d * (size_t)(s->E + 1) + (size_t)s->E] - z) <= 2e-5 * (1 + fabs(z)),
                          "z %zu is %g, expected %g", d, (double)state[3 + d * (size_t)(s->E + 1) + (size_t)s->E], z);
        sum += z;
        free(phi);
    }
    ck_assert(sum == sum);
    test_guards(state, "state");
    test_buffer_free(state);
    test_buffer_free(states);
}

START_TEST(against_sums)
{
    shape s = shapes[_i];
    for (s.causal = 0; s.causal < 2; s.causal++) {
        char text[100];
        lin_segments segments = segments_of(s.lengths, s.B), more = segments;
        const size_t rows = (size_t)segments.rows, C = (size_t)(s.H * s.E);
        more.rows += 5;
        float *qkv = filled(rows * 3 * C, 1), *dy = filled(rows * C, 1), *omega = filled((size_t)(s.H * s.map.D * s.E), 1.5);
        float *y = test_buffer_shifted((rows + 5) * C, sizeof *y, 1), *dqkv = test_buffer_shifted(rows * 3 * C, sizeof *dqkv, 1);
        double *want = calloc(4 * rows * C, sizeof *want), *dwant = want + rows * C;
        for (int b = 0; b < s.B; b++)
            for (int h = 0; h < s.H; h++)
                head_answer(want, dwant, (size_t)segments.offsets[b], s.lengths[b], h, &s, qkv, dy, omega + h * s.map.D * s.E);
        snprintf(text, sizeof text, "kind %d D %d E %d T %d causal %d", (int)s.map.kind, s.map.D, s.E, s.lengths[0], s.causal);
        ops->mapped_attention_forward(exec, y, qkv, omega, &more, &s.map, s.H, s.E, s.causal, NULL, 0);
        ops->mapped_attention_backward(exec, dqkv, dy, qkv, omega, y, &segments, &s.map, s.H, s.E, s.causal);
        done();
        test_guards(y, text);
        test_guards(dqkv, text);
        test_close_scaled_f32(text, y, want, rows * C, 2e-5, 0.1);
        test_close_scaled_f32(text, dqkv, dwant, rows * 3 * C, 2e-5, 0.1);
        if (s.causal) run_pieces(&s, qkv, omega, want);
        float *const buffers[] = {qkv, dy, omega, y, dqkv};
        for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) test_buffer_free(buffers[i]);
        free(want);
        segments_free(segments);
    }
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "cuda_mapped", TESTS(against_sums, 0, N_SHAPES))
