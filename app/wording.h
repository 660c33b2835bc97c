/*
 * wording.h - from words to phones for the commands that need it: phone set, dictionary, letter-to-sound and transcriber in one.
 *
 *   lin_wording w;
 *   lin_wording_open(&w, NULL, &err);                       // or "my.dict"
 *   lin_transcriber_line(w.transcriber, ...);
 *   lin_wording_report(&w, "oov.txt", quiet, &err);
 *   lin_wording_close(&w);
 *
 * One thread.
 */
#ifndef LIN_APP_WORDING_H
#define LIN_APP_WORDING_H

#include "lexicon/transcript.h"

typedef struct lin_wording {
    lin_phones *phones;
    lin_dictionary *dictionary;
    lin_g2p_rules *rules;
    lin_g2p *g2p;
    lin_transcriber *transcriber;
} lin_wording;

/* dictionary: NULL for $LINNET_LEXICON, else what is installed with the program. LIN_IO if there is none. On failure everything is
 * closed. */
lin_status lin_wording_open(lin_wording *wording, const char *dictionary, lin_error *err);
void lin_wording_close(lin_wording *wording);

/* Every word that the dictionary lacks, one a line: word, count, how it was pronounced, phones; separated by tabs, the most
 * frequent first. To the file, or if path is NULL to standard error, and there only the first twenty and a count of the others. */
lin_status lin_wording_report(const lin_wording *wording, const char *path, lin_error *err);

/* Names separated by blanks. */
void lin_print_phones(FILE *out, const lin_phones *phones, const int *labels, int n);

#endif
