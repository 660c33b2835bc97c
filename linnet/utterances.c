// utterances.c - from rows of log-probabilities to results; see utterances.h.

#include "linnet/utterances.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* ---- the rows of one stream ------------------------------------------------------------------------------------------------ */

lin_status lin_row_decoder_create(lin_row_decoder *d, const lin_decoding *decoding, lin_error *err)
{
    const size_t bytes = lin_search_bytes(&decoding->search);
    d->decoding = decoding;
    d->state = lin_alloc(bytes, 1);
    if (!d->state) return lin_no_memory(err, "a decoder", bytes);
    lin_row_decoder_reset(d, 0);
    return LIN_OK;
}

void lin_row_decoder_free(lin_row_decoder *d)
{
    lin_free(d->state);
    lin_path_free(&d->path);
    lin_path_free(&d->tail);
    lin_combiner_destroy(d->combiner);
    lin_free(d->list);
    *d = (lin_row_decoder){0};
}

void lin_row_decoder_reset(lin_row_decoder *d, int64_t first_frame)
{
    lin_search_reset(&d->decoding->search, d->state, first_frame, 0);
    lin_path_clear(&d->path);
    lin_combiner_begin(d->combiner);
    d->early = 0;
}

lin_status lin_row_decoder_push(lin_row_decoder *d, const float *logp, int n, lin_error *err)
{
    return lin_search_push(&d->decoding->search, d->state, &d->decoding->context, logp, n, &d->path, err);
}

lin_status lin_row_decoder_take(lin_row_decoder *d, lin_result *result, lin_error *err)
{
    lin_status status = lin_decoding_add(d->decoding, &d->path, &d->early, result, err);
    if (status == LIN_OK) lin_path_clear(&d->path);
    return status;
}

lin_status lin_row_decoder_combine(lin_row_decoder *d, const lin_recognizer *first, int n_threads, lin_error *err)
{
    const lin_decoding *o = d->decoding;
    if (d->combiner) return LIN_OK;
    return lin_combiner_create(first, o->combined, o->combine_weight, o->blank_penalty, o->language, n_threads, &d->combiner,
                               err);
}

int lin_row_decoder_judges(const lin_row_decoder *d) { return d->decoding->rescorer || d->combiner; }

// What hypothesis number `number` has behind the settled part.
static lin_status read_tail(void *context, int number, lin_path *tail, lin_error *err)
{
    const lin_row_decoder *d = context;
    return lin_search_nbest(&d->decoding->search, d->state, number, tail, err);
}

// The settled result and what a hypothesis has after it, with the scores of its judges; judged NULL: hypothesis `number` as the
// search has it.
static lin_status add_hypothesis(lin_row_decoder *d, const lin_judged *judged, int number, lin_result *result, lin_error *err)
{
    int early = d->early;
    LIN_TRY(read_tail(d, judged ? judged->number : number, &d->tail, err));
    if (judged) {
        d->tail.score = judged->score;
        d->tail.acoustic = judged->acoustic;
        d->tail.language = judged->language;
    }
    LIN_TRY(lin_decoding_add(d->decoding, &d->path, &early, result, err));
    d->early = early; // that of the settled result: each hypothesis may be early
    return lin_decoding_add(d->decoding, &d->tail, &early, result, err);
}

// The best of n hypotheses as the result, and n_best of them as its alternatives if these are more than one.
static lin_status add_hypotheses(lin_row_decoder *d, int n, lin_result *result, lin_error *err)
{
    const lin_judged *judged = lin_row_decoder_judges(d) ? d->list : NULL;
    const int n_best = d->decoding->n_best;
    LIN_TRY(add_hypothesis(d, judged, 0, result, err));
    for (int i = 0; i < n && i < n_best && n_best > 1; i++) {
        lin_result *alternative = lin_result_add_alternative(result);
        if (!alternative) return lin_no_memory(err, "alternatives", sizeof *alternative);
        LIN_TRY(add_hypothesis(d, judged ? &judged[i] : NULL, i, alternative, err));
    }
    return LIN_OK;
}

