// ngram.c - words, scores and states of a packed model; see ngram.h.

#include "lexicon/ngram.h"

#include <math.h>

#include "base/file.h"
#include "base/memory.h"
#include "lexicon/ngram_block.h"

void lin_ngram_destroy(lin_ngram *lm)
{
    if (!lm) return;
    if (lm->mapped) {
        lin_file_map_close(&(lin_file_map){lm->bytes, lm->size});
    } else {
        lin_free((void *)(uintptr_t)lm->bytes);
    }
    lin_free(lm);
}

int lin_ngram_order(const lin_ngram *lm) { return lm->order; }

int64_t lin_ngram_count(const lin_ngram *lm, int order)
{
    return order >= 1 && order <= lm->order ? (int64_t)lm->levels[order].count : 0;
}

uint32_t lin_ngram_states(const lin_ngram *lm) { return lm->n_states; }

uint64_t lin_ngram_fingerprint(const lin_ngram *lm)
{
    uint64_t hash;
    memcpy(&hash, lm->bytes + LIN_NGRAM_AT_HEADER_HASH, sizeof hash);
    return hash;
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

int lin_ngram_words(const lin_ngram *lm) { return (int)lm->n_words; }

// The text ends with a NUL (checked when the file is opened): no offset in it leads out of it.
static const char *word_at(const lin_ngram *lm, uint32_t word)
{
    uint32_t offset = lin_ngram_u32(lm->bytes + lm->offsets_at + 4 * (size_t)word);
    return (const char *)lm->bytes + lm->text_at + (offset < lm->text_bytes ? offset : lm->text_bytes - 1);
}

const char *lin_ngram_word(const lin_ngram *lm, int word)
{
    return word >= 0 && (uint32_t)word < lm->n_words ? word_at(lm, (uint32_t)word) : NULL;
}

int lin_ngram_find(const lin_ngram *lm, const char *text, size_t n)
{
    uint32_t low = 0, high = lm->n_words;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *word = word_at(lm, middle);
        size_t n_word = strlen(word);
        int order = memcmp(word, text, n_word < n ? n_word : n);
        if (!order && n_word == n) return (int)middle;
        if (order < 0 || (!order && n_word < n)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return LIN_NGRAM_UNKNOWN;
}

void lin_ngram_find_special(lin_ngram *lm)
{
    int begin = lin_ngram_find(lm, "<s>", 3);
    lm->end_word = lin_ngram_find(lm, "</s>", 4);
    lm->unknown = lin_ngram_find(lm, "<unk>", 5);
    if (lm->unknown < 0) lm->unknown = lin_ngram_find(lm, "<UNK>", 5);
    lm->begin = 0;
    if (begin >= 0 && lm->order > 1) lin_ngram_is_inner(lm, 1, (uint32_t)begin, &lm->begin);
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------- */

lin_ngram_state lin_ngram_begin(const lin_ngram *lm) { return lm->begin; }

lin_ngram_state lin_ngram_empty(const lin_ngram *lm)
{
    (void)lm;
    return 0;
}

int lin_ngram_child(const lin_ngram *lm, int k, lin_ngram_state state, uint32_t word, uint32_t *place)
{
    const lin_ngram_level *level = &lm->levels[k + 1];
    const unsigned char *grams = lm->bytes + level->grams_at;
    uint32_t low, end;
    lin_ngram_children(lm, k, state, &low, &end);
    for (uint32_t n = end - low; n > 0;) {
        uint32_t half = n / 2, middle = low + half;
        uint32_t at = (uint32_t)lin_ngram_bits(grams, (uint64_t)middle * level->gram_bits, level->word_bits);
        if (at == word) {
            *place = middle;
            return 1;
        }
        if (at < word) {
            low = middle + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return 0;
}

// From the longest context to the empty one: the first that has the word gives its probability, the first whose gram is itself a
// context gives the next state, and the contexts before the one with the probability give their back-off weights.
float lin_ngram_score(const lin_ngram *lm, lin_ngram_state state, int word, lin_ngram_state *next)
{
    float backoff = 0, logp = 0;
    int found = 0;
    uint32_t place;
    *next = 0;
    if (word < 0 || (uint32_t)word >= lm->n_words) word = lm->unknown;
    if (word < 0) return -INFINITY;
    if (state >= lm->n_states) state = 0;
    while (state) {
        int k = lin_ngram_state_level(lm, state);
        if (lin_ngram_child(lm, k, state, (uint32_t)word, &place)) {
            if (!found) logp = lin_ngram_gram_logp(lm, k + 1, place);
            found = 1;
            if (k + 1 < lm->order && lin_ngram_is_inner(lm, k + 1, place, next)) return backoff + logp;
        } else if (!found) {
            backoff += lin_ngram_backoff(lm, k, state);
        }
        state = lin_ngram_link(lm, k, state);
    }
    if (!found) logp = lin_ngram_gram_logp(lm, 1, (uint32_t)word);
    if (lm->order > 1) lin_ngram_is_inner(lm, 1, (uint32_t)word, next);
    return backoff + logp;
}

float lin_ngram_end(const lin_ngram *lm, lin_ngram_state state)
{
    lin_ngram_state next;
    return lm->end_word < 0 ? 0 : lin_ngram_score(lm, state, lm->end_word, &next);
}

float lin_ngram_unigram(const lin_ngram *lm, int word)
{
    if (word < 0 || (uint32_t)word >= lm->n_words) word = lm->unknown;
    return word < 0 ? -INFINITY : lin_ngram_gram_logp(lm, 1, (uint32_t)word);
}
