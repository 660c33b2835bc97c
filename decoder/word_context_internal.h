/*
 * word_context_internal.h - what decoder/words sees of a context: the phrases as word numbers, and a tree of the words that the
 * lexicon lacks, whose numbers follow the lexicon's.
 */
#ifndef LIN_DECODER_WORD_CONTEXT_INTERNAL_H
#define LIN_DECODER_WORD_CONTEXT_INTERNAL_H

#include <stdint.h>

#include "decoder/context.h"
#include "decoder/word_context.h"

struct lin_word_context {
    lin_context *phrases;
    lin_tree *extra; // maybe without any word
    int first;       // number of its first word
    uint64_t id;     // of phrases and pronunciations; never 0
};

#endif
