/*
 * ngram_count.h - n-grams of a text and how often they come, as Kneser-Ney smoothing wants them.
 *
 * Pipeline: text, one sentence a line -> [this] -> lexicon/kneser_ney.
 * Each sentence stands between <s> and </s>. The text is kept as word numbers; its positions are sorted by the words that end
 * there, the last word first (a suffix array of depth `order`), and one walk over them gives the n-grams of every order with their
 * counts. 12 bytes a word of text, then about 4 * order + 9 a distinct n-gram. The order of the lines does not matter.
 *
 *   lin_ngram_counter_create(&options, &counter, &err);
 *   lin_ngram_counter_word(counter, "AA", 2, &err);                  // optional: a vocabulary that is known beforehand
 *   while (lines) lin_ngram_counter_line(counter, line, n, &err);    // LIN_FORMAT: this line was left out, go on
 *   lin_ngram_counter_finish(counter, &counts, &err);
 *   lin_ngram_counter_destroy(counter);
 *   ... lin_kneser_ney(&counts, ...) ...
 *   lin_ngram_counts_free(&counts);
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEXICON_NGRAM_COUNT_H
#define LIN_LEXICON_NGRAM_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/symbols.h"
#include "lexicon/ngram.h"

enum { LIN_NGRAM_LINE_MAX = 1 << 20 }; /* bytes of a line: a longer one is no sentence */

typedef struct lin_ngram_count_options {
    int order;   /* 1 .. LIN_NGRAM_MAX_ORDER */
    int unknown; /* the model has <unk>: words outside the vocabulary, and those under minimum[0], count as it */
    /* n-grams of order k that come less often than minimum[k - 1] are left out of the model, not of the sums that smoothing needs.
     * 0 and 1: all stay. No minimum may be below that of the order before it, but that of words: the text changes there. */
    uint32_t minimum[LIN_NGRAM_MAX_ORDER];
} lin_ngram_count_options;

/* N-grams of one order, sorted by word numbers, the first word first. */
typedef struct lin_ngram_counted {
    size_t n;
    uint32_t *words;  /* [n, order] */
    uint32_t *count;  /* [n] of the highest order, and of n-grams that begin with <s>: how often; else behind how many words */
    uint32_t *suffix; /* [n] its last order - 1 words among the n-grams of that order; NULL at order 1 */
    uint8_t *kept;    /* [n] 0: it comes less often than the minimum */
} lin_ngram_counted;

typedef struct lin_ngram_counts {
    int order;               /* not above the longest sentence with <s> and </s>: a longer n-gram does not exist */
    int unknown, begin, end; /* numbers of <unk> (-1: none), <s>, </s> */
    lin_symbols words;       /* sorted by their bytes; unigram i is word i, also where it never came (count 0) */
    lin_ngram_counted level[LIN_NGRAM_MAX_ORDER];
    uint64_t n_lines, n_words, n_unknown; /* sentences, words without <s> and </s>, words that count as <unk> */
} lin_ngram_counts;

typedef struct lin_ngram_counter lin_ngram_counter;

/* LIN_FORMAT for what is no sentence: control characters, a line over LIN_NGRAM_LINE_MAX bytes, a word over LIN_WORD_MAX, and <s>
 * or </s>, which mark its ends and cannot stand in it. */
lin_status lin_ngram_check_line(const char *line, size_t n, lin_error *err);

/* LIN_INVALID for an order or minimum out of range, and for minimum[0] over 1 without `unknown`. */
lin_status lin_ngram_counter_create(const lin_ngram_count_options *options, lin_ngram_counter **counter, lin_error *err);
void lin_ngram_counter_destroy(lin_ngram_counter *counter); /* NULL is fine */

/*
 * Adds a word to the vocabulary. After the first one the vocabulary is closed: other words count as <unk>, or without `unknown` are
 * refused. Before any line. LIN_FORMAT for control characters and blanks, a word over LIN_WORD_MAX bytes. <s>, </s> and <unk> are
 * passed over.
 */
lin_status lin_ngram_counter_word(lin_ngram_counter *counter, const char *word, size_t n, lin_error *err);

/*
 * Counts one sentence, n bytes without an end of line; one without words is <s> </s>. LIN_FORMAT, and the line is left out whole,
 * where lin_ngram_check_line fails, and where there is no <unk>, for <unk> or a word outside the vocabulary.
 */
lin_status lin_ngram_counter_line(lin_ngram_counter *counter, const char *line, size_t n, lin_error *err);

/* All n-grams. The counter is spent: it can only be destroyed. LIN_FORMAT if there was no word. */
lin_status lin_ngram_counter_finish(lin_ngram_counter *counter, lin_ngram_counts *counts, lin_error *err);
void lin_ngram_counts_free(lin_ngram_counts *counts);

#endif
