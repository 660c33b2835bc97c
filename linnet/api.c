// api.c - linnet.h: versions, options, models, decoders, results, and whole sounds; see linnet.h and api.h.

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/rows.h"
#include "decoder/writers.h"
#include "linnet/api.h"
#include "linnet/diarizer.h"
#include "linnet/find.h"
#include "linnet/stream.h"
#include "linnet/utterances.h"

/* ---- errors and options ---------------------------------------------------------------------------------------------------- */

_Static_assert((int)LINNET_FP32 == (int)LIN_PRECISION_FP32 && (int)LINNET_TF32 == (int)LIN_PRECISION_TF32 &&
                   (int)LINNET_BF16 == (int)LIN_PRECISION_BF16 && (int)LINNET_INT8 == (int)LIN_PRECISION_INT8 &&
                   (int)LINNET_AUTO == (int)LIN_PRECISION_AUTO,
               "the public precisions are the internal ones");

const char *linnet_version(void) { return LINNET_VERSION; }

const char *linnet_status_name(linnet_status status) { return lin_status_name(status); }

linnet_status linnet_set_data_folder(const char *folder, linnet_error *err) { return lin_find_in(folder, err); }
linnet_status linnet_set_language(const char *language, linnet_error *err) { return lin_find_language(language, err); }

void linnet_free(void *block) { lin_free(block); }

void lin_api_init(void *options, size_t size, const void *defaults, size_t full)
{
    if (!options || size < sizeof(size_t)) return;
    memset(options, 0, size);
    memcpy(options, defaults, size < full ? size : full);
    memcpy(options, &size, sizeof size);
}

lin_status lin_api_take(void *options, size_t full, const void *given, const char *name, lin_error *err)
{
    size_t size;
    if (!given) return LIN_OK;
    memcpy(&size, given, sizeof size);
    if (size <= sizeof size || size > 1 << 16)
        return lin_fail(err, LIN_INVALID, "the %s were not initialised: call linnet_%s_init first", name, name);
    for (size_t i = full; i < size; i++) {
        if (((const unsigned char *)given)[i])
            return lin_fail(err, LIN_UNSUPPORTED, "the %s ask for something that version %s of the library does not have", name,
                            LINNET_VERSION);
    }
    memcpy(options, given, size < full ? size : full);
    return LIN_OK;
}

/* ---- models ---------------------------------------------------------------------------------------------------------------- */

static const linnet_model_options model_defaults = {.device = "cpu", .precision = LINNET_AUTO, .dereverb = 1};

void linnet_model_options_init(linnet_model_options *options, size_t size)
{
    lin_api_init(options, size, &model_defaults, sizeof model_defaults);
}

static lin_status describe(linnet_model *m, lin_error *err)
{
    const lin_model *own = m->r.model;
    const int V = m->r.V;
    m->ipa = lin_calloc(2 * (size_t)V, sizeof *m->ipa);
    if (!m->ipa) return lin_no_memory(err, "a model", 2 * (size_t)V * sizeof *m->ipa);
    for (int i = 0; i < V; i++) {
        m->ipa[i] = lin_phones_ipa(m->r.phones, i);
        m->ipa[V + i] = lin_symbols_text(&own->phone, i);
    }
    m->info = (linnet_model_info){.name = own->name,
                                  .license = own->license,
                                  .provenance = own->provenance,
                                  .sample_hz = own->features.sample_hz,
                                  .n_features = own->config.mel_bins,
                                  .frame_s = own->features.hop_ms / 1000,
                                  .row_s = m->r.row_seconds,
                                  .delay_s = lin_session_construction(&m->r).total_s,
                                  .n_labels = V,
                                  .phones = m->ipa + V,
                                  .ipa = m->ipa,
                                  .streams = m->r.streams,
                                  .fingerprint = own->fingerprint,
                                  .language = lin_phones_language(m->r.phones)};
    return LIN_OK;
}

// bytes NULL: the file `path`.
static lin_status load(const char *path, const void *bytes, size_t n, const linnet_model_options *given, linnet_model **model,
                       lin_error *err)
{
    linnet_model_options o = model_defaults;
    *model = NULL;
    LIN_TRY(lin_api_take(&o, sizeof o, given, "model_options", err));
    if (path && !*path) return lin_fail(err, LIN_INVALID, "the path of the model is empty; NULL is the default one");
    if (!o.device) o.device = "auto";
    if ((int)o.precision < LINNET_FP32 || (int)o.precision > LINNET_AUTO)
        return lin_fail(err, LIN_INVALID, "precision is %d: LINNET_FP32, LINNET_TF32, LINNET_BF16, LINNET_INT8 or LINNET_AUTO",
                        (int)o.precision);
    const lin_warnings warnings = {.tell = o.warning, .context = o.warning_context};
    linnet_model *m = lin_calloc(1, sizeof *m);
    if (!m) return lin_no_memory(err, "a model", sizeof *m);
    atomic_init(&m->owners, 1);
    snprintf(m->device, sizeof m->device, "%s", o.device);
    m->precision = o.precision;
    lin_status status = bytes ? lin_recognizer_open_memory(&m->r, bytes, n, o.device, (lin_precision)o.precision, &warnings, err)
                              : lin_recognizer_open(&m->r, path, o.device, (lin_precision)o.precision, &warnings, err);
    if (status != LIN_OK) {
        lin_free(m);
        return status;
    }
    m->r.fbank.dereverb = o.dereverb != 0;
    status = describe(m, err);
    if (status == LIN_OK) *model = m;
    else linnet_model_destroy(m);
    return status;
}

