/*
 * acoustics.h - the augmentation of an utterance in training: speaking rate, gain, vocal tract, room, noise, background voices,
 * limited band.
 *
 * Pipeline: train/augment draws them -> the operation gather applies them, before normalisation.
 * Speaking rate: F recorded frames become T. Frame t is interpolated linearly at position t (F - 1) / (T - 1) of the recording,
 * so the first and the last frame stay. That is x(t) below; it needs no acoustics.
 * Everything works on the powers of the mel bins, the exponentials of the features. A bin of power p plus Gaussian sound of mean
 * power n has |X + N|^2 = p + n g + 2 sqrt(p n) alpha (Deng, Droppo and Acero 2004, eq. 8); noise, the late sound of a room and
 * voices are taken as Gaussian. For frame t and bin d of an utterance with the features x(t):
 *
 *   p(t) = exp((1 - f) x(t)[i] + f x(t)[i + 1]),  i + f = warp[d]                          the speech at another frequency
 *   late(t) = decay late(t-1) + (1 - decay) p(t-1),  late(0) = 0                           the energy that the room returns
 *   n = speech room late(t) + noise exp(level(t)) shape(t)[d],   s = speech p(t)
 *   y = pass[d] max(s + n g + voices(t) + 2 sqrt(s (n + voices(t))) alpha, 0.01 (s + n + voices(t))) + hiss[d] g
 *   feature = ln max(y, LIN_ACOUSTICS_FLOOR)
 *
 * g(t, d) has mean 1 and the distribution of a bin's power in a periodogram of noise: chi-square with the bin's degrees of
 * freedom k, over k, in the form of Wilson and Hilferty (1931): (1 - s^2 + s z)^3 with s = spread[d] = sqrt(2 / (9 k)), z normal.
 * alpha(t, d) is normal with variance 1 / k, of other random bits.
 * level(t) is interpolated linearly between random values, `hold` frames apart; each of these stretches has one of the shapes.
 */
#ifndef LIN_KERNELS_ACOUSTICS_H
#define LIN_KERNELS_ACOUSTICS_H

#include <math.h>

#include "base/hash.h"
#include "kernels/ops.h"

enum {
    LIN_ACOUSTICS_VOICES = 6,
    LIN_ACOUSTICS_SHAPES = 8,
    LIN_ACOUSTICS_ROWS = 4 + LIN_ACOUSTICS_SHAPES /* of bins: pass, hiss, spread, warp (0 to D - 1), shapes */
};

#define LIN_ACOUSTICS_FLOOR 1.1920928955078125e-07f /* the power of digital silence, as in frontend/fbank.c */
#define LIN_ACOUSTICS_MOST 80.0f                    /* features are clamped to this: their exponential is finite */

/* Another utterance as background, looped from its frame `first` on. */
typedef struct lin_acoustics_voice {
    const unsigned char *codes; /* [frames, D], as in lin_gather */
    const float *steps;         /* [2, D] */
    int frames, first;          /* first < frames */
    float scale;                /* of its power */
} lin_acoustics_voice;

struct lin_acoustics {
    float speech;        /* 0: no speech, noise alone */
    float room, decay;   /* decay: per frame */
    float noise;
    float depth, fall;   /* of level, in units of ln: largest random value, and how far it falls in a frame of a stretch */
    int hold;            /* frames, at least 1 */
    int n_shapes, n_voices;
    const float *bins;   /* [LIN_ACOUSTICS_ROWS, D] */
    uint64_t key;        /* of all random values below */
    lin_acoustics_voice voices[LIN_ACOUSTICS_VOICES];
};

/* The recorded frame at or before position t of T output frames, and the share of the next one; share 0: that is not read. */
LIN_RANDOM int lin_gather_between(const lin_gather *item, int t, int T, float *share)
{
    *share = 0;
    if (item->frames == 0 || T < 2) return t;
    const uint64_t at = (uint64_t)t * (uint64_t)(item->frames - 1), steps = (uint64_t)T - 1;
    *share = (float)(int)(at % steps) / (float)(T - 1);
    return (int)(at / steps);
}

/* The bins that bin d of the speech is interpolated between, and the share f of the second: warp[d] = *low + f. */
LIN_RANDOM float lin_acoustics_between(const lin_acoustics *a, int d, int D, int *low, int *high)
{
    const float at = a->bins[3 * D + d];
    *low = (int)at;
    *high = *low + 1 < D ? *low + 1 : *low;
    return at - (float)*low;
}

/* level(t), and the shape of frame t. */
LIN_RANDOM float lin_acoustics_level(const lin_acoustics *a, int t, int *shape)
{
    const int k = t / a->hold, within = t - k * a->hold;
    const uint64_t key = lin_random_key(a->key, 1);
    const float from = 2 * (float)lin_random_uniform(key, (uint64_t)k) - 1,
                to = 2 * (float)lin_random_uniform(key, (uint64_t)k + 1) - 1;
    *shape = a->n_shapes > 1 ? (int)lin_random_below(lin_random_key(a->key, 2), (uint64_t)k, (uint32_t)a->n_shapes) : 0;
    return a->depth * (from + (to - from) * (float)within / (float)a->hold) - a->fall * (float)within;
}

/* 1 - s^2 + s z, the cube root of g(t, d), with the index t D + d. z is the sum of four uniform numbers of 16 bits, within
 * +-3.5. */
LIN_RANDOM float lin_acoustics_root(const lin_acoustics *a, float spread, uint64_t index)
{
    const uint64_t bits = lin_random_bits(a->key, index);
    const int sum = (int)(bits & 0xFFFF) + (int)(bits >> 16 & 0xFFFF) + (int)(bits >> 32 & 0xFFFF) + (int)(bits >> 48);
    const float z = (float)(sum - 2 * 65535) * (1.7320508f / 65536), root = 1 - spread * spread + spread * z;
    return root > 0.05f ? root : 0.05f;
}

/* The power of a bin with speech of power s, Gaussian sound of mean power n, and voices; g is root^3. */
LIN_RANDOM float lin_acoustics_meet(const lin_acoustics *a, float spread, uint64_t index, float s, float n, float voices, float g)
{
    const float other = n + voices, least = 0.01f * (s + other);
    const float z = lin_acoustics_root(a, spread, ~index) - 1 + spread * spread; // spread times a normal number
    const float y = s + n * g + voices + 4.2426407f * sqrtf(s * other) * z;      // 2 / sqrt(k) = sqrt(18) spread
    return y > least ? y : least;
}

/* The frame of a voice for frame t. */
LIN_RANDOM int lin_acoustics_voice_frame(const lin_acoustics_voice *v, int t)
{
    return (int)(((unsigned)v->first + (unsigned)t) % (unsigned)v->frames);
}

#endif
