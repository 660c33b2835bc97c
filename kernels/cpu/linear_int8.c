// linear_int8.c - the matrix product of eight-bit operands: packs weights, rounds rows of x to their grids, multiplies by the
// best kernel; see linear_int8.h.
//
// Compiled with -ffp-contract=off: a fused multiply-add would give other bits than a processor without one.
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#ifndef HWCAP2_I8MM // since Linux 5.10
#define HWCAP2_I8MM (1 << 13)
#endif
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#include "base/number.h"
#include "kernels/cpu/linear_int8.h"
#include "kernels/cpu/linear_vectors.h"

/* ---- the loops, for each instruction set ----------------------------------------------------------------------------------- */

// LIN_PER_WORD: elements in a word. SHIFT: of four in a word, what is subtracted from u and zero so that they fit the
// instruction.
#ifndef LIN_PER_WORD
#define LIN_PER_WORD 2
#endif
#define LINEAR(name) LIN_NAME(lin_int8_##name)
#define PAIRS 0
#define TAIL LIN_INT8_TAIL
#define SHIFT 0

#if LIN_WIDTH == 16
#if LIN_PER_WORD == 4
#define vec_fma(a, b, c) (vf)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(a), (__m512i)(b))
#else
#define vec_fma(a, b, c) (vf)_mm512_add_epi32((__m512i)(c), _mm512_madd_epi16((__m512i)(a), (__m512i)(b)))
#endif
#elif LIN_WIDTH == 8
#if LIN_PER_WORD == 4
#define vec_fma(a, b, c) (vf)_mm256_dpbusd_epi32((__m256i)(c), (__m256i)(a), (__m256i)(b))
#else
#define vec_fma(a, b, c) (vf)_mm256_add_epi32((__m256i)(c), _mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#endif
#else
#if LIN_PER_WORD == 4 // of arm64, whose dot product is of signed bytes
#undef SHIFT
#define SHIFT 128
#define vec_factor vec_first
#endif
static inline vf vec_fma(vf a, vf b, vf c)
{
#if defined(__aarch64__) && LIN_PER_WORD == 4
    return (vf)vdotq_laneq_s32((int32x4_t)c, (int8x16_t)b, (int8x16_t)a, 0);
#elif defined(__SSE2__)
    return (vf)_mm_add_epi32((__m128i)c, _mm_madd_epi16((__m128i)a, (__m128i)b));
#elif defined(__wasm_simd128__)
    return (vf)wasm_i32x4_add((v128_t)c, wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b));
#elif defined(__aarch64__)
    const int16x8_t p = (int16x8_t)a, q = (int16x8_t)b;
    const int32x4_t low = vmull_s16(vget_low_s16(p), vget_low_s16(q)), high = vmull_high_s16(p, q);
    return (vf)vaddq_s32((int32x4_t)c, vpaddq_s32(low, high));
#else
    const vi low = (vi)((vu)a << 16) >> 16, other = (vi)((vu)b << 16) >> 16;
    return (vf)((vi)c + low * other + ((vi)a >> 16) * ((vi)b >> 16));
#endif
}
#endif

static inline vf vec_scaled(vf sum, const float *b, size_t b_step, const float *a)
{
    vi whole = (vi)sum;
    if (LIN_PER_WORD == 4) whole -= (vi)vset(a[1]) * (vi)vload(b + b_step);
    return __builtin_convertvector(whole, vf) * vload(b) * vset(a[0]);
}

#include "kernels/cpu/linear_body.h"

/* ---- rows on their grids --------------------------------------------------------------------------------------------------- */

// Maps the bits of a float to an int with the same order, and back: inverts all other bits of negative ones. Infinities and NaNs
// are beyond all finite values.
static inline int32_t in_order(int32_t bits) { return bits ^ (bits >> 31 & 0x7FFFFFFF); }

static inline float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// x + rounder has the nearest whole number of x, ties to even, in its low bits.
static const float rounder = 0x1.8p23F;

typedef struct grid {
    float step, inverse;
    int32_t zero;
} grid;

static grid grid_of(const float *x, int k)
{
    const int32_t infinity = 0x7F800000;
    int32_t lowest = 0, highest = 0;
    for (int t = 0; t < k; t++) {
        const int32_t at = in_order(bits_of(x[t]));
        lowest = at < lowest ? at : lowest;
        highest = at > highest ? at : highest;
    }
    if (highest >= infinity || lowest <= -infinity - 1) return (grid){.step = NAN};
    const float lo = float_of(in_order(lowest));
    const double range = (double)float_of(highest) - (double)lo;
    if (range < 0x1p-100) return (grid){.step = 0};
    grid g = {.step = (float)(range / 255), .inverse = (float)(255 / range)};
    g.zero = bits_of(rounder) - bits_of(lo * g.inverse + rounder);
    return g;
}

