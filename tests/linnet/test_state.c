// A state as it was written before is read, and not with any bit flipped.
#include "linnet/state.h"
#include "tests/support.h"

static unsigned char bytes[1 << 14];

static size_t read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert(n > 0 && n < sizeof bytes);
    return n;
}

START_TEST(a_flipped_bit_of_a_state_is_found)
{
    const size_t n = read_all("tests/golden/formats/stream.state");
    lin_state state = {0};
    lin_error err = {0};
    ck_assert_msg(lin_state_parse(bytes, n, "m", &state, &err) == LIN_OK, "%s", err.message);
    ck_assert(state.about.rate_hz == 16000 && state.about.samples == 16000 && state.about.rows == 32);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        test_require(lin_state_parse(bytes, n, "m", &state, &err) == LIN_FORMAT, "bit %zu of byte %zu", bit % 8, bit / 8);
        test_require(strncmp(err.message, "m is ", 5) == 0, "%s", err.message);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    lin_state_free(&state);
}
END_TEST

TEST_MAIN("linnet/state", TEST(a_flipped_bit_of_a_state_is_found))
