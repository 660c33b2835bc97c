/*
 * comm.h - a communicator: several processes that work on one task, started together by mpirun or srun.
 *
 * train/train uses it to train data-parallel. The transport, usually MPI, only moves bytes between two processes; collective
 * operations are built on that here, so every sum is added in the order of the ranks and has the same bits with every transport.
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
 * the other functions move data. A wait fails if another process of this machine has ended, the transport fails, or nothing
 * arrives for comm->patience_s (LIN_IO), or if comm->interrupted asks to stop (LIN_STOPPED, after LIN_COMM_GRACE_S on rank 0,
 * later on the others). comm->lost is 1 from then on, and every call fails at once.
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

/* A transport. Messages between two processes with the same tag arrive in the order in which they were started. */
typedef struct lin_transport {
    const char *name;
    /* Starts n messages; *transfer is for test. Only their data must stay valid until then, not the array of messages. */
    lin_status (*start)(lin_comm *comm, int tag, const lin_comm_message *messages, int n, void **transfer, lin_error *err);
    /* Moves data without waiting. *done: all messages of the transfer were received or sent, and the transfer is released. */
    lin_status (*test)(lin_comm *comm, void *transfer, int *done, lin_error *err);
    /* Releases comm. failed: ends this process too and, with the launcher's help, all others. */
    void (*close)(lin_comm *comm, int failed);
} lin_transport;

/* Where another process runs, to detect whether it has ended. */
typedef struct lin_peer {
    char host[64], version[64]; /* version: of the program */
    uint64_t machine; /* equal for processes that see each other's process ids */
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

/* Exchanges hosts, versions and process ids, and fills peers, local_rank and local_size. A transport's opening function calls it
 * after setting rank, size, transport and context. LIN_MISMATCH as above, LIN_NO_MEMORY. */
lin_status lin_comm_meet(lin_comm *comm, const char *version, lin_error *err);

/* Closes and releases it; NULL is allowed. failed: this process ends with an error. Unless all know of it (comm->agreed), the
 * others may wait for this process: then the launcher ends all of them, and with MPI this call does not return. Once the others
 * are lost, the other ranks wait before they do this, because rank 0 may have something to save. */
void lin_comm_close(lin_comm *comm, int failed);

/* Whether this process is to print and write files. */
static inline int lin_comm_first(const lin_comm *comm) { return !comm || comm->rank == 0; }

/* Whether this process should print an error that all may have: rank 0, or once the others are lost, the lowest rank left on this
 * machine. */
int lin_comm_speaks(const lin_comm *comm);

/* Threads for this process, at least 1: the cores that it may run on, divided by the number of processes that the launcher bound
 * to the same cores. */
int lin_comm_threads(const lin_comm *comm);

/* ---- waiting for all ------------------------------------------------------------------------------------------------------- */

/* If status is not LIN_OK on any process, all return the status and message of the lowest such rank; the message names the rank
 * if it is not 0. After a loss it returns `status`. */
lin_status lin_comm_agree(lin_comm *comm, lin_status status, lin_error *err);

/* Copies data [bytes] of rank 0 to all others. */
lin_status lin_comm_broadcast(lin_comm *comm, void *data, size_t bytes, lin_error *err);

/* block [size, bytes]: each process has filled its own part, at rank * bytes; on return all are filled. */
lin_status lin_comm_gather(lin_comm *comm, void *block, size_t bytes, lin_error *err);

/* ---- in the background ----------------------------------------------------------------------------------------------------- */

/* A sum of vectors over all processes: each process receives the others' terms of its part of the range, adds them in the order
 * of the ranks, and sends the sums to all. Zeroed before first use, and reused; released with lin_comm_sum_free. */
typedef struct lin_comm_sum {
    float *x;
    size_t count, capacity;
    float *parts;       /* [size - 1, count / size + 1]: the others' terms */
    lin_comm_message *messages;
    void *transfer;
    int tag, phase;     /* phase 0: idle, 1: parts, 2: sums */
} lin_comm_sum;

/* x [count] becomes the sum over all processes; nothing else may touch it until then. tag: 0..LIN_COMM_TAGS-1, another one for
 * each sum that runs at the same time. LIN_NO_MEMORY; LIN_IO after a loss. */
lin_status lin_comm_start_sum(lin_comm *comm, lin_comm_sum *sum, int tag, float *x, size_t count, lin_error *err);
/* Advances without waiting; *done (may be NULL) is 1 if the sum is complete or was never started. */
lin_status lin_comm_advance(lin_comm *comm, lin_comm_sum *sum, int *done, lin_error *err);
lin_status lin_comm_finish(lin_comm *comm, lin_comm_sum *sum, lin_error *err);
/* Must not be called while the sum runs, unless the communicator is lost. */
void lin_comm_sum_free(lin_comm_sum *sum);

/* The value that lin_mpi_interface of liblinnet_mpi.so must return: both were built with the same structures. */
enum { LIN_MPI_INTERFACE = 1 << 16 | (int)sizeof(lin_comm) };

#endif
