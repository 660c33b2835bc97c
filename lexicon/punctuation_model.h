/*
 * punctuation_model.h - the features and the bytes of a punctuation model, for lexicon/punctuation.c and punctuation_learn.c.
 *
 * The file: a header, then n_marks slots of {key / n_marks, weights of comma, full stop, question mark}, then n_capitals slots of
 * {key / n_capitals, weight}. A byte each; weights are signed and times the scale of the header.
 */
#ifndef LIN_LEXICON_PUNCTUATION_MODEL_H
#define LIN_LEXICON_PUNCTUATION_MODEL_H

#include "lexicon/punctuation.h"

#define LIN_PUNCTUATION_MAGIC "LINPUNC\n"

enum {
    LIN_PUNCTUATION_VERSION = 1,
    LIN_PUNCTUATION_MARK_FEATURES = 16,
    LIN_PUNCTUATION_CAPITAL_FEATURES = 9,
    LIN_PUNCTUATION_MARK_SLOT = LIN_MARKS, /* bytes */
    LIN_PUNCTUATION_CAPITAL_SLOT = 2,
    LIN_PUNCTUATION_MAX_BITS = 30
};

typedef struct lin_punctuation_header {
    char magic[8];
    uint32_t version, bits; /* of a key */
    uint32_t n_marks, n_capitals;
    float mark_scale, capital_scale; /* of the weights */
    float mark_bias[LIN_MARKS - 1], capital_bias;
    uint64_t checksum; /* lin_hash of the file with 0 here */
} lin_punctuation_header;

struct lin_punctuation {
    lin_punctuation_header header;
    unsigned char *slots;
    size_t n; /* bytes of the slots */
    struct lin_written *numbers;
};

/* Keys below 2^bits of the features of a gap, of a word. */
void lin_punctuation_mark_keys(const lin_gap *gap, unsigned bits, uint32_t keys[LIN_PUNCTUATION_MARK_FEATURES]);
void lin_punctuation_capital_keys(uint64_t before, int capital, uint64_t word, uint64_t after, unsigned bits,
                                  uint32_t keys[LIN_PUNCTUATION_CAPITAL_FEATURES]);

static inline size_t lin_punctuation_bytes(const lin_punctuation_header *h)
{
    return (size_t)h->n_marks * LIN_PUNCTUATION_MARK_SLOT + (size_t)h->n_capitals * LIN_PUNCTUATION_CAPITAL_SLOT;
}

#endif
