// processes.c - starting a decoder and reading its output; the arguments of ffmpeg, and what its messages mean; files that this
// program reads in another process; commands of the shell; see processes.h.

#include "frontend/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#ifndef __EMSCRIPTEN__
#include <spawn.h>
#endif
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/textfile.h"

enum { MAX_CHANNELS = 1024, MAX_HEADER = 1 << 14, PATIENCE_MS = 10000 };  // of all processes
enum { LINE = LIN_FFMPEG_LINE, CPU_S = 3600 };                            // of ffmpeg
enum { READER_CPU_S = 600 };                                              // of a process that reads a file
#define MEMORY_BYTES (INT64_C(1) << 30)

#ifdef __APPLE__
#define INPUT "file:/dev/fd/0"
#else
#define INPUT "file:/proc/self/fd/0"
#endif

/* ---- another process ------------------------------------------------------------------------------------------------------- */

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void give_line(lin_helper *h)
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
            if (h->n_line) give_line(h);
            close_end(&h->err);
            return;
        }
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n' || bytes[i] == '\r') give_line(h);
            else if (h->n_line < LIN_HELPER_LINE - 1) h->line[h->n_line++] = bytes[i];
        }
    }
}

static lin_status stopped(const lin_helper *h, lin_error *err) { return lin_fail(err, LIN_STOPPED, "%s: interrupted", h->name); }

// 0: it runs. When it has ended, so has what it started.
static int has_ended(lin_helper *h)
{
    if (h->pid == 0) return 1;
    const pid_t done = lin_child_wait(h->pid, &h->status, WNOHANG);
    if (done == h->pid || (done < 0 && errno != EINTR)) h->pid = 0;
    return h->pid == 0;
}

// Reads more bytes after those that are held; none at the end of the samples. That is also when the process has ended and no more
// come: a process that it started may still hold the pipe open.
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
        const ssize_t got = read(h->out, h->bytes + h->held, (size_t)(LIN_HELPER_BYTES - h->held));
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
    if (h->n_line) give_line(h);
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

static lin_status start_child(lin_helper *h, const lin_child *child, int fd, lin_error *err)
{
    int samples[2] = {-1, -1}, words[2] = {-1, -1};
    int in = fcntl(fd, F_DUPFD_CLOEXEC, 3), reason = in < 0 || lin_system_pipe(samples) != 0 ? errno : 0;
    if (!reason && lin_system_pipe(words) != 0) reason = errno;
    if (!reason && fcntl(words[0], F_SETFL, O_NONBLOCK) != 0) reason = errno;
    lin_status status = LIN_OK;
    if (reason) {
        status = lin_fail(err, LIN_IO, "cannot run %s for %s: %s", child->program, h->name, strerror(reason));
    } else {
        lin_child whole = *child;
        whole.in = in;
        whole.out = samples[1];
        whole.err = words[1];
        reason = lin_child_start(&whole, &h->pid);
        if (reason) status = lin_fail(err, LIN_UNSUPPORTED, "cannot run %s: %s", child->program, strerror(reason));
    }
    close_end(&in);
    close_end(&samples[1]);
    close_end(&words[1]);
    h->out = samples[0];
    h->err = words[0];
    return status;
}

// Starts child->program (its descriptors are set here) and reads the header. fd: a regular file, which the caller still owns.
// name: for messages; it stays valid. LIN_UNSUPPORTED: it cannot be started; LIN_IO; LIN_STOPPED (lin_audio_stop_on).
// LIN_FORMAT without a message: it gave no header, and has ended; its lines say why. The caller closes the helper in any case.
static lin_status open_helper(lin_helper *h, const lin_child *child, int fd, const char *name, lin_helper_line take,
                              void *context, lin_error *err)
{
    memset(h, 0, offsetof(lin_helper, line));
    h->name = name;
    h->take = take;
    h->context = context;
    LIN_TRY(start_child(h, child, fd, err));
    return read_header(h, err);
}

// At most capacity frames, interleaved; *n = 0 only at the end. Fills the block. At the end all lines have been taken and the
// child has ended. LIN_IO, LIN_STOPPED. Allocates nothing.
static lin_status read_helper(lin_helper *h, float *frames, int capacity, int *n, lin_error *err)
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
        LIN_TRY(fill(h, err));
    }
    *n = done;
    return done == capacity || h->pid == 0 ? LIN_OK : wait_for_end(h, err);
}

