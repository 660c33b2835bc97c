// result.c - paths, and a result from a path: times, words, confidences; see result.h.

#include "decoder/result.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

/* ---- a path ---------------------------------------------------------------------------------------------------------------- */

lin_status lin_path_reserve(lin_path *p, int more_phones, int more_words, lin_error *err)
{
    assert(p->n_phones >= 0 && p->n_phones <= p->phones_capacity && p->n_words >= 0 && p->n_words <= p->words_capacity);
    LIN_TRY(lin_grow_int(&p->phones, &p->phones_capacity, (int64_t)p->n_phones + more_phones, sizeof *p->phones, "a path", err));
    return lin_grow_int(&p->words, &p->words_capacity, (int64_t)p->n_words + more_words, sizeof *p->words, "a path", err);
}

lin_status lin_path_reserve_keywords(lin_path *p, int64_t more, lin_error *err)
{
    return lin_grow_int(&p->keywords, &p->keywords_capacity, p->n_keywords + more, sizeof *p->keywords, "keywords", err);
}

void lin_path_clear(lin_path *p)
{
    p->n_phones = p->n_words = p->n_others = p->n_keywords = p->incomplete = 0;
    p->score = p->acoustic = p->language = 0;
}

lin_status lin_path_append(lin_path *p, const lin_path *more, lin_error *err)
{
    LIN_TRY(lin_path_reserve(p, more->n_phones, more->n_words, err));
    LIN_TRY(lin_path_reserve_keywords(p, more->n_keywords, err));
    for (int i = 0; i < more->n_words; i++) {
        p->words[p->n_words] = more->words[i];
        p->words[p->n_words++].first_phone += p->n_phones;
    }
    for (int i = 0; i < more->n_phones; i++) p->phones[p->n_phones++] = more->phones[i];
    for (int i = 0; i < more->n_keywords; i++) p->keywords[p->n_keywords++] = more->keywords[i];
    p->incomplete = more->incomplete;
    p->score += more->score;
    p->acoustic += more->acoustic;
    p->language += more->language;
    return LIN_OK;
}

void lin_path_free(lin_path *p)
{
    lin_free(p->phones);
    lin_free(p->words);
    lin_free(p->others);
    lin_free(p->keywords);
    *p = (lin_path){0};
}

/* ---- a result -------------------------------------------------------------------------------------------------------------- */

void lin_result_clear(lin_result *r)
{
    r->n_phones = r->n_words = r->n_alternatives = r->n_spans = r->n_keywords = r->n_voices = 0;
    r->has_words = r->has_written = r->has_others = 0;
    r->text_used = 0;
    r->score = r->acoustic = r->language = 0;
}

lin_status lin_result_begin(lin_result *r, const char *id, const char *speaker, int channel, lin_error *err)
{
    // Copied before the old strings are freed: id may be the result's own.
    char *new_id = lin_strdup(id), *new_speaker = new_id ? lin_strdup(speaker ? speaker : "") : NULL;
    lin_free(r->id);
    lin_free(r->speaker);
    lin_result_clear(r);
    r->channel = channel;
    r->seconds = 0;
    r->id = r->speaker = NULL;
    if (!new_speaker) {
        lin_free(new_id);
        return lin_no_memory(err, "a result", strlen(id) + 1);
    }
    r->id = new_id;
    r->speaker = new_speaker;
    return LIN_OK;
}

static int holds(const lin_result *r)
{
    return r->n_phones >= 0 && r->n_phones <= r->capacity && r->n_words >= 0 && r->n_words <= r->words_capacity &&
           r->text_used <= r->text_capacity;
}

lin_status lin_result_reserve(lin_result *r, int phones, int words, size_t bytes, lin_error *err)
{
    assert(holds(r));
    LIN_TRY(lin_grow_int(&r->phones, &r->capacity, (int64_t)r->n_phones + phones, sizeof *r->phones, "a result", err));
    LIN_TRY(lin_grow_int(&r->words, &r->words_capacity, (int64_t)r->n_words + words, sizeof *r->words, "a result", err));
    return lin_grow(&r->text, &r->text_capacity, r->text_used + bytes, 1, "a result", err);
}

static const char *spelling(const lin_path_word *word, lin_result_speller spell, const void *context)
{
    const char *text = word->word != LIN_WORD_UNKNOWN && spell ? spell(context, word->word) : NULL;
    return text ? text : "";
}

