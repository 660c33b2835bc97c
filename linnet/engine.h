/*
 * engine.h - many live streams at once: sound pushed into any of them at any time from any thread, results as they are certain.
 *
 * Pipeline: sound -> [this: linnet/stream, model/streams] -> events, views. Each stream has a place with memory of its own,
 * taken when the engine is created: a bounded queue of sound, a session, whose network is the engine's, and the network's state
 * (Katharopoulos et al. 2020, eq. 16-20: it never grows). The places are divided among shards, one thread each. A shard's
 * thread takes what is ready of its streams, advances all of them in one tick (model/streams.h), delivers the results and begins
 * again: the more streams there are, the larger and cheaper the ticks become.
 *
 *   lin_engine_options options = lin_engine_default(400);
 *   options.decoding = &decoding;                                       // else: greedy
 *   options.views = 1;                                                  // phones, words, alternatives of each utterance
 *   options.deliver = on_event;                                         // views, losses, the end
 *   lin_engine_create(&recognizer, &options, &engine, &err);
 *   lin_engine_open(engine, 16000, 1, user, &id, &err);                 // for every speaker that comes
 *   lin_engine_push(engine, id, samples, n, &err);                      // as sound comes, in any pieces
 *   lin_engine_finish(engine, id, &err);                                // the sound has ended; LIN_ENGINE_FINISHED comes last
 *   lin_engine_close(engine, id);
 *   lin_engine_destroy(engine);
 *
 * A stream gives what a lin_session with the same options gives for its sound, whatever the other streams are and however the
 * sound is cut: on a CPU the same bits (views may come at other moments). An overflow affects only the stream that caused it:
 * sound that does not fit its queue is counted and dropped. A stream without sound costs its memory only. Threads: all functions
 * but create and destroy may be called from any thread at any time; callbacks of one stream never run at the same time. After
 * creation nothing is allocated, except by opening a stream whose sound must be resampled or that is saved, and for utterances
 * longer than all before: by searches other than greedy, and with options.views.
 */
#ifndef LIN_LINNET_ENGINE_H
#define LIN_LINNET_ENGINE_H

#include <stdint.h>

#include "linnet/linnet.h"
#include "linnet/recognizer.h"
#include "linnet/utterances.h"

typedef struct lin_engine lin_engine;
/* One stream from its opening to its closing; never used twice, never 0. Its lower 32 bits are the place that the stream has
 * meanwhile: 0 to capacity - 1. */
typedef uint64_t lin_engine_id;

typedef enum lin_engine_kind {
    LIN_ENGINE_VIEW = LINNET_UTTERANCE, /* `view`: of an utterance that has changed or ended */
    LIN_ENGINE_LOST = LINNET_LOST,      /* at time_s `lost` samples of every channel did not fit the queue; times go on as if they
                                           did not exist */
    LIN_ENGINE_FINISHED = LINNET_ENDED, /* everything before lin_engine_finish is decoded: time_s of sound */
    LIN_ENGINE_FAILED = LINNET_FAILED,  /* `status` and `message`: nothing more is decoded before a reset */
    LIN_ENGINE_SETTLED,                 /* `settled`: more phones are certain; only without options.views */
    LIN_ENGINE_SAVED                    /* `state` [n_state] bytes (linnet/stream.h): the stream as it stands at time_s */
} lin_engine_kind;

/* What it points to is valid during the call. */
typedef struct lin_engine_event {
    lin_engine_kind kind;
    lin_engine_id stream;
    void *user;    /* as given when the stream was opened */
    double time_s; /* seconds of sound since opening or reset */
    const lin_session_view *view;
    const lin_result *settled;
    const void *state;
    size_t n_state;
    lin_status status;
    const char *message;
    long long lost;
} lin_engine_event;

typedef struct lin_engine_options {
    int capacity;       /* streams at most */
    int threads;        /* of a CPU; 0: one per core */
    int shards;         /* among which the threads are divided; 0: one for each thread, one where a GPU makes the filterbanks */
    int pins;           /* a shard stays on a core of its own, where there are as many cores as shards of one thread */
    int chunk_frames;   /* 1 to 32: a stream moves on as soon as it has so many new frames ... */
    double max_wait_ms; /* ... or one that has waited so long for more */
    int exact;          /* on a GPU, products in the recogniser's precision; 0: those of an fp32 recogniser are tf32 */
    double queue_s;     /* of sound that a stream's queue holds, 0.5 to 60 */
    lin_reset_options ends; /* of utterances */
    const lin_decoding *decoding; /* how rows become phones or words; must outlive the engine, its context too. NULL: greedy */
    int views;          /* each change of an utterance is shown, after every tick */
    /* The model of a second pass over each utterance that has ended (linnet/utterances.h). The thread of its shard runs it: other
     * streams of the shard wait meanwhile, this one takes sound. Needs views. On a GPU, frames are then made on the host, as they
     * are for a decoding that tells speakers apart, which is done as a second pass is. NULL: none. */
    const lin_recognizer *second;
    int saves;          /* streams can be saved and loaded: on a GPU, frames are then made on the host */
    /* Events of a stream in order, on one of the engine's threads, no lock held: it may call anything here but destroy. It delays
     * the other streams of its shard: it must not block. NULL: events are dropped. */
    void (*deliver)(void *context, const lin_engine_event *event);
    void *context;
} lin_engine_options;

