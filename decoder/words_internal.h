/*
 * words_internal.h - the word search on one page, and the types that its files share.
 *
 * A hypothesis is one entry of the beam: a place in the lexicon's tree (or after a complete word, or in a word outside the
 * lexicon), a state of the language model and of the context, and its history (the words before with their pronunciations),
 * identified by a hash. Its two endings hold the alignments that end in blank and those that end in the last phone: the sum over
 * all alignments that were followed, for the score, and the best one, for the times.
 *
 * Four files; each calls only those above it, and words.c calls all:
 *
 *   words_history.c  What the hypotheses have in common. The trace-back of the best alignments: traces, one for each phone,
 *                    linked to the phone before, in a fixed pool; traces that nothing refers to are removed when it is full. And
 *                    the losers of recombinations, stored as alternatives to all phones of the winner so far: the score that they
 *                    lost then is what they lose at the end, as in a word lattice (Ortmanns, Ney & Aubert 1997). Only a
 *                    trace-back with the winner's phones can have the loser's instead: inside a word both have the same remaining
 *                    phones.
 *   words_search.c   Extends every hypothesis by a row of log-probabilities: it stays (blank, or the last phone again), or moves
 *                    by a phone to a child in the tree; where words end, each of them makes another hypothesis at the root.
 *                    Hypotheses with the same place and history are summed. Of those with the same place and states but different
 *                    histories (whose later scores are the same) the best is kept, and of all the best `width` within `score` of
 *                    the best. It does not know of results.
 *   words_nbest.c    Results: phones and words, with times and confidences, from trace-backs; the n best sequences of words, by a
 *                    best-first search over hypotheses and alternatives, sorted by their exact scores (decoder/rows.h); for these
 *                    the rows. It does not know of the search.
 *   words.c          Options, creation, push, finish, states from files. A word is settled once it is the first of every
 *                    hypothesis's history: it is given out with the times of the best hypothesis, but ends no later than the next
 *                    phone of any hypothesis begins; all trace-backs are cut after it.
 *
 * Score of a hypothesis: acoustic sum + lm_weight * (language model + pronunciations) + bonus for every word begun + costs of
 * unknown words + context, and within a word the look-ahead (lm_weight times the best unigram below), which the language model
 * replaces at the end of the word, where the logarithm of the pronunciation's probability is added too. The costs of a word
 * outside the lexicon are charged at its first phone, the cost of each phone at that phone.
 *
 * The state: header, hypotheses, traces, alternatives, and, with n_best above 1, rows; then working memory for one row and,
 * between two rows, for the n best: its content is not used by the next row.
 */
#ifndef LIN_DECODER_WORDS_INTERNAL_H
#define LIN_DECODER_WORDS_INTERNAL_H

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/hash.h"
#include "decoder/rows.h"
#include "decoder/words.h"
#include "lexicon/ngram.h"

// In a word outside the lexicon; else a node (of the lexicon, then of the context's words).
enum { LIN_PLACE_UNKNOWN = -1 };
enum { LIN_WORD_INSIDE = -2 };          // of a trace: the phone is not the last of a word
enum { LIN_CONTEXT_NONE = 0x7fffffff }; // token for a word that is in no phrase of the context

#define LIN_WORDS_MAGIC UINT64_C(0x32736472776e696c) // "linwrds2"

// A score of the language model: of a word after a state. lm_state LIN_WORDS_NO_SCORE: none yet.
enum { LIN_WORDS_SCORE_BITS = 13, LIN_WORDS_SCORES = 1 << LIN_WORDS_SCORE_BITS };
#define LIN_WORDS_NO_SCORE UINT32_MAX
typedef struct lin_words_score {
    uint32_t lm_state, next;
    int32_t word;
    float logp;
} lin_words_score;

struct lin_words {
    const lin_tree *tree;
    const lin_ngram *lm;
    const lin_grammar *grammar; // in place of the language model, or NULL
    double least;               // confidence of a sentence of the grammar
    lin_words_options o;
    lin_ngram_pairs pairs;
    int V;
    int thorough, all_histories; // only tests set them: all moves are followed, also those that cannot reach the floor;
                                 // nothing is recombined
    int lm_unknown;                                      // the language model has <unk>
    double unknown;                                      // for words outside a language model that has no <unk>: finite
    double ahead_lacking;                                // look-ahead of such words
    int n_candidates, n_slots, n_traces, n_alternatives; // capacities
    int n_traceback;                                     // largest number of phones of a trace-back
    int n_rows; // capacity for rows, for the exact sums of the n best; 0 with n_best 1
    size_t hyps_at, traces_at, alternatives_at, candidates_at, slots_at, order_at, rows_at, bytes;
    uint64_t fingerprint;
    // Tables of scores, one for each core, beside the streams' states, which do not depend on them.
    // A push holds one while it runs.
    int n_tables;
    lin_words_score *tables; // [n_tables, LIN_WORDS_SCORES]
    atomic_int *held;        // [n_tables]
};

