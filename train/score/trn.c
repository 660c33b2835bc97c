// trn.c - reads TRN, Kaldi text and JSON; CTM and STM are in trn_times.c; see trn.h.

#include "train/score/trn_reader.h"

#include <limits.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/transcript.h"

// The ASCII equivalent of a typographic character at this byte, or 0. *n: its bytes.
static char plain_of(const char *at, const char *end, size_t *n)
{
    unsigned code = 0;
    *n = (unsigned char)*at == 0xC2 || (unsigned char)*at == 0xE2 ? (size_t)lin_utf8_decode(at, (size_t)(end - at), &code) : 0;
    if (!*n) return 0;
    if (code == 0x2018 || code == 0x2019) return '\'';
    if (code == 0x2010 || code == 0x2011) return '-';
    return code == 0xA0 || code == 0x2007 || code == 0x202F ? ' ' : 0;
}

// Replaces [*at, *end), if it has typographic apostrophes, hyphens and blanks, by a copy with those of ASCII. Phones stay.
static lin_status make_plain(lin_trn_reader *r, const char **at, const char **end, lin_error *err)
{
    size_t n;
    const char *from = *at;
    if (r->options.phones || r->options.map) return LIN_OK;
    while (from < *end && !plain_of(from, *end, &n)) from++;
    if (from == *end) return LIN_OK;
    lin_buffer_clear(&r->plain);
    for (from = *at; from < *end;) {
        const char c = plain_of(from, *end, &n);
        lin_buffer_char(&r->plain, c ? c : *from);
        from += c ? n : 1;
    }
    *at = r->plain.data;
    *end = r->plain.data + r->plain.n;
    return lin_buffer_status(&r->plain, err);
}

// Folds *text for comparison: to lower case unless case matters.
static lin_status fold(lin_trn_reader *r, const char **text, size_t *n, lin_error *err)
{
    if (r->options.case_sensitive) return LIN_OK;
    LIN_TRY(lin_grow(&r->folded, &r->folded_capacity, *n, 1, "transcripts", err));
    *n = lin_unicode_lower_text(r->folded, *text, *n);
    *text = r->folded;
    return LIN_OK;
}

lin_status lin_trn_add_symbol(lin_trn_reader *r, lin_symbols *symbols, const char *text, size_t n, int *index, lin_error *err)
{
    lin_status status = fold(r, &text, &n, err);
    return status != LIN_OK ? status : lin_symbols_add(symbols, text, n, index, err);
}

// The number of a token, folded and mapped, or -1 if the map deletes it.
static lin_status number_of(lin_trn_reader *r, const char *text, size_t n, int *index, lin_error *err)
{
    const char *end = text + n;
    lin_status status = make_plain(r, &text, &end, err);
    n = (size_t)(end - text);
    if (status == LIN_OK) status = fold(r, &text, &n, err);
    if (status != LIN_OK) return status;
    switch (r->options.map ? lin_phone_map_apply(r->options.map, &text, &n) : LIN_PHONE_MAPPED) {
    case LIN_PHONE_MAPPED:
        break;
    case LIN_PHONE_UNKNOWN:
        LIN_TRY(lin_symbols_add(&r->trn->unmapped, text, n, index, err));
        break;
    case LIN_PHONE_DELETED:
        r->trn->n_deleted++;
        *index = -1;
        return LIN_OK;
    }
    return lin_symbols_add(r->tokens, text, n, index, err);
}

lin_status lin_trn_add_utterance(lin_trn_reader *r, const char *id, size_t n, int line, lin_error *err)
{
    lin_trn *t = r->trn;
    int index;
    char shown[LIN_QUOTE];
    LIN_TRY(lin_grow(&t->utterances, &t->utterances_capacity, (size_t)t->n + 1, sizeof *t->utterances, "transcripts", err));
    LIN_TRY(lin_trn_add_symbol(r, &t->ids, id, n, &index, err));
    if (index < t->n)
        return lin_fail(err, LIN_FORMAT, "%s:%d: utterance '%s' is there twice, first in line %d", r->name, line,
                        lin_quote(shown, id, n), t->utterances[index].line);
    t->utterances[t->n++] = (lin_trn_utterance){.first = t->n_tokens, .n = 0, .line = line};
    return LIN_OK;
}

