/*
 * lsh.h - LSH attention (Reformer; Kitaev et al. 2020): what its kernels share. ops.h has the definition.
 *
 * Internal to paper/cuda/lsh*.cu. Forward: the buckets of all frames (hash), one stable counting sort per utterance, head and
 * round (sort), then attention, one launch per round: frames are processed in their sorted order, and since a round holds each
 * frame once, a launch may add to what earlier rounds left in y and lse, or in dqv, without atomics and in a fixed order.
 *
 * A frame at sorted position p sees the keys in positions lsh_from(p) .. lsh_end(p)-1, and is a key of the queries in the
 * positions from the start of its chunk to the end of the next one.
 */
#ifndef LIN_PAPER_CUDA_LSH_H
#define LIN_PAPER_CUDA_LSH_H

#include "kernels/cuda/cuda.h"

#define LSH_SELF_SCORE -1e5f
#define LSH_LEAST_NORM 1e-6f
#define LSH_MOST_INVERSE 0.99999e6f // of a norm that depends on its frame
#define LSH_NO_OTHER -5e4f // an lse below: the frame saw itself alone in all rounds

typedef struct lsh_job {
    const float *qv, *dy; // [rows, 2, H, E], [rows, H, E]
    float *y, *lse;       // [rows, H, E], [rows, H]; read by the backward pass
    float *dqv;
    const int *offsets; // [B+1]
    const int *order;   // [rounds, H, rows]
    const float *terms; // [rows, H, 2]: 1 / (|q| sqrt(E)) and y . dy
    int rows, H, E, causal, chunk, rounds, round;
    int wide; // E = EP, and all pointers are aligned to 16 bytes
} lsh_job;

// One head of one utterance.
typedef struct lsh_place {
    int h, T;
    size_t first;     // row
    const int *order; // [T] of the job's round
} lsh_place;

static __device__ __forceinline__ lsh_place lsh_find(const lsh_job &job)
{
    const int b = (int)(blockIdx.x / (unsigned)job.H), h = (int)(blockIdx.x % (unsigned)job.H), first = job.offsets[b];
    return {h, job.offsets[b + 1] - first, (size_t)first,
            job.order + ((size_t)job.round * (size_t)job.H + (size_t)h) * (size_t)job.rows + first};
}

static __device__ __forceinline__ int lsh_from(const lsh_job &job, int p)
{
    return p < job.chunk ? 0 : (p / job.chunk - 1) * job.chunk;
}
static __device__ __forceinline__ int lsh_end(const lsh_job &job, int p, int T)
{
    const long long end = ((long long)p / job.chunk + 1) * job.chunk;
    return end < T ? (int)end : T;
}

// The end of the positions of which p is a key, whose beginning is p / chunk * chunk.
static __device__ __forceinline__ int lsh_seen_end(const lsh_job &job, int p, int T)
{
    const long long end = ((long long)p / job.chunk + 2) * job.chunk;
    return end < T ? (int)end : T;
}

// The frame's part of q (0) or v (1); of y and dy.
static __device__ __forceinline__ size_t lsh_at(const lsh_job &job, const lsh_place &p, int frame, int part)
{
    return (((p.first + (size_t)frame) * 2 + (size_t)part) * (size_t)job.H + (size_t)p.h) * (size_t)job.E;
}
static __device__ __forceinline__ size_t lsh_row(const lsh_job &job, const lsh_place &p, int frame)
{
    return (p.first + (size_t)frame) * (size_t)job.H + (size_t)p.h;
}

// The probability of a pair. A frame that saw itself alone counts once per round: exp cannot tell, because lse is -1e5 +
// ln(rounds).
static __device__ __forceinline__ float lsh_probability(const lsh_job &job, float score, float lse)
{
    if (lse < LSH_NO_OTHER) return score == LSH_SELF_SCORE ? 1.0f / (float)job.rounds : 0;
    return expf(score - lse);
}

// Adds a round to what the earlier ones gave: y = y old + o fresh.
static __device__ __forceinline__ float lsh_merge(float lse, float round, float *old, float *fresh)
{
    *fresh = 1 / (1 + expf(lse - round));
    *old = 1 - *fresh;
    return fmaxf(lse, round) + log1pf(expf(-fabsf(lse - round)));
}

// lsh_sort.cu: order [rounds, H, rows]; and terms [rows, H, 2], the second part 0 without dy.
void lin_lsh_sort(lin_exec *exec, int *order, const float *qv, const float *R, const lin_segments *segments, const lin_lsh *lsh,
                  int H, int E);
void lin_lsh_terms(lin_exec *exec, float *terms, const lsh_job &job);

// lsh_general.cu: any E.
void lin_lsh_forward_general(lin_exec *exec, lsh_job &job, const lin_segments *segments);
void lin_lsh_backward_general(lin_exec *exec, lsh_job &job, const lin_segments *segments);

#endif
