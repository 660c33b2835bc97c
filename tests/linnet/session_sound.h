/*
 * session_sound.h - what tests of live results listen to: three sentences of a sort, as features of the default model.
 */
#ifndef LIN_TESTS_LINNET_SESSION_SOUND_H
#define LIN_TESTS_LINNET_SESSION_SOUND_H

#include "base/memory.h"
#include "frontend/source.h"
#include "linnet/session.h"
#include "tests/support.h"

enum { RATE = 16000, PARTS = 3, PART_SAMPLES = 44800, SAMPLES = PARTS * PART_SAMPLES };

static lin_recognizer recognizer;
static float *features; // [n_features, D]
static float *whole_sound; // [SAMPLES] that they are of
static int n_features, D;

#define require_ok(call)                                                                                                         \
    do {                                                                                                                         \
        const lin_status done = (call);                                                                                          \
        ck_assert_msg(done == LIN_OK, "%s: %s", lin_status_name(done), err.message);                                             \
    } while (0)

// 1.6 s of vowels and hisses, then 1.2 s of faint noise, three times.
static void make_sound(float *x)
{
    for (int t = 0; t < SAMPLES; t++) {
        const int within = t % PART_SAMPLES, vowel = within / 2000 * 7 + 4 + 1 * (t / PART_SAMPLES);
        const double at = (double)within / RATE, pitch = 110 + 10 * (vowel % 5);
        const double f1 = 300 + 90 * (vowel % 6), f2 = 900 + 230 * (vowel % 7);
        double buzz = 0;
        for (int h = 1; h * pitch < 3500 && within < 25600; h++) {
            const double hz = h * pitch, a = exp(-pow((hz - f1) / 120, 2)) + 0.6 * exp(-pow((hz - f2) / 160, 2)) + 0.01;
            buzz += a * sin(6.283185307179586 * hz * at);
        }
        const double noise = lin_random_uniform(5, (uint64_t)t) - 0.5,
                     before = t ? lin_random_uniform(5, (uint64_t)t - 1) - 0.5 : 0;
        x[t] = (float)(0.12 * buzz * (vowel % 4 != 0) + 0.06 * (noise - before) * (within < 25600 && vowel % 4 == 0) +
                       0.004 * noise);
    }
}

static void setup(void)
{
    lin_error err = {0};
    lin_extractor *extractor;
    lin_feature_options o = lin_feature_options_default();
    require_ok(lin_recognizer_open(&recognizer, "share/linnet/en/default.safetensors", "cpu", LIN_PRECISION_FP32, NULL, &err));
    recognizer.delay_s = 0; // times are compared with those of rows
    float *sound = lin_alloc(SAMPLES, sizeof *sound);
    make_sound(sound);
    o.fbank = recognizer.fbank;
    D = o.fbank.mel_bins;
    require_ok(lin_extractor_create(RATE, 1, &o, &extractor, &err));
    const int capacity = lin_extractor_most_out(extractor, SAMPLES);
    features = lin_alloc((size_t)(capacity * D), sizeof *features);
    require_ok(lin_extractor_push(extractor, sound, SAMPLES, features, capacity, &n_features, &err));
    lin_extractor_destroy(extractor);
    whole_sound = sound;
}

static void teardown(void)
{
    lin_free(whole_sound);
    lin_free(features);
    lin_recognizer_close(&recognizer);
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

#endif
