// shared_options.c - what the values of shared options mean, and which exclude each other; see shared_options.h.

#include "app/shared_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/common.h"
#include "base/textfile.h"
#include "linnet/find.h"

void lin_choose_best(lin_model_values *model, lin_decoding_values *decoding, const char **second_pass)
{
    if (!model->best) return;
    if (second_pass && !*second_pass) *second_pass = "offline";
    if (!second_pass && !model->model) model->offline = 1;
    if (!decoding->combine) decoding->combine = "default";
    if (decoding->words && !decoding->rescore) decoding->rescore = "words";
}

lin_status lin_open_another(lin_recognizer *recognizer, const char *name, const lin_model_values *values, lin_error *err)
{
    const lin_warnings warnings = lin_complaints(0);
    lin_status status = lin_recognizer_open(recognizer, name, values->device, lin_model_precision(values), &warnings, err);
    recognizer->stop = &lin_interrupted;
    return status;
}

lin_status lin_open_recognizer(lin_recognizer *recognizer, const lin_model_values *values, lin_error *err)
{
    if (values->offline && values->model)
        return lin_fail(err, LIN_INVALID, "--offline and --model name two models; give one of them");
    return lin_open_another(recognizer, values->offline ? "offline" : values->model, values, err);
}

lin_status lin_live_models_open(lin_live_models *m, const lin_model_values *values, const char *second_pass,
                                const lin_decoding_values *decoding, int ipa, int quiet, lin_error *err)
{
    const lin_warnings warnings = lin_complaints(quiet);
    LIN_TRY(lin_open_recognizer(&m->recognizer, values, err));
    m->recognizer.fbank.dereverb = values->dereverb;
    if (second_pass) LIN_TRY(lin_open_another(&m->second, second_pass, values, err));
    if (decoding->combine) LIN_TRY(lin_open_another(&m->combined, decoding->combine, values, err));
    LIN_TRY(lin_decoding_open_for(&m->recognizer, decoding, &warnings, &m->decoding, err));
    if (decoding->combine) m->decoding.combined = &m->combined;
    if (decoding->words && decoding->readable)
        LIN_TRY(lin_find_open_punctuation(m->recognizer.phones, &m->punctuation, err));
    if (m->punctuation) LIN_TRY(lin_find_speller(m->recognizer.phones, &m->speller, err));
    m->words = (lin_writer_options){.phones = m->recognizer.phones, .ipa = ipa, .readable = m->punctuation, .speller = m->speller,
                                .least = decoding->min_confidence};
    return LIN_OK;
}

void lin_live_models_close(lin_live_models *m)
{
    lin_decoding_close(&m->decoding);
    lin_punctuation_destroy(m->punctuation);
    lin_g2p_rules_destroy(m->speller);
    lin_recognizer_close(&m->recognizer);
    lin_recognizer_close(&m->second);
    lin_recognizer_close(&m->combined);
}

/* ---- decoding -------------------------------------------------------------------------------------------------------------- */

// 1 if an option needs a beam.
static int needs_beam(const lin_decoding_values *v)
{
    lin_decoding_values without = *v;
    without.beam = 0;
    return lin_decoding_kind(&without) != LIN_SEARCH_GREEDY;
}

// Complains if an option was given that has no effect without others.
static int check_needs(const lin_parsed *parsed, const lin_decoding_values *v, int phrases)
{
    const int rescores = v->rescore != NULL, combines = v->combine != NULL, has_lm = v->lm || (v->words && !v->no_lm);
    const int searches = lin_decoding_kind(v) != LIN_SEARCH_GREEDY;
    const int pronounces = v->words || phrases || v->keywords.count || v->keywords_file;
    const struct {
        int has;
        const char *options, *needs; // options: each followed by a blank
    } rows[] = {
        {v->words, "unknown no-unknown all-words no-lm blank-penalty settle show min-confidence ", "--words"},
        {!v->grammar, "unknown no-unknown all-words settle lm-weight ", "a search without --grammar"},
        {v->words || !v->readable, "readable ", "--words"}, // --no-readable holds for phonemes anyway: it is no error
        {searches, "beam-score beam-labels skip-blank bonus ", "--beam or --words"},
        {pronounces, "lexicon add-lexicon g2p ", "--words, phrases or keywords"},
        {phrases, "context-bonus ", "--context or --phrase"},
        {has_lm || rescores, "lm-weight ", "--lm"},
        {rescores, "rescore-weight ", "--rescore"},
        {combines, "combine-weight ", "--combine"},
        {rescores || combines, "rescore-n ", "--rescore or --combine"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END; o++) {
            if (rows[i].has || o->type == LIN_OPTION_HEADING || !lin_list_has(rows[i].options, o->name)) continue;
            if (parsed->from[o - parsed->command->options] == LIN_FROM_DEFAULT) continue;
            return lin_misuse(parsed, "--%s%s%s needs %s", o->under ? o->under : "", o->under ? " " : "", o->name,
                              rows[i].needs);
        }
    }
    return LIN_EXIT_OK;
}

