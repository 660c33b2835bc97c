// softmax_naive_body.h - softmax attention of one utterance and head with all scores in memory, once per instruction set.
//
// Each step runs over the whole of p [T, T] before the next begins: the scores, their softmax, the product with the values.
// Panels of the right-hand matrices are packed into scratch.
#include <math.h>

#include "paper/cpu/softmax_attention.h"
#include "paper/cpu/softmax_products.h"

enum { PANEL = 8 * LIN_WIDTH, DEPTH = 128, ROWS_AT_ONCE = 256 };

// p [T, T] = q kᵀ in units of ln 2; causal: only the panels on and below the diagonal.
static void LIN_NAME(naive_scores)(const lin_softmax_head *x, float *p, float *scratch)
{
    for (int j = 0; j < x->T; j += PANEL) {
        const int keys = LIN_NAME(least)(PANEL, x->T - j), first = x->causal ? j : 0;
        const size_t pitch = (size_t)vround(keys);
        LIN_NAME(pack_columns)(scratch, pitch, x->k + (size_t)j * x->stride_k, x->stride_k, keys, x->E,
                               LIN_NAME(query_scale)(x->E));
        LIN_NAME(multiply)(&(LIN_NAME(product)){.out = p + (size_t)first * (size_t)x->T + j,
                                                .a = x->q + (size_t)first * x->stride, .b = scratch, .out_stride = (size_t)x->T,
                                                .a_stride = x->stride, .b_stride = pitch, .rows = x->T - first, .columns = keys,
                                                .inner = x->E});
    }
}

// A row of p: n scores in units of ln 2 become probabilities, the others 0.
LIN_INLINE void LIN_NAME(naive_softmax)(float *p, int n, int T)
{
    vf top = vset(p[0]), sum = {0};
    int whole = n / LIN_WIDTH * LIN_WIDTH, rest = n - whole;
    float last[LIN_WIDTH];
    for (int j = 0; j < whole; j += LIN_WIDTH) top = vmax(vload(p + j), top);
    vstore(last, vset(-INFINITY));
    if (rest) memcpy(last, p + whole, (size_t)rest * sizeof *p);
    const float most = vsum_max(vmax(vload(last), top));
    for (int j = 0; j < whole; j += LIN_WIDTH) {
        const vf power = LIN_NAME(power_of_two)(vload(p + j) - most);
        vstore(p + j, power);
        sum += power;
    }
    const vf end = LIN_NAME(power_of_two)(vload(last) - most); // lanes past the end: 0
    const float scale = 1.0f / vsum(sum + end);
    for (int j = 0; j < whole; j += LIN_WIDTH) vstore(p + j, vload(p + j) * scale);
    if (rest) vstore_n(p + whole, end * scale, rest);
    memset(p + n, 0, (size_t)(T - n) * sizeof *p);
}

/* out [T, E] (by frames, out_stride) = a b with a = p, or, transposed, its transpose, and b [T, E] by frames, times factor. */
static void LIN_NAME(naive_sums)(float *out, size_t out_stride, const lin_softmax_head *x, const float *p, int transposed,
                                 const float *b, size_t b_stride, float factor, float *scratch)
{
    const int T = x->T;
    const size_t Ep = (size_t)vround(x->E);
    for (int f = 0; f < T; f += DEPTH) {
        const int n = LIN_NAME(least)(DEPTH, T - f), from = x->causal && !transposed ? f : 0;
        const int end = x->causal && transposed ? f + n : T; // p is 0 above its diagonal
        LIN_NAME(pack_rows)(scratch, Ep, b + (size_t)f * b_stride, b_stride, n, x->E, factor);
        LIN_NAME(product) product = {.out = out + (size_t)from * out_stride, .out_stride = out_stride, .a_stride = (size_t)T,
                                     .b = scratch, .b_stride = Ep, .rows = end - from, .columns = x->E, .inner = n, .add = f > 0};
        product.a = transposed ? p + (size_t)f * (size_t)T : p + (size_t)from * (size_t)T + f;
        if (transposed && x->causal && f > 0) { // rows that this panel is the first to reach: from zero
            product.rows = f;
            LIN_NAME(multiply_t)(&product);
            product.out += (size_t)f * out_stride;
            product.a += f;
            product.rows = n;
            product.add = 0;
        }
        if (transposed)
            LIN_NAME(multiply_t)(&product);
        else
            LIN_NAME(multiply)(&product);
    }
}

