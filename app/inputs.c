// inputs.c - what a command reads, and that it overwrites none of it; see inputs.h.

#include "app/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"

enum { LONGEST_PATH = 4096, MOST_LEVELS = 64, NAMED = 20 }; // NAMED: most files without a text to list

static lin_status add(lin_inputs *in, const char *path, const char *id, const char *speaker, lin_error *err)
{
    LIN_TRY(lin_grow_int(&in->items, &in->capacity, in->n + 1, sizeof *in->items, "the list of files", err));
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

void lin_make_id(char *id)
{
    for (; *id; id++) {
        if ((unsigned char)*id <= ' ' || *id == 127 || *id == '(' || *id == ')') *id = '_';
    }
}

// The id is the name without folder and extension.
static lin_status add_path(lin_inputs *in, const char *path, lin_error *err)
{
    char *id = lin_inputs_own(in, lin_strdup(strcmp(path, "-") == 0 ? "stdin" : lin_base_name(path)));
    if (!id) return lin_no_memory(err, "the list of files", strlen(path));
    char *dot = strrchr(id, '.');
    if (dot && dot != id) *dot = 0;
    lin_make_id(id);
    return add(in, path, *id ? id : "_", "", err);
}

lin_status lin_inputs_add_paths(lin_inputs *inputs, const lin_list *paths, lin_error *err)
{
    for (int i = 0; i < paths->count; i++) LIN_TRY(add_path(inputs, paths->items[i], err));
    return LIN_OK;
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

lin_status lin_inputs_add_data(lin_inputs *inputs, const lin_data_values *data, const lin_part *part, int channel,
                               lin_error *err)
{
    const lin_datadir_options how = {.audio_root = data->audio_root, .allow_commands = data->allow_commands};
    LIN_TRY(lin_datadir_load(data->data, &how, &inputs->dir, err));
    if ((part->start_s > 0 || part->end_s < INFINITY) && lin_datadir_has_parts(inputs->dir))
        return lin_fail(err, LIN_INVALID, "the utterances of %s are parts of recordings: not with --start and --end", data->data);
    inputs->first_of_data = inputs->n;
    for (int i = 0; i < lin_datadir_count(inputs->dir); i++) {
        const lin_utterance *u = lin_datadir_at(inputs->dir, i);
        if (u->cut.channel && channel != LIN_CHANNEL_MIX)
            return lin_fail(err, LIN_INVALID, "%s names the channel of %s: not with --channel", data->data, u->id);
        LIN_TRY(add(inputs, u->cut.path, u->id, u->speaker, err));
        lin_input *added = &inputs->items[inputs->n - 1];
        added->cut = u->cut, added->record = u->record, added->said = u->text;
    }
    inputs->end_of_data = inputs->n;
    return LIN_OK;
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

/* ---- sounds with texts beside them ----------------------------------------------------------------------------------------- */

static const char *const sound_ends[] = {"wav",  "flac", "mp3", "ogg", "oga",  "opus", "wave", "aiff", "aif",  "aifc", "au",
                                         "snd",  "caf",  "w64", "rf64", "sph", "nist", "m4a",  "mp4",  "webm", "mkv",  "mka",
                                         "aac",  "wma",  "mov", "m4b", "amr",  "3gp",  "ac3",  "avi",  "mpg",  "ts",   NULL};
static const char *const text_ends[] = {"lab", "txt", "TextGrid", NULL}; // the first that exists counts

static int lies_in(const char *const *ends, const char *path)
{
    const char *name = lin_base_name(path), *dot = strrchr(name, '.');
    for (int i = 0; dot && dot != name && ends[i]; i++) {
        if (!strcasecmp(dot + 1, ends[i])) return i;
    }
    return -1;
}

int lin_corpus_is_sound(const char *path) { return lies_in(sound_ends, path) >= 0; }
int lin_corpus_is_text(const char *path) { return lies_in(text_ends, path) >= 0; }

int lin_corpus_is_textgrid(const char *path)
{
    const int at = lies_in(text_ends, path);
    return at >= 0 && !strcmp(text_ends[at], "TextGrid");
}

// Bytes of a name before the dot of its extension.
static size_t stem(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - name) : strlen(name);
}

// The same of a path.
static size_t place_stem(const char *path) { return (size_t)(lin_base_name(path) - path) + stem(lin_base_name(path)); }

static void mention(lin_buffer *names, int *count, const char *folder, const char *name)
{
    (*count)++;
    if (folder) lin_buffer_text(names, folder), lin_buffer_char(names, '/');
    lin_buffer_text(names, name);
    lin_buffer_char(names, '\0');
}

// place: of an utterance in a folder, its path below it; NULL: the sound is an operand.
static lin_status add_beside(lin_inputs *in, const char *sound, const char *text, const char *place, const char *speaker,
                             lin_error *err)
{
    const char *path = lin_inputs_own(in, lin_strdup(sound)), *own_text = lin_inputs_own(in, lin_strdup(text));
    const char *who = lin_inputs_own(in, lin_strdup(speaker));
    if (!path || !own_text || !who) return lin_no_memory(err, "the list of files", strlen(sound));
    LIN_TRY(add_path(in, path, err));
    lin_input *added = &in->items[in->n - 1];
    added->speaker = who;
    added->text = own_text;
    if (!place) return LIN_OK;
    // Results go to the same folders; the id contains them too, so that names differ in one stream of all.
    const char *name = lin_inputs_own(in, lin_text_copy(place, place_stem(place)));
    char *id = name ? lin_inputs_own(in, lin_strdup(name)) : NULL;
    if (!id) return lin_no_memory(err, "the list of files", strlen(place));
    lin_make_id(id);
    added->name = name;
    added->id = id;
    return LIN_OK;
}

typedef struct level {
    const struct level *above;
    dev_t device; // of this folder, to detect links to a folder above
    ino_t inode;
    int depth;
} level;

typedef struct walk {
    lin_corpus *corpus;
    lin_inputs *inputs;
    const char *leave_out;
    size_t n_root; // bytes of the operand, which are not part of the utterances' names
} walk;

// The entries of a folder, in order of their bytes.
typedef struct names {
    struct dirent **items;
    int n;
} names;

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

// The name with this stem and the first of these endings that exists, or NULL. Names are sorted: equal stems are adjacent.
static const char *beside(const names *list, const char *name, const char *const *ends)
{
    const size_t n = stem(name);
    int low = 0, high = list->n, best = -1;
    const char *found = NULL;
    while (low < high) {
        const int mid = low + (high - low) / 2;
        const int order = strncmp(list->items[mid]->d_name, name, n);
        if (order < 0 || (order == 0 && (unsigned char)list->items[mid]->d_name[n] < '.')) low = mid + 1;
        else high = mid;
    }
    for (; low < list->n && !strncmp(list->items[low]->d_name, name, n) && list->items[low]->d_name[n] == '.'; low++) {
        const char *other = list->items[low]->d_name;
        const int rank = stem(other) == n ? lies_in(ends, other) : -1;
        if (rank >= 0 && (best < 0 || rank < best)) best = rank, found = other;
    }
    return found;
}

static lin_status join(char path[LONGEST_PATH], const char *folder, const char *name, lin_error *err)
{
    const int n = snprintf(path, LONGEST_PATH, "%s/%s", folder, name);
    if (n > 0 && n < LONGEST_PATH) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "the name of %.200s in %.200s... is too long", name, folder);
}

static lin_status take_sound(const walk *w, const char *folder, const names *list, const char *name, int depth, lin_error *err)
{
    char path[LONGEST_PATH], text[LONGEST_PATH];
    const char *text_name = beside(list, name, text_ends);
    if (!text_name) {
        mention(&w->corpus->no_text, &w->corpus->without_text, folder, name);
        return LIN_OK;
    }
    LIN_TRY(join(path, folder, name, err));
    LIN_TRY(join(text, folder, text_name, err));
    return add_beside(w->inputs, path, text, path + w->n_root, depth ? lin_base_name(folder) : "", err);
}

static lin_status walk_folder(const walk *w, const char *folder, const level *above, lin_error *err);

static lin_status take_entry(const walk *w, const char *folder, const names *list, const char *name, const level *here,
                             lin_error *err)
{
    char path[LONGEST_PATH];
    LIN_TRY(join(path, folder, name, err));
    if (lin_is_folder(path)) return walk_folder(w, path, here, err);
    if (lin_corpus_is_sound(name)) return take_sound(w, folder, list, name, here->depth, err);
    if (lin_corpus_is_text(name) && !beside(list, name, sound_ends))
        mention(&w->corpus->no_sound, &w->corpus->without_sound, folder, name);
    return LIN_OK;
}

static lin_status walk_folder(const walk *w, const char *folder, const level *above, lin_error *err)
{
    struct stat s, out;
    if (stat(folder, &s) != 0) return lin_fail(err, LIN_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    if (above && w->leave_out && stat(w->leave_out, &out) == 0 && out.st_dev == s.st_dev && out.st_ino == s.st_ino) return LIN_OK;
    const level here = {above, s.st_dev, s.st_ino, above ? above->depth + 1 : 0};
    for (const level *l = above; l; l = l->above) {
        if (l->device == s.st_dev && l->inode == s.st_ino) return LIN_OK; // a link to a folder above
    }
    if (here.depth == MOST_LEVELS)
        return lin_fail(err, LIN_INVALID, "%s: more than %d folders within each other", folder, MOST_LEVELS);
    names list;
    list.n = scandir(folder, &list.items, is_shown, by_name);
    if (list.n < 0) return lin_fail(err, LIN_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    lin_status status = LIN_OK;
    for (int i = 0; i < list.n && status == LIN_OK; i++)
        status = take_entry(w, folder, &list, list.items[i]->d_name, &here, err);
    for (int i = 0; i < list.n; i++) free(list.items[i]);
    free(list.items);
    return status;
}

// Finds the file beside this one with another ending (as listed, in lower or in upper case): its path in `found`.
static int look_beside(const char *path, const char *const *ends, char found[LONGEST_PATH])
{
    const size_t n = place_stem(path);
    for (int i = 0; ends[i]; i++) {
        for (int form = 0; form < 3; form++) {
            char end[16];
            size_t k = 0;
            for (const char *c = ends[i]; *c; c++, k++) {
                const int small = *c >= 'A' && *c <= 'Z', capital = *c >= 'a' && *c <= 'z';
                end[k] = (char)(form == 1 && small ? *c + 32 : form == 2 && capital ? *c - 32 : *c);
            }
            end[k] = 0;
            const int length = snprintf(found, LONGEST_PATH, "%.*s.%s", (int)n, path, end);
            if (length > 0 && length < LONGEST_PATH && access(found, F_OK) == 0) return 1;
        }
    }
    return 0;
}

static lin_status take_file(lin_corpus *c, lin_inputs *inputs, const char *path, lin_error *err)
{
    char other[LONGEST_PATH];
    if (lin_corpus_is_text(path)) {
        if (!look_beside(path, sound_ends, other)) mention(&c->no_sound, &c->without_sound, NULL, path);
        return LIN_OK;
    }
    if (look_beside(path, text_ends, other)) return add_beside(inputs, path, other, NULL, "", err);
    mention(&c->no_text, &c->without_text, NULL, path);
    return LIN_OK;
}

lin_status lin_corpus_gather(lin_corpus *c, lin_inputs *inputs, const lin_list *operands, const char *leave_out, lin_error *err)
{
    for (int i = 0; i < operands->count; i++) {
        const char *path = operands->items[i];
        if (!lin_is_folder(path)) {
            LIN_TRY(take_file(c, inputs, path, err));
            continue;
        }
        char folder[LONGEST_PATH];
        size_t n = strlen(path);
        while (n > 1 && path[n - 1] == '/') n--;
        if (n >= sizeof folder) return lin_fail(err, LIN_INVALID, "the name %.200s... is too long", path);
        memcpy(folder, path, n);
        folder[n] = 0;
        LIN_TRY(walk_folder(&(walk){c, inputs, leave_out, n + 1}, folder, NULL, err));
    }
    LIN_TRY(lin_buffer_status(&c->no_text, err));
    return lin_buffer_status(&c->no_sound, err);
}

void lin_corpus_report(const lin_corpus *c)
{
    const char *at = c->no_text.data;
    for (int i = 0; i < c->without_text && i < NAMED; i++, at += strlen(at) + 1)
        lin_complain("%s: no text beside it (the same name with .lab, .txt or .TextGrid); skipped", at);
    if (c->without_text > NAMED) lin_complain("and %d more files without a text", c->without_text - NAMED);
    if (c->without_sound) {
        lin_complain("%d text%s no sound beside %s, such as %s", c->without_sound, c->without_sound == 1 ? " has" : "s have",
                     c->without_sound == 1 ? "it" : "them", c->no_sound.data);
    }
}

void lin_corpus_free(lin_corpus *c)
{
    lin_buffer_free(&c->no_text);
    lin_buffer_free(&c->no_sound);
    *c = (lin_corpus){0};
}

/* ---- names of results ------------------------------------------------------------------------------------------------------ */

// "/a/./b//../c" becomes "/a/c": drops empty parts and ".", and each ".." with its folder. In place; the path begins with '/'.
static void simplify(char *path)
{
    char *to = path;
    for (const char *at = path; *at;) {
        while (*at == '/') at++;
        const size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.') {
            while (to > path && *--to != '/') continue;
        } else if (n && !(n == 1 && *at == '.')) {
            *to++ = '/';
            memmove(to, at, n);
            to += n;
        }
        at += n;
    }
    *to = 0;
}

// An absolute path without "." and "..", released with lin_free; NULL where memory is short.
static char *absolute(const char *folder, const char *path)
{
    const size_t n = strlen(folder) + strlen(path) + 3;
    char *full = lin_alloc(n, 1);
    if (!full) return NULL;
    snprintf(full, n, "/%s/%s", *path == '/' ? "" : folder, path);
    simplify(full);
    return full;
}

static int leaves(const char *id)
{
    if (*id == '/') return 1;
    for (const char *at = id; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return 1;
    }
    return 0;
}

// The length of the deepest folder that all paths share, including its '/'.
static size_t common_folder(char *const *paths, int n)
{
    const char *first = NULL;
    size_t common = 0;
    for (int i = 0; i < n; i++) {
        if (!paths[i]) continue;
        if (!first) {
            first = paths[i];
            common = (size_t)(lin_base_name(first) - first);
            continue;
        }
        size_t same = 0;
        for (size_t k = 0; k < common && paths[i][k] == first[k]; k++) {
            if (first[k] == '/') same = k + 1;
        }
        common = same;
    }
    return common;
}

lin_status lin_inputs_check_names(const lin_inputs *in, lin_error *err)
{
    lin_symbols seen = {0};
    lin_status status = LIN_OK;
    for (int i = 0, first; i < in->n && status == LIN_OK; i++) {
        const lin_input *b = &in->items[i];
        status = lin_symbols_add(&seen, b->name, strlen(b->name), &first, err);
        if (status != LIN_OK || seen.n > i) continue;
        const lin_input *a = &in->items[first];
        status = strcmp(a->path, b->path) == 0 && !lin_cut_is_part(&a->cut)
                     ? lin_fail(err, LIN_INVALID, "%s is given twice", a->path)
                     : lin_fail(err, LIN_INVALID, "%.300s and %.300s would have the same result %s; rename one of them, or use "
                                                  "an --output-dir for each", a->path, b->path, a->name);
    }
    lin_symbols_free(&seen);
    return status;
}

// The length of the root, including its '/', with which every path begins; LIN_INVALID otherwise.
static lin_status root_folder(const lin_inputs *in, char *const *paths, const char *here, const char *root, size_t *length,
                              lin_error *err)
{
    char *folder = absolute(here, root);
    if (!folder) return lin_no_memory(err, "the names of results", strlen(root));
    const size_t n = strlen(folder);
    lin_status status = LIN_OK;
    for (int i = 0; i < in->n && status == LIN_OK; i++) {
        if (!paths[i] || (strncmp(paths[i], folder, n) == 0 && paths[i][n] == '/')) continue;
        status = lin_fail(err, LIN_INVALID, "%.300s is outside the --input-root %.300s", in->items[i].path, root);
    }
    lin_free(folder);
    *length = n + 1;
    return status;
}

static lin_status name_all(lin_inputs *in, const char *here, const char *root, char **full, lin_error *err)
{
    // ids of a data directory are names already, unless they are paths that lead out of the output folder
    for (int i = 0; i < in->n; i++) {
        lin_input *input = &in->items[i];
        const int is_id = i >= in->first_of_data && i < in->end_of_data;
        if (input->name) continue;
        if (strcmp(input->path, "-") == 0) {
            input->name = "stdin";
        } else if (is_id && !leaves(input->id)) {
            char *name = absolute("", input->id);
            if (!name || !(name = lin_inputs_own(in, name))) return lin_no_memory(err, "the names of results", strlen(input->id));
            input->name = name[0] ? name + 1 : "_";
        } else if (!(full[i] = absolute(here, is_id ? input->id : input->path))) {
            return lin_no_memory(err, "the names of results", strlen(input->path));
        } else if (!is_id) {
            full[i][place_stem(full[i])] = 0;
        }
    }
    size_t common = 0;
    if (root) LIN_TRY(root_folder(in, full, here, root, &common, err));
    else common = common_folder(full, in->n);
    for (int i = 0; i < in->n; i++) {
        if (!full[i]) continue;
        char *name = lin_inputs_own(in, lin_strdup(full[i] + common));
        if (!name) return lin_no_memory(err, "the names of results", strlen(full[i]));
        in->items[i].name = *name ? name : "_";
    }
    return LIN_OK;
}

lin_status lin_inputs_name_results(lin_inputs *in, const char *root, lin_error *err)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) here[0] = 0; // relative paths still differ from each other
    char **full = lin_calloc((size_t)in->n, sizeof *full);
    if (!full) return lin_no_memory(err, "the names of results", (size_t)in->n * sizeof *full);
    lin_status status = name_all(in, here, root, full, err);
    for (int i = 0; i < in->n; i++) lin_free(full[i]);
    lin_free(full);
    return status;
}