int lin_decoding_check(const lin_parsed *parsed, lin_decoding_values *v, int phrases_come)
{
    static const struct {
        const char *name;
        size_t at;
    } own[] = {
#define ROW(name, field) {name, offsetof(lin_decoding_values, field)}
        ROW("beam-score", beam_score), ROW("skip-blank", skip_blank), ROW("blank-penalty", blank_penalty), ROW("settle", settle),
        ROW("show", show), ROW("lm-weight", lm_weight), ROW("bonus", bonus), ROW("unknown", unknown),
        ROW("min-confidence", min_confidence)};
#undef ROW
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!lin_options_given(parsed, own[i].name)) *(double *)(void *)((char *)v + own[i].at) = NAN;
    if (!lin_options_given(parsed, "beam-labels")) v->beam_labels = -1;
    if (v->grammar && !v->words && lin_options_given(parsed, "words"))
        return lin_misuse(parsed, "--grammar and --no-words exclude each other");
    if (v->grammar) v->words = 1;
    if (v->grammar && (v->context || v->phrases.count || v->lm || v->rescore || v->combine))
        return lin_misuse(parsed, "--grammar excludes --context, --phrase, --lm, --rescore, --combine and --best");
    if (v->n_best > 1 && v->speakers) return lin_misuse(parsed, "--diarize and --n-best exclude each other");
    if (lin_options_given(parsed, "beam") && v->beam == 0 && needs_beam(v))
        return lin_misuse(parsed, "--beam 0 excludes words, language models, phrases and alternatives; leave it out");
    const int wrong = check_needs(parsed, v, phrases_come || v->context || v->phrases.count);
    if (wrong != LIN_EXIT_OK) return wrong;
    if (lin_options_given(parsed, "unknown") && v->no_unknown)
        return lin_misuse(parsed, "--tune unknown and --no-unknown exclude each other");
    if (v->lm && v->no_lm) return lin_misuse(parsed, "--lm and --no-lm exclude each other");
    if (!v->words && v->beam > LIN_BEAM_MAX) return lin_misuse(parsed, "--beam must be at most %d without --words", LIN_BEAM_MAX);
    if (v->words && v->n_best > LIN_WORDS_NBEST_MAX)
        return lin_misuse(parsed, "--n-best must be at most %d with --words", LIN_WORDS_NBEST_MAX);
    if ((v->rescore || v->combine) && v->beam && v->rescore_n > v->beam)
        return lin_misuse(parsed, "--tune rescore-n %d needs a --beam of %d or more", v->rescore_n, v->rescore_n);
    if (v->beam && v->n_best > v->beam)
        return lin_misuse(parsed, "--n-best %d needs a --beam of %d or more", v->n_best, v->n_best);
    return LIN_EXIT_OK;
}

/* ---- durations and times --------------------------------------------------------------------------------------------------- */

// As people write them: 90, 90s, 1.5m, 2h, 250ms, 1:30, 1:23:40.5. `name` is the option's.
static lin_status parse_span(const char *name, const char *text, double *seconds, lin_error *err)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    double value, all = 0;
    int colons = 0;
    const char *c = text;
    for (;; c++) {
        const size_t n = strspn(c, "0123456789."); // no sign, no exponent
        if (!lin_text_number(c, n, &value) || (colons && value >= 60)) break;
        c += n;
        all = 60 * all + value;
        if (*c != ':' || colons == 2) {
            for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
                if (strcmp(c, units[i].name) != 0 || (colons && i > 0)) continue;
                *seconds = all * units[i].seconds;
                return LIN_OK;
            }
            break;
        }
        colons++;
    }
    return lin_fail(err, LIN_INVALID, "--%s needs a time such as 90, 90s, 1.5m, 2h, 250ms, 1:30 or 1:23:40.5, not '%s'", name,
                    text);
}

/* ---- what the sound is ----------------------------------------------------------------------------------------------------- */

lin_status lin_input_channel(const lin_parsed *parsed, const lin_input_values *values, int *channel, lin_error *err)
{
    const lin_option *row = &parsed->command->options[lin_options_find(parsed->command, "channel")];
    const int takes_each = strstr(row->value, "each") != NULL;
    const char *text = values->channel;
    char *end;
    const long n = strtol(text, &end, 10);
    if (strcmp(text, "mix") == 0) *channel = LIN_CHANNEL_MIX;
    else if (strcmp(text, "each") == 0 && takes_each) *channel = LIN_CHANNEL_EACH;
    else if (!*end && n >= 1 && n <= LIN_AUDIO_MAX_CHANNELS) *channel = (int)n - 1;
    else
        return lin_fail(err, LIN_INVALID, "--channel must be mix%s or the number of a channel, from 1 (the left one) to %d, not "
                                          "'%.40s'", takes_each ? ", each" : "", LIN_AUDIO_MAX_CHANNELS, text);
    return LIN_OK;
}

static int is_described(const lin_input_values *v) { return v->rate_hz || v->channels || v->encoding != LIN_PCM_S16LE; }

lin_status lin_input_part(const lin_parsed *parsed, const lin_input_values *values, lin_part *part, lin_error *err)
{
    struct stat st;
    const int n = is_described(values) && !values->raw ? parsed->operands.count : 0;
    int files = 0; // regular files, which --rate, --channels and --encoding do not describe
    while (files < n && stat(parsed->operands.items[files], &st) == 0 && S_ISREG(st.st_mode)) files++;
    if (n && files == n)
        return lin_fail(err, LIN_INVALID, "--rate, --channels and --encoding have no effect on a file with a header; add --raw "
                                          "if it has none");
    *part = (lin_part){0, INFINITY};
    if (values->track && !*values->track) return lin_fail(err, LIN_INVALID, "--track must be a number or a language");
    lin_audio_choose_track(values->track);
    if (values->start) LIN_TRY(parse_span("start", values->start, &part->start_s, err));
    if (values->end) LIN_TRY(parse_span("end", values->end, &part->end_s, err));
    return part->end_s > part->start_s ? LIN_OK : lin_fail(err, LIN_INVALID, "--end must be after --start");
}

const lin_pcm_format *lin_input_format(const lin_input_values *values, lin_pcm_format *storage)
{
    *storage = (lin_pcm_format){.rate_hz = values->rate_hz ? values->rate_hz : 16000,
                                .channels = values->channels ? values->channels : 1,
                                .encoding = (lin_pcm_encoding)values->encoding,
                                .fallback = values->raw ? 0 : is_described(values) ? 2 : 1};
    return storage;
}
