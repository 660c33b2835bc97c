/*
 * recognize.h - a sound file through the front end and the network: rows of log-probabilities, as they become certain.
 *
 * Pipeline: frontend/source -> model/stream (or the whole utterance, for a bidirectional model) -> [rows to a sink].
 *
 *   lin_recognizer r;
 *   lin_recognizer_open(&r, NULL, "auto", LIN_PRECISION_FP32, &warnings, &err);      // shared by all threads
 *   lin_ear *ear;  lin_ear_create(&r, 1, &ear, &err);                     // one per thread
 *   lin_sound sound = {.path = "x.flac", .channel = LIN_CHANNEL_MIX};
 *   lin_ear_hear(ear, &sound, &sink, &heard, &err);
 *   lin_ear_destroy(ear);  lin_recognizer_close(&r);
 *
 * Memory does not grow with the length of the sound where the model is causal.
 *
 * A stream can be put away at the end of a sound (leave_open) and at marks on the way, and taken up again (from) where it was, with
 * the same bits as if it had never stopped: linnet/state.h. LIN_UNSUPPORTED for a model that needs whole utterances.
 *
 * A network that has heard much adapts badly to what is new, so it can be reset at endpoints (resets): each lane by endpoints of
 * its own, which depend on the sound up to there alone. Files, pipes and streams that are put away are reset at the same places.
 */
#ifndef LIN_LINNET_RECOGNIZE_H
#define LIN_LINNET_RECOGNIZE_H

#include <signal.h>

#include "decoder/search.h"
#include "lexicon/phones.h"
#include "linnet/front.h"
#include "linnet/lane.h"
#include "linnet/state.h"
#include "linnet/warnings.h"
#include "model/encoder.h"

typedef struct lin_recognizer lin_recognizer;

struct lin_recognizer {
    lin_model *model;
    lin_encoder *encoder;
    lin_phones *phones;
    lin_fbank_config fbank;
    int streams;           /* 1: causal, in constant memory; 0: whole utterances (also where normalised by speaker) */
    double row_seconds;    /* from one row to the next */
    int V;
    lin_warnings warnings;
    /* Looked at now and then by whatever hears: not 0, and it ends with LIN_STOPPED. NULL after opening; may be set. */
    const volatile sig_atomic_t *stop;
};

/* path: NULL for the default model (find.h). warnings: NULL: none. device, precision: of lin_backend_open. On failure everything is closed. */
lin_status lin_recognizer_open(lin_recognizer *recognizer, const char *path, const char *device, lin_precision precision,
                               const lin_warnings *warnings, lin_error *err);
/* The same with a model file in memory, which may be freed afterwards. */
lin_status lin_recognizer_open_memory(lin_recognizer *recognizer, const void *bytes, size_t n, const char *device,
                                      lin_precision precision, const lin_warnings *warnings, lin_error *err);
void lin_recognizer_close(lin_recognizer *recognizer);

/* One file to hear. */
typedef struct lin_sound {
    const char *path;          /* NULL, where a stream is taken up: nothing more comes, only its end */
    const lin_pcm_format *raw; /* headerless samples, as for lin_audio_open */
    const float *samples;      /* path NULL: a sound in memory, [n_samples, channels] */
    int64_t n_samples;
    int rate_hz, channels;     /* of it */
    int channel;               /* as in lin_feature_options */
    lin_part part;             /* of the sound, with a new stream; rows count from its start. end_s = 0: all of it */
    const float *mean, *istd; /* [D], of the speaker, for a model that is normalised by speaker; NULL: of this sound's own frames */
    const lin_state *from;     /* take up this stream; NULL: a new one */
    const char *from_name;     /* of it, for messages */
    int within;                /* 1: it was put away in the middle of this very sound; 0: this sound is what comes next */
    int leave_open;            /* the stream goes on after this sound: what is not certain is not written, mark is called instead */
    double mark_s;             /* mark is called every so many seconds of sound; 0: not */
} lin_sound;

/* Receives rows [n, V] of a lane, in order. Not LIN_OK: the hearing ends with it. begin (may be NULL): how many lanes there will
 * be. */
typedef struct lin_sink {
    void *context;
    lin_status (*begin)(void *context, int lanes, lin_error *err);
    lin_status (*rows)(void *context, int lane, const float *logp, int n, lin_error *err);
    /* Frames [n, D] of a lane, as the front end makes them, not normalised, before the rows that they give. May be NULL. */
    lin_status (*frames)(void *context, int lane, const float *fbank, int n, lin_error *err);
    /* Where the rows of a lane, 0 .. lanes-1, are decoded; its decoder and endpoint are saved with the stream. NULL: rows is called
     * instead. Called after begin. */
    lin_utterances *(*utterances)(void *context, int lane);
    /* The stream as it stands, valid until the ear's next mark or hearing. end: this is the end of a sound that is left open. */
    lin_status (*mark)(void *context, lin_state *state, int end, lin_error *err);
    /* Not 0: nothing more is wanted of this sound. May be NULL. */
    int (*enough)(void *context);
    /* Now and then, with the seconds heard so far and in all (-1 if unknown). May be NULL. */
    void (*progress)(void *context, double seconds, double duration);
} lin_sink;

typedef struct lin_heard {
    double seconds;    /* of sound since the stream began; of a part: its end, by the file's clock */
    int lanes, channels; /* channels: of the sound */
    char warning[256]; /* what was wrong with the sound but did not prevent hearing it */
    int incomplete;    /* some of the sound is missing: the warning says what */
} lin_heard;

typedef struct lin_ear lin_ear;

/* n_threads work together inside; 0: one per core. */
lin_status lin_ear_create(const lin_recognizer *recognizer, int n_threads, lin_ear **ear, lin_error *err);
void lin_ear_destroy(lin_ear *ear);

/* Tells as a warning how a pipe is taken that is no sound file. LIN_STOPPED after an interrupt: of a file nothing more comes;
 * of live sound what was heard until then is finished and LIN_OK. */
lin_status lin_ear_hear(lin_ear *ear, const lin_sound *sound, const lin_sink *sink, lin_heard *heard, lin_error *err);

#endif
