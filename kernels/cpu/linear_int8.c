// linear_int8.c - packing weights of eight bits, and the product over them by the best kernel; see linear_int8.h.

#include "kernels/cpu/linear_int8.h"

#include <assert.h>
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

#include "base/number.h"

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

#define KERNEL(suffix, level, per_word, panel) \
    {#suffix, level, per_word, panel, lin_int8_round_int8_##suffix, lin_linear_rows_int8_##suffix}

// Best first.
static const lin_int8_kernel kernels[] = {
#if defined(__x86_64__)
    KERNEL(avx512vnni, LIN_ISA_AVX512, 4, LIN_PANEL),
    KERNEL(avx512, LIN_ISA_AVX512, 2, LIN_PANEL),
    KERNEL(avxvnni, LIN_ISA_AVX2, 4, LIN_PANEL_AVX2),
    KERNEL(avx2, LIN_ISA_AVX2, 2, LIN_PANEL_AVX2),
#elif defined(__aarch64__)
    {"neoni8mm", LIN_ISA_PORTABLE, 4, LIN_PANEL, lin_int8_round_int8_neondot, lin_linear_rows_int8_neoni8mm},
    KERNEL(neondot, LIN_ISA_PORTABLE, 4, LIN_PANEL),
#endif
    KERNEL(portable, LIN_ISA_PORTABLE, 2, LIN_PANEL),
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static _Atomic(const lin_int8_kernel *) forced;

void lin_int8_force(const lin_int8_kernel *kernel) { atomic_store(&forced, kernel); }

#if defined(__x86_64__)
// Asked once: in a virtual machine the instruction takes microseconds. __builtin_cpu_supports does not know the name everywhere.
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

// Row `row` of the item as whole numbers, in `q` if they have to be made; `wide` has room for k floats.
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

// Elements q [n] of a row, the others of the word 0; the processors are little-endian.
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

typedef struct forward_job {
    lin_exec *exec;
    const lin_int8_kernel *kernel;
    float *y;
    const float *x, *packed, *bias;
    int rows, n, k, piece_rows;
    lin_activation act;
} forward_job;

static void forward_piece(void *context, int piece, int thread)
{
    const forward_job *job = context;
    const int r = piece * job->piece_rows, rows = job->rows - r < job->piece_rows ? job->rows - r : job->piece_rows;
    float *words = lin_scratch(job->exec, thread);
    job->kernel->round(words, job->x + (size_t)r * (size_t)job->k, rows, job->k);
    job->kernel->product(job->y + (size_t)r * (size_t)job->n, words, job->packed, job->bias, rows, job->n,
                         lin_int8_depth(job->kernel, job->k), job->act, job->exec->pool ? NULL : &job->exec->expected);
}

void lin_cpu_int8_linear_forward(lin_exec *exec, float *y, const float *x, const float *packed, const float *bias, int rows,
                                 int n, int k, lin_activation act)
{
    assert(rows >= 0 && n > 0 && k > 0 && k <= LIN_INT8_COLUMNS && (y != x || rows == 0));
    const lin_int8_kernel *kernel = kernel_now();
    int threads;
    // The scratch of a thread has room for seven of the longest rows.
    const int piece_rows = lin_linear_cut(exec, rows, n, k, 2 * LIN_THREAD_WORK, lin_int8_depth(kernel, k), &threads);
    forward_job job = {exec, kernel, y, x, packed, bias, rows, n, k, piece_rows, act};
    lin_pool_run(threads > 1 ? exec->pool : NULL, (rows + job.piece_rows - 1) / job.piece_rows, forward_piece, &job);
}
