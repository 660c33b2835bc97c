// cmd_train_sweep.c - linnet train --sweep.

#include "train/cmd_train_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/inputs.h"
#include "base/memory.h"
#include "base/textfile.h"

typedef struct sweep {
    const lin_parsed *all;
    const char *table, *folder;
    const lin_numbers *seeds; // of each line
    char *text;               // the options of `all` that were given, as a configuration file
    char *words;              // the table, cut into words
    lin_train_complete *complete;
    lin_sweep_line *lines;
    int n;
} sweep;

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static int good_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
    return *name != '.' && *name != '-' && strlen(name) < 100 && name[strspn(name, allowed)] == 0;
}

lin_status lin_sweep_parse(const char *file, char *text, size_t n, lin_sweep_line **lines, int *count, lin_error *err)
{
    size_t most = 1;
    for (size_t i = 0; i < n; i++) most += text[i] == '\n';
    *count = 0;
    *lines = lin_calloc(most, sizeof **lines);
    if (!*lines) return lin_no_memory(err, file, most * sizeof **lines);
    if (strlen(text) < n) return lin_fail(err, LIN_INVALID, "%s is not a text file", file);
    text += lin_text_mark(text, n);
    int number = 1;
    for (char *line; (line = strsep(&text, "\n")); number++) {
        lin_sweep_line *to = &(*lines)[*count];
        *to = (lin_sweep_line){.number = number};
        line[strcspn(line, "#")] = 0;
        for (char *word; (word = strtok_r(line, " \t\r", &line)); to->words[to->n++] = word)
            if (to->n == LIN_SWEEP_WORDS)
                return lin_fail(err, LIN_INVALID, "%s:%d: more than %d words", file, number, LIN_SWEEP_WORDS);
        if (to->n == 0) continue;
        if (!good_name(to->words[0]))
            return lin_fail(err, LIN_INVALID,
                            "%s:%d: '%.60s' cannot be the name of a run: letters, digits and _.+-, beginning with a "
                            "letter or digit, fewer than 100",
                            file, number, to->words[0]);
        for (int i = 0; i < *count; i++)
            if (strcmp((*lines)[i].words[0], to->words[0]) == 0)
                return lin_fail(err, LIN_INVALID, "%s:%d: two runs named %s", file, number, to->words[0]);
        ++*count;
    }
    return *count == 0 ? lin_fail(err, LIN_INVALID, "%s has no runs", file) : LIN_OK;
}

/* ---- the options of a run -------------------------------------------------------------------------------------------------- */

// Of an option that is a whole number or a flag.
static int whole_value(const lin_parsed *p, const char *name)
{
    const lin_option *o = &p->command->options[lin_options_find(p->command, name)];
    return *(const int *)(const void *)((const unsigned char *)p->values + o->at);
}

static lin_status line_options(const sweep *s, const lin_sweep_line *of, lin_parsed *p, lin_error *err)
{
    static const char *const apart[] = {"folder", "resume", "seed", "sweep", "sweep-seeds"};
    lin_status status = lin_options_command_line(p, of->n - 1, (char **)of->words + 1, err);
    if (status == LIN_OK && p->help) status = lin_fail(err, LIN_INVALID, "--help cannot be an option of a run");
    if (status == LIN_OK && p->operands.count > 0)
        status = lin_fail(err, LIN_INVALID, "'%.60s' is not an option", p->operands.items[0]);
    for (size_t i = 0; status == LIN_OK && i < sizeof apart / sizeof *apart; i++)
        if (lin_options_given(p, apart[i]))
            status = lin_fail(err, LIN_INVALID, "--%s cannot be an option of a run", apart[i]);
    return status == LIN_OK || status == LIN_NO_MEMORY ? status : lin_fail_at(err, status, "%s:%d", s->table, of->number);
}

// The options of one run in `values`; lin_options_free(p) in any case. A line's options come before those of `all`.
static lin_status run_options(const sweep *s, const lin_sweep_line *of, int seed, const char *folder, int resume, void *values,
                              lin_parsed *p, lin_error *err)
{
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    LIN_TRY(lin_options_begin(s->all->command, values, p, err));
    LIN_TRY(line_options(s, of, p, err));
    LIN_TRY(lin_options_set(p, "folder", folder, err));
    LIN_TRY(lin_options_set(p, "resume", resume ? "yes" : "no", err));
    LIN_TRY(lin_options_set(p, "seed", number, err));
    LIN_TRY(lin_options_conf(p, s->text, strlen(s->text), s->table, err));
    lin_model *begins;
    const lin_status status = s->complete(p, &begins, err);
    lin_model_destroy(begins);
    return status;
}

