/*
 * word_context.h - phrases of words with a bonus, for decoder/words: in the lexicon, or brought with their pronunciation.
 *
 *   lin_word_context_create(tree, phrases, n, g2p, &context, &err);
 *   lin_words_push(words, state, context, ...);                     // another one, or NULL, at any push
 *   lin_word_context_destroy(context);                              // when no state that has seen it is pushed with it again
 *
 * Words that the lexicon lacks get a pronunciation from the g2p and can be recognised while the context is in use; their numbers
 * follow those of the lexicon. Threads: immutable once made, shared by all.
 */
#ifndef LIN_DECODER_WORD_CONTEXT_H
#define LIN_DECODER_WORD_CONTEXT_H

#include "base/status.h"
#include "decoder/context.h"
#include "lexicon/g2p.h"
#include "lexicon/tree.h"

typedef struct lin_word_phrase {
    const char *text; /* words separated by spaces */
    double bonus;     /* for the whole phrase, natural logarithm */
} lin_word_phrase;

typedef struct lin_word_context lin_word_context;

/* g2p may be NULL: then a word outside the lexicon is LIN_INVALID, naming it. Nothing is kept of phrases and g2p; the tree must
 * outlive the context. */
lin_status lin_word_context_create(const lin_tree *tree, const lin_word_phrase *phrases, int n, lin_g2p *g2p,
                                   lin_word_context **context, lin_error *err);
void lin_word_context_destroy(lin_word_context *context); /* NULL is fine */

#endif
