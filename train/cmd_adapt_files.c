// cmd_adapt_files.c - see cmd_adapt_files.h.

#include "train/cmd_adapt_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "lexicon/transcript.h"

// The words of a text in small letters, single blanks between them; *words: how many.
static lin_status spell(const char *text, size_t n, lin_buffer *out, long *words, lin_error *err)
{
    lin_spelling word = {0};
    size_t at = 0;
    lin_status status;
    *words = 0;
    while ((status = lin_spelling_next(text, n, &at, &word, err)) == LIN_OK && word.n) {
        if ((*words)++) lin_buffer_char(out, ' ');
        lin_buffer_bytes(out, word.word, word.n);
    }
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

/* ---- data directories ------------------------------------------------------------------------------------------------------ */

typedef struct set {
    const char *name;
    lin_buffer text, scp, speakers, segments; // segments: written if some are parts of a sound, or have a channel
    int has_parts;
} set;

static void put_line(lin_buffer *out, const char *id, const char *value, size_t n)
{
    lin_buffer_text(out, id);
    lin_buffer_char(out, ' ');
    lin_buffer_bytes(out, value, n);
    lin_buffer_char(out, '\n');
}

static void put_utterance(set *s, const lin_utterance *u, const lin_buffer *words)
{
    char whole[PATH_MAX];
    const lin_cut *cut = &u->cut;
    const char *audio = realpath(cut->path, whole) ? whole : cut->path; // prepare reports one that is missing
    put_line(&s->text, u->id, words->data, words->n);
    put_line(&s->scp, u->id, audio, strlen(audio));
    put_line(&s->speakers, u->id, u->speaker, strlen(u->speaker));
    s->has_parts |= lin_cut_is_part(cut) || cut->channel > 0;
    const double end_s = cut->part.end_s > 0 ? cut->part.end_s : -1;
    lin_buffer_format(&s->segments, "%s %s %.17g %.17g", u->id, u->id, cut->part.start_s, end_s);
    if (cut->channel > 0) lin_buffer_format(&s->segments, " %d", cut->channel - 1);
    lin_buffer_char(&s->segments, '\n');
}

static lin_status write_file(const char *folder, const char *set_name, const char *name, const lin_buffer *buffer, lin_error *err)
{
    char path[PATH_MAX];
    const lin_status status = lin_buffer_status(buffer, err);
    if (status != LIN_OK) return status;
    if (snprintf(path, sizeof path, "%s/%s%s%s", folder, set_name, *set_name ? "/" : "", name) >= (int)sizeof path)
        return lin_fail(err, LIN_INVALID, "the name of the folder %.200s... is too long", folder);
    return lin_file_write_all(path, buffer->n ? buffer->data : "", buffer->n, err);
}

static lin_status write_set(const char *folder, const set *s, lin_error *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, s->name);
    lin_status status = lin_make_folders(path, n < PATH_MAX ? (size_t)n : PATH_MAX, err);
    if (status == LIN_OK) status = write_file(folder, s->name, "text", &s->text, err);
    if (status == LIN_OK) status = write_file(folder, s->name, "wav.scp", &s->scp, err);
    if (status == LIN_OK && s->has_parts) status = write_file(folder, s->name, "segments", &s->segments, err);
    return status == LIN_OK ? write_file(folder, s->name, "utt2spk", &s->speakers, err) : status;
}

static void free_set(set *s)
{
    lin_buffer_free(&s->text);
    lin_buffer_free(&s->scp);
    lin_buffer_free(&s->speakers);
    lin_buffer_free(&s->segments);
}

