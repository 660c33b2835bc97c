// pooling.c - the last layers of a network of voices, forward and backward, and the loss of its training; see network.h. Plain
// loops over memory of the host: beside the layers below they take no time.
#include <math.h>

#include "model/network.h"

/* Added to the variance of a channel, and to the square of a length, so that no gradient is infinite. */
static const double VARIANCE_FLOOR = 1e-5, LENGTH_FLOOR = 1e-12;

/* The scale of the cosines and the margin of the true voice (Wang et al. 2018, Additive margin softmax; Chung et al. 2020). */
static const double SCALE = 30, MARGIN = 0.2;

static size_t offset_of(int row, int width) { return (size_t)row * (size_t)width; }

static double length_of(const lin_real *x, int n)
{
    double sum = LENGTH_FLOOR;
    for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

// Removes from d its component along x, whose length is given: a function of the direction of x has no gradient along x.
static void make_orthogonal(lin_real *d, const lin_real *x, int n, double length)
{
    double along = 0;
    for (int i = 0; i < n; i++) along += (double)d[i] * (double)x[i];
    along /= length * length;
    for (int i = 0; i < n; i++) d[i] -= (lin_real)(along * (double)x[i]);
}

// Mean and deviation of the T rows of an utterance: pooled [2 C] from x [T, C].
static void pool_forward(lin_real *pooled, const lin_real *x, int T, int C)
{
    for (int c = 0; c < C; c++) {
        double sum = 0, squares = 0;
        for (int t = 0; t < T; t++) sum += (double)x[offset_of(t, C) + (size_t)c];
        const double mean = T ? sum / T : 0;
        for (int t = 0; t < T; t++) {
            const double d = (double)x[offset_of(t, C) + (size_t)c] - mean;
            squares += d * d;
        }
        pooled[c] = (lin_real)mean;
        pooled[C + c] = (lin_real)sqrt((T ? squares / T : 0) + VARIANCE_FLOOR);
    }
}

static void pool_backward(lin_real *dx, const lin_real *d_pooled, const lin_real *pooled, const lin_real *x, int T, int C)
{
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++) {
            const size_t at = offset_of(t, C) + (size_t)c;
            dx[at] = (d_pooled[c] + d_pooled[C + c] * (x[at] - pooled[c]) / pooled[C + c]) / (lin_real)T;
        }
}

void lin_voice_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, const lin_real *x,
                       lin_real *vectors)
{
    const int C = lin_config_width(&w->config), D = w->config.voice, B = batch->out.B, *offsets = batch->out.offsets;
    for (int b = 0; b < B; b++)
        pool_forward(a->pooled + offset_of(b, 2 * C), x + offset_of(offsets[b], C), offsets[b + 1] - offsets[b], C);
    lin_layer_linear(w, exec, vectors, a->pooled, w->params->voice, B, LIN_LINEAR);
    for (int b = 0; b < B; b++) {
        lin_real *vector = vectors + offset_of(b, D);
        const double length = length_of(vector, D);
        for (int i = 0; i < D; i++) vector[i] = (lin_real)((double)vector[i] / length);
        if (!a->for_training) continue;
        a->lengths[b] = (lin_real)length;
        for (int i = 0; i < D; i++) a->vectors[offset_of(b, D) + (size_t)i] = vector[i];
    }
}

void lin_network_voices(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *cosines)
{
    const int V = w->config.outputs, D = w->config.voice, B = batch->out.B, output = w->params->output[0];
    w->ops->linear_forward(exec, cosines, a->vectors, w->packed + w->forward_offset[output], NULL, B, V, D, LIN_LINEAR);
    for (int v = 0; v < V; v++) {
        const double length = length_of(lin_value(w, output) + offset_of(v, D), D);
        for (int b = 0; b < B; b++) cosines[offset_of(b, V) + (size_t)v] /= (lin_real)length;
    }
}

// The cosine of u and W_v is u W_v / |W_v|: its gradient in W_v is u / |W_v| without the part along W_v, and likewise in the
// vector before it got its length.
void lin_voice_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                        const lin_real *d_cosines, const lin_real *x, lin_real *dx, lin_real *gradients)
{
    const int C = lin_config_width(&w->config), D = w->config.voice, V = w->config.outputs, B = batch->out.B,
              output = w->params->output[0], *offsets = batch->out.offsets;
    const lin_real *values = lin_value(w, output);
    lin_real *d_output = lin_gradient(w, gradients, output);
    for (int v = 0; v < V; v++) {
        const double length = length_of(values + offset_of(v, D), D);
        for (int b = 0; b < B; b++) {
            const size_t at = offset_of(b, V) + (size_t)v;
            a->d_cosines[at] = (lin_real)((double)d_cosines[at] / length);
        }
    }
    w->ops->linear_backward_weight(exec, d_output, NULL, a->d_cosines, a->vectors, B, V, D);
    for (int v = 0; v < V; v++) // gradients of earlier batches of the step already have none along W_v
        make_orthogonal(d_output + offset_of(v, D), values + offset_of(v, D), D, length_of(values + offset_of(v, D), D));
    w->ops->linear_forward(exec, a->d_vectors, a->d_cosines, w->packed + w->backward_offset[output], NULL, B, D, V, LIN_LINEAR);
    for (int b = 0; b < B; b++) {
        lin_real *d = a->d_vectors + offset_of(b, D);
        make_orthogonal(d, a->vectors + offset_of(b, D), D, 1);
        for (int i = 0; i < D; i++) d[i] /= a->lengths[b];
    }
    lin_layer_linear_backward(w, exec, a->d_pooled, gradients, a->d_vectors, a->pooled, w->params->voice, B);
    for (int b = 0; b < B; b++) {
        const size_t at = offset_of(offsets[b], C), pooled = offset_of(b, 2 * C);
        pool_backward(dx + at, a->d_pooled + pooled, a->pooled + pooled, x + at, offsets[b + 1] - offsets[b], C);
    }
}

void lin_voice_loss(double *losses, lin_real *d_cosines, const lin_real *cosines, const int *voices, int B, int V, double scale)
{
    for (int b = 0; b < B; b++) {
        const lin_real *cosine = cosines + offset_of(b, V);
        lin_real *d = d_cosines + offset_of(b, V);
        const int own = voices[b];
        // a cosine is at most 1: no sum of exponentials is too large
        double sum = 0;
        const double own_logit = SCALE * ((double)cosine[own] - MARGIN);
        for (int v = 0; v < V; v++) sum += v == own ? 1 : exp(SCALE * (double)cosine[v] - own_logit);
        losses[b] = log(sum);
        for (int v = 0; v < V; v++) {
            const double p = (v == own ? 1 : exp(SCALE * (double)cosine[v] - own_logit)) / sum;
            d[v] = (lin_real)(scale * SCALE * (p - (v == own)));
        }
    }
}
