// textfile.c - reading files, lines, fields and numbers; see textfile.h.

#include "base/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/unicode.h"

static lin_status read_open_file(FILE *file, const char *path, char **text, size_t *n, lin_error *err)
{
    struct stat st;
    size_t capacity = 0, need = 1 << 15;
    if (fstat(fileno(file), &st)) return lin_fail(err, LIN_IO, "cannot read %s: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((unsigned long long)st.st_size > LIN_TEXT_MAX_BYTES)
            return lin_fail(err, LIN_FORMAT, "%s is too large for a text file: %lld bytes", path, (long long)st.st_size);
        need = (size_t)st.st_size + 2; // one for the NUL, one so that the first read reaches the end of the file
    }
    do {
        LIN_TRY(lin_grow(text, &capacity, need, 1, path, err));
        *n += fread(*text + *n, 1, capacity - 1 - *n, file);
        if (*n > LIN_TEXT_MAX_BYTES)
            return lin_fail(err, LIN_FORMAT, "%s is too large for a text file: over %zu bytes", path, LIN_TEXT_MAX_BYTES);
        need = capacity + 1;
    } while (*n == capacity - 1);
    if (ferror(file) && errno == EINTR) return lin_fail(err, LIN_STOPPED, "interrupted while %s is read", path);
    if (ferror(file)) return lin_fail(err, LIN_IO, "cannot read %s: %s", path, strerror(errno));
    (*text)[*n] = '\0';
    return LIN_OK;
}

// /dev/stdin from its present position: opening it by name would start a file again, and fail for a socket.
static lin_status open_text(const char *path, FILE **file, lin_error *err)
{
    if (strcmp(path, "/dev/stdin") != 0) return lin_file_open_stream(path, file, err);
    const int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (*file) return LIN_OK;
    const int reason = errno;
    if (fd >= 0) close(fd);
    return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(reason));
}

lin_status lin_text_read(const char *path, char **text, size_t *n, lin_error *err)
{
    FILE *file;
    *text = NULL;
    *n = 0;
    LIN_TRY(open_text(path, &file, err));
    lin_status status = read_open_file(file, path, text, n, err);
    char *read = *text;
    fclose(file);
    if (status == LIN_OK && !lin_gzip_is(read, *n)) return LIN_OK;
    *text = NULL;
    if (status == LIN_OK) status = lin_gzip_expand(read, *n, LIN_TEXT_MAX_BYTES, path, text, n, err);
    else *n = 0;
    lin_free(read);
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

lin_status lin_lines_check(const lin_lines *lines, const char *name, lin_error *err)
{
    const size_t bad = lin_text_find_control(lines->text, lines->n);
    if (bad == lines->n) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s:%d: control character 0x%02x at byte %zu of the line", name, lines->number,
                    (unsigned char)lines->text[bad], bad + 1);
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
    // Exact, so that quotients of mantissas below 2^53 are the nearest doubles.
    static const double powers[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
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
    exponent += exponent_sign * written;
    if (exponent < 0 && exponent >= -22) mantissa /= powers[-exponent];
    else if (exponent) mantissa *= pow(10.0, exponent);
    *value = negative ? -mantissa : mantissa;
    return isfinite(mantissa);
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

static lin_status expand(z_stream *z, const unsigned char *bytes, size_t n, size_t most, const char *name, char **text,
                         size_t *used, lin_error *err)
{
    enum { PIECE = 1 << 30 };
    size_t taken = 0, capacity = 0;
    for (;;) {
        LIN_TRY(lin_grow(text, &capacity, *used ? *used + 2 : 2 * n + 2, 1, name, err)); // one byte is for the NUL
        const size_t left = n - taken, room = capacity - 1 - *used;
        z->next_in = (Bytef *)(uintptr_t)(bytes + taken);
        z->avail_in = (uInt)(left < PIECE ? left : PIECE);
        z->next_out = (Bytef *)*text + *used;
        z->avail_out = (uInt)(room < PIECE ? room : PIECE);
        const unsigned before_in = z->avail_in, before_out = z->avail_out;
        const int code = inflate(z, Z_NO_FLUSH);
        taken += before_in - z->avail_in;
        *used += before_out - z->avail_out;
        if (*used > most)
            return lin_fail(err, LIN_FORMAT, "%s: over %zu bytes when expanded, too many for a text file", name, most);
        if (code == Z_STREAM_END) {
            while (taken < n && !bytes[taken]) taken++; // padding, as on tapes
            if (taken == n) break;
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
        if (taken == n && z->avail_out)
            return lin_fail(err, LIN_FORMAT, "%s: the gzip data are truncated after %zu bytes; get a new copy", name, n);
    }
    (*text)[*used] = '\0';
    return LIN_OK;
}

lin_status lin_gzip_expand(const void *bytes, size_t n, size_t most, const char *name, char **text, size_t *n_text,
                           lin_error *err)
{
    z_stream z = {.zalloc = allocate, .zfree = release};
    *text = NULL;
    *n_text = 0;
    if (inflateInit2(&z, 15 + 16) != Z_OK) return lin_no_memory(err, name, 0);
    const lin_status status = expand(&z, bytes, n, most, name, text, n_text, err);
    inflateEnd(&z);
    if (status == LIN_OK) return LIN_OK;
    lin_free(*text);
    *text = NULL;
    *n_text = 0;
    return status;
}
