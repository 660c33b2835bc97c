/*
 * serve_text.h - what clients of linnet serve send, and the answers in the forms of other servers. Nothing here needs a network.
 *
 * Pipeline: a message or body -> [this] -> serve/serve_stream.c, serve/serve_files.c; lin_result -> [this] -> an answer.
 * Bytes from outside may be anything: every parser is bounded, and tests/fuzz/fuzz_serve.c runs them.
 * Threads: any.
 */
#ifndef LIN_SERVE_SERVE_TEXT_H
#define LIN_SERVE_SERVE_TEXT_H

#include "app/live_text.h"
#include "decoder/result.h"

/* ---- messages of streams --------------------------------------------------------------------------------------------------- */

enum { LIN_MESSAGE_BYTES = 1 << 16, LIN_MESSAGE_MOST_PHRASES = 1000 }; /* the largest text message, and the most phrases in it */

typedef enum lin_message_kind {
    LIN_MESSAGE_CONFIG,
    LIN_MESSAGE_EOF,
    LIN_MESSAGE_RESET,        /* the utterance ends; Vosk's protocol */
    LIN_MESSAGE_END_UTTERANCE, /* linnet's */
    LIN_MESSAGE_PHRASES,      /* linnet's: others from now on */
    LIN_MESSAGE_SOUND,        /* OpenAI's realtime protocol: a piece of sound in a text */
    LIN_MESSAGE_CLEAR         /* the same: as a reset, and what was said is forgotten */
} lin_message_kind;

typedef enum lin_sample_format {
    LIN_SAMPLES_S16,
    LIN_SAMPLES_F32,
    LIN_SAMPLES_MULAW, /* ITU-T G.711, of telephones */
    LIN_SAMPLES_ALAW,
    LIN_SAMPLES_OPUS /* Opus in Ogg (serve/ogg_opus.h), of one channel once it is decoded */
} lin_sample_format;

/* What a message says; what it does not say keeps its value. */
typedef struct lin_message {
    lin_message_kind kind;
    double rate_hz; /* whole, in 4000..192000 */
    int channels;   /* 1..64 */
    lin_sample_format format;
    int words;      /* Vosk: the list of words too */
    int alternatives;
    int partials;   /* linnet: what still changes, too */
    int push_to_talk; /* linnet: end_utterance will be sent */
    int readable;   /* linnet: provisional results as readable text too */
    int resume;     /* linnet: the first binary message is a saved state */
    double state_s; /* linnet: send the state every so many seconds; 0: never */
    int manual;     /* realtime: utterances are told apart by the client only */
    char languages[1024]; /* realtime: that were asked for, a blank behind each; "": none was */
    double padding_s;   /* realtime: an utterance's sound begins so long before its first phoneme */
    unsigned char *sound; /* [n_sound], realtime; to be released by lin_message_free */
    size_t n_sound;
    char **phrases; /* [n_phrases], likewise */
    int n_phrases, has_phrases;
} lin_message;

lin_message lin_message_default(int rate_hz);
/* What it says, without the memory that it owns. */
lin_message lin_message_plain(const lin_message *message);
void lin_message_free(lin_message *message);

/* In vosk-server's protocol: {"config": {...}}, {"eof": 1}, {"reset": 1}. Keys that it does not know are ignored, as Vosk does.
 * In linnet's: {"type": "config", ...}, {"type": "end"}, {"type": "end_utterance"}, {"type": "phrases", "phrases": [...]};
 * unknown keys of a config are errors. LIN_FORMAT, LIN_INVALID. */
lin_status lin_message_parse_vosk(const char *text, size_t n, lin_message *message, lin_error *err);
lin_status lin_message_parse(const char *text, size_t n, lin_message *message, lin_error *err);

/* Bytes of a sample; not of OPUS. */
size_t lin_sample_width(lin_sample_format format);
/* Samples of any format but OPUS from bytes that may be cut anywhere: `rest` keeps up to 3 bytes of a sample that is not
 * complete. floats [(n + 3) / bytes of a sample] receives them; values that are not finite become 0. Returns their number. */
typedef struct lin_sample_rest {
    unsigned char bytes[4];
    int n;
} lin_sample_rest;
size_t lin_samples_take(lin_sample_format format, const void *bytes, size_t n, lin_sample_rest *rest, float *floats);

/* ---- forms of multipart/form-data (RFC 7578) ------------------------------------------------------------------------------- */

enum { LIN_FORM_PARTS = 64 };

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

/* ---- items: words, or phones where words were not looked for --------------------------------------------------------------- */

