// linnet/wording.h: words added to a lexicon, with phones and alone; bad lines; other phones; rules that are found; failing
// allocations.
#include "linnet/wording.h"

#include "base/textfile.h"
#include "linnet/find.h"
#include "train/learn/g2p_learn.h"
#include "lexicon/g2p.h"
#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_g2p_rules *rules;

static void setup(void)
{
    lin_dictionary *d;
    lin_ngram *lm;
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_parse(small_dictionary, sizeof small_dictionary - 1, "small", phones, &d, &err));
    OK(lin_g2p_learn(d, phones, &o, &lm, NULL, &err));
    OK(lin_g2p_rules_create(lm, "rules", phones, &rules, &err));
    lin_dictionary_destroy(d);
}

static void teardown(void)
{
    lin_g2p_rules_destroy(rules);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static lin_dictionary *small(void)
{
    lin_dictionary *d;
    OK(lin_dictionary_parse(small_dictionary, sizeof small_dictionary - 1, "small", phones, &d, &err));
    return d;
}

static lin_status extend(lin_dictionary *d, const char *text, lin_error *err)
{
    return lin_lexicon_extend(d, text, strlen(text), "added", phones, rules, err);
}

static const char *pronounced(const lin_dictionary *d, const char *word, int which)
{
    const int *labels;
    const int n = lin_dictionary_find(d, word, strlen(word), which, &labels);
    return n ? named(phones, labels, n) : "";
}

static int is_added(const lin_dictionary *d, const char *word)
{
    for (int i = 0; i < lin_dictionary_count(d); i++)
        if (!strcmp(lin_dictionary_word(d, i), word)) return lin_dictionary_is_added(d, i);
    return -1;
}

START_TEST(words_with_phones_and_alone)
{
    static const char *const alone[] = {"Panley", "plans", "kopan"};
    lin_dictionary *d = small(), *plain = small();
    lin_g2p *g2p;
    OK(lin_g2p_create(phones, plain, rules, &g2p, &err));
    OK(extend(d, ";;; names\n\nPanley\nplans # of a word that is there\n  kopan  \r\nzebra Z IY1 B R AH0\ncat K AE T\n"
                 "cat K AA T\nCaf\xc3\xa9\nhello\n# ends\n", &err));
    for (int i = 0; i < 3; i++) {
        int labels[LIN_PRONUNCIATION_MAX], n;
        lin_g2p_how how;
        char lower[20];
        for (size_t c = 0; c <= strlen(alone[i]); c++) lower[c] = lin_lower(alone[i][c]);
        OK(lin_g2p_pronounce(g2p, lower, strlen(lower), labels, LIN_PRONUNCIATION_MAX, &n, &how, &err));
        ck_assert_str_eq(pronounced(d, lower, 0), named(phones, labels, n));
        ck_assert_str_eq(pronounced(d, lower, 1), "");
        ck_assert_int_eq(is_added(d, lower), 1);
    }
    ck_assert_str_eq(pronounced(d, "plans", 0), "P L AE N Z"); // derived
    ck_assert_str_eq(pronounced(d, "zebra", 0), "Z IY B R AH");
    ck_assert_str_eq(pronounced(d, "cat", 0), "K AE T"); // the lexicon's own comes first
    ck_assert_str_eq(pronounced(d, "cat", 1), "K AA T");
    ck_assert_str_eq(pronounced(d, "cat", 2), "");
    ck_assert_str_ne(pronounced(d, "caf\xc3\xa9", 0), ""); // the form of words in a text
    ck_assert_int_eq(is_added(d, "hello"), 1);
    ck_assert_str_eq(pronounced(d, "hello", 1), "HH EH L OW");
    ck_assert_int_eq(is_added(d, "world"), 0);
    ck_assert_int_eq(lin_dictionary_count(d), lin_dictionary_count(plain) + 5);
    OK(extend(d, "", &err));
    lin_g2p_destroy(g2p);
    lin_dictionary_destroy(d);
    lin_dictionary_destroy(plain);
}
END_TEST

START_TEST(bad_lines)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"kopan\n42\n", "added:2: '42' has no phones"},
        {"-\n", "added:1: '-' has no phones"},
        {"a.b\n", "added:1: 'a.b' has no phones"},
        {"[laughs]\n", "added:1: '[laughs]' has no phones"},
        {"new york\n", "added:1: 'york' is not a phone of this set"},
        {"\n\nkopan\na\1b\n", "added:4: control character"},
        {"kopan\n\xff\xfe\n", "added"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_dictionary *d = small();
        const char *first;
        OK(extend(d, cases[i].text, &err));
        ck_assert_int_eq(lin_dictionary_skipped(d, &first), 1);
        ck_assert_msg(strstr(first, cases[i].message) != NULL, "'%s': %s", cases[i].text, first);
        lin_dictionary_destroy(d);
    }
    lin_dictionary *d = small();
    const char *first;
    OK(extend(d, "kopan\n42\n7\nPlanpan\n", &err));
    ck_assert_int_eq(lin_dictionary_skipped(d, &first), 2);
    ck_assert_str_eq(first, "added:2: '42' has no phones");
    ck_assert_int_eq(is_added(d, "planpan"), 1);
    lin_dictionary_destroy(d);
}
END_TEST

