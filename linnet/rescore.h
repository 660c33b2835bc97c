/*
 * rescore.h - a second pass over the best hypotheses of an utterance, with a language model that is a network of tokens.
 *
 * Pipeline: decoder/words or decoder/beam, at the end of an utterance -> [this: model/token_scorer] -> linnet/decoding ->
 * decoder/result.
 * The network predicts each piece of a word, or each phone, from all before it in the utterance. Its logarithm replaces a part of
 * that of the n-gram model:
 *
 *   score = acoustic + lm_weight ((1 - weight) language + weight network) + the other terms of decoder/words.h
 *
 * All hypotheses of an utterance are scored together; each utterance begins with <s>, as in linnet lm score.
 *
 *   lin_rescorer_open(path, weight, lm_weight, lm, tree, phones, &rescorer, &err);   // shared by all streams
 *   lin_rescorer_begin(rescorer, &utterance, &err);
 *   for (i < n) lin_rescoring_add(utterance, &settled, &tail[i], spell, context, &err);
 *   lin_rescoring_run(utterance, list, &err);                                    // list[i]: of the i-th that was added
 *   lin_rescored_sort(list, n);                                                  // list[0].number is the best
 *   lin_rescorer_end(rescorer, utterance);
 *   lin_rescorer_close(rescorer);
 *
 * A word that the network cannot spell (one outside the lexicon, or with other characters than a-z and the apostrophe) is passed
 * over by it and counts as the n-gram model's <unk>; a hypothesis of no other words, or of no phones, keeps its scores. Scores
 * do not depend on other utterances, threads or the other hypotheses.
 * Threads: a rescorer is shared by all, an utterance is of one.
 */
#ifndef LIN_LINNET_RESCORE_H
#define LIN_LINNET_RESCORE_H

#include "decoder/result.h"
#include "lexicon/ngram.h"
#include "lexicon/phones.h"
#include "lexicon/tree.h"

typedef struct lin_rescorer lin_rescorer;
typedef struct lin_rescoring lin_rescoring; /* an utterance */

typedef struct lin_rescored {
    int number;             /* 0, 1, ...: in the order of lin_rescoring_add */
    double score, acoustic, language; /* of the whole hypothesis; after lin_rescoring_run the new sum, and in it both models'
                                         weighted logarithm */
} lin_rescored;

/*
 * Opens a network (linnet/word_network.h) on the CPU, in fp32, or in eight bits if its file has them.
 *   weight     0..1, of the network against the n-gram model; lm_weight: of both against the sound
 *   lm         the n-gram model; NULL: there was none. Not kept
 *   tree       the lexicon: LIN_MISMATCH if the network can spell less than half of its words. NULL: of phones
 *   phones     those of hypotheses without words: LIN_MISMATCH if one, in small letters, is no piece of the network
 */
lin_status lin_rescorer_open(const char *path, double weight, double lm_weight, const lin_ngram *lm, const lin_tree *tree,
                             const lin_phones *phones, lin_rescorer **rescorer, lin_error *err);
void lin_rescorer_close(lin_rescorer *rescorer); /* NULL is fine */

/* Working memory for an utterance; one that has ended leaves it to the next. LIN_NO_MEMORY. */
lin_status lin_rescorer_begin(lin_rescorer *rescorer, lin_rescoring **utterance, lin_error *err);
void lin_rescorer_end(lin_rescorer *rescorer, lin_rescoring *utterance);

/* One more hypothesis: what is settled, which all have, and the rest, with its scores. spell: of words. */
lin_status lin_rescoring_add(lin_rescoring *utterance, const lin_path *settled, const lin_path *tail, lin_result_speller spell,
                             const void *context, lin_error *err);

/* Changes score and language of all hypotheses, in the order of lin_rescoring_add. */
lin_status lin_rescoring_run(lin_rescoring *utterance, lin_rescored *list, lin_error *err);

/* The best first, equal ones in their order. */
void lin_rescored_sort(lin_rescored *list, int n);

#endif
