// ffmpeg.c - starting ffmpeg and reading its output; see ffmpeg.h.

#include "frontend/ffmpeg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"
#include "frontend/audio.h"

enum { BYTES = 1 << 16, LINE = 256, ERRORS = 2, MAX_CHANNELS = 1024, MAX_HEADER = 1 << 14, PATIENCE_MS = 10000 };
enum { LONGEST_GAP_S = 30 * 3600 };

struct lin_ffmpeg {
    pid_t pid; // 0: already waited for
    int out, err;
    int status; // of waitpid
    char *name;
    int rate_hz, channels;
    double seconds;
    int has_video, is_guess; // either means that the container's length may differ from that of the sound
    int64_t frames;          // read
    int at, held;            // in bytes
    char line[LINE];         // of standard error, not yet complete
    int n_line;
    char errors[ERRORS][LINE]; // the last lines with errors
    char last[LINE];       // the last line of all
    char trouble[2 * LINE];
    unsigned char bytes[BYTES];
};

extern char **environ;

// ---- the child ----

static const char *program(void)
{
    const char *given = getenv("LINNET_FFMPEG");
    return given ? given : "ffmpeg";
}

// The pipes are closed on exec, but descriptors of other libraries may not be.
static int describe_child(posix_spawn_file_actions_t *files, posix_spawnattr_t *how, int in, int out, int err)
{
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGTERM);
    int failed = posix_spawn_file_actions_adddup2(files, in, 0) | posix_spawn_file_actions_adddup2(files, out, 1) |
                 posix_spawn_file_actions_adddup2(files, err, 2);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
    failed |= posix_spawn_file_actions_addclosefrom_np(files, 3);
#endif
#endif
    // A process group of its own: Ctrl-C is handled here. If this process is killed, the child ends at its next write.
    failed |= posix_spawnattr_setflags(how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    failed |= posix_spawnattr_setpgroup(how, 0) | posix_spawnattr_setsigdefault(how, &defaults);
    return failed | posix_spawnattr_setsigmask(how, &none);
}

