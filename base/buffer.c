// buffer.c - text that grows, numbers, JSON and HTML; see buffer.h.

#include "base/buffer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/unicode.h"

// What every function finds and leaves: text within its memory, and room for a NUL behind it.
static int holds(const lin_buffer *b)
{
    return b->failed || (b->data ? b->n < b->capacity : b->n == 0 && b->capacity == 0);
}

static int make_room(lin_buffer *b, size_t n)
{
    assert(holds(b));
    if (b->failed) return 0;
    if (n > SIZE_MAX / 4 - b->n) b->failed = n;
    else if (lin_grow(&b->data, &b->capacity, b->n + n + 1, 1, "output", NULL)) b->failed = b->n + n + 1;
    return !b->failed;
}

void lin_buffer_bytes(lin_buffer *b, const void *bytes, size_t n)
{
    if (!make_room(b, n)) return;
    if (n) memcpy(b->data + b->n, bytes, n);
    b->n += n;
    b->data[b->n] = '\0';
}

void lin_buffer_text(lin_buffer *b, const char *text) { lin_buffer_bytes(b, text, strlen(text)); }

void lin_buffer_char(lin_buffer *b, char c) { lin_buffer_bytes(b, &c, 1); }

void lin_buffer_format(lin_buffer *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    if (n >= 0 && make_room(b, (size_t)n)) {
        vsnprintf(b->data + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void lin_buffer_integer(lin_buffer *b, long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    lin_buffer_text(b, text);
}

void lin_buffer_fixed(lin_buffer *b, double value, int digits)
{
    static const long long powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
    char text[64];
    if (digits < 0) digits = 0;
    if (digits > 9) digits = 9;
    double size = isfinite(value) ? fmin(fabs(value), 9e15) : 0;
    const double apart = size > 9e8 ? floor(size) : 0; // the part that would not fit when the digits are shifted before the point
    const long long scaled = llround((size - apart) * (double)powers[digits]);
    const long long whole = (long long)apart + scaled / powers[digits];
    const char *sign = value < 0 && (whole || scaled) ? "-" : "";
    if (digits) {
        snprintf(text, sizeof text, "%s%lld.%0*lld", sign, whole, digits, scaled % powers[digits]);
    } else {
        snprintf(text, sizeof text, "%s%lld", sign, whole);
    }
    lin_buffer_text(b, text);
}

void lin_buffer_json(lin_buffer *b, const char *text, size_t n)
{
    lin_buffer_char(b, '"');
    for (size_t at = 0; at < n;) {
        unsigned char c = (unsigned char)text[at];
        size_t k = lin_utf8_decode(text + at, n - at, NULL);
        if (!k) {
            lin_buffer_text(b, "\xEF\xBF\xBD");
        } else if (c == '"' || c == '\\') {
            lin_buffer_char(b, '\\');
            lin_buffer_char(b, (char)c);
        } else if (c < 32 || c == 127) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", c);
            lin_buffer_text(b, escape);
        } else {
            lin_buffer_bytes(b, text + at, k);
        }
        at += k ? k : 1;
    }
    lin_buffer_char(b, '"');
}

void lin_buffer_json_format(lin_buffer *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    for (;;) {
        const size_t plain = strcspn(fmt, "%'");
        lin_buffer_bytes(b, fmt, plain);
        fmt += plain;
        if (!*fmt) break;
        const char kind = *fmt++ == '\'' ? '"' : *fmt++;
        const char *text;
        switch (kind) {
        case 's':
            text = va_arg(args, const char *);
            if (text) lin_buffer_json(b, text, strlen(text));
            else lin_buffer_text(b, "null");
            break;
        case 'd': lin_buffer_integer(b, va_arg(args, int)); break;
        case 'l': // lld
            lin_buffer_integer(b, va_arg(args, long long));
            fmt += 2;
            break;
        case '.': // of a digit and f
            lin_buffer_fixed(b, va_arg(args, double), *fmt - '0');
            fmt += 2;
            break;
        default: lin_buffer_char(b, kind);
        }
    }
    va_end(args);
}

void lin_buffer_key(lin_buffer *b, const char *key)
{
    if (b->n && b->data[b->n - 1] != '{') lin_buffer_char(b, ',');
    lin_buffer_json(b, key, strlen(key));
    lin_buffer_char(b, ':');
}

void lin_buffer_shell(lin_buffer *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%";
    if (*word && !word[strspn(word, plain)]) {
        lin_buffer_text(b, word);
        return;
    }
    lin_buffer_char(b, '\'');
    for (; *word; word++) {
        if (*word == '\'') lin_buffer_text(b, "'\\''");
        else lin_buffer_char(b, *word);
    }
    lin_buffer_char(b, '\'');
}

void lin_buffer_html(lin_buffer *b, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        unsigned char c = (unsigned char)text[at];
        size_t k = lin_utf8_decode(text + at, n - at, NULL);
        switch (k && (c < 32 || c == 127) ? 0 : c) {
        case '<': lin_buffer_text(b, "&lt;"); break;
        case '>': lin_buffer_text(b, "&gt;"); break;
        case '&': lin_buffer_text(b, "&amp;"); break;
        case '"': lin_buffer_text(b, "&quot;"); break;
        case '\'': lin_buffer_text(b, "&#39;"); break;
        case 0: lin_buffer_text(b, "\xEF\xBF\xBD"); break;
        default:
            if (k) lin_buffer_bytes(b, text + at, k);
            else lin_buffer_text(b, "\xEF\xBF\xBD");
        }
        at += k ? k : 1;
    }
}

void lin_buffer_pad(lin_buffer *b, size_t from, size_t width, int right)
{
    if (b->failed || b->n < from || b->n - from >= width) return;
    size_t used = b->n - from, blanks = width - used;
    if (!make_room(b, blanks)) return;
    if (right) memmove(b->data + from + blanks, b->data + from, used);
    memset(b->data + from + (right ? 0 : used), ' ', blanks);
    b->n += blanks;
    b->data[b->n] = '\0';
}

lin_status lin_buffer_status(const lin_buffer *b, lin_error *err)
{
    return b->failed ? lin_no_memory(err, "output", b->failed) : LIN_OK;
}

lin_status lin_buffer_write(const lin_buffer *b, FILE *file, const char *name, lin_error *err)
{
    assert(holds(b));
    LIN_TRY(lin_buffer_status(b, err));
    if (fwrite(b->data ? b->data : "", 1, b->n, file) != b->n || fflush(file)) {
        return lin_fail(err, LIN_IO, "cannot write %s: %s%s", name, strerror(errno), lin_write_remedy(errno));
    }
    return LIN_OK;
}

void lin_buffer_clear(lin_buffer *b)
{
    b->n = 0;
    b->failed = 0;
    if (b->data) b->data[0] = '\0';
}

void lin_buffer_free(lin_buffer *b)
{
    lin_free(b->data);
    *b = (lin_buffer){0};
}

void lin_scratch_free(lin_buffer *scratch, lin_buffer *out)
{
    if (scratch->failed) out->failed = scratch->failed;
    lin_buffer_free(scratch);
}
