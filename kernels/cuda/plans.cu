// Chooses the algorithm of cublasLt for each product; see plans.h.
//
// The choice depends only on the shape, not on earlier products: shapes are grouped into classes of rows, candidates are searched
// for the largest of the class, and the first that supports the exact shape is used. Reductions that accumulate in place are
// excluded, so that the same calls give the same bits on the same GPU.
#include "kernels/cuda/plans.h"

#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"
}

enum { CANDIDATES = 8, BUCKETS = 256, THREADS = 256, WORKSPACE_BYTES = 32 << 20, TIMED_RUNS = 20, SLICE_ROWS = 1024 };

// The key of a plan. All ints, so that two keys can be compared and hashed as bytes.
typedef struct plan_key {
    int forward, narrow, narrow_d, rows, n, k, epilogue, slices;
    int align[4]; // of a, b, d, bias: 4, 8 or 16 bytes
} plan_key;

typedef struct plan {
    struct plan *next;
    plan_key key;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
    int rows; // of the layouts and `chosen`; 0 at first
    int chosen, count;
    cublasLtMatmulHeuristicResult_t candidates[CANDIDATES];
} plan;

struct lin_cuda_plans {
    cublasLtHandle_t handle;
    void *workspace; // WORKSPACE_BYTES once an algorithm needs it
    int tune, slice_rows;
    plan *buckets[BUCKETS];
};

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

lin_status lin_cuda_plans_create(lin_exec *exec, lin_error *err)
{
    struct lin_cuda_plans *plans = (struct lin_cuda_plans *)lin_calloc(1, sizeof *plans);
    if (!plans) return lin_no_memory(err, "the plans of matrix products", sizeof *plans);
    const cublasStatus_t status = cublasLtCreate(&plans->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        lin_free(plans);
        return lin_fail(err, status == CUBLAS_STATUS_ALLOC_FAILED ? LIN_NO_MEMORY : LIN_UNSUPPORTED,
                        "GPU %d: cannot initialise cublasLt: %s", exec->device, cublasLtGetStatusString(status));
    }
    const char *tune = getenv("LINNET_CUDA_TUNE");
    plans->tune = tune && strcmp(tune, "1") == 0;
    const char *rows = getenv("LINNET_CUDA_SLICE_ROWS");
    plans->slice_rows = rows && *rows ? atoi(rows) : SLICE_ROWS;
    exec->plans = plans;
    return LIN_OK;
}

int lin_cuda_slice_rows(const lin_exec *exec) { return exec->plans->slice_rows > 0 ? exec->plans->slice_rows : 0; }

static void destroy(plan *p)
{
    if (p->d) cublasLtMatrixLayoutDestroy(p->d);
    if (p->b) cublasLtMatrixLayoutDestroy(p->b);
    if (p->a) cublasLtMatrixLayoutDestroy(p->a);
    if (p->product) cublasLtMatmulDescDestroy(p->product);
    lin_free(p);
}

void lin_cuda_plans_destroy(lin_exec *exec)
{
    struct lin_cuda_plans *plans = exec->plans;
    if (!plans) return;
    for (int i = 0; i < BUCKETS; i++) {
        for (plan *p = plans->buckets[i], *next; p; p = next) {
            next = p->next;
            destroy(p);
        }
    }
    if (plans->workspace) cudaFree(plans->workspace);
    cublasLtDestroy(plans->handle);
    lin_free(plans);
    exec->plans = NULL;
}

static void note(lin_exec *exec, cublasStatus_t status, const lin_cuda_product *p)
{
    char what[96];
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = status == CUBLAS_STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation : cudaErrorUnknown;
    snprintf(what, sizeof what, "a product of %d x %d x %d (cublasLt: %.30s)", p->rows, p->n, p->k,
             cublasLtGetStatusString(status));
    lin_cuda_check(exec, error, what);
}

/* ---- finding an algorithm -------------------------------------------------------------------------------------------------- */

