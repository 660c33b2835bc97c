/*
 * ops.h - the list of operations that the encoder, its backward pass, CTC and the optimisers need.
 *
 * One operation, one signature, several implementations: cpu/ (float, SIMD, threads), cuda/ (float), and for the tests
 * tests/kernels/ref/ (double, written for clarity). A backend is a table of functions. The table is the second half of this file,
 * which includes itself twice, for float and for double, so that the network (model/) also compiles in double against the
 * reference, for finite differences.
 *
 *   lin_exec *exec;
 *   ops->exec_create(ops, n_threads, &exec, &err);
 *   ops->memory_create(exec, bytes, &block, &err);                         // where the operations work
 *   ops->weights_pack(exec, packed, w, &(lin_packing){.n = n, .k = k}, 1);
 *   ops->linear_forward(exec, y, x, packed, bias, rows, n, k, LIN_RELU);
 *   ops->download(exec, host, y, bytes);
 *   ops->exec_destroy(exec);
 *
 * Conventions. Matrices are dense, row-major, the last index fastest. "rows" are the frames of all utterances of a batch,
 * concatenated without padding; lin_segments gives the rows of each utterance. Letters: B utterances, T frames, D mel bins,
 * C model width, H heads, E head width (C = H E), F feed-forward width, V outputs, U labels.
 * Memory. Every pointer given to an operation points to the backend's memory (memory_create; on the CPU any memory will do),
 * except lin_segments, lin_dropout, lin_packing, lin_tensors, lin_lsh and lin_map themselves, which are read during the call. The
 * pointers inside them, and inside other structures, point to the backend's memory again. On a GPU, matrices aligned to 16 bytes
 * are fastest. Outputs never alias inputs unless the operation says so. "+=" means that the operation adds to the existing
 * values. Operations do not report errors: callers check sizes, and finish returns a device's error. They run in the order of the
 * calls; on a GPU they are complete only when download, wait or finish returns. Zero rows are allowed everywhere. Results never
 * depend on the number of threads.
 */
#ifndef LIN_KERNELS_OPS_H
#define LIN_KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a backend needs while it runs: threads and scratch (CPU), a stream and handles (CUDA). One user at a time. */
typedef struct lin_exec lin_exec;

typedef enum lin_activation { LIN_LINEAR, LIN_RELU /* max(0, v); a NaN gives NaN or 0, depending on the GPU's library */ }
                                                      lin_activation;

enum { LIN_FENCES = 8 };

/* A trigram model of labels 1..V-1 for `denominator`; label 0 in a context: none yet. `again` is separate because CTC needs a
 * blank between two equal labels. */
typedef struct lin_trigrams {
    const float *next;  /* [b, a, c]: P(c | a b), c after b after a; 0 where c = b or 0 */
    const float *back;  /* [b, c, a]: the same */
    const float *again; /* [b, a]: P(b | a b), 0 where b = 0 */
    const float *end;   /* [b, a]: P(end | a b) */
} lin_trigrams;

/* One block of lin_trigrams_count(V) numbers, in any memory, and the tables in it. */
static inline size_t lin_trigrams_count(int V) { return 2 * (size_t)V * (size_t)V * ((size_t)V + 1); }
static inline lin_trigrams lin_trigrams_at(const float *block, int V)
{
    const size_t S = (size_t)V * (size_t)V, all = S * (size_t)V;
    return (lin_trigrams){block, block + all, block + 2 * all, block + 2 * all + S};
}

/* The rows of each utterance of a batch: b has rows offsets[b] .. offsets[b+1]-1. offsets [B+1] is in the backend's memory,
 * offsets[0] = 0, offsets[B] = rows; an utterance may have no rows. The host, which divides the work, needs two numbers: rows,
 * and longest, at least the number of rows of the longest utterance. On a GPU, where one graph serves batches of different sizes,
 * rows may exceed offsets[B] in a forward pass: the rows beyond are in no utterance, no other row reads them, and their values
 * are undefined. */
typedef struct lin_segments {
    int B, rows, longest;
    const int *offsets;
} lin_segments;

/* A dropout mask: element i is kept, and divided by 1-p, if the 16-bit lane i%4 (lowest first) of lin_random_bits(k, i/4), with
 * k = lin_random_key(*key, site), is >= round(p 65536). p = 0: nothing is dropped and key may be NULL. width not 0: the matrix is
 * the part of a larger one of this width that begins at its row key[1], and i counts from the start of the larger one. */
typedef struct lin_dropout {
    double p;
    const uint64_t *key; /* in the backend's memory: a graph is captured once and replayed with other keys */
    uint64_t site;
    uint64_t width;
} lin_dropout;

/* One weight matrix w [n, k], at element `from` of the block of values, to be packed at element `to` (a multiple of 16) of the
 * block of packed weights, for y = x wᵀ or, transposed, for dx = dy w. */
typedef struct lin_packing {
    size_t from, to;
    int n, k, transposed;
    const void *half; /* NULL, or w in half precision instead, of any alignment: where packs_halves is 1, not transposed, and k at
                         most LIN_HALF_COLUMNS */
    const void *whole, *scales; /* NULL, or w as whole numbers of eight bits and the scale of each row instead (base/number.h), of
                                   any alignment: where precision is LIN_PRECISION_INT8 */
} lin_packing;
enum { LIN_HALF_COLUMNS = 4096 };

/* Tensors concatenated in a block: i has elements offsets[i] .. offsets[i+1]-1. Host memory, unchanged while it is in use. */
typedef struct lin_tensors {
    int n;
    const size_t *offsets;      /* [n+1] */
    const unsigned char *decay; /* [n], weight decay applies where not 0; only adam uses it */
} lin_tensors;

