// ctm.c - NIST CTM, a token per line, in the order of their times; see trn.h.

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "train/score/trn_reader.h"

typedef struct fields {
    const char *text[7];
    size_t n[7];
    int k;
} fields;

static lin_status bad_line(const lin_trn_reader *r, int line, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->name, line, what);
}

static int is_mark(const fields *f, const char *mark)
{
    return f->n[4] == strlen(mark) && !strncasecmp(f->text[4], mark, f->n[4]);
}

// Finds or begins the utterance of a line.
static lin_status find_utterance(lin_trn_reader *r, const fields *f, int line, int *utterance, lin_error *err)
{
    lin_trn *t = r->trn;
    int channel = 0;
    char shown[LIN_QUOTE];
    lin_status status;
    if (r->options.by_channel) {
        status = lin_trn_add_place(r, &t->ids, f->text[0], f->n[0], f->text[1], f->n[1], utterance, err);
    } else {
        status = lin_trn_add_symbol(r, &r->channels, f->text[1], f->n[1], &channel, err);
        if (status == LIN_OK) status = lin_trn_add_symbol(r, &t->ids, f->text[0], f->n[0], utterance, err);
    }
    if (status == LIN_OK)
        status = lin_grow(&t->utterances, &t->utterances_capacity, (size_t)t->ids.n, sizeof *t->utterances, "transcripts", err);
    if (status == LIN_OK)
        status = lin_grow(&r->channel_of, &r->channel_capacity, (size_t)t->ids.n, sizeof *r->channel_of, "transcripts", err);
    if (status != LIN_OK) return status;
    if (*utterance == t->n) {
        t->utterances[t->n++] = (lin_trn_utterance){.line = line};
        r->channel_of[*utterance] = channel;
    }
    if (r->channel_of[*utterance] == channel) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s:%d: utterance '%s' has two channels; give each channel an id of its own", r->name, line,
                    lin_quote(shown, f->text[0], f->n[0]));
}

static lin_status add_row(lin_trn_reader *r, const lin_ctm_row *row, int line, lin_error *err)
{
    LIN_TRY(lin_grow(&r->rows, &r->rows_capacity, r->n_rows + 1, sizeof *r->rows, "transcripts", err));
    r->rows[r->n_rows] = *row;
    r->rows[r->n_rows].order = (int)r->n_rows;
    return r->n_rows++ == INT_MAX / 16 ? bad_line(r, line, "too many lines", err) : LIN_OK;
}

// Unless the map deletes it.
static lin_status add_token(lin_trn_reader *r, lin_ctm_row *row, const char *text, size_t n, int is_optional, int line,
                            lin_error *err)
{
    int token;
    lin_status status = lin_trn_number(r, text, n, &token, err);
    if (status != LIN_OK || token < 0) return status;
    row->token = LIN_EDIT_OPTIONAL;
    if (is_optional) status = add_row(r, row, line, err);
    row->token = token;
    return status != LIN_OK ? status : add_row(r, row, line, err);
}

// Alternatives stay together: they have the start of the first word and the middle of the latest.
static void close_alternatives(lin_trn_reader *r)
{
    lin_ctm_row *first = &r->rows[r->first_alternative - 1], *end = r->rows + r->n_rows;
    int has_start = 0;
    double start = 0, middle = 0;
    for (lin_ctm_row *row = first; row < end; row++) {
        if (row->token < 0 && row->token != LIN_EDIT_NULL) continue;
        if (!has_start) start = row->start;
        has_start = 1;
        if (row->middle > middle) middle = row->middle;
    }
    for (lin_ctm_row *row = first; row < end; row++) {
        row->start = start;
        row->middle = middle;
    }
    r->first_alternative = 0;
}

// <ALT_BEGIN>, <ALT> and <ALT_END>, whose times are "*". An alternative without words is a null word.
static lin_status read_mark(lin_trn_reader *r, const fields *f, int line, lin_error *err)
{
    const int begins = is_mark(f, "<ALT_BEGIN>"), ends = is_mark(f, "<ALT_END>");
    int utterance;
    if (begins == (r->first_alternative > 0))
        return bad_line(r, line, begins ? "<ALT_BEGIN> within alternatives" : "no <ALT_BEGIN> before this line", err);
    lin_status status = find_utterance(r, f, line, &utterance, err);
    if (status != LIN_OK) return status;
    if (!begins && r->rows[r->n_rows - 1].utterance != utterance)
        return bad_line(r, line, "alternatives of two utterances", err);
    lin_ctm_row row = {.utterance = utterance, .token = begins ? LIN_EDIT_OPEN : ends ? LIN_EDIT_CLOSE : LIN_EDIT_OR};
    if (!begins && !r->n_alternatives) {
        lin_ctm_row nothing = {.utterance = utterance, .token = LIN_EDIT_NULL, .start = r->start, .middle = r->start};
        status = add_row(r, &nothing, line, err);
    }
    if (status == LIN_OK) status = add_row(r, &row, line, err);
    r->n_alternatives = 0;
    if (begins) r->first_alternative = r->n_rows;
    if (ends && status == LIN_OK) close_alternatives(r);
    return status;
}

