/*
 * trn.h - reads transcripts and results for scoring: NIST TRN, STM and CTM, Kaldi text, JSON lines; and maps of phones.
 *
 *   TRN    P P P (utt-id)                               ";;" begins a comment line
 *   STM    file channel speaker start end [<labels>] P P P      (below)
 *   Kaldi  utt-id P P P
 *   CTM    utt-id channel start duration P [confidence]  one token per line; put in order of time within an utterance
 *   JSON   {"id": "utt-id", "phones": [{"phone": "P", ...}, ...], "words": [{"word": "W", ...}, ...]}        one object per line,
 *          as decoder/writers makes them; the lists may hold plain strings; or {"id": "utt-id", "text": "P P P"}; in manifests
 *          the id is "audio_filepath" and "offset", and "pred_text" is the hypothesis
 *
 * Texts are brought into the form of base/unicode.h; those that are not Unicode are compared by their bytes.
 * Tokens and ids are compared without regard to the case of letters, as sclite does with those of ASCII, unless asked otherwise.
 * Typographic apostrophes and hyphens of words (U+2018, U+2019, U+2010, U+2011) are ' and -, and no-break spaces are blanks.
 * In TRN and STM "{ a / b c / @ }" are alternatives, "@" is a null word, "(a)" is optional as for sclite -D, and one "*" at the
 * end of a word is dropped; in CTM so are "@", "(a)" and "a*", and alternatives are between lines <ALT_BEGIN>, <ALT> and
 * <ALT_END>. They become the marks of lin_edit_choices. ";" and "\" inside words, which sclite treats specially too, are
 * refused in TRN and STM. In the other formats all these are plain bytes.
 *
 *   lin_symbols tokens = {0};                                       // shared by reference and hypothesis
 *   lin_trn_parse(text, n, "ref.trn", NULL, &tokens, &ref, &err);
 *   for (u = 0; u < ref.n; u++) ... ref.tokens[ref.utterances[u].first ...], lin_symbols_text(&ref.ids, u) ...
 *   lin_trn_free(&ref);
 *
 * Threads: one at a time while reading, shared by all afterwards.
 */
#ifndef LIN_SCORE_TRN_H
#define LIN_SCORE_TRN_H

#include <stddef.h>

#include "base/status.h"
#include "base/symbols.h"
#include "lexicon/phones.h"
#include "lexicon/written.h"

/* ---- which phones count as the same ---------------------------------------------------------------------------------------- */

/*
 * TIMIT's 61 as the 39 of the literature, and the like. Every token of reference and hypothesis is mapped as it is read.
 *
 *   # comment
 *   ax ah            ax becomes ah
 *   q                q is deleted
 *   cl cl sil        of more fields the last one counts, as in Kaldi's phones.60-48-39.map
 *
 * All lines except those that delete have the same number of fields. A map is applied once: "ax ah" and "ah aa" do not make ax an
 * aa. A name that is only mapped to is not changed. Example: share/linnet/en/timit-61-39.map. A map is immutable once made.
 */

typedef struct lin_phone_map lin_phone_map;

typedef enum lin_phone_fate {
    LIN_PHONE_UNKNOWN, /* not in the map; text and n are unchanged */
    LIN_PHONE_MAPPED,  /* text and n are the new name, owned by the map */
    LIN_PHONE_DELETED
} lin_phone_fate;

/*
 * Reads n bytes of a file; messages call it name. Unless case_sensitive, ASCII letters are folded to lower case, and
 * lin_phone_map_apply expects lower case. LIN_FORMAT with name:line: a phone mapped twice, another number of fields than before,
 * control characters; a file that maps nothing. LIN_NO_MEMORY.
 */
lin_status lin_phone_map_parse(const char *text, size_t n, const char *name, int case_sensitive, lin_phone_map **map,
                               lin_error *err);
lin_status lin_phone_map_load(const char *path, int case_sensitive, lin_phone_map **map, lin_error *err);
void lin_phone_map_destroy(lin_phone_map *map); /* NULL is fine */

lin_phone_fate lin_phone_map_apply(const lin_phone_map *map, const char **text, size_t *n);

/* ---- transcripts ----------------------------------------------------------------------------------------------------------- */

typedef enum lin_trn_format {
    LIN_TRN_AUTO, /* by the name's extension (.trn, .stm, .ctm, .jsonl, .json), else by the first line */
    LIN_TRN_TRN,
    LIN_TRN_KALDI,
    LIN_TRN_CTM,
    LIN_TRN_JSON,
    LIN_TRN_STM
} lin_trn_format;

/* The tokens to take from a JSON object that has both; its "text" can be either. */
typedef enum lin_trn_unit { LIN_TRN_PHONES, LIN_TRN_WORDS } lin_trn_unit;

