/*
 * train.h - training: epochs over feature caches, a schedule, checkpoints, the best model on the development set.
 *
 * Pipeline: train/dataset -> [this] -> model/model. A training run is a folder:
 *   log.tsv                  one line per epoch: step, losses, dev PER in per cent, learning rate, speed; a line of epoch 0 for
 *                            the model that the run begins with (options.measures_first)
 *   checkpoint.safetensors   everything needed to resume; written to a temporary name and renamed
 *   best.safetensors         the model with the lowest dev PER so far; with an average of the weights
 *                            (options.optimizer.average) that is what is measured and saved
 *   curves.svg               loss and dev PER by epoch
 *
 *   lin_train_options options = lin_train_default();
 *   options.folder = "exp/a"; ...
 *   lin_train(&options, model, sets, n_sets, dev_sets, n_dev_sets, &hooks, &err);
 *
 * On a GPU the features stay in its memory, batches are assembled there, and the host synchronises only to log.
 * For one seed the result is the same for any number of threads, and a run that was killed and resumed gives the same bits as one
 * that was not. If a run is resumed within an epoch and its batches have changed (another batch_frames), it restarts that epoch
 * and reports this. The caller holds lin_train_lock, so that no two runs mix their files.
 * Several processes (options.comm; train/comm.h) train one model: each computes the gradient of its part of every batch, the
 * gradients are added in the order of the ranks while the backward pass computes those of the layers below, and all take the same
 * step. So a run equals one of a single process with the same batch_frames, up to the rounding of these sums; it gives the same
 * bits for the same number of processes, and can be resumed on another number. Only rank 0 reads the checkpoint, writes files and
 * calls the hooks that report; the development set is divided among all. If another process ends, lin_train fails with the reason
 * after rank 0 has saved the state after the last complete step (on a GPU the last checkpoint stays).
 * Speaking rates, masks and acoustics (train/augment.h) are drawn for each utterance in each epoch and applied on the fly, on any
 * device. With speaking rates, an utterance's number of frames varies from pass to pass.
 */
#ifndef LIN_TRAIN_TRAIN_H
#define LIN_TRAIN_TRAIN_H

#include "model/model.h"
#include "train/augment.h"
#include "train/comm.h"
#include "train/dataset.h"
#include "train/optimizer.h"

typedef enum lin_schedule {
    LIN_SCHEDULE_PLATEAU, /* halved when dev PER has not fallen for `patience` epochs: the paper's schedule */
    LIN_SCHEDULE_COSINE,  /* down to 0 at the last epoch along half a cosine */
    LIN_SCHEDULE_CONSTANT
} lin_schedule;

enum { LIN_TRAIN_INNER = 8 };

