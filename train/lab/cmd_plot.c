// cmd_plot.c - linnet plot: columns of a table become a chart (SVG).

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "train/lab/plot.h"

enum { SCALE_LINEAR, SCALE_LOG, SCALE_LOG2, MOST_SERIES = 32, MOST_COLUMNS = 256 };

typedef struct plot_values {
    const char *output, *x, *y, *by, *title, *note;
    int x_scale, y_scale;
} plot_values;

#define AT(field) offsetof(plot_values, field)
static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = AT(output),
     .help = "The SVG file to write; if not given, standard output"},
    {.name = "x", .type = LIN_OPTION_STRING, .at = AT(x), .value = "COLUMN[*X][:LABEL]",
     .help = "The column of x by its name, times a number for another unit, and the label of the axis, the name if not given "
             "(seconds*0.01667:minutes). Without --x a bar for each text of --by, the mean of its y"},
    {.name = "y", .type = LIN_OPTION_STRING, .required = 1, .at = AT(y), .value = "COLUMN[*X][:LABEL]", .help = "Likewise for y"},
    {.name = "by", .type = LIN_OPTION_STRING, .at = AT(by), .value = "COLUMN",
     .help = "One curve for each text of this column, in order of first appearance; rows of a curve with equal x become their "
             "mean, with a bar from the lowest to the highest"},
    {.type = LIN_OPTION_HEADING, .help = "Axes"},
    {.name = "x-scale", .under = "axes", .type = LIN_OPTION_CHOICE, .at = AT(x_scale), .text = "linear",
     .choices = "linear|log|log2", .help = "Scale of the x axis; log2 has its ticks at powers of two"},
    {.name = "y-scale", .under = "axes", .type = LIN_OPTION_CHOICE, .at = AT(y_scale), .text = "linear",
     .choices = "linear|log|log2", .help = "Scale of the y axis"},
    {.type = LIN_OPTION_HEADING, .help = "Texts"},
    {.name = "axes", .type = LIN_OPTION_SETTINGS, .help = "Scales of the axes"},
    {.name = "title", .type = LIN_OPTION_STRING, .at = AT(title), .text = "", .help = "Title"},
    {.name = "note", .type = LIN_OPTION_STRING, .at = AT(note), .text = "", .help = "A small line below the title"},
    {.type = LIN_OPTION_END},
};
#undef AT

// A curve while its rows are read: one point per row.
typedef struct curve {
    char *name;
    lin_plot_point *points;
    size_t n, capacity;
} curve;

// The value of --x or --y.
typedef struct axis {
    char column[64];
    double factor;
    const char *label;
} axis;

typedef struct plot {
    const plot_values *v;
    axis x, y;
    curve curves[MOST_SERIES];
    int n_curves;
} plot;

typedef enum column { X, Y, BY, N_COLUMNS } column;

typedef struct cell {
    const char *text;
    size_t n;
} cell;

// Splits a line at single tabs. Returns the number of cells, at most MOST_COLUMNS.
static int split(const lin_lines *line, cell *cells)
{
    const char *at = line->text, *end = at + line->n;
    for (int n = 0; n < MOST_COLUMNS;) {
        const char *tab = memchr(at, '\t', (size_t)(end - at)), *stop = tab ? tab : end;
        cells[n++] = (cell){at, (size_t)(stop - at)};
        if (!tab) return n;
        at = tab + 1;
    }
    return MOST_COLUMNS;
}

// COLUMN[*X][:LABEL]; 0: it is none.
static int read_axis(const char *text, axis *a)
{
    const size_t all = strcspn(text, ":"), n = strcspn(text, "*:");
    *a = (axis){.factor = 1};
    if (n == 0 || n >= sizeof a->column) return 0;
    memcpy(a->column, text, n);
    a->label = text[all] ? text + all + 1 : a->column;
    return n == all || lin_text_number(text + n + 1, all - n - 1, &a->factor);
}

