// comm.c - collective operations over a transport, detection of mpirun and srun, and dlopen of the MPI transport; see comm.h.

#include "train/comm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"

enum {
    TAG_CONTROL = LIN_COMM_TAGS, // everything that waits; sums have their own tag and the one above it
    BUSY_TESTS = 200,            // after so many, a wait sleeps between tests, because another process may need the core
    PAUSE_NS = 50000,
    OTHERS_GRACE_S = 10,         // time to stop for ranks that have nothing to save
};
static const double LOOK_EVERY_S = 0.02; // between two checks for processes that have ended

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

static lin_status lost(lin_error *err) { return lin_fail(err, LIN_IO, "the other processes of this run cannot be reached"); }

// A process of this machine that has ended; NULL: none.
static const lin_peer *ended(const lin_comm *comm)
{
    for (int r = 0; comm->peers && r < comm->size; r++) {
        const lin_peer *p = &comm->peers[r];
        if (r != comm->rank && p->pid > 0 && p->machine == comm->peers[comm->rank].machine && kill((pid_t)p->pid, 0) != 0 &&
            errno == ESRCH)
            return p;
    }
    return NULL;
}

// LIN_OK: keep waiting. began: when the wait began; asked: when this process was first seen to be asked to stop, or 0.
static lin_status check_peers(const lin_comm *comm, double now, double began, double *asked, lin_error *err)
{
    const lin_peer *gone = ended(comm);
    if (gone)
        return lin_fail(err, LIN_IO, "process %d of this run (number %lld on %s) has ended, so that the run cannot continue",
                        (int)(gone - comm->peers), (long long)gone->pid, gone->host);
    if (comm->interrupted && comm->interrupted() && *asked <= 0) *asked = now;
    if (*asked > 0 && now - *asked > (comm->rank == 0 ? LIN_COMM_GRACE_S : OTHERS_GRACE_S))
        return lin_fail(err, LIN_STOPPED, "stopped while another process of this run did not answer");
    if (comm->patience_s > 0 && now - began > comm->patience_s)
        return lin_fail(err, LIN_IO, "nothing was received from the other processes of this run for %.0f s", comm->patience_s);
    return LIN_OK;
}

static lin_status wait_for(lin_comm *comm, void *transfer, lin_error *err)
{
    double began = 0, looked = 0, asked = 0;
    for (int n = 0;; n++) {
        int done = 0;
        lin_status status = comm->transport->test(comm, transfer, &done, err);
        if (status == LIN_OK && done) return LIN_OK;
        if (status == LIN_OK && n > BUSY_TESTS) {
            const struct timespec pause = {0, PAUSE_NS};
            const double now = lin_now();
            if (began <= 0) began = looked = now;
            if (now - looked > LOOK_EVERY_S) {
                status = check_peers(comm, now, began, &asked, err);
                looked = now;
            }
            if (status == LIN_OK) nanosleep(&pause, NULL);
        } else if (status == LIN_OK) {
            sched_yield();
        }
        if (status != LIN_OK) {
            comm->lost = 1;
            return status;
        }
    }
}

static lin_status start(lin_comm *comm, int tag, const lin_comm_message *messages, int n, void **transfer, lin_error *err)
{
    if (comm->lost) return lost(err);
    const lin_status status = comm->transport->start(comm, tag, messages, n, transfer, err);
    if (status != LIN_OK) comm->lost = 1;
    return status;
}

static lin_status exchange(lin_comm *comm, const lin_comm_message *messages, int n, lin_error *err)
{
    void *transfer;
    const lin_status status = start(comm, TAG_CONTROL, messages, n, &transfer, err);
    return status == LIN_OK ? wait_for(comm, transfer, err) : status;
}

// Adds a message from another process and one to it; returns the place for the next messages.
static lin_comm_message *add_pair(lin_comm_message *to, int peer, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    *to++ = (lin_comm_message){.peer = peer, .receives = 1, .data = in, .bytes = in_bytes};
    *to++ = (lin_comm_message){.peer = peer, .data = out, .bytes = out_bytes};
    return to;
}

/* ---- waiting for all ------------------------------------------------------------------------------------------------------- */

