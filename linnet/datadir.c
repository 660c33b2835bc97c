// datadir.c - reading wav.scp, text, utt2spk and lists; see datadir.h.

#include "linnet/datadir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/utf8.h"

enum { MAX_LINE = 65536, MAX_ID = 255 };

struct lin_datadir {
    int count, room;
    lin_utterance *utterances;
    lin_symbols names; // utterance i has name i
    int n_texts, room_texts;
    char **texts; // the strings that the utterances point to
};

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const lin_datadir_file *file;
    size_t at;
    int line;
} reader;

typedef struct piece {
    const char *at;
    size_t n;
} piece;

static piece trim(piece p)
{
    while (p.n && lin_is_space(p.at[0])) p.at++, p.n--;
    while (p.n && lin_is_space(p.at[p.n - 1])) p.n--;
    return p;
}

static lin_status refuse(const reader *r, lin_error *err, const char *what)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->file->name, r->line, what);
}

static lin_status check_bytes(const reader *r, piece line, lin_error *err)
{
    const size_t good = lin_utf8_prefix(line.at, line.n, "\t");
    if (good == line.n) return LIN_OK;
    const unsigned char c = (unsigned char)line.at[good];
    if (c == '\r' && good + 1 == line.n)
        return refuse(r, err, "the line ends in CR LF; make it LF, for example with sed -i 's/\\r$//'");
    if (c == 0)
        return lin_fail(err, LIN_FORMAT, "%s:%d: a NUL byte at column %zu; is this a text file?", r->file->name, r->line,
                        good + 1);
    return lin_fail(err, LIN_FORMAT, "%s:%d: byte 0x%02X at column %zu is %s", r->file->name, r->line, c, good + 1,
                    c < 0x20 || c == 0x7F ? "a control character" : "not UTF-8 text");
}

// The next line, without its line end; at the end of the file line->at is NULL. Empty lines are refused: the tool that wrote one
// has probably lost data.
static lin_status next_line(reader *r, piece *line, lin_error *err)
{
    *line = (piece){0};
    const size_t left = r->file->n_bytes - r->at;
    if (left == 0) return LIN_OK;
    if (r->line == INT_MAX) return refuse(r, err, "too many lines");
    r->line++;
    const char *begin = r->file->bytes + r->at, *end = memchr(begin, '\n', left < MAX_LINE + 1 ? left : MAX_LINE + 1);
    if (!end && left > MAX_LINE)
        return lin_fail(err, LIN_FORMAT, "%s:%d: the line is longer than %d bytes", r->file->name, r->line, (int)MAX_LINE);
    *line = (piece){begin, end ? (size_t)(end - begin) : left};
    r->at += line->n + (end != NULL);
    if (r->line == 1 && line->n >= 3 && memcmp(begin, "\xEF\xBB\xBF", 3) == 0) *line = (piece){begin + 3, line->n - 3};
    lin_status status = check_bytes(r, *line, err);
    if (status == LIN_OK && trim(*line).n == 0) return refuse(r, err, "the line is empty; remove it");
    return status;
}

// "id rest"; the rest may be empty.
static lin_status split(const reader *r, piece line, piece *id, piece *rest, lin_error *err)
{
    if (lin_is_space(line.at[0])) return refuse(r, err, "the line begins with white space instead of a name");
    size_t n = 0;
    while (n < line.n && !lin_is_space(line.at[n])) n++;
    *id = (piece){line.at, n};
    *rest = trim((piece){line.at + n, line.n - n});
    if (n > MAX_ID)
        return lin_fail(err, LIN_FORMAT, "%s:%d: a name of %zu bytes; the limit is %d", r->file->name, r->line, n, (int)MAX_ID);
    return LIN_OK;
}

/* ---- storage --------------------------------------------------------------------------------------------------------------- */

// Takes ownership of a string (NULL: out of memory before), which is freed with the directory.
static char *keep(lin_datadir *dir, char *text)
{
    if (text && lin_grow_int(&dir->texts, &dir->room_texts, dir->n_texts + 1, sizeof *dir->texts, "texts", NULL)) {
        lin_free(text);
        return NULL;
    }
    if (text) dir->texts[dir->n_texts++] = text;
    return text;
}

static char *copy(piece p)
{
    char *text = lin_alloc(p.n + 1, 1);
    if (!text) return NULL;
    memcpy(text, p.at, p.n);
    text[p.n] = '\0';
    return text;
}