typedef struct lin_words_ending {
    double sum, best; // of all alignments followed that end like this, and of the best of them. -INFINITY: there is none
    double logp;      // of the last phone of the best one, over its run
    int32_t trace;    // of that phone; -1: there is none
    int32_t frames;   // of its run
} lin_words_ending;

typedef struct lin_words_hyp {
    uint64_t history;   // of all words before, with their pronunciations; also of the phones so far in an unknown word
    uint64_t first;     // the history up to the first word that is not settled, 0: none is complete
    int32_t node, last; // place; last label, 0 at the beginning
    uint32_t lm_state;
    int32_t context;
    int32_t n_words, n_phones; // not settled: complete words, phones
    int32_t n_inside;          // phones of an unknown word so far
    int32_t reserved;
    double language; // not weighted
    double weight;   // natural logarithm of all but the acoustic score and the look-ahead
    double ahead;
    double pending;         // bonus of unfinished phrases, part of weight: taken back if the phrase fails
    double acoustic, score; // acoustic: sum of both endings
    lin_words_ending endings[2];
} lin_words_hyp;

typedef struct lin_words_trace {
    uint64_t history;   // of the words complete after this phone
    int64_t start;      // first frame of the phone's run
    double before_logp; // the run of the phone before, as it was when this one began
    int32_t before_frames;
    int32_t before; // trace of the phone before, an older one; -1: none, or settled
    int32_t label;
    int32_t word;     // that ends with this phone, or LIN_WORD_INSIDE
    uint32_t n_words; // complete after it since the reset
    int32_t node;     // place after it
} lin_words_trace;

// A phone of a trace-back: its trace and its run. trace -1: the settled part ends here.
typedef struct lin_words_step {
    double logp;
    int32_t trace, frames;
} lin_words_step;

// Two hypotheses reached the same place and states by different words or phones: lin_words_key identifies such beginnings.
typedef struct lin_words_alternative {
    uint64_t winner, loser; // keys
    lin_words_step end;         // last phone of the loser; its label is that of the winner's last phone
    // Scores relative to the beam's best of their row: the winner's highest; the loser's summed over rows (each row drops other
    // alignments), and its highest, which gives its times. What the loser lost is its distance from the winner.
    double winner_level, loser_level, loser_best;
    double lost, lost_weight, lost_language;
    int32_t used; // 0: an empty slot, 1, or 2: about to be removed
    int32_t reserved;
} lin_words_alternative;

// The phones of a hypothesis that are not settled, the last one first, and which of them end words, the last word first.
typedef struct lin_words_traceback {
    int n, n_words;
    lin_words_step *phones; // [n_traceback]
    int32_t *ends;      // [n_traceback] numbers of phones
} lin_words_traceback;

// One of the n best: the trace-back of a hypothesis (base -1), or that of another item whose last `kept` phones are kept and
// whose phones before are an alternative's.
typedef struct lin_words_ranked {
    double score, acoustic, language; // estimates if it contains an alternative
    int32_t base, kept, from;         // from: hypothesis, or alternative
    int32_t done;
    double exact; // acoustic: the sum over all alignments, if the rows for it are stored
    uint64_t words;
} lin_words_ranked;

// Working memory between two rows, for trace-backs and the search for the n best. Arrays of n_traceback (and V) follow it.
enum { LIN_WORDS_RANKED_MAX = 1024, LIN_WORDS_RESCORED_MAX = 2 * LIN_WORDS_NBEST_MAX + 16 };
typedef struct lin_words_ranking {
    int32_t n, n_seen, n_found;
    int32_t best; // item of the best hypothesis
    lin_words_ranked items[LIN_WORDS_RANKED_MAX];
    int32_t chain[LIN_WORDS_RANKED_MAX];
    int32_t found[LIN_WORDS_RESCORED_MAX]; // items, in their order
    uint64_t seen[LIN_WORDS_RESCORED_MAX];
} lin_words_ranking;

// A hypothesis for the next row.
typedef struct lin_words_candidate {
    lin_words_hyp t;
    int32_t next; // with the same place and states, -1: none
    int32_t head; // it is the first of these
    int16_t alive;
    int16_t changed; // since its score was computed
    int32_t fresh; // the best alignment of the label ending began its phone in this row; its `trace` is that of the phone before
    int32_t before_frames, word;
    double before_logp;
} lin_words_candidate;

