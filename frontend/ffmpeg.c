// ffmpeg.c - the arguments of ffmpeg, and what its messages mean; see ffmpeg.h.

#include "frontend/ffmpeg.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "frontend/audio.h"
#include "frontend/helper.h"

enum { LINE = 256, CPU_S = 3600, LONGEST_GAP_S = 30 * 3600 };
#define MEMORY_BYTES (INT64_C(1) << 30)

#ifdef __APPLE__
#define INPUT "file:/dev/fd/0"
#else
#define INPUT "file:/proc/self/fd/0"
#endif

struct lin_ffmpeg {
    lin_helper *helper;
    double seconds;
    int has_video, is_guess; // either means that the container's length may differ from that of the sound
    int64_t frames;          // read
    char errors[2][LINE];    // the last lines with errors
    char last[LINE];         // the last line of all
    char trouble[2 * LINE];
};

/*
 * Containers of sound and of video. What is missing here makes ffmpeg open other files or addresses (dash, hls, concat, sdp,
 * rtsp, imf, image2, applehttp), draws sound from text or pictures, or recognises itself by a file's name only. ffmpeg checks the
 * list after it has detected a format and before that reads the file, wherever the signature stands.
 */
static const char containers[] =
    "3gp,aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,dtshd,dv,eac3,flac,flv,gxf,iff,ivf,loas,matroska,mlp,mov,mp3,mpc,mpc8,mpeg,"
    "mpegts,mxf,nsv,nut,ogg,oma,qcp,rm,sox,tak,truehd,tta,voc,w64,wav,wtv,wv,xwma";

// "[mov,mp4 @ 0x55d0] [error] moov atom not found", "  Duration: 00:01:02.50, start: 0.000000, bitrate: ..."
static void keep_line(char *to, const char *text)
{
    // Its name for the input is of no use in a message.
    const char *self = strstr(text, INPUT ": ");
    if (self) text = self + strlen(INPUT ": ");
    snprintf(to, LINE, "%.*s", LINE - 1, text);
}

static void take_line(void *context, const char *line)
{
    static const char *const bad[] = {"[error] ", "[fatal] ", "[panic] "};
    lin_ffmpeg *f = context;
    int hours, minutes;
    double seconds;
    const char *length = strstr(line, "Duration: ");
    if (length && f->seconds < 0 && sscanf(length, "Duration: %d:%d:%lf", &hours, &minutes, &seconds) == 3 && hours >= 0)
        f->seconds = hours * 3600.0 + minutes * 60 + seconds;
    f->has_video |= strstr(line, " Video: ") != NULL;
    f->is_guess |= strstr(line, "Estimating duration") != NULL;
    if (!strstr(line, "[info] ") && strspn(line, " ") < strlen(line)) keep_line(f->last, line);
    for (int i = 0; i < 3; i++) {
        const char *errors = strstr(line, bad[i]);
        if (!errors) continue;
        memcpy(f->errors[0], f->errors[1], LINE);
        keep_line(f->errors[1], errors + strlen(bad[i]));
        return;
    }
}

