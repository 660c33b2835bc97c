// Linear attention with other feature maps: one work item per utterance and head.
#include "kernels/cpu/cpu.h"

enum { SMALL = 32768 }; // below this many multiplications per direction, a second thread costs more time than it saves

LIN_DISPATCH_DECLARE(void, lin_mapped_head_forward,
                     (float *y, const float *qkv, const float *omega, int T, const lin_map *map, int H, int E, int causal,
                      float *state, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_mapped_head_backward,
                     (float *dqkv, const float *dy, const float *qkv, const float *omega, const float *y, int T,
                      const lin_map *map, int H, int E, int causal, float *scratch));

typedef struct mapped_job {
    const lin_exec *exec;
    const lin_map *map;
    float *y, *dqkv;
    const float *qkv, *omega, *dy, *y_in;
    const int *offsets;
    int H, E, causal;
    float *const *states;
    size_t at;
} mapped_job;

static lin_pool *threads_for(const lin_exec *exec, const lin_segments *segments, const lin_map *map, int H, int E)
{
    return (size_t)segments->rows * (size_t)(H * E) * (size_t)map->D < SMALL ? NULL : exec->pool;
}

static const float *omega_of(const mapped_job *job, size_t head)
{
    return job->map->kind == LIN_MAP_RANDOM ? job->omega + head * (size_t)job->map->D * (size_t)job->E : NULL;
}

static void forward_piece(void *context, int piece, int thread)
{
    const mapped_job *job = context;
    const int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    const size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    const int has_state = job->causal && job->states && job->states[b];
    float *state = has_state ? job->states[b] + job->at + head * (size_t)job->map->D * (E + 1) : NULL;
    if (T > 0)
        LIN_DISPATCH(lin_mapped_head_forward)
        (job->y + row * C + head * E, job->qkv + row * 3 * C + head * E, omega_of(job, head), T, job->map, job->H, job->E,
         job->causal, state, lin_scratch(job->exec, thread));
}

void lin_cpu_mapped_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *omega,
                                      const lin_segments *segments, const lin_map *map, int H, int E, int causal,
                                      float *const *states, size_t at)
{
    mapped_job job = {.exec = exec, .map = map, .y = y, .qkv = qkv, .omega = omega, .offsets = segments->offsets, .H = H, .E = E};
    job.causal = causal;
    job.states = states;
    job.at = at;
    lin_pool_run(threads_for(exec, segments, map, H, E), segments->B * H, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const mapped_job *job = context;
    const int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    const size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    const size_t narrow = row * C + head * E, wide = row * 3 * C + head * E;
    if (T > 0)
        LIN_DISPATCH(lin_mapped_head_backward)(job->dqkv + wide, job->dy + narrow, job->qkv + wide, omega_of(job, head),
                                               job->y_in + narrow, T, job->map, job->H, job->E, job->causal,
                                               lin_scratch(job->exec, thread));
}

void lin_cpu_mapped_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *omega,
                                       const float *y, const lin_segments *segments, const lin_map *map, int H, int E, int causal)
{
    mapped_job job = {.exec = exec, .map = map, .dqkv = dqkv, .qkv = qkv, .omega = omega, .dy = dy, .y_in = y, .H = H, .E = E};
    job.offsets = segments->offsets;
    job.causal = causal;
    lin_pool_run(threads_for(exec, segments, map, H, E), segments->B * H, backward_piece, &job);
}
