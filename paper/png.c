// png.c - see png.h.

#include "paper/png.h"

#include <string.h>
#include <zlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

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
