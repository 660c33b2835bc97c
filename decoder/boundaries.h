/*
 * boundaries.h - where in the sound each phone begins and ends, given the rows in which a search has it.
 *
 * Pipeline: log-mel frames every 10 ms, and a decoder/path of any search -> [this] -> times of a decoder/result.
 * A CTC path marks a phone by one or two rows, somewhere behind its middle (Graves et al. 2006: the loss does not ask for more).
 * This module keeps the order of the phones and looks at the sound again: Viterbi's algorithm over a chain of hidden Markov states,
 * three for each phone (Rabiner 1989, section V), with optional silence between words, one frame a step. A state's frames have a
 * diagonal Gaussian over 12 cepstra, the energy, and the differences of both (decoder/boundaries_table.h, made from recorded
 * speech by tools/boundaries_table.py). A phone is looked for near its rows only, so the work is linear in the sound's length: at
 * first anywhere from 250 ms before the rows of the phone before it to 60 ms behind those of the next; then, as the mean lag of the
 * rows behind the sound is known, within 40 ms of what that lag leaves.
 *
 *   lin_boundaries_options o = lin_boundaries_options_default();
 *   lin_boundaries_create(phones, &o, &boundaries, &err);
 *   while (frames come) lin_boundaries_push(boundaries, fbank, n, &err);
 *   lin_boundaries_find(boundaries, &path, row_s, seconds, segments, &err);      // segments [path.n_phones]
 *   lin_boundaries_reset(boundaries);                                            // the next sound
 *   lin_boundaries_destroy(boundaries);
 *
 * Level and spectrum are normalised by those of the surrounding 30 seconds, and silence is compared with this sound's own.
 * Segments are in order; one begins where the one before ends, or at least LIN_BOUNDARIES_SILENCE frames later: what is between is
 * silence, or sound that is not of the text.
 * Silence may begin or end the sound, and stands between words, or inside a word whose rows are far apart.
 * Memory: 53 bytes a frame, and for each frame a byte for every state that may be there: about 45 MB an hour, as arrays double.
 * Threads: an object belongs to one thread at a time.
 */
#ifndef LIN_DECODER_BOUNDARIES_H
#define LIN_DECODER_BOUNDARIES_H

#include "base/status.h"
#include "decoder/path.h"
#include "lexicon/phones.h"

/* The shortest silence, frames. */
enum { LIN_BOUNDARIES_SILENCE = 5 };

/* What the frames are: natural logarithms of the energies under triangles on the mel scale, of samples in the range of 16 bits. */
typedef struct lin_boundaries_options {
    int bins;               /* D */
    double low_hz, high_hz; /* edges of the first and last triangle */
    double hop_s, window_s;
} lin_boundaries_options;

/* 40 bins from 20 to 5500 Hz, 25 ms every 10 ms, as the table has them; others are interpolated. */
lin_boundaries_options lin_boundaries_options_default(void);

typedef struct lin_segment {
    double start_s, end_s; /* seconds from the beginning of the sound */
} lin_segment;

typedef struct lin_boundaries lin_boundaries;

/* Names of CMUdict's phonemes, with or without stress, have statistics of their own; others have those of all phonemes together.
 * Nothing is kept of phones. LIN_INVALID for bad options. */
lin_status lin_boundaries_create(const lin_phones *phones, const lin_boundaries_options *options, lin_boundaries **boundaries,
                                 lin_error *err);
void lin_boundaries_destroy(lin_boundaries *boundaries); /* NULL is fine */

/* Forgets all frames and keeps the memory. */
void lin_boundaries_reset(lin_boundaries *boundaries);

/* Takes in frames [n, D], not normalised. LIN_NUMERIC, naming the frame, for what is not finite; then none of them is taken in. */
lin_status lin_boundaries_push(lin_boundaries *boundaries, const float *fbank, int n, lin_error *err);

/*
 * Of every phone of a path, whose rows are row_s seconds apart, into segments [path->n_phones]; seconds: of the whole sound, where
 * silence at its end ends. A path without phones is fine. LIN_INVALID for a label out of range, phones or words that are not in
 * order, a bad row_s; LIN_MISMATCH for more phones than frames; LIN_NO_MEMORY. Frames stay: other paths may follow.
 */
lin_status lin_boundaries_find(lin_boundaries *boundaries, const lin_path *path, double row_s, double seconds,
                               lin_segment *segments, lin_error *err);

#endif
