// live.c - the growing result of sound without an end; see live.h.

#include "linnet/live.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "linnet/lane.h"

struct lin_live {
    const lin_recognizer *r;
    lin_live_options options;
    lin_live_sink sink;
    lin_worker *worker;
    lin_lane *lane;
    lin_decoding greedy; // where no decoding is given
    lin_decoder decoder;
    lin_result result, partial;
    int incomplete; // the last word of the partial
    int64_t row;    // the next, since the beginning
    int utterance, revision;
    int judged;             // rows since the partial was made
    int shown_phones, shown_words; // settled ones in the last view
    uint64_t shown_partial; // its hash in the last view
    double shown_start_s;
};

const char *lin_live_end_name(lin_live_end end)
{
    static const char *const names[] = {"", "before", "after", "longest", "asked", "stopped"};
    return names[end];
}

lin_live_options lin_live_options_default(void) { return (lin_live_options){.resets = 1, .rules = lin_endpoint_default()}; }

lin_live_delay lin_live_construction(const lin_recognizer *r)
{
    const double hop_s = r->model->features.hop_ms * 1e-3, window_s = r->model->features.window_ms * 1e-3;
    lin_live_delay d = {.step_s = r->model->config.stack * hop_s,
                        .ahead_s = r->model->config.ahead * hop_s,
                        .window_s = window_s > hop_s ? window_s - hop_s : 0};
    d.total_s = d.step_s + d.ahead_s + d.window_s;
    return d;
}

static void begin_utterance(lin_live *l)
{
    l->revision = 0;
    l->judged = 0;
    l->shown_phones = l->shown_words = 0;
    l->shown_partial = 0;
    l->shown_start_s = (double)l->row * l->r->row_seconds;
    l->incomplete = 0;
    lin_result_clear(&l->result);
    lin_result_clear(&l->partial);
}

lin_status lin_live_create(const lin_recognizer *recognizer, const lin_live_options *options, const lin_live_sink *sink,
                           lin_live **live, lin_error *err)
{
    *live = NULL;
    lin_status status;
    lin_live *l = lin_calloc(1, sizeof *l);
    if (!l) return lin_no_memory(err, "a live result", sizeof *l);
    const lin_lane_options lane = {.endpoints = 1, .rules = options->rules, .resets = options->resets};
    l->r = recognizer;
    l->options = *options;
    l->sink = *sink;
    status = lin_lane_create(recognizer, &l->lane, err);
    if (status == LIN_OK) status = lin_lane_begin(l->lane, &lane, err);
    if (status == LIN_OK) status = lin_worker_create(recognizer->encoder, 1, &l->worker, err);
    if (status == LIN_OK) status = lin_result_begin(&l->result, "live", NULL, 1, err);
    if (status == LIN_OK) status = lin_result_begin(&l->partial, "live", NULL, 1, err);
    l->greedy = (lin_decoding){.search = lin_search_greedy(recognizer->V), .row_seconds = recognizer->row_seconds, .n_best = 1};
    if (status == LIN_OK) status = lin_decoder_create(&l->decoder, options->decoding ? options->decoding : &l->greedy, err);
    if (status != LIN_OK) {
        lin_live_destroy(l);
        return status;
    }
    *live = l;
    return LIN_OK;
}

void lin_live_destroy(lin_live *l)
{
    if (!l) return;
    lin_lane_destroy(l->lane);
    if (l->worker) lin_worker_destroy(l->worker);
    lin_decoder_free(&l->decoder);
    lin_result_free(&l->result);
    lin_result_free(&l->partial);
    lin_free(l);
}

// Tells one partial from another by what of it is shown: times and confidences do not count.
static uint64_t hash_of(const lin_path *tail)
{
    uint64_t hash = 0; // of nothing
    if (tail->n_phones == 0) return hash;
    for (int i = 0; i < tail->n_phones; i++) hash = lin_hash(&tail->phones[i].label, sizeof tail->phones[i].label, hash);
    for (int i = 0; i < tail->n_words; i++) {
        const int word[] = {tail->words[i].word, tail->words[i].first_phone};
        hash = lin_hash(word, sizeof word, hash);
    }
    return lin_hash(&tail->incomplete, sizeof tail->incomplete, hash);
}

// The best hypothesis behind what is settled, which only rows that were judged since can have changed.
static lin_status guess(lin_live *l, uint64_t *hash, lin_error *err)
{
    lin_decoder *d = &l->decoder;
    *hash = l->shown_partial;
    if (!l->judged) return LIN_OK;
    lin_status status = lin_search_nbest(&d->decoding->search, d->state, 0, &d->tail, err);
    if (status != LIN_OK) return status;
    l->judged = 0;
    l->incomplete = d->tail.incomplete;
    *hash = hash_of(&d->tail);
    lin_result_clear(&l->partial);
    return lin_result_add_path(&l->partial, &d->tail, d->decoding->row_seconds, lin_decoding_speller(d->decoding), d->decoding,
                               err);
}