lin_status lin_comm_gather(lin_comm *comm, void *block, size_t bytes, lin_error *err)
{
    if (!comm) return LIN_OK;
    const size_t n = 2 * (size_t)comm->size;
    lin_comm_message *messages = lin_alloc(n, sizeof *messages);
    if (!messages) return lin_no_memory(err, "messages", n * sizeof *messages);
    unsigned char *at = block, *own = at + (size_t)comm->rank * bytes;
    lin_comm_message *next = messages;
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank) next = add_pair(next, r, at + (size_t)r * bytes, bytes, own, bytes);
    const lin_status status = exchange(comm, messages, (int)(next - messages), err);
    lin_free(messages);
    return status;
}

static lin_status broadcast_from(lin_comm *comm, int root, void *data, size_t bytes, lin_error *err)
{
    if (!comm) return LIN_OK;
    lin_comm_message *messages = lin_alloc((size_t)comm->size, sizeof *messages);
    if (!messages) return lin_no_memory(err, "messages", (size_t)comm->size * sizeof *messages);
    int used = 0;
    if (comm->rank != root) messages[used++] = (lin_comm_message){.peer = root, .receives = 1, .data = data, .bytes = bytes};
    for (int r = 0; comm->rank == root && r < comm->size; r++)
        if (r != root) messages[used++] = (lin_comm_message){.peer = r, .data = data, .bytes = bytes};
    const lin_status status = exchange(comm, messages, used, err);
    lin_free(messages);
    return status;
}

lin_status lin_comm_broadcast(lin_comm *comm, void *data, size_t bytes, lin_error *err)
{
    return broadcast_from(comm, 0, data, bytes, err);
}

lin_status lin_comm_agree(lin_comm *comm, lin_status status, lin_error *err)
{
    if (!comm || comm->lost) return status;
    lin_error why = {.status = status};
    if (status != LIN_OK && err) why = *err;
    int *all = lin_calloc((size_t)comm->size, sizeof *all), worst = 0;
    if (!all) return lin_no_memory(err, "messages", (size_t)comm->size * sizeof *all);
    all[comm->rank] = (int)status;
    lin_status sent = lin_comm_gather(comm, all, sizeof *all, err);
    while (worst < comm->size && all[worst] == LIN_OK) worst++;
    if (sent == LIN_OK && worst < comm->size) sent = broadcast_from(comm, worst, &why, sizeof why, err);
    const lin_status agreed = worst < comm->size ? (lin_status)all[worst] : LIN_OK;
    lin_free(all);
    if (sent != LIN_OK) return sent;
    if (agreed == LIN_OK) return LIN_OK;
    comm->agreed = 1;
    why.message[sizeof why.message - 1] = 0;
    if (worst == 0) return lin_fail(err, agreed, "%s", why.message);
    return lin_fail(err, agreed, "process %d, on %.63s: %s", worst, comm->peers[worst].host, why.message);
}

/* ---- sums in the background ------------------------------------------------------------------------------------------------ */

// Element where the part of a vector of `count` that this rank adds up begins; rank = size: the end.
static size_t part_begin(const lin_comm *comm, size_t count, int rank)
{
    const size_t step = (count / (size_t)comm->size + 15) / 16 * 16, at = step * (size_t)rank;
    return rank == comm->size || at > count ? count : at;
}

static size_t part_count(const lin_comm *comm, size_t count, int rank)
{
    return part_begin(comm, count, rank + 1) - part_begin(comm, count, rank);
}

static lin_status make_room(lin_comm *comm, lin_comm_sum *sum, size_t count, lin_error *err)
{
    const size_t n = 2 * (size_t)comm->size;
    if (!sum->messages) {
        sum->messages = lin_alloc(n, sizeof *sum->messages);
        if (!sum->messages) return lin_no_memory(err, "messages", n * sizeof *sum->messages);
    }
    const size_t need = part_count(comm, count, comm->rank) * (size_t)(comm->size - 1);
    return lin_grow(&sum->parts, &sum->capacity, need, sizeof *sum->parts, "the sum of gradients", err);
}

// Starts a transfer of a sum. In phase 1 each process sends its terms of every part to the one that adds it up, in phase 2 the
// sums of its own part to all.
static lin_status start_phase(lin_comm *comm, lin_comm_sum *sum, int phase, lin_error *err)
{
    const size_t mine = part_count(comm, sum->count, comm->rank);
    float *own = sum->x + part_begin(comm, sum->count, comm->rank), *terms = sum->parts;
    lin_comm_message *next = sum->messages;
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank) continue;
        float *theirs = sum->x + part_begin(comm, sum->count, r);
        const size_t bytes = part_count(comm, sum->count, r) * sizeof *theirs;
        if (phase == 1) next = add_pair(next, r, terms, mine * sizeof *terms, theirs, bytes);
        else next = add_pair(next, r, theirs, bytes, own, mine * sizeof *own);
        terms += mine;
    }
    const int tag = phase == 1 ? sum->tag : LIN_COMM_TAGS + 1 + sum->tag;
    const lin_status status = start(comm, tag, sum->messages, (int)(next - sum->messages), &sum->transfer, err);
    sum->phase = status == LIN_OK ? phase : 0;
    return status;
}

