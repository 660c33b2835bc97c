// decoder/writers_subtitles.c: the usual rules for subtitles hold for every cue, on random speech and at every limit. A small
// reader in this file reads SubRip back; tests/golden/writers.py reads it with other libraries.
#include "decoder/writers.h"
#include "tests/decoder/story.h"

enum { WORDS = 400, CUES = 800 };

typedef struct said {
    char text[128];
    int from, to; // frames of 10 ms
} said;

typedef struct cue {
    long from, to; // ms
    int lines;
    char line[2][400];
} cue;

static lin_phones *phones;
static lin_result result;
static cue cues[CUES];

static void setup(void) { OK(lin_phones_create(NULL, &phones, &err)); }

static void teardown(void)
{
    lin_result_free(&result);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static const char *spell(const void *context, int word) { return ((const said *)context)[word].text; }

static char *write_cues(const char *format, int word_times, lin_cue_options how)
{
    static char text[200000];
    lin_buffer out = {0};
    const lin_writer_options o = {.phones = phones, .word_times = word_times, .cues = how};
    OK(lin_write(lin_writer_find(format), &result, &o, &out, &err));
    ck_assert_uint_lt(out.n, sizeof text);
    memcpy(text, out.data ? out.data : "", out.n + 1);
    if (!out.n) text[0] = '\0';
    lin_buffer_free(&out);
    return text;
}

static char *write_result(const char *format, int word_times) { return write_cues(format, word_times, (lin_cue_options){0}); }

static void make(const said *words, int n, double seconds)
{
    static lin_path_word word[WORDS];
    for (int i = 0; i < n; i++) word[i] = (lin_path_word){.word = i, .start = words[i].from, .end = words[i].to};
    OK(lin_result_begin(&result, "u", NULL, 1, &err));
    OK(lin_result_add_path(&result, &(lin_path){.words = word, .n_words = n}, 0.01, spell, words, &err));
    result.seconds = seconds;
}

static long read_time(const char *at)
{
    int h, m, s, ms, n = 0;
    ck_assert_msg(sscanf(at, "%2d:%2d:%2d,%3d%n", &h, &m, &s, &ms, &n) == 4 && n == 12, "'%.20s' is no time", at);
    return ((h * 60L + m) * 60 + s) * 1000 + ms;
}

// Reads SubRip strictly: number, times, one or two lines, an empty one.
static int read_srt(char *text)
{
    int n = 0;
    for (char *line = strsep(&text, "\n"); line && *line; line = strsep(&text, "\n"), n++) {
        cue *c = &cues[n];
        ck_assert_int_lt(n, CUES);
        ck_assert_int_eq(atoi(line), n + 1);
        line = strsep(&text, "\n");
        ck_assert(line && strlen(line) == 29 && !memcmp(line + 12, " --> ", 5));
        c->from = read_time(line);
        c->to = read_time(line + 17);
        for (c->lines = 0; (line = strsep(&text, "\n")) && *line; c->lines++) {
            ck_assert_msg(c->lines < 2, "cue %d has three lines", n + 1);
            snprintf(c->line[c->lines], sizeof c->line[0], "%s", line);
        }
        ck_assert(line && c->lines > 0);
    }
    return n;
}

static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++) n += (*text & 0xC0) != 0x80;
    return n;
}

// Checks what holds for all cues if no word is longer than a line. Returns the number of cues.
static int check_cues(const said *words, int n_words, double seconds)
{
    int n = read_srt(write_result("srt", 0)), at = 0;
    for (int i = 0; i < n; i++) {
        const cue *c = &cues[i];
        const int first = at;
        test_require(c->from >= 0 && c->to > c->from && c->to - c->from <= 7000, "cue %d lasts from %ld to %ld", i, c->from,
                     c->to);
        test_require(i == 0 || c->from >= cues[i - 1].to, "cues %d and %d overlap", i - 1, i);
        for (int l = 0; l < c->lines; l++) {
            char line[400], *rest = line;
            test_require(characters(c->line[l]) <= 42, "'%s' is longer than a line", c->line[l]);
            snprintf(line, sizeof line, "%s", c->line[l]);
            for (const char *word; (word = strsep(&rest, " ")) != NULL; at++) {
                test_require(at < n_words && !strcmp(word, words[at].text), "'%s' is not word %d", word, at);
            }
        }
        const long until = i + 1 < n ? cues[i + 1].from : (long)(seconds * 1000), last = words[at - 1].to * 10L;
        test_require(c->from == words[first].from * 10L, "cue %d does not begin with its first word", i);
        test_require(c->to >= (last < c->from + 7000 ? last : c->from + 7000), "cue %d ends before its last word", i);
        test_require(c->to - c->from >= 1000 || c->to == until || c->to == last, "cue %d lasts %ld ms", i, c->to - c->from);
        test_require(c->to - c->from >= 1000 || c->to == (until > last ? until : last), "cue %d could be longer", i);
        for (int k = first + 1; k < at; k++) test_require(words[k].from - words[k - 1].to < 50, "cue %d reaches over a pause", i);
        if (c->lines == 2) { // the line was too short for all of it
            test_require(characters(c->line[0]) + 1 + characters(c->line[1]) > 42, "cue %d fits one line", i);
        }
    }
    ck_assert_int_eq(at, n_words);
    return n;
}

