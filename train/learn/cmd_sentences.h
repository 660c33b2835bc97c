/* cmd_sentences.h - reads texts of one sentence per line, for linnet ngram and linnet lm, and has the options for them. */
#ifndef LIN_LEARN_CMD_SENTENCES_H
#define LIN_LEARN_CMD_SENTENCES_H

#include "app/options.h"
#include "base/status.h"

typedef struct lin_sentences_values {
    int ids, lower;
} lin_sentences_values;

#define LIN_SENTENCES_ROWS(owner, field)                                                                                         \
    {.name = "ids", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.ids), .text = "none", .choices = "none|first|last",   \
     .help = "Position of the utterance's name in a line: none, first word (Kaldi text, output of linnet phonemize), or last "   \
             "word in parentheses (TRN)"},                                                                                       \
    {.name = "lower", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.lower),                                               \
     .help = "Convert letters to lower case"}

typedef struct lin_sentence {
    const char *text; /* without blanks at its ends, at least one byte, not NUL-terminated */
    size_t n;
} lin_sentence;

/* where: "file:line", for messages. LIN_FORMAT: this line is reported and left out. */
typedef lin_status lin_sentence_taker(void *context, const char *where, lin_sentence line, lin_error *err);

/* Reads one text, of one form (base/unicode.h); the caller frees it with lin_free. LIN_IO, LIN_FORMAT, LIN_NO_MEMORY. */
lin_status lin_sentences_read(const lin_sentences_values *values, const char *path, char **text, size_t *n, lin_error *err);

/* Reads n texts, or standard input if n is 0. *failed becomes 1 if a line was left out, or one of several files cannot be read;
 * both are reported. LIN_STOPPED if interrupted; LIN_IO, LIN_FORMAT of a single file; LIN_NO_MEMORY. */
lin_status lin_sentences_each(const lin_sentences_values *values, const char *const *paths, int n, lin_sentence_taker *take,
                              void *context, int *failed, lin_error *err);

/* What a report calls n texts: "3 files", the path, or "standard input". */
const char *lin_sentences_name(const char *const *paths, int n, char name[64]);

#endif
