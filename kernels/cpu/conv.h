/*
 * conv.h - causal depthwise convolution on LIN_WIDTH columns at a time, once per instruction set. Threads are in conv.c.
 *
 * Every output sums its bias and then its taps in order, oldest first; frames before the start of an utterance take part as zeros,
 * so that the bits are those of a call that was handed a tail of zeros.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

LIN_INLINE vf LIN_NAME(columns)(const float *p, int n) { return n == LIN_WIDTH ? vload(p) : vload_n(p, n); }

LIN_INLINE void LIN_NAME(put_columns)(float *p, vf v, int n)
{
    if (n == LIN_WIDTH)
        vstore(p, v);
    else
        vstore_n(p, v, n);
}

/* Rows first .. first+rows-1 of one utterance; x, y and tail are those of the utterance, tail may be NULL. */
void LIN_NAME(lin_conv_rows)(float *y, const float *x, const float *w, const float *bias, const float *tail, int first, int rows, int C,
                             int K);
void LIN_NAME(lin_conv_rows)(float *y, const float *x, const float *w, const float *bias, const float *tail, int first, int rows, int C,
                             int K)
{
    size_t stride = (size_t)C;
    for (int c = 0; c < C; c += LIN_WIDTH) {
        int n = C - c < LIN_WIDTH ? C - c : LIN_WIDTH, t = first;
        vf b = LIN_NAME(columns)(bias + c, n);
        for (; t < first + rows && t < K - 1; t++) {
            vf sum = b;
            for (int j = 0; j < K; j++) {
                int from = t - K + 1 + j;
                vf past = {0};
                if (from >= 0)
                    past = LIN_NAME(columns)(x + (size_t)from * stride + c, n);
                else if (tail)
                    past = LIN_NAME(columns)(tail + (size_t)(K - 1 + from) * stride + c, n);
                sum = vfma(LIN_NAME(columns)(w + (size_t)j * stride + c, n), past, sum);
            }
            LIN_NAME(put_columns)(y + (size_t)t * stride + c, LIN_NAME(columns)(x + (size_t)t * stride + c, n) + sum, n);
        }
        for (; n == LIN_WIDTH && t + 4 <= first + rows; t += 4) {
            const float *from = x + (size_t)(t - K + 1) * stride + c, *taps = w + c;
            vf sum0 = b, sum1 = b, sum2 = b, sum3 = b;
            for (int j = 0; j < K; j++, from += stride, taps += stride) {
                vf tap = vload(taps);
                sum0 = vfma(tap, vload(from), sum0);
                sum1 = vfma(tap, vload(from + stride), sum1);
                sum2 = vfma(tap, vload(from + 2 * stride), sum2);
                sum3 = vfma(tap, vload(from + 3 * stride), sum3);
            }
            const float *in = x + (size_t)t * stride + c;
            float *out = y + (size_t)t * stride + c;
            vstore(out, vload(in) + sum0);
            vstore(out + stride, vload(in + stride) + sum1);
            vstore(out + 2 * stride, vload(in + 2 * stride) + sum2);
            vstore(out + 3 * stride, vload(in + 3 * stride) + sum3);
        }
        for (; t < first + rows; t++) {
            vf sum = b;
            for (int j = 0; j < K; j++)
                sum = vfma(LIN_NAME(columns)(w + (size_t)j * stride + c, n),
                           LIN_NAME(columns)(x + (size_t)(t - K + 1 + j) * stride + c, n), sum);
            LIN_NAME(put_columns)(y + (size_t)t * stride + c, LIN_NAME(columns)(x + (size_t)t * stride + c, n) + sum, n);
        }
    }
}

