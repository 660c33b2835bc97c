// words.c - the interface of the word search, see words.h: options, creation, push, finish, states from files; and when a word is
// settled. Calls all other files of the search (words_internal.h); they do not call it.

#include "decoder/words.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "decoder/rows.h"
#include "decoder/words_internal.h"

// Weights, width and score by word error rate on dev_native with the shipped model and words.lm.
lin_words_options lin_words_options_default(void)
{
    return (lin_words_options){.width = 512,
                               .score = 13,
                               .blank = 0.9999,
                               .lm_weight = 0.85,
                               .bonus = -1,
                               .blank_penalty = 1.5,
                               .unknown = -6,
                               .unknown_phone = -3,
                               .n_best = 1,
                               .longest = 100};
}

/* ---- options --------------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_words_options *o, lin_error *err)
{
    const lin_range ranges[] = {
        {"width", o->width, 1, LIN_WORDS_MAX},
        {"score", o->score, 0, 1e6},
        {"labels", o->labels, 0, INT_MAX},
        {"blank", o->blank, 0, 1},
        {"blank_penalty", o->blank_penalty, -1e3, 1e3},
        {"gap", o->gap, 0, INT_MAX},
        {"lm_weight", o->lm_weight, 0, 1e3},
        {"bonus", o->bonus, -1e3, 1e3},
        {"unknown", o->unknown, -INFINITY, 0},
        {"unknown_phone", o->unknown_phone, -1e6, 0},
        {"settle", o->settle, 0, 1e6},
        {"wait", o->wait, o->settle > 0, INT_MAX},
        {"sure", o->sure[0], -1e3, 1e3},
        {"sure", o->sure[1], -1e3, 1e3},
        {"sure", o->sure[2], -1e3, 1e3},
        {"n_best", o->n_best, 1, LIN_WORDS_NBEST_MAX},
        {"longest", o->longest, 1, LIN_WORDS_LONGEST_MAX},
    };
    return lin_check_ranges(ranges, sizeof ranges / sizeof *ranges, "word search: ", err);
}

/* ---- creation -------------------------------------------------------------------------------------------------------------- */

static size_t place(size_t *used, size_t count, size_t size)
{
    const size_t at = *used;
    *used += (count * size + 63) / 64 * 64;
    return at;
}

// Number of rows stored for the exact scores of the n best. docs/decoding.md gives ROWS_MOST.
enum { ROWS_BYTES = 4 << 20, ROWS_LEAST = 1024, ROWS_MOST = 8192 };

static void lay_out(lin_words *w)
{
    const int width = w->o.width;
    int most_rows = w->V;
    w->n_candidates = 6 * width + 64;
    w->n_traces = 12 * width + 1024;
    for (w->n_alternatives = 512; w->n_alternatives < 8 * width;) w->n_alternatives *= 2;
    for (w->n_slots = 256; w->n_slots < 2 * w->n_candidates;) w->n_slots *= 2;
    if (most_rows < w->n_candidates) most_rows = w->n_candidates;
    w->n_traceback = w->n_traces;
    if (w->o.n_best > 1) {
        w->n_rows = ROWS_BYTES / (w->V * (int)sizeof(float));
        if (w->n_rows < ROWS_LEAST) w->n_rows = ROWS_LEAST;
        if (w->n_rows > ROWS_MOST) w->n_rows = ROWS_MOST;
    }
    const int n_marks = w->n_slots > w->n_traces ? w->n_slots : w->n_traces;
    size_t used = 0;
    (void)place(&used, 1, sizeof(lin_words_header));
    w->hyps_at = place(&used, (size_t)width, sizeof(lin_words_hyp));
    w->traces_at = place(&used, (size_t)w->n_traces, sizeof(lin_words_trace));
    w->alternatives_at = place(&used, (size_t)w->n_alternatives, sizeof(lin_words_alternative));
    w->rows_at = place(&used, (size_t)w->n_rows * (size_t)w->V, sizeof(float));
    const size_t rebuilt = (size_t)w->n_alternatives * sizeof(lin_words_alternative);
    size_t work = (size_t)w->n_candidates * sizeof(lin_words_candidate);
    if (work < rebuilt) work = rebuilt;
    if (work < lin_words_ranking_bytes(w)) work = lin_words_ranking_bytes(w);
    w->candidates_at = place(&used, work, 1);
    w->slots_at = place(&used, (size_t)n_marks, sizeof(int32_t));
    w->order_at = place(&used, (size_t)most_rows, sizeof(double));
    w->bytes = used;
}

