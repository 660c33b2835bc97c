/*
 * kernel_support.h - what tests of single operations share: the reference with an executor, utterances, instruction sets.
 *
 * The includer's fixture is ref_begin and ref_end.
 */
#ifndef LIN_TESTS_KERNELS_KERNEL_SUPPORT_H
#define LIN_TESTS_KERNELS_KERNEL_SUPPORT_H

#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

static const lin_ops_f64 *ref;
static lin_exec *ref_exec;

static inline void ref_begin(void)
{
    ref = lin_ops_ref();
    ck_assert_int_eq(ref->exec_create(ref, 1, &ref_exec, NULL), LIN_OK);
}

static inline void ref_end(void)
{
    ref->exec_destroy(ref_exec);
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
}

static inline lin_segments segments_at(const int *offsets, int B)
{
    lin_segments s = {.B = B, .rows = offsets[B], .offsets = offsets};
    for (int b = 0; b < B; b++)
        if (offsets[b + 1] - offsets[b] > s.longest) s.longest = offsets[b + 1] - offsets[b];
    return s;
}

enum { N_ISAS = 3 };

/* Selects instruction set i for the CPU's operations; 0 if this machine lacks it. */
static inline int choose_isa(int i)
{
    static const char *const names[N_ISAS] = {"portable", "avx2", "avx512"};
    lin_error err = {0};
    const lin_status status = lin_cpu_select(names[i], &err);
    ck_assert_msg(status == LIN_OK || (status == LIN_UNSUPPORTED && i > 0), "%s", err.message);
    if (status == LIN_OK) ck_assert_str_eq(lin_cpu_isa(), names[i]);
    return status == LIN_OK;
}

#endif
