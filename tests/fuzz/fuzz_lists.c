// Files that list, configure or describe: configurations, data directories, sweeps, TextGrids, .npy, runs of training, caches.
#include "tests/fuzz/fuzz.h"

#include <stddef.h>

#include "align/textgrid.h"
#include "app/options.h"
#include "base/hash.h"
#include "linnet/datadir.h"
#include "train/cmd_train_sweep.h"
#include "train/dataset.h"
#include "train/lab/npy.h"
#include "train/train_internal.h"

/* ---- conf ------------------------------------------------------------------------------------------------------------------ */

// The configuration reader on any bytes: it accepts them or reports where they are wrong; accepted values read back equal.
struct values {
    int flag, whole, choice;
    double number;
    const char *text, *file;
    lin_list files;
    lin_numbers numbers, under;
};

static const lin_option options[] = {
    {.type = LIN_OPTION_HEADING, .help = "All types"},
    {.name = "flag", .type = LIN_OPTION_FLAG, .at = offsetof(struct values, flag), .help = "a"},
    {.name = "whole", .type = LIN_OPTION_INT, .at = offsetof(struct values, whole), .text = "3", .min = -10, .max = 1e9,
     .help = "b"},
    {.name = "choice", .type = LIN_OPTION_CHOICE, .at = offsetof(struct values, choice), .choices = "one|two|three", .help = "c"},
    {.name = "number", .type = LIN_OPTION_DOUBLE, .at = offsetof(struct values, number), .min = -1e300, .max = 1e300,
     .help = "d"},
    {.name = "text", .type = LIN_OPTION_STRING, .at = offsetof(struct values, text), .help = "e"},
    {.name = "a-file", .type = LIN_OPTION_FILE, .at = offsetof(struct values, file), .help = "f"},
    {.name = "files", .type = LIN_OPTION_FILES, .at = offsetof(struct values, files), .help = "g"},
    {.name = "numbers", .type = LIN_OPTION_NUMBERS, .at = offsetof(struct values, numbers), .min = -1e9, .max = 1e9, .help = "h"},
    {.name = "set", .type = LIN_OPTION_SETTINGS, .help = "i"},
    {.name = "under", .under = "set", .type = LIN_OPTION_NUMBERS, .at = offsetof(struct values, under), .min = -9, .max = 9,
     .help = "j"},
    {.type = LIN_OPTION_END},
};

static const lin_command command = {
    .name = "fuzz", .operands = "", .summary = "", .options = options, .values_size = sizeof(struct values)};


void fuzz_conf(const uint8_t *data, size_t size)
{
    struct values values, again;
    lin_parsed parsed, second;
    lin_error err = {0};
    if (lin_options_begin(&command, &values, &parsed, &err) != LIN_OK) abort();
    lin_status status = lin_options_conf(&parsed, (const char *)data, size, "fuzz.conf", &err);
    if (status != LIN_OK) {
        if (!strstr(err.message, "fuzz.conf:") || strchr(err.message, '\n')) abort();
    } else {
        char *text, *text2;
        if (lin_options_text(&parsed, LIN_FROM_DEFAULT, &text, &err) != LIN_OK) abort();
        if (lin_options_begin(&command, &again, &second, &err) != LIN_OK) abort();
        if (lin_options_conf(&second, text, strlen(text), "again.conf", &err) != LIN_OK) abort();
        if (lin_options_text(&second, LIN_FROM_DEFAULT, &text2, &err) != LIN_OK) abort();
        if (strcmp(text, text2) != 0) abort();
        lin_free(text);
        lin_free(text2);
        lin_options_free(&second);
    }
    lin_options_free(&parsed);
}

/* ---- datadir --------------------------------------------------------------------------------------------------------------- */

// The readers of data directories, lists and manifests on any bytes. The first byte chooses: bit 0 a directory or a list, bit 1
// transcripts needed or not, bit 2 commands allowed or not, bit 3 a list too. A directory's files, in the order of
// lin_datadir_names, are separated by bytes 0xFF, which are never part of UTF-8.
static void use_datadir(const lin_datadir *dir, int need_text)
{
    if (lin_datadir_count(dir) < 1) abort();
    for (int i = 0; i < lin_datadir_count(dir); i++) {
        const lin_utterance *u = lin_datadir_at(dir, i);
        if (strpbrk(u->id, " \t\n") || !*u->speaker || !*u->cut.path || u->line < 1) abort();
        if (u->cut.channel < 0 || u->cut.channel > 64 || !(u->cut.part.start_s >= 0 && u->cut.part.start_s < 1e9)) abort();
        if (u->cut.part.end_s != 0 && !(u->cut.part.end_s > u->cut.part.start_s)) abort();
        if (need_text && (!u->text || !*u->text)) abort();
        if (u->record && (*u->record != '{' || strpbrk(u->record, "\n"))) abort();
        if (u->text && (strpbrk(u->text, "\t\r\n") || strstr(u->text, "  "))) abort();
    }
}

