/* encoder_internal.h - shared by stream.c and streams.c. */
#ifndef LIN_MODEL_ENCODER_INTERNAL_H
#define LIN_MODEL_ENCODER_INTERNAL_H

#include "model/encoder.h"
#include "model/stream.h"

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
