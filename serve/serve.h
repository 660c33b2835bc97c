/*
 * serve.h - what the files of linnet serve share: the server, its clients, and who answers what.
 *
 * Pipeline: serve/web.h -> serve/serve.c (routes, limits) -> serve/serve_stream.c (WebSockets) or serve/serve_files.c (uploads)
 * -> answers. All handlers run on one thread, the server's. Streams are decoded by the engine's threads and files by workers:
 * both leave what they have in the client's or the job's own fields, under a lock,
 * and wake the server's thread (lin_serve_touch).
 */
#ifndef LIN_SERVE_SERVE_H
#define LIN_SERVE_SERVE_H

#include <pthread.h>

#include "app/decoding_options.h"
#include "app/endpoint_options.h"
#include "app/model_options.h"
#include "linnet/recognizer.h"
#include "serve/ogg_opus.h"
#include "serve/serve_text.h"
#include "serve/serve_voice.h"
#include "serve/web.h"

typedef struct lin_serve_values {
    lin_model_values model;
    lin_decoding_values decoding;
    lin_endpoint_values endpoints;
    const char *listen, *certificate, *key, *tokens, *state_key;
    lin_list origins, hosts;
    int max_streams, max_per_address, max_files, max_upload_mb, max_sound_s, max_work_s, max_lag_ms, idle_s, unread_s, drain_s;
    int rate_hz, threads, ipa, quiet;
} lin_serve_values;

typedef struct lin_serve lin_serve;
typedef struct lin_client lin_client;
typedef struct lin_job lin_job;
typedef struct lin_page lin_page;

typedef enum lin_client_kind { LIN_CLIENT_REQUEST, LIN_CLIENT_VOSK, LIN_CLIENT_STREAM } lin_client_kind;

/* What becomes of a message whose reader is slow: provisional results and states are left out, all others wait. */
typedef enum lin_note_kind { LIN_NOTE_PARTIAL, LIN_NOTE_STATE, LIN_NOTE_OTHER, LIN_NOTE_FINAL } lin_note_kind;

/* A message that waits to be sent to a WebSocket. */
typedef struct lin_note {
    struct lin_note *next;
    size_t n;
    lin_note_kind kind;
    double put_at;
    char data[];
} lin_note;

/* An utterance that has ended and not been sent, for Vosk's protocol. */
typedef struct lin_said {
    struct lin_said *next;
    char *text, *items; /* released with the structure; items: alternatives, or a list of words */
} lin_said;

struct lin_client {
    lin_serve *serve;
    lin_web_peer *peer;
    lin_client_kind kind;
    lin_client *before, *behind;
    char address[64];
    double heard_at; /* when data came last */
    double body_until; /* an upload must be complete */

    lin_job *job;    /* of an upload; NULL: it has been answered */

    // a stream: the server's thread
    lin_message config;
    lin_voice *voice; /* NULL before the first sound */
    lin_buffer text;  /* of a message that is not complete */
    lin_buffer state; /* that a client sends back */
    lin_sample_rest rest;
    lin_ogg_opus *opus; /* of format ogg_opus */
    float *held;      /* [n_held] samples that do not fit the queue, from at_held on */
    size_t n_held, at_held, held_capacity;
    int owed;         /* Vosk: messages that are not answered */
    int paused, finishing, ending, resets, pushed;
    int is_held_back; /* its sound waits until its results are read */
    int is_slow;      /* it was told that it reads too slowly */
    double ending_at;
    double pushed_s;  /* seconds of sound taken in ... */
    double pushed_at; /* ... until then, by lin_now() */
    lin_client *waits; /* next in the list of those that must be looked at again soon */
    int waiting;
    lin_note *sending; /* given to the network */

    // under the lock: also by the engine's threads
    pthread_mutex_t lock;
    lin_note *first, **last;
    size_t n_queued;   /* bytes of them */
    size_t n_kept;     /* of those that are neither provisional nor states */
    lin_said *said, **said_last;
    size_t n_said;     /* bytes of them */
    const char *lost;  /* why a final result could not be kept; NULL: all are */
    lin_buffer partial, out, settled, open, readable;
    int utterance, sent_phones, sent_words; /* of a growing utterance, what has been sent */
    int growing, ended, n_final;
    char *failure;     /* why the stream ended */
    double seconds;
    double sound_s, sound_at; /* copies of pushed_s and pushed_at, for latencies */

