/*
 * sniff.h - what the bytes of a sound file say: its format (the first ones), the header of a WAV file, where the sound ends.
 *
 * Pipeline: first bytes of a file or pipe -> [this] -> frontend/audio (which reader). Detection is strict: headerless samples
 * must not be taken for a file, so formats without a signature need two frame headers that agree (MPEG audio, ADTS).
 *
 * Threads: any.
 */
#ifndef LIN_FRONTEND_SNIFF_H
#define LIN_FRONTEND_SNIFF_H

#include <stddef.h>
#include <stdint.h>

#include "frontend/audio.h"

typedef enum lin_sniffed {
    LIN_SNIFF_UNKNOWN,
    LIN_SNIFF_SNDFILE, /* a format that libsndfile reads */
    LIN_SNIFF_MEDIA,   /* sound or video in a container that libsndfile does not read */
    LIN_SNIFF_TEXT
} lin_sniffed;

/* More bytes than this do not change the answer. */
enum { LIN_SNIFF_BYTES = 2048 };

/* *what: "a FLAC file", "an MPEG-4 file", "text", ...; "" for LIN_SNIFF_UNKNOWN. */
lin_sniffed lin_sniff(const unsigned char *bytes, size_t n, const char **what);

/* The length in bytes of the MPEG audio frame whose header the four bytes are, 0: they are none. */
size_t lin_sniff_mpeg_frame(const unsigned char *bytes);

/* 1: as s16le the bytes are loud noise without correlation between neighbouring samples, as compressed data or other encodings
 * are; speech never is. */
int lin_sniff_is_noise(const unsigned char *bytes, size_t n);

/* The samples of a WAV file. */
typedef struct lin_wav {
    lin_pcm_format pcm;
    size_t at;     /* of the first sample in the bytes */
    int64_t bytes; /* of samples; -1: until the end, because the writer did not know the length */
} lin_wav;

/* Parses the header of a RIFF, RF64 or BW64 WAV file in its first n bytes. 1: found; 0: more bytes are needed; -1: not plain
 * samples of an encoding in audio.h, or the header is damaged. rate and channels may have any value. */
int lin_wav_find(const unsigned char *bytes, size_t n, lin_wav *wav);

/* ---- the end of a file ----------------------------------------------------------------------------------------------------- */

/*
 * Recordings that were joined (`cat a.opus b.opus`, a browser's recorder that was started again) are several whole files, one
 * after another, and most readers silently stop after the first; headers of recordings that were cut off give more samples than
 * there are.
 *
 *   lin_sniff_file file = {fd, base, size};
 *   end = lin_sniff_end(&file, 0, &faults);
 *   next = lin_sniff_skip_tags(&file, end);     // == size: nothing but tags and padding is left
 *
 * Offsets count from `base`.
 */
typedef struct lin_sniff_file {
    int fd;
    int64_t base, size;
} lin_sniff_file;

/* Bytes at an offset; how many there are. */
size_t lin_sniff_read(const lin_sniff_file *file, void *bytes, size_t n, int64_t offset);

/* The end of the file that begins at `from`: where another of the same kind begins, or before the tags and the padding of one
 * that has no lengths. *faults: of Ogg, pages are missing in it, or it ends within one (RFC 3533, 6). */
enum { LIN_SNIFF_GAP = 1, LIN_SNIFF_CUT = 2 };
int64_t lin_sniff_end(const lin_sniff_file *file, int64_t from, int *faults);

/* The length of the tag (ID3v1, ID3v2, APE) or of the zeros at the beginning of these bytes; 0: none. */
int64_t lin_sniff_tag(const unsigned char *bytes, size_t n);

/* Skips tags, those of Lyrics3 too, and zeros: the first offset from `at` with something else. */
int64_t lin_sniff_skip_tags(const lin_sniff_file *file, int64_t at);

/* Whether a chunk of WAV or AIFF begins at an offset, or the file ends there. */
int lin_sniff_is_chunk(const lin_sniff_file *file, int64_t at);

/* Where the samples of the file at `from` begin, and how many bytes of them its header gives; -1: it gives none, or says that the
 * length is not known, or the format is one whose reader compares them. frames: the count of a SPHERE file, else -1. */
typedef struct lin_sniff_samples {
    int64_t at, bytes, frames;
} lin_sniff_samples;

lin_sniff_samples lin_sniff_find_samples(const lin_sniff_file *file, int64_t from);

/* Whether the first frame of the MP3 file at `from` gives its length. *at: where that frame is; *bytes: from there on, or 0. */
int lin_sniff_mpeg_length(const lin_sniff_file *file, int64_t from, int64_t *at, int64_t *bytes);

#endif