// Copies text, with each run of white space replaced by a single space.
static char *copy_words(piece p)
{
    char *text = copy(p);
    size_t n = 0;
    for (size_t i = 0; text && i < p.n; i++)
        if (!lin_is_space(p.at[i])) text[n++] = p.at[i];
        else if (n && text[n - 1] != ' ') text[n++] = ' ';
    if (text) text[n] = '\0';
    return text;
}

static char *join(const char *root, piece path)
{
    const size_t n = root && *root && path.at[0] != '/' ? strlen(root) : 0;
    const int slash = n && root[n - 1] != '/';
    char *text = lin_alloc(n + (size_t)slash + path.n + 1, 1);
    if (!text) return NULL;
    if (n) memcpy(text, root, n);
    if (slash) text[n] = '/';
    memcpy(text + n + slash, path.at, path.n);
    text[n + (size_t)slash + path.n] = '\0';
    return text;
}

static lin_status no_memory(lin_error *err, size_t n) { return lin_no_memory(err, "a list of recordings", n); }

static lin_status add_utterance(lin_datadir *dir, const reader *r, piece id, piece path, const char *root, lin_error *err)
{
    if (path.n == 0) return lin_fail(err, LIN_FORMAT, "%s:%d: the path of the sound file is missing", r->file->name, r->line);
    if (path.at[path.n - 1] == '|')
        return lin_fail(err, LIN_UNSUPPORTED,
                        "%s:%d: the sound of %.*s comes from a command; save its output to a file and give that path",
                        r->file->name, r->line, (int)id.n, id.at);
    int index;
    lin_status status = lin_symbols_add(&dir->names, id.at, id.n, &index, err);
    if (status != LIN_OK) return status;
    if (index < dir->count)
        return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s is repeated; it is already in line %d", r->file->name, r->line, (int)id.n,
                        id.at, dir->utterances[index].line);
    status = lin_grow_int(&dir->utterances, &dir->room, dir->count + 1, sizeof *dir->utterances, "a list of recordings", err);
    if (status != LIN_OK) return status;
    lin_utterance *u = &dir->utterances[dir->count++];
    *u = (lin_utterance){.audio = keep(dir, join(root, path)), .line = r->line};
    return u->audio ? LIN_OK : no_memory(err, path.n);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static lin_status read_wav_scp(lin_datadir *dir, const lin_datadir_file *file, const char *root, lin_error *err)
{
    reader r = {.file = file};
    piece line, id, path;
    for (;;) {
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        status = split(&r, line, &id, &path, err);
        if (status == LIN_OK) status = add_utterance(dir, &r, id, path, root, err);
        if (status != LIN_OK) return status;
    }
}

// Finds the utterance that a line of text or utt2spk names; it must be in wav.scp.
static lin_status find_utterance(const lin_datadir *dir, const reader *r, piece id, const lin_datadir_file *wav_scp, int *index,
                                 lin_error *err)
{
    *index = lin_symbols_find(&dir->names, id.at, id.n);
    if (*index >= 0) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s has no sound: it is not listed in %s", r->file->name, r->line, (int)id.n, id.at,
                    wav_scp->name);
}

static lin_status read_texts(lin_datadir *dir, const lin_datadir_file *file, const lin_datadir_file *wav_scp, int need_text,
                             lin_error *err)
{
    reader r = {.file = file};
    piece line, id, words;
    for (;;) {
        int index = 0;
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        status = split(&r, line, &id, &words, err);
        if (status == LIN_OK) status = find_utterance(dir, &r, id, wav_scp, &index, err);
        if (status != LIN_OK) return status;
        lin_utterance *u = &dir->utterances[index];
        if (u->text)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s already has a transcript", file->name, r.line, (int)id.n, id.at);
        if (words.n == 0 && need_text)
            return lin_fail(err, LIN_FORMAT, "%s:%d: the transcript of %.*s is empty", file->name, r.line, (int)id.n, id.at);
        u->text = keep(dir, copy_words(words));
        if (!u->text) return no_memory(err, words.n);
    }
}

