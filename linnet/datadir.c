// datadir.c - reading wav.scp, text, utt2spk, segments and lists, and the manifests of other toolkits; see datadir.h.

#include "linnet/datadir.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "linnet/find.h"

enum { MAX_LINE = 65536, MAX_ID = 255, MAX_OBJECT = 1 << 24 }; // MAX_OBJECT: a cut with thousands of supervisions

const char *const lin_datadir_names[LIN_DATADIR_FILES] = {"wav.scp", "text", "utt2spk", "segments", "reco2file_and_channel"};

typedef struct list {
    int count, room;
    lin_utterance *items;
    lin_symbols names; // item i has name i
} list;

struct lin_datadir {
    list utterances, recordings; // recordings: that the utterances are parts of
    int n_texts, room_texts;
    char **texts; // the strings that the utterances point to
};

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

// A file that is read into a list.
typedef struct reader {
    lin_datadir *dir;
    const lin_datadir_options *options;
    const lin_datadir_file *file, *main; // main: the file that names what its lines are about
    list *items;                         // of that file
    lin_lines lines;
} reader;

typedef struct piece {
    const char *at;
    size_t n;
} piece;

static piece piece_of(const char *text) { return (piece){text, text ? strlen(text) : 0}; }

static piece trim(piece p)
{
    while (p.n && lin_is_space(p.at[0])) p.at++, p.n--;
    while (p.n && lin_is_space(p.at[p.n - 1])) p.n--;
    return p;
}

static lin_status refuse(const reader *r, lin_error *err, const char *fmt, ...) LIN_PRINTF(3, 4);
static lin_status refuse(const reader *r, lin_error *err, const char *fmt, ...)
{
    char what[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->file->name, r->lines.number, what);
}

static lin_status check_bytes(const reader *r, piece line, lin_error *err)
{
    const size_t good = lin_utf8_prefix(line.at, line.n, "\t");
    if (good == line.n) return LIN_OK;
    const unsigned char c = (unsigned char)line.at[good];
    if (c == 0)
        return refuse(r, err, "a NUL byte at column %zu; is this a text file?", good + 1);
    return refuse(r, err, "byte 0x%02X at column %zu is %s", c, good + 1,
                  c < 0x20 || c == 0x7F ? "a control character" : "not UTF-8 text");
}

// The next line, without its line end; at the end of the file line->at is NULL. Empty lines are refused: the tool that wrote one
// has probably lost data.
static lin_status next_line(reader *r, piece *line, lin_error *err)
{
    *line = (piece){0};
    if (r->lines.number == INT_MAX) return refuse(r, err, "there are too many lines");
    if (!lin_lines_next(&r->lines)) return LIN_OK;
    *line = (piece){r->lines.text, r->lines.n};
    if (line->n > MAX_LINE) return refuse(r, err, "the line is longer than %d bytes", (int)MAX_LINE);
    LIN_TRY(check_bytes(r, *line, err));
    return trim(*line).n ? LIN_OK : refuse(r, err, "the line is empty; remove it");
}

static lin_status each_line(reader r, lin_status (*take)(const reader *r, piece line, lin_error *err), lin_error *err)
{
    piece line;
    lin_lines_begin(&r.lines, r.file->bytes, r.file->n_bytes);
    for (;;) {
        LIN_TRY(next_line(&r, &line, err));
        if (!line.at) return LIN_OK;
        LIN_TRY(take(&r, line, err));
    }
}

// "id rest"; the rest may be empty.
static lin_status split(const reader *r, piece line, piece *id, piece *rest, lin_error *err)
{
    *id = *rest = (piece){0};
    if (lin_is_space(line.at[0])) return refuse(r, err, "the line begins with white space instead of a name");
    size_t n = 0;
    while (n < line.n && !lin_is_space(line.at[n])) n++;
    *id = (piece){line.at, n};
    *rest = trim((piece){line.at + n, line.n - n});
    if (n > MAX_ID)
        return refuse(r, err, "a name of %zu bytes; the limit is %d", n, (int)MAX_ID);
    return LIN_OK;
}

/* ---- storage --------------------------------------------------------------------------------------------------------------- */

