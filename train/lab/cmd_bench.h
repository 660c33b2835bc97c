/* cmd_bench.h - the benchmarks of `linnet bench`, one file bench_<name>.c each, and what they share. */
#ifndef LIN_LAB_BENCH_H
#define LIN_LAB_BENCH_H

#include "app/common.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "model/config.h"

typedef struct lin_bench_values {
    lin_model_values model;
    int threads, quick;
    // streams
    int streams, paper, json; // streams 0: as many as can be
    double seconds;
    // the paper's experiments
    const char *variants, *output;
    lin_numbers lengths, times;
    int heads, head_width, layers, causal, rows, batch, stack, chunk;
    double limit_s, limit_gb;
} lin_bench_values;

int lin_bench_streams(const lin_parsed *parsed);
/* In paper/, as all below. */
int lin_bench_attention(const lin_parsed *parsed);
int lin_bench_generate(const lin_parsed *parsed);
int lin_bench_latency(const lin_parsed *parsed);

/* ---- variants of the network (bench_variants.c) ---------------------------------------------------------------------------- */

typedef enum lin_bench_kind {
    LIN_BENCH_LINEAR, LIN_BENCH_SOFTMAX, LIN_BENCH_NAIVE, LIN_BENCH_LSH, LIN_BENCH_POLY2, LIN_BENCH_RANDOM, LIN_BENCH_LSTM
} lin_bench_kind;

enum { LIN_BENCH_VARIANTS = 16, LIN_BENCH_LSH_CHUNK = 32, LIN_BENCH_LSTM_WIDTH = 320, LIN_BENCH_LSTM_LAYERS = 3 };

/* name: "linear", "softmax", "softmax-naive", "lsh-4", "poly2", "random-128", "lstm".
 * count: rounds of lsh, features of random. */
typedef struct lin_bench_variant {
    char name[32];
    lin_bench_kind kind;
    int count;
} lin_bench_variant;

/* Reads a comma-separated list. LIN_INVALID names the one that does not exist. */
lin_status lin_bench_variants(const char *list, lin_bench_variant variants[LIN_BENCH_VARIANTS], int *n, lin_error *err);

/* Makes a network of this variant: sets the fields of the variant, and sets those that it does not have to 0. */
void lin_bench_apply(const lin_bench_variant *variant, lin_config *config);

/* ---- measuring (bench_variants.c) ------------------------------------------------------------------------------------------ */

/* Bytes of memory that are free: of the machine, or of the backend's GPU; 0 if unknown. */
double lin_bench_free_bytes(const lin_ops *ops);
/* Resident bytes now; and the peak since lin_bench_peak_reset. */
double lin_bench_resident(void);
void lin_bench_peak_reset(void);
double lin_bench_peak(void);
/* Sorts the values; the median. */
double lin_bench_median(double *values, int n);
/* Comment lines at the head of a table: the command, the device, its instruction set or name, threads. */
void lin_bench_head(lin_buffer *out, const char *name, const lin_ops *ops, int threads);
/* Writes the table to path, or to standard output if it is NULL, unless status is an error; frees it.
 * The program's exit status. */
int lin_bench_end(lin_buffer *out, const char *path, lin_status status, lin_error *err);

#endif
