// decoder/keywords.c: against all alignments of all windows, for any split of the rows; hostile lists and states.
#include "decoder/keywords.h"

#include "base/memory.h"
#include "decoder/search.h"
#include "tests/lexicon/support.h"

enum { V = 5, T = 9, GAP = 2 };

static void fill(float *logp, uint64_t seed)
{
    for (int i = 0; i < T * V; i++) logp[i] = -(float)lin_random_below(seed, (uint64_t)i, 48) / 8.0f;
    for (int t = 0; t < T; t++) logp[t * V + (int)lin_random_below(seed, 1000 + (uint64_t)t, V)] = 0;
}

static double cost(const float *logp, int t, int label)
{
    double best = -INFINITY;
    for (int v = 0; v < V; v++) best = fmax(best, (double)logp[t * V + v]);
    return fmax((double)logp[t * V + label] - best, -8);
}

// The best alignment of the phones from number `at` on with the frames [t, end), of which frame t is the first of phone `at`.
static double best_from(const float *logp, const int *phones, int n, int at, int t, int end)
{
    double sum = 0, best = -INFINITY;
    for (int stop = t + 1; stop <= end; stop++) { // the run of the phone is [t, stop)
        sum += cost(logp, stop - 1, phones[at]);
        if (at == n - 1) best = stop == end ? sum : best;
        double pause = 0;
        for (int next = stop; at < n - 1 && next < end; next++) { // blanks [stop, next)
            if (next > stop || phones[at] != phones[at + 1])
                best = fmax(best, sum + pause + best_from(logp, phones, n, at + 1, next, end));
            pause += cost(logp, next, 0);
        }
    }
    return best;
}

// The first keyword by the definition: the most certain of the paths that overlap, up to one that does not.
static lin_path_keyword truth(const float *logp, const int *phones, int n, double threshold)
{
    lin_path_keyword peak = {0};
    for (int end = 1; end <= T; end++) {
        lin_path_keyword best = {0};
        for (int start = 0; start < end; start++) {
            const double confidence = exp(best_from(logp, phones, n, 0, start, end) / n);
            if (confidence < threshold - 1e-9 || confidence <= (double)best.confidence + 1e-6) continue;
            best = (lin_path_keyword){0, (float)confidence, start, end};
        }
        if (peak.end && best.end && best.start >= peak.end) break;
        if ((double)best.confidence > (double)peak.confidence + 1e-6) peak = best;
    }
    return peak;
}

static lin_keywords *make(const int *labels, int n, double threshold)
{
    lin_keywords *k;
    OK(lin_keywords_create(&(lin_keyword){"keyword", threshold, labels, n}, 1, V, T, &k, &err));
    return k;
}

static void push(const lin_keywords *k, void *state, const float *logp, int n, lin_path *found)
{
    OK(lin_keywords_reserve(k, n, found, &err));
    lin_keywords_push(k, state, logp, n, found);
}

START_TEST(the_best_of_all_alignments)
{
    int found = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        float logp[T * V];
        int phones[3], n = 1 + (int)lin_random_below(seed, 2000, 3);
        fill(logp, seed);
        for (int i = 0; i < n; i++) phones[i] = 1 + (int)lin_random_below(seed, 2001 + (uint64_t)i, V - 1);
        const double threshold = seed % 3 ? 0.3 : 0.01;
        const lin_path_keyword want = truth(logp, phones, n, threshold);
        lin_keywords *k = make(phones, n, threshold);
        lin_path got = {0};
        void *state = lin_alloc(lin_keywords_bytes(k), 1);
        lin_keywords_reset(k, state, 100);
        push(k, state, logp, T, &got);
        lin_keywords_finish(k, state, &got);
        ck_assert_int_eq(got.n_keywords > 0, want.end > 0);
        if (want.end) {
            found++;
            ck_assert_msg(fabs((double)(got.keywords[0].confidence - want.confidence)) < 1e-5, "seed %d: %g, %g", (int)seed,
                          (double)got.keywords[0].confidence, (double)want.confidence);
            ck_assert_int_eq(got.keywords[0].end, 100 + want.end);
        }
        lin_path_free(&got);
        lin_free(state);
        lin_keywords_destroy(k);
    }
    ck_assert_int_gt(found, 200);
    ck_assert_int_lt(found, 590);
}
END_TEST

// Rows in which these labels are certain.
static void rows(float *logp, const char *labels)
{
    for (int t = 0; labels[t]; t++)
        for (int v = 0; v < V; v++) logp[t * V + v] = labels[t] - '0' == v ? 0 : -6;
}

