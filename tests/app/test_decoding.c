// linnet/decoding.c, utterances.c: searches out of files, with every allocation failing in turn; the decoder of one stream,
// parts of it, its alternatives; that nothing is allocated where results flow (app/results.c). linnet/stream.c: states of all
// versions, and endpoints in them.
#include "app/shared_options.h"

#include "app/results.h"
#include "base/memory.h"
#include "decoder/search.h"
#include "frontend/source.h"
#include "linnet/stream.h"
#include "tests/lexicon/support.h"

enum { V = 40 };

static const char dict_text[] = "ab AA B\nba B AA\nbad B AA D\ntwo T UW\ntoo T UW\n";
static const char arpa_text[] = "\\data\\\nngram 1=7\n\n\\1-grams:\n-99 <s>\n"
                                "-1 </s>\n-1 ab\n-1 ba\n-1.2 bad\n-0.9 two\n-1.1 too\n\n\\end\\\n";
static const char phones_text[] = "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 AA\n-1 B\n\n\\end\\\n";

static const char *dict, *arpa, *phones_arpa, *list, *second;

static lin_phones *phones;

static void files(void)
{
    OK(lin_phones_create(NULL, &phones, &err));
    dict = test_file("dict", dict_text, strlen(dict_text));
    arpa = test_file("arpa", arpa_text, strlen(arpa_text));
    phones_arpa = test_file("phones.arpa", phones_text, strlen(phones_text));
    list = test_file("list", "bad\nab ba\t2.5\n", 14);
}

static void no_files(void)
{
    lin_phones_destroy(phones);
}

// Values as the command line would give them.
typedef struct values {
    lin_decoding_values decoding;
} values;

static const lin_option rows[] = {LIN_DECODING_ROWS(values, decoding), {.type = LIN_OPTION_END}};

static const lin_command command = {.name = "test", .operands = "", .options = rows, .values_size = sizeof(values)};

static lin_parsed parsed;
static values given;

// The options of one line, in which %d, %a, %p, %l and %o are the files.
static void parse(const char *line)
{
    static char text[4096];
    const char *const paths[] = {['a'] = arpa, ['d'] = dict, ['l'] = list, ['o'] = second, ['p'] = phones_arpa};
    char *argv[32], *end = text;
    int argc = 0;
    text[0] = '\0';
    for (const char *c = line; *c; c++) {
        const char *file = *c == '%' ? paths[(int)*++c] : NULL;
        end += file ? sprintf(end, "%s", file) : sprintf(end, "%c", *c);
    }
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    OK(lin_options_begin(&command, &given, &parsed, &err));
    OK(lin_options_command_line(&parsed, argc, argv, &err));
    ck_assert_int_eq(lin_decoding_check(&parsed, &given.decoding, 0), 0);
}

static void open_line(lin_decoding *d, double delay_s, const char *line)
{
    parse(line);
    OK(lin_decoding_open(d, &given.decoding, phones, 0.03, delay_s, NULL, &err));
}

static void close_line(lin_decoding *d)
{
    lin_decoding_close(d);
    lin_options_free(&parsed);
}

// Rows of 0.9 for each letter of a script: '.' blank, a AA, b B, d D, t T, u UW; two rows each.
static int script(const char *text, float *logp)
{
    int n = 0;
    for (const char *c = text; *c; c++) {
        const int label = *c == 'a' ? 1 : *c == 'b' ? 7 : *c == 'd' ? 9 : *c == 't' ? 31 : *c == 'u' ? 34 : 0;
        for (int twice = 0; twice < 2; twice++, n++) {
            for (int v = 0; v < V; v++) logp[n * V + v] = (float)log(v == label ? 0.9 : 0.1 / (V - 1));
        }
    }
    return n;
}

// What --help says is taken where an option is not given is what the searches take.
static void says(const char *name, double beam, double words)
{
    const int row = lin_options_find(&command, name);
    char both[64], one[64];
    snprintf(both, sizeof both, "%g, with --words %g", beam, words);
    snprintf(one, sizeof one, "not given, %g", beam);
    ck_assert_msg(row >= 0 && strstr(rows[row].help, beam == words ? one : both), "--%s: %s", name, beam == words ? one : both);
}

