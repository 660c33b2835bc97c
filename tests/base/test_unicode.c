// base/unicode.c: composed letters against Python's unicodedata, letters and their case against Perl's tables, invisible
// characters, UTF-16, other encodings, failing memory.
//
//   test_unicode [FOLDER]     FOLDER (default tests/golden) holds unicode.txt and letters.txt of unicode.py and letters.pl there
#include "base/unicode.h"

#include "base/memory.h"
#include "base/textfile.h"
#include "tests/lexicon/support.h"

// The clean text, valid until the next call; the message of a failure.
static const char *clean(const char *text, size_t n, lin_unicode_rule rule)
{
    static char out[512];
    static lin_error why = {0};
    char *own;
    const char *to;
    size_t n_to;
    if (lin_unicode_clean(text, n, "x", rule, &own, &to, &n_to, &why)) {
        ck_assert_ptr_null(own);
        return why.message;
    }
    ck_assert(own ? to == own : to == text && n_to == n);
    ck_assert_uint_lt(n_to, sizeof out);
    memcpy(out, to, n_to);
    out[n_to] = '\0';
    lin_free(own);
    return out;
}

#define ANY(text) clean(text, sizeof(text) - 1, LIN_UNICODE_ANY)
#define ONLY(text) clean(text, sizeof(text) - 1, LIN_UNICODE_ONLY)

START_TEST(composed_as_by_python)
{
    char *text;
    size_t n;
    int lines = 0;
    OK(lin_text_read(golden_path("unicode.txt"), &text, &n, &err));
    lin_lines line;
    lin_lines_begin(&line, text, n);
    while (lin_lines_next(&line)) {
        const char *tab = memchr(line.text, '\t', line.n);
        ck_assert_ptr_nonnull(tab);
        char *want = lin_text_copy(tab + 1, line.n - (size_t)(tab + 1 - line.text));
        ck_assert_str_eq(clean(line.text, (size_t)(tab - line.text), LIN_UNICODE_ONLY), want);
        ck_assert_str_eq(clean(want, strlen(want), LIN_UNICODE_ONLY), want);
        lin_free(want);
        lines++;
    }
    ck_assert_int_ge(lines, 300);
    lin_free(text);
}
END_TEST

START_TEST(letters_as_by_perl)
{
    char *text;
    size_t n;
    int lines = 0;
    OK(lin_text_read(golden_path("letters.txt"), &text, &n, &err));
    lin_lines line;
    lin_lines_begin(&line, text, n);
    while (lin_lines_next(&line)) {
        unsigned code, small;
        char kind;
        ck_assert_int_eq(sscanf(line.text, "%x %c %x", &code, &kind, &small), 3);
        ck_assert_msg(lin_unicode_is_letter(code) == (kind == 'L'), "U+%04X is of kind %c", code, kind);
        ck_assert_msg(lin_unicode_is_punctuation(code) == (kind == 'P'), "U+%04X is of kind %c", code, kind);
        ck_assert_msg(lin_unicode_lower(code) == small, "U+%04X: small U+%04X, not U+%04X", code, small, lin_unicode_lower(code));
        lines++;
    }
    ck_assert_int_ge(lines, 500);
    lin_free(text);
}
END_TEST

START_TEST(small_letters)
{
    char out[64];
    static const char *const texts[][2] = {{"ÄRGER Straße", "ärger straße"}, {"ЖУК", "жук"}, {"ΛΌΓΟΣ", "λόγοσ"}, {"ẞ", "ß"},
                                           {"İ", "İ"}, {"一二", "一二"}, {"A\xFF\xC3Z", "a\xFF\xC3z"}, {"", ""}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t n = lin_unicode_lower_text(out, texts[i][0], strlen(texts[i][0]));
        ck_assert_uint_eq(n, strlen(texts[i][1]));
        ck_assert_mem_eq(out, texts[i][1], n);
    }
    memcpy(out, "ÖL", 3);
    ck_assert_uint_eq(lin_unicode_lower_text(out, out, 3), 3); // in its place
    ck_assert_mem_eq(out, "öl", 3);
}
END_TEST

START_TEST(invisible_characters)
{
    ck_assert_str_eq(ANY("co\u00ADop\u200Berate\u2060\n"), "cooperate\n");
    ck_assert_str_eq(ANY("\uFEFFa\u200E \u202Bb\u202C"), "a b");
    ck_assert_str_eq(ANY("e\u200D\u0301"), "é"); // not between a letter and its mark either
    ck_assert_str_eq(ANY("\u0301"), "\u0301");
    ck_assert_str_eq(ANY("\u00AD"), "");
    ck_assert_str_eq(ANY(""), "");
    ck_assert_str_eq(ANY("日本 plain"), "日本 plain");
}
END_TEST

START_TEST(ligatures)
{
    ck_assert_str_eq(ANY("o\uFB03ce \uFB00\uFB01\uFB02\uFB04"), "office fffiflffl");
    ck_assert_str_eq(ANY("\uFB01\u0301e\u0301"), "fíé"); // a mark belongs to the last letter
}
END_TEST

START_TEST(other_encodings)
{
    ck_assert_str_eq(ONLY("\xFF\xFEh\0e\0\x01\x03\x3D\xD8\0\xDE"), "hé\U0001F600");
    ck_assert_str_eq(ONLY("\xFE\xFF\0h\xD8\x3D\0i"), "h\uFFFDi");
    ck_assert_str_eq(ONLY("it\x92s"),
                     "x:1: byte 0x92 is not UTF-8; convert the text, for example with iconv -f WINDOWS-1252 -t UTF-8");
    ck_assert_str_eq(ANY("it\x92s e\u0301"), "it\x92s e\u0301");
    HAS(ONLY("a\nb\xC3"), "x:2: byte 0xc3");
    HAS(ANY("lintree\0"), "x is not a text (byte 8 is 0)");
    HAS(ONLY("h\0i\0"), "iconv -f UTF-16LE");
    HAS(ONLY("\xFF\xFE\0\0h\0\0\0"), "iconv -f UTF-32");
}
END_TEST

START_TEST(many_marks_and_no_memory)
{
    char text[1 + 2 * 200] = "e", *own;
    const char *to;
    size_t n;
    for (int i = 0; i < 200; i++) memcpy(text + 1 + 2 * i, i % 2 ? "\u0323" : "\u0301", 2);
    OK(lin_unicode_clean(text, sizeof text, NULL, LIN_UNICODE_ONLY, &own, &to, &n, &err));
    ck_assert_uint_eq(lin_utf8_prefix(to, n, ""), n);
    lin_free(own);
    FAIL_EVERY_ALLOCATION(lin_unicode_clean(text, sizeof text, NULL, LIN_UNICODE_ONLY, &own, &to, &n, NULL), lin_free(own));
    FAIL_EVERY_ALLOCATION(lin_unicode_clean("\xFF\xFE\x01\x03", 4, NULL, LIN_UNICODE_ONLY, &own, &to, &n, NULL), lin_free(own));
}
END_TEST

TEST_MAIN("unicode", TEST(composed_as_by_python), TEST(letters_as_by_perl), TEST(small_letters), TEST(invisible_characters),
          TEST(ligatures), TEST(other_encodings), TEST(many_marks_and_no_memory))