linnet_status linnet_model_load(const char *path, const linnet_model_options *options, linnet_model **model, linnet_error *err)
{
    return load(path, NULL, 0, options, model, err);
}

linnet_status linnet_model_load_memory(const void *bytes, size_t n, const linnet_model_options *options, linnet_model **model,
                                       linnet_error *err)
{
    return load(NULL, bytes ? bytes : "", bytes ? n : 0, options, model, err);
}

// The model of readable text, which belongs to the linnet_model; NULL: none is installed. Any thread.
static const lin_punctuation *punctuation_of(linnet_model *m)
{
    lin_punctuation *none = NULL, *opened;
    if (atomic_load(&m->punctuation)) return atomic_load(&m->punctuation);
    if (lin_find_open_punctuation(m->r.phones, &opened, NULL) != LIN_OK || !opened) return NULL;
    if (atomic_compare_exchange_strong(&m->punctuation, &none, opened)) return opened;
    lin_punctuation_destroy(opened); // another thread was faster
    return none;
}

// The rules that spell words outside the lexicon in it, likewise.
static const lin_g2p_rules *speller_of(linnet_model *m)
{
    lin_g2p_rules *none = NULL, *opened;
    if (atomic_load(&m->speller)) return atomic_load(&m->speller);
    if (lin_find_speller(m->r.phones, &opened, NULL) != LIN_OK || !opened) return NULL;
    if (atomic_compare_exchange_strong(&m->speller, &none, opened)) return opened;
    lin_g2p_rules_destroy(opened); // another thread was faster
    return none;
}

linnet_model *lin_api_keep_model(linnet_model *model)
{
    atomic_fetch_add(&model->owners, 1);
    return model;
}

void linnet_model_destroy(linnet_model *model)
{
    if (!model || atomic_fetch_sub(&model->owners, 1) > 1) return;
    lin_recognizer_close(&model->r);
    lin_free(model->ipa);
    lin_punctuation_destroy(atomic_load(&model->punctuation));
    lin_g2p_rules_destroy(atomic_load(&model->speller));
    lin_free(model);
}

const linnet_model_info *linnet_model_describe(const linnet_model *model) { return &model->info; }

/* ---- decoders -------------------------------------------------------------------------------------------------------------- */

struct linnet_decoder {
    linnet_model *model, *combine, *second; // combine: NULL for none; second: of options.best, likewise
    atomic_int owners;
    lin_decoding decoding;
    lin_decoding_values values;
    lin_phrases phrases;
    char *names[6]; // the caller's paths and names of files, to which values points
    int n_names;
};

static const linnet_decoder_options decoder_defaults = {
    .n_best = 1, .unknown = NAN, .lm_weight = NAN, .bonus = NAN, .beam_score = NAN, .blank_penalty = NAN, .settle = NAN,
    .show = NAN, .rescore_n = LIN_RESCORE_N, .rescore_weight = LIN_RESCORE_WEIGHT, .combine_weight = LIN_COMBINE_WEIGHT,
    .grammar_confidence = NAN};

void linnet_decoder_options_init(linnet_decoder_options *options, size_t size)
{
    lin_api_init(options, size, &decoder_defaults, sizeof decoder_defaults);
}

// `fit` for a value that is not given, NaN.
static double or_fit(double value, double fit) { return isnan(value) ? fit : value; }

