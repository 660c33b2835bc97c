/*
 * find.h - files that are installed with the library: the default model, lexicon, language models, letter-to-sound rules.
 *
 * The search order: the folder of lin_find_in; beside the running program, installed (../share/linnet) or built (share/linnet of
 * the source tree); in the same way beside the shared library, if one is used; the installation prefix; ./share/linnet.
 * Threads: any, while the environment does not change.
 */
#ifndef LIN_LINNET_FIND_H
#define LIN_LINNET_FIND_H

#include <stddef.h>

#include "base/status.h"
#include "lexicon/g2p_rules.h"
#include "lexicon/punctuation.h"
#include "lexicon/written.h"

/* A folder in which installed files are looked for before all other places, for the whole process; it is copied. NULL: none
 * again. LIN_INVALID: its path is too long. While no other function of this header runs. */
lin_status lin_find_in(const char *folder, lin_error *err);

/* A file of the folder share/linnet, by its name there ("web/page.js"), in these places. 0 and an empty path: there is none. */
int lin_find_file(const char *name, char *path, size_t capacity);

/*
 * The model file: `given` if not NULL, else $LINNET_MODEL, a path or the name of an installed model ("default", "offline"); else
 * the installed one, en/default.safetensors. LIN_IO if there is none.
 */
lin_status lin_find_model(const char *given, char *path, size_t capacity, lin_error *err);

/*
 * A file that may be installed with the program, in the folder en: `given`, a path or the name of an installed file; else the
 * value of the environment variable; else the first of the names (ended by NULL) that exists; else an empty path.
 */
lin_status lin_find_named(const char *given, const char *variable, const char *const *names, char *path, size_t capacity,
                          lin_error *err);

/* The lexicon by that rule, with LINNET_LEXICON. */
lin_status lin_find_lexicon(const char *given, char *path, size_t capacity, lin_error *err);

/* The same for these phones: an empty path if they are a set of their own, and none is named. */
lin_status lin_find_lexicon_of(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);

/* The language model of words for these phones, with LINNET_LM, likewise. */
lin_status lin_find_lm_of(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);

/*
 * The letter-to-sound rules by that rule, with LINNET_G2P: an empty path if there are none. What is installed, of words or texts,
 * is English: for phones that are a set of their own (lexicon/phones.h) this and the following find only what is named. phones
 * may be NULL here: English.
 */
lin_status lin_find_rules(const char *given, const lin_phones *phones, char *path, size_t capacity, lin_error *err);

/* The model of readable text (lexicon/punctuation.h): `given`, else by that rule, with LINNET_PUNCTUATION. */
lin_status lin_find_punctuation(const char *given, char *path, size_t capacity, lin_error *err);

/* The same for texts of these phones, opened: NULL if there is none. */
lin_status lin_find_open_punctuation(const lin_phones *phones, lin_punctuation **punctuation, lin_error *err);

/* The letter-to-sound rules, which spell words outside the lexicon in readable text; NULL if there are none for these phones. */
lin_g2p_rules *lin_find_speller(const lin_phones *phones);

/* Rules for numbers, signs and abbreviations (lexicon/written.h), opened: `given`, "none" for none, else by that rule, with
 * LINNET_NUMBERS, those of English; NULL if there are none. */
lin_status lin_find_open_numbers(const char *given, lin_written **written, lin_error *err);

/* The letter-to-sound rules, opened: NULL if there are none. */
lin_status lin_find_open_rules(const char *given, const lin_phones *phones, lin_g2p_rules **rules, lin_error *err);

#endif
