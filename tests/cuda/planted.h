/*
 * planted.h - kernels with and without faults, for the emulation's own tests. planted.cu is compiled like the backend's sources.
 *
 * Every function takes host arrays, copies them to the device, launches, and copies back. Each returns a CUDA error, 0 for none.
 */
#ifndef LIN_TESTS_CUDA_PLANTED_H
#define LIN_TESTS_CUDA_PLANTED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum planted_fault {
    PLANTED_NOTHING,
    PLANTED_NO_BARRIER,
    PLANTED_NO_WARP_BARRIER,
    PLANTED_SHARED_BEFORE,
    PLANTED_SHARED_PAST,
    PLANTED_GLOBAL_BEFORE,
    PLANTED_GLOBAL_PAST,
    PLANTED_DIVERGENT_BARRIER,
    PLANTED_OTHER_BARRIER,
    PLANTED_FOREIGN_LANE,
    PLANTED_OWN_LANE_MISSING,
    PLANTED_DIFFERENT_SHUFFLES,
    PLANTED_NO_COPY_WAIT,
    PLANTED_LATE_COPY_WAIT,
    PLANTED_UNALIGNED_COPY,
    PLANTED_HOST_COPY,
    PLANTED_NOT_ROUNDED,
    PLANTED_HALF_WARP_PRODUCT,
    PLANTED_HOST_POINTER,
    PLANTED_BLOCKS_IN_ORDER,
    PLANTED_UNWRITTEN_SHARED,
    PLANTED_NO_AWAIT,
    PLANTED_NO_SIGNAL,
    PLANTED_APART
} planted_fault;

/* y [n] = x reversed within blocks of `block` elements, through shared memory. */
int planted_reverse(float *y, const float *x, int n, int block, planted_fault fault);
/* y [blocks] = the sum of each block's `block` elements of x: shuffles within warps, shared memory between them. */
int planted_sum(float *y, const float *x, int blocks, int block, planted_fault fault);
/* What each kind of shuffle and vote gives to each lane: y [32, 12]. lanes: of the warp, 1..32. */
int planted_warp(uint32_t *y, int lanes, planted_fault fault);
/* C [16, 8] += A [16, 8] B [8, 8] by the tensor cores. */
int planted_product(float *c, const float *a, const float *b, planted_fault fault);
/* y [n] = x [n], n a multiple of 256, by asynchronous copies of `bytes` each in two groups. */
int planted_copy(float *y, const float *x, int n, int bytes, planted_fault fault);
/* y [n]: block b adds 1 to the result of block b-1, which is correct in one order only. */
int planted_blocks(int *y, int n, planted_fault fault);
/* y [n, steps]: in each step every block writes a number, meets the others, and adds the number of its neighbour. */
int planted_meet(int *y, int n, int threads, int steps, planted_fault fault);
/* Every other thread ends before the barrier at which the rest wait: y [block] 1 for threads that pass it. */
int planted_early_end(int *y, int block);
/* The host reads, and writes, a block of the device. */
int planted_host_touch(int write);
/* A kernel that does nothing with this grid, block and shared memory, with `allowed` bytes permitted (0: no request). */
int planted_launch(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, size_t shared, size_t allowed);
/* A graph of copy, kernel, copy in two streams that fork and join, replayed `times`: x [n] -> y [n] = x + times. */
int planted_graph(float *y, const float *x, int n, int times);
/* Captured work that never rejoins the captured stream; a wait during a capture. */
int planted_graph_unjoined(void);
int planted_graph_waits(void);
/* A kernel in one stream reads what another stream writes, with and without an event between them: 1 if it read the new value. */
int planted_streams(int with_event, int *read_it);
/* A copy to page-locked memory: before and after it is waited for, 1 if the bytes had arrived. */
int planted_async_copy(int *before, int *after);
/* Through cublasLt: D [n, m] = act(alpha op(A) op(B) + beta C + bias), column-major; flags: 1 transpose A, 2 transpose B, 4 bias,
 * 8 relu, 16 tf32, 32 bf16 operands (given as uint16_t). lda, ldb, ldd: leading dimensions; shift: elements by which A is off its
 * alignment. */
int planted_matmul(float *d, const void *a, const void *b, const float *c, const float *bias, int m, int n, int k, int lda,
                   int ldb, int ldd, float alpha, float beta, int flags, int shift);

#ifdef __cplusplus
}
#endif

#endif
