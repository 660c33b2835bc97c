// decoder/search.c: the three kinds of search through one interface give the results of their own functions, for any split, fork
// and copy of the state; the best hypothesis at the end; foreign states; no allocation while streaming.
#include "decoder/search.h"

#include "decoder/greedy.h"
#include "tests/lexicon/support.h"

enum { V = 40, T = 160 };

static const char dictionary_text[] = "ab AA B\nba B AA\nbad B AA D\ndo D UW\ntwo T UW\ntoo T UW\na AA\n";
static const char words_arpa[] = "\\data\\\nngram 1=9\nngram 2=3\n\n\\1-grams:\n-99 <s> -0.3\n-1 </s>\n-1 ab -0.2\n-1 ba -0.2\n"
                                 "-1.2 bad -0.2\n-1 do -0.1\n-0.9 two -0.3\n-1.1 too\n-1 a\n\n\\2-grams:\n-0.2 two do\n"
                                 "-0.4 bad ab\n-0.3 <s> two\n\n\\end\\\n";

typedef struct fixture {
    lin_phones *phones;
    lin_dictionary *dictionary;
    lin_ngram *lm;
    lin_tree *tree;
    lin_words *words;
    lin_beam *beam;
    lin_search searches[LIN_SEARCH_KINDS];
} fixture;

static fixture begin(void)
{
    fixture f = {0};
    lin_beam_options b = lin_beam_options_default();
    lin_words_options w = lin_words_options_default();
    OK(lin_phones_create(NULL, &f.phones, &err));
    OK(lin_dictionary_parse(dictionary_text, strlen(dictionary_text), "dict", f.phones, NULL, &f.dictionary, &err));
    OK(lin_ngram_parse(words_arpa, strlen(words_arpa), "arpa", &f.lm, &err));
    OK(lin_tree_create(f.dictionary, f.phones, f.lm, NULL, &f.tree, &err));
    OK(lin_words_create(f.tree, f.lm, &w, &f.words, &err));
    OK(lin_beam_create(V, NULL, NULL, &b, &f.beam, &err));
    f.searches[0] = lin_search_greedy(V);
    f.searches[1] = lin_search_beam(f.beam, V, 11);
    f.searches[2] = lin_search_words(f.words, V, 12);
    return f;
}

static void end(fixture *f)
{
    lin_beam_destroy(f->beam);
    lin_words_destroy(f->words);
    lin_tree_destroy(f->tree);
    lin_ngram_destroy(f->lm);
    lin_dictionary_destroy(f->dictionary);
    lin_phones_destroy(f->phones);
}

// Peaks of one to three rows among blanks, some divided between two labels.
static void fill(float *logp, uint64_t seed)
{
    static const int labels[] = {1, 7, 9, 31, 34}; // AA B D T UW
    int label = 0, left = 0;
    for (int t = 0; t < T; t++) {
        const uint64_t at = (uint64_t)t * 8;
        if (left-- == 0) {
            label = label && lin_random_below(seed, at, 2) ? 0 : labels[lin_random_below(seed, at + 1, 5)];
            left = (int)lin_random_below(seed, at + 2, 3);
        }
        const int rival = labels[lin_random_below(seed, at + 3, 5)];
        const double p = 0.5 + 0.4 * lin_random_uniform(seed, at + 4), q = rival == label ? 0 : (1 - p) * 0.8;
        for (int v = 0; v < V; v++) {
            const double x = v == label ? p : v == rival ? q : (1 - p - q) / (q > 0 ? V - 2 : V - 1);
            logp[t * V + v] = (float)log(x);
        }
    }
}

static void same(const lin_path *got, const lin_path *want)
{
    ck_assert_int_eq(got->n_phones, want->n_phones);
    ck_assert_int_eq(got->n_words, want->n_words);
    for (int i = 0; i < want->n_phones; i++) {
        const lin_path_phone *a = &got->phones[i], *b = &want->phones[i];
        test_require(a->label == b->label && a->start == b->start && a->end == b->end && a->confidence == b->confidence,
                     "phone %d", i);
    }
    for (int i = 0; i < want->n_words; i++) {
        const lin_path_word *a = &got->words[i], *b = &want->words[i];
        test_require(a->word == b->word && a->first_phone == b->first_phone && a->n_phones == b->n_phones &&
                         a->start == b->start && a->end == b->end && a->confidence == b->confidence,
                     "word %d", i);
    }
    test_require(got->score == want->score && got->acoustic == want->acoustic && got->language == want->language, "scores");
}

