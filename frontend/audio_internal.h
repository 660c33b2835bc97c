/*
 * audio_internal.h - an open audio, shared by audio.c (headerless samples, WAV, pipes) and audio_file.c (regular files, of one
 * part or several, through libsndfile and ffmpeg).
 */
#ifndef LIN_FRONTEND_AUDIO_INTERNAL_H
#define LIN_FRONTEND_AUDIO_INTERNAL_H

#include <sndfile.h>

#include "frontend/audio.h"
#include "frontend/processes.h"
#include "frontend/sniff.h"

enum { LIN_AUDIO_RAW_BYTES = 1 << 16 }; // also the longest header of a WAV file

struct lin_audio {
    lin_audio_format info;
    char *name; // for messages
    int64_t position;
    int fd;
    int close_fd;  // close the descriptor at the end
    int live, end; // live: not a regular file
    int is_loud;   // samples beyond full scale have been found

    // The reader: one of these, or else raw samples.
    const float *memory; // the caller's samples
    SNDFILE *sndfile;
    lin_ffmpeg *ffmpeg;
    lin_isolated *isolated; // another process reads it

    // Raw samples and WAV.
    lin_pcm_encoding encoding;
    int frame_bytes, at, held; // held: bytes in `bytes`, from `at`, not yet decoded
    unsigned char *bytes;      // [LIN_AUDIO_RAW_BYTES]
    int64_t first_byte;        // where the samples begin, in `whole`
    int64_t sample_bytes, left; // by the header: of all of them, and not yet read; -1: until the end
    int is_wav, padding;       // padding: a byte after its samples

    // A regular file may be several files that were joined: [part, part_end) is the one that is read, from the frame part_begin.
    lin_sniff_file whole; // its base: where the sound begins, because the offset of standard input may not be 0
    int64_t part, part_end, next, part_begin; // next: the one after it, the file's size: none
    int64_t declared;          // frames of this part according to its header; -1: it gives none
    lin_sniff_samples samples; // of this part
    int64_t rest;              // bytes at its end that its reader does not read
    int has_gap;               // pages of Ogg are missing
    sf_count_t offset;         // of libsndfile, in the part
    unsigned char patch[8];    // bytes in place of those of the header, from patch_at in the part
    int n_patch, patch_at;
    int io_errno;              // of a read that failed within libsndfile's callbacks
    int is_mpeg, is_cut;       // is_cut: it ends within a page of Ogg
};

/* Keeps the first warning, but the first one about missing sound replaces any other. */
void lin_audio_warn(lin_audio *audio, int is_missing, const char *fmt, ...) LIN_PRINTF(3, 4);

/* Opens a regular file, of which `kind` is known, from an offset on. */
lin_status lin_audio_open_file(lin_audio *audio, int64_t from, lin_sniffed kind, const char *what, lin_error *err);

/* As lin_audio_read, from libsndfile or ffmpeg. */
lin_status lin_audio_read_file(lin_audio *audio, float *frames, int capacity, int *n, lin_error *err);

/* At the end of a part: opens the next one, returns 1. A warning if there are bytes that cannot be read. */
int lin_audio_next_part(lin_audio *audio);

#endif
