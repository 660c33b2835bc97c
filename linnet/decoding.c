// decoding.c - the decoder of one stream; see decoding.h. What it decodes with is opened in decoding_open.c.

#include "linnet/decoding.h"

#include <math.h>

#include "base/memory.h"

lin_decoding lin_decoding_greedy(int V, double row_seconds, double delay_s)
{
    const lin_search search = lin_search_greedy(V);
    return (lin_decoding){.search = search, .whole = search, .row_seconds = row_seconds, .delay_s = delay_s, .n_best = 1};
}

/* ---- one stream ------------------------------------------------------------------------------------------------------------ */

lin_status lin_decoder_create(lin_decoder *d, const lin_decoding *decoding, lin_error *err)
{
    const size_t bytes = lin_search_bytes(&decoding->search);
    d->decoding = decoding;
    d->state = lin_alloc(bytes, 1);
    if (!d->state) return lin_no_memory(err, "a decoder", bytes);
    lin_decoder_reset(d, 0);
    return LIN_OK;
}

void lin_decoder_free(lin_decoder *d)
{
    lin_free(d->state);
    lin_path_free(&d->path);
    lin_path_free(&d->tail);
    lin_combiner_destroy(d->combiner);
    lin_free(d->list);
    *d = (lin_decoder){0};
}

// When the sound was that gave a row at this time. Behind an early phone the delay grows with the time, to its full length.
static double earlier(const lin_decoding *d, int early, double at_s)
{
    const double less_s = at_s - d->delay_s;
    return early ? fmax(less_s, at_s / 2) : fmax(less_s, 0);
}

// 1 if a path begins with a phone that would have no length, as times are printed.
static int is_early(const lin_decoding *d, const lin_path *path)
{
    return path->n_phones > 0 && earlier(d, 0, (double)path->phones[0].end * d->row_seconds) < 0.001;
}

void lin_decoder_reset(lin_decoder *d, int64_t first_frame)
{
    lin_search_reset(&d->decoding->search, d->state, first_frame, 0);
    lin_path_clear(&d->path);
    lin_combiner_begin(d->combiner);
    d->early = 0;
}

double lin_decoding_seconds(const lin_decoding *d, int early, int64_t row)
{
    return earlier(d, early, (double)row * d->row_seconds);
}

static const char *spell(const void *context, int word)
{
    const lin_decoding *d = context;
    return lin_words_text(d->search.of, d->context.words, word);
}

lin_status lin_decoding_add(const lin_decoding *d, const lin_path *path, int *early, lin_result *result, lin_error *err)
{
    const lin_result_speller speller = d->search.kind == LIN_SEARCH_WORDS ? spell : NULL;
    const int phones = result->n_phones, words = result->n_words;
    lin_status status = lin_result_add_path(result, path, d->row_seconds, speller, d, err);
    *early |= is_early(d, path);
    for (int i = phones; i < result->n_phones && d->delay_s > 0; i++) {
        lin_result_phone *p = &result->phones[i];
        p->start_s = earlier(d, *early, p->start_s);
        p->end_s = earlier(d, *early, p->end_s);
    }
    for (int i = words; i < result->n_words && d->delay_s > 0; i++) {
        lin_result_word *w = &result->words[i];
        w->start_s = earlier(d, *early, w->start_s);
        w->end_s = earlier(d, *early, w->end_s);
    }
    return status;
}

lin_status lin_decoder_push(lin_decoder *d, const float *logp, int n, lin_error *err)
{
    lin_status status = lin_search_push(&d->decoding->search, d->state, &d->decoding->context, logp, n, &d->path, err);
    d->early |= is_early(d->decoding, &d->path);
    return status;
}

lin_status lin_decoder_take(lin_decoder *d, lin_result *result, lin_error *err)
{
    lin_status status = lin_decoding_add(d->decoding, &d->path, &d->early, result, err);
    if (status == LIN_OK) lin_path_clear(&d->path);
    return status;
}

lin_status lin_decoder_combine(lin_decoder *d, const lin_recognizer *first, int n_threads, lin_error *err)
{
    const lin_decoding *o = d->decoding;
    if (d->combiner) return LIN_OK;
    return lin_combiner_create(first, o->combined, o->combine_weight, o->blank_penalty, o->language, n_threads, &d->combiner,
                               err);
}

lin_status lin_decoder_hear(lin_decoder *d, const float *frames, int n, lin_error *err)
{
    return lin_combiner_push(d->combiner, frames, n, err);
}

int lin_decoder_judges(const lin_decoder *d) { return d->decoding->rescorer || d->combiner; }

// What hypothesis number `number` has behind the settled part.
static lin_status read_tail(void *context, int number, lin_path *tail, lin_error *err)
{
    const lin_decoder *d = context;
    return lin_search_nbest(&d->decoding->search, d->state, number, tail, err);
}

// The settled result and what a hypothesis has after it, with the scores of its judges; judged NULL: hypothesis `number` as the
// search has it.
static lin_status add_hypothesis(lin_decoder *d, const lin_judged *judged, int number, lin_result *result, lin_error *err)
{
    const int early = d->early; // of the settled result; each hypothesis may be early
    LIN_TRY(read_tail(d, judged ? judged->number : number, &d->tail, err));
    if (judged) {
        d->tail.score = judged->score;
        d->tail.acoustic = judged->acoustic;
        d->tail.language = judged->language;
    }
    lin_status status = lin_decoding_add(d->decoding, &d->path, &d->early, result, err);
    if (status == LIN_OK) status = lin_decoding_add(d->decoding, &d->tail, &d->early, result, err);
    d->early = early;
    return status;
}

// The best of n hypotheses as the result, and n_best of them as its alternatives if these are more than one.
static lin_status add_hypotheses(lin_decoder *d, int n, lin_result *result, lin_error *err)
{
    const lin_judged *judged = lin_decoder_judges(d) ? d->list : NULL;
    const int n_best = d->decoding->n_best;
    LIN_TRY(add_hypothesis(d, judged, 0, result, err));
    for (int i = 0; i < n && i < n_best && n_best > 1; i++) {
        lin_result *alternative = lin_result_add_alternative(result);
        if (!alternative) return lin_no_memory(err, "alternatives", sizeof *alternative);
        LIN_TRY(add_hypothesis(d, judged ? &judged[i] : NULL, i, alternative, err));
    }
    return LIN_OK;
}

static lin_status judge(lin_decoder *d, int n, lin_error *err)
{
    const lin_hypotheses h = {.n = n > 1 ? n : 1, // there always is a best one
                              .settled = &d->path,
                              .tail = &d->tail,
                              .read = read_tail,
                              .context = d,
                              .spell = spell,
                              .spell_context = d->decoding};
    LIN_TRY(lin_grow(&d->list, &d->room_list, (size_t)h.n, sizeof *d->list, "hypotheses", err));
    return lin_judge(d->decoding->rescorer, d->combiner, &h, d->list, err);
}

lin_status lin_decoder_finish(lin_decoder *d, lin_result *result, lin_error *err)
{
    const lin_search *search = &d->decoding->search;
    const int judges = lin_decoder_judges(d), several = d->decoding->n_best > 1 || judges;
    LIN_TRY(lin_search_finish(search, d->state, &d->decoding->context, several ? NULL : &d->path, err));
    if (!several) return lin_decoder_take(d, result, err);
    const int n = lin_search_hypotheses(search, d->state);
    lin_status status = judges ? judge(d, n, err) : LIN_OK;
    if (status == LIN_OK) status = add_hypotheses(d, n, result, err);
    lin_path_clear(&d->path);
    lin_combiner_begin(d->combiner);
    return status;
}
