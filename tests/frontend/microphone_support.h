/*
 * microphone_support.h - shared by the tests of the microphone: the clock, opening, standard error in a file.
 */
#ifndef LIN_TESTS_FRONTEND_MICROPHONE_SUPPORT_H
#define LIN_TESTS_FRONTEND_MICROPHONE_SUPPORT_H

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#include "base/system.h"
#include "frontend/microphone.h"
#include "tests/frontend/support.h"

// What must come at once comes within this, however busy the machine is. Waits that it must end are longer.
#define LIMIT_S 30

SUPPORT void rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&t, NULL);
}

SUPPORT lin_microphone *open_with(lin_microphone_options options)
{
    lin_microphone *mic;
    OK(lin_microphone_open(&options, &mic, &err));
    return mic;
}

SUPPORT lin_microphone_options named(const char *device)
{
    lin_microphone_options options = lin_microphone_options_default();
    options.device = device;
    return options;
}

// Redirects standard error to a file of the test, and reads it.
SUPPORT int to_file(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert(file >= 0);
    ck_assert(dup2(file, STDERR_FILENO) >= 0);
    return file;
}

SUPPORT const char *content(int file)
{
    static char text[1000];
    const ssize_t n = pread(file, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return text;
}

// Whether a thread may have descriptors of its own here: some containers forbid it, and then standard error is diverted for the
// whole process.
SUPPORT int own_descriptors_allowed(void)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) _exit(unshare(CLONE_FILES) != 0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

#endif
