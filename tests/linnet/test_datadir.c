// Lists of recordings and manifests of other toolkits: good ones, and every kind of bad one with its message; Common Voice.
#include "linnet/datadir.h"

#include <sys/stat.h>
#include <zlib.h>

#include "base/memory.h"
#include "tests/support.h"

static lin_datadir *dir;

static void drop(void)
{
    lin_datadir_destroy(dir);
    dir = NULL;
}

#define FILE_OF(name, text) ((lin_datadir_file){name, text, sizeof text - 1})

static lin_status parse_all(const char *const contents[LIN_DATADIR_FILES], const lin_datadir_options *options, lin_error *err)
{
    lin_datadir_file files[LIN_DATADIR_FILES];
    for (int i = 0; i < LIN_DATADIR_FILES; i++)
        files[i] = (lin_datadir_file){lin_datadir_names[i], contents[i], contents[i] ? strlen(contents[i]) : 0};
    return lin_datadir_parse(files, options, &dir, err);
}

static lin_status parse(const char *wav, const char *text, const char *spk, int need_text, lin_error *err)
{
    const char *const contents[LIN_DATADIR_FILES] = {wav, text, spk};
    return parse_all(contents, &(lin_datadir_options){.audio_root = "root", .need_text = need_text}, err);
}

static void check(const lin_utterance *u, const char *id, const char *path, const char *text, const char *speaker, double start_s,
                  double end_s, int channel)
{
    ck_assert_str_eq(u->id, id);
    ck_assert_str_eq(u->cut.path, path);
    ck_assert_pstr_eq(u->text, text);
    ck_assert_str_eq(u->speaker, speaker);
    ck_assert_double_eq_tol(u->cut.part.start_s, start_s, 1e-9);
    ck_assert_double_eq_tol(u->cut.part.end_s, end_s, 1e-9);
    ck_assert_int_eq(u->cut.channel, channel);
}

START_TEST(a_directory_is_read)
{
    OK(parse("b audio/b.wav\na\t/abs/a b.flac \nc c.ogg", "a  I'M\t HERE \nb HELLO\nc \xC3\x84H\n",
             "b bob\na ann\nc bob\n", 1, &err));
    ck_assert_int_eq(lin_datadir_count(dir), 3);
    check(lin_datadir_at(dir, 0), "b", "root/audio/b.wav", "HELLO", "bob", 0, 0, 0);
    check(lin_datadir_at(dir, 1), "a", "/abs/a b.flac", "I'M HERE", "ann", 0, 0, 0);
    check(lin_datadir_at(dir, 2), "c", "root/c.ogg", "\xC3\x84H", "bob", 0, 0, 0);
    ck_assert_int_eq(lin_datadir_at(dir, 0)->line, 1);
}
END_TEST

START_TEST(text_and_speakers_may_be_missing)
{
    ck_assert_int_eq(parse("a a.wav\nb b.wav\n", NULL, NULL, 0, NULL), LIN_OK);
    ck_assert_ptr_null(lin_datadir_at(dir, 1)->text);
    ck_assert_str_eq(lin_datadir_at(dir, 1)->speaker, "b");
    drop();
    ck_assert_int_eq(parse("a a.wav\nb b.wav\n", "b HI\n", NULL, 0, NULL), LIN_OK);
    ck_assert_ptr_null(lin_datadir_at(dir, 0)->text);
    ck_assert_str_eq(lin_datadir_at(dir, 1)->text, "HI");
}
END_TEST

