/*
 * tree.h - a lexicon as a prefix tree of phones: words with a common beginning share its nodes.
 *
 * Pipeline: lexicon/dictionary + lexicon/ngram -> [this] -> decoder/words.
 * Every pronunciation of every word is a path from the root; a node lists the words that end there (homophones too) and the
 * best unigram at or below it, which a search uses as look-ahead before the word is complete.
 *
 *   lin_tree_create(dictionary, phones, lm, &options, &tree, &err);
 *   nodes = lin_tree_node_array(tree), ends = lin_tree_end_array(tree);
 *   for (child = nodes[node].child; child < nodes[node + 1].child; child++) ... nodes[child].label ...
 *   for (i = nodes[node].end; i < nodes[node + 1].end; i++) ... ends[i].word ...
 *   lin_tree_destroy(tree);
 *
 * Flat arrays, built level by level from the sorted pronunciations: 16 bytes a node, 8 a pronunciation (12 if any has a
 * probability), and the spellings; with a language model, the filter of its pairs of words (lexicon/ngram_pairs.h). They can be
 * written to a file, a packed lexicon, which is mapped in a millisecond instead of being built again.
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_TREE_H
#define LIN_LEXICON_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/ngram_pairs.h"
#include "lexicon/phones.h"

typedef struct lin_tree lin_tree;

enum { LIN_TREE_ROOT = 0 };

typedef struct lin_tree_options {
    int all_words; /* include words outside the language model; otherwise they are left out and counted */
    const unsigned char *added; /* [n] of the entries of lin_tree_create_list, 1: include its word all the same; NULL: none.
                                   lin_tree_create takes those of lin_dictionary_add */
    const float *logps; /* [n] of the same entries, natural logarithm of a pronunciation's probability, at most 0; NULL: all 0.
                           lin_tree_create takes those of the dictionary */
} lin_tree_options;

typedef struct lin_tree_end {
    int word;    /* number in the tree, 0 .. lin_tree_words - 1 */
    int lm_word; /* in the language model; LIN_NGRAM_UNKNOWN: not in it */
} lin_tree_end;

/* Nodes are numbered breadth first, so that the children of node i are nodes[i].child .. nodes[i + 1].child - 1, in the order of
 * their labels, and the words that end at it ends[nodes[i].end] .. ends[nodes[i + 1].end - 1], in the order of the lexicon. */
typedef struct lin_tree_node {
    uint32_t child, end;
    float ahead;   /* natural log of the best unigram of the words that end at or below, where one that the language model
                      lacks counts as the tree's rarest, an added one as <unk>; 0 without a language model */
    int32_t label; /* 0 for the root */
} lin_tree_node;

/* One pronunciation of one word; entries of the same word have the same spelling. */
typedef struct lin_tree_entry {
    const char *word; /* NUL-terminated */
    const int *labels;
    int n_labels;
} lin_tree_entry;

/*
 * Every pronunciation of every word of the dictionary. lm may be NULL: all words, equally probable. The dictionary is not kept,
 * spellings are copied. The language model's spelling may be lower or upper case. LIN_MISMATCH if no word of the dictionary is in
 * the language model; LIN_NO_MEMORY. options may be NULL. (lexicon/dictionary already refuses words without phones and unknown
 * phones, with file and line.) On failure *tree is NULL.
 */
lin_status lin_tree_create(const lin_dictionary *dictionary, const lin_phones *phones, const lin_ngram *lm,
                           const lin_tree_options *options, lin_tree **tree, lin_error *err);

/* The same from a list, over n_outputs outputs (2 at least). LIN_INVALID, naming the word, for one without letters or phones,
 * with more of them than LIN_WORD_MAX or LIN_PRONUNCIATION_MAX, or with a label outside 1 .. n_outputs - 1. n = 0 is fine. */
lin_status lin_tree_create_list(const lin_tree_entry *entries, int n, int n_outputs, const lin_ngram *lm,
                                const lin_tree_options *options, lin_tree **tree, lin_error *err);
void lin_tree_destroy(lin_tree *tree); /* NULL is fine */

/*
 * A packed tree: a copy of the arrays, little-endian, that is mapped when it is opened. It is no source: it can be made again at
 * any time. `key` is a number that the caller computes from all that the tree was made of (lexicon, language model, phones,
 * options). Opening gives LIN_IO if there is no such file, LIN_MISMATCH for one with another key or of another version,
 * LIN_FORMAT for a damaged one, and for one that is not over n_outputs outputs and the words of lm (NULL: without one): in each
 * case build the tree. The file may be replaced while it is open (lin_tree_write does), but not changed in place.
 */
lin_status lin_tree_write(const lin_tree *tree, uint64_t key, const char *path, lin_error *err);
lin_status lin_tree_open(const char *path, uint64_t key, int n_outputs, const lin_ngram *lm, lin_tree **tree, lin_error *err);

int lin_tree_nodes(const lin_tree *tree);
int lin_tree_words(const lin_tree *tree);
int lin_tree_pronunciations(const lin_tree *tree);                   /* total number of word ends */
int lin_tree_outputs(const lin_tree *tree);                          /* V of the phone set it was made with */
const char *lin_tree_word(const lin_tree *tree, int word);           /* spelling, lower case; NULL out of range */
int lin_tree_find(const lin_tree *tree, const char *word, size_t n); /* either case; -1: not in it */
int lin_tree_left_out(const lin_tree *tree);                         /* words outside the language model, if all_words is 0 */
const char *lin_tree_first_left_out(const lin_tree *tree);           /* the first of them, "" if there is none */

/* The arrays that a search uses, from the node LIN_TREE_ROOT on: nodes [lin_tree_nodes + 1], ends [lin_tree_pronunciations]. */
const lin_tree_node *lin_tree_node_array(const lin_tree *tree);
const lin_tree_end *lin_tree_end_array(const lin_tree *tree);

/* The natural logarithms of the probabilities of the pronunciations [lin_tree_pronunciations], in the order of the ends; NULL:
 * all are 0. The look-ahead does not contain them. */
const float *lin_tree_logp_array(const lin_tree *tree);

/* The filter of the language model's pairs, whose bits the tree owns; none without a language model. */
lin_ngram_pairs lin_tree_pairs(const lin_tree *tree);

/* The fingerprint of the language model it was made for, 0 without one; of the whole tree with its spellings; its size in
 * bytes. */
uint64_t lin_tree_lm_fingerprint(const lin_tree *tree);
uint64_t lin_tree_fingerprint(const lin_tree *tree);
size_t lin_tree_bytes(const lin_tree *tree);

#endif
