/*
 * ogg_opus.h - Opus in Ogg as it arrives (RFC 7845, RFC 3533): bytes in any pieces in, samples of one channel out.
 *
 * Pipeline: messages of a stream -> [this, over libogg and libopus] -> serve/serve_stream.c.
 * libsndfile reads such files, but not while they grow. Chained streams are decoded one after the other; multiplexed ones are
 * refused, and so are damaged ones, because the transport loses no bytes.
 *
 *   lin_ogg_opus_create(16000, &opus, &err);                     // LIN_UNSUPPORTED: built without libopus
 *   lin_ogg_opus_push(opus, bytes, n, &err);                     // bytes as they arrive; then repeat until n is 0:
 *   lin_ogg_opus_take(opus, samples, &n, &err);                  // samples of one packet
 *   lin_ogg_opus_destroy(opus);
 *
 * Memory: what was pushed and not taken, and at most LIN_OGG_OPUS_PACKET bytes of a packet that is not complete.
 * Threads: one at a time.
 */
#ifndef LIN_SERVE_OGG_OPUS_H
#define LIN_SERVE_OGG_OPUS_H

#include <stddef.h>

#include "base/status.h"

enum {
    LIN_OGG_OPUS_MOST = 5760,       /* samples of one packet at most: 120 ms at 48 kHz */
    LIN_OGG_OPUS_PACKET = 1 << 20   /* bytes of a packet at most; comments may hold a picture */
};

typedef struct lin_ogg_opus lin_ogg_opus;

/* 1 if this program was built with libopus and libogg. */
int lin_ogg_opus_exists(void);

/* rate_hz: of the samples that come out, 8000, 12000, 16000, 24000 or 48000; else LIN_INVALID. On failure *opus is NULL. */
lin_status lin_ogg_opus_create(int rate_hz, lin_ogg_opus **opus, lin_error *err);
void lin_ogg_opus_destroy(lin_ogg_opus *opus); /* NULL is allowed */

/* LIN_NO_MEMORY. */
lin_status lin_ogg_opus_push(lin_ogg_opus *opus, const void *bytes, size_t n, lin_error *err);

/* samples [LIN_OGG_OPUS_MOST] receives the *n samples of the next packet; 0: more bytes are needed. Leaves out the codec's delay
 * (pre-skip) and the samples that the last page trims; none is NaN, infinite or absurdly loud (lin_audio_find_bad). LIN_FORMAT:
 * not Opus in Ogg, or damaged; LIN_UNSUPPORTED: more than two channels. */
lin_status lin_ogg_opus_take(lin_ogg_opus *opus, float *samples, int *n, lin_error *err);

/* 1 once the headers of a stream were complete. */
int lin_ogg_opus_has_begun(const lin_ogg_opus *opus);

/* Bytes of a page or packet that is not complete. */
size_t lin_ogg_opus_rest(const lin_ogg_opus *opus);

#endif
