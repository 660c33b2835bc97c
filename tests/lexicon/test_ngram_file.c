// lexicon/ngram_file.c: errors in an ARPA file are reported with the line; unusual valid files; written files read back equal.
// Packed files written and mapped, damage refused, code books that round. tests/fuzz/fuzz_ngram.c forges files.
#include <locale.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"
#include "lexicon/ngram_file.h"
#include "tests/lexicon/ngram_support.h"
#include "tests/lexicon/random_model.h"

static const char *path;

static void setup(void) { path = test_path("x.lm"); }

static void teardown(void) { ck_assert_uint_eq(lin_memory_live(), 0); }

/* ---- ARPA text ------------------------------------------------------------------------------------------------------------- */

static lin_status parse(const char *text, lin_ngram **lm, lin_error *err)
{
    return lin_ngram_parse(text, strlen(text), "x.arpa", lm, err);
}

// Line 1 is \data\, 5 the heading of the 1-grams, 6 and 7 "a" and "b", 8 that of the 2-grams, 9 "a b".
static const char good[] = "\\data\\\nngram 1=2\nngram 2=1\n\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n\\end\\\n";

/* ---- refused --------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *from, *to; // changed in the good text
    const char *says;
} bad[] = {
    {"\\data\\", "\\date\\", "x.arpa: no line '\\data\\'"},
    {"ngram 1=2\nngram 2=1\n", "", "x.arpa:3: no counts"},
    {"ngram 1=2\nngram 2=1\n\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n\\end\\\n", "ngram 1=2\n",
     "x.arpa:2: the file ends after 1 counts"},
    {"ngram 1=2", "ngram 1=0", "x.arpa:5: a model without words"},
    {"ngram 1=2", "ngram 2=2", "x.arpa:2: the line counts 2-grams, but 1-grams were expected"},
    {"ngram 2=1", "ngram 3=1", "x.arpa:3: the line counts 3-grams, but 2-grams were expected"},
    {"ngram 1=2", "ngram 1=two", "x.arpa:2: 'ngram 1=two' is not like"},
    {"ngram 1=2", "ngram 1=-2", "x.arpa:2: 'ngram 1=-2' is not like"},
    {"ngram 1=2", "ngram 1=2 or so", "x.arpa:2: 'ngram 1=2 or so' is not like"},
    {"ngram 1=2", "ngram 1 2", "x.arpa:2:"},
    {"ngram 1=2", "ngrams 1=2", "x.arpa:2:"},
    {"ngram 1=2", "ngram =2", "x.arpa:2:"},
    {"ngram 1=2", "ngram 1", "x.arpa:2:"},
    {"ngram 1=2", "ngram 1=99999999999", "x.arpa:2: 99999999999 1-grams are announced, but the rest of the file can hold only"},
    {"ngram 1=2", "ngram 1=99999999999999999999999999999999", "x.arpa:2: "},
    {"ngram 2=1", "ngram 2=1000", "x.arpa:3: 1000 2-grams are announced"},
    {"ngram 1=2", "ngram 1=3", "x.arpa:8: 3 1-grams were announced, but there are 2"},
    {"ngram 1=2", "ngram 1=1", "x.arpa:7: there are more 1-grams than the 1 that were announced"},
    {"ngram 2=1", "ngram 2=2", "x.arpa:10: 2 2-grams were announced, but there are 1"},
    {"ngram 2=1", "ngram 2=0", "x.arpa:9: there are more 2-grams than the 0"},
    {"\\1-grams:", "\\2-grams:", "x.arpa:5: '\\2-grams:', but '\\1-grams:' was expected"},
    {"\\2-grams:", "\\3-grams:", "x.arpa:8: '\\3-grams:', but '\\2-grams:' was expected"},
    {"\\2-grams:", "\\end\\", "x.arpa:8: '\\end\\', but '\\2-grams:' was expected"},
    {"\\end\\", "\\3-grams:", "x.arpa:10: '\\3-grams:', but '\\end\\' was expected"},
    {"\\end\\", "\\ende\\", "x.arpa:10: '\\ende\\', but '\\end\\' was expected"},
    {"\n\\end\\\n", "\n", "x.arpa:9: the file ends after 1 of 1 2-grams and without \\end\\; it is truncated"},
    {"-2 b\n\\2-grams:\n-0.25 a b\n\\end\\\n", "-2 b\n-", "x.arpa:8: there are more 1-grams"},
    {"-1 a -0.5", "nan a -0.5", "x.arpa:6: 'nan' is not a number"},
    {"-1 a -0.5", "-inf a -0.5",
     "x.arpa:6: '-inf' is not a number; a line begins with the logarithm to base 10 of a probability, -99 for 0"},
    {"-1 a -0.5", "-1e999 a -0.5", "x.arpa:6: '-1e999' is not a number"},
    {"-1 a -0.5", "- a -0.5", "x.arpa:6: '-' is not a number"},
    {"-1 a -0.5", ". a -0.5", "x.arpa:6: '.' is not a number"},
    {"-1 a -0.5", "-1.2.3 a -0.5", "x.arpa:6: '-1.2.3' is not a number"},
    {"-1 a -0.5", "-1,5 a -0.5", "x.arpa:6: '-1,5' is not a number"},
    {"-1 a -0.5", "0.5 a -0.5", "x.arpa:6: '0.5' is the logarithm of a probability over 1"},
    {"-1 a -0.5", "0.0011 a -0.5", "x.arpa:6: '0.0011' is the logarithm of a probability over 1"},
    {"-1 a -0.5", "-1 a nan", "x.arpa:6: 'nan' is not a back-off weight"},
    {"-1 a -0.5", "-1 a inf", "x.arpa:6: 'inf' is not a back-off weight"},
    {"-1 a -0.5", "-1 a 99.5", "x.arpa:6: '99.5' is not a back-off weight"},
    {"-1 a -0.5", "-1 a a", "x.arpa:6: 'a' is not a back-off weight (a logarithm to base 10); is there a blank in a word?"},
    {"-1 a -0.5", "-1 a -0.5 -0.5", "x.arpa:6: there is text after the back-off weight of a 1-gram"},
    {"-1 a -0.5", "-1", "x.arpa:6: the line has 0 of the 1 words of a 1-gram"},
    {"-1 a -0.5", "-1 a\x01", "x.arpa:6: the word 'a?' contains control characters"},
    {"-2 b", "-2 a", "x.arpa:7: the word 'a' appears twice"},
    {"-0.25 a b", "-0.25 a", "x.arpa:9: the line has 1 of the 2 words of a 2-gram"},
    {"-0.25 a b", "-0.25 a b -1", "x.arpa:9: this 2-gram has a back-off weight; n-grams of the highest order have none, or 0"},
    {"-0.25 a b", "-0.25 a B", "x.arpa:9: the word 'B' is not among the 1-grams"},
    {"-0.25 a b", "-0.25 c b", "x.arpa:9: the word 'c' is not among the 1-grams"},
    {"ngram 2=1\n\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n",
     "ngram 2=4\n\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 b a\n\n-0.25 a b\n-0.3 a a\n-0.1 a b\n",
     "x.arpa:13: the 2-gram 'a b' appears twice"},
    {"ngram 2=1\n\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n",
     "ngram 2=1\nngram 3=2\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n\\3-grams:\n-1 a b a\n\n -2 \tb  a a \n",
     "x.arpa:13: the 3-gram 'b  a a' has no context: its first 2 words are not among the 2-grams"},
    {"ngram 2=1\n\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n",
     "ngram 2=1\nngram 3=1\n\\1-grams:\n-1 a -0.5\n-2 b\n\\2-grams:\n-0.25 a b\n\\3-grams:\n-1 a a b\n",
     "x.arpa:11: the 3-gram 'a a b' has no context: its first 2 words are not among the 2-grams"},
};

static char *changed(const char *from, const char *to)
{
    const char *at = strstr(good, from);
    ck_assert_msg(at != NULL, "'%s' is not in the good text", from);
    char *text = NULL;
    ck_assert_int_gt(asprintf(&text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from)), 0);
    return text;
}

START_TEST(malformed)
{
    char *text = changed(bad[_i].from, bad[_i].to);
    lin_ngram *lm = (lin_ngram *)text;
    FAILS(parse(text, &lm, &err), LIN_FORMAT, bad[_i].says);
    ck_assert_ptr_null(lm);
    free(text);
}
END_TEST

// Some programs write back-off weights of 0 in the highest order too.
START_TEST(back_off_of_the_highest_order)
{
    static const char *const zeros[] = {"-0.25 a b 0", "-0.25 a b\t-0.0", "-0.25 a b 0.000 "};
    lin_ngram *plain, *lm;
    OK(lin_ngram_parse(good, strlen(good), "x", &plain, &err));
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        char *text = changed("-0.25 a b", zeros[i]);
        OK(lin_ngram_parse(text, strlen(text), "x", &lm, &err));
        ck_assert_uint_eq(lin_ngram_fingerprint(lm), lin_ngram_fingerprint(plain));
        lin_ngram_destroy(lm);
        free(text);
    }
    lin_ngram_destroy(plain);
}
END_TEST

START_TEST(order_too_high)
{
    lin_ngram *lm;
    FAILS(parse("\\data\\\nngram 1=1\nngram 2=1\nngram 3=1\nngram 4=1\nngram 5=1\nngram 6=1\nngram 7=1\nngram 8=1\nngram 9=1\n"
                "ngram 10=1\n\\1-grams:\n-1 a\n",
                &lm, &err),
          LIN_UNSUPPORTED, "x.arpa:11: the model has n-grams of more than 9 words");
}
END_TEST

START_TEST(cut_anywhere)
{
    lin_ngram *lm;
    size_t n = strlen(good) - 1; // without the last newline it is whole
    for (size_t cut = 0; cut < n; cut++) {
        char *part = strndup(good, cut);
        unsigned long live = lin_memory_live();
        ck_assert_msg(parse(part, &lm, NULL) == LIN_FORMAT && !lm, "cut after %zu bytes", cut);
        ck_assert_uint_eq(lin_memory_live(), live);
        free(part);
    }
    OK(lin_ngram_parse(good, n, "x", &lm, &err));
    lin_ngram_destroy(lm);
    FAILS(lin_ngram_parse(NULL, 0, "x", &lm, &err), LIN_FORMAT, "no line");
    FAILS(lin_ngram_open("/nonexistent/x.arpa", &lm, &err), LIN_IO, "/nonexistent/x.arpa");
    FAILS(lin_ngram_open("/", &lm, &err), LIN_IO, "cannot read /");
}
END_TEST

/* ---- unusual but valid ----------------------------------------------------------------------------------------------------- */