lin_status lin_comm_start_sum(lin_comm *comm, lin_comm_sum *sum, int tag, float *x, size_t count, lin_error *err)
{
    sum->phase = 0;
    if (!comm || comm->size < 2 || count == 0) return LIN_OK;
    LIN_TRY(make_room(comm, sum, count, err));
    sum->x = x;
    sum->count = count;
    sum->tag = tag;
    return start_phase(comm, sum, 1, err);
}

// Adds up our own part: the terms of ranks 0, 1, 2, ... in this order.
static void add_parts(const lin_comm *comm, const lin_comm_sum *sum)
{
    enum { BLOCK = 512 };
    const size_t n = part_count(comm, sum->count, comm->rank);
    float *own = sum->x + part_begin(comm, sum->count, comm->rank), total[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t length = n - at < BLOCK ? n - at : BLOCK;
        for (int r = 0; r < comm->size; r++) {
            const float *term = r == comm->rank ? own + at : sum->parts + (size_t)(r < comm->rank ? r : r - 1) * n + at;
            if (r == 0) memcpy(total, term, length * sizeof *total);
            for (size_t i = 0; r > 0 && i < length; i++) total[i] += term[i];
        }
        memcpy(own + at, total, length * sizeof *total);
    }
}

// After the transfer of a phase has ended.
static lin_status next_phase(lin_comm *comm, lin_comm_sum *sum, lin_error *err)
{
    if (sum->phase == 1) {
        add_parts(comm, sum);
        return start_phase(comm, sum, 2, err);
    }
    sum->phase = 0;
    return LIN_OK;
}

lin_status lin_comm_advance(lin_comm *comm, lin_comm_sum *sum, int *done, lin_error *err)
{
    lin_status status = LIN_OK;
    int arrived = 1;
    if (comm && comm->lost && sum->phase) return lost(err);
    while (sum->phase && arrived && status == LIN_OK) {
        status = comm->transport->test(comm, sum->transfer, &arrived, err);
        if (status != LIN_OK) comm->lost = 1;
        else if (arrived) status = next_phase(comm, sum, err);
    }
    if (done) *done = sum->phase == 0;
    return status;
}

lin_status lin_comm_finish(lin_comm *comm, lin_comm_sum *sum, lin_error *err)
{
    lin_status status = LIN_OK;
    if (comm && comm->lost && sum->phase) return lost(err);
    while (sum->phase && status == LIN_OK) {
        status = wait_for(comm, sum->transfer, err);
        if (status == LIN_OK) status = next_phase(comm, sum, err);
    }
    return status;
}

void lin_comm_sum_free(lin_comm_sum *sum)
{
    lin_free(sum->parts);
    lin_free(sum->messages);
    *sum = (lin_comm_sum){0};
}

/* ---- who is there ---------------------------------------------------------------------------------------------------------- */

// A hash of the machine's boot id and the PID namespace: processes with the same value see each other's process ids.
static uint64_t machine_of(const char *host)
{
    char text[256];
    uint64_t machine = 0;
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0) close(fd);
    if (n > 0) machine = lin_hash(text, (size_t)n, machine);
    else machine = lin_hash(host, strlen(host), machine);
    n = readlink("/proc/self/ns/pid", text, sizeof text);
    return n > 0 ? lin_hash(text, (size_t)n, machine) : machine;
}

static lin_status check_versions(lin_comm *comm, const lin_peer *peers, lin_error *err)
{
    for (int r = 1; r < comm->size; r++)
        if (strncmp(peers[r].version, peers[0].version, sizeof peers[r].version) != 0) {
            comm->agreed = 1;
            return lin_fail(err, LIN_MISMATCH,
                            "process %d, on %.63s, is version %.63s of the program, and process 0, on %.63s, is %.63s; use one",
                            r, peers[r].host, peers[r].version, peers[0].host, peers[0].version);
        }
    return LIN_OK;
}

