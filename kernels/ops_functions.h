/*
 * ops_functions.h - the names in a backend's table of operations (ops_table.h), for its declarations and its table.
 *
 *   #define DECLARE(name) __typeof__(*((lin_ops *)0)->name) lin_cpu_##name;      // with the type that the table has
 *   LIN_ALL_OPERATIONS(DECLARE)                                                  // lin_cpu_linear_forward and all others
 *
 *   #define ENTRY(name) .name = lin_cpu_##name,
 *   static const lin_ops table = {.name = "cpu", LIN_OPERATIONS(ENTRY)};
 *
 * Private to the backends, which include it in ref/ref.h, cpu/cpu.h and cuda/cuda.h. LIN_OPERATIONS lists what all backends have.
 */
#ifndef LIN_KERNELS_OPS_FUNCTIONS_H
#define LIN_KERNELS_OPS_FUNCTIONS_H

#define LIN_OPERATIONS(X)                                                                                                        \
    X(weight_size) X(weights_pack) X(linear_forward) X(linear_backward_weight) X(layer_norm_forward)                             \
    X(add_dropout_norm_forward) X(layer_norm_backward) X(dropout) X(add_dropout) X(relu_backward) X(stack_frames)                \
    X(add_sinusoid) X(embed_forward) X(embed_backward) X(conv_forward) X(conv_backward) X(attention_forward)                     \
    X(attention_backward) X(decayed_attention_forward)                                                                           \
    X(decayed_attention_backward) X(log_softmax) X(softmax_rows) X(softmax_rows_backward) X(ctc) X(label_smoothing)              \
    X(denominator) X(cross_entropy) X(tally_losses) X(sum_squares) X(clip) X(adam) X(gather) X(carry) X(greedy)

/* Those of the rivals, which paper/ implements. */
#ifdef LIN_NO_PAPER
#define LIN_RIVAL_OPERATIONS(X)
#define LIN_MAPPED_OPERATIONS(X)
#else
#define LIN_RIVAL_OPERATIONS(X)                                                                                                  \
    X(softmax_forward) X(softmax_backward) X(softmax_scores) X(softmax_naive_forward) X(softmax_naive_backward)                  \
    X(lsh_forward) X(lsh_backward) X(lstm_forward) X(lstm_backward) X(mixture)
/* CUDA does not have these. */
#define LIN_MAPPED_OPERATIONS(X) X(mapped_attention_forward) X(mapped_attention_backward)
#endif

/* Those that only CUDA has. */
#define LIN_BLOCK_OPERATIONS(X)                                                                                                  \
    X(feedforward_forward) X(feedforward_backward) X(attention_block_forward) X(attention_block_backward)                       \
    X(block_norm_forward) X(block_norm_backward)

#define LIN_ALL_OPERATIONS(X)                                                                                                    \
    LIN_OPERATIONS(X) LIN_RIVAL_OPERATIONS(X) LIN_MAPPED_OPERATIONS(X) LIN_BLOCK_OPERATIONS(X) X(expect_states) X(fbank)

#endif