lin_status lin_trn_ctm_line(lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const char *at = line->text, *end = line->text + line->n;
    fields f = {.k = 0};
    double start, duration;
    char shown[LIN_QUOTE];
    lin_ctm_row row = {.token = LIN_EDIT_NULL};
    while (f.k < 7 && lin_field_next(&at, end, &f.text[f.k], &f.n[f.k])) f.k++;
    if (f.k < 5 || f.k > 6) {
        return lin_fail(err, LIN_FORMAT,
                        "%s:%d: a CTM line has 5 or 6 fields (utterance, channel, start, duration, token, confidence), here %d%s",
                        r->name, line->number, f.k, f.k == 7 ? " or more" : "");
    }
    if (is_mark(&f, "<ALT_BEGIN>") || is_mark(&f, "<ALT>") || is_mark(&f, "<ALT_END>"))
        return read_mark(r, &f, line->number, err);
    if (!lin_text_number(f.text[2], f.n[2], &start) || !lin_text_number(f.text[3], f.n[3], &duration) || start < 0 ||
        duration < 0) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: start and duration must be numbers from 0 on: '%s'", r->name, line->number,
                        lin_quote(shown, f.text[2], (size_t)(f.text[3] + f.n[3] - f.text[2])));
    }
    lin_status status = find_utterance(r, &f, line->number, &row.utterance, err);
    if (status != LIN_OK) return status;
    if (r->first_alternative && r->rows[r->first_alternative - 1].utterance != row.utterance)
        return bad_line(r, line->number, "alternatives of two utterances", err);
    const lin_trn_word word = lin_trn_read_word(f.text[4], f.n[4]);
    r->start = row.start = start;
    row.middle = round((start + duration / 2) * 1e6) / 1e6; // the sum of rounded numbers may be a little beside a round one
    r->n_alternatives++;
    if (word.is_null) return add_row(r, &row, line->number, err);
    lin_phone_read read[LIN_PHONES_READ_MAX];
    int mark = 0;
    if (r->options.normalize) {
        status = lin_trn_spell(r, word.text, word.n, word.is_optional || r->first_alternative ? 1 : LIN_READINGS_MOST, err);
        for (size_t i = 0; i < r->n_spelled && status == LIN_OK; i++) {
            row.token = LIN_EDIT_OPTIONAL;
            if (word.is_optional && r->spelled[i] >= 0) status = add_row(r, &row, line->number, err);
            row.token = r->spelled[i];
            if (status == LIN_OK) status = add_row(r, &row, line->number, err);
        }
        return status;
    }
    const lin_phones *phones = r->options.phones;
    const int found = phones ? lin_phones_read(phones, word.text, word.n, read, LIN_PHONES_READ_MAX, &mark) : 0;
    if (!found) return add_token(r, &row, word.text, word.n, word.is_optional, line->number, err);
    for (int i = 0; i < found && status == LIN_OK; i++) {
        const char *name = lin_phones_name(phones, read[i].label);
        status = add_token(r, &row, name, strlen(name), word.is_optional, line->number, err);
    }
    return status;
}

static int by_time(const void *a, const void *b)
{
    const lin_ctm_row *x = a, *y = b;
    if (x->utterance != y->utterance) return x->utterance < y->utterance ? -1 : 1;
    if (x->start < y->start || x->start > y->start) return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

lin_status lin_trn_ctm_done(lin_trn_reader *r, lin_error *err)
{
    lin_trn *t = r->trn;
    size_t none = 0;
    if (r->first_alternative) return lin_fail(err, LIN_FORMAT, "%s: the last <ALT_BEGIN> has no <ALT_END>", r->name);
    lin_status status = lin_grow(&t->tokens, &t->tokens_capacity, r->n_rows, sizeof *t->tokens, "transcripts", err);
    if (status == LIN_OK && r->options.by_channel)
        status = lin_grow(&t->middles, &none, r->n_rows + 1, sizeof *t->middles, "transcripts", err);
    if (status != LIN_OK) return status;
    if (r->n_rows) qsort(r->rows, r->n_rows, sizeof *r->rows, by_time);
    for (size_t i = 0; i < r->n_rows; i++) {
        lin_trn_utterance *u = &t->utterances[r->rows[i].utterance];
        if (!u->n++) u->first = i;
        if (t->middles) t->middles[t->n_tokens] = r->rows[i].middle;
        t->tokens[t->n_tokens++] = r->rows[i].token;
    }
    return LIN_OK;
}
