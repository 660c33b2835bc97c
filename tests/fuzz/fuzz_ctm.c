// The reader of CTM on any bytes, with and without a phone map before a byte 0x1E.

#include "tests/fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_any(data, size, LIN_TRN_CTM);
    return 0;
}
