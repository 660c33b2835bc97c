// writers_text.c - the table of formats; tokens and what else all formats share; formats of a line for each utterance or token:
// text, NIST CTM and TRN, CSV, Audacity labels, NeMo manifests. See writers.h.

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/memory.h"
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
        LIN_TRY(check(&r->alternatives[i], o, err));
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

lin_status lin_tokens_make_readable(lin_tokens *t, double paragraph_s, lin_readable *readable, lin_error *err)
{
    lin_status status = LIN_OK;
    t->written = t->words && t->result->has_written;
    if (!t->words || t->written || !t->options->readable) return LIN_OK;
    lin_readable_begin(readable, t->options->readable);
    readable->paragraph_s = paragraph_s;
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
    lin_buffer_format(out, "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
}

/* ---- documents ------------------------------------------------------------------------------------------------------------- */

void lin_put_header(const lin_writer_options *o, const char *header, lin_buffer *out)
{
    if (!o->document) lin_buffer_text(out, header);
}

static void take_back(lin_buffer *out, size_t before)
{
    out->n = before;
    out->failed = 0;
    if (out->data) out->data[before] = '\0';
}

lin_status lin_writer_begin(const lin_writer *writer, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    if (!o->document) return LIN_OK;
    *o->document = (lin_writer_document){0};
    if (writer->header) lin_buffer_text(out, writer->header);
    lin_status status = lin_buffer_status(out, err);
    if (status != LIN_OK) take_back(out, before);
    return status;
}

/* ---- text, CTM and TRN: tokens between blanks, which nothing can escape ---------------------------------------------------- */

// Byte of `text` that cannot stand between blanks, or is one of `forbidden`; its length if all can.
static size_t find_bad(const char *text, const char *forbidden)
{
    size_t at = 0;
    while (text[at] && (unsigned char)text[at] > 32 && text[at] != 127 && !strchr(forbidden, text[at])) at++;
    return at;
}

// Ids stand between blanks in these formats, and inside parentheses in TRN.
static lin_status check_id(const char *id, const char *format, const char *forbidden, lin_error *err)
{
    const size_t bad = find_bad(id, forbidden);
    if (id[bad]) {
        return lin_fail(err, LIN_INVALID, "the utterance id '%.300s' cannot be written in %s: byte %d is a blank%s or a "
                                          "control character", id,
                        format, (int)bad + 1, *forbidden ? ", a parenthesis" : "");
    }
    if (!*id) return lin_fail(err, LIN_INVALID, "an empty utterance id cannot be written in %s", format);
    return LIN_OK;
}

// The words that will be written; names of phones have no blanks.
static lin_status check_words(const lin_tokens *t, const char *format, const char *forbidden, lin_error *err)
{
    char shown[LIN_QUOTE];
    for (int i = 0; t->words && i < t->n; i++) {
        const char *text = lin_result_word_text(t->result, i);
        if (!t->result->words[i].known) continue;
        const size_t bad = find_bad(text, forbidden);
        if (*text && !text[bad]) continue;
        return lin_fail(err, LIN_INVALID, "word %d of %s, '%s', cannot be written in %s: %s%s; the formats json and csv hold any "
                                          "word",
                        i, t->result->id, lin_quote(shown, text, strlen(text)), format,
                        *text ? "it has a blank or control character" : "it is empty",
                        *text && *forbidden ? " or a sign with a special meaning there" : "");
    }
    return LIN_OK;
}

static void put_paragraph_time(const lin_writer_options *o, double start_s, lin_buffer *out)
{
    const long long s = lin_ms(start_s) / 1000;
    if (o->paragraph_times) lin_buffer_format(out, "[%02lld:%02lld:%02lld] ", s / 3600, s / 60 % 60, s % 60);
}

size_t lin_begin_text_token(const lin_writer_options *o, const lin_writer_layout *l, double start_s, lin_buffer *out)
{
    const int is_paragraph = l->has_begun && o->paragraph_s > 0 && start_s - l->end_s > o->paragraph_s;
    if (l->has_begun) lin_buffer_text(out, is_paragraph ? "\n\n" : " ");
    const size_t from = out->n;
    if (is_paragraph || (!l->has_begun && !l->column)) put_paragraph_time(o, start_s, out);
    return from;
}

void lin_end_text_token(const lin_writer_options *o, lin_writer_layout *l, size_t from, double end_s, lin_buffer *out)
{
    if (out->failed || out->n < from) return;
    const size_t width = from < out->n ? lin_utf8_count(out->data + from) : 0;
    const int chars = width < 1 << 20 ? (int)width : 1 << 20, has_blank = l->has_begun && out->data[from - 1] == ' ';
    const int before = has_blank ? l->column + 1 : l->has_begun ? 0 : l->column;
    const int is_too_long = has_blank && o->columns > 0 && before + chars > o->columns;
    if (is_too_long) out->data[from - 1] = '\n'; // in place of the blank
    *l = (lin_writer_layout){1, (is_too_long ? 0 : before) + chars, end_s};
}

// In lines and paragraphs. Of a turn the speaker first, in its first line.
static void put_text(const lin_tokens *t, lin_buffer *out)
{
    const lin_writer_options *o = t->options;
    lin_writer_layout own = {0}, *layout = o->layout ? o->layout : &own;
    if (o->with_speaker && *t->result->speaker) {
        const size_t from = out->n;
        if (t->n) put_paragraph_time(o, lin_token_at(t, 0).start_s, out);
        lin_put_clean(out, t->result->speaker, "", 0);
        lin_buffer_text(out, ": ");
        if (!out->failed) layout->column = (int)lin_utf8_count(out->data + from);
    }
    for (int i = 0; i < t->n; i++) {
        const lin_token token = lin_token_at(t, i);
        const size_t from = lin_begin_text_token(o, layout, token.start_s, out);
        lin_token_spell(t, i, out);
        lin_end_text_token(o, layout, from, token.end_s, out);
    }
}

// All of them, with a blank between two.
static void put_tokens(const lin_tokens *t, lin_buffer *out)
{
    for (int i = 0; i < t->n; i++) {
        if (i) lin_buffer_char(out, ' ');
        lin_token_spell(t, i, out);
    }
}

enum { TIME_WIDTH = 9 };

static void put_time(lin_buffer *out, double seconds)
{
    const size_t from = out->n;
    lin_buffer_fixed(out, seconds, 3);
    lin_buffer_pad(out, from, TIME_WIDTH, 1);
}

static void begin_table_row(const lin_tokens *t, double start_s, double end_s, lin_buffer *out)
{
    if (t->options->with_id) lin_buffer_format(out, "%s ", t->result->id);
    put_time(out, start_s);
    lin_buffer_char(out, ' ');
    put_time(out, end_s);
}

static void put_table_row(const lin_tokens *t, int i, const char *indent, lin_buffer *out)
{
    const lin_token token = lin_token_at(t, i);
    begin_table_row(t, token.start_s, token.end_s, out);
    lin_buffer_text(out, indent);
    lin_token_spell(t, i, out);
    lin_buffer_char(out, '\n');
}

// Start, end and phone or word; of both units the phones behind their word, two columns farther right. Speech that is not in the
// text is among them.
static void put_table(const lin_tokens *t, lin_buffer *out)
{
    const int both = t->words && t->options->unit == LIN_UNIT_BOTH;
    const lin_tokens phones = lin_tokens_only(t->result, t->options, 0);
    const lin_result *r = t->result;
    for (int i = 0, other = r->has_others ? 0 : r->n_spans; i <= t->n; i++) {
        for (; other < r->n_spans && (i == t->n || r->spans[other].start_s < lin_token_at(t, i).start_s); other++) {
            begin_table_row(t, r->spans[other].start_s, r->spans[other].end_s, out);
            lin_buffer_format(out, "  %s\n", r->text + r->spans[other].text);
        }
        if (i == t->n) break;
        put_table_row(t, i, "  ", out);
        const lin_result_word *w = both ? &t->result->words[i] : NULL;
        for (int p = 0; both && p < w->n_phones; p++) put_table_row(&phones, w->first_phone + p, "    ", out);
    }
}

static lin_status write_text(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    const lin_result *r = t->result;
    const lin_writer_options *o = t->options;
    if (o->with_id) LIN_TRY(check_id(r->id, "text with ids", "", err));
    LIN_TRY(check_words(t, "text", "", err));
    if (o->times) {
        put_table(t, out);
        return LIN_OK;
    }
    lin_tokens shown = *t;
    lin_readable readable = {0};
    if (o->with_id) { // Kaldi's format: plain words
        lin_buffer_format(out, "%s%s", r->id, t->n ? " " : "");
        put_tokens(t, out);
    } else {
        LIN_TRY(lin_tokens_make_readable(&shown, o->paragraph_s, &readable, err));
        put_text(&shown, out);
        lin_readable_free(&readable);
    }
    lin_buffer_char(out, '\n');
    return LIN_OK;
}

static lin_status write_ctm(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    const lin_result *r = t->result;
    LIN_TRY(check_id(r->id, "CTM", "", err));
    if (!strncmp(r->id, ";;", 2))
        return lin_fail(err, LIN_INVALID, "the utterance id '%s' cannot be written in CTM: ;; begins a comment", r->id);
    LIN_TRY(check_words(t, "CTM", "", err));
    for (int i = 0; i < t->n; i++) {
        const lin_token token = lin_token_at(t, i);
        lin_buffer_format(out, "%s %d ", r->id, r->channel);
        lin_buffer_json_format(out, "%.3f %.3f ", token.start_s, token.end_s - token.start_s);
        lin_token_spell(t, i, out);
        lin_buffer_json_format(out, " %.4f\n", (double)token.confidence);
    }
    if (!t->n) lin_buffer_format(out, ";; %s has no %s\n", r->id, t->words ? "words" : "phones");
    return LIN_OK;
}

static lin_status write_trn(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    LIN_TRY(check_id(t->result->id, "TRN", "()", err));
    LIN_TRY(check_words(t, "TRN", "(){}@*;\\", err)); // alternatives, the null word, fragments, comments
    put_tokens(t, out);
    lin_buffer_format(out, "%s(%s)\n", t->n ? " " : "", t->result->id);
    return LIN_OK;
}

/* ---- CSV ------------------------------------------------------------------------------------------------------------------- */

static const char csv_header[] = "id,channel,speaker,kind,text,start,end,confidence,goodness\r\n";

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
    lin_buffer_format(out, ",%d,", r->channel);
    put_field(out, r->speaker);
    lin_buffer_text(out, kind);
    put_field(out, text);
    lin_buffer_json_format(out, ",%.3f,%.3f,", token.start_s, token.end_s);
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
    put_tokens(t, scratch);
    lin_buffer_char(scratch, '\0');
    put_line(r, ",utterance,", scratch->failed ? "" : scratch->data, whole, out);
}