/* ---- no output is an input, or written twice ------------------------------------------------------------------------------- */

// "device inode" of each input and result. Devices, pipes and missing files cannot be overwritten and are not in the set. Of a
// result the time too: when another run has replaced the file, its inode may come back as that of another result.
static lin_symbols known;

enum { IDENTITY = 96 };

static size_t identify(const struct stat *st, int is_result, char text[IDENTITY])
{
    return (size_t)snprintf(text, IDENTITY, "%llx %llx %llx %lx", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
                            is_result ? (unsigned long long)st->st_mtim.tv_sec : 0, is_result ? st->st_mtim.tv_nsec : 0L);
}

static int is_file(const char *path, struct stat *st)
{
    return path && strcmp(path, "-") != 0 && stat(path, st) == 0 && S_ISREG(st->st_mode);
}

lin_status lin_guard_reads(const char *path, lin_error *err)
{
    struct stat st;
    char part[PATH_MAX], text[IDENTITY];
    int index;
    if (!path || strcmp(path, "-") == 0 || stat(path, &st) != 0) return LIN_OK;
    for (int i = 0; S_ISDIR(st.st_mode) && i < LIN_DATADIR_FILES; i++) {
        struct stat list;
        snprintf(part, sizeof part, "%s/%s", path, lin_datadir_names[i]);
        if (is_file(part, &list)) LIN_TRY(lin_guard_reads(part, err));
    }
    if (!S_ISREG(st.st_mode)) return LIN_OK;
    const size_t n = identify(&st, 0, text);
    return lin_symbols_add(&known, text, n, &index, err);
}

