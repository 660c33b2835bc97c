/*
 * tls_check.h - what is wrong with the files of a certificate and its private key, in words; for liblinnet_web.so.
 *
 * Pipeline: --tls-cert, --tls-key -> [this] -> libwebsockets, which says only that it cannot use them.
 * Threads: any.
 */
#ifndef LIN_SERVE_WEB_TLS_CHECK_H
#define LIN_SERVE_WEB_TLS_CHECK_H

#include "base/status.h"

/* LIN_IO: a file that cannot be opened; LIN_FORMAT, LIN_MISMATCH, LIN_UNSUPPORTED: files that do not serve. */
lin_status lin_tls_check(const char *certificate, const char *key, lin_error *err);

#endif
