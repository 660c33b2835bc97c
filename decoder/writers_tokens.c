// writers_tokens.c - the tokens of a result and how they are spelled, and what else the formats share; see writers_tokens.h.

#include <math.h>
#include <string.h>

#include "base/textfile.h"
#include "base/unicode.h"
#include "decoder/writers_internal.h"

/* ---- tokens ---------------------------------------------------------------------------------------------------------------- */

const char *lin_phone_text(const lin_writer_options *o, int label)
{
    return o->ipa ? lin_phones_ipa(o->phones, label) : lin_phones_name(o->phones, label);
}

const char *lin_stressed_text(const lin_writer_options *o, const lin_result_phone *phone, char text[LIN_PHONE_TEXT])
{
    static const char *const marks[] = {"", "ˈ", "ˌ"};
    const int stress = o->stress && phone->stress > 0 && phone->stress < 4 ? phone->stress - 1 : -1;
    const char *name = lin_phone_text(o, phone->label);
    if (o->ipa) {
        // AH0 and ER0, which CMUdict does not tell from AH1 and ER1 by their names.
        if (phone->stress == 1) name = !strcmp(name, "ʌ") ? "ə" : !strcmp(name, "ɝ") ? "ɚ" : name;
        snprintf(text, LIN_PHONE_TEXT, "%s%s", stress > 0 ? marks[stress] : "", name);
    } else {
        snprintf(text, LIN_PHONE_TEXT, "%s%.*s", name, stress >= 0,
                 stress < 0 ? "" : stress == 0 ? "0" : stress == 1 ? "1" : "2");
    }
    return text;
}