#if LIN_PER_WORD == 4
typedef unsigned char element;
#else
typedef int16_t __attribute__((may_alias)) element; // in the place of floats
#endif

void LIN_NAME(lin_int8_round)(float *words, const float *x, int rows, int k)
{
    const int depth = (k + LIN_PER_WORD - 1) / LIN_PER_WORD;
    // The grid of the next row is asked for before this row is rounded, which hides the latency of its divisions.
    grid next = rows > 0 ? grid_of(x, k) : (grid){0};
    for (; rows > 0; rows--, x += k, words += depth + TAIL) {
        const grid g = next;
        if (rows > 1) next = grid_of(x + k, k);
        const int32_t from = g.zero - bits_of(rounder), less = LIN_PER_WORD == 4 ? 0 : g.zero;
        element *to = (element *)(void *)words;
        words[depth - 1] = 0; // elements beyond k
        for (int t = 0; t < k; t++) {
            int32_t u = bits_of(x[t] * g.inverse + rounder) + from;
            u = u < 0 ? 0 : u > 255 ? 255 : u;
            to[t] = (element)((u - less) ^ (LIN_PER_WORD == 4 ? SHIFT : 0));
        }
        words[depth] = g.step;
        words[depth + 1] = float_of(LIN_PER_WORD == 4 ? g.zero - SHIFT : 0);
    }
}

#ifdef LIN_ONCE
/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

