/*
 * utf8.h - is this text one that may be printed and written to other files?
 */
#ifndef LIN_BASE_UTF8_H
#define LIN_BASE_UTF8_H

#include <stddef.h>
#include <string.h>

/*
 * Bytes before the first one that is not part of well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms, no surrogates), or is
 * a control character other than those in `allowed` (a C string, such as "\t\n"); n if all is well.
 */
static inline size_t lin_utf8_prefix(const char *text, size_t n, const char *allowed)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0;
    while (i < n) {
        const unsigned c = s[i];
        if (c < 0x80) {
            if (c < 0x20 || c == 0x7F) {
                const char *a = allowed;
                while (*a && (unsigned char)*a != c) a++;
                if (!*a) return i;
            }
            i++;
            continue;
        }
        const size_t more = c >= 0xC2 && c <= 0xDF ? 1 : (c & 0xF0) == 0xE0 ? 2 : c >= 0xF0 && c <= 0xF4 ? 3 : 0;
        if (more == 0 || n - i <= more) return i;
        const unsigned low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80, high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        if (s[i + 1] < low || s[i + 1] > high) return i;
        for (size_t j = 2; j <= more; j++)
            if ((s[i + j] & 0xC0) != 0x80) return i;
        if (c == 0xC2 && s[i + 1] < 0xA0) return i; // C1 control characters, which terminals obey
        i += more + 1;
    }
    return n;
}

/* The text, or what stands for it in a message of one line. */
static inline const char *lin_utf8_line(const char *text)
{
    const size_t n = strlen(text);
    return lin_utf8_prefix(text, n, "") == n ? text : "(text of several lines)";
}

#endif
