// warnings.c - warnings to a callback; see warnings.h.

#include "linnet/warnings.h"

#include <stdarg.h>
#include <stdio.h>

void lin_warn(const lin_warnings *warnings, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (!warnings || !warnings->tell) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lin_one_line(text);
    warnings->tell(warnings->context, text);
}