// The error, or "". Errors after which it continued are damage too: samples are missing there.
static void judge(lin_ffmpeg *f)
{
    const int rate_hz = lin_helper_rate(f->helper), status = lin_helper_status(f->helper);
    const double decoded = (double)f->frames / (rate_hz > 0 ? rate_hz : 1);
    char end[64] = "";
    if (WIFSIGNALED(status)) snprintf(end, sizeof end, "it ended with signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status)) snprintf(end, sizeof end, "exit status %d", WEXITSTATUS(status));
    if (f->errors[1][0])
        snprintf(f->trouble, sizeof f->trouble, "%.200s%s%.200s", f->errors[0], f->errors[0][0] ? "; " : "", f->errors[1]);
    else if (end[0]) snprintf(f->trouble, sizeof f->trouble, "%.300s%s%s", f->last, f->last[0] ? "; " : "", end);
    else if (f->seconds > 0 && !f->has_video && !f->is_guess && f->frames > 0 && decoded < 0.98 * f->seconds - 0.5)
        snprintf(f->trouble, sizeof f->trouble, "its container gives %.2f s", f->seconds);
}

/*
 * Gaps in the times become silence (aresample). Times that go back, of a recorder that was started again, would make it drop all
 * sound until they are as late as before; and a gap of days costs nothing in a file. So from there on the times are shifted.
 * Register 0: by how much, 1: the end of the frame before, 2: the time of this one. %d: the longest gap, in seconds.
 */
static const char filters[] =
    "asetpts='if(eq(N,0)*not(isnan(PTS)),st(0,min(0,%d/TB-PTS));st(1,PTS+ld(0)));st(2,if(isnan(PTS),ld(1),PTS+ld(0)));"
    "if(lt(ld(2),ld(1)-0.1/TB)+gt(ld(2),ld(1)+%d/TB),st(0,ld(0)+ld(1)-ld(2));st(2,ld(1)));"
    "st(1,ld(2)+NB_SAMPLES/(SR*TB));ld(2)',aresample=async=1:first_pts=0";

// The input is the open file, named by its descriptor, so that no name can be an option or a protocol; "pipe:0" would not allow
// seeking. The container of the samples is AU: a header with rate and channels, then all samples.
static lin_status start(lin_ffmpeg *f, int fd, const char *input, const char *name, lin_error *err)
{
    const int gap_s = lin_audio_longest_gap() ? lin_audio_longest_gap() : LONGEST_GAP_S;
    char shifted[sizeof filters + 32];
    snprintf(shifted, sizeof shifted, filters, gap_s, gap_s);
    const char *const argv[] = {"ffmpeg",
                                       "-hide_banner",
                                       "-nostdin",
                                       "-nostats",
                                       "-loglevel",
                                       "level+info",
                                       "-filter_threads",
                                       "1",
                                       "-threads",
                                       "1",
                                       "-protocol_whitelist",
                                       "file,subfile",
                                       "-format_whitelist",
                                       containers,
                                       "-i",
                                       input,
                                       "-map",
                                       "0:a:0",
                                       "-map_metadata",
                                       "-1",
                                       "-af",
                                       shifted,
                                       "-c:a",
                                       "pcm_f32be",
                                       "-f",
                                       "au",
                                       "pipe:1",
                                       NULL};
    const lin_child child = {.program = lin_ffmpeg_program(), .argv = argv, .memory_bytes = MEMORY_BYTES, .cpu_s = CPU_S};
    return lin_helper_open(&child, fd, name, take_line, f, &f->helper, err);
}

static lin_status refused(const lin_ffmpeg *f, lin_error *err)
{
    const int status = lin_helper_status(f->helper);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return lin_fail(err, LIN_UNSUPPORTED, "cannot run ffmpeg: %s", f->trouble);
    if (strstr(f->trouble, "matches no streams")) return lin_fail(err, LIN_FORMAT, "it contains no sound");
    return lin_fail(err, LIN_FORMAT, "%s", f->trouble[0] ? f->trouble : "it gave no sound");
}

const char *lin_ffmpeg_program(void)
{
    const char *given = getenv("LINNET_FFMPEG");
    return given ? given : "ffmpeg";
}

lin_status lin_ffmpeg_open(int fd, int64_t from, int64_t end, const char *name, lin_ffmpeg **out, lin_error *err)
{
    char input[128] = INPUT;
    *out = NULL;
    if (!*lin_ffmpeg_program()) return lin_fail(err, LIN_UNSUPPORTED, "LINNET_FFMPEG is empty");
    lin_ffmpeg *f = lin_calloc(1, sizeof *f);
    if (!f) return lin_no_memory(err, name, sizeof *f);
    f->seconds = -1;
    if (from > 0 || end >= 0)
        snprintf(input, sizeof input, "subfile,,start,%lld,end,%lld,,:" INPUT, (long long)from,
                 (long long)(end < 0 ? 0 : end));
    lin_status status = start(f, fd, input, name, err);
    if (status == LIN_FORMAT) {
        judge(f);
        status = refused(f, err);
    }
    if (status != LIN_OK) {
        lin_ffmpeg_close(f);
        return status;
    }
    *out = f;
    return LIN_OK;
}

int lin_ffmpeg_rate(const lin_ffmpeg *f) { return lin_helper_rate(f->helper); }

int lin_ffmpeg_channels(const lin_ffmpeg *f) { return lin_helper_channels(f->helper); }

double lin_ffmpeg_seconds(const lin_ffmpeg *f) { return f->is_guess ? -1 : f->seconds; }

lin_status lin_ffmpeg_read(lin_ffmpeg *f, float *frames, int capacity, int *n, lin_error *err)
{
    lin_status status = lin_helper_read(f->helper, frames, capacity, n, err);
    if (status != LIN_OK) return status;
    f->frames += *n;
    if (*n < capacity) judge(f);
    return LIN_OK;
}

const char *lin_ffmpeg_trouble(const lin_ffmpeg *f) { return f->trouble; }

void lin_ffmpeg_close(lin_ffmpeg *f)
{
    if (!f) return;
    lin_helper_close(f->helper);
    lin_free(f);
}
