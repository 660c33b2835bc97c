// Endpoints: each rule at its exact row, loudness, and what is kept after an endpoint.
#include "decoder/endpoint.h"
#include "tests/support.h"

static const double ROW = 0.03;

static lin_endpoint e;
static lin_endpoint_rule rule;

// Pushes n rows whose blank has probability p; returns the row (from 1) after which an utterance ended, or 0.
static int push(int n, double p, double db)
{
    const float logp[2] = {(float)log(p), (float)log(1 - p)};
    for (int i = 1; i <= n; i++) {
        rule = lin_endpoint_push(&e, logp, db);
        if (rule != LIN_ENDPOINT_NONE) return i;
    }
    return 0;
}

START_TEST(silence_before_speech)
{
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 60, .blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(1000, 0.99, NAN), 100);
    ck_assert_int_eq(rule, LIN_ENDPOINT_BEFORE);
    ck_assert_int_eq(push(1000, 0.99, NAN), 100); // and again
    ck_assert(e.spoken_s == 0);
}
END_TEST

START_TEST(silence_after_speech)
{
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 60, .blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(50, 0.9, NAN), 0);
    ck_assert_int_eq(push(1, 0.1, NAN), 0);
    ck_assert(e.spoken_s > 0);
    ck_assert_int_eq(push(19, 0.81, NAN), 0); // 0.57 s, then something is said once more
    ck_assert_double_eq_tol(e.silent_s, 0.57, 1e-9);
    ck_assert_int_eq(push(1, 0.79, NAN), 0);
    ck_assert_int_eq(push(1000, 0.81, NAN), 20);
    ck_assert_int_eq(rule, LIN_ENDPOINT_AFTER);
    ck_assert(e.spoken_s == 0 && e.silent_s == 0);
}
END_TEST

START_TEST(the_longest_utterance)
{
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 6, .blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(1000, 0.2, NAN), 200);
    ck_assert_int_eq(rule, LIN_ENDPOINT_LONGEST);
}
END_TEST

START_TEST(rules_can_be_off)
{
    const lin_endpoint_options o = {.blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(5000, 0.99, NAN), 0);
    ck_assert_int_eq(push(5000, 0.2, NAN), 0);
    ck_assert_int_eq(push(5000, 0.99, NAN), 0);
}
END_TEST

// Hum 30 dB above the quietest: blanks count half. A level that lasts becomes the new quiet level.
START_TEST(loudness)
{
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 600, .blank = 0.8, .loud_db = 20};
    lin_endpoint_reset(&e, &o, ROW);
    push(1, 0.1, -60);
    ck_assert_int_eq(push(1000, 0.9, -30), 40);
    push(1, 0.1, -60);
    ck_assert_int_eq(push(1000, 0.9, -45), 20);
    lin_endpoint_reset(&e, &o, ROW);
    push(1, 0.1, -60);
    for (int i = 0; i < 1000; i++) push(1, 0.1, -30); // 30 s
    ck_assert_int_eq(push(1000, 0.9, -30), 20);
}
END_TEST

START_TEST(bad_options)
{
    lin_endpoint_options bad[5];
    for (int i = 0; i < 5; i++) bad[i] = lin_endpoint_default();
    OK(lin_endpoint_check(&bad[0], &err));
    bad[0].blank = 0;
    bad[1].after_s = NAN;
    bad[2].longest_s = -1;
    bad[3].loud_db = 1e9;
    bad[4].before_s = -1;
    for (int i = 0; i < 5; i++) FAILS(lin_endpoint_check(&bad[i], &err), LIN_INVALID, i == 1 ? "after speech" : "");
}
END_TEST

TEST_MAIN("decoder/endpoint", TEST(silence_before_speech), TEST(silence_after_speech), TEST(the_longest_utterance),
          TEST(rules_can_be_off), TEST(loudness), TEST(bad_options))
