#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu.h"
#include "kernels/ops.h"

// The number of the GPU that "cuda" or "cuda:n" names, n in decimal digits; -1 for any other text.
static int gpu_named(const char *device)
{
    if (strncmp(device, "cuda", 4) != 0) return -1;
    if (!device[4]) return 0;
    if (device[4] != ':' || !device[5] || strspn(device + 5, "0123456789") != strlen(device + 5)) return -1;
    const unsigned long n = strtoul(device + 5, NULL, 10);
    return n < INT_MAX ? (int)n : INT_MAX;
}

lin_status lin_backend_open(const char *device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    *ops = NULL;
    if (device && strcmp(device, "cpu") == 0) {
        *ops = lin_ops_cpu();
        return LIN_OK;
    }
    if (!device || strcmp(device, "auto") == 0) {
        lin_device found;
        for (int i = 0; lin_device_get(i, &found); i++)
            if (!found.why_not[0] && lin_gpu_open(i, precision, ops, NULL) == LIN_OK) return LIN_OK;
        *ops = lin_ops_cpu();
        return LIN_OK;
    }
    const int n = gpu_named(device);
    if (n < 0) return lin_fail(err, LIN_INVALID, "unknown device \"%s\"; the names are auto, cpu, cuda and cuda:n", device);
    lin_error why = {0};
    const lin_status status = lin_gpu_open(n, precision, ops, &why);
    if (status != LIN_OK) return lin_fail(err, status, "%s; --device cpu works everywhere", why.message);
    return LIN_OK;
}
