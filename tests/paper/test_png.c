// A PNG file is read back by hand: chunks with their checksums, and the lines that zlib gives.
#include "paper/png.h"

#include <zlib.h>

#include "tests/support.h"

static unsigned long get_u32(const unsigned char *p)
{
    return (unsigned long)p[0] << 24 | (unsigned long)p[1] << 16 | (unsigned long)p[2] << 8 | p[3];
}

START_TEST(a_picture_comes_back)
{
    enum { W = 7, H = 5, MOST = W * H * 3 };
    const int channels = _i ? 3 : 1;
    unsigned char pixels[MOST], lines[MOST + H];
    char folder[256], path[300];
    lin_error err = {0};
    static unsigned char bytes[4096];
    for (int i = 0; i < MOST; i++) pixels[i] = (unsigned char)(i * 53);
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/a.png", folder);
    ck_assert_msg(lin_png_write(path, pixels, W, H, channels, &err) == LIN_OK, "%s", err.message);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert(n > 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0);
    int found = 0;
    for (size_t at = 8; at < n; found++) {
        const unsigned long size = get_u32(bytes + at);
        const unsigned char *type = bytes + at + 4, *data = type + 4;
        ck_assert(at + 12 + size <= n);
        ck_assert_uint_eq(get_u32(data + size), crc32(0, type, (uInt)size + 4));
        ck_assert_mem_eq(type, found == 0 ? "IHDR" : found == 1 ? "IDAT" : "IEND", 4);
        if (found == 0) {
            ck_assert_uint_eq(get_u32(data), W);
            ck_assert_uint_eq(get_u32(data + 4), H);
            ck_assert_mem_eq(data + 8, ((unsigned char[]){8, channels == 3 ? 2 : 0, 0, 0, 0}), 5);
        }
        if (found == 1) {
            uLongf length = sizeof lines;
            ck_assert_int_eq(uncompress(lines, &length, data, size), Z_OK);
            ck_assert_uint_eq(length, (size_t)(H * (1 + W * channels)));
            for (int y = 0; y < H; y++) {
                ck_assert_int_eq(lines[y * (1 + W * channels)], 0);
                ck_assert_mem_eq(lines + y * (1 + W * channels) + 1, pixels + y * W * channels, (size_t)(W * channels));
            }
        }
        at += 12 + size;
    }
    ck_assert_int_eq(found, 3);
    test_folder_remove(folder);
    ck_assert_int_eq(lin_png_write("/nowhere/a.png", pixels, W, H, channels, &err), LIN_IO);
}
END_TEST

TEST_MAIN("paper/png", TESTS(a_picture_comes_back, 0, 2))