int lin_result_items(const lin_result *result);
double lin_result_item_start(const lin_result *result, int item);
/* Appends a phone, a word, or the mark of one outside the lexicon, "[hh_ah]". */
void lin_result_item_text(lin_buffer *out, const lin_live_words *words, const lin_result *result, int item);

/* ---- answers --------------------------------------------------------------------------------------------------------------- */

/* Vosk's list: {"conf", "start", "end", "word"} of every word, of every phone where words were not looked for; separated by
 * commas, without brackets. Its text is lin_live_put_text. */
void lin_vosk_put_items(lin_buffer *out, const lin_live_words *words, const lin_result *result);
/* {"alternatives": [{"confidence", "text", "result"}]} of a result that has them. */
void lin_vosk_put_alternatives(lin_buffer *out, const lin_live_words *words, const lin_result *result, int n, int with_items);

/* The form of OpenAI's transcriptions with times: "verbose_json". segments, items: which lists (timestamp_granularities).
 * Segments end at pauses of 0.8 s and after 30 s. text: of the whole; spell writes the text of a segment (its words first ..
 * first + n - 1). */
typedef struct lin_verbose {
    const char *language, *text;
    int segments, items;
    int items_inside; /* each segment has its words, as whisper.cpp's server writes them */
    lin_status (*spell)(void *context, const lin_result *part, lin_buffer *out, lin_error *err);
    void *context;
} lin_verbose;
lin_status lin_openai_put_verbose(lin_buffer *out, const lin_live_words *words, const lin_result *result, const lin_verbose *how,
                                  lin_error *err);
/* {"error": {"message", "type", "param", "code"}} */
void lin_openai_put_error(lin_buffer *out, int status, const char *message);

/* ---- secrets --------------------------------------------------------------------------------------------------------------- */

enum { LIN_TOKEN_LEAST = 16 }; /* signs of a token that is hard to guess */

/* 1 if the token is a line of the list, without blanks around it (blank lines and those with # first are none). The time depends
 * on the lengths only. */
int lin_token_known(const char *list, size_t n_list, const char *token, size_t n_token);
/* LIN_FORMAT if the list, the file `name`, has no token, or one that no request can hold. *weak: the number of the first line
 * with one of less than LIN_TOKEN_LEAST signs; 0: none has. */
lin_status lin_tokens_check(const char *name, const char *list, size_t n, int *weak, lin_error *err);
/* The token of a request: "Bearer X", access_token=X of a query (RFC 6750), or openai-insecure-api-key.X of the subprotocols of a
 * WebSocket, as OpenAI's clients in browsers send it; its length, 0: none. */
size_t lin_token_find(const char *authorization, const char *query, const char *protocols, const char **token);
/* 1 if a server that listens on `listens` ("*": on all addresses) may be asked for by the name of this header Host: an address,
 * the name that it listens on, localhost, one of the list, or none. A page of a stranger whose name leads to this machine (DNS
 * rebinding) asks for the stranger's name. */
int lin_host_allowed(const char *host, const char *listens, const char *const *list, int n);
/* 1 if a page of this origin may use a server that was reached as `host`: the same host and port, or one of the list.
 * portless: where `host` has no port, that of the origin does not count, because a proxy has left it out. */
int lin_origin_allowed(const char *origin, const char *host, int portless, const char *const *list, int n);
/* Who asks: `address`, or, of a proxy of the list, whom it asks for by X-Forwarded-For or else Forwarded (RFC 7239): the last one
 * that is no proxy of the list. Headers of others are not believed. */
void lin_client_address(const char *address, const char *forwarded_for, const char *forwarded, const char *const *proxies, int n,
                        char *out, size_t capacity);

/* ---- events of OpenAI's realtime protocol ---------------------------------------------------------------------------------- */

enum { LIN_REALTIME_BYTES = 4 << 20 }; /* the largest event: a minute of sound as base64 */

/* session.update (also transcription_session.update): its format, language, languages, prompt, keywords, turn_detection and of
 * that prefix_padding_ms; all else is ignored. input_audio_buffer.append (LIN_MESSAGE_SOUND, decoded), .commit
 * (LIN_MESSAGE_RESET) and .clear (LIN_MESSAGE_CLEAR). LIN_FORMAT, LIN_INVALID, LIN_UNSUPPORTED for a format that is none of
 * audio/pcm, audio/pcmu and audio/pcma. */
lin_status lin_realtime_parse(const char *text, size_t n, lin_message *message, lin_error *err);

/* bytes [n / 4 * 3]; their number, or -1: it is no base64. Blanks and missing padding are mistakes. */
long lin_base64_decode(const char *text, size_t n, unsigned char *bytes);

#endif
