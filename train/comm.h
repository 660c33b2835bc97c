/*
 * comm.h - a communicator: several processes that work on one task, started together by mpirun or srun.
 *
 * Below train/train, which trains data-parallel with it. The transport, usually MPI, only moves bytes between two processes;
 * everything that several processes do together is built on that here, so every sum has one order (that of the ranks) and gives
 * the same bits with every transport.
 *
 *   lin_comm *comm;
 *   lin_comm_open("1.0", &comm, &err);                // NULL: one process alone, which every function here accepts
 *   status = lin_comm_agree(comm, status, &err);     // the same on all: an error of one is an error of all
 *   lin_comm_start_sum(comm, &sum, 0, x, count, &err);
 *   ... lin_comm_advance(comm, &sum, &done, &err) ... // between other work; nothing moves without it
 *   lin_comm_finish(comm, &sum, &err);               // waits: x holds the sum over all processes
 *   lin_comm_close(comm, failed);
 *
 * Every process must call the same functions in the same order with the same sizes. Only lin_comm_advance and the waits inside of
 * the other functions move data. A wait ends with LIN_IO, and comm->lost is 1 from then on, if another process of this machine
 * has ended, if the transport fails, if nothing arrives for comm->patience_s, or, on rank 0 and after LIN_COMM_GRACE_S, if
 * comm->interrupted says that this process is to stop. After that every call fails at once.
 * Threads: one at a time, always the one that opened it.
 */
#ifndef LIN_TRAIN_COMM_H
#define LIN_TRAIN_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct lin_comm lin_comm;

/* Bytes from or to one other process. */
typedef struct lin_comm_message {
    int peer, receives; /* its rank; 1: from it, 0: to it */
    void *data;
    size_t bytes;
} lin_comm_message;

/* What a transport has to do. Messages between two processes with the same tag arrive in the order of their starts. */
typedef struct lin_transport {
    const char *name;
    /* Starts n messages; *transfer receives what test needs. The messages themselves may be forgotten, their data may not. */
    lin_status (*start)(lin_comm *comm, int tag, const lin_comm_message *messages, int n, void **transfer, lin_error *err);
    /* Moves data without waiting. *done: all messages of the transfer have arrived or left, and the transfer is released. */
    lin_status (*test)(lin_comm *comm, void *transfer, int *done, lin_error *err);
    /* Releases comm. failed: ends this process too and, with the launcher's help, all others. */
    void (*close)(lin_comm *comm, int failed);
} lin_transport;

/* Where another process runs, to see whether it has ended. */
typedef struct lin_peer {
    char host[64], version[64]; /* version: of the program */
    uint64_t machine; /* equal for processes that see each other's numbers */
    uint64_t cores;   /* equal for processes of a machine that may run on the same cores */
    int64_t pid;
} lin_peer;

struct lin_comm {
    int rank, size;
    int local_rank, local_size; /* among the processes of this machine */
    double patience_s;
    int (*interrupted)(void);   /* not 0: this process is asked to stop; may be NULL */
    int lost, agreed;           /* 1: the others cannot be reached; 1: the last failure is known to all */
    lin_peer *peers;            /* [size] */
    const lin_transport *transport;
    void *context;              /* the transport's */
};

#define LIN_COMM_GRACE_S 0.5
enum { LIN_COMM_TAGS = 1000 };

/*
 * Connects to the other processes if mpirun or srun started this one together with others; *comm is NULL if not. LIN_UNSUPPORTED,
 * with what to do, if it was started so and liblinnet_mpi.so, or the MPI library under it, cannot be opened. liblinnet_mpi.so is
 * searched for like the CUDA backend (kernels/ops.h); LINNET_MPI_LIBRARY names another file. LIN_MISMATCH if the processes are of
 * different versions of the program.
 */
lin_status lin_comm_open(const char *version, lin_comm **comm, lin_error *err);

