// optimizer.h - the step of the optimiser on a span of one tensor, once per instruction set. optimizer.c has the threads.
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

double LIN_NAME(lin_sum_squares_span)(const float *x, size_t count);
double LIN_NAME(lin_sum_squares_span)(const float *x, size_t count)
{
    double sums[16] = {0}, total = 0;
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int j = 0; j < 16; j++) sums[j] += (double)x[i + (size_t)j] * (double)x[i + (size_t)j];
    for (; i < count; i++) sums[0] += (double)x[i] * (double)x[i];
    for (int j = 0; j < 16; j++) total += sums[j];
    return total;
}

/* One step; scale multiplies the gradient, decay is 0 if the tensor has none. See lin_adam_step. */
void LIN_NAME(lin_adam_span)(float *p, const float *grad, float *m, float *v, size_t count, double scale, double decay,
                             const lin_adam_step *step);
void LIN_NAME(lin_adam_span)(float *p, const float *grad, float *m, float *v, size_t count, double scale, double decay,
                             const lin_adam_step *step)
{
    float b1 = (float)step->beta1, b2 = (float)step->beta2, c1 = (float)(1 - step->beta1), c2 = (float)(1 - step->beta2);
    float factor = (float)scale, l2 = step->decoupled ? 0.0f : (float)decay, eps = (float)step->eps;
    float shrink = step->decoupled ? (float)(1 - step->lr * decay) : 1.0f, rate = (float)step->step_size;
    float v_scale = (float)step->v_scale;
    for (size_t i = 0; i < count; i++) {
        float g = factor * grad[i] + l2 * p[i];
        float first = b1 * m[i] + c1 * g, second = b2 * v[i] + c2 * g * g;
        m[i] = first;
        v[i] = second;
        float change = step->adaptive ? first / (sqrtf(second) * v_scale + eps) : first;
        p[i] = shrink * p[i] - rate * change;
    }
}