static lin_status judge(lin_row_decoder *d, int n, lin_error *err)
{
    const lin_hypotheses h = {.n = n > 1 ? n : 1, // there always is a best one
                              .settled = &d->path,
                              .tail = &d->tail,
                              .read = read_tail,
                              .context = d,
                              .spell = lin_decoding_spell,
                              .spell_context = d->decoding};
    LIN_TRY(lin_grow(&d->list, &d->room_list, (size_t)h.n, sizeof *d->list, "hypotheses", err));
    return lin_judge(d->decoding->rescorer, d->combiner, &h, d->list, err);
}

lin_status lin_row_decoder_finish(lin_row_decoder *d, lin_result *result, lin_error *err)
{
    const lin_search *search = &d->decoding->search;
    const int judges = lin_row_decoder_judges(d), several = d->decoding->n_best > 1 || judges;
    LIN_TRY(lin_search_finish_keywords(search, d->state, &d->path, err));
    LIN_TRY(lin_search_finish(search, d->state, &d->decoding->context, several ? NULL : &d->path, err));
    if (!several) return lin_row_decoder_take(d, result, err);
    const int n = lin_search_hypotheses(search, d->state);
    lin_status status = judges ? judge(d, n, err) : LIN_OK;
    if (status == LIN_OK) status = add_hypotheses(d, n, result, err);
    lin_path_clear(&d->path);
    lin_combiner_begin(d->combiner);
    return status;
}

/* ---- a second pass --------------------------------------------------------------------------------------------------------- */

struct lin_second_pass {
    const lin_recognizer *r;
    lin_second_network *network;
    lin_decoding decoding; // of the stream, with this model's time between two rows and emission delay
    lin_row_decoder decoder;
};

// The streams' decoding, whose phrases may have changed, from the first row of this model that is not before the stream's `row`;
// times are earlier by what lies between. Returns that row.
static int64_t decode_by(lin_second_pass *p, const lin_decoding *decoding, int64_t row)
{
    const double row_s = p->r->row_seconds, from_s = (double)row * decoding->row_seconds;
    p->decoding = *decoding;
    p->decoding.search = decoding->whole;
    p->decoding.delay_s = p->r->delay_s;
    if (row_s == decoding->row_seconds) return row;
    const int64_t first = (int64_t)ceil(from_s / row_s);
    p->decoding.row_seconds = row_s;
    p->decoding.delay_s += (double)first * row_s - from_s;
    return first;
}

lin_status lin_second_pass_create(const lin_recognizer *first, const lin_recognizer *second, const lin_decoding *decoding,
                                  int n_threads, lin_second_pass **pass, lin_error *err)
{
    const lin_decoding greedy = lin_decoding_greedy(second->V, first->row_seconds, 0);
    *pass = NULL;
    lin_second_pass *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a second pass", sizeof *p);
    p->r = second;
    decode_by(p, decoding ? decoding : &greedy, 0);
    lin_status status = lin_row_decoder_create(&p->decoder, &p->decoding, err);
    if (status == LIN_OK)
        status = lin_second_network_create(first, second, n_threads, p->decoding.language, &p->network, err);
    if (status == LIN_OK) status = lin_row_decoder_combine(&p->decoder, first, n_threads, err);
    if (status == LIN_OK) *pass = p;
    else lin_second_pass_destroy(p);
    return status;
}

void lin_second_pass_destroy(lin_second_pass *p)
{
    if (!p) return;
    lin_second_network_destroy(p->network);
    lin_row_decoder_free(&p->decoder);
    lin_free(p);
}

static lin_status go_on(const lin_second_pass *p, lin_error *err)
{
    return p->r->skip && *p->r->skip ? lin_fail(err, LIN_STOPPED, "the second pass is skipped") : LIN_OK;
}

static lin_status push_rows(void *context, const float *logp, int n, lin_error *err)
{
    lin_second_pass *p = context;
    LIN_TRY(go_on(p, err));
    return lin_row_decoder_push(&p->decoder, logp, n, err);
}

