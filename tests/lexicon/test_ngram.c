// lexicon/ngram.c: scores and states of random models against the definition, golden scores of KenLM, words, odd models.
#include "lexicon/ngram.h"

#include "base/textfile.h"
#include "tests/lexicon/random_model.h"

static void teardown(void) { ck_assert_uint_eq(lin_memory_live(), 0); }

static lin_ngram *parse(const char *text)
{
    lin_ngram *lm;
    OK(lin_ngram_parse(text, strlen(text), "x.arpa", &lm, &err));
    return lm;
}

/* ---- random models --------------------------------------------------------------------------------------------------------- */

START_TEST(scores_are_those_of_the_definition)
{
    for (int order = 1; order <= 5; order++) {
        for (uint64_t seed = 0; seed < 16; seed++) {
            int whole = seed % 2 == 0, special = (int)(seed / 2 % 8), n_words = 3 + (int)(seed * 5 % 17);
            model *m = random_model(100 * (uint64_t)order + seed, order, n_words, 1 + (double)(seed % 4), whole, special);
            lin_ngram *lm = model_parse(m);
            ck_assert_int_eq(lin_ngram_order(lm), order);
            for (int k = 0; k <= order + 1; k++) ck_assert_int_eq(lin_ngram_count(lm, k), k ? m->counts[k] : 0);
            const unsigned long allocations = lin_memory_count();
            walk_compare(lm, m, 400, 2e-5);
            ck_assert_uint_eq(lin_memory_count(), allocations);
            lin_ngram_destroy(lm);
            lin_free(m);
        }
    }
}
END_TEST

// There is one state for each context that affects scores, and the empty one; every history leads to the state of its longest
// suffix that has one.
START_TEST(states_are_minimal)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        int order = 2 + (int)(seed % 4);
        model *m = random_model(9000 + seed, order, 4 + (int)(seed % 5), 1.5, seed % 3 == 0, 3);
        lin_ngram *lm = model_parse(m);
        uint32_t n_contexts = 1;
        for (int i = 0; i < m->n; i++) n_contexts += (uint32_t)model_is_context(m, &m->grams[i]);
        ck_assert_uint_eq(lin_ngram_states(lm), n_contexts);
        lin_ngram_state *of_gram = lin_calloc((size_t)m->n, sizeof *of_gram); // state of each n-gram, stored when first seen
        for (int walk = 0; walk < 60; walk++) {
            int words[12];
            lin_ngram_state state = LIN_NGRAM_EMPTY;
            for (int n = 1; n <= 12; n++) {
                words[n - 1] = (int)model_draw(m, (uint32_t)m->n_words);
                lin_ngram_score(lm, state, word_in(lm, m, words[n - 1]), &state);
                int length = n < order ? n : order - 1;
                const gram *context = NULL;
                for (; length > 0 && !context; length--) {
                    context = model_find(m, words + n - length, length);
                    if (context && !model_is_context(m, context)) context = NULL;
                }
                if (!context) {
                    ck_assert_uint_eq(state, LIN_NGRAM_EMPTY);
                    continue;
                }
                ck_assert_uint_ne(state, LIN_NGRAM_EMPTY);
                lin_ngram_state *known = &of_gram[context - m->grams];
                if (!*known) *known = state;
                test_require(*known == state, "one context, states %u and %u", *known, state);
            }
        }
        for (int i = 0; i < m->n; i++)
            for (int j = 0; j < i && of_gram[i]; j++) test_require(of_gram[i] != of_gram[j], "two contexts, one state");
        lin_free(of_gram);
        lin_ngram_destroy(lm);
        lin_free(m);
    }
}
END_TEST

/* ---- KenLM ----------------------------------------------------------------------------------------------------------------- */

