/*
 * serve.h - what the files of linnet serve share: the server, its clients, and who answers what.
 *
 * Pipeline: serve/web.h -> serve/serve.c (routes by serve/serve_calls.h, limits) -> serve/serve_stream.c (WebSockets, by
 * serve/protocols.h and serve/serve_voice.h), or serve/serve_files.c (uploads).
 *
 * A client is one block of memory. Which thread may touch which part of it:
 *
 *   lin_client  A connection: who it is and what it asked for. The server's thread; `touched` under the lock of lin_serve. What
 *               others read of config does not change once there is a voice.
 *   lin_inbox   The sound and messages of a WebSocket that are not taken in. The server's thread only, no lock.
 *   lin_outbox  What waits to be sent to it. The threads that decode and the server's, under its own lock.
 *   lin_job     An upload, in serve/serve_files.h: the server's thread until it is complete, then a worker, then the server's.
 *
 * All handlers run on one thread, the server's. The engine's threads and the workers leave what they have in the outbox or the
 * job, and wake the server's thread (lin_serve_touch). No thread holds two locks, except in lin_serve_touch and
 * lin_serve_count, which take that of lin_serve for a moment.
 */
#ifndef LIN_SERVE_SERVE_H
#define LIN_SERVE_SERVE_H

#include <pthread.h>
#include <signal.h>

#include "app/shared_options.h"
#include "linnet/recognizer.h"
#include "app/live_text.h"
#include "serve/ogg_opus.h"
#include "serve/serve_calls.h"
#include "serve/serve_text.h"
#include "serve/serve_voice.h"
#include "serve/web.h"

typedef struct lin_serve_values {
    lin_model_values model;
    lin_decoding_values decoding;
    lin_endpoint_values endpoints;
    const char *listen, *certificate, *key, *tokens, *state_key, *second_pass;
    lin_list origins, hosts, proxies;
    int max_streams, max_per_address, max_files, max_upload_mb, max_sound_s, max_work_s, max_lag_ms, idle_s, unread_s, drain_s;
    int rate_hz, threads, ipa, quiet, websocket, log_json;
    const char *chosen_language;
} lin_serve_values;

typedef struct lin_serve lin_serve;
typedef struct lin_client lin_client;
typedef struct lin_job lin_job;
typedef struct lin_page lin_page;

typedef struct lin_protocol lin_protocol; /* serve/protocols.h */

typedef struct lin_inbox {
    lin_voice *voice;   /* NULL before the first sound */
    lin_buffer text;    /* of a message that is not complete */
    lin_buffer state;   /* that a client sends back */
    lin_sample_rest rest;
    lin_ogg_opus *opus; /* of format ogg_opus */
    float *held;        /* [n_held] samples that do not fit the queue, from at_held on */
    size_t n_held, at_held, held_capacity;
    size_t end_at;      /* the utterance ends behind held sample end_at - 1; 0: where the rules say so */
    int paused, resets, pushed;
    int finishing;      /* 1: no more comes; 2: the voice was asked for its last results; 3: the server stops */
    int ending;         /* all is said */
    int is_held_back;   /* its sound waits until its results are read */
    int is_slow;        /* it was told that it reads too slowly */
    double ending_at;
} lin_inbox;

#define LIN_QUEUED_KEPT (1 << 18) /* bytes of final results that wait for a reader; beyond them no sound is taken */
#define LIN_QUEUED_PARTIALS 65536 /* beyond them it gets no provisional results */
#define LIN_MOST_SAID (16 << 20) /* where messages are answered: bytes of utterances that wait for the end of theirs */

/* What becomes of a message whose reader is slow: provisional results and states are left out, all others wait. */
typedef enum lin_note_kind { LIN_NOTE_PARTIAL, LIN_NOTE_STATE, LIN_NOTE_OTHER, LIN_NOTE_FINAL } lin_note_kind;

/* A message that waits to be sent. */
typedef struct lin_note {
    struct lin_note *next;
    size_t n;
    lin_note_kind kind;
    double put_at;
    char data[];
} lin_note;

/* An utterance that has ended and not been sent, for a protocol that answers. */
typedef struct lin_said {
    struct lin_said *next;
    char *text, *items; /* released with the structure; items: alternatives, or a list of words */
} lin_said;

typedef struct lin_outbox {
    struct lin_client *client; /* of which only what never changes is read: protocol, config, state_key, serve */
    lin_note *sending;    /* given to the network; the server's thread */
    pthread_mutex_t lock; /* of all below */
    lin_note *first, **last;
    size_t n_queued; /* bytes of them */
    size_t n_kept;   /* of those that are neither provisional nor states */
    lin_said *said, **said_last;
    size_t n_said; /* bytes of them */
    int owed;      /* messages that are not answered */
    const char *lost; /* why a final result could not be kept; NULL: all are */
    lin_buffer partial, out;
    lin_live_texts texts; /* room for those of a view */
    int utterance, sent_phones, sent_words; /* of a growing utterance, what has been sent */
    int growing, ended, n_final;
    lin_settling settling; /* realtime: the text of an item */
    size_t begun_at;       /* realtime: where that of the utterance begins in it */
    unsigned long long session; /* realtime: its number; the server's thread */
    int n_items, any, discards; /* realtime: items that were told; one was since the last commit; what is shown is forgotten */
    double before_s, item_end_s; /* realtime: seconds of sound before the last commit; behind it, before the next item */
    int closed;    /* it was told why it ends: nothing comes behind that */
    char *failure; /* why the stream ended */
    double seconds;
    double sound_s, sound_at; /* seconds of sound taken in, and when, for latencies */
} lin_outbox;