// All rows in one call, finished into a path.
static void whole(const lin_search *s, const float *logp, lin_path *path)
{
    void *state = lin_alloc(lin_search_bytes(s), 1);
    lin_path_clear(path);
    lin_search_reset(s, state, 0, 0);
    OK(lin_search_push(s, state, NULL, logp, T, path, &err));
    OK(lin_search_finish(s, state, NULL, path, &err));
    lin_free(state);
}

START_TEST(each_kind_is_what_it_stands_for)
{
    fixture f = begin();
    static float logp[T * V];
    lin_path got = {0}, want = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        fill(logp, seed);
        lin_greedy g;
        int n, more;
        OK(lin_path_reserve(&want, T + 1, 0, &err));
        lin_greedy_reset(&g, V, 0, 0);
        OK(lin_greedy_push(&g, logp, T, want.phones, T, &n, &err));
        lin_greedy_finish(&g, want.phones + n, &more);
        lin_path_clear(&want);
        want.n_phones = n + more;
        whole(&f.searches[LIN_SEARCH_GREEDY], logp, &got);
        same(&got, &want);

        void *state = lin_alloc(lin_beam_bytes(f.beam), 1);
        lin_path_clear(&want);
        lin_beam_reset(f.beam, state, 0);
        OK(lin_beam_push(f.beam, state, NULL, logp, T, &want, &err));
        OK(lin_beam_finish(f.beam, state, &want, &err));
        whole(&f.searches[LIN_SEARCH_BEAM], logp, &got);
        same(&got, &want);
        lin_free(state);

        state = lin_alloc(lin_words_bytes(f.words), 1);
        lin_path_clear(&want);
        lin_words_reset(f.words, state, 0);
        OK(lin_words_push(f.words, state, NULL, logp, T, &want, &err));
        OK(lin_words_finish(f.words, state, NULL, &want, &err));
        whole(&f.searches[LIN_SEARCH_WORDS], logp, &got);
        same(&got, &want);
        ck_assert_int_gt(got.n_words, 5);
        lin_free(state);
    }
    ck_assert_str_eq(lin_search_name(LIN_SEARCH_GREEDY), "greedy");
    ck_assert_str_eq(lin_search_name(LIN_SEARCH_BEAM), "beam");
    ck_assert_str_eq(lin_search_name(LIN_SEARCH_WORDS), "words");
    lin_path_free(&got);
    lin_path_free(&want);
    end(&f);
}
END_TEST

START_TEST(any_split_and_any_copy_of_the_state_gives_the_same)
{
    fixture f = begin();
    static float logp[T * V];
    lin_path got = {0}, want = {0};
    for (int kind = 0; kind < LIN_SEARCH_KINDS; kind++) {
        const lin_search *s = &f.searches[kind];
        const size_t bytes = lin_search_bytes(s);
        void *state = lin_alloc(bytes, 1), *other = lin_alloc(bytes, 1);
        for (uint64_t seed = 0; seed < 10; seed++) {
            fill(logp, seed);
            whole(s, logp, &want);
            lin_path_clear(&got);
            memset(state, 0xA5, bytes);
            lin_search_reset(s, state, 0, 0);
            for (int t = 0, n, step = 0; t < T; t += n, step++) {
                n = (int)lin_random_below(seed + 77, (uint64_t)step, 9);
                if (n > T - t) n = T - t;
                OK(lin_search_push(s, state, NULL, logp + t * V, n, &got, &err));
                OK(lin_search_check(s, state, bytes, &err));
                memcpy(other, state, bytes); // continues from a copy, as from a file
                memset(state, 0x5A, bytes);
                void *swap = state;
                state = other;
                other = swap;
            }
            OK(lin_search_finish(s, state, NULL, &got, &err));
            same(&got, &want);
        }
        lin_free(state);
        lin_free(other);
    }
    lin_path_free(&got);
    lin_path_free(&want);
    end(&f);
}
END_TEST