// The descriptors are at least 3: dup2 onto 0, 1 and 2 must not overwrite one that is still needed.
static int start(lin_ffmpeg *f, int in, int out, int err)
{
    // The input is the open file, named by its descriptor, so that no name can be an option or a protocol; "pipe:0" would not
    // allow seeking. The container of the samples is AU: a header with rate and channels, then all samples.
    const int gap_s = lin_audio_longest_gap() ? lin_audio_longest_gap() : LONGEST_GAP_S;
    char gap[16], filter[128];
    snprintf(gap, sizeof gap, "%d", gap_s); // a time that is later by more does not count; before the first one, what is more
    snprintf(filter, sizeof filter, "asetpts=PTS-max(0\\,STARTPTS-%d/TB),aresample=async=1:first_pts=0", gap_s);
    const char *const argv[] = {"ffmpeg",
                                       "-hide_banner",
                                       "-nostdin",
                                       "-nostats",
                                       "-loglevel",
                                       "level+info",
                                       "-protocol_whitelist",
                                       "file,pipe",
                                       "-dts_error_threshold",
                                       gap,
                                       "-i",
                                       "file:/proc/self/fd/0",
                                       "-map",
                                       "0:a:0",
                                       "-map_metadata",
                                       "-1",
                                       "-af",
                                       filter,
                                       "-c:a",
                                       "pcm_f32be",
                                       "-f",
                                       "au",
                                       "pipe:1",
                                       NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed) return failed;
    failed = posix_spawnattr_init(&how);
    if (!failed) {
        failed = describe_child(&files, &how, in, out, err) ? ENOMEM : 0;
        if (!failed) failed = posix_spawnp(&f->pid, program(), &files, &how, (char *const *)(uintptr_t)argv, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static int above_2(int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return copy;
}

static int make_pipe(int *ends)
{
    ends[0] = ends[1] = -1;
    int fds[2];
    if (lin_system_pipe(fds) != 0) return errno;
    for (int i = 0; i < 2; i++) ends[i] = fds[i] > 2 ? fds[i] : above_2(fds[i]);
    return ends[0] < 0 || ends[1] < 0 ? errno : 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

// ---- its messages ----

static void keep_line(char *to, const char *text)
{
    // Its name for the input is of no use in a message.
    static const char self[] = "file:/proc/self/fd/0: ";
    if (strncmp(text, self, sizeof self - 1) == 0) text += sizeof self - 1;
    snprintf(to, LINE, "%s", text);
}

// "[mov,mp4 @ 0x55d0] [error] moov atom not found", "  Duration: 00:01:02.50, start: 0.000000, bitrate: ..."
static void take_line(lin_ffmpeg *f)
{
    static const char *const bad[] = {"[error] ", "[fatal] ", "[panic] "};
    f->line[f->n_line] = 0;
    f->n_line = 0;
    for (char *c = f->line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    int hours, minutes;
    double seconds;
    const char *length = strstr(f->line, "Duration: ");
    if (length && f->seconds < 0 && sscanf(length, "Duration: %d:%d:%lf", &hours, &minutes, &seconds) == 3 && hours >= 0)
        f->seconds = hours * 3600.0 + minutes * 60 + seconds;
    f->has_video |= strstr(f->line, " Video: ") != NULL;
    f->is_guess |= strstr(f->line, "Estimating duration") != NULL;
    if (!strstr(f->line, "[info] ") && strspn(f->line, " ") < strlen(f->line)) keep_line(f->last, f->line);
    for (int i = 0; i < 3; i++) {
        const char *errors = strstr(f->line, bad[i]);
        if (!errors) continue;
        memcpy(f->errors[0], f->errors[1], LINE);
        keep_line(f->errors[1], errors + strlen(bad[i]));
        return;
    }
}

static void drain(lin_ffmpeg *f)
{
    char bytes[1024];
    while (f->err >= 0) {
        const ssize_t got = read(f->err, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) {
            if (f->n_line) take_line(f);
            close_end(&f->err);
            return;
        }
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n' || bytes[i] == '\r') take_line(f);
            else if (f->n_line < LINE - 1) f->line[f->n_line++] = bytes[i];
        }
    }
}

// ---- reading ----

static lin_status stopped(const lin_ffmpeg *f, lin_error *err) { return lin_fail(err, LIN_STOPPED, "%s: interrupted", f->name); }

// Reads more bytes after those that are held; none at the end of the samples.
static lin_status fill(lin_ffmpeg *f, lin_error *err)
{
    memmove(f->bytes, f->bytes + f->at, (size_t)f->held);
    f->at = 0;
    while (f->out >= 0) {
        if (lin_audio_is_stopped()) return stopped(f, err);
        struct pollfd ready[2] = {{.fd = f->out, .events = POLLIN}, {.fd = f->err, .events = POLLIN}};
        const int n = poll(ready, 2, 200);
        if (n < 0 && errno != EINTR) return lin_fail(err, LIN_IO, "cannot read %s: %s", f->name, strerror(errno));
        if (n <= 0) continue;
        if (ready[1].revents) drain(f);
        if (!ready[0].revents) continue;
        const ssize_t got = read(f->out, f->bytes + f->held, (size_t)(BYTES - f->held));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return lin_fail(err, LIN_IO, "cannot read %s: %s", f->name, strerror(errno));
        if (got == 0) close_end(&f->out);
        f->held += (int)got;
        break;
    }
    return LIN_OK;
}

// After the end of the samples: reads its last messages and its exit status. Kills it if it does not end by itself.
static lin_status wait_for_end(lin_ffmpeg *f, lin_error *err)
{
    for (int waited = 0, ms = 0; f->pid > 0; waited += ms) {
        const pid_t done = waitpid(f->pid, &f->status, WNOHANG);
        if (done == f->pid || (done < 0 && errno != EINTR)) f->pid = 0;
        if (f->pid == 0) break;
        if (lin_audio_is_stopped()) return stopped(f, err);
        if (waited >= PATIENCE_MS) kill(-f->pid, SIGKILL);
        struct pollfd ready = {.fd = f->err, .events = POLLIN};
        ms = f->err >= 0 ? 20 : 2;
        poll(&ready, 1, ms);
        drain(f);
    }
    drain(f);
    if (f->n_line) take_line(f);
    return LIN_OK;
}

// The error, or "". Errors after which it continued are damage too: samples are missing there.
static void judge(lin_ffmpeg *f)
{
    const double decoded = (double)f->frames / (f->rate_hz > 0 ? f->rate_hz : 1);
    char end[64] = "";
    if (WIFSIGNALED(f->status)) snprintf(end, sizeof end, "it ended with signal %d", WTERMSIG(f->status));
    else if (WEXITSTATUS(f->status)) snprintf(end, sizeof end, "exit status %d", WEXITSTATUS(f->status));
    if (f->errors[1][0])
        snprintf(f->trouble, sizeof f->trouble, "%.200s%s%.200s", f->errors[0], f->errors[0][0] ? "; " : "", f->errors[1]);
    else if (end[0]) snprintf(f->trouble, sizeof f->trouble, "%.300s%s%s", f->last, f->last[0] ? "; " : "", end);
    else if (f->seconds > 0 && !f->has_video && !f->is_guess && f->frames > 0 && decoded < 0.98 * f->seconds - 0.5)
        snprintf(f->trouble, sizeof f->trouble, "its container gives %.2f s", f->seconds);
}

static uint32_t u32(const unsigned char *b) { return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]; }

// AU: ".snd", offset of the samples, their bytes (unknown), 6: 32-bit floats, rate, channels; big-endian.
static lin_status read_header(lin_ffmpeg *f, lin_error *err)
{
    lin_status status = LIN_OK;
    while (status == LIN_OK && f->out >= 0 && (f->held < 24 || (uint32_t)f->held < u32(f->bytes + 4))) {
        if (f->held >= 24 && u32(f->bytes + 4) > MAX_HEADER) break;
        status = fill(f, err);
    }
    if (status != LIN_OK) return status;
    const uint32_t at = f->held >= 24 ? u32(f->bytes + 4) : 0, rate = at ? u32(f->bytes + 16) : 0,
                   channels = at ? u32(f->bytes + 20) : 0;
    if (at >= 24 && at <= (uint32_t)f->held && memcmp(f->bytes, ".snd", 4) == 0 && u32(f->bytes + 12) == 6 && rate <= INT32_MAX &&
        channels > 0 && channels <= MAX_CHANNELS) {
        f->rate_hz = (int)rate;
        f->channels = (int)channels;
        f->at = (int)at;
        f->held -= (int)at;
        drain(f);
        return LIN_OK;
    }
    close_end(&f->out); // if the format is something else
    status = wait_for_end(f, err);
    if (status != LIN_OK) return status;
    judge(f);
    if (WIFEXITED(f->status) && WEXITSTATUS(f->status) == 127)
        return lin_fail(err, LIN_UNSUPPORTED, "cannot run ffmpeg: %s", f->trouble);
    if (strstr(f->trouble, "matches no streams")) return lin_fail(err, LIN_FORMAT, "it contains no sound");
    return lin_fail(err, LIN_FORMAT, "%s", f->trouble[0] ? f->trouble : "it gave no sound");
}

lin_status lin_ffmpeg_open(int fd, const char *name, lin_ffmpeg **out, lin_error *err)
{
    *out = NULL;
    if (!*program()) return lin_fail(err, LIN_UNSUPPORTED, "LINNET_FFMPEG is empty");
    lin_ffmpeg *f = lin_calloc(1, sizeof *f);
    if (!f) return lin_no_memory(err, name, sizeof *f);
    f->out = f->err = -1;
    f->seconds = -1;
    f->name = lin_strdup(name);
    int samples[2] = {-1, -1}, words[2] = {-1, -1}, reason = 0;
    lin_status status = f->name ? LIN_OK : lin_no_memory(err, name, strlen(name) + 1);
    if (status == LIN_OK) {
        int in = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        reason = in < 0 ? errno : make_pipe(samples);
        if (!reason) reason = make_pipe(words);
        if (!reason && fcntl(words[0], F_SETFL, O_NONBLOCK) != 0) reason = errno;
        if (!reason) {
            reason = start(f, in, samples[1], words[1]);
            if (reason) f->pid = 0;
            if (reason) status = lin_fail(err, LIN_UNSUPPORTED, "cannot run %s: %s", program(), strerror(reason));
        } else {
            status = lin_fail(err, LIN_IO, "cannot run %s for %s: %s", program(), name, strerror(reason));
        }
        close_end(&in);
    }
    close_end(&samples[1]);
    close_end(&words[1]);
    f->out = samples[0];
    f->err = words[0];
    if (status == LIN_OK) status = read_header(f, err);
    if (status != LIN_OK) {
        lin_ffmpeg_close(f);
        return status;
    }
    *out = f;
    return LIN_OK;
}

int lin_ffmpeg_rate(const lin_ffmpeg *f) { return f->rate_hz; }

int lin_ffmpeg_channels(const lin_ffmpeg *f) { return f->channels; }

double lin_ffmpeg_seconds(const lin_ffmpeg *f) { return f->is_guess ? -1 : f->seconds; }

lin_status lin_ffmpeg_read(lin_ffmpeg *f, float *frames, int capacity, int *n, lin_error *err)
{
    const int frame_bytes = 4 * f->channels;
    int done = 0;
    *n = 0;
    while (done < capacity) {
        int take = f->held / frame_bytes;
        if (take > capacity - done) take = capacity - done;
        for (int i = 0; i < take * f->channels; i++) {
            const uint32_t bits = u32(f->bytes + f->at + 4 * i);
            memcpy(frames + (size_t)done * (size_t)f->channels + (size_t)i, &bits, sizeof bits);
        }
        f->at += take * frame_bytes;
        f->held -= take * frame_bytes;
        done += take;
        if (done == capacity || f->out < 0) break;
        lin_status status = fill(f, err);
        if (status != LIN_OK) return status;
    }
    f->frames += done;
    *n = done;
    if (done == capacity || f->pid == 0) return LIN_OK;
    lin_status status = wait_for_end(f, err);
    if (status == LIN_OK) judge(f);
    return status;
}

const char *lin_ffmpeg_trouble(const lin_ffmpeg *f) { return f->trouble; }

void lin_ffmpeg_close(lin_ffmpeg *f)
{
    if (!f) return;
    if (f->pid > 0) {
        kill(-f->pid, SIGKILL);
        while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    close_end(&f->out);
    close_end(&f->err);
    lin_free(f->name);
    lin_free(f);
}
