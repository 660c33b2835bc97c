/*
 * trn_reader.h - the state shared by the readers of trn.h while a file is read. Inside score/ only.
 */
#ifndef LIN_SCORE_TRN_READER_H
#define LIN_SCORE_TRN_READER_H

#include "base/buffer.h"
#include "base/textfile.h"
#include "train/score/edit.h"
#include "train/score/trn.h"

// A line of a CTM file, until they can be put in order. token: or a mark of edit.h.
typedef struct lin_ctm_row {
    int utterance, order, token;
    double start, middle;
} lin_ctm_row;

typedef struct lin_trn_reader {
    const char *name;
    lin_trn_options options;
    lin_symbols *tokens;
    lin_trn *trn;
    char *folded; // an id or token in lower case
    size_t folded_capacity;
    lin_buffer plain; // a text with typewriter's apostrophes, hyphens and blanks
    int *spelled; // of lin_trn_spell
    size_t spelled_capacity, n_spelled;
    int depth;    // of braces; within them, a number has one reading
    lin_buffer joined; // "file channel", "speaker-000"
    int is_optional; // the token that is being read
    lin_ctm_row *rows;
    size_t n_rows, rows_capacity;
    size_t first_alternative; // the row of the open <ALT_BEGIN>, plus 1; 0: none is open
    double start;             // of the last word
    int n_alternatives;       // words since the last <ALT_BEGIN> or <ALT>
    int *n_of_speaker;        // utterances of each speaker of an STM
    size_t n_of_speaker_capacity;
    lin_symbols channels; // of a CTM
} lin_trn_reader;

void lin_trn_reader_free(lin_trn_reader *reader);

/* A new utterance, or LIN_FORMAT if its id came before. */
lin_status lin_trn_add_utterance(lin_trn_reader *reader, const char *id, size_t n, int line, lin_error *err);

/* The fields of [at, end) as tokens of the utterance added last: folded, mapped, numbered. */
lin_status lin_trn_add_tokens(lin_trn_reader *reader, const char *at, const char *end, lin_error *err);

/* lin_trn_add_tokens with sclite's alternatives, optional and null words. */
lin_status lin_trn_add_choices(lin_trn_reader *reader, const char *at, const char *end, int line, lin_error *err);

/* A word as sclite reads it: "a*" is a, "(a)" an optional a, "@" the null word. */
typedef struct lin_trn_word {
    const char *text;
    size_t n;
    int is_null, is_optional;
} lin_trn_word;

lin_trn_word lin_trn_read_word(const char *text, size_t n);

/* What a word is scored as, to reader->spelled: tokens, folded and mapped, with the mark of edit.h before optional ones. With
 * options.normalize, the words of a text, and marks around the readings of a number. */
lin_status lin_trn_spell(lin_trn_reader *reader, const char *text, size_t n, lin_error *err);

/* LIN_FORMAT: "name:line: what". */
lin_status lin_trn_bad_line(const lin_trn_reader *reader, int line, const char *what, lin_error *err);

/* The number of a string, folded. */
lin_status lin_trn_add_symbol(lin_trn_reader *reader, lin_symbols *symbols, const char *text, size_t n, int *index,
                              lin_error *err);

/* One line of a CTM, and the end of it (trn_times.c). */
lin_status lin_trn_ctm_line(lin_trn_reader *reader, const lin_lines *line, lin_error *err);
lin_status lin_trn_ctm_done(lin_trn_reader *reader, lin_error *err);

/* One line of an STM (trn_times.c). */
lin_status lin_trn_stm_line(lin_trn_reader *reader, const lin_lines *line, lin_error *err);

#endif
