/*
 * decoding_options.h - the option rows of commands that decode, and what about them a table cannot check.
 *
 *   typedef struct values { lin_decoding_values decoding; ... } values;
 *   static const lin_option options[] = {LIN_DECODING_ROWS(values, decoding), ...};
 *
 *   exit_status = lin_decoding_check(parsed, &values->decoding);
 *   lin_decoding_open(&decoding, &values->decoding, ...);                      // linnet/decoding.h
 */
#ifndef LIN_APP_DECODING_OPTIONS_H
#define LIN_APP_DECODING_OPTIONS_H

#include "app/options.h"
#include "linnet/decoding.h"

#define LIN_DECODING_ROWS(owner, field)                                                                                           \
    {.type = LIN_OPTION_HEADING, .help = "Decoding"},                                                                             \
    {.name = "words", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.words),                                                \
     .help = "Words, by a lexicon and a language model; a word that the lexicon lacks comes out as its phonemes, marked"},        \
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(owner, field.lexicon), .value = "DICT",            \
     .help = "Pronunciations in CMUdict's format; if not given, $LINNET_LEXICON, else those installed with the program or by "    \
             "Debian's package pocketsphinx-en-us"},                                                                              \
    {.name = "lm", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.lm),                                                      \
     .help = "Language model, of phonemes or with --words of words: ARPA, plain or gzip, or packed by linnet ngram; a file, or "  \
             "the name of one that is installed with the program, as phones.lm. If not given, with --words, $LINNET_LM, else "    \
             "english.lm"},                                                                                                       \
    {.name = "no-lm", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.no_lm),                                                \
     .help = "Words without a language model, also where one is installed"},                                                      \
    {.name = "lm-weight", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.lm_weight), .min = 0, .max = 100, .value = "W",  \
     .help = "Its weight against the sound; if not given, 0.6, with --words 0.65"},                                               \
    {.name = "bonus", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.bonus), .min = -100, .max = 100, .value = "X",       \
     .help = "For every phoneme or word, natural logarithm: more makes results longer; if not given, 0, with --lm 2, with "       \
             "--words -0.8"},                                                                                                     \
    {.name = "beam", .letter = 'b', .type = LIN_OPTION_INT, .at = offsetof(owner, field.beam), .min = 0, .max = LIN_WORDS_MAX,    \
     .help = "Hypotheses that are followed; 0: the best label of each step, which is fastest, and what is done unless words, a "  \
             "language model, phrases or alternatives are asked for: then 16, with --words 256, if not given"},                   \
    {.name = "beam-score", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.beam_score), .min = 0, .max = 600,              \
     .value = "X", .help = "Hypotheses so much worse than the best, natural logarithm, are dropped; 0: none is; if not given, "   \
                           "12, with --words 14"},                                                                                \
    {.name = "beam-labels", .type = LIN_OPTION_INT, .at = offsetof(owner, field.beam_labels), .min = 0, .max = 65536,             \
     .help = "Only so many labels of a step are followed, the most probable; 0: all; if not given, 20, with --words 0"},          \
    {.name = "skip-blank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.skip_blank), .min = 0, .max = 1, .value = "P",  \
     .help = "Steps whose blank is at least so probable are only waited through; 0: none is; if not given, 0.999, with --words "  \
             "0"},                                                                                                                \
    {.name = "unknown", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.unknown), .min = -1000, .max = 0, .value = "X",    \
     .help = "For a word that the lexicon lacks, natural logarithm, below 0; if not given, -6"},                                  \
    {.name = "no-unknown", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.no_unknown),                                      \
     .help = "Only words of the lexicon"},                                                                                        \
    {.name = "all-words", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.all_words),                                        \
     .help = "Also words of the lexicon that the language model lacks, as its <unk>"},                                            \
    {.name = "n-best", .letter = 'n', .type = LIN_OPTION_INT, .at = offsetof(owner, field.n_best), .text = "1", .min = 1,         \
     .max = LIN_BEAM_MAX, .help = "Alternatives of each result, the best first, in json"},                                        \
    {.name = "context", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.context), .value = "LIST",                           \
     .help = "Phrases that are likely here, one a line, each with a bonus of its own behind a tab if you like"},                  \
    {.name = "phrase", .type = LIN_OPTION_FILES, .at = offsetof(owner, field.phrases), .value = "TEXT",                           \
     .help = "Another such phrase; may be repeated"},                                                                             \
    {.name = "context-bonus", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.context_bonus), .text = "4", .min = -1000,   \
     .max = 1000, .value = "X", .help = "Of a phrase that has none of its own, natural logarithm; below 0: unlikely"}

/* What the table cannot say about how they go together: an exit status, LIN_EXIT_OK if all is well. */
int lin_decoding_check(const lin_parsed *parsed, lin_decoding_values *values);

#endif
