/*
 * tls.h - what serve/web/lws.c takes from OpenSSL. Threads: any.
 */
#ifndef LIN_SERVE_WEB_TLS_H
#define LIN_SERVE_WEB_TLS_H

#include <stddef.h>

#include "base/status.h"

/* Of lin_web_transport's table. */
lin_status lin_seal_key(const void *secret, size_t n, unsigned char key[32], lin_error *err);
lin_status lin_seal(const unsigned char key[32], const void *plain, size_t n, unsigned char *sealed, lin_error *err);
lin_status lin_unseal(const unsigned char key[32], const unsigned char *sealed, size_t n, unsigned char *plain, lin_error *err);

/* What is wrong with the files of a certificate and its private key, in words: libwebsockets says only that it cannot use them.
 * LIN_IO: a file that cannot be opened; LIN_FORMAT, LIN_MISMATCH, LIN_UNSUPPORTED: files that do not serve. */
lin_status lin_tls_check(const char *certificate, const char *key, lin_error *err);

#endif
