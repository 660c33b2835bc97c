/*
 * wording.h - from words to phones: the phone set, dictionary, letter-to-sound rules and transcriber in one, and a dictionary
 * with the words that a user adds.
 *
 * Pipeline: files -> [this] -> lexicon/tree, lexicon/transcript, align/spoken.
 *
 *   lin_wording w;
 *   lin_wording_files files = {.dictionary = "my.dict"};    // or {0}: what is installed
 *   lin_wording_open(&w, &files, &warnings, &err);
 *   lin_transcriber_line(w.transcriber, ...);
 *   lin_wording_unknown(&w, INT_MAX, "", &text, &err);      // the words that the dictionary lacked
 *   lin_wording_close(&w);
 *
 *   lin_lexicon_open("en.dict", NULL, "names.txt", NULL, phones, &dictionary, &err);   // the dictionary alone
 *   lin_dictionary_destroy(dictionary);
 *
 * A file of added words has lines as in a lexicon, "word  W ER1 D", and lines of a word alone, whose pronunciation is found as
 * that of words outside the lexicon (lexicon/g2p.h). Such a word may have capitals and accents: it gets the form of words in a
 * text (lin_spelling_next), which has to be one word. A line that begins with "# " is a comment.
 *
 * Threads: one at a time, except for what lin_wording_open_for opens.
 */
#ifndef LIN_LINNET_WORDING_H
#define LIN_LINNET_WORDING_H

#include "base/buffer.h"
#include "lexicon/g2p.h"
#include "lexicon/transcript.h"

typedef struct lin_wording_files {
    const char *dictionary; /* NULL: $LINNET_LEXICON, else what is installed with the program */
    const char *added;      /* words that extend it; NULL: none */
    const char *phones;     /* as lin_wording_phones; NULL: phones.txt of the language that was chosen (lin_find_language), else
                             * the set of the dictionary (lin_dictionary_phones) */
    const char *g2p;        /* NULL: lin_find_rules */
    const char *numbers;    /* how numbers, signs and abbreviations are read: by the rule of lin_find_open_numbers */
} lin_wording_files;

typedef struct lin_wording {
    char path[4096]; /* of the dictionary */
    const lin_phones *phones;
    lin_phones *own; /* the same, if it is not a model's */
    lin_dictionary *dictionary;
    lin_g2p_rules *rules;
    lin_g2p *g2p; /* NULL: there is none for the phones of a model */
    lin_error lacks; /* why */
    lin_transcriber *transcriber; /* NULL: for the phones of a model */
    lin_written *written; /* NULL: digits are refused */
} lin_wording;

/* Lines of the dictionary that cannot be used are reported through warnings, which may be NULL. LIN_IO if there is no dictionary;
 * else as what opens the files. On failure everything is closed. */
lin_status lin_wording_open(lin_wording *wording, const lin_wording_files *files, const lin_warnings *warnings, lin_error *err);
void lin_wording_close(lin_wording *wording);

/* For the phones of a model, which must outlive it; files->phones is not used. Then it is shared by threads. Letter-to-sound
 * rules that these phones cannot use are no error before a word needs them. For the message if there is no lexicon (LIN_IO): what
 * needs it, "keywords"; instead: how to do without, ", or give --phones", or "". */
lin_status lin_wording_open_for(lin_wording *wording, const lin_wording_files *files, const lin_phones *phones, const char *what,
                                const char *instead, const lin_warnings *warnings, lin_error *err);

/* As lin_g2p_pronounce; without a g2p it fails with `lacks`. */
lin_status lin_wording_pronounce(const lin_wording *wording, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                                 lin_g2p_how *how, lin_error *err);

/*
 * A set of phones by name: a file with a name on each line (lin_phones_load, a set of its own), or a model, FILE.safetensors or
 * the name of an installed one, whose set it is. LIN_MISMATCH for a model of tokens.
 */
lin_status lin_wording_phones(const char *name, lin_phones **phones, lin_error *err);

/* The set of the chosen language: its phones.txt, else that of its default model or of its dictionary; English if it has none. */
lin_status lin_wording_chosen_phones(lin_phones **phones, lin_error *err);

/* phones.txt of the chosen language, else the set of a dictionary file. Both, and sets of files, are of the chosen language. */
lin_status lin_wording_dictionary_phones(const char *path, lin_phones **phones, lin_error *err);

/* Appends the words that the dictionary lacked, at most `most` of them, the most frequent first, a line each: indent, word,
 * count, how it was pronounced, phones; separated by tabs. LIN_NO_MEMORY. */
lin_status lin_wording_unknown(const lin_wording *wording, int most, const char *indent, lin_buffer *text, lin_error *err);

/* ---- files with an entry in each line, such as phrases --------------------------------------------------------------------- */

typedef lin_status (*lin_entry_taker)(void *context, const char *text, size_t n, int line, lin_error *err);

/* Gives each line of the cleaned text (base/unicode.h) to `take`, except blank ones and those that begin with #. Errors of `take`
 * get the path and the line before them; others as of lin_text_read. */
lin_status lin_entries_read(const char *path, lin_entry_taker take, void *context, lin_error *err);

/* ---- a dictionary with added words ----------------------------------------------------------------------------------------- */

/* The lexicon of this path and the words of two files that extend it, plain or gzip'd: of the language (lin_find_added) and of
 * the user; NULL or "": none. g2p: the letter-to-sound rules; NULL: those of lin_find_rules. Errors as lin_dictionary_load;
 * LIN_MISMATCH for a word alone if there are no rules for these phones. */
lin_status lin_lexicon_open(const char *path, const char *own, const char *added, const char *g2p, const lin_phones *phones,
                            lin_dictionary **dictionary, lin_error *err);

/* Adds the text of such a file, n bytes, to a lexicon that is open; messages call it `name`. rules: NULL for none. */
lin_status lin_lexicon_extend(lin_dictionary *dictionary, const char *text, size_t n, const char *name,
                              const lin_phones *phones, const lin_g2p_rules *rules, lin_error *err);

/* Reports the lines that were left out; warnings may be NULL. Returns how many there are. */
int lin_lexicon_tell_skipped(const lin_dictionary *dictionary, const lin_warnings *warnings);

#endif
