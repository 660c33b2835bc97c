/*
 * train_internal.h - the parts of a training run. Each uses only those above it in this table:
 *
 *   lin_train_data      train_data.c      the utterances, their order in an epoch, what is drawn for each of them
 *   lin_train_parallel  train_parallel.c  the other processes of the run, and the sum of the gradients
 *   lin_train_device    train_step.c      the network and its buffers in the backend's memory
 *   lin_train_run       train.c           all of these, with the model, the optimiser and the counters: epochs of steps
 *
 * A step (train_step.c) runs through all of them. train_files.c writes and reads the folder of a run.
 */
#ifndef LIN_TRAIN_TRAIN_INTERNAL_H
#define LIN_TRAIN_TRAIN_INTERNAL_H

#include "base/pool.h"
#include "model/encoder.h"
#include "model/network.h"
#include "train/batches.h"
#include "train/train.h"

/* Streams of random numbers of a run, one per purpose. */
enum { LIN_TRAIN_KEY_DROPOUT = 1, LIN_TRAIN_KEY_MASKS, LIN_TRAIN_KEY_ACOUSTICS = 4, LIN_TRAIN_KEY_JOIN,
       LIN_TRAIN_KEY_ORDER, LIN_TRAIN_KEY_TEMPO, LIN_TRAIN_KEY_PIECES };

/* The counters that a run needs, besides weights and moments, to resume exactly. Saved as doubles and integers in text. */
typedef struct lin_train_counters {
    long long epoch, batch, step;
    double lr_factor;           /* of the plateau schedule */
    double best_per;
    long long epochs_since_best;
    double loss_sum;            /* of this epoch so far, nats */
    long long label_sum, frame_sum;
    double epoch_seconds, run_seconds;
    unsigned long long seed;
    unsigned long long data;    /* hash of the lengths of the training utterances */
    unsigned long long content; /* hash of their features and labels */
    unsigned long long dev;     /* the same for the development sets; 0: none */
    long long arc_begin, arc_end; /* epochs before the first and after the last of the cosine */
    long long utterances, frames; /* of the training list */
} lin_train_counters;

/* An utterance for training or evaluation. */
typedef struct lin_train_item {
    const lin_dataset *set;
    int index; // in its set
    int first;        // of a network of voices: the frame where its piece of the utterance begins, in the epoch of the last plan
    int recorded;     // number of frames in the cache that are used
    int frames, rows; // after augmentation; in training, at the speaking rate of the last plan's epoch
    const int *labels;
    int n_labels, counted; // counted: labels in the loss: all but tokens without a target
    lin_gather gather; // where its bytes are in the backend's memory; no masks
} lin_train_item;

typedef struct lin_train_list {
    lin_train_item *items;
    int *frames; // the same lengths again, for the plan
    int n;
    const lin_dataset *const *sets;
    int n_sets;
    int *voices; // of a network of voices: of each speaker of the sets, the only label of the speaker's utterances; else NULL
    void **blocks; // the backend's copies: bytes of each set
    float *steps, *norms; // of all items; of all speakers, or one for all: mean and istd [2, D] each
    float *powers;        // of all items: the sum over the bins, mean over the frames; NULL if no acoustics need it
} lin_train_list;

typedef struct lin_train_data {
    const lin_train_options *options;
    const lin_model *model;
    lin_train_list train, dev;
    lin_acoustics_table *acoustics; // NULL: utterances stay as recorded
    int epoch;                      // of the last plan; what is drawn depends on it
    uint64_t lengths, content, dev_content; // hashes of the present sets; those in the counters are the checkpoint's
} lin_train_data;

/* The gradients of some layers, which are complete at the same time and are summed over the processes together. */
typedef struct lin_train_bucket {
    size_t from, to; // elements
    int layer;       // the lowest; -1: the input, complete at the end of the backward pass
    lin_comm_sum sum;
} lin_train_bucket;

/* The other processes of the run; comm is NULL, and nothing else is set, if there are none. */
typedef struct lin_train_parallel {
    lin_comm *comm;
    const lin_ops *ops;
    lin_exec *exec;
    float *gradients;          // in the backend's memory, from the first step on
    float *host;               // of a GPU: the gradients in host memory, where they are added up; else NULL
    double *losses;            // likewise; NULL before the first step
    size_t n_gradients;
    lin_train_bucket *buckets; // in the order in which the backward pass completes them
    int n_buckets, n_started;
    lin_status status; // of the step: not LIN_OK if the others are lost
    lin_error err;
} lin_train_parallel;

