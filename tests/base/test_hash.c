// The random numbers against an independent computation; the hash, whose known values are of the second
// implementation in tests/golden/second.py, and its parts.
#include "base/hash.h"
#include "tests/golden/rng.h"
#include "tests/support.h"

START_TEST(random_known_answers)
{
    for (size_t i = 0; i < sizeof rng_golden / sizeof *rng_golden; i++) {
        uint64_t key = rng_golden[i].key, counter = rng_golden[i].counter;
        ck_assert_uint_eq(lin_random_bits(key, counter), rng_golden[i].bits);
        ck_assert_uint_eq(lin_random_key(key, counter), rng_golden[i].derived);
        ck_assert(lin_random_uniform(key, counter) == ldexp((double)rng_golden[i].uniform, -53));
        ck_assert_uint_eq(lin_random_below(key, counter, 1000), rng_golden[i].below);
    }
}
END_TEST

START_TEST(random_known_chain)
{
    uint64_t chain = 0;
    for (uint64_t i = 0; i < 100000; i++) chain = lin_mix64(chain ^ lin_random_bits(12345, i));
    ck_assert_uint_eq(chain, rng_golden_chain);
}
END_TEST

START_TEST(below_reaches_every_value)
{
    for (uint32_t n = 1; n < 40; n++) {
        uint64_t seen = 0;
        for (uint64_t i = 0; i < 2000; i++) {
            uint32_t value = lin_random_below(5, i, n);
            ck_assert_uint_lt(value, n);
            seen |= (uint64_t)1 << value;
        }
        ck_assert_uint_eq(seen, ((uint64_t)1 << n) - 1);
    }
    for (uint64_t i = 0; i < 1000; i++) ck_assert_uint_lt(lin_random_below(6, i, UINT32_MAX), UINT32_MAX);
}
END_TEST

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

// The test vectors of FNV-1a, 64 bits; the other values are stored in saved states.
START_TEST(known_hashes)
{
    ck_assert_uint_eq(lin_fnv(LIN_FNV_START, "", 0), UINT64_C(0xCBF29CE484222325));
    ck_assert_uint_eq(lin_fnv(LIN_FNV_START, "a", 1), UINT64_C(0xAF63DC4C8601EC8C));
    ck_assert_uint_eq(lin_fnv(LIN_FNV_START, "foobar", 6), UINT64_C(0x85944171F73967E8));
    ck_assert_uint_eq(lin_fnv(lin_fnv(LIN_FNV_START, "foo", 3), "bar", 3), UINT64_C(0x85944171F73967E8));
    ck_assert_uint_eq(lin_fnv_step(LIN_FNV_START, 'a'), UINT64_C(0xAF63DC4C8601EC8C));
    ck_assert_uint_eq(lin_hash_pair(1, 2), UINT64_C(0xF5DF515C0F77CA12));
    ck_assert_uint_eq(lin_hash_pair(0, 0), UINT64_C(0xD0BD7FF386AD0729));
}
END_TEST

TEST_MAIN("base/hash", TEST(random_known_answers), TEST(random_known_chain), TEST(below_reaches_every_value), TEST(known_answers),
          TEST(parts_give_the_hash_of_the_whole), TEST(known_hashes))
