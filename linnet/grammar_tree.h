/*
 * grammar_tree.h - a grammar from its text, and the tree of its words' pronunciations, for a word search.
 *
 * Pipeline: options -> [this: lexicon/grammar, linnet/pronounce, lexicon/tree] -> linnet/decoding.
 */
#ifndef LIN_LINNET_GRAMMAR_TREE_H
#define LIN_LINNET_GRAMMAR_TREE_H

#include "linnet/decoding.h"

/*
 * given: the name of a file, or, if it has a line feed, the text of a grammar itself. repeats: as of lin_grammar_parse. Words
 * outside the lexicon are pronounced by rule. Both are the caller's; the grammar is bound to the tree. Errors of
 * lin_pronouncer_open and lin_grammar_open; a word that has no pronunciation is named. On failure both are NULL.
 */
lin_status lin_grammar_tree_open(const char *given, int repeats, const lin_decoding_values *values, const lin_phones *phones,
                                 const lin_warnings *warnings, lin_grammar **grammar, lin_tree **tree, lin_error *err);

#endif
