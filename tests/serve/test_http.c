// Heads of requests: which fields the network library gets, addresses in absolute form, and what is refused. Bodies in chunks,
// against the examples of RFC 9112, however they are cut; and what is none.
#include "serve/http.h"

#include <string.h>

#include "base/memory.h"
#include "tests/support.h"

// The status; out: what is passed on.
static int read_text(const char *text, char *out)
{
    const char *why = NULL;
    const size_t n = strlen(text);
    size_t n_out = 0;
    char *exact = lin_alloc(n, 1); // so that a byte too far is seen
    memcpy(exact, text, n);
    const int status = lin_head_read(exact, n, out, &n_out, &why);
    lin_free(exact);
    ck_assert(status == 0 || *why);
    out[status ? 0 : n_out] = 0;
    return status;
}

START_TEST(passed_on)
{
    static const struct {
        const char *head, *passed;
    } cases[] = {
        {"GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nX-Auth: 1\r\nAuthorization:  Bearer x \r\nCookie: a=b; c=d\r\n\r\n",
         "GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer x\r\n\r\n"},
        {"\r\nPOST / HTTP/1.0\nCONTENT-LENGTH:5\nCache: 1\n\n", "POST / HTTP/1.0\r\nCONTENT-LENGTH: 5\r\n\r\n"},
        {"GET http://name:8/p?q HTTP/1.1\r\nHost: other\r\n\r\n", "GET /p?q HTTP/1.1\r\nHost: name:8\r\n\r\n"},
        {"GET HTTPS://name HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: name\r\n\r\n"},
        {"GET http://name?q HTTP/1.1\r\n\r\n", "GET /?q HTTP/1.1\r\nHost: name\r\n\r\n"},
        {"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "GET / HTTP/1.1\r\nConnection: Upgrade\r\n\r\n"},
        {"GET / HTTP/1.1\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n",
         "GET / HTTP/1.1\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n"},
        {"GET /%41 HTTP/1.1\r\nHost:\r\n\r\n", "GET /%41 HTTP/1.1\r\nHost: \r\n\r\n"}};
    char out[LIN_HEAD_PASSED + 1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(read_text(cases[i].head, out), 0);
        ck_assert_str_eq(out, cases[i].passed);
    }
}
END_TEST

START_TEST(refused)
{
    static const struct {
        const char *head;
        int status;
    } cases[] = {{"GET /\r\n\r\n", 400},
                 {"GET  / HTTP/1.1\r\n\r\n", 400},
                 {"GET / HTTP/2.0\r\n\r\n", 505},
                 {"BREW / HTTP/1.1\r\n\r\n", 501},
                 {"CONNECT a:1 HTTP/1.1\r\n\r\n", 501},
                 {"OPTIONS * HTTP/1.1\r\n\r\n", 400},
                 {"GET http://a\rb/ HTTP/1.1\r\n\r\n", 400},
                 {"GET /%4 HTTP/1.1\r\n\r\n", 400},
                 {"GET /% HTTP/1.1\r\n\r\n", 400},
                 {"GET /%00 HTTP/1.1\r\n\r\n", 400},
                 {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
                 {"GET / HTTP/1.1\r\nHost: h\r\n folded: x\r\n\r\n", 400},
                 {"GET / HTTP/1.1\r\nno field\r\n\r\n", 400},
                 {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400},
                 {"POST / HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n", 400},
                 {"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400},
                 {"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
                 {"\x16\x03\x01\r\n\r\n", 400}};
    char out[LIN_HEAD_PASSED + 1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) ck_assert_int_eq(read_text(cases[i].head, out), cases[i].status);
    char text[LIN_HEAD_MOST], answer[LIN_HEAD_ANSWER];
    strcpy(text, "GET /?");
    for (int i = 0; i < 100; i++) strcat(text, "a&");
    strcat(text, " HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(read_text(text, out), 400);
    strcpy(text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 100; i++) strcat(text, "Forwarded: a\r\n");
    strcat(text, "\r\n");
    ck_assert_int_eq(read_text(text, out), 431);
    memset(text, 'a', sizeof text);
    memcpy(text, "GET /", 5);
    strcpy(text + LIN_HEAD_PASSED, " HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(read_text(text, out), 431);
    const size_t n = lin_head_refusal(431, "the address or the headers are too long", answer);
    ck_assert_uint_eq(n, strlen(answer));
    HAS(answer, "HTTP/1.1 431 Request Header Fields Too Large\r\n");
}
END_TEST

START_TEST(complete)
{
    static const char *const heads[] = {"GET / HTTP/1.1\r\nA: b\r\n\r\n", "\r\n\nGET / HTTP/1.0\n\n", "\r\n\r\nx\r\n\r\n"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t n = strlen(heads[i]);
        char behind[64];
        snprintf(behind, sizeof behind, "%sbody\r\n\r\n", heads[i]);
        ck_assert_uint_eq(lin_head_length(behind, strlen(behind)), n);
        for (size_t part = 0; part < n; part++) ck_assert_uint_eq(lin_head_length(heads[i], part), 0);
    }
}
END_TEST

/* ---- a body in chunks ------------------------------------------------------------------------------------------------------ */

// The body of `text` in pieces of `step` bytes; its length, and the state in the end.
static size_t take(const char *text, size_t n, size_t step, char *body, lin_chunked_state *state)
{
    lin_chunked c = {0};
    size_t made = 0;
    for (size_t from = 0; from < n; from += step) {
        const size_t have = n - from < step ? n - from : step;
        char *piece = lin_alloc(have, 1); // so that a byte too far is seen
        memcpy(piece, text + from, have);
        for (size_t at = 0, n_data; at < have;) {
            const char *data;
            const size_t taken = lin_chunked_take(&c, piece + at, have - at, &data, &n_data);
            ck_assert_uint_ge(taken, 1);
            ck_assert(n_data == 0 || (data >= piece + at && data + n_data <= piece + at + taken));
            memcpy(body + made, data, n_data);
            made += n_data;
            at += taken;
        }
        lin_free(piece);
    }
    *state = c.state;
    return made;
}

START_TEST(bodies)
{
    static const struct {
        const char *text, *body;
    } cases[] = {{"4\r\nWiki\r\n6\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\n\r\n", "Wikipedia in \r\n\r\nchunks."},
                 {"0\r\n\r\n", ""},
                 {"00a;x=\"y\" ; z\r\n0123456789\r\n000\r\nTrailer: 1\r\nOther: 2\r\n\r\n", "0123456789"},
                 {"1 \r\na\r\n0\r\n\r\nbehind it", "a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = strlen(cases[i].text);
        for (size_t step = 1; step <= n; step++) {
            char body[64];
            lin_chunked_state state;
            const size_t made = take(cases[i].text, n, step, body, &state);
            ck_assert_int_eq(state, LIN_CHUNKED_DONE);
            ck_assert_uint_eq(made, strlen(cases[i].body));
            ck_assert_mem_eq(body, cases[i].body, made);
        }
    }
}
END_TEST

START_TEST(what_is_none)
{
    static const char *const bad[] = {
        "\r\n",    "x\r\n",           "-1\r\n",    "4\nWiki\r\n", "4\r\nWikix\r\n", "4\r\nWiki\n", "1234567890123\r\n",
        "0\r\n\n", "0\r\nField: x\n", "4;x\nWiki", "4\r Wiki",    " 4\r\nWiki"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char body[64];
        lin_chunked_state state;
        take(bad[i], strlen(bad[i]), 1, body, &state);
        ck_assert_msg(state == LIN_CHUNKED_BAD, "%s", bad[i]);
    }
    // What nobody reads is bounded.
    lin_chunked c = {0};
    const char *data;
    size_t n_data;
    lin_chunked_take(&c, "1;", 2, &data, &n_data);
    for (int i = 0; i < 5000; i++) lin_chunked_take(&c, "x", 1, &data, &n_data);
    ck_assert_int_eq(c.state, LIN_CHUNKED_BAD);
}
END_TEST

TEST_MAIN("serve/http", TEST(passed_on), TEST(refused), TEST(complete), TEST(bodies), TEST(what_is_none))
