// bench_variants.c - names of the variants that the experiments compare, and measurements that they share.

#ifdef __linux__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "base/system.h"
#include "train/lab/cmd_bench.h"

static const struct name {
    const char *name;
    lin_bench_kind kind;
    int least, most, usual; // of the number after '-'; most 0: there is none
} names[] = {
    {"linear", LIN_BENCH_LINEAR, 0, 0, 0},
    {"softmax", LIN_BENCH_SOFTMAX, 0, 0, 0},
    {"softmax-naive", LIN_BENCH_NAIVE, 0, 0, 0},
    {"lsh", LIN_BENCH_LSH, 1, 16, 4},
    {"poly2", LIN_BENCH_POLY2, 0, 0, 0},
    {"random", LIN_BENCH_RANDOM, 1, 1024, 128},
    {"lstm", LIN_BENCH_LSTM, 0, 0, 0},
};

// 0 if there is no such variant.
static int variant_of(const char *text, size_t n, lin_bench_variant *v)
{
    if (n == 0 || n >= sizeof v->name) return 0;
    memcpy(v->name, text, n);
    v->name[n] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i].name);
        v->kind = names[i].kind;
        v->count = names[i].usual;
        if (strcmp(v->name, names[i].name) == 0) return 1;
        if (!names[i].most || strncmp(v->name, names[i].name, length) != 0 || v->name[length] != '-') continue;
        char *end;
        const long count = strtol(v->name + length + 1, &end, 10);
        v->count = (int)count;
        return *end == 0 && end > v->name + length + 1 && count >= names[i].least && count <= names[i].most;
    }
    return 0;
}

lin_status lin_bench_variants(const char *list, lin_bench_variant variants[LIN_BENCH_VARIANTS], int *n, lin_error *err)
{
    *n = 0;
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        if (*n == LIN_BENCH_VARIANTS) return lin_fail(err, LIN_INVALID, "more than %d variants", LIN_BENCH_VARIANTS);
        if (!variant_of(at, length, &variants[*n]))
            return lin_fail(err, LIN_INVALID,
                            "there is no variant '%.*s'; use linear, softmax, softmax-naive, lsh-N, poly2, random-N or lstm",
                            (int)(length < 40 ? length : 40), at);
        ++*n;
        at += length;
        if (!*at) return LIN_OK;
    }
}

void lin_bench_apply(const lin_bench_variant *v, lin_config *c)
{
    switch (v->kind) {
    case LIN_BENCH_LINEAR: return;
    case LIN_BENCH_SOFTMAX: c->attention = LIN_ATTENTION_SOFTMAX; return;
    case LIN_BENCH_NAIVE: c->attention = LIN_ATTENTION_SOFTMAX_NAIVE; return;
    case LIN_BENCH_LSH:
        c->attention = LIN_ATTENTION_LSH;
        c->lsh_rounds = v->count;
        c->lsh_chunk = LIN_BENCH_LSH_CHUNK;
        return;
    case LIN_BENCH_POLY2: c->feature_map = LIN_MAP_POLY2; return;
    case LIN_BENCH_RANDOM:
        c->feature_map = LIN_MAP_RANDOM;
        c->features = v->count;
        return;
    case LIN_BENCH_LSTM: // the baseline of the paper's section 4.3
        c->network = LIN_NETWORK_LSTM;
        c->layers = LIN_BENCH_LSTM_LAYERS;
        c->width = LIN_BENCH_LSTM_WIDTH;
        c->heads = c->head_width = c->feedforward = c->conv_kernel = c->conv_layers = 0;
        c->positions = LIN_POSITIONS_NONE;
        c->norm = LIN_NORM_POST;
        return;
    }
}

/* ---- memory and time ------------------------------------------------------------------------------------------------------- */

// The number of kB after a name in a file of /proc; 0 if there is none.
static double proc_bytes(const char *path, const char *name)
{
    char line[256];
    double kb = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) kb = strtod(line + strlen(name), NULL);
    if (file) fclose(file);
    return 1024 * kb;
}

double lin_bench_free_bytes(const lin_ops *ops)
{
    lin_device device;
    if (ops->on_host) return proc_bytes("/proc/meminfo", "MemAvailable:");
    return lin_device_get(ops->device, &device) ? (double)device.free_bytes : 0;
}

double lin_bench_resident(void) { return proc_bytes("/proc/self/status", "VmRSS:"); }

double lin_bench_peak(void) { return proc_bytes("/proc/self/status", "VmHWM:"); }

// Freed blocks are returned to the system first: otherwise they hide what is allocated next.
void lin_bench_peak_reset(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lin_bench_median(double *values, int n)
{
    if (n == 0) return 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

// The name of the processor; "" if unknown.
static void processor(char *text, size_t size)
{
    char line[256];
    text[0] = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !text[0] && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) snprintf(text, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (file) fclose(file);
}

void lin_bench_head(lin_buffer *out, const char *name, const lin_ops *ops, int threads)
{
    char cpu[128];
    lin_device device;
    lin_buffer_format(out, "# linnet bench %s\n", name);
    if (!ops->on_host && lin_device_get(ops->device, &device)) {
        lin_buffer_format(out, "# device: %s\n", device.name);
        return;
    }
    processor(cpu, sizeof cpu);
    const int cores = lin_cores();
    lin_buffer_format(out, "# device: %s%s%s, %d thread%s\n", cpu, cpu[0] ? ", " : "", ops->on_host ? lin_cpu_isa() : ops->name,
                      threads ? threads : cores, (threads ? threads : cores) == 1 ? "" : "s");
}

int lin_bench_end(lin_buffer *out, const char *path, lin_status status, lin_error *err)
{
    if (status == LIN_OK) status = lin_buffer_status(out, err);
    if (status == LIN_OK) status = lin_output_write(path, 0, out, err);
    lin_buffer_free(out);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(err);
}
