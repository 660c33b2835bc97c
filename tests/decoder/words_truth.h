/*
 * words_truth.h - the results that decoder/words must find, by brute force in double precision: every sequence of words and
 * pronunciations (and of phones outside the lexicon) that fits into the rows, the exact sum over its alignments, and n-gram
 * scores from plain tables.
 */
#ifndef LIN_TESTS_DECODER_WORDS_TRUTH_H
#define LIN_TESTS_DECODER_WORDS_TRUTH_H

#include "decoder/words.h"
#include "tests/decoder/paths.h"

enum { WORDS_MAX = 8, PRONUNCIATIONS_MAX = 12, T_MAX = 8, V_MAX = 5, FOUND_MAX = 60000 };

// A small lexicon and language model, and rows.
typedef struct world {
    int V, T, n_words, n_prons;
    char names[WORDS_MAX][8];
    int word[PRONUNCIATIONS_MAX], labels[PRONUNCIATIONS_MAX][T_MAX], n_labels[PRONUNCIATIONS_MAX];
    lin_tree_entry entries[PRONUNCIATIONS_MAX]; // with probabilities in half of the worlds
    float logp[T_MAX * V_MAX];
    // log10 with three digits; word n_words is </s>, n_words + 1 <unk> (if `unk`), n_words + 2 <s>
    int order, unk, lacks; // lacks: one word that is not in the model, or -1
    double uni[WORDS_MAX + 3], uni_back[WORDS_MAX + 3];
    double bi[WORDS_MAX + 3][WORDS_MAX + 3], bi_back[WORDS_MAX + 3][WORDS_MAX + 3]; // 1: not there
    double tri[WORDS_MAX + 3][WORDS_MAX + 3][WORDS_MAX + 3];
    // phrases of words with a bonus
    int n_phrases, phrase[4][3], phrase_n[4];
    double phrase_bonus[4];
} world;

typedef struct drawn {
    uint64_t seed, at;
} drawn;

int below(drawn *d, int n);
double tenth(drawn *d, int n);

void draw_rows(float *logp, int T, int V, drawn *d, double sharpness);

void draw_world(world *w, uint64_t seed);

/* ---- the language model as ARPA text, and by definition -------------------------------------------------------------------- */

lin_ngram *world_lm(const world *w);

/* ---- all sequences --------------------------------------------------------------------------------------------------------- */

typedef struct sequence {
    int n, words[T_MAX]; // an unknown word is -1 - (its phones as digits)
    double score, acoustic, language;
    double prons; // sum over the pronunciations, not weighted
} sequence;

typedef struct truth {
    const world *w;
    const lin_words_options *o;
    int with_lm, with_context, n;
    sequence *found;
} truth;

void enumerate(truth *t, sequence *s, int *labels, int n, int n_unknown);

void find_truth(truth *t);

/* The number of the sequence that a path holds; -1 if there is none. */
int truth_of(const truth *t, const lin_path *path);

#endif
