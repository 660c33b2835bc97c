// [variants] Random features of paper/networks.h: orthogonal blocks, lengths and directions of Gaussian vectors, one draw
// per seed and head; attention with them approaches softmax attention.
#include "paper/networks.h"
#include "tests/kernels/kernel_support.h"

static float *draw(int H, int D, int E, uint64_t seed)
{
    float *omega = test_buffer((size_t)(H * D * E), sizeof *omega);
    lin_random_features(omega, H, D, E, seed);
    test_guards(omega, "omega");
    return omega;
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

START_TEST(orthogonal_blocks)
{
    const int shapes[][3] = {{1, 1, 1}, {2, 5, 1}, {1, 1, 4}, {3, 7, 3}, {1, 8, 8}, {2, 100, 32}, {1, 130, 64}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int H = shapes[s][0], D = shapes[s][1], E = shapes[s][2];
        float *omega = draw(H, D, E, 7 + s);
        for (int h = 0; h < H; h++)
            for (int d = 0; d < D; d++) {
                const float *row = omega + (h * D + d) * E;
                ck_assert(dot(row, row, E) > 0 && isfinite(dot(row, row, E)));
                for (int other = d / E * E; other < d; other++) {
                    const float *before = omega + (h * D + other) * E;
                    const double cosine = dot(row, before, E) / sqrt(dot(row, row, E) * dot(before, before, E));
                    test_require(fabs(cosine) < 1e-6, "H %d D %d E %d: rows %d and %d have the cosine %g", H, D, E, d, other,
                                 cosine);
                }
            }
        test_buffer_free(omega);
    }
}
END_TEST

// Moments of rows over many draws: mean 0, covariance 1, |row|^2 with the mean E and variance 2 E of chi squared; within 5
// standard errors.
START_TEST(rows_are_gaussian_in_length_and_direction)
{
    enum { H = 500, D = 8, E = 4, N = H * D };
    float *omega = draw(H, D, E, 3);
    double length = 0, length2 = 0, sum[E] = {0}, product[E][E] = {{0}};
    for (int i = 0; i < N; i++) {
        const float *row = omega + i * E;
        const double squares = dot(row, row, E);
        length += squares / N;
        length2 += squares * squares / N;
        for (int a = 0; a < E; a++) {
            sum[a] += (double)row[a] / N;
            for (int b = 0; b < E; b++) product[a][b] += (double)row[a] * (double)row[b] / N;
        }
    }
    ck_assert_msg(fabs(length - E) < 5 * sqrt(2.0 * E / N), "mean squared length %g", length);
    ck_assert_msg(fabs(length2 - length * length - 2 * E) < 5 * sqrt(24.0 * E * E / N), "variance %g", length2 - length * length);
    for (int a = 0; a < E; a++) {
        ck_assert_msg(fabs(sum[a]) < 5 * sqrt(1.0 / N), "mean of element %d is %g", a, sum[a]);
        for (int b = 0; b < E; b++)
            ck_assert_msg(fabs(product[a][b] - (a == b)) < 5 * sqrt((1.0 + (a == b)) / N), "covariance %d %d is %g", a, b,
                          product[a][b]);
    }
    test_buffer_free(omega);
}
END_TEST

START_TEST(one_draw_per_seed_and_head)
{
    float *a = draw(3, 10, 4, 1), *same = draw(3, 10, 4, 1), *fewer = draw(3, 6, 4, 1), *other = draw(3, 10, 4, 2);
    test_same_f32("the same seed", a, same, 3 * 10 * 4);
    for (int h = 0; h < 3; h++) test_same_f32("fewer features", fewer + h * 6 * 4, a + h * 10 * 4, 6 * 4);
    ck_assert(memcmp(a, other, 40 * sizeof *a) != 0);
    ck_assert(memcmp(a, a + 40, 40 * sizeof *a) != 0);
    float *all[] = {a, same, fewer, other};
    for (int i = 0; i < 4; i++) test_buffer_free(all[i]);
}
END_TEST

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
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        lin_random_features(rows, 1, D, E, seed);
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

TEST_MAIN_WITH(ref_begin, ref_end, "random_features", TEST(orthogonal_blocks),
               TEST(rows_are_gaussian_in_length_and_direction), TEST(one_draw_per_seed_and_head),
               TEST(random_features_approach_softmax))
