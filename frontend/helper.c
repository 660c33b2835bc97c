// helper.c - starting a decoder and reading its output; see helper.h.

#include "frontend/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"
#include "frontend/audio.h"

enum { BYTES = 1 << 16, MAX_CHANNELS = 1024, MAX_HEADER = 1 << 14, PATIENCE_MS = 10000 };

struct lin_helper {
    pid_t pid; // 0: already waited for
    int out, err;
    int status; // of waitpid
    char *name;
    int rate_hz, channels;
    int at, held; // in bytes
    lin_helper_line take;
    void *context;
    char line[LIN_HELPER_LINE]; // of standard error, not yet complete
    int n_line;
    unsigned char bytes[BYTES];
};

static int above_2(int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return copy;
}

// The descriptors are at least 3: dup2 onto 0, 1 and 2 must not overwrite one that is still needed.
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

/* ---- its lines ------------------------------------------------------------------------------------------------------------- */

static void take_line(lin_helper *h)
{
    h->line[h->n_line] = 0;
    h->n_line = 0;
    for (char *c = h->line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    h->take(h->context, h->line);
}

static void drain(lin_helper *h)
{
    char bytes[1024];
    while (h->err >= 0) {
        const ssize_t got = read(h->err, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) {
            if (h->n_line) take_line(h);
            close_end(&h->err);
            return;
        }
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n' || bytes[i] == '\r') take_line(h);
            else if (h->n_line < LIN_HELPER_LINE - 1) h->line[h->n_line++] = bytes[i];
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static lin_status stopped(const lin_helper *h, lin_error *err) { return lin_fail(err, LIN_STOPPED, "%s: interrupted", h->name); }

// 0: it runs. When it has ended, so has what it started.
static int has_ended(lin_helper *h)
{
    if (h->pid == 0) return 1;
    const pid_t done = lin_child_wait(h->pid, &h->status, WNOHANG);
    if (done == h->pid || (done < 0 && errno != EINTR)) h->pid = 0;
    return h->pid == 0;
}

// Reads more bytes after those that are held; none at the end of the samples. The end is also when it has ended and no more come:
// a process that it left may keep the pipe open.
static lin_status fill(lin_helper *h, lin_error *err)
{
    memmove(h->bytes, h->bytes + h->at, (size_t)h->held);
    h->at = 0;
    while (h->out >= 0) {
        if (lin_audio_is_stopped()) return stopped(h, err);
        struct pollfd ready[2] = {{.fd = h->out, .events = POLLIN}, {.fd = h->err, .events = POLLIN}};
        const int was_over = h->pid == 0, n = poll(ready, 2, 200);
        if (n < 0 && errno != EINTR) return lin_fail(err, LIN_IO, "cannot read %s: %s", h->name, strerror(errno));
        if (n == 0 && has_ended(h) && was_over) close_end(&h->out);
        if (n <= 0) continue;
        if (ready[1].revents) drain(h);
        if (!ready[0].revents) continue;
        const ssize_t got = read(h->out, h->bytes + h->held, (size_t)(BYTES - h->held));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return lin_fail(err, LIN_IO, "cannot read %s: %s", h->name, strerror(errno));
        if (got == 0) close_end(&h->out);
        h->held += (int)got;
        break;
    }
    return LIN_OK;
}

// After the end of the samples: reads its last messages and its exit status. Kills it if it does not end by itself.
static lin_status wait_for_end(lin_helper *h, lin_error *err)
{
    for (int waited = 0, ms = 0; h->pid > 0; waited += ms) {
        if (has_ended(h)) break;
        if (lin_audio_is_stopped()) return stopped(h, err);
        if (waited >= PATIENCE_MS) lin_child_kill(h->pid);
        struct pollfd ready = {.fd = h->err, .events = POLLIN};
        ms = h->err >= 0 ? 20 : 2;
        poll(&ready, 1, ms);
        drain(h);
    }
    drain(h);
    if (h->n_line) take_line(h);
    return LIN_OK;
}

static uint32_t u32(const unsigned char *b) { return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]; }

static void put_u32(unsigned char *b, uint32_t x)
{
    for (int i = 0; i < 4; i++) b[i] = (unsigned char)(x >> (24 - 8 * i));
}

void lin_helper_put_header(unsigned char *bytes, int rate_hz, int channels)
{
    const uint32_t words[] = {0x2e736e64, LIN_HELPER_HEADER, 0xffffffff, 6, (uint32_t)rate_hz, (uint32_t)channels};
    for (int i = 0; i < 6; i++) put_u32(bytes + 4 * i, words[i]);
}

void lin_helper_put(unsigned char *bytes, const float *samples, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, samples + i, sizeof bits);
        put_u32(bytes + 4 * (size_t)i, bits);
    }
}

