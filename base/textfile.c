// textfile.c - reading files, lines, fields and numbers; see textfile.h.

#include "base/textfile.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/unicode.h"

static lin_status read_open_file(FILE *file, const char *path, char **text, size_t *n, lin_error *err)
{
    struct stat st;
    size_t capacity = 1 << 16;
    if (fstat(fileno(file), &st)) return lin_fail(err, LIN_IO, "cannot read %s: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((unsigned long long)st.st_size > LIN_TEXT_MAX_BYTES) {
            return lin_fail(err, LIN_FORMAT, "%s is too large for a text file: %lld bytes", path, (long long)st.st_size);
        }
        capacity = (size_t)st.st_size + 2; // one for the NUL, one so that the first read reaches the end of the file
    }
    char *block = lin_alloc(capacity, 1);
    if (!block) return lin_no_memory(err, path, capacity);
    size_t used = 0;
    for (;;) {
        used += fread(block + used, 1, capacity - 1 - used, file);
        if (used < capacity - 1) break;
        if (capacity > LIN_TEXT_MAX_BYTES) {
            lin_free(block);
            return lin_fail(err, LIN_FORMAT, "%s is too large for a text file: over %zu bytes", path, LIN_TEXT_MAX_BYTES);
        }
        lin_status status = lin_grow(&block, &capacity, capacity + 1, 1, path, err);
        if (status != LIN_OK) {
            lin_free(block);
            return status;
        }
    }
    if (ferror(file)) {
        int code = errno;
        lin_free(block);
        return lin_fail(err, LIN_IO, "cannot read %s: %s", path, strerror(code));
    }
    block[used] = '\0';
    *text = block;
    *n = used;
    return LIN_OK;
}

lin_status lin_text_read(const char *path, char **text, size_t *n, lin_error *err)
{
    *text = NULL;
    *n = 0;
    FILE *file;
    lin_status status = lin_file_open_stream(path, &file, err);
    if (status != LIN_OK) return status;
    status = read_open_file(file, path, text, n, err);
    fclose(file);
    if (status != LIN_OK || !lin_gzip_is(*text, *n)) return status;
    char *packed = *text;
    status = lin_gzip_expand(packed, *n, LIN_TEXT_MAX_BYTES, path, text, n, err);
    lin_free(packed);
    return status;
}

size_t lin_text_mark(const char *text, size_t n) { return n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0; }

void lin_lines_begin(lin_lines *lines, const char *text, size_t n)
{
    *lines = (lin_lines){.begin = text, .next = text, .end = n ? text + n : text};
    lines->next += lin_text_mark(text, n);
}

int lin_lines_next(lin_lines *lines)
{
    if (lines->next == lines->end) return 0;
    size_t left = (size_t)(lines->end - lines->next);
    const char *stop = memchr(lines->next, '\n', left);
    lines->text = lines->next;
    lines->offset = (size_t)(lines->text - lines->begin);
    lines->n = stop ? (size_t)(stop - lines->text) : left;
    lines->next = stop ? stop + 1 : lines->end;
    if (lines->n && lines->text[lines->n - 1] == '\r') lines->n--;
    lines->number++;
    return 1;
}

int lin_field_next(const char **at, const char *end, const char **field, size_t *n)
{
    const char *p = *at;
    while (p < end && lin_is_space(*p)) p++;
    const char *begin = p;
    while (p < end && !lin_is_space(*p)) p++;
    *at = p;
    *field = begin;
    *n = (size_t)(p - begin);
    return p > begin;
}

size_t lin_text_find_control(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 32 && c != '\t') || c == 127) return i;
    }
    return n;
}

const char *lin_quote(char out[LIN_QUOTE], const char *text, size_t n)
{
    const size_t room = n < LIN_QUOTE ? n : LIN_QUOTE - 4;
    size_t at = 0;
    while (at < room) {
        unsigned code = 0;
        const size_t k = lin_utf8_decode(text + at, n - at, &code), step = k ? k : 1;
        const int is_printable = k && code >= 32 && code != 127 && (code < 128 || code >= 0xA0);
        if (at + step > room) break; // no partial character before the dots
        for (size_t i = 0; i < step; i++) out[at + i] = is_printable ? text[at + i] : '?';
        at += step;
    }
    memcpy(out + at, at < n ? "..." : "", at < n ? 4 : 1);
    return out;
}

char *lin_text_copy(const char *text, size_t n)
{
    char *copy = lin_alloc(n + 1, 1);
    if (!copy) return NULL;
    if (n) memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

int lin_text_number(const char *text, size_t n, double *value)
{
    size_t i = 0, n_digits = 0;
    double mantissa = 0;
    int negative = 0, exponent = 0, exponent_sign = 1, written = 0;
    if (i < n && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
    for (; i < n && lin_is_digit(text[i]); i++, n_digits++) mantissa = mantissa * 10 + (text[i] - '0');
    if (i < n && text[i] == '.') {
        for (i++; i < n && lin_is_digit(text[i]); i++, n_digits++) {
            mantissa = mantissa * 10 + (text[i] - '0');
            exponent--;
        }
    }
    if (!n_digits || n_digits > 30) return 0;
    if (i < n && (text[i] == 'e' || text[i] == 'E')) {
        size_t first;
        i++;
        if (i < n && (text[i] == '-' || text[i] == '+')) exponent_sign = text[i++] == '-' ? -1 : 1;
        for (first = i; i < n && lin_is_digit(text[i]) && i - first < 4; i++) written = written * 10 + (text[i] - '0');
        if (i == first) return 0;
    }
    if (i != n) return 0;
    *value = (negative ? -mantissa : mantissa) * pow(10.0, exponent + exponent_sign * written);
    return isfinite(*value);
}

/* ---- gzip ------------------------------------------------------------------------------------------------------------------ */

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
