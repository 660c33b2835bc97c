/* peaky_rows.h - rows for the tests of searches. */
#ifndef LIN_TESTS_DECODER_PEAKY_ROWS_H
#define LIN_TESTS_DECODER_PEAKY_ROWS_H

#include "tests/lexicon/support.h"

enum { MAX_V = 45 };

// Rows like those of a network: blanks, peaks of one to four frames, some divided between two labels, some exact ties.
SUPPORT void peaky_rows(float *logp, int T, int V, uint64_t key)
{
    int label = 0, rival = 1, left = 0;
    for (int t = 0; t < T; t++) {
        uint64_t at = (uint64_t)t * 64;
        if (!left--) {
            label = label && lin_random_below(key, at, 4) ? 0 : 1 + (int)lin_random_below(key, at + 1, (uint32_t)V - 1);
            rival = (int)lin_random_below(key, at + 2, (uint32_t)V);
            left = (int)lin_random_below(key, at + 3, label ? 4 : 8);
        }
        double x[MAX_V], sum = 0;
        for (int k = 0; k < V; k++) {
            x[k] = -12 + 4 * lin_random_uniform(key, at + 8 + (uint64_t)k);
            if (k == label) x[k] = 0;
            else if (k == rival) x[k] = -(double)lin_random_below(key, at + 4, 5) * 2;
            sum += exp(x[k]);
        }
        for (int k = 0; k < V; k++) logp[t * V + k] = (float)(x[k] - log(sum));
    }
}

#endif
