// linnet.h: models, options, decoders, whole sounds, results, arrays, alignment, threads.
#include <pthread.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/phones.h"
#include "model/model.h"
#include "tests/linnet/api_sound.h"
#include "tests/linnet/word_networks.h"

/* ---- models and options ---------------------------------------------------------------------------------------------------- */

START_TEST(versions_and_names)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", LINNET_VERSION_MAJOR, LINNET_VERSION_MINOR, LINNET_VERSION_PATCH);
    ck_assert_str_eq(linnet_version(), LINNET_VERSION);
    ck_assert_str_eq(version, LINNET_VERSION);
    ck_assert_str_eq(linnet_status_name(LINNET_OK), "ok");
    ck_assert_str_eq(linnet_status_name(LINNET_STOPPED), "stopped");
    ck_assert_str_eq(linnet_status_name((linnet_status)99), "unknown");
    linnet_free(NULL);
}
END_TEST

static char *read_model(size_t *n)
{
    char *bytes;
    ck_assert_int_eq(lin_text_read(MODEL, &bytes, n, NULL), LIN_OK);
    return bytes;
}

START_TEST(models)
{
    linnet_model *nothing = (linnet_model *)&nothing;
    require_fails(LINNET_INVALID, linnet_model_load("", NULL, &nothing, &err)); // not the default one
    ck_assert_ptr_null(nothing);
    linnet_model *m, *other;
    size_t n;
    char *bytes = read_model(&n);
    require_ok(linnet_model_load_memory(bytes, n, NULL, &m, &err));
    const linnet_model_info *info = linnet_model_describe(m), *same = linnet_model_describe(model);
    ck_assert_uint_eq(info->fingerprint, same->fingerprint);
    ck_assert_str_eq(info->phones[0], "<blank>");
    ck_assert_str_eq(info->phones[1], "AA");
    ck_assert_str_eq(info->ipa[1], "ɑ");
    ck_assert_int_eq(info->n_labels, 40);
    ck_assert_int_eq(info->n_features, 40);
    ck_assert_int_eq(info->sample_hz, 16000);
    ck_assert_int_eq(info->streams, 1);
    ck_assert_double_eq(info->frame_s, 0.01);
    ck_assert_double_ge(info->row_s, 0.01);
    ck_assert_double_gt(info->delay_s, info->row_s);
    ck_assert(*info->name && *info->license && *info->provenance == '{');
    linnet_model_destroy(m);
    require_fails(LINNET_FORMAT, linnet_model_load_memory(bytes, n / 2, NULL, &other, &err));
    ck_assert_ptr_null(other);
    bytes[n - 1] ^= 1;
    require_fails(LINNET_FORMAT, linnet_model_load_memory(bytes, n, NULL, &other, &err));
    require_fails(LINNET_FORMAT, linnet_model_load_memory(NULL, 0, NULL, &other, &err));
    lin_free(bytes);
    require_says(LINNET_IO, "missing.safetensors", linnet_model_load("missing.safetensors", NULL, &other, &err));
    ck_assert_int_eq(linnet_model_load("missing.safetensors", NULL, &other, NULL), LINNET_IO);
    require_ok(linnet_model_load(NULL, NULL, &other, &err)); // the one of the source tree
    linnet_model_destroy(other);
    linnet_model_destroy(NULL);
}
END_TEST

START_TEST(a_folder_comes_before_the_installed_files)
{
    char longer[8192];
    static const char lexicon[] = "hello HH AH L OW\n";
    linnet_model *m;
    linnet_decoder *d;
    ck_assert_int_eq(mkdir(test_path("en"), 0777), 0);
    test_file("en/added.dict", lexicon, sizeof lexicon - 1);
    const char *path = test_file("en/default.safetensors", "no model", 8);
    require_ok(linnet_set_data_folder(test_path(""), &err));
    require_says(LINNET_FORMAT, path, linnet_model_load(NULL, NULL, &m, &err));
    remove(path); // what the folder lacks is looked for in the other places
    require_ok(linnet_model_load(NULL, NULL, &m, &err));
    DEFAULTS(linnet_decoder_options, o);
    o.words = o.no_lm = 1;
    o.lexicon = "added.dict";
    require_ok(linnet_decoder_create(m, &o, &d, &err));
    ck_assert_int_eq(linnet_decoder_vocabulary(d), 1);
    linnet_decoder_destroy(d);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    require_fails(LINNET_INVALID, linnet_set_data_folder(longer, &err));
    require_ok(linnet_set_data_folder(NULL, &err));
    require_says(LINNET_INVALID, "there is no language 'tlh': installed are de, en and es", linnet_set_language("tlh", &err));
    require_ok(linnet_set_language("de", &err)); // of which there are numbers only
    o.lexicon = NULL;
    require_fails(LINNET_IO, linnet_decoder_create(m, &o, &d, &err));
    require_ok(linnet_set_language(NULL, &err));
    require_ok(linnet_decoder_create(m, &o, &d, &err));
    linnet_decoder_destroy(d);
    ck_assert_str_eq(linnet_model_describe(m)->language, "en");
    o.lexicon = "added.dict";
    require_fails(LINNET_IO, linnet_decoder_create(m, &o, &d, &err));
    linnet_model_destroy(m);
}
END_TEST

