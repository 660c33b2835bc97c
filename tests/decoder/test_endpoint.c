// Endpoints: each rule at its exact row, loudness, and what is kept after an endpoint.
#include "decoder/endpoint.h"
#include "tests/support.h"

static const double ROW = 0.03;

// Pushes n rows whose blank has probability p; returns the row (from 1) after which an utterance ended, or 0.
static int push(lin_endpoint *e, int n, double p, double db, lin_endpoint_rule *rule)
{
    const float logp[2] = {(float)log(p), (float)log(1 - p)};
    for (int i = 1; i <= n; i++) {
        *rule = lin_endpoint_push(e, logp, db);
        if (*rule != LIN_ENDPOINT_NONE) return i;
    }
    return 0;
}

START_TEST(silence_before_speech)
{
    lin_endpoint e;
    lin_endpoint_rule rule;
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 60, .blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(&e, 1000, 0.99, NAN, &rule), 100);
    ck_assert_int_eq(rule, LIN_ENDPOINT_BEFORE);
    ck_assert_int_eq(push(&e, 1000, 0.99, NAN, &rule), 100); // and again
    ck_assert(e.spoken_s == 0);
}
END_TEST

START_TEST(silence_after_speech)
{
    lin_endpoint e;
    lin_endpoint_rule rule;
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 60, .blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(&e, 50, 0.9, NAN, &rule), 0);
    ck_assert_int_eq(push(&e, 1, 0.1, NAN, &rule), 0);
    ck_assert(e.spoken_s > 0);
    ck_assert_int_eq(push(&e, 19, 0.81, NAN, &rule), 0); // 0.57 s, then something is said once more
    ck_assert_double_eq_tol(e.silent_s, 0.57, 1e-9);
    ck_assert_int_eq(push(&e, 1, 0.79, NAN, &rule), 0);
    ck_assert_int_eq(push(&e, 1000, 0.81, NAN, &rule), 20);
    ck_assert_int_eq(rule, LIN_ENDPOINT_AFTER);
    ck_assert(e.spoken_s == 0 && e.silent_s == 0);
}
END_TEST

START_TEST(the_longest_utterance)
{
    lin_endpoint e;
    lin_endpoint_rule rule;
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 6, .blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(&e, 1000, 0.2, NAN, &rule), 200);
    ck_assert_int_eq(rule, LIN_ENDPOINT_LONGEST);
}
END_TEST

START_TEST(rules_can_be_off)
{
    lin_endpoint e;
    lin_endpoint_rule rule;
    const lin_endpoint_options o = {.blank = 0.8};
    lin_endpoint_reset(&e, &o, ROW);
    ck_assert_int_eq(push(&e, 5000, 0.99, NAN, &rule), 0);
    ck_assert_int_eq(push(&e, 5000, 0.2, NAN, &rule), 0);
    ck_assert_int_eq(push(&e, 5000, 0.99, NAN, &rule), 0);
}
END_TEST

// Hum 30 dB above the quietest: blanks count half. A level that lasts becomes the new quiet level.
START_TEST(loudness)
{
    lin_endpoint e;
    lin_endpoint_rule rule;
    const lin_endpoint_options o = {.before_s = 3, .after_s = 0.6, .longest_s = 600, .blank = 0.8, .loud_db = 20};
    lin_endpoint_reset(&e, &o, ROW);
    push(&e, 1, 0.1, -60, &rule);
    ck_assert_int_eq(push(&e, 1000, 0.9, -30, &rule), 40);
    push(&e, 1, 0.1, -60, &rule);
    ck_assert_int_eq(push(&e, 1000, 0.9, -45, &rule), 20);
    lin_endpoint_reset(&e, &o, ROW);
    push(&e, 1, 0.1, -60, &rule);
    for (int i = 0; i < 1000; i++) push(&e, 1, 0.1, -30, &rule); // 30 s
    ck_assert_int_eq(push(&e, 1000, 0.9, -30, &rule), 20);
}
END_TEST

START_TEST(bad_options)
{
    lin_error why = {0};
    lin_endpoint_options o = lin_endpoint_default();
    OK(lin_endpoint_check(&o, &err));
    o.blank = 0;
    ck_assert_int_eq(lin_endpoint_check(&o, &why), LIN_INVALID);
    o = lin_endpoint_default();
    o.after_s = NAN;
    FAILS(lin_endpoint_check(&o, &err), LIN_INVALID, "after speech");
    o = lin_endpoint_default();
    o.longest_s = -1;
    ck_assert_int_eq(lin_endpoint_check(&o, &why), LIN_INVALID);
    o = lin_endpoint_default();
    o.loud_db = 1e9;
    ck_assert_int_eq(lin_endpoint_check(&o, &why), LIN_INVALID);
    o = lin_endpoint_default();
    o.before_s = -1;
    ck_assert_int_eq(lin_endpoint_check(&o, &why), LIN_INVALID);
}
END_TEST

TEST_MAIN("decoder/endpoint", TEST(silence_before_speech), TEST(silence_after_speech), TEST(the_longest_utterance),
          TEST(rules_can_be_off), TEST(loudness), TEST(bad_options))
