// wording.c - from words to phones; see wording.h.

#include "linnet/wording.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/g2p.h"
#include "lexicon/transcript.h"
#include "linnet/find.h"
#include "model/model.h"

/* ---- files with an entry in each line -------------------------------------------------------------------------------------- */

lin_status lin_entries_read(const char *path, lin_entry_taker take, void *context, lin_error *err)
{
    char *read, *own = NULL;
    const char *text;
    size_t n;
    lin_lines lines;
    LIN_TRY(lin_text_read(path, &read, &n, err));
    lin_status status = lin_unicode_clean(read, n, path, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK) lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text, *field;
        size_t n_field;
        if (!lin_field_next(&at, lines.text + lines.n, &field, &n_field) || *field == '#') continue;
        status = take(context, lines.text, lines.n, lines.number, err);
        if (status != LIN_OK) lin_fail_at(err, status, "%s:%d", path, lines.number);
    }
    lin_free(own);
    lin_free(read);
    return status;
}

/* ---- a dictionary with added words ----------------------------------------------------------------------------------------- */

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
    for (int i = 0; i < n_labels; i++) lin_buffer_format(out, " %s", lin_phones_name(phones, labels[i]));
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
                              const lin_phones *phones, const lin_g2p_rules *rules, lin_error *err)
{
    lin_buffer completed = {0};
    char *own;
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK) status = complete(dictionary, text, n, name, phones, rules, &completed, err);
    if (status == LIN_OK)
        status = lin_dictionary_add(dictionary, completed.n ? completed.data : "", completed.n, name, phones, err);
    lin_free(own);
    lin_buffer_free(&completed);
    return status;
}

// Nothing if path is NULL or "".
static lin_status add_file(lin_dictionary *dictionary, const char *path, const char *g2p, const lin_phones *phones,
                           lin_error *err)
{
    char *text;
    size_t n;
    lin_g2p_rules *rules = NULL;
    if (!path || !*path) return LIN_OK;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    lin_status status = lin_find_open_rules(phones, g2p, &rules, err);
    if (status == LIN_MISMATCH && !g2p) status = LIN_OK; // of other phones: only a word alone needs them
    if (status == LIN_OK) status = lin_lexicon_extend(dictionary, text, n, path, phones, rules, err);
    lin_g2p_rules_destroy(rules);
    lin_free(text);
    return status;
}

