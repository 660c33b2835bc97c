/*
 * phones.h - the outputs of a model: names of its phones, the CTC blank at index 0.
 *
 * The default set, of share/linnet/en/phones.txt, is CMUdict's 39 phonemes of General American without stress, in alphabetical
 * order, as outputs 1..39 (the TIMIT folding of the literature also has 39, but different ones). A model file stores its set as
 * one line of names; every part of the program that turns labels into text or text into labels goes through the set of the model.
 *
 * A set of another language is a set of its own: a tab and the code of the language, or "own" if it is not known, follow the
 * name of the blank, and its names, any symbols, mean only themselves. A tab and the IPA, "(silence)" or "(noise)" may follow any
 * other name:
 *
 *   "<blank>\tde a\tɐ sch\tʃ sil\t(silence) spn\t(noise)"
 *
 * A silence in a dictionary is skipped, because a model outputs CTC's blank there. A noise is a phone like others.
 *
 *   lin_phones_create(NULL, &phones, &err);                 // the default; or the list from a model's metadata
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
enum { LIN_PHONES_DEFAULT_COUNT = 40, LIN_PHONE_NAME_MAX = 31, LIN_PHONE_IPA_MAX = 63, LIN_PHONES_READ_MAX = 64 };
enum { LIN_LANGUAGE_MAX = 15 };   /* bytes of the code of a language */
enum { LIN_PHONES_OWN_MAX = 255 }; /* phones of a set of its own: more are words or syllables */

typedef struct lin_phones lin_phones;

extern const char lin_phones_default[]; /* the default set: the blank and the phones of share/linnet/en/phones.txt */

typedef enum lin_phone_kind { LIN_PHONE_SOUND, LIN_PHONE_SILENCE, LIN_PHONE_NOISE } lin_phone_kind;

/*
 * Makes a set from names separated by single spaces, the first of which is "<blank>"; NULL means the default.
 * LIN_INVALID, naming the place: no phone, an empty name (two spaces in a row), a name twice, control characters, a name over
 * LIN_PHONE_NAME_MAX bytes, over 65,536 names. `list` is not kept.
 */
lin_status lin_phones_create(const char *list, lin_phones **phones, lin_error *err);
/*
 * Creates a set from a file. The first word of every line is a name; the second may be its IPA, or "silence" or "noise". A number
 * there, as in Kaldi's phones.txt, is ignored. Lines without a word, and those that begin with "# ", are skipped. LIN_IO too;
 * messages name the file.
 *   own  0: the blank must be the first; 1: it need not be in the file, and the set is one of its own, unless it has the names of
 *        all of CMUdict's phones. LIN_INVALID for over LIN_PHONES_OWN_MAX phones then
 */
lin_status lin_phones_load(const char *path, int own, lin_phones **phones, lin_error *err);
/* From the text of such a file; messages call it `name`. */
lin_status lin_phones_parse(const char *text, size_t n, const char *name, int own, lin_phones **phones, lin_error *err);
void lin_phones_destroy(lin_phones *phones); /* NULL is fine */

/* V: outputs including the blank. */
int lin_phones_count(const lin_phones *phones);

/* NUL-terminated, owned by the set; index in 0..V-1, else NULL. */
const char *lin_phones_name(const lin_phones *phones, int index);

/* The code of its language, such as "de": "en" of a set that is not one of its own, "" if it is not known. */
const char *lin_phones_language(const lin_phones *phones);

/* Whether this can be such a code: two or three small letters, and parts behind hyphens, as in "de" and "pt-BR"; not "own". */
int lin_phones_is_language(const char *code);

/* Sets the language of a set of its own, before others use the set. LIN_INVALID: it is no code. */
lin_status lin_phones_set_language(lin_phones *phones, const char *code, lin_error *err);

/* Whether it is a set of its own, and the kind of one of its phones. */
int lin_phones_is_own(const lin_phones *phones);
lin_phone_kind lin_phones_kind(const lin_phones *phones, int index);

/* The kind of a name that dictionaries give to silence ("sil", "sp") or noise ("spn", "nsn"), in either case. */
lin_phone_kind lin_phones_usual_kind(const char *name, size_t n);

/* Index of a name of n bytes (exact case), or -1. */
int lin_phones_find(const lin_phones *phones, const char *name, size_t n);

/* lin_phones_find, but a name that is not in the set is looked up without its stress digit: "AH0" finds "AH". */
int lin_phones_find_unstressed(const lin_phones *phones, const char *name, size_t n);

/*
 * One field of text (no blanks in it), in the forms that people use: a name of the set; CMUdict's name, in either case, with or
 * without a stress digit; or the IPA, one symbol or a sequence ("oʊ", "həˈloʊ", "t͡ʃ"), for any names of the set. Symbols that
 * General American does not distinguish are one phone: ə ʌ ɐ are AH, ɚ ɝ ɜ are ER, r ɹ are R, g ɡ are G, ɾ ʔ are T; tie bars,
 * length marks and other diacritics are ignored, a syllabic l̩ m̩ n̩ is AH and the consonant. Several symbols that are all ASCII
 * letters are a word, not phones: "hat". In a set of its own only names of the set and their IPA are phones, one or a sequence of
 * them ("haˈloː"), of which the longest that fits is taken; marks of stress are read as such.
 *   out     [capacity] phones and their stress, 0, 1 or 2 from a digit or ˈ ˌ ', -1 if there is none (also for consonants)
 *   stress  of a mark whose vowel has not come yet: 0 before a sequence of fields, and passed on from field to field
 * Returns the number of phones; 0 if the field is none of these forms, is the blank, or is longer than the capacity or
 * LIN_PHONES_READ_MAX.
 */
typedef struct lin_phone_read {
    int label;
    int stress;
} lin_phone_read;
int lin_phones_read(const lin_phones *phones, const char *text, size_t n, lin_phone_read *out, int capacity, int *stress);

/* CMUdict's name, without stress, of a phone whose name in the set is CMUdict's or IPA; NULL for any other, and in a set of its
 * own. */
const char *lin_phones_cmu(const lin_phones *phones, int index);

/* CMUdict's name of a phone that sounds much the same, by its IPA: for "aː" AA; NULL if there is none. In any set. */
const char *lin_phones_similar(const lin_phones *phones, int index);

/* Whether it is a vowel, which can have stress: of CMUdict, or by its IPA in a set of its own. */
int lin_phones_is_vowel(const lin_phones *phones, int index);

/* The list it was made from, as stored in a model's metadata: names separated by single spaces. Owned by the set. */
const char *lin_phones_list(const lin_phones *phones);

/* IPA spelling (UTF-8) of a phone whose name, without a stress digit, is one of CMUdict's 39, or that the set has; else its name.
 * NULL out of range. */
const char *lin_phones_ipa(const lin_phones *phones, int index);

#endif
