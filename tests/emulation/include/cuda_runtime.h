/*
 * cuda_runtime.h - the part of CUDA that kernels/cuda/ uses, for a machine without a GPU: the same sources, compiled as C++, run
 * on the host.
 *
 *   g++ -x c++ -std=c++17 -I. -Itests/emulation/include -c kernels/cuda/norm.cu
 *
 * This half is for kernels: types, indices, barriers, warp collectives, atomics, mathematics. host.h is for the code that
 * launches them, emulation.h for tests. Anything else does not compile, on purpose: the subset is small so that it
 * can be emulated strictly.
 *
 * A block's threads run one after another, each until it waits at a barrier or a collective, in an order that changes from launch
 * to launch (emulation.h): code that depends on an order that CUDA does not guarantee gives a wrong result. Behaviour that CUDA
 * leaves undefined ends the process with a message that names the kernel, the block and the thread.
 */
#ifndef LIN_EMULATION_CUDA_RUNTIME_H
#define LIN_EMULATION_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ only_dynamic_shared_memory_see_LIN_SHARED
constexpr int warpSize = 32;

/* ---- types ----------------------------------------------------------------------------------------------------------------- */

#define EMULATED_VECTORS(T, name, a2, a4)                                     \
    struct alignas(a2) name##2 { T x, y; };                                   \
    struct name##3 { T x, y, z; };                                            \
    struct alignas(a4) name##4 { T x, y, z, w; };                             \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }         \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATED_VECTORS(float, float, 8, 16)
EMULATED_VECTORS(int, int, 8, 16)
EMULATED_VECTORS(unsigned, uint, 8, 16)
EMULATED_VECTORS(unsigned char, uchar, 2, 4)
#undef EMULATED_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/* Of the running thread. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* ---- functions of the emulation for kernels (block.cpp, warp.cpp) ---------------------------------------------------------- */

/* The place in the sources where a thread waits: the caller's file and line, as the value of a default argument. */
#define EMULATED_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* The block's dynamic shared memory. */
void *emulated_shared(void);

/* A barrier of the block. Returns the number of threads with a true predicate. */
int emulated_barrier(int predicate, const char *what, const char *file, int line);

/* A collective of the lanes in mask: each passes its own `argument`, the last to arrive runs `complete` for all. */
typedef void (*emulated_completion)(void *const *arguments, unsigned lanes);
void emulated_collective(unsigned mask, void *argument, emulated_completion complete, const char *what, const char *file,
                         int line);

/* A word from another lane of the segment of `width` lanes. */
enum emulated_source { EMULATED_FROM_LANE, EMULATED_FROM_UP, EMULATED_FROM_DOWN, EMULATED_FROM_XOR };
uint64_t emulated_shuffle(unsigned mask, uint64_t word, emulated_source source, int operand, int width, const char *file,
                          int line);

/* The lanes of mask whose predicate is true. */
unsigned emulated_ballot(unsigned mask, int predicate, const char *what, const char *file, int line);

/* The largest value of the lanes of mask. */
int emulated_reduce_max(unsigned mask, int value, const char *file, int line);

/* cuda.h: rounding to tf32, ties away from zero; the product of fragments; copies that are done only when they are waited for. */
float emulated_tf32(float x);
void emulated_mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2], EMULATED_HERE);
void emulated_copy_async(void *shared, const void *global, int bytes, EMULATED_HERE);
void emulated_copy_commit(void);
void emulated_copy_wait(int groups_left);

/* cuda.h: waits until another block of a cooperative launch has raised *at to `value`. */
void emulated_await(const unsigned *at, unsigned value, EMULATED_HERE);

/* ---- barriers -------------------------------------------------------------------------------------------------------------- */

static inline void __syncthreads(EMULATED_HERE) { emulated_barrier(0, "__syncthreads", file, line); }
static inline int __syncthreads_or(int p, EMULATED_HERE) { return emulated_barrier(p != 0, "__syncthreads_or", file, line) != 0; }
static inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATED_HERE)
{
    emulated_collective(mask, NULL, NULL, "__syncwarp", file, line);
}

/* ---- warp collectives ------------------------------------------------------------------------------------------------------ */

template <typename T> static inline T emulated_shuffle_of(unsigned mask, T value, emulated_source source, int operand, int width,
                                                          const char *file, int line)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = emulated_shuffle(mask, word, source, operand, width, file, line);
    memcpy(&value, &word, sizeof value);
    return value;
}

template <typename T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle_of(mask, value, EMULATED_FROM_LANE, lane, width, file, line);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle_of(mask, value, EMULATED_FROM_UP, (int)by, width, file, line);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle_of(mask, value, EMULATED_FROM_DOWN, (int)by, width, file, line);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle_of(mask, value, EMULATED_FROM_XOR, with, width, file, line);
}

static inline unsigned __ballot_sync(unsigned mask, int p, EMULATED_HERE)
{
    return emulated_ballot(mask, p != 0, "__ballot_sync", file, line);
}
static inline int __any_sync(unsigned mask, int p, EMULATED_HERE)
{
    return emulated_ballot(mask, p != 0, "__any_sync", file, line) != 0;
}
static inline int __all_sync(unsigned mask, int p, EMULATED_HERE)
{
    return emulated_ballot(mask, p == 0, "__all_sync", file, line) == 0;
}

static inline int __reduce_max_sync(unsigned mask, int value, EMULATED_HERE)
{
    return emulated_reduce_max(mask, value, file, line);
}

/* ---- atomics: on integers only, because sums of floats would depend on the order ------------------------------------------- */

static inline unsigned atomicAdd(unsigned *at, unsigned v) { return (*at += v) - v; }

/* ---- a load that bypasses a cache ------------------------------------------------------------------------------------------ */

template <typename T> static inline T __ldcg(const T *at) { return *at; }

/* ---- mathematics ----------------------------------------------------------------------------------------------------------- */

template <typename To, typename From> static inline To emulated_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return emulated_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
static inline float __int_as_float(int x) { return emulated_bits<float>(x); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }

#define EMULATED_LEAST_MOST(T)                              \
    static inline T min(T a, T b) { return b < a ? b : a; } \
    static inline T max(T a, T b) { return a < b ? b : a; }
EMULATED_LEAST_MOST(int)
EMULATED_LEAST_MOST(unsigned)
EMULATED_LEAST_MOST(long)
EMULATED_LEAST_MOST(unsigned long)
EMULATED_LEAST_MOST(long long)
EMULATED_LEAST_MOST(unsigned long long)
#undef EMULATED_LEAST_MOST
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

/* The fast exponential loses the same precision as the device's: it goes through base 2 in single precision. glibc declares a
 * function of this name. */
static inline float emulated_expf(float x) { return exp2f(x * 1.4426950408889634f); }
#define __expf(x) emulated_expf(x)
static inline void sincospif(float x, float *s, float *c)
{
    double a = 3.14159265358979323846 * fmod((double)x, 2.0);
    *s = (float)sin(a);
    *c = (float)cos(a);
}
static inline void sincospi(double x, double *s, double *c)
{
    double a = 3.14159265358979323846 * fmod(x, 2.0);
    *s = sin(a);
    *c = cos(a);
}

#include "tests/emulation/host.h"

#endif
