/*
 * words.h - CTC beam search over words: a lexicon's prefix tree, a word n-gram, and phones for words outside the lexicon.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/result.
 * A hypothesis is a place in the tree (lexicon/tree.h), a state of the language model and of the context, a history of words with
 * their pronunciations, and the sums over its alignments that end in blank and in the last phone (as in decoder/beam). At the end
 * of a word the language model replaces the look-ahead, the best unigram below the place in the tree. Of hypotheses with the same
 * place and states, whose later scores are equal, the better one is kept in the beam; the other is stored as an alternative.
 * words_internal.h describes the search on one page.
 *
 *   lin_words_options o = lin_words_options_default();
 *   lin_words_create(tree, lm, &o, &words, &err);                           // shared by all streams
 *   void *state = lin_alloc(lin_words_bytes(words), 1);
 *   lin_words_reset(words, state, 0);
 *   while (rows arrive) lin_words_push(words, state, context, logp, n, &settled, &err);
 *   lin_words_nbest(words, state, k, &tail, &err);                          // unfinished words too
 *   lin_words_finish(words, state, context, &settled, &err);
 *
 * Score of a path: acoustic (with blank_penalty less for each blank) + lm_weight * (language + the logarithms of the
 * pronunciations' probabilities) + bonus * words + costs of unknown words + bonuses of the context; the formula is in
 * docs/decoding.md. acoustic is the sum over the alignments that were
 * followed, at most the exact sum over all alignments of the path's phones: the beam and recombination drop alignments. With
 * n_best above 1 it is the exact sum, for which rows are stored. Confidence of a word, unless `sure` changes it: the
 * geometric mean of its phones' confidences (decoder/result.h), times the probability of the word at its place when it is given
 * out: its share of the hypotheses and alternatives that begin with the words given out before. A hypothesis contains the word
 * if it has the same word at an overlapping time.
 *
 * A word is settled, and given out with its phones, once every hypothesis has it, or every one that counts (`settle`). Any
 * split of the same rows into pushes gives the same result bit for bit. The state is one flat block without pointers: copy it
 * to fork a stream, write it to save one. Its size grows with the width: lin_words_bytes (827 KB at the default width, 2.1 MB
 * with n_best above 1 and 40 outputs). push, nbest and finish allocate only memory of the caller's path.
 * A state may continue with another search of the same outputs and options but another grammar: its segment begins again.
 * Threads: a lin_words is immutable and shared; one thread at a time per state.
 */
#ifndef LIN_DECODER_WORDS_H
#define LIN_DECODER_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/result.h"
#include "decoder/context.h"
#include "lexicon/grammar.h"
#include "lexicon/ngram.h"
#include "lexicon/tree.h"

typedef struct lin_words_options {
    int width;           /* hypotheses kept after a frame */
    double score;        /* those worse than the best by more than this (natural logarithm) are dropped; 0: none */
    int labels;          /* only this many most probable labels of a frame are followed; 0: all */
    double blank;        /* in frames whose blank probability is at least this, hypotheses only stay where they are; 0: none */
    double blank_penalty; /* subtracted from the natural logarithm of each frame's blank: networks trained by CTC give it so much
                             probability that phones of words are lost. Times and confidences are those of the network's own
                             best alignment */
    int gap;             /* hypotheses inside a word without a phone for more frames than this are dropped; 0: none */
    double lm_weight;    /* on the natural logarithms of the language model and of the pronunciations' probabilities */
    double bonus;        /* for every word, natural logarithm */
    double unknown;      /* for a word outside the lexicon, natural logarithm, at most 0; -INFINITY: no such words. The language
                            model's <unk>, if it has one, is added; if not, words of the lexicon or of a context that it lacks
                            get this score too */
    double unknown_phone; /* for each of its phones, natural logarithm. Not multiplied by lm_weight: a larger lm_weight makes
                             words of the lexicon cost more, so these two should be lowered too, or unclear speech becomes one
                             long unknown word */
    double settle;       /* with n_best 1, hypotheses that are worse than the best by more than this (natural logarithm) do not
                            keep its first word unsettled, and are dropped if they have another one. It falls to 0 while the word
                            waits, after `wait` rows from its last phone the best hypothesis decides. 0: all hypotheses count */
    int wait;            /* at least 1 with settle */
    double sure[3];      /* the logit of a word's confidence is sure[0] + (sure[1] + sure[2] * the geometric mean of its phones'
                            confidences) * the logit of its share, within -5 and 5; all 0: it is the product of mean and share */
    int n_best;          /* sequences that nbest can give. Above 1 words are settled only if `longest` requires it, so that the
                            alternatives reach back */
    int longest;         /* largest number of unsettled words; beyond it the best hypothesis decides */
} lin_words_options;

