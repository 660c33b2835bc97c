/*
 * streams.h - many streams of one model at once: the states of all in one array where the operations work, and a batch of any of
 * them moved on together, tick by tick.
 *
 * Pipeline: sound or fbank features of many speakers -> [this] -> phones, or log-probabilities for a decoder.
 * What a stream is, and its mathematics: stream.h (Katharopoulos et al. 2020, eq. 16-20). On a GPU a tick is one upload, one launch
 * of a recorded graph and one download.
 *
 *   lin_streams_options o = {.capacity = 50000, .longest = 4, .fbank = &table, .decodes = 1};
 *   lin_streams_create(encoder, &o, &streams, &err);
 *   lin_streams_open(streams, &slot, &err);                            // for every speaker that comes
 *   float *input = lin_streams_input(streams);                         // every 40 ms: what all of them said
 *   lin_streams_tick(streams, &(lin_tick){.n = n, .slots = slots, .counts = counts, .input = input}, &heard, &err);
 *   for (i < n) use(heard.phones + heard.offsets[i], heard.n_phones[i]);
 *   lin_streams_close(streams, slot);
 *
 * A stream gives what lin_stream gives, whoever its neighbours are: on a CPU the same bits, on a GPU within 1e-4.
 * Threads: one at a time. The encoder must outlive the streams.
 */
#ifndef LIN_MODEL_STREAMS_H
#define LIN_MODEL_STREAMS_H

#include "model/encoder.h"

typedef struct lin_streams lin_streams;

typedef struct lin_streams_options {
    int capacity; /* streams at most */
    int batch;    /* streams of one pass; a tick of more takes several. 0: 16384 */
    int longest;  /* frames that a stream is given in one tick at most, 1 to 64; of sound, so many hops */
    const lin_fbank_table *fbank; /* input is sound in -1..1 at the model's rate; its arrays with the host. NULL: input is features,
                                     which is all a backend without an fbank operation takes: LIN_UNSUPPORTED */
    int decodes;  /* greedy decoding: phones come out instead of log-probabilities */
    int threads;  /* of a CPU, that work together on each tick; 0: one per core */
} lin_streams_options;

/* 1 if streams of this encoder can be given sound. */
int lin_streams_take_sound(const lin_encoder *encoder);

lin_status lin_streams_create(const lin_encoder *encoder, const lin_streams_options *options, lin_streams **streams,
                              lin_error *err);
void lin_streams_destroy(lin_streams *streams);

/* Bytes of the backend's memory that one stream takes, and how many are open. */
size_t lin_streams_bytes_each(const lin_streams *streams);
int lin_streams_open_count(const lin_streams *streams);

/* A new stream; LIN_TOO_SMALL if all slots are taken. Closing gives its slot back. */
lin_status lin_streams_open(lin_streams *streams, int *slot, lin_error *err);
void lin_streams_close(lin_streams *streams, int slot);
/* As new. */
lin_status lin_streams_reset(lin_streams *streams, int slot, lin_error *err);
/* A second stream that goes on from the same point. */
lin_status lin_streams_fork(lin_streams *streams, int from, int *slot, lin_error *err);

/* One tick. Slots are open ones, each at most once. */
typedef struct lin_tick {
    int n;
    const int *slots;          /* [n] */
    const int *counts;         /* [n] frames, or samples, of each; 0 is allowed */
    const unsigned char *last; /* [n] not 0: the sound ends here, what waits is given out, and the stream must be reset before it goes
                                  on. NULL: none ends */
    const float *input;        /* [sum of counts (, D)], end to end; the caller's, or lin_streams_input for speed */
} lin_tick;

/* What came out, valid until the next tick. Rows of entry i: offsets[i] .. offsets[i+1]-1. */
typedef struct lin_tick_heard {
    const int *offsets;       /* [n+1] */
    const float *logp;        /* [rows, V]; NULL where the streams decode */
    const lin_phone *phones;  /* those of entry i begin at offsets[i]; frames are rows since the stream's start */
    const int *n_phones;      /* [n]; -1: the log-probabilities are not numbers */
} lin_tick_heard;

/* Memory for the input of one tick, [capacity, longest frames (, D)], that need not be copied on its way. */
float *lin_streams_input(lin_streams *streams);

/* LIN_INVALID, and nothing changed, for a slot that is not open, comes twice or is finished, or a count out of range. Allocates
 * nothing. Another failure is the device's: what its streams hold is worth nothing then. */
lin_status lin_streams_tick(lin_streams *streams, const lin_tick *tick, lin_tick_heard *heard, lin_error *err);

/* The run still open at the end of what a stream heard: 1 and *phone if it is a phone not given out before. */
lin_status lin_streams_pending(lin_streams *streams, int slot, lin_phone *phone, int *pending, lin_error *err);

/*
 * The image of a stream begins with the image that lin_stream_save makes (so that lin_stream_load takes its first
 * lin_stream_image_bytes bytes, on any backend); behind it lie the sound that waits for a whole window and the open run. Loading
 * takes such an image, or one of a lin_stream, which goes on with the next frame. Errors as in stream.h.
 */
size_t lin_streams_image_bytes(const lin_streams *streams);
lin_status lin_streams_save(lin_streams *streams, int slot, void *image, size_t capacity, lin_error *err);
lin_status lin_streams_load(lin_streams *streams, int slot, const void *image, size_t size, lin_error *err);

#endif
