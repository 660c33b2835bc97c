// Utterances as one result; alternatives of the whole against all combinations of those of the utterances.
#include "linnet/utterances.h"

#include "base/hash.h"
#include "base/memory.h"
#include "tests/lexicon/support.h"

enum { V = 4, T = 9, SEGMENTS = 4, N_BEST = 5 };

static float logp[SEGMENTS * T * V];

// Rows that decide little, so that there are alternatives.
static void make_rows(uint64_t seed)
{
    for (int t = 0; t < SEGMENTS * T; t++) {
        double p[V], sum = 0;
        for (int v = 0; v < V; v++) sum += p[v] = 0.2 + lin_random_uniform(seed, (uint64_t)(t * V + v));
        for (int v = 0; v < V; v++) logp[t * V + v] = (float)log(p[v] / sum);
    }
}

static void decode_segment(lin_row_decoder *d, const lin_decoding *decoding, int segment, lin_result *r)
{
    OK(lin_result_begin(r, "x", NULL, 1, &err));
    lin_search_reset(&decoding->search, d->state, segment * T, 0);
    OK(lin_row_decoder_push(d, logp + segment * T * V, T, &err));
    OK(lin_row_decoder_finish(d, r, &err));
}

// The utterances of one sound, whose network would be reset between them.
static void decode_joined(const lin_decoding *decoding, lin_result *r)
{
    lin_model model = {.config = {.stack = 1, .mel_bins = 1}};
    const lin_recognizer recognizer = {.model = &model, .V = V, .row_seconds = 0.03};
    const lin_utterances_options o = {.decoding = decoding, .ends = {.resets = 1}};
    lin_utterances u;
    OK(lin_utterances_open(&u, &recognizer, &o, NULL, &err));
    OK(lin_result_begin(r, "x", NULL, 1, &err));
    lin_utterances_begin(&u, r);
    for (int s = 0; s < SEGMENTS; s++) {
        int taken, reset;
        OK(lin_utterances_push(&u, logp + s * T * V, T, NULL, &taken, &reset, &err));
        ck_assert(taken == T && !reset);
        if (s + 1 < SEGMENTS) OK(lin_utterances_end(&u, &err));
        else OK(lin_utterances_finish(&u, &err));
    }
    lin_utterances_close(&u);
}

static void same_phones(const lin_result *got, const lin_result *want)
{
    ck_assert_int_eq(got->n_phones, want->n_phones);
    for (int i = 0; i < got->n_phones; i++) {
        ck_assert_int_eq(got->phones[i].label, want->phones[i].label);
        ck_assert(got->phones[i].start_s == want->phones[i].start_s && got->phones[i].end_s == want->phones[i].end_s);
    }
}

START_TEST(segments_are_joined_to_one_result)
{
    lin_beam *beam;
    const lin_beam_options o = lin_beam_options_default();
    OK(lin_beam_create(V, NULL, NULL, &o, &beam, &err));
    const lin_search searches[] = {lin_search_greedy(V), lin_search_beam(beam, V, 1)};
    for (int kind = 0; kind < 2; kind++) {
        const lin_decoding decoding = {.search = searches[kind], .row_seconds = 0.03, .n_best = 1};
        lin_row_decoder d = {0};
        lin_result want = {0}, part = {0}, got = {0};
        OK(lin_row_decoder_create(&d, &decoding, &err));
        for (uint64_t seed = 1; seed < 20; seed++) {
            make_rows(seed);
            OK(lin_result_begin(&want, "x", NULL, 1, &err));
            for (int s = 0; s < SEGMENTS; s++) {
                decode_segment(&d, &decoding, s, &part);
                OK(lin_result_append(&want, &part, &err));
            }
            decode_joined(&decoding, &got);
            same_phones(&got, &want);
            ck_assert_double_eq_tol(got.score, want.score, 1e-12);
            ck_assert_double_eq_tol(got.acoustic, want.acoustic, 1e-12);
            ck_assert(kind == 0 || got.score < -1);
        }
        lin_result_free(&want);
        lin_result_free(&part);
        lin_result_free(&got);
        lin_row_decoder_free(&d);
    }
    lin_beam_destroy(beam);
}
END_TEST

// Graves 2006: a label again without a blank between is one phone. Behind a reset it is a second one.
START_TEST(an_equal_phone_behind_an_endpoint_is_a_new_one)
{
    const lin_decoding decoding = {.search = lin_search_greedy(V), .row_seconds = 0.03, .n_best = 1};
    lin_result r = {0};
    for (int i = 0; i < SEGMENTS * T * V; i++) logp[i] = i % V == 2 ? -0.1f : -5;
    decode_joined(&decoding, &r);
    ck_assert_int_eq(r.n_phones, SEGMENTS);
    lin_result_free(&r);
}
END_TEST

static int higher_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

START_TEST(alternatives_are_the_best_of_all_combinations)
{
    lin_beam *beam;
    lin_beam_options o = lin_beam_options_default();
    o.score = 0;
    OK(lin_beam_create(V, NULL, NULL, &o, &beam, &err));
    const lin_decoding decoding = {.search = lin_search_beam(beam, V, 1), .row_seconds = 0.03, .n_best = N_BEST};
    lin_row_decoder d = {0};
    lin_result parts[SEGMENTS] = {{0}}, got = {0};
    OK(lin_row_decoder_create(&d, &decoding, &err));
    for (uint64_t seed = 1; seed < 20; seed++) {
        double all[N_BEST * N_BEST * N_BEST * N_BEST];
        make_rows(seed);
        for (int s = 0; s < SEGMENTS; s++) {
            decode_segment(&d, &decoding, s, &parts[s]);
            ck_assert_int_eq(parts[s].n_alternatives, N_BEST);
        }
        int n = 0;
        for (int i = 0; i < N_BEST * N_BEST * N_BEST * N_BEST; i++) {
            double sum = 0;
            for (int s = 0, rest = i; s < SEGMENTS; s++, rest /= N_BEST) sum += parts[s].alternatives[rest % N_BEST].score;
            all[n++] = sum;
        }
        qsort(all, (size_t)n, sizeof *all, higher_first);
        decode_joined(&decoding, &got);
        ck_assert_int_eq(got.n_alternatives, N_BEST);
        for (int i = 0; i < N_BEST; i++) ck_assert_double_eq_tol(got.alternatives[i].score, all[i], 1e-9);
        same_phones(&got.alternatives[0], &got);
        ck_assert(got.alternatives[0].score == got.score);
    }
    for (int s = 0; s < SEGMENTS; s++) lin_result_free(&parts[s]);
    lin_result_free(&got);
    lin_row_decoder_free(&d);
    lin_beam_destroy(beam);
}
END_TEST

TEST_MAIN("linnet/utterances", TEST(segments_are_joined_to_one_result), TEST(an_equal_phone_behind_an_endpoint_is_a_new_one),
          TEST(alternatives_are_the_best_of_all_combinations))
