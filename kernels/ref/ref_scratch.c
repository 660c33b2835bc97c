// ref_scratch.c - room for intermediate values that grows; see ref.h.

#include "base/memory.h"
#include "kernels/ref/ref.h"

double *lin_ref_scratch(lin_exec *exec, size_t count)
{
    if (count > exec->scratch_count || !exec->scratch) {
        lin_free(exec->scratch);
        exec->scratch = lin_alloc(count, sizeof(double));
        exec->scratch_count = exec->scratch ? count : 0;
    }
    return exec->scratch;
}
