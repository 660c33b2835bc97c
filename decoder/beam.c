// beam.c - options, creation and the public functions of the prefix beam search; see beam.h.

#include "decoder/beam.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "decoder/beam_internal.h"
#include "decoder/rows.h"

lin_beam_options lin_beam_options_default(void)
{
    return (lin_beam_options){.width = 16, .score = 12, .labels = 20, .blank = 0.999, .lm_weight = 0.7, .longest = 12};
}

/* ---- the beam -------------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_beam_options *o, int V, lin_error *err)
{
    static const char form[] = "beam search: %s is %g; it must lie within %g and %g";
    const struct {
        const char *name;
        double value, least, most;
    } fields[] = {
        {"outputs", V, 1, 1 << 20},
        {"width", o->width, 1, LIN_BEAM_MAX},
        {"score", o->score, 0, 1e6},
        {"labels", o->labels, 0, 1 << 20},
        {"blank", o->blank, 0, 1},
        {"lm_weight", o->lm_weight, 0, 100},
        {"bonus", o->bonus, -100, 100},
        {"longest", o->longest, 1, 100000},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].value >= fields[i].least && fields[i].value <= fields[i].most) continue;
        return lin_fail(err, LIN_INVALID, form, fields[i].name, fields[i].value, fields[i].least, fields[i].most);
    }
    return LIN_OK;
}

static uint64_t identity(const lin_beam *beam)
{
    const lin_beam_options *o = &beam->options;
    const double numbers[] = {beam->V, o->width, o->score, o->labels, o->blank, o->lm_weight, o->bonus, o->longest};
    const uint64_t lm = beam->lm ? lin_ngram_fingerprint(beam->lm) : 0;
    uint64_t h = lin_fnv(LIN_FNV_START, "linnet beam 2", 13);
    h = lin_fnv(h, numbers, sizeof numbers);
    h = lin_fnv(h, &lm, sizeof lm);
    return beam->lm ? lin_fnv(h, beam->words, (size_t)beam->V * sizeof *beam->words) : h;
}

// Offset of an array of n elements in a state; each array begins at a multiple of 8 bytes.
static size_t place(lin_beam *beam, size_t n, size_t size)
{
    size_t at = beam->bytes;
    beam->bytes = at + (n * size + 7) / 8 * 8;
    return at;
}

// In the worst case the best alignments of all endings share nothing: 2 * width paths, and those that a frame adds before old
// ones are dropped.
static void lay_out(lin_beam *beam)
{
    const size_t width = (size_t)beam->options.width, longest = (size_t)beam->options.longest, V = (size_t)beam->V;
    beam->n_nodes = (int)(width * (longest + 2) + 1);
    beam->n_traces = (int)(2 * width * (longest + 1) + width + 1);
    beam->bytes = (sizeof(lin_beam_state) + 7) / 8 * 8;
    beam->at_hyps = place(beam, width, sizeof(lin_beam_hyp));
    beam->at_next = place(beam, width, sizeof(lin_beam_hyp));
    beam->at_nodes = place(beam, (size_t)beam->n_nodes, sizeof(lin_beam_node));
    beam->at_traces = place(beam, (size_t)beam->n_traces, sizeof(lin_beam_trace));
    beam->at_gains = place(beam, width * V, sizeof(double));
    beam->at_candidates = place(beam, width, sizeof(lin_beam_candidate));
    beam->at_probabilities = place(beam, V, sizeof(double));
    beam->at_merged = place(beam, width, sizeof(double));
    beam->at_values = place(beam, V, sizeof(double));
    beam->at_labels = place(beam, V, sizeof(int32_t));
    beam->at_marks = place(beam, V, sizeof(int32_t));
    beam->at_closing = place(beam, width, sizeof(int32_t));
    beam->at_slots = place(beam, width, sizeof(int32_t));
}

lin_status lin_beam_create(int V, const lin_ngram *lm, const int *labels, const lin_beam_options *options, lin_beam **beam,
                           lin_error *err)
{
    *beam = NULL;
    lin_status status = check_options(options, V, err);
    if (status != LIN_OK) return status;
    if (lm && !labels) return lin_fail(err, LIN_INVALID, "beam search: a language model needs a word for each label");
    lin_beam *b = lin_calloc(1, sizeof *b);
    if (!b) return lin_no_memory(err, "a beam search", sizeof *b);
    *b = (lin_beam){.options = *options, .V = V, .lm = lm};
    b->n_labels = options->labels && options->labels < V ? options->labels : V;
    // Above 600 a sum could leave the range of double relative to the best one.
    b->cut = exp(-(options->score > 0 && options->score < 600 ? options->score : 600));
    b->blank_logp = options->blank > 0 ? log(options->blank) : INFINITY;
    if (lm) {
        b->words = lin_alloc((size_t)V, sizeof *b->words);
        if (!b->words) {
            lin_free(b);
            return lin_no_memory(err, "a beam search", (size_t)V * sizeof *b->words);
        }
        memcpy(b->words, labels, (size_t)V * sizeof *labels);
        b->words[0] = LIN_NGRAM_UNKNOWN;
        for (int k = 1; k < V; k++) {
            if (labels[k] >= -1 && labels[k] < lin_ngram_words(lm)) continue;
            status = lin_fail(err, LIN_INVALID, "beam search: label %d is word %d of a language model of %d words", k, labels[k],
                              lin_ngram_words(lm));
            lin_beam_destroy(b);
            return status;
        }
    }
    lay_out(b);
    b->fingerprint = identity(b);
    *beam = b;
    return LIN_OK;
}

void lin_beam_destroy(lin_beam *beam)
{
    if (!beam) return;
    lin_free(beam->words);
    lin_free(beam);
}

size_t lin_beam_bytes(const lin_beam *beam) { return beam->bytes; }

uint64_t lin_beam_fingerprint(const lin_beam *beam) { return beam->fingerprint; }

/* ---- a state --------------------------------------------------------------------------------------------------------------- */

