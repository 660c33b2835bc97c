// microphone.c - devices, opening, reading, stalls and disappearance; files in place of devices; recordings; see microphone.h.

#include "frontend/microphone.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sndfile.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/system.h"
#include "frontend/portaudio.h"
#include "frontend/resample.h"

/* ---- the ring -------------------------------------------------------------------------------------------------------------- */

/*
 * Indices increase without limit (2^64 frames are 12 million years at 48 kHz); an index modulo the capacity is a place. A side
 * publishes its own index after it has accessed the frames, and reads the other's before it does.
 */
struct lin_ring {
    size_t capacity, width;
    _Atomic uint64_t written, dropped, taken; // the producer's two, and the consumer's
    float frames[];                           // [capacity, width]
};

lin_status lin_ring_create(size_t frames, int width, lin_ring **out, lin_error *err)
{
    const size_t most = (size_t)1 << 30;
    *out = NULL;
    if (frames < 1 || width < 1 || frames > most || (size_t)width > most / frames)
        return lin_fail(err, LIN_INVALID, "a ring of %zu frames of %d channels; must be 1 to 2^30 samples", frames, width);
    size_t capacity = 1;
    while (capacity < frames) capacity *= 2;
    // Written once, by zeroing: the producer must not cause page faults.
    const size_t bytes = sizeof **out + capacity * (size_t)width * sizeof *(*out)->frames;
    lin_ring *ring = *out = lin_calloc(1, bytes);
    if (!ring) return lin_no_memory(err, "a ring", bytes);
    ring->capacity = capacity;
    ring->width = (size_t)width;
    return LIN_OK;
}

size_t lin_ring_write(lin_ring *ring, const float *samples, size_t n)
{
    const uint64_t written = ring->written;
    const size_t room = ring->capacity - (size_t)(written - ring->taken);
    assert(room <= ring->capacity); // the consumer is never ahead of the producer
    const size_t fits = n < room ? n : room, width = ring->width;
    const size_t place = (size_t)written & (ring->capacity - 1), to_end = ring->capacity - place;
    const size_t first = fits < to_end ? fits : to_end;
    memcpy(ring->frames + place * width, samples, first * width * sizeof *samples);
    memcpy(ring->frames, samples + first * width, (fits - first) * width * sizeof *samples);
    ring->written = written + fits;
    ring->dropped += n - fits;
    return fits;
}

size_t lin_ring_read(lin_ring *ring, float *samples, size_t n)
{
    const uint64_t taken = ring->taken;
    const size_t there = lin_ring_readable(ring), take = n < there ? n : there, width = ring->width;
    const size_t place = (size_t)taken & (ring->capacity - 1), to_end = ring->capacity - place;
    const size_t first = take < to_end ? take : to_end;
    memcpy(samples, ring->frames + place * width, first * width * sizeof *samples);
    memcpy(samples + first * width, ring->frames, (take - first) * width * sizeof *samples);
    ring->taken = taken + take;
    return take;
}

size_t lin_ring_readable(const lin_ring *ring)
{
    // In this order the difference is never negative; while both sides run, it may exceed the capacity.
    const uint64_t taken = ring->taken;
    const size_t there = (size_t)(ring->written - taken);
    return there < ring->capacity ? there : ring->capacity;
}

uint64_t lin_ring_written(const lin_ring *ring) { return ring->written; }

uint64_t lin_ring_taken(const lin_ring *ring) { return ring->taken; }

uint64_t lin_ring_dropped(const lin_ring *ring) { return ring->dropped; }

/* ---- a microphone ---------------------------------------------------------------------------------------------------------- */

enum {
    BLOCK = 256,         // frames that are mixed at a time
    LATENCY_MS = 20,     // requested from the sound system
    ASK_MS = 200,        // how often to check whether a silent device still runs
    OPEN_MS = 15000,     // time limit for listing and opening; a headset that changes its profile needs seconds
    ASK_PULSE_MS = 8000, // time limit for the list of a sound server's sources
    CLOSE_MS = 3000      // time limit for closing; after it the sound system is not waited for
};

