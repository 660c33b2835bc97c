/*
 * host.h - memory and ordering for backends that work in host memory and run every operation during its call: the entries of the
 * same names in kernels/ops_table.h. Shared by kernels/cpu/ and the reference of the tests.
 */
#ifndef LIN_KERNELS_HOST_H
#define LIN_KERNELS_HOST_H

#include <stddef.h>

#include "kernels/ops.h"

lin_status lin_host_memory_create(lin_exec *exec, size_t bytes, void **block, lin_error *err);
void lin_host_memory_destroy(lin_exec *exec, void *block);
void lin_host_copy(lin_exec *exec, void *to, const void *from, size_t bytes); /* upload, download, fetch, copy */
void lin_host_upload_beside(lin_exec *exec, void *to, const void *from, size_t bytes, int i);
void lin_host_zero(lin_exec *exec, void *block, size_t bytes);
void lin_host_fence(lin_exec *exec, int i); /* and wait */
lin_status lin_host_finish(lin_exec *exec, lin_error *err);

/* These functions in a backend's table. */
#define LIN_HOST_MEMORY                                                                                                          \
    .memory_create = lin_host_memory_create, .memory_destroy = lin_host_memory_destroy,                                          \
    .staging_create = lin_host_memory_create, .staging_destroy = lin_host_memory_destroy, .upload = lin_host_copy,               \
    .upload_beside = lin_host_upload_beside, .download = lin_host_copy, .fetch = lin_host_copy, .copy = lin_host_copy,           \
    .zero = lin_host_zero, .fence = lin_host_fence, .wait = lin_host_fence, .finish = lin_host_finish

#endif
