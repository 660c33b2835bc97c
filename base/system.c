// system.c - clocks, cores, paths and waits on each operating system; see system.h.

#include "base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#ifndef LIN_LIB_DIR
#define LIN_LIB_DIR "/usr/local/lib/linnet"
#endif

#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 30)
#define HAS_CLOCKWAIT
#endif
#endif

/* ---- time ------------------------------------------------------------------------------------------------------------------ */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double lin_now(void) { return seconds(CLOCK_MONOTONIC); }

int64_t lin_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double lin_now_cpu(void) { return seconds(CLOCK_THREAD_CPUTIME_ID); }

void lin_lags_add(lin_lags *l, double seconds)
{
    const int bucket = seconds > 1e-6 ? (int)(32 * log2(1e6 * seconds)) : 0;
    l->counts[bucket < LIN_LAGS ? bucket : LIN_LAGS - 1]++;
    l->n++;
    if (seconds > l->most_s) l->most_s = seconds;
}

void lin_lags_merge(lin_lags *l, const lin_lags *others)
{
    for (int i = 0; i < LIN_LAGS; i++) l->counts[i] += others->counts[i];
    l->n += others->n;
    if (others->most_s > l->most_s) l->most_s = others->most_s;
}

double lin_lags_quantile(const lin_lags *l, double q)
{
    long long below = 0;
    for (int i = 0; i < LIN_LAGS - 1; i++) { // the last has no upper end
        below += l->counts[i];
        if (below == 0 || (double)below < q * (double)l->n) continue;
        const double upper = 1e-6 * exp2((i + 1) / 32.0); // no delay of the bucket exceeds it
        return upper < l->most_s ? upper : l->most_s;
    }
    return l->most_s;
}

/* ---- cores ----------------------------------------------------------------------------------------------------------------- */

#ifdef __linux__

int lin_cores(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n;
}

int lin_core_number(int i)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    for (int core = 0, seen = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &set) && seen++ == i) return core;
    return 0;
}

void lin_core_pin(int i)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)lin_core_number(i), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

#else // no affinity: every core of the machine

int lin_cores(void)
{
    const int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n;
}

int lin_core_number(int i)
{
    (void)i;
    return 0;
}

void lin_core_pin(int i) { (void)i; }

#endif

int lin_cores_up_to(int most)
{
    const int n = lin_cores();
    return n < most ? n : most;
}

/* ---- files and libraries --------------------------------------------------------------------------------------------------- */

#ifdef __APPLE__

int lin_system_program(char *path, size_t capacity)
{
    char name[PATH_MAX], whole[PATH_MAX];
    uint32_t n = sizeof name;
    *path = 0;
    if (_NSGetExecutablePath(name, &n) != 0 || !realpath(name, whole) || strlen(whole) >= capacity) return 0;
    memcpy(path, whole, strlen(whole) + 1);
    return 1;
}

#else

int lin_system_program(char *path, size_t capacity)
{
    const ssize_t n = readlink("/proc/self/exe", path, capacity);
    const int fits = n > 0 && (size_t)n < capacity;
    path[fits ? n : 0] = 0;
    return fits;
}

#endif

int lin_system_library(char *path, size_t capacity)
{
    static const char here;
    char whole[PATH_MAX];
    Dl_info info;
    *path = 0;
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, whole) || strlen(whole) >= capacity) return 0;
    memcpy(path, whole, strlen(whole) + 1);
    return 1;
}

int lin_system_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

const char *lin_system_plugin(const char *variable, const char *name, char *path, size_t capacity)
{
    char program[PATH_MAX];
    const char *named = getenv(variable);
    if (named && *named) return named;
    lin_system_program(program, sizeof program);
    char *slash = strrchr(program, '/');
    if (slash) {
        *slash = 0;
        snprintf(path, capacity, "%s/%s", program, name);
        if (access(path, F_OK) == 0) return path;
        snprintf(path, capacity, "%s/../lib/linnet/%s", program, name);
        if (access(path, F_OK) == 0) return path;
    }
    snprintf(path, capacity, LIN_LIB_DIR "/%s", name);
    return access(path, F_OK) == 0 ? path : name;
}

int lin_system_above_2(int fd)
{
    if (fd < 0 || fd > 2) return fd;
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), error = errno;
    close(fd);
    errno = error;
    return copy;
}

int lin_system_pipe(int ends[2])
{
#ifdef __linux__
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
#else
    if (pipe(ends) != 0) return -1;
    for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
#endif
    for (int i = 0; i < 2; i++) ends[i] = lin_system_above_2(ends[i]);
    if (ends[0] >= 0 && ends[1] >= 0) return 0;
    const int error = errno;
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) close(ends[i]);
        ends[i] = -1;
    }
    errno = error;
    return -1;
}

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

#ifdef __APPLE__

static int64_t left_ns(int64_t when_ns)
{
    const int64_t left = when_ns - lin_now_ns();
    return left > 0 ? left : 0;
}

void lin_condition_init(pthread_cond_t *condition) { pthread_cond_init(condition, NULL); }

int lin_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t when_ns)
{
    const int64_t left = left_ns(when_ns);
    const struct timespec t = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
    return pthread_cond_timedwait_relative_np(condition, lock, &t);
}

void lin_event_init(lin_event *event) { event->semaphore = dispatch_semaphore_create(0); }
void lin_event_destroy(lin_event *event) { dispatch_release(event->semaphore); }
void lin_event_post(lin_event *event) { dispatch_semaphore_signal(event->semaphore); }

int lin_event_wait_until(lin_event *event, int64_t when_ns)
{
    if (dispatch_semaphore_wait(event->semaphore, dispatch_time(DISPATCH_TIME_NOW, left_ns(when_ns))) != 0) return 1;
    while (dispatch_semaphore_wait(event->semaphore, DISPATCH_TIME_NOW) == 0) continue;
    return 1;
}

#else

static struct timespec at_ns(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

void lin_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int lin_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t when_ns)
{
    const struct timespec t = at_ns(when_ns);
    return pthread_cond_timedwait(condition, lock, &t);
}

void lin_event_init(lin_event *event) { sem_init(&event->semaphore, 0, 0); }
void lin_event_destroy(lin_event *event) { sem_destroy(&event->semaphore); }
void lin_event_post(lin_event *event) { sem_post(&event->semaphore); }

int lin_event_wait_until(lin_event *event, int64_t when_ns)
{
#ifdef HAS_CLOCKWAIT
    const struct timespec t = at_ns(when_ns);
    const int failed = sem_clockwait(&event->semaphore, CLOCK_MONOTONIC, &t);
#else // by the wall clock, which may be set meanwhile: the caller checks again
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec t = at_ns((int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (when_ns - lin_now_ns()));
    const int failed = sem_timedwait(&event->semaphore, &t);
#endif
    if (failed) return errno != EINTR;
    while (sem_trywait(&event->semaphore) == 0) continue;
    return 1;
}

#endif
