// writers_labels.c - tokens with their times: Praat TextGrid, CSV, Audacity labels.

#include <math.h>
#include <string.h>

#include "decoder/writers_internal.h"

/* ---- Praat ----------------------------------------------------------------------------------------------------------------- */

// Intervals of a tier: tokens, and empty ones wherever there is none, so that all of 0 .. end_ms is covered. Praat wants every
// interval longer than nothing and beginning where the one before ended, whatever a result says.
typedef struct tier {
    lin_tokens tokens;
    int64_t at_ms, end_ms;
    int next;
} tier;

typedef struct interval {
    int64_t from_ms, to_ms;
    int token; // -1: empty
} interval;

// A token as it fits behind `at_ms`.
static interval place(const lin_tokens *tokens, int i, int64_t at_ms)
{
    const lin_token token = lin_token_at(tokens, i);
    int64_t from = lin_ms(token.start_s), to = lin_ms(token.end_s);
    if (from < at_ms) from = at_ms;
    if (to <= from) to = from + 1;
    return (interval){from, to, i};
}

static int next_interval(tier *t, interval *out)
{
    if (t->next < t->tokens.n) {
        *out = place(&t->tokens, t->next, t->at_ms);
        if (out->from_ms > t->at_ms) {
            *out = (interval){t->at_ms, out->from_ms, -1};
        } else {
            t->next++;
        }
    } else {
        *out = (interval){t->at_ms, t->end_ms, -1};
    }
    if (out->to_ms <= out->from_ms) return 0;
    t->at_ms = out->to_ms;
    return 1;
}

static int64_t end_of(const lin_tokens *tokens)
{
    int64_t at = 0;
    for (int i = 0; i < tokens->n; i++) at = place(tokens, i, at).to_ms;
    return at;
}

static void put_time(lin_buffer *out, const char *name, int64_t ms)
{
    lin_buffer_text(out, name);
    lin_put_ms_as_seconds(out, ms);
    lin_buffer_text(out, " \n"); // Praat's own files have the blank, and some of their readers rely on it
}

static void put_count(lin_buffer *out, const char *before, long long n, const char *after)
{
    lin_buffer_text(out, before);
    lin_buffer_integer(out, n);
    lin_buffer_text(out, after);
}

// speaker: NULL where there is one only.
static void put_tier(const lin_tokens *tokens, const char *speaker, int number, int64_t end_ms, lin_buffer *scratch,
                     lin_buffer *out)
{
    interval v;
    tier t = {.tokens = *tokens, .end_ms = end_ms};
    int n = 0;
    while (next_interval(&t, &v)) n++;
    put_count(out, "    item [", number, "]:\n        class = \"IntervalTier\" \n");
    lin_buffer_text(out, "        name = \"");
    if (speaker) lin_put_clean(out, speaker, "", '"');
    if (speaker) lin_buffer_text(out, " - "); // as the Montreal Forced Aligner names them
    lin_buffer_text(out, tokens->words ? "words\" \n" : "phones\" \n");
    put_time(out, "        xmin = ", 0);
    put_time(out, "        xmax = ", end_ms);
    put_count(out, "        intervals: size = ", n, " \n");
    t = (tier){.tokens = *tokens, .end_ms = end_ms};
    for (int i = 1; next_interval(&t, &v); i++) {
        put_count(out, "        intervals [", i, "]:\n");
        put_time(out, "            xmin = ", v.from_ms);
        put_time(out, "            xmax = ", v.to_ms);
        lin_buffer_text(out, "            text = \"");
        if (v.token >= 0) lin_put_clean(out, lin_token_text(tokens, v.token, scratch), "", '"');
        lin_buffer_text(out, "\" \n");
    }
}

