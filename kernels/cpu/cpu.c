// cpu.c - the instruction set in use, the context, and the table of operations; see cpu.h.

#include "kernels/cpu/cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/memory.h"

/* ---- the instruction set: what the processor has, and what LINNET_ISA or a test chose -------------------------------------- */

static const char *const isa_names[] = {"portable", "avx2", "avx512"};

static atomic_int level = -1; // a lin_isa, or -1 before the first use

lin_isa lin_cpu_best_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LIN_ISA_PORTABLE;
    // The extensions that the compiler may use with -march=x86-64-v4, besides AVX2 and FMA.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2")) {
        return LIN_ISA_AVX512;
    }
    return LIN_ISA_AVX2;
#else
    return LIN_ISA_PORTABLE;
#endif
}

// The instruction set of a name; NULL or "" is the best one.
static lin_status parse_level(const char *isa, lin_isa *out, lin_error *err)
{
    lin_isa best = lin_cpu_best_level();
    *out = best;
    if (!isa || !*isa) return LIN_OK;
    for (int i = LIN_ISA_PORTABLE; i <= LIN_ISA_AVX512; i++) {
        if (strcmp(isa, isa_names[i]) != 0) continue;
        if (i > (int)best) {
            return lin_fail(err, LIN_UNSUPPORTED, "this machine lacks %s; its best instruction set is %s", isa, isa_names[best]);
        }
        *out = (lin_isa)i;
        return LIN_OK;
    }
    return lin_fail(err, LIN_INVALID, "unknown instruction set \"%s\"; use avx512, avx2 or portable", isa);
}

lin_isa lin_cpu_level(void)
{
    int now = atomic_load_explicit(&level, memory_order_relaxed);
    if (now >= 0) return (lin_isa)now;
    lin_isa first; // if LINNET_ISA is bad, the best one; exec_create reports the error
    parse_level(getenv("LINNET_ISA"), &first, NULL);
    atomic_store(&level, (int)first);
    return first;
}

lin_status lin_cpu_select(const char *isa, lin_error *err)
{
    lin_isa chosen;
    lin_status status = parse_level(isa, &chosen, err);
    if (status == LIN_OK) atomic_store(&level, (int)chosen);
    return status;
}

const char *lin_cpu_isa(void) { return isa_names[lin_cpu_level()]; }

/* ---- context --------------------------------------------------------------------------------------------------------------- */

// Whether bf16 products are possible: the processor supports them, and the instruction set in use is its best one.
static lin_status check_bf16(lin_error *err)
{
    int has = 0;
#if defined(__x86_64__)
    has = lin_cpu_best_level() == LIN_ISA_AVX512 && __builtin_cpu_supports("avx512bf16");
    const char *what = "AVX512-BF16";
#else
    const char *what = "bf16 products (of arm64: FEAT_BF16)";
#endif
#if defined(__aarch64__) && defined(__linux__)
    has = (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#endif
    if (!has) return lin_fail(err, LIN_UNSUPPORTED, "this processor has no %s; use --precision fp32", what);
    if (lin_cpu_level() == lin_cpu_best_level()) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED, "bf16 needs the instruction set avx512, and LINNET_ISA is %s: unset it, or use "
                    "--precision fp32", lin_cpu_isa());
}

static void exec_destroy(lin_exec *exec)
{
    if (!exec) return;
    lin_pool_destroy(exec->pool);
    lin_free(exec->scratch);
    lin_free(exec);
}

static lin_status exec_create(const lin_ops *ops, int n_threads, lin_exec **out, lin_error *err)
{
    *out = NULL;
    lin_isa wanted;
    lin_status status = parse_level(getenv("LINNET_ISA"), &wanted, err);
    if (status != LIN_OK) return lin_fail_at(err, status, "environment variable LINNET_ISA");
    if (ops->precision == LIN_PRECISION_BF16) status = check_bf16(err);
    if (status != LIN_OK) return status;
    lin_exec *exec = lin_calloc(1, sizeof *exec);
    if (!exec) return lin_no_memory(err, "an execution context", sizeof *exec);
    if (n_threads != 1) {
        status = lin_pool_create(n_threads, &exec->pool, err);
        if (status != LIN_OK) {
            exec_destroy(exec);
            return status;
        }
    }
    exec->n_threads = lin_pool_threads(exec->pool);
    exec->scratch = lin_alloc((size_t)exec->n_threads, LIN_SCRATCH_BYTES);
    if (!exec->scratch) {
        status = lin_no_memory(err, "scratch for the threads", (size_t)exec->n_threads * LIN_SCRATCH_BYTES);
        exec_destroy(exec);
        return status;
    }
    *out = exec;
    return LIN_OK;
}

/* ---- memory and order: host memory, and every operation runs during its call ----------------------------------------------- */

static lin_status memory_create(lin_exec *exec, size_t bytes, void **block, lin_error *err)
{
    (void)exec;
    *block = lin_calloc(bytes, 1);
    return *block ? LIN_OK : lin_no_memory(err, "a block of memory", bytes);
}

