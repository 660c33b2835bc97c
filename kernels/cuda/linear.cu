// Linear layers: cublasLt, and plain kernels for what it does not support.
//
// Row-major matrices are column-major ones with rows and columns exchanged, so y [rows, n] = x [rows, k] wᵀ is written as
//   D [n, rows] = wᵀ x     A = w, column-major [k, n], transposed    B = x, column-major [k, rows]
// and dw [n, k] += dyᵀ x as
//   D [k, n] += x dyᵀ      A = x, column-major [k, rows]             B = dy, column-major [n, rows], transposed.
//
// bf16: packed weights are bf16 in the block of floats, rows padded with zeros to a multiple of 8 columns (16 bytes); activations
// are converted into scratch with the same padding, so that the products are aligned for any k. The gradients of weights are then
// products of tf32: converting both operands would move twice the bytes of the product itself. Where both are in memory as bf16
// (the feed-forward block and the attention block), they are products of bf16.
#include "kernels/cuda/linear.h"

#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/hash.h"
#include "base/memory.h"
}

enum {
    THREADS = 256,    // of kernels over elements
    TILE = 64,        // of the plain product, rows and columns
    STEP = 16,        // of its inner dimension
    PACK_TILE = 32,   // of packing
    PACK_DOWN = 8,    // rows of its threads
    PACK_ITEMS = 100, // per launch: kernel parameters are limited to 4 KiB
    SLICE_TILE = 128, // of the products of slices, rows and columns
    TILES = 132,      // of all slices: the multiprocessors of an H100
};

/* ---- the algorithm of cublasLt for a product ------------------------------------------------------------------------------- */

// A plan is made once per class of shapes and kept by the exec. Making one while a graph is recorded works only if cublasLt
// allows it (with some versions it does not, and the graph then contains a slow plain product): run the operations once before
// recording them. The choice depends only on the shape, not on earlier products: shapes are grouped into classes of rows,
// candidates are searched for the largest of the class, and the first that supports the exact shape is used. Reductions that
// accumulate in place are excluded, so that the same calls give the same bits on the same GPU.
// LINNET_CUDA_SLICE_ROWS=N sets the fewest rows of a slice in the gradients of weights, for measurements; 0: no slices, only
// those that cublasLt makes.

typedef struct lt_product {
    int forward; /* d [rows, n] = act(b [rows, k] aᵀ + bias), a [n, k]; else d [n, k] += bᵀ a with a [rows, k], b [rows, n] */
    int narrow;  /* a and b are bf16, their rows padded to a multiple of 8 elements */
    int narrow_d; /* d too (forward, n a multiple of 8, no bias, no activation) */
    int rows, n, k;
    lin_activation act;
    int slices; /* 0: none. Else (not forward) a product for each slice of `rows` rows, all after each other in a and b, and
                   d [slices, n, k] = bᵀ a of each; n and k are multiples of 4, if narrow of 8 */
} lt_product;

enum { CANDIDATES = 8, BUCKETS = 256, WORKSPACE_BYTES = 32 << 20, SLICE_ROWS = 1024 };

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
    int slice_rows;
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
    const char *rows = getenv("LINNET_CUDA_SLICE_ROWS");
    plans->slice_rows = rows && *rows ? atoi(rows) : SLICE_ROWS;
    exec->plans = plans;
    return LIN_OK;
}

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

static void note(lin_exec *exec, cublasStatus_t status, const lt_product *p)
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

