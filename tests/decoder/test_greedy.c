// decoder/search.c: against a plain two-pass decoder, for any split of the rows, across endpoints.
#include "decoder/search.h"

#include "train/score/edit.h"
#include "tests/decoder/paths.h"

enum { V = 6, MAX_T = 120 };

// Rows with long runs, blanks, exact ties and high and low confidences.
static void fill(float *logp, int T, uint64_t seed)
{
    int label = 0;
    for (int t = 0; t < T; t++) {
        if (lin_random_below(seed, (uint64_t)t * 9, 3) == 0) label = (int)lin_random_below(seed, (uint64_t)t * 9 + 1, V);
        for (int v = 0; v < V; v++) {
            logp[t * V + v] = -2.0f - (float)lin_random_below(seed, (uint64_t)t * 9 + 2 + (uint64_t)v, 40) / 8.0f;
        }
        logp[t * V + label] = -(float)lin_random_below(seed, (uint64_t)t * 9 + 8, 17) / 8.0f; // down to a tie at -2
    }
}

// First the best label of every frame, then the runs: written from the definition, no code shared with the decoder.
static void plain(const float *logp, int T, int64_t first, lin_path *out)
{
    int best[MAX_T];
    out->n_phones = 0;
    for (int t = 0; t < T; t++) {
        best[t] = 0;
        for (int v = V - 1; v >= 0; v--)
            if (logp[t * V + v] >= logp[t * V + best[t]]) best[t] = v;
    }
    for (int t = 0; t < T;) {
        int end = t;
        double sum = 0;
        for (; end < T && best[end] == best[t]; end++) sum += (double)logp[end * V + best[t]];
        if (best[t]) {
            out->phones[out->n_phones++] = (lin_path_phone){
                .label = best[t], .confidence = (float)exp(sum / (end - t)), .start = first + t, .end = first + end};
        }
        t = end;
    }
}

START_TEST(any_split_gives_the_batch_result)
{
    float logp[MAX_T * V];
    lin_path want = {0}, got = {0};
    OK(lin_path_reserve(&want, MAX_T, 0, &err));
    OK(lin_path_reserve(&got, MAX_T + 1, 0, &err));
    unsigned long allocations = lin_memory_count();
    for (uint64_t seed = 0; seed < 2000; seed++) {
        int T = (int)lin_random_below(seed, 1 << 20, MAX_T + 1), t = 0;
        int64_t first = seed % 3 ? 0 : 86400LL * 100 * 1000; // a thousand days of frames
        fill(logp, T, seed);
        plain(logp, T, first, &want);
        lin_path_clear(&got);
        lin_greedy g;
        lin_greedy_reset(&g, V, first, 0);
        for (uint64_t i = 0; t < T; i++) {
            int most = seed % 4 == 0 ? T : 5, step = (int)lin_random_below(seed, (1 << 21) + i, (uint32_t)most + 1);
            if (step > T - t) step = T - t;
            OK(lin_greedy_push(&g, logp + t * V, step, &got, &err));
            t += step;
            lin_greedy fork = g; // a copy continues independently
            g = fork;
        }
        for (int twice = 0; twice < 2; twice++) OK(lin_greedy_finish(&g, &got, &err));
        same_path(&got, &want);
    }
    ck_assert_uint_eq(lin_memory_count(), allocations);
    lin_path_free(&want);
    lin_path_free(&got);
}
END_TEST

// Rows in which these labels are the best, with probability 1/2.
static void rows(float *logp, const char *labels)
{
    for (int t = 0; labels[t]; t++) {
        for (int v = 0; v < V; v++) logp[t * V + v] = labels[t] - '0' == v ? -0.6931472f : -3.0f;
    }
}

static const char *decode(lin_greedy *g, const char *labels, int end)
{
    static char text[64];
    float logp[32 * V];
    lin_path path = {0};
    rows(logp, labels);
    OK(lin_greedy_push(g, logp, (int)strlen(labels), &path, &err));
    if (end) OK(lin_greedy_finish(g, &path, &err));
    text[0] = '\0';
    for (int i = 0; i < path.n_phones; i++) {
        const lin_path_phone *p = &path.phones[i];
        sprintf(text + strlen(text), "%s%d:%lld-%lld", i ? " " : "", p->label, (long long)p->start, (long long)p->end);
        ck_assert(fabs((double)p->confidence - 0.5) < 1e-6);
    }
    lin_path_free(&path);
    return text;
}