static lin_status read_speakers(lin_datadir *dir, const lin_datadir_file *file, const lin_datadir_file *wav_scp, lin_error *err)
{
    reader r = {.file = file};
    piece line, id, speaker;
    for (;;) {
        int index = 0;
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        status = split(&r, line, &id, &speaker, err);
        if (status == LIN_OK) status = find_utterance(dir, &r, id, wav_scp, &index, err);
        if (status != LIN_OK) return status;
        lin_utterance *u = &dir->utterances[index];
        if (u->speaker)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s already has a speaker", file->name, r.line, (int)id.n, id.at);
        if (speaker.n == 0 || speaker.n > MAX_ID || memchr(speaker.at, ' ', speaker.n) || memchr(speaker.at, '\t', speaker.n))
            return lin_fail(err, LIN_FORMAT, "%s:%d: the speaker of %.*s must be one name of 1 to %d bytes", file->name, r.line,
                            (int)id.n, id.at, (int)MAX_ID);
        u->speaker = keep(dir, copy(speaker));
        if (!u->speaker) return no_memory(err, speaker.n);
    }
}

// An utterance's name in a list: its path without the extension and without characters that CTM and TRN files do not allow.
static lin_status read_list(lin_datadir *dir, const lin_datadir_file *file, const char *root, int need_text, lin_error *err)
{
    reader r = {.file = file};
    piece line;
    for (;;) {
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        const char *tab = memchr(line.at, '\t', line.n);
        const size_t n = tab ? (size_t)(tab - line.at) : line.n;
        const piece path = trim((piece){line.at, n}), words = tab ? trim((piece){tab, line.n - n}) : (piece){0};
        if (need_text && words.n == 0)
            return refuse(&r, err, "no transcript: the line must be a path, a tab and the transcript");
        if (path.n == 0) return refuse(&r, err, "the path before the tab is empty");
        char *id = copy(path);
        if (!id) return no_memory(err, path.n);
        char *dot = strrchr(id, '.'), *slash = strrchr(id, '/');
        if (dot && dot > (slash ? slash + 1 : id)) *dot = '\0';
        for (char *c = id; *c; c++)
            if (*c == ' ' || *c == '(' || *c == ')') *c = '_';
        const size_t length = strlen(id);
        if (length > MAX_ID)
            status = lin_fail(err, LIN_FORMAT, "%s:%d: a path longer than %d bytes", file->name, r.line, (int)MAX_ID);
        else status = add_utterance(dir, &r, (piece){id, length}, path, root, err);
        lin_free(id);
        if (status != LIN_OK) return status;
        if (!tab) continue;
        lin_utterance *u = &dir->utterances[dir->count - 1];
        u->text = keep(dir, copy_words(words));
        if (!u->text) return no_memory(err, words.n);
    }
}

// The names are complete and no longer move, so utterances may now point to them.
static lin_status complete(lin_datadir *dir, const lin_datadir_file *main, const lin_datadir_file *text, int need_text,
                           const lin_datadir_file *utt2spk, lin_error *err)
{
    if (dir->count == 0) return lin_fail(err, LIN_FORMAT, "%s: it lists no recordings", main->name);
    for (int i = 0; i < dir->count; i++) {
        lin_utterance *u = &dir->utterances[i];
        u->id = lin_symbols_text(&dir->names, i);
        if (need_text && !u->text)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %s has no transcript in %s", main->name, u->line, u->id, text->name);
        if (!u->speaker && utt2spk && utt2spk->bytes)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %s has no speaker in %s", main->name, u->line, u->id, utt2spk->name);
        if (!u->speaker) u->speaker = u->id;
    }
    return LIN_OK;
}

static lin_status finish(lin_datadir *dir, lin_status status, lin_datadir **out)
{
    *out = status == LIN_OK ? dir : NULL;
    if (status != LIN_OK) lin_datadir_destroy(dir);
    return status;
}

lin_status lin_datadir_parse(const lin_datadir_file *wav_scp, const lin_datadir_file *text, const lin_datadir_file *utt2spk,
                             const char *audio_root, int need_text, lin_datadir **out, lin_error *err)
{
    *out = NULL;
    if (need_text && !text->bytes) return lin_fail(err, LIN_IO, "cannot open %s: transcripts are required", text->name);
    lin_datadir *dir = lin_calloc(1, sizeof *dir);
    if (!dir) return no_memory(err, sizeof *dir);
    lin_status status = read_wav_scp(dir, wav_scp, audio_root, err);
    if (status == LIN_OK && text->bytes) status = read_texts(dir, text, wav_scp, need_text, err);
    if (status == LIN_OK && utt2spk->bytes) status = read_speakers(dir, utt2spk, wav_scp, err);
    if (status == LIN_OK) status = complete(dir, wav_scp, text, need_text, utt2spk, err);
    return finish(dir, status, out);
}

