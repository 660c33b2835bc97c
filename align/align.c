// align.c - the best CTC path through a known text, in a beam; see align.h.

#include "align/align.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/rows.h"

enum { BLOCK_BYTES = 1 << 14, WIDEN = 4 };

// A processed row.
typedef struct kept_row {
    int32_t lo, block, offset; // its choices: of the states from lo on, `bits` each, the first in the lowest bits
    double behind;             // score of the best labels minus that of the best state, over all rows up to this one
} kept_row;

// Where the pass is.
typedef struct position {
    int64_t done;   // rows
    double greedy;  // sum of the score of the best label of each row
    int lo, hi;     // states alive; lo = hi: none
    int block, used; // the block of choices being filled, and its used bytes
    size_t total;
} position;

// A point from which it can be resumed.
typedef struct checkpoint {
    position at;
    double *scores; // [hi - lo]
} checkpoint;

typedef struct trellis {
    const lin_align_graph *graph;
    lin_align_options options;
    const float *rows; // [T, V]
    int64_t T;
    int V, bits;
    int others;             // this pass may find speech that is not in the text
    int64_t stretch;        // rows of a stretch
    double *scores;         // [states], -INFINITY outside lo .. hi-1
    float *now;             // [V + 2]: the row that is being computed, and what any sound and other speech score there
    unsigned char *choices; // [states], of the row that is being computed
    double word_sum;        // of the word that is written last: log-probabilities, and rows
    int64_t word_rows;
    // The pass over the rows, with the current beam.
    double beam;
    int width;
    position at;
    int dropped;    // a state was dropped at some row
    kept_row *kept; // [T]
    unsigned char **bytes; // blocks of choices
    size_t *sizes;
    int n_bytes, bytes_capacity;
    int full; // most_bytes are used up
    // Checks and widening of the beam.
    checkpoint *checkpoints;
    int n_checkpoints, checkpoints_capacity;
    int steps;     // number of times it is wider than at first
    int given_up;  // in the current stretch
    int64_t until; // row of the last widening
    lin_align_report report;
} trellis;

lin_align_options lin_align_options_default(void)
{
    return (lin_align_options){
        .beam = 600, .width = 4000, .widenings = 4, .row_s = 0.03, .stretch_s = 20, .mismatch = -20,
        .most_bytes = (size_t)1 << 30};
}

// The beam after this many widenings.
static void set_beam(trellis *a, int steps)
{
    const int most = a->graph->n_states > 2 ? a->graph->n_states : 2;
    a->steps = steps;
    a->beam = a->options.beam;
    a->width = a->options.width < most ? a->options.width : most;
    for (int i = 0; i < steps; i++) {
        a->beam *= WIDEN;
        a->width = a->width > most / WIDEN ? most : a->width * WIDEN;
    }
    if (steps > 0) a->report.widened++;
    if (a->beam > a->report.beam) a->report.beam = a->beam;
    if (a->width > a->report.width) a->report.width = a->width;
}

static void drop_checkpoints(trellis *a, int n)
{
    while (a->n_checkpoints > n) lin_free(a->checkpoints[--a->n_checkpoints].scores);
}

static lin_status make(trellis *a, lin_error *err)
{
    const size_t n = (size_t)a->graph->n_states;
    a->scores = lin_alloc(n, sizeof *a->scores);
    a->now = lin_alloc((size_t)a->V + 2, sizeof *a->now);
    a->choices = lin_alloc(n, 1);
    a->kept = lin_alloc((size_t)a->T, sizeof *a->kept);
    if (!a->scores || !a->now || !a->choices || !a->kept)
        return lin_no_memory(err, "an alignment", n * (sizeof *a->scores + 1) + (size_t)a->T * sizeof *a->kept);
    for (size_t s = 0; s < n; s++) a->scores[s] = -INFINITY;
    set_beam(a, 0);
    return LIN_OK;
}

static void release(trellis *a)
{
    for (int i = 0; i < a->n_bytes; i++) lin_free(a->bytes[i]);
    lin_free(a->bytes);
    lin_free(a->sizes);
    lin_free(a->kept);
    drop_checkpoints(a, 0);
    lin_free(a->checkpoints);
    lin_free(a->scores);
    lin_free(a->now);
    lin_free(a->choices);
}

static const float *row_of(const trellis *a, int64_t row) { return a->rows + (size_t)row * (size_t)a->V; }

/* ---- the pass -------------------------------------------------------------------------------------------------------------- */

