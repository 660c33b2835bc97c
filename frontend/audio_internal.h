/*
 * audio_internal.h - an open audio, shared by audio.c (headerless samples, all kinds), audio_file.c (regular files, of one part
 * or several), audio_sndfile.c (libsndfile), audio_pipe.c (pipes) and sphere.c (NIST SPHERE).
 */
#ifndef LIN_FRONTEND_AUDIO_INTERNAL_H
#define LIN_FRONTEND_AUDIO_INTERNAL_H

#include <sndfile.h>

#include "frontend/audio.h"
#include "frontend/ffmpeg.h"
#include "frontend/isolate.h"
#include "frontend/parts.h"
#include "frontend/sniff.h"

enum { LIN_AUDIO_RAW_BYTES = 1 << 16 }; // also the longest header of a WAV file in a pipe

typedef struct lin_audio_sphere lin_audio_sphere;

struct lin_audio {
    lin_audio_format info;
    char *name; // for messages
    int64_t position;
    int fd;
    int close_fd;  // close the descriptor at the end
    int live, end; // live: not a regular file
    int is_loud;   // samples beyond full scale have been found

    const float *memory; // the caller's samples

    SNDFILE *file;
    int64_t base; // where the sound begins in the file: the offset of standard input may not be 0
    int64_t size;
    // A regular file may be several files that were joined. Offsets from base: the part that is read, [part, part_end), the one
    // after it (size: none). rest: bytes at the end that are no part; part_begin: the position at which this part begins.
    int64_t part, part_end, next, rest, part_begin;
    int64_t part_frames; // of this part according to its header, -1: it gives none
    int64_t declared; // frames by a header that is not followed; -1: none
    lin_part_facts facts; // of this part
    int has_gap;          // in any part
    sf_count_t offset;        // of libsndfile, in the part
    unsigned char patch[8];   // bytes in place of those of the header, from patch_at in the part
    int64_t patch_at;
    int n_patch;
    int io_errno;        // of a read that failed within libsndfile's callbacks
    int is_mpeg, is_flac, is_cut; // is_cut: the file's structure shows that it is truncated

    lin_ffmpeg *ffmpeg;
    lin_isolated *isolated; // another process reads it

    lin_audio_sphere *sphere; // SPHERE: plain samples as raw, or compressed

    lin_pcm_encoding encoding; // if neither file nor ffmpeg: raw
    int frame_bytes, at, held; // held: bytes in `bytes`, from `at`, not yet decoded
    unsigned char *bytes;      // [LIN_AUDIO_RAW_BYTES]
    int64_t left;              // bytes left according to the header; -1: until the end
    int is_wav, padding;       // a WAV file in a pipe; a byte after its samples
};

/* Keeps the first warning, and before others the first one about sound that is missing. */
void lin_audio_warn(lin_audio *audio, int is_missing, const char *fmt, ...) LIN_PRINTF(3, 4);

/* Bytes of a regular file. */
size_t lin_audio_read_at(const lin_audio *audio, void *bytes, size_t n, int64_t offset);

/* Opens a regular file whose format is known. */
lin_status lin_audio_open_file(lin_audio *audio, lin_sniffed kind, const char *what, lin_error *err);

/* At the end of a part: opens the next one, returns 1. A warning if there are bytes that cannot be read. */
int lin_audio_next_part(lin_audio *audio);

/* A part through libsndfile. LIN_MISMATCH: it does not support it; the message is its reason. */
lin_status lin_audio_open_sndfile(lin_audio *audio, lin_error *err);
lin_status lin_audio_read_sndfile(lin_audio *audio, float *frames, int capacity, int *n, lin_error *err);

lin_status lin_audio_read_ffmpeg(lin_audio *audio, float *frames, int capacity, int *n, lin_error *err);

/* Allocates the buffer for raw bytes. */
lin_status lin_audio_make_room(lin_audio *audio, lin_error *err);

/* Reads more bytes after those that are held, at most `most`; waits if it must. *end: there are none. */
lin_status lin_audio_gather(lin_audio *audio, int most, int *end, lin_error *err);

/* The rest of the input is headerless samples. */
lin_status lin_audio_open_raw(lin_audio *audio, const lin_pcm_format *raw, lin_error *err);

/* Reads the first bytes of a pipe, as many as lin_sniff needs; all bytes read stay held. LIN_FORMAT: there are none;
 * LIN_STOPPED. */
lin_status lin_audio_look(lin_audio *audio, lin_sniffed *kind, const char **what, lin_error *err);

/* A WAV file of plain samples is read as it arrives. *is: it was one. */
lin_status lin_audio_open_wav(lin_audio *audio, int *is, lin_error *err);

/* At the end of its samples: a->left says how many follow. */
lin_status lin_audio_after_wav(lin_audio *audio, lin_error *err);

/* A SPHERE file or pipe; its header comes next in the input. *is = 0: libsndfile must read it; nothing was consumed. */
lin_status lin_audio_open_sphere(lin_audio *audio, int *is, lin_error *err);

/* Plain samples of SPHERE, before they are decoded: makes them little-endian, and adds them to the checksum. */
void lin_audio_sphere_frames(lin_audio *audio, int64_t position, unsigned char *bytes, int n_frames);

/* At their end, after `total` frames: LIN_FORMAT, with both values, if the header gives another count or checksum. */
lin_status lin_audio_sphere_end(const lin_audio *audio, int64_t total, lin_error *err);

/* Reading continues at another frame. */
void lin_audio_sphere_seek(lin_audio *audio, int64_t frame);

/* Compressed samples of SPHERE: 1 if the audio has these; reads as lin_audio_read does; 1 if bytes to decode are held. */
int lin_audio_is_packed(const lin_audio *audio);
lin_status lin_audio_read_packed(lin_audio *audio, float *frames, int capacity, int *n, lin_error *err);
int lin_audio_has_packed(const lin_audio *audio);

void lin_audio_close_sphere(lin_audio *audio);

/* Stores the whole pipe in an unlinked file, which is then read instead. LIN_IO, LIN_UNSUPPORTED: it is too long. */
lin_status lin_audio_spool(lin_audio *audio, lin_error *err);

#endif
