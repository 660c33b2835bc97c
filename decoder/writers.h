/*
 * writers.h - results as other programs read them: one table, one function per format.
 *
 *   text    P P P                       or, with ids, Kaldi's: utt-id P P P
 *   json    one object per line: id, channel, speaker, seconds, phones with start, end and confidence
 *   ctm     NIST CTM, one line per phone: utt channel start duration phone confidence
 *   trn     NIST TRN: P P P (utt-id)
 *
 *   lin_writer_options options = {.phones = phones};
 *   lin_writer_find("ctm")->write(&result, &options, &buffer, &err);
 *   lin_buffer_write(&buffer, stdout, "standard output", &err);
 *
 * Times have three digits. An utterance without phones has an empty text line, and in CTM only a comment that names it.
 * Threads: the table is constant; a call touches only its arguments.
 */
#ifndef LIN_DECODER_WRITERS_H
#define LIN_DECODER_WRITERS_H

#include "decoder/buffer.h"
#include "decoder/result.h"
#include "kernels/status.h"
#include "lexicon/phones.h"

typedef struct lin_writer_options {
    const lin_phones *phones; /* names of the labels; never NULL */
    int with_id;              /* text: the utterance id before the phones */
    int ipa;                  /* phones in IPA instead of the set's own names */
} lin_writer_options;

/*
 * Appends one utterance to `out`. LIN_INVALID for a label outside the phone set, or an id that the format cannot hold (CTM, TRN,
 * text with ids: blanks or control characters; TRN: parentheses as well); LIN_NO_MEMORY. On failure `out` is as before.
 */
typedef lin_status (*lin_write_function)(const lin_result *result, const lin_writer_options *options, lin_buffer *out,
                                         lin_error *err);

typedef struct lin_writer {
    const char *name, *extension, *about;
    lin_write_function write;
} lin_writer;

/* By name, or by the extension of a file name; NULL if there is none. */
const lin_writer *lin_writer_find(const char *name);
const lin_writer *lin_writer_for_file(const char *path);

/* The table: index 0, 1, ... until NULL. */
const lin_writer *lin_writer_at(int index);

#endif
