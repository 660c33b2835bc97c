#include <string.h>

#include "kernels/ops.h"

// "cuda" or "cuda:n" with n a decimal number.
static int names_a_gpu(const char *device)
{
    if (strncmp(device, "cuda", 4) != 0) return 0;
    if (!device[4]) return 1;
    if (device[4] != ':' || !device[5]) return 0;
    return strspn(device + 5, "0123456789") == strlen(device + 5);
}

lin_status lin_backend_open(const char *device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    (void)precision;
    *ops = NULL;
    if (!device || strcmp(device, "auto") == 0 || strcmp(device, "cpu") == 0) {
        *ops = lin_ops_cpu();
        return LIN_OK;
    }
    if (names_a_gpu(device)) return lin_fail(err, LIN_UNSUPPORTED, "this build has no CUDA backend; use --device cpu");
    return lin_fail(err, LIN_INVALID, "unknown device \"%s\"; the names are auto, cpu, cuda and cuda:n", device);
}