START_TEST(options_can_grow)
{
    struct {
        linnet_model_options o;
        int later;
    } newer;
    linnet_model_options o;
    linnet_model *m;
    memset(&o, 0, sizeof o);
    require_fails(LINNET_INVALID, linnet_model_load(MODEL, &o, &m, &err));
    linnet_model_options_init(&o, sizeof o);
    o.precision = (linnet_precision)7;
    require_fails(LINNET_INVALID, linnet_model_load(MODEL, &o, &m, &err));
    linnet_model_options_init(&o, sizeof o);
    o.device = "abacus";
    require_fails(LINNET_INVALID, linnet_model_load(MODEL, &o, &m, &err));
    // Of a later version: fine, as long as what is new is not used.
    memset(&newer, 0xff, sizeof newer);
    linnet_model_options_init(&newer.o, sizeof newer);
    ck_assert_int_eq(newer.later, 0);
    require_ok(linnet_model_load(MODEL, &newer.o, &m, &err));
    linnet_model_destroy(m);
    newer.later = 1;
    require_fails(LINNET_UNSUPPORTED, linnet_model_load(MODEL, &newer.o, &m, &err));
    // Of an earlier one: the rest has its defaults.
    linnet_sound s = in_memory();
    linnet_result *r;
    s.size = offsetof(linnet_sound, start_s);
    s.end_s = -1; // not looked at
    require_ok(linnet_decode(model, &s, NULL, &r, &err));
    linnet_result_destroy(r);
}
END_TEST

// The file of the model, and its bytes in memory, in products of eight bits: the same results.
START_TEST(eight_bits)
{
    linnet_model *m[2];
    linnet_result *r[2];
    const linnet_sound s = in_memory();
    size_t n;
    char *bytes = read_model(&n);
    DEFAULTS(linnet_model_options, o);
    o.precision = LINNET_INT8;
    require_ok(linnet_model_load(MODEL, &o, &m[0], &err));
    require_ok(linnet_model_load_memory(bytes, n, &o, &m[1], &err));
    lin_free(bytes);
    for (int i = 0; i < 2; i++) require_ok(linnet_decode(m[i], &s, NULL, &r[i], &err));
    ck_assert_int_gt(linnet_result_phones(r[0]), 0);
    same_results(r[0], r[1]);
    for (int i = 0; i < 2; i++) {
        linnet_result_destroy(r[i]);
        linnet_model_destroy(m[i]);
    }
}
END_TEST

static void count_warning(void *context, const char *text)
{
    ck_assert(*text && !strchr(text, '\n'));
    ++*(int *)context;
}

START_TEST(warnings_go_to_the_callback)
{
    linnet_model *m;
    linnet_decoder *decoder;
    int warnings = 0;
    static const char lexicon[] = "hello HH AH L OW\nthis line has no phones of the model\n";
    const char *path = test_file("lexicon", lexicon, sizeof lexicon - 1);
    DEFAULTS(linnet_model_options, o);
    o.warning = count_warning;
    o.warning_context = &warnings;
    require_ok(linnet_model_load(MODEL, &o, &m, &err));
    DEFAULTS(linnet_decoder_options, d);
    d.words = d.no_lm = 1;
    d.lexicon = path;
    require_ok(linnet_decoder_create(m, &d, &decoder, &err));
    ck_assert_int_eq(warnings, 1);
    ck_assert_int_eq(linnet_decoder_vocabulary(decoder), 1);
    linnet_sound s = in_memory();
    float *rows;
    size_t n;
    s.n_samples = 1; // too short, as a file that breaks off may be
    require_ok(linnet_features(m, &s, &rows, &n, &err));
    linnet_free(rows);
    ck_assert_int_eq(warnings, 2);
    require_ok(linnet_posteriors(m, &s, &rows, &n, &err));
    linnet_free(rows);
    ck_assert_int_eq(warnings, 3);
    linnet_model_destroy(m); // the decoder keeps it
    linnet_decoder_destroy(decoder);
}
END_TEST

