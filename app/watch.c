// watch.c - whether a file has been written since it was read; see watch.h.

#include "app/watch.h"

#include <math.h>
#include <sys/stat.h>
#include "base/system.h"

#define BETWEEN_LOOKS_S 0.5

static lin_watch_look look(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) return (lin_watch_look){0};
    return (lin_watch_look){(int64_t)s.st_ino, (int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec, (int64_t)s.st_mtim.tv_nsec};
}

static int same(const lin_watch_look *a, const lin_watch_look *b)
{
    return a->file == b->file && a->bytes == b->bytes && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

void lin_watch_begin(lin_watch *w, const char *path)
{
    *w = (lin_watch){.path = path, .looked_at = -INFINITY};
    if (path) w->told = w->seen = look(path);
}

int lin_watch_changed(lin_watch *w, double now)
{
    if (!w->path || now - w->looked_at < BETWEEN_LOOKS_S) return 0;
    w->looked_at = now;
    const lin_watch_look is = look(w->path), was = w->seen;
    w->seen = is;
    if (is.file == 0 || !same(&is, &was) || same(&is, &w->told)) return 0;
    w->told = is;
    return 1;
}
