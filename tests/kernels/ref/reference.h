/*
 * reference.h - the operations of kernels/ops.h in double precision: plain loops, explicit N x N sums for attention, one
 * thread. The backends and the network's gradient are tested against them.
 */
#ifndef LIN_TESTS_KERNELS_REF_REFERENCE_H
#define LIN_TESTS_KERNELS_REF_REFERENCE_H

#include "kernels/ops.h"

const lin_ops_f64 *lin_ops_ref(void);

#endif
