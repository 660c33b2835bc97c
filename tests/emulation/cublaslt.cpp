// The matrix product of cublasLt by plain loops; refuses what the library refuses.
#include <cublasLt.h>

#include "tests/emulation/internal.h"

#include <stdio.h>

#include <vector>

struct cublasLtContext {
    int unused;
};

struct emulated_product {
    cublasComputeType_t compute;
    int32_t trans_a, trans_b;
    uint32_t epilogue;
    const float *bias;
};

struct emulated_layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t apart; // elements between two matrices of a batch
};

struct emulated_preference {
    uint64_t workspace;
    uint32_t reductions, align[4];
};

enum { ALGORITHM = 0x11A7, LONG_SUM = 256, LONG_SUM_WORKSPACE = 1 << 20 };

static unsigned long n_live;

// ---- descriptions -----------------------------------------------------------------------------------------------------------

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "an unknown status";
}

unsigned long emulated_products(void) { return n_live; }

template <typename T> static cublasStatus_t make(T **out, const T &value)
{
    emulated_guard lock(emulated_lock);
    *out = NULL;
    if (emulated_allocation_fails()) return CUBLAS_STATUS_ALLOC_FAILED;
    *out = new T(value);
    n_live++;
    return CUBLAS_STATUS_SUCCESS;
}

template <typename T> static cublasStatus_t destroy(T *what)
{
    emulated_guard lock(emulated_lock);
    if (!what) return CUBLAS_STATUS_INVALID_VALUE;
    delete what;
    n_live--;
    return CUBLAS_STATUS_SUCCESS;
}