static lin_status append(lin_trn_reader *r, int token, lin_error *err)
{
    lin_trn *t = r->trn;
    lin_trn_utterance *u = &t->utterances[t->n - 1];
    LIN_TRY(lin_grow(&t->tokens, &t->tokens_capacity, t->n_tokens + 1, sizeof *t->tokens, "transcripts", err));
    if (u->n == INT_MAX / 16) return lin_fail(err, LIN_FORMAT, "%s:%d: the line has too many tokens", r->name, u->line);
    t->tokens[t->n_tokens++] = token;
    u->n++;
    return LIN_OK;
}

// Appends the token of a word, or with normalize the tokens of a text.
static lin_status append_text(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    lin_status status = lin_trn_spell(r, text, n, err);
    for (size_t i = 0; i < r->n_spelled && status == LIN_OK; i++) status = append(r, r->spelled[i], err);
    return status;
}

lin_status lin_trn_add_tokens(lin_trn_reader *r, const char *at, const char *end, lin_error *err)
{
    const char *token;
    size_t n;
    if (r->options.normalize) return append_text(r, at, (size_t)(end - at), err);
    lin_status status = make_plain(r, &at, &end, err);
    while (status == LIN_OK && lin_field_next(&at, end, &token, &n)) status = append_text(r, token, n, err);
    return status;
}

static const char *last_of(const char *text, size_t n, char c)
{
    while (n && text[n - 1] != c) n--;
    return n ? text + n - 1 : NULL;
}

lin_trn_word lin_trn_read_word(const char *text, size_t n)
{
    lin_trn_word w = {.text = text, .n = n};
    if (w.n > 1 && w.text[w.n - 1] == '*') w.n--;
    w.is_null = w.n == 1 && *w.text == '@';
    w.is_optional = w.n > 2 && *w.text == '(' && w.text[w.n - 1] == ')';
    if (w.is_optional) w.text++, w.n -= 2;
    return w;
}

lin_status lin_trn_bad_line(const lin_trn_reader *r, int line, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->name, line, what);
}

static lin_status add_choice(lin_trn_reader *r, const char *text, size_t n, int line, lin_error *err)
{
    const lin_trn_word w = lin_trn_read_word(text, n);
    char shown[LIN_QUOTE];
    if (!r->options.normalize && (memchr(text, ';', n) || memchr(text, '\\', n)))
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: '%s': ; and \\ are not supported inside words", r->name, line,
                        lin_quote(shown, text, n));
    if (memchr(text, '{', n) || memchr(text, '}', n))
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s': a brace begins or ends alternatives, as in { a / b }", r->name, line,
                        lin_quote(shown, text, n));
    if (w.is_null) return append(r, LIN_EDIT_NULL, err);
    r->is_optional = w.is_optional;
    lin_status status = append_text(r, w.text, w.n, err);
    r->is_optional = 0;
    return status;
}

// The start of the first word that may be a choice.
static const char *find_choice(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && !strchr("{}()*@", *at)) at++;
    while (at < end && at > from && !lin_is_space(at[-1])) at--;
    return at;
}

