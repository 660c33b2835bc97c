// manifest.c - lists of recordings as other toolkits write them; see manifest.h.

#include "linnet/manifest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "linnet/datadir_internal.h"

enum { MAX_LINE = 1 << 24 }; // of a cut with thousands of supervisions

typedef struct reader {
    lin_datadir *dir;
    const lin_datadir_options *options;
    const char *file;
    int line;
} reader;

static lin_status no_memory(lin_error *err) { return lin_no_memory(err, "a list of recordings", 0); }

static lin_status refuse(const reader *r, lin_error *err, const char *what)
{
    return lin_fail(err, LIN_FORMAT, "%s:%d: %s", r->file, r->line, what);
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
        return lin_fail(err, LIN_FORMAT, "%s:%d: \"%s\" is no time in seconds", r->file, r->line, key);
    *value = item->valuedouble;
    return LIN_OK;
}

static lin_status time_of(const reader *r, const cJSON *object, const char *key, double *value, lin_error *err)
{
    return time_from(0, r, object, key, value, err);
}

static const char *const texts[] = {"text", "sentence", "transcription", "transcript", NULL};

// The first text of an object, which may be NULL.
static lin_status set_text(const reader *r, lin_utterance *u, const cJSON *object, lin_error *err)
{
    const char *text = NULL;
    for (int i = 0; texts[i] && !text; i++) {
        const cJSON *item = get(object, texts[i]);
        if (cJSON_IsString(item) && *item->valuestring) text = item->valuestring;
    }
    if (!text) return LIN_OK;
    u->text = lin_datadir_keep_words(r->dir, text, strlen(text));
    if (u->text && !*u->text && r->options->need_text) return refuse(r, err, "the transcript is empty");
    return u->text ? LIN_OK : no_memory(err);
}

// A name without blanks and of a length that results can hold.
static lin_status set_speaker(const reader *r, lin_utterance *u, const char *name, lin_error *err)
{
    if (!name) return LIN_OK;
    if (!*name || strlen(name) > LIN_DATADIR_ID_MAX || strchr(name, ' '))
        return lin_fail(err, LIN_FORMAT, "%s:%d: the speaker must be one name of 1 to %d bytes", r->file, r->line,
                        (int)LIN_DATADIR_ID_MAX);
    u->speaker = lin_datadir_keep(r->dir, name, strlen(name));
    return u->speaker ? LIN_OK : no_memory(err);
}

static lin_status set_path(const reader *r, const char *path, lin_cut *cut, lin_error *err)
{
    cut->path = lin_datadir_keep_path(r->dir, r->options->audio_root, path, strlen(path));
    return cut->path ? LIN_OK : no_memory(err);
}

/* ---- NeMo and its kind ----------------------------------------------------------------------------------------------------- */

static const char *const paths[] = {"audio_filepath", "audio_path", "audio_file", "file_name", "path", "wav", "audio", NULL};
static const char *const ids[] = {"id", "utt_id", "key", NULL};
static const char *const speakers[] = {"speaker", "speaker_id", "client_id", NULL};

static lin_status read_entry(const reader *r, const cJSON *object, const char *line, size_t n, lin_error *err)
{
    const char *path = string_of(object, paths), *id = string_of(object, ids);
    double offset = -1, duration = 0;
    lin_cut cut = {0};
    lin_utterance *u;
    if (!path) return refuse(r, err, "the object names no sound: it has no \"audio_filepath\", nor \"audio\" or \"path\"");
    lin_status status = time_of(r, object, "offset", &offset, err);
    if (status == LIN_OK) status = time_of(r, object, "duration", &duration, err);
    if (status == LIN_OK) status = set_path(r, path, &cut, err);
    if (status != LIN_OK) return status;
    // Without an offset the duration is that of the file, often rounded.
    if (offset >= 0) cut.part = (lin_part){offset, duration > 0 ? offset + duration : 0};
    const int64_t from_ms = offset >= 0 ? llround(offset * 1000) : -1;
    if (id) status = lin_datadir_add(r->dir, r->file, r->line, id, strlen(id), cut, &u, err);
    else status = lin_datadir_add_named(r->dir, r->file, r->line, path, strlen(path), from_ms, cut, &u, err);
    if (status == LIN_OK) status = set_text(r, u, object, err);
    if (status == LIN_OK) status = set_speaker(r, u, string_of(object, speakers), err);
    if (status != LIN_OK) return status;
    u->record = lin_datadir_keep(r->dir, line, n);
    return u->record ? LIN_OK : no_memory(err);
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
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: the source of the sound is no file, but of type %.40s", r->file, r->line,
                        type ? type : "none");
    if (cut->is_command && !r->options->allow_commands)
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: the sound comes from a command; --allow-commands runs such commands",
                        r->file, r->line);
    if (!cut->is_command) return set_path(r, name, cut, err);
    cut->path = lin_datadir_keep(r->dir, name, strlen(name));
    return cut->path ? LIN_OK : no_memory(err);
}

