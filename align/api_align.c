// api_align.c - linnet.h: aligners, which share a lexicon and make what a thread needs for each call.

#include <string.h>

#include "align/aligner.h"
#include "base/memory.h"
#include "linnet/api.h"

struct linnet_aligner {
    linnet_model *model;
    linnet_aligner_options options;
    lin_wording lexicon; // without a dictionary: texts are phones
};

static const linnet_aligner_options defaults = {.beam = 600, .follow_sound = 1};

void linnet_aligner_options_init(linnet_aligner_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

linnet_status linnet_aligner_create(linnet_model *model, const linnet_aligner_options *options, linnet_aligner **aligner,
                                    linnet_error *err)
{
    linnet_aligner_options o = defaults;
    *aligner = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    LIN_TRY(lin_api_take(&o, sizeof o, options, "aligner_options", err));
    if (!(o.beam >= 1 && o.beam <= 1e9)) return lin_fail(err, LIN_INVALID, "beam is %g; must be 1 to 1e9", o.beam);
    linnet_aligner *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, "an aligner", sizeof *a);
    a->model = lin_api_keep_model(model);
    a->options = o;
    a->options.lexicon = a->options.add_lexicon = a->options.g2p = NULL; // the caller's
    const lin_wording_files files = {.dictionary = o.lexicon, .added = o.add_lexicon, .g2p = o.g2p};
    lin_status status = LIN_OK;
    if (!o.phonemes)
        status = lin_wording_open_for(&a->lexicon, &files, model->r.phones, "words", "", &model->r.warnings, err);
    if (status == LIN_OK) *aligner = a;
    else linnet_aligner_destroy(a);
    return status;
}

void linnet_aligner_destroy(linnet_aligner *a)
{
    if (!a) return;
    lin_wording_close(&a->lexicon);
    linnet_model_destroy(a->model);
    lin_free(a);
}

static void warn_of_guesses(const linnet_aligner *a, const lin_alignment *made)
{
    lin_lines lines = {0};
    if (!made->guesses.n) return;
    lin_lines_begin(&lines, made->guesses.data, made->guesses.n);
    while (lin_lines_next(&lines)) {
        const char *tab = memchr(lines.text, '\t', lines.n);
        const int n = tab ? (int)(tab - lines.text) : 0;
        if (tab) lin_warn(&a->model->r.warnings, "'%.*s' is not in the lexicon; it is pronounced %.*s", n, lines.text,
                          (int)lines.n - n - 1, tab + 1);
    }
}

// Moves the result of the alignment to the caller.
static lin_status hand_over(const linnet_aligner *a, lin_alignment *made, linnet_result **result, lin_error *err)
{
    linnet_result *r;
    char doubt[512] = "";
    lin_status status = lin_api_result_create(a->model, &r, err);
    if (status != LIN_OK) return status;
    status = lin_result_follow(&r->result, &made->results[0], err);
    r->info.fit = made->report.fit;
    r->info.incomplete = made->incomplete;
    lin_alignment_doubt(made, doubt, sizeof doubt);
    memcpy(r->warning, made->warning, sizeof r->warning);
    if (!*r->warning) memcpy(r->warning, doubt, sizeof r->warning - 1);
    warn_of_guesses(a, made);
    if (status == LIN_OK) status = lin_api_result_update(r, 1, err);
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}

linnet_status linnet_align(linnet_aligner *a, const linnet_sound *given, const char *text, linnet_result **result,
                           linnet_error *err)
{
    linnet_sound o;
    lin_sound sound;
    lin_aligner *inner;
    lin_alignment made = {0};
    *result = NULL;
    if (!a || !text) return lin_fail(err, LIN_INVALID, "there is no %s", a ? "text" : "aligner");
    LIN_TRY(lin_api_sound(given, &o, &sound, err));
    const lin_aligner_options how = {.beam = a->options.beam, .follow_sound = a->options.follow_sound != 0,
                                     .n_threads = o.threads};
    LIN_TRY(lin_aligner_create(&a->model->r, &a->lexicon, &how, &inner, err));
    const lin_aligner_input input = {.id = "sound", .sound = &sound, .text = text, .n_text = strlen(text),
                                     .kind = a->options.phonemes ? LIN_ALIGNER_PHONES : LIN_ALIGNER_WORDS,
                                     .progress = o.progress, .context = o.context};
    lin_status status = lin_aligner_align(inner, &input, &made, err);
    if (status == LIN_OK) status = hand_over(a, &made, result, err);
    lin_alignment_free(&made);
    lin_aligner_destroy(inner);
    return status;
}
