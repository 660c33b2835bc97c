// Linear layers, layer norm, dropout and what else stands between the linear layers.
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/rng.h"

#define LAYER_NORM_EPS 1e-5

size_t lin_ref_weight_size(int n, int k) { return (size_t)n * (size_t)k; }

void lin_ref_weight_pack(lin_exec *exec, double *packed, const double *w, int n, int k)
{
    (void)exec;
    for (size_t i = 0; i < (size_t)n * (size_t)k; i++) packed[i] = w[i];
}

void lin_ref_weight_pack_transposed(lin_exec *exec, double *packed, const double *w, int n, int k)
{
    (void)exec;
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t j = 0; j < (size_t)k; j++) packed[j * (size_t)n + i] = w[i * (size_t)k + j];
}

void lin_ref_linear_forward(lin_exec *exec, double *y, const double *x, const double *packed, const double *bias, int rows, int n,
                            int k, lin_activation act)
{
    (void)exec;
    size_t N = (size_t)n, K = (size_t)k;
    for (size_t r = 0; r < (size_t)rows; r++)
        for (size_t i = 0; i < N; i++) {
            double sum = 0;
            for (size_t j = 0; j < K; j++) sum += x[r * K + j] * packed[i * K + j];
            if (bias) sum += bias[i];
            y[r * N + i] = act == LIN_RELU && sum < 0 ? 0 : sum;
        }
}

void lin_ref_linear_backward_weight(lin_exec *exec, double *dw, double *db, const double *dy, const double *x, int rows, int n,
                                    int k)
{
    (void)exec;
    size_t N = (size_t)n, K = (size_t)k;
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < K; j++) {
            double sum = 0;
            for (size_t r = 0; r < (size_t)rows; r++) sum += dy[r * N + i] * x[r * K + j];
            dw[i * K + j] += sum;
        }
        if (!db) continue;
        double sum = 0;
        for (size_t r = 0; r < (size_t)rows; r++) sum += dy[r * N + i];
        db[i] += sum;
    }
}

void lin_ref_layer_norm_forward(lin_exec *exec, double *y, double *stats, const double *x, const double *gamma, const double *beta,
                                int rows, int C)
{
    (void)exec;
    for (size_t r = 0; r < (size_t)rows; r++) {
        const double *in = x + r * (size_t)C;
        double *out = y + r * (size_t)C, mean = 0, variance = 0;
        for (int c = 0; c < C; c++) mean += in[c] / C;
        for (int c = 0; c < C; c++) variance += (in[c] - mean) * (in[c] - mean) / C;
        double rstd = 1 / sqrt(variance + LAYER_NORM_EPS);
        for (int c = 0; c < C; c++) out[c] = (in[c] - mean) * rstd * gamma[c] + beta[c];
        if (stats) {
            stats[2 * r] = mean;
            stats[2 * r + 1] = rstd;
        }
    }
}

void lin_ref_layer_norm_backward(lin_exec *exec, double *dx, double *dgamma, double *dbeta, const double *dy, const double *x,
                                 const double *stats, const double *gamma, int rows, int C)
{
    (void)exec;
    for (size_t r = 0; r < (size_t)rows; r++) {
        const double *in = x + r * (size_t)C, *up = dy + r * (size_t)C;
        double mean = stats[2 * r], rstd = stats[2 * r + 1];
        // With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)), from d rstd/dx_c = -rstd^2 h_c / C.
        double mean_g = 0, mean_gh = 0;
        for (int c = 0; c < C; c++) {
            double h = (in[c] - mean) * rstd, g = up[c] * gamma[c];
            mean_g += g / C;
            mean_gh += g * h / C;
            dgamma[c] += up[c] * h;
            dbeta[c] += up[c];
        }
        for (int c = 0; c < C; c++) {
            double h = (in[c] - mean) * rstd, g = up[c] * gamma[c];
            dx[r * (size_t)C + (size_t)c] = rstd * (g - mean_g - h * mean_gh);
        }
    }
}

void lin_ref_add(lin_exec *exec, double *y, const double *x, size_t count)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) y[i] += x[i];
}

// What element i is multiplied by: 0 if it is dropped, else 1/(1-p).
static double dropout_factor(size_t i, double p, uint64_t key)
{
    if (p == 0) return 1;
    uint64_t lane = lin_random_bits(key, i / 4) >> 16 * (i % 4) & 0xFFFF;
    return (double)lane >= round(p * 65536) ? 1 / (1 - p) : 0;
}

// A dropped element is 0 whatever it was: written as a choice, since 0 * infinity is not 0.
static double dropped(double x, size_t i, double p, uint64_t key)
{
    double factor = dropout_factor(i, p, key);
    return factor == 0 ? 0 : x * factor;
}

void lin_ref_dropout(lin_exec *exec, double *y, const double *x, size_t count, double p, uint64_t key)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) y[i] = dropped(x[i], i, p, key);
}

void lin_ref_add_dropout(lin_exec *exec, double *y, const double *x, const double *r, size_t count, double p, uint64_t key)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) y[i] = x[i] + dropped(r[i], i, p, key);
}

void lin_ref_relu_backward(lin_exec *exec, double *dx, const double *dy, const double *y, size_t count, double scale)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) dx[i] = y[i] > 0 ? dy[i] * scale : 0;
}

void lin_ref_stack_frames(lin_exec *exec, double *y, const double *x, const double *mean, const double *istd, const int *in_offsets,
                          const int *out_offsets, int B, int D, int stack, int ahead)
{
    (void)exec;
    for (int b = 0; b < B; b++) {
        int frames = in_offsets[b + 1] - in_offsets[b], width = stack + ahead;
        for (int t = 0; t < out_offsets[b + 1] - out_offsets[b]; t++)
            for (int s = 0; s < width; s++) {
                int from = t * stack + s < frames ? t * stack + s : frames - 1;
                const double *in = x + (size_t)(in_offsets[b] + from) * (size_t)D;
                double *out = y + ((size_t)(out_offsets[b] + t) * (size_t)width + (size_t)s) * (size_t)D;
                for (int d = 0; d < D; d++) out[d] = (in[d] - mean[d]) * istd[d];
            }
    }
}

void lin_ref_add_sinusoid(lin_exec *exec, double *x, const int *offsets, int B, int C)
{
    (void)exec;
    for (int b = 0; b < B; b++)
        for (int t = 0; t < offsets[b + 1] - offsets[b]; t++) {
            double *row = x + (size_t)(offsets[b] + t) * (size_t)C;
            for (int i = 0; i < C / 2; i++) {
                double a = t / pow(10000, 2.0 * i / C);
                row[2 * i] += sin(a);
                row[2 * i + 1] += cos(a);
            }
        }
}
