/*
 * peak.h - shared by the benchmark programs: the clock, quantiles, and the peak of this machine, by multiply-adds between
 * registers with the instruction set that lin_ops_cpu uses. Shares of the peak are only meaningful if it was measured in the same
 * run.
 */
#ifndef LIN_BENCH_PEAK_H
#define LIN_BENCH_PEAK_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/system.h"
#include "kernels/ops.h"

/* --cpu-time: measures one thread on a machine with other load: effects on the caches remain, but the time for which the thread
 * did not run is excluded. */
static int bench_cpu_time;

static inline double bench_now(void) { return bench_cpu_time ? lin_now_cpu() : lin_now(); }

static inline int bench_by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts values and returns the one at `share` of the way: 0.5 the median, 0.99 the 99th percentile. */
static inline double bench_quantile(double *values, int n, double share)
{
    qsort(values, (size_t)n, sizeof *values, bench_by_value);
    int i = (int)(share * n);
    return values[i < n ? i : n - 1];
}

#if defined(__clang__)
#define PEAK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PEAK_UNROLL _Pragma("GCC unroll 16")
#endif

enum { PEAK_STEPS = 200000, PEAK_SUMS = 12, PEAK_SUMS_BF16 = 16, PEAK_RUNS = 40, PEAK_THREADS = 64 };

// 12 independent chains of multiply-adds: enough for two units with a latency of up to six; 16 of bf16's, which take longer. The
// empty assembly keeps each sum in a register and prevents the compiler from solving the recurrence.
#define PEAK_BODY(type, set1, fma)                                                                                               \
    type sum[PEAK_SUMS], a = set1(0.999f), b = set1(0.001f);                                                                     \
    PEAK_UNROLL                                                                                                                  \
    for (int i = 0; i < PEAK_SUMS; i++) sum[i] = set1((float)i);                                                                 \
    for (long t = 0; t < PEAK_STEPS; t++) {                                                                                      \
        PEAK_UNROLL                                                                                                              \
        for (int i = 0; i < PEAK_SUMS; i++) {                                                                                    \
            sum[i] = fma(sum[i], a, b);                                                                                          \
            __asm__ volatile("" : PEAK_REGISTER(sum[i]));                                                                        \
        }                                                                                                                        \
    }                                                                                                                            \
    float total = 0;                                                                                                             \
    PEAK_UNROLL                                                                                                                  \
    for (int i = 0; i < PEAK_SUMS; i++) total += sum[i][0];                                                                      \
    return total

#if defined(__x86_64__)
#define PEAK_REGISTER(v) "+v"(v)
__attribute__((target("avx512f"))) static float peak_avx512(void) { PEAK_BODY(__m512, _mm512_set1_ps, _mm512_fmadd_ps); }

__attribute__((target("avx512f,avx512bf16"))) static float peak_avx512bf16(void)
{
    const __m512i a = _mm512_set1_epi32(0x3F803F80), b = _mm512_set1_epi32(0x3A833A83); // pairs of 1 and of 0.001
    __m512 sum[PEAK_SUMS_BF16];
    PEAK_UNROLL
    for (int i = 0; i < PEAK_SUMS_BF16; i++) sum[i] = _mm512_set1_ps((float)i);
    for (long t = 0; t < PEAK_STEPS; t++) {
        PEAK_UNROLL
        for (int i = 0; i < PEAK_SUMS_BF16; i++) {
            sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)a, (__m512bh)b);
            __asm__ volatile("" : PEAK_REGISTER(sum[i]));
        }
    }
    float total = 0;
    PEAK_UNROLL
    for (int i = 0; i < PEAK_SUMS_BF16; i++) total += sum[i][0];
    return total;
}

// Eight-bit products: the loop of the sums above with whole numbers, which `step` adds products of a and b to.
#define PEAK_WHOLE(type, zero, step)                                                                                             \
    type sum[PEAK_SUMS], a, b;                                                                                                   \
    memset(&a, 1, sizeof a);                                                                                                     \
    memset(&b, 1, sizeof b);                                                                                                     \
    PEAK_UNROLL                                                                                                                  \
    for (int i = 0; i < PEAK_SUMS; i++) sum[i] = zero();                                                                         \
    for (long t = 0; t < PEAK_STEPS; t++) {                                                                                      \
        PEAK_UNROLL                                                                                                              \
        for (int i = 0; i < PEAK_SUMS; i++) {                                                                                    \
            sum[i] = step;                                                                                                       \
            __asm__ volatile("" : PEAK_REGISTER(sum[i]), PEAK_REGISTER(a));                                                      \
        }                                                                                                                        \
    }                                                                                                                            \
    float total = 0;                                                                                                             \
    PEAK_UNROLL                                                                                                                  \
    for (int i = 0; i < PEAK_SUMS; i++) total += (float)sum[i][0];                                                               \
    return total

