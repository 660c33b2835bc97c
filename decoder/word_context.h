/*
 * word_context.h - phrases of words with a bonus, for decoder/words: words of the lexicon, or new words with their pronunciation.
 *
 *   lin_word_context_create(tree, phrases, n, g2p, &context, &err);
 *   lin_words_push(words, state, context, ...);                     // it may change, or be NULL, at any push
 *   lin_word_context_destroy(context);                              // after the last push with it
 *
 * Words outside the lexicon get a pronunciation from the g2p and can be recognised while the context is in use; their numbers
 * follow those of the lexicon. Threads: immutable once made, shared by all.
 */
#ifndef LIN_DECODER_WORD_CONTEXT_H
#define LIN_DECODER_WORD_CONTEXT_H

#include <stdint.h>

#include "base/status.h"
#include "decoder/context.h"
#include "lexicon/g2p.h"
#include "lexicon/tree.h"

typedef struct lin_word_phrase {
    const char *text; /* words separated by spaces */
    double bonus;     /* for the whole phrase, natural logarithm */
} lin_word_phrase;

/* Its parts are for decoder/words. */
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
