/*
 * phones.h - the outputs of a model: names of its phones, the CTC blank at index 0.
 *
 * The default set is CMUdict's 39 phonemes of General American without stress, in alphabetical order, as outputs 1..39 (the TIMIT
 * folding of the literature has 39 as well, but other ones). A model file stores its set as one line of names; every part of the
 * program that turns labels into text or text into labels goes through the set of the model.
 *
 *   lin_phones_create(NULL, &phones, &err);                 // the default; or the list out of a model's metadata
 *   lin_phones_find(phones, "AA", 2);                       // 1
 *   lin_phones_name(phones, 39);                            // "ZH"
 *   lin_phones_destroy(phones);
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_PHONES_H
#define LIN_LEXICON_PHONES_H

#include <stddef.h>

#include "base/status.h"

#define LIN_PHONES_BLANK "<blank>"
#define LIN_PHONES_DEFAULT                                                                                                        \
    "<blank> AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"
enum { LIN_PHONES_DEFAULT_COUNT = 40, LIN_PHONE_NAME_MAX = 31, LIN_PHONES_READ_MAX = 64 };

typedef struct lin_phones lin_phones;

/*
 * Makes a set from names separated by single spaces, the first of which is "<blank>"; NULL means the default.
 * LIN_INVALID, naming the place: no phone, an empty name (two spaces in a row), a name twice, control characters, a name over
 * LIN_PHONE_NAME_MAX bytes, over 65,536 names. Nothing is kept of `list`.
 */
lin_status lin_phones_create(const char *list, lin_phones **phones, lin_error *err);
void lin_phones_destroy(lin_phones *phones); /* NULL is fine */

/* V: outputs including the blank. */
int lin_phones_count(const lin_phones *phones);

/* NUL-terminated, owned by the set; index in 0..V-1, else NULL. */
const char *lin_phones_name(const lin_phones *phones, int index);

/* Index of a name of n bytes (exact case), or -1. */
int lin_phones_find(const lin_phones *phones, const char *name, size_t n);

/* The same, and where the name is not in the set, once more without a stress digit at its end: "AH0" finds "AH". */
int lin_phones_find_unstressed(const lin_phones *phones, const char *name, size_t n);

/*
 * One field of text (no blanks in it), as people write phones: a name of the set; CMUdict's name, in small letters too, with or
 * without a stress digit; or the IPA, one symbol or several one behind the other ("oʊ", "həˈloʊ", "t͡ʃ"), whatever the set itself
 * calls its phones. Symbols that General American does not tell apart are one phone: ə ʌ ɐ are AH, ɚ ɝ ɜ are ER, r ɹ are R, g ɡ
 * are G, ɾ ʔ are T; tie bars, length marks and other diacritics are passed over, a syllabic l̩ m̩ n̩ is AH and the consonant.
 * Several symbols that are all ASCII letters are a word, not phones: "hat".
 *   out     [capacity] phones and their stress, 0, 1 or 2 by a digit or ˈ ˌ ', -1 where nothing says it (also of consonants)
 *   stress  of a mark that the vowel has yet to follow: 0 before a sequence of fields, and handed on from field to field
 * Returns the number of phones; 0 where the field is none of this, is the blank, or is longer than
 * the capacity or LIN_PHONES_READ_MAX.
 */
typedef struct lin_phone_read {
    int label;
    int stress;
} lin_phone_read;
int lin_phones_read(const lin_phones *phones, const char *text, size_t n, lin_phone_read *out, int capacity, int *stress);

/* CMUdict's name, without stress, of a phone that the set calls by it or by the IPA; NULL for any other. */
const char *lin_phones_cmu(const lin_phones *phones, int index);

/* Whether it is a vowel of CMUdict, which stress belongs to. */
int lin_phones_is_vowel(const lin_phones *phones, int index);

/* The list it was made from, as stored in a model's metadata: names separated by single spaces. Owned by the set. */
const char *lin_phones_list(const lin_phones *phones);

/* IPA spelling (UTF-8) of a phone whose name, less a stress digit, is one of CMUdict's 39; else its name. NULL out of range. */
const char *lin_phones_ipa(const lin_phones *phones, int index);

#endif
