/*
 * portaudio.h - the sound systems, for microphone.c: loads PortAudio when it is first needed, keeps it from writing to the
 * terminal, and limits the time to wait for it; lists the sources of a sound server.
 *
 *   static lin_status look(const lin_portaudio *pa, void *context, lin_error *err) { ... pa->device_count() ... }
 *   lin_portaudio_run(look, undo, context, 10000, &err);
 *
 * PortAudio and its back ends (ALSA, JACK, PulseAudio's client) do not allow calls from several threads, may hang with their
 * server, and write to standard error, also from threads of their own. So every call except a stream's callback and the query
 * whether it is active runs on one thread, made at the first call. That thread and the threads it starts have their own table of
 * descriptors. Only in that table, standard error is a file in memory during a piece of work, whose most informative line becomes
 * part of the error message; at other times it is discarded. If the system forbids such a table (some containers), standard error
 * is diverted for the whole process, but only during a piece of work.
 * Nothing here can be used after a fork.
 */
#ifndef LIN_FRONTEND_PORTAUDIO_H
#define LIN_FRONTEND_PORTAUDIO_H

#include <portaudio.h>
#include <stddef.h>

#include "base/status.h"
#include "frontend/microphone.h"

/* The functions used: name here, PortAudio's name, result, parameters. */
#define LIN_PORTAUDIO_FUNCTIONS(X)                                                                                               \
    X(initialize, "Pa_Initialize", PaError, (void))                                                                              \
    X(terminate, "Pa_Terminate", PaError, (void))                                                                                \
    X(error_text, "Pa_GetErrorText", const char *, (PaError error))                                                              \
    X(host_error, "Pa_GetLastHostErrorInfo", const PaHostErrorInfo *, (void))                                                    \
    X(device_count, "Pa_GetDeviceCount", PaDeviceIndex, (void))                                                                  \
    X(default_input, "Pa_GetDefaultInputDevice", PaDeviceIndex, (void))                                                          \
    X(device_info, "Pa_GetDeviceInfo", const PaDeviceInfo *, (PaDeviceIndex device))                                             \
    X(host_info, "Pa_GetHostApiInfo", const PaHostApiInfo *, (PaHostApiIndex host))                                              \
    X(open_stream, "Pa_OpenStream", PaError,                                                                                     \
      (PaStream * *stream, const PaStreamParameters *input, const PaStreamParameters *output, double rate_hz,                    \
       unsigned long frames, PaStreamFlags flags, PaStreamCallback *callback, void *context))                                    \
    X(on_finished, "Pa_SetStreamFinishedCallback", PaError, (PaStream * stream, PaStreamFinishedCallback * callback))            \
    X(start_stream, "Pa_StartStream", PaError, (PaStream * stream))                                                              \
    X(abort_stream, "Pa_AbortStream", PaError, (PaStream * stream))                                                              \
    X(close_stream, "Pa_CloseStream", PaError, (PaStream * stream))                                                              \
    X(is_active, "Pa_IsStreamActive", PaError, (PaStream * stream))

#define LIN_PORTAUDIO_MEMBER(name, symbol, result, parameters) result(*name) parameters;
typedef struct lin_portaudio {
    LIN_PORTAUDIO_FUNCTIONS(LIN_PORTAUDIO_MEMBER)
} lin_portaudio;
#undef LIN_PORTAUDIO_MEMBER

/* Runs on the thread of the sound system, with PortAudio initialised. */
typedef lin_status (*lin_portaudio_work)(const lin_portaudio *pa, void *context, lin_error *err);

/*
 * Runs a piece of work and waits for it. Any thread; requests run one at a time. LIN_UNSUPPORTED if PortAudio is not installed,
 * LIN_IO if it cannot be initialised. LIN_IO also if it does not respond within timeout_ms: *hangs = 1, the context then belongs
 * to undo, which runs on that thread if the work ever ends; pa is NULL if PortAudio was never initialised. PortAudio counts its
 * initialisations: only the first searches for devices, only the last termination closes everything. So work that initialises it
 * once more keeps it, until work or undo terminates it. $LINNET_PORTAUDIO names another library than libportaudio.so.2.
 */
lin_status lin_portaudio_run(lin_portaudio_work work, void (*undo)(const lin_portaudio *pa, void *context, lin_status status),
                             void *context, int timeout_ms, int *hangs, lin_error *err);

/* Within work: the line written to standard error since the work began that says most about a failure. "" if nothing was
 * written. */
void lin_portaudio_noise(char *line, size_t capacity);

/* Test hook: use these functions instead of the library's; NULL: the library again. Only while nothing runs. */
void lin_portaudio_replace(const lin_portaudio *functions);

/* ---- sources of a sound server --------------------------------------------------------------------------------------------- */

/*
 * Most PortAudios do not know PulseAudio: they see one device of ALSA, "pulse", which records the server's default source, or the
 * one that $PULSE_SOURCE names when the device is opened. This lists the names of a PulseAudio server, or of PipeWire, which
 * answers as one.
 *
 *   lin_pulse_list(&list, &n, n, through, 2000, &err);
 *   setenv("PULSE_SOURCE", list[i].source, 1); ... open ALSA's device "pulse"
 *
 * libpulse is loaded with dlopen; ALSA's plugin for PulseAudio needs it too. $LINNET_PULSE names another library than
 * libpulse.so.0; empty: none. Lists one thread at a time.
 */

/* Appends the sources, in the server's order; index: the number of the first, through: PortAudio's index of ALSA's device. No
 * library, no server, or one that does not answer within timeout_ms is not an error: nothing is appended. LIN_NO_MEMORY. */
lin_status lin_pulse_list(lin_microphone_info **list, int *n, int index, int through, int timeout_ms, lin_error *err);

/* When a source disappears, the server silently moves its recordings to another source. This detects it: gone(user) is called
 * once, on a thread of its own. NULL if there is no memory, no library or no thread. start and stop on the same thread (which may
 * have descriptors of its own); stop accepts NULL. */
typedef struct lin_pulse_watch lin_pulse_watch;
lin_pulse_watch *lin_pulse_watch_start(const char *source, void (*gone)(void *user), void *user);
void lin_pulse_watch_stop(lin_pulse_watch *watch);

#endif
