// ref_mixture.c - a mixture of discretised logistics; see paper/mixture.h.

#include "tests/kernels/ref/ref.h"
#include "paper/mixture.h"

LIN_MIXTURE_ROW(double)

void lin_ref_mixture(lin_exec *exec, double *loss, double *dx, const double *x, const lin_segments *segments, const int *targets,
                     int M, const double *scale)
{
    (void)exec;
    for (int b = 0; b < segments->B; b++) {
        loss[b] = 0;
        for (int t = segments->offsets[b]; t < segments->offsets[b + 1]; t++) {
            double *to = dx ? dx + (size_t)t * 3 * (size_t)M : NULL;
            if (targets[t] >= 0)
                loss[b] += lin_mixture_row_double(to, x + (size_t)t * 3 * (size_t)M, M, targets[t], to ? *scale : 0);
            for (int i = 0; to && targets[t] < 0 && i < 3 * M; i++) to[i] = 0;
        }
    }
}