// The largest row count of the class: sixteen classes between powers of two, at least 16 rows apart.
static int rows_of_class(int rows)
{
    int step = 16;
    while (step < 1 << 26 && rows / step >= 32) step *= 2;
    return rows > INT32_MAX - step ? rows : (rows + step - 1) / step * step;
}

// More than 16 bytes of alignment gain nothing, and would make the choice depend on the addresses.
static int alignment_of(const void *p)
{
    const uintptr_t at = (uintptr_t)p;
    return at % 16 == 0 ? 16 : at % 8 == 0 ? 8 : 4;
}

static plan_key key_of(const lin_cuda_product *p, const void *d, const void *a, const void *b, const float *bias, int epilogue)
{
    plan_key key;
    memset(&key, 0, sizeof key);
    key.forward = p->forward;
    key.narrow = p->narrow;
    key.narrow_d = p->narrow_d;
    key.rows = rows_of_class(p->rows);
    key.n = p->n;
    key.k = p->k;
    key.epilogue = epilogue;
    key.slices = p->slices;
    key.align[0] = alignment_of(a);
    key.align[1] = alignment_of(b);
    key.align[2] = alignment_of(d);
    key.align[3] = alignment_of(bias);
    return key;
}

static unsigned bucket_of(const plan_key *key)
{
    return (unsigned)(lin_hash(key, sizeof *key, 0) % BUCKETS);
}

static cublasStatus_t layout(cublasLtMatrixLayout_t *out, int narrow, int rows, int columns)
{
    // Column-major: the columns here are the rows of the matrix, each `rows` long, and padded if narrow.
    return cublasLtMatrixLayoutCreate(out, narrow ? CUDA_R_16BF : CUDA_R_32F, (uint64_t)rows, (uint64_t)columns,
                                      narrow ? lin_cuda_padded(rows) : rows);
}

static cublasStatus_t set_rows(plan *p, int rows)
{
    const uint64_t columns = (uint64_t)rows;
    const int64_t apart_a = (int64_t)rows * p->key.k, apart_b = (int64_t)rows * p->key.n; // of two slices
    cublasLtMatrixLayout_t first = p->key.forward ? p->d : p->a;
    cublasStatus_t s = cublasLtMatrixLayoutSetAttribute(first, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutSetAttribute(p->b, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns);
    if (s != CUBLAS_STATUS_SUCCESS || !p->key.slices) return s;
    s = cublasLtMatrixLayoutSetAttribute(p->a, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart_a, sizeof apart_a);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    return cublasLtMatrixLayoutSetAttribute(p->b, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart_b, sizeof apart_b);
}

// The matrix layouts and the epilogue of a class of shapes.
static cublasStatus_t describe(lin_exec *exec, plan *p, const float *bias)
{
    const plan_key *key = &p->key;
    const int narrow = key->narrow;
    const int exact = narrow || exec->precision == LIN_PRECISION_FP32;
    const cublasComputeType_t compute = exact ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    const int32_t ta = key->forward ? CUBLAS_OP_T : CUBLAS_OP_N, tb = key->forward ? CUBLAS_OP_N : CUBLAS_OP_T;
    const uint32_t epilogue = (uint32_t)key->epilogue;
    cublasStatus_t s = cublasLtMatmulDescCreate(&p->product, compute, CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb);
    if (s == CUBLAS_STATUS_SUCCESS) {
        s = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    }
    if (s == CUBLAS_STATUS_SUCCESS && bias) {
        s = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    }
    if (s == CUBLAS_STATUS_SUCCESS) s = layout(&p->a, narrow, key->k, key->forward ? key->n : key->rows);
    if (s == CUBLAS_STATUS_SUCCESS) s = layout(&p->b, narrow, key->forward ? key->k : key->n, key->rows);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = layout(&p->d, key->narrow_d, key->forward ? key->n : key->k, key->forward ? key->rows : key->n);
    if (!key->slices) return s;
    const int32_t slices = key->slices;
    const int64_t apart = (int64_t)key->n * key->k;
    const cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->d};
    for (int i = 0; i < 3 && s == CUBLAS_STATUS_SUCCESS; i++)
        s = cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &slices, sizeof slices);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutSetAttribute(p->d, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart);
    return s == CUBLAS_STATUS_SUCCESS ? set_rows(p, key->rows) : s;
}

