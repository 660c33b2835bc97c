// utterances.c - from rows of log-probabilities to results; see utterances.h.

#include "linnet/utterances.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "linnet/joined.h"
#include "linnet/recognizer.h"

struct lin_utterances {
    lin_utterances_options options;
    lin_utterances_sink sink;
    lin_decoding greedy; // where no decoding is given
    lin_decoder decoder;
    lin_endpoint endpoint;
    lin_joined joined;   // where there is a whole result
    lin_result *whole;   // NULL: a result for each utterance
    lin_result settled, provisional;
    int incomplete;      // the last word of `provisional`
    int64_t row;         // the next, since the beginning
    int utterance, revision;
    int decoded;         // rows since `provisional` was made
    int shown_phones, shown_words; // settled ones in the last view
    uint64_t shown_provisional;    // its hash in the last view
    double shown_start_s;
    // For a second pass:
    int per_row;
    const float *next; // [n_next, D] frames of the rows that are pushed
    int n_next;
    lin_matrix frames; // of the utterance, the first of row `first_row`
    int64_t first_row;
    int lacks_frames;  // its beginning is not known: it was saved and loaded
    int replaced;
};

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

static double row_seconds(const lin_utterances *u) { return u->decoder.decoding->row_seconds; }

static void begin_utterance(lin_utterances *u)
{
    u->revision = 0;
    u->decoded = 0;
    u->shown_phones = u->shown_words = 0;
    u->shown_provisional = 0;
    u->shown_start_s = lin_decoding_seconds(u->decoder.decoding, u->decoder.early, u->row);
    u->incomplete = 0;
    u->frames.rows = 0;
    u->first_row = u->row;
    u->lacks_frames = 0;
    u->replaced = 0;
    lin_result_clear(&u->settled);
    lin_result_clear(&u->provisional);
}

lin_status lin_utterances_create(const lin_recognizer *r, const lin_utterances_options *options,
                                 const lin_utterances_sink *sink, lin_utterances **out, lin_error *err)
{
    *out = NULL;
    lin_status status = options->ends.endpoints ? lin_endpoint_check(&options->ends.rules, err) : LIN_OK;
    if (status != LIN_OK) return status;
    lin_utterances *u = lin_calloc(1, sizeof *u);
    if (!u) return lin_no_memory(err, "results", sizeof *u);
    u->options = *options;
    if (sink) u->sink = *sink;
    u->per_row = r->model->config.stack;
    u->frames.columns = r->model->config.mel_bins;
    u->greedy = lin_decoding_greedy(r->V, r->row_seconds, r->delay_s);
    status = lin_result_begin(&u->settled, "live", NULL, 1, err);
    if (status == LIN_OK) status = lin_result_begin(&u->provisional, "live", NULL, 1, err);
    if (status == LIN_OK) status = lin_decoder_create(&u->decoder, options->decoding ? options->decoding : &u->greedy, err);
    if (status != LIN_OK) {
        lin_utterances_destroy(u);
        return status;
    }
    lin_utterances_begin(u, NULL);
    *out = u;
    return LIN_OK;
}

void lin_utterances_destroy(lin_utterances *u)
{
    if (!u) return;
    lin_decoder_free(&u->decoder);
    lin_joined_free(&u->joined);
    lin_result_free(&u->settled);
    lin_result_free(&u->provisional);
    lin_matrix_free(&u->frames);
    lin_free(u);
}

lin_status lin_utterances_reserve(lin_utterances *u, int rows, lin_error *err)
{
    lin_status status = lin_path_reserve(&u->decoder.path, rows + 1, 0, err);
    return status == LIN_OK ? lin_result_reserve(&u->settled, rows + 1, 0, err) : status;
}

size_t lin_utterances_bytes(const lin_utterances *u)
{
    return sizeof *u + lin_search_bytes(&u->decoder.decoding->search) +
           (size_t)u->settled.capacity * (sizeof *u->settled.phones + sizeof *u->decoder.path.phones);
}