// From `start` on; duration 0: to the end.
static lin_status add_part(const reader *r, const cJSON *object, lin_cut cut, double start, double duration, lin_utterance **u,
                           lin_error *err)
{
    const char *id = string_of(object, ids);
    if (!id) return refuse(r, err, "a cut or supervision without \"id\"");
    cut.part = (lin_part){start, duration > 0 ? start + duration : 0};
    return lin_datadir_add(r->dir, r->file, r->line, id, strlen(id), cut, u, err);
}

static lin_status read_cut(const reader *r, const cJSON *object, const char *line, size_t n, lin_error *err)
{
    const cJSON *supervisions = get(object, "supervisions"), *s = cJSON_IsArray(supervisions) ? supervisions->child : NULL;
    double start = 0, duration = 0;
    lin_cut cut = {.channel = channel_of(get(object, "channel"))};
    lin_utterance *u;
    if (!cJSON_IsObject(get(object, "recording")))
        return refuse(r, err, "the cut has no recording; only cuts of one can be read");
    if (cut.channel < 0) return refuse(r, err, "the cut must have one channel");
    lin_status status = read_source(r, get(object, "recording"), &cut, err);
    if (status == LIN_OK) status = time_of(r, object, "start", &start, err);
    if (status == LIN_OK) status = time_of(r, object, "duration", &duration, err);
    if (status == LIN_OK && (!s || !s->next)) { // the cut is the utterance
        status = add_part(r, object, cut, start, duration, &u, err);
        if (status == LIN_OK) status = set_text(r, u, s, err);
        if (status == LIN_OK) status = set_speaker(r, u, s ? string_of(s, speakers) : NULL, err);
        if (status == LIN_OK) u->record = lin_datadir_keep(r->dir, line, n);
        return status == LIN_OK && !u->record ? no_memory(err) : status;
    }
    for (; s && status == LIN_OK; s = s->next) {
        double from = 0, long_s = 0;
        lin_cut part = cut;
        const int channel = channel_of(get(s, "channel"));
        if (channel > 0) part.channel = channel;
        // Supervisions are relative to their cut, and may begin before it; the recording has nothing before 0.
        status = time_from(-1e9, r, s, "start", &from, err);
        if (status == LIN_OK) status = time_of(r, s, "duration", &long_s, err);
        const double before = start + from < 0 ? -(start + from) : 0;
        if (status == LIN_OK && before > 0 && long_s > 0 && long_s <= before)
            status = refuse(r, err, "a supervision ends before its recording begins");
        if (long_s > 0) long_s -= before;
        if (status == LIN_OK) status = add_part(r, s, part, start + from + before, long_s, &u, err);
        if (status == LIN_OK) status = set_text(r, u, s, err);
        if (status == LIN_OK) status = set_speaker(r, u, string_of(s, speakers), err);
    }
    return status;
}

/* ---- JSON lines ------------------------------------------------------------------------------------------------------------ */

static lin_status read_object(const reader *r, const char *line, size_t n, lin_error *err)
{
    char name[512];
    cJSON *json;
    snprintf(name, sizeof name, "%.400s:%d: the line", r->file, r->line);
    lin_status status = lin_json_parse(line, n, name, 0, &json, err);
    if (status != LIN_OK) return status;
    if (!cJSON_IsObject(json)) status = refuse(r, err, "a line must hold one JSON object");
    else if (get(json, "recording") || get(json, "tracks")) status = read_cut(r, json, line, n, err);
    else status = read_entry(r, json, line, n, err);
    cJSON_Delete(json);
    return status;
}

