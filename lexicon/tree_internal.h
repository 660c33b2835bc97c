/* tree_internal.h - the representation of a tree, shared by tree.c and tree_pack.c. */
#ifndef LIN_LEXICON_TREE_INTERNAL_H
#define LIN_LEXICON_TREE_INTERNAL_H

#include "base/file.h"
#include "base/symbols.h"
#include "lexicon/tree.h"

struct lin_tree {
    lin_symbols words;    // lower case
    lin_tree_node *nodes; // n_nodes and one that ends the last ranges
    lin_tree_end *ends;
    float *logps;    // [n_ends]; NULL: all 0
    uint64_t *pairs; // n_pairs
    size_t n_pairs;
    int n_nodes, n_ends, n_outputs, n_left_out;
    uint64_t lm_fingerprint, fingerprint;
    char first_left_out[LIN_WORD_MAX + 1];
    lin_file_map map; // of a tree that was opened from a file: words, nodes, ends and pairs point into it
};

/* The header of a packed tree. The sections follow it, each at a multiple of 64 bytes: nodes, ends, words, their table, their
 * text, pairs, logarithms of probabilities. Version 2 has none of these. */
#define LIN_TREE_MAGIC "lintree"
enum { LIN_TREE_VERSION = 3, LIN_TREE_SECTIONS = 7 };
typedef struct lin_tree_header {
    char magic[8];
    uint32_t version, n_outputs, n_nodes, n_ends, n_words, n_slots, n_left_out, n_pairs;
    uint64_t text_used, lm_fingerprint, fingerprint, key;
    char first_left_out[LIN_WORD_MAX + 1];
    uint64_t n_logps; // n_ends, or 0
    uint64_t size;
    uint64_t sum; // of all bytes after the header, and of the header before it
} lin_tree_header;

/* The checksum of a packed tree; tests compute it for files that they have changed. */
uint64_t lin_tree_sum(const unsigned char *bytes, size_t n);

#endif
