/*
 * spans.h - durations and times as people write them: 90, 90s, 1.5m, 2h, 250ms, 1:30, 1:23:40.5.
 *
 * Threads: any.
 */
#ifndef LIN_APP_SPANS_H
#define LIN_APP_SPANS_H

#include "base/status.h"

/* LIN_INVALID, with the accepted forms. `name` is the option's. */
lin_status lin_span_parse(const char *name, const char *text, double *seconds, lin_error *err);

#endif
