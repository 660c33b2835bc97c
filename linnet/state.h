/*
 * state.h - a saved stream: bytes from which recognition resumes as if it had never stopped, here or on another machine.
 *
 * Pipeline: the parts of a stream, each a flat block -> [this] -> a file, or memory.
 *
 *   offset  0   header: magic "LINSTATE", version, size, checksum of all bytes, lin_state_about, lin_state_sizes
 *           .   the front end: frames that wait, samples of the incomplete window, and what the resampler needs
 *           .   for each lane: lin_state_lane, the decoder's state, the image of the network's stream (model/streams.h), and
 *               for a second pass the frames of the utterance
 *
 * Little-endian; every part begins at a multiple of 8.
 *
 *   lin_state state = {0};
 *   lin_state_begin(&state, &about, &sizes, &err);                     // room, to be filled in
 *   ... lin_state_front(&state), lin_state_lane_of(&state, lane), lin_state_decoder(&state, lane) ...
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

enum { LIN_STATE_VERSION = 5 };

/* The model, sound and search of a state. Written as it is: no gaps. */
typedef struct lin_state_about {
    uint64_t model;             /* its fingerprint */
    int32_t rate_hz, channels;  /* of the sound */
    int32_t channel, lanes;     /* as in frontend/source.h */
    int64_t samples;            /* of every channel, taken in since the stream began */
    int64_t frames, rows;       /* features given to the network, rows decoded */
    double row_seconds;         /* time between two rows */
    uint64_t search;            /* the id of the decoder's search, ... */
    int32_t kind;               /* ... and its lin_search_kind */
    int32_t resets;             /* 1: the network is reset at endpoints ... */
    double resets_from_s;       /* ... from this time on, ... */
    lin_endpoint_options rules; /* ... by these rules */
} lin_state_about;

/* Bytes of the parts; of a lane: for each. Written as it is. */
typedef struct lin_state_sizes {
    uint64_t front, decoder, image;
    uint64_t frames; /* 0: without */
} lin_state_sizes;

/* A lane's endpoint, and where its utterance began. Written as it is. */
typedef struct lin_state_lane {
    double silent_s, spoken_s, length_s, quietest_db;
    int32_t heard, early; /* early: lin_decoder.early */
    int64_t first_row;    /* of `frames`; -1: they are not known */
} lin_state_lane;

typedef struct lin_state {
    lin_state_about about;
    lin_state_sizes sizes;
    unsigned char *bytes;            /* owned; NULL in an empty state */
    size_t n, capacity;
} lin_state;

/* Room for all parts, zeroed; replaces earlier contents and reuses their memory. */
lin_status lin_state_begin(lin_state *state, const lin_state_about *about, const lin_state_sizes *sizes, lin_error *err);

void *lin_state_front(const lin_state *state);
lin_state_lane *lin_state_lane_of(const lin_state *state, int lane);
void *lin_state_decoder(const lin_state *state, int lane);
void *lin_state_image(const lin_state *state, int lane);
float *lin_state_frames(const lin_state *state, int lane);

/* LIN_MISMATCH for a state of another model; `name` is that of the state. */
lin_status lin_state_check_model(const lin_state_about *about, const lin_recognizer *recognizer, const char *name,
                                 lin_error *err);

/* The decoder's state of a lane, into room of lin_search_bytes.
 * LIN_MISMATCH if it is of another search, LIN_FORMAT if damaged. */
lin_status lin_state_get_decoder(const lin_state *state, int lane, const lin_search *search, void *decoder, lin_error *err);

/* The endpoint of a lane. Getting: into an endpoint with the same rules; LIN_MISMATCH if the state has other rules or resets;
 * LIN_FORMAT if damaged. */
void lin_state_put_endpoint(lin_state *state, int lane, const lin_endpoint *endpoint);
lin_status lin_state_get_endpoint(const lin_state *state, int lane, const lin_reset_options *options, lin_endpoint *endpoint,
                                  lin_error *err);

/* Completes the header: the bytes are those of a file. */
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