void lin_utterances_combine(lin_utterances *u, struct lin_combiner *combiner) { u->decoder.combiner = combiner; }

void lin_utterances_set_sink(lin_utterances *u, const lin_utterances_sink *sink)
{
    u->sink = sink ? *sink : (lin_utterances_sink){0};
}

void lin_utterances_begin(lin_utterances *u, lin_result *whole)
{
    u->whole = whole;
    u->row = 0;
    u->utterance = 0;
    lin_decoder_reset(&u->decoder, 0);
    lin_endpoint_reset(&u->endpoint, &u->options.ends.rules, row_seconds(u));
    lin_joined_begin(&u->joined);
    begin_utterance(u);
}

/* ---- views ----------------------------------------------------------------------------------------------------------------- */

// Tells one provisional path from another by what of it is shown: times and confidences do not count.
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

// Words that may well change are shown by their phones: the first one of less confidence and all after it as one that goes on.
static void hold_back(lin_path *tail, double show)
{
    for (int i = 0; i < tail->n_words; i++) {
        lin_path_word *w = &tail->words[i];
        if (w->confidence >= show) continue;
        w->word = LIN_WORD_UNKNOWN;
        w->n_phones = tail->n_phones - w->first_phone;
        w->end = tail->words[tail->n_words - 1].end;
        tail->n_words = i + 1;
        tail->incomplete = 1;
    }
}

// The best hypothesis behind what is settled, which only rows that were decoded since can have changed.
static lin_status make_provisional(lin_utterances *u, uint64_t *hash, lin_error *err)
{
    lin_decoder *d = &u->decoder;
    *hash = u->shown_provisional;
    if (!u->decoded) return LIN_OK;
    lin_status status = lin_search_nbest(&d->decoding->search, d->state, 0, &d->tail, err);
    if (status != LIN_OK) return status;
    u->decoded = 0;
    hold_back(&d->tail, d->decoding->show);
    u->incomplete = d->tail.incomplete;
    *hash = hash_of(&d->tail);
    lin_result_clear(&u->provisional);
    int early = d->early;
    return lin_decoding_add(d->decoding, &d->tail, &early, &u->provisional, err);
}

static void drop_provisional(lin_utterances *u)
{
    lin_result_clear(&u->provisional);
    u->incomplete = 0;
    u->decoded = 0;
}

// Tells the sink how the utterance stands, if there is anything in it.
static lin_status show(lin_utterances *u, linnet_end end, lin_error *err)
{
    const lin_result *r = &u->settled, *p = &u->provisional;
    uint64_t hash = 0;
    lin_status status = LIN_OK;
    if (!u->sink.show || u->whole) return LIN_OK;
    if (end == LINNET_GROWS) status = make_provisional(u, &hash, err);
    else drop_provisional(u);
    if (status != LIN_OK) return status;
    if (end == LINNET_GROWS && r->n_phones == u->shown_phones && hash == u->shown_provisional) return LIN_OK;
    if (p->n_phones == 0 && r->n_phones == 0 && u->revision == 0) return LIN_OK;
    // Where no phone is left, the utterance is where it last was.
    const lin_result *front = r->n_phones ? r : p, *back = p->n_phones ? p : r;
    if (front->n_phones) u->shown_start_s = front->phones[0].start_s;
    const lin_session_view v = {.utterance = u->utterance + 1,
                                .revision = ++u->revision,
                                .settled = r,
                                .provisional = p,
                                .incomplete = u->incomplete,
                                .old_phones = u->shown_phones,
                                .old_words = u->shown_words,
                                .start_s = u->shown_start_s,
                                .end_s = back->n_phones ? back->phones[back->n_phones - 1].end_s : u->shown_start_s,
                                .processed_s = (double)u->row * row_seconds(u),
                                .end = end,
                                .replaced = u->replaced};
    u->shown_phones = r->n_phones;
    u->shown_words = r->n_words;
    u->shown_provisional = hash;
    u->settled.seconds = u->provisional.seconds = v.processed_s;
    return u->sink.show(u->sink.context, &v, err);
}

