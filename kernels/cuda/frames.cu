// Operations on frames before the network: stacking, positions, reading a cache, prepending a stream's kept rows. All of them
// move memory: each block owns a tile of rows and first finds their utterances; its threads own the columns, four at a time if
// the addresses allow it.
#include "kernels/acoustics.h"
#include "kernels/cuda/cuda.h"

#include <math.h>

enum {
    FRAMES_THREADS = 256,
    TILE_ROWS = 32,   // at most, of one block; the limit of lin_utterances_of_tile
    MANY_ROWS = 8192, // from here on tiles are whole; with fewer rows, more blocks are faster
    FEW_ROWS = 4,
    TURNS = 32,          // rows after which sine and cosine are computed directly again
    WARP_CARRIES = 1024, // most elements of an utterance that a warp copies, and that a block copies
    BLOCK_CARRIES = 65536,
};

static int tile_rows(int rows) { return rows < MANY_ROWS ? FEW_ROWS : TILE_ROWS; }

/* ---- stacking -------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ float normalised(float x, float mean, float istd) { return (x - mean) * istd; }

static __device__ __forceinline__ float4 normalised(float4 x, float4 mean, float4 istd)
{
    return make_float4(normalised(x.x, mean.x, istd.x), normalised(x.y, mean.y, istd.y), normalised(x.z, mean.z, istd.z),
                       normalised(x.w, mean.w, istd.w));
}

// T is float or float4, D the width of a frame in elements of T.
template <typename T>
static __global__ void stack_rows(T *y, const T *__restrict__ x, const T *__restrict__ mean, const T *__restrict__ istd,
                                  const int *in, const int *out, int B, int rows, int tile, unsigned D, int stack, int ahead)
{
    LIN_SHARED(int, utterances);
    const int row0 = (int)blockIdx.x * tile, n = min(tile, min(rows, out[B]) - row0);
    if (n <= 0) return; // rows in no utterance
    if (threadIdx.x < 32) lin_utterances_of_tile(utterances, out, B, row0, n);
    __syncthreads();
    const unsigned width = (unsigned)(stack + ahead) * D;
    for (unsigned i = threadIdx.x; i < (unsigned)n * width; i += blockDim.x) {
        const unsigned r = i / width, at = i % width, s = at / D, d = at % D;
        const int b = utterances[r], first = in[b], last = in[b + 1] - first - 1;
        const int from = min((row0 + (int)r - out[b]) * stack + (int)s, last);
        y[(size_t)(row0 + (int)r) * width + at] = normalised(x[(size_t)(first + from) * D + d], mean[d], istd[d]);
    }
}

void lin_cuda_stack_frames(lin_exec *exec, float *y, const float *x, const float *mean, const float *istd, const lin_segments *in,
                           const lin_segments *out, int D, int stack, int ahead)
{
    if (out->rows < 1 || D < 1 || stack + ahead < 1) return;
    const int tile = tile_rows(out->rows);
    const unsigned blocks = lin_cuda_blocks((size_t)out->rows, (size_t)tile);
    const size_t shared = TILE_ROWS * sizeof(int);
    if (D % 4 == 0 && lin_cuda_aligned(y, x, mean, istd))
        LIN_LAUNCH(exec, (stack_rows<float4>), blocks, FRAMES_THREADS, shared, (float4 *)y, (const float4 *)x,
                   (const float4 *)mean, (const float4 *)istd, in->offsets, out->offsets, out->B, out->rows, tile,
                   (unsigned)D / 4, stack, ahead);
    else
        LIN_LAUNCH(exec, (stack_rows<float>), blocks, FRAMES_THREADS, shared, y, x, mean, istd, in->offsets, out->offsets, out->B,
                   out->rows, tile, (unsigned)D, stack, ahead);
}

/* ---- positions ------------------------------------------------------------------------------------------------------------- */

// Rows before an utterance's first, in states[b][at].
static __device__ __forceinline__ double rows_before(float *const *states, size_t at, int b)
{
    return states && states[b] ? (double)states[b][at] : 0;
}

