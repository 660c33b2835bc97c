// The context of the CUDA backend: devices, memory, ordering, graphs, and the table that holds every operation.
//
// A GPU may report a fault only at a later call. The exec records the first error and the operation in progress; from then on
// operations do nothing, and finish reports the error.
#include "kernels/cuda/cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/memory.h"
}

enum {
    MAX_DEVICES = 16,
    N_PRECISIONS = 3,
    OLDEST_MAJOR = 8, // compute capability 8.0: tf32 and bf16 on tensor cores, asynchronous copies
    SCRATCH_STEP = 1 << 20,
};

struct lin_graph {
    cudaGraphExec_t replay;
    int device;
    cudaStream_t stream; // of the exec that recorded it
};

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

static const char *hint_of(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "; smaller batches or fewer streams need less";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
        return "; this build has no code for its architecture: rebuild it with make on this machine";
    case cudaErrorInsufficientDriver:
        return "; update the driver";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
        return "; this is a bug in linnet: run again with CUDA_LAUNCH_BLOCKING=1 to see where, and report it";
    case cudaErrorLaunchTimeout:
        return "; the display's watchdog stopped it: use a GPU without a display";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorLaunchFailure:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorUnknown:
        return "; the GPU was lost or is faulty: check nvidia-smi and the kernel's log";
    default:
        return "";
    }
}

static lin_status status_of(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return LIN_NO_MEMORY;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInsufficientDriver:
        return LIN_UNSUPPORTED;
    default:
        return LIN_IO;
    }
}

static lin_status fail(lin_error *err, int device, cudaError_t error, const char *what)
{
    return lin_fail(err, status_of(error), "GPU %d: %s: %s%s", device, what, cudaGetErrorString(error), hint_of(error));
}

int lin_cuda_check(lin_exec *exec, cudaError_t error, const char *what)
{
    if (error != cudaSuccess && exec->error == cudaSuccess) {
        exec->error = error;
        snprintf(exec->what, sizeof exec->what, "%s", what);
    }
    return exec->error == cudaSuccess;
}

int lin_cuda_ready(lin_exec *exec)
{
    if (exec->error != cudaSuccess) return 0;
    // Reading the current device costs less than setting it, and it is almost always the right one.
    int now = -1;
    if (cudaGetDevice(&now) == cudaSuccess && now == exec->device) return 1;
    return lin_cuda_check(exec, cudaSetDevice(exec->device), "selecting the GPU");
}

// Reports and clears the recorded error; if the device is lost for this process, the error stays.
static lin_status report(lin_exec *exec, lin_error *err)
{
    if (exec->error == cudaSuccess) return LIN_OK;
    const lin_status status = fail(err, exec->device, exec->error, exec->what);
    cudaGetLastError();
    if (cudaStreamSynchronize(exec->stream) == cudaSuccess) exec->error = cudaSuccess;
    cudaGetLastError();
    return status;
}

/* ---- devices --------------------------------------------------------------------------------------------------------------- */

static int attribute(cudaDeviceAttr name, int device)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, name, device) == cudaSuccess ? value : 0;
}

// Why this build cannot use a device; "" if it can.
static void why_not(int device, const char *name, char *text, size_t capacity)
{
    const int major = attribute(cudaDevAttrComputeCapabilityMajor, device);
    const int minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
    text[0] = 0;
    if (major < OLDEST_MAJOR) {
        snprintf(text, capacity, "GPU %d (%s) has compute capability %d.%d, this build needs %d.0 or newer", device, name, major,
                 minor, OLDEST_MAJOR);
    } else if (attribute(cudaDevAttrComputeMode, device) == cudaComputeModeProhibited) {
        snprintf(text, capacity, "GPU %d (%s) is in prohibited compute mode: change it with nvidia-smi -c 0", device, name);
    } else if (device >= MAX_DEVICES) {
        snprintf(text, capacity, "GPU %d: this build supports %d GPUs; choose which with CUDA_VISIBLE_DEVICES", device,
                 MAX_DEVICES);
    }
}