static uint64_t number_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t fingerprint(const lin_words *w)
{
    const lin_words_options *o = &w->o;
    uint64_t h = lin_hash_pair(LIN_WORDS_MAGIC, 0); // states of other versions have other fingerprints
    h = lin_hash_pair(lin_hash_pair(h, w->tree->fingerprint), w->lm ? lin_ngram_fingerprint(w->lm) : 0);
    if (w->grammar) h = lin_hash_pair(lin_hash_pair(h, lin_grammar_fingerprint(w->grammar)), number_bits(w->least));
    h = lin_hash_pair(h, (uint64_t)o->width << 32 | (uint32_t)o->labels);
    h = lin_hash_pair(h, (uint64_t)o->n_best << 20 | (uint64_t)o->longest);
    h = lin_hash_pair(lin_hash_pair(h, number_bits(o->score)), number_bits(o->blank));
    h = lin_hash_pair(lin_hash_pair(h, number_bits(o->lm_weight)), number_bits(o->bonus));
    if (o->blank_penalty < 0 || o->blank_penalty > 0) h = lin_hash_pair(h, number_bits(o->blank_penalty));
    if (o->settle > 0) h = lin_hash_pair(lin_hash_pair(h, number_bits(o->settle)), (uint64_t)o->wait | UINT64_C(1) << 43);
    for (int i = 0; i < 3; i++)
        if (o->sure[i] < 0 || o->sure[i] > 0) h = lin_hash_pair(lin_hash_pair(h, number_bits(o->sure[i])), (uint64_t)i);
    if (o->gap) h = lin_hash_pair(h, (uint64_t)o->gap | UINT64_C(1) << 42);
    return lin_hash_pair(lin_hash_pair(lin_hash_pair(h, number_bits(o->unknown)), number_bits(o->unknown_phone)), w->bytes);
}

static lin_status make_tables(lin_words *w, lin_error *err)
{
    const int n = lin_cores();
    const size_t entries = (size_t)n * LIN_WORDS_SCORES;
    w->tables = lin_alloc(entries, sizeof *w->tables);
    w->held = lin_alloc((size_t)n, sizeof *w->held);
    if (!w->tables || !w->held) return lin_no_memory(err, "a word search", entries * sizeof *w->tables);
    for (size_t i = 0; i < entries; i++) w->tables[i].lm_state = LIN_WORDS_NO_SCORE;
    for (int i = 0; i < n; i++) atomic_init(&w->held[i], 0);
    w->n_tables = n;
    return LIN_OK;
}

// A table that no other push holds, or NULL.
static lin_words_score *hold_table(const lin_words *w)
{
    for (int i = 0; i < w->n_tables; i++)
        if (!atomic_load_explicit(&w->held[i], memory_order_relaxed) && !atomic_exchange(&w->held[i], 1))
            return w->tables + (size_t)i * LIN_WORDS_SCORES;
    return NULL;
}

static void release_table(const lin_words *w, const lin_words_score *table)
{
    if (table) atomic_store(&w->held[(size_t)(table - w->tables) / LIN_WORDS_SCORES], 0);
}

static lin_status create(const lin_tree *tree, const lin_ngram *lm, const lin_grammar *grammar, double least,
                         const lin_words_options *options, lin_words **words, lin_error *err)
{
    const lin_words_options o = options ? *options : lin_words_options_default();
    *words = NULL;
    LIN_TRY(check_options(&o, err));
    if (tree->lm_fingerprint != (lm ? lin_ngram_fingerprint(lm) : 0)) {
        return lin_fail(err, LIN_MISMATCH, "the lexicon's tree was made for another language model");
    }
    lin_words *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "a word search", sizeof *w);
    w->tree = tree;
    w->lm = lm;
    w->grammar = grammar;
    w->least = least;
    w->o = o;
    w->pairs = tree->pairs;
    w->V = tree->n_outputs;
    w->lm_unknown = lm && isfinite(lin_ngram_unigram(lm, LIN_NGRAM_UNKNOWN));
    w->unknown = o.unknown > -INFINITY ? o.unknown : 0;
    if (lm) w->ahead_lacking = w->lm_unknown ? o.lm_weight * (double)lin_ngram_unigram(lm, LIN_NGRAM_UNKNOWN) : w->unknown;
    lay_out(w);
    w->fingerprint = fingerprint(w);
    lin_status status = lm ? make_tables(w, err) : LIN_OK;
    if (status != LIN_OK) lin_words_destroy(w);
    else *words = w;
    return status;
}