START_TEST(runs_and_blanks)
{
    lin_greedy g;
    lin_path_phone p;
    lin_greedy_reset(&g, V, 0, 0);
    ck_assert_str_eq(decode(&g, "0011", 0), "");
    ck_assert(lin_greedy_pending(&g, &p) && p.label == 1 && p.start == 2 && p.end == 4);
    ck_assert_str_eq(decode(&g, "1", 0), "");
    ck_assert_str_eq(decode(&g, "0", 0), "1:2-5");
    ck_assert(!lin_greedy_pending(&g, &p));
    ck_assert_str_eq(decode(&g, "1122", 0), "1:6-8");
    ck_assert_str_eq(decode(&g, "", 1), "2:8-10");
    lin_greedy_reset(&g, V, 0, 0);
    ck_assert_str_eq(decode(&g, "", 1), "");
    ck_assert_str_eq(decode(&g, "0000", 1), "");
}
END_TEST

// After an endpoint the same label again is another phone; in the middle of speech it is not.
START_TEST(endpoints)
{
    lin_greedy g;
    lin_greedy_reset(&g, V, 0, 0);
    ck_assert_str_eq(decode(&g, "033", 1), "3:1-3");
    lin_greedy_reset(&g, V, 3, 0);
    ck_assert_str_eq(decode(&g, "330", 1), "3:3-5");
    lin_greedy_reset(&g, V, 0, 0);
    ck_assert_str_eq(decode(&g, "033", 1), "3:1-3");
    lin_greedy_reset(&g, V, 3, 1);
    ck_assert_str_eq(decode(&g, "3303", 1), "3:6-7");
    lin_greedy_reset(&g, V, 7, 1);
    ck_assert_str_eq(decode(&g, "33", 1), "");
    lin_greedy_reset(&g, V, 9, 1); // still the phone of the last segment
    ck_assert_str_eq(decode(&g, "32", 1), "2:10-11");
    lin_greedy_reset(&g, V, 11, 1); // another label than the last one is always a phone
    ck_assert_str_eq(decode(&g, "3", 1), "3:11-12");
    lin_greedy_reset(&g, V, 12, 1);
    ck_assert_str_eq(decode(&g, "0", 1), "");
    lin_greedy_reset(&g, V, 13, 1); // a blank was between them
    ck_assert_str_eq(decode(&g, "3", 1), "3:13-14");
}
END_TEST

START_TEST(confidence_is_a_probability)
{
    lin_greedy g;
    lin_path path = {0};
    float logp[3 * 2] = {-1.5f, -0.25f, -1.5f, -0.75f, 0.0f, -9.0f}, above[4] = {-1.0f, 0.5f, 0.0f, -1.0f};
    lin_greedy_reset(&g, 2, 0, 0);
    OK(lin_greedy_push(&g, logp, 3, &path, &err));
    ck_assert_int_eq(path.n_phones, 1);
    ck_assert(fabs((double)path.phones[0].confidence - exp(-0.5)) < 1e-7);
    lin_greedy_reset(&g, 2, 0, 0);
    OK(lin_greedy_push(&g, above, 2, &path, &err));
    ck_assert(path.n_phones == 2 && path.phones[1].confidence == 1.0f);
    lin_path_free(&path);
}
END_TEST

// Errors of an utterance, also of a long one.
START_TEST(errors_of_an_utterance)
{
    enum { MANY = 5000 };
    static const int said[] = {1, 2, 2, 3}, other[] = {1, 4, 3};
    float logp[7 * V];
    rows(logp, "1120233"); // 1 2 2 3
    ck_assert_int_eq(lin_edit_greedy(logp, 7, V, said, 4), 0);
    ck_assert_int_eq(lin_edit_greedy(logp, 7, V, other, 3), 2); // one substituted, one inserted
    ck_assert_int_eq(lin_edit_greedy(logp, 0, V, said, 4), 4);
    float *many = lin_calloc((size_t)MANY * V, sizeof *many);
    int *labels = lin_calloc(MANY, sizeof *labels);
    for (int t = 0; t < MANY; t++) many[t * V + (labels[t] = 1 + t % 2)] = 1;
    ck_assert_int_eq(lin_edit_greedy(many, MANY, V, labels, MANY), 0);
    lin_free(many);
    lin_free(labels);
}
END_TEST

TEST_MAIN("greedy", TEST(any_split_gives_the_batch_result), TEST(runs_and_blanks), TEST(endpoints),
          TEST(confidence_is_a_probability), TEST(errors_of_an_utterance))
