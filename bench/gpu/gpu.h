/*
 * gpu.h - shared by the parts of the GPU benchmark: an open backend, memory, the clock, and lines of results.
 *
 *   bench_gpu PART [--device cuda] [--precision tf32] [--seconds 60] [--quick] ...       JSON, an object a line
 *   bench_gpu table FOLDER                                                               Markdown of FOLDER's *.jsonl
 *
 * gpu.sh runs the parts; each is a separate process, so that a failure affects no other part. Nothing here includes a CUDA
 * header: work is timed by the host's clock around many calls that end in finish. So the same program runs on any backend:
 * --device cpu --quick checks it on a machine without a GPU.
 */
#ifndef LIN_BENCH_GPU_GPU_H
#define LIN_BENCH_GPU_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"

/* The paper's network on 40 filterbanks and 39 phones (model/config.h), and 80 hours as WSJ's training set has them. */
enum { L = 9, H = 6, E = 32, C = H * E, F = 768, D = 40, V = 40, LONGEST = 2400, UTTERANCES = 37416, MEAN_FRAMES = 780 };

typedef struct gpu_bench {
    const char *device, *precision_name;
    lin_precision precision;
    double seconds, deadline; /* of this process; deadline by lin_now */
    int quick;                /* tiny sizes, one trial */
    int causal, batch_frames, rows;
    int pass_streams;         /* of a pass of streams, 0: as model/streams.h has it */
    double hours;             /* of synthetic speech */
    const char *file;         /* PART's file or folder */
    const char *source;       /* the cache that parts cut and pack read; what unpack does */
    const lin_ops *ops;       /* between gpu_open and gpu_close */
    lin_exec *exec;
    size_t free_before;       /* the device's free memory after gpu_open, 0 if unknown */
} gpu_bench;

/* Prints the message and ends the process, unless status is LIN_OK. */
void gpu_must(lin_status status, const lin_error *err);

void gpu_open(gpu_bench *b);
/* Frees the context; destroy its blocks before. */
void gpu_close(gpu_bench *b);

void *gpu_block(gpu_bench *b, size_t bytes);
/* Uniform random numbers of the given standard deviation. */
float *gpu_random(gpu_bench *b, size_t count, double deviation, uint64_t seed);
int *gpu_integers(gpu_bench *b, const int *values, size_t count);
/* MiB allocated on the device since gpu_open, computed from the driver's free memory; negative if unknown. */
double gpu_memory_mib(const gpu_bench *b);

int gpu_late(const gpu_bench *b);

/* Seconds of one call: median of five batches of calls, each of at least 20 ms, after two warm-up calls. Negative: a call takes
 * longer than two seconds, or the backend reported an error, which was printed as a line. */
double gpu_clock(gpu_bench *b, void (*run)(void *context), void *context);

/* One line: gpu_line("peak", "linnet"), then fields, then gpu_line_end. */
void gpu_line(const char *part, const char *who);
void gpu_text(const char *name, const char *value);
void gpu_number(const char *name, double value);
void gpu_line_end(void);

/* The frames of utterance i, with lengths like WSJ's: a gamma distribution of shape 6 and mean 780, clipped to 100..2,400. */
int gpu_utterance_frames(uint64_t seed, int i);

/* The parts. */
void gpu_part_peak(gpu_bench *b);
void gpu_part_attention(gpu_bench *b);
void gpu_part_rivals(gpu_bench *b); /* attention over lengths: softmax and LSH */
void gpu_part_ops(gpu_bench *b);
void gpu_part_streams(gpu_bench *b);
void gpu_part_cache(gpu_bench *b); /* writes b->hours of synthetic features to b->file */
void gpu_part_cut(gpu_bench *b);   /* writes b->hours of b->source to b->file */
void gpu_part_pack(gpu_bench *b);  /* writes the cache b->source to b->file, in a third of its bytes */
void gpu_part_unpack(gpu_bench *b); /* the reverse; values stay rounded */
void gpu_part_plan(gpu_bench *b);  /* prints the batches of an epoch for the PyTorch side */
void gpu_part_epoch(gpu_bench *b); /* trains on b->file */
int gpu_part_table(const char *folder);

#endif
