/*
 * serve_voice.h - the streams of sound of linnet serve: most in one engine for all, some in sessions of their own.
 *
 * Pipeline: serve/serve_stream.c -> [this: linnet/engine, or linnet/session] -> views, to the same client.
 * An engine serves many streams cheaply, but it cannot save them, nor end their utterances on request. A stream that wants one of
 * these is a session, which stays on one of a few threads. The same threads make the phrases of streams, which takes a tenth of a
 * second.
 *
 *   lin_voices_create(&options, &voices, &err);
 *   lin_voice_open(voices, &about, user, &voice, &err);          // LIN_TOO_SMALL: all places are taken
 *   lin_voice_room(voice, &n, &waiting_s);                       // then push at most n samples
 *   lin_voice_push(voice, samples, n, &err);
 *   lin_voice_finish(voice, &err);                               // `ended` comes last
 *   lin_voice_close(voice);                                      // no call of the sink comes afterwards
 *   lin_voices_destroy(voices);
 *
 * Threads: the sink is called on other threads, one call at a time for each voice, and must not call these functions; a voice
 * belongs to one thread otherwise.
 */
#ifndef LIN_SERVE_SERVE_VOICE_H
#define LIN_SERVE_SERVE_VOICE_H

#include "linnet/engine.h"
#include "linnet/session.h"

typedef struct lin_voices lin_voices;
typedef struct lin_voice lin_voice;

typedef struct lin_voice_sink {
    void (*show)(void *user, const lin_session_view *view);
    /* The stream as bytes (linnet/state.h) at `seconds` of its sound. */
    void (*saved)(void *user, const void *bytes, size_t n, double seconds);
    /* The phrases of lin_voice_set_phrases count from now on, n of them; or err says why not, and those before remain. */
    void (*phrases)(void *user, int n, const lin_error *err);
    /* All sound before lin_voice_finish is decoded; or it failed, and err says why. The last call. */
    void (*ended)(void *user, double seconds, const lin_error *err);
} lin_voice_sink;

typedef struct lin_voices_options {
    const lin_recognizer *recognizer;
    const lin_decoding *decoding;
    lin_endpoint_options rules;
    int resets;   /* 1: endpoints reset the network */
    int capacity; /* streams at most, in both places together */
    int threads;  /* of each; 0: one per core */
    lin_voice_sink sink;
} lin_voices_options;

typedef struct lin_voice_about {
    int rate_hz, channels;
    char *const *phrases; /* [n_phrases], copied; n_phrases 0: those of the decoding */
    int n_phrases;
    double bonus;    /* of each phrase, later ones too */
    int own;         /* 1: a session in any case, whose utterances can be ended on request */
    double state_s;  /* the sink gets the state every so many seconds of sound; 0: never */
    const void *state; /* [n_state], copied: go on with this stream; NULL: a new one */
    size_t n_state;
} lin_voice_about;

/* Errors of lin_engine_create. */
lin_status lin_voices_create(const lin_voices_options *options, lin_voices **voices, lin_error *err);
void lin_voices_destroy(lin_voices *voices); /* all voices are closed before; NULL is allowed */

/* Of the engine, since the last reset; lags, and rows that they were counted of, are those of sessions too: of each quantile the
 * larger one. */
void lin_voices_stats(lin_voices *voices, lin_engine_stats *stats);
void lin_voices_stats_reset(lin_voices *voices);

lin_status lin_voice_open(lin_voices *voices, const lin_voice_about *about, void *user, lin_voice **voice, lin_error *err);
void lin_voice_close(lin_voice *voice); /* NULL is allowed */

/* Samples of every channel that can be pushed now, and seconds of sound that wait to be decoded. */
void lin_voice_room(lin_voice *voice, int *samples, double *waiting_s);
/* samples [n, channels], copied. */
lin_status lin_voice_push(lin_voice *voice, const float *samples, int n, lin_error *err);
lin_status lin_voice_finish(lin_voice *voice, lin_error *err);
/* The utterance ends here. LIN_UNSUPPORTED for voices of the engine: see lin_voice_about.own. */
lin_status lin_voice_end_utterance(lin_voice *voice, lin_error *err);
/* Other phrases, soon: those of sound that waits change too. n = 0: those of the decoding. */
lin_status lin_voice_set_phrases(lin_voice *voice, char *const *phrases, int n, lin_error *err);
/* After `ended`: as newly opened, with its phrases. */
lin_status lin_voice_reset(lin_voice *voice, lin_error *err);

#endif
