// chunked.c - a body in chunks; see chunked.h.

#include "serve/chunked.h"

enum { MOST_DIGITS = 12, MOST_EXTRA = 4096 }; // a size of 256 TB; what nobody reads

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    const char small = (char)(c | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

static lin_chunked_state expect(char c, char wanted, lin_chunked_state then) { return c == wanted ? then : LIN_CHUNKED_BAD; }

// One byte that is not the body's.
static lin_chunked_state step(lin_chunked *k, char c)
{
    const int digit = hex(c);
    switch (k->state) {
    case LIN_CHUNKED_SIZE:
        if (digit >= 0 && k->digits < MOST_DIGITS) {
            k->left = k->digits++ ? k->left << 4 | (uint64_t)digit : (uint64_t)digit;
            return LIN_CHUNKED_SIZE;
        }
        if (!k->digits || digit >= 0) return LIN_CHUNKED_BAD;
        if (c == '\r') return LIN_CHUNKED_SIZE_END;
        return c == ';' || c == ' ' || c == '\t' ? LIN_CHUNKED_EXTENSION : LIN_CHUNKED_BAD;
    case LIN_CHUNKED_EXTENSION:
        if (c == '\n' || ++k->extra > MOST_EXTRA) return LIN_CHUNKED_BAD;
        return c == '\r' ? LIN_CHUNKED_SIZE_END : LIN_CHUNKED_EXTENSION;
    case LIN_CHUNKED_SIZE_END:
        k->digits = 0;
        return expect(c, '\n', k->left ? LIN_CHUNKED_DATA : LIN_CHUNKED_FIELD);
    case LIN_CHUNKED_DATA_CR: return expect(c, '\r', LIN_CHUNKED_DATA_LF);
    case LIN_CHUNKED_DATA_LF: return expect(c, '\n', LIN_CHUNKED_SIZE);
    case LIN_CHUNKED_FIELD:
    case LIN_CHUNKED_FIELD_REST:
        if (c == '\r') return k->state == LIN_CHUNKED_FIELD ? LIN_CHUNKED_LAST_LF : LIN_CHUNKED_FIELD_LF;
        return c == '\n' || ++k->extra > MOST_EXTRA ? LIN_CHUNKED_BAD : LIN_CHUNKED_FIELD_REST;
    case LIN_CHUNKED_FIELD_LF: return expect(c, '\n', LIN_CHUNKED_FIELD);
    case LIN_CHUNKED_LAST_LF: return expect(c, '\n', LIN_CHUNKED_DONE);
    default: return k->state;
    }
}

size_t lin_chunked_take(lin_chunked *k, const char *bytes, size_t n, const char **data, size_t *n_data)
{
    size_t at = 0;
    *data = bytes;
    *n_data = 0;
    if (k->state >= LIN_CHUNKED_DONE) return n;
    while (at < n && k->state != LIN_CHUNKED_DATA) {
        k->state = step(k, bytes[at++]);
        if (k->state >= LIN_CHUNKED_DONE) return n;
    }
    *data = bytes + at;
    *n_data = k->left < n - at ? (size_t)k->left : n - at;
    if (k->state != LIN_CHUNKED_DATA) *n_data = 0;
    k->left -= *n_data;
    if (k->state == LIN_CHUNKED_DATA && !k->left) k->state = LIN_CHUNKED_DATA_CR;
    return at + *n_data;
}
