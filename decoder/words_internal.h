/*
 * words_internal.h - the word search on one page, and what its files share.
 *
 * A token is one hypothesis: a place in the lexicon's tree (or behind a complete word, or in a word outside the lexicon), a state
 * of the language model and of the context, and its history, the words before with their pronunciations, known by a hash. Its two
 * arms hold the alignments that end in blank and those that end in the last phone: the sum over all that were followed, for the
 * score, and the best one, for the times.
 *
 *   words_search.c        A row of log-probabilities moves every token: it stays (blank, or the last phone again), or goes on by a
 *                         phone to a child in the tree, and where words end there, to a second token behind each of them. Arrivals
 *                         at the same place with the same history are summed. Then of those with the same place and states but
 *                         different histories (which have the same future) the better `rivals` go on, and of all that are left the
 *                         best `width` within `score` of the best.
 *   words_history.c       The best alignments are chains of records, one for each phone, in a fixed pool; chains that nothing
 *                         reaches any more are swept out when the pool is full. A word is settled when it is the first of every
 *                         token's history: it is given out with the times of the best token, though it ends where any token goes
 *                         on, and all chains are cut behind it.
 *   words_alternatives.c  The losers of recombinations, kept as alternatives to all phones of the winner so far: what they lost
 *                         then is what they would lose in the end, as in a word lattice (Ortmanns, Ney & Aubert 1997). Only lines that
 *                         have the winner's phones can have the loser's instead: inside a word, both have the same phones to come.
 *   words_nbest.c         The n best sequences of words, by a best-first search over tokens and alternatives, put in order by their
 *                         exact scores.
 *   words_exact.c         The rows that this takes, and the sum over all alignments of a sequence of phones.
 *   words_path.c          From chains to phones and words, with times and confidences.
 *   words.c               Options, creation, push, finish. words_check.c: states out of files.
 *
 * The score of a token: acoustic sum + lm_weight * language model + bonus for every word begun + costs of unknown words + context,
 * and within a word the look-ahead (lm_weight times the best unigram below), which the language model replaces at its end. A word
 * outside the lexicon pays all when it begins, and each of its phones when it comes.
 *
 * The state: header, tokens, records, alternatives, with n_best above 1 rows; then room for the work on one row and, between two,
 * on the n best: its bytes mean nothing to the next row.
 */
#ifndef LIN_DECODER_WORDS_INTERNAL_H
#define LIN_DECODER_WORDS_INTERNAL_H

#include <math.h>
#include <stdint.h>

#include "base/hash.h"
#include "decoder/word_context_internal.h"
#include "decoder/words.h"

enum { BLANK_ARM, LABEL_ARM };
enum { PLACE_UNKNOWN = -1 };        // in a word outside the lexicon; else a node, those of the context's words behind the lexicon's
enum { WORD_INSIDE = -2 };          // of a record: the phone is not the last of a word
enum { CONTEXT_NONE = 0x7fffffff }; // token of the context for a word that no phrase has

#define WORDS_MAGIC UINT64_C(0x32736472776e696c)     // "linwrds2"
#define WORDS_MAGIC_OLD UINT64_C(0x31736472776e696c) // "linwrds1": states of version 0.1, without phones in alternatives

struct lin_words {
    const lin_tree *tree;
    const lin_ngram *lm;
    lin_words_options o;
    const lin_tree_node *nodes;
    const lin_tree_end *ends;
    int V, n_nodes, n_ends, n_words;
    int lm_unknown;                                       // the language model has <unk>
    double unknown;                                       // for a word that the language model lacks when it has no <unk>: finite
    double ahead_lacking;                                 // look-ahead of such words
    int n_candidates, n_slots, n_records, n_alternatives; // room for them
    int n_line;                                           // phones of a line at most
    int n_rows;                                           // rows that are kept, for the exact sums of the n best; 0 with n_best 1
    size_t tokens_at, records_at, alternatives_at, candidates_at, slots_at, order_at, rows_at, bytes;
    uint64_t fingerprint;
};

typedef struct arm {
    double sum, best; // of all alignments followed that end so; of the best of them. -INFINITY: there is none
    double logp;      // of the last phone of the best one, over its run
    int32_t record;   // of that phone; -1: there is none
    int32_t frames;   // of its run
} arm;

typedef struct token {
    uint64_t history;   // of all words before, with their pronunciations; of the phones too where the present word is unknown
    uint64_t first;     // the history up to the first word that is not settled, 0: none is complete
    int32_t node, last; // place; last label, 0 at the beginning
    uint32_t lm_state;
    int32_t context;
    int32_t n_words, n_phones; // not settled: complete words, phones
    int32_t n_inside;          // phones of an unknown word so far
    int32_t reserved;
    double language; // not weighted
    double outer;    // all that is weighed but the acoustic score and the look-ahead
    double ahead;
    double promise;     // of the context, part of outer: taken back if its phrase fails
    double mass, total; // acoustic sum of both arms; score
    arm arms[2];
} token;

