/*
 * serve_voice.h - the streams of sound of linnet serve, in one engine for all.
 *
 * Pipeline: serve/serve_stream.c -> [this: linnet/engine] -> views, to the same client.
 * What may take a tenth of a second or more is done on threads of their own: phrases are looked up, and a stream that is saved or
 * goes on from a state is opened. Until that is done a voice is not ready, and takes no sound.
 *
 *   lin_voices_create(&options, &voices, &err);
 *   lin_voice_open(voices, &about, outbox, &voice, &err);        // LIN_TOO_SMALL: all places are taken
 *   if (lin_voice_ready(voice)) lin_voice_room(voice, &n, &waiting_s);       // then push at most n samples
 *   lin_voice_push(voice, samples, n, &err);
 *   lin_voice_finish(voice, &err);                               // lin_outbox_ended comes last
 *   lin_voice_close(voice);                                      // nothing comes to the outbox afterwards
 *   lin_voices_destroy(voices);
 *
 * Threads: views, states and ends go to the voice's outbox (serve/serve.h) on other threads, one at a time for each
 * voice; a voice belongs to one thread otherwise.
 */
#ifndef LIN_SERVE_SERVE_VOICE_H
#define LIN_SERVE_SERVE_VOICE_H

#include "linnet/engine.h"
#include "linnet/stream.h"

typedef struct lin_voices lin_voices;
typedef struct lin_voice lin_voice;

struct lin_outbox; /* serve/serve.h */

typedef struct lin_voices_options {
    const lin_recognizer *recognizer, *second; /* second: of lin_engine_options */
    const lin_decoding *decoding;
    lin_endpoint_options rules;
    int resets;   /* 1: endpoints reset the network */
    int capacity; /* streams at most */
    int threads;  /* of the engine, and as many for what takes long; 0: one per core */
} lin_voices_options;

typedef struct lin_voice_about {
    int rate_hz, channels;
    char *const *phrases; /* [n_phrases], copied; n_phrases 0: those of the decoding */
    int n_phrases;
    int advice;      /* 1: first phrases that cannot be used are left out; 0: they end the stream */
    double bonus;    /* of each phrase, later ones too */
    double state_s;  /* the outbox gets the state every so many seconds of sound; 0: never */
    const void *state; /* [n_state], copied: go on with this stream; NULL: a new one */
    size_t n_state;
} lin_voice_about;

/* Errors of lin_engine_create. */
lin_status lin_voices_create(const lin_voices_options *options, lin_voices **voices, lin_error *err);
void lin_voices_destroy(lin_voices *voices); /* all voices are closed before; NULL is allowed */

/* For its statistics. */
lin_engine *lin_voices_engine(const lin_voices *voices);

lin_status lin_voice_open(lin_voices *voices, const lin_voice_about *about, struct lin_outbox *outbox, lin_voice **voice,
                          lin_error *err);
void lin_voice_close(lin_voice *voice); /* NULL is allowed */

/* 0: not yet, or never if it cannot be opened, which lin_outbox_ended tells. */
int lin_voice_ready(lin_voice *voice);

/* Of a voice that is ready: as lin_engine_room, lin_engine_push, lin_engine_end_utterance, lin_engine_reset. */
void lin_voice_room(lin_voice *voice, int *samples, double *waiting_s);
lin_status lin_voice_push(lin_voice *voice, const float *samples, int n, lin_error *err);
lin_status lin_voice_end_utterance(lin_voice *voice, lin_error *err);
lin_status lin_voice_reset(lin_voice *voice, lin_error *err);

/* Of any: as lin_engine_finish, and other phrases, soon: those of sound that waits change too. n = 0: those of the decoding. */
lin_status lin_voice_finish(lin_voice *voice, lin_error *err);
lin_status lin_voice_set_phrases(lin_voice *voice, char *const *phrases, int n, lin_error *err);

/* Of phrases that cannot be used together, moves those of words in plain letters, which the letter-to-sound rules of English can
 * always read, to the front; their number. To try each phrase by itself would open the lexicon for each. */
int lin_phrases_leave_out(linnet_phrase *list, int n);

#endif
