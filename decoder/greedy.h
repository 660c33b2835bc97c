/*
 * greedy.h - streaming CTC decoding by the best label of each frame.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> phones with frames and a confidence -> decoder/result.
 * Graves et al. 2006, section 3.2, best path decoding: the best label of every frame, runs of one label merged, blanks dropped.
 *
 *   lin_greedy_reset(&greedy, V, 0, 0);
 *   while (rows arrive) lin_greedy_push(&greedy, logp, n, phones, n, &n_phones, &err);
 *   lin_greedy_finish(&greedy, &last, &n_last);                     // the run still open at the end
 *
 * A phone is given out with the frame after its run. Any split of the same rows into pushes gives the same phones, frames and
 * confidences, bit for bit.
 *
 * The state is a small flat struct without pointers: copy it to fork a stream, write it to save one. Nothing is allocated.
 * Threads: one at a time per state.
 */
#ifndef LIN_DECODER_GREEDY_H
#define LIN_DECODER_GREEDY_H

#include <stdint.h>

#include "base/status.h"
#include "decoder/result.h"

typedef lin_path_phone lin_greedy_phone;

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
 * writes the phones whose runs have ended: at most one per frame. LIN_TOO_SMALL if capacity < n_frames; LIN_NUMERIC, naming the
 * frame, if a row holds a NaN or its largest value is infinite. On failure nothing changes. Of equal values the one with the
 * lowest index wins.
 */
lin_status lin_greedy_push(lin_greedy *greedy, const float *logp, int n_frames, lin_greedy_phone *phones, int capacity,
                           int *n_phones, lin_error *err);

/* Ends the segment: gives out the open run, if it is a phone (*n_phones 0 or 1). Push again only after a reset. */
void lin_greedy_finish(lin_greedy *greedy, lin_greedy_phone *phone, int *n_phones);

/* The open run so far, without ending it, for provisional results:
 * 1 and *phone if it is a phone that was not given out before. */
int lin_greedy_pending(const lin_greedy *greedy, lin_greedy_phone *phone);

#endif
