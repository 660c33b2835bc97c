/*
 * ngram.h - back-off n-gram language models, of words or of phones.
 *
 * Pipeline: ARPA text (plain or gzip) or a packed file -> [this] -> decoder/{beam,words}, train/learn/cmd_ngram.
 * Katz back-off as in ARPA files: log P(w | h) is that of the longest n-gram (h', w) in the model, plus the back-off weights of
 * the longer contexts. A state is the longest context that affects later scores: after equal states all scores are equal.
 *
 *   lin_ngram_open("en-us.arpa.gz", &lm, &err);                // or the packed file, which is mapped
 *   lin_ngram_state s = lin_ngram_begin(lm), next;
 *   logp = lin_ngram_score(lm, s, lin_ngram_find(lm, "hello", 5), &next);
 *   logp = lin_ngram_end(lm, next);                            // of </s>
 *   lin_ngram_write(lm, "en-us.lm", &err);                     // packed: opens fast, shared by processes
 *   lin_ngram_destroy(lm);
 *
 * All logarithms here are natural; ARPA's are to base 10. Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_NGRAM_H
#define LIN_LEXICON_NGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LIN_NGRAM_MAX_ORDER = 9, LIN_NGRAM_UNKNOWN = -1 };

typedef struct lin_ngram lin_ngram;
typedef uint32_t lin_ngram_state;
enum { LIN_NGRAM_EMPTY = 0 }; /* the state without a context */

/* By the first bytes: packed (mapped), gzip or plain ARPA. LIN_FORMAT with name:line (of the text) or what is damaged;
 * LIN_UNSUPPORTED for n-grams of more than LIN_NGRAM_MAX_ORDER words or a packed file of another version; LIN_IO, LIN_NO_MEMORY.
 * On failure *lm is NULL. Of a packed file the checksum is verified, in a few milliseconds for 20 MB that are in memory. */
lin_status lin_ngram_open(const char *path, lin_ngram **lm, lin_error *err);

/*
 * ARPA text from memory. Messages call it `name`. Lines may be in any order within a section; a missing back-off weight is 0; a
 * logarithm below -99 (to base 10) is -99, one up to 0.001 above 0 is 0. Refused: a duplicate n-gram, one whose first words are
 * not an n-gram themselves, words that are not unigrams, counts that are not those of the sections, malformed numbers, a missing
 * \end\. Numbers are stored as float: exactly if an order has at most 65,536 distinct ones, otherwise rounded by at most a
 * 32,767th of their range.
 */
lin_status lin_ngram_parse(const char *text, size_t n, const char *name, lin_ngram **lm, lin_error *err);

/* A packed model from memory, which is copied (for fuzzers). LIN_FORMAT for anything that lin_ngram_write cannot have written. */
lin_status lin_ngram_unpack(const void *bytes, size_t n, const char *name, lin_ngram **lm, lin_error *err);
void lin_ngram_destroy(lin_ngram *lm); /* NULL is fine */

/* Writes the packed form, to a temporary name that is renamed at the end. */
lin_status lin_ngram_write(const lin_ngram *lm, const char *path, lin_error *err);

int lin_ngram_order(const lin_ngram *lm);
int64_t lin_ngram_count(const lin_ngram *lm, int order); /* n-grams of this order */

/* Words, including <s>, </s> and <unk>; text NUL-terminated, owned by the model; find is case-sensitive, -1: not in the model. */
int lin_ngram_words(const lin_ngram *lm);
const char *lin_ngram_word(const lin_ngram *lm, int word);
int lin_ngram_find(const lin_ngram *lm, const char *text, size_t n);

lin_ngram_state lin_ngram_begin(const lin_ngram *lm); /* after <s>; the empty context if the model has no <s> */

/*
 * Natural log P(word | state), and the state after it. word LIN_NGRAM_UNKNOWN: that of <unk>; if the model has none, -INFINITY
 * and the empty state; the same for a word that is not below lin_ngram_words. A state that is not below lin_ngram_states counts
 * as the empty one. No allocation; a few binary searches.
 */
