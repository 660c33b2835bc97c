// Several GPUs, one per process: NCCL moves the data, a kernel adds it in the order of the ranks, so that the bits do not depend
// on the ways that NCCL finds between the GPUs. On a stream of its own, beside the operations of the exec.
//
// NCCL is opened when the first link is made; liblinnet_cuda.so does not depend on it. Its interface, as nccl.h of version 2.7
// and newer has it, is repeated here, so that it need not be installed where linnet is built.
#include "kernels/cuda/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/memory.h"
}

#ifndef __CUDACC__
void *emulated_nccl(const char *name); // tests/emulation/nccl.cpp
#endif

enum { THREADS = 256, NCCL_SUCCESS = 0, NCCL_INT8 = 0, NCCL_FLOAT32 = 7 };

typedef struct ncclComm *nccl_comm;

static struct {
    int (*get_unique_id)(lin_link_name *id);
    int (*comm_init_rank)(nccl_comm *comm, int size, lin_link_name id, int rank);
    int (*comm_destroy)(nccl_comm comm);
    int (*comm_abort)(nccl_comm comm);
    int (*send)(const void *data, size_t count, int type, int peer, nccl_comm comm, cudaStream_t stream);
    int (*recv)(void *data, size_t count, int type, int peer, nccl_comm comm, cudaStream_t stream);
    int (*group_start)(void);
    int (*group_end)(void);
    const char *(*error_string)(int result);
    char why[512]; // why there is none
} nccl;

static pthread_once_t once = PTHREAD_ONCE_INIT;

struct lin_link {
    lin_exec *exec;
    lin_exec side; // the same GPU, with the link's stream
    nccl_comm comm;
    cudaEvent_t begun, ended;
    float *parts; // [size - 1, the longest own part]
    int rank, size;
};

/* ---- NCCL ------------------------------------------------------------------------------------------------------------------ */

static void *open_library(void)
{
    const char *named = getenv("LINNET_NCCL_LIBRARY");
    if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    return dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
}

static int find(void *library, const char *name, void *function)
{
#ifdef __CUDACC__
    void *symbol = dlsym(library, name);
#else
    void *symbol = emulated_nccl(name);
    (void)library;
#endif
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void load(void)
{
    void *library = NULL;
#ifdef __CUDACC__
    library = open_library();
    if (!library) {
        const char *why = dlerror();
        snprintf(nccl.why, sizeof nccl.why,
                 "several GPUs need NCCL, which cannot be opened: %.300s; install it (libnccl2) or use --device cpu",
                 why ? why : "no reason given");
        return;
    }
#else
    (void)open_library;
#endif
    if (!find(library, "ncclGetUniqueId", &nccl.get_unique_id) || !find(library, "ncclCommInitRank", &nccl.comm_init_rank) ||
        !find(library, "ncclCommDestroy", &nccl.comm_destroy) || !find(library, "ncclCommAbort", &nccl.comm_abort) ||
        !find(library, "ncclSend", &nccl.send) || !find(library, "ncclRecv", &nccl.recv) ||
        !find(library, "ncclGroupStart", &nccl.group_start) || !find(library, "ncclGroupEnd", &nccl.group_end) ||
        !find(library, "ncclGetErrorString", &nccl.error_string)) {
        snprintf(nccl.why, sizeof nccl.why, "several GPUs need NCCL 2.7 or newer; this one is older");
    }
}

static lin_status fail(const lin_exec *exec, int result, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_IO, "GPU %d: %s: NCCL: %s; NCCL_DEBUG=INFO shows more. Each process needs a GPU of its own",
                    exec->device, what, nccl.error_string(result));
}

static void check(lin_link *link, int result)
{
    char what[96];
    if (result == NCCL_SUCCESS) return;
    snprintf(what, sizeof what, "NCCL: %.60s", nccl.error_string(result));
    lin_cuda_check(link->exec, cudaErrorUnknown, what);
}

/* ---- a link ---------------------------------------------------------------------------------------------------------------- */

lin_status lin_cuda_link_name(lin_exec *exec, lin_link_name *name, lin_error *err)
{
    memset(name, 0, sizeof *name);
    pthread_once(&once, load);
    if (nccl.why[0]) return lin_fail(err, LIN_UNSUPPORTED, "%s", nccl.why);
    const int result = lin_cuda_ready(exec) ? nccl.get_unique_id(name) : NCCL_SUCCESS;
    return result == NCCL_SUCCESS ? LIN_OK : fail(exec, result, "naming a link", err);
}

// Where the part that a rank adds up begins; as lin_comm_part of train/comm.h.
static size_t part_of(const lin_link *link, size_t count, int rank)
{
    const size_t step = (count / (size_t)link->size + 15) / 16 * 16, at = step * (size_t)rank;
    return rank == link->size || at > count ? count : at;
}

