/*
 * batches.h - the plan of an epoch: its batches of utterances, and their order.
 *
 * Utterances are shuffled, divided into buckets of about 32 batches, sorted by length within the bucket and packed by total
 * frames; the batches are shuffled. If max_items is given, utterances are packed in shuffled order, without sorting.
 * The plan is a function of (frames, max_frames, max_items, seed, epoch) alone, so to resume, a run saves only the epoch and the
 * number of the next batch.
 *
 *   lin_batches plan;
 *   lin_batches_plan(frames, n, 20000, 0, seed, epoch, &plan, &err);
 *   for (int b = 0; b < plan.n_batches; b++)
 *       for (int j = plan.offsets[b]; j < plan.offsets[b + 1]; j++) use(plan.items[j]);
 *   lin_batches_free(&plan);
 */
#ifndef LIN_TRAIN_BATCHES_H
#define LIN_TRAIN_BATCHES_H

#include <stdint.h>

#include "base/status.h"

typedef struct lin_batches {
    int n_batches;
    int *offsets;  /* [n_batches + 1], offsets[0] = 0 */
    int *items;    /* [offsets[n_batches]], indices of utterances, each once */
} lin_batches;

/*
 * frames [n]: length of each utterance, in the unit of max_frames, at least 1. max_items: utterances of a batch at most, 0: any
 * number. seed and epoch determine the order; epoch < 0: no shuffling, longest first (for evaluation). LIN_INVALID for n < 1,
 * max_frames < 1 or a length below 1; LIN_NO_MEMORY.
 */
lin_status lin_batches_plan(const int *frames, int n, int max_frames, int max_items, uint64_t seed, int epoch, lin_batches *plan,
                            lin_error *err);
/* Keeps part k of `parts` of the batches, in their order. LIN_INVALID: there are fewer batches than parts. */
lin_status lin_batches_keep(lin_batches *plan, int k, int parts, lin_error *err);
void lin_batches_free(lin_batches *plan);

/* Output frames that CTC needs for these labels: U, plus one blank between two equal neighbours (Graves 2006). With fewer there
 * is no path, and the loss is infinite: leave such utterances out, and report their names. */
int lin_ctc_frames_needed(const int *labels, int U);

#endif
