// trn_times.c - reads the formats with times: NIST CTM, a token per line, and STM, an utterance per line; see trn.h.

#include "train/score/trn_reader.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/memory.h"

// The number of "file channel" among the places.
static lin_status add_place(lin_trn_reader *r, lin_symbols *places, const char *file, size_t n, const char *channel,
                            size_t n_channel, int *index, lin_error *err)
{
    lin_buffer *joined = &r->joined;
    lin_buffer_clear(joined);
    lin_buffer_bytes(joined, file, n);
    lin_buffer_char(joined, ' ');
    if (n_channel == 1 && lin_is_letter(*channel)) lin_buffer_integer(joined, lin_lower(*channel) - 'a' + 1);
    else lin_buffer_bytes(joined, channel, n_channel);
    LIN_TRY(lin_buffer_status(joined, err));
    return lin_trn_add_symbol(r, places, joined->data, joined->n, index, err);
}

/* ---- CTM ------------------------------------------------------------------------------------------------------------------- */

typedef struct fields {
    const char *text[7];
    size_t n[7];
    int k;
} fields;

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
        status = add_place(r, &t->ids, f->text[0], f->n[0], f->text[1], f->n[1], utterance, err);
    } else {
        status = lin_trn_add_symbol(r, &r->channels, f->text[1], f->n[1], &channel, err);
        if (status == LIN_OK) status = lin_trn_add_symbol(r, &t->ids, f->text[0], f->n[0], utterance, err);
    }
    if (status == LIN_OK)
        status = lin_grow(&t->utterances, &t->utterances_capacity, (size_t)t->ids.n, sizeof *t->utterances, "transcripts", err);
    if (status != LIN_OK) return status;
    if (*utterance == t->n) t->utterances[t->n++] = (lin_trn_utterance){.line = line, .group = channel};
    if (t->utterances[*utterance].group == channel) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s:%d: utterance '%s' has two channels; give each channel an id of its own", r->name, line,
                    lin_quote(shown, f->text[0], f->n[0]));
}

static lin_status add_row(lin_trn_reader *r, const lin_ctm_row *row, int line, lin_error *err)
{
    LIN_TRY(lin_grow(&r->rows, &r->rows_capacity, r->n_rows + 1, sizeof *r->rows, "transcripts", err));
    r->rows[r->n_rows] = *row;
    r->rows[r->n_rows].order = (int)r->n_rows;
    return r->n_rows++ == INT_MAX / 16 ? lin_trn_bad_line(r, line, "too many lines", err) : LIN_OK;
}

// Alternatives stay together when sorted: all get the start of the first word and the middle of the latest.
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
        return lin_trn_bad_line(r, line, begins ? "<ALT_BEGIN> within alternatives" : "no <ALT_BEGIN> before this line", err);
    lin_status status = find_utterance(r, f, line, &utterance, err);
    if (status != LIN_OK) return status;
    if (!begins && r->rows[r->n_rows - 1].utterance != utterance)
        return lin_trn_bad_line(r, line, "alternatives of two utterances", err);
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
    if (f.k < 5 || f.k > 6)
        return lin_fail(err, LIN_FORMAT,
                        "%s:%d: a CTM line has 5 or 6 fields (utterance, channel, start, duration, token, confidence), here %d%s",
                        r->name, line->number, f.k, f.k == 7 ? " or more" : "");
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
        return lin_trn_bad_line(r, line->number, "alternatives of two utterances", err);
    const lin_trn_word word = lin_trn_read_word(f.text[4], f.n[4]);
    r->start = row.start = start;
    row.middle = round((start + duration / 2) * 1e6) / 1e6; // removes the rounding error of the sum
    r->n_alternatives++;
    if (word.is_null) return add_row(r, &row, line->number, err);
    r->is_optional = word.is_optional;
    r->depth = r->first_alternative > 0;
    status = lin_trn_spell(r, word.text, word.n, err);
    for (size_t i = 0; i < r->n_spelled && status == LIN_OK; i++) {
        row.token = r->spelled[i];
        status = add_row(r, &row, line->number, err);
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
    LIN_TRY(lin_grow(&t->tokens, &t->tokens_capacity, r->n_rows, sizeof *t->tokens, "transcripts", err));
    if (r->options.by_channel) LIN_TRY(lin_grow(&t->middles, &none, r->n_rows + 1, sizeof *t->middles, "transcripts", err));
    if (r->n_rows) qsort(r->rows, r->n_rows, sizeof *r->rows, by_time);
    for (size_t i = 0; i < r->n_rows; i++) {
        lin_trn_utterance *u = &t->utterances[r->rows[i].utterance];
        if (!u->n++) u->first = i;
        if (t->middles) t->middles[t->n_tokens] = r->rows[i].middle;
        t->tokens[t->n_tokens++] = r->rows[i].token;
    }
    return LIN_OK;
}

