/*
 * state.h - a saved stream: bytes from which recognition resumes as if it had never stopped, here or on another machine.
 *
 * Pipeline: frontend/source, model/stream and decoder/search, each saved separately -> [this] -> a file.
 *
 *   offset  0   header, 168 bytes: magic "LINSTATE", version, sizes, model and sound of the state, checksum, the decoder's
 *               search, resets, frames
 *           .   the front end: samples of the incomplete window, and what the resampler needs
 *           .   for each lane: the decoder's state, the image of the stream (model/stream.h), for a second pass the frames of
 *               the utterance, with resets its endpoint
 *
 * Little-endian; every part begins at a multiple of 8. The checksum covers all bytes. Version 1 has greedy decoding only: its
 * header ends after the checksum, at 120 bytes; version 2 has no resets: its header ends at 144 bytes; version 3 has no frames:
 * its header ends at 160 bytes, and a state without them is still written so. All can be read.
 *
 *   lin_state state = {0};
 *   lin_state_begin(&state, &about, &sizes, &err);                     // room, to be filled in
 *   ... lin_state_front(&state), lin_state_decoder(&state, lane), lin_state_image(&state, lane) ...
 *   lin_state_write(&state, "s.bin", &err);                            // the old file stays until the new one is complete
 *   lin_state_read("s.bin", &state, &err);
 *   lin_state_free(&state);
 *
 * Threads: one at a time per state.
 */
#ifndef LIN_LINNET_STATE_H
#define LIN_LINNET_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/search.h"
#include "linnet/utterances.h"

enum { LIN_STATE_VERSION = 4 };

/* The model, sound and search of a state. */
typedef struct lin_state_about {
    uint64_t model;        /* its fingerprint */
    int rate_hz, channels; /* of the sound */
    int channel, lanes;    /* as in frontend/source.h */
    int64_t samples;       /* of every channel, taken in since the stream began */
    int64_t frames, rows;  /* features given to the network, rows decoded */
    double row_seconds;    /* time between two rows */
    lin_search_kind kind;  /* of the decoder's search, ... */
    uint64_t search;       /* ... and its id */
    uint32_t early;        /* a bit for each of the first 32 lanes: lin_utterances_early */
    int resets;            /* 1: the network is reset at endpoints ... */
    double resets_from_s;  /* ... from this time on */
} lin_state_about;

typedef struct lin_state_sizes {
    size_t front, decoder, image; /* bytes; of the decoder and the image for each lane */
    size_t frames;                /* the same of the row with which the utterance began, 8 bytes, and its frames; 0: without */
} lin_state_sizes;

typedef struct lin_state {
    lin_state_about about;
    lin_state_sizes sizes;
    size_t header_bytes;
    unsigned char *bytes;            /* owned; NULL in an empty state */
    size_t n, capacity;
} lin_state;

/* Room for all parts, zeroed; replaces earlier contents and reuses their memory. */
lin_status lin_state_begin(lin_state *state, const lin_state_about *about, const lin_state_sizes *sizes, lin_error *err);

void *lin_state_front(const lin_state *state);
void *lin_state_decoder(const lin_state *state, int lane);
void *lin_state_image(const lin_state *state, int lane);
void *lin_state_frames(const lin_state *state, int lane);

/* The decoder's state of a lane, into room of lin_search_bytes.
 * LIN_MISMATCH if it is of another search, LIN_FORMAT if damaged. */
lin_status lin_state_get_decoder(const lin_state *state, int lane, const lin_search *search, void *decoder, lin_error *err);

/* The endpoint of a lane; nothing in a state without resets. Getting: into an endpoint with the same rules; LIN_MISMATCH if the
 * state has other rules or resets; LIN_FORMAT if damaged. */
void lin_state_put_endpoint(lin_state *state, int lane, const lin_endpoint *endpoint);
lin_status lin_state_get_endpoint(const lin_state *state, int lane, const lin_reset_options *options, lin_endpoint *endpoint,
                                  lin_error *err);

/* The bytes of the file; completes the header. */
void lin_state_seal(lin_state *state);

/* From bytes, which are copied; `name` is for messages. LIN_FORMAT: not a state, another version, or damaged. */
lin_status lin_state_parse(const void *bytes, size_t n, const char *name, lin_state *state, lin_error *err);

/* Seals and writes to a temporary name that is renamed at the end. LIN_IO. */
lin_status lin_state_write(lin_state *state, const char *path, lin_error *err);
lin_status lin_state_read(const char *path, lin_state *state, lin_error *err);

void lin_state_free(lin_state *state);

/* 1 if the bytes begin as a state does. */
int lin_state_is(const void *bytes, size_t n);

#endif
