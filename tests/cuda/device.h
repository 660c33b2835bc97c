/*
 * device.h - the CUDA backend for tests, emulated or, with -DLIN_ON_GPU (make check-gpu), on a real GPU; and buffers that both
 * sides can access.
 *
 *   const lin_ops *ops = test_device(LIN_PRECISION_FP32);
 *   test_device_memory();                      // from here on test_buffer gives page-locked memory, which a GPU can access
 *   ...
 *   test_device_memory_end();
 *
 * Each test program is one source file, in emulation each test is a separate process, on a GPU all of them are one process.
 */
#ifndef LIN_TESTS_CUDA_DEVICE_H
#define LIN_TESTS_CUDA_DEVICE_H

#include "kernels/ops.h"
#include "tests/support.h"

#ifdef LIN_ON_GPU
/* A real GPU has no counters: whatever is compared with them is equal. */
#define emulation_count(which) 0ul
static inline lin_status test_device_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "cuda:%d", device);
    return lin_backend_open(name, precision, ops, err);
}
#else
#include "tests/emulation/emulation.h"
/* The emulated backend is linked in. */
lin_status lin_cuda_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err);
static inline lin_status test_device_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err)
{
    return lin_cuda_open(device, precision, ops, err);
}
#endif

static inline const lin_ops *test_device(lin_precision precision)
{
    const lin_ops *ops = NULL;
    OK(test_device_open(0, precision, &ops, &err));
    return ops;
}

/* ---- buffers --------------------------------------------------------------------------------------------------------------- */

/* The allocator. On a GPU page-locking takes longer than most tests, so blocks are kept, by powers of two. */
static struct {
    const lin_ops *ops;
    lin_exec *exec;
    void *kept[48];
} test_pool;

enum { TEST_POOL_HEAD = 64 };

static inline int test_pool_class(size_t bytes)
{
    int i = 8;
    while (((size_t)1 << i) < bytes) i++;
    return i;
}

static inline void *test_pool_take(size_t bytes)
{
    void *block = NULL;
#ifdef LIN_ON_GPU
    const int i = test_pool_class(bytes + TEST_POOL_HEAD);
    block = test_pool.kept[i];
    if (block) memcpy(&test_pool.kept[i], block, sizeof block);
    else if (test_pool.ops->staging_create(test_pool.exec, (size_t)1 << i, &block, NULL) != LIN_OK) return NULL;
    memcpy((char *)block + sizeof block, &i, sizeof i);
    return (char *)block + TEST_POOL_HEAD;
#else
    return test_pool.ops->staging_create(test_pool.exec, bytes, &block, NULL) == LIN_OK ? block : NULL;
#endif
}

static inline void test_pool_give(void *block)
{
#ifdef LIN_ON_GPU
    int i;
    block = (char *)block - TEST_POOL_HEAD;
    memcpy(&i, (char *)block + sizeof block, sizeof i);
    memcpy(block, &test_pool.kept[i], sizeof block);
    test_pool.kept[i] = block;
#else
    test_pool.ops->staging_destroy(test_pool.exec, block);
#endif
}

static inline void test_device_memory(void)
{
    memset(&test_pool, 0, sizeof test_pool);
    test_pool.ops = test_device(LIN_PRECISION_FP32);
    OK(test_pool.ops->exec_create(test_pool.ops, 0, &test_pool.exec, &err));
    test_allocate = test_pool_take;
    test_release = test_pool_give;
}

static inline void test_device_memory_end(void)
{
    for (size_t i = 0; i < sizeof test_pool.kept / sizeof *test_pool.kept; i++) {
        for (void *block = test_pool.kept[i], *next; block; block = next) {
            memcpy(&next, block, sizeof next);
            test_pool.ops->staging_destroy(test_pool.exec, block);
        }
    }
    test_pool.ops->exec_destroy(test_pool.exec);
    test_allocate = test_allocate_aligned;
    test_release = free;
}

#endif
