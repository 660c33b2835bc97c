// align/aligner.c on rows that the test makes: words, phones and TextGrids, times, goodness, what is reported; failing memory.
#include "align/aligner.h"

#include "base/memory.h"
#include "linnet/find.h"
#include "tests/lexicon/support.h"

enum { HZ = 50 }; // rows a second, as the test sets row_s

static lin_recognizer recognizer;
static lin_wording lexicon;
static lin_aligner *aligner;
static lin_alignment out;
static float *rows;

static void setup(void)
{
    const char *text = "hello HH AH L OW\nhello(2) HH EH L OW\nworld W ER L D\n";
    OK(lin_recognizer_open(&recognizer, "share/linnet/en/default.safetensors", "cpu", LIN_PRECISION_FP32, NULL, &err));
    lexicon = (lin_wording){.phones = recognizer.phones};
    OK(lin_dictionary_parse(text, strlen(text), "small", recognizer.phones, &lexicon.dictionary, &err));
    if (lin_find_open_rules(recognizer.phones, NULL, &lexicon.rules, &lexicon.lacks) == LIN_OK)
        lin_g2p_create(recognizer.phones, lexicon.dictionary, lexicon.rules, &lexicon.g2p, &lexicon.lacks);
}

static void teardown(void)
{
    lin_free(rows);
    lin_alignment_free(&out);
    lin_aligner_destroy(aligner);
    lin_wording_close(&lexicon);
    lin_recognizer_close(&recognizer);
}

// Four rows for each name, blanks for "_": probability 0.9, the rest shared by the others. Returns the number of rows.
static size_t make_rows(const char *names)
{
    const int V = recognizer.V;
    size_t n = 0;
    rows = lin_alloc((size_t)(200 * V), sizeof *rows);
    for (const char *at = names; *at; at += *at == ' ') {
        const size_t length = strcspn(at, " ");
        const int label = *at == '_' ? 0 : lin_phones_find(recognizer.phones, at, length);
        ck_assert_int_ge(label, 0);
        for (int t = 0; t < 4; t++, n++) {
            for (int v = 0; v < V; v++) rows[n * (size_t)V + (size_t)v] = (float)log(v == label ? 0.9 : 0.1 / (V - 1));
        }
        at += length;
    }
    ck_assert_uint_le(n, 200);
    return n;
}

static void create(int follow_sound)
{
    lin_aligner_options o = lin_aligner_options_default();
    o.row_s = 1.0 / HZ;
    o.follow_sound = follow_sound;
    o.rows_only = 1;
    OK(lin_aligner_create(&recognizer, &lexicon, &o, &aligner, &err));
}

static lin_aligner_input input_of(const char *text, lin_aligner_text kind, size_t n)
{
    return (lin_aligner_input){.id = "u", .kind = kind, .text = text, .n_text = strlen(text), .rows = rows, .n_rows = n};
}

static int phone(const char *name) { return lin_phones_find(recognizer.phones, name, strlen(name)); }

START_TEST(words_and_phones)
{
    const size_t n = make_rows("_ HH EH L OW _ W ER L D _");
    create(0);
    lin_aligner_input in = input_of("\xEF\xBB\xBFHello, [laughs] world", LIN_ALIGNER_WORDS, n);
    for (int again = 0; again < 2; again++) {
        OK(lin_aligner_align(aligner, &in, &out, &err));
        ck_assert_int_eq(out.n_results, 1);
        const lin_result *r = &out.results[0];
        ck_assert_str_eq(r->id, "u");
        ck_assert_int_eq(r->channel, 1);
        ck_assert_int_eq(r->n_words, 2);
        ck_assert_int_eq(r->n_phones, 8);
        ck_assert_int_eq(r->phones[1].label, phone("EH")); // the pronunciation that was said
        ck_assert_double_eq_tol(r->words[0].start_s, 4.0 / HZ, 1e-9);
        ck_assert_double_eq_tol(r->words[0].end_s, 20.0 / HZ, 1e-9);
        ck_assert_double_eq_tol(r->words[1].start_s, 24.0 / HZ, 1e-9);
        ck_assert_double_eq_tol(r->seconds, 44.0 / HZ, 1e-9);
        ck_assert_double_gt(r->phones[0].goodness, -0.5);
        ck_assert_int_eq(out.marks, 1);
        ck_assert_str_eq(out.first_mark, "[laughs]");
        char doubt[256];
        lin_alignment_doubt(&out, doubt, sizeof doubt);
        ck_assert_str_eq(doubt, "");
    }
    in = input_of("HH AH L OW W ER L D", LIN_ALIGNER_PHONES, n);
    OK(lin_aligner_align(aligner, &in, &out, &err));
    ck_assert_int_eq(out.results[0].has_words, 0);
    ck_assert_int_eq(out.results[0].n_phones, 8);
    ck_assert_int_eq(out.results[0].phones[1].heard, phone("EH"));
    ck_assert_double_lt(out.results[0].phones[1].goodness, -3);
    in = input_of("D D D D D D D D", LIN_ALIGNER_PHONES, n);
    OK(lin_aligner_align(aligner, &in, &out, &err));
    char doubt[256];
    lin_alignment_doubt(&out, doubt, sizeof doubt);
    HAS(doubt, "match the sound");
}
END_TEST

