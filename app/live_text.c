// live_text.c - live results as text; see live_text.h.

#include "app/live_text.h"

#include <math.h>
#include <string.h>

#include "decoder/writers.h"

lin_status lin_live_put_readable(lin_buffer *out, const lin_writer_options *words, const lin_result *result, lin_error *err)
{
    LIN_TRY(lin_write(lin_writer_find("text"), result, words, out, err));
    out->data[--out->n] = 0;
    return lin_buffer_status(out, err);
}

lin_status lin_live_put_text(lin_buffer *out, const lin_writer_options *words, const lin_result *result, int incomplete,
                             lin_error *err)
{
    lin_writer_options plain = *words;
    plain.readable = NULL;
    LIN_TRY(lin_write(lin_writer_find("text"), result, &plain, out, err));
    // Removes the line end. An incomplete word is in brackets, like one outside the lexicon.
    const int open = incomplete && out->n > 1 && out->data[out->n - 2] == ']';
    out->n -= open ? 2 : 1;
    out->data[out->n] = 0;
    if (open) lin_buffer_text(out, "-]");
    return lin_buffer_status(out, err);
}

void lin_live_put_time(lin_buffer *out, double seconds)
{
    const long long tenths = (long long)(seconds * 10 + 0.5), minutes = tenths / 600, hours = minutes / 60;
    if (hours > 0) lin_buffer_format(out, "%lld:%02lld", hours, minutes % 60);
    else lin_buffer_integer(out, minutes);
    lin_buffer_format(out, ":%02lld.%lld", tenths / 10 % 60, tenths % 10);
}

void lin_live_put_head(lin_buffer *out, const lin_session_view *view)
{
    lin_buffer_char(out, '[');
    const size_t from = out->n;
    lin_live_put_time(out, view->start_s);
    const size_t width = out->n - from;
    lin_buffer_text(out, " - ");
    const size_t to = out->n;
    if (view->end != LINNET_GROWS) lin_live_put_time(out, view->end_s);
    lin_buffer_pad(out, to, width, 1);
    lin_buffer_text(out, "]  ");
}

// Settled and provisional words as one readable text, without a mark after the last word: it would come and go with every word.
static lin_status put_growing(lin_live_texts *t, const lin_writer_options *words, const lin_session_view *view, lin_error *err)
{
    LIN_TRY(lin_result_begin(&t->whole, "", NULL, 1, err));
    LIN_TRY(lin_result_append(&t->whole, view->settled, err));
    LIN_TRY(lin_result_append(&t->whole, view->provisional, err));
    if (view->incomplete && t->whole.n_words) t->whole.n_words--;
    LIN_TRY(lin_live_put_readable(&t->readable, words, &t->whole, err));
    lin_buffer *r = &t->readable;
    if (r->n && strchr(".?,", r->data[r->n - 1])) r->data[--r->n] = 0;
    return LIN_OK;
}

lin_status lin_live_spell(lin_live_texts *t, const lin_writer_options *words, const lin_session_view *view, int growing_too,
                          lin_error *err)
{
    const int is_final = view->end != LINNET_GROWS;
    lin_buffer_clear(&t->settled);
    lin_buffer_clear(&t->open);
    lin_buffer_clear(&t->readable);
    t->has_readable = words->readable && (is_final || growing_too);
    LIN_TRY(lin_live_put_text(&t->settled, words, view->settled, 0, err));
    LIN_TRY(lin_live_put_text(&t->open, words, view->provisional, view->incomplete, err));
    if (!t->has_readable) return LIN_OK;
    return is_final ? lin_live_put_readable(&t->readable, words, view->settled, err) : put_growing(t, words, view, err);
}

