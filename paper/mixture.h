/*
 * mixture.h - one row of a mixture of discretised logistics (Salimans et al. 2017, PixelCNN++), for all backends: the loss, its
 * gradient, and a value drawn from it. The operation is `mixture` in kernels/ops.h.
 *
 * A logistic with mean m and scale s has the distribution function σ((x - m) / s); value v of 0..255 lies at x = v / 127.5 - 1
 * and has the probability of x ± 1/255, the lowest and the highest that of all below and above. With a = (x + 1/255 - m) / s and
 * b = (x - 1/255 - m) / s its logarithm is
 *
 *   ln(σ(a) - σ(b)) = ln σ(a) + ln σ(-b) + ln(1 - e^(b - a))
 *
 * which has no cancellation for any s, so small differences need no second formula; if s overflows, 1 - e^(b - a) is b - a. In
 * double on every backend: compared with the network this costs little.
 */
#ifndef LIN_PAPER_MIXTURE_H
#define LIN_PAPER_MIXTURE_H

#include <math.h>

#ifdef __CUDACC__
#define LIN_MIXTURE static __device__ __forceinline__
#else
#define LIN_MIXTURE static inline
#endif

enum { LIN_MIXTURE_MOST = 64 };

LIN_MIXTURE double lin_softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

LIN_MIXTURE double lin_sigmoid(double x) { return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

/* ln p of a value under one logistic; and its derivatives by the mean and the log scale, unless these are NULL. */
LIN_MIXTURE double lin_logistic(double mean, double log_scale, int value, double *by_mean, double *by_scale)
{
    const double lowest = -7, s = log_scale < lowest ? lowest : log_scale; /* NaN stays: the trainer checks the loss for it */
    const double inverse = exp(-s), x = value / 127.5 - 1 - mean, a = inverse * (x + 1.0 / 255), b = inverse * (x - 1.0 / 255),
                 d = 2 * inverse / 255;
    const int above = value > 0, below = value < 255; /* whether the value has a bound on that side */
    const int wide = d < 1e-290;                      /* below it d loses digits, and then is 0 */
    const double na = below ? lin_sigmoid(-a) : 0, pb = above ? lin_sigmoid(b) : 0;
    if (by_mean) {
        *by_mean = inverse * (pb - na);
        *by_scale = (above ? b * pb : 0) - (below ? a * na : 0);
        if (above && below) *by_scale -= wide ? 1 : d / expm1(d);
        if (log_scale <= lowest) *by_scale = 0;
    }
    const double ends = -(below ? lin_softplus(-a) : 0) - (above ? lin_softplus(b) : 0);
    if (!above || !below) return ends;
    return ends + (wide ? log(2.0 / 255) - s : log(-expm1(-d)));
}

/*
 * One row x [3 M]: logits, means, log scales. Returns -ln p(value). LIN_MIXTURE_ROW(T) defines lin_mixture_row_T for a type of
 * numbers; dx (NULL: the loss alone; may be x) = scale times the gradient.
 */
#define LIN_MIXTURE_ROW(T)                                                                                                       \
    LIN_MIXTURE double lin_mixture_row_##T(T *dx, const T *x, int M, int value, double scale)                                    \
    {                                                                                                                            \
        double part[LIN_MIXTURE_MOST], top = -HUGE_VAL, most = -HUGE_VAL, all = 0, sum = 0;                                      \
        for (int m = 0; m < M; m++) top = fmax(top, (double)x[m]);                                                               \
        for (int m = 0; m < M; m++) {                                                                                            \
            all += exp((double)x[m] - top);                                                                                      \
            part[m] = (double)x[m] - top + lin_logistic((double)x[M + m], (double)x[2 * M + m], value, NULL, NULL);              \
            most = fmax(most, part[m]);                                                                                          \
        }                                                                                                                        \
        for (int m = 0; m < M; m++) sum += exp(part[m] - most);                                                                  \
        for (int m = 0; m < M && dx; m++) {                                                                                      \
            const double prior = exp((double)x[m] - top) / all, share = exp(part[m] - most) / sum;                               \
            double by_mean, by_scale;                                                                                            \
            lin_logistic((double)x[M + m], (double)x[2 * M + m], value, &by_mean, &by_scale);                                    \
            dx[m] = (T)(scale * (prior - share));                                                                                \
            dx[M + m] = (T)(-scale * share * by_mean);                                                                           \
            dx[2 * M + m] = (T)(-scale * share * by_scale);                                                                      \
        }                                                                                                                        \
        const double loss = log(all) - most - log(sum);                                                                          \
        return loss < 0 ? 0 : loss; /* rounding; NaN stays */                                                                    \
    }

#endif
