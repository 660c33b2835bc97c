// Opus in Ogg on any bytes, cut at a place that the first byte chooses. Checksums of pages are put right, so that what they hold
// is read too.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/audio.h"
#include "serve/ogg_opus.h"
#include "tests/ogg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static lin_status take_all(lin_ogg_opus *opus)
{
    float samples[LIN_OGG_OPUS_MOST];
    lin_error err = {0};
    int n = 1;
    lin_status status = LIN_OK;
    while (status == LIN_OK && n) {
        status = lin_ogg_opus_take(opus, samples, &n, &err);
        if (n < 0 || n > LIN_OGG_OPUS_MOST || (status != LIN_OK && (n || !err.message[0]))) abort();
        if (lin_audio_find_bad(samples, (size_t)n) < (size_t)n) abort();
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lin_ogg_opus *opus;
    lin_error err = {0};
    if (size < 2) return 0;
    const unsigned long live = lin_memory_live();
    const size_t n = size - 1, cut = n * data[0] / 256;
    unsigned char *copy = lin_alloc(n, 1);
    if (copy && lin_ogg_opus_create(16000, &opus, &err) == LIN_OK) {
        memcpy(copy, data + 1, n);
        test_ogg_checksums(copy, n);
        if (lin_ogg_opus_push(opus, copy, cut, &err) == LIN_OK && take_all(opus) == LIN_OK &&
            lin_ogg_opus_push(opus, copy + cut, n - cut, &err) == LIN_OK)
            take_all(opus);
        lin_ogg_opus_destroy(opus);
    }
    lin_free(copy);
    if (lin_memory_live() != live) abort();
    return 0;
}
