/*
 * wording.h - from words to phones: the installed phone set, dictionary, letter-to-sound rules and transcriber in one.
 *
 *   lin_wording w;
 *   lin_wording_open(&w, NULL, &warnings, &err);            // or "my.dict"
 *   lin_transcriber_line(w.transcriber, ...);
 *   lin_wording_unknown(&w, INT_MAX, "", &text, &err);      // the words that the dictionary lacked
 *   lin_wording_close(&w);
 *
 * Threads: one at a time.
 */
#ifndef LIN_LINNET_WORDING_H
#define LIN_LINNET_WORDING_H

#include "base/buffer.h"
#include "lexicon/g2p_rules.h"
#include "lexicon/transcript.h"
#include "linnet/warnings.h"

typedef struct lin_wording {
    lin_phones *phones;
    lin_dictionary *dictionary;
    lin_g2p_rules *rules;
    lin_g2p *g2p;
    lin_transcriber *transcriber;
} lin_wording;

/* dictionary: NULL for $LINNET_LEXICON, else what is installed with the program. Lines of it that cannot be used are reported
 * through warnings, which may be NULL. LIN_IO if there is no dictionary. On failure everything is closed. */
lin_status lin_wording_open(lin_wording *wording, const char *dictionary, const lin_warnings *warnings, lin_error *err);
void lin_wording_close(lin_wording *wording);

/* Appends the words that the dictionary lacked, at most `most` of them, the most frequent first, a line each: indent, word,
 * count, how it was pronounced, phones; separated by tabs. LIN_NO_MEMORY. */
lin_status lin_wording_unknown(const lin_wording *wording, int most, const char *indent, lin_buffer *text, lin_error *err);

#endif
