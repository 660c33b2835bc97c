/*
 * decoding.h - how rows of log-probabilities become phones or words: the options, and the lexicon, language model and phrases
 * that they name, opened once for all streams: what linnet.h calls a linnet_decoder.
 *
 * Pipeline: options -> [this] -> lin_row_decoder, for each stream (linnet/utterances.h).
 *
 *   lin_decoding_values values = lin_decoding_default();
 *   lin_decoding_open(&decoding, &values->decoding, phones, row_seconds, delay_s, &warnings, &err);   // shared by all threads
 *   lin_decoding_close(&decoding);
 */
#ifndef LIN_LINNET_DECODING_H
#define LIN_LINNET_DECODING_H

#include "base/buffer.h"
#include "decoder/result.h"
#include "decoder/search.h"
#include "linnet/linnet.h"
#include "linnet/judges.h"
#include "model/voice.h"

// Settles words earlier than 0 does, and changes none of dev_native and dev_nonnative (docs/live.md).
#define LIN_SETTLE 7.0
// By cost and convention, not fitted: no network yet is better than the installed n-gram model (bench/LOG.md).
#define LIN_RESCORE_N 20
#define LIN_RESCORE_WEIGHT 0.5
// Both networks count the same.
#define LIN_COMBINE_WEIGHT 0.5

// Of a word search over utterances that are heard whole (recipes/open/LOG.md).
#define LIN_WHOLE_WIDTH 1024
#define LIN_WHOLE_SCORE 14

// Of a sentence of a grammar: little other speech is taken for one (docs/commands.md).
#define LIN_GRAMMAR_CONFIDENCE 0.25

// Halves the words that are shown and taken back; words are shown 60 ms later (docs/live.md).
#define LIN_SHOW 0.45

/* NAN, or -1 for beam_labels: not given, so the default of the kind of search. */
typedef struct lin_decoding_values {
    int beam, beam_labels, words, no_lm, no_unknown, all_words, n_best, rescore_n;
    int readable; /* words as readable text, in which words below min_confidence are "[...]"; both are for the formats, not the
                     decoding */
    double beam_score, skip_blank, blank_penalty, settle, show, lm_weight, bonus, unknown, context_bonus, min_confidence;
    double rescore_weight, combine_weight;
    const char *combine; /* a model of sound, for whole utterances: the caller opens it (lin_decoding.combined). NULL: none */
    const char *lm, *lexicon, *add_lexicon, *g2p, *context;
    const char *rescore; /* a network of tokens that scores the best hypotheses again (linnet/judges.h); NULL: none */
    lin_list phrases;
    int phrases_come;          /* phrases will be given later (lin_decoding_make_phrases): the search must be able to use them */
    lin_list keywords;         /* "hey linnet" or "hey linnet=0.3" (linnet/pronounce.h) */
    const char *keywords_file; /* a line for each; NULL: none */
    double after_keyword_s;    /* a stream is decoded only for so long after a keyword; 0: always */
    const char *grammar;       /* the only sentences that are found (linnet/pronounce.h): words must be 1. NULL: none */
    int speakers; /* to tell apart: their number, LIN_SPEAKERS_UNKNOWN, or 0: not at all */
} lin_decoding_values;

/* Greedy; phrases have a bonus of 4. */
lin_decoding_values lin_decoding_default(void);

lin_search_kind lin_decoding_kind(const lin_decoding_values *values);
lin_words_options lin_decoding_words_options(const lin_decoding_values *values, int whole); /* as lin_decoding.whole */

typedef struct lin_decoding {
    lin_search search; /* of a stream; lin_decoding_open_for makes it `whole` for a network that cannot stream */
    lin_search whole;  /* of utterances that are heard whole and settle at their end. Over words it is wider, and the best
                          sequence is that of the largest exact sum; else it is `search` */
    lin_search_context context; /* of the phrases; may be replaced while streams run, and must live as long as it is used */
    const lin_recognizer *combined; /* a second network that also scores the hypotheses of utterances that are heard whole
                                       (linnet/judges.h); the caller sets it. NULL: none */
    double combine_weight, blank_penalty;  /* of `combined`, 0 to 1; each blank counts e^-X */
    double row_seconds, delay_s; /* row i is at i row_seconds; its sound delay_s before, but not before 0. A first phone that
                                    would end there is early: times up to 2 delay_s are then halved, so that phones have a
                                    length */
    int n_best;
    double show; /* provisional words from the first one below this confidence on are shown by their phones */
    lin_rescorer *rescorer; /* of `rescore`; NULL: none */
    lin_voice *voice;       /* tells speakers apart (linnet/diarizer.h); owned. NULL: they are not */
    int speakers;           /* lin_diarizer.wanted of whole sounds, .most of streams */
    int language;           /* it compares sequences with a language model: its rows are those of lin_worker.search */
    int after;              /* of the stream's search: lin_search_for_keywords */
    lin_keywords *keywords; /* which both searches look for; owned, as `parts`. NULL: none */
    struct lin_decoding_parts *parts; /* what else it owns; NULL: nothing */
} lin_decoding;