// h: opened, or zeroed.
static void close_helper(lin_helper *h)
{
    if (!h->name) return;
    close_end(&h->out);
    close_end(&h->err);
    if (h->pid > 0) {
        lin_child_kill(h->pid);
        while (lin_child_wait(h->pid, &h->status, 0) < 0 && errno == EINTR) continue;
    }
    h->name = NULL;
}

/* ---- the messages of ffmpeg ------------------------------------------------------------------------------------------------ */

// A path, a name that is looked for on the PATH, or "": none.
static const char *ffmpeg_program(void)
{
    const char *given = getenv("LINNET_FFMPEG");
    return given ? given : "ffmpeg";
}

/*
 * Containers of sound and of video. Those left out make ffmpeg open other files or addresses (dash, hls, concat, sdp,
 * rtsp, imf, image2, applehttp), draw sound from text or pictures, or are recognised by a file's name only. ffmpeg checks the
 * list when it has detected a format, before that format reads the file, wherever the signature is.
 */
static const char containers[] =
    "3gp,aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,dtshd,dv,eac3,flac,flv,g722,gsm,gxf,iff,ivf,loas,matroska,mlp,mov,mp3,mpc,"
    "mpc8,mpeg,mpegts,mxf,nistsphere,nsv,nut,ogg,oma,qcp,rm,sox,tak,truehd,tta,voc,w64,wav,wtv,wv,xwma";

// "[mov,mp4 @ 0x55d0] [error] moov atom not found", "  Duration: 00:01:02.50, start: 0.000000, bitrate: ..."
static void keep_line(char *to, const char *text)
{
    // Its name for the input is of no use in a message.
    const char *self = strstr(text, INPUT ": ");
    if (self) text = self + strlen(INPUT ": ");
    snprintf(to, LINE, "%.*s", LINE - 1, text);
}

// "  Stream #0:1[0x101](eng): Audio: aac (LC), 48000 Hz, stereo, fltp (default)"
static void take_track(lin_ffmpeg *f, const char *line)
{
    const char *wanted = lin_audio_track(), *sound = strstr(line, ": Audio: "), *open = strchr(line, '(');
    char language[16] = "";
    if (!sound || !strstr(line, "[info]   Stream #0:") || f->is_listed) return;
    if (open && open < sound) sscanf(open, "(%15[^)])", language);
    const int is_default = strstr(sound, "(default)") != NULL, is_named = *language && strcmp(language, "und") != 0;
    const size_t used = strlen(f->tracks);
    snprintf(f->tracks + used, sizeof f->tracks - used, "%s%d%s%s%s", used ? ", " : "", ++f->n_tracks, is_named ? " " : "",
             is_named ? language : "", is_default ? " (default)" : "");
    if (!f->chosen && (wanted ? strtol(wanted, NULL, 10) == f->n_tracks || strcasecmp(wanted, language) == 0 : is_default))
        f->chosen = f->n_tracks;
}

// Where the sound begins: the time of the first frame, which is printed by the filters, and for MPEG streams what ffmpeg
// subtracts from it because the tracks that begin earlier are not decoded.
static void take_begin(lin_ffmpeg *f, const char *line)
{
    const char *info = strstr(line, "[info] "), *by = strstr(line, " by ");
    double seconds;
    if (by && strstr(line, "[verbose] Correcting start time")) f->begin_s += strtod(by + 4, NULL) / 1e6;
    if (!info || f->has_begin || !lin_text_number(info + 7, strlen(info + 7), &seconds)) return;
    f->begin_s += seconds;
    f->has_begin = 1;
}

// The last two errors are kept.
static void keep_error(lin_ffmpeg *f, const char *text)
{
    memcpy(f->errors[0], f->errors[1], LINE);
    keep_line(f->errors[1], text);
}

