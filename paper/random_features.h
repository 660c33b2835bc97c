/*
 * random_features.h - the frequencies of random features (LIN_MAP_RANDOM of kernels/ops.h): constants of a layer,
 * made from a seed.
 *
 *   lin_random_features(omega, H, D, E, seed);
 *   ops->mapped_attention_forward(exec, y, qkv, omega, &segments, &map, H, E, causal, NULL, 0);
 *
 * For rows omega_d of independent Gaussians, the mean of φ(q) φ(k) is exp(q k / sqrt(E)), the numerator of softmax attention.
 * Rows that are orthogonal in blocks of E have the same mean and less variance (Choromanski et al. 2021, section 2.4 and theorem
 * 2). They are stored in the model file as a tensor that is not trained:
 * a model trained with one draw does not work with another.
 */
#ifndef LIN_PAPER_RANDOM_FEATURES_H
#define LIN_PAPER_RANDOM_FEATURES_H

#include <stdint.h>

/* omega [H, D, E]. In each head, rows 0..E-1, E..2E-1, ... are orthogonal to each other, their directions uniform; the length of
 * each row is that of a Gaussian vector, drawn on its own (chi with E degrees of freedom). Head h depends on (seed, h) alone, and
 * the first D rows are the same for any D. Allocates nothing. */
void lin_random_features(float *omega, int H, int D, int E, uint64_t seed);

#endif
