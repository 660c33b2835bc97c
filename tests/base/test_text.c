// UTF-8, lines and fields, and growing text, each against an independent computation.
#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "tests/support.h"

static int is_scalar(unsigned code) { return code <= 0x10FFFF && (code < 0xD800 || code >= 0xE000); }

START_TEST(every_character_there_and_back)
{
    for (unsigned code = 0; code < 0x110000; code++) {
        char text[5] = {0};
        unsigned back = 0;
        const size_t n = lin_utf8_encode(code, text), got = lin_utf8_decode(text, n, &back);
        const int is_control = code < 0x20 || (code >= 0x7F && code < 0xA0);
        test_require(got == (is_scalar(code) ? n : 0) && (!got || back == code), "U+%04X: %zu bytes of %zu", code, got, n);
        test_require(lin_utf8_decode(text, n - 1, NULL) == 0, "U+%04X cut is whole", code);
        test_require(lin_utf8_prefix(text, n, "") == (got && !is_control ? n : 0), "U+%04X may be printed?", code);
        if (code) test_require(lin_utf8_count(text) == 1, "U+%04X counts as %zu", code, lin_utf8_count(text));
    }
}
END_TEST

// All texts of three bytes: well-formed are as many as there are characters of one to three bytes, in all orders.
START_TEST(nothing_else_is_well_formed)
{
    long whole = 0;
    for (unsigned bytes = 0; bytes < 1 << 24; bytes++) {
        const char text[3] = {(char)(bytes >> 16), (char)(bytes >> 8), (char)bytes};
        size_t at = 0, k;
        while (at < 3 && (k = lin_utf8_decode(text + at, 3 - at, NULL)) > 0) at += k;
        whole += at == 3;
    }
    ck_assert_int_eq(whole, 128L * 128 * 128 + 2L * 128 * (0x800 - 0x80) + (0x10000 - 0x800 - 0x800));
}
END_TEST

START_TEST(the_first_bad_byte)
{
    ck_assert_uint_eq(lin_utf8_prefix("a\tb\nc", 5, "\t\n"), 5);
    ck_assert_uint_eq(lin_utf8_prefix("a\tb\nc", 5, "\n"), 1);
    ck_assert_uint_eq(lin_utf8_prefix("a\0b", 3, "\t\n"), 1); // NUL is never allowed
    ck_assert_uint_eq(lin_utf8_prefix("\xC3\xA9\xC2\x85", 4, ""), 2); // U+0085
    ck_assert_uint_eq(lin_utf8_prefix("\xC3\xA9\xED\xA0\x80", 5, ""), 2); // half of a pair
    ck_assert_uint_eq(lin_utf8_prefix("", 0, ""), 0);
    ck_assert_str_eq(lin_utf8_line("\xC3\xA9"), "\xC3\xA9");
    ck_assert_str_eq(lin_utf8_line("a\nb"), "(text of several lines)");
    ck_assert_uint_eq(lin_utf8_count("na\xC3\xAFve"), 5);
}
END_TEST

START_TEST(lines_and_fields)
{
    static const char text[] = "\xEF\xBB\xBF \tone two\tthree \r\n\nfour", *const want[] = {"one", "two", "three"};
    lin_lines l;
    const char *field;
    size_t n;
    for (int c = -128; c < 128; c++) ck_assert_int_eq(lin_is_space((char)c), c == ' ' || c == '\t' || c == '\r');
    lin_lines_begin(&l, text, sizeof text - 1);
    ck_assert(lin_lines_next(&l) && l.n == 16 && l.offset == 3);
    const char *at = l.text, *end = l.text + l.n;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(lin_field_next(&at, end, &field, &n), 1);
        ck_assert(n == strlen(want[i]) && !memcmp(field, want[i], n));
    }
    ck_assert_int_eq(lin_field_next(&at, end, &field, &n), 0);
    ck_assert(lin_lines_next(&l) && l.n == 0);
    ck_assert(lin_lines_next(&l) && l.n == 4 && l.number == 3);
    ck_assert(!lin_lines_next(&l));
    lin_lines_begin(&l, NULL, 0);
    ck_assert(!lin_lines_next(&l));
}
END_TEST

START_TEST(text_grows)
{
    lin_buffer b = {0};
    char want[4000] = "", *to = want;
    for (int i = 0; i < 300; i++) {
        lin_buffer_format(&b, "%d:%s,", i, i % 2 ? "odd" : "");
        to += sprintf(to, "%d:%s,", i, i % 2 ? "odd" : "");
        ck_assert(b.n == (size_t)(to - want) && !b.data[b.n]);
    }
    ck_assert_str_eq(b.data, want);
    lin_buffer_format(&b, "%s", "");
    ck_assert_uint_eq(b.n, (size_t)(to - want));
    lin_memory_fail_at(1);
    lin_buffer_format(&b, "%5000d", 1);
    lin_memory_fail_at(0);
    lin_buffer_text(&b, "more");
    ck_assert_int_eq(lin_buffer_status(&b, NULL), LIN_NO_MEMORY);
    ck_assert_str_eq(b.data, want);
    lin_buffer_free(&b);
}
END_TEST

TEST_MAIN("base/text", TEST(every_character_there_and_back), TEST(nothing_else_is_well_formed), TEST(the_first_bad_byte),
          TEST(lines_and_fields), TEST(text_grows))