float lin_ngram_score(const lin_ngram *lm, lin_ngram_state state, int word, lin_ngram_state *next);

/* Natural log P(</s> | state); 0 if the model has no </s>. */
float lin_ngram_end(const lin_ngram *lm, lin_ngram_state state);

/* The unigram's natural log probability, for look-ahead. */
float lin_ngram_unigram(const lin_ngram *lm, int word);

/* All states are below this number; used to check a state from a file. */
uint32_t lin_ngram_states(const lin_ngram *lm);

/* A 64-bit hash of its contents, which identifies the model. */
uint64_t lin_ngram_fingerprint(const lin_ngram *lm);

/* ---- the filter of pairs --------------------------------------------------------------------------------------------------- */

/*
 * A filter of the pairs of words that a model's n-grams end in, which spares most of the searches in it; lexicon/tree has it for
 * decoder/words. Most words that a search scores follow their context in no n-gram: the score is that of the unigram plus the
 * context's back-off weights. The filter has a bit for each pair of a context's last word and a word, which is set if an n-gram
 * of any order above 1 ends in the pair. Other pairs may have the same bit (Bloom 1970, with one hash); a bit that is not set is
 * certain. The bits of 512 words in order of their spelling are in one cache line, because a search looks up words that begin
 * alike.
 *
 *   lin_ngram_context context = lin_ngram_context_of(lm, state);
 *   logp = lin_ngram_pairs_lack(&pairs, &context, word) ? lin_ngram_unseen(lm, &context, word, &next)
 *                                                       : lin_ngram_score(lm, state, word, &next);
 */
enum { LIN_NGRAM_PAIRS_LINE = 8 };

typedef struct lin_ngram_pairs {
    uint64_t *bits;
    size_t n; /* a power of two, LIN_NGRAM_PAIRS_LINE at least; 0: no filter, every pair may exist */
} lin_ngram_pairs;

/* What the scores of all words after a state have in common. */
typedef struct lin_ngram_context {
    lin_ngram_state last; /* of the last word alone; 0: it has none, and the filter has nothing of this context */
    float backoffs;       /* sum of the back-off weights down to the empty context */
} lin_ngram_context;

/* Number of 64-bit words of the filter: 4 to 8 bits for each bigram. 0 for a model of unigrams. */
size_t lin_ngram_pairs_size(const lin_ngram *lm);

/* Makes the filter, about 10 ns for each n-gram; lin_free(pairs->bits) releases it. LIN_NO_MEMORY: it is empty. */
lin_status lin_ngram_pairs_create(const lin_ngram *lm, lin_ngram_pairs *pairs, lin_error *err);

lin_ngram_context lin_ngram_context_of(const lin_ngram *lm, lin_ngram_state state);

/* Which of n 64-bit words has the bit of a pair: bit `word % 64`. Packed lexicons hold the bits: a change needs a new version. */
static inline size_t lin_ngram_pairs_at(size_t n, lin_ngram_state last, uint32_t word)
{
    const uint64_t key = ((uint64_t)last << 32 | word / 512) * UINT64_C(0x9E3779B97F4A7C15);
    const size_t line = (size_t)(key >> 32) & (n / LIN_NGRAM_PAIRS_LINE - 1);
    return line * LIN_NGRAM_PAIRS_LINE + word / 64 % LIN_NGRAM_PAIRS_LINE;
}

/* 1: no n-gram ends in the last word of the context and the word. */
static inline int lin_ngram_pairs_lack(const lin_ngram_pairs *pairs, const lin_ngram_context *context, int word)
{
    if (!pairs->n || !context->last || word < 0) return 0;
    return !(pairs->bits[lin_ngram_pairs_at(pairs->n, context->last, (uint32_t)word)] >> (word & 63) & 1);
}

/* lin_ngram_score of a word below lin_ngram_words after a context that lacks it, to the bit. */
float lin_ngram_unseen(const lin_ngram *lm, const lin_ngram_context *context, int word, lin_ngram_state *next);

#endif