struct lin_microphone {
    lin_microphone_format format;
    lin_microphone_options options;
    const lin_portaudio *pa;
    PaStream *stream;
    lin_pulse_watch *watch; // of a source of a sound server
    lin_ring *ring;
    char *wanted;    // options.device
    lin_event event; // something has happened
    int64_t stall_seen_ns;
    // Written by the sound system's thread.
    _Atomic int64_t captured, overflows, last_ns;
    _Atomic int64_t origin_ns; // when frame 0 of the ring was recorded, computed from the last frame written
    atomic_int finished;
    // A file or pipe.
    lin_audio *audio;
    int is_pipe, ended; // is_pipe: sound in the making
    double begun;       // when frame 0 was captured
    int64_t frames;     // read
};

static int64_t frames_ns(const lin_microphone *mic, uint64_t frames)
{
    return (int64_t)((double)frames * 1e9 / mic->format.rate_hz);
}

/* ---- the sound system's thread --------------------------------------------------------------------------------------------- */

static void keep_mix(lin_microphone *mic, const float *sound, size_t n)
{
    const int C = mic->format.opened;
    float mix[BLOCK];
    while (n > 0) {
        const size_t take = n < BLOCK ? n : BLOCK;
        lin_mix_down(mix, sound, (int)take, C);
        sound += take * (size_t)C;
        lin_ring_write(mic->ring, mix, take);
        n -= take;
    }
}

static int on_sound(const void *sound, void *unused, unsigned long n, const PaStreamCallbackTimeInfo *time,
                    PaStreamCallbackFlags flags, void *context)
{
    lin_microphone *mic = context;
    (void)unused;
    if (mic->finished) return paAbort; // this is another source's sound
    if (flags & paInputOverflow) mic->overflows += 1;
    if (!sound || n == 0) return paContinue;
    const int64_t now = lin_now_ns();
    if (mic->format.opened > 1 && !mic->options.interleaved) {
        keep_mix(mic, sound, n);
    } else {
        lin_ring_write(mic->ring, sound, n);
    }
    // When the block began, if the sound system knows: some give 0, or a time of another clock.
    int64_t begun = now;
    if (time && time->inputBufferAdcTime > 0) {
        const double delay = time->currentTime - time->inputBufferAdcTime - (double)n / mic->format.rate_hz;
        if (delay > 0 && delay < 2) begun = now - (int64_t)(delay * 1e9);
    }
    mic->origin_ns = begun - frames_ns(mic, lin_ring_written(mic->ring));
    mic->captured += (int64_t)n;
    mic->last_ns = now;
    lin_event_post(&mic->event); // takes no lock
    return paContinue;
}

// The stream has ended: closed here, or the device or source is gone.
static void on_finished(void *context)
{
    lin_microphone *mic = context;
    mic->finished = 1;
    lin_event_post(&mic->event);
}

/* ---- listing --------------------------------------------------------------------------------------------------------------- */

static void describe(const lin_portaudio *pa, int index, const PaDeviceInfo *device, lin_microphone_info *info)
{
    const PaHostApiInfo *host = pa->host_info(device->hostApi);
    memset(info, 0, sizeof *info);
    info->index = info->through = index;
    snprintf(info->name, sizeof info->name, "%s", device->name ? device->name : "");
    snprintf(info->system, sizeof info->system, "%s", host && host->name ? host->name : "");
    info->channels = device->maxInputChannels;
    info->rate_hz = (int)lround(device->defaultSampleRate);
    info->is_default = index == pa->default_input();
}

// ALSA's device for a sound server, through which its sources are recorded; NULL: there is none.
static const lin_microphone_info *sound_server(const lin_microphone_info *list, int n)
{
    static const char *const devices[] = {"pulse", "pipewire"};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < n; i++)
            if (strcmp(list[i].name, devices[k]) == 0 && strcmp(list[i].system, "ALSA") == 0) return &list[i];
    return NULL;
}

