/*
 * serve.h - what the files of linnet serve share: the server, its clients, and who answers what.
 *
 * Pipeline: serve/web.h -> serve/serve.c (routes by serve/serve_calls.h, limits) -> serve/serve_stream.c (a WebSocket) with
 * serve/protocols.c and serve/realtime.c (its messages), or serve/serve_files.c (an upload).
 *
 * A client is one block of memory. Which thread may touch which part of it:
 *
 *   lin_client  A connection: its address and its configuration. The server's thread. What other threads read (protocol, config,
 *               state_key) does not change once the stream is open.
 *   lin_inbox   What came over a WebSocket and is not in the engine yet. The server's thread.
 *   lin_outbox  What waits to be sent, and what is being prepared. Any thread, under its lock.
 *   lin_job     An upload: the server's thread until its body is complete, then a worker, then the server's thread.
 *
 * All handlers of the network run on one thread, the server's. It holds the outbox' lock while it handles a WebSocket's client,
 * also during calls of the engine, which take the lock of a stream; so it never calls one that waits for a callback. The engine's
 * threads and the workers hold no other lock when they take the outbox'. They leave their results in the outbox or the job and
 * wake the server's thread (lin_serve_touch).
 */
#ifndef LIN_SERVE_SERVE_H
#define LIN_SERVE_SERVE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "align/aligner.h"
#include "app/live_text.h"
#include "app/shared_options.h"
#include "base/json.h"
#include "linnet/engine.h"
#include "linnet/recognizer.h"
#include "serve/http.h"
#include "serve/ogg_opus.h"
#include "serve/serve_calls.h"
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
typedef struct lin_outbox lin_outbox;

/* ---- threads for what takes long ------------------------------------------------------------------------------------------- */

typedef struct lin_task {
    struct lin_task *next;
} lin_task;

/* A queue of tasks and the threads that take them, which start with the first task. */
typedef struct lin_workers {
    int n;                  /* threads; set before */
    void *(*run)(void *serve); /* the thread: runs until lin_workers_take returns NULL */
    pthread_mutex_t lock;
    pthread_cond_t work;
    lin_task *first, **last;
    pthread_t *threads; /* [n_threads] */
    int n_threads, stops;
} lin_workers;

/* LIN_NO_MEMORY: the threads cannot start. */
lin_status lin_workers_give(lin_workers *workers, lin_task *task, lin_serve *serve, lin_error *err);
lin_task *lin_workers_take(lin_workers *workers); /* waits for one; NULL: the thread ends */

/* ---- messages of WebSockets ------------------------------------------------------------------------------------------------ */

enum { LIN_REALTIME_BYTES = 4 << 20 }; /* the largest event of the realtime protocol: a minute of sound as base64 */

typedef enum lin_message_kind {
    LIN_MESSAGE_CONFIG,
    LIN_MESSAGE_EOF,
    LIN_MESSAGE_RESET,        /* the utterance ends; Vosk's protocol, and realtime's commit */
    LIN_MESSAGE_END_UTTERANCE, /* linnet's */
    LIN_MESSAGE_PHRASES,      /* linnet's: others from now on */
    LIN_MESSAGE_SOUND,        /* realtime: a piece of sound in a text */
    LIN_MESSAGE_CLEAR         /* realtime: like a reset, but the text so far is dropped */
} lin_message_kind;

typedef enum lin_sample_format {
    LIN_SAMPLES_S16,
    LIN_SAMPLES_F32,
    LIN_SAMPLES_MULAW, /* ITU-T G.711, of telephones */
    LIN_SAMPLES_ALAW,
    LIN_SAMPLES_OPUS /* Opus in Ogg (serve/ogg_opus.h), of one channel once it is decoded */
} lin_sample_format;

/* The content of a message; a member that the message lacks keeps its value. */
typedef struct lin_message {
    lin_message_kind kind;
    int rate_hz;  /* 4000..192000 */
    int channels; /* 1..64 */
    lin_sample_format format;
    int words;    /* Vosk: the list of words too */
    int alternatives;
    int partials; /* linnet: provisional results too */
    int readable; /* linnet: provisional results as readable text too */
    int resume;   /* linnet: the first binary message is a saved state */
    double state_s; /* linnet: seconds between two states that are sent; 0: none are */
    int manual;     /* realtime: only the client ends utterances */
    const char *language;   /* realtime: the model's; a session that wants another one is refused */
    int advises;            /* realtime: the phrases are new */
    char event_id[513];   /* realtime: the message's; "": none, or one of more than 512 bytes */
    double padding_s;     /* realtime: seconds of sound before an utterance's first phoneme that count as part of it */
    unsigned char *sound; /* [n_sound], realtime; to be released by lin_message_free */
    size_t n_sound;
    lin_buffer phrases; /* n_phrases of them, each with its NUL; likewise */
    int n_phrases;
} lin_message;

