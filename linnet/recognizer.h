/*
 * recognizer.h - what all sessions of a model share: the model, its encoder on a device, its phones, its filterbank.
 *
 * Pipeline: model file -> [this] -> linnet/session, linnet/file_session, linnet/engine.
 *
 *   lin_recognizer r;
 *   lin_recognizer_open(&r, NULL, "auto", LIN_PRECISION_FP32, &warnings, &err);
 *   ... sessions ...
 *   lin_recognizer_close(&r);
 *
 * Threads: immutable once open, shared by all threads.
 */
#ifndef LIN_LINNET_RECOGNIZER_H
#define LIN_LINNET_RECOGNIZER_H

#include <signal.h>

#include "lexicon/phones.h"
#include "linnet/decoding.h"
#include "linnet/front.h"
#include "linnet/warnings.h"
#include "model/encoder.h"

typedef struct lin_recognizer {
    lin_model *model;
    lin_encoder *encoder;
    lin_phones *phones;
    lin_fbank_config fbank;
    int streams;           /* 1: causal, in constant memory; 0: whole utterances (also where normalised by speaker) */
    int forgets;           /* 1: the past fades in its sums (decays), so that a stream without end needs no resets */
    double row_seconds;    /* from one row to the next */
    double delay_s;        /* the model's emission delay */
    int V;
    lin_warnings warnings;
    /* Looked at now and then by file sessions: not 0, and they end with LIN_STOPPED. NULL after opening; may be set. */
    const volatile sig_atomic_t *stop;
    /* Looked at by second passes with this model: not 0, and the results of the first pass stay. As `stop`. */
    const volatile sig_atomic_t *skip;
} lin_recognizer;

/* path: NULL for the default model (find.h). warnings: NULL for none. device, precision: of lin_backend_open;
 * LIN_PRECISION_AUTO: int8 on a CPU if the file has weights in eight bits, else fp32. On failure everything is closed. */
lin_status lin_recognizer_open(lin_recognizer *recognizer, const char *path, const char *device, lin_precision precision,
                               const lin_warnings *warnings, lin_error *err);
/* The same with a model file in memory, which may be freed afterwards. */
lin_status lin_recognizer_open_memory(lin_recognizer *recognizer, const void *bytes, size_t n, const char *device,
                                      lin_precision precision, const lin_warnings *warnings, lin_error *err);
void lin_recognizer_close(lin_recognizer *recognizer);

/* lin_decoding_open for the rows of this recognizer, which must outlive it, by the search for whole utterances if it cannot
 * stream. */
lin_status lin_recognizer_open_decoding(const lin_recognizer *recognizer, const lin_decoding_values *values,
                                        const lin_warnings *warnings, lin_decoding *decoding, lin_error *err);

#endif