lin_status lin_words_create(const lin_tree *tree, const lin_ngram *lm, const lin_words_options *options, lin_words **words,
                            lin_error *err)
{
    return create(tree, lm, NULL, 0, options, words, err);
}

lin_status lin_words_create_grammar(const lin_tree *tree, const lin_grammar *grammar, double least,
                                    const lin_words_options *options, lin_words **words, lin_error *err)
{
    return create(tree, NULL, grammar, least, options, words, err);
}

void lin_words_destroy(lin_words *w)
{
    if (!w) return;
    lin_free(w->tables);
    lin_free(w->held);
    lin_free(w);
}

size_t lin_words_bytes(const lin_words *w) { return w->bytes; }

uint64_t lin_words_fingerprint(const lin_words *w) { return w->fingerprint; }

// Before the first row.
static lin_words_hyp beginning(const lin_words *w)
{
    lin_words_hyp t = {.node = LIN_TREE_ROOT, .lm_state = w->lm ? lin_ngram_begin(w->lm) : LIN_GRAMMAR_START};
    t.endings[LIN_BLANK_ENDING].trace = t.endings[LIN_LABEL_ENDING].trace = -1;
    t.endings[LIN_LABEL_ENDING].sum = t.endings[LIN_LABEL_ENDING].best = -INFINITY;
    return t;
}

void lin_words_reset(const lin_words *w, void *state, int64_t first_frame)
{
    memset(state, 0, w->bytes);
    lin_words_view s = lin_words_view_of(w, state);
    *s.h = (lin_words_header){
        .magic = LIN_WORDS_MAGIC, .fingerprint = w->fingerprint, .first_frame = first_frame, .frame = first_frame, .n_hyps = 1,
        .rows_from = first_frame, .settled_sums = {[LIN_BLANK_ENDING] = 0, [LIN_LABEL_ENDING] = -INFINITY}};
    s.hyps[0] = beginning(w);
}

void lin_words_renew(const lin_words *w, void *state)
{
    const lin_words_header *h = state;
    if (h->fingerprint != w->fingerprint) lin_words_reset(w, state, h->frame);
}

const char *lin_words_text(const lin_words *w, const lin_word_context *context, int word)
{
    if (word < w->tree->words.n) return lin_tree_word(w->tree, word);
    return context ? lin_tree_word(context->extra, word - context->first) : NULL;
}

/* ---- settling words, and making room for a row ----------------------------------------------------------------------------- */

// Keeps only the n best hypotheses, if even the trace-backs of all do not fit.
static void keep_hyps(lin_words_view *s, int n)
{
    while (s->h->n_hyps > n) {
        int worst = 0;
        for (int i = 1; i < s->h->n_hyps; i++) {
            if (s->hyps[i].score <= s->hyps[worst].score) worst = i;
        }
        s->hyps[worst] = s->hyps[--s->h->n_hyps];
    }
}

