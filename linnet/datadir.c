// datadir.c - reading wav.scp, text, utt2spk, segments and lists; see datadir.h.

#include "linnet/datadir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "linnet/datadir_internal.h"
#include "linnet/manifest.h"

enum { MAX_LINE = 65536, MAX_ID = LIN_DATADIR_ID_MAX };

const char *const lin_datadir_names[LIN_DATADIR_FILES] = {"wav.scp", "text", "utt2spk", "segments", "reco2file_and_channel"};

typedef lin_datadir_list list;

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
    if (line->n && begin[line->n - 1] == '\r') line->n--;
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
        if (!lin_is_space(p.at[i]) && p.at[i] != '\n') text[n++] = p.at[i];
        else if (n && text[n - 1] != ' ') text[n++] = ' ';
    if (text) text[n - (n && text[n - 1] == ' ')] = '\0';
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

const char *lin_datadir_keep(lin_datadir *dir, const char *text, size_t n) { return keep(dir, copy((piece){text, n})); }

const char *lin_datadir_keep_words(lin_datadir *dir, const char *text, size_t n)
{
    return keep(dir, copy_words(trim((piece){text, n})));
}

const char *lin_datadir_keep_path(lin_datadir *dir, const char *root, const char *path, size_t n)
{
    return keep(dir, join(root, (piece){path, n}));
}

static lin_status no_memory(lin_error *err, size_t n) { return lin_no_memory(err, "a list of recordings", n); }

// One more item, which no other has the name of. cut.path: NULL means that memory failed before.
static lin_status add_item(list *to, const char *file, int line, piece id, lin_cut cut, lin_error *err)
{
    int index;
    if (!cut.path) return no_memory(err, id.n);
    lin_status status = lin_symbols_add(&to->names, id.at, id.n, &index, err);
    if (status != LIN_OK) return status;
    if (index < to->count)
        return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s is repeated; it is already in line %d", file, line, (int)id.n, id.at,
                        to->items[index].line);
    status = lin_grow_int(&to->items, &to->room, to->count + 1, sizeof *to->items, "a list of recordings", err);
    if (status == LIN_OK) to->items[to->count++] = (lin_utterance){.cut = cut, .line = line};
    return status;
}

lin_status lin_datadir_add(lin_datadir *dir, const char *file, int line, const char *id, size_t n, lin_cut cut,
                           lin_utterance **of, lin_error *err)
{
    if (n == 0 || n > MAX_ID)
        return lin_fail(err, LIN_FORMAT, "%s:%d: a name of %zu bytes; must be 1 to %d", file, line, n, (int)MAX_ID);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)id[i] <= ' ' || id[i] == 127)
            return lin_fail(err, LIN_FORMAT, "%s:%d: the name '%.*s' has a blank", file, line, (int)n, id);
    lin_status status = add_item(&dir->utterances, file, line, (piece){id, n}, cut, err);
    if (status == LIN_OK) *of = &dir->utterances.items[dir->utterances.count - 1];
    return status;
}

lin_status lin_datadir_add_named(lin_datadir *dir, const char *file, int line, const char *path, size_t n, int64_t from_ms,
                                 lin_cut cut, lin_utterance **of, lin_error *err)
{
    char id[2 * MAX_ID];
    if (n > MAX_ID) return lin_fail(err, LIN_FORMAT, "%s:%d: a path longer than %d bytes", file, line, (int)MAX_ID);
    snprintf(id, sizeof id, "%.*s", (int)n, path);
    char *dot = strrchr(id, '.'), *slash = strrchr(id, '/');
    if (dot && dot > (slash ? slash + 1 : id)) *dot = '\0';
    for (char *c = id; *c; c++)
        if (*c == ' ' || *c == '(' || *c == ')') *c = '_';
    const size_t length = strlen(id);
    if (from_ms >= 0) snprintf(id + length, sizeof id - length, "-%07lld", (long long)from_ms);
    return lin_datadir_add(dir, file, line, id, strlen(id), cut, of, err);
}