typedef struct lin_words_header {
    uint64_t magic, fingerprint;
    int64_t first_frame, frame; // of the segment; number of the next row
    uint64_t context_id;        // of the context that the hypotheses' states are of; 0: none
    uint32_t settled;           // words since the reset
    int32_t n_hyps, n_traces, n_alternatives;
    int32_t finished;
    int32_t ranked;           // the ranking holds the n best of this moment
    uint64_t settled_history; // of all that is settled
    // With n_best above 1: rows from this frame on are stored. The settled part ends before it, with this label, and these
    // logarithms of the sums over its alignments that end in blank and in the label.
    int64_t rows_from;
    double settled_sums[2];
    int32_t settled_label;
    int32_t rows_lost; // there were more than fit: no exact sums before the next reset
    double loop;       // for a grammar: sum of the logarithms of the rows' most probable labels, the best path of any phones
    double sentence;   // after finish: the confidence of the sentence of a grammar
    int32_t settled_phones, reserved;
} lin_words_header;

// The parts of a state.
typedef struct lin_words_view {
    lin_words_header *h;
    lin_words_hyp *hyps;
    lin_words_trace *traces;
    lin_words_alternative *alternatives;
    lin_words_candidate *candidates;
    // between two rows, in the memory of the candidates, as are alternatives while their table is rebuilt
    lin_words_ranking *ranking;
    int32_t *slots;         // heads of the candidates by place and states, -1: none; new indices of traces while they are removed
    double *order;
    float *rows;                         // [n_rows, V]; a row that was skipped begins with NAN
    lin_words_traceback of, best_traceback; // in the memory after the ranking
    double *shares, *best_shares, *sums;
    int32_t *labels;
    // of the current row
    const lin_word_context *context;
    int n_candidates;
    double floor; // candidates with a lower score are not made
    double best;  // score of the row's best candidate
    double top;   // log-probability of the row's best label
    float least;  // labels with a lower log-probability are not followed
    lin_words_score *scores; // [LIN_WORDS_SCORES]; NULL: none was free
    lin_status failed;
} lin_words_view;

static inline lin_words_view lin_words_view_of(const lin_words *w, void *state)
{
    unsigned char *base = state;
    const size_t n = (size_t)w->n_traceback;
    lin_words_ranking *g = (void *)(base + w->candidates_at);
    lin_words_step *steps = (void *)(g + 1);
    double *numbers = (void *)(steps + 2 * n);
    int32_t *whole = (void *)(numbers + 4 * n + 2 + (size_t)w->V);
    return (lin_words_view){.h = state,
                   .hyps = (void *)(base + w->hyps_at),
                   .traces = (void *)(base + w->traces_at),
                   .alternatives = (void *)(base + w->alternatives_at),
                   .candidates = (void *)(base + w->candidates_at),
                   .ranking = g,
                   .slots = (void *)(base + w->slots_at),
                   .order = (void *)(base + w->order_at),
                   .rows = (void *)(base + w->rows_at),
                   .of = {.phones = steps, .ends = whole},
                   .best_traceback = {.phones = steps + n, .ends = whole + n},
                   .shares = numbers,
                   .best_shares = numbers + n,
                   .sums = numbers + 2 * n,
                   .labels = whole + 2 * n};
}

// Size of the ranking and of the arrays after it.
static inline size_t lin_words_ranking_bytes(const lin_words *w)
{
    const size_t n = (size_t)w->n_traceback;
    return sizeof(lin_words_ranking) + 2 * n * sizeof(lin_words_step) + (4 * n + 2 + (size_t)w->V) * sizeof(double) +
           (3 * n + 1) * sizeof(int32_t);
}

static inline double lin_words_log_add(double a, double b)
{
    const double more = a > b ? a : b, less = a > b ? b : a;
    return less == -INFINITY || less < more - 40 ? more : more + log1p(exp(less - more));
}

// Identifies what hypotheses have before a place: all words with their pronunciations, and all phones of the current word.
static inline uint64_t lin_words_key(const lin_words *w, const lin_words_view *s, uint64_t history, int node)
{
    if (node == LIN_TREE_ROOT) return history;
    const uint64_t place = lin_hash_pair(history, (uint64_t)(uint32_t)node | UINT64_C(1) << 43);
    return lin_hash_pair(place, node >= w->tree->n_nodes ? s->h->context_id : 0);
}

static inline uint64_t lin_words_trace_key(const lin_words *w, const lin_words_view *s, const lin_words_trace *r)
{
    return lin_words_key(w, s, r->history, r->node);
}

