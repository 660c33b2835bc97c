#include "base/status.h"

#include <errno.h>
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
    case EDQUOT: return "; make room and try again";
    case EFBIG: return "; the limit of file sizes is reached (ulimit -f), or the file system's";
    case ENOENT:
    case ENOTDIR: return "; name a folder that is there";
    case EACCES:
    case EPERM:
    case EROFS: return "; write to another folder, or get the right to write there";
    case ENAMETOOLONG: return "; choose a shorter name";
    default: return "";
    }
}
