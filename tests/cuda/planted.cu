// Kernels with and without faults; see planted.h.
#include <cublasLt.h>

#include "kernels/cuda/cuda.h"
#include "tests/cuda/planted.h"

// LIN_LAUNCH needs the context of the backend; here it has only a stream and a place for the error.
int lin_cuda_check(lin_exec *exec, cudaError_t error, const char *)
{
    if (exec->error == cudaSuccess) exec->error = error;
    return exec->error == cudaSuccess;
}

int lin_cuda_ready(lin_exec *exec) { return exec->error == cudaSuccess; }

namespace {

struct device {
    lin_exec exec;
    void *blocks[8];
    int n;

    device() : exec(), blocks(), n(0)
    {
        cudaGetLastError(); // clears an earlier error
        check(cudaStreamCreateWithFlags(&exec.stream, cudaStreamNonBlocking));
    }
    ~device()
    {
        for (int i = 0; i < n; i++) cudaFree(blocks[i]);
        if (exec.stream) cudaStreamDestroy(exec.stream);
    }
    void check(cudaError_t error) { lin_cuda_check(&exec, error, ""); }
    // A block of the device, with a copy of `from` if that is not NULL.
    template <typename T> T *block(size_t count, const T *from)
    {
        T *made = NULL;
        if (exec.error != cudaSuccess) return NULL;
        check(cudaMalloc(&made, count * sizeof(T)));
        if (!made) return NULL;
        blocks[n++] = made;
        if (from) check(cudaMemcpyAsync(made, from, count * sizeof(T), cudaMemcpyHostToDevice, exec.stream));
        return made;
    }
    template <typename T> void back(T *to, const T *from, size_t count)
    {
        if (exec.error == cudaSuccess) check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, exec.stream));
        if (exec.error == cudaSuccess) check(cudaStreamSynchronize(exec.stream));
    }
};

} // namespace

/* ---- shared memory and barriers -------------------------------------------------------------------------------------------- */

static __global__ void reverse(float *y, const float *x, int n, int fault)
{
    LIN_SHARED(float, s);
    const int i = (int)threadIdx.x, block = (int)blockDim.x, at = (int)blockIdx.x * block;
    if (fault != PLANTED_UNWRITTEN_SHARED || i > 0) s[i] = at + i < n ? x[at + i] : 0;
    if (fault == PLANTED_SHARED_PAST && i == 3) s[block] = 1;
    if (fault == PLANTED_SHARED_BEFORE && i == 3) s[-1] = 1;
    if (fault == PLANTED_DIVERGENT_BARRIER) {
        if (i % 32 < 16) y[at + i] = (float)__shfl_sync(0xffffffffu, i, 0);
        else __syncthreads();
    } else if (fault == PLANTED_OTHER_BARRIER) {
        if (i < block / 2) __syncthreads();
        else __syncthreads();
    } else if (fault != PLANTED_NO_BARRIER) {
        __syncthreads();
    }
    if (at + i < n) y[at + i] = s[block - 1 - i];
    if (fault == PLANTED_GLOBAL_PAST && at + i == n - 1) y[n] = 1;
    if (fault == PLANTED_GLOBAL_BEFORE && at + i == 0) y[-1] = 1;
}

int planted_reverse(float *y, const float *x, int n, int block, planted_fault fault)
{
    device d;
    float *dx = d.block((size_t)n, x), *dy = d.block((size_t)n, (const float *)NULL);
    const float *in = fault == PLANTED_HOST_POINTER ? x : dx;
    LIN_LAUNCH(&d.exec, reverse, (n + block - 1) / block, block, (size_t)block * sizeof(float), dy, in, n, (int)fault);
    d.back(y, dy, (size_t)n);
    return d.exec.error;
}

static __global__ void sum(float *y, const float *x, int fault)
{
    LIN_SHARED(float, s);
    const int i = (int)threadIdx.x, warps = (int)blockDim.x / 32;
    const float v = lin_warp_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (i % 32 == 0) s[i / 32] = v;
    if (fault != PLANTED_NO_BARRIER) __syncthreads();
    if (i >= 32) return;
    float total = i < warps ? s[i] : 0;
    if (fault == PLANTED_NO_WARP_BARRIER) {
        // Assumes warps in lockstep: correct only if no lane runs ahead.
        for (int o = 16; o; o >>= 1) {
            s[i] = total;
            total += i + o < 32 ? s[i + o] : 0;
        }
    } else {
        total = lin_warp_sum(total);
    }
    if (i == 0) y[blockIdx.x] = total;
}