extern "C" int lin_cuda_device(int i, lin_device *device)
{
    int count = 0;
    cudaDeviceProp prop;
    memset(device, 0, sizeof *device);
    if (cudaGetDeviceCount(&count) != cudaSuccess || i < 0 || i >= count) return 0;
    if (cudaGetDeviceProperties(&prop, i) != cudaSuccess) return 0;
    snprintf(device->name, sizeof device->name, "%s", prop.name);
    device->major = prop.major;
    device->minor = prop.minor;
    device->multiprocessors = prop.multiProcessorCount;
    device->memory_bytes = prop.totalGlobalMem;
    why_not(i, device->name, device->why_not, sizeof device->why_not);
    if (device->why_not[0]) return 1;
    size_t total = 0;
    int before = 0;
    cudaGetDevice(&before);
    cudaError_t error = cudaSetDevice(i);
    if (error == cudaSuccess) error = cudaMemGetInfo(&device->free_bytes, &total);
    if (error != cudaSuccess) {
        lin_error why = {};
        fail(&why, i, error, "opening it");
        // Half the capacity is longer than any of these sentences.
        snprintf(device->why_not, sizeof device->why_not, "%.500s", why.message);
        cudaGetLastError();
    }
    cudaSetDevice(before);
    return 1;
}

/* ---- execution context ----------------------------------------------------------------------------------------------------- */

// Launched once, to check that the build has code for this GPU.
static __global__ void answer(int *to)
{
    if (to) *to = 1;
}

static void exec_destroy(lin_exec *exec)
{
    if (!exec) return;
    cudaSetDevice(exec->device);
    if (exec->stream) cudaStreamSynchronize(exec->stream);
    lin_cuda_plans_destroy(exec);
    for (int i = 0; i < exec->n_scratch; i++) cudaFree(exec->scratch[i]);
    lin_free(exec->scratch);
    for (int i = 0; i < LIN_FENCES; i++)
        if (exec->fences[i]) cudaEventDestroy(exec->fences[i]);
    if (exec->copied) cudaEventDestroy(exec->copied);
    if (exec->copies) cudaStreamDestroy(exec->copies);
    if (exec->stream) cudaStreamDestroy(exec->stream);
    cudaGetLastError();
    lin_free(exec);
}

static lin_status exec_create(const lin_ops *ops, int n_threads, lin_exec **out, lin_error *err)
{
    (void)n_threads;
    *out = NULL;
    lin_exec *exec = (lin_exec *)lin_calloc(1, sizeof *exec);
    if (!exec) return lin_no_memory(err, "an execution context", sizeof *exec);
    exec->device = ops->device;
    exec->precision = ops->precision;
    exec->multiprocessors = attribute(cudaDevAttrMultiProcessorCount, ops->device);
    exec->shared_most = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ops->device);
    exec->reads_host = attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, ops->device);
    lin_cuda_check(exec, cudaSetDevice(exec->device), "opening it");
    // Non-blocking: no synchronisation with the default stream in either direction.
    if (lin_cuda_ready(exec)) {
        lin_cuda_check(exec, cudaStreamCreateWithFlags(&exec->stream, cudaStreamNonBlocking), "making a stream");
        lin_cuda_check(exec, cudaStreamCreateWithFlags(&exec->copies, cudaStreamNonBlocking), "making a stream");
        lin_cuda_check(exec, cudaEventCreateWithFlags(&exec->copied, cudaEventDisableTiming), "making an event");
    }
    for (int i = 0; i < LIN_FENCES && lin_cuda_ready(exec); i++) {
        lin_cuda_check(exec, cudaEventCreateWithFlags(&exec->fences[i], cudaEventDisableTiming), "making an event");
    }
    LIN_LAUNCH(exec, answer, 1, 32, 0, (int *)NULL);
    if (lin_cuda_ready(exec)) lin_cuda_check(exec, cudaStreamSynchronize(exec->stream), "running a first kernel");
    lin_status status = LIN_OK;
    if (exec->error != cudaSuccess) status = fail(err, exec->device, exec->error, exec->what);
    if (status == LIN_OK) status = lin_cuda_plans_create(exec, err);
    if (status != LIN_OK) {
        exec_destroy(exec);
        return status;
    }
    *out = exec;
    return LIN_OK;
}

int lin_cuda_resident(lin_exec *exec, const void *kernel, int threads, size_t shared_bytes)
{
    int each = 0;
    if (!lin_cuda_ready(exec) || !attribute(cudaDevAttrCooperativeLaunch, exec->device)) return 0;
    if (!lin_cuda_check(exec, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_bytes),
                        "asking how many blocks are resident")) {
        return 0;
    }
    return each * exec->multiprocessors;
}

