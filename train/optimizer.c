// optimizer.c - the state of an optimiser, and its step; see optimizer.h.

#include "train/optimizer.h"

#include <math.h>

#include "base/memory.h"

lin_optimizer_options lin_optimizer_default(void)
{
    return (lin_optimizer_options){.kind = LIN_RADAM,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .eps = 1e-8,
                                   .weight_decay = 0.01,
                                   .decay_vectors = 1,
                                   .clip_norm = 1.0,
                                   .clip = LIN_CLIP_TENSOR};
}

lin_status lin_optimizer_init(lin_optimizer *opt, const lin_ops *ops, lin_exec *exec, const lin_params *params,
                              const lin_optimizer_options *o, lin_error *err)
{
    const size_t n = (size_t)params->n_tensors, moments = (o->average > 0 ? 3 : 2) * params->n_elements * sizeof(float);
    const double one = 1;
    *opt = (lin_optimizer){.ops = ops, .exec = exec, .options = *o, .n_elements = params->n_elements};
    opt->offsets = lin_calloc(n + 1, sizeof *opt->offsets);
    opt->decay = lin_calloc(n, 1);
    if (!opt->offsets || !opt->decay) return lin_no_memory(err, "an optimiser", n * sizeof *opt->offsets);
    LIN_TRY(ops->memory_create(exec, moments, (void **)&opt->device, err));
    LIN_TRY(ops->memory_create(exec, n * sizeof *opt->norms, (void **)&opt->norms, err));
    LIN_TRY(ops->memory_create(exec, n * sizeof *opt->scale, (void **)&opt->scale, err));
    if (o->average > 0) LIN_TRY(ops->memory_create(exec, n * sizeof *opt->ones, (void **)&opt->ones, err));
    opt->m = ops->on_host ? opt->device : lin_calloc(moments, 1);
    if (!opt->m) return lin_no_memory(err, "an optimiser", moments);
    opt->v = opt->m + params->n_elements;
    if (o->average > 0) opt->average = opt->v + params->n_elements;
    for (size_t i = 0; i < n && opt->ones; i++) ops->upload(exec, opt->ones + i, &one, sizeof one);
    for (size_t i = 0; i < n; i++) {
        opt->offsets[i] = params->table[i].offset;
        opt->decay[i] = !params->table[i].is_fixed && (params->table[i].decay || o->decay_vectors);
    }
    opt->offsets[n] = params->n_elements;
    opt->tensors = (lin_tensors){.n = params->n_tensors, .offsets = opt->offsets, .decay = opt->decay};
    return LIN_OK;
}

void lin_optimizer_free(lin_optimizer *opt)
{
    if (!opt->ops) return;
    if (!opt->ops->on_host) lin_free(opt->m);
    opt->ops->memory_destroy(opt->exec, opt->device);
    opt->ops->memory_destroy(opt->exec, opt->norms);
    opt->ops->memory_destroy(opt->exec, opt->scale);
    opt->ops->memory_destroy(opt->exec, opt->ones);
    lin_free(opt->offsets);
    lin_free(opt->decay);
    *opt = (lin_optimizer){0};
}

lin_adam_step lin_optimizer_scalars(const lin_optimizer_options *o, long long t, double lr)
{
    const double c1 = 1 - pow(o->beta1, (double)t), b2t = pow(o->beta2, (double)t), c2 = 1 - b2t;
    lin_adam_step step = {.beta1 = o->beta1,
                          .beta2 = o->beta2,
                          .eps = o->eps,
                          .weight_decay = o->weight_decay,
                          .lr = lr,
                          .step_size = lr / c1,
                          .v_scale = 1 / sqrt(c2),
                          .adaptive = 1,
                          .decoupled = 1};
    if (o->kind == LIN_RADAM) {
        // Liu et al. 2020, eq. 5 and algorithm 2; the authors' code uses n >= 5, and puts the bias correction of v into the
        // step size
        const double most = 2 / (1 - o->beta2) - 1, n = most - 2 * (double)t * b2t / c2;
        step.adaptive = n >= 5;
        step.v_scale = 1;
        if (step.adaptive) step.step_size *= sqrt(c2 * (n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n));
    }
    return step;
}

void lin_optimizer_step(lin_optimizer *opt, lin_exec *exec, float *values, const float *gradients, const lin_adam_step *scalars,
                        lin_tally *tally)
{
    const lin_ops *ops = opt->ops;
    ops->sum_squares(exec, opt->norms, gradients, &opt->tensors);
    ops->clip(exec, opt->scale, tally, opt->norms, opt->tensors.n, opt->options.clip_norm, opt->options.clip == LIN_CLIP_TENSOR);
    ops->adam(exec, values, gradients, opt->device, opt->device + opt->n_elements, &opt->tensors, opt->scale, scalars, tally);
}

lin_adam_step lin_optimizer_average_scalars(const lin_optimizer_options *o, long long t)
{
    // rounded to float, so that the two shares add up to 1 in float too
    return (lin_adam_step){.beta1 = (float)fmin(o->average, (double)t / (9 + (double)t)), .beta2 = 1, .v_scale = 1};
}

// The average is the first moment of the weights themselves: a step of Adam with a rate of 0, which leaves gradients and v as
// they are.
void lin_optimizer_average(lin_optimizer *opt, lin_exec *exec, const float *values, float *gradients,
                           const lin_adam_step *scalars, const lin_tally *tally)
{
    float *v = opt->device + opt->n_elements, *average = v + opt->n_elements;
    opt->ops->adam(exec, gradients, values, average, v, &opt->tensors, opt->ones, scalars, tally);
}

static size_t bytes_of(const lin_optimizer *opt) { return (opt->average ? 3 : 2) * opt->n_elements * sizeof *opt->m; }

void lin_optimizer_fetch(lin_optimizer *opt, lin_exec *exec)
{
    if (!opt->ops->on_host) opt->ops->download(exec, opt->m, opt->device, bytes_of(opt));
}

void lin_optimizer_place(lin_optimizer *opt, lin_exec *exec)
{
    if (!opt->ops->on_host) opt->ops->upload(exec, opt->device, opt->m, bytes_of(opt));
}
