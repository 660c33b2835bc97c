// Packed language models from any bytes: unchanged, and once more with the length and checksums that fit the header, so that the
// code after these checks is reached.
#include <stdint.h>

#include "base/memory.h"
#include "lexicon/ngram_file.h"
#include "tests/fuzz/ngram_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_block(const void *bytes, size_t n)
{
    lin_error err = {0};
    lin_ngram *lm;
    lin_status status = lin_ngram_unpack(bytes, n, "fuzz.lm", &lm, &err);
    if (status != LIN_OK) {
        if ((status != LIN_FORMAT && status != LIN_UNSUPPORTED) || err.status != status || !err.message[0] || lm) abort();
        return;
    }
    ngram_ask(lm, 0);
    FILE *null = fopen("/dev/null", "w");
    if (!null || lin_ngram_write_arpa(lm, null, "null", &err) || fclose(null)) abort();
    lin_ngram_destroy(lm);
}

// The size that the header's counts require; 0 if the counts or the size are out of range.
static size_t size_of(const uint8_t *data)
{
    lin_ngram lm = {.order = (int)(lin_ngram_u32(data + LIN_NGRAM_AT_ORDER) % 16)};
    lm.text_bytes = lin_ngram_u32(data + LIN_NGRAM_AT_TEXT);
    if (lm.order < 1 || lm.order > LIN_NGRAM_MAX_ORDER || lm.text_bytes > 1 << 20) return 0;
    for (int k = 1; k <= lm.order; k++) {
        const uint8_t *at = data + LIN_NGRAM_AT_LEVELS + 16 * (k - 1);
        lm.levels[k] = (lin_ngram_level){.count = lin_ngram_u32(at),
                                         .inner = lin_ngram_u32(at + 4),
                                         .logp_bits = lin_ngram_u32(at + 8),
                                         .backoff_bits = lin_ngram_u32(at + 12)};
        const lin_ngram_level *level = &lm.levels[k];
        if (level->count > 1 << 16 || level->inner > 1 << 16 || level->logp_bits > 12 || level->backoff_bits > 12) return 0;
    }
    if (!lm.levels[1].count) return 0;
    lin_ngram_lay_out(&lm);
    return lm.size <= 1 << 20 ? lm.size : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned long live = lin_memory_live();
    try_block(data, size);
    if (size < LIN_NGRAM_HEADER) return 0;
    size_t n = size_of(data);
    if (n) {
        unsigned char *block = lin_calloc(n, 1);
        if (!block) return 0;
        memcpy(block, data, size < n ? size : n);
        memcpy(block + LIN_NGRAM_AT_SIZE, &n, sizeof n);
        lin_ngram_put_checksums(block, n);
        try_block(block, n);
        lin_free(block);
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
