// The .npy header reader: the first four bytes choose how much longer the file is than the bytes after them.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train/lab/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) return 0;
    uint32_t more;
    memcpy(&more, data, sizeof more);
    size -= 4;
    size_t offset = 0, T = 0, file_bytes = size + more;
    int D = 0;
    lin_error err;
    if (lin_npy_parse("x.npy", data + 4, size, file_bytes, &offset, &T, &D, &err) != LIN_OK) return 0;
    if (D < 1 || offset > size || T > (file_bytes - offset) / sizeof(float) / (size_t)D) abort();
    return 0;
}
