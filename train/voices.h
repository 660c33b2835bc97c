/*
 * voices.h - numbers the voices in the sets of a network of voices, and measures how well the network tells voices apart.
 *
 * Pipeline: train/dataset -> [this] -> train/train_data, train/train_step. A speaker's name is a voice, whatever the set.
 */
#ifndef LIN_TRAIN_VOICES_H
#define LIN_TRAIN_VOICES_H

#include "train/dataset.h"

/* Frames of the pieces of utterances that a network of voices hears in training, and in measuring. */
enum { LIN_VOICE_PIECE_LEAST = 100, LIN_VOICE_PIECE_MOST = 200, LIN_VOICE_PIECE_MEASURED = 150 };

/* Pieces of a voice in an epoch at most, so that those with much speech do not count more than others. */
enum { LIN_VOICE_PIECES = 8 };

/*
 * Numbers the voices of the sets, from 0 in the order of their first speakers. *voices: of each speaker of the first set, then of
 * the second and so on; released with lin_free. Returns LIN_NO_MEMORY, or LIN_INVALID if there are fewer than 2.
 */
lin_status lin_voices_number(const lin_dataset *const *sets, int n_sets, int **voices, int *count, lin_error *err);

/*
 * The equal error rate, 0..1, of deciding by a threshold on the cosine whether two vectors [n, D] of length 1 are of one voice,
 * over all pairs with equal groups: the error rate at the threshold where misses and false alarms are equally frequent. -1 if
 * there are no pairs of either kind. LIN_NO_MEMORY.
 */
lin_status lin_voices_equal_error(const float *vectors, const int *voices, const int *groups, int n, int D, double *rate,
                                  lin_error *err);

#endif