enum { LIN_WORDS_MAX = 8192, LIN_WORDS_NBEST_MAX = 256, LIN_WORDS_LONGEST_MAX = 500 };

lin_words_options lin_words_options_default(void);

typedef struct lin_words lin_words;

/* tree and lm (may be NULL: all words equally probable) must outlive it. LIN_INVALID with the name of the field for options out
 * of range, LIN_MISMATCH for a tree that was not made for this language model. */
lin_status lin_words_create(const lin_tree *tree, const lin_ngram *lm, const lin_words_options *options, lin_words **words,
                            lin_error *err);
/* For the sentences of a grammar, which is bound to the tree and must outlive it: finds the best complete one, or nothing.
 * least: the confidence (see above) that it must have. No words are settled before finish, unless `longest` requires it, and all
 * words have that confidence times their share. Takes no context. */
lin_status lin_words_create_grammar(const lin_tree *tree, const lin_grammar *grammar, double least,
                                    const lin_words_options *options, lin_words **words, lin_error *err);
void lin_words_destroy(lin_words *words); /* NULL is fine */

size_t lin_words_bytes(const lin_words *words);

/* A 64-bit hash of all that its states depend on: lexicon, options, language model. */
uint64_t lin_words_fingerprint(const lin_words *words);
void lin_words_reset(const lin_words *words, void *state, int64_t first_frame);

/*
 * Processes logp [n_frames, V], natural logarithms, and appends the words that are now settled to *settled, with the best
 * hypothesis's scores. context: may be NULL, and may change at every call: then pending bonuses of unfinished phrases are taken
 * back, and unsettled words that only the old context has become unknown ones. A row that no hypothesis can use is skipped.
 * LIN_NUMERIC, naming the frame, for a NaN or a row without a finite value; LIN_NO_MEMORY; LIN_INVALID after finish. On failure
 * nothing changes.
 */
lin_status lin_words_push(const lin_words *words, void *state, const lin_word_context *context, const float *logp, int n_frames,
                          lin_path *settled, lin_error *err);

/*
 * Replaces *tail by the provisional words, after the settled ones, of sequence `which` (0: the best) of those that differ in
 * words, with its scores of the whole segment. Of several pronunciations of the same words the best one found is given.
 * After finish they are sorted by their exact scores, so the first may differ from that with n_best 1. Before, number 0 is the
 * search's best with the score of the alignments that were followed, and the others are sorted by exact scores. Times of
 * alternatives are estimates. An unfinished word is given as LIN_WORD_UNKNOWN. LIN_INVALID if there are fewer;
 * lin_words_hypotheses returns their number, at most n_best.
 * Exact scores need the rows: the last 8,192 that are not settled are stored (fewer with over 128 outputs). If there are more,
 * the best hypothesis decides on the first words; if it is inside one word for all of them, only hypotheses that are still in the
 * beam are given until the next reset, with the sums that were followed.
 * Both use working memory in the state and do not change the search.
 */
int lin_words_hypotheses(const lin_words *words, void *state);
lin_status lin_words_nbest(const lin_words *words, void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment: adds the language model's end of sentence, takes back pending bonuses, sorts the hypotheses finally (nbest
 * gives them until the next reset), and appends the rest of the best to *settled unless that is NULL. Only hypotheses of complete
 * words count; if there is none, the last word is unknown. */
lin_status lin_words_finish(const lin_words *words, void *state, const lin_word_context *context, lin_path *settled,
                            lin_error *err);

/* Checks that bytes from a file are a state of this search: LIN_MISMATCH (another search: size, lexicon, model, options),
 * LIN_FORMAT (damaged). A state that passes is safe to continue with. */
lin_status lin_words_check(const lin_words *words, const void *state, size_t n, lin_error *err);

/* Spelling of a path's word, from the lexicon or the context; NULL for LIN_WORD_UNKNOWN and other numbers. */
const char *lin_words_text(const lin_words *words, const lin_word_context *context, int word);

#endif