lin_beam_view lin_beam_view_of(const lin_beam *beam, const lin_context *context, void *state)
{
    unsigned char *at = state;
    return (lin_beam_view){
        .beam = beam,
        .context = context,
        .state = state,
        .hyps = (lin_beam_hyp *)(void *)(at + beam->at_hyps),
        .next = (lin_beam_hyp *)(void *)(at + beam->at_next),
        .nodes = (lin_beam_node *)(void *)(at + beam->at_nodes),
        .traces = (lin_beam_trace *)(void *)(at + beam->at_traces),
        .gains = (double *)(void *)(at + beam->at_gains),
        .candidates = (lin_beam_candidate *)(void *)(at + beam->at_candidates),
        .probabilities = (double *)(void *)(at + beam->at_probabilities),
        .merged = (double *)(void *)(at + beam->at_merged),
        .values = (double *)(void *)(at + beam->at_values),
        .labels = (int32_t *)(void *)(at + beam->at_labels),
        .marks = (int32_t *)(void *)(at + beam->at_marks),
        .closing = (int32_t *)(void *)(at + beam->at_closing),
        .slots = (int32_t *)(void *)(at + beam->at_slots),
    };
}

// Functions that only read use a view too; they do not change what it points to.
static lin_beam_view look(const lin_beam *beam, const void *state)
{
    return lin_beam_view_of(beam, NULL, (void *)(uintptr_t)state);
}

void lin_beam_reset(const lin_beam *beam, void *state, int64_t first_frame)
{
    memset(state, 0, beam->bytes);
    lin_beam_view v = lin_beam_view_of(beam, NULL, state);
    *v.state = (lin_beam_state){.fingerprint = beam->fingerprint, .frame = first_frame, .n_hyps = 1};
    lin_beam_trees_reset(&v);
    v.hyps[0] = (lin_beam_hyp){.blank = 1, .best_blank = 1, .before_label = LIN_BEAM_NONE};
    v.nodes[0].hyp = 0;
    if (beam->lm) v.nodes[0].lm = lin_ngram_begin(beam->lm);
    lin_beam_hold_trace(&v, 0);
    v.state->slots_free = beam->options.width - 1;
    for (int i = 0; i < v.state->slots_free; i++) v.slots[i] = beam->options.width - 1 - i;
    for (size_t i = 0; i < (size_t)beam->options.width * (size_t)beam->V; i++) v.gains[i] = -1;
}

// Of a state that lin_beam_reset began, or lin_beam_check found good.
static int holds(const lin_beam_view *v)
{
    const lin_beam_state *s = v->state;
    return s->fingerprint == v->beam->fingerprint && s->n_hyps >= 1 && s->n_hyps <= v->beam->options.width && s->node_root >= 0 &&
           s->node_root < v->beam->n_nodes && s->trace_root >= 0 && s->trace_root < v->beam->n_traces;
}