void fuzz_datadir(const uint8_t *data, size_t size)
{
    if (size == 0) return;
    const int list = (data[0] & 1) | (data[0] >> 3 & 1), need_text = data[0] >> 1 & 1;
    const lin_datadir_options o = {"root/", need_text, data[0] >> 2 & 1};
    lin_datadir_file files[LIN_DATADIR_FILES];
    for (int i = 0; i < LIN_DATADIR_FILES; i++) files[i] = (lin_datadir_file){lin_datadir_names[i], NULL, 0};
    const char *at = (const char *)data + 1;
    size_t left = size - 1;
    for (int i = 0; i < LIN_DATADIR_FILES && at; i++) {
        const char *end = list || left == 0 ? NULL : memchr(at, 0xFF, left);
        files[i].bytes = at;
        files[i].n_bytes = end ? (size_t)(end - at) : left;
        left -= files[i].n_bytes + (end != NULL);
        at = end ? end + 1 : NULL;
    }
    lin_datadir *dir;
    lin_error err = {0};
    const lin_status status =
        list ? lin_datadir_parse_list(&files[0], &o, &dir, &err) : lin_datadir_parse(files, &o, &dir, &err);
    if ((status == LIN_OK) != (dir != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !*err.message || strchr(err.message, '\n'))) abort();
    if (dir) use_datadir(dir, need_text);
    lin_datadir_destroy(dir);
}

/* ---- sweep ----------------------------------------------------------------------------------------------------------------- */

// The table of linnet train --sweep, from any bytes: each line that is kept has a name of its own, and its words are its own too.
void fuzz_sweep(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    lin_sweep_line *lines;
    int n;
    lin_error err = {0};
    const lin_status status = lin_sweep_parse("table", text, size, &lines, &n, &err);
    if (status != LIN_OK && !err.message[0]) abort();
    for (int i = 0; status == LIN_OK && i < n; i++) {
        const lin_sweep_line *line = &lines[i];
        if (line->n < 1 || line->n > LIN_SWEEP_WORDS || line->words[line->n] || line->number < 1) abort();
        if (i > 0 && line->number <= line[-1].number) abort();
        // it names a folder
        if (strpbrk(line->words[0], "/ #\t") || line->words[0][0] == '-' || line->words[0][0] == '.') abort();
        for (int w = 0; w < line->n; w++)
            if (!line->words[w][0] || strpbrk(line->words[w], " \t\r#")) abort();
        for (int k = 0; k < i; k++)
            if (strcmp(lines[k].words[0], line->words[0]) == 0) abort();
    }
    if (status == LIN_OK && n == 0) abort();
    lin_free(lines);
    free(text);
}

/* ---- textgrid -------------------------------------------------------------------------------------------------------------- */

// The reader of TextGrids on any bytes: accepted intervals are in order and within the tables.
void fuzz_textgrid(const uint8_t *data, size_t size)
{
    lin_error err = {0};
    lin_textgrid g;
    lin_status status = lin_textgrid_parse((const char *)data, size, "x", &g, &err);
    if (status != LIN_OK && (status != err.status || !err.message[0] || g.tiers || g.intervals || g.text)) abort();
    const int n = status != LIN_OK ? 0 : lin_textgrid_choose(&g);
    if (n < 0 || n > g.n_tiers || g.n_tiers > LIN_TEXTGRID_TIERS) abort();
    for (int t = 0; t < g.n_tiers; t++) {
        const lin_tier *tier = &g.tiers[t];
        if (tier->first < 0 || tier->n < 0 || (size_t)tier->first + (size_t)tier->n > g.n_intervals) abort();
        if (tier->name + strlen(lin_textgrid_text(&g, tier->name)) >= g.text_used) abort();
        for (int i = 0; i < tier->n; i++) {
            const lin_textgrid_interval *v = &g.intervals[tier->first + i];
            if (!(v->start_s <= v->end_s) || (i && v->start_s < v[-1].end_s)) abort();
            if (v->text + strlen(lin_textgrid_text(&g, v->text)) >= g.text_used) abort();
        }
    }
    lin_textgrid_free(&g);
}

/* ---- npy ------------------------------------------------------------------------------------------------------------------- */

// The .npy header reader.
void fuzz_npy(const uint8_t *data, size_t size)
{
    size_t offset = 0, T = 0;
    int D = 0;
    lin_error err;
    if (lin_npy_parse("x.npy", data, size, &offset, &T, &D, &err) != LIN_OK) return;
    if (D < 1 || offset > size || T > (size - offset) / sizeof(float) / (size_t)D) abort();
}