START_TEST(help_tells_the_defaults)
{
    const lin_beam_options b = lin_beam_options_default();
    const lin_words_options w = lin_words_options_default();
    says("beam", b.width, w.width);
    says("beam-score", b.score, w.score);
    says("beam-labels", b.labels, w.labels);
    says("skip-blank", b.blank, w.blank);
    says("lm-weight", b.lm_weight, w.lm_weight);
    says("bonus", b.bonus, b.bonus);
    says("unknown", w.unknown, w.unknown);
    says("blank-penalty", w.blank_penalty, w.blank_penalty);
    says("settle", LIN_SETTLE, LIN_SETTLE);
    says("show", LIN_SHOW, LIN_SHOW);
    char text[64];
    snprintf(text, sizeof text, "with --lm %g, with --words %g", LIN_BEAM_LM_BONUS, w.bonus);
    HAS(rows[lin_options_find(&command, "bonus")].help, text);
}
END_TEST

START_TEST(searches_by_their_options)
{
    static const char *const lines[] = {"", "--beam 8 --lm %p --phrase bad --lexicon %d",
                                        "--words --lexicon %d --lm %a --context %l --phrase zbd"};
    uint64_t ids[3];
    for (int i = 0; i < 3; i++) {
        lin_decoding d;
        open_line(&d, 0, lines[i]);
        ck_assert_int_eq((int)d.search.kind, i);
        ck_assert(!d.context.phones == (i != 1) && !d.context.words == (i != 2));
        ids[i] = d.search.id;
        lin_decoding_close(&d);
        if (i > 0) {
            FAIL_EVERY_ALLOCATION(lin_decoding_open(&d, &given.decoding, phones, 0.03, 0, NULL, NULL), lin_decoding_close(&d));
        }
        lin_options_free(&parsed);
    }
    ck_assert(ids[0] == 0 && ids[1] != 0 && ids[2] != 0 && ids[1] != ids[2]);
}
END_TEST

// Phrases of words that the lexicon has need no letter-to-sound rules, which are of English phones.
START_TEST(phrases_of_other_phones)
{
    static const char *const lines[] = {"--beam 8 --phrase ab --lexicon %d", "--words --no-lm --phrase ab --lexicon %d",
                                        "--beam 8 --phrase abc --lexicon %d", "--words --no-lm --phrase abc --lexicon %d"};
    test_write_file(dict, "ab X Y\nba Y X\n", 14);
    lin_phones_destroy(phones);
    OK(lin_phones_create("<blank> X Y", &phones, &err));
    for (int i = 0; i < 4; i++) {
        lin_decoding d;
        lin_error err = {0};
        parse(lines[i]);
        const lin_status status = lin_decoding_open(&d, &given.decoding, phones, 0.03, 0, NULL, &err);
        ck_assert_msg((status == LIN_OK) == (i < 2), "%s", err.message);
        if (i >= 2) ck_assert_msg(strstr(err.message, "abc") && strstr(err.message, "not in the "), "%s", err.message);
        if (i < 2) close_line(&d);
        else lin_options_free(&parsed);
    }
}
END_TEST

// Everything that a state depends on is in the id; phrases, which may change, are not.
START_TEST(the_id_knows_options_lexicon_and_language_model)
{
    static const char *const lines[8] = {"--words --lexicon %d --lm %a", "--words --lexicon %d --lm %a --phrase bad",
                                         "--words --lexicon %o --lm %a", "--words --lexicon %d --no-lm",
                                         "--words --lexicon %d --lm %a --tune bonus=2", "--words --lexicon %d --lm %a --beam 77",
                                         "--words --lexicon %d --lm %a --no-unknown", "--words --lexicon %d --lm %a --n-best 4"};
    second = test_file("other", "ab AA B\nba B AA\nbad B AA D\ntwo T UW\n", 36);
    uint64_t ids[8];
    for (int i = 0; i < 8; i++) {
        lin_decoding d;
        open_line(&d, 0, lines[i]);
        ids[i] = d.search.id;
        close_line(&d);
    }
    ck_assert(ids[0] == ids[1]);
    for (int i = 2; i < 8; i++) {
        for (int j = 0; j < i; j++) test_require(j == 0 && i == 1 ? 1 : ids[i] != ids[j], "%d and %d", i, j);
    }
}
END_TEST

