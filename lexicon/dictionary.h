/*
 * dictionary.h - pronunciations of words, read from CMUdict.
 *
 * Reads CMUdict as Carnegie Mellon publishes it ("WORD  W ER1 D", comments after ";;;" or " #") and as pocketsphinx packages it
 * ("word w er d" in lower case). "word(2)" and a word on a second line are further pronunciations of it, in the order of the
 * file; those that are equal without stress are kept once. Stress digits are dropped unless the phone set has the stressed name;
 * the digits, or marks of the IPA, are stored beside the labels (lin_dictionary_stress). Phones may be in the IPA, one by one or
 * several without blanks between them (phones.h). Words are in the form of base/unicode.h, of any script, in small letters.
 * Silences of the set are skipped, and so are words that have only silence.
 *
 * Kaldi's lexiconp.txt and dictionaries of the Montreal Forced Aligner: the first number between word and phones is the
 * probability of the pronunciation, above 0 and at most 1; numbers behind it, their probabilities of silence, are skipped. A
 * number that is the name of a phone is a phone. The probabilities of a word need not sum to 1 (Kaldi divides them by the
 * largest). A line without a probability has 1; pronunciations that are equal without stress get the sum of theirs, at most 1.
 *
 *   lin_dictionary_load("cmudict.dict", phones, &dictionary, &err);
 *   n = lin_dictionary_find(dictionary, "Hello", 5, 0, &labels);   // labels[0..n-1] = HH AH L OW; 0: the word is not in it
 *   lin_dictionary_destroy(dictionary);
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_DICTIONARY_H
#define LIN_LEXICON_DICTIONARY_H

#include <stddef.h>

#include "base/status.h"
#include "lexicon/phones.h"

/* Bytes of a word, phones of a pronunciation, pronunciations of a word (CMUdict has up to 4), bytes of a line. */
enum { LIN_WORD_MAX = 255, LIN_PRONUNCIATION_MAX = 255, LIN_PRONUNCIATIONS_MAX = 255, LIN_DICTIONARY_LINE_MAX = 4096 };

typedef struct lin_dictionary lin_dictionary;

/*
 * Reads a dictionary from a file, or from n bytes (messages call it `name`). `phones` is used only during the call. A bad line is
 * left out and counted: one without phones, with a phone outside the set, with control characters, or over one of the limits
 * above. LIN_FORMAT for a file without any word; LIN_IO, LIN_NO_MEMORY. On failure *dictionary is NULL.
 */
lin_status lin_dictionary_load(const char *path, const lin_phones *phones, lin_dictionary **dictionary, lin_error *err);
lin_status lin_dictionary_parse(const char *text, size_t n, const char *name, const lin_phones *phones,
                                lin_dictionary **dictionary, lin_error *err);
void lin_dictionary_destroy(lin_dictionary *dictionary); /* NULL is fine */

/*
 * Adds the pronunciations in n bytes of the same format, after those that their words have. A text without any word is fine.
 * Errors as above; after one the lines before it are in the dictionary. No other thread may use it meanwhile.
 */
lin_status lin_dictionary_add(lin_dictionary *dictionary, const char *text, size_t n, const char *name, const lin_phones *phones,
                              lin_error *err);
int lin_dictionary_is_added(const lin_dictionary *dictionary, int index); /* 1: the word got a pronunciation in this way */

/*
 * The phone set of a dictionary: the default one if at least half of its words have only CMUdict's names, in either case, with or
 * without stress; else a set of its own (phones.h) of all symbols in the dictionary, sorted by their bytes, without marks of
 * stress before them, with the usual names of silence and noise as such. LIN_INVALID for more than LIN_PHONES_OWN_MAX, and for a
 * mark of stress inside a symbol: the phones of a word have blanks between them; LIN_FORMAT for a file without any;
 * LIN_NO_MEMORY.
 */
lin_status lin_dictionary_phones(const char *text, size_t n, const char *name, lin_phones **phones, lin_error *err);

/*
 * Pronunciation number `which` (0: the first) of a word of n bytes, letters in either case. Returns its number of phones
 * and points *labels at them (indices into the phone set, owned by the dictionary); 0 if there is no such word or pronunciation.
 * A spelled letter, "a.", that is not in it has the letter's pronunciations from the second on, or its only one.
 */
int lin_dictionary_find(const lin_dictionary *dictionary, const char *word, size_t n, int which, const int **labels);

/* The stress digit (CMUdict) of each label that lin_dictionary_find returned: 0, 1, 2, or -1 where the file has none. */
const signed char *lin_dictionary_stress(const lin_dictionary *dictionary, const int *labels);
int lin_dictionary_is_own(const lin_dictionary *dictionary);     /* it was read with a set of phones of its own */
int lin_dictionary_has_stress(const lin_dictionary *dictionary); /* any label has a digit */

/* The natural logarithm of a pronunciation's probability; 0 if it has none, or if there is no such pronunciation. */
double lin_dictionary_logp(const lin_dictionary *dictionary, const char *word, size_t n, int which);

/* Distinct words, and the index-th in the order of the file: lower case, NUL-terminated, owned by the dictionary. */
int lin_dictionary_count(const lin_dictionary *dictionary);
const char *lin_dictionary_word(const lin_dictionary *dictionary, int index);

/* Number of bad lines, which are left out, and the error message of the first ("" if none). */
int lin_dictionary_skipped(const lin_dictionary *dictionary, const char **first);

#endif
