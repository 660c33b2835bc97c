// writers_json.c - JSON lines: everything a result has; docs/formats.md names every field.

#include <math.h>

#include "decoder/writers_internal.h"

static void put_goodness(float goodness, lin_buffer *out)
{
    if (isfinite(goodness)) lin_buffer_json_format(out, ",'goodness':%.4f", (double)goodness);
}

void lin_put_speaker(int number, lin_buffer *out)
{
    if (number) lin_buffer_json_format(out, ",'speaker':'S%d'", number);
}

void lin_put_voices(const lin_result *r, lin_buffer *out)
{
    const int size = r->voice_size;
    if (r->n_voices == 0) return;
    lin_buffer_key(out, "voices");
    for (int i = 0; i < r->n_voices * size; i++) {
        lin_buffer_text(out, i == 0 ? "[[" : i % size ? "," : "],[");
        lin_buffer_fixed(out, r->voices[i], 4);
    }
    lin_buffer_text(out, "]]");
}

void lin_put_phones(const lin_result *r, int from, const char *key, const lin_writer_options *o, int speakers, lin_buffer *out)
{
    lin_buffer_key(out, key);
    lin_buffer_char(out, '[');
    for (int i = from; i < r->n_phones; i++) {
        const lin_result_phone *p = &r->phones[i];
        char text[LIN_PHONE_TEXT];
        if (i > from) lin_buffer_char(out, ',');
        lin_buffer_json_format(out, "{'phone':%s,'start':%.3f,'end':%.3f,'confidence':%.4f", lin_stressed_text(o, p, text),
                               p->start_s, p->end_s, (double)p->confidence);
        put_goodness(p->goodness, out);
        if (speakers && !r->has_words) lin_put_speaker(p->speaker, out);
        if (p->heard > 0) lin_buffer_json_format(out, ",'heard':%s", lin_phone_text(o, p->heard));
        else if (p->heard) lin_buffer_json_format(out, ",'heard':null");
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

void lin_put_words(const lin_result *r, int from, const char *key, const lin_writer_options *o, int speakers,
                   const lin_growing_words *growing, lin_buffer *out)
{
    lin_buffer_key(out, key);
    lin_buffer_char(out, '[');
    for (int i = from; i < r->n_words; i++) {
        const lin_result_word *w = &r->words[i];
        if (i > from) lin_buffer_char(out, ',');
        lin_buffer_json_format(out, "{'word':%s", lin_result_word_text(r, i));
        lin_buffer_text(out, w->known ? ",\"known\":true" : ",\"known\":false");
        lin_buffer_json_format(out, ",'start':%.3f,'end':%.3f,'confidence':%.4f", w->start_s, w->end_s, (double)w->confidence);
        put_goodness(lin_result_goodness(r, w->first_phone, w->n_phones), out);
        if (speakers) lin_put_speaker(lin_result_speaker(r, i), out);
        lin_buffer_json_format(out, ",'first_phone':%d,'phones':[", w->first_phone + (growing ? growing->first_phone : 0));
        for (int p = 0; p < w->n_phones; p++) {
            char text[LIN_PHONE_TEXT];
            lin_buffer_json_format(out, p ? ",%s" : "%s", lin_stressed_text(o, &r->phones[w->first_phone + p], text));
        }
        lin_buffer_char(out, ']');
        const int goes_on = growing && growing->incomplete && i + 1 == r->n_words;
        if (growing) lin_buffer_text(out, goes_on ? ",\"complete\":false" : ",\"complete\":true");
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

void lin_put_keywords(const lin_result *r, int from, const char *key, lin_buffer *out)
{
    if (from < r->n_keywords) lin_buffer_key(out, key);
    for (int i = from; i < r->n_keywords; i++) {
        const lin_result_keyword *k = &r->keywords[i];
        lin_buffer_char(out, i > from ? ',' : '[');
        lin_buffer_json_format(out, "{'keyword':%s,'start':%.3f,'end':%.3f,'confidence':%.4f}", r->text + k->text, k->start_s,
                               k->end_s, (double)k->confidence);
    }
    if (from < r->n_keywords) lin_buffer_char(out, ']');
}

// Tokens from number `first` to before `end` in one string, those outside the lexicon with their mark.
static void put_tokens(const char *key, const lin_tokens *t, int first, int end, lin_buffer *words, lin_buffer *out)
{
    if (words->failed) return;
    lin_buffer_clear(words);
    for (int i = first; i < end; i++) {
        const lin_result_word *w = t->written ? &t->result->words[i] : NULL;
        if (i > first && !(w && w->glued)) lin_buffer_text(words, !w || !w->line ? " " : w->line > 1 ? "\n\n" : "\n");
        lin_token_spell(t, i, words);
    }
    lin_buffer_json_format(out, ",%s:%s", key, words->data ? words->data : "");
}

// A turn has its speaker's name in the result itself.
static int names_speakers(const lin_result *r) { return r->n_voices && !*r->speaker; }

static void put_found(const lin_result *r, const lin_writer_options *o, lin_buffer *words, lin_buffer *out)
{
    const int speakers = names_speakers(r);
    lin_put_phones(r, 0, "phones", o, speakers, out);
    if (r->has_words) {
        const lin_tokens t = lin_tokens_only(r, o, 1);
        put_tokens("text", &t, 0, t.n, words, out);
        lin_put_words(r, 0, "words", o, speakers, NULL, out);
    }
    if (r->score != 0 || r->acoustic != 0 || r->language != 0) {
        lin_buffer_json_format(out, ",'score':%.4f,'acoustic':%.4f,'language':%.4f", r->score, r->acoustic, r->language);
    }
}

// What was said between two pauses: the words and, if `readable` has tokens of its own, the part of the readable text that begins
// in this segment. A number that was said over a pause belongs to the segment in which it begins.
static void put_segments(const lin_tokens *plain, const lin_tokens *readable, lin_buffer *words, lin_buffer *out)
{
    const lin_result *r = plain->result;
    lin_buffer_json_format(out, ",'segments':[");
    for (int first = 0, end, token = 0; first < r->n_words; first = end) {
        double sum = 0;
        int from = token;
        end = lin_result_segment_end(r, first);
        for (int i = first; i < end; i++) sum += r->words[i].confidence;
        const double next_s = end < r->n_words ? r->words[end].start_s : INFINITY;
        while (token < readable->n && lin_token_at(readable, token).start_s < next_s) token++;
        if (first) lin_buffer_char(out, ',');
        lin_buffer_json_format(out, "{'start':%.3f,'end':%.3f,'confidence':%.4f", r->words[first].start_s,
                               r->words[end - 1].end_s, sum / (end - first));
        if (names_speakers(r)) lin_put_speaker(lin_result_speaker(r, first), out);
        put_tokens("text", plain, first, end, words, out);
        if (readable->readable) put_tokens("readable", readable, from, token, words, out);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
}

// The words once more, as readable text and in segments; of an aligned text as it is written, which has its own lines.
static lin_status put_for_people(const lin_result *r, const lin_writer_options *o, lin_buffer *words, lin_buffer *out,
                                 lin_error *err)
{
    const lin_tokens plain = lin_tokens_only(r, o, 1);
    lin_tokens t = plain;
    lin_readable readable = {0};
    LIN_TRY(lin_tokens_make_readable(&t, 0, &readable, err));
    if (o->readable || t.written) put_tokens("readable", &t, 0, t.n, words, out);
    if (!t.written) put_segments(&plain, &t, words, out);
    lin_readable_free(&readable);
    return LIN_OK;
}

lin_status lin_write_json(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    const lin_result *r = t->result;
    const lin_writer_options *o = t->options;
    lin_buffer words = {0};
    lin_status status = LIN_OK;
    lin_buffer_json_format(out, "{'id':%s,'channel':%d", r->id, r->channel);
    if (*r->speaker) lin_buffer_json_format(out, ",'speaker':%s", r->speaker);
    lin_buffer_json_format(out, ",'seconds':%.3f", r->seconds);
    put_goodness(lin_result_goodness(r, 0, r->n_phones), out);
    put_found(r, o, &words, out);
    if (r->has_words) status = put_for_people(r, o, &words, out, err);
    lin_put_keywords(r, 0, "keywords", out);
    lin_put_voices(r, out);
    for (int i = 0; i < r->n_spans && r->has_others; i++) {
        lin_buffer_json_format(out, i ? ",{'start':%.3f,'end':%.3f}" : ",'other':[{'start':%.3f,'end':%.3f}", r->spans[i].start_s,
                               r->spans[i].end_s);
        if (i + 1 == r->n_spans) lin_buffer_char(out, ']');
    }
    if (r->n_alternatives) {
        lin_buffer_json_format(out, ",'alternatives':[");
        for (int i = 0; i < r->n_alternatives; i++) {
            lin_buffer_text(out, i ? ",{" : "{");
            put_found(&r->alternatives[i], o, &words, out);
            lin_buffer_char(out, '}');
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_text(out, "}\n");
    lin_scratch_free(&words, out);
    return status;
}
