// decoder/search.c: what holds for every search, with random options, language models and phrases: any split, copy and reset of
// the state, hypotheses, frames, a million rows without an allocation, rows that are none, states of something else.
#include "decoder/search.h"

#include "decoder/words_internal.h"
#include "tests/decoder/peaky_rows.h"
#include "tests/decoder/words_case.h"

enum { T = 300, MOST_V = 36 };

static const char phones_arpa[] =
    "\\data\\\nngram 1=6\nngram 2=7\n\n\\1-grams:\n-0.7 </s>\n-99 <s> -0.3\n-0.5 A -0.2\n-0.6 B -0.4\n-0.9 C -0.1\n"
    "-1.5 <unk> -0.3\n\n\\2-grams:\n-0.3 <s> A\n-0.4 A B\n-1.1 A A\n-0.9 B A\n-0.2 C </s>\n-0.8 B </s>\n-0.5 A C\n\n\\end\\\n";

typedef struct fixture {
    world w;
    search words; // with lexicon, language model and phrases
    lin_beam *beam;
    lin_ngram *lm;
    lin_context *phrases;
    lin_search_context context;
    lin_search kinds[LIN_SEARCH_KINDS];
    float logp[LIN_SEARCH_KINDS][T * MOST_V];
} fixture;

static fixture f;
static lin_search *s; // the search in question
static float *rows;   // [T, s->V]
static const lin_search_context *phrases;
static void *state, *other; // of it
static lin_path whole, got, tail;

static void begin_all(int kind, uint64_t seed)
{
    static const int phrase[] = {1, 2};
    const int V = 5 + (int)(seed % 30);
    lin_beam_options b = lin_beam_options_default();
    variant v;
    int labels[MOST_V];
    for (int k = 0; k < V; k++) labels[k] = k % 7 - 1;
    b.longest = 1 + (int)(seed % 20);
    b.width = seed % 3 ? 12 : 3;
    if (seed % 2) OK(lin_ngram_parse(phones_arpa, sizeof phones_arpa - 1, "phones", &f.lm, &err));
    OK(lin_beam_create(V, f.lm, labels, &b, &f.beam, &err));
    OK(lin_context_create(&(lin_context_phrase){phrase, 2, 2}, 1, &f.phrases, &err));
    v = draw_stream(&f.w, f.logp[LIN_SEARCH_WORDS], T, seed);
    begin(&f.words, &f.w, &v.o, v.lm, v.context);
    f.context = (lin_search_context){seed % 5 ? NULL : f.phrases, f.words.context};
    f.kinds[0] = lin_search_greedy(V);
    f.kinds[1] = lin_search_beam(f.beam, V, 11);
    f.kinds[2] = lin_search_words(f.words.words, f.w.V, 12);
    if (kind < LIN_SEARCH_WORDS) peaky_rows(f.logp[kind], T, V, seed);
    s = &f.kinds[kind];
    rows = f.logp[kind];
    phrases = &f.context;
    state = test_buffer(lin_search_bytes(s), 1);
    other = test_buffer(lin_search_bytes(s), 1);
    lin_search_reset(s, state, 0, 0);
}

static void end_all(void)
{
    test_guards(state, lin_search_name(s->kind));
    test_guards(other, lin_search_name(s->kind));
    TEST_FREE(state, other);
    end(&f.words);
    lin_context_destroy(f.phrases);
    lin_beam_destroy(f.beam);
    lin_ngram_destroy(f.lm);
    lin_path_free(&whole);
    lin_path_free(&got);
    lin_path_free(&tail);
    f.lm = NULL;
}

static void push(void *to, int from, int n) { OK(lin_search_push(s, to, phrases, rows + from * s->V, n, &got, &err)); }

static void same_hypotheses(void *a, void *b, int shift)
{
    lin_path x = {0}, y = {0};
    const int n = lin_search_hypotheses(s, a);
    ck_assert_int_eq(lin_search_hypotheses(s, b), n);
    for (int i = 0; i < n; i++) {
        OK(lin_search_nbest(s, a, i, &x, &err));
        OK(lin_search_nbest(s, b, i, &y, &err));
        for (int k = 0; k < y.n_phones; k++) y.phones[k].start += shift, y.phones[k].end += shift;
        for (int k = 0; k < y.n_words; k++) y.words[k].start += shift, y.words[k].end += shift;
        same_path(&x, &y);
    }
    lin_path_free(&x);
    lin_path_free(&y);
}

// All rows in one call, finished.
static void all_at_once(void)
{
    lin_search_reset(s, other, 0, 0);
    lin_path_clear(&whole);
    OK(lin_search_push(s, other, phrases, rows, T, &whole, &err));
    OK(lin_search_finish(s, other, phrases, &whole, &err));
}

