/*
 * trigrams.h - a trigram of phones as tables, for the denominator of maximum mutual information.
 *
 *   lin_trigrams tables;
 *   float *block;
 *   lin_trigrams_open("phones.lm", phones, outputs, &block, &err);      // V = outputs, the blank included
 *   tables = lin_trigrams_at(block, V);
 */
#ifndef LIN_TRAIN_TRIGRAMS_H
#define LIN_TRAIN_TRIGRAMS_H

#include "base/status.h"
#include "kernels/ops.h"

enum { LIN_TRIGRAMS_OUTPUTS = 256 }; /* at most: the tables grow with the cube, to 134 MB */

/* Reads an n-gram model of phones (lexicon/ngram.h), of which contexts of at most two phones are used. phones: the names, as in
 * model/model.h. LIN_MISMATCH if the model lacks one of them; LIN_UNSUPPORTED if V is above LIN_TRIGRAMS_OUTPUTS or a
 * probability is below 1e-38; what lin_ngram_open returns. The caller releases *block with lin_free. */
lin_status lin_trigrams_open(const char *path, const char *phones, int V, float **block, lin_error *err);

#endif
