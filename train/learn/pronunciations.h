/*
 * pronunciations.h - probabilities of pronunciations, learnt from those that alignments chose.
 *
 * Pipeline: align/aligner (words and their phones) -> [this] -> lexicon/dictionary, which reads what it writes.
 * As Kaldi (utils/dict_dir_add_pronprobs.sh): P(pronunciation | word) = (count + 1) / sum over the word's pronunciations of
 * (count + 1), divided by the word's largest. So the most frequent pronunciation has 1, however many a word has. A word that was
 * never heard keeps the probabilities of the dictionary.
 *
 *   lin_pronunciations heard = {0};
 *   lin_pronunciations_count(&heard, "either", 6, labels, n_labels, &err);         // for each word of each alignment
 *   lin_pronunciations_write(&heard, dictionary, phones, &text, &err);
 *   lin_pronunciations_free(&heard);
 *
 * The order of counting does not matter. Threads: one at a time.
 */
#ifndef LIN_LEARN_PRONUNCIATIONS_H
#define LIN_LEARN_PRONUNCIATIONS_H

#include "base/buffer.h"
#include "base/symbols.h"
#include "lexicon/dictionary.h"
#include "lexicon/phones.h"

typedef struct lin_pronunciations {
    lin_symbols heard; /* each word with its phones */
    long *counts;      /* [heard.n] */
    int capacity;
    long words; /* of lin_pronunciations_write: counted occurrences of words of the dictionary that have several pronunciations */
} lin_pronunciations;

/* Counts one occurrence of a word of n bytes, in any case. Words outside the dictionary, such as numbers, may be counted: they
 * are not written. LIN_NO_MEMORY. */
lin_status lin_pronunciations_count(lin_pronunciations *heard, const char *word, size_t n, const int *labels, int n_labels,
                                    lin_error *err);

/*
 * Appends every pronunciation of the dictionary, in the order of its words: word, probability and phones between tabs, the
 * form of Kaldi's lexiconp.txt. Of a word the most frequent pronunciation comes first; of equal ones the dictionary's first.
 * Phones have the stress of the dictionary. A probability has four digits and is at least 0.0001. LIN_NO_MEMORY.
 */
lin_status lin_pronunciations_write(lin_pronunciations *heard, const lin_dictionary *dictionary, const lin_phones *phones,
                                    lin_buffer *out, lin_error *err);
void lin_pronunciations_free(lin_pronunciations *heard);

#endif
