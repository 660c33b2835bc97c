/*
 * unicode.h - one form for each text: UTF-8, composed letters, no invisible characters; letters and their case in any script.
 *
 * Pipeline: texts and lexicons of others -> [this], once where they enter -> lexicon, train/score/trn, align/aligner.
 * "e" and a combining acute accent are the same text as "é", but other bytes: macOS writes names in the first form, PDF copies
 * words with soft hyphens, web pages have zero-width spaces. This composes letters of the Latin, Greek and Cyrillic scripts with
 * their marks (the Unicode standard, annex 15, form NFC), drops soft hyphens, zero-width characters and direction marks, and
 * reads UTF-16 that begins with a byte order mark.
 *
 *   char *own;
 *   lin_unicode_clean(text, n, "x.txt", LIN_UNICODE_ANY, &own, &text, &n, &err);
 *   ... text [n] ...
 *   lin_free(own);
 *
 * Threads: no shared state.
 */
#ifndef LIN_BASE_UNICODE_H
#define LIN_BASE_UNICODE_H

#include <stddef.h>

#include "base/status.h"

/* What becomes of a text that is neither UTF-8 nor UTF-16: it stays as it is, or is refused with its name and line. */
typedef enum lin_unicode_rule { LIN_UNICODE_ANY, LIN_UNICODE_ONLY } lin_unicode_rule;

/*
 * *clean [*n_clean] is the text itself, with *own NULL, if nothing has to change, else a new block, also at *own, that the caller
 * releases with lin_free. A byte order mark is dropped. LIN_FORMAT (LIN_UNICODE_ONLY) as "name:line: ...", with the command that
 * converts the file; LIN_NO_MEMORY. name may be NULL: "the text". On failure *own is NULL.
 */
lin_status lin_unicode_clean(const char *text, size_t n, const char *name, lin_unicode_rule rule, char **own, const char **clean,
                             size_t *n_clean, lin_error *err);

/* Letters and combining marks of any script; punctuation and spaces outside ASCII. ASCII is neither: base/textfile.h. */
int lin_unicode_is_letter(unsigned code);
int lin_unicode_is_punctuation(unsigned code);

/* The small letter of a capital one, of any script; others as they are. U+0130 and the few whose small letter has more bytes in
 * UTF-8 stay. */
unsigned lin_unicode_lower(unsigned code);

/* Writes text [n] in small letters to out [n], which may be the text itself; returns its bytes, at most n. Bytes that are not
 * UTF-8 are copied. */
size_t lin_unicode_lower_text(char *out, const char *text, size_t n);

/* The letter of a letter with a mark (U+00E9: "e"), and the mark (U+0301); 0 if it has none. */
unsigned lin_unicode_split(unsigned code, unsigned *mark);

#endif