static lin_status check_decoder(const linnet_decoder_options *o, lin_error *err)
{
    const int words = o->words || o->grammar;
    const lin_range ranges[] = {
        {"beam", o->beam, 0, words ? LIN_WORDS_MAX : LIN_BEAM_MAX},
        {"n_best", o->n_best, 1, words ? LIN_WORDS_NBEST_MAX : LIN_BEAM_MAX},
        {"n_keywords", o->n_keywords, 0, LIN_KEYWORDS_MAX},
        {"n_phrases", o->n_phrases, 0, INT_MAX},
        {"speakers", o->speakers, LIN_SPEAKERS_UNKNOWN, LIN_SPEAKERS_MOST},
        {"rescore_n", o->rescore_n, 2, LIN_WORDS_NBEST_MAX},
        {"rescore_weight", o->rescore_weight, 0, 1},
        {"combine_weight", o->combine_weight, 0, 1},
        {"unknown", or_fit(o->unknown, 0), -1000, 0},
        {"lm_weight", or_fit(o->lm_weight, 0), 0, 100},
        {"bonus", or_fit(o->bonus, 0), -100, 100},
        {"blank_penalty", or_fit(o->blank_penalty, 0), -100, 100},
        {"settle", or_fit(o->settle, 0), 0, 600},
        {"show", or_fit(o->show, 0), 0, 1},
        {"grammar_confidence", or_fit(o->grammar_confidence, 0), 0, 1},
        {"beam_score", or_fit(o->beam_score, 0), 0, 600},
    };
    LIN_TRY(lin_check_ranges(ranges, sizeof ranges / sizeof *ranges, "", err));
    for (int i = 0; i < o->n_keywords; i++)
        if (!o->keywords || !o->keywords[i]) return lin_fail(err, LIN_INVALID, "keyword %d has no text", i);
    return o->no_lm && o->lm ? lin_fail(err, LIN_INVALID, "no_lm is set, and lm names %s", o->lm) : LIN_OK;
}

static lin_status keep_name(linnet_decoder *d, const char *name, const char **kept, lin_error *err)
{
    if (!name) return LIN_OK;
    char *copy = lin_strdup(name);
    if (!copy) return lin_no_memory(err, "a decoder", strlen(name) + 1);
    *kept = d->names[d->n_names++] = copy;
    return LIN_OK;
}

static lin_status values_of(const linnet_decoder_options *o, linnet_decoder *d, lin_error *err)
{
    lin_decoding_values *v = &d->values;
    *v = lin_decoding_default();
    LIN_TRY(keep_name(d, o->lexicon, &v->lexicon, err));
    LIN_TRY(keep_name(d, o->add_lexicon, &v->add_lexicon, err));
    LIN_TRY(keep_name(d, o->g2p, &v->g2p, err));
    LIN_TRY(keep_name(d, o->lm, &v->lm, err));
    LIN_TRY(keep_name(d, o->rescore, &v->rescore, err));
    LIN_TRY(keep_name(d, o->grammar, &v->grammar, err));
    v->words = o->words || o->grammar;
    v->beam = o->beam;
    v->n_best = o->n_best;
    v->rescore_n = o->rescore_n;
    v->rescore_weight = o->rescore_weight;
    v->combine = o->combine ? "" : NULL; // it is open
    v->combine_weight = o->combine_weight;
    v->no_lm = o->no_lm != 0;
    v->all_words = o->all_words != 0;
    v->no_unknown = o->no_unknown != 0;
    v->speakers = o->speakers;
    v->keywords = (lin_list){(const char **)o->keywords, o->n_keywords}; // only for opening
    v->phrases_come = o->n_phrases > 0;
    v->unknown = o->unknown;
    v->lm_weight = o->lm_weight;
    v->bonus = o->bonus;
    v->beam_score = o->beam_score;
    v->min_confidence = o->grammar_confidence;
    v->blank_penalty = o->blank_penalty;
    v->settle = o->settle;
    v->show = o->show;
    return LIN_OK;
}

// Sets what `best` stands for, except what the caller has chosen.
static lin_status choose_best(linnet_decoder *d, linnet_decoder_options *o, lin_error *err)
{
    linnet_model *m = d->model;
    const linnet_model_options how = {.size = sizeof how, .device = m->device, .precision = m->precision,
                                      .warning = m->r.warnings.tell, .warning_context = m->r.warnings.context};
    if (!o->best) return LIN_OK;
    if (o->words && !o->rescore) o->rescore = "words";
    if (m->r.streams) LIN_TRY(linnet_model_load("offline", &how, &d->second, err));
    if (!d->combine && m->r.streams) d->combine = lin_api_keep_model(m);
    if (!d->combine) LIN_TRY(linnet_model_load("default", &how, &d->combine, err));
    o->combine = d->combine;
    return LIN_OK;
}

linnet_status linnet_decoder_create(linnet_model *model, const linnet_decoder_options *given, linnet_decoder **decoder,
                                    linnet_error *err)
{
    linnet_decoder_options o = decoder_defaults;
    *decoder = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "a decoder needs a model");
    LIN_TRY(lin_api_take(&o, sizeof o, given, "decoder_options", err));
    LIN_TRY(check_decoder(&o, err));
    linnet_decoder *d = lin_calloc(1, sizeof *d);
    if (!d) return lin_no_memory(err, "a decoder", sizeof *d);
    atomic_init(&d->owners, 1);
    d->model = lin_api_keep_model(model);
    if (o.combine) d->combine = lin_api_keep_model(o.combine);
    lin_status status = choose_best(d, &o, err);
    if (status == LIN_OK) status = values_of(&o, d, err);
    if (status == LIN_OK)
        status = lin_decoding_open_for(&model->r, &d->values, &model->r.warnings, &d->decoding, err);
    d->values.keywords = (lin_list){NULL, 0};
    if (status == LIN_OK && d->combine) d->decoding.combined = &d->combine->r;
    if (status == LIN_OK) status = lin_decoding_make_phrases(&d->decoding, o.phrases, o.n_phrases, &d->phrases, err);
    if (status == LIN_OK) lin_phrases_use(&d->phrases, &d->decoding);
    if (status == LIN_OK) *decoder = d;
    else linnet_decoder_destroy(d);
    return status;
}

