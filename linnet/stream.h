/*
 * stream.h - one stream: sound in, results out. Phones and words settle one by one, utterance after utterance.
 *
 * Pipeline: sound -> [this: frontend/source, model/streams, linnet/utterances] -> views of the utterance.
 * A lin_session is the one owner of a stream: its front end (the resampler's past, the samples of an incomplete window), the
 * units (frames, or samples for a network that takes sound) of rows that are not out yet, the state of the network in a slot of
 * model/streams, and the utterances with the search's state and the endpoint. Nothing else keeps a position or a copy of frames.
 * What is settled never changes; what is provisional may. How soon something settles depends on the search: a phone of greedy
 * decoding when its run of rows has ended, a phone of a beam or a word when all hypotheses have it. An endpoint ends the
 * utterance and the search with it; the network is then reset (ends.resets = 1) or keeps its state.
 *
 *   lin_session_options o = lin_session_options_default();
 *   o.rate_hz = 44100, o.channels = 2, o.decoding = &decoding;
 *   lin_session_open(&session, &recognizer, &o, &(lin_utterances_sink){.context = self, .show = show}, &err);
 *   while (sound comes) lin_session_push(&session, samples, n, &err);      // show() is called when something has changed
 *   lin_session_finish(&session, &err);                                    // the last utterance
 *   lin_session_close(&session);
 *
 * The network is a batch of one of the session's own. Those of an engine's sessions are the slots of one, which the engine moves
 * on together:
 *
 *   lin_session_hear(session, samples, n, &taken, &err);                   // sound becomes units
 *   units = lin_session_next(session, &n);                                 // what the network is given next
 *   lin_session_take(session, logp, rows, &taken, &err);                   // the rows that came of it
 *
 * A reset clears the network's past but loses no sound: frames that the network had as look-ahead are given to it again, as the
 * beginning of the next utterance, and so are those of rows that were computed in vain. Any split of the same sound into calls
 * gives the same utterances, on a CPU the same bits. Without resets all utterances together are the result of the whole sound,
 * if decoding is greedy; other searches begin anew with each utterance. Memory grows with the longest utterance only; nothing
 * else is allocated after creation.
 *
 * A session can be saved and loaded, also by linnet transcribe --save-state and --load-state, and forked.
 * Threads: one at a time per session. The recogniser and the decoding must outlive it and may be shared by many sessions.
 */
#ifndef LIN_LINNET_STREAM_H
#define LIN_LINNET_STREAM_H

#include "linnet/recognizer.h"
#include "linnet/utterances.h"
#include "model/streams.h"

/* The view of an utterance: linnet/utterances.h (lin_session_view). */

/* ---- saved streams --------------------------------------------------------------------------------------------------------- */

/*
 * Bytes from which recognition resumes as if it had never stopped, here or on another machine; every part is a flat block.
 *
 *   offset  0   header: magic "LINSTATE", version, size, checksum of all bytes, lin_state_about, lin_state_sizes
 *           .   the front end: frames that wait, samples of the incomplete window, and what the resampler needs
 *           .   for each lane: lin_state_lane, the decoder's state, the image of the network's stream (model/streams.h),
 *               for a second pass and to tell speakers apart the frames of the utterance, and the speakers (linnet/diarizer.h)
 *
 * Little-endian; every part begins at a multiple of 8.
 *
 *   lin_state state = {0};
 *   lin_state_begin(&state, &about, &sizes, &err);                     // room, to be filled in
 *   ... lin_state_front(&state), lin_state_lane_of(&state, lane), lin_state_decoder(&state, lane) ...
 *   lin_state_write(&state, "s.bin", &err);                            // the old file stays until the new one is complete
 *   lin_state_read("s.bin", &state, &err);
 *   lin_state_free(&state);
 */
enum { LIN_STATE_VERSION = 8 };

