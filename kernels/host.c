// host.c - copies and ordering in host memory; see host.h.

#include "kernels/host.h"

#include <string.h>

#include "base/memory.h"

lin_status lin_host_memory_create(lin_exec *exec, size_t bytes, void **block, lin_error *err)
{
    (void)exec;
    *block = lin_calloc(bytes, 1);
    return *block ? LIN_OK : lin_no_memory(err, "a block of memory", bytes);
}

void lin_host_memory_destroy(lin_exec *exec, void *block)
{
    (void)exec;
    lin_free(block);
}

void lin_host_copy(lin_exec *exec, void *to, const void *from, size_t bytes)
{
    (void)exec;
    if (bytes) memcpy(to, from, bytes);
}

void lin_host_upload_beside(lin_exec *exec, void *to, const void *from, size_t bytes, int i)
{
    (void)i; // all earlier operations have ended
    lin_host_copy(exec, to, from, bytes);
}

void lin_host_zero(lin_exec *exec, void *block, size_t bytes)
{
    (void)exec;
    if (bytes) memset(block, 0, bytes);
}

void lin_host_fence(lin_exec *exec, int i)
{
    (void)exec;
    (void)i;
}

lin_status lin_host_finish(lin_exec *exec, lin_error *err)
{
    (void)exec;
    (void)err;
    return LIN_OK;
}
