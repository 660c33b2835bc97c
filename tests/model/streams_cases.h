/*
 * streams_cases.h - tests of streams.h for any backend: many streams in random batches against whole utterances on the
 * CPU.
 */
#ifndef LIN_TESTS_STREAMS_CASES_H
#define LIN_TESTS_STREAMS_CASES_H

#include "decoder/search.h"
#include "model/streams.h"
#include "tests/model/networks.h"
#include "tests/model/one_stream.h"

enum { STREAMS_D = 7, STREAMS_V = 5, STREAMS_N = 11, STREAMS_LONGEST = 5, STREAMS_FRAMES = 37 };

/* Networks with states of every kind, those of paper/ last; softmax attention has a cache, and runs one stream at a time. */
typedef enum streams_kind { STREAMS_LINEAR, STREAMS_DECAY, STREAMS_SINUSOID, STREAMS_POLY2, STREAMS_LSTM,
                            STREAMS_SOFTMAX } streams_kind;
enum { STREAMS_KINDS = TEST_PAPER ? STREAMS_SOFTMAX : STREAMS_POLY2 };

typedef struct streams_world {
    lin_model *model;
    lin_encoder *cpu, *encoder; // the reference, and that of the backend under test
    float features[STREAMS_N][STREAMS_FRAMES * STREAMS_D];
    float want[STREAMS_N][STREAMS_FRAMES * STREAMS_V]; // each as a whole, on the CPU
    int rows[STREAMS_N], bits; // bits: results must have the same bits
} streams_world;

/* An LSTM, or a network with sinusoids, has no convolutions. */
void streams_begin(streams_world *w, const lin_ops *ops, int stack, int ahead, int conv_layers, streams_kind kind);

void streams_end(streams_world *w);

void streams_judge(const streams_world *w, const char *what, const float *got, const float *want, int n);

/* The progress of one speaker in the streams. */
typedef struct streams_speaker {
    int slot, fed, rows, n_phones, done;
    lin_phone phones[STREAMS_FRAMES + 1];
} streams_speaker;

/* A tick in which each of a random choice of speakers adds a random number of frames; rows and phones are checked or recorded. */
void streams_random_tick(streams_world *w, lin_streams *streams, streams_speaker *speakers, int n_speakers, uint64_t key);

/* Random batches and amounts: rows equal to those of whole utterances; in passes of `batch` streams. */
void streams_case_company(const lin_ops *ops, int stack, int ahead, int conv_layers, streams_kind kind, int batch);

/* Phones equal to those of decoder/search.h on these rows. */
void streams_case_phones(const lin_ops *ops, streams_kind kind);

/* Moved to a lin_streams on the CPU, to another slot, and back: all continue with the same results. */
void streams_case_moved(const lin_ops *ops, streams_kind kind);

#endif
