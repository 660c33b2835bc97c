// Makes Markdown from the parts' results: FOLDER/*.jsonl.
#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/gpu.h"

enum { MOST_LINES = 8192, MOST_ROWS = 256, MOST_COLUMNS = 32, LABEL = 96, LONGEST_LINE = 16384 };
#define OPS_FIRST "gather" /* the first line of a run of ops */

static cJSON *lines[MOST_LINES];
static int n_lines;

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static const char *text(const cJSON *line, const char *name)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, name));
    return value ? value : "";
}

static double number(const cJSON *line, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, name);
    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

static int is(const cJSON *line, const char *part) { return strcmp(text(line, "part"), part) == 0; }
static int left_out(const cJSON *line) { return *text(line, "left_out") != 0; }

static void read_file(const char *path)
{
    static char buffer[LONGEST_LINE];
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (n_lines < MOST_LINES && fgets(buffer, sizeof buffer, file)) {
        // a process stopped by its time limit may have left half a line
        cJSON *line = cJSON_Parse(buffer);
        if (cJSON_IsObject(line)) {
            lines[n_lines++] = line;
        } else {
            cJSON_Delete(line);
        }
    }
    fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int read_folder(const char *folder)
{
    struct dirent **entries;
    const int n = scandir(folder, &entries, NULL, by_name);
    if (n < 0) return 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        const char *dot = strrchr(entries[i]->d_name, '.');
        if (dot && strcmp(dot, ".jsonl") == 0 &&
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < sizeof path)
            read_file(path);
        free(entries[i]);
    }
    free(entries);
    return 1;
}

/* ---- a table of one value by two labels ------------------------------------------------------------------------------------ */

typedef struct pivot {
    const char *part, *value;
    double scale; // of the value
    int (*wanted)(const cJSON *line, int argument);
    int argument;
    void (*row)(const cJSON *line, char *label);
    void (*column)(const cJSON *line, char *label);
} pivot;

static int find_label(char labels[][LABEL], int *n, int most, const char *label)
{
    int i = 0;
    while (i < *n && strcmp(labels[i], label) != 0) i++;
    if (i < *n) return i;
    if (i == most) return -1;
    snprintf(labels[i], LABEL, "%s", label);
    return (*n)++;
}

static int by_number(const void *a, const void *b)
{
    const double left = atof(*(char *const *)a), right = atof(*(char *const *)b);
    return left != right ? (left > right) - (left < right) : strcmp(*(char *const *)a, *(char *const *)b);
}

// Numeric labels are sorted, others keep their order.
static void order_labels(char labels[][LABEL], int n, char *order[])
{
    int numbers = 1;
    for (int i = 0; i < n; i++) {
        order[i] = labels[i];
        numbers &= labels[i][0] >= '0' && labels[i][0] <= '9';
    }
    if (numbers) qsort(order, (size_t)n, sizeof *order, by_number);
}

static void print_number(double value)
{
    if (value >= 1000) printf(" %.0f |", value);
    else if (value >= 100) printf(" %.1f |", value);
    else printf(" %.3g |", value);
}