static void says(const char *text, const char *word, double logp10)
{
    lin_ngram *lm;
    lin_ngram_state a, next;
    OK(parse(text, &lm, &err));
    lin_ngram_score(lm, LIN_NGRAM_EMPTY, lin_ngram_find(lm, "a", 1), &a);
    float logp = lin_ngram_score(lm, a, lin_ngram_find(lm, word, strlen(word)), &next);
    ck_assert_double_eq_tol((double)logp, logp10 * log(10), 1e-6 * (1 - logp10));
    lin_ngram_destroy(lm);
}

START_TEST(odd_but_good)
{
    static const struct {
        const char *from, *to, *word;
        double logp;
    } odd[] = {
        {"", "", "b", -0.25},
        {"", "", "a", -1.5},
        {"\\data\\", "made by hand\nngram 1=7\n\n  \\data\\ ", "b", -0.25},
        {"\\data\\", "\xEF\xBB\xBF\\data\\\r", "b", -0.25},
        {"ngram 1=2", "  ngram  1 = 2 \t", "b", -0.25},
        {"ngram 1=2", "ngram 01=0002", "b", -0.25},
        {"\\end\\\n", "\\end\\\nmore\n\\data\\\n", "b", -0.25},
        {"-0.25 a b", "\n\n\t-0.25\ta\tb \r\n\r\n", "b", -0.25},
        {"-1 a -0.5", "-1 a", "a", -1},
        {"-1 a -0.5", "-1 a +0.5", "a", -0.5},
        {"-1 a -0.5", "-1e0 a -5e-1", "a", -1.5},
        {"-1 a -0.5", "-01.00 a -.5", "a", -1.5},
        {"-1 a -0.5", "-1.00000000000000000000 a -0.50000000000000000000000", "a", -1.5},
        {"-1 a -0.5", "-1. a -0.500000000000001", "a", -1.5},
        {"-1 a -0.5", "-1 a -0", "a", -1},
        {"-1 a -0.5", "0 a -0.5", "a", -0.5},
        {"-1 a -0.5", "0.001 a -0.5", "a", -0.5}, // rounding: a probability of 1
        {"-1 a -0.5", "-0.0 a -0.5", "a", -0.5},
        {"-1 a -0.5", "-1000 a -0.5", "a", -99.5}, // no less than 0
        {"-1 a -0.5", "-1 a -1000", "a", -100},
        {"-2 b\n", "-2 \\2-grams:\n", "\\2-grams:", -2.5}, // a word that looks like a heading
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char *text = changed(odd[i].from, odd[i].to);
        if (i + 1 == sizeof odd / sizeof *odd) memcpy(strstr(text, "a b"), "a a", 3);
        says(text, odd[i].word, odd[i].logp);
        free(text);
    }
}
END_TEST

