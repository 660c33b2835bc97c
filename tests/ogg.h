/* ogg.h - pages of Ogg in tests: their checksums (RFC 3533, 6), so that changed and made-up pages are read. */
#ifndef LIN_TESTS_OGG_H
#define LIN_TESTS_OGG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the page that begins here; 0: none, or not all of it. */
static inline size_t test_ogg_page(const unsigned char *bytes, size_t n)
{
    if (n < 27 || memcmp(bytes, "OggS", 4) != 0 || n < 27u + bytes[26]) return 0;
    size_t size = 27u + bytes[26];
    for (int i = 0; i < bytes[26]; i++) size += bytes[27 + i];
    return size <= n ? size : 0;
}

/* Writes the right checksum into every page, one after the other. */
static inline void test_ogg_checksums(unsigned char *bytes, size_t n)
{
    for (size_t size; (size = test_ogg_page(bytes, n)) != 0; bytes += size, n -= size) {
        uint32_t sum = 0;
        memset(bytes + 22, 0, 4);
        for (size_t i = 0; i < size; i++) {
            sum ^= (uint32_t)bytes[i] << 24;
            for (int bit = 0; bit < 8; bit++) sum = sum << 1 ^ (sum >> 31 ? 0x04c11db7u : 0);
        }
        for (int i = 0; i < 4; i++) bytes[22 + i] = (unsigned char)(sum >> (8 * i));
    }
}

#endif
