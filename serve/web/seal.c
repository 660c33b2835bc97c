// seal.c - authenticated encryption by OpenSSL, for liblinnet_web.so; see serve/web.h. AES-256-GCM (NIST SP 800-38D): "LNSEAL1",
// a random nonce of 12 bytes, the encrypted bytes, a tag of 16 bytes. The magic is authenticated too.

#include "serve/web/seal.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

#include "serve/web.h"

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
