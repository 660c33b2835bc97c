// LSTM (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000) frame by frame, and backpropagation through time.
#include <math.h>

#include "tests/kernels/ref/ref.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static size_t direction_size(int n, int k) { return (lin_ref_weight_size(n, k) + 15) / 16 * 16; }

// One direction of one utterance. Frames are counted in the order in which it visits them: frame s is row `first` + s `step`.
typedef struct pass {
    size_t U;
    int T, first, step, D, d; // D directions, this is number d
} pass;

static pass pass_of(const lin_segments *segments, int b, int d, int D, int U)
{
    const int begin = segments->offsets[b], end = segments->offsets[b + 1];
    return (pass){.U = (size_t)U, .T = end - begin, .first = d ? end - 1 : begin, .step = d ? -1 : 1, .D = D, .d = d};
}

// Where the values of frame s begin in a matrix [rows, directions, width U].
static size_t at_frame(const pass *p, int s, size_t width)
{
    return ((size_t)(p->first + s * p->step) * (size_t)p->D + (size_t)p->d) * width * p->U;
}

static void forward_frame(double *h, double *c, double *gates, const double *R, const double *h_before, const double *c_before,
                          size_t U)
{
    for (size_t j = 0; j < 4 * U; j++) {
        double sum = gates[j];
        for (size_t u = 0; h_before && u < U; u++) sum += R[j * U + u] * h_before[u];
        gates[j] = j / U == 2 ? tanh(sum) : sigmoid(sum);
    }
    for (size_t u = 0; u < U; u++) {
        const double i = gates[u], f = gates[U + u], g = gates[2 * U + u], o = gates[3 * U + u];
        c[u] = f * (c_before ? c_before[u] : 0) + i * g;
        h[u] = o * tanh(c[u]);
    }
}

void lin_ref_lstm_forward(lin_exec *exec, double *h, double *cells, double *gates, const double *packed,
                          const lin_segments *segments, int U, int directions, double *const *states, size_t at)
{
    (void)exec;
    for (int b = 0; b < segments->B; b++)
        for (int d = 0; d < directions; d++) {
            const pass p = pass_of(segments, b, d, directions, U);
            double *state = directions == 1 && states && states[b] ? states[b] + at : NULL;
            const double *h_before = state, *c_before = state ? state + U : NULL;
            for (int s = 0; s < p.T; s++) {
                double *h_now = h + at_frame(&p, s, 1), *c_now = cells + at_frame(&p, s, 1);
                forward_frame(h_now, c_now, gates + at_frame(&p, s, 4), packed + (size_t)d * direction_size(4 * U, U), h_before,
                              c_before, p.U);
                h_before = h_now;
                c_before = c_now;
            }
            for (int u = 0; state && p.T > 0 && u < U; u++) {
                state[u] = h_before[u];
                state[U + u] = c_before[u];
            }
        }
}

// dgates of a frame from dh, the gradient of its h, and dc, that of its c, which becomes that of the c before.
static void backward_frame(double *dgates, double *dc, const double *dh, const double *c, const double *c_before,
                           const double *gates, size_t U)
{
    for (size_t u = 0; u < U; u++) {
        const double i = gates[u], f = gates[U + u], g = gates[2 * U + u], o = gates[3 * U + u], y = tanh(c[u]);
        dc[u] += dh[u] * o * (1 - y * y);
        dgates[u] = dc[u] * g * i * (1 - i);
        dgates[U + u] = dc[u] * (c_before ? c_before[u] : 0) * f * (1 - f);
        dgates[2 * U + u] = dc[u] * i * (1 - g * g);
        dgates[3 * U + u] = dh[u] * y * o * (1 - o);
        dc[u] *= f;
    }
}

// up = the gradient of h of frame s: dh, and what comes from the gates of the frame after it. Rt [U, 4U].
static void gradient_of_h(double *up, const double *dh, const double *dgates, const double *Rt, const pass *p, int s)
{
    const double *after = s + 1 < p->T ? dgates + at_frame(p, s + 1, 4) : NULL;
    for (size_t u = 0; u < p->U; u++) {
        up[u] = dh[at_frame(p, s, 1) + u];
        for (size_t j = 0; after && j < 4 * p->U; j++) up[u] += Rt[u * 4 * p->U + j] * after[j];
    }
}

void lin_ref_lstm_backward(lin_exec *exec, double *dgates, double *dR, const double *dh, const double *h, const double *cells,
                           const double *gates, const double *packed, const lin_segments *segments, int U, int directions)
{
    const size_t width = (size_t)U;
    double *dc = lin_ref_scratch(exec, 2 * width);
    for (int b = 0; b < segments->B; b++)
        for (int d = 0; d < directions; d++) {
            const pass p = pass_of(segments, b, d, directions, U);
            double *up = dc + width, *dw = dR + (size_t)d * 4 * width * width;
            for (size_t u = 0; u < width; u++) dc[u] = 0;
            for (int s = p.T - 1; s >= 0; s--) {
                const size_t wide = at_frame(&p, s, 4), now = at_frame(&p, s, 1), before = s > 0 ? at_frame(&p, s - 1, 1) : 0;
                gradient_of_h(up, dh, dgates, packed + (size_t)d * direction_size(U, 4 * U), &p, s);
                backward_frame(dgates + wide, dc, up, cells + now, s > 0 ? cells + before : NULL, gates + wide, width);
                for (size_t i = 0; s > 0 && i < 4 * width * width; i++) dw[i] += dgates[wide + i / width] * h[before + i % width];
            }
        }
}
