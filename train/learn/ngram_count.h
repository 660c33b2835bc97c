/*
 * ngram_count.h - counts the n-grams of a text, for Kneser-Ney smoothing.
 *
 * Pipeline: text, one sentence a line -> [this] -> train/learn/kneser_ney.
 * Each sentence is put between <s> and </s>. The text is stored as word numbers; its positions are sorted by the words that end
 * there, the last word first (a suffix array of depth `order`), and one pass over them gives the n-grams of every order with
 * their counts. Memory: 12 bytes per word of text, then about 4 * order + 9 per distinct n-gram. The order of the lines does not
 * matter.
 *
 *   lin_ngram_counter_create(&options, &counter, &err);
 *   lin_ngram_counter_word(counter, "AA", 2, &err);                  // optional: a fixed vocabulary
 *   while (lines) lin_ngram_counter_line(counter, line, n, &err);    // LIN_FORMAT: this line was left out, continue
 *   lin_ngram_counter_finish(counter, &counts, &err);
 *   lin_ngram_counter_destroy(counter);
 *   ... lin_kneser_ney(&counts, ...) ...
 *   lin_ngram_counts_free(&counts);
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEARN_NGRAM_COUNT_H
#define LIN_LEARN_NGRAM_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/symbols.h"
#include "lexicon/ngram.h"

enum { LIN_NGRAM_LINE_MAX = 1 << 20 }; /* bytes of a line: a longer one is not accepted */

typedef struct lin_ngram_count_options {
    int order;   /* 1 .. LIN_NGRAM_MAX_ORDER */
    int unknown; /* the model has <unk>: words outside the vocabulary or rarer than minimum[0] count as <unk> */
    /* n-grams of order k with a count below minimum[k - 1] are left out of the model, but not of the sums for smoothing. 0 and 1
     * keep all. From order 3 on, no minimum may be below that of the order before; minimum[0] is independent, because rare words
     * become <unk> in the text. */
    uint32_t minimum[LIN_NGRAM_MAX_ORDER];
    int occurrences; /* 1: counts are occurrences in all orders; 0: in lower orders, numbers of distinct words before them */
} lin_ngram_count_options;

/* N-grams of one order, sorted by word numbers, the first word first. */
typedef struct lin_ngram_counted {
    size_t n;
    uint32_t *words;  /* [n, order] */
    uint32_t *count;  /* [n] at the highest order, of n-grams that begin with <s>, and with `occurrences`: how often it occurs;
                       * else the number of distinct words before it */
    uint32_t *suffix; /* [n] index of its last order - 1 words among the n-grams of that order; NULL at order 1 */
    uint8_t *kept;    /* [n] 0: its count is below the minimum */
} lin_ngram_counted;

typedef struct lin_ngram_counts {
    int order;               /* at most the length of the longest sentence with <s> and </s> */
    int unknown, begin, end; /* numbers of <unk> (-1: none), <s>, </s> */
    lin_symbols words;       /* sorted by their bytes; unigram i is word i, even if it is not in the text (count 0) */
    lin_ngram_counted level[LIN_NGRAM_MAX_ORDER];
    uint64_t n_lines, n_words, n_unknown; /* sentences, words without <s> and </s>, words that count as <unk> */
} lin_ngram_counts;

typedef struct lin_ngram_counter lin_ngram_counter;

/* LIN_FORMAT for a line that is not a sentence: it has control characters, over LIN_NGRAM_LINE_MAX bytes, a word over
 * LIN_WORD_MAX, or <s> or </s>, which mark its ends. */
lin_status lin_ngram_check_line(const char *line, size_t n, lin_error *err);

/* LIN_INVALID for an order or minimum out of range, and for minimum[0] over 1 without `unknown`. */
lin_status lin_ngram_counter_create(const lin_ngram_count_options *options, lin_ngram_counter **counter, lin_error *err);
void lin_ngram_counter_destroy(lin_ngram_counter *counter); /* NULL is fine */

/*
 * Adds a word to the vocabulary; before the first line. The vocabulary is then closed: other words count as <unk>, or are refused
 * without `unknown`. LIN_FORMAT for control characters and blanks, a word over LIN_WORD_MAX bytes. <s>, </s> and <unk> are
 * ignored.
 */
lin_status lin_ngram_counter_word(lin_ngram_counter *counter, const char *word, size_t n, lin_error *err);

/* Adds the first word of every line of a text; `name` and the line stand in messages. LIN_FORMAT too for a text without any. */
lin_status lin_ngram_counter_vocabulary(lin_ngram_counter *counter, const char *text, size_t n, const char *name, lin_error *err);

/*
 * Counts one sentence, n bytes without a line end; one without words is <s> </s>. LIN_FORMAT, and the whole line is left out, if
 * lin_ngram_check_line fails, or, if there is no <unk>, for <unk> or a word outside the vocabulary.
 */
lin_status lin_ngram_counter_line(lin_ngram_counter *counter, const char *line, size_t n, lin_error *err);

/* Returns all n-grams. Afterwards the counter can only be destroyed. LIN_FORMAT if there was no word. */
lin_status lin_ngram_counter_finish(lin_ngram_counter *counter, lin_ngram_counts *counts, lin_error *err);
void lin_ngram_counts_free(lin_ngram_counts *counts);

#endif
