/*
 * punctuation_learn.h - learns a punctuation model from books.
 *
 * Pipeline: text -> [prose: words with marks and capitals -> this] -> lexicon/readable; prose also for train/learn/cmd_readable.
 *
 *   lin_punctuation_learn_options how = {.mark_slots = 300000, .capital_slots = 131072, .bits = 25};    // a file of 1.46 MB
 *   lin_punctuation_learn(text, n, &how, &p, &report, &err);
 *   lin_punctuation_write(p, "words.punctuation", &err);
 *
 * First, every feature's key is counted with the classes (marks, capitals) that it occurs with. Of the keys that share a slot,
 * the one with the largest gain gets it: its count times the divergence of its classes from the average. Then the weights of
 * these keys are learnt by passes of AdaGrad (Duchi et al. 2011) over the paragraphs, in an order that mixes the books. Features
 * see the text's own marks before a gap. Threads: one; the same text gives the same model.
 */
#ifndef LIN_LEARN_PUNCTUATION_LEARN_H
#define LIN_LEARN_PUNCTUATION_LEARN_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/readable.h"

typedef struct lin_punctuation_learn_options {
    int mark_slots, capital_slots; /* of the file: 4 bytes each, 2 bytes each */
    int bits;                      /* of a key: 2^bits are at most 256 times the slots */
} lin_punctuation_learn_options;

typedef struct lin_punctuation_learn_report {
    int64_t paragraphs, words;
    int64_t marks[LIN_MARKS], capitals; /* inside sentences */
} lin_punctuation_learn_report;

/* Paragraphs that are not running text are left out. Memory: 9 bytes a word and 32 bytes for each key. LIN_INVALID: options that
 * do not fit, or a text without sentences. report may be NULL. */
lin_status lin_punctuation_learn(const char *text, size_t n, const lin_punctuation_learn_options *options, lin_punctuation **p,
                                 lin_punctuation_learn_report *report, lin_error *err);

/* ---- prose ----------------------------------------------------------------------------------------------------------------- */

/*
 * Natural text as a recogniser's words: each with its mark (full stop, comma, question mark) and its capital.
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
 */
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