static int print_pivot(const char *title, const char *corner, const pivot *p)
{
    static char rows[MOST_ROWS][LABEL], columns[MOST_COLUMNS][LABEL];
    static double cells[MOST_ROWS][MOST_COLUMNS];
    int n_rows = 0, n_columns = 0;
    for (int i = 0; i < MOST_ROWS; i++)
        for (int j = 0; j < MOST_COLUMNS; j++) cells[i][j] = -1;
    for (int i = 0; i < n_lines; i++) {
        const double value = number(lines[i], p->value);
        if (!is(lines[i], p->part) || value < 0 || (p->wanted && !p->wanted(lines[i], p->argument))) continue;
        char row[LABEL], column[LABEL];
        p->row(lines[i], row);
        p->column(lines[i], column);
        const int r = find_label(rows, &n_rows, MOST_ROWS, row), c = find_label(columns, &n_columns, MOST_COLUMNS, column);
        if (r >= 0 && c >= 0) cells[r][c] = value * p->scale;
    }
    if (n_rows == 0) return 0;
    char *row_order[MOST_ROWS], *column_order[MOST_COLUMNS];
    order_labels(rows, n_rows, row_order);
    order_labels(columns, n_columns, column_order);
    printf("\n%s\n\n| %s |", title, corner);
    for (int j = 0; j < n_columns; j++) printf(" %s |", column_order[j]);
    printf("\n|---|");
    for (int j = 0; j < n_columns; j++) printf("---|");
    putchar('\n');
    for (int i = 0; i < n_rows; i++) {
        printf("| %s |", row_order[i]);
        for (int j = 0; j < n_columns; j++) {
            const double cell = cells[(row_order[i] - rows[0]) / LABEL][(column_order[j] - columns[0]) / LABEL];
            if (cell < 0) printf(" - |");
            else print_number(cell);
        }
        putchar('\n');
    }
    return 1;
}

static void label_who(const cJSON *line, char *label) { snprintf(label, LABEL, "%s", text(line, "who")); }
static void label_what(const cJSON *line, char *label) { snprintf(label, LABEL, "%s", text(line, "what")); }
static void label_length(const cJSON *line, char *label) { snprintf(label, LABEL, "%.0f", number(line, "N")); }

static void label_who_precision(const cJSON *line, char *label)
{
    snprintf(label, LABEL, "%s, %s", text(line, "who"), text(line, "precision"));
}

static void label_batches(const cJSON *line, char *label)
{
    snprintf(label, LABEL, "%s, batches of %.0f frames", number(line, "causal") > 0 ? "causal" : "bidirectional",
             number(line, "batch_frames"));
}

static void label_chunk(const cJSON *line, char *label) { snprintf(label, LABEL, "%.0f", number(line, "chunk_frames")); }
static void label_streams(const cJSON *line, char *label) { snprintf(label, LABEL, "%.0f", number(line, "streams")); }
static void label_pass(const cJSON *line, char *label) { snprintf(label, LABEL, "%.0f", number(line, "pass_streams")); }

/* ---- the sections ---------------------------------------------------------------------------------------------------------- */

// The best measured value of a limit: "copy" in GB/s, the rest in TFLOP/s. Negative: unknown.
static double peak(const char *what)
{
    double best = -1;
    for (int i = 0; i < n_lines; i++) {
        const double value = is(lines[i], "peak") && strcmp(text(lines[i], "what"), what) == 0 ? number(lines[i], "value") : -1;
        if (value > best) best = value;
    }
    return best;
}

static void print_head(void)
{
    printf("# Measured on a GPU\n\n");
    for (int i = 0; i < n_lines; i++)
        if (is(lines[i], "about")) printf("- %s: %s\n", text(lines[i], "what"), text(lines[i], "value"));
    int any = 0;
    for (int i = 0; i < n_lines; i++) {
        if (!is(lines[i], "check")) continue;
        if (!any++) printf("\n## Checks\n\n| what | result | seconds |\n|---|---|---|\n");
        printf("| %s | %s | %.0f |\n", text(lines[i], "what"), text(lines[i], "result"), number(lines[i], "seconds"));
    }
}

enum { ALONE = 1, BOTH = 2, CAUSAL = 4 };

static double most_rows(void)
{
    double most = 0;
    for (int i = 0; i < n_lines; i++) {
        const double rows = is(lines[i], "attention") ? number(lines[i], "B") * number(lines[i], "N") : 0;
        if (rows > most) most = rows;
    }
    return most;
}

static int wanted_attention(const cJSON *line, int argument)
{
    const int all = number(line, "B") * number(line, "N") == most_rows(), alone = number(line, "B") == 1;
    return (argument & ALONE ? alone : all) && (number(line, "causal") > 0) == ((argument & CAUSAL) != 0) &&
           (strcmp(text(line, "pass"), "both") == 0) == ((argument & BOTH) != 0);
}