lin_message lin_message_default(int rate_hz);
void lin_message_free(lin_message *message);

/* Bytes of a sample; not of OPUS. */
size_t lin_sample_width(lin_sample_format format);
/* Samples of any format but OPUS from bytes that may be cut anywhere: `rest` keeps up to 3 bytes of a sample that is not
 * complete. floats [(n + 3) / bytes of a sample] receives them; values that are not finite become 0. Returns their number. */
typedef struct lin_sample_rest {
    unsigned char bytes[4];
    int n;
} lin_sample_rest;
size_t lin_samples_take(lin_sample_format format, const void *bytes, size_t n, lin_sample_rest *rest, float *floats);

/*
 * A protocol of WebSockets. Each has an address of its own; one of them is at / too (--websocket). All functions but parse are
 * called under the outbox' lock; show on the threads that decode, the others on the server's.
 */
typedef struct lin_protocol {
    const char *path, *about;
    lin_sample_format format; /* of binary messages, unless a config message has another one */
    int rate_hz;   /* of it, likewise; 0: --rate */
    int most_text; /* bytes of a text message */
    int phrases_exclude; /* 1: its phrases are a grammar: one or more of them, and nothing else */
    int phrases_advise; /* 1: a phrase that cannot be used is left out; 0: it ends the stream */
    int configs_later; /* 1: of a config after the first sound, only phrases that advise have an effect; 0: it is an error */
    /* Reads a text message of at most most_text bytes. LIN_FORMAT, LIN_INVALID: a mistake; LIN_UNSUPPORTED: what this server
     * cannot do. */
    lin_status (*parse)(const char *text, size_t n, lin_message *message, lin_error *err);
    /* The first message of a connection, and of a stream, which begins with its first sound; the answer to a message that was
     * accepted; and the last message of a stream that is given up. NULL: none. */
    void (*greet)(lin_client *client, lin_buffer *out);
    void (*put_begin)(const lin_client *client, lin_buffer *out);
    void (*acknowledge)(lin_client *client, const lin_message *message, lin_buffer *out);
    void (*put_error)(lin_buffer *out, const char *message);
    /* Answers a message that cannot be parsed, or a binary one (mistake is NULL) if they have no meaning; the stream continues.
     * NULL: a bad message ends the stream by put_error. */
    void (*put_mistake)(lin_buffer *out, const lin_message *mistake, const char *message);
    /* Turns a view into messages. 0: a provisional result was left out for a slow reader. */
    int (*show)(lin_outbox *outbox, const lin_session_view *view);
    /* Answers a binary message; NULL: they have no answers. */
    void (*answer)(lin_outbox *outbox);
    /* The last message of a stream that ends. drained: because the server stops. */
    void (*put_end)(lin_outbox *outbox, int drained);
} lin_protocol;

extern const lin_protocol lin_protocol_realtime; /* serve/realtime.c; the others are in serve/protocols.c */

/* The names as the choices of an option, in the order of the table. */
#define LIN_PROTOCOL_CHOICES "vosk|sherpa-onnx|linnet|realtime"

/* Number 0, 1, ...; NULL: no more. */
const lin_protocol *lin_protocol_at(int number);
/* The protocol at an address; root: the number of the one at /. NULL: there is none. */
const lin_protocol *lin_protocol_find(const char *path, int root);

/* Decodes to bytes [n / 4 * 3]; returns their number, or -1 if it is not base64 (RFC 4648). Blanks and missing padding are
 * errors. */
long lin_base64_decode(const char *text, size_t n, unsigned char *bytes);

/* Reads a number of a JSON message: LIN_INVALID, with the name in the message, unless it is a number from least to most. */
lin_status lin_message_number(const cJSON *item, const char *name, double least, double most, int whole, double *value,
                              lin_error *err);
lin_status lin_message_int(const cJSON *item, const char *name, int least, int most, int *value, lin_error *err);

/* Why the last bytes of the sound were left out; "" if n is 0. */
enum { LIN_CUT_TEXT = 80 };
const char *lin_cut_text(size_t n, char text[LIN_CUT_TEXT]);

