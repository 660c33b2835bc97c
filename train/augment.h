/*
 * augment.h - SpecAugment (Park et al. 2019, section 2): masks bands of bins and stretches of frames during training.
 *
 * A pure function of the matrix, the options and the key: the trainer calls it with lin_random_key(seed, step, utterance) and
 * gets the same masks after a resume, with any number of threads. There is no time warping, which the paper found least useful.
 */
#ifndef LIN_TRAIN_AUGMENT_H
#define LIN_TRAIN_AUGMENT_H

#include <stdint.h>

#include "kernels/ops.h"

enum { LIN_AUGMENT_MOST = 100 }; /* masks of a kind */

typedef struct lin_augment_options {
    int freq_masks;   /* m_F, number of masked bands */
    int freq_width;   /* F: a band has 0..F bins, uniformly */
    int time_masks;   /* m_T */
    int time_width;   /* T: a stretch has 0..T frames, uniformly */
    double time_part; /* p: a stretch is at most this part of the utterance's frames */
} lin_augment_options;

/* LIN_INVALID, with the name of the field, for negative numbers, more than 100 masks, or a part outside 0 to 1. */
lin_status lin_augment_check(const lin_augment_options *options, lin_error *err);

/* Chooses the masked parts of an utterance [T, D]: freq_masks + time_masks of them, some empty. Returns their number. */
int lin_augment_masks(int T, int D, const lin_augment_options *options, uint64_t key, lin_mask *masks);

#endif
