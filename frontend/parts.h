/*
 * parts.h - where a sound file ends by its own structure: recordings that were joined (`cat a.opus b.opus`, a browser's recorder
 * that was started again) are several whole files, one after another, and most readers stop after the first without a word.
 *
 * Pipeline: an open file -> [this] -> frontend/audio, which reads one part after the other. Only structure is read: chunks,
 * boxes, pages; a few formats without lengths are searched for the signature of another file.
 *
 *   lin_part_file file = {fd, base, size};
 *   end = lin_part_end(&file, 0, &facts);
 *   next = lin_part_next(&file, end);     // == size: nothing but tags and padding is left
 *
 * Offsets count from `base`. Threads: any.
 */
#ifndef LIN_FRONTEND_PARTS_H
#define LIN_FRONTEND_PARTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct lin_part_file {
    int fd;
    int64_t base, size;
} lin_part_file;

/* What the structure says besides. promised: the bytes of samples that a header gives, -1: it gives none, or says that they are
 * not known; present: those up to the end of the file; unknown_at: where a CAF file has the 8 bytes that say so, else 0.
 * has_gap: pages of Ogg are missing; has_second: a chunk with more samples follows, where this part ends. */
typedef struct lin_part_facts {
    int64_t promised, present, unknown_at;
    int has_gap, has_second;
} lin_part_facts;

/* The end of the file that begins at `from`; file->size if it is the last, if its length is not declared, or if the format is not
 * known here. */
int64_t lin_part_end(const lin_part_file *file, int64_t from, lin_part_facts *facts);

/* The length of a tag (ID3v1, ID3v2, APE) or of the zeros with which these bytes begin, 0: they begin with none. */
int64_t lin_part_tag(const unsigned char *bytes, size_t n);

/* Skips tags, those of Lyrics3 too, and zeros: the first offset from `at` with something else. */
int64_t lin_part_next(const lin_part_file *file, int64_t at);

/* Whether a chunk of WAV or AIFF begins at an offset, or the file ends there. */
int lin_part_is_chunk(const lin_part_file *file, int64_t at);

/* The samples in the frames of a FLAC file that ends at `end`, by the header of the last one that is found; -1: none is. */
int64_t lin_part_flac_samples(const lin_part_file *file, int64_t from, int64_t end);

/* The begin of the next FLAC file from an offset on; file->size: there is none. lin_part_end does not look for it in files that
 * give their count of samples, so that those are opened quickly. */
int64_t lin_part_after_flac(const lin_part_file *file, int64_t from);

/* Bytes at an offset; how many there are. */
size_t lin_part_read(const lin_part_file *file, void *bytes, size_t n, int64_t offset);

/* Whether the length of samples in a header of 32 bits means: until the end of the file. 0 is not among these. */
int lin_part_is_unknown(uint32_t length);

#endif