START_TEST(random_speech)
{
    static said words[WORDS];
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t k = 0;
        const int n = 1 + (int)lin_random_below(seed, k++, WORDS);
        const uint32_t longest_word = 1 + lin_random_below(seed, k++, 41), longest_gap = 1 + lin_random_below(seed, k++, 90);
        const uint32_t slowest = 1 + lin_random_below(seed, k++, 60);
        int at = (int)lin_random_below(seed, k++, 100);
        for (int i = 0; i < n; i++) {
            const uint32_t letters = 1 + lin_random_below(seed, k++, longest_word);
            words[i].text[0] = '\0';
            for (uint32_t c = 0; c < letters; c++) strcat(words[i].text, lin_random_below(seed, k++, 8) ? "e" : "é");
            words[i].from = at;
            words[i].to = at + 1 + (int)lin_random_below(seed, k++, slowest);
            at = words[i].to + (int)lin_random_below(seed, k++, longest_gap);
        }
        const double seconds = 0.01 * (words[n - 1].to + (int)lin_random_below(seed, k++, 300));
        make(words, n, seconds);
        check_cues(words, n, seconds);
    }
}
END_TEST

// The number of cues and the end of the first, at each limit.
START_TEST(limits)
{
    static said words[WORDS];
    static const struct {
        const char *text; // words separated by spaces
        int length, gap;  // frames of each word, and of the gap after it
        double seconds;
        int cues;
        long first_to;
    } cases[] = {
        {"a", 10, 0, 0.1, 1, 100},                                            // the sound ends
        {"a", 10, 0, 0.5, 1, 500},                                            //
        {"a", 10, 0, 5, 1, 1000},                                             // a second at least
        {"a", 10, 0, 0, 1, 100},                                              // nobody knows how long the sound is
        {"a", 900, 0, 9, 1, 7000},                                            // 7 s at most
        {"a b", 10, 50, 2, 2, 600},                                           // until the next one comes
        {"a b", 10, 49, 2, 1, 1000},                                          // no pause
        {"a b", 349, 2, 7, 1, 7000},                                          // exactly 7 s
        {"a b", 350, 2, 9, 2, 3500},                                          // 7.02 s
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmno p", 100, 10, 9, 1, 2529}, // 43 characters read at 17 a second
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmno abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", 100, 10, 9, 1, 4941},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", 100, 10, 9, 1, 5000},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop abcdefghijklmnopqrstuvwxyzabcdefghijklmnop a", 100, 10, 9, 2, 1100},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200], *rest = text;
        int n = 0, at = 0;
        snprintf(text, sizeof text, "%s", cases[i].text);
        for (const char *word; (word = strsep(&rest, " ")) != NULL; n++) {
            snprintf(words[n].text, sizeof words[n].text, "%s", word);
            words[n].from = at;
            words[n].to = at + cases[i].length;
            at = words[n].to + cases[i].gap;
        }
        make(words, n, cases[i].seconds);
        const int n_cues = check_cues(words, n, cases[i].seconds);
        ck_assert_msg(n_cues == cases[i].cues && cues[0].to == cases[i].first_to, "case %zu: %d cues, the first to %ld", i,
                      n_cues, cues[0].to);
    }
}
END_TEST

// Cues have similar lengths and are cut at pauses rather than where the line is full.
START_TEST(cuts)
{
    static said words[40];
    for (int i = 0; i < 20; i++) { // 20 words of 5 letters: 119 characters, two cues of ten
        snprintf(words[i].text, sizeof words[i].text, "word%c", 'a' + i);
        words[i].from = 40 * i;
        words[i].to = 40 * i + 35;
    }
    make(words, 20, 9);
    ck_assert_int_eq(check_cues(words, 20, 9), 2);
    ck_assert_int_eq(cues[1].from, 4000);
    ck_assert_str_eq(cues[0].line[0], "worda wordb wordc wordd worde");
    ck_assert_str_eq(cues[0].line[1], "wordf wordg wordh wordi wordj");
    for (int i = 12; i < 20; i++) words[i].from += 30, words[i].to += 30; // a short pause after the twelfth
    make(words, 20, 9);
    ck_assert_int_eq(check_cues(words, 20, 9), 2);
    ck_assert_int_eq(cues[1].from, 5100);
}
END_TEST

