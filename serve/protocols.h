/*
 * protocols.h - the protocols of WebSockets of linnet serve: a table, and what each of them is.
 *
 * Pipeline: serve/serve_stream.c (one stream, whatever the protocol) -> [this: text messages to lin_message; views of the stream
 * to messages in lin_outbox] -> serve/serve_stream.c, which sends them.
 *
 * Each has an address of its own; one of them is at / too (--websocket). The functions that get an outbox are called under its
 * lock: they write what they have to say into `out`, and put it by lin_outbox_add.
 */
#ifndef LIN_SERVE_PROTOCOLS_H
#define LIN_SERVE_PROTOCOLS_H

#include "serve/serve_text.h"
#include "serve/serve.h"

struct lin_protocol {
    const char *path, *about;
    lin_sample_format format; /* of binary messages, unless a config says otherwise */
    int rate_hz;   /* of it, likewise; 0: --rate */
    int most_text; /* bytes of a text message; 0: LIN_MESSAGE_BYTES */
    int forgives;  /* 1: a message that cannot be read is answered by put_error, and the stream goes on */
    int phrases_advise; /* 1: a phrase that cannot be used is left out; 0: it ends the stream */
    int configs_later; /* 1: a config after the first sound is accepted, and has no effect; 0: it is an error */
    /* What a text message says; as lin_message_parse. The server's thread. */
    lin_status (*parse)(const char *text, size_t n, lin_message *message, lin_error *err);
    /* The first message of a connection, and of a stream, which begins with its first sound; what is answered to a message that
     * was taken; and what is said before a stream is given up. The server's thread, unlocked. NULL: nothing. */
    void (*greet)(lin_client *client, lin_buffer *out);
    void (*put_begin)(const lin_client *client, lin_buffer *out);
    void (*took)(lin_client *client, const lin_message *message, lin_buffer *out);
    void (*put_error)(lin_buffer *out, const char *message);
    /* A view, on the threads that decode; under the outbox' lock. 0: a provisional result was left out, its reader is slow. */
    int (*show)(lin_outbox *outbox, const lin_session_view *view);
    /* An answer to a binary message that is owed, where each has one; NULL: none has. The server's thread; locked. */
    void (*answer)(lin_outbox *outbox);
    /* What is said at the end of a stream. The server's thread; locked. */
    void (*put_end)(lin_outbox *outbox, int drained);
};

/* The names as the choices of an option, in the order of the table. */
#define LIN_PROTOCOL_CHOICES "vosk|sherpa-onnx|linnet|realtime"

/* Number 0, 1, ...; NULL: no more. */
const lin_protocol *lin_protocol_at(int number);
/* The protocol at an address; root: the number of the one at /. NULL: there is none. */
const lin_protocol *lin_protocol_find(const char *path, int root);

#endif