static lin_status read_objects(reader *r, const lin_datadir_file *file, lin_error *err)
{
    lin_lines lines = {0};
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, file->bytes, file->n_bytes);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text;
        size_t n = lines.n;
        while (n && lin_is_space(*at)) at++, n--;
        while (n && lin_is_space(at[n - 1])) n--;
        r->line = lines.number;
        if (n == 0) continue;
        status = n > MAX_LINE ? refuse(r, err, "a line of over 16 MB") : read_object(r, at, n, err);
    }
    return status;
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------- */

typedef struct field {
    const char *text;
    size_t n;
} field;

enum { COLUMN_PATH, COLUMN_TEXT, COLUMN_SPEAKER, COLUMNS };
static const char *const column_names[COLUMNS] = {"path", "sentence", "client_id"};

// Field number `which` of a line; n 0 if there is none.
static field field_at(const lin_lines *line, int which)
{
    const char *at = line->text, *end = line->text + line->n;
    for (; which > 0 && at; which--) {
        at = memchr(at, '\t', (size_t)(end - at));
        if (at) at++;
    }
    if (which < 0 || !at) return (field){"", 0};
    const char *tab = memchr(at, '\t', (size_t)(end - at));
    return (field){at, (size_t)((tab ? tab : end) - at)};
}

// The columns by their names in the first line; -1: not there.
static void find_columns(const lin_lines *head, int columns[COLUMNS])
{
    for (int c = 0; c < COLUMNS; c++) columns[c] = -1;
    int n = 1;
    for (size_t i = 0; i < head->n; i++) n += head->text[i] == '\t';
    for (int i = 0; i < n && i < 256; i++) {
        const field f = field_at(head, i);
        for (int c = 0; c < COLUMNS; c++) {
            if (columns[c] < 0 && f.n == strlen(column_names[c]) && memcmp(f.text, column_names[c], f.n) == 0) columns[c] = i;
        }
    }
}

static lin_status read_row(const reader *r, const lin_lines *line, const int columns[COLUMNS], lin_error *err)
{
    const field path = field_at(line, columns[COLUMN_PATH]), text = field_at(line, columns[COLUMN_TEXT]);
    const field speaker = field_at(line, columns[COLUMN_SPEAKER]);
    lin_utterance *u;
    const size_t good = lin_utf8_prefix(line->text, line->n, "\t");
    if (good < line->n)
        return lin_fail(err, LIN_FORMAT, "%s:%d: byte 0x%02X at column %zu is not UTF-8 text", r->file, r->line,
                        (unsigned char)line->text[good], good + 1);
    if (path.n == 0) return refuse(r, err, "the column \"path\" is empty");
    if (text.n == 0 && r->options->need_text) return refuse(r, err, "the column \"sentence\" is empty");
    lin_cut cut = {.path = lin_datadir_keep_path(r->dir, r->options->audio_root, path.text, path.n)};
    if (!cut.path) return no_memory(err);
    lin_status status = lin_datadir_add_named(r->dir, r->file, r->line, path.text, path.n, -1, cut, &u, err);
    if (status != LIN_OK) return status;
    if (text.n && !(u->text = lin_datadir_keep_words(r->dir, text.text, text.n))) return no_memory(err);
    if (!speaker.n) return LIN_OK;
    const char *name = lin_datadir_keep(r->dir, speaker.text, speaker.n);
    return name ? set_speaker(r, u, name, err) : no_memory(err);
}

static lin_status read_table(reader *r, const lin_datadir_file *file, lin_error *err)
{
    lin_lines lines = {0};
    int columns[COLUMNS];
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, file->bytes, file->n_bytes);
    if (!lin_lines_next(&lines)) return LIN_OK; // which lists nothing
    find_columns(&lines, columns);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        r->line = lines.number;
        if (lines.n) status = read_row(r, &lines, columns, err);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------------------------- */

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

lin_manifest_kind lin_manifest_is(const lin_datadir_file *file)
{
    return is_objects(file) ? LIN_MANIFEST_OBJECTS : is_table(file) ? LIN_MANIFEST_TABLE : LIN_MANIFEST_NONE;
}

lin_status lin_manifest_parse(const lin_datadir_file *file, const lin_datadir_options *options, lin_datadir **out, lin_error *err)
{
    *out = NULL;
    reader r = {.dir = lin_calloc(1, sizeof(lin_datadir)), .options = options, .file = file->name};
    if (!r.dir) return no_memory(err);
    const lin_status status = (is_objects(file) ? read_objects : read_table)(&r, file, err);
    return lin_datadir_finish(r.dir, status, file->name, options->need_text, out, err);
}
