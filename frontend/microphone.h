/*
 * microphone.h - live sound from PortAudio, or from a file or pipe in place of a microphone; recordings of it.
 *
 * Pipeline: [this] -> frontend/source (lin_extractor: channels, resampling, filterbanks).
 * A device is opened at its own rate. PortAudio's callback, on a thread of the sound system, only copies into a ring: it
 * allocates nothing, locks nothing, and does not wait. Another thread reads the ring. Dropped samples are counted and reported.
 * A file is read in real time, so that latencies are those of a microphone; a pipe as its sound arrives.
 *
 *   lin_microphone_options options = lin_microphone_options_default();
 *   options.device = "USB";                                       // or "3", or NULL for the system's default
 *   lin_microphone_open(&options, &mic, &err);
 *   const lin_microphone_format *format = lin_microphone_format_of(mic);      // for lin_extractor_create(format->rate_hz, ...)
 *   while (!interrupted) {
 *       status = lin_microphone_read(mic, samples, capacity, 100, &n, &err);  // n may be 0: nothing arrived within 100 ms
 *       if (n) push(samples, n);
 *       if (status != LIN_OK) break;                              // stalled or lost, see err; all sound before was read
 *   }
 *   lin_microphone_close(mic);
 *
 * PortAudio is loaded with dlopen when a microphone is first used: loading its libraries takes as long as the program takes to
 * start, and a machine without it can still recognise files. PortAudio and its back ends (ALSA, JACK, PulseAudio) write to
 * standard error and hang if their server hangs; frontend/portaudio.h protects the program from both.
 *
 * Threads: list, open and close from any thread; a microphone belongs to one thread at a time, except that
 * lin_microphone_report_now may be called from any. Several may be open. None can be used after a fork.
 */
#ifndef LIN_FRONTEND_MICROPHONE_H
#define LIN_FRONTEND_MICROPHONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "frontend/audio.h"

/* ---- listing devices ------------------------------------------------------------------------------------------------------- */

typedef struct lin_microphone_info {
    int index;        /* PortAudio's index, or a number above those; it may change when the program is restarted */
    char name[300];   /* "USB Audio: - (hw:1,0)"; of a source what it is and its name: "Built-in Audio (alsa_input.pci)" */
    char system[32];  /* PortAudio's host API, "ALSA", "JACK Audio Connection Kit"; of a source "PulseAudio" or "PipeWire" */
    char source[160]; /* a source of that server, recorded through ALSA's device for it; "": PortAudio's device */
    int through;      /* PortAudio's index of what is opened */
    int channels;     /* the most that can be opened; virtual devices (pulse, default) give 32 and more */
    int rate_hz;      /* its default rate */
    int is_default;   /* opened if no device is named */
} lin_microphone_info;

/*
 * The devices that can record. *list is released with lin_free. No device is not an error: *n = 0, and `why` [capacity] (may be
 * NULL) explains why there is none and what to do. LIN_UNSUPPORTED if PortAudio is not installed, LIN_IO if it cannot be
 * initialised.
 */
lin_status lin_microphone_list(lin_microphone_info **list, int *n, char *why, size_t capacity, lin_error *err);

/* ---- opening a device ------------------------------------------------------------------------------------------------------ */

typedef struct lin_microphone_options {
    const char *device; /* NULL: the default. All digits: an index. Else a name, the name of a source, or a unique part of one, in
                           upper or lower case */
    int rate_hz;        /* 0: the device's own rate. Other rates only if the device or its driver supports them */
    int channels;       /* number of channels to open; 0: two, or one if the device has one */
    int interleaved;    /* 0: read the mean of the channels, as lin_extractor mixes; 1: all of them, [n, channels] */
    double ring_s;      /* capacity of the ring in seconds: sound is dropped if the reader falls further behind; 10 */
    int stall_ms;       /* a device that delivers nothing for this long is stalled; 0: never. 4000 */
    const char *path;   /* instead of a device: a sound file, or "-": standard input, with all its channels */
    const lin_pcm_format *raw; /* of headerless sound, as for lin_audio_open */
    int unpaced;               /* 1: read a file as fast as possible, not in real time */
} lin_microphone_options;

lin_microphone_options lin_microphone_options_default(void);

typedef struct lin_microphone lin_microphone;

/*
 * Opens and starts. LIN_INVALID: no device of that name (the message lists the names), several of them, a device that cannot
 * record. LIN_IO: no device at all, busy, not permitted, gone, or a sound system that does not respond
 * within 15 s (signals do not end this wait). LIN_UNSUPPORTED: PortAudio is not installed, or the device does not support the
 * rate or the number of channels. For a path the errors of lin_audio_open. On failure *mic is NULL.
 */
lin_status lin_microphone_open(const lin_microphone_options *options, lin_microphone **mic, lin_error *err);

/* The format of an open microphone. Valid until it is closed. */
typedef struct lin_microphone_format {
    lin_microphone_info device;
    int rate_hz;
    int channels;                 /* channels that are read: 1 for a mix */
    int opened;                   /* channels of the device */
    const lin_audio_format *file; /* of a file or pipe: its warning, notice and so on; NULL: a device */
} lin_microphone_format;

