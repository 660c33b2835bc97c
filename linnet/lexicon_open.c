// lexicon_open.c - see lexicon_open.h.

#include "linnet/lexicon_open.h"

#include <assert.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/g2p.h"
#include "lexicon/transcript.h"
#include "linnet/find.h"

// "# a comment", as in lists of phrases; the dictionary has words that begin with the sign.
static int is_comment(const lin_lines *line)
{
    const char *at = line->text, *field;
    size_t n;
    return lin_field_next(&at, at + line->n, &field, &n) && n == 1 && field[0] == '#';
}

// The line is a word alone, which is then in `field`; comments are not words.
static int is_word_alone(const lin_lines *line, const char **field, size_t *n)
{
    const char *at = line->text, *end = at + line->n, *next;
    size_t n_next;
    if (line->n > LIN_DICTIONARY_LINE_MAX || !lin_field_next(&at, end, field, n)) return 0;
    if ((*n >= 3 && !memcmp(*field, ";;;", 3)) || (*field)[0] == '#') return 0;
    return !lin_field_next(&at, end, &next, &n_next) || next[0] == '#';
}

// Appends the word and its phones. LIN_FORMAT: it is not one word, or nothing pronounces it.
static lin_status pronounce(lin_g2p *g2p, const lin_phones *phones, const char *field, size_t n, lin_buffer *out, lin_error *err)
{
    lin_spelling first = {0}, more = {0};
    size_t at = 0;
    int labels[LIN_PRONUNCIATION_MAX], n_labels;
    lin_g2p_how how;
    lin_status status = lin_spelling_next(field, n, &at, &first, err);
    if (status == LIN_OK) status = lin_spelling_next(field, n, &at, &more, err);
    if (status == LIN_OK && (!first.n || more.n || first.marks || more.marks))
        status = lin_fail(err, LIN_FORMAT, "it is not one word");
    if (status == LIN_OK)
        status = lin_g2p_pronounce(g2p, first.word, first.n, labels, LIN_PRONUNCIATION_MAX, &n_labels, &how, err);
    if (status != LIN_OK) return status == LIN_NO_MEMORY ? status : LIN_FORMAT;
    lin_buffer_bytes(out, first.word, first.n);
    for (int i = 0; i < n_labels; i++) {
        lin_buffer_char(out, ' ');
        lin_buffer_text(out, lin_phones_name(phones, labels[i]));
    }
    return LIN_OK;
}

// The text with a pronunciation in each line that has none; a line stays a line, so that messages name the right one.
static lin_status complete(const lin_dictionary *dictionary, const char *text, size_t n, const char *name,
                           const lin_phones *phones, const lin_g2p_rules *rules, lin_buffer *out, lin_error *err)
{
    char shown[LIN_QUOTE];
    lin_g2p *g2p = NULL;
    lin_lines lines;
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *field;
        size_t n_field;
        if (lines.n && is_word_alone(&lines, &field, &n_field)) {
            const size_t before = out->n;
            lin_error why = {0};
            if (!g2p) status = lin_g2p_create(phones, dictionary, rules, &g2p, &why);
            if (status == LIN_OK) status = pronounce(g2p, phones, field, n_field, out, &why);
            assert(status == LIN_OK || out->n == before); // a word whole or not at all
            if (status == LIN_MISMATCH)
                return lin_fail(err, status,
                                "%s:%d: '%s' has no phones, and there are no letter-to-sound rules for these phones: write its "
                                "phones behind it", name, lines.number, lin_quote(shown, field, n_field));
            if (status == LIN_NO_MEMORY) lin_fail_as(err, &why);
            if (status == LIN_FORMAT) {
                lin_buffer_bytes(out, lines.text, lines.n); // the dictionary refuses it, with its line
                status = LIN_OK;
            }
        } else if (!is_comment(&lines)) {
            lin_buffer_bytes(out, lines.text, lines.n);
        }
        lin_buffer_char(out, '\n');
    }
    lin_g2p_destroy(g2p);
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

lin_status lin_lexicon_extend(lin_dictionary *dictionary, const char *text, size_t n, const char *name,
                              const lin_phones *phones, const lin_g2p_rules *rules, const lin_dictionary_options *options,
                              lin_error *err)
{
    lin_buffer completed = {0};
    char *own;
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK) status = complete(dictionary, text, n, name, phones, rules, &completed, err);
    if (status == LIN_OK)
        status = lin_dictionary_add(dictionary, completed.n ? completed.data : "", completed.n, name, phones, options, err);
    lin_free(own);
    lin_buffer_free(&completed);
    return status;
}

lin_status lin_lexicon_add(lin_dictionary *dictionary, const char *path, const char *g2p, const lin_phones *phones,
                           const lin_dictionary_options *options, lin_error *err)
{
    char *text;
    size_t n;
    lin_g2p_rules *rules = NULL;
    if (!path || !*path) return LIN_OK;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    status = lin_find_open_rules(phones, g2p, &rules, err);
    if (status == LIN_MISMATCH && !g2p) status = LIN_OK; // of other phones: only a word alone needs them
    if (status == LIN_OK) status = lin_lexicon_extend(dictionary, text, n, path, phones, rules, options, err);
    lin_g2p_rules_destroy(rules);
    lin_free(text);
    return status;
}

lin_status lin_lexicon_open(const char *path, const char *own, const char *added, const char *g2p, const lin_phones *phones,
                            const lin_dictionary_options *options, lin_dictionary **dictionary, lin_error *err)
{
    lin_status status = lin_dictionary_load(path, phones, options, dictionary, err);
    if (status == LIN_OK) status = lin_lexicon_add(*dictionary, own, g2p, phones, options, err);
    if (status == LIN_OK) status = lin_lexicon_add(*dictionary, added, g2p, phones, options, err);
    if (status == LIN_OK) return LIN_OK;
    lin_dictionary_destroy(*dictionary);
    *dictionary = NULL;
    return status;
}

int lin_lexicon_tell_skipped(const lin_dictionary *dictionary, const lin_warnings *warnings)
{
    const char *first;
    const int n = lin_dictionary_skipped(dictionary, &first);
    if (n) lin_warn(warnings, "%s; %d such line%s left out", first, n, n == 1 ? "" : "s");
    return n;
}
