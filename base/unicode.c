// unicode.c - NFC of Latin, Greek and Cyrillic, invisible characters, UTF-16; see unicode.h.

#include "base/unicode.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode_table.h"
#include "base/utf8.h"

enum { FIRST_MARK = 0x300, END_MARK = 0x370, MOST_MARKS = 30 };
enum { PAIRS = sizeof lin_unicode_pairs / sizeof *lin_unicode_pairs,
       SINGLETONS = sizeof lin_unicode_singletons / sizeof *lin_unicode_singletons };

static int is_mark(unsigned code) { return code >= FIRST_MARK && code < END_MARK; }

static int class_of(unsigned mark) { return lin_unicode_classes[mark - FIRST_MARK]; }

// Soft hyphen, grapheme joiner, zero-width spaces and joiners, direction marks, byte order mark.
static int is_invisible(unsigned code)
{
    return code == 0xAD || code == 0x34F || code == 0x61C || code == 0x180E || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2060 && code <= 0x2064) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}

static unsigned replacement(unsigned code)
{
    for (int i = 0; code >= 0x340 && i < SINGLETONS; i++) {
        if (lin_unicode_singletons[i][0] == code) return lin_unicode_singletons[i][1];
    }
    return code;
}

unsigned lin_unicode_split(unsigned code, unsigned *mark)
{
    for (int low = 0, high = PAIRS; low < high;) {
        const int middle = (low + high) / 2;
        const unsigned short *pair = lin_unicode_pairs[lin_unicode_order[middle]];
        if (pair[2] == code) {
            *mark = pair[1];
            return pair[0];
        }
        if (pair[2] < code) low = middle + 1;
        else high = middle;
    }
    return 0;
}

// The letter with the mark, 0 if there is none.
static unsigned join(unsigned letter, unsigned mark)
{
    for (int low = 0, high = PAIRS; low < high;) {
        const int middle = (low + high) / 2;
        const unsigned short *pair = lin_unicode_pairs[middle];
        if (pair[0] == letter && pair[1] == mark) return pair[2];
        if (pair[0] < letter || (pair[0] == letter && pair[1] < mark)) low = middle + 1;
        else high = middle;
    }
    return 0;
}

static void put(lin_buffer *out, unsigned code)
{
    char bytes[4];
    lin_buffer_bytes(out, bytes, lin_utf8_encode(code, bytes));
}

// A letter and the marks behind it (UAX 15: decompose, put in canonical order, compose).
static void put_cluster(lin_buffer *out, unsigned letter, const unsigned *marks, int n)
{
    unsigned all[MOST_MARKS + 4], mark, base;
    int n_all = 0, class_before = 0;
    while ((base = lin_unicode_split(letter, &mark))) {
        memmove(all + 1, all, (size_t)n_all * sizeof *all);
        all[0] = mark;
        letter = base;
        n_all++;
    }
    for (int i = 0; i < n; i++) {
        int at = n_all++;
        while (at > 0 && class_of(all[at - 1]) > class_of(marks[i])) {
            all[at] = all[at - 1];
            at--;
        }
        all[at] = marks[i];
    }
    int kept = 0;
    for (int i = 0; i < n_all; i++) {
        // A mark that stays keeps others of its class from the letter.
        const unsigned joined = kept && class_before == class_of(all[i]) ? 0 : join(letter, all[i]);
        if (joined) {
            letter = joined;
        } else {
            class_before = class_of(all[i]);
            all[kept++] = all[i];
        }
    }
    put(out, letter);
    for (int i = 0; i < kept; i++) put(out, all[i]);
}

static lin_status compose(const char *text, size_t n, lin_buffer *out, lin_error *err)
{
    unsigned letter = 0, code;
    unsigned marks[MOST_MARKS];
    int has_letter = 0, n_marks = 0;
    for (size_t at = 0, step; at < n; at += step) {
        step = lin_utf8_decode(text + at, n - at, &code);
        if (is_invisible(code)) continue;
        code = replacement(code);
        if (has_letter && is_mark(code) && n_marks < MOST_MARKS) {
            marks[n_marks++] = code;
            continue;
        }
        if (has_letter && n_marks) put_cluster(out, letter, marks, n_marks);
        else if (has_letter) put(out, letter);
        letter = code;
        has_letter = 1;
        n_marks = 0;
    }
    if (has_letter && n_marks) put_cluster(out, letter, marks, n_marks);
    else if (has_letter) put(out, letter);
    if (!out->n) lin_buffer_text(out, "");
    return lin_buffer_status(out, err);
}

/* ---- letters of any script ------------------------------------------------------------------------------------------------- */

static int is_in(const unsigned (*ranges)[2], int n, unsigned code)
{
    for (int low = 0, high = n; low < high;) {
        const int middle = (low + high) / 2;
        if (code > ranges[middle][1]) low = middle + 1;
        else if (code < ranges[middle][0]) high = middle;
        else return 1;
    }
    return 0;
}

