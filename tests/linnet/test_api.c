// linnet.h: every function, its errors, threads, failing allocations, and what it allocates while sound streams in.
#include "linnet/linnet.h"

#include <pthread.h>

#include "base/memory.h"
#include "lexicon/phones.h"
#include "model/model_file.h"
#include "tests/support.h"

#define MODEL "share/linnet/default.safetensors"
#define LEXICON "share/linnet/english.dict.gz"

enum { RATE = 16000, SECONDS = 5, N = SECONDS * RATE };

static linnet_model *model;
static float sound[N];
static int16_t sound_16[N];
static linnet_error err;

#define require_ok(call)                                                                                        \
    do {                                                                                                        \
        const linnet_status done_ = (call);                                                                     \
        ck_assert_msg(done_ == LINNET_OK, "%s: %s: %s", #call, linnet_status_name(done_), err.message);          \
    } while (0)

// The status, and a message of one line.
#define require_fails(wanted, call)                                                                             \
    do {                                                                                                        \
        const linnet_status done_ = (call);                                                                     \
        ck_assert_msg(done_ == (wanted), "%s: %s: %s", #call, linnet_status_name(done_), err.message);           \
        ck_assert_int_eq(err.status, (wanted));                                                                 \
        ck_assert_msg(err.message[0] && !strchr(err.message, '\n'), "the message is '%s'", err.message);         \
    } while (0)

// Vowels for 1.6 s, then faint noise for 0.9 s, twice.
static void setup(void)
{
    for (int t = 0; t < N; t++) {
        const int within = t % (N / 2), vowel = within / 2000 * 7 + 2 * t / N;
        const double at = (double)within / RATE, pitch = 110 + 10 * (vowel % 5);
        const double f1 = 300 + 90 * (vowel % 6), f2 = 900 + 230 * (vowel % 7);
        double buzz = 0;
        for (int h = 1; h * pitch < 3500 && within < 25600; h++) {
            const double hz = h * pitch;
            buzz += (exp(-pow((hz - f1) / 120, 2)) + 0.6 * exp(-pow((hz - f2) / 160, 2)) + 0.01) * sin(6.283185307179586 * hz * at);
        }
        sound_16[t] = (int16_t)lrint(3000 * buzz * (vowel % 4 != 0) + 130 * (lin_random_uniform(5, (uint64_t)t) - 0.5));
        sound[t] = (float)sound_16[t] / 32768;
    }
    require_ok(linnet_model_load(MODEL, NULL, &model, &err));
}

static void teardown(void)
{
    linnet_model_destroy(model);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static linnet_sound in_memory(void)
{
    linnet_sound s;
    linnet_sound_init(&s, sizeof s);
    s.samples = sound;
    s.n_samples = N;
    return s;
}

static linnet_decoder *make_decoder(int words, int beam, int n_best)
{
    linnet_decoder_options o;
    linnet_decoder *d;
    linnet_decoder_options_init(&o, sizeof o);
    o.words = words;
    o.beam = beam;
    o.n_best = n_best;
    if (words) o.lexicon = LEXICON;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    return d;
}

static char *json_of(const linnet_result *r)
{
    char *text;
    require_ok(linnet_result_format(r, "json", NULL, &text, NULL, &err));
    return text;
}

static void same_results(const linnet_result *a, const linnet_result *b)
{
    char *x = json_of(a), *y = json_of(b);
    ck_assert_str_eq(x, y);
    linnet_free(x);
    linnet_free(y);
}

// ---- models and options -----------------------------------------------------------------------------------------------------------

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

START_TEST(models)
{
    linnet_model *m, *other;
    char *bytes = NULL;
    long n;
    FILE *f = fopen(MODEL, "rb");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    n = ftell(f);
    rewind(f);
    bytes = malloc((size_t)n);
    ck_assert_uint_eq(fread(bytes, 1, (size_t)n, f), (size_t)n);
    fclose(f);
    require_ok(linnet_model_load_memory(bytes, (size_t)n, NULL, &m, &err));
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
    require_fails(LINNET_FORMAT, linnet_model_load_memory(bytes, (size_t)n / 2, NULL, &other, &err));
    ck_assert_ptr_null(other);
    bytes[n / 2] ^= 1;
    require_fails(LINNET_FORMAT, linnet_model_load_memory(bytes, (size_t)n, NULL, &other, &err));
    require_fails(LINNET_FORMAT, linnet_model_load_memory(NULL, 0, NULL, &other, &err));
    free(bytes);
    require_fails(LINNET_IO, linnet_model_load("missing.safetensors", NULL, &other, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "missing.safetensors"));
    ck_assert_int_eq(linnet_model_load("missing.safetensors", NULL, &other, NULL), LINNET_IO);
    require_ok(linnet_model_load(NULL, NULL, &other, &err)); // the one of the source tree
    linnet_model_destroy(other);
    linnet_model_destroy(NULL);
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

static void count_warning(void *context, const char *text)
{
    ck_assert(*text && !strchr(text, '\n'));
    ++*(int *)context;
}

START_TEST(warnings_go_to_the_callback)
{
    linnet_model_options o;
    linnet_decoder_options d;
    linnet_model *m;
    linnet_decoder *decoder;
    int warnings = 0;
    char folder[256], path[300];
    static const char lexicon[] = "hello HH AH L OW\nthis line has no phones of the model\n";
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/lexicon", folder);
    test_write_file(path, lexicon, sizeof lexicon - 1);
    linnet_model_options_init(&o, sizeof o);
    o.warning = count_warning;
    o.warning_context = &warnings;
    require_ok(linnet_model_load(MODEL, &o, &m, &err));
    linnet_decoder_options_init(&d, sizeof d);
    d.words = d.no_lm = 1;
    d.lexicon = path;
    require_ok(linnet_decoder_create(m, &d, &decoder, &err));
    ck_assert_int_eq(warnings, 1);
    ck_assert_int_eq(linnet_decoder_vocabulary(decoder), 1);
    linnet_model_destroy(m); // the decoder keeps it
    linnet_decoder_destroy(decoder);
    test_folder_remove(folder);
}
END_TEST

// ---- decoders ---------------------------------------------------------------------------------------------------------------------

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
    linnet_decoder_options o;
    linnet_decoder_options_init(&o, sizeof o);
    const linnet_phrase phrases[] = {{"hello world", 4}, {"...", 4}};
    o.phrases = phrases;
    o.n_phrases = 1;
    o.lexicon = LEXICON;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    ck_assert_str_eq(linnet_decoder_kind(d), "beam");
    linnet_decoder_destroy(d);
    o.n_phrases = 2;
    require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "..."));
    const struct {
        size_t at;
        double value;
    } bad[] = {{offsetof(linnet_decoder_options, unknown), 1}, {offsetof(linnet_decoder_options, lm_weight), -1},
               {offsetof(linnet_decoder_options, bonus), 1e6}, {offsetof(linnet_decoder_options, beam_score), 1e6}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        linnet_decoder_options_init(&o, sizeof o);
        memcpy((char *)&o + bad[i].at, &bad[i].value, sizeof bad[i].value);
        require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    }
    linnet_decoder_options_init(&o, sizeof o);
    o.n_best = 0;
    require_fails(LINNET_INVALID, linnet_decoder_create(model, &o, &d, &err));
    o.n_best = 1;
    o.lm = "missing.lm";
    require_fails(LINNET_IO, linnet_decoder_create(model, &o, &d, &err));
    ck_assert_ptr_null(d);
    require_fails(LINNET_INVALID, linnet_decoder_create(NULL, NULL, &d, &err));
}
END_TEST

// ---- whole sounds -----------------------------------------------------------------------------------------------------------------

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
    linnet_format_options o;
    linnet_format_options_init(&o, sizeof o);
    o.id = "me";
    o.with_id = o.ipa = 1;
    require_ok(linnet_result_format(copy, "text", &o, &text, NULL, &err));
    ck_assert(strncmp(text, "me ", 3) == 0);
    linnet_free(text);
    o.words = 1;
    require_fails(LINNET_INVALID, linnet_result_format(copy, "text", &o, &text, NULL, &err));
    require_fails(LINNET_INVALID, linnet_result_format(copy, "papyrus", NULL, &text, NULL, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "textgrid"));
    require_fails(LINNET_INVALID, linnet_result_format(copy, NULL, NULL, &text, NULL, &err));
    linnet_result_destroy(copy);
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
    int unknown = 0;
    for (int i = 0; i < linnet_result_words(r); i++) {
        const linnet_word *w = linnet_result_word(r, i);
        ck_assert(*w->text && w->n_phones > 0 && w->first_phone + w->n_phones <= linnet_result_phones(r));
        ck_assert_double_eq(w->start_s, linnet_result_phone(r, w->first_phone)->start_s);
        ck_assert_int_eq(w->known, *w->text != '[');
        unknown += !w->known;
        ck_assert_ptr_nonnull(strstr(linnet_result_text(r), w->text));
    }
    const linnet_result *best = linnet_result_alternative(r, 0), *next = linnet_result_alternative(r, 1);
    ck_assert_int_eq(linnet_result_words(best), linnet_result_words(r));
    ck_assert_double_le(linnet_result_describe(next)->score, linnet_result_describe(best)->score);
    require_ok(linnet_result_copy(r, &copy, &err));
    same_results(r, copy);
    linnet_decoder_destroy(d);
    linnet_result_destroy(r);
    linnet_result_destroy(copy);
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
    test_same_f32("features of a part", again, frames + 250 * 40, 40 * (n - 1));
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
    s = in_memory();
    s.channel = 1;
    require_fails(LINNET_INVALID, linnet_decode(model, &s, NULL, &r, &err));
    s.channel = -2;
    require_fails(LINNET_INVALID, linnet_decode(model, &s, NULL, &r, &err));
    s = in_memory();
    s.start_s = s.end_s = 1;
    require_fails(LINNET_INVALID, linnet_decode(model, &s, NULL, &r, &err));
    s = in_memory();
    s.start_s = 2 * SECONDS;
    require_fails(LINNET_INVALID, linnet_decode(model, &s, NULL, &r, &err));
    sound[100] = NAN;
    s = in_memory();
    require_fails(LINNET_NUMERIC, linnet_decode(model, &s, NULL, &r, &err));
    sound[100] = 0;
    s.n_samples = 10; // less than a window
    require_ok(linnet_decode(model, &s, NULL, &r, &err));
    ck_assert_int_eq(linnet_result_phones(r), 0);
    ck_assert_ptr_nonnull(strstr(linnet_result_describe(r)->warning, "window"));
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
    lin_error why;
    char folder[256], path[300];
    float *rows;
    size_t n;
    config.causal = 0;
    config.layers = 1;
    ck_assert_int_eq(lin_model_create(&config, &features, LIN_PHONES_DEFAULT, 1, &made, &why), LIN_OK);
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/m.safetensors", folder);
    ck_assert_int_eq(lin_model_save(made, path, LIN_F32, &why), LIN_OK);
    lin_model_destroy(made);
    require_ok(linnet_model_load(path, NULL, &m, &err));
    test_folder_remove(folder);
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

// ---- sessions ---------------------------------------------------------------------------------------------------------------------

typedef struct transcript {
    char text[4096]; // of utterances that ended, a line each
    int views, ended, provisional;
    linnet_end last;
} transcript;

static void drain(linnet_session *s, transcript *t)
{
    const linnet_utterance *u;
    while ((u = linnet_session_next(s)) != NULL) {
        t->views++;
        t->provisional += linnet_result_phones(u->provisional);
        ck_assert_double_le(u->start_s, u->end_s);
        if (u->end == LINNET_GROWS) continue;
        ck_assert_int_eq(u->number, ++t->ended);
        ck_assert_int_eq(linnet_result_phones(u->provisional), 0);
        snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s\n", linnet_result_text(u->settled));
        t->last = u->end;
    }
    ck_assert_ptr_null(linnet_session_next(s));
}

static linnet_session *make_session(linnet_decoder *d, int can_save)
{
    linnet_session_options o;
    linnet_session *s;
    linnet_session_options_init(&o, sizeof o);
    o.decoder = d;
    o.can_save = can_save;
    o.silence_after_s = 0.4;
    require_ok(linnet_session_create(model, &o, &s, &err));
    return s;
}

// From sample `from` on, in pieces of `piece`, asking for results after each.
static void talk(linnet_session *s, size_t from, size_t piece, transcript *t)
{
    for (size_t at = from; at < N; at += piece) {
        require_ok(linnet_session_push(s, sound + at, N - at < piece ? N - at : piece, &err));
        drain(s, t);
    }
    require_ok(linnet_session_finish(s, &err));
    drain(s, t);
}

START_TEST(sessions)
{
    linnet_session *s = make_session(NULL, 0);
    transcript one = {0}, other = {0};
    talk(s, 0, 160, &one);
    ck_assert_int_ge(one.ended, 2);
    ck_assert_int_gt(one.views, 2 * one.ended);
    ck_assert_int_gt(one.provisional, 0);
    require_fails(LINNET_INVALID, linnet_session_push(s, sound, 10, &err));
    // Any cut, 16 bits, results asked for at the end only: the same.
    const size_t pieces[] = {N, 1, 777};
    for (int i = 0; i < 3; i++) {
        require_ok(linnet_session_reset(s, &err));
        other = (transcript){0};
        talk(s, 0, pieces[i], &other);
        ck_assert_str_eq(other.text, one.text);
    }
    require_ok(linnet_session_reset(s, &err));
    other = (transcript){0};
    require_ok(linnet_session_push_int16(s, sound_16, N, &err));
    require_ok(linnet_session_push_int16(s, NULL, 0, &err));
    require_ok(linnet_session_finish(s, &err));
    drain(s, &other);
    ck_assert_str_eq(other.text, one.text);
    ck_assert_int_eq(other.views, other.ended);
    // By hand.
    require_ok(linnet_session_reset(s, &err));
    other = (transcript){0};
    require_ok(linnet_session_push(s, sound, RATE, &err));
    require_ok(linnet_session_end_utterance(s, &err));
    drain(s, &other);
    ck_assert_int_eq(other.ended, 1);
    ck_assert_int_eq(other.last, LINNET_ASKED);
    sound[3] = INFINITY;
    require_fails(LINNET_NUMERIC, linnet_session_push(s, sound, 10, &err));
    sound[3] = 0;
    require_fails(LINNET_INVALID, linnet_session_push(s, NULL, 10, &err));
    require_fails(LINNET_INVALID, linnet_session_push_int16(s, NULL, 10, &err));
    require_ok(linnet_session_push(s, NULL, 0, &err));
    linnet_session_destroy(s);
    linnet_session_destroy(NULL);
}
END_TEST

START_TEST(session_options)
{
    linnet_session_options o;
    linnet_session *s;
    linnet_session_options_init(&o, sizeof o);
    o.rate_hz = 100;
    require_fails(LINNET_UNSUPPORTED, linnet_session_create(model, &o, &s, &err));
    linnet_session_options_init(&o, sizeof o);
    o.channel = 1;
    require_fails(LINNET_INVALID, linnet_session_create(model, &o, &s, &err));
    o.channel = -2;
    require_fails(LINNET_INVALID, linnet_session_create(model, &o, &s, &err));
    linnet_session_options_init(&o, sizeof o);
    o.silence_after_s = -1;
    require_fails(LINNET_INVALID, linnet_session_create(model, &o, &s, &err));
    require_fails(LINNET_INVALID, linnet_session_create(NULL, NULL, &s, &err));
    ck_assert_ptr_null(s);
    linnet_session_options_init(&o, sizeof o); // two channels at another rate, no endpoints
    o.rate_hz = 8000;
    o.channels = 2;
    o.endpoints = 0;
    require_ok(linnet_session_create(model, &o, &s, &err));
    transcript t = {0};
    require_ok(linnet_session_push(s, sound, N / 2, &err));
    require_ok(linnet_session_finish(s, &err));
    drain(s, &t);
    ck_assert_int_eq(t.ended, 1);
    ck_assert_int_eq(t.last, LINNET_FINISHED);
    void *bytes;
    size_t n;
    require_fails(LINNET_INVALID, linnet_session_save(s, &bytes, &n, &err));
    linnet_session_destroy(s);
}
END_TEST

START_TEST(saved_and_forked)
{
    linnet_decoder *d = make_decoder(0, 8, 1);
    linnet_session *s = make_session(d, 1), *other = make_session(d, 1), *copy, *greedy = make_session(NULL, 1);
    transcript whole = {0}, rest = {0}, start = {0}, forked = {0};
    void *bytes;
    size_t n;
    talk(s, 0, 800, &whole);
    require_ok(linnet_session_reset(s, &err));
    require_ok(linnet_session_push(s, sound, N / 2, &err)); // within the silence behind the first utterance
    drain(s, &start);
    ck_assert_int_eq(start.ended, 1);
    require_ok(linnet_session_save(s, &bytes, &n, &err));
    require_ok(linnet_session_fork(s, &copy, &err));
    linnet_session_destroy(s);
    require_ok(linnet_session_load(other, bytes, n, &err));
    talk(other, N / 2, 1600, &rest);
    strcat(start.text, rest.text);
    ck_assert_str_eq(start.text, whole.text);
    forked.ended = 1; // it goes on counting
    talk(copy, N / 2, 999, &forked);
    ck_assert_str_eq(forked.text, rest.text);
    require_fails(LINNET_MISMATCH, linnet_session_load(greedy, bytes, n, &err));
    require_fails(LINNET_FORMAT, linnet_session_load(other, bytes, n - 1, &err));
    ((char *)bytes)[n / 2] ^= 1;
    require_fails(LINNET_FORMAT, linnet_session_load(other, bytes, n, &err));
    require_fails(LINNET_INVALID, linnet_session_load(other, NULL, 0, &err));
    rest = (transcript){0};
    talk(other, 0, 800, &rest); // as new
    ck_assert_str_eq(rest.text, whole.text);
    linnet_free(bytes);
    linnet_session_destroy(copy);
    linnet_session_destroy(other);
    linnet_session_destroy(greedy);
    linnet_decoder_destroy(d);
}
END_TEST

START_TEST(phrases_of_a_session)
{
    linnet_decoder *d = make_decoder(1, 64, 1), *best = make_decoder(0, 8, 2);
    linnet_session *s = make_session(d, 1), *greedy = make_session(NULL, 0), *alternatives = make_session(best, 0), *copy;
    transcript plain = {0}, likely = {0}, again = {0}, forked = {0};
    // Any word can be made likely enough to appear.
    const linnet_phrase phrases[] = {{"oh", 60}, {"yahoo", 20}};
    talk(s, 0, 800, &plain);
    require_ok(linnet_session_set_phrases(s, phrases, 2, &err));
    require_ok(linnet_session_reset(s, &err));
    require_ok(linnet_session_fork(s, &copy, &err));
    talk(s, 0, 800, &likely);
    ck_assert_str_ne(likely.text, plain.text);
    require_ok(linnet_session_set_phrases(s, NULL, 0, &err));
    require_ok(linnet_session_reset(s, &err));
    talk(s, 0, 800, &again);
    ck_assert_str_eq(again.text, plain.text);
    linnet_session_destroy(s);
    linnet_decoder_destroy(d);
    talk(copy, 0, 800, &forked); // has the phrases still
    ck_assert_str_eq(forked.text, likely.text);
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, &(linnet_phrase){"...", 1}, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, &(linnet_phrase){NULL, 1}, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, &(linnet_phrase){"yes", NAN}, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, NULL, 1, &err));
    require_fails(LINNET_UNSUPPORTED, linnet_session_set_phrases(greedy, phrases, 1, &err));
    require_fails(LINNET_UNSUPPORTED, linnet_session_set_phrases(alternatives, phrases, 1, &err));
    linnet_session_destroy(copy);
    linnet_session_destroy(greedy);
    linnet_session_destroy(alternatives);
    linnet_decoder_destroy(best);
}
END_TEST