START_TEST(bad_directories_are_refused)
{
    const struct {
        const char *wav, *text, *spk, *message;
        lin_status status;
    } cases[] = {
        {"", "a A\n", NULL, "text:1: a has no sound: it is not listed in wav.scp", LIN_FORMAT},
        {"", "", NULL, "wav.scp: it lists no recordings", LIN_FORMAT},
        {"a a.wav\n", NULL, NULL, "cannot open text: transcripts are required", LIN_IO},
        {"a a.wav\nb b.wav\na c.wav\n", "a A\n", NULL, "wav.scp:3: a is repeated; it is already in line 1", LIN_FORMAT},
        {"a a.wav\nb b.wav\n", "a A\n", NULL, "wav.scp:2: b has no transcript in text", LIN_FORMAT},
        {"a a.wav\n", "a A\na B\n", NULL, "text:2: a already has a transcript", LIN_FORMAT},
        {"a a.wav\n", "a \t \n", NULL, "text:1: the transcript of a is empty", LIN_FORMAT},
        {"a a.wav\n", "a A\nb B\n", NULL, "text:2: b has no sound", LIN_FORMAT},
        {"a\n", "a A\n", NULL, "wav.scp:1: the path of the sound file is missing", LIN_FORMAT},
        {"a sox a.wav -t wav - |\n", "a A\n", NULL, "wav.scp:1: the sound of a comes from a command", LIN_UNSUPPORTED},
        {"a a.wav\n\nb b.wav\n", "a A\n", NULL, "wav.scp:2: the line is empty", LIN_FORMAT},
        {"a a.wav\n b b.wav\n", "a A\n", NULL, "wav.scp:2: the line begins with white space", LIN_FORMAT},
        {"a a.wav\n", "a A\rB\r\n", NULL, "text:1: byte 0x0D at column 4 is a control character", LIN_FORMAT},
        {"a a.wav\r\n\r\n", "a A\n", NULL, "wav.scp:2: the line is empty", LIN_FORMAT},
        {"a a.wav\n", "a A \x1B[2J\n", NULL, "text:1: byte 0x1B at column 5 is a control character", LIN_FORMAT},
        {"a a.wav\n", "a A\x7F\n", NULL, "text:1: byte 0x7F at column 4 is a control character", LIN_FORMAT},
        {"a a.wav\n", "a \xE4H\n", NULL, "text:1: byte 0xE4 at column 3 is not UTF-8 text", LIN_FORMAT},
        {"a a.wav\n", "a \xC0\x80\n", NULL, "text:1: byte 0xC0 at column 3 is not UTF-8 text", LIN_FORMAT},
        {"a a.wav\n", "a \xED\xA0\x80\n", NULL, "is not UTF-8 text", LIN_FORMAT},
        {"a a.wav\n", "a \xE2\x82", NULL, "is not UTF-8 text", LIN_FORMAT},
        {"a a.wav\n", "a A\n", "b bob\n", "utt2spk:1: b has no sound", LIN_FORMAT},
        {"a a.wav\n", "a A\n", "a bob\na ann\n", "utt2spk:2: a already has a speaker", LIN_FORMAT},
        {"a a.wav\n", "a A\n", "a\n", "utt2spk:1: the speaker must be one name", LIN_FORMAT},
        {"a a.wav\n", "a A\n", "a bob by\n", "utt2spk:1: the speaker must be one name", LIN_FORMAT},
        {"a a.wav\n", "a A\n", "", "wav.scp:1: a has no speaker in utt2spk", LIN_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FAILS(parse(cases[i].wav, cases[i].text, cases[i].spk, 1, &err), cases[i].status, cases[i].message);
        ck_assert_ptr_null(dir);
    }
}
END_TEST

START_TEST(nul_bytes_and_long_lines_are_refused)
{
    const lin_datadir_options o = {0};
    lin_datadir_file files[LIN_DATADIR_FILES] = {FILE_OF("wav.scp", "a a.wav\nb b\0.wav\n")};
    FAILS(lin_datadir_parse(files, &o, &dir, &err), LIN_FORMAT, "wav.scp:2: a NUL byte at column 4");
    static char line[70000];
    for (size_t n = 65536; n <= 65537; n++) {
        for (int end = 0; end < 2; end++) { // with and without a line end
            memset(line, 'x', sizeof line);
            line[1] = ' ';
            if (end) line[n] = '\n';
            files[0] = (lin_datadir_file){"wav.scp", line, n + (size_t)end};
            if (n == 65536) OK(lin_datadir_parse(files, &o, &dir, &err));
            else FAILS(lin_datadir_parse(files, &o, &dir, &err), LIN_FORMAT, "wav.scp:1: the line is longer than 65536 bytes");
            drop();
        }
    }
    memset(line, 'i', 256);
    memcpy(line + 256, " x.wav", 6);
    files[0] = (lin_datadir_file){"wav.scp", line, 262};
    FAILS(lin_datadir_parse(files, &o, &dir, &err), LIN_FORMAT, "a name of 256 bytes; the limit is 255");
}
END_TEST

START_TEST(a_list_is_read)
{
    const lin_datadir_file list = FILE_OF("list", "\xEF\xBB\xBFx/one.wav\tHELLO  THERE\n/abs/two (2).tar.gz\tYES\n.hidden\tNO\n");
    OK(lin_datadir_parse_list(&list, &(lin_datadir_options){"root/", 1, 0}, &dir, &err));
    ck_assert_int_eq(lin_datadir_count(dir), 3);
    check(lin_datadir_at(dir, 0), "x/one", "root/x/one.wav", "HELLO THERE", "x/one", 0, 0, 0);
    check(lin_datadir_at(dir, 1), "/abs/two__2_.tar", "/abs/two (2).tar.gz", "YES", "/abs/two__2_.tar", 0, 0, 0);
    check(lin_datadir_at(dir, 2), ".hidden", "root/.hidden", "NO", ".hidden", 0, 0, 0);
    drop();

    const lin_datadir_file windows = FILE_OF("list", "a.wav\tone two\r\nb.wav\tB\r\n");
    OK(lin_datadir_parse_list(&windows, &(lin_datadir_options){.need_text = 1}, &dir, &err));
    ck_assert_str_eq(lin_datadir_at(dir, 0)->text, "one two");
    ck_assert_str_eq(lin_datadir_at(dir, 1)->text, "B");
    drop();

    const lin_datadir_file plain = FILE_OF("list", "a.wav\nb.wav\t\n");
    OK(lin_datadir_parse_list(&plain, &(lin_datadir_options){0}, &dir, &err));
    ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, "a.wav");
    ck_assert_ptr_null(lin_datadir_at(dir, 0)->text);
    drop();

    const struct {
        lin_datadir_file file;
        lin_status status;
        const char *message;
    } bad[] = {{FILE_OF("list", "a.wav\tA\nb.wav\n"), LIN_FORMAT,
                "list:2: no transcript: the line must be a path, a tab and the transcript"},
               {FILE_OF("list", "a.wav\tA\na.wav\tB\n"), LIN_FORMAT, "list:2: a is repeated; it is already in line 1"},
               {FILE_OF("list", "\tA\n"), LIN_FORMAT, "list:1: the path before the tab is empty"},
               {FILE_OF("list", "sox x |\tA\n"), LIN_UNSUPPORTED, "list:1: the sound of sox x | comes from a command"},
               {FILE_OF("list", ""), LIN_FORMAT, "list: it lists no recordings"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const lin_datadir_options o = {.need_text = 1};
        FAILS(lin_datadir_parse_list(&bad[i].file, &o, &dir, &err), bad[i].status, bad[i].message);
        ck_assert_ptr_null(dir);
    }
}
END_TEST

START_TEST(segments_and_channels_are_read)
{
    const lin_datadir_options o = {.audio_root = "root", .allow_commands = 1};
    const char *const files[] = {"call7 c.sph\ncall8 sph2pipe -f wav c8.sph | \n", "b B\na A\n", "a ann\nb bob\nc ann\n",
                                 "b call7 3.20 5.75\na\tcall8 0 1e1\nc call7 6 -1 0\n", "call7 sw7 B\ncall8 sw8 1\n"};
    OK(parse_all(files, &o, &err));
    ck_assert_int_eq(lin_datadir_count(dir), 3);
    check(lin_datadir_at(dir, 0), "b", "root/c.sph", "B", "bob", 3.2, 5.75, 2);
    check(lin_datadir_at(dir, 1), "a", "sph2pipe -f wav c8.sph", "A", "ann", 0, 10, 1);
    check(lin_datadir_at(dir, 2), "c", "root/c.sph", NULL, "ann", 6, 0, 1); // to the end, in the segment's own channel
    for (int i = 0; i < 3; i++) ck_assert_int_eq(lin_datadir_at(dir, i)->cut.is_command, i == 1);
    ck_assert_int_eq(lin_datadir_has_parts(dir), 1);
    drop();

    // Channels without segments: the names are those of utterances.
    const char *const whole[] = {"u u.wav\nv v.wav\n", NULL, NULL, NULL, "v v b\n"};
    OK(parse_all(whole, &o, &err));
    ck_assert_int_eq(lin_datadir_at(dir, 0)->cut.channel, 0);
    ck_assert_int_eq(lin_datadir_at(dir, 1)->cut.channel, 2);
    ck_assert_int_eq(lin_datadir_has_parts(dir), 0);
}
END_TEST

START_TEST(bad_segments_are_refused)
{
    static const char *const cases[][3] = { // segments, channels, message
        {"a r 0\n", NULL, "segments:1: the line must be a name, a recording, and a start and end in seconds"},
        {"a r 0 1 0 x\n", NULL, "segments:1: the line must be a name"},
        {"a r 0 x\n", NULL, "segments:1: the line must be a name"},
        {"a q 0 1\n", NULL, "segments:1: q has no sound: it is not listed in wav.scp"},
        {"a r 0 1\na r 1 2\n", NULL, "segments:2: a is repeated; it is already in line 1"},
        {"a r 2 1\n", NULL, "segments:1: a is from 2 to 1 s; must be 0 <= start < end"},
        {"a r 1 1\n", NULL, "segments:1: a is from 1 to 1 s"},
        {"a r -1 1\n", NULL, "segments:1: a is from -1 to 1 s"},
        {"a r 0 1e300\n", NULL, "segments:1: a is from 0 to 1e+300 s"},
        {"a r 0 1 64\n", NULL, "segments:1: the channel must be a number from 0 to 63"},
        {"a r 0 1 A\n", NULL, "segments:1: the channel must be a number"},
        {"", NULL, "segments: it lists no recordings"},
        {"a r 0 1\n", "r r\n", "reco2file_and_channel:1: the line must be a recording, a file and a channel"},
        {"a r 0 1\n", "r r C\n", "reco2file_and_channel:1: the channel must be A, B or 1 to 64"},
        {"a r 0 1\n", "r r 0\n", "reco2file_and_channel:1: the channel must be A, B or 1 to 64"},
        {"a r 0 1\n", "q r A\n", "reco2file_and_channel:1: q has no sound: it is not listed in wav.scp"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const files[] = {"r r.wav\n", NULL, NULL, cases[i][0], cases[i][1]};
        FAILS(parse_all(files, &(lin_datadir_options){0}, &err), LIN_FORMAT, cases[i][2]);
        ck_assert_ptr_null(dir);
    }
    const char *const files[LIN_DATADIR_FILES] = {"r |\n"};
    FAILS(parse_all(files, &(lin_datadir_options){.allow_commands = 1}, &err), LIN_FORMAT,
          "wav.scp:1: there is no command before '|'");
}
END_TEST

static void put(const char *name, const char *text) { test_file(name, text, strlen(text)); }

static void check_audio(const char *path, const char *root, const char *want)
{
    OK(lin_datadir_load(path, &(lin_datadir_options){root, 1, 0}, &dir, &err));
    ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, want);
    drop();
}

START_TEST(paths_are_relative_to_the_corpus)
{
    char back[4096];
    const char *set = test_path("set"), *want = test_path("audio/a.wav");
    ck_assert_ptr_nonnull(getcwd(back, sizeof back));
    ck_assert_int_eq(mkdir(set, 0777), 0);
    put("set/wav.scp", "a audio/a.wav\n");
    put("set/text", "a HELLO\n");
    put("set/list", "a.wav\tHELLO\n");

    check_audio(set, NULL, want);
    check_audio(test_path("set//"), NULL, want);
    check_audio(set, "/else/", "/else/audio/a.wav");
    check_audio(set, "", "audio/a.wav");
    check_audio(test_path("set/list"), NULL, test_path("set/a.wav"));
    ck_assert_int_eq(chdir(test_path("")), 0);
    check_audio("set", NULL, "audio/a.wav");
    check_audio("./set/", NULL, "./audio/a.wav");
    check_audio("set/list", NULL, "set/a.wav");
    ck_assert_int_eq(chdir(set), 0);
    check_audio(".", NULL, "./../audio/a.wav");
    check_audio("list", NULL, "a.wav");
    ck_assert_int_eq(chdir(back), 0);

    const lin_datadir_options o = {.need_text = 1};
    put("set/segments", "a-1 a 0 1\n");
    put("set/text", "a-1 HELLO\n");
    OK(lin_datadir_load(set, &o, &dir, &err));
    ck_assert_str_eq(lin_datadir_at(dir, 0)->id, "a-1");
    ck_assert_int_eq(lin_datadir_has_parts(dir), 1);
    drop();
    FAILS(lin_datadir_load(test_path(""), &o, &dir, &err), LIN_IO, "wav.scp: No such file");
    FAILS(lin_datadir_load(test_path("none"), &o, &dir, &err), LIN_IO, "none: No such file");
}
END_TEST

START_TEST(many_names_are_found)
{
    enum { N = 20000 };
    char *wav = malloc(N * 24), *text = malloc(N * 24), *at = wav, *of = text, id[16];
    for (int i = 0; i < N; i++) at += sprintf(at, "u%d x%d.wav\n", i * 7919 % N, i);
    for (int i = 0; i < N; i++) of += sprintf(of, "u%d u%d\n", i, i);
    ck_assert_int_eq(parse(wav, text, NULL, 1, NULL), LIN_OK);
    for (int i = 0; i < N; i++) {
        sprintf(id, "u%d", i * 7919 % N);
        ck_assert_str_eq(lin_datadir_at(dir, i)->text, id);
    }
    free(text);
    free(wav);
}
END_TEST

/* ---- manifests ------------------------------------------------------------------------------------------------------------- */

static lin_status parse_manifest(const char *text, const lin_datadir_options *o, lin_error *err)
{
    const lin_datadir_file file = {"m", text, strlen(text)};
    drop();
    return lin_datadir_parse_list(&file, o, &dir, err);
}

static const lin_datadir_options plain = {.audio_root = "root"};

static void good(const char *text, const lin_datadir_options *o)
{
    OK(parse_manifest(text, o, &err));
}

START_TEST(json_lines_are_read)
{
    good("\n{\"audio_filepath\": \"x/a b.wav\", \"text\": \" how\\n are\\tyou\\n\", \"duration\": 2.5, \"lang\": \"en\"} \r\n"
         "{\"audio\": {\"path\": \"/abs/b.flac\"}, \"sentence\": \"B\", \"speaker\": \"bob\", \"duration\": null}\n"
         "{\"file_name\":\"c.wav\",\"offset\":3.2004,\"duration\":2.5,\"transcription\":\"\",\"id\":\"utt-7\"}\n"
         "{\"path\":\"c.wav\",\"offset\":12}",
         &plain);
    ck_assert_int_eq(lin_datadir_count(dir), 4);
    check(lin_datadir_at(dir, 0), "x/a_b", "root/x/a b.wav", "how are you", "x/a_b", 0, 0, 0);
    check(lin_datadir_at(dir, 1), "/abs/b", "/abs/b.flac", "B", "bob", 0, 0, 0);
    check(lin_datadir_at(dir, 2), "utt-7", "root/c.wav", NULL, "utt-7", 3.2004, 5.7004, 0);
    check(lin_datadir_at(dir, 3), "c-0012000", "root/c.wav", NULL, "c-0012000", 12, 0, 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(lin_datadir_at(dir, i)->line, i + 2);
        ck_assert_int_eq(lin_datadir_at(dir, i)->record[0], '{');
    }
    ck_assert_str_eq(lin_datadir_at(dir, 3)->record, "{\"path\":\"c.wav\",\"offset\":12}");
    good("{\"wav\":\"a.wav\",\"text\":\"\\n how\\n\\tare you\\n\"}", &plain); // a text of several lines
    ck_assert_str_eq(lin_datadir_at(dir, 0)->text, "how are you");
}
END_TEST

#define CUT(rest) "{\"id\":\"cut-1\",\"start\":10.5,\"duration\":4,\"channel\":1,\"type\":\"MonoCut\",\"recording\":" rest "}\n"
#define RECORDING "{\"id\":\"r\",\"sources\":[{\"type\":\"file\",\"channels\":[0,1],\"source\":\"r.flac\"}]}"

// Cuts as lhotse 1.x writes them.
START_TEST(cuts_are_read)
{
    good(CUT(RECORDING ",\"supervisions\":[{\"id\":\"s\",\"recording_id\":\"r\",\"start\":0.0,\"duration\":4,"
             "\"channel\":1,\"text\":\"HOW ARE\",\"speaker\":\"ann\"}]"), &plain);
    ck_assert_int_eq(lin_datadir_count(dir), 1);
    check(lin_datadir_at(dir, 0), "cut-1", "root/r.flac", "HOW ARE", "ann", 10.5, 14.5, 2);
    ck_assert_ptr_nonnull(lin_datadir_at(dir, 0)->record);

    good(CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":-1,\"duration\":2,\"text\":\"A\"},"
             "{\"id\":\"b\",\"start\":2.5,\"duration\":1,\"text\":\"B\",\"channel\":0,\"speaker\":\"ben\"}]"), &plain);
    ck_assert_int_eq(lin_datadir_count(dir), 2);
    check(lin_datadir_at(dir, 0), "a", "root/r.flac", "A", "a", 9.5, 11.5, 2);
    check(lin_datadir_at(dir, 1), "b", "root/r.flac", "B", "ben", 13, 14, 1);
    ck_assert_ptr_null(lin_datadir_at(dir, 1)->record); // several share the line

    // Before the begin of the recording there is nothing.
    good("{\"id\":\"c\",\"start\":0.5,\"duration\":4,\"recording\":" RECORDING
         ",\"supervisions\":[{\"id\":\"a\",\"start\":-1,\"duration\":3},"
         "{\"id\":\"b\",\"start\":-0.5,\"duration\":3},{\"id\":\"c\",\"start\":null,\"duration\":3}]}", &plain);
    const double parts[][2] = {{0, 2.5}, {0, 3}, {0.5, 3.5}};
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(lin_datadir_at(dir, i)->cut.part.start_s, parts[i][0]);
        ck_assert_double_eq(lin_datadir_at(dir, i)->cut.part.end_s, parts[i][1]);
    }

    const lin_datadir_options commands = {.allow_commands = 1};
    good(CUT("{\"sources\":[{\"type\":\"command\",\"source\":\"cat x.wav\"}]}"), &commands);
    ck_assert_int_eq(lin_datadir_at(dir, 0)->cut.is_command, 1);
    ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, "cat x.wav");
    ck_assert_ptr_null(lin_datadir_at(dir, 0)->text);
}
END_TEST

