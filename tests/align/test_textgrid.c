// align/textgrid.c: both text forms, encodings, refused files with their line, which tiers hold utterances; every allocation
// failing.
#include "align/textgrid.h"

#include "base/unicode.h"
#include "tests/lexicon/support.h"

static const char long_form[] =
    "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0 \nxmax = 2.5 \ntiers? <exists> \nsize = 3 \nitem []: \n"
    "    item [1]:\n        class = \"IntervalTier\" \n        name = \"anna\" \n        xmin = 0 \n        xmax = 2.5 \n"
    "        intervals: size = 3 \n        intervals [1]:\n            xmin = 0 \n            xmax = 1.2 \n"
    "            text = \"one \"\"two\"\"\" \n"
    "        intervals [2]:\n            xmin = 1.2 \n            xmax = 1.5 \n            text = \"\" \n"
    "        intervals [3]:\n            xmin = 1.5 \n            xmax = 2.5 \n            text = \"h\xC3\xA9\nllo\" \n"
    "    item [2]:\n        class = \"TextTier\" \n        name = \"marks\" \n        xmin = 0 \n        xmax = 2.5 \n"
    "        points: size = 1 \n        points [1]:\n            number = 1 \n            mark = \"click\" \n"
    "    item [3]:\n        class = \"IntervalTier\" \n        name = \"ben\" \n        xmin = 0 \n        xmax = 2.5 \n"
    "        intervals: size = 1 \n        intervals [1]:\n            xmin = 1.2 \n            xmax = 1.5 \n"
    "            text = \"yes\" \n";

static const char short_form[] =
    "\"ooTextFile\"\n\"TextGrid\"\n0\n2.5\n<exists> ! a comment \"with\" 1 number\n3\n\"IntervalTier\"\n\"anna\"\n0\n2.5\n3\n"
    "0\n1.2\n\"one \"\"two\"\"\"\n1.2\n1.5\n\"\"\n1.5\n2.5\n\"h\xC3\xA9\nllo\"\n\"TextTier\" \"marks\" 0 2.5 1 1 \"click\"\r\n"
    "\"IntervalTier\"\r\n\"ben\"\r\n0\r\n2.5\r\n1\r\n1.2\r\n1.5\r\n\"yes\"";

static void check_grid(const lin_textgrid *g)
{
    ck_assert_int_eq(g->n_tiers, 3);
    ck_assert_str_eq(lin_textgrid_text(g, g->tiers[0].name), "anna");
    ck_assert(g->tiers[0].n == 3 && g->tiers[1].is_points && g->tiers[1].n == 0 && g->tiers[2].n == 1);
    const lin_textgrid_interval *v = &g->intervals[g->tiers[0].first];
    ck_assert_str_eq(lin_textgrid_text(g, v[0].text), "one \"two\"");
    ck_assert_str_eq(lin_textgrid_text(g, v[1].text), "");
    ck_assert_str_eq(lin_textgrid_text(g, v[2].text), "h\xC3\xA9 llo");
    ck_assert_double_eq_tol(v[1].start_s, 1.2, 1e-9);
    ck_assert_double_eq_tol(v[1].end_s, 1.5, 1e-9);
    ck_assert_str_eq(lin_textgrid_text(g, g->intervals[g->tiers[2].first].text), "yes");
}

#define PARSE(text) lin_textgrid_parse(text, strlen(text), "x.TextGrid", &g, &err)

START_TEST(both_forms)
{
    lin_textgrid g;
    OK(PARSE(long_form));
    check_grid(&g);
    ck_assert_int_eq(lin_textgrid_choose(&g), 2); // ben speaks beside anna
    lin_textgrid_free(&g);
    OK(PARSE(short_form));
    check_grid(&g);
    lin_textgrid_free(&g);
    FAIL_EVERY_ALLOCATION(lin_textgrid_parse(long_form, sizeof long_form - 1, "x", &g, NULL), lin_textgrid_free(&g));
    ck_assert_uint_eq(lin_memory_live(), 0);
}
END_TEST

// The encoding in which Praat writes text that is not ASCII.
START_TEST(encodings)
{
    lin_textgrid g;
    char bytes[4 * sizeof short_form], bom[sizeof short_form + 3] = "\xEF\xBB\xBF";
    memcpy(bom + 3, short_form, sizeof short_form);
    OK(PARSE(bom));
    check_grid(&g);
    lin_textgrid_free(&g);
    for (int big = 0; big < 2; big++) {
        size_t n = 0;
        bytes[n++] = (char)(big ? 0xFE : 0xFF), bytes[n++] = (char)(big ? 0xFF : 0xFE);
        for (const char *c = short_form; *c;) {
            unsigned code = 0;
            c += lin_utf8_decode(c, strlen(c), &code);
            bytes[n++] = (char)(big ? code >> 8 : code & 255), bytes[n++] = (char)(big ? code & 255 : code >> 8);
        }
        OK(lin_textgrid_parse(bytes, n, "x", &g, &err));
        check_grid(&g);
        lin_textgrid_free(&g);
        FAIL_EVERY_ALLOCATION(lin_textgrid_parse(bytes, n, "x", &g, NULL), lin_textgrid_free(&g));
        FAILS(lin_textgrid_parse(bytes, n / 2, "x", &g, &err), LIN_FORMAT, "x:");
    }
    // A surrogate pair, and half of one.
    static const char pair[] =
        "\xFF\xFE\"\0o\0o\0T\0e\0x\0t\0F\0i\0l\0e\0\"\0 \0\"\0T\0e\0x\0t\0G\0r\0i\0d\0\"\0 \0""0\0 \0""1\0 \0"
        "<\0e\0x\0i\0s\0t\0s\0>\0 \0""1\0 \0\"\0I\0n\0t\0e\0r\0v\0a\0l\0T\0i\0e\0r\0\"\0 \0"
        "\"\0\x3D\xD8\x26\xDC\x3D\xD8\"\0 \0""0\0 \0""1\0 \0""0\0";
    OK(lin_textgrid_parse(pair, sizeof pair - 1, "x", &g, &err));
    ck_assert_str_eq(lin_textgrid_text(&g, g.tiers[0].name), "\xF0\x9F\x90\xA6\xEF\xBF\xBD");
    lin_textgrid_free(&g);
}
END_TEST