lin_status lin_cuda_link_create(lin_exec *exec, const lin_link_name *name, int rank, int size, size_t most, lin_link **out,
                                lin_error *err)
{
    *out = NULL;
    lin_link *link = (lin_link *)lin_calloc(1, sizeof *link);
    if (!link) return lin_no_memory(err, "a link between GPUs", sizeof *link);
    link->exec = exec;
    link->rank = rank;
    link->size = size;
    // A part is at most a share rounded up, or what is left for the last rank.
    const size_t part = most / (size_t)size + 16 * (size_t)size;
    void *parts = NULL;
    lin_status status = LIN_OK;
    if (lin_cuda_ready(exec)) {
        lin_cuda_check(exec, cudaStreamCreateWithFlags(&link->side.stream, cudaStreamNonBlocking), "making a stream");
        lin_cuda_check(exec, cudaEventCreateWithFlags(&link->begun, cudaEventDisableTiming), "making an event");
        lin_cuda_check(exec, cudaEventCreateWithFlags(&link->ended, cudaEventDisableTiming), "making an event");
        lin_cuda_check(exec, cudaMalloc(&parts, (part * (size_t)size + 1) * sizeof(float)), "memory for the sums of gradients");
    }
    link->side.device = exec->device;
    link->parts = (float *)parts;
    if (exec->error != cudaSuccess) {
        status = lin_fail(err, LIN_IO, "GPU %d: %s: %s", exec->device, exec->what, cudaGetErrorString(exec->error));
    }
    if (status == LIN_OK) {
        const int result = nccl.comm_init_rank(&link->comm, size, *name, rank);
        if (result != NCCL_SUCCESS) {
            link->comm = NULL;
            status = fail(exec, result, "connecting the GPUs", err);
        }
    }
    if (status != LIN_OK) {
        lin_cuda_link_destroy(link, 1);
        return status;
    }
    *out = link;
    return LIN_OK;
}

void lin_cuda_link_destroy(lin_link *link, int lost)
{
    if (!link) return;
    cudaSetDevice(link->exec->device);
    if (link->comm) {
        // Kernels of NCCL that wait for another process end only by this.
        if (lost) nccl.comm_abort(link->comm);
        else nccl.comm_destroy(link->comm);
    }
    if (link->side.stream) {
        cudaStreamSynchronize(link->side.stream);
        cudaStreamDestroy(link->side.stream);
    }
    if (link->begun) cudaEventDestroy(link->begun);
    if (link->ended) cudaEventDestroy(link->ended);
    if (link->parts) cudaFree(link->parts);
    cudaGetLastError();
    lin_free(link);
}

/* ---- sums ------------------------------------------------------------------------------------------------------------------ */

// own [n] becomes the sum of all ranks' terms: parts [size - 1, n] are those of the others.
static __global__ void __launch_bounds__(THREADS)
    add_in_order(float *own, const float *__restrict__ parts, int rank, int size, size_t n)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float total = rank == 0 ? own[i] : parts[i];
    for (int r = 1; r < size; r++) total += r == rank ? own[i] : parts[(size_t)(r < rank ? r : r - 1) * n + i];
    own[i] = total;
}

// What follows on the link's stream begins after all operations so far.
static int begin(lin_link *link)
{
    if (!lin_cuda_ready(link->exec)) return 0;
    lin_cuda_check(link->exec, cudaEventRecord(link->begun, link->exec->stream), "beginning a sum");
    return lin_cuda_check(link->exec, cudaStreamWaitEvent(link->side.stream, link->begun, 0), "beginning a sum");
}

void lin_cuda_link_sum(lin_link *link, float *x, size_t count)
{
    if (count == 0 || link->size < 2 || !begin(link)) return;
    const size_t from = part_of(link, count, link->rank), n = part_of(link, count, link->rank + 1) - from;
    check(link, nccl.group_start());
    for (int r = 0; r < link->size; r++) {
        if (r == link->rank) continue;
        const size_t at = part_of(link, count, r), length = part_of(link, count, r + 1) - at;
        float *to = link->parts + (size_t)(r < link->rank ? r : r - 1) * n;
        if (length) check(link, nccl.send(x + at, length, NCCL_FLOAT32, r, link->comm, link->side.stream));
        if (n) check(link, nccl.recv(to, n, NCCL_FLOAT32, r, link->comm, link->side.stream));
    }
    check(link, nccl.group_end());
    if (n) {
        LIN_LAUNCH(&link->side, add_in_order, lin_cuda_blocks(n, THREADS), THREADS, 0, x + from, (const float *)link->parts,
                   link->rank, link->size, n);
    }
    lin_cuda_check(link->exec, link->side.error, link->side.what);
    check(link, nccl.group_start());
    for (int r = 0; r < link->size; r++) {
        if (r == link->rank) continue;
        const size_t at = part_of(link, count, r), length = part_of(link, count, r + 1) - at;
        if (n) check(link, nccl.send(x + from, n, NCCL_FLOAT32, r, link->comm, link->side.stream));
        if (length) check(link, nccl.recv(x + at, length, NCCL_FLOAT32, r, link->comm, link->side.stream));
    }
    check(link, nccl.group_end());
}

void lin_cuda_link_gather(lin_link *link, void *block, size_t bytes)
{
    unsigned char *at = (unsigned char *)block;
    if (bytes == 0 || link->size < 2 || !begin(link)) return;
    check(link, nccl.group_start());
    for (int r = 0; r < link->size; r++) {
        if (r == link->rank) continue;
        check(link, nccl.send(at + (size_t)link->rank * bytes, bytes, NCCL_INT8, r, link->comm, link->side.stream));
        check(link, nccl.recv(at + (size_t)r * bytes, bytes, NCCL_INT8, r, link->comm, link->side.stream));
    }
    check(link, nccl.group_end());
}

void lin_cuda_link_wait(lin_link *link)
{
    if (!lin_cuda_ready(link->exec)) return;
    lin_cuda_check(link->exec, cudaEventRecord(link->ended, link->side.stream), "ending a sum");
    lin_cuda_check(link->exec, cudaStreamWaitEvent(link->exec->stream, link->ended, 0), "ending a sum");
}

int lin_cuda_link_idle(lin_link *link)
{
    if (!lin_cuda_ready(link->exec)) return 1; // finish reports it
    const cudaError_t error = cudaEventQuery(link->ended);
    if (error == cudaErrorNotReady) cudaGetLastError();
    return error != cudaErrorNotReady;
}