/* ---- written and read ------------------------------------------------------------------------------------------------------ */

START_TEST(reads_back_equal)
{
    for (int order = 1; order <= 6; order++) {
        model *m = random_model(300 + (uint64_t)order, order, 9, 2, order % 2, 7);
        // numbers with all digits of a float, and tiny ones
        for (int i = 0; i < m->n; i += 3) m->grams[i].logp = -1e-6 - exp(-20 * lin_random_uniform(11, (uint64_t)i));
        lin_ngram *lm = model_parse(m), *again;
        char *text = arpa_of_model(lm);
        OK(lin_ngram_parse(text, strlen(text), "again", &again, &err));
        ck_assert_uint_eq(lin_ngram_fingerprint(again), lin_ngram_fingerprint(lm));
        ck_assert_uint_eq(again->size, lm->size);
        ck_assert_mem_eq(again->bytes, lm->bytes, lm->size); // the same block: nothing was lost
        char *text_again = arpa_of_model(again);
        ck_assert_str_eq(text_again, text);
        free(text);
        free(text_again);
        lin_ngram_destroy(lm);
        lin_ngram_destroy(again);
        lin_free(m);
    }
}
END_TEST

START_TEST(written_text)
{
    lin_ngram *lm;
    lin_ngram_draft draft;
    OK(parse("\\data\\\nngram 1=4\nngram 2=2\n\\1-grams:\n-1.2345 b 0\n-99 <s> -0.5\n0 </s>\n-3.658399999 a -0.0000001\n"
             "\\2-grams:\n-1e-05 b a\n-0.25 <s> b\n\\end\\\n",
             &lm, &err));
    setlocale(LC_ALL, "de_DE.UTF-8"); // if it is installed, its decimal comma must not be written
    char *text = arpa_of_model(lm);
    ck_assert_str_eq(text, "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n0\t</s>\n-99\t<s>\t-0.5\n"
                           "-3.6584\ta\t-1e-07\n-1.2345\tb\t0\n"
                           "\n\\2-grams:\n-0.25\t<s> b\n-1e-05\tb a\n\n\\end\\\n");
    free(text);
    FILE *full = fopen("/dev/full", "w");
    OK(lin_ngram_draft_of(lm, &draft, &err));
    if (full) {
        FAILS(lin_ngram_draft_write_arpa(&draft, 1, full, "full.arpa", &err), LIN_IO, "cannot write full.arpa");
        fclose(full);
    }
    lin_ngram_draft_free(&draft);
    lin_ngram_destroy(lm);
}
END_TEST

