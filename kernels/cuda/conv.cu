// Depthwise convolution. A thread owns a channel and processes the frames of a tile in order, so that a warp reads 32
// channels of a frame at once; the first-level cache serves what neighbouring rows share. Eight rows times eight taps are
// computed at a time: 64 products per 8 weights and at most 15 frames loaded.
#include "kernels/cuda/cuda.h"

enum {
    STEP = 8,       // rows, and taps, processed together
    TILE_ROWS = 64, // rows of a tile; at least as many as a tail has, so that only an utterance's first tile reads it
    SMALL_TILE = 16,
    FEW_TILES = 1024, // if there are fewer whole tiles, tiles are made smaller, where tails allow it
    CHANNELS = 256,   // of a block, at most
    PARTIALS = 512,   // partial sums for w and b of the backward pass, added up afterwards
};

// The data of a thread of a tile. A launch has `lanes` tiles per block if there are few channels.
typedef struct conv_shape {
    const int *offsets;
    int B, C, K, after, tile, tiles, width; // tiles of the longest utterance; width: threads along the channels
} conv_shape;

static unsigned threads_for(int C)
{
    const unsigned chunks = lin_cuda_blocks((size_t)C, CHANNELS), each = ((unsigned)C + chunks - 1) / chunks;
    return (each + 31) / 32 * 32;
}

static conv_shape shape_of(const lin_segments *segments, int C, int K, int after, int tails)
{
    const int longest = segments->longest < segments->rows ? segments->longest : segments->rows;
    conv_shape s = {segments->offsets, segments->B, C, K, after, TILE_ROWS, 0, (int)threads_for(C)};
    s.tiles = (longest + TILE_ROWS - 1) / TILE_ROWS;
    if (s.tiles < 1) s.tiles = 1; // tails must still be updated: there is a thread for every utterance
    if ((size_t)s.tiles * (size_t)s.B < FEW_TILES && !(tails && K - 1 > SMALL_TILE)) {
        s.tile = SMALL_TILE;
        s.tiles = (longest + SMALL_TILE - 1) / SMALL_TILE;
        if (s.tiles < 1) s.tiles = 1;
    }
    return s;
}

// Input frame t of a channel; t < 0 reads the tail [K-1, C], whose last row is frame -1. x, tail: of that channel.
static __device__ __forceinline__ float frame(const float *__restrict__ x, const float *tail, int t, int T, size_t C, int K)
{
    if (t >= 0) return t < T ? x[(size_t)t * C] : 0.0f;
    return tail ? tail[(size_t)(K - 1 + t) * C] : 0.0f;
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

// Updates the tail after T more frames of its channel: shifts its last frames up, then appends the newest of x. STEP frames are
// in flight at once; a row is read before any row at or below it is written.
static __device__ __forceinline__ void move_tail(float *tail, const float *__restrict__ x, int T, size_t C, int K)
{
    for (int r = 0; r < K - 1; r += STEP) {
        float moved[STEP];
#pragma unroll
        for (int i = 0; i < STEP; i++) moved[i] = r + i < K - 1 ? frame(x, tail, T - K + 1 + r + i, T, C, K) : 0.0f;
#pragma unroll
        for (int i = 0; i < STEP; i++)
            if (r + i < K - 1) tail[(size_t)(r + i) * C] = moved[i];
    }
}

static __global__ void __launch_bounds__(CHANNELS)
    conv_rows(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias,
              conv_shape s, float *const *tails, size_t at)
{
    const size_t unit = (size_t)blockIdx.x * (blockDim.x / (unsigned)s.width) + threadIdx.x / (unsigned)s.width;
    const int b = (int)(unit / (size_t)s.tiles), t0 = (int)(unit % (size_t)s.tiles) * s.tile;
    const int c = (int)(blockIdx.y * (unsigned)s.width + threadIdx.x % (unsigned)s.width), K = s.K;
    if (b >= s.B || c >= s.C) return;
    const int first = s.offsets[b], T = s.offsets[b + 1] - first;
    if (t0 >= T) return;
    const size_t C = (size_t)s.C;
    const float *in = x + (size_t)first * C + (size_t)c, *taps = w + c;
    float *out = y + (size_t)first * C + (size_t)c, *tail = tails && t0 == 0 ? tails[b] : NULL;
    if (tail) tail += at + (size_t)c;
    const int end = min(t0 + s.tile, T);
    for (int t = t0; t < end; t += STEP) {
        float sum[STEP], window[2 * STEP]; // window[i]: frame t + after - K + 1 + j + i
#pragma unroll
        for (int i = 0; i < STEP; i++) sum[i] = bias[c];
#pragma unroll
        for (int i = 0; i < STEP; i++) window[i + STEP] = frame(in, tail, t + s.after - K + 1 + i, T, C, K);
        for (int j = 0; j < K; j += STEP) {
            float weights[STEP];
#pragma unroll
            for (int i = 0; i < STEP; i++) window[i] = window[i + STEP];
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                // Frames after the last tap of row t+7 would be used by taps from K on, which do not exist.
                window[i + STEP] = j + i < K - 1 ? frame(in, tail, t + s.after - K + 1 + j + STEP + i, T, C, K) : 0.0f;
                weights[i] = j + i < K ? taps[(size_t)(j + i) * C] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < STEP; i++)
                if (j + i < K) { // a weight of 0 instead would propagate NaNs
#pragma unroll
                    for (int r = 0; r < STEP; r++) sum[r] = fmaf(weights[i], window[r + i], sum[r]);
                }
        }
#pragma unroll
        for (int i = 0; i < STEP; i++)
            if (t + i < end) out[(size_t)(t + i) * C] = in[(size_t)(t + i) * C] + sum[i];
    }
    if (tail) move_tail(tail, in, T, C, K); // no other thread uses this channel of the tail
}

