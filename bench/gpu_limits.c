/*
 * gpu_limits.c - the limits of an NVIDIA GPU: copying within its memory, and square matrix products by cublasLt in fp32,
 * tf32 and bf16. Shares of these limits are more meaningful than shares of a data sheet. Independent of the rest of the project,
 * so that a fault there cannot lower the limit that it is compared with. gpu.sh builds and runs it:
 *
 *   nvcc -O2 bench/gpu_limits.c -lcublasLt -o gpu_limits && ./gpu_limits [N]
 *
 * Products of N x N (8192) random numbers (zeros run faster), operands in the given precision, the best of the eight algorithms
 * that cublasLt proposes. One JSON object per line: {"part": "peak", "who": "cublasLt", "what": "bf16", "value": TFLOP/s}; copy
 * in GB/s, read and written bytes counted.
 */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALGORITHMS = 8, TRIALS = 5 };
static const size_t workspace_bytes = (size_t)64 << 20;

static void must(int good, const char *what)
{
    if (good) return;
    fprintf(stderr, "gpu_limits: %s failed: %s\n", what, cudaGetErrorString(cudaGetLastError()));
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

static void say(const char *who, const char *what, double value)
{
    printf("{\"part\": \"peak\", \"who\": \"%s\", \"what\": \"%s\", \"value\": %.6g}\n", who, what, value);
    fflush(stdout);
}

typedef struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulAlgo_t algo;
    void *a, *b, *c, *workspace;
    size_t copy_bytes; // not 0: a copy, not a product
} product;

static int run(const product *p)
{
    const float one = 1, zero = 0;
    if (p->copy_bytes) return cudaMemcpyAsync(p->c, p->a, p->copy_bytes, cudaMemcpyDeviceToDevice, 0) == cudaSuccess;
    return cublasLtMatmul(p->handle, p->desc, &one, p->a, p->layout, p->b, p->layout, &zero, p->c, p->layout, p->c, p->layout,
                          &p->algo, p->workspace, workspace_bytes, 0) == CUBLAS_STATUS_SUCCESS;
}

// Milliseconds of one run: the median of five trials of five runs each, after two warm-up runs. Negative: it does not run.
static float milliseconds(const product *p)
{
    enum { RUNS = 5 };
    cudaEvent_t begin, end;
    float time[TRIALS];
    if (!run(p) || !run(p) || cudaDeviceSynchronize() != cudaSuccess) return -1;
    must(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess, "creating events");
    for (int t = 0; t < TRIALS; t++) {
        cudaEventRecord(begin, 0);
        for (int i = 0; i < RUNS; i++) run(p);
        cudaEventRecord(end, 0);
        must(cudaEventSynchronize(end) == cudaSuccess && cudaEventElapsedTime(&time[t], begin, end) == cudaSuccess, "timing");
        time[t] /= RUNS;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    qsort(time, TRIALS, sizeof *time, by_value);
    return time[TRIALS / 2];
}

static void fill(void *device, size_t count, int half)
{
    enum { AT_ONCE = 1 << 20 };
    static float noise[AT_ONCE];
    static uint16_t halves[AT_ONCE];
    uint32_t state = 12345;
    for (size_t i = 0; i < AT_ONCE; i++) {
        uint32_t bits;
        state = state * 1664525u + 1013904223u;
        noise[i] = (float)(state >> 8) / (1 << 23) - 1;
        memcpy(&bits, &noise[i], sizeof bits);
        halves[i] = (uint16_t)(bits >> 16);
    }
    const size_t size = half ? 2 : 4;
    for (size_t at = 0; at < count; at += AT_ONCE) {
        const size_t n = count - at < AT_ONCE ? count - at : AT_ONCE;
        must(cudaMemcpy((char *)device + at * size, half ? (void *)halves : (void *)noise, n * size, cudaMemcpyHostToDevice) ==
                 cudaSuccess,
             "uploading");
    }
}

static void measure(product *p, const char *name, cublasComputeType_t compute, cudaDataType_t type, uint64_t n)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    int n_found = 0;
    float best = -1;
    fill(p->a, n * n, type == CUDA_R_16BF);
    fill(p->b, n * n, type == CUDA_R_16BF);
    must(cublasLtMatmulDescCreate(&p->desc, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
             cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) ==
                 CUBLAS_STATUS_SUCCESS &&
             cublasLtMatrixLayoutCreate(&p->layout, type, n, n, (int64_t)n) == CUBLAS_STATUS_SUCCESS &&
             cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS &&
             cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                                  sizeof workspace_bytes) == CUBLAS_STATUS_SUCCESS,
         "describing a product");
    must(cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->layout, p->layout, p->layout, p->layout, preference, ALGORITHMS,
                                        found, &n_found) == CUBLAS_STATUS_SUCCESS,
         "choosing an algorithm");
    for (int i = 0; i < n_found; i++) {
        p->algo = found[i].algo;
        const float ms = found[i].state == CUBLAS_STATUS_SUCCESS ? milliseconds(p) : -1;
        if (ms > 0 && (best < 0 || ms < best)) best = ms;
    }
    if (best > 0) say("cublasLt", name, 2e-9 * (double)(n * n) * (double)n / best);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(p->layout);
    cublasLtMatmulDescDestroy(p->desc);
}

int main(int argc, char **argv)
{
    const long asked = argc > 1 ? atol(argv[1]) : 8192;
    const uint64_t n = asked < 16 || asked > 32768 ? 8192 : (uint64_t)asked;
    const size_t bytes = n * n * 4 > (size_t)1 << 31 ? n * n * 4 : (size_t)1 << 31;
    product p = {0};
    must(cudaMalloc(&p.a, bytes) == cudaSuccess && cudaMalloc(&p.b, n * n * 4) == cudaSuccess &&
             cudaMalloc(&p.c, bytes) == cudaSuccess && cudaMalloc(&p.workspace, workspace_bytes) == cudaSuccess,
         "taking memory");
    fill(p.a, bytes / 4, 0);
    p.copy_bytes = bytes;
    const float ms = milliseconds(&p);
    must(ms > 0, "copying");
    say("cudaMemcpy", "copy", 2e-6 * (double)bytes / ms);
    p.copy_bytes = 0;
    must(cublasLtCreate(&p.handle) == CUBLAS_STATUS_SUCCESS, "opening cublasLt");
    measure(&p, "fp32", CUBLAS_COMPUTE_32F, CUDA_R_32F, n);
    measure(&p, "tf32", CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, n);
    measure(&p, "bf16", CUBLAS_COMPUTE_32F, CUDA_R_16BF, n);
    cublasLtDestroy(p.handle);
    cudaFree(p.a);
    cudaFree(p.b);
    cudaFree(p.c);
    cudaFree(p.workspace);
    return 0;
}
