/*
 * dataset.h - a feature cache: the features and labels of a set of utterances in one compact, portable file.
 *
 * Pipeline: frontend/fbank, lexicon -> [writer]    [reader] -> train/batches -> train/train. Training needs no audio library.
 * A value takes 8 bits: per utterance and mel bin a minimum and a step in half precision, and one byte per frame. The error is at
 * most half a step, about 1/510 of that bin's range in that utterance. 16 hours at 100 frames of 40 values per second take 231
 * MB.
 *
 *   lin_dataset_create("train.lds", 40, &features, phones, "corpus/train_native", &writer, &err);
 *   for each utterance: lin_dataset_add(writer, id, speaker, fbank, T, labels, U, &err);
 *   lin_dataset_finish(writer, &err);                             or lin_dataset_abort(writer)
 *
 * A set may hold sequences of tokens instead, each token with a target (or none), for a network of tokens (model/config.h):
 *
 *   lin_dataset_create_tokens("train.lds", 256, names, "images", &writer, &err);
 *   for each sequence: lin_dataset_add_tokens(writer, id, tokens, targets, T, &err);
 *
 *   lin_dataset_open("train.lds", &set, &err);
 *   lin_dataset_features(set, i, x);                              x [set->utterances[i].frames, D]
 *   lin_dataset_close(set);
 *
 * File, little-endian. In a set of tokens D is 1, or 2 with more than 256 different ones: the number of a token, low byte first,
 * with minimum 0 and steps 1 and 256; each frame has one label, its target.
 *   header     lin_dataset_header
 *   body       the codes of all utterances, [frames, D] bytes each, concatenated
 *   tail       u64 hash of the body (chained over utterances)
 *              index     per utterance a lin_dataset_entry
 *              steps     per utterance: half minimum [D], half step [D]; a value is minimum + step * code
 *              labels    of all utterances, one byte each if V <= 256, else u16; of tokens: the target + 1, 0 for none, one byte
 *                        if V <= 255
 *              sums      f64 sum [D], f64 sum of squares [D] of all frames
 *              speakers  each: u32 offset of its name, u32 0, u64 frames, f64 sum [D], f64 sum of squares [D]
 *              names     strings, each with its NUL: phones, source, then names of utterances and speakers
 * Checksums cover every byte. Opening verifies them (6 GB/s), and that every offset, label and step is in range.
 * Threads: an open set may be shared; a writer belongs to one thread.
 */
#ifndef LIN_TRAIN_DATASET_H
#define LIN_TRAIN_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/status.h"
#include "model/model.h"

typedef struct lin_dataset_writer lin_dataset_writer;

enum { LIN_DATASET_NAME = 255 }; /* bytes of the longest name */

/* ---- writing: to a temporary name, renamed by finish ----------------------------------------------------------------------- */

/*
 *   phones  as in lin_model_create: V names, blank first
 *   source  where the utterances come from, for human readers; may be ""
 */
lin_status lin_dataset_create(const char *path, int mel_bins, const lin_features *features, const char *phones,
                              const char *source, lin_dataset_writer **writer, lin_error *err);

/*
 * Adds one utterance. features [T, D], T >= 1; labels [U], 1..V-1, U >= 0; id and speaker at most LIN_DATASET_NAME bytes, id not
 * yet in the set. LIN_INVALID, LIN_NUMERIC (NaN, infinity, or beyond +-60000): this utterance was not added; the writer can still
 * be used. LIN_IO, LIN_NO_MEMORY: nothing more can be added.
 */
lin_status lin_dataset_add(lin_dataset_writer *writer, const char *id, const char *speaker, const float *features, int T,
                           const int *labels, int U, lin_error *err);

/*
 * Creates a cache of sequences of tokens.
 *   tokens   the number of different ones, 1..65536
 *   symbols  names of the V values that a target can have, 2..65535, as in lin_model_create
 * Add: tokens [T], each 0..tokens-1; targets [T], each 0..V-1, or -1 for a row that does not count.
 */
lin_status lin_dataset_create_tokens(const char *path, int tokens, const char *symbols, const char *source,
                                     lin_dataset_writer **writer, lin_error *err);