lin_status lin_result_add_path(lin_result *r, const lin_path *path, double seconds_per_frame, lin_result_speller spell,
                               const void *context, lin_error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < path->n_words; i++) {
        const lin_path_word *w = &path->words[i];
        if (w->first_phone < 0 || w->n_phones < 0 || w->n_phones > path->n_phones - w->first_phone) {
            return lin_fail(err, LIN_INVALID, "word %d of a path has %d phones from number %d on, the path has %d", i,
                            w->n_phones, w->first_phone, path->n_phones);
        }
        bytes += strlen(spelling(w, spell, context)) + 1;
    }
    LIN_TRY(lin_result_reserve(r, path->n_phones, path->n_words, bytes, err));
    const int first = r->n_phones;
    for (int i = 0; i < path->n_phones; i++) {
        const lin_path_phone *p = &path->phones[i];
        r->phones[r->n_phones++] = (lin_result_phone){
            .label = p->label,
            .stress = p->stress,
            .confidence = p->confidence,
            .start_s = (double)p->start * seconds_per_frame,
            .end_s = (double)p->end * seconds_per_frame,
            .goodness = NAN,
        };
    }
    for (int i = 0; i < path->n_words; i++) {
        const lin_path_word *w = &path->words[i];
        const char *text = spelling(w, spell, context);
        const size_t n = strlen(text) + 1;
        memcpy(r->text + r->text_used, text, n);
        r->words[r->n_words++] = (lin_result_word){
            .text = r->text_used,
            .known = n > 1,
            .first_phone = first + w->first_phone,
            .n_phones = w->n_phones,
            .confidence = w->confidence,
            .start_s = (double)w->start * seconds_per_frame,
            .end_s = (double)w->end * seconds_per_frame,
        };
        r->text_used += n;
    }
    if (spell || path->n_words) r->has_words = 1;
    r->score = path->score;
    r->acoustic = path->acoustic;
    r->language = path->language;
    return LIN_OK;
}

// More text, with a NUL behind it; where it begins.
static lin_status keep_text(lin_result *r, const char *text, size_t n, size_t *at, lin_error *err)
{
    LIN_TRY(lin_result_reserve(r, 0, 0, n + 1, err));
    *at = r->text_used;
    memcpy(r->text + r->text_used, text, n);
    r->text[r->text_used + n] = 0;
    r->text_used += n + 1;
    return LIN_OK;
}

lin_status lin_result_write_word(lin_result *r, int i, const char *written, size_t n, int glued, int line, lin_error *err)
{
    assert(i >= 0 && i < r->n_words);
    lin_result_word *w = &r->words[i];
    lin_status status = keep_text(r, written, n, &w->written, err);
    r->has_written = status == LIN_OK;
    w->glued = glued;
    w->line = line;
    return status;
}

lin_status lin_result_add_span(lin_result *r, double start_s, double end_s, const char *text, lin_error *err)
{
    lin_result_span span = {start_s, end_s, 0};
    LIN_TRY(lin_grow_int(&r->spans, &r->spans_capacity, (int64_t)r->n_spans + 1, sizeof *r->spans, "a result", err));
    LIN_TRY(keep_text(r, text, strlen(text), &span.text, err));
    r->spans[r->n_spans++] = span;
    return LIN_OK;
}

static lin_status room_for_keywords(lin_result *r, int more, lin_error *err)
{
    return lin_grow_int(&r->keywords, &r->keywords_capacity, (int64_t)r->n_keywords + more, sizeof *r->keywords, "a result", err);
}

lin_status lin_result_add_keyword(lin_result *r, const char *text, float confidence, double start_s, double end_s, lin_error *err)
{
    lin_result_keyword keyword = {0, confidence, start_s, end_s};
    LIN_TRY(room_for_keywords(r, 1, err));
    LIN_TRY(keep_text(r, text, strlen(text), &keyword.text, err));
    r->keywords[r->n_keywords++] = keyword;
    return LIN_OK;
}

void lin_result_shift(lin_result *r, double seconds)
{
    for (int i = 0; i < r->n_phones; i++) r->phones[i].start_s += seconds, r->phones[i].end_s += seconds;
    for (int i = 0; i < r->n_words; i++) r->words[i].start_s += seconds, r->words[i].end_s += seconds;
    for (int i = 0; i < r->n_keywords; i++) r->keywords[i].start_s += seconds, r->keywords[i].end_s += seconds;
    for (int i = 0; i < r->n_alternatives; i++) lin_result_shift(&r->alternatives[i], seconds);
}