linnet_decoder *lin_api_keep_decoder(linnet_decoder *decoder)
{
    if (decoder) atomic_fetch_add(&decoder->owners, 1);
    return decoder;
}

linnet_model *lin_api_second_pass(linnet_model *given, const linnet_decoder *decoder)
{
    linnet_model *second = given ? given : decoder ? decoder->second : NULL;
    return second ? lin_api_keep_model(second) : NULL;
}

void linnet_decoder_destroy(linnet_decoder *d)
{
    if (!d || atomic_fetch_sub(&d->owners, 1) > 1) return;
    lin_phrases_free(&d->phrases);
    lin_decoding_close(&d->decoding);
    for (int i = 0; i < d->n_names; i++) lin_free(d->names[i]);
    linnet_model_destroy(d->combine);
    linnet_model_destroy(d->second);
    linnet_model_destroy(d->model);
    lin_free(d);
}

const char *linnet_decoder_kind(const linnet_decoder *d) { return lin_search_name(d->decoding.search.kind); }

int linnet_decoder_vocabulary(const linnet_decoder *d) { return lin_decoding_vocabulary(&d->decoding); }

lin_status lin_api_decoding(const linnet_model *model, const linnet_decoder *decoder, lin_decoding *decoding, lin_error *err)
{
    if (!decoder) {
        *decoding = lin_decoding_greedy(model->r.V, model->r.row_seconds, model->r.delay_s);
        return LIN_OK;
    }
    if (decoder->model->info.fingerprint != model->info.fingerprint)
        return lin_fail(err, LIN_MISMATCH, "the decoder was made for another model");
    *decoding = decoder->decoding; // shares what is opened
    return LIN_OK;
}

/* ---- results --------------------------------------------------------------------------------------------------------------- */

lin_status lin_api_result_create(linnet_model *model, linnet_result **result, lin_error *err)
{
    linnet_result *r = lin_calloc(1, sizeof *r);
    *result = NULL;
    if (!r) return lin_no_memory(err, "a result", sizeof *r);
    r->model = lin_api_keep_model(model);
    r->info.warning = r->warning;
    r->info.fit = NAN;
    const lin_status status = lin_result_begin(&r->result, "sound", NULL, 1, err);
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}

static void drop_alternatives(linnet_result *r)
{
    for (int i = 0; i < r->n_alternatives; i++) linnet_result_destroy(r->alternatives[i]);
    lin_free(r->alternatives);
    r->alternatives = NULL;
    r->n_alternatives = 0;
}

// What callers see; r->result stays.
static void hide(linnet_result *r)
{
    r->n_phones = r->n_words = r->n_keywords = 0;
    r->has_text = r->has_readable = 0;
    drop_alternatives(r);
}

void lin_api_result_clear(linnet_result *r)
{
    hide(r);
    lin_result_clear(&r->result);
}

void linnet_result_destroy(linnet_result *r)
{
    if (!r) return;
    drop_alternatives(r);
    lin_result_free(&r->result);
    lin_free(r->phones);
    lin_free(r->words);
    lin_free(r->keywords);
    lin_buffer_free(&r->marks);
    lin_buffer_free(&r->text);
    lin_buffer_free(&r->readable);
    linnet_model_destroy(r->model);
    lin_free(r);
}

static linnet_phone phone_of(const linnet_result *r, const lin_result_phone *p)
{
    const linnet_model_info *info = &r->model->info;
    return (linnet_phone){.label = p->label,
                          .name = info->phones[p->label],
                          .ipa = info->ipa[p->label],
                          .confidence = p->confidence,
                          .start_s = p->start_s,
                          .end_s = p->end_s,
                          .stress = p->stress - 1,
                          .goodness = p->goodness,
                          .said = p->heard == LIN_RESULT_NOTHING ? "" : p->heard > 0 ? info->phones[p->heard] : NULL,
                          .speaker = p->speaker};
}