static plan_key key_of(const lt_product *p, const void *d, const void *a, const void *b, const float *bias, int epilogue)
{
    return {.forward = p->forward, .narrow = p->narrow, .narrow_d = p->narrow_d, .rows = rows_of_class(p->rows), .n = p->n,
            .k = p->k, .epilogue = epilogue, .slices = p->slices,
            .align = {alignment_of(a), alignment_of(b), alignment_of(d), alignment_of(bias)}};
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
static plan *plan_of(lin_exec *exec, const lt_product *product, const plan_key *key, const float *bias)
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

static cublasStatus_t run(lin_exec *exec, const plan *p, void *d, const void *a, const void *b, float beta)
{
    const float one = 1;
    const int i = p->chosen;
    const size_t wanted = p->candidates[i].workspaceSize;
    struct lin_cuda_plans *plans = exec->plans;
    if (wanted && !plans->workspace && cudaMalloc(&plans->workspace, WORKSPACE_BYTES) != cudaSuccess) {
        plans->workspace = NULL;
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    return cublasLtMatmul(plans->handle, p->product, &one, a, p->a, b, p->b, &beta, d, p->d, d, p->d,
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

// y = act(y + bias), if the product could not do it itself.
static __global__ void __launch_bounds__(THREADS)
    add_bias(float *y, const float *__restrict__ bias, size_t count, int n, int relu)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float v = y[i] + bias[i % (size_t)n];
    y[i] = relu && v < 0 ? 0 : v;
}

// 1 if it was done, or failed with an error recorded in exec; 0 if cublasLt does not support the product. bias [n] may be NULL.
static int cublas_multiply(lin_exec *exec, const lt_product *product, void *d, const void *a, const void *b, const float *bias)
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
    const float beta = product->forward || product->slices ? 0.0f : 1.0f;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (with) status = cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &with, sizeof with);
    if (status == CUBLAS_STATUS_SUCCESS && p->rows != product->rows) {
        p->rows = 0; // until all of it succeeds
        status = set_rows(p, product->rows);
        if (status == CUBLAS_STATUS_SUCCESS) {
            p->rows = product->rows;
            for (p->chosen = 0; p->chosen < p->count && !takes(exec->plans, p, p->chosen);) p->chosen++;
        }
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = CUBLAS_STATUS_NOT_SUPPORTED;
        for (; p->chosen < p->count; p->chosen++) {
            status = run(exec, p, d, a, b, beta);
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

static __device__ __forceinline__ float value_of(float x) { return x; }
static __device__ __forceinline__ float value_of(bf16 x) { return from_bf16(x); }

size_t lin_cuda_weight_size(int n, int k)
{
    // As many floats as either form needs: bf16 rows of few columns are longer than fp32 ones.
    const size_t narrow = (size_t)lin_cuda_padded(k) / 2;
    return (size_t)n * ((size_t)k > narrow ? (size_t)k : narrow);
}

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

typedef struct pack_item {
    size_t from, to;
    int n, k, transposed, first_tile;
} pack_item;

typedef struct pack_items {
    int count;
    pack_item items[PACK_ITEMS];
} pack_items;

// One block per tile of one of the matrices. The packed form of w is w, that of its transpose is its transpose; both are written
// along their rows, from shared memory.
template <typename T>
static __global__ void __launch_bounds__(PACK_TILE *PACK_DOWN)
    pack(float *packed, const float *__restrict__ values, const __grid_constant__ pack_items list)
{
    LIN_SHARED(float, tile); // [PACK_TILE, PACK_TILE + 1]
    int at = 0;              // the last item whose first tile is not after this one
    for (int left = list.count; left > 1;) {
        const int half = (left + 1) / 2;
        if ((int)blockIdx.x >= list.items[at + half].first_tile) at += half, left -= half;
        else left = half;
    }
    const int n = list.items[at].n, k = list.items[at].k, transposed = list.items[at].transposed;
    const int index = (int)blockIdx.x - list.items[at].first_tile;
    const int rows = transposed ? k : n, columns = transposed ? n : k; // of the packed matrix
    const int width = sizeof(T) == 2 ? (columns + 7) / 8 * 8 : columns;
    const int across = (width + PACK_TILE - 1) / PACK_TILE;
    const int row0 = index / across * PACK_TILE, column0 = index % across * PACK_TILE;
    const float *w = values + list.items[at].from;
    T *to = reinterpret_cast<T *>(packed + list.items[at].to);
    const int tx = (int)threadIdx.x;
    for (int ty = (int)threadIdx.y; ty < PACK_TILE; ty += PACK_DOWN) {
        const int i = (transposed ? column0 : row0) + ty, j = (transposed ? row0 : column0) + tx; // of w
        tile[ty * (PACK_TILE + 1) + tx] = i < n && j < k ? w[(size_t)i * (size_t)k + (size_t)j] : 0;
    }
    __syncthreads();
    for (int ty = (int)threadIdx.y; ty < PACK_TILE; ty += PACK_DOWN) {
        const int r = row0 + ty, c = column0 + tx;
        if (r >= rows || c >= width) continue;
        const float v = transposed ? tile[tx * (PACK_TILE + 1) + ty] : tile[ty * (PACK_TILE + 1) + tx];
        if constexpr (sizeof(T) == 2) to[(size_t)r * (size_t)width + (size_t)c] = to_bf16(v);
        else to[(size_t)r * (size_t)width + (size_t)c] = v;
    }
}

void lin_cuda_weights_pack(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items)
{
    const int narrow = exec->precision == LIN_PRECISION_BF16;
    for (int first = 0; first < n_items; first += PACK_ITEMS) {
        pack_items list;
        int tiles = 0;
        list.count = n_items - first < PACK_ITEMS ? n_items - first : PACK_ITEMS;
        for (int i = 0; i < list.count; i++) {
            const lin_packing *p = &items[first + i];
            const int rows = p->transposed ? p->k : p->n, columns = p->transposed ? p->n : p->k;
            const int width = narrow ? lin_cuda_padded(columns) : columns;
            list.items[i] = {p->from, p->to, p->n, p->k, p->transposed, tiles};
            tiles += (rows + PACK_TILE - 1) / PACK_TILE * ((width + PACK_TILE - 1) / PACK_TILE);
        }
        if (tiles == 0) continue;
        const dim3 block(PACK_TILE, PACK_DOWN);
        const size_t shared = PACK_TILE * (PACK_TILE + 1) * sizeof(float);
        if (narrow) LIN_LAUNCH(exec, (pack<bf16>), tiles, block, shared, packed, values, list);
        else LIN_LAUNCH(exec, (pack<float>), tiles, block, shared, packed, values, list);
    }
}

/* ---- activations in bf16 --------------------------------------------------------------------------------------------------- */

// to [rows, lin_cuda_padded(k)] from x [rows, k]: eight elements per thread.
static __global__ void __launch_bounds__(THREADS)
    convert(bf16 *__restrict__ to, const float *__restrict__ x, size_t groups, int across, int k, int wide)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= groups) return;
    float v[8];
    if (wide) {
        load8(v, x + 8 * i);
    } else {
        const size_t row = i / (size_t)across;
        const int column = (int)(i - row * (size_t)across) * 8;
        const float *from = x + row * (size_t)k;
        for (int j = 0; j < 8; j++) v[j] = column + j < k ? from[column + j] : 0;
    }
    store8(to + 8 * i, v);
}

static size_t converted_bytes(int rows, int k)
{
    return ((size_t)rows * (size_t)lin_cuda_padded(k) * sizeof(bf16) + 255) / 256 * 256;
}

void lin_cuda_narrow(lin_exec *exec, void *to, const float *x, int rows, int k)
{
    const int across = lin_cuda_padded(k) / 8;
    const size_t groups = (size_t)rows * (size_t)across;
    LIN_LAUNCH(exec, convert, lin_cuda_blocks(groups, THREADS), THREADS, 0, (bf16 *)to, x, groups, across, k,
               k % 8 == 0 && lin_cuda_aligned(x));
}

/* ---- plain products -------------------------------------------------------------------------------------------------------- */

// out [rows, columns] = act(sum_t a(i, t) b(j, t) + bias), or += the sum. a(i, t) = a[i ai + t at]; either ai or at is 1, and the
// tiles are read along that direction; b likewise. Correct for every size and alignment, but slow: used only where cublasLt is
// not.
typedef struct plain_shape {
    int rows, columns, inner;
    size_t ai, at, bj, bt;
    int round; // round operands to bf16 first
    int add, relu;
} plain_shape;

template <typename T>
static __device__ __forceinline__ void load_tile(float *to, const T *from, int i0, int t0, int n, int inner, size_t si, size_t st,
                                                 int round)
{
    for (int e = (int)threadIdx.x; e < TILE * STEP; e += 256) {
        const int i = st == 1 ? e / STEP : e % TILE, t = st == 1 ? e % STEP : e / TILE;
        float v = 0;
        if (i0 + i < n && t0 + t < inner) v = value_of(from[(size_t)(i0 + i) * si + (size_t)(t0 + t) * st]);
        to[t * (TILE + 1) + i] = round ? from_bf16(to_bf16(v)) : v;
    }
}

static __device__ __forceinline__ void put(float *to, float v) { *to = v; }
static __device__ __forceinline__ void put(bf16 *to, float v) { *to = to_bf16(v); }

template <typename D, typename X, typename W>
static __global__ void __launch_bounds__(256)
    plain(D *out, const X *__restrict__ a, const W *__restrict__ b, const float *bias, plain_shape s)
{
    LIN_SHARED(float, shared);
    float *const as = shared, *const bs = shared + STEP * (TILE + 1);
    const int row0 = (int)blockIdx.x * TILE, column0 = (int)blockIdx.y * TILE;
    const int ti = (int)threadIdx.x / 16 * 4, tj = (int)threadIdx.x % 16;
    float sum[4][4] = {};
    for (int t0 = 0; t0 < s.inner; t0 += STEP) {
        load_tile(as, a, row0, t0, s.rows, s.inner, s.ai, s.at, s.round);
        load_tile(bs, b, column0, t0, s.columns, s.inner, s.bj, s.bt, s.round);
        __syncthreads();
        for (int t = 0; t < STEP; t++) {
            float va[4], vb[4];
#pragma unroll
            for (int q = 0; q < 4; q++) va[q] = as[t * (TILE + 1) + ti + q], vb[q] = bs[t * (TILE + 1) + tj + 16 * q];
#pragma unroll
            for (int p = 0; p < 4; p++)
#pragma unroll
                for (int q = 0; q < 4; q++) sum[p][q] = fmaf(va[p], vb[q], sum[p][q]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const int i = row0 + ti + p, j = column0 + tj + 16 * q;
            if (i >= s.rows || j >= s.columns) continue;
            D *to = out + (size_t)i * (size_t)s.columns + (size_t)j;
            float v = sum[p][q] + (bias ? bias[j] : 0);
            if (s.add) v += value_of(*to);
            put(to, s.relu && v < 0 ? 0 : v);
        }
}

template <typename D, typename X, typename W>
static void plain_product(lin_exec *exec, D *out, const X *a, const W *b, const float *bias, const plain_shape *shape)
{
    const plain_shape s = *shape;
    const dim3 grid(lin_cuda_blocks((size_t)s.rows, TILE), lin_cuda_blocks((size_t)s.columns, TILE));
    LIN_LAUNCH(exec, (plain<D, X, W>), grid, 256, 2 * STEP * (TILE + 1) * sizeof(float), out, a, b, bias, s);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

void lin_cuda_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows, int n,
                             int k, lin_activation act)
{
    if (rows == 0 || n == 0 || !lin_cuda_ready(exec)) return;
    const int narrow = exec->precision == LIN_PRECISION_BF16;
    const lt_product p = {1, narrow, 0, rows, n, narrow ? lin_cuda_padded(k) : k, act, 0};
    if (n > 1 && k > 1) {
        const void *operand = x;
        if (narrow) {
            void *scratch = lin_cuda_scratch(exec, converted_bytes(rows, k));
            if (!scratch) return;
            lin_cuda_narrow(exec, scratch, x, rows, k);
            operand = scratch;
        }
        if (cublas_multiply(exec, &p, y, packed, operand, bias) || exec->error != cudaSuccess) return;
    }
    const plain_shape s = {.rows = rows, .columns = n, .inner = k, .ai = (size_t)k, .at = 1, .bj = (size_t)p.k, .bt = 1,
                           .round = narrow, .relu = act == LIN_RELU};
    if (narrow) plain_product(exec, y, x, reinterpret_cast<const bf16 *>(packed), bias, &s);
    else plain_product(exec, y, x, packed, bias, &s);
}

void lin_cuda_narrow_forward(lin_exec *exec, void *y, const void *x, const float *packed, const float *bias, int rows, int n,
                             int k, int narrow_y)
{
    if (rows == 0 || !lin_cuda_ready(exec)) return;
    const lt_product p = {1, 1, narrow_y, rows, n, k, LIN_LINEAR, 0};
    if (cublas_multiply(exec, &p, y, packed, x, bias) || exec->error != cudaSuccess) return;
    const plain_shape s = {.rows = rows, .columns = n, .inner = k, .ai = (size_t)k, .at = 1, .bj = (size_t)k, .bt = 1};
    const bf16 *from = (const bf16 *)x, *w = reinterpret_cast<const bf16 *>(packed);
    if (narrow_y) plain_product(exec, (bf16 *)y, from, w, bias, &s);
    else plain_product(exec, (float *)y, from, w, bias, &s);
}

/* ---- the gradients of weights and biases ----------------------------------------------------------------------------------- */

// dw has few elements, each a sum over all rows: its tiles are too few for a GPU. So the rows are divided into slices, as many as
// together have about TILES tiles, which are one product of cublasLt; a kernel adds the slices up in their order. The number of
// slices is the same on all GPUs.

// dw [n, k] += the slices' products in their order, then the products of the rows that are left.
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    add_slices(float *__restrict__ dw, const float *__restrict__ partial, int slices, const T *__restrict__ dy,
               const T *__restrict__ x, int rest, int n, int k)
{
    const unsigned count = (unsigned)(n * k), i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float *from = partial + i;
    float sum = 0;
#pragma unroll 8
    for (int s = 0; s < slices; s++) sum += from[(size_t)s * count];
    const T *a = dy + i / (unsigned)k, *b = x + i % (unsigned)k;
#pragma unroll 4
    for (int t = 0; t < rest; t++) sum = fmaf(value_of(a[(size_t)t * (size_t)n]), value_of(b[(size_t)t * (size_t)k]), sum);
    dw[i] += sum;
}

// Returns 0 if the product is not suited for slices.
template <typename T>
static int multiply_slices(lin_exec *exec, float *dw, const T *dy, const T *x, const lt_product *whole)
{
    const int rows = whole->rows, n = whole->n, k = whole->k;
    const int tiles = (n + SLICE_TILE - 1) / SLICE_TILE * ((k + SLICE_TILE - 1) / SLICE_TILE);
    const int fewest = exec->plans->slice_rows, most = fewest > 0 ? rows / fewest : 0;
    lt_product p = *whole;
    p.slices = TILES / tiles < most ? TILES / tiles : most;
    if (p.slices < 2 || n % 4 != 0 || k % 4 != 0) return 0;
    const size_t count = (size_t)n * (size_t)k;
    float *partial = (float *)lin_cuda_scratch(exec, (size_t)p.slices * count * sizeof *partial);
    if (!partial) return 1;
    p.rows = rows / p.slices;
    if (!cublas_multiply(exec, &p, partial, x, dy, NULL)) return 0;
    const size_t done = (size_t)p.rows * (size_t)p.slices;
    LIN_LAUNCH(exec, add_slices<T>, lin_cuda_blocks(count, THREADS), THREADS, 0, dw, partial, p.slices,
               dy + done * (size_t)n, x + done * (size_t)k, rows - (int)done, n, k);
    return 1;
}

// dw [n, k] += dyᵀ x, the product `p`.
template <typename T> static void weight_gradient(lin_exec *exec, float *dw, const T *dy, const T *x, const lt_product *p)
{
    const int rows = p->rows, n = p->n, k = p->k;
    if (multiply_slices(exec, dw, dy, x, p) || exec->error != cudaSuccess) return;
    if (n > 1 && k > 1 && (cublas_multiply(exec, p, dw, x, dy, NULL) || exec->error != cudaSuccess)) return;
    const plain_shape s = {.rows = n, .columns = k, .inner = rows, .ai = 1, .at = (size_t)n, .bj = 1, .bt = (size_t)k, .add = 1};
    plain_product(exec, dw, dy, x, NULL, &s);
}

void lin_cuda_linear_backward_weight(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n,
                                     int k)
{
    if (rows == 0 || n == 0 || !lin_cuda_ready(exec)) return;
    if (db) lin_cuda_sum_columns(exec, db, dy, rows, n);
    const lt_product p = {0, 0, 0, rows, n, k, LIN_LINEAR, 0};
    weight_gradient(exec, dw, dy, x, &p);
}

// n is a multiple of 8.
static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    sum_narrow(float *__restrict__ partial, const bf16 *__restrict__ x, int rows, int n, int rows_each)
{
    lin_sum_slice<8, 1>(partial, rows, n, rows_each,
                        [=](float (&v)[8], int row, int column) { load8(v, x + (size_t)row * (size_t)n + (size_t)column); });
}

void lin_cuda_narrow_backward_weight(lin_exec *exec, float *dw, float *db, const void *dy, const void *x, int rows, int n, int k)
{
    if (rows == 0 || !lin_cuda_ready(exec)) return;
    if (db) {
        const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, 8, 1);
        if (!s.partial) return;
        LIN_LAUNCH(exec, sum_narrow, s.grid, s.block, s.shared_bytes, s.partial, (const bf16 *)dy, rows, n, s.rows_each);
        lin_cuda_fold(exec, s.partial, s.slices, {db, n});
    }
    const lt_product p = {0, 1, 0, rows, n, k, LIN_LINEAR, 0};
    weight_gradient(exec, dw, (const bf16 *)dy, (const bf16 *)x, &p);
}

/* ---- the feed-forward block ------------------------------------------------------------------------------------------------ */

// The feed-forward block in training. Its hidden values are four times as wide as the rest of the network, so in bf16 precision
// they are stored as bf16, together with the operands that the backward pass reads again; dropout, its gradient and the sums for
// the gradient of the bias are one pass each.
//
//   hidden    fp32: h [rows, F]    bf16: x [rows, C], h [rows, F]
//   d_hidden  fp32: dh [rows, F]   bf16: dy [rows, C], dh [rows, F]
// A norm may have written x or dy (`operand` of ops.h).

enum { EACH = 8 }; // columns of a thread

static int is_narrow(const lin_exec *exec, const void *hidden, int C, int F)
{
    return exec->precision == LIN_PRECISION_BF16 && C % 8 == 0 && F % 8 == 0 && C <= F && lin_cuda_aligned(hidden);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

// h = dropout(relu(h + bias)), eight elements per thread.
static __global__ void __launch_bounds__(THREADS)
    activate(bf16 *h, const float *__restrict__ bias, size_t groups, int across, lin_cuda_mask mask)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= groups) return;
    float v[8];
    load8(v, h + 8 * i);
    const float *b = bias + (i % (size_t)across) * 8;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        v[j] += b[j];
        if (v[j] < 0) v[j] = 0; // a NaN stays
    }
    if (mask.key) {
        const lin_cuda_draw draw = lin_cuda_draw_of(mask);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float *x = v + 4 * half;
            const float4 kept =
                lin_cuda_drop4(make_float4(x[0], x[1], x[2], x[3]), lin_cuda_bits4(draw, 2 * i + (size_t)half), mask);
            x[0] = kept.x, x[1] = kept.y, x[2] = kept.z, x[3] = kept.w;
        }
    }
    store8(h + 8 * i, v);
}

