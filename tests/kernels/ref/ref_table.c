// ref_table.c - the execution context and the table of operations of ref/; see ref.h.

#include <stdlib.h>

#include "base/memory.h"
#include "tests/kernels/ref/ref.h"
#include "tests/kernels/ref/reference.h"

double *lin_ref_scratch(lin_exec *exec, size_t count)
{
    if (count > exec->scratch_count || !exec->scratch) {
        lin_free(exec->scratch);
        exec->scratch = lin_alloc(count, sizeof(double));
        exec->scratch_count = count;
        if (!exec->scratch) abort();
    }
    return exec->scratch;
}

static lin_status exec_create(const lin_ops_f64 *ops, int n_threads, lin_exec **out, lin_error *err)
{
    (void)ops;
    *out = NULL;
    if (n_threads < 0) return lin_fail(err, LIN_INVALID, "%d threads requested; use 0 or more", n_threads);
    lin_exec *exec = lin_calloc(1, sizeof *exec);
    if (!exec) return lin_no_memory(err, "an executor", sizeof *exec);
    *out = exec;
    return LIN_OK;
}

static void exec_destroy(lin_exec *exec)
{
    if (!exec) return;
    lin_free(exec->scratch);
    lin_free(exec);
}

#define ENTRY(name) .name = lin_ref_##name,

static lin_ops_f64 table = {
    .name = "ref",
    .on_host = 1,
    .sums_in_norm = 1, // so that finite differences check it in the network
    .exec_create = exec_create,
    .exec_destroy = exec_destroy,
    LIN_OPERATIONS(ENTRY)
    LIN_RIVAL_OPERATIONS(ENTRY) LIN_MAPPED_OPERATIONS(ENTRY)
    .fbank = lin_ref_fbank,
};

// Memory and order are those of the CPU's backend, which do not look at the exec.
const lin_ops_f64 *lin_ops_ref(void)
{
    const lin_ops *cpu = lin_ops_cpu();
    table.memory_create = cpu->memory_create;
    table.memory_destroy = cpu->memory_destroy;
    table.staging_create = cpu->staging_create;
    table.staging_destroy = cpu->staging_destroy;
    table.upload = cpu->upload;
    table.upload_beside = cpu->upload_beside;
    table.download = cpu->download;
    table.fetch = cpu->fetch;
    table.copy = cpu->copy;
    table.zero = cpu->zero;
    table.fence = cpu->fence;
    table.wait = cpu->wait;
    table.finish = cpu->finish;
    return &table;
}