lin_status lin_result_append(lin_result *r, const lin_result *more, lin_error *err)
{
    assert(r != more && holds(more));
    LIN_TRY(lin_result_reserve(r, more->n_phones, more->n_words, more->text_used, err));
    LIN_TRY(room_for_keywords(r, more->n_keywords, err));
    if (more->n_phones) memcpy(r->phones + r->n_phones, more->phones, (size_t)more->n_phones * sizeof *r->phones);
    if (more->text_used) memcpy(r->text + r->text_used, more->text, more->text_used);
    for (int i = 0; i < more->n_words; i++) {
        lin_result_word *w = &r->words[r->n_words++];
        *w = more->words[i];
        w->text += r->text_used;
        w->written += r->text_used;
        w->first_phone += r->n_phones;
    }
    for (int i = 0; i < more->n_keywords; i++) {
        r->keywords[r->n_keywords] = more->keywords[i];
        r->keywords[r->n_keywords++].text += r->text_used;
    }
    r->n_phones += more->n_phones;
    r->text_used += more->text_used;
    if (more->n_words) r->has_written = more->has_written && (r->has_written || r->n_words == more->n_words);
    r->has_words |= more->has_words;
    r->score += more->score;
    r->acoustic += more->acoustic;
    r->language += more->language;
    return LIN_OK;
}

lin_status lin_result_append_part(lin_result *r, const lin_result *from, int first, int n, lin_error *err)
{
    assert(r != from && first >= 0 && n > 0 && first <= lin_result_items(from) - n);
    int phone = first, phones = n;
    if (from->has_words) {
        const lin_result_word *last = &from->words[first + n - 1];
        phone = from->words[first].first_phone;
        phones = last->first_phone + last->n_phones - phone;
    }
    LIN_TRY(lin_result_reserve(r, phones, from->has_words ? n : 0, from->text_used, err));
    if (phones) memcpy(r->phones + r->n_phones, from->phones + phone, (size_t)phones * sizeof *r->phones);
    for (int i = first; from->has_words && i < first + n; i++) {
        lin_result_word *w = &r->words[r->n_words++];
        *w = from->words[i];
        w->first_phone += r->n_phones - phone;
        for (int written = 0; written <= from->has_written; written++) {
            size_t *at = written ? &w->written : &w->text;
            const size_t bytes = strlen(from->text + *at) + 1;
            memcpy(r->text + r->text_used, from->text + *at, bytes);
            *at = r->text_used;
            r->text_used += bytes;
        }
    }
    r->n_phones += phones;
    r->has_words |= from->has_words;
    r->has_written = from->has_written;
    // A keyword is in the part in which it begins; before an item it belongs to that item.
    const double from_s = first ? lin_result_item(from, first - 1).end_s : -INFINITY;
    const double until_s = first + n < lin_result_items(from) ? lin_result_item(from, first + n - 1).end_s : INFINITY;
    for (int i = 0; i < from->n_keywords; i++) {
        const lin_result_keyword *k = &from->keywords[i];
        if (k->start_s < from_s || k->start_s >= until_s) continue;
        LIN_TRY(lin_result_add_keyword(r, from->text + k->text, k->confidence, k->start_s, k->end_s, err));
    }
    return LIN_OK;
}

lin_status lin_result_follow(lin_result *r, const lin_result *from, lin_error *err)
{
    const int phones = from->n_phones - r->n_phones, words = from->n_words - r->n_words;
    const int keywords = from->n_keywords - r->n_keywords;
    if (phones < 0 || words < 0 || keywords < 0 || from->text_used < r->text_used)
        return lin_fail(err, LIN_INVALID, "a result with %d phones follows one with %d", r->n_phones, from->n_phones);
    LIN_TRY(lin_result_reserve(r, phones, words, from->text_used - r->text_used, err));
    LIN_TRY(room_for_keywords(r, keywords, err));
    if (phones) memcpy(r->phones + r->n_phones, from->phones + r->n_phones, (size_t)phones * sizeof *r->phones);
    if (words) memcpy(r->words + r->n_words, from->words + r->n_words, (size_t)words * sizeof *r->words);
    if (from->text_used > r->text_used) memcpy(r->text + r->text_used, from->text + r->text_used, from->text_used - r->text_used);
    r->n_phones = from->n_phones;
    r->n_words = from->n_words;
    if (keywords) memcpy(r->keywords + r->n_keywords, from->keywords + r->n_keywords, (size_t)keywords * sizeof *r->keywords);
    r->n_keywords = from->n_keywords;
    r->text_used = from->text_used;
    r->has_words = from->has_words;
    r->has_written = from->has_written;
    r->seconds = from->seconds;
    r->score = from->score;
    r->acoustic = from->acoustic;
    r->language = from->language;
    return lin_result_set_voices(r, from->voices, from->n_voices, from->voice_size, err);
}