/* Appends a phone, a word, or the mark of one outside the lexicon, "[hh_ah]". */
void lin_result_item_text(lin_buffer *out, const lin_writer_options *words, const lin_result *result, int item);

/* Vosk's list: {"conf", "start", "end", "word"} of every item, separated by commas, without brackets. */
void lin_vosk_put_items(lin_buffer *out, const lin_writer_options *words, const lin_result *result);
/* {"alternatives": [{"confidence", "text", "result"}]} of a result that has them. */
void lin_vosk_put_alternatives(lin_buffer *out, const lin_writer_options *words, const lin_result *result, int n, int with_items);

/* ---- a client -------------------------------------------------------------------------------------------------------------- */

typedef struct lin_inbox {
    int is_open;        /* the stream is, or is being opened: its first sound has come */
    lin_buffer text;    /* of a message that is not complete */
    lin_buffer state;   /* that a client sends back, until the stream is open */
    lin_sample_rest rest;
    lin_ogg_opus *opus; /* of format ogg_opus */
    float *held;        /* [n_held] samples that do not fit the engine's queue, from at_held on */
    size_t n_held, at_held, held_capacity;
    size_t end_at;      /* the client ends the utterance after held sample end_at - 1; 0: it does not */
    int paused, resets, pushed;
    int finishing;      /* 1: the sound has ended; 2: lin_engine_finish was called; 3: the server stops */
    int ending;         /* the last message is in the outbox */
    int is_held_back;   /* its sound waits until it has read results */
    int is_slow;        /* it was sent the message that it reads too slowly */
    double ending_at;
} lin_inbox;

#define LIN_QUEUED_KEPT (1 << 18) /* with more bytes of final results in a client's queue, no sound is taken from it */
#define LIN_QUEUED_PARTIALS 65536 /* with more bytes of messages in its queue, it gets no provisional results */
#define LIN_MOST_SAID (16 << 20) /* Vosk: bytes of ended utterances that wait for an answer to carry them */

/* For a slow reader, provisional results and states are left out; all other messages wait. */
typedef enum lin_note_kind { LIN_NOTE_PARTIAL, LIN_NOTE_STATE, LIN_NOTE_OTHER, LIN_NOTE_FINAL } lin_note_kind;

struct lin_outbox {
    lin_client *client;
    pthread_mutex_t lock; /* of all members */

    /* messages, each after a head of its own (serve/serve_stream.c) */
    lin_buffer waiting, sending; /* sending: from byte `sent` on, sent before `waiting`; only the server's thread changes it */
    size_t sent;
    size_t n_queued;  /* bytes of them */
    size_t n_kept;    /* of those that are neither provisional nor states */
    const char *lost; /* why a final result could not be kept; NULL: all are */
    int closed;       /* the last message, why the stream ends, is queued: none may follow */

    /* the stream in the engine */
    lin_engine_id id; /* 0: not there yet */
    int ready;        /* it takes sound */
    int busy;         /* one of the preparers opens it or looks up its phrases, or is about to */
    int finishes;     /* the sound has ended: the busy thread calls lin_engine_finish when it is done */
    int left;         /* the client is gone: the busy thread frees it */
    lin_buffer state; /* saved state that it resumes from, until it is open; the busy thread's */
    int wants;        /* other phrases: */
    lin_buffer wanted; /* n_wanted of them, each with its NUL */
    int n_wanted;
    lin_phrases phrases; /* n_phrases of them, that it has; the busy thread's */
    int n_phrases;

    /* results */
    int growing, ended, n_final; /* an utterance is there; all is decoded, or failed; utterances that have ended */
    lin_error failure;           /* why it ended; LIN_OK: it did not fail */
    double seconds;              /* of sound, at the end */
    size_t cut;                  /* bytes at its end that are no whole sample */
    double sound_s, sound_at;    /* seconds of sound taken in, and when, for latencies */
    int utterance, sent_phones, sent_words, sent_keywords; /* of a growing utterance, what has been sent */

    /* Vosk's */
    int owed;         /* messages that are not answered */
    lin_buffer said;  /* utterances that have ended and were not sent: of each its text and its items, each with a NUL */
    lin_buffer partial;

    /* realtime's */
    lin_settling settling; /* the text of an item */
    size_t begun_at;       /* where that of the utterance begins in it */
    unsigned long long session; /* its number */
    int n_items, any, discards; /* items sent; whether one was sent since the last commit; results are dropped */
    double before_s, item_end_s; /* seconds of sound before the last commit; and from it to the end of the last item */
};