START_TEST(nothing_is_allocated_while_sound_streams)
{
    linnet_session *s = make_session(NULL, 0);
    transcript t = {0};
    for (int round = 0; round < 2; round++) {
        const unsigned long before = lin_memory_count();
        for (int again = 0; again < 2; again++) {
            for (size_t at = 0; at + 800 <= N; at += 800) {
                require_ok(linnet_session_push(s, sound + at, 800, &err));
                const linnet_utterance *u;
                while ((u = linnet_session_next(s)) != NULL) t.views += linnet_result_phones(u->settled);
            }
        }
        if (round) ck_assert_uint_eq(lin_memory_count(), before);
    }
    ck_assert_int_gt(t.views, 10);
    linnet_session_destroy(s);
}
END_TEST

// ---- engines ----------------------------------------------------------------------------------------------------------------------

enum { STREAMS = 6 };

static linnet_engine_options engine_options(int streams)
{
    linnet_engine_options o;
    linnet_engine_options_init(&o, sizeof o);
    o.streams = streams;
    o.queue_s = 10;
    o.silence_after_s = 0.4;
    return o;
}

// As a session with the same options has it.
static transcript of_session(void)
{
    linnet_session *s = make_session(NULL, 0);
    transcript t = {0};
    talk(s, 0, 800, &t);
    linnet_session_destroy(s);
    return t;
}

