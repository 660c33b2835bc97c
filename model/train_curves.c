// The plot of a training run, drawn from its log: losses and dev PER by epoch, the best epoch, the learning rate below.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "model/train_internal.h"

// One finished epoch. Values that were not measured are negative.
typedef struct point {
    double epoch, loss, dev_loss, dev_per, lr;
} point;

typedef struct drawing {
    char *text; // NULL after running out of memory
    size_t n, capacity;
} drawing;

// A rectangle with axes: x of epochs first..last, y of 0..most.
typedef struct panel {
    double x, y, w, h, first, last, most;
} panel;

typedef enum stroke { LINE, DASHED } stroke;

enum { WIDTH = 760, HEIGHT = 480, LEFT = 74, RIGHT = 70, TOP = 84, MAIN = 232, GAP = 34, RATE = 62 };

static const char blue[] = "#1f5fa8", red[] = "#b8401c", green[] = "#3d7a2e";

__attribute__((format(printf, 2, 3))) static void put(drawing *d, const char *format, ...)
{
    char piece[640];
    va_list arguments;
    if (!d->text) return;
    va_start(arguments, format);
    const int n = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    const size_t length = n < 0 ? 0 : (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1;
    if (lin_grow(&d->text, &d->capacity, d->n + length + 1, 1, "the training curves", NULL) != LIN_OK) {
        lin_free(d->text);
        d->text = NULL;
        return;
    }
    memcpy(d->text + d->n, piece, length + 1);
    d->n += length;
}

// User text: markup escaped, bytes that are not text left out.
static void put_escaped(drawing *d, const char *text)
{
    const size_t n = strlen(text), good = lin_utf8_prefix(text, n, "");
    for (size_t i = 0; i < good; i++) {
        if (text[i] == '&') put(d, "&amp;");
        else if (text[i] == '<') put(d, "&lt;");
        else put(d, "%c", text[i]);
    }
    if (good < n) put(d, "...");
}

// 1, 2 or 5 times a power of ten, so that about `ticks` of them fill the range.
static double nice_step(double range, int ticks)
{
    const double raw = range / ticks, power = pow(10, floor(log10(raw))), share = raw / power;
    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

static double x_of(const panel *p, double epoch) { return p->x + p->w * (epoch - p->first) / (p->last - p->first); }

static double y_of(const panel *p, double value) { return p->y + p->h * (1 - value / p->most); }

// Draws the axis up to `most`, which is rounded up to a whole number of steps. side 0: left, with grid lines; 1: right.
static void y_axis(drawing *d, panel *p, double most, int ticks, int side, const char *color, const char *label)
{
    if (!(most > 1e-12)) most = 1;
    const double step = nice_step(most, ticks), steps = ceil(most / step - 1e-9);
    const double x = side ? p->x + p->w : p->x, middle = p->y + p->h / 2, out = side ? 54 : -56;
    p->most = steps * step;
    for (int i = 0; i <= (int)steps; i++) {
        const double y = y_of(p, i * step);
        if (!side) put(d, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#ddd\"/>\n", p->x, y, p->w);
        put(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%.6g</text>\n", x + (side ? 8 : -8), y + 4,
            side ? "start" : "end", color, i * step);
    }
    put(d, "<text transform=\"translate(%.1f %.1f) rotate(%d)\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n", x + out, middle,
        side ? 90 : -90, color, label);
}

static void x_axis(drawing *d, const panel *p, int numbers)
{
    const double step = fmax(1, nice_step(p->last - p->first + 1, 8));
    put(d, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#555\"/>\n", p->x, p->y + p->h, p->w);
    for (double e = p->first; e <= p->last; e = e < step ? step : e + step) {
        put(d, "<path d=\"M%.1f %.1fv5\" stroke=\"#555\"/>\n", x_of(p, e), p->y + p->h);
        if (numbers) put(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f</text>\n", x_of(p, e), p->y + p->h + 19, e);
    }
    if (numbers) put(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">epoch</text>\n", p->x + p->w / 2, p->y + p->h + 38);
}

static double value_of(const point *p, int column)
{
    const double values[] = {p->loss, p->dev_loss, 100 * p->dev_per, p->lr};
    return values[column];
}

static double most_of(const point *points, size_t n, int column)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, value_of(&points[i], column));
    return most;
}

// A line through the measured points, with a marker at each.
static void curve(drawing *d, const panel *p, const point *points, size_t n, int column, const char *color, stroke kind)
{
    put(d, "<polyline fill=\"none\" stroke-width=\"1.8\" stroke=\"%s\"%s points=\"", color,
        kind == DASHED ? " stroke-dasharray=\"5 3\"" : "");
    for (size_t i = 0; i < n; i++)
        if (value_of(&points[i], column) >= 0)
            put(d, "%.1f,%.1f ", x_of(p, points[i].epoch), y_of(p, value_of(&points[i], column)));
    put(d, "\"/>\n");
    const double radius = n <= 60 ? 2.6 : n <= 200 ? 1.6 : 1;
    for (size_t i = 0; i < n; i++)
        if (value_of(&points[i], column) >= 0)
            put(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", x_of(p, points[i].epoch),
                y_of(p, value_of(&points[i], column)), radius, kind == DASHED ? "white" : color);
    if (kind != DASHED) return;
    for (size_t i = 0; i < n; i++)
        if (value_of(&points[i], column) >= 0)
            put(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"none\" stroke=\"%s\"/>\n", x_of(p, points[i].epoch),
                y_of(p, value_of(&points[i], column)), radius, color);
}

// The epoch in best.safetensors: the lowest dev PER, else dev loss, else training loss.
static size_t best_of(const point *points, size_t n, int *column)
{
    size_t best = 0;
    *column = most_of(points, n, 2) > 0 ? 2 : most_of(points, n, 1) > 0 ? 1 : 0;
    for (size_t i = 1; i < n; i++) {
        const double value = value_of(&points[i], *column), before = value_of(&points[best], *column);
        if (value >= 0 && (value < before || before < 0)) best = i;
    }
    return best;
}

static void put_best(drawing *d, const panel *p, const point *best, int column, const char *color)
{
    const double x = x_of(p, best->epoch), y = y_of(p, value_of(best, column));
    put(d, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>\n", x, p->y, p->y + p->h);
    put(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n", x, y, color);
}

static void put_head(drawing *d, const char *title, const point *best, size_t n, int column)
{
    static const char *const names[] = {"training loss %.4f", "dev loss %.4f", "dev PER %.2f %%"};
    char value[64];
    put(d,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" "
        "fill=\"#222\">\n"
        "<title>",
        WIDTH, HEIGHT);
    put_escaped(d, title);
    put(d,
        "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"28\" font-size=\"16\">Training of ",
        LEFT);
    put_escaped(d, title);
    put(d, "</text>\n");
    if (n == 0) return;
    snprintf(value, sizeof value, names[column], value_of(best, column));
    put(d, "<text x=\"%d\" y=\"48\" fill=\"#555\">%zu epoch%s; best %s, epoch %.0f</text>\n", LEFT, n, n == 1 ? "" : "s", value,
        best->epoch);
}

static void put_key(drawing *d, double x, const char *name, const char *color, stroke kind)
{
    put(d,
        "<path d=\"M%.1f 66h22\" stroke=\"%s\" stroke-width=\"1.8\"%s/>\n<circle cx=\"%.1f\" cy=\"66\" r=\"2.6\" fill=\"%s\" "
        "stroke=\"%s\"/>\n"
        "<text x=\"%.1f\" y=\"70\" fill=\"%s\">%s</text>\n",
        x, color, kind == DASHED ? " stroke-dasharray=\"5 3\"" : "", x + 11, kind == DASHED ? "white" : color, color, x + 28, color,
        name);
}

static void draw(drawing *d, const char *title, const point *points, size_t n)
{
    int column;
    const point none = {1, -1, -1, -1, -1}, *best = n ? &points[best_of(points, n, &column)] : &none;
    if (!n) column = 0;
    put_head(d, title, best, n, column);
    panel p = {.x = LEFT, .y = TOP, .w = WIDTH - LEFT - RIGHT, .h = MAIN, .first = 1, .last = 2};
    if (n) p.first = points[0].epoch, p.last = fmax(points[n - 1].epoch, p.first + 1);
    const double loss = fmax(most_of(points, n, 0), most_of(points, n, 1)), per = most_of(points, n, 2);
    panel right = p, rate = p;
    rate.y = TOP + MAIN + GAP;
    rate.h = RATE;
    y_axis(d, &p, loss, 5, 0, blue, "loss (nats per phoneme)");
    if (per > 0) y_axis(d, &right, per, 5, 1, red, "dev PER (%)");
    y_axis(d, &rate, most_of(points, n, 3), 2, 0, green, "learning rate");
    x_axis(d, &p, 0);
    x_axis(d, &rate, 1);
    put_key(d, LEFT, "training loss", blue, LINE);
    if (most_of(points, n, 1) > 0) put_key(d, LEFT + 130, "dev loss", blue, DASHED);
    if (per > 0) put_key(d, LEFT + 232, "dev PER", red, LINE);
    put_key(d, LEFT + 332, "learning rate", green, LINE);
    if (n) put_best(d, column == 2 ? &right : &p, best, column, column == 2 ? red : blue);
    curve(d, &p, points, n, 0, blue, LINE);
    if (most_of(points, n, 1) > 0) curve(d, &p, points, n, 1, blue, DASHED);
    if (per > 0) curve(d, &right, points, n, 2, red, LINE);
    curve(d, &rate, points, n, 3, green, LINE);
    put(d, "</svg>\n");
}

// Rejects values that no run writes, which would give unbounded axes.
static int drawable(const point *p)
{
    const double values[] = {p->loss, p->dev_loss, p->dev_per, p->lr};
    for (int i = 0; i < 4; i++)
        if (!(fabs(values[i]) <= 1e9)) return 0;
    return p->epoch >= 1 && p->epoch <= 1e9;
}

char *lin_curves_svg(const char *log, const char *title)
{
    point *points = NULL;
    size_t n = 0, capacity = 0;
    drawing d = {.text = lin_alloc(4096, 1), .capacity = 4096};
    for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        point p;
        if (sscanf(line + 1, "%lf %*f %lf %lf %lf %lf", &p.epoch, &p.loss, &p.dev_loss, &p.dev_per, &p.lr) != 5) continue;
        if (!drawable(&p) || (n && p.epoch <= points[n - 1].epoch)) continue;
        if (lin_grow(&points, &capacity, n + 1, sizeof *points, "the training curves", NULL) != LIN_OK) {
            lin_free(d.text);
            d.text = NULL;
            break;
        }
        points[n++] = p;
    }
    if (d.text) draw(&d, title, points, n);
    lin_free(points);
    return d.text;
}
