/*
 * tree.h - a lexicon as a prefix tree of phones: words that begin alike share their beginning.
 *
 * Pipeline: lexicon/dictionary + lexicon/ngram -> [this] -> decoder/words.
 * Every pronunciation of every word is a path from the root; a node names the words that end there (homophones and all) and the
 * best unigram at or below it, which a search uses as look-ahead before it knows the word.
 *
 *   lin_tree_create(dictionary, phones, lm, &options, &tree, &err);
 *   child = lin_tree_child(tree, LIN_TREE_ROOT, label);
 *   for (i = 0; i < lin_tree_ends(tree, child, &words); i++) ... words[i].word ...
 *   lin_tree_destroy(tree);
 *
 * Flat arrays, built in one pass over the sorted pronunciations. Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_TREE_H
#define LIN_LEXICON_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/ngram.h"
#include "lexicon/phones.h"

typedef struct lin_tree lin_tree;

enum { LIN_TREE_ROOT = 0 };

typedef struct lin_tree_options {
    int all_words; /* words that the language model lacks come in too, as <unk>; otherwise they are left out, and counted */
} lin_tree_options;

typedef struct lin_tree_end {
    int word;      /* number in the tree, 0 .. lin_tree_words - 1 */
    int lm_word;   /* in the language model, LIN_NGRAM_UNKNOWN: not there */
} lin_tree_end;

/*
 * lm may be NULL: all words, all alike. The dictionary is not kept, spellings are copied. The language model's spelling may be lower or upper
 * case. LIN_MISMATCH if no word of the dictionary is in the language model; LIN_NO_MEMORY.
 */
lin_status lin_tree_create(const lin_dictionary *dictionary, const lin_phones *phones, const lin_ngram *lm,
                           const lin_tree_options *options, lin_tree **tree, lin_error *err);
void lin_tree_destroy(lin_tree *tree); /* NULL is fine */

int lin_tree_nodes(const lin_tree *tree);
int lin_tree_words(const lin_tree *tree);
const char *lin_tree_word(const lin_tree *tree, int word); /* spelling, lower case; NULL out of range */
int lin_tree_find(const lin_tree *tree, const char *word, size_t n); /* -1: not there */
int lin_tree_left_out(const lin_tree *tree); /* words that the language model lacks, without all_words */

#endif
