/*
 * words.h - CTC beam search over words: a lexicon's prefix tree, a word n-gram, and phones for what the lexicon lacks.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/path -> decoder/result.
 * A hypothesis is a place in the tree (lexicon/tree.h), a state of the language model and of the context, and the scores of its
 * alignments that end in blank and that do not (as in decoder/beam). At the end of a word the language model replaces the look-ahead,
 * the best unigram below the place in the tree. Hypotheses with the same place and states are one: the better history goes on.
 *
 *   lin_words_options o = lin_words_options_default();
 *   lin_words_create(tree, lm, &o, &words, &err);                           // shared by all streams
 *   void *state = lin_alloc(lin_words_bytes(words), 1);
 *   lin_words_reset(words, state, 0);
 *   while (rows come) lin_words_push(words, state, context, logp, n, &settled, &err);
 *   lin_words_nbest(words, state, k, &tail, &err);                          // partial words too
 *   lin_words_finish(words, state, context, &settled, &err);
 *
 * A word is settled, and given out with its phones, once every hypothesis has it. Any split of the same rows into pushes gives the
 * same result to the bit. The state is one flat block without pointers: copy it to fork a stream, write it to save one.
 * push, nbest and finish allocate nothing but the room of the caller's path.
 * Threads: immutable and shared but for the state; one at a time per state.
 */
#ifndef LIN_DECODER_WORDS_H
#define LIN_DECODER_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/path.h"
#include "decoder/word_context.h"
#include "kernels/status.h"
#include "lexicon/ngram.h"
#include "lexicon/tree.h"

typedef struct lin_words_options {
    int width;           /* hypotheses kept after a frame */
    double score;        /* those so much worse than the best (natural logarithm) are dropped; 0: none is */
    int labels;          /* only the most probable so many labels of a frame are followed; 0: all */
    double blank;        /* frames whose blank is at least so probable are only waited through; 0: none is */
    double lm_weight;    /* on the language model's natural logarithm */
    double bonus;        /* for every word, natural logarithm */
    double unknown;      /* for a word outside the lexicon, natural logarithm, below 0; -INFINITY: there is none */
    double unknown_phone; /* for each of its phones, natural logarithm */
    int rivals;          /* histories kept apart where place and states are the same; 1: the better goes on alone */
    int n_best;          /* alternatives that nbest can give; with 1 words are settled soonest */
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
void lin_words_reset(const lin_words *words, void *state, int64_t first_frame);

/* As lin_beam_push. context: may be NULL, may be another one at every call. */
lin_status lin_words_push(const lin_words *words, void *state, const lin_word_context *context, const float *logp, int n_frames,
                          lin_path *settled, lin_error *err);

/* As lin_beam_nbest: distinct sequences of words, best first. A word that is not complete is given as LIN_WORD_UNKNOWN, and the
 * path says so. */
int lin_words_hypotheses(const lin_words *words, const void *state);
lin_status lin_words_nbest(const lin_words *words, const void *state, int which, lin_path *tail, lin_error *err);

/* As lin_beam_finish. Only complete words count at the end; where there is no hypothesis of complete words the last one is unknown. */
lin_status lin_words_finish(const lin_words *words, void *state, const lin_word_context *context, lin_path *settled, lin_error *err);

/* As lin_beam_check. */
lin_status lin_words_check(const lin_words *words, const void *state, size_t n, lin_error *err);

/* Spelling of a word number of a path, of the lexicon or the context; NULL for LIN_WORD_UNKNOWN and others. */
const char *lin_words_text(const lin_words *words, const lin_word_context *context, int word);

#endif