// sclite ignores empty alternatives: { / a } is { a }.
lin_status lin_trn_add_choices(lin_trn_reader *r, const char *at, const char *end, int line, lin_error *err)
{
    struct {
        int has_words, is_empty; // of all alternatives so far; of the present one
    } open[LIN_EDIT_DEPTH + 1];
    int depth = 0;
    lin_status status = LIN_OK;
    status = make_plain(r, &at, &end, err);
    while (status == LIN_OK) {
        r->depth = depth;
        while (at < end && lin_is_space(*at)) at++;
        if (at == end) break;
        const char *plain = r->options.normalize && !depth ? find_choice(at, end) : at;
        if (plain > at) { // "$5 million" is one form
            status = lin_trn_add_tokens(r, at, plain, err);
            at = plain;
            continue;
        }
        if (depth && *at == '/') {
            open[depth].is_empty = 1;
            at++;
            continue;
        }
        if (depth && *at == '}') {
            if (!open[depth--].has_words) return lin_trn_bad_line(r, line, "there is nothing between the braces", err);
            status = append(r, LIN_EDIT_CLOSE, err);
            at++;
            continue;
        }
        if (depth && open[depth].is_empty && open[depth].has_words) status = append(r, LIN_EDIT_OR, err);
        open[depth].is_empty = 0;
        open[depth].has_words = 1;
        if (status != LIN_OK) break;
        if (*at == '{') {
            if (depth == LIN_EDIT_DEPTH) return lin_trn_bad_line(r, line, "too many braces within braces", err);
            open[++depth].has_words = 0;
            open[depth].is_empty = 1;
            status = append(r, LIN_EDIT_OPEN, err);
            at++;
            continue;
        }
        const char *from = at;
        while (at < end && !lin_is_space(*at) && !(depth && (*at == '/' || *at == '}'))) at++;
        status = add_choice(r, from, (size_t)(at - from), line, err);
    }
    r->depth = 0;
    return status == LIN_OK && depth ? lin_trn_bad_line(r, line, "a closing brace is missing", err) : status;
}

static lin_status read_trn_line(lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const char *open = last_of(line->text, line->n, '('), *close = last_of(line->text, line->n, ')');
    char shown[LIN_QUOTE];
    if (!open || !close || close < open + 2)
        return lin_fail(err, LIN_FORMAT, "%s:%d: no utterance id in parentheses at the end of '%s'", r->name, line->number,
                        lin_quote(shown, line->text, line->n));
    const char *after = close + 1, *field;
    size_t n;
    if (lin_field_next(&after, line->text + line->n, &field, &n))
        return lin_fail(err, LIN_FORMAT, "%s:%d: there is text behind the utterance id: '%s'", r->name, line->number,
                        lin_quote(shown, field, n));
    lin_status status = lin_trn_add_utterance(r, open + 1, (size_t)(close - open - 1), line->number, err);
    return status != LIN_OK ? status : lin_trn_add_choices(r, line->text, open, line->number, err);
}

static lin_status read_kaldi_line(lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const char *at = line->text, *end = line->text + line->n, *id;
    size_t n;
    lin_field_next(&at, end, &id, &n);
    lin_status status = lin_trn_add_utterance(r, id, n, line->number, err);
    return status != LIN_OK ? status : lin_trn_add_tokens(r, at, end, err);
}

static int ends_with(const char *name, const char *extension)
{
    size_t n = strlen(name), k = strlen(extension);
    return n > k && !strcmp(name + n - k, extension);
}

// A line that holds no data: blank, or a comment where the format has them.
static int is_skipped(const lin_lines *line, lin_trn_format format)
{
    const char *at = line->text, *field;
    size_t n;
    if (!lin_field_next(&at, line->text + line->n, &field, &n)) return 1;
    return (format == LIN_TRN_TRN || format == LIN_TRN_CTM || format == LIN_TRN_STM) && n >= 2 && !memcmp(field, ";;", 2);
}

static lin_trn_format guess_format(const char *name, const char *text, size_t n)
{
    lin_lines line;
    if (ends_with(name, ".trn")) return LIN_TRN_TRN;
    if (ends_with(name, ".stm")) return LIN_TRN_STM;
    if (ends_with(name, ".ctm")) return LIN_TRN_CTM;
    if (ends_with(name, ".jsonl") || ends_with(name, ".json")) return LIN_TRN_JSON;
    lin_lines_begin(&line, text, n);
    while (lin_lines_next(&line)) {
        if (is_skipped(&line, LIN_TRN_TRN)) continue;
        const char *at = line.text, *end = line.text + line.n, *f[7];
        size_t n_field[7];
        int k = 0;
        double value;
        while (k < 7 && lin_field_next(&at, end, &f[k], &n_field[k])) k++;
        if ((k == 5 || k == 6) && lin_text_number(f[2], n_field[2], &value) && lin_text_number(f[3], n_field[3], &value))
            return LIN_TRN_CTM;
        if (k >= 6 && *f[5] == '<' && f[5][n_field[5] - 1] == '>' && lin_text_number(f[3], n_field[3], &value) &&
            lin_text_number(f[4], n_field[4], &value)) {
            return LIN_TRN_STM;
        }
        while (lin_is_space(end[-1])) end--; // the line is not blank
        if (*f[0] == '{' && end[-1] == '}') return LIN_TRN_JSON;
        return end[-1] == ')' && memchr(line.text, '(', line.n) ? LIN_TRN_TRN : LIN_TRN_KALDI;
    }
    return LIN_TRN_TRN; // only comments, which Kaldi text does not have
}

