// Devices, errors, launches, and faults on demand.
#include "tests/emulation/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <utility>

std::recursive_mutex emulated_lock;

enum { RUNTIME_VERSION = 13000, MOST_RESIDENT = 2048 /* threads of a multiprocessor */ };

// ---- settings ---------------------------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    long usual;
} table[EMULATION_SETTINGS] = {
    {"ORDER", 0},   {"EAGER", 0},         {"DEVICES", 1},         {"CAPABILITY", 90}, {"MULTIPROCESSORS", 8}, {"DRIVER", 13000},
    {"MEMORY", 8L << 30}, {"FAIL_ALLOCATION", 0}, {"LOSE_AFTER", 0},  {"REFUSE_PRODUCTS", 0}, {"SHARED", 227},
};

static long settings[EMULATION_SETTINGS];
static bool read_settings;
static unsigned long n_launches, n_allocations, n_attributes;
static bool lost;
static pid_t owner; // the process that has the context
static thread_local cudaError_t last_error;
static thread_local int current_device;

static void read_environment(void)
{
    if (read_settings) return;
    read_settings = true;
    for (int i = 0; i < EMULATION_SETTINGS; i++) {
        char name[64];
        snprintf(name, sizeof name, "LINNET_EMULATION_%s", table[i].name);
        const char *value = getenv(name);
        settings[i] = value && *value ? strtol(value, NULL, 10) : table[i].usual;
    }
}

long emulated_setting(emulation_setting which)
{
    read_environment();
    return settings[which];
}

void emulation_reset(void)
{
    emulated_guard lock(emulated_lock);
    read_settings = false;
    read_environment();
    n_launches = n_allocations = n_attributes = 0;
    lost = false;
    owner = 0;
    last_error = cudaSuccess;
}

void emulation_set(emulation_setting which, long value)
{
    emulated_guard lock(emulated_lock);
    read_environment();
    settings[which] = value;
}

unsigned long emulation_count(emulation_counter which)
{
    emulated_guard lock(emulated_lock);
    switch (which) {
    case EMULATION_LAUNCHES: return n_launches;
    case EMULATION_ALLOCATIONS: return n_allocations;
    case EMULATION_ATTRIBUTES: return n_attributes;
    case EMULATION_LIVE: return emulated_memory_live();
    case EMULATION_OBJECTS: return emulated_objects() + emulated_products();
    }
    return 0;
}

bool emulated_allocation_fails(void)
{
    read_environment();
    n_allocations++;
    return settings[EMULATION_FAIL_ALLOCATION] > 0 && --settings[EMULATION_FAIL_ALLOCATION] == 0;
}

// Bytes of shared memory that a block may request.
static int most_shared(void) { return (int)(emulated_setting(EMULATION_SHARED) << 10); }

// ---- errors -----------------------------------------------------------------------------------------------------------------

cudaError_t emulated_error(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

cudaError_t emulated_alive(void)
{
    read_environment();
    if (!owner) owner = getpid();
    if (getpid() != owner) return cudaErrorInitializationError; // a context does not survive a fork
    if (settings[EMULATION_DRIVER] < RUNTIME_VERSION) return cudaErrorInsufficientDriver;
    if (settings[EMULATION_DEVICES] < 1) return cudaErrorNoDevice;
    return lost ? cudaErrorDevicesUnavailable : cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = lost ? cudaErrorDevicesUnavailable : cudaSuccess; // this error persists
    return error;
}

static const struct {
    cudaError_t error;
    const char *text;
} errors[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"},
};

const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &e : errors)
        if (e.error == error) return e.text;
    return "unrecognized error code";
}

// ---- devices ----------------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int *n)
{
    emulated_guard lock(emulated_lock);
    *n = 0;
    const cudaError_t error = emulated_alive();
    if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) return emulated_error(error);
    *n = (int)settings[EMULATION_DEVICES];
    return cudaSuccess;
}

