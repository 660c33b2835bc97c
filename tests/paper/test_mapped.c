// [variants] Linear attention with other feature maps, of ref/, against finite differences; random features against softmax
// attention. Against PyTorch: tests/model/test_golden_f64.c; the backends, with states: ops_cases_mapped.c.
#include "paper/networks.h"
#include "tests/kernels/kernel_support.h"

static lin_map poly2_of(int E) { return (lin_map){LIN_MAP_POLY2, E * (E + 3) / 2 + 1}; }

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

enum { ROWS = 9, HEADS = 2, WIDTH = 3, C = HEADS * WIDTH };

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

TEST_MAIN_WITH(ref_begin, ref_end, "mapped", TEST(gradient), TEST(random_features_approach_softmax))