// Frames [n, D] of one utterance, the first of which is that of row `row` of the stream: what is recognised in them replaces the
// result. LIN_STOPPED: it was skipped (lin_recognizer.skip), and the result is unchanged.
static lin_status run_second_pass(lin_second_pass *p, const lin_decoding *decoding, const float *frames, int n, int64_t row,
                                  lin_result *result, lin_error *err)
{
    lin_row_decoder_reset(&p->decoder, decode_by(p, decoding, row));
    LIN_TRY(go_on(p, err));
    LIN_TRY(lin_second_network_run(p->network, frames, n, push_rows, p, err));
    LIN_TRY(lin_combiner_push(p->decoder.combiner, frames, n, err));
    LIN_TRY(go_on(p, err));
    lin_result_clear(result);
    return lin_row_decoder_finish(&p->decoder, result, err);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

static double row_seconds(const lin_utterances *u) { return u->decoder.decoding->row_seconds; }

static void begin_utterance(lin_utterances *u)
{
    u->at = (lin_utterances_position){
        .endpoint = u->at.endpoint,
        .row = u->at.row,
        .utterance = u->at.utterance,
        .revision = u->at.revision,
        .shown_start_s = lin_decoding_seconds(u->decoder.decoding, u->decoder.early, u->at.row)};
    u->frames.rows = 0;
    u->first_row = u->at.row;
    u->lacks_frames = 0;
    u->replaced = 0;
    lin_result_clear(&u->settled);
    lin_result_clear(&u->provisional);
}

static lin_status open_parts(lin_utterances *u, const lin_recognizer *r, lin_error *err)
{
    const lin_utterances_options *o = &u->options;
    const lin_decoding *d = o->decoding;
    if (o->ends.endpoints) LIN_TRY(lin_endpoint_check(&o->ends.rules, err));
    if (d && d->voice)
        u->who = (lin_diarizer){
            .voice = d->voice, .wanted = LIN_SPEAKERS_UNKNOWN, .most = d->speakers, .hop_s = r->fbank.hop_ms / 1000};
    u->per_row = r->model->config.stack;
    u->frames.columns = r->model->config.mel_bins;
    u->greedy = lin_decoding_greedy(r->V, r->row_seconds, r->delay_s);
    return lin_row_decoder_create(&u->decoder, o->decoding ? o->decoding : &u->greedy, err);
}

lin_status lin_utterances_open(lin_utterances *u, const lin_recognizer *r, const lin_utterances_options *options,
                               const lin_utterances_sink *sink, lin_error *err)
{
    *u = (lin_utterances){.options = *options};
    if (sink) u->sink = *sink;
    const lin_status status = open_parts(u, r, err);
    if (status == LIN_OK) lin_utterances_begin(u, NULL);
    else lin_utterances_close(u);
    return status;
}

void lin_utterances_close(lin_utterances *u)
{
    for (int i = 0; i < u->segments_capacity; i++) lin_result_free(&u->segments[i]);
    lin_free(u->segments);
    lin_free(u->choices);
    lin_free(u->n_choices);
    lin_row_decoder_free(&u->decoder);
    lin_result_free(&u->settled);
    lin_result_free(&u->provisional);
    lin_matrix_free(&u->frames);
    lin_diarizer_close(&u->who);
    *u = (lin_utterances){.whole = NULL};
}

lin_status lin_utterances_reserve(lin_utterances *u, int rows, lin_error *err)
{
    LIN_TRY(lin_path_reserve(&u->decoder.path, rows + 1, 0, err));
    return lin_result_reserve(&u->settled, rows + 1, 0, 0, err);
}

size_t lin_utterances_bytes(const lin_utterances *u)
{
    return lin_search_bytes(&u->decoder.decoding->search) +
           (size_t)u->settled.capacity * (sizeof *u->settled.phones + sizeof *u->decoder.path.phones);
}

void lin_utterances_begin(lin_utterances *u, lin_result *whole)
{
    u->whole = whole;
    u->score = u->acoustic = u->language = 0;
    u->n_segments = 0;
    u->at.row = 0;
    u->at.utterance = 0;
    lin_diarizer_forget(&u->who);
    lin_row_decoder_reset(&u->decoder, 0);
    lin_endpoint_reset(&u->at.endpoint, &u->options.ends.rules, row_seconds(u));
    begin_utterance(u);
}

/* ---- views ----------------------------------------------------------------------------------------------------------------- */

// A hash of what is shown of a provisional path; times and confidences do not count.
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

// Words that may well change are shown by their phones: from the first one below `show` on, all as one unfinished word.
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
    lin_row_decoder *d = &u->decoder;
    *hash = u->at.shown_provisional;
    if (!u->at.decoded) return LIN_OK;
    LIN_TRY(lin_search_nbest(&d->decoding->search, d->state, 0, &d->tail, err));
    u->at.decoded = 0;
    hold_back(&d->tail, d->decoding->show);
    u->at.incomplete = d->tail.incomplete;
    *hash = hash_of(&d->tail);
    lin_result_clear(&u->provisional);
    int early = d->early;
    return lin_decoding_add(d->decoding, &d->tail, &early, &u->provisional, err);
}

