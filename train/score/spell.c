// spell.c - the words of a text without case, punctuation and the spelling of numbers, for score --normalize.

#include <string.h>

#include "base/memory.h"
#include "lexicon/transcript.h"
#include "train/score/trn_reader.h"

static lin_status push(lin_trn_reader *r, int token, lin_error *err)
{
    lin_status status = lin_grow(&r->spelled, &r->spelled_capacity, r->n_spelled + 1, sizeof *r->spelled, "transcripts", err);
    if (status == LIN_OK) r->spelled[r->n_spelled++] = token;
    return status;
}

static lin_status push_token(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    int token;
    lin_status status = lin_trn_number(r, text, n, &token, err);
    return status != LIN_OK || token < 0 ? status : push(r, token, err);
}

// The parts between hyphens, without quotation marks at their ends.
static lin_status push_word(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    lin_status status = LIN_OK;
    for (size_t at = 0, end; at < n && status == LIN_OK; at = end + 1) {
        const char *hyphen = memchr(text + at, '-', n - at);
        size_t last = end = hyphen ? (size_t)(hyphen - text) : n;
        while (at < last && text[at] == '\'') at++;
        while (last > at && text[last - 1] == '\'') last--;
        if (last > at) status = push_token(r, text + at, last - at, err);
    }
    return status;
}

static lin_status push_reading(lin_trn_reader *r, const char *reading, lin_error *err)
{
    const char *at = reading, *word;
    const size_t before = r->n_spelled;
    size_t n;
    lin_status status = LIN_OK;
    while (status == LIN_OK && lin_field_next(&at, reading + strlen(reading), &word, &n)) {
        char joined[LIN_WORD_MAX];
        size_t used = 0;
        for (size_t i = 0; i < n && used < sizeof joined; i++)
            if (word[i] != '+') joined[used++] = word[i];
        status = push_word(r, joined, used, err);
    }
    return status == LIN_OK && r->n_spelled == before ? push(r, LIN_EDIT_NULL, err) : status;
}

// What a number may be read as, as alternatives.
static lin_status push_readings(lin_trn_reader *r, const lin_readings *readings, int most, lin_error *err)
{
    const int n = readings->n < most ? readings->n : most;
    lin_status status = n > 1 ? push(r, LIN_EDIT_OPEN, err) : LIN_OK;
    for (int i = 0; i < n && status == LIN_OK; i++) {
        if (i) status = push(r, LIN_EDIT_OR, err);
        if (status == LIN_OK) status = push_reading(r, readings->items[i], err);
    }
    return status == LIN_OK && n > 1 ? push(r, LIN_EDIT_CLOSE, err) : status;
}

lin_status lin_trn_spell(lin_trn_reader *r, const char *text, size_t n, int most_readings, lin_error *err)
{
    lin_word_reader words = {.written = r->options.written, .text = text, .n = n};
    lin_status status = LIN_OK;
    r->n_spelled = 0;
    while (status == LIN_OK) {
        lin_spelling word;
        lin_error sign = {0};
        while (words.at < n && lin_is_space(text[words.at])) words.at++;
        const size_t from = words.at, mark = lin_mark_length(text + from, n - from);
        if (mark) { // those with "_" are words outside the lexicon, by their phones
            if (text[from] == '[' && memchr(text + from, '_', mark)) status = push_token(r, text + from, mark, err);
            words.at += mark;
            continue;
        }
        const lin_status read = lin_word_reader_next(&words, &word, &sign);
        if (read == LIN_NO_MEMORY) {
            status = lin_no_memory(err, "transcripts", n);
        } else if (read != LIN_OK) { // a sign that no rule reads: the field is a token, as it is
            const size_t most = words.next > words.at ? words.next : n;
            do words.at++;
            while (words.at < most && !lin_is_space(text[words.at]));
            status = push_token(r, text + from, words.at - from, err);
        } else if (word.n) {
            status = push_word(r, word.word, word.n, err);
        } else if (words.readings.n) {
            status = push_readings(r, &words.readings, most_readings, err);
        } else {
            break;
        }
    }
    lin_word_reader_free(&words);
    return status;
}
