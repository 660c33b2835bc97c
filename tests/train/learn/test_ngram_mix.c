// train/learn/ngram_mix: against tests/golden/ngram_mix.py, against both models one by one, sums over the vocabulary, failing
// allocations.
#include "train/learn/ngram_mix.h"

#include "tests/lexicon/ngram_support.h"

// A model of lines first .. end - 1 of the golden text.
static lin_ngram *model_of(int order, int first, int end, int unknown)
{
    char *text = golden_file(GOLDEN "ngram_text.txt"), *from = text;
    lin_ngram_count_options how = {.order = order, .unknown = unknown};
    lin_ngram_draft draft;
    lin_ngram *lm;
    for (int i = 0; i < first; i++) from = strchr(from, '\n') + 1;
    OK(try_model(&how, NULL, from, end - first, &draft, NULL, &err));
    OK(lin_ngram_draft_finish(&draft, "x", &lm, &err));
    lin_free(text);
    return lm;
}

static lin_ngram *parsed(const char *arpa)
{
    lin_ngram *lm;
    OK(lin_ngram_parse(arpa, strlen(arpa), "x", &lm, &err));
    return lm;
}

// Finished models have probabilities as floats: 1e-6 of a logarithm that is up to 10.
START_TEST(golden_mix)
{
    char *file = golden_file(GOLDEN "ngram_mix.txt"), *text = golden_file(GOLDEN "ngram_heldout.txt");
    lin_ngram *a = model_of(3, 0, 150, 1), *b = model_of(4, 150, 260, 1);
    lin_ngram_fit fit = {.a = a, .b = b};
    lin_ngram_draft draft = {0};
    lin_lines lines = {0};
    int models = 0, checked = 0;
    for (lin_lines_begin(&lines, text, strlen(text)); lin_lines_next(&lines);)
        OK(lin_ngram_fit_line(&fit, lines.text, lines.n, &err));
    for (lin_lines_begin(&lines, file, strlen(file)); lin_lines_next(&lines);) {
        if (!strncmp(lines.text, "weight ", 7)) {
            const double want = strtod(lines.text + 7, NULL), got = lin_ngram_fit_weight(&fit);
            test_require(fabs(got - want) < 1e-5, "weight %.9f, not %.9f", got, want);
            ck_assert(lin_ngram_fit_perplexity(&fit, got) <= lin_ngram_fit_perplexity(&fit, 0.5));
            ck_assert(lin_ngram_fit_perplexity(&fit, got) < lin_ngram_fit_perplexity(&fit, 1));
        } else if (!strncmp(lines.text, "mix ", 4)) {
            char *at;
            const double weight = strtod(lines.text + 4, &at);
            lin_ngram_draft_free(&draft);
            OK(lin_ngram_mix(a, b, weight, &draft, &err));
            ck_assert_int_eq(draft.order, 4);
            for (int k = 1; k <= 4; k++) ck_assert_uint_eq(draft.level[k - 1].n, strtoul(at, &at, 10));
            check_sums(&draft, 1e-6);
            models++;
        } else if (models && !strncmp(lines.text, "p ", 2)) {
            uint32_t words[LIN_NGRAM_MAX_ORDER];
            const double want = strtod(lines.text + 2, NULL);
            const char *first = strchr(lines.text + 2, ' ');
            const double got =
                lin_ngram_draft_logp(&draft, words, numbers_of(&draft, first, lines.n - (size_t)(first - lines.text), words));
            test_require(fabs(got - want) < 2e-6, "%.*s: %.12f", (int)lines.n, lines.text, got);
            checked++;
        }
    }
    ck_assert_int_eq(models, 2);
    ck_assert_int_gt(checked, 120);
    lin_ngram_draft_free(&draft);
    lin_ngram_fit_free(&fit);
    lin_ngram_destroy(a);
    lin_ngram_destroy(b);
    lin_free(file);
    lin_free(text);
}
END_TEST

// P of the last of n words by a finished model, word by word as a search does it.
static double searched(const lin_ngram *lm, const lin_ngram_draft *names, const uint32_t *words, int n)
{
    const int begins = (int)words[0] == names->begin;
    lin_ngram_state state = begins ? lin_ngram_begin(lm) : LIN_NGRAM_EMPTY;
    float logp = 0;
    for (int i = begins; i < n; i++) {
        const char *text = lin_symbols_text(&names->words, (int)words[i]);
        const int word = lin_ngram_find(lm, text, strlen(text));
        if (i == n - 1 && word < 0) return 0;
        logp = lin_ngram_score(lm, state, word, &state);
    }
    return exp((double)logp);
}

// Every n-gram of the mix has the weighted sum of what both models give when they are asked, and the finished mix gives the same.
static void check_exact(const lin_ngram *a, const lin_ngram *b, double weight)
{
    lin_ngram_draft draft;
    lin_ngram *lm, *parts[2] = {(lin_ngram *)a, (lin_ngram *)b};
    OK(lin_ngram_mix(a, b, weight, &draft, &err));
    for (int k = 1; k <= draft.order; k++) {
        const lin_ngram_draft_level *level = &draft.level[k - 1];
        for (size_t i = 0; i < level->n; i++) {
            const uint32_t *words = level->words + i * (size_t)k;
            if (k == 1 && (int)words[0] == draft.begin) continue;
            double want = 0;
            for (int s = 0; s < 2; s++) want += (s ? 1 - weight : weight) * searched(parts[s], &draft, words, k);
            if (want > 0) test_require(fabs(level->logp[i] - log10(want)) < 1e-5, "%d-gram %zu: %g", k, i, level->logp[i]);
        }
        ck_assert_uint_ge(level->n, (size_t)lin_ngram_count(a, k <= lin_ngram_order(a) ? k : 1) * (k <= lin_ngram_order(a)));
    }
    OK(lin_ngram_draft_finish(&draft, "x", &lm, &err));
    ck_assert_int_eq(lin_ngram_order(lm), lin_ngram_order(a) > lin_ngram_order(b) ? lin_ngram_order(a) : lin_ngram_order(b));
    lin_ngram_destroy(lm);
}