lin_status lin_guard_wrote(const char *path, lin_error *err)
{
    struct stat st;
    char text[IDENTITY];
    int index;
    return is_file(path, &st) ? lin_symbols_add(&known, text, identify(&st, 1, text), &index, err) : LIN_OK;
}

lin_status lin_guard_writes(const char *path, lin_error *err)
{
    struct stat st;
    char text[IDENTITY];
    if (!is_file(path, &st)) return LIN_OK;
    if (lin_symbols_find(&known, text, identify(&st, 0, text)) < 0 && lin_symbols_find(&known, text, identify(&st, 1, text)) < 0)
        return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s is an input and would be overwritten; name another output", path);
}

lin_status lin_guard_found(const char *path, const char *output, lin_error *err)
{
    LIN_TRY(lin_guard_reads(path, err));
    return lin_guard_writes(output, err);
}

void lin_guard_free(void) { lin_symbols_free(&known); }

/* ---- the options of a command ---------------------------------------------------------------------------------------------- */

static const char *text_of(const lin_parsed *parsed, const lin_option *o)
{
    return *(const char *const *)(const void *)((const char *)parsed->values + o->at);
}

static const char *named(const lin_parsed *parsed, const char *name)
{
    const int row = lin_options_find(parsed->command, name);
    const lin_option *o = row < 0 ? NULL : &parsed->command->options[row];
    return o && (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_STRING) ? text_of(parsed, o) : NULL;
}

