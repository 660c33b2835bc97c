// tls.c - OpenSSL in liblinnet_web.so: sealed states, checks of certificates, heads of requests over TLS; see serve/web.h.

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve/http.h"
#include "serve/web.h"

/* ---- sealed states --------------------------------------------------------------------------------------------------------- */

// AES-256-GCM (NIST SP 800-38D): "LNSEAL1", a random nonce of 12 bytes, the encrypted bytes, a tag of 16 bytes. The magic is
// authenticated too.
enum { MAGIC = 8, NONCE = 12, TAG = 16 };

static const unsigned char magic[MAGIC] = "LNSEAL1";

lin_status lin_seal_key(const void *secret, size_t n, unsigned char key[32], lin_error *err)
{
    unsigned size = 0;
    const int done = n ? EVP_Digest(secret, n, key, &size, EVP_sha256(), NULL) == 1 && size == 32 : RAND_bytes(key, 32) == 1;
    return done ? LIN_OK : lin_fail(err, LIN_UNSUPPORTED, "OpenSSL cannot make a key");
}

lin_status lin_seal(const unsigned char key[32], const void *plain, size_t n, unsigned char *sealed, lin_error *err)
{
    EVP_CIPHER_CTX *c = n <= INT_MAX ? EVP_CIPHER_CTX_new() : NULL;
    unsigned char *const nonce = sealed + MAGIC, *const body = nonce + NONCE;
    int length, rest, done = c != NULL;
    memcpy(sealed, magic, MAGIC);
    done = done && RAND_bytes(nonce, NONCE) == 1 && EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
           EVP_EncryptUpdate(c, NULL, &length, magic, MAGIC) == 1 && EVP_EncryptUpdate(c, body, &length, plain, (int)n) == 1 &&
           EVP_EncryptFinal_ex(c, body + length, &rest) == 1 && (size_t)(length + rest) == n &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, body + n) == 1;
    EVP_CIPHER_CTX_free(c);
    return done ? LIN_OK : lin_fail(err, LIN_UNSUPPORTED, "OpenSSL cannot encrypt");
}

lin_status lin_unseal(const unsigned char key[32], const unsigned char *sealed, size_t n, unsigned char *plain, lin_error *err)
{
    unsigned char tag[TAG];
    int length, rest;
    if (n < LIN_WEB_SEAL || n > INT_MAX || memcmp(sealed, magic, MAGIC) != 0)
        return lin_fail(err, LIN_FORMAT, "these bytes are no state");
    const size_t n_plain = n - LIN_WEB_SEAL;
    const unsigned char *const nonce = sealed + MAGIC, *const body = nonce + NONCE;
    memcpy(tag, body + n_plain, TAG);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    const int done = c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
                     EVP_DecryptUpdate(c, NULL, &length, magic, MAGIC) == 1 &&
                     EVP_DecryptUpdate(c, plain, &length, body, (int)n_plain) == 1 &&
                     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
                     EVP_DecryptFinal_ex(c, plain + length, &rest) == 1;
    EVP_CIPHER_CTX_free(c);
    return done ? LIN_OK
                : lin_fail(err, LIN_MISMATCH, "the state was saved for another token or with another key, or was changed");
}

/* ---- certificates ---------------------------------------------------------------------------------------------------------- */

// Refuses passphrases: nobody could type one.
static int no_passphrase(char *text, int capacity, int writes, void *context)
{
    (void)text, (void)capacity, (void)writes;
    *(int *)context = 1;
    return 0;
}

static lin_status check(SSL_CTX *c, const char *certificate, const char *key, lin_error *err)
{
    const char *const files[] = {certificate, key};
    int asked = 0;
    for (int i = 0; i < 2; i++) {
        if (access(files[i], R_OK) != 0) return lin_fail(err, LIN_IO, "cannot open %s: %s", files[i], strerror(errno));
    }
    SSL_CTX_set_default_passwd_cb(c, no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(c, &asked);
    if (SSL_CTX_use_certificate_chain_file(c, certificate) != 1)
        return lin_fail(err, LIN_FORMAT, "%s: this is no certificate in PEM form (-----BEGIN CERTIFICATE-----)", certificate);
    if (SSL_CTX_use_PrivateKey_file(c, key, SSL_FILETYPE_PEM) == 1) return LIN_OK;
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        return lin_fail(err, LIN_MISMATCH, "%s: this is not the private key of the certificate in %s", key, certificate);
    if (asked)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: this private key has a passphrase; store it without one (openssl pkey)", key);
    return lin_fail(err, LIN_FORMAT, "%s: this is no private key in PEM form (-----BEGIN PRIVATE KEY-----)", key);
}

lin_status lin_tls_check(const char *certificate, const char *key, lin_error *err)
{
    SSL_CTX *c = SSL_CTX_new(TLS_server_method());
    if (!c) return lin_no_memory(err, "a certificate", 0);
    const lin_status status = check(c, certificate, key, err);
    ERR_clear_error();
    SSL_CTX_free(c);
    return status;
}

/* ---- heads of requests ----------------------------------------------------------------------------------------------------- */

// libwebsockets gets decrypted bytes from SSL_read and offers no hook before its parser. So this library defines SSL_read, and
// the dynamic linker binds libwebsockets to it instead of OpenSSL's. Where the linker does not (macOS), heads reach
// libwebsockets unfiltered.
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