// Reserves memory for the choices of one row, within one block.
static lin_status reserve(trellis *a, size_t bytes, unsigned char **room, lin_error *err)
{
    if (a->n_bytes && (size_t)a->at.used + bytes > a->sizes[a->at.block]) {
        a->at.block++;
        a->at.used = 0;
    }
    while (a->at.block < a->n_bytes && bytes > a->sizes[a->at.block]) a->at.block++; // blocks of a narrower pass
    if (a->at.total + bytes > a->options.most_bytes) {
        a->full = 1;
        return lin_fail(
            err, LIN_NO_MEMORY,
            "the paths of %d states at row %lld are too many for %zu MB: align shorter pieces, or with a narrower beam",
            a->at.hi - a->at.lo, (long long)a->at.done, a->options.most_bytes >> 20);
    }
    if (a->at.block == a->n_bytes) {
        int capacity = a->bytes_capacity;
        LIN_TRY(lin_grow_int(&a->bytes, &capacity, a->n_bytes + 1, sizeof *a->bytes, "an alignment", err));
        LIN_TRY(lin_grow_int(&a->sizes, &a->bytes_capacity, a->n_bytes + 1, sizeof *a->sizes, "an alignment", err));
        const size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        a->bytes[a->at.block] = lin_alloc(size, 1);
        if (!a->bytes[a->at.block]) return lin_no_memory(err, "the paths of an alignment", size);
        a->sizes[a->n_bytes++] = size;
        a->at.used = 0;
    }
    *room = a->bytes[a->at.block] + a->at.used;
    return LIN_OK;
}

static lin_status keep(trellis *a, double behind, lin_error *err)
{
    const int per_byte = 8 / a->bits, n = a->at.hi - a->at.lo;
    const size_t bytes = ((size_t)n + (size_t)per_byte - 1) / (size_t)per_byte;
    unsigned char *room = NULL;
    LIN_TRY(reserve(a, bytes, &room, err));
    const unsigned char *from = a->choices + a->at.lo;
    for (size_t i = 0; i < bytes; i++) {
        unsigned packed = 0;
        for (int k = 0; k < per_byte && (int)i * per_byte + k < n; k++)
            packed |= (unsigned)from[(int)i * per_byte + k] << k * a->bits;
        room[i] = (unsigned char)packed;
    }
    a->kept[a->at.done++] = (kept_row){.lo = a->at.lo, .block = a->at.block, .offset = a->at.used, .behind = behind};
    a->at.used += (int)bytes;
    a->at.total += bytes;
    if (a->at.total > a->report.bytes) a->report.bytes = a->at.total;
    return LIN_OK;
}

// Predecessors of a state have smaller numbers, so the states are updated in place from the last one down.
static double advance(trellis *a, const float *row)
{
    assert(a->at.lo >= 0 && a->at.lo < a->at.hi && a->at.hi <= a->graph->n_states); // a path is alive
    const lin_align_graph *g = a->graph;
    const lin_align_state *states = g->states;
    const int hi = states[a->at.hi - 1].reach;
    assert(hi >= a->at.hi && hi <= g->n_states); // states are reached from smaller ones
    double most = -INFINITY;
    for (int s = hi - 1; s >= a->at.lo; s--) {
        double best = a->scores[s];
        int choice = 0;
        const int first = states[s].before, n = states[s + 1].before - first;
        const double entry = (double)states[s].logp; // of a pronunciation that begins here
        for (int k = 0; k < n; k++) {
            const double other = a->scores[g->befores[first + k]] + entry;
            if (other > best) {
                best = other;
                choice = k + 1;
            }
        }
        best += (double)row[states[s].label];
        a->scores[s] = best;
        a->choices[s] = (unsigned char)choice;
        if (best > most) most = best;
    }
    a->at.hi = hi;
    return most;
}

static double begin(trellis *a, const float *row)
{
    assert(a->at.done == 0 && a->at.lo == a->at.hi);
    const lin_align_graph *g = a->graph;
    double most = (double)row[0];
    a->at.lo = 0;
    a->at.hi = 1;
    a->scores[0] = most;
    a->choices[0] = 0;
    for (int i = -1; i < g->n_starts; i++) {
        const int s = i < 0 ? 1 : g->starts[i]; // 1: other speech
        for (; a->at.hi <= s; a->at.hi++) a->choices[a->at.hi] = 0;
        a->scores[s] = (double)row[g->states[s].label] + (double)g->states[s].logp;
        if (a->scores[s] > most) most = a->scores[s];
    }
    return most;
}

