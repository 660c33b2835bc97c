/*
 * watch.h - whether a file has been written since it was read, asked again and again by whoever has other things to do.
 *
 *   lin_watch_begin(&watch, "phrases");                          // before it is read for the first time
 *   if (lin_watch_changed(&watch, lin_now())) ... read it again ...
 *
 * It looks at most twice a second, and tells a change when the file was found the same at two looks: most editors and programs will
 * have written all of it by then. A file that is gone is not told: the new one may be about to take its place. What is no ordinary
 * file (a pipe) never changes. Threads: one at a time.
 */
#ifndef LIN_APP_WATCH_H
#define LIN_APP_WATCH_H

#include <stdint.h>

typedef struct lin_watch_look {
    int64_t file, bytes, seconds, nanoseconds; /* its number, its size, when it was written; all 0: it is not there */
} lin_watch_look;

typedef struct lin_watch {
    const char *path; /* NULL: nothing is watched */
    lin_watch_look told, seen;
    double looked_at;
} lin_watch;

/* path: NULL is fine; must outlive it. */
void lin_watch_begin(lin_watch *watch, const char *path);

/* now: seconds that rise, lin_now(). 1 once for each change. */
int lin_watch_changed(lin_watch *watch, double now);

#endif
