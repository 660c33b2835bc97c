// train/learn/ngram_count, kneser_ney, ngram_draft and ngram_perplexity: against an independent implementation
// (tests/golden/ngram.py), sums over the vocabulary, small texts worked out by hand, hostile lines, failing allocations.
#include "train/learn/kneser_ney.h"

#include "train/learn/ngram_perplexity.h"
#include "lexicon/ngram.h"
#include "tests/lexicon/ngram_support.h"

static lin_ngram_count_options order_of(int order) { return (lin_ngram_count_options){.order = order, .unknown = 1}; }

/* ---- the golden file ------------------------------------------------------------------------------------------------------- */

typedef struct golden {
    char *text, *heldout;
    lin_ngram_draft draft;
    lin_kneser_ney_note notes[LIN_NGRAM_MAX_ORDER];
    int models, closed;
    long checked;
} golden;

static void begin_model(golden *g, const char *line)
{
    char name[32], minimum[64], vocabulary[512];
    lin_ngram_count_options how = {0};
    int unknown, n = 0;
    ck_assert_int_eq(sscanf(line, "model %31s %d %d %63s %511s", name, &how.order, &unknown, minimum, vocabulary), 5);
    how.unknown = unknown;
    how.occurrences = !strcmp(name, "absolute");
    for (char *at = minimum; n < how.order; n++) {
        how.minimum[n] = *at ? (uint32_t)strtoul(at, &at, 10) : 1;
        if (*at == ',') at++;
    }
    lin_ngram_draft_free(&g->draft);
    OK(try_model(&how, strcmp(vocabulary, "-") ? vocabulary : NULL, g->text, 1000, &g->draft, g->notes, &err));
    ck_assert_int_eq(g->draft.order, how.order);
    check_sums(&g->draft, 1e-9);
    g->models++;
    g->closed = !unknown;
}

static void check_order(const golden *g, const char *line)
{
    int k;
    unsigned long entries;
    double d[3];
    ck_assert_int_eq(sscanf(line, "order %d %lu %lf %lf %lf", &k, &entries, &d[0], &d[1], &d[2]), 5);
    ck_assert_uint_eq(g->draft.level[k - 1].n, entries);
    for (int i = 0; i < 3; i++) test_require(fabs(g->notes[k - 1].discounts[i] - d[i]) < 1e-9, "order %d: D%d", k, i + 1);
}

static void check_probability(golden *g, const char *line, size_t n)
{
    uint32_t words[LIN_NGRAM_MAX_ORDER + 2];
    double want = strtod(line + 2, NULL);
    const char *first = strchr(line + 2, ' ');
    int count = numbers_of(&g->draft, first, n - (size_t)(first - line), words);
    double got = lin_ngram_draft_logp(&g->draft, words, count);
    test_require(fabs(got - want) < 1e-9, "%.*s: %.12f", (int)n, line, got);
    g->checked++;
}

static lin_ngram_perplexity measure(const lin_ngram *lm, const char *text, int closed)
{
    lin_ngram_perplexity sum = {0};
    lin_lines lines = {0};
    lin_lines_begin(&lines, text, strlen(text));
    while (lin_lines_next(&lines)) {
        lin_ngram_perplexity one = {0};
        OK(lin_ngram_perplexity_line(lm, lines.text, lines.n, &one, &err));
        if (!closed || !one.unknown) lin_ngram_perplexity_add(&sum, &one);
    }
    return sum;
}

