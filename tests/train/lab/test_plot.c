// Charts and their parts: axes that fit the data, ticks, points in their place, and text that stays inside the markup, for any
// values and names.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/hash.h"
#include "train/lab/plot.h"
#include "tests/support.h"

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
    return n;
}

START_TEST(steps)
{
    ck_assert_double_eq(lin_plot_step(10, 5), 2);
    ck_assert_double_eq(lin_plot_step(100, 5), 20);
    ck_assert_double_eq_tol(lin_plot_step(0.7, 6), 0.1, 1e-12);
    lin_plot_axis a = {.from = 0.03, .to = 2.71};
    lin_plot_fit(&a, 5);
    ck_assert(a.from == 0 && a.to == 3 && a.step == 0.5);
    a = (lin_plot_axis){.from = 3.1, .to = 480, .log = 10};
    lin_plot_fit(&a, 5);
    ck_assert_double_eq_tol(a.from, 2, 1e-9);
    ck_assert_double_eq_tol(a.to, 500, 1e-9);
    a = (lin_plot_axis){.from = 512, .to = 65000, .log = 2};
    lin_plot_fit(&a, 5);
    ck_assert(a.from == 512 && a.to == 65536);
    a = (lin_plot_axis){.from = 7, .to = 7};
    lin_plot_fit(&a, 5);
    ck_assert(a.from < a.to);
    static const int logs[] = {0, 2, 10};
    static const double bad[] = {NAN, INFINITY, -INFINITY, 0, -5, 1e300, 1e-300, 3};
    for (int l = 0; l < 3; l++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) {
                a = (lin_plot_axis){.from = bad[i], .to = bad[j], .log = logs[l]};
                lin_plot_fit(&a, 5);
                ck_assert_msg(a.from < a.to && isfinite(a.from) && isfinite(a.to) && (!a.log || a.from > 0),
                              "%g %g, log %d: %g %g", bad[i], bad[j], a.log, a.from, a.to);
            }
}
END_TEST

// A point lies where its value is on the axes: halfway on a logarithmic axis is the geometric mean.
START_TEST(places)
{
    const lin_plot_panel p = {.x = 100, .y = 50, .w = 200, .h = 80, .across = {.from = 1, .to = 100, .log = 10},
                              .up = {.from = -1, .to = 3, .step = 1}};
    ck_assert_double_eq_tol(lin_plot_x(&p, 10), 200, 1e-9);
    ck_assert_double_eq_tol(lin_plot_x(&p, 100), 300, 1e-9);
    ck_assert_double_eq_tol(lin_plot_y(&p, -1), 130, 1e-9);
    ck_assert_double_eq_tol(lin_plot_y(&p, 1), 90, 1e-9);
    lin_buffer out = {0};
    const lin_plot_style style = {.color = "red"};
    const lin_plot_point points[] = {{10, 1, 0, 2}, {100, NAN, 0, 0}, {-3, 1, 1, 1}, {1, 1e9, 1e9, 1e9}};
    lin_plot_curve(&out, &p, points, 4, &style);
    HAS(out.data, "<circle cx=\"200.0\" cy=\"90.0\"");
    ck_assert_int_eq(count(out.data, "<circle"), 1); // a value that is missing, one that has no logarithm, one outside
    HAS(out.data, "M197.0 70.0h6m-3 0V110.0");
    lin_buffer_free(&out);
}
END_TEST

START_TEST(a_chart)
{
    const lin_plot_point a[] = {{512, 1, 1, 1}, {1024, 2, 1.5, 2.5}, {65536, 300, 300, 300}}, b[] = {{512, 4, 4, 4}};
    const lin_chart_series series[] = {{"a <b>", a, 3}, {"b", b, 1}};
    const lin_chart chart = {.title = "A & B",
                             .note = "note",
                             .x = {.label = "N (frames)", .log = 2},
                             .y = {.label = "ms", .log = 10},
                             .series = series,
                             .n_series = 2};
    lin_buffer out = {0};
    lin_chart_svg(&chart, &out);
    HAS(out.data, ">A &amp; B</text>", ">note</text>", ">N (frames)</text>", ">ms</text>", ">a &lt;b&gt;</text>", ">512</text>",
        ">1,024</text>", ">65,536</text>", ">100</text>", "</svg>\n");
    ck_assert_int_eq(count(out.data, "<polyline"), 2);
    ck_assert_int_eq(count(out.data, "<circle"), 4); // three points and the key
    lin_buffer_free(&out);
}
END_TEST

// Random values of any size, names of any bytes, no series: always a whole drawing of finite coordinates and bounded length.
START_TEST(hostile)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e308, -1e308, 1e-308, 1, 2, 1e29, 1e-29};
    static const int logs[] = {0, 2, 10};
    lin_plot_point points[70];
    for (uint64_t seed = 0; seed < 300; seed++) {
        for (int i = 0; i < 70; i++) {
            double *values = &points[i].x;
            for (int j = 0; j < 4; j++) {
                const double u = lin_random_uniform(seed, (uint64_t)(4 * i + j));
                values[j] = seed % 3 ? odd[(int)(12 * u)] : exp(60 * (u - 0.5));
            }
        }
        const lin_chart_series series[] = {{"\xFF\x01<&", points, (int)(seed % 70)}, {"", points, 1}};
        const lin_chart chart = {.title = "\xC3",
                                 .x = {.label = "", .log = logs[seed % 3]},
                                 .y = {.label = "", .log = logs[seed / 3 % 3]},
                                 .series = series,
                                 .n_series = (int)(seed % 3)};
        lin_buffer out = {0};
        lin_chart_svg(&chart, &out);
        ck_assert(out.n < 60000 && strstr(out.data, "</svg>\n") != NULL);
        ck_assert_msg(!strstr(out.data, "nan") && !strstr(out.data, "inf"), "seed %d: %s", (int)seed, out.data);
        ck_assert(strstr(out.data, "\xFF") == NULL);
        lin_buffer_free(&out);
    }
}
END_TEST

TEST_MAIN("train/lab/plot", TEST(steps), TEST(places), TEST(a_chart), TEST(hostile))
