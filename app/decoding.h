/*
 * decoding.h - how rows of log-probabilities become phones or words: the options that several commands share, what they name
 * (lexicon, language model, phrases) opened once for all streams, and the decoder of one stream.
 *
 * Pipeline: app/recognize or a matrix -> [this, by decoder/search] -> decoder/result -> app/results.
 *
 *   typedef struct values { lin_decoding_values decoding; ... } values;
 *   static const lin_option options[] = {LIN_DECODING_ROWS(values, decoding), ...};
 *
 *   exit_status = lin_decoding_check(parsed, &values->decoding);
 *   lin_decoding_open(&decoding, &values->decoding, phones, row_seconds, quiet, &err);   // shared by all threads
 *   lin_decoder_create(&decoder, &decoding, &err);                                       // one per stream
 *   lin_decoder_reset(&decoder, 0);
 *   while (rows come) lin_decoder_push(&decoder, logp, n, &err);
 *   lin_decoder_take(&decoder, &result, &err);            // what is settled by now; as often as you like
 *   lin_decoder_finish(&decoder, &result, &err);          // the rest, and the alternatives
 *   lin_decoder_free(&decoder);
 *   lin_decoding_close(&decoding);
 */
#ifndef LIN_APP_DECODING_H
#define LIN_APP_DECODING_H

#include "app/options.h"
#include "decoder/result.h"
#include "decoder/search.h"
#include "lexicon/phones.h"

typedef struct lin_decoding_values {
    int beam, beam_labels, words, no_lm, no_unknown, all_words, n_best;
    double beam_score, skip_blank, lm_weight, bonus, unknown, context_bonus;
    const char *lm, *lexicon, *context;
    lin_list phrases;
    unsigned given; /* which of them were, a bit each; by lin_decoding_check */
} lin_decoding_values;

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

typedef struct lin_decoding {
    lin_search search;
    lin_search_context context; /* of the phrases; may be replaced while streams run, and must live as long as it is used */
    double row_seconds;
    int n_best;
    struct lin_decoding_parts *parts; /* what it owns */
} lin_decoding;

/*
 * Opens lexicon, language model and phrases. phones: of the rows; must outlive it. Tells on standard error what was left out unless
 * `quiet`, and that words without a language model are poor in any case. LIN_IO, LIN_FORMAT, LIN_MISMATCH: which file, where, and
 * what to do. On failure all is closed.
 */
lin_status lin_decoding_open(lin_decoding *decoding, const lin_decoding_values *values, const lin_phones *phones,
                             double row_seconds, int quiet, lin_error *err);
void lin_decoding_close(lin_decoding *decoding);

/*
 * Reads the phrases again (--context may have changed; an empty list is fine by now): streams look for the new ones from their
 * next row on, and what is settled stays. No stream may be pushed meanwhile, and what is settled must have been taken. n_phrases:
 * how many there are. On failure the old ones stay.
 */
lin_status lin_decoding_reread(lin_decoding *decoding, int *n_phrases, lin_error *err);

/* Spells words of paths: a lin_result_speller for a lin_decoding; NULL where no words are looked for. */
lin_result_speller lin_decoding_speller(const lin_decoding *decoding);

/* ---- one stream ------------------------------------------------------------------------------------------------------------- */

typedef struct lin_decoder {
    const lin_decoding *decoding;
    void *state;         /* of the search, lin_search_bytes of it: to be saved and loaded */
    lin_path path;       /* settled and not yet taken */
    lin_path tail;       /* room for what is not */
    double from_s, to_s; /* only what begins at from_s or later and before to_s is kept; set by reset to everything */
    int past;            /* something that begins at to_s or later is settled: all before it is */
} lin_decoder;

/* decoder must be zeroed before. On failure lin_decoder_free is allowed. */
lin_status lin_decoder_create(lin_decoder *decoder, const lin_decoding *decoding, lin_error *err);
void lin_decoder_free(lin_decoder *decoder);

void lin_decoder_reset(lin_decoder *decoder, int64_t first_frame);

/* Rows [n, V]. Errors of lin_search_push. */
lin_status lin_decoder_push(lin_decoder *decoder, const float *logp, int n, lin_error *err);

/* Moves what is settled to the end of a result. */
lin_status lin_decoder_take(lin_decoder *decoder, lin_result *result, lin_error *err);

/* Ends the segment: takes the rest too. With n_best over 1 the result gets its alternatives, for which nothing may have been taken
 * before. */
lin_status lin_decoder_finish(lin_decoder *decoder, lin_result *result, lin_error *err);

#endif
