// spans.c - durations and times as people write them; see spans.h.

#include "app/spans.h"

#include <string.h>

// Digits, optionally with a point; *digits: their number. Not strtod: it accepts hexadecimals and infinities and uses the locale.
static const char *number(const char *c, double *value, int *digits)
{
    double scale = 1;
    *value = 0;
    *digits = 0;
    for (; *c >= '0' && *c <= '9'; c++, ++*digits) *value = 10 * *value + (*c - '0');
    if (*c != '.') return c;
    for (c++; *c >= '0' && *c <= '9'; c++, ++*digits) *value += (*c - '0') * (scale /= 10);
    return c;
}

lin_status lin_span_parse(const char *name, const char *text, double *seconds, lin_error *err)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    double value, all = 0;
    int digits, colons = 0;
    const char *c = text;
    for (;; c++) {
        c = number(c, &value, &digits);
        if (digits == 0 || digits > 15 || (colons && value >= 60)) break;
        all = 60 * all + value;
        if (*c != ':' || colons == 2) {
            for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
                if (strcmp(c, units[i].name) != 0 || (colons && i > 0)) continue;
                *seconds = all * units[i].seconds;
                return LIN_OK;
            }
            break;
        }
        colons++;
    }
    return lin_fail(err, LIN_INVALID, "--%s needs a time such as 90, 90s, 1.5m, 2h, 250ms, 1:30 or 1:23:40.5, not '%s'", name,
                    text);
}
