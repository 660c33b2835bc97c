/*
 * search.h - one interface for all searches: the best label of each frame (greedy), beams over phones (decoder/beam) and
 * over words (decoder/words).
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/result.
 * A search holds the options and models and is shared by all streams; the state of one stream is a flat block of known size
 * without pointers: copy it to fork a stream, write it to save one.
 *
 *   lin_search search = lin_search_beam(beam, V, id);                   // or lin_search_greedy(V),
 *                                                                       // lin_search_words(words, V, id)
 *   void *state = lin_alloc(lin_search_bytes(&search), 1);
 *   lin_search_reset(&search, state, 0, 0);
 *   while (rows arrive) lin_search_push(&search, state, NULL, logp, n, &settled, &err);
 *   lin_search_nbest(&search, state, 0, &tail, &err);                   // the provisional part, after the settled one
 *   lin_search_finish(&search, state, NULL, &settled, &err);
 *
 * Settled results never change. Any split of the same rows into pushes gives the same phones, words, frames and scores bit for
 * bit. Only memory of the caller's paths is allocated. Threads: a search is immutable and shared; one thread at a time per state.
 */
#ifndef LIN_DECODER_SEARCH_H
#define LIN_DECODER_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/beam.h"
#include "decoder/context.h"
#include "decoder/keywords.h"
#include "decoder/result.h"
#include "decoder/words.h"

/* These numbers are stored in files: states of streams. */
typedef enum lin_search_kind { LIN_SEARCH_GREEDY = 0, LIN_SEARCH_BEAM = 1, LIN_SEARCH_WORDS = 2 } lin_search_kind;

enum { LIN_SEARCH_KINDS = 3 };

/* A value that may be copied. The beam or words that it was made from must outlive it. */
typedef struct lin_search {
    lin_search_kind kind;
    int V;           /* columns of the rows */
    const void *of;  /* the lin_beam or lin_words; NULL for greedy */
    const lin_keywords *keywords; /* looked for beside it; NULL: none */
    int after;       /* frames decoded after a keyword; 0: all are decoded */
    uint64_t id;     /* identifies what it was made from: states with the same id can be exchanged; 0 for greedy */
} lin_search;

lin_search lin_search_greedy(int V);
lin_search lin_search_beam(const lin_beam *beam, int V, uint64_t id);
lin_search lin_search_words(const lin_words *words, int V, uint64_t id);

/* The same search with keywords (NULL: none), which must outlive it; settled paths contain those that were found. after: the
 * search itself runs only behind a keyword, for this many frames and to the end of the segment that is then in progress;
 * elsewhere only keywords are looked for. 0: it always runs. */
lin_search lin_search_for_keywords(lin_search search, const lin_keywords *keywords, int after);

/* "greedy", "beam", "words" */
const char *lin_search_name(lin_search_kind kind);

/* Phrases that are likely now: of phones for a beam, of words for words; greedy ignores both. */
typedef struct lin_search_context {
    const lin_context *phones;
    const lin_word_context *words;
} lin_search_context;

size_t lin_search_bytes(const lin_search *search);

/* Begins a segment whose first row is frame `first_frame`, 0 for a new stream. carry: the segment before ended in the middle of
 * speech, as in lin_greedy_reset, and keywords in progress go on; a beam and words ignore it. */
void lin_search_reset(const lin_search *search, void *state, int64_t first_frame, int carry);

/*
 * Processes logp [n_frames, V], natural logarithms, and appends what is now settled to *settled. context: may be NULL, and may
 * change at every call. LIN_NUMERIC, naming the frame, for rows that are not numbers; LIN_NO_MEMORY; beam and words: LIN_INVALID
 * between finish and reset. On failure nothing changes.
 */
lin_status lin_search_push(const lin_search *search, void *state, const lin_search_context *context, const float *logp,
                           int n_frames, lin_path *settled, lin_error *err);

/* The number of hypotheses; and hypothesis `which` (0: the best) after the settled part, with its scores of the whole segment,
 * which replaces *tail. LIN_INVALID if there are fewer. Greedy has one, the phone whose run is open. Words use working memory in
 * the state and do not change the search. */
int lin_search_hypotheses(const lin_search *search, void *state);
lin_status lin_search_nbest(const lin_search *search, void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment; the rest of the best hypothesis is appended to *settled. If that is NULL, nbest gives all hypotheses, in
 * their final order, until the next reset. Push again only after a reset. */
lin_status lin_search_finish(const lin_search *search, void *state, const lin_search_context *context, lin_path *settled,
                             lin_error *err);

/* The keywords that end with the last row, before or after finish. */
lin_status lin_search_finish_keywords(const lin_search *search, void *state, lin_path *settled, lin_error *err);

/* Checks that n bytes from a file are a state of this search: LIN_MISMATCH (another search), LIN_FORMAT (damaged). */
lin_status lin_search_check(const lin_search *search, const void *state, size_t n, lin_error *err);

/* ---- greedy decoding ------------------------------------------------------------------------------------------------------- */

/*
 * Graves et al. 2006, section 3.2, best path decoding: the best label of every frame, runs of one label merged, blanks dropped.
 *
 *   lin_greedy_reset(&greedy, V, 0, 0);
 *   while (rows arrive) lin_greedy_push(&greedy, logp, n, &settled, &err);
 *   lin_greedy_finish(&greedy, &settled, &err);                     // the run still open at the end
 *
 * A phone is given out with the frame after its run. The state is a small flat struct without pointers.
 */
typedef struct lin_greedy {
    int32_t n_outputs; /* V */
    int32_t label;     /* of the last run; 0 for blanks, -1 before the first frame */
    int32_t emitted;   /* the phone of that run has been given out (see carry) */
    int32_t reserved;
    int64_t start;   /* first frame of that run */
    int64_t frame;   /* number of the next frame */
    double sum_logp; /* over that run */
} lin_greedy;

/*
 * Begins a segment whose first row is frame `first_frame` (0 for a new stream; any other to keep counting after an endpoint).
 * carry = 0: the state is cleared: a first label equal to the last one of the previous segment is another phone, as is right
 *            after an endpoint.
 * carry = 1: the rows continue where lin_greedy_finish stopped, in the middle of speech: if the last frame before and the first
 *            ones now have the same label, they are one phone, which finish has already given out. Needs a state that was reset
 *            before.
 */
void lin_greedy_reset(lin_greedy *greedy, int n_outputs, int64_t first_frame, int carry);

/*
 * Processes logp [n_frames, V], natural-log probabilities (if they are not normalised, the confidences have no meaning), and
 * appends the phones whose runs have ended: at most one per frame. LIN_NUMERIC, naming the frame, if a row holds a NaN or its
 * largest value is infinite; LIN_NO_MEMORY. On failure nothing changes. Of equal values the one with the lowest index wins.
 */
lin_status lin_greedy_push(lin_greedy *greedy, const float *logp, int n_frames, lin_path *settled, lin_error *err);

/* Ends the segment: gives out the open run, if it is a phone. Push again only after a reset. LIN_NO_MEMORY. */
lin_status lin_greedy_finish(lin_greedy *greedy, lin_path *settled, lin_error *err);

/* The open run so far, without ending it, for provisional results:
 * 1 and *phone if it is a phone that was not given out before. */
int lin_greedy_pending(const lin_greedy *greedy, lin_path_phone *phone);

#endif