static void drop(trellis *a, int s)
{
    a->dropped |= a->scores[s] > -INFINITY;
    a->scores[s] = -INFINITY;
}

// The score of a row of speech that is not in the text: as a blank, or as any phone at a cost.
static float other_speech(const trellis *a, int64_t t)
{
    const float *row = row_of(a, t);
    return fmaxf(row[0], (float)((double)lin_row_most(row, a->V) + LIN_ALIGN_OTHER));
}

// Row number a->at.done.
static lin_status pass_row(trellis *a, lin_error *err)
{
    const float *row = a->now;
    const double greedy = (double)lin_row_most(row_of(a, a->at.done), a->V);
    memcpy(a->now, row_of(a, a->at.done), (size_t)a->V * sizeof *a->now);
    a->now[a->V] = (float)(greedy + LIN_ALIGN_ANY);
    a->now[a->V + 1] = a->others ? other_speech(a, a->at.done) : -INFINITY;
    a->at.greedy += greedy;
    if (a->at.done && a->at.lo == a->at.hi) return keep(a, INFINITY, err); // no path is left
    const double most = a->at.done ? advance(a, row) : begin(a, row), least = most - a->beam;
    // Unreachable states are not dropped by any beam.
    while (a->at.lo < a->at.hi && !(a->scores[a->at.lo] >= least && a->scores[a->at.lo] > -INFINITY)) drop(a, a->at.lo++);
    while (a->at.lo < a->at.hi && !(a->scores[a->at.hi - 1] >= least && a->scores[a->at.hi - 1] > -INFINITY)) drop(a, --a->at.hi);
    while (a->at.hi - a->at.lo > a->width) {
        if (a->scores[a->at.lo] < a->scores[a->at.hi - 1]) {
            drop(a, a->at.lo++);
        } else {
            drop(a, --a->at.hi);
        }
    }
    return keep(a, a->at.greedy - most, err);
}

/* ---- widening of the beam -------------------------------------------------------------------------------------------------- */

static lin_status add_checkpoint(trellis *a, lin_error *err)
{
    LIN_TRY(lin_grow_int(&a->checkpoints, &a->checkpoints_capacity, a->n_checkpoints + 1, sizeof *a->checkpoints,
                         "an alignment", err));
    const size_t n = (size_t)(a->at.hi - a->at.lo);
    double *scores = lin_alloc(n, sizeof *scores);
    if (!scores) return lin_no_memory(err, "an alignment", n * sizeof *scores);
    memcpy(scores, a->scores + a->at.lo, n * sizeof *scores);
    a->checkpoints[a->n_checkpoints++] = (checkpoint){a->at, scores};
    return LIN_OK;
}

// To the last checkpoint at this row or before it; to the beginning if there is none.
static void roll_back(trellis *a, int64_t row)
{
    int n = a->n_checkpoints;
    while (n > 0 && a->checkpoints[n - 1].at.done > row) n--;
    drop_checkpoints(a, n);
    for (int s = a->at.lo; s < a->at.hi; s++) a->scores[s] = -INFINITY;
    assert(n == 0 || (a->checkpoints[n - 1].at.done <= a->at.done && a->checkpoints[n - 1].at.total <= a->at.total)); // backwards
    a->at = n ? a->checkpoints[n - 1].at : (position){0};
    if (n) memcpy(a->scores + a->at.lo, a->checkpoints[n - 1].scores, (size_t)(a->at.hi - a->at.lo) * sizeof *a->scores);
}

// 1 if even the best state has lost as much in the last stretch as with a wrong text.
static int is_lost(const trellis *a)
{
    if (a->at.done < a->stretch || !a->dropped) return 0;
    const kept_row *last = &a->kept[a->at.done - 1];
    const double before = a->at.done > a->stretch ? last[-a->stretch].behind : 0, now = last->behind;
    return now == INFINITY || before - now < a->options.mismatch * (double)a->stretch * a->options.row_s;
}

// Rows within which a path that fits overtakes a wrong best path, from any place in the beam.
static double patience(const trellis *a)
{
    const double rows = a->beam / (-a->options.mismatch * a->options.row_s);
    return rows > (double)a->stretch ? rows : (double)a->stretch;
}

