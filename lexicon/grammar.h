/*
 * grammar.h - the sentences of a command language, as an automaton over words: decoder/words finds one of them and no others.
 *
 * Pipeline: a file of phrases, or JSGF -> [this] -> its words with pronunciations -> lexicon/tree -> lin_grammar_bind ->
 * decoder/words.
 *
 *   lin_grammar_open("home.txt", numbers, NULL, &grammar, &err);
 *   for (i = 0; i < lin_grammar_words(grammar); i++) ... lin_grammar_word(grammar, i) ...         // entries of a tree
 *   lin_grammar_bind(grammar, tree, &err);
 *   state = lin_grammar_step(grammar, LIN_GRAMMAR_START, end);                                    // a pronunciation of the tree
 *   lin_grammar_destroy(grammar);
 *
 * The file has a phrase in each line (docs/commands.md):
 *
 *   # a comment
 *   turn (on | off) [the] $lamp          [] is optional, | divides alternatives, () keep them together
 *   set the heating to $number 15..25    each number by the rules of the language (lexicon/written.h)
 *   $lamp = lamp | light | ceiling light
 *   call $contacts                       without a definition: the phrases of the file contacts.txt in the same folder
 *   [unk]                                any other word
 *
 * or begins with #JSGF (JSpeech Grammar Format, W3C note of 2000): rules, sequences, alternatives, groups, options, <NULL>. Tags
 * and weights are skipped; repetition (* and +), <VOID> and imports are refused.
 *
 * Phrases become a nondeterministic automaton (Thompson 1968), and that a deterministic one by the construction of subsets (Rabin
 * & Scott 1959): a sentence has one path. Threads: immutable once bound, shared by all.
 */
#ifndef LIN_LEXICON_GRAMMAR_H
#define LIN_LEXICON_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/tree.h"
#include "lexicon/written.h"

typedef struct lin_grammar lin_grammar;

enum { LIN_GRAMMAR_START = 0, LIN_GRAMMAR_STATES_MAX = 1 << 20 };
#define LIN_GRAMMAR_NONE UINT32_MAX

/* numbers: rules by which numbers and signs are read; NULL: numbers and signs are refused. LIN_FORMAT with name:line;
 * LIN_UNSUPPORTED for a form of JSGF that is not supported, and for a grammar that has over LIN_GRAMMAR_STATES_MAX states or
 * takes over a second; LIN_IO; LIN_NO_MEMORY. On failure *grammar is NULL. files: NULL, or gets the names of the other files that
 * the grammar needs, each with its NUL; on failure those up to the one that is missing or wrong. */
lin_status lin_grammar_open(const char *path, const lin_written *numbers, lin_buffer *files, lin_grammar **grammar,
                            lin_error *err);

/* A list of phrases as clients of Vosk send it: a sentence is one or more of them. A phrase is left out if it cannot be read, or
 * if `say` returns LIN_INVALID for one of its words; any other failure of `say` ends the call. say: may be NULL. */
typedef struct lin_grammar_list {
    lin_status (*say)(void *context, const char *word, size_t n, lin_error *err);
    void *context;
    int left_out;    /* phrases; 0 before the call */
    lin_error first; /* why the first of them was */
} lin_grammar_list;

/* From memory; other files are not read. list: NULL for a grammar. If no phrase remains, it fails as the first one did. */
lin_status lin_grammar_parse(const char *text, size_t n, const char *name, const lin_written *numbers, lin_grammar_list *list,
                             lin_grammar **grammar, lin_error *err);
void lin_grammar_destroy(lin_grammar *grammar); /* NULL is fine */

/* The words, NUL-terminated, in lower case, owned by the grammar; each once, without [unk]. */
int lin_grammar_words(const lin_grammar *grammar);
const char *lin_grammar_word(const lin_grammar *grammar, int word);

/* Prepares what follows for a tree that has all words. LIN_MISMATCH, naming the word, if it lacks one; LIN_NO_MEMORY. */
lin_status lin_grammar_bind(lin_grammar *grammar, const lin_tree *tree, lin_error *err);

uint32_t lin_grammar_states(const lin_grammar *grammar); /* states are below this number */
uint64_t lin_grammar_fingerprint(const lin_grammar *grammar);

/* The state after a pronunciation (the number of an end in the tree); after [unk]. LIN_GRAMMAR_NONE: no sentence continues in
 * this way. */
uint32_t lin_grammar_step(const lin_grammar *grammar, uint32_t state, uint32_t end);
uint32_t lin_grammar_unknown(const lin_grammar *grammar, uint32_t state);
int lin_grammar_has_unknown(const lin_grammar *grammar);

/* 1: a word that ends at or below this node of the tree may follow. */
int lin_grammar_allows(const lin_grammar *grammar, uint32_t state, uint32_t node);

int lin_grammar_is_end(const lin_grammar *grammar, uint32_t state); /* a sentence may end here */

#endif