static const char grid[] = "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n0\n0.88\n<exists>\n2\n"
                           "\"IntervalTier\" \"anna - words\" 0 0.88 2\n0 0.44 \"hello\"\n0.44 0.88 \"\"\n"
                           "\"IntervalTier\" \"ben\" 0 0.88 3\n0 0.44 \"\"\n0.44 0.84 \"world\"\n0.84 0.88 \"hello\"\n";

// What align itself writes: intervals that touch within a row, words and phones.
START_TEST(textgrid_of_an_aligner)
{
    static const char *const grids[] = {
        "\"ooTextFile\"\n\"TextGrid\"\n0\n0.88\n<exists>\n1\n\"IntervalTier\" \"words\" 0 0.88 2\n"
        "0 0.47 \"hello\"\n0.47 0.88 \"world\"\n",
        "\"ooTextFile\"\n\"TextGrid\"\n0\n0.88\n<exists>\n1\n\"IntervalTier\" \"phones\" 0 0.88 8\n"
        "0 0.125 \"HH\"\n0.125 0.205 \"EH\"\n0.205 0.285 \"L\"\n0.285 0.47 \"OW\"\n"
        "0.47 0.53 \"W\"\n0.53 0.61 \"ER\"\n0.61 0.69 \"L\"\n0.69 0.88 \"D\"\n"};
    const size_t n = make_rows("_ HH EH L OW _ W ER L D _");
    create(0);
    for (int k = 0; k < 2; k++) {
        lin_aligner_input in = input_of(grids[k], LIN_ALIGNER_TEXTGRID, n);
        OK(lin_aligner_align(aligner, &in, &out, &err));
        ck_assert_msg(out.n_bad == 0, "%s", out.notes.n ? out.notes.data : "");
        ck_assert_int_eq(out.n_results, 1);
        const lin_result *r = &out.results[0];
        ck_assert_int_eq(r->has_words, k == 0);
        ck_assert_int_eq(r->n_phones, 8);
        ck_assert_int_eq(r->phones[1].label, phone("EH"));
        ck_assert_double_gt(r->phones[1].goodness, -0.5);
        for (int i = 1; i < r->n_phones; i++) ck_assert_double_ge(r->phones[i].start_s, r->phones[i - 1].end_s);
    }
}
END_TEST

#define TWO_WORDS(first, second)                                                                                                 \
    "\"ooTextFile\"\n\"TextGrid\"\n0\n1\n<exists>\n1\n\"IntervalTier\" \"words\" 0 1 2\n0.08 0.4 \"" first                       \
    "\"\n0.4 0.72 \"" second "\"\n"

