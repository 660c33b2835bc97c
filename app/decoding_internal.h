/* decoding_internal.h - what app/decoding.c and app/decoding_open.c share. */
#ifndef LIN_APP_DECODING_INTERNAL_H
#define LIN_APP_DECODING_INTERNAL_H

#include "app/decoding.h"

/* Options of which it matters whether they were given: bits of lin_decoding_values.given. */
typedef enum lin_given {
    LIN_GIVEN_BEAM,
    LIN_GIVEN_SCORE,
    LIN_GIVEN_LABELS,
    LIN_GIVEN_BLANK,
    LIN_GIVEN_LM,
    LIN_GIVEN_NO_LM,
    LIN_GIVEN_LM_WEIGHT,
    LIN_GIVEN_BONUS,
    LIN_GIVEN_LEXICON,
    LIN_GIVEN_UNKNOWN,
    LIN_GIVEN_NO_UNKNOWN,
    LIN_GIVEN_ALL_WORDS,
    LIN_GIVEN_CONTEXT,
    LIN_GIVEN_PHRASE,
    LIN_GIVEN_CONTEXT_BONUS,
    LIN_GIVEN_COUNT
} lin_given;

lin_search_kind lin_decoding_kind(const lin_decoding_values *values);
lin_beam_options lin_decoding_beam_options(const lin_decoding_values *values);
lin_words_options lin_decoding_words_options(const lin_decoding_values *values);

#endif