int lin_cuda_allow_shared(lin_exec *exec, const void *kernel, size_t bytes, const char *what)
{
    if (!lin_cuda_ready(exec)) return 0;
    if (bytes > exec->shared_most) return lin_cuda_check(exec, cudaErrorInvalidValue, what);
    for (int i = 0; i < exec->n_allowed; i++)
        if (exec->allowed[i] == kernel) return 1;
    // A multiprocessor should give all its memory to blocks and none to the first-level cache: they read rows once.
    if (!lin_cuda_check(exec, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)exec->shared_most),
                        what) ||
        !lin_cuda_check(exec, cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                   cudaSharedmemCarveoutMaxShared), what)) {
        return 0;
    }
    if (exec->n_allowed < LIN_CUDA_ALLOWED) exec->allowed[exec->n_allowed++] = kernel;
    return 1;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static lin_status no_room(lin_exec *exec, cudaError_t error, const char *what, size_t bytes, lin_error *err)
{
    size_t free_bytes = 0, total = 0;
    cudaGetLastError();
    if (error != cudaErrorMemoryAllocation) return fail(err, exec->device, error, what);
    cudaMemGetInfo(&free_bytes, &total);
    cudaGetLastError();
    return lin_fail(err, LIN_NO_MEMORY, "GPU %d: %s: %.1f MB requested, %.1f of %.1f MB free%s", exec->device, what,
                    (double)bytes * 1e-6, (double)free_bytes * 1e-6, (double)total * 1e-6, hint_of(error));
}

static lin_status memory_create(lin_exec *exec, size_t bytes, void **block, lin_error *err)
{
    *block = NULL;
    lin_status status = report(exec, err);
    if (status != LIN_OK) return status;
    if (!lin_cuda_ready(exec)) return report(exec, err);
    const cudaError_t error = cudaMalloc(block, bytes ? bytes : 1);
    if (error != cudaSuccess) {
        *block = NULL;
        return no_room(exec, error, "out of memory", bytes, err);
    }
    // Wait, because other streams may use the block.
    if (lin_cuda_check(exec, cudaMemsetAsync(*block, 0, bytes ? bytes : 1, exec->stream), "clearing memory")) {
        lin_cuda_check(exec, cudaStreamSynchronize(exec->stream), "clearing memory");
    }
    if (exec->error == cudaSuccess) return LIN_OK;
    cudaFree(*block);
    *block = NULL;
    return report(exec, err);
}

static void memory_destroy(lin_exec *exec, void *block)
{
    if (!block) return;
    // Not lin_cuda_ready: memory is freed even after an error.
    cudaSetDevice(exec->device);
    lin_cuda_check(exec, cudaFree(block), "freeing memory");
}

static lin_status staging_create(lin_exec *exec, size_t bytes, void **block, lin_error *err)
{
    *block = NULL;
    if (!lin_cuda_ready(exec)) return report(exec, err);
    const cudaError_t error = cudaHostAlloc(block, bytes ? bytes : 1, cudaHostAllocPortable);
    if (error != cudaSuccess) {
        *block = NULL;
        cudaGetLastError();
        if (error != cudaErrorMemoryAllocation) return fail(err, exec->device, error, "page-locked memory");
        return lin_fail(err, LIN_NO_MEMORY, "GPU %d: cannot allocate %.1f MB of page-locked memory", exec->device,
                        (double)bytes * 1e-6);
    }
    memset(*block, 0, bytes);
    return LIN_OK;
}

static void staging_destroy(lin_exec *exec, void *block)
{
    if (!block) return;
    cudaSetDevice(exec->device);
    // Copies from or to it may still be running.
    cudaStreamSynchronize(exec->stream);
    lin_cuda_check(exec, cudaFreeHost(block), "freeing page-locked memory");
}

size_t lin_cuda_most_scratch(void)
{
    const char *bytes = getenv("LINNET_CUDA_SCRATCH");
    const long long most = bytes ? atoll(bytes) : 0;
    return most > 0 ? (size_t)most : (size_t)1 << 30;
}

