/*
 * state.h - a stream put away: bytes from which hearing goes on as if it had never stopped, here or on another machine.
 *
 * Pipeline: frontend/source, model/stream and decoder/greedy, each put away by itself -> [this] -> a file, or an index of many
 * (app/snapshots.h).
 *
 *   offset  0   header, 120 bytes: magic "LINSTATE", version, sizes, what the state is of, checksum
 *           .   the front end: samples that wait for the rest of their window, and what the resampler needs
 *           .   for each lane: the decoder's state (40 bytes), the image of the stream (model/stream.h)
 *
 * Little-endian; every part begins at a multiple of 8. The checksum is of all bytes.
 *
 *   lin_state state = {0};
 *   lin_state_begin(&state, &about, front_bytes, image_bytes, &err);   // room, to be filled in
 *   ... lin_state_front(&state), lin_state_image(&state, lane), lin_state_set_decoder(&state, lane, &greedy) ...
 *   lin_state_write(&state, "s.bin", &err);                            // the old file is whole until the new one is
 *   lin_state_read("s.bin", &state, &err);
 *   lin_state_free(&state);
 *
 * Threads: one at a time per state.
 */
#ifndef LIN_APP_STATE_H
#define LIN_APP_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/greedy.h"
#include "kernels/status.h"

enum { LIN_STATE_VERSION = 1 };

/* What a state is of. */
typedef struct lin_state_about {
    uint64_t model;        /* its fingerprint */
    int rate_hz, channels; /* of the sound */
    int channel, lanes;    /* as in frontend/source.h */
    int64_t samples;       /* of every channel, taken in since the stream began */
    int64_t frames, rows;  /* features given to the network, rows decoded */
    double row_seconds;    /* from one row to the next */
    int past;              /* 1: the front end's part is whole; 0: it needs the sound before once more (frontend/source.h) */
    int n_last;            /* samples of every channel, those taken in last, ... */
    uint64_t last;         /* ... and their lin_state_sound, by which the sound is known again */
} lin_state_about;

typedef struct lin_state {
    lin_state_about about;
    size_t front_bytes, image_bytes; /* image_bytes: for each lane */
    unsigned char *bytes;            /* owned; NULL in an empty state */
    size_t n, capacity;
} lin_state;

/* Room for all parts, zeroed; what was there is gone, its memory is used again. */
lin_status lin_state_begin(lin_state *state, const lin_state_about *about, size_t front_bytes, size_t image_bytes, lin_error *err);

void *lin_state_front(const lin_state *state);
void *lin_state_image(const lin_state *state, int lane);
void lin_state_set_decoder(lin_state *state, int lane, const lin_greedy *greedy);

/* LIN_FORMAT if it is not one of V outputs. */
lin_status lin_state_get_decoder(const lin_state *state, int lane, int V, lin_greedy *greedy, lin_error *err);

/* The bytes as they go to a file: completes the header. */
void lin_state_seal(lin_state *state);

/* From bytes, which are copied; `name` is for messages. LIN_FORMAT: no state, of another version, or damaged. */
lin_status lin_state_parse(const void *bytes, size_t n, const char *name, lin_state *state, lin_error *err);

/* Seals and writes to a temporary name that is renamed at the end. LIN_IO. */
lin_status lin_state_write(lin_state *state, const char *path, lin_error *err);
lin_status lin_state_read(const char *path, lin_state *state, lin_error *err);

void lin_state_free(lin_state *state);

/* 64 bits over samples [n], to know a sound again. */
uint64_t lin_state_sound(const float *samples, size_t n);

/* 1 if the bytes begin as a state does. */
int lin_state_is(const void *bytes, size_t n);

#endif
