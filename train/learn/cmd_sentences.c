// cmd_sentences.c - see cmd_sentences.h.

#include "train/learn/cmd_sentences.h"

#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

enum { IDS_NONE, IDS_FIRST, IDS_LAST };

static lin_sentence trimmed(const char *text, size_t n)
{
    while (n && lin_is_space(text[n - 1])) n--;
    while (n && lin_is_space(text[0])) text++, n--;
    return (lin_sentence){text, n};
}

// Removes the utterance's name from the line; 0 if the name is missing.
static int drop_id(lin_sentence *line, int ids)
{
    if (ids == IDS_FIRST) {
        while (line->n && !lin_is_space(line->text[0])) line->text++, line->n--;
    } else if (ids == IDS_LAST) {
        size_t open = line->n;
        if (!line->n || line->text[line->n - 1] != ')') return 0;
        while (open && line->text[open - 1] != '(' && !lin_is_space(line->text[open - 1])) open--;
        if (!open || line->text[open - 1] != '(') return 0;
        line->n = open - 1;
    }
    return 1;
}

lin_status lin_sentences_read(const lin_sentences_values *v, const char *path, char **text, size_t *n, lin_error *err)
{
    char *own;
    const char *clean;
    LIN_TRY(lin_text_read(path, text, n, err));
    const lin_status status = lin_unicode_clean(*text, *n, path, LIN_UNICODE_ANY, &own, &clean, n, err);
    if (own || status != LIN_OK) lin_free(*text), *text = own;
    if (status == LIN_OK && v->lower) *n = lin_unicode_lower_text(*text, *text, *n);
    return status;
}

// Reads every line of a text. A bad line is reported and skipped; errors such as LIN_NO_MEMORY end the reading.
static lin_status each_line(const lin_sentences_values *v, const char *path, lin_sentence_taker *take, void *context, int *failed,
                            lin_error *err)
{
    int from_stdin = strcmp(path, "-") == 0;
    const char *name = from_stdin ? "standard input" : path;
    char *text, where[512];
    size_t n;
    lin_status status = lin_sentences_read(v, from_stdin ? "/dev/stdin" : path, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines lines = {0};
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        lin_sentence line = trimmed(lines.text, lines.n);
        lin_error inner = {0};
        if (lin_interrupted) {
            status = lin_fail(err, LIN_STOPPED, "interrupted; nothing was written");
            break;
        }
        if (!line.n) continue; // an empty line is not a sentence
        snprintf(where, sizeof where, "%.480s:%d", name, lines.number);
        lin_status one = drop_id(&line, v->ids) ? take(context, where, line, &inner)
                                                : lin_fail(&inner, LIN_FORMAT, "no (name) at the end of the line");
        if (one == LIN_OK) continue;
        if (one != LIN_FORMAT) status = lin_fail(err, one, "%s: %s", where, inner.message);
        if (one == LIN_FORMAT) lin_complain("%s: %s; left out", where, inner.message);
        *failed = 1;
    }
    lin_free(text);
    return status;
}

lin_status lin_sentences_each(const lin_sentences_values *v, const char *const *paths, int n, lin_sentence_taker *take,
                              void *context, int *failed, lin_error *err)
{
    static const char *const standard_input[] = {"-"};
    if (!n) paths = standard_input, n = 1;
    for (int i = 0; i < n; i++) {
        lin_status status = each_line(v, paths[i], take, context, failed, err);
        if (status == LIN_OK) continue;
        if (status != LIN_IO && status != LIN_FORMAT) return status;
        if (n == 1) return status;
        lin_complain("%s", err->message);
        *failed = 1;
    }
    return LIN_OK;
}

const char *lin_sentences_name(const char *const *paths, int n, char name[64])
{
    if (n == 1 && strcmp(paths[0], "-") != 0) return paths[0];
    if (n > 1) snprintf(name, 64, "%d files", n);
    else snprintf(name, 64, "standard input");
    return name;
}