void lin_cuda_conv_forward(lin_exec *exec, float *y, const float *x, const float *w, const float *bias,
                           const lin_segments *segments, int C, int K, int after, float *const *tails, size_t at)
{
    if (segments->B < 1 || segments->rows < 1 || C < 1) return;
    const conv_shape s = shape_of(segments, C, K, after, tails != NULL);
    const unsigned lanes = CHANNELS / (unsigned)s.width;
    const dim3 grid(lin_cuda_blocks((size_t)s.B * (size_t)s.tiles, lanes), lin_cuda_blocks((size_t)C, (size_t)s.width));
    LIN_LAUNCH(exec, conv_rows, grid, lanes * (unsigned)s.width, 0, y, x, w, bias, s, tails, at);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// dx of rows t .. t+7: dy plus, in the other direction, w times dy of rows t-after .. t+7+K-1-after.
static __device__ __forceinline__ void backward_rows(float *dx, const float *__restrict__ dy, const float *__restrict__ taps,
                                                     int t, int end, int T, size_t C, int K, int after)
{
    float sum[STEP], window[2 * STEP]; // window[i]: dy of row t - after + j + i, tap K-1-j
#pragma unroll
    for (int i = 0; i < STEP; i++) {
        window[i + STEP] = frame(dy, NULL, t - after + i, T, C, K);
        sum[i] = after ? frame(dy, NULL, t + i, T, C, K) : window[i + STEP];
    }
    for (int j = 0; j < K; j += STEP) {
        float weights[STEP];
#pragma unroll
        for (int i = 0; i < STEP; i++) window[i] = window[i + STEP];
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            window[i + STEP] = j + i < K - 1 ? frame(dy, NULL, t - after + j + STEP + i, T, C, K) : 0.0f;
            weights[i] = j + i < K ? taps[(size_t)(K - 1 - j - i) * C] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < STEP; i++)
            if (j + i < K) {
#pragma unroll
                for (int r = 0; r < STEP; r++) sum[r] = fmaf(weights[i], window[r + i], sum[r]);
            }
    }
#pragma unroll
    for (int i = 0; i < STEP; i++)
        if (t + i < end) dx[(size_t)(t + i) * C] = sum[i];
}

