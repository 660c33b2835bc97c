// align/spoken.c: texts to graphs with all pronunciations and their own spelling; words that nobody can pronounce; phones.
#include "align/spoken.h"

#include "linnet/find.h"
#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_wording lexicon;
static lin_spoken s;

static void open_lexicon(const char *set, const char *text)
{
    OK(lin_phones_create(set, &phones, &err));
    lexicon = (lin_wording){.phones = phones};
    OK(lin_dictionary_parse(text, strlen(text), "small", phones, &lexicon.dictionary, &err));
    if (lin_find_open_rules(phones, NULL, &lexicon.rules, &lexicon.lacks) == LIN_OK)
        lin_g2p_create(phones, lexicon.dictionary, lexicon.rules, &lexicon.g2p, &lexicon.lacks);
}

static void close_all(void)
{
    lin_spoken_free(&s);
    lin_wording_close(&lexicon);
    lin_phones_destroy(phones);
}

static lin_status words(const char *text, lin_error *err) { return lin_spoken_words(&s, &lexicon, text, strlen(text), err); }

START_TEST(words_with_all_pronunciations_as_they_are_written)
{
    open_lexicon(NULL, small_dictionary);
    for (int again = 0; again < 2; again++) {
        static const char *const spelled[] = {"Hello", "a", "WORLD"};
        static const int n[] = {2, 2, 1};
        OK(words("\"Hello\" -- a\n WORLD! ", &err));
        ck_assert_int_eq(s.n, 3);
        ck_assert_int_eq(s.graph.n_slots, 3);
        for (int i = 0; i < 3; i++) {
            ck_assert_str_eq(lin_spoken_spell(&s, i), spelled[i]);
            ck_assert_int_eq(s.graph.slots[i].n, n[i]);
            ck_assert_int_eq(s.graph.slots[i].is_word, 1);
        }
        ck_assert_ptr_null(lin_spoken_spell(&s, 3));
        ck_assert_ptr_null(lin_spoken_spell(&s, -1));
        ck_assert_int_eq(lin_align_graph_least_rows(&s.graph), 4 + 1 + 4);
        ck_assert_uint_eq(s.guesses.n, 0);
    }
    // Derived from words that are there, and quoted ones, which are no guess.
    OK(words("'hello' cats", &err));
    ck_assert_str_eq(s.guesses.data, "cats\tK AE T S (derived)\n");
    ck_assert_str_eq(lin_spoken_spell(&s, 0), "'hello'");
    ck_assert_int_eq(s.graph.slots[0].n, 2);
    REFUSED(words("", &err), LIN_INVALID, "the text is empty");
    REFUSED(words(" -- ", &err), LIN_INVALID, "the text is empty");
    REFUSED(words("a 3", &err), LIN_FORMAT, "'3' at byte 3");
}
END_TEST

// A set that is not CMUdict's: nothing is guessed, any sound is such a word.
START_TEST(words_that_nobody_can_pronounce_are_any_sound)
{
    open_lexicon("<blank> a b c", "foo a b\nbar b c\n");
    OK(words("foo Quux, bar baz", &err));
    ck_assert_int_eq(s.graph.n_slots, 4);
    ck_assert_str_eq(s.guesses.data, "quux\t(none)\nbaz\t(none)\n");
    ck_assert_str_eq(lin_spoken_spell(&s, 1), "Quux");
    ck_assert_int_eq(s.graph.states[s.graph.slots[1].first].label, s.graph.V);
    ck_assert_int_eq(s.graph.states[s.graph.slots[2].first].label, 2); // bar
    OK(words("bar", &err));
    ck_assert_uint_eq(s.guesses.n, 0);
}
END_TEST

static const char numbers[] = "[cardinal]\n1: one\n2: two\n3:\n20: twenty[ >]\n[digit]\n0: oh\n1: =cardinal=\n[written]\n"
                              "{N} = {1:cardinal} | {1*digit}\n& = and\n${N} million = {1:cardinal} million dollars\n"
                              "x{N} = ein+{1:cardinal}\n";

