/*
 * leakage.h - speech of one channel that is heard in another: what a result has from it is found and left out.
 *
 * Pipeline: the sound of a file, all channels -> [this] <- results of the channels, from linnet/files.
 *
 *   lin_leakage leakage = {0};                                      // of a sound; an empty one needs no creation
 *   lin_leakage_push(&leakage, format, at_s, sound, n, &err);       // each piece of it, in order
 *   lin_leakage_find(&leakage, results, n, 1, found, &err);
 *   lin_leakage_free(&leakage);
 *
 * The levels of each channel are kept in BANDS bands every 10 ms. Over the time of a word (of a phone, where there are no words),
 * at least 0.2 s, the bands and moments in which another channel is loudest, down to 15 dB below its peak, are compared. The word
 * is leakage of that channel if, of the level differences there,
 *
 *   most of the channel's levels there are above its noise,
 *   the mean deviation from their median is below 4 dB: both channels have the same sound,
 *   the median is below -3 dB, or 1 dB where the other channel is the first of the two: only one of two equal channels is kept,
 *   and the energy over all bands, without the noise of the channel, is at most 2.5 dB above it: nothing else is said.
 *
 * Speech that differs from the other channel's stays, however quiet it is. Memory: 5.8 MB for each hour and channel.
 * Threads: one at a time.
 */
#ifndef LIN_LINNET_LEAKAGE_H
#define LIN_LINNET_LEAKAGE_H

#include "decoder/result.h"
#include "frontend/audio.h"
#include "frontend/fbank.h"

enum { LIN_LEAKAGE_STEPS = 256 };

typedef struct lin_leakage {
    int channels, n, capacity;          /* n: frames */
    double begin_s;                     /* of the first one */
    lin_fbank *fbanks[LIN_AUDIO_MAX_CHANNELS];
    float *mono, *frames;  /* of a piece */
    int room;              /* samples of a piece */
    unsigned char *levels; /* [n, channels, BANDS], in half dB */
    double energies[LIN_LEAKAGE_STEPS]; /* of each level */
} lin_leakage;

/* The next piece of sound [n, format->channels], which begins at at_s seconds. */
lin_status lin_leakage_push(lin_leakage *leakage, const lin_audio_format *format, double at_s, const float *sound, int n,
                            lin_error *err);

/* What a channel's result has from another channel. */
typedef struct lin_leakage_found {
    int n, of; /* words, or phones where there are no words */
    int from;  /* the channel, counted from 0, that most of them are leakage of */
} lin_leakage_found;

/* Finds leakage in results [n], one for each channel: found [n]. drops 1: it is removed; a result without any stays as it is. */
lin_status lin_leakage_find(const lin_leakage *leakage, lin_result *results, int n, int drops, lin_leakage_found *found,
                            lin_error *err);

void lin_leakage_free(lin_leakage *leakage);

#endif
