/*
 * networks.h - sizes and random constants of the other kinds of attention that the paper compares. networks.c adds these and an
 * LSTM to the tables of model/network.h.
 *
 *   const lin_lsh lsh = lin_config_lsh(config);                                          // Reformer; Kitaev et al. 2020
 *   lin_lsh_rotations(R, lsh.rounds, H, E, lsh.rotations, lin_random_key(seed, layer));
 *   ops->lsh_forward(exec, y, lse, order, qv, R, &segments, &lsh, H, E, causal);
 *
 *   const lin_map map = lin_config_map(config);                                          // LIN_MAP_RANDOM of kernels/ops.h
 *   lin_random_features(omega, H, map.D, E, seed);
 *   ops->mapped_attention_forward(exec, y, qkv, omega, &segments, &map, H, E, causal, NULL, 0);
 *
 * The rotations R are not a parameter: they are not trained, and model files do not hold them. The frequencies omega are not
 * trained either, but a tensor of the model file: a model trained with one draw does not work with another. For rows omega_d of
 * independent Gaussians, the mean of φ(q) φ(k) is exp(q k / sqrt(E)), the numerator of softmax attention. Rows that are
 * orthogonal in blocks of E have the same mean and less variance (Choromanski et al. 2021, section 2.4 and theorem 2).
 */
#ifndef LIN_PAPER_NETWORKS_H
#define LIN_PAPER_NETWORKS_H

#include <math.h>

#include "base/hash.h"
#include "model/config.h"

/* LSH attention, with as many rotations as long utterances can use. */
lin_lsh lin_config_lsh(const lin_config *config);

/* The feature map with its number of features D; for elu, D = E. */
lin_map lin_config_map(const lin_config *config);

/* omega [H, D, E]. In each head, rows 0..E-1, E..2E-1, ... are orthogonal to each other, with uniform directions; the length of
 * each row is drawn independently, as that of a Gaussian vector (chi with E degrees of freedom). Head h depends on (seed, h)
 * alone, and the first rows are the same for any D. Allocates nothing. */
void lin_random_features(float *omega, int H, int D, int E, uint64_t seed);

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
