// LSH attention (Reformer; Kitaev et al. 2020): one work item per utterance and head.
#include "kernels/cpu/cpu.h"
#include "paper/cpu/lsh.h"

enum { SMALL = 1024 }; // below this many values, starting a second thread costs more time than it saves

LIN_DISPATCH_DECLARE(void, lin_lsh_head_sort, (const lin_lsh_head *head));
LIN_DISPATCH_DECLARE(void, lin_lsh_head_forward, (const lin_lsh_head *head));
LIN_DISPATCH_DECLARE(void, lin_lsh_head_backward, (const lin_lsh_head *head));

typedef struct lsh_job {
    const lin_exec *exec;
    float *y, *lse, *dqv;
    int *order_out;
    const float *qv, *R, *dy, *y_in, *lse_in;
    const int *order;
    const lin_segments *segments;
    const lin_lsh *lsh;
    int H, E, causal;
} lsh_job;

// What forward and backward share.
static lin_lsh_head head_of(const lsh_job *job, int piece, int thread)
{
    const int *offsets = job->segments->offsets, b = piece / job->H;
    const size_t E = (size_t)job->E, C = (size_t)job->H * E, h = (size_t)(piece % job->H), row = (size_t)offsets[b];
    lin_lsh_head head = {.T = offsets[b + 1] - offsets[b], .E = job->E, .causal = job->causal, .lsh = *job->lsh};
    head.qv_stride = 2 * C;
    head.y_stride = C;
    head.lse_stride = (size_t)job->H;
    head.order_stride = (size_t)job->H * (size_t)job->segments->rows;
    head.rotations_stride = C * (size_t)job->lsh->rotations;
    head.q = job->qv + row * 2 * C + h * E;
    head.v = head.q + C;
    head.order = job->order + h * (size_t)job->segments->rows + row;
    head.scratch = lin_scratch(job->exec, thread);
    return head;
}

static void forward_piece(void *context, int piece, int thread)
{
    const lsh_job *job = context;
    const size_t E = (size_t)job->E, h = (size_t)(piece % job->H), H = (size_t)job->H;
    const size_t row = (size_t)job->segments->offsets[piece / job->H];
    lin_lsh_head head = head_of(job, piece, thread);
    if (head.T == 0) return;
    head.R = job->R + h * E * (size_t)job->lsh->rotations;
    head.order_out = job->order_out + (head.order - job->order);
    head.y = job->y + (row * H + h) * E;
    head.lse = job->lse + row * H + h;
    LIN_DISPATCH(lin_lsh_head_sort)(&head);
    LIN_DISPATCH(lin_lsh_head_forward)(&head);
}

void lin_cpu_lsh_forward(lin_exec *exec, float *y, float *lse, int *order, const float *qv, const float *R,
                         const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    lsh_job job = {.exec = exec, .y = y, .lse = lse, .order_out = order, .order = order, .qv = qv, .R = R, .segments = segments};
    job.lsh = lsh;
    job.H = H;
    job.E = E;
    job.causal = causal;
    int small = (size_t)segments->rows * (size_t)(H * E) < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B * H, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const lsh_job *job = context;
    const size_t E = (size_t)job->E, h = (size_t)(piece % job->H), H = (size_t)job->H;
    const size_t row = (size_t)job->segments->offsets[piece / job->H];
    lin_lsh_head head = head_of(job, piece, thread);
    if (head.T == 0) return;
    head.dy = job->dy + (row * H + h) * E;
    head.y_in = job->y_in + (row * H + h) * E;
    head.lse_in = job->lse_in + row * H + h;
    head.dq = job->dqv + (head.q - job->qv);
    head.dv = head.dq + H * E;
    LIN_DISPATCH(lin_lsh_head_backward)(&head);
}

void lin_cpu_lsh_backward(lin_exec *exec, float *dqv, const float *dy, const float *qv, const float *y, const float *lse,
                          const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    lsh_job job = {.exec = exec, .dqv = dqv, .dy = dy, .qv = qv, .y_in = y, .lse_in = lse, .order = order, .segments = segments};
    job.lsh = lsh;
    job.H = H;
    job.E = E;
    job.causal = causal;
    int small = (size_t)segments->rows * (size_t)(H * E) < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B * H, backward_piece, &job);
}
