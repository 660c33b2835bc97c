/*
 * system.h - clocks, cores, paths and waits, the same on all operating systems: Linux with glibc or musl, and macOS.
 *
 * Threads: any.
 */
#ifndef LIN_BASE_SYSTEM_H
#define LIN_BASE_SYSTEM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __APPLE__
#include <dispatch/dispatch.h>
#define st_mtim st_mtimespec
#else
#include <semaphore.h>
#endif

/* ---- time ------------------------------------------------------------------------------------------------------------------ */

/* Seconds, or nanoseconds, since an arbitrary moment; never decreases, whatever the date. */
double lin_now(void);
int64_t lin_now_ns(void);

/* Seconds of processor time of the calling thread: other work on the machine does not count. */
double lin_now_cpu(void);

/* Delays counted on a logarithmic scale, 32 counts for each doubling, and their quantiles: from a microsecond to minutes, to 2 %,
 * in 7 KB. */
enum { LIN_LAGS = 32 * 28 };

typedef struct lin_lags {
    long long n, counts[LIN_LAGS];
    double most_s;
} lin_lags;

/* A negative delay counts as 0. */
void lin_lags_add(lin_lags *lags, double seconds);

/* Adds others to these. */
void lin_lags_merge(lin_lags *lags, const lin_lags *others);

/* The q-quantile, 0 <= q <= 1, at most 2 % too large; 0 without delays. */
double lin_lags_quantile(const lin_lags *lags, double q);

/* ---- cores that this process may use: its affinity mask, as taskset, cgroups and job schedulers set it --------------------- */

/* Their number, 1 or more. */
int lin_cores(void);

/* lin_cores, but `most` at most: threads for work that does not gain from more. */
int lin_cores_up_to(int most);

/* The system's number of core i, 0 <= i < lin_cores(); 0 if there is no such core or the system does not report it. */
int lin_core_number(int i);

/* Requests that the calling thread runs only on core i. If the system refuses, nothing changes. */
void lin_core_pin(int i);

/* ---- files and libraries --------------------------------------------------------------------------------------------------- */

/* The absolute path of the running program. Returns 0, with an empty path, if it is unknown or does not fit. */
int lin_system_program(char *path, size_t capacity);

/* The absolute path of the file that contains this code: the program, or the project's shared library. */
int lin_system_library(char *path, size_t capacity);

/*
 * Where the library `name`, which is opened at run time, lies: the environment variable if it is set, else the first of these
 * that exists: beside the program, in ../lib/linnet from there, in PREFIX/lib/linnet of `make install`. If none exists, `name`
 * itself, for which dlopen searches. The result is path, name, or the variable's value.
 */
const char *lin_system_plugin(const char *variable, const char *name, char *path, size_t capacity);

/* Writes a function of an open library to *function, a pointer to it; 0 if there is none. ISO C has no cast from an object
 * pointer to a function pointer. */
int lin_system_symbol(void *library, const char *name, void *function);

/* Moves a descriptor below 3 to a free number from 3 on, so that dup2 onto 0, 1 and 2 cannot overwrite it; others are returned
 * unchanged, -1 too. -1 with errno on failure. */
int lin_system_above_2(int fd);

/* A pipe whose ends are 3 or more and close on exec. 0, or -1 with errno. */
int lin_system_pipe(int ends[2]);

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

/* A condition variable whose waits end at a time of lin_now_ns. Released by pthread_cond_destroy. wait: 0, or ETIMEDOUT. */
void lin_condition_init(pthread_cond_t *condition);
int lin_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t when_ns);

/* An event: posted from any thread (post is async-signal-safe on Linux), waited for by one. */
typedef struct lin_event {
#ifdef __APPLE__
    dispatch_semaphore_t semaphore;
#else
    sem_t semaphore;
#endif
} lin_event;

void lin_event_init(lin_event *event);
void lin_event_destroy(lin_event *event);
void lin_event_post(lin_event *event);
/* Waits until it is posted or the time is reached, then clears all posts. 0 if a signal interrupted the wait, else 1. */
int lin_event_wait_until(lin_event *event, int64_t when_ns);

#endif