START_TEST(engines)
{
    linnet_engine_options o = engine_options(STREAMS);
    linnet_engine *e;
    linnet_stream streams[STREAMS], more;
    transcript got[STREAMS], want = of_session();
    const linnet_event *event;
    memset(got, 0, sizeof got);
    o.growing = 1;
    require_ok(linnet_engine_create(model, &o, &e, &err));
    ck_assert_ptr_null(linnet_engine_next(e, 0));
    for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_open(e, RATE, 1, &got[i], &streams[i], &err));
    require_fails(LINNET_TOO_SMALL, linnet_engine_open(e, RATE, 1, NULL, &more, &err));
    require_fails(LINNET_NUMERIC, linnet_engine_push(e, streams[0], &(float){NAN}, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_push(e, streams[0], NULL, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_push(e, 77, sound, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_finish(e, 77, &err));
    require_fails(LINNET_INVALID, linnet_engine_reset(e, 77, &err));
    linnet_engine_close(e, 77);
    for (int round = 0; round < 2; round++) {
        for (size_t at = 0; at < N; at += 1000) {
            for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_push(e, streams[i], sound + at, 1000, &err));
        }
        for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_finish(e, streams[i], &err));
        require_fails(LINNET_INVALID, linnet_engine_push(e, streams[0], sound, 1, &err));
        for (int left = STREAMS; left > 0;) {
            event = linnet_engine_next(e, 60);
            ck_assert_ptr_nonnull(event);
            transcript *t = event->user;
            ck_assert(event->stream == streams[t - got]);
            if (event->kind == LINNET_ENDED) {
                ck_assert_double_eq_tol(event->time_s, SECONDS, 0.05);
                left--;
                continue;
            }
            ck_assert_int_eq(event->kind, LINNET_UTTERANCE);
            const linnet_utterance *u = event->utterance;
            t->views++;
            if (u->end == LINNET_GROWS) continue;
            ck_assert_int_eq(u->number, ++t->ended);
            snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s\n", linnet_result_text(u->settled));
        }
        for (int i = 0; i < STREAMS; i++) ck_assert_str_eq(got[i].text, want.text);
        memset(got, 0, sizeof got);
        for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_reset(e, streams[i], &err));
    }
    linnet_engine_stats stats = {.size = sizeof stats};
    require_ok(linnet_engine_measure(e, &stats, &err));
    ck_assert(stats.open == STREAMS && stats.streams == STREAMS && stats.stream_bytes > 1000 && stats.lost == 0);
    stats.size = 0;
    require_fails(LINNET_INVALID, linnet_engine_measure(e, &stats, &err));
    // What does not fit is lost, and told.
    for (int i = 0; i < 12; i++) linnet_engine_push(e, streams[0], sound, RATE, NULL);
    ck_assert_int_eq(linnet_engine_push(e, streams[0], sound, N * 3, NULL) == LINNET_OK, 0);
    linnet_engine_finish(e, streams[0], NULL);
    int64_t lost = 0;
    while ((event = linnet_engine_next(e, 60)) != NULL && event->kind != LINNET_ENDED) {
        if (event->kind == LINNET_LOST) lost += event->lost;
    }
    ck_assert_int_ge(lost, 0);
    linnet_engine_close(e, streams[0]);
    linnet_engine_close(e, streams[0]);
    require_ok(linnet_engine_open(e, 8000, 2, NULL, &more, &err));
    require_ok(linnet_engine_push(e, more, sound, 4000, &err));
    linnet_engine_destroy(e); // with streams open and sound waiting
    linnet_engine_destroy(NULL);
    o = engine_options(0);
    require_fails(LINNET_INVALID, linnet_engine_create(model, &o, &e, &err));
    require_fails(LINNET_INVALID, linnet_engine_create(NULL, NULL, &e, &err));
    ck_assert_ptr_null(e);
}
END_TEST

