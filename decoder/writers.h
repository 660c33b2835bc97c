/*
 * writers.h - writes results in the formats of other programs: one table, one function per format.
 *
 *   text      P P P                     or, with ids, Kaldi's: utt-id P P P; with times, a table: a line per phone or word;
 *                                       without both in lines of limited length and in paragraphs by option
 *   json      one object per line: id, channel, speaker, seconds, phones, words, scores, alternatives; docs/formats.md names all
 *   ctm       NIST CTM, one line per phone or word: utt channel start duration phone confidence
 *   trn       NIST TRN: P P P (utt-id)
 *   srt, vtt  subtitles: SubRip and WebVTT, by the usual rules for subtitles (decoder/writers_subtitles.c)
 *   textgrid  Praat: tiers "words" and "phones" without gaps
 *   csv       RFC 4180, a line per phone or word
 *   audacity  labels: start TAB end TAB label
 *   nemo      one object per line: that of the manifest that named the sound, with "pred_text"
 *   rttm      NIST RTTM, a line for the speech between two pauses: SPEAKER id channel start duration <NA> <NA> speaker <NA> <NA>
 *
 * One utterance in a file of its own:
 *
 *   lin_writer_options options = {.phones = phones};
 *   lin_write(lin_writer_find("vtt"), &result, &options, &buffer, &err);
 *   lin_buffer_write(&buffer, stdout, "standard output", &err);
 *
 * Several utterances in one file: a document holds what they share: whether the header was written, the number of the next
 * subtitle.
 *
 *   lin_writer_document document = {0};                       // one for each file
 *   options.document = &document;
 *   lin_writer_begin(writer, &options, &buffer, &err);        // the header, also of a file that gets no utterance; then,
 *                                                             // in order:
 *   lin_write(writer, &result, &options, &buffer, &err);      // ... for each result
 *
 * Nothing is written after the last one. Times have three digits. Without words, or if phones are requested, "word" below is a
 * phone. A word outside the lexicon is one token made of its phones, "[hh_ah_l_ow]", in IPA "[hʌloʊ]"; json says "known": false;
 * readable text has a spelling by the letter-to-sound rules, or "[...]".
 * An utterance without words has an empty line of text, in CTM only a comment that names it, and no subtitle.
 * Threads: the table is constant; a call touches only its arguments, the document among them.
 */
#ifndef LIN_DECODER_WRITERS_H
#define LIN_DECODER_WRITERS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "decoder/result.h"
#include "lexicon/g2p.h"
#include "lexicon/phones.h"
#include "lexicon/readable.h"

/* What a line, label or subtitle is. JSON always has both. */
typedef enum lin_writer_unit {
    LIN_UNIT_AUTO, /* words where the result has them, else phones; textgrid: all tiers there are */
    LIN_UNIT_PHONES,
    LIN_UNIT_WORDS, /* LIN_INVALID for a result in which no words were looked for */
    LIN_UNIT_BOTH   /* textgrid, csv: both; the others as LIN_UNIT_AUTO */
} lin_writer_unit;

/* What has been written to a file; all zero for a new one. */
typedef struct lin_writer_document {
    int utterances, cues; /* written */
    int64_t end_ms;       /* of the last subtitle */
} lin_writer_document;

/* Text that is written in pieces: where the last one ended; all zero for a new one. */
typedef struct lin_writer_layout {
    int has_begun, column; /* column: characters that the line has */
    double end_s;          /* of the last token */
} lin_writer_layout;

/* The sound and text that a result is of, for the format nemo. NULL and 0: not known. */
typedef struct lin_writer_source {
    const char *record;        /* a JSON object: its line in a manifest */
    const char *path, *text;   /* without a record: the sound and its text */
    double start_s, duration_s; /* duration_s 0: up to the end of the sound */
    int names_channel;         /* 1: the result's channel is one of the sound's, which the record does not name */
} lin_writer_source;

