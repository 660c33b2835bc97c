/*
 * ngram_file.h - the bytes of an n-gram model, in memory and in its file: for lexicon/ngram.c and ngram_file.c, and the code that
 * estimates and prunes models.
 *
 * A model is one block of bytes, which is also its file: a header, the words in order of their bytes, and for every order
 * k = 1..N the k-grams in lexicographic order of their words, as in the tries of Whittaker & Raj 2001 and Heafield 2011:
 *
 *   header  [256]    LIN_NGRAM_AT_* below; of an order u32 count, u32 inner, u32 bits of logp's codes, u32 of back-off's
 *   words            u32 offset[W], then each word with a NUL; a word's number is its position, also that of its unigram
 *   logp             float[2^bits], the natural log-probabilities that codes stand for, ascending
 *   grams   [count]  word (bits for W - 1; none for unigrams) | code of its log-probability
 *   rank    [count]  k < N: for each 64 grams u32 inner nodes before, u64 a bit for each that is an inner node
 *   backoff          k < N: float[2^bits], back-off weights
 *   inner   [inner+1] k < N: first child (bits for the count of k + 1) | code of its back-off weight | link: the state of its
 *                    longest proper suffix that is one (bits for the states of lower orders). The last only ends the children
 *
 * Numbers are little-endian, bit fields begin at the lowest bit, and sections at multiples of 64 bytes, with zeros between;
 * 8 bytes of padding follow grams and inner.
 *
 * An inner node is a gram that is used as a context: it has longer grams below it or a back-off weight. Only these have states,
 * numbered through all orders from 1; state 0 is the empty context. So states are minimal by construction (Heafield 2011, section
 * 4.1). Log-probabilities are codes into a table of the order's distinct values: exact for up to 2^16 values, otherwise the means
 * of narrow bins.
 *
 * Queries do not trust the block: every number is limited to its range where it is used (below, under "nodes"), so a forged block
 * gives wrong scores, but no read out of bounds and no endless loop. Opening checks the conditions for this (the size is that of
 * the header's counts, the last word ends, code books hold numbers) and a checksum against damage.
 */
#ifndef LIN_LEXICON_NGRAM_FILE_H
#define LIN_LEXICON_NGRAM_FILE_H

#include <string.h>

#include "base/symbols.h"
#include "lexicon/ngram.h"

#define LIN_NGRAM_MAGIC "linngram"
enum {
    LIN_NGRAM_VERSION = 1,
    LIN_NGRAM_HEADER = 256,
    LIN_NGRAM_CODE_BITS = 16, // of log-probabilities and back-off weights, at most
    LIN_NGRAM_AT_VERSION = 8,
    LIN_NGRAM_AT_ORDER = 12,
    LIN_NGRAM_AT_SIZE = 16,
    LIN_NGRAM_AT_TEXT = 24,
    LIN_NGRAM_AT_LEVELS = 32, // 16 bytes each: count, inner, bits of codes
    LIN_NGRAM_AT_DATA_HASH = 176,
    LIN_NGRAM_AT_HEADER_HASH = 248 // hash of the header bytes before it
};
#define LIN_NGRAM_MAX_COUNT ((uint32_t)INT32_MAX) // n-grams of one order, and bytes of all words
#define LIN_NGRAM_LARGEST 228.0f                  // limit of all numbers: 99 to base 10, ARPA's logarithm of 0

// One order, from the header. Sections are given by their offset in the block.
typedef struct lin_ngram_level {
    uint32_t count, inner;
    uint32_t first_state; // of its inner nodes
    unsigned logp_bits, backoff_bits;
    unsigned word_bits, first_bits, link_bits, gram_bits, inner_bits; // derived
    size_t logp_at, backoff_at, grams_at, rank_at, inner_at;
} lin_ngram_level;

struct lin_ngram {
    const unsigned char *bytes;
    size_t size;
    int mapped; // the bytes are a mapped file, else from lin_alloc
    int order;
    uint32_t n_words, n_states;
    size_t text_bytes, offsets_at, text_at;
    lin_ngram_level levels[LIN_NGRAM_MAX_ORDER + 1]; // from 1
    int unknown, end_word;                           // words, or -1
    lin_ngram_state begin;
};

/* ---- bits ------------------------------------------------------------------------------------------------------------------ */

// Fields of up to 57 bits at any bit position; 8 bytes of padding follow each section.
static inline uint64_t lin_ngram_bits(const unsigned char *base, uint64_t at, unsigned width)
{
    uint64_t word;
    memcpy(&word, base + (at >> 3), sizeof word);
    return (word >> (at & 7)) & (((uint64_t)1 << width) - 1);
}

static inline float lin_ngram_float(const unsigned char *bytes, size_t index)
{
    float value;
    memcpy(&value, bytes + 4 * index, sizeof value);
    return value;
}

