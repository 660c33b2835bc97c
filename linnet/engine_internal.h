/* engine_internal.h - what engine.c (places, and what their owners call) and engine_shard.c (the threads) share. */
#ifndef LIN_LINNET_ENGINE_INTERNAL_H
#define LIN_LINNET_ENGINE_INTERNAL_H

#include <pthread.h>

#include "frontend/fbank.h"
#include "linnet/engine.h"
#include "linnet/lags.h"
#include "linnet/stream.h"

/* When samples came: those before `end` (and behind the mark before) were there at `time`. */
typedef struct lin_arrival {
    int64_t end;
    double time;
} lin_arrival;

enum { LIN_ARRIVALS = 128 };

/* In which of its shard's lists a place waits. */
typedef enum lin_listed { LIN_UNLISTED, LIN_WAITING, LIN_RIPE } lin_listed;

/* The place of one stream. Samples are counted from the stream's opening or reset. */
typedef struct lin_place {
    pthread_mutex_t lock;   /* of everything here but the lists; taken before the shard's */
    pthread_cond_t settled; /* delivering, or a second pass, is over */
    struct lin_shard *shard;
    int number, slot;       /* among all places; of the shard's lin_streams */

    /* the owner's */
    uint32_t generation; /* part of the id */
    int open, delivering, aside; /* aside: in a second pass */
    unsigned long life; /* rises with each opening, reset and closing: results of an earlier one are dropped */
    void *user;
    int rate_hz, channels;

    /* sound, mixed down */
    float *queue, *own_queue; /* [room]; own_queue: NULL, or that of a rate for which the engine's memory is too small */
    int room;
    int64_t taken, written; /* those between wait */
    int64_t lost, lost_told, lost_at; /* lost_at: the first not told lay behind `written` */
    int64_t end_at; /* the utterance ends behind so many; -1: where the rules say so */
    int64_t asked_at; /* the last end_at; -1: none */
    int ending, ended, failed;
    double ended_at; /* when finish was called */
    lin_arrival marks[LIN_ARRIVALS];
    int first_mark, n_marks;

    /* the shard's thread alone uses the session, but between its ticks: with the lock, and not delivering */
    lin_session session;
    lin_decoding decoding; /* the options' with phrases of its own, where it has them */
    int anew;              /* it begins with a new stream, or one that goes on from this state */
    lin_state state;
    int64_t earlier;       /* samples of the stream before it was loaded */
    double save_s, saved_at;

    /* lists, under the shard's lock */
    lin_listed listed;
    struct lin_place *before, *behind;
    double since;
} lin_place;

typedef struct lin_place_list {
    lin_place *first, *last;
    int n;
} lin_place_list;

typedef struct lin_shard_counts {
    long long ticks, chunks, rows;
    double sound_s, network_s, results_s;
    lin_lags lags;
} lin_shard_counts;

/* One stream's part in a tick. */
typedef struct lin_entry {
    lin_place *place;
    unsigned long life;
    int ends, ends_utterance;
} lin_entry;

typedef struct lin_shard {
    struct lin_engine *engine;
    pthread_t thread;
    int started;
    pthread_mutex_t lock; /* of the lists and of `stop` */
    pthread_cond_t wake;
    lin_place_list waiting, ripe;
    int wants, stop; /* wants: the thread sleeps until so many are ripe; 0: it does not */
    int capacity, n_open; /* n_open and free places: under the engine's lock */
    lin_place **free;
    int n_free;

    /* the thread's own */
    lin_streams *streams;
    lin_fbank *fbank;
    int batch, enough; /* streams of a tick at most; so many are worth one */
    double rests;      /* until then */
    lin_second_pass *second; /* NULL: none */
    lin_state saving;
    lin_place **taken; /* [batch], as the next three */
    lin_entry *entries;
    int *slots, *counts;
    unsigned char *last;
    double *times;            /* [most_rows]: when the sound of each row was there */
    unsigned long life; /* of the stream whose results are delivered; once its place has another one, nothing more of it is */
    lin_path_phone *phones; /* [most_rows + 1] */

    pthread_mutex_t counting;
    lin_shard_counts counts_now; /* under `counting` */
} lin_shard;

struct lin_engine {
    const lin_recognizer *recognizer;
    lin_engine_options options;
    lin_fbank_config fbank;
    lin_fbank_table table; /* for a backend that makes filterbanks */
    int on_sound;          /* the network is given sound; else frames */
    int width, V, stack, ahead, window, hop; /* width: floats of a unit; window and hop in samples */
    int rate_hz, queue_room;
    int longest;   /* frames of a stream in one tick */
    int most_rows; /* of a stream in one tick */
    lin_place *places; /* [capacity] */
    lin_shard *shards;
    int n_shards;
    void *memory; /* queues */
    size_t queue_bytes, bytes_each;

    pthread_mutex_t lock; /* of what follows */
    long long refused;
    long long lost;       /* samples */
    double since;
};

/* 1 while the calling thread is one of an engine's own. */
extern _Thread_local int lin_engine_own_thread;

/* engine.c; the place is locked. */
void lin_place_enlist(const lin_engine *e, lin_place *p, double now); /* into the list where it belongs now */
lin_utterances_sink lin_place_sink(lin_place *p); /* engine_shard.c */

/* engine_shard.c */
lin_status lin_shard_create(lin_shard *shard, int n_threads, lin_error *err);
lin_status lin_shard_start(lin_shard *shard, lin_error *err);
void lin_shard_stop(lin_shard *shard);
void lin_shard_destroy(lin_shard *shard);

#endif
