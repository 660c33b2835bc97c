#include "kernels/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

lin_status lin_fail(lin_error *err, lin_status status, const char *fmt, ...)
{
    if (err) {
        char text[sizeof err->message]; // the arguments may point into err->message
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        memcpy(err->message, text, sizeof text);
        err->status = status;
    }
    return status;
}

const char *lin_status_name(lin_status status)
{
    static const char *const names[] = {"ok",     "invalid",  "too_small",   "no_memory", "io",
                                        "format", "mismatch", "unsupported", "numeric",   "stopped"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}