#define KERNEL(suffix, level, per_word, panel) \
    {#suffix, level, per_word, panel, lin_int8_round_##suffix, lin_int8_rows_##suffix}

// Best first.
static const lin_int8_kernel kernels[] = {
#if defined(__x86_64__)
    KERNEL(avx512vnni, LIN_ISA_AVX512, 4, LIN_PANEL),
    KERNEL(avx512, LIN_ISA_AVX512, 2, LIN_PANEL),
    KERNEL(avxvnni, LIN_ISA_AVX2, 4, LIN_PANEL_AVX2),
    KERNEL(avx2, LIN_ISA_AVX2, 2, LIN_PANEL_AVX2),
#elif defined(__aarch64__)
    {"neoni8mm", LIN_ISA_PORTABLE, 4, LIN_PANEL, lin_int8_round_neondot, lin_int8_rows_neoni8mm},
    KERNEL(neondot, LIN_ISA_PORTABLE, 4, LIN_PANEL),
#endif
    KERNEL(portable, LIN_ISA_PORTABLE, 2, LIN_PANEL),
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static _Atomic(const lin_int8_kernel *) forced;

void lin_int8_force(const lin_int8_kernel *kernel) { atomic_store(&forced, kernel); }

#if defined(__x86_64__)
// Queried once: cpuid takes microseconds in a virtual machine. Not every compiler's __builtin_cpu_supports knows the name.
static int has_avxvnni(void)
{
    static atomic_int known = -1;
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now >= 0) return now;
    unsigned a = 0, b, c, d;
    now = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    atomic_store(&known, now);
    return now;
}
#endif

// Whether the processor has what the kernel needs beyond its level.
static int has(const lin_int8_kernel *kernel)
{
    (void)kernel;
#if defined(__x86_64__)
    if (strcmp(kernel->name, "avx512vnni") == 0) return __builtin_cpu_supports("avx512vnni") != 0;
    if (strcmp(kernel->name, "avxvnni") == 0) return has_avxvnni();
#elif defined(__aarch64__) && defined(__linux__)
    const int dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    if (strcmp(kernel->name, "neoni8mm") == 0) return dot && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
    if (strcmp(kernel->name, "neondot") == 0) return dot;
#elif defined(__aarch64__)
    if (strncmp(kernel->name, "neon", 4) == 0) return 0;
#endif
    return 1;
}

const lin_int8_kernel *lin_int8_kernel_at(int i)
{
    const lin_isa level = lin_cpu_level();
    for (const lin_int8_kernel *k = kernels; k < kernels + N_KERNELS; k++)
        if (k->level <= level && has(k) && i-- == 0) return k;
    return NULL;
}

static const lin_int8_kernel *kernel_now(void)
{
    const lin_int8_kernel *kernel = atomic_load_explicit(&forced, memory_order_relaxed);
    return kernel ? kernel : lin_int8_kernel_at(0);
}

size_t lin_cpu_int8_weight_size(int n, int k) { return lin_cpu_weight_size(n, lin_int8_depth(kernel_now(), k)); }

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

typedef struct pack_job {
    lin_exec *exec;
    const lin_int8_kernel *kernel;
    float *packed;
    const float *values;
    const lin_packing *items;
} pack_job;

// Row `row` of the item as whole numbers; if they must be computed, in `q`. wide: room for k floats.
static const signed char *row_of(const pack_job *job, const lin_packing *item, int row, signed char *q, float *wide, float *scale)
{
    const size_t k = (size_t)item->k, at = (size_t)row * k;
    if (item->whole) {
        memcpy(scale, (const unsigned char *)item->scales + (size_t)row * sizeof *scale, sizeof *scale);
        return (const signed char *)item->whole + at;
    }
    if (item->half) lin_half_widen((const unsigned char *)item->half + 2 * at, k, wide);
    *scale = lin_int8_narrow(item->half ? wide : job->values + item->from + at, k, q);
    return q;
}

// A word of elements q [n] of a row, the others 0; all supported processors are little-endian.
static uint32_t word_of(const signed char *q, int n, int per_word)
{
    uint32_t word = 0;
    for (int i = 0; i < n; i++) word |= per_word == 4 ? (uint32_t)(uint8_t)q[i] << 8 * i : (uint32_t)(uint16_t)q[i] << 16 * i;
    return word;
}

// A column of a panel [depth, width]: the words of a row of weights, its scale and its sum.
static void pack_column(float *panel, int width, int per_word, const signed char *q, int k, float scale)
{
    int32_t sum = 0;
    int t = 0;
    for (int i = 0; i < k; i++) sum += q[i];
    for (; t + per_word <= k; t += per_word, panel += width) {
        const uint32_t word = per_word == 4 ? word_of(q + t, 4, 4) : word_of(q + t, 2, 2);
        memcpy(panel, &word, sizeof word);
    }
    if (t < k) {
        const uint32_t word = word_of(q + t, k - t, per_word);
        memcpy(panel, &word, sizeof word);
        panel += width;
    }
    panel[0] = scale;
    memcpy(panel + width, &sum, sizeof sum);
}

static void pack_piece(void *context, int piece, int thread)
{
    const pack_job *job = context;
    const lin_packing *item = job->items;
    const int whole_panel = job->kernel->panel;
    for (; piece >= lin_panel_count(item->n, whole_panel); item++) piece -= lin_panel_count(item->n, whole_panel);
    const int c0 = lin_panel_start(item->n, piece, whole_panel), width = lin_panel_width(item->n, c0, whole_panel);
    const int depth = lin_int8_depth(job->kernel, item->k);
    float *panel = job->packed + item->to + (size_t)c0 * (size_t)depth, *wide = lin_scratch(job->exec, thread);
    signed char *room = (signed char *)(wide + item->k);
    if (item->n - c0 < width) memset(panel, 0, (size_t)width * (size_t)depth * sizeof *panel);
    for (int c = 0; c < width && c0 + c < item->n; c++) {
        float scale;
        const signed char *q = row_of(job, item, c0 + c, room, wide, &scale);
        pack_column(panel + c, width, job->kernel->per_word, q, item->k, scale);
    }
}

void lin_cpu_int8_weights_pack(lin_exec *exec, float *packed, const float *values, const lin_packing *items, int n_items)
{
    pack_job job = {exec, kernel_now(), packed, values, items};
    size_t work = 0;
    int panels = 0;
    for (int i = 0; i < n_items; i++) {
        assert(items[i].n > 0 && items[i].k > 0 && items[i].k <= LIN_INT8_COLUMNS && items[i].to % 16 == 0);
        assert(!items[i].transposed); // nothing is trained in eight bits
        work += (size_t)items[i].n * (size_t)items[i].k;
        panels += lin_panel_count(items[i].n, job.kernel->panel);
    }
    lin_pool_run(work < LIN_THREAD_WORK / 64 ? NULL : exec->pool, panels, pack_piece, &job);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

_Static_assert(LIN_INT8_COLUMNS / 2 + LIN_INT8_TAIL <= LIN_SCRATCH_BYTES / (int)sizeof(float), "scratch holds the longest row");

void lin_cpu_int8_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows,
                                 int n, int k, lin_activation act)
{
    assert(k <= LIN_INT8_COLUMNS);
    const lin_int8_kernel *kernel = kernel_now();
    lin_linear_forward(exec, y, x, packed, bias, rows, n, k, act, lin_int8_depth(kernel, k), kernel->round, kernel->product);
}
#endif
