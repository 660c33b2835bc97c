// inputs.c - the list of a command's input files; see inputs.h.

#include "app/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/textfile.h"

static lin_status add(lin_inputs *in, const char *path, const char *id, const char *speaker, lin_error *err)
{
    lin_status status = lin_grow_int(&in->items, &in->capacity, in->n + 1, sizeof *in->items, "the list of files", err);
    if (status != LIN_OK) return status;
    in->items[in->n++] = (lin_input){.path = path, .id = id, .speaker = speaker};
    return LIN_OK;
}

char *lin_inputs_own(lin_inputs *in, char *text)
{
    if (!text) return NULL;
    if (lin_grow_int(&in->owned, &in->owned_capacity, in->n_owned + 1, sizeof *in->owned, "the list of files", NULL)) {
        lin_free(text);
        return NULL;
    }
    return in->owned[in->n_owned++] = text;
}

// The name without folder and extension; blanks and parentheses, which TRN and CTM cannot hold, become '_'.
static lin_status add_path(lin_inputs *in, const char *path, lin_error *err)
{
    char *id = lin_inputs_own(in, lin_strdup(strcmp(path, "-") == 0 ? "stdin" : lin_base_name(path)));
    if (!id) return lin_no_memory(err, "the list of files", strlen(path));
    char *dot = strrchr(id, '.');
    if (dot && dot != id) *dot = 0;
    for (char *c = id; *c; c++) {
        unsigned char u = (unsigned char)*c;
        if (u <= ' ' || u == 127 || u == '(' || u == ')') *c = '_';
    }
    return add(in, path, *id ? id : "_", "", err);
}

lin_status lin_inputs_add_paths(lin_inputs *inputs, const lin_list *paths, lin_error *err)
{
    lin_status status = LIN_OK;
    for (int i = 0; i < paths->count && status == LIN_OK; i++) status = add_path(inputs, paths->items[i], err);
    return status;
}

lin_status lin_inputs_add_named(lin_inputs *inputs, const char *path, const char *name, lin_error *err)
{
    const char *own_path = lin_inputs_own(inputs, lin_strdup(path)), *own_name = lin_inputs_own(inputs, lin_strdup(name));
    if (!own_path || !own_name) return lin_no_memory(err, "the list of files", strlen(path) + strlen(name));
    lin_status status = add_path(inputs, own_path, err);
    if (status == LIN_OK) inputs->items[inputs->n - 1].name = own_name;
    return status;
}

lin_status lin_inputs_add_list(lin_inputs *inputs, const char *list_path, lin_error *err)
{
    char *text;
    size_t n;
    lin_lines lines;
    lin_status status = lin_text_read(strcmp(list_path, "-") == 0 ? "/dev/stdin" : list_path, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        if (lines.n == 0 || lines.text[0] == '#') continue;
        if (memchr(lines.text, 0, lines.n)) {
            status = lin_fail(err, LIN_FORMAT, "%s:%d: a NUL byte; this is not a list of files", list_path, lines.number);
            break;
        }
        char *path = lin_inputs_own(inputs, lin_text_copy(lines.text, lines.n));
        status = path ? add_path(inputs, path, err) : lin_no_memory(err, "the list of files", lines.n);
    }
    lin_free(text);
    return status;
}

lin_status lin_inputs_add_data(lin_inputs *inputs, const char *folder, const char *audio_root, lin_error *err)
{
    lin_status status = lin_datadir_load(folder, audio_root, 0, &inputs->dir, err);
    inputs->first_of_data = inputs->n;
    for (int i = 0; status == LIN_OK && i < lin_datadir_count(inputs->dir); i++) {
        const lin_utterance *u = lin_datadir_at(inputs->dir, i);
        status = add(inputs, u->audio, u->id, u->speaker, err);
    }
    inputs->end_of_data = inputs->n;
    return status;
}

void lin_inputs_free(lin_inputs *inputs)
{
    for (int i = 0; i < inputs->n_owned; i++) lin_free(inputs->owned[i]);
    lin_free(inputs->owned);
    lin_free(inputs->items);
    lin_datadir_destroy(inputs->dir);
    memset(inputs, 0, sizeof *inputs);
}

int lin_inputs_all_done(const lin_inputs *inputs) { return inputs->n > 0 && inputs->n_done == inputs->n; }

const char *lin_inputs_note(const lin_inputs *inputs, int n_failed, int n_incomplete, char *text, size_t capacity)
{
    char failed[32] = "", incomplete[32] = "", done[48] = "";
    if (n_failed) snprintf(failed, sizeof failed, ", %d failed", n_failed);
    if (n_incomplete) snprintf(incomplete, sizeof incomplete, ", %d incomplete", n_incomplete);
    if (inputs->n_done) snprintf(done, sizeof done, ", %d skipped (done before)", inputs->n_done);
    snprintf(text, capacity, "%s%s%s", failed, incomplete, done);
    return text;
}

lin_status lin_inputs_measure(const lin_inputs *inputs, const lin_recognizer *recognizer, int jobs, lin_speakers *speakers,
                              lin_error *err)
{
    const size_t n = (size_t)inputs->n;
    const char **paths = lin_alloc(2 * n + 1, sizeof *paths);
    if (!paths) return lin_no_memory(err, "speakers", 2 * n * sizeof *paths);
    for (size_t i = 0; i < n; i++) paths[i] = inputs->items[i].path, paths[n + i] = inputs->items[i].speaker;
    lin_status status = lin_speakers_measure(speakers, recognizer, paths, paths + n, inputs->n, jobs, err);
    lin_free((void *)paths);
    return status;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *lin_inputs_twice(const lin_inputs *inputs)
{
    const char **ids = lin_alloc((size_t)inputs->n, sizeof *ids), *twice = NULL;
    if (!ids) return NULL;
    for (int i = 0; i < inputs->n; i++) ids[i] = inputs->items[i].id;
    qsort((void *)ids, (size_t)inputs->n, sizeof *ids, by_text);
    for (int i = 1; i < inputs->n && !twice; i++) {
        if (strcmp(ids[i - 1], ids[i]) == 0) twice = ids[i];
    }
    lin_free((void *)ids);
    return twice;
}