static void no_guess(lin_live *l)
{
    lin_result_clear(&l->partial);
    l->incomplete = 0;
    l->judged = 0;
}

// Tells the sink how the utterance stands, if there is anything in it.
static lin_status show(lin_live *l, lin_live_end end, lin_error *err)
{
    const lin_result *r = &l->result, *p = &l->partial;
    uint64_t hash = 0;
    lin_status status = LIN_OK;
    if (end == LIN_LIVE_GROWS) status = guess(l, &hash, err);
    else no_guess(l);
    if (status != LIN_OK) return status;
    if (end == LIN_LIVE_GROWS && r->n_phones == l->shown_phones && hash == l->shown_partial) return LIN_OK;
    if (p->n_phones == 0 && r->n_phones == 0 && l->revision == 0) return LIN_OK;
    // Where there is no phone any more, the utterance is where it last was.
    const lin_result *front = r->n_phones ? r : p, *back = p->n_phones ? p : r;
    if (front->n_phones) l->shown_start_s = front->phones[0].start_s;
    const lin_live_view v = {.utterance = l->utterance + 1,
                             .revision = ++l->revision,
                             .result = r,
                             .partial = p,
                             .incomplete = l->incomplete,
                             .old_phones = l->shown_phones,
                             .old_words = l->shown_words,
                             .start_s = l->shown_start_s,
                             .end_s = back->n_phones ? back->phones[back->n_phones - 1].end_s : l->shown_start_s,
                             .heard_s = (double)l->row * l->r->row_seconds,
                             .end = end};
    l->shown_phones = r->n_phones;
    l->shown_words = r->n_words;
    l->shown_partial = hash;
    l->result.seconds = l->partial.seconds = v.heard_s;
    return l->sink.show(l->sink.context, &v, err);
}

// What is settled by now. Alternatives are of the whole utterance: for them the decoder keeps what it has told.
static lin_status take(lin_live *l, lin_error *err)
{
    lin_decoder *d = &l->decoder;
    lin_result *r = &l->result;
    if (d->decoding->n_best == 1) return lin_decoder_take(d, r, err);
    const int phones = r->n_phones, words = r->n_words;
    lin_path more = d->path;
    if (phones) more.phones += phones;
    if (words) more.words += words;
    more.n_phones -= phones;
    more.n_words -= words;
    for (int i = 0; i < more.n_words; i++) more.words[i].first_phone -= phones;
    const double row_s = d->decoding->row_seconds;
    lin_status status = lin_result_add_path(r, &more, row_s, lin_decoding_speller(d->decoding), d->decoding, err);
    for (int i = 0; i < more.n_words; i++) more.words[i].first_phone += phones;
    return status;
}

// The utterance ends behind the last row that was judged.
static lin_status end_utterance(lin_live *l, lin_live_end end, lin_error *err)
{
    lin_decoder *d = &l->decoder;
    if (d->decoding->n_best > 1) lin_result_clear(&l->result); // all of it comes once more
    lin_status status = lin_decoder_finish(d, &l->result, err);
    if (status == LIN_OK) status = show(l, end, err);
    if (status != LIN_OK) return status;
    if (l->revision) l->utterance++;
    // Reset, a first phone equal to the last one is a new one. Carried on, a phone that the end has cut in two is still one.
    lin_search_reset(&d->decoding->search, d->state, l->row, !l->options.resets);
    begin_utterance(l);
    return LIN_OK;
}

static lin_status take_rows(void *context, const float *logp, int n, lin_error *err)
{
    lin_live *l = context;
    lin_status status = lin_decoder_push(&l->decoder, logp, n, err);
    if (status == LIN_OK) status = take(l, err);
    l->row += n;
    l->judged += n;
    return status;
}

static lin_status take_endpoint(void *context, lin_endpoint_rule rule, int64_t row, lin_error *err)
{
    (void)row;
    return end_utterance(context, LIN_LIVE_BEFORE + (rule - LIN_ENDPOINT_BEFORE), err);
}

static lin_lane_sink sink_of(lin_live *l) { return (lin_lane_sink){l, take_rows, take_endpoint}; }

lin_status lin_live_feed(lin_live *l, const float *frames, int n, lin_error *err)
{
    const lin_lane_sink sink = sink_of(l);
    lin_status status = lin_lane_feed(l->lane, l->worker, frames, n, &sink, err);
    return status == LIN_OK ? show(l, LIN_LIVE_GROWS, err) : status;
}

lin_status lin_live_end_utterance(lin_live *l, lin_error *err)
{
    const lin_lane_sink sink = sink_of(l);
    lin_status status = end_utterance(l, LIN_LIVE_ASKED, err);
    return status == LIN_OK ? lin_lane_end_utterance(l->lane, l->worker, &sink, err) : status;
}

lin_status lin_live_finish(lin_live *l, lin_error *err)
{
    const lin_lane_sink sink = sink_of(l);
    lin_status status = lin_lane_finish(l->lane, l->worker, &sink, err);
    return status == LIN_OK ? end_utterance(l, LIN_LIVE_STOPPED, err) : status;
}