static cublasStatus_t search(struct lin_cuda_plans *plans, plan *p)
{
    const uint64_t workspace = WORKSPACE_BYTES;
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t align[3] = {(uint32_t)p->key.align[0], (uint32_t)p->key.align[1], (uint32_t)p->key.align[2]};
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } wanted[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
                  {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align[0], sizeof align[0]},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align[1], sizeof align[1]},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align[2], sizeof align[2]},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align[2], sizeof align[2]}};
    cublasLtMatmulPreference_t preference = NULL;
    cublasStatus_t s = cublasLtMatmulPreferenceCreate(&preference);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && s == CUBLAS_STATUS_SUCCESS; i++) {
        s = cublasLtMatmulPreferenceSetAttribute(preference, wanted[i].name, wanted[i].value, wanted[i].size);
    }
    int count = 0;
    if (s == CUBLAS_STATUS_SUCCESS) {
        s = cublasLtMatmulAlgoGetHeuristic(plans->handle, p->product, p->a, p->b, p->d, p->d, preference, CANDIDATES,
                                           p->candidates, &count);
    }
    if (preference) cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < count && s == CUBLAS_STATUS_SUCCESS; i++) {
        if (p->candidates[i].state == CUBLAS_STATUS_SUCCESS) p->candidates[p->count++] = p->candidates[i];
    }
    return s;
}

// The plan of a class of shapes; one without candidates if cublasLt supports none; NULL if it could not be made now.
static plan *plan_of(lin_exec *exec, const lin_cuda_product *product, const plan_key *key, const float *bias)
{
    struct lin_cuda_plans *plans = exec->plans;
    plan **bucket = &plans->buckets[bucket_of(key)];
    for (plan *p = *bucket; p; p = p->next)
        if (memcmp(&p->key, key, sizeof *key) == 0) return p;
    plan *p = (plan *)lin_calloc(1, sizeof *p);
    if (!p) {
        lin_cuda_check(exec, cudaErrorMemoryAllocation, "planning a matrix product");
        return NULL;
    }
    p->key = *key;
    cublasStatus_t status = describe(exec, p, bias);
    if (status == CUBLAS_STATUS_SUCCESS) status = search(plans, p);
    // Some versions cannot search while a graph is recorded: then this product does not use cublasLt, and the next search
    // decides finally.
    const int no_such = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                        status == CUBLAS_STATUS_ARCH_MISMATCH || status == CUBLAS_STATUS_SUCCESS;
    if (!no_such) {
        if (!exec->capturing || status == CUBLAS_STATUS_ALLOC_FAILED) note(exec, status, product);
        destroy(p);
        return NULL;
    }
    p->next = *bucket;
    *bucket = p;
    return p;
}

/* ---- multiplying ----------------------------------------------------------------------------------------------------------- */

typedef struct operands {
    void *d;
    const void *a, *b;
    float beta;
} operands;