int lin_unicode_is_letter(unsigned code)
{
    return is_in(lin_unicode_letters, sizeof lin_unicode_letters / sizeof *lin_unicode_letters, code);
}

int lin_unicode_is_punctuation(unsigned code)
{
    return is_in(lin_unicode_punctuation, sizeof lin_unicode_punctuation / sizeof *lin_unicode_punctuation, code);
}

unsigned lin_unicode_lower(unsigned code)
{
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    for (int low = 0, high = sizeof lin_unicode_capitals / sizeof *lin_unicode_capitals; low < high;) {
        const int middle = (low + high) / 2, *range = lin_unicode_capitals[middle];
        if (code > (unsigned)range[1]) low = middle + 1;
        else if (code < (unsigned)range[0]) high = middle;
        else return (code - (unsigned)range[0]) % (unsigned)range[2] ? code : (unsigned)((int)code + range[3]);
    }
    return code;
}

size_t lin_unicode_lower_text(char *out, const char *text, size_t n)
{
    size_t used = 0;
    for (size_t at = 0, step; at < n; at += step) {
        unsigned code;
        step = 1;
        if ((unsigned char)text[at] < 0x80) {
            out[used++] = lin_lower(text[at]);
            continue;
        }
        step = lin_utf8_decode(text + at, n - at, &code);
        if (step) used += lin_utf8_encode(lin_unicode_lower(code), out + used);
        else out[used++] = text[at], step = 1;
    }
    return used;
}

/* ---- UTF-16 ---------------------------------------------------------------------------------------------------------------- */

static unsigned unit(const char *bytes, int big)
{
    const unsigned char a = (unsigned char)bytes[0], b = (unsigned char)bytes[1];
    return big ? (unsigned)a << 8 | b : (unsigned)b << 8 | a;
}

// A surrogate without its partner becomes U+FFFD.
static lin_status from_utf16(const char *bytes, size_t n, char **text, size_t *n_text, lin_error *err)
{
    const int big = (unsigned char)bytes[0] == 0xFE;
    char *out = lin_alloc(n / 2 * 3 + 1, 1);
    size_t used = 0;
    if (!out) return lin_no_memory(err, "a text in UTF-16", n / 2 * 3 + 1);
    for (size_t at = 2; at + 2 <= n; at += 2) {
        unsigned code = unit(bytes + at, big);
        if (code >= 0xD800 && code < 0xDC00 && at + 4 <= n) {
            const unsigned low = unit(bytes + at + 2, big);
            if (low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                at += 2;
            }
        }
        used += lin_utf8_encode(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code, out + used);
    }
    out[used] = '\0';
    *text = out;
    *n_text = used;
    return LIN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

// The first byte that is not of UTF-8, or n; *changes: something has to be composed or dropped.
static size_t look(const char *text, size_t n, int *changes)
{
    unsigned code;
    *changes = 0;
    for (size_t at = 0, step; at < n; at += step) {
        step = 1;
        if ((unsigned char)text[at] < 0x80) continue;
        step = lin_utf8_decode(text + at, n - at, &code);
        if (!step) return at;
        *changes |= is_mark(code) || is_invisible(code) || replacement(code) != code;
    }
    return n;
}

static lin_status refuse(const char *text, size_t n, size_t bad, const char *name, lin_error *err)
{
    int line = 1;
    for (size_t i = 0; i < bad; i++) line += text[i] == '\n';
    const int is_wide = n >= 2 && (!text[0] || !text[1]);
    return lin_fail(err, LIN_FORMAT, "%s:%d: byte 0x%02x is not UTF-8; convert the text, for example with iconv -f %s -t UTF-8",
                    name ? name : "the text", line, (unsigned char)text[bad], is_wide ? "UTF-16LE" : "WINDOWS-1252");
}

lin_status lin_unicode_clean(const char *text, size_t n, const char *name, lin_unicode_rule rule, char **own, const char **clean,
                             size_t *n_clean, lin_error *err)
{
    lin_status status = LIN_OK;
    int changes;
    *own = NULL;
    if (n >= 2 && ((unsigned char)text[0] ^ (unsigned char)text[1]) == 1 && ((unsigned char)text[0] | 1) == 0xFF) {
        status = from_utf16(text, n, own, &n, err);
        if (status != LIN_OK) return status;
        text = *own;
    }
    size_t bad = look(text, n, &changes);
    if (rule == LIN_UNICODE_ONLY && bad == n && n >= 2 && (!text[0] || !text[1])) bad = !text[0] ? 0 : 1; // UTF-16 of ASCII
    if (bad < n && rule == LIN_UNICODE_ONLY) {
        lin_free(*own);
        *own = NULL;
        return refuse(text, n, bad, name, err);
    }
    if (bad == n && changes) {
        lin_buffer out = {0};
        status = compose(text, n, &out, err);
        lin_free(*own);
        *own = status == LIN_OK ? out.data : NULL;
        if (status != LIN_OK) {
            lin_buffer_free(&out);
            return status;
        }
        text = out.data;
        n = out.n;
    }
    *clean = text;
    *n_clean = n;
    return LIN_OK;
}
