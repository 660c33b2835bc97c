/*
 * ops.h - the list of operations that the encoder, its backward pass, CTC and the optimisers need.
 *
 * One operation, one signature, several implementations: ref/ (double, obviously right), cpu/ (float, SIMD, threads), cuda/ (float).
 * A backend is a table of functions. The table's type is generated twice from ops_table.h, for float and for double, so that the
 * very source of the network (model/) also compiles in double against ref/ for finite differences.
 *
 *   lin_exec *exec;
 *   ops->exec_create(n_threads, &exec, &err);
 *   ops->weight_pack(exec, packed, w, n, k);
 *   ops->linear_forward(exec, y, x, packed, bias, rows, n, k, LIN_RELU);
 *   ops->exec_destroy(exec);
 *
 * Conventions. Matrices are dense, row-major, the last index fastest. "rows" are the frames of all utterances of a batch laid end to
 * end without padding; utterance b owns rows offsets[b] .. offsets[b+1]-1 (offsets[0] = 0, B+1 entries). Letters: B utterances,
 * T frames, D mel bins, C model width, H heads, E head width (C = H E), F feed-forward width, V outputs, U labels.
 * Outputs never alias inputs unless said so. "+=" means the operation adds to what is there. Operations cannot fail: sizes are
 * checked by their callers. Zero rows are allowed everywhere. Results never depend on the number of threads.
 */
#ifndef LIN_KERNELS_OPS_H
#define LIN_KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"

/* What a backend needs while it runs: threads and scratch (CPU), a stream and handles (CUDA). One user at a time. */
typedef struct lin_exec lin_exec;

typedef enum lin_activation { LIN_LINEAR, LIN_RELU } lin_activation;

/* One step of Adam or RAdam (Kingma & Ba 2015; Liu et al. 2020), its scalars worked out by the caller:
 *   g = scale[i] * grad + (decoupled ? 0 : weight_decay * p)      m = b1 m + (1-b1) g      v = b2 v + (1-b2) g^2
 *   p -= decoupled ? lr * weight_decay * p : 0
 *   p -= adaptive ? step_size * m / (sqrt(v) * v_scale + eps) : step_size * m
 * where step_size holds lr, the bias correction of m and RAdam's rectification, and v_scale = 1 / sqrt(1 - b2^t). */
typedef struct lin_adam_step {
    double beta1, beta2, eps, weight_decay, lr, step_size, v_scale;
    int adaptive, decoupled;
} lin_adam_step;

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

/* Double precision, plain loops, explicit N x N sums for attention, one thread. The judge of the others. */
const lin_ops_f64 *lin_ops_ref(void);

/* Float, SIMD (AVX-512, AVX2 + FMA, or portable vectors, chosen once per process at run time), threaded. */
const lin_ops *lin_ops_cpu(void);

/* Forces the instruction set of lin_ops_cpu: "avx512", "avx2", "portable", or NULL for the best one. LIN_UNSUPPORTED if this
 * machine lacks it. For tests; not while operations run. The environment variable LINNET_ISA does the same at first use. */
lin_status lin_cpu_select(const char *isa, lin_error *err);
const char *lin_cpu_isa(void);

/* A backend by the name of a device: "cpu", "auto" (a GPU where one answers, else the CPU), "cuda" or "cuda:n".
 * LIN_UNSUPPORTED with one sentence why where it cannot be had. */
lin_status lin_backend_open(const char *device, const lin_ops **ops, lin_error *err);

#endif
