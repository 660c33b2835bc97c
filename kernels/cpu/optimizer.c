// optimizer.c - the optimiser's passes over all parameters: one work item per tensor.
#include <math.h>

#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(double, lin_sum_squares_span, (const float *x, size_t count));
LIN_DISPATCH_DECLARE(void, lin_adam_span, (float *p, const float *grad, float *m, float *v, size_t count, double scale,
                                           double decay, const lin_adam_step *step));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

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

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { SPAN = 16384 }; // elements whose squares are summed before they are added to the tensor's total

typedef struct optimizer_job {
    double *norms;
    float *p, *m, *v;
    const float *grad;
    const size_t *offsets;
    const double *scale;
    const unsigned char *decay;
    const lin_adam_step *step;
} optimizer_job;

static void squares_piece(void *context, int i, int thread)
{
    const optimizer_job *job = context;
    (void)thread;
    double total = 0;
    for (size_t at = job->offsets[i]; at < job->offsets[i + 1]; at += SPAN) {
        size_t left = job->offsets[i + 1] - at;
        total += LIN_DISPATCH(lin_sum_squares_span)(job->grad + at, left < SPAN ? left : SPAN);
    }
    job->norms[i] = total;
}

void lin_cpu_sum_squares(lin_exec *exec, double *norms, const float *x, const lin_tensors *tensors)
{
    optimizer_job job = {.norms = norms, .grad = x, .offsets = tensors->offsets};
    lin_pool_run(exec->pool, tensors->n, squares_piece, &job);
}

void lin_cpu_clip(lin_exec *exec, double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor)
{
    (void)exec;
    if (tally->bad) return;
    double total = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(norms[i])) {
            tally->bad = LIN_BAD_GRADIENT;
            tally->bad_index = i;
            return;
        }
        total += norms[i];
    }
    for (int i = 0; i < n; i++) {
        const double size = sqrt(per_tensor ? norms[i] : total);
        scale[i] = most > 0 && size > most ? most / size : 1;
    }
    tally->norm = sqrt(total);
    tally->steps++;
}

static void adam_piece(void *context, int i, int thread)
{
    const optimizer_job *job = context;
    (void)thread;
    size_t at = job->offsets[i];
    LIN_DISPATCH(lin_adam_span)(job->p + at, job->grad + at, job->m + at, job->v + at, job->offsets[i + 1] - at, job->scale[i],
                                job->decay[i] ? job->step->weight_decay : 0, job->step);
}

void lin_cpu_adam(lin_exec *exec, float *p, const float *grad, float *m, float *v, const lin_tensors *tensors,
                  const double *scale, const lin_adam_step *step, const lin_tally *tally)
{
    optimizer_job job = {.p = p, .m = m, .v = v, .grad = grad, .offsets = tensors->offsets, .scale = scale,
                         .decay = tensors->decay, .step = step};
    if (!tally || !tally->bad) lin_pool_run(exec->pool, tensors->n, adam_piece, &job);
}
#endif