// The sound at a path, or of a command, which ends in '|'.
static lin_status find_cut(lin_datadir *dir, const reader *r, piece id, piece path, const lin_datadir_options *o, lin_cut *cut,
                            lin_error *err)
{
    *cut = (lin_cut){0};
    if (path.n == 0) return lin_fail(err, LIN_FORMAT, "%s:%d: the path of the sound file is missing", r->file->name, r->line);
    cut->is_command = path.at[path.n - 1] == '|';
    if (cut->is_command && !o->allow_commands)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "%s:%d: the sound of %.*s comes from a command; --allow-commands runs such commands, or save its output "
                        "to a file and give that path", r->file->name, r->line, (int)id.n, id.at);
    if (cut->is_command) path = trim((piece){path.at, path.n - 1});
    if (path.n == 0) return refuse(r, err, "there is no command before '|'");
    cut->path = keep(dir, cut->is_command ? copy(path) : join(o->audio_root, path));
    return cut->path ? LIN_OK : no_memory(err, path.n);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static lin_status read_wav_scp(lin_datadir *dir, list *to, const lin_datadir_file *file, const lin_datadir_options *o,
                               lin_error *err)
{
    reader r = {.file = file};
    piece line, id, path;
    lin_cut cut;
    for (;;) {
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        status = split(&r, line, &id, &path, err);
        if (status == LIN_OK) status = find_cut(dir, &r, id, path, o, &cut, err);
        if (status == LIN_OK) status = add_item(to, file->name, r.line, id, cut, err);
        if (status != LIN_OK) return status;
    }
}

// Finds what a line names among the items of the file `main`.
static lin_status find_item(const list *in, const reader *r, piece id, const lin_datadir_file *main, int *index, lin_error *err)
{
    *index = lin_symbols_find(&in->names, id.at, id.n);
    if (*index >= 0) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s has no sound: it is not listed in %s", r->file->name, r->line, (int)id.n, id.at,
                    main->name);
}

// The fields of a line; -1: more than there is room for.
static int fields_of(piece line, piece *fields, int most)
{
    const char *at = line.at, *field;
    size_t n;
    int count = 0;
    while (lin_field_next(&at, line.at + line.n, &field, &n)) {
        if (count == most) return -1;
        fields[count++] = (piece){field, n};
    }
    return count;
}

static int whole_number(piece p)
{
    int n = 0;
    if (p.n == 0 || p.n > 3) return -1;
    for (size_t i = 0; i < p.n; i++) {
        if (!lin_is_digit(p.at[i])) return -1;
        n = 10 * n + (p.at[i] - '0');
    }
    return n;
}

// "utt1 call7 3.20 5.75"
static lin_status read_segments(lin_datadir *dir, const lin_datadir_file *file, const lin_datadir_file *wav_scp, lin_error *err)
{
    reader r = {.file = file};
    piece line, field[5];
    for (;;) {
        int index = 0;
        double start = 0, end = 0;
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        const int n = fields_of(line, field, 5);
        if (n < 4 || !lin_text_number(field[2].at, field[2].n, &start) || !lin_text_number(field[3].at, field[3].n, &end))
            return refuse(&r, err, "the line must be a name, a recording, and a start and end in seconds");
        if (field[0].n > MAX_ID) return refuse(&r, err, "the name is longer than 255 bytes");
        status = find_item(&dir->recordings, &r, field[1], wav_scp, &index, err);
        if (status != LIN_OK) return status;
        lin_cut cut = dir->recordings.items[index].cut;
        if (!(start >= 0 && start < 1e9) || !(end == -1 || (end > start && end < 1e9)))
            return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s is from %g to %g s; must be 0 <= start < end", file->name, r.line,
                            (int)field[0].n, field[0].at, start, end);
        const int channel = n == 5 ? whole_number(field[4]) : 0;
        if (channel < 0 || channel >= LIN_AUDIO_MAX_CHANNELS) return refuse(&r, err, "the channel must be a number from 0 to 63");
        if (n == 5) cut.channel = channel + 1;
        cut.part = (lin_part){start, end > 0 ? end : 0};
        status = add_item(&dir->utterances, file->name, r.line, field[0], cut, err);
        if (status != LIN_OK) return status;
    }
}

// "call7 sw7 A"
static lin_status read_channels(list *of, const lin_datadir_file *file, const lin_datadir_file *wav_scp, lin_error *err)
{
    reader r = {.file = file};
    piece line, field[3];
    for (;;) {
        int index = 0;
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        if (fields_of(line, field, 3) != 3) return refuse(&r, err, "the line must be a recording, a file and a channel");
        const char side = lin_lower(field[2].at[0]);
        const int channel = field[2].n == 1 && (side == 'a' || side == 'b') ? 1 + (side == 'b') : whole_number(field[2]);
        if (channel < 1 || channel > LIN_AUDIO_MAX_CHANNELS) return refuse(&r, err, "the channel must be A, B or 1 to 64");
        status = find_item(of, &r, field[0], wav_scp, &index, err);
        if (status != LIN_OK) return status;
        of->items[index].cut.channel = channel;
    }
}