lin_status lin_lexicon_open(const char *path, const char *own, const char *added, const char *g2p, const lin_phones *phones,
                            lin_dictionary **dictionary, lin_error *err)
{
    lin_status status = lin_dictionary_load(path, phones, dictionary, err);
    if (status == LIN_OK) status = add_file(*dictionary, own, g2p, phones, err);
    if (status == LIN_OK) status = add_file(*dictionary, added, g2p, phones, err);
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

/* ---- phone sets ------------------------------------------------------------------------------------------------------------ */

// A set that names no language is one of the language that was chosen.
static lin_status of_chosen(lin_status status, lin_phones **phones, lin_error *err)
{
    const char *code = lin_find_chosen();
    if (status == LIN_OK && *code && !*lin_phones_language(*phones)) status = lin_phones_set_language(*phones, code, err);
    if (status == LIN_OK) return LIN_OK;
    lin_phones_destroy(*phones);
    *phones = NULL;
    return status;
}

static lin_status load_set(const char *path, lin_phones **phones, lin_error *err)
{
    return of_chosen(lin_phones_load(path, 1, phones, err), phones, err);
}

// The set of a dictionary of which the text is read.
static lin_status make_set(const char *text, size_t n, const char *name, lin_phones **phones, lin_error *err)
{
    char path[4096];
    if (lin_find_phones(path, sizeof path)) return load_set(path, phones, err);
    return of_chosen(lin_dictionary_phones(text, n, name, phones, err), phones, err);
}

lin_status lin_wording_phones(const char *name, lin_phones **phones, lin_error *err)
{
    static const char ending[] = ".safetensors";
    const size_t n = strlen(name), k = sizeof ending - 1;
    char path[4096];
    lin_model *model = NULL;
    *phones = NULL;
    const int is_installed = !strchr(name, '/') && access(name, F_OK) != 0;
    if (!is_installed && (n < k || strcmp(name + n - k, ending) != 0)) return load_set(name, phones, err);
    LIN_TRY(lin_find_model(name, path, sizeof path, err));
    if (is_installed && access(path, F_OK) != 0)
        return lin_fail(err, LIN_IO, "%s is neither a file with the phones nor a model", name);
    lin_status status = lin_model_load(path, &model, err);
    if (status == LIN_OK) status = lin_model_check_sound(model, name, err);
    if (status == LIN_OK) status = lin_phones_create(model->phones, phones, err);
    lin_model_destroy(model);
    return status;
}

lin_status lin_wording_chosen_phones(lin_phones **phones, lin_error *err)
{
    char path[4096];
    *phones = NULL;
    if (lin_find_phones(path, sizeof path)) return load_set(path, phones, err);
    LIN_TRY(lin_find_model("default", path, sizeof path, err));
    if (access(path, F_OK) == 0) return lin_wording_phones(path, phones, err);
    LIN_TRY(lin_find_lexicon(NULL, NULL, path, sizeof path, err));
    return *path ? lin_wording_dictionary_phones(path, phones, err) : lin_phones_create(NULL, phones, err);
}

/* ---- all ------------------------------------------------------------------------------------------------------------------- */

static lin_status read_dictionary(lin_wording *w, const lin_wording_files *files, lin_error *err)
{
    char own[4096], *text;
    size_t n;
    lin_status status = LIN_OK;
    LIN_TRY(lin_text_read(w->path, &text, &n, err));
    if (!w->phones) status = make_set(text, n, w->path, &w->own, err);
    if (!w->phones) w->phones = w->own;
    if (status == LIN_OK) status = lin_dictionary_parse(text, n, w->path, w->phones, &w->dictionary, err);
    lin_free(text);
    if (status != LIN_OK) return status;
    lin_find_added(w->phones, files->dictionary, own, sizeof own);
    LIN_TRY(add_file(w->dictionary, own, files->g2p, w->phones, err));
    return add_file(w->dictionary, files->added, files->g2p, w->phones, err);
}

lin_status lin_wording_dictionary_phones(const char *path, lin_phones **phones, lin_error *err)
{
    char *text;
    size_t n;
    *phones = NULL;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    const lin_status status = make_set(text, n, path, phones, err);
    lin_free(text);
    return status;
}

static lin_status open_g2p(lin_wording *w, const lin_wording_files *files, lin_error *err)
{
    LIN_TRY(lin_find_open_rules(w->phones, files->g2p, &w->rules, err));
    return lin_g2p_create(w->phones, w->dictionary, w->rules, &w->g2p, err);
}

static lin_status open_all(lin_wording *w, const lin_wording_files *files, lin_error *err)
{
    if (files->phones) LIN_TRY(lin_wording_phones(files->phones, &w->own, err));
    w->phones = w->own;
    LIN_TRY(lin_find_lexicon(w->phones, files->dictionary, w->path, sizeof w->path, err));
    if (!*w->path)
        return lin_fail(err, LIN_IO, "no lexicon%s%s is installed; name one with --lexicon FILE or LINNET_LEXICON",
                        *lin_find_chosen() ? " of the language " : "", lin_find_chosen());
    LIN_TRY(read_dictionary(w, files, err));
    LIN_TRY(open_g2p(w, files, err));
    LIN_TRY(lin_transcriber_create(w->dictionary, w->g2p, &w->transcriber, err));
    LIN_TRY(lin_find_open_numbers(w->phones, files->numbers, w->dictionary, &w->written, err));
    lin_transcriber_read_written(w->transcriber, w->written);
    return LIN_OK;
}

static lin_status open_for_model(lin_wording *w, const lin_wording_files *files, const char *what, const char *instead,
                                 lin_error *err)
{
    LIN_TRY(lin_find_lexicon(w->phones, files->dictionary, w->path, sizeof w->path, err));
    if (!*w->path)
        return lin_fail(err, LIN_IO, "%s need a lexicon, and none is installed for the phones of this model; name one with "
                                     "--lexicon FILE or LINNET_LEXICON%s", what, instead);
    LIN_TRY(read_dictionary(w, files, err));
    const lin_status status = open_g2p(w, files, &w->lacks);
    if (status != LIN_OK && status != LIN_MISMATCH) return lin_fail_as(err, &w->lacks);
    return lin_find_open_numbers(w->phones, files->numbers, w->dictionary, &w->written, err);
}

static lin_status opened(lin_wording *w, lin_status status, const lin_warnings *warnings)
{
    if (status == LIN_OK) lin_lexicon_tell_skipped(w->dictionary, warnings);
    else lin_wording_close(w);
    return status;
}

lin_status lin_wording_open(lin_wording *w, const lin_wording_files *files, const lin_warnings *warnings, lin_error *err)
{
    memset(w, 0, sizeof *w);
    return opened(w, open_all(w, files, err), warnings);
}

lin_status lin_wording_open_for(lin_wording *w, const lin_wording_files *files, const lin_phones *phones, const char *what,
                                const char *instead, const lin_warnings *warnings, lin_error *err)
{
    memset(w, 0, sizeof *w);
    w->phones = phones;
    return opened(w, open_for_model(w, files, what, instead, err), warnings);
}

lin_status lin_wording_pronounce(const lin_wording *w, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                                 lin_g2p_how *how, lin_error *err)
{
    return w->g2p ? lin_g2p_pronounce(w->g2p, word, n, labels, capacity, n_labels, how, err) : lin_fail_as(err, &w->lacks);
}

void lin_wording_close(lin_wording *wording)
{
    lin_transcriber_destroy(wording->transcriber);
    lin_written_destroy(wording->written);
    lin_g2p_destroy(wording->g2p);
    lin_g2p_rules_destroy(wording->rules);
    lin_dictionary_destroy(wording->dictionary);
    lin_phones_destroy(wording->own);
    memset(wording, 0, sizeof *wording);
}

/* ---- words that the dictionary lacked -------------------------------------------------------------------------------------- */

lin_status lin_wording_unknown(const lin_wording *wording, int most, const char *indent, lin_buffer *text, lin_error *err)
{
    const int n = lin_transcriber_unknown_count(wording->transcriber);
    int *order;
    LIN_TRY(lin_transcriber_order(wording->transcriber, &order, err));
    for (int i = 0; i < n && i < most; i++) {
        const lin_unknown_word w = lin_transcriber_unknown(wording->transcriber, order[i]);
        const char *how = w.n_labels ? lin_g2p_how_name(w.how) : "none";
        lin_buffer_format(text, "%s%s\t%ld\t%s\t", indent, w.word, w.count, how);
        for (int p = 0; p < w.n_labels; p++)
            lin_buffer_format(text, "%s%s", p ? " " : "", lin_phones_name(wording->phones, w.labels[p]));
        lin_buffer_char(text, '\n');
    }
    lin_free(order);
    return lin_buffer_status(text, err);
}
