// Linear attention: one piece of work per utterance and head.
#include "kernels/cpu/cpu.h"

enum { SMALL = 2048 }; // values below which a second thread costs more than it gives

LIN_DISPATCH_DECLARE(void, lin_attention_head_forward,
                     (float *y, const float *qkv, int T, int H, int E, int causal, float *state, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_attention_head_backward, (float *dqkv, const float *dy, const float *qkv, const float *y, int T,
                                                         int H, int E, int causal, float *scratch));

typedef struct attention_job {
    const lin_exec *exec;
    float *y, *dqkv;
    const float *qkv, *dy, *y_in;
    const int *offsets;
    int H, E, causal;
    float *const *states;
    size_t at;
} attention_job;

static void forward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    float *state = job->causal && job->states && job->states[b] ? job->states[b] + job->at + head * (E + 1) * E : NULL;
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_forward)(job->y + row * C + head * E, job->qkv + row * 3 * C + head * E, T, job->H, job->E,
                                                 job->causal, state, lin_scratch(job->exec, thread));
}

void lin_cpu_attention_forward(lin_exec *exec, float *y, const float *qkv, const lin_segments *segments, int H, int E, int causal,
                               float *const *states, size_t at)
{
    attention_job job = {.exec = exec, .y = y, .qkv = qkv, .offsets = segments->offsets, .H = H, .E = E, .causal = causal};
    job.states = states;
    job.at = at;
    int small = (size_t)segments->rows * (size_t)(H * E) < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B * H, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    size_t narrow = row * C + head * E, wide = row * 3 * C + head * E;
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_backward)(job->dqkv + wide, job->dy + narrow, job->qkv + wide, job->y_in + narrow, T,
                                                  job->H, job->E, job->causal, lin_scratch(job->exec, thread));
}

void lin_cpu_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y,
                                const lin_segments *segments, int H, int E, int causal)
{
    attention_job job = {.exec = exec, .dqkv = dqkv, .qkv = qkv, .dy = dy, .y_in = y, .offsets = segments->offsets, .H = H, .E = E};
    job.causal = causal;
    int small = (size_t)segments->rows * (size_t)(H * E) < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B * H, backward_piece, &job);
}