void lin_cuda_feedforward_forward(lin_exec *exec, float *y, float *hidden, const float *x, const float *w1, const float *b1,
                                  const float *w2, const float *b2, int rows, int C, int F, const lin_dropout *dropout)
{
    const size_t count = (size_t)rows * (size_t)F;
    if (rows == 0) return;
    if (!is_narrow(exec, hidden, C, F)) {
        lin_cuda_linear_forward(exec, hidden, x, w1, b1, rows, F, C, LIN_RELU);
        if (dropout->p > 0) lin_cuda_dropout(exec, hidden, hidden, count, dropout);
        lin_cuda_linear_forward(exec, y, hidden, w2, b2, rows, C, F, LIN_LINEAR);
        return;
    }
    bf16 *narrow_x = reinterpret_cast<bf16 *>(hidden), *h = narrow_x + (size_t)rows * (size_t)C;
    if (x) lin_cuda_narrow(exec, narrow_x, x, rows, C);
    lin_cuda_narrow_forward(exec, h, narrow_x, w1, NULL, rows, F, C, 1);
    LIN_LAUNCH(exec, activate, lin_cuda_blocks(count / 8, THREADS), THREADS, 0, h, b1, count / 8, F / 8,
               lin_cuda_mask_of(dropout));
    lin_cuda_narrow_forward(exec, y, h, w2, b2, rows, C, F, 0);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// to = from, or, GATED, gate > 0 ? from * scale : 0 (to may be from); partial [slices, n]: the sums of its columns over each
// slice of rows. n is a multiple of 8.
template <typename To, typename From, int GATED>
static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    pass_and_sum(To *to, const From *from, const To *__restrict__ gate, float *__restrict__ partial, int rows, int n,
                 int rows_each, float scale)
{
    lin_sum_slice<EACH, 1>(partial, rows, n, rows_each, [=](float (&v)[EACH], int row, int column) {
        const size_t at = (size_t)row * (size_t)n + (size_t)column;
        load8(v, from + at);
        if constexpr (GATED) {
            float g[EACH];
            load8(g, gate + at);
#pragma unroll
            for (int i = 0; i < EACH; i++) v[i] = g[i] > 0 ? v[i] * scale : 0;
        }
        store8(to + at, v);
    });
}

template <typename To, typename From, int GATED>
static void run_pass(lin_exec *exec, To *to, float *db, const From *from, const To *gate, int rows, int n, float scale)
{
    const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, EACH, 1);
    if (!s.partial) return;
    LIN_LAUNCH(exec, (pass_and_sum<To, From, GATED>), s.grid, s.block, s.shared_bytes, to, from, gate, s.partial, rows, n,
               s.rows_each, scale);
    lin_cuda_fold(exec, s.partial, s.slices, {db, n});
}