    // under the lock of serve
    int touched;
    lin_client *next_touched;
};

/* What happened, for /metrics. Under the lock of serve. */
typedef struct lin_serve_counts {
    long long streams, sessions_saved, resumed, utterances, refused_full, refused_address, refused_lag, refused_token,
        refused_origin, refused_host, refused_files, too_large, bad, slow, idle, files, aligned, failed, partials_dropped,
        finals_unread;
    double sound_s, file_s;
} lin_serve_counts;

struct lin_serve {
    const lin_serve_values *v;
    const lin_web_transport *transport;
    lin_web *web;
    lin_recognizer recognizer;
    lin_decoding decoding;
    lin_punctuation *punctuation;
    lin_g2p_rules *speller;
    lin_live_words words;
    lin_voices *voices;
    lin_page *page;
    char host[256], own_name[256]; /* that it listens on; of this machine */
    char *tokens; /* [n_tokens] the file; NULL: everybody may */
    size_t n_tokens;
    unsigned char state_key[32];
    lin_client *clients;
    int n_clients, n_streams;
    lin_client *waiting;
    int draining;
    double drain_until, second_at, stats_at;
    double lag_ms; /* p95 of the last seconds */
    long long lost; /* before the last reset of the statistics */

    pthread_mutex_t lock; /* of all below */
    int woken_for_good;   /* the network is closing: it is not woken any more */
    lin_client *touched;
    lin_serve_counts counts;
    struct lin_files *files;
};

/* The client has something new: the server's thread will look at it. Any thread. */
void lin_serve_touch(lin_client *client);
/* Adds to a count. Any thread. */
void lin_serve_count(lin_serve *serve, long long *count);

/* Answers an HTTP request with a JSON error in OpenAI's form, and counts nothing. */
void lin_serve_refuse(lin_serve *serve, lin_web_peer *peer, int status, int retry_s, const char *message);
void lin_serve_answer(lin_serve *serve, lin_web_peer *peer, int status, const char *type, const char *body, size_t n);

/* ---- serve/serve_stream.c: WebSockets -------------------------------------------------------------------------------------- */

extern const lin_voice_sink lin_serve_stream_sink;
void lin_serve_stream_begin(lin_client *client);
void lin_serve_stream_data(lin_client *client, const char *bytes, size_t n, int binary, int last);
/* Looks at a stream whose sound or results have gone on. */
void lin_serve_stream_go_on(lin_client *client);
/* No more sound is taken: the utterance ends, the client is told and left. */
void lin_serve_stream_drain(lin_client *client, int now);
int lin_serve_stream_next(lin_client *client, lin_web_message *message);
/* Once a second: a reader that is too slow is told so. 1: it has not read that either, and must be dropped. */
int lin_serve_stream_is_stuck(lin_client *client, double now);
void lin_serve_stream_free(lin_client *client);

/* ---- serve/serve_files.c: uploads ------------------------------------------------------------------------------------------ */

lin_status lin_files_create(lin_serve *serve, lin_error *err);
void lin_files_destroy(lin_serve *serve);
int lin_files_left(lin_serve *serve); /* uploads and jobs that are not answered */
/* The job of a POST, or NULL: refused and answered. aligns: /v1/align. */
lin_job *lin_files_begin(lin_client *client, const lin_web_request *request, int aligns);
void lin_files_data(lin_client *client, const char *bytes, size_t n);
void lin_files_complete(lin_client *client);
int lin_files_receives(const lin_client *client); /* 1 while its body is not complete */
void lin_files_give_up(lin_client *client); /* its body did not come in time */
void lin_files_go_on(lin_client *client); /* answers if the job is done */
void lin_files_leave(lin_client *client); /* the client is gone */

/* ---- serve/serve_page.c: the page ------------------------------------------------------------------------------------------ */

lin_status lin_page_open(lin_page **page, lin_error *err);
void lin_page_close(lin_page *page);
/* The file of a path such as "/"; NULL: none. type: its media type. */
const char *lin_page_find(const lin_page *page, const char *path, const char **type, size_t *n);

/* ---- serve/serve.c --------------------------------------------------------------------------------------------------------- */

extern volatile int lin_serve_stop; /* set by signals: 1: drain; 2: at once */
extern volatile int lin_serve_reload; /* set by SIGHUP: the tokens are read again */
/* Opens everything, serves until it is stopped, closes everything. */
lin_status lin_serve_run(lin_serve *serve, lin_error *err);

#endif
