/*
 * pairs.h - the CUDA backend beside ref/: both, one stream of random numbers, and the same numbers for each in its own precision.
 *
 *   begin(LIN_PRECISION_FP32, 2020);                  // the key of the random numbers
 *   pair x = pair_in(n, -1, 1, 1), y = pair_in(n, 0, 0, 1);
 *   ops->f(exec, y.f, x.f), ref->f(ref_exec, y.d, x.d);
 *   check("f", y, 1e-6);
 *   pair_free(x), pair_free(y);
 *   end();
 */
#ifndef LIN_TESTS_CUDA_PAIRS_H
#define LIN_TESTS_CUDA_PAIRS_H

#include "base/hash.h"
#include "tests/cuda/device.h"
#include "tests/kernels/ref/reference.h"

static const lin_ops *ops;
static const lin_ops_f64 *ref;
static lin_exec *exec, *ref_exec;
static uint64_t key, counter;

static inline void begin(lin_precision precision, uint64_t random)
{
    test_device_memory();
    ops = test_device(precision);
    ref = lin_ops_ref();
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    ck_assert_int_eq(ref->exec_create(ref, 1, &ref_exec, NULL), LIN_OK);
    key = random;
    counter = 0;
}

static inline void end(void)
{
    ops->exec_destroy(exec);
    ref->exec_destroy(ref_exec);
    test_device_memory_end();
}

static inline void done(void)
{
    lin_error err = {0};
    ck_assert_msg(ops->finish(exec, &err) == LIN_OK, "%s", err.message);
}

static inline double uniform(double lo, double hi) { return lo + (hi - lo) * lin_random_uniform(key, counter++); }

/* Numbers of the backend, `shift` elements off the 64-byte line, and the same numbers for ref/. */
typedef struct pair {
    float *f;
    double *d;
    size_t n;
} pair;

static inline pair pair_in(size_t n, double lo, double hi, int shift)
{
    pair p = {test_buffer_shifted(n, sizeof(float), (size_t)shift), test_buffer(n, sizeof(double)), n};
    for (size_t i = 0; i < n; i++) {
        p.f[i] = (float)uniform(lo, hi);
        p.d[i] = (double)p.f[i];
    }
    return p;
}

static inline void check(const char *what, pair p, double tolerance)
{
    done();
    test_guards(p.f, what);
    test_close_scaled_f32(what, p.f, p.d, p.n, tolerance, 1);
}

static inline void pair_free(pair p)
{
    test_buffer_free(p.f);
    test_buffer_free(p.d);
}

#endif