static lin_status write_csv(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    lin_put_header(t->options, csv_header, out);
    const lin_tokens phones = lin_tokens_only(t->result, t->options, 0);
    const int both = t->words && t->options->unit == LIN_UNIT_BOTH;
    lin_buffer scratch = {0};
    int phone = 0;
    if (both) put_whole(t, &scratch, out);
    for (int i = 0; i < t->n; i++) {
        const lin_result_word *w = both ? &t->result->words[i] : NULL;
        for (; both && phone < w->first_phone; phone++) put_row(&phones, phone, &scratch, out); // of no word
        put_row(t, i, &scratch, out);
        for (; both && phone < w->first_phone + w->n_phones; phone++) put_row(&phones, phone, &scratch, out);
    }
    for (; both && phone < phones.n; phone++) put_row(&phones, phone, &scratch, out);
    lin_scratch_free(&scratch, out);
    (void)err;
    return LIN_OK;
}

/* ---- Audacity -------------------------------------------------------------------------------------------------------------- */

static lin_status write_audacity(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    const char *speaker = t->options->with_speaker ? t->result->speaker : "";
    lin_buffer scratch = {0};
    for (int i = 0; i < t->n; i++) {
        const lin_token token = lin_token_at(t, i);
        const int64_t from = lin_ms(token.start_s), to = lin_ms(token.end_s);
        lin_put_ms_as_seconds(out, from);
        lin_buffer_char(out, '\t');
        lin_put_ms_as_seconds(out, to > from ? to : from);
        lin_buffer_char(out, '\t');
        if (*speaker) lin_put_clean(out, speaker, "", 0), lin_buffer_text(out, ": ");
        lin_put_clean(out, lin_token_text(t, i, &scratch), "", 0);
        lin_buffer_char(out, '\n');
    }
    lin_scratch_free(&scratch, out);
    (void)err;
    return LIN_OK;
}

