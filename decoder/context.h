/*
 * context.h - phrases that are likely here and now, as a bonus on what a search finds: names, commands, titles.
 *
 * Pipeline: phrases as tokens (phones for decoder/beam, words for decoder/words) -> [this] -> the search asks at every token.
 * The automaton of Aho and Corasick (1975) over all phrases. Every token of a phrase earns its share of the phrase's bonus as it is
 * matched; what an unfinished phrase had earned is taken back when it fails, so a search sees the bonus early and pays for nothing
 * that was not said.
 *
 *   lin_context_create(phrases, lengths, bonuses, n, &context, &err);
 *   state = 0;
 *   bonus = lin_context_next(context, &state, token);
 *   bonus = lin_context_finish(context, &state);              // takes back what was earned by a phrase that is not complete
 *   lin_context_destroy(context);
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_DECODER_CONTEXT_H
#define LIN_DECODER_CONTEXT_H

#include <stdint.h>

#include "kernels/status.h"

typedef struct lin_context lin_context;

/*
 * phrases[i] [lengths[i]]: tokens from 0 on. bonuses[i]: natural logarithm, for the whole phrase, each token earning an equal share;
 * negative values make a phrase unlikely. Of a phrase given twice the larger bonus counts. n = 0 is fine. LIN_INVALID for an empty
 * phrase, a token below 0, a bonus that is not finite; LIN_NO_MEMORY.
 */
lin_status lin_context_create(const int *const *phrases, const int *lengths, const double *bonuses, int n, lin_context **context,
                              lin_error *err);
void lin_context_destroy(lin_context *context); /* NULL is fine */

/* Moves *state (0: nothing matched) by one token and returns the bonus, natural logarithm, negative where something is taken back. */
float lin_context_next(const lin_context *context, int *state, int token);

/* Ends: *state = 0; the bonus, 0 or negative where what an unfinished phrase earned is taken back (opposite for negative bonuses). */
float lin_context_finish(const lin_context *context, int *state);

/* Differs between any two contexts in practice (a hash of phrases and bonuses), so that a search notices a change. Never 0. */
uint64_t lin_context_id(const lin_context *context);

int lin_context_states(const lin_context *context);

#endif
