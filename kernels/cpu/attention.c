// Linear attention: one work item per utterance and head.
#include "kernels/cpu/cpu.h"

enum {
    SMALL = 2048, // below this many values, starting a second thread costs more time than it saves
    AHEAD = 2     // work items
};

LIN_DISPATCH_DECLARE(void, lin_attention_head_forward,
                     (float *y, const float *qkv, int T, int H, int E, int causal, float *state, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_attention_head_backward, (float *dqkv, const float *dy, const float *qkv, const float *y, int T,
                                                         int H, int E, int causal, float *scratch));

typedef struct attention_job {
    const lin_exec *exec;
    float *y, *dqkv;
    const float *qkv, *dy, *y_in;
    const int *offsets;
    int B, H, E, causal;
    float *const *states;
    size_t at;
} attention_job;

static float *state_of(const attention_job *job, int piece)
{
    const int b = piece / job->H;
    const size_t E = (size_t)job->E, head = (size_t)(piece % job->H);
    return job->causal && job->states && job->states[b] ? job->states[b] + job->at + head * (E + 1) * E : NULL;
}

// Prefetches the state of a later work item: the states of many streams are in memory, not in caches. Always inlined: the
// compiler sees a function that only prefetches as one without effect, and drops calls to it.
static inline __attribute__((always_inline)) void fetch_state(const attention_job *job, int piece)
{
    const float *state = piece < job->B * job->H ? state_of(job, piece) : NULL;
    for (int i = 0; state && i < (job->E + 1) * job->E; i += 16) __builtin_prefetch(state + i, 1);
}

static void forward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    float *state = state_of(job, piece);
    if (state && !job->exec->pool) fetch_state(job, piece + AHEAD); // with several threads, another one may run that work item
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_forward)(job->y + row * C + head * E, job->qkv + row * 3 * C + head * E, T, job->H, job->E,
                                                 job->causal, state, lin_scratch(job->exec, thread));
}

void lin_cpu_attention_forward(lin_exec *exec, float *y, const float *qkv, const lin_segments *segments, int H, int E, int causal,
                               float *const *states, size_t at)
{
    attention_job job = {.exec = exec, .y = y, .qkv = qkv, .offsets = segments->offsets, .B = segments->B, .H = H, .E = E};
    job.causal = causal;
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