int planted_sum(float *y, const float *x, int blocks, int block, planted_fault fault)
{
    device d;
    float *dx = d.block((size_t)blocks * (size_t)block, x), *dy = d.block((size_t)blocks, (const float *)NULL);
    LIN_LAUNCH(&d.exec, sum, blocks, block, 32 * sizeof(float), dy, (const float *)dx, (int)fault);
    d.back(y, dy, (size_t)blocks);
    return d.exec.error;
}

static __global__ void early_end(int *y)
{
    y[threadIdx.x] = 0;
    if (threadIdx.x & 1) return;
    __syncthreads();
    y[threadIdx.x] = (int)__ballot_sync(0xffffffffu, 1) != 0;
    __syncthreads();
}

int planted_early_end(int *y, int block)
{
    device d;
    int *dy = d.block((size_t)block, (const int *)NULL);
    LIN_LAUNCH(&d.exec, early_end, 1, block, 0, dy);
    d.back(y, dy, (size_t)block);
    return d.exec.error;
}

/* ---- warps ----------------------------------------------------------------------------------------------------------------- */

static __global__ void warp(uint32_t *y, int fault)
{
    const unsigned lane = threadIdx.x, all = blockDim.x == 32 ? 0xffffffffu : (1u << blockDim.x) - 1;
    const uint32_t v = 100 + lane;
    const double wide = 0.5 + lane;
    if (fault == PLANTED_FOREIGN_LANE && lane < 4) {
        y[lane] = __shfl_sync(0xfu, v, 7);
        return;
    }
    if (fault == PLANTED_OWN_LANE_MISSING) {
        y[lane] = __shfl_sync(0xfffffffeu, v, 1);
        return;
    }
    if (fault == PLANTED_DIFFERENT_SHUFFLES) {
        if (lane < 16) y[lane] = __shfl_sync(all, v, 0);
        else y[lane] = __shfl_xor_sync(all, v, 1);
        return;
    }
    uint32_t *to = y + 10 * lane;
    to[0] = __shfl_sync(all, v, 5 % (int)blockDim.x);
    to[1] = __shfl_up_sync(all, v, 3);
    to[2] = __shfl_down_sync(all, v, lane + 3 < blockDim.x ? 3 : 0);
    to[3] = __shfl_xor_sync(all, v, blockDim.x == 32 ? 17 : 0);
    to[4] = __shfl_xor_sync(all, v, blockDim.x == 32 ? 9 : 0, 8);
    to[5] = (uint32_t)(2 * __shfl_up_sync(all, wide, 1, 4));
    to[6] = __ballot_sync(all, lane % 3 == 0);
    to[7] = (uint32_t)(10 * __any_sync(all, lane == 1) + __all_sync(all, lane < 31));
    to[8] = (uint32_t)__reduce_max_sync(all, (int)lane - 3);
    // Halves of the warp separately.
    if (lane < 16) to[9] = __shfl_sync(0xffffu & all, v, 0);
    else to[9] = __shfl_sync(0xffff0000u & all, v, 16);
    __syncwarp(all);
}

int planted_warp(uint32_t *y, int lanes, planted_fault fault)
{
    device d;
    uint32_t *dy = d.block(32 * 10, (const uint32_t *)NULL);
    LIN_LAUNCH(&d.exec, warp, 1, lanes, 0, dy, (int)fault);
    d.back(y, dy, 32 * 10);
    return d.exec.error;
}

