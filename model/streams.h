/*
 * streams.h - runs a causal encoder on features, or sound, as they arrive, for one or many streams of a model. All states are in
 * one array in the backend's memory, and each tick advances any of them together as a batch; one stream is a batch of one.
 *
 * Pipeline: sound or fbank features of one or many speakers -> [this] -> phones, or log-probabilities for a decoder.
 * A causal linear transformer is a recurrent network (Katharopoulos et al. 2020, eq. 16-20): per layer and head it keeps S [E, E]
 * and z [E], so a stream's memory is constant: 228,096 bytes for the paper's network. An LSTM keeps h and c. Softmax attention
 * (supplement C.1) keeps the keys and values of all rows: its streams grow without limit, and so does the time of a row.
 * On a GPU a pass (of `batch` streams) is one launch of a recorded graph between an upload and a download, and the input of the
 * next pass is copied while it computes.
 *
 *   lin_streams_options o = {.capacity = 50000, .longest = 4, .fbank = &table, .decodes = 1};
 *   lin_streams_create(encoder, &o, &streams, &err);
 *   lin_streams_reset(streams, slot, &err);                            // for every new speaker: slot 0 to capacity - 1
 *   float *input = lin_streams_input(streams);                         // every 40 ms: the new sound of all of them
 *   lin_streams_tick(streams, &(lin_tick){.n = n, .slots = slots, .counts = counts, .input = input}, &results, &err);
 *   for (i < n) use(results.phones + results.offsets[i], results.n_phones[i]);
 *
 * A stream gives the rows of lin_encoder_run, whatever other streams are in the batch and however its frames are split into
 * ticks: on a CPU the same bits, on a GPU, if exact, within 1e-4. In tf32 the phones of speech are nearly always the same
 * (tests/cuda/test_cuda_speech.c counts). Threads: one at a time. The encoder must outlive the streams.
 */
#ifndef LIN_MODEL_STREAMS_H
#define LIN_MODEL_STREAMS_H

#include "model/encoder.h"

typedef struct lin_streams lin_streams;

typedef struct lin_streams_options {
    int capacity; /* streams, in slots 0 to capacity - 1 */
    int batch;    /* streams of one pass; a larger tick takes several passes. 0: 16384 */
    int longest;  /* the most frames of one stream per tick, up to 1024; for sound, that many hops. 0: as many as keep a pass
                     efficient (lin_streams_longest) */
    const lin_fbank_table *fbank; /* input is sound in -1..1 at the model's rate; its arrays on the host; LIN_UNSUPPORTED on a
                                     backend without an fbank operation. NULL: input is features */
    int decodes;  /* greedy decoding: the results are phones instead of log-probabilities */
    int search;   /* the log-probabilities are of the second output, if there is one: lin_worker.search */
    int exact;    /* 1: products in the encoder's precision; 0: on a GPU tf32 for an fp32 encoder, several times as fast */
    int threads;  /* of a CPU, working together on each tick; 0: one per core. On long ticks of a batch of one they run as a wave
                     (lin_wave) */
} lin_streams_options;

/* 1 if streams of this encoder accept sound: not if its model has a running level, which only the host computes. */
int lin_streams_take_sound(const lin_encoder *encoder);

/* LIN_UNSUPPORTED for a model that needs the whole utterance: lin_config_why_not_stream says which. */
lin_status lin_streams_create(const lin_encoder *encoder, const lin_streams_options *options, lin_streams **streams,
                              lin_error *err);
void lin_streams_destroy(lin_streams *streams);

int lin_streams_longest(const lin_streams *streams);
int lin_streams_hop(const lin_streams *streams);     /* samples from a frame to the next if the input is sound; else 0 */
int lin_streams_threads(const lin_streams *streams); /* of a wave; else 1 */

/* Bytes of the backend's memory per stream; those of the sums S and z (an LSTM's h and c); and those of a whole new stream (with
 * convolution and stacking tails and counters). */
size_t lin_streams_bytes_each(const lin_streams *streams);
size_t lin_streams_attention_bytes(const lin_encoder *encoder);
size_t lin_streams_state_bytes(const lin_encoder *encoder);

/* Returns a stream to its initial state, which all have after creation. */
lin_status lin_streams_reset(lin_streams *streams, int slot, lin_error *err);

/* The input of one tick, each slot at most once. */
typedef struct lin_tick {
    int n;
    const int *slots;          /* [n] */
    const int *counts;         /* [n] frames, or samples, of each; 0 is allowed */
    const unsigned char *last; /* [n] not 0: the sound ends here; the remaining rows are returned, and the stream must be reset
                                  before its next input. NULL: none ends */
    const float *input;        /* [sum of counts (, D)], concatenated; the caller's, or lin_streams_input for speed */
} lin_tick;

/* The results of one tick, valid until the next tick. Rows of entry i: offsets[i] .. offsets[i+1]-1. */
typedef struct lin_tick_results {
    const int *offsets;       /* [n+1] */
    const float *logp;        /* [rows, V]; NULL if the streams decode */
    const lin_phone *phones;  /* those of entry i begin at offsets[i]; frames are counted in rows from the stream's start */
    const int *n_phones;      /* [n]; -1: the log-probabilities are not numbers */
} lin_tick_results;

/* Memory for the input of one tick, [capacity, longest frames (, D)], which avoids a copy on the host. */
float *lin_streams_input(lin_streams *streams);

/* LIN_INVALID, with nothing changed, for a slot that does not exist, is repeated or is finished, or a count out of range.
 * Allocates only to grow a full cache of softmax attention: LIN_NO_MEMORY, with nothing changed. Any other failure is the
 * device's: the contents of the streams are then invalid. */
lin_status lin_streams_tick(lin_streams *streams, const lin_tick *tick, lin_tick_results *results, lin_error *err);

/* The run still open at the end of a stream: *pending 1 and *phone if it is a phone that was not returned before. */
lin_status lin_streams_pending(lin_streams *streams, int slot, lin_phone *phone, int *pending, lin_error *err);

/*
 * The image of a stream, to be saved, loaded or moved: this header, the network's state, the waiting frames [most, D], and with
 * softmax attention the keys and values of all rows. Without these it has the same size for all streams of a model, on all
 * machines (little-endian). An open run of greedy decoding is not part of it. LIN_UNSUPPORTED for streams of sound. Loading:
 * LIN_FORMAT, with nothing changed, for an image of another size or with contradictions; the caller ensures that it is of this
 * model and undamaged.
 */
typedef struct lin_stream_image {
    int64_t frames_in; /* since creation or reset */
    int32_t waiting;   /* frames that a later output needs */
    int32_t finished;
} lin_stream_image;

size_t lin_streams_image_bytes(const lin_streams *streams, int slot);
lin_status lin_streams_save(lin_streams *streams, int slot, void *image, lin_error *err);
lin_status lin_streams_load(lin_streams *streams, int slot, const void *image, size_t size, lin_error *err);

/* The waiting frames [image->waiting, D] in an image that was loaded. */
const float *lin_streams_image_frames(const lin_streams *streams, const void *image);

#endif
