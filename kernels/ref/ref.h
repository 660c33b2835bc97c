/*
 * ref.h - the functions behind lin_ops_ref(): every operation of ops_table.h in double precision, on one thread.
 *
 * The fast backends are tested against them, so each is written from its definition (the explicit N x N sums for attention, the
 * direct sum for the convolution, the recursions of Graves 2006 for CTC) and never in a form that a fast backend would use.
 * Shapes and meaning: kernels/ops_table.h. Private to kernels/ref/.
 */
#ifndef LIN_KERNELS_REF_REF_H
#define LIN_KERNELS_REF_REF_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"

/* The exec of this backend: scratch for attention and CTC, grown on demand. */
struct lin_exec {
    double *scratch;
    size_t scratch_count;
};

/* `count` doubles that are valid until the next call, or NULL if memory is short. */
double *lin_ref_scratch(lin_exec *exec, size_t count);

size_t lin_ref_weight_size(int n, int k);
void lin_ref_weights_pack(lin_exec *exec, double *packed, const double *values, const lin_packing *items, int n_items);
void lin_ref_linear_forward(lin_exec *exec, double *y, const double *x, const double *packed, const double *bias, int rows, int n,
                            int k, lin_activation act);
void lin_ref_linear_backward_weight(lin_exec *exec, double *dw, double *db, const double *dy, const double *x, int rows, int n,
                                    int k);

void lin_ref_layer_norm_forward(lin_exec *exec, double *y, double *stats, const double *x, const double *gamma, const double *beta,
                                int rows, int C);
void lin_ref_add_dropout_norm_forward(lin_exec *exec, double *sum, double *y, double *stats, const double *x, const double *r,
                                      const double *gamma, const double *beta, int rows, int C, const lin_dropout *dropout);
void lin_ref_layer_norm_backward(lin_exec *exec, double *dx, double *dropped, double *dgamma, double *dbeta, const double *dy,
                                 const double *residual, const double *x, const double *stats, const double *gamma, int rows, int C,
                                 const lin_dropout *dropout);
void lin_ref_dropout(lin_exec *exec, double *y, const double *x, size_t count, const lin_dropout *dropout);
void lin_ref_add_dropout(lin_exec *exec, double *y, const double *x, const double *r, size_t count, const lin_dropout *dropout);
void lin_ref_relu_backward(lin_exec *exec, double *dx, const double *dy, const double *y, size_t count, double scale);
void lin_ref_stack_frames(lin_exec *exec, double *y, const double *x, const double *mean, const double *istd,
                          const lin_segments *in, const lin_segments *out, int D, int stack, int ahead);
void lin_ref_add_sinusoid(lin_exec *exec, double *x, const lin_segments *segments, int C);

void lin_ref_conv_forward(lin_exec *exec, double *y, const double *x, const double *w, const double *bias,
                          const lin_segments *segments, int C, int K, double *const *tails, size_t at);
void lin_ref_conv_backward(lin_exec *exec, double *dx, double *dw, double *db, const double *dy, const double *x, const double *w,
                           const lin_segments *segments, int C, int K);

void lin_ref_attention_forward(lin_exec *exec, double *y, const double *qkv, const lin_segments *segments, int H, int E, int causal,
                               double *const *states, size_t at);
void lin_ref_attention_backward(lin_exec *exec, double *dqkv, const double *dy, const double *qkv, const double *y,
                                const lin_segments *segments, int H, int E, int causal);

void lin_ref_log_softmax(lin_exec *exec, double *logp, const double *logits, int rows, int V);
void lin_ref_ctc(lin_exec *exec, double *loss, double *dlogits, const double *logp, const lin_segments *segments, const int *labels,
                 const int *label_offsets, int most_labels, int V, const double *scale);
void lin_ref_tally_losses(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                          const int *label_offsets);

void lin_ref_sum_squares(lin_exec *exec, double *norms, const double *x, const lin_tensors *tensors);
void lin_ref_clip(lin_exec *exec, double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor);
void lin_ref_adam(lin_exec *exec, double *p, const double *grad, double *m, double *v, const lin_tensors *tensors,
                  const double *scale, const lin_adam_step *step, const lin_tally *tally);

void lin_ref_gather(lin_exec *exec, double *x, const lin_gather *items, const lin_mask *masks, const lin_segments *segments, int D);
void lin_ref_carry(lin_exec *exec, double *y, const lin_segments *out, const double *x, const lin_segments *in,
                   double *const *tails, size_t at, const int *have, const int *keep, int width);
void lin_ref_fbank(lin_exec *exec, double *y, const lin_segments *out, const double *x, const lin_segments *in,
                   const lin_fbank_table *table);
void lin_ref_greedy(lin_exec *exec, lin_phone *phones, int *n_phones, const double *logp, const lin_segments *segments, int V,
                    lin_run *runs, const int *slots);

#endif
