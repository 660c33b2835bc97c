/*
 * cpu.h - shared by the files of the CPU backend: the execution context, the instruction set in use, and every operation by name.
 *
 * Internal to kernels/cpu/; other code calls through the table of lin_ops_cpu() (kernels/ops.h).
 *
 * Instruction sets. The Makefile compiles the source of an operation once for each, with LIN_SUFFIX and LIN_WIDTH as the name and
 * the floats of a vector, and once without them: then the suffix is `portable`, and LIN_ONCE is defined for the part that has the
 * threads and picks one at run time.
 *
 *   LIN_DISPATCH_DECLARE(void, foo_rows, (float *y, int rows));
 *   void LIN_NAME(foo_rows)(float *y, int rows) { ... }
 *   #ifdef LIN_ONCE
 *   ... LIN_DISPATCH(foo_rows)(y, rows);
 *   #endif
 *
 * isa.mk has the flags: those of x86-64 form fused multiply-adds, but for linear_int8.c, which gives the same bits everywhere.
 * arm64 has NEON by default. Between instruction sets results may differ in the last bits. Within one they never depend on the
 * number of rows, splits into calls, or number of threads.
 */
#ifndef LIN_KERNELS_CPU_CPU_H
#define LIN_KERNELS_CPU_CPU_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "kernels/ops.h"

/* ---- execution context ----------------------------------------------------------------------------------------------------- */

/* Scratch of each thread, 64-byte aligned, not zeroed. A work item owns it while it runs; nothing in it is kept for the next. */
enum { LIN_SCRATCH_BYTES = 1 << 20 };

/* States that a later operation will read and that products prefetch meanwhile: `count` floats at states[b] + at, `done` of which
 * were prefetched, and those of the utterances after b. */
typedef struct lin_expected {
    float *const *states;
    int B, b;
    size_t at, count, done;
} lin_expected;

struct lin_exec {
    lin_pool *pool; /* NULL with one thread */
    int n_threads;
    unsigned char *scratch; /* [n_threads, LIN_SCRATCH_BYTES] */
    lin_expected expected;  /* one thread only */
};

static inline void *lin_scratch(const lin_exec *exec, int thread)
{
    assert(thread >= 0 && thread < exec->n_threads);
    return exec->scratch + (size_t)thread * LIN_SCRATCH_BYTES;
}

/* The threads for an operation on rows x width elements. Below `least` elements, starting a second thread costs more time than it
 * saves; LIN_SMALL where an element takes a few instructions. */
enum { LIN_SMALL = 16384 };

static inline lin_pool *lin_threads_for(const lin_exec *exec, int rows, int width, size_t least)
{
    return (size_t)rows * (size_t)width < least ? NULL : exec->pool;
}

/* Invariants of the rows of a batch (kernels/ops.h): the first utterance begins at 0, the last ends within `rows`. */
static inline int lin_segments_hold(const lin_segments *s)
{
    return s->B >= 0 && s->rows >= 0 && s->offsets && s->offsets[0] == 0 && s->offsets[s->B] <= s->rows;
}

/* ---- instruction sets ------------------------------------------------------------------------------------------------------ */

typedef enum lin_isa { LIN_ISA_PORTABLE, LIN_ISA_AVX2, LIN_ISA_AVX512 } lin_isa;

/* The instruction set in use: the best of this machine unless LINNET_ISA or lin_cpu_select chose another. Costs one load. */
lin_isa lin_cpu_level(void);

/* The best instruction set of this processor. */
lin_isa lin_cpu_best_level(void);

#ifndef LIN_SUFFIX
#define LIN_SUFFIX portable
#define LIN_WIDTH 4
#define LIN_ONCE
#endif

#define LIN_PASTE2(a, b) a##_##b
#define LIN_PASTE(a, b) LIN_PASTE2(a, b)
#define LIN_NAME(function) LIN_PASTE(function, LIN_SUFFIX)

