/*
 * plot.h - parts of a drawing with axes, as SVG text: panels, linear and logarithmic axes, curves, markers, error bars, keys;
 * and whole charts.
 *
 * For charts (below: one panel with a legend) and train/train_files.c. Everything is appended to a lin_buffer.
 *
 *   lin_plot_begin(&out, 760, 480, "Loss of a run");
 *   lin_plot_panel p = {.x = 74, .y = 84, .w = 600, .h = 300, .across = {.from = 1, .to = 20}, .up = {.from = 0, .to = 3}};
 *   lin_plot_axis_x(&out, &p, 1, "epoch");
 *   lin_plot_axis_y(&out, &p, LIN_PLOT_LEFT, "#222", "loss (nats)");
 *   lin_plot_curve(&out, &p, points, n, &style);
 *   lin_plot_end(&out);
 *   if (lin_buffer_status(&out, &err)) ...
 *
 * Units: pixels of the drawing, from its top left corner. Colours are SVG colours. Threads: no shared state.
 */
#ifndef LIN_LAB_PLOT_H
#define LIN_LAB_PLOT_H

#include "base/buffer.h"

/* from < to; both positive and finite on a logarithmic axis. step: distance of the ticks, set by lin_plot_fit; 0 on a logarithmic
 * axis. */
typedef struct lin_plot_axis {
    double from, to, step;
    int log;    /* 0: linear; 10: ticks at 1, 2, 5 times powers of ten; 2: ticks at powers of two */
    int whole;  /* linear: no ticks between whole numbers */
} lin_plot_axis;

typedef struct lin_plot_panel {
    double x, y, w, h;
    lin_plot_axis across, up;
} lin_plot_panel;

/* A value with the ends of its error bar; low = high = y: no bar. A point whose x or y is not finite, or not positive on a
 * logarithmic axis, is left out. */
typedef struct lin_plot_point {
    double x, y, low, high;
} lin_plot_point;

typedef enum lin_plot_marker { LIN_PLOT_CIRCLE, LIN_PLOT_SQUARE, LIN_PLOT_TRIANGLE, LIN_PLOT_DIAMOND } lin_plot_marker;

typedef struct lin_plot_style {
    const char *color;
    const char *dashes; /* as in SVG, "5 3"; NULL: a solid line */
    lin_plot_marker marker;
    int hollow;
} lin_plot_style;

typedef enum lin_plot_side { LIN_PLOT_LEFT, LIN_PLOT_RIGHT } lin_plot_side;

/* title may be any bytes: it is shown by the browser and not drawn. */
void lin_plot_begin(lin_buffer *out, int width, int height, const char *title);
void lin_plot_end(lin_buffer *out);

/* 1, 2 or 5 times a power of ten, so that about `ticks` of them fill the range. */
double lin_plot_step(double range, int ticks);

/* Rounds the ends of the axis outwards to ticks. Ends that are equal, or not usable for the axis, are moved to make it valid. */
void lin_plot_fit(lin_plot_axis *axis, int ticks);

double lin_plot_x(const lin_plot_panel *panel, double x);
double lin_plot_y(const lin_plot_panel *panel, double y);

/* The line and ticks; numbers 1: also their values, and the label below. */
void lin_plot_axis_x(lin_buffer *out, const lin_plot_panel *panel, int numbers, const char *label);
/* Values and label beside the panel; grid lines with LIN_PLOT_LEFT. */
void lin_plot_axis_y(lin_buffer *out, const lin_plot_panel *panel, lin_plot_side side, const char *color, const char *label);

/* A line through the points with markers and error bars; of more than 60 points, about 12 are marked. Parts outside the panel are
 * cut off. */
void lin_plot_curve(lin_buffer *out, const lin_plot_panel *panel, const lin_plot_point *points, int n,
                    const lin_plot_style *style);

/* A piece of a curve and its name (any bytes), for a legend. */
void lin_plot_key(lin_buffer *out, double x, double y, const char *name, const lin_plot_style *style);

/* ---- a chart of several curves --------------------------------------------------------------------------------------------- */

/*
 * Over one pair of axes: title, units, legend, error bars; readable when printed in black and white (every curve has its own
 * dashes and markers).
 *
 *   lin_chart chart = {.title = "Time of attention", .x = {.label = "frames", .log = 2}, .y = {.label = "ms", .log = 10},
 *                      .series = series, .n_series = 3};
 *   lin_chart_svg(&chart, &out);                        // then lin_buffer_status, lin_file_write_all
 */

typedef struct lin_chart_axis {
    const char *label; /* with its unit; "": none */
    int log;           /* 0, 2 or 10: lin_plot_axis */
} lin_chart_axis;

/* Points in order of x. */
typedef struct lin_chart_series {
    const char *name;
    const lin_plot_point *points;
    int n;
} lin_chart_series;

typedef struct lin_chart {
    const char *title, *note; /* any bytes; the note is a small line below the title, "" or NULL: none */
    lin_chart_axis x, y;
    const lin_chart_series *series; /* at most 32 have styles of their own */
    int n_series;
    int bars; /* 1: each series is one bar, from 0 or the lower end of the axis to its first point; x is not used */
} lin_chart;

/* Appends the whole drawing, 760 x 480. Any values are allowed: what cannot be drawn is left out. */
void lin_chart_svg(const lin_chart *chart, lin_buffer *out);

#endif
