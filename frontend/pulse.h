/*
 * pulse.h - the sources of a PulseAudio server, or of PipeWire, which answers as one.
 *
 * For microphone.c. PortAudio as Debian builds it does not know PulseAudio: it sees one device of ALSA, "pulse", which records
 * the server's default source, or the one that $PULSE_SOURCE names when the device is opened. This lists the names.
 *
 *   lin_pulse_list(&list, &n, system, sizeof system, 2000, &err);
 *   setenv("PULSE_SOURCE", list[i].name, 1); ... open ALSA's device "pulse"
 *
 * libpulse is loaded with dlopen: it is there where ALSA's plugin for PulseAudio is. $LINNET_PULSE names another library than
 * libpulse.so.0; empty: none. Lists one thread at a time.
 */
#ifndef LIN_FRONTEND_PULSE_H
#define LIN_FRONTEND_PULSE_H

#include <stddef.h>

#include "base/status.h"

typedef struct lin_pulse_source {
    char name[160];  /* "alsa_input.pci-0000_00_1f.3.analog-stereo" */
    char about[128]; /* for people: "Built-in Audio Analog Stereo" */
    int rate_hz, channels;
} lin_pulse_source;

/* The sources, in the server's order; *list is released with lin_free. No library, no server, or one that does not answer within
 * timeout_ms is not an error: *n = 0. system [capacity]: "PulseAudio" or "PipeWire". LIN_NO_MEMORY. */
lin_status lin_pulse_list(lin_pulse_source **list, int *n, char *system, size_t capacity, int timeout_ms, lin_error *err);

/* A server moves what records a source that disappears to another source, without a word: this tells. gone(user) is called once,
 * on a thread of its own. NULL if there is no memory, no library or no thread. start and stop on the same thread (which may have
 * descriptors of its own); stop accepts NULL. */
typedef struct lin_pulse_watch lin_pulse_watch;
lin_pulse_watch *lin_pulse_watch_start(const char *source, void (*gone)(void *user), void *user);
void lin_pulse_watch_stop(lin_pulse_watch *watch);

#endif
