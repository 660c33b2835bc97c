/*
 * watch.h - whether a file has been written since it was read, for a program that polls.
 *
 *   lin_watch_begin(&watch, "phrases");                          // before it is read for the first time
 *   if (lin_watch_changed(&watch, lin_now())) ... read it again ...
 *
 * It checks at most twice a second, and reports a change when two checks find the same new file: by then most programs have
 * written all of it. A missing file is not reported: it may be about to be replaced. A file that is not regular (a pipe) never
 * changes. Threads: one at a time.
 */
#ifndef LIN_APP_WATCH_H
#define LIN_APP_WATCH_H

#include <stdint.h>

typedef struct lin_watch_look {
    int64_t file, bytes, seconds, nanoseconds; /* inode, size, time of the last write; all 0: it does not exist */
} lin_watch_look;

typedef struct lin_watch {
    const char *path; /* NULL: nothing is watched */
    lin_watch_look told, seen;
    double looked_at;
} lin_watch;

/* path: NULL is fine; must outlive it. */
void lin_watch_begin(lin_watch *watch, const char *path);

/* now: lin_now(). 1 once for each change. */
int lin_watch_changed(lin_watch *watch, double now);

#endif
