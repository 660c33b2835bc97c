// States and indexes of snapshots as they were written before: each is read, and none with any bit flipped.
#include <fcntl.h>
#include <unistd.h>

#include "linnet/snapshots.h"
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

static lin_status read_index(const char *path, lin_state *state, lin_error *err)
{
    lin_snapshots s;
    lin_status status = lin_snapshots_open(path, &s, err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < s.n && status == LIN_OK; i++) status = lin_snapshots_get(&s, i, state, err);
    lin_snapshots_close(&s);
    return status;
}

START_TEST(a_flipped_bit_of_an_index_is_found)
{
    char folder[256], path[300];
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/x.snapshots", folder);
    const size_t n = read_all("tests/golden/formats/sound.snapshots");
    lin_state state = {0};
    lin_error err = {0};
    test_write_file(path, bytes, n);
    const int file = open(path, O_WRONLY);
    ck_assert(file >= 0);
    ck_assert_msg(read_index(path, &state, &err) == LIN_OK, "%s", err.message);
    ck_assert(state.about.rate_hz == 16000);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert(pwrite(file, bytes + bit / 8, 1, (off_t)(bit / 8)) == 1);
        test_require(read_index(path, &state, &err) == LIN_FORMAT, "bit %zu of byte %zu", bit % 8, bit / 8);
        test_require(strstr(err.message, path) != NULL, "%s", err.message);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert(pwrite(file, bytes + bit / 8, 1, (off_t)(bit / 8)) == 1);
    }
    close(file);
    lin_state_free(&state);
    test_folder_remove(folder);
}
END_TEST

TEST_MAIN("linnet/snapshots", TEST(a_flipped_bit_of_a_state_is_found), TEST(a_flipped_bit_of_an_index_is_found))