// The network marks phones eight rows after they were said: the rows of an interval are looked for there. Words
// are judged together: one that does not fit is no doubt about the text, all of them are.
START_TEST(textgrid_of_a_late_network)
{
    static const char *const grids[] = {TWO_WORDS("hello", "world"), TWO_WORDS("world", "hello")};
    const size_t n = make_rows("_ _ _ HH EH L OW W ER L D _ _");
    float *frames = lin_calloc(2 * n * (size_t)recognizer.fbank.mel_bins, sizeof *frames);
    create(1);
    const double late_s = recognizer.delay_s;
    recognizer.delay_s = 8.0 / HZ;
    for (int k = 0; k < 2; k++) {
        lin_aligner_input in = input_of(grids[k], LIN_ALIGNER_TEXTGRID, n);
        in.frames = frames;
        in.n_frames = 2 * n;
        OK(lin_aligner_align(aligner, &in, &out, &err));
        ck_assert_int_eq(out.n_bad, 0);
        const lin_result *r = &out.results[0];
        char doubt[256];
        lin_alignment_doubt(&out, doubt, sizeof doubt);
        ck_assert_msg((doubt[0] == 0) == (k == 0), "%s", doubt);
        for (int i = 0; i < r->n_phones && k == 0; i++) ck_assert_double_gt(r->phones[i].goodness, -0.5);
        for (int i = 0; i < r->n_words; i++) {
            ck_assert_double_ge(r->words[i].start_s, i ? 0.4 - 1e-9 : 0.08 - 1e-9);
            ck_assert_double_le(r->words[i].end_s, i ? 0.72 + 1e-9 : 0.4 + 1e-9);
        }
    }
    recognizer.delay_s = late_s;
    lin_free(frames);
}
END_TEST

START_TEST(textgrid)
{
    const size_t n = make_rows("_ HH EH L OW _ W ER L D _");
    create(0);
    lin_aligner_input in = input_of(grid, LIN_ALIGNER_TEXTGRID, n);
    in.text_name = "x.TextGrid";
    OK(lin_aligner_align(aligner, &in, &out, &err));
    ck_assert_int_eq(out.n_results, 2);
    ck_assert_str_eq(out.results[0].id, "u-anna");
    ck_assert_str_eq(out.results[1].speaker, "ben");
    ck_assert_int_eq(out.results[1].channel, 1);
    ck_assert_int_eq(out.results[1].n_words, 1);
    ck_assert_double_eq_tol(out.results[1].words[0].start_s, 24.0 / HZ, 1e-9);
    ck_assert_int_eq(out.n_bad, 1); // two rows are too few for hello
    ck_assert_msg(strstr(out.notes.data, "x.TextGrid: 0.840 to 0.880 s: ") == out.notes.data, "%s", out.notes.data);
    in.text = "no TextGrid";
    in.n_text = strlen(in.text);
    REFUSED(lin_aligner_align(aligner, &in, &out, &err), LIN_FORMAT, "x.TextGrid");
}
END_TEST

START_TEST(what_cannot_be_aligned)
{
    const size_t n = make_rows("_ HH EH L OW _");
    create(0);
    lin_sound sound = {.path = "none.wav"};
    lin_aligner_input in = input_of("", LIN_ALIGNER_WORDS, n);
    in.text_name = "x.txt";
    REFUSED(lin_aligner_align(aligner, &in, &out, &err), LIN_INVALID, "x.txt: ");
    in = input_of("hello", LIN_ALIGNER_WORDS, 3);
    REFUSED(lin_aligner_align(aligner, &in, &out, &err), LIN_MISMATCH, "");
    in.n_rows = n;
    in.sound = &sound;
    REFUSED(lin_aligner_align(aligner, &in, &out, &err), LIN_INVALID, "takes rows, not sound");
    in.sound = NULL;
    rows[3] = NAN;
    REFUSED(lin_aligner_align(aligner, &in, &out, &err), LIN_NUMERIC, "");
}
END_TEST

// Whichever allocation fails, it is told and nothing is lost; the next alignment is as good as ever.
START_TEST(memory_runs_out)
{
    const size_t n = make_rows("_ HH EH L OW _ W ER L D _");
    lin_aligner_input in = input_of(grid, LIN_ALIGNER_TEXTGRID, n);
    long failed = 0;
    for (unsigned long k = 1;; k++) {
        create(0);
        lin_error why = {0};
        lin_memory_fail_at(k);
        const lin_status status = lin_aligner_align(aligner, &in, &out, &why);
        lin_memory_fail_at(0);
        ck_assert_msg(status == LIN_OK || status == LIN_NO_MEMORY, "allocation %lu: %s", k, why.message);
        if (status != LIN_OK) failed++;
        OK(lin_aligner_align(aligner, &in, &out, &err));
        ck_assert_int_eq(out.n_results, 2);
        if (status == LIN_OK) break;
        lin_alignment_free(&out);
        lin_aligner_destroy(aligner);
    }
    ck_assert_int_gt(failed, 10);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "aligner", TEST(words_and_phones), TEST(textgrid), TEST(textgrid_of_an_aligner),
               TEST(textgrid_of_a_late_network), TEST(what_cannot_be_aligned), TEST(memory_runs_out))
