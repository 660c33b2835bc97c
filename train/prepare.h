/*
 * prepare.h - from a data directory to a feature cache with labels: all that training needs, made by several threads, in order.
 *
 * Pipeline: linnet/datadir (sound and texts), linnet/wording (texts to labels),
 * frontend/source (frames) -> [this] -> train/dataset.
 *
 *   lin_datadir_load("corpus/train", NULL, 1, &dir, &err);
 *   lin_wording_open(&wording, NULL, &warnings, &err);
 *   lin_prepare_options o = {.fbank = lin_fbank_default(), .stack = 3, .source = "train"};
 *   lin_prepare(dir, &wording, "train.lfc", &o, &counts, &err);
 *
 * Threads: lin_prepare starts its own; nothing else may use directory and wording while it runs.
 */
#ifndef LIN_TRAIN_PREPARE_H
#define LIN_TRAIN_PREPARE_H

#include <signal.h>

#include "frontend/fbank.h"
#include "linnet/datadir.h"
#include "linnet/warnings.h"
#include "linnet/wording.h"

typedef struct lin_prepare_counts {
    int added, left_out, failed, incomplete; /* utterances at a speed; incomplete: part of their sound is missing */
    long long frames, labels;
} lin_prepare_counts;

typedef struct lin_prepare_options {
    lin_fbank_config fbank;
    const double *speeds; /* [n_speeds]: each utterance once at each of them; n_speeds 0: once, as it is */
    int n_speeds;
    int stack;            /* frames per step of the model to be trained; 0: 1. Utterances with fewer steps than CTC needs are left
                             out */
    double most_unknown;  /* the part of the words that may be outside the dictionary; 0: any. LIN_MISMATCH if there are more */
    int no_speech;        /* 1: nobody speaks: no labels, transcripts are ignored */
    const char *source;   /* stored in the cache: the data it was made from */
    int jobs;             /* threads; 0: one per core */
    lin_warnings warnings;             /* utterances that are left out and why, and damaged sound */
    const volatile sig_atomic_t *stop; /* not 0: it ends with LIN_STOPPED and writes nothing; may be NULL */
    void (*progress)(void *context, int done, int all, const lin_prepare_counts *counts); /* after each item; may be NULL */
    void *context;
} lin_prepare_options;

/*
 * Writes the cache `output`, which appears when it is complete. Utterances whose sound cannot be read or whose text cannot be
 * pronounced are reported as warnings, counted in failed, and left out; files that do not exist are one warning. LIN_INVALID for
 * a bad filterbank, or if no utterance is left; LIN_MISMATCH for too many unknown words, before any sound is read; LIN_IO if no
 * file exists; LIN_NO_MEMORY, LIN_STOPPED; then nothing is written.
 */
lin_status lin_prepare(const lin_datadir *dir, lin_wording *wording, const char *output, const lin_prepare_options *options,
                       lin_prepare_counts *counts, lin_error *err);

#endif