// A number is a slot with the pronunciations of all its readings, in which each word has its own.
START_TEST(numbers_have_all_their_readings)
{
    open_lexicon(NULL,
                 "one W AH1 N\none HH W AH N\ntwo T UW\ntwenty T W EH1 N T IY0\nand AE N D\nand AH N D\nmillion M IH L Y AH N\n"
                 "dollars D AA L ER Z\nein AY N\nthree TH R IY\n");
    OK(lin_written_parse(numbers, sizeof numbers - 1, "numbers", &lexicon.written, &err));
    OK(words("21 & three, $2 million.", &err));
    static const char *const spelled[] = {"21", "&", "three", "$2_million"};
    static const int n[] = {2 + 2, 2, 1, 1}; // twenty one, two one
    ck_assert_int_eq(s.n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(lin_spoken_spell(&s, i), spelled[i]);
        ck_assert_int_eq(s.graph.slots[i].n, n[i]);
    }
    ck_assert_uint_eq(s.guesses.n, 0);
    static const int stress[] = {0, 0, 2, 0, 0, 1, 0, 2, 0}; // T W EH1 N T IY0 W AH1 N, with a blank behind each
    for (int i = 0; i < 9; i++) ck_assert_int_eq(s.graph.states[s.graph.slots[0].first + 2 * i].stress, stress[i]);
    OK(words("$2\u00A0million", &err));
    ck_assert_int_eq(s.n, 1);
    ck_assert_str_eq(lin_spoken_spell(&s, 0), "$2_million"); // readers of CTM may divide fields there
    OK(words("x1", &err)); // parts of a word
    ck_assert_int_eq(s.graph.slots[0].n, 2);
    const int first = s.graph.slots[0].first;
    ck_assert_str_eq(lin_phones_name(phones, s.graph.states[first].label), "AY");
    ck_assert_str_eq(lin_phones_name(phones, s.graph.states[first + 4].label), "W");
    REFUSED(words("three %", &err), LIN_FORMAT, "'%' at byte 7");
    REFUSED(words("three 4", &err), LIN_FORMAT, "'4' at byte 7"); // no rule has a reading
}
END_TEST

// A reading of many words, with more pronunciations than there is room for, leaves room for the next.
START_TEST(a_long_reading_leaves_room)
{
    static const char rules[] = "[a]\n1: twenty twenty twenty twenty twenty twenty | one\n[written]\n{N} = {1:a}\n";
    open_lexicon(NULL, "one W AH N\ntwenty T W EH N T IY\ntwenty T W EH N IY\ntwenty T W AH N IY\n");
    OK(lin_written_parse(rules, sizeof rules - 1, "rules", &lexicon.written, &err));
    OK(words("1", &err));
    ck_assert_int_eq(s.graph.slots[0].n, LIN_ALIGN_PRONUNCIATIONS);
    ck_assert_int_eq(lin_align_graph_least_rows(&s.graph), 3);
}
END_TEST

// Words with the punctuation that the text has, and what is between them.
START_TEST(words_as_they_are_written)
{
    open_lexicon(NULL, "one W AH N\ntwo T UW\n");
    static const char text[] = " - \"One,\" [laughs] two -- (one)\ntwo\xE2\x80\x94one... \n\n two !  ";
    static const struct {
        const char *written;
        int glued, line;
    } want[] = {{"- \"One,\"", 0, 2},      {"two --", 0, 0}, {"(one)", 0, 0},
                {"two\xE2\x80\x94", 0, 1}, {"one...", 1, 0}, {"two !", 0, 2}};
    OK(words(text, &err));
    ck_assert_int_eq(s.n, 6);
    for (int i = 0; i < 6; i++) {
        char got[64];
        snprintf(got, sizeof got, "%.*s", (int)s.places[i].n, s.written.data + s.places[i].written);
        ck_assert_str_eq(got, want[i].written);
        ck_assert_int_eq(s.places[i].glued, want[i].glued);
        ck_assert_int_eq(s.places[i].line, want[i].line);
    }
    ck_assert_int_eq(s.marks, 1);
    OK(words("<i>one</i>, two[laughs] <i>one<i>two", &err)); // marks take no punctuation with them
    static const char *const marked[] = {"one,", "two", "one", "two"};
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(s.places[i].n, strlen(marked[i]));
        ck_assert_mem_eq(s.written.data + s.places[i].written, marked[i], s.places[i].n);
        ck_assert_int_eq(s.places[i].glued, 0);
    }
    OK(words("one,\u00A0\"two\" \u00AB\u00A0one\u00A0\u00BB two", &err));
    static const char *const fixed[] = {"one,", "\"two\"", "\u00AB\u00A0one\u00A0\u00BB", "two"};
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(s.places[i].n, strlen(fixed[i]));
        ck_assert_mem_eq(s.written.data + s.places[i].written, fixed[i], s.places[i].n);
        ck_assert_int_eq(s.places[i].glued, 0);
    }
}
END_TEST

