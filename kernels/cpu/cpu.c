// cpu.c - the context, and the table of operations; see cpu.h.

#include "kernels/cpu/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/memory.h"
#include "kernels/host.h"

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
    lin_status status = lin_cpu_parse_level(getenv("LINNET_ISA"), &wanted, err);
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

#define ENTRY(name) .name = lin_cpu_##name,

const lin_ops *lin_ops_cpu(void)
{
    static const lin_ops table = {
        .name = "cpu",
        .on_host = 1,
        .packs_halves = 1,
        .exec_create = exec_create,
        .exec_destroy = exec_destroy,
        LIN_HOST_MEMORY,
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
    int8_table.weight_size = lin_cpu_int8_weight_size;
    int8_table.weights_pack = lin_cpu_int8_weights_pack;
    int8_table.linear_forward = lin_cpu_int8_linear_forward;
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
    bf16_table.weight_size = lin_cpu_bf16_weight_size;
    bf16_table.weights_pack = lin_cpu_bf16_weights_pack;
    bf16_table.linear_forward = lin_cpu_bf16_linear_forward;
    bf16_table.linear_backward_weight = lin_cpu_bf16_linear_backward_weight;
#ifndef LIN_NO_PAPER
    bf16_table.lstm_forward = lin_cpu_bf16_lstm_forward;
    bf16_table.lstm_backward = lin_cpu_bf16_lstm_backward;
#endif
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
