// lexicon/phones.c: the default set, sets from lists, refused input. base/symbols.c: strings to integers.
#include "lexicon/phones.h"

#include "base/symbols.h"
#include "base/textfile.h"
#include "tests/lexicon/support.h"

static lin_phones *p;

static void drop(void)
{
    lin_phones_destroy(p);
    p = NULL;
}

START_TEST(default_set)
{
    OK(lin_phones_create(NULL, &p, &err));
    ck_assert_int_eq(lin_phones_count(p), LIN_PHONES_DEFAULT_COUNT);
    ck_assert_str_eq(lin_phones_name(p, 0), "<blank>");
    ck_assert_str_eq(lin_phones_name(p, 1), "AA");
    ck_assert_str_eq(lin_phones_name(p, 39), "ZH");
    ck_assert_ptr_null(lin_phones_name(p, 40));
    ck_assert_ptr_null(lin_phones_name(p, -1));
    for (int i = 0; i < 40; i++) {
        const char *name = lin_phones_name(p, i);
        ck_assert_int_eq(lin_phones_find(p, name, strlen(name)), i);
        if (i > 1) ck_assert_int_gt(strcmp(name, lin_phones_name(p, i - 1)), 0);
        if (i) ck_assert_str_ne(lin_phones_ipa(p, i), "");
    }
    ck_assert_int_eq(lin_phones_find(p, "AAX", 2), 1);
    ck_assert_int_eq(lin_phones_find(p, "A", 1), -1);
    ck_assert_int_eq(lin_phones_find(p, "aa", 2), -1);
    ck_assert_int_eq(lin_phones_find(p, "", 0), -1);
    ck_assert_int_eq(lin_phones_find(p, "AA1", 3), -1);
    ck_assert_int_eq(lin_phones_find_unstressed(p, "AA1", 3), 1);
    ck_assert_int_eq(lin_phones_find_unstressed(p, "AA3", 3), -1);
    ck_assert_int_eq(lin_phones_find_unstressed(p, "1", 1), -1);
    ck_assert_str_eq(lin_phones_ipa(p, 30), "ʃ");
    ck_assert_str_eq(lin_phones_name(p, 30), "SH");
    ck_assert_str_eq(lin_phones_list(p), lin_phones_default);
}
END_TEST

START_TEST(languages)
{
    static const char *const codes[] = {"de", "nds", "pt-BR", "zh-Hant-TW", "es-419"},
                            *const others[] = {"", "d", "own", "DE", "deut", "de-", "de--x", "de_AT", "d1", "../de",
                                               "de-abcdefghijklm"};
    for (int i = 0; i < 5; i++) ck_assert_msg(lin_phones_is_language(codes[i]), "%s", codes[i]);
    for (int i = 0; i < 11; i++) ck_assert_msg(!lin_phones_is_language(others[i]), "%s", others[i]);
    OK(lin_phones_create("<blank>\tde a\tɐ b", &p, &err));
    ck_assert(lin_phones_is_own(p));
    ck_assert_str_eq(lin_phones_language(p), "de");
    lin_phones_destroy(p);
    OK(lin_phones_create("<blank>\town a\tɐ b", &p, &err));
    ck_assert_str_eq(lin_phones_language(p), "");
    FAILS(lin_phones_set_language(p, "German", &err), LIN_INVALID, "'German' is not the code of a language");
    OK(lin_phones_set_language(p, "de-AT", &err));
    ck_assert_str_eq(lin_phones_language(p), "de-AT");
    ck_assert_str_eq(lin_phones_list(p), "<blank>\tde-AT a\tɐ b");
    ck_assert_int_eq(lin_phones_find(p, "b", 1), 2);
    lin_phones_destroy(p);
    OK(lin_phones_create(NULL, &p, &err));
    ck_assert_str_eq(lin_phones_language(p), "en");
    OK(lin_phones_set_language(p, "de", &err)); // of English phones it is not
    ck_assert_str_eq(lin_phones_language(p), "en");
}
END_TEST