// tests/golden/ngram_scores.txt: "FILE WORD..." and below it the log10 of each word and of </s>, by KenLM.
START_TEST(scores_are_those_of_kenlm)
{
    char *text, name[64] = "";
    size_t n;
    int n_sentences = 0;
    lin_ngram *lm = NULL;
    lin_lines lines = {0};
    OK(lin_text_read("tests/golden/ngram_scores.txt", &text, &n, &err));
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *end = at + lines.n, *field, *scores;
        size_t n_field;
        if (!lines.n || *lines.text == '#') continue;
        ck_assert(lin_field_next(&at, end, &field, &n_field));
        if (strlen(name) != n_field || memcmp(name, field, n_field) != 0) {
            char path[128];
            ck_assert_uint_lt(n_field, sizeof name);
            memcpy(name, field, n_field);
            name[n_field] = '\0';
            snprintf(path, sizeof path, "tests/golden/%s", name);
            lin_ngram_destroy(lm);
            OK(lin_ngram_open(path, &lm, &err));
        }
        const char *words = at, *words_end = end;
        ck_assert(lin_lines_next(&lines));
        scores = lines.text;
        lin_ngram_state state = lin_ngram_begin(lm);
        double want;
        while (lin_field_next(&words, words_end, &field, &n_field)) {
            double got = (double)lin_ngram_score(lm, state, lin_ngram_find(lm, field, n_field), &state);
            ck_assert(lin_field_next(&scores, lines.text + lines.n, &field, &n_field) && lin_text_number(field, n_field, &want));
            test_require(fabs(got - want * log(10)) <= 1e-4, "%s, line %d: %.7g, not %.7g", name, lines.number, got,
                         want * log(10));
        }
        ck_assert(lin_field_next(&scores, lines.text + lines.n, &field, &n_field) && lin_text_number(field, n_field, &want));
        test_require(fabs((double)lin_ngram_end(lm, state) - want * log(10)) <= 1e-4, "%s, line %d: </s>", name, lines.number);
        n_sentences++;
    }
    ck_assert_int_ge(n_sentences, 100);
    lin_ngram_destroy(lm);
    lin_free(text);
}
END_TEST

/* ---- words and odd models -------------------------------------------------------------------------------------------------- */

START_TEST(words)
{
    lin_ngram *lm =
        parse("\\data\\\nngram 1=6\n\\1-grams:\n-1 to\n-1 tomato\n-1 \xC3\xA9t\xC3\xA9\n-1 T\n-1 tom\n-1 '\n\\end\\\n");
    const char *const in_order[] = {"'", "T", "to", "tom", "tomato", "\xC3\xA9t\xC3\xA9"};
    ck_assert_int_eq(lin_ngram_words(lm), 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(lin_ngram_word(lm, i), in_order[i]);
        ck_assert_int_eq(lin_ngram_find(lm, in_order[i], strlen(in_order[i])), i);
    }
    ck_assert_ptr_null(lin_ngram_word(lm, -1));
    ck_assert_ptr_null(lin_ngram_word(lm, 6));
    ck_assert_int_eq(lin_ngram_find(lm, "tomatoes", 8), LIN_NGRAM_UNKNOWN);
    ck_assert_int_eq(lin_ngram_find(lm, "tomatoes", 6), 4);
    ck_assert_int_eq(lin_ngram_find(lm, "t", 1), LIN_NGRAM_UNKNOWN);
    ck_assert_int_eq(lin_ngram_find(lm, "to\0m", 4), LIN_NGRAM_UNKNOWN);
    ck_assert_int_eq(lin_ngram_find(lm, "", 0), LIN_NGRAM_UNKNOWN);
    lin_ngram_destroy(lm);
    lin_ngram_destroy(NULL);
}
END_TEST