static lin_status not_finished(const lin_beam_state *s, lin_error *err)
{
    return s->finished ? lin_fail(err, LIN_INVALID, "beam search: the segment was ended; reset the state first") : LIN_OK;
}

lin_status lin_beam_push(const lin_beam *beam, void *state, const lin_context *context, const float *logp, int n_frames,
                         lin_path *settled, lin_error *err)
{
    lin_beam_view v = lin_beam_view_of(beam, context, state);
    assert(holds(&v));
    lin_status status = not_finished(v.state, err);
    if (status != LIN_OK) return status;
    if (n_frames < 0) return lin_fail(err, LIN_INVALID, "beam search of %d frames", n_frames);
    status = lin_rows_check_numbers(logp, n_frames, beam->V, v.state->frame, err);
    if (status != LIN_OK) return status;
    status = lin_path_reserve(settled, n_frames < INT32_MAX / 4 ? beam->options.longest + n_frames : -1, 0, err);
    if (status != LIN_OK || !n_frames) return status;
    if (v.state->context != (context ? lin_context_id(context) : 0)) lin_beam_change_context(&v);
    for (int t = 0; t < n_frames; t++) lin_beam_step(&v, logp + (size_t)t * (size_t)beam->V, settled);
    return LIN_OK;
}

int lin_beam_hypotheses(const lin_beam *beam, const void *state) { return look(beam, state).state->n_hyps; }

static void set_scores(const lin_beam_view *v, const lin_beam_hyp *h, lin_path *path)
{
    const lin_beam_node *node = &v->nodes[h->node];
    path->score = log(lin_beam_acoustic(h)) + (double)v->state->scale * 0.69314718055994530942 + v->state->shift;
    path->acoustic = path->score - node->weight;
    path->language = node->language;
}

// Appends the unsettled phones of a hypothesis to the path, which has space.
static void list_tail(const lin_beam_view *v, const lin_beam_hyp *h, lin_path *path)
{
    int open;
    lin_beam_list(v, lin_beam_best_end(h, &open), path);
    if (open) path->phones[path->n_phones++] = lin_beam_phone(v->nodes[h->node].label, h->sum, h->start, v->state->frame);
    set_scores(v, h, path);
}

lin_status lin_beam_nbest(const lin_beam *beam, const void *state, int which, lin_path *tail, lin_error *err)
{
    const lin_beam_view v = look(beam, state);
    assert(holds(&v));
    if (which < 0 || which >= v.state->n_hyps) {
        return lin_fail(err, LIN_INVALID, "hypothesis %d does not exist: there are %d", which, v.state->n_hyps);
    }
    lin_path_clear(tail);
    lin_status status = lin_path_reserve(tail, beam->options.longest, 0, err);
    if (status == LIN_OK) list_tail(&v, &v.hyps[which], tail);
    return status;
}

lin_status lin_beam_finish(const lin_beam *beam, void *state, const lin_context *context, lin_path *settled, lin_error *err)
{
    (void)context; // its unfinished phrases are part of the state
    lin_beam_view v = lin_beam_view_of(beam, NULL, state);
    assert(holds(&v));
    lin_status status = not_finished(v.state, err);
    if (status == LIN_OK && settled) status = lin_path_reserve(settled, beam->options.longest, 0, err);
    if (status != LIN_OK) return status;
    lin_beam_change_context(&v);
    for (int i = 0; beam->lm && i < v.state->n_hyps; i++) {
        lin_beam_hyp *h = &v.hyps[i];
        lin_beam_node *node = &v.nodes[h->node];
        if (node->depth == 0) continue; // without phones it is no sentence: silence would become one
        const double logp = fmax((double)lin_ngram_end(beam->lm, node->lm), -LIN_BEAM_WEIGHT_MAX);
        const double weight = fmax(beam->options.lm_weight * logp, -LIN_BEAM_WEIGHT_MAX), gain = exp(weight);
        h->blank *= gain;
        h->label *= gain;
        node->weight += weight;
        node->language += logp;
    }
    lin_beam_sort(&v);
    v.state->finished = 1;
    if (settled) list_tail(&v, &v.hyps[0], settled);
    return LIN_OK;
}