typedef struct lin_trn_options {
    lin_trn_format format;
    int case_sensitive;
    lin_trn_unit unit;
    int is_hypothesis;        /* JSON: "pred_text", if present, is the text */
    int by_channel;           /* CTM: each channel of a file is an utterance, "file channel", and its words keep their times */
    const lin_phones *phones; /* not NULL: tokens that it reads (lin_phones_read) are its names, without stress; before the map */
    const lin_phone_map *map; /* applied to every token, NULL for none; made with the same case_sensitive */
    int normalize;            /* words as lexicon/transcript reads them: without punctuation, parted at hyphens, in lower case */
    const lin_written *written; /* with normalize: readings of numbers and signs, which become alternatives; NULL: they stay */
} lin_trn_options;

typedef struct lin_trn_utterance {
    size_t first; /* of its tokens */
    int n;
    int line; /* where it was found, from 1 */
    int group; /* STM: its speaker, string of lin_trn.speakers; CTM: its channel, while it is read */
} lin_trn_utterance;

/* A line of an STM. */
typedef struct lin_trn_segment {
    double start_s, end_s;
    int place;     /* file and channel: string of lin_trn.places */
    int utterance; /* -1: a time that is not scored */
} lin_trn_segment;

typedef struct lin_trn {
    lin_trn_format format;         /* what it was read as */
    lin_symbols ids;               /* id of utterance u is string u */
    lin_trn_utterance *utterances; /* [n], in the order of the file */
    int n;
    int *tokens; /* indices into the shared table, or marks of edit.h */
    size_t n_tokens;
    size_t utterances_capacity, tokens_capacity;
    double *middles;      /* CTM by_channel: of each token, in seconds; of alternatives the latest; else NULL */
    lin_symbols places;   /* STM: "file channel"; a channel that is a letter is its number in the alphabet */
    lin_symbols speakers; /* STM: of the file */
    lin_trn_segment *segments; /* STM: [n_segments], in the order of the file */
    int n_segments;
    size_t segments_capacity;
    lin_symbols unmapped; /* the distinct tokens that are not in the map; they are not changed */
    long long n_deleted;  /* tokens that the map deleted */
} lin_trn;

/*
 * Reads n bytes of a file; messages call it name. `options` may be NULL. `trn` is overwritten; on failure it is empty.
 * LIN_FORMAT with name:line: control characters, a line without id, an id twice, two channels in one CTM utterance, a time that
 * is no number, braces that do not match, what is not JSON or lacks a field, and a file without any utterance. LIN_UNSUPPORTED
 * for ";" and "\" where sclite treats them specially. LIN_NO_MEMORY.
 */
lin_status lin_trn_parse(const char *text, size_t n, const char *name, const lin_trn_options *options, lin_symbols *tokens,
                         lin_trn *trn, lin_error *err);
void lin_trn_free(lin_trn *trn);

/* Bytes of an utterance id that name its speaker by sclite's "spu_id" convention: up to the first '-', or if there is none up to
 * the first '_', or all of it. */
size_t lin_trn_speaker(const char *id, size_t n);

/* ---- STM: the reference of long recordings, what was said by whom and when ------------------------------------------------- */

/*
 *   file channel speaker start end [<labels>] P P P          ";;" begins a comment, also those that define labels and categories
 *
 * Each line is an utterance of its speaker, named as in sclite, "speaker-000", "speaker-001", ...; the time of a line whose text
 * contains IGNORE_TIME_SEGMENT_IN_SCORING is not scored. The words of a CTM are assigned to the lines of the same file and
 * channel by their middles, as in sclite: a line gets all words up to its end that no earlier line got, and the last line also
 * all after it. Channel A is channel 1, B is 2.
 *
 *   lin_trn_parse(text, n, "ref.stm", NULL, &tokens, &stm, &err);
 *   lin_trn_options o = {.by_channel = 1};
 *   lin_trn_parse(result, m, "hyp.ctm", &o, &tokens, &ctm, &err);
 *   lin_stm_cut(&stm, "ref.stm", &ctm, "hyp.ctm", &err);            // ctm has the utterances of stm now
 */

/* Replaces the utterances of a CTM, read by_channel, by those of an STM. Utterances of a file and channel that the CTM does not
 * have are not added. LIN_MISMATCH for a file and channel that the STM does not have. */
lin_status lin_stm_cut(const lin_trn *stm, const char *stm_name, lin_trn *ctm, const char *ctm_name, lin_error *err);

/*
 * Renames the utterances of an STM so that a hypothesis without times can be scored: to the name of the file, "file-channel" or
 * "file_channel", if the hypothesis has only such names and no two lines have the same. Otherwise they keep sclite's names.
 */
lin_status lin_stm_rename(lin_trn *stm, const lin_trn *hyp, lin_error *err);

#endif