static inline uint32_t lin_ngram_u32(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------------- */

// A gram of level k by its index. 12 bytes for each 64 grams: the number of inner nodes before, and a bit for each gram.
static inline int lin_ngram_is_inner(const lin_ngram *lm, int k, uint32_t place, lin_ngram_state *state)
{
    const lin_ngram_level *level = &lm->levels[k];
    const unsigned char *block = lm->bytes + level->rank_at + (size_t)(place >> 6) * 12;
    uint64_t bits, bit = (uint64_t)1 << (place & 63);
    memcpy(&bits, block + 4, sizeof bits);
    uint32_t index = lin_ngram_u32(block) + (uint32_t)__builtin_popcountll(bits & (bit - 1));
    if (!(bits & bit) || index >= level->inner) return 0;
    *state = level->first_state + index;
    return 1;
}

static inline float lin_ngram_gram_logp(const lin_ngram *lm, int k, uint32_t place)
{
    const lin_ngram_level *level = &lm->levels[k];
    uint64_t code =
        lin_ngram_bits(lm->bytes + level->grams_at, (uint64_t)place * level->gram_bits + level->word_bits, level->logp_bits);
    return lin_ngram_float(lm->bytes + level->logp_at, code);
}

static inline uint32_t lin_ngram_gram_word(const lin_ngram *lm, int k, uint32_t place)
{
    const lin_ngram_level *level = &lm->levels[k];
    if (k == 1) return place;
    uint32_t word = (uint32_t)lin_ngram_bits(lm->bytes + level->grams_at, (uint64_t)place * level->gram_bits, level->word_bits);
    return word < lm->n_words ? word : 0;
}

// The level (length) of a state above 0.
static inline int lin_ngram_state_level(const lin_ngram *lm, lin_ngram_state state)
{
    int k = 1;
    while (k + 1 < lm->order && state >= lm->levels[k + 1].first_state) k++;
    return k;
}

// Of an inner node of level k < order: the range of its children in level k + 1.
static inline void lin_ngram_children(const lin_ngram *lm, int k, lin_ngram_state state, uint32_t *first, uint32_t *end)
{
    const lin_ngram_level *level = &lm->levels[k];
    const unsigned char *base = lm->bytes + level->inner_at;
    uint64_t at = (uint64_t)(state - level->first_state) * level->inner_bits;
    uint32_t count = lm->levels[k + 1].count;
    *first = (uint32_t)lin_ngram_bits(base, at, level->first_bits);
    *end = (uint32_t)lin_ngram_bits(base, at + level->inner_bits, level->first_bits);
    if (*end > count) *end = count;
    if (*first > *end) *first = *end;
}

static inline float lin_ngram_backoff(const lin_ngram *lm, int k, lin_ngram_state state)
{
    const lin_ngram_level *level = &lm->levels[k];
    uint64_t at = (uint64_t)(state - level->first_state) * level->inner_bits + level->first_bits;
    uint64_t code = lin_ngram_bits(lm->bytes + level->inner_at, at, level->backoff_bits);
    return lin_ngram_float(lm->bytes + level->backoff_at, code);
}

// Always of a lower level, so following links ends.
static inline lin_ngram_state lin_ngram_link(const lin_ngram *lm, int k, lin_ngram_state state)
{
    const lin_ngram_level *level = &lm->levels[k];
    uint64_t at = (uint64_t)(state - level->first_state) * level->inner_bits + level->first_bits + level->backoff_bits;
    uint64_t link = lin_ngram_bits(lm->bytes + level->inner_at, at, level->link_bits);
    return link < level->first_state ? (lin_ngram_state)link : 0;
}

// The gram (state, word) of level k + 1, where the state is of level k; 0: there is none. The word is in range.
int lin_ngram_child(const lin_ngram *lm, int k, lin_ngram_state state, uint32_t word, uint32_t *place);

/* ---- making ---------------------------------------------------------------------------------------------------------------- */

// The n-grams of one order as read, unsorted. Word numbers, `order` in a row. Natural logarithms.
typedef struct lin_ngram_table {
    uint32_t count;
    uint32_t *words; // NULL for unigrams
    float *logp, *backoff; // backoff NULL for the highest order
} lin_ngram_table;

typedef struct lin_ngram_tables {
    int order;
    lin_symbols words;                               // one for each unigram, in the unigrams' order
    lin_ngram_table tables[LIN_NGRAM_MAX_ORDER + 1]; // from 1; unigram i is word i
    int code_bits;                                   // above unigrams, 1 .. LIN_NGRAM_CODE_BITS; 0: that
} lin_ngram_tables;

// An invalid n-gram, found when all are sorted.
typedef struct lin_ngram_fault {
    int order;      // 0: no fault
    uint32_t index; // in its table
    int twice;      // else its context is missing
} lin_ngram_fault;

void lin_ngram_tables_free(lin_ngram_tables *tables);

/* Makes the model. The words of the tables are overwritten; the caller frees the tables in either case. Numbers beyond
 * LIN_NGRAM_LARGEST are limited to it, probabilities over 1 to 1. LIN_FORMAT: `fault` names the n-gram, so that the caller can
 * report its line. */
lin_status lin_ngram_build(lin_ngram_tables *tables, const char *name, lin_ngram **lm, lin_ngram_fault *fault, lin_error *err);

/* Computes widths, states and offsets from the counts and the bits of codes; sets lm->size. */
void lin_ngram_lay_out(lin_ngram *lm);

/* Finds the special words once the block is complete. */
void lin_ngram_find_special(lin_ngram *lm);

/* Writes the header with its checksums into a block that is otherwise complete; the checksums alone, which
 * tests need for blocks that they have changed. */
void lin_ngram_seal(const lin_ngram *lm, unsigned char *block);
void lin_ngram_put_checksums(unsigned char *block, size_t size);

#endif
