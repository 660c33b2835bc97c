/*
 * denominator.h - the sum over all label sequences of an utterance, once per instruction set. denominator.c has the threads.
 *
 * A state is the last two labels (a, b), and whether the last frame was a blank (B) or b itself (L): [b, a]. Label 0 stands for
 * none before the first. With the trigrams `next`, `again` and `end` (kernels/ops.h) and the probabilities y of a frame:
 *   alpha, frame t included:     B'[b,a] = (B + L)[b,a] y_blank
 *                                L'[c,b] = (L[c,b] + sum_a (B + L)[b,a] next[b,a,c] + (c = b) sum_a B[b,a] again[b,a]) y_c
 *   beta,  frame t not included: both[b,a] = y_blank B'[b,a] + sum_c next[b,a,c] y_c L'[c,b]
 *                                B[b,a] = both[b,a] + again[b,a] y_b L'[b,b]      L[b,a] = both[b,a] + y_b L'[b,a]
 * Each frame's states are divided by their sum, whose logarithms are added.
 */
#include <float.h>
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

// y [n] += x[n] * by
LIN_INLINE void LIN_NAME(add_row)(float *y, const float *x, float by, int n)
{
    const int whole = n / LIN_WIDTH * LIN_WIDTH, rest = n - whole;
    for (int i = 0; i < whole; i += LIN_WIDTH) vstore(y + i, vfma(vload(x + i), vset(by), vload(y + i)));
    if (rest) vstore_n(y + whole, vfma(vload_n(x + whole, rest), vset(by), vload_n(y + whole, rest)), rest);
}

LIN_INLINE float LIN_NAME(dot)(const float *x, const float *y, int n)
{
    const int whole = n / LIN_WIDTH * LIN_WIDTH, rest = n - whole;
    vf sum = {0};
    for (int i = 0; i < whole; i += LIN_WIDTH) sum = vfma(vload(x + i), vload(y + i), sum);
    if (rest) sum = vfma(vload_n(x + whole, rest), vload_n(y + whole, rest), sum);
    return vsum(sum);
}

// states [2, V, V], B then L: divided by their sum, which is returned; 0 if it is 0 or not finite.
LIN_INLINE double LIN_NAME(normalise)(float *states, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)states[i];
    if (!(sum > 0 && sum < INFINITY)) return 0;
    const float inverse = (float)(1 / sum);
    for (int i = 0; i < n; i++) states[i] *= inverse;
    return sum;
}

static double LIN_NAME(forward_frame)(float *now, const float *before, const float *y, const lin_trigrams *q, int V, float *sums)
{
    const size_t S = (size_t)V * (size_t)V;
    for (size_t i = 0; i < S; i++) now[i] = (before[i] + before[S + i]) * y[0];
    for (int c = 0; c < V; c++) now[S + (size_t)c] = 0;
    for (int b = 0; b < V; b++) {
        const float *B = before + (size_t)b * (size_t)V, *L = B + S, *next = q->next + (size_t)b * S;
        memset(sums, 0, (size_t)V * sizeof *sums);
        for (int a = 0; a < V; a++) {
            const float s = B[a] + L[a];
            if (s != 0) LIN_NAME(add_row)(sums, next + (size_t)a * (size_t)V, s, V);
        }
        sums[b] = LIN_NAME(dot)(B, q->again + (size_t)b * (size_t)V, V);
        for (int c = 1; c < V; c++) {
            const size_t at = S + (size_t)c * (size_t)V + (size_t)b;
            now[at] = (before[at] + sums[c]) * y[c];
        }
    }
    return LIN_NAME(normalise)(now, (int)(2 * S));
}

// beta of a frame from that of the next, and the next frame's y.
static double LIN_NAME(backward_frame)(float *now, const float *after, const float *y, const lin_trigrams *q, int V, float *sums)
{
    const size_t S = (size_t)V * (size_t)V;
    for (int b = 0; b < V; b++) {
        const size_t row = (size_t)b * (size_t)V;
        memset(sums, 0, (size_t)V * sizeof *sums);
        for (int c = 1; c < V; c++) {
            const float g = y[c] * after[S + (size_t)c * (size_t)V + (size_t)b];
            if (g != 0 && c != b) LIN_NAME(add_row)(sums, q->back + (row + (size_t)c) * (size_t)V, g, V);
        }
        const float repeated = b ? y[b] * after[S + row + (size_t)b] : 0;
        for (int a = 0; a < V; a++) {
            const size_t at = row + (size_t)a;
            const float both = y[0] * after[at] + sums[a];
            now[at] = both + q->again[at] * repeated;
            now[S + at] = b ? both + y[b] * after[S + at] : 0;
        }
    }
    return LIN_NAME(normalise)(now, (int)(2 * S));
}

// rows: [T + 3, 2, V, V] and 2 V more. Returns ln of the sum, and adds to dlogits (not NULL) scale (share of each label - its
// probability); NaN if it is not positive.
double LIN_NAME(lin_denominator_utterance)(float *dlogits, const float *logp, int T, int V, const lin_trigrams *q, float scale,
                                           float *rows);
double LIN_NAME(lin_denominator_utterance)(float *dlogits, const float *logp, int T, int V, const lin_trigrams *q, float scale,
                                           float *rows)
{
    const size_t S = (size_t)V * (size_t)V, pitch = 2 * S;
    float *beta[2] = {rows + (size_t)(T + 1) * pitch, rows + (size_t)(T + 2) * pitch};
    float *y = rows + (size_t)(T + 3) * pitch, *sums = y + V;
    double total = 0, last = 0;
    memset(rows, 0, pitch * sizeof *rows);
    rows[0] = 1; // nothing yet: as after a blank
    for (int t = 0; t < T; t++) {
        for (int v = 0; v < V; v++) y[v] = expf(logp[(size_t)t * (size_t)V + (size_t)v]);
        const double sum = LIN_NAME(forward_frame)(rows + (size_t)(t + 1) * pitch, rows + (size_t)t * pitch, y, q, V, sums);
        if (sum == 0) return NAN;
        total += log(sum);
    }
    for (size_t i = 0; i < S; i++) {
        last += (double)(rows[(size_t)T * pitch + i] + rows[(size_t)T * pitch + S + i]) * (double)q->end[i];
        beta[0][i] = beta[0][S + i] = q->end[i];
    }
    if (!(last > 0)) return NAN;
    for (int t = T; t-- > 0 && dlogits;) {
        const float *alpha = rows + (size_t)(t + 1) * pitch, *b = beta[(T - 1 - t) & 1];
        float *out = dlogits + (size_t)t * (size_t)V;
        float share = 0, whole = 0;
        for (int v = 0; v < V; v++) y[v] = expf(logp[(size_t)t * (size_t)V + (size_t)v]);
        for (int v = 0; v < V; v++) share += LIN_NAME(dot)(alpha + (size_t)v * (size_t)V, b + (size_t)v * (size_t)V, V);
        sums[0] = share;
        for (int v = 1; v < V; v++)
            sums[v] = LIN_NAME(dot)(alpha + S + (size_t)v * (size_t)V, b + S + (size_t)v * (size_t)V, V);
        for (int v = 0; v < V; v++) whole += sums[v];
        if (!(whole >= FLT_MIN)) return NAN; // too small for float: shares have lost bits, or are missing
        for (int v = 0; v < V; v++) out[v] += scale * (sums[v] / whole - y[v]);
        if (t && LIN_NAME(backward_frame)(beta[(T - t) & 1], b, y, q, V, sums) == 0) return NAN;
    }
    return total + log(last);
}
