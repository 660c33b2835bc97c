// Norms of gradients and the step of Adam and RAdam; the formula is given at lin_adam_step in kernels/ops.h.
#include <math.h>

#include "tests/kernels/ref/ref.h"

void lin_ref_sum_squares(lin_exec *exec, double *norms, const double *x, const lin_tensors *tensors)
{
    (void)exec;
    for (int i = 0; i < tensors->n; i++) {
        norms[i] = 0;
        for (size_t j = tensors->offsets[i]; j < tensors->offsets[i + 1]; j++) norms[i] += x[j] * x[j];
    }
}

void lin_ref_clip(lin_exec *exec, double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor)
{
    (void)exec;
    double total = 0;
    if (tally->bad) return;
    for (int i = 0; i < n; i++) {
        if (!isfinite(norms[i])) {
            tally->bad = LIN_BAD_GRADIENT;
            tally->bad_index = i;
            return;
        }
        total += norms[i];
    }
    tally->norm = sqrt(total);
    tally->steps++;
    for (int i = 0; i < n; i++) {
        double size = sqrt(per_tensor ? norms[i] : total);
        scale[i] = most > 0 && size > most ? most / size : 1;
    }
}

void lin_ref_adam(lin_exec *exec, double *p, const double *grad, double *m, double *v, const lin_tensors *tensors,
                  const double *scale, const lin_adam_step *step, const lin_tally *tally)
{
    (void)exec;
    if (tally && tally->bad) return;
    for (int i = 0; i < tensors->n; i++) {
        double weight_decay = tensors->decay[i] ? step->weight_decay : 0;
        for (size_t j = tensors->offsets[i]; j < tensors->offsets[i + 1]; j++) {
            double g = scale[i] * grad[j];
            if (!step->decoupled) g += weight_decay * p[j];
            m[j] = step->beta1 * m[j] + (1 - step->beta1) * g;
            v[j] = step->beta2 * v[j] + (1 - step->beta2) * g * g;
            if (step->decoupled) p[j] -= step->lr * weight_decay * p[j];
            if (step->adaptive)
                p[j] -= step->step_size * m[j] / (sqrt(v[j]) * step->v_scale + step->eps);
            else
                p[j] -= step->step_size * m[j];
        }
    }
}