void lin_live_texts_free(lin_live_texts *t)
{
    lin_buffer_free(&t->settled);
    lin_buffer_free(&t->open);
    lin_buffer_free(&t->readable);
    lin_result_free(&t->whole);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void put_alternatives(lin_buffer *out, const lin_writer_options *words, const lin_result *result)
{
    lin_buffer text = {0};
    lin_buffer_json_format(out, ",'alternatives':[");
    for (int i = 0; i < result->n_alternatives; i++) {
        const lin_result *r = &result->alternatives[i];
        lin_buffer_clear(&text);
        if (lin_live_put_text(&text, words, r, 0, NULL) != LIN_OK) text.failed = 1; // no memory, or lin_write refused it
        if (text.failed) break;
        lin_buffer_json_format(out, i ? ",{'text':%s" : "{'text':%s", text.data);
        lin_put_phones(r, 0, "phones", words, 1, out);
        if (r->has_words) lin_put_words(r, 0, "words", words, 1, NULL, out);
        lin_buffer_json_format(out, ",'score':%.4f,'acoustic':%.4f,'language':%.4f}", r->score, r->acoustic, r->language);
    }
    lin_buffer_char(out, ']');
    lin_scratch_free(&text, out);
}

void lin_live_put_json(lin_buffer *out, const lin_writer_options *words, const lin_session_view *view,
                       const lin_live_texts *texts, double latency_s, int partial_phones)
{
    static const char *const ends[] = {"", "before", "after", "longest", "asked", "stopped"}; // linnet_end
    const lin_result *settled = view->settled;
    const int is_final = view->end != LINNET_GROWS;
    lin_buffer_json_format(out, "{'type':%s,'utterance':%d,'revision':%d,'start':%.3f,'end':%.3f,'heard':%.3f,'latency_ms':%.0f",
                           is_final ? "final" : "partial", view->utterance, view->revision, view->start_s, view->end_s,
                           view->processed_s, latency_s * 1e3);
    const char *const text = lin_text_of(&texts->settled);
    if (is_final) lin_buffer_json_format(out, ",'ended_by':%s,'text':%s", ends[view->end], text);
    else lin_buffer_json_format(out, ",'stable':%s,'unstable':%s", text, lin_text_of(&texts->open));
    if (texts->has_readable) lin_buffer_json_format(out, ",'readable':%s", lin_text_of(&texts->readable));
    if (is_final) {
        lin_put_phones(settled, 0, "phones", words, 1, out);
        if (settled->has_words) lin_put_words(settled, 0, "words", words, 1, NULL, out);
        lin_put_keywords(settled, 0, "keywords", out);
        if (settled->n_alternatives) put_alternatives(out, words, settled);
        lin_put_voices(settled, out);
    } else {
        if (settled->has_words) {
            const lin_growing_words growing = {settled->n_phones, view->incomplete};
            lin_put_words(settled, view->old_words, "new_words", words, 1, NULL, out);
            lin_put_words(view->provisional, 0, "partial_words", words, 1, &growing, out);
        }
        if (partial_phones) {
            lin_put_phones(settled, view->old_phones, "new_phones", words, 1, out);
            lin_put_phones(view->provisional, 0, "partial_phones", words, 1, out);
        }
        lin_put_keywords(settled, view->old_keywords, "new_keywords", out);
    }
    lin_buffer_text(out, "}\n");
}

static void put_delay(lin_buffer *out, const lin_session_delay *d)
{
    lin_buffer_json_format(out, ",'construction_ms':{'step':%.0f,'look_ahead':%.0f,'window':%.0f,'total':%.0f}", d->step_s * 1e3,
                           d->ahead_s * 1e3, d->window_s * 1e3, d->total_s * 1e3);
}

void lin_live_put_begin(lin_buffer *out, const char *source, const lin_recognizer *r, int rate_hz, int channels)
{
    const lin_session_delay construction = lin_session_construction(r);
    lin_buffer_json_format(out, "{'type':'begin','source':%s,'rate_hz':%d,'channels':%d,'model':%s", source, rate_hz, channels,
                           r->model->name ? r->model->name : "");
    put_delay(out, &construction);
    lin_buffer_text(out, "}\n");
}

void lin_live_put_context(lin_buffer *out, int n_phrases, const char *message)
{
    lin_buffer_json_format(out, "{'type':'context','phrases':%d", n_phrases);
    if (*message) lin_buffer_json_format(out, ",'message':%s", message);
    lin_buffer_text(out, "}\n");
}

static void put_losses(lin_buffer *out, const lin_microphone_report *report, int rate_hz)
{
    lin_buffer_json_format(out, ",'dropped_samples':%lld,'dropped_s':%.3f,'overflows':%lld", (long long)report->dropped,
                           rate_hz ? (double)report->dropped / rate_hz : 0, (long long)report->overflows);
}

void lin_live_put_lost(lin_buffer *out, const lin_microphone_report *report, int rate_hz)
{
    lin_buffer_json_format(out, "{'type':'lost'");
    put_losses(out, report, rate_hz);
    lin_buffer_text(out, "}\n");
}

static void put_latency(lin_buffer *out, char before, const char *name, const lin_lags *l)
{
    lin_buffer_char(out, before);
    lin_buffer_json_format(out, "%s:{'count':%lld", name, (long long)l->n);
    if (l->n)
        lin_buffer_json_format(out, ",'p50':%.0f,'p95':%.0f,'p99':%.0f,'largest':%.0f", lin_lags_quantile(l, 0.5) * 1e3,
                               lin_lags_quantile(l, 0.95) * 1e3, lin_lags_quantile(l, 0.99) * 1e3, l->most_s * 1e3);
    lin_buffer_char(out, '}');
}

void lin_live_put_end(lin_buffer *out, const lin_live_stats *s, const char *reason, const char *message)
{
    lin_buffer_json_format(out, "{'type':'end','reason':%s", reason);
    if (*message) lin_buffer_json_format(out, ",'message':%s", message);
    lin_buffer_json_format(out, ",'seconds':%.3f,'utterances':%d,'phones':%lld", s->seconds, s->utterances, (long long)s->phones);
    if (s->has_words) lin_buffer_json_format(out, ",'words':%lld", (long long)s->words);
    put_losses(out, &s->report, s->rate_hz);
    lin_buffer_json_format(out, ",'bad_samples':%lld,'real_time_factor':%.4f", (long long)s->bad_samples,
                           s->seconds > 0 ? s->busy_s / s->seconds : 0);
    put_delay(out, &s->construction);
    lin_buffer_json_format(out, ",'latency_ms':");
    put_latency(out, '{', "phone", &s->phone);
    if (s->has_words) put_latency(out, ',', "word", &s->word);
    put_latency(out, ',', "first", &s->first);
    put_latency(out, ',', "final", &s->final);
    lin_buffer_text(out, "}}\n");
}

/* ---- sentences ------------------------------------------------------------------------------------------------------------- */

static void put_count(lin_buffer *out, const char *before, int64_t n, const char *what)
{
    lin_buffer_format(out, "%s%lld %s%s", before, (long long)n, what, n == 1 ? "" : "s");
}

void lin_live_put_summary(lin_buffer *out, const lin_live_stats *s)
{
    lin_buffer_fixed(out, s->seconds, 1);
    put_count(out, " s of sound, ", s->utterances, "utterance");
    put_count(out, ", ", s->phones, "phoneme");
    if (s->has_words) put_count(out, ", ", s->words, "word");
    if (s->report.dropped) {
        lin_buffer_text(out, "; ");
        lin_buffer_fixed(out, s->rate_hz ? (double)s->report.dropped / s->rate_hz : 0, 3);
        put_count(out, " s of sound (", s->report.dropped, "sample");
        lin_buffer_text(out, ") were lost because this computer was too slow");
    }
    if (s->report.overflows) put_count(out, "; the sound system lost sound ", s->report.overflows, "time");
    if (s->bad_samples) {
        put_count(out, "; ", s->bad_samples, "sample");
        lin_buffer_text(out, " were not numbers and were replaced by silence");
    }
}

enum { LABEL = 38 }; // columns of the words before the numbers

static void put_column(lin_buffer *out, double value)
{
    const size_t from = out->n;
    lin_buffer_fixed(out, value, 0);
    lin_buffer_pad(out, from, 8, 1);
}

static void put_latency_line(lin_buffer *out, const char *what, const lin_lags *l)
{
    const double quantiles[] = {0.5, 0.95, 0.99};
    const size_t from = out->n;
    lin_buffer_text(out, what);
    lin_buffer_pad(out, from, LABEL, 0);
    if (l->n == 0) {
        lin_buffer_text(out, "    none\n");
        return;
    }
    for (int i = 0; i < 3; i++) put_column(out, lin_lags_quantile(l, quantiles[i]) * 1e3);
    put_column(out, l->most_s * 1e3);
    put_column(out, (double)l->n);
    lin_buffer_char(out, '\n');
}

void lin_live_put_stats(lin_buffer *out, const lin_live_stats *s)
{
    const lin_session_delay *d = &s->construction;
    const size_t from = out->n;
    lin_buffer_text(out, "latency, ms");
    lin_buffer_pad(out, from, LABEL, 0);
    lin_buffer_text(out, "     p50     p95     p99 largest   count\n");
    put_latency_line(out, "a phoneme, from its end to settled", &s->phone);
    if (s->has_words) put_latency_line(out, "a word, from its end to settled", &s->word);
    put_latency_line(out, "the first, from its beginning to shown", &s->first);
    put_latency_line(out, "an utterance, from its end to ended", &s->final);
    lin_buffer_format(out, "of a phoneme's, by the model's construction: %lld (look-ahead %lld, step %lld, window %lld)\n",
                      llround(d->total_s * 1e3), llround(d->ahead_s * 1e3), llround(d->step_s * 1e3), llround(d->window_s * 1e3));
    lin_buffer_text(out, "computing took ");
    lin_buffer_fixed(out, s->seconds > 0 ? 100 * s->busy_s / s->seconds : 0, 2);
    lin_buffer_text(out, " % of the sound's time\n");
}

/* ---- text that only grows -------------------------------------------------------------------------------------------------- */

void lin_settling_begin(lin_settling *s, const lin_writer_options *words)
{
    lin_buffer_clear(&s->text);
    lin_settling_back(s, words, 0);
}

void lin_settling_back(lin_settling *s, const lin_writer_options *words, size_t n)
{
    if (n < s->text.n) s->text.data[s->text.n = n] = 0;
    lin_readable_free(&s->readable);
    if (words->readable) lin_readable_begin(&s->readable, words->readable);
}

lin_status lin_settling_add(lin_settling *s, const lin_writer_options *words, const lin_result *more, int is_end, lin_error *err)
{
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, more, words, err);
    const int readable = words->readable && t.words;
    for (int i = 0; status == LIN_OK && i < t.n; i++) {
        if (readable) {
            status = lin_token_push_readable(&t, i, &s->readable, err);
        } else {
            if (s->text.n) lin_buffer_char(&s->text, ' ');
            lin_token_spell(&t, i, &s->text);
        }
    }
    if (status == LIN_OK && readable && is_end) status = lin_readable_finish(&s->readable, err);
    for (int i = 0; readable && i < s->readable.n; i++) {
        if (s->text.n) lin_buffer_char(&s->text, ' ');
        lin_buffer_text(&s->text, lin_readable_token_text(&s->readable, i));
    }
    if (readable) lin_readable_clear(&s->readable);
    return status == LIN_OK ? lin_buffer_status(&s->text, err) : status;
}

void lin_settling_free(lin_settling *s)
{
    lin_readable_free(&s->readable);
    lin_buffer_free(&s->text);
}
