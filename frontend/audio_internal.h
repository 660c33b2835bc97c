/*
 * audio_internal.h - an open audio, shared by audio.c (files, headerless samples) and audio_pipe.c (pipes).
 */
#ifndef LIN_FRONTEND_AUDIO_INTERNAL_H
#define LIN_FRONTEND_AUDIO_INTERNAL_H

#include <sndfile.h>

#include "frontend/audio.h"
#include "frontend/ffmpeg.h"
#include "frontend/sniff.h"

enum { LIN_AUDIO_RAW_BYTES = 1 << 16 }; // also the longest header of a WAV file in a pipe

struct lin_audio {
    lin_audio_format info;
    char *name; // for messages
    int64_t position;
    int fd;
    int close_fd;  // close the descriptor at the end
    int live, end; // live: not a regular file

    const float *memory; // the caller's samples

    SNDFILE *file;
    int64_t base; // where the sound begins in the file: the offset of standard input may not be 0
    sf_count_t size, offset;
    int io_errno;        // of a read that failed within libsndfile's callbacks
    int is_mpeg, is_cut; // is_cut: the file's structure shows that it is truncated

    lin_ffmpeg *ffmpeg;

    lin_pcm_encoding encoding; // if neither file nor ffmpeg: raw
    int frame_bytes, at, held; // held: bytes in `bytes`, from `at`, not yet decoded
    unsigned char *bytes;      // [LIN_AUDIO_RAW_BYTES]
    int64_t left;              // bytes left according to the header; -1: until the end
};

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

/* Stores the whole pipe in an unlinked file, which is then read instead. LIN_IO, LIN_UNSUPPORTED: it is too long. */
lin_status lin_audio_spool(lin_audio *audio, lin_error *err);

#endif
