/*
 * serve_calls.h - the calls of linnet serve over HTTP: one table by which requests are routed and forms are checked, and from
 * which /openapi.json and the page /docs are made.
 *
 * Pipeline: serve/serve.c (a request) -> [this] -> serve/serve_files.c (an upload, whose form is checked here).
 *
 *   const lin_call *call = lin_call_find("POST", "/v1/audio/transcriptions", &known);
 *   lin_call_check(call, &form, &ignored, &err);          // LIN_INVALID: the message names the field and what it may be
 *   lin_call_value(call, &form, "response_format", text, sizeof text);
 *
 * A form's empty fields are as if they had not been sent, but for a file. "name[]" and "name[key]" are the field "name". Fields
 * without effect, and those that the call does not have, are accepted and named: clients of other servers send them.
 * Threads: any.
 */
#ifndef LIN_SERVE_SERVE_CALLS_H
#define LIN_SERVE_SERVE_CALLS_H

#include "serve/serve_text.h"

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
    const char *otherwise; /* what it is if it is absent; NULL: nothing */
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
    int is_open;             /* nobody needs a token */
    const lin_field *fields; /* of its form, up to one without a name; NULL: it has none */
} lin_call;

/* HEAD is as GET. NULL: there is none; path_known: with another method there is. */
const lin_call *lin_call_find(const char *method, const char *path, int *path_known);

/* ignored: appends the names of fields without effect, "a, b", for a header. */
lin_status lin_call_check(const lin_call *call, const lin_form *form, lin_buffer *ignored, lin_error *err);
/* A value of a field that the call has, the first, second, ... (0, 1, ...), or NULL; the part is the form's. */
const lin_form_part *lin_call_part(const lin_call *call, const lin_form *form, const char *field, int number);
/* The first value of a field that the call has, cut at the capacity, or what it is otherwise, or "". */
void lin_call_value(const lin_call *call, const lin_form *form, const char *field, char *text, size_t capacity);
/* Whether a flag that the call has was given and is true. */
int lin_call_flag(const lin_call *call, const lin_form *form, const char *field);

/* "", "auto", and codes and names of this language: "en", "en-GB", "English". language: the model's, "en"; of "und", which is not
 * known, all are. */
int lin_language_is(const char *asked, const char *language);
/* Whether one of several, between blanks, is; of none, it is. */
int lin_language_is_among(const char *asked, const char *language);
/* The name of a language as OpenAI's answers have it, "english"; of one that is not known here, its code. */
const char *lin_language_name(const char *language);

/*
 * The likely phrases of a prompt: its parts between marks and line ends, in small letters, those of at most 6 words in which all
 * is letters, of any script; parts with figures or other signs are left out. Appends each with a NUL behind it; at most
 * LIN_MESSAGE_MOST_PHRASES. Returns their number.
 */
int lin_prompt_phrases(const char *text, size_t n, lin_buffer *phrases);

/* OpenAPI 3.0, and a page for people. `streams` is what the page says of WebSockets: lines "path\tabout". */
void lin_calls_put_openapi(lin_buffer *out, const char *version);
void lin_calls_put_page(lin_buffer *out, const char *version, const char *streams);

#endif
