/*
 * judges.h - what judges the best hypotheses of an utterance again when it has ended: another language model, which is a network
 * of tokens (a rescorer), and the sound of another network (a combiner).
 *
 * Pipeline: decoder/words or decoder/beam, at the end of an utterance -> [this: model/token_scorer, decoder/rows] ->
 * linnet/decoding -> decoder/result.
 *
 *   acoustic = (1 - combine_weight) acoustic + combine_weight second
 *   language = (1 - weight) language + weight network
 *   score    = acoustic + lm_weight language + the other terms of decoder/words.h
 *
 * second: ln of the sum over all alignments of the hypothesis's phones, by the rows of the other network. Rows of the two need
 * not be at the same times: whole utterances are compared.
 * network: ln of the product of the probabilities of each piece of a word, or each phone, after all before it in the utterance,
 * which begins with <s>, as in linnet lm score. A word that the network cannot spell (one outside the lexicon, or with other
 * characters than a-z and the apostrophe) is skipped by it and counts as the n-gram model's <unk>; a hypothesis of no other
 * words, or of no phones, keeps its scores.
 *
 *   lin_rescorer_open(path, weight, lm_weight, lm, tree, phones, &rescorer, &err);            // shared by all streams
 *   lin_combiner_create(&first, &second, weight, blank_penalty, language, 1, &combiner, &err); // of one stream
 *   lin_combiner_push(combiner, frames, n, &err);               // all frames of an utterance
 *   lin_judge(rescorer, combiner, &hypotheses, list, &err);     // list[0].number is the best
 *   lin_combiner_begin(combiner);                               // the next utterance
 *
 * Scores do not depend on other utterances, threads or the other hypotheses.
 * Threads: a rescorer is shared by all; a combiner is of one at a time.
 */
#ifndef LIN_LINNET_JUDGES_H
#define LIN_LINNET_JUDGES_H

#include "decoder/result.h"
#include "lexicon/ngram.h"
#include "lexicon/pieces.h"
#include "lexicon/tree.h"
#include "linnet/recognizer.h"

/* A network of tokens that is a language model of words, with its pieces of words. Immutable once open. */
typedef struct lin_word_network {
    lin_model *model;
    lin_pieces *pieces;
    lin_encoder *encoder;
} lin_word_network;

/* device, precision: as lin_recognizer_open. LIN_IO, LIN_FORMAT; LIN_MISMATCH, naming the file, for a model of sound, one whose
 * symbols are not pieces of words, and one that does not predict each piece from those before it. On failure all is closed. */
lin_status lin_word_network_open(const char *path, const char *device, lin_precision precision, lin_word_network *network,
                                 lin_error *err);
void lin_word_network_close(lin_word_network *network);

/* The pieces that a set or model of so many tokens (0: it is of sound) has as its symbols; `path` is named in messages. */
lin_status lin_word_network_pieces(const char *path, int tokens, const char *names, lin_pieces **pieces, lin_error *err);

typedef struct lin_rescorer lin_rescorer;

/*
 * Opens a network of tokens on the CPU, in fp32, or in eight bits if its file has them.
 *   weight     0..1, of the network against the n-gram model; lm_weight: of both against the sound
 *   lm         the n-gram model; NULL: there was none. Not kept
 *   tree       the lexicon: LIN_MISMATCH if the network spells less than half of its words, or is of phones. NULL: it is of
 *              phones
 *   phones     those of hypotheses without words: LIN_MISMATCH if one, in small letters, is not a piece of the network
 */
lin_status lin_rescorer_open(const char *path, double weight, double lm_weight, const lin_ngram *lm, const lin_tree *tree,
                             const lin_phones *phones, lin_rescorer **rescorer, lin_error *err);
void lin_rescorer_close(lin_rescorer *rescorer); /* NULL is fine */

typedef struct lin_combiner lin_combiner;

/* As lin_second_network_create; blank_penalty is subtracted from the natural logarithm of each row's blank. second NULL, or a
 * weight of 0: *combiner is NULL. */
lin_status lin_combiner_create(const lin_recognizer *first, const lin_recognizer *second, double weight, double blank_penalty,
                               int language, int n_threads, lin_combiner **combiner, lin_error *err);
void lin_combiner_destroy(lin_combiner *combiner); /* NULL is fine */

/* Both do nothing with NULL. */
void lin_combiner_begin(lin_combiner *combiner);
/* Frames [n, D] as in lin_second_network_run; where an utterance comes in pieces the network hears each alone. Memory grows with
 * the longest utterance: 11 KB for each second of it with 41 outputs. */
lin_status lin_combiner_push(lin_combiner *combiner, const float *frames, int n, lin_error *err);

/* The hypotheses of an utterance. */
typedef struct lin_hypotheses {
    int n;
    const lin_path *settled;  /* what all begin with */
    lin_path *tail;           /* room for the rest of one */
    lin_status (*read)(void *context, int number, lin_path *tail, lin_error *err); /* that of hypothesis `number`, with scores */
    void *context;
    lin_result_speller spell; /* of words */
    const void *spell_context;
} lin_hypotheses;

typedef struct lin_judged {
    int number;                       /* 0, 1, ... of the hypothesis */
    double score, acoustic, language; /* of the whole hypothesis: the formulas above */
} lin_judged;

/*
 * All hypotheses: list [n], the best first, equal ones in their order. rescorer, combiner: NULL for none. A hypothesis that the
 * second network excludes, such as one of more phones than rows, comes after all others; no rows, or rows that are not numbers,
 * change nothing. LIN_NO_MEMORY, and what `read` returns.
 */
lin_status lin_judge(lin_rescorer *rescorer, lin_combiner *combiner, const lin_hypotheses *hypotheses, lin_judged *list,
                     lin_error *err);

#endif