// All of them, as their spellings may have moved. Words outside the lexicon are spelled by their phones, as in the formats that
// are text.
static lin_status show_words(linnet_result *r, lin_error *err)
{
    const lin_writer_options options = {.phones = r->model->r.phones};
    const lin_tokens tokens = lin_tokens_only(&r->result, &options, 1);
    const int n = r->result.n_words;
    lin_buffer_clear(&r->marks);
    for (int i = 0; i < n; i++) {
        if (r->result.words[i].known) continue;
        lin_token_spell(&tokens, i, &r->marks);
        lin_buffer_char(&r->marks, '\0');
    }
    LIN_TRY(lin_buffer_status(&r->marks, err));
    LIN_TRY(lin_grow_int(&r->words, &r->words_capacity, n, sizeof *r->words, "a result", err));
    const char *mark = r->marks.data;
    for (int i = 0; i < n; i++) {
        const lin_result_word *w = &r->result.words[i];
        r->words[i] = (linnet_word){.text = w->known ? lin_result_word_text(&r->result, i) : mark,
                                    .known = w->known,
                                    .first_phone = w->first_phone,
                                    .n_phones = w->n_phones,
                                    .confidence = w->confidence,
                                    .start_s = w->start_s,
                                    .end_s = w->end_s,
                                    .goodness = lin_result_goodness(&r->result, w->first_phone, w->n_phones),
                                    .speaker = lin_result_speaker(&r->result, i)};
        if (!w->known) mark += strlen(mark) + 1;
    }
    r->n_words = n;
    return LIN_OK;
}

static lin_status show_keywords(linnet_result *r, lin_error *err)
{
    const int n = r->result.n_keywords;
    LIN_TRY(lin_grow_int(&r->keywords, &r->keywords_capacity, n, sizeof *r->keywords, "a result", err));
    for (int i = 0; i < n; i++) {
        const lin_result_keyword *k = &r->result.keywords[i];
        r->keywords[i] = (linnet_keyword){r->result.text + k->text, k->confidence, k->start_s, k->end_s};
    }
    r->n_keywords = n;
    return LIN_OK;
}

static lin_status show_alternatives(linnet_result *r, lin_error *err)
{
    const int n = r->result.n_alternatives;
    drop_alternatives(r);
    if (!n) return LIN_OK;
    r->alternatives = lin_calloc((size_t)n, sizeof *r->alternatives);
    if (!r->alternatives) return lin_no_memory(err, "alternatives", (size_t)n * sizeof *r->alternatives);
    for (int i = 0; i < n; i++) {
        const lin_result *from = &r->result.alternatives[i];
        linnet_result *a;
        LIN_TRY(lin_api_result_create(r->model, &a, err));
        r->alternatives[r->n_alternatives++] = a;
        LIN_TRY(lin_result_append(&a->result, from, err));
        a->result.seconds = r->result.seconds;
        LIN_TRY(lin_api_result_update(a, 1, err));
    }
    return LIN_OK;
}

lin_status lin_api_result_update(linnet_result *r, int whole, lin_error *err)
{
    const lin_result *own = &r->result;
    r->info.seconds = own->seconds;
    r->info.score = own->score;
    r->info.acoustic = own->acoustic;
    r->info.language = own->language;
    r->info.has_words = own->has_words;
    r->info.goodness = (double)lin_result_goodness(own, 0, own->n_phones);
    r->has_text = r->has_readable = 0;
    lin_status status = lin_grow_int(&r->phones, &r->phones_capacity, own->n_phones, sizeof *r->phones, "a result", err);
    if (status == LIN_OK) {
        for (int i = r->n_phones; i < own->n_phones; i++) r->phones[i] = phone_of(r, &own->phones[i]);
        r->n_phones = own->n_phones;
        status = show_words(r, err);
    }
    if (status == LIN_OK) status = show_keywords(r, err);
    if (status == LIN_OK && whole) status = show_alternatives(r, err);
    if (status != LIN_OK) hide(r);
    return status;
}

lin_status lin_api_result_follow(linnet_result *r, const lin_result *from, int whole, lin_error *err)
{
    LIN_TRY(lin_result_follow(&r->result, from, err));
    for (int i = 0; whole && i < from->n_alternatives; i++) {
        lin_result *a = lin_result_add_alternative(&r->result);
        if (!a) return lin_no_memory(err, "alternatives", sizeof *a);
        LIN_TRY(lin_result_append(a, &from->alternatives[i], err));
    }
    return lin_api_result_update(r, whole, err);
}

/* ---- what callers ask ------------------------------------------------------------------------------------------------------ */

int linnet_result_phones(const linnet_result *r) { return r->n_phones; }
int linnet_result_words(const linnet_result *r) { return r->n_words; }
int linnet_result_keywords(const linnet_result *r) { return r->n_keywords; }
int linnet_result_alternatives(const linnet_result *r) { return r->n_alternatives; }

const float *linnet_result_voice(const linnet_result *r, int speaker, int *n)
{
    *n = 0;
    if (speaker < 1 || speaker > r->result.n_voices) return NULL;
    *n = r->result.voice_size;
    return r->result.voices + (size_t)(speaker - 1) * (size_t)*n;
}

const linnet_phone *linnet_result_phone(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_phones ? &r->phones[i] : NULL;
}

const linnet_keyword *linnet_result_keyword(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_keywords ? &r->keywords[i] : NULL;
}

const linnet_word *linnet_result_word(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_words ? &r->words[i] : NULL;
}

linnet_result *linnet_result_alternative(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_alternatives ? r->alternatives[i] : NULL;
}

const linnet_result_info *linnet_result_describe(const linnet_result *r) { return &r->info; }

