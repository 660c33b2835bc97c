// The reader of feature caches on any bytes. Checksums are corrected first; otherwise no mutation would pass them.

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "train/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(unsigned char *bytes, size_t size)
{
    lin_dataset_header h;
    lin_dataset_entry e;
    if (size < sizeof h) return;
    memcpy(&h, bytes, sizeof h);
    const uint64_t at = h.tail;
    uint64_t sum = 0, begin = sizeof h;
    // of the features, utterance by utterance, as far as the bytes reach
    for (uint64_t i = 0; at <= size && i < h.count && size - at >= 8 + (i + 1) * sizeof e; i++) {
        memcpy(&e, bytes + at + 8 + i * sizeof e, sizeof e);
        const uint64_t n = (uint64_t)e.frames * (h.D & 0xFFFF);
        if (n > at || begin > at - n) break;
        sum = lin_hash(bytes + begin, (size_t)n, sum);
        begin += n;
    }
    if (at <= size && size - at >= 8) memcpy(bytes + at, &sum, sizeof sum);
    if (at <= size) h.tail_hash = lin_hash(bytes + at, size - (size_t)at, 0);
    h.header_hash = lin_hash(&h, offsetof(lin_dataset_header, header_hash), 0);
    memcpy(bytes, &h, sizeof h);
}

static void use(const lin_dataset *set)
{
    const size_t D = (size_t)set->D;
    float *mean = malloc(2 * D * sizeof *mean), *x = NULL;
    for (int i = 0; i < set->count; i++) {
        for (int u = 0; u < set->utterances[i].n_labels; u++)
            if (set->utterances[i].labels[u] < (set->tokens ? -1 : 1) || set->utterances[i].labels[u] >= set->V) abort();
        const size_t count = (size_t)set->utterances[i].frames * D;
        x = realloc(x, count * sizeof *x);
        if (!x) abort();
        lin_dataset_features(set, i, x);
        for (size_t j = 0; j < count; j++)
            if (!isfinite(x[j])) abort();
        if (strlen(set->utterances[i].id) == 0 || set->utterances[i].speaker >= set->n_speakers) abort();
    }
    for (int s = 0; s < set->n_speakers; s++) {
        lin_dataset_speaker_norm(set, s, mean, mean + D);
        if (strlen(lin_dataset_speaker_name(set, s)) == 0) abort();
        for (size_t d = 0; d < 2 * D; d++)
            if (!isfinite(mean[d])) abort();
    }
    if (lin_dataset_norm(&set, 1, mean, mean + D, NULL) == LIN_OK)
        for (size_t d = 0; d < 2 * D; d++)
            if (!isfinite(mean[d])) abort();
    if (lin_dataset_verify(set, NULL) != LIN_OK) abort();
    if (strlen(set->source) > 1u << 30) abort();
    free(mean);
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    unsigned char *bytes = malloc(size ? size : 1);
    if (!bytes) return 0;
    if (size) memcpy(bytes, data, size);
    mend(bytes, size);
    lin_dataset *set;
    lin_error err = {0};
    const lin_status status = lin_dataset_open_memory(bytes, size, "fuzz", &set, &err);
    if ((status == LIN_OK) != (set != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !strstr(err.message, "fuzz"))) abort();
    if (set) use(set);
    lin_dataset_close(set);
    free(bytes);
    if (lin_memory_live() != live) abort();
    return 0;
}
