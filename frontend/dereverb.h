/*
 * dereverb.h - takes the late reverberation of a room out of spectra, frame by frame: weighted prediction error (Nakatani et al.
 * 2010, "Speech Dereverberation Based on Variance-Normalized Delayed Linear Prediction"), in the recursive form, active only
 * where reverberation is found.
 *
 * Pipeline: the transform of frontend/fbank -> [this] -> its mel triangles.
 * In each line of the spectrum, the part of a frame X(t) that the frames 30 to 120 ms before (for a hop of 10 ms) predict is
 * taken for reverberation, and the rest Y(t) for the speaker:
 *
 *   x(t) = X(t - 3), ..., X(t - 12)                     Y(t) = X(t) - c g^H x(t)
 *   for each frame u that is loud, and a = 0.9995:
 *     R = a R + x(u) x(u)^H / v,  p = a p + x(u) X(u)* / v,  N = a N + 1
 *     v = mean of |X(u - 1)|^2, |X(u)|^2, |X(u + 1)|^2, at least 3 % of the mean of |x(u)|^2
 *   after every five frames, from N = 60 on:  g = (R + 0.2 tr(R) / 10 I)^-1 p
 *     c from 0 to 1 while the mean of p^H g over the lines, without the 7 that ten frames predict by chance, is 3 to 5 % of N
 *     where it is above 60 %, the sound is tones, such as those of a telephone: R, p, N and c are reset
 *
 * A frame is loud if its energy is above -30 dB of the loudest so far, which fades by 0.5 dB a second. Of a voice itself less
 * than 3 % is predicted, so sound without reverberation is unchanged, to the bit. While c is 0, it is updated after every eighth
 * block of five frames only, and from N = 200 on R and p learn from these blocks only. Causal: any split of the frames gives the
 * same bits. Threads: a state belongs to one thread at a time.
 */
#ifndef LIN_FRONTEND_DEREVERB_H
#define LIN_FRONTEND_DEREVERB_H

#include <kiss_fft.h>
#include <stddef.h>

/* One flat block without pointers, which may be copied and saved; 744 bytes a line. */
typedef struct lin_dereverb lin_dereverb;

/* Its bytes for that many lines, 1 or more. */
size_t lin_dereverb_bytes(int lines);

/* Makes a block of lin_dereverb_bytes(lines) the initial state. */
void lin_dereverb_reset(lin_dereverb *state, int lines);

/* power [lines] = |Y|^2 of the next frame, spectrum [lines]. */
void lin_dereverb_frame(lin_dereverb *state, const kiss_fft_cpx *spectrum, float *power);

/* 1 if bytes of lin_dereverb_bytes(lines) can be a state: finite, and of that many lines. */
int lin_dereverb_is_state(const void *bytes, int lines);

#endif
