// utf8.c - decoding, encoding and checking UTF-8; see utf8.h.

#include "base/utf8.h"

#include <string.h>

size_t lin_utf8_decode(const char *text, size_t n, unsigned *code)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (!n) return 0;
    size_t k = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (!k || k > n) return 0;
    *code = k == 1 ? s[0] : s[0] & (0x7Fu >> k);
    for (size_t i = 1; i < k; i++) {
        if (s[i] >> 6 != 2) return 0;
        *code = *code << 6 | (s[i] & 0x3Fu);
    }
    return *code < least[k] || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000) ? 0 : k;
}

size_t lin_utf8_length(const char *text, size_t n)
{
    unsigned code;
    return lin_utf8_decode(text, n, &code);
}

size_t lin_utf8_encode(unsigned code, char out[4])
{
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    for (int i = more; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(first[more] | code);
    return (size_t)more + 1;
}

size_t lin_utf8_count(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

size_t lin_utf8_prefix(const char *text, size_t n, const char *allowed)
{
    size_t i = 0;
    while (i < n) {
        unsigned code = (unsigned char)text[i];
        const size_t k = code < 0x80 ? 1 : lin_utf8_decode(text + i, n - i, &code);
        if (!k || (code >= 0x7F && code < 0xA0)) return i; // terminals obey U+0080-009F too
        if (code < 0x20 && (!code || !strchr(allowed, (int)code))) return i;
        i += k;
    }
    return n;
}

const char *lin_utf8_line(const char *text)
{
    const size_t n = strlen(text);
    return lin_utf8_prefix(text, n, "") == n ? text : "(text of several lines)";
}