const char *linnet_result_text(linnet_result *r)
{
    const int words = r->info.has_words, n = words ? r->n_words : r->n_phones;
    if (r->has_text) return r->text.data;
    lin_buffer_clear(&r->text);
    for (int i = 0; i < n; i++) {
        if (i) lin_buffer_char(&r->text, ' ');
        lin_buffer_text(&r->text, words ? r->words[i].text : r->phones[i].name);
    }
    lin_buffer_text(&r->text, "");
    if (lin_buffer_status(&r->text, NULL) != LIN_OK) {
        lin_buffer_free(&r->text);
        return "";
    }
    r->has_text = 1;
    return r->text.data;
}

static lin_status make_readable(linnet_result *r, const lin_punctuation *punctuation, lin_error *err)
{
    const lin_writer_options options = {
        .phones = r->model->r.phones, .readable = punctuation, .speller = speller_of(r->model)};
    lin_status status = lin_write(lin_writer_find("text"), &r->result, &options, &r->readable, err);
    if (status == LIN_OK) r->readable.data[--r->readable.n] = '\0'; // without the end of its line
    return status;
}

const char *linnet_result_readable(linnet_result *r)
{
    const lin_punctuation *punctuation = r->info.has_words ? punctuation_of(r->model) : NULL;
    if (!punctuation) return linnet_result_text(r);
    if (!r->has_readable) {
        lin_buffer_clear(&r->readable);
        r->has_readable = make_readable(r, punctuation, NULL) == LIN_OK;
    }
    return r->has_readable ? r->readable.data : "";
}

linnet_status linnet_result_copy(const linnet_result *from, linnet_result **copy, linnet_error *err)
{
    *copy = NULL;
    if (!from) return lin_fail(err, LIN_INVALID, "there is no result");
    linnet_result *r;
    LIN_TRY(lin_api_result_create(from->model, &r, err));
    r->info = from->info;
    memcpy(r->warning, from->warning, sizeof r->warning);
    r->info.warning = r->warning;
    const lin_status status = lin_api_result_follow(r, &from->result, 1, err);
    if (status == LIN_OK) *copy = r;
    else linnet_result_destroy(r);
    return status;
}

/* ---- formats --------------------------------------------------------------------------------------------------------------- */

static const linnet_format_options format_defaults = {.id = "sound", .speaker = "", .channel = 1};

void linnet_format_options_init(linnet_format_options *options, size_t size)
{
    lin_api_init(options, size, &format_defaults, sizeof format_defaults);
}

const char *linnet_format_name(int index)
{
    const lin_writer *writer = index >= 0 ? lin_writer_at(index) : NULL;
    return writer ? writer->name : NULL;
}

static lin_status no_format(const char *format, lin_error *err)
{
    lin_buffer names = {0};
    const lin_writer *writer;
    for (int i = 0; (writer = lin_writer_at(i)) != NULL; i++) lin_buffer_format(&names, "%s%s", i ? ", " : "", writer->name);
    lin_fail(err, LIN_INVALID, "there is no format '%s'; there are %s", format ? format : "", names.data ? names.data : "others");
    lin_buffer_free(&names);
    return LIN_INVALID;
}

linnet_status linnet_result_format(const linnet_result *result, const char *format, const linnet_format_options *given,
                                   char **text, size_t *length, linnet_error *err)
{
    *text = NULL;
    if (!result) return lin_fail(err, LIN_INVALID, "there is no result");
    linnet_format_options o = format_defaults;
    lin_buffer out = {0};
    LIN_TRY(lin_api_take(&o, sizeof o, given, "format_options", err));
    const lin_writer *writer = format ? lin_writer_find(format) : NULL;
    if (!writer) return no_format(format, err);
    const lin_writer_unit units[] = {LIN_UNIT_AUTO, LIN_UNIT_PHONES, LIN_UNIT_WORDS, LIN_UNIT_BOTH};
    const lin_writer_options options = {.phones = result->model->r.phones,
                                        .with_id = o.with_id,
                                        .times = o.times,
                                        .ipa = o.ipa,
                                        .stress = o.stress,
                                        .unit = units[(o.phones != 0) + 2 * (o.words != 0)],
                                        .word_times = o.word_times,
                                        .readable = o.readable ? punctuation_of(result->model) : NULL,
                                        .speller = o.readable ? speller_of(result->model) : NULL};
    lin_result named = result->result; // under the caller's names
    named.id = (char *)(uintptr_t)(o.id ? o.id : "sound");
    named.speaker = (char *)(uintptr_t)(o.speaker ? o.speaker : "");
    named.channel = o.channel;
    lin_status status = lin_write(writer, &named, &options, &out, err);
    if (status == LIN_OK) lin_buffer_text(&out, ""); // for its NUL, where nothing was written
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status != LIN_OK) {
        lin_buffer_free(&out);
        return status;
    }
    *text = out.data;
    if (length) *length = out.n;
    return LIN_OK;
}