START_TEST(any_split_and_any_copy_of_the_state_gives_the_same)
{
    for (uint64_t seed = 0; seed < (TEST_ASAN ? 20 : 60); seed++) {
        begin_all(_i, seed);
        const lin_words *w = f.words.words;
        const size_t bytes = lin_search_bytes(s);
        for (int again = 0; again < 2; again++) { // after a reset nothing of the old segment remains
            lin_search_reset(s, state, 0, 0);
            lin_path_clear(&got);
            for (int t = 0, n, step = 0; t < T; t += n, step++) {
                n = (int)lin_random_below(seed + 77, (uint64_t)step, seed % 4 ? 6 : 60);
                if (n > T - t) n = T - t;
                // Words: with the table of scores of the pieces before, and without one, as if other streams held them all.
                for (int i = 0; i < w->n_tables; i++) w->held[i] = t % 3 == 0;
                push(state, t, n);
                for (int i = 0; i < w->n_tables; i++) ck_assert_int_eq(w->held[i], t % 3 == 0);
                OK(lin_search_check(s, state, bytes, &err));
                OK(lin_search_nbest(s, state, 0, &tail, &err));
                if (_i == LIN_SEARCH_BEAM) ck_assert_int_le(tail.n_phones, 1 + (int)(seed % 20)); // the longest
                memcpy(other, state, bytes); // continues from a copy, as from a file
                memset(state, 0x5A, bytes);
                void *swap = state;
                state = other;
                other = swap;
            }
            lin_search_reset(s, other, 0, 0);
            lin_path_clear(&whole);
            OK(lin_search_push(s, other, phrases, rows, T, &whole, &err));
            same_path(&got, &whole);
            same_hypotheses(state, other, 0);
            OK(lin_search_finish(s, state, phrases, &got, &err));
            OK(lin_search_finish(s, other, phrases, &whole, &err));
            same_path(&got, &whole);
            if (_i == LIN_SEARCH_WORDS) check_shape(&whole, 0, T);
            for (int i = 1; i < whole.n_phones; i++) ck_assert(whole.phones[i].start >= whole.phones[i - 1].end);
            OK(lin_search_check(s, state, bytes, &err));
        }
        end_all();
    }
}
END_TEST

START_TEST(the_best_hypothesis_at_the_end_is_the_rest)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        begin_all(_i, seed);
        all_at_once();
        push(state, 0, T);
        OK(lin_search_finish(s, state, phrases, NULL, &err));
        const int n = lin_search_hypotheses(s, state);
        OK(lin_search_nbest(s, state, 0, &tail, &err));
        OK(lin_path_append(&got, &tail, &err));
        got.score = tail.score, got.acoustic = tail.acoustic, got.language = tail.language;
        same_path(&got, &whole);
        FAILS(lin_search_nbest(s, state, n, &tail, &err), LIN_INVALID, "");
        FAILS(lin_search_nbest(s, state, -1, &tail, &err), LIN_INVALID, "");
        end_all();
    }
}
END_TEST

// Only differences of frames matter: a segment may begin at any frame, also one below zero.
START_TEST(frames_are_counted_on)
{
    static const int64_t firsts[] = {1000, -1000, INT64_C(1) << 30};
    for (uint64_t seed = 0; seed < 15; seed++) {
        begin_all(_i, seed);
        const int first = (int)firsts[seed % 3];
        lin_search_reset(s, other, first, 0);
        push(state, 0, 30);
        lin_path_clear(&got);
        push(other, 0, 30);
        same_hypotheses(state, other, -first);
        end_all();
    }
}
END_TEST

// 45,000 rows, the same 300 repeated: each repetition adds the same, and nothing is allocated.
START_TEST(long_streams)
{
    for (uint64_t seed = 1; seed < 4; seed += 2) {
        begin_all(_i, seed);
        for (int t = T - 30; t < T; t++) // every repetition begins in the same state
            for (int v = 0; v < s->V; v++) rows[t * s->V + v] = v ? -30 : -1e-8f;
        OK(lin_path_reserve(&got, 3 * T, 3 * T, &err));
        OK(lin_path_reserve(&tail, 3 * T, 3 * T, &err));
        const unsigned long allocations = lin_memory_count();
        double score = 0, gain = 0;
        int n = 0, first = 0;
        for (int round = 0; round < 150; round++) {
            lin_path_clear(&got);
            push(state, 0, T);
            n += got.n_phones;
            if (round % 50 != 49) continue; // words are settled when nothing else is likely any more
            OK(lin_search_nbest(s, state, 0, &tail, &err));
            if (round == 99) first = n, gain = tail.score - score;
            if (round > 99) {
                ck_assert_int_le(abs(n - first), first / 20);
                ck_assert_double_le(fabs(tail.score - score - gain), 1e-3 * fabs(gain));
            }
            score = tail.score;
            n = 0;
        }
        OK(lin_search_finish(s, state, phrases, &got, &err));
        test_require(lin_memory_count() == allocations, "%s allocates", lin_search_name(s->kind));
        OK(lin_search_check(s, state, lin_search_bytes(s), &err));
        ck_assert_int_gt(first, 500);
        end_all();
    }
}
END_TEST

