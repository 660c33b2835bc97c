/*
 * norm.h - layer normalisation over a span of rows, once per instruction set. norm.c has the threads.
 *
 * The last vector of a row is padded with zeros, which are masked out of the sum of squared distances.
 */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

#define LIN_NORM_EPS 1e-5f

// x - mean in the first n lanes, 0 in the others.
LIN_INLINE vf LIN_NAME(centred)(const float *x, float mean, int n)
{
    float means[LIN_WIDTH];
    vstore(means, vset(mean));
    return vload_n(x, n) - vload_n(means, n);
}

void LIN_NAME(lin_norm_forward)(float *y, float *stats, const float *x, const float *gamma, const float *beta, int rows, int C);
void LIN_NAME(lin_norm_forward)(float *y, float *stats, const float *x, const float *gamma, const float *beta, int rows, int C)
{
    int whole = C / LIN_WIDTH * LIN_WIDTH, rest = C - whole;
    float share = 1.0f / (float)C;
    for (int r = 0; r < rows; r++) {
        const float *in = x + (size_t)r * (size_t)C;
        float *out = y + (size_t)r * (size_t)C;
        vf sum0 = {0}, sum1 = {0};
        int c = 0;
        for (; c + 2 * LIN_WIDTH <= whole; c += 2 * LIN_WIDTH) {
            sum0 += vload(in + c);
            sum1 += vload(in + c + LIN_WIDTH);
        }
        if (c < whole) sum0 += vload(in + c);
        if (rest) sum1 += vload_n(in + whole, rest);
        float mean = vsum(sum0 + sum1) * share;
        vf middle = vset(mean);
        sum0 = sum1 = (vf){0};
        for (c = 0; c + 2 * LIN_WIDTH <= whole; c += 2 * LIN_WIDTH) {
            vf d0 = vload(in + c) - middle, d1 = vload(in + c + LIN_WIDTH) - middle;
            sum0 = vfma(d0, d0, sum0);
            sum1 = vfma(d1, d1, sum1);
        }
        if (c < whole) {
            vf d = vload(in + c) - middle;
            sum0 = vfma(d, d, sum0);
        }
        if (rest) {
            vf d = LIN_NAME(centred)(in + whole, mean, rest);
            sum1 = vfma(d, d, sum1);
        }
        float rstd = 1.0f / sqrtf(vsum(sum0 + sum1) * share + LIN_NORM_EPS);
        vf scale = vset(rstd);
        for (c = 0; c < whole; c += LIN_WIDTH)
            vstore(out + c, vfma((vload(in + c) - middle) * scale, vload(gamma + c), vload(beta + c)));
        if (rest)
            vstore_n(out + c, vfma((vload_n(in + c, rest) - middle) * scale, vload_n(gamma + c, rest), vload_n(beta + c, rest)),
                     rest);
        if (stats) {
            stats[2 * r] = mean;
            stats[2 * r + 1] = rstd;
        }
    }
}

/* dx of the rows; their sums of dy xhat and dy are added to dgamma and dbeta. With g = dy gamma:
 * dx = residual + rstd (g - mean(g) - xhat mean(g xhat)); residual may be NULL. */
void LIN_NAME(lin_norm_backward)(float *dx, float *dgamma, float *dbeta, const float *dy,
                                 const float *residual, const float *x, const float *stats, const float *gamma, int rows, int C);
void LIN_NAME(lin_norm_backward)(float *dx, float *dgamma, float *dbeta, const float *dy,
                                 const float *residual, const float *x, const float *stats, const float *gamma, int rows, int C)
{
    int whole = C / LIN_WIDTH * LIN_WIDTH, rest = C - whole;
    float share = 1.0f / (float)C;
    for (int r = 0; r < rows; r++) {
        const float *in = x + (size_t)r * (size_t)C, *above = dy + (size_t)r * (size_t)C;
        const float *beside = residual ? residual + (size_t)r * (size_t)C : NULL;
        float *out = dx + (size_t)r * (size_t)C;
        vf mean = vset(stats[2 * r]), rstd = vset(stats[2 * r + 1]), sum_g = {0}, sum_gx = {0};
        for (int c = 0; c < whole; c += LIN_WIDTH) {
            vf up = vload(above + c), xhat = (vload(in + c) - mean) * rstd, g = up * vload(gamma + c);
            sum_g += g;
            sum_gx = vfma(g, xhat, sum_gx);
            vstore(dgamma + c, vfma(up, xhat, vload(dgamma + c)));
            vstore(dbeta + c, up + vload(dbeta + c));
        }
        if (rest) {
            vf up = vload_n(above + whole, rest), xhat = (vload_n(in + whole, rest) - mean) * rstd;
            vf g = up * vload_n(gamma + whole, rest);
            sum_g += g;
            sum_gx = vfma(g, xhat, sum_gx);
            vstore_n(dgamma + whole, vfma(up, xhat, vload_n(dgamma + whole, rest)), rest);
            vstore_n(dbeta + whole, up + vload_n(dbeta + whole, rest), rest);
        }
        vf g_mean = vset(vsum(sum_g) * share), gx_mean = vset(vsum(sum_gx) * share);
        for (int c = 0; c < whole; c += LIN_WIDTH) {
            vf xhat = (vload(in + c) - mean) * rstd, g = vload(above + c) * vload(gamma + c);
            vf d = vrounded((g - g_mean - xhat * gx_mean) * rstd);
            vstore(out + c, beside ? vload(beside + c) + d : d);
        }
        if (rest) {
            vf xhat = (vload_n(in + whole, rest) - mean) * rstd, g = vload_n(above + whole, rest) * vload_n(gamma + whole, rest);
            vf d = vrounded((g - g_mean - xhat * gx_mean) * rstd);
            vstore_n(out + whole, beside ? vload_n(beside + whole, rest) + d : d, rest);
        }
    }
}