static void memory_destroy(lin_exec *exec, void *block)
{
    (void)exec;
    lin_free(block);
}

static void copy(lin_exec *exec, void *to, const void *from, size_t bytes)
{
    (void)exec;
    if (bytes) memcpy(to, from, bytes);
}

static void upload_beside(lin_exec *exec, void *to, const void *from, size_t bytes, int i)
{
    (void)i; // every operation is complete when it returns
    copy(exec, to, from, bytes);
}

static void zero(lin_exec *exec, void *block, size_t bytes)
{
    (void)exec;
    if (bytes) memset(block, 0, bytes);
}

static void fence(lin_exec *exec, int i)
{
    (void)exec;
    (void)i;
}

static lin_status finish(lin_exec *exec, lin_error *err)
{
    (void)exec;
    (void)err;
    return LIN_OK;
}

/* ---- sums over rows -------------------------------------------------------------------------------------------------------- */

enum { MOST_BLOCKS = 32 };

typedef struct sums_job {
    lin_rows_added *add;
    const void *job;
    float *partials; // [blocks, n_a + n_b], in the scratch of thread 0, the caller; the work items use none of their own
    size_t n_a, n_b;
    int rows, block;
} sums_job;

static void sum_block(void *context, int piece, int thread)
{
    const sums_job *s = context;
    (void)thread;
    const int first = piece * s->block, rows = s->rows - first < s->block ? s->rows - first : s->block;
    float *a = s->partials + (s->n_a + s->n_b) * (size_t)piece;
    memset(a, 0, (s->n_a + s->n_b) * sizeof *a);
    s->add(s->job, a, a + s->n_a, first, first + rows);
}

void lin_sum_rows(lin_exec *exec, lin_rows_added *add, const void *job, float *a, size_t n_a, float *b, size_t n_b, int rows,
                  int width, int least)
{
    const size_t n = n_a + n_b, fit = LIN_SCRATCH_BYTES / (sizeof(float) * n);
    if (fit < 1) {
        add(job, a, b, 0, rows);
        return;
    }
    const int most = fit < MOST_BLOCKS ? (int)fit : MOST_BLOCKS, block = (rows + most - 1) / most;
    sums_job s = {add, job, lin_scratch(exec, 0), n_a, n_b, rows, block < least ? least : block};
    const int blocks = (rows + s.block - 1) / s.block;
    lin_pool_run(lin_threads_for(exec, rows, width, LIN_SMALL), blocks, sum_block, &s);
    for (int k = 0; k < blocks; k++) {
        const float *sums = s.partials + n * (size_t)k;
        for (size_t i = 0; i < n_a; i++) a[i] += sums[i];
        for (size_t i = 0; i < n_b; i++) b[i] += sums[n_a + i];
    }
}

/* ---- the tables ------------------------------------------------------------------------------------------------------------ */

#define ENTRY(name) .name = lin_cpu_##name,

const lin_ops *lin_ops_cpu(void)
{
    static const lin_ops table = {
        .name = "cpu",
        .on_host = 1,
        .packs_halves = 1,
        .exec_create = exec_create,
        .exec_destroy = exec_destroy,
        .memory_create = memory_create,
        .memory_destroy = memory_destroy,
        .staging_create = memory_create,
        .staging_destroy = memory_destroy,
        .upload = copy,
        .upload_beside = upload_beside,
        .download = copy,
        .fetch = copy,
        .copy = copy,
        .zero = zero,
        .fence = fence,
        .wait = fence,
        .finish = finish,
        LIN_OPERATIONS(ENTRY)
        LIN_RIVAL_OPERATIONS(ENTRY) LIN_MAPPED_OPERATIONS(ENTRY)
        .expect_states = lin_cpu_expect_states,
    };
    return &table;
}

static lin_ops bf16_table, int8_table;

static void make_int8_table(void)
{
    int8_table = *lin_ops_cpu();
    int8_table.precision = LIN_PRECISION_INT8;
    int8_table.exact = lin_ops_cpu();
#define REPLACE(name) int8_table.name = lin_cpu_int8_##name;
    LIN_INT8_OPERATIONS(REPLACE)
#undef REPLACE
}

const lin_ops *lin_ops_cpu_int8(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_int8_table);
    return &int8_table;
}

static void make_bf16_table(void)
{
    bf16_table = *lin_ops_cpu();
    bf16_table.precision = LIN_PRECISION_BF16;
#if LIN_HAS_BF16
#define REPLACE(name) bf16_table.name = lin_cpu_bf16_##name;
    LIN_BF16_OPERATIONS(REPLACE)
#endif
}

lin_status lin_ops_cpu_bf16(const lin_ops **ops, lin_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *ops = NULL;
    lin_status status = check_bf16(err);
    if (status != LIN_OK) return status;
    pthread_once(&once, make_bf16_table);
    *ops = &bf16_table;
    return LIN_OK;
}
