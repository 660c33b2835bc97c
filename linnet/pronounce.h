/*
 * pronounce.h - keywords and grammars as text, with the pronunciations of the lexicon, else by the letter-to-sound rules.
 *
 * Pipeline: options, files -> [this: lexicon/grammar, lexicon/tree] -> decoder/keywords, linnet/decoding.
 * Both functions open the lexicon that a search for words would use.
 */
#ifndef LIN_LINNET_PRONOUNCE_H
#define LIN_LINNET_PRONOUNCE_H

#include "decoder/keywords.h"
#include "linnet/decoding.h"

/*
 * The keywords of values->keywords and values->keywords_file; NULL if there are none. A keyword is one or several words: "hey
 * linnet", or "hey linnet=0.3" with a threshold (decoder/keywords.h). A file has one in each line; lines that begin with # are
 * comments. LIN_IO, LIN_FORMAT and LIN_INVALID name the file, the line and the keyword.
 */
lin_status lin_keywords_open(const lin_decoding_values *values, const lin_phones *phones, double row_seconds,
                             const lin_warnings *warnings, lin_keywords **keywords, lin_error *err);

/*
 * A grammar, and the tree of its words' pronunciations, for a word search. given: the name of a file, or, if it has a line feed,
 * the text of a grammar itself. repeats: it is a list of phrases (lin_grammar_parse); a warning says how many are left out. Both
 * are the caller's; the grammar is bound to the tree. LIN_IO if there is no lexicon; errors of lin_grammar_open; a word that has
 * no pronunciation is named. On failure both are NULL. files: as of lin_grammar_open.
 */
lin_status lin_grammar_tree_open(const char *given, int repeats, const lin_decoding_values *values, const lin_phones *phones,
                                 const lin_warnings *warnings, lin_buffer *files, lin_grammar **grammar, lin_tree **tree,
                                 lin_error *err);

#endif