static __global__ void product(float *c, const float *a, const float *b, int fault)
{
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    float fa[4], fb[2], fc[4];
    for (int i = 0; i < 4; i++) {
        fa[i] = a[(g + 8 * (i % 2)) * 8 + t + 4 * (i / 2)];
        fc[i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
        if (fault != PLANTED_NOT_ROUNDED) fa[i] = lin_tf32(fa[i]);
    }
    for (int i = 0; i < 2; i++) fb[i] = lin_tf32(b[(t + 4 * i) * 8 + g]);
    if (fault == PLANTED_HALF_WARP_PRODUCT && lane >= 16) return;
    lin_mma_tf32(fc, fa, fb);
    for (int i = 0; i < 4; i++) c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = fc[i];
}

int planted_product(float *c, const float *a, const float *b, planted_fault fault)
{
    device d;
    float *dc = d.block(128, (const float *)c), *da = d.block(128, a), *db = d.block(64, b);
    LIN_LAUNCH(&d.exec, product, 1, 32, 0, dc, (const float *)da, (const float *)db, (int)fault);
    d.back(c, dc, 128);
    return d.exec.error;
}

/* ---- asynchronous copies --------------------------------------------------------------------------------------------------- */

// A block of 32 threads; each copies its part of the first half, then of the second.
static __global__ void copy_through(float *y, const float *x, const float *elsewhere, int n, int bytes, int fault)
{
    LIN_SHARED(float, s);
    const int lane = (int)threadIdx.x, width = bytes / 4, half = n / 2;
    if (fault == PLANTED_HOST_COPY) x = elsewhere;
    for (int part = 0; part < 2; part++) {
        for (int i = part * half + lane * width; i < (part + 1) * half; i += 32 * width) {
            if (fault == PLANTED_UNALIGNED_COPY) lin_copy_async16(s + i + 1, x + i);
            else if (width == 4) lin_copy_async16(s + i, x + i);
            else lin_copy_async4(s + i, x + i);
        }
        lin_copy_commit();
    }
    if (fault == PLANTED_LATE_COPY_WAIT) lin_copy_wait<2>();
    else if (fault != PLANTED_NO_COPY_WAIT) lin_copy_wait<1>();
    __syncwarp();
    for (int i = lane; i < half; i += 32) y[i] = s[i];
    if (fault != PLANTED_NO_COPY_WAIT) lin_copy_wait<0>();
    __syncwarp();
    for (int i = half + lane; i < n; i += 32) y[i] = s[i];
}

struct elsewhere_of {
    const float *pointer;
};

static __global__ void copy_from(float *y, const float *x, elsewhere_of elsewhere, int n, int bytes, int fault)
{
    copy_through(y, x, elsewhere.pointer, n, bytes, fault);
}

int planted_copy(float *y, const float *x, int n, int bytes, planted_fault fault)
{
    device d;
    float *dx = d.block((size_t)n, x), *dy = d.block((size_t)n, (const float *)NULL);
    const elsewhere_of host = {x}; // in a structure, which the launch does not check
    LIN_LAUNCH(&d.exec, copy_from, 1, 32, ((size_t)n + 4) * sizeof(float), dy, (const float *)dx, host, n, bytes, (int)fault);
    d.back(y, dy, (size_t)n);
    return d.exec.error;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

static __global__ void blocks(int *y, int fault)
{
    const unsigned b = blockIdx.x;
    y[b] = fault == PLANTED_BLOCKS_IN_ORDER && b > 0 ? y[b - 1] + 1 : (int)b;
}

int planted_blocks(int *y, int n, planted_fault fault)
{
    device d;
    int *dy = d.block((size_t)n, (const int *)NULL);
    LIN_LAUNCH(&d.exec, blocks, n, 1, 0, dy, (int)fault);
    d.back(y, dy, (size_t)n);
    return d.exec.error;
}

typedef struct meeting {
    int *y, *numbers; // [n, steps], [2, n]
    unsigned *arrived;
    int n, steps, fault;
} meeting;

static __global__ void meet(meeting m)
{
    LIN_SHARED(int, sum);
    const int b = (int)blockIdx.x, last = (int)blockDim.x - 1;
    if (threadIdx.x == 0) *sum = 0;
    __syncthreads();
    for (int s = 0; s < m.steps; s++) {
        int *const numbers = m.numbers + s % 2 * m.n;
        if ((int)threadIdx.x == last) numbers[b] = 100 * s + b;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (m.fault != PLANTED_NO_SIGNAL || b != 1) lin_signal(m.arrived);
            if (m.fault != PLANTED_NO_AWAIT) lin_await(m.arrived, (unsigned)((s + 1) * m.n));
        }
        __syncthreads();
        if ((int)threadIdx.x == last) m.y[b * m.steps + s] = *sum += __ldcg(numbers + (b + 1) % m.n);
        __syncthreads();
    }
}

int planted_meet(int *y, int n, int threads, int steps, planted_fault fault)
{
    device d;
    meeting m = {d.block((size_t)(n * steps), (const int *)NULL), d.block(2 * (size_t)n, (const int *)NULL),
                 d.block(1, (const unsigned *)NULL), n, steps, (int)fault};
    if (d.exec.error == cudaSuccess) d.check(cudaMemsetAsync(m.arrived, 0, sizeof *m.arrived, d.exec.stream));
    if (fault == PLANTED_APART) LIN_LAUNCH(&d.exec, meet, n, threads, sizeof(int), m);
    else LIN_LAUNCH_TOGETHER(&d.exec, meet, n, threads, sizeof(int), m);
    d.check(cudaGetLastError());
    d.back(y, m.y, (size_t)(n * steps));
    return d.exec.error;
}

/* ---- launches, streams, graphs --------------------------------------------------------------------------------------------- */

static __global__ void nothing(int) {}

int planted_launch(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, size_t shared, size_t allowed)
{
    device d;
    if (allowed) {
        d.check(cudaFuncSetAttribute(reinterpret_cast<const void *>(nothing), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)allowed));
    }
    LIN_LAUNCH(&d.exec, nothing, dim3(gx, gy, gz), dim3(bx, by, bz), shared, 0);
    d.check(cudaStreamSynchronize(d.exec.stream));
    return d.exec.error;
}

