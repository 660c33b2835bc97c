/* train_internal.h - what train.c (learning) and train_files.c (the folder of a run) share. */
#ifndef LIN_MODEL_TRAIN_INTERNAL_H
#define LIN_MODEL_TRAIN_INTERNAL_H

#include "model/train.h"

/* What a run must remember to go on as if it had never stopped, beside weights and moments. Saved as doubles and integers in text. */
typedef struct lin_train_counters {
    long long epoch, batch, step;
    double lr_factor;           /* of the plateau schedule */
    double best_per;
    long long epochs_since_best;
    double loss_sum;            /* of this epoch so far, nats */
    long long label_sum, frame_sum;
    double epoch_seconds, run_seconds;
    unsigned long long seed;
    unsigned long long data;    /* hash of the utterances trained on */
} lin_train_counters;

lin_status lin_train_save(const lin_train_options *options, const lin_model *model, const lin_optimizer *optimizer,
                          const lin_train_counters *counters, lin_error *err);
/* Into a model and an optimiser of the same shape; LIN_MISMATCH where the checkpoint belongs to another run. */
lin_status lin_train_load(const lin_train_options *options, lin_model *model, lin_optimizer *optimizer,
                          lin_train_counters *counters, lin_error *err);

/* Adds the line of a finished epoch to log.tsv (lines of this epoch or later, left by a run that was killed after its last checkpoint,
 * are dropped first) and draws curves.svg from the whole log. */
lin_status lin_train_log(const lin_train_options *options, const lin_train_progress *progress, lin_error *err);

/* Draws loss and dev PER by epoch. log is the text of log.tsv. Returns the SVG's text, released with lin_free; NULL: no memory. */
char *lin_curves_svg(const char *log, const char *title);

#endif