/* The data of a batch, in one block that is filled on the host and uploaded. */
typedef struct lin_train_block {
    int *in_offsets, *offsets, *label_offsets, *labels;
    int *joined_in, *joined; // offsets of the sequences that the network sees, each of one or more utterances
    lin_gather *items;
    lin_mask *masks;
    lin_acoustics *acoustics; // and the bins of each
    float *bins;
    uint64_t *key; // and the number of rows before the own part of the batch
    int *all_offsets, *all_label_offsets; // of all parts of a step, most.items utterances each
    double *scale; // of the loss, and of each loss of an inner layer
    lin_adam_step *adam; // of the weights, and of their average
} lin_train_block;

/* The sizes of a batch on the host. On a GPU they are rounded up, with padding utterances after the last whose rows have no loss,
 * so that there are few different shapes and each can be a graph. */
typedef struct lin_train_shape {
    int B, sequences, rows, in_rows;
    int longest, longest_joined; // rows of an utterance, and of a sequence
} lin_train_shape;

/* Those of the largest batch, and the multiples to which they are rounded. */
typedef struct lin_train_sizes {
    int items, frames, rows, longest_rows, labels, labels_of_one;
    int item_quantum, row_quantum, longest_quantum;
} lin_train_sizes;

enum { LIN_TRAIN_BLOCKS = 4 };

typedef struct lin_train_device {
    const lin_ops *ops;
    lin_exec *exec;
    lin_pool *pool; // of the host
    lin_weights *weights, *averaged; // averaged: those of the optimiser's average, packed to measure; NULL if there is none
    lin_activations *activations;
    lin_graphs graphs;
    lin_train_sizes most;
    int parts; // of a step: number of batches times number of processes
    // in the backend's memory
    float *values, *gradients, *features, *zeros, *ones, *logp, *dlogits;
    float *trigram_block;
    double *losses, *inner_losses; // inner_losses: not used, but ctc writes them
    lin_tally *tally;
    lin_train_block block;
    lin_trigrams trigrams; // of mmi
    void *device_bytes; // of the block
    // on the host: blocks that are filled while earlier ones are in use, and the results of measuring
    void *host_bytes[LIN_TRAIN_BLOCKS];
    size_t block_bytes;
    int n_blocks;
    unsigned filled; // blocks so far
    float *host_logp;
    double *host_losses;
} lin_train_device;

typedef struct lin_train_run {
    const lin_train_options *options;
    const lin_train_hooks *hooks;
    lin_model *model;
    lin_optimizer optimizer;
    lin_train_counters counters;
    long long step_from; // the first batch of the last step
    lin_train_data data;
    lin_train_parallel parallel;
    lin_train_device device;
} lin_train_run;

/* Batches of a step. Part r * batches + k of the step is that of process r in batch k. */
static inline int lin_train_step_batches(const lin_train_options *o) { return o->accumulate > 1 ? o->accumulate : 1; }

/* Reports one sentence to the user. */
void lin_train_note(const lin_train_hooks *hooks, const char *format, ...) LIN_PRINTF(2, 3);

/* ---- train_data.c ---------------------------------------------------------------------------------------------------------- */

/* Finds all usable utterances of the lists' sets; in training, those without a CTC path are reported and left out. options, model
 * and the sets are set before. */
lin_status lin_train_data_open(lin_train_data *data, const lin_train_hooks *hooks, lin_error *err);
/* Copies the utterances' bytes, and the normalisation, which the model must have by then, to the backend's memory. */
lin_status lin_train_data_place(lin_train_data *data, const lin_ops *ops, lin_exec *exec, lin_pool *pool, lin_error *err);
void lin_train_data_free(lin_train_data *data, const lin_ops *ops, lin_exec *exec);

/* The frames of an utterance of the training list at a speaking rate, at most max_frames and no fewer than its labels need; of
 * any utterance at rate 1 its own. A higher rate never gives more. */
int lin_train_frames_at(const lin_train_data *data, const lin_train_item *item, double rate);
/* The batches of an epoch of the training list, whose utterances first get the epoch's speaking rates; epoch -1: of the
 * development list, each of one process. */
lin_status lin_train_plan(lin_train_data *data, int epoch, int ranks, lin_batches *plan, lin_error *err);

/* The part of a batch of the training list that a process computes, by frames: utterances picked[from .. to-1]. May be empty. */
typedef struct lin_train_part {
    int from, to;
} lin_train_part;
lin_train_part lin_train_cut(const lin_train_data *data, const int *picked, int n, int rank, int ranks);

/* For an utterance of the training list, in this epoch: whether it continues the sequence of the one before it in its batch (the
 * first of a part never does); the number of its labels that count, 0 if it is replaced by noise. */
int lin_train_continues(const lin_train_data *data, int item);
int lin_train_labels(const lin_train_data *data, int item);
/* Draws its masks, and returns their number; and its acoustics, except the pointer to their bins, 0: as recorded. */
int lin_train_draw_masks(const lin_train_data *data, int item, lin_mask *masks);
int lin_train_draw_acoustics(const lin_train_data *data, int item, lin_acoustics *acoustics, float *bins);