static cudaError_t check_device(int device)
{
    int n;
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess) return error;
    return device >= 0 && device < n ? cudaSuccess : emulated_error(cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int device)
{
    const cudaError_t error = check_device(device);
    if (error != cudaSuccess) return error;
    current_device = device;
    return emulated_error(emulated_alive());
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return check_device(current_device);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
    const cudaError_t error = check_device(device);
    if (error != cudaSuccess) return error;
    switch (which) {
    case cudaDevAttrMultiProcessorCount: *value = (int)emulated_setting(EMULATION_MULTIPROCESSORS); break;
    case cudaDevAttrComputeCapabilityMajor: *value = (int)(emulated_setting(EMULATION_CAPABILITY) / 10); break;
    case cudaDevAttrComputeCapabilityMinor: *value = (int)(emulated_setting(EMULATION_CAPABILITY) % 10); break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = most_shared(); break;
    case cudaDevAttrComputeMode: *value = 0; break;
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables: *value = 0; break;
    default: return emulated_error(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    const cudaError_t error = check_device(device);
    if (error != cudaSuccess) return error;
    *p = cudaDeviceProp();
    snprintf(p->name, sizeof p->name, "Emulated GPU %d", device);
    p->totalGlobalMem = (size_t)emulated_setting(EMULATION_MEMORY);
    p->major = (int)(emulated_setting(EMULATION_CAPABILITY) / 10);
    p->minor = (int)(emulated_setting(EMULATION_CAPABILITY) % 10);
    p->multiProcessorCount = (int)emulated_setting(EMULATION_MULTIPROCESSORS);
    return cudaSuccess;
}

// ---- launches ---------------------------------------------------------------------------------------------------------------

// Dynamic shared memory that a kernel may have beyond the usual, on each device.
static std::map<std::pair<int, const void *>, int> allowed;

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which, int value)
{
    emulated_guard lock(emulated_lock);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    n_attributes++;
    switch (which) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || value > most_shared()) break;
        allowed[{current_device, kernel}] = value;
        return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout: // percent; a hint, which changes nothing here
        if (value < cudaSharedmemCarveoutDefault || value > cudaSharedmemCarveoutMaxShared) break;
        return cudaSuccess;
    }
    return emulated_error(cudaErrorInvalidValue);
}

void emulated_count_launch(void)
{
    n_launches++;
    if (settings[EMULATION_LOSE_AFTER] > 0 && --settings[EMULATION_LOSE_AFTER] == 0) lost = true;
}

// Without registers, whose number the host's compiler does not know.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int threads, size_t shared_bytes)
{
    const int by_threads = MOST_RESIDENT / threads, by_shared = (int)(((size_t)most_shared() + 1024) / (shared_bytes + 1024));
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    return cudaSuccess;
}

static cudaError_t check_resident(dim3 grid, dim3 block, size_t shared_bytes, const emulated_call &call)
{
    int each;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, call.kernel, (int)(block.x * block.y * block.z), shared_bytes);
    const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
    return n > (uint64_t)each * (uint64_t)settings[EMULATION_MULTIPROCESSORS] ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

static cudaError_t check_launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes, const emulated_call &call)
{
    const cudaError_t alive = emulated_alive();
    if (alive != cudaSuccess) return alive;
    if (settings[EMULATION_CAPABILITY] < 75) return cudaErrorNoKernelImageForDevice;
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads < 1 || threads > EMULATED_MOST_THREADS || block.z > 64) return cudaErrorInvalidConfiguration;
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    const auto more = allowed.find({current_device, call.kernel});
    const int most = more == allowed.end() || more->second < EMULATED_SHARED ? (int)EMULATED_SHARED : more->second;
    if (shared_bytes > (size_t)most) return cudaErrorInvalidValue;
    for (int i = 0; i < call.n_pointers; i++) {
        size_t left;
        if (!call.pointers[i] || emulated_where(call.pointers[i], &left) != EMULATED_PAGEABLE) continue;
        emulated_fail("%s: its pointer argument %d, counted from 0 and pointers alone, is not memory of the device: %p", name, i,
                      call.pointers[i]);
    }
    return cudaSuccess;
}

void emulated_enqueue(cudaStream_t stream, const char *name, dim3 grid, dim3 block, size_t shared_bytes, const emulated_call &call,
                      bool together)
{
    emulated_guard lock(emulated_lock);
    cudaError_t error = check_launch(name, grid, block, shared_bytes, call);
    if (error == cudaSuccess && together) error = check_resident(grid, block, shared_bytes, call);
    if (error == cudaSuccess) {
        const emulated_grid g = {name, grid, block, shared_bytes, call.thread, together};
        error = emulated_queue(stream, [g]() {
            emulated_count_launch();
            if (emulated_alive() == cudaSuccess) emulated_run_grid(g);
        });
    }
    emulated_error(error);
}