/* How subtitles are laid out; 0: the usual (decoder/writers_subtitles.c). */
typedef struct lin_cue_options {
    int width, rows;               /* characters of a line, lines of a subtitle (1 or 2); 42, 2 */
    int shortest_ms, longest_ms;   /* 1000, 7000 */
    int speed;                     /* characters a second that can be read; 17 */
    int gap_ms;                    /* between two; 0 */
    int script;                    /* 1: a line of the aligned text begins a subtitle */
} lin_cue_options;

typedef struct lin_writer_options {
    const lin_phones *phones; /* names of the labels; never NULL */
    int with_id;              /* text: the utterance id before the phones */
    int with_speaker;           /* text without ids and times, srt, vtt, audacity: who speaks. Then an utterance is a turn, and
                                   subtitles of different speakers may overlap */
    double until_s;             /* of a turn: when the next begins; 0: at the end of the sound */
    int times;                /* text: a line for each phone or word with its start and end; LIN_UNIT_BOTH: words, their phones */
    int ipa;                  /* phones in IPA instead of the set's own names */
    int stress;               /* phones with their stress where it is known: AH0, AH1; in IPA ˈ or ˌ before the vowel */
    lin_writer_unit unit;
    int word_times;                /* vtt: the time of each word inside a subtitle, for karaoke-like display */
    const lin_punctuation *readable; /* text without ids and times, srt, vtt: words as readable text; json: also a field with it;
                                        NULL: plain words */
    const lin_g2p_rules *speller;  /* readable text: spells words outside the lexicon; NULL: they are "[...]" */
    double least;                  /* readable text: a word of less confidence is "[...]"; 0: none is */
    lin_cue_options cues;          /* srt, vtt */
    int columns;                   /* text without ids and times: longest line, in characters; 0: any */
    double paragraph_s;            /* the same: an empty line where a pause is longer; 0: none */
    int paragraph_times;           /* the same: [hours:minutes:seconds] of its beginning before each paragraph and turn */
    lin_writer_layout *layout;     /* of such text; NULL: each call writes a whole text */
    lin_writer_document *document; /* NULL: each call of lin_write makes a whole file */
    const lin_writer_source *source; /* of the result; may be NULL */
} lin_writer_options;

/* How many utterances one file may hold. */
typedef enum lin_writer_holds {
    LIN_WRITER_MANY,     /* any, told apart by their ids */
    LIN_WRITER_TIMELINE, /* those of one recording in the order of time; of several recordings: a file each (--output-dir) */
    LIN_WRITER_ONE       /* one; a document that has one takes no other: LIN_INVALID */
} lin_writer_holds;

struct lin_tokens;

typedef struct lin_writer {
    const char *name;
    const char *extension, *also; /* that its files have; another that is understood, or NULL */
    lin_writer_holds holds;
    const char *header; /* what a file begins with, or NULL */
    lin_status (*write)(const struct lin_tokens *tokens, lin_buffer *out, lin_error *err); /* internal */
} lin_writer;

/* Appends what a file of this format begins with, and empties the document. LIN_NO_MEMORY: `out` is as before. */
lin_status lin_writer_begin(const lin_writer *writer, const lin_writer_options *options, lin_buffer *out, lin_error *err);

/*
 * Appends one utterance to `out`. LIN_INVALID for a label outside the phone set, a word of phones that are not there, or an id or
 * a word that the format cannot hold (CTM, TRN, text with ids: blanks or control characters; TRN: sclite's own signs as well), or
 * an utterance that begins before the last subtitle of its document ends; LIN_NO_MEMORY. On failure `out` and the document are as
 * before.
 */
lin_status lin_write(const lin_writer *writer, const lin_result *result, const lin_writer_options *options, lin_buffer *out,
                     lin_error *err);

/*
 * Several speakers of one recording, a result each, in one file: one after the other where a file holds many utterances, as tiers
 * "anna - words", "anna - phones" in a textgrid. lin_writer_holds_speakers: whether the format can. Fails as lin_write.
 */
int lin_writer_holds_speakers(const lin_writer *writer);
lin_status lin_write_speakers(const lin_writer *writer, const lin_result *const *list, int n, const lin_writer_options *options,
                              lin_buffer *out, lin_error *err);

/* By name, or else by the extension of its files ("txt"); or by the end of a file name, whatever its case, the longest extension
 * that fits ("x.labels.txt" is audacity, "x.txt" text). NULL if there is none. */
