/*
 * holdout.h - which utterances of a data directory are held out, to measure a model on speech that it was not trained on.
 *
 * Pipeline: linnet/datadir -> [this] -> train/cmd_adapt.
 * It holds out whole speakers where possible, because a model does better on speakers that it was trained on.
 *
 *   unsigned char *held = lin_calloc(lin_datadir_count(dir), 1);
 *   lin_holdout_choose(dir, &options, held, &holdout, &err);
 *   for (i = 0; i < lin_datadir_count(dir); i++) if (held[i]) ...
 *
 * Threads: no shared state.
 */
#ifndef LIN_TRAIN_HOLDOUT_H
#define LIN_TRAIN_HOLDOUT_H

#include "base/status.h"
#include "linnet/datadir.h"

typedef struct lin_holdout_options {
    double part;             /* of the utterances, above 0, at most 0.5 */
    int most;                /* utterances that are held out at most, at least 1 */
    unsigned long long seed; /* another seed holds out others */
} lin_holdout_options;

typedef struct lin_holdout {
    int n, speakers;         /* of the directory */
    int held, held_speakers; /* held_speakers 0: single utterances are held out, and their speakers stay in the training data */
} lin_holdout;

/*
 * held [lin_datadir_count(dir)], all 0: becomes 1 for held-out utterances, at least one, never all. Speakers are taken in an
 * order that depends on their names and the seed, until `part` of the utterances is held out; a speaker with whom it would be
 * more than a third, or more than `most`, is skipped. With fewer than three speakers, or if each has too many utterances, single
 * utterances are taken. The order of the directory does not matter. LIN_INVALID for options out of range or fewer than two
 * utterances; LIN_NO_MEMORY.
 */
lin_status lin_holdout_choose(const lin_datadir *dir, const lin_holdout_options *options, unsigned char *held,
                              lin_holdout *holdout, lin_error *err);

#endif