static char *copy(piece p) { return lin_text_copy(p.at, p.n); }

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

static lin_status no_memory(lin_error *err, size_t n) { return lin_no_memory(err, "a list of recordings", n); }

// Keeps a string made of n bytes (NULL: out of memory), which is freed with the directory, also on failure.
static lin_status keep(const reader *r, char *text, size_t n, const char **to, lin_error *err)
{
    lin_datadir *dir = r->dir;
    *to = NULL;
    if (!text || lin_grow_int(&dir->texts, &dir->room_texts, dir->n_texts + 1, sizeof *dir->texts, "texts", NULL)) {
        lin_free(text);
        return no_memory(err, n);
    }
    *to = dir->texts[dir->n_texts++] = text;
    return LIN_OK;
}

// Adds an item; its name must be new. cut.path NULL: an allocation has failed before.
static lin_status add_item(const reader *r, list *to, piece id, lin_cut cut, lin_error *err)
{
    int index;
    if (!cut.path) return no_memory(err, id.n);
    LIN_TRY(lin_symbols_add(&to->names, id.at, id.n, &index, err));
    if (index < to->count)
        return refuse(r, err, "%.*s is repeated; it is already in line %d", (int)id.n, id.at, to->items[index].line);
    LIN_TRY(lin_grow_int(&to->items, &to->room, to->count + 1, sizeof *to->items, "a list of recordings", err));
    to->items[to->count++] = (lin_utterance){.cut = cut, .line = r->lines.number};
    return LIN_OK;
}

// An utterance with this name. *of: valid until the next. LIN_FORMAT if the name is repeated, too long or has white space.
static lin_status add_utterance(const reader *r, piece id, lin_cut cut, lin_utterance **of, lin_error *err)
{
    list *all = &r->dir->utterances;
    if (id.n == 0 || id.n > MAX_ID)
        return refuse(r, err, "a name of %zu bytes; must be 1 to %d", id.n, (int)MAX_ID);
    for (size_t i = 0; i < id.n; i++)
        if ((unsigned char)id.at[i] <= ' ' || id.at[i] == 127)
            return refuse(r, err, "the name '%.*s' has a blank", (int)id.n, id.at);
    LIN_TRY(add_item(r, all, id, cut, err));
    *of = &all->items[all->count - 1];
    return LIN_OK;
}

// One whose name is that of its path, without the extension and without characters that CTM and TRN files do not allow;
// from_ms: of a part, else -1.
static lin_status add_named(const reader *r, piece path, int64_t from_ms, lin_cut cut, lin_utterance **of, lin_error *err)
{
    char id[2 * MAX_ID];
    if (path.n > MAX_ID)
        return refuse(r, err, "a path longer than %d bytes", (int)MAX_ID);
    snprintf(id, sizeof id, "%.*s", (int)path.n, path.at);
    char *dot = strrchr(id, '.'), *slash = strrchr(id, '/');
    if (dot && dot > (slash ? slash + 1 : id)) *dot = '\0';
    for (char *c = id; *c; c++)
        if (*c == ' ' || *c == '(' || *c == ')') *c = '_';
    const size_t length = strlen(id);
    if (from_ms >= 0) snprintf(id + length, sizeof id - length, "-%07lld", (long long)from_ms);
    return add_utterance(r, (piece){id, strlen(id)}, cut, of, err);
}

static lin_status set_text(const reader *r, lin_utterance *u, piece words, lin_error *err)
{
    return keep(r, copy_words(words), words.n, &u->text, err);
}

// A file's path, or a command; `of`: whose sound it is.
static lin_status set_source(const reader *r, piece of, piece path, lin_cut *cut, lin_error *err)
{
    if (cut->is_command && !r->options->allow_commands)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "%s:%d: the sound of %.*s comes from a command; --allow-commands runs such commands, or save its output "
                        "to a file and give that path", r->file->name, r->lines.number, (int)of.n, of.at);
    return keep(r, cut->is_command ? copy(path) : join(r->options->audio_root, path), path.n, &cut->path, err);
}