START_TEST(the_id_knows_a_language_model_of_phones)
{
    uint64_t ids[3];
    second = test_file("other", phones_text, strlen(phones_text));
    FILE *file = fopen(second, "r+b"); // another probability
    ck_assert(file && fseek(file, (long)(strstr(phones_text, "-1 B") - phones_text), SEEK_SET) == 0 && fputs("-2", file) >= 0);
    fclose(file);
    for (int i = 0; i < 3; i++) {
        lin_decoding d;
        open_line(&d, 0, i == 1 ? "--lm %o" : "--lm %p");
        ids[i] = d.search.id;
        close_line(&d);
    }
    ck_assert(ids[0] == ids[2] && ids[0] != ids[1]);
}
END_TEST

// The results of rows that come `step` at a time, with the times that the emission delay gives.
static void decode_late(const lin_decoding *decoding, const float *logp, int T, int step, lin_result *r)
{
    lin_row_decoder d = {0};
    OK(lin_row_decoder_create(&d, decoding, &err));
    OK(lin_result_begin(r, "x", NULL, 1, &err));
    for (int t = 0; t < T; t += step) {
        OK(lin_row_decoder_push(&d, logp + t * V, step < T - t ? step : T - t, &err));
        if (step < T) OK(lin_row_decoder_take(&d, r, &err));
    }
    OK(lin_row_decoder_finish(&d, r, &err));
    lin_row_decoder_free(&d);
}

// A phone that ends within the emission delay has a length all the same, and those behind it begin no sooner than it ends. Where
// the first phone is later, times are earlier by the delay, but not before 0.
START_TEST(phones_within_the_emission_delay)
{
    static float logp[400 * V];
    static const char *const lines[] = {"", "--beam 8", "--n-best 2", "--words --lexicon %d --lm %a",
                                        "--words --n-best 2 --lexicon %d --lm %a"};
    static const char *const scripts[] = {"bad...tu..ab..", ".bad...tu..ab..", "bbad...tu..ab.."};
    // Where b, a and d begin, and d ends.
    static const double want[3][4] = {{0, 0.03, 0.06, 0.09}, {0.03, 0.06, 0.09, 0.12}, {0, 0.04, 0.1, 0.16}};
    for (int i = 0; i < 15; i++) {
        const int kind = i / 3, T = script(scripts[i % 3], logp);
        lin_decoding decoding;
        open_line(&decoding, i % 3 == 2 ? 0.08 : 0.125, lines[kind]);
        lin_result whole = {0}, steps = {0};
        decode_late(&decoding, logp, T, T, &whole);
        decode_late(&decoding, logp, T, decoding.n_best > 1 ? T : 1, &steps);
        ck_assert_int_eq(whole.n_phones, 7);
        ck_assert_int_eq(steps.n_phones, 7);
        for (int p = 0; p < 7; p++) {
            const lin_result_phone *got = &whole.phones[p];
            test_require(got->end_s > got->start_s + 0.01 && got->start_s >= (p ? got[-1].end_s : 0), "%s: phone %d at %g to %g",
                         lines[kind], p, got->start_s, got->end_s);
            ck_assert(got->start_s == steps.phones[p].start_s && got->end_s == steps.phones[p].end_s);
            if (kind > 2 || p > 2) continue; // words end sooner
            ck_assert_double_eq_tol(got->start_s, want[i % 3][p], 1e-9);
            ck_assert_double_eq_tol(got->end_s, want[i % 3][p + 1], 1e-9);
        }
        for (int w = 0; w < whole.n_words; w++) {
            const lin_result_word *got = &whole.words[w];
            ck_assert(got->start_s == whole.phones[got->first_phone].start_s);
            ck_assert(got->end_s == whole.phones[got->first_phone + got->n_phones - 1].end_s);
        }
        lin_result_free(&whole);
        lin_result_free(&steps);
        close_line(&decoding);
    }
}
END_TEST

START_TEST(alternatives_begin_with_the_result_and_hold_all_of_it)
{
    static float logp[400 * V];
    const int T = script(".bad...tu....tu...ab..", logp);
    for (int kind = 1; kind < 3; kind++) {
        lin_decoding decoding;
        lin_row_decoder d = {0};
        lin_result r = {0};
        open_line(&decoding, 0, kind == 2 ? "--n-best 3 --words --lexicon %d --lm %a" : "--n-best 3");
        OK(lin_row_decoder_create(&d, &decoding, &err));
        OK(lin_result_begin(&r, "x", NULL, 1, &err));
        OK(lin_row_decoder_push(&d, logp, T, &err));
        OK(lin_row_decoder_finish(&d, &r, &err));
        ck_assert_int_eq(r.n_alternatives, 3);
        ck_assert_int_eq(r.n_phones, 9);
        ck_assert_int_eq(r.alternatives[0].n_phones, 9);
        ck_assert(r.alternatives[0].score == r.score);
        for (int i = 1; i < 3; i++) {
            ck_assert(r.alternatives[i].score <= r.alternatives[i - 1].score);
            ck_assert_int_ge(r.alternatives[i].n_phones, 8);
        }
        if (kind == 2) ck_assert_str_eq(lin_result_word_text(&r, 1), "two");
        lin_result_free(&r);
        lin_row_decoder_free(&d);
        close_line(&decoding);
    }
}
END_TEST