void lin_cuda_feedforward_backward(lin_exec *exec, float *dx, float *dw1, float *db1, float *dw2, float *db2, const float *dy,
                                   const float *x, const float *hidden, float *d_hidden, const float *w1, const float *w2,
                                   int rows, int C, int F, const lin_dropout *dropout)
{
    const size_t count = (size_t)rows * (size_t)F;
    const double scale = dropout->p > 0 ? 1 / (1 - dropout->p) : 1;
    if (rows == 0) return;
    if (is_narrow(exec, hidden, C, F)) {
        const bf16 *narrow_x = reinterpret_cast<const bf16 *>(hidden), *h = narrow_x + (size_t)rows * (size_t)C;
        bf16 *narrow_dy = reinterpret_cast<bf16 *>(d_hidden), *dh = narrow_dy + (size_t)rows * (size_t)C;
        if (dy) run_pass<bf16, float, 0>(exec, narrow_dy, db2, dy, NULL, rows, C, 1);
        lin_cuda_narrow_backward_weight(exec, dw2, NULL, narrow_dy, h, rows, C, F);
        lin_cuda_narrow_forward(exec, dh, narrow_dy, w2, NULL, rows, F, C, 1);
        run_pass<bf16, bf16, 1>(exec, dh, db1, dh, h, rows, F, (float)scale);
        lin_cuda_narrow_backward_weight(exec, dw1, NULL, dh, narrow_x, rows, F, C);
        lin_cuda_narrow_forward(exec, dx, dh, w1, NULL, rows, C, F, 0);
        return;
    }
    lin_cuda_linear_backward_weight(exec, dw2, db2, dy, hidden, rows, C, F);
    lin_cuda_linear_forward(exec, d_hidden, dy, w2, NULL, rows, F, C, LIN_LINEAR);
    const int wide = F % 8 == 0 && lin_cuda_aligned(hidden, d_hidden);
    if (wide) run_pass<float, float, 1>(exec, d_hidden, db1, d_hidden, hidden, rows, F, (float)scale);
    else lin_cuda_relu_backward(exec, d_hidden, d_hidden, hidden, count, scale);
    lin_cuda_linear_backward_weight(exec, dw1, wide ? NULL : db1, d_hidden, x, rows, F, C);
    lin_cuda_linear_forward(exec, dx, d_hidden, w1, NULL, rows, C, F, LIN_LINEAR);
}