// The sound at a path, or of a command, which ends in '|'.
static lin_status find_cut(const reader *r, piece id, piece path, lin_cut *cut, lin_error *err)
{
    *cut = (lin_cut){0};
    if (path.n == 0) return refuse(r, err, "the path of the sound file is missing");
    cut->is_command = path.at[path.n - 1] == '|';
    if (cut->is_command) path = trim((piece){path.at, path.n - 1});
    if (path.n == 0) return refuse(r, err, "there is no command before '|'");
    return set_source(r, id, path, cut, err);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static lin_status read_wav_scp(const reader *r, piece line, lin_error *err)
{
    piece id, path;
    lin_cut cut;
    LIN_TRY(split(r, line, &id, &path, err));
    LIN_TRY(find_cut(r, id, path, &cut, err));
    return add_item(r, r->items, id, cut, err);
}

// Finds what a line names among the items of the file `main`.
static lin_status find_item(const reader *r, piece id, lin_utterance **item, lin_error *err)
{
    const int index = lin_symbols_find(&r->items->names, id.at, id.n);
    *item = index >= 0 ? &r->items->items[index] : NULL;
    if (index >= 0) return LIN_OK;
    return refuse(r, err, "%.*s has no sound: it is not listed in %s", (int)id.n, id.at, r->main->name);
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
static lin_status read_segments(const reader *r, piece line, lin_error *err)
{
    piece field[5];
    lin_utterance *recording;
    double start = 0, end = 0;
    const int n = fields_of(line, field, 5);
    if (n < 4 || !lin_text_number(field[2].at, field[2].n, &start) || !lin_text_number(field[3].at, field[3].n, &end))
        return refuse(r, err, "the line must be a name, a recording, and a start and end in seconds");
    if (field[0].n > MAX_ID) return refuse(r, err, "the name is longer than 255 bytes");
    LIN_TRY(find_item(r, field[1], &recording, err));
    lin_cut cut = recording->cut;
    if (!(start >= 0 && start < 1e9) || !(end == -1 || (end > start && end < 1e9)))
        return refuse(r, err, "%.*s is from %g to %g s; must be 0 <= start < end", (int)field[0].n, field[0].at, start, end);
    const int channel = n == 5 ? whole_number(field[4]) : 0;
    if (channel < 0 || channel >= LIN_AUDIO_MAX_CHANNELS) return refuse(r, err, "the channel must be a number from 0 to 63");
    if (n == 5) cut.channel = channel + 1;
    cut.part = (lin_part){start, end > 0 ? end : 0};
    return add_item(r, &r->dir->utterances, field[0], cut, err);
}

// "call7 sw7 A"
static lin_status read_channels(const reader *r, piece line, lin_error *err)
{
    piece field[3];
    lin_utterance *recording;
    if (fields_of(line, field, 3) != 3) return refuse(r, err, "the line must be a recording, a file and a channel");
    const char side = lin_lower(field[2].at[0]);
    const int channel = field[2].n == 1 && (side == 'a' || side == 'b') ? 1 + (side == 'b') : whole_number(field[2]);
    if (channel < 1 || channel > LIN_AUDIO_MAX_CHANNELS) return refuse(r, err, "the channel must be A, B or 1 to 64");
    LIN_TRY(find_item(r, field[0], &recording, err));
    recording->cut.channel = channel;
    return LIN_OK;
}

static lin_status read_texts(const reader *r, piece line, lin_error *err)
{
    piece id, words;
    lin_utterance *u;
    LIN_TRY(split(r, line, &id, &words, err));
    LIN_TRY(find_item(r, id, &u, err));
    if (u->text)
        return refuse(r, err, "%.*s already has a transcript", (int)id.n, id.at);
    if (words.n == 0 && r->options->need_text)
        return refuse(r, err, "the transcript of %.*s is empty", (int)id.n, id.at);
    return set_text(r, u, words, err);
}

// A name without blanks and of a length that results can hold; at NULL: none.
static lin_status take_speaker(const reader *r, lin_utterance *u, piece name, lin_error *err)
{
    if (!name.at) return LIN_OK;
    if (name.n == 0 || name.n > MAX_ID || memchr(name.at, ' ', name.n) || memchr(name.at, '\t', name.n))
        return refuse(r, err, "the speaker must be one name of 1 to %d bytes", (int)MAX_ID);
    return keep(r, copy(name), name.n, &u->speaker, err);
}

static lin_status read_speakers(const reader *r, piece line, lin_error *err)
{
    piece id, speaker;
    lin_utterance *u;
    LIN_TRY(split(r, line, &id, &speaker, err));
    LIN_TRY(find_item(r, id, &u, err));
    if (u->speaker)
        return refuse(r, err, "%.*s already has a speaker", (int)id.n, id.at);
    return take_speaker(r, u, speaker, err);
}

static lin_status read_list(const reader *r, piece line, lin_error *err)
{
    lin_cut cut;
    lin_utterance *u;
    const char *tab = memchr(line.at, '\t', line.n);
    const size_t n = tab ? (size_t)(tab - line.at) : line.n;
    const piece path = trim((piece){line.at, n}), words = tab ? trim((piece){tab, line.n - n}) : (piece){0};
    if (r->options->need_text && words.n == 0)
        return refuse(r, err, "no transcript: the line must be a path, a tab and the transcript");
    if (path.n == 0) return refuse(r, err, "the path before the tab is empty");
    LIN_TRY(find_cut(r, path, path, &cut, err));
    LIN_TRY(add_named(r, path, -1, cut, &u, err));
    return tab ? set_text(r, u, words, err) : LIN_OK;
}

/* ---- values of an object --------------------------------------------------------------------------------------------------- */

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

// The first of these keys that has a string of one line, or NULL. Only texts may have several lines.
static const char *string_of(const cJSON *object, const char *const *keys)
{
    for (; *keys; keys++) {
        const cJSON *item = get(object, *keys);
        if (cJSON_IsObject(item)) item = get(item, "path");
        if (cJSON_IsString(item) && *item->valuestring && !strpbrk(item->valuestring, "\t\n\r")) return item->valuestring;
    }
    return NULL;
}

// A time in seconds, at least `least`; missing or null: the value that was there before.
static lin_status time_from(double least, const reader *r, const cJSON *object, const char *key, double *value, lin_error *err)
{
    const cJSON *item = get(object, key);
    if (!item || cJSON_IsNull(item)) return LIN_OK;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble < 1e9))
        return refuse(r, err, "\"%s\" is not a time in seconds", key);
    *value = item->valuedouble;
    return LIN_OK;
}