static lin_status find_columns(const plot *p, const char *path, const lin_lines *head, int at[N_COLUMNS], lin_error *err)
{
    const char *const names[N_COLUMNS] = {p->v->x ? p->x.column : NULL, p->y.column, p->v->by};
    cell cells[MOST_COLUMNS];
    const int n = split(head, cells);
    for (int c = 0; c < N_COLUMNS; c++) {
        at[c] = -1;
        for (int i = 0; i < n && names[c]; i++) {
            if (cells[i].n != strlen(names[c]) || memcmp(cells[i].text, names[c], cells[i].n) != 0) continue;
            if (at[c] >= 0) return lin_fail(err, LIN_FORMAT, "%s has two columns named '%.60s'", path, names[c]);
            at[c] = i;
        }
        if (names[c] && at[c] < 0)
            return lin_fail(err, LIN_FORMAT, "%s has no column named '%.60s' in its first line", path, names[c]);
    }
    return LIN_OK;
}

// A missing cell, "" or "-", gives NaN.
static lin_status number(const char *path, const lin_lines *line, const cell *cells, int n, int at, double factor, double *value,
                         lin_error *err)
{
    char shown[LIN_QUOTE];
    *value = NAN;
    if (at < 0 || at >= n || cells[at].n == 0 || (cells[at].n == 1 && cells[at].text[0] == '-')) return LIN_OK;
    if (!lin_text_number(cells[at].text, cells[at].n, value))
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' is not a number", path, line->number,
                        lin_quote(shown, cells[at].text, cells[at].n));
    *value *= factor;
    return LIN_OK;
}

static lin_status curve_named(plot *p, const cell *name, curve **found, lin_error *err)
{
    for (int i = 0; i < p->n_curves; i++) {
        *found = &p->curves[i];
        if (strlen((*found)->name) == name->n && memcmp((*found)->name, name->text, name->n) == 0) return LIN_OK;
    }
    if (p->n_curves == MOST_SERIES) return lin_fail(err, LIN_INVALID, "more than %d curves", MOST_SERIES);
    *found = &p->curves[p->n_curves];
    **found = (curve){.name = lin_text_copy(name->text, name->n)};
    if (!(*found)->name) return lin_no_memory(err, "a curve", name->n);
    p->n_curves++;
    return LIN_OK;
}

static lin_status add_row(plot *p, const char *path, const lin_lines *line, const int at[N_COLUMNS], lin_error *err)
{
    const plot_values *v = p->v;
    cell cells[MOST_COLUMNS];
    const int n = split(line, cells);
    lin_plot_point point;
    curve *c = NULL;
    LIN_TRY(number(path, line, cells, n, at[X], p->x.factor, &point.x, err));
    LIN_TRY(number(path, line, cells, n, at[Y], p->y.factor, &point.y, err));
    if (!v->x) point.x = 0;
    if (isnan(point.x) || isnan(point.y)) return LIN_OK;
    point.low = point.high = point.y;
    const cell name = at[BY] >= 0 && at[BY] < n ? cells[at[BY]] : (cell){p->y.column, strlen(p->y.column)};
    LIN_TRY(curve_named(p, &name, &c, err));
    LIN_TRY(lin_grow(&c->points, &c->capacity, c->n + 1, sizeof *c->points, path, err));
    c->points[c->n++] = point;
    return LIN_OK;
}

// Lines that begin with # are comments.
static lin_status read_table(plot *p, const char *path, lin_error *err)
{
    char *text;
    size_t n;
    int at[N_COLUMNS], headed = 0;
    lin_lines line = {0};
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines_begin(&line, text, n);
    while (status == LIN_OK && lin_lines_next(&line)) {
        if (line.n == 0 || line.text[0] == '#') continue;
        status = headed ? add_row(p, path, &line, at, err) : find_columns(p, path, &line, at, err);
        headed = 1;
    }
    if (status == LIN_OK && !headed) status = lin_fail(err, LIN_FORMAT, "%s is empty", path);
    lin_free(text);
    return status;
}

