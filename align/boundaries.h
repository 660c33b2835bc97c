/*
 * boundaries.h - finds where each phone begins and ends in the sound, given its rows in a path.
 *
 * Pipeline: log-mel frames every 10 ms, and a path (decoder/result) of any search -> [this] -> times of a decoder/result.
 * A CTC path marks a phone by one or two rows, somewhere after its middle (Graves et al. 2006: the loss requires no more).
 * This module keeps the order of the phones and aligns the sound again: Viterbi's algorithm over a chain of hidden Markov states,
 * three for each phone (Rabiner 1989, section V), with optional silence between words, one frame per step. A state's frames have
 * a diagonal Gaussian over 12 cepstra, the energy, and the differences of both (align/boundaries.inc, made from recorded
 * speech by tools/boundaries_table.py). A phone is searched only near its rows, so the work is linear in the sound's length: at
 * first from 250 ms before the rows of the phone before it to 60 ms after those of the next; then, when the mean lag of the rows
 * is known, within 40 ms around that lag.
 *
 *   lin_boundaries_create(phones, &fbank, &boundaries, &err);
 *   while (frames arrive) lin_boundaries_push(boundaries, fbank, n, &err);
 *   lin_boundaries_find(boundaries, 0, SIZE_MAX, &path, row_s, seconds, segments, &err);      // segments [path.n_phones]
 *   lin_boundaries_reset(boundaries);                                            // the next sound
 *   lin_boundaries_destroy(boundaries);
 *
 * Level and spectrum are normalised by those of the surrounding 30 seconds, and silence is compared with this sound's own.
 * Segments are in order; one begins where the one before ends, or at least LIN_BOUNDARIES_SILENCE frames later: between them is
 * silence, or sound that is not in the text. A phone has only sound within half a second of its rows. Silence may be at the
 * beginning and end of the sound, between words, and inside a word whose rows are far apart. Memory: 53 bytes per frame, and for
 * each frame a byte for every state allowed at it: about 45 MB per hour, with arrays that grow by doubling.
 * Threads: an object belongs to one thread at a time.
 */
#ifndef LIN_ALIGN_BOUNDARIES_H
#define LIN_ALIGN_BOUNDARIES_H

#include "base/status.h"
#include "decoder/result.h"
#include "lexicon/phones.h"
#include "linnet/recognizer.h"

/* The shortest silence, frames. */
enum { LIN_BOUNDARIES_SILENCE = 5 };

typedef struct lin_boundaries lin_boundaries;

/* For frames of a filterbank that lin_fbank_check accepts; where it differs from that of the table (40 bins from 20 to 5500 Hz,
 * 25 ms every 10 ms), frames are interpolated. Phonemes of CMUdict, by name or IPA (lin_phones_similar), have statistics of
 * their own; others have those of all together. phones is not kept. */
lin_status lin_boundaries_create(const lin_phones *phones, const lin_fbank_config *fbank, lin_boundaries **boundaries,
                                 lin_error *err);
void lin_boundaries_destroy(lin_boundaries *boundaries); /* NULL is fine */

/* Drops all frames and keeps the memory. */
void lin_boundaries_reset(lin_boundaries *boundaries);

/* Adds frames [n, D], not normalised. LIN_NUMERIC, naming the frame, for a value that is not finite; then no frame is added. */
lin_status lin_boundaries_push(lin_boundaries *boundaries, const float *fbank, int n, lin_error *err);

/*
 * Writes the segment of every phone of a path, whose rows are row_s seconds apart, to segments [path->n_phones]. The path is of
 * the frames from .. to - 1, as far as there are, and of no other sound; rows and segments count from the first; seconds: their
 * length. A path without phones is valid; labels are in range, phones and words in order. LIN_MISMATCH for more phones than
 * frames; LIN_NO_MEMORY. Frames are kept: other paths may follow.
 */
lin_status lin_boundaries_find(lin_boundaries *boundaries, size_t from, size_t to, const lin_path *path, double row_s,
                               double seconds, lin_segment *segments, lin_error *err);

#endif