static void drop_provisional(lin_utterances *u)
{
    lin_result_clear(&u->provisional);
    u->at.incomplete = 0;
    u->at.decoded = 0;
}

// Whether the utterance has something that cannot change any more. Unlike the provisional part, this does not depend on how the
// sound was cut into pieces, so the numbers of utterances do not either.
static int has_result(const lin_utterances *u) { return u->settled.n_phones > 0 || u->settled.n_keywords > 0 || u->replaced; }

// Shows the utterance to the sink, if something has changed. One that ends without a result has no final view: the next one has
// its number, and a provisional part that was shown is taken back.
static lin_status show(lin_utterances *u, linnet_end end, lin_error *err)
{
    const lin_result *r = &u->settled, *p = &u->provisional;
    uint64_t hash = 0;
    if (!u->sink.show || u->whole) return LIN_OK;
    if (end == LINNET_GROWS) LIN_TRY(make_provisional(u, &hash, err));
    else drop_provisional(u);
    if (!has_result(u)) end = LINNET_GROWS;
    if (end == LINNET_GROWS && r->n_phones == u->at.shown_phones && r->n_keywords == u->at.shown_keywords &&
        hash == u->at.shown_provisional)
        return LIN_OK;
    // Without a phone the utterance keeps its last start.
    const lin_result *front = r->n_phones ? r : p, *back = p->n_phones ? p : r;
    if (front->n_phones) u->at.shown_start_s = front->phones[0].start_s;
    const lin_session_view v = {.utterance = u->at.utterance + 1,
                                .revision = ++u->at.revision,
                                .settled = r,
                                .provisional = p,
                                .incomplete = u->at.incomplete,
                                .old_phones = u->at.shown_phones,
                                .old_words = u->at.shown_words,
                                .old_keywords = u->at.shown_keywords,
                                .start_s = u->at.shown_start_s,
                                .end_s = back->n_phones ? back->phones[back->n_phones - 1].end_s : u->at.shown_start_s,
                                .processed_s = (double)u->at.row * row_seconds(u),
                                .end = end,
                                .replaced = u->replaced};
    u->at.shown_phones = r->n_phones;
    u->at.shown_words = r->n_words;
    u->at.shown_keywords = r->n_keywords;
    u->at.shown_provisional = hash;
    u->settled.seconds = u->provisional.seconds = v.processed_s;
    return u->sink.show(u->sink.context, &v, err);
}

lin_status lin_utterances_show(lin_utterances *u, lin_error *err) { return show(u, LINNET_GROWS, err); }

/* ---- a whole of utterances ------------------------------------------------------------------------------------------------- */

// Room for one more segment, emptied.
static lin_status add_segment(lin_utterances *u, int n_best, lin_result **segment, lin_error *err)
{
    const int before = u->segments_capacity;
    const int64_t n = (int64_t)u->n_segments + 1;
    lin_status status = lin_grow_int(&u->segments, &u->segments_capacity, n, sizeof *u->segments, "alternatives", err);
    if (u->segments_capacity > before)
        memset(u->segments + before, 0, (size_t)(u->segments_capacity - before) * sizeof *u->segments);
    LIN_TRY(status);
    LIN_TRY(lin_grow_int(&u->choices, &u->choices_capacity, n * n_best, sizeof *u->choices, "alternatives", err));
    LIN_TRY(lin_grow_int(&u->n_choices, &u->n_choices_capacity, n, sizeof *u->n_choices, "alternatives", err));
    *segment = &u->segments[u->n_segments++];
    lin_result_clear(*segment);
    return LIN_OK;
}