lin_status lin_utterances_show(lin_utterances *u, lin_error *err) { return show(u, LINNET_GROWS, err); }

/* ---- results --------------------------------------------------------------------------------------------------------------- */

static lin_result *result_of(lin_utterances *u) { return u->whole ? u->whole : &u->settled; }

static lin_status tell_settled(lin_utterances *u, lin_error *err)
{
    lin_result *result = result_of(u);
    if (!u->sink.settled) return LIN_OK;
    lin_status status = u->sink.settled(u->sink.context, result, err);
    lin_result_clear(result);
    return status;
}

// Alternatives are of the whole utterance: for them the decoder keeps the path that was shown.
static lin_status add_new_part(lin_utterances *u, lin_error *err)
{
    lin_decoder *d = &u->decoder;
    lin_result *r = &u->settled;
    const int phones = r->n_phones, words = r->n_words;
    lin_path more = d->path;
    if (phones) more.phones += phones;
    if (words) more.words += words;
    more.n_phones -= phones;
    more.n_words -= words;
    for (int i = 0; i < more.n_words; i++) more.words[i].first_phone -= phones;
    lin_status status = lin_decoding_add(d->decoding, &more, &d->early, r, err);
    for (int i = 0; i < more.n_words; i++) more.words[i].first_phone += phones;
    return status;
}

// What is settled by now.
static lin_status take_settled(lin_utterances *u, lin_error *err)
{
    if (u->decoder.decoding->n_best > 1) return u->whole || !u->sink.show ? LIN_OK : add_new_part(u, err);
    lin_status status = lin_decoder_take(&u->decoder, result_of(u), err);
    return status == LIN_OK ? tell_settled(u, err) : status;
}

void lin_utterances_give_frames(lin_utterances *u, const float *frames, int n)
{
    u->next = frames;
    u->n_next = n;
}

// Those of n more rows; of the last row of a sound some are missing.
static lin_status keep_frames(lin_utterances *u, int n, lin_error *err)
{
    const int more = n * u->per_row < u->n_next ? n * u->per_row : u->n_next;
    const size_t D = (size_t)u->frames.columns;
    if (!u->options.second || more == 0) return LIN_OK;
    lin_status status = lin_matrix_reserve(&u->frames, u->frames.rows + more, (int)D, err);
    if (status != LIN_OK) return status;
    memcpy(u->frames.data + (size_t)u->frames.rows * D, u->next, (size_t)more * D * sizeof *u->next);
    u->frames.rows += more;
    lin_utterances_give_frames(u, u->next + (size_t)more * D, u->n_next - more);
    return LIN_OK;
}

static lin_status take_rows(lin_utterances *u, const float *logp, int n, lin_error *err)
{
    lin_status status = keep_frames(u, n, err);
    if (status == LIN_OK) status = lin_decoder_push(&u->decoder, logp, n, err);
    if (status == LIN_OK) status = take_settled(u, err);
    u->row += n;
    u->decoded += n;
    return status;
}

// The result of an utterance that has ended becomes that of the second pass. Where the first one has found nothing there is
// nothing to improve: silence costs no second pass.
static lin_status decode_again(lin_utterances *u, lin_error *err)
{
    const int empty = u->settled.n_phones == 0 && u->revision == 0;
    if (!u->options.second || !u->sink.show || u->lacks_frames || empty) return LIN_OK;
    if (u->sink.aside) u->sink.aside(u->sink.context, 1);
    const lin_status status = lin_second_pass_run(u->options.second, u->decoder.decoding, u->frames.data, u->frames.rows,
                                                  u->first_row, &u->settled, err);
    if (u->sink.aside) u->sink.aside(u->sink.context, 0);
    u->replaced |= status == LIN_OK;
    return status == LIN_STOPPED ? LIN_OK : status;
}

