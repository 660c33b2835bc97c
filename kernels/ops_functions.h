/*
 * ops_functions.h - the functions in a backend's table of operations (ops_table.h, which describes them), each signature once.
 *
 *   #define LIN_REAL float
 *   #define LIN_OP(name) lin_cpu_##name
 *   #include "kernels/ops_functions.h"            // declares lin_cpu_linear_forward and all others; undefines both macros
 *
 *   #define ENTRY(name) .name = lin_cpu_##name,
 *   static const lin_ops table = {.name = "cpu", LIN_OPERATIONS(ENTRY)};
 *
 * Private to the backends, which include it in ref/ref.h, cpu/cpu.h and cuda/cuda.h. LIN_OPERATIONS lists all operations but
 * fbank, which the CPU backend lacks.
 */
#ifndef LIN_OPERATIONS
#define LIN_OPERATIONS(X)                                                                                                        \
    X(weight_size) X(weights_pack) X(linear_forward) X(linear_backward_weight) X(layer_norm_forward)                             \
    X(add_dropout_norm_forward) X(layer_norm_backward) X(dropout) X(add_dropout) X(relu_backward) X(stack_frames)                \
    X(add_sinusoid) X(conv_forward) X(conv_backward) X(attention_forward) X(attention_backward) X(log_softmax) X(softmax_rows)   \
    X(softmax_rows_backward) X(ctc) X(label_smoothing)                                                                           \
    X(tally_losses) X(sum_squares) X(clip) X(adam) X(gather) X(carry) X(greedy)

/* The operations of the rivals, for backends that have them. */
#define LIN_SOFTMAX_OPERATIONS(X)                                                                                                \
    X(softmax_forward) X(softmax_backward) X(softmax_scores) X(softmax_naive_forward) X(softmax_naive_backward)
#define LIN_BLOCK_OPERATIONS(X)                                                                                                  \
    X(feedforward_forward) X(feedforward_backward) X(attention_block_forward) X(attention_block_backward) /* CUDA only */
#define LIN_LSH_OPERATIONS(X) X(lsh_forward) X(lsh_backward)
#define LIN_MAPPED_OPERATIONS(X) X(mapped_attention_forward) X(mapped_attention_backward)
#define LIN_DECAYED_OPERATIONS(X) X(decayed_attention_forward) X(decayed_attention_backward)
#define LIN_HINT_OPERATIONS(X) X(expect_states)
#define LIN_LSTM_OPERATIONS(X) X(lstm_forward) X(lstm_backward)
#define LIN_TASK_OPERATIONS(X) X(cross_entropy)
#endif

size_t LIN_OP(weight_size)(int n, int k);
void LIN_OP(weights_pack)(lin_exec *exec, LIN_REAL *packed, const LIN_REAL *values, const lin_packing *items, int n_items);
void LIN_OP(linear_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *packed, const LIN_REAL *bias,
                            int rows, int n, int k, lin_activation act);
void LIN_OP(linear_backward_weight)(lin_exec *exec, LIN_REAL *dw, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *x, int rows,
                                    int n, int k);

void LIN_OP(layer_norm_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *stats, const LIN_REAL *x, const LIN_REAL *gamma,
                                const LIN_REAL *beta, int rows, int C);
void LIN_OP(add_dropout_norm_forward)(lin_exec *exec, LIN_REAL *sum, LIN_REAL *y, LIN_REAL *stats, const LIN_REAL *x,
                                      const LIN_REAL *r, const LIN_REAL *gamma, const LIN_REAL *beta, int rows, int C,
                                      const lin_dropout *dropout);
void LIN_OP(layer_norm_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dropped, LIN_REAL *dgamma, LIN_REAL *dbeta,
                                 LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *more, const LIN_REAL *residual,
                                 const LIN_REAL *x, const LIN_REAL *stats, const LIN_REAL *gamma, int rows, int C,
                                 const lin_dropout *dropout);