/* n <= LIN_WIDTH columns of dx for frames t .. end-1 of an utterance of T: dx[t] = dy[t] + sum_j w[j] dy[t+K-1-j]. */
LIN_INLINE void LIN_NAME(conv_dx)(float *dx, const float *dy, const float *w, int t, int end, int T, int C, int K, int n)
{
    size_t stride = (size_t)C;
    for (; n == LIN_WIDTH && t + 4 <= end && t + 4 + K - 1 <= T; t += 4) {
        const float *later = dy + (size_t)(t + K - 1) * stride, *taps = w;
        vf sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
        for (int j = 0; j < K; j++, later -= stride, taps += stride) {
            vf tap = vload(taps);
            sum0 = vfma(tap, vload(later), sum0);
            sum1 = vfma(tap, vload(later + stride), sum1);
            sum2 = vfma(tap, vload(later + 2 * stride), sum2);
            sum3 = vfma(tap, vload(later + 3 * stride), sum3);
        }
        const float *in = dy + (size_t)t * stride;
        float *out = dx + (size_t)t * stride;
        vstore(out, vload(in) + sum0);
        vstore(out + stride, vload(in + stride) + sum1);
        vstore(out + 2 * stride, vload(in + 2 * stride) + sum2);
        vstore(out + 3 * stride, vload(in + 3 * stride) + sum3);
    }
    for (; t < end; t++) {
        vf sum = {0};
        for (int j = K - 1; j >= 0 && t + K - 1 - j < T; j--)
            sum = vfma(LIN_NAME(columns)(w + (size_t)j * stride, n), LIN_NAME(columns)(dy + (size_t)(t + K - 1 - j) * stride, n), sum);
        LIN_NAME(put_columns)(dx + (size_t)t * stride, LIN_NAME(columns)(dy + (size_t)t * stride, n) + sum, n);
    }
}

enum { LIN_NAME(conv_taps) = 8 };

/* dw[j] of up to conv_taps consecutive taps over frames t0 .. t1-1: += sum_t dy[t] x[t-lag+j]; lag is K-1 less the first tap's number. */
LIN_INLINE void LIN_NAME(conv_dw)(float *dw, const float *dy, const float *x, int t0, int t1, int lag, int taps, int C, int n)
{
    size_t stride = (size_t)C;
    int t = t0;
    vf sums[LIN_NAME(conv_taps)] = {{0}};
    for (; t < t1 && t < lag; t++) { // the first frames, for which some taps reach before the start
        vf up = LIN_NAME(columns)(dy + (size_t)t * stride, n);
        for (int j = 0; j < taps; j++)
            if (t - lag + j >= 0) sums[j] = vfma(up, LIN_NAME(columns)(x + (size_t)(t - lag + j) * stride, n), sums[j]);
    }
    if (taps == LIN_NAME(conv_taps) && n == LIN_WIDTH) {
        for (; t < t1; t++) {
            const float *from = x + (size_t)(t - lag) * stride;
            vf up = vload(dy + (size_t)t * stride);
            LIN_UNROLL
            for (int j = 0; j < LIN_NAME(conv_taps); j++) sums[j] = vfma(up, vload(from + (size_t)j * stride), sums[j]);
        }
    } else {
        for (; t < t1; t++)
            for (int j = 0; j < taps; j++)
                sums[j] = vfma(LIN_NAME(columns)(dy + (size_t)t * stride, n),
                               LIN_NAME(columns)(x + (size_t)(t - lag + j) * stride, n), sums[j]);
    }
    for (int j = 0; j < taps; j++) {
        float *out = dw + (size_t)j * stride;
        LIN_NAME(put_columns)(out, LIN_NAME(columns)(out, n) + sums[j], n);
    }
}

/* dx of frames t0 .. t1-1 of an utterance of T frames, and their part of dw and db; the pointers are those of the utterance. */
void LIN_NAME(lin_conv_backward_rows)(float *dx, float *dw, float *db, const float *dy, const float *x, const float *w, int t0, int t1,
                                      int T, int C, int K);
void LIN_NAME(lin_conv_backward_rows)(float *dx, float *dw, float *db, const float *dy, const float *x, const float *w, int t0, int t1,
                                      int T, int C, int K)
{
    for (int c = 0; c < C; c += LIN_WIDTH) {
        int n = C - c < LIN_WIDTH ? C - c : LIN_WIDTH;
        LIN_NAME(conv_dx)(dx + c, dy + c, w + c, t0, t1, T, C, K, n);
        vf sum = {0};
        for (int t = t0; t < t1; t++) sum += LIN_NAME(columns)(dy + (size_t)t * (size_t)C + c, n);
        LIN_NAME(put_columns)(db + c, LIN_NAME(columns)(db + c, n) + sum, n);
        for (int j = 0; j < K; j += LIN_NAME(conv_taps)) {
            int taps = K - j < LIN_NAME(conv_taps) ? K - j : LIN_NAME(conv_taps);
            LIN_NAME(conv_dw)(dw + (size_t)j * (size_t)C + c, dy + c, x + c, t0, t1, K - 1 - j, taps, C, n);
        }
    }
}
