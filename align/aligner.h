/*
 * aligner.h - the time and the goodness of pronunciation of each phone and word of a known text in one sound.
 *
 * Pipeline: align/spoken (the text) and linnet/files (the sound), or rows of log-probabilities -> align/align,
 * align/goodness, align/boundaries -> [this] -> decoder/result.
 *
 *   lin_aligner_options o = lin_aligner_options_default();
 *   lin_aligner_create(&recognizer, &lexicon, &o, &aligner, &err);            // one per thread; recognizer and lexicon are
 *                                                                             // shared
 *   lin_alignment alignment = {0};                                            // reused for each sound
 *   lin_sound sound = {.path = "hello.wav", .channel = LIN_CHANNEL_MIX};
 *   lin_aligner_input in = {.id = "hello", .sound = &sound, .text = "how are you", .n_text = 11};
 *   lin_aligner_align(aligner, &in, &alignment, &err);
 *   ... alignment.results[0].words[i].start_s ...
 *   lin_alignment_free(&alignment);
 *   lin_aligner_destroy(aligner);
 *
 * Memory grows with the length of the sound: the rows are kept for goodness and for the trace-back.
 * Threads: an aligner and an alignment belong to one thread at a time.
 */
#ifndef LIN_ALIGN_ALIGNER_H
#define LIN_ALIGN_ALIGNER_H

#include "align/align.h"
#include "align/spoken.h"
#include "base/buffer.h"
#include "base/textfile.h"
#include "decoder/result.h"
#include "linnet/files.h"

typedef struct lin_aligner_options {
    double beam;      /* of lin_align_options */
    double row_s;     /* time between two rows; 0: the model's */
    int follow_sound; /* 1: phones end where the sound changes (align/boundaries); 0: at the rows of the path */
    int rows_only;    /* 1: only rows are given, no sound: the network is not created */
    int n_threads;    /* that share the work on one sound; 0: one per core */
} lin_aligner_options;

/* The beam of lin_align_options_default, the model's rows, times that follow the sound, one thread. */
lin_aligner_options lin_aligner_options_default(void);

typedef enum lin_aligner_text {
    LIN_ALIGNER_WORDS,
    LIN_ALIGNER_PHONES,  /* separated by blanks, or in the IPA */
    LIN_ALIGNER_TEXTGRID /* a TextGrid of utterances; of words, or with grid_of_phones of phones */
} lin_aligner_text;

typedef struct lin_aligner_input {
    const char *id, *speaker;   /* of the results; speaker may be NULL */
    int channel;                /* of the results, counted from 1; 0 is 1 */
    const lin_sound *sound;     /* path, raw, channel (one), part, mean and istd are read; or NULL, and: */
    const float *rows;          /* [n_rows, V] log-probabilities */
    size_t n_rows;
    const float *frames;        /* [n_frames, D] features of the same sound, not normalised; NULL: times are those of the path */
    size_t n_frames;
    lin_aligner_text kind;
    int grid_of_phones;
    const char *text;           /* n_text bytes; brought into the form of base/unicode.h */
    size_t n_text;
    const char *text_name;      /* the file it is from, for messages; may be NULL */
    int (*progress)(void *context, double seconds, double duration); /* of lin_file_sink, with `context`; NULL: none */
    void *context;
} lin_aligner_input;

/* The result of an alignment, and what a caller may report. Zero before its first use. */
typedef struct lin_alignment {
    lin_result *results;       /* [n_results]: one; of a TextGrid one for each speaker */
    int n_results, capacity;
    lin_align_report report;   /* of a TextGrid: of its worst utterance, those of few phones taken together */
    double row_s, start_s;     /* of the report's rows: time between two, and where the first one is in the sound */
    double seconds;            /* of sound */
    char warning[256];         /* what was wrong with the sound but did not prevent its use */
    int incomplete;            /* some of the sound is missing: `warning` names it */
    lin_buffer guesses;        /* words outside the lexicon with their pronunciations: lines of lin_spoken.guesses */
    int marks;                 /* such as [laughs], which are not words and were skipped */
    char first_mark[LIN_QUOTE];
    lin_buffer notes;          /* utterances of a TextGrid that could not be aligned and why, a line each */
    int n_bad;                 /* their number */
} lin_alignment;

typedef struct lin_aligner lin_aligner;

/* lexicon may be NULL if all texts are phones. Both must outlive the aligner. On failure *aligner is NULL. */
lin_status lin_aligner_create(const lin_recognizer *recognizer, const lin_wording *lexicon,
                              const lin_aligner_options *options, lin_aligner **aligner, lin_error *err);
void lin_aligner_destroy(lin_aligner *aligner); /* NULL is fine */

/*
 * Replaces the contents of the alignment. LIN_INVALID for a text that cannot be pronounced, LIN_MISMATCH if it cannot be that of
 * the sound (align/align.h), LIN_STOPPED if the recogniser was stopped, and the errors of reading the sound. After a failure the
 * results are not valid; guesses, marks and warning have what was found so far. A text that does not match the sound is not an
 * error: see the report. LIN_OK with n_bad > 0: some utterances of a TextGrid could not be aligned; notes lists them.
 */
lin_status lin_aligner_align(lin_aligner *aligner, const lin_aligner_input *input, lin_alignment *alignment, lin_error *err);

/* A message about a report: text and sound do not seem to match, and where; empty if they match. */
void lin_alignment_doubt(const lin_alignment *alignment, char *text, size_t capacity);

void lin_alignment_clear(lin_alignment *alignment); /* keeps the memory */
void lin_alignment_free(lin_alignment *alignment);

#endif
