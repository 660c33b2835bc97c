// line_reader.c - lines of a file, with every failure reported; see line_reader.h.

#include "app/line_reader.h"

#include <errno.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"

lin_status lin_line_next(lin_line_reader *r, lin_error *err)
{
    r->text = NULL;
    r->n = 0;
    for (;;) {
        if (lin_interrupted) return lin_fail(err, LIN_STOPPED, "interrupted");
        if (r->n + 2 > r->capacity) {
            lin_status status = lin_grow(&r->room, &r->capacity, r->n + 2 > 256 ? r->n + 2 : 256, 1, "a line", err);
            if (status != LIN_OK)
                return lin_fail(err, status, "%s:%d: no memory for a line of over %zu bytes", r->name, r->number + 1, r->n);
        }
        errno = 0;
        const int c = getc_unlocked(r->file);
        if (c == EOF && ferror(r->file)) {
            const int reason = errno;
            clearerr(r->file);
            if (reason == EINTR) continue; // of another signal: continue the line
            return lin_fail(err, LIN_IO, "cannot read %s: %s", r->name, strerror(reason));
        }
        if (c == EOF && r->n == 0) return LIN_OK;
        if (c == EOF || c == '\n') break;
        if (r->n == LIN_LINE_MOST)
            return lin_fail(err, LIN_FORMAT, "%s:%d: a line of over %d bytes; this is not text", r->name, r->number + 1,
                            (int)LIN_LINE_MOST);
        r->room[r->n++] = (char)c;
    }
    if (r->n && r->room[r->n - 1] == '\r') r->n--;
    r->room[r->n] = 0;
    r->text = r->room;
    r->number++;
    return LIN_OK;
}

void lin_line_free(lin_line_reader *r)
{
    lin_free(r->room);
    r->room = NULL;
    r->text = NULL;
    r->capacity = 0;
}