static int wanted_share(const cJSON *line, int alone)
{
    return alone ? number(line, "B") == 1 : number(line, "B") * number(line, "N") == most_rows();
}

static void label_form(const cJSON *line, char *label)
{
    snprintf(label, LABEL, "%s, %s, %s", number(line, "causal") > 0 ? "causal" : "bidirectional", text(line, "pass"),
             text(line, "precision"));
}

static int any_of(const char *part)
{
    int i = 0;
    while (i < n_lines && (!is(lines[i], part) || left_out(lines[i]))) i++;
    return i < n_lines;
}

static void print_attention(void)
{
    if (!any_of("attention")) return;
    printf("\n## Attention over lengths\n\n6 heads of width 32. linnet: fp32 values; precision is that of the products.\n");
    for (int a = 0; a < 8; a++) {
        char title[160], batch[64] = "one utterance of N frames";
        if (!(a & ALONE)) snprintf(batch, sizeof batch, "%.0f rows in utterances of N frames", most_rows());
        snprintf(title, sizeof title, "### %s, %s, %s: microseconds", a & CAUSAL ? "causal" : "bidirectional",
                 a & BOTH ? "forward and backward" : "forward", batch);
        pivot p = {.part = "attention", .value = "us", .scale = 1, .wanted = wanted_attention, .argument = a, .row = label_length,
                   .column = label_who_precision};
        if (!print_pivot(title, "N", &p)) continue;
        p.value = "mib";
        print_pivot("Memory at most, inputs and results included, MiB:", "N", &p);
    }
    const double copy = peak("copy");
    for (int alone = 0; copy > 0 && alone < 2; alone++)
        print_pivot(
            alone ? "### The same of one utterance of N frames"
                  : "### linnet's bytes, each input read once and each output written once, in per cent of what a copy moves",
            "N",
            &(pivot){.part = "attention",
                     .value = "gb_s",
                     .scale = 100 / copy,
                     .wanted = wanted_share,
                     .argument = alone,
                     .row = label_length,
                     .column = label_form});
}

static void print_best_ratio(void)
{
    for (int causal = 0; causal < 2; causal++) {
        double own = -1, peer = -1;
        for (int i = 0; i < n_lines; i++) {
            const double s = number(lines[i], "epoch_s");
            if (!is(lines[i], "epoch") || s < 0 || (number(lines[i], "causal") > 0) != causal) continue;
            double *best = strncmp(text(lines[i], "who"), "linnet", 6) == 0 ? &own : &peer;
            if (*best < 0 || s < *best) *best = s;
        }
        if (own > 0 && peer > 0)
            printf("\n%s: linnet's best %.2f s, PyTorch's best %.2f s, ratio %.2f.\n", causal ? "Causal" : "Bidirectional", own,
                   peer, peer / own);
    }
}

static double step_us(const cJSON *line) { return number(line, "us") * number(line, "calls"); }

static int by_step(const void *a, const void *b)
{
    const double left = step_us(*(cJSON *const *)a), right = step_us(*(cJSON *const *)b);
    return (left < right) - (left > right);
}

