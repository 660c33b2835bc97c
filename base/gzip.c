// gzip.c - expanding gzip'd bytes with zlib; see gzip.h.

#include "base/gzip.h"

#include <limits.h>
#include <stdint.h>
#include <zlib.h>

#include "base/memory.h"

static void *allocate(void *opaque, unsigned count, unsigned size)
{
    (void)opaque;
    return lin_calloc(count, size);
}

static void release(void *opaque, void *block)
{
    (void)opaque;
    lin_free(block);
}

typedef struct output {
    char *text;
    size_t used, capacity, most;
} output;

static lin_status grow(output *out, const char *name, lin_error *err)
{
    size_t larger = out->capacity <= out->most / 2 ? out->capacity * 2
                                                   : out->most + 2; // one to detect too much, one for the NUL
    if (out->used > out->most)
        return lin_fail(err, LIN_FORMAT, "%s: over %zu bytes when expanded, too many for a text file", name, out->most);
    char *text = lin_resize(out->text, larger, 1);
    if (!text) return lin_no_memory(err, name, larger);
    out->text = text;
    out->capacity = larger;
    return LIN_OK;
}

static lin_status expand(z_stream *z, const unsigned char *bytes, size_t n, output *out, const char *name, lin_error *err)
{
    size_t taken = 0;
    for (;;) {
        if (out->used + 1 >= out->capacity) { // one byte is for the NUL
            lin_status status = grow(out, name, err);
            if (status != LIN_OK) return status;
        }
        size_t left = n - taken, room = out->capacity - 1 - out->used;
        z->next_in = (Bytef *)(uintptr_t)(bytes + taken);
        z->avail_in = (uInt)(left < UINT_MAX / 2 ? left : UINT_MAX / 2);
        z->next_out = (Bytef *)out->text + out->used;
        z->avail_out = (uInt)(room < UINT_MAX / 2 ? room : UINT_MAX / 2);
        const unsigned before_in = z->avail_in, before_out = z->avail_out;
        int code = inflate(z, Z_NO_FLUSH);
        taken += before_in - z->avail_in;
        out->used += before_out - z->avail_out;
        if (code == Z_STREAM_END) {
            while (taken < n && !bytes[taken]) taken++; // padding, as on tapes
            if (taken == n && out->used > out->most) return grow(out, name, err);
            if (taken == n) return LIN_OK;
            if (!lin_gzip_is(bytes + taken, n - taken))
                return lin_fail(err, LIN_FORMAT, "%s: other data follow the gzip'd text at byte %zu; remove them", name, taken);
            if (inflateReset(z) != Z_OK)
                return lin_fail(err, LIN_FORMAT, "%s: the gzip data are damaged at byte %zu", name, taken);
            continue;
        }
        if (code == Z_MEM_ERROR) return lin_no_memory(err, name, 0);
        if (code != Z_OK && code != Z_BUF_ERROR)
            return lin_fail(err, LIN_FORMAT, "%s: the gzip data are damaged before byte %zu of %zu (%s); get a new copy", name,
                            taken, n, z->msg ? z->msg : "no gzip");
        if (taken == n && out->used + 1 < out->capacity)
            return lin_fail(err, LIN_FORMAT, "%s: the gzip data are truncated after %zu bytes; get a new copy", name, n);
    }
}

lin_status lin_gzip_expand(const void *bytes, size_t n, size_t most, const char *name, char **text, size_t *n_text,
                           lin_error *err)
{
    *text = NULL;
    *n_text = 0;
    // The last four bytes give the length of the text, modulo 2^32 and for the last member only: a first estimate. Deflate
    // compresses at most 1032 to 1.
    const unsigned char *b = bytes;
    size_t guess = 0;
    if (n > 4) guess = b[n - 4] | (size_t)b[n - 3] << 8 | (size_t)b[n - 2] << 16 | (size_t)b[n - 1] << 24;
    if (guess > most) guess = most;
    if (guess / 1032 > n) guess = n;
    output out = {.capacity = guess + 2, .most = most};
    out.text = lin_alloc(out.capacity, 1);
    if (!out.text) return lin_no_memory(err, name, out.capacity);
    z_stream z = {.zalloc = allocate, .zfree = release};
    lin_status status = inflateInit2(&z, 15 + 16) == Z_OK ? LIN_OK : lin_no_memory(err, name, 0);
    if (status == LIN_OK) {
        status = expand(&z, b, n, &out, name, err);
        inflateEnd(&z);
    }
    if (status != LIN_OK) {
        lin_free(out.text);
        return status;
    }
    out.text[out.used] = '\0';
    *text = out.text;
    *n_text = out.used;
    return LIN_OK;
}