typedef struct record {
    uint64_t history;   // of the words complete behind this phone
    int64_t start;      // first frame of the phone's run
    double before_logp; // the run of the phone before, as it was when this one began
    int32_t before_frames;
    int32_t before; // its record, an older one; -1: none, or settled
    int32_t label;
    int32_t word;     // that ends with this phone, or WORD_INSIDE
    uint32_t n_words; // complete behind it since the reset
    int32_t node;     // place behind it
} record;

// A phone of a hypothesis: its record and its run. record -1: what is settled ends here.
typedef struct step {
    double logp;
    int32_t record, frames;
} step;

// Two hypotheses came to the same place with the same states, by other words or phones: words_key tells such beginnings apart.
typedef struct alternative {
    uint64_t winner, loser; // keys
    step end;               // last phone of the loser, the same label as the winner's
    // Scores below the beam's best of their row: the winner's highest, the loser's summed over rows (each row drops other
    // alignments), and its highest, of which its times are. What the loser lost is what it stayed below the winner.
    double winner_level, loser_level, loser_best;
    double lost, lost_outer, lost_language;
    int32_t used; // 0: an empty slot, 1, or 2: about to go
    int32_t reserved;
} alternative;

// The phones of a hypothesis that are not settled, the last one first, and which of them end words, the last word first.
typedef struct line {
    int n, n_words;
    step *phones;  // [n_line]
    int32_t *ends; // [n_line] numbers of phones
} line;

// A hypothesis of the n best: a token's line (base -1), or the line of another one whose last `kept` phones stay and whose phones
// before are an alternative's.
typedef struct ranked {
    double total, acoustic, language; // estimates where an alternative is in it
    int32_t base, kept, from;         // from: token, or alternative
    int32_t done;
    double exact; // acoustic: the sum over all alignments, where the rows are there for it
    uint64_t words;
} ranked;

// What the lines of hypotheses and the search for the n best take between two rows. Arrays of n_line (and V) follow it.
enum { WORDS_RANKED_MAX = 1024, WORDS_RESCORED_MAX = 2 * LIN_WORDS_NBEST_MAX + 16 };
typedef struct ranking {
    int32_t n, n_seen, n_found;
    int32_t best; // item of the best token
    ranked items[WORDS_RANKED_MAX];
    int32_t chain[WORDS_RANKED_MAX];
    int32_t found[WORDS_RESCORED_MAX]; // items, in their order
    uint64_t seen[WORDS_RESCORED_MAX];
} ranking;

// A token on its way into the next row.
typedef struct candidate {
    token t;
    int32_t next; // with the same place and states, -1: none
    int32_t head; // it is the first of these
    int32_t alive;
    int32_t fresh; // the label arm's best alignment began its phone in this row; its `record` is the phone's before
    int32_t before_frames, word;
    double before_logp;
} candidate;

typedef struct words_header {
    uint64_t magic, fingerprint;
    int64_t first_frame, frame; // of the segment; number of the next row
    uint64_t context_id;        // that the tokens' contexts belong to; 0: none
    uint32_t settled;           // words since the reset
    int32_t n_tokens, n_records, n_alternatives;
    int32_t finished;
    int32_t ranked;           // the room for the ranking holds the n best of this moment
    uint64_t settled_history; // of all that is settled
    // With n_best above 1: rows from this frame on are kept. What is settled ends before it, with this label, and these logarithms
    // of the sums over its alignments that end in blank and in the label.
    int64_t rows_from;
    double settled_sums[2];
    int32_t settled_label;
    int32_t rows_lost; // there were more than have room: no exact sums before the next reset
} words_header;

// The parts of a state.
typedef struct space {
    words_header *h;
    token *tokens;
    record *records;
    alternative *alternatives;
    candidate *candidates;
    ranking *ranking; // between two rows in the candidates' room, as alternatives while they are put into a new table
    int32_t *slots;   // heads of the candidates by place and states, -1: none; the sweep's new numbers of records
    double *order;
    float *rows;        // [n_rows, V]; a row that was passed over begins with NAN
    line of, best_line; // in the room behind the ranking
    double *shares, *best_shares, *sums;
    int32_t *labels;
    // of the present row
    const lin_word_context *context;
    int n_candidates;
    double floor; // what is worse is not begun
    double best;  // score of the row's best candidate
    float least;  // labels below are not followed
    lin_status failed;
} space;

static inline space words_space(const lin_words *w, void *state)
{
    unsigned char *base = state;
    const size_t n = (size_t)w->n_line;
    ranking *g = (void *)(base + w->candidates_at);
    step *steps = (void *)(g + 1);
    double *numbers = (void *)(steps + 2 * n);
    int32_t *whole = (void *)(numbers + 4 * n + 2 + (size_t)w->V);
    return (space){.h = state,
                   .tokens = (void *)(base + w->tokens_at),
                   .records = (void *)(base + w->records_at),
                   .alternatives = (void *)(base + w->alternatives_at),
                   .candidates = (void *)(base + w->candidates_at),
                   .ranking = g,
                   .slots = (void *)(base + w->slots_at),
                   .order = (void *)(base + w->order_at),
                   .rows = (void *)(base + w->rows_at),
                   .of = {.phones = steps, .ends = whole},
                   .best_line = {.phones = steps + n, .ends = whole + n},
                   .shares = numbers,
                   .best_shares = numbers + n,
                   .sums = numbers + 2 * n,
                   .labels = whole + 2 * n};
}