START_TEST(rows_that_are_none_change_nothing)
{
    static const float none[] = {NAN, INFINITY, -NAN};
    float bad[6 * MOST_V];
    begin_all(_i, 6);
    const size_t bytes = lin_search_bytes(s), n = 6 * (size_t)s->V;
    push(state, 0, 100);
    memcpy(other, state, bytes);
    const int n_phones = got.n_phones;
    for (int i = 0; i < 4 * s->V; i++) {
        memcpy(bad, rows, n * sizeof *bad);
        if (i < 3 * s->V) bad[2 * s->V + i / 3] = none[i % 3];
        else for (int v = 0; v < s->V; v++) bad[2 * s->V + v] = -INFINITY;
        FAILS(lin_search_push(s, state, phrases, bad, 6, &got, &err), LIN_NUMERIC, "frame 102");
    }
    FAILS(lin_search_push(s, state, phrases, rows, -1, &got, &err), LIN_INVALID, "-1 ");
    lin_path empty = {0};
    lin_memory_fail_at(1);
    FAILS(lin_search_push(s, state, phrases, rows, 6, &empty, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(1);
    if (_i != LIN_SEARCH_GREEDY) FAILS(lin_search_finish(s, state, phrases, &empty, &err), LIN_NO_MEMORY, "");
    ck_assert_mem_eq(state, other, bytes);
    lin_memory_fail_at(1);
    FAILS(lin_search_nbest(s, state, 0, &empty, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(0);
    ck_assert_int_eq(got.n_phones, n_phones);
    memcpy(bad, rows, n * sizeof *bad);
    for (int v = 0; v < s->V - 1; v++) bad[v] = -INFINITY; // one label is possible, though perhaps no word
    OK(lin_search_push(s, state, phrases, bad, 1, &got, &err));
    OK(lin_search_push(s, state, phrases, NULL, 0, &got, &err));
    OK(lin_search_finish(s, state, phrases, NULL, &err));
    if (_i != LIN_SEARCH_GREEDY) {
        FAILS(lin_search_push(s, state, phrases, rows, 1, &got, &err), LIN_INVALID, "reset");
        FAILS(lin_search_finish(s, state, phrases, &got, &err), LIN_INVALID, "reset");
    }
    end_all();
}
END_TEST

// tests/fuzz/fuzz_search.c damages states of beams and words at random.
START_TEST(states_of_something_else)
{
    begin_all(_i, 5);
    const size_t bytes = lin_search_bytes(s);
    push(state, 0, T / 2);
    OK(lin_search_check(s, state, bytes, &err));
    FAILS(lin_search_check(s, state, bytes - 1, &err), LIN_MISMATCH, "bytes");
    FAILS(lin_search_check(s, state, bytes + 8, &err), LIN_MISMATCH, "bytes");
    memset(other, 0xA5, bytes);
    ck_assert_int_ne(lin_search_check(s, other, bytes, NULL), LIN_OK);
    memcpy(other, state, bytes);
    memset((char *)other + 16, 0xFF, bytes / 4);
    FAILS(lin_search_check(s, other, bytes, &err), LIN_FORMAT, "damaged");
    if (_i == LIN_SEARCH_GREEDY) {
        const lin_greedy good = {.n_outputs = s->V, .label = 3, .start = 4, .frame = 9, .sum_logp = -1};
        lin_greedy wrong[6];
        OK(lin_search_check(s, &good, sizeof good, &err));
        for (int i = 0; i < 6; i++) wrong[i] = good;
        wrong[0].n_outputs++;
        wrong[1].label = s->V;
        wrong[2].emitted = 2;
        wrong[3].start = 10;
        wrong[4].start = 9; // an open run without a frame
        wrong[5].sum_logp = NAN;
        for (int i = 0; i < 6; i++) FAILS(lin_search_check(s, &wrong[i], sizeof good, &err), LIN_FORMAT, "damaged");
    } else { // of the same size, made with other options
        ((char *)state)[_i == LIN_SEARCH_BEAM ? 0 : 8] ^= 1;
        FAILS(lin_search_check(s, state, bytes, &err), LIN_MISMATCH, "options");
    }
    end_all();
}
END_TEST

#define EACH(test) TESTS(test, 0, LIN_SEARCH_KINDS)
TEST_MAIN("search", EACH(any_split_and_any_copy_of_the_state_gives_the_same), EACH(the_best_hypothesis_at_the_end_is_the_rest),
          EACH(frames_are_counted_on), EACH(long_streams), EACH(rows_that_are_none_change_nothing),
          EACH(states_of_something_else))
