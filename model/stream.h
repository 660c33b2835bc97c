/*
 * stream.h - run a causal encoder on features as they arrive.
 *
 * Pipeline: frontend/fbank -> [this] -> decoder/greedy.
 * A causal linear transformer is a recurrent network (Katharopoulos et al. 2020, eq. 16-20): per layer and head it keeps S [E, E]
 * and z [E], so a stream's memory is constant: 228,096 bytes for the paper's network. An LSTM keeps h and c. Softmax attention
 * (supplement C.1) keeps the keys and values of all rows: its streams grow without limit, and so does the time of a row.
 *
 *   lin_stream *stream;  lin_stream_create(encoder, &stream, &err);
 *   while (have_audio) lin_stream_feed(stream, worker, fbank, n, logp, capacity, &n_out, &err);
 *   lin_stream_finish(stream, worker, logp, capacity, &n_out, &err);
 *   lin_stream_destroy(stream);
 *
 * On the CPU, any split of the same frames into calls gives the same bits, which are also those of lin_encoder_run.
 * Threads: the encoder is shared; a stream and a worker each belong to one thread at a time.
 */
#ifndef LIN_MODEL_STREAM_H
#define LIN_MODEL_STREAM_H

#include "model/encoder.h"

typedef struct lin_stream lin_stream;

/* LIN_UNSUPPORTED for a model that needs the whole utterance: lin_config_why_not_stream says which. */
lin_status lin_stream_create(const lin_encoder *encoder, lin_stream **stream, lin_error *err);
void lin_stream_destroy(lin_stream *stream);

/* Bytes of the sums S and z (an LSTM's h and c), and of a whole new stream (with convolution and stacking tails and counters). */
size_t lin_stream_attention_bytes(const lin_encoder *encoder);
size_t lin_stream_state_bytes(const lin_encoder *encoder);

/* Output frames that the next feed of n_frames would write; and that finish would write now. */
int lin_stream_frames_out(const lin_stream *stream, int n_frames);
int lin_stream_frames_left(const lin_stream *stream);

/*
 * Processes n_frames of unnormalised log-mel features and writes every output frame that is complete.
 *   fbank  [n_frames, D], natural log
 *   logp   [capacity, V], natural-log probabilities, blank at index 0; the caller owns it
 *   n_out  frames written. LIN_TOO_SMALL, with nothing changed, if capacity < lin_stream_frames_out(stream, n_frames)
 * Allocates nothing, but for a cache of softmax attention that is full: LIN_NO_MEMORY.
 */
lin_status lin_stream_feed(lin_stream *stream, lin_worker *worker, const float *fbank, int n_frames, float *logp, int capacity,
                           int *n_out, lin_error *err);

/* The end of the sound: writes the outputs that still waited for future frames, with the last frame repeated in their place.
 * Reset the stream before feeding it again: LIN_INVALID otherwise. */
lin_status lin_stream_finish(lin_stream *stream, lin_worker *worker, float *logp, int capacity, int *n_out, lin_error *err);

/* lin_stream_feed with the last frames, and lin_stream_finish, in one pass if they fit into one: a pass of few rows reads all
 * weights for them. LIN_TOO_SMALL, with nothing changed, if capacity is less than both write. */
lin_status lin_stream_feed_last(lin_stream *stream, lin_worker *worker, const float *fbank, int n_frames, float *logp,
                                int capacity, int *n_out, lin_error *err);

/* Returns the stream to its initial state. */
void lin_stream_reset(lin_stream *stream);

/* Frames fed since creation or reset. */
long long lin_stream_frames_in(const lin_stream *stream);

/* The frames [*n, D] buffered for outputs that are not complete yet, as they were fed. Valid until the stream is used again. */
const float *lin_stream_waiting(const lin_stream *stream, int *n);

/*
 * The saved state of a stream is an image of lin_stream_image_bytes() bytes, the same for all streams of a model on all machines
 * (little-endian); with softmax attention it grows with the stream. Loading refuses the image of another model (LIN_MISMATCH) and
 * a damaged one (LIN_FORMAT); the stream is then unchanged.
 */
size_t lin_stream_image_bytes(const lin_stream *stream);
lin_status lin_stream_save(const lin_stream *stream, void *image, size_t capacity, lin_error *err);
lin_status lin_stream_load(lin_stream *stream, const void *image, size_t size, lin_error *err);

#endif