static int is_set(const lin_parsed *parsed, const char *name)
{
    const int row = lin_options_find(parsed->command, name);
    return row >= 0 && *(const int *)(const void *)((const char *)parsed->values + parsed->command->options[row].at);
}

// Inputs that are read by default.
static lin_status add_defaults(const lin_parsed *parsed, lin_error *err)
{
    static const char *const models[2][2] = {{"phones.lm", NULL}, {"words.lm", NULL}};
    const int has_model = lin_options_find(parsed->command, "model") >= 0, has_lm = lin_options_find(parsed->command, "lm") >= 0,
              has_lexicon = lin_options_find(parsed->command, "lexicon") >= 0;
    const char *model = is_set(parsed, "offline") ? "offline" : named(parsed, "model"), *lm = named(parsed, "lm"),
               *lexicon = named(parsed, "lexicon"), *g2p = named(parsed, "g2p"), *rescore = named(parsed, "rescore");
    char path[PATH_MAX];
    if (has_model && lin_find_model(model, path, sizeof path, NULL) == LIN_OK) LIN_TRY(lin_guard_reads(path, err));
    if (has_lexicon && lin_find_lexicon(NULL, lexicon, path, sizeof path, NULL) == LIN_OK) LIN_TRY(lin_guard_reads(path, err));
    lin_find_added(NULL, lexicon, path, sizeof path);
    if (*path) LIN_TRY(lin_guard_reads(path, err));
    if (has_lexicon && lin_find_rules(NULL, g2p, path, sizeof path, NULL) == LIN_OK) LIN_TRY(lin_guard_reads(path, err));
    for (int i = 0; i < 2 && has_lm; i++)
        if (lin_find_named(NULL, lm, "LINNET_LM", models[i], path, sizeof path, NULL) == LIN_OK)
            LIN_TRY(lin_guard_reads(path, err));
    if (rescore && lin_find_word_network(NULL, rescore, path, sizeof path, NULL) == LIN_OK)
        LIN_TRY(lin_guard_reads(path, err));
    return LIN_OK;
}

