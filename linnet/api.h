/*
 * api.h - what the files behind linnet.h share: the objects that it leaves opaque, and how options cross it.
 *
 * Pipeline: a program -> linnet.h -> linnet/api.c, linnet/api_streams.c, align/api_align.c -> [the library's own headers].
 */
#ifndef LIN_LINNET_API_H
#define LIN_LINNET_API_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "decoder/result.h"
#include "decoder/writers.h"
#include "linnet/decoding.h"
#include "linnet/linnet.h"
#include "linnet/files.h"
#include "linnet/utterances.h"

/* Writes `defaults` [full] to a caller's struct of `size` bytes; what follows them is zeroed. */
void lin_api_init(void *options, size_t size, const void *defaults, size_t full);

/* Puts a caller's options over the defaults in `options` [full]. given NULL: the defaults stay. LIN_INVALID: not initialised;
 * LIN_UNSUPPORTED: fields are set that this version does not have. */
lin_status lin_api_take(void *options, size_t full, const void *given, const char *name, lin_error *err);

struct linnet_model {
    lin_recognizer r;
    atomic_int owners; /* the caller, and every object that uses it */
    linnet_model_info info;
    const char **ipa; /* [2, V]: the IPA, and the names */
    char device[32];             /* where it was opened, as the options named it */
    linnet_precision precision;  /* likewise */
    _Atomic(lin_punctuation *) punctuation; /* opened when it is first needed */
    _Atomic(lin_g2p_rules *) speller;       /* likewise */
};

linnet_model *lin_api_keep_model(linnet_model *model); /* adds an owner; linnet_model_destroy removes one */

linnet_decoder *lin_api_keep_decoder(linnet_decoder *decoder);
/* The model of a second pass: the one that is given, else the decoder's (options.best); kept. NULL: none. */
linnet_model *lin_api_second_pass(linnet_model *given, const linnet_decoder *decoder);

/* How a stream decodes: a copy of the decoder's decoding, whose context may be replaced; decoder NULL: greedy. It owns nothing:
 * the decoder must be kept. LIN_MISMATCH for a decoder of another model. */
lin_status lin_api_decoding(const linnet_model *model, const linnet_decoder *decoder, lin_decoding *decoding, lin_error *err);

/* A caller's sound: with the defaults (*taken), and as linnet/files needs it (*sound). LIN_INVALID. */
lin_status lin_api_sound(const linnet_sound *given, linnet_sound *taken, lin_sound *sound, lin_error *err);

struct linnet_result {
    linnet_model *model; /* kept */
    lin_result result;
    linnet_result_info info;
    char warning[256];
    linnet_phone *phones;
    int n_phones, phones_capacity;
    linnet_word *words;
    int n_words, words_capacity;
    lin_buffer marks; /* spellings of words outside the lexicon, each with its NUL */
    linnet_keyword *keywords;
    int n_keywords, keywords_capacity;
    linnet_result **alternatives;
    int n_alternatives;
    lin_buffer text, readable;
    int has_text, has_readable;
};

/* An empty result, with its name for writers. */
lin_status lin_api_result_create(linnet_model *model, linnet_result **result, lin_error *err);

/* Brings what callers see up to what result->result holds: phones and words behind those that are there already, and, where
 * `whole`, the alternatives. LIN_NO_MEMORY: what callers see is empty. */
lin_status lin_api_result_update(linnet_result *result, int whole, lin_error *err);

/* Appends the rest of `from`, of whose beginning the result is a copy, or empty; then lin_api_result_update. */
lin_status lin_api_result_follow(linnet_result *result, const lin_result *from, int whole, lin_error *err);

/* Empties it; its memory is used again. */
void lin_api_result_clear(linnet_result *result);

#endif