// Scores of the finished model, and of a model read from its ARPA text.
static void check_sum(golden *g, const char *line)
{
    unsigned long sentences;
    double want;
    char *text = arpa_of(&g->draft, 0);
    lin_ngram *lm[2];
    ck_assert_int_eq(sscanf(line, "sum %lu %lf", &sentences, &want), 2);
    OK(lin_ngram_parse(text, strlen(text), "x.arpa", &lm[0], &err));
    OK(lin_ngram_draft_finish(&g->draft, "x", &lm[1], &err));
    for (int i = 0; i < 2; i++) {
        lin_ngram_perplexity sum = measure(lm[i], g->heldout, g->closed);
        double got = sum.logp / log(10);
        ck_assert_uint_eq(sum.sentences, sentences);
        test_require(fabs(got - want) < 2e-5 * fabs(want), "%s: %.9f", i ? "finished" : "read", got);
        double events = (double)(sum.words - sum.unknown + sum.sentences);
        test_require(fabs(lin_ngram_perplexity_value(&sum, 1, 0) / pow(10, -got / events) - 1) < 1e-12, "perplexity");
        if (!i) continue;
        lin_ngram_draft_free(&g->draft);
        OK(lin_ngram_draft_of(lm[i], &g->draft, &err)); // and back, for the probabilities that follow
    }
    free(text);
    lin_ngram_destroy(lm[0]);
    lin_ngram_destroy(lm[1]);
}

START_TEST(golden_probabilities)
{
    golden g = {.text = golden_file(GOLDEN "ngram_text.txt"), .heldout = golden_file(GOLDEN "ngram_heldout.txt")};
    char *file = golden_file(GOLDEN "ngram_golden.txt");
    lin_lines lines = {0};
    const char *sum = NULL;
    for (lin_lines_begin(&lines, file, strlen(file)); lin_lines_next(&lines);) {
        if (!strncmp(lines.text, "model ", 6) || !strncmp(lines.text, "pruned ", 7)) {
            if (sum) check_sum(&g, sum); // last: the finished model has floats
            sum = NULL;
            if (lines.text[0] == 'p') break; // test_ngram_prune.c goes on here
            begin_model(&g, lines.text);
        }
        if (!strncmp(lines.text, "order ", 6)) check_order(&g, lines.text);
        if (!strncmp(lines.text, "sum ", 4)) sum = lines.text;
        if (!strncmp(lines.text, "p ", 2)) check_probability(&g, lines.text, lines.n);
    }
    ck_assert_int_eq(g.models, 9);
    ck_assert_int_eq(g.checked, 9 * 70);
    lin_ngram_draft_free(&g.draft);
    lin_free(g.text);
    lin_free(g.heldout);
    lin_free(file);
}
END_TEST

/* ---- counts ---------------------------------------------------------------------------------------------------------------- */

static uint32_t count_of(const lin_ngram_counts *counts, const char *gram)
{
    const char *at = gram, *word, *end = gram + strlen(gram);
    uint32_t words[LIN_NGRAM_MAX_ORDER];
    size_t n_word;
    int k = 0;
    while (lin_field_next(&at, end, &word, &n_word)) {
        int index = lin_symbols_find(&counts->words, word, n_word);
        if (index < 0) return 0;
        words[k++] = (uint32_t)index;
    }
    const lin_ngram_counted *level = &counts->level[k - 1];
    for (size_t i = 0; i < level->n; i++) {
        if (!memcmp(level->words + i * (size_t)k, words, (size_t)k * sizeof *words)) return level->count[i];
    }
    return 0;
}