static lin_status add_inputs(const lin_parsed *parsed, lin_error *err)
{
    LIN_TRY(add_defaults(parsed, err));
    for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END; o++) {
        if (o->writes) continue;
        if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FOLDER) LIN_TRY(lin_guard_reads(text_of(parsed, o), err));
        if (o->type != LIN_OPTION_FILES) continue;
        const lin_list *list = (const void *)((const char *)parsed->values + o->at);
        for (int i = 0; i < list->count; i++) LIN_TRY(lin_guard_reads(list->items[i], err));
    }
    for (int i = parsed->command->verb_operand; i < parsed->operands.count; i++)
        LIN_TRY(lin_guard_reads(parsed->operands.items[i], err));
    return LIN_OK;
}

// The same file, existing or not: the same inode, or the same name in the same folder.
static int is_same(const char *a, const char *b)
{
    struct stat x, y;
    char folder[2][PATH_MAX], part[PATH_MAX];
    const int there_a = stat(a, &x) == 0, there_b = stat(b, &y) == 0;
    if (there_a != there_b) return 0;
    if (there_a) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    if (strcmp(lin_base_name(a), lin_base_name(b)) != 0) return 0;
    const char *paths[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(part, sizeof part, "%.*s", (int)(lin_base_name(paths[i]) - paths[i]), paths[i]);
        if (!realpath(*part ? part : ".", folder[i])) return 0;
    }
    return strcmp(folder[0], folder[1]) == 0;
}