START_TEST(exact)
{
    lin_ngram *a = model_of(3, 0, 150, 1), *b = model_of(2, 100, 260, 0), *c = model_of(1, 0, 20, 1);
    static const double weights[] = {0, 0.1, 0.5, 0.9, 1};
    for (int i = 0; i < 5; i++) {
        check_exact(a, b, weights[i]);
        check_exact(c, a, weights[i]);
    }
    lin_ngram_destroy(a);
    lin_ngram_destroy(b);
    lin_ngram_destroy(c);
}
END_TEST

// A word that a model lacks is its <unk> in contexts, as in a search.
START_TEST(unknown_in_contexts)
{
    lin_ngram *a = parsed("\\data\\\nngram 1=3\nngram 2=2\n\\1-grams:\n-0.4 a -0.1\n-0.5 b -0.2\n-0.6 <unk> -0.3\n\\2-grams:\n"
                          "-0.1 <unk> a\n-0.9 b a\n\\end\\\n");
    lin_ngram *b = parsed("\\data\\\nngram 1=3\nngram 2=2\n\\1-grams:\n-0.4 a -0.1\n-0.5 z -0.2\n-0.6 <unk> -0.3\n\\2-grams:\n"
                          "-0.7 z a\n-0.8 a z\n\\end\\\n");
    check_exact(a, b, 0.4);
    check_exact(b, a, 0.4);
    lin_ngram_destroy(a);
    lin_ngram_destroy(b);
}
END_TEST

// Models of other tools: sums over 1, contexts with all words, no common word, no <s> or </s>, another name of <unk>.
START_TEST(models_of_others)
{
    lin_ngram *full = parsed("\\data\\\nngram 1=3\nngram 2=4\n\\1-grams:\n-0.301 a -0.5\n-0.301 b 0\n-99 c -0.3\n"
                             "\\2-grams:\n-0.3 a a\n-0.3 a b\n-0.0001 b a\n-1 c b\n\\end\\\n");
    lin_ngram *other = parsed("\\data\\\nngram 1=3\n\\1-grams:\n-0.3 x\n-0.3 y\n-1 <unk>\n\\end\\\n");
    lin_ngram *upper = parsed("\\data\\\nngram 1=2\n\\1-grams:\n-0.3 x\n-1 <UNK>\n\\end\\\n");
    lin_ngram_draft draft;
    OK(lin_ngram_mix(full, other, 0.5, &draft, &err));
    for (int k = 1; k <= draft.order; k++) {
        for (size_t i = 0; i < draft.level[k - 1].n; i++) {
            ck_assert(isfinite(draft.level[k - 1].logp[i]) && draft.level[k - 1].logp[i] <= 0);
            ck_assert(!draft.level[k - 1].backoff || isfinite(draft.level[k - 1].backoff[i]));
        }
    }
    ck_assert_uint_eq(draft.level[0].n, 6);
    ck_assert_int_ge(draft.unknown, 0);
    lin_ngram_draft_free(&draft);
    FAILS(lin_ngram_mix(other, upper, 0.5, &draft, &err), LIN_MISMATCH, "unknown words <unk> and the other <UNK>");
    FAILS(lin_ngram_mix(full, other, 1.5, &draft, &err), LIN_INVALID, "a weight of 1.5 is not from 0 to 1");
    FAILS(lin_ngram_mix(full, other, NAN, &draft, &err), LIN_INVALID, "is not from 0 to 1");
    lin_ngram_fit fit = {.a = full, .b = other};
    ck_assert(lin_ngram_fit_weight(&fit) == 0.5);
    ck_assert(isnan(lin_ngram_fit_perplexity(&fit, 0.5)));
    OK(lin_ngram_fit_line(&fit, "a b q", 5, &err));
    ck_assert(lin_ngram_fit_weight(&fit) == 1);
    ck_assert_uint_eq(fit.only_a, 2);
    ck_assert_uint_eq(fit.unknown, 1);
    FAILS(lin_ngram_fit_line(&fit, "a <s>", 5, &err), LIN_FORMAT, "<s>");
    lin_ngram_fit_free(&fit);
    lin_ngram_destroy(full);
    lin_ngram_destroy(other);
    lin_ngram_destroy(upper);
}
END_TEST

START_TEST(failing_allocations)
{
    lin_ngram *a = model_of(2, 0, 20, 1), *b = model_of(3, 20, 40, 1);
    lin_ngram_draft draft;
    lin_ngram_fit fit = {.a = a, .b = b};
    FAIL_EVERY_ALLOCATION(lin_ngram_mix(a, b, 0.4, &draft, NULL), lin_ngram_draft_free(&draft));
    FAIL_EVERY_ALLOCATION(lin_ngram_fit_line(&fit, "w01 w02", 7, NULL), lin_ngram_fit_free(&fit));
    lin_ngram_destroy(a);
    lin_ngram_destroy(b);
}
END_TEST

TEST_MAIN("ngram_mix", TEST(golden_mix), TEST(exact), TEST(unknown_in_contexts), TEST(models_of_others),
          TEST(failing_allocations))
