// Manifests of other toolkits: good ones, each kind of bad one with its message, gzip'd ones, Common Voice's folders.
#include "linnet/datadir.h"

#include <sys/stat.h>
#include <zlib.h>

#include "base/memory.h"
#include "tests/support.h"

static lin_status parse(const char *text, const lin_datadir_options *o, lin_datadir **dir, lin_error *err)
{
    const lin_datadir_file file = {"m", text, strlen(text)};
    return lin_datadir_parse_list(&file, o, dir, err);
}

static const lin_datadir_options plain = {.audio_root = "root"};

static lin_datadir *good(const char *text, const lin_datadir_options *o)
{
    lin_datadir *dir;
    OK(parse(text, o, &dir, &err));
    return dir;
}

START_TEST(json_lines_are_read)
{
    lin_datadir *dir =
        good("\n{\"audio_filepath\": \"x/a b.wav\", \"text\": \" how\\n are\\tyou\\n\", \"duration\": 2.5, \"lang\": \"en\"} \r\n"
             "{\"audio\": {\"path\": \"/abs/b.flac\"}, \"sentence\": \"B\", \"speaker\": \"bob\", \"duration\": null}\n"
             "{\"file_name\":\"c.wav\",\"offset\":3.2004,\"duration\":2.5,\"transcription\":\"\",\"id\":\"utt-7\"}\n"
             "{\"path\":\"c.wav\",\"offset\":12}",
             &plain);
    const struct {
        const char *id, *path, *speaker, *text;
        double start_s, end_s;
        int line;
    } want[] = {{"x/a_b", "root/x/a b.wav", "x/a_b", "how are you", 0, 0, 2},
                {"/abs/b", "/abs/b.flac", "bob", "B", 0, 0, 3},
                {"utt-7", "root/c.wav", "utt-7", NULL, 3.2004, 5.7004, 4},
                {"c-0012000", "root/c.wav", "c-0012000", NULL, 12, 0, 5}};
    ck_assert_int_eq(lin_datadir_count(dir), 4);
    for (int i = 0; i < 4; i++) {
        const lin_utterance *u = lin_datadir_at(dir, i);
        ck_assert_str_eq(u->id, want[i].id);
        ck_assert_str_eq(u->cut.path, want[i].path);
        ck_assert_str_eq(u->speaker, want[i].speaker);
        ck_assert_double_eq_tol(u->cut.part.start_s, want[i].start_s, 1e-9);
        ck_assert_double_eq_tol(u->cut.part.end_s, want[i].end_s, 1e-9);
        ck_assert_int_eq(u->line, want[i].line);
        if (want[i].text) ck_assert_str_eq(u->text, want[i].text);
        else ck_assert_ptr_null(u->text);
        ck_assert_int_eq(u->record[0], '{');
    }
    ck_assert_str_eq(lin_datadir_at(dir, 3)->record, "{\"path\":\"c.wav\",\"offset\":12}");
    lin_datadir_destroy(dir);
    dir = good("{\"wav\":\"a.wav\",\"text\":\"\\n how\\n\\tare you\\n\"}", &plain); // a text of several lines
    ck_assert_str_eq(lin_datadir_at(dir, 0)->text, "how are you");
    lin_datadir_destroy(dir);
}
END_TEST

#define CUT(rest) "{\"id\":\"cut-1\",\"start\":10.5,\"duration\":4,\"channel\":1,\"type\":\"MonoCut\",\"recording\":" rest "}\n"
#define RECORDING "{\"id\":\"r\",\"sources\":[{\"type\":\"file\",\"channels\":[0,1],\"source\":\"r.flac\"}]}"