static cublasStatus_t run(lin_exec *exec, const plan *p, int i, const operands *o)
{
    const float one = 1;
    const size_t wanted = p->candidates[i].workspaceSize;
    struct lin_cuda_plans *plans = exec->plans;
    if (wanted && !plans->workspace && cudaMalloc(&plans->workspace, WORKSPACE_BYTES) != cudaSuccess) {
        plans->workspace = NULL;
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    return cublasLtMatmul(plans->handle, p->product, &one, o->a, p->a, o->b, p->b, &o->beta, o->d, p->d, o->d, p->d,
                          &p->candidates[i].algo, wanted ? plans->workspace : NULL, wanted ? WORKSPACE_BYTES : 0, exec->stream);
}

static int takes(struct lin_cuda_plans *plans, plan *p, int i)
{
    cublasLtMatmulHeuristicResult_t result;
    memset(&result, 0, sizeof result);
    if (cublasLtMatmulAlgoCheck(plans->handle, p->product, p->a, p->b, p->d, p->d, &p->candidates[i].algo, &result) !=
        CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    if (result.workspaceSize > WORKSPACE_BYTES) return 0;
    p->candidates[i].workspaceSize = result.workspaceSize;
    return 1;
}

// Moves the fastest candidate to the front. It writes to a temporary output, because a product that adds must not change the real
// one.
static void tune(lin_exec *exec, plan *p, const operands *real)
{
    operands o = *real;
    const size_t each = (size_t)(p->key.forward ? p->rows : p->key.k) * (size_t)p->key.n;
    const size_t elements = each * (size_t)(p->key.slices ? p->key.slices : 1);
    int best = -1;
    double least = 0;
    if (cudaMalloc(&o.d, elements * sizeof(float)) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    for (int i = 0; i < p->count; i++) {
        if (!takes(exec->plans, p, i) || run(exec, p, i, &o) != CUBLAS_STATUS_SUCCESS) continue;
        cudaStreamSynchronize(exec->stream);
        const double begun = lin_now();
        for (int r = 0; r < TIMED_RUNS; r++) run(exec, p, i, &o);
        cudaStreamSynchronize(exec->stream);
        const double took = lin_now() - begun;
        if (best < 0 || took < least) best = i, least = took;
    }
    cudaFree(o.d);
    if (best <= 0) return;
    const cublasLtMatmulHeuristicResult_t fastest = p->candidates[best];
    p->candidates[best] = p->candidates[0];
    p->candidates[0] = fastest;
}

// y = act(y + bias), if the product could not do it itself.
static __global__ void __launch_bounds__(THREADS)
    add_bias(float *y, const float *__restrict__ bias, size_t count, int n, int relu)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float v = y[i] + bias[i % (size_t)n];
    y[i] = relu && v < 0 ? 0 : v;
}

int lin_cuda_multiply(lin_exec *exec, const lin_cuda_product *product, void *d, const void *a, const void *b, const float *bias)
{
    // cublasLt reads a bias four values at a time.
    const int apart = bias && !lin_cuda_aligned(bias), relu = product->act == LIN_RELU;
    const float *with = apart ? NULL : bias;
    int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (with) epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    else if (relu && !apart) epilogue = CUBLASLT_EPILOGUE_RELU;
    if (!lin_cuda_ready(exec)) return 1;
    const plan_key key = key_of(product, d, a, b, with, epilogue);
    plan *p = plan_of(exec, product, &key, with);
    if (!p || p->count == 0) return exec->error != cudaSuccess;
    const operands o = {d, a, b, product->forward || product->slices ? 0.0f : 1.0f};
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (with) status = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &with, sizeof with);
    if (status == CUBLAS_STATUS_SUCCESS && p->rows != product->rows) {
        const int first = p->rows == 0;
        p->rows = 0; // until all of it succeeds
        status = set_rows(p, product->rows);
        if (status == CUBLAS_STATUS_SUCCESS) {
            p->rows = product->rows;
            if (first && exec->plans->tune && !exec->capturing) tune(exec, p, &o);
            for (p->chosen = 0; p->chosen < p->count && !takes(exec->plans, p, p->chosen);) p->chosen++;
        }
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = CUBLAS_STATUS_NOT_SUPPORTED;
        for (; p->chosen < p->count; p->chosen++) {
            status = run(exec, p, p->chosen, &o);
            if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) break;
        }
        if (p->chosen == p->count) return 0;
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        note(exec, status, product);
        return 1;
    }
    if (apart) {
        const size_t count = (size_t)product->rows * (size_t)product->n;
        LIN_LAUNCH(exec, add_bias, lin_cuda_blocks(count, THREADS), THREADS, 0, (float *)d, bias, count, product->n, relu);
    }
    return 1;
}
