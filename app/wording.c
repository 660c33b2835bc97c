// wording.c - from words to phones for the commands that need it; see wording.h.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "app/wording.h"
#include "base/memory.h"

enum { LONGEST_PATH = 4096 };

lin_status lin_wording_open(lin_wording *wording, const char *dictionary, lin_error *err)
{
    memset(wording, 0, sizeof *wording);
    lin_dictionary_options options = {.skip_bad = 1};
    char path[LONGEST_PATH];
    lin_status status = lin_find_lexicon(dictionary, path, sizeof path, err);
    if (status == LIN_OK && !*path)
        return lin_fail(err, LIN_IO, "no lexicon is installed; name one with --lexicon FILE or LINNET_LEXICON");
    if (status == LIN_OK) status = lin_phones_create(NULL, &wording->phones, err);
    if (status == LIN_OK) status = lin_dictionary_load(path, wording->phones, &options, &wording->dictionary, err);
    if (status == LIN_OK) status = lin_find_open_rules(wording->phones, &wording->rules, err);
    if (status == LIN_OK) status = lin_g2p_create(wording->phones, wording->dictionary, wording->rules, &wording->g2p, err);
    if (status == LIN_OK) {
        status = lin_transcriber_create(wording->phones, wording->dictionary, wording->g2p, &wording->transcriber, err);
    }
    if (status != LIN_OK) {
        lin_wording_close(wording);
        return status;
    }
    const char *first;
    int skipped = lin_dictionary_skipped(wording->dictionary, &first);
    if (skipped) lin_complain("%s; %d such line%s left out", first, skipped, skipped == 1 ? "" : "s");
    return LIN_OK;
}

void lin_wording_close(lin_wording *wording)
{
    lin_transcriber_destroy(wording->transcriber);
    lin_g2p_destroy(wording->g2p);
    lin_g2p_rules_destroy(wording->rules);
    lin_dictionary_destroy(wording->dictionary);
    lin_phones_destroy(wording->phones);
    memset(wording, 0, sizeof *wording);
}

void lin_print_phones(FILE *out, const lin_phones *phones, const int *labels, int n)
{
    for (int i = 0; i < n; i++) fprintf(out, "%s%s", i ? " " : "", lin_phones_name(phones, labels[i]));
}

typedef struct oov_rank {
    int index;
    long count;
} oov_rank;

static int by_count(const void *a, const void *b)
{
    const oov_rank *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

lin_status lin_wording_report(const lin_wording *wording, const char *path, lin_error *err)
{
    enum { MOST = 20 };
    int n = lin_transcriber_unknown_count(wording->transcriber);
    lin_output out = {.file = stderr};
    oov_rank *ranks = lin_alloc((size_t)n, sizeof *ranks);
    if (!ranks) return lin_no_memory(err, "the list of unknown words", (size_t)n * sizeof *ranks);
    lin_status status = path ? lin_output_open(path, 0, &out, err) : LIN_OK;
    if (status != LIN_OK) {
        lin_free(ranks);
        return status;
    }
    for (int i = 0; i < n; i++) ranks[i] = (oov_rank){i, lin_transcriber_unknown(wording->transcriber, i).count};
    qsort(ranks, (size_t)n, sizeof *ranks, by_count);
    FILE *file = out.file;
    if (!path && n) lin_complain("words that the dictionary lacks (word, count, how, phones):");
    for (int i = 0; i < n && (path || i < MOST); i++) {
        lin_unknown_word w = lin_transcriber_unknown(wording->transcriber, ranks[i].index);
        fprintf(file, "%s%s\t%ld\t%s\t", path ? "" : "  ", w.word, w.count, lin_g2p_how_name(w.how));
        lin_print_phones(file, wording->phones, w.labels, w.n_labels);
        fputc('\n', file);
    }
    if (!path && n > MOST) fprintf(stderr, "  and %d more; --oov FILE lists them all\n", n - MOST);
    lin_free(ranks);
    return path ? lin_output_close(&out, err) : LIN_OK;
}
