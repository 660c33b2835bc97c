/*
 * microphone.h - live sound from PortAudio.
 *
 * Pipeline: [this] -> frontend/source (lin_extractor: channels, resampling, filterbanks).
 * A device is opened at its own rate. PortAudio's callback, on a thread of the sound system, copies into a ring (frontend/ring.h)
 * and does nothing else: it allocates nothing, locks nothing, waits for nothing. Another thread reads the ring. What is lost on the
 * way is counted, never hidden.
 *
 *   lin_microphone_options options = lin_microphone_options_default();
 *   options.device = "USB";                                       // or "3", or NULL for the system's default
 *   lin_microphone_open(&options, &mic, &err);
 *   const lin_microphone_format *format = lin_microphone_format_of(mic);      // for lin_extractor_create(format->rate_hz, ...)
 *   while (!interrupted) {
 *       status = lin_microphone_read(mic, samples, capacity, 100, &n, &err);  // n may be 0: nothing came within 100 ms
 *       if (n) push(samples, n);
 *       if (status != LIN_OK) break;                              // stalled or lost: err says so, the sound until then was given
 *   }
 *   lin_microphone_close(mic, &report);                           // what happened: frames, drops, overflows
 *
 * PortAudio is opened with dlopen when a microphone is first asked for: its libraries take as long to load as the program takes to
 * start, and a machine without it still recognises files. It and what it calls (ALSA, JACK, PulseAudio) write to standard error as
 * they please, and hang with the server they talk to: frontend/portaudio.h says how both are kept from the program.
 *
 * Threads: list, open and close from any; a microphone belongs to one thread at a time, except that lin_microphone_report_now may
 * be called from any. Several may be open. Nothing survives a fork.
 */
#ifndef LIN_FRONTEND_MICROPHONE_H
#define LIN_FRONTEND_MICROPHONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ---- which there are ---- */

typedef struct lin_microphone_info {
    int index;       /* PortAudio's; not always the same after the next start of the program */
    char name[128];  /* "USB Audio: - (hw:1,0)" */
    char system[32]; /* PortAudio's host API: "ALSA", "JACK Audio Connection Kit" */
    int channels;    /* the most that can be opened; what is not a real device (pulse, default) claims 32 and more */
    int rate_hz;     /* its own */
    int is_default;  /* what opens where no device is named */
} lin_microphone_info;

/*
 * The devices that can record. *list is released with lin_free. None is no error: *n = 0, and `why` [capacity] (may be NULL) says
 * why there is none and what to do. LIN_UNSUPPORTED where PortAudio is not installed, LIN_IO where it does not start.
 */
lin_status lin_microphone_list(lin_microphone_info **list, int *n, char *why, size_t capacity, lin_error *err);

/* ---- one of them ---- */

typedef struct lin_microphone_options {
    const char *device; /* NULL: the default. All digits: an index. Else a name, or a part of just one; case does not count */
    int rate_hz;        /* 0: the device's own. Others only where the device or its driver can */
    int channels;       /* how many are opened; 0: two, or one where there is one */
    int interleaved;    /* 0: what is read is their mean, as lin_extractor mixes; 1: all of them, [n, channels] */
    double ring_s;      /* seconds of sound that wait for a slow reader before any is dropped; 10 */
    int latency_ms;     /* asked of the sound system; 0: its own choice. 20 */
    int stall_ms;       /* a device that gives nothing for so long is stalled; 0: never. 4000 */
} lin_microphone_options;

lin_microphone_options lin_microphone_options_default(void);

typedef struct lin_microphone lin_microphone;

/*
 * Opens and starts. LIN_INVALID: no device of that name (the message lists the names), several of them, a device that does not
 * record, options out of range. LIN_IO: no device at all, busy, not permitted, gone, a sound system that does not answer within
 * 15 s, during which no signal ends the wait. LIN_UNSUPPORTED: PortAudio is not installed, a rate or number of channels that the
 * device cannot do. On failure *mic is NULL.
 */
lin_status lin_microphone_open(const lin_microphone_options *options, lin_microphone **mic, lin_error *err);

/* What was opened. Valid until closing. */
typedef struct lin_microphone_format {
    lin_microphone_info device;
    int rate_hz;
    int channels;     /* of what is read: 1 for a mix */
    int opened;       /* of the device */
    double latency_s; /* from the air to the ring, as the sound system tells; 0 if it does not */
} lin_microphone_format;

const lin_microphone_format *lin_microphone_format_of(const lin_microphone *mic);

/*
 * Gives the oldest sound that was not yet read, samples [n, channels], *n_got <= n frames. As soon as there is any it returns;
 * where there is none it waits for at most timeout_ms (0: not at all; -1: until something happens), or until a signal arrives, and
 * gives *n_got = 0 and LIN_OK.
 * LIN_IO, once the ring is empty: the device is lost, which is final, or stalled, after which one may read on: sound may come back.
 * Samples are what the device gives: NaN or infinity are possible where a driver is broken; lin_extractor_push refuses them.
 * Allocates nothing.
 */
lin_status lin_microphone_read(lin_microphone *mic, float *samples, int n, int timeout_ms, int *n_got, lin_error *err);

/* Seconds from the moment when the last frame that was read had reached the device until now: what a reader has to add to its own
 * delay. 0 before the first. After frames were dropped those that were in the ring at that moment seem younger than they are. */
double lin_microphone_age(const lin_microphone *mic);

typedef enum lin_microphone_state { LIN_MICROPHONE_RUNS, LIN_MICROPHONE_STALLED, LIN_MICROPHONE_LOST } lin_microphone_state;

typedef struct lin_microphone_report {
    lin_microphone_state state;
    int64_t captured;  /* frames that the sound system gave */
    int64_t dropped;   /* of these, lost here because the ring was full: the reader is too slow */
    int64_t read;      /* frames that were read */
    int64_t waiting;   /* frames in the ring */
    int64_t overflows; /* times that the sound system said it had lost sound before it came here */
    double silent_s;   /* seconds since it last gave something, or since opening if it never did */
    double open_s;     /* seconds since opening */
} lin_microphone_report;

void lin_microphone_report_now(const lin_microphone *mic, lin_microphone_report *report);

/* Stops and closes, in bounded time also where the sound system hangs. What had not been read is gone. report (may be NULL): the
 * last state. NULL for mic is allowed. */
void lin_microphone_close(lin_microphone *mic, lin_microphone_report *report);

#endif