// The spans of a result, in order and without overlap; whatever is between them is empty.
static void put_spans(const lin_result *r, const char *speaker, int number, int64_t end_ms, lin_buffer *out)
{
    int64_t at = 0;
    int n = 0;
    for (int pass = 0; pass < 2; pass++) { // counts, then writes
        int64_t to = at = 0;
        int k = 0;
        for (int i = 0; i <= r->n_spans; i++) {
            const lin_result_span *v = i < r->n_spans ? &r->spans[i] : NULL;
            int64_t from = v ? lin_ms(v->start_s) : end_ms;
            if (from < at) from = at;
            for (int is_span = 0; is_span < 2; is_span++) {
                to = !is_span ? from : v ? lin_ms(v->end_s) : from;
                if (to > end_ms) to = end_ms;
                if (to <= at) continue;
                k++;
                if (pass) {
                    put_count(out, "        intervals [", k, "]:\n");
                    put_time(out, "            xmin = ", at);
                    put_time(out, "            xmax = ", to);
                    lin_buffer_text(out, "            text = \"");
                    if (is_span) lin_put_clean(out, r->text + v->text, "", '"');
                    lin_buffer_text(out, "\" \n");
                }
                at = to;
            }
        }
        n = k;
        if (pass) return;
        put_count(out, "    item [", number, "]:\n        class = \"IntervalTier\" \n        name = \"");
        if (speaker) lin_put_clean(out, speaker, "", '"');
        if (speaker) lin_buffer_text(out, " - ");
        lin_buffer_text(out, r->has_others ? "notes\" \n" : "utterances\" \n");
        put_time(out, "        xmin = ", 0);
        put_time(out, "        xmax = ", end_ms);
        put_count(out, "        intervals: size = ", n, " \n");
    }
}

// The tiers of a result. Returns their number; the end of the grid grows with them.
static int tiers_of(const lin_tokens *t, lin_tokens tiers[2], int64_t *end_ms)
{
    int n = 0;
    if (t->words) tiers[n++] = *t;
    if (t->options->unit != LIN_UNIT_WORDS) tiers[n++] = lin_tokens_only(t->result, t->options, 0);
    const int64_t seconds = lin_ms(t->result->seconds);
    if (seconds > *end_ms) *end_ms = seconds;
    for (int i = 0; i < n; i++) {
        const int64_t end = end_of(&tiers[i]);
        if (end > *end_ms) *end_ms = end;
    }
    return n;
}

lin_status lin_write_textgrid_speakers(const lin_result *const *list, int n, const lin_writer_options *o, lin_buffer *out,
                                       lin_error *err)
{
    const size_t before = out->n;
    lin_tokens t, tiers[2];
    int64_t end_ms = 0;
    int n_tiers = 0, number = 1;
    for (int i = 0; i < n; i++) {
        lin_status status = lin_tokens_of(&t, list[i], o, err);
        if (status != LIN_OK) return status;
        n_tiers += tiers_of(&t, tiers, &end_ms) + (list[i]->n_spans > 0);
        for (int k = 0; k < list[i]->n_spans; k++) {
            const int64_t end = lin_ms(list[i]->spans[k].end_s);
            if (end > end_ms) end_ms = end;
        }
    }
    if (o->document && o->document->utterances) {
        return lin_fail(err, LIN_INVALID, "a TextGrid holds one utterance; use --output-dir for %s",
                        list[0]->id);
    }
    if (end_ms == 0) end_ms = 1; // no sound at all: Praat wants some
    lin_buffer scratch = {0};
    lin_buffer_text(out, "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n");
    put_time(out, "xmin = ", 0);
    put_time(out, "xmax = ", end_ms);
    put_count(out, "tiers? <exists> \nsize = ", n_tiers, " \nitem []: \n");
    for (int i = 0; i < n; i++) {
        lin_status status = lin_tokens_of(&t, list[i], o, err);
        const int own = status != LIN_OK ? 0 : tiers_of(&t, tiers, &end_ms);
        const char *speaker = n > 1 ? list[i]->speaker : NULL;
        const int spans = own && list[i]->n_spans, first = !list[i]->has_others;
        if (spans && first) put_spans(list[i], speaker, number++, end_ms, out);
        for (int k = 0; k < own; k++) put_tier(&tiers[k], speaker, number++, end_ms, &scratch, out);
        if (spans && !first) put_spans(list[i], speaker, number++, end_ms, out);
    }
    lin_scratch_free(&scratch, out);
    return lin_write_end(o, out, before, err);
}

lin_status lin_write_textgrid(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    return lin_write_textgrid_speakers(&r, 1, o, out, err);
}

/* ---- CSV ------------------------------------------------------------------------------------------------------------------- */

const char lin_csv_header[] = "id,channel,speaker,kind,text,start,end,confidence,goodness\r\n";