// Alternative number `which` of a segment; one without any has itself.
static const lin_result *alternative(const lin_result *segment, int which)
{
    return segment->n_alternatives ? &segment->alternatives[which] : segment;
}

// The best n_best pairs of a choice so far and an alternative of the newest segment. Both lists fall in score, so pair (a, b) has
// at least (a+1)(b+1)-1 before it.
static void choose(lin_utterances *u, int n_best)
{
    const lin_result *segment = &u->segments[u->n_segments - 1];
    const int before = u->n_segments - 1;
    const lin_joined_choice none = {.score = 0}, *old = before ? u->choices + (size_t)(before - 1) * (size_t)n_best : &none;
    lin_joined_choice *new = u->choices + (size_t)before * (size_t)n_best;
    const int n_old = before ? u->n_choices[before - 1] : 1, n_more = segment->n_alternatives ? segment->n_alternatives : 1;
    int n = 0;
    for (int a = 0; a < n_old; a++) {
        for (int b = 0; b < n_more && (a + 1) * (b + 1) <= n_best; b++) {
            const double score = old[a].score + alternative(segment, b)->score;
            int at = n;
            while (at > 0 && new[at - 1].score < score) at--;
            if (at == n_best) continue;
            if (n < n_best) n++;
            memmove(new + at + 1, new + at, (size_t)(n - 1 - at) * sizeof *new);
            new[at] = (lin_joined_choice){.score = score, .before = a, .alternative = b};
        }
    }
    u->n_choices[u->n_segments - 1] = n;
}

// The whole by choice number `which`. chosen: room for a number for each segment.
static lin_status append_choice(const lin_utterances *u, int n_best, int which, int *chosen, lin_result *result, lin_error *err)
{
    for (int i = u->n_segments - 1; i >= 0; i--) {
        const lin_joined_choice *c = &u->choices[(size_t)i * (size_t)n_best + (size_t)which];
        chosen[i] = c->alternative;
        which = c->before;
    }
    for (int i = 0; i < u->n_segments; i++)
        LIN_TRY(lin_result_append(result, alternative(&u->segments[i], chosen[i]), err));
    return LIN_OK;
}

static lin_status append_all(lin_utterances *u, lin_error *err)
{
    const int n_best = u->decoder.decoding->n_best;
    lin_result *result = u->whole;
    int *chosen = lin_calloc((size_t)u->n_segments, sizeof *chosen);
    if (!chosen) return lin_no_memory(err, "alternatives", (size_t)u->n_segments * sizeof *chosen);
    lin_status status = append_choice(u, n_best, 0, chosen, result, err);
    for (int i = 0; i < u->n_choices[u->n_segments - 1] && status == LIN_OK; i++) {
        lin_result *whole = lin_result_add_alternative(result);
        status = whole ? append_choice(u, n_best, i, chosen, whole, err) : lin_no_memory(err, "alternatives", sizeof *whole);
    }
    lin_free(chosen);
    return status;
}

// An utterance of a whole: appended to it, less what was taken from the decoder before; with alternatives, a segment.
static lin_status end_segment(lin_utterances *u, lin_error *err)
{
    lin_row_decoder *d = &u->decoder;
    lin_result *result = u->whole;
    if (d->decoding->n_best > 1) {
        LIN_TRY(add_segment(u, d->decoding->n_best, &result, err));
        LIN_TRY(lin_row_decoder_finish(d, result, err));
        choose(u, d->decoding->n_best);
        return LIN_OK;
    }
    // The decoder leaves the scores of this utterance.
    const lin_status status = lin_row_decoder_finish(d, result, err);
    u->score += result->score;
    u->acoustic += result->acoustic;
    u->language += result->language;
    return status;
}

