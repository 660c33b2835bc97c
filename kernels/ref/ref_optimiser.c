// Norms of gradients and the step of Adam and RAdam; the formula stands at lin_adam_step in kernels/ops.h.
#include <math.h>

#include "kernels/ref/ref.h"

void lin_ref_sum_squares(lin_exec *exec, double *norms, const double *x, const size_t *offsets, int n_tensors)
{
    (void)exec;
    for (int i = 0; i < n_tensors; i++) {
        norms[i] = 0;
        for (size_t j = offsets[i]; j < offsets[i + 1]; j++) norms[i] += x[j] * x[j];
    }
}

void lin_ref_adam(lin_exec *exec, double *p, const double *grad, double *m, double *v, const size_t *offsets, const double *scale,
                  const unsigned char *decay, int n_tensors, const lin_adam_step *step)
{
    (void)exec;
    for (int i = 0; i < n_tensors; i++) {
        double weight_decay = decay[i] ? step->weight_decay : 0;
        for (size_t j = offsets[i]; j < offsets[i + 1]; j++) {
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