static int by_x(const void *a, const void *b)
{
    const lin_plot_point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

// Sorts the points; points with the same x become one, with a bar from the lowest to the highest.
static void settle(curve *c)
{
    size_t kept = 0;
    qsort(c->points, c->n, sizeof *c->points, by_x);
    for (size_t i = 0, next; i < c->n; i = next) {
        lin_plot_point mean = c->points[i];
        for (next = i + 1; next < c->n && c->points[next].x <= mean.x; next++) {
            mean.y += c->points[next].y;
            mean.low = fmin(mean.low, c->points[next].y);
            mean.high = fmax(mean.high, c->points[next].y);
        }
        mean.y /= (double)(next - i);
        c->points[kept++] = mean;
    }
    c->n = kept;
}

static lin_chart_axis axis_of(const char *label, int scale)
{
    return (lin_chart_axis){.label = label, .log = scale == SCALE_LINEAR ? 0 : scale == SCALE_LOG ? 10 : 2};
}

// A logarithmic axis has no place for 0 and less: says how many points, and how many error bars of others, are left out.
static void tell_left_out(const plot *p)
{
    const int x_is_log = p->v->x && p->v->x_scale != SCALE_LINEAR, y_is_log = p->v->y_scale != SCALE_LINEAR;
    size_t points = 0, bars = 0;
    for (int i = 0; i < p->n_curves; i++)
        for (size_t k = 0; k < p->curves[i].n; k++) {
            const lin_plot_point *at = &p->curves[i].points[k];
            const int is_out = (x_is_log && at->x <= 0) || (y_is_log && at->y <= 0);
            points += (size_t)is_out;
            bars += !is_out && y_is_log && at->low <= 0;
        }
    if (points || bars)
        lin_complain("%zu point%s and %zu error bar%s are not drawn: a logarithmic axis has no place for 0 and less", points,
                     points == 1 ? "" : "s", bars, bars == 1 ? "" : "s");
}

static lin_status draw(plot *p, lin_error *err)
{
    const plot_values *v = p->v;
    lin_chart_series series[MOST_SERIES];
    lin_buffer out = {0};
    for (int i = 0; i < p->n_curves; i++) settle(&p->curves[i]);
    tell_left_out(p);
    for (int i = 0; i < p->n_curves; i++) {
        series[i] = (lin_chart_series){.name = p->curves[i].name, .points = p->curves[i].points, .n = (int)p->curves[i].n};
    }
    const lin_chart chart = {.title = v->title, .note = v->note, .series = series, .n_series = p->n_curves, .bars = !v->x,
                             .x = axis_of(v->x ? p->x.label : "", v->x_scale),
                             .y = axis_of(p->y.label, v->y_scale)};
    lin_chart_svg(&chart, &out);
    lin_status status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_output_write(v->output, 0, &out, err);
    lin_buffer_free(&out);
    return status;
}

static int run(lin_parsed *parsed)
{
    const plot_values *v = parsed->values;
    lin_error err = {0};
    static plot p;
    p = (plot){.v = v};
    if (v->x && !read_axis(v->x, &p.x)) return lin_misuse(parsed, "--x is COLUMN[*X][:LABEL], not '%.60s'", v->x);
    if (!read_axis(v->y, &p.y)) return lin_misuse(parsed, "--y is COLUMN[*X][:LABEL], not '%.60s'", v->y);
    lin_status status = LIN_OK;
    for (int i = 0; i < parsed->operands.count && status == LIN_OK; i++) status = read_table(&p, parsed->operands.items[i], &err);
    if (status == LIN_OK && !p.n_curves)
        lin_complain("%s: the chart is empty, as no row has a number for --y%s", parsed->operands.items[0],
                     v->x ? " and --x" : "");
    if (status == LIN_OK) status = draw(&p, &err);
    for (int i = 0; i < p.n_curves; i++) {
        lin_free(p.curves[i].name);
        lin_free(p.curves[i].points);
    }
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_plot = {
    .name = "plot",
    .operands = "TABLE...",
    .summary = "draw columns of a table as a chart",
    .description =
        "Reads tables of cells separated by tabs, whose first line names the columns, and writes a chart as SVG. A row "
        "whose x or y is empty or '-' is skipped, and so are lines that begin with '#'. The rows of several tables are "
        "drawn together. Points of 0 and less are not drawn on a logarithmic axis; a message says how many.",
    .examples = "  linnet plot run/log.tsv --x epoch --y 'dev_per_percent:dev PER (%)' -o per.svg\n"
                "  linnet plot time.tsv --x frames --y ms --by attention --axes x-scale=log2,y-scale=log -o time.svg",
    .options = options,
    .values_size = sizeof(plot_values),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
