/*
 * lsh_tiles.h - LSH attention on the tensor cores: tiles of 64 sorted frames, shared by the forward and backward passes.
 *
 * Internal to paper/cuda/lsh*.cu. A block owns 64 positions of the sorted order of one round, each of its 4 warps 16 of them in
 * registers, and reads the positions that may meet them in tiles of 64, gathered through the order. Products, fragments and
 * precision are those of attention.h; E is padded with zeros to EP (32 or 64). Chunks need not be related to tiles: pairs that
 * do not see each other are masked, and sixteen positions that no row of a warp sees are skipped.
 */
#ifndef LIN_PAPER_CUDA_LSH_TILES_H
#define LIN_PAPER_CUDA_LSH_TILES_H

#include "kernels/cuda/attention.h"
#include "paper/cuda/lsh.h"

// In shared memory.
template <int EP> struct lsh_tile {
    float left[sizes<EP>::tile], right[sizes<EP>::tile];
    float scale[TILE], lse[TILE], D[TILE];
    int frames[TILE]; // -1: none
    int own[TILE];    // of the block's own positions
};

// The two rows of a warp's 16 that a lane holds a part of: g and g + 8.
typedef struct lsh_rows {
    int frame[2];            // -1: none
    int from[2], end[2];     // the positions that they meet
    int warp_from, warp_end; // that any row of the warp meets
} lsh_rows;

// Starts copying part `part` of qv, or dy if part is -1, of the frames of a tile; zeros where there is none and beyond E.
template <int EP>
static __device__ __forceinline__ void lsh_gather(float *tile, const lsh_job &job, const lsh_place &p, int part,
                                                  const int *frames, int who)
{
    enum { per_row = EP / 4, step = GROUP / per_row };
    const int col = who % per_row * 4;
#pragma unroll 4
    for (int row = who / per_row; row < TILE; row += step) {
        float *to = tile + row * sizes<EP>::stride + col;
        const int frame = frames[row];
        const float *from = NULL;
        if (frame >= 0) from = part < 0 ? job.dy + lsh_row(job, p, frame) * (size_t)job.E : job.qv + lsh_at(job, p, frame, part);
        if (job.wide && frame >= 0) lin_copy_async16(to, from + col);
        else
            for (int i = 0; i < 4; i++)
                if (frame >= 0 && col + i < job.E) lin_copy_async4(to + i, from + col + i);
                else to[i] = 0;
    }
}

// The frames at positions from .. from + 63, those before `end`, by threads 0..63.
static __device__ __forceinline__ void lsh_frames(int *frames, const lsh_place &p, int from, int end, int who)
{
    if (who < TILE) frames[who] = from + who < end ? p.order[from + who] : -1;
}

// What the passes need of them, by the threads that read the frames.
template <int EP>
static __device__ __forceinline__ void lsh_numbers(lsh_tile<EP> *tile, const lsh_job &job, const lsh_place &p, int with_lse,
                                                   int who)
{
    if (who >= TILE || tile->frames[who] < 0) return;
    const size_t row = lsh_row(job, p, tile->frames[who]);
    tile->scale[who] = job.terms[2 * row];
    if (!with_lse) return;
    tile->lse[who] = job.lse[row];
    tile->D[who] = job.terms[2 * row + 1];
}

// Both copies of a tile have arrived: their numbers as operands, for all threads.
template <int EP, int SPLIT> static __device__ __forceinline__ void lsh_arrived(lsh_tile<EP> *tile, int who)
{
    lin_copy_commit();
    lin_copy_wait<0>();
    tile_operands<EP, SPLIT>(tile->left, NULL, who);
    tile_operands<EP, SPLIT>(tile->right, NULL, who);
    __syncthreads();
}

// Element i of c[h] of multiply_rows, in subtile j: which of a lane's two rows, and which of the tile's 64.
static __device__ __forceinline__ int lsh_half(int i) { return i >> 1; }
static __device__ __forceinline__ int lsh_column(int j, int h, int i, int lane)
{
    return 16 * j + 8 * h + result_row(2 * (lane & 3) + (i & 1));
}

// The lane's rows; as_keys: what they meet are the queries that see them.
static __device__ __forceinline__ lsh_rows lsh_rows_of(const lsh_job &job, const lsh_place &p, const int *own, int first,
                                                       int as_keys, int warp, int lane)
{
    lsh_rows r;
    for (int half = 0; half < 2; half++) {
        const int row = warp * 16 + (lane >> 2) + 8 * half, at = first + row;
        r.frame[half] = own[row];
        r.from[half] = at >= p.T ? 0 : as_keys ? at / job.chunk * job.chunk : lsh_from(job, at);
        r.end[half] = at >= p.T ? 0 : as_keys ? lsh_seen_end(job, at, p.T) : lsh_end(job, at, p.T);
    }
    const int low = first + warp * 16, high = min(low + 15, p.T - 1);
    r.warp_from = r.warp_end = 0;
    if (low < p.T) {
        r.warp_from = as_keys ? low / job.chunk * job.chunk : lsh_from(job, low);
        r.warp_end = as_keys ? lsh_seen_end(job, high, p.T) : lsh_end(job, high, p.T);
    }
    return r;
}

// Whether row `half` meets the position `at` with its frame; `before`: in a causal pass only if that frame is not after the
// row's, else only if it is not before it.
static __device__ __forceinline__ int lsh_meets(const lsh_job &job, const lsh_rows &r, int half, int at, int frame, int before)
{
    if (at < r.from[half] || at >= r.end[half]) return 0;
    return !job.causal || (before ? frame <= r.frame[half] : frame >= r.frame[half]);
}

static inline dim3 lsh_tile_grid(const lsh_job &job, const lin_segments *segments)
{
    return dim3((unsigned)segments->B * (unsigned)job.H, lin_cuda_blocks((size_t)segments->longest, TILE));
}

// lsh_backward.cu
void lin_lsh_backward_tiles(lin_exec *exec, lsh_job &job, const lin_segments *segments);

#endif