lin_status lin_datadir_parse_list(const lin_datadir_file *list, const char *audio_root, int need_text, lin_datadir **out,
                                  lin_error *err)
{
    *out = NULL;
    lin_datadir *dir = lin_calloc(1, sizeof *dir);
    if (!dir) return no_memory(err, sizeof *dir);
    lin_status status = read_list(dir, list, audio_root, need_text, err);
    if (status == LIN_OK) status = complete(dir, list, list, need_text, NULL, err);
    return finish(dir, status, out);
}

/* ---- paths ----------------------------------------------------------------------------------------------------------------- */

static char *parent_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t last = n; // where the last component begins
    while (last && path[last - 1] != '/') last--;
    const piece whole = {path, n}, component = {path + last, n - last};
    if ((component.n == 1 && component.at[0] == '.') || (component.n == 2 && memcmp(component.at, "..", 2) == 0)) {
        char *folder = copy(whole), *parent = folder ? join(folder, (piece){"..", 2}) : NULL;
        lin_free(folder);
        return parent;
    }
    while (last > 1 && path[last - 1] == '/') last--;
    return copy((piece){path, last}); // "" if there is none: the current folder
}

// A file of the directory, mapped; bytes NULL if it does not exist and is optional.
static lin_status open_part(const char *path, const char *name, int optional, lin_file_map *map, lin_datadir_file *file,
                            char **full, lin_error *err)
{
    struct stat st;
    *full = join(path, (piece){name, strlen(name)});
    if (!*full) return no_memory(err, strlen(path));
    file->name = *full;
    if (optional && stat(*full, &st) != 0 && errno == ENOENT) return LIN_OK;
    lin_status status = lin_file_map_open(*full, map, err);
    if (status != LIN_OK) return status;
    file->bytes = (const char *)map->bytes;
    file->n_bytes = map->size;
    return LIN_OK;
}

static lin_status load_directory(const char *path, const char *root, int need_text, lin_datadir **dir, lin_error *err)
{
    static const char *const parts[] = {"wav.scp", "text", "utt2spk", "segments"};
    enum { N = sizeof parts / sizeof *parts };
    lin_file_map maps[N] = {{0}};
    lin_datadir_file files[N] = {{0}};
    char *names[N] = {NULL};
    lin_status status = LIN_OK;
    for (int i = 0; i < N && status == LIN_OK; i++)
        status = open_part(path, parts[i], i > 1 || (i == 1 && !need_text), &maps[i], &files[i], &names[i], err);
    if (status == LIN_OK && files[3].bytes)
        status = lin_fail(err, LIN_UNSUPPORTED, "%s: segments of recordings are not supported; cut them into separate files",
                          names[3]);
    if (status == LIN_OK) status = lin_datadir_parse(&files[0], &files[1], &files[2], root, need_text, dir, err);
    for (int i = 0; i < N; i++) {
        lin_file_map_close(&maps[i]);
        lin_free(names[i]);
    }
    return status;
}

static lin_status load_list(const char *path, const char *root, int need_text, lin_datadir **dir, lin_error *err)
{
    lin_file_map map;
    lin_status status = lin_file_map_open(path, &map, err);
    if (status != LIN_OK) return status;
    const lin_datadir_file file = {path, (const char *)map.bytes, map.size};
    status = lin_datadir_parse_list(&file, root, need_text, dir, err);
    lin_file_map_close(&map);
    return status;
}

lin_status lin_datadir_load(const char *path, const char *audio_root, int need_text, lin_datadir **dir, lin_error *err)
{
    *dir = NULL;
    struct stat st;
    if (stat(path, &st) != 0) return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    char *parent = audio_root ? NULL : parent_of(path);
    if (!audio_root && !parent) return no_memory(err, strlen(path));
    const char *root = audio_root ? audio_root : parent;
    lin_status status = (S_ISDIR(st.st_mode) ? load_directory : load_list)(path, root, need_text, dir, err);
    lin_free(parent);
    return status;
}

void lin_datadir_destroy(lin_datadir *dir)
{
    if (!dir) return;
    for (int i = 0; i < dir->n_texts; i++) lin_free(dir->texts[i]);
    lin_free(dir->texts);
    lin_free(dir->utterances);
    lin_symbols_free(&dir->names);
    lin_free(dir);
}

int lin_datadir_count(const lin_datadir *dir) { return dir->count; }

const lin_utterance *lin_datadir_at(const lin_datadir *dir, int i) { return &dir->utterances[i]; }
