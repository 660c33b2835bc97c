/*
 * words.h - CTC beam search over words: a lexicon's prefix tree, a word n-gram, and phones for what the lexicon lacks.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/path -> decoder/result.
 * A hypothesis is a place in the tree (lexicon/tree.h), a state of the language model and of the context, a history of words with
 * their pronunciations, and the sums over its alignments that end in blank and that do not (as in decoder/beam). At the end of a
 * word the language model replaces the look-ahead, the best unigram below the place in the tree. Of hypotheses with the same
 * place and states, whose futures are the same, the better one goes on; the other is remembered as an alternative.
 * words_internal.h has the whole on one page.
 *
 *   lin_words_options o = lin_words_options_default();
 *   lin_words_create(tree, lm, &o, &words, &err);                           // shared by all streams
 *   void *state = lin_alloc(lin_words_bytes(words), 1);
 *   lin_words_reset(words, state, 0);
 *   while (rows come) lin_words_push(words, state, context, logp, n, &settled, &err);
 *   lin_words_nbest(words, state, k, &tail, &err);                          // partial words too
 *   lin_words_finish(words, state, context, &settled, &err);
 *
 * Score of a path: acoustic + lm_weight * language + bonus * words + what unknown words cost + the context's; docs/decoding.md has
 * the formula. acoustic is the sum over the alignments that were followed, at most the exact sum over all alignments of the path's
 * phones: the beam and recombination give alignments up. With n_best above 1 it is the exact sum, for which rows are kept.
 * Confidence of a word: the geometric mean of its phones' (decoder/path.h), times the probability of the word at its place when it
 * is given out: its share of the hypotheses and alternatives that begin with the words that were given out before. Those that
 * have the same word at an overlapping time have it too.
 *
 * A word is settled, and given out with its phones, once every hypothesis has it. Any split of the same rows into pushes gives the
 * same result to the bit. The state is one flat block without pointers: copy it to fork a stream, write it to save one. Its size
 * grows with the width: lin_words_bytes (827 KB at the default width, 2.1 MB with n_best above 1 and 40 outputs). push, nbest and finish allocate nothing but the room of the
 * caller's path.
 * Threads: immutable and shared but for the state; one at a time per state.
 */
#ifndef LIN_DECODER_WORDS_H
#define LIN_DECODER_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/path.h"
#include "decoder/word_context.h"
#include "lexicon/ngram.h"
#include "lexicon/tree.h"

typedef struct lin_words_options {
    int width;           /* hypotheses kept after a frame */
    double score;        /* those so much worse than the best (natural logarithm) are dropped; 0: none is */
    int labels;          /* only the most probable so many labels of a frame are followed; 0: all */
    double blank;        /* frames whose blank is at least so probable are only waited through; 0: none is */
    double lm_weight;    /* on the language model's natural logarithm */
    double bonus;        /* for every word, natural logarithm */
    double unknown;      /* for a word outside the lexicon, natural logarithm, 0 at most; -INFINITY: there is none. The language
                            model's <unk>, if it has one, is weighed too; if not, words that it lacks of the lexicon or of a
                            context cost this as well */
    double unknown_phone; /* for each of its phones, natural logarithm. Not weighed: with a larger lm_weight words of the lexicon
                             cost more, and these two should as well, or what is hard to hear becomes one long unknown word */
    int rivals;          /* histories kept apart where place and states are the same; 1: the better goes on alone */
    int n_best;          /* sequences that nbest can give. Above 1 words are settled only where `longest` demands it, so that the
                            alternatives reach back */
    int longest;         /* words that may be unsettled at most; beyond it the best hypothesis decides */
} lin_words_options;

enum { LIN_WORDS_MAX = 8192, LIN_WORDS_NBEST_MAX = 256, LIN_WORDS_LONGEST_MAX = 500 };

lin_words_options lin_words_options_default(void);

typedef struct lin_words lin_words;

/* tree and lm (may be NULL: all words alike) must outlive it. LIN_INVALID with the name of the field for options out of range,
 * LIN_MISMATCH for a tree that was not made for this language model. */
lin_status lin_words_create(const lin_tree *tree, const lin_ngram *lm, const lin_words_options *options, lin_words **words,
                            lin_error *err);
void lin_words_destroy(lin_words *words); /* NULL is fine */

size_t lin_words_bytes(const lin_words *words);

/* 64 bits over all that its states depend on: lexicon, options, language model. */
uint64_t lin_words_fingerprint(const lin_words *words);
void lin_words_reset(const lin_words *words, void *state, int64_t first_frame);

/*
 * Takes in logp [n_frames, V], natural logarithms, and appends what is settled to *settled, with the best hypothesis's scores.
 * context: may be NULL, may be another one at every call: then what an unfinished phrase had earned is taken back, and words that
 * only the old context knew, where they are not settled, become unknown ones. A row of which no hypothesis can take anything is
 * passed over. LIN_NUMERIC, naming the frame, for a NaN or a row without a finite value; LIN_NO_MEMORY; LIN_INVALID after finish.
 * On failure nothing changes.
 */
lin_status lin_words_push(const lin_words *words, void *state, const lin_word_context *context, const float *logp, int n_frames,
                          lin_path *settled, lin_error *err);

/*
 * The sequence number `which` (0: the best) of those that differ in words, as they stand, from what is settled on, replaces
 * *tail; with its scores of the whole segment. Of several pronunciations of the same words the best one found is given.
 * Behind finish they are ordered by their exact scores, so that the first may be another than with n_best 1. Before it, number 0 is
 * the search's best with the score of the alignments that were followed, and the exact order begins behind it. Times of
 * alternatives are estimates. A word that is not complete is given as LIN_WORD_UNKNOWN. LIN_INVALID if there are no more;
 * lin_words_hypotheses says how many, n_best at most.
 * Exact scores need the rows: the last 8,192 that are not settled are kept (fewer with over 128 outputs). If there are more, the best
 * hypothesis decides what the first words were; where it is inside one word all the time, only hypotheses that are still in the beam
 * are given until the next reset, with the sums that were followed.
 * They work in the state's room and change nothing that the search goes on with.
 */
int lin_words_hypotheses(const lin_words *words, void *state);
lin_status lin_words_nbest(const lin_words *words, void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment: the language model's end of sentence and unfinished phrases are weighed, the hypotheses put in their final
 * order (nbest gives them until the next reset), and the rest of the best is appended to *settled unless that is NULL. Only
 * complete words count; where there is no hypothesis of complete words the last one is unknown. */
lin_status lin_words_finish(const lin_words *words, void *state, const lin_word_context *context, lin_path *settled,
                            lin_error *err);

/* Whether bytes from a file can be a state of this search: LIN_MISMATCH (of another one: size, lexicon, model, options), LIN_FORMAT
 * (damaged), LIN_MISMATCH too for a state of an earlier version. A state that passes can be pushed, whatever it says. */
lin_status lin_words_check(const lin_words *words, const void *state, size_t n, lin_error *err);

/* Spelling of a word number of a path, of the lexicon or the context; NULL for LIN_WORD_UNKNOWN and others. */
const char *lin_words_text(const lin_words *words, const lin_word_context *context, int word);

#endif
