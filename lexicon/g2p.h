/*
 * g2p.h - grapheme to phoneme: pronunciations of words outside the dictionary.
 *
 * Tried in this order: pieces around hyphens and apostrophes ("d'you", "vusi's"), British spellings ("favourable" as "favorable")
 * and endings ("rescuings" from "rescuing") of words the dictionary has; letter names for abbreviations without a vowel ("pbx");
 * and letter-to-sound rules (lexicon/g2p_rules.h). Without rules all steps except the last one work.
 *
 * That is English. For a set of phones of its own (lexicon/phones.h) only the pieces around hyphens, and rules for each that the
 * dictionary lacks, in letters of any script.
 *
 * Names of letters, endings and spellings are those of share/linnet/en/spelling.txt. Each ending gave fewer wrong phones than the
 * rules alone when one word at a time was left out of CMUdict.
 *
 *   lin_g2p_create(phones, dictionary, rules, &g2p, &err);
 *   lin_g2p_pronounce(g2p, "overmann's", 10, labels, LIN_PRONUNCIATION_MAX, &n, &how, &err);
 *   lin_g2p_destroy(g2p);
 *
 * Threads: one at a time per lin_g2p.
 */
#ifndef LIN_LEXICON_G2P_H
#define LIN_LEXICON_G2P_H

#include <stddef.h>

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/g2p_rules.h"
#include "lexicon/phones.h"

typedef struct lin_g2p lin_g2p;

/* The source of a pronunciation; for a word of several pieces the least certain one. */
typedef enum lin_g2p_how {
    LIN_G2P_DICTIONARY, /* the word, perhaps without quotes around it, is in the dictionary */
    LIN_G2P_DERIVED,    /* from words in the dictionary */
    LIN_G2P_SPELLED,    /* letter by letter */
    LIN_G2P_RULES       /* letter-to-sound rules */
} lin_g2p_how;

/* "dictionary", "derived", "spelled", "rules" */
const char *lin_g2p_how_name(lin_g2p_how how);

/*
 * Keeps pointers to `phones`, `dictionary` (NULL: no words known) and `rules` (NULL: none), which must outlive it. LIN_MISMATCH
 * if the phone set is not one of its own and lacks one of CMUdict's 39 phones (with or without stress digits); LIN_NO_MEMORY.
 */
lin_status lin_g2p_create(const lin_phones *phones, const lin_dictionary *dictionary, const lin_g2p_rules *rules, lin_g2p **g2p,
                          lin_error *err);
void lin_g2p_destroy(lin_g2p *g2p); /* NULL is fine */

/*
 * Pronounces a word of n bytes: letters, apostrophes, hyphens and, in English, "&" (and), at least one letter. English has the
 * letters a to z, also with accents. labels [capacity] gets *n_labels.
 * LIN_INVALID for other bytes or a word over LIN_WORD_MAX; LIN_TOO_SMALL; LIN_UNSUPPORTED if the word needs rules and there
 * are none.
 */
lin_status lin_g2p_pronounce(lin_g2p *g2p, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                             lin_g2p_how *how, lin_error *err);

#endif
