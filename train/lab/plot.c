// plot.c - axes with ticks, curves, markers and keys as SVG text.

#include "train/lab/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/unicode.h"

enum { MARK_ALL = 60, MARKED = 12, MOST_TICKS = 100 };

void lin_plot_begin(lin_buffer *out, int width, int height, const char *title)
{
    lin_buffer_format(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                      "font-size=\"12\" fill=\"#222\">\n<title>",
                      width, height);
    lin_buffer_html(out, title, strlen(title));
    lin_buffer_text(out, "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
}

void lin_plot_end(lin_buffer *out) { lin_buffer_text(out, "</svg>\n"); }

// Text at (x, y), with any bytes. anchor: "start", "middle" or "end".
static void put_text(lin_buffer *out, double x, double y, int size, const char *anchor, const char *color, const char *text)
{
    lin_buffer_format(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\">", x, y, size, anchor,
                      color);
    lin_buffer_html(out, text, strlen(text));
    lin_buffer_text(out, "</text>\n");
}

/* ---- axes ------------------------------------------------------------------------------------------------------------------ */

double lin_plot_step(double range, int ticks)
{
    const double raw = range / ticks, power = pow(10, floor(log10(raw))), share = raw / power;
    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

// The largest 1, 2 or 5 times a power of ten that is at most v, or the smallest that is at least v.
static double round_log(double v, int up)
{
    static const double steps[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(v) + 1e-9));
    for (int i = 0; i < 4; i++) {
        if (up && steps[i] * power >= v * (1 - 1e-9)) return steps[i] * power;
        if (!up && (i == 3 || steps[i + 1] * power > v * (1 + 1e-9))) return steps[i] * power;
    }
    return 10 * power;
}

static void fit_log(lin_plot_axis *a)
{
    if (!(a->to > 1e-30 && a->to < 1e30)) a->to = 1;
    if (!(a->from > 1e-30 && a->from <= a->to)) a->from = a->to;
    a->step = 0;
    if (a->log == 2) {
        a->from = exp2(floor(log2(a->from) + 1e-9));
        a->to = exp2(ceil(log2(a->to) - 1e-9));
    } else {
        a->from = round_log(a->from, 0);
        a->to = round_log(a->to, 1);
    }
    if (a->to < 1.5 * a->from) a->to = 2 * a->from;
}

void lin_plot_fit(lin_plot_axis *a, int ticks)
{
    if (a->log) {
        fit_log(a);
        return;
    }
    if (!(fabs(a->from) < 1e30)) a->from = 0;
    if (!(fabs(a->to) < 1e30) || !(a->to - a->from > 1e-12 * (1 + fabs(a->from)))) a->to = a->from + 1;
    a->step = lin_plot_step(a->to - a->from, ticks);
    if (a->whole) a->step = fmax(1, a->step);
    a->from = a->step * floor(a->from / a->step + 1e-9);
    a->to = a->step * ceil(a->to / a->step - 1e-9);
}

static double share_of(const lin_plot_axis *a, double v)
{
    return a->log ? log(v / a->from) / log(a->to / a->from) : (v - a->from) / (a->to - a->from);
}

// Clamped, so that no coordinate of a drawing overflows.
static double bounded(double share) { return share < -10 ? -10 : share > 10 ? 10 : share; }

double lin_plot_x(const lin_plot_panel *p, double x) { return p->x + p->w * bounded(share_of(&p->across, x)); }

double lin_plot_y(const lin_plot_panel *p, double y) { return p->y + p->h * (1 - bounded(share_of(&p->up, y))); }

// The values of the ticks in order; major ones get a number. Returns their number.
static int ticks_of(const lin_plot_axis *a, double values[MOST_TICKS], int major[MOST_TICKS])
{
    static const int within[] = {1, 2, 5};
    const double decades = a->log ? log10(a->to / a->from) : 0;
    int n = 0, power_number = 0;
    if (!a->log) {
        for (double i = ceil(a->from / a->step - 1e-9); i * a->step <= a->to + 1e-9 * a->step && n < MOST_TICKS; i++)
            values[n] = i * a->step + 0.0, major[n++] = 1;
    } else if (a->log == 2) {
        const int every = (int)ceil((log2(a->to / a->from) + 1) / 12);
        for (double v = a->from; v <= a->to * (1 + 1e-9) && n < MOST_TICKS; v *= 2, n++) values[n] = v, major[n] = n % every == 0;
    } else {
        for (double power = pow(10, floor(log10(a->from) + 1e-9)); power <= a->to * (1 + 1e-9); power *= 10, power_number++)
            for (int i = 0; i < 3 && n < MOST_TICKS; i++) {
                const double v = within[i] * power;
                if (v < a->from * (1 - 1e-9) || v > a->to * (1 + 1e-9)) continue;
                values[n] = v;
                major[n++] = decades <= 3 || (i == 0 && power_number % (1 + (int)(decades / 10)) == 0);
            }
    }
    return n;
}

// A number as people write it: 0.05, 300, 1,024, and powers of ten beyond that.
static void put_number(lin_buffer *out, double v)
{
    const double size = fabs(v);
    if (size >= 1e3 && size < 1e7 && v == floor(v)) {
        const int n = (int)size;
        if (n < 1000000) lin_buffer_format(out, "%s%d,%03d", v < 0 ? "-" : "", n / 1000, n % 1000);
        else lin_buffer_format(out, "%s%d,%03d,%03d", v < 0 ? "-" : "", n / 1000000, n / 1000 % 1000, n % 1000);
        return;
    }
    if (size >= 1e7 || (size < 1e-4 && size > 0)) {
        const double power = floor(log10(size) + 1e-9), factor = v / pow(10, power);
        if (fabs(factor - 1) > 1e-6) lin_buffer_format(out, "%.3g\xC2\xB7", factor);
        lin_buffer_format(out, "10<tspan dy=\"-5\" font-size=\"9\">%.0f</tspan>", power);
        return;
    }
    lin_buffer_format(out, "%.6g", v + 0.0); // -0 is 0
}

static void open_text(lin_buffer *out, double x, double y, const char *anchor, const char *color)
{
    lin_buffer_format(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor, color);
}

void lin_plot_axis_x(lin_buffer *out, const lin_plot_panel *p, int numbers, const char *label)
{
    double values[MOST_TICKS];
    int major[MOST_TICKS];
    const int n = ticks_of(&p->across, values, major);
    const double bottom = p->y + p->h;
    lin_buffer_format(out, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#555\"/>\n", p->x, bottom, p->w);
    for (int i = 0; i < n; i++) {
        const double x = lin_plot_x(p, values[i]);
        lin_buffer_format(out, "<path d=\"M%.1f %.1fv%d\" stroke=\"#555\"/>\n", x, bottom, major[i] ? 5 : 3);
        if (!numbers || !major[i]) continue;
        open_text(out, x, bottom + 19, "middle", "#222");
        put_number(out, values[i]);
        lin_buffer_text(out, "</text>\n");
    }
    if (numbers) put_text(out, p->x + p->w / 2, bottom + 38, 12, "middle", "#222", label);
}

void lin_plot_axis_y(lin_buffer *out, const lin_plot_panel *p, lin_plot_side side, const char *color, const char *label)
{
    double values[MOST_TICKS];
    int major[MOST_TICKS];
    const int n = ticks_of(&p->up, values, major), right = side == LIN_PLOT_RIGHT;
    for (int i = 0; i < n; i++) {
        const double y = lin_plot_y(p, values[i]);
        if (!right)
            lin_buffer_format(out, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"%s\"/>\n", p->x, y, p->w, major[i] ? "#ddd" : "#f0f0f0");
        if (!major[i]) continue;
        open_text(out, right ? p->x + p->w + 8 : p->x - 8, y + 4, right ? "start" : "end", color);
        put_number(out, values[i]);
        lin_buffer_text(out, "</text>\n");
    }
    lin_buffer_format(out, "<text transform=\"translate(%.1f %.1f) rotate(%d)\" text-anchor=\"middle\" fill=\"%s\">",
                      right ? p->x + p->w + 54 : p->x - 56, p->y + p->h / 2, right ? 90 : -90, color);
    lin_buffer_html(out, label, strlen(label));
    lin_buffer_text(out, "</text>\n");
}

/* ---- curves ---------------------------------------------------------------------------------------------------------------- */

static int usable(const lin_plot_axis *a, double v) { return isfinite(v) && (!a->log || v > 0); }

static int drawn(const lin_plot_panel *p, const lin_plot_point *at) { return usable(&p->across, at->x) && usable(&p->up, at->y); }

static void put_marker(lin_buffer *out, double x, double y, double r, const lin_plot_style *s)
{
    const char *fill = s->hollow ? "white" : s->color;
    switch (s->marker) {
    case LIN_PLOT_CIRCLE: lin_buffer_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", x, y, r); break;
    case LIN_PLOT_SQUARE:
        lin_buffer_format(out, "<path d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"", x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, -1.8 * r);
        break;
    case LIN_PLOT_TRIANGLE:
        lin_buffer_format(out, "<path d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"", x, y - 1.2 * r, 1.15 * r, 2 * r, -2.3 * r);
        break;
    case LIN_PLOT_DIAMOND:
        lin_buffer_format(out, "<path d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"", x, y - 1.35 * r, 1.35 * r, 1.35 * r,
                          -1.35 * r, 1.35 * r, -1.35 * r, -1.35 * r);
        break;
    }
    lin_buffer_format(out, " fill=\"%s\" stroke=\"%s\"/>\n", fill, s->color);
}

static void put_bar(lin_buffer *out, const lin_plot_panel *p, const lin_plot_point *at, const char *color)
{
    if (!usable(&p->up, at->low) || !usable(&p->up, at->high) || !(at->low < at->high)) return;
    const double x = lin_plot_x(p, at->x), top = fmax(p->y, lin_plot_y(p, at->high)),
                 end = fmin(p->y + p->h, lin_plot_y(p, at->low));
    if (end <= top) return;
    lin_buffer_format(out, "<path d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\" fill=\"none\" stroke=\"%s\"/>\n", x - 3, top, end, color);
}

void lin_plot_curve(lin_buffer *out, const lin_plot_panel *p, const lin_plot_point *points, int n, const lin_plot_style *s)
{
    // A nested viewport clips the curve.
    lin_buffer_format(out, "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" viewBox=\"%.1f %.1f %.1f %.1f\">", p->x - 6,
                      p->y - 6, p->w + 12, p->h + 12, p->x - 6, p->y - 6, p->w + 12, p->h + 12);
    lin_buffer_format(out, "<polyline fill=\"none\" stroke-width=\"1.8\" stroke=\"%s\"", s->color);
    if (s->dashes) lin_buffer_format(out, " stroke-dasharray=\"%s\"", s->dashes);
    lin_buffer_text(out, " points=\"");
    for (int i = 0; i < n; i++)
        if (drawn(p, &points[i])) lin_buffer_format(out, "%.1f,%.1f ", lin_plot_x(p, points[i].x), lin_plot_y(p, points[i].y));
    lin_buffer_text(out, "\"/></svg>\n");
    const int every = n <= MARK_ALL ? 1 : n / MARKED;
    for (int i = n > 0 ? (n - 1) % every : 0; i < n; i += every) {
        const double x = lin_plot_x(p, points[i].x), y = lin_plot_y(p, points[i].y);
        if (!drawn(p, &points[i]) || y < p->y - 1 || y > p->y + p->h + 1 || x < p->x - 1 || x > p->x + p->w + 1) continue;
        put_bar(out, p, &points[i], s->color);
        put_marker(out, x, y, n <= MARK_ALL / 2 ? 3.2 : 2.6, s);
    }
}

void lin_plot_key(lin_buffer *out, double x, double y, const char *name, const lin_plot_style *s)
{
    lin_buffer_format(out, "<path d=\"M%.1f %.1fh22\" stroke=\"%s\" stroke-width=\"1.8\"", x, y, s->color);
    if (s->dashes) lin_buffer_format(out, " stroke-dasharray=\"%s\"", s->dashes);
    lin_buffer_text(out, "/>\n");
    put_marker(out, x + 11, y, 2.6, s);
    put_text(out, x + 28, y + 4, 12, "start", s->color, name);
}

/* ---- a chart of several curves --------------------------------------------------------------------------------------------- */

enum { WIDTH = 760, HEIGHT = 480, LEFT = 84, TOP = 66, BOTTOM = 58, MOST_NAME = 30 };

// Colours that people with any colour vision can tell apart (Okabe & Ito 2008), each with its own marker and dashes for print.
static lin_plot_style style_of(int i)
{
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#a0529b", "#b57c00", "#3a3a3a", "#2f9fd8", "#b03060"};
    static const char *const dashes[] = {NULL, "7 3", "2 2.5", "9 3 2 3", "4 2", NULL, "12 3", "1.5 3"};
    return (lin_plot_style){.color = colors[i % 8], .dashes = dashes[(i + i / 8) % 8], .marker = (lin_plot_marker)(i % 4),
                            .hollow = (i / 4) % 2};
}

static void widen(double v, int log, double *from, double *to)
{
    if (!isfinite(v) || fabs(v) >= 1e30 || (log && !(v > 1e-30))) return;
    if (!(*from <= v)) *from = v;
    if (!(*to >= v)) *to = v;
}

// The range of the data, with ticks at whole numbers if all x are whole; a linear y axis begins at 0 unless that would waste more
// than half of it.
static lin_plot_axis axis_of(const lin_chart *chart, const lin_chart_axis *a, int up, int ticks)
{
    lin_plot_axis axis = {.from = NAN, .to = NAN, .log = a->log, .whole = !up};
    for (int s = 0; s < chart->n_series; s++)
        for (int i = 0; i < chart->series[s].n; i++) {
            const lin_plot_point *p = &chart->series[s].points[i];
            widen(up ? p->y : p->x, a->log, &axis.from, &axis.to);
            if (p->x != floor(p->x)) axis.whole = 0;
            if (up && p->low < p->high) widen(p->low, a->log, &axis.from, &axis.to), widen(p->high, a->log, &axis.from, &axis.to);
        }
    if (up && !a->log && axis.from > 0 && (chart->bars || axis.from < 0.5 * axis.to)) axis.from = 0;
    const lin_plot_axis given = axis;
    lin_plot_fit(&axis, ticks);
    // The x axis ends with the data.
    if (!up && given.from < axis.to && (!a->log || given.from > 0)) axis.from = given.from;
    if (!up && given.to > axis.from) axis.to = given.to;
    return axis;
}

static double legend_width(const lin_chart *chart)
{
    size_t most = 0;
    for (int i = 0; i < chart->n_series; i++) {
        const size_t n = strlen(chart->series[i].name);
        if (n > most) most = n;
    }
    return 52 + 6.6 * (double)(most < MOST_NAME ? most : MOST_NAME);
}

// A name of the legend, cut at a character to the legend's width.
static void put_name(lin_buffer *out, double x, double y, const char *name, const lin_plot_style *style)
{
    char text[4 * MOST_NAME + 4];
    size_t n = 0, characters = 0;
    const size_t all = strlen(name);
    while (n < all && characters < MOST_NAME) {
        const size_t length = lin_utf8_decode(name + n, all - n, NULL);
        if (n + (length ? length : 1) > sizeof text - 4) break;
        n += length ? length : 1;
        characters++;
    }
    memcpy(text, name, n);
    strcpy(text + n, n < all ? "..." : "");
    lin_plot_key(out, x, y, text, style);
}

// A long note is smaller, so that it ends within the drawing.
static int note_size(const char *note)
{
    const size_t n = strlen(note);
    return n <= 104 ? 12 : n <= 125 ? 10 : n <= 156 ? 8 : 7;
}

// Bar i of n, its error bar and its value above it.
static void put_column(lin_buffer *out, const lin_plot_panel *p, int i, int n, const lin_plot_point *at, const char *color)
{
    lin_plot_point middle = *at;
    middle.x = i + 0.5;
    if (!usable(&p->up, at->y)) return;
    const double base = p->up.log || p->up.from > 0 ? p->up.from : fmin(0, p->up.to),
                 top = fmax(p->y, fmin(p->y + p->h, lin_plot_y(p, at->y))), foot = lin_plot_y(p, base), wide = 0.6 * p->w / n;
    lin_buffer_format(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                      lin_plot_x(p, middle.x) - wide / 2, fmin(top, foot), wide, fabs(foot - top), color);
    put_bar(out, p, &middle, "#222");
    open_text(out, lin_plot_x(p, middle.x), fmin(top, at->low < at->high ? lin_plot_y(p, at->high) : top) - 6, "middle", "#222");
    put_number(out, at->y);
    lin_buffer_text(out, "</text>\n");
}

void lin_chart_svg(const lin_chart *chart, lin_buffer *out)
{
    const double legend = chart->n_series ? legend_width(chart) : 24;
    lin_plot_panel p = {.x = LEFT, .y = TOP, .w = WIDTH - LEFT - legend, .h = HEIGHT - TOP - BOTTOM};
    p.across = chart->bars ? (lin_plot_axis){.from = 0, .to = fmax(1, chart->n_series)} : axis_of(chart, &chart->x, 0, 8);
    p.up = axis_of(chart, &chart->y, 1, 6);
    lin_plot_begin(out, WIDTH, HEIGHT, chart->title);
    put_text(out, LEFT, 28, 16, "start", "#222", chart->title);
    if (chart->note) put_text(out, LEFT, 47, note_size(chart->note), "start", "#555", chart->note);
    lin_plot_axis_y(out, &p, LIN_PLOT_LEFT, "#222", chart->y.label);
    if (!chart->bars) lin_plot_axis_x(out, &p, 1, chart->x.label);
    for (int i = 0; i < chart->n_series && chart->bars; i++)
        if (chart->series[i].n) put_column(out, &p, i, chart->n_series, chart->series[i].points, style_of(i).color);
    for (int i = chart->n_series - 1; i >= 0 && !chart->bars; i--) { // the first one on top
        const lin_plot_style style = style_of(i);
        lin_plot_curve(out, &p, chart->series[i].points, chart->series[i].n, &style);
    }
    for (int i = 0; i < chart->n_series; i++) {
        const lin_plot_style style = style_of(i);
        put_name(out, p.x + p.w + 18, p.y + 8 + 20 * i, chart->series[i].name, &style);
    }
    lin_plot_end(out);
}
