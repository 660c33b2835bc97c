// isolate.c - reading a file in another process of this program; see isolate.h.

#include "frontend/isolate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "frontend/ffmpeg.h"

enum { CPU_S = 600 };
#define MEMORY_BYTES (INT64_C(1) << 30)

struct lin_isolated {
    lin_helper helper;
    lin_audio_format *info; // of the call that is working
    int64_t given;          // frames
    int too_long;           // it used its processor time
    lin_error failed;       // LIN_OK: nothing
};

static const char *reader;

void lin_isolate_files(const char *program) { reader = program; }

int lin_isolate_is_on(void) { return reader != NULL; }

static const char *after(const char *line, const char *key)
{
    const size_t n = strlen(key);
    return strncmp(line, key, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static void take_line(void *context, const char *line)
{
    lin_isolated *s = context;
    const char *text;
    if (strcmp(line, LIN_ISOLATE_TOO_LONG) == 0) s->too_long = 1;
    else if ((text = after(line, "frames"))) s->info->frames = strtoll(text, NULL, 10);
    else if ((text = after(line, "notice"))) snprintf(s->info->notice, sizeof s->info->notice, "%s", text);
    else if ((text = after(line, "warning"))) snprintf(s->info->warning, sizeof s->info->warning, "%s", text);
    else if ((text = after(line, "missing"))) {
        snprintf(s->info->warning, sizeof s->info->warning, "%s", text);
        s->info->incomplete = 1;
    } else if ((text = after(line, "fail"))) {
        char *message;
        const long status = strtol(text, &message, 10);
        if (status > LIN_OK && status <= LIN_STOPPED) lin_fail(&s->failed, (lin_status)status, "%s", message + (*message == ' '));
    }
}

// Why it ended, if it did not say so: "" if it ended well.
static void describe_end(const lin_isolated *s, char *text, size_t capacity)
{
    const int status = s->helper.status, number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    *text = 0;
    if (number == SIGXCPU || s->too_long) snprintf(text, capacity, "reading it takes more than %d s of processor time", CPU_S);
    else if (number) snprintf(text, capacity, "the process that reads it ended with signal %d", number);
    else if (WEXITSTATUS(status)) snprintf(text, capacity, "the process that reads it ended with status %d", WEXITSTATUS(status));
}

lin_status lin_isolated_open(int fd, const char *name, lin_audio_format *info, lin_isolated **out, lin_error *err)
{
    static const char *const keep[] = {"LINNET_FFMPEG", NULL};
    const char *const argv[] = {"linnet", LIN_ISOLATE_COMMAND, name, NULL};
    const lin_child child = {.program = reader,
                             .argv = argv,
                             .also = lin_ffmpeg_program(),
                             .keep = keep,
                             .memory_bytes = MEMORY_BYTES,
                             .cpu_s = CPU_S,
                             .is_bound = 1};
    char end[128];
    *out = NULL;
    lin_isolated *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, name, sizeof *s);
    s->info = info;
    lin_status status = lin_helper_open(&s->helper, &child, fd, name, take_line, s, err);
    if (status == LIN_FORMAT) {
        describe_end(s, end, sizeof end);
        status = s->failed.status != LIN_OK ? lin_fail_as(err, &s->failed)
                                            : lin_fail(err, LIN_FORMAT, "%s cannot be read: %s", name, end);
    }
    if (status == LIN_OK) {
        info->rate_hz = s->helper.rate_hz;
        info->channels = s->helper.channels;
        status = lin_audio_check_format(name, info->rate_hz, info->channels, err);
    }
    if (status != LIN_OK) {
        lin_isolated_close(s);
        return status;
    }
    *out = s;
    return LIN_OK;
}

// After the last frame the error, if there is one; else the warning is complete.
lin_status lin_isolated_read(lin_isolated *s, lin_audio_format *info, float *frames, int capacity, int *n, lin_error *err)
{
    char end[128];
    s->info = info;
    lin_status status = lin_helper_read(&s->helper, frames, capacity, n, err);
    if (status != LIN_OK) return status;
    s->given += *n;
    if (*n == capacity) return LIN_OK;
    if (s->failed.status != LIN_OK) return *n ? LIN_OK : lin_fail_as(err, &s->failed);
    describe_end(s, end, sizeof end);
    if (!*end) return LIN_OK;
    if (s->given == 0) return lin_fail(err, LIN_FORMAT, "%s cannot be read: %s", s->helper.name, end);
    snprintf(info->warning, sizeof info->warning, "%.100s is damaged; %.3f s of it were read: %.100s", s->helper.name,
             (double)s->given / info->rate_hz, end);
    info->incomplete = 1;
    return LIN_OK;
}

void lin_isolated_close(lin_isolated *s)
{
    if (!s) return;
    lin_helper_close(&s->helper);
    lin_free(s);
}