/* Greedy decoding of V columns, which owns nothing. */
lin_decoding lin_decoding_greedy(int V, double row_seconds, double delay_s);

/*
 * Opens lexicon, language model and phrases. phones: of the rows; must outlive it. Entries that are left out are reported through
 * `warnings` (may be NULL). LIN_IO, LIN_FORMAT, LIN_MISMATCH: the message has the file, the place, and what to do. On failure
 * everything is closed.
 */
lin_status lin_decoding_open(lin_decoding *decoding, const lin_decoding_values *values, const lin_phones *phones,
                             double row_seconds, double delay_s, const lin_warnings *warnings, lin_error *err);
/* lin_decoding_open for the rows of a recogniser, which must outlive it. A model that cannot stream gets the search for whole
 * utterances. */
lin_status lin_decoding_open_for(const lin_recognizer *recognizer, const lin_decoding_values *values,
                                 const lin_warnings *warnings, lin_decoding *decoding, lin_error *err);
void lin_decoding_close(lin_decoding *decoding);

/*
 * Writes the lexicon of a word search as the search uses it (lexicon/tree.h) to `path`, NULL: beside the lexicon, with this
 * ending, where lin_decoding_open finds it: it maps that file instead of reading the lexicon, if lexicon, phones, language model
 * and all_words are the same. LIN_INVALID without a word search; LIN_UNSUPPORTED for a lexicon with lines that are left out,
 * which are to be reported each time, or that is not a regular file; LIN_IO, LIN_NO_MEMORY.
 */
#define LIN_PACKED_LEXICON ".tree"
lin_status lin_decoding_pack_lexicon(const lin_decoding *decoding, const char *path, lin_error *err);

/*
 * Reads the phrases or the grammar again (their file may have changed; here the list of phrases may be empty): streams use the
 * new ones from their next row on, and settled results stay; an utterance that is being spoken begins anew with another grammar.
 * No stream may be pushed meanwhile, and settled results must have been taken. n_phrases: their number, of a grammar that of its
 * words. On failure the old ones remain.
 */
lin_status lin_decoding_reread(lin_decoding *decoding, int *n_phrases, lin_error *err);

/*
 * Phrases for a single stream: copy the lin_decoding and use them; they must live as long as it is used. n = 0 gives none.
 * LIN_UNSUPPORTED for greedy decoding; LIN_INVALID for a phrase without words or pronunciation, and for n < 0.
 * Opens the lexicon again. On failure *phrases is empty. Any thread.
 */
typedef struct lin_phrases {
    lin_context *phones;
    lin_word_context *words;
    struct lin_sentences *sentences; /* of a grammar, in place of the decoder's words */
} lin_phrases;

lin_status lin_decoding_make_phrases(const lin_decoding *decoding, const linnet_phrase *list, int n, lin_phrases *phrases,
                                     lin_error *err);
/* A grammar for a single stream: its text (linnet/pronounce.h). LIN_UNSUPPORTED without a search for words, with alternatives
 * or second scores. */
lin_status lin_decoding_make_grammar(const lin_decoding *decoding, const char *text, int repeats, lin_phrases *phrases,
                                     lin_error *err);
void lin_phrases_use(const lin_phrases *phrases, lin_decoding *decoding); /* a copy of the lin_decoding, for that stream */
void lin_phrases_free(lin_phrases *phrases);

/* 1: of a grammar, whose sentences are utterances; NULL is fine */
int lin_decoding_has_grammar(const lin_decoding *decoding);

/* Names of the other files that its grammar needs, as of lin_grammar_open, by the last reading; NULL: it has none. */
const lin_buffer *lin_decoding_grammar_files(const lin_decoding *decoding);

/* Words that can be recognised; 0 without a word search. */
int lin_decoding_vocabulary(const lin_decoding *decoding);

/* When the sound of a row was, in seconds. early: the first phone of the sound is early. */
double lin_decoding_seconds(const lin_decoding *decoding, int early, int64_t row);
/* Appends a path to a result, as lin_result_add_path. *early: 1 if the first phone, which came before, is early; it becomes 1 if
 * the path begins with an early one. */
lin_status lin_decoding_add(const lin_decoding *decoding, const lin_path *path, int *early, lin_result *result, lin_error *err);
/* A lin_result_speller of the words of a word search; context: the lin_decoding. */
const char *lin_decoding_spell(const void *context, int word);

#endif