typedef struct told {
    linnet_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t all;
    int left, utterances;
} told;

// Closes the stream when it has ended.
static void tell(void *context, const linnet_event *event)
{
    told *t = context;
    if (event->kind == LINNET_ENDED) linnet_engine_close(t->engine, event->stream);
    pthread_mutex_lock(&t->lock);
    t->utterances += event->kind == LINNET_UTTERANCE && event->utterance->end != LINNET_GROWS;
    t->left -= event->kind == LINNET_ENDED;
    pthread_cond_signal(&t->all);
    pthread_mutex_unlock(&t->lock);
}

START_TEST(engine_with_a_callback)
{
    told t = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER, .left = STREAMS};
    linnet_engine_options o = engine_options(STREAMS);
    linnet_stream s;
    const transcript want = of_session();
    o.event = tell;
    o.context = &t;
    require_ok(linnet_engine_create(model, &o, &t.engine, &err));
    for (int i = 0; i < STREAMS; i++) {
        require_ok(linnet_engine_open(t.engine, RATE, 1, NULL, &s, &err));
        require_ok(linnet_engine_push(t.engine, s, sound, N, &err));
        require_ok(linnet_engine_finish(t.engine, s, &err));
    }
    pthread_mutex_lock(&t.lock);
    while (t.left) pthread_cond_wait(&t.all, &t.lock);
    pthread_mutex_unlock(&t.lock);
    ck_assert_int_eq(t.utterances, STREAMS * want.ended);
    ck_assert_ptr_null(linnet_engine_next(t.engine, 0));
    linnet_engine_destroy(t.engine);
}
END_TEST

