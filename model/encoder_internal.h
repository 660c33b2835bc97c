/* encoder_internal.h - what encoder.c and stream.c share. */
#ifndef LIN_MODEL_ENCODER_INTERNAL_H
#define LIN_MODEL_ENCODER_INTERNAL_H

#include "model/encoder.h"

/* Rows that pass through all layers at once: so many that the weights, which come from the third-level cache or from memory once a pass,
 * cost little beside the arithmetic. */
enum { LIN_WORKER_ROWS = 512, LIN_WORKER_UTTERANCES = 128 };

struct lin_encoder {
    const lin_model *model;
    const lin_ops *ops;
    lin_exec *exec; // the one that packed the weights
    lin_weights *weights;
    size_t state_count;
};

struct lin_worker {
    const lin_encoder *encoder;
    lin_exec *exec;
    lin_activations *activations;
    float *state;  // of one long utterance
    float *window; // [LIN_WORKER_ROWS stack + ahead, D]: frames of one pass of a stream, contiguous
};

#endif