// The settled part followed by the provisional part, whose scores are those of the whole.
static void append(lin_path *path, const lin_path *tail)
{
    const int before = path->n_phones;
    OK(lin_path_reserve(path, tail->n_phones, tail->n_words, &err));
    for (int i = 0; i < tail->n_phones; i++) path->phones[path->n_phones++] = tail->phones[i];
    for (int i = 0; i < tail->n_words; i++) {
        path->words[path->n_words] = tail->words[i];
        path->words[path->n_words++].first_phone += before;
    }
    path->incomplete = tail->incomplete;
    path->score = tail->score;
    path->acoustic = tail->acoustic;
    path->language = tail->language;
}

START_TEST(the_best_hypothesis_at_the_end_is_the_rest)
{
    fixture f = begin();
    static float logp[T * V];
    lin_path want = {0}, settled = {0}, tail = {0};
    for (int kind = 0; kind < LIN_SEARCH_KINDS; kind++) {
        const lin_search *s = &f.searches[kind];
        void *state = lin_alloc(lin_search_bytes(s), 1);
        for (uint64_t seed = 0; seed < 10; seed++) {
            fill(logp, seed);
            whole(s, logp, &want);
            lin_path_clear(&settled);
            lin_search_reset(s, state, 0, 0);
            OK(lin_search_push(s, state, NULL, logp, T, &settled, &err));
            OK(lin_search_finish(s, state, NULL, NULL, &err));
            const int n = lin_search_hypotheses(s, state);
            ck_assert_int_ge(n, 1);
            OK(lin_search_nbest(s, state, 0, &tail, &err));
            append(&settled, &tail);
            same(&settled, &want);
            ck_assert_int_eq(lin_search_nbest(s, state, n, &tail, NULL), LIN_INVALID);
        }
        lin_free(state);
    }
    lin_path_free(&want);
    lin_path_free(&settled);
    lin_path_free(&tail);
    end(&f);
}
END_TEST

START_TEST(frames_are_counted_on_and_a_carried_phone_is_given_once)
{
    fixture f = begin();
    static float logp[T * V];
    lin_path a = {0}, b = {0};
    fill(logp, 3);
    for (int kind = 0; kind < LIN_SEARCH_KINDS; kind++) {
        const lin_search *s = &f.searches[kind];
        void *state = lin_alloc(lin_search_bytes(s), 1);
        whole(s, logp, &a);
        lin_path_clear(&b);
        lin_search_reset(s, state, 1000, 0);
        OK(lin_search_push(s, state, NULL, logp, T, &b, &err));
        OK(lin_search_finish(s, state, NULL, &b, &err));
        ck_assert_int_eq(b.n_phones, a.n_phones);
        for (int i = 0; i < a.n_phones; i++) ck_assert_int_eq(b.phones[i].start, a.phones[i].start + 1000);
        lin_free(state);
    }
    // Greedy, cut within a phone: with carry it counts once.
    const lin_search *s = &f.searches[LIN_SEARCH_GREEDY];
    lin_greedy g;
    int cut = 1;
    while (cut < T && !(logp[cut * V + 7] > -0.7f && logp[(cut - 1) * V + 7] > -0.7f)) cut++;
    ck_assert_int_lt(cut, T);
    whole(s, logp, &a);
    for (int carry = 0; carry < 2; carry++) {
        lin_path_clear(&b);
        lin_search_reset(s, &g, 0, 0);
        OK(lin_search_push(s, &g, NULL, logp, cut, &b, &err));
        OK(lin_search_finish(s, &g, NULL, &b, &err));
        lin_search_reset(s, &g, cut, carry);
        OK(lin_search_push(s, &g, NULL, logp + cut * V, T - cut, &b, &err));
        OK(lin_search_finish(s, &g, NULL, &b, &err));
        ck_assert_int_eq(b.n_phones, a.n_phones + !carry);
    }
    lin_path_free(&a);
    lin_path_free(&b);
    end(&f);
}
END_TEST