// The keywords "12" and "3, or 2 4" in rows with these labels, given in pieces of so many rows, as "number:start-end".
static const char *spot(const char *labels, int piece)
{
    static char text[200];
    const lin_keyword list[] = {{"one two", 0.5, (int[]){1, 2}, 2}, {"three", NAN, (int[]){3, 0, 2, 4}, 4}};
    const int n = (int)strlen(labels);
    float logp[64 * V];
    lin_keywords *k;
    lin_path got = {0};
    OK(lin_keywords_create(list, 2, V, GAP, &k, &err));
    void *state = lin_alloc(lin_keywords_bytes(k), 1);
    rows(logp, labels);
    lin_keywords_reset(k, state, 0);
    for (int t = 0; t < n; t += piece) {
        OK(lin_keywords_check(k, state, lin_keywords_bytes(k), &err));
        push(k, state, logp + t * V, piece < n - t ? piece : n - t, &got);
    }
    lin_keywords_finish(k, state, &got);
    text[0] = '\0';
    for (int i = 0; i < got.n_keywords; i++) {
        const lin_path_keyword *it = &got.keywords[i];
        sprintf(text + strlen(text), "%s%d:%lld-%lld", i ? " " : "", it->keyword, (long long)it->start, (long long)it->end);
        ck_assert_float_eq(it->confidence, 1);
    }
    ck_assert_str_eq(lin_keywords_text(k, 1), "three");
    lin_path_free(&got);
    lin_free(state);
    lin_keywords_destroy(k);
    return text;
}

START_TEST(peaks_repetitions_pauses)
{
    for (int piece = 1; piece < 20; piece += 6) {
        ck_assert_str_eq(spot("00112200", piece), "0:2-5");
        ck_assert_str_eq(spot("012", piece), "0:1-3");
        ck_assert_str_eq(spot("12012", piece), "0:0-2 0:3-5");
        ck_assert_str_eq(spot("100002", piece), "");     // a pause of four rows
        ck_assert_str_eq(spot("10002", piece), "0:0-5"); // of three: one more than the gap since it began
        ck_assert_str_eq(spot("1212", piece), "0:0-2 0:2-4");
        ck_assert_str_eq(spot("03012400", piece), "1:1-2 0:3-5 1:4-6");
        ck_assert_str_eq(spot("21", piece), "");
    }
}
END_TEST

// Behind a keyword another may begin: it does not delay the first.
START_TEST(given_when_nothing_can_replace_it)
{
    float logp[4 * V];
    lin_path found = {0};
    lin_keywords *k = make((int[]){1, 2}, 2, 0.3);
    void *state = lin_alloc(lin_keywords_bytes(k), 1);
    rows(logp, "0121");
    logp[2 * V] = 0.5F; // the second phone is not certain
    lin_keywords_reset(k, state, 0);
    push(k, state, logp, 4, &found);
    ck_assert_int_eq(found.n_keywords, 1);
    lin_path_free(&found);
    lin_free(state);
    lin_keywords_destroy(k);
}
END_TEST

START_TEST(any_split)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        float logp[T * V];
        lin_path whole = {0}, parts = {0};
        lin_keywords *k = make((int[]){1, 2, 0, 3}, 4, 0.2);
        void *state = lin_alloc(lin_keywords_bytes(k), 1), *copy = lin_alloc(lin_keywords_bytes(k), 1);
        fill(logp, seed);
        lin_keywords_reset(k, state, 0);
        push(k, state, logp, T, &whole);
        lin_keywords_finish(k, state, &whole);
        lin_keywords_reset(k, state, 0);
        for (int t = 0; t < T; t++) {
            memcpy(copy, state, lin_keywords_bytes(k));
            push(k, copy, logp + t * V, 1, &parts);
            memcpy(state, copy, lin_keywords_bytes(k));
        }
        lin_keywords_finish(k, state, &parts);
        ck_assert_int_eq(whole.n_keywords, parts.n_keywords);
        for (int i = 0; i < whole.n_keywords; i++)
            ck_assert_mem_eq(&whole.keywords[i], &parts.keywords[i], sizeof *whole.keywords);
        lin_path_free(&whole);
        lin_path_free(&parts);
        lin_free(state);
        lin_free(copy);
        lin_keywords_destroy(k);
    }
}
END_TEST

// An utterance that ends in the middle of speech does not cut a keyword; an endpoint does.
START_TEST(across_segments)
{
    float logp[8 * V];
    lin_keywords *k = make((int[]){1, 2, 3}, 3, 0.5);
    const lin_search search = lin_search_for_keywords(lin_search_greedy(V), k, 0);
    void *state = lin_alloc(lin_search_bytes(&search), 1);
    ck_assert_uint_ne(search.id, lin_search_greedy(V).id);
    rows(logp, "01122300");
    for (int carry = 0; carry < 2; carry++) {
        lin_path found = {0};
        lin_search_reset(&search, state, 50, 0);
        OK(lin_search_push(&search, state, NULL, logp, 4, &found, &err));
        OK(lin_search_finish_keywords(&search, state, &found, &err));
        lin_search_reset(&search, state, 54, carry);
        OK(lin_search_push(&search, state, NULL, logp + 4 * V, 4, &found, &err));
        OK(lin_search_check(&search, state, lin_search_bytes(&search), &err));
        ck_assert_int_eq(found.n_keywords, carry);
        if (carry) ck_assert_int_eq(found.keywords[0].start, 51);
        if (carry) ck_assert_int_eq(found.keywords[0].end, 56);
        lin_path_free(&found);
    }
    lin_free(state);
    lin_keywords_destroy(k);
}
END_TEST

