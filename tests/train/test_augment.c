// SpecAugment: masks are whole bands and stretches within their limits, a function of the key, and spread over all places.
#include "tests/frontend/support.h"
#include "train/augment.h"

enum { T = 60, D = 10 };

static float x[T * D];

static void fill(void)
{
    for (int i = 0; i < T * D; i++) x[i] = 1 + (float)i;
}

static int is_hidden(int t, int d) { return x[t * D + d] == 0; }

// Masks the chosen parts of y [rows, columns] with fill [columns], or 0.
static void apply(float *y, int rows, int columns, const float *fill_with, const lin_augment_options *o, uint64_t key)
{
    lin_mask masks[2 * LIN_AUGMENT_MOST];
    const int n = lin_augment_masks(rows, columns, o, key, masks);
    ck_assert_int_eq(n, o->freq_masks + o->time_masks);
    for (int i = 0; i < n; i++)
        for (int t = masks[i].t0; t < masks[i].t1; t++)
            for (int d = masks[i].d0; d < masks[i].d1; d++) y[t * columns + d] = fill_with ? fill_with[d] : 0.0f;
}

START_TEST(masks_are_bands_and_stretches)
{
    lin_augment_options o = {.freq_masks = 1, .freq_width = 4, .time_masks = 1, .time_width = 20, .time_part = 0.15}; // 9 frames
    int widths[5] = {0}, lengths[10] = {0}, band_at[D] = {0};
    for (uint64_t key = 0; key < 3000; key++) {
        fill();
        apply(x, T, D, NULL, &o, key);
        int rows[T], columns[D], n_rows = 0, n_columns = 0, edges = 0;
        for (int t = 0; t < T; t++) {
            rows[t] = 1;
            for (int d = 0; d < D; d++) rows[t] &= is_hidden(t, d);
            n_rows += rows[t];
            edges += t > 0 && rows[t] != rows[t - 1];
        }
        ck_assert_int_le(edges, 2);
        edges = 0;
        for (int d = 0; d < D; d++) {
            columns[d] = 1;
            for (int t = 0; t < T; t++) columns[d] &= is_hidden(t, d);
            n_columns += columns[d];
            band_at[d] += columns[d];
            edges += d > 0 && columns[d] != columns[d - 1];
        }
        ck_assert_int_le(edges, 2);
        ck_assert_int_le(n_rows, 9);
        ck_assert_int_le(n_columns, 4);
        lengths[n_rows]++;
        widths[n_columns]++;
        // Nothing else has changed.
        int wrong = 0;
        for (int i = 0; i < T * D; i++) wrong += x[i] != (rows[i / D] || columns[i % D] ? 0.0f : 1 + (float)i);
        ck_assert_int_eq(wrong, 0);
    }
    for (int w = 0; w < 5; w++) ck_assert_msg(abs(widths[w] - 600) < 120, "width %d came %d times of 3000", w, widths[w]);
    for (int n = 0; n < 10; n++) ck_assert_msg(abs(lengths[n] - 300) < 90, "length %d came %d times of 3000", n, lengths[n]);
    for (int d = 0; d < D; d++) ck_assert_int_gt(band_at[d], 100);
}
END_TEST

START_TEST(a_function_of_the_key)
{
    static float first[T * D];
    lin_augment_options o = {.freq_masks = 2, .freq_width = 13, .time_masks = 2, .time_width = 50, .time_part = 0.2};
    int different = 0;
    for (uint64_t key = 0; key < 20; key++) {
        fill();
        apply(x, T, D, NULL, &o, key);
        memcpy(first, x, sizeof x);
        fill();
        apply(x, T, D, NULL, &o, key);
        ck_assert_int_eq(memcmp(x, first, sizeof x), 0);
        fill();
        apply(x, T, D, NULL, &o, key + 1);
        different += memcmp(x, first, sizeof x) != 0;
    }
    ck_assert_int_gt(different, 15);
}
END_TEST

START_TEST(edges)
{
    lin_augment_options o = {.freq_masks = 3, .freq_width = 1000, .time_masks = 3, .time_width = 1000, .time_part = 1};
    float mean[D], *tight = test_buffer(1, D * sizeof(float));
    for (int d = 0; d < D; d++) mean[d] = -1 - (float)d;
    for (uint64_t key = 0; key < 500; key++) {
        fill();
        apply(x, T, D, mean, &o, key);
        int wrong = 0;
        for (int i = 0; i < T * D; i++) wrong += x[i] != mean[i % D] && x[i] != 1 + (float)i;
        ck_assert_int_eq(wrong, 0);
        apply(tight, 1, D, NULL, &o, key);
        apply(tight, D, 1, NULL, &o, key);
        apply(tight, 0, D, NULL, &o, key);
    }
    test_guards(tight, "augment");
    test_buffer_free(tight);
}
END_TEST

// The rate is uniform between its two ends, a function of the key, and exactly 1 without tempo.
START_TEST(rates)
{
    enum { KEYS = 20000, PARTS = 10 };
    const lin_augment_options o = {.tempo = 0.3}, none = {0};
    int parts[PARTS] = {0};
    double sum = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        const double rate = lin_augment_rate(&o, lin_mix64(key));
        ck_assert(rate >= 1 - o.tempo && rate <= 1 + o.tempo);
        ck_assert(lin_augment_rate(&o, lin_mix64(key)) == rate && lin_augment_rate(&none, lin_mix64(key)) == 1);
        parts[(int)fmin((rate - 0.7) / 0.6 * PARTS, PARTS - 1)]++;
        sum += rate;
    }
    ck_assert_double_eq_tol(sum / KEYS, 1, 0.005); // the deviation of the mean is 0.0012
    for (int i = 0; i < PARTS; i++) ck_assert_msg(abs(parts[i] - KEYS / PARTS) < 200, "%d rates in part %d", parts[i], i);
}
END_TEST

TEST_MAIN("train/augment", TEST(rates), TEST(masks_are_bands_and_stretches), TEST(a_function_of_the_key), TEST(edges))
