// voices.c - the voices of sets, and the equal error rate of their vectors; see voices.h.

#include "train/voices.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/symbols.h"

lin_status lin_voices_number(const lin_dataset *const *sets, int n_sets, int **out, int *count, lin_error *err)
{
    size_t total = 0, n = 0;
    for (int s = 0; s < n_sets; s++) total += (size_t)sets[s]->n_speakers;
    lin_symbols names = {0};
    lin_status status = LIN_OK;
    int *voices = lin_alloc(total, sizeof *voices);
    *out = NULL;
    *count = 0;
    if (!voices) return lin_no_memory(err, "the voices", total * sizeof *voices);
    for (int s = 0; s < n_sets; s++)
        for (int i = 0; i < sets[s]->n_speakers && status == LIN_OK; i++) {
            const char *name = lin_dataset_speaker_name(sets[s], i);
            status = lin_symbols_add(&names, name, strlen(name), &voices[n++], err);
        }
    *count = names.n;
    lin_symbols_free(&names);
    if (status == LIN_OK && *count < 2)
        status = lin_fail(err, LIN_INVALID, "the sets have %d voice; to tell voices apart takes 2 and more", *count);
    if (status == LIN_OK) {
        *out = voices;
        return LIN_OK;
    }
    lin_free(voices);
    return status;
}

typedef struct pair {
    float cosine;
    int same;
} pair;

static int by_cosine(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return (x->cosine > y->cosine) - (x->cosine < y->cosine);
}

// With a threshold after pairs[i], pairs of one voice up to i are misses, and pairs of two voices after i are false alarms.
static double crossing(const pair *pairs, size_t n, size_t n_same)
{
    const double same = (double)n_same, others = (double)(n - n_same);
    double missed = 0, alarms = others;
    for (size_t i = 0; i < n; i++) {
        missed += pairs[i].same;
        alarms -= !pairs[i].same;
        if (missed / same >= alarms / others) return (missed / same + alarms / others) / 2;
    }
    return 1;
}

lin_status lin_voices_equal_error(const float *vectors, const int *voices, const int *groups, int n, int D, double *rate,
                                  lin_error *err)
{
    const size_t most = n > 1 ? (size_t)n * (size_t)(n - 1) / 2 : 1;
    size_t n_pairs = 0, n_same = 0;
    pair *pairs = lin_alloc(most, sizeof *pairs);
    *rate = -1;
    if (!pairs) return lin_no_memory(err, "the pairs of pieces", most * sizeof *pairs);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            const float *a = vectors + (size_t)i * (size_t)D, *b = vectors + (size_t)j * (size_t)D;
            float sum = 0;
            if (groups[i] != groups[j]) continue;
            for (int d = 0; d < D; d++) sum += a[d] * b[d];
            n_same += voices[i] == voices[j];
            pairs[n_pairs++] = (pair){sum, voices[i] == voices[j]};
        }
    qsort(pairs, n_pairs, sizeof *pairs, by_cosine);
    if (n_same > 0 && n_same < n_pairs) *rate = crossing(pairs, n_pairs, n_same);
    lin_free(pairs);
    return LIN_OK;
}