/* One step of Adam or RAdam (Kingma & Ba 2015; Liu et al. 2020), with the scalars computed by the caller:
 *   g = scale[i] * grad + (decoupled ? 0 : weight_decay * p)      m = b1 m + (1-b1) g      v = b2 v + (1-b2) g^2
 *   p -= decoupled ? lr * weight_decay * p : 0
 *   p -= adaptive ? step_size * m / (sqrt(v) * v_scale + eps) : step_size * m
 * where step_size includes lr, the bias correction of m and RAdam's rectification, and v_scale = 1 / sqrt(1 - b2^t). */
typedef struct lin_adam_step {
    double beta1, beta2, eps, weight_decay, lr, step_size, v_scale;
    int adaptive, decoupled;
} lin_adam_step;

/* Totals of a training run, kept on the device so that the host need not synchronise after each step. */
typedef struct lin_tally {
    double loss;       /* sum of all losses so far, nats */
    double norm;       /* of the last step's gradient */
    int64_t steps;     /* steps taken so far, without the bad one */
    int32_t bad;       /* lin_bad: once set, nothing more is added and no weight changes */
    int32_t bad_index; /* the utterance of the batch, or the tensor */
} lin_tally;

typedef enum lin_bad { LIN_BAD_NOTHING, LIN_BAD_LOSS, LIN_BAD_GRADIENT } lin_bad;

typedef struct lin_acoustics lin_acoustics; /* kernels/acoustics.h */

/* An utterance read from a feature cache (train/dataset.h): x = (minimum + step * code - mean) * istd. If the cache and x have
 * different numbers of frames, its speaking rate changes (kernels/acoustics.h). */
typedef struct lin_gather {
    const unsigned char *codes; /* [frames, D]; NULL: zeros */
    const float *steps;         /* [2, D]: minimum, step */
    const float *mean, *istd;   /* [D] */
    int first_mask, n_masks;    /* among the masks of the call */
    const lin_acoustics *acoustics; /* NULL: as recorded */
    int frames;                     /* of codes; 0: as many as x has */
} lin_gather;

/* Frames t0 .. t1-1 of bins d0 .. d1-1 become 0 (SpecAugment; Park et al. 2019). */
typedef struct lin_mask {
    int t0, t1, d0, d1;
} lin_mask;

/* Constants for computing log-mel energies from sound, as frontend/fbank.h defines them. All arrays in the backend's memory. */
typedef struct lin_fbank_table {
    int window_samples, hop_samples, n_fft, D; /* n_fft: a power of two, at least window_samples */
    float preemphasis, floor;                  /* floor: of the energy, before the logarithm */
    const float *window;                       /* [window_samples], its shape times 32768: energies are those of 16-bit samples */
    const float *mel;                          /* [D, n_fft/2 + 1] */
    const int *mel_from, *mel_to;              /* [D]: outside from .. to-1 the row of mel is 0 */
} lin_fbank_table;

/* Greedy CTC decoding of a stream, as decoder/search.h defines it: the run of equal labels at the end of the frames seen ... */
typedef struct lin_run {
    int32_t label;   /* 0 for blanks, -1 before the first frame */
    int32_t emitted; /* its phone was already returned */
    int64_t start, frame;
    double sum_logp;
} lin_run;

/* ... and a run that has ended. */
typedef struct lin_phone {
    int32_t label;
    float confidence;
    int64_t start, end;
} lin_phone;

/* Operations captured once and replayed as one launch. */
typedef struct lin_graph lin_graph;

/* Keys and values of a stream with softmax attention: kv [layers, capacity, 2, C], the first n rows of each layer in use. */
typedef struct lin_cache {
    void *kv; /* in the backend's memory, of its type; NULL: the utterance has none */
    int n, capacity;
} lin_cache;

/* LSH attention (Reformer): see lsh_forward. */
typedef struct lin_lsh {
    int rounds, chunk, rotations;
} lin_lsh;

/* Feature maps of linear attention beside elu + 1 (which attention_forward has). LIN_MAP_POLY2: all products of degree 2 at most,
 * x_i^2, sqrt(2) x_i x_j (i < j; by i, then by j), sqrt(2) x_i and 1, in this order, of x / E^(1/4), so that φ(q) φ(k) =
 * (q k / sqrt(E) + 1)^2 (Katharopoulos et al. 2020, section 3.2.1); D = E (E + 1) / 2 + E + 1. LIN_MAP_RANDOM: positive random
 * features of exp(q k / sqrt(E)): φ_d(x) = exp(omega_d x' - |x'|^2 / 2) / sqrt(D) with x' = x / E^(1/4) (section 5; Choromanski
 * et al. 2021); D up to 1,024. E up to 64. */
typedef enum lin_map_kind { LIN_MAP_ELU, LIN_MAP_POLY2, LIN_MAP_RANDOM } lin_map_kind;
typedef struct lin_map {
    lin_map_kind kind;
    int D; /* features */
} lin_map;

typedef enum lin_precision {
    LIN_PRECISION_FP32, /* products of fp32 operands */
    LIN_PRECISION_TF32, /* operands rounded to tf32 (10 bits of mantissa), sums in fp32; ignored by the CPU */
    LIN_PRECISION_BF16, /* operands of the linear layers rounded to bf16, sums in fp32 */
    LIN_PRECISION_INT8, /* operands of the widest linear layers rounded to eight bits, exact sums; the CPU's only */
    LIN_PRECISION_AUTO  /* by the model's file, see lin_recognizer_open; without a model fp32 */
} lin_precision;

/* Elements of the probabilities of softmax_naive_forward; offsets on the host. */
static inline size_t lin_softmax_scores(const int *offsets, int B, int H)
{
    size_t count = 0;
    for (int b = 0; b < B; b++) count += (size_t)(offsets[b + 1] - offsets[b]) * (size_t)(offsets[b + 1] - offsets[b]);
    return count * (size_t)H;
}

#define LIN_REAL float
#define LIN_OPS lin_ops
#include "kernels/ops.h"
#define LIN_REAL double
#define LIN_OPS lin_ops_f64
#include "kernels/ops.h"

