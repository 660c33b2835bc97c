// The reader of feature caches on any bytes. Checksums are corrected first; otherwise no mutation would pass them.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "train/dataset.h"
#include "train/dataset_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(unsigned char *bytes, size_t size)
{
    if (size < LIN_DATASET_HEADER) return;
    const uint64_t at = lin_get_u64(bytes + LIN_AT_TAIL), count = lin_get_u64(bytes + LIN_AT_COUNT);
    const uint64_t D = lin_get_u32(bytes + LIN_AT_D);
    uint64_t sum = 0, begin = LIN_DATASET_HEADER;
    // of the features, utterance by utterance, as far as the bytes reach
    for (uint64_t i = 0; at <= size && i < count && size - at >= 8 + (i + 1) * LIN_DATASET_ENTRY; i++) {
        const uint64_t n = lin_get_u32(bytes + at + 8 + i * LIN_DATASET_ENTRY) * (D & 0xFFFF);
        if (n > at || begin > at - n) break;
        sum = lin_hash(bytes + begin, (size_t)n, sum);
        begin += n;
    }
    if (at <= size && size - at >= 8) lin_put_u64(bytes + at, sum);
    if (at <= size) lin_put_u64(bytes + LIN_AT_TAIL_HASH, lin_hash(bytes + at, size - (size_t)at, 0));
    lin_put_u64(bytes + LIN_AT_HEADER_HASH, lin_hash(bytes, LIN_AT_HEADER_HASH, 0));
}

static void use(const lin_dataset *set)
{
    const size_t D = (size_t)lin_dataset_mel_bins(set);
    float *mean = malloc(2 * D * sizeof *mean), *x = NULL;
    for (int i = 0; i < lin_dataset_count(set); i++) {
        int U;
        const int *labels = lin_dataset_labels(set, i, &U);
        for (int u = 0; u < U; u++)
            if (labels[u] < 1 || labels[u] >= lin_dataset_outputs(set)) abort();
        const size_t count = (size_t)lin_dataset_frames(set, i) * D;
        x = realloc(x, count * sizeof *x);
        if (!x) abort();
        lin_dataset_features(set, i, x);
        for (size_t j = 0; j < count; j++)
            if (!isfinite(x[j])) abort();
        if (strlen(lin_dataset_id(set, i)) == 0 || lin_dataset_speaker(set, i) >= lin_dataset_n_speakers(set)) abort();
    }
    for (int s = 0; s < lin_dataset_n_speakers(set); s++) {
        lin_dataset_speaker_norm(set, s, mean, mean + D);
        if (strlen(lin_dataset_speaker_name(set, s)) == 0) abort();
        for (size_t d = 0; d < 2 * D; d++)
            if (!isfinite(mean[d])) abort();
    }
    if (lin_dataset_norm(&set, 1, mean, mean + D, NULL) == LIN_OK)
        for (size_t d = 0; d < 2 * D; d++)
            if (!isfinite(mean[d])) abort();
    if (lin_dataset_verify(set, NULL) != LIN_OK) abort();
    if (strlen(lin_dataset_source(set)) > 1u << 30) abort();
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