static lin_status list_devices(const lin_portaudio *pa, lin_microphone_info **list, int *n, lin_error *err)
{
    const int count = pa->device_count();
    if (count < 0) return lin_fail(err, LIN_IO, "cannot list the sound devices: %s", pa->error_text(count));
    *list = lin_calloc((size_t)count + 1, sizeof **list);
    if (!*list) return lin_no_memory(err, "a list of devices", (size_t)count * sizeof **list);
    for (int i = 0; i < count; i++) {
        const PaDeviceInfo *device = pa->device_info(i);
        if (device && device->maxInputChannels > 0) describe(pa, i, device, &(*list)[(*n)++]);
    }
    const lin_microphone_info *server = sound_server(*list, *n);
    if (!server) return LIN_OK;
    // PortAudio of Ubuntu 26.04 lists the sources too, but without descriptions, and does not report one that disappears.
    const int through = server->index, all = *n;
    *n = 0;
    for (int i = 0; i < all; i++)
        if ((*list)[i].is_default || strcmp((*list)[i].system, "PulseAudio") != 0) (*list)[(*n)++] = (*list)[i];
    return lin_pulse_list(list, n, count, through, ASK_PULSE_MS, err);
}

// Explains why there is no microphone. PortAudio's list does not contain sound cards that this user may not open.
static void explain_none(char *why, size_t capacity)
{
    glob_t cards;
    int there = 0, refused = 0;
    if (glob("/dev/snd/pcm*c", 0, NULL, &cards) == 0) {
        for (size_t i = 0; i < cards.gl_pathc; i++) {
            there++;
            refused += access(cards.gl_pathv[i], R_OK | W_OK) != 0 && errno == EACCES;
        }
        globfree(&cards);
    }
    if (refused) {
        snprintf(why, capacity,
                 "no microphone: permission denied for the %d sound device%s in /dev/snd; add yourself to "
                 "the group audio (sudo usermod -aG audio $USER, then log in again)",
                 refused, refused == 1 ? "" : "s");
    } else if (there) {
        snprintf(why, capacity,
                 "no microphone: the system has %d that can record, but none can be opened; "
                 "another program may hold them",
                 there);
    } else {
        snprintf(why, capacity,
                 "no microphone: the system has no device that can record; connect one, or start a sound server "
                 "(PipeWire, PulseAudio or JACK) that has one");
    }
}

typedef struct listing {
    lin_microphone_info *list;
    int n;
} listing;

static lin_status work_list(const lin_portaudio *pa, void *context, lin_error *err)
{
    listing *l = context;
    return list_devices(pa, &l->list, &l->n, err);
}

static void undo_list(const lin_portaudio *pa, void *context, lin_status status)
{
    listing *l = context;
    (void)pa, (void)status;
    lin_free(l->list);
    lin_free(l);
}

lin_status lin_microphone_list(lin_microphone_info **list, int *n, char *why, size_t capacity, lin_error *err)
{
    int hangs;
    *list = NULL;
    *n = 0;
    if (why && capacity) why[0] = 0;
    listing *l = lin_calloc(1, sizeof *l);
    if (!l) return lin_no_memory(err, "a list of devices", sizeof *l);
    lin_status status = lin_portaudio_run(work_list, undo_list, l, OPEN_MS, &hangs, err);
    if (hangs) return status;
    *list = l->list;
    *n = l->n;
    lin_free(l);
    if (status == LIN_OK && *n == 0 && why && capacity) explain_none(why, capacity);
    return status;
}

/* ---- choosing -------------------------------------------------------------------------------------------------------------- */

// "0: a, 3: b": the devices whose names contain `part`, all if it is NULL; truncated if the text is full.
static const char *names(const lin_microphone_info *list, int n, const char *part, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        if (part && !strcasestr(list[i].name, part)) continue;
        const int more = snprintf(text + used, capacity - used, "%s%d: %s", used ? ", " : "", list[i].index, list[i].name);
        if (more < 0 || (size_t)more >= capacity - used) {
            snprintf(text + used, capacity - used, "%s", used ? ", ..." : "...");
            break;
        }
        used += (size_t)more;
    }
    return text;
}

