/* grammar_internal.h - the nondeterministic automaton of a grammar: grammar_reader.c makes it of text, grammar.c a deterministic
 * one of it. */
#ifndef LIN_LEXICON_GRAMMAR_INTERNAL_H
#define LIN_LEXICON_GRAMMAR_INTERNAL_H

#include "base/symbols.h"
#include "lexicon/grammar.h"

enum { LIN_NFA_EMPTY = -2, LIN_NFA_UNKNOWN = -1 };

typedef struct lin_nfa_arc {
    int32_t label;    /* a word, LIN_NFA_UNKNOWN for [unk], or LIN_NFA_EMPTY for none */
    int32_t to, next; /* the state behind it; the next arc of the same state, -1 behind the last one */
} lin_nfa_arc;

typedef struct lin_nfa {
    int32_t *states; /* [n_states] their first arcs; -1: none */
    int n_states, states_capacity;
    lin_nfa_arc *arcs;
    int n_arcs, arcs_capacity;
    lin_symbols words;
    int in, out; /* the states in which sentences begin and end */
} lin_nfa;

/* Fills an empty automaton, and takes ownership of the text. path: of the file, beside which others are read; NULL: no others
 * are. list: as in lin_grammar_parse; files: as in lin_grammar_open. The caller frees states, arcs and words, on failure too. */
lin_status lin_nfa_read(lin_nfa *nfa, const char *name, const char *path, char *text, size_t n, const lin_written *numbers,
                        lin_grammar_list *list, lin_buffer *files, lin_error *err);

static inline lin_status lin_nfa_too_large(lin_error *err)
{
    return lin_fail(err, LIN_UNSUPPORTED, "the grammar is too large: write fewer alternatives, options and numbers");
}

#endif
