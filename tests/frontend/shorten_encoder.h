/*
 * shorten_encoder.h - a simple encoder of shorten and of NIST SPHERE, for tests and for stand-ins of corpora. Simple, not small:
 * it tries the functions on each block and counts bits.
 *
 *   bits out = {0};
 *   sphere_options o = sphere_options_default();
 *   sphere_encode(&out, samples, n_frames, &o);        // header and samples, in out.data[0 .. out.n)
 *   free(out.data);
 *
 * The format: T. Robinson, SHORTEN: simple lossless and near-lossless waveform compression, CUED/F-INFENG/TR.156, 1994. Numbers
 * are Rice codes: `high` zeros, a one, and n low bits. Threads: any. An allocation that fails ends the program.
 */
#ifndef LIN_TESTS_SHORTEN_ENCODER_H
#define LIN_TESTS_SHORTEN_ENCODER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes with the first bit in the highest position. */
typedef struct bits {
    unsigned char *data;
    size_t n, capacity;
    int free_bits; /* of the last byte */
} bits;

enum {
    SHORTEN_DIFF0,
    SHORTEN_DIFF1,
    SHORTEN_DIFF2,
    SHORTEN_DIFF3,
    SHORTEN_QUIT,
    SHORTEN_BLOCKSIZE,
    SHORTEN_BITSHIFT,
    SHORTEN_QLPC,
    SHORTEN_ZERO,
    SHORTEN_VERBATIM
};

enum { SHORTEN_U8 = 2, SHORTEN_S16HL = 3, SHORTEN_S16LH = 5, SHORTEN_AU2 = 8 };

void bits_put(bits *out, uint32_t value, int n);      /* the low n bits, 0 .. 32 */
void bits_put_uvar(bits *out, uint32_t value, int n); /* a Rice code with n low bits */
void bits_put_var(bits *out, int32_t value, int n);   /* the same, signed */
void bits_put_ulong(bits *out, uint32_t value);       /* a number that states its own n */
void bits_put_bytes(bits *out, const void *bytes, size_t n);
void bits_align(bits *out, size_t start); /* zeros up to a multiple of 32 bits after `start` bytes */

typedef struct shorten_options {
    int version; /* 1, 2 or 3 */
    int type;    /* SHORTEN_S16HL, SHORTEN_S16LH, SHORTEN_AU2 */
    int channels;
    int block;            /* frames */
    int mean_blocks;      /* blocks whose mean is subtracted in DIFF0 and QLPC; 0: none */
    int lpc_order;        /* largest, 0 .. 32 */
    int function;         /* SHORTEN_DIFF0 .. 3, SHORTEN_QLPC; -1: the shortest. Blocks of zeros are SHORTEN_ZERO */
    int other_block;      /* > 0: every third block has this many frames, at most `block` */
    const char *verbatim; /* NULL, or bytes before the sound */
    size_t n_verbatim;
} shorten_options;

/* Version 2, big-endian samples, blocks of 256, means of 4, LPC up to order 4. */
shorten_options shorten_options_default(void);

/* samples [n, channels]: 16-bit values, or mu-law codes 0 .. 255 for SHORTEN_AU2. */
void shorten_encode(bits *out, const int16_t *samples, int64_t n, const shorten_options *o);

typedef struct sphere_options {
    int rate_hz, channels;
    int ulaw;       /* samples are mu-law codes 0 .. 255 */
    int shorten;    /* 0: plain samples */
    int big_endian; /* of plain samples, and in the header */
    int header;     /* bytes: a multiple of 1024 */
    const char *database, *speaker, *utterance;
    int no_checks;     /* without sample_count and sample_checksum */
    int64_t add_count; /* added to the true values, to make them wrong */
    int add_checksum;
    shorten_options pack; /* type and channels are set from the above */
} sphere_options;

/* 16 kHz, one channel, shorten. */
sphere_options sphere_options_default(void);

void sphere_encode(bits *out, const int16_t *samples, int64_t n, const sphere_options *o);

/* The mu-law code of a 16-bit sample (ITU-T G.711). */
int ulaw_code(int sample);

#endif
