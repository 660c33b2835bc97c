/*
 * internal.h - shared by the files of the emulation. One lock covers all of it: one launch, one call at a time.
 *
 *   fibre.cpp    stacks and the switch between them
 *   block.cpp    the threads of a block: their order, barriers, deadlocks
 *   warp.cpp     collectives of a warp, the tensor cores' product, asynchronous copies
 *   memory.cpp   memory of the device and pinned memory of the host
 *   stream.cpp   streams, events, graphs
 *   runtime.cpp  devices, errors, faults on demand
 *   cublaslt.cpp the matrix product
 *   traffic.cpp  bytes and operations of each piece of work
 */
#ifndef LIN_EMULATION_INTERNAL_H
#define LIN_EMULATION_INTERNAL_H

#include <cuda_runtime.h>

#include <mutex>

#include "tests/emulation/emulation.h"

#if defined(__SANITIZE_ADDRESS__)
#define EMULATED_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATED_ASAN 1
#endif
#endif

enum {
    EMULATED_WARP = 32,
    EMULATED_MOST_THREADS = 1024,
    EMULATED_SHARED = 48 << 10, /* available to a kernel without a request */
    EMULATED_POISON = 0xFF,     /* a NaN in every floating-point type, -1 in an int */
    EMULATED_GUARD = 0xA5
};

extern std::recursive_mutex emulated_lock;
typedef std::lock_guard<std::recursive_mutex> emulated_guard;

/* Ends the process with a message that names the kernel, the block and the thread. */
[[noreturn]] void emulated_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- fibres: a stack on which threads run, one after another --------------------------------------------------------------- */

struct emulated_fibre;
/* An unused fibre; when it is first switched to, it runs emulated_fibre_body. */
emulated_fibre *emulated_fibre_take(void);
void emulated_fibre_give(emulated_fibre *fibre);
/* Switches from the running fibre (NULL: the host's own stack) to another (NULL: the host). */
void emulated_fibre_switch(emulated_fibre *to);
emulated_fibre *emulated_fibre_current(void);
/* In block.cpp; never returns. */
void emulated_fibre_body(void);

/* ---- a launch -------------------------------------------------------------------------------------------------------------- */

struct emulated_grid {
    const char *name;
    dim3 grid, block;
    size_t shared_bytes;
    std::function<void()> thread;
    bool together; /* all blocks are resident at the same time: a cooperative launch */
};

void emulated_run_grid(const emulated_grid &grid);

/* Of the running thread: its number in the block; the block's shared memory. */
int emulated_thread_number(void);
bool emulated_in_shared(const void *at, size_t bytes);
bool emulated_together(void);
/* A thread begins, or has ended: warp.cpp clears its copies. */
void emulated_copy_reset(int thread);

/* ---- memory (memory.cpp) --------------------------------------------------------------------------------------------------- */

enum emulated_place { EMULATED_PAGEABLE, EMULATED_PINNED, EMULATED_DEVICE };
/* The place of an address; *left: bytes from there to the end of its block. */
emulated_place emulated_where(const void *at, size_t *left);
/* Ends the process if a byte around a block was overwritten. */
void emulated_check_guards(const char *after);
unsigned long emulated_memory_live(void);
/* While an object of this type exists, the device's memory is accessible. */
struct emulated_window {
    emulated_window();
    ~emulated_window();
};

/* The device's pages and their size so far; NULL if there are none, or no pages of its own (AddressSanitizer). */
unsigned char *emulated_arena(size_t *bytes);
#define EMULATED_ARENA ((size_t)1 << 38) /* the most */

/* ---- traffic (traffic.cpp) ------------------------------------------------------------------------------------------------- */

/* Before a piece of work; false: nothing is counted, and there is no end. */
bool emulated_traffic_begin(void);
void emulated_traffic_end(const char *name);
/* Operations (two per multiplication and addition) of a product whose operands are "fp32", "tf32" or "bf16". */
void emulated_traffic_operations(double count, const char *of);
/* A page fault: true if it was the first access to a counted page, which is accessible from now on. */
bool emulated_traffic_fault(void *address, void *context);

/* ---- streams (stream.cpp) -------------------------------------------------------------------------------------------------- */

/* Queues work, or adds it to the graph that is being captured. */
cudaError_t emulated_queue(cudaStream_t stream, std::function<void()> work);
/* Does all queued work of all streams. */
void emulated_drain(void);
void emulated_capture_invalidate(void);
unsigned long emulated_objects(void);
unsigned long emulated_products(void); /* cublaslt.cpp */

/* ---- errors and faults (runtime.cpp) --------------------------------------------------------------------------------------- */

/* Stores an error for cudaGetLastError and returns it. */
cudaError_t emulated_error(cudaError_t error);
/* cudaErrorDevicesUnavailable once the device was lost, or there is none; else cudaSuccess. */
cudaError_t emulated_alive(void);
/* The settings, from emulation_set and the environment. */
long emulated_setting(emulation_setting which);
/* Counts a launch, and loses the device when its time is reached. */
void emulated_count_launch(void);
bool emulated_allocation_fails(void);

#endif