// Lines in any order give the same model; the model itself is sorted.
START_TEST(any_order_of_lines)
{
    model *m = random_model(4, 3, 12, 3, 0, 7); // a multiple of 4 is written exactly
    lin_ngram *lm = model_parse(m);
    uint64_t fingerprint = lin_ngram_fingerprint(lm);
    for (int k = 1; k <= 3; k++) { // in reverse order
        gram *first = &m->grams[m->begins[k]];
        for (int i = 0, j = m->counts[k] - 1; i < j; i++, j--) {
            gram swap = first[i];
            first[i] = first[j];
            first[j] = swap;
        }
    }
    lin_ngram *other = model_parse(m);
    ck_assert_uint_eq(lin_ngram_fingerprint(other), fingerprint);
    lin_ngram_destroy(lm);
    lin_ngram_destroy(other);
    m->grams[m->n - 1].logp -= 0.01;
    other = model_parse(m);
    ck_assert_uint_ne(lin_ngram_fingerprint(other), fingerprint);
    lin_ngram_destroy(other);
    lin_free(m);
}
END_TEST

START_TEST(every_allocation_fails)
{
    size_t n;
    model *m = random_model(8, 3, 8, 2, 0, 7);
    char *text = model_text(m, &n);
    lin_ngram *lm = NULL;
    FAIL_EVERY_ALLOCATION(lin_ngram_parse(text, n, "x", &lm, NULL), lin_ngram_destroy(lm));
    free(text);
    lin_free(m);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

START_TEST(written_and_mapped)
{
    for (int order = 1; order <= 5; order++) {
        model *m = random_model(40 + (uint64_t)order, order, 10, 2.5, order == 2, 7);
        lin_ngram *lm = model_parse(m), *mapped;
        OK(lin_ngram_write(lm, path, &err)); // replaces the previous file
        ck_assert_int_eq(test_folder_entries(test_path("")), 1);
        OK(lin_ngram_open(path, &mapped, &err));
        ck_assert_str_eq(lin_file_map_find(mapped->bytes), path);
        ck_assert_uint_eq(lin_ngram_fingerprint(mapped), lin_ngram_fingerprint(lm));
        ck_assert_uint_eq(lin_ngram_states(mapped), lin_ngram_states(lm));
        for (int k = 1; k <= order; k++) ck_assert_int_eq(lin_ngram_count(mapped, k), m->counts[k]);
        OK(lin_ngram_write(lm, path, &err)); // the mapped file stays as it is
        walk_compare(mapped, m, 300, 2e-5);
        lin_ngram_destroy(lm);
        lin_ngram_destroy(mapped);
        lin_free(m);
    }
}
END_TEST

START_TEST(files_that_cannot_be_written)
{
    model *m = random_model(1, 2, 5, 2, 0, 0);
    lin_ngram *lm = model_parse(m), *other;
    FAILS(lin_ngram_write(lm, "/nonexistent/x.lm", &err), LIN_IO, "cannot write /nonexistent/x.lm");
    const char *inside = test_path("folder");
    ck_assert(!mkdir(inside, 0777));
    FAILS(lin_ngram_write(lm, inside, &err), LIN_IO, "cannot write"); // renaming onto a folder
    ck_assert_int_eq(test_folder_entries(test_path("")), 1);
    FAIL_EVERY_ALLOCATION(lin_ngram_write(lm, path, NULL), (void)0);
    FAIL_EVERY_ALLOCATION(lin_ngram_open(path, &other, NULL), lin_ngram_destroy(other));
    FAIL_EVERY_ALLOCATION(lin_ngram_unpack(lm->bytes, lm->size, "x", &other, NULL), lin_ngram_destroy(other));
    lin_ngram_destroy(lm);
    lin_free(m);
}
END_TEST

// Compressed text, compressed packed models and models from a pipe can be opened.
START_TEST(every_wrapping)
{
    model *m = random_model(6, 3, 8, 2, 0, 3);
    lin_ngram *lm = model_parse(m), *other;
    size_t n;
    char *text = model_text(m, &n);
    const struct {
        const void *bytes;
        size_t n;
    } contents[] = {{text, n}, {lm->bytes, lm->size}};
    for (int i = 0; i < 2; i++) {
        gzFile file = gzopen(path, "wb");
        ck_assert(file && gzwrite(file, contents[i].bytes, (unsigned)contents[i].n) == (int)contents[i].n &&
                  gzclose(file) == Z_OK);
        OK(lin_ngram_open(path, &other, &err));
        ck_assert_uint_eq(lin_ngram_fingerprint(other), lin_ngram_fingerprint(lm));
        lin_ngram_destroy(other);
    }
    int ends[2]; // a shell's <(...)
    ck_assert(!pipe(ends) && n < 60000 && write(ends[1], text, n) == (ssize_t)n);
    close(ends[1]);
    char open_end[32];
    snprintf(open_end, sizeof open_end, "/dev/fd/%d", ends[0]);
    OK(lin_ngram_open(open_end, &other, &err));
    close(ends[0]);
    ck_assert_uint_eq(lin_ngram_fingerprint(other), lin_ngram_fingerprint(lm));
    lin_ngram_destroy(other);
    free(text);
    lin_ngram_destroy(lm);
    lin_free(m);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------------------------------------- */

START_TEST(cut_and_flipped)
{
    lin_ngram *lm, *other;
    static const char text[] =
        "\\data\\\nngram 1=3\nngram 2=2\n\\1-grams:\n-1 a -0.5\n-2 b\n-1.5 </s>\n\\2-grams:\n-0.25 a b\n-1 b a\n\\end\\\n";
    OK(lin_ngram_parse(text, sizeof text - 1, "x", &lm, &err));
    unsigned char *bytes = lin_alloc(lm->size + 1, 1);
    memcpy(bytes, lm->bytes, lm->size);
    bytes[lm->size] = 0;
    unsigned long live = lin_memory_live();
    for (size_t n = 0; n <= lm->size + 1; n++) {
        if (n == lm->size) continue;
        ck_assert_msg(lin_ngram_unpack(bytes, n, "x", &other, NULL) == LIN_FORMAT && !other, "cut after %zu bytes", n);
    }
    for (size_t bit = 0; bit < 8 * lm->size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        lin_status status = lin_ngram_unpack(bytes, lm->size, "x", &other, NULL);
        int version = bit / 8 >= LIN_NGRAM_AT_VERSION && bit / 8 < LIN_NGRAM_AT_ORDER;
        ck_assert_msg(status == (version ? LIN_UNSUPPORTED : LIN_FORMAT) && !other, "bit %zu: %s", bit, lin_status_name(status));
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert_uint_eq(lin_memory_live(), live);
    FAILS(lin_ngram_unpack("", 0, "x.lm", &other, &err), LIN_FORMAT, "x.lm: not a packed language model");
    FAILS(lin_ngram_unpack(bytes, lm->size - 1, "x.lm", &other, &err), LIN_FORMAT, "the file is truncated or damaged");
    bytes[LIN_NGRAM_AT_LEVELS]++;
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_FORMAT, "x.lm: the checksum of its header is wrong");
    bytes[LIN_NGRAM_AT_LEVELS]--;
    bytes[lm->text_at + lm->text_bytes - 1] = 'x';
    lin_ngram_put_checksums(bytes, lm->size);
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_FORMAT, "x.lm: its last word does not end");
    memcpy(bytes, lm->bytes, lm->size);
    bytes[lm->text_at] ^= 1;
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_FORMAT, "x.lm: its checksum is wrong");
    test_write_file(path, bytes, lm->size);
    FAILS(lin_ngram_open(path, &other, &err), LIN_FORMAT, "its checksum is wrong; the file is damaged, make it again");
    test_write_file(path, bytes, LIN_NGRAM_HEADER - 1);
    FAILS(lin_ngram_open(path, &other, &err), LIN_FORMAT, "not a packed language model");
    bytes[LIN_NGRAM_AT_VERSION] = 2;
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_UNSUPPORTED, "of version 2; this program reads version 1");
    lin_free(bytes);
    lin_ngram_destroy(lm);
}
END_TEST