/* ---- NIST RTTM ------------------------------------------------------------------------------------------------------------- */

// Speech of one speaker between pauses. Its fields have no blanks, so those of names become underscores.
static lin_status write_rttm(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    const lin_result *r = t->result;
    double until_s = 0; // of the speech before
    const lin_tokens items = lin_tokens_only(r, t->options, r->has_words);
    LIN_TRY(check_id(r->id, "RTTM", "", err));
    for (int first = 0, next; first < items.n; first = next) {
        const int number = lin_result_speaker(r, first);
        double start_s = fmax(until_s, lin_token_at(&items, first).start_s - LIN_SPEECH_BEFORE_S);
        double end_s = lin_token_at(&items, first).end_s;
        for (next = first + 1; next < items.n && lin_result_speaker(r, next) == number; next++) {
            if (lin_token_at(&items, next).start_s - end_s >= LIN_SPEECH_PAUSE_S) break;
            end_s = fmax(end_s, lin_token_at(&items, next).end_s);
        }
        const double limit_s = next < items.n ? fmax(start_s, lin_token_at(&items, next).start_s) : fmax(end_s, r->seconds);
        until_s = end_s = fmin(end_s + LIN_SPEECH_BEHIND_S, limit_s);
        lin_buffer_text(out, "SPEAKER ");
        lin_put_clean(out, r->id, "", 0);
        lin_buffer_json_format(out, " %d %.3f %.3f <NA> <NA> ", r->channel, start_s, end_s - start_s);
        const size_t name = out->n;
        if (*r->speaker || !number) lin_put_clean(out, *r->speaker ? r->speaker : "unknown", "", 0);
        else lin_buffer_format(out, "S%d", number);
        for (size_t i = name; i < out->n && !out->failed; i++) out->data[i] = out->data[i] == ' ' ? '_' : out->data[i];
        lin_buffer_text(out, " <NA> <NA>\n");
    }
    return LIN_OK;
}