// Cuts as lhotse 1.x writes them.
START_TEST(cuts_are_read)
{
    lin_datadir *dir = good(CUT(RECORDING ",\"supervisions\":[{\"id\":\"s\",\"recording_id\":\"r\",\"start\":0.0,\"duration\":4,"
                                "\"channel\":1,\"text\":\"HOW ARE\",\"speaker\":\"ann\"}]"), &plain);
    const lin_utterance *u = lin_datadir_at(dir, 0);
    ck_assert_int_eq(lin_datadir_count(dir), 1);
    ck_assert_str_eq(u->id, "cut-1");
    ck_assert_str_eq(u->cut.path, "root/r.flac");
    ck_assert_int_eq(u->cut.channel, 2);
    ck_assert_double_eq(u->cut.part.start_s, 10.5);
    ck_assert_double_eq(u->cut.part.end_s, 14.5);
    ck_assert_str_eq(u->text, "HOW ARE");
    ck_assert_str_eq(u->speaker, "ann");
    ck_assert_ptr_nonnull(u->record);
    lin_datadir_destroy(dir);

    dir = good(CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":-1,\"duration\":2,\"text\":\"A\"},"
                   "{\"id\":\"b\",\"start\":2.5,\"duration\":1,\"text\":\"B\",\"channel\":0}]"), &plain);
    ck_assert_int_eq(lin_datadir_count(dir), 2);
    const lin_utterance *a = lin_datadir_at(dir, 0), *b = lin_datadir_at(dir, 1);
    ck_assert_str_eq(a->id, "a");
    ck_assert_double_eq(a->cut.part.start_s, 9.5);
    ck_assert_double_eq(a->cut.part.end_s, 11.5);
    ck_assert_int_eq(a->cut.channel, 2);
    ck_assert_int_eq(b->cut.channel, 1);
    ck_assert_double_eq(b->cut.part.start_s, 13);
    ck_assert_ptr_null(b->record); // several share the line
    lin_datadir_destroy(dir);

    // Before the begin of the recording there is nothing.
    dir = good("{\"id\":\"c\",\"start\":0.5,\"duration\":4,\"recording\":" RECORDING
               ",\"supervisions\":[{\"id\":\"a\",\"start\":-1,\"duration\":3},"
               "{\"id\":\"b\",\"start\":-0.5,\"duration\":3},{\"id\":\"c\",\"start\":null,\"duration\":3}]}", &plain);
    const double parts[][2] = {{0, 2.5}, {0, 3}, {0.5, 3.5}};
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(lin_datadir_at(dir, i)->cut.part.start_s, parts[i][0]);
        ck_assert_double_eq(lin_datadir_at(dir, i)->cut.part.end_s, parts[i][1]);
    }
    lin_datadir_destroy(dir);

    const lin_datadir_options commands = {.allow_commands = 1};
    dir = good(CUT("{\"sources\":[{\"type\":\"command\",\"source\":\"cat x.wav\"}]}"), &commands);
    ck_assert_int_eq(lin_datadir_at(dir, 0)->cut.is_command, 1);
    ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, "cat x.wav");
    ck_assert_ptr_null(lin_datadir_at(dir, 0)->text);
    lin_datadir_destroy(dir);
}
END_TEST

START_TEST(tables_are_read)
{
    lin_datadir *dir = good("client_id\tpath\tsentence\tup_votes\r\n0a1b\tcommon_voice_de_1.mp3\tWie geht\xE2\x80\x99s?\t2\r\n"
                            "\tcommon_voice_de_2.mp3\tGut.\t\n\n", &plain);
    ck_assert_int_eq(lin_datadir_count(dir), 2);
    const lin_utterance *u = lin_datadir_at(dir, 0);
    ck_assert_str_eq(u->id, "common_voice_de_1");
    ck_assert_str_eq(u->cut.path, "root/common_voice_de_1.mp3");
    ck_assert_str_eq(u->speaker, "0a1b");
    ck_assert_str_eq(u->text, "Wie geht\xE2\x80\x99s?");
    ck_assert_str_eq(lin_datadir_at(dir, 1)->speaker, "common_voice_de_2");
    ck_assert_ptr_null(u->record);
    lin_datadir_destroy(dir);
}
END_TEST

START_TEST(bad_manifests_are_refused)
{
    static const struct {
        const char *text, *message;
        lin_status status;
    } cases[] = {
        {"{\"text\":\"A\"}", "m:1: the object names no sound: it has no \"audio_filepath\"", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\"}\n{\"audio_filepath\":\"a.wav\"}", "m:2: a is repeated; it is already in line 1",
         LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"offset\":-1}", "m:1: \"offset\" is no time in seconds", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"duration\":\"2\"}", "m:1: \"duration\" is no time in seconds", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"id\":\"a b\"}", "m:1: the name 'a b' has a blank", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"speaker\":\"a b\"}", "m:1: the speaker must be one name", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\"", "m:1: the line is not JSON", LIN_FORMAT},
        {"{\"audio_filepath\":\"a\\nb.wav\"}", "m:1: the object names no sound", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\"} x", "m:1: the line has extra text after its end", LIN_FORMAT},
        {"[{\"audio_filepath\":\"a.wav\"}]", "m:1: a line must hold one JSON object", LIN_FORMAT},
        {"{\"audio_filepath\":\"a\\u001b.wav\"}", "m:1: the line contains control characters", LIN_FORMAT},
        {"{\"id\":\"c\",\"tracks\":[]}", "m:1: the cut has no recording; only cuts of one can be read", LIN_FORMAT},
        {CUT("{\"sources\":[]}"), "m:1: the cut's recording must have one source", LIN_FORMAT},
        {CUT("{\"sources\":[{\"type\":\"url\",\"source\":\"http://x\"}]}"), "the source of the sound is no file, but of type url",
         LIN_UNSUPPORTED},
        {CUT("{\"sources\":[{\"type\":\"command\",\"source\":\"x\"}]}"), "--allow-commands runs such commands", LIN_UNSUPPORTED},
        {"{\"id\":\"c\",\"channel\":[0,1],\"recording\":" RECORDING "}", "m:1: the cut must have one channel", LIN_FORMAT},
        {"{\"channel\":0,\"recording\":" RECORDING "}", "m:1: a cut or supervision without \"id\"", LIN_FORMAT},
        {CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":1e9},{\"id\":\"b\"}]"), "m:1: \"start\" is no time in seconds",
         LIN_FORMAT},
        {CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":\"1\"},{\"id\":\"b\"}]"),
         "m:1: \"start\" is no time in seconds", LIN_FORMAT},
        {CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":-13,\"duration\":2},{\"id\":\"b\"}]"),
         "m:1: a supervision ends before its recording begins", LIN_FORMAT},
        {"path\tsentence\n\tA\n", "m:2: the column \"path\" is empty", LIN_FORMAT},
        {"path\tsentence\na.mp3\t\xFF\n", "m:2: byte 0xFF at column 7 is not UTF-8 text", LIN_FORMAT},
        {"path\tsentence\n", "m: it lists no recordings", LIN_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_datadir *dir;
        FAILS(parse(cases[i].text, &plain, &dir, &err), cases[i].status, cases[i].message);
        ck_assert_ptr_null(dir);
    }
    lin_datadir *dir;
    const lin_datadir_options need = {.need_text = 1};
    FAILS(parse("{\"audio_filepath\":\"a.wav\"}", &need, &dir, &err), LIN_FORMAT, "m:1: a has no transcript");
    FAILS(parse("path\tsentence\na.mp3\t\n", &need, &dir, &err), LIN_FORMAT, "m:2: the column \"sentence\" is empty");
}
END_TEST