void LIN_OP(dropout)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, size_t count, const lin_dropout *dropout);
void LIN_OP(add_dropout)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *r, size_t count,
                         const lin_dropout *dropout);
void LIN_OP(relu_backward)(lin_exec *exec, LIN_REAL *dx, const LIN_REAL *dy, const LIN_REAL *y, size_t count, double scale);
void LIN_OP(feedforward_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *hidden, const LIN_REAL *x, const LIN_REAL *w1,
                                 const LIN_REAL *b1, const LIN_REAL *w2, const LIN_REAL *b2, int rows, int C, int F,
                                 const lin_dropout *dropout);
void LIN_OP(feedforward_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dw1, LIN_REAL *db1, LIN_REAL *dw2, LIN_REAL *db2,
                                  const LIN_REAL *dy, const LIN_REAL *x, const LIN_REAL *hidden, LIN_REAL *d_hidden,
                                  const LIN_REAL *w1, const LIN_REAL *w2, int rows, int C, int F, const lin_dropout *dropout);
void LIN_OP(stack_frames)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *mean, const LIN_REAL *istd,
                          const lin_segments *in, const lin_segments *out, int D, int stack, int ahead);
void LIN_OP(add_sinusoid)(lin_exec *exec, LIN_REAL *x, const lin_segments *segments, int C);

void LIN_OP(conv_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *w, const LIN_REAL *bias,
                          const lin_segments *segments, int C, int K, int after, LIN_REAL *const *tails, size_t at);
void LIN_OP(conv_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dw, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *x,
                           const LIN_REAL *w, const lin_segments *segments, int C, int K, int after);

void LIN_OP(attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const lin_segments *segments, int H, int E,
                               int causal, LIN_REAL *const *states, size_t at);
void LIN_OP(expect_states)(lin_exec *exec, LIN_REAL *const *states, int B, size_t at, size_t count);
void LIN_OP(attention_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv, const LIN_REAL *y,
                                const lin_segments *segments, int H, int E, int causal);

void LIN_OP(attention_block_forward)(lin_exec *exec, LIN_REAL *out, LIN_REAL *qkv, LIN_REAL *y, LIN_REAL *operands,
                                     const LIN_REAL *x, const LIN_REAL *wqkv, const LIN_REAL *bqkv, const LIN_REAL *wout,
                                     const LIN_REAL *bout, const lin_segments *segments, int H, int E, int causal);
void LIN_OP(attention_block_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dwqkv, LIN_REAL *dbqkv, LIN_REAL *dwout,
                                      const LIN_REAL *dy, const LIN_REAL *x, const LIN_REAL *qkv, const LIN_REAL *y,
                                      const LIN_REAL *operands, LIN_REAL *d_qkv, const LIN_REAL *wqkv, const LIN_REAL *wout,
                                      const lin_segments *segments, int H, int E, int causal);
void LIN_OP(decayed_attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const LIN_REAL *gates, int constant,
                                       const lin_segments *segments, int H, int E, LIN_REAL *const *states, size_t at);
void LIN_OP(decayed_attention_backward)(lin_exec *exec, LIN_REAL *dqkv, LIN_REAL *dgates, const LIN_REAL *dy, const LIN_REAL *qkv,
                                        const LIN_REAL *gates, int constant, const LIN_REAL *y, const lin_segments *segments,
                                        int H, int E);

void LIN_OP(softmax_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *lse, const LIN_REAL *qkv, const lin_segments *segments, int H,
                             int E, int causal, const lin_cache *caches, int layer);
void LIN_OP(softmax_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv, const LIN_REAL *y,
                              const LIN_REAL *lse, const lin_segments *segments, int H, int E, int causal);
size_t LIN_OP(softmax_scores)(const int *offsets, int B, int H);
void LIN_OP(softmax_naive_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *p, const LIN_REAL *qkv, const lin_segments *segments,
                                   int H, int E, int causal);
void LIN_OP(softmax_naive_backward)(lin_exec *exec, LIN_REAL *dqkv, LIN_REAL *p, const LIN_REAL *dy, const LIN_REAL *qkv,
                                    const LIN_REAL *y, const lin_segments *segments, int H, int E, int causal);