/* ---- train_parallel.c ------------------------------------------------------------------------------------------------------ */

static inline int lin_train_ranks(const lin_train_parallel *p) { return p->comm ? p->comm->size : 1; }
static inline int lin_train_rank(const lin_train_parallel *p) { return p->comm ? p->comm->rank : 0; }

lin_status lin_parallel_create(lin_train_parallel *parallel, lin_exec *exec, const lin_train_options *options,
                               const lin_model *model, lin_error *err);
void lin_parallel_destroy(lin_train_parallel *parallel);
/* Refuses processes that differ in what must be equal, and gives all of them rank 0's model, moments and counters. */
lin_status lin_parallel_check(lin_train_parallel *parallel, const lin_train_data *data, lin_error *err);
lin_status lin_parallel_share(lin_train_parallel *parallel, const lin_train_options *options, lin_model *model,
                              lin_optimizer *optimizer, lin_train_counters *counters, lin_error *err);
/* After an epoch: LIN_NUMERIC if the processes' weights, on the host, are not the same bits. */
lin_status lin_parallel_compare(lin_train_parallel *parallel, const lin_model *model, long long epoch, lin_error *err);
/* Within a step: `layer` (a lin_batch.layer_done; context: parallel) during the backward pass, then `end`, which fills in the
 * losses of all parts, `own` bytes of each process, and returns 1 if the gradients are those of the whole batch; if not, status
 * says why. */
void lin_parallel_layer(void *context, int layer);
int lin_parallel_end(lin_train_parallel *parallel, double *losses, size_t own);

/* ---- train_step.c ---------------------------------------------------------------------------------------------------------- */

/* The trigram of phones that mmi needs, as tables (lin_trigrams_at) for V outputs, the blank included. */
enum { LIN_TRIGRAMS_OUTPUTS = 256 }; /* at most: the tables grow with the cube, to 134 MB */

/* Reads an n-gram model of phones (lexicon/ngram.h), of which contexts of at most two phones are used. given: as for
 * lin_find_lm; phones: the names, as in model/model.h. LIN_MISMATCH if the model lacks one of them; LIN_UNSUPPORTED if V is
 * above LIN_TRIGRAMS_OUTPUTS or a probability is below 1e-38; what lin_ngram_open returns. The caller releases *block with
 * lin_free. */
lin_status lin_trigrams_open(const char *given, const char *phones, int V, float **block, lin_error *err);

/* Buffers for the largest batch of any epoch, the weights and the average. ops, exec and pool are set before. */
lin_status lin_train_device_create(lin_train_device *device, const lin_train_data *data, int ranks, lin_model *model,
                                   const lin_optimizer *optimizer, lin_error *err);
void lin_train_device_free(lin_train_device *device, const lin_train_data *data);

/* Starts one step on batches from .. to-1 of the plan, computing this process's part of each, and does not wait for it. If
 * run->parallel.status is not LIN_OK afterwards, the step was not taken. */
void lin_train_step(lin_train_run *run, const lin_batches *plan, int from, int to, double lr);

/* Measures the development set, if there is one, with the averaged weights, if there are any: sets dev_loss and dev_per, the same
 * on all processes. */
lin_status lin_train_evaluate(lin_train_run *run, lin_train_progress *progress, lin_error *err);

/* ---- train_files.c --------------------------------------------------------------------------------------------------------- */

/* The path of a file of the run's folder. LIN_INVALID if it is too long. */
lin_status lin_train_path(const lin_train_options *options, const char *name, char path[4096], lin_error *err);

lin_status lin_train_save(const lin_train_options *options, const lin_model *model, const lin_optimizer *optimizer,
                          const lin_train_counters *counters, lin_error *err);
/* Reads the counters from a checkpoint's text; returns 0 if no run can have written them. Declared for the fuzz target. */
int lin_train_parse_counters(const char *text, lin_train_counters *counters);
/* Loads a model and an optimiser of the same shape; an average that the checkpoint lacks begins with its weights. LIN_FORMAT if a
 * moment is not a number or the counters are not those of a run; LIN_MISMATCH if the checkpoint is of another run. */
lin_status lin_train_load(const lin_train_options *options, lin_model *model, lin_optimizer *optimizer,
                          lin_train_counters *counters, lin_error *err);

/* Adds the line of a finished epoch to log.tsv, after dropping lines of this epoch or later (left by a run that was killed after
 * its last checkpoint), and draws curves.svg from the whole log. */
lin_status lin_train_log(const lin_train_options *options, const lin_train_progress *progress, int of_tokens, lin_error *err);

/* Draws losses, dev PER and learning rate by epoch and marks the best one, of tokens the one with the lowest dev loss. log is the
 * text of log.tsv. Returns the SVG text, which the caller releases with lin_free; NULL: no memory. */
char *lin_curves_svg(const char *log, const char *title, int of_tokens);

#endif