/* The model, sound and search of a state. Written as it is: no gaps. */
typedef struct lin_state_about {
    uint64_t model;             /* its fingerprint */
    int32_t rate_hz, channels;  /* of the sound */
    int32_t channel, lanes;     /* as in frontend/source.h */
    int64_t samples;            /* of every channel, taken in since the stream began */
    int64_t frames, rows;       /* features given to the network, rows decoded */
    double row_seconds;         /* time between two rows */
    uint64_t search;            /* the id of the decoder's search, ... */
    int32_t kind;               /* ... and its lin_search_kind */
    int32_t resets;             /* 1: the network is reset at endpoints ... */
    double resets_from_s;       /* ... from this time on, by the rules of the lanes' endpoints */
} lin_state_about;

/* Bytes of the parts; of a lane: for each. Written as it is. */
typedef struct lin_state_sizes {
    uint64_t front, decoder, image;
    uint64_t frames, speakers; /* 0: without */
} lin_state_sizes;

/* A lane's endpoint, and where its utterance began. Written as it is. */
typedef struct lin_state_lane {
    lin_endpoint endpoint;
    int32_t early;     /* lin_row_decoder.early */
    int32_t found;     /* lin_utterances_found */
    int64_t first_row; /* of `frames`; -1: they are not known */
} lin_state_lane;

typedef struct lin_state {
    lin_state_about about;
    lin_state_sizes sizes;
    unsigned char *bytes;            /* owned; NULL in an empty state */
    size_t n, capacity;
} lin_state;

/* Room for all parts, zeroed; replaces earlier contents and reuses their memory. */
lin_status lin_state_begin(lin_state *state, const lin_state_about *about, const lin_state_sizes *sizes, lin_error *err);

void *lin_state_front(const lin_state *state);
lin_state_lane *lin_state_lane_of(const lin_state *state, int lane);
void *lin_state_decoder(const lin_state *state, int lane);
void *lin_state_image(const lin_state *state, int lane);
float *lin_state_frames(const lin_state *state, int lane);
float *lin_state_speakers(const lin_state *state, int lane);

/* LIN_MISMATCH for a state of another model; `name` is that of the state. */
lin_status lin_state_check_model(const lin_state_about *about, const lin_recognizer *recognizer, const char *name,
                                 lin_error *err);

/* The decoder's state of a lane, into room of lin_search_bytes.
 * LIN_MISMATCH if it is of another search, LIN_FORMAT if damaged. */
lin_status lin_state_get_decoder(const lin_state *state, int lane, const lin_search *search, void *decoder, lin_error *err);

/* The endpoint of a lane, into one with the same rules; LIN_MISMATCH if the state has other rules or resets; LIN_FORMAT if
 * damaged. */
lin_status lin_state_get_endpoint(const lin_state *state, int lane, const lin_reset_options *options, lin_endpoint *endpoint,
                                  lin_error *err);

/* Completes the header: the bytes are those of a file. */
void lin_state_seal(lin_state *state);

/* From bytes, which are copied; `name` is for messages. LIN_FORMAT: not a state, another version, or damaged. */
lin_status lin_state_parse(const void *bytes, size_t n, const char *name, lin_state *state, lin_error *err);

/* Seals and writes to a temporary name that is renamed at the end. LIN_IO. */
lin_status lin_state_write(lin_state *state, const char *path, lin_error *err);
lin_status lin_state_read(const char *path, lin_state *state, lin_error *err);

void lin_state_free(lin_state *state);

/* 1 if the bytes begin as a state does. */
int lin_state_is(const void *bytes, size_t n);

/* ---- a session ------------------------------------------------------------------------------------------------------------- */