static lin_status time_of(const reader *r, const cJSON *object, const char *key, double *value, lin_error *err)
{
    return time_from(0, r, object, key, value, err);
}

static const char *const text_keys[] = {"text", "sentence", "transcription", "transcript", NULL};

// The first text of an object, which may be NULL.
static lin_status take_text(const reader *r, lin_utterance *u, const cJSON *object, lin_error *err)
{
    const char *text = NULL;
    for (int i = 0; text_keys[i] && !text; i++) {
        const cJSON *item = get(object, text_keys[i]);
        if (cJSON_IsString(item) && *item->valuestring) text = item->valuestring;
    }
    if (!text) return LIN_OK;
    LIN_TRY(set_text(r, u, trim(piece_of(text)), err));
    return !*u->text && r->options->need_text ? refuse(r, err, "the transcript is empty") : LIN_OK;
}

/* ---- NeMo and its kind ----------------------------------------------------------------------------------------------------- */

static const char *const path_keys[] = {"audio_filepath", "audio_path", "audio_file", "file_name", "path", "wav", "audio", NULL};
static const char *const id_keys[] = {"id", "utt_id", "key", NULL};
static const char *const speaker_keys[] = {"speaker", "speaker_id", "client_id", NULL};

static lin_status read_entry(const reader *r, const cJSON *object, piece line, lin_error *err)
{
    const char *path = string_of(object, path_keys), *id = string_of(object, id_keys);
    double offset = -1, duration = 0;
    lin_cut cut = {0};
    lin_utterance *u;
    if (!path) return refuse(r, err, "the object names no sound: it has no \"audio_filepath\", nor \"audio\" or \"path\"");
    LIN_TRY(time_of(r, object, "offset", &offset, err));
    LIN_TRY(time_of(r, object, "duration", &duration, err));
    LIN_TRY(set_source(r, piece_of(path), piece_of(path), &cut, err));
    // Without an offset the duration is that of the file, often rounded.
    if (offset >= 0) cut.part = (lin_part){offset, duration > 0 ? offset + duration : 0};
    const int64_t from_ms = offset >= 0 ? llround(offset * 1000) : -1;
    if (id) LIN_TRY(add_utterance(r, piece_of(id), cut, &u, err));
    else LIN_TRY(add_named(r, piece_of(path), from_ms, cut, &u, err));
    LIN_TRY(take_text(r, u, object, err));
    LIN_TRY(take_speaker(r, u, piece_of(string_of(object, speaker_keys)), err));
    return keep(r, copy(line), line.n, &u->record, err);
}