/* ---- lines of a manifest, as NVIDIA NeMo writes and scores them ------------------------------------------------------------ */

// The members that the line of the manifest has, without the brace that ends it, and without pred_text and channel of an earlier
// result.
static lin_status put_record(const lin_writer_source *s, lin_buffer *out, lin_error *err)
{
    static const struct {
        const char *name, *quoted;
    } ours[] = {{"pred_text", "\"pred_text\""}, {"channel", "\"channel\""}};
    const char *record = s->record, *end = strrchr(record, '}');
    const int n = 1 + s->names_channel;
    int has = 0;
    for (int i = 0; i < n; i++) has |= strstr(record, ours[i].quoted) != NULL;
    if (end && !has) {
        lin_buffer_bytes(out, record, (size_t)(end - record));
        return LIN_OK;
    }
    cJSON *json;
    LIN_TRY(lin_json_parse(record, strlen(record), "the line of the manifest", 0, &json, err));
    for (int i = 0; i < n; i++)
        while (cJSON_GetObjectItemCaseSensitive(json, ours[i].name)) cJSON_DeleteItemFromObjectCaseSensitive(json, ours[i].name);
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    if (!text) return lin_no_memory(err, "a manifest", strlen(record));
    lin_buffer_bytes(out, text, strlen(text) - 1);
    cJSON_free(text);
    return LIN_OK;
}

static void put_members(const lin_result *r, const lin_writer_source *s, lin_buffer *out)
{
    const double seconds = s->duration_s > 0 ? s->duration_s : r->seconds - s->start_s;
    lin_buffer_json_format(out, "{'id':%s", r->id);
    if (s->path) lin_buffer_json_format(out, ",'audio_filepath':%s", s->path);
    // A duration without an offset is read as that of the file, so a part from 0 on has both.
    if (s->start_s > 0 || s->duration_s > 0) lin_buffer_json_format(out, ",'offset':%.3f", s->start_s);
    lin_buffer_json_format(out, ",'duration':%.3f", seconds);
    if (s->text) lin_buffer_json_format(out, ",'text':%s", s->text);
    if (*r->speaker) lin_buffer_json_format(out, ",'speaker':%s", r->speaker);
}