/* Exchanges hosts, versions and process numbers, which fills peers, local_rank and local_size. A transport's opening function has
 * set rank, size, transport and context. LIN_MISMATCH as above, LIN_NO_MEMORY. */
lin_status lin_comm_meet(lin_comm *comm, const char *version, lin_error *err);

/* Closes and releases it; NULL is allowed. failed: this process ends with an error. Unless all know that (comm->agreed), the
 * others may be waiting for it: then the launcher ends all of them, and with MPI this call does not return. Once the others are
 * lost, rank 0 does this first: it may have something to save. */
void lin_comm_close(lin_comm *comm, int failed);

/* Whether this process is to print and write files. */
static inline int lin_comm_first(const lin_comm *comm) { return !comm || comm->rank == 0; }

/* Whether this process is to print an error that all may have met: rank 0, or the lowest that this machine still has once the
 * others are lost. */
int lin_comm_speaks(const lin_comm *comm);

/* Threads for this process, so that those of one machine use each core once: the cores that it may run on, divided among the
 * processes that the launcher has bound to the same ones. At least 1. */
int lin_comm_threads(const lin_comm *comm);

/* ---- waiting for all ------------------------------------------------------------------------------------------------------- */

/* If status is not LIN_OK on any process, all return the status and message of the lowest such rank; the message names the rank
 * if it is not 0. After a loss it returns what it got. */
lin_status lin_comm_agree(lin_comm *comm, lin_status status, lin_error *err);

/* The largest of the processes' values, in place. */
lin_status lin_comm_max(lin_comm *comm, int *value, lin_error *err);

/* Copies data [bytes] of rank 0 to all others. */
lin_status lin_comm_broadcast(lin_comm *comm, void *data, size_t bytes, lin_error *err);

/* block [size, bytes]: each process has filled its own part, at rank * bytes; on return all are filled. */
lin_status lin_comm_gather(lin_comm *comm, void *block, size_t bytes, lin_error *err);

/* ---- in the background ----------------------------------------------------------------------------------------------------- */

/* A sum of vectors over all processes: each receives the parts of the range that it adds up, in the order of the ranks, and sends
 * the sums to all. Zeroed before first use, and reused; released with lin_comm_sum_free. */
typedef struct lin_comm_sum {
    float *x;
    size_t count, capacity;
    float *parts;       /* [size - 1, count / size + 1]: those of the others */
    lin_comm_message *messages;
    void *transfer;
    int tag, phase;     /* phase 0: idle, 1: parts, 2: sums */
} lin_comm_sum;

/* x [count] becomes the sum over all processes; nothing else may touch it until then. tag: 0..LIN_COMM_TAGS-1, another one for
 * each sum that runs at the same time. LIN_NO_MEMORY; LIN_IO after a loss. */
lin_status lin_comm_start_sum(lin_comm *comm, lin_comm_sum *sum, int tag, float *x, size_t count, lin_error *err);
/* Does what can be done without waiting; *done (may be NULL) is 1 if the sum is complete, or never begun. */
lin_status lin_comm_advance(lin_comm *comm, lin_comm_sum *sum, int *done, lin_error *err);
lin_status lin_comm_finish(lin_comm *comm, lin_comm_sum *sum, lin_error *err);
/* Not while it runs, unless the communicator is lost. */
void lin_comm_sum_free(lin_comm_sum *sum);

/* Element where the part of a vector of `count` that this rank adds up begins; rank = size: the end. */
static inline size_t lin_comm_part(const lin_comm *comm, size_t count, int rank)
{
    const size_t step = (count / (size_t)comm->size + 15) / 16 * 16, at = step * (size_t)rank;
    return rank == comm->size || at > count ? count : at;
}

/* The value that lin_mpi_interface of liblinnet_mpi.so must return: both were built with the same structures. */
enum { LIN_MPI_INTERFACE = 1 << 16 | (int)sizeof(lin_comm) };

#endif
