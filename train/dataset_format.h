/*
 * dataset_format.h - the byte layout of a feature cache, for its writer, its reader and their tests. All numbers are
 * little-endian. In a set of tokens D is 1, or 2 with more than 256 different ones: the number of a token, low byte first, with
 * minimum 0 and steps 1 and 256; each frame has one label, its target.
 *
 *   header     128 bytes, offsets below
 *   body       the codes of all utterances, [frames, D] bytes each, concatenated
 *   tail       u64 hash of the body (chained over utterances)
 *              index     per utterance: u32 frames, u32 labels, u32 speaker, u32 offset of its name
 *              steps     per utterance: half minimum [D], half step [D]; a value is minimum + step * code
 *              labels    of all utterances, one byte each if V <= 256, else u16; of tokens: the target + 1, 0 for none, one byte
 *                        if V <= 255
 *              sums      f64 sum [D], f64 sum of squares [D] of all frames
 *              speakers  each: u32 offset of its name, u32 0, u64 frames, f64 sum [D], f64 sum of squares [D]
 *              names     strings, each with its NUL: phones, source, then names of utterances and speakers
 */
#ifndef LIN_TRAIN_DATASET_FORMAT_H
#define LIN_TRAIN_DATASET_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LIN_DATASET_MAGIC "LINNETDS"

enum {
    LIN_DATASET_VERSION = 1,
    LIN_DATASET_HEADER = 128,
    LIN_DATASET_ENTRY = 16, /* bytes of an entry of the index */
    LIN_DATASET_NAME = 255, /* bytes of the longest name */

    LIN_AT_VERSION = 8,
    LIN_AT_D = 12,
    LIN_AT_V = 16,
    LIN_AT_SAMPLE_HZ = 20,
    LIN_AT_FEATURES = 24, /* f64 window_ms, hop_ms, low_hz, high_hz, preemphasis */
    LIN_AT_COUNT = 64,
    LIN_AT_FRAMES = 72,
    LIN_AT_LABELS = 80,
    LIN_AT_SPEAKERS = 88, /* u32 */
    LIN_AT_TOKENS = 92,   /* u32: the number of different tokens; 0: features */
    LIN_AT_TAIL = 96,     /* offset of the tail */
    LIN_AT_TAIL_BYTES = 104,
    LIN_AT_TAIL_HASH = 112,
    LIN_AT_HEADER_HASH = 120 /* of the first 120 bytes */
};

static inline size_t lin_dataset_label_bytes(int V, int tokens) { return V + (tokens > 0) <= 256 ? 1 : 2; }
static inline size_t lin_dataset_speaker_bytes(int D) { return 16 + 16 * (size_t)D; }

static inline uint32_t lin_get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t lin_get_u64(const unsigned char *p) { return lin_get_u32(p) | (uint64_t)lin_get_u32(p + 4) << 32; }

static inline double lin_get_f64(const unsigned char *p)
{
    const uint64_t bits = lin_get_u64(p);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void lin_put_u32(unsigned char *p, uint32_t value)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(value >> (8 * i));
}

static inline void lin_put_u64(unsigned char *p, uint64_t value)
{
    lin_put_u32(p, (uint32_t)value);
    lin_put_u32(p + 4, (uint32_t)(value >> 32));
}

static inline void lin_put_f64(unsigned char *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    lin_put_u64(p, bits);
}

#endif
