/*
 * generate.h - sequences from a causal network of tokens, many at once: each next token is drawn from what the network says after
 * those before it (Katharopoulos et al. 2020, section 4.2 and supplement C).
 *
 *   lin_generator_create(encoder, &options, n, length, &generator, &err);
 *   lin_generator_run(generator, tokens, given, length, &err);              // tokens [n, length]: those after `given` are drawn
 *   lin_generator_destroy(generator);
 *
 * A network that can stream keeps a state for each sequence, of constant size with linear attention or an LSTM, and growing with
 * softmax attention (keys and values); so a token costs one row. Another one, or any with `again`, computes all rows before a
 * token again for each, as the paper timed softmax and LSH.
 * The token of a value is its number: of a softmax the output, of a mixture 0..255; the network has at least so many tokens.
 * What is drawn depends on the seed, the number of the sequence and the place in it: on a CPU the same bits for any n and for any
 * number of threads. Threads: one at a time. The encoder must outlive the generator.
 */
#ifndef LIN_TRAIN_GENERATE_H
#define LIN_TRAIN_GENERATE_H

#include "model/encoder.h"

typedef struct lin_generator lin_generator;

typedef struct lin_generate_options {
    uint64_t seed;
    uint64_t first;     /* number of the first sequence */
    double temperature; /* 1: the network's own distribution; below, likelier tokens; 0: the likeliest (of a mixture: of its
                           likeliest logistic the mean) */
    int again;          /* 1: all rows again for each token, also where a state would do */
    int threads;        /* 0: one per core */
    int (*stop)(void *context, int done); /* may be NULL; after each token: not 0 ends with LIN_STOPPED */
    void *context;
} lin_generate_options;

/* n sequences of at most `length` tokens. LIN_UNSUPPORTED for a network that is not causal or has no tokens; LIN_NO_MEMORY. */
lin_status lin_generator_create(const lin_encoder *encoder, const lin_generate_options *options, int n, int length,
                                lin_generator **generator, lin_error *err);
void lin_generator_destroy(lin_generator *generator);

/*
 * Draws tokens given .. until-1 of each sequence after its first `given`, at least 1. tokens [n, length]. A run may go on where
 * the last one ended (given = its until); any other begins anew. LIN_INVALID for numbers out of range or a token that the network
 * does not have.
 */
lin_status lin_generator_run(lin_generator *generator, int *tokens, int given, int until, lin_error *err);

#endif
