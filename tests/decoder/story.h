/*
 * story.h - the utterances of tests/golden/writers/NAME.tsv, for the tests of writers; tests/golden/writers.py reads the same
 * files.
 *
 *   utterance TAB seconds
 *   word TAB spelling, empty outside the lexicon TAB first frame TAB end frame TAB confidence
 *   phone TAB name TAB first frame TAB end frame TAB confidence TAB goodness, or - where it was not measured
 *
 * Frames are 10 ms; the end frame is exclusive. The phones of a word follow it.
 */
#ifndef LIN_TESTS_DECODER_STORY_H
#define LIN_TESTS_DECODER_STORY_H

#include "base/textfile.h"
#include "decoder/result.h"
#include "tests/lexicon/support.h"

enum { STORY_WORDS = 128 };

typedef struct story_words {
    const char *text[STORY_WORDS];
    int n;
} story_words;

SUPPORT const char *story_spell(const void *context, int word) { return ((const story_words *)context)->text[word]; }

static inline double story_number(char **at)
{
    double value = NAN;
    const char *field = strsep(at, "\t");
    ck_assert(field && (!strcmp(field, "-") || lin_text_number(field, strlen(field), &value)));
    return value;
}

static inline void story_line(char *line, const lin_phones *phones, lin_path *path, story_words *words, float *goodness,
                              double *seconds)
{
    const char *kind = strsep(&line, "\t");
    if (!strcmp(kind, "utterance")) {
        *seconds = story_number(&line);
        return;
    }
    const char *text = strsep(&line, "\t");
    const int64_t start = (int64_t)story_number(&line), end = (int64_t)story_number(&line);
    const float confidence = (float)story_number(&line);
    OK(lin_path_reserve(path, 1, 1, &err));
    if (!strcmp(kind, "word")) {
        ck_assert_int_lt(words->n, STORY_WORDS);
        words->text[words->n] = text;
        path->words[path->n_words++] = (lin_path_word){.word = *text ? words->n : LIN_WORD_UNKNOWN,
                                                       .first_phone = path->n_phones,
                                                       .confidence = confidence,
                                                       .start = start,
                                                       .end = end};
        words->n++;
    } else {
        ck_assert_int_lt(path->n_phones, 8 * STORY_WORDS);
        goodness[path->n_phones] = (float)story_number(&line);
        path->phones[path->n_phones++] = (lin_path_phone){.label = lin_phones_find(phones, text, strlen(text)),
                                                          .confidence = confidence,
                                                          .start = start,
                                                          .end = end};
        path->words[path->n_words - 1].n_phones++;
    }
}

/* Fills the result from the file. with_words = 0: only the phones, as from a recogniser without a lexicon. */
static inline void story_read(lin_result *result, const char *name, const char *id, const char *speaker, int channel,
                              int with_words, const lin_phones *phones)
{
    char file[256], *text, *next;
    size_t n;
    lin_path path = {0};
    story_words words = {0};
    double seconds = 0;
    static float goodness[8 * STORY_WORDS];
    snprintf(file, sizeof file, "tests/golden/writers/%s.tsv", name);
    OK(lin_text_read(file, &text, &n, &err));
    for (char *line = text; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        story_line(line, phones, &path, &words, goodness, &seconds);
    }
    OK(lin_result_begin(result, id, speaker, channel, &err));
    if (!with_words) path.n_words = 0;
    OK(lin_result_add_path(result, &path, 0.01, with_words ? story_spell : NULL, &words, &err));
    for (int i = 0; i < result->n_phones; i++) result->phones[i].goodness = goodness[i];
    result->seconds = seconds;
    lin_path_free(&path);
    lin_free(text);
}

#endif
