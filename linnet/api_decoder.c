// api_decoder.c - linnet.h: decoders, from options to linnet/decoding.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "linnet/api.h"

static const linnet_decoder_options defaults = {.n_best = 1, .unknown = NAN, .lm_weight = NAN, .bonus = NAN, .beam_score = NAN,
                                                .blank_penalty = NAN, .settle = NAN, .show = NAN, .rescore_n = LIN_RESCORE_N,
                                                .rescore_weight = LIN_RESCORE_WEIGHT, .combine_weight = LIN_COMBINE_WEIGHT};

void linnet_decoder_options_init(linnet_decoder_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

static lin_status check_range(const char *name, double value, double least, double most, lin_error *err)
{
    if (isnan(value) || (value >= least && value <= most)) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s is %g: %g to %g", name, value, least, most);
}

static lin_status check(const linnet_decoder_options *o, lin_error *err)
{
    const int widest = o->words ? LIN_WORDS_MAX : LIN_BEAM_MAX, most_best = o->words ? LIN_WORDS_NBEST_MAX : LIN_BEAM_MAX;
    if (o->beam < 0 || o->beam > widest) return lin_fail(err, LIN_INVALID, "beam is %d: 0 to %d", o->beam, widest);
    if (o->n_best < 1 || o->n_best > most_best) return lin_fail(err, LIN_INVALID, "n_best is %d: 1 to %d", o->n_best, most_best);
    if (o->n_phrases < 0 || (o->n_phrases && !o->phrases)) return lin_fail(err, LIN_INVALID, "n_phrases is %d", o->n_phrases);
    if (o->no_lm && o->lm) return lin_fail(err, LIN_INVALID, "no_lm is set, and lm names %s", o->lm);
    if (o->rescore_n < 2 || o->rescore_n > LIN_WORDS_NBEST_MAX)
        return lin_fail(err, LIN_INVALID, "rescore_n is %d: 2 to %d", o->rescore_n, LIN_WORDS_NBEST_MAX);
    if (!(o->rescore_weight >= 0 && o->rescore_weight <= 1))
        return lin_fail(err, LIN_INVALID, "rescore_weight is %g: 0 to 1", o->rescore_weight);
    if (!(o->combine_weight >= 0 && o->combine_weight <= 1))
        return lin_fail(err, LIN_INVALID, "combine_weight is %g: 0 to 1", o->combine_weight);
    lin_status status = check_range("unknown", o->unknown, -1000, 0, err);
    if (status == LIN_OK) status = check_range("lm_weight", o->lm_weight, 0, 100, err);
    if (status == LIN_OK) status = check_range("bonus", o->bonus, -100, 100, err);
    if (status == LIN_OK) status = check_range("blank_penalty", o->blank_penalty, -100, 100, err);
    if (status == LIN_OK) status = check_range("settle", o->settle, 0, 600, err);
    if (status == LIN_OK) status = check_range("show", o->show, 0, 1, err);
    return status == LIN_OK ? check_range("beam_score", o->beam_score, 0, 600, err) : status;
}

static void give(lin_decoding_values *v, lin_given which, double value, double *to)
{
    if (isnan(value)) return;
    *to = value;
    v->given |= 1u << which;
}

static lin_status values_of(const linnet_decoder_options *o, linnet_decoder *d, lin_error *err)
{
    lin_decoding_values *v = &d->values;
    *v = lin_decoding_default();
    d->lexicon = o->lexicon ? lin_strdup(o->lexicon) : NULL;
    d->lm = o->lm ? lin_strdup(o->lm) : NULL;
    d->add_lexicon = o->add_lexicon ? lin_strdup(o->add_lexicon) : NULL;
    d->rescore = o->rescore ? lin_strdup(o->rescore) : NULL;
    d->g2p = o->g2p ? lin_strdup(o->g2p) : NULL;
    if ((o->lexicon && !d->lexicon) || (o->lm && !d->lm) || (o->add_lexicon && !d->add_lexicon) || (o->rescore && !d->rescore) ||
        (o->g2p && !d->g2p))
        return lin_no_memory(err, "a decoder", 4096);
    v->words = o->words != 0;
    v->beam = o->beam;
    v->n_best = o->n_best;
    v->lexicon = d->lexicon;
    v->add_lexicon = d->add_lexicon;
    v->g2p = d->g2p;
    v->lm = d->lm;
    v->rescore = d->rescore;
    v->rescore_n = o->rescore_n;
    v->rescore_weight = o->rescore_weight;
    v->combine = o->combine ? "" : NULL; // it is open
    v->combine_weight = o->combine_weight;
    v->no_lm = o->no_lm != 0;
    v->all_words = o->all_words != 0;
    v->no_unknown = o->no_unknown != 0;
    if (d->lm) v->given |= 1u << LIN_GIVEN_LM;
    if (o->n_phrases) v->given |= 1u << LIN_GIVEN_PHRASE;
    give(v, LIN_GIVEN_UNKNOWN, o->unknown, &v->unknown);
    give(v, LIN_GIVEN_LM_WEIGHT, o->lm_weight, &v->lm_weight);
    give(v, LIN_GIVEN_BONUS, o->bonus, &v->bonus);
    give(v, LIN_GIVEN_SCORE, o->beam_score, &v->beam_score);
    if (o->words) give(v, LIN_GIVEN_BLANK_PENALTY, o->blank_penalty, &v->blank_penalty);
    if (o->words) give(v, LIN_GIVEN_SETTLE, o->settle, &v->settle);
    if (o->words) give(v, LIN_GIVEN_SHOW, o->show, &v->show);
    return LIN_OK;
}

static lin_status create(linnet_model *model, const linnet_decoder_options *given, linnet_decoder **decoder, lin_error *err)
{
    linnet_decoder_options o = defaults;
    *decoder = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "a decoder needs a model");
    lin_status status = lin_api_take(&o, sizeof o, given, "decoder_options", err);
    if (status == LIN_OK) status = check(&o, err);
    if (status != LIN_OK) return status;
    linnet_decoder *d = lin_calloc(1, sizeof *d);
    if (!d) return lin_no_memory(err, "a decoder", sizeof *d);
    atomic_init(&d->owners, 1);
    d->model = lin_api_keep_model(model);
    if (o.combine) d->combine = lin_api_keep_model(o.combine);
    status = values_of(&o, d, err);
    if (status == LIN_OK)
        status = lin_recognizer_open_decoding(&model->r, &d->values, &model->r.warnings, &d->decoding, err);
    if (status == LIN_OK && d->combine) d->decoding.combined = &d->combine->r;
    if (status == LIN_OK) status = lin_decoding_make_phrases(&d->decoding, o.phrases, o.n_phrases, &d->phrases, err);
    if (status == LIN_OK) d->decoding.context = (lin_search_context){.phones = d->phrases.phones, .words = d->phrases.words};
    if (status == LIN_OK) *decoder = d;
    else linnet_decoder_destroy(d);
    return status;
}

linnet_status linnet_decoder_create(linnet_model *model, const linnet_decoder_options *options, linnet_decoder **decoder,
                                    linnet_error *err)
{
    return create(model, options, decoder, err);
}

linnet_decoder *lin_api_keep_decoder(linnet_decoder *decoder)
{
    if (decoder) atomic_fetch_add(&decoder->owners, 1);
    return decoder;
}

void linnet_decoder_destroy(linnet_decoder *d)
{
    if (!d || atomic_fetch_sub(&d->owners, 1) > 1) return;
    lin_phrases_free(&d->phrases);
    lin_decoding_close(&d->decoding);
    lin_free(d->lexicon);
    lin_free(d->add_lexicon);
    lin_free(d->g2p);
    lin_free(d->lm);
    lin_free(d->rescore);
    linnet_model_destroy(d->combine);
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
