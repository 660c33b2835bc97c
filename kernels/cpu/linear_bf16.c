// linear_bf16.c - packing weights as bf16, and the product over them; see linear_bf16.h.

#include "kernels/cpu/linear_bf16.h"

#if LIN_HAS_BF16

size_t lin_cpu_bf16_weight_size(int n, int k) { return lin_cpu_weight_size(n, lin_bf16_words(k)); }

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

static void pack_panel(float *packed, const float *w, int n, int k, int piece, int whole_panel)
{
    const int c0 = lin_panel_start(n, piece, whole_panel), width = lin_panel_width(n, c0, whole_panel);
    LIN_BF16(lin_bf16_pack_rows)(packed + (size_t)c0 * (size_t)lin_bf16_words(k), w,
                                 n - c0 < width ? n - c0 : width, k, width);
}

// The panels run over the k columns of w; each has n rows.
static void pack_panel_transposed(float *packed, const float *w, int n, int k, int piece, int whole_panel)
{
    const int c0 = lin_panel_start(k, piece, whole_panel), width = lin_panel_width(k, c0, whole_panel);
    LIN_BF16(lin_bf16_pack_columns)(packed + (size_t)c0 * (size_t)lin_bf16_words(n), w, n, (size_t)k,
                                    k - c0 < width ? k - c0 : width, width);
}

void lin_cpu_bf16_weights_pack(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items)
{
    lin_pack_panels(exec, packed, values, items, n_items, LIN_PANEL, pack_panel, pack_panel_transposed);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

typedef struct forward_job {
    lin_exec *exec;
    float *y;
    const float *x, *packed, *bias;
    int rows, n, k, piece_rows;
    lin_activation act;
} forward_job;

static void forward_piece(void *context, int piece, int thread)
{
    const forward_job *job = context;
    const int r = piece * job->piece_rows, rows = job->rows - r < job->piece_rows ? job->rows - r : job->piece_rows;
    float *words = lin_scratch(job->exec, thread);
    LIN_BF16(lin_bf16_round)(words, job->x + (size_t)r * (size_t)job->k, rows, job->k);
    LIN_BF16(lin_linear_rows)(job->y + (size_t)r * (size_t)job->n, words, job->packed, job->bias, rows, job->n,
                              lin_bf16_words(job->k), job->act, job->exec->pool ? NULL : &job->exec->expected);
}

void lin_cpu_bf16_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows,
                                 int n, int k, lin_activation act)
{
    int threads;
    // The scratch of a thread has room for one row of 2^19 elements.
    const int piece_rows = lin_linear_cut(exec, rows, n, k, 2 * LIN_THREAD_WORK, lin_bf16_words(k), &threads);
    forward_job job = {exec, y, x, packed, bias, rows, n, k, piece_rows, act};
    lin_pool_run(threads > 1 ? exec->pool : NULL, (rows + job.piece_rows - 1) / job.piece_rows, forward_piece, &job);
}

void lin_cpu_bf16_linear_backward_weight(lin_exec *exec, float *dw, float *db, const float *dy, const float *x, int rows, int n,
                                         int k)
{
    lin_linear_weight_gradient(exec, dw, db, dy, x, rows, n, k, LIN_BF16(lin_linear_tile));
}
#else
typedef int lin_bf16_is_elsewhere; // ISO C requires a declaration in every file
#endif