static lin_status complete_whole(lin_utterances *u, lin_error *err)
{
    if (u->decoder.decoding->n_best > 1) return append_all(u, err);
    u->whole->score = u->score;
    u->whole->acoustic = u->acoustic;
    u->whole->language = u->language;
    return LIN_OK;
}

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
    lin_row_decoder *d = &u->decoder;
    lin_result *r = &u->settled;
    const int phones = r->n_phones, words = r->n_words;
    lin_path more = d->path;
    if (phones) more.phones += phones;
    if (words) more.words += words;
    more.n_phones -= phones;
    more.n_words -= words;
    more.keywords += r->n_keywords;
    more.n_keywords -= r->n_keywords;
    for (int i = 0; i < more.n_words; i++) more.words[i].first_phone -= phones;
    lin_status status = lin_decoding_add(d->decoding, &more, &d->early, r, err);
    for (int i = 0; i < more.n_words; i++) more.words[i].first_phone += phones;
    return status;
}

// Moves what has settled from the decoder to the result.
static lin_status take_settled(lin_utterances *u, lin_error *err)
{
    if (u->decoder.decoding->n_best > 1) return u->whole || !u->sink.show ? LIN_OK : add_new_part(u, err);
    LIN_TRY(lin_row_decoder_take(&u->decoder, result_of(u), err));
    return tell_settled(u, err);
}

void lin_utterances_give_frames(lin_utterances *u, const float *frames, int n)
{
    u->next = frames;
    u->n_next = n;
}

static int tells_speakers(const lin_utterances *u) { return u->who.voice && u->sink.show && !u->whole; }

static int keeps_frames(const lin_utterances *u) { return u->options.second || tells_speakers(u); }

// Keeps the frames of n more rows; the last row of a sound may lack some.
static lin_status keep_frames(lin_utterances *u, int n, lin_error *err)
{
    const int more = n * u->per_row < u->n_next ? n * u->per_row : u->n_next;
    const int D = u->frames.columns;
    if (!keeps_frames(u) || more == 0) return LIN_OK;
    LIN_TRY(lin_matrix_append(&u->frames, u->next, more, D, err));
    lin_utterances_give_frames(u, u->next + (size_t)more * (size_t)D, u->n_next - more);
    return LIN_OK;
}

int lin_utterances_found(const lin_utterances *u) { return u->settled.n_phones > 0 || u->at.found; }

// Replaces the result of an utterance that has ended by that of the second pass. If the first pass has found nothing, the second
// does not run: silence costs nothing.
static lin_status decode_again(lin_utterances *u, lin_error *err)
{
    if (!u->options.second || !u->sink.show || u->lacks_frames || !lin_utterances_found(u)) return LIN_OK;
    if (u->sink.aside) u->sink.aside(u->sink.context, 1);
    const lin_status status = run_second_pass(u->options.second, u->decoder.decoding, u->frames.data, u->frames.rows,
                                              u->first_row, &u->settled, err);
    if (u->sink.aside) u->sink.aside(u->sink.context, 0);
    u->replaced |= status == LIN_OK;
    return status == LIN_STOPPED ? LIN_OK : status;
}

// Who speaks in the utterance that has ended.
static lin_status tell_speakers(lin_utterances *u, lin_error *err)
{
    if (!tells_speakers(u) || u->lacks_frames || u->settled.n_phones == 0) return LIN_OK;
    if (u->sink.aside) u->sink.aside(u->sink.context, 1);
    const double start_s = (double)u->first_row * row_seconds(u);
    const lin_status status = lin_diarizer_mark(&u->who, &u->frames, &u->settled, start_s, err);
    if (u->sink.aside) u->sink.aside(u->sink.context, 0);
    return status;
}

