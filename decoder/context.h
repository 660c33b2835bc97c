/*
 * context.h - phrases that are likely here and now, as a bonus on what a search finds: names, commands, titles.
 *
 * Pipeline: phrases as tokens (phones for decoder/beam, words for decoder/words) -> [this] -> the search asks at every token.
 * The automaton of Aho and Corasick (1975) over all phrases. A sequence of tokens earns the bonus of every occurrence of a phrase
 * in it, overlapping and nested ones too. On the way every token earns its share (b / length) of the phrase that promises most, and
 * what an unfinished phrase had earned is taken back when it fails, so a search sees the bonus early and pays for nothing that was
 * not said: at any time the sum is that of the phrases complete, plus the promise of the place in the automaton.
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

#include "base/status.h"

typedef struct lin_context lin_context;

/*
 * phrases[i] [lengths[i]]: tokens from 0 on. bonuses[i]: natural logarithm, for the whole phrase; negative values make a phrase
 * unlikely, a token then costs its share. Of a phrase given twice the larger bonus counts. Nothing is kept of the arguments; n = 0
 * is fine. LIN_INVALID, naming the phrase counted from 1, for an empty one, a token below 0, a bonus that is no number or beyond
 * LIN_CONTEXT_BONUS_MAX either way; LIN_NO_MEMORY. On failure *context is NULL.
 */
#define LIN_CONTEXT_BONUS_MAX 100.0
lin_status lin_context_create(const int *const *phrases, const int *lengths, const double *bonuses, int n, lin_context **context,
                              lin_error *err);
void lin_context_destroy(lin_context *context); /* NULL is fine */

/* Moves *state (0: nothing matched) by one token and returns the bonus, natural logarithm, negative where something is taken back.
 * A state of another context is taken for 0 where it is out of range. What is promised and taken back cancels exactly. */
float lin_context_next(const lin_context *context, int *state, int token);

/* Ends: *state = 0; returns what takes back the promise: minus what an unfinished phrase had earned. */
float lin_context_finish(const lin_context *context, int *state);

/* The promise of a state: what lin_context_finish would take back, with the other sign. */
float lin_context_pending(const lin_context *context, int state);

/* Differs between any two contexts in practice (a hash of phrases and bonuses), so that a search notices a change. Never 0. */
uint64_t lin_context_id(const lin_context *context);

#endif