START_TEST(tables_are_read)
{
    good("client_id\tpath\tsentence\tup_votes\r\n0a1b\tcommon_voice_de_1.mp3\tWie geht\xE2\x80\x99s?\t2\r\n"
         "\tcommon_voice_de_2.mp3\tGut.\t\n\n", &plain);
    ck_assert_int_eq(lin_datadir_count(dir), 2);
    check(lin_datadir_at(dir, 0), "common_voice_de_1", "root/common_voice_de_1.mp3", "Wie geht\xE2\x80\x99s?", "0a1b", 0, 0, 0);
    check(lin_datadir_at(dir, 1), "common_voice_de_2", "root/common_voice_de_2.mp3", "Gut.", "common_voice_de_2", 0, 0, 0);
    ck_assert_ptr_null(lin_datadir_at(dir, 0)->record);
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
        {"{\"audio_filepath\":\"a.wav\",\"offset\":-1}", "m:1: \"offset\" is not a time in seconds", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"duration\":\"2\"}", "m:1: \"duration\" is not a time in seconds", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"id\":\"a b\"}", "m:1: the name 'a b' has a blank", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\",\"speaker\":\"a b\"}", "m:1: the speaker must be one name", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\"", "m:1: the line is not JSON", LIN_FORMAT},
        {"{\"audio_filepath\":\"a\\nb.wav\"}", "m:1: the object names no sound", LIN_FORMAT},
        {"{\"audio_filepath\":\"a.wav\"} x", "m:1: the line has extra text after its end", LIN_FORMAT},
        {"[{\"audio_filepath\":\"a.wav\"}]", "m:1: a line must hold one JSON object", LIN_FORMAT},
        {"{\"audio_filepath\":\"a\\u001b.wav\"}", "m:1: the line contains control characters", LIN_FORMAT},
        {"{\"id\":\"c\",\"tracks\":[]}", "m:1: the cut has no recording; only cuts of one recording can be read", LIN_FORMAT},
        {CUT("{\"sources\":[]}"), "m:1: the cut's recording must have one source", LIN_FORMAT},
        {CUT("{\"sources\":[{\"type\":\"url\",\"source\":\"http://x\"}]}"),
         "the source of the sound is not a file, but of type url", LIN_UNSUPPORTED},
        {CUT("{\"sources\":[{\"type\":\"command\",\"source\":\"x\"}]}"), "the sound of x comes from a command", LIN_UNSUPPORTED},
        {"{\"id\":\"c\",\"channel\":[0,1],\"recording\":" RECORDING "}", "m:1: the cut must have one channel", LIN_FORMAT},
        {"{\"channel\":0,\"recording\":" RECORDING "}", "m:1: a cut or supervision without \"id\"", LIN_FORMAT},
        {CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":1e9},{\"id\":\"b\"}]"),
         "m:1: \"start\" is not a time in seconds", LIN_FORMAT},
        {CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":\"1\"},{\"id\":\"b\"}]"),
         "m:1: \"start\" is not a time in seconds", LIN_FORMAT},
        {CUT(RECORDING ",\"supervisions\":[{\"id\":\"a\",\"start\":-13,\"duration\":2},{\"id\":\"b\"}]"),
         "m:1: a supervision ends before its recording begins", LIN_FORMAT},
        {"path\tsentence\n\tA\n", "m:2: the column \"path\" is empty", LIN_FORMAT},
        {"path\tsentence\na.mp3\t\xFF\n", "m:2: byte 0xFF at column 7 is not UTF-8 text", LIN_FORMAT},
        {"path\tsentence\n", "m: it lists no recordings", LIN_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FAILS(parse_manifest(cases[i].text, &plain, &err), cases[i].status, cases[i].message);
        ck_assert_ptr_null(dir);
    }
    const lin_datadir_options need = {.need_text = 1};
    FAILS(parse_manifest("{\"audio_filepath\":\"a.wav\"}", &need, &err), LIN_FORMAT, "m:1: a has no transcript");
    FAILS(parse_manifest("path\tsentence\na.mp3\t\n", &need, &err), LIN_FORMAT, "m:2: the column \"sentence\" is empty");
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
        if (cases[i].message) {
            FAILS(parse_manifest(cases[i].text, &plain, &err), LIN_FORMAT, cases[i].message);
            continue;
        }
        good(cases[i].text, &plain);
        ck_assert_int_eq(lin_datadir_count(dir), cases[i].n);
    }
}
END_TEST

