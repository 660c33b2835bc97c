/*
 * lsh.h - the random rotations of LSH attention (Reformer; Kitaev et al. 2020): constants of a layer, made from a seed.
 *
 *   lin_lsh_rotations(R, rounds, H, E, rotations, lin_random_key(seed, layer));
 *   ops->lsh_forward(exec, y, lse, order, qv, R, &segments, &lsh, H, E, causal);
 *
 * R is no parameter: nothing trains it, and a model file need not hold it.
 */
#ifndef LIN_PAPER_LSH_H
#define LIN_PAPER_LSH_H

#include <math.h>

#include "base/rng.h"
#include "kernels/ops.h"

/* R [rounds, H, E, rotations] in host memory: independent Gaussians of mean 0 and variance 1 (Box & Muller 1958). Element i
 * depends on (key, i) alone. Values are rounded to float, so that a network in double has the same R. */
static inline void lin_lsh_rotations(lin_real *R, int rounds, int H, int E, int rotations, uint64_t key)
{
    const size_t n = (size_t)rounds * (size_t)H * (size_t)E * (size_t)rotations;
    for (size_t i = 0; i < n; i += 2) {
        const double radius = sqrt(-2 * log(1 - lin_random_uniform(key, i)));
        const double angle = 6.283185307179586 * lin_random_uniform(key, i + 1);
        R[i] = (lin_real)(float)(radius * cos(angle));
        if (i + 1 < n) R[i + 1] = (lin_real)(float)(radius * sin(angle));
    }
}

#endif
