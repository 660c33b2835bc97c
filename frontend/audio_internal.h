/*
 * audio_internal.h - an open audio, for audio.c (files, headerless samples) and audio_pipe.c (what comes through a pipe).
 */
#ifndef LIN_FRONTEND_AUDIO_INTERNAL_H
#define LIN_FRONTEND_AUDIO_INTERNAL_H

#include <sndfile.h>

#include "frontend/audio.h"
#include "frontend/ffmpeg.h"
#include "frontend/sniff.h"

enum { RAW_BYTES = 1 << 16 }; // also the longest header of a WAV file in a pipe

struct lin_audio {
    lin_audio_format info;
    char *name; // for messages
    int64_t position;
    int fd;
    int close_fd;  // the descriptor is ours
    int live, end; // live: not a regular file

    const float *memory; // the caller's samples

    SNDFILE *file;
    int64_t base; // where the sound begins in the file: standard input need not be at its beginning
    sf_count_t size, offset;
    int io_errno;        // of a read that failed below libsndfile
    int is_mpeg, is_cut; // is_cut: by its structure, more was to come

    lin_ffmpeg *ffmpeg;

    lin_pcm_encoding encoding; // neither of them: raw
    int frame_bytes, at, held; // held: bytes in `bytes`, from `at`, not yet decoded
    unsigned char *bytes;      // [RAW_BYTES]
    int64_t left;              // of bytes promised by a header; -1: all until the end
};

/* The buffer for raw bytes. */
lin_status lin_audio_make_room(lin_audio *audio, lin_error *err);

/* More bytes behind those that are held, at most so many; waits if it must. *end: there are none. */
lin_status lin_audio_gather(lin_audio *audio, int most, int *end, lin_error *err);

/* Headerless samples from here on. */
lin_status lin_audio_open_raw(lin_audio *audio, const lin_pcm_format *raw, lin_error *err);

/* The first bytes of a pipe, as many as it takes to tell what they are (lin_sniff); all that is read stays held. LIN_FORMAT: there
 * are none; LIN_STOPPED. */
lin_status lin_audio_look(lin_audio *audio, lin_sniffed *kind, const char **what, lin_error *err);

/* A WAV file of plain samples is read as it comes. *is: it was one. */
lin_status lin_audio_open_wav(lin_audio *audio, int *is, lin_error *err);

/* Stores everything in a file without a name, which is read instead of the pipe. LIN_IO, LIN_UNSUPPORTED: it is too long. */
lin_status lin_audio_spool(lin_audio *audio, lin_error *err);

#endif
