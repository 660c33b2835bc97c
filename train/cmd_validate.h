/*
 * cmd_validate.h - what linnet validate knows of a corpus while it reads it.
 *
 * cmd_validate.c loads the lists, compares speakers and reports; cmd_validate_words.c reads the texts, cmd_validate_sounds.c the
 * sounds. Each adds what it finds to the lists of lin_validation.
 */
#ifndef LIN_APP_CMD_VALIDATE_H
#define LIN_APP_CMD_VALIDATE_H

#include "align/aligner.h"
#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/symbols.h"
#include "frontend/audio.h"
#include "linnet/datadir.h"
#include "linnet/wording.h"

typedef struct lin_validate_values {
    lin_model_values model;
    const char *lexicon, *add_lexicon, *phones, *g2p, *numbers, *audio_root, *oov, *output;
    int allow_commands;
    int stack, most, json, jobs, quiet;
    const char *language;
} lin_validate_values;

/* What may be found. */
typedef enum lin_finding {
    LIN_FINDING_NO_TEXT, LIN_FINDING_NO_SOUND, LIN_FINDING_REPEATED, LIN_FINDING_UNREADABLE,
    LIN_FINDING_INCOMPLETE, LIN_FINDING_EMPTY, LIN_FINDING_CLIPPED, LIN_FINDING_BAD_TEXT,
    LIN_FINDING_NO_PHONES, LIN_FINDING_FOREIGN, LIN_FINDING_TOO_SHORT, LIN_FINDING_SAME_SOUND,
    LIN_FINDING_SPEAKERS, LIN_FINDING_NO_FIT, LIN_FINDING_WORDS, LIN_FINDING_UNSEEN,
    LIN_FINDINGS
} lin_finding;

/* Of one sound. */
typedef struct lin_measured {
    lin_status status;
    lin_error error;
    lin_audio_format format;
    int64_t frames;
    double clipped; /* share of the samples */
    float peak;
    uint64_t hash;
    char doubt[256]; /* by the model */
} lin_measured;

typedef struct lin_validated {
    const lin_utterance *u;
    int set, n_labels, needed, is_used; /* used: it has sound, and a text that is pronounced */
} lin_validated;

typedef struct lin_validated_word {
    long count;
    lin_g2p_how how;
    int n_labels; /* 0: no pronunciation */
    size_t at;    /* of them */
} lin_validated_word;

typedef struct lin_validated_set {
    const char *name;
    lin_datadir *dir;
    lin_utterance *beside; /* [n]: of a folder with texts beside its sounds, where dir is NULL */
    lin_inputs inputs;     /* owns their strings */
    int n, capacity;
    double seconds;
    int speakers;
} lin_validated_set;

typedef struct lin_validation {
    const lin_validate_values *v;
    lin_validated_set *sets;
    int n_sets;
    lin_validated *utterances;
    int n;
    lin_wording wording;
    lin_recognizer recognizer;
    lin_spoken_lexicon lexicon; /* of what the wording has */
    int has_model;
    lin_aligner **aligners; /* [threads] */
    lin_alignment *alignments;
    int n_threads;
    lin_measured *slots;
    lin_buffer lists[LIN_FINDINGS]; /* of each: name, NUL, more, NUL; names of folders may have tabs */
    int counts[LIN_FINDINGS];
    long n_words, n_unknown;
    lin_symbols unknown; /* words */
    lin_validated_word *words;
    size_t words_capacity;
    int *labels;
    size_t n_labels, labels_capacity;
    char *seen; /* [V] */
    lin_symbols speakers, sounds, rates;
    int *first_of; /* of each speaker: its set; of each sound: its utterance */
    size_t speakers_capacity;
    int *sound_of;
    size_t sounds_capacity;
    long *rate_counts;
    size_t rates_capacity;
    lin_progress progress;
} lin_validation;

/* Adds a line to a list of findings. of_set: -1: no set is named. */
void lin_finding_note(lin_validation *d, lin_finding finding, int of_set, const char *name, const char *fmt, ...)
    LIN_PRINTF(5, 6);

/* The text of an utterance, as words with their phones. LIN_NO_MEMORY. */
lin_status lin_validation_read_text(lin_validation *d, lin_validated *u, lin_error *err);

/* The words outside the lexicon, and phones that no text has; writes --oov. LIN_IO, LIN_NO_MEMORY. */
lin_status lin_validation_note_words(lin_validation *d, lin_error *err);

/* All sounds, by several threads, and with --model their alignment. LIN_STOPPED, LIN_NO_MEMORY; what opens the model. */
lin_status lin_validation_listen(lin_validation *d, lin_error *err);

#endif
