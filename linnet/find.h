/*
 * find.h - files that are installed with the library, a folder a language: model, lexicon, language models, rules.
 *
 * The places, in order: the folder of lin_find_in; beside the running program, installed (../share/linnet) or built (share/linnet
 * of the source tree); in the same way beside the shared library, if one is used; the installation prefix; ./share/linnet. In
 * each of them the files of a language are in a folder of its code, as docs/languages.md lists them.
 *
 * Which language: that of lin_find_language, else that of the phones (lin_phones_language): nothing is found for phones of an
 * unknown language. phones may be NULL: English. A folder that lin_find_language chose may lack files: those, except models, are
 * then the installed ones for the phones. Threads: any, while the environment does not change.
 */
#ifndef LIN_LINNET_FIND_H
#define LIN_LINNET_FIND_H

#include <stddef.h>

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/g2p.h"
#include "lexicon/phones.h"
#include "lexicon/readable.h"
#include "lexicon/written.h"

int lin_is_folder(const char *path); /* 1: it is there and a folder, perhaps by a link */

/* A folder in which installed files are looked for before all other places, for the whole process; it is copied. NULL: none
 * again. LIN_INVALID: its path is too long. No other function of this header may run meanwhile. */
lin_status lin_find_in(const char *folder, lin_error *err);

/* A file of the folder share/linnet, by its name there ("web/page.js"), in these places. 0 and an empty path: there is none. */
int lin_find_file(const char *name, char *path, size_t capacity);

/* Chooses the language of this process: the code of an installed one, or a folder with the files of one; it is copied. NULL: none
 * again. LIN_INVALID, with the installed ones, if it is neither. No other function of this header may run meanwhile. */
lin_status lin_find_language(const char *given, lin_error *err);

/* The code of the chosen language, which a folder has as its name; "" if none is chosen, or the folder's name is no code. */
const char *lin_find_chosen(void);

/*
 * The model file: `given` if not NULL, else $LINNET_MODEL, a path or the name of an installed model ("default", "offline"); else
 * default.safetensors of the chosen language, or of English. LIN_IO if there is none.
 */
lin_status lin_find_model(const char *given, char *path, size_t capacity, lin_error *err);

/*
 * A file of a language: `given`, a path or the name of such a file; else the value of the environment variable, if one is given;
 * else the first of the names (ended by NULL) that exists; else an empty path.
 */
lin_status lin_find_named(const lin_phones *phones, const char *given, const char *variable, const char *const *names, char *path,
                          size_t capacity, lin_error *err);

/* phones.txt of the chosen language, or of its folder only. 0: none is chosen, or has it. */
int lin_find_phones(char *path, size_t capacity);

/* By that rule: the lexicon (LINNET_LEXICON), for English also Debian's; the language model of words (LINNET_LM); letter-to-sound
 * rules (LINNET_G2P); the model of readable text (LINNET_PUNCTUATION, lexicon/readable.h). */
lin_status lin_find_lexicon(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);
lin_status lin_find_lm(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);
lin_status lin_find_rules(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);
lin_status lin_find_punctuation(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);

/* A language model that is a network: `given`, a path, the name of a file of the language, or that without .safetensors. */
lin_status lin_find_word_network(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);

/* Words that extend the lexicon (linnet/wording.h), added.dict of the language; an empty path: there is none, or `lexicon`
 * or LINNET_LEXICON names another lexicon. */
void lin_find_added(const lin_phones *phones, const char *lexicon, char *path, size_t capacity);

/* Opens the rules, or the model of readable text, that lin_find_* finds; NULL if there is none. */
lin_status lin_find_open_rules(const lin_phones *phones, const char *given, lin_g2p_rules **rules, lin_error *err);
lin_status lin_find_open_punctuation(const lin_phones *phones, lin_punctuation **punctuation, lin_error *err);

/* Opens the letter-to-sound rules that spell words outside the lexicon in readable text; NULL if none for these phones can be
 * read. LIN_NO_MEMORY. */
lin_status lin_find_speller(const lin_phones *phones, lin_g2p_rules **rules, lin_error *err);

/* Rules for numbers, signs and abbreviations (lexicon/written.h): those that `given`, else LINNET_NUMBERS, names, by that rule or
 * by the code of a language; an empty path for "none", or if there are none. */
lin_status lin_find_numbers(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err);

/* Opens the rules of lin_find_numbers; NULL if there are none. If no rules are named and the dictionary lacks their words for 0
 * to 9, the dictionary is of another language: NULL too. */
lin_status lin_find_open_numbers(const lin_phones *phones, const char *given, const lin_dictionary *dictionary,
                                 lin_written **written, lin_error *err);

#endif