/* ---- STM ------------------------------------------------------------------------------------------------------------------- */

// The next utterance of a speaker, "speaker-012".
static lin_status add_utterance(lin_trn_reader *r, const char *speaker, size_t n, int line, lin_error *err)
{
    lin_trn *t = r->trn;
    int index;
    const int before = t->speakers.n;
    LIN_TRY(lin_trn_add_symbol(r, &t->speakers, speaker, n, &index, err));
    LIN_TRY(lin_grow(&r->n_of_speaker, &r->n_of_speaker_capacity, (size_t)t->speakers.n, sizeof *r->n_of_speaker, "transcripts",
                     err));
    if (index == before) r->n_of_speaker[index] = 0;
    lin_buffer_clear(&r->joined);
    lin_buffer_bytes(&r->joined, speaker, n);
    lin_buffer_format(&r->joined, "-%03d", r->n_of_speaker[index]++);
    LIN_TRY(lin_buffer_status(&r->joined, err));
    LIN_TRY(lin_trn_add_utterance(r, r->joined.data, r->joined.n, line, err));
    t->utterances[t->n - 1].group = index;
    return LIN_OK;
}

static int holds(const char *at, const char *end, const char *mark)
{
    const char *field;
    size_t n;
    while (lin_field_next(&at, end, &field, &n)) {
        if (n == strlen(mark) && !strncasecmp(field, mark, n)) return 1;
    }
    return 0;
}

lin_status lin_trn_stm_line(lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const char *at = line->text, *end = line->text + line->n, *f[5], *label;
    size_t n[5], n_label;
    int k = 0;
    char shown[LIN_QUOTE];
    lin_trn *t = r->trn;
    lin_trn_segment s = {.utterance = -1};
    while (k < 5 && lin_field_next(&at, end, &f[k], &n[k])) k++;
    if (k < 5)
        return lin_fail(err, LIN_FORMAT,
                        "%s:%d: an STM line has a file, channel, speaker, start, end and a text, here are %d fields", r->name,
                        line->number, k);
    const int has_times = lin_text_number(f[3], n[3], &s.start_s) && lin_text_number(f[4], n[4], &s.end_s);
    if (!has_times || s.start_s < 0 || s.end_s < s.start_s)
        return lin_fail(err, LIN_FORMAT, "%s:%d: start and end must be numbers from 0 on, in this order: '%s'", r->name,
                        line->number, lin_quote(shown, f[3], (size_t)(f[4] + n[4] - f[3])));
    s.end_s = (double)(float)s.end_s; // sclite rounds so, which matters if a word's middle is at the end of a line
    const char *behind = at;
    if (lin_field_next(&behind, end, &label, &n_label) && *label == '<') at = behind;
    lin_status status = add_place(r, &t->places, f[0], n[0], f[1], n[1], &s.place, err);
    if (status == LIN_OK)
        status =
            lin_grow(&t->segments, &t->segments_capacity, (size_t)t->n_segments + 1, sizeof *t->segments, "transcripts", err);
    if (status != LIN_OK) return status;
    if (t->n_segments == INT_MAX / 16) return lin_fail(err, LIN_FORMAT, "%s:%d: too many lines", r->name, line->number);
    if (!holds(at, end, "IGNORE_TIME_SEGMENT_IN_SCORING") && !holds(at, end, "IGNORETIMESEGMENTINSCORING")) {
        s.utterance = t->n;
        status = add_utterance(r, f[2], n[2], line->number, err);
        if (status == LIN_OK) status = lin_trn_add_choices(r, at, end, line->number, err);
    }
    if (status == LIN_OK) t->segments[t->n_segments++] = s;
    return status;
}