// Of the ranking and the arrays behind it.
static inline size_t words_ranking_bytes(const lin_words *w)
{
    const size_t n = (size_t)w->n_line;
    return sizeof(ranking) + 2 * n * sizeof(step) + (4 * n + 2 + (size_t)w->V) * sizeof(double) + (3 * n + 1) * sizeof(int32_t);
}

static inline double log_add(double a, double b)
{
    const double more = a > b ? a : b, less = a > b ? b : a;
    return less == -INFINITY || less < more - 40 ? more : more + log1p(exp(less - more));
}

// Tells apart what hypotheses have behind them at a place: all words with their pronunciations, and all phones of the present one.
static inline uint64_t words_key(const lin_words *w, const space *s, uint64_t history, int node)
{
    if (node == LIN_TREE_ROOT) return history;
    return lin_hash_pair(lin_hash_pair(history, (uint64_t)(uint32_t)node | UINT64_C(1) << 43), node >= w->n_nodes ? s->h->context_id : 0);
}

static inline uint64_t words_record_key(const lin_words *w, const space *s, const record *r)
{
    return words_key(w, s, r->history, r->node);
}

static inline const arm *better_arm(const token *t)
{
    return t->arms[LABEL_ARM].best > t->arms[BLANK_ARM].best ? &t->arms[LABEL_ARM] : &t->arms[BLANK_ARM];
}

static inline void weigh(token *t)
{
    t->mass = log_add(t->arms[BLANK_ARM].sum, t->arms[LABEL_ARM].sum);
    t->total = t->mass + t->outer + t->ahead;
}

// words_search.c: moves all tokens over one row. 0: it was a blank one, through which they only waited.
int words_row(const lin_words *w, space *s, const float *logp);

// words_history.c
int words_best(const space *s);                                        // number of the best token
int words_new_record(space *s, const candidate *c);                    // of the phone that a candidate's label arm began
void words_make_room(const lin_words *w, space *s, lin_path *settled); // for a row's records: sweeps, and settles if it must
void words_settle(const lin_words *w, space *s, lin_path *settled);    // what all tokens share, and what is too long
void words_sweep(const lin_words *w, space *s);                        // away with records that nothing reaches
void words_mark(const space *s, int32_t *marks, int at);               // a chain
int words_is_settled(const space *s, const record *r);
void words_break_off(space *s, token *t);                     // the word that a token is in becomes an unknown one, complete
uint64_t words_first_of(const space *s, int at, int *phones); // history up to the first unsettled word of a chain, 0; its phones
int64_t words_begin_behind_first(const space *s, int at);     // start of the phone behind that word, or the next row

// words_alternatives.c
void words_remember(const lin_words *w, space *s, const candidate *winner, const candidate *loser);
int words_next_alternative(const lin_words *w, const space *s, uint64_t winner, int at);
void words_mark_alternatives(const lin_words *w, space *s, int32_t *marks);
void words_thin_alternatives(const lin_words *w, space *s);
void words_drop_alternatives(const lin_words *w, space *s);
void words_settle_alternatives(const lin_words *w, space *s, uint64_t first, int64_t limit);

// words_path.c
void words_token_line(const lin_words *w, const space *s, const token *t, line *to);
void words_follow_line(const lin_words *w, const space *s, step end, line *to); // appends a chain's phones
int words_same(const space *s, const line *a, int i, const line *b, int k); // the same word, of the lexicon, at an overlapping time
void words_shares(const lin_words *w, const space *s, const token *t, const line *of, double *shares);
// Appends a line's words, which end before frame `limit`; the first one only, or all and the phones behind.
lin_status words_append_line(const space *s, const line *of, const double *shares, int only_first, int64_t limit, lin_path *path,
                             lin_error *err);

// words_exact.c: nothing of it does anything with n_best 1.
void words_keep_row(const lin_words *w, space *s, const float *logp, int passed_over);
int words_rows_full(const lin_words *w, const space *s);
void words_settle_rows(const lin_words *w, space *s, const line *of, int64_t limit); // the line's first word, before `limit`
void words_settle_silence(const lin_words *w, space *s);                             // no token has a phone: all rows
double words_exact(const lin_words *w, const space *s, const line *of);              // acoustic; NAN: rows are lost
int words_good_rows(const lin_words *w, const space *s);                             // of a state from a file

// words_nbest.c
lin_status words_append_best(const lin_words *w, const space *s, lin_path *path, lin_error *err);
int words_good_ranking(const lin_words *w, const space *s); // of a state from a file

#endif