struct lin_client {
    lin_task task; /* of lin_serve.preparers */
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
    atomic_int touched; /* it must be looked at */
    int waiting;        /* likewise, in some milliseconds */
    struct lin_job *job; /* of an upload; NULL: it has been answered */
    /* of a WebSocket */
    lin_message config;
    unsigned char state_key[32]; /* of its token and that of the server */
    lin_inbox in;
    lin_outbox out;
};

/* ---- the server ------------------------------------------------------------------------------------------------------------ */

/* What happened, for /metrics. */
typedef struct lin_serve_counts {
    atomic_llong streams, states, resumed, utterances, refused_full, refused_address, refused_lag, refused_token, refused_origin,
        refused_host, refused_files, too_large, bad, slow, idle, files, failed, partials_dropped, finals_unread, file_ms;
    double sound_s; /* the server's thread */
} lin_serve_counts;

struct lin_serve {
    const lin_serve_values *v;
    const lin_web_transport *transport;
    lin_web *web;
    lin_live_models live;
    const char *language; /* of the model, "en"; "und": not known */
    long long created;    /* when its file was written, in seconds since 1970; 0: not known */
    lin_engine *engine;
    lin_workers preparers; /* of streams that take long to open, and of phrases */
    char host[256], own_name[256]; /* the name that it listens on, "": systemd's socket; that of this machine */
    int port;
    char *tokens; /* [n_tokens] the file's content; NULL: no token is needed */
    size_t n_tokens;
    unsigned char state_key[32];
    lin_client *clients;
    const lin_web_request *asked; /* the request being opened; a refusal of it is logged */
    int n_clients, n_streams;
    atomic_int touched; /* a client is touched */
    int waiting;        /* likewise */
    int draining, closed; /* closed: there are no clients, and the network is being closed */
    double drain_until, second_at, stats_at;
    double lag_ms; /* p95 of the last seconds */
    long long lost; /* samples, before the last reset of the statistics */
    lin_serve_counts counts;

    /* uploads */
    lin_workers workers; /* its lock is also that of lin_job.done and lin_job.pieces, and of the lexicon */
    int n_jobs;          /* that are not answered; the server's thread */
    char too_large[64];  /* why a body is refused */
    lin_wording lexicon;
    int has_lexicon;
};

/* The client has something new for the server's thread, which this wakes. Any thread. */
void lin_serve_touch(lin_client *client);
/* The server's thread handles the client again in some milliseconds. The server's thread. */
void lin_serve_wait(lin_client *client);

/* Answers an HTTP request with a JSON error in OpenAI's form, and counts it (NULL: not). Returns 0. */
int lin_serve_refuse(lin_serve *serve, lin_web_peer *peer, atomic_llong *count, int status, const char *message);
/* With headers of its own. */
void lin_serve_reply(lin_serve *serve, lin_web_peer *peer, lin_web_reply *reply);

/* Phrases [n_needed + n_advised], each with its NUL. Advised ones that cannot be used are left out, and *left_out is 1; if a
 * needed one cannot be used, it fails. *used: how many are used. */
lin_status lin_serve_phrases(const lin_serve *serve, const char *texts, int n_needed, int n_advised, lin_phrases *made, int *used,
                             int *left_out, lin_error *err);

/* n phrases, each with its NUL, as a grammar that excludes all others: a sentence is one or more of them. */
lin_status lin_serve_grammar(const lin_serve *serve, const char *texts, int n, lin_phrases *made, lin_error *err);

extern volatile int lin_serve_stop; /* set by signals: 1: drain; 2: at once */
extern volatile sig_atomic_t lin_serve_hurry; /* the time to drain is over: long work is dropped */
extern volatile int lin_serve_reload; /* set by SIGHUP: the tokens are read again */
/* Opens everything, serves until it is stopped, closes everything. */
lin_status lin_serve_run(lin_serve *serve, lin_error *err);

/* ---- serve/serve_stream.c: WebSockets -------------------------------------------------------------------------------------- */