// Phones are found only for so many frames after a keyword, and to the end of the segment; any split gives the same.
START_TEST(after_a_keyword)
{
    enum { N = 22, AFTER = 9 };
    float logp[N * V];
    lin_keywords *k = make((int[]){1, 2, 3}, 3, 0.5);
    const lin_search search = lin_search_for_keywords(lin_search_greedy(V), k, AFTER);
    void *state = lin_alloc(lin_search_bytes(&search), 1);
    rows(logp, "0301122300203020102012");
    for (int step = 1; step <= N; step++) {
        lin_path found = {0}, tail = {0};
        lin_search_reset(&search, state, 0, 0);
        for (int t = 0; t < 14; t += step) {
            OK(lin_search_push(&search, state, NULL, logp + t * V, t + step < 14 ? step : 14 - t, &found, &err));
            OK(lin_search_check(&search, state, lin_search_bytes(&search), &err));
        }
        OK(lin_search_finish_keywords(&search, state, &found, &err));
        OK(lin_search_finish(&search, state, NULL, &found, &err));
        ck_assert_int_eq(found.n_keywords, 1);
        ck_assert_int_eq(found.n_phones, 2); // 2 and 3: not the 3 before it, nor those of the keyword
        ck_assert_int_eq(found.phones[0].label, 2);
        ck_assert_int_eq(found.phones[0].start, 10);
        ck_assert_int_eq(found.phones[1].start, 12);
        lin_search_reset(&search, state, 14, 0); // frame 8 + 9 is not over: the next segment is decoded to its end
        OK(lin_search_push(&search, state, NULL, logp + 14 * V, 5, &found, &err));
        OK(lin_search_finish(&search, state, NULL, &found, &err));
        ck_assert_int_eq(found.n_phones, 5);
        lin_search_reset(&search, state, 19, 0);
        OK(lin_search_push(&search, state, NULL, logp + 19 * V, 3, &found, &err));
        ck_assert_int_eq(lin_search_hypotheses(&search, state), 1);
        OK(lin_search_nbest(&search, state, 0, &tail, &err));
        ck_assert_int_eq(tail.n_phones, 0);
        OK(lin_search_finish(&search, state, NULL, &found, &err));
        ck_assert_int_eq(found.n_phones, 5);
        lin_path_free(&found);
        lin_path_free(&tail);
    }
    ((char *)state)[lin_search_bytes(&search) - 32 * V * sizeof(float) - 8] = 7; // neither asleep nor awake
    FAILS(lin_search_check(&search, state, lin_search_bytes(&search), &err), LIN_FORMAT, "damaged");
    lin_free(state);
    lin_keywords_destroy(k);
}
END_TEST

static void refused(lin_keyword it, const char *message)
{
    lin_keywords *k;
    FAILS(lin_keywords_create(&it, 1, V, GAP, &k, &err), LIN_INVALID, message);
    ck_assert_ptr_null(k);
}

START_TEST(hostile_lists_and_states)
{
    lin_keywords *k = make((int[]){1, 2}, 2, NAN), *none;
    const size_t n = lin_keywords_bytes(k);
    unsigned char *state = lin_alloc(n, 1);
    lin_error bad;
    refused((lin_keyword){"", 0.5, (int[]){1}, 1}, "no text");
    refused((lin_keyword){"a", 0, (int[]){1}, 1}, "threshold is 0");
    refused((lin_keyword){"a", 1.5, (int[]){1}, 1}, "threshold is 1.5");
    refused((lin_keyword){"a", 0.5, NULL, 0}, "of 0 phones");
    refused((lin_keyword){"a", 0.5, (int[]){1, 0}, 2}, "of 0 phones");
    refused((lin_keyword){"a", 0.5, (int[]){V}, 1}, "phone 5 of 4");
    ck_assert_int_eq(lin_keywords_create(NULL, 0, V, GAP, &none, &bad), LIN_INVALID);
    ck_assert_int_eq(lin_keywords_check(k, state, n - 1, &bad), LIN_MISMATCH);
    int caught = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) { // never a crash; what is accepted can be used
        float logp[T * V];
        lin_path found = {0};
        fill(logp, seed);
        lin_keywords_reset(k, state, 0);
        push(k, state, logp, T, &found);
        for (int i = 0; i < 3; i++)
            state[lin_random_below(seed, 3000 + (uint64_t)i, (uint32_t)n)] ^= (unsigned char)lin_random_below(seed, 4000, 256);
        if (lin_keywords_check(k, state, n, &bad) != LIN_OK) caught++;
        else push(k, state, logp, T, &found);
        lin_path_free(&found);
    }
    ck_assert_int_gt(caught, 500);
    lin_free(state);
    lin_keywords_destroy(k);
}
END_TEST

TEST_MAIN("keywords", TEST(the_best_of_all_alignments), TEST(peaks_repetitions_pauses),
          TEST(given_when_nothing_can_replace_it), TEST(any_split), TEST(across_segments),
          TEST(after_a_keyword), TEST(hostile_lists_and_states))
