// status.c - filling errors, and the names of statuses; see status.h.

#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lin_one_line(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if ((*c < 32 && *c != '\t') || *c == 127) *c = '?';
        else if (*c == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) *c = c[1] = '?'; // U+0080 to U+009F
    }
}

lin_status lin_fail(lin_error *err, lin_status status, const char *fmt, ...)
{
    if (err) {
        char text[sizeof err->message]; // the arguments may point into err->message
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        lin_one_line(text);
        memcpy(err->message, text, sizeof text);
        err->status = status;
    }
    return status;
}

lin_status lin_fail_at(lin_error *err, lin_status status, const char *fmt, ...)
{
    if (err) {
        char text[sizeof err->message];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        lin_fail(err, status, "%s: %s", text, err->message);
    }
    return status;
}

lin_status lin_fail_as(lin_error *err, const lin_error *why)
{
    if (err) *err = *why;
    return why->status;
}

lin_status lin_check_ranges(const lin_range *ranges, size_t n, const char *of, lin_error *err)
{
    for (const lin_range *r = ranges; r < ranges + n; r++)
        if (!(r->value >= r->least && r->value <= r->most))
            return lin_fail(err, LIN_INVALID, "%s%s is %.10g; must be %.10g to %.10g", of, r->name, r->value, r->least, r->most);
    return LIN_OK;
}

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

const char *lin_status_name(lin_status status)
{
    static const char *const names[] = {"ok",     "invalid",  "too_small",   "no_memory", "io",
                                        "format", "mismatch", "unsupported", "numeric",   "stopped"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

const char *lin_write_remedy(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT: return "; free some space and try again";
    case EFBIG: return "; the file size limit is reached (ulimit -f, or that of the file system)";
    case ENOENT:
    case ENOTDIR: return "; use an existing folder";
    case EACCES:
    case EPERM:
    case EROFS: return "; use another folder, or obtain permission to write there";
    case ENAMETOOLONG: return "; choose a shorter name";
    default: return "";
    }
}