int planted_host_touch(int write)
{
    device d;
    volatile int *block = d.block(1000, (const int *)NULL);
    d.check(cudaStreamSynchronize(d.exec.stream));
    if (write) block[500] = 1;
    return write ? 0 : block[500];
}

static __global__ void add(float *y, const float *x, int n, float a)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = x[i] + a;
}

int planted_graph(float *y, const float *x, int n, int times)
{
    device d;
    float *a = d.block((size_t)n, x), *b = d.block((size_t)n, (const float *)NULL);
    cudaStream_t side = NULL;
    cudaEvent_t there = NULL, back = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    float one = 1; // read at the launch, not at the replay
    d.check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    d.check(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
    d.check(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
    if (d.exec.error == cudaSuccess) {
        d.check(cudaStreamBeginCapture(d.exec.stream, cudaStreamCaptureModeRelaxed));
        LIN_LAUNCH(&d.exec, add, (n + 31) / 32, 32, 0, b, (const float *)a, n, one);
        one = 1000;
        d.check(cudaEventRecord(there, d.exec.stream));
        d.check(cudaStreamWaitEvent(side, there, 0));
        d.check(cudaMemcpyAsync(a, b, (size_t)n * sizeof(float), cudaMemcpyDeviceToDevice, side));
        d.check(cudaEventRecord(back, side));
        d.check(cudaStreamWaitEvent(d.exec.stream, back, 0));
        d.check(cudaMemsetAsync(b, 0xFF, (size_t)n * sizeof(float), d.exec.stream));
        d.check(cudaStreamEndCapture(d.exec.stream, &graph));
    }
    if (d.exec.error == cudaSuccess) d.check(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < times && d.exec.error == cudaSuccess; i++) d.check(cudaGraphLaunch(exec, d.exec.stream));
    d.back(y, a, (size_t)n);
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
    if (there) cudaEventDestroy(there);
    if (back) cudaEventDestroy(back);
    if (side) cudaStreamDestroy(side);
    return d.exec.error;
}

int planted_graph_unjoined(void)
{
    device d;
    int *block = d.block(1, (const int *)NULL);
    cudaStream_t side;
    cudaEvent_t there;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreate(&there);
    cudaStreamBeginCapture(d.exec.stream, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(there, d.exec.stream);
    cudaStreamWaitEvent(side, there, 0);
    cudaMemsetAsync(block, 0, sizeof *block, side);
    const cudaError_t error = cudaStreamEndCapture(d.exec.stream, &graph);
    cudaGetLastError();
    cudaEventDestroy(there);
    cudaStreamDestroy(side);
    return error;
}

int planted_graph_waits(void)
{
    device d;
    cudaGraph_t graph;
    cudaStreamBeginCapture(d.exec.stream, cudaStreamCaptureModeRelaxed);
    if (cudaStreamSynchronize(d.exec.stream) != cudaErrorStreamCaptureUnsupported) return -1;
    const cudaError_t error = cudaStreamEndCapture(d.exec.stream, &graph);
    cudaGetLastError();
    return error;
}

int planted_streams(int with_event, int *read_it)
{
    device d;
    const float x = 5;
    float y = 0;
    float *a = d.block(1, &x), *b = d.block(1, (const float *)NULL);
    cudaStream_t other;
    cudaEvent_t written;
    d.check(cudaStreamSynchronize(d.exec.stream));
    d.check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    d.check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    lin_exec writer = d.exec;
    writer.stream = other;
    LIN_LAUNCH(&writer, add, 1, 32, 0, a, (const float *)a, 1, 1.0f);
    d.check(cudaEventRecord(written, other));
    if (with_event) d.check(cudaStreamWaitEvent(d.exec.stream, written, 0));
    LIN_LAUNCH(&d.exec, add, 1, 32, 0, b, (const float *)a, 1, 0.0f);
    d.back(&y, b, 1);
    *read_it = y == 6;
    cudaEventDestroy(written);
    cudaStreamDestroy(other);
    return d.exec.error;
}

int planted_async_copy(int *before, int *after)
{
    device d;
    const int seven = 7;
    int *from = d.block(1, &seven), *to = NULL;
    d.check(cudaMallocHost(&to, sizeof *to));
    if (d.exec.error != cudaSuccess) return d.exec.error;
    *to = 0;
    d.check(cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyDeviceToHost, d.exec.stream));
    *before = *to == 7;
    d.check(cudaStreamSynchronize(d.exec.stream));
    *after = *to == 7;
    d.check(cudaFreeHost(to));
    return d.exec.error;
}

/* ---- cublasLt -------------------------------------------------------------------------------------------------------------- */

int planted_matmul(float *out, const void *a, const void *b, const float *c, const float *bias, int m, int n, int k, int lda,
                   int ldb, int ldd, float alpha, float beta, int flags, int shift)
{
    device d;
    const int ta = flags & 1, tb = flags >> 1 & 1, narrow = flags >> 5 & 1;
    const size_t width = narrow ? 2 : 4, na = (size_t)lda * (size_t)(ta ? m : k), nb = (size_t)ldb * (size_t)(tb ? k : n);
    const size_t nd = (size_t)ldd * (size_t)n, off = (size_t)shift * width;
    unsigned char *da = d.block(na * width + off, (const unsigned char *)NULL),
                  *db = d.block(nb * width, (const unsigned char *)b);
    float *dd = d.block(nd, c), *dbias = bias ? d.block((size_t)m, bias) : NULL;
    if (d.exec.error != cudaSuccess) return d.exec.error;
    d.check(cudaMemcpyAsync(da + off, a, na * width, cudaMemcpyHostToDevice, d.exec.stream));
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t la, lb, ld;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    const cudaDataType type = narrow ? CUDA_R_16BF : CUDA_R_32F;
    const int32_t opa = ta ? CUBLAS_OP_T : CUBLAS_OP_N, opb = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t wanted = (uint32_t)(flags & 4) | (uint32_t)(flags & 8) / 4;
    if (!wanted) wanted = CUBLASLT_EPILOGUE_DEFAULT;
    const uint64_t workspace_bytes = 4 << 20;
    int count = 0;
    void *workspace = d.block(workspace_bytes, (const unsigned char *)NULL);
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&product, flags & 16 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &opa, sizeof opa);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &opb, sizeof opb);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &wanted, sizeof wanted);
    if (dbias) cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &dbias, sizeof dbias);
    cublasLtMatrixLayoutCreate(&la, type, (uint64_t)(ta ? k : m), (uint64_t)(ta ? m : k), lda);
    cublasLtMatrixLayoutCreate(&lb, type, (uint64_t)(tb ? n : k), (uint64_t)(tb ? k : n), ldb);
    cublasLtMatrixLayoutCreate(&ld, CUDA_R_32F, (uint64_t)m, (uint64_t)n, ldd);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                         sizeof workspace_bytes);
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, product, la, lb, ld, ld, preference, 1, &found, &count);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatmul(handle, product, &alpha, da + off, la, db, lb, &beta, dd, ld, dd, ld, &found.algo, workspace,
                                workspace_bytes, d.exec.stream);
    }
    d.back(out, dd, nd);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(ld);
    cublasLtMatrixLayoutDestroy(lb);
    cublasLtMatrixLayoutDestroy(la);
    cublasLtMatmulDescDestroy(product);
    cublasLtDestroy(handle);
    return d.exec.error != cudaSuccess ? (int)d.exec.error : 10000 * (int)status;
}
