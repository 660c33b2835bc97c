// mpi.c - the MPI transport of train/comm.h: liblinnet_mpi.so, compiled against the MPI library that is installed and opened only
// by a process that mpirun or srun started. The program itself does not depend on MPI, whose libraries have different binary
// interfaces.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/comm.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int lin_mpi_interface(void);
EXPORT lin_status lin_mpi_open(lin_comm **comm, lin_error *err);

static const size_t MOST_BYTES = (size_t)1 << 30; // of one MPI message: it counts in int

typedef struct transfer {
    int n;
    MPI_Request requests[];
} transfer;

static lin_status fail(lin_error *err, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    return lin_fail(err, LIN_IO, "MPI: %s: %.*s", what, n, text);
}

static size_t pieces_of(const lin_comm_message *m) { return (m->bytes + MOST_BYTES - 1) / MOST_BYTES; }

static lin_status start(lin_comm *comm, int tag, const lin_comm_message *messages, int n, void **out, lin_error *err)
{
    (void)comm;
    size_t pieces = 0;
    for (int i = 0; i < n; i++) pieces += pieces_of(&messages[i]);
    transfer *t = lin_alloc(1, sizeof *t + pieces * sizeof *t->requests);
    if (!t) return lin_no_memory(err, "MPI messages", pieces * sizeof *t->requests);
    t->n = 0;
    int code = MPI_SUCCESS;
    for (int sends = 0; sends < 2; sends++) // post receives first, so that arriving data has a place
        for (int i = 0; i < n; i++) {
            const lin_comm_message *m = &messages[i];
            for (size_t at = 0; m->receives != sends && at < m->bytes && code == MPI_SUCCESS; at += MOST_BYTES) {
                const int bytes = (int)(m->bytes - at < MOST_BYTES ? m->bytes - at : MOST_BYTES);
                char *data = (char *)m->data + at;
                code = sends ? MPI_Isend(data, bytes, MPI_BYTE, m->peer, tag, MPI_COMM_WORLD, &t->requests[t->n++])
                             : MPI_Irecv(data, bytes, MPI_BYTE, m->peer, tag, MPI_COMM_WORLD, &t->requests[t->n++]);
            }
        }
    *out = t;
    return code == MPI_SUCCESS ? LIN_OK : fail(err, code, "a message could not be started");
}

static lin_status test(lin_comm *comm, void *context, int *done, lin_error *err)
{
    transfer *t = context;
    (void)comm;
    *done = 0;
    const int code = MPI_Testall(t->n, t->requests, done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) return fail(err, code, "another process of this run cannot be reached");
    if (*done) lin_free(t);
    return LIN_OK;
}

static void close_mpi(lin_comm *comm, int failed)
{
    lin_free(comm);
    fflush(NULL); // MPI_Abort ends the process at once
    if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
}

int lin_mpi_interface(void) { return LIN_MPI_INTERFACE; }

lin_status lin_mpi_open(lin_comm **out, lin_error *err)
{
    static lin_transport transport = {.start = start, .test = test, .close = close_mpi};
    static char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int has = 0, length = 0;
    *out = NULL;
    lin_comm *comm = lin_calloc(1, sizeof *comm);
    if (!comm) return lin_no_memory(err, "a communicator", sizeof *comm);
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &has);
    if (code != MPI_SUCCESS) {
        lin_free(comm);
        return fail(err, code, "it does not start");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Get_library_version(name, &length);
    name[strcspn(name, "\n")] = 0;
    if (strlen(name) > 40) name[strcspn(name, ",")] = 0;
    transport.name = name;
    comm->transport = &transport;
    MPI_Comm_rank(MPI_COMM_WORLD, &comm->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &comm->size);
    *out = comm;
    return LIN_OK;
}