// Whether a run's folder has the same options, apart from --resume; 1 if it has none.
static lin_status same_options(const char *folder, const lin_parsed *p, int *same, lin_error *err)
{
    char path[4200], *now, *then;
    size_t n;
    snprintf(path, sizeof path, "%s/train.conf", folder);
    *same = 1;
    if (access(path, F_OK) != 0) return LIN_OK;
    LIN_TRY(lin_options_text(p, LIN_FROM_DEFAULT, &now, err));
    const lin_status status = lin_text_read(path, &then, &n, err);
    if (status == LIN_OK) {
        lin_lines a = {0}, b = {0};
        lin_lines_begin(&a, now, strlen(now));
        lin_lines_begin(&b, then, n);
        int more;
        while ((more = lin_lines_next(&a)) == lin_lines_next(&b) && more && *same)
            *same = (a.n == b.n && memcmp(a.text, b.text, a.n) == 0) ||
                    (strncmp(a.text, "resume", 6) == 0 && strncmp(b.text, "resume", 6) == 0);
        *same = *same && !more;
        lin_free(then);
    }
    lin_free(now);
    return status;
}

/* ---- results --------------------------------------------------------------------------------------------------------------- */

static void run_folder(const sweep *s, const lin_sweep_line *of, int seed, char path[4096])
{
    snprintf(path, 4096, "%s/%s.%d", s->folder, of->words[0], seed);
}

static int finished(const char *folder)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/finished", folder);
    return access(path, F_OK) == 0;
}

// Whether the run's epochs are compared by a loss alone, as train/train.c does it for tokens.
static int is_of_tokens(const char *folder)
{
    char path[4200];
    lin_model *model;
    snprintf(path, sizeof path, "%s/best.safetensors", folder);
    if (lin_model_load(path, &model, NULL) != LIN_OK) return 0;
    const int tokens = model->config.tokens > 0;
    lin_model_destroy(model);
    return tokens;
}

// A line of results from the log of a finished run (train/train: epoch, step, train_loss, dev_loss, dev_per_percent, lr, norm,
// rate, seconds).
static lin_status add_result(const lin_sweep_line *of, int seed, const char *folder, lin_buffer *out, lin_error *err)
{
    char path[4200], *text, best[4][32] = {"-", "-", "-", "-"}, seconds[32] = "-";
    size_t n;
    const int of_tokens = is_of_tokens(folder);
    double least = 0;
    int epochs = 0;
    snprintf(path, sizeof path, "%s/log.tsv", folder);
    LIN_TRY(lin_text_read(path, &text, &n, err));
    lin_lines lines = {0};
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        char field[9][32], row[512];
        snprintf(row, sizeof row, "%.*s", (int)lines.n, lines.text);
        if (lines.number == 1 || sscanf(row, "%31s %31s %31s %31s %31s %31s %31s %31s %31s", field[0], field[1], field[2],
                                        field[3], field[4], field[5], field[6], field[7], field[8]) != 9 || atoi(field[0]) < 1)
            continue; // the header, and the model that the run began with
        const double loss = strtod(field[2], NULL), dev_loss = strtod(field[3], NULL), per = strtod(field[4], NULL);
        const double judged = per >= 0 && !of_tokens ? per : dev_loss >= 0 ? dev_loss : loss; // -1: not measured
        memcpy(seconds, field[8], sizeof seconds);
        if (epochs++ > 0 && !(judged < least)) continue;
        least = judged;
        const int order[] = {4, 0, 3, 2};
        for (int i = 0; i < 4; i++) snprintf(best[i], sizeof best[i], "%s", *field[order[i]] == '-' ? "-" : field[order[i]]);
    }
    lin_free(text);
    lin_buffer_format(out, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t", of->words[0], seed, epochs, best[0], best[1], best[2], best[3],
                      seconds);
    for (int i = 1; i < of->n; i++) lin_buffer_format(out, "%s%s", i > 1 ? " " : "", of->words[i]);
    lin_buffer_char(out, '\n');
    return LIN_OK;
}

static lin_status write_results(const sweep *s, int print, lin_buffer *out, lin_error *err)
{
    char path[4096];
    lin_buffer_text(out, "name\tseed\tepochs\tbest_dev_per_percent\tat_epoch\tdev_loss\ttrain_loss\tseconds\toptions\n");
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->seeds->count; k++) {
            const int seed = (int)s->seeds->items[k];
            run_folder(s, &s->lines[i], seed, path);
            if (finished(path)) LIN_TRY(add_result(&s->lines[i], seed, path, out, err));
        }
    LIN_TRY(lin_buffer_status(out, err));
    snprintf(path, sizeof path, "%s/results.tsv", s->folder);
    LIN_TRY(lin_file_write_all(path, out->data, out->n, err));
    return print ? lin_buffer_write(out, stdout, "standard output", err) : LIN_OK;
}