void *lin_cuda_scratch(lin_exec *exec, size_t bytes)
{
    if (!lin_cuda_ready(exec)) return NULL;
    if (bytes <= exec->scratch_bytes) return exec->scratch[exec->n_scratch - 1];
    // At least twice as much as before, so that the older blocks together are no larger than the newest.
    size_t grown = 2 * exec->scratch_bytes;
    if (grown < bytes) grown = bytes;
    grown = (grown + SCRATCH_STEP - 1) / SCRATCH_STEP * SCRATCH_STEP;
    void **list = (void **)lin_resize(exec->scratch, (size_t)exec->n_scratch + 1, sizeof *list);
    if (!list) {
        lin_cuda_check(exec, cudaErrorMemoryAllocation, "listing the scratch memory");
        return NULL;
    }
    exec->scratch = list;
    cudaError_t error = cudaMalloc(&list[exec->n_scratch], grown);
    if (error == cudaErrorMemoryAllocation && grown > bytes) {
        cudaGetLastError();
        grown = bytes;
        error = cudaMalloc(&list[exec->n_scratch], grown);
    }
    if (error != cudaSuccess) {
        char what[96];
        cudaGetLastError();
        snprintf(what, sizeof what, "taking %.1f MB of scratch", (double)grown * 1e-6);
        lin_cuda_check(exec, error, what);
        return NULL;
    }
    exec->scratch_bytes = grown;
    return list[exec->n_scratch++];
}

/* ---- copies and order ------------------------------------------------------------------------------------------------------ */

static void upload(lin_exec *exec, void *to, const void *from, size_t bytes)
{
    if (bytes == 0 || !lin_cuda_ready(exec)) return;
    // From memory that is not page-locked, this returns after the bytes have been read, so the caller may change them at
    // once. Not so on machines whose GPU reads the host's page tables.
    lin_cuda_check(exec, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, exec->stream), "copying to the GPU");
    if (exec->reads_host && !exec->capturing) {
        lin_cuda_check(exec, cudaStreamSynchronize(exec->stream), "copying to the GPU");
    }
}

// The exec's stream waits for the copy, so that what waits for the stream waits for both.
static void upload_beside(lin_exec *exec, void *to, const void *from, size_t bytes, int i)
{
    if (bytes == 0 || !lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaStreamWaitEvent(exec->copies, exec->fences[i], 0), "copying to the GPU");
    lin_cuda_check(exec, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, exec->copies), "copying to the GPU");
    lin_cuda_check(exec, cudaEventRecord(exec->copied, exec->copies), "copying to the GPU");
    lin_cuda_check(exec, cudaStreamWaitEvent(exec->stream, exec->copied, 0), "copying to the GPU");
}

static void download(lin_exec *exec, void *to, const void *from, size_t bytes)
{
    if (!lin_cuda_ready(exec)) return;
    if (bytes)
        lin_cuda_check(exec, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, exec->stream), "copying from the GPU");
    lin_cuda_check(exec, cudaStreamSynchronize(exec->stream), "waiting for the GPU");
}

static void fetch(lin_exec *exec, void *to, const void *from, size_t bytes)
{
    if (bytes == 0 || !lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, exec->stream), "copying from the GPU");
}

static void copy(lin_exec *exec, void *to, const void *from, size_t bytes)
{
    if (bytes == 0 || to == from || !lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, exec->stream), "copying on the GPU");
}

static void zero(lin_exec *exec, void *block, size_t bytes)
{
    if (bytes == 0 || !lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaMemsetAsync(block, 0, bytes, exec->stream), "clearing memory");
}

// A fence set while a graph is recorded would become part of the graph and could not be waited for: leave it as it is.
static void fence(lin_exec *exec, int i)
{
    if (exec->capturing || !lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaEventRecord(exec->fences[i], exec->stream), "setting a fence");
}

static void wait(lin_exec *exec, int i)
{
    if (exec->capturing || !lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaEventSynchronize(exec->fences[i]), "waiting for the GPU");
}

