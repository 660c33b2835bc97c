/*
 * ptx.h - instructions without a C++ name: tensor-core products, asynchronous copies, signals between blocks. On the host, where
 * the kernels are tested, the emulation replaces them (tests/emulation).
 *
 * m16n8k8, tf32 operands, fp32 sums (PTX ISA, "Matrix Fragments for mma.m16n8k8").
 * With g = lane / 4 and t = lane % 4 a lane holds
 *   a[0] A[g][t]       a[1] A[g+8][t]     a[2] A[g][t+4]     a[3] A[g+8][t+4]      A [16, 8]
 *   b[0] B[t][g]       b[1] B[t+4][g]                                              B [8, 8]
 *   c[0] C[g][2t]      c[1] C[g][2t+1]    c[2] C[g+8][2t]    c[3] C[g+8][2t+1]     C [16, 8]
 */
#ifndef LIN_KERNELS_CUDA_PTX_H
#define LIN_KERNELS_CUDA_PTX_H

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __CUDACC__

/* Rounded to the nearest tf32 (10 bits of mantissa), as a float. */
__device__ __forceinline__ float lin_tf32(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

/* 2^x in one instruction, as exact as the fast exponential; results below 2^-126 are 0. */
__device__ __forceinline__ float lin_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* C += A B over a warp. Operands must have been rounded with lin_tf32. All 32 lanes take part. */
__device__ __forceinline__ void lin_mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
                   "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

/* The compiler knows nothing about x from here on: what follows from it is computed here, not before a loop. */
__device__ __forceinline__ void lin_opaque(float &x) { asm volatile("" : "+f"(x)); }

/* Global to shared memory without passing through registers: 16 or 4 bytes, both addresses aligned to as many. The calling thread
 * may read the bytes after lin_copy_wait, other threads after a barrier that follows it. */
__device__ __forceinline__ void lin_copy_async16(void *shared, const void *global)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}

__device__ __forceinline__ void lin_copy_async4(void *shared, const void *global)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(global) : "memory");
}

/* lin_copy_commit ends a group of copies; lin_copy_wait waits until at most N of the latest groups are incomplete. */
__device__ __forceinline__ void lin_copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N> __device__ __forceinline__ void lin_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Between the blocks of a cooperative launch (LIN_LAUNCH_TOGETHER). lin_signal adds 1 to *at, after everything that the calling
 * thread has written, and that other threads of its block have written before a barrier that precedes the call, can be seen
 * by all blocks. lin_await returns when *at is at least `value`: what was written before the signals can then be read, also by
 * other threads after a barrier, with loads that bypass the first-level cache (__ldcg). */
__device__ __forceinline__ void lin_signal(unsigned *at)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
}

__device__ __forceinline__ void lin_await(const unsigned *at, unsigned value)
{
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(at) : "memory");
    while (seen < value);
}

/* Starts loading the line of an address into the second-level cache. */
__device__ __forceinline__ void lin_prefetch(const void *global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

#else

static inline float lin_tf32(float x) { return emulated_tf32(x); }
static inline float lin_exp2(float x)
{
    const float y = exp2f(x);
    return y < 0x1p-126f ? 0 : y;
}
static inline void lin_mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2]) { emulated_mma_tf32(c, a, b); }
static inline void lin_opaque(float &) {}
static inline void lin_copy_async16(void *shared, const void *global) { emulated_copy_async(shared, global, 16); }
static inline void lin_copy_async4(void *shared, const void *global) { emulated_copy_async(shared, global, 4); }
static inline void lin_copy_commit(void) { emulated_copy_commit(); }
template <int N> static inline void lin_copy_wait(void) { emulated_copy_wait(N); }
static inline void lin_signal(unsigned *at) { atomicAdd(at, 1u); }
static inline void lin_await(const unsigned *at, unsigned value, EMULATED_HERE) { emulated_await(at, value, file, line); }
static inline void lin_prefetch(const void *) {}

#endif

#endif
