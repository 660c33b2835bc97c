// The feed-forward block in training. What lies between its two products is four times as wide as the rest of the network, so it
// is kept and moved as bf16 in bf16 precision, together with the operands that the backward pass reads again; and its dropout,
// its gradient and the sums for the gradient of the bias are one pass each.
//
//   hidden    fp32: h [rows, F]    bf16: x [rows, C], h [rows, F]
//   d_hidden  fp32: dh [rows, F]   bf16: dy [rows, C], dh [rows, F]
// A norm may have written x or dy (block_norm_forward, block_norm_backward).
#include "kernels/cuda/linear.h"
#include "kernels/cuda/sums.h"

enum { THREADS = 256, EACH = 8 /* columns of a thread */ };

static int is_narrow(const lin_exec *exec, const void *hidden, int C, int F)
{
    return exec->precision == LIN_PRECISION_BF16 && C % 8 == 0 && F % 8 == 0 && C <= F && lin_cuda_aligned(hidden);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

// h = dropout(relu(h + bias)), eight elements per thread.
static __global__ void __launch_bounds__(THREADS)
    activate(bf16 *h, const float *__restrict__ bias, size_t groups, int across, lin_cuda_mask mask)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= groups) return;
    float v[8];
    load8(v, h + 8 * i);
    const float *b = bias + (i % (size_t)across) * 8;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        v[j] += b[j];
        if (v[j] < 0) v[j] = 0; // a NaN stays
    }
    if (mask.key) {
        const lin_cuda_draw draw = lin_cuda_draw_of(mask);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float *x = v + 4 * half;
            const float4 kept =
                lin_cuda_drop4(make_float4(x[0], x[1], x[2], x[3]), lin_cuda_bits4(draw, 2 * i + (size_t)half), mask);
            x[0] = kept.x, x[1] = kept.y, x[2] = kept.z, x[3] = kept.w;
        }
    }
    store8(h + 8 * i, v);
}

void lin_cuda_feedforward_forward(lin_exec *exec, float *y, float *hidden, const float *x, const float *w1, const float *b1,
                                  const float *w2, const float *b2, int rows, int C, int F, const lin_dropout *dropout)
{
    const size_t count = (size_t)rows * (size_t)F;
    if (rows == 0) return;
    if (!is_narrow(exec, hidden, C, F)) {
        lin_cuda_linear_forward(exec, hidden, x, w1, b1, rows, F, C, LIN_RELU);
        if (dropout->p > 0) lin_cuda_dropout(exec, hidden, hidden, count, dropout);
        lin_cuda_linear_forward(exec, y, hidden, w2, b2, rows, C, F, LIN_LINEAR);
        return;
    }
    bf16 *narrow_x = reinterpret_cast<bf16 *>(hidden), *h = narrow_x + (size_t)rows * (size_t)C;
    if (x) lin_cuda_narrow(exec, narrow_x, x, rows, C);
    lin_cuda_narrow_forward(exec, h, narrow_x, w1, NULL, rows, F, C, 1);
    LIN_LAUNCH(exec, activate, lin_cuda_blocks(count / 8, THREADS), THREADS, 0, h, b1, count / 8, F / 8,
               lin_cuda_mask_of(dropout));
    lin_cuda_narrow_forward(exec, y, h, w2, b2, rows, C, F, 0);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// to = from, or, GATED, gate > 0 ? from * scale : 0 (to may be from); partial [slices, n]: the sums of its columns over each
// slice of rows. n is a multiple of 8.
template <typename To, typename From, int GATED>
static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    pass_and_sum(To *to, const From *from, const To *__restrict__ gate, float *__restrict__ partial, int rows, int n,
                 int rows_each, float scale)
{
    lin_sum_slice<EACH, 1>(partial, rows, n, rows_each, [=](float (&v)[EACH], int row, int column) {
        const size_t at = (size_t)row * (size_t)n + (size_t)column;
        load8(v, from + at);
        if constexpr (GATED) {
            float g[EACH];
            load8(g, gate + at);
#pragma unroll
            for (int i = 0; i < EACH; i++) v[i] = g[i] > 0 ? v[i] * scale : 0;
        }
        store8(to + at, v);
    });
}

template <typename To, typename From, int GATED>
static void run_pass(lin_exec *exec, To *to, float *db, const From *from, const To *gate, int rows, int n, float scale)
{
    const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, n, EACH, 1);
    if (!s.partial) return;
    LIN_LAUNCH(exec, (pass_and_sum<To, From, GATED>), s.grid, s.block, s.shared_bytes, to, from, gate, s.partial, rows, n,
               s.rows_each, scale);
    lin_cuda_fold(exec, s.partial, s.slices, {db, n});
}

void lin_cuda_feedforward_backward(lin_exec *exec, float *dx, float *dw1, float *db1, float *dw2, float *db2, const float *dy,
                                   const float *x, const float *hidden, float *d_hidden, const float *w1, const float *w2,
                                   int rows, int C, int F, const lin_dropout *dropout)
{
    const size_t count = (size_t)rows * (size_t)F;
    const double scale = dropout->p > 0 ? 1 / (1 - dropout->p) : 1;
    if (rows == 0) return;
    if (is_narrow(exec, hidden, C, F)) {
        const bf16 *narrow_x = reinterpret_cast<const bf16 *>(hidden), *h = narrow_x + (size_t)rows * (size_t)C;
        bf16 *narrow_dy = reinterpret_cast<bf16 *>(d_hidden), *dh = narrow_dy + (size_t)rows * (size_t)C;
        if (dy) run_pass<bf16, float, 0>(exec, narrow_dy, db2, dy, NULL, rows, C, 1);
        lin_cuda_narrow_backward_weight(exec, dw2, NULL, narrow_dy, h, rows, C, F);
        lin_cuda_narrow_forward(exec, dh, narrow_dy, w2, NULL, rows, F, C, 1);
        run_pass<bf16, bf16, 1>(exec, dh, db1, dh, h, rows, F, (float)scale);
        lin_cuda_narrow_backward_weight(exec, dw1, NULL, dh, narrow_x, rows, F, C);
        lin_cuda_narrow_forward(exec, dx, dh, w1, NULL, rows, C, F, 0);
        return;
    }
    lin_cuda_linear_backward_weight(exec, dw2, db2, dy, hidden, rows, C, F);
    lin_cuda_linear_forward(exec, d_hidden, dy, w2, NULL, rows, F, C, LIN_LINEAR);
    const int wide = F % 8 == 0 && lin_cuda_aligned(hidden, d_hidden);
    if (wide) run_pass<float, float, 1>(exec, d_hidden, db1, d_hidden, hidden, rows, F, (float)scale);
    else lin_cuda_relu_backward(exec, d_hidden, d_hidden, hidden, count, scale);
    lin_cuda_linear_backward_weight(exec, dw1, wide ? NULL : db1, d_hidden, x, rows, F, C);
    lin_cuda_linear_forward(exec, dx, d_hidden, w1, NULL, rows, C, F, LIN_LINEAR);
}
