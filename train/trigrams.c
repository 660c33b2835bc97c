// trigrams.c - a trigram of phones as tables. See trigrams.h.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "lexicon/ngram.h"
#include "model/model.h"
#include "train/trigrams.h"

// The row of labels that may follow a and b in this state of the model. Returns the least of its probabilities.
static float fill_row(const lin_ngram *lm, lin_ngram_state state, const int *words, int V, int a, int b, float *block)
{
    const size_t n = (size_t)V, S = n * n, row = (size_t)b * n + (size_t)a;
    float least = block[2 * S * n + S + row] = expf(lin_ngram_end(lm, state));
    lin_ngram_state unused;
    for (int c = 1; c < V; c++) {
        const float p = expf(lin_ngram_score(lm, state, words[c], &unused));
        least = fminf(least, p);
        if (c == b) block[2 * S * n + row] = p;
        else block[row * n + (size_t)c] = block[S * n + ((size_t)b * n + (size_t)c) * n + (size_t)a] = p;
    }
    return least;
}

static float fill(const lin_ngram *lm, const int *words, int V, float *block)
{
    const lin_ngram_state begin = lin_ngram_begin(lm), empty = lin_ngram_empty(lm);
    lin_ngram_state first, second;
    float least = fill_row(lm, begin, words, V, 0, 0, block);
    for (int a = 0; a < V; a++) {
        if (a) lin_ngram_score(lm, empty, words[a], &first);
        for (int b = 1; b < V; b++) {
            lin_ngram_score(lm, a ? first : begin, words[b], &second);
            least = fminf(least, fill_row(lm, second, words, V, a, b, block));
        }
    }
    return least;
}

lin_status lin_trigrams_open(const char *path, const char *phones, int V, float **block, lin_error *err)
{
    lin_ngram *lm = NULL;
    char **names = NULL;
    int count, *words = NULL;
    *block = NULL;
    if (V > LIN_TRIGRAMS_OUTPUTS)
        return lin_fail(err, LIN_UNSUPPORTED, "mmi is for at most %d phones, and the network has %d", LIN_TRIGRAMS_OUTPUTS - 1,
                        V - 1);
    lin_status status = lin_phones_split(phones, &count, &names, err);
    if (status == LIN_OK) status = lin_ngram_open(path, &lm, err);
    if (status == LIN_OK && !(words = lin_calloc((size_t)V, sizeof *words))) status = lin_no_memory(err, "phones", sizeof *words);
    for (int v = 1; v < V && status == LIN_OK; v++)
        if ((words[v] = lin_ngram_find(lm, names[v], strlen(names[v]))) < 0)
            status = lin_fail(err, LIN_MISMATCH, "%s has no phone %s, which the network has", path, names[v]);
    if (status == LIN_OK && !(*block = lin_calloc(lin_trigrams_count(V), sizeof **block)))
        status = lin_no_memory(err, "a trigram", lin_trigrams_count(V) * sizeof **block);
    // The sums of the sequences that only a zero excludes are lost in float.
    if (status == LIN_OK && fill(lm, words, V, *block) < FLT_MIN) {
        status = lin_fail(err, LIN_UNSUPPORTED, "%s: a phone or the end has probability 0 after two others, and mmi needs "
                          "probabilities above 1e-38; make a smoothed model (linnet ngram count)", path);
        lin_free(*block);
        *block = NULL;
    }
    lin_free(words);
    lin_free(names);
    lin_ngram_destroy(lm);
    return status;
}
