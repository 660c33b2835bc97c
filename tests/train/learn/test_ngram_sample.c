// Sentences drawn from a model: words follow a context as often as the model's probabilities say.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "train/learn/ngram_sample.h"
#include "lexicon/ngram.h"
#include "tests/support.h"

// P(. | a) = 0.5 a, 0.3 b by bigrams; the remaining 0.2 backs off to the words without a bigram: c and </s>, 1 to 3, weight
// 0.2 / 0.4.
static const char model[] = "\\data\\\nngram 1=6\nngram 2=3\n\n\\1-grams:\n"
                            "-99 <s> 0\n-1 <unk>\n-0.522879 a -0.301030\n-0.522879 b 0\n-1 c 0\n-0.698970 </s>\n\n"
                            "\\2-grams:\n-0.301030 a a\n-0.522879 a b\n0 <s> a\n\n\\end\\\n";

START_TEST(test_frequencies)
{
    lin_ngram *lm;
    lin_ngram_sampler *sampler;
    OK(lin_ngram_parse(model, strlen(model), "test.arpa", &lm, &err));
    OK(lin_ngram_sampler_create(lm, &sampler, &err));
    const char *const words[] = {"a", "b", "c", "</s>", "<unk>", "<s>"};
    // After b (and c) the unigrams without <unk>: 0.3, 0.3, 0.1, 0.2 of 0.9. After a, 0.2 for words without a bigram: <unk> 0.1,
    // c 0.1, </s> 0.2 of 0.4; without <unk> 0.95 remains.
    const double after_a[] = {0.5 / 0.95, 0.3 / 0.95, 0.05 / 0.95, 0.1 / 0.95, 0, 0};
    const double after_b[] = {0.3 / 0.9, 0.3 / 0.9, 0.1 / 0.9, 0.2 / 0.9, 0, 0};
    enum { N = 200000 };
    lin_ngram_draws draws = {.key = 11};
    for (int of = 0; of < 2; of++) {
        lin_ngram_state from, state;
        int count[6] = {0};
        lin_ngram_score(lm, LIN_NGRAM_EMPTY, lin_ngram_find(lm, words[of], 1), &from);
        for (int i = 0; i < N; i++) {
            int word;
            state = from;
            const int ends = lin_ngram_sampler_draw(sampler, &draws, &state, &word);
            lin_ngram_state expected;
            lin_ngram_score(lm, from, word, &expected);
            ck_assert_uint_eq(state, expected);
            ck_assert_int_eq(ends, strcmp(lin_ngram_word(lm, word), "</s>") == 0);
            for (int w = 0; w < 6; w++) count[w] += strcmp(lin_ngram_word(lm, word), words[w]) == 0;
        }
        for (int w = 0; w < 6; w++) {
            const double p = (of ? after_b : after_a)[w], off = count[w] - N * p, allowed = 5 * sqrt(N * p * (1 - p));
            ck_assert_msg(fabs(off) <= allowed, "behind %s: %s came %d times, expected %.0f", words[of], words[w], count[w],
                          N * p);
        }
    }
    lin_ngram_sampler_destroy(sampler);
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(test_sentences_begin_and_end)
{
    lin_ngram *lm;
    lin_ngram_sampler *sampler;
    OK(lin_ngram_parse(model, strlen(model), "test.arpa", &lm, &err));
    OK(lin_ngram_sampler_create(lm, &sampler, &err));
    lin_ngram_draws draws = {.key = 11};
    for (int i = 0; i < 1000; i++) {
        lin_ngram_state state = lin_ngram_begin(lm);
        int word, n = 0;
        while (!lin_ngram_sampler_draw(sampler, &draws, &state, &word)) {
            if (!n++) ck_assert_str_eq(lin_ngram_word(lm, word), "a"); // log P(a | <s>) = 0
            ck_assert_int_lt(n, 10000);
        }
        ck_assert_int_gt(n, 0);
    }
    lin_ngram_sampler_destroy(sampler);
    lin_ngram_destroy(lm);
}
END_TEST

// Every context lists every word, with half of the probability: the rest backs off to no word. The time is not exponential in the
// order.
START_TEST(test_probabilities_that_do_not_add_up)
{
    enum { ORDER = 7, MOST = 1 << 18 };
    char *text = malloc(MOST), *at = text;
    lin_ngram *lm;
    lin_ngram_sampler *sampler;
    at += sprintf(at, "\\data\\\nngram 1=3\n");
    for (int k = 2; k <= ORDER; k++) at += sprintf(at, "ngram %d=%d\n", k, 3 << (k - 1));
    at += sprintf(at, "\n\\1-grams:\n-0.78 a 0\n-0.78 b 0\n-0.78 </s> 0\n");
    for (int k = 2; k <= ORDER; k++) {
        at += sprintf(at, "\n\\%d-grams:\n", k);
        for (int context = 0; context < 1 << (k - 1); context++) {
            for (int last = 0; last < 3; last++) {
                at += sprintf(at, "-0.78");
                for (int i = 0; i < k - 1; i++) at += sprintf(at, " %c", 'a' + (context >> i & 1));
                at += sprintf(at, " %s\n", last == 2 ? "</s>" : last ? "b" : "a");
            }
        }
    }
    at += sprintf(at, "\n\\end\\\n");
    OK(lin_ngram_parse(text, (size_t)(at - text), "test.arpa", &lm, &err));
    OK(lin_ngram_sampler_create(lm, &sampler, &err));
    lin_ngram_draws draws = {.key = 11};
    lin_ngram_state state = LIN_NGRAM_EMPTY;
    for (int i = 0; i < 20; i++) {
        int word;
        if (lin_ngram_sampler_draw(sampler, &draws, &state, &word)) state = LIN_NGRAM_EMPTY;
    }
    ck_assert_uint_lt(draws.counter, 20 * 10000 * ORDER);
    lin_ngram_sampler_destroy(sampler);
    lin_ngram_destroy(lm);
    free(text);
}
END_TEST

START_TEST(test_no_memory_and_no_end)
{
    static const char endless[] = "\\data\\\nngram 1=1\n\n\\1-grams:\n0 a\n\n\\end\\\n";
    lin_error why = {0};
    lin_ngram *lm;
    lin_ngram_sampler *sampler;
    OK(lin_ngram_parse(model, strlen(model), "test.arpa", &lm, &err));
    FAIL_EVERY_ALLOCATION_OF(sampler, lin_ngram_sampler_create(lm, &sampler, &why), lin_ngram_sampler_destroy(sampler));
    lin_ngram_destroy(lm);
    OK(lin_ngram_parse(endless, strlen(endless), "test.arpa", &lm, &err));
    FAILS(lin_ngram_sampler_create(lm, &sampler, &err), LIN_UNSUPPORTED, "</s>");
    lin_ngram_destroy(lm);
}
END_TEST

TEST_MAIN("ngram_sample", TEST(test_frequencies), TEST(test_sentences_begin_and_end), TEST(test_probabilities_that_do_not_add_up),
          TEST(test_no_memory_and_no_end))
