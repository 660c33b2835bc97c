/*
 * ops.h - the list of operations that the encoder, its backward pass, CTC and the optimisers need.
 *
 * One operation, one signature, several implementations: ref/ (double, obviously right), cpu/ (float, SIMD, threads), cuda/
 * (float). A backend is a table of functions. The table's type is generated twice from ops_table.h, for float and for double, so
 * that the same source of the network (model/) also compiles in double against ref/ for finite differences.
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

typedef enum lin_activation { LIN_LINEAR, LIN_RELU /* max(0, v); of a NaN: NaN or 0, as the library of a GPU has it */ }
                                                      lin_activation;

enum { LIN_FENCES = 8 };

/* A trigram of labels 1..V-1 for `denominator`; 0 as a label before: none yet. `again` is apart because CTC needs a blank between
 * two equal labels. */
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
    const void *whole, *scales; /* NULL, or w as whole numbers of eight bits and the scale of each row instead (base/int8.h), of
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

/* An utterance read from a feature cache (train/dataset.h): x = (minimum + step * code - mean) * istd. With another number of
 * frames in the cache than of x, it is heard at another speaking rate (kernels/acoustics.h). */
typedef struct lin_gather {
    const unsigned char *codes; /* [frames, D]; NULL: zeros */
    const float *steps;         /* [2, D]: minimum, step */
    const float *mean, *istd;   /* [D] */
    int first_mask, n_masks;    /* among the masks of the call */
    const lin_acoustics *acoustics; /* NULL: as it was recorded */
    int frames;                     /* of codes; 0: as many as are heard */
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

/* Greedy CTC decoding of a stream, as decoder/greedy.h defines it: the run of equal labels at the end of the frames seen ... */
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
    LIN_PRECISION_AUTO  /* that of the model's file, see lin_recognizer_open; without a model fp32 */
} lin_precision;

#define LIN_REAL float
#define LIN_OPS lin_ops
#include "kernels/ops_table.h"
#undef LIN_REAL
#undef LIN_OPS

#define LIN_REAL double
#define LIN_OPS lin_ops_f64
#include "kernels/ops_table.h"
#undef LIN_REAL
#undef LIN_OPS

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
 * transposed. k is at most 65,536. `exact` of the table is lin_ops_cpu, for layers that eight bits do not suit; all other
 * operations, linear_backward_weight too, are those of lin_ops_cpu. */
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

#endif