static lin_status check(const lin_result *r, const lin_writer_options *o, lin_error *err)
{
    const char *id = r->id ? r->id : "an alternative";
    for (int i = 0; i < r->n_phones; i++) {
        const lin_result_phone *p = &r->phones[i];
        const int n = lin_phones_count(o->phones), wrong = p->label < 1 || p->label >= n;
        if (wrong || p->heard < LIN_RESULT_NOTHING || p->heard >= n) {
            return lin_fail(err, LIN_INVALID, "phone %d of %s has label %d, which the phone set does not have", i, id,
                            wrong ? p->label : p->heard);
        }
    }
    for (int i = 0; i < r->n_words; i++) {
        const lin_result_word *w = &r->words[i];
        if (w->first_phone < 0 || w->n_phones < 0 || w->n_phones > r->n_phones - w->first_phone) {
            return lin_fail(err, LIN_INVALID, "word %d of %s has phones that are not there: %d from %d on of %d", i, id,
                            w->n_phones, w->first_phone, r->n_phones);
        }
    }
    for (int i = 0; i < r->n_alternatives; i++) {
        lin_status status = check(&r->alternatives[i], o, err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

lin_tokens lin_tokens_only(const lin_result *r, const lin_writer_options *o, int words)
{
    return (lin_tokens){.result = r, .options = o, .words = words, .n = words ? r->n_words : r->n_phones};
}

lin_status lin_tokens_of(lin_tokens *t, const lin_result *r, const lin_writer_options *o, lin_error *err)
{
    *t = lin_tokens_only(r, o, r->has_words && o->unit != LIN_UNIT_PHONES);
    if (o->unit == LIN_UNIT_WORDS && !r->has_words) {
        return lin_fail(err, LIN_INVALID, "%s has no words to write; a word search needs a lexicon", r->id);
    }
    return check(r, o, err);
}

lin_status lin_token_push_readable(const lin_tokens *t, int i, lin_readable *readable, lin_error *err)
{
    enum { FEWEST = 2, MOST = 15 }; // more are rather several words
    const lin_result_word *w = &t->result->words[i];
    const lin_g2p_rules *speller = t->options->speller;
    char spelling[8 * MOST] = "";
    if (w->confidence < t->options->least) return lin_readable_push(readable, "", w->start_s, w->end_s, 0, err);
    if (w->known) return lin_readable_push(readable, lin_result_word_text(t->result, i), w->start_s, w->end_s, 1, err);
    if (speller && w->n_phones >= FEWEST && w->n_phones <= MOST) {
        int labels[MOST];
        for (int p = 0; p < w->n_phones; p++) labels[p] = t->result->phones[w->first_phone + p].label;
        const lin_status status = lin_g2p_rules_spell(speller, labels, w->n_phones, spelling, sizeof spelling, err);
        if (status == LIN_NO_MEMORY) return status;
        if (status != LIN_OK) spelling[0] = '\0';
    }
    return lin_readable_push(readable, spelling, w->start_s, w->end_s, 0, err);
}

lin_status lin_tokens_make_readable(lin_tokens *t, lin_readable *readable, lin_error *err)
{
    lin_status status = LIN_OK;
    t->written = t->words && t->result->has_written;
    if (!t->words || t->written || !t->options->readable) return LIN_OK;
    lin_readable_begin(readable, t->options->readable);
    readable->paragraph_s = t->options->paragraph_s;
    for (int i = 0; i < t->n && status == LIN_OK; i++) status = lin_token_push_readable(t, i, readable, err);
    if (status == LIN_OK) status = lin_readable_finish(readable, err);
    if (status != LIN_OK) {
        lin_readable_free(readable);
        return status;
    }
    t->readable = readable;
    t->n = readable->n;
    return LIN_OK;
}

lin_token lin_token_at(const lin_tokens *t, int i)
{
    if (t->readable) return (lin_token){t->readable->tokens[i].start_s, t->readable->tokens[i].end_s, NAN, NAN};
    if (t->words) {
        const lin_result_word *w = &t->result->words[i];
        return (lin_token){w->start_s, w->end_s, w->confidence, lin_result_goodness(t->result, w->first_phone, w->n_phones)};
    }
    const lin_result_phone *p = &t->result->phones[i];
    return (lin_token){p->start_s, p->end_s, p->confidence, p->goodness};
}

void lin_token_spell(const lin_tokens *t, int i, lin_buffer *out)
{
    char phone[LIN_PHONE_TEXT];
    if (t->readable) {
        lin_buffer_text(out, lin_readable_token_text(t->readable, i));
        return;
    }
    if (!t->words) {
        lin_buffer_text(out, lin_stressed_text(t->options, &t->result->phones[i], phone));
        return;
    }
    const lin_result_word *w = &t->result->words[i];
    if (w->known) {
        lin_buffer_text(out, t->written ? t->result->text + w->written : lin_result_word_text(t->result, i));
        return;
    }
    lin_buffer_char(out, '[');
    for (int p = 0; p < w->n_phones; p++) {
        if (p && !t->options->ipa) lin_buffer_char(out, '_');
        const char *name = lin_stressed_text(t->options, &t->result->phones[w->first_phone + p], phone);
        const int as_is = t->options->ipa || lin_phones_is_own(t->options->phones); // their case matters
        for (; *name; name++) lin_buffer_char(out, as_is ? *name : lin_lower(*name));
    }
    lin_buffer_char(out, ']');
}

const char *lin_token_text(const lin_tokens *t, int i, lin_buffer *scratch)
{
    if (scratch->failed) return "";
    lin_buffer_clear(scratch);
    lin_token_spell(t, i, scratch);
    return scratch->data && !scratch->failed ? scratch->data : "";
}

void lin_scratch_free(lin_buffer *scratch, lin_buffer *out)
{
    if (scratch->failed) out->failed = scratch->failed;
    lin_buffer_free(scratch);
}

/* ---- text and numbers ------------------------------------------------------------------------------------------------------ */

void lin_put_clean(lin_buffer *out, const char *text, const char *keep, char quote)
{
    for (size_t at = 0, n = strlen(text), k; at < n; at += k ? k : 1) {
        const char c = text[at];
        k = lin_utf8_decode(text + at, n - at, NULL);
        if (!k || (((unsigned char)c < 32 || c == 127) && !strchr(keep, c))) {
            lin_buffer_text(out, "\xEF\xBF\xBD");
        } else {
            if (quote && c == quote) lin_buffer_char(out, quote);
            lin_buffer_bytes(out, text + at, k);
        }
    }
}

int64_t lin_ms(double seconds)
{
    if (!(seconds > 0)) return 0;
    return seconds > 9e8 ? (int64_t)9e11 : (int64_t)llround(seconds * 1000);
}

void lin_put_ms_as_seconds(lin_buffer *out, int64_t ms)
{
    char text[32];
    snprintf(text, sizeof text, "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
    lin_buffer_text(out, text);
}

/* ---- documents ------------------------------------------------------------------------------------------------------------- */

void lin_take_back(lin_buffer *out, size_t before)
{
    out->n = before;
    out->failed = 0;
    if (out->data) out->data[before] = '\0';
}

void lin_put_header(const lin_writer_options *o, const char *header, lin_buffer *out)
{
    if (!o->document) lin_buffer_text(out, header);
}

lin_status lin_write_end(const lin_writer_options *o, lin_buffer *out, size_t before, lin_error *err)
{
    lin_status status = lin_buffer_status(out, err);
    if (status != LIN_OK) {
        lin_take_back(out, before);
    } else if (o->document) {
        o->document->utterances++;
    }
    return status;
}
