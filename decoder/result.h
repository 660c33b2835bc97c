/*
 * result.h - what was recognised: the path of a search in frames, and from it the result of an utterance in seconds.
 *
 * Pipeline: decoder/{search,beam,words}, align/align -> [path -> result] -> decoder/writers.
 * Searches append settled phones and words to a path of the caller, and write provisional ones to another.
 *
 *   lin_path settled = {0};                                      // empty paths and results need no creation
 *   lin_beam_push(beam, state, NULL, logp, n, &settled, &err);
 *   lin_result result = {0};
 *   lin_result_begin(&result, "utt-1", NULL, 1, &err);           // speaker, length, phones and words with times and confidences
 *   lin_result_add_path(&result, &settled, 0.01, spell, context, &err);   // for each part
 *   result.seconds = 2.5;
 *   ... writers ...
 *   lin_path_free(&settled);
 *   lin_result_free(&result);
 *
 * Threads: one at a time per path and result.
 */
#ifndef LIN_DECODER_RESULT_H
#define LIN_DECODER_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ---- a path ---------------------------------------------------------------------------------------------------------------- */

typedef struct lin_path_phone {
    int label;          /* 1 .. V-1 */
    int stress;         /* of a known pronunciation: 1 + CMUdict's digit; 0: not known */
    float confidence;   /* exp of the mean log-probability of the label over the frames of its run, in (0, 1] */
    int64_t start, end; /* first frame of the run, and the frame after its last */
} lin_path_phone;

/* A keyword that was found (decoder/keywords.h). */
typedef struct lin_path_keyword {
    int keyword;        /* its number in the list */
    float confidence;   /* in (0, 1] */
    int64_t start, end; /* frames */
} lin_path_keyword;

/* Speech that is not in the known text, frames. */
typedef struct lin_path_other {
    int64_t start, end;
} lin_path_other;

enum { LIN_WORD_UNKNOWN = -1 };

typedef struct lin_path_word {
    int word;                  /* number in the lexicon or context; LIN_WORD_UNKNOWN: in neither, only its phones are known */
    int first_phone, n_phones; /* of the path's phones */
    float confidence;          /* in (0, 1]; defined by the search that filled it */
    int64_t start, end;        /* of its first phone, of its last */
} lin_path_word;

/* Phones are found near their middle: speech begins this long before its first phone and ends this long behind its last one; it
 * continues if the next phone comes within LIN_SPEECH_PAUSE_S. Measured on aligned training sets (bench/diarize.py). */
#define LIN_SPEECH_BEFORE_S 0.03
#define LIN_SPEECH_BEHIND_S 0.10
#define LIN_SPEECH_PAUSE_S 0.5

typedef struct lin_segment {
    double start_s, end_s; /* seconds from the beginning of the sound */
} lin_segment;

typedef struct lin_path {
    lin_path_phone *phones;
    int n_phones, phones_capacity;
    lin_path_word *words;
    int n_words, words_capacity;
    lin_path_other *others; /* of align/align */
    int n_others, others_capacity;
    lin_path_keyword *keywords; /* in the order in which they were certain */
    int n_keywords, keywords_capacity;
    int incomplete;  /* the last word is not complete: only its first phones are known */
    double score;    /* natural logarithm of the whole score: acoustic + weighted language model + bonuses */
    double acoustic; /* natural logarithm of the sum over the alignments that were followed */
    double language; /* natural logarithm by the language model, not weighted; 0 without one */
} lin_path;

/* Memory for this many more phones and words, so that adding them allocates nothing. On failure the path is unchanged. */
lin_status lin_path_reserve(lin_path *path, int more_phones, int more_words, lin_error *err);
lin_status lin_path_reserve_keywords(lin_path *path, int64_t more, lin_error *err);
void lin_path_clear(lin_path *path); /* keeps the memory */

/* Appends phones, words and keywords, and adds the scores. LIN_NO_MEMORY: nothing is appended. */
lin_status lin_path_append(lin_path *path, const lin_path *more, lin_error *err);
void lin_path_free(lin_path *path);

/* ---- a result -------------------------------------------------------------------------------------------------------------- */

enum { LIN_RESULT_NOTHING = -1 };

typedef struct lin_result_phone {
    int label; /* index into the phone set */
    int stress; /* of the pronunciation: 1 + CMUdict's digit; 0: not known */
    float confidence;
    double start_s, end_s; /* seconds from the beginning of the audio */
    float goodness;        /* of pronunciation (align/goodness.h), natural logarithm, 0 at best; NAN where it was not measured */
    int heard;             /* what was said instead, if measured: a label, LIN_RESULT_NOTHING, or 0: the phone itself */
    int speaker;           /* who says it (linnet/diarizer.h): 1, 2, ...; 0: not known. A word is its first phone's speaker's */
} lin_result_phone;

typedef struct lin_result_word {
    size_t text; /* where its spelling begins in the result's text: lin_result_word_text */
    int known;   /* 0: outside the lexicon; its spelling is its phones */
    int first_phone, n_phones;
    float confidence;
    double start_s, end_s;
    size_t written; /* where the result has_written: the same with the punctuation that the text has */
    int glued;      /* no blank stands before it there */
    int line;       /* a line begins with it there; 2: a paragraph */
} lin_result_word;

/* A part of the sound: an utterance whose times were given, or speech that is not in the text that was aligned. */
typedef struct lin_result_span {
    double start_s, end_s;
    size_t text; /* in the result's text */
} lin_result_span;

typedef struct lin_result_keyword {
    size_t text; /* in the result's text */
    float confidence;
    double start_s, end_s;
} lin_result_keyword;