static lin_status divide(const lin_datadir *dir, const unsigned char *held, const char *folder, lin_adapt_data *data,
                         lin_error *err)
{
    set sets[2] = {{.name = "train"}, {.name = "heldout"}};
    lin_buffer words = {0}, text = {0}, trn = {0};
    lin_status status = LIN_OK;
    int counts[2] = {0, 0};
    for (int i = 0; i < lin_datadir_count(dir) && status == LIN_OK; i++) {
        const lin_utterance *u = lin_datadir_at(dir, i);
        lin_error why = {0};
        long n = 0;
        lin_buffer_clear(&words);
        status = spell(u->text, strlen(u->text), &words, &n, &why);
        if (status == LIN_NO_MEMORY) break;
        if (status != LIN_OK || n == 0) {
            if (!data->left_out++)
                snprintf(data->why, sizeof data->why, "%.200s: %.290s", u->id, n || status ? why.message : "its text is empty");
            status = LIN_OK;
            continue;
        }
        put_utterance(&sets[held[i]], u, &words);
        counts[held[i]]++;
        if (!held[i]) continue;
        data->held_words += n;
        lin_buffer_bytes(&text, words.data, words.n);
        lin_buffer_char(&text, '\n');
        lin_buffer_bytes(&trn, words.data, words.n);
        lin_buffer_format(&trn, " (%s)\n", u->id);
    }
    if (status == LIN_NO_MEMORY) lin_no_memory(err, "the texts", text.n);
    if (status == LIN_OK && (!counts[0] || !counts[1]))
        status = lin_fail(err, LIN_INVALID,
                          "%d utterances have a text of words, too few to train on some and to hold out others%s%s",
                          counts[0] + counts[1], *data->why ? "; left out, for example, " : "", data->why);
    for (int s = 0; s < 2 && status == LIN_OK; s++) status = write_set(folder, &sets[s], err);
    if (status == LIN_OK) status = write_file(folder, "", "heldout.txt", &text, err);
    if (status == LIN_OK) status = write_file(folder, "", "heldout.trn", &trn, err);
    for (int s = 0; s < 2; s++) free_set(&sets[s]);
    lin_buffer_free(&words);
    lin_buffer_free(&text);
    lin_buffer_free(&trn);
    return status;
}

lin_status lin_adapt_write_data(const char *path, const char *audio_root, const lin_holdout_options *options, const char *folder,
                                lin_adapt_data *data, lin_error *err)
{
    lin_datadir *dir;
    *data = (lin_adapt_data){.left_out = 0};
    lin_status status = lin_datadir_load(path, &(lin_datadir_options){.audio_root = audio_root, .need_text = 1}, &dir, err);
    if (status != LIN_OK) return status;
    unsigned char *held = lin_calloc((size_t)lin_datadir_count(dir) + 1, 1);
    status = held ? lin_holdout_choose(dir, options, held, &data->holdout, err) : lin_no_memory(err, path, 1);
    if (status == LIN_OK) status = divide(dir, held, folder, data, err);
    if (status == LIN_INVALID) lin_fail_at(err, status, "%s", path);
    lin_free(held);
    lin_datadir_destroy(dir);
    return status;
}

static lin_status find_kept(const lin_datadir *kept, const lin_datadir *held, const char *path, lin_error *err)
{
    lin_symbols names = {0};
    lin_status status = LIN_OK;
    int index;
    for (int i = 0; i < lin_datadir_count(held) && status == LIN_OK; i++) {
        const char *id = lin_datadir_at(held, i)->id;
        status = lin_symbols_add(&names, id, strlen(id), &index, err);
    }
    for (int i = 0; i < lin_datadir_count(kept) && status == LIN_OK; i++) {
        const char *id = lin_datadir_at(kept, i)->id;
        if (lin_symbols_find(&names, id, strlen(id)) >= 0)
            status = lin_fail(err, LIN_INVALID,
                              "%s: %.200s is held out of --data, so it cannot be trained on; leave out what both have", path, id);
    }
    lin_symbols_free(&names);
    return status;
}

