// Linear attention: one work item per utterance and head.
#include "kernels/cpu/cpu.h"

#include <assert.h>

enum {
    SMALL = 2048, // below this many values, starting a second thread costs more time than it saves
    AHEAD = 2,    // work items
    FEW = 64      // rows of an utterance that are found in the caches, where the operation before has left them
};

LIN_DISPATCH_DECLARE(void, lin_attention_head_forward,
                     (float *y, const float *qkv, const float *gates, size_t gate_step, int T, int H, int E, int causal,
                      float *state, const float *later, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_attention_head_backward,
                     (float *dqkv, float *dgates, const float *dy, const float *qkv, const float *gates, size_t gate_step,
                      const float *y, int T, int H, int E, int causal, float *scratch));

typedef struct attention_job {
    const lin_exec *exec;
    float *y, *dqkv, *dgates;
    const float *qkv, *gates, *dy, *y_in;
    const int *offsets;
    int B, H, E, causal, constant;
    float *const *states;
    size_t at;
} attention_job;

static float *state_of(const attention_job *job, int piece)
{
    const int b = piece / job->H;
    const size_t E = (size_t)job->E, head = (size_t)(piece % job->H);
    return job->causal && job->states && job->states[b] ? job->states[b] + job->at + head * (E + 1) * E : NULL;
}

// The gates of a head from a row on, and the floats from one row to the next.
static const float *gates_of(const attention_job *job, size_t row, size_t head, size_t *step)
{
    *step = job->constant ? 0 : (size_t)job->H;
    return job->gates ? job->gates + row * *step + head : NULL;
}

// The state of a later work item, to be prefetched: the states of many streams are in memory, not in caches. NULL: none; with
// several threads another one may run that work item.
static const float *later_state(const attention_job *job, int piece)
{
    return !job->exec->pool && piece + AHEAD < job->B * job->H ? state_of(job, piece + AHEAD) : NULL;
}

// Reads rows first .. end-1 of a matrix of so many columns, to have them in a cache: reads in order are what the hardware's
// prefetcher follows, and prefetches are not.
static void read_rows(const float *x, size_t first, size_t end, size_t columns)
{
    for (size_t i = first * columns; i < end * columns; i += 16) (void)*(const volatile float *)(x + i);
}

// Reads a part of the next utterance's rows; the work items of all heads read all of them. A head alone reads only a part of each
// row, and memory gives that at half the rate of whole rows.
static void read_next(const attention_job *job, int piece)
{
    const int b = piece / job->H + 1;
    if (b >= job->B || job->offsets[b + 1] - job->offsets[b] < FEW) return;
    const size_t C = (size_t)job->H * (size_t)job->E, H = (size_t)job->H, head = (size_t)(piece % job->H);
    const size_t row = (size_t)job->offsets[b], T = (size_t)job->offsets[b + 1] - row;
    const size_t first = row + T * head / H, end = row + T * (head + 1) / H;
    read_rows(job->qkv, first, end, 3 * C);
    if (!job->dqkv) return;
    read_rows(job->dy, first, end, C);
    read_rows(job->y_in, first, end, C);
}

static void forward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    float *state = state_of(job, piece);
    size_t step;
    const float *gates = gates_of(job, row, head, &step);
    read_next(job, piece);
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_forward)
        (job->y + row * C + head * E, job->qkv + row * 3 * C + head * E, gates, step, T, job->H, job->E, job->causal, state,
         later_state(job, piece), lin_scratch(job->exec, thread));
}

static void run(lin_exec *exec, const lin_segments *segments, lin_pool_work piece, attention_job *job)
{
    assert(lin_segments_hold(segments) && job->H > 0 && job->E > 0);
    assert(!job->states || job->causal); // sums over all frames of an utterance cannot be continued
    const int small = (size_t)segments->rows * (size_t)(job->H * job->E) < SMALL;
    job->exec = exec;
    job->offsets = segments->offsets;
    job->B = segments->B;
    lin_pool_run(small ? NULL : exec->pool, segments->B * job->H, piece, job);
}

void lin_cpu_attention_forward(lin_exec *exec, float *y, const float *qkv, const lin_segments *segments, int H, int E, int causal,
                               float *const *states, size_t at)
{
    attention_job job = {.y = y, .qkv = qkv, .H = H, .E = E, .causal = causal, .states = states, .at = at};
    run(exec, segments, forward_piece, &job);
}

void lin_cpu_decayed_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *gates, int constant,
                                       const lin_segments *segments, int H, int E, float *const *states, size_t at)
{
    attention_job job = {.y = y, .qkv = qkv, .gates = gates, .H = H, .E = E, .causal = 1, .states = states, .at = at};
    job.constant = constant;
    run(exec, segments, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const attention_job *job = context;
    int b = piece / job->H, T = job->offsets[b + 1] - job->offsets[b];
    size_t E = (size_t)job->E, C = (size_t)job->H * E, head = (size_t)(piece % job->H), row = (size_t)job->offsets[b];
    size_t narrow = row * C + head * E, wide = row * 3 * C + head * E, step;
    const float *gates = gates_of(job, row, head, &step);
    float *dgates = job->dgates ? job->dgates + row * (size_t)job->H + head : NULL;
    read_next(job, piece);
    if (T > 0)
        LIN_DISPATCH(lin_attention_head_backward)
        (job->dqkv + wide, dgates, job->dy + narrow, job->qkv + wide, gates, step, job->y_in + narrow, T, job->H, job->E,
         job->causal, lin_scratch(job->exec, thread));
}

void lin_cpu_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y,
                                const lin_segments *segments, int H, int E, int causal)
{
    attention_job job = {.dqkv = dqkv, .qkv = qkv, .dy = dy, .y_in = y, .H = H, .E = E, .causal = causal};
    run(exec, segments, backward_piece, &job);
}

void lin_cpu_decayed_attention_backward(lin_exec *exec, float *dqkv, float *dgates, const float *dy, const float *qkv,
                                        const float *gates, int constant, const float *y, const lin_segments *segments, int H,
                                        int E)
{
    attention_job job = {
        .dqkv = dqkv, .dgates = dgates, .qkv = qkv, .gates = gates, .dy = dy, .y_in = y, .H = H, .E = E, .causal = 1};
    job.constant = constant;
    run(exec, segments, backward_piece, &job);
}