template <typename T> static cublasStatus_t set(T *to, const void *value, size_t size)
{
    if (!value || size != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = NULL;
    if (emulated_alive() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
    return make(handle, cublasLtContext());
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
    *d = NULL;
    if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    return make(d, emulated_product{compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy(d); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, const void *value,
                                              size_t size)
{
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(&d->trans_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(&d->trans_b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(&d->epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(&d->bias, value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
    return make(l, emulated_layout{type, rows, cols, ld, 1, 0});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return destroy(l); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t which, const void *value,
                                                size_t size)
{
    switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_COLS: return set(&l->cols, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(&l->batch, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(&l->apart, value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    return make(p, emulated_preference{0, 0xffffffffu, {256, 256, 256, 256}});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return destroy(p); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t size)
{
    switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(&p->workspace, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(&p->reductions, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(&p->align[0], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(&p->align[1], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(&p->align[2], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(&p->align[3], value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

// ---- the search -------------------------------------------------------------------------------------------------------------

struct shape {
    size_t m, n, k;
};

static bool fits(const emulated_layout *l, uint64_t rows, uint64_t cols)
{
    return l->rows == rows && l->cols == cols && l->ld >= (int64_t)rows && rows > 0 && cols > 0;
}

static cublasStatus_t shape_of(const emulated_product *d, const emulated_layout *a, const emulated_layout *b,
                               const emulated_layout *c, const emulated_layout *out, shape *s)
{
    if (!d || !a || !b || !c || !out) return CUBLAS_STATUS_INVALID_VALUE;
    s->m = d->trans_a ? a->cols : a->rows;
    s->k = d->trans_a ? a->rows : a->cols;
    s->n = d->trans_b ? b->rows : b->cols;
    const uint64_t rows_b = d->trans_b ? s->n : s->k, cols_b = d->trans_b ? s->k : s->n;
    if (!fits(a, a->rows, a->cols) || !fits(b, rows_b, cols_b) || !fits(c, s->m, s->n) || !fits(out, s->m, s->n)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (a->batch != b->batch || a->batch != c->batch || a->batch != out->batch || a->batch < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (a->type != b->type || c->type != out->type) return CUBLAS_STATUS_NOT_SUPPORTED;
    // A bf16 result needs bf16 operands, and the library would then take a bf16 bias.
    const bool bias = d->epilogue & CUBLASLT_EPILOGUE_BIAS;
    if (out->type != CUDA_R_32F && (out->type != CUDA_R_16BF || a->type != CUDA_R_16BF || bias)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    // The tensor cores' bf16 kernels move 16 bytes at a time.
    if (a->type == CUDA_R_16BF && (a->ld % 8 || b->ld % 8)) return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static size_t workspace_of(const shape *s) { return s->k >= LONG_SUM ? LONG_SUM_WORKSPACE : 0; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t la,
                                              cublasLtMatrixLayout_t lb, cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    emulated_guard lock(emulated_lock);
    shape s;
    *n = 0;
    if (!handle || !preference || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = shape_of(d, la, lb, lc, ld, &s);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (emulated_setting(EMULATION_REFUSE_PRODUCTS)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (workspace_of(&s) > preference->workspace) return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasLtMatmulHeuristicResult_t *r = &results[(*n)++];
    *r = cublasLtMatmulHeuristicResult_t();
    r->algo.data[0] = ALGORITHM;
    for (int i = 0; i < 4; i++) r->algo.data[1 + i] = preference->align[i];
    r->workspaceSize = workspace_of(&s);
    r->state = CUBLAS_STATUS_SUCCESS;
    r->wavesCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t la,
                                       cublasLtMatrixLayout_t lb, cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    shape s;
    if (!handle || !algo || algo->data[0] != ALGORITHM) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = shape_of(d, la, lb, lc, ld, &s);
    *result = cublasLtMatmulHeuristicResult_t();
    result->algo = *algo;
    result->state = status;
    result->workspaceSize = workspace_of(&s);
    return status;
}

// ---- the product ------------------------------------------------------------------------------------------------------------

struct matmul {
    emulated_product d;
    emulated_layout la, lb, lc, ld;
    shape s;
    float alpha, beta;
    const void *A, *B;
    const void *C;
    void *D;
    void *workspace;
    size_t workspace_bytes;
};

static size_t width_of(const emulated_layout &l) { return l.type == CUDA_R_16BF ? 2 : 4; }

// Element (row, column) of a column-major matrix, rounded as the tensor cores do.
static float element(const void *matrix, const emulated_layout *l, size_t row, size_t column, cublasComputeType_t compute)
{
    const size_t at = column * (size_t)l->ld + row;
    if (l->type == CUDA_R_16BF) return __uint_as_float((uint32_t)((const uint16_t *)matrix)[at] << 16);
    const float x = ((const float *)matrix)[at];
    return compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? emulated_tf32(x) : x;
}

static void store(void *matrix, const emulated_layout *l, size_t row, size_t column, float v)
{
    const size_t at = column * (size_t)l->ld + row;
    const uint32_t bits = __float_as_uint(v), odd = bits >> 16 & 1; // to nearest, ties to even; a NaN stays one
    if (l->type == CUDA_R_16BF) ((uint16_t *)matrix)[at] = (uint16_t)(v == v ? (bits + 0x7fff + odd) >> 16 : bits >> 16 | 0x40);
    else ((float *)matrix)[at] = v;
}

// sums [m, columns] for four columns of op(B) at once: a [k, m] contiguous along m, so that the loop over m is one of vectors.
static void four_columns(float *__restrict sums, const float *__restrict a, const float *__restrict b, size_t m, size_t k)
{
    float *__restrict s0 = sums, *__restrict s1 = sums + m, *__restrict s2 = sums + 2 * m, *__restrict s3 = sums + 3 * m;
    for (size_t t = 0; t < k; t++) {
        const float *row = a + t * m;
        const float b0 = b[t], b1 = b[k + t], b2 = b[2 * k + t], b3 = b[3 * k + t];
        for (size_t i = 0; i < m; i++) {
            s0[i] += row[i] * b0;
            s1[i] += row[i] * b1;
            s2[i] += row[i] * b2;
            s3[i] += row[i] * b3;
        }
    }
}

static void poison_workspace(const matmul &p)
{
    if (p.workspace)
        memset(p.workspace, EMULATED_POISON,
               p.workspace_bytes < LONG_SUM_WORKSPACE ? p.workspace_bytes : (size_t)LONG_SUM_WORKSPACE);
}

static void multiply_one(const matmul &p)
{
    const size_t m = p.s.m, n = p.s.n, k = p.s.k;
    std::vector<float> a(k * m), b(4 * k), sums(4 * m);
    for (size_t t = 0; t < k; t++)
        for (size_t i = 0; i < m; i++)
            a[t * m + i] = p.d.trans_a ? element(p.A, &p.la, t, i, p.d.compute) : element(p.A, &p.la, i, t, p.d.compute);
    const bool relu = p.d.epilogue & CUBLASLT_EPILOGUE_RELU;
    const float *bias = p.d.epilogue & CUBLASLT_EPILOGUE_BIAS ? p.d.bias : NULL;
    for (size_t j0 = 0; j0 < n; j0 += 4) {
        const size_t columns = n - j0 < 4 ? n - j0 : 4;
        for (size_t j = 0; j < 4; j++)
            for (size_t t = 0; t < k; t++) {
                float v = 0;
                if (j < columns)
                    v = p.d.trans_b ? element(p.B, &p.lb, j0 + j, t, p.d.compute) : element(p.B, &p.lb, t, j0 + j, p.d.compute);
                b[j * k + t] = v;
            }
        std::fill(sums.begin(), sums.end(), 0.0f);
        four_columns(sums.data(), a.data(), b.data(), m, k);
        for (size_t j = 0; j < columns; j++)
            for (size_t i = 0; i < m; i++) {
                float v = p.alpha * sums[j * m + i];
                if (p.beta != 0) v += p.beta * element(p.C, &p.lc, i, j0 + j, CUBLAS_COMPUTE_32F);
                if (bias) v += bias[i];
                store(p.D, &p.ld, i, j0 + j, relu && !(v > 0) ? 0 : v); // of a NaN 0, as max.f32 gives it
            }
    }
}

static void multiply(const matmul &p)
{
    matmul one = p;
    for (int64_t i = 0; i < p.la.batch; i++) {
        one.A = (const char *)p.A + i * p.la.apart * (int64_t)width_of(p.la);
        one.B = (const char *)p.B + i * p.lb.apart * (int64_t)width_of(p.lb);
        one.C = (const char *)p.C + i * p.lc.apart * (int64_t)width_of(p.lc);
        one.D = (char *)p.D + i * p.ld.apart * (int64_t)width_of(p.ld);
        multiply_one(one);
    }
}

// Whether an operand is in device memory, complete, and as aligned as the search assumed.
static bool there(const void *matrix, const emulated_layout *l, uint64_t align)
{
    const size_t apart = (size_t)(l->batch - 1) * (size_t)l->apart;
    const size_t bytes = (apart + (size_t)(l->cols - 1) * (size_t)l->ld + l->rows) * width_of(*l);
    size_t left;
    if (l->batch > 1 && (size_t)l->apart * width_of(*l) % align) return false;
    return matrix && emulated_where(matrix, &left) != EMULATED_PAGEABLE && left >= bytes && (uintptr_t)matrix % align == 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t la, const void *B, cublasLtMatrixLayout_t lb, const void *beta, const void *C,
                              cublasLtMatrixLayout_t lc, void *D, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    emulated_guard lock(emulated_lock);
    matmul p;
    if (!handle || !alpha || !beta || !algo || algo->data[0] != ALGORITHM) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = shape_of(d, la, lb, lc, ld, &p.s);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    p.d = *d;
    p.la = *la, p.lb = *lb, p.lc = *lc, p.ld = *ld;
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    p.A = A, p.B = B, p.C = C, p.D = D;
    p.workspace = workspace;
    p.workspace_bytes = workspace_bytes;
    if (emulated_alive() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!there(A, la, algo->data[1]) || !there(B, lb, algo->data[2]) || !there(D, ld, algo->data[4]))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p.beta != 0 && !there(C, lc, algo->data[3])) return CUBLAS_STATUS_INVALID_VALUE;
    if (p.d.epilogue & CUBLASLT_EPILOGUE_BIAS) {
        const emulated_layout vector = {CUDA_R_32F, p.s.m, 1, (int64_t)p.s.m, 1, 0};
        if (!there(p.d.bias, &vector, 16)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (workspace_of(&p.s) > workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    size_t left;
    if (workspace_bytes && (emulated_where(workspace, &left) != EMULATED_DEVICE || left < workspace_bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    const cudaError_t error = emulated_queue(stream, [p]() {
        emulated_count_launch();
        if (emulated_alive() != cudaSuccess) return;
        poison_workspace(p); // not counted: what a real algorithm writes there is unknown
        const bool counts = emulated_traffic_begin();
        multiply(p);
        if (counts) {
            const bool tf32 = p.d.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
            emulated_traffic_operations(2.0 * (double)p.la.batch * (double)(p.s.m * p.s.n * p.s.k), p.la.type == CUDA_R_16BF ? "bf16" : tf32 ? "tf32" : "fp32");
            char name[96]; // as if the shape of d and the number of products were arguments of a template
            snprintf(name, sizeof name, "cublasLtMatmul<%zu, %zu, %d>", p.s.m, p.s.n, (int)p.la.batch);
            emulated_traffic_end(name);
        }
        emulated_check_guards("cublasLtMatmul");
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
