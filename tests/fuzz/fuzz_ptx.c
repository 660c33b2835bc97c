// PTX for the machine of tests/ptx: any text gives a kernel or a message.
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[PTX_WHY] = "", *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    ptx_module *m = ptx_open(text, size, why);
    if (m) {
        ptx_kernel *k = ptx_find(m, "k", why);
        if (k)
            while (ptx_remove_sync(k, 0, why)) continue;
        ptx_close(m);
    }
    if (!m && !why[0]) abort();
    free(text);
    return 0;
}