// Gives out the first word of the best hypothesis; hypotheses without it are dropped, and count in its confidence all the same.
static void settle_first(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    const lin_words_hyp *t = &s->hyps[lin_words_best(s)];
    const uint64_t first = t->first;
    lin_words_traceback *all = &s->of;
    int phones, n = 0;
    int64_t limit = s->h->frame;
    lin_words_traceback_of(w, s, t, all);
    lin_words_shares(w, s, t, all, s->shares);
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (s->hyps[i].first == first) s->hyps[n++] = s->hyps[i];
    }
    s->h->n_hyps = n;
    t = &s->hyps[lin_words_best(s)];
    for (int i = 0; i < s->h->n_hyps; i++) {
        for (int k = 0; k < 2; k++) {
            const lin_words_ending *a = &s->hyps[i].endings[k];
            if (a->best == -INFINITY) continue;
            const int64_t behind = lin_words_begin_after_first(s, a->trace);
            if (behind < limit) limit = behind;
        }
    }
    const lin_status status = lin_words_append_traceback(w, s, all, s->shares, 1, limit, settled, NULL);
    if (status != LIN_OK) s->failed = status;
    settled->score = t->score;
    settled->acoustic = t->acoustic;
    settled->language = t->language;
    (void)lin_words_first_of(s, lin_words_better_ending(t)->trace, &phones);
    s->h->settled_phones += phones;
    lin_words_settle_rows(w, s, all, limit);
    lin_words_settle_alternatives(w, s, first, limit);
    s->h->settled++;
    s->h->settled_history = first;
    for (int i = 0; i < s->h->n_hyps; i++) {
        lin_words_hyp *other = &s->hyps[i];
        other->n_words--;
        other->n_phones -= phones;
        other->first = lin_words_first_of(s, lin_words_better_ending(other)->trace, NULL);
    }
}

// Too many rows are stored: the best hypothesis decides on its first word or silence; if it is inside a word that does not end,
// the best one of complete words decides.
static void make_rows(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    while (lin_words_rows_full(w, s)) {
        const lin_words_hyp *best = &s->hyps[lin_words_best(s)];
        int n = 0;
        if (best->n_words) {
            settle_first(w, s, settled);
            continue;
        }
        const int silence = best->n_phones == 0;
        for (int i = 0; i < s->h->n_hyps; i++) {
            const lin_words_hyp *t = &s->hyps[i];
            if (silence ? t->n_phones == 0 : t->node == LIN_TREE_ROOT) s->hyps[n++] = *t;
        }
        if (n) s->h->n_hyps = n;
        else s->h->rows_lost = 1;
        if (silence) lin_words_settle_silence(w, s);
    }
}

// For a row's traces and the row itself: removes, and settles if it must.
static void make_room(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    lin_words_header *h = s->h;
    const int need = 2 * w->o.width; // traces of hypotheses, and of losers
    if (lin_words_rows_full(w, s)) make_rows(w, s, settled);
    if (h->n_traces + need <= w->n_traces && h->n_alternatives <= w->n_alternatives / 4 * 3) return;
    lin_words_sweep(w, s);
    while (h->n_alternatives > w->n_alternatives / 2) lin_words_thin_alternatives(w, s);
    while (h->n_traces + need > w->n_traces - w->n_traces / 8) {
        if (h->n_alternatives) lin_words_drop_alternatives(w, s);
        else if (s->hyps[lin_words_best(s)].n_words) settle_first(w, s, settled);
        else if (h->n_hyps > 1) keep_hyps(s, h->n_hyps / 2);
        else return;
        lin_words_sweep(w, s);
    }
}

// Whether the last phone of the first word goes on, so that its end is not known.
static int is_sounding(const lin_words_view *s, const lin_words_hyp *t)
{
    const lin_words_ending *end = lin_words_better_ending(t);
    return end == &t->endings[LIN_LABEL_ENDING] && end->trace >= 0 && s->traces[end->trace].history == t->first;
}

// Whether all hypotheses that matter begin with the best one's first word. Those that are worse by more than `settle`, which
// falls to 0 as the word waits, do not matter.
static int is_agreed(const lin_words *w, const lin_words_view *s)
{
    const lin_words_hyp *best = &s->hyps[lin_words_best(s)];
    double counts = INFINITY;
    if (!best->first) return 0;
    if (w->o.settle > 0 && !is_sounding(s, best)) counts = w->o.settle * (1 - (double)lin_words_age(s, best) / w->o.wait);
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (s->hyps[i].first != best->first && s->hyps[i].score >= best->score - counts) return 0;
    }
    return 1;
}

static int too_long(const lin_words *w, const lin_words_view *s)
{
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (s->hyps[i].n_words > w->o.longest) return 1;
    }
    return 0;
}

// Settles the words that all hypotheses that matter have, and words beyond `longest`.
static void settle(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    while (!s->failed && w->o.n_best == 1 && !w->grammar && is_agreed(w, s)) settle_first(w, s, settled);
    while (!s->failed && too_long(w, s)) {
        if (s->hyps[lin_words_best(s)].n_words) {
            settle_first(w, s, settled);
            continue;
        }
        int n = 0;
        for (int i = 0; i < s->h->n_hyps; i++) {
            if (s->hyps[i].n_words <= w->o.longest) s->hyps[n++] = s->hyps[i];
        }
        s->h->n_hyps = n;
    }
}