// A thread owns a pair of columns in TURNS rows. The angle grows by a constant from row to row, so sine and cosine are rotated.
// In double: an angle reaches 2^24, and its remainder after whole turns needs an error below 1e-7.
static __global__ void add_sinusoid(float *x, const int *offsets, int B, int rows, int C, float *const *states, size_t at)
{
    const int row0 = (int)blockIdx.x * TURNS, end = min(row0 + TURNS, min(rows, offsets[B]));
    const int pair = (int)(blockIdx.y * blockDim.x + threadIdx.x);
    if (row0 >= end) return; // rows in no utterance
    int b = lin_utterance_of(offsets, B, row0);
    if (pair >= C / 2) return;
    // Angles in half turns: w / pi, with w = 10000^(-2 pair / C).
    const double step = exp2(-2.0 * pair / C * 13.287712379549449) * 0.31830988618379067;
    double phase = (row0 - offsets[b] + rows_before(states, at, b)) * step;
    double s, c, step_s, step_c;
    sincospi(phase - 2 * rint(phase / 2), &s, &c);
    sincospi(step, &step_s, &step_c);
    int next = offsets[b + 1];
    for (int row = row0; row < end; row++) {
        if (row == next) { // the next utterance that has rows begins
            do next = offsets[++b + 1];
            while (row == next);
            phase = rows_before(states, at, b) * step;
            sincospi(phase - 2 * rint(phase / 2), &s, &c);
        }
        float *to = x + (size_t)row * (size_t)C + 2 * (size_t)pair;
        to[0] += (float)s;
        to[1] += (float)c;
        const double turned = s * step_c + c * step_s;
        c = c * step_c - s * step_s;
        s = turned;
    }
}

static __global__ void count_rows(float *const *states, size_t at, const int *offsets, int B)
{
    const int b = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const float most = 16777216; // floats count exactly up to this
    if (b < B && states[b]) states[b][at] = fminf(states[b][at] + (float)(offsets[b + 1] - offsets[b]), most);
}

void lin_cuda_add_sinusoid(lin_exec *exec, float *x, const lin_segments *segments, int C, float *const *states, size_t at)
{
    if (segments->rows < 1 || C < 2) return;
    const unsigned pairs = (unsigned)C / 2, threads = pairs < 128 ? (pairs + 31) / 32 * 32 : 128;
    const dim3 grid(lin_cuda_blocks((size_t)segments->rows, TURNS), lin_cuda_blocks(pairs, threads));
    LIN_LAUNCH(exec, add_sinusoid, grid, threads, 0, x, segments->offsets, segments->B, segments->rows, C, states, at);
    if (states)
        LIN_LAUNCH(exec, count_rows, lin_cuda_blocks((size_t)segments->B, 128), 128, 0, states, at, segments->offsets,
                   segments->B);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ int token_of(const float *x, int D, int n)
{
    float sum = 0;
    for (int d = 0; d < D; d++) sum += x[d];
    return (int)fminf(fmaxf(floorf(sum + 0.5f), 0.0f), (float)(n - 1));
}

static __global__ void embed(float *y, const float *x, const float *table, size_t count, int D, int n, int C)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = i / (size_t)C;
    if (i < count) y[i] = table[(size_t)token_of(x + row * (size_t)D, D, n) * (size_t)C + (i - row * (size_t)C)];
}

// A block per token and tile of columns adds the token's rows in order, so that the sum is the same each time.
static __global__ void embed_gradient(float *dtable, const float *dy, const float *x, int rows, int D, int n, int C)
{
    const int token = (int)blockIdx.x, c = (int)(blockIdx.y * blockDim.x + threadIdx.x);
    float sum = 0;
    if (c >= C) return;
    for (int r = 0; r < rows; r++)
        if (token_of(x + (size_t)r * (size_t)D, D, n) == token) sum += dy[(size_t)r * (size_t)C + (size_t)c];
    dtable[(size_t)token * (size_t)C + (size_t)c] += sum;
}

