// A state is read as it was written, and not with any bit flipped.
#include "base/memory.h"
#include "decoder/search.h"
#include "linnet/stream.h"
#include "tests/support.h"

START_TEST(a_flipped_bit_of_a_state_is_found)
{
    const lin_state_about about = {.model = 5, .rate_hz = 16000, .channels = 2, .channel = -2, .lanes = 2, .samples = 16000,
                                   .frames = 98, .rows = 32, .row_seconds = 0.03};
    const lin_state_sizes sizes = {.front = 13, .decoder = sizeof(lin_greedy), .image = 30, .frames = 4};
    lin_state made = {0}, state = {0};
    lin_error why = {0};
    OK(lin_state_begin(&made, &about, &sizes, &err));
    memset(lin_state_front(&made), 'f', 13);
    lin_state_seal(&made);
    unsigned char *bytes = made.bytes;
    OK(lin_state_parse(bytes, made.n, "m", &state, &err));
    ck_assert(state.about.rate_hz == 16000 && state.about.samples == 16000 && state.about.rows == 32);
    ck_assert_mem_eq(lin_state_front(&state), lin_state_front(&made), 13);
    for (size_t bit = 0; bit < 8 * made.n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        test_require(lin_state_parse(bytes, made.n, "m", &state, &why) == LIN_FORMAT, "bit %zu of byte %zu", bit % 8, bit / 8);
        test_require(strncmp(why.message, "m is ", 5) == 0, "%s", why.message);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    lin_state_free(&made);
    lin_state_free(&state);
}
END_TEST

TEST_MAIN("linnet/state", TEST(a_flipped_bit_of_a_state_is_found))
