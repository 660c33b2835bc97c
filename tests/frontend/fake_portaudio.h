/*
 * fake_portaudio.h - a fake PortAudio for frontend/portaudio.h: devices from a table, streams that the test feeds,
 * and every refusal of a real one.
 *
 *   fake_devices(table, n, default_index);          // from then on it replaces the library
 *   lin_microphone_open(...);
 *   fake_give(samples, frames, 0);                  // what the sound system's thread would do
 *   fake_end();                                     // the device is gone
 *
 * `fake` holds the requests it got and the answers it gives. One stream at a time.
 */
#ifndef LIN_TESTS_FRONTEND_FAKE_PORTAUDIO_H
#define LIN_TESTS_FRONTEND_FAKE_PORTAUDIO_H

#include <semaphore.h>

#include "frontend/portaudio.h"
#include "tests/frontend/support.h"

typedef struct fake_device {
    const char *name;
    int inputs, host;
    double rate_hz;
} fake_device;

static struct {
    const fake_device *devices;
    int n, preferred;
    PaDeviceInfo info;
    // The answers it gives.
    PaError initialize, count, start;
    PaError open[8]; // of the openings in order
    PaHostErrorInfo host;
    const char *noise;                 // written to standard error while a stream is opened
    sem_t *open_waits, *closing_waits; // NULL: it does not hang
    int inactive;
    double delay_s; // from the end of a block to its callback
    // The requests it got.
    int initialized, opened, started, closed, channels, device;
    double rate_hz, suggested_s;
    PaStreamCallback *callback;
    PaStreamFinishedCallback *finished;
    void *context;
} fake;

static PaError fake_initialize(void)
{
    if (fake.initialize == paNoError) fake.initialized++;
    return fake.initialize;
}

static PaError fake_terminate(void)
{
    fake.initialized--;
    return paNoError;
}

static const char *fake_error_text(PaError error)
{
    return error == paUnanticipatedHostError ? "Unanticipated host error"
           : error == paInternalError        ? "Internal PortAudio error"
                                             : "?";
}

static const PaHostErrorInfo *fake_host_error(void) { return &fake.host; }
static PaDeviceIndex fake_device_count(void) { return fake.count < 0 ? fake.count : fake.n; }
static PaDeviceIndex fake_default_input(void) { return fake.preferred; }

static const PaDeviceInfo *fake_device_info(PaDeviceIndex i)
{
    const fake_device *d = &fake.devices[i];
    if (i < 0 || i >= fake.n) return NULL;
    fake.info = (PaDeviceInfo){.name = d->name,
                               .hostApi = d->host,
                               .maxInputChannels = d->inputs,
                               .maxOutputChannels = 2,
                               .defaultSampleRate = d->rate_hz,
                               .defaultLowInputLatency = 0.0125};
    return &fake.info;
}

static const PaHostApiInfo *fake_host_info(PaHostApiIndex i)
{
    static const PaHostApiInfo hosts[] = {{.name = "ALSA"}, {.name = "JACK Audio Connection Kit"}, {.name = "PulseAudio"}};
    return i < 0 || i > 2 ? NULL : &hosts[i];
}

static PaError fake_open(PaStream **stream, const PaStreamParameters *input, const PaStreamParameters *output, double rate_hz,
                         unsigned long frames, PaStreamFlags flags, PaStreamCallback *callback, void *context)
{
    (void)output, (void)frames, (void)flags;
    if (fake.open_waits) sem_wait(fake.open_waits);
    if (fake.noise && write(STDERR_FILENO, fake.noise, strlen(fake.noise)) < 0) return paInternalError;
    fake.device = input->device;
    fake.channels = input->channelCount;
    fake.rate_hz = rate_hz;
    fake.suggested_s = input->suggestedLatency;
    fake.callback = callback;
    fake.context = context;
    const PaError error = fake.open[fake.opened++ % 8];
    *stream = error == paNoError ? &fake : NULL;
    return error;
}

static PaError fake_on_finished(PaStream *stream, PaStreamFinishedCallback *callback)
{
    (void)stream;
    fake.finished = callback;
    return paNoError;
}

static PaError fake_start(PaStream *stream)
{
    (void)stream;
    fake.started++;
    return fake.start;
}

static PaError fake_abort(PaStream *stream)
{
    (void)stream;
    if (fake.closing_waits) sem_wait(fake.closing_waits);
    return paNoError;
}

static PaError fake_close(PaStream *stream)
{
    (void)stream;
    fake.closed++;
    return paNoError;
}

static PaError fake_is_active(PaStream *stream)
{
    (void)stream;
    return !fake.inactive;
}

// Resets it and installs it instead of the library.
SUPPORT void fake_devices(const fake_device *devices, int n, int preferred)
{
    static const lin_portaudio functions = {fake_initialize,   fake_terminate,     fake_error_text,  fake_host_error,
                                            fake_device_count, fake_default_input, fake_device_info, fake_host_info,
                                            fake_open,         fake_on_finished,   fake_start,       fake_abort,
                                            fake_close,        fake_is_active};
    memset(&fake, 0, sizeof fake);
    fake.devices = devices;
    fake.n = n;
    fake.preferred = preferred;
    lin_portaudio_replace(&functions);
}

SUPPORT int fake_give(const float *samples, int frames, PaStreamCallbackFlags flags)
{
    const PaStreamCallbackTimeInfo time = {.currentTime = 1000,
                                           .inputBufferAdcTime = 1000 - fake.delay_s - frames / fake.rate_hz};
    return fake.callback(samples, NULL, (unsigned long)frames, fake.delay_s > 0 ? &time : NULL, flags, fake.context);
}

SUPPORT void fake_end(void) { fake.finished(fake.context); }

#endif