void lin_cuda_embed_forward(lin_exec *exec, float *y, const float *x, const float *table, int rows, int D, int n, int C)
{
    const size_t count = (size_t)rows * (size_t)C;
    if (count) LIN_LAUNCH(exec, embed, lin_cuda_blocks(count, 256), 256, 0, y, x, table, count, D, n, C);
}

void lin_cuda_embed_backward(lin_exec *exec, float *dtable, const float *dy, const float *x, int rows, int D, int n, int C)
{
    if (rows < 1) return;
    const dim3 grid((unsigned)n, lin_cuda_blocks((size_t)C, 128));
    LIN_LAUNCH(exec, embed_gradient, grid, 128, 0, dtable, dy, x, rows, D, n, C);
}

/* ---- utterances out of a cache --------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ int is_masked(const lin_mask *masks, const lin_gather *item, int t, int d)
{
    const int end = item->first_mask + item->n_masks;
    for (int m = item->first_mask; m < end; m++)
        if (t >= masks[m].t0 && t < masks[m].t1 && d >= masks[m].d0 && d < masks[m].d1) return 1;
    return 0;
}

static __device__ __forceinline__ float decoded(const lin_gather *item, float code, int d, int D)
{
    return (item->steps[d] + item->steps[D + d] * code - item->mean[d]) * item->istd[d];
}

// The code interpolated at `share` between a frame and the next, D codes later. Features are linear in their codes.
static __device__ __forceinline__ float code_between(const unsigned char *code, float share, int D)
{
    const float from = (float)*code;
    return share > 0 ? from + share * ((float)code[D] - from) : from;
}

static __device__ __forceinline__ float4 four_between(const unsigned char *codes, float share, int D)
{
    if (share > 0)
        return make_float4(code_between(codes, share, D), code_between(codes + 1, share, D), code_between(codes + 2, share, D),
                           code_between(codes + 3, share, D));
    if ((uintptr_t)codes & 3) return make_float4(codes[0], codes[1], codes[2], codes[3]);
    const uchar4 four = *(const uchar4 *)codes;
    return make_float4(four.x, four.y, four.z, four.w);
}

// WIDE: four columns per thread, x aligned to 16 bytes and D a multiple of four.
template <int WIDE>
static __global__ void gather_rows(float *x, const lin_gather *items, const lin_mask *masks, const int *offsets, int B, int rows,
                                   int tile, int D)
{
    LIN_SHARED(int, utterances);
    const int row0 = (int)blockIdx.x * tile, n = min(tile, min(rows, offsets[B]) - row0);
    if (n <= 0) return; // rows in no utterance
    if (threadIdx.x < 32) lin_utterances_of_tile(utterances, offsets, B, row0, n);
    __syncthreads();
    const unsigned columns = (unsigned)D / (WIDE ? 4 : 1);
    for (unsigned i = threadIdx.x; i < (unsigned)n * columns; i += blockDim.x) {
        const int r = (int)(i / columns), d = (int)(i % columns) * (WIDE ? 4 : 1), b = utterances[r], t = row0 + r - offsets[b];
        const lin_gather *item = items + b;
        if (item->codes && item->acoustics) continue; // hear_utterances writes it
        float share;
        const size_t to = (size_t)(row0 + r) * (size_t)D + (size_t)d,
                     from = (size_t)lin_gather_between(item, t, offsets[b + 1] - offsets[b], &share) * (size_t)D + (size_t)d;
        const unsigned char *codes = item->codes ? item->codes + from : NULL;
        if (!WIDE) {
            x[to] = !codes || is_masked(masks, item, t, d) ? 0.0f : decoded(item, code_between(codes, share, D), d, D);
            continue;
        }
        float4 y = make_float4(0, 0, 0, 0);
        if (codes) {
            const float4 four = four_between(codes, share, D);
            if (!is_masked(masks, item, t, d)) y.x = decoded(item, four.x, d, D);
            if (!is_masked(masks, item, t, d + 1)) y.y = decoded(item, four.y, d + 1, D);
            if (!is_masked(masks, item, t, d + 2)) y.z = decoded(item, four.z, d + 2, D);
            if (!is_masked(masks, item, t, d + 3)) y.w = decoded(item, four.w, d + 3, D);
        }
        *(float4 *)(x + to) = y;
    }
}

static __device__ __forceinline__ float power_of(const unsigned char *codes, const float *steps, size_t at, int d, int D)
{
    return expf(fminf(steps[d] + steps[D + d] * (float)codes[at], LIN_ACOUSTICS_MOST));
}

// Utterances with acoustics. A thread owns a bin of an utterance, over all frames: the late energy follows from that of the frame
// before.
static __global__ void hear_utterances(float *x, const lin_gather *items, const lin_mask *masks, const int *offsets, int D)
{
    const lin_gather *item = items + blockIdx.x;
    const lin_acoustics *a = item->acoustics;
    const int T = offsets[blockIdx.x + 1] - offsets[blockIdx.x], d = (int)(blockIdx.y * blockDim.x + threadIdx.x);
    if (!a || !item->codes || d >= D) return;
    const float pass = a->bins[d], hiss = a->bins[D + d], spread = a->bins[2 * D + d], *shapes = a->bins + 4 * D + d;
    const float mean = item->mean[d], istd = item->istd[d];
    int low, high;
    const float part = lin_acoustics_between(a, d, D, &low, &high);
    const float least[2] = {item->steps[low], item->steps[high]}, step[2] = {item->steps[D + low], item->steps[D + high]};
    float late = 0, before = 0;
    x += (size_t)offsets[blockIdx.x] * (size_t)D + (size_t)d;
    for (int t = 0; t < T; t++, x += D) {
        const size_t at = (size_t)t * (size_t)D + (size_t)d;
        int shape;
        const float noise = a->noise * expf(lin_acoustics_level(a, t, &shape));
        float share;
        const unsigned char *codes = item->codes + (size_t)lin_gather_between(item, t, T, &share) * (size_t)D;
        const float from = least[0] + step[0] * code_between(codes + low, share, D),
                    to = least[1] + step[1] * code_between(codes + high, share, D);
        const float p = expf(fminf(from + part * (to - from), LIN_ACOUSTICS_MOST));
        const float root = lin_acoustics_root(a, spread, at), g = root * root * root;
        late = a->decay * late + (1 - a->decay) * before;
        before = p;
        float voices = 0;
        for (int v = 0; v < a->n_voices; v++) {
            const lin_acoustics_voice *voice = &a->voices[v];
            const size_t frame = (size_t)lin_acoustics_voice_frame(voice, t);
            voices += voice->scale * power_of(voice->codes, voice->steps, frame * (size_t)D + (size_t)d, d, D);
        }
        const float other = a->speech * a->room * late + noise * shapes[(size_t)shape * (size_t)D];
        const float y = pass * lin_acoustics_meet(a, spread, at, a->speech * p, other, voices, g) + hiss * g;
        *x = is_masked(masks, item, t, d) ? 0.0f : (logf(fmaxf(y, LIN_ACOUSTICS_FLOOR)) - mean) * istd;
    }
}

void lin_cuda_gather(lin_exec *exec, float *x, const lin_gather *items, const lin_mask *masks, const lin_segments *segments,
                     int D)
{
    const int rows = segments->rows;
    if (rows < 1 || D < 1) return;
    const int tile = tile_rows(rows);
    const unsigned blocks = lin_cuda_blocks((size_t)rows, (size_t)tile);
    const size_t shared = TILE_ROWS * sizeof(int);
    if (D % 4 == 0 && lin_cuda_aligned(x))
        LIN_LAUNCH(exec, (gather_rows<1>), blocks, FRAMES_THREADS, shared, x, items, masks, segments->offsets, segments->B, rows,
                   tile, D);
    else
        LIN_LAUNCH(exec, (gather_rows<0>), blocks, FRAMES_THREADS, shared, x, items, masks, segments->offsets, segments->B, rows,
                   tile, D);
    if (segments->B < 1) return;
    const dim3 grid((unsigned)segments->B, lin_cuda_blocks((size_t)D, 64));
    LIN_LAUNCH(exec, hear_utterances, grid, 64, 0, x, items, masks, segments->offsets, D);
}

/* ---- the kept rows of streams ---------------------------------------------------------------------------------------------- */