/* One shard a core and pinned to it, chunks of 4 frames, waiting 100 ms for more frames, 1 s of sound,
 * no endpoints. */
lin_engine_options lin_engine_default(int capacity);

/* Takes all memory and starts the threads. The recogniser must outlive the engine. LIN_INVALID for options out of range,
 * LIN_UNSUPPORTED for a model that needs whole utterances, LIN_NO_MEMORY. On failure *engine is NULL. */
lin_status lin_engine_create(const lin_recognizer *recognizer, const lin_engine_options *options, lin_engine **engine,
                             lin_error *err);

/* Waits for the tick in progress; what is queued is dropped. No other call may be in progress or follow. NULL is allowed. */
void lin_engine_destroy(lin_engine *engine);

/* A new stream; `channels` are mixed down. LIN_TOO_SMALL if all places are taken, LIN_UNSUPPORTED for a rate or number of
 * channels outside those of frontend/audio.h. */
lin_status lin_engine_open(lin_engine *engine, int rate_hz, int channels, void *user, lin_engine_id *id, lin_error *err);

typedef struct lin_engine_stream {
    int rate_hz, channels;
    void *user;
    double save_s;          /* LIN_ENGINE_SAVED comes about every so many seconds of sound; 0: never */
    const void *state;      /* [n_state] bytes, copied: the stream continues from there; NULL: new */
    size_t n_state;
} lin_engine_stream;

/* Opens a stream that is saved, or goes on from a state: may take a second where sound is resampled. LIN_UNSUPPORTED
 * without options.saves, and where the resampler has no state (frontend/resample.h); LIN_FORMAT for bytes that are no state;
 * LIN_MISMATCH for the state of another model or of sound of another rate. */
lin_status lin_engine_open_saved(lin_engine *engine, const lin_engine_stream *stream, lin_engine_id *id, lin_error *err);

/*
 * Phrases of its own for a stream (lin_decoding_make_phrases), instead of those of options.decoding, from the next row that is
 * decoded on: settled results stay, and resets keep them. They must live until others replace them or the stream is closed. NULL:
 * those of the options again. Waits for a delivery of the stream in progress. LIN_INVALID for a stream that is not open, and in a
 * callback; LIN_UNSUPPORTED for greedy decoding, and with alternatives once the stream has been decoded.
 */
lin_status lin_engine_set_phrases(lin_engine *engine, lin_engine_id id, const lin_phrases *phrases, lin_error *err);

/* Samples [n, channels] in -1..1, copied. Never waits for the network. LIN_TOO_SMALL if they do not all fit the queue: none is
 * taken, n is added to what the stream lost. LIN_NUMERIC, and none is taken, if one is not sound. LIN_INVALID for a stream that
 * is not open, or finished, or failed. */
lin_status lin_engine_push(lin_engine *engine, lin_engine_id id, const float *samples, int n, lin_error *err);

/* How many samples of every channel fit the queue now, and how many seconds of sound are queued and not decoded yet, look-ahead
 * among them: for owners that can wait instead of losing sound. LIN_INVALID for a stream that is not open (both 0), or finished,
 * or failed. */
lin_status lin_engine_room(lin_engine *engine, lin_engine_id id, int *samples, double *waiting_s, lin_error *err);

/* The utterance ends behind what has been pushed, whatever the rules say. LIN_TOO_SMALL while the end before is not reached and
 * sound has come since; LIN_INVALID as lin_engine_push. */
lin_status lin_engine_end_utterance(lin_engine *engine, lin_engine_id id, lin_error *err);

/* The sound has ended: what is queued is decoded, then LIN_ENGINE_FINISHED is delivered. Only reset and close may follow. */
lin_status lin_engine_finish(lin_engine *engine, lin_engine_id id, lin_error *err);

/* As newly opened: what is queued is dropped, and no event of the sound before comes after the return
 * (except to a callback that resets a stream itself). */
lin_status lin_engine_reset(lin_engine *engine, lin_engine_id id, lin_error *err);

/* Gives the place back. No event comes after the return, with the same exception. An id that is not open is ignored. */
void lin_engine_close(lin_engine *engine, lin_engine_id id);

typedef struct lin_engine_stats {
    int open, capacity, shards;
    size_t bytes_each;       /* memory of one stream: sound, state, results */
    double seconds;          /* since creation or the last call of lin_engine_stats_reset; all below are of that time */
    long long ticks, chunks, rows; /* chunks: streams moved on, of all ticks; rows: of log-probabilities */
    double lag_p50_ms, lag_p95_ms, lag_p99_ms, lag_most_ms; /* from the push that completed a row's sound to the delivery of the
                                                               row's results, to 2 % */
    double sound_s, network_s, results_s; /* time of all shards together in filterbanks, network, decoding and delivery */
    long long lost_samples, refused; /* refused: openings beyond the capacity */
} lin_engine_stats;

void lin_engine_stats_get(lin_engine *engine, lin_engine_stats *stats);
void lin_engine_stats_reset(lin_engine *engine);

#endif