// The utterance ends behind the last row that was decoded.
static lin_status end_utterance(lin_utterances *u, linnet_end end, lin_error *err)
{
    lin_row_decoder *d = &u->decoder;
    // After a reset a first phone equal to the last one is a new one. Carried on, a phone that the end has cut in two stays one.
    const int carry = !u->options.ends.resets;
    if (u->whole) {
        LIN_TRY(end_segment(u, err));
        LIN_TRY(end == LINNET_FINISHED ? complete_whole(u, err) : tell_settled(u, err));
    } else {
        if (d->decoding->n_best > 1) lin_result_clear(&u->settled); // all of it comes once more
        LIN_TRY(lin_row_decoder_finish(d, &u->settled, err));
        LIN_TRY(tell_settled(u, err));
        LIN_TRY(decode_again(u, err));
        LIN_TRY(tell_speakers(u, err));
        LIN_TRY(show(u, end, err));
    }
    if (has_result(u)) {
        u->at.utterance++;
        u->at.revision = 0;
    }
    lin_search_reset(&d->decoding->search, d->state, u->at.row, carry);
    begin_utterance(u);
    return LIN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

// The number of rows, of n, up to an endpoint, whose rule is *rule.
static int up_to_endpoint(lin_utterances *u, const float *logp, int n, const double *db, lin_endpoint_rule *rule)
{
    const int V = u->decoder.decoding->search.V;
    for (int i = 0; i < n; i++) {
        *rule = lin_endpoint_push(&u->at.endpoint, logp + (size_t)i * (size_t)V, db ? db[i] : NAN);
        const double at_s = (double)(u->at.row + i + 1) * row_seconds(u);
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
        status = keep_frames(u, most, err);
        if (status == LIN_OK) status = lin_row_decoder_push(&u->decoder, rows, most, err);
        if (status == LIN_OK) status = take_settled(u, err);
        u->at.row += most;
        u->at.decoded += most;
        *taken += most;
        if (status != LIN_OK || rule == LIN_ENDPOINT_NONE) continue;
        *reset = u->options.ends.resets;
        status = end_utterance(u, LINNET_BEFORE + (rule - LIN_ENDPOINT_BEFORE), err);
    }
    return status;
}

lin_status lin_utterances_add(lin_utterances *u, const lin_phone *phones, int n, int rows, lin_error *err)
{
    lin_path *path = &u->decoder.path;
    LIN_TRY(lin_path_reserve(path, n, 0, err));
    for (int i = 0; i < n; i++)
        path->phones[path->n_phones++] = (lin_path_phone){
            .label = phones[i].label, .confidence = phones[i].confidence, .start = phones[i].start, .end = phones[i].end};
    u->at.row += rows;
    return take_settled(u, err);
}

lin_status lin_utterances_end(lin_utterances *u, lin_error *err)
{
    lin_status status = end_utterance(u, LINNET_ASKED, err);
    lin_endpoint_begin_utterance(&u->at.endpoint);
    return status;
}

lin_status lin_utterances_finish(lin_utterances *u, lin_error *err) { return end_utterance(u, LINNET_FINISHED, err); }

int lin_utterances_may_reset(const lin_utterances *u, int rows)
{
    return u->options.ends.endpoints && u->options.ends.resets && !u->sink.rows &&
           (double)(u->at.row + rows) * row_seconds(u) >= u->options.ends.from_s;
}

/* ---- saved streams --------------------------------------------------------------------------------------------------------- */

int lin_utterances_has_frames(const lin_utterances *u) { return keeps_frames(u) && !u->lacks_frames; }

lin_status lin_utterances_go_on(lin_utterances *u, int64_t row, int early, int found, const lin_endpoint *endpoint,
                                const float *frames, size_t bytes, int64_t first, lin_error *err)
{
    const size_t frame = (size_t)u->frames.columns * sizeof *frames;
    const int64_t n = (int64_t)(bytes / frame);
    u->at.row = row;
    u->at.endpoint = *endpoint;
    u->decoder.early = early;
    begin_utterance(u);
    u->at.found = found;
    u->lacks_frames = row > 0;
    if (first == -1 || !keeps_frames(u)) return LIN_OK;
    if (bytes % frame || first < 0 || first > row || n > INT_MAX || n != (row - first) * u->per_row)
        return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    LIN_TRY(lin_matrix_append(&u->frames, frames, (int)n, u->frames.columns, err));
    u->first_row = first;
    u->lacks_frames = 0;
    return LIN_OK;
}

lin_status lin_utterances_copy(lin_utterances *u, const lin_utterances *from, lin_error *err)
{
    memcpy(u->decoder.state, from->decoder.state, lin_search_bytes(&from->decoder.decoding->search));
    u->at = from->at;
    lin_result_clear(&u->settled);
    lin_result_clear(&u->provisional);
    lin_path_clear(&u->decoder.path);
    LIN_TRY(lin_path_append(&u->decoder.path, &from->decoder.path, err));
    LIN_TRY(lin_result_follow(&u->settled, &from->settled, err));
    return lin_result_follow(&u->provisional, &from->provisional, err);
}