// One utterance per group of threads. The new tail is copied from y, so the old one is no longer needed when it is overwritten.
// PARTS: 1 y, 2 the tails, 3 both, which needs the group's barrier between.
template <int GROUP, int PARTS>
static __global__ void carry_utterances(float *y, const int *out, const float *x, const int *in, float *const *tails, size_t at,
                                        const int *have, const int *keep, int B, int width)
{
    const size_t lane = threadIdx.x % GROUP, w = (size_t)width;
    const size_t b = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / GROUP;
    if (b >= (size_t)B) return; // the whole group returns
    const size_t rows = (size_t)(out[b + 1] - out[b]), kept = (size_t)have[b] * w, count = rows * w;
    float *to = y + (size_t)out[b] * w;
    if (PARTS & 1) {
        const float *from = x + (size_t)in[b] * w, *tail = kept ? tails[b] + at : NULL;
        for (size_t i = lane + (size_t)blockIdx.y * GROUP; i < count; i += (size_t)gridDim.y * GROUP)
            to[i] = i < kept ? tail[i] : from[i - kept];
    }
    if (PARTS == 3 && GROUP == 32) __syncwarp();
    if (PARTS == 3 && GROUP > 32) __syncthreads();
    if (PARTS & 2) {
        const size_t n = (size_t)keep[b] * w;
        float *tail = n ? tails[b] + at : NULL;
        for (size_t i = lane + (size_t)blockIdx.y * GROUP; i < n; i += (size_t)gridDim.y * GROUP) tail[i] = to[count - n + i];
    }
}

