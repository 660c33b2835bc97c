// ffmpeg.c - the arguments of ffmpeg, and what its messages mean; see ffmpeg.h.

#include "frontend/ffmpeg.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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
    int track, is_untimed, is_g722; // what it decodes, from 1; the times that the demuxer makes up are not used
    double seconds;
    int has_video, is_guess;           // either means that the container's length may differ from that of the sound
    int n_tracks, chosen;              // chosen: the track to decode, 0: none found
    int has_begin, has_aac, is_listed; // is_listed: all tracks have been seen
    double begin_s;                    // the time at which the sound begins
    int64_t lead;                      // frames of silence before it; below 0: frames of it to drop
    int64_t frames;                    // read
    char tracks[LINE];                 // "1 deu, 2 eng (default)"
    char errors[2][LINE];              // the last lines with errors
    char last[LINE];                   // the last line of all
    char trouble[2 * LINE];
};

/*
 * Containers of sound and of video. What is missing here makes ffmpeg open other files or addresses (dash, hls, concat, sdp,
 * rtsp, imf, image2, applehttp), draws sound from text or pictures, or recognises itself by a file's name only. ffmpeg checks the
 * list after it has detected a format and before that reads the file, wherever the signature stands.
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

// Where the sound begins: the time of the first frame, which is printed by the filters, and of MPEG streams what ffmpeg takes off
// this time because the tracks that begin before are not decoded.
static void take_begin(lin_ffmpeg *f, const char *line)
{
    const char *info = strstr(line, "[info] "), *by = strstr(line, " by ");
    double seconds;
    char more;
    if (by && strstr(line, "[verbose] Correcting start time")) f->begin_s += strtod(by + 4, NULL) / 1e6;
    if (!info || f->has_begin || sscanf(info + 7, "%lf %c", &seconds, &more) != 1) return;
    f->begin_s += seconds;
    f->has_begin = 1;
}

static void take_line(void *context, const char *line)
{
    static const char *const bad[] = {"[error] ", "[fatal] ", "[panic] "};
    lin_ffmpeg *f = context;
    int hours, minutes;
    double seconds;
    const char *length = strstr(line, "Duration: ");
    // The samples go to a file without times, into which all of them are written.
    if (strstr(line, "dts to muxer in stream")) return;
    take_track(f, line);
    take_begin(f, line);
    f->has_aac |= strstr(line, "Input #0, aac,") != NULL;
    f->is_listed |= strstr(line, "Stream mapping:") != NULL;
    if (length && f->seconds < 0 && sscanf(length, "Duration: %d:%d:%lf", &hours, &minutes, &seconds) == 3 && hours >= 0)
        f->seconds = hours * 3600.0 + minutes * 60 + seconds;
    f->has_video |= strstr(line, " Video: ") != NULL;
    f->is_guess |= strstr(line, "Estimating duration") != NULL;
    if (!strstr(line, "[info] ") && !strstr(line, "[verbose] ") && strspn(line, " ") < strlen(line)) keep_line(f->last, line);
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
    else if (f->seconds > 0 && !f->has_video && f->n_tracks < 2 && !f->is_guess && f->frames > 0 &&
             decoded < 0.98 * f->seconds - 0.5)
        snprintf(f->trouble, sizeof f->trouble, "its container gives %.2f s", f->seconds);
}

/*
 * Gaps in the times become silence (aresample). Times that go back, of a recorder that was started again, would make it drop all
 * sound until they are as late as before; and a gap of days costs nothing in a file. So from there on the times are shifted.
 * Register 0: by how much, 1: the end of the frame before, 2: the time of this one. %d: the longest gap, in seconds. Where the
 * sound begins is printed (see take_begin), so that the silence before it comes once: where the rate or the channels change,
 * ffmpeg makes the filters anew.
 */
static const char filters[] =
    "asetpts='if(eq(N,0)*not(isnan(PTS)),print(PTS*TB,32);st(1,PTS));st(2,if(isnan(PTS),ld(1),PTS+ld(0)));"
    "if(lt(ld(2),ld(1)-0.1/TB)+gt(ld(2),ld(1)+%d/TB),st(0,ld(0)+ld(1)-ld(2));st(2,ld(1)));"
    "st(1,ld(2)+NB_SAMPLES/(SR*TB));ld(2)',aresample=async=1";

static int longest_gap(void) { return lin_audio_longest_gap() ? lin_audio_longest_gap() : LONGEST_GAP_S; }

