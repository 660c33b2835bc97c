/*
 * stream_sound.h - what tests of live results listen to: three sentences of a sort, as features of the default model.
 */
#ifndef LIN_TESTS_LINNET_STREAM_SOUND_H
#define LIN_TESTS_LINNET_STREAM_SOUND_H

#include <stdatomic.h>
#include <time.h>

#include "base/memory.h"
#include "frontend/source.h"
#include "linnet/engine.h"
#include "linnet/stream.h"
#include "tests/support.h"

enum { RATE = 16000, PARTS = 3, PART_SAMPLES = 44800, SAMPLES = PARTS * PART_SAMPLES };

static lin_recognizer recognizer;
static float *features; // [n_features, D]
static float *whole_sound; // [SAMPLES] that they are of
static int n_features, D;

// The first three formants of a voice that glides from vowel to vowel, eight in a second, at a time within its 1.6 s.
static double voice_at(int within, int part, double f0, double phase)
{
    static const int vowels[][3] = {{730, 1090, 2440}, {270, 2290, 3010}, {300, 870, 2240}, {530, 1840, 2480},
                                    {570, 840, 2410}, {660, 1720, 2410}, {440, 1020, 2240}, {490, 1350, 1690}},
                     wide[] = {80, 110, 160};
    const int k = within / 2000, *from = vowels[(5 * k + 3 * part) % 8], *to = vowels[(5 * k + 5 + 3 * part) % 8];
    const double way = within % 2000 / 2000.0, glide = fmax(0, (way - 0.6) / 0.4);
    double sum = 0;
    for (int h = 1; h * f0 < 4000; h++) {
        double loud = 0.01;
        for (int i = 0; i < 3; i++)
            loud += 1.0 / (1 << i) / (1 + pow((h * f0 - (from[i] + glide * (to[i] - from[i]))) / wide[i], 2));
        sum += loud * pow(h, -0.3) * sin(6.283185307179586 * h * phase);
    }
    return sum * pow(sin(3.141592653589793 * way), 0.3);
}

// 1.6 s of vowels and hisses, then 1.2 s of faint noise, three times. Each installed model hears phones in all three, so that the
// tests do not depend on one of them.
static void make_sound(float *x)
{
    double phase = 0; // of the pitch, which falls and trembles
    for (int t = 0; t < SAMPLES; t++) {
        const int within = t % PART_SAMPLES, speaks = within < 25600,
                  hisses = speaks && within / 2000 % 3 == 2 && within % 2000 < 1200;
        const double f0 = 130 - within / 1024.0 + 6 * sin(6.283185307179586 * 4 * within / RATE);
        const double noise = lin_random_uniform(5, (uint64_t)t) - 0.5,
                     before = t ? lin_random_uniform(5, (uint64_t)t - 1) - 0.5 : 0;
        phase = within ? phase + f0 / RATE : 0;
        const double voice = speaks && !hisses ? voice_at(within, t / PART_SAMPLES, f0, phase) : 0;
        x[t] = (float)(0.1 * voice + 0.08 * (noise - before) * hisses + 0.002 * noise);
    }
}

static void setup(void)
{
    lin_extractor *extractor;
    lin_feature_options o = lin_feature_options_default();
    OK(lin_recognizer_open(&recognizer, "tests/golden/en/default.safetensors", "cpu", LIN_PRECISION_FP32, NULL, &err));
    recognizer.delay_s = 0; // times are compared with those of rows
    whole_sound = lin_alloc(SAMPLES, sizeof *whole_sound);
    make_sound(whole_sound);
    o.fbank = recognizer.fbank;
    D = o.fbank.mel_bins;
    OK(lin_extractor_create(RATE, 1, &o, &extractor, &err));
    const int capacity = lin_extractor_most_out(extractor, SAMPLES);
    features = lin_alloc((size_t)(capacity * D), sizeof *features);
    OK(lin_extractor_push(extractor, whole_sound, SAMPLES, features, capacity, &n_features, &err));
    lin_extractor_destroy(extractor);
}

static void teardown(void)
{
    lin_free(whole_sound);
    lin_free(features);
    lin_recognizer_close(&recognizer);
}

// Sessions in memory of their own.
static inline lin_status session_create(const lin_session_options *options, const lin_utterances_sink *sink,
                                        lin_session **session, lin_error *err)
{
    lin_session *s = lin_calloc(1, sizeof *s);
    *session = NULL;
    if (!s) return lin_no_memory(err, "a session", sizeof *s);
    const lin_status status = lin_session_open(s, &recognizer, options, sink, err);
    if (status == LIN_OK) *session = s;
    else lin_free(s);
    return status;
}

static inline lin_status session_fork(lin_session *session, const lin_utterances_sink *sink, lin_session **copy, lin_error *err)
{
    lin_session *s = lin_calloc(1, sizeof *s);
    *copy = NULL;
    if (!s) return lin_no_memory(err, "a session", sizeof *s);
    const lin_status status = lin_session_fork(session, sink, s, err);
    if (status == LIN_OK) *copy = s;
    else lin_free(s);
    return status;
}

static inline void session_destroy(lin_session *session)
{
    if (session) lin_session_close(session);
    lin_free(session);
}

// Of a session of this sound.
static inline lin_session_options options_of_sound(void)
{
    lin_session_options o = lin_session_options_default();
    o.rate_hz = RATE;
    o.channels = o.saves = 1;
    return o;
}

// The sound that completes n frames, where that of the `from` frames before has been pushed.
static inline lin_status push_frames(lin_session *session, int from, int n, lin_error *err)
{
    const int begin = from ? from * 160 + 240 : 0, end = from + n ? (from + n) * 160 + 240 : 0;
    return lin_session_push(session, whole_sound + begin, end - begin, err);
}

// Frames from .. to-1 in pieces of random length up to `most`.
static inline void feed_frames(lin_session *session, int from, int to, int most, uint64_t seed)
{
    for (int at = from, n, i = 0; at < to; at += n, i++) {
        n = most == 1 ? 1 : (int)lin_random_below(seed, (uint64_t)i, (uint32_t)most + 1);
        if (n > to - at) n = to - at;
        OK(push_frames(session, at, n, &err));
    }
}

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

// Streams of an engine that are sessions with these options.
static inline lin_engine_options engine_options(const lin_session_options *o, int capacity,
                                                void (*deliver)(void *context, const lin_engine_event *event))
{
    lin_engine_options e = lin_engine_default(capacity);
    e.queue_s = 10;
    e.ends = o->ends;
    e.views = 1;
    e.decoding = o->decoding;
    e.second = o->second;
    e.deliver = deliver;
    return e;
}

static inline void push_part(lin_engine *engine, lin_engine_id id, const float *of, int from, int to)
{
    for (int at = from; at < to; at += 1000)
        OK(lin_engine_push(engine, id, of + at, to - at < 1000 ? to - at : 1000, &err));
}

// Waits for what the engine's threads do: Check's time limit ends it if that never comes.
static inline void wait_for(const atomic_int *count, int at_least)
{
    while (*count < at_least) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

#endif
