/* seal.h - what lws.c puts into its table from seal.c; see lin_web_transport. */
#ifndef LIN_SERVE_WEB_SEAL_H
#define LIN_SERVE_WEB_SEAL_H

#include <stddef.h>

#include "base/status.h"

lin_status lin_seal_key(const void *secret, size_t n, unsigned char key[32], lin_error *err);
lin_status lin_seal(const unsigned char key[32], const void *plain, size_t n, unsigned char *sealed, lin_error *err);
lin_status lin_unseal(const unsigned char key[32], const unsigned char *sealed, size_t n, unsigned char *plain, lin_error *err);

#endif