// What a live stream does, step after step: after two minutes all has the room it needs.
START_TEST(nothing_is_allocated_while_results_flow)
{
    static float logp[400 * V];
    const int T = script(".bad...tu....tu...ab..", logp);
    static const char *const formats[] = {"text", "ctm"};
    for (int test = 0; test < 6; test++) {
        const int kind = test / 2;
        lin_decoding decoding;
        lin_row_decoder d = {0};
        lin_result r = {0};
        lin_results out;
        const lin_results_values where = {.format = formats[test % 2], .output = "/dev/null"};
        open_line(&decoding, 0, kind == 2 ? "--words --lexicon %d --lm %a" : kind ? "--beam 8" : "");
        ck_assert_int_eq(lin_results_check(&out, NULL, &where), 0);
        ck_assert_int_eq(lin_results_can_flow(&out), 1);
        OK(lin_results_open(&out, phones, 0, &err));
        OK(lin_row_decoder_create(&d, &decoding, &err));
        OK(lin_result_begin(&r, "x", NULL, 1, &err));
        unsigned long before = 0;
        for (int minute = 0; minute < 6; minute++) {
            if (minute == 2) before = lin_memory_count(); // times have as many digits as later
            for (int t = 0; t < 60 * 33; t += 4) {
                OK(lin_row_decoder_push(&d, logp + t % (T - 4) * V, 4, &err));
                OK(lin_row_decoder_take(&d, &r, &err));
                OK(lin_results_flow(&out, &r, &err));
                lin_result_clear(&r);
            }
        }
        test_require(lin_memory_count() == before, "%lu: kind %d, %s", lin_memory_count() - before, kind, formats[test % 2]);
        ck_assert(out.told);
        OK(lin_row_decoder_finish(&d, &r, &err));
        OK(lin_results_flow_end(&out, &r, &err));
        OK(lin_results_close(&out, LIN_OK, 0, &err));
        lin_results_free(&out);
        lin_result_free(&r);
        lin_row_decoder_free(&d);
        close_line(&decoding);
    }
}
END_TEST

/* ---- states ---------------------------------------------------------------------------------------------------------------- */

static const lin_state_about about = {.model = 5, .rate_hz = 16000, .channels = 2, .channel = LIN_CHANNEL_EACH, .lanes = 2,
                                      .samples = 100, .frames = 9, .rows = 3, .row_seconds = 0.03};

START_TEST(endpoints_are_part_of_a_state)
{
    const lin_state_sizes sizes = {.front = 13, .decoder = sizeof(lin_greedy), .image = 30};
    lin_reset_options resets = {.endpoints = 1, .rules = lin_endpoint_default(), .resets = 1, .from_s = 60};
    lin_state_about a = about;
    lin_state s = {0}, read = {0};
    lin_endpoint e[2], got;
    float row[V];
    a.resets = 1;
    a.resets_from_s = 60;
    OK(lin_state_begin(&s, &a, &sizes, &err));
    for (int i = 0; i < V; i++) row[i] = i == 7 ? 0 : -20;
    for (int l = 0; l < 2; l++) {
        lin_endpoint_reset(&e[l], &resets.rules, 0.03);
        for (int i = 0; i < 3 + l; i++) {
            row[0] = i == 2 ? 0 : -20;
            lin_endpoint_push(&e[l], row, -3 * i);
        }
        memset(lin_state_image(&s, l), 'a' + l, 30);
        lin_state_lane_of(&s, l)->endpoint = e[l];
    }
    lin_state_seal(&s);
    OK(lin_state_parse(s.bytes, s.n, "x", &read, &err));
    for (int l = 0; l < 2; l++) {
        ck_assert_int_eq(((unsigned char *)lin_state_image(&read, l))[29], 'a' + l);
        lin_endpoint_reset(&got, &resets.rules, 0.03);
        OK(lin_state_get_endpoint(&read, l, &resets, &got, &err));
        ck_assert(got.silent_s == e[l].silent_s && got.spoken_s == e[l].spoken_s && got.length_s == e[l].length_s &&
                  got.quietest_db == e[l].quietest_db);
        ck_assert(got.length_s > 0.08 && isfinite(got.quietest_db));
    }
    resets.rules.after_s = 0.7;
    FAILS(lin_state_get_endpoint(&read, 0, &resets, &got, &err), LIN_MISMATCH, "saved with other endpoint rules");
    resets.from_s = 0;
    FAILS(lin_state_get_endpoint(&read, 0, &resets, &got, &err), LIN_MISMATCH, "saved with --reset auto");
    // Damaged, and the checksum is right all the same.
    e[0].silent_s = NAN;
    resets.rules.after_s = 0.8;
    resets.from_s = 60;
    lin_state_lane_of(&read, 0)->endpoint = e[0];
    FAILS(lin_state_get_endpoint(&read, 0, &resets, &got, &err), LIN_FORMAT, "the state of an endpoint contradicts itself");
    lin_state_free(&s);
    lin_state_free(&read);
}
END_TEST

