/*
 * driver.c - a fake NVIDIA driver, libcuda.so.1, for tests of the loader (kernels/ops.h, LINNET_CUDA_DRIVER). The environment
 * gives its answers:
 *   LINNET_EMULATION_DEVICES   number of GPUs (default 1)
 *   LINNET_EMULATION_DRIVER    version (default 13000)
 *   LINNET_EMULATION_CUINIT    result of cuInit (default 0, or 100 if there is no GPU, like the real driver)
 */
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuGetErrorString(int error, const char **text);

static int setting(const char *name, int usual)
{
    const char *value = getenv(name);
    return value && *value ? (int)strtol(value, NULL, 10) : usual;
}

static int devices(void) { return setting("LINNET_EMULATION_DEVICES", 1); }

int cuInit(unsigned flags)
{
    (void)flags;
    return setting("LINNET_EMULATION_CUINIT", devices() > 0 ? 0 : 100);
}

int cuDriverGetVersion(int *version)
{
    *version = setting("LINNET_EMULATION_DRIVER", 13000);
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = devices();
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    *text = error == 0 ? "no error" : error == 100 ? "no CUDA-capable device is detected" : "unknown error";
    return 0;
}
