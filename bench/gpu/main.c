// main.c - bench_gpu: options, and the code shared by its parts; see bench/gpu/gpu.h.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/gpu/gpu.h"
#include "bench/peak.h"
#include "base/buffer.h"
#include "base/hash.h"

void gpu_must(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    fprintf(stderr, "bench_gpu: %s\n", err->message);
    exit(1);
}

int gpu_late(const gpu_bench *b) { return bench_now() > b->deadline; }

/* ---- backend and memory ---------------------------------------------------------------------------------------------------- */

static size_t free_bytes(const gpu_bench *b)
{
    lin_device device;
    return strcmp(b->ops->name, "cuda") == 0 && lin_device_get(b->ops->device, &device) ? device.free_bytes : 0;
}

void gpu_open(gpu_bench *b)
{
    lin_error err = {0};
    gpu_must(lin_backend_open(b->device, b->precision, &b->ops, &err), &err);
    gpu_must(b->ops->exec_create(b->ops, 0, &b->exec, &err), &err);
    b->free_before = free_bytes(b);
}

void gpu_close(gpu_bench *b)
{
    b->ops->exec_destroy(b->exec);
    b->exec = NULL;
}

void *gpu_block(gpu_bench *b, size_t bytes)
{
    lin_error err = {0};
    void *block;
    gpu_must(b->ops->memory_create(b->exec, bytes, &block, &err), &err);
    return block;
}

float *gpu_random(gpu_bench *b, size_t count, double deviation, uint64_t seed)
{
    enum { AT_ONCE = 1 << 22 };
    static float noise[AT_ONCE];
    static uint64_t made;
    static double made_deviation;
    if (made != seed || made_deviation != deviation) {
        for (size_t i = 0; i < AT_ONCE; i++) noise[i] = (float)(sqrt(12) * deviation * (lin_random_uniform(seed, i) - 0.5));
        made = seed;
        made_deviation = deviation;
    }
    float *block = gpu_block(b, count * sizeof *block);
    b->ops->upload(b->exec, block, noise, (count < AT_ONCE ? count : AT_ONCE) * sizeof *block);
    for (size_t at = AT_ONCE; at < count; at += AT_ONCE)
        b->ops->copy(b->exec, block + at, block, (count - at < AT_ONCE ? count - at : AT_ONCE) * sizeof *block);
    return block;
}

int *gpu_integers(gpu_bench *b, const int *values, size_t count)
{
    int *block = gpu_block(b, count * sizeof *block);
    b->ops->upload(b->exec, block, values, count * sizeof *block);
    return block;
}

double gpu_memory_mib(const gpu_bench *b)
{
    return b->free_before ? ((double)b->free_before - (double)free_bytes(b)) / (1 << 20) : -1;
}

/* ---- the clock ------------------------------------------------------------------------------------------------------------- */

static double batch_seconds(gpu_bench *b, void (*run)(void *), void *context, int n)
{
    lin_error err = {0};
    const double start = bench_now();
    for (int i = 0; i < n; i++) run(context);
    const lin_status status = b->ops->finish(b->exec, &err);
    const double seconds = (bench_now() - start) / n;
    if (status == LIN_OK) return seconds;
    gpu_line("error", "linnet");
    gpu_text("left_out", err.message);
    gpu_line_end();
    return -1;
}

double gpu_clock(gpu_bench *b, void (*run)(void *context), void *context)
{
    enum { TRIALS = 5 };
    const double most = 2, batch = 0.02;
    const double first = batch_seconds(b, run, context, 1);
    if (first < 0 || first > 2 * most) return -1;
    const double once = batch_seconds(b, run, context, 1);
    if (once < 0 || once > most) return -1;
    if (b->quick) return once;
    // the host's clock includes the launch of the first call and the return from finish: with many calls their share is small
    int n = (int)(batch / (once > 1e-7 ? once : 1e-7));
    n = n < 1 ? 1 : n > 2000 ? 2000 : n;
    double time[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        time[i] = batch_seconds(b, run, context, n);
        if (time[i] < 0) return -1;
    }
    return bench_quantile(time, TRIALS, 0.5);
}

/* ---- lines of results ------------------------------------------------------------------------------------------------------ */

static void quoted(const char *text)
{
    lin_buffer out = {0};
    lin_buffer_json(&out, text, strlen(text));
    if (out.data) fputs(out.data, stdout);
    lin_buffer_free(&out);
}