START_TEST(set_from_a_list)
{
    OK(lin_phones_create("<blank> AA0 AA1 sil", &p, &err));
    ck_assert_int_eq(lin_phones_count(p), 4);
    ck_assert_int_eq(lin_phones_find_unstressed(p, "AA1", 3), 2);
    ck_assert_int_eq(lin_phones_find_unstressed(p, "AA2", 3), -1);
    ck_assert_str_eq(lin_phones_ipa(p, 1), "ɑ");
    ck_assert_str_eq(lin_phones_ipa(p, 3), "sil");
    ck_assert_ptr_null(lin_phones_ipa(p, 4));
    lin_phones_destroy(NULL);
}
END_TEST

START_TEST(bad_sets)
{
    FAILS(lin_phones_create("", &p, &err), LIN_INVALID, "empty");
    ck_assert_ptr_null(p);
    FAILS(lin_phones_create("<blank>", &p, &err), LIN_INVALID, "no phone");
    FAILS(lin_phones_create("AA <blank>", &p, &err), LIN_INVALID, "'AA'");
    FAILS(lin_phones_create("<blank> AA  B", &p, &err), LIN_INVALID, "name 2 is empty");
    FAILS(lin_phones_create("<blank> AA ", &p, &err), LIN_INVALID, "name 2 is empty");
    FAILS(lin_phones_create(" <blank> AA", &p, &err), LIN_INVALID, "name 0 is empty");
    FAILS(lin_phones_create("<blank> AA B AA", &p, &err), LIN_INVALID, "'AA' appears twice, as names 1 and 3");
    FAILS(lin_phones_create("<blank> A\t", &p, &err), LIN_INVALID, "the IPA of name 1, 'A', is empty");
    FAILS(lin_phones_create("<blank> A\ta\tb", &p, &err), LIN_INVALID, "the IPA of name 1, 'A', is empty, too long, or not text");
    FAILS(lin_phones_create("<blank> \ta", &p, &err), LIN_INVALID, "name 1 is empty");
    FAILS(lin_phones_create("<blank>\ta A", &p, &err), LIN_INVALID, "'a' after <blank>; only 'own'");
    FAILS(lin_phones_create("<blank> A\x01", &p, &err), LIN_INVALID, "'A?'");
    FAILS(lin_phones_create("<blank> AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &p, &err), LIN_INVALID, "too long");
    char *many = malloc(70000 * 8);
    size_t n = (size_t)sprintf(many, "<blank>");
    for (int i = 0; i < 70000; i++) n += (size_t)sprintf(many + n, " %d", i);
    FAILS(lin_phones_create(many, &p, &err), LIN_INVALID, "more than 65536");
    free(many);
}
END_TEST

// How a field is read, "AH0 L OW": names of the set, with stress where the field has it; "" if it is refused.
static const char *read_as(const char *text)
{
    static char out[512];
    lin_phone_read read[LIN_PHONES_READ_MAX];
    int mark = 0;
    out[0] = 0;
    const int n = lin_phones_read(p, text, strlen(text), read, LIN_PHONES_READ_MAX, &mark);
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(out);
        snprintf(out + used, sizeof out - used, "%s%s", i ? " " : "", lin_phones_name(p, read[i].label));
        if (read[i].stress >= 0) snprintf(out + strlen(out), sizeof out - strlen(out), "%d", read[i].stress);
    }
    return out;
}

// Printed symbols can be read back: every symbol, alone, in a row with others, with marks.
START_TEST(ipa_is_read)
{
    OK(lin_phones_create(NULL, &p, &err));
    for (int i = 1; i < 40; i++) {
        ck_assert_str_eq(read_as(lin_phones_ipa(p, i)), lin_phones_name(p, i));
        ck_assert_str_eq(read_as(lin_phones_name(p, i)), lin_phones_name(p, i));
        ck_assert_str_eq(lin_phones_cmu(p, i), lin_phones_name(p, i));
    }
    static const char *const cases[][2] = {
        {"ah0", "AH0"}, {"Ow1", "OW1"}, {"hh", "HH"}, {"hʌloʊ", "HH AH L OW"}, {"həˈloʊ", "HH AH L OW1"},
        {"ˈt͡ʃɪəɹ", "CH IH1 AH R"},
        {"t͜ʃ", "CH"}, {"ʧ", "CH"}, {"d͡ʒ", "JH"}, {"ʤ", "JH"}, {"g", "G"}, {"ɡ", "G"}, {"r", "R"}, {"ɹ", "R"}, {"ɚ", "ER"},
        {"ɝ", "ER"},
        {"ɜː", "ER"}, {"ə˞", "ER"}, {"iː", "IY"}, {"uˑ", "UW"}, {"kʰ", "K"}, {"tʲ", "T"}, {"t̪", "T"}, {"aɪ̯", "AY"},
        {"aj", "AY"}, {"ɾ", "T"},
        {"bʌtn̩", "B AH T AH N"}, {"ˈɹɪðm̩", "R IH1 DH AH M"}, {"ˌʌn.ˈdu", "AH2 N D UW1"}, {"ɫ̩", "AH L"}, {"'hæt", "HH AE1 T"},
        {"\u1EBD", "EH"}, {"e\u0303", "EH"}, {"\u00E7", "HH"}, {"əʊ", "OW"}, {"e", "EH"}, {"ˈˌɑ", "AA2"},
        {"", ""}, {"hat", ""}, {"world", ""}, {"ˈ", ""}, {"qʌ", ""}, {"AH3", ""}, {"<blank>", ""}, {"ʌ<", ""}, {"\xCA", ""},
        {"̩", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) ck_assert_str_eq(read_as(cases[i][0]), cases[i][1]);
    char many[600] = "";
    for (int i = 0; i < 65; i++) strcat(many, "ʌ");
    ck_assert_str_eq(read_as(many), "");
    ck_assert_int_eq((int)strlen(read_as(many + 2)), 64 * 3 - 1);
    lin_phone_read one[2];
    int mark = 0;
    ck_assert_int_eq(lin_phones_read(p, "hʌ", strlen("hʌ"), one, 1, &mark), 0);
    ck_assert_int_eq(lin_phones_read(p, "ˈl", strlen("ˈl"), one, 2, &mark), 1); // the mark goes on to the vowel of the next field
    ck_assert_int_eq(mark, 1);
    ck_assert_int_eq(lin_phones_read(p, "oʊ", strlen("oʊ"), one, 2, &mark), 1);
    ck_assert(one[0].stress == 1 && mark == 0);
    ck_assert(lin_phones_is_vowel(p, 1) && !lin_phones_is_vowel(p, 39) && !lin_phones_is_vowel(p, 0) &&
              !lin_phones_is_vowel(p, 40));
}
END_TEST

START_TEST(sets_in_the_ipa)
{
    OK(lin_phones_create("<blank> ɑ oʊ t͡ʃ xyz", &p, &err));
    ck_assert_str_eq(read_as("AA1"), "ɑ1");
    ck_assert_str_eq(read_as("ow"), "oʊ");
    ck_assert_str_eq(read_as("tʃɑ"), "t͡ʃ ɑ");
    ck_assert_str_eq(read_as("xyz"), "xyz");
    ck_assert_str_eq(read_as("B"), "");
    ck_assert_str_eq(lin_phones_cmu(p, 3), "CH");
    ck_assert_ptr_null(lin_phones_cmu(p, 4));
    ck_assert_ptr_null(lin_phones_cmu(p, 0));
    lin_phones_destroy(p);
    OK(lin_phones_create("<blank> AA0 AA1 B", &p, &err));
    ck_assert_str_eq(read_as("bˈɑ"), "B AA11"); // of the set's phone with stress, and the stress
    ck_assert_str_eq(read_as("ɑ"), "AA0");
    ck_assert_str_eq(read_as("AA1"), "AA1");
}
END_TEST

// Names of a set of its own mean only themselves.
START_TEST(sets_of_their_own)
{
    static const char list[] = "<blank>\town a\tɐ aː sch\tʃ S x tʰ oʊ sil\t(silence) spn\t(noise) 1 ø t h l";
    OK(lin_phones_create(list, &p, &err));
    ck_assert(lin_phones_is_own(p) && lin_phones_count(p) == 15);
    ck_assert_str_eq(lin_phones_list(p), list);
    ck_assert_str_eq(lin_phones_name(p, 1), "a");
    static const char *const cases[][2] = {
        {"a", "a"}, {"aː", "aː"}, {"ɐ", "a"}, {"ʃ", "sch"}, {"sch", "sch"}, {"S", "S"}, {"1", "1"}, {"haːloʊ", "h aː l oʊ"},
        {"haːˈloʊ", "h aː l oʊ1"}, {"tʰaˌlø", "tʰ a l ø2"}, {"sil", "sil"}, {"h.a‿l", "h a l"},
        {"s", ""}, {"A", ""}, {"a1", ""}, {"AA", ""}, {"b", ""}, {"hal", ""}, {"ˈ", ""}, {"", ""}, {"'a", ""},
        {"<blank>", ""}, {"aːː", ""}, {"\xC3", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) ck_assert_str_eq(read_as(cases[i][0]), cases[i][1]);
    ck_assert_str_eq(lin_phones_ipa(p, 1), "ɐ");
    ck_assert_str_eq(lin_phones_ipa(p, 4), "S");
    ck_assert_str_eq(lin_phones_ipa(p, 8), "sil");
    ck_assert(lin_phones_kind(p, 8) == LIN_PHONE_SILENCE && lin_phones_kind(p, 9) == LIN_PHONE_NOISE &&
              lin_phones_kind(p, 7) == LIN_PHONE_SOUND && lin_phones_kind(p, 0) == LIN_PHONE_SOUND);
    ck_assert(lin_phones_is_vowel(p, 1) && lin_phones_is_vowel(p, 2) && lin_phones_is_vowel(p, 11));
    ck_assert(!lin_phones_is_vowel(p, 3) && !lin_phones_is_vowel(p, 8));
    ck_assert_ptr_null(lin_phones_cmu(p, 12));
    ck_assert_str_eq(lin_phones_similar(p, 1), "AH");
    ck_assert_str_eq(lin_phones_similar(p, 2), "AA");
    ck_assert_str_eq(lin_phones_similar(p, 3), "SH");
    ck_assert_str_eq(lin_phones_similar(p, 6), "T");
    ck_assert_ptr_null(lin_phones_similar(p, 5));
    ck_assert_ptr_null(lin_phones_similar(p, 8));
    ck_assert_ptr_null(lin_phones_similar(p, 0));
}
END_TEST

START_TEST(sets_in_files)
{
#define PARSE(text, own) lin_phones_parse(text, strlen(text), "f", own, &p, &err)
    OK(PARSE("# comment\na ɐ\n\nsil silence\nspn noise # of a dog\nb # c\n#\nk 7\n", 1));
    ck_assert_str_eq(lin_phones_list(p), "<blank>\town a\tɐ sil\t(silence) spn\t(noise) b k");
    lin_phones_destroy(p);
    OK(PARSE("<blank> 0\na 1\n", 1));
    ck_assert_str_eq(lin_phones_list(p), "<blank>\town a");
    lin_phones_destroy(p);
    OK(PARSE("<blank> 0\na 1\n", 0));
    ck_assert_str_eq(lin_phones_list(p), "<blank> a");
    lin_phones_destroy(p);
    char cmu[256];
    snprintf(cmu, sizeof cmu, "%s", lin_phones_default);
    for (char *c = cmu; *c; c++) *c = *c == ' ' ? '\n' : *c;
    OK(PARSE(cmu, 1));
    ck_assert_str_eq(lin_phones_list(p), lin_phones_default);
    lin_phones_destroy(p);
    OK(lin_phones_load("share/linnet/en/phones.txt", 1, &p, &err)); // what the library has in it
    ck_assert_str_eq(lin_phones_list(p), lin_phones_default);
    lin_phones_destroy(p);
    FAILS(PARSE("a\nb\n", 0), LIN_INVALID, "f: phone set: the first name is 'a', it must be <blank>");
    FAILS(lin_phones_load("share/linnet/en/phones.txt", 0, &p, &err), LIN_INVALID, "the first name is 'AA', it must be <blank>");
    FAILS(PARSE("", 1), LIN_INVALID, "f: phone set: there is no phone");
    FAILS(PARSE("a\nb\na\n", 1), LIN_INVALID, "f: phone set: 'a' appears twice");
    FAILS(PARSE("a\n<blank>\n", 1), LIN_INVALID, "'<blank>' appears twice");
    FAILS(PARSE("\xE4\n", 1), LIN_FORMAT, "f:1: byte 0xe4 is not UTF-8");
    char many[256 * 5] = "";
    for (int i = 0; i < 256; i++) snprintf(many + strlen(many), 8, "%d\n", i);
    FAILS(PARSE(many, 1), LIN_INVALID, "f: the set has 256 phones; at most 255");
    ck_assert_ptr_null(p);
    ck_assert(lin_phones_usual_kind("SIL", 3) == LIN_PHONE_SILENCE && lin_phones_usual_kind("spn", 3) == LIN_PHONE_NOISE &&
              lin_phones_usual_kind("s", 1) == LIN_PHONE_SOUND);
}
END_TEST

START_TEST(out_of_memory)
{
    FAIL_EVERY_ALLOCATION(lin_phones_parse("a ɐ\nb\n", 7, "f", 1, &p, NULL), drop());
    FAIL_EVERY_ALLOCATION(lin_phones_create(NULL, &p, NULL), drop());
}
END_TEST

START_TEST(symbols_are_numbered)
{
    lin_symbols s = {0};
    int index;
    char text[32];
    ck_assert_int_eq(lin_symbols_find(&s, "x", 1), -1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 20000; i++) {
            int n = snprintf(text, sizeof text, "%d", i * 7);
            OK(lin_symbols_add(&s, text, (size_t)n, &index, &err));
            ck_assert_int_eq(index, i);
        }
    }
    ck_assert_int_eq(s.n, 20000);
    ck_assert_str_eq(lin_symbols_text(&s, 1234), "8638");
    ck_assert_int_eq(lin_symbols_find(&s, "8638", 4), 1234);
    ck_assert_int_eq(lin_symbols_find(&s, "8639", 4), -1);
    OK(lin_symbols_add(&s, "", 0, &index, &err));
    ck_assert_int_eq(index, 20000);
    OK(lin_symbols_add(&s, "a\0b", 3, &index, &err));
    ck_assert_int_eq(lin_symbols_find(&s, "a\0b", 3), 20001);
    ck_assert_int_eq(lin_symbols_find(&s, "a\0c", 3), -1);
    lin_symbols_free(&s);
    ck_assert_int_eq(s.n, 0);
}
END_TEST

// A failed add leaves the table unchanged.
START_TEST(symbols_survive_failures)
{
    for (unsigned long k = 1; k < 40; k++) {
        lin_symbols s = {0};
        char text[32];
        int index, added = 0;
        lin_memory_fail_at(k);
        for (int i = 0; i < 500; i++) {
            int n = snprintf(text, sizeof text, "word number %d", i);
            if (lin_symbols_add(&s, text, (size_t)n, &index, NULL) == LIN_OK) added++;
            else ck_assert_int_eq(lin_symbols_find(&s, text, (size_t)n), -1);
        }
        lin_memory_fail_at(0);
        ck_assert_int_eq(s.n, added);
        ck_assert_int_ge(added, 499);
        for (int i = 0; i < s.n; i++) ck_assert_int_eq(lin_symbols_find(&s, lin_symbols_text(&s, i), s.items[i].n), i);
        lin_symbols_free(&s);
    }
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        const char *text;
        int good;
        double value;
    } cases[] = {{"0.3", 1, 0.3},
                 {"0", 1, 0},       {"12", 1, 12},   {"-0.5", 1, -0.5}, {"+3.25", 1, 3.25}, {".5", 1, 0.5},  {"5.", 1, 5},
                 {"1e-3", 1, 1e-3}, {"2E2", 1, 200}, {"", 0, 0},        {".", 0, 0},        {"1e", 0, 0},    {"1,5", 0, 0},
                 {"nan", 0, 0},     {"inf", 0, 0},   {"0x10", 0, 0},    {"1 ", 0, 0},       {"1e999", 0, 0}, {"--1", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 0;
        ck_assert_msg(lin_text_number(cases[i].text, strlen(cases[i].text), &value) == cases[i].good, "%s", cases[i].text);
        if (cases[i].good) ck_assert_msg(value == cases[i].value, "%s: %.17g", cases[i].text, value);
    }
}
END_TEST

TEST_MAIN_WITH(NULL, drop, "phones", TEST(default_set), TEST(languages), TEST(set_from_a_list), TEST(bad_sets), TEST(ipa_is_read),
               TEST(sets_in_the_ipa), TEST(sets_of_their_own), TEST(sets_in_files), TEST(out_of_memory),
               TEST(symbols_are_numbered), TEST(symbols_survive_failures), TEST(numbers))
