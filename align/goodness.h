/*
 * goodness.h - goodness of pronunciation of each phone of a known text.
 *
 * Pipeline: log-probabilities [T, V] and the path of align/align -> [this] -> decoder/result.
 * Goodness of pronunciation (Witt & Young 2000, eq. 1) compares the likelihood of the canonical phone with that of all phones for
 * the same sound. Here both are CTC likelihoods, summed over all alignments, and competitors are every other phone or none, as in
 * the segmentation-free form of Cao et al. 2024 ("A Framework for Phoneme-Level Pronunciation Assessment Using CTC"): a CTC
 * network marks a phone by one or two rows, which need not be those where it would mark another phone, as a ratio within those
 * rows (Hu et al. 2015) assumes. For phone p between its neighbours a and b in the path, over the rows from the beginning of a to
 * the end of b, which both keep at least one row,
 *
 *   goodness(p) = log P(rows | a p b) - log sum over q of P(rows | a q b)        q: any phone, or nothing
 *   P(rows | a q b) = sum over all runs of a, q, b with or without blanks between them (with one between equals) of the
 *                     product of the rows' probabilities
 *
 * It is the natural logarithm of a probability: that this phone was said there, and not another one or none. 0: certainly. -0.7:
 * a probability of one half. -3: 1 to 20, something else was said (`heard` is the most probable). Substitutions and deletions
 * lower it; insertions do not. The goodness of a word and of a whole result is lin_result_goodness (decoder/result.h).
 *
 *   lin_goodness_measure(logp, V, T, &path, 8, goodness, &err);
 *   ... goodness[i].score of path.phones[i], goodness[i].heard instead ...
 *
 * Threads: no shared state; nothing is allocated.
 */
#ifndef LIN_ALIGN_GOODNESS_H
#define LIN_ALIGN_GOODNESS_H

#include <stdint.h>

#include "base/status.h"
#include "decoder/result.h"

typedef struct lin_goodness {
    float score; /* natural logarithm, 0 at best */
    int heard;   /* the label that explains the rows best, 0: nothing was said */
} lin_goodness;

/*
 * Computes goodness [path->n_phones] of every phone of a path, whose phones are in order and do not overlap. logp [T, V]: natural
 * logarithms. A neighbour more than `margin` rows away has no influence, and the rows are then those up to `margin` beside the
 * phone: about 0.25 s, so that speech in a long pause counts for no phone. LIN_NUMERIC for a NaN.
 */
lin_status lin_goodness_measure(const float *logp, int V, int64_t T, const lin_path *path, int margin, lin_goodness *goodness,
                                lin_error *err);

#endif