void gpu_line(const char *part, const char *who)
{
    printf("{\"part\": ");
    quoted(part);
    gpu_text("who", who);
}

void gpu_text(const char *name, const char *value)
{
    printf(", \"%s\": ", name);
    quoted(value);
}

void gpu_number(const char *name, double value)
{
    if (isfinite(value)) printf(", \"%s\": %.9g", name, value);
}

void gpu_line_end(void)
{
    puts("}");
    fflush(stdout);
}

int gpu_utterance_frames(uint64_t seed, int i)
{
    enum { SHAPE = 6, SHORTEST = 100 };
    double sum = 0;
    for (uint64_t j = 0; j < SHAPE; j++) sum -= log(1 - lin_random_uniform(seed, (uint64_t)i * SHAPE + j));
    const int frames = (int)lround(sum * MEAN_FRAMES / SHAPE);
    return frames < SHORTEST ? SHORTEST : frames > LONGEST ? LONGEST : frames;
}

// Initialising a device that no process uses takes 1 to 2 s: this part keeps it in use until its input ends.
static void gpu_part_hold(gpu_bench *b)
{
    gpu_open(b);
    while (getchar() != EOF) continue;
    gpu_close(b);
}

/* ---- the program ----------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(gpu_bench *b);
} parts[] = {
    {"peak", gpu_part_peak},   {"attention", gpu_part_attention}, {"rivals", gpu_part_rivals}, {"ops", gpu_part_ops},
    {"cache", gpu_part_cache}, {"plan", gpu_part_plan},           {"epoch", gpu_part_epoch},   {"streams", gpu_part_streams},
    {"cut", gpu_part_cut},     {"pack", gpu_part_pack},           {"unpack", gpu_part_unpack}, {"hold", gpu_part_hold},
};
enum { PARTS = sizeof parts / sizeof *parts };

static int usage(void)
{
    fprintf(stderr, "usage: bench_gpu peak|attention|rivals|ops|streams|epoch|cache|cut|pack|unpack|plan|hold\n"
                    "                 [--device D] [--precision fp32|tf32|bf16] [--causal 0|1] [--batch-frames N]\n"
                    "                 [--pass-streams N] [--rows N] [--hours N] [--seconds N] [--file FILE]\n"
                    "                 [--source FILE] [--quick]\n"
                    "       bench_gpu table FOLDER\n");
    return 2;
}

static int take_option(gpu_bench *b, const char *name, const char *value)
{
    static const char *const precisions[] = {"fp32", "tf32", "bf16"};
    if (strcmp(name, "--device") == 0) {
        b->device = value;
    } else if (strcmp(name, "--precision") == 0) {
        for (int p = 0; p < 3; p++)
            if (strcmp(value, precisions[p]) == 0) {
                b->precision = (lin_precision)p;
                b->precision_name = precisions[p];
                return 1;
            }
        return 0;
    } else if (strcmp(name, "--file") == 0) {
        b->file = value;
    } else if (strcmp(name, "--source") == 0) {
        b->source = value;
    } else if (strcmp(name, "--causal") == 0) {
        b->causal = atoi(value) != 0;
    } else if (strcmp(name, "--batch-frames") == 0) {
        b->batch_frames = atoi(value);
    } else if (strcmp(name, "--pass-streams") == 0) {
        b->pass_streams = atoi(value);
    } else if (strcmp(name, "--rows") == 0) {
        b->rows = atoi(value);
    } else if (strcmp(name, "--hours") == 0) {
        b->hours = atof(value);
    } else if (strcmp(name, "--seconds") == 0) {
        b->seconds = atof(value);
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    gpu_bench b = {.device = "cuda",
                   .precision = LIN_PRECISION_TF32,
                   .precision_name = "tf32",
                   .seconds = 60,
                   .batch_frames = 16000,
                   .hours = 20};
    if (argc == 3 && strcmp(argv[1], "table") == 0) return gpu_part_table(argv[2]);
    int part = 0;
    while (part < PARTS && (argc < 2 || strcmp(argv[1], parts[part].name) != 0)) part++;
    if (part == PARTS) return usage();
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.quick = 1;
        } else if (i + 1 < argc && take_option(&b, argv[i], argv[i + 1])) {
            i++;
        } else {
            return usage();
        }
    }
    if (b.batch_frames < 1 || b.rows < 0 || b.pass_streams < 0 || !(b.hours > 0) || !(b.seconds > 0)) return usage();
    b.deadline = bench_now() + b.seconds;
    parts[part].run(&b);
    return 0;
}
