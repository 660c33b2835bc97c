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
 *   for each sequence: lin_dataset_add_tokens(writer, id, tokens, targets, T, &err);      and finish as above
 *
 *   lin_dataset_open("train.lds", &set, &err);
 *   lin_dataset_features(set, i, x);                              x [lin_dataset_frames(set, i), D]
 *   lin_dataset_close(set);
 *
 * File, little-endian: header of 128 bytes; the bytes of all utterances [T, D], concatenated; then the tail: index, steps,
 * labels, sums for normalisation, speakers, names. Checksums cover every byte. Opening verifies them (6 GB/s), and that every
 * offset, label and step is in range.
 * Threads: an open set may be shared; a writer belongs to one thread.
 */
#ifndef LIN_TRAIN_DATASET_H
#define LIN_TRAIN_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/model.h"

typedef struct lin_dataset lin_dataset;
typedef struct lin_dataset_writer lin_dataset_writer;

/* ---- writing: to a temporary name, renamed by finish ----------------------------------------------------------------------- */

/*
 *   phones  as in lin_model_create: V names, blank first
 *   source  where the utterances come from, for human readers; may be ""
 */
lin_status lin_dataset_create(const char *path, int mel_bins, const lin_features *features, const char *phones,
                              const char *source, lin_dataset_writer **writer, lin_error *err);

/*
 * Adds one utterance. features [T, D], T >= 1; labels [U], 1..V-1, U >= 0; id and speaker at most 255 bytes, id not yet in the
 * set. LIN_INVALID, LIN_NUMERIC (NaN, infinity, or beyond +-60000): this utterance was not added; the writer can still be used.
 * LIN_IO, LIN_NO_MEMORY: nothing more can be added.
 */
lin_status lin_dataset_add(lin_dataset_writer *writer, const char *id, const char *speaker, const float *features, int T,
                           const int *labels, int U, lin_error *err);

/*
 * The same for sequences of tokens.
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

lin_status lin_dataset_open(const char *path, lin_dataset **set, lin_error *err);
/* From memory, which must outlive the set; name replaces the path in messages. */
lin_status lin_dataset_open_memory(const void *bytes, size_t n_bytes, const char *name, lin_dataset **set, lin_error *err);
void lin_dataset_close(lin_dataset *set);

/* Verifies the checksum of the features again: LIN_FORMAT if the mapped file has changed since it was opened. About 6 GB/s. */
lin_status lin_dataset_verify(const lin_dataset *set, lin_error *err);

/* A 64-bit hash of the training data: features and labels, independent of names. */
uint64_t lin_dataset_fingerprint(const lin_dataset *set);

const char *lin_dataset_path(const lin_dataset *set);
const char *lin_dataset_source(const lin_dataset *set);
int lin_dataset_mel_bins(const lin_dataset *set);            /* D */
int lin_dataset_outputs(const lin_dataset *set);             /* V */
int lin_dataset_tokens(const lin_dataset *set);              /* different tokens; 0: it holds features */
const char *lin_dataset_phones(const lin_dataset *set);      /* names separated by spaces, blank first */
const lin_features *lin_dataset_feature_parameters(const lin_dataset *set);
int lin_dataset_count(const lin_dataset *set);               /* utterances */
int64_t lin_dataset_total_frames(const lin_dataset *set);
int64_t lin_dataset_total_labels(const lin_dataset *set);

/* For utterance 0 <= i < count. */
const char *lin_dataset_id(const lin_dataset *set, int i);
int lin_dataset_frames(const lin_dataset *set, int i);       /* T >= 1 */
const int *lin_dataset_labels(const lin_dataset *set, int i, int *U); /* [U], owned by the set; of tokens [T], -1 for none */
int lin_dataset_speaker(const lin_dataset *set, int i);      /* index of the speaker */

/* The stored form: the codes [T, D] of utterance i, within the block of all codes; and the minimum and step of each bin,
 * steps [2, D]. A feature is minimum + step * code. The set owns the arrays. */
const unsigned char *lin_dataset_codes(const lin_dataset *set, int i);
const unsigned char *lin_dataset_body(const lin_dataset *set, size_t *bytes);
void lin_dataset_steps(const lin_dataset *set, int i, float *steps);

/* Writes the features of utterance i to out [T, D]. Cannot fail. The trainer uploads the
 * codes instead; this is for programs that inspect a cache. */
void lin_dataset_features(const lin_dataset *set, int i, float *out);

/* Speakers 0 <= s < n_speakers: name, and the mean and 1 / standard deviation [D] of that speaker's frames. */
int lin_dataset_n_speakers(const lin_dataset *set);
const char *lin_dataset_speaker_name(const lin_dataset *set, int s);
void lin_dataset_speaker_norm(const lin_dataset *set, int s, float *mean, float *istd);

/*
 * Mean and 1 / standard deviation [D] over all frames of all n_sets sets, summed in double. LIN_MISMATCH, naming both files, if
 * the sets differ in D, feature parameters or phones.
 */
lin_status lin_dataset_norm(const lin_dataset *const *sets, int n_sets, float *mean, float *istd, lin_error *err);

#endif
