/*
 * fbank.cu - log-mel filterbanks as frontend/fbank.h defines them (Kaldi's), for thousands of streams at once.
 *
 * One warp computes a frame: the window's samples, mean subtracted, pre-emphasised and windowed, go into shared memory; then a
 * real transform of n_fft points as a complex one of half as many (Stockham's form: steps of radix four, and one of radix two if
 * their number is odd, from one buffer into the other, so that nothing is reordered); powers; the sums under the triangles, one
 * lane each.
 *
 * Pre-emphasis removes a strong low tone by a subtraction whose rounding error would hide faint sound above it: done in double.
 */
#include <math.h>

#include "kernels/cuda/segments.h"

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
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
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
        __syncwarp(); // the buffers are written again
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