START_TEST(counts_by_hand)
{
    lin_ngram_counts c;
    lin_ngram_count_options how = order_of(3);
    OK(try_count(&how, NULL, "a b a\na b\n\n  \nc a b\n", 100, &c, &err));
    ck_assert_uint_eq(c.n_lines, 5);
    ck_assert_uint_eq(c.n_words, 8);
    ck_assert_int_eq(c.words.n, 6);
    ck_assert_str_eq(lin_symbols_text(&c.words, 0), "</s>"); // in the order of their bytes
    ck_assert_str_eq(lin_symbols_text(&c.words, 3), "a");
    static const struct {
        const char *gram;
        uint32_t count;
    } want[] = {{"a", 3},          // after <s>, b, c
                {"b", 1},          // behind a
                {"c", 1},          // behind <s>
                {"</s>", 3},       // behind a, b, <s>
                {"<unk>", 0},      {"<s>", 0},
                {"<s> a", 2},      // how often
                {"<s> </s>", 2},   {"a b", 2}, // <s> a b, c a b
                {"b </s>", 1},     {"b a", 1},     {"<s> a b", 2}, {"a b </s>", 2},
                {"c a b", 1},      {"b a </s>", 1}, {"<s> c a", 1}, {"a b a", 1},
                {"<s> <s> a", 0},  {"b b", 0},     {"</s> <s>", 0}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ck_assert_msg(count_of(&c, want[i].gram) == want[i].count, "%s: %u", want[i].gram, count_of(&c, want[i].gram));
    }
    ck_assert_uint_eq(c.level[1].n, 8);
    ck_assert_uint_eq(c.level[2].n, 6);
    for (size_t i = 0; i < c.level[2].n; i++) { // the suffix link of each points to its suffix
        const uint32_t *words = c.level[2].words + 3 * i;
        ck_assert(!memcmp(words + 1, c.level[1].words + 2 * c.level[2].suffix[i], 2 * sizeof *words));
    }
    lin_ngram_counts_free(&c);
}
END_TEST

START_TEST(order_of_lines_does_not_matter)
{
    lin_ngram_draft a, b;
    lin_ngram_count_options how = order_of(4);
    OK(try_model(&how, NULL, "the cat sat\nthe dog sat down\na cat\nthe cat sat\n", 9, &a, NULL, &err));
    OK(try_model(&how, NULL, "a cat\nthe cat sat\r\nthe dog sat\tdown\nthe  cat sat", 9, &b, NULL, &err));
    char *x = arpa_of(&a, 0), *y = arpa_of(&b, 0);
    ck_assert_str_eq(x, y);
    free(x);
    free(y);
    lin_ngram_draft_free(&a);
    lin_ngram_draft_free(&b);
}
END_TEST

START_TEST(orders_that_do_not_exist)
{
    lin_ngram_draft d;
    lin_kneser_ney_note notes[LIN_NGRAM_MAX_ORDER];
    lin_ngram_count_options how = order_of(9);
    OK(try_model(&how, NULL, "a\nb\n", 9, &d, notes, &err));
    ck_assert_int_eq(d.order, 3); // <s> a </s>
    ck_assert_int_eq(notes[0].fallback, 1);
    check_sums(&d, 1e-12);
    lin_ngram_draft_free(&d);
    how = order_of(4);
    how.minimum[0] = 1;
    how.minimum[1] = how.minimum[2] = how.minimum[3] = 3;
    OK(try_model(&how, NULL, "a b\na c\na d\na b\n", 9, &d, notes, &err));
    ck_assert_int_eq(d.order, 2);
    ck_assert_uint_eq(d.level[1].n, 1); // <s> a
    check_sums(&d, 1e-12);
    lin_ngram_draft_free(&d);
}
END_TEST

/* ---- words outside --------------------------------------------------------------------------------------------------------- */

START_TEST(unknown_words)
{
    lin_ngram_counts c;
    lin_ngram_count_options how = order_of(2);
    OK(try_count(&how, "a,b,<unk>,<s>,never", "a b x\n<unk> y <UNK>\n", 9, &c, &err));
    ck_assert_uint_eq(c.n_unknown, 4);
    ck_assert_uint_eq(count_of(&c, "<unk>"), 3); // behind b, <s>, <unk>
    ck_assert_uint_eq(count_of(&c, "<unk> <unk>"), 2);
    ck_assert_int_ge(lin_symbols_find(&c.words, "never", 5), 0);
    ck_assert_int_eq(lin_symbols_find(&c.words, "x", 1), -1);
    lin_ngram_counts_free(&c);
    how.minimum[0] = how.minimum[1] = 2;
    OK(try_count(&how, NULL, "a b a\nb a c\n", 9, &c, &err));
    ck_assert_uint_eq(c.n_unknown, 1);
    ck_assert_uint_eq(count_of(&c, "a <unk>"), 1);
    lin_ngram_counts_free(&c);
    how = (lin_ngram_count_options){.order = 2};
    OK(try_count(&how, NULL, "a b\n", 9, &c, &err));
    ck_assert_int_eq(c.unknown, -1);
    ck_assert_int_eq(c.words.n, 4);
    lin_ngram_counts_free(&c);
    FAILS(try_count(&how, "a,b", "a c\n", 9, &c, &err), LIN_FORMAT, "'c' is not in the vocabulary");
    FAILS(try_count(&how, NULL, "a <unk>\n", 9, &c, &err), LIN_FORMAT, "no <unk>");
}
END_TEST

