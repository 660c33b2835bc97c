/* encoder_internal.h - shared by encoder.c, stream.c and streams.c. */
#ifndef LIN_MODEL_ENCODER_INTERNAL_H
#define LIN_MODEL_ENCODER_INTERNAL_H

#include "model/encoder.h"
#include "model/stream.h"

/* Rows that pass through all layers at once. CPU: enough rows that loading the weights, once per pass from the third-level cache
 * or memory, costs little beside the arithmetic; fewer in bf16 and int8, whose weights are smaller, so that the values between
 * two layers stay in the second-level cache. GPU: enough rows to keep it busy. */
enum { LIN_HOST_ROWS = 512, LIN_HOST_ROWS_NARROW = 128, LIN_DEVICE_ROWS = 16384, LIN_WORKER_UTTERANCES = 128 };

/* The fewest rows of a chunk of a wave: with fewer, loading the weights costs too much beside the arithmetic. And the most chunks
 * per thread. */
enum { LIN_WAVE_ROWS = 24, LIN_WAVE_CHUNKS_EACH = 3 };

struct lin_encoder {
    const lin_model *model;
    const lin_ops *ops;
    lin_exec *exec; // the exec that packed the weights, which are in its memory
    lin_weights *weights;
    const float *values, *mean, *istd; // in the backend's memory: the model's own arrays, or copies
    float *copies;
    size_t state_count;
    int pass_rows;
};

struct lin_worker {
    const lin_encoder *encoder;
    lin_exec *exec;
    lin_activations *activations;
    float *window; // host: [pass_rows stack + ahead, D], frames of one pass of a stream, contiguous
    // in the backend's memory; on a CPU only the state of one long utterance
    float *state, *features, *logp;
    float **states; // [1]: the address of state
    int *offsets;   // [2, LIN_WORKER_UTTERANCES + 1]
    lin_cache *caches; // [1]: of the stream that is running
    // on the host, with several threads: one exec per thread, for waves through the layers
    lin_pool *pool;
    lin_exec **execs; // [lin_pool_threads(pool)]
    int search;       // lin_batch.search
};

/*
 * Runs utterances b of features [in[B], D] through the network; logp [out[B], V]. All in host memory except states, which is NULL
 * or [B] pointers as in lin_batch, and caches, NULL or [B]. out[B] is at most the rows that the activations have room for.
 */
lin_status lin_worker_pass(lin_worker *worker, const float *features, const int *in, const int *out, int B, float *const *states,
                           const lin_cache *caches, float *logp, lin_error *err);

/* ---- the inside of a stream (stream.c) ------------------------------------------------------------------------------------- */

/* The position of a stream, beside its floats: the network's state [state_count], then the waiting frames [most_waiting, D]. */
typedef struct lin_stream_place {
    long long frames_in;
    int waiting; // frames that a later output needs
    int finished;
} lin_stream_place;

/* The most frames that can wait between calls: one fewer than make an output. */
static inline int lin_stream_most_waiting(const lin_config *c) { return c->stack + c->ahead - 1; }

static inline size_t lin_stream_floats(const lin_encoder *e)
{
    return e->state_count + (size_t)lin_stream_most_waiting(&e->model->config) * (size_t)e->model->config.mel_bins;
}

/* LIN_UNSUPPORTED for a model that needs the whole utterance. */
lin_status lin_stream_check(const lin_encoder *encoder, lin_error *err);

/* The inside of a stream without a cache: its position, and its floats [lin_stream_floats]. */
lin_stream_place *lin_stream_inside(lin_stream *stream, float **floats);

#endif
