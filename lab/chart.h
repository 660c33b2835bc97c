/*
 * chart.h - a chart of several curves over one pair of axes, as SVG: title, units, legend, error bars; readable when printed in
 * black and white (every curve has its own dashes and markers).
 *
 *   lin_chart chart = {.title = "Time of attention", .x = {.label = "frames", .log = 2}, .y = {.label = "ms", .log = 10},
 *                      .series = series, .n_series = 3};
 *   lin_chart_svg(&chart, &out);                        // then lin_buffer_status, lin_file_write_all
 *
 * Threads: no shared state.
 */
#ifndef LIN_LAB_CHART_H
#define LIN_LAB_CHART_H

#include "base/buffer.h"
#include "lab/plot.h"

typedef struct lin_chart_axis {
    const char *label; /* with its unit; "": none */
    int log;           /* 0, 2 or 10: lin_plot_axis */
    int has_from, has_to;
    double from, to;   /* instead of those of the data, with has_from, has_to */
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
} lin_chart;

/* Appends the whole drawing, 760 x 480. Any values are allowed: what cannot be drawn is left out. */
void lin_chart_svg(const lin_chart *chart, lin_buffer *out);

#endif
