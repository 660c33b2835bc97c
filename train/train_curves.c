// The plot of a training run, drawn from its log: losses and dev PER by epoch, the best epoch, the learning rate below.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "train/lab/plot.h"
#include "train/train_internal.h"

// One finished epoch, or epoch 0: the model that the run began with. Values that were not measured are negative.
enum { LOSS, DEV_LOSS, DEV_PER, LR, COLUMNS };
typedef struct point {
    double epoch, values[COLUMNS];
} point;

enum { WIDTH = 760, HEIGHT = 480, LEFT = 74, RIGHT = 70, TOP = 84, MAIN = 232, GAP = 34, RATE = 62 };

static const char blue[] = "#1f5fa8", red[] = "#b8401c", green[] = "#3d7a2e";

static double most_of(const point *points, size_t n, int column)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, points[i].values[column]);
    return most;
}

static lin_status curve(lin_buffer *out, const lin_plot_panel *p, const point *points, size_t n, int column,
                        const lin_plot_style *style)
{
    lin_plot_point *places = lin_alloc(n, sizeof *places);
    if (!places) return LIN_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const double value = points[i].values[column], y = value >= 0 ? value : NAN;
        places[i] = (lin_plot_point){.x = points[i].epoch, .y = y, .low = y, .high = y};
    }
    lin_plot_curve(out, p, places, (int)n, style);
    lin_free(places);
    return LIN_OK;
}

// The epoch in best.safetensors: the lowest dev PER, else dev loss, else training loss.
static size_t best_of(const point *points, size_t n, int *column)
{
    size_t best = n > 1 && points[0].epoch < 1;
    *column = most_of(points, n, DEV_PER) > 0 ? 2 : most_of(points, n, DEV_LOSS) > 0 ? 1 : 0;
    for (size_t i = best + 1; i < n; i++) {
        const double value = points[i].values[*column], before = points[best].values[*column];
        if (value >= 0 && (value < before || before < 0)) best = i;
    }
    return best;
}

static void put_best(lin_buffer *out, const lin_plot_panel *p, const point *best, int column, const char *color)
{
    const double x = lin_plot_x(p, best->epoch), y = lin_plot_y(p, best->values[column]);
    lin_buffer_format(out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>\n", x, p->y, p->y + p->h);
    lin_buffer_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n", x, y,
                      color);
}

static void put_head(lin_buffer *out, const char *title, const point *best, size_t n, int column)
{
    static const char *const names[] = {"training loss %.4f", "dev loss %.4f", "dev PER %.2f %%"};
    char value[64];
    lin_plot_begin(out, WIDTH, HEIGHT, title);
    lin_buffer_format(out, "<text x=\"%d\" y=\"28\" font-size=\"16\">Training of ", LEFT);
    lin_buffer_html(out, title, strlen(title));
    lin_buffer_text(out, "</text>\n");
    if (n == 0) return; // epochs, without epoch 0
    snprintf(value, sizeof value, names[column], best->values[column]);
    lin_buffer_format(out, "<text x=\"%d\" y=\"48\" fill=\"#555\">%zu epoch%s; best %s, epoch %.0f</text>\n", LEFT, n,
                      n == 1 ? "" : "s", value, best->epoch);
}

static void fit(lin_plot_panel *p, double most, int ticks)
{
    p->up = (lin_plot_axis){.from = 0, .to = most > 1e-12 ? most : 1};
    lin_plot_fit(&p->up, ticks);
}

static lin_status draw(lin_buffer *out, const char *title, const point *points, size_t n)
{
    static const lin_plot_style training = {.color = blue}, dev = {.color = blue, .dashes = "5 3", .hollow = 1},
                                errors = {.color = red}, lr = {.color = green};
    int column;
    const point none = {1, {-1, -1, -1, -1}}, *best = n ? &points[best_of(points, n, &column)] : &none;
    const size_t epochs = n - (n && points[0].epoch < 1);
    if (!n) column = LOSS;
    put_head(out, title, best, epochs, column);
    lin_plot_panel p = {.x = LEFT, .y = TOP, .w = WIDTH - LEFT - RIGHT, .h = MAIN};
    p.across = (lin_plot_axis){.from = n ? points[0].epoch : 1, .to = n ? points[n - 1].epoch : 2, .whole = 1};
    p.across.to = fmax(p.across.to, p.across.from + 1);
    p.across.step = fmax(1, lin_plot_step(p.across.to - p.across.from + 1, 8));
    const double dev_loss = most_of(points, n, DEV_LOSS), per = most_of(points, n, DEV_PER);
    lin_plot_panel right = p, rate = p;
    rate.y = TOP + MAIN + GAP;
    rate.h = RATE;
    fit(&p, fmax(most_of(points, n, LOSS), dev_loss), 5);
    fit(&right, per, 5);
    fit(&rate, most_of(points, n, LR), 2);
    lin_plot_axis_y(out, &p, LIN_PLOT_LEFT, blue, "loss (nats per phoneme)");
    if (per > 0) lin_plot_axis_y(out, &right, LIN_PLOT_RIGHT, red, "dev PER (%)");
    lin_plot_axis_y(out, &rate, LIN_PLOT_LEFT, green, "learning rate");
    lin_plot_axis_x(out, &p, 0, "");
    lin_plot_axis_x(out, &rate, 1, "epoch");
    lin_plot_key(out, LEFT, 66, "training loss", &training);
    if (dev_loss > 0) lin_plot_key(out, LEFT + 130, 66, "dev loss", &dev);
    if (per > 0) lin_plot_key(out, LEFT + 232, 66, "dev PER", &errors);
    lin_plot_key(out, LEFT + 332, 66, "learning rate", &lr);
    if (epochs) put_best(out, column == DEV_PER ? &right : &p, best, column, column == DEV_PER ? red : blue);
    lin_status status = curve(out, &p, points, n, LOSS, &training);
    if (status == LIN_OK && dev_loss > 0) status = curve(out, &p, points, n, DEV_LOSS, &dev);
    if (status == LIN_OK && per > 0) status = curve(out, &right, points, n, DEV_PER, &errors);
    if (status == LIN_OK) status = curve(out, &rate, points, n, LR, &lr);
    lin_plot_end(out);
    return status;
}

// Rejects values that no run writes, which would give unbounded axes.
static int drawable(const point *p)
{
    for (int i = 0; i < COLUMNS; i++)
        if (!(fabs(p->values[i]) <= 1e9)) return 0;
    return p->epoch >= 0 && p->epoch <= 1e9;
}

char *lin_curves_svg(const char *log, const char *title)
{
    point *points = NULL;
    size_t n = 0, capacity = 0;
    lin_buffer out = {0};
    lin_status status = LIN_OK;
    for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        point p;
        if (sscanf(line + 1, "%lf %*f %lf %lf %lf %lf", &p.epoch, &p.values[LOSS], &p.values[DEV_LOSS], &p.values[DEV_PER],
                   &p.values[LR]) != 5) continue;
        if (!drawable(&p) || (n && p.epoch <= points[n - 1].epoch)) continue;
        status = lin_grow(&points, &capacity, n + 1, sizeof *points, "the training curves", NULL);
        if (status != LIN_OK) break;
        points[n++] = p;
    }
    if (status == LIN_OK) status = draw(&out, title, points, n);
    if (status == LIN_OK) status = lin_buffer_status(&out, NULL);
    lin_free(points);
    if (status != LIN_OK) lin_buffer_free(&out);
    return out.data;
}
