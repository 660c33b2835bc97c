/*
 * gpu.h - finds and opens the CUDA backend, where there is one.
 *
 * The program links no CUDA library. At first use the driver (libcuda.so.1) is looked for and asked for GPUs, and only where it has
 * some, liblinnet_cuda.so is opened, which holds the kernels and needs CUDA's own libraries. Both stay open until the process ends.
 *
 *   if (!lin_gpu_answers()) puts(lin_device_why_none(NULL, NULL));
 *   lin_gpu_open(0, LIN_PRECISION_TF32, &ops, &err);                     // ops->exec_create(ops, 0, &exec, &err); ...
 *
 * liblinnet_cuda.so is looked for in this order: where LINNET_CUDA_LIBRARY says, beside the program, in ../lib/linnet seen from
 * there, where make install put it, and where the system finds libraries. LINNET_CUDA_DRIVER names another driver library, for
 * tests.
 * All functions may be called by any thread. lin_device_get and lin_device_why_none, which live here too, are told about in ops.h.
 */
#ifndef LIN_KERNELS_GPU_H
#define LIN_KERNELS_GPU_H

#include "kernels/ops.h"

/* 1 if there is a GPU, its driver is new enough, and the backend's library was opened. Cheap after the first call. */
int lin_gpu_answers(void);

/* The table of GPU `device`. LIN_UNSUPPORTED with one sentence why where it cannot be had. */
lin_status lin_gpu_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err);

/* What the library must return from lin_cuda_interface: that it was built with the same table of operations. */
enum { LIN_CUDA_INTERFACE = 1 << 16 | (int)sizeof(lin_ops) };

#endif
