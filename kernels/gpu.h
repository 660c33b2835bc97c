/*
 * gpu.h - finds and opens the CUDA backend if there is one.
 *
 * The program links no CUDA library. At first use it looks for the driver (libcuda.so.1) and counts its GPUs. Only if there is a
 * GPU does it open liblinnet_cuda.so, which holds the kernels and needs CUDA's own libraries. Both stay open until the process
 * ends.
 *
 *   if (!lin_gpu_answers()) puts(lin_device_why_none(NULL, NULL));
 *   lin_gpu_open(0, LIN_PRECISION_TF32, &ops, &err);                     // ops->exec_create(ops, 0, &exec, &err); ...
 *
 * liblinnet_cuda.so is searched for in this order: the path in LINNET_CUDA_LIBRARY, the folder of the program, ../lib/linnet
 * relative to that folder (where make install puts it), the system's library path. LINNET_CUDA_DRIVER names another driver
 * library, for tests.
 * Threads: all functions may be called from any thread. lin_device_get and lin_device_why_none, implemented
 * here too, are described in ops.h.
 */
#ifndef LIN_KERNELS_GPU_H
#define LIN_KERNELS_GPU_H

#include "kernels/ops.h"

/* 1 if there is a GPU, its driver is new enough, and the backend's library was opened. Cheap after the first call. */
int lin_gpu_answers(void);

/* The table of GPU `device`. LIN_UNSUPPORTED, with one sentence of explanation, if it cannot be used. */
lin_status lin_gpu_open(int device, lin_precision precision, const lin_ops **ops, lin_error *err);

/* The value lin_cuda_interface of the library must return: it shows that both were built with the same table of operations. The
 * first number is raised when an argument of an operation changes its form. */
enum { LIN_CUDA_INTERFACE = 2 << 16 | (int)sizeof(lin_ops) };

#endif