// The utterance ends behind the last row that was decoded.
static lin_status end_utterance(lin_utterances *u, linnet_end end, lin_error *err)
{
    lin_decoder *d = &u->decoder;
    // After a reset a first phone equal to the last one is a new one. Carried on, a phone that the end has cut in two stays one.
    const int carry = !u->options.ends.resets;
    lin_status status;
    if (u->whole) {
        status = end == LINNET_FINISHED ? lin_joined_finish(&u->joined, d, u->whole, err)
                                            : lin_joined_endpoint(&u->joined, d, u->row, carry, u->whole, err);
        if (status == LIN_OK && end != LINNET_FINISHED) status = tell_settled(u, err);
    } else {
        if (d->decoding->n_best > 1) lin_result_clear(&u->settled); // all of it comes once more
        status = lin_decoder_finish(d, &u->settled, err);
        if (status == LIN_OK) status = tell_settled(u, err);
        if (status == LIN_OK) status = decode_again(u, err);
        if (status == LIN_OK) status = show(u, end, err);
    }
    if (status != LIN_OK) return status;
    if (u->revision) u->utterance++;
    if (!u->whole) lin_search_reset(&d->decoding->search, d->state, u->row, carry);
    begin_utterance(u);
    return LIN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

// Of n rows those up to an endpoint, which *rule tells: how many.
static int up_to_endpoint(lin_utterances *u, const float *logp, int n, const double *db, lin_endpoint_rule *rule)
{
    const int V = u->decoder.decoding->search.V;
    for (int i = 0; i < n; i++) {
        *rule = lin_endpoint_push(&u->endpoint, logp + (size_t)i * (size_t)V, db ? db[i] : NAN);
        const double at_s = (double)(u->row + i + 1) * row_seconds(u);
        if (*rule != LIN_ENDPOINT_NONE && at_s >= u->options.ends.from_s) return i + 1;
    }
    *rule = LIN_ENDPOINT_NONE;
    return n;
}

lin_status lin_utterances_push(lin_utterances *u, const float *logp, int n, const double *db, int *taken, int *reset,
                               lin_error *err)
{
    const size_t V = (size_t)u->decoder.decoding->search.V;
    lin_status status = LIN_OK;
    *taken = *reset = 0;
    if (u->sink.rows) {
        *taken = n;
        return u->sink.rows(u->sink.context, logp, n, err);
    }
    while (*taken < n && !*reset && status == LIN_OK) {
        lin_endpoint_rule rule = LIN_ENDPOINT_NONE;
        const float *rows = logp + (size_t)*taken * V;
        int most = n - *taken;
        if (u->options.ends.endpoints) most = up_to_endpoint(u, rows, most, db ? db + *taken : NULL, &rule);
        status = take_rows(u, rows, most, err);
        *taken += most;
        if (status != LIN_OK || rule == LIN_ENDPOINT_NONE) continue;
        *reset = u->options.ends.resets;
        status = end_utterance(u, LINNET_BEFORE + (rule - LIN_ENDPOINT_BEFORE), err);
    }
    return status;
}

lin_status lin_utterances_add(lin_utterances *u, const lin_path_phone *phones, int n, int rows, lin_error *err)
{
    lin_path *path = &u->decoder.path;
    lin_status status = lin_path_reserve(path, n, 0, err);
    if (status != LIN_OK) return status;
    if (n) memcpy(path->phones + path->n_phones, phones, (size_t)n * sizeof *phones);
    path->n_phones += n;
    u->row += rows;
    return take_settled(u, err);
}

lin_status lin_utterances_end(lin_utterances *u, lin_error *err)
{
    lin_status status = end_utterance(u, LINNET_ASKED, err);
    lin_endpoint_begin_utterance(&u->endpoint);
    return status;
}

lin_status lin_utterances_finish(lin_utterances *u, lin_error *err) { return end_utterance(u, LINNET_FINISHED, err); }

const lin_reset_options *lin_utterances_ends(const lin_utterances *u) { return &u->options.ends; }

int lin_utterances_may_reset(const lin_utterances *u, int rows)
{
    return u->options.ends.endpoints && u->options.ends.resets && !u->sink.rows &&
           (double)(u->row + rows) * row_seconds(u) >= u->options.ends.from_s;
}

/* ---- saved streams --------------------------------------------------------------------------------------------------------- */

void lin_utterances_decode_by(lin_utterances *u, const lin_decoding *decoding) { u->decoder.decoding = decoding; }

const lin_search *lin_utterances_search(const lin_utterances *u) { return &u->decoder.decoding->search; }

void *lin_utterances_decoder(lin_utterances *u) { return u->decoder.state; }

const lin_endpoint *lin_utterances_endpoint(const lin_utterances *u) { return &u->endpoint; }

int lin_utterances_early(const lin_utterances *u) { return u->decoder.early; }

void lin_utterances_go_on(lin_utterances *u, int64_t row, int early, const lin_endpoint *endpoint)
{
    u->row = row;
    u->decoder.early = early;
    if (endpoint) u->endpoint = *endpoint;
    begin_utterance(u);
    u->lacks_frames = row > 0;
}

int lin_utterances_frames(const lin_utterances *u, const float **frames, int *n, int64_t *first)
{
    *frames = u->frames.data;
    *n = u->frames.rows;
    *first = u->first_row;
    return u->options.second && !u->lacks_frames;
}

lin_status lin_utterances_set_frames(lin_utterances *u, const float *frames, int64_t n, int64_t first, lin_error *err)
{
    const size_t D = (size_t)u->frames.columns;
    if (!u->options.second) return LIN_OK;
    if (first < 0 || first > u->row || n > INT_MAX || n != (u->row - first) * u->per_row)
        return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    lin_status status = lin_matrix_reserve(&u->frames, (int)n, (int)D, err);
    if (status != LIN_OK) return status;
    if (n) memcpy(u->frames.data, frames, (size_t)n * D * sizeof *frames);
    u->frames.rows = (int)n;
    u->first_row = first;
    u->lacks_frames = 0;
    return LIN_OK;
}

static lin_status copy_path(lin_path *to, const lin_path *from, lin_error *err)
{
    lin_path_clear(to);
    lin_status status = lin_path_reserve(to, from->n_phones, from->n_words, err);
    if (status != LIN_OK) return status;
    const lin_path room = *to;
    *to = *from;
    to->phones = room.phones;
    to->words = room.words;
    to->phones_capacity = room.phones_capacity;
    to->words_capacity = room.words_capacity;
    if (from->n_phones) memcpy(to->phones, from->phones, (size_t)from->n_phones * sizeof *to->phones);
    if (from->n_words) memcpy(to->words, from->words, (size_t)from->n_words * sizeof *to->words);
    return LIN_OK;
}

lin_status lin_utterances_copy(lin_utterances *u, const lin_utterances *from, lin_error *err)
{
    memcpy(u->decoder.state, from->decoder.state, lin_search_bytes(lin_utterances_search(from)));
    u->endpoint = from->endpoint;
    u->incomplete = from->incomplete;
    u->row = from->row;
    u->utterance = from->utterance;
    u->revision = from->revision;
    u->decoded = from->decoded;
    u->shown_phones = from->shown_phones;
    u->shown_words = from->shown_words;
    u->shown_provisional = from->shown_provisional;
    u->shown_start_s = from->shown_start_s;
    lin_result_clear(&u->settled);
    lin_result_clear(&u->provisional);
    lin_status status = copy_path(&u->decoder.path, &from->decoder.path, err);
    if (status == LIN_OK) status = lin_result_follow(&u->settled, &from->settled, err);
    return status == LIN_OK ? lin_result_follow(&u->provisional, &from->provisional, err) : status;
}
