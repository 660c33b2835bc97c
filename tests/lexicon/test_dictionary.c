// lexicon/dictionary.c: CMUdict's two spellings, alternatives, comments; hostile files (any bytes: tests/fuzz); every
// allocation failing.
#include "lexicon/dictionary.h"

#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_dictionary *d;

static void setup(void) { OK(lin_phones_create(NULL, &phones, &err)); }

static void teardown(void)
{
    lin_dictionary_destroy(d);
    d = NULL;
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

// A line that is left out counts as a failure here.
static lin_status parse(const char *text, size_t n, lin_error *err)
{
    const char *first;
    const lin_status status = lin_dictionary_parse(text, n, "x.dict", phones, &d, err);
    if (status != LIN_OK || !lin_dictionary_skipped(d, &first)) return status;
    lin_fail(err, LIN_FORMAT, "%s", first);
    lin_dictionary_destroy(d);
    d = NULL;
    return LIN_FORMAT;
}

#define PARSE(text) parse(text, sizeof(text) - 1, &err)

static const char *said(const char *word, int which)
{
    const int *labels = NULL;
    int n = lin_dictionary_find(d, word, strlen(word), which, &labels);
    return named(phones, labels, n);
}

START_TEST(both_spellings)
{
    OK(PARSE(small_dictionary));
    ck_assert_str_eq(said("hello", 0), "HH AH L OW");
    ck_assert_str_eq(said("HELLO", 0), "HH AH L OW");
    ck_assert_str_eq(said("Hello", 1), "HH EH L OW");
    ck_assert_str_eq(said("hello", 2), "");
    ck_assert_str_eq(said("hello", -1), "");
    ck_assert_str_eq(said("world", 0), "W ER L D");
    ck_assert_str_eq(said("'tis", 0), "T IH Z");
    ck_assert_str_eq(said("a", 1), "EY");
    ck_assert_str_eq(said("hell", 0), "");
    ck_assert_str_eq(said("", 0), "");
    ck_assert_int_eq(lin_dictionary_find(d, "hello", 5, 0, NULL), 4);
    ck_assert_str_eq(lin_dictionary_word(d, 1), "world");
    ck_assert_ptr_null(lin_dictionary_word(d, lin_dictionary_count(d)));
    lin_dictionary_destroy(NULL);
}
END_TEST

START_TEST(odd_but_good_lines)
{
    OK(PARSE("\xEF\xBB\xBFone W AH1 N # a comment\r\n\n  two\tT UW1  \n## note\n;;; note\none  W AH0 N\none HH W AH N\n"
             "#sharp SH AA R P\n)paren P\nx() EH K S\n(2) T UW\nx(2)y Y\nn(a) N\n\xC3\xA9t\xC3\xA9 EY T EY\nlast L AE S T"));
    ck_assert_str_eq(said("one", 0), "W AH N");
    ck_assert_str_eq(said("one", 1), "HH W AH N"); // the same pronunciation twice is kept once
    ck_assert_str_eq(said("one", 2), "");
    ck_assert_str_eq(said("two", 0), "T UW");
    ck_assert_str_eq(said("#sharp", 0), "SH AA R P");
    ck_assert_str_eq(said("x()", 0), "EH K S");
    ck_assert_str_eq(said("(2)", 0), "T UW");
    ck_assert_str_eq(said("x(2)y", 0), "Y");
    ck_assert_str_eq(said("n(a)", 0), "N");
    ck_assert_str_eq(said("\xC3\xA9t\xC3\xA9", 0), "EY T EY");
    ck_assert_str_eq(said("last", 0), "L AE S T");
    ck_assert_int_eq(lin_dictionary_count(d), 10);
}
END_TEST

START_TEST(stress_is_kept_where_the_set_has_it)
{
    lin_phones *stressed;
    const int *labels;
    OK(lin_phones_create("<blank> HH AH0 L OW1", &stressed, &err));
    OK(lin_dictionary_parse("hello HH AH0 L OW1\n", 19, "x", stressed, &d, &err));
    ck_assert_int_eq(lin_dictionary_find(d, "hello", 5, 0, &labels), 4);
    ck_assert_int_eq(labels[1], 2);
    lin_dictionary_destroy(d);
    FAILS(lin_dictionary_parse("hello HH AH1 L OW1\n", 19, "x", stressed, &d, &err), LIN_FORMAT, "'AH1'");
    lin_phones_destroy(stressed);
}
END_TEST

START_TEST(phones_in_the_ipa)
{
    const int *labels;
    static const char text[] = "hello HH AH0 L OW1\nhullo h ə l ˈoʊ\nhallo hʌloʊ\nhello(2) həˈloʊ\nchurch tʃ ɝ t͡ʃ\n";
    OK(lin_dictionary_parse(text, strlen(text), "d", phones, &d, &err));
    ck_assert_int_eq(lin_dictionary_count(d), 4);
    ck_assert_int_eq(lin_dictionary_find(d, "hello", 5, 0, &labels), 4);
    const int *first = labels;
    const signed char *stress = lin_dictionary_stress(d, labels);
    ck_assert(stress[0] == -1 && stress[1] == 0 && stress[2] == -1 && stress[3] == 1 && lin_dictionary_has_stress(d));
    ck_assert_int_eq(lin_dictionary_find(d, "hullo", 5, 0, &labels), 4);
    ck_assert_mem_eq(lin_dictionary_stress(d, labels), stress, 4);
    ck_assert_int_eq(lin_dictionary_find(d, "hallo", 5, 0, &labels), 4);
    ck_assert_mem_eq(lin_dictionary_stress(d, labels), "\xFF\xFF\xFF\xFF", 4);
    ck_assert_int_eq(lin_dictionary_find(d, "hello", 5, 1, &labels), 0); // the same once more
    ck_assert_int_eq(lin_dictionary_find(d, "hullo", 5, 0, &labels), 4);
    ck_assert_int_eq(memcmp(first, labels, 4 * sizeof *labels), 0);
    ck_assert_int_eq(lin_dictionary_find(d, "hallo", 5, 0, &labels), 4);
    ck_assert_int_eq(memcmp(first, labels, 4 * sizeof *labels), 0);
    ck_assert_int_eq(lin_dictionary_find(d, "church", 6, 0, &labels), 3);
    ck_assert_int_eq(labels[0], labels[2]);
    lin_dictionary_destroy(d);
    FAILS(lin_dictionary_parse("one two\n", 8, "d", phones, &d, &err), LIN_FORMAT, "'two' is not a phone");
}
END_TEST

// The list of the set that a dictionary has; the message of a failure.
static const char *set_of(const char *text)
{
    static char out[1100];
    lin_phones *p;
    lin_error why;
    if (lin_dictionary_phones(text, strlen(text), "d", &p, &why) != LIN_OK) {
        ck_assert_ptr_null(p);
        snprintf(out, sizeof out, "%s", why.message);
        return out;
    }
    snprintf(out, sizeof out, "%s", lin_phones_list(p));
    lin_phones_destroy(p);
    return out;
}

START_TEST(the_set_of_a_dictionary)
{
    ck_assert_str_eq(set_of("hello HH AH0 L OW1\nworld w er l d\nbad QQ\n"), lin_phones_default);
    ck_assert_str_eq(set_of("ja j aː\nÖl ˈøː l\nab a p # from\n;;; no x\nwort 0.5 ʋ ˌ ɔ ʁ t\n<unk> spn\n<p> SIL\n"),
                     "<blank>\town SIL\t(silence) a aː j l p spn\t(noise) t øː ɔ ʁ ʋ");
    ck_assert_str_eq(set_of("a A\nb B\nc C\n"), "<blank>\town A B C"); // A and C are no names of CMUdict
    HAS(set_of("a a\nhallo haˈloː\n"), "d:2: 'haˈloː' is not one phone");
    HAS(set_of("a\n\n"), "d: the file has no word with phones");
    char many[300 * 12] = "";
    for (int i = 0; i < 300; i++) snprintf(many + strlen(many), 12, "w x%d\n", i);
    HAS(set_of(many), "d: more than 255 different phones, such as 'x255'");
    lin_phones *p = NULL;
    FAIL_EVERY_ALLOCATION(lin_dictionary_phones("a x\nb y\n", 8, "d", &p, NULL), lin_phones_destroy(p));
}
END_TEST

START_TEST(words_of_any_script)
{
    lin_phones *own;
    const int *labels;
    static const char text[] = "Öl ˈø l\nШУМ ʃ u m\nशब्द ʃ a b\n一 j i\n<eps> sil\nÖL(2) ø l ə\n";
    OK(lin_dictionary_phones(text, strlen(text), "d", &own, &err));
    OK(lin_dictionary_parse(text, strlen(text), "d", own, &d, &err));
    ck_assert_int_eq(lin_dictionary_count(d), 4); // without the silence
    ck_assert_str_eq(lin_dictionary_word(d, 0), "öl");
    ck_assert_int_eq(lin_dictionary_find(d, "ÖL", 3, 0, &labels), 2);
    ck_assert_str_eq(lin_phones_name(own, labels[0]), "ø");
    ck_assert(lin_dictionary_stress(d, labels)[0] == 1 && lin_dictionary_stress(d, labels)[1] == -1);
    ck_assert_int_eq(lin_dictionary_find(d, "Öl", 3, 1, &labels), 3);
    ck_assert_int_eq(lin_dictionary_find(d, "шум", strlen("шум"), 0, &labels), 3);
    ck_assert_int_eq(lin_dictionary_find(d, "शब्द", strlen("शब्द"), 0, &labels), 3);
    ck_assert_int_eq(lin_dictionary_find(d, "ol", 2, 0, &labels), 0);
    lin_dictionary_destroy(d);
    FAILS(lin_dictionary_parse("x q\n", 4, "d", own, &d, &err), LIN_FORMAT, "d:1: 'q' is not a phone of this set; a line");
    lin_phones_destroy(own);
}
END_TEST

#define PROBABILITY(word, which, want)                                                                                           \
    test_require(fabs(exp(lin_dictionary_logp(d, word, strlen(word), which)) - (want)) < 1e-6, "%s(%d)", word, which)

START_TEST(probabilities)
{
    const int *labels;
    // The MFA's with those of silence; Kaldi's; without one; the same phones with another stress.
    OK(PARSE("the\t0.99\t0.15\t1.0\t0.97\tð ə\nthe 0.5 DH IY0\none 1 W AH1 N\nAN AE N\nan(2) 2e-1 AH0 N\nan .25 AH1 N\n"
             "an .9 AE1 N\n"));
    ck_assert_int_eq(lin_dictionary_find(d, "the", 3, 0, &labels), 2);
    ck_assert_int_eq(lin_dictionary_find(d, "the", 3, 1, &labels), 2);
    ck_assert_int_eq(lin_dictionary_find(d, "one", 3, 0, &labels), 3);
    ck_assert_int_eq(lin_dictionary_find(d, "an", 2, 2, &labels), 0);
    PROBABILITY("the", 0, 0.99);
    PROBABILITY("The", 1, 0.5);
    PROBABILITY("one", 0, 1);
    PROBABILITY("an", 0, 1);
    PROBABILITY("an", 1, 0.45);
    PROBABILITY("an", 2, 1); // there is none
    PROBABILITY("two", 0, 1);
    OK(lin_dictionary_add(d, "six 0.125 S IH K S\n", 19, "more", phones, &err));
    PROBABILITY("six", 0, 0.125);
    lin_dictionary_destroy(d);
    OK(PARSE("one 1 W AH1 N\none W AH N\ntwo 1.0 T UW\n"));
    PROBABILITY("one", 0, 1);
    lin_dictionary_destroy(d);
    FAILS(PARSE("a AH\nb 0 B\n"), LIN_FORMAT, "x.dict:2: the probability of a pronunciation must be above 0");
    FAILS(PARSE("b -0.5 B\n"), LIN_FORMAT, "not -0.5");
    FAILS(PARSE("b 1.01 B\n"), LIN_FORMAT, "not 1.01");
    FAILS(PARSE("b 12 B\n"), LIN_FORMAT, "not 12");
    FAILS(PARSE("the 0.99\n"), LIN_FORMAT, "'the' has no phones");
    FAILS(PARSE("the DH 0.99 AH\n"), LIN_FORMAT, "'0.99' is not a phone");
    // A set with a phone of that name: it is the phone.
    lin_phones *numbers;
    OK(lin_phones_create(LIN_PHONES_BLANK "\town 1 a", &numbers, &err));
    OK(lin_dictionary_parse("x 1 a\ny 0.5 1\n", 14, "d", numbers, &d, &err));
    ck_assert_int_eq(lin_dictionary_find(d, "x", 1, 0, NULL), 2);
    ck_assert_int_eq(lin_dictionary_find(d, "y", 1, 0, NULL), 1);
    PROBABILITY("y", 0, 0.5);
    lin_phones_destroy(numbers);
}
END_TEST

START_TEST(bad_lines_are_named)
{
    FAILS(PARSE("a AH\nb\n"), LIN_FORMAT, "x.dict:2: 'b' has no phones");
    ck_assert_ptr_null(d);
    FAILS(PARSE("a AH\nb(2)\n"), LIN_FORMAT, "x.dict:2: 'b' has no phones");
    FAILS(PARSE("a AH\nb # comment\n"), LIN_FORMAT, "x.dict:2: 'b' has no phones");
    FAILS(PARSE("a AH\n\nb B XX\n"), LIN_FORMAT, "x.dict:3: 'XX' is not a phone");
    FAILS(PARSE("a <blank>\n"), LIN_FORMAT, "'<blank>' is not a phone");
    FAILS(PARSE("a AH3\n"), LIN_FORMAT, "'AH3'");
    FAILS(PARSE("a A\x01H\n"), LIN_FORMAT, "x.dict:1: control character 0x01 at byte 4");
    FAILS(PARSE("a AH\n\x1b[31mred R EH D\n"), LIN_FORMAT, "x.dict:2: control character 0x1b at byte 1");
    FAILS(PARSE("a AH\0\n"), LIN_FORMAT, "x.dict is not a text (byte 5 is 0)");
    FAILS(PARSE("a big c d\n"), LIN_FORMAT, "'big' is not a phone");
    FAILS(PARSE(""), LIN_FORMAT, "no word");
    FAILS(PARSE(";;; only\n\n"), LIN_FORMAT, "no word");
    FAILS(PARSE("hello HELLO\nHELLO hello\n"), LIN_FORMAT, "x.dict:1: 'HELLO'"); // the names of two words in place of phones
}
END_TEST

START_TEST(long_things)
{
    size_t n = 1 << 20;
    char *line = malloc(n);
    memset(line, 'a', n);
    FAILS(parse(line, n, &err), LIN_FORMAT, "x.dict:1: the line has 1048576 bytes");
    memcpy(line, "a AH\n", 5);
    FAILS(parse(line, n, &err), LIN_FORMAT, "x.dict:2: the line has");
    memset(line, ' ', n);
    FAILS(parse(line, n, &err), LIN_FORMAT, "the line has");
    memset(line, '\n', n);
    FAILS(parse(line, n, &err), LIN_FORMAT, "no word");
    memset(line, 'b', 300);
    memcpy(line + 255, " B\n", 3);
    OK(parse(line, 258, &err));
    ck_assert_int_eq(lin_dictionary_find(d, line, 255, 0, NULL), 1);
    ck_assert_int_eq(lin_dictionary_find(d, line, 300, 0, NULL), 0);
    lin_dictionary_destroy(d);
    memcpy(line + 255, "b B\n", 4);
    FAILS(parse(line, 259, &err), LIN_FORMAT, "the word has 256 bytes");
    memcpy(line, "x", 1);
    for (int i = 0; i < 256; i++) memcpy(line + 1 + 2 * i, " B", 2);
    OK(parse(line, 1 + 2 * 255, &err));
    ck_assert_int_eq(lin_dictionary_find(d, "x", 1, 0, NULL), 255);
    lin_dictionary_destroy(d);
    FAILS(parse(line, 1 + 2 * 256, &err), LIN_FORMAT, "more than 255 phones");
    free(line);
}
END_TEST

START_TEST(bad_lines_are_left_out)
{
    static const char text[] = "a AH\nb\nc XX\nd D\n";
    const char *first;
    OK(lin_dictionary_parse(text, sizeof text - 1, "x.dict", phones, &d, &err));
    ck_assert_int_eq(lin_dictionary_count(d), 2);
    ck_assert_int_eq(lin_dictionary_skipped(d, &first), 2);
    ck_assert_str_eq(first, "x.dict:2: 'b' has no phones");
    ck_assert_str_eq(said("d", 0), "D");
    lin_dictionary_destroy(d);
    OK(lin_dictionary_parse(text, 5, "x.dict", phones, &d, &err));
    ck_assert_int_eq(lin_dictionary_skipped(d, &first), 0);
    ck_assert_str_eq(first, "");
}
END_TEST

// More words than the initial size of the tables, each with two pronunciations.
START_TEST(many_short_words)
{
    const int *labels;
    int count = 50000;
    char *text = malloc((size_t)count * 32), word[16];
    size_t n = 0;
    for (int i = 0; i < count; i++) n += (size_t)sprintf(text + n, "w%x B\nw%x K\n", i, i);
    OK(parse(text, n, &err));
    ck_assert_int_eq(lin_dictionary_count(d), count);
    for (int i = 0; i < count; i++) {
        size_t k = (size_t)sprintf(word, "W%X", i);
        ck_assert_int_eq(lin_dictionary_find(d, word, k, 1, &labels), 1);
        ck_assert_int_eq(labels[0], lin_phones_find(phones, "K", 1));
    }
    free(text);
}
END_TEST

// A new pronunciation is compared with all others of its word: without a limit, a file of one word would take quadratic time.
START_TEST(many_pronunciations)
{
    enum { LINES = 39 * 39 };
    const char *first;
    char *text = malloc(LINES * 16);
    size_t n = 0;
    for (int i = 0; i < LINES; i++) {
        n += (size_t)sprintf(text + n, "a %s %s\n", lin_phones_name(phones, 1 + i / 39), lin_phones_name(phones, 1 + i % 39));
    }
    FAILS(parse(text, n, &err), LIN_FORMAT, ":256: 'a' has more than 255 pronunciations");
    OK(lin_dictionary_parse(text, n, "x.dict", phones, &d, &err));
    ck_assert_int_eq(lin_dictionary_skipped(d, &first), LINES - LIN_PRONUNCIATIONS_MAX);
    HAS(first, "x.dict:256:");
    ck_assert_int_eq(lin_dictionary_find(d, "a", 1, LIN_PRONUNCIATIONS_MAX - 1, NULL), 2);
    ck_assert_int_eq(lin_dictionary_find(d, "a", 1, LIN_PRONUNCIATIONS_MAX, NULL), 0);
    free(text);
}
END_TEST

START_TEST(files)
{
    const char *path = test_path("small.dict");
    FAILS(lin_dictionary_load(path, phones, &d, &err), LIN_IO, "small.dict: No such file");
    FAILS(lin_dictionary_load(test_path(""), phones, &d, &err), LIN_IO, "directory");
    test_write_file(path, small_dictionary, sizeof small_dictionary - 1);
    OK(lin_dictionary_load(path, phones, &d, &err));
    ck_assert_str_eq(said("cat", 0), "K AE T");
    lin_dictionary_destroy(d);
    FAIL_EVERY_ALLOCATION(lin_dictionary_load(path, phones, &d, NULL), (lin_dictionary_destroy(d), d = NULL));
}
END_TEST

START_TEST(out_of_memory_while_growing)
{
    char *text = malloc(20000 * 8);
    size_t n = 0;
    for (int i = 0; i < 20000; i++) n += (size_t)sprintf(text + n, "%x B\n", i);
    FAIL_EVERY_ALLOCATION(parse(text, n, NULL), (lin_dictionary_destroy(d), d = NULL));
    free(text);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "dictionary", TEST(both_spellings), TEST(odd_but_good_lines),
               TEST(stress_is_kept_where_the_set_has_it), TEST(phones_in_the_ipa), TEST(the_set_of_a_dictionary),
               TEST(words_of_any_script), TEST(probabilities), TEST(bad_lines_are_named), TEST(long_things),
               TEST(bad_lines_are_left_out), TEST(many_short_words), TEST(many_pronunciations), TEST(files),
               TEST(out_of_memory_while_growing))