#if defined(__x86_64__)
#define LIN_DISPATCH_DECLARE(type, function, arguments)                                                                          \
    type function##_portable arguments;                                                                                          \
    type function##_avx2 arguments;                                                                                              \
    type function##_avx512 arguments
#define LIN_DISPATCH(function)                                                                                                   \
    (lin_cpu_level() == LIN_ISA_AVX512 ? function##_avx512                                                                       \
     : lin_cpu_level() == LIN_ISA_AVX2 ? function##_avx2                                                                         \
                                       : function##_portable)
#else
#define LIN_DISPATCH_DECLARE(type, function, arguments) type function##_portable arguments
#define LIN_DISPATCH(function) (function##_portable)
#endif

/* ---- the operations, described in kernels/ops.h ---------------------------------------------------------------------------- */

#define DECLARE(name) __typeof__(*((lin_ops *)0)->name) lin_cpu_##name;
LIN_ALL_OPERATIONS(DECLARE)
#undef DECLARE

/* Operations of other precisions, which replace those of the same name. Eight bits, on every processor (linear_int8.c): */
#define LIN_INT8_OPERATIONS(X) X(weight_size) X(weights_pack) X(linear_forward)

/* In bf16 for processors with AVX512-BF16 or arm64's BF16. linear_bf16.c: rows of at most 2^19 elements. The sum over k runs over
 * pairs in order; of a weight gradient the sums over rows 2t and 2t+1 run in order, 384 rows are summed before they are added to
 * dw; db sums dy as it is, in fp32. paper/cpu/lstm.c, over recurrent weights packed in bf16: h, and the gradients of the gates,
 * are rounded to bf16 for the products. */
#if defined(LIN_NO_PAPER)
#define LIN_BF16_OPERATIONS(X) LIN_INT8_OPERATIONS(X) X(linear_backward_weight)
#else
#define LIN_BF16_OPERATIONS(X) LIN_INT8_OPERATIONS(X) X(linear_backward_weight) X(lstm_forward) X(lstm_backward)
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define LIN_HAS_BF16 1
#else
#define LIN_HAS_BF16 0
#endif

#define DECLARE_INT8(name) __typeof__(*((lin_ops *)0)->name) lin_cpu_int8_##name;
#define DECLARE_BF16(name) __typeof__(*((lin_ops *)0)->name) lin_cpu_bf16_##name;
LIN_INT8_OPERATIONS(DECLARE_INT8)
LIN_BF16_OPERATIONS(DECLARE_BF16)

/* ---- shared by elementwise.c and norm.c ------------------------------------------------------------------------------------ */

/* A dropout in the form that the loops use. If nothing is dropped: threshold 0, scale 1. */
typedef struct lin_cpu_mask {
    int drops;
    uint32_t threshold;
    float scale;
    uint64_t key;
    size_t first; /* index of element 0 in the whole matrix */
} lin_cpu_mask;
lin_cpu_mask lin_cpu_mask_of(const lin_dropout *dropout);

/* Elements first .. first+count-1, with pointers to the first of them: y = base + dropout(r); base may be NULL. Runs on the
 * calling thread. Fastest if `first`, and that of the mask, is a multiple of 32. */
void lin_cpu_dropout_span(float *y, const float *base, const float *r, size_t first, size_t count, const lin_cpu_mask *mask);

/* ---- shared by conv.c and norm.c ------------------------------------------------------------------------------------------- */

/* Calls `add` for all rows, which adds to sums a [n_a] and b [n_b]. Blocks of at least `least` rows have sums of their own, which
 * are added in order: equal results for any number of threads. */
typedef void lin_rows_added(const void *job, float *a, float *b, int first, int end);
void lin_sum_rows(lin_exec *exec, lin_rows_added *add, const void *job, float *a, size_t n_a, float *b, size_t n_b, int rows,
                  int width, int least);

#endif
