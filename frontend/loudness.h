/*
 * loudness.h - the loudness of the sound of one row of log-probabilities, for the endpoint rules.
 *
 * Pipeline: filterbank frames or samples -> [this] -> decoder/endpoint.
 * A row covers several frames, which may arrive one by one: the sum starts at 0 and each frame is added in order, so any
 * split gives the same bits.
 *
 *   double sum = 0;
 *   for (each frame of the row) sum = lin_loudness_frame(sum, frame, D);
 *   double db = lin_loudness_db(sum);
 *
 * Frames and samples give different scales: the rules compare a stream only with itself. Threads: any.
 */
#ifndef LIN_FRONTEND_LOUDNESS_H
#define LIN_FRONTEND_LOUDNESS_H

/* Adds the energies of a frame [D] of natural-log features. */
double lin_loudness_frame(double sum, const float *frame, int D);

/* Adds the mean square of samples [n], those between two frames. */
double lin_loudness_sound(double sum, const float *samples, int n);

/* 10 log10 of the sum; -120 for silence. */
double lin_loudness_db(double sum);

#endif
