/*
 * serve_calls.h - requests to linnet serve: access checks, and the calls over HTTP: one table routes requests, checks forms, and
 * makes /openapi.json and the page /docs. Nothing here needs a network.
 *
 * Pipeline: serve/serve.c (a request) -> [this] -> serve/serve_files.c (an upload, whose form is checked here).
 * Bytes from outside may be anything: every parser is bounded, and tests/fuzz/fuzz_serve.c runs them.
 *
 *   const lin_call *call = lin_call_find("POST", "/v1/audio/transcriptions", &known);
 *   lin_call_check(call, &form, &ignored, &err);          // LIN_INVALID: the message names the field and what it may be
 *   lin_call_value(call, &form, "response_format", text, sizeof text);
 *
 * An empty field counts as not sent, unless it is a file. "name[]" and "name[key]" are the field "name". A field that is not a
 * list has one value. Fields without effect, and those that the call does not have, are accepted and listed: clients of other
 * servers send them.
 * Threads: any.
 */
#ifndef LIN_SERVE_SERVE_CALLS_H
#define LIN_SERVE_SERVE_CALLS_H

#include "base/buffer.h"

enum { LIN_MESSAGE_BYTES = 1 << 16, LIN_MESSAGE_MOST_PHRASES = 1000 }; /* the largest text message, and the most phrases in it */

/* ---- forms of multipart/form-data (RFC 7578) ------------------------------------------------------------------------------- */

enum { LIN_FORM_PARTS = LIN_MESSAGE_MOST_PHRASES + 64 }; /* a part for each phrase, and all other fields */

/* Points into the body. */
typedef struct lin_form_part {
    const char *name, *data; /* the name without a NUL */
    size_t n_name, n;
} lin_form_part;

typedef struct lin_form {
    lin_form_part parts[LIN_FORM_PARTS];
    int n;
} lin_form;

/* type: the header Content-Type. LIN_FORMAT: another type, no boundary, a body that breaks off, or too many parts. */
lin_status lin_form_parse(const char *type, const char *body, size_t n, lin_form *form, lin_error *err);

/* 1 if the part is there and holds this text. */
int lin_form_is(const lin_form_part *part, const char *text);

/* ---- the calls ------------------------------------------------------------------------------------------------------------- */

typedef enum lin_field_type {
    LIN_FIELD_TEXT,
    LIN_FIELD_FILE,
    LIN_FIELD_CHOICE, /* one of `choices` */
    LIN_FIELD_NUMBER, /* from least to most */
    LIN_FIELD_FLAG    /* true, false, 1, 0, yes, no, on, off, in any case */
} lin_field_type;

typedef struct lin_field {
    const char *name;
    lin_field_type type;
    int required, many, no_effect;
    const char *choices;   /* between blanks */
    double least, most;
    const char *otherwise; /* the default; NULL: none */
    const char *about;
} lin_field;

typedef enum lin_call_kind {
    LIN_CALL_TRANSCRIBE,
    LIN_CALL_INFERENCE, /* the same in whisper.cpp's form */
    LIN_CALL_ALIGN,
    LIN_CALL_MODELS,
    LIN_CALL_MODEL,
    LIN_CALL_HEALTH, LIN_CALL_HEALTH_JSON, LIN_CALL_READY,
    LIN_CALL_METRICS,
    LIN_CALL_DOCS, LIN_CALL_OPENAPI,
    LIN_CALL_PAGE
} lin_call_kind;

typedef struct lin_call {
    lin_call_kind kind;
    const char *method, *path, *about;
    const char *type;        /* of the answer */
    int is_open;             /* needs no token */
    const lin_field *fields; /* of its form, up to one without a name; NULL: it has none */
} lin_call;

/* HEAD counts as GET. NULL: there is no such call; path_known: there is one with another method. */
const lin_call *lin_call_find(const char *method, const char *path, int *path_known);

/* ignored: appends the names of fields without effect, "a, b", for a header. */
lin_status lin_call_check(const lin_call *call, const lin_form *form, lin_buffer *ignored, lin_error *err);
/* Value number 0, 1, ... of a field of the call, or NULL; owned by the form. */
const lin_form_part *lin_call_part(const lin_call *call, const lin_form *form, const char *field, int number);
/* The first value of a field of the call, cut at the capacity; else its default, or "". */
void lin_call_value(const lin_call *call, const lin_form *form, const char *field, char *text, size_t capacity);
/* Whether a flag that the call has was given and is true. */
int lin_call_flag(const lin_call *call, const lin_form *form, const char *field);

/* Whether `asked` can be this language: "", "auto", its code or its name ("en", "en-GB", "English"). language: the model's, "en";
 * if it is "und", unknown, any can. */
int lin_language_is(const char *asked, const char *language);
/* The name of a language as in OpenAI's answers, "english"; its code if the name is unknown here. */
const char *lin_language_name(const char *language);

/*
 * The likely phrases of a prompt: its parts between marks and line ends, in lower case, if they are at most 6 words of letters in
 * any script; parts with digits or other characters are left out. Appends each with its NUL, at most LIN_MESSAGE_MOST_PHRASES.
 * Returns their number.
 */
int lin_prompt_phrases(const char *text, size_t n, lin_buffer *phrases);

/* {"error": {"message", "type", "param", "code"}} */
void lin_openai_put_error(lin_buffer *out, int status, const char *message);
/* OpenAPI 3.0, and a page for people, which names the WebSockets: sockets [n][2], each a path and what it is. */
void lin_calls_put_openapi(lin_buffer *out, const char *version);
void lin_calls_put_page(lin_buffer *out, const char *version, const char *(*sockets)[2], int n);

/* ---- secrets --------------------------------------------------------------------------------------------------------------- */

enum { LIN_TOKEN_LEAST = 16 }; /* characters of a token that is hard to guess */

/* 1 if the token is a line of the list, without blanks around it; blank lines and lines that begin with # are skipped. Takes a
 * time that depends only on the lengths. */
int lin_token_known(const char *list, size_t n_list, const char *token, size_t n_token);
/* LIN_FORMAT if the list, the file `name`, has no token, or one that no request can hold. *weak: the first line with a token of
 * fewer than LIN_TOKEN_LEAST characters; 0: none. */
lin_status lin_tokens_check(const char *name, const char *list, size_t n, int *weak, lin_error *err);
/* Finds the token of a request: "Bearer X", access_token=X in the query (RFC 6750), or openai-insecure-api-key.X among the
 * subprotocols of a WebSocket, as OpenAI's browser clients send it. Returns its length; 0: none. */
size_t lin_token_find(const char *authorization, const char *query, const char *protocols, const char **token);
/* 1 if a server that listens on `listens` ("*": on all addresses) may be addressed by this Host header: an address, the name that
 * it listens on, localhost, one of the list, or none. This stops DNS rebinding: a foreign page whose name resolves to this
 * machine sends the foreign name. */
int lin_host_allowed(const char *host, const char *listens, const char *const *list, int n);
/* 1 if a page of this origin may use a server that was reached as `host`: the same host and port, or one of the list.
 * portless: where `host` has no port, that of the origin does not count, because a proxy has left it out. */
int lin_origin_allowed(const char *origin, const char *host, int portless, const char *const *list, int n);
/* The client's address: `address`, or if that is a proxy of the list, the last address in X-Forwarded-For, or else in Forwarded
 * (RFC 7239), that is not a proxy of the list. These headers are ignored if others send them. */
void lin_client_address(const char *address, const char *forwarded_for, const char *forwarded, const char *const *proxies, int n,
                        char *out, size_t capacity);

#endif
