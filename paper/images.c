// images.c - reading IDX files and CIFAR-10's binary batches, writing PNG files; see images.h.

#include "paper/images.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

enum { IDX_IMAGES = 0x803, CIFAR_SIDE = 32, CIFAR_PLANE = CIFAR_SIDE * CIFAR_SIDE,
       CIFAR_IMAGE = 1 + 3 * CIFAR_PLANE, CIFAR_CLASSES = 10 };

static size_t big_endian(const unsigned char *p) { return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]; }

static lin_status parse_idx(const unsigned char *p, size_t n, const char *name, lin_images *images, lin_error *err)
{
    if (n < 16) return lin_fail(err, LIN_FORMAT, "%s: an IDX file of images has a header of 16 bytes, and this has %zu", name, n);
    const size_t count = big_endian(p + 4), rows = big_endian(p + 8), columns = big_endian(p + 12);
    if (count < 1 || count > INT_MAX || rows < 1 || rows > LIN_IMAGES_SIDE || columns < 1 || columns > LIN_IMAGES_SIDE)
        return lin_fail(err, LIN_FORMAT, "%s: %zu images of %zu x %zu; an IDX file here has at least one, of 1 x 1 to %d x %d",
                        name, count, rows, columns, LIN_IMAGES_SIDE, LIN_IMAGES_SIDE);
    if ((n - 16) / (rows * columns) != count || (n - 16) % (rows * columns) != 0)
        return lin_fail(err, LIN_FORMAT, "%s: its header gives %zu images of %zu x %zu, but %zu bytes follow; download it again",
                        name, count, rows, columns, n - 16);
    *images = (lin_images){.count = (int)count, .rows = (int)rows, .columns = (int)columns, .colours = 1, .bytes = p + 16};
    return LIN_OK;
}

lin_status lin_images_parse(const void *bytes, size_t n, const char *name, lin_images *images, lin_error *err)
{
    const unsigned char *p = bytes;
    const int idx = n >= 4 && big_endian(p) == IDX_IMAGES;
    *images = (lin_images){0};
    // a batch may begin with a label and three pixels that look like IDX
    const lin_status status = idx ? parse_idx(p, n, name, images, err) : LIN_FORMAT;
    if (status == LIN_OK || (idx && n % CIFAR_IMAGE != 0)) return status;
    if (n == 0 || n % CIFAR_IMAGE != 0 || n / CIFAR_IMAGE > INT_MAX)
        return lin_fail(err, LIN_FORMAT,
                        "%s: neither an IDX file of images (it begins with the bytes 0 0 8 3) nor a binary batch of CIFAR-10 (%d "
                        "bytes an image, and this has %zu)",
                        name, CIFAR_IMAGE, n);
    for (size_t i = 0; i < n / CIFAR_IMAGE; i++)
        if (p[i * CIFAR_IMAGE] >= CIFAR_CLASSES)
            return lin_fail(err, LIN_FORMAT,
                            "%s: image %zu has the label %d; those of CIFAR-10 are 0 to %d, so this is no such batch", name,
                            i + 1, p[i * CIFAR_IMAGE], CIFAR_CLASSES - 1);
    *images = (lin_images){
        .count = (int)(n / CIFAR_IMAGE), .rows = CIFAR_SIDE, .columns = CIFAR_SIDE, .colours = 3, .bytes = p};
    return LIN_OK;
}

int lin_images_length(const lin_images *m, int grey) { return m->rows * m->columns * (grey ? 1 : m->colours); }

void lin_images_values(const lin_images *m, int i, int grey, int *values)
{
    const int n = m->rows * m->columns;
    const unsigned char *p = m->bytes + (size_t)i * (m->colours == 1 ? (size_t)n : CIFAR_IMAGE) + (m->colours == 3);
    for (int k = 0; k < n; k++) {
        if (m->colours == 1) values[k] = p[k];
        else if (grey) values[k] = (299 * p[k] + 587 * p[k + n] + 114 * p[k + 2 * n] + 500) / 1000;
        else for (int c = 0; c < 3; c++) values[3 * k + c] = p[k + c * n];
    }
}

int lin_images_label(const lin_images *m, int i) { return m->bytes[(size_t)i * CIFAR_IMAGE]; }

/* ---- PNG ------------------------------------------------------------------------------------------------------------------- */

static void put_u32(unsigned char *to, unsigned long value)
{
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * (3 - i)));
}

static void add_chunk(lin_buffer *out, const char type[4], const unsigned char *data, size_t n)
{
    unsigned char length[4], sum[4];
    put_u32(length, n);
    put_u32(sum, crc32(crc32(0, (const unsigned char *)type, 4), n ? data : (const unsigned char *)"", (uInt)n));
    lin_buffer_bytes(out, (const char *)length, 4);
    lin_buffer_bytes(out, type, 4);
    if (n) lin_buffer_bytes(out, (const char *)data, n);
    lin_buffer_bytes(out, (const char *)sum, 4);
}

lin_status lin_png_write(const char *path, const unsigned char *pixels, int width, int height, int channels, lin_error *err)
{
    static const char signature[8] = {'\x89', 'P', 'N', 'G', '\r', '\n', '\x1a', '\n'};
    const size_t row = (size_t)width * (size_t)channels, raw = (row + 1) * (size_t)height;
    unsigned char *lines = lin_alloc(raw, 1), *packed = lin_alloc(compressBound(raw), 1), head[13] = {0};
    uLongf n = compressBound(raw);
    lin_buffer out = {0};
    lin_status status = lines && packed ? LIN_OK : lin_no_memory(err, "a picture", raw);
    for (int y = 0; y < height && status == LIN_OK; y++) { // each line begins with its filter: none
        lines[(size_t)y * (row + 1)] = 0;
        memcpy(lines + (size_t)y * (row + 1) + 1, pixels + (size_t)y * row, row);
    }
    if (status == LIN_OK && compress2(packed, &n, lines, raw, 9) != Z_OK) status = lin_no_memory(err, "a picture", raw);
    if (status == LIN_OK) {
        put_u32(head, (unsigned long)width);
        put_u32(head + 4, (unsigned long)height);
        head[8] = 8;
        head[9] = channels == 3 ? 2 : 0;
        lin_buffer_bytes(&out, signature, sizeof signature);
        add_chunk(&out, "IHDR", head, sizeof head);
        add_chunk(&out, "IDAT", packed, n);
        add_chunk(&out, "IEND", NULL, 0);
        status = lin_buffer_status(&out, err);
    }
    if (status == LIN_OK) status = lin_file_write_all(path, out.data, out.n, err);
    lin_buffer_free(&out);
    lin_free(lines);
    lin_free(packed);
    return status;
}