START_TEST(lists_are_told_apart)
{
    static const struct {
        const char *text, *message; // message NULL: it lists n recordings
        int n;
    } cases[] = {{"\xEF\xBB\xBF\n {\"a\":1}", "m:2: the object names no sound", 0}, {"[\n {\"a\":1}]", "m:1: the line", 0},
                 {"path\tsentence\nb\tB\n", NULL, 1},      {"a\tsentence\tpath\r\nx\ty\tz\n", NULL, 1},
                 {"path\twhat was said\nb\tB\n", NULL, 2}, {"[take 1].wav\tA\n", NULL, 1},
                 {"", "it lists no recordings", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_datadir *dir;
        if (cases[i].message) {
            FAILS(parse(cases[i].text, &plain, &dir, &err), LIN_FORMAT, cases[i].message);
            continue;
        }
        dir = good(cases[i].text, &plain);
        ck_assert_int_eq(lin_datadir_count(dir), cases[i].n);
        lin_datadir_destroy(dir);
    }
}
END_TEST

START_TEST(files_are_loaded)
{
    static const char line[] = "{\"audio_filepath\":\"a.wav\",\"text\":\"A\"}\n", table[] = "path\tsentence\na.mp3\tA\n";
    const lin_datadir_options o = {.need_text = 1};
    lin_datadir *dir;
    const char *path = test_path("m.jsonl.gz");
    gzFile gz = gzopen(path, "wb");
    ck_assert_int_eq(gzputs(gz, line), (int)strlen(line));
    gzclose(gz);
    OK(lin_datadir_load(path, &o, &dir, &err));
    ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, test_path("a.wav"));
    lin_datadir_destroy(dir);

    // Common Voice: the sound is in the folder clips beside the table, if there is one.
    path = test_file("train.tsv", table, strlen(table));
    for (int clips = 0; clips < 2; clips++) {
        if (clips) ck_assert_int_eq(mkdir(test_path("clips"), 0777), 0);
        OK(lin_datadir_load(path, &o, &dir, &err));
        ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, test_path(clips ? "clips/a.mp3" : "a.mp3"));
        lin_datadir_destroy(dir);
    }
    FAIL_EVERY_ALLOCATION_OF(dir, lin_datadir_load(path, &o, &dir, NULL), lin_datadir_destroy(dir));
}
END_TEST

START_TEST(a_failed_allocation_is_an_error)
{
    lin_datadir *dir;
    static const char text[] = "{\"audio_filepath\":\"a.wav\",\"text\":\"A\",\"speaker\":\"s\"}\n" CUT(
        RECORDING ",\"supervisions\":[{\"id\":\"s1\",\"text\":\"A\"},{\"id\":\"s2\",\"speaker\":\"c\"}]");
    FAIL_EVERY_ALLOCATION_OF(dir, parse(text, &plain, &dir, NULL), lin_datadir_destroy(dir));
}
END_TEST

TEST_MAIN("linnet/manifest", TEST(json_lines_are_read), TEST(cuts_are_read), TEST(tables_are_read),
          TEST(bad_manifests_are_refused), TEST(lists_are_told_apart), TEST(files_are_loaded),
          TEST(a_failed_allocation_is_an_error))
