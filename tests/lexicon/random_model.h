/*
 * random_model.h - random back-off models as plain lists of n-grams, their ARPA text, and their scores by the definition:
 *
 *   P(w | h) = p(h, w) where (h, w) is in the list, else b(h) P(w | h without its first word), b = 1 where h is not in the list.
 *
 * In double precision and by a search of the whole list; no code is shared with lexicon/ngram*.c.
 */
#ifndef LIN_TESTS_LEXICON_RANDOM_MODEL_H
#define LIN_TESTS_LEXICON_RANDOM_MODEL_H

#include "lexicon/ngram.h"
#include "tests/lexicon/support.h"

typedef struct gram {
    int n, words[LIN_NGRAM_MAX_ORDER];
    double logp, backoff; // to base 10
} gram;

enum { MODEL_MOST = 4000 };
typedef struct model {
    int order, n_words, begin, end, unknown; // the special words, or -1
    gram grams[MODEL_MOST];                  // by order
    int n, counts[LIN_NGRAM_MAX_ORDER + 2], begins[LIN_NGRAM_MAX_ORDER + 2];
    uint64_t key, draws;
} model;

const gram *model_find(const model *m, const int *words, int n);

/* A context that affects scores: an n-gram of the list extends it, or it has a back-off weight. */
int model_is_context(const model *m, const gram *g);

uint32_t model_draw(model *m, uint32_t below);

/* whole: for every n-gram the list also has its last n - 1 words, as in a model that was not pruned. children: average number of
 * words that follow a context. special: bit 0 <s>, 1 </s>, 2 <unk>. */
model *random_model(uint64_t key, int order, int n_words, double children, int whole, int special);

/* The ARPA text, released with free. */
char *model_text(const model *m, size_t *n);

lin_ngram *model_parse(const model *m);

int word_in(const lin_ngram *lm, const model *m, int w);

/* A random walk through the model: every score of lm equals that of the list,
 * within `tolerance` (natural logarithm) per score. */
void walk_compare(const lin_ngram *lm, model *m, int steps, double tolerance);

#endif
