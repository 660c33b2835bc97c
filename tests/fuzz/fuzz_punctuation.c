// Punctuation models from any bytes: unchanged, and once more with the checksum and the length that fit the header, so that the
// code after these checks is reached; and any bytes as prose and as words to be made readable.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "lexicon/readable.h"
#include "train/learn/punctuation_learn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_text(const lin_punctuation *p, const uint8_t *data, size_t size)
{
    lin_prose prose = {0};
    lin_readable r;
    lin_error err = {0};
    lin_readable_begin(&r, p);
    if (lin_prose_read(&prose, (const char *)data, size, &err)) abort();
    for (int i = 0; i < prose.n; i++) {
        const char *word = prose.text.data + prose.words[i].text;
        if (!*word || prose.words[i].mark < 0 || prose.words[i].mark >= LIN_MARKS) abort();
        if (lin_readable_push(&r, word, i * 0.1, i * 0.1 + 0.05, 1, &err)) abort();
    }
    if (lin_readable_finish(&r, &err)) abort();
    for (int i = 0; i < r.n; i++)
        if (!*lin_readable_token_text(&r, i)) abort();
    if (r.n > prose.n) abort();
    lin_readable_free(&r);
    lin_prose_free(&prose);
}

static void try_model(const void *bytes, size_t n, const uint8_t *text, size_t n_text)
{
    lin_error err = {0};
    lin_punctuation *p;
    const lin_status status = lin_punctuation_parse(bytes, n, "fuzz", &p, &err);
    if (status != LIN_OK) {
        if ((status != LIN_FORMAT && status != LIN_UNSUPPORTED) || err.status != status || !err.message[0] || p) abort();
        return;
    }
    try_text(p, text, n_text);
    lin_punctuation_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    lin_punctuation_header h;
    try_model(data, size, data, size);
    if (size >= sizeof h) {
        memcpy(&h, data, sizeof h);
        memcpy(h.magic, LIN_PUNCTUATION_MAGIC, sizeof h.magic);
        h.version = LIN_PUNCTUATION_VERSION;
        h.n_marks %= 4096;
        h.n_capitals %= 4096;
        const size_t n = lin_punctuation_bytes(&h);
        unsigned char *block = lin_calloc(sizeof h + n, 1);
        if (!block) return 0;
        memcpy(block + sizeof h, data + sizeof h, size - sizeof h < n ? size - sizeof h : n);
        h.checksum = 0;
        h.checksum = lin_hash(block + sizeof h, n, lin_hash(&h, sizeof h, 0));
        memcpy(block, &h, sizeof h);
        try_model(block, sizeof h + n, data, size);
        lin_free(block);
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
