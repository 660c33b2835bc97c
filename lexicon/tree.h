/*
 * tree.h - a lexicon as a prefix tree of phones: words with a common beginning share its nodes.
 *
 * Pipeline: lexicon/dictionary + lexicon/ngram -> [this] -> decoder/words.
 * Every pronunciation of every word is a path from the root; a node lists the words that end there (homophones too) and the
 * best unigram at or below it, which a search uses as look-ahead before the word is complete.
 *
 *   lin_tree_create(dictionary, phones, lm, 0, &tree, &err);
 *   for (child = tree->nodes[node].child; child < tree->nodes[node + 1].child; child++) ... tree->nodes[child].label ...
 *   for (i = tree->nodes[node].end; i < tree->nodes[node + 1].end; i++) ... tree->ends[i].word ...
 *   lin_tree_destroy(tree);
 *
 * Flat arrays, built level by level from the sorted pronunciations: 16 bytes a node, 8 a pronunciation (12 if any has a
 * probability), and the spellings; with a language model, the filter of its pairs of words (lexicon/ngram.h). They can be
 * written to a file, a packed lexicon, which is mapped in a millisecond instead of being built again.
 *
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEXICON_TREE_H
#define LIN_LEXICON_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/status.h"
#include "base/symbols.h"
#include "lexicon/dictionary.h"
#include "lexicon/ngram.h"
#include "lexicon/phones.h"

enum { LIN_TREE_ROOT = 0 };

typedef struct lin_tree_end {
    int word;    /* number in the tree, 0 .. words.n - 1 */
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

/* Users only read the arrays. */
typedef struct lin_tree {
    lin_tree_node *nodes; /* [n_nodes + 1], from LIN_TREE_ROOT on */
    lin_tree_end *ends;   /* [n_ends], one for each pronunciation */
    float *logps;         /* [n_ends] natural logarithms of the pronunciations' probabilities, which the look-ahead does not
                             contain; NULL: all are 0 */
    lin_ngram_pairs pairs; /* of the language model; none without one */
    lin_symbols words;     /* spellings, in lower case */
    int n_nodes, n_ends;
    int n_outputs;  /* V of the phone set it was made with */
    int n_left_out; /* words outside the language model */
    char first_left_out[LIN_WORD_MAX + 1]; /* "" if there is none */
    uint64_t lm_fingerprint;               /* of the language model it was made for, 0 without one */
    uint64_t fingerprint;                  /* of the whole tree with its spellings */
    lin_file_map map; /* of a tree that was opened from a file: the arrays point into it */
} lin_tree;

/* One pronunciation of one word; entries of the same word have the same spelling. */
typedef struct lin_tree_entry {
    const char *word; /* NUL-terminated */
    const int *labels;
    int n_labels;
    int added;  /* 1: the word is in the tree even if the language model lacks it, and counts as <unk> where it is rarer */
    float logp; /* natural logarithm of the pronunciation's probability, at most 0 */
} lin_tree_entry;

/*
 * Every pronunciation of every word of the dictionary. lm may be NULL: all words, equally probable. The dictionary is not kept,
 * spellings are copied. The language model's spelling may be lower or upper case; words that it lacks are left out and counted,
 * except with all_words, and except words of lin_dictionary_add. LIN_MISMATCH if no word of the dictionary is in the language
 * model; LIN_NO_MEMORY. (lexicon/dictionary already refuses words without phones and unknown phones, with file and line.) On
 * failure *tree is NULL.
 */
lin_status lin_tree_create(const lin_dictionary *dictionary, const lin_phones *phones, const lin_ngram *lm, int all_words,
                           lin_tree **tree, lin_error *err);

/* A tree of a list, over n_outputs outputs (2 at least). LIN_INVALID, naming the word, for one without letters or phones,
 * with more of them than LIN_WORD_MAX or LIN_PRONUNCIATION_MAX, or with a label outside 1 .. n_outputs - 1. n = 0 is fine. */
lin_status lin_tree_create_list(const lin_tree_entry *entries, int n, int n_outputs, const lin_ngram *lm, int all_words,
                                lin_tree **tree, lin_error *err);
void lin_tree_destroy(lin_tree *tree); /* NULL is fine */

/*
 * A packed tree: a copy of the arrays, little-endian, that is mapped when it is opened. It is a cache, and can be made again at
 * any time. `key` is a number that the caller computes from all that the tree was made of (lexicon, language model, phones,
 * options). Opening gives LIN_IO if there is no such file, LIN_MISMATCH for one with another key or of another version,
 * LIN_FORMAT for a damaged one, and for one that is not over n_outputs outputs and the words of lm (NULL: without one): in each
 * case build the tree. The file may be replaced while it is open (lin_tree_write does), but not changed in place.
 */
lin_status lin_tree_write(const lin_tree *tree, uint64_t key, const char *path, lin_error *err);
lin_status lin_tree_open(const char *path, uint64_t key, int n_outputs, const lin_ngram *lm, lin_tree **tree, lin_error *err);

/* The header of that file. The sections follow it, each at a multiple of 64 bytes: nodes, ends, words, their table, their text,
 * pairs, logarithms of probabilities. */
#define LIN_TREE_MAGIC "lintree"
enum { LIN_TREE_VERSION = 3 };
typedef struct lin_tree_header {
    char magic[8];
    uint32_t version, n_outputs, n_nodes, n_ends, n_words, n_slots, n_left_out, n_pairs;
    uint64_t text_used, lm_fingerprint, fingerprint, key;
    char first_left_out[LIN_WORD_MAX + 1];
    uint64_t n_logps; /* n_ends, or 0 */
    uint64_t size;
    uint64_t sum; /* lin_tree_sum */
} lin_tree_header;

/* The checksum: of all bytes after the header, and of the header before it. */
uint64_t lin_tree_sum(const unsigned char *bytes, size_t n);

const char *lin_tree_word(const lin_tree *tree, int word);           /* spelling, lower case; NULL out of range */
int lin_tree_find(const lin_tree *tree, const char *word, size_t n); /* its number, in either case; -1: not in it */

#endif