START_TEST(nothing_is_allocated_while_streaming)
{
    fixture f = begin();
    static float logp[T * V];
    lin_path settled = {0}, tail = {0};
    fill(logp, 5);
    for (int kind = 0; kind < LIN_SEARCH_KINDS; kind++) {
        const lin_search *s = &f.searches[kind];
        void *state = lin_alloc(lin_search_bytes(s), 1);
        OK(lin_path_reserve(&settled, T + 8, T + 8, &err));
        OK(lin_path_reserve(&tail, T + 8, T + 8, &err));
        const unsigned long before = lin_memory_count();
        lin_search_reset(s, state, 0, 0);
        for (int round = 0; round < 5; round++) {
            for (int t = 0; t < T; t += 4) {
                OK(lin_search_push(s, state, NULL, logp + t * V, 4, &settled, &err));
                OK(lin_search_nbest(s, state, 0, &tail, &err));
                lin_path_clear(&settled);
            }
        }
        OK(lin_search_finish(s, state, NULL, &settled, &err));
        test_require(lin_memory_count() == before, "%s allocates", lin_search_name((lin_search_kind)kind));
        lin_free(state);
    }
    lin_path_free(&settled);
    lin_path_free(&tail);
    end(&f);
}
END_TEST

START_TEST(states_of_something_else_and_rows_that_are_none)
{
    fixture f = begin();
    static float logp[T * V];
    lin_path path = {0};
    fill(logp, 1);
    for (int kind = 0; kind < LIN_SEARCH_KINDS; kind++) {
        const lin_search *s = &f.searches[kind];
        const size_t bytes = lin_search_bytes(s);
        unsigned char *state = lin_alloc(bytes + 64, 1);
        lin_search_reset(s, state, 0, 0);
        OK(lin_search_push(s, state, NULL, logp, T, &path, &err));
        OK(lin_search_check(s, state, bytes, &err));
        ck_assert_int_eq(lin_search_check(s, state, bytes - 8, NULL), LIN_MISMATCH);
        ck_assert_int_eq(lin_search_check(s, state, bytes + 8, NULL), LIN_MISMATCH);
        // A row of NaN changes nothing.
        unsigned char *before = lin_alloc(bytes, 1);
        memcpy(before, state, bytes);
        const int n = path.n_phones;
        float bad[V];
        memcpy(bad, logp, sizeof bad);
        bad[V - 1] = NAN;
        ck_assert_int_eq(lin_search_push(s, state, NULL, bad, 1, &path, NULL), LIN_NUMERIC);
        ck_assert_int_eq(path.n_phones, n);
        lin_path a = {0}, b = {0};
        OK(lin_search_finish(s, state, NULL, &a, &err));
        OK(lin_search_finish(s, before, NULL, &b, &err));
        same(&a, &b);
        lin_path_free(&a);
        lin_path_free(&b);
        memset(state, 0xA5, bytes);
        ck_assert_int_ne(lin_search_check(s, state, bytes, NULL), LIN_OK);
        lin_free(before);
        lin_free(state);
    }
    lin_greedy g;
    const lin_search *s = &f.searches[LIN_SEARCH_GREEDY];
    const lin_greedy good = {.n_outputs = V, .label = 3, .start = 4, .frame = 9, .sum_logp = -1};
    OK(lin_search_check(s, &good, sizeof good, &err));
    g = good, g.n_outputs = V + 1;
    ck_assert_int_eq(lin_search_check(s, &g, sizeof g, NULL), LIN_FORMAT);
    g = good, g.label = V;
    ck_assert_int_eq(lin_search_check(s, &g, sizeof g, NULL), LIN_FORMAT);
    g = good, g.emitted = 2;
    ck_assert_int_eq(lin_search_check(s, &g, sizeof g, NULL), LIN_FORMAT);
    g = good, g.start = 10;
    ck_assert_int_eq(lin_search_check(s, &g, sizeof g, NULL), LIN_FORMAT);
    g = good, g.start = 9; // an open run without a frame
    ck_assert_int_eq(lin_search_check(s, &g, sizeof g, NULL), LIN_FORMAT);
    g = good, g.sum_logp = NAN;
    ck_assert_int_eq(lin_search_check(s, &g, sizeof g, NULL), LIN_FORMAT);
    lin_path_free(&path);
    end(&f);
}
END_TEST

TEST_MAIN("search", TEST(each_kind_is_what_it_stands_for), TEST(any_split_and_any_copy_of_the_state_gives_the_same),
          TEST(the_best_hypothesis_at_the_end_is_the_rest), TEST(frames_are_counted_on_and_a_carried_phone_is_given_once),
          TEST(nothing_is_allocated_while_streaming), TEST(states_of_something_else_and_rows_that_are_none))