struct lin_client {
    lin_serve *serve;
    lin_web_peer *peer;
    const lin_protocol *protocol; /* of a WebSocket; NULL: a request */
    lin_client *before, *behind;
    char address[64];
    const char *path;
    double begun_at, heard_at; /* when data came last */
    double sound_s; /* that was taken in */
    int status, is_logged; /* status: with what a WebSocket ends, and why; 0: not yet */
    char cause[128];
    lin_job *job;    /* of an upload; NULL: it has been answered */
    lin_message config; /* of a WebSocket */
    unsigned char state_key[32]; /* likewise: of its token and that of the server; it never changes */
    lin_inbox in;   /* of a WebSocket */
    lin_outbox out; /* likewise */
    int waiting; /* it must be looked at again soon */
    int touched; /* with the next: under the lock of serve */
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
    lin_live_models live;
    const char *language; /* of the model, "en"; "und": not known */
    long long created;    /* when its file was written, in seconds since 1970; 0: not known */
    lin_voices *voices;
    lin_page *page;
    char host[256], own_name[256]; /* that it listens on; of this machine */
    char *tokens; /* [n_tokens] the file; NULL: everybody may */
    size_t n_tokens;
    unsigned char state_key[32];
    lin_client *clients;
    const lin_web_request *asked; /* that is being opened; a refusal of it is logged */
    int n_clients, n_streams;
    int waiting; /* a client is */
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
/* The client is looked at again in some milliseconds. The server's thread. */
void lin_serve_wait(lin_client *client);
/* Adds to a count. Any thread. */
void lin_serve_count(lin_serve *serve, long long *count);

/* Answers an HTTP request with a JSON error in OpenAI's form, and counts nothing. */
void lin_serve_refuse(lin_serve *serve, lin_web_peer *peer, int status, int retry_s, const char *message);
/* With headers of its own, of which retry_s is one if it is not 0. */
void lin_serve_reply(lin_serve *serve, lin_web_peer *peer, lin_web_reply *reply, int retry_s);

/* ---- serve/serve_stream.c: WebSockets -------------------------------------------------------------------------------------- */

void lin_serve_stream_begin(lin_client *client);
void lin_serve_stream_data(lin_client *client, const char *bytes, size_t n, int binary, int last);
/* Looks at a stream whose sound or results have gone on. */
void lin_serve_stream_go_on(lin_client *client);
/* No more sound is taken: the utterance ends, the client is told and left. */
void lin_serve_stream_drain(lin_client *client, int now);
/* Once a second. 1: it must be dropped: nothing came for too long, or it reads too slowly and was told so before. */
int lin_serve_stream_is_dead(lin_client *client, double now);
int lin_serve_stream_is_held_back(const lin_client *client); /* its sound waits until its results are read */
void lin_serve_stream_free(lin_client *client);

/* On the threads that decode: a view; the stream as bytes (linnet/stream.h) at `seconds` of its sound; n phrases count from now
 * on, or err says why the ones before remain; all sound is decoded, or err says what failed, the last call. */
void lin_outbox_show(lin_outbox *outbox, const lin_session_view *view);
void lin_outbox_state(lin_outbox *outbox, const void *bytes, size_t n, double seconds);
void lin_outbox_phrases(lin_outbox *outbox, int n, const lin_error *err);
void lin_outbox_ended(lin_outbox *outbox, double seconds, const lin_error *err);

int lin_outbox_next(lin_outbox *outbox, lin_web_message *message); /* 0: none waits. The message is valid until the next call */

/* For protocols. Puts the buffer [its text] as a message and empties it. A message that must not be left out and does not fit the
 * memory ends the stream. */
void lin_outbox_add(lin_outbox *outbox, lin_buffer *out, lin_note_kind kind);
/* What waits of a protocol's own. */
void lin_said_free(lin_said *said);
void lin_outbox_discard(lin_outbox *outbox); /* what is shown until the end is not told */

/* ---- serve/serve_about.c --------------------------------------------------------------------------------------------------- */

typedef struct lin_serve_entry {
    int stream, status; /* stream: else an upload; status: of HTTP, or with which a WebSocket was closed (RFC 6455, 7.4) */
    const char *address, *path, *cause;
    double sound_s, seconds; /* of sound; that it took */
} lin_serve_entry;

void lin_serve_log(lin_serve *serve, const lin_serve_entry *entry);
/* A stream or upload has ended; logged once for each client. */
void lin_serve_log_end(lin_client *client, int status, const char *cause);

void lin_serve_put_metrics(lin_serve *serve, lin_buffer *out);

lin_status lin_page_open(lin_page **page, lin_error *err);
void lin_page_close(lin_page *page);
/* The file of a path such as "/"; NULL: none. type: its media type. */
const char *lin_page_find(const lin_page *page, const char *path, const char **type, size_t *n);

/* ---- serve/serve.c --------------------------------------------------------------------------------------------------------- */

extern volatile int lin_serve_stop; /* set by signals: 1: drain; 2: at once */
extern volatile sig_atomic_t lin_serve_hurry; /* the time to drain is over: what takes long is left out */
extern volatile int lin_serve_reload; /* set by SIGHUP: the tokens are read again */
/* Opens everything, serves until it is stopped, closes everything. */
lin_status lin_serve_run(lin_serve *serve, lin_error *err);

#endif
