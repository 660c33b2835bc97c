/* engine_internal.h - what engine.c (places, and what their owners call) and engine_shard.c (the threads) share. */
#ifndef LIN_LINNET_ENGINE_INTERNAL_H
#define LIN_LINNET_ENGINE_INTERNAL_H

#include <pthread.h>

#include "frontend/fbank.h"
#include "frontend/resample.h"
#include "linnet/engine.h"
#include "linnet/lags.h"
#include "model/streams.h"

/* When samples came: those before `end` (and behind the mark before) were there at `time`. */
typedef struct lin_arrival {
    int64_t end;
    double time;
} lin_arrival;

enum { LIN_ARRIVALS = 128 };

/* In which of its shard's lists a place waits. */
typedef enum lin_listed { LIN_UNLISTED, LIN_WAITING, LIN_RIPE } lin_listed;

/* The place of one stream. Sound and counts of samples are at the model's rate, mono, from the stream's opening or reset. */
typedef struct lin_place {
    pthread_mutex_t lock;   /* of everything here but the lists; taken before the shard's */
    pthread_cond_t settled; /* delivering is over */
    struct lin_shard *shard;
    int number, slot;       /* among all places; of the shard's lin_streams */

    /* the owner's */
    uint32_t generation; /* part of the id */
    int open, delivering;
    unsigned long life; /* rises with each opening, reset and closing: results of an earlier one are dropped */
    void *user;
    int channels;
    lin_resampler *resampler; /* NULL: the sound has the model's rate */
    float *resampled;         /* [resampled_room] */

    /* sound */
    float *ring;      /* [ring_samples] */
    int64_t released, written; /* those between are kept */
    int64_t lost, lost_told, lost_at; /* samples as the producer counts; lost_at: the first not told lay behind `written` */
    int ending, flushed, ended, failed;
    double ended_at; /* when finish was called */
    lin_arrival marks[LIN_ARRIVALS];
    int first_mark, n_marks;

    /* the segment: since the opening, the reset, or the endpoint that made the network forget */
    int64_t origin;          /* its first sample, */
    int64_t frames, samples; /* fed to the network: frames (CPU), and samples (where the network makes frames itself), */
    int64_t rows;            /* and rows that came out */
    int restart;             /* the network must forget before it goes on */
    lin_utterances *utterances; /* the shard's thread alone uses it, but between its ticks: with the lock, and not delivering */
    lin_decoding decoding;      /* the options' with phrases of its own, where it has them */
    int anew;                   /* they begin with a new stream */
    double *loudness; /* [loud_rows] sums (frontend/loudness.h), by row of the segment modulo loud_rows; NULL where not needed */

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
    int64_t first_frame; /* of the segment */
    int ends;
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
    float *sound;      /* [window + longest hops] of one stream */
    lin_place **taken; /* [batch], as the next three */
    lin_entry *entries;
    int *slots, *counts;
    unsigned char *last;
    double *times;            /* [most_rows]: when the sound of each row was there */
    double *db;               /* [most_rows]: loudness of the rows */
    lin_engine_event *events; /* [most_events], of the stream whose results are delivered, not yet given to its owner */
    int n_events, most_events;
    unsigned long life; /* of that stream; once its place has another one, nothing more of it is delivered */
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
    int D, V, stack, ahead, window, hop; /* window and hop in samples */
    int rate_hz, ring_samples, loud_rows;
    int longest;   /* frames of a stream in one tick */
    int most_rows; /* of a stream in one tick */
    int keeps;     /* sound is kept until its rows are out: an endpoint may make the network hear it again */
    lin_place *places; /* [capacity] */
    lin_shard *shards;
    int n_shards;
    void *memory; /* rings, energies */
    size_t bytes_each;

    pthread_mutex_t lock; /* of what follows */
    long long refused;
    long long lost;       /* samples */
    double since;
};

/* 1 while the calling thread is one of an engine's own. */
extern _Thread_local int lin_engine_own_thread;

/* engine.c; the place is locked. */
int64_t lin_place_new_frames(const lin_engine *e, const lin_place *p); /* complete and not yet fed */
void lin_place_enlist(const lin_engine *e, lin_place *p, double now);  /* into the list where it belongs now */
lin_status lin_place_flush(const lin_engine *e, lin_place *p, lin_error *err); /* the resampler's rest into the ring */
void lin_place_new_segment(lin_place *p, int64_t origin);
lin_utterances_sink lin_place_sink(lin_place *p); /* engine_shard.c */

/* engine_shard.c */
lin_status lin_shard_create(lin_shard *shard, int n_threads, lin_error *err);
lin_status lin_shard_start(lin_shard *shard, lin_error *err);
void lin_shard_stop(lin_shard *shard);
void lin_shard_destroy(lin_shard *shard);

#endif