static inline const lin_words_ending *lin_words_better_ending(const lin_words_hyp *t)
{
    const int label_is_better = t->endings[LIN_LABEL_ENDING].best > t->endings[LIN_BLANK_ENDING].best;
    return &t->endings[label_is_better ? LIN_LABEL_ENDING : LIN_BLANK_ENDING];
}

// Computes the scores from the endings.
static inline void lin_words_weigh(lin_words_hyp *t)
{
    t->acoustic = lin_words_log_add(t->endings[LIN_BLANK_ENDING].sum, t->endings[LIN_LABEL_ENDING].sum);
    t->score = t->acoustic + t->weight + t->ahead;
}

// The natural logarithm of the blank of a row, as the search counts it.
static inline float lin_words_blank(const lin_words *w, const float *logp) { return logp[0] - (float)w->o.blank_penalty; }

/* ---- words.c --------------------------------------------------------------------------------------------------------------- */

void lin_words_renew(const lin_words *w, void *state); // begins again if the state is of another search: the grammar has changed

/* ---- words_history.c ------------------------------------------------------------------------------------------------------- */

int lin_words_best(const lin_words_view *s); // index of the best hypothesis
// Of the phone that a candidate's label ending began.
int lin_words_new_trace(lin_words_view *s, const lin_words_candidate *c);
int lin_words_is_settled(const lin_words_view *s, const lin_words_trace *r);
// History up to the first unsettled word, or 0; its phones.
uint64_t lin_words_first_of(const lin_words_view *s, int at, int *phones);
int lin_words_age(const lin_words_view *s, const lin_words_hyp *t); // rows since the last phone of its first word began
int64_t lin_words_begin_after_first(const lin_words_view *s, int at); // start of the phone after that word, or the next row
// The unfinished word becomes a complete unknown one.
void lin_words_break_off(lin_words_view *s, lin_words_hyp *t);
void lin_words_sweep(const lin_words *w, lin_words_view *s); // removes traces and alternatives that nothing refers to

void lin_words_traceback_of(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, lin_words_traceback *to);
// Appends the phones up to `end`.
void lin_words_follow_traces(const lin_words *w, const lin_words_view *s, lin_words_step end, lin_words_traceback *to);

void lin_words_remember(const lin_words *w, lin_words_view *s, const lin_words_candidate *winner,
                        const lin_words_candidate *loser);
// First alternative of a winner from a slot on (-1: from its first slot on), or -1.
int lin_words_next_alternative(const lin_words *w, const lin_words_view *s, uint64_t winner, int at);
void lin_words_thin_alternatives(const lin_words *w, lin_words_view *s); // removes the worse half
void lin_words_drop_alternatives(const lin_words *w, lin_words_view *s); // removes all
// `first`, the first word of all histories, is settled and ends before `limit`: alternatives without it, or that continue
// earlier, are removed.
void lin_words_settle_alternatives(const lin_words *w, lin_words_view *s, uint64_t first, int64_t limit);
int lin_words_good_history(const lin_words *w, const lin_words_view *s); // check of a state from a file

/* ---- words_search.c -------------------------------------------------------------------------------------------------------- */

// What hypotheses did in a row: only stayed, because its blank is probable enough; moved; or neither, because the row is
// impossible for all.
typedef enum lin_words_moved { LIN_WORDS_STAYED, LIN_WORDS_MOVED, LIN_WORDS_IMPOSSIBLE } lin_words_moved;
lin_words_moved lin_words_row(const lin_words *w, lin_words_view *s, const float *logp);

/* ---- words_nbest.c --------------------------------------------------------------------------------------------------------- */

void lin_words_shares(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, const lin_words_traceback *of,
                      double *shares);
// Appends a trace-back's words, which end before frame `limit`: only the first one, or all and the phones after them.
lin_status lin_words_append_traceback(const lin_words *w, const lin_words_view *s, const lin_words_traceback *of,
                                      const double *shares, int only_first, int64_t limit, lin_path *path, lin_error *err);
lin_status lin_words_append_best(const lin_words *w, const lin_words_view *s, lin_path *path, lin_error *err);

// Rows for the exact sums: without effect if n_best is 1.
void lin_words_keep_row(const lin_words *w, lin_words_view *s, const float *logp, int passed_over);
int lin_words_rows_full(const lin_words *w, const lin_words_view *s);
// Drops the rows of the first word, which end before `limit`.
void lin_words_settle_rows(const lin_words *w, lin_words_view *s, const lin_words_traceback *of, int64_t limit);
void lin_words_settle_silence(const lin_words *w, lin_words_view *s); // no hypothesis has a phone: all rows
int lin_words_good_results(const lin_words *w, const lin_words_view *s); // check of a state from a file

#endif