lin_status lin_dataset_add_tokens(lin_dataset_writer *writer, const char *id, const int *tokens, const int *targets, int T,
                                  lin_error *err);

/* Both free the writer. After abort or a failed finish, an existing file at the path is unchanged. Abort accepts NULL. */
lin_status lin_dataset_finish(lin_dataset_writer *writer, lin_error *err);
void lin_dataset_abort(lin_dataset_writer *writer);

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

typedef struct lin_dataset_utterance {
    const char *id;
    int frames;                 /* T >= 1 */
    int speaker;                /* index */
    int n_labels;
    const int *labels;          /* [n_labels]; of tokens [T], -1 for none */
    const unsigned char *codes; /* [T, D], in the body */
} lin_dataset_utterance;

/* An open set, for reading. It owns all that it points to. */
typedef struct lin_dataset {
    char *path;
    const char *source, *phones; /* phones: names separated by spaces, blank first */
    lin_features features;
    int D, V;
    int tokens; /* number of different tokens; 0: it holds features */
    int count;  /* utterances */
    int n_speakers;
    int64_t total_frames, total_labels;
    lin_dataset_utterance *utterances;
    const unsigned char *body; /* the codes of all utterances [total_frames, D] */
    /* for dataset.c */
    lin_file_map map; /* size 0 if the caller owns the bytes */
    const unsigned char *steps, *label_bytes, *sums, *speakers;
    uint64_t body_hash;
    const char *names;
    size_t n_names; /* bytes */
    int *labels;
} lin_dataset;

lin_status lin_dataset_open(const char *path, lin_dataset **set, lin_error *err);
/* From memory, which must outlive the set; name replaces the path in messages. */
lin_status lin_dataset_open_memory(const void *bytes, size_t n_bytes, const char *name, lin_dataset **set, lin_error *err);
void lin_dataset_close(lin_dataset *set);

/* Verifies the checksum of the features again: LIN_FORMAT if the mapped file has changed since it was opened. About 6 GB/s. */
lin_status lin_dataset_verify(const lin_dataset *set, lin_error *err);

/* A 64-bit hash of the training data: features and labels, independent of names. */
uint64_t lin_dataset_fingerprint(const lin_dataset *set);

/* The minimum and the step of each bin of utterance i, steps [2, D]: a feature is minimum + step * code. */
void lin_dataset_steps(const lin_dataset *set, int i, float *steps);

/* Writes the features of utterance i to out [T, D]. The trainer uploads the codes instead; this is for programs that inspect a
 * cache. */
void lin_dataset_features(const lin_dataset *set, int i, float *out);

/* Speakers 0 <= s < n_speakers: name, and the mean and 1 / standard deviation [D] of that speaker's frames. */
const char *lin_dataset_speaker_name(const lin_dataset *set, int s);
void lin_dataset_speaker_norm(const lin_dataset *set, int s, float *mean, float *istd);

/*
 * Mean and 1 / standard deviation [D] over all frames of all n_sets sets, summed in double. LIN_MISMATCH, naming both files, if
 * the sets differ in D, feature parameters or phones.
 */
lin_status lin_dataset_norm(const lin_dataset *const *sets, int n_sets, float *mean, float *istd, lin_error *err);

/* ---- the bytes of the file, for dataset.c and its tests -------------------------------------------------------------------- */

#define LIN_DATASET_MAGIC "LINNETDS"
enum { LIN_DATASET_VERSION = 1 };

typedef struct lin_dataset_header {
    char magic[8];
    uint32_t version, D, V, sample_hz;
    double window_ms, hop_ms, low_hz, high_hz, preemphasis;
    uint64_t count, frames, labels;
    uint32_t speakers, tokens;
    uint64_t tail, tail_bytes, tail_hash; /* tail: its offset */
    uint64_t header_hash;                 /* of what is before it */
} lin_dataset_header;
_Static_assert(sizeof(lin_dataset_header) == 128, "the layout of the file");

typedef struct lin_dataset_entry {
    uint32_t frames, labels, speaker, name; /* name: its offset */
} lin_dataset_entry;

#endif
