/*
 * transcript.h - converts the text of an utterance to the label sequence that CTC is trained and scored on.
 *
 * text -> words -> dictionary (first pronunciation) -> g2p for the words it lacks -> labels. There is no silence phone and no
 * word boundary: CTC's blank absorbs both.
 *
 *   lin_transcriber_create(dictionary, g2p, &transcriber, &err);
 *   lin_transcriber_line(transcriber, text, n, &labels, &n_labels, &err);       // for every utterance
 *   for (i = 0; i < lin_transcriber_unknown_count(transcriber); i++) ... lin_transcriber_unknown(transcriber, i) ...
 *   lin_transcriber_destroy(transcriber);
 *
 * Text is UTF-8 (base/unicode.h). Letters of any script in either case, apostrophes (also the curly ones) and hyphens make words;
 * an English word that the dictionary lacks is looked up without its accents ("café"); "&" between two letters belongs to their
 * word ("AT&T"); other punctuation separates words, but the period of a spelled letter belongs to it ("A.", and "B.'s" where the
 * dictionary has it so). Digits and signs are read by rules (lexicon/written.h); without rules they are refused. Marks such as
 * [laughs] are not words (lin_mark_length): they are skipped and counted.
 *
 * Threads: one at a time per transcriber.
 */
#ifndef LIN_LEXICON_TRANSCRIPT_H
#define LIN_LEXICON_TRANSCRIPT_H

#include <stddef.h>

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/g2p.h"
#include "lexicon/written.h"

typedef struct lin_transcriber lin_transcriber;

/* A word outside the dictionary, with the pronunciation that was used. */
typedef struct lin_unknown_word {
    const char *word; /* lower case, owned by the transcriber, valid until its next line */
    long count;       /* number of occurrences */
    const int *labels;
    int n_labels;
    lin_g2p_how how;
} lin_unknown_word;

/* A word of a text, in the form that dictionary and g2p accept. */
typedef struct lin_spelling {
    char word[LIN_WORD_MAX]; /* lower case, no NUL */
    size_t n;                /* its bytes; 0: there are no more words */
    size_t begin, end;       /* its bytes in the text */
    int marks;               /* skipped before it */
    size_t mark, n_mark;     /* the first of them: its place and its bytes */
} lin_spelling;

/* The next word of a text from byte *at on; *at moves to its end. LIN_FORMAT, LIN_INVALID as for lin_transcriber_line. */
lin_status lin_spelling_next(const char *text, size_t n, size_t *at, lin_spelling *spelling, lin_error *err);

/* Makes it the word that the dictionary has: an English word that it lacks loses its accents (in other languages they make
 * other words), and quotes around a word that it has are dropped. */
void lin_spelling_settle(lin_spelling *spelling, const lin_dictionary *dictionary);

/* Writes the word without accents to out; its bytes. 0: it has no accents. */
size_t lin_spelling_plain(const lin_spelling *spelling, char out[LIN_WORD_MAX]);

/*
 * Reads the words of a text, and what is not said as it is spelled (lexicon/written.h): numbers, signs, abbreviations.
 *
 *   lin_word_reader words = {.written = written, .text = text, .n = n};     // written NULL: digits and signs are refused
 *   while ((status = lin_word_reader_next(&words, &word, &err)) == LIN_OK && (word.n || words.readings.n)) ...;
 *   lin_word_reader_free(&words);
 *
 * For such a form word.n is 0, word.begin and word.end are its place, and words.readings are what may be said.
 */
typedef struct lin_word_reader {
    const lin_written *written;
    const char *text;
    size_t n, at;      /* at: where the next word is looked for */
    size_t next, end;  /* the next form from there on; next == n: none. end 0: not looked for yet */
    lin_readings readings;
} lin_word_reader;

lin_status lin_word_reader_next(lin_word_reader *words, lin_spelling *word, lin_error *err);
void lin_word_reader_free(lin_word_reader *words);

/* The next word of a reading from byte *at on, 0 at first; word->n 0: there are no more. A word in parts, "sixty+two", is one if
 * the dictionary has it, or is NULL; else each part is one. LIN_INVALID for a word over LIN_WORD_MAX bytes. */
lin_status lin_reading_next(const char *reading, size_t *at, const lin_dictionary *dictionary, lin_spelling *word,
                            lin_error *err);

/* Keeps both pointers; they must outlive it. g2p may be NULL: then a word outside the dictionary is an error. */
lin_status lin_transcriber_create(const lin_dictionary *dictionary, lin_g2p *g2p, lin_transcriber **transcriber, lin_error *err);
void lin_transcriber_destroy(lin_transcriber *transcriber); /* NULL is fine */

/* From now on forms of `written`, which must outlive it, are read as their first reading; NULL: none. */
void lin_transcriber_read_written(lin_transcriber *transcriber, const lin_written *written);

/* From now on a word that cannot be pronounced has no labels, and is no error. missing: how many the last line had. */
void lin_transcriber_allow_missing(lin_transcriber *transcriber);
int lin_transcriber_missing(const lin_transcriber *transcriber);

/*
 * Labels of one utterance's text (n bytes). *labels is owned by the transcriber and valid until its next line; *n_labels may be
 * 0. LIN_FORMAT, naming the byte, for control characters, digits and symbols without rules for them, bytes that are not UTF-8,
 * and a line of a file in UTF-16; LIN_INVALID for a word over LIN_WORD_MAX bytes or, without g2p, outside the dictionary;
 * LIN_UNSUPPORTED, LIN_NO_MEMORY as for g2p.
 */
lin_status lin_transcriber_line(lin_transcriber *transcriber, const char *text, size_t n, const int **labels, int *n_labels,
                                lin_error *err);

/* The stress of the last line's labels in the dictionary (lin_dictionary_stress); -1 in words outside it. */
const signed char *lin_transcriber_stress(const lin_transcriber *transcriber);

/* Words seen in lines that succeeded or failed, and how many of them the dictionary lacked. */
long lin_transcriber_words(const lin_transcriber *transcriber);
long lin_transcriber_unknown_words(const lin_transcriber *transcriber);

/* Marks that were skipped, and the first of them ("" if none), cut to fit a message. */
long lin_transcriber_marks(const lin_transcriber *transcriber, const char **first);

/* The distinct unknown words in the order of their first appearance. */
int lin_transcriber_unknown_count(const lin_transcriber *transcriber);
lin_unknown_word lin_transcriber_unknown(const lin_transcriber *transcriber, int index);

/* Their indices, the most frequent first, to be released with lin_free. LIN_NO_MEMORY. */
lin_status lin_transcriber_order(const lin_transcriber *transcriber, int **order, lin_error *err);

/* ---- marks that are not words ---------------------------------------------------------------------------------------------- */

/*
 * Texts for alignment, training and scoring have marks of sounds and of the transcriber:
 *
 *   [anything]  <anything>          square and angle brackets
 *   (coughs)  {sighs}  *laughter*   only if the first word names a sound or a silence (laugh, cough, breath, noise, music,
 *                                   silence, inaudible, ...) and there are at most three: ordinary parentheses hold words
 *   &=laughs                        CHAT's form
 *
 * A mark is at most LIN_MARK_MAX bytes long and within one line; brackets without an end separate words, as other punctuation
 * does.
 */

enum { LIN_MARK_MAX = 80 };

/* Length in bytes of the mark at the beginning of text [n]; 0 if there is none. */
size_t lin_mark_length(const char *text, size_t n);

#endif