/* ---- push and finish ------------------------------------------------------------------------------------------------------- */

// The context has changed: pending bonuses are taken back, hypotheses inside words of the old context are dropped, and such words
// in the unsettled part become unknown ones. A state from a file may claim to be of this context, so its values are checked.
static void change_context(const lin_words *w, lin_words_view *s, const lin_word_context *context)
{
    lin_words_header *h = s->h;
    const uint64_t id = context ? context->id : 0;
    const int n_places = w->tree->n_nodes + (context ? context->extra->n_nodes : 0);
    int n = 0, changed = id != h->context_id;
    for (int i = 0; i < h->n_hyps; i++) changed |= s->hyps[i].node >= n_places;
    s->context = context;
    h->context_id = id;
    if (!changed) return;
    for (int i = 0; i < h->n_hyps; i++) {
        lin_words_hyp *t = &s->hyps[i];
        t->weight -= t->pending;
        t->pending = 0;
        t->context = 0;
        lin_words_weigh(t);
        if (t->node < w->tree->n_nodes) s->hyps[n++] = *t;
    }
    if (!n) { // all were inside words of the old context: the best one continues after it, as an unknown word
        const int best = lin_words_best(s);
        s->hyps[n++] = s->hyps[best];
        lin_words_break_off(s, &s->hyps[0]);
    }
    h->n_hyps = n;
    lin_words_sweep(w, s);
    for (int i = 0; i < h->n_traces; i++) {
        if (s->traces[i].word >= w->tree->words.n) s->traces[i].word = LIN_WORD_UNKNOWN;
    }
}

// Reserves memory for all that may be settled, so that nothing fails half way.
static lin_status reserve(const lin_words_view *s, int n_frames, lin_path *settled, lin_error *err)
{
    int n_phones = 0, n_words = 0;
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (s->hyps[i].n_phones > n_phones) n_phones = s->hyps[i].n_phones;
        if (s->hyps[i].n_words > n_words) n_words = s->hyps[i].n_words;
    }
    if (n_frames > INT_MAX / 8 || n_phones > INT_MAX / 8 || n_words > INT_MAX / 8) {
        return lin_fail(err, LIN_INVALID, "%d rows at once", n_frames);
    }
    return lin_path_reserve(settled, n_phones + n_frames, n_words + n_frames + 1, err);
}

lin_status lin_words_push(const lin_words *w, void *state, const lin_word_context *context, const float *logp, int n_frames,
                          lin_path *settled, lin_error *err)
{
    lin_words_renew(w, state);
    lin_words_view s = lin_words_view_of(w, state);
    if (n_frames < 0) return lin_fail(err, LIN_INVALID, "%d rows", n_frames);
    if (s.h->finished) return lin_fail(err, LIN_INVALID, "the word search has ended: reset the state before more rows");
    LIN_TRY(lin_rows_check_numbers(logp, n_frames, w->V, s.h->frame, err));
    LIN_TRY(reserve(&s, n_frames, settled, err));
    s.h->ranked = 0;
    change_context(w, &s, context);
    s.scores = hold_table(w);
    for (int i = 0; i < n_frames && !s.failed; i++) {
        const float *row = logp + (size_t)i * (size_t)w->V;
        make_room(w, &s, settled);
        const lin_words_moved moved = lin_words_row(w, &s, row);
        lin_words_keep_row(w, &s, row, moved == LIN_WORDS_IMPOSSIBLE);
        s.h->frame++;
        if (w->grammar && moved != LIN_WORDS_IMPOSSIBLE) s.h->loop += (double)lin_row_most(row, w->V);
        if (moved != LIN_WORDS_STAYED) settle(w, &s, settled);
    }
    release_table(w, s.scores);
    return s.failed ? lin_fail(err, s.failed, "out of memory for a path of words") : LIN_OK;
}

// Sorts the hypotheses, the best first; equal ones keep their order.
static void sort(lin_words_view *s)
{
    for (int i = 1; i < s->h->n_hyps; i++) {
        const lin_words_hyp t = s->hyps[i];
        int k = i;
        for (; k > 0 && s->hyps[k - 1].score < t.score; k--) s->hyps[k] = s->hyps[k - 1];
        s->hyps[k] = t;
    }
}

