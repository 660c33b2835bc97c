/*
 * loudness.h - how loud the sound of a row of log-probabilities is, for the endpoint rules.
 *
 * Pipeline: filterbank frames or samples -> [this] -> decoder/endpoint.
 * A row is made of several frames, which may come one by one: the sum starts at 0 and each frame is added in order, so that any
 * split gives the same bits.
 *
 *   double sum = 0;
 *   for (each frame of the row) sum = lin_loudness_frame(sum, frame, D);
 *   double db = lin_loudness_db(sum);
 *
 * The scales of frames and of samples differ: the rules compare a stream only with itself. Threads: any.
 */
#ifndef LIN_FRONTEND_LOUDNESS_H
#define LIN_FRONTEND_LOUDNESS_H

/* Adds the energies of a frame [D] of natural-log features. */
double lin_loudness_frame(double sum, const float *frame, int D);

/* Adds the mean square of samples [n], those from one frame to the next. */
double lin_loudness_sound(double sum, const float *samples, int n);

/* 10 log10 of the sum; of silence -120. */
double lin_loudness_db(double sum);

#endif