// ---- alignment --------------------------------------------------------------------------------------------------------------------

START_TEST(alignment)
{
    linnet_aligner_options o;
    linnet_aligner *a, *phones;
    linnet_result *r;
    linnet_sound s = in_memory();
    linnet_aligner_options_init(&o, sizeof o);
    o.lexicon = LEXICON;
    require_ok(linnet_aligner_create(model, &o, &a, &err));
    require_ok(linnet_align(a, &s, "oh yeah", &r, &err));
    ck_assert_int_eq(linnet_result_words(r), 2);
    ck_assert_str_eq(linnet_result_text(r), "oh yeah");
    ck_assert_int_ge(linnet_result_phones(r), 3);
    for (int i = 0; i < linnet_result_phones(r); i++) ck_assert(linnet_result_phone(r, i)->goodness <= 0);
    ck_assert(linnet_result_describe(r)->fit < -4 && strstr(linnet_result_describe(r)->warning, "match"));
    linnet_result_destroy(r);
    require_fails(LINNET_INVALID, linnet_align(a, &s, "...", &r, &err));
    require_fails(LINNET_INVALID, linnet_align(a, &s, NULL, &r, &err));
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

// ---- threads and memory -----------------------------------------------------------------------------------------------------------

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

static linnet_status whole_path(linnet_decoder *d)
{
    const linnet_sound s = in_memory();
    linnet_result *r = NULL, *copy = NULL;
    char *text = NULL;
    linnet_status status = linnet_decode(model, &s, d, &r, &err);
    if (!status) status = linnet_result_copy(r, &copy, &err);
    if (!status) status = linnet_result_format(copy, "json", NULL, &text, NULL, &err);
    linnet_free(text);
    linnet_result_destroy(copy);
    linnet_result_destroy(r);
    return status;
}

static linnet_status session_path(linnet_decoder *d)
{
    linnet_session_options o;
    linnet_session *s = NULL, *copy = NULL;
    void *bytes = NULL;
    size_t n;
    linnet_session_options_init(&o, sizeof o);
    o.decoder = d;
    o.can_save = 1;
    o.silence_after_s = 0.4;
    linnet_status status = linnet_session_create(model, &o, &s, &err);
    if (!status) status = linnet_session_push(s, sound, N, &err);
    while (!status && linnet_session_next(s)) continue;
    if (!status) status = linnet_session_save(s, &bytes, &n, &err);
    if (!status) status = linnet_session_load(s, bytes, n, &err);
    if (!status) status = linnet_session_fork(s, &copy, &err);
    if (!status) status = linnet_session_finish(copy, &err);
    linnet_free(bytes);
    linnet_session_destroy(s);
    linnet_session_destroy(copy);
    return status;
}

START_TEST(every_allocation_may_fail)
{
    linnet_status (*const paths[])(linnet_decoder *) = {whole_path, session_path};
    linnet_decoder *either[] = {make_decoder(0, 0, 1), make_decoder(0, 4, 2)};
    const int i = _i / 2, alternatives = _i % 2;
    if (i == 1 && alternatives) goto done; // alternatives are not saved
    const unsigned long live = lin_memory_live();
    for (unsigned long k = 1;; k++) {
        lin_memory_fail_at(k);
        const linnet_status status = paths[i](either[alternatives]);
        lin_memory_fail_at(0);
        ck_assert_uint_eq(lin_memory_live(), live);
        if (status == LINNET_OK) break;
        ck_assert_msg(status == LINNET_NO_MEMORY, "allocation %lu: %s: %s", k, linnet_status_name(status), err.message);
        ck_assert_uint_lt(k, 5000);
    }
done:
    linnet_decoder_destroy(either[0]);
    linnet_decoder_destroy(either[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linnet.h");
    TCase *cases = tcase_create("api");
    tcase_set_timeout(cases, 240);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, versions_and_names);
    tcase_add_test(cases, models);
    tcase_add_test(cases, options_can_grow);
    tcase_add_test(cases, warnings_go_to_the_callback);
    tcase_add_test(cases, decoders);
    tcase_add_test(cases, results);
    tcase_add_test(cases, words_and_alternatives);
    tcase_add_test(cases, arrays);
    tcase_add_test(cases, bad_sounds);
    tcase_add_test(cases, model_of_whole_utterances);
    tcase_add_test(cases, sessions);
    tcase_add_test(cases, session_options);
    tcase_add_test(cases, saved_and_forked);
    tcase_add_test(cases, phrases_of_a_session);
    tcase_add_test(cases, nothing_is_allocated_while_sound_streams);
    tcase_add_test(cases, engines);
    tcase_add_test(cases, engine_with_a_callback);
    tcase_add_test(cases, alignment);
    tcase_add_test(cases, threads_share_model_and_decoder);
    tcase_add_loop_test(cases, every_allocation_may_fail, 0, 4);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