/* The type that model/network.c is compiled for: float in the program, double in the gradient tests (-DLIN_REAL_DOUBLE). */
#ifdef LIN_REAL_DOUBLE
typedef double lin_real;
typedef lin_ops_f64 lin_real_ops;
#else
typedef float lin_real;
typedef lin_ops lin_real_ops;
#endif

/* Float, SIMD (AVX-512, AVX2 + FMA, or portable vectors, chosen once per process at run time), threaded. */
const lin_ops *lin_ops_cpu(void);

/* As lin_ops_cpu, but with weights packed in bf16 and the operands of linear_forward rounded to bf16, sums in fp32: half the
 * memory and twice the products per cycle, on processors with AVX512-BF16, or BF16 of arm64. So are the operands of
 * linear_backward_weight and of the LSTM's products. All other operations are those of lin_ops_cpu. LIN_UNSUPPORTED, and *ops
 * NULL, if the processor lacks it or another instruction set was chosen. */
lin_status lin_ops_cpu_bf16(const lin_ops **ops, lin_error *err);

/* As lin_ops_cpu, but with weights packed in eight bits and the rows of linear_forward rounded to eight bits, sums in 32 bits: a
 * quarter of the memory (half without a byte product: AVX-512 without VNNI, AVX2, arm64 without the dot product), and the same
 * bits of linear_forward on every processor. kernels/cpu/linear_int8.h has the arithmetic. For inference: weights are not packed
 * transposed. k is at most 65,536. `exact` of the table is lin_ops_cpu, for layers that must not be rounded to eight bits; all
 * other operations, linear_backward_weight too, are those of lin_ops_cpu. */
const lin_ops *lin_ops_cpu_int8(void);

/* Forces the instruction set of lin_ops_cpu: "avx512", "avx2", "portable", or NULL for the best one. LIN_UNSUPPORTED if this
 * machine lacks it. For tests; do not call it while operations run. The environment variable LINNET_ISA does the same at first
 * use. */
lin_status lin_cpu_select(const char *isa, lin_error *err);
const char *lin_cpu_isa(void);

/*
 * A backend by the name of a device: "cpu", "auto" (a GPU if there is a usable one, else the CPU; NULL is the same), "cuda" or
 * "cuda:n".
 * precision: of the matrix products. On a CPU tf32 is computed in fp32, and bf16 needs what lin_ops_cpu_bf16 needs.
 * LIN_UNSUPPORTED, with one sentence of explanation, if it cannot be used. The table lives as long as the process.
 *
 * The program links no CUDA library. At first use it looks for the driver (libcuda.so.1) and counts its GPUs. Only if there is a
 * GPU does it open liblinnet_cuda.so, which holds the kernels and needs CUDA's own libraries. Both stay open until the process
 * ends. It is searched for in this order: the path in LINNET_CUDA_LIBRARY, the folder of the program, ../lib/linnet relative to
 * that folder (where make install puts it), the system's library path. LINNET_CUDA_DRIVER names another driver library, for
 * tests. This function and the next two may be called from any thread.
 */
lin_status lin_backend_open(const char *device, lin_precision precision, const lin_ops **ops, lin_error *err);

/* Properties of GPU i; returns 0 if there is no such GPU. Fields that do not apply are 0 or "". */
typedef struct lin_device {
    char name[256];               /* "NVIDIA H200" */
    int major, minor;             /* compute capability */
    int multiprocessors;
    size_t memory_bytes, free_bytes;
    char why_not[512];            /* "" if this build can use it, else one sentence */
} lin_device;
int lin_device_get(int i, lin_device *device);
/* Why there is no GPU, as one sentence; "" if there is one. runtime and driver: versions as CUDA writes them, 0 if unknown. */
const char *lin_device_why_none(int *runtime, int *driver);

/* The value that lin_cuda_interface of the library must return, to show that both were built with the same table of operations.
 * Raise the first number when an argument of an operation changes its form. */
enum { LIN_CUDA_INTERFACE = 3 << 16 | (int)sizeof(lin_ops) };

/* ---- the names in the table ------------------------------------------------------------------------------------------------ */

/* For the declarations and the table of a backend:
 *   #define DECLARE(name) __typeof__(*((lin_ops *)0)->name) lin_cpu_##name;      // with the type that the table has
 *   LIN_ALL_OPERATIONS(DECLARE)                                                  // lin_cpu_linear_forward and all others
 *   #define ENTRY(name) .name = lin_cpu_##name,
 *   static const lin_ops table = {.name = "cpu", LIN_OPERATIONS(ENTRY)};
 * LIN_OPERATIONS: what all backends have. */
#define LIN_OPERATIONS(X)                                                                                                        \
    X(weight_size) X(weights_pack) X(linear_forward) X(linear_backward_weight) X(layer_norm_forward)                             \
    X(add_dropout_norm_forward) X(layer_norm_backward) X(dropout) X(add_dropout) X(relu_backward) X(stack_frames)                \
    X(add_sinusoid) X(embed_forward) X(embed_backward) X(conv_forward) X(conv_backward) X(attention_forward)                     \
    X(attention_backward) X(decayed_attention_forward) X(decayed_attention_backward) X(log_softmax) X(softmax_rows)              \
    X(softmax_rows_backward) X(ctc) X(denominator) X(cross_entropy) X(tally_losses) X(sum_squares) X(clip) X(adam) X(gather)     \
    X(carry) X(greedy)

/* Operations of the paper's other networks, implemented in paper/. */
#ifdef LIN_NO_PAPER
#define LIN_RIVAL_OPERATIONS(X)
#define LIN_MAPPED_OPERATIONS(X)
#else
#define LIN_RIVAL_OPERATIONS(X)                                                                                                  \
    X(softmax_forward) X(softmax_backward) X(softmax_naive_forward) X(softmax_naive_backward)                  \
    X(lsh_forward) X(lsh_backward) X(lstm_forward) X(lstm_backward) X(mixture)
