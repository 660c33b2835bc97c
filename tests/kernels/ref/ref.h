/*
 * ref.h - the functions of lin_ops_ref(): every operation of ops.h in double precision, on one thread.
 *
 * The fast backends are tested against them, so each is written from its definition (the explicit N x N sums for attention, the
 * direct sum for the convolution, the recursions of Graves 2006 for CTC) and never in a form that a fast backend would use.
 * Shapes and meaning: kernels/ops.h. tests/support.h declares lin_ops_ref.
 */
#ifndef LIN_TESTS_KERNELS_REF_REF_H
#define LIN_TESTS_KERNELS_REF_REF_H

#include <stddef.h>

#include "kernels/ops.h"

/* The exec of this backend: scratch for attention and CTC, grown on demand. */
struct lin_exec {
    double *scratch;
    size_t scratch_count;
};

/* `count` doubles that are valid until the next call. A test without memory ends. */
double *lin_ref_scratch(lin_exec *exec, size_t count);

#define DECLARE(name) __typeof__(*((lin_ops_f64 *)0)->name) lin_ref_##name;
LIN_ALL_OPERATIONS(DECLARE)
#undef DECLARE

#endif
