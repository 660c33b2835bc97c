/*
 * wording.h - from words to phones: the phone set, dictionary, letter-to-sound rules and transcriber in one.
 *
 *   lin_wording w;
 *   lin_wording_files files = {.dictionary = "my.dict"};    // or {0}: what is installed
 *   lin_wording_open(&w, &files, &warnings, &err);
 *   lin_transcriber_line(w.transcriber, ...);
 *   lin_wording_unknown(&w, INT_MAX, "", &text, &err);      // the words that the dictionary lacked
 *   lin_wording_close(&w);
 *
 * Threads: one at a time.
 */
#ifndef LIN_LINNET_WORDING_H
#define LIN_LINNET_WORDING_H

#include "base/buffer.h"
#include "lexicon/g2p.h"
#include "lexicon/transcript.h"
#include "base/status.h"

typedef struct lin_wording_files {
    const char *dictionary; /* NULL: $LINNET_LEXICON, else what is installed with the program */
    const char *added;      /* words that extend it (linnet/lexicon_open.h); NULL: none */
    const char *phones;     /* as lin_wording_phones; NULL: phones.txt of the language that was chosen (lin_find_language), else
                             * the set of the dictionary (lin_dictionary_phones) */
    const char *g2p;        /* NULL: lin_find_rules */
} lin_wording_files;

typedef struct lin_wording {
    char path[4096];     /* of the dictionary */
    lin_phones *phones;
    lin_dictionary *dictionary;
    lin_g2p_rules *rules;
    lin_g2p *g2p;
    lin_transcriber *transcriber;
    lin_written *written; /* NULL: digits are refused */
} lin_wording;

/* Lines of the dictionary that cannot be used are reported through warnings, which may be NULL. LIN_IO if there is no dictionary;
 * else as what opens the files. On failure everything is closed. */
lin_status lin_wording_open(lin_wording *wording, const lin_wording_files *files, const lin_warnings *warnings, lin_error *err);
/* Numbers, signs and abbreviations are read from now on, by the rule of lin_find_open_numbers. */
lin_status lin_wording_numbers(lin_wording *wording, const char *given, lin_error *err);
void lin_wording_close(lin_wording *wording);

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

#endif