// Writes results.tsv anew; print: and prints it.
static lin_status results(const sweep *s, int print, lin_error *err)
{
    lin_buffer out = {0};
    const lin_status status = write_results(s, print, &out, err);
    lin_buffer_free(&out);
    return status;
}

/* ---- the runs -------------------------------------------------------------------------------------------------------------- */

static void announce(const lin_sweep_line *of, int seed)
{
    fprintf(stderr, "== %s, seed %d", of->words[0], seed);
    for (int i = 1; i < of->n; i++) fprintf(stderr, "%s%s", i > 1 ? " " : ": ", of->words[i]);
    fputc('\n', stderr);
}

static lin_status run_with(const sweep *s, const lin_sweep_line *of, int seed, int (*run)(lin_parsed *), int *exit_status,
                           void *values, lin_parsed *p, lin_error *err)
{
    char folder[4096], path[4200];
    int same;
    run_folder(s, of, seed, folder);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    LIN_TRY(run_options(s, of, seed, folder, run && access(path, F_OK) == 0, values, p, err));
    if (!run) return LIN_OK;
    LIN_TRY(same_options(folder, p, &same, err));
    if (!same)
        return lin_fail(err, LIN_INVALID, "%s was run with other options, which are in its train.conf; choose another name, or "
                        "remove the folder", folder);
    if (finished(folder)) return LIN_OK;
    LIN_TRY(lin_guard_command(p, err));
    if (!whole_value(p, "quiet")) announce(of, seed);
    *exit_status = run(p);
    if (*exit_status != LIN_EXIT_OK) {
        lin_complain("%s stopped; repeat the command to resume", folder);
        return LIN_OK;
    }
    snprintf(path, sizeof path, "%s/finished", folder);
    LIN_TRY(lin_file_write_all(path, "", 0, err));
    return results(s, 0, err);
}

// Does one run. exit_status: that of `run`, LIN_EXIT_OK if there was nothing to do. run NULL: only checks the options.
static lin_status one(const sweep *s, const lin_sweep_line *of, int seed, int (*run)(lin_parsed *), int *exit_status,
                      lin_error *err)
{
    void *values = lin_calloc(1, s->all->command->values_size + 1);
    if (!values) return lin_no_memory(err, "options", s->all->command->values_size);
    lin_parsed p = {0};
    const lin_status status = run_with(s, of, seed, run, exit_status, values, &p, err);
    lin_options_free(&p);
    lin_free(values);
    return status;
}

int lin_train_sweep(const lin_parsed *all, const char *table, const lin_numbers *seeds, const char *folder,
                    lin_train_complete *complete, int (*run)(lin_parsed *parsed))
{
    lin_error err = {0};
    double seed = whole_value(all, "seed");
    const lin_numbers just_one = {&seed, 1};
    for (int i = 0; i < seeds->count; i++)
        for (int k = 0; k < i; k++)
            if (seeds->items[k] == seeds->items[i]) return lin_misuse(all, "--sweep-seeds has %g twice", seeds->items[i]);
    sweep s = {.all = all, .table = table, .folder = folder, .seeds = seeds->count ? seeds : &just_one, .complete = complete};
    int exit_status = LIN_EXIT_OK;
    size_t n;
    lin_status status = lin_options_text(all, LIN_FROM_FILE, &s.text, &err);
    if (status == LIN_OK) status = lin_text_read(table, &s.words, &n, &err);
    if (status == LIN_OK) status = lin_sweep_parse(table, s.words, n, &s.lines, &s.n, &err);
    for (int i = 0; i < s.n && status == LIN_OK; i++) status = one(&s, &s.lines[i], 0, NULL, NULL, &err);
    if (status == LIN_OK) status = lin_make_folders(folder, strlen(folder), &err);
    for (int i = 0; i < s.n && status == LIN_OK; i++)
        for (int k = 0; k < s.seeds->count && status == LIN_OK && exit_status == LIN_EXIT_OK; k++)
            status = one(&s, &s.lines[i], (int)s.seeds->items[k], run, &exit_status, &err);
    if (status == LIN_OK && exit_status == LIN_EXIT_OK) status = results(&s, 1, &err);
    lin_free(s.lines);
    lin_free(s.words);
    lin_free(s.text);
    return status == LIN_OK ? exit_status : lin_give_up(&err);
}