void LIN_NAME(lin_softmax_naive_head_forward)(const lin_softmax_head *head, float *p, float *scratch)
{
    const lin_softmax_head *x = head;
    LIN_NAME(naive_scores)(x, p, scratch);
    for (int i = 0; i < x->T; i++) LIN_NAME(naive_softmax)(p + (size_t)i * (size_t)x->T, x->causal ? i + 1 : x->T, x->T);
    LIN_NAME(naive_sums)(x->y_out, x->width, x, p, 0, x->v, x->stride_k, 1, scratch);
}

// Rows first .. first+n-1 of p become dL/ds = p (dy v - dy y), times 1 / sqrt(E); dp [n, T].
static void LIN_NAME(naive_score_gradients)(const lin_softmax_head *x, float *p, int first, int n, float *scratch)
{
    const float scale = LIN_NAME(gradient_scale)(x->E);
    const int end = x->causal ? first + n : x->T;
    for (int j = 0; j < end; j += PANEL) {
        const int keys = LIN_NAME(least)(PANEL, end - j), from = x->causal && j > first ? j : first;
        const size_t pitch = (size_t)vround(keys);
        float *own = scratch, *v = own + ROWS_AT_ONCE, *dp = v + (size_t)x->E * pitch;
        LIN_NAME(pack_columns)(v, pitch, x->v + (size_t)j * x->stride_k, x->stride_k, keys, x->E, scale);
        for (int i = from; i < first + n; i++) {
            const float *dy = x->dy + (size_t)i * x->width, *y = x->y + (size_t)i * x->width;
            vf sum = {0};
            for (int e = 0; e < x->E; e += LIN_WIDTH) sum = vfma(LIN_NAME(lanes)(dy, e, x->E), LIN_NAME(lanes)(y, e, x->E), sum);
            own[i - from] = vsum(sum) * scale;
        }
        LIN_NAME(multiply)(&(LIN_NAME(product)){.out = dp, .a = x->dy + (size_t)from * x->width, .b = v, .out_stride = pitch,
                                                .a_stride = x->width, .b_stride = pitch, .rows = first + n - from,
                                                .columns = (int)pitch, .inner = x->E});
        for (int i = from; i < first + n; i++)
            for (int c = 0; c < keys; c += LIN_WIDTH) {
                float *at = p + (size_t)(i - first) * (size_t)x->T + j;
                const vf d = vload(dp + (size_t)(i - from) * pitch + c) - own[i - from];
                LIN_NAME(put_lanes)(at, LIN_NAME(lanes)(at, c, keys) * d, c, keys);
            }
    }
}

void LIN_NAME(lin_softmax_naive_head_backward)(const lin_softmax_head *head, float *p, float *scratch)
{
    const lin_softmax_head *x = head;
    LIN_NAME(naive_sums)(x->dv, x->stride_k, x, p, 1, x->dy, x->width, 1, scratch);
    for (int i = 0; i < x->T; i += ROWS_AT_ONCE)
        LIN_NAME(naive_score_gradients)(x, p + (size_t)i * (size_t)x->T, i, LIN_NAME(least)(ROWS_AT_ONCE, x->T - i), scratch);
    LIN_NAME(naive_sums)(x->dq, x->stride, x, p, 0, x->k, x->stride_k, 1, scratch);
    LIN_NAME(naive_sums)(x->dk, x->stride_k, x, p, 1, x->q, x->stride, 1, scratch);
}
