/*
 * session.h - one stream: sound in, results out. Phones and words settle one by one, utterance after utterance.
 *
 * Pipeline: sound -> [this: frontend/source, model/stream, decoder/endpoint, decoder/search] -> views of the utterance. What is
 * settled never changes; what is provisional may. How soon something settles depends on the search: a phone of greedy decoding
 * when its run of rows has ended, a phone of a beam or a word when all hypotheses have it. An endpoint ends the utterance and the
 * search with it; the network is then reset (resets = 1) or keeps its state.
 *
 *   lin_session_options o = lin_session_options_default();
 *   o.rate_hz = 44100, o.channels = 2, o.decoding = &decoding;
 *   lin_session_create(&recognizer, &o, &(lin_utterances_sink){.context = self, .show = show}, &session, &err);
 *   while (sound comes) lin_session_push(session, samples, n, &err);       // show() is called when something has changed
 *   lin_session_finish(session, &err);                                     // the last utterance
 *   lin_session_destroy(session);
 *
 * A reset clears the network's past but loses no sound: frames that the network had as look-ahead are given to it again, as the
 * beginning of the next utterance. Any split of the same sound into calls gives the same utterances, on a CPU the same bits.
 * Without resets all utterances together are the result of the whole sound, if decoding is greedy; other searches begin anew with
 * each utterance. Memory grows with the longest utterance only; nothing else is allocated after creation.
 *
 * A session can be saved and loaded (linnet/state.h), also by linnet transcribe --save-state and --load-state, and forked.
 * Threads: one at a time per session. The recogniser and the decoding must outlive it and may be shared by many sessions.
 * These calls are stable: the public API (linnet/linnet.h) is built on them.
 */
#ifndef LIN_LINNET_SESSION_H
#define LIN_LINNET_SESSION_H

#include "linnet/recognizer.h"
#include "linnet/state.h"
#include "linnet/utterances.h"

/* The view of an utterance: linnet/utterances.h (lin_session_view). */

typedef struct lin_session_options {
    int rate_hz, channels;      /* of the sound that is pushed, as in frontend/audio.h */
    int channel;                /* LIN_CHANNEL_MIX, or 0, 1, ... */
    int endpoints;              /* 0: the rules are not looked at */
    int resets;                 /* 1: the network is reset at endpoints */
    lin_endpoint_options rules; /* all three 0: one utterance without end */
    /* How rows become phones or words; must outlive the session. NULL: greedy. Its context may be replaced between calls, but not
     * with alternatives (n_best over 1), which are given when an utterance has ended. */
    const lin_decoding *decoding;
    int threads;                /* of the network; 0: one per core */
    const lin_recognizer *second; /* of a second pass over each utterance that has ended (linnet/utterances.h), whose result is
                                     the final one; must outlive the session. NULL: none */
    int saves;                  /* 1: it can be saved and forked: remembers sound that is resampled, creation may take a second */
    /* Of streams of linnet/engine, whose network is elsewhere and is given so many frames at once; 0: it is the session's own.
     * takes_sound: that network makes the frames. beside: of lin_feature_options. */
    int apart, takes_sound;
    const lin_fbank *beside;
    lin_second_pass *pass; /* the engine's second pass; NULL: one of the session's own, where there is `second` */
} lin_session_options;

/* No rate and channels yet; mixed down, resets, the default rules, greedy, one thread. */
lin_session_options lin_session_options_default(void);

typedef struct lin_session lin_session;

/*
 * The sink (NULL: none) is shown what has changed after every push that changed something, and every utterance that ends. If it
 * does not return LIN_OK the push ends with its status. Utterances without any phone are not shown; one whose provisional phones
 * have all gone is shown, and ends empty. LIN_UNSUPPORTED for a model that needs whole utterances and for other rates or numbers
 * of channels; LIN_INVALID for a channel that the sound lacks and for rules that lin_endpoint_check refuses. On failure *session
 * is NULL.
 */
lin_status lin_session_create(const lin_recognizer *recognizer, const lin_session_options *options,
                              const lin_utterances_sink *sink, lin_session **session, lin_error *err);
/* NULL is allowed. */
void lin_session_destroy(lin_session *session);

/* samples [n, channels] in -1..1, n from 0 on. LIN_NUMERIC, and nothing is taken, if one is no sound (frontend/audio.h);
 * LIN_INVALID after lin_session_finish. */
lin_status lin_session_push(lin_session *session, const float *samples, int n, lin_error *err);

/* The utterance ends here, whatever the rules say. */
lin_status lin_session_end_utterance(lin_session *session, lin_error *err);

/* The sound has ended: what waited for look-ahead is decoded without it, and the utterance ends. Only reset and destroy may
 * follow. */
lin_status lin_session_finish(lin_session *session, lin_error *err);

/* As newly created: the next sound is another stream, utterances count from 1. LIN_NO_MEMORY; then only destroy may follow. */
lin_status lin_session_reset(lin_session *session, lin_error *err);

/*
 * Saving writes the stream to a state, whose memory is used again; lin_state_write puts it into a file. Loading replaces the
 * stream of a session with the same model, sound, rules and decoding: it goes on with the same bits as if it had never stopped.
 * The state holds what decoding goes on with, not what was shown: after loading, the view of the utterance in progress begins
 * with what settles from then on, and utterances count from 1. Saving: LIN_INVALID without options.saves, and after finish.
 * LIN_UNSUPPORTED with alternatives. Loading: LIN_MISMATCH if the state is of something else, LIN_FORMAT if
 * damaged; the session is then as after reset.
 */
lin_status lin_session_save(lin_session *session, lin_state *state, lin_error *err);
lin_status lin_session_load(lin_session *session, const lin_state *state, lin_error *err);

/* A second session that goes on from the same point, with its own sink; it has all that was shown. Needs options.saves. */
lin_status lin_session_fork(lin_session *session, const lin_utterances_sink *sink, lin_session **copy, lin_error *err);

/* Another copy of its decoding from now on, with the same search; it must outlive the session. A fork has that of its
 * original. */
void lin_session_decode_by(lin_session *session, const lin_decoding *decoding);

/* Seconds of sound taken in since the beginning; a push that is refused does not change it. The decoded part is in the views. */
double lin_session_seconds(const lin_session *session);

/* The delay of a phone of greedy decoding by the model's construction, in seconds from the end of the phone until it is settled:
 * the frames of one row, look-ahead, and the part of a window beyond its hop. */
typedef struct lin_session_delay {
    double step_s, ahead_s, window_s, total_s;
} lin_session_delay;

lin_session_delay lin_session_construction(const lin_recognizer *recognizer);

#endif