// Between quotes, doubled inside, where the field would be mistaken without them.
static void put_field(lin_buffer *out, const char *text)
{
    const size_t n = strlen(text);
    const int quote = n && (text[0] == ' ' || text[n - 1] == ' ' || memchr(text, ',', n) || memchr(text, '"', n) ||
                            memchr(text, '\n', n) || memchr(text, '\r', n));
    if (quote) lin_buffer_char(out, '"');
    lin_put_clean(out, text, "\t\r\n", '"');
    if (quote) lin_buffer_char(out, '"');
}

static void put_line(const lin_result *r, const char *kind, const char *text, lin_token token, lin_buffer *out)
{
    put_field(out, r->id);
    lin_buffer_char(out, ',');
    lin_buffer_integer(out, r->channel);
    lin_buffer_char(out, ',');
    put_field(out, r->speaker);
    lin_buffer_text(out, kind);
    put_field(out, text);
    lin_buffer_char(out, ',');
    lin_buffer_fixed(out, token.start_s, 3);
    lin_buffer_char(out, ',');
    lin_buffer_fixed(out, token.end_s, 3);
    lin_buffer_char(out, ',');
    if (isfinite(token.confidence)) lin_buffer_fixed(out, token.confidence, 4);
    lin_buffer_char(out, ',');
    if (isfinite(token.goodness)) lin_buffer_fixed(out, token.goodness, 4);
    lin_buffer_text(out, "\r\n");
}

static void put_row(const lin_tokens *t, int i, lin_buffer *scratch, lin_buffer *out)
{
    put_line(t->result, t->words ? ",word," : ",phone,", lin_token_text(t, i, scratch), lin_token_at(t, i), out);
}

// All words, where their goodness was measured.
static void put_whole(const lin_tokens *t, lin_buffer *scratch, lin_buffer *out)
{
    const lin_result *r = t->result;
    const float goodness = lin_result_goodness(r, 0, r->n_phones);
    if (!t->n || !isfinite(goodness)) return;
    const lin_token whole = {lin_token_at(t, 0).start_s, lin_token_at(t, t->n - 1).end_s, NAN, goodness};
    for (int i = 0; i < t->n; i++) {
        if (i) lin_buffer_char(scratch, ' ');
        lin_token_spell(t, i, scratch);
    }
    lin_buffer_char(scratch, '\0');
    put_line(r, ",utterance,", scratch->failed ? "" : scratch->data, whole, out);
}

lin_status lin_write_csv(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, o, err);
    if (status != LIN_OK) return status;
    lin_put_header(o, lin_csv_header, out);
    const lin_tokens phones = lin_tokens_only(r, o, 0);
    const int both = t.words && o->unit == LIN_UNIT_BOTH;
    lin_buffer scratch = {0};
    int phone = 0;
    if (both) put_whole(&t, &scratch, out);
    for (int i = 0; i < t.n; i++) {
        const lin_result_word *w = both ? &r->words[i] : NULL;
        for (; both && phone < w->first_phone; phone++) put_row(&phones, phone, &scratch, out); // of no word
        put_row(&t, i, &scratch, out);
        for (; both && phone < w->first_phone + w->n_phones; phone++) put_row(&phones, phone, &scratch, out);
    }
    for (; both && phone < phones.n; phone++) put_row(&phones, phone, &scratch, out);
    lin_scratch_free(&scratch, out);
    return lin_write_end(o, out, before, err);
}

/* ---- Audacity -------------------------------------------------------------------------------------------------------------- */

lin_status lin_write_audacity(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, o, err);
    if (status != LIN_OK) return status;
    lin_buffer scratch = {0};
    for (int i = 0; i < t.n; i++) {
        const lin_token token = lin_token_at(&t, i);
        const int64_t from = lin_ms(token.start_s), to = lin_ms(token.end_s);
        lin_put_ms_as_seconds(out, from);
        lin_buffer_char(out, '\t');
        lin_put_ms_as_seconds(out, to > from ? to : from);
        lin_buffer_char(out, '\t');
        if (o->with_speaker && *r->speaker) lin_put_clean(out, r->speaker, "", 0), lin_buffer_text(out, ": ");
        lin_put_clean(out, lin_token_text(&t, i, &scratch), "", 0);
        lin_buffer_char(out, '\n');
    }
    lin_scratch_free(&scratch, out);
    return lin_write_end(o, out, before, err);
}
