// http.c - heads of requests and chunked bodies; see http.h.

#include "serve/http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the head of a request ------------------------------------------------------------------------------------------------- */

enum { MOST_FIELDS = 64, MOST_PARAMETERS = 64 };

typedef struct text {
    const char *at;
    size_t n;
} text;

typedef struct passed {
    char *out;
    size_t n;
    int overflows, fields;
} passed;

static void put(passed *p, const char *at, size_t n)
{
    p->overflows |= n > LIN_HEAD_PASSED - p->n;
    if (p->overflows) return;
    memcpy(p->out + p->n, at, n);
    p->n += n;
}

static void put_field(passed *p, const char *name, size_t n_name, text value)
{
    put(p, name, n_name);
    put(p, ": ", 2);
    put(p, value.at, value.n);
    put(p, "\r\n", 2);
    p->overflows |= ++p->fields > MOST_FIELDS;
}

static int is(text t, const char *word) { return t.n == strlen(word) && strncasecmp(t.at, word, t.n) == 0; }

static int is_among(text t, const char *const *words)
{
    for (; *words; words++) {
        if (is(t, *words)) return 1;
    }
    return 0;
}

// The next line, without its end.
static text take_line(const char *bytes, size_t n, size_t *at)
{
    const char *end = memchr(bytes + *at, '\n', n - *at);
    text line = {bytes + *at, end ? (size_t)(end - (bytes + *at)) : n - *at};
    *at += line.n + (end != NULL);
    if (line.n && line.at[line.n - 1] == '\r') line.n--;
    return line;
}

// The part up to the next blank.
static text take_word(text *line)
{
    const char *blank = memchr(line->at, ' ', line->n);
    const text word = {line->at, blank ? (size_t)(blank - line->at) : line->n};
    line->at += word.n + (blank != NULL);
    line->n -= word.n + (blank != NULL);
    return word;
}

size_t lin_head_length(const char *bytes, size_t n)
{
    size_t at = 0;
    while (at < n && (bytes[at] == '\r' || bytes[at] == '\n')) at++; // before the first line (RFC 9112, 2.2)
    while (at < n) {
        const char *end = memchr(bytes + at, '\n', n - at);
        if (!end) return 0;
        const size_t length = (size_t)(end - (bytes + at));
        at += length + 1;
        if (length == 0 || (length == 1 && end[-1] == '\r')) return at;
    }
    return 0;
}

// The value of a hexadecimal digit; -1: it is none.
static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    const char small = (char)(c | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// What libwebsockets would refuse. NULL: nothing.
static const char *find_fault(text target)
{
    int parameters = 0;
    for (size_t i = 0; i < target.n; i++) {
        const char c = target.at[i];
        if ((unsigned char)c < 32 || c == 127) return "the address has a control character";
        parameters += c == '&' || c == ';';
        if (c != '%') continue;
        if (i + 2 >= target.n || hex(target.at[i + 1]) < 0 || hex(target.at[i + 2]) < 0 ||
            strncmp(target.at + i, "%00", 3) == 0)
            return "the address has a % without two digits of a character";
    }
    return parameters > MOST_PARAMETERS ? "the address has too many parameters" : NULL;
}

// Splits an address in absolute form. 0: it has another form.
static int take_authority(text *target, text *authority)
{
    const size_t n_scheme = target->n > 7 && strncasecmp(target->at, "http://", 7) == 0     ? 7
                            : target->n > 8 && strncasecmp(target->at, "https://", 8) == 0 ? 8
                                                                                           : 0;
    if (!n_scheme) return 0;
    size_t n = n_scheme;
    while (n < target->n && target->at[n] != '/' && target->at[n] != '?') n++;
    *authority = (text){target->at + n_scheme, n - n_scheme};
    target->at += n;
    target->n -= n;
    return 1;
}

static int read_first_line(text line, passed *p, text *authority, const char **why)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH", NULL};
    const text method = take_word(&line);
    text target = take_word(&line);
    *why = "this is no request of HTTP/1.1";
    if (!method.n || !target.n || line.n != 8 || memcmp(line.at, "HTTP/", 5) != 0) return 400;
    if (memcmp(line.at, "HTTP/1.", 7) != 0) return 505;
    *why = "the method is unknown: see /docs";
    if (!is_among(method, methods)) return 501;
    *why = find_fault(target);
    if (*why) return 400;
    *why = "the address does not begin with /";
    const int is_absolute = take_authority(&target, authority);
    if (!is_absolute && *target.at != '/') return 400;
    put(p, method.at, method.n);
    put(p, target.n && *target.at == '/' ? " " : " /", target.n && *target.at == '/' ? 1 : 2);
    put(p, target.at, target.n);
    put(p, " ", 1);
    put(p, line.at, line.n);
    put(p, "\r\n", 2);
    if (is_absolute) put_field(p, "Host", 4, *authority);
    return 0;
}

