/*
 * fuzz.h - the fuzz targets, one function each, and what they share. A target is called with any bytes; it aborts if what it
 * tests accepts nonsense, and must free all that it allocates (fuzz.c).
 */
#ifndef LIN_TESTS_FUZZ_FUZZ_H
#define LIN_TESTS_FUZZ_FUZZ_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* tests/fuzz/corpus/NAME holds the seeds of each, and make runs those that have some. */
#define FUZZ_TARGETS(X)                                                                                                          \
    X(arpa) X(audio) X(beam) X(conf) X(ctm) X(datadir) X(dataset) FUZZ_PAPER(X) X(grammar) X(json) X(lexicon) X(model)           \
    X(ngram) X(ngram_count) X(npy) X(ogg_opus) X(punctuation) X(serve) X(state) X(stm) X(sweep) X(textgrid) X(training) X(trn)   \
    X(words) X(writers) X(written)
#ifdef LIN_NO_PAPER
#define FUZZ_PAPER(X)
#else
#define FUZZ_PAPER(X) X(images)
#endif
#define FUZZ_DECLARE(name) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)

static inline void must(int condition)
{
    if (!condition) abort();
}

/* A failure has a message of one line, without control characters but tabs (lin_one_line). */
static inline void check_status(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    must(status == err->status && err->message[0]);
    for (const char *c = err->message; *c; c++) must(((unsigned char)*c >= 32 && *c != 127) || *c == '\t');
}

#endif
