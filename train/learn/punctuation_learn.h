/*
 * punctuation_learn.h - learns a punctuation model from books.
 *
 * Pipeline: text -> train/learn/prose -> [this] -> lexicon/readable.
 *
 *   lin_punctuation_learn_options how = lin_punctuation_learn_options_default();
 *   lin_punctuation_learn(text, n, &how, &p, &report, &err);
 *   lin_punctuation_write(p, "words.punctuation", &err);
 *
 * First every key of a feature is counted with what stands there; of the keys that share a slot, the one with the largest gain
 * (its count times the divergence of what stands there from the average) gets it. Then the weights of these keys are learnt by
 * passes of AdaGrad (Duchi et al. 2011) over the paragraphs, in an order that mixes the books. The marks before a gap are those
 * of the text. Threads: one; the same text gives the same model.
 */
#ifndef LIN_LEARN_PUNCTUATION_LEARN_H
#define LIN_LEARN_PUNCTUATION_LEARN_H

#include "lexicon/readable.h"

typedef struct lin_punctuation_learn_options {
    int mark_slots, capital_slots; /* of the file: 4 bytes each, 2 bytes each */
    int bits;                      /* of a key: 2^bits are at most 256 times the slots */
    int passes;
    double rate;
} lin_punctuation_learn_options;

/* 300,000 and 131,072 slots: 1.46 MB. */
lin_punctuation_learn_options lin_punctuation_learn_options_default(void);

typedef struct lin_punctuation_learn_report {
    int64_t paragraphs, words;
    int64_t marks[LIN_MARKS], capitals; /* inside sentences */
} lin_punctuation_learn_report;

/* Paragraphs that are not running text are left out. Memory: 9 bytes a word and 32 bytes for each key. LIN_INVALID: options that
 * do not fit, or a text without sentences. report may be NULL. */
lin_status lin_punctuation_learn(const char *text, size_t n, const lin_punctuation_learn_options *options, lin_punctuation **p,
                                 lin_punctuation_learn_report *report, lin_error *err);

#endif