/* ---- Lhotse ---------------------------------------------------------------------------------------------------------------- */

// A channel of Lhotse: a number from 0, or a list with one.
static int channel_of(const cJSON *item)
{
    if (cJSON_IsArray(item) && cJSON_GetArraySize(item) == 1) item = item->child;
    if (!item || cJSON_IsNull(item)) return 0;
    const double c = cJSON_IsNumber(item) ? item->valuedouble : -1;
    return c >= 0 && c < LIN_AUDIO_MAX_CHANNELS && c == floor(c) ? (int)c + 1 : -1;
}

// The one source of the recording: a file, or a command.
static lin_status read_source(const reader *r, const cJSON *recording, lin_cut *cut, lin_error *err)
{
    static const char *const source_keys[] = {"source", NULL};
    const cJSON *sources = get(recording, "sources"), *source = cJSON_IsArray(sources) ? sources->child : NULL;
    static const char *const type_keys[] = {"type", NULL};
    const char *name = string_of(source, source_keys), *type = string_of(source, type_keys);
    if (!name || source->next) return refuse(r, err, "the cut's recording must have one source");
    cut->is_command = type && strcmp(type, "command") == 0;
    if (!cut->is_command && (!type || strcmp(type, "file") != 0))
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: the source of the sound is not a file, but of type %.40s", r->file->name,
                        r->lines.number, type ? type : "none");
    return set_source(r, piece_of(name), piece_of(name), cut, err);
}

// From `start` on; duration 0: to the end.
static lin_status add_part(const reader *r, const cJSON *object, lin_cut cut, double start, double duration, lin_utterance **u,
                           lin_error *err)
{
    const char *id = string_of(object, id_keys);
    if (!id) return refuse(r, err, "a cut or supervision without \"id\"");
    cut.part = (lin_part){start, duration > 0 ? start + duration : 0};
    return add_utterance(r, piece_of(id), cut, u, err);
}

static lin_status read_cut(const reader *r, const cJSON *object, piece line, lin_error *err)
{
    const cJSON *supervisions = get(object, "supervisions"), *s = cJSON_IsArray(supervisions) ? supervisions->child : NULL;
    double start = 0, duration = 0;
    lin_cut cut = {.channel = channel_of(get(object, "channel"))};
    lin_utterance *u;
    if (!cJSON_IsObject(get(object, "recording")))
        return refuse(r, err, "the cut has no recording; only cuts of one recording can be read");
    if (cut.channel < 0) return refuse(r, err, "the cut must have one channel");
    LIN_TRY(read_source(r, get(object, "recording"), &cut, err));
    LIN_TRY(time_of(r, object, "start", &start, err));
    LIN_TRY(time_of(r, object, "duration", &duration, err));
    if (!s || !s->next) { // the cut is the utterance
        LIN_TRY(add_part(r, object, cut, start, duration, &u, err));
        LIN_TRY(take_text(r, u, s, err));
        LIN_TRY(take_speaker(r, u, s ? piece_of(string_of(s, speaker_keys)) : (piece){0}, err));
        return keep(r, copy(line), line.n, &u->record, err);
    }
    for (; s; s = s->next) {
        double from = 0, long_s = 0;
        lin_cut part = cut;
        const int channel = channel_of(get(s, "channel"));
        if (channel > 0) part.channel = channel;
        // Supervisions are relative to their cut, and may begin before it; the recording has nothing before 0.
        LIN_TRY(time_from(-1e9, r, s, "start", &from, err));
        LIN_TRY(time_of(r, s, "duration", &long_s, err));
        const double before = start + from < 0 ? -(start + from) : 0;
        if (before > 0 && long_s > 0 && long_s <= before)
            return refuse(r, err, "a supervision ends before its recording begins");
        if (long_s > 0) long_s -= before;
        LIN_TRY(add_part(r, s, part, start + from + before, long_s, &u, err));
        LIN_TRY(take_text(r, u, s, err));
        LIN_TRY(take_speaker(r, u, piece_of(string_of(s, speaker_keys)), err));
    }
    return LIN_OK;
}

