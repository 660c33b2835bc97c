// cmd_paper.c - linnet paper: makes data sets of tokens for the paper's experiments and the Long Range Arena, from files or at
// random.

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "paper/images.h"
#include "paper/tasks.h"
#include "train/dataset.h"

typedef struct paper_values {
    const char *output, *range;
    int labels, grey, length, symbols, count, least, most, seed, quiet;
} paper_values;

#define AT(field) offsetof(paper_values, field)
static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1, .at = AT(output),
     .help = "The data set to write"},
    LIN_QUIET_ROW(AT(quiet), "Print nothing but errors"),

    {.type = LIN_OPTION_HEADING, .help = "Images"},
    {.name = "range", .type = LIN_OPTION_STRING, .at = AT(range), .value = "FIRST:[LAST]",
     .help = "Images FIRST to LAST of all files together, counted from 1; FIRST: goes to the end. If not given, all"},
    {.name = "labels", .type = LIN_OPTION_FLAG, .at = AT(labels),
     .help = "Give each image of CIFAR-10 one target, its class, at the last value"},
    {.name = "grey", .type = LIN_OPTION_FLAG, .at = AT(grey), .help = "Read coloured images as grey values, as the arena does"},

    {.type = LIN_OPTION_HEADING, .help = "Sequences that are made (copy, listops, pathfinder)"},
    {.name = "count", .type = LIN_OPTION_INT, .at = AT(count), .text = "10000", .min = 1, .max = 10000000,
     .help = "Number of sequences"},
    LIN_SEED_ROW(AT(seed), "The same seed gives the same sequences; sets for training and for measuring need different ones"),
    {.name = "length", .type = LIN_OPTION_INT, .at = AT(length), .text = "0", .max = 65536,
     .help = "copy: maximum length of a sequence, 4 or more; 0: 128"},
    {.name = "symbols", .type = LIN_OPTION_INT, .at = AT(symbols), .text = "10", .min = 1, .max = 500,
     .help = "copy: different symbols"},
    {.name = "least", .type = LIN_OPTION_INT, .at = AT(least), .text = "500", .min = 1, .max = 65536,
     .help = "listops: minimum tokens of an expression"},
    {.name = "most", .type = LIN_OPTION_INT, .at = AT(most), .text = "0", .max = 1000000,
     .help = "listops: maximum tokens of an expression; 0: 2,000. text: bytes of a line that are kept; 0: 4,000"},
    {.type = LIN_OPTION_END},
};
#undef AT

/* ---- the set that is written ----------------------------------------------------------------------------------------------- */

// State of the command: the output, and one sequence.
typedef struct work {
    const paper_values *v;
    const char *const *files;
    int n_files, first, last; // of --range; last 0: to the end
    int *tokens, *targets;    // [room]
    int sequences;
    long long rows;
    lin_progress progress;
    lin_dataset_writer *writer;
} work;

static lin_status make_room(work *w, int rows, lin_error *err)
{
    w->tokens = lin_alloc((size_t)rows, sizeof *w->tokens);
    w->targets = lin_alloc((size_t)rows, sizeof *w->targets);
    if (!w->tokens || !w->targets) return lin_no_memory(err, "a sequence", (size_t)rows * sizeof *w->tokens);
    return LIN_OK;
}

// Targets are numbers from 0 to V - 1.
static lin_status begin(work *w, int tokens, int V, const char *source, lin_error *err)
{
    lin_buffer names = {0};
    for (int i = 0; i < V; i++) lin_buffer_format(&names, "%s%d", i ? " " : "", i);
    lin_status status = lin_buffer_status(&names, err);
    if (status == LIN_OK) status = lin_dataset_create_tokens(w->v->output, tokens, names.data, source, &w->writer, err);
    lin_buffer_free(&names);
    return status;
}

static lin_status add(work *w, int T, lin_error *err)
{
    char id[16];
    if (lin_interrupted) return lin_fail(err, LIN_STOPPED, "interrupted");
    snprintf(id, sizeof id, "%d", ++w->sequences);
    w->rows += T;
    lin_progress_of(&w->progress, -1, "%d sequences", w->sequences);
    return lin_dataset_add_tokens(w->writer, id, w->tokens, w->targets, T, err);
}