static lin_status read_json_line(lin_trn_reader *r, const lin_lines *line, lin_error *err);

static lin_status read_lines(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    lin_trn_format format = r->trn->format;
    lin_lines line;
    lin_status status = LIN_OK;
    lin_lines_begin(&line, text, n);
    while (status == LIN_OK && lin_lines_next(&line)) {
        LIN_TRY(lin_lines_check(&line, r->name, err));
        if (is_skipped(&line, format)) continue;
        if (format == LIN_TRN_TRN) status = read_trn_line(r, &line, err);
        else if (format == LIN_TRN_STM) status = lin_trn_stm_line(r, &line, err);
        else if (format == LIN_TRN_CTM) status = lin_trn_ctm_line(r, &line, err);
        else if (format == LIN_TRN_JSON) status = read_json_line(r, &line, err);
        else status = read_kaldi_line(r, &line, err);
    }
    if (status == LIN_OK && format == LIN_TRN_CTM) status = lin_trn_ctm_done(r, err);
    return status;
}

lin_status lin_trn_parse(const char *text, size_t n, const char *name, const lin_trn_options *options, lin_symbols *tokens,
                         lin_trn *trn, lin_error *err)
{
    lin_trn_reader r = {.name = name, .tokens = tokens, .trn = trn};
    char *own;
    if (options) r.options = *options;
    *trn = (lin_trn){.format = r.options.format};
    // Transcripts in other encodings than Unicode's are scored by their bytes.
    LIN_TRY(lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err));
    if (trn->format == LIN_TRN_AUTO) trn->format = guess_format(name, text, n);
    lin_status status = read_lines(&r, text, n, err);
    if (status == LIN_OK && !trn->n && !trn->n_segments && trn->format != LIN_TRN_CTM)
        status = lin_fail(err, LIN_FORMAT, "%s: the file has no utterance", name);
    lin_free(own);
    lin_trn_reader_free(&r);
    if (status != LIN_OK) lin_trn_free(trn);
    return status;
}

void lin_trn_reader_free(lin_trn_reader *r)
{
    lin_free(r->folded);
    lin_buffer_free(&r->plain);
    lin_free(r->spelled);
    lin_free(r->rows);
    lin_free(r->n_of_speaker);
    lin_buffer_free(&r->joined);
    lin_symbols_free(&r->channels);
}

void lin_trn_free(lin_trn *trn)
{
    lin_symbols_free(&trn->ids);
    lin_symbols_free(&trn->unmapped);
    lin_free(trn->utterances);
    lin_free(trn->tokens);
    lin_free(trn->middles);
    lin_symbols_free(&trn->places);
    lin_symbols_free(&trn->speakers);
    lin_free(trn->segments);
    *trn = (lin_trn){.format = LIN_TRN_AUTO};
}

size_t lin_trn_speaker(const char *id, size_t n)
{
    const char *dash = n ? memchr(id, '-', n) : NULL;
    if (!dash && n) dash = memchr(id, '_', n);
    return dash && dash > id ? (size_t)(dash - id) : n;
}

/* ---- which phones count as the same ---------------------------------------------------------------------------------------- */

enum { DELETED = -1 };

typedef struct rule {
    int to; // index into `to`, or DELETED
    int line;
} rule;

