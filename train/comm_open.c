// comm_open.c - whether mpirun or srun started this process with others, and dlopen of the MPI transport; see comm.h.

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "train/comm.h"

#define LIBRARY "liblinnet_mpi.so"

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

// Processes that were started together; 1 if this one was started alone. How each launcher tells it to an MPI program: Open MPI's
// mpirun; MPICH's and Intel's mpirun, and srun --mpi=pmi2; srun --mpi=pmix.
static int started_together(void)
{
    const int n = number_of("OMPI_COMM_WORLD_SIZE"), pmi = number_of("PMI_SIZE");
    if (n > 1 || pmi > 1) return n > pmi ? n : pmi;
    return getenv("PMIX_RANK") && number_of("SLURM_STEP_NUM_TASKS") > 1 ? number_of("SLURM_STEP_NUM_TASKS") : 1;
}

static lin_status open_mpi(int n, lin_comm **comm, lin_error *err)
{
    char found[PATH_MAX + 64];
    int (*interface)(void);
    lin_status (*open)(lin_comm **, lin_error *);
    const char *path = lin_system_plugin("LINNET_MPI_LIBRARY", LIBRARY, found, sizeof found), *slash = strchr(path, '/');
    const int there = slash && access(path, F_OK) == 0;
    // Global: some MPI libraries load parts of themselves that look for the others' names.
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        const char *why = dlerror();
        return lin_fail(err, LIN_UNSUPPORTED, "%d processes were started together, but %s cannot be opened: %s; %s", n, LIBRARY,
                        why ? why : "no reason given",
                        there ? "install the MPI library that it was built with, or build linnet again with this one"
                              : "build linnet where MPI is installed (mpicc), with make");
    }
    if (!lin_system_symbol(library, "lin_mpi_open", &open) || !lin_system_symbol(library, "lin_mpi_interface", &interface))
        return lin_fail(err, LIN_UNSUPPORTED, "%s is not an MPI transport of linnet", path);
    if (interface() != LIN_MPI_INTERFACE)
        return lin_fail(err, LIN_UNSUPPORTED, "%s was built for another version of linnet: build both together", path);
    lin_status status = open(comm, err);
    if (status != LIN_OK) return status;
    if ((*comm)->size == n) return LIN_OK;
    status =
        lin_fail(err, LIN_UNSUPPORTED,
                 "the launcher started %d processes, but MPI connects %d: it is the launcher of another MPI library than the one "
                 "linnet was built with (%s)",
                 n, (*comm)->size, (*comm)->transport->name);
    lin_comm_close(*comm, 0);
    *comm = NULL;
    return status;
}

lin_status lin_comm_open(const char *version, lin_comm **comm, lin_error *err)
{
    *comm = NULL;
    const int n = started_together();
    if (n < 2) {
        if (number_of("SLURM_STEP_NUM_TASKS") > 1 && getenv("SLURM_PROCID"))
            return lin_fail(
                err, LIN_UNSUPPORTED,
                "srun started %d tasks without connecting them; use srun --mpi=pmix (srun --mpi=list shows what there is), "
                "or one task",
                number_of("SLURM_STEP_NUM_TASKS"));
        return LIN_OK;
    }
    lin_status status = open_mpi(n, comm, err);
    if (status != LIN_OK) return status;
    status = lin_comm_meet(*comm, version, err);
    if (status != LIN_OK) {
        lin_comm_close(*comm, 1);
        *comm = NULL;
    }
    return status;
}
