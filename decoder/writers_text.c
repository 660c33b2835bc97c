// writers_text.c - plain text, NIST CTM and TRN: tokens between blanks, which nothing can escape.

#include <string.h>

#include "base/textfile.h"
#include "base/unicode.h"
#include "decoder/writers_internal.h"

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
        return lin_fail(err, LIN_INVALID, "the utterance id '%s' cannot be written in %s: byte %d is a blank, control "
                                          "character%s", id,
                        format, (int)bad + 1, *forbidden ? " or parenthesis" : "");
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

size_t lin_begin_text_token(const lin_writer_options *o, const lin_writer_layout *l, double start_s, lin_buffer *out)
{
    if (l->has_begun) lin_buffer_text(out, o->paragraph_s > 0 && start_s - l->end_s > o->paragraph_s ? "\n\n" : " ");
    return out->n;
}

void lin_end_text_token(const lin_writer_options *o, lin_writer_layout *l, size_t from, double end_s, lin_buffer *out)
{
    if (out->failed || out->n < from) return;
    const size_t width = from < out->n ? lin_utf8_count(out->data + from) : 0;
    const int chars = width < 1 << 20 ? (int)width : 1 << 20, has_blank = l->has_begun && out->data[from - 1] == ' ';
    const int before = has_blank ? l->column + 1 : 0;
    const int is_too_long = has_blank && o->columns > 0 && before + chars > o->columns;
    if (is_too_long) out->data[from - 1] = '\n'; // in place of the blank
    *l = (lin_writer_layout){1, (is_too_long ? 0 : before) + chars, end_s};
}

// In lines and paragraphs.
static void put_text(const lin_tokens *t, lin_buffer *out)
{
    lin_writer_layout own = {0}, *layout = t->options->layout ? t->options->layout : &own;
    for (int i = 0; i < t->n; i++) {
        const lin_token token = lin_token_at(t, i);
        const size_t from = lin_begin_text_token(t->options, layout, token.start_s, out);
        lin_token_spell(t, i, out);
        lin_end_text_token(t->options, layout, from, token.end_s, out);
    }
}

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

static void begin_row(const lin_tokens *t, double start_s, double end_s, lin_buffer *out)
{
    if (t->options->with_id) lin_buffer_text(out, t->result->id), lin_buffer_char(out, ' ');
    put_time(out, start_s);
    lin_buffer_char(out, ' ');
    put_time(out, end_s);
}

static void put_row(const lin_tokens *t, int i, const char *indent, lin_buffer *out)
{
    const lin_token token = lin_token_at(t, i);
    begin_row(t, token.start_s, token.end_s, out);
    lin_buffer_text(out, indent);
    lin_token_spell(t, i, out);
    lin_buffer_char(out, '\n');
}

// Start, end and phone or word; of both units the phones behind their word, two columns farther right. Among them what is not in
// the text.
static void put_table(const lin_tokens *t, lin_buffer *out)
{
    const int both = t->words && t->options->unit == LIN_UNIT_BOTH;
    const lin_tokens phones = lin_tokens_only(t->result, t->options, 0);
    const lin_result *r = t->result;
    for (int i = 0, other = r->has_others ? 0 : r->n_spans; i <= t->n; i++) {
        for (; other < r->n_spans && (i == t->n || r->spans[other].start_s < lin_token_at(t, i).start_s); other++) {
            begin_row(t, r->spans[other].start_s, r->spans[other].end_s, out);
            lin_buffer_format(out, "  %s\n", r->text + r->spans[other].text);
        }
        if (i == t->n) break;
        put_row(t, i, "  ", out);
        const lin_result_word *w = both ? &t->result->words[i] : NULL;
        for (int p = 0; both && p < w->n_phones; p++) put_row(&phones, w->first_phone + p, "    ", out);
    }
}

lin_status lin_write_text(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, o, err);
    if (status == LIN_OK && o->with_id) status = check_id(r->id, "text with ids", "", err);
    if (status == LIN_OK) status = check_words(&t, "text", "", err);
    if (status != LIN_OK) return status;
    if (o->times) {
        put_table(&t, out);
        return lin_write_end(o, out, before, err);
    }
    lin_readable readable = {0};
    if (o->with_id) { // Kaldi's format: plain words
        lin_buffer_text(out, r->id);
        if (t.n) lin_buffer_char(out, ' ');
        put_tokens(&t, out);
    } else {
        status = lin_tokens_make_readable(&t, &readable, err);
        if (status != LIN_OK) return status;
        if (o->with_speaker && *r->speaker) lin_put_clean(out, r->speaker, "", 0), lin_buffer_text(out, ": ");
        put_text(&t, out);
        lin_readable_free(&readable);
    }
    lin_buffer_char(out, '\n');
    return lin_write_end(o, out, before, err);
}

lin_status lin_write_ctm(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, o, err);
    if (status == LIN_OK) status = check_id(r->id, "CTM", "", err);
    if (status == LIN_OK && !strncmp(r->id, ";;", 2)) {
        status = lin_fail(err, LIN_INVALID, "the utterance id '%s' cannot be written in CTM: ;; begins a comment", r->id);
    }
    if (status == LIN_OK) status = check_words(&t, "CTM", "", err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < t.n; i++) {
        const lin_token token = lin_token_at(&t, i);
        lin_buffer_text(out, r->id);
        lin_buffer_char(out, ' ');
        lin_buffer_integer(out, r->channel);
        lin_buffer_char(out, ' ');
        lin_buffer_fixed(out, token.start_s, 3);
        lin_buffer_char(out, ' ');
        lin_buffer_fixed(out, token.end_s - token.start_s, 3);
        lin_buffer_char(out, ' ');
        lin_token_spell(&t, i, out);
        lin_buffer_char(out, ' ');
        lin_buffer_fixed(out, token.confidence, 4);
        lin_buffer_char(out, '\n');
    }
    if (!t.n) {
        lin_buffer_text(out, ";; ");
        lin_buffer_text(out, r->id);
        lin_buffer_text(out, t.words ? " has no words\n" : " has no phones\n");
    }
    return lin_write_end(o, out, before, err);
}

lin_status lin_write_trn(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const size_t before = out->n;
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, o, err);
    if (status == LIN_OK) status = check_id(r->id, "TRN", "()", err);
    if (status == LIN_OK) status = check_words(&t, "TRN", "(){}@*;\\", err); // alternatives, the null word, fragments, comments
    if (status != LIN_OK) return status;
    put_tokens(&t, out);
    lin_buffer_text(out, t.n ? " (" : "(");
    lin_buffer_text(out, r->id);
    lin_buffer_text(out, ")\n");
    return lin_write_end(o, out, before, err);
}