struct lin_phone_map {
    int case_sensitive;
    lin_symbols from, to;
    rule *rules; // [from.n]
    int capacity;
};

static lin_status add_name(lin_phone_map *m, lin_symbols *names, const char *text, size_t n, int *index, lin_error *err)
{
    if (m->case_sensitive) return lin_symbols_add(names, text, n, index, err);
    char *folded = lin_text_copy(text, n);
    if (!folded) return lin_no_memory(err, "a phone map", n + 1);
    n = lin_unicode_lower_text(folded, folded, n);
    lin_status status = lin_symbols_add(names, folded, n, index, err);
    lin_free(folded);
    return status;
}

static lin_status add_rule(lin_phone_map *m, const char *name, int line, const char *from, size_t n_from, const char *to,
                           size_t n_to, lin_error *err)
{
    char shown[LIN_QUOTE];
    int index, target = DELETED;
    int before = m->from.n;
    lin_status status = lin_grow_int(&m->rules, &m->capacity, (int64_t)before + 1, sizeof *m->rules, "a phone map", err);
    if (status == LIN_OK) status = add_name(m, &m->from, from, n_from, &index, err);
    if (status == LIN_OK && index < before)
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' is mapped twice, first in line %d", name, line,
                        lin_quote(shown, from, n_from), m->rules[index].line);
    if (status == LIN_OK && to) status = add_name(m, &m->to, to, n_to, &target, err);
    if (status == LIN_OK) m->rules[index] = (rule){.to = target, .line = line};
    return status;
}

static lin_status read_map(lin_phone_map *m, const char *text, size_t n, const char *name, lin_error *err)
{
    lin_lines line;
    lin_status status = LIN_OK;
    int fields = 0, fields_line = 0;
    lin_lines_begin(&line, text, n);
    while (status == LIN_OK && lin_lines_next(&line)) {
        const char *at = line.text, *end = line.text + line.n, *first, *field, *last = NULL;
        size_t n_first, n_field, n_last = 0;
        int count = 1;
        LIN_TRY(lin_lines_check(&line, name, err));
        if (!lin_field_next(&at, end, &first, &n_first) || *first == '#') continue;
        for (; lin_field_next(&at, end, &field, &n_field); count++) {
            last = field;
            n_last = n_field;
        }
        if (count > 1 && fields && count != fields)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %d fields, where line %d has %d; a line is a phone and its replacement",
                            name, line.number, count, fields_line, fields);
        if (count > 1) {
            fields = count;
            fields_line = line.number;
        }
        status = add_rule(m, name, line.number, first, n_first, last, n_last, err);
    }
    if (status == LIN_OK && !m->from.n) status = lin_fail(err, LIN_FORMAT, "%s: the file has no phone", name);
    return status;
}

lin_status lin_phone_map_parse(const char *text, size_t n, const char *name, int case_sensitive, lin_phone_map **map,
                               lin_error *err)
{
    char *own;
    *map = NULL;
    lin_phone_map *m = lin_calloc(1, sizeof *m);
    if (!m) return lin_no_memory(err, "a phone map", sizeof *m);
    m->case_sensitive = case_sensitive;
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err); // as the transcripts
    if (status == LIN_OK) status = read_map(m, text, n, name, err);
    lin_free(own);
    if (status != LIN_OK) lin_phone_map_destroy(m);
    else *map = m;
    return status;
}

lin_status lin_phone_map_load(const char *path, int case_sensitive, lin_phone_map **map, lin_error *err)
{
    char *text;
    size_t n;
    *map = NULL;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status == LIN_OK) status = lin_phone_map_parse(text, n, path, case_sensitive, map, err);
    lin_free(text);
    return status;
}

void lin_phone_map_destroy(lin_phone_map *m)
{
    if (!m) return;
    lin_symbols_free(&m->from);
    lin_symbols_free(&m->to);
    lin_free(m->rules);
    lin_free(m);
}