void lin_cuda_carry(lin_exec *exec, float *y, const lin_segments *out, const float *x, const lin_segments *in,
                    float *const *tails, size_t at, const int *have, const int *keep, int width)
{
    const int B = out->B;
    if (B < 1 || width < 1) return;
    const size_t most = (size_t)out->longest * (size_t)width;
    if (most <= WARP_CARRIES) {
        LIN_LAUNCH(exec, (carry_utterances<32, 3>), lin_cuda_blocks((size_t)B, FRAMES_THREADS / 32), FRAMES_THREADS, 0, y,
                   out->offsets, x, in->offsets, tails, at, have, keep, B, width);
    } else if (most <= BLOCK_CARRIES) {
        LIN_LAUNCH(exec, (carry_utterances<FRAMES_THREADS, 3>), (unsigned)B, FRAMES_THREADS, 0, y, out->offsets, x, in->offsets,
                   tails, at, have, keep, B, width);
    } else { // several blocks copy a long utterance, and blocks cannot synchronise: two launches
        const size_t parts = (most + 16383) / 16384;
        const dim3 grid((unsigned)B, (unsigned)(parts < 1024 ? parts : 1024));
        LIN_LAUNCH(exec, (carry_utterances<FRAMES_THREADS, 1>), grid, FRAMES_THREADS, 0, y, out->offsets, x, in->offsets, tails,
                   at, have, keep, B, width);
        LIN_LAUNCH(exec, (carry_utterances<FRAMES_THREADS, 2>), grid, FRAMES_THREADS, 0, y, out->offsets, x, in->offsets, tails,
                   at, have, keep, B, width);
    }
}

/* ---- filterbanks ----------------------------------------------------------------------------------------------------------- */

// Log-mel filterbanks as frontend/fbank.h defines them (Kaldi's), for thousands of streams at once.
//
// One warp computes a frame: the window's samples, mean subtracted, pre-emphasised and windowed, go into shared memory; then a
// real transform of n_fft points as a complex one of half as many (Stockham's form: steps of radix four, and one of radix two if
// their number is odd, from one buffer into the other, so that nothing is reordered); powers; the sums under the triangles, one
// lane each.
//
// Pre-emphasis removes a strong low tone by a subtraction whose rounding error would hide faint sound above it: done in double.