/* ---- JSON lines ------------------------------------------------------------------------------------------------------------ */

static lin_status read_object(const reader *r, piece line, lin_error *err)
{
    char name[512];
    cJSON *json;
    snprintf(name, sizeof name, "%.400s:%d: the line", r->file->name, r->lines.number);
    LIN_TRY(lin_json_parse(line.at, line.n, name, 0, &json, err));
    lin_status status;
    if (!cJSON_IsObject(json)) status = refuse(r, err, "a line must hold one JSON object");
    else if (get(json, "recording") || get(json, "tracks")) status = read_cut(r, json, line, err);
    else status = read_entry(r, json, line, err);
    cJSON_Delete(json);
    return status;
}

static lin_status read_objects(reader r, lin_error *err)
{
    lin_lines_begin(&r.lines, r.file->bytes, r.file->n_bytes);
    while (lin_lines_next(&r.lines)) {
        const piece line = trim((piece){r.lines.text, r.lines.n});
        if (line.n > MAX_OBJECT) return refuse(&r, err, "a line of over 16 MB");
        if (line.n) LIN_TRY(read_object(&r, line, err));
    }
    return LIN_OK;
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------- */

enum { COLUMN_PATH, COLUMN_TEXT, COLUMN_SPEAKER, COLUMNS };
static const char *const column_names[COLUMNS] = {"path", "sentence", "client_id"};

// Field number `which` of a line; n 0 if there is none.
static piece field_at(const lin_lines *line, int which)
{
    const char *at = line->text, *end = line->text + line->n;
    for (; which > 0 && at; which--) {
        at = memchr(at, '\t', (size_t)(end - at));
        if (at) at++;
    }
    if (which < 0 || !at) return (piece){"", 0};
    const char *tab = memchr(at, '\t', (size_t)(end - at));
    return (piece){at, (size_t)((tab ? tab : end) - at)};
}

// The columns by their names in the first line; -1: not there.
static void find_columns(const lin_lines *head, int columns[COLUMNS])
{
    for (int c = 0; c < COLUMNS; c++) columns[c] = -1;
    int n = 1;
    for (size_t i = 0; i < head->n; i++) n += head->text[i] == '\t';
    for (int i = 0; i < n && i < 256; i++) {
        const piece f = field_at(head, i);
        for (int c = 0; c < COLUMNS; c++) {
            if (columns[c] < 0 && f.n == strlen(column_names[c]) && memcmp(f.at, column_names[c], f.n) == 0) columns[c] = i;
        }
    }
}

static lin_status read_row(const reader *r, const int columns[COLUMNS], lin_error *err)
{
    const lin_lines *line = &r->lines;
    const piece path = field_at(line, columns[COLUMN_PATH]), text = field_at(line, columns[COLUMN_TEXT]);
    const piece speaker = field_at(line, columns[COLUMN_SPEAKER]);
    lin_utterance *u;
    const size_t good = lin_utf8_prefix(line->text, line->n, "\t");
    if (good < line->n)
        return refuse(r, err, "byte 0x%02X at column %zu is not UTF-8 text", (unsigned char)line->text[good], good + 1);
    if (path.n == 0) return refuse(r, err, "the column \"path\" is empty");
    if (text.n == 0 && r->options->need_text) return refuse(r, err, "the column \"sentence\" is empty");
    lin_cut cut = {0};
    LIN_TRY(set_source(r, path, path, &cut, err));
    LIN_TRY(add_named(r, path, -1, cut, &u, err));
    if (text.n) LIN_TRY(set_text(r, u, trim(text), err));
    return speaker.n ? take_speaker(r, u, speaker, err) : LIN_OK;
}

static lin_status read_table(reader r, lin_error *err)
{
    int columns[COLUMNS];
    lin_lines_begin(&r.lines, r.file->bytes, r.file->n_bytes);
    if (!lin_lines_next(&r.lines)) return LIN_OK; // which lists nothing
    find_columns(&r.lines, columns);
    while (lin_lines_next(&r.lines))
        if (r.lines.n) LIN_TRY(read_row(&r, columns, err));
    return LIN_OK;
}

static int is_table(const lin_datadir_file *file)
{
    lin_lines lines = {0};
    int columns[COLUMNS];
    lin_lines_begin(&lines, file->bytes, file->n_bytes);
    if (!lin_lines_next(&lines)) return 0;
    find_columns(&lines, columns);
    return columns[COLUMN_PATH] >= 0 && columns[COLUMN_TEXT] >= 0;
}

static int is_objects(const lin_datadir_file *file)
{
    size_t at = lin_text_mark(file->bytes, file->n_bytes);
    while (at < file->n_bytes && (lin_is_space(file->bytes[at]) || file->bytes[at] == '\n')) at++;
    const int is_array = at < file->n_bytes && file->bytes[at] == '['; // which read_object refuses
    at += (size_t)is_array;
    while (is_array && at < file->n_bytes && (lin_is_space(file->bytes[at]) || file->bytes[at] == '\n')) at++;
    return at < file->n_bytes && file->bytes[at] == '{';
}

/* ---- all of a list --------------------------------------------------------------------------------------------------------- */

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
    reader of = {.dir = dir, .options = o, .file = wav, .main = wav, .items = recordings};
    lin_status status = each_line(of, read_wav_scp, err);
    of.file = channels;
    if (status == LIN_OK && channels->bytes) status = each_line(of, read_channels, err);
    of.file = segments;
    if (status == LIN_OK && segments->bytes) status = each_line(of, read_segments, err);
    of = (reader){.dir = dir, .options = o, .file = text, .main = main, .items = &dir->utterances};
    if (status == LIN_OK && text->bytes) status = each_line(of, read_texts, err);
    of.file = speakers;
    if (status == LIN_OK && speakers->bytes) status = each_line(of, read_speakers, err);
    if (status == LIN_OK) status = complete(dir, main, text, o->need_text, speakers, err);
    return finish(dir, status, out);
}

