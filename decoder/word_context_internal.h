/*
 * word_context_internal.h - the parts of a context that decoder/words uses: the phrases as word numbers, and a tree of the words
 * outside the lexicon, whose numbers follow the lexicon's.
 */
#ifndef LIN_DECODER_WORD_CONTEXT_INTERNAL_H
#define LIN_DECODER_WORD_CONTEXT_INTERNAL_H

#include <stdint.h>

#include "decoder/context.h"
#include "decoder/word_context.h"

struct lin_word_context {
    lin_context *phrases;
    lin_tree *extra; // may have no words
    int first;       // number of its first word
    uint64_t id;     // of phrases and pronunciations; never 0
};

#endif
