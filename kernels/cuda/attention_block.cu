// The attention block in training: the products around linear attention, and attention itself. In bf16 precision the operands of
// the products are written as bf16 where they arise, once, and are the operands of the gradients of the weights too; the gradient
// of q, k and v, three times as wide as the rest, is in memory as bf16 only.
//
//   operands  bf16: x [rows, C], y [rows, C]
//   d_qkv     fp32: dqkv [rows, 3C]   bf16: dy [rows, C], dqkv [rows, 3C]
// A norm may have written x or dy (block_norm_forward, block_norm_backward).
#include "kernels/cuda/attention.h"

static int is_narrow(const lin_exec *exec, const void *operands, int C, int E)
{
    return exec->precision == LIN_PRECISION_BF16 && operands && C % 8 == 0 && E % 2 == 0 && lin_cuda_aligned(operands);
}

void lin_cuda_attention_block_forward(lin_exec *exec, float *out, float *qkv, float *y, float *operands, const float *x,
                                      const float *wqkv, const float *bqkv, const float *wout, const float *bout,
                                      const lin_segments *segments, int H, int E, int causal)
{
    const int rows = segments->rows, C = H * E;
    if (rows == 0) return;
    if (!is_narrow(exec, operands, C, E)) {
        lin_cuda_linear_forward(exec, qkv, x, wqkv, bqkv, rows, 3 * C, C, LIN_LINEAR);
        lin_cuda_attention_forward(exec, y, qkv, segments, H, E, causal, NULL, 0);
        lin_cuda_linear_forward(exec, out, y, wout, bout, rows, C, C, LIN_LINEAR);
        return;
    }
    bf16 *narrow_x = reinterpret_cast<bf16 *>(operands), *narrow_y = narrow_x + (size_t)rows * (size_t)C;
    if (x) lin_cuda_narrow(exec, narrow_x, x, rows, C);
    lin_cuda_narrow_forward(exec, qkv, narrow_x, wqkv, bqkv, rows, 3 * C, C, 0);
    if (!lin_attention_forward_narrow(exec, y, narrow_y, qkv, segments, H, E, causal)) {
        lin_cuda_attention_forward(exec, y, qkv, segments, H, E, causal, NULL, 0);
        lin_cuda_narrow(exec, narrow_y, y, rows, C);
    }
    lin_cuda_narrow_forward(exec, out, narrow_y, wout, bout, rows, C, C, 0);
}

void lin_cuda_attention_block_backward(lin_exec *exec, float *dx, float *dwqkv, float *dbqkv, float *dwout, const float *dy,
                                       const float *x, const float *qkv, const float *y, const float *operands, float *d_qkv,
                                       const float *wqkv, const float *wout, const lin_segments *segments, int H, int E,
                                       int causal)
{
    const int rows = segments->rows, C = H * E, narrow = is_narrow(exec, operands, C, E);
    const size_t count = (size_t)rows * (size_t)C;
    const bf16 *narrow_x = reinterpret_cast<const bf16 *>(operands);
    bf16 *narrow_dy = reinterpret_cast<bf16 *>(d_qkv), *dqkv = narrow_dy + count;
    if (rows == 0) return;
    // dx is the gradient of y at first.
    if (narrow) {
        if (dy) lin_cuda_narrow(exec, narrow_dy, dy, rows, C);
        lin_cuda_narrow_backward_weight(exec, dwout, NULL, narrow_dy, narrow_x + count, rows, C, C);
        lin_cuda_narrow_forward(exec, dx, narrow_dy, wout, NULL, rows, C, C, 0);
    } else {
        lin_cuda_linear_backward_weight(exec, dwout, NULL, dy, y, rows, C, C);
        lin_cuda_linear_forward(exec, dx, dy, wout, NULL, rows, C, C, LIN_LINEAR);
    }
    if (narrow && lin_attention_backward_narrow(exec, dqkv, dx, qkv, y, segments, H, E, causal)) {
        lin_cuda_narrow_backward_weight(exec, dwqkv, dbqkv, dqkv, narrow_x, rows, 3 * C, C);
        lin_cuda_narrow_forward(exec, dx, dqkv, wqkv, NULL, rows, C, 3 * C, 0);
    } else {
        lin_cuda_attention_backward(exec, d_qkv, dx, qkv, y, segments, H, E, causal);
        lin_cuda_linear_backward_weight(exec, dwqkv, dbqkv, d_qkv, x, rows, 3 * C, C);
        lin_cuda_linear_forward(exec, dx, d_qkv, wqkv, NULL, rows, C, 3 * C, LIN_LINEAR);
    }
}
