/*
 * search.h - one face for all searches: the best label of each frame (decoder/greedy), beams over phones (decoder/beam) and over
 * words (decoder/words).
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/path -> decoder/result.
 * A search says how to decode and is shared by all streams; what one stream remembers is a flat block of known size without
 * pointers: copy it to fork a stream, write it to save one.
 *
 *   lin_search search = lin_search_beam(beam, V, id);                   // or lin_search_greedy(V), lin_search_words(words, V, id)
 *   void *state = lin_alloc(lin_search_bytes(&search), 1);
 *   lin_search_reset(&search, state, 0, 0);
 *   while (rows come) lin_search_push(&search, state, NULL, logp, n, &settled, &err);
 *   lin_search_nbest(&search, state, 0, &tail, &err);                   // what may still change, from what is settled on
 *   lin_search_finish(&search, state, NULL, &settled, &err);
 *
 * What is settled never changes. Any split of the same rows into pushes gives the same phones, words, frames and scores to the bit.
 * Nothing is allocated but the room of the caller's paths. Threads: a search is immutable and shared; one at a time per state.
 */
#ifndef LIN_DECODER_SEARCH_H
#define LIN_DECODER_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/beam.h"
#include "decoder/context.h"
#include "decoder/path.h"
#include "decoder/word_context.h"
#include "decoder/words.h"

/* The numbers stand in files: states of streams. */
typedef enum lin_search_kind { LIN_SEARCH_GREEDY = 0, LIN_SEARCH_BEAM = 1, LIN_SEARCH_WORDS = 2 } lin_search_kind;

enum { LIN_SEARCH_KINDS = 3 };

/* A value: copy it as you like. What it was made of must outlive it. */
typedef struct lin_search {
    lin_search_kind kind;
    int V;           /* columns of the rows */
    const void *of;  /* the lin_beam or lin_words; NULL for greedy */
    uint64_t id;     /* by which whoever made it knows what it was made of: states of one id can be exchanged; 0 for greedy */
} lin_search;

lin_search lin_search_greedy(int V);
lin_search lin_search_beam(const lin_beam *beam, int V, uint64_t id);
lin_search lin_search_words(const lin_words *words, int V, uint64_t id);

/* "greedy", "beam", "words" */
const char *lin_search_name(lin_search_kind kind);

/* Phrases that are likely now: of phones for a beam, of words for words; greedy looks at neither. */
typedef struct lin_search_context {
    const lin_context *phones;
    const lin_word_context *words;
} lin_search_context;

size_t lin_search_bytes(const lin_search *search);

/* Begins a segment whose first row is frame `first_frame`. carry: the segment before ended in the middle of speech, as in
 * decoder/greedy.h; searches other than greedy begin anew. */
void lin_search_reset(const lin_search *search, void *state, int64_t first_frame, int carry);

/*
 * Takes in logp [n_frames, V], natural logarithms, and appends what is settled to *settled. context: may be NULL, may be another
 * one at every call. LIN_NUMERIC, naming the frame, for rows that are not numbers; LIN_NO_MEMORY; beam and words: LIN_INVALID
 * between finish and reset. On failure nothing changes.
 */
lin_status lin_search_push(const lin_search *search, void *state, const lin_search_context *context, const float *logp,
                           int n_frames, lin_path *settled, lin_error *err);

/* Hypotheses there are, and number `which` (0: the best) of them from what is settled on, with its scores of the whole segment:
 * replaces *tail. LIN_INVALID if there are no more. Greedy has one, the phone whose run is open. Words work in the state's room
 * and change nothing that the search goes on with. */
int lin_search_hypotheses(const lin_search *search, void *state);
lin_status lin_search_nbest(const lin_search *search, void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment; the rest of the best hypothesis is appended to *settled, unless that is NULL: then nbest gives all of them, in
 * their final order, until the next reset. Push again only after a reset. */
lin_status lin_search_finish(const lin_search *search, void *state, const lin_search_context *context, lin_path *settled,
                             lin_error *err);

/* Whether n bytes from a file can be a state of this search: LIN_MISMATCH (of another one), LIN_FORMAT (damaged). */
lin_status lin_search_check(const lin_search *search, const void *state, size_t n, lin_error *err);

#endif