static lin_status check_outputs(const lin_parsed *parsed, lin_error *err)
{
    const lin_option *options = parsed->command->options;
    for (const lin_option *o = options; o->type != LIN_OPTION_END; o++) {
        const char *path = o->writes && o->type == LIN_OPTION_FILE ? text_of(parsed, o) : NULL;
        if (!path || strcmp(path, "-") == 0) continue;
        const char *before = o->updates ? named(parsed, o->updates) : NULL;
        lin_status status = before && is_same(path, before) ? LIN_OK : lin_guard_writes(path, err);
        if (status != LIN_OK) return lin_fail(err, status, "--%s %s", o->name, err ? err->message : "");
        for (const lin_option *other = options; other < o; other++) {
            const char *another = other->writes && other->type == LIN_OPTION_FILE ? text_of(parsed, other) : NULL;
            if (another && strcmp(another, "-") != 0 && is_same(path, another))
                return lin_fail(err, LIN_INVALID, "--%s and --%s are both %s: name two files", other->name, o->name, path);
        }
    }
    return LIN_OK;
}

lin_status lin_guard_command(const lin_parsed *parsed, lin_error *err)
{
    int writes = 0;
    if (!parsed->command->options) return LIN_OK;
    for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END; o++) {
        const int has_text = o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FOLDER;
        writes |= o->writes && has_text && text_of(parsed, o) != NULL;
    }
    if (!writes) return LIN_OK;
    LIN_TRY(add_inputs(parsed, err));
    return check_outputs(parsed, err);
}

