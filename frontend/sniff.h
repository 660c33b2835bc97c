/*
 * sniff.h - detects a format from the first bytes: sound that libsndfile reads, sound that it does not read, or no sound.
 *
 * Pipeline: first bytes of a file or pipe -> [this] -> frontend/audio (which reader). Detection is strict: headerless samples
 * must not be taken for a file, so formats without a signature need two frame headers that agree (MPEG audio, ADTS).
 *
 * Pure functions on memory. Threads: any.
 */
#ifndef LIN_FRONTEND_SNIFF_H
#define LIN_FRONTEND_SNIFF_H

#include <stddef.h>
#include <stdint.h>

#include "frontend/audio.h"

typedef enum lin_sniffed {
    LIN_SNIFF_UNKNOWN,
    LIN_SNIFF_SNDFILE, /* a format that libsndfile reads */
    LIN_SNIFF_MEDIA,   /* sound or video in a container that libsndfile does not read */
    LIN_SNIFF_NO_SOUND /* text, a program, an archive, a picture, ... */
} lin_sniffed;

/* More bytes than this do not change the answer. */
enum { LIN_SNIFF_BYTES = 2048 };

/* *what: "a FLAC file", "an MPEG-4 file", "text", ...; "" for LIN_SNIFF_UNKNOWN. */
lin_sniffed lin_sniff(const unsigned char *bytes, size_t n, const char **what);

/* The length in bytes of the MPEG audio frame whose header the four bytes are, 0: they are none. */
size_t lin_sniff_mpeg_frame(const unsigned char *bytes);

/* 1: a NIST SPHERE file, which frontend/sphere reads. */
int lin_sniff_is_sphere(const unsigned char *bytes, size_t n);

/* 1: as s16le the bytes are loud noise without correlation between neighbouring samples, as compressed data or other encodings
 * are; speech never is. */
int lin_sniff_is_noise(const unsigned char *bytes, size_t n);

/* The rate and the channels in the header of a WAV, AIFF, AU or FLAC file, if it is within the bytes; else 0. */
void lin_sniff_claims(const unsigned char *bytes, size_t n, int64_t *rate_hz, int64_t *channels);

/* The samples of a WAV file in a pipe. */
typedef struct lin_wav {
    lin_pcm_format pcm;
    size_t at;     /* of the first sample in the bytes */
    int64_t bytes; /* of samples; -1: until the end, because the writer did not know the length */
} lin_wav;

/* Parses the header of a RIFF, RF64 or BW64 WAV file in its first n bytes. 1: found; 0: more bytes are needed; -1: not plain
 * samples of an encoding in audio.h, or the header is damaged. rate and channels may have any value. */
int lin_wav_find(const unsigned char *bytes, size_t n, lin_wav *wav);

#endif