// A thread processes every n_partials-th tile, in order, and keeps the sums of its channel: dw of up to TAPS taps, and db.
template <int TAPS>
static __global__ void __launch_bounds__(CHANNELS)
    conv_backward_tiles(float *__restrict__ dx, float *__restrict__ partials, const float *__restrict__ dy,
                        const float *__restrict__ x, const float *__restrict__ w, conv_shape s, int n_partials)
{
    const int lane = (int)(threadIdx.x / (unsigned)s.width),
              partial = (int)blockIdx.x * (int)(blockDim.x / (unsigned)s.width) + lane;
    const int c = (int)(blockIdx.y * (unsigned)s.width + threadIdx.x % (unsigned)s.width), K = s.K;
    if (partial >= n_partials || c >= s.C) return;
    const size_t C = (size_t)s.C, units = (size_t)s.B * (size_t)s.tiles;
    float dw[TAPS], db = 0;
#pragma unroll
    for (int j = 0; j < TAPS; j++) dw[j] = 0;
    for (size_t unit = (size_t)partial; unit < units; unit += (size_t)n_partials) {
        const int b = (int)(unit / (size_t)s.tiles), t0 = (int)(unit % (size_t)s.tiles) * s.tile;
        const int first = s.offsets[b], T = s.offsets[b + 1] - first, end = min(t0 + s.tile, T);
        const float *in = x + (size_t)first * C + (size_t)c, *up = dy + (size_t)first * C + (size_t)c;
        for (int t = t0; t < end; t += STEP) {
            backward_rows(dx + (size_t)first * C + (size_t)c, up, w + c, t, end, T, C, K, s.after);
            float u[STEP], window[2 * STEP]; // window[i]: frame t + after - K + 1 + j + i
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                u[i] = t + i < end ? up[(size_t)(t + i) * C] : 0.0f;
                db += u[i];
                window[i + STEP] = frame(in, NULL, t + s.after - K + 1 + i, T, C, K);
            }
#pragma unroll
            for (int j = 0; j < TAPS; j += STEP) {
                if (j >= K) break;
#pragma unroll
                for (int i = 0; i < STEP; i++) window[i] = window[i + STEP];
#pragma unroll
                for (int i = 0; i < STEP; i++)
                    window[i + STEP] = j + i < K - 1 ? frame(in, NULL, t + s.after - K + 1 + j + STEP + i, T, C, K) : 0.0f;
#pragma unroll
                for (int i = 0; i < STEP; i++)
#pragma unroll
                    for (int r = 0; r < STEP; r++) dw[j + i] = fmaf(u[r], window[r + i], dw[j + i]); // taps from K on: not stored
            }
        }
    }
    float *to = partials + (size_t)partial * (size_t)(K + 1) * C + (size_t)c;
#pragma unroll
    for (int j = 0; j < TAPS; j++)
        if (j < K) to[(size_t)j * C] = dw[j];
    to[(size_t)K * C] = db;
}

template <int TAPS>
static void launch_backward(lin_exec *exec, float *dx, float *partials, const float *dy, const float *x, const float *w,
                            const conv_shape &s, int n_partials)
{
    const unsigned lanes = CHANNELS / (unsigned)s.width;
    const dim3 grid(lin_cuda_blocks((size_t)n_partials, lanes), lin_cuda_blocks((size_t)s.C, (size_t)s.width));
    LIN_LAUNCH(exec, (conv_backward_tiles<TAPS>), grid, lanes * (unsigned)s.width, 0, dx, partials, dy, x, w, s, n_partials);
}

void lin_cuda_conv_backward(lin_exec *exec, float *dx, float *dw, float *db, const float *dy, const float *x, const float *w,
                            const lin_segments *segments, int C, int K, int after)
{
    if (segments->B < 1 || segments->rows < 1 || C < 1) return;
    const conv_shape s = shape_of(segments, C, K, after, 0);
    const size_t units = (size_t)s.B * (size_t)s.tiles, size = (size_t)(K + 1) * (size_t)C;
    const int n = units < PARTIALS ? (int)units : PARTIALS;
    float *partials = (float *)lin_cuda_scratch(exec, (size_t)n * size * sizeof(float));
    if (!partials) return;
    if (K <= 8) launch_backward<8>(exec, dx, partials, dy, x, w, s, n);
    else if (K <= 16) launch_backward<16>(exec, dx, partials, dy, x, w, s, n);
    else if (K <= 32) launch_backward<32>(exec, dx, partials, dy, x, w, s, n);
    else launch_backward<64>(exec, dx, partials, dy, x, w, s, n);
    lin_cuda_fold(exec, partials, n, {dw, K * C}, {db, C});
}
