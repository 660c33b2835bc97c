/*
 * host.h - the part of CUDA's runtime that kernels/cuda/ calls on the host, emulated (runtime.cpp, stream.cpp). Included by
 * tests/emulation/include/cuda_runtime.h, never by itself.
 *
 * A stream's work is queued and done only when a thread waits for it, so code that does not wait reads old bytes: on a GPU the
 * same mistake shows only sometimes, here always. Device memory is filled with NaNs when it is allocated, and guarded at both
 * ends.
 */
#ifndef LIN_EMULATION_HOST_H
#define LIN_EMULATION_HOST_H

#include <functional>
#include <tuple>
#include <utility>

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorNvlinkUncorrectable = 220,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchTimeout = 702,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorIllegalInstruction = 715,
    cudaErrorMisalignedAddress = 716,
    cudaErrorInvalidAddressSpace = 717,
    cudaErrorInvalidPc = 718,
    cudaErrorLaunchFailure = 719,
    cudaErrorSystemDriverMismatch = 803,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorUnknown = 999
} cudaError_t;

typedef enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice } cudaMemcpyKind;

typedef enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeMode = 20,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrPageableMemoryAccessUsesHostPageTables = 100
} cudaDeviceAttr;

typedef enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
} cudaFuncAttribute;

typedef enum cudaSharedCarveout {
    cudaSharedmemCarveoutDefault = -1,
    cudaSharedmemCarveoutMaxShared = 100
} cudaSharedCarveout;

typedef enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 } cudaStreamCaptureMode;

enum {
    cudaStreamNonBlocking = 1,
    cudaComputeModeProhibited = 2,
    cudaEventDisableTiming = 2,
    cudaHostAllocPortable = 1
};

typedef struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
} cudaDeviceProp;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

extern "C" {
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which, int value);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t shared_bytes);

cudaError_t cudaFree(void *block);
cudaError_t cudaFreeHost(void *block);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

cudaError_t emulated_malloc(void **block, size_t bytes);
cudaError_t emulated_host_alloc(void **block, size_t bytes);
}

template <typename T> static inline cudaError_t cudaMalloc(T **block, size_t bytes)
{
    return emulated_malloc((void **)block, bytes);
}
template <typename T> static inline cudaError_t cudaMallocHost(T **block, size_t bytes, unsigned = 0)
{
    return emulated_host_alloc((void **)block, bytes);
}
template <typename T> static inline cudaError_t cudaHostAlloc(T **block, size_t bytes, unsigned)
{
    return emulated_host_alloc((void **)block, bytes);
}

/* ---- launches -------------------------------------------------------------------------------------------------------------- */

/* A kernel, bound to copies of its arguments as CUDA's launch makes them. */
struct emulated_call {
    const void *kernel;
    std::function<void()> thread;
    const void *const *pointers; /* the arguments that are pointers, for the checks of the launch */
    int n_pointers;
};

/* Queues the launch in the stream; cudaGetLastError reports its error. */
void emulated_enqueue(cudaStream_t stream, const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                      const emulated_call &call, bool together);

template <typename... P> struct emulated_bound {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
};

template <typename... P> struct emulated_binder {
    void (*kernel)(P...);
    emulated_bound<P...> operator()(P... arguments) const { return {kernel, std::tuple<P...>(arguments...)}; }
};

/* emulated_bind(kernel)(arguments...): converts the arguments to the kernel's own types. */
template <typename... P> static inline emulated_binder<P...> emulated_bind(void (*kernel)(P...)) { return {kernel}; }

template <typename T> static inline void emulated_note_pointer(const void **, int *, const T &) {}
template <typename T> static inline void emulated_note_pointer(const void **list, int *n, T *const &pointer)
{
    list[(*n)++] = (const void *)pointer;
}

template <typename... P> static inline void emulated_launch(cudaStream_t stream, const char *name, dim3 grid, dim3 block,
                                                            size_t shared_bytes, const emulated_bound<P...> &bound,
                                                            bool together = false)
{
    const void *pointers[sizeof...(P) + 1];
    int n = 0;
    std::apply([&](const P &...p) { (emulated_note_pointer(pointers, &n, p), ...); }, bound.arguments);
    const auto thread = [bound]() { std::apply(bound.kernel, bound.arguments); };
    emulated_call call = {(const void *)bound.kernel, thread, pointers, n};
    emulated_enqueue(stream, name, grid, block, shared_bytes, call, together);
}

#endif
