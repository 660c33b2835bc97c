/*
 * path.h - the result of a search in rows of log-probabilities: phones, and words of a word search, with frames and confidences.
 *
 * Pipeline: decoder/{greedy,beam,words,align} -> [this] -> decoder/result.
 * Greedy, beam and word search append settled phones and words to a path of the caller, and write provisional ones to another.
 *
 *   lin_path settled = {0};                                 // an empty path needs no creation
 *   lin_beam_push(beam, state, NULL, logp, n, &settled, &err);
 *   ... settled.phones[0 .. n_phones-1] ...
 *   lin_path_clear(&settled);                               // keeps the memory
 *   lin_path_free(&settled);
 *
 * Threads: one at a time per path.
 */
#ifndef LIN_DECODER_PATH_H
#define LIN_DECODER_PATH_H

#include <assert.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct lin_path_phone {
    int label;          /* 1 .. V-1 */
    float confidence;   /* exp of the mean log-probability of the label over the frames of its run, in (0, 1] */
    int64_t start, end; /* first frame of the run, and the frame after its last */
} lin_path_phone;

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
    int incomplete;  /* the last word is not complete: only its first phones are known */
    double score;    /* natural logarithm of the whole score: acoustic + weighted language model + bonuses */
    double acoustic; /* natural logarithm of the sum over the alignments that were followed */
    double language; /* natural logarithm by the language model, not weighted; 0 without one */
} lin_path;

/* Memory for this many more phones and words, so that adding them allocates nothing. On failure the path is unchanged. */
static inline lin_status lin_path_reserve(lin_path *path, int more_phones, int more_words, lin_error *err)
{
    assert(path->n_phones >= 0 && path->n_phones <= path->phones_capacity && path->n_words >= 0 &&
           path->n_words <= path->words_capacity);
    lin_status status = lin_grow_int(&path->phones, &path->phones_capacity, (int64_t)path->n_phones + more_phones,
                                     sizeof *path->phones, "a path", err);
    if (status != LIN_OK) return status;
    return lin_grow_int(&path->words, &path->words_capacity, (int64_t)path->n_words + more_words, sizeof *path->words, "a path",
                        err);
}

static inline void lin_path_clear(lin_path *path)
{
    path->n_phones = path->n_words = path->n_others = path->incomplete = 0;
    path->score = path->acoustic = path->language = 0;
}

static inline void lin_path_free(lin_path *path)
{
    lin_free(path->phones);
    lin_free(path->words);
    lin_free(path->others);
    *path = (lin_path){0};
}

#endif
