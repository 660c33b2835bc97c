/* paths.h - paths that are equal, and the score of one by definition: for the tests of searches. */
#ifndef LIN_TESTS_DECODER_PATHS_H
#define LIN_TESTS_DECODER_PATHS_H

#include "decoder/result.h"
#include "tests/lexicon/support.h"

SUPPORT double add_logs(double a, double b)
{
    return a == -INFINITY ? b : b == -INFINITY ? a : fmax(a, b) + log1p(exp(-fabs(a - b)));
}

// Graves et al. 2006, eq. 5 to 8: the forward variables of a sequence of labels with blanks around each.
SUPPORT double ctc_log(const float *logp, int T, int V, const int *labels, int n, double blank_penalty)
{
    const int S = 2 * n + 1;
    double *alpha = malloc(2 * sizeof(double) * (size_t)S), *before = alpha + S;
    ck_assert_ptr_nonnull(alpha);
    for (int t = 0; t < T; t++) {
        memcpy(before, alpha, sizeof(double) * (size_t)S);
        for (int s = 0; s < S; s++) {
            const int label = s % 2 ? labels[s / 2] : 0;
            double sum = t ? before[s] : s < 2 ? 0 : -INFINITY;
            if (t && s > 0) sum = add_logs(sum, before[s - 1]);
            if (t && s > 1 && label && label != labels[s / 2 - 1]) sum = add_logs(sum, before[s - 2]);
            alpha[s] = sum + (double)(logp[t * V + label] - (label ? 0 : (float)blank_penalty));
        }
    }
    const double sum = n ? add_logs(alpha[S - 1], alpha[S - 2]) : alpha[0];
    free(alpha);
    return sum;
}

SUPPORT void same_path(const lin_path *a, const lin_path *b)
{
    ck_assert_int_eq(a->n_phones, b->n_phones);
    ck_assert_int_eq(a->n_words, b->n_words);
    for (int i = 0; i < b->n_phones; i++) {
        const lin_path_phone *x = &a->phones[i], *y = &b->phones[i];
        test_require(x->label == y->label && x->start == y->start && x->end == y->end && x->confidence == y->confidence,
                     "phone %d", i);
    }
    for (int i = 0; i < b->n_words; i++) {
        const lin_path_word *x = &a->words[i], *y = &b->words[i];
        test_require(x->word == y->word && x->first_phone == y->first_phone && x->n_phones == y->n_phones &&
                         x->start == y->start && x->end == y->end && x->confidence == y->confidence,
                     "word %d", i);
    }
    test_require(a->score == b->score && a->acoustic == b->acoustic && a->language == b->language, "scores");
}

#endif