/* ---- whole sounds ---------------------------------------------------------------------------------------------------------- */

static const linnet_sound sound_defaults = {
    .rate_hz = 16000, .channels = 1, .channel = LINNET_MIX, .end_s = INFINITY, .threads = 1};

void linnet_sound_init(linnet_sound *sound, size_t size) { lin_api_init(sound, size, &sound_defaults, sizeof sound_defaults); }

lin_status lin_api_sound(const linnet_sound *given, linnet_sound *taken, lin_sound *sound, lin_error *err)
{
    *taken = sound_defaults;
    if (!given) return lin_fail(err, LIN_INVALID, "there is no sound");
    LIN_TRY(lin_api_take(taken, sizeof *taken, given, "sound", err));
    const linnet_sound *o = taken;
    if (!o->path && !o->samples) return lin_fail(err, LIN_INVALID, "the sound has neither a path nor samples");
    if (!o->path && o->n_samples > PTRDIFF_MAX / sizeof *o->samples)
        return lin_fail(err, LIN_INVALID, "n_samples is %zu, more than memory can hold: a number below 0?", o->n_samples);
    if (o->channel < LINNET_MIX)
        return lin_fail(err, LIN_INVALID, "channel is %d; must be LINNET_MIX, or 0 and more", o->channel);
    if (o->threads < 0 || o->threads > 1024) return lin_fail(err, LIN_INVALID, "threads is %d; must be 0 to 1024", o->threads);
    if (!(o->start_s >= 0 && o->end_s > o->start_s))
        return lin_fail(err, LIN_INVALID, "a part from %g to %g s is empty", o->start_s, o->end_s);
    *sound = (lin_sound){.path = o->path,
                         .samples = o->samples,
                         .n_samples = (int64_t)o->n_samples,
                         .rate_hz = o->rate_hz,
                         .channels = o->channels,
                         .channel = o->channel == LINNET_MIX ? LIN_CHANNEL_MIX : o->channel,
                         .part = {o->start_s, o->end_s}};
    return LIN_OK;
}

// What is made of a sound: for a decoder, only its progress.
typedef struct array_job {
    const linnet_sound *sound;
    float *rows; // [n, columns]
    size_t n, capacity, columns; // capacity: floats
} array_job;

static int show_progress(void *context, double seconds, double duration)
{
    const linnet_sound *sound = ((const array_job *)context)->sound;
    return sound->progress && sound->progress(sound->context, seconds, duration);
}

// All of a sound into one result.
static lin_status run_decoder(const linnet_model *model, const lin_sound *sound, linnet_sound *o, const lin_decoding *decoding,
                              lin_file_report *report, lin_error *err)
{
    lin_file_worker *worker;
    const lin_file_sink sink = {.context = &(array_job){.sound = o}, .progress = show_progress};
    const lin_endpoint_options rules = lin_endpoint_default();
    const lin_utterances_options how = {.decoding = decoding, .ends = lin_reset_auto(&model->r, &rules)};
    lin_status status = lin_file_worker_create(&model->r, o->threads, &how, &worker, err);
    if (status == LIN_OK) status = lin_file_worker_run(worker, sound, &sink, report, err);
    lin_file_worker_destroy(worker);
    return status;
}

linnet_status linnet_decode(linnet_model *model, const linnet_sound *given, linnet_decoder *decoder, linnet_result **result,
                            linnet_error *err)
{
    linnet_sound o;
    lin_sound sound;
    lin_file_report report;
    lin_decoding decoding;
    linnet_result *r = NULL;
    *result = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    LIN_TRY(lin_api_sound(given, &o, &sound, err));
    LIN_TRY(lin_api_decoding(model, decoder, &decoding, err));
    LIN_TRY(lin_api_result_create(model, &r, err));
    sound.results = &r->result;
    lin_status status = run_decoder(model, &sound, &o, &decoding, &report, err);
    if (status == LIN_OK) {
        r->info.channels = report.channels;
        r->info.incomplete = report.incomplete;
        memcpy(r->warning, report.warning, sizeof r->warning);
        status = lin_api_result_update(r, 1, err);
    }
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}

linnet_status linnet_decode_file(linnet_model *model, const char *path, linnet_decoder *decoder, linnet_result **result,
                                 linnet_error *err)
{
    linnet_sound sound;
    linnet_sound_init(&sound, sizeof sound);
    sound.path = path;
    return linnet_decode(model, &sound, decoder, result, err);
}

/* ---- arrays ---------------------------------------------------------------------------------------------------------------- */

static lin_status keep_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    array_job *job = context;
    const size_t more = (size_t)n * job->columns, used = job->n * job->columns;
    (void)lane;
    LIN_TRY(lin_grow(&job->rows, &job->capacity, used + more, sizeof *job->rows, "rows", err));
    if (more) memcpy(job->rows + used, logp, more * sizeof *logp);
    job->n += (size_t)n;
    return LIN_OK;
}