void lin_serve_stream_begin(lin_client *client);
void lin_serve_stream_data(lin_client *client, const char *bytes, size_t n, int binary, int last);
/* Continues a stream that has new sound or results. */
void lin_serve_stream_go_on(lin_client *client);
/* The next message; 0: none waits. As lin_web_handlers.next. */
int lin_serve_stream_next(lin_client *client, lin_web_message *message);
/* No more sound is taken: the utterance ends, its result is sent, and the connection is closed. */
void lin_serve_stream_drain(lin_client *client, int now);
/* Once a second. 1: it must be dropped: it was silent for too long, or has not even read that it reads too slowly. */
int lin_serve_stream_is_dead(lin_client *client, double now);
/* The client is gone, and its memory is freed: now, or by the thread that is busy with it. */
void lin_serve_stream_leave(lin_client *client);

void lin_serve_stream_event(void *context, const lin_engine_event *event); /* of lin_engine_options */
void *lin_serve_stream_prepare(void *serve);                              /* of lin_serve.preparers */

/* Queues the text as a message, and frees it. If memory is short, a message that must not be left out ends the stream. */
void lin_outbox_add(lin_outbox *outbox, lin_buffer *out, lin_note_kind kind);

/* ---- serve/serve_files.c: uploads ------------------------------------------------------------------------------------------ */

typedef struct lin_job {
    lin_task task;
    lin_serve *serve;
    const lin_call *call;
    lin_client *client; /* NULL: gone; the server's thread */
    atomic_int gone;
    int posted;
    char type[512]; /* of the body */
    lin_buffer body;
    int is_chunked, too_large;
    lin_chunked chunks;
    double body_until; /* when it must be complete */
    int sound;       /* descriptor of an unnamed file; -1: none */
    char path[32];   /* by which it can be reopened */
    /* the answer */
    int status, done;
    char cause[128]; /* of a status other than 200 */
    const char *answer_type;
    lin_buffer answer, ignored, warning; /* ignored: fields without effect; warning: sound that is missing or damaged */
    double seconds;
    double until; /* when the work must be done */
    /* an answer that is sent as it comes: pieces wait, `sending` is given to the network */
    lin_buffer pieces, sending;
    int n_pieces, begun;
} lin_job;

/* Queues a piece of an answer that is sent as it is made, and empties the buffer. LIN_NO_MEMORY: the piece is missing, and the
 * answer must end; earlier pieces are kept. */
lin_status lin_job_put(lin_job *job, lin_buffer *piece, lin_error *err);

/* The form of OpenAI's transcriptions with times: "verbose_json". text: of the whole; segments, items: which lists
 * (timestamp_granularities); items_inside: each segment has its words, as whisper.cpp's server writes them. Segments end at
 * pauses of 0.8 s and after 30 s. */
typedef struct lin_verbose {
    const char *language, *text;
    int segments, items, items_inside;
} lin_verbose;
lin_status lin_openai_put_verbose(lin_buffer *out, const lin_writer_options *words, const lin_result *result,
                                  const lin_verbose *how, lin_error *err);

/* The job of a POST, or NULL: refused and answered. */
lin_job *lin_files_begin(lin_client *client, const lin_web_request *request, const lin_call *call);
void lin_files_data(lin_client *client, const char *bytes, size_t n);
void lin_files_complete(lin_client *client);
void lin_files_expect(lin_client *client, double now); /* once a second: refuses a body that does not come in time */
void lin_files_drain(lin_client *client); /* the time to drain is over: refuses a body that is still arriving */
void lin_files_go_on(lin_client *client); /* answers if the job is done, or has begun an answer sent in pieces */
int lin_files_next(lin_client *client, lin_web_message *message); /* more of such an answer; as lin_web_handlers.next */
void lin_files_leave(lin_client *client); /* the client is gone */
void *lin_files_work(void *serve);        /* of lin_serve.workers */

/* ---- serve/serve_about.c: what the server reports of itself ---------------------------------------------------------------- */

typedef struct lin_serve_entry {
    int stream, status; /* stream: 0 for an upload; status: of HTTP, or the WebSocket's close code (RFC 6455, 7.4) */
    const char *address, *path, *cause;
    double sound_s, seconds; /* of sound; that it took */
} lin_serve_entry;

void lin_serve_log(lin_serve *serve, const lin_serve_entry *entry);
/* A stream or upload has ended; logged once for each client. */
void lin_serve_log_end(lin_client *client, int status, const char *cause);

void lin_serve_put_metrics(lin_serve *serve, lin_buffer *out);

lin_status lin_page_open(lin_error *err);
void lin_page_close(void);
/* The file of the page for browsers at a path such as "/"; NULL: none. type: its media type. */
const char *lin_page_find(const char *path, const char **type, size_t *n);

#endif
