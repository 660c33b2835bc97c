/*
 * warnings.h - how the library reports warnings: through a callback, because it never prints.
 */
#ifndef LIN_LINNET_WARNINGS_H
#define LIN_LINNET_WARNINGS_H

#include "base/status.h"

typedef struct lin_warnings {
    void (*tell)(void *context, const char *text); /* one sentence without a line end, valid during the call; NULL: discarded */
    void *context;
    int quiet; /* 1: only problems, no advice */
} lin_warnings;

/* Formats and reports, at most 1,023 bytes. warnings may be NULL. Any thread, if the callback allows it. */
void lin_warn(const lin_warnings *warnings, const char *fmt, ...) LIN_PRINTF(2, 3);

#endif