START_TEST(without_special_words)
{
    lin_ngram *lm = parse("\\data\\\nngram 1=2\nngram 2=1\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n\\end\\\n");
    lin_ngram_state next = 7, a;
    ck_assert_uint_eq(lin_ngram_begin(lm), LIN_NGRAM_EMPTY);
    ck_assert_float_eq(lin_ngram_end(lm, 0), 0);
    ck_assert(isinf(lin_ngram_score(lm, 0, LIN_NGRAM_UNKNOWN, &next)) && next == LIN_NGRAM_EMPTY);
    ck_assert(isinf(lin_ngram_score(lm, 0, 2, &next)) && isinf(lin_ngram_unigram(lm, LIN_NGRAM_UNKNOWN)));
    ck_assert(isinf(lin_ngram_unigram(lm, 99)));
    lin_ngram_score(lm, 0, 0, &a);
    // a state number of another model is treated as the empty state
    ck_assert_float_eq(lin_ngram_score(lm, 12345, 1, &next), lin_ngram_score(lm, 0, 1, &next));
    ck_assert_float_eq_tol(lin_ngram_score(lm, a, 0, &next), (float)(-1.5 * log(10)), 1e-5f);
    lin_ngram_destroy(lm);

    lm = parse("\\data\\\nngram 1=2\n\\1-grams:\n-1 a\n-2 <UNK>\n\\end\\\n");
    ck_assert_float_eq_tol(lin_ngram_score(lm, 0, LIN_NGRAM_UNKNOWN, &next), (float)(-2 * log(10)), 1e-5f);
    ck_assert_float_eq_tol(lin_ngram_unigram(lm, LIN_NGRAM_UNKNOWN), (float)(-2 * log(10)), 1e-5f);
    ck_assert_uint_eq(lin_ngram_states(lm), 1);
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(the_highest_order)
{
    model *m = random_model(77, LIN_NGRAM_MAX_ORDER, 3, 1.2, 0, 7);
    lin_ngram *lm = model_parse(m);
    ck_assert_int_gt(m->counts[LIN_NGRAM_MAX_ORDER], 0);
    walk_compare(lm, m, 500, 5e-5);
    lin_ngram_destroy(lm);
    lin_free(m);
}
END_TEST

START_TEST(an_order_without_ngrams)
{
    lin_ngram_state next;
    lin_ngram *lm = parse("\\data\\\nngram 1=2\nngram 2=1\nngram 3=0\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b -0.125\n"
                          "\\3-grams:\n\\end\\\n");
    ck_assert_int_eq(lin_ngram_order(lm), 3);
    lin_ngram_score(lm, 0, 0, &next);
    lin_ngram_score(lm, next, 1, &next);
    ck_assert_float_eq_tol(lin_ngram_score(lm, next, 0, &next), (float)(-1.125 * log(10)), 1e-5f);
    lin_ngram_destroy(lm);
}
END_TEST

// The filter never lacks a pair that an n-gram ends in, in pruned models too: then the score of a word that it lacks has the bits
// of lin_ngram_score. Of the pairs that no n-gram ends in it lacks most.
START_TEST(pairs)
{
    long n_lacking = 0, n_backed_off = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        const int order = 1 + (int)(seed % 5), whole = (int)(seed / 5 % 2);
        model *m = random_model(500 + seed, order, seed % 7 ? 40 : 1200, seed % 7 ? 2.5 : 1.2, whole, (int)(seed / 3 % 8));
        lin_ngram *lm = model_parse(m);
        const size_t n = lin_ngram_pairs_size(lm);
        lin_ngram_pairs all;
        OK(lin_ngram_pairs_create(lm, &all, &err));
        ck_assert_uint_eq(all.n, n);
        ck_assert_int_eq(n > 0, order > 1);
        ck_assert(n == 0 || ((n & (n - 1)) == 0 && n >= LIN_NGRAM_PAIRS_LINE));
        for (lin_ngram_state state = 0; state < lin_ngram_states(lm) + 2; state += 1 + lin_ngram_states(lm) / 200) {
            const lin_ngram_context context = lin_ngram_context_of(lm, state);
            for (int word = -1; word < lin_ngram_words(lm) + 2; word++) {
                lin_ngram_state next, other;
                const float score = lin_ngram_score(lm, state, word, &next);
                const int known = context.last && word >= 0 && word < lin_ngram_words(lm);
                n_backed_off += known && score == context.backoffs + lin_ngram_unigram(lm, word);
                if (!lin_ngram_pairs_lack(&all, &context, word)) continue;
                n_lacking += known;
                ck_assert(n > 0 && context.last);
                const float unseen = lin_ngram_unseen(lm, &context, word, &other); // of a word that does not exist, any
                test_require(!known || (score == unseen && next == other), "model %d: state %u, word %d", (int)seed, state, word);
            }
        }
        lin_free(all.bits);
        lin_ngram_destroy(lm);
        lin_free(m);
    }
    test_require(n_lacking > n_backed_off * 6 / 10, "%ld of %ld", n_lacking, n_backed_off);
}
END_TEST

TEST_MAIN_WITH(NULL, teardown, "ngram", TEST(scores_are_those_of_the_definition), TEST(states_are_minimal),
               TEST(scores_are_those_of_kenlm), TEST(words), TEST(without_special_words), TEST(the_highest_order),
               TEST(an_order_without_ngrams), TEST(pairs))