// A word longer than a line is cut into parts, and so is its time; no character is lost.
START_TEST(long_words)
{
    said word = {.from = 10, .to = 510};
    for (int i = 0; i < 100; i++) word.text[i] = (char)('a' + i % 26);
    make(&word, 1, 6);
    ck_assert_int_eq(read_srt(write_result("srt", 0)), 2);
    char all[400] = "";
    int n = 0;
    for (int i = 0; i < 2; i++) {
        for (int l = 0; l < cues[i].lines; l++, n++) {
            ck_assert_int_le(characters(cues[i].line[l]), 42);
            strcat(all, cues[i].line[l]);
        }
    }
    ck_assert_int_eq(n, 3);
    ck_assert_str_eq(all, word.text);
    ck_assert(cues[0].from == 100 && cues[0].to == cues[1].from && cues[1].to >= 5100);
    // The rest of it shares a line with the next word, up to the last character.
    said two[] = {{.from = 0, .to = 200}, {.from = 201, .to = 250}};
    memset(two[0].text, 'a', 62);
    memset(two[1].text, 'b', 21);
    make(two, 2, 5);
    ck_assert_str_eq(write_result("srt", 0), "1\n00:00:00,000 --> 00:00:04,941\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
                                             "aaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbb\n\n");
    // Words without duration: times of cues still increase.
    word.to = word.from;
    make(&word, 1, 0);
    const int m = read_srt(write_result("srt", 0));
    for (int i = 0; i < m; i++) ck_assert(cues[i].to > cues[i].from && (!i || cues[i].from >= cues[i - 1].to));
}
END_TEST

// tests/fuzz/fuzz_writers.c: for any times of a result those of subtitles increase.
START_TEST(times_that_round)
{
    static const said words[] = {{"odd", 0, 1}, {"odd", 1, 2}};
    make(words, 2, 1);
    result.words[0].start_s = 0.0004999;
    result.words[0].end_s = 0.0005001;
    result.words[1].start_s = result.words[1].end_s = 359999.9996; // rounds into the next hour
    ck_assert_str_eq(write_result("srt", 0), "1\n00:00:00,000 --> 00:00:01,000\nodd\n\n"
                                             "2\n100:00:00,000 --> 100:00:00,001\nodd\n\n");
}
END_TEST

START_TEST(web)
{
    static const said words[] = {{"a<b", 0, 10}, {"&amp;", 20, 30}, {"-->", 40, 50}, {"x\ny", 50, 60}, {"\xFF", 60, 70}};
    make(words, 5, 5);
    ck_assert_str_eq(write_result("vtt", 0), "WEBVTT\n\n00:00:00.000 --> 00:00:01.117\n"
                                             "a&lt;b &amp;amp; --&gt; x\xEF\xBF\xBDy \xEF\xBF\xBD\n\n");
    ck_assert_str_eq(
        write_result("vtt", 1),
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.117\n"
        "a&lt;b <00:00:00.200>&amp;amp; <00:00:00.400>--&gt; <00:00:00.500>x\xEF\xBF\xBDy <00:00:00.600>\xEF\xBF\xBD\n\n");
    // A cue that the gap ends before its last word has no time of that word.
    static const said close[] = {{"word", 0, 28}, {"next", 30, 32}, {"cue", 46, 60}};
    make(close, 3, 5);
    ck_assert_str_eq(write_cues("vtt", 1, (lin_cue_options){.width = 10, .rows = 1, .gap_ms = 1000}),
                     "WEBVTT\n\n00:00:00.000 --> 00:00:00.230\nword next\n\n00:00:00.460 --> 00:00:01.460\ncue\n\n");
    make(words, 0, 5);
    ck_assert_str_eq(write_result("vtt", 1), "WEBVTT\n\n");
    ck_assert_str_eq(write_result("srt", 1), "");
    static const said empty[] = {{"", 0, 10}}; // no spelling: outside the lexicon, and no phones
    make(empty, 1, 5);
    ck_assert_str_eq(write_result("srt", 0), "1\n00:00:00,000 --> 00:00:01,000\n[]\n\n");
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "subtitles", TEST(random_speech), TEST(limits), TEST(cuts), TEST(long_words),
               TEST(times_that_round), TEST(web))
