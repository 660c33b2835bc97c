/*
 * context.h - phrases that are likely in the current situation (names, commands, titles) get a bonus in a search.
 *
 * Pipeline: phrases as tokens (phones for decoder/beam, words for decoder/words) -> [this] -> the search queries it at every
 * token. The automaton of Aho and Corasick (1975) over all phrases. A sequence of tokens gets the bonus of every occurrence of a
 * phrase in it, also of overlapping and nested ones. Every token of an unfinished phrase adds its share (b / length) of the
 * phrase with the largest pending bonus, at most 6 in all, and if the phrase fails, its pending bonus is taken back. So a search
 * has the bonus early, and in the end only complete phrases count: at any time the sum is that of the complete phrases plus the
 * pending bonus of the automaton's state. A negative bonus counts only at the end of its phrase.
 *
 *   lin_context_create(phrases, n, &context, &err);
 *   state = 0;
 *   bonus = lin_context_next(context, &state, token);
 *   bonus = lin_context_finish(context, &state);              // takes back the pending bonus of an unfinished phrase
 *   lin_context_destroy(context);
 *
 * A word search has phrases of words: words of the lexicon, or new words with their pronunciation, which can be recognised while
 * the context is in use.
 *
 *   lin_word_context_create(tree, phrases, n, g2p, &context, &err);
 *   lin_words_push(words, state, context, ...);               // it may change, or be NULL, at any push
 *   lin_word_context_destroy(context);                        // after the last push with it
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_DECODER_CONTEXT_H
#define LIN_DECODER_CONTEXT_H

#include <stdint.h>

#include "base/status.h"
#include "lexicon/g2p.h"
#include "lexicon/tree.h"

typedef struct lin_context lin_context;

typedef struct lin_context_phrase {
    const int *tokens; /* from 0 on */
    int n;
    double bonus; /* natural logarithm, for the whole phrase */
} lin_context_phrase;

/*
 * If a phrase is given twice, the larger bonus counts. The arguments are not kept; n = 0 is valid. LIN_INVALID, naming the phrase
 * counted from 1, for an empty one, a token below 0, a bonus that is NaN or beyond LIN_CONTEXT_BONUS_MAX either way;
 * LIN_NO_MEMORY. On failure *context is NULL.
 */
#define LIN_CONTEXT_BONUS_MAX 100.0
lin_status lin_context_create(const lin_context_phrase *phrases, int n, lin_context **context, lin_error *err);
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

/* ---- phrases of words ------------------------------------------------------------------------------------------------------ */

typedef linnet_phrase lin_word_phrase; /* its words separated by spaces, the bonus for the whole */

/* Its parts are for decoder/words. Words outside the lexicon get a pronunciation from the g2p; their numbers follow those of the
 * lexicon. */
typedef struct lin_word_context {
    lin_context *phrases; /* as word numbers */
    lin_tree *extra;      /* words outside the lexicon; may have none */
    int first;            /* number of its first word: they follow the lexicon's */
    uint64_t id;          /* of phrases and pronunciations; never 0 */
} lin_word_context;

/* g2p may be NULL: then a word outside the lexicon is LIN_INVALID, naming it. Phrases and g2p are not kept; the tree must
 * outlive the context. */
lin_status lin_word_context_create(const lin_tree *tree, const lin_word_phrase *phrases, int n, lin_g2p *g2p,
                                   lin_word_context **context, lin_error *err);
void lin_word_context_destroy(lin_word_context *context); /* NULL is fine */

#endif
