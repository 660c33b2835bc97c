/*
 * shorten.h - decodes shorten, the lossless compression of the LDC's speech corpora (versions 1 to 3).
 *
 * Pipeline: bytes of a file or pipe -> [this] -> frontend/audio_sphere -> frontend/source. The header of a SPHERE file comes
 * before the stream; frontend/sphere reads it.
 *
 * The format (T. Robinson, SHORTEN: simple lossless and near-lossless waveform compression, CUED/F-INFENG/TR.156, 1994): a
 * header, then functions, each a Rice code. DIFF0 to DIFF3 and QLPC hold a block of one channel, as residuals of a polynomial or
 * linear predictor; ZERO is a block of zeros; BLOCKSIZE and BITSHIFT set the length and the dropped low bits of the blocks that
 * follow; VERBATIM holds bytes of the original file's header, which are skipped; QUIT ends the stream.
 *
 *   lin_shorten_open(read_bytes, file, &shorten, &err);
 *   while (lin_shorten_read(shorten, samples, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   lin_shorten_close(shorten);
 *
 * Memory is allocated when it is opened, at most LIN_SHORTEN_CHANNELS * LIN_SHORTEN_BLOCK samples; it does not grow. The samples
 * do not depend on how many bytes each call of the reader gives. A block is decoded as soon as its last byte is there. Messages
 * do not contain the name of the file. Threads: one at a time.
 */
#ifndef LIN_FRONTEND_SHORTEN_H
#define LIN_FRONTEND_SHORTEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LIN_SHORTEN_CHANNELS = 8, LIN_SHORTEN_BLOCK = 65535, LIN_SHORTEN_LPC = 64, LIN_SHORTEN_MEANS = 256 };

/* Writes 1 to `capacity` bytes, and their number; *n = 0 at the end. */
typedef lin_status (*lin_shorten_reader)(void *context, unsigned char *bytes, int capacity, int *n, lin_error *err);

typedef struct lin_shorten lin_shorten;

/*
 * Reads the stream's header. LIN_FORMAT: not shorten, or values that no encoder writes: a block of more than LIN_SHORTEN_BLOCK
 * frames, more than LIN_SHORTEN_LPC coefficients, more than LIN_SHORTEN_MEANS means. LIN_UNSUPPORTED: another version, another
 * type of samples, more than LIN_SHORTEN_CHANNELS channels. On failure *shorten is NULL.
 */
lin_status lin_shorten_open(lin_shorten_reader reader, void *context, lin_shorten **shorten, lin_error *err);

int lin_shorten_channels(const lin_shorten *shorten);

/* 1: the samples are mu-law codes, 0 .. 255 (ITU-T G.711); 0: they are 16-bit values. */
int lin_shorten_is_mulaw(const lin_shorten *shorten);

/*
 * Reads at most `capacity` frames [capacity, channels], interleaved, and at least one unless the stream ends: *n = 0 after QUIT.
 * LIN_FORMAT: the bytes end before QUIT, or they are not what an encoder writes; the message has the frame. After an error every
 * call gives the same error. Allocates nothing.
 */
lin_status lin_shorten_read(lin_shorten *shorten, int16_t *frames, int capacity, int *n, lin_error *err);

/* 1: frames or bytes to decode are held: the next read may not need the reader. */
int lin_shorten_has_more(const lin_shorten *shorten);

/* Accepts NULL. */
void lin_shorten_close(lin_shorten *shorten);

#endif