/* ---- decoders -------------------------------------------------------------------------------------------------------------- */

START_TEST(decoders)
{
    linnet_decoder *d = make_decoder(0, 0, 1);
    ck_assert_str_eq(linnet_decoder_kind(d), "greedy");
    ck_assert_int_eq(linnet_decoder_vocabulary(d), 0);
    linnet_decoder_destroy(d);
    d = make_decoder(0, 8, 1);
    ck_assert_str_eq(linnet_decoder_kind(d), "beam");
    linnet_decoder_destroy(d);
    linnet_decoder_destroy(NULL);
    DEFAULTS(linnet_decoder_options, o);
    const linnet_phrase phrases[] = {{"hello world", 4}, {"...", 4}};
    o.phrases = phrases;
    o.n_phrases = 1;
    o.lexicon = LEXICON;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    ck_assert_str_eq(linnet_decoder_kind(d), "beam");
    linnet_decoder_destroy(d);
    o.n_phrases = 2;
    require_says(LINNET_INVALID, "...", linnet_decoder_create(model, &o, &d, &err));
    o.n_phrases = 0;
    o.grammar = "hello (world\n";
    require_says(LINNET_FORMAT, "the grammar:1: a ')' is missing", linnet_decoder_create(model, &o, &d, &err));
    o.grammar = "";
    require_says(LINNET_FORMAT, "the grammar has no phrase", linnet_decoder_create(model, &o, &d, &err));
    o.grammar = "hello (world | cat)\n";
    o.grammar_confidence = 2;
    require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    o.grammar_confidence = 0.5;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    ck_assert_str_eq(linnet_decoder_kind(d), "words");
    ck_assert_int_eq(linnet_decoder_vocabulary(d), 3);
    linnet_decoder_destroy(d);
    o.rescore = "words";
    require_says(LINNET_INVALID, "a grammar takes no", linnet_decoder_create(model, &o, &d, &err));
    o.grammar = o.rescore = NULL;
    o.n_keywords = 1;
    const struct {
        const char *keyword, *message;
    } refused[] = {{"hey linnet=2", "threshold"}, {"hey=", "threshold"}, {"...", "no word"}, {"", "no word"}, {NULL, "no text"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        o.keywords = &refused[i].keyword;
        require_says(LINNET_INVALID, refused[i].message, linnet_decoder_create(model, &o, &d, &err));
    }
    o.keywords = NULL;
    require_says(LINNET_INVALID, "keyword 0 has no text", linnet_decoder_create(model, &o, &d, &err));
    o.n_keywords = 0;
    o.phrases = NULL;
    o.n_phrases = 1;
    require_says(LINNET_INVALID, "phrase 0 has no text", linnet_decoder_create(model, &o, &d, &err));
    o.n_phrases = 0;
    const struct {
        size_t at;
        double value;
    } bad[] = {{offsetof(linnet_decoder_options, unknown), 1}, {offsetof(linnet_decoder_options, lm_weight), -1},
               {offsetof(linnet_decoder_options, bonus), 1e6}, {offsetof(linnet_decoder_options, beam_score), 1e6},
               {offsetof(linnet_decoder_options, blank_penalty), 1e6}, {offsetof(linnet_decoder_options, settle), -1},
               {offsetof(linnet_decoder_options, show), 1.5}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        linnet_decoder_options_init(&o, sizeof o);
        memcpy((char *)&o + bad[i].at, &bad[i].value, sizeof bad[i].value);
        require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    }
    linnet_decoder_options_init(&o, sizeof o);
    o.n_best = 0;
    require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    o.n_best = 1;
    o.words = 1;
    o.no_lm = 1;
    o.lexicon = LEXICON;
    o.add_lexicon = "missing.txt";
    require_says(LINNET_IO, "missing.txt", linnet_decoder_create(model, &o, &d, &err));
    o.add_lexicon = NULL;
    o.rescore = "missing.network";
    require_says(LINNET_IO, "missing.network", linnet_decoder_create(model, &o, &d, &err));
    o.words = o.no_lm = 0;
    o.lexicon = NULL;
    require_says(LINNET_IO, "missing.network", linnet_decoder_create(model, &o, &d, &err)); // of phonemes
    for (int i = 0; i < 4; i++) {
        linnet_decoder_options_init(&o, sizeof o);
        if (i < 2) o.rescore_n = i ? 257 : 1;
        else o.rescore_weight = i == 2 ? 1.5 : (double)NAN;
        require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    }
    linnet_decoder_options_init(&o, sizeof o);
    o.lm = "missing.lm";
    require_fails(LINNET_IO, linnet_decoder_create(model, &o, &d, &err));
    ck_assert_ptr_null(d);
    require_fails(LINNET_INVALID, linnet_decoder_create(NULL, NULL, &d, &err));
}
END_TEST

/* ---- whole sounds ---------------------------------------------------------------------------------------------------------- */

START_TEST(results)
{
    linnet_result *r, *copy;
    const linnet_sound s = in_memory();
    char want[4096] = "", *text;
    size_t n;
    require_ok(linnet_decode(model, &s, NULL, &r, &err));
    const int phones = linnet_result_phones(r);
    ck_assert_int_gt(phones, 5);
    for (int i = 0; i < phones; i++) {
        const linnet_phone *p = linnet_result_phone(r, i);
        ck_assert_str_eq(p->name, linnet_model_describe(model)->phones[p->label]);
        ck_assert_str_eq(p->ipa, linnet_model_describe(model)->ipa[p->label]);
        ck_assert(p->start_s >= 0 && p->end_s > p->start_s && p->end_s <= SECONDS + 0.1);
        ck_assert(p->confidence > 0 && p->confidence <= 1 && isnan(p->goodness) && !p->said && p->stress == -1);
        snprintf(want + strlen(want), sizeof want - strlen(want), "%s%s", i ? " " : "", p->name);
    }
    ck_assert_str_eq(linnet_result_text(r), want);
    ck_assert_str_eq(linnet_result_text(r), want);
    ck_assert_ptr_null(linnet_result_phone(r, -1));
    ck_assert_ptr_null(linnet_result_phone(r, phones));
    ck_assert_ptr_null(linnet_result_word(r, 0));
    ck_assert_ptr_null(linnet_result_alternative(r, 0));
    const linnet_result_info *info = linnet_result_describe(r);
    ck_assert(info->seconds == SECONDS && !info->has_words && !info->incomplete && !*info->warning && isnan(info->fit));
    require_ok(linnet_result_copy(r, &copy, &err));
    same_results(r, copy);
    linnet_result_destroy(r);
    ck_assert_str_eq(linnet_result_text(copy), want); // lives on
    for (int i = 0; linnet_format_name(i); i++) {
        require_ok(linnet_result_format(copy, linnet_format_name(i), NULL, &text, &n, &err));
        ck_assert_uint_eq(strlen(text), n);
        linnet_free(text);
    }
    ck_assert_ptr_null(linnet_format_name(-1));
    DEFAULTS(linnet_format_options, o);
    o.id = "me";
    o.with_id = o.ipa = 1;
    require_ok(linnet_result_format(copy, "text", &o, &text, NULL, &err));
    ck_assert(strncmp(text, "me ", 3) == 0);
    linnet_free(text);
    o.words = 1;
    require_fails(LINNET_INVALID, linnet_result_format(copy, "text", &o, &text, NULL, &err));
    require_says(LINNET_INVALID, "textgrid", linnet_result_format(copy, "papyrus", NULL, &text, NULL, &err));
    require_fails(LINNET_INVALID, linnet_result_format(copy, NULL, NULL, &text, NULL, &err));
    o.words = 0;
    o.id = "two\nlines";
    require_fails(LINNET_INVALID, linnet_result_format(copy, "ctm", &o, &text, NULL, &err)); // in one
    require_fails(LINNET_INVALID, linnet_result_format(NULL, "text", NULL, &text, NULL, &err));
    ck_assert_ptr_null(text);
    linnet_result_destroy(copy);
    require_fails(LINNET_INVALID, linnet_result_copy(NULL, &copy, &err));
    ck_assert_ptr_null(copy);
    linnet_result_destroy(NULL);
}
END_TEST

START_TEST(words_and_alternatives)
{
    linnet_decoder *d = make_decoder(1, 32, 3);
    linnet_result *r, *copy;
    const linnet_sound s = in_memory();
    ck_assert_str_eq(linnet_decoder_kind(d), "words");
    ck_assert_int_gt(linnet_decoder_vocabulary(d), 10000);
    require_ok(linnet_decode(model, &s, d, &r, &err));
    ck_assert_int_eq(linnet_result_describe(r)->has_words, 1);
    ck_assert_int_gt(linnet_result_words(r), 0);
    ck_assert_int_ge(linnet_result_alternatives(r), 2);
    ck_assert_ptr_null(linnet_result_alternative(r, linnet_result_alternatives(r)));
    for (int i = 0; i < linnet_result_words(r); i++) {
        const linnet_word *w = linnet_result_word(r, i);
        ck_assert(*w->text && w->n_phones > 0 && w->first_phone + w->n_phones <= linnet_result_phones(r));
        ck_assert_double_eq(w->start_s, linnet_result_phone(r, w->first_phone)->start_s);
        ck_assert_int_eq(w->known, *w->text != '[');
        HAS(linnet_result_text(r), w->text);
    }
    linnet_result *best = linnet_result_alternative(r, 0), *next = linnet_result_alternative(r, 1);
    ck_assert_str_eq(linnet_result_text(best), linnet_result_text(r));
    ck_assert_str_ne(linnet_result_readable(next), linnet_result_readable(r));
    ck_assert_double_le(linnet_result_describe(next)->score, linnet_result_describe(best)->score);
    require_ok(linnet_result_copy(r, &copy, &err));
    same_results(r, copy);
    linnet_decoder_destroy(d);
    linnet_result_destroy(r);
    linnet_result_destroy(copy);
}
END_TEST

static linnet_result *decode_with(const linnet_decoder_options *o)
{
    linnet_decoder *d;
    linnet_result *r;
    const linnet_sound s = in_memory();
    require_ok(linnet_decoder_create(model, o, &d, &err));
    require_ok(linnet_decode(model, &s, d, &r, &err));
    linnet_decoder_destroy(d);
    return r;
}

// With a weight of 0 nothing changes; else another alternative may be the best. What a second pass does: test_rescore.c.
START_TEST(a_second_pass)
{
    const char *network = test_path("network");
    write_word_network(network, lin_pieces_characters, LIN_PIECES_FIRST);
    DEFAULTS(linnet_decoder_options, o);
    o.words = 1;
    o.beam = 32;
    o.n_best = 8;
    linnet_result *first = decode_with(&o);
    o.rescore = network;
    o.rescore_n = 8;
    o.rescore_weight = 0;
    linnet_result *same = decode_with(&o);
    o.rescore_weight = 0.8;
    linnet_result *second = decode_with(&o);
    same_results(first, same);
    ck_assert_int_eq(linnet_result_alternatives(second), linnet_result_alternatives(first));
    ck_assert_double_ne(linnet_result_describe(second)->language, linnet_result_describe(first)->language);
    linnet_result_destroy(first);
    linnet_result_destroy(same);
    linnet_result_destroy(second);
}
END_TEST

START_TEST(words_outside_the_lexicon)
{
    const linnet_sound s = in_memory();
    linnet_decoder *d;
    linnet_result *r;
    char *text;
    size_t n;
    int unknown = 0;
    const char *lexicon = test_file("small.dict", "ZEBRA  Z IY1 B R AH0\n", 21);
    DEFAULTS(linnet_decoder_options, o);
    o.words = 1;
    o.lexicon = lexicon;
    o.no_lm = 1;
    o.unknown = 0;
    o.bonus = 2;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    require_ok(linnet_decode(model, &s, d, &r, &err));
    for (int i = 0; i < linnet_result_words(r); i++) unknown += !linnet_result_word(r, i)->known;
    ck_assert_int_ge(unknown, 2);
    require_ok(linnet_result_format(r, "text", NULL, &text, &n, &err)); // which spells them by itself
    ck_assert_int_eq(text[n - 1], '\n');
    text[n - 1] = 0;
    ck_assert_str_eq(linnet_result_text(r), text);
    linnet_free(text);
    linnet_result_destroy(r);
    linnet_decoder_destroy(d);
    const char *added = test_file("names.txt", "YAK  Y AE1 K\nzebras\n", 20);
    o.add_lexicon = added;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    ck_assert_int_eq(linnet_decoder_vocabulary(d), 3);
    linnet_decoder_destroy(d);
    o.g2p = "missing.g2p"; // for zebras
    require_says(LINNET_IO, "missing.g2p", linnet_decoder_create(model, &o, &d, &err));
    linnet_aligner *aligner;
    DEFAULTS(linnet_aligner_options, a);
    a.lexicon = lexicon;
    a.add_lexicon = added;
    a.g2p = "missing.g2p";
    require_fails(LINNET_IO, linnet_aligner_create(model, &a, &aligner, &err));
    a.g2p = NULL;
    require_ok(linnet_aligner_create(model, &a, &aligner, &err));
    linnet_aligner_destroy(aligner);
}
END_TEST

static int stop_at_once(void *context, double seconds, double duration)
{
    ck_assert(seconds >= 0 && duration == SECONDS);
    return ++*(int *)context == 1;
}

START_TEST(arrays)
{
    linnet_sound s = in_memory();
    const linnet_model_info *info = linnet_model_describe(model);
    float *frames, *rows, *again;
    size_t n_frames, n_rows, n;
    int calls = 0;
    linnet_result *r, *of_rows;
    require_ok(linnet_features(model, &s, &frames, &n_frames, &err));
    ck_assert_uint_eq(n_frames, 1 + (N - 400) / 160);
    require_ok(linnet_posteriors(model, &s, &rows, &n_rows, &err));
    ck_assert_uint_eq(n_rows, (n_frames + 2) / 3);
    for (size_t i = 0; i < n_rows; i++) {
        double sum = 0;
        for (int v = 0; v < info->n_labels; v++) sum += exp((double)rows[i * (size_t)info->n_labels + (size_t)v]);
        ck_assert_double_eq_tol(sum, 1, 1e-4);
    }
    require_ok(linnet_decode(model, &s, NULL, &r, &err));
    require_ok(linnet_decode_rows(model, rows, n_rows, NULL, &of_rows, &err));
    ck_assert_str_eq(linnet_result_text(r), linnet_result_text(of_rows));
    linnet_result_destroy(of_rows);
    require_ok(linnet_decode_rows(model, NULL, 0, NULL, &of_rows, &err));
    ck_assert_str_eq(linnet_result_text(of_rows), "");
    linnet_result_destroy(of_rows);
    rows[2 * info->n_labels + 1] = NAN;
    require_fails(LINNET_NUMERIC, linnet_decode_rows(model, rows, n_rows, NULL, &of_rows, &err));
    require_fails(LINNET_INVALID, linnet_decode_rows(model, NULL, 3, NULL, &of_rows, &err));
    // A part has the frames of that part, and times of the whole.
    s.start_s = 2.5;
    require_ok(linnet_features(model, &s, &again, &n, &err));
    ck_assert_uint_eq(n, 1 + (N / 2 - 400) / 160);
    // those of the same samples alone: the running level begins with them
    linnet_sound alone = s;
    float *frames_alone;
    size_t n_alone;
    alone.start_s = 0;
    alone.samples += N / 2;
    alone.n_samples -= N / 2;
    require_ok(linnet_features(model, &alone, &frames_alone, &n_alone, &err));
    ck_assert_uint_eq(n_alone, n);
    test_same_f32("features of a part", again, frames_alone, 40 * (n - 1));
    linnet_free(frames_alone);
    linnet_result_destroy(r);
    linnet_free(again);
    require_ok(linnet_decode(model, &s, NULL, &r, &err));
    ck_assert_double_ge(linnet_result_phone(r, 0)->start_s, 2.5);
    linnet_result_destroy(r);
    s.start_s = 0;
    s.progress = stop_at_once;
    s.context = &calls;
    require_fails(LINNET_STOPPED, linnet_posteriors(model, &s, &again, &n, &err));
    ck_assert_ptr_null(again);
    calls = 0;
    require_fails(LINNET_STOPPED, linnet_decode(model, &s, NULL, &r, &err));
    calls = 0;
    require_fails(LINNET_STOPPED, linnet_features(model, &s, &again, &n, &err));
    s.progress = NULL;
    s.start_s = 1000;
    require_fails(LINNET_INVALID, linnet_features(model, &s, &again, &n, &err));
    ck_assert_msg(strstr(err.message, "sound in memory: ") == err.message, "%s", err.message);
    linnet_free(frames);
    linnet_free(rows);
}
END_TEST

START_TEST(bad_sounds)
{
    linnet_sound s = in_memory();
    linnet_result *r;
    require_fails(LINNET_IO, linnet_decode_file(model, "missing.wav", NULL, &r, &err));
    ck_assert_ptr_null(r);
    require_fails(LINNET_FORMAT, linnet_decode_file(model, "Makefile", NULL, &r, &err));
    require_fails(LINNET_INVALID, linnet_decode_file(model, NULL, NULL, &r, &err));
    require_fails(LINNET_INVALID, linnet_decode(NULL, &s, NULL, &r, &err));
    require_fails(LINNET_INVALID, linnet_decode(model, NULL, NULL, &r, &err));
    s.rate_hz = 100;
    require_fails(LINNET_UNSUPPORTED, linnet_decode(model, &s, NULL, &r, &err));
    linnet_sound bad[5];
    for (int i = 0; i < 5; i++) bad[i] = in_memory();
    bad[0].channel = 1;
    bad[1].channel = -2;
    bad[2].start_s = bad[2].end_s = 1;
    bad[3].start_s = 2 * SECONDS;
    bad[4].n_samples = (size_t)-1;
    for (int i = 0; i < 5; i++) require_fails(LINNET_INVALID, linnet_decode(model, &bad[i], NULL, &r, &err));
    sound[100] = NAN;
    s = in_memory();
    require_fails(LINNET_NUMERIC, linnet_decode(model, &s, NULL, &r, &err));
    sound[100] = 0;
    s.n_samples = 10; // less than a window
    require_ok(linnet_decode(model, &s, NULL, &r, &err));
    ck_assert_int_eq(linnet_result_phones(r), 0);
    HAS(linnet_result_describe(r)->warning, "window");
    linnet_result_destroy(r);
}
END_TEST

START_TEST(model_of_whole_utterances)
{
    lin_config config = lin_config_default(40);
    const lin_features features = lin_features_default();
    lin_model *made;
    linnet_model *m;
    linnet_session *session;
    linnet_engine *engine;
    linnet_result *r;
    float *rows;
    size_t n;
    config.causal = 0;
    config.layers = 1;
    ck_assert_int_eq(lin_model_create(&config, &features, lin_phones_default, 1, &made, NULL), LIN_OK);
    const char *path = test_path("m.safetensors");
    ck_assert_int_eq(lin_model_save(made, path, LIN_F32, NULL), LIN_OK);
    lin_model_destroy(made);
    require_ok(linnet_model_load(path, NULL, &m, &err));
    ck_assert_int_eq(linnet_model_describe(m)->streams, 0);
    require_fails(LINNET_UNSUPPORTED, linnet_session_create(m, NULL, &session, &err));
    require_fails(LINNET_UNSUPPORTED, linnet_engine_create(m, NULL, &engine, &err));
    const linnet_sound s = in_memory();
    require_ok(linnet_posteriors(m, &s, &rows, &n, &err));
    ck_assert_uint_eq(n, 1 + (N - 400) / 160);
    linnet_free(rows);
    require_ok(linnet_decode(m, &s, NULL, &r, &err));
    ck_assert_int_gt(linnet_result_phones(r), 0);
    linnet_decoder *other = make_decoder(0, 4, 1); // of another model
    linnet_result *none;
    require_fails(LINNET_MISMATCH, linnet_decode(m, &s, other, &none, &err));
    linnet_decoder_destroy(other);
    linnet_model_destroy(m);
    linnet_result_destroy(r);
}
END_TEST

/* ---- alignment ------------------------------------------------------------------------------------------------------------- */

START_TEST(alignment)
{
    linnet_aligner *a, *phones;
    linnet_result *r;
    linnet_sound s = in_memory();
    DEFAULTS(linnet_aligner_options, o);
    o.lexicon = LEXICON;
    require_ok(linnet_aligner_create(model, &o, &a, &err));
    require_ok(linnet_align(a, &s, "oh yeah", &r, &err));
    ck_assert_int_eq(linnet_result_words(r), 2);
    ck_assert_str_eq(linnet_result_text(r), "oh yeah");
    ck_assert_int_ge(linnet_result_phones(r), 3);
    for (int i = 0; i < linnet_result_phones(r); i++) ck_assert(linnet_result_phone(r, i)->goodness <= 0);
    double sum = 0; // the mean of the probabilities
    for (int i = 0; i < linnet_result_phones(r); i++) sum += exp((double)linnet_result_phone(r, i)->goodness);
    ck_assert_double_eq_tol(linnet_result_describe(r)->goodness, log(sum / linnet_result_phones(r)), 1e-5);
    const linnet_word *oh = linnet_result_word(r, 0);
    ck_assert(oh->n_phones == 1 && oh->goodness == linnet_result_phone(r, oh->first_phone)->goodness);
    ck_assert(linnet_result_describe(r)->fit < -4 && strstr(linnet_result_describe(r)->warning, "match"));
    linnet_result_destroy(r);
    require_fails(LINNET_INVALID, linnet_align(a, &s, "...", &r, &err));
    require_fails(LINNET_INVALID, linnet_align(a, &s, NULL, &r, &err));
    require_fails(LINNET_FORMAT, linnet_align(a, &s, "C#", &r, &err));
    int calls = 0;
    s.progress = stop_at_once;
    s.context = &calls;
    require_fails(LINNET_STOPPED, linnet_align(a, &s, "oh yeah", &r, &err));
    s.progress = NULL;
    s.n_samples = RATE / 10;
    require_fails(LINNET_MISMATCH, linnet_align(a, &s, "this text is longer than the sound", &r, &err));
    ck_assert_ptr_null(r);
    linnet_aligner_options_init(&o, sizeof o);
    o.phonemes = 1;
    require_ok(linnet_aligner_create(model, &o, &phones, &err));
    s = in_memory();
    require_ok(linnet_align(phones, &s, "OW Y AE", &r, &err));
    ck_assert_int_eq(linnet_result_phones(r), 3);
    ck_assert_str_eq(linnet_result_phone(r, 0)->name, "OW");
    linnet_result_destroy(r);
    linnet_aligner_destroy(phones);
    linnet_aligner_destroy(a);
    linnet_aligner_destroy(NULL);
    o.beam = 0;
    require_fails(LINNET_INVALID, linnet_aligner_create(model, &o, &a, &err));
    linnet_aligner_options_init(&o, sizeof o);
    o.lexicon = "missing.dict";
    require_fails(LINNET_IO, linnet_aligner_create(model, &o, &a, &err));
    require_fails(LINNET_INVALID, linnet_aligner_create(NULL, NULL, &a, &err));
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------------------------------------- */

typedef struct worker {
    linnet_decoder *decoder;
    char *json;
} worker;

static void *decode_in_thread(void *context)
{
    worker *w = context;
    linnet_result *r = NULL;
    const linnet_sound s = in_memory();
    if (linnet_decode(model, &s, w->decoder, &r, NULL) == LINNET_OK) linnet_result_format(r, "json", NULL, &w->json, NULL, NULL);
    linnet_result_destroy(r);
    return NULL;
}

START_TEST(threads_share_model_and_decoder)
{
    linnet_decoder *d = make_decoder(0, 16, 1);
    worker w[4] = {{d, NULL}, {d, NULL}, {d, NULL}, {NULL, NULL}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, decode_in_thread, &w[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) ck_assert_ptr_nonnull(w[i].json);
    ck_assert_str_eq(w[0].json, w[1].json);
    ck_assert_str_eq(w[0].json, w[2].json);
    for (int i = 0; i < 4; i++) linnet_free(w[i].json);
    linnet_decoder_destroy(d);
}
END_TEST

// Who speaks, by a network of random weights in a folder of its own: two speakers, each with a vector of length 1.
START_TEST(speakers)
{
    lin_model *like, *voices;
    linnet_decoder *d;
    linnet_result *r, *copy;
    const linnet_sound s = in_memory();
    lin_config c = lin_config_default(3);
    c.layers = c.heads = 2;
    c.head_width = c.voice = 8;
    c.mel_bins = 40;
    c.causal = 0;
    ck_assert_int_eq(lin_model_load(MODEL, &like, &err), LIN_OK);
    ck_assert_int_eq(lin_model_create(&c, &like->features, NULL, 3, &voices, &err), LIN_OK);
    const char *path = test_path("voices.safetensors");
    ck_assert_int_eq(lin_model_save(voices, path, LIN_F32, &err), LIN_OK);
    lin_model_destroy(voices);
    lin_model_destroy(like);
    require_ok(linnet_set_data_folder(test_path(""), &err));
    DEFAULTS(linnet_decoder_options, o);
    o.speakers = 11;
    require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    o.speakers = 2;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    require_ok(linnet_decode(model, &s, d, &r, &err));
    require_ok(linnet_result_copy(r, &copy, &err));
    int heard[3] = {0}, n;
    for (int i = 0; i < linnet_result_phones(copy); i++) {
        const int speaker = linnet_result_phone(copy, i)->speaker;
        ck_assert(speaker == 1 || speaker == 2);
        ck_assert_int_eq(speaker, linnet_result_phone(r, i)->speaker);
        heard[speaker]++;
    }
    ck_assert_int_gt(heard[1], 0);
    for (int k = 1; k <= 2; k++) {
        const float *voice = linnet_result_voice(copy, k, &n);
        double norm = 0;
        if (!heard[k]) continue;
        ck_assert_int_eq(n, 8);
        for (int i = 0; i < n; i++) norm += (double)(voice[i] * voice[i]);
        ck_assert_double_eq_tol(norm, 1, 1e-5);
    }
    ck_assert_ptr_null(linnet_result_voice(r, 0, &n));
    ck_assert_ptr_null(linnet_result_voice(r, 3, &n));
    ck_assert_int_eq(n, 0);
    linnet_result_destroy(copy);
    linnet_result_destroy(r);
    linnet_decoder_destroy(d);
    require_ok(linnet_set_data_folder(NULL, &err));
}
END_TEST

TEST_MAIN_WITH(api_setup, api_teardown, "linnet.h", TEST(versions_and_names), TEST(models),
               TEST(a_folder_comes_before_the_installed_files), TEST(options_can_grow), TEST(warnings_go_to_the_callback),
               TEST(eight_bits), TEST(decoders),
               TEST(results), TEST(words_and_alternatives), TEST(a_second_pass), TEST(words_outside_the_lexicon), TEST(arrays),
               TEST(bad_sounds), TEST(model_of_whole_utterances), TEST(alignment), TEST(speakers),
               TEST(threads_share_model_and_decoder))