lin_status lin_adapt_check_kept(const char *path, const char *folder, lin_error *err)
{
    char heldout[PATH_MAX];
    lin_datadir *kept = NULL, *held = NULL;
    if (snprintf(heldout, sizeof heldout, "%s/heldout", folder) >= (int)sizeof heldout)
        return lin_fail(err, LIN_INVALID, "the name of the folder %.200s... is too long", folder);
    const lin_datadir_options how = {.need_text = 1};
    lin_status status = lin_datadir_load(path, &how, &kept, err);
    if (status == LIN_OK) status = lin_datadir_load(heldout, &how, &held, err);
    if (status == LIN_OK) status = find_kept(kept, held, path, err);
    lin_datadir_destroy(kept);
    lin_datadir_destroy(held);
    return status;
}

/* ---- texts and words ------------------------------------------------------------------------------------------------------- */

lin_status lin_adapt_write_text(const char *path, const char *to, long *left_out, lin_error *err)
{
    char *text;
    size_t n;
    lin_lines lines;
    lin_buffer out = {0}, line = {0};
    int any = 0;
    *left_out = 0;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        lin_error why = {0};
        long words;
        lin_buffer_clear(&line);
        status = spell(lines.text, lines.n, &line, &words, &why);
        if (status == LIN_NO_MEMORY) {
            lin_fail_as(err, &why);
        } else if (status != LIN_OK) {
            ++*left_out;
            status = LIN_OK;
        } else if (words) {
            lin_buffer_bytes(&out, line.data, line.n);
            lin_buffer_char(&out, '\n');
            any = 1;
        }
    }
    lin_free(text);
    lin_buffer_free(&line);
    if (status == LIN_OK && !any) status = lin_fail(err, LIN_FORMAT, "%s: no line of it is a sentence of words", path);
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_file_write_all(to, out.data, out.n, err);
    lin_buffer_free(&out);
    return status;
}

// Lines "word TAB count TAB how TAB phones".
static long put_unknown(lin_buffer *out, const char *text, size_t n)
{
    lin_lines lines;
    long count = 0;
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *end = at + lines.n, *word, *field;
        size_t n_word, n_field;
        if (!lin_field_next(&at, end, &word, &n_word) || !lin_field_next(&at, end, &field, &n_field) ||
            !lin_field_next(&at, end, &field, &n_field) || !lin_field_next(&at, end, &field, &n_field))
            continue; // nothing pronounces it
        lin_buffer_bytes(out, word, n_word);
        lin_buffer_char(out, ' ');
        lin_buffer_bytes(out, field, (size_t)(end - field));
        lin_buffer_char(out, '\n');
        count++;
    }
    return count;
}

lin_status lin_adapt_write_words(const char *const *lists, int n_lists, const char *unknown, const char *to, long *n_unknown,
                                 lin_error *err)
{
    char *text;
    size_t n;
    lin_buffer out = {0};
    lin_status status = LIN_OK;
    *n_unknown = 0;
    for (int i = 0; i < n_lists && status == LIN_OK; i++) {
        if (!lists[i]) continue;
        status = lin_text_read(lists[i], &text, &n, err);
        if (status != LIN_OK) break;
        lin_buffer_bytes(&out, text, n);
        if (n && text[n - 1] != '\n') lin_buffer_char(&out, '\n');
        lin_free(text);
    }
    if (unknown && status == LIN_OK) {
        status = lin_text_read(unknown, &text, &n, err);
        if (status == LIN_OK) {
            *n_unknown = put_unknown(&out, text, n);
            lin_free(text);
        }
    }
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_file_write_all(to, out.n ? out.data : "", out.n, err);
    lin_buffer_free(&out);
    return status;
}

int lin_adapt_is_packed(const char *path)
{
    lin_file_map file;
    if (lin_file_map_open(path, &file, NULL) != LIN_OK) return 0;
    const int is_packed = lin_gzip_is(file.bytes, file.size);
    lin_file_map_close(&file);
    return is_packed;
}

lin_status lin_adapt_copy(const char *from, const char *to, lin_error *err)
{
    lin_file_map file;
    lin_status status = lin_file_map_open(from, &file, err);
    if (status != LIN_OK) return status;
    status = lin_file_write_all(to, file.bytes, file.size, err);
    lin_file_map_close(&file);
    return status;
}