static void take_line(void *context, const char *line)
{
    // Their lengths count the time before the start.
    static const char *const early[] = {"Input #0, matroska", "Input #0, mov,", "Input #0, nut,", "Input #0, asf,"};
    static const char *const bad[] = {"[error] ", "[fatal] ", "[panic] "};
    lin_ffmpeg *f = context;
    int t[6] = {0};
    const char *length = strstr(line, "Duration: ");
    // The samples go to a file without times, into which all of them are written. Version 8 parses an empty packet at the end of
    // WebM; the decoder reports a damaged one too.
    if (strstr(line, "dts to muxer in stream") || strstr(line, "Error parsing Opus packet header")) return;
    take_track(f, line);
    take_begin(f, line);
    f->has_aac |= strstr(line, "Input #0, aac,") != NULL;
    f->is_listed |= strstr(line, "Stream mapping:") != NULL;
    if (length && f->seconds < 0 &&
        sscanf(length, "Duration: %d:%d:%d.%d, start: %d.%d", t, t + 1, t + 2, t + 3, t + 4, t + 5) >= 4 && t[0] >= 0) {
        f->seconds = t[0] * 3600.0 + t[1] * 60 + t[2] + t[3] / 100.0;
        if (f->counts_start) f->seconds -= t[4] + t[5] / 1e6;
    }
    f->has_video |= strstr(line, " Video: ") != NULL;
    f->is_guess |= strstr(line, "Estimating duration") != NULL;
    if (!strstr(line, "[info] ") && !strstr(line, "[verbose] ") && strspn(line, " ") < strlen(line)) keep_line(f->last, line);
    f->is_avi |= strstr(line, "Input #0, avi,") != NULL;
    for (size_t i = 0; i < sizeof early / sizeof *early; i++) f->counts_start |= strstr(line, early[i]) != NULL;
    if (strstr(line, "corrupt input packet") && f->is_avi) keep_error(f, "its last chunk is cut off"); // only a warning of ffmpeg
    for (int i = 0; i < 3; i++) {
        const char *errors = strstr(line, bad[i]);
        if (!errors) continue;
        // From version 6 on, several lines say that the input cannot be opened, after the one that says why.
        if (!strstr(line, "Error opening input") || !f->errors[1][0]) keep_error(f, errors + strlen(bad[i]));
        return;
    }
}

