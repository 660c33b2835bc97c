/*
 * trn_reader.h - the state shared by the readers of trn.h while a file is read. Inside decoder/ only.
 */
#ifndef LIN_DECODER_TRN_READER_H
#define LIN_DECODER_TRN_READER_H

#include "base/textfile.h"
#include "decoder/trn.h"

// A line of a CTM file, until they can be put in order.
typedef struct lin_ctm_row {
    int utterance, order, token;
    double start;
} lin_ctm_row;

typedef struct lin_trn_reader {
    const char *name;
    lin_trn_options options;
    lin_symbols *tokens;
    lin_trn *trn;
    char *folded; // an id or token in lower case
    size_t folded_capacity;
    lin_ctm_row *rows;
    size_t n_rows, rows_capacity;
    lin_symbols channels;
    int *channel_of; // of each CTM utterance
    size_t channel_capacity;
} lin_trn_reader;

/* A new utterance, or LIN_FORMAT if its id came before. */
lin_status lin_trn_add_utterance(lin_trn_reader *reader, const char *id, size_t n, int line, lin_error *err);

/* One more token of the utterance added last: folded, mapped, numbered. */
lin_status lin_trn_add_token(lin_trn_reader *reader, const char *token, size_t n, lin_error *err);

/* The fields of [at, end) as tokens. */
lin_status lin_trn_add_tokens(lin_trn_reader *reader, const char *at, const char *end, lin_error *err);

/* One line of a JSON file (trn_json.c). */
lin_status lin_trn_json_line(lin_trn_reader *reader, const lin_lines *line, lin_error *err);

#endif
