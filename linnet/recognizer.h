/*
 * recognizer.h - an opened model: its encoder on a device, its phones, its filterbank. And what makes frames for it: whole files,
 * divided into utterances, and the frames of another model.
 *
 * Pipeline: model file -> [this] -> linnet/stream, linnet/files, linnet/engine.
 *
 *   lin_recognizer r;
 *   lin_recognizer_open(&r, NULL, "auto", LIN_PRECISION_FP32, &warnings, &err);
 *   ... sessions ...
 *   lin_recognizer_close(&r);
 *
 * frontend/ and model/ do not include each other, and both describe the same filterbank: this is the bridge between them.
 * Threads: immutable once open, shared by all threads.
 */
#ifndef LIN_LINNET_RECOGNIZER_H
#define LIN_LINNET_RECOGNIZER_H

#include <signal.h>

#include "frontend/source.h"
#include "lexicon/phones.h"
#include "model/encoder.h"

typedef struct lin_recognizer {
    lin_model *model;
    lin_encoder *encoder;
    lin_phones *phones;
    lin_fbank_config fbank; /* of the model, and dereverb, which may be changed after opening */
    int streams;           /* 1: causal, in constant memory; 0: whole utterances (also where normalised by speaker) */
    int forgets;           /* 1: the past fades in its sums (decays), so that a stream without end needs no resets */
    double row_seconds;    /* from one row to the next */
    double delay_s;        /* the model's emission delay */
    int V;
    lin_warnings warnings;
    /* Checked while files are processed: if not 0, they end with LIN_STOPPED. NULL after opening; may be set. */
    const volatile sig_atomic_t *stop;
    /* Checked by second passes with this model: if not 0, the results of the first pass stay. As `stop`. */
    const volatile sig_atomic_t *skip;
} lin_recognizer;

/* path: NULL for the default model (find.h). warnings: NULL for none. device, precision: of lin_backend_open;
 * LIN_PRECISION_AUTO: int8 on a CPU if the file has weights in eight bits, else fp32. On failure everything is closed. */
lin_status lin_recognizer_open(lin_recognizer *recognizer, const char *path, const char *device, lin_precision precision,
                               const lin_warnings *warnings, lin_error *err);
/* Opens a recogniser with a model file in memory, which may be freed afterwards. */
lin_status lin_recognizer_open_memory(lin_recognizer *recognizer, const void *bytes, size_t n, const char *device,
                                      lin_precision precision, const lin_warnings *warnings, lin_error *err);
void lin_recognizer_close(lin_recognizer *recognizer);

/* A model and its encoder on a device, as a recogniser and a network of tokens (linnet/judges.h) have them: the file `path`, or,
 * if bytes are not NULL, n bytes in memory that messages call `path`. device, precision: as above. On failure both are NULL. */
lin_status lin_recognizer_open_encoder(const char *path, const void *bytes, size_t n, const char *device,
                                       lin_precision precision, lin_model **model, lin_encoder **encoder, lin_error *err);

/* ---- frames of whole files ------------------------------------------------------------------------------------------------- */

/* A part of a sound, in seconds: 0 and infinity are all of it. */
typedef struct lin_part {
    double start_s, end_s;
} lin_part;

/* A piece of sound, as lists of recordings name it. */
typedef struct lin_cut {
    const char *path;
    int is_command; /* path is a command of the shell that writes the sound (lin_audio_open_command) */
    int channel;    /* of a sound with several, counted from 1; 0: as the caller likes */
    lin_part part;  /* end_s 0: to its end */
} lin_cut;

static inline int lin_cut_is_part(const lin_cut *cut) { return cut->part.start_s > 0 || cut->part.end_s > 0; }

/* Converts one description into the other. */
lin_fbank_config lin_fbank_from_model(const lin_features *features, int mel_bins);
lin_features lin_fbank_to_model(const lin_fbank_config *config);

typedef struct lin_matrix {
    float *data; /* [rows, columns] */
    int rows, columns, capacity;
} lin_matrix;

/* All frames of a cut, one lane; room is reused and grows. The cut's channel replaces that of the options.
 * format (may be NULL) receives the source's, with its warning. */
lin_status lin_cut_read(const lin_cut *cut, const lin_feature_options *options, lin_matrix *frames, lin_audio_format *format,
                        lin_error *err);
/* Rows [n, columns]. LIN_UNSUPPORTED: more than INT_MAX in all. */
lin_status lin_matrix_append(lin_matrix *matrix, const float *rows, int n, int columns, lin_error *err);
void lin_matrix_free(lin_matrix *matrix);

/*
 * Divides a long sound for a model that needs whole utterances: the number of frames of the next one, from frames [n, D],
 * log-mel, one every hop_ms. All n if they last at most 36 s, the longest utterance that models are trained on; else the sound is
 * cut at the first pause after 4 s, else at the quietest place up to 36 s, at a multiple of `stack` frames. A pause: 0.5 s whose
 * mean is in the lowest fifth between the quietest and the loudest 0.5 s; it is cut in the middle of its quietest 0.5 s.
 */
int lin_next_utterance(const float *frames, int n, int D, double hop_ms, int stack);

/* ---- a second network ------------------------------------------------------------------------------------------------------ */

/*
 * Another network over the frames of utterances that a recogniser has made for its own. Both models have the same features,
 * phones and frames of a step. Their hops may differ: frames between those of the first are interpolated. Rows do not depend on
 * what came before the utterance. Threads: one at a time per object.
 */
typedef struct lin_second_network lin_second_network;

/*
 * second must outlive the object. n_threads work together; 0: one per core. language: as in lin_worker.search. LIN_MISMATCH if
 * the models differ in features other than the hop, phones or frames of a step; LIN_UNSUPPORTED for a model that is
 * normalised by speaker. On failure *network is NULL.
 */
lin_status lin_second_network_create(const lin_recognizer *first, const lin_recognizer *second, int n_threads, int language,
                                     lin_second_network **network, lin_error *err);
/* NULL is allowed. */
void lin_second_network_destroy(lin_second_network *network);

/* Takes rows [n, V] of log-probabilities. If it does not return LIN_OK the run ends with its status. */
typedef lin_status (*lin_rows_taker)(void *context, const float *logp, int n, lin_error *err);

/* frames [n, D], unnormalised, at the first model's hop, of one utterance; one that is longer than models are trained on is cut
 * at pauses (lin_next_utterance). */
lin_status lin_second_network_run(lin_second_network *network, const float *frames, int n, lin_rows_taker take, void *context,
                                  lin_error *err);

#endif