__attribute__((target("avx512f,avx512vnni"))) static float peak_avx512vnni(void)
{
    PEAK_WHOLE(__m512i, _mm512_setzero_si512, _mm512_dpbusd_epi32(sum[i], a, b));
}
#undef PEAK_REGISTER
#define PEAK_REGISTER(v) "+x"(v)
__attribute__((target("avx2"))) static float peak_int8_avx2(void)
{
    PEAK_WHOLE(__m256i, _mm256_setzero_si256, _mm256_add_epi32(sum[i], _mm256_madd_epi16(a, b)));
}
__attribute__((target("avx2,fma"))) static float peak_avx2(void) { PEAK_BODY(__m256, _mm256_set1_ps, _mm256_fmadd_ps); }
#else
#define PEAK_REGISTER(v) "+w"(v)
#endif
typedef float four __attribute__((vector_size(16)));
static inline four four_set1(float s) { return (four){s, s, s, s}; }
#if defined(__aarch64__)
#include <arm_neon.h>
static inline four four_fma(four a, four b, four c) { return (four)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
#else
static inline four four_fma(four a, four b, four c) { return a * b + c; }
#endif
static inline float peak_portable(void) { PEAK_BODY(four, four_set1, four_fma); }

typedef struct peak_job {
    lin_precision precision;
    double rate;
} peak_job;

static inline void *peak_thread(void *context)
{
    peak_job *job = context;
    const char *isa = lin_cpu_isa();
    double time[PEAK_RUNS], products = 4 * PEAK_SUMS; // of one step
    volatile float sink = 0;
    for (int r = 0; r < PEAK_RUNS; r++) {
        double start = bench_now();
#if defined(__x86_64__)
        if (job->precision == LIN_PRECISION_INT8 && strcmp(isa, "avx512") == 0 && __builtin_cpu_supports("avx512vnni")) {
            sink = peak_avx512vnni();
            products = 64 * PEAK_SUMS;
        } else if (job->precision == LIN_PRECISION_INT8 && strcmp(isa, "avx2") == 0) {
            sink = peak_int8_avx2();
            products = 16 * PEAK_SUMS;
        } else if (job->precision == LIN_PRECISION_BF16) {
            sink = peak_avx512bf16();
            products = 32 * PEAK_SUMS_BF16;
        } else if (strcmp(isa, "avx512") == 0) {
            sink = peak_avx512();
            products = 16 * PEAK_SUMS;
        } else if (strcmp(isa, "avx2") == 0) {
            sink = peak_avx2();
            products = 8 * PEAK_SUMS;
        } else
#endif
            sink = peak_portable();
        time[r] = bench_now() - start;
    }
    (void)sink;
    job->rate = 2.0 * products * PEAK_STEPS / bench_quantile(time, PEAK_RUNS, 0) * 1e-9;
    return NULL;
}

// Pins a thread to the i-th processor that this program may use, so that two threads never measure one core.
static inline void peak_pin(pthread_t thread, int i)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    i %= CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || i-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(thread, sizeof one, &one);
        return;
    }
}

/* GFLOP/s of 1 to PEAK_THREADS threads at once: the best of `trials`, about 10 ms each, because other load can only make a trial
 * lower. bf16 only if lin_ops_cpu_bf16 is supported. Eight-bit products: of AVX512-VNNI, or of AVX2's products of sixteen bits;
 * elsewhere of fp32. */
static inline double bench_peak_in(lin_precision precision, int threads, int trials)
{
    double best = 0;
    for (int trial = 0; trial < trials; trial++) {
        pthread_t handles[PEAK_THREADS];
        peak_job jobs[PEAK_THREADS];
        double total = 0;
        for (int i = 0; i < threads; i++) {
            jobs[i].precision = precision;
            if (pthread_create(&handles[i], NULL, peak_thread, &jobs[i]) != 0) exit(1);
            peak_pin(handles[i], i);
        }
        for (int i = 0; i < threads; i++) {
            pthread_join(handles[i], NULL);
            total += jobs[i].rate;
        }
        if (total > best) best = total;
    }
    return best;
}

/* The table of a --precision, or NULL with a message for the user. */
static inline const lin_ops *bench_cpu(const char *precision, lin_error *err)
{
    const lin_ops *ops = NULL;
    if (strcmp(precision, "fp32") == 0) return lin_ops_cpu();
    if (strcmp(precision, "int8") == 0) return lin_ops_cpu_int8();
    if (strcmp(precision, "bf16") != 0) {
        lin_fail(err, LIN_INVALID, "unknown precision \"%s\"; use fp32, bf16 or int8", precision);
    } else {
        lin_ops_cpu_bf16(&ops, err);
    }
    return ops;
}

#endif