enum {
    MOST_WARPS = 8,
    FEW_FRAMES = 4,           // per warp, which finds the utterance of its first frame and fills a share of the block's table
    SHARED_BYTES = 48 * 1024, // available without a request
};

typedef struct fbank_job {
    float *y;
    const float *x;
    const int *out, *in;
    int B, rows, each, half, steps_of_two; // each: frames of a warp; half: points of the complex transform, 2^steps_of_two
    lin_fbank_table table;
} fbank_job;

static __device__ __forceinline__ float2 multiplied(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Sample k of a window as the transform reads it: wave[k] = (x[k] - mean - a (x[k-1] - mean)) window[k].
static __device__ __forceinline__ void shape_window(float *wave, const float *x, int left, const lin_fbank_table &table)
{
    const int lane = (int)(threadIdx.x % 32), n = table.window_samples;
    double sum = 0;
    for (int k = lane; k < n && k < left; k += 32) sum += (double)x[k];
    sum = lin_warp_sum(sum);
    const double a = (double)table.preemphasis, offset = (1 - a) * sum / n;
    for (int k = lane; k < table.n_fft; k += 32) {
        float shaped = 0;
        if (k < n && k < left) // the first sample is its own predecessor
            shaped = (float)(((double)x[k] - a * (double)x[k > 0 ? k - 1 : 0] - offset) * (double)table.window[k]);
        wave[k] = shaped;
    }
}

// The transform of `from`; returns the buffer with the result. turns[k] = exp(-2 pi i k / (2 half)).
static __device__ __forceinline__ float2 *transform(float2 *from, float2 *to, const float2 *turns, int half, int steps_of_two)
{
    const int lane = (int)(threadIdx.x % 32);
    int done = 1; // length of the finished transforms, half / done of which are interleaved
    if (steps_of_two % 2) {
        for (int i = lane; i < half / 2; i += 32) {
            const float2 a = from[i], b = from[i + half / 2];
            to[2 * i] = make_float2(a.x + b.x, a.y + b.y);
            to[2 * i + 1] = make_float2(a.x - b.x, a.y - b.y);
        }
        __syncwarp();
        float2 *other = from;
        from = to;
        to = other;
        done = 2;
    }
    for (; done < half; done *= 4) {
        const int quarter = half / 4, turn = half / (2 * done); // 2 half / (4 done)
        for (int i = lane; i < quarter; i += 32) {
            const int k = i & (done - 1), at = ((i - k) << 2) + k;
            const float2 a = from[i], b = multiplied(from[i + quarter], turns[k * turn]),
                         c = multiplied(from[i + 2 * quarter], turns[2 * k * turn]),
                         d = multiplied(from[i + 3 * quarter], turns[3 * k * turn]);
            const float2 ac = make_float2(a.x + c.x, a.y + c.y), a_c = make_float2(a.x - c.x, a.y - c.y);
            const float2 bd = make_float2(b.x + d.x, b.y + d.y), b_d = make_float2(b.x - d.x, b.y - d.y);
            to[at] = make_float2(ac.x + bd.x, ac.y + bd.y);
            to[at + done] = make_float2(a_c.x + b_d.y, a_c.y - b_d.x);
            to[at + 2 * done] = make_float2(ac.x - bd.x, ac.y - bd.y);
            to[at + 3 * done] = make_float2(a_c.x - b_d.y, a_c.y + b_d.x);
        }
        __syncwarp();
        float2 *other = from;
        from = to;
        to = other;
    }
    return from;
}

// power[k], k = 0 .. half, of the real signal whose even and odd samples were the real and imaginary parts of the transform z.
static __device__ __forceinline__ void powers(float *power, const float2 *z, const float2 *turns, int half)
{
    for (int k = (int)(threadIdx.x % 32); k <= half; k += 32) {
        const float2 a = z[k & (half - 1)], b = z[(half - k) & (half - 1)];
        const float2 even = make_float2(0.5f * (a.x + b.x), 0.5f * (a.y - b.y)),
                     odd = make_float2(0.5f * (a.y + b.y), 0.5f * (b.x - a.x));
        const float2 turned = multiplied(odd, turns[k]);
        const float re = even.x + turned.x, im = even.y + turned.y;
        power[k] = re * re + im * im;
    }
}

// Shared memory: turns [n_fft], then two buffers [half] for each warp.
static __global__ void __launch_bounds__(32 * MOST_WARPS) fbank_frames(fbank_job job)
{
    LIN_SHARED(float2, turns);
    const int half = job.half, lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);
    float2 *first = turns + 2 * half + (size_t)(2 * half) * (size_t)warp, *second = first + half;
    for (int k = (int)threadIdx.x; k < 2 * half; k += (int)blockDim.x) {
        float s, c;
        sincospif((float)k / (float)half, &s, &c);
        turns[k] = make_float2(c, -s);
    }
    __syncthreads();
    const long long start = ((long long)blockIdx.x * (blockDim.x / 32) + warp) * job.each;
    const int rows = min(job.rows, job.out[job.B]); // rows beyond are in no utterance
    if (start >= rows) return;                      // the whole warp returns
    const int row0 = (int)start, end = min(row0 + job.each, rows);
    int b = lin_utterance_of(job.out, job.B, row0);
    for (int row = row0; row < end; row++) {
        while (row >= job.out[b + 1]) b++;
        const long long from = (long long)(row - job.out[b]) * job.table.hop_samples, left = job.in[b + 1] - job.in[b] - from;
        shape_window((float *)first, job.x + job.in[b] + from, (int)left, job.table);
        __syncwarp();
        const float2 *z = transform(first, second, turns, half, job.steps_of_two);
        float *power = (float *)(z == first ? second : first);
        // half + 1 floats: a buffer has room for 2 half
        powers(power, z, turns, half);
        __syncwarp();
        for (int d = lane; d < job.table.D; d += 32) {
            const float *mel = job.table.mel + (size_t)d * (size_t)(half + 1);
            const int to = job.table.mel_to[d];
            float energy = 0;
            for (int i = job.table.mel_from[d]; i < to; i++) energy += mel[i] * power[i];
            job.y[(size_t)row * (size_t)job.table.D + (size_t)d] = logf(energy > job.table.floor ? energy : job.table.floor);
        }
        __syncwarp(); // before the buffers are written again
    }
}

