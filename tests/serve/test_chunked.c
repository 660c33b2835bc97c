// A body in chunks, against the examples of RFC 9112, however it is cut; and what is none.
#include "serve/chunked.h"

#include <string.h>

#include "base/memory.h"
#include "tests/support.h"

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

TEST_MAIN("serve/chunked", TEST(bodies), TEST(what_is_none))