typedef struct lin_session_options {
    int rate_hz, channels;      /* of the sound that is pushed, as in frontend/audio.h. rate_hz 0: frames are fed, of a front end
                                   elsewhere; then a model of whole utterances has no network here: its owner runs it */
    int channel;                /* LIN_CHANNEL_MIX, or 0, 1, ... */
    lin_reset_options ends;     /* of utterances; rules that are all 0: one utterance without end */
    /* How rows become phones or words; must outlive the session. NULL: greedy. Its context may be replaced between calls, but not
     * with alternatives (n_best over 1), which are given when an utterance has ended. */
    const lin_decoding *decoding;
    int threads;                /* of the network; 0: one per core */
    const lin_recognizer *second; /* of a second pass over each utterance that has ended (linnet/utterances.h), whose result is
                                     the final one; must outlive the session. NULL: none */
    int saves;                  /* 1: it can be saved and forked: remembers sound that is resampled, creation may take a second */
    /* What several sessions of one thread share; must outlive them. NULL: each has its own. */
    lin_streams *network;       /* the session's stream is in `slot` */
    int slot;
    const lin_fbank *beside;    /* of lin_feature_options */
    lin_second_pass *pass;
} lin_session_options;

/* No rate and channels yet; mixed down, resets, the default rules, greedy, one thread. */
lin_session_options lin_session_options_default(void);

/* Its owner reads it, and changes nothing but the sink of the utterances. */
typedef struct lin_session {
    const lin_recognizer *r;
    lin_session_options options;
    lin_streams *network; /* NULL: of a model of whole utterances */
    lin_second_pass *pass;
    lin_extractor *features; /* NULL: frames are fed */
    int piece;               /* samples that the front end takes at a time */
    lin_utterances utterances;
    /* Units of rows that are not out yet; of these the network has been given `fed`. A reset gives them to it once more. */
    float *units; /* [capacity, width], a block of memory with `db` */
    int n, fed, capacity;
    int hop;      /* samples from one frame to the next, where units are samples; 0: they are frames */
    int width, per_row, most; /* floats of a unit; units of a row; units that the network is given at once */
    double *db;      /* [rows that units can give] loudness */
    int64_t row;     /* the next, since the stream began */
    int64_t samples; /* of every channel, taken in */
    int finished;    /* the sound has ended */
} lin_session;

/*
 * The sink (NULL: none) is shown what has changed after every push that changed something, and every utterance that ends. If it
 * does not return LIN_OK the push ends with its status. An utterance that ends without a phone has no final view: if provisional
 * phones of it were shown, a view without any follows, and the next utterance has its number. LIN_UNSUPPORTED for a model that
 * needs whole utterances and for other rates or numbers of channels; LIN_INVALID for a channel that the sound lacks and for rules
 * that lin_endpoint_check refuses. On failure it is closed. The session may not be moved afterwards.
 */
lin_status lin_session_open(lin_session *session, const lin_recognizer *recognizer, const lin_session_options *options,
                            const lin_utterances_sink *sink, lin_error *err);
/* A zeroed session is allowed. */
void lin_session_close(lin_session *session);

/* Bytes of memory of a session before there are results, without the struct and the network. */
size_t lin_session_bytes(const lin_session *session);

/* samples [n, channels] in -1..1, n from 0 on. LIN_NUMERIC, and nothing is taken, if one is not sound (frontend/audio.h);
 * LIN_INVALID after lin_session_finish. */
lin_status lin_session_push(lin_session *session, const float *samples, int n, lin_error *err);

/* The utterance ends here, whatever the rules say. */
lin_status lin_session_end_utterance(lin_session *session, lin_error *err);

/* The sound has ended: what waited for look-ahead is decoded without it, and the utterance ends. Only reset and close may
 * follow. */
lin_status lin_session_finish(lin_session *session, lin_error *err);

/* As newly opened: the next sound is another stream, utterances count from 1. LIN_NO_MEMORY; then only close may follow. */
lin_status lin_session_reset(lin_session *session, lin_error *err);

/*
 * Saving writes the stream to a state, whose memory is used again; lin_state_write puts it into a file. Loading replaces the
 * stream of a session with the same model, sound, rules and decoding: it goes on with the same bits as if it had never stopped.
 * The state holds what decoding goes on with, not what was shown: after loading, the view of the utterance in progress begins
 * with what settles from then on, which alone gets speakers, and utterances count from 1. Saving: LIN_INVALID without
 * options.saves, and after finish. LIN_UNSUPPORTED with alternatives. Loading: LIN_MISMATCH if the state is of something else,
 * LIN_FORMAT if damaged; the session is then as after reset.
 */
