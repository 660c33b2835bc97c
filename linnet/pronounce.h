/*
 * pronounce.h - pronunciations of single words: those of the lexicon, else one by the letter-to-sound rules.
 *
 * Pipeline: options -> [this] -> linnet/keyword_list, linnet/grammar_tree.
 *
 *   lin_pronouncer_open(&p, values, phones, "keywords", warnings, &err);
 *   for (which = 0; lin_pronouncer_find(&p, word, n, which, &labels, &n_labels, &err) == LIN_OK && n_labels > 0; which++) ...
 *   lin_pronouncer_close(&p);
 *
 * Threads: one at a time.
 */
#ifndef LIN_LINNET_PRONOUNCE_H
#define LIN_LINNET_PRONOUNCE_H

#include "lexicon/g2p.h"
#include "linnet/decoding.h"

typedef struct lin_pronouncer {
    const lin_decoding_values *values;
    const lin_phones *phones;
    lin_dictionary *dictionary;
    lin_g2p_rules *rules;
    lin_g2p *g2p; /* made for the first word that the lexicon lacks */
    int labels[LIN_PRONUNCIATION_MAX]; /* of the last word by rule */
} lin_pronouncer;

/* Finds and opens the lexicon of the options. LIN_IO, naming what needs it, if there is none. */
lin_status lin_pronouncer_open(lin_pronouncer *pronouncer, const lin_decoding_values *values, const lin_phones *phones,
                               const char *what, const lin_warnings *warnings, lin_error *err);
void lin_pronouncer_close(lin_pronouncer *pronouncer); /* zeroed is fine */

/* Pronunciation number `which`, from 0 on, of a word in lower case; *n_labels 0: there are no more. Labels are valid until the
 * next call. Errors as lin_g2p_pronounce. */
lin_status lin_pronouncer_find(lin_pronouncer *pronouncer, const char *word, size_t n, int which, const int **labels,
                               int *n_labels, lin_error *err);

#endif