/* ---- the words of a CTM for each line -------------------------------------------------------------------------------------- */

// The place of an utterance of a CTM. "talk-2" on channel 2, as linnet names the channels of a recording, is "talk".
static int find_place(const lin_trn *stm, const char *id, size_t n)
{
    const int place = lin_symbols_find(&stm->places, id, n);
    const char *blank = strrchr(id, ' ');
    const size_t n_channel = strlen(blank + 1), n_file = (size_t)(blank - id);
    char plain[512];
    if (place >= 0 || n_file <= n_channel + 1 || n >= sizeof plain) return place;
    if (id[n_file - n_channel - 1] != '-' || memcmp(id + n_file - n_channel, blank + 1, n_channel)) return -1;
    const int n_plain = snprintf(plain, sizeof plain, "%.*s%s", (int)(n_file - n_channel - 1), id, blank);
    return lin_symbols_find(&stm->places, plain, (size_t)n_plain);
}

typedef struct entry {
    const lin_trn_segment *segment;
    int order;
} entry;

static int by_place_and_time(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->segment->place != y->segment->place) return x->segment->place < y->segment->place ? -1 : 1;
    if (x->segment->start_s < y->segment->start_s || x->segment->start_s > y->segment->start_s)
        return x->segment->start_s < y->segment->start_s ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

// The utterances of one place: entries [n] in the order of time, and the words of the CTM.
static void cut_place(const entry *entries, int n, const lin_trn *ctm, const lin_trn_utterance *words, lin_trn_utterance *cut)
{
    size_t at = words->first;
    const size_t end = words->first + (size_t)words->n;
    for (int i = 0; i < n; i++) {
        const lin_trn_segment *s = entries[i].segment;
        const size_t first = at;
        if (i == n - 1) at = end; // the last line gets all that is left
        while (at < end && ctm->middles[at] < s->end_s) at++;
        if (s->utterance >= 0)
            cut[s->utterance] = (lin_trn_utterance){.first = first, .n = (int)(at - first), .line = words->line};
    }
}

// Puts the utterances of all places of the CTM in the order of the STM.
static lin_status take(const lin_trn *stm, lin_trn *ctm, const lin_trn_utterance *cut, lin_error *err)
{
    lin_symbols ids = {0};
    int n = 0, index;
    lin_status status =
        lin_grow(&ctm->utterances, &ctm->utterances_capacity, (size_t)stm->n, sizeof *ctm->utterances, "transcripts", err);
    for (int u = 0; u < stm->n && status == LIN_OK; u++) {
        if (cut[u].line < 0) continue;
        status = lin_symbols_add(&ids, lin_symbols_text(&stm->ids, u), stm->ids.items[u].n, &index, err);
        if (status == LIN_OK) ctm->utterances[n++] = cut[u];
    }
    if (status != LIN_OK) {
        lin_symbols_free(&ids);
        return status;
    }
    lin_symbols_free(&ctm->ids);
    ctm->ids = ids;
    ctm->n = n;
    return LIN_OK;
}

static lin_status cut_all(const lin_trn *stm, const char *stm_name, lin_trn *ctm, const char *ctm_name, entry *entries,
                          lin_trn_utterance *cut, const lin_trn_utterance **words, lin_error *err)
{
    char shown[LIN_QUOTE];
    for (int u = 0; u < ctm->n; u++) {
        const char *id = lin_symbols_text(&ctm->ids, u);
        const int place = find_place(stm, id, ctm->ids.items[u].n);
        if (place < 0)
            return lin_fail(err, LIN_MISMATCH, "%s:%d: %s has no line for this file and channel: '%s'", ctm_name,
                            ctm->utterances[u].line, stm_name, lin_quote(shown, id, ctm->ids.items[u].n));
        if (words[place])
            return lin_fail(err, LIN_MISMATCH, "%s:%d: the words of '%s' are there under two names", ctm_name,
                            ctm->utterances[u].line, lin_quote(shown, id, ctm->ids.items[u].n));
        words[place] = &ctm->utterances[u];
    }
    for (int i = 0; i < stm->n_segments; i++) entries[i] = (entry){&stm->segments[i], i};
    for (int u = 0; u < stm->n; u++) cut[u].line = -1;
    if (stm->n_segments) qsort(entries, (size_t)stm->n_segments, sizeof *entries, by_place_and_time);
    for (int i = 0, end; i < stm->n_segments; i = end) {
        const int place = entries[i].segment->place;
        for (end = i; end < stm->n_segments && entries[end].segment->place == place;) end++;
        if (words[place]) cut_place(entries + i, end - i, ctm, words[place], cut);
    }
    return take(stm, ctm, cut, err);
}

