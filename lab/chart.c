// chart.c - the ranges of the axes, the styles of the curves, and the arrangement of a chart.

#include "lab/chart.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

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
    if (up && !a->log && axis.from > 0 && axis.from < 0.5 * axis.to) axis.from = 0;
    if (a->has_from) axis.from = a->from;
    if (a->has_to) axis.to = a->to;
    const lin_plot_axis given = axis;
    lin_plot_fit(&axis, ticks);
    // The x axis ends with the data; so does an end that was given.
    if ((!up || a->has_from) && given.from < axis.to && (!a->log || given.from > 0)) axis.from = given.from;
    if ((!up || a->has_to) && given.to > axis.from) axis.to = given.to;
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

// A name of the legend, cut to the width of the legend between two characters.
static void put_name(lin_buffer *out, double x, double y, const char *name, const lin_plot_style *style)
{
    char text[4 * MOST_NAME + 4];
    size_t n = 0, characters = 0;
    const size_t all = strlen(name);
    while (n < all && characters < MOST_NAME) {
        const size_t length = lin_utf8_length(name + n, all - n);
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

void lin_chart_svg(const lin_chart *chart, lin_buffer *out)
{
    const double legend = chart->n_series ? legend_width(chart) : 24;
    lin_plot_panel p = {.x = LEFT, .y = TOP, .w = WIDTH - LEFT - legend, .h = HEIGHT - TOP - BOTTOM};
    p.across = axis_of(chart, &chart->x, 0, 8);
    p.up = axis_of(chart, &chart->y, 1, 6);
    lin_plot_begin(out, WIDTH, HEIGHT, chart->title);
    lin_plot_text(out, LEFT, 28, 16, "start", "#222", chart->title);
    if (chart->note) lin_plot_text(out, LEFT, 47, note_size(chart->note), "start", "#555", chart->note);
    lin_plot_axis_y(out, &p, LIN_PLOT_LEFT, "#222", chart->y.label);
    lin_plot_axis_x(out, &p, 1, chart->x.label);
    for (int i = chart->n_series - 1; i >= 0; i--) { // the first one on top
        const lin_plot_style style = style_of(i);
        lin_plot_curve(out, &p, chart->series[i].points, chart->series[i].n, &style);
    }
    for (int i = 0; i < chart->n_series; i++) {
        const lin_plot_style style = style_of(i);
        put_name(out, p.x + p.w + 18, p.y + 8 + 20 * i, chart->series[i].name, &style);
    }
    lin_plot_end(out);
}