typedef struct lin_result {
    char *id;       /* of the utterance; any bytes but NUL */
    char *speaker;  /* "" when unknown */
    int channel;    /* counted from 1 */
    double seconds; /* of audio */
    lin_result_phone *phones;
    int n_phones, capacity;
    int has_words; /* from a word search: an utterance without words is empty, not one of phones only */
    lin_result_word *words;
    int n_words, words_capacity;
    int has_written; /* the words are known as they are written */
    lin_result_span *spans; /* [n_spans]: the utterances of a TextGrid */
    int n_spans, spans_capacity;
    lin_result_keyword *keywords; /* as in lin_path */
    int n_keywords, keywords_capacity;
    int has_others; /* the spans are speech that is not in the text */
    float *voices;  /* [n_voices, voice_size] of the speakers 1, 2, ...: vectors of length 1 */
    int n_voices, voice_size, voices_capacity;
    char *text; /* spellings, each with its NUL */
    size_t text_used, text_capacity;
    double score, acoustic, language; /* as in lin_path; 0 where the search gives none */
    struct lin_result *alternatives;  /* n-best, the best first, which repeats the result itself; without id and speaker */
    int n_alternatives, alternatives_capacity;
} lin_result;

/* Empties the result and names it; keeps its memory for the next utterance. speaker may be NULL.
 * On failure the result is empty. */
lin_status lin_result_begin(lin_result *result, const char *id, const char *speaker, int channel, lin_error *err);

/* Reserves memory for this many more phones, words and bytes of their spellings, each of which has a NUL. */
lin_status lin_result_reserve(lin_result *result, int phones, int words, size_t bytes, lin_error *err);

/* Drops phones, words, alternatives and scores; keeps the name, seconds and the memory. For output that is written while it
 * grows, and for a result that is filled again. */
void lin_result_clear(lin_result *result);

/* The spelling of a word number of a path; NULL for one that has none, which is then outside the lexicon. */
typedef const char *(*lin_result_speller)(const void *context, int word);

/*
 * Appends phones and words, whose frames are seconds_per_frame apart, and takes over the scores. spell is NULL without a word
 * search; otherwise has_words is set. Words without a spelling get an empty one: writers write their phones. LIN_INVALID for a
 * word whose phones the path does not have, LIN_NO_MEMORY. On failure nothing is appended.
 */
lin_status lin_result_add_path(lin_result *result, const lin_path *path, double seconds_per_frame, lin_result_speller spell,
                               const void *context, lin_error *err);

/* Sets the form of word i in the text, n bytes. LIN_NO_MEMORY: then no word has one. */
lin_status lin_result_write_word(lin_result *result, int i, const char *written, size_t n, int glued, int line, lin_error *err);

/* Adds a part of the sound. */
lin_status lin_result_add_span(lin_result *result, double start_s, double end_s, const char *text, lin_error *err);

lin_status lin_result_add_keyword(lin_result *result, const char *text, float confidence, double start_s, double end_s,
                                  lin_error *err);

/* Adds a number of seconds to all times of phones, words and keywords, also of the alternatives; not to the length, nor to
 * spans. */
void lin_result_shift(lin_result *result, double seconds);

/* Appends the phones, words and keywords of another result, and adds its scores; not its alternatives. LIN_NO_MEMORY, and
 * nothing is appended. */
lin_status lin_result_append(lin_result *result, const lin_result *more, lin_error *err);

/* Appends n > 0 words of `from` from number `first` on with their phones, or, of a result without words, so many phones; and the
 * keywords that begin in them. Not its scores. */
lin_status lin_result_append_part(lin_result *result, const lin_result *from, int first, int n, lin_error *err);

/* Appends the rest of the phones, words and keywords of `from`, of whose beginning the result is a copy; takes over seconds and
 * scores. LIN_NO_MEMORY; LIN_INVALID if `from` has fewer. */
lin_status lin_result_follow(lin_result *result, const lin_result *from, lin_error *err);

/* Replaces the voices by vectors [n, size], which get the length 1. LIN_NO_MEMORY. */
lin_status lin_result_set_voices(lin_result *result, const float *vectors, int n, int size, lin_error *err);

/* Items: the words, or the phones where words were not looked for. */
typedef struct lin_item {
    double start_s, end_s, confidence;
} lin_item;
int lin_result_items(const lin_result *result); /* how many */
lin_item lin_result_item(const lin_result *result, int item);
int lin_result_speaker(const lin_result *result, int item); /* 0: not known */

/* Appends what a speaker says, and their voice, as the only one. LIN_NO_MEMORY. */
lin_status lin_result_append_speaker(lin_result *result, const lin_result *from, int speaker, lin_error *err);

/* Replaces the times of the phones by segments [n_phones], and those of the words by their first and last phones'. */
void lin_result_set_times(lin_result *result, const lin_segment *segments);

/* Adds an empty alternative, to be filled by lin_result_add_path; NULL if out of memory. It is valid as long as the result; its
 * address may change when the next one is added. */
lin_result *lin_result_add_alternative(lin_result *result);

/* Goodness of pronunciation of n phones from number `first` on, of a word or of the whole: the natural logarithm of the mean of
 * their probabilities, exp(goodness), which is the probability that a phone picked among them was said. 0: all were said; -0.7:
 * half of them. Phones that were not measured do not count; NAN if none was. */
float lin_result_goodness(const lin_result *result, int first, int n);

/* Spelling of a word, "" if it is outside the lexicon; NULL out of range. Valid until something is added. */
const char *lin_result_word_text(const lin_result *result, int word);

/* Divides a result for reading: the number behind the last item of the segment that begins with item `first`. A segment ends at a
 * pause of 0.8 s, where the speaker changes, and before it is longer than 30 s. */
int lin_result_segment_end(const lin_result *result, int first);

/* Releases everything; the result is empty again. */
void lin_result_free(lin_result *result);

#endif