const lin_microphone_format *lin_microphone_format_of(const lin_microphone *mic);

/*
 * Reads the oldest unread sound, samples [n, channels], *n_got <= n frames. Returns as soon as there is any; if there is none,
 * waits at most timeout_ms (0: does not wait; -1: no limit) or until a signal arrives, and then gives *n_got = 0 and LIN_OK.
 * LIN_IO, once the ring is empty: the device is lost, which is final, or stalled, after which reading may continue, because sound
 * may return. Samples are those of the device: NaN or infinity are possible if a driver is faulty; lin_extractor_push refuses
 * them. Errors of lin_audio_read. Allocates nothing.
 */
lin_status lin_microphone_read(lin_microphone *mic, float *samples, int n, int timeout_ms, int *n_got, lin_error *err);

/* A file or pipe is at its end. */
int lin_microphone_ended(const lin_microphone *mic);

/* Seconds from the time when the last frame read reached the device until now: a reader adds its own delay to it. 0 before the
 * first frame. After frames were dropped, it is too small for frames that were in the ring at that time. */
double lin_microphone_age(const lin_microphone *mic);

typedef struct lin_microphone_report {
    int64_t captured;  /* frames delivered by the sound system */
    int64_t dropped;   /* of these, dropped because the ring was full: the reader is too slow */
    int64_t read;      /* frames that were read */
    int64_t waiting;   /* frames in the ring */
    int64_t overflows; /* times that the sound system reported lost sound before the ring */
} lin_microphone_report;

void lin_microphone_report_now(const lin_microphone *mic, lin_microphone_report *report);

/* Stops and closes, in bounded time even if the sound system hangs. Unread sound is discarded. Accepts NULL. */
void lin_microphone_close(lin_microphone *mic);

/* ---- recording ------------------------------------------------------------------------------------------------------------- */

/*
 * Writes live sound to a WAV file as it arrives.
 * Samples are 32-bit floats: reading the file gives the same bits that were written. The file appears under its name when it is
 * closed (base/file.h). The header is updated every second, so that a killed program leaves a playable file under the temporary
 * name (<path>.linnet-N.tmp), which the next recording does not remove.
 *
 *   lin_recording_create("session.wav", 48000, 1, &recording, &err);
 *   while (sound arrives) lin_recording_write(recording, samples, n, &err);
 *   lin_recording_close(recording, &err);
 */

typedef struct lin_recording lin_recording;

/* An existing file is replaced on closing, if anything was recorded. LIN_IO if it cannot be written. On failure *recording is
 * NULL. */
lin_status lin_recording_create(const char *path, int rate_hz, int channels, lin_recording **recording, lin_error *err);

/* samples [n, channels]. LIN_IO: the disk is full, or the file has reached its limit of 4 GiB (6 hours at 48 kHz, one channel).
 * Samples written before are kept; close the recording then. */
lin_status lin_recording_write(lin_recording *recording, const float *samples, int n, lin_error *err);

/* Completes the file under its name. LIN_IO if that fails, or if a write failed before: the sound until then is kept beside it,
 * and the message gives its name. Frees the recording in any case. Accepts NULL. */
lin_status lin_recording_close(lin_recording *recording, lin_error *err);

/* ---- the ring -------------------------------------------------------------------------------------------------------------- */

/*
 * A queue of sound between two threads: one writes, the other reads, and neither waits.
 * Single producer, single consumer (Lamport 1983): each side owns one index and only reads the other's, so nothing is locked and
 * a callback that must not block can write. An element is a frame: `width` floats, one of each channel.
 *
 *   lin_ring_create(48000, 1, &ring, &err);
 *   lin_ring_write(ring, samples, n);              // producer: as many as fit; the others are dropped and counted
 *   n = lin_ring_read(ring, samples, capacity);    // consumer: as many as there are
 *   lin_free(ring);                                // when both have stopped
 * Only creation allocates.
 */

typedef struct lin_ring lin_ring;

/* Room for at least `frames` frames, rounded up to a power of two, of `width` floats. LIN_INVALID unless both are positive, and
 * for more than 2^30 floats. Released with lin_free. On failure *ring is NULL. */
lin_status lin_ring_create(size_t frames, int width, lin_ring **ring, lin_error *err);

/* Producer: copies the first of n frames, samples [n, width], that fit; returns their number. The others count as dropped. */
size_t lin_ring_write(lin_ring *ring, const float *samples, size_t n);

/* Consumer: copies the oldest frames, samples [n, width], at most n of them; returns their number. */
size_t lin_ring_read(lin_ring *ring, float *samples, size_t n);

/* Frames that can be read. Any thread; a lower bound for the consumer, because the producer only increases it, and an upper bound
 * for the producer. */
size_t lin_ring_readable(const lin_ring *ring);

/* Frames since creation: written (without the dropped), read, dropped because the ring was full. Any thread. */
uint64_t lin_ring_written(const lin_ring *ring);
uint64_t lin_ring_taken(const lin_ring *ring);
uint64_t lin_ring_dropped(const lin_ring *ring);

#endif