// The letter-to-sound rules are for the phones of English; words with phones need none.
START_TEST(other_phones)
{
    static const char text[] = "ja j a\n", more[] = "nein n ai n\n", alone[] = "nein n ai n\ndoch\n";
    lin_phones *other;
    lin_dictionary *d;
    OK(lin_phones_create("<blank> j a n ai", &other, &err));
    OK(lin_dictionary_parse(text, sizeof text - 1, "text", other, &d, &err));
    OK(lin_lexicon_extend(d, more, sizeof more - 1, "more", other, NULL, &err));
    ck_assert_int_eq(lin_dictionary_count(d), 2);
    FAILS(lin_lexicon_extend(d, alone, sizeof alone - 1, "alone", other, NULL, &err), LIN_MISMATCH,
          "alone:2: 'doch' has no phones, and there are no letter-to-sound rules for these phones");
    lin_dictionary_destroy(d);
    lin_phones_destroy(other);
}
END_TEST

START_TEST(files)
{
    lin_dictionary *d;
    const char *path = test_file("small.dict", small_dictionary, sizeof small_dictionary - 1);
    const char *added = test_file("names.txt", "zebra Z IY B R AH\nplans\n", 24);
    OK(lin_lexicon_open(path, NULL, NULL, NULL, phones, &d, &err));
    ck_assert_int_eq(is_added(d, "zebra"), -1);
    lin_dictionary_destroy(d);
    OK(lin_lexicon_open(path, NULL, added, NULL, phones, &d, &err));
    ck_assert_int_eq(is_added(d, "zebra"), 1);
    ck_assert_str_eq(pronounced(d, "plans", 0), "P L AE N Z");
    lin_dictionary_destroy(d);
    FAILS(lin_lexicon_open(path, NULL, test_path(""), NULL, phones, &d, &err), LIN_IO, "directory");
    ck_assert_ptr_null(d);
    FAILS(lin_lexicon_open(test_path(""), NULL, added, NULL, phones, &d, &err), LIN_IO, "directory");
    FAIL_EVERY_ALLOCATION(lin_lexicon_open(path, NULL, added, NULL, phones, &d, NULL), lin_dictionary_destroy(d));
}
END_TEST

START_TEST(rules_that_spell)
{
    lin_phones *other;
    lin_g2p_rules *found;
    OK(lin_phones_create("<blank> j a n ai", &other, &err));
    OK(lin_find_speller(other, &found, &err));
    ck_assert_ptr_null(found);
    lin_phones_destroy(other);
    FAIL_EVERY_ALLOCATION_OF(found, lin_find_speller(phones, &found, NULL), ck_assert_ptr_nonnull(found);
                             lin_g2p_rules_destroy(found));
}
END_TEST

// The installed rules of English suit a lexicon with the word of a digit.
START_TEST(rules_of_numbers)
{
    static const char two[] = "two T UW\n";
    lin_dictionary *d, *other = small();
    lin_written *written;
    OK(lin_dictionary_parse(two, sizeof two - 1, "two", phones, &d, &err));
    OK(lin_find_open_numbers(phones, NULL, other, &written, &err));
    ck_assert_ptr_null(written);
    OK(lin_find_open_numbers(phones, NULL, d, &written, &err));
    ck_assert_ptr_nonnull(written);
    lin_written_destroy(written);
    FAIL_EVERY_ALLOCATION_OF(written, lin_find_open_numbers(phones, NULL, d, &written, NULL), ck_assert_ptr_nonnull(written);
                             lin_written_destroy(written));
    lin_dictionary_destroy(d);
    lin_dictionary_destroy(other);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "linnet/wording", TEST(words_with_phones_and_alone), TEST(bad_lines), TEST(other_phones),
               TEST(files), TEST(rules_that_spell), TEST(rules_of_numbers))
