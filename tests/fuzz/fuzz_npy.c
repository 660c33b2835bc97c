// The .npy header reader.
#include <stdint.h>
#include <stdlib.h>

#include "train/lab/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t offset = 0, T = 0;
    int D = 0;
    lin_error err;
    if (lin_npy_parse("x.npy", data, size, &offset, &T, &D, &err) != LIN_OK) return 0;
    if (D < 1 || offset > size || T > (size - offset) / sizeof(float) / (size_t)D) abort();
    return 0;
}