/* ---- training -------------------------------------------------------------------------------------------------------------- */

// Files that a training run reads from its own folder besides the model, from any bytes: the counters of a checkpoint, and the
// log from which the curves are drawn.
void fuzz_training(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    lin_train_counters c;
    if (lin_train_parse_counters(text, &c) &&
        (c.epoch < 0 || c.batch < 0 || (c.batch > 0 && c.step < 1) || !(c.lr_factor > 0 && c.lr_factor <= 1) ||
         !isfinite(c.loss_sum) || !isfinite(c.best_per) || !isfinite(c.run_seconds)))
        abort();
    char *svg = lin_curves_svg("", text, 0); // a title of any bytes
    if (!svg || !strstr(svg, "</svg>")) abort();
    lin_free(svg);
    svg = lin_curves_svg(text, "a run", 0);
    if (!svg || strncmp(svg, "<svg ", 5) != 0 || !strstr(svg, "</svg>") || strstr(svg, "points=\"nan") || strstr(svg, ",inf"))
        abort();
    lin_free(svg);
    free(text);
}

/* ---- dataset --------------------------------------------------------------------------------------------------------------- */

// The reader of feature caches on any bytes. Checksums are corrected first; otherwise no mutation would pass them.
static void mend(unsigned char *bytes, size_t size)
{
    lin_dataset_header h;
    lin_dataset_entry e;
    if (size < sizeof h) return;
    memcpy(&h, bytes, sizeof h);
    const uint64_t at = h.tail;
    uint64_t sum = 0, begin = sizeof h;
    // of the features, utterance by utterance, as far as the bytes reach
    for (uint64_t i = 0; at <= size && i < h.count && size - at >= 8 + (i + 1) * sizeof e; i++) {
        memcpy(&e, bytes + at + 8 + i * sizeof e, sizeof e);
        const uint64_t n = (uint64_t)e.frames * (h.D & 0xFFFF);
        if (n > at || begin > at - n) break;
        sum = lin_hash(bytes + begin, (size_t)n, sum);
        begin += n;
    }
    if (at <= size && size - at >= 8) memcpy(bytes + at, &sum, sizeof sum);
    if (at <= size) h.tail_hash = lin_hash(bytes + at, size - (size_t)at, 0);
    h.header_hash = lin_hash(&h, offsetof(lin_dataset_header, header_hash), 0);
    memcpy(bytes, &h, sizeof h);
}

static void use_dataset(const lin_dataset *set)
{
    const size_t D = (size_t)set->D;
    float *mean = malloc(2 * D * sizeof *mean), *x = NULL;
    for (int i = 0; i < set->count; i++) {
        for (int u = 0; u < set->utterances[i].n_labels; u++)
            if (set->utterances[i].labels[u] < (set->tokens ? -1 : 1) || set->utterances[i].labels[u] >= set->V) abort();
        const size_t count = (size_t)set->utterances[i].frames * D;
        x = realloc(x, count * sizeof *x);
        if (!x) abort();
        lin_dataset_features(set, i, x);
        for (size_t j = 0; j < count; j++)
            if (!isfinite(x[j])) abort();
        if (strlen(set->utterances[i].id) == 0 || set->utterances[i].speaker >= set->n_speakers) abort();
    }
    for (int s = 0; s < set->n_speakers; s++) {
        lin_dataset_speaker_norm(set, s, mean, mean + D);
        if (strlen(lin_dataset_speaker_name(set, s)) == 0) abort();
        for (size_t d = 0; d < 2 * D; d++)
            if (!isfinite(mean[d])) abort();
    }
    if (lin_dataset_norm(&set, 1, mean, mean + D, NULL) == LIN_OK)
        for (size_t d = 0; d < 2 * D; d++)
            if (!isfinite(mean[d])) abort();
    if (lin_dataset_verify(set, NULL) != LIN_OK) abort();
    if (strlen(set->source) > 1u << 30) abort();
    free(mean);
    free(x);
}

void fuzz_dataset(const uint8_t *data, size_t size)
{
    unsigned char *bytes = malloc(size ? size : 1);
    if (!bytes) return;
    if (size) memcpy(bytes, data, size);
    mend(bytes, size);
    lin_dataset *set;
    lin_error err = {0};
    const lin_status status = lin_dataset_open_memory(bytes, size, "fuzz", &set, &err);
    if ((status == LIN_OK) != (set != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !strstr(err.message, "fuzz"))) abort();
    if (set) use_dataset(set);
    lin_dataset_close(set);
    free(bytes);
}
