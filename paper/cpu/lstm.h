/*
 * lstm.h - one frame of one utterance of an LSTM, after the recurrent product, once per instruction set. lstm.c has the order of
 * the frames and the threads.
 *
 * `ahead` is the distance in memory, in elements of h, to the frame that is computed next: its values are prefetched, because it
 * belongs to another utterance, which the hardware does not foresee.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

LIN_INLINE vf LIN_NAME(lstm_sigmoid)(vf x)
{
    vf y = vmax(vset(-87.0f), vmin(vset(87.0f), x));
    vf shifted = vfma(y, vset(-LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER; // e^-x = 2^k e^r, as in vexp
    vf r = vfma(k, vset(0x1.bd0106p-13f), vfma(k, vset(-0x1.63p-1f), -y));
    return 1.0f / (1.0f + (vf)((vu)vexp_reduced(r) + ((vu)shifted << 23)));
}

/* tanh x = (e^2x - 1) / (e^2x - 1 + 2), with e^2x - 1 = 2^k (e^r - 1) + (2^k - 1): accurate near 0 too. From |x| = 10 on it
 * is 1. */
LIN_INLINE vf LIN_NAME(lstm_tanh)(vf x)
{
    vf y = vmax(vset(-20.0f), vmin(vset(20.0f), x + x));
    vf shifted = vfma(y, vset(LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER;
    vf r = vfma(k, vset(0x1.bd0106p-13f), vfma(k, vset(-0x1.63p-1f), y)); // as in vexp
    vf power = (vf)(((vu)shifted << 23) + 0x3F800000u);
    vf top = vfma(power, vexpm1_reduced(r), power - 1.0f);
    return top / (top + 2.0f);
}

// The first n lanes; n is a literal LIN_WIDTH in all vectors but the last of a row.
LIN_INLINE vf LIN_NAME(lstm_get)(const float *p, int n) { return n == LIN_WIDTH ? vload(p) : vload_n(p, n); }

LIN_INLINE void LIN_NAME(lstm_put)(float *p, vf v, int n)
{
    if (n == LIN_WIDTH) vstore(p, v);
    else vstore_n(p, v, n);
}

/* Units u .. u+n-1 of lin_lstm_cell: gates and c, then h. */
LIN_INLINE void LIN_NAME(lstm_units)(float *c, float *gates, float *cs, const float *sums, int U, int u, int n)
{
    vf a[4];
    LIN_UNROLL
    for (int j = 0; j < 4; j++) {
        vf sum = LIN_NAME(lstm_get)(gates + j * U + u, n) + LIN_NAME(lstm_get)(sums + j * U + u, n);
        a[j] = j == 2 ? LIN_NAME(lstm_tanh)(sum) : LIN_NAME(lstm_sigmoid)(sum);
        LIN_NAME(lstm_put)(gates + j * U + u, a[j], n);
    }
    vf cell = vfma(a[1], LIN_NAME(lstm_get)(cs + u, n), a[0] * a[2]);
    LIN_NAME(lstm_put)(cs + u, cell, n);
    LIN_NAME(lstm_put)(c + u, cell, n);
}

LIN_INLINE void LIN_NAME(lstm_output)(float *h, float *hs, const float *cs, const float *o, int u, int n)
{
    vf out = LIN_NAME(lstm_get)(o + u, n) * LIN_NAME(lstm_tanh)(LIN_NAME(lstm_get)(cs + u, n));
    LIN_NAME(lstm_put)(hs + u, out, n);
    LIN_NAME(lstm_put)(h + u, out, n);
}

/* gates [4, U] = their activations, with sums [4, U] = R h added before; c and cs = the new cell from the old cs; h and hs = the
 * output. Two loops, because the latency of a gate and of tanh(c) in one exceeds what a processor can reorder. */
void LIN_NAME(lin_lstm_cell)(float *h, float *c, float *gates, float *hs, float *cs, const float *sums, int U, ptrdiff_t ahead);
void LIN_NAME(lin_lstm_cell)(float *h, float *c, float *gates, float *hs, float *cs, const float *sums, int U, ptrdiff_t ahead)
{
    const int whole = U / LIN_WIDTH * LIN_WIDTH;
    for (int u = 0; u < whole; u += LIN_WIDTH) {
        for (int j = 0; j < 4; j++) __builtin_prefetch(gates + 4 * ahead + j * U + u, 1);
        LIN_NAME(lstm_units)(c, gates, cs, sums, U, u, LIN_WIDTH);
    }
    if (whole < U) LIN_NAME(lstm_units)(c, gates, cs, sums, U, whole, U - whole);
    for (int u = 0; u < whole; u += LIN_WIDTH) LIN_NAME(lstm_output)(h, hs, cs, gates + 3 * U, u, LIN_WIDTH);
    if (whole < U) LIN_NAME(lstm_output)(h, hs, cs, gates + 3 * U, whole, U - whole);
}

/* Units u .. u+n-1 of lin_lstm_cell_backward. */
LIN_INLINE void LIN_NAME(lstm_units_backward)(float *dgates, float *kept, float *dc, const float *dh, const float *sums,
                                              const float *c, const float *c_before, const float *gates, int U, int u, int n)
{
    vf i = LIN_NAME(lstm_get)(gates + u, n), f = LIN_NAME(lstm_get)(gates + U + u, n);
    vf g = LIN_NAME(lstm_get)(gates + 2 * U + u, n), o = LIN_NAME(lstm_get)(gates + 3 * U + u, n);
    vf y = LIN_NAME(lstm_tanh)(LIN_NAME(lstm_get)(c + u, n)),
       up = LIN_NAME(lstm_get)(dh + u, n) + LIN_NAME(lstm_get)(sums + u, n);
    vf before = c_before ? LIN_NAME(lstm_get)(c_before + u, n) : (vf){0};
    vf d = vfma(up * o, 1.0f - y * y, LIN_NAME(lstm_get)(dc + u, n));
    vf out[4] = {d * g * (i * (1.0f - i)), d * before * (f * (1.0f - f)), d * i * (1.0f - g * g), up * y * (o * (1.0f - o))};
    LIN_UNROLL
    for (int j = 0; j < 4; j++) {
        LIN_NAME(lstm_put)(dgates + j * U + u, out[j], n);
        LIN_NAME(lstm_put)(kept + j * U + u, out[j], n);
    }
    LIN_NAME(lstm_put)(dc + u, d * f, n);
}

/* dgates and kept [4, U] from the gates' activations, dh plus sums (the gradient of h), dc (the gradient of c from the frames
 * after, on return that for the frame before), c and the c before (NULL: zeros). */
void LIN_NAME(lin_lstm_cell_backward)(float *dgates, float *kept, float *dc, const float *dh, const float *sums, const float *c,
                                      const float *c_before, const float *gates, int U, ptrdiff_t ahead);
void LIN_NAME(lin_lstm_cell_backward)(float *dgates, float *kept, float *dc, const float *dh, const float *sums, const float *c,
                                      const float *c_before, const float *gates, int U, ptrdiff_t ahead)
{
    const int whole = U / LIN_WIDTH * LIN_WIDTH;
    for (int u = 0; u < whole; u += LIN_WIDTH) {
        for (int j = 0; j < 4; j++) {
            __builtin_prefetch(gates + 4 * ahead + j * U + u);
            __builtin_prefetch(dgates + 4 * ahead + j * U + u, 1);
        }
        __builtin_prefetch(dh + ahead + u);
        if (c_before) __builtin_prefetch(c_before + ahead + u);
        LIN_NAME(lstm_units_backward)(dgates, kept, dc, dh, sums, c, c_before, gates, U, u, LIN_WIDTH);
    }
    if (whole < U) LIN_NAME(lstm_units_backward)(dgates, kept, dc, dh, sums, c, c_before, gates, U, whole, U - whole);
}