static lin_status choose(const lin_microphone_info *list, int n, const char *wanted, const lin_microphone_info **chosen,
                         lin_error *err)
{
    char text[700];
    int matches = 0;
    if (n == 0) {
        explain_none(text, sizeof text);
        return lin_fail(err, LIN_IO, "%s", text);
    }
    if (!wanted) {
        *chosen = &list[0]; // of a host API without a default device
        for (int i = 0; i < n; i++)
            if (list[i].is_default) *chosen = &list[i];
        return LIN_OK;
    }
    if (!*wanted)
        return lin_fail(err, LIN_INVALID, "the name of a device is empty; devices: %s", names(list, n, NULL, text, sizeof text));
    const int is_index = strspn(wanted, "0123456789") == strlen(wanted);
    const long index = is_index ? strtol(wanted, NULL, 10) : -1;
    for (int i = 0; i < n; i++) {
        const int is_named = strcasecmp(list[i].name, wanted) == 0 || strcasecmp(list[i].source, wanted) == 0;
        if (is_index ? list[i].index == index : is_named) {
            *chosen = &list[i];
            return LIN_OK;
        }
        if (!strcasestr(list[i].name, wanted)) continue;
        *chosen = &list[i];
        matches++;
    }
    if (is_index)
        return lin_fail(err, LIN_INVALID, "no microphone has the number %.20s; devices: %s", wanted,
                        names(list, n, NULL, text, sizeof text));
    if (matches == 1) return LIN_OK;
    if (matches > 1)
        return lin_fail(err, LIN_INVALID, "several microphones have \"%.100s\" in their name; choose by number: %s", wanted,
                        names(list, n, wanted, text, sizeof text));
    return lin_fail(err, LIN_INVALID, "no microphone has \"%.100s\" in its name; devices: %s", wanted,
                    names(list, n, NULL, text, sizeof text));
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

lin_microphone_options lin_microphone_options_default(void) { return (lin_microphone_options){.ring_s = 10, .stall_ms = 4000}; }

// The message for a failed opening or start.
static lin_status refused(const lin_portaudio *pa, const lin_microphone *mic, PaError error, lin_error *err)
{
    const lin_microphone_info *device = &mic->format.device;
    char noise[256];
    lin_portaudio_noise(noise, sizeof noise);
    const PaHostErrorInfo *host = error == paUnanticipatedHostError ? pa->host_error() : NULL;
    const char *reason = host && host->errorText && *host->errorText ? host->errorText : *noise ? noise : pa->error_text(error);
    if (strstr(reason, "ermission denied") || strstr(noise, "ermission denied"))
        return lin_fail(err, LIN_IO,
                        "permission denied for the microphone \"%s\"; add yourself to the group audio (sudo usermod "
                        "-aG audio $USER, then log in again), or choose the device of a sound server",
                        device->name);
    if (error == paDeviceUnavailable || strstr(reason, "resource busy") || strstr(noise, "resource busy"))
        return lin_fail(err, LIN_IO,
                        "the microphone \"%s\" is busy: another program has it open, or it was just unplugged; close that "
                        "program, or choose a device that is shared (default, pulse)",
                        device->name);
    if (error == paInvalidSampleRate)
        return lin_fail(err, LIN_UNSUPPORTED, "the microphone \"%s\" cannot record at %d Hz; its own rate is %d", device->name,
                        mic->format.rate_hz, device->rate_hz);
    if (error == paInvalidChannelCount)
        return lin_fail(err, LIN_UNSUPPORTED, "the microphone \"%s\" cannot record %d channel%s; it has %d", device->name,
                        mic->format.opened, mic->format.opened == 1 ? "" : "s", device->channels);
    return lin_fail(err, LIN_IO, "cannot open the microphone \"%s\": %s%s%s", device->name, pa->error_text(error),
                    reason == pa->error_text(error) ? "" : ": ", reason == pa->error_text(error) ? "" : reason);
}

static PaError open_once(const lin_portaudio *pa, lin_microphone *mic)
{
    PaStreamParameters input = {.device = mic->format.device.through,
                                .channelCount = mic->format.opened,
                                .sampleFormat = paFloat32};
    input.suggestedLatency = LATENCY_MS * 1e-3;
    return pa->open_stream(&mic->stream, &input, NULL, mic->format.rate_hz, paFramesPerBufferUnspecified, paNoFlag, on_sound,
                           mic);
}

// Opens with the device's own rate and all its channels, at most two, unless the options differ. A driver's default rate may not
// work: then tries the usual rates, those nearest to it in quality first.
static lin_status open_stream(const lin_portaudio *pa, lin_microphone *mic, lin_error *err)
{
    static const int usual[] = {48000, 44100, 32000, 16000, 96000, 8000};
    const lin_microphone_options *o = &mic->options;
    lin_microphone_format *f = &mic->format;
    f->rate_hz = o->rate_hz ? o->rate_hz : f->device.rate_hz;
    f->opened = o->channels ? o->channels : f->device.channels < 2 ? f->device.channels : 2;
    if (f->opened > f->device.channels) return refused(pa, mic, paInvalidChannelCount, err);
    // A driver's default may be absurd; PortAudio is only given rates within the limits.
    if (!o->rate_hz && (f->rate_hz < LIN_AUDIO_MIN_HZ || f->rate_hz > LIN_AUDIO_MAX_HZ)) f->rate_hz = usual[0];
    LIN_TRY(lin_audio_check_format("the microphone", f->rate_hz, f->opened, err));
    PaError error = open_once(pa, mic);
    if (error == paInvalidChannelCount && !o->channels && f->opened > 1) {
        f->opened = 1;
        error = open_once(pa, mic);
    }
    for (size_t i = 0; error == paInvalidSampleRate && !o->rate_hz && i < sizeof usual / sizeof *usual; i++) {
        f->rate_hz = usual[i];
        error = open_once(pa, mic);
    }
    if (error != paNoError) {
        mic->stream = NULL;
        if (!o->rate_hz && error == paInvalidSampleRate) f->rate_hz = f->device.rate_hz;
        return refused(pa, mic, error, err);
    }
    f->channels = o->interleaved ? f->opened : 1;
    return LIN_OK;
}

static lin_status start(const lin_portaudio *pa, lin_microphone *mic, lin_error *err)
{
    LIN_TRY(open_stream(pa, mic, err));
    LIN_TRY(lin_ring_create((size_t)ceil(mic->options.ring_s * mic->format.rate_hz), mic->format.channels, &mic->ring, err));
    pa->on_finished(mic->stream, on_finished);
    mic->stall_seen_ns = lin_now_ns();
    mic->last_ns = mic->stall_seen_ns;
    const PaError error = pa->start_stream(mic->stream);
    return error == paNoError ? LIN_OK : refused(pa, mic, error, err);
}

static void restore(const char *name, const char *value)
{
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}

// ALSA's devices for sound servers take the source from the environment when they are opened: libpulse's $PULSE_SOURCE,
// PipeWire's $PIPEWIRE_NODE.
static lin_status start_source(const lin_portaudio *pa, lin_microphone *mic, lin_error *err)
{
    static const char *const names[] = {"PULSE_SOURCE", "PIPEWIRE_NODE"};
    char *before[2] = {NULL};
    int good = 1;
    for (int i = 0; i < 2; i++) {
        const char *value = getenv(names[i]);
        if (value) good &= (before[i] = lin_strdup(value)) != NULL;
        good = good && setenv(names[i], mic->format.device.source, 1) == 0;
    }
    const lin_status status =
        good ? start(pa, mic, err) : lin_no_memory(err, "the name of a source", sizeof mic->format.device.source);
    for (int i = 0; i < 2; i++) {
        restore(names[i], before[i]);
        lin_free(before[i]);
    }
    if (status == LIN_OK) mic->watch = lin_pulse_watch_start(mic->format.device.source, on_finished, mic);
    return status;
}

static void free_microphone(lin_microphone *mic)
{
    if (!mic) return;
    lin_event_destroy(&mic->event);
    lin_free(mic->ring);
    lin_audio_close(mic->audio);
    lin_free(mic->wanted);
    lin_free(mic);
}

static lin_status work_open(const lin_portaudio *pa, void *context, lin_error *err)
{
    lin_microphone *mic = context;
    const lin_microphone_info *chosen = NULL;
    lin_microphone_info *list = NULL;
    int n = 0;
    lin_status status = list_devices(pa, &list, &n, err);
    if (status == LIN_OK) status = choose(list, n, mic->wanted, &chosen, err);
    if (status == LIN_OK) {
        mic->pa = pa;
        mic->format.device = *chosen;
        status = *chosen->source ? start_source(pa, mic, err) : start(pa, mic, err);
    }
    if (status == LIN_OK) {
        pa->initialize(); // once more: until the stream is closed
    } else if (mic->stream) {
        pa->close_stream(mic->stream);
        mic->stream = NULL;
    }
    lin_free(list);
    return status;
}

static void close_stream(const lin_portaudio *pa, lin_microphone *mic)
{
    if (!mic->stream) return;
    lin_pulse_watch_stop(mic->watch);
    // Abort, not stop: do not wait for sound that has not arrived.
    pa->abort_stream(mic->stream);
    pa->close_stream(mic->stream);
    mic->stream = NULL;
    pa->terminate();
}

// The opening succeeded after its time limit; close it again.
static void undo_open(const lin_portaudio *pa, void *context, lin_status status)
{
    (void)status;
    if (pa) close_stream(pa, context);
    free_microphone(context);
}

static lin_status open_file(lin_microphone *mic, lin_error *err)
{
    LIN_TRY(lin_audio_open(mic->options.path, mic->options.raw, &mic->audio, err));
    const lin_audio_format *file = mic->format.file = lin_audio_info(mic->audio);
    mic->format.rate_hz = file->rate_hz;
    mic->format.channels = mic->format.opened = file->channels;
    mic->is_pipe = lin_audio_is_live(mic->audio);
    mic->begun = lin_now();
    return LIN_OK;
}

lin_status lin_microphone_open(const lin_microphone_options *options, lin_microphone **out, lin_error *err)
{
    int hangs = 0;
    *out = NULL;
    lin_microphone *mic = lin_calloc(1, sizeof *mic);
    if (!mic) return lin_no_memory(err, "a microphone", sizeof *mic);
    lin_event_init(&mic->event);
    mic->options = *options;
    lin_status status = LIN_OK;
    if (options->device) {
        mic->wanted = lin_strdup(options->device);
        if (!mic->wanted) status = lin_no_memory(err, "a microphone", strlen(options->device));
        mic->options.device = mic->wanted;
    }
    if (status == LIN_OK)
        status = options->path ? open_file(mic, err) : lin_portaudio_run(work_open, undo_open, mic, OPEN_MS, &hangs, err);
    if (hangs) return status;
    if (status != LIN_OK) {
        free_microphone(mic);
        return status;
    }
    *out = mic;
    return LIN_OK;
}

const lin_microphone_format *lin_microphone_format_of(const lin_microphone *mic) { return &mic->format; }

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static int64_t silent_ns(const lin_microphone *mic, int64_t now)
{
    const int64_t silent = now - mic->last_ns;
    return silent > 0 ? silent : 0;
}

// If PortAudio does not report the end of a stream, a query shows it. 0 and errors both mean that no more sound will arrive.
static int is_lost(const lin_microphone *mic, int64_t now)
{
    if (mic->finished) return 1;
    return silent_ns(mic, now) >= ASK_MS * (int64_t)1000000 && mic->pa->is_active(mic->stream) != 1;
}

static lin_status stalled(lin_microphone *mic, int64_t now, lin_error *err)
{
    mic->stall_seen_ns = now;
    return lin_fail(err, LIN_IO,
                    "no sound from the microphone \"%s\" for %.1f s; is it muted in hardware, suspended, or held by another "
                    "program?",
                    mic->format.device.name, 1e-9 * (double)silent_ns(mic, now));
}

// Nanoseconds until the device counts as stalled: since its last sound, or since the last report of a stall. INT64_MAX: never.
static int64_t until_stalled(const lin_microphone *mic, int64_t now)
{
    if (!mic->options.stall_ms) return INT64_MAX;
    const int64_t last = mic->last_ns;
    return (last > mic->stall_seen_ns ? last : mic->stall_seen_ns) + mic->options.stall_ms * (int64_t)1000000 - now;
}

// 0 if a signal arrived.
static int wait_event(lin_microphone *mic, int64_t now, int64_t ns)
{
    const int64_t most = ASK_MS * (int64_t)1000000, until = now + (ns < most ? ns : most);
    return lin_event_wait_until(&mic->event, until); // before the ring is read: later sound wakes again
}

// Until then, or until a signal. 0 if a signal came.
static int sleep_until(double when)
{
    const double left = when - lin_now();
    if (left <= 0) return 1;
    const struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    return nanosleep(&t, NULL) == 0;
}

// A block of a file becomes audible when its last sample would have been spoken.
static lin_status read_file(lin_microphone *mic, float *samples, int n, int timeout_ms, int *n_got, lin_error *err)
{
    const int rate_hz = mic->format.rate_hz;
    const double until = timeout_ms < 0 ? INFINITY : lin_now() + timeout_ms * 1e-3;
    if (!mic->options.unpaced && !mic->is_pipe) {
        const int block = rate_hz / 100 > 0 ? rate_hz / 100 : 1; // 10 ms, as a sound card would give
        if (n > block) n = block;
        const double due = mic->begun + (double)(mic->frames + n) / rate_hz;
        if (!sleep_until(due < until ? due : until) || due > until) return LIN_OK;
    }
    if (mic->is_pipe && lin_audio_wait_for(mic->audio) >= 0) {
        struct pollfd in = {.fd = lin_audio_wait_for(mic->audio), .events = POLLIN};
        const double left_ms = fmax(0, (until - lin_now()) * 1e3);
        if (poll(&in, 1, timeout_ms < 0 ? -1 : (int)ceil(left_ms)) <= 0) return LIN_OK;
    }
    LIN_TRY(lin_audio_read(mic->audio, samples, n, n_got, err));
    mic->ended = *n_got == 0;
    mic->frames += *n_got;
    // A pipe has no pace of its own: its sound was captured when it was read.
    if (mic->options.unpaced || mic->is_pipe) mic->begun = lin_now() - (double)mic->frames / rate_hz;
    return LIN_OK;
}

lin_status lin_microphone_read(lin_microphone *mic, float *samples, int n, int timeout_ms, int *n_got, lin_error *err)
{
    *n_got = 0;
    if (n <= 0 || mic->ended) return LIN_OK;
    if (mic->audio) return read_file(mic, samples, n, timeout_ms, n_got, err);
    int64_t now = lin_now_ns();
    const int64_t deadline = timeout_ms < 0 ? INT64_MAX : now + timeout_ms * (int64_t)1000000;
    for (;; now = lin_now_ns()) {
        // Checked before the ring is read: then the ring holds all sound from before the end.
        const int ended = is_lost(mic, now);
        *n_got = (int)lin_ring_read(mic->ring, samples, (size_t)n);
        if (*n_got > 0) return LIN_OK;
        if (ended)
            return lin_fail(err, LIN_IO, "the microphone \"%s\" is lost: it was unplugged, or the sound server stopped",
                            mic->format.device.name);
        const int64_t left = deadline - now, stall = until_stalled(mic, now);
        if (stall <= 0) return stalled(mic, now, err);
        if (left <= 0 || !wait_event(mic, now, left < stall ? left : stall)) return LIN_OK;
    }
}

int lin_microphone_ended(const lin_microphone *mic) { return mic->ended; }

double lin_microphone_age(const lin_microphone *mic)
{
    if (mic->audio) return fmax(0, lin_now() - (mic->begun + (double)mic->frames / mic->format.rate_hz));
    const uint64_t taken = lin_ring_taken(mic->ring);
    if (taken == 0) return 0;
    const int64_t begun = mic->origin_ns + frames_ns(mic, taken);
    return fmax(0, 1e-9 * (double)(lin_now_ns() - begun));
}

void lin_microphone_report_now(const lin_microphone *mic, lin_microphone_report *report)
{
    memset(report, 0, sizeof *report);
    if (mic->audio) {
        report->captured = report->read = mic->frames;
        return;
    }
    report->read = (int64_t)lin_ring_taken(mic->ring);
    report->waiting = (int64_t)lin_ring_readable(mic->ring);
    report->dropped = (int64_t)lin_ring_dropped(mic->ring);
    report->captured = mic->captured;
    report->overflows = mic->overflows;
}

/* ---- closing --------------------------------------------------------------------------------------------------------------- */

static lin_status work_close(const lin_portaudio *pa, void *context, lin_error *err)
{
    (void)err;
    close_stream(pa, context);
    return LIN_OK;
}

static void undo_close(const lin_portaudio *pa, void *context, lin_status status)
{
    (void)pa, (void)status;
    free_microphone(context);
}

void lin_microphone_close(lin_microphone *mic)
{
    int hangs;
    if (!mic) return;
    // If it cannot be closed, it may still call back, so its memory is kept.
    if (mic->audio || lin_portaudio_run(work_close, undo_close, mic, CLOSE_MS, &hangs, NULL) == LIN_OK) free_microphone(mic);
}

/* ---- recording ------------------------------------------------------------------------------------------------------------- */

static const int64_t MOST_BYTES = (INT64_C(1) << 32) - 4096; // a WAV file's sizes have 32 bits

struct lin_recording {
    SNDFILE *file;
    lin_file_writer *out;
    char *path;
    int rate_hz, channels;
    int64_t frames, header_frames; // header_frames: the number in the file header
    int failed;                    // a write failed
};

static void release(lin_recording *r)
{
    lin_file_abort(r->out);
    lin_free(r->path);
    lin_free(r);
}

lin_status lin_recording_create(const char *path, int rate_hz, int channels, lin_recording **recording, lin_error *err)
{
    *recording = NULL;
    LIN_TRY(lin_audio_check_format(path, rate_hz, channels, err));
    lin_recording *r = lin_calloc(1, sizeof *r);
    if (!r) return lin_no_memory(err, "a recording", sizeof *r);
    r->rate_hz = rate_hz;
    r->channels = channels;
    r->path = lin_strdup(path);
    // Sound cannot be recorded again: do not remove the file of a killed program.
    lin_status status =
        r->path ? lin_file_open(path, LIN_FILE_STREAM | LIN_FILE_KEEP_STALE, &r->out, err) : lin_no_memory(err, "a recording", 1);
    if (status != LIN_OK) {
        release(r);
        return status;
    }
    SF_INFO info = {.samplerate = rate_hz, .channels = channels, .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
    errno = 0;
    // libsndfile closes a descriptor with which it fails, whatever its argument says: it gets one of its own.
    r->file = sf_open_fd(fcntl(lin_file_descriptor(r->out), F_DUPFD_CLOEXEC, 0), SFM_WRITE, &info, SF_TRUE);
    if (!r->file) {
        status = lin_fail(err, LIN_IO, "cannot write %s: %s", path, errno ? strerror(errno) : sf_strerror(NULL));
        release(r);
        return status;
    }
    // The PEAK chunk would contain a date: equal sound must give equal files.
    sf_command(r->file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
    sf_command(r->file, SFC_UPDATE_HEADER_NOW, NULL, 0);
    *recording = r;
    return LIN_OK;
}

lin_status lin_recording_write(lin_recording *r, const float *samples, int n, lin_error *err)
{
    const int64_t width = (int64_t)r->channels * (int64_t)sizeof *samples;
    if ((r->frames + n) * width > MOST_BYTES) return lin_fail(err, LIN_IO, "%s is full: a WAV file holds at most 4 GiB", r->path);
    errno = 0;
    const sf_count_t written = sf_writef_float(r->file, samples, n);
    if (written > 0) r->frames += written;
    if (written != n) {
        r->failed = 1;
        return lin_fail(err, LIN_IO, "cannot write %s: %s", r->path, errno ? strerror(errno) : sf_strerror(r->file));
    }
    if (r->frames - r->header_frames >= r->rate_hz) {
        sf_command(r->file, SFC_UPDATE_HEADER_NOW, NULL, 0);
        r->header_frames = r->frames;
    }
    return LIN_OK;
}

lin_status lin_recording_close(lin_recording *r, lin_error *err)
{
    if (!r) return LIN_OK;
    errno = 0;
    const int failed = sf_close(r->file);
    char name[4096];
    lin_status status = LIN_OK;
    const int is_empty = r->frames == 0;
    if (is_empty) lin_file_abort(r->out);
    if (!failed && !r->failed) {
        if (!is_empty) status = lin_file_commit(r->out, err);
    } else if (is_empty || lin_file_keep(r->out, name, sizeof name, NULL) != LIN_OK) {
        status = lin_fail(err, LIN_IO, "cannot write %s: %s", r->path, errno ? strerror(errno) : "nothing was written");
    } else {
        status =
            lin_fail(err, LIN_IO, "%s is incomplete; the sound recorded so far is in %.700s", r->path, *name ? name : r->path);
    }
    r->out = NULL;
    release(r);
    return status;
}