lin_phone_fate lin_phone_map_apply(const lin_phone_map *m, const char **text, size_t *n)
{
    int from = lin_symbols_find(&m->from, *text, *n), to = from >= 0 ? m->rules[from].to : lin_symbols_find(&m->to, *text, *n);
    if (to < 0) return from >= 0 ? LIN_PHONE_DELETED : LIN_PHONE_UNKNOWN;
    *text = lin_symbols_text(&m->to, to);
    *n = m->to.items[to].n;
    return LIN_PHONE_MAPPED;
}

/* ---- words without case, punctuation and the spelling of numbers, for score --normalize ------------------------------------ */

static lin_status push(lin_trn_reader *r, int token, lin_error *err)
{
    LIN_TRY(lin_grow(&r->spelled, &r->spelled_capacity, r->n_spelled + 2, sizeof *r->spelled, "transcripts", err));
    if (r->is_optional && token >= 0) r->spelled[r->n_spelled++] = LIN_EDIT_OPTIONAL;
    r->spelled[r->n_spelled++] = token;
    return LIN_OK;
}

static lin_status push_token(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    int token;
    LIN_TRY(number_of(r, text, n, &token, err));
    return token < 0 ? LIN_OK : push(r, token, err);
}

// Pushes the parts between hyphens, without quotation marks at their ends.
static lin_status push_word(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    lin_status status = LIN_OK;
    for (size_t at = 0, end; at < n && status == LIN_OK; at = end + 1) {
        const char *hyphen = memchr(text + at, '-', n - at);
        size_t last = end = hyphen ? (size_t)(hyphen - text) : n;
        while (at < last && text[at] == '\'') at++;
        while (last > at && text[last - 1] == '\'') last--;
        if (last > at) status = push_token(r, text + at, last - at, err);
    }
    return status;
}

static lin_status push_reading(lin_trn_reader *r, const char *reading, lin_error *err)
{
    const char *at = reading, *word;
    const size_t before = r->n_spelled;
    size_t n;
    lin_status status = LIN_OK;
    while (status == LIN_OK && lin_field_next(&at, reading + strlen(reading), &word, &n)) {
        char joined[LIN_WORD_MAX];
        size_t used = 0;
        for (size_t i = 0; i < n && used < sizeof joined; i++)
            if (word[i] != '+') joined[used++] = word[i];
        status = push_word(r, joined, used, err);
    }
    return status == LIN_OK && r->n_spelled == before ? push(r, LIN_EDIT_NULL, err) : status;
}

// Pushes the readings of a number as alternatives.
static lin_status push_readings(lin_trn_reader *r, const lin_readings *readings, lin_error *err)
{
    const int most = r->is_optional || r->depth ? 1 : LIN_READINGS_MOST, n = readings->n < most ? readings->n : most;
    lin_status status = n > 1 ? push(r, LIN_EDIT_OPEN, err) : LIN_OK;
    for (int i = 0; i < n && status == LIN_OK; i++) {
        if (i) status = push(r, LIN_EDIT_OR, err);
        if (status == LIN_OK) status = push_reading(r, readings->items[i], err);
    }
    return status == LIN_OK && n > 1 ? push(r, LIN_EDIT_CLOSE, err) : status;
}

static lin_status push_text(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    lin_word_reader words = {.written = r->options.written, .text = text, .n = n};
    lin_status status = LIN_OK;
    while (status == LIN_OK) {
        lin_spelling word;
        lin_error sign = {0};
        while (words.at < n && lin_is_space(text[words.at])) words.at++;
        const size_t from = words.at, mark = lin_mark_length(text + from, n - from);
        if (mark) { // those with "_" are words outside the lexicon, by their phones
            if (text[from] == '[' && memchr(text + from, '_', mark)) status = push_token(r, text + from, mark, err);
            words.at += mark;
            continue;
        }
        const lin_status read = lin_word_reader_next(&words, &word, &sign);
        if (read == LIN_NO_MEMORY) {
            status = lin_no_memory(err, "transcripts", n);
        } else if (read != LIN_OK) { // a sign that no rule reads: the field is a token, as it is
            const size_t most = words.next > words.at ? words.next : n;
            do words.at++;
            while (words.at < most && !lin_is_space(text[words.at]));
            status = push_token(r, text + from, words.at - from, err);
        } else if (word.n) {
            status = push_word(r, word.word, word.n, err);
        } else if (words.readings.n) {
            status = push_readings(r, &words.readings, err);
        } else {
            break;
        }
    }
    lin_word_reader_free(&words);
    return status;
}