const lin_writer *lin_writer_find(const char *name);
const lin_writer *lin_writer_for_file(const char *path);

/* The table: index 0, 1, ... until NULL. */
const lin_writer *lin_writer_at(int index);

/* ---- tokens ---------------------------------------------------------------------------------------------------------------- */

/*
 * The tokens of a result, each a phone or a word, and their spelling: for the writers and for text that grows token by token.
 *
 *   lin_tokens t;
 *   status = lin_tokens_of(&t, result, options, err);           // checks the result once and chooses phones or words
 *   for (i = 0; i < t.n; i++) ... lin_token_at(&t, i) ... lin_token_spell(&t, i, out) ...
 */
typedef struct lin_tokens {
    const lin_result *result;
    const lin_writer_options *options;
    int words; /* tokens are words, else phones */
    int n;
    const lin_readable *readable; /* not NULL: tokens are its */
    int written;                  /* tokens are the words as the aligned text has them */
} lin_tokens;

typedef struct lin_token {
    double start_s, end_s;
    float confidence, goodness; /* NAN where they were not measured */
} lin_token;

/* LIN_INVALID for a result that the options do not fit; see lin_write. */
lin_status lin_tokens_of(lin_tokens *tokens, const lin_result *result, const lin_writer_options *options, lin_error *err);

/* The phones or the words of a result that was checked. */
lin_tokens lin_tokens_only(const lin_result *result, const lin_writer_options *options, int words);

/* The words as the aligned text has them, if the result has it; else as readable text with options->readable: from here on
 * the tokens are those of `readable`, which must be zeroed before and is freed by lin_readable_free after the last use.
 * paragraph_s: of lin_readable. LIN_NO_MEMORY. */
lin_status lin_tokens_make_readable(lin_tokens *tokens, double paragraph_s, lin_readable *readable, lin_error *err);

/* Pushes word i of tokens that are plain words. A word outside the lexicon of 2 to 15 phones is as the speller spells it, any
 * other "[...]". LIN_NO_MEMORY. */
lin_status lin_token_push_readable(const lin_tokens *tokens, int i, lin_readable *readable, lin_error *err);

lin_token lin_token_at(const lin_tokens *tokens, int i);

/* Name of a phone, spelling of a word, or the mark of one outside the lexicon: its bytes as they are. */
void lin_token_spell(const lin_tokens *tokens, int i, lin_buffer *out);

/* Around a token of text without ids and times, which the caller appends: begin writes what divides it from the one before, and
 * the time of a paragraph; end breaks the line before it if that is too long. from: what begin returned. */
size_t lin_begin_text_token(const lin_writer_options *options, const lin_writer_layout *layout, double start_s, lin_buffer *out);
void lin_end_text_token(const lin_writer_options *options, lin_writer_layout *layout, size_t from, double end_s, lin_buffer *out);

/* Who speaks, as a member "speaker" of a JSON object; none for number 0. */
void lin_put_speaker(int number, lin_buffer *out);

/* Words that may still change. */
typedef struct lin_growing_words {
    int first_phone; /* the number of their first phone in the utterance */
    int incomplete;  /* the last word is */
} lin_growing_words;

/* The phones or the words of a result from number `from` on, as a member of a JSON object. speakers: with who says them, phones
 * only where words were not looked for. growing: NULL if the words are settled. The labels must be in the phone set. */
void lin_put_phones(const lin_result *result, int from, const char *key, const lin_writer_options *options, int speakers,
                    lin_buffer *out);
void lin_put_words(const lin_result *result, int from, const char *key, const lin_writer_options *options, int speakers,
                   const lin_growing_words *growing, lin_buffer *out);

/* The vectors of the voices of S1, S2, ... as a member "voices" of a JSON object; of a result that is a turn, of its speaker
 * alone. No member if there are none. */
void lin_put_voices(const lin_result *result, lin_buffer *out);

/* The keywords of a result from number `from` on, as a member of a JSON object; none if there are none. */
void lin_put_keywords(const lin_result *result, int from, const char *key, lin_buffer *out);

#endif
