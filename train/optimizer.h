/*
 * optimizer.h - Adam and RAdam over all parameters of a network, with gradient clipping.
 *
 *   lin_optimizer opt;  lin_optimizer_init(&opt, ops, exec, params, &options, &err);
 *   *scalars = lin_optimizer_scalars(&options, ++opt.step, lr);
 *   lin_optimizer_step(&opt, exec, values, gradients, scalars, tally);
 *   lin_optimizer_average(&opt, exec, values, gradients, scalars_of_the_average, tally);    // if options.average
 *   lin_optimizer_free(&opt);                                                               // also after a failure
 *
 * Adam: Kingma & Ba 2015, with decoupled weight decay (Loshchilov & Hutter 2019). RAdam: Liu et al. 2020, algorithm 2, in its
 * authors' form: while the variance is not tractable (the first 5 steps at beta2 = 0.999) it takes a step of SGD with momentum.
 * Average: Polyak & Juditsky 1992 with exponential weights, as in Tarvainen & Valpola 2017.
 */
#ifndef LIN_TRAIN_OPTIMIZER_H
#define LIN_TRAIN_OPTIMIZER_H

#include "kernels/ops.h"
#include "model/config.h"

typedef enum lin_optimizer_kind { LIN_ADAM, LIN_RADAM } lin_optimizer_kind;

/* Clipping to a norm: of all gradients together, or of each tensor separately (as in the paper's published library). */
typedef enum lin_clip { LIN_CLIP_GLOBAL, LIN_CLIP_TENSOR } lin_clip;

typedef struct lin_optimizer_options {
    lin_optimizer_kind kind;
    double beta1, beta2, eps, weight_decay;
    int decay_vectors; /* weight decay also for biases and norms, as in the published RAdam, not only matrices */
    double clip_norm;  /* 0: no clipping */
    lin_clip clip;
    double average; /* share that an exponential moving average of the weights keeps at each step; 0: no average */
} lin_optimizer_options;

/* The published library's options: RAdam, 0.9, 0.999, 1e-8, weight decay 0.01 for everything, each tensor clipped to norm 1. */
lin_optimizer_options lin_optimizer_default(void);

typedef struct lin_optimizer {
    const lin_ops *ops;
    lin_exec *exec; /* owns the memory; must outlive the optimiser */
    lin_optimizer_options options;
    size_t n_elements;
    long long step; /* steps done; the caller counts */
    float *m, *v;   /* [n_elements], moments on the host: if the backend has its own memory, those of the last fetch */
    float *average; /* [n_elements], of the weights, on the host like m; NULL: none. The caller sets it before the first step */
    float *device;  /* [2 or 3, n_elements], in the backend's memory: m, v, average */
    double *norms, *scale, *ones;
    size_t *offsets;
    unsigned char *decay;
    lin_tensors tensors;
} lin_optimizer;

lin_status lin_optimizer_init(lin_optimizer *optimizer, const lin_ops *ops, lin_exec *exec, const lin_params *params,
                              const lin_optimizer_options *options, lin_error *err);
/* Accepts one that was never initialised, but is all 0. */
void lin_optimizer_free(lin_optimizer *optimizer);

/* One step on values [n_elements] with the scalars of lin_optimizer_scalars; all pointers in the backend's memory. A gradient
 * that is not finite sets tally->bad, and from then on nothing changes. */
void lin_optimizer_step(lin_optimizer *optimizer, lin_exec *exec, float *values, const float *gradients,
                        const lin_adam_step *scalars, lin_tally *tally);

/* The scalars of step t = 1, 2, ... */
lin_adam_step lin_optimizer_scalars(const lin_optimizer_options *options, long long t, double lr);

/* average = d average + (1 - d) values, with d = min(options.average, t / (9 + t)) at step t, so that the initial weights fade
 * soon. All pointers in the backend's memory, scalars of lin_optimizer_average_scalars; gradients are not changed. */
void lin_optimizer_average(lin_optimizer *optimizer, lin_exec *exec, const float *values, float *gradients,
                           const lin_adam_step *scalars, const lin_tally *tally);
lin_adam_step lin_optimizer_average_scalars(const lin_optimizer_options *options, long long t);

/* Copies the moments and the average to the host (for a checkpoint; valid after finish), and back. */
void lin_optimizer_fetch(lin_optimizer *optimizer, lin_exec *exec);
void lin_optimizer_place(lin_optimizer *optimizer, lin_exec *exec);

#endif
