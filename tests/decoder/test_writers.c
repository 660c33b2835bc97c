// base/buffer.c, writers*.c: each format to the byte, words and ids of any bytes, what a format cannot hold, several utterances
// in one file, every allocation failing.
//
// Other libraries read the files in tests/golden/writers (tests/golden/writers.py). To make them again after a change:
//   WRITE_GOLDEN=1 build/release/tests/decoder/test_writers && python3 -P tests/golden/writers.py
#include "decoder/writers.h"

#include <locale.h>

#include "decoder/search.h"
#include "tests/decoder/story.h"

enum { N_WRITERS = 11 };

static lin_phones *phones;
static lin_result result;
static lin_buffer out;

static void setup(void)
{
    static lin_path_phone some[] = {{.label = 1, .confidence = 0.9877f, .start = 3, .end = 7},
                                            {.label = 39, .confidence = 1.0f, .start = 100, .end = 101}};
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_result_begin(&result, "utt-1", "anna", 2, &err));
    OK(lin_result_add_path(&result, &(lin_path){.phones = some, .n_phones = 2}, 0.03, NULL, NULL, &err));
    result.seconds = 3.1415926;
}

static void teardown(void)
{
    lin_buffer_free(&out);
    lin_result_free(&result);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static const char *written(const char *writer, lin_writer_options options)
{
    static char text[16384];
    lin_buffer made = {0};
    options.phones = phones;
    OK(lin_write(lin_writer_find(writer), &result, &options, &made, &err));
    ck_assert_uint_lt(made.n, sizeof text);
    memcpy(text, made.data, made.n + 1);
    lin_buffer_free(&made);
    return text;
}

START_TEST(formats)
{
    lin_writer_options plain = {0}, ids = {.with_id = 1}, ipa = {.ipa = 1};
    lin_writer_options times = {.times = 1}, times_ids = {.times = 1, .with_id = 1};
    ck_assert_str_eq(written("text", times), "    0.090     0.210  AA\n    3.000     3.030  ZH\n");
    ck_assert_str_eq(written("text", times_ids), "utt-1     0.090     0.210  AA\nutt-1     3.000     3.030  ZH\n");
    ck_assert_str_eq(written("text", plain), "AA ZH\n");
    ck_assert_str_eq(written("text", ids), "utt-1 AA ZH\n");
    ck_assert_str_eq(written("text", ipa), "ɑ ʒ\n");
    ck_assert_str_eq(written("trn", plain), "AA ZH (utt-1)\n");
    ck_assert_str_eq(written("ctm", plain), "utt-1 2 0.090 0.120 AA 0.9877\nutt-1 2 3.000 0.030 ZH 1.0000\n");
    ck_assert_str_eq(written("json", plain), "{\"id\":\"utt-1\",\"channel\":2,\"speaker\":\"anna\",\"seconds\":3.142,\"phones\":["
                                             "{\"phone\":\"AA\",\"start\":0.090,\"end\":0.210,\"confidence\":0.9877},"
                                             "{\"phone\":\"ZH\",\"start\":3.000,\"end\":3.030,\"confidence\":1.0000}]}\n");
    OK(lin_result_begin(&result, "u", NULL, 1, &err));
    ck_assert_int_eq(result.n_phones, 0);
    ck_assert_str_eq(written("text", plain), "\n");
    ck_assert_str_eq(written("text", ids), "u\n");
    ck_assert_str_eq(written("trn", plain), "(u)\n");
    ck_assert_str_eq(written("ctm", plain), ";; u has no phones\n");
    ck_assert_str_eq(written("json", plain), "{\"id\":\"u\",\"channel\":1,\"seconds\":0.000,\"phones\":[]}\n");
}
END_TEST

START_TEST(the_table)
{
    int n = 0;
    for (; lin_writer_at(n); n++) ck_assert_ptr_eq(lin_writer_find(lin_writer_at(n)->name), lin_writer_at(n));
    ck_assert_int_eq(n, N_WRITERS);
    ck_assert_ptr_null(lin_writer_at(-1));
    ck_assert_ptr_null(lin_writer_find("nonsense"));
    ck_assert_ptr_eq(lin_writer_find("txt"), lin_writer_find("text"));
    ck_assert_ptr_eq(lin_writer_find("TXT"), lin_writer_find("text"));
    ck_assert_str_eq(lin_writer_find("TextGrid")->name, "textgrid");
    static const char *const none[] = {"a.ctm/x", "x", "x.txt.bak", "xctm", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) ck_assert_ptr_null(lin_writer_for_file(none[i]));
    static const char *const files[][2] = {
        {"x.txt", "text"}, {"x.labels.txt", "audacity"}, {"x.labels", "audacity"}, {"labels.txt", "text"},
        {"x.LABELS.TXT", "audacity"}, {"x.textgrid", "textgrid"}, {"a/x.TextGrid", "textgrid"}, {"x.json", "json"},
        {"x.JSONL", "json"}, {"x.y.srt", "srt"}, {"x.vtt", "vtt"}, {"x.csv", "csv"}, {"x.trn", "trn"}, {"a.b/x.ctm", "ctm"},
        {"x.manifest.jsonl", "nemo"}, {"x.rttm", "rttm"}, {"x.jsonl", "json"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const lin_writer *w = lin_writer_for_file(files[i][0]);
        ck_assert_msg(w && !strcmp(w->name, files[i][1]), "%s is %s", files[i][0], w ? w->name : "nothing");
    }
}
END_TEST

/* ---- golden files ---------------------------------------------------------------------------------------------------------- */

#define HOSTILE_ID "a,\"b\"\n\tc\xFF (d)"
#define HOSTILE_SPEAKER " anna \"the first\" "

static const struct golden {
    const char *file, *story, *writer;
    lin_writer_options options;
} goldens[] = {
    {"story.txt", "story", "text", {.with_id = 1}},
    {"story.jsonl", "story", "json", {0}},
    {"story.ctm", "story", "ctm", {0}},
    {"story.trn", "story", "trn", {0}},
    {"story.srt", "story", "srt", {0}},
    {"story.vtt", "story", "vtt", {0}},
    {"story.csv", "story", "csv", {0}},
    {"story.labels.txt", "story", "audacity", {0}},
    {"times.vtt", "story", "vtt", {.word_times = 1, .ipa = 1}},
    {"words.TextGrid", "hostile", "textgrid", {.unit = LIN_UNIT_WORDS}},
    {"phones.txt", "story", "text", {.ipa = 1, .unit = LIN_UNIT_PHONES}},
    {"phones.srt", "story", "srt", {.ipa = 1, .unit = LIN_UNIT_PHONES}},
    {"phones.TextGrid", "hostile", "textgrid", {.ipa = 1, .unit = LIN_UNIT_PHONES}},
    {"phones.csv", "hostile", "csv", {.ipa = 1, .unit = LIN_UNIT_PHONES}},
    {"hostile.jsonl", "hostile", "json", {0}},
    {"hostile.srt", "hostile", "srt", {0}},
    {"hostile.vtt", "hostile", "vtt", {.word_times = 1}},
    {"hostile.TextGrid", "hostile", "textgrid", {0}},
    {"hostile.csv", "hostile", "csv", {.unit = LIN_UNIT_BOTH}},
    {"hostile.labels.txt", "hostile", "audacity", {0}},
    {"nothing.txt", "nothing", "text", {.with_id = 1}},
    {"nothing.jsonl", "nothing", "json", {0}},
    {"nothing.ctm", "nothing", "ctm", {0}},
    {"nothing.trn", "nothing", "trn", {0}},
    {"nothing.srt", "nothing", "srt", {0}},
    {"nothing.vtt", "nothing", "vtt", {0}},
    {"nothing.TextGrid", "nothing", "textgrid", {0}},
    {"nothing.csv", "nothing", "csv", {0}},
    {"nothing.labels.txt", "nothing", "audacity", {0}},
};

static void read_story(const char *name)
{
    const int hostile = !strcmp(name, "hostile");
    story_read(&result, name, hostile ? HOSTILE_ID : name, hostile ? HOSTILE_SPEAKER : "anna", 2, 1, phones);
}

static void compare_golden(const char *file)
{
    char path[256], *want;
    size_t n;
    snprintf(path, sizeof path, "tests/golden/writers/%s", file);
    if (getenv("WRITE_GOLDEN")) {
        test_write_file(path, out.data ? out.data : "", out.n);
        return;
    }
    OK(lin_text_read(path, &want, &n, &err));
    size_t at = 0;
    while (at < n && at < out.n && want[at] == out.data[at]) at++;
    ck_assert_msg(n == out.n && at == n, "%s differs from byte %zu on: '%.60s' instead of '%.60s'", path, at,
                  out.data ? out.data + at : "", want + at);
    lin_free(want);
}

START_TEST(golden)
{
    const struct golden *g = &goldens[_i];
    lin_writer_options options = g->options;
    options.phones = phones;
    read_story(g->story);
    OK(lin_write(lin_writer_find(g->writer), &result, &options, &out, &err));
    compare_golden(g->file);
    ck_assert_str_eq(lin_writer_for_file(g->file)->name, g->writer);
}
END_TEST

// One header, subtitles numbered through, and each utterance as in a file of its own.
START_TEST(documents)
{
    static const char *const files[][2] = {{"many.jsonl", "json"}, {"many.csv", "csv"}, {"many.srt", "srt"}, {"many.vtt", "vtt"}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        const lin_writer *w = lin_writer_find(files[f][1]);
        lin_writer_document document = {.utterances = 77, .cues = 77, .end_ms = 77};
        lin_writer_options o = {.phones = phones, .document = &document};
        OK(lin_writer_begin(w, &o, &out, &err));
        ck_assert_int_eq(document.utterances + document.cues + (int)document.end_ms, 0);
        static const char *const stories[] = {"nothing", "hostile", "nothing", "story"};
        for (int i = 0; i < 4; i++) {
            read_story(stories[i]);
            if (i == 3) lin_result_shift(&result, 30), result.seconds += 30;
            OK(lin_write(w, &result, &o, &out, &err));
        }
        ck_assert_int_eq(document.utterances, 4);
        compare_golden(files[f][0]);
        lin_buffer_free(&out);
    }
}
END_TEST

START_TEST(what_a_document_cannot_hold)
{
    lin_writer_document document = {0};
    lin_writer_options o = {.phones = phones, .document = &document};
    read_story("story");
    const lin_writer *srt = lin_writer_find("srt"), *grid = lin_writer_find("textgrid");
    OK(lin_writer_begin(srt, &o, &out, &err));
    OK(lin_write(srt, &result, &o, &out, &err));
    const size_t n = out.n;
    const lin_writer_document before = document;
    ck_assert_int_gt(before.cues, 3);
    FAILS(lin_write(srt, &result, &o, &out, &err), LIN_INVALID, "story begins before the last subtitle ends");
    ck_assert(out.n == n && document.cues == before.cues && document.end_ms == before.end_ms && document.utterances == 1);
    lin_buffer_clear(&out);
    OK(lin_writer_begin(grid, &o, &out, &err));
    OK(lin_write(grid, &result, &o, &out, &err));
    FAILS(lin_write(grid, &result, &o, &out, &err), LIN_INVALID, "a TextGrid holds one utterance; use --output-dir for story");
    lin_buffer_free(&out);
    for (int i = 0; lin_writer_at(i); i++) { // without a document, write() begins with the header
        lin_writer_document nothing = {0};
        o.document = &nothing;
        OK(lin_writer_begin(lin_writer_at(i), &o, &out, &err));
        o.document = NULL;
        const size_t header = out.n;
        OK(lin_writer_begin(lin_writer_at(i), &o, &out, &err));
        ck_assert_uint_eq(out.n, header);
        OK(lin_write(lin_writer_at(i), &result, &o, &out, &err));
        ck_assert_msg(!header || !memcmp(out.data, out.data + header, header), "%s", lin_writer_at(i)->name);
        lin_buffer_free(&out);
    }
}
END_TEST

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

// "hello", a word outside the lexicon, "world", over phones of 10 ms.
static void three_words(const char *last)
{
    static lin_path_phone p[6];
    static lin_path_word w[] = {
        {.word = 0, .first_phone = 0, .n_phones = 2, .confidence = 0.5f, .start = 0, .end = 2},
        {.word = LIN_WORD_UNKNOWN, .first_phone = 2, .n_phones = 3, .confidence = 0.25f, .start = 2, .end = 5},
        {.word = 1, .first_phone = 5, .n_phones = 1, .confidence = 1, .start = 5, .end = 6}};
    static const int labels[] = {16, 29, 16, 3, 8, 1};
    for (int i = 0; i < 6; i++) p[i] = (lin_path_phone){.label = labels[i], .confidence = 1, .start = i, .end = i + 1};
    const lin_path path = {
        .phones = p, .n_phones = 6, .words = w, .n_words = 3, .score = -12.5, .acoustic = -10.25, .language = -4.5};
    const story_words words = {{"hello", last}, 2};
    OK(lin_result_begin(&result, "u", NULL, 1, &err));
    OK(lin_result_add_path(&result, &path, 0.01, story_spell, &words, &err));
}

START_TEST(words)
{
    lin_writer_options plain = {0}, ipa = {.ipa = 1}, phones_only = {.unit = LIN_UNIT_PHONES}, both = {.unit = LIN_UNIT_BOTH};
    three_words("world");
    ck_assert_str_eq(written("text", plain), "hello [hh_ah_ch] world\n");
    ck_assert_str_eq(written("text", both), "hello [hh_ah_ch] world\n");
    ck_assert_str_eq(written("text", ipa), "hello [hʌtʃ] world\n");
    ck_assert_str_eq(written("text", phones_only), "HH S HH AH CH AA\n");
    ck_assert_str_eq(written("trn", plain), "hello [hh_ah_ch] world (u)\n");
    ck_assert_str_eq(written("ctm", plain), "u 1 0.000 0.020 hello 0.5000\nu 1 0.020 0.030 [hh_ah_ch] 0.2500\n"
                                            "u 1 0.050 0.010 world 1.0000\n");
    result.n_phones = 6;
    lin_result *other = lin_result_add_alternative(&result);
    static lin_path_phone p = {.label = 1, .confidence = 0.5f, .start = 3, .end = 5};
    const lin_path path = {.phones = &p, .n_phones = 1, .score = -13, .acoustic = -13};
    OK(lin_result_add_path(other, &path, 0.01, story_spell, NULL, &err));
    result.phones[1].goodness = -0.12345f;
    result.phones[1].heard = 8;
    result.phones[2].heard = LIN_RESULT_NOTHING;
    result.n_words = 2;
    result.words[1].n_phones = 1;
    result.n_phones = 3;
    ck_assert_str_eq(written("json", phones_only),
                     "{\"id\":\"u\",\"channel\":1,\"seconds\":0.000,\"goodness\":-0.1235,\"phones\":["
                     "{\"phone\":\"HH\",\"start\":0.000,\"end\":0.010,\"confidence\":1.0000},"
                     "{\"phone\":\"S\",\"start\":0.010,\"end\":0.020,\"confidence\":1.0000,\"goodness\":-0.1235,"
                     "\"heard\":\"CH\"},"
                     "{\"phone\":\"HH\",\"start\":0.020,\"end\":0.030,\"confidence\":1.0000,\"heard\":null}],"
                     "\"text\":\"hello [hh]\",\"words\":["
                     "{\"word\":\"hello\",\"known\":true,\"start\":0.000,\"end\":0.020,\"confidence\":0.5000,"
                     "\"goodness\":-0.1235,\"first_phone\":0,\"phones\":[\"HH\",\"S\"]},"
                     "{\"word\":\"\",\"known\":false,\"start\":0.020,\"end\":0.050,\"confidence\":0.2500,"
                     "\"first_phone\":2,\"phones\":[\"HH\"]}],"
                     "\"score\":-12.5000,\"acoustic\":-10.2500,\"language\":-4.5000,"
                     "\"segments\":[{\"start\":0.000,\"end\":0.050,\"confidence\":0.3750,\"text\":\"hello [hh]\"}],"
                     "\"alternatives\":[{\"phones\":[{\"phone\":\"AA\",\"start\":0.030,\"end\":0.050,\"confidence\":0.5000}],"
                     "\"text\":\"\",\"words\":[],\"score\":-13.0000,\"acoustic\":-13.0000,\"language\":0.0000}]}\n");
    OK(lin_result_begin(&result, "u", NULL, 1, &err));
    result.has_words = 1;
    ck_assert_str_eq(written("text", plain), "\n");
    ck_assert_str_eq(written("ctm", plain), ";; u has no words\n");
    ck_assert_str_eq(written("json", plain),
                     "{\"id\":\"u\",\"channel\":1,\"seconds\":0.000,\"phones\":[],\"text\":\"\",\"words\":[],"
                     "\"segments\":[]}\n");
}
END_TEST

START_TEST(words_that_do_not_fit)
{
    lin_writer_options o = {.phones = phones, .unit = LIN_UNIT_WORDS};
    for (int i = 0; lin_writer_at(i); i++) { // `result` has phones only
        if (!strcmp(lin_writer_at(i)->name, "json")) {
            OK(lin_write(lin_writer_at(i), &result, &o, &out, &err)); // has both, whatever the others are asked for
            lin_buffer_clear(&out);
            continue;
        }
        FAILS(lin_write(lin_writer_at(i), &result, &o, &out, &err), LIN_INVALID, "utt-1 has no words to write");
    }
    static const char *const bad[] = {"a b", "a\tb", "a\x01", "(a)", "{", "@", "uh*", "a;b", "a\\b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        three_words(bad[i]);
        FAILS(lin_write(lin_writer_find("trn"), &result, &o, &out, &err), LIN_INVALID, "word 2 of u, '");
        const lin_status want = i < 3 ? LIN_INVALID : LIN_OK;
        ck_assert_int_eq(lin_write(lin_writer_find("ctm"), &result, &o, &out, NULL), want);
        ck_assert_int_eq(lin_write(lin_writer_find("text"), &result, &o, &out, NULL), want);
    }
    lin_buffer_clear(&out);
    three_words("world");
    static const int wrong[][2] = {{-1, 1}, {0, -1}, {5, 2}, {7, 0}, {1, 0x7fffffff}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        result.words[1].first_phone = wrong[i][0];
        result.words[1].n_phones = wrong[i][1];
        for (int w = 0; lin_writer_at(w); w++) {
            FAILS(lin_write(lin_writer_at(w), &result, &o, &out, &err), LIN_INVALID, "word 1 of u has phones that are not there");
        }
    }
    three_words("world");
    lin_result *other = lin_result_add_alternative(&result);
    static lin_path_phone p = {.label = 40};
    OK(lin_result_add_path(other, &(lin_path){.phones = &p, .n_phones = 1}, 0.01, NULL, NULL, &err));
    FAILS(lin_write(lin_writer_find("json"), &result, &o, &out, &err), LIN_INVALID, "phone 0 of an alternative has label 40");
    OK(lin_result_begin(&result, ";;x", NULL, 1, &err));
    o.unit = LIN_UNIT_AUTO;
    FAILS(lin_write(lin_writer_find("ctm"), &result, &o, &out, &err), LIN_INVALID,
          "';;x' cannot be written in CTM: ;; begins a comment");
    ck_assert_uint_eq(out.n, 0);
}
END_TEST

// Phones without a word, before, between and after words, keep their times.
START_TEST(phones_of_no_word)
{
    three_words("world");
    result.words[1].n_phones = 2;
    result.words[0].first_phone = result.words[0].n_phones = 1;
    result.n_words = 2;
    char kinds[100] = "", *rows = (char *)written("csv", (lin_writer_options){.unit = LIN_UNIT_BOTH});
    for (char *row = strsep(&rows, "\n"); (row = strsep(&rows, "\n")) != NULL && *row;) strncat(kinds, strstr(row, ",,") + 2, 1);
    ck_assert_str_eq(kinds, "pwpwpppp");
}
END_TEST

/* ---- unusual results ------------------------------------------------------------------------------------------------------- */

// The intervals of a TextGrid cover 0 to the end without gaps, for any times of the result.
static void check_grid(const char *text, int n_tiers)
{
    double end = 0, from, to, length;
    int tiers = 0, n = 0, left = 0;
    const char *at = strstr(text, "xmax = ");
    length = atof(at + 7);
    ck_assert(length > 0);
    while ((at = strstr(at, "xmin = ")) != NULL) {
        ck_assert_int_eq(sscanf(at, "xmin = %lf \n xmax = %lf", &from, &to), 2);
        if (!left) {
            ck_assert(from == 0 && to == length);
            ck_assert_int_eq(sscanf(strstr(at, "size = "), "size = %d", &left), 1);
            ck_assert_int_gt(left, 0);
            end = 0, n = 0, tiers++;
        } else {
            test_require(from == end && to > from, "interval %d from %.3f to %.3f after %.3f", n, from, to, end);
            end = to, n++;
            if (!--left) ck_assert(end == length);
        }
        at += 7;
    }
    ck_assert(tiers == n_tiers && !left);
}

START_TEST(odd_times)
{
    static const double odd[] = {-5, NAN, INFINITY, -INFINITY, 1e300, 0, 3.0004, 3.0005, 2, 2.0001, 8.9e8};
    const int n = sizeof odd / sizeof *odd;
    for (int turn = 0; turn < n; turn++) {
        for (int k = 0; k < 2; k++) {
            three_words("world");
            result.seconds = odd[turn];
            for (int i = 0; i < 6; i++)
                result.phones[i].start_s = odd[(i + turn) % n], result.phones[i].end_s = odd[(3 * i + turn + k) % n];
            for (int i = 0; i < 3; i++)
                result.words[i].start_s = odd[(2 * i + turn + k) % n], result.words[i].end_s = odd[(i + turn) % n];
            check_grid(written("textgrid", (lin_writer_options){0}), 2);
            double from, to;
            for (const char *line = written("audacity", (lin_writer_options){0}); *line; line = strchr(line, '\n') + 1) {
                ck_assert_int_eq(sscanf(line, "%lf\t%lf\t", &from, &to), 2);
                ck_assert(from >= 0 && to >= from);
            }
        }
    }
    OK(lin_result_begin(&result, "no sound", NULL, 1, &err));
    check_grid(written("textgrid", (lin_writer_options){0}), 1);
}
END_TEST

START_TEST(odd_text)
{
    three_words("a\x01\t\r\n\x7f\"b");
    HAS(written("csv", (lin_writer_options){0}), ",word,\"a\xEF\xBF\xBD\t\r\n\xEF\xBF\xBD\"\"b\",0.050");
    HAS(written("textgrid", (lin_writer_options){0}),
        "text = \"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\"b\" \n");
    HAS(written("audacity", (lin_writer_options){0}), "\ta\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"b\n");
    static const char *const quoted[] = {" a", "a ", "a,", "a\r", "a\n"}, *const plain[] = {"a b", "a'b", "a;b", "a\tb"};
    for (size_t i = 0; i < sizeof quoted / sizeof *quoted; i++) {
        char field[16];
        three_words(quoted[i]);
        snprintf(field, sizeof field, ",\"%s\",0", quoted[i]);
        HAS(written("csv", (lin_writer_options){0}), field);
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        char field[16];
        three_words(plain[i]);
        snprintf(field, sizeof field, ",%s,0", plain[i]);
        HAS(written("csv", (lin_writer_options){0}), field);
    }
}
END_TEST

// tests/fuzz/fuzz_writers.c parses the JSON of any bytes.
START_TEST(json_of_odd_ids)
{
    OK(lin_result_begin(&result, "\xC3\xA9\xFF\xC3\"\\\n\xED\xA0\x80\xF4\x90\x80\x80", "", 1, &err));
    ck_assert_str_eq(written("json", (lin_writer_options){0}),
                     "{\"id\":\"é\xEF\xBF\xBD\xEF\xBF\xBD\\\"\\\\\\u000a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
                     "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\",\"channel\":1,\"seconds\":0.000,\"phones\":[]}\n");
}
END_TEST

START_TEST(what_a_format_cannot_hold)
{
    lin_writer_options o = {.phones = phones}, ids = {.phones = phones, .with_id = 1};
    lin_buffer_text(&out, "before");
    static const char *const bad[] = {"a b", "a\tb", "a\nb", "a\x7f", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        OK(lin_result_begin(&result, bad[i], NULL, 1, &err));
        ck_assert_int_eq(lin_write(lin_writer_find("ctm"), &result, &o, &out, NULL), LIN_INVALID);
        ck_assert_int_eq(lin_write(lin_writer_find("trn"), &result, &o, &out, NULL), LIN_INVALID);
        ck_assert_int_eq(lin_write(lin_writer_find("text"), &result, &ids, &out, NULL), LIN_INVALID);
    }
    OK(lin_result_begin(&result, "a(b)", NULL, 1, &err));
    FAILS(lin_write(lin_writer_find("trn"), &result, &o, &out, &err), LIN_INVALID,
          "'a(b)' cannot be written in TRN: byte 2 is a blank, a parenthesis or a control character");
    static lin_path_phone wrong[] = {{.label = 40}, {.label = 0}, {.label = -1}};
    for (int i = 0; i < 3; i++) {
        OK(lin_result_begin(&result, "u", NULL, 1, &err));
        OK(lin_result_add_path(&result, &(lin_path){.phones = &wrong[i], .n_phones = 1}, 0.01, NULL, NULL, &err));
        for (int w = 0; lin_writer_at(w); w++) FAILS(lin_write(lin_writer_at(w), &result, &o, &out, &err), LIN_INVALID, "label");
    }
    ck_assert_str_eq(out.data, "before");
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {{0, 3, "0.000"},         {1.0005, 3, "1.001"},    {-0.0001, 3, "0.000"}, {-2.5, 0, "-3"},
                 {0.999999, 3, "1.000"},  {36000, 3, "36000.000"}, {NAN, 2, "0.00"},      {INFINITY, 1, "0.0"},
                 {0.05, 9, "0.050000000"},
                 // perplexities have many digits
                 {3162277660168.25, 4, "3162277660168.2500"}, {-1000000000.96875, 2, "-1000000000.97"},
                 {999999999999.9990234375, 2, "1000000000000.00"}, {123456789012.5, 0, "123456789013"},
                 {1e300, 0, "9000000000000000"}, {-1e300, 1, "-9000000000000000.0"}};
    setlocale(LC_ALL, "de_DE.UTF-8"); // if it is installed, its decimal comma must not be written
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_buffer_fixed(&out, cases[i].value, cases[i].digits);
        ck_assert_str_eq(out.data, cases[i].text);
        lin_buffer_free(&out);
    }
    lin_buffer_text(&out, "ab");
    lin_buffer_pad(&out, 0, 4, 1);
    lin_buffer_pad(&out, 2, 4, 0);
    lin_buffer_pad(&out, 0, 2, 0);
    ck_assert_str_eq(out.data, "  ab  ");
    lin_buffer_clear(&out);
    lin_buffer_json_format(&out, "{'text':%s,'d':%d,'l':%lld,'x':[%.2f,%.0f],'100 %%':''}", "\"\n", -1, 1LL << 40, 2.5, 36.5);
    ck_assert_str_eq(out.data, "{\"text\":\"\\\"\\u000a\",\"d\":-1,\"l\":1099511627776,\"x\":[2.50,37],\"100 %\":\"\"}");
}
END_TEST

START_TEST(files)
{
    FILE *full = fopen("/dev/full", "w");
    lin_buffer_text(&out, "text");
    if (full) {
        FAILS(lin_buffer_write(&out, full, "x.txt", &err), LIN_IO, "cannot write x.txt: No space left");
        fclose(full);
    }
    lin_buffer_free(&out);
    FILE *null = fopen("/dev/null", "w");
    OK(lin_buffer_write(&out, null, "null", &err));
    fclose(null);
}
END_TEST

// 100 words of two phones, every third outside the lexicon, and the same once more as an alternative.
static void make_long(lin_result *r)
{
    lin_path_phone phone[200];
    lin_path_word word[100];
    for (int i = 0; i < 200; i++) phone[i] = (lin_path_phone){.label = 5, .start = 9 * i, .end = 9 * i + 4};
    for (int i = 0; i < 100; i++) {
        word[i] = (lin_path_word){.word = i % 3 - 1, .first_phone = 2 * i, .n_phones = 2, .start = 18 * i, .end = 18 * i + 13};
    }
    const lin_path path = {.phones = phone, .n_phones = 200, .words = word, .n_words = 100};
    const story_words spellings = {{"hello", "world"}, 2};
    OK(lin_result_begin(r, "an-id", "speaker", 1, &err));
    OK(lin_result_add_path(r, &path, 0.01, story_spell, &spellings, &err));
    lin_result *other = lin_result_add_alternative(r);
    ck_assert_ptr_nonnull(other);
    OK(lin_result_add_path(other, &path, 0.01, story_spell, &spellings, &err));
}

// Writes into a buffer that is not empty; *n becomes its length.
static lin_status write_behind(const lin_writer *w, const lin_result *r, size_t *n)
{
    lin_writer_document document = {.utterances = 7};
    lin_writer_options o = {.phones = phones, .with_id = 1, .unit = LIN_UNIT_BOTH, .document = &document};
    for (int i = 0; i < 250; i++) lin_buffer_char(&out, '.');
    lin_status status = lin_buffer_status(&out, NULL);
    if (status == LIN_OK) {
        status = lin_writer_begin(w, &o, &out, NULL);
        if (status != LIN_OK) ck_assert(out.n == 250 && !out.failed && document.utterances == 0);
    }
    if (status == LIN_OK) {
        const size_t before = out.n;
        status = lin_write(w, r, &o, &out, NULL);
        if (status != LIN_OK) ck_assert(out.n == before && !out.failed && strlen(out.data) == before);
        ck_assert_int_eq(document.utterances, status ? 0 : 1);
        if (status != LIN_OK) ck_assert(document.cues == 0 && document.end_ms == 0);
    }
    *n = out.n;
    lin_buffer_free(&out);
    return status;
}

// Success is only correct with the full length: an allocation failure that is not reported would leave something out.
static lin_status write_all_of(const lin_writer *w, const lin_result *r, size_t want)
{
    size_t n;
    lin_status status = write_behind(w, r, &n);
    if (status == LIN_OK) ck_assert_msg(n == want, "%s: %zu bytes, not %zu", w->name, n, want);
    return status;
}

START_TEST(out_of_memory)
{
    lin_result r = {0};
    make_long(&r);
    const lin_writer *w = lin_writer_at(_i);
    size_t n;
    OK(write_behind(w, &r, &n));
    ck_assert_uint_gt(n, strcmp(w->name, "rttm") ? 900 : 300); // a line for all that is said without a pause
    FAIL_EVERY_ALLOCATION(write_all_of(w, &r, n), (void)0);
    lin_result_free(&r);
}
END_TEST

/* ---- texts as they are written --------------------------------------------------------------------------------------------- */

static const char *spell_script(const void *context, int word)
{
    (void)word;
    return context;
}

// One word of a script: when it is said, and what stands before it: "" nothing, " " a blank, "\n" a line, "\n\n" a paragraph.
typedef struct scripted {
    const char *before, *word, *written;
    double start_s, end_s;
} scripted;

static void read_script(const scripted *words_of, int n, double seconds)
{
    OK(lin_result_begin(&result, "script", NULL, 1, &err));
    for (int i = 0; i < n; i++) {
        const scripted *w = &words_of[i];
        lin_path_phone phone = {.label = 1,
                                .confidence = 1,
                                .start = (int64_t)(w->start_s * 1000),
                                .end = (int64_t)(w->end_s * 1000)};
        lin_path_word word = {.word = 0, .n_phones = 1, .confidence = 1, .start = phone.start, .end = phone.end};
        const lin_path path = {.phones = &phone, .n_phones = 1, .words = &word, .n_words = 1};
        OK(lin_result_add_path(&result, &path, 0.001, spell_script, w->word, &err));
        OK(lin_result_write_word(&result, i, w->written, strlen(w->written), !*w->before,
                                 (int)strlen(w->before) * (*w->before == '\n'), &err));
    }
    result.seconds = seconds;
}

static const scripted script[] = {
    {" ", "it", "\"It", 0.5, 0.7},         {" ", "said", "said,\"", 0.7, 1.0},   {" ", "she", "she", 1.0, 1.2},
    {" ", "said", "said", 1.2, 1.5},       {" ", "well", "well\xE2\x80\x94", 1.5, 1.8}, {"", "known", "known.", 1.8, 2.2},
    {"\n", "next", "Next", 2.3, 2.6},      {" ", "line", "line", 2.6, 2.9},      {"\n\n", "a", "A", 3.0, 3.1},
    {" ", "paragraph", "paragraph!", 3.1, 3.9}};

// Subtitles have the punctuation of the text; a paragraph begins a cue, with `script` each line.
START_TEST(scripts)
{
    read_script(script, 10, 8);
    ck_assert_str_eq(written("srt", (lin_writer_options){0}),
                     "1\n00:00:00,500 --> 00:00:02,911\n\"It said,\" she said well\xE2\x80\x94known. Next line\n\n"
                     "2\n00:00:03,000 --> 00:00:04,000\nA paragraph!\n\n");
    ck_assert_str_eq(written("srt", (lin_writer_options){.cues = {.script = 1, .gap_ms = 80, .speed = 21}}),
                     "1\n00:00:00,500 --> 00:00:02,200\n\"It said,\" she said well\xE2\x80\x94known.\n\n"
                     "2\n00:00:02,300 --> 00:00:02,920\nNext line\n\n"
                     "3\n00:00:03,000 --> 00:00:04,000\nA paragraph!\n\n");
    // No gap takes more than half of a subtitle's time.
    HAS(written("srt", (lin_writer_options){.cues = {.script = 1, .gap_ms = 1000}}),
        "00:00:02,300 --> 00:00:02,650\nNext line\n");
    // The gap is also kept before the turn of another speaker.
    static const double next_s[] = {4.5, 4.0, 3.1};
    static const char *const ends[] = {"03,000 --> 00:00:04,300\nA paragraph!\n\n", "03,000 --> 00:00:03,800\nA paragraph!\n\n",
                                       "03,000 --> 00:00:03,050\nA paragraph!\n\n"};
    for (int i = 0; i < 3; i++) {
        const lin_writer_options turn = {.with_speaker = 1, .until_s = next_s[i], .cues = {.gap_ms = 200, .speed = 5}};
        HAS(written("srt", turn), ends[i]);
    }
    const char *json = written("json", (lin_writer_options){0});
    HAS(json, "\"text\":\"it said she said well known next line a paragraph\"",
        "\"readable\":\"\\\"It said,\\\" she said well\xE2\x80\x94known.\\u000aNext line\\u000a\\u000aA paragraph!\"");
    HAS(written("ctm", (lin_writer_options){0}), "script 1 0.700 0.300 said 1.0000");
}
END_TEST

// Of a long sentence: cut behind a full stop or comma rather than elsewhere; lines, speed and gaps are kept.
START_TEST(cues_of_scripts)
{
    scripted many[200];
    char texts[200][16];
    double at = 1;
    for (int i = 0; i < 200; i++) {
        const int stop = i % 9 == 8, comma = i % 9 == 4;
        snprintf(texts[i], sizeof texts[i], "word%s", stop ? "." : comma ? "," : "");
        many[i] = (scripted){" ", "word", texts[i], at, at + 0.3};
        at += 0.31;
    }
    read_script(many, 200, at);
    for (int k = 0; k < 3; k++) {
        static const lin_cue_options how[] = {{0},
                                              {.speed = 21, .gap_ms = 80},
                                              {.width = 30, .rows = 1, .longest_ms = 4000, .gap_ms = 120}};
        const int width = how[k].width ? how[k].width : 42, rows = how[k].rows ? how[k].rows : 2;
        const char *text = written("srt", (lin_writer_options){.cues = how[k]});
        int cues = 0, good = 0, before_ms = -1000;
        for (const char *c = text; *c; cues++) {
            int h, m, s, ms, m2, s2, ms2, lines = 0;
            ck_assert_int_eq(sscanf(strchr(c, '\n'), " %d:%d:%d,%d --> %*d:%d:%d,%d", &h, &m, &s, &ms, &m2, &s2, &ms2), 7);
            const int from = (m * 60 + s) * 1000 + ms, to = (m2 * 60 + s2) * 1000 + ms2;
            ck_assert_int_ge(from - before_ms, how[k].gap_ms);
            ck_assert(to > from && to - from <= (how[k].longest_ms ? how[k].longest_ms : 7000));
            before_ms = to;
            c = strchr(strchr(c, '\n') + 1, '\n') + 1;
            const char *end = strstr(c, "\n\n");
            for (const char *l = c; l < end; lines++) {
                const size_t n = strcspn(l, "\n");
                ck_assert_uint_le(n, (size_t)width);
                l += n + 1;
            }
            ck_assert_int_le(lines, rows);
            good += end[-1] == '.' || end[-1] == ',';
            c = end + 2;
        }
        ck_assert_msg(good * 10 >= cues * 7, "%d of %d cues end with a mark", good, cues);
    }
}
END_TEST

// Utterances whose times were given stay beside words and phones.
START_TEST(utterances_of_textgrids)
{
    read_script(script, 3, 2);
    OK(lin_result_add_span(&result, 0.25, 1, "\"It said,\"", &err));
    OK(lin_result_add_span(&result, 1, 2.5, "she", &err));
    const char *grid = written("textgrid", (lin_writer_options){0});
    HAS(grid, "xmax = 2.500 \ntiers? <exists> \nsize = 3 \n",
        "    item [1]:\n        class = \"IntervalTier\" \n        name = \"utterances\" \n        xmin = "
        "0.000 \n        xmax = 2.500 \n        intervals: size = 3 \n        intervals [1]:\n"
        "            xmin = 0.000 \n            xmax = 0.250 \n            text = \"\" \n        intervals "
        "[2]:\n            xmin = 0.250 \n            xmax = 1.000 \n            text = \"\"\"It said,\"\"\" \n",
        "    item [2]:\n        class = \"IntervalTier\" \n        name = \"words\"");
    lin_result other = {0};
    OK(lin_result_begin(&other, "other", "ben", 2, &err));
    other.has_words = 1;
    const lin_result *list[] = {&result, &other};
    const lin_writer_options o = {.phones = phones};
    OK(lin_write_speakers(lin_writer_find("textgrid"), list, 2, &o, &out, &err));
    HAS(out.data, "\nsize = 5 \n");
    ck_assert_ptr_nonnull(strstr(out.data, "name = \" - utterances\"")); // this one has no name
    const size_t before = out.n;
    OK(lin_result_add_path(&other, &(lin_path){.phones = &(lin_path_phone){0}, .n_phones = 1}, 0.01, NULL, NULL, &err));
    FAILS(lin_write_speakers(lin_writer_find("csv"), list, 2, &o, &out, &err), LIN_INVALID, "label 0");
    ck_assert_uint_eq(out.n, before); // nor is the first written
    lin_result_free(&other);
}
END_TEST

static const char *nemo(const lin_writer_source *source) { return written("nemo", (lin_writer_options){.source = source}); }

// The line of a manifest keeps all its members, as they are written; an earlier result is replaced.
START_TEST(manifests)
{
    read_story("story");
    const char *line = written("text", (lin_writer_options){0}); // the words
    char said[512], want[1024];
    snprintf(said, sizeof said, "%.*s", (int)strcspn(line, "\n"), line);
    const struct {
        lin_writer_source source;
        const char *before;
    } cases[] = {
        {{.record = "{ \"audio_filepath\" : \"a.wav\", \"duration\": 2.50,\"x\":{\"y\":1}}"},
         "{ \"audio_filepath\" : \"a.wav\", \"duration\": 2.50,\"x\":{\"y\":1}"},
        {{.record = "{\"pred_text\":\"x\", \"a\":\"}\",\"pred_text\":7}"}, "{\"a\":\"}\""},
        {{.path = "a \"b\".wav", .text = "x", .start_s = 1.5, .duration_s = 2},
         "{\"id\":\"story\",\"audio_filepath\":\"a "
         "\\\"b\\\".wav\",\"offset\":1.500,\"duration\":2.000,\"text\":\"x\",\"speaker\":\"anna\""},
        {{.path = "a.wav", .duration_s = 2, .names_channel = 1},
         "{\"id\":\"story\",\"audio_filepath\":\"a.wav\",\"offset\":0.000,\"duration\":2.000,\"speaker\":\"anna\",\"channel\":2"},
        {{.record = "{\"a\": 1}", .names_channel = 1}, "{\"a\": 1,\"channel\":2"},
        {{.record = "{\"a\": \"channel/1\"}", .names_channel = 1}, "{\"a\": \"channel/1\",\"channel\":2"},
        {{.record = "{\"a\":1,\"channel\":7}", .names_channel = 1}, "{\"a\":1,\"channel\":2"},
        {{.record = "{\"a\": 1, \"channel\":7}"}, "{\"a\": 1, \"channel\":7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(want, sizeof want, "%s,\"pred_text\":\"%s\"}\n", cases[i].before, said);
        ck_assert_str_eq(nemo(&cases[i].source), want);
    }
    HAS(nemo(NULL), "{\"id\":\"story\",\"duration\":");
    const lin_writer_source bad = {.record = "{\"pred_text\":"};
    const lin_writer_options o = {.phones = phones, .source = &bad};
    FAILS(lin_write(lin_writer_find("nemo"), &result, &o, &out, &err), LIN_FORMAT, "");
    ck_assert_uint_eq(out.n, 0);
}
END_TEST

// Speech is a little longer than its phones, but not than the sound, and goes on over pauses of less than half a second. Names
// have no blanks.
START_TEST(who_speaks)
{
    static lin_path_phone said[] = {{.label = 1, .confidence = 1, .start = 1, .end = 2},
                                    {.label = 1, .confidence = 1, .start = 40, .end = 45},  // behind 0.38 s
                                    {.label = 1, .confidence = 1, .start = 95, .end = 97},  // behind 0.5 s
                                    {.label = 1, .confidence = 1, .start = 101, .end = 110}}; // of another speaker
    const float voices[] = {3, 4, 0, 2};
    OK(lin_result_begin(&result, "talk", "Anna B", 1, &err));
    result.seconds = 1.15;
    OK(lin_result_add_path(&result, &(lin_path){.phones = said, .n_phones = 4}, 0.01, NULL, NULL, &err));
    ck_assert_str_eq(written("rttm", (lin_writer_options){0}), "SPEAKER talk 1 0.000 0.550 <NA> <NA> Anna_B <NA> <NA>\n"
                                                               "SPEAKER talk 1 0.920 0.230 <NA> <NA> Anna_B <NA> <NA>\n");
    for (int i = 0; i < 4; i++) result.phones[i].speaker = 1 + (i == 3);
    OK(lin_result_set_voices(&result, voices, 2, 2, &err));
    *result.speaker = 0;
    ck_assert_str_eq(written("rttm", (lin_writer_options){0}), "SPEAKER talk 1 0.000 0.550 <NA> <NA> S1 <NA> <NA>\n"
                                                               "SPEAKER talk 1 0.920 0.090 <NA> <NA> S1 <NA> <NA>\n"
                                                               "SPEAKER talk 1 1.010 0.140 <NA> <NA> S2 <NA> <NA>\n");
    const char *json = written("json", (lin_writer_options){0});
    HAS(json, "\"start\":1.010,\"end\":1.100,\"confidence\":1.0000,\"speaker\":\"S2\"}",
        "\"voices\":[[0.6000,0.8000],[0.0000,1.0000]]");
    // Of one speaker too, but not of a turn, which is named itself.
    result.phones[3].speaker = 1;
    OK(lin_result_set_voices(&result, voices, 1, 2, &err));
    HAS(written("json", (lin_writer_options){0}), "\"confidence\":1.0000,\"speaker\":\"S1\"}");
    memcpy(result.speaker, "S1", 3);
    ck_assert_ptr_null(strstr(written("json", (lin_writer_options){0}), "\"confidence\":1.0000,\"speaker\""));
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "writers", TEST(formats), TEST(the_table), TESTS(golden, 0, sizeof goldens / sizeof *goldens),
               TEST(documents), TEST(what_a_document_cannot_hold), TEST(words), TEST(words_that_do_not_fit),
               TEST(json_of_odd_ids), TEST(what_a_format_cannot_hold), TEST(numbers), TEST(files),
               TESTS(out_of_memory, 0, N_WRITERS), TEST(odd_times), TEST(odd_text), TEST(phones_of_no_word), TEST(manifests),
               TEST(scripts), TEST(cues_of_scripts), TEST(utterances_of_textgrids), TEST(who_speaks))