/* CUDA does not have these. */
#define LIN_MAPPED_OPERATIONS(X) X(mapped_attention_forward) X(mapped_attention_backward)
#endif

/* Those that only CUDA has. */
#define LIN_BLOCK_OPERATIONS(X) X(feedforward_forward) X(feedforward_backward)

#define LIN_ALL_OPERATIONS(X)                                                                                                    \
    LIN_OPERATIONS(X) LIN_RIVAL_OPERATIONS(X) LIN_MAPPED_OPERATIONS(X) LIN_BLOCK_OPERATIONS(X) X(attention_block_forward)        \
    X(attention_block_backward) X(expect_states) X(fbank)

#elif defined(LIN_REAL)

/* ---- the table over LIN_REAL, named LIN_OPS -------------------------------------------------------------------------------- */

typedef struct LIN_OPS {
    const char *name; /* "ref", "cpu", "cuda" */
    int on_host;      /* the backend works in host memory: existing data need not be uploaded */
    int device;       /* the number of the GPU */
    int sums_in_norm; /* 1: the gradient of a bias before a norm is cheaper in layer_norm_backward than in linear_backward_weight.
                         0 on a CPU, where the latter sums dy while it copies it */
    int writes_operands; /* norms write the operands of the block beside them: see layer_norm_backward */
    int packs_halves; /* weights_pack takes weights in half precision */
    lin_precision precision; /* of the execs that exec_create makes. fp32 and tf32 pack weights alike, so a copy of the table may
                                have the other */
    const struct LIN_OPS *exact; /* NULL, or a table with products in fp32 for layers that must not use `precision`; execs of this
                                    table serve both */

    /* n_threads: 0 for one thread per core. */
    lin_status (*exec_create)(const struct LIN_OPS *ops, int n_threads, lin_exec **exec, lin_error *err);
    void (*exec_destroy)(lin_exec *exec);

    /* ---- memory and order -------------------------------------------------------------------------------------------------- */

    /* A zeroed block in the backend's memory, 256-byte aligned on a GPU, 64 on a CPU. LIN_NO_MEMORY. memory_destroy accepts
     * NULL. */
    lin_status (*memory_create)(lin_exec *exec, size_t bytes, void **block, lin_error *err);
    void (*memory_destroy)(lin_exec *exec, void *block);
    /* A zeroed block of host memory from which upload does not wait (page-locked on a GPU). */
    lin_status (*staging_create)(lin_exec *exec, size_t bytes, void **block, lin_error *err);
    void (*staging_destroy)(lin_exec *exec, void *block);
    /* Host to backend. The caller may change `from` at once; within a staging block, only after waiting for a later fence. */
    void (*upload)(lin_exec *exec, void *to, const void *from, size_t bytes);
    /* Upload in parallel to the operations in progress: it begins after fence i, before which the last use of `to` must be, and
     * later operations wait for it. `from` may be changed after waiting for a later fence. Not while a graph is recorded. */
    void (*upload_beside)(lin_exec *exec, void *to, const void *from, size_t bytes, int i);
    /* Backend to host: waits for all earlier operations. */
    void (*download)(lin_exec *exec, void *to, const void *from, size_t bytes);
    /* Download into a staging block, without waiting: `to` is valid after waiting for a later fence. */
    void (*fetch)(lin_exec *exec, void *to, const void *from, size_t bytes);
    /* Within the backend's memory. */
    void (*copy)(lin_exec *exec, void *to, const void *from, size_t bytes);
    void (*zero)(lin_exec *exec, void *block, size_t bytes);
    /* fence sets fence i, 0..LIN_FENCES-1, after all earlier operations; wait waits for it. A fence never set does not block. */
    void (*fence)(lin_exec *exec, int i);
    void (*wait)(lin_exec *exec, int i);
    /* Waits for everything. Any status but LIN_OK: an operation since the last call failed (a lost device, a fault in a kernel),
     * and its outputs are invalid. */
    lin_status (*finish)(lin_exec *exec, lin_error *err);
    /* Between begin and end, operations are recorded and not run; memory, staging, download and finish are not allowed there. The
     * graph keeps the addresses and host numbers of the recorded calls; it is launched by the exec that recorded it and destroyed
     * before that. NULL on backends without graphs. */
    lin_status (*graph_begin)(lin_exec *exec, lin_error *err);
    lin_status (*graph_end)(lin_exec *exec, lin_graph **graph, lin_error *err);
    void (*graph_launch)(lin_exec *exec, const lin_graph *graph);
    void (*graph_destroy)(lin_graph *graph);

    /* ---- linear layers: y = x wᵀ + b --------------------------------------------------------------------------------------- */

    /* Elements of the packed form of a weight matrix w [n, k]; the packed block must be 64-byte aligned. */
    size_t (*weight_size)(int n, int k);
    /* Packs w [n, k] of each item for y [rows, n] = x [rows, k] wᵀ; or, transposed, for dx [rows, k] = dy [rows, n] w: the packed
     * form of wᵀ, weight_size(k, n) elements, used by linear_forward(dx, dy, packed, NULL, rows, k, n, LIN_LINEAR). */
    void (*weights_pack)(lin_exec *exec, LIN_REAL *packed, const LIN_REAL *values, const lin_packing *items, int n_items);
    /* y [rows, n] = act(x [rows, k] wᵀ + bias [n]); bias may be NULL. On the CPU a row's bits do not depend on the number of
     * rows: the sum over k starts at +0 and runs in order, one fused multiply-add per term, and the bias is added last (bf16: in
     * order over pairs; one instruction adds both products of a pair). */
    void (*linear_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *packed, const LIN_REAL *bias, int rows,
                           int n, int k, lin_activation act);
    /* dw [n, k] += dyᵀ x, db [n] += column sums of dy (db may be NULL); dy [rows, n], x [rows, k]. */
    void (*linear_backward_weight)(lin_exec *exec, LIN_REAL *dw, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *x, int rows,
                                   int n, int k);

    /* ---- between the linear layers ----------------------------------------------------------------------------------------- */

    /* y = (x - mean) rstd gamma + beta per row, eps 1e-5, biased variance;
     * stats [rows, 2] receives mean and rstd (may be NULL). */
    void (*layer_norm_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *stats, const LIN_REAL *x, const LIN_REAL *gamma,
                               const LIN_REAL *beta, int rows, int C);
    /* The end of a block and the next norm: sum = x + dropout(r), then y and stats as layer_norm_forward(sum). sum may alias x,
     * or be y if it is not needed. operand: NULL, or receives y as the operand of the next block, see below. */
    void (*add_dropout_norm_forward)(lin_exec *exec, void *operand, LIN_REAL *sum, LIN_REAL *y, LIN_REAL *stats,
                                     const LIN_REAL *x, const LIN_REAL *r, const LIN_REAL *gamma, const LIN_REAL *beta, int rows,
                                     int C, const lin_dropout *dropout);
    /* dx = residual + the norm's gradient (written), dgamma [C] +=, dbeta [C] +=; dy + more is the gradient of the norm's output.
     * dropped (may be NULL) = dropout(dx): the gradient of the previous block. The residual path joins either after the norm
     * (more) or before it (residual): at least one of them is NULL. dx may alias dy, more or residual. db [C] (may be NULL) +=
     * column sums of dropped, or of dx if there is none: the gradient of the bias at the end of the previous block.
     * operand (NULL unless writes_operands is 1): the norm before or after a block of products (feedforward_forward and those
     * below) writes the block's operand directly, which saves a conversion: the front of hidden or operands is y of
     * add_dropout_norm_forward; the front of d_hidden or d_qkv is dropped, which itself is then scratch (without dropout: dx).
     * operand and the block's matrices are aligned to 16 bytes, C and F are multiples of 8, C <= F, E of 2. */
    void (*layer_norm_backward)(lin_exec *exec, void *operand, LIN_REAL *dx, LIN_REAL *dropped, LIN_REAL *dgamma,
                                LIN_REAL *dbeta, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *more,
                                const LIN_REAL *residual, const LIN_REAL *x, const LIN_REAL *stats, const LIN_REAL *gamma,
                                int rows, int C, const lin_dropout *dropout);
    /* y = dropout(x); its backward pass is the same operation. y may alias x. */
    void (*dropout)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, size_t count, const lin_dropout *dropout);
    /* y = x + dropout(r). y may alias x. */
    void (*add_dropout)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *r, size_t count,
                        const lin_dropout *dropout);
    /* dx = y > 0 ? dy * scale : 0: backward of relu, and of dropout(relu) with y its output and scale = 1/(1-p). dx may alias
     * dy. */
    void (*relu_backward)(lin_exec *exec, LIN_REAL *dx, const LIN_REAL *dy, const LIN_REAL *y, size_t count, double scale);
    /* The feed-forward block in training: y = h w2ᵀ + b2 with h = dropout(relu(x w1ᵀ + b1)) [rows, F], x and y [rows, C], w1 [F,
     * C] and w2 [C, F] packed. hidden [rows, F] receives what the backward pass needs, in the backend's own format (CUDA in bf16:
     * the operands as bf16, then h). x is NULL if a norm has written it. The function is NULL on backends without a fused form
     * (ref, CPU): there the network calls the operations above. */
    void (*feedforward_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *hidden, const LIN_REAL *x, const LIN_REAL *w1,
                                const LIN_REAL *b1, const LIN_REAL *w2, const LIN_REAL *b2, int rows, int C, int F,
                                const lin_dropout *dropout);
    /* dx (written), dw1 [F, C], db1 [F], dw2 [C, F], db2 [C] +=, with the weights packed transposed. d_hidden [rows, F] is
     * scratch. hidden and d_hidden are both 16-byte aligned, and then dy too, or both not. dy and db2 are NULL if a norm has
     * written dy and added its sums. */
    void (*feedforward_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dw1, LIN_REAL *db1, LIN_REAL *dw2, LIN_REAL *db2,
                                 const LIN_REAL *dy, const LIN_REAL *x, const LIN_REAL *hidden, LIN_REAL *d_hidden,
                                 const LIN_REAL *w1, const LIN_REAL *w2, int rows, int C, int F, const lin_dropout *dropout);
    /* y [out rows, (stack+ahead) D]: row t of an utterance holds its input frames t stack .. t stack + stack+ahead-1, each
     * (x - mean) istd. Frames after the utterance's last repeat the last. mean, istd [D]; x [in rows, D]. */
    void (*stack_frames)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *mean, const LIN_REAL *istd,
                         const lin_segments *in, const lin_segments *out, int D, int stack, int ahead);
    /* x += sinusoidal positions (Vaswani et al. 2017): for i < C/2, x[t,2i] += sin(a), x[t,2i+1] += cos(a), a = t / 10000^(2i/C),
     * t counted from the start of each utterance or, if states and states[b] are not NULL, from the number of earlier rows in
     * states[b][at], to which its rows are then added. Any split of the rows into calls gives the same result (CPU: the same
     * bits), up to 2^24 rows, where the count stops. */
    void (*add_sinusoid)(lin_exec *exec, LIN_REAL *x, const lin_segments *segments, int C, LIN_REAL *const *states, size_t at);
    /* y [rows, C]: rows of table [n, C]. The number of a row's token is the sum of its D values in x [rows, D], to the nearest
     * integer and clamped to 0..n-1. */
    void (*embed_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *table, int rows, int D, int n, int C);
    /* dtable [n, C] += the rows of dy, each at its token, in their order. */
    void (*embed_backward)(lin_exec *exec, LIN_REAL *dtable, const LIN_REAL *dy, const LIN_REAL *x, int rows, int D, int n,
                           int C);

    /* ---- depthwise convolution with residual ------------------------------------------------------------------------------- */

    /* y[t,c] = x[t,c] + b[c] + sum_{j<K} w[j,c] x[t+after-K+1+j,c], w [K, C]: the last `after` of the K taps, 0..K-1, read later
     * frames. Frames after the utterance are 0. Frames before it are read from tails[b] + at [K-1, C] if tails and tails[b] are
     * not NULL, else they are 0. On return tails[b] + at holds the last K-1 inputs. Any split of the rows into calls that pass
     * the tail on gives the same result (CPU: the same bits). after > 0: no tails. */
    void (*conv_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *w, const LIN_REAL *bias,
                         const lin_segments *segments, int C, int K, int after, LIN_REAL *const *tails, size_t at);
    /* dx (written), dw [K, C] +=, db [C] +=; no tails. */
    void (*conv_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dw, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *x,
                          const LIN_REAL *w, const lin_segments *segments, int C, int K, int after);

    /* ---- linear attention, φ(x) = elu(x) + 1 (Katharopoulos et al. 2020, eq. 4-12) ----------------------------------------- */

    /* y [rows, H E] from qkv [rows, 3, H, E] (before φ). Per head y_i = φ(q_i)ᵀ S / (φ(q_i)ᵀ z + 1e-6), where S = sum φ(k_j) v_jᵀ
     * and z = sum φ(k_j) run over j <= i of the utterance (causal; a frame sees itself) or over all of its frames.
     * causal only: states[b] + at, where states and states[b] are not NULL, is [H, E+1, E] (S, then z as row E): read as the sums
     * before the first row, and written as the sums after the last. Any split of the rows into calls gives the same result (CPU:
     * the same bits). */
    void (*attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const lin_segments *segments, int H, int E,
                              int causal, LIN_REAL *const *states, size_t at);
    /* A hint to prefetch; NULL if the backend has no use for it: the next operations with states use `count` elements at
     * states[b] + at of B utterances. Valid, and states is read, until the next hint. B = 0: none. */
    void (*expect_states)(lin_exec *exec, LIN_REAL *const *states, int B, size_t at, size_t count);
    /* dqkv (written) from dy, qkv and the forward's y. No states. Causal: eq. 13-15 and Algorithm 1. */
    void (*attention_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv, const LIN_REAL *y,
                               const lin_segments *segments, int H, int E, int causal);

    /* Causal attention with decaying sums (method of Sun et al. 2023, retentive networks; Yang et al. 2023, gated linear
     * attention): S_i = a_i S_{i-1} + φ(k_i) v_iᵀ and z_i = a_i z_{i-1} + φ(k_i), with a = sigmoid(g)^(1/16) for a gate g of each
     * row and head; gates below -80 count as -80. gates [rows, H]; or, with constant = 1, [H], the same for all rows. y, states
     * and at as in attention_forward. CPU: with gates from 25 on a is 1, and the bits are those of attention_forward. */
    void (*decayed_attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const LIN_REAL *gates, int constant,
                                      const lin_segments *segments, int H, int E, LIN_REAL *const *states, size_t at);
    /* dqkv and dgates [rows, H] (written); dgates may be NULL. No states. */
    void (*decayed_attention_backward)(lin_exec *exec, LIN_REAL *dqkv, LIN_REAL *dgates, const LIN_REAL *dy, const LIN_REAL *qkv,
                                       const LIN_REAL *gates, int constant, const LIN_REAL *y, const lin_segments *segments,
                                       int H, int E);

    /* The attention block in training: out = y woutᵀ + bout with y = attention_forward(qkv), qkv = x wqkvᵀ + bqkv; x, y and out
     * [rows, C], C = H E a multiple of 8, E of 2, wqkv [3C, C] and wout [C, C] packed. qkv [rows, 3C], y and operands [rows, C]
     * receive what the backward pass needs; operands, aligned to 16 bytes: x and y as bf16. x is NULL if a norm has written it.
     * The function is NULL on backends without a fused form (ref, CPU, CUDA except in bf16): there the network calls the
     * operations above. */
    void (*attention_block_forward)(lin_exec *exec, LIN_REAL *out, LIN_REAL *qkv, LIN_REAL *y, LIN_REAL *operands,
                                    const LIN_REAL *x, const LIN_REAL *wqkv, const LIN_REAL *bqkv, const LIN_REAL *wout,
                                    const LIN_REAL *bout, const lin_segments *segments, int H, int E, int causal);
    /* dx (written), dwqkv, dbqkv, dwout += from dy, with the weights packed transposed; the gradient of bout is that of
     * layer_norm_backward (sums_in_norm). d_qkv [rows, 3C], aligned to 16 bytes, is scratch. dy is NULL if a norm has written
     * it. */
    void (*attention_block_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dwqkv, LIN_REAL *dbqkv, LIN_REAL *dwout,
                                     const LIN_REAL *dy, const LIN_REAL *x, const LIN_REAL *qkv, const LIN_REAL *y,
                                     const LIN_REAL *operands, LIN_REAL *d_qkv, const LIN_REAL *wqkv, const LIN_REAL *wout,
                                     const lin_segments *segments, int H, int E, int causal);

    /* ---- softmax attention (Vaswani et al. 2017): the rival, in two implementations ---------------------------------------- */

    /* y [rows, H E] from qkv [rows, 3, H, E]: y_i = sum_j p_ij v_j with p_i = softmax_j(q_i k_j / sqrt(E)), j <= i (causal) or
     * all frames of the utterance. In tiles with a running maximum and sum (Milakov & Gimelshein 2018, Dao et al. 2022): nothing
     * of size T x T is kept. lse [rows, H] receives ln sum_j exp(q_i k_j / sqrt(E)), for the backward pass; may be NULL.
     * caches (NULL, or [B]; causal only; supplement C.1): keys and values of the utterance's earlier frames; those of its rows
     * are appended at caches[b].n, where there must be room; the caller advances n after the last layer. Like
     * states, caches is in the backend's memory: n is read when the operation runs, so one graph serves all steps. Any split of
     * the rows into calls gives the same result (CPU: the same bits). */
    void (*softmax_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *lse, const LIN_REAL *qkv, const lin_segments *segments, int H,
                            int E, int causal, const lin_cache *caches, int layer);
    /* dqkv (written) from dy, qkv and the forward's y and lse. No caches. */
    void (*softmax_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv, const LIN_REAL *y,
                             const LIN_REAL *lse, const lin_segments *segments, int H, int E, int causal);
    /* Softmax attention as the paper timed it: all scores, their softmax, the product with the values. p: probabilities, [H,
     * T, T] of each utterance, concatenated: lin_softmax_scores elements. The backward pass overwrites p. */
    void (*softmax_naive_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *p, const LIN_REAL *qkv, const lin_segments *segments,
                                  int H, int E, int causal);
    void (*softmax_naive_backward)(lin_exec *exec, LIN_REAL *dqkv, LIN_REAL *p, const LIN_REAL *dy, const LIN_REAL *qkv,
                                   const LIN_REAL *y, const lin_segments *segments, int H, int E, int causal);

    /* ---- LSH attention (Reformer; Kitaev et al. 2020) ---------------------------------------------------------------------- */

    /* y [rows, H E] from qv [rows, 2, H, E]: queries that are the keys as well, and values. In each of `rounds` rounds the frames
     * of an utterance are sorted, stably, by bucket = argmax [q R; -q R] (lowest index on a tie) and divided into chunks of
     * `chunk`, the last one shorter; a frame sees its chunk and the one before it (the first chunk: only itself), causal: only j
     * <= i. Score of query i and key j: q_i k_j / sqrt(E), k_j = q_j / |q_j| (norms below 1e-6 count as 1e-6); of a frame with
     * itself -1e5, so that it counts only where there is no other. Rounds are weighted by their sums of exponentials: y_i is one
     * softmax over the keys of all rounds, a key found in r rounds counted r times.
     * Buckets of an utterance of T frames: 2 min(rotations, max(1, ceil(T / (2 chunk)))), with the first half as many columns of
     * R [rounds, H, E, rotations]; rotations is at most 65,536. order [rounds, H, rows] (T frame numbers of each utterance, in
     * sorted order, from its offset on) and lse [rows, H] are kept for the backward pass. T is not limited: the CPU stores
     * buckets in lse. */
    void (*lsh_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *lse, int *order, const LIN_REAL *qv, const LIN_REAL *R,
                        const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal);
    /* dqv (written); the order is a constant. */
    void (*lsh_backward)(lin_exec *exec, LIN_REAL *dqv, const LIN_REAL *dy, const LIN_REAL *qv, const LIN_REAL *y,
                         const LIN_REAL *lse, const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E,
                         int causal);

    /* ---- linear attention with other feature maps -------------------------------------------------------------------------- */

    /* As attention_forward, with φ of the map in place of elu + 1. omega [H, D, E] for LIN_MAP_RANDOM, else NULL. states[b] + at
     * is [H, D, E+1]: row d is S_d, then z_d. */
    void (*mapped_attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const LIN_REAL *omega,
                                     const lin_segments *segments, const lin_map *map, int H, int E, int causal,
                                     LIN_REAL *const *states, size_t at);
    void (*mapped_attention_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv,
                                      const LIN_REAL *omega, const LIN_REAL *y, const lin_segments *segments, const lin_map *map,
                                      int H, int E, int causal);

    /* ---- LSTM (Hochreiter & Schmidhuber 1997; gates as in PyTorch) --------------------------------------------------------- */

    /* One layer, in one (directions 1) or both directions of time (2: the second runs from the last frame to the first). gates
     * [rows, directions, 4, U] holds W x + b for the gates i, f, g, o; on return their activations: sigmoid, sigmoid, tanh,
     * sigmoid of these plus R h_{t-1}. c_t = f c_{t-1} + i g in cells [rows, directions, U]; h_t = o tanh(c_t) in h [rows,
     * directions, U]. packed: R [4U, U] of each direction, packed as for linear_forward, each at a multiple of weight_size(4U, U)
     * rounded up to 16. directions 1 only: states[b] + at, where states and states[b] are not NULL, is [2, U], h and c: read as
     * those before the first row, and written as those after the last. Any split of the rows into calls gives the same result
     * (CPU: the same bits). */
    void (*lstm_forward)(lin_exec *exec, LIN_REAL *h, LIN_REAL *cells, LIN_REAL *gates, const LIN_REAL *packed,
                         const lin_segments *segments, int U, int directions, LIN_REAL *const *states, size_t at);
    /* dgates (written) = gradient of W x + b; dR [directions, 4U, U] +=; from dh and the forward's h, cells and gates. packed: R
     * transposed (packed as for dx), each at a multiple of weight_size(U, 4U) rounded up to 16. No states. */
    void (*lstm_backward)(lin_exec *exec, LIN_REAL *dgates, LIN_REAL *dR, const LIN_REAL *dh, const LIN_REAL *h,
                          const LIN_REAL *cells, const LIN_REAL *gates, const LIN_REAL *packed, const lin_segments *segments,
                          int U, int directions);

    /* ---- outputs and losses ------------------------------------------------------------------------------------------------ */

    /* logp may alias logits. */
    void (*log_softmax)(lin_exec *exec, LIN_REAL *logp, const LIN_REAL *logits, int rows, int V);
    /* p [rows, V] = softmax of each row; may alias logits. A row's bits do not depend on the other rows. */
    void (*softmax_rows)(lin_exec *exec, LIN_REAL *p, const LIN_REAL *logits, int rows, int V);
    /* dlogits (written) = p (dp - sum_v p_v dp_v) in each row; may alias dp. */
    void (*softmax_rows_backward)(lin_exec *exec, LIN_REAL *dlogits, const LIN_REAL *dp, const LIN_REAL *p, int rows, int V);
    /* CTC (Graves et al. 2006), blank = 0, log domain. logp [rows, V]; the labels of utterance b start at
     * labels[label_offsets[b]]. loss[b] receives -ln p(labels | frames), or -1 if no path exists (too few frames for labels and
     * repeats); its gradient rows are then 0. If an utterance has more labels than frames, its labels are not read. most_labels:
     * at least the number of labels of every other utterance. dlogits [rows, V] (written) = *scale * d loss / d logits; NULL for
     * the loss alone. dlogits must not alias logp. */
    void (*ctc)(lin_exec *exec, double *loss, LIN_REAL *dlogits, const LIN_REAL *logp, const lin_segments *segments,
                const int *labels, const int *label_offsets, int most_labels, int V, const double *scale);
    /* The denominator of maximum mutual information (Povey et al. 2016; with CTC's labels Xiang and Ou 2019): sums[b] receives ln
     * of the sum over all label sequences l of p(l | frames) q(l), q being the trigram model; and dlogits += weight *scale
     * d sums[b] / d logits, unless it is NULL. sums[b] is 0, and nothing is added, for an utterance without labels or with more
     * labels than frames. In float, prefixes that are 1e-38 times as probable as all others are lost. If a frame's sum is not
     * positive and finite, or there is no memory, sums[b], the utterance's gradient and loss[b] (ctc's, unless NULL) become
     * NaN. */
    void (*denominator)(lin_exec *exec, double *sums, double *loss, LIN_REAL *dlogits, const LIN_REAL *logp,
                        const lin_segments *segments, const int *label_offsets, const lin_trigrams *trigrams, int V,
                        double weight, const double *scale);
    /* Cross entropy with a target per frame. targets [rows]: 0..V-1, or -1 for a frame that does not count.
     * loss[b] receives -sum logp[t, targets[t]] over the frames of utterance b, summed in order in double. dlogits [rows, V]
     * (written) = *scale * d loss / d logits = *scale * (e^logp - onehot(target)), 0 in frames that do not count; NULL for the
     * loss alone. It may alias logp. */
    void (*cross_entropy)(lin_exec *exec, double *loss, LIN_REAL *dlogits, const LIN_REAL *logp, const lin_segments *segments,
                          const int *targets, int V, const double *scale);
    /* The loss of a density: x [rows, 3 M] holds the logits, the means and the log scales of M logistics (Salimans et al. 2017; a
     * log scale below -7 counts as -7), targets [rows] are values 0..255, or -1. The probability of value v is that of the
     * mixture between (v - 1/2) / 127.5 - 1 and (v + 1/2) / 127.5 - 1, for 0 and 255 to the end. dx (written) = *scale * d loss /
     * d x; NULL for the loss alone; it may alias x. */
    void (*mixture)(lin_exec *exec, double *loss, LIN_REAL *dx, const LIN_REAL *x, const lin_segments *segments,
                    const int *targets, int M, const double *scale);
    /* tally->loss += the losses, in order, of utterances with no more labels than frames; a negative or non-finite one sets
     * tally->bad. */
    void (*tally_losses)(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                         const int *label_offsets);

    /* ---- optimiser --------------------------------------------------------------------------------------------------------- */

    /* norms[i] = sum of squares of tensor i, summed in double. */
    void (*sum_squares)(lin_exec *exec, double *norms, const LIN_REAL *x, const lin_tensors *tensors);
    /* From norms [n] (sums of squares): tally->norm = the norm of all, tally->steps + 1, bad if a norm is not finite; scale[i] =
     * the factor that limits the norm of tensor i (per_tensor), or of all together, to `most` (0: no limit). */
    void (*clip)(lin_exec *exec, double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor);
    /* One step over all tensors; scale[i] multiplies the gradients of tensor i (clipping). Does nothing if tally (may be NULL) is
     * bad. */
    void (*adam)(lin_exec *exec, LIN_REAL *p, const LIN_REAL *grad, LIN_REAL *m, LIN_REAL *v, const lin_tensors *tensors,
                 const double *scale, const lin_adam_step *step, const lin_tally *tally);

    /* ---- data and streams -------------------------------------------------------------------------------------------------- */

    /* x [rows, D]: the frames of items [B], each at its speaking rate and with its acoustics (kernels/acoustics.h), normalised,
     * with the masked parts 0. */
    void (*gather)(lin_exec *exec, LIN_REAL *x, const lin_gather *items, const lin_mask *masks, const lin_segments *segments,
                   int D);
    /* Prepends a stream's kept rows to its new ones. y [out rows, width]: for utterance b the first have[b] rows of tails[b] +
     * at, then its rows of x [in rows, width], as divided by `out`. tails[b] + at then receives the last keep[b] of them. If
     * tails[b] is NULL, have[b] and keep[b] are 0. */
    void (*carry)(lin_exec *exec, LIN_REAL *y, const lin_segments *out, const LIN_REAL *x, const lin_segments *in,
                  LIN_REAL *const *tails, size_t at, const int *have, const int *keep, int width);
    /* Log-mel energies y [out rows, D] of sound x [in rows] in -1..1: frame t of an utterance from its samples t hop .. t hop +
     * window-1. NULL on the CPU, where frontend/fbank.h computes them. */
    void (*fbank)(lin_exec *exec, LIN_REAL *y, const lin_segments *out, const LIN_REAL *x, const lin_segments *in,
                  const lin_fbank_table *table);
    /* Greedy decoding of logp [rows, V], exactly as decoder/search.h: the runs of utterance b that end in its rows are written to
     * phones[offsets[b]] and up, their number to n_phones[b]; -1 if a row holds NaN or its largest value is infinite (the state
     * does not change). The state is runs[slots[b]]; slots[b] -1: the utterance is skipped, n_phones[b] = 0. */
    void (*greedy)(lin_exec *exec, lin_phone *phones, int *n_phones, const LIN_REAL *logp, const lin_segments *segments, int V,
                   lin_run *runs, const int *slots);
} LIN_OPS;

#undef LIN_REAL
#undef LIN_OPS
#endif