// Sets f->trouble. Errors after which ffmpeg continued count too, because samples are missing there.
static void judge(lin_ffmpeg *f)
{
    const int rate_hz = f->helper.rate_hz, status = f->helper.status;
    const double decoded = (double)f->frames / (rate_hz > 0 ? rate_hz : 1);
    char end[64] = "";
    if (WIFSIGNALED(status)) snprintf(end, sizeof end, "it ended with signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status)) snprintf(end, sizeof end, "exit status %d", WEXITSTATUS(status));
    if (f->errors[1][0])
        snprintf(f->trouble, sizeof f->trouble, "%.200s%s%.200s", f->errors[0], f->errors[0][0] ? "; " : "", f->errors[1]);
    else if (end[0]) snprintf(f->trouble, sizeof f->trouble, "%.300s%s%s", f->last, f->last[0] ? "; " : "", end);
    else if (f->seconds > 0 && !f->has_video && f->n_tracks < 2 && !f->is_guess && f->frames > 0 &&
             decoded < 0.98 * f->seconds - 0.5)
        snprintf(f->trouble, sizeof f->trouble, "its container gives %.2f s", f->seconds);
}

/*
 * Gaps in the times become silence (aresample). If times go back, because a recorder was restarted, it would drop all sound until
 * they have caught up; and a file can claim a gap of days. So from such a place on the times are shifted. Register 0: by how
 * much, 1: the end of the frame before, 2: the time of this one. %d: the longest gap, in seconds. Where the sound begins is
 * printed (see take_begin), so that the silence before it is added once: where the rate or the channels change, ffmpeg makes the
 * filters anew.
 */
static const char filters[] =
    "asetpts='if(eq(N,0)*not(isnan(PTS)),print(PTS*TB,32);st(1,PTS));st(2,if(isnan(PTS),ld(1),PTS+ld(0)));"
    "if(lt(ld(2),ld(1)-0.1/TB)+gt(ld(2),ld(1)+%d/TB),st(0,ld(0)+ld(1)-ld(2));st(2,ld(1)));"
    "st(1,ld(2)+NB_SAMPLES/(SR*TB));ld(2)',aresample=async=1";

// The input is the open file, named by its descriptor, so that no name can be an option or a protocol; "pipe:0" would not allow
// seeking. The container of the samples is AU: a header with rate and channels, then all samples.
// AAC without a container (ADTS) has no times. The demuxer counts them by the first rate, which is wrong once the rate changes;
// with nofillin they follow the decoded frames.
static lin_status start(lin_ffmpeg *f, int fd, const char *input, const char *name, lin_error *err)
{
    char shifted[sizeof filters + 32], track[32];
    snprintf(shifted, sizeof shifted, filters, lin_audio_longest_gap());
    snprintf(track, sizeof track, "0:a:%d", f->track - 1);
    const char *const argv[] = {
        "ffmpeg", "-hide_banner", "-nostdin", "-nostats", "-loglevel", "level+verbose",
        "-filter_threads", "1", "-threads", "1",
        "-protocol_whitelist", "file,subfile", "-format_whitelist", containers,
        f->is_g722 ? "-f" : "-fflags", f->is_g722 ? "g722" : f->is_untimed ? "+nofillin" : "-nofillin",
        "-i", input, "-map", track, "-map_metadata", "-1", "-af", shifted,
        "-c:a", "pcm_f32be", "-f", "au", "pipe:1", NULL};
    const lin_child child = {.program = ffmpeg_program(), .argv = argv, .memory_bytes = MEMORY_BYTES, .cpu_s = CPU_S};
    return open_helper(&f->helper, &child, fd, name, take_line, f, err);
}

static lin_status refused(const lin_ffmpeg *f, lin_error *err)
{
    const int status = f->helper.status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return lin_fail(err, LIN_UNSUPPORTED, "cannot run ffmpeg: %s", f->trouble);
    if (strstr(f->trouble, "not on whitelist"))
        return lin_fail(err, LIN_FORMAT, "its format is not one of the sound and video formats that are allowed");
    if (strstr(f->trouble, "matches no streams")) return lin_fail(err, LIN_FORMAT, "it contains no sound");
    return lin_fail(err, LIN_FORMAT, "%s", f->trouble[0] ? f->trouble : "it gave no sound");
}

static lin_status no_track(const lin_ffmpeg *f, lin_error *err)
{
    return lin_fail(err, LIN_INVALID, "it has no sound track '%s' (--track), but %s", lin_audio_track(), f->tracks);
}

// What the file contains is known only while it is read: choosing another track or option needs another start.
static lin_status start_right(lin_ffmpeg *f, int fd, const char *input, const char *name, lin_error *err)
{
    lin_status status = start(f, fd, input, name, err);
    if (status != LIN_OK && status != LIN_FORMAT) return status;
    if (lin_audio_track() && !f->chosen && f->n_tracks) return no_track(f, err);
    // G.722 has no header: a file that is nothing else is recognised by its name.
    const char *ending = strrchr(name, '.');
    const int is_g722 = status == LIN_FORMAT && !f->n_tracks && ending && strcasecmp(ending, ".g722") == 0;
    const int track = f->chosen ? f->chosen : 1;
    if (track == 1 && !is_g722 && (!f->has_aac || status != LIN_OK)) return status;
    close_helper(&f->helper);
    const int is_untimed = f->has_aac;
    memset(f, 0, sizeof *f);
    f->seconds = -1;
    f->track = track;
    f->is_untimed = is_untimed;
    f->is_g722 = is_g722;
    return start(f, fd, input, name, err);
}

lin_status lin_ffmpeg_open(int fd, int64_t from, int64_t end, const char *name, lin_ffmpeg **out, lin_error *err)
{
    char input[128] = INPUT;
    *out = NULL;
    if (!*ffmpeg_program()) return lin_fail(err, LIN_UNSUPPORTED, "LINNET_FFMPEG is empty");
    lin_ffmpeg *f = lin_calloc(1, sizeof *f);
    if (!f) return lin_no_memory(err, name, sizeof *f);
    f->seconds = -1;
    f->track = 1;
    if (from > 0 || end >= 0)
        snprintf(input, sizeof input, "subfile,,start,%lld,end,%lld,,:" INPUT, (long long)from, (long long)(end < 0 ? 0 : end));
    lin_status status = start_right(f, fd, input, name, err);
    if (status == LIN_FORMAT) {
        judge(f);
        status = refused(f, err);
    }
    if (status != LIN_OK) {
        lin_ffmpeg_close(f);
        return status;
    }
    // Less than a millisecond is a container's rounding.
    if (fabs(f->begin_s) >= 0.001) f->lead = llround(fmin(f->begin_s, lin_audio_longest_gap()) * f->helper.rate_hz);
    *out = f;
    return LIN_OK;
}

lin_status lin_ffmpeg_read(lin_ffmpeg *f, float *frames, int capacity, int *n, lin_error *err)
{
    const size_t channels = (size_t)f->helper.channels;
    int silent = f->lead < 0 ? 0 : f->lead < capacity ? (int)f->lead : capacity;
    *n = 0;
    while (f->lead < 0) {
        LIN_TRY(read_helper(&f->helper, frames, f->lead > -capacity ? (int)-f->lead : capacity, n, err));
        f->lead = *n ? f->lead + *n : 0;
    }
    memset(frames, 0, (size_t)silent * channels * sizeof *frames);
    f->lead -= silent;
    *n = 0;
    if (silent < capacity)
        LIN_TRY(read_helper(&f->helper, frames + (size_t)silent * channels, capacity - silent, n, err));
    *n += silent;
    f->frames += *n;
    if (*n < capacity) judge(f);
    return LIN_OK;
}

void lin_ffmpeg_close(lin_ffmpeg *f)
{
    if (!f) return;
    close_helper(&f->helper);
    lin_free(f);
}

/* ---- files read by a process of this program ------------------------------------------------------------------------------- */

struct lin_isolated {
    lin_helper helper;
    lin_audio_format *info; // of the current call
    int64_t given;          // frames
    int too_long;           // it used up its processor time
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

static void take_message(void *context, const char *line)
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
    if (number == SIGXCPU || s->too_long)
        snprintf(text, capacity, "reading it takes more than %d s of processor time", READER_CPU_S);
    else if (number) snprintf(text, capacity, "the process that reads it ended with signal %d", number);
    else if (WEXITSTATUS(status)) snprintf(text, capacity, "the process that reads it ended with status %d", WEXITSTATUS(status));
}

lin_status lin_isolated_open(int fd, const char *name, lin_audio_format *info, lin_isolated **out, lin_error *err)
{
    static const char *const keep[] = {"LINNET_FFMPEG", NULL};
    const char *const argv[] = {"linnet", LIN_ISOLATE_COMMAND, name, NULL};
    const lin_child child = {.program = reader,
                             .argv = argv,
                             .also = ffmpeg_program(),
                             .keep = keep,
                             .memory_bytes = MEMORY_BYTES,
                             .cpu_s = READER_CPU_S,
                             .is_bound = 1};
    char end[128];
    *out = NULL;
    lin_isolated *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, name, sizeof *s);
    s->info = info;
    lin_status status = open_helper(&s->helper, &child, fd, name, take_message, s, err);
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

// After the last frame: returns the error, if there is one; else completes the warning.
lin_status lin_isolated_read(lin_isolated *s, lin_audio_format *info, float *frames, int capacity, int *n, lin_error *err)
{
    char end[128];
    s->info = info;
    LIN_TRY(read_helper(&s->helper, frames, capacity, n, err));
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
    close_helper(&s->helper);
    lin_free(s);
}

/* ---- commands of the shell ------------------------------------------------------------------------------------------------- */

extern char **environ;

// `sh -c command` with no input and its output in a file. An errno.
static int start_shell(const char *command, int to, pid_t *pid)
{
#ifdef __EMSCRIPTEN__ // which has no processes
    (void)command, (void)to, (void)pid;
    return ENOSYS;
#else
    char *argv[] = {"sh", "-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (!error) error = posix_spawn(pid, "/bin/sh", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
#endif
}

// Waits for the end of the command; ends it if the waiting is stopped.
static lin_status wait_for_shell(pid_t pid, const char *name, lin_error *err)
{
    int result = 0;
    for (;;) {
        const pid_t done = waitpid(pid, &result, WNOHANG);
        if (done == pid || (done < 0 && errno != EINTR)) break;
        if (lin_audio_is_stopped()) {
            kill(pid, SIGTERM);
            waitpid(pid, &result, 0);
            return lin_fail(err, LIN_STOPPED, "%.300s: interrupted", name);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (WIFSIGNALED(result)) return lin_fail(err, LIN_IO, "the command %.300s ended by signal %d", name, WTERMSIG(result));
    if (WEXITSTATUS(result) == 0) return LIN_OK;
    return lin_fail(err, LIN_IO, "the command %.300s failed with status %d", name, WEXITSTATUS(result));
}

// All of its output is stored first: then its status is known before any of it is used, and parts of it can be sought.
lin_status lin_audio_open_command(const char *command, const lin_pcm_format *raw, lin_audio **audio, lin_error *err)
{
    const char *folder;
    pid_t pid;
    *audio = NULL;
    const int to = lin_file_open_unnamed(&folder);
    if (to < 0) return lin_fail(err, LIN_IO, "cannot store the output of %.300s in %s: %s", command, folder, strerror(errno));
    const int error = start_shell(command, to, &pid);
    lin_status status = error ? lin_fail(err, LIN_IO, "cannot run %.300s: %s", command, strerror(error))
                              : wait_for_shell(pid, command, err);
    if (status == LIN_OK && lseek(to, 0, SEEK_END) == 0)
        status = lin_fail(err, LIN_FORMAT, "the command %.300s wrote nothing", command);
    if (status == LIN_OK) lseek(to, 0, SEEK_SET);
    if (status == LIN_OK) return lin_audio_open_fd(to, 1, command, raw, audio, err);
    close(to);
    return status;
}