// After each row. A wider beam resumes where the path still fitted, and gets time: the right path may be in the beam long before
// it is the best.
static lin_status watch(trellis *a, lin_error *err)
{
    if (a->at.done <= a->until) return LIN_OK;
    const int lost = is_lost(a);
    if (!lost) {
        if (a->steps) set_beam(a, 0);
        a->given_up = 0;
        return a->at.done % (a->stretch / 2 + 1) == 0 ? add_checkpoint(a, err) : LIN_OK;
    }
    if (a->given_up || (a->steps && (double)(a->at.done - a->until) < patience(a))) return LIN_OK;
    a->until = a->at.done;
    if (a->steps == a->options.widenings) {
        a->given_up = 1;
        set_beam(a, 0);
        return LIN_OK;
    }
    set_beam(a, a->steps + 1);
    roll_back(a, a->at.done - 2 * a->stretch);
    return LIN_OK;
}

// A beam that does not fit into memory is abandoned.
static lin_status pass_rows(trellis *a, lin_error *err)
{
    lin_status status = LIN_OK;
    while (a->at.done < a->T && status == LIN_OK) {
        status = pass_row(a, err);
        if (status == LIN_OK) status = watch(a, err);
        if (status != LIN_OK && a->full && a->steps) {
            a->full = 0;
            a->given_up = 1;
            roll_back(a, a->until - 2 * a->stretch);
            set_beam(a, 0);
            status = LIN_OK;
        }
    }
    return status;
}

/* ---- the way back ---------------------------------------------------------------------------------------------------------- */

static int choice_at(const trellis *a, int64_t t, int s)
{
    const kept_row *row = &a->kept[t];
    assert(t >= 0 && t < a->at.done && s >= row->lo);
    const int i = s - row->lo, per_byte = 8 / a->bits;
    const unsigned char packed = a->bytes[row->block][row->offset + i / per_byte];
    return packed >> i % per_byte * a->bits & ((1 << a->bits) - 1);
}

// The best state that ends the text, or -1.
static int best_end(const trellis *a)
{
    const lin_align_graph *g = a->graph;
    int best = g->n_states - 2; // the last blank; behind it is other speech
    for (int i = 0; i < g->n_ends; i++) {
        if (a->scores[g->ends[i]] > a->scores[best]) best = g->ends[i];
    }
    if (a->scores[g->n_states - 1] > a->scores[best]) best = g->n_states - 1;
    return a->scores[best] > -INFINITY ? best : -1;
}

static lin_status rerun(trellis *a, int steps, int64_t from, lin_error *err)
{
    roll_back(a, from);
    set_beam(a, steps);
    while (a->at.done < a->T) LIN_TRY(pass_row(a, err));
    return LIN_OK;
}

// If the end of the text is not reached, or the path is wrong there: repeats the pass from farther back with wider beams.
static lin_status reach_end(trellis *a, lin_error *err)
{
    int64_t back = 2 * a->stretch, from = a->T;
    for (int steps = a->steps + 1; steps <= a->options.widenings && a->dropped; steps++) {
        const int reached = best_end(a) >= 0;
        const double score = reached ? a->scores[best_end(a)] : -INFINITY;
        if (reached && !is_lost(a)) break;
        const int64_t before = from;
        from = steps == a->options.widenings && !reached ? 0 : a->T - back;
        lin_status status = rerun(a, steps, from, err);
        if (status != LIN_OK && a->full && reached) return rerun(a, steps - 1, before, err);
        if (status != LIN_OK) return status;
        if (reached && !(best_end(a) >= 0 && a->scores[best_end(a)] > score)) break;
        back *= WIDEN;
    }
    return LIN_OK;
}

// Score of the path minus that of the best labels, per second, in its worst stretch.
static void find_worst(trellis *a, const int32_t *path)
{
    const int64_t stretch = a->stretch < a->T ? a->stretch : a->T;
    double sum = 0, worst = INFINITY;
    for (int64_t t = 0; t < a->T; t++) {
        // The row that enters the stretch, and the one that leaves it.
        for (int64_t at = t; at >= 0 && at >= t - stretch; at -= stretch) {
            const float *row = row_of(a, at);
            const int label = a->graph->states[path[at]].label;
            const double behind = label == a->V  ? LIN_ALIGN_ANY
                                  : label > a->V ? 0
                                                 : (double)row[label] - (double)lin_row_most(row, a->V);
            sum += at == t ? behind : -behind;
        }
        if (t >= stretch - 1 && sum < worst) {
            worst = sum;
            a->report.worst_row = t - stretch + 1;
        }
    }
    a->report.worst_fit = worst / ((double)stretch * a->options.row_s);
}