START_TEST(perplexity_of_unknown_words)
{
    static const char open_arpa[] = "\\data\\\nngram 1=5\n\\1-grams:\n-1 <unk>\n-99 <s>\n-0.5 </s>\n-2 a\n-99 b\n\\end\\\n";
    lin_ngram *lm;
    lin_ngram_perplexity sum = {0};
    OK(lin_ngram_parse(open_arpa, sizeof open_arpa - 1, "x", &lm, &err));
    OK(lin_ngram_perplexity_line(lm, "a z b <unk>", 11, &sum, &err));
    ck_assert_uint_eq(sum.words, 4);
    ck_assert_uint_eq(sum.unknown, 2);
    ck_assert_uint_eq(sum.impossible, 1);
    ck_assert_double_eq_tol(sum.logp, -2.5 * log(10), 1e-6);
    ck_assert_double_eq_tol(sum.logp_unknown, -2 * log(10), 1e-6);
    ck_assert_double_eq_tol(lin_ngram_perplexity_value(&sum, 1, 0), pow(10, 2.5 / 2), 1e-4);
    ck_assert_double_eq_tol(lin_ngram_perplexity_value(&sum, 0, 0), pow(10, 2.5), 1e-3);
    ck_assert_double_eq_tol(lin_ngram_perplexity_value(&sum, 1, 1), pow(10, 4.5 / 4), 1e-4);
    // <UNK> in upper case, as some toolkits write it.
    static const char upper[] = "\\data\\\nngram 1=2\n\\1-grams:\n-1 <UNK>\n-2 a\n\\end\\\n";
    lin_ngram *shouted;
    lin_ngram_perplexity other = {0};
    OK(lin_ngram_parse(upper, sizeof upper - 1, "x", &shouted, &err));
    OK(lin_ngram_perplexity_line(shouted, "a z <UNK>", 9, &other, &err));
    ck_assert_uint_eq(other.unknown, 2);
    ck_assert_double_eq_tol(other.logp_unknown, -2 * log(10), 1e-6);
    lin_ngram_destroy(shouted);
    FAILS(lin_ngram_perplexity_line(lm, "a </s> a", 8, &sum, &err), LIN_FORMAT, "marks an end");
    ck_assert_uint_eq(sum.words, 4);
    lin_ngram_destroy(lm);
    sum = (lin_ngram_perplexity){0};
    ck_assert(isnan(lin_ngram_perplexity_value(&sum, 1, 1)));
    static const char bare[] = "\\data\\\nngram 1=1\n\\1-grams:\n-2 a\n\\end\\\n";
    OK(lin_ngram_parse(bare, sizeof bare - 1, "x", &lm, &err));
    OK(lin_ngram_perplexity_line(lm, "a b", 3, &sum, &err));
    ck_assert_uint_eq(sum.ends, 0);
    ck_assert(isinf(sum.logp_unknown));
    ck_assert_double_eq_tol(lin_ngram_perplexity_value(&sum, 1, 0), 100, 1e-3);
    lin_ngram_destroy(lm);
}
END_TEST

/* ---- refused --------------------------------------------------------------------------------------------------------------- */

