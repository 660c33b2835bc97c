/*
 * ptx.h - a machine for the PTX that nvcc makes of the kernels: it runs what the compiler made, on the host, and checks it.
 *
 * Beside tests/emulation, which compiles the sources of the kernels as C++: the machine also sees predication, the order of the
 * operands of assembly, the layout of parameters, branches for architectures, alignment of vectors and races inside a warp.
 *
 *   ptx_module *module = ptx_open(text, bytes, why);      // the text must stay; kernels are decoded when they are first found
 *   const ptx_kernel *kernel = ptx_find(module, "_Z5scalePfPKfmf", why);
 *   ptx_memory_add(x, bytes, 0);                          // what kernels may access, here not yet written
 *   ptx_launch launch = {.kernel = kernel, .grid = {2, 1, 1}, .block = {256, 1, 1}, .values = values, .sizes = sizes, .n = 4};
 *   if (!ptx_run(&launch, &counts, why)) puts(why);
 *
 * The lanes of a warp go in lockstep by the lowest program counter, with a mask of the active ones. Warps take turns in a seeded
 * random order, for a random number of instructions. Blocks run one after another in random order, those of a cooperative launch
 * together. An opcode that the machine does not know is an error that names it.
 *
 * Errors, each with the kernel, the source line (nvcc -lineinfo), the instruction, the block and the lane:
 *   accesses out of bounds of an allocation, of shared or local memory, or not aligned to their size;
 *   registers and memory that are read before they are written;
 *   races in shared memory, between warps without a barrier and between lanes without a syncwarp;
 *   barriers, shuffles and votes that some of their lanes never reach; deadlocks; asynchronous copies that nothing waits for;
 *   operands of tensor cores that were not rounded; arguments whose sizes are not those of the parameters.
 *
 * One thread at a time. PTX ISA 9.0. Of the approximate functions range and flushing are modelled, not the last bits.
 */
#ifndef LIN_TESTS_PTX_PTX_H
#define LIN_TESTS_PTX_PTX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PTX_WHY = 1024 }; /* bytes of a message */

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* The kernels of a PTX text; text[bytes] is 0. NULL and a message if there is no kernel or no memory. */
ptx_module *ptx_open(const char *text, size_t bytes, char *why);
void ptx_close(ptx_module *module);

/* By its mangled name, decoded. NULL and a message if there is none, or it has an instruction that the machine does not know. */
ptx_kernel *ptx_find(ptx_module *module, const char *name, char *why);

/* A mutation: takes the i-th barrier, wait or syncwarp of a kernel away, and writes its line and text to `what`. Returns 0 if
 * there are not as many. Whether a launch came to its place is ptx_removed_reached. */
int ptx_remove_sync(ptx_kernel *kernel, int i, char *what);
extern int ptx_removed_reached;

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

/* An allocation that kernels may access, written already or not. Returns 0 if there is no memory. */
int ptx_memory_add(const void *first, size_t bytes, int written);
void ptx_memory_remove(const void *first);
/* Bytes that something else than a kernel has written, or, with written 0, whose contents no longer count. */
void ptx_memory_mark(const void *first, size_t bytes, int written);

/* ---- running --------------------------------------------------------------------------------------------------------------- */

enum ptx_class {
    PTX_INTEGER,  /* arithmetic, comparisons, selection, conversions between integers */
    PTX_FLOAT,    /* fp32; a division counts as one */
    PTX_DOUBLE,
    PTX_SPECIAL,  /* ex2, rcp, sqrt, and conversions of floats */
    PTX_MOVE,     /* mostly no instruction of the device */
    PTX_TENSOR,
    PTX_GLOBAL,   /* loads and stores, asynchronous copies too */
    PTX_SHARED,
    PTX_WARP,     /* shuffles, votes, reductions */
    PTX_SYNC,
    PTX_CONTROL,
    PTX_OTHER,    /* parameters, prefetches */
    PTX_CLASSES
};
extern const char *const ptx_class_names[PTX_CLASSES];

/* What launches did; added to. */
typedef struct ptx_counts {
    uint64_t instructions[PTX_CLASSES]; /* of warps */
    uint64_t read, written;             /* bytes of global memory, in sectors of 32, each once a launch */
    uint64_t sectors;                   /* of 32 bytes that accesses of warps touched */
    uint64_t wavefronts, conflicts;     /* of shared memory; those more than the width of the accesses needs */
    uint64_t warps, blocks;
} ptx_counts;

typedef struct ptx_launch {
    const ptx_kernel *kernel;
    unsigned grid[3], block[3];
    size_t shared_bytes;       /* dynamic */
    const void *const *values; /* [n] the arguments, and their sizes */
    const size_t *sizes;
    int n;
    int together;  /* cooperative: all blocks are resident */
    uint64_t seed; /* of the orders of blocks, warps and quanta */
} ptx_launch;

/* Runs a launch to its end. counts may be NULL, which is faster. Returns 0 and a message at the first error. */
int ptx_run(const ptx_launch *launch, ptx_counts *counts, char *why);

#ifdef __cplusplus
}
#endif

#endif