// A sequence without words is not scored as a sentence: all sentences of the language model have words, so every silence would
// become a word.
static void end_token(const lin_words *w, const lin_words_header *h, const lin_word_context *context, lin_words_hyp *t)
{
    const int has_words = h->settled || t->n_words;
    if (context) t->weight += (double)lin_context_finish(context->phrases, &t->context);
    t->pending = 0;
    if (w->lm && has_words && t->node == LIN_TREE_ROOT) {
        const double logp = (double)lin_ngram_end(w->lm, t->lm_state);
        t->language += logp;
        t->weight += w->o.lm_weight * logp;
    }
    lin_words_weigh(t);
}

// Whether the best hypothesis is confident enough for a sentence of the grammar: its best path against that of a loop over all
// phones, in nats per phone, as for keywords (decoder/keywords.h).
static int is_sure(const lin_words *w, lin_words_view *s)
{
    const lin_words_hyp *t = &s->hyps[0];
    const int n = t->n_phones + s->h->settled_phones;
    if (n) s->h->sentence = exp(fmin(lin_words_better_ending(t)->best - s->h->loop, 0) / n);
    return n && s->h->sentence >= w->least;
}

lin_status lin_words_finish(const lin_words *w, void *state, const lin_word_context *context, lin_path *settled, lin_error *err)
{
    lin_words_renew(w, state);
    lin_words_view s = lin_words_view_of(w, state);
    lin_words_header *h = s.h;
    if (h->finished) return lin_fail(err, LIN_INVALID, "the word search has ended: reset the state first");
    if (settled) LIN_TRY(reserve(&s, 0, settled, err));
    h->ranked = 0;
    change_context(w, &s, context);
    int n = 0;
    const lin_words_hyp best = s.hyps[lin_words_best(&s)];
    for (int i = 0; i < h->n_hyps; i++) {
        const lin_words_hyp *t = &s.hyps[i];
        if (t->node == LIN_TREE_ROOT && (!w->grammar || lin_grammar_is_end(w->grammar, t->lm_state))) s.hyps[n++] = *t;
    }
    if (!n) s.hyps[n++] = w->grammar ? beginning(w) : best;
    h->n_hyps = n;
    for (int i = 0; i < n; i++) end_token(w, h, context, &s.hyps[i]);
    sort(&s);
    if (w->grammar && !is_sure(w, &s)) {
        s.hyps[0] = beginning(w);
        h->n_hyps = 1;
        lin_words_drop_alternatives(w, &s);
    }
    h->finished = 1;
    return settled ? lin_words_append_best(w, &s, settled, err) : LIN_OK;
}

/* ---- states from files ----------------------------------------------------------------------------------------------------- */

static int in(int64_t value, int64_t from, int64_t to) { return value >= from && value <= to; }

static int good_header(const lin_words *w, const lin_words_header *h)
{
    return in(h->n_hyps, 1, w->o.width) && in(h->n_traces, 0, w->n_traces) && in(h->n_alternatives, 0, w->n_alternatives - 1) &&
           in(h->finished, 0, 1) && in(h->first_frame, INT64_MIN / 4, INT64_MAX / 4) &&
           in(h->frame, h->first_frame, INT64_MAX / 2);
}

lin_status lin_words_check(const lin_words *w, const void *state, size_t n, lin_error *err)
{
    if (n != w->bytes) return lin_fail(err, LIN_MISMATCH, "a state of %zu bytes, but this word search has %zu", n, w->bytes);
    const lin_words_view s = lin_words_view_of(w, (void *)(uintptr_t)state);
    const lin_words_header *h = s.h;
    if (h->magic != LIN_WORDS_MAGIC) return lin_fail(err, LIN_FORMAT, "the bytes are not the state of a word search");
    if (h->fingerprint != w->fingerprint) {
        return lin_fail(err, LIN_MISMATCH, "the state belongs to a word search with another lexicon, language model or options");
    }
    const int good = good_header(w, h) && lin_words_good_history(w, &s) && lin_words_good_results(w, &s);
    if (good) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "the state of a word search is damaged");
}