START_TEST(bad_options)
{
    lin_ngram_counter *counter;
    lin_ngram_count_options how = order_of(0);
    FAILS(lin_ngram_counter_create(&how, &counter, &err), LIN_INVALID, "an order of 0 is not in 1 .. 9");
    ck_assert_ptr_null(counter);
    how = order_of(10);
    FAILS(lin_ngram_counter_create(&how, &counter, &err), LIN_INVALID, "an order of 10");
    how = order_of(3);
    how.minimum[1] = 3;
    how.minimum[2] = 2;
    FAILS(lin_ngram_counter_create(&how, &counter, &err), LIN_INVALID, "of 3-grams, 2, is below that of 2-grams, 3");
    how = (lin_ngram_count_options){.order = 1, .minimum = {2}};
    FAILS(lin_ngram_counter_create(&how, &counter, &err), LIN_INVALID, "<unk>");
    lin_ngram_counter_destroy(NULL);
}
END_TEST

// A bad line is refused completely: the counts are those of the lines before and after it.
START_TEST(bad_lines)
{
    lin_ngram_counter *counter;
    lin_ngram_count_options how = order_of(3);
    lin_ngram_counts c;
    static char longest[LIN_NGRAM_LINE_MAX + 2];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 5; i < sizeof longest; i += 6) longest[i] = ' ';
    OK(lin_ngram_counter_create(&how, &counter, &err));
    FAILS(lin_ngram_counter_line(counter, "x\001y", 3, &err), LIN_FORMAT, "control character (1) at byte 2");
    FAILS(lin_ngram_counter_line(counter, "x\0y", 3, &err), LIN_FORMAT, "control character (0) at byte 2");
    FAILS(lin_ngram_counter_line(counter, "x <s> y", 7, &err), LIN_FORMAT, "<s> marks an end");
    FAILS(lin_ngram_counter_line(counter, "x y </s>", 8, &err), LIN_FORMAT, "</s> marks an end");
    FAILS(lin_ngram_counter_line(counter, longest, sizeof longest, &err), LIN_FORMAT, "1048578 bytes, over 1048576");
    memset(longest, 'a', 256);
    longest[256] = ' ';
    FAILS(lin_ngram_counter_line(counter, longest, 300, &err), LIN_FORMAT, "has 256 bytes, over 255");
    FAILS(lin_ngram_counter_finish(counter, &c, &err), LIN_FORMAT, "no word");
    OK(lin_ngram_counter_line(counter, "", 0, &err));
    FAILS(lin_ngram_counter_finish(counter, &c, &err), LIN_FORMAT, "no word");
    OK(lin_ngram_counter_line(counter, "a b", 3, &err));
    FAILS(lin_ngram_counter_line(counter, "z <s>", 5, &err), LIN_FORMAT, "<s>");
    OK(lin_ngram_counter_line(counter, longest, 255, &err));
    FAILS(lin_ngram_counter_word(counter, "a b", 3, &err), LIN_FORMAT, "'a b' is not a word");
    FAILS(lin_ngram_counter_word(counter, "", 0, &err), LIN_FORMAT, "'' is not a word");
    OK(lin_ngram_counter_finish(counter, &c, &err));
    ck_assert_uint_eq(c.n_lines, 3);
    ck_assert_uint_eq(c.n_words, 3);
    ck_assert_int_eq(lin_symbols_find(&c.words, "z", 1), -1);
    lin_ngram_counts_free(&c);
    lin_ngram_counter_destroy(counter);
}
END_TEST