/* ---- code books ------------------------------------------------------------------------------------------------------------ */

static float unigram_of(int w) { return (float)((w ? -2.5 - w * 0.001 : LIN_NGRAM_NEVER) * log(10)); }

// Fewer bits: at most 2^bits values, each of them near the number that it replaces.
START_TEST(fewer_bits)
{
    enum { WORDS = 200, PAIRS = 100 * WORDS };
    lin_ngram_draft draft = {.order = 2, .unknown = -1, .begin = -1, .end = -1, .code_bits = 8};
    OK(lin_ngram_draft_level_create(&draft.level[0], 1, WORDS, 1, &err));
    OK(lin_ngram_draft_level_create(&draft.level[1], 2, PAIRS, 0, &err));
    double *want = lin_alloc(PAIRS, sizeof *want);
    for (int w = 0; w < WORDS; w++) {
        char word[16];
        int index;
        snprintf(word, sizeof word, "w%03d", w);
        OK(lin_symbols_add(&draft.words, word, 4, &index, &err));
        draft.level[0].words[w] = (uint32_t)w;
        draft.level[0].logp[w] = (double)unigram_of(w) / log(10);
        draft.level[0].backoff[w] = -3 * lin_random_uniform(5, (uint64_t)w);
    }
    for (int i = 0; i < PAIRS; i++) {
        draft.level[1].words[2 * i] = (uint32_t)(i / 100);
        draft.level[1].words[2 * i + 1] = (uint32_t)(i % 100);
        draft.level[1].logp[i] = want[i] = -7 * lin_random_uniform(3, (uint64_t)i) * lin_random_uniform(4, (uint64_t)i);
    }
    lin_ngram *lm;
    OK(lin_ngram_draft_finish(&draft, "x", &lm, &err));
    ck_assert_uint_eq(lm->levels[2].logp_bits, 8);
    for (int w = 0; w < WORDS; w++) ck_assert_float_eq_tol(lin_ngram_unigram(lm, w), unigram_of(w), 1e-6f); // exact
    double mean = 0;
    for (int i = 0; i < PAIRS; i++) {
        lin_ngram_state state, next;
        lin_ngram_score(lm, 0, i / 100, &state);
        double error = (double)lin_ngram_score(lm, state, i % 100, &next) / log(10) - want[i];
        ck_assert_double_le(fabs(error), 7.0 / 127); // no bin is wider
        mean += error;
    }
    ck_assert_double_le(fabs(mean / PAIRS), 1e-6);
    lin_free(want);
    lin_ngram_destroy(lm);
}
END_TEST

