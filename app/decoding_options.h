/*
 * decoding_options.h - the option rows of commands that decode, and the checks that a table cannot make.
 *
 *   typedef struct values { lin_decoding_values decoding; ... } values;
 *   static const lin_option options[] = {LIN_DECODING_ROWS(values, decoding), ...};
 *
 *   exit_status = lin_decoding_check(parsed, &values->decoding, 0);
 *   lin_decoding_open(&decoding, &values->decoding, ...);                      // linnet/decoding.h
 */
#ifndef LIN_APP_DECODING_OPTIONS_H
#define LIN_APP_DECODING_OPTIONS_H

#include "app/lexicon_options.h"
#include "linnet/decoding.h"

#define LIN_DECODING_ROWS(owner, field) LIN_DECODING_ROWS_WITH(owner, field, NULL)

/* words_default: "yes" for commands that recognise words unless told otherwise. */
#define LIN_DECODING_ROWS_WITH(owner, field, words_default)                                                                      \
    {.type = LIN_OPTION_HEADING, .help = "Decoding"},                                                                            \
    {.name = "words", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.words), .text = words_default,                        \
     .help = "Recognise words with a lexicon and a language model; a word outside the lexicon is written as its phonemes, "      \
             "marked; in readable text as it may be spelled"},                                                                   \
    {.name = "readable", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.readable), .text = "yes",                          \
     .help = "Words as readable text (docs/readable.md): numbers as digits, capitals, full stops, commas, question marks; in "   \
             "text without ids, srt, vtt, and in a field of json. All other formats have plain words. --no-readable: these "     \
             "too"},                                                                                                             \
    {.name = "min-confidence", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.min_confidence), .text = "0", .min = 0,    \
     .max = 1, .value = "P",                                                                                                     \
     .help = "Readable text has [...] for words whose confidence is less"},                                                      \
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(owner, field.lexicon), .value = "DICT",           \
     .help = "Pronunciations in CMUdict's format, with probabilities or without (docs/formats.md); if not given, "               \
             "$LINNET_LEXICON, else those installed with the program or by Debian's package pocketsphinx-en-us"},                \
    LIN_ADD_LEXICON_ROW(owner, field.add_lexicon,                                                                                \
                        ". They can be recognised though the language model lacks them, as its <unk>"),                          \
    LIN_G2P_ROW(owner, field.g2p),                                                                                               \
    {.name = "lm", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.lm),                                                     \
     .help = "Language model, of phonemes or with --words of words: ARPA, plain or gzip, or packed by linnet ngram; a file, "    \
             "or the name of an installed one, such as phones.lm. If not given, with --words, $LINNET_LM, else the installed "   \
             "one of words"},                                                                                                    \
    {.name = "no-lm", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.no_lm),                                               \
     .help = "Words without a language model, even if one is installed"},                                                        \
    {.name = "lm-weight", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.lm_weight), .min = 0,          \
     .max = 100, .value = "W", .help = "Weight of the language model; if not given, 0.7, with --words 0.85"},                    \
    {.name = "bonus", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.bonus), .min = -100, .max = 100,   \
     .value = "X",                                                                                                               \
     .help = "Bonus for every phoneme or word, natural logarithm: larger values make results longer; if not given, 0, with "     \
             "--lm 2, with --words -1"},                                                                                         \
    {.name = "beam", .letter = 'b', .type = LIN_OPTION_INT, .at = offsetof(owner, field.beam), .min = 0, .max = LIN_WORDS_MAX,   \
     .help = "Number of hypotheses; 0: greedy decoding, the best label of each step, which is fastest and the default "          \
             "without words, language model, phrases and alternatives; with one of these, if not given, 16, with --words 512, "  \
             "and 1024 where utterances are heard whole (a model that cannot stream, --second-pass)"},                           \
    {.name = "beam-score", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.beam_score), .min = 0,        \
     .max = 600, .value = "X",                                                                                                   \
     .help = "Drop hypotheses that are worse than the best by more than this, natural logarithm; 0: none; if not given, "       \
             "12, with --words 13, where utterances are heard whole 14"},                                                       \
    {.name = "beam-labels", .under = "tune", .type = LIN_OPTION_INT, .at = offsetof(owner, field.beam_labels), .min = 0,         \
     .max = 65536,                                                                                                               \
     .help = "Number of labels followed per step, the most probable ones; 0: all; if not given, 20, with --words 0"},            \
    {.name = "skip-blank", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.skip_blank), .min = 0,        \
     .max = 1, .value = "P",                                                                                                     \
     .help = "Skip steps whose blank has at least this probability; 0: none; if not given, 0.999, with --words 0.9999"},         \
    {.name = "blank-penalty", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.blank_penalty),            \
     .min = -100, .max = 100, .value = "X",                                                                                      \
     .help = "Taken from the natural logarithm of each step's blank, with --words: larger values find more words; if not "       \
             "given, 1.5"},                                                                                                      \
    {.name = "settle", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.settle), .min = 0, .max = 600,    \
     .value = "X",                                                                                                               \
     .help = "With --words: a hypothesis that is worse than the best by more than this, natural logarithm, does not keep words " \
             "unsettled; it falls to 0 within 3 s after a word; 0: all hypotheses do, for any time; if not given, 7"},           \
    {.name = "show", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.show), .min = 0, .max = 1,          \
     .value = "P",                                                                                                               \
     .help = "With --words: live text shows words that are not settled by their phonemes, from the first one of less "           \
             "confidence than this on; 0: none; if not given, 0.45"},                                                            \
    {.name = "unknown", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.unknown), .min = -1000,          \
     .max = 0, .value = "X", .help = "Penalty of a word outside the lexicon, natural logarithm, below 0; if not given, -6"},     \
    {.name = "no-unknown", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.no_unknown),                                     \
     .help = "Only words of the lexicon"},                                                                                       \
    {.name = "all-words", .under = "tune", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.all_words),                      \
     .help = "Add words of the lexicon that the language model lacks, as its <unk>"},                                            \
    {.name = "tune", .type = LIN_OPTION_SETTINGS,                                                                                \
     .help = "Values of the search and of the ends of utterances, for experts"},                                                 \
    {.name = "n-best", .letter = 'n', .type = LIN_OPTION_INT, .at = offsetof(owner, field.n_best), .text = "1", .min = 1,        \
     .max = LIN_BEAM_MAX, .help = "Number of alternatives of each result, best first, in json"},                                 \
    {.name = "rescore", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.rescore), .value = "MODEL",                         \
     .help = "A second pass when an utterance ends: its best hypotheses are scored again by this network of tokens, of words "   \
             "(words: the installed one) or of phonemes (docs/lm.md). They are then settled only with their utterance"},         \
    {.name = "rescore-n", .under = "tune", .type = LIN_OPTION_INT, .at = offsetof(owner, field.rescore_n), .text = "20",         \
     .min = 2, .max = LIN_WORDS_NBEST_MAX, .help = "Number of hypotheses that --rescore and --combine compare"},                 \
    {.name = "rescore-weight", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rescore_weight),          \
     .text = "0.5", .min = 0, .max = 1, .value = "W",                                                                            \
     .help = "Weight of the network of --rescore in the language model; the rest is of --lm. 0: no second pass"},                \
    {.name = "combine-weight", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.combine_weight),          \
     .text = "0.5", .min = 0, .max = 1, .value = "W",                                                                            \
     .help = "Weight of the model of --combine in the score of the sound; the rest is of --model. 0: none"},                     \
    {.name = "context", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.context), .value = "LIST",                          \
     .help = "File of likely phrases, one per line, each optionally with its own bonus after a tab"},                            \
    {.name = "phrase", .type = LIN_OPTION_FILES, .at = offsetof(owner, field.phrases), .value = "TEXT",                          \
     .help = "A likely phrase; may be repeated"},                                                                                \
    {.name = "context-bonus", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.context_bonus),            \
     .text = "4", .min = -1000, .max = 1000, .value = "X",                                                                       \
     .help = "Bonus of a phrase without its own, natural logarithm; below 0: unlikely"}

/* Checks combinations that the table cannot check: an exit status, LIN_EXIT_OK on success. phrases_come: there can be phrases
 * without --context and --phrase, those of clients. */
int lin_decoding_check(const lin_parsed *parsed, lin_decoding_values *values, int phrases_come);

#endif