// A line with an out-of-vocabulary word is left out completely: its other words are not counted.
START_TEST(bad_words)
{
    lin_ngram_counter *counter;
    lin_ngram_count_options how = {.order = 2};
    lin_ngram_counts c;
    OK(lin_ngram_counter_create(&how, &counter, &err));
    OK(lin_ngram_counter_word(counter, "a", 1, &err));
    OK(lin_ngram_counter_line(counter, "a", 1, &err));
    FAILS(lin_ngram_counter_line(counter, "a a x a", 7, &err), LIN_FORMAT, "'x' is not in the vocabulary");
    OK(lin_ngram_counter_finish(counter, &c, &err));
    ck_assert_uint_eq(c.n_words, 1);
    ck_assert_uint_eq(c.n_lines, 1);
    ck_assert_uint_eq(c.level[1].n, 2);
    lin_ngram_counts_free(&c);
    lin_ngram_counter_destroy(counter);
}
END_TEST

START_TEST(bad_files)
{
    lin_ngram_draft d;
    lin_ngram_count_options how = order_of(2);
    OK(try_model(&how, NULL, "a b c\n", 9, &d, NULL, &err));
    FILE *full = fopen("/dev/full", "wb");
    if (full) {
        FAILS(lin_ngram_draft_write_arpa(&d, 0, full, "x.arpa", &err), LIN_IO, "cannot write x.arpa: ");
        fclose(full);
    }
    d.level[1].words[2] = (uint32_t)d.end; // a context that does not exist
    uint32_t swap = d.level[1].words[0];
    d.level[1].words[0] = 4000;
    FAILS(lin_ngram_draft_link(&d, &err), LIN_FORMAT, "2-gram");
    d.level[1].words[0] = swap;
    d.level[1].words[2] = d.level[1].words[0];
    d.level[1].words[3] = d.level[1].words[1];
    FAILS(lin_ngram_draft_link(&d, &err), LIN_FORMAT, "2-grams are not sorted, or one appears twice");
    lin_ngram_draft_free(&d);
    lin_ngram_draft_free(&d);
}
END_TEST

START_TEST(numbers_in_arpa)
{
    lin_ngram_draft d;
    lin_ngram_count_options how = {.order = 1};
    OK(try_model(&how, NULL, "a b c\n", 9, &d, NULL, &err));
    static const double values[] = {-0.00000004, -1234.5, -0.12345678, 2, -0.1};
    for (int i = 0; i < 5; i++) d.level[0].logp[i] = values[i];
    char *text = arpa_of(&d, 0);
    ck_assert_str_eq(text, "\\data\\\nngram 1=5\n\n\\1-grams:\n0\t</s>\n-1234.5\t<s>\n-0.1234568\ta\n2\tb\n-0.1\tc\n\n\\end\\\n");
    free(text);
    lin_ngram_draft_free(&d);
}
END_TEST

static lin_status whole_way(lin_ngram **lm, lin_error *err)
{
    lin_ngram_draft draft = {0};
    lin_ngram_count_options how = order_of(3);
    *lm = NULL;
    lin_status status = try_model(&how, "b,a,c,d,e", "a b c\nd e x y a\nb a\n", 9, &draft, NULL, err);
    if (status == LIN_OK) {
        status = lin_ngram_draft_finish(&draft, "x", lm, err);
        ck_assert(!draft.order && !draft.words.n && !draft.level[0].logp); // whether it failed or not
    }
    if (status == LIN_OK) status = lin_ngram_draft_of(*lm, &draft, err);
    lin_ngram_draft_free(&draft);
    if (status != LIN_OK) lin_ngram_destroy(*lm);
    return status;
}

START_TEST(failing_allocations)
{
    lin_ngram *lm;
    FAIL_EVERY_ALLOCATION(whole_way(&lm, NULL), lin_ngram_destroy(lm));
}
END_TEST

TEST_MAIN("kneser_ney", TEST(golden_probabilities), TEST(counts_by_hand), TEST(order_of_lines_does_not_matter),
          TEST(orders_that_do_not_exist), TEST(unknown_words), TEST(perplexity_of_unknown_words), TEST(bad_options),
          TEST(bad_lines), TEST(bad_words), TEST(bad_files), TEST(numbers_in_arpa), TEST(failing_allocations))
