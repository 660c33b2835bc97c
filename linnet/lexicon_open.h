/*
 * lexicon_open.h - the lexicon of a command, and the words that the user adds to it.
 *
 * Pipeline: files -> [this] -> lexicon/tree, lexicon/transcript, align/spoken.
 * A file of added words has lines as in a lexicon, "word  W ER1 D", and lines of a word alone, whose pronunciation is found as
 * that of words outside the lexicon (lexicon/g2p.h). Such a word may have capitals and accents: it gets the form of words in a
 * text (lin_spelling_next), which has to be one word. A line that begins with "# " is a comment.
 *
 *   lin_lexicon_open("en.dict", NULL, "names.txt", NULL, phones, &options, &dictionary, &err);
 *   lin_dictionary_destroy(dictionary);
 *
 * Threads: no shared state.
 */
#ifndef LIN_LINNET_LEXICON_OPEN_H
#define LIN_LINNET_LEXICON_OPEN_H

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/g2p.h"
#include "lexicon/phones.h"

/* The lexicon of this path and the words of two files that extend it, plain or gzip'd: of the language (lin_find_added) and of
 * the user; NULL or "": none. g2p: the letter-to-sound rules; NULL: those of lin_find_rules. Errors as lin_dictionary_load;
 * LIN_MISMATCH for a word alone if there are no rules for these phones. */
lin_status lin_lexicon_open(const char *path, const char *own, const char *added, const char *g2p, const lin_phones *phones,
                            const lin_dictionary_options *options, lin_dictionary **dictionary, lin_error *err);

/* Adds such a file to a lexicon that is open; nothing if path is NULL or "". */
lin_status lin_lexicon_add(lin_dictionary *dictionary, const char *path, const char *g2p, const lin_phones *phones,
                           const lin_dictionary_options *options, lin_error *err);

/* Adds such a text, n bytes; messages call it `name`. rules: NULL for none. */
lin_status lin_lexicon_extend(lin_dictionary *dictionary, const char *text, size_t n, const char *name,
                              const lin_phones *phones, const lin_g2p_rules *rules, const lin_dictionary_options *options,
                              lin_error *err);

/* Reports the lines that skip_bad left out; warnings may be NULL. Returns how many there are. */
int lin_lexicon_tell_skipped(const lin_dictionary *dictionary, const lin_warnings *warnings);

#endif
