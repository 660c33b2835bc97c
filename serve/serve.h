/*
 * serve.h - what the files of linnet serve share: the server, its clients, and who answers what.
 *
 * Pipeline: serve/web.h -> serve/serve.c (routes by serve/serve_calls.h, limits) -> serve/serve_stream.c (WebSockets),
 * serve/serve_outbox.c (what they are sent, by serve/protocols.h), or serve/serve_files.c and serve/serve_work.c (uploads).
 *
 * Four structures, each owned by one file; nobody else sees into the last three:
 *
 *   lin_client  serve.c         A connection: who it is and what it asked for. The server's thread; `touched` under the lock of
 *                               lin_serve. What others read of config does not change once there is a voice.
 *   lin_inbox   serve_stream.c  The sound and messages of a WebSocket that are not taken in. The server's thread only, no lock.
 *   lin_outbox  serve_outbox.c  What waits to be sent to it. The threads that decode and the server's, under its own lock.
 *   lin_job     serve_files.c   An upload: the server's thread until it is complete, then a worker, then the server's
 *                               (files_internal.h).
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
typedef struct lin_inbox lin_inbox;
typedef struct lin_outbox lin_outbox;
typedef struct lin_page lin_page;

typedef struct lin_protocol lin_protocol; /* serve/protocols.h */

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
    lin_inbox *in;
    lin_outbox *out;
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
    lin_recognizer recognizer, second, combined; /* of --model, --second-pass, --combine */
    lin_decoding decoding;
    lin_punctuation *punctuation;
    lin_g2p_rules *speller;
    lin_live_words words;
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
void lin_serve_answer(lin_serve *serve, lin_web_peer *peer, int status, const char *type, const char *body, size_t n);
/* With headers of its own, of which retry_s is one if it is not 0. */
void lin_serve_reply(lin_serve *serve, lin_web_peer *peer, lin_web_reply *reply, int retry_s);

/* ---- serve/serve_stream.c: WebSockets -------------------------------------------------------------------------------------- */

int lin_serve_stream_begin(lin_client *client); /* 0: out of memory; it must be freed all the same */
void lin_serve_stream_data(lin_client *client, const char *bytes, size_t n, int binary, int last);
/* Looks at a stream whose sound or results have gone on. */
void lin_serve_stream_go_on(lin_client *client);
/* No more sound is taken: the utterance ends, the client is told and left. */
void lin_serve_stream_drain(lin_client *client, int now);
/* Once a second. 1: it must be dropped: nothing came for too long, or it reads too slowly and was told so before. */
int lin_serve_stream_is_dead(lin_client *client, double now);
int lin_serve_stream_is_held_back(const lin_client *client); /* its sound waits until its results are read */
void lin_serve_stream_free(lin_client *client);

/* ---- serve/serve_outbox.c: what waits to be sent to a WebSocket ------------------------------------------------------------ */

lin_outbox *lin_outbox_create(lin_client *client); /* NULL: out of memory */
void lin_outbox_destroy(lin_outbox *outbox); /* after lin_voice_close: nothing comes any more; NULL is fine */

/* On the threads that decode: a view; the stream as bytes (linnet/state.h) at `seconds` of its sound; n phrases count from now
 * on, or err says why the ones before remain; all sound is decoded, or err says what failed, the last call. */
void lin_outbox_show(lin_outbox *outbox, const lin_session_view *view);
void lin_outbox_state(lin_outbox *outbox, const void *bytes, size_t n, double seconds);
void lin_outbox_phrases(lin_outbox *outbox, int n, const lin_error *err);
void lin_outbox_ended(lin_outbox *outbox, double seconds, const lin_error *err);

typedef struct lin_outbox_view {
    double waits_since; /* the message that waits longest; 0: none waits */
    int holds;          /* so much waits that no sound should be taken */
    int is_full;        /* so much waits that nothing is added before it is read */
    int owed;           /* messages that are not answered */
    int growing, ended; /* an utterance has begun; the stream has ended */
    const char *lost, *failure; /* why results could not be kept, why the stream ended; or NULL */
} lin_outbox_view;

/* All on the server's thread. */
lin_outbox_view lin_outbox_look(lin_outbox *outbox);
int lin_outbox_next(lin_outbox *outbox, lin_web_message *message); /* 0: none waits. The message is valid until the next call */
/* A message; is_last: nothing comes behind it. Frees the buffer. */
void lin_outbox_put(lin_outbox *outbox, lin_buffer *text, int is_last);
/* So much sound more is taken in now, for latencies. 1: the stream has ended. */
int lin_outbox_take_sound(lin_outbox *outbox, double seconds);
void lin_outbox_owe(lin_outbox *outbox); /* a message came that must be answered */
void lin_outbox_answer(lin_outbox *outbox, int also_partial); /* as many as can be; 0: only by utterances that have ended */
void lin_outbox_discard(lin_outbox *outbox); /* what is shown until the end is not told */
void lin_outbox_end(lin_outbox *outbox, int drained); /* puts what is said at the end of a stream; after it another may begin */

/* ---- serve/serve_files.c, serve/serve_work.c: uploads ---------------------------------------------------------------------- */

lin_status lin_files_create(lin_serve *serve, lin_error *err);
void lin_files_destroy(lin_serve *serve);
int lin_files_left(lin_serve *serve); /* uploads and jobs that are not answered */
/* The job of a POST, or NULL: refused and answered. */
lin_job *lin_files_begin(lin_client *client, const lin_web_request *request, const lin_call *call);
void lin_files_data(lin_client *client, const char *bytes, size_t n);
void lin_files_complete(lin_client *client);
void lin_files_expect(lin_client *client, double now); /* once a second: a body that does not come in time is given up */
void lin_files_drain(lin_client *client); /* the time to drain is over: a body that still comes is given up */
void lin_files_go_on(lin_client *client); /* answers if the job is done, or has begun an answer that goes on */
int lin_files_next(lin_client *client, lin_web_message *message); /* more of such an answer; as lin_web_handlers.next */
void lin_files_leave(lin_client *client); /* the client is gone */

/* ---- serve/serve_log.c: the log -------------------------------------------------------------------------------------------- */

typedef struct lin_serve_entry {
    int stream, status; /* stream: else an upload; status: of HTTP, or with which a WebSocket was closed (RFC 6455, 7.4) */
    const char *address, *path, *cause;
    double sound_s, seconds; /* of sound; that it took */
} lin_serve_entry;

void lin_serve_log(lin_serve *serve, const lin_serve_entry *entry);
/* A stream or upload has ended; logged once for each client. */
void lin_serve_log_end(lin_client *client, int status, const char *cause);

/* ---- serve/serve_metrics.c ------------------------------------------------------------------------------------------------- */

void lin_serve_put_metrics(lin_serve *serve, lin_buffer *out);

/* ---- serve/serve_page.c: the page ------------------------------------------------------------------------------------------ */

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
