/*
 * pcm.h - headerless samples to floats, full scale +-1. Part of frontend/audio (see there).
 *
 * Linear samples are little-endian; u8 is offset by 128; mu-law and A-law are those of ITU-T G.711.
 */
#ifndef LIN_FRONTEND_PCM_H
#define LIN_FRONTEND_PCM_H

#include <stddef.h>

#include "frontend/audio.h"

/* Bytes of a sample: 1 to 4. */
int lin_pcm_bytes(lin_pcm_encoding encoding);

/* n samples from n * lin_pcm_bytes(encoding) bytes. Floats are copied unchanged, NaNs too. */
void lin_pcm_decode(lin_pcm_encoding encoding, const unsigned char *bytes, size_t n, float *samples);

#endif
