/* encoder_internal.h - what encoder.c, stream.c and streams.c share. */
#ifndef LIN_MODEL_ENCODER_INTERNAL_H
#define LIN_MODEL_ENCODER_INTERNAL_H

#include "model/encoder.h"

/* Rows that pass through all layers at once. CPU: so many that the weights, which come from the third-level cache or from memory once a
 * pass, cost little beside the arithmetic; fewer in bf16, whose weights are half as large, so that what lies between two layers
 * stays in the second-level cache. GPU: so many that it is busy. */
enum { LIN_HOST_ROWS = 512, LIN_HOST_ROWS_BF16 = 128, LIN_DEVICE_ROWS = 16384, LIN_WORKER_UTTERANCES = 128 };

/* The fewest rows of a chunk of a wave: with fewer the weights cost too much beside the arithmetic. And the most chunks for a
 * thread. */
enum { LIN_WAVE_ROWS = 24, LIN_WAVE_CHUNKS_EACH = 3 };

struct lin_encoder {
    const lin_model *model;
    const lin_ops *ops;
    lin_exec *exec; // the one that packed the weights; its memory holds them
    lin_weights *weights;
    const float *values, *mean, *istd; // where the operations work: the model's own, or copies
    float *copies;
    size_t state_count;
    int pass_rows;
};

struct lin_worker {
    const lin_encoder *encoder;
    lin_exec *exec;
    lin_activations *activations;
    float *window; // host: [pass_rows stack + ahead, D], frames of one pass of a stream, contiguous
    // where the operations work; of a CPU only the state of one long utterance
    float *state, *features, *logp;
    float **states; // [1]: the address of state
    int *offsets;   // [2, LIN_WORKER_UTTERANCES + 1]
    // on the host, with several threads: for waves through the layers, an exec for each thread
    lin_pool *pool;
    lin_exec **execs; // [lin_pool_threads(pool)]
};

/*
 * Utterances b of features [in[B], D] through the network; logp [out[B], V]. All in the host's memory but states, which is NULL or [B]
 * pointers as lin_batch wants them. out[B] is at most what the activations have room for.
 */
lin_status lin_worker_pass(lin_worker *worker, const float *features, const int *in, const int *out, int B, float *const *states,
                           float *logp, lin_error *err);

/* ---- images of streams (stream.c) ------------------------------------------------------------------------------------------ */

/* Where a stream stands, beside its floats: the network's state [state_count], then the frames that wait [most_waiting, D]. */
typedef struct lin_stream_place {
    long long frames_in;
    int waiting; // frames that an output to come will need
    int finished;
} lin_stream_place;

/* Frames that can wait between calls: one fewer than make an output. */
static inline int lin_stream_most_waiting(const lin_config *c) { return c->stack + c->ahead - 1; }

static inline size_t lin_stream_floats(const lin_encoder *e)
{
    return e->state_count + (size_t)lin_stream_most_waiting(&e->model->config) * (size_t)e->model->config.mel_bins;
}

/* LIN_UNSUPPORTED for a model that needs the whole utterance. */
lin_status lin_stream_check(const lin_encoder *encoder, lin_error *err);

/* Sizes, formats and errors as stream.h says; floats [lin_stream_floats]. */
size_t lin_image_bytes(const lin_encoder *encoder);
lin_status lin_image_write(const lin_encoder *encoder, const lin_stream_place *place, const float *floats, void *image,
                           size_t capacity, lin_error *err);
lin_status lin_image_read(const lin_encoder *encoder, lin_stream_place *place, float *floats, const void *image, size_t size,
                          lin_error *err);

#endif