static lin_status read_texts(lin_datadir *dir, const lin_datadir_file *file, const lin_datadir_file *main, int need_text,
                             lin_error *err)
{
    reader r = {.file = file};
    piece line, id, words;
    for (;;) {
        int index = 0;
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        status = split(&r, line, &id, &words, err);
        if (status == LIN_OK) status = find_item(&dir->utterances, &r, id, main, &index, err);
        if (status != LIN_OK) return status;
        lin_utterance *u = &dir->utterances.items[index];
        if (u->text)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s already has a transcript", file->name, r.line, (int)id.n, id.at);
        if (words.n == 0 && need_text)
            return lin_fail(err, LIN_FORMAT, "%s:%d: the transcript of %.*s is empty", file->name, r.line, (int)id.n, id.at);
        u->text = keep(dir, copy_words(words));
        if (!u->text) return no_memory(err, words.n);
    }
}

static lin_status read_speakers(lin_datadir *dir, const lin_datadir_file *file, const lin_datadir_file *main, lin_error *err)
{
    reader r = {.file = file};
    piece line, id, speaker;
    for (;;) {
        int index = 0;
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        status = split(&r, line, &id, &speaker, err);
        if (status == LIN_OK) status = find_item(&dir->utterances, &r, id, main, &index, err);
        if (status != LIN_OK) return status;
        lin_utterance *u = &dir->utterances.items[index];
        if (u->speaker)
            return lin_fail(err, LIN_FORMAT, "%s:%d: %.*s already has a speaker", file->name, r.line, (int)id.n, id.at);
        if (speaker.n == 0 || speaker.n > MAX_ID || memchr(speaker.at, ' ', speaker.n) || memchr(speaker.at, '\t', speaker.n))
            return lin_fail(err, LIN_FORMAT, "%s:%d: the speaker of %.*s must be one name of 1 to %d bytes", file->name, r.line,
                            (int)id.n, id.at, (int)MAX_ID);
        u->speaker = keep(dir, copy(speaker));
        if (!u->speaker) return no_memory(err, speaker.n);
    }
}

static lin_status read_list(lin_datadir *dir, const lin_datadir_file *file, const lin_datadir_options *o, lin_error *err)
{
    reader r = {.file = file};
    piece line;
    lin_cut cut;
    for (;;) {
        lin_status status = next_line(&r, &line, err);
        if (status != LIN_OK || !line.at) return status;
        const char *tab = memchr(line.at, '\t', line.n);
        const size_t n = tab ? (size_t)(tab - line.at) : line.n;
        const piece path = trim((piece){line.at, n}), words = tab ? trim((piece){tab, line.n - n}) : (piece){0};
        if (o->need_text && words.n == 0)
            return refuse(&r, err, "no transcript: the line must be a path, a tab and the transcript");
        if (path.n == 0) return refuse(&r, err, "the path before the tab is empty");
        lin_utterance *u;
        status = find_cut(dir, &r, path, path, o, &cut, err);
        if (status == LIN_OK) status = lin_datadir_add_named(dir, file->name, r.line, path.at, path.n, -1, cut, &u, err);
        if (status != LIN_OK) return status;
        if (!tab) continue;
        u->text = keep(dir, copy_words(words));
        if (!u->text) return no_memory(err, words.n);
    }
}

