/*
 * spoken.h - prepares a known text for alignment: its words with all their pronunciations and spellings.
 *
 * Pipeline: text -> lexicon/transcript, lexicon/dictionary, lexicon/g2p -> [this] -> align/align.
 *
 *   lin_wording lexicon;
 *   lin_wording_open_for(&lexicon, &(lin_wording_files){0}, phones, "words", "", &warnings, &err);   // shared by all threads
 *   lin_spoken spoken = {0};                                                  // one per thread, reused
 *   lin_spoken_words(&spoken, &lexicon, text, n, &err);                       // or lin_spoken_phones
 *   ... lin_align_create(&spoken.graph, ...), lin_result_add_path(..., lin_spoken_spell, &spoken, ...) ...
 *   lin_spoken_free(&spoken);
 *   lin_wording_close(&lexicon);
 */
#ifndef LIN_ALIGN_SPOKEN_H
#define LIN_ALIGN_SPOKEN_H

#include <stddef.h>

#include "align/align.h"
#include "base/buffer.h"
#include "decoder/result.h"
#include "linnet/wording.h"

/* Where a word of the text is, with the punctuation around it: see lin_spoken_write. */
typedef struct lin_spoken_place {
    size_t begin, end;     /* the word in the text */
    size_t spelling;       /* in lin_spoken.spellings */
    size_t written, n;     /* in lin_spoken.written */
    int glued, line;       /* as in lin_result_word */
} lin_spoken_place;

typedef struct lin_spoken {
    lin_align_graph graph;
    lin_word_reader words;      /* of the present text */
    lin_buffer spellings; /* of each slot, as the text has it, with '_' in place of blanks, each with its NUL */
    lin_spoken_place *places; /* [slots] */
    int n, capacity;
    lin_buffer written;   /* the words with the punctuation that the text has */
    lin_buffer guesses;   /* words outside the lexicon and their pronunciation: "xyzzy\tZ IH Z IY (rules)\n"; "\t(none)\n" */
    int n_any;            /* words without a pronunciation, which fit any sound */
    int marks;            /* such as [laughs], which are not words and were skipped */
    char first_mark[48];  /* the first of them, truncated to fit a message */
} lin_spoken;

/*
 * The words of a text, or of phones separated by blanks, replace what was there. A word without a pronunciation is a noise, if
 * the set has one, else any sound (lin_align_graph_add_any): the text around it is aligned. A number has all its readings, each
 * with the pronunciations of its words, as far as they fit into LIN_ALIGN_PRONUNCIATIONS. LIN_INVALID for a text without words or
 * without any that has a pronunciation, and for phones that the set lacks; LIN_FORMAT as in lin_spelling_next. Silences of the
 * set are skipped.
 */
lin_status lin_spoken_words(lin_spoken *spoken, const lin_wording *lexicon, const char *text, size_t n, lin_error *err);
lin_status lin_spoken_phones(lin_spoken *spoken, const lin_phones *phones, const char *text, size_t n, lin_error *err);

/* A lin_result_speller, of slot `word`. */
const char *lin_spoken_spell(const void *spoken, int word);

/* Adds the written forms of the text to a result whose words from number `first` on are those of the path. */
lin_status lin_spoken_write(const lin_spoken *spoken, lin_result *result, int first, const lin_path *path, lin_error *err);

void lin_spoken_free(lin_spoken *spoken);

#endif
