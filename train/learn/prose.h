/*
 * prose.h - natural text as a recogniser's words: each with its mark (full stop, comma, question mark) and its capital.
 *
 * Pipeline: books -> [this] -> train/learn/punctuation_learn, train/learn/cmd_readable.
 *
 *   lin_prose prose = {0};
 *   lin_paragraphs paragraphs;
 *   lin_paragraphs_begin(&paragraphs, text, n);
 *   while (lin_paragraphs_next(&paragraphs))
 *       if (lin_prose_is_running(paragraphs.text, paragraphs.n)) lin_prose_read(&prose, paragraphs.text, paragraphs.n, &err);
 *   lin_prose_free(&prose);
 *
 * Words are small letters and apostrophes; accents are dropped, hyphens separate words, "Mr." becomes "mister". "!" and ";" count
 * as full stops, ":" and dashes as commas (Tilk & Alumae 2016). A word with a digit becomes "#". Quotation marks and brackets are
 * dropped, but a word that a quotation begins with is marked: its capital is not that of a name.
 * Threads: one at a time per lin_prose.
 */
#ifndef LIN_LEARN_PROSE_H
#define LIN_LEARN_PROSE_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/readable.h"

typedef struct lin_prose_word {
    size_t text;     /* where its spelling begins in lin_prose.text; it ends with a NUL */
    int mark;        /* behind it: a lin_mark */
    int capital;     /* it begins with a capital letter */
    int quoted;      /* a quotation begins here */
} lin_prose_word;

typedef struct lin_prose {
    lin_buffer text;
    lin_prose_word *words;
    int n, capacity;
} lin_prose;

/* Replaces the words by those of a text of any bytes. LIN_NO_MEMORY: it is empty. */
lin_status lin_prose_read(lin_prose *prose, const char *text, size_t n, lin_error *err);
void lin_prose_free(lin_prose *prose);

/* Paragraphs of a text: lines up to an empty one. */
typedef struct lin_paragraphs {
    const char *text; /* the current paragraph */
    size_t n;
    const char *next, *end;
} lin_paragraphs;

void lin_paragraphs_begin(lin_paragraphs *paragraphs, const char *text, size_t n);
int lin_paragraphs_next(lin_paragraphs *paragraphs); /* 0 at the end */

/* 0 for what is no sentence of a book: headings, tables of contents, lines of capitals or digits, Gutenberg's notices. */
int lin_prose_is_running(const char *text, size_t n);

#endif
