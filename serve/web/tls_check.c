// tls_check.c - what is wrong with the files of a certificate and its key, before libwebsockets reads them; see tls_check.h.

#include "serve/web/tls_check.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

// Nobody is there to type one.
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