// The input is the open file, named by its descriptor, so that no name can be an option or a protocol; "pipe:0" would not allow
// seeking. The container of the samples is AU: a header with rate and channels, then all samples.
// AAC without a container (ADTS) has no times. The demuxer counts them by the first rate, which is wrong once the rate changes;
// with nofillin they follow the decoded frames.
static lin_status start(lin_ffmpeg *f, int fd, const char *input, const char *name, lin_error *err)
{
    char shifted[sizeof filters + 32], track[32];
    snprintf(shifted, sizeof shifted, filters, longest_gap());
    snprintf(track, sizeof track, "0:a:%d", f->track - 1);
    const char *const argv[] = {"ffmpeg",
                                       "-hide_banner",
                                       "-nostdin",
                                       "-nostats",
                                       "-loglevel",
                                       "level+verbose",
                                       "-filter_threads",
                                       "1",
                                       "-threads",
                                       "1",
                                       "-protocol_whitelist",
                                       "file,subfile",
                                       "-format_whitelist",
                                       containers,
                                       f->is_g722 ? "-f" : "-fflags",
                                       f->is_g722 ? "g722" : f->is_untimed ? "+nofillin" : "-nofillin",
                                       "-i",
                                       input,
                                       "-map",
                                       track,
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
    if (strstr(f->trouble, "not on whitelist"))
        return lin_fail(err, LIN_FORMAT, "its format is not among those of sound and video that may be used");
    if (strstr(f->trouble, "matches no streams")) return lin_fail(err, LIN_FORMAT, "it contains no sound");
    return lin_fail(err, LIN_FORMAT, "%s", f->trouble[0] ? f->trouble : "it gave no sound");
}

const char *lin_ffmpeg_program(void)
{
    const char *given = getenv("LINNET_FFMPEG");
    return given ? given : "ffmpeg";
}

static lin_status no_track(const lin_ffmpeg *f, lin_error *err)
{
    return lin_fail(err, LIN_INVALID, "it has no sound track '%s' (--track), but %s", lin_audio_track(), f->tracks);
}

// What the file has is known only while it is read: another track, or another way, needs another start.
static lin_status start_right(lin_ffmpeg *f, int fd, const char *input, const char *name, lin_error *err)
{
    lin_status status = start(f, fd, input, name, err);
    if (status != LIN_OK && status != LIN_FORMAT) return status;
    if (lin_audio_track() && !f->chosen && f->n_tracks) return no_track(f, err);
    // G.722 has no header: only the name of a file that is nothing else says what it is.
    const char *ending = strrchr(name, '.');
    const int is_g722 = status == LIN_FORMAT && !f->n_tracks && ending && strcasecmp(ending, ".g722") == 0;
    const int track = f->chosen ? f->chosen : 1;
    if (track == 1 && !is_g722 && (!f->has_aac || status != LIN_OK)) return status;
    lin_helper_close(f->helper);
    *f = (lin_ffmpeg){.seconds = -1, .track = track, .is_untimed = f->has_aac, .is_g722 = is_g722};
    return start(f, fd, input, name, err);
}

lin_status lin_ffmpeg_open(int fd, int64_t from, int64_t end, const char *name, lin_ffmpeg **out, lin_error *err)
{
    char input[128] = INPUT;
    *out = NULL;
    if (!*lin_ffmpeg_program()) return lin_fail(err, LIN_UNSUPPORTED, "LINNET_FFMPEG is empty");
    lin_ffmpeg *f = lin_calloc(1, sizeof *f);
    if (!f) return lin_no_memory(err, name, sizeof *f);
    *f = (lin_ffmpeg){.seconds = -1, .track = 1};
    if (from > 0 || end >= 0)
        snprintf(input, sizeof input, "subfile,,start,%lld,end,%lld,,:" INPUT, (long long)from,
                 (long long)(end < 0 ? 0 : end));
    lin_status status = start_right(f, fd, input, name, err);
    if (status == LIN_FORMAT) {
        judge(f);
        status = refused(f, err);
    }
    if (status != LIN_OK) {
        lin_ffmpeg_close(f);
        return status;
    }
    // A shorter time than a millisecond is one that a container rounded.
    if (fabs(f->begin_s) >= 0.001) f->lead = llround(fmin(f->begin_s, longest_gap()) * lin_helper_rate(f->helper));
    *out = f;
    return LIN_OK;
}

int lin_ffmpeg_rate(const lin_ffmpeg *f) { return lin_helper_rate(f->helper); }

int lin_ffmpeg_channels(const lin_ffmpeg *f) { return lin_helper_channels(f->helper); }

double lin_ffmpeg_seconds(const lin_ffmpeg *f) { return f->is_guess ? -1 : f->seconds; }

int lin_ffmpeg_track(const lin_ffmpeg *f) { return f->track; }

const char *lin_ffmpeg_tracks(const lin_ffmpeg *f) { return f->n_tracks > 1 ? f->tracks : ""; }

lin_status lin_ffmpeg_read(lin_ffmpeg *f, float *frames, int capacity, int *n, lin_error *err)
{
    const size_t channels = (size_t)lin_helper_channels(f->helper);
    int silent = f->lead < 0 ? 0 : f->lead < capacity ? (int)f->lead : capacity;
    lin_status status = LIN_OK;
    *n = 0;
    while (f->lead < 0) {
        status = lin_helper_read(f->helper, frames, f->lead > -capacity ? (int)-f->lead : capacity, n, err);
        if (status != LIN_OK) return status;
        f->lead = *n ? f->lead + *n : 0;
    }
    memset(frames, 0, (size_t)silent * channels * sizeof *frames);
    f->lead -= silent;
    if (silent < capacity) status = lin_helper_read(f->helper, frames + (size_t)silent * channels, capacity - silent, n, err);
    else *n = 0;
    if (status != LIN_OK) return status;
    *n += silent;
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