lin_status lin_datadir_parse_list(const lin_datadir_file *file, const lin_datadir_options *o, lin_datadir **out, lin_error *err)
{
    *out = NULL;
    reader r = {.dir = lin_calloc(1, sizeof *r.dir), .options = o, .file = file};
    if (!r.dir) return no_memory(err, sizeof *r.dir);
    lin_status status =
        is_objects(file) ? read_objects(r, err) : is_table(file) ? read_table(r, err) : each_line(r, read_list, err);
    if (status == LIN_OK) status = complete(r.dir, file, file, o->need_text, NULL, err);
    return finish(r.dir, status, out);
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
    LIN_TRY(lin_file_map_open(*full, map, err));
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
    lin_datadir_options o = *given;
    lin_datadir_file file = {.name = path};
    lin_status status = LIN_OK;
    LIN_TRY(lin_text_read(path, &text, &file.n_bytes, err));
    file.bytes = text;
    if (parent && !is_objects(&file) && is_table(&file)) { // Common Voice has its sound in a folder beside the tables
        clips = join(parent, (piece){"clips", 5});
        if (!clips) status = no_memory(err, strlen(parent));
        else if (lin_is_folder(clips)) o.audio_root = clips;
    }
    if (status == LIN_OK) status = lin_datadir_parse_list(&file, &o, dir, err);
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
