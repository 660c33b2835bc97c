// Pruning of train/learn/ngram_draft: the divergences of tests/golden/ngram.py, sums over the vocabulary, failing allocations.
#include "train/learn/ngram_draft.h"

#include "tests/lexicon/ngram_support.h"

static void make(int order, const char *text, int most, lin_ngram_draft *draft)
{
    lin_ngram_count_options how = {.order = order, .unknown = 1};
    OK(try_model(&how, NULL, text, most, draft, NULL, &err));
}

START_TEST(golden_pruned)
{
    char *text = golden_file(GOLDEN "ngram_text.txt"), *file = golden_file(GOLDEN "ngram_golden.txt");
    lin_ngram_draft draft = {0};
    lin_lines lines = {0};
    int models = 0, checked = 0;
    for (lin_lines_begin(&lines, file, strlen(file)); lin_lines_next(&lines);) {
        if (!strncmp(lines.text, "pruned ", 7)) {
            char *at;
            int order = (int)strtol(lines.text + 7, &at, 10);
            double threshold = strtod(at, &at);
            lin_ngram_draft_free(&draft);
            make(order, text, 60, &draft);
            OK(lin_ngram_prune(&draft, threshold, &err));
            for (int k = 1; k <= draft.order; k++) ck_assert_uint_eq(draft.level[k - 1].n, strtoul(at, &at, 10));
            ck_assert_int_eq(*at, '\n');
            check_sums(&draft, 1e-9);
            models++;
        } else if (models && !strncmp(lines.text, "p ", 2)) {
            uint32_t words[LIN_NGRAM_MAX_ORDER];
            double want = strtod(lines.text + 2, NULL);
            const char *first = strchr(lines.text + 2, ' ');
            double got =
                lin_ngram_draft_logp(&draft, words, numbers_of(&draft, first, lines.n - (size_t)(first - lines.text), words));
            test_require(fabs(got - want) < 1e-9, "%.*s: %.12f", (int)lines.n, lines.text, got);
            checked++;
        }
    }
    ck_assert_int_eq(models, 6);
    ck_assert_int_eq(checked, 6 * 40);
    lin_ngram_draft_free(&draft);
    lin_free(text);
    lin_free(file);
}
END_TEST

// Threshold 0 removes only n-grams without effect; a higher one removes more; a pruned model can be written and read.
START_TEST(all_thresholds)
{
    char *text = golden_file(GOLDEN "ngram_text.txt");
    lin_ngram_draft draft;
    lin_ngram *lm;
    size_t last = SIZE_MAX;
    static const double thresholds[] = {0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, INFINITY};
    for (int i = 0; i < 7; i++) {
        make(4, text, 200, &draft);
        size_t unigrams = draft.level[0].n, all = 0;
        OK(lin_ngram_prune(&draft, thresholds[i], &err));
        for (int k = 1; k <= draft.order; k++) all += draft.level[k - 1].n;
        ck_assert_uint_le(all, last);
        last = all;
        ck_assert_uint_eq(draft.level[0].n, unigrams);
        if (i == 6) ck_assert_int_eq(draft.order, 1);
        OK(lin_ngram_draft_finish(&draft, "x", &lm, &err));
        OK(lin_ngram_draft_of(lm, &draft, &err));
        check_sums(&draft, 1e-4); // floats, and codes
        lin_ngram_destroy(lm);
        lin_ngram_draft_free(&draft);
    }
    make(2, text, 20, &draft);
    FAILS(lin_ngram_prune(&draft, -1, &err), LIN_INVALID, "a threshold of -1");
    FAILS(lin_ngram_prune(&draft, NAN, &err), LIN_INVALID, "is not 0 or more");
    lin_ngram_draft_free(&draft);
    lin_free(text);
}
END_TEST

// Models of other tools: rounded numbers, contexts with all words (no probability left for back-off), no </s>, no <s>.
START_TEST(models_of_others)
{
    static const char full[] =
        "\\data\\\nngram 1=3\nngram 2=4\n\\1-grams:\n-0.301 a -0.5\n-0.301 b 0\n-99 c -0.3\n\\2-grams:\n-0.3 a a\n"
        "-0.3 a b\n-0.0001 b a\n-1 c b\n\\end\\\n";
    static const double thresholds[] = {0, 1e-3, 0.1, 1};
    for (int i = 0; i < 4; i++) {
        lin_ngram *lm;
        lin_ngram_draft draft;
        OK(lin_ngram_parse(full, sizeof full - 1, "x", &lm, &err));
        OK(lin_ngram_draft_of(lm, &draft, &err));
        OK(lin_ngram_prune(&draft, thresholds[i], &err));
        for (int k = 1; k <= draft.order; k++) {
            for (size_t j = 0; j < draft.level[k - 1].n; j++) {
                ck_assert(isfinite(draft.level[k - 1].logp[j]));
                ck_assert(!draft.level[k - 1].backoff || isfinite(draft.level[k - 1].backoff[j]));
            }
        }
        lin_ngram_draft_free(&draft);
        lin_ngram_destroy(lm);
    }
}
END_TEST

START_TEST(failing_allocations)
{
    lin_ngram_draft draft;
    unsigned long live = lin_memory_live(), k = 0;
    make(3, "a b c\na b d\nc a b\n", 9, &draft);
    char *before = arpa_of(&draft, 0);
    for (lin_status status = LIN_NO_MEMORY; status != LIN_OK;) {
        lin_memory_fail_at(++k);
        status = lin_ngram_prune(&draft, 1e-4, NULL);
        lin_memory_fail_at(0);
        ck_assert(status == LIN_OK || status == LIN_NO_MEMORY);
        if (status == LIN_OK) break;
        char *after = arpa_of(&draft, 0);
        ck_assert_str_eq(before, after);
        free(after);
    }
    ck_assert_uint_gt(k, 9);
    free(before);
    lin_ngram_draft_free(&draft);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

TEST_MAIN("ngram_prune", TEST(golden_pruned), TEST(all_thresholds), TEST(models_of_others), TEST(failing_allocations))