void lin_cuda_fbank(lin_exec *exec, float *y, const lin_segments *out, const float *x, const lin_segments *in,
                    const lin_fbank_table *table)
{
    if (out->rows < 1) return;
    fbank_job job = {y, x, out->offsets, in->offsets, out->B, out->rows, FEW_FRAMES, table->n_fft / 2, 0, *table};
    while (1 << job.steps_of_two < job.half) job.steps_of_two++;
    const size_t buffers = (size_t)table->n_fft * sizeof(float2); // the turns, and the same size for each warp
    int warps = MOST_WARPS;
    while (warps > 1 && buffers * (size_t)(warps + 1) > SHARED_BYTES) warps /= 2;
    const size_t shared = buffers * (size_t)(warps + 1);
    if (shared > SHARED_BYTES && !LIN_ALLOW_SHARED(exec, fbank_frames, shared)) return;
    // A block computes its own table of turns, so warps process more frames if there are enough for all processors.
    const size_t enough = (size_t)exec->multiprocessors * 16;
    while (job.each < 32 && (size_t)out->rows / (size_t)(job.each * warps) > enough) job.each *= 2;
    const unsigned blocks = lin_cuda_blocks((size_t)out->rows, (size_t)(job.each * warps));
    LIN_LAUNCH(exec, fbank_frames, blocks, 32 * (unsigned)warps, shared, job);
}
