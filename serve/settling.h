/*
 * settling.h - text that only grows: of results as they settle, with capitals and marks where words are readable.
 *
 * Pipeline: linnet/utterances (what has settled) -> [this, by lexicon/readable] -> events of serve/serve_work.c and
 * serve/protocol_realtime.c, which send what is new.
 *
 *   lin_settling s = {0};
 *   lin_settling_begin(&s, &words);
 *   lin_settling_add(&s, &words, &more, 0, &err);        // as often as there is more: s.text has grown
 *   lin_settling_add(&s, &words, &rest, 1, &err);        // the text ends: all of it is there
 *   lin_settling_free(&s);
 *
 * A readable word is there three words after it has settled (lexicon/readable.h), any other at once.
 */
#ifndef LIN_SERVE_SETTLING_H
#define LIN_SERVE_SETTLING_H

#include "app/live_text.h"
#include "decoder/writers.h"

typedef struct lin_settling {
    lin_buffer text;
    lin_readable readable;
} lin_settling;

/* An empty text; memory is used again. */
void lin_settling_begin(lin_settling *settling, const lin_live_words *words);
/* Errors of lin_write_function. */
lin_status lin_settling_add(lin_settling *settling, const lin_live_words *words, const lin_result *more, int is_end,
                            lin_error *err);
/* Drops the text behind its first n bytes, where an utterance began that is now another one (a second pass). */
void lin_settling_back(lin_settling *settling, const lin_live_words *words, size_t n);
void lin_settling_free(lin_settling *settling);

#endif