// libwebsockets takes the digits that a length begins with, or from 4.3 on closes the connection.
static int is_length(text value, int *n_lengths, const char **why)
{
    size_t digits = 0;
    while (digits < value.n && value.at[digits] >= '0' && value.at[digits] <= '9') digits++;
    *why = *n_lengths ? "there are two Content-Length headers" : "Content-Length is not a number";
    return !(*n_lengths)++ && digits > 0 && digits == value.n;
}

int lin_head_read(const char *head, size_t n, char *out, size_t *n_out, const char **why)
{
    // Spelled as in libwebsockets' table, if it has them.
    static const char *const read[] = {"origin", "authorization", "content-type", "content-length", "transfer-encoding", "expect",
                                       "connection", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol",
                                       "x-forwarded-for", "forwarded", NULL};
    passed p = {.out = out};
    text authority = {NULL, 0};
    size_t at = 0;
    int n_lengths = 0;
    while (at < n && (head[at] == '\r' || head[at] == '\n')) at++;
    const int refusal = read_first_line(take_line(head, n, &at), &p, &authority, why);
    if (refusal) return refusal;
    for (text line; (line = take_line(head, n, &at)).n;) {
        const char *colon = memchr(line.at, ':', line.n);
        const text name = {line.at, colon ? (size_t)(colon - line.at) : 0};
        *why = "a line of the request is no header";
        if (!name.n || memchr(name.at, ' ', name.n) || memchr(name.at, '\t', name.n)) return 400;
        text value = {colon + 1, line.n - name.n - 1};
        while (value.n && (*value.at == ' ' || *value.at == '\t')) value.at++, value.n--;
        while (value.n && (value.at[value.n - 1] == ' ' || value.at[value.n - 1] == '\t')) value.n--;
        for (size_t i = 0; i < value.n; i++) {
            if ((unsigned char)value.at[i] < 32 && value.at[i] != '\t') return 400;
        }
        if (is(name, "content-length") && !is_length(value, &n_lengths, why)) return 400;
        const int is_host = is(name, "host") && !authority.at, upgrades = is(name, "upgrade") && is(value, "websocket");
        if (is_host || upgrades || is_among(name, read)) put_field(&p, name.at, name.n, value);
    }
    put(&p, "\r\n", 2);
    *n_out = p.n;
    *why = "the address or the headers are too long";
    return p.overflows ? 431 : 0;
}

size_t lin_head_refusal(int status, const char *why, char *answer)
{
    const char *const reason = status == 400   ? "Bad Request"
                               : status == 431 ? "Request Header Fields Too Large"
                               : status == 501 ? "Not Implemented"
                                               : "HTTP Version Not Supported";
    char body[256];
    snprintf(body, sizeof body,
             "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}", why);
    const int n = snprintf(answer, LIN_HEAD_ANSWER,
                           "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\nconnection: close\r\n"
                           "x-content-type-options: nosniff\r\ncache-control: no-store\r\n\r\n%s",
                           status, reason, strlen(body), body);
    return (size_t)n;
}

/* ---- a body in chunks ------------------------------------------------------------------------------------------------------ */

enum { MOST_DIGITS = 12, MOST_EXTRA = 4096 }; // sizes below 256 TB; bytes of extensions and fields

static lin_chunked_state expect(char c, char wanted, lin_chunked_state then) { return c == wanted ? then : LIN_CHUNKED_BAD; }

// Takes one byte outside the body's data.
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
