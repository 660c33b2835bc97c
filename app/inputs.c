// inputs.c - what a command reads; see inputs.h.

#include "app/inputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/textfile.h"

static lin_status add(lin_inputs *in, const char *path, const char *id, const char *speaker, lin_error *err)
{
    lin_status status = lin_grow_int(&in->items, &in->capacity, in->n + 1, sizeof *in->items, "the list of files", err);
    if (status != LIN_OK) return status;
    in->items[in->n++] = (lin_input){.path = path, .cut = {.path = path}, .id = id, .speaker = speaker};
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

lin_status lin_inputs_add_data(lin_inputs *inputs, const lin_data_values *data, const lin_part *part, lin_error *err)
{
    const lin_datadir_options how = {.audio_root = data->audio_root, .allow_commands = data->allow_commands};
    lin_status status = lin_datadir_load(data->data, &how, &inputs->dir, err);
    inputs->first_of_data = inputs->n;
    if (status == LIN_OK && (part->start_s > 0 || part->end_s < INFINITY) && lin_datadir_has_parts(inputs->dir))
        status = lin_fail(err, LIN_INVALID, "the utterances of %s are parts of recordings: not with --start and --end",
                          data->data);
    for (int i = 0; status == LIN_OK && i < lin_datadir_count(inputs->dir); i++) {
        const lin_utterance *u = lin_datadir_at(inputs->dir, i);
        status = add(inputs, u->cut.path, u->id, u->speaker, err);
        lin_input *added = &inputs->items[inputs->n - 1];
        if (status == LIN_OK) added->cut = u->cut, added->record = u->record, added->said = u->text;
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

lin_sound lin_input_sound(const lin_input *input, const lin_pcm_format *raw, int channel, lin_part part)
{
    const lin_cut *c = &input->cut;
    lin_sound sound = {.path = input->path, .is_command = c->is_command, .raw = raw, .channel = channel, .part = part};
    if (c->channel) sound.channel = c->channel - 1, sound.or_only = 1;
    if (lin_cut_is_part(c)) sound.part = (lin_part){c->part.start_s, c->part.end_s > 0 ? c->part.end_s : INFINITY};
    return sound;
}

void lin_complain_of_input(const lin_input *input, const char *message)
{
    if (lin_cut_is_part(&input->cut)) lin_complain("%s: %s", input->id, message);
    else lin_complain_of(input->path, message);
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
    lin_cut *cuts = lin_alloc(n + 1, sizeof *cuts);
    const char **names = lin_alloc(n + 1, sizeof *names);
    lin_status status = cuts && names ? LIN_OK : lin_no_memory(err, "speakers", n * sizeof *cuts);
    for (size_t i = 0; status == LIN_OK && i < n; i++) cuts[i] = inputs->items[i].cut, names[i] = inputs->items[i].speaker;
    if (status == LIN_OK) status = lin_speakers_measure(speakers, recognizer, cuts, names, inputs->n, jobs, err);
    lin_free(cuts);
    lin_free((void *)names);
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

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

lin_status lin_line_next(lin_line_reader *r, lin_error *err)
{
    r->text = NULL;
    r->n = 0;
    for (;;) {
        if (lin_interrupted) return lin_fail(err, LIN_STOPPED, "interrupted");
        if (r->n + 2 > r->capacity) {
            lin_status status = lin_grow(&r->room, &r->capacity, r->n + 2 > 256 ? r->n + 2 : 256, 1, "a line", err);
            if (status != LIN_OK)
                return lin_fail(err, status, "%s:%d: no memory for a line of over %zu bytes", r->name, r->number + 1, r->n);
        }
        errno = 0;
        const int c = getc_unlocked(r->file);
        if (c == EOF && ferror(r->file)) {
            const int reason = errno;
            clearerr(r->file);
            if (reason == EINTR) continue; // of another signal: continue the line
            return lin_fail(err, LIN_IO, "cannot read %s: %s", r->name, strerror(reason));
        }
        if (c == EOF && r->n == 0) return LIN_OK;
        if (c == EOF || c == '\n') break;
        if (r->n == LIN_LINE_MOST)
            return lin_fail(err, LIN_FORMAT, "%s:%d: a line of over %d bytes; this is not text", r->name, r->number + 1,
                            (int)LIN_LINE_MOST);
        r->room[r->n++] = (char)c;
    }
    if (r->n && r->room[r->n - 1] == '\r') r->n--;
    r->room[r->n] = 0;
    r->text = r->room;
    r->number++;
    return LIN_OK;
}

void lin_line_free(lin_line_reader *r)
{
    lin_free(r->room);
    r->room = NULL;
    r->text = NULL;
    r->capacity = 0;
}

/* ---- files that change ----------------------------------------------------------------------------------------------------- */

#define BETWEEN_LOOKS_S 0.5

static lin_watch_look look(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) return (lin_watch_look){0};
    return (lin_watch_look){(int64_t)s.st_ino, (int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec, (int64_t)s.st_mtim.tv_nsec};
}

static int same(const lin_watch_look *a, const lin_watch_look *b)
{
    return a->file == b->file && a->bytes == b->bytes && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

void lin_watch_begin(lin_watch *w, const char *path)
{
    *w = (lin_watch){.path = path, .looked_at = -INFINITY};
    if (path) w->told = w->seen = look(path);
}

int lin_watch_changed(lin_watch *w, double now)
{
    if (!w->path || now - w->looked_at < BETWEEN_LOOKS_S) return 0;
    w->looked_at = now;
    const lin_watch_look is = look(w->path), was = w->seen;
    w->seen = is;
    if (is.file == 0 || !same(&is, &was) || same(&is, &w->told)) return 0;
    w->told = is;
    return 1;
}