// AU: ".snd", offset of the samples, their bytes (unknown), 6: 32-bit floats, rate, channels; big-endian.
static lin_status read_header(lin_helper *h, lin_error *err)
{
    lin_status status = LIN_OK;
    while (status == LIN_OK && h->out >= 0 && (h->held < LIN_HELPER_HEADER || (uint32_t)h->held < u32(h->bytes + 4))) {
        if (h->held >= LIN_HELPER_HEADER && u32(h->bytes + 4) > MAX_HEADER) break;
        status = fill(h, err);
    }
    if (status != LIN_OK) return status;
    const uint32_t at = h->held >= LIN_HELPER_HEADER ? u32(h->bytes + 4) : 0, rate = at ? u32(h->bytes + 16) : 0,
                   channels = at ? u32(h->bytes + 20) : 0;
    if (at >= LIN_HELPER_HEADER && at <= (uint32_t)h->held && memcmp(h->bytes, ".snd", 4) == 0 && u32(h->bytes + 12) == 6 &&
        rate <= INT32_MAX && channels > 0 && channels <= MAX_CHANNELS) {
        h->rate_hz = (int)rate;
        h->channels = (int)channels;
        h->at = (int)at;
        h->held -= (int)at;
        drain(h);
        return LIN_OK;
    }
    close_end(&h->out); // if the format is something else
    status = wait_for_end(h, err);
    return status == LIN_OK ? LIN_FORMAT : status;
}

lin_status lin_helper_open(const lin_child *child, int fd, const char *name, lin_helper_line take, void *context,
                           lin_helper **out, lin_error *err)
{
    *out = NULL;
    lin_helper *h = lin_calloc(1, sizeof *h);
    if (!h) return lin_no_memory(err, name, sizeof *h);
    h->out = h->err = -1;
    h->take = take;
    h->context = context;
    h->name = lin_strdup(name);
    int samples[2] = {-1, -1}, words[2] = {-1, -1}, reason = 0;
    lin_status status = h->name ? LIN_OK : lin_no_memory(err, name, strlen(name) + 1);
    if (status == LIN_OK) {
        int in = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        reason = in < 0 ? errno : make_pipe(samples);
        if (!reason) reason = make_pipe(words);
        if (!reason && fcntl(words[0], F_SETFL, O_NONBLOCK) != 0) reason = errno;
        if (!reason) {
            lin_child whole = *child;
            whole.in = in;
            whole.out = samples[1];
            whole.err = words[1];
            reason = lin_child_start(&whole, &h->pid);
            if (reason) status = lin_fail(err, LIN_UNSUPPORTED, "cannot run %s: %s", child->program, strerror(reason));
        } else {
            status = lin_fail(err, LIN_IO, "cannot run %s for %s: %s", child->program, name, strerror(reason));
        }
        close_end(&in);
    }
    close_end(&samples[1]);
    close_end(&words[1]);
    h->out = samples[0];
    h->err = words[0];
    if (status == LIN_OK) status = read_header(h, err);
    if (status != LIN_OK && status != LIN_FORMAT) {
        lin_helper_close(h);
        return status;
    }
    *out = h;
    return status;
}

int lin_helper_rate(const lin_helper *h) { return h->rate_hz; }

int lin_helper_channels(const lin_helper *h) { return h->channels; }

lin_status lin_helper_read(lin_helper *h, float *frames, int capacity, int *n, lin_error *err)
{
    const int frame_bytes = 4 * h->channels;
    int done = 0;
    *n = 0;
    while (done < capacity) {
        int take = h->held / frame_bytes;
        if (take > capacity - done) take = capacity - done;
        for (int i = 0; i < take * h->channels; i++) {
            const uint32_t bits = u32(h->bytes + h->at + 4 * i);
            memcpy(frames + (size_t)done * (size_t)h->channels + (size_t)i, &bits, sizeof bits);
        }
        h->at += take * frame_bytes;
        h->held -= take * frame_bytes;
        done += take;
        if (done == capacity || h->out < 0) break;
        lin_status status = fill(h, err);
        if (status != LIN_OK) return status;
    }
    *n = done;
    return done == capacity || h->pid == 0 ? LIN_OK : wait_for_end(h, err);
}

int lin_helper_status(const lin_helper *h) { return h->status; }

void lin_helper_close(lin_helper *h)
{
    if (!h) return;
    close_end(&h->out);
    close_end(&h->err);
    if (h->pid > 0) {
        lin_child_kill(h->pid);
        while (lin_child_wait(h->pid, &h->status, 0) < 0 && errno == EINTR) continue;
    }
    lin_free(h->name);
    lin_free(h);
}