static lin_status write_nemo(const lin_tokens *t, lin_buffer *out, lin_error *err)
{
    const lin_writer_source none = {0}, *source = t->options->source ? t->options->source : &none;
    lin_buffer text = {0};
    if (source->record) LIN_TRY(put_record(source, out, err));
    else put_members(t->result, source, out);
    if (source->names_channel) lin_buffer_json_format(out, ",'channel':%d", t->result->channel);
    put_tokens(t, &text);
    lin_buffer_key(out, "pred_text");
    lin_buffer_json(out, text.data ? text.data : "", text.n);
    lin_buffer_text(out, "}\n");
    lin_scratch_free(&text, out);
    return LIN_OK;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static const lin_writer writers[] = {
    {"text", "txt", NULL, LIN_WRITER_MANY, NULL, write_text},
    {"json", "jsonl", "json", LIN_WRITER_MANY, NULL, lin_write_json},
    {"ctm", "ctm", NULL, LIN_WRITER_MANY, NULL, write_ctm},
    {"trn", "trn", NULL, LIN_WRITER_MANY, NULL, write_trn},
    {"srt", "srt", NULL, LIN_WRITER_TIMELINE, NULL, lin_write_srt},
    {"vtt", "vtt", NULL, LIN_WRITER_TIMELINE, lin_vtt_header, lin_write_vtt},
    {"textgrid", "TextGrid", NULL, LIN_WRITER_ONE, NULL, NULL},
    {"csv", "csv", NULL, LIN_WRITER_MANY, csv_header, write_csv},
    {"audacity", "labels.txt", "labels", LIN_WRITER_TIMELINE, NULL, write_audacity},
    {"nemo", "manifest.jsonl", "nemo", LIN_WRITER_MANY, NULL, write_nemo},
    {"rttm", "rttm", NULL, LIN_WRITER_MANY, NULL, write_rttm},
};
enum { N_WRITERS = sizeof writers / sizeof *writers };

int lin_writer_holds_speakers(const lin_writer *w) { return w->holds != LIN_WRITER_TIMELINE; }

static lin_status write_all(const lin_writer *w, const lin_result *const *list, int n, const lin_writer_options *o,
                            lin_buffer *out, lin_error *err)
{
    lin_writer_options own = *o;
    if (w->write == lin_write_json) own.unit = LIN_UNIT_AUTO; // it has both, whatever unit other formats have
    if (w->holds == LIN_WRITER_ONE) return lin_write_textgrid(list, n, o, out, err);
    for (int i = 0; i < n; i++) {
        lin_tokens t;
        LIN_TRY(lin_tokens_of(&t, list[i], &own, err));
        LIN_TRY(w->write(&t, out, err));
    }
    return LIN_OK;
}

lin_status lin_write_speakers(const lin_writer *w, const lin_result *const *list, int n, const lin_writer_options *o,
                              lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    lin_writer_document none = {0}, *document = o->document ? o->document : &none;
    const lin_writer_document old = *document;
    lin_status status = write_all(w, list, n, o, out, err);
    if (status == LIN_OK) status = lin_buffer_status(out, err);
    if (status != LIN_OK) {
        take_back(out, before);
        *document = old;
    } else {
        document->utterances += n;
    }
    return status;
}

lin_status lin_write(const lin_writer *w, const lin_result *result, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    return lin_write_speakers(w, &result, 1, o, out, err);
}

const lin_writer *lin_writer_find(const char *name)
{
    for (int i = 0; i < N_WRITERS; i++) {
        if (!strcmp(writers[i].name, name)) return &writers[i];
    }
    for (int i = 0; i < N_WRITERS; i++) {
        if (writers[i].extension && !strcasecmp(writers[i].extension, name)) return &writers[i];
    }
    return NULL;
}

// Bytes of the extension if the path ends in a dot and it.
static size_t match_end(const char *path, const char *extension)
{
    const size_t n = extension ? strlen(extension) : 0, all = strlen(path);
    return n && all > n && path[all - n - 1] == '.' && !strcasecmp(path + all - n, extension) ? n : 0;
}

const lin_writer *lin_writer_for_file(const char *path)
{
    const lin_writer *best = NULL;
    size_t longest = 0;
    for (int i = 0; i < N_WRITERS; i++) {
        const size_t n = match_end(path, writers[i].extension), also = match_end(path, writers[i].also);
        if (n > longest || also > longest) {
            best = &writers[i];
            longest = n > also ? n : also;
        }
    }
    return best;
}

const lin_writer *lin_writer_at(int index) { return index >= 0 && index < N_WRITERS ? &writers[index] : NULL; }
