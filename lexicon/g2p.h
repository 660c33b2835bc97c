/*
 * g2p.h - grapheme to phoneme: pronunciations of words outside the dictionary.
 *
 * Tried in this order: pieces around hyphens and apostrophes ("d'you", "vusi's"), British spellings ("favourable" as "favorable")
 * and endings ("rescuings" from "rescuing") of words the dictionary has; letter names for abbreviations without a vowel ("pbx");
 * and letter-to-sound rules. Without rules all steps except the last one work.
 *
 * That is English. With a phone set of its own (lexicon/phones.h) only hyphens divide a word, and rules pronounce the pieces that
 * the dictionary lacks, in letters of any script.
 *
 * Names of letters, endings and spellings are those of share/linnet/en/spelling.txt. Each ending gave fewer wrong phones than the
 * rules alone when one word at a time was left out of CMUdict.
 *
 * The rules are a joint n-gram model (Bisani & Ney 2008, Joint-sequence models for grapheme-to-phoneme conversion), learnt by
 * train/learn/g2p_learn from a dictionary: each of its "words" is a pair of one letter, of any script, and zero, one or two
 * phones, written "t|T", "h|" or "x|K+S". The pronunciation is the most probable sequence of pairs that spells the word; a beam
 * search finds it letter by letter.
 *
 *   lin_g2p_rules_open("words.g2p", phones, &rules, &err);
 *   lin_g2p_rules_apply(rules, "zorblatt", 8, labels, LIN_PRONUNCIATION_MAX, &n, &err);     // Z AO R B L AE T
 *   lin_g2p_create(phones, dictionary, rules, &g2p, &err);
 *   lin_g2p_pronounce(g2p, "overmann's", 10, labels, LIN_PRONUNCIATION_MAX, &n, &how, &err);
 *   lin_g2p_destroy(g2p);
 *   lin_g2p_rules_destroy(rules);
 *
 * Threads: both are immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_G2P_H
#define LIN_LEXICON_G2P_H

#include <stddef.h>

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/ngram.h"
#include "lexicon/phones.h"

/* ---- letter-to-sound rules ------------------------------------------------------------------------------------------------- */

typedef struct lin_g2p_rules lin_g2p_rules;

/* Opens a file that lin_ngram_write wrote. LIN_MISMATCH for a model that is not a set of pairs or has phones that the phone set
 * lacks; otherwise as lin_ngram_open. `phones` is used only during the call. On failure *rules is NULL. */
lin_status lin_g2p_rules_open(const char *path, const lin_phones *phones, lin_g2p_rules **rules, lin_error *err);

/* Opens rules from a model in memory, which they own from now on, also on failure. Messages call it `name`. */
lin_status lin_g2p_rules_create(lin_ngram *lm, const char *name, const lin_phones *phones, lin_g2p_rules **rules, lin_error *err);
void lin_g2p_rules_destroy(lin_g2p_rules *rules); /* NULL is fine */

/*
 * Pronounces a word of n bytes, 1 to LIN_WORD_MAX, of lower-case letters. labels [capacity] gets *n_labels, which is 0 if every
 * letter is silent. A letter without a pair in the rules counts as the same letter without its accent. LIN_INVALID for bytes that
 * are not UTF-8 and other lengths; LIN_UNSUPPORTED for a letter without any pair; LIN_TOO_SMALL; LIN_NO_MEMORY.
 */
lin_status lin_g2p_rules_apply(const lin_g2p_rules *rules, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                               lin_error *err);

/*
 * The rules backwards: the most probable spelling of n phones, a C string in word [capacity]. At most two letters in a row are
 * silent. LIN_INVALID for no phones or more than LIN_PRONUNCIATION_MAX; LIN_UNSUPPORTED if no letters have such sounds;
 * LIN_TOO_SMALL; LIN_NO_MEMORY.
 */
lin_status lin_g2p_rules_spell(const lin_g2p_rules *rules, const int *labels, int n, char *word, size_t capacity, lin_error *err);

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

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

/* Moves *word past the apostrophes and hyphens before a word of n bytes; returns its bytes without those before and after it. */
size_t lin_word_trim(const char **word, size_t n);

#endif
