/*
 * token_scorer.h - log-probabilities of whole sequences by a causal network of tokens, for hypotheses that begin alike.
 *
 *   lin_token_scorer_create(encoder, &scorer, &err);
 *   lin_token_scorer_run(scorer, tokens, offsets, n, logp, &err);      // log P(all tokens after the first | the first)
 *   lin_token_scorer_destroy(scorer);
 *
 * The state of linear attention (Katharopoulos et al. 2020, eq. 16-20) and of an LSTM has a constant size. So common prefixes are
 * computed once, and the state is copied where sequences branch: the cost is that of the prefix tree. A network without such a
 * state computes each sequence whole. The bits are those of lin_encoder_run on each sequence alone, with any other sequences and
 * any number of threads.
 * Memory: a state for each sequence. Threads: one at a time. The encoder, of a backend on the host, must outlive the scorer.
 */
#ifndef LIN_MODEL_TOKEN_SCORER_H
#define LIN_MODEL_TOKEN_SCORER_H

#include "model/encoder.h"

typedef struct lin_token_scorer lin_token_scorer;

/* LIN_UNSUPPORTED for a network that is not causal, has no tokens or no softmax over them, and for a backend that is not on the
 * host; LIN_NO_MEMORY. On failure *scorer is NULL. */
lin_status lin_token_scorer_create(const lin_encoder *encoder, lin_token_scorer **scorer, lin_error *err);
void lin_token_scorer_destroy(lin_token_scorer *scorer); /* NULL is fine */

/*
 * Sequence i has the tokens offsets[i] .. offsets[i+1]-1, which are at least one; logp [n], natural logarithms: 0 of a single
 * token. LIN_INVALID, naming it, for a token that the network does not have or cannot put out; LIN_NO_MEMORY.
 */
lin_status lin_token_scorer_run(lin_token_scorer *scorer, const int *tokens, const int *offsets, int n, double *logp,
                                lin_error *err);

#endif