lin_status lin_trn_spell(lin_trn_reader *r, const char *text, size_t n, lin_error *err)
{
    const lin_phones *phones = r->options.phones;
    lin_phone_read read[LIN_PHONES_READ_MAX];
    int mark = 0;
    r->n_spelled = 0;
    if (r->options.normalize) return push_text(r, text, n, err);
    const int found = phones ? lin_phones_read(phones, text, n, read, LIN_PHONES_READ_MAX, &mark) : 0;
    if (!found) return push_token(r, text, n, err);
    for (int i = 0; i < found; i++) {
        const char *name = lin_phones_name(phones, read[i].label);
        LIN_TRY(push_token(r, name, strlen(name), err));
    }
    return LIN_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

// cJSON takes 64 bytes or more per value, and one comma can make a value: this keeps a hostile line below a gigabyte. An hour of
// speech with five alternatives has a million values.
enum { MAX_VALUES = 6000000 };

typedef struct place {
    const char *name;
    int line;
} place;

// A string that may be a token or an id: not empty, no control characters, and no blanks in a token.
static lin_status check_string(const cJSON *item, const char *what, int is_token, const place *at, lin_error *err)
{
    char shown[LIN_QUOTE];
    if (!cJSON_IsString(item)) return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" is no string", at->name, at->line, what);
    const char *text = item->valuestring;
    size_t n = strlen(text);
    if (!n) return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" is empty", at->name, at->line, what);
    if (lin_text_find_control(text, n) < n || (is_token && strpbrk(text, " \t")))
        return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" holds a %scontrol character: '%s'", at->name, at->line, what,
                        is_token ? "blank or " : "", lin_quote(shown, text, n));
    return LIN_OK;
}

// Adds a word outside the lexicon as the other formats of decoder/writers spell it: its phones, in lower case, in brackets.
static lin_status add_unknown(lin_trn_reader *r, const cJSON *phones, const place *at, lin_error *err)
{
    const cJSON *phone;
    lin_buffer spelling = {0};
    lin_status status = LIN_OK;
    cJSON_ArrayForEach(phone, phones)
    {
        status = check_string(phone, "phones", 1, at, err);
        if (status != LIN_OK) break;
        lin_buffer_char(&spelling, spelling.n ? '_' : '[');
        for (const char *c = phone->valuestring; *c; c++) lin_buffer_char(&spelling, lin_lower(*c));
    }
    lin_buffer_char(&spelling, ']');
    if (status == LIN_OK) status = lin_buffer_status(&spelling, err);
    if (status == LIN_OK) status = append_text(r, spelling.data, spelling.n, err);
    lin_buffer_free(&spelling);
    return status;
}

// An object of decoder/writers whose word has no spelling, but phones.
static const cJSON *unknown_phones(const cJSON *item, const cJSON *token)
{
    const cJSON *phones = cJSON_GetObjectItemCaseSensitive(item, "phones");
    const int is_unknown = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(item, "known"));
    return is_unknown && cJSON_IsString(token) && !*token->valuestring && cJSON_IsArray(phones) && phones->child ? phones : NULL;
}

// [{"phone": "AA", ...}, ...] or ["AA", ...]
static lin_status read_list(lin_trn_reader *r, const cJSON *list, const char *key, const place *at, lin_error *err)
{
    const cJSON *item;
    lin_status status = LIN_OK;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *token = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, key) : item;
        const cJSON *phones = unknown_phones(item, token);
        status = phones ? add_unknown(r, phones, at, err) : check_string(token, key, 1, at, err);
        if (status == LIN_OK && !phones) status = append_text(r, token->valuestring, strlen(token->valuestring), err);
        if (status != LIN_OK) break;
    }
    return status;
}

