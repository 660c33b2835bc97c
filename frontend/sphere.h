/*
 * sphere.h - reads the header of a NIST SPHERE file, the format of the LDC's speech corpora.
 *
 * Pipeline: first bytes of a file or pipe -> [this] -> frontend/audio_sphere (samples, their count and checksum).
 *
 * A header is text: "NIST_1A", its length in bytes, then lines "name type value" up to "end_head":
 *
 *   NIST_1A
 *      1024
 *   sample_count -i 50074
 *   sample_coding -s26 pcm,embedded-shorten-v2.00
 *   end_head
 *
 * Pure functions on memory. Threads: any.
 */
#ifndef LIN_FRONTEND_SPHERE_H
#define LIN_FRONTEND_SPHERE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum lin_sphere_coding { LIN_SPHERE_PCM, LIN_SPHERE_MULAW, LIN_SPHERE_ALAW } lin_sphere_coding;

typedef struct lin_sphere {
    int header_bytes;      /* the samples begin here */
    int rate_hz, channels; /* any value; channels is 1 if the header does not give it */
    lin_sphere_coding coding;
    int sample_bytes; /* 1 to 4, of samples that are not compressed */
    int big_endian;   /* the same */
    int shorten;      /* the samples are compressed with shorten */
    int64_t frames;   /* sample_count, of each channel; -1: not given */
    int32_t checksum; /* of all samples: their sum modulo 65536; -1: not given */
} lin_sphere;

/* The longest header that is read. */
enum { LIN_SPHERE_HEADER_BYTES = 1 << 16 };

/*
 * Parses the header in the first n bytes of a file. *more = 1, and LIN_OK: more bytes are needed. Names are accepted in upper
 * case too; fields that are not needed may have any value. LIN_FORMAT: the header is damaged: no length, a length above
 * LIN_SPHERE_HEADER_BYTES, no end_head, no sample_rate, a number that is not one. LIN_UNSUPPORTED: another coding or compression,
 * by name; channels that are not interleaved. Messages do not contain the name of the file.
 */
lin_status lin_sphere_parse(const unsigned char *bytes, size_t n, lin_sphere *sphere, int *more, lin_error *err);

#endif
