/*
 * unicode.h - UTF-8, and one form for each text: composed letters, no invisible characters; letters and their case in any script.
 *
 * Pipeline: texts and lexicons of others -> [this], once where they enter -> lexicon, train/score/trn, align/aligner.
 * "e" and a combining acute accent are the same text as "é", but other bytes: macOS writes names in the first form, PDF copies
 * words with soft hyphens, web pages have zero-width spaces. This composes letters of the Latin, Greek and Cyrillic scripts with
 * their marks (the Unicode standard, annex 15, form NFC), divides the ligatures U+FB00 to U+FB04 into letters ("ffi"), drops soft
 * hyphens, zero-width characters and direction marks, and reads UTF-16 that begins with a byte order mark. The tables are those
 * of libutf8proc.
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

/* ---- UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing beyond U+10FFFF ------------------------------------------- */

/* Decodes the first character of text [n] to *code, which may be NULL; returns its number of bytes, 1 to 4, or 0 if it is not
 * well-formed. */
size_t lin_utf8_decode(const char *text, size_t n, unsigned *code);

/* The inverse: writes `code`, at most U+10FFFF, to out; returns the number of bytes. */
size_t lin_utf8_encode(unsigned code, char out[4]);

/* Number of characters of a well-formed C string. */
size_t lin_utf8_count(const char *text);

/* Number of bytes before the first one that is not part of a well-formed character, or is a control character (U+0000-001F,
 * U+007F-009F) other than those in `allowed` (a C string, such as "\t\n"); n if there is none. */
size_t lin_utf8_prefix(const char *text, size_t n, const char *allowed);

/* The text, or a replacement for it in a message of one line. */
const char *lin_utf8_line(const char *text);

/* ---- one form of a text ---------------------------------------------------------------------------------------------------- */

/* What becomes of a text that is neither UTF-8 nor UTF-16: it stays as it is, or is refused with its name and line. */
typedef enum lin_unicode_rule { LIN_UNICODE_ANY, LIN_UNICODE_ONLY } lin_unicode_rule;

/*
 * *clean [*n_clean] is the text itself, with *own NULL, if nothing has to change, else a new block, also at *own, that the caller
 * releases with lin_free. A byte order mark is dropped. LIN_FORMAT: for LIN_UNICODE_ONLY as "name:line: ...", with the command
 * that converts the file, and for a file with a NUL near its beginning; LIN_NO_MEMORY. name NULL: "the text", which is no file.
 * On failure *own is NULL.
 */
lin_status lin_unicode_clean(const char *text, size_t n, const char *name, lin_unicode_rule rule, char **own, const char **clean,
                             size_t *n_clean, lin_error *err);

/* ---- letters of any script ------------------------------------------------------------------------------------------------- */

/* Letters and combining marks of any script; punctuation and spaces outside ASCII. ASCII is neither: base/textfile.h. */
int lin_unicode_is_letter(unsigned code);
int lin_unicode_is_punctuation(unsigned code);

/* The small letter of a capital one, of any script; other characters unchanged, also U+0130 and the few whose small letter has
 * more bytes in UTF-8. */
unsigned lin_unicode_lower(unsigned code);

/* The form of a letter at the beginning of a capitalised word (title case); other characters unchanged. */
unsigned lin_unicode_title(unsigned code);

/* Writes text [n] in small letters to out [n], which may be the text itself; returns its bytes, at most n. Bytes that are not
 * UTF-8 are copied. */
size_t lin_unicode_lower_text(char *out, const char *text, size_t n);

/* The base of a Latin, Greek or Cyrillic letter with a mark (U+00E9: "e"), and the mark (U+0301); 0 if it has no mark. */
unsigned lin_unicode_split(unsigned code, unsigned *mark);

#endif