lin_status lin_stm_cut(const lin_trn *stm, const char *stm_name, lin_trn *ctm, const char *ctm_name, lin_error *err)
{
    entry *entries = lin_alloc((size_t)stm->n_segments, sizeof *entries);
    lin_trn_utterance *cut = lin_alloc((size_t)stm->n, sizeof *cut);
    const lin_trn_utterance **words = lin_calloc((size_t)stm->places.n, sizeof *words);
    lin_status status = LIN_OK;
    if (!entries || !cut || !words) status = lin_no_memory(err, "transcripts", (size_t)stm->n_segments * sizeof *entries);
    if (status == LIN_OK) status = cut_all(stm, stm_name, ctm, ctm_name, entries, cut, words, err);
    lin_free(entries);
    lin_free(cut);
    lin_free(words);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

// Names of files, "talk", "talk-1", "talk_1", "talk-A" and "talk_A".
static const struct {
    char between; // 0: no channel
    int is_letter;
} forms[] = {{0, 0}, {'-', 0}, {'_', 0}, {'-', 1}, {'_', 1}};

static void put_name(lin_buffer *name, const char *place, int form)
{
    const char *blank = strrchr(place, ' ');
    const int number = atoi(blank + 1);
    lin_buffer_bytes(name, place, (size_t)(blank - place));
    if (forms[form].between) lin_buffer_char(name, forms[form].between);
    if (forms[form].is_letter && number >= 1 && number <= 26) lin_buffer_char(name, (char)('a' + number - 1));
    else if (forms[form].between) lin_buffer_text(name, blank + 1);
}

// *fits: the names are different, and the hypothesis has no other.
static lin_status try_names(const lin_trn *stm, const lin_trn *hyp, int form, lin_symbols *names, int *fits, lin_error *err)
{
    lin_buffer name = {0};
    lin_status status = LIN_OK;
    *fits = stm->n == stm->n_segments;
    for (int i = 0; i < stm->n_segments && *fits && status == LIN_OK; i++) {
        int index;
        lin_buffer_clear(&name);
        put_name(&name, lin_symbols_text(&stm->places, stm->segments[i].place), form);
        status = lin_buffer_status(&name, err);
        if (status == LIN_OK) status = lin_symbols_add(names, name.data, name.n, &index, err);
        *fits = status == LIN_OK && index == i;
    }
    for (int u = 0; u < hyp->n && *fits; u++)
        *fits = lin_symbols_find(names, lin_symbols_text(&hyp->ids, u), hyp->ids.items[u].n) >= 0;
    lin_buffer_free(&name);
    return status;
}

lin_status lin_stm_rename(lin_trn *stm, const lin_trn *hyp, lin_error *err)
{
    lin_status status = LIN_OK;
    int fits = 1;
    for (int u = 0; u < hyp->n && fits; u++)
        fits = lin_symbols_find(&stm->ids, lin_symbols_text(&hyp->ids, u), hyp->ids.items[u].n) >= 0;
    for (int form = 0; form < (int)(sizeof forms / sizeof *forms) && !fits && status == LIN_OK; form++) {
        lin_symbols names = {0};
        status = try_names(stm, hyp, form, &names, &fits, err);
        if (fits && status == LIN_OK) {
            lin_symbols_free(&stm->ids);
            stm->ids = names;
        } else {
            lin_symbols_free(&names);
        }
    }
    return status;
}
