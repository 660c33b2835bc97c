// tls_head.c - the heads of requests over TLS (serve/head.h). libwebsockets reads what has been decrypted with SSL_read, in one
// place, and lets no function of a program see it first. This library defines SSL_read before OpenSSL does, so that the dynamic
// linker gives libwebsockets this one. Where a system's linker does not (macOS), heads go to libwebsockets as they came.

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "serve/head.h"

typedef struct head {
    int done;
    size_t n;
    char bytes[LIN_HEAD_MOST], passed[LIN_HEAD_PASSED];
} head;

static int place; // of the head in a connection
static int (*read_on)(SSL *, void *, int);
static head over = {.done = 1};

static void free_head(void *parent, void *at, CRYPTO_EX_DATA *data, int index, long argument, void *pointer)
{
    (void)parent, (void)data, (void)index, (void)argument, (void)pointer;
    if (at != &over) lin_free(at);
}

static void find(void)
{
    void *const symbol = dlsym(RTLD_NEXT, "SSL_read");
    memcpy(&read_on, &symbol, sizeof read_on);
    place = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_head);
}

// The head and what came with it, once it is complete; 0: refused.
static int pass(SSL *ssl, head *h, size_t n_head, char *to, int most)
{
    char answer[LIN_HEAD_ANSWER];
    size_t n_passed = 0;
    const char *why = "the headers are too long";
    const int refusal = n_head ? lin_head_read(h->bytes, n_head, h->passed, &n_passed, &why) : 431;
    const size_t rest = h->n - n_head;
    if (refusal || n_passed + rest > (size_t)most) {
        SSL_write(ssl, answer, (int)lin_head_refusal(refusal ? refusal : 431, why, answer));
        SSL_shutdown(ssl);
        return 0;
    }
    memcpy(to, h->passed, n_passed);
    memcpy(to + n_passed, h->bytes + n_head, rest);
    int n = (int)(n_passed + rest), more;
    // libwebsockets looks for more in the same record only where its buffer is full.
    while (n < most && SSL_pending(ssl) > 0 && (more = read_on(ssl, to + n, most - n)) > 0) n += more;
    return n;
}

__attribute__((visibility("default"))) int SSL_read(SSL *ssl, void *to, int most)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    head *h = SSL_get_ex_data(ssl, place);
    if (!SSL_is_server(ssl) || place < 0 || (h && h->done)) return read_on(ssl, to, most);
    if (!h) h = lin_calloc(1, sizeof *h);
    if (!h || !SSL_set_ex_data(ssl, place, h)) return 0;
    size_t n_head;
    while ((n_head = lin_head_length(h->bytes, h->n)) == 0 && h->n < sizeof h->bytes) {
        const size_t room = sizeof h->bytes - h->n;
        const int n = read_on(ssl, h->bytes + h->n, room < (size_t)most ? (int)room : most);
        if (n <= 0) return n; // SSL_get_error says why
        h->n += (size_t)n;
    }
    const int n = pass(ssl, h, n_head, to, most);
    SSL_set_ex_data(ssl, place, &over);
    lin_free(h);
    return n;
}
