// The hash, whose known values are of the second implementation in tests/golden/second.py, and its parts.
#include "base/hash.h"
#include "tests/support.h"

// A model file's checksum and fingerprint, and every saved state, depend on these.
START_TEST(known_answers)
{
    unsigned char bytes[67];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(7 * i + 1);
    ck_assert_uint_eq(lin_hash("", 0, 0), 0x6E9BBA47ACA54188u);
    ck_assert_uint_eq(lin_hash(bytes, 5, 0), 0xFC8812EA048F0F6Cu);
    ck_assert_uint_eq(lin_hash(bytes, 32, 1), 0x7861913CA188AA22u);
    ck_assert_uint_eq(lin_hash(bytes, sizeof bytes, 3), 0xBFE143BDF4DD2BC6u);
}
END_TEST

START_TEST(parts_give_the_hash_of_the_whole)
{
    enum { N = 131 };
    unsigned char bytes[N];
    for (size_t i = 0; i < N; i++) bytes[i] = (unsigned char)lin_random_bits(1, i);
    for (size_t n = 0; n <= N; n++)
        for (size_t a = 0; a <= n; a++) {
            const size_t b = a + (n - a) / 2;
            lin_hasher h;
            lin_hash_begin(&h, n);
            lin_hash_add(&h, bytes, a);
            lin_hash_add(&h, bytes + a, b - a);
            lin_hash_add(&h, bytes + b, n - b);
            test_require(lin_hash_end(&h) == lin_hash(bytes, n, n), "%zu bytes in parts of %zu, %zu", n, a, b - a);
        }
}
END_TEST

TEST_MAIN("base/hash", TEST(known_answers), TEST(parts_give_the_hash_of_the_whole))