START_TEST(decoders_of_any_size_and_others_are_told_apart)
{
    lin_beam *beam, *wide;
    lin_beam_options o = lin_beam_options_default();
    OK(lin_beam_create(V, NULL, NULL, &o, &beam, &err));
    o.width *= 2;
    OK(lin_beam_create(V, NULL, NULL, &o, &wide, &err));
    const lin_search search = lin_search_beam(beam, V, 7), same_id = lin_search_beam(wide, V, 7);
    const lin_search other = lin_search_beam(beam, V, 8), greedy = lin_search_greedy(V);
    const size_t bytes = lin_search_bytes(&search);
    lin_state_about a = about;
    a.kind = (int32_t)search.kind;
    a.search = search.id;
    const lin_state_sizes sizes = {.front = 1, .decoder = bytes, .image = 3};
    lin_state s = {0}, read = {0};
    unsigned char *state = lin_alloc(bytes, 1), *room = lin_alloc(lin_search_bytes(&same_id), 1);
    static float logp[100 * V];
    lin_path path = {0};
    OK(lin_state_begin(&s, &a, &sizes, &err));
    for (int l = 0; l < 2; l++) {
        lin_search_reset(&search, state, 0, 0);
        OK(lin_search_push(&search, state, NULL, logp, script(l ? "ab" : "tu..", logp), &path, &err));
        memcpy(lin_state_decoder(&s, l), state, bytes);
    }
    lin_state_seal(&s);
    OK(lin_state_parse(s.bytes, s.n, "x", &read, &err));
    OK(lin_state_get_decoder(&read, 1, &search, room, &err));
    ck_assert(memcmp(room, state, bytes) == 0);
    FAILS(lin_state_get_decoder(&read, 0, &greedy, room, &err), LIN_MISMATCH, "saved by beam search, this is greedy search");
    FAILS(lin_state_get_decoder(&read, 0, &other, room, &err), LIN_MISMATCH, "saved by another beam search");
    FAILS(lin_state_get_decoder(&read, 0, &same_id, room, &err), LIN_MISMATCH, "saved by another beam search");
    memset(lin_state_decoder(&read, 0), 0xEE, bytes);
    ck_assert_int_ne(lin_state_get_decoder(&read, 0, &search, room, NULL), LIN_OK);
    lin_free(state);
    lin_free(room);
    lin_path_free(&path);
    lin_state_free(&s);
    lin_state_free(&read);
    lin_beam_destroy(beam);
    lin_beam_destroy(wide);
}
END_TEST

TEST_MAIN_WITH(files, no_files, "decoding", TEST(help_tells_the_defaults), TEST(searches_by_their_options),
               TEST(phrases_of_other_phones), TEST(the_id_knows_options_lexicon_and_language_model),
               TEST(the_id_knows_a_language_model_of_phones), TEST(phones_within_the_emission_delay),
               TEST(alternatives_begin_with_the_result_and_hold_all_of_it), TEST(nothing_is_allocated_while_results_flow),
               TEST(endpoints_are_part_of_a_state), TEST(decoders_of_any_size_and_others_are_told_apart))
