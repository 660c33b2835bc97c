// writers_json.c - JSON lines: everything a result has; docs/formats.md names every field.

#include <math.h>
#include <string.h>

#include "decoder/writers_internal.h"

static void put_string(lin_buffer *out, const char *key, const char *value)
{
    lin_buffer_text(out, key);
    lin_buffer_json(out, value, strlen(value));
}

static void put_number(lin_buffer *out, const char *key, double value, int digits)
{
    lin_buffer_text(out, key);
    lin_buffer_fixed(out, value, digits);
}

static void put_phones(const lin_result *r, const lin_writer_options *o, lin_buffer *out)
{
    lin_buffer_text(out, "\"phones\":[");
    for (int i = 0; i < r->n_phones; i++) {
        const lin_result_phone *p = &r->phones[i];
        put_string(out, i ? ",{\"phone\":" : "{\"phone\":", lin_phone_text(o, p->label));
        put_number(out, ",\"start\":", p->start_s, 3);
        put_number(out, ",\"end\":", p->end_s, 3);
        put_number(out, ",\"confidence\":", p->confidence, 4);
        if (isfinite(p->goodness)) put_number(out, ",\"goodness\":", p->goodness, 4);
        if (p->heard > 0) put_string(out, ",\"heard\":", lin_phone_text(o, p->heard));
        if (p->heard == LIN_RESULT_NOTHING) lin_buffer_text(out, ",\"heard\":null");
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

static void put_words(const lin_result *r, const lin_writer_options *o, lin_buffer *out)
{
    lin_buffer_text(out, ",\"words\":[");
    for (int i = 0; i < r->n_words; i++) {
        const lin_result_word *w = &r->words[i];
        put_string(out, i ? ",{\"word\":" : "{\"word\":", lin_result_word_text(r, i));
        lin_buffer_text(out, w->known ? ",\"known\":true" : ",\"known\":false");
        put_number(out, ",\"start\":", w->start_s, 3);
        put_number(out, ",\"end\":", w->end_s, 3);
        put_number(out, ",\"confidence\":", w->confidence, 4);
        lin_buffer_text(out, ",\"first_phone\":");
        lin_buffer_integer(out, w->first_phone);
        lin_buffer_text(out, ",\"phones\":[");
        for (int p = 0; p < w->n_phones; p++) {
            put_string(out, p ? "," : "", lin_phone_text(o, r->phones[w->first_phone + p].label));
        }
        lin_buffer_text(out, "]}");
    }
    lin_buffer_char(out, ']');
}

// The words in one string, those outside the lexicon with their mark.
static void put_text(const lin_result *r, const lin_writer_options *o, lin_buffer *words, lin_buffer *out)
{
    const lin_tokens t = lin_tokens_only(r, o, 1);
    if (words->failed) return;
    lin_buffer_clear(words);
    for (int i = 0; i < t.n; i++) {
        if (i) lin_buffer_char(words, ' ');
        lin_token_spell(&t, i, words);
    }
    lin_buffer_text(out, ",\"text\":");
    lin_buffer_json(out, words->data ? words->data : "", words->n);
}

static void put_found(const lin_result *r, const lin_writer_options *o, lin_buffer *words, lin_buffer *out)
{
    put_phones(r, o, out);
    if (r->has_words) {
        put_text(r, o, words, out);
        put_words(r, o, out);
    }
    if (r->score != 0 || r->acoustic != 0 || r->language != 0) {
        put_number(out, ",\"score\":", r->score, 4);
        put_number(out, ",\"acoustic\":", r->acoustic, 4);
        put_number(out, ",\"language\":", r->language, 4);
    }
}

lin_status lin_write_json(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    const lin_writer_options all = {.phones = o->phones, .ipa = o->ipa}; // whatever unit the other formats have
    lin_buffer words = {0};
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, &all, err);
    if (status) return status;
    put_string(out, "{\"id\":", r->id);
    lin_buffer_text(out, ",\"channel\":");
    lin_buffer_integer(out, r->channel);
    if (*r->speaker) put_string(out, ",\"speaker\":", r->speaker);
    put_number(out, ",\"seconds\":", r->seconds, 3);
    lin_buffer_char(out, ',');
    put_found(r, o, &words, out);
    if (r->n_alternatives) {
        lin_buffer_text(out, ",\"alternatives\":[");
        for (int i = 0; i < r->n_alternatives; i++) {
            lin_buffer_text(out, i ? ",{" : "{");
            put_found(&r->alternatives[i], o, &words, out);
            lin_buffer_char(out, '}');
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_text(out, "}\n");
    lin_scratch_free(&words, out);
    return lin_written(o, out, before, err);
}