// Gives the last of T rows its class as target, and the others none.
static void classify(work *w, int T, int class)
{
    for (int t = 0; t < T; t++) w->targets[t] = -1;
    w->targets[T - 1] = class;
}

// The key of the i-th sequence.
static uint64_t key_of(const work *w, int i) { return lin_random_key((uint64_t)w->v->seed, (uint64_t)i); }

/* ---- images ---------------------------------------------------------------------------------------------------------------- */

static lin_status add_images(work *w, const lin_images *m, lin_error *err)
{
    const int n = lin_images_length(m, w->v->grey);
    for (int i = 0; i < m->count; i++) {
        lin_images_values(m, i, w->v->grey, w->tokens);
        if (w->v->labels) classify(w, n, lin_images_label(m, i));
        for (int t = 0; t + 1 < n && !w->v->labels; t++) w->targets[t] = w->tokens[t + 1];
        LIN_TRY(add(w, w->v->labels ? n : n - 1, err));
    }
    return LIN_OK;
}

// Adds the images of a file, or the part of them in --range. *seen: images before it. All files must have the first one's size.
static lin_status add_file(work *w, const char *path, const char *bytes, size_t n, int *seen, lin_images *shape, lin_error *err)
{
    lin_images m;
    LIN_TRY(lin_images_parse(bytes, n, path, &m, err));
    const int length = lin_images_length(&m, w->v->grey), before = *seen;
    if (w->v->labels && m.colours != 3) return lin_fail(err, LIN_INVALID, "%s has no labels; CIFAR-10's batches have", path);
    if (length < 2) return lin_fail(err, LIN_INVALID, "%s: images of one value have nothing to predict", path);
    if (shape->count == 0) {
        *shape = m;
        LIN_TRY(make_room(w, length, err));
    }
    if (m.rows != shape->rows || m.columns != shape->columns || m.colours != shape->colours)
        return lin_fail(err, LIN_INVALID, "%s: images of %d x %d with %d colour(s), but those of %s are of %d x %d with %d", path,
                        m.rows, m.columns, m.colours, w->files[0], shape->rows, shape->columns, shape->colours);
    const size_t size = (size_t)m.rows * (size_t)m.columns * (size_t)m.colours + (m.colours == 3);
    int skip = w->first - 1 - before, end = w->last ? w->last - before : m.count;
    *seen = m.count > INT_MAX - before ? INT_MAX : before + m.count;
    if (skip < 0) skip = 0;
    if (end > m.count) end = m.count;
    lin_images part = m;
    part.count = end > skip ? end - skip : 0;
    part.bytes = m.bytes + (part.count ? (size_t)skip * size : 0);
    return add_images(w, &part, err);
}

static lin_status run_file(work *w, const char *path, int *seen, lin_images *shape, lin_error *err)
{
    char *bytes;
    size_t n;
    LIN_TRY(lin_text_read(path, &bytes, &n, err));
    const lin_status status = add_file(w, path, bytes, n, seen, shape, err);
    lin_free(bytes);
    return status;
}

