// Linear layers, layer norm, dropout and the other operations between the linear layers.
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "tests/kernels/ref/ref.h"

#define LAYER_NORM_EPS 1e-5

size_t lin_ref_weight_size(int n, int k) { return (size_t)n * (size_t)k; }

void lin_ref_weights_pack(lin_exec *exec, double *packed, const double *values, const lin_packing *items, int n_items)
{
    (void)exec;
    for (const lin_packing *item = items; item < items + n_items; item++) {
        const double *w = values + item->from;
        double *to = packed + item->to;
        size_t n = (size_t)item->n, k = (size_t)item->k;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < k; j++) to[item->transposed ? j * n + i : i * k + j] = w[i * k + j];
    }
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

void lin_ref_layer_norm_forward(lin_exec *exec, double *y, double *stats, const double *x, const double *gamma,
                                const double *beta, int rows, int C)
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

// The factor of element i: 0 if it is dropped, else 1/(1-p).
static double dropout_factor(size_t i, const lin_dropout *d)
{
    if (!d || d->p == 0) return 1;
    if (d->width) i += (size_t)(d->key[1] * d->width);
    uint64_t lane = lin_random_bits(lin_random_key(*d->key, d->site), i / 4) >> 16 * (i % 4) & 0xFFFF;
    return (double)lane >= round(d->p * 65536) ? 1 / (1 - d->p) : 0;
}

// A dropped element is 0 whatever its value: a choice and not a product, since 0 * infinity is not 0.
static double kept(double x, size_t i, const lin_dropout *d)
{
    double factor = dropout_factor(i, d);
    return factor == 0 ? 0 : x * factor;
}

void lin_ref_dropout(lin_exec *exec, double *y, const double *x, size_t count, const lin_dropout *dropout)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) y[i] = kept(x[i], i, dropout);
}

void lin_ref_add_dropout(lin_exec *exec, double *y, const double *x, const double *r, size_t count, const lin_dropout *dropout)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) y[i] = x[i] + kept(r[i], i, dropout);
}

void lin_ref_add_dropout_norm_forward(lin_exec *exec, void *operand, double *sum, double *y, double *stats, const double *x,
                                      const double *r, const double *gamma, const double *beta, int rows, int C,
                                      const lin_dropout *dropout)
{
    (void)operand;
    lin_ref_add_dropout(exec, sum, x, r, (size_t)rows * (size_t)C, dropout);
    lin_ref_layer_norm_forward(exec, y, stats, sum, gamma, beta, rows, C);
}

void lin_ref_layer_norm_backward(lin_exec *exec, void *operand, double *dx, double *dropped, double *dgamma, double *dbeta,
                                 double *db, const double *dy, const double *more, const double *residual, const double *x,
                                 const double *stats, const double *gamma, int rows, int C, const lin_dropout *dropout)
{
    if (more) { // the sum lies in dx, which may also be dy or more
        for (size_t i = 0; i < (size_t)rows * (size_t)C; i++) dx[i] = dy[i] + more[i];
        lin_ref_layer_norm_backward(exec, operand, dx, dropped, dgamma, dbeta, db, dx, NULL, residual, x, stats, gamma, rows, C,
                                    dropout);
        return;
    }
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
            size_t i = r * (size_t)C + (size_t)c;
            double h = (in[c] - mean) * rstd, g = up[c] * gamma[c];
            dx[i] = (residual ? residual[i] : 0) + rstd * (g - mean_g - h * mean_gh);
            if (dropped) dropped[i] = kept(dx[i], i, dropout);
            if (db) db[c] += dropped ? dropped[i] : dx[i];
        }
    }
}

void lin_ref_relu_backward(lin_exec *exec, double *dx, const double *dy, const double *y, size_t count, double scale)
{
    (void)exec;
    for (size_t i = 0; i < count; i++) dx[i] = y[i] > 0 ? dy[i] * scale : 0;
}

void lin_ref_stack_frames(lin_exec *exec, double *y, const double *x, const double *mean, const double *istd,
                          const lin_segments *in_segments, const lin_segments *out_segments, int D, int stack, int ahead)
{
    (void)exec;
    const int *in_offsets = in_segments->offsets, *out_offsets = out_segments->offsets;
    for (int b = 0; b < in_segments->B; b++) {
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

void lin_ref_add_sinusoid(lin_exec *exec, double *x, const lin_segments *segments, int C, double *const *states, size_t at)
{
    (void)exec;
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++) {
        double *before = states && states[b] ? states[b] + at : NULL;
        const double first = before ? *before : 0;
        const int T = offsets[b + 1] - offsets[b];
        for (int t = 0; t < T; t++) {
            double *row = x + (size_t)(offsets[b] + t) * (size_t)C;
            for (int i = 0; i < C / 2; i++) {
                double a = (first + t) / pow(10000, 2.0 * i / C);
                row[2 * i] += sin(a);
                row[2 * i + 1] += cos(a);
            }
        }
        if (before) *before = fmin(*before + T, 1 << 24);
    }
}

static size_t token_of(const double *x, int D, int n)
{
    double sum = 0;
    for (int d = 0; d < D; d++) sum += x[d];
    return (size_t)fmin(fmax(floor(sum + 0.5), 0), n - 1);
}

void lin_ref_embed_forward(lin_exec *exec, double *y, const double *x, const double *table, int rows, int D, int n, int C)
{
    (void)exec;
    for (int r = 0; r < rows; r++, x += D, y += C) memcpy(y, table + token_of(x, D, n) * (size_t)C, (size_t)C * sizeof *y);
}

void lin_ref_embed_backward(lin_exec *exec, double *dtable, const double *dy, const double *x, int rows, int D, int n, int C)
{
    (void)exec;
    for (int r = 0; r < rows; r++, x += D, dy += C) {
        double *to = dtable + token_of(x, D, n) * (size_t)C;
        for (int c = 0; c < C; c++) to[c] += dy[c];
    }
}
