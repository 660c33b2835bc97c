// corpus.c - sounds with texts beside them; see corpus.h.

#include "app/corpus.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/textfile.h"

enum { LONGEST_PATH = 4096, MOST_LEVELS = 64, NAMED = 20 };

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

int lin_is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

// Bytes of a name before the dot of its extension.
static size_t stem(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - name) : strlen(name);
}

// The same of a path.
static size_t place_stem(const char *path) { return (size_t)(lin_base_name(path) - path) + stem(lin_base_name(path)); }

/* ---- what was found -------------------------------------------------------------------------------------------------------- */

static void mention(lin_buffer *names, int *count, const char *folder, const char *name)
{
    (*count)++;
    if (folder) lin_buffer_text(names, folder), lin_buffer_char(names, '/');
    lin_buffer_text(names, name);
    lin_buffer_char(names, '\0');
}

lin_status lin_corpus_add_text(lin_corpus *c, const char *path, lin_error *err)
{
    lin_status status = lin_grow_int(&c->texts, &c->capacity, (int64_t)c->n + 1, sizeof *c->texts, "the list of texts", err);
    if (status != LIN_OK) return status;
    c->texts[c->n] = lin_strdup(path);
    if (!c->texts[c->n]) return lin_no_memory(err, "the list of texts", strlen(path));
    c->n++;
    return LIN_OK;
}

static lin_status add(lin_corpus *c, lin_inputs *inputs, const char *sound, const char *text, const char *place,
                      const char *speaker, lin_error *err)
{
    lin_status status = lin_corpus_add_text(c, text, err);
    if (status != LIN_OK) return status;
    char *who = lin_inputs_own(inputs, lin_strdup(speaker)), *path = lin_inputs_own(inputs, lin_strdup(sound));
    if (!who || !path) return lin_no_memory(err, "the list of files", strlen(sound));
    if (!place) {
        status = lin_inputs_add_paths(inputs, &(lin_list){(const char *[]){path}, 1}, err);
        if (status == LIN_OK) inputs->items[inputs->n - 1].speaker = who;
        return status;
    }
    // Results go to the same folders; the id contains them too, so that names differ in one stream of all.
    char *name = lin_inputs_own(inputs, lin_text_copy(place, place_stem(place)));
    char *id = name ? lin_inputs_own(inputs, lin_strdup(name)) : NULL;
    if (!id) return lin_no_memory(err, "the list of files", strlen(place));
    for (char *at = id; *at; at++) {
        if ((unsigned char)*at <= ' ' || *at == 127 || *at == '(' || *at == ')') *at = '_'; // TRN and CTM cannot hold them
    }
    status = lin_inputs_add_named(inputs, path, name, err);
    if (status != LIN_OK) return status;
    inputs->items[inputs->n - 1].speaker = who;
    inputs->items[inputs->n - 1].id = id;
    return LIN_OK;
}

/* ---- a folder -------------------------------------------------------------------------------------------------------------- */

typedef struct level {
    const struct level *above;
    dev_t device; // of this folder, to see where a link leads back to
    ino_t inode;
    int depth;
} level;

typedef struct walk {
    lin_corpus *corpus;
    lin_inputs *inputs;
    const char *leave_out;
    size_t n_root; // bytes of the operand, which are not part of the utterances' names
} walk;

typedef struct names {
    char **items;
    int n, capacity;
} names;

static void free_names(names *list)
{
    for (int i = 0; i < list->n; i++) lin_free(list->items[i]);
    lin_free(list->items);
    *list = (names){0};
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static lin_status read_names(const char *folder, names *list, lin_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir) return lin_fail(err, LIN_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    lin_status status = LIN_OK;
    const struct dirent *entry;
    while (status == LIN_OK && (errno = 0, entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        status = lin_grow_int(&list->items, &list->capacity, (int64_t)list->n + 1, sizeof *list->items, "a folder", err);
        if (status != LIN_OK) break;
        list->items[list->n] = lin_strdup(entry->d_name);
        if (list->items[list->n]) {
            list->n++;
        } else {
            status = lin_no_memory(err, "a folder", strlen(entry->d_name));
        }
    }
    if (status == LIN_OK && errno) status = lin_fail(err, LIN_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    closedir(dir);
    if (status == LIN_OK && list->n) qsort((void *)list->items, (size_t)list->n, sizeof *list->items, by_name);
    return status;
}

// The name with this stem and the first possible of these endings, or NULL. Names are sorted, so those with the same stem are
// adjacent.
static const char *beside(const names *list, const char *name, const char *const *ends)
{
    const size_t n = stem(name);
    int low = 0, high = list->n, best = -1;
    const char *found = NULL;
    while (low < high) {
        const int mid = low + (high - low) / 2;
        const int order = strncmp(list->items[mid], name, n);
        if (order < 0 || (order == 0 && (unsigned char)list->items[mid][n] < '.')) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    for (; low < list->n && !strncmp(list->items[low], name, n) && list->items[low][n] == '.'; low++) {
        const int rank = stem(list->items[low]) == n ? lies_in(ends, list->items[low]) : -1;
        if (rank >= 0 && (best < 0 || rank < best)) best = rank, found = list->items[low];
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
    lin_status status = join(path, folder, name, err);
    if (status == LIN_OK) status = join(text, folder, text_name, err);
    if (status != LIN_OK) return status;
    return add(w->corpus, w->inputs, path, text, path + w->n_root, depth ? lin_base_name(folder) : "", err);
}

static lin_status walk_folder(const walk *w, const char *folder, const level *above, lin_error *err);

static lin_status take_entry(const walk *w, const char *folder, const names *list, const char *name, const level *here,
                             lin_error *err)
{
    char path[LONGEST_PATH];
    lin_status status = join(path, folder, name, err);
    if (status != LIN_OK) return status;
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
    names list = {0};
    lin_status status = read_names(folder, &list, err);
    for (int i = 0; i < list.n && status == LIN_OK; i++) status = take_entry(w, folder, &list, list.items[i], &here, err);
    free_names(&list);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

// A file beside this one with another ending (as usually written, in lower or upper case): its path in `found`.
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
    if (look_beside(path, text_ends, other)) return add(c, inputs, path, other, NULL, "", err);
    mention(&c->no_text, &c->without_text, NULL, path);
    return LIN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

lin_status lin_corpus_gather(lin_corpus *c, lin_inputs *inputs, const lin_list *operands, const char *leave_out, lin_error *err)
{
    lin_status status = LIN_OK;
    for (int i = 0; i < operands->count && status == LIN_OK; i++) {
        const char *path = operands->items[i];
        if (!lin_is_folder(path)) {
            status = take_file(c, inputs, path, err);
            continue;
        }
        char folder[LONGEST_PATH];
        size_t n = strlen(path);
        while (n > 1 && path[n - 1] == '/') n--;
        if (n >= sizeof folder) return lin_fail(err, LIN_INVALID, "the name %.200s... is too long", path);
        memcpy(folder, path, n);
        folder[n] = 0;
        status = walk_folder(&(walk){c, inputs, leave_out, n + 1}, folder, NULL, err);
    }
    if (status == LIN_OK) status = lin_buffer_status(&c->no_text, err);
    if (status == LIN_OK) status = lin_buffer_status(&c->no_sound, err);
    return status;
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
    for (int i = 0; i < c->n; i++) lin_free(c->texts[i]);
    lin_free(c->texts);
    lin_buffer_free(&c->no_text);
    lin_buffer_free(&c->no_sound);
    *c = (lin_corpus){0};
}