// 150,000 bigrams with as many distinct probabilities, more than there are codes: the rounding error is small.
START_TEST(more_numbers_than_codes)
{
    enum { WORDS = 400, PAIRS = 375 * WORDS };
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    double *want = lin_alloc(PAIRS, sizeof *want);
    fprintf(file, "\\data\\\nngram 1=%d\nngram 2=%d\n\\1-grams:\n", WORDS, PAIRS);
    for (int w = 0; w < WORDS; w++) fprintf(file, "-2.5 w%03d -0.5\n", w);
    fprintf(file, "\\2-grams:\n");
    for (int i = 0; i < PAIRS; i++) {
        want[i] = -7 * lin_random_uniform(3, (uint64_t)i) * lin_random_uniform(4, (uint64_t)i);
        fprintf(file, "%.9f w%03d w%03d\n", want[i], i % WORDS, i / WORDS);
    }
    fprintf(file, "\\end\\\n");
    fclose(file);
    lin_ngram *lm;
    OK(lin_ngram_parse(text, n, "x.arpa", &lm, &err));
    ck_assert_uint_eq(lm->levels[2].logp_bits, LIN_NGRAM_CODE_BITS);
    double largest = 0, sum = 0, mean = 0;
    for (int i = 0; i < PAIRS; i++) {
        lin_ngram_state state, next;
        lin_ngram_score(lm, 0, i % WORDS, &state);
        double error = (double)lin_ngram_score(lm, state, i / WORDS, &next) / log(10) - want[i];
        largest = fmax(largest, fabs(error));
        sum += fabs(error);
        mean += error;
    }
    ck_assert_double_le(largest, 7.0 / 32767); // no bin is wider
    ck_assert_double_le(sum / PAIRS, 4e-5);
    ck_assert_double_le(fabs(mean / PAIRS), 1e-6); // the perplexity changes by a millionth
    lin_ngram *again;
    free(text);
    text = arpa_of_model(lm);
    OK(lin_ngram_parse(text, strlen(text), "x.arpa", &again, &err));
    ck_assert_uint_eq(lin_ngram_fingerprint(again), lin_ngram_fingerprint(lm)); // rounded once, and not again
    free(text);
    lin_free(want);
    lin_ngram_destroy(lm);
    lin_ngram_destroy(again);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "ngram_file", TESTS(malformed, 0, (int)(sizeof bad / sizeof *bad)),
               TEST(back_off_of_the_highest_order), TEST(order_too_high), TEST(cut_anywhere), TEST(odd_but_good),
               TEST(reads_back_equal), TEST(written_text), TEST(any_order_of_lines), TEST(every_allocation_fails),
               TEST(written_and_mapped), TEST(files_that_cannot_be_written), TEST(every_wrapping), TEST(cut_and_flipped),
               TEST(fewer_bits), TEST(more_numbers_than_codes))
