// backend.c - the backend of a device name: cpu, cuda, cuda:n, auto; see gpu.h.

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu.h"

// The GPU number in "cuda" (0) or "cuda:n", n decimal; -1 for any other name. An n too large for an int becomes INT_MAX, which no
// GPU has.
static int gpu_number(const char *device)
{
    if (strncmp(device, "cuda", 4) != 0) return -1;
    if (!device[4]) return 0;
    if (device[4] != ':' || !device[5] || strspn(device + 5, "0123456789") != strlen(device + 5)) return -1;
    const long n = strtol(device + 5, NULL, 10);
    return n < INT_MAX ? (int)n : INT_MAX;
}

lin_status lin_backend_open(const char *device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    *ops = NULL;
    if (precision == LIN_PRECISION_AUTO) precision = LIN_PRECISION_FP32;
    if (!device || strcmp(device, "auto") == 0) {
        if (lin_gpu_answers() && lin_gpu_open(0, precision, ops, NULL) == LIN_OK) return LIN_OK;
        device = "cpu";
    }
    if (strcmp(device, "cpu") == 0) {
        if (precision == LIN_PRECISION_BF16) return lin_ops_cpu_bf16(ops, err);
        *ops = precision == LIN_PRECISION_INT8 ? lin_ops_cpu_int8() : lin_ops_cpu();
        return LIN_OK;
    }
    const int n = gpu_number(device);
    if (n >= 0) return lin_gpu_open(n, precision, ops, err);
    return lin_fail(err, LIN_INVALID, "unknown device \"%s\"; use auto, cpu, cuda or cuda:n", device);
}
