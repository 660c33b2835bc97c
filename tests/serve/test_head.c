// Heads of requests: which fields the network library gets, addresses in absolute form, and what is refused.
#include "serve/head.h"

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
    ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 431 Request Header Fields Too Large\r\n"));
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

TEST_MAIN("serve/head", TEST(passed_on), TEST(refused), TEST(complete))