// Adds an utterance; if only a part of a path is meant, its id has the offset in milliseconds after the path.
static lin_status add_utterance(lin_trn_reader *r, const cJSON *object, const cJSON *id, int is_path, const place *at,
                                lin_error *err)
{
    const cJSON *offset = is_path ? cJSON_GetObjectItemCaseSensitive(object, "offset") : NULL;
    lin_buffer name = {0};
    lin_buffer_text(&name, id->valuestring);
    if (cJSON_IsNumber(offset)) {
        lin_buffer_char(&name, '-');
        lin_buffer_fixed(&name, offset->valuedouble * 1000, 0);
    }
    lin_status status = lin_buffer_status(&name, err);
    if (status == LIN_OK) status = lin_trn_add_utterance(r, name.data, name.n, at->line, err);
    lin_buffer_free(&name);
    return status;
}

static lin_status read_object(lin_trn_reader *r, const cJSON *object, const place *at, lin_error *err)
{
    static const char *const lists[] = {[LIN_TRN_PHONES] = "phones", [LIN_TRN_WORDS] = "words"};
    static const char *const keys[] = {[LIN_TRN_PHONES] = "phone", [LIN_TRN_WORDS] = "word"};
    const lin_trn_unit unit = r->options.unit;
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(object, "id"), *text = cJSON_GetObjectItemCaseSensitive(object, "text");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, lists[unit]);
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, "pred_text");
    const cJSON *path = cJSON_GetObjectItemCaseSensitive(object, "audio_filepath");
    if (found && r->options.is_hypothesis) text = found, list = NULL;
    if (!id) id = path;
    if (!id) return lin_fail(err, LIN_FORMAT, "%s:%d: the object has no \"id\"", at->name, at->line);
    if (list ? !cJSON_IsArray(list) : !cJSON_IsString(text))
        return lin_fail(err, LIN_FORMAT, "%s:%d: the object has neither a list \"%s\" nor a string \"text\"", at->name, at->line,
                        lists[unit]);
    lin_status status = check_string(id, id == path ? "audio_filepath" : "id", 0, at, err);
    if (status == LIN_OK) status = add_utterance(r, object, id, id == path, at, err);
    if (status != LIN_OK) return status;
    if (list) return read_list(r, list, keys[unit], at, err);
    size_t n = strlen(text->valuestring);
    if (n && (status = check_string(text, "text", 0, at, err))) return status;
    return lin_trn_add_tokens(r, text->valuestring, text->valuestring + n, err);
}

// An upper bound of the values of a line: one after each character that a value can follow.
static size_t count_values(const char *text, size_t n)
{
    size_t values = 0;
    for (size_t i = 0; i < n; i++) values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values;
}

static lin_status read_json_line(lin_trn_reader *r, const lin_lines *line, lin_error *err)
{
    const place at = {r->name, line->number};
    const size_t values = count_values(line->text, line->n);
    if (values > MAX_VALUES)
        return lin_fail(err, LIN_FORMAT, "%s:%d: a line of up to %zu values is too long; one object per line is wanted", at.name,
                        at.line, values);
    cJSON *tree;
    size_t end;
    lin_status status = lin_json_parse_value(line->text, line->n, &tree, &end);
    if (status == LIN_NO_MEMORY) return lin_fail(err, status, "%s:%d: no memory for the object", at.name, at.line);
    if (status != LIN_OK) return lin_fail(err, status, "%s:%d: not JSON at byte %zu of the line", at.name, at.line, end + 1);
    while (end < line->n && strchr(" \t", line->text[end])) end++;
    if (!cJSON_IsObject(tree)) status = lin_fail(err, LIN_FORMAT, "%s:%d: a line must hold one JSON object", at.name, at.line);
    else if (end < line->n)
        status = lin_fail(err, LIN_FORMAT, "%s:%d: something follows the object at byte %zu", at.name, at.line, end + 1);
    else status = read_object(r, tree, &at, err);
    cJSON_Delete(tree);
    return status;
}