static lin_status finish(lin_exec *exec, lin_error *err)
{
    if (lin_cuda_ready(exec)) lin_cuda_check(exec, cudaStreamSynchronize(exec->stream), "waiting for the GPU");
    return report(exec, err);
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------- */

// Relaxed: scratch may be allocated and kernels may be loaded while operations are recorded.
static lin_status graph_begin(lin_exec *exec, lin_error *err)
{
    if (!lin_cuda_ready(exec)) return report(exec, err);
    lin_cuda_check(exec, cudaStreamBeginCapture(exec->stream, cudaStreamCaptureModeRelaxed), "beginning a graph");
    if (exec->error != cudaSuccess) return report(exec, err);
    exec->capturing = 1;
    return LIN_OK;
}

static lin_status graph_end(lin_exec *exec, lin_graph **out, lin_error *err)
{
    *out = NULL;
    cudaGraph_t recorded = NULL;
    lin_graph *graph = (lin_graph *)lin_calloc(1, sizeof *graph);
    // The recording is ended even after an error: otherwise the stream could not be used again.
    cudaSetDevice(exec->device);
    lin_cuda_check(exec, cudaStreamEndCapture(exec->stream, &recorded), "recording a graph");
    exec->capturing = 0;
    if (graph && exec->error == cudaSuccess) {
        graph->device = exec->device;
        graph->stream = exec->stream;
        lin_cuda_check(exec, cudaGraphInstantiate(&graph->replay, recorded, 0), "making a graph");
    }
    if (recorded) cudaGraphDestroy(recorded);
    if (graph && exec->error == cudaSuccess) {
        *out = graph;
        return LIN_OK;
    }
    lin_status status = report(exec, err);
    if (!graph) status = lin_no_memory(err, "a graph", sizeof *graph);
    lin_free(graph);
    return status;
}

static void graph_launch(lin_exec *exec, const lin_graph *graph)
{
    if (!lin_cuda_ready(exec)) return;
    lin_cuda_check(exec, cudaGraphLaunch(graph->replay, exec->stream), "launching a graph");
}

static void graph_destroy(lin_graph *graph)
{
    if (!graph) return;
    cudaSetDevice(graph->device);
    cudaStreamSynchronize(graph->stream); // the graph may be running; not cudaDeviceSynchronize: another exec may be recording
    cudaGraphExecDestroy(graph->replay);
    cudaGetLastError();
    lin_free(graph);
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static lin_ops tables[MAX_DEVICES][N_PRECISIONS];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

#define ENTRY(name) t->name = lin_cuda_##name;

static void fill(lin_ops *t)
{
    t->name = "cuda";
    t->sums_in_norm = 1;
    t->exec_create = exec_create;
    t->exec_destroy = exec_destroy;
    t->memory_create = memory_create;
    t->memory_destroy = memory_destroy;
    t->staging_create = staging_create;
    t->staging_destroy = staging_destroy;
    t->upload = upload;
    t->upload_beside = upload_beside;
    t->download = download;
    t->fetch = fetch;
    t->copy = copy;
    t->zero = zero;
    t->fence = fence;
    t->wait = wait;
    t->finish = finish;
    t->graph_begin = graph_begin;
    t->graph_end = graph_end;
    t->graph_launch = graph_launch;
    t->graph_destroy = graph_destroy;
    LIN_OPERATIONS(ENTRY)
    LIN_BLOCK_OPERATIONS(ENTRY)
    LIN_RIVAL_OPERATIONS(ENTRY)
    t->fbank = lin_cuda_fbank;
}

static void fill_tables(void)
{
    for (int d = 0; d < MAX_DEVICES; d++)
        for (int p = 0; p < N_PRECISIONS; p++) {
            fill(&tables[d][p]);
            tables[d][p].device = d;
            tables[d][p].precision = (lin_precision)p;
            if (p != LIN_PRECISION_BF16) continue;
            tables[d][p].writes_operands = 1;
            tables[d][p].attention_block_forward = lin_cuda_attention_block_forward;
            tables[d][p].attention_block_backward = lin_cuda_attention_block_backward;
        }
}

extern "C" int lin_cuda_interface(void) { return LIN_CUDA_INTERFACE; }

extern "C" lin_status lin_cuda_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    int count = 0;
    cudaDeviceProp prop;
    char text[512];
    *ops = NULL;
    if ((int)precision < 0 || (int)precision >= N_PRECISIONS) {
        return lin_fail(err, LIN_INVALID, "unknown precision %d", (int)precision);
    }
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
    if (error != cudaSuccess) {
        cudaGetLastError();
        return lin_fail(err, LIN_UNSUPPORTED, "no usable GPU: %s", cudaGetErrorString(error));
    }
    if (device < 0 || device >= count) {
        return lin_fail(err, LIN_UNSUPPORTED, "there is no GPU %d; the last is %d", device, count - 1);
    }
    error = cudaGetDeviceProperties(&prop, device);
    if (error != cudaSuccess) {
        cudaGetLastError();
        return fail(err, device, error, "asking for its properties");
    }
    why_not(device, prop.name, text, sizeof text);
    if (text[0]) return lin_fail(err, LIN_UNSUPPORTED, "%s", text);
    pthread_once(&tables_once, fill_tables);
    *ops = &tables[device][precision];
    return LIN_OK;
}

/* ---- sums over the rows of a matrix: how they are divided, and the second stage -------------------------------------------- */

enum {
    FOLD = 32,
    FEWEST_ROWS = 64, // of a slice
    BLOCKS = 1024,    // about what a GPU runs at once, and a constant, so that sums are the same on all GPUs
};

lin_cuda_sums lin_cuda_sums_begin(lin_exec *exec, int rows, int n, int columns, int n_sums)
{
    lin_cuda_sums s = {};
    const unsigned across = lin_cuda_blocks((size_t)n, LIN_SUM_ACROSS * (size_t)columns);
    const int most = BLOCKS / (int)across;
    s.slices = (rows + FEWEST_ROWS - 1) / FEWEST_ROWS;
    if (s.slices > most) s.slices = most ? most : 1;
    s.rows_each = (rows + s.slices - 1) / s.slices;
    s.slices = (rows + s.rows_each - 1) / s.rows_each;
    s.grid = dim3(across, (unsigned)s.slices);
    s.block = dim3(LIN_SUM_ACROSS, LIN_SUM_DOWN);
    s.shared_bytes = LIN_SUM_THREADS * (size_t)columns * (size_t)n_sums * sizeof(float);
    s.partial = (float *)lin_cuda_scratch(exec, (size_t)s.slices * (size_t)n_sums * (size_t)n * sizeof(float));
    return s;
}

// One warp for 32 columns and every 32nd part; then the warps' sums in order.
static __global__ void __launch_bounds__(FOLD *FOLD)
    fold(const float *__restrict__ partial, int parts, int width, lin_cuda_total a, lin_cuda_total b, lin_cuda_total c)
{
    LIN_SHARED(float, sums); // [FOLD, FOLD + 1]
    const int column = (int)blockIdx.x * FOLD + (int)threadIdx.x;
    float sum = 0;
    if (column < width) {
        for (int i = (int)threadIdx.y; i < parts; i += FOLD) sum += partial[(size_t)i * (size_t)width + (size_t)column];
    }
    sums[threadIdx.y * (FOLD + 1) + threadIdx.x] = sum;
    __syncthreads();
    // Transposed: each warp adds up one column.
    sum = lin_warp_sum(sums[threadIdx.x * (FOLD + 1) + threadIdx.y]);
    const int owned = (int)blockIdx.x * FOLD + (int)threadIdx.y;
    if (threadIdx.x == 0 && owned < width) {
        float *to = owned < a.n ? a.to + owned : owned < a.n + b.n ? b.to + (owned - a.n) : c.to + (owned - a.n - b.n);
        *to += sum;
    }
}

void lin_cuda_fold(lin_exec *exec, const float *partial, int parts, lin_cuda_total a, lin_cuda_total b, lin_cuda_total c)
{
    const int width = a.n + b.n + c.n;
    if (parts == 0 || width == 0) return;
    LIN_LAUNCH(exec, fold, lin_cuda_blocks((size_t)width, FOLD), dim3(FOLD, FOLD), FOLD * (FOLD + 1) * sizeof(float), partial,
               parts, width, a, b, c);
}

static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    sum_columns(float *__restrict__ partial, const float *__restrict__ x, int rows, int n, int rows_each)
{
    lin_sum_slice<1, 1>(partial, rows, n, rows_each,
                        [=](float (&v)[1], int row, int column) { v[0] = x[(size_t)row * (size_t)n + (size_t)column]; });
}

void lin_cuda_sum_columns(lin_exec *exec, float *to, const float *x, int rows, int n)
{
    const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, 1, 1);
    if (!s.partial) return;
    LIN_LAUNCH(exec, sum_columns, s.grid, s.block, s.shared_bytes, s.partial, x, rows, n, s.rows_each);
    lin_cuda_fold(exec, s.partial, s.slices, {to, n});
}
