/*
 * keywords.h - spotting of keywords: a few phrases of known phones in any speech, without words and without a language model.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this, beside the search, by decoder/search] -> decoder/result.
 * The score of a keyword is its best CTC path (Graves et al. 2006) against the best path of a loop over all phones, in nats per
 * phone: the sum over the frames of ln p(label of the path) - ln p(most probable label), at most 0, divided by the number of the
 * keyword's phones. Its exponential is the confidence. A path begins anywhere and contains no pause longer than `gap`; of the
 * paths in one pause only the best continues. A keyword is found where its confidence is the largest of all paths that overlap
 * and at least its threshold; the next one begins after its end.
 *
 * The state of a stream is one flat block without pointers: copy it to fork a stream, write it to save one. Nothing is allocated
 * after creation. Any split of the same rows into pushes finds the same keywords, frames and confidences, bit for bit.
 * Threads: a lin_keywords is immutable and shared; one thread at a time per state.
 */
#ifndef LIN_DECODER_KEYWORDS_H
#define LIN_DECODER_KEYWORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/result.h"

typedef struct lin_keyword {
    const char *text;
    double threshold;  /* confidence, in (0, 1]; NAN: a default by the number of phones */
    const int *labels; /* [n_labels] one or more pronunciations, labels 1 .. V-1, with a 0 between two */
    int n_labels;
} lin_keyword;

enum { LIN_KEYWORDS_MAX = 10000, LIN_KEYWORD_PHONES_MAX = 100 };

typedef struct lin_keywords lin_keywords;

/* Copies the list. gap: rows. LIN_INVALID with the keyword's text: no phones, too many, a label outside 1 .. V-1, a threshold out
 * of range, or more than LIN_KEYWORDS_MAX keywords. */
lin_status lin_keywords_create(const lin_keyword *list, int n, int V, int gap, lin_keywords **keywords, lin_error *err);
void lin_keywords_destroy(lin_keywords *keywords); /* NULL is fine */

/* Text of a keyword, by its number in the list. */
const char *lin_keywords_text(const lin_keywords *keywords, int number);

size_t lin_keywords_bytes(const lin_keywords *keywords);
uint64_t lin_keywords_fingerprint(const lin_keywords *keywords); /* of all that states depend on */
void lin_keywords_reset(const lin_keywords *keywords, void *state, int64_t first_frame);

/* Reserves memory for all that n_frames frames and finish can find, so that neither fails. */
lin_status lin_keywords_reserve(const lin_keywords *keywords, int n_frames, lin_path *found, lin_error *err);

/* Processes logp [n_frames, V], natural logarithms without NaN, and appends the keywords that were found to found->keywords. A
 * keyword is reported at the first frame after which no path that overlaps it can be better: mostly the next one. */
void lin_keywords_push(const lin_keywords *keywords, void *state, const float *logp, int n_frames, lin_path *found);

/* Ends the segment: appends keywords whose peak is the last row. Push again only after a reset. */
void lin_keywords_finish(const lin_keywords *keywords, void *state, lin_path *found);

/* LIN_MISMATCH for a state of another size, LIN_FORMAT for a damaged one. */
lin_status lin_keywords_check(const lin_keywords *keywords, const void *state, size_t n, lin_error *err);

#endif