// The names are complete and no longer move, so utterances may now point to them.
static lin_status complete(lin_datadir *dir, const lin_datadir_file *main, const lin_datadir_file *text, int need_text,
                           const lin_datadir_file *utt2spk, lin_error *err)
{
    list *all = &dir->utterances;
    if (all->count == 0) return lin_fail(err, LIN_FORMAT, "%s: it lists no recordings", main->name);
    for (int i = 0; i < all->count; i++) {
        lin_utterance *u = &all->items[i];
        u->id = lin_symbols_text(&all->names, i);
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

lin_status lin_datadir_finish(lin_datadir *dir, lin_status status, const char *name, int need_text, lin_datadir **out,
                              lin_error *err)
{
    const lin_datadir_file file = {.name = name};
    if (status == LIN_OK) status = complete(dir, &file, &file, need_text, NULL, err);
    return finish(dir, status, out);
}

lin_status lin_datadir_parse(const lin_datadir_file files[LIN_DATADIR_FILES], const lin_datadir_options *o, lin_datadir **out,
                             lin_error *err)
{
    const lin_datadir_file *wav = &files[LIN_DATADIR_WAV], *text = &files[LIN_DATADIR_TEXT],
                           *speakers = &files[LIN_DATADIR_SPEAKERS], *segments = &files[LIN_DATADIR_SEGMENTS],
                           *channels = &files[LIN_DATADIR_CHANNELS], *main = segments->bytes ? segments : wav;
    *out = NULL;
    if (o->need_text && !text->bytes) return lin_fail(err, LIN_IO, "cannot open %s: transcripts are required", text->name);
    lin_datadir *dir = lin_calloc(1, sizeof *dir);
    if (!dir) return no_memory(err, sizeof *dir);
    list *recordings = segments->bytes ? &dir->recordings : &dir->utterances;
    lin_status status = read_wav_scp(dir, recordings, wav, o, err);
    if (status == LIN_OK && channels->bytes) status = read_channels(recordings, channels, wav, err);
    if (status == LIN_OK && segments->bytes) status = read_segments(dir, segments, wav, err);
    if (status == LIN_OK && text->bytes) status = read_texts(dir, text, main, o->need_text, err);
    if (status == LIN_OK && speakers->bytes) status = read_speakers(dir, speakers, main, err);
    if (status == LIN_OK) status = complete(dir, main, text, o->need_text, speakers, err);
    return finish(dir, status, out);
}

lin_status lin_datadir_parse_list(const lin_datadir_file *file, const lin_datadir_options *o, lin_datadir **out, lin_error *err)
{
    *out = NULL;
    lin_datadir *dir = lin_calloc(1, sizeof *dir);
    if (!dir) return no_memory(err, sizeof *dir);
    lin_status status = read_list(dir, file, o, err);
    return lin_datadir_finish(dir, status, file->name, o->need_text, out, err);
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

static lin_status load_directory(const char *path, const lin_datadir_options *o, lin_datadir **dir, lin_error *err)
{
    enum { N = LIN_DATADIR_FILES };
    lin_file_map maps[N] = {{0}};
    lin_datadir_file files[N] = {{0}};
    char *names[N] = {NULL};
    lin_status status = LIN_OK;
    for (int i = 0; i < N && status == LIN_OK; i++) {
        const int optional = i > LIN_DATADIR_TEXT || (i == LIN_DATADIR_TEXT && !o->need_text);
        status = open_part(path, lin_datadir_names[i], optional, &maps[i], &files[i], &names[i], err);
    }
    if (status == LIN_OK) status = lin_datadir_parse(files, o, dir, err);
    for (int i = 0; i < N; i++) {
        lin_file_map_close(&maps[i]);
        lin_free(names[i]);
    }
    return status;
}

// A manifest, a table or a plain list; gzip'd or not.
static lin_status load_list(const char *path, const lin_datadir_options *given, const char *parent, lin_datadir **dir,
                            lin_error *err)
{
    char *text, *clips = NULL;
    struct stat st;
    lin_datadir_options o = *given;
    lin_datadir_file file = {.name = path};
    lin_status status = lin_text_read(path, &text, &file.n_bytes, err);
    if (status != LIN_OK) return status;
    file.bytes = text;
    const lin_manifest_kind kind = lin_manifest_is(&file);
    if (kind == LIN_MANIFEST_TABLE && parent) { // Common Voice has its sound in a folder beside the tables
        clips = join(parent, (piece){"clips", 5});
        if (!clips) status = no_memory(err, strlen(parent));
        else if (stat(clips, &st) == 0 && S_ISDIR(st.st_mode)) o.audio_root = clips;
    }
    if (status == LIN_OK) status = (kind ? lin_manifest_parse : lin_datadir_parse_list)(&file, &o, dir, err);
    lin_free(clips);
    lin_free(text);
    return status;
}

lin_status lin_datadir_load(const char *path, const lin_datadir_options *options, lin_datadir **dir, lin_error *err)
{
    *dir = NULL;
    struct stat st;
    lin_datadir_options o = *options;
    if (stat(path, &st) != 0) return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    char *parent = o.audio_root ? NULL : parent_of(path);
    if (!o.audio_root && !parent) return no_memory(err, strlen(path));
    if (!o.audio_root) o.audio_root = parent;
    lin_status status = S_ISDIR(st.st_mode) ? load_directory(path, &o, dir, err) : load_list(path, &o, parent, dir, err);
    lin_free(parent);
    return status;
}

static void free_list(list *l)
{
    lin_free(l->items);
    lin_symbols_free(&l->names);
}

void lin_datadir_destroy(lin_datadir *dir)
{
    if (!dir) return;
    for (int i = 0; i < dir->n_texts; i++) lin_free(dir->texts[i]);
    lin_free(dir->texts);
    free_list(&dir->utterances);
    free_list(&dir->recordings);
    lin_free(dir);
}

int lin_datadir_count(const lin_datadir *dir) { return dir->utterances.count; }

const lin_utterance *lin_datadir_at(const lin_datadir *dir, int i) { return &dir->utterances.items[i]; }

int lin_datadir_has_parts(const lin_datadir *dir)
{
    int has = 0;
    for (int i = 0; i < dir->utterances.count; i++) has |= lin_cut_is_part(&dir->utterances.items[i].cut);
    return has;
}
