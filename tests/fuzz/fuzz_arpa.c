// ARPA language models from any bytes, compressed if they begin like gzip: the resulting model answers queries, and written as
// text it reads back equal.
#include <math.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "train/learn/ngram_mix.h"
#include "tests/fuzz/ngram_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    if (status != err->status || !err->message[0]) abort();
    for (const char *c = err->message; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127) abort();
}

static void try_text(const char *text, size_t n)
{
    lin_error err = {0};
    lin_ngram *lm, *again;
    lin_status status = lin_ngram_parse(text, n, "fuzz.arpa", &lm, &err);
    check(status, &err);
    if (status != LIN_OK) return;
    ngram_ask(lm, 1);
    char *written = NULL;
    size_t n_written;
    FILE *file = open_memstream(&written, &n_written);
    if (!file || lin_ngram_write_arpa(lm, file, "memory", &err) || fclose(file)) abort();
    if (lin_ngram_parse(written, n_written, "again", &again, &err)) abort();
    if (lin_ngram_fingerprint(again) != lin_ngram_fingerprint(lm)) abort();
    free(written);
    // Mixed with itself: every number is finite, and it is a model again.
    lin_ngram_draft draft;
    if (lin_ngram_mix(lm, lm, 0.5, &draft, &err)) abort();
    for (int k = 0; k < draft.order; k++) {
        for (size_t i = 0; i < draft.level[k].n; i++) {
            if (!isfinite(draft.level[k].logp[i]) || (draft.level[k].backoff && !isfinite(draft.level[k].backoff[i]))) abort();
        }
    }
    lin_ngram_destroy(again);
    if (lin_ngram_draft_finish(&draft, "mix", &again, &err)) abort();
    lin_ngram_destroy(again);
    lin_ngram_destroy(lm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned long live = lin_memory_live();
    if (lin_gzip_is(data, size)) {
        lin_error err = {0};
        char *text;
        size_t n;
        lin_status status = lin_gzip_expand(data, size, 1 << 20, "fuzz.gz", &text, &n, &err);
        check(status, &err);
        if (status == LIN_OK) try_text(text, n);
        lin_free(text);
    } else {
        try_text((const char *)data, size);
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