lin_status lin_session_save(lin_session *session, lin_state *state, lin_error *err);
lin_status lin_session_load(lin_session *session, const lin_state *state, lin_error *err);
/* LIN_MISMATCH if the state is of another model or of sound of another form. */
lin_status lin_session_check_state(const lin_session *session, const lin_state_about *about, lin_error *err);

/* Opens a second session that goes on from the same point, with its own sink and network; it has all that was shown. Needs
 * options.saves. */
lin_status lin_session_fork(lin_session *session, const lin_utterances_sink *sink, lin_session *copy, lin_error *err);

/* Replaces its decoding by another copy with the same search, which must outlive the session. A fork has its original's. */
void lin_session_decode_by(lin_session *session, const lin_decoding *decoding);

/* Seconds of sound taken in since the beginning; a push that is refused does not change it. The decoded part is in the views. */
double lin_session_seconds(const lin_session *session);

/* The delay of a phone of greedy decoding by the model's construction, in seconds from the end of the phone until it is settled:
 * the frames of one row, look-ahead, and the part of a window beyond its hop. */
typedef struct lin_session_delay {
    double step_s, ahead_s, window_s, total_s;
} lin_session_delay;

lin_session_delay lin_session_construction(const lin_recognizer *recognizer);

/* ---- frames of a front end elsewhere: files -------------------------------------------------------------------------------- */

/* A new stream. whole: of lin_utterances_begin. */
void lin_session_begin(lin_session *session, lin_result *whole);

/* frames [n, D] of unnormalised log-mel features. last: those before lin_session_feed_end, with whose rows they may go through
 * the network. */
lin_status lin_session_feed(lin_session *session, const float *frames, int n, int last, lin_error *err);

/* The sound has ended: the rows that waited for look-ahead. lin_utterances_finish may follow. */
lin_status lin_session_feed_end(lin_session *session, lin_error *err);

/* What a state says of the network and the search of this stream; the owner adds the sound and the ends of utterances, and the
 * size of the front end. */
lin_state_about lin_session_about(const lin_session *session);
lin_state_sizes lin_session_sizes(const lin_session *session);

/* Lane number i of a saved stream: into a state that lin_state_begin made, and from one. ends: when the loaded stream has
 * endpoints, which the state must agree with; NULL: its endpoint is left as it is. */
lin_status lin_session_save_lane(lin_session *session, lin_state *state, int i, lin_error *err);
lin_status lin_session_load_lane(lin_session *session, const lin_state *state, int i, const lin_reset_options *ends,
                                 lin_error *err);

/* ---- a network that is moved on by its owner: engines ---------------------------------------------------------------------- */

/* Makes another front end, for sound at this rate. On failure there is none, and the session takes no sound. */
lin_status lin_session_tune(lin_session *session, int rate_hz, int saves, lin_error *err);

/* Makes units of the first *taken samples of sound [n, channels], until `most` units wait for the network. */
lin_status lin_session_hear(lin_session *session, const float *samples, int n, int *taken, lin_error *err);

/* The sound has ended: makes units of the rest in the front end. Does nothing while there is no room for them: call it again. */
lin_status lin_session_hear_end(lin_session *session, lin_error *err);

/* Up to `most` units that the network is given next: they count as given. Valid until the session is used again. */
const float *lin_session_next(lin_session *session, int *n);
static inline int lin_session_unfed(const lin_session *session) { return session->n - session->fed; }

/* Pushes rows of the network to the utterances. *taken of them count, those up to an endpoint that resets the network; the units
 * behind it count as not given. */
lin_status lin_session_take(lin_session *session, const float *logp, int rows, int *taken, lin_error *err);

/* Phones [n] that a device decoded greedily from `rows` more rows. */
lin_status lin_session_add(lin_session *session, const lin_phone *phones, int n, int rows, lin_error *err);

/* The utterance ends behind the last row that was taken. */
lin_status lin_session_cut(lin_session *session, lin_error *err);

#endif
