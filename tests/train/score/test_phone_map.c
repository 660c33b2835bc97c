// train/score/trn.c, maps of phones: mapped and deleted phones, the installed map, bad files.
#include "train/score/trn.h"

#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "tests/lexicon/support.h"

static lin_status parse(const char *text, int case_sensitive, lin_phone_map **map, lin_error *err)
{
    return lin_phone_map_parse(text, strlen(text), "x.map", case_sensitive, map, err);
}

// The new name of a phone, "" if it is deleted, NULL if it is not in the map.
static const char *becomes(const lin_phone_map *map, const char *phone)
{
    const char *text = phone;
    size_t n = strlen(phone);
    switch (lin_phone_map_apply(map, &text, &n)) {
    case LIN_PHONE_MAPPED: ck_assert_uint_eq(strlen(text), n); return text;
    case LIN_PHONE_DELETED: return "";
    default: ck_assert(text == phone && n == strlen(phone)); return NULL;
    }
}

// How many phones a file maps or deletes, and how many different ones they become.
static void count_phones(const lin_phone_map *map, const char *path, int *from, int *to)
{
    char *text, phone[16];
    const char *field;
    size_t n, n_field;
    int index;
    lin_lines line;
    lin_symbols names = {0};
    OK(lin_text_read(path, &text, &n, &err));
    *from = 0;
    lin_lines_begin(&line, text, n);
    while (lin_lines_next(&line)) {
        const char *at = line.text;
        if (!lin_field_next(&at, line.text + line.n, &field, &n_field) || *field == '#') continue;
        snprintf(phone, sizeof phone, "%.*s", (int)n_field, field);
        const char *target = becomes(map, phone);
        if (*target) OK(lin_symbols_add(&names, target, strlen(target), &index, &err));
        ++*from;
    }
    *to = names.n;
    lin_symbols_free(&names);
    lin_free(text);
}

// A map has the form of the transcripts: composed letters, UTF-8.
START_TEST(forms_of_unicode)
{
    static const char wide[] = "\xFF\xFEq\0 \0a\0\n";
    lin_phone_map *map;
    OK(parse("e\u0301 e\n", 0, &map, &err));
    ck_assert_str_eq(becomes(map, "\u00E9"), "e");
    lin_phone_map_destroy(map);
    OK(lin_phone_map_parse(wide, sizeof wide, "x.map", 0, &map, &err)); // its last byte is the NUL
    ck_assert_str_eq(becomes(map, "q"), "a");
    lin_phone_map_destroy(map);
}
END_TEST

START_TEST(two_columns)
{
    lin_phone_map *map;
    OK(parse("# comment\n\n AX\tah \r\nq\nah aa\nix ih", 0, &map, &err));
    ck_assert_str_eq(becomes(map, "ax"), "ah"); // once, not on to aa
    ck_assert_str_eq(becomes(map, "ah"), "aa");
    ck_assert_str_eq(becomes(map, "q"), "");
    ck_assert_str_eq(becomes(map, "aa"), "aa"); // a name that others become
    ck_assert_str_eq(becomes(map, "ih"), "ih");
    ck_assert_ptr_null(becomes(map, "zz"));
    ck_assert_ptr_null(becomes(map, "comment"));
    lin_phone_map_destroy(map);
    lin_phone_map_destroy(NULL);
    OK(parse("AX ah\nax Ah\n", 1, &map, &err));
    ck_assert_str_eq(becomes(map, "AX"), "ah");
    ck_assert_str_eq(becomes(map, "ax"), "Ah");
    lin_phone_map_destroy(map);
    OK(parse("\xEF\xBB\xBFtʃ ch\n", 0, &map, &err));
    ck_assert_str_eq(becomes(map, "tʃ"), "ch");
    lin_phone_map_destroy(map);
}
END_TEST

START_TEST(last_of_three_columns)
{
    lin_phone_map *map;
    OK(parse("aa aa aa\nao ao aa\nbcl vcl sil\nq\n", 0, &map, &err));
    ck_assert_str_eq(becomes(map, "ao"), "aa");
    ck_assert_str_eq(becomes(map, "bcl"), "sil");
    ck_assert_str_eq(becomes(map, "q"), "");
    ck_assert_ptr_null(becomes(map, "vcl"));
    lin_phone_map_destroy(map);
}
END_TEST

START_TEST(timit_is_39_phones)
{
    static const char *const groups[][8] = {
        {"aa", "ao"}, {"ah", "ax", "ax-h"}, {"er", "axr"}, {"hh", "hv"}, {"ih", "ix"}, {"l", "el"}, {"m", "em"},
        {"n", "en", "nx"}, {"ng", "eng"}, {"sh", "zh"}, {"uw", "ux"}, {"sil", "h#", "pau", "epi"},
        {"sil", "pcl", "tcl", "kcl", "bcl", "dcl", "gcl"}};
    lin_phone_map *map;
    int from, to;
    OK(lin_phone_map_load("share/linnet/en/timit-61-39.map", 0, &map, &err));
    count_phones(map, "share/linnet/en/timit-61-39.map", &from, &to);
    ck_assert_int_eq(from, 61);
    ck_assert_int_eq(to, 39);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (int i = 0; i < 8 && groups[g][i]; i++) ck_assert_str_eq(becomes(map, groups[g][i]), groups[g][0]);
    }
    ck_assert_str_eq(becomes(map, "q"), "");
    lin_phone_map_destroy(map);
    FAILS(lin_phone_map_load("share/linnet/none.map", 0, &map, &err), LIN_IO, "none.map");
}
END_TEST

START_TEST(bad_maps)
{
    lin_phone_map *map;
    FAILS(parse("", 0, &map, &err), LIN_FORMAT, "x.map: the file has no phone");
    FAILS(parse("# nothing\n\n", 0, &map, &err), LIN_FORMAT, "no phone");
    FAILS(parse("a b\nq\nA c\n", 0, &map, &err), LIN_FORMAT, "x.map:3: 'A' is mapped twice, first in line 1");
    FAILS(parse("q\nq b\n", 0, &map, &err), LIN_FORMAT, "first in line 1");
    FAILS(parse("q\na b\n\nc d e\n", 0, &map, &err), LIN_FORMAT, "x.map:4: 3 fields, where line 2 has 2");
    FAILS(parse("a b\na\x01 b\n", 0, &map, &err), LIN_FORMAT, "x.map:2: control character 0x01 at byte 2");
    ck_assert_ptr_null(map);
}
END_TEST

START_TEST(out_of_memory)
{
    lin_phone_map *map;
    char many[4000] = "";
    for (int i = 0; i < 200; i++) sprintf(many + strlen(many), "a%d b%d\n", i, i % 7);
    FAIL_EVERY_ALLOCATION(parse(many, 0, &map, NULL), lin_phone_map_destroy(map));
    FAIL_EVERY_ALLOCATION(parse(many, 1, &map, NULL), lin_phone_map_destroy(map));
    FAIL_EVERY_ALLOCATION(lin_phone_map_load("share/linnet/en/timit-61-39.map", 0, &map, NULL), lin_phone_map_destroy(map));
}
END_TEST

TEST_MAIN("phone_map", TEST(two_columns), TEST(last_of_three_columns), TEST(timit_is_39_phones), TEST(bad_maps),
          TEST(out_of_memory), TEST(forms_of_unicode))