void LIN_OP(lsh_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *lse, int *order, const LIN_REAL *qv, const LIN_REAL *R,
                         const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal);
void LIN_OP(lsh_backward)(lin_exec *exec, LIN_REAL *dqv, const LIN_REAL *dy, const LIN_REAL *qv, const LIN_REAL *y,
                          const LIN_REAL *lse, const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E,
                          int causal);

void LIN_OP(mapped_attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const LIN_REAL *omega,
                                      const lin_segments *segments, const lin_map *map, int H, int E, int causal,
                                      LIN_REAL *const *states, size_t at);
void LIN_OP(mapped_attention_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv,
                                       const LIN_REAL *omega, const LIN_REAL *y, const lin_segments *segments, const lin_map *map,
                                       int H, int E, int causal);

void LIN_OP(lstm_forward)(lin_exec *exec, LIN_REAL *h, LIN_REAL *cells, LIN_REAL *gates, const LIN_REAL *packed,
                          const lin_segments *segments, int U, int directions, LIN_REAL *const *states, size_t at);
void LIN_OP(lstm_backward)(lin_exec *exec, LIN_REAL *dgates, LIN_REAL *dR, const LIN_REAL *dh, const LIN_REAL *h,
                           const LIN_REAL *cells, const LIN_REAL *gates, const LIN_REAL *packed, const lin_segments *segments,
                           int U, int directions);

void LIN_OP(log_softmax)(lin_exec *exec, LIN_REAL *logp, const LIN_REAL *logits, int rows, int V);
void LIN_OP(softmax_rows)(lin_exec *exec, LIN_REAL *p, const LIN_REAL *logits, int rows, int V);
void LIN_OP(softmax_rows_backward)(lin_exec *exec, LIN_REAL *dlogits, const LIN_REAL *dp, const LIN_REAL *p, int rows, int V);
void LIN_OP(ctc)(lin_exec *exec, double *loss, LIN_REAL *dlogits, const LIN_REAL *logp, const lin_segments *segments,
                 const int *labels, const int *label_offsets, int most_labels, int V, const double *scale);
void LIN_OP(label_smoothing)(lin_exec *exec, LIN_REAL *dlogits, const LIN_REAL *logp, int rows, int V, double part,
                             const double *scale);
void LIN_OP(cross_entropy)(lin_exec *exec, double *loss, LIN_REAL *dlogits, const LIN_REAL *logp, const lin_segments *segments,
                           const int *targets, int V, const double *scale);
void LIN_OP(tally_losses)(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                          const int *label_offsets);

void LIN_OP(sum_squares)(lin_exec *exec, double *norms, const LIN_REAL *x, const lin_tensors *tensors);
void LIN_OP(clip)(lin_exec *exec, double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor);
void LIN_OP(adam)(lin_exec *exec, LIN_REAL *p, const LIN_REAL *grad, LIN_REAL *m, LIN_REAL *v, const lin_tensors *tensors,
                  const double *scale, const lin_adam_step *step, const lin_tally *tally);

void LIN_OP(gather)(lin_exec *exec, LIN_REAL *x, const lin_gather *items, const lin_mask *masks, const lin_segments *segments,
                    int D);
void LIN_OP(carry)(lin_exec *exec, LIN_REAL *y, const lin_segments *out, const LIN_REAL *x, const lin_segments *in,
                   LIN_REAL *const *tails, size_t at, const int *have, const int *keep, int width);
void LIN_OP(fbank)(lin_exec *exec, LIN_REAL *y, const lin_segments *out, const LIN_REAL *x, const lin_segments *in,
                   const lin_fbank_table *table);
void LIN_OP(greedy)(lin_exec *exec, lin_phone *phones, int *n_phones, const LIN_REAL *logp, const lin_segments *segments, int V,
                    lin_run *runs, const int *slots);

#undef LIN_REAL
#undef LIN_OP
