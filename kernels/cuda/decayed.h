/*
 * decayed.h - what the kernels of linear attention that forgets share (kernels/ops.h): their arguments, decays, states.
 *
 * decayed_chunks.cu has heads up to 64 wide, decayed_attention.cu wider ones. Both compute in fp32.
 */
#ifndef LIN_KERNELS_CUDA_DECAYED_H
#define LIN_KERNELS_CUDA_DECAYED_H

#include "kernels/cuda/attention.h"

typedef struct decayed_job {
    const float *qkv, *gates, *y, *dy;
    float *terms; // [rows, H, 2]: 1 / den and g
    float *out, *dgates;
    const int *offsets;
    float *const *states;
    size_t at;
    int H, E, constant;
} decayed_job;

static __device__ __forceinline__ float gate_of(const decayed_job &job, size_t row, int h)
{
    const float gate = job.gates[(job.constant ? 0 : row * (size_t)job.H) + (size_t)h];
    return gate < -80 ? -80 : gate;
}

static __device__ __forceinline__ float *state_of(const decayed_job &job, int b, int h)
{
    const size_t E = (size_t)job.E;
    return job.states && job.states[b] ? job.states[b] + job.at + (size_t)h * (E + 1) * E : NULL;
}

/* Both return 0, and launch nothing, if the head is too wide or its tiles do not fit a block. backward needs job->terms. */
int lin_cuda_decayed_chunks_forward(lin_exec *exec, const decayed_job *job, const lin_segments *segments);
int lin_cuda_decayed_chunks_backward(lin_exec *exec, const decayed_job *job, const lin_segments *segments);

#endif
