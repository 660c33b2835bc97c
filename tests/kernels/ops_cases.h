/*
 * ops_cases.h - the test cases for every backend of kernels/ops.h, against lin_ops_ref().
 *
 *   ops_options options = {.n_threads = 2, .tolerance = 1, .bit_exact = 1};
 *   ops_digest digests[OPS_MAX_CASES];
 *   int n = ops_run_cases(lin_ops_cpu(), &options, digests);
 *
 * Inputs are random floats, the same for every backend and widened to double for ref/. Outputs are poisoned with NaN before each
 * call, and everything that an operation may not write is checked (guards around every buffer, inputs compared afterwards). Each
 * output enters a digest of its case, so that two runs, for example with 1 and 3 threads, can be compared bit by bit.
 * Buffers other than packed weights start one element off the 64-byte line: only packed weights are required to be aligned.
 * All data that an operation reads or writes are in such buffers, none on the stack, so that the same cases can run on a GPU
 * if test_allocate of tests/support.h returns memory that the GPU can access. ops_done must be called before a result is read or
 * an input changed; the checks do so themselves.
 * The cases themselves: ops_cases_layers.c, ops_cases_sequence.c, ops_cases_softmax.c, ops_cases_lsh.c, ops_cases_mapped.c,
 * ops_cases_mixture.c, ops_cases_lstm.c, ops_cases_training.c and ops_cases_streams.c.
 */
#ifndef LIN_TESTS_KERNELS_OPS_CASES_H
#define LIN_TESTS_KERNELS_OPS_CASES_H

#include "kernels/ops.h"
#include "tests/support.h"

typedef struct ops_options {
    int n_threads;
    double tolerance; /* multiplies every case's own tolerance; 1 for fp32 sums */
    int bit_exact;    /* splits, row counts and in-place calls must give the same bits; else within the tolerance */
    int aligned;      /* operands on the 64-byte line, not one element off it */
    int quick;        /* few and small shapes, for a backend a thousand times slower than the CPU's */
    int digest_only;  /* skip ref/: for further thread counts, whose digests are compared */
    const char *only; /* the one case to run, or NULL */
} ops_options;

typedef struct ops_digest {
    const char *name;
    uint64_t value;
} ops_digest;

enum { OPS_MAX_CASES = 64 };

/* The cases by number; NULL out of range. */
int ops_case_count(void);
const char *ops_case_name(int number);

/* Runs all cases (or options->only) and writes a digest for each; returns how many ran.
 * A failure ends the test with a message. */
int ops_run_cases(const lin_ops *ops, const ops_options *options, ops_digest *digests);

#endif
