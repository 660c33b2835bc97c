/*
 * mix.h - the channels of a sound mixed down to one: their mean. Everything that mixes does it here, with the same bits.
 *
 * Pipeline: frontend/{audio,microphone} or pushed samples -> [this] -> frontend/resample.
 *
 * Threads: any.
 */
#ifndef LIN_FRONTEND_MIX_H
#define LIN_FRONTEND_MIX_H

/* samples [n, channels] -> mono [n], which may be the same memory. */
void lin_mix_down(float *mono, const float *samples, int n, int channels);

#endif
