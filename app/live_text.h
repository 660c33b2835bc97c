/*
 * live_text.h - live results as text: JSON lines for programs, phones and words for a terminal.
 *
 * Everything is appended to a buffer, which remembers a failed allocation (base/buffer.h). docs/live.md describes the JSON.
 * `words` says how results are written: phones, ipa, readable, speller and least of the options of a writer.
 */
#ifndef LIN_APP_LIVE_TEXT_H
#define LIN_APP_LIVE_TEXT_H

#include "base/buffer.h"
#include "base/system.h"
#include "decoder/writers.h"
#include "frontend/microphone.h"
#include "lexicon/readable.h"
#include "linnet/stream.h"

/* The text of a buffer to which nothing may have been appended. */
static inline const char *lin_text_of(const lin_buffer *buffer) { return buffer->data ? buffer->data : ""; }

/* Totals of a session. */
typedef struct lin_live_stats {
    double seconds; /* of sound, silence before the first sample left out */
    double busy_s;  /* spent on it */
    int utterances, rate_hz;
    int64_t phones, words, bad_samples;
    int has_words; /* words are looked for */
    lin_microphone_report report;
    lin_session_delay construction;
    lin_lags phone; /* from the end of a phone until it was settled */
    lin_lags word;  /* from the end of a word until it was settled */
    lin_lags first; /* from the beginning of an utterance's first phone until something was shown */
    lin_lags final; /* from the end of its last phone until the utterance was ended by the silence after it */
} lin_live_stats;

/* "P P P", or words where they are looked for, as linnet transcribe writes them; one outside the lexicon "[hh_ah]", and an
 * incomplete last one "[hh_ah-]". Errors of lin_write. */
lin_status lin_live_put_text(lin_buffer *out, const lin_writer_options *words, const lin_result *result, int incomplete,
                             lin_error *err);

/* The words of an utterance that has ended, as readable text; the same as above if they stay plain. */
lin_status lin_live_put_readable(lin_buffer *out, const lin_writer_options *words, const lin_result *result, lin_error *err);

/* "0:01.2", "1:02:03.4" */
void lin_live_put_time(lin_buffer *out, double seconds);

/* "[0:01.2 - 0:03.4]  ", without the second time while it is unknown. */
void lin_live_put_head(lin_buffer *out, const lin_session_view *view);

/* The texts of a view; zeroed before the first, memory is reused. */
typedef struct lin_live_texts {
    lin_buffer settled, open; /* what lin_live_put_text makes of the view's results */
    lin_buffer readable;      /* of a final view: by lin_live_put_readable; of a growing one: its text so far */
    int has_readable;
    lin_result whole;
} lin_live_texts;

/* growing_too: readable text of growing views too. Errors of lin_write. */
lin_status lin_live_spell(lin_live_texts *texts, const lin_writer_options *words, const lin_session_view *view, int growing_too,
                          lin_error *err);
void lin_live_texts_free(lin_live_texts *texts);

/* One JSON object and a newline: "partial" or "final", by the view whose texts they are. latency_s: from the end of the last
 * phone until now. partial_phones: a growing utterance has new_phones and partial_phones too. */
void lin_live_put_json(lin_buffer *out, const lin_writer_options *words, const lin_session_view *view,
                       const lin_live_texts *texts, double latency_s, int partial_phones);

void lin_live_put_begin(lin_buffer *out, const char *source, const lin_recognizer *r, int rate_hz, int channels);
/* The phrases were read again; message: why they could not be, or "". */
void lin_live_put_context(lin_buffer *out, int n_phrases, const char *message);
void lin_live_put_lost(lin_buffer *out, const lin_microphone_report *report, int rate_hz);
/* reason: "interrupted", "ended" or "failed", and then a message, else "". */
void lin_live_put_end(lin_buffer *out, const lin_live_stats *stats, const char *reason, const char *message);

/* "12.3 s of sound, 3 utterances, 87 phonemes", and what was lost if anything was. One line without its end. */
void lin_live_put_summary(lin_buffer *out, const lin_live_stats *stats);
/* The latencies: several lines, each ended. */
void lin_live_put_stats(lin_buffer *out, const lin_live_stats *stats);

/* ---- text that only grows -------------------------------------------------------------------------------------------------- */

/*
 * The text of results as they settle, with capitals and marks if words are readable. linnet serve sends what was added.
 *
 *   lin_settling s = {0};
 *   lin_settling_begin(&s, &words);
 *   lin_settling_add(&s, &words, &more, 0, &err);        // for each new result: s.text has grown
 *   lin_settling_add(&s, &words, &rest, 1, &err);        // the text ends: all of it is there
 *   lin_settling_free(&s);
 *
 * A readable word is there three words after it has settled (lexicon/readable.h), any other at once.
 */
typedef struct lin_settling {
    lin_buffer text;
    lin_readable readable;
} lin_settling;

/* An empty text; memory is used again. */
void lin_settling_begin(lin_settling *settling, const lin_writer_options *words);
/* Errors of lin_write. */
lin_status lin_settling_add(lin_settling *settling, const lin_writer_options *words, const lin_result *more, int is_end,
                            lin_error *err);
/* Cuts the text to its first n bytes, where an utterance began that a second pass now replaces. */
void lin_settling_back(lin_settling *settling, const lin_writer_options *words, size_t n);
void lin_settling_free(lin_settling *settling);

#endif
