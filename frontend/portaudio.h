/*
 * portaudio.h - PortAudio, opened when it is first needed, and kept from writing on the screen. For microphone.c.
 *
 *   lin_portaudio_enter(&pa, &err);                // takes the lock, begins to catch what is written to standard error
 *   error = pa->open_stream(...);
 *   if (error) lin_portaudio_noise(line, sizeof line);
 *   lin_portaudio_leave();                         // nothing is caught any more
 *
 * PortAudio is not safe against calls from several threads, and standard error is one for the whole process: everything except a
 * stream's callback and the question whether it is active happens between enter and leave, of which one thread at a time is inside.
 * lin_portaudio_keep holds PortAudio initialised beyond leave, until lin_portaudio_release.
 */
#ifndef LIN_FRONTEND_PORTAUDIO_H
#define LIN_FRONTEND_PORTAUDIO_H

#include <portaudio.h>
#include <stddef.h>

#include "kernels/status.h"

/* What is used of PortAudio: name here, name there, result, parameters. */
#define LIN_PORTAUDIO_FUNCTIONS(X)                                                                                                 \
    X(initialize, "Pa_Initialize", PaError, (void))                                                                                \
    X(terminate, "Pa_Terminate", PaError, (void))                                                                                  \
    X(error_text, "Pa_GetErrorText", const char *, (PaError error))                                                                \
    X(host_error, "Pa_GetLastHostErrorInfo", const PaHostErrorInfo *, (void))                                                      \
    X(device_count, "Pa_GetDeviceCount", PaDeviceIndex, (void))                                                                    \
    X(default_input, "Pa_GetDefaultInputDevice", PaDeviceIndex, (void))                                                            \
    X(device_info, "Pa_GetDeviceInfo", const PaDeviceInfo *, (PaDeviceIndex device))                                               \
    X(host_info, "Pa_GetHostApiInfo", const PaHostApiInfo *, (PaHostApiIndex host))                                                \
    X(open_stream, "Pa_OpenStream", PaError,                                                                                       \
      (PaStream **stream, const PaStreamParameters *input, const PaStreamParameters *output, double rate_hz, unsigned long frames, \
       PaStreamFlags flags, PaStreamCallback *callback, void *context))                                                            \
    X(on_finished, "Pa_SetStreamFinishedCallback", PaError, (PaStream *stream, PaStreamFinishedCallback *callback))                \
    X(start_stream, "Pa_StartStream", PaError, (PaStream *stream))                                                                 \
    X(abort_stream, "Pa_AbortStream", PaError, (PaStream *stream))                                                                 \
    X(close_stream, "Pa_CloseStream", PaError, (PaStream *stream))                                                                 \
    X(stream_info, "Pa_GetStreamInfo", const PaStreamInfo *, (PaStream *stream))                                                   \
    X(is_active, "Pa_IsStreamActive", PaError, (PaStream *stream))

#define LIN_PORTAUDIO_MEMBER(name, symbol, result, parameters) result(*name) parameters;
typedef struct lin_portaudio {
    LIN_PORTAUDIO_FUNCTIONS(LIN_PORTAUDIO_MEMBER)
} lin_portaudio;
#undef LIN_PORTAUDIO_MEMBER

/* Loads and initialises PortAudio. LIN_UNSUPPORTED if it is not installed, LIN_IO if it does not start; then nothing is to be left.
 * $LINNET_PORTAUDIO names another library than libportaudio.so.2. */
lin_status lin_portaudio_enter(const lin_portaudio **pa, lin_error *err);
void lin_portaudio_leave(void);

/* Within enter and leave. */
void lin_portaudio_keep(void);
void lin_portaudio_release(void);

/* Within enter and leave: what was caught since entering, as one line: that which says most about a failure. "" if nothing was. */
void lin_portaudio_noise(char *line, size_t capacity);

/* Test hook: these functions instead of the library's; NULL: the library again. */
void lin_portaudio_replace(const lin_portaudio *functions);

#endif