lin_status lin_comm_meet(lin_comm *comm, const char *version, lin_error *err)
{
    lin_peer *peers = lin_calloc((size_t)comm->size, sizeof *peers), *own = &peers[comm->rank];
    if (!peers) return lin_no_memory(err, "the list of processes", (size_t)comm->size * sizeof *peers);
    gethostname(own->host, sizeof own->host - 1);
    own->machine = machine_of(own->host);
    own->pid = getpid();
    for (int i = 0; i < lin_cores(); i++) own->cores = lin_mix64(own->cores + (uint64_t)lin_core_number(i) + 1);
    snprintf(own->version, sizeof own->version, "%s", version);
    lin_status status = lin_comm_gather(comm, peers, sizeof *peers, err);
    if (status == LIN_OK) status = check_versions(comm, peers, err);
    if (status != LIN_OK) {
        lin_free(peers);
        return status;
    }
    comm->local_rank = comm->local_size = 0;
    for (int r = 0; r < comm->size; r++) {
        if (peers[r].machine != own->machine) continue;
        comm->local_rank += r < comm->rank;
        comm->local_size++;
    }
    comm->peers = peers;
    return LIN_OK;
}

int lin_comm_speaks(const lin_comm *comm)
{
    if (lin_comm_first(comm)) return 1;
    for (int r = 0; r < comm->rank; r++) {
        const lin_peer *p = &comm->peers[r];
        const int here = p->machine == comm->peers[comm->rank].machine;
        if (here && (kill((pid_t)p->pid, 0) == 0 || errno != ESRCH)) return 0;
    }
    return comm->lost;
}

int lin_comm_threads(const lin_comm *comm)
{
    const int mine = lin_cores();
    int sharing = comm ? 0 : 1;
    for (int r = 0; comm && r < comm->size; r++) {
        const lin_peer *p = &comm->peers[r], *own = &comm->peers[comm->rank];
        sharing += p->machine == own->machine && p->cores == own->cores;
    }
    return mine / sharing > 1 ? mine / sharing : 1;
}

void lin_comm_close(lin_comm *comm, int failed)
{
    const struct timespec pause = {0, 20000000};
    if (!comm) return;
    for (double until = lin_now() + OTHERS_GRACE_S; comm->lost && lin_now() < until && !lin_comm_speaks(comm);)
        nanosleep(&pause, NULL);
    lin_free(comm->peers);
    comm->peers = NULL;
    comm->transport->close(comm, (failed && !comm->agreed) || comm->lost);
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static const char library_name[] = "liblinnet_mpi.so";

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

// The number of processes that were started together; 1: alone. The launchers set these variables: Open MPI's mpirun; MPICH's and
// Intel's mpirun, and srun --mpi=pmi2; srun --mpi=pmix.
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
    const char *path = lin_system_plugin("LINNET_MPI_LIBRARY", library_name, found, sizeof found), *slash = strchr(path, '/');
    const int there = slash && access(path, F_OK) == 0;
    // RTLD_GLOBAL: some MPI libraries load plugins that need their symbols.
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        const char *why = dlerror();
        return lin_fail(err, LIN_UNSUPPORTED, "%d processes were started together, but %s cannot be opened: %s; %s", n,
                        library_name, why ? why : "no reason given",
                        there ? "install the MPI library that it was built with, or build linnet again with this one"
                              : "build linnet where MPI is installed (mpicc), with make");
    }
    if (!lin_system_symbol(library, "lin_mpi_open", &open) || !lin_system_symbol(library, "lin_mpi_interface", &interface))
        return lin_fail(err, LIN_UNSUPPORTED, "%s is not an MPI transport of linnet", path);
    if (interface() != LIN_MPI_INTERFACE)
        return lin_fail(err, LIN_UNSUPPORTED, "%s was built for another version of linnet: build both together", path);
    LIN_TRY(open(comm, err));
    if ((*comm)->size == n) return LIN_OK;
    lin_status status = lin_fail(err, LIN_UNSUPPORTED,
                      "the launcher started %d processes, but MPI connects %d: it is the launcher of another MPI library than "
                      "the one linnet was built with (%s)",
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
            return lin_fail(err, LIN_UNSUPPORTED,
                            "srun started %d tasks without connecting them; use srun --mpi=pmix (srun --mpi=list shows what "
                            "there is), or one task",
                            number_of("SLURM_STEP_NUM_TASKS"));
        return LIN_OK;
    }
    LIN_TRY(open_mpi(n, comm, err));
    lin_status status = lin_comm_meet(*comm, version, err);
    if (status != LIN_OK) {
        lin_comm_close(*comm, 1);
        *comm = NULL;
    }
    return status;
}
