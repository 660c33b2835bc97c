// [variants] paper/images.h: the values of IDX files and CIFAR-10's batches made here, and what is refused; PNG files.
#include "paper/images.h"

#include <zlib.h>

#include "tests/support.h"

enum { CIFAR = 3073 };

static const unsigned char idx[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, // two of 2 x 3
                                    10, 11, 12, 13, 14, 15, 250, 251, 252, 253, 254, 255};

START_TEST(idx_images)
{
    lin_images m;
    lin_error err = {0};
    int values[6];
    ck_assert_msg(lin_images_parse(idx, sizeof idx, "x", &m, &err) == LIN_OK, "%s", err.message);
    ck_assert(m.count == 2 && m.rows == 2 && m.columns == 3 && m.colours == 1);
    ck_assert(lin_images_length(&m, 0) == 6 && lin_images_length(&m, 1) == 6);
    for (int i = 0; i < 2; i++) {
        lin_images_values(&m, i, i, values);
        for (int k = 0; k < 6; k++) ck_assert_int_eq(values[k], (i ? 250 : 10) + k);
    }
}
END_TEST

START_TEST(cifar_images)
{
    lin_images m;
    lin_error err = {0};
    unsigned char *batch = test_buffer(2 * CIFAR, 1);
    int values[3072], grey[1024];
    for (int i = 0; i < 2 * CIFAR; i++) batch[i] = (unsigned char)(i % CIFAR == 0 ? 3 + i / CIFAR : i * 31 % 251);
    ck_assert_msg(lin_images_parse(batch, 2 * CIFAR, "x", &m, &err) == LIN_OK, "%s", err.message);
    ck_assert(m.count == 2 && m.rows == 32 && m.columns == 32 && m.colours == 3);
    ck_assert(lin_images_length(&m, 0) == 3072 && lin_images_length(&m, 1) == 1024);
    for (int i = 0; i < 2; i++) {
        const unsigned char *red = batch + i * CIFAR + 1, *green = red + 1024, *blue = green + 1024;
        ck_assert_int_eq(lin_images_label(&m, i), 3 + i);
        lin_images_values(&m, i, 0, values);
        lin_images_values(&m, i, 1, grey);
        for (int y = 0; y < 32; y++)
            for (int x = 0; x < 32; x++) {
                const int *rgb = values + 3 * (32 * y + x), at = 32 * y + x;
                ck_assert(rgb[0] == red[at] && rgb[1] == green[at] && rgb[2] == blue[at]);
                ck_assert(fabs(grey[at] - (0.299 * red[at] + 0.587 * green[at] + 0.114 * blue[at])) <= 0.5001);
            }
    }
    // a label and pixels that look like the beginning of an IDX file
    memcpy(batch, "\0\0\10\3", 4);
    ck_assert(lin_images_parse(batch, 2 * CIFAR, "x", &m, &err) == LIN_OK && m.colours == 3);
    batch[CIFAR] = 10;
    ck_assert_int_eq(lin_images_parse(batch, 2 * CIFAR, "x", &m, &err), LIN_FORMAT);
    batch[0] = 1;
    ck_assert_int_eq(lin_images_parse(batch, 2 * CIFAR, "b", &m, &err), LIN_FORMAT);
    ck_assert_str_eq(err.message, "b: image 2 has the label 10; those of CIFAR-10 are 0 to 9, so this is no such batch");
    test_buffer_free(batch);
}
END_TEST

START_TEST(what_is_refused)
{
    static const struct {
        int at, value;
        size_t n;
        const char *why;
    } cases[] = {{3, 2, sizeof idx, "neither an IDX file"}, {0, 0, 0, "neither an IDX file"},
                 {0, 0, 3, "neither an IDX file"},          {0, 0, 15, "has a header of 16 bytes, and this has 15"},
                 {7, 0, sizeof idx, "0 images"},            {4, 255, sizeof idx, "4278190082 images"},
                 {11, 0, sizeof idx, "2 images of 0 x 3"},  {14, 2, sizeof idx, "of 2 x 515"},
                 {7, 3, sizeof idx, "gives 3 images of 2 x 3, but 12 bytes follow"},
                 {7, 1, sizeof idx, "gives 1 images"},   {0, 0, sizeof idx - 1, "but 11 bytes follow"}};
    lin_images m;
    lin_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char *bytes = test_buffer(sizeof idx, 1);
        memcpy(bytes, idx, sizeof idx);
        bytes[cases[i].at] = (unsigned char)cases[i].value;
        ck_assert_int_eq(lin_images_parse(bytes, cases[i].n, "x", &m, &err), LIN_FORMAT);
        test_require(strstr(err.message, cases[i].why), "case %zu: %s", i, err.message);
        test_buffer_free(bytes);
    }
}
END_TEST

// A PNG file is read back by hand: chunks with their checksums, and the lines that zlib gives.
static unsigned long get_u32(const unsigned char *p)
{
    return (unsigned long)p[0] << 24 | (unsigned long)p[1] << 16 | (unsigned long)p[2] << 8 | p[3];
}

START_TEST(a_picture_comes_back)
{
    enum { W = 7, H = 5, MOST = W * H * 3 };
    const int channels = _i ? 3 : 1;
    unsigned char pixels[MOST], lines[MOST + H];
    lin_error err = {0};
    static unsigned char bytes[4096];
    for (int i = 0; i < MOST; i++) pixels[i] = (unsigned char)(i * 53);
    const char *path = test_path("a.png");
    ck_assert_msg(lin_png_write(path, pixels, W, H, channels, &err) == LIN_OK, "%s", err.message);
    const size_t n = test_read_file(path, bytes, sizeof bytes);
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
    ck_assert_int_eq(lin_png_write("/nowhere/a.png", pixels, W, H, channels, &err), LIN_IO);
}
END_TEST

TEST_MAIN("paper/images", TEST(idx_images), TEST(cifar_images), TEST(what_is_refused),
          TESTS(a_picture_comes_back, 0, 2))