/* Ranges are those of the options of linnet train (train/cmd_train.c), which checks them. */
typedef struct lin_train_options {
    const char *folder;
    const char *device;      /* a name for lin_backend_open; NULL: "auto" */
    lin_precision precision; /* of the matrix products; see lin_backend_open */
    int resume;              /* continue from folder/checkpoint.safetensors; LIN_IO if there is none */
    int epochs;
    int epoch_parts;         /* number of epochs for one pass over the data; 0: 1 */
    int batch_frames;        /* the most frames (10 ms each) of a batch */
    int batch_sequences;     /* the most utterances of a batch, which are then of any length; 0: batches of similar length */
    int accumulate;          /* batches of each step, whose gradients are added as if they were one batch; 0: 1 */
    int max_frames;          /* longer utterances are left out (the paper's longest: 2,400); tempo makes none longer than this */
    double lr;
    int warmup_steps;        /* lr rises linearly over so many steps */
    int drop_step;           /* after so many steps the rate is a tenth (the paper's copy task: 3,000); 0: never */
    lin_schedule schedule;
    int patience;            /* epochs, for the plateau schedule; five times as many while the dev PER is 95 % or more */
    double min_lr;           /* the plateau schedule ends the run below this */
    lin_optimizer_options optimizer;
    lin_augment_options augment; /* all 0: none */
    unsigned long long seed;
    int threads;             /* 0: one per core */
    lin_comm *comm;          /* NULL: this process alone; else all its processes call lin_train with the same options, data and
                                model */
    double checkpoint_s;     /* seconds between checkpoints within an epoch */
    int half;                /* best.safetensors in half precision */
    int inner_layers[LIN_TRAIN_INNER]; /* numbers of layers after which an intermediate CTC loss is added (Lee & Watanabe 2021);
                                          not of an LSTM */
    int n_inner;
    double inner_weight; /* weight of the mean of these losses; the last layer's loss has the rest */
        /*
         * Maximum mutual information (Povey et al. 2016): to CTC's loss is added mmi times ln of the sum over all label
         * sequences l of p(l | frames) q(l), q being the trigrams of the phone model mmi_lm. With 1 the labels compete with all
         * other sequences, as in a search with a language model; 0: CTC alone.
         */
    double mmi;
    const char *mmi_lm; /* NULL: needed only with mmi */
        /*
         * With this probability an utterance continues the sequence of the one before it in its batch: the network keeps its
         * state, as in a stream, and the gradient passes through it. Half of the batches are in the order of the sets, where
         * utterances of one speaker follow each other; in the others speakers change. Losses, masks and acoustics remain per
         * utterance; up to stack - 1 frames at its end are left out. Causal networks only; 0: none.
         */
    double join_part;
    int keep;         /* number of last epochs whose models stay in the folder, as epoch-N.safetensors */
    int speaker_norm; /* features are normalised by each speaker's mean and deviation; the model then needs whole utterances */
    int measures_first; /* 1: the model is measured on the development set before the first step, for the log. Not when
                           resuming */
    int keeps_norm;   /* 1: keep the model's normalisation, which its weights were trained with; 0: compute it from the data.
                         Ignored when resuming and with speaker_norm */
} lin_train_options;

/* The paper's options where it gives them (RAdam, 1e-4, halved on a plateau), 40 epochs. */
lin_train_options lin_train_default(void);

typedef struct lin_train_progress {
    int epoch, epochs;          /* epoch from 0; -1: the model that the run begins with was measured */
    int batch, n_batches;       /* of this epoch; batch == n_batches: the epoch is over and the dev values are new */
    long long step;
    double loss;                /* nats per label, of this epoch so far */
    double dev_loss, dev_per;   /* loss per label; PER 0..1, or of tokens the share whose target is not the most probable one;
                                   both negative while unknown */
    double best_per;            /* negative while unknown; of tokens the best dev loss */
    int is_best;                /* of a complete epoch: best.safetensors is its model */
    double lr, gradient_norm;
    double frames_per_s;        /* 10 ms frames trained per second, this epoch */
    double seconds, seconds_left; /* of the whole run */
} lin_train_progress;

/* All optional; context goes to each. */
typedef struct lin_train_hooks {
    void *context;
    void (*progress)(void *context, const lin_train_progress *progress);
        /* A notice for the user, as one sentence, also of each utterance that cannot be used in training; the run continues. */
    void (*note)(void *context, const char *text);
    /* Not 0: stop, after a checkpoint; lin_train returns LIN_STOPPED. */
    int (*stop)(void *context);
} lin_train_hooks;

/*
 * Locks the folder of a run for this process, with a lock on its file `lock`, which also names the process. LIN_IO, naming the
 * other process, if another one holds it. The lock ends with lin_train_unlock or when the process ends, in any way; the file
 * stays. On a file system without locks nothing is locked: *lock is then -1.
 */
lin_status lin_train_lock(const char *folder, int *lock, lin_error *err);
void lin_train_unlock(int lock);

/*
 * Trains model, starting with its weights. Its normalisation is computed from the sets, unless the run resumes; its emission
 * delay stays, or is that of the checkpoint. On return it holds the last weights; the best ones are in folder/best.safetensors.
 * A loss or gradient that is not finite ends the run with LIN_NUMERIC, naming the utterance or the batch, and keeps the last
 * checkpoint. Resuming: LIN_MISMATCH if the checkpoint is of another network, seed or data, LIN_FORMAT if it is damaged. With
 * another development set the best model is determined again, and a note reports it.
 */
lin_status lin_train(const lin_train_options *options, lin_model *model, const lin_dataset *const *sets, int n_sets,
                     const lin_dataset *const *dev_sets, int n_dev_sets, const lin_train_hooks *hooks, lin_error *err);

#endif