START_TEST(phones_in_any_case)
{
    open_lexicon(NULL, small_dictionary);
    static const char text[] = " HH ah0\n\tL ow1 ";
    OK(lin_spoken_phones(&s, phones, text, strlen(text), &err));
    ck_assert_int_eq(s.graph.n_slots, 4);
    ck_assert_int_eq(s.graph.slots[0].is_word, 0);
    static const char *const names[] = {"HH", "AH", "L", "OW"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(lin_phones_name(phones, s.graph.states[s.graph.slots[i].first].label), names[i]);
    REFUSED(lin_spoken_phones(&s, phones, "HH Q", 4, &err), LIN_INVALID, "'Q' is not a phoneme");
    REFUSED(lin_spoken_phones(&s, phones, "<blank>", 7, &err), LIN_INVALID, "'<blank>' is not a phoneme");
    REFUSED(lin_spoken_phones(&s, phones, "\x1b[0m", 4, &err), LIN_INVALID, "'?[0m' is not a phoneme");
    REFUSED(lin_spoken_phones(&s, phones, " ", 1, &err), LIN_INVALID, "there are no phonemes");
}
END_TEST

static lin_status everything(void)
{
    lin_status status = words("hello cats and a world of 1 plays", NULL);
    if (status == LIN_OK) status = lin_spoken_phones(&s, phones, "HH AH", 5, NULL);
    lin_spoken_free(&s);
    return status;
}

// A set of its own: words of any script; with a noise, a word without pronunciation is one; silences are passed over.
START_TEST(another_language)
{
    static const char dictionary[] = "Шум ʃ u m\nöl ø l\n<unk> spn\n<p> sil\n";
    unsetenv("LINNET_G2P");
    open_lexicon("<blank>\town l m sil\t(silence) spn\t(noise) u ø ʃ", dictionary);
    OK(words("ШУМ! Жук, öl", &err));
    ck_assert_int_eq(s.n, 3);
    ck_assert_str_eq(lin_spoken_spell(&s, 1), "Жук");
    ck_assert_str_eq(s.guesses.data, "жук\tspn (no rules)\n");
    ck_assert_int_eq(lin_align_graph_least_rows(&s.graph), 3 + 1 + 2);
    OK(lin_spoken_phones(&s, phones, "ʃum sil l", strlen("ʃum sil l"), &err));
    ck_assert_int_eq(s.graph.n_slots, 4);
    REFUSED(lin_spoken_phones(&s, phones, "sh", 2, &err), LIN_INVALID, "'sh' is not a phoneme");
    close_all();
    open_lexicon("<blank>\town l m u ø ʃ", "Шум ʃ u m\n");
    OK(words("шум жук", &err)); // without a noise any sound
    ck_assert_str_eq(s.guesses.data, "жук\t(none)\n");
}
END_TEST

START_TEST(memory_that_is_short)
{
    open_lexicon(NULL, "one W AH N\nhello HH AH L OW\ncat K AE T\nand AE N D\na AH\nworld W ER L D\nof AH V\nplay P L EY\n");
    OK(lin_written_parse(numbers, sizeof numbers - 1, "numbers", &lexicon.written, &err));
    FAIL_EVERY_ALLOCATION(everything(), (void)0);
}
END_TEST

TEST_MAIN_WITH(NULL, close_all, "spoken", TEST(words_with_all_pronunciations_as_they_are_written),
               TEST(words_that_nobody_can_pronounce_are_any_sound), TEST(numbers_have_all_their_readings),
               TEST(a_long_reading_leaves_room), TEST(words_as_they_are_written), TEST(phones_in_any_case),
               TEST(another_language), TEST(memory_that_is_short))
