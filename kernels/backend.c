// backend.c - the backend of a device name, and the loader of the CUDA backend; see ops.h.

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "kernels/ops.h"

// Version of the toolkit that liblinnet_cuda.so is built with: 1000 major + 10 minor.
#ifndef LIN_CUDA_VERSION
#define LIN_CUDA_VERSION 13000
#endif

#define LIBRARY "liblinnet_cuda.so"

enum { DRIVER_OK = 0, DRIVER_NO_DEVICE = 100 }; // CUresult

typedef lin_status (*open_function)(int device, lin_precision precision, const lin_ops **ops, lin_error *err);
typedef int (*device_function)(int i, lin_device *device);

static struct {
    int count, driver; // number of GPUs; driver version as CUDA writes it (1000 major + 10 minor)
    char why[512];     // why there is no GPU; "" if there is
    open_function open;
    device_function device;
} gpu;

static pthread_once_t once = PTHREAD_ONCE_INIT;

LIN_PRINTF(1, 2) static int refuse(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(gpu.why, sizeof gpu.why, fmt, args);
    va_end(args);
    return 0;
}

static const char *reason(void)
{
    const char *text = dlerror();
    return text ? text : "no reason given";
}

/* ---- the driver ------------------------------------------------------------------------------------------------------------ */

static const char *driver_says(void *driver, int result, char *text, size_t capacity)
{
    int (*error_string)(int, const char **);
    const char *message = NULL;
    if (lin_system_symbol(driver, "cuGetErrorString", &error_string) && error_string(result, &message) == DRIVER_OK && message) {
        snprintf(text, capacity, "%s", message);
    } else {
        snprintf(text, capacity, "error %d", result);
    }
    return text;
}

static int ask_driver(void)
{
    const char *named = getenv("LINNET_CUDA_DRIVER");
    const char *name = named && *named ? named : "libcuda.so.1";
    char text[200];
    int (*init)(unsigned), (*version)(int *), (*count)(int *);
    void *driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!driver) return refuse("no NVIDIA driver on this machine (%s)", reason());
    if (!lin_system_symbol(driver, "cuInit", &init) || !lin_system_symbol(driver, "cuDriverGetVersion", &version) ||
        !lin_system_symbol(driver, "cuDeviceGetCount", &count)) {
        return refuse("%s is not an NVIDIA driver: %s", name, reason());
    }
    // Checked before cuInit: the version needs no GPU, and an old driver is the more useful explanation.
    int result = version(&gpu.driver);
    if (result != DRIVER_OK) {
        return refuse("cannot read the version of the NVIDIA driver: %s", driver_says(driver, result, text, sizeof text));
    }
    // Within one major version, an older driver can run code that a newer toolkit made.
    if (gpu.driver / 1000 < LIN_CUDA_VERSION / 1000) {
        return refuse(
            "the driver supports CUDA %d.%d, this build needs %d.0 or newer: update the driver or build with an older toolkit",
            gpu.driver / 1000, gpu.driver % 1000 / 10, LIN_CUDA_VERSION / 1000);
    }
    result = init(0);
    if (result == DRIVER_OK) result = count(&gpu.count);
    if (result != DRIVER_OK && result != DRIVER_NO_DEVICE) {
        gpu.count = 0;
        return refuse("cannot initialise the NVIDIA driver: %s", driver_says(driver, result, text, sizeof text));
    }
    if (result == DRIVER_NO_DEVICE || gpu.count <= 0) {
        gpu.count = 0;
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        if (visible) return refuse("the driver found no GPU (CUDA_VISIBLE_DEVICES is \"%.100s\")", visible);
        return refuse("the driver found no GPU");
    }
    return 1;
}

/* ---- the backend's library ------------------------------------------------------------------------------------------------- */

static int open_library(void)
{
    char found[PATH_MAX + 64];
    int (*interface)(void);
    const char *path = lin_system_plugin("LINNET_CUDA_LIBRARY", LIBRARY, found, sizeof found);
    const int there = strchr(path, '/') && access(path, F_OK) == 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        // The file exists but cannot be loaded: a library that it needs is missing.
        return refuse("cannot open %s: %s; %s", LIBRARY, reason(),
                      there ? "put the folder of the CUDA toolkit's libraries into LD_LIBRARY_PATH"
                            : "build it with make where nvcc is installed");
    }
    if (!lin_system_symbol(library, "lin_cuda_open", &gpu.open) || !lin_system_symbol(library, "lin_cuda_device", &gpu.device) ||
        !lin_system_symbol(library, "lin_cuda_interface", &interface)) {
        return refuse("%s is not a CUDA backend of linnet: %s", path, reason());
    }
    if (interface() != LIN_CUDA_INTERFACE) return refuse("%s was built for another version of linnet: build both together", path);
    return 1;
}

static void look(void)
{
    if (ask_driver()) open_library();
}

static int gpu_answers(void)
{
    pthread_once(&once, look);
    return gpu.why[0] == 0;
}

static lin_status gpu_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    if (!gpu_answers()) return lin_fail(err, LIN_UNSUPPORTED, "%s", gpu.why);
    if (precision == LIN_PRECISION_INT8)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "products of eight bits are the CPU's only; use --device cpu, or another precision");
    if (device >= gpu.count) {
        return lin_fail(err, LIN_UNSUPPORTED, "there is no GPU %d; the last is %d", device, gpu.count - 1);
    }
    return gpu.open(device, precision, ops, err);
}

/* ---- interface ------------------------------------------------------------------------------------------------------------- */

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
        if (gpu_answers() && gpu_open(0, precision, ops, NULL) == LIN_OK) return LIN_OK;
        device = "cpu";
    }
    if (strcmp(device, "cpu") == 0) {
        if (precision == LIN_PRECISION_BF16) return lin_ops_cpu_bf16(ops, err);
        *ops = precision == LIN_PRECISION_INT8 ? lin_ops_cpu_int8() : lin_ops_cpu();
        return LIN_OK;
    }
    const int n = gpu_number(device);
    if (n >= 0) return gpu_open(n, precision, ops, err);
    return lin_fail(err, LIN_INVALID, "unknown device \"%s\"; use auto, cpu, cuda or cuda:n", device);
}

int lin_device_get(int i, lin_device *device)
{
    memset(device, 0, sizeof *device);
    if (!gpu_answers() || i < 0 || i >= gpu.count) return 0;
    if (gpu.device(i, device)) return 1;
    // The driver lists this GPU but CUDA's runtime does not: report it with the message of the failed opening.
    const lin_ops *ops;
    lin_error err = {0};
    if (gpu.open(i, LIN_PRECISION_FP32, &ops, &err) == LIN_OK) return 0;
    snprintf(device->name, sizeof device->name, "GPU %d", i);
    snprintf(device->why_not, sizeof device->why_not, "%.500s", err.message);
    return 1;
}

const char *lin_device_why_none(int *runtime, int *driver)
{
    gpu_answers();
    if (runtime) *runtime = LIN_CUDA_VERSION;
    if (driver) *driver = gpu.driver;
    return gpu.why;
}