START_TEST(files_are_loaded)
{
    static const char line[] = "{\"audio_filepath\":\"a.wav\",\"text\":\"A\"}\n", table[] = "path\tsentence\na.mp3\tA\n";
    const lin_datadir_options o = {.need_text = 1};
    const char *path = test_path("m.jsonl.gz");
    gzFile gz = gzopen(path, "wb");
    ck_assert_int_eq(gzputs(gz, line), (int)strlen(line));
    gzclose(gz);
    OK(lin_datadir_load(path, &o, &dir, &err));
    ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, test_path("a.wav"));
    drop();

    // Common Voice: the sound is in the folder clips beside the table, if there is one.
    path = test_file("train.tsv", table, strlen(table));
    for (int clips = 0; clips < 2; clips++) {
        if (clips) ck_assert_int_eq(mkdir(test_path("clips"), 0777), 0);
        OK(lin_datadir_load(path, &o, &dir, &err));
        ck_assert_str_eq(lin_datadir_at(dir, 0)->cut.path, test_path(clips ? "clips/a.mp3" : "a.mp3"));
        drop();
    }
    FAIL_EVERY_ALLOCATION_OF(dir, lin_datadir_load(path, &o, &dir, NULL), drop());
}
END_TEST

START_TEST(a_failed_allocation_is_an_error)
{
    FAIL_EVERY_ALLOCATION_OF(dir, parse("a a.wav\nb b.wav\n", "a A\nb B\n", "a s\nb t\n", 1, NULL), drop());
    const char *const files[] = {"r r.wav\n", "a A\n", "a s\n", "a r 0 1\n", "r r A\n"};
    FAIL_EVERY_ALLOCATION_OF(dir, parse_all(files, &(lin_datadir_options){0}, NULL), drop());
    put("wav.scp", "a audio/a.wav\n");
    put("text", "a A\n");
    put("list", "x y.wav\tA\n");
    for (int list = 0; list < 2; list++) {
        const char *path = test_path(list ? "list" : ".");
        const lin_datadir_options o = {.need_text = 1};
        FAIL_EVERY_ALLOCATION_OF(dir, lin_datadir_load(path, &o, &dir, NULL), drop());
    }
    static const char text[] = "{\"audio_filepath\":\"a.wav\",\"text\":\"A\",\"speaker\":\"s\"}\n" CUT(
        RECORDING ",\"supervisions\":[{\"id\":\"s1\",\"text\":\"A\"},{\"id\":\"s2\",\"speaker\":\"c\"}]");
    FAIL_EVERY_ALLOCATION_OF(dir, parse_manifest(text, &plain, NULL), drop());
}
END_TEST

TEST_MAIN_WITH(NULL, drop, "linnet/datadir", TEST(a_directory_is_read), TEST(text_and_speakers_may_be_missing),
               TEST(bad_directories_are_refused), TEST(nul_bytes_and_long_lines_are_refused), TEST(a_list_is_read),
               TEST(paths_are_relative_to_the_corpus), TEST(segments_and_channels_are_read), TEST(bad_segments_are_refused),
               TEST(many_names_are_found), TEST(json_lines_are_read), TEST(cuts_are_read), TEST(tables_are_read),
               TEST(bad_manifests_are_refused), TEST(lists_are_told_apart), TEST(files_are_loaded),
               TEST(a_failed_allocation_is_an_error))