static lin_status run_images(work *w, lin_error *err)
{
    const paper_values *v = w->v;
    int seen = 0;
    lin_images shape = {0};
    LIN_TRY(begin(w, 256, v->labels ? 10 : 256, "images", err));
    for (int i = 0; i < w->n_files; i++) LIN_TRY(run_file(w, w->files[i], &seen, &shape, err));
    if (seen < (w->last ? w->last : w->first))
        return lin_fail(err, LIN_INVALID, "--range %s: there are %d images", v->range, seen);
    return LIN_OK;
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

// Splits a line CLASS<TAB>text: its class and its text. NULL: it has another form.
static const char *text_of(const lin_lines *l, int *class)
{
    int value = 0;
    size_t i = 0;
    for (; i < l->n && i < 4 && lin_is_digit(l->text[i]); i++) value = 10 * value + (l->text[i] - '0');
    *class = value;
    return i > 0 && i + 1 < l->n && l->text[i] == '\t' && value < 1000 ? l->text + i + 1 : NULL;
}

// Adds the lines of all files; w->writer NULL: only finds the number of classes and the longest line.
static lin_status all_lines(work *w, int *classes, int *longest, lin_error *err)
{
    const int most = w->v->most ? w->v->most : 4000;
    lin_status status = LIN_OK;
    for (int f = 0; f < w->n_files && status == LIN_OK; f++) {
        char *text;
        size_t n;
        lin_lines lines = {0};
        status = lin_text_read(w->files[f], &text, &n, err);
        if (status != LIN_OK) return status;
        lin_lines_begin(&lines, text, n);
        while (status == LIN_OK && lin_lines_next(&lines)) {
            int class;
            const char *from = text_of(&lines, &class);
            if (!from) {
                status = lin_fail(err, LIN_FORMAT, "%s:%d: a line is a class from 0 to 999, a tab and a text", w->files[f],
                                  lines.number);
                break;
            }
            const size_t rest = (size_t)(lines.text + lines.n - from), T = rest < (size_t)most ? rest : (size_t)most;
            if (class >= *classes) *classes = class + 1;
            if ((int)T > *longest) *longest = (int)T;
            if (!w->writer) continue;
            for (size_t t = 0; t < T; t++) w->tokens[t] = (unsigned char)from[t];
            classify(w, (int)T, class);
            status = add(w, (int)T, err);
        }
        lin_free(text);
    }
    return status;
}

static lin_status run_text(work *w, lin_error *err)
{
    int classes = 2, longest = 0;
    LIN_TRY(all_lines(w, &classes, &longest, err));
    if (!longest) return lin_fail(err, LIN_INVALID, "%s has no line", w->files[0]);
    LIN_TRY(make_room(w, longest, err));
    LIN_TRY(begin(w, 256, classes, "text", err));
    return all_lines(w, &classes, &longest, err);
}

/* ---- sequences that are made ----------------------------------------------------------------------------------------------- */

static lin_status run_copy(work *w, lin_error *err)
{
    const int length = w->v->length ? w->v->length : 128, V = w->v->symbols + 1;
    if (length < 4) return lin_fail(err, LIN_INVALID, "--length is 4 or more for copy");
    LIN_TRY(make_room(w, length, err));
    LIN_TRY(begin(w, V, V, "copy", err));
    for (int i = 0; i < w->v->count; i++)
        LIN_TRY(add(w, lin_copy_make(length, V - 1, key_of(w, i), w->tokens, w->targets), err));
    return LIN_OK;
}

static lin_status run_listops(work *w, lin_error *err)
{
    const paper_values *v = w->v;
    const lin_listops how = {v->least, v->most ? v->most : 2000, 10, 10};
    int T = 0, value = 0;
    if (how.most < how.least) return lin_fail(err, LIN_INVALID, "--least is %d and --most %d", how.least, how.most);
    LIN_TRY(make_room(w, how.most + 1, err));
    LIN_TRY(begin(w, LIN_LISTOPS_TOKENS, 10, "listops", err));
    for (int i = 0; i < v->count; i++) {
        LIN_TRY(lin_listops_make(&how, key_of(w, i), w->tokens, &T, &value, err));
        classify(w, T, value);
        LIN_TRY(add(w, T, err));
    }
    return LIN_OK;
}

static lin_status run_pathfinder(work *w, lin_error *err)
{
    LIN_TRY(make_room(w, LIN_PATHFINDER_PIXELS, err));
    LIN_TRY(begin(w, 256, 2, "pathfinder", err));
    for (int i = 0; i < w->v->count; i++) {
        classify(w, LIN_PATHFINDER_PIXELS, lin_pathfinder_make(20, 6, key_of(w, i), w->tokens));
        LIN_TRY(add(w, LIN_PATHFINDER_PIXELS, err));
    }
    return LIN_OK;
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

// options: those that apply besides --output and --quiet, each followed by a blank.
static const struct kind {
    const char *name, *options;
    int of_files;
    lin_status (*run)(work *w, lin_error *err);
} kinds[] = {
    {"images", "output range labels grey ", 1, run_images},
    {"text", "output most ", 1, run_text},
    {"copy", "output count seed length symbols ", 0, run_copy},
    {"listops", "output count seed least most ", 0, run_listops},
    {"pathfinder", "output count seed ", 0, run_pathfinder},
};

// FIRST:LAST or FIRST: to the end; 0 if it is not of this form.
static int read_range(const char *text, work *w)
{
    char *end;
    const long first = strtol(text, &end, 10);
    const int open = strcmp(end, ":") == 0;
    const long last = *end == ':' && lin_is_digit(end[1]) ? strtol(end + 1, &end, 10) : 0;
    w->first = (int)first;
    w->last = (int)last;
    return lin_is_digit(text[0]) && first >= 1 && first <= INT_MAX && (open || (!*end && last >= first && last <= INT_MAX));
}

static int run(lin_parsed *parsed)
{
    const paper_values *v = parsed->values;
    const struct kind *kind = kinds, *const end = kinds + sizeof kinds / sizeof *kinds;
    work w = {.v = v, .files = parsed->operands.items + 1, .n_files = parsed->operands.count - 1, .first = 1};
    lin_error err = {0};
    while (kind < end && strcmp(parsed->operands.items[0], kind->name) != 0) kind++;
    if (kind == end)
        return lin_misuse(parsed, "'%.60s' is none of images, text, copy, listops, pathfinder", parsed->operands.items[0]);
    const int usage = lin_verb_options(parsed, kind->name, kind->options);
    if (usage != LIN_EXIT_OK) return usage;
    if (kind->of_files && w.n_files == 0) return lin_misuse(parsed, "%s: the FILE is missing", kind->name);
    if (!kind->of_files && w.n_files > 0) return lin_misuse(parsed, "unexpected argument '%.200s'", w.files[0]);
    if (v->range && !read_range(v->range, &w))
        return lin_misuse(parsed, "--range is FIRST:LAST, numbers from 1 up, not '%.60s'", v->range);
    lin_progress_begin(&w.progress, v->quiet);
    lin_status status = kind->run(&w, &err);
    lin_progress_end(&w.progress);
    if (status == LIN_OK) status = lin_dataset_finish(w.writer, &err);
    else lin_dataset_abort(w.writer);
    lin_free(w.tokens);
    lin_free(w.targets);
    if (status == LIN_OK && !v->quiet) lin_complain("%s: %d sequences, %lld tokens", v->output, w.sequences, w.rows);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_paper = {
    .name = "paper",
    .operands = "images|text|copy|listops|pathfinder [FILE...]",
    .summary = "make data sets of tokens for the paper's experiments",
    .description =
        "Makes sequences of tokens for linnet train. Each token has a target, the symbol to predict, or none.\n\n"
        "images FILE... reads IDX files (MNIST) and binary batches of CIFAR-10, which may be gzip'd: a token is one of 256 "
        "values, and its target is the next value. A coloured image has 3,072 values, R G B of each pixel. With --labels an "
        "image has one target, its class.\n\n"
        "text FILE... reads lines of a class (a number from 0), a tab and a text: the tokens are the bytes of the text, and the "
        "class is the target of the last one. Two documents that are compared stand in one line, with any separator between "
        "them.\n\n"
        "copy makes the paper's copy task: 0 w 0 w, a separator and symbols twice; the targets are the symbols of the second w. "
        "listops makes the arena's expressions of MIN, MAX, MED and SM (sum modulo 10), whose value is the target of the last "
        "token. pathfinder makes images of 32 x 32 with two dots; the class 1 says that a dashed path connects them.",
    .examples = "  linnet paper images t10k-images-idx3-ubyte --range 1:9000 -o train.lfc\n"
                "  linnet paper copy --count 64000 -o copy.lfc\n"
                "  linnet paper listops --count 96000 -o train.lfc && linnet paper listops --count 2000 --seed 2 -o dev.lfc",
    .options = options,
    .values_size = sizeof(paper_values),
    .min_operands = 1,
    .max_operands = -1,
    .verb_operand = 1,
    .run = run,
};
