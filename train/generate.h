/*
 * generate.h - draws sequences from a causal network of tokens, many at once, each token from the network's distribution given
 * those before it (Katharopoulos et al. 2020, section 4.2 and supplement C).
 *
 *   lin_generator_create(encoder, &options, n, length, &generator, &err);
 *   lin_generator_run(generator, tokens, given, length, &err);              // tokens [n, length]: those after `given` are drawn
 *   lin_generator_destroy(generator);
 *
 * A network that can stream keeps a state for each sequence, so a token costs one row. The state has constant size with linear
 * attention or an LSTM, and grows with softmax attention (keys and values). Other networks, or all with `again`, recompute all
 * earlier rows for each token, as the paper timed softmax and LSH.
 * A token is the number of its value: the index of a softmax output, or 0..255 of a mixture; the network has at least so many.
 * Draws depend on the seed, the number of the sequence and the position in it: on a CPU the same bits for any n and any number of
 * threads. Threads: one at a time. The encoder must outlive the generator.
 */
#ifndef LIN_TRAIN_GENERATE_H
#define LIN_TRAIN_GENERATE_H

#include "model/encoder.h"

typedef struct lin_generator lin_generator;

typedef struct lin_generate_options {
    uint64_t seed;
    uint64_t first; /* number of the first sequence */
    int again;      /* 1: recompute all rows for each token, even if a state could be kept */
    int threads;    /* 0: one per core */
    int (*stop)(void *context, int done); /* called after each token, may be NULL; not 0: end with LIN_STOPPED */
    void *context;
} lin_generate_options;

/* n sequences of at most `length` tokens. LIN_UNSUPPORTED for a network that is not causal or has no tokens; LIN_NO_MEMORY. */
lin_status lin_generator_create(const lin_encoder *encoder, const lin_generate_options *options, int n, int length,
                                lin_generator **generator, lin_error *err);
void lin_generator_destroy(lin_generator *generator);

/*
 * Draws tokens given .. until-1 of each sequence after its first `given` >= 1 tokens. tokens [n, length]. A run with given = the
 * last run's until continues it; any other begins anew. LIN_INVALID for numbers out of range or a token that the network does
 * not have.
 */
lin_status lin_generator_run(lin_generator *generator, int *tokens, int given, int until, lin_error *err);

#endif