void lin_result_set_times(lin_result *r, const lin_segment *segments)
{
    for (int i = 0; i < r->n_phones; i++) {
        r->phones[i].start_s = segments[i].start_s;
        r->phones[i].end_s = segments[i].end_s;
    }
    for (int i = 0; i < r->n_words; i++) {
        lin_result_word *w = &r->words[i];
        if (w->n_phones < 1) continue;
        w->start_s = segments[w->first_phone].start_s;
        w->end_s = segments[w->first_phone + w->n_phones - 1].end_s;
    }
}

lin_status lin_result_set_voices(lin_result *r, const float *vectors, int n, int size, lin_error *err)
{
    LIN_TRY(lin_grow_int(&r->voices, &r->voices_capacity, (int64_t)n * size, sizeof *r->voices, "a result", err));
    r->n_voices = n;
    r->voice_size = size;
    for (int i = 0; i < n; i++) {
        const float *from = vectors + (size_t)i * (size_t)size;
        double norm = 0;
        for (int d = 0; d < size; d++) norm += (double)from[d] * (double)from[d];
        for (int d = 0; d < size; d++) r->voices[(size_t)i * (size_t)size + (size_t)d] = (float)(from[d] / sqrt(norm + 1e-30));
    }
    return LIN_OK;
}

int lin_result_items(const lin_result *r) { return r->has_words ? r->n_words : r->n_phones; }

lin_item lin_result_item(const lin_result *r, int i)
{
    if (r->has_words) return (lin_item){r->words[i].start_s, r->words[i].end_s, r->words[i].confidence};
    return (lin_item){r->phones[i].start_s, r->phones[i].end_s, r->phones[i].confidence};
}

int lin_result_speaker(const lin_result *r, int item)
{
    const int phone = !r->has_words ? item : r->words[item].n_phones ? r->words[item].first_phone : -1;
    return phone >= 0 ? r->phones[phone].speaker : 0;
}

lin_status lin_result_append_speaker(lin_result *r, const lin_result *from, int speaker, lin_error *err)
{
    const int n = lin_result_items(from);
    r->has_words = from->has_words;
    r->seconds = from->seconds;
    for (int first = 0, end; first < n; first = end) {
        const int own = lin_result_speaker(from, first) == speaker;
        for (end = first + 1; end < n && (lin_result_speaker(from, end) == speaker) == own; end++) {
        }
        if (own) LIN_TRY(lin_result_append_part(r, from, first, end - first, err));
    }
    if (speaker < 1 || speaker > from->n_voices) return LIN_OK;
    return lin_result_set_voices(r, from->voices + (size_t)(speaker - 1) * (size_t)from->voice_size, 1, from->voice_size, err);
}

lin_result *lin_result_add_alternative(lin_result *r)
{
    const int before = r->alternatives_capacity;
    if (lin_grow_int(&r->alternatives, &r->alternatives_capacity, (int64_t)r->n_alternatives + 1, sizeof *r->alternatives,
                     "a result", NULL) != LIN_OK)
        return NULL;
    // Alternatives of earlier utterances keep their memory.
    if (r->alternatives_capacity > before) {
        memset(r->alternatives + before, 0, (size_t)(r->alternatives_capacity - before) * sizeof *r->alternatives);
    }
    lin_result *alternative = &r->alternatives[r->n_alternatives++];
    lin_result_clear(alternative);
    return alternative;
}

float lin_result_goodness(const lin_result *r, int first, int n)
{
    double sum = 0;
    int measured = 0;
    for (int i = first; i < first + n; i++) {
        if (isnan(r->phones[i].goodness)) continue;
        sum += exp((double)r->phones[i].goodness);
        measured++;
    }
    return measured ? (float)log(sum / measured) : NAN;
}

const char *lin_result_word_text(const lin_result *r, int word)
{
    return word >= 0 && word < r->n_words ? r->text + r->words[word].text : NULL;
}

int lin_result_segment_end(const lin_result *r, int first)
{
    int i = first + 1;
    while (i < lin_result_items(r) && lin_result_item(r, i).start_s - lin_result_item(r, i - 1).end_s < 0.8 &&
           lin_result_item(r, i).end_s - lin_result_item(r, first).start_s <= 30 &&
           lin_result_speaker(r, i) == lin_result_speaker(r, first))
        i++;
    return i;
}

void lin_result_free(lin_result *r)
{
    for (int i = 0; i < r->alternatives_capacity; i++) lin_result_free(&r->alternatives[i]);
    lin_free(r->id);
    lin_free(r->speaker);
    lin_free(r->phones);
    lin_free(r->keywords);
    lin_free(r->words);
    lin_free(r->spans);
    lin_free(r->voices);
    lin_free(r->text);
    lin_free(r->alternatives);
    *r = (lin_result){0};
}