static void print_ops(const char *precision, int causal, double rows)
{
    static cJSON *of[MOST_LINES];
    int n = 0;
    double total = 0;
    for (int i = 0; i < n_lines; i++)
        if (is(lines[i], "ops") && number(lines[i], "us") > 0 && strcmp(text(lines[i], "precision"), precision) == 0 &&
            (number(lines[i], "causal") > 0) == causal && number(lines[i], "rows") == rows) {
            total += step_us(lines[i]);
            of[n++] = lines[i];
        }
    if (n == 0) return;
    qsort(of, (size_t)n, sizeof *of, by_step);
    const double copy = peak("copy"), products = peak(precision);
    printf("\n### %s, %s, %.0f rows: %.2f ms a step, one operation after the other\n\n", precision,
           causal ? "causal" : "bidirectional", rows, 1e-3 * total);
    printf("| operation | calls a step | us a call | %% of the step | GB/s | %% of copy | TFLOP/s | %% of products | %% of the "
           "nearer limit |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < n; i++) {
        const double us = number(of[i], "us"), rate = 1e-3 * number(of[i], "bytes") / us,
                     flop = 1e-6 * number(of[i], "flop") / us;
        const double of_copy = copy > 0 ? 100 * rate / copy : 0;
        const double of_products = products > 0 && number(of[i], "arithmetic") > 0 ? 100 * flop / products : 0;
        printf("| %s | %.0f | %.1f | %.1f | %.0f | %.1f | %.1f | %.1f | %.1f |\n", text(of[i], "what"), number(of[i], "calls"),
               us, 100 * step_us(of[i]) / total, rate, of_copy, flop, of_products, of_copy > of_products ? of_copy : of_products);
    }
}

static void print_left_out(void)
{
    int any = 0;
    for (int i = 0; i < n_lines; i++) {
        if (!left_out(lines[i])) continue;
        if (!any++) printf("\n## Left out\n\n");
        printf("- %s, %s %s %s: %s\n", text(lines[i], "part"), text(lines[i], "who"), text(lines[i], "precision"),
               number(lines[i], "causal") > 0 ? "causal" : "", text(lines[i], "left_out"));
    }
}

int gpu_part_table(const char *folder)
{
    if (!read_folder(folder)) {
        fprintf(stderr, "bench_gpu: cannot read the folder %s\n", folder);
        return 1;
    }
    print_head();
    print_pivot("## Limits\n\nA copy on the device, read and written bytes counted, GB/s; square products of 8,192, TFLOP/s.", "",
                &(pivot){.part = "peak", .value = "value", .scale = 1, .row = label_what, .column = label_who});
    print_attention();
    print_pivot(
        "## 80 hours of WSJ's lengths, one epoch: seconds\n\n37,416 utterances of 780 frames on average, the paper's network, "
        "dropout 0.1; computed from the part of an epoch that was run.",
        "", &(pivot){.part = "epoch", .value = "epoch_s", .scale = 1, .row = label_who_precision, .column = label_batches});
    print_best_ratio();
    print_pivot("Memory at most, MiB:", "",
                &(pivot){.part = "epoch", .value = "mib", .scale = 1, .row = label_who_precision, .column = label_batches});
    print_pivot(
        "## Live streams: how many, until the 99th percentile of a tick exceeds the chunk\n\nAll streams get a chunk in every "
        "tick, sound in and phonemes out. A frame is 10 ms.",
        "frames a chunk",
        &(pivot){.part = "streams most", .value = "streams", .scale = 1, .row = label_chunk, .column = label_who_precision});
    print_pivot("The 99th percentile in ms, by streams and frames a chunk:", "streams",
                &(pivot){.part = "streams", .value = "p99_ms", .scale = 1, .row = label_streams, .column = label_chunk});
    print_pivot("The median in ms of a tick with chunks of 40 ms, by streams of a pass and in all:", "pass",
                &(pivot){.part = "streams in passes", .value = "p50_ms", .scale = 1, .row = label_pass, .column = label_streams});
    if (any_of("ops"))
        printf(
            "\n## Operations of a training step\n\nEach alone, its buffers not in the cache. Bytes: each input read once, each "
            "output written once.\n");
    // one table for every combination, in the order in which they were measured
    for (int i = 0; i < n_lines; i++)
        if (is(lines[i], "ops") && strcmp(text(lines[i], "what"), OPS_FIRST) == 0)
            print_ops(text(lines[i], "precision"), number(lines[i], "causal") > 0, number(lines[i], "rows"));
    print_left_out();
    for (int i = 0; i < n_lines; i++) cJSON_Delete(lines[i]);
    return 0;
}
