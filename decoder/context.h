/*
 * context.h - phrases that are likely in the current situation (names, commands, titles) get a bonus in a search.
 *
 * Pipeline: phrases as tokens (phones for decoder/beam, words for decoder/words) -> [this] -> the search queries it at every
 * token. The automaton of Aho and Corasick (1975) over all phrases. A sequence of tokens gets the bonus of every occurrence of a
 * phrase in it, also of overlapping and nested ones. Every token of an unfinished phrase adds its share (b / length) of the
 * phrase with the largest pending bonus, and if the phrase fails, its pending bonus is taken back. So a search has the bonus
 * early, and in the end only complete phrases count: at any time the sum is that of the complete phrases plus the pending bonus
 * of the automaton's state.
 *
 *   lin_context_create(phrases, lengths, bonuses, n, &context, &err);
 *   state = 0;
 *   bonus = lin_context_next(context, &state, token);
 *   bonus = lin_context_finish(context, &state);              // takes back the pending bonus of an unfinished phrase
 *   lin_context_destroy(context);
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_DECODER_CONTEXT_H
#define LIN_DECODER_CONTEXT_H

#include <stdint.h>

#include "base/status.h"

typedef struct lin_context lin_context;

/*
 * phrases[i] [lengths[i]]: tokens from 0 on. bonuses[i]: natural logarithm, for the whole phrase; a negative value makes a phrase
 * less likely, and each token then subtracts its share. If a phrase is given twice, the larger bonus counts. The arguments are
 * not kept; n = 0 is valid. LIN_INVALID, naming the phrase counted from 1, for an empty one, a token below 0, a bonus that is NaN
 * or beyond LIN_CONTEXT_BONUS_MAX either way; LIN_NO_MEMORY. On failure *context is NULL.
 */
#define LIN_CONTEXT_BONUS_MAX 100.0
lin_status lin_context_create(const int *const *phrases, const int *lengths, const double *bonuses, int n, lin_context **context,
                              lin_error *err);
void lin_context_destroy(lin_context *context); /* NULL is fine */

/* Moves *state (0: nothing matched) by one token and returns the bonus, natural logarithm, negative if one is taken back. A
 * state that is out of range counts as 0. Bonuses given and taken back cancel exactly. */
float lin_context_next(const lin_context *context, int *state, int token);

/* Ends the sequence: *state = 0; returns minus the pending bonus. */
float lin_context_finish(const lin_context *context, int *state);

/* The pending bonus of a state, which lin_context_finish would take back. */
float lin_context_pending(const lin_context *context, int state);

/* A hash of phrases and bonuses, by which a search detects another context. Never 0. */
uint64_t lin_context_id(const lin_context *context);

#endif
