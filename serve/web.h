/*
 * web.h - the network side of linnet serve: HTTP and WebSocket connections with TLS, over a library that is opened at run time.
 *
 * Pipeline: a browser or program -> [this: serve/web/lws.c over libwebsockets, in liblinnet_web.so] -> serve/serve.c.
 * The program itself links no network library, so that other commands start fast, and requests can be tested without a network.
 *
 *   lin_web_options o = {.host = "127.0.0.1", .port = 8090};
 *   const lin_web_transport *transport = lin_web_get();          // by dlsym: LIN_UNSUPPORTED without libwebsockets
 *   transport->open(&o, &handlers, &web, &err);
 *   while (goes on) transport->run(web);                         // one turn of the loop: calls the handlers
 *   transport->close(web);
 *
 * A peer is one request or one WebSocket. All handlers run on the thread of run(), one at a time. Threads: run's, for all
 * functions but wake.
 *
 * The number of connections without a request is bounded: a new one replaces the oldest. When no more files can be opened, new
 * connections are accepted only after one is closed.
 */
#ifndef LIN_SERVE_WEB_H
#define LIN_SERVE_WEB_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    LIN_WEB_INTERFACE = 6, /* rises with every change of this header */
    LIN_WEB_BAD_LENGTH = -2,
    LIN_WEB_SEAL = 8 + 12 + 16 /* bytes that sealing adds: magic, nonce, tag */
};

typedef struct lin_web lin_web;
typedef struct lin_web_peer lin_web_peer;

/* A request. Texts are "" if they were not sent, and valid during the call. */
typedef struct lin_web_request {
    int websocket;
    const char *method; /* "GET", "POST", ... */
    const char *path, *query, *host, *origin, *authorization, *type;
    const char *protocols; /* the header Sec-WebSocket-Protocol */
    const char *address; /* of the other side, "127.0.0.1" */
    const char *forwarded_for, *forwarded; /* X-Forwarded-For and Forwarded (RFC 7239), which anybody may send */
    const char *encoding; /* the header Transfer-Encoding; the body is given as it comes, in chunks (serve/http.h) */
    int64_t length;      /* of the body; -1: not sent; LIN_WEB_BAD_LENGTH: it is no number */
} lin_web_request;

typedef struct lin_web_header {
    const char *name, *value; /* the name in small letters */
} lin_web_header;

/* An answer to an HTTP request, or the refusal of a WebSocket. Copied. */
typedef struct lin_web_reply {
    int status;
    const char *type; /* NULL: no body */
    const lin_web_header *headers; /* [n_headers] more of them */
    int n_headers;
    const char *body;
    size_t n;
    int goes_on; /* the rest of the body comes from `next` until `end` is called; its length is not sent */
} lin_web_reply;

/* A message to a WebSocket, valid until the handler is called again for this peer. */
typedef struct lin_web_message {
    const char *data;
    size_t n;
    int binary;
} lin_web_message;

typedef struct lin_web_handlers {
    void *context;
    /* A new peer: the returned pointer is the others' `user`. NULL: the peer was answered by reply, and no handler follows. */
    void *(*open)(void *context, lin_web_peer *peer, const lin_web_request *request);
    /* A piece of the body, or of a WebSocket's message; last: it ends here. */
    void (*data)(void *context, void *user, const char *bytes, size_t n, int binary, int last);
    /* The body of an HTTP request, maybe empty, is complete. Not called for chunked bodies, whose data contain their end. */
    void (*complete)(void *context, void *user);
    /* The next message to a WebSocket, or the next piece of an answer that goes on. 0: none waits. */
    int (*next)(void *context, void *user, lin_web_message *message);
    /* The peer is gone and must not be used again. */
    void (*gone)(void *context, void *user);
    /* wake was called, or the time of the last call has passed: returns the milliseconds until the next call at the latest. */
    int (*turn)(void *context);
    void (*log)(void *context, const char *line);
} lin_web_handlers;

typedef struct lin_web_options {
    const char *host; /* an address or a name; NULL: all */
    int port;         /* 0: any free one */
    int socket;       /* a listening socket to take over; host and port are then ignored; 0: none */
    const char *certificate, *key; /* PEM files; NULL: no TLS */
    int ping_s;       /* a WebSocket that was silent for so long gets a ping, and has as long to answer */
    int peers;        /* most peers at once; raises the limit of open files for them, up to the hard limit */
} lin_web_options;

typedef struct lin_web_transport {
    lin_status (*open)(const lin_web_options *options, const lin_web_handlers *handlers, lin_web **web, lin_error *err);
    int (*port)(const lin_web *web); /* the port that it listens on; 0: the socket has none */
    void (*run)(lin_web *web); /* returns after some work, a signal, or a wake */
    void (*wake)(lin_web *web); /* any thread, before close */
    void (*close)(lin_web *web); /* calls `gone` for every peer that is left */
    /* LIN_NO_MEMORY: the peer is dropped. */
    lin_status (*reply)(lin_web_peer *peer, const lin_web_reply *reply);
    void (*want)(lin_web_peer *peer);            /* `next` has something */
    void (*pause)(lin_web_peer *peer, int paused); /* no data until it is resumed */
    /* Closes a WebSocket after the messages that wait (RFC 6455, 7.4), or an answer that goes on after its pieces. */
    void (*end)(lin_web_peer *peer, int code, const char *reason);
    void (*drop)(lin_web_peer *peer);            /* at once */
    void (*expect)(lin_web_peer *peer, int seconds); /* the body of a request may pause for so long; 0: no more of it comes */
    void (*allow)(lin_web_peer *peer); /* a page of the request's Origin may read all answers to it (CORS) */
    /*
     * Authenticated encryption (AES-256-GCM) of what clients keep: they can neither read nor change it. Any thread.
     *   make_key   a key from a secret of n bytes (SHA-256); n = 0: a random one
     *   seal       plain [n] into sealed [n + LIN_WEB_SEAL], with a random nonce
     *   unseal     the reverse, n of the sealed bytes. LIN_MISMATCH: sealed with another key, or changed
     */
    lin_status (*make_key)(const void *secret, size_t n, unsigned char key[32], lin_error *err);
    lin_status (*seal)(const unsigned char key[32], const void *plain, size_t n, unsigned char *sealed, lin_error *err);
    lin_status (*unseal)(const unsigned char key[32], const unsigned char *sealed, size_t n, unsigned char *plain,
                         lin_error *err);
} lin_web_transport;

/* Inside the library (serve/web/tls.c, over OpenSSL): the last three of the table, and a check of the files of a certificate and
 * its private key that says what is wrong: libwebsockets says only that it cannot use them. LIN_IO: a file cannot be opened;
 * LIN_FORMAT, LIN_MISMATCH, LIN_UNSUPPORTED: the files cannot be used. */
lin_status lin_seal_key(const void *secret, size_t n, unsigned char key[32], lin_error *err);
lin_status lin_seal(const unsigned char key[32], const void *plain, size_t n, unsigned char *sealed, lin_error *err);
lin_status lin_unseal(const unsigned char key[32], const unsigned char *sealed, size_t n, unsigned char *plain, lin_error *err);
lin_status lin_tls_check(const char *certificate, const char *key, lin_error *err);

/* What a library has to export: lin_web_interface() and lin_web_get(). */
typedef int (*lin_web_interface_function)(void);
typedef const lin_web_transport *(*lin_web_get_function)(void);

#endif