// The states of the best path [T], or NULL.
static int32_t *trace(const trellis *a, lin_error *err)
{
    const lin_align_graph *g = a->graph;
    int s = best_end(a);
    int32_t *path = lin_alloc((size_t)a->T, sizeof *path);
    if (!path) {
        lin_no_memory(err, "the path of an alignment", (size_t)a->T * sizeof *path);
        return NULL;
    }
    for (int64_t t = a->T - 1; t >= 0; t--) {
        path[t] = s;
        const int choice = choice_at(a, t, s);
        if (choice) s = g->befores[g->states[s].before + choice - 1];
    }
    return path;
}

/* ---- the result ------------------------------------------------------------------------------------------------------------ */

// The best label of a row from `first` on.
static int best_at(const trellis *a, int64_t t, int first) { return lin_row_best(row_of(a, t), first, a->V); }

// One more phone of a slot, which `label` has had since row t.
static void put_phone(trellis *a, lin_path *path, const lin_align_state *state, int label, int64_t t, int64_t end)
{
    const int slot = state->slot;
    double sum = 0;
    for (int64_t r = t; r < end; r++) sum += (double)row_of(a, r)[label];
    path->phones[path->n_phones++] =
        (lin_path_phone){.label = label, .stress = state->stress, .confidence = (float)exp(sum / (double)(end - t)),
                         .start = t, .end = end};
    if (!a->graph->slots[slot].is_word) return;
    if (!path->n_words || path->words[path->n_words - 1].word != slot) {
        path->words[path->n_words++] = (lin_path_word){.word = slot, .first_phone = path->n_phones - 1, .start = t};
        a->word_sum = 0;
        a->word_rows = 0;
    }
    lin_path_word *word = &path->words[path->n_words - 1];
    a->word_sum += sum;
    a->word_rows += end - t;
    word->n_phones++;
    word->end = end;
    word->confidence = (float)exp(a->word_sum / (double)a->word_rows);
}

// What was heard where no pronunciation is known: the runs of the best labels, at least the most probable phone.
static void put_any(trellis *a, lin_path *path, const lin_align_state *state, int64_t t, int64_t end)
{
    int64_t at = t, likely = t;
    const int before = path->n_phones;
    for (int64_t r = t; r < end; r++) {
        if (row_of(a, r)[best_at(a, r, 1)] > row_of(a, likely)[best_at(a, likely, 1)]) likely = r;
    }
    while (at < end) {
        const int label = best_at(a, at, 0);
        int64_t stop = at + 1;
        while (stop < end && best_at(a, stop, 0) == label) stop++;
        if (label) put_phone(a, path, state, label, at, stop);
        at = stop;
    }
    if (path->n_phones == before) put_phone(a, path, state, best_at(a, likely, 1), likely, likely + 1);
}

// Speech that is not in the text, without the blanks around it.
static void put_other(const trellis *a, lin_path *path, int64_t t, int64_t end)
{
    while (t + 1 < end && best_at(a, t, 0) == 0) t++;
    while (end > t + 1 && best_at(a, end - 1, 0) == 0) end--;
    path->others[path->n_others++] = (lin_path_other){t, end};
}

static lin_status write_path(trellis *a, const int32_t *states, lin_path *path, lin_error *err)
{
    const lin_align_graph *g = a->graph;
    int n_phones = 0, n_others = 0;
    for (int64_t t = 0; t < a->T; t++) {
        const int s = states[t], label = g->states[s].label;
        const int begins = t == 0 || states[t - 1] != s;
        n_phones += label == a->V || (label && label < a->V && begins);
        n_others += label > a->V && begins;
    }
    lin_path_clear(path);
    LIN_TRY(lin_path_reserve(path, n_phones, g->n_slots, err));
    LIN_TRY(lin_grow_int(&path->others, &path->others_capacity, n_others, sizeof *path->others, "a path", err));
    for (int64_t t = 0, end; t < a->T; t = end) {
        const lin_align_state *state = &g->states[states[t]];
        for (end = t; end < a->T && states[end] == states[t]; end++) continue;
        if (state->label > a->V) put_other(a, path, t, end);
        else if (state->label == a->V) put_any(a, path, state, t, end);
        else if (state->label) put_phone(a, path, state, state->label, t, end);
    }
    path->score = path->acoustic = a->report.score;
    return LIN_OK;
}