/* ---- files that change ----------------------------------------------------------------------------------------------------- */

#define BETWEEN_LOOKS_S 0.5

static lin_watch_look look(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) return (lin_watch_look){0};
    return (lin_watch_look){(int64_t)s.st_ino, (int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec, (int64_t)s.st_mtim.tv_nsec};
}

static int same(const lin_watch_look *a, const lin_watch_look *b) { return memcmp(a, b, sizeof *a) == 0; }

lin_status lin_watch_add(lin_watch *w, const char *path, lin_error *err)
{
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->files[i].path, path)) return LIN_OK;
    LIN_TRY(lin_grow_int(&w->files, &w->capacity, (int64_t)w->n + 1, sizeof *w->files, "files to watch", err));
    char *own = lin_strdup(path);
    if (!own) return lin_no_memory(err, "a file to watch", strlen(path));
    const lin_watch_look now = look(path);
    w->files[w->n++] = (lin_watched){own, now, now};
    return LIN_OK;
}

int lin_watch_changed(lin_watch *w, double now)
{
    int changed = 0;
    if (now - w->looked_at < BETWEEN_LOOKS_S) return 0;
    w->looked_at = now;
    for (lin_watched *f = w->files; f < w->files + w->n; f++) {
        const lin_watch_look is = look(f->path), was = f->seen;
        f->seen = is;
        if (is.file == 0 || !same(&is, &was) || same(&is, &f->told)) continue;
        f->told = is;
        changed = 1;
    }
    return changed;
}

void lin_watch_free(lin_watch *w)
{
    for (int i = 0; i < w->n; i++) lin_free(w->files[i].path);
    lin_free(w->files);
    *w = (lin_watch){0};
}