static lin_status run_network(const linnet_model *model, const lin_sound *sound, array_job *job, lin_error *err)
{
    lin_file_worker *worker;
    lin_file_report report;
    const lin_file_sink sink = {.context = job, .rows = keep_rows, .progress = show_progress};
    job->columns = (size_t)model->r.V;
    lin_status status = lin_file_worker_create(&model->r, job->sound->threads, NULL, &worker, err);
    if (status == LIN_OK && job->sound->search) lin_file_worker_search(worker);
    if (status == LIN_OK) status = lin_file_worker_run(worker, sound, &sink, &report, err);
    if (status == LIN_OK && *report.warning) lin_warn(&model->r.warnings, "%s", report.warning);
    lin_file_worker_destroy(worker);
    return status;
}

static lin_status read_frames(lin_source *source, lin_part part, array_job *job, lin_error *err)
{
    enum { BLOCK = 1024 };
    job->columns = (size_t)lin_source_bins(source);
    if (part.start_s > 0 || part.end_s < INFINITY) LIN_TRY(lin_source_part(source, part.start_s, part.end_s, err));
    for (int n = 1; n > 0;) {
        LIN_TRY(lin_grow(&job->rows, &job->capacity, (job->n + BLOCK) * job->columns, sizeof *job->rows, "features", err));
        LIN_TRY(lin_source_read(source, job->rows + job->n * job->columns, BLOCK, &n, err));
        job->n += (size_t)n;
        if (show_progress(job, lin_source_seconds(source), lin_source_duration(source)))
            return lin_fail(err, LIN_STOPPED, "the progress callback asked to stop");
    }
    return LIN_OK;
}

static lin_status run_front_end(const linnet_model *model, const lin_sound *sound, array_job *job, lin_error *err)
{
    lin_feature_options options = lin_feature_options_default();
    lin_audio *audio;
    lin_source *source;
    options.fbank = model->r.fbank;
    options.channel = sound->channel;
    LIN_TRY(sound->path ? lin_audio_open(sound->path, NULL, &audio, err)
                        : lin_audio_open_memory("sound in memory", sound->samples, sound->n_samples, sound->rate_hz,
                                                sound->channels, &audio, err));
    LIN_TRY(lin_source_from_audio(audio, &options, &source, err));
    const lin_status status = read_frames(source, sound->part, job, err);
    const char *warning = lin_source_info(source)->warning;
    if (status == LIN_OK && *warning) lin_warn(&model->r.warnings, "%s", warning);
    lin_source_close(source);
    return status == LIN_INVALID ? lin_fail_at(err, status, "%.300s", sound->path ? sound->path : "sound in memory") : status;
}

static lin_status make_array(linnet_model *model, const linnet_sound *given, int frames_only, float **rows, size_t *n,
                             lin_error *err)
{
    linnet_sound o;
    lin_sound sound;
    *rows = NULL;
    *n = 0;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    LIN_TRY(lin_api_sound(given, &o, &sound, err));
    array_job job = {.sound = &o};
    const lin_status status = frames_only ? run_front_end(model, &sound, &job, err) : run_network(model, &sound, &job, err);
    if (status != LIN_OK) {
        lin_free(job.rows);
        return status;
    }
    *rows = job.rows;
    *n = job.n;
    return LIN_OK;
}

linnet_status linnet_features(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n, linnet_error *err)
{
    return make_array(model, sound, 1, rows, n, err);
}

linnet_status linnet_posteriors(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n, linnet_error *err)
{
    return make_array(model, sound, 0, rows, n, err);
}

linnet_status linnet_decode_rows(linnet_model *model, const float *rows, size_t n, linnet_decoder *decoder,
                                 linnet_result **result, linnet_error *err)
{
    lin_decoding decoding;
    lin_utterances u;
    linnet_result *r = NULL;
    int taken, reset;
    *result = NULL;
    if (!model || (n && !rows)) return lin_fail(err, LIN_INVALID, "there %s", model ? "are no rows" : "is no model");
    if (n > INT_MAX) return lin_fail(err, LIN_UNSUPPORTED, "%zu rows are more than can be decoded at once", n);
    LIN_TRY(lin_rows_check(rows, (int64_t)n, model->r.V, err));
    LIN_TRY(lin_api_decoding(model, decoder, &decoding, err));
    LIN_TRY(lin_api_result_create(model, &r, err));
    lin_status status = lin_utterances_open(&u, &model->r, &(lin_utterances_options){.decoding = &decoding}, NULL, err);
    if (status == LIN_OK) {
        lin_utterances_begin(&u, &r->result);
        status = lin_utterances_push(&u, rows, (int)n, NULL, &taken, &reset, err);
    }
    if (status == LIN_OK) status = lin_utterances_finish(&u, err);
    r->result.seconds = (double)n * model->r.row_seconds;
    if (status == LIN_OK) status = lin_api_result_update(r, 1, err);
    lin_utterances_close(&u);
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}