// The best end of the text after all rows.
static lin_status find_end(trellis *a, lin_error *err)
{
    LIN_TRY(reach_end(a, err));
    const int end = best_end(a);
    if (end < 0)
        return lin_fail(
            err, LIN_MISMATCH,
            "text and sound do not match: no path through the text reaches its end, even in the widest beam tried "
            "(%g, %d of %d states)",
            a->report.beam, a->report.width, a->graph->n_states);
    a->report.score = a->scores[end];
    a->report.exact = !a->dropped;
    return LIN_OK;
}

// A second pass, which may find speech that is not in the text. The path of the first pass stays if it is better.
static lin_status find_others(trellis *a, int32_t **states, lin_error *err)
{
    const lin_align_report plain = a->report;
    const double greedy = a->at.greedy;
    lin_error none;
    if (plain.score - a->at.greedy > LIN_ALIGN_OTHER_OUTSIDE) return LIN_OK;
    roll_back(a, 0);
    a->others = 1;
    a->dropped = a->given_up = 0;
    a->until = -1;
    a->report = (lin_align_report){0};
    set_beam(a, 0);
    lin_status status = pass_rows(a, &none);
    if (status == LIN_OK) status = find_end(a, &none);
    if (status == LIN_NO_MEMORY && !a->full) return lin_fail_as(err, &none);
    if (status != LIN_OK || a->report.score <= plain.score) {
        a->report = plain;
        a->at.greedy = greedy;
        return LIN_OK;
    }
    int32_t *better = trace(a, err);
    if (!better) return LIN_NO_MEMORY;
    lin_free(*states);
    *states = better;
    return LIN_OK;
}

// How much the score of the path is below that of the best labels, without other speech.
static double behind_best(const trellis *a, const int32_t *states)
{
    double behind = a->report.score - a->at.greedy;
    for (int64_t t = 0; t < a->T; t++) {
        if (a->graph->states[states[t]].label <= a->V) continue;
        if (t == 0 || states[t] != states[t - 1]) behind -= (double)a->graph->states[states[t]].logp;
        behind += (double)lin_row_most(row_of(a, t), a->V) - (double)other_speech(a, t);
    }
    return behind;
}

static lin_status align(trellis *a, lin_path *path, lin_error *err)
{
    LIN_TRY(make(a, err));
    LIN_TRY(pass_rows(a, err));
    LIN_TRY(find_end(a, err));
    lin_status status = LIN_OK;
    int32_t *states = trace(a, err);
    if (!states) return LIN_NO_MEMORY;
    if (a->options.others) status = find_others(a, &states, err);
    if (status == LIN_OK) status = write_path(a, states, path, err);
    if (status == LIN_OK) {
        find_worst(a, states);
        a->report.fit = behind_best(a, states) / path->n_phones;
    }
    lin_free(states);
    return status;
}

lin_status lin_align_text(const lin_align_graph *graph, const lin_align_options *options, const float *logp, int64_t T,
                          lin_path *path, lin_align_report *report, lin_error *err)
{
    const int64_t least = lin_align_graph_least_rows(graph);
    const double row_s = options->row_s, stretch = options->stretch_s / row_s;
    assert(options->beam > 0 && options->width >= 2 && row_s > 0 && options->stretch_s > 0 && options->mismatch < 0);
    if (graph->n_slots == 0) return lin_fail(err, LIN_INVALID, "there is no text to align: it has no words and no phones");
    LIN_TRY(lin_rows_check_numbers(logp, T, graph->V, 0, err));
    if (T < least)
        return lin_fail(
            err, LIN_MISMATCH,
            "the text is longer than the sound: its %lld phones need at least %.2f s (%lld rows), the sound has %.2f s "
            "(%lld rows)",
            (long long)graph->least_phones, (double)least * row_s, (long long)least, (double)T * row_s, (long long)T);
    trellis a = {.graph = graph,
                 .options = *options,
                 .rows = logp,
                 .T = T,
                 .V = graph->V,
                 .bits = graph->most_befores < 4 ? 2 : graph->most_befores < 16 ? 4 : 8,
                 .stretch = stretch < 1 ? 1 : stretch < 1e9 ? (int64_t)stretch : 1000000000,
                 .until = -1};
    const lin_status status = align(&a, path, err);
    if (status == LIN_OK) *report = a.report;
    release(&a);
    return status;
}
