// ref_table.c - the execution context and the table of operations of ref/; see ref.h.

#include "base/memory.h"
#include "kernels/host.h"
#include "kernels/ref/ref.h"

static lin_status exec_create(const lin_ops_f64 *ops, int n_threads, lin_exec **out, lin_error *err)
{
    (void)ops;
    *out = NULL;
    if (n_threads < 0) return lin_fail(err, LIN_INVALID, "%d threads requested; use 0 or more", n_threads);
    lin_exec *exec = lin_calloc(1, sizeof *exec);
    if (!exec) return lin_no_memory(err, "an executor", sizeof *exec);
    *out = exec;
    return LIN_OK;
}

static void exec_destroy(lin_exec *exec)
{
    if (!exec) return;
    lin_free(exec->scratch);
    lin_free(exec);
}

const lin_ops_f64 *lin_ops_ref(void)
{
    static const lin_ops_f64 table = {
        .name = "ref",
        .on_host = 1,
        .exec_create = exec_create,
        .exec_destroy = exec_destroy,
        .memory_create = lin_host_memory_create,
        .memory_destroy = lin_host_memory_destroy,
        .staging_create = lin_host_memory_create,
        .staging_destroy = lin_host_memory_destroy,
        .upload = lin_host_copy,
        .download = lin_host_copy,
        .fetch = lin_host_copy,
        .copy = lin_host_copy,
        .zero = lin_host_zero,
        .fence = lin_host_fence,
        .wait = lin_host_fence,
        .finish = lin_host_finish,
        .weight_size = lin_ref_weight_size,
        .weights_pack = lin_ref_weights_pack,
        .linear_forward = lin_ref_linear_forward,
        .linear_backward_weight = lin_ref_linear_backward_weight,
        .layer_norm_forward = lin_ref_layer_norm_forward,
        .add_dropout_norm_forward = lin_ref_add_dropout_norm_forward,
        .layer_norm_backward = lin_ref_layer_norm_backward,
        .dropout = lin_ref_dropout,
        .add_dropout = lin_ref_add_dropout,
        .relu_backward = lin_ref_relu_backward,
        .stack_frames = lin_ref_stack_frames,
        .add_sinusoid = lin_ref_add_sinusoid,
        .conv_forward = lin_ref_conv_forward,
        .conv_backward = lin_ref_conv_backward,
        .attention_forward = lin_ref_attention_forward,
        .attention_backward = lin_ref_attention_backward,
        .log_softmax = lin_ref_log_softmax,
        .ctc = lin_ref_ctc,
        .tally_losses = lin_ref_tally_losses,
        .sum_squares = lin_ref_sum_squares,
        .clip = lin_ref_clip,
        .adam = lin_ref_adam,
        .gather = lin_ref_gather,
        .carry = lin_ref_carry,
        .fbank = lin_ref_fbank,
        .greedy = lin_ref_greedy,
    };
    return &table;
}