START_TEST(what_is_no_textgrid)
{
    lin_textgrid g;
    FAILS(PARSE(""), LIN_FORMAT, "x.TextGrid:1: this is not a TextGrid");
    FAILS(PARSE("one two three\n"), LIN_FORMAT, "this is not a TextGrid");
    FAILS(PARSE("\"ooTextFile\" \"Pitch 1\" 0 1"), LIN_FORMAT, "not a TextGrid");
    FAILS(PARSE("\"ooTextFile\"\n\"TextGrid\"\n0\n"), LIN_FORMAT, "the end is missing: the file is truncated");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 1 2"), LIN_FORMAT, "<exists>");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 1 <exists> 1e9"), LIN_FORMAT, "a bad count");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 1 <exists> 1.5"), LIN_FORMAT, "a bad count");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 1 <exists> 1 \"Tier\""), LIN_FORMAT, "neither an IntervalTier");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 1 <exists>\n1\n\"IntervalTier\"\n\"x\n"), LIN_FORMAT,
          "x.TextGrid:4: a text has no closing quote");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 9 <exists> 1 \"IntervalTier\" \"x\" 0 9 2 0 3 \"a\"\n2 4 \"b\""), LIN_FORMAT,
          "x.TextGrid:2: an interval ends before it begins");
    FAILS(PARSE("\"ooTextFile\" \"TextGrid\" 0 9 <exists> 1 \"IntervalTier\" \"x\" 0 9 1 3 2 \"a\""), LIN_FORMAT, "ends before");
    OK(PARSE("\"ooTextFile\" \"TextGrid\" 0 1 <absent>"));
    ck_assert_int_eq(lin_textgrid_choose(&g), 0);
    lin_textgrid_free(&g);
    for (size_t n = 0; n + 1 < sizeof long_form - 8; n++) // cut anywhere
        FAILS(lin_textgrid_parse(long_form, n, "x", &g, &err), LIN_FORMAT, "x:");
    char many[64 + 1001 * 32] = "\"ooTextFile\" \"TextGrid\" 0 1 <exists> 1001";
    for (int i = 0; i < 1001; i++) strcat(many, " \"TextTier\" \"x\" 0 1 0");
    FAILS(PARSE(many), LIN_FORMAT, "there are too many tiers");
}
END_TEST

static int chosen(const char *tiers)
{
    char text[1024];
    lin_textgrid g;
    snprintf(text, sizeof text, "\"ooTextFile\" \"TextGrid\" 0 9 <exists> %s", tiers);
    OK(PARSE(text));
    int mask = 0, n = lin_textgrid_choose(&g);
    for (int t = 0; t < g.n_tiers; t++) {
        mask |= g.tiers[t].chosen << t;
        n -= g.tiers[t].chosen;
    }
    ck_assert_int_eq(n, 0);
    lin_textgrid_free(&g);
    return mask;
}

START_TEST(tiers_of_utterances)
{
#define TIER(name, n) "\"IntervalTier\" \"" name "\" 0 9 " #n " "
    ck_assert_int_eq(chosen("1 " TIER("a", 1) "0 9 \"\""), 0);
    ck_assert_int_eq(chosen("2 " TIER("a", 1) "0 9 \"  \" " TIER("b", 1) "0 9 \"x\""), 2);
    ck_assert_int_eq(chosen("2 " TIER("words", 1) "0 9 \"one\" " TIER("phones", 3) "0 3 \"W\" 3 6 \"AH\" 6 9 \"N\""), 1);
    ck_assert_int_eq(chosen("2 " TIER("a", 1) "0 5 \"one\" " TIER("b", 2) "0 4 \"\" 4 9 \"two\""), 3); // with a little at once
    ck_assert_int_eq(chosen("3 " TIER("Notes", 1) "0 5 \"loud\" " TIER("a", 1) "0 5 \"x\" " TIER("notes", 1) "6 9 \"y\""), 2);
}
END_TEST

TEST_MAIN("textgrid", TEST(both_forms), TEST(encodings), TEST(what_is_no_textgrid), TEST(tiers_of_utterances))
