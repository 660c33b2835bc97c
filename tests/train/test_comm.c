// What several processes do together (train/comm.h), over threads.
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "tests/comm_threads.h"
#include "tests/support.h"

enum { SUMS = 4 };
static const size_t counts[] = {0, 1, 15, 16, 17, 100, 1023, 70001};

static float term(int rank, int sum, size_t i)
{
    return (float)(lin_random_uniform((uint64_t)(rank * 100 + sum), i) - 0.5) * (i % 3 ? 1.0F : 1e6F);
}

// Several sums at the same time, each rank moving them in an order of its own; the terms are added in the order of the ranks.
static void add_up(lin_comm *comm, void *context)
{
    const size_t n = *(const size_t *)context;
    lin_comm_sum sums[SUMS] = {{0}};
    float *x[SUMS];
    lin_error err = {0};
    for (int round = 0; round < 3; round++) {
        for (int s = 0; s < SUMS; s++) {
            if (round == 0) x[s] = lin_alloc(n, sizeof(float));
            for (size_t i = 0; i < n; i++) x[s][i] = term(comm->rank, s + round, i);
            ck_assert_msg(lin_comm_start_sum(comm, &sums[s], s, x[s], n, &err) == LIN_OK, "%s", err.message);
            ck_assert(lin_comm_advance(comm, &sums[(s * comm->rank) % (s + 1)], NULL, &err) == LIN_OK);
        }
        for (int left = SUMS; left > 0;) { // by advance alone, or by waiting
            int done = 0;
            if (round == 1) {
                ck_assert(lin_comm_finish(comm, &sums[left - 1], &err) == LIN_OK);
                left--;
                continue;
            }
            for (int s = 0; s < SUMS; s++) {
                int complete;
                ck_assert(lin_comm_advance(comm, &sums[s], &complete, &err) == LIN_OK);
                done += complete;
            }
            left = SUMS - done;
            if (left) sched_yield();
        }
        for (int s = 0; s < SUMS; s++)
            for (size_t i = 0; i < n; i++) {
                float want = term(0, s + round, i);
                for (int r = 1; r < comm->size; r++) want += term(r, s + round, i);
                test_require(x[s][i] == want, "%d ranks, %zu elements, sum %d: element %zu is %g, not %g", comm->size, n, s, i,
                             (double)x[s][i], (double)want);
            }
    }
    for (int s = 0; s < SUMS; s++) {
        lin_comm_sum_free(&sums[s]);
        lin_free(x[s]);
    }
}

START_TEST(sums_have_the_order_of_the_ranks)
{
    for (int size = 1; size <= 5; size++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            size_t n = counts[i];
            test_world *world = test_world_create(size);
            test_world_run(world, add_up, &n);
            test_world_free(world);
        }
}
END_TEST

static void tell(lin_comm *comm, void *context)
{
    lin_error err = {0};
    (void)context;
    ck_assert_int_eq(comm->local_rank, comm->rank);
    ck_assert_int_eq(comm->local_size, comm->size);
    int block[8] = {0};
    block[comm->rank] = comm->rank + 10;
    ck_assert(lin_comm_gather(comm, block, sizeof *block, &err) == LIN_OK);
    for (int r = 0; r < comm->size; r++) ck_assert_int_eq(block[r], r + 10);
    char text[100];
    snprintf(text, sizeof text, "from %d", comm->rank);
    ck_assert(lin_comm_broadcast(comm, text, sizeof text, &err) == LIN_OK);
    ck_assert_str_eq(text, "from 0");
    // nobody fails
    ck_assert_int_eq(lin_comm_agree(comm, LIN_OK, &err), LIN_OK);
    ck_assert_int_eq(comm->agreed, 0);
    // ranks 1 and 3 fail: all have the failure of rank 1
    lin_status status = comm->rank % 2 ? lin_fail(&err, LIN_FORMAT, "rank %d fails", comm->rank) : LIN_OK;
    ck_assert_int_eq(lin_comm_agree(comm, status, &err), LIN_FORMAT);
    ck_assert_msg(strstr(err.message, "process 1, on ") == err.message && strstr(err.message, ": rank 1 fails"), "%s",
                  err.message);
    ck_assert_int_eq(comm->agreed, 1);
    // all fail: the message of rank 0 as it is
    status = lin_fail(&err, LIN_NUMERIC, "rank %d fails", comm->rank);
    ck_assert_int_eq(lin_comm_agree(comm, status, &err), LIN_NUMERIC);
    ck_assert_str_eq(err.message, "rank 0 fails");
}

START_TEST(all_learn_the_same)
{
    test_world *world = test_world_create(4);
    test_world_run(world, tell, NULL);
    test_world_free(world);
}
END_TEST

static int yes(void) { return 1; }

// Rank 1 does nothing; the others wait for it, each in another way.
static void wait_in_vain(lin_comm *comm, void *context)
{
    const char *how = context;
    lin_error err = {0};
    int block[8] = {0};
    float x[64] = {0};
    lin_comm_sum sum = {0};
    if (comm->rank == 1) return;
    comm->patience_s = strcmp(how, "patience") == 0 ? 0.1 : 20;
    if (strcmp(how, "ended") == 0) { // rank 1 is a process that has ended
        const pid_t child = fork();
        if (child == 0) _exit(0);
        ck_assert(waitpid(child, NULL, 0) == child);
        comm->peers[1].pid = child;
    }
    if (strcmp(how, "asked") == 0 && comm->rank == 0) comm->interrupted = yes;
    if (strcmp(how, "asked") == 0 && comm->rank != 0) return;
    ck_assert(lin_comm_start_sum(comm, &sum, 0, x, 64, &err) == LIN_OK);
    const lin_status status = comm->rank == 0 ? lin_comm_finish(comm, &sum, &err)
                                               : lin_comm_gather(comm, block, sizeof *block, &err);
    const char *part = strcmp(how, "patience") == 0 ? "for 0 s" : strcmp(how, "ended") == 0 ? "process 1 of this run"
                       : "did not answer";
    ck_assert_int_eq(status, strcmp(how, "asked") == 0 ? LIN_STOPPED : LIN_IO);
    ck_assert_msg(strstr(err.message, part) != NULL, "%s: %s", how, err.message);
    ck_assert_int_eq(comm->lost, 1);
    // afterwards everything fails at once
    ck_assert_int_eq(lin_comm_gather(comm, block, sizeof *block, &err), LIN_IO);
    ck_assert_int_eq(lin_comm_finish(comm, &sum, &err), comm->rank == 0 ? LIN_IO : LIN_IO);
    ck_assert_int_eq(lin_comm_start_sum(comm, &sum, 0, x, 64, &err), LIN_IO);
    ck_assert_int_eq(lin_comm_agree(comm, LIN_FORMAT, &err), LIN_FORMAT);
    lin_comm_sum_free(&sum);
    if (strcmp(how, "ended") == 0) ck_assert_int_eq(lin_comm_speaks(comm), comm->rank == 0);
}

START_TEST(a_wait_ends)
{
    static const char *const ways[] = {"patience", "ended", "asked"};
    char how[16];
    snprintf(how, sizeof how, "%s", ways[_i]);
    test_world *world = test_world_create(3);
    test_world_run(world, wait_in_vain, how);
    test_world_free(world);
}
END_TEST

static void meet_other_versions(lin_comm *comm, void *context)
{
    lin_error err = {0};
    (void)context;
    lin_free(comm->peers);
    comm->peers = NULL;
    ck_assert_int_eq(lin_comm_meet(comm, comm->rank == 2 ? "0.3" : "0.2", &err), LIN_MISMATCH);
    HAS(err.message, "process 2", "is version 0.3", "is 0.2");
    ck_assert_int_eq(comm->agreed, 1);
}

START_TEST(other_versions_are_refused)
{
    test_world *world = test_world_create(3);
    test_world_run(world, meet_other_versions, NULL);
    test_world_free(world);
}
END_TEST

// Without other processes every function does nothing.
START_TEST(alone)
{
    int value = 3;
    ck_assert_int_eq(lin_comm_agree(NULL, LIN_FORMAT, NULL), LIN_FORMAT);
    OK(lin_comm_gather(NULL, &value, sizeof value, &err));
    ck_assert(lin_comm_first(NULL) && lin_comm_speaks(NULL) && lin_comm_threads(NULL) >= 1);
    lin_comm_close(NULL, 1);
    // srun without MPI started several tasks that know nothing of each other
    lin_comm *comm;
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "1", 1);
    FAILS(lin_comm_open("1", &comm, &err), LIN_UNSUPPORTED, "srun --mpi");
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("SLURM_PROCID");
    OK(lin_comm_open("1", &comm, &err));
    ck_assert(comm == NULL);
    // started by mpirun, without the library
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("LINNET_MPI_LIBRARY", "/nowhere/liblinnet_mpi.so", 1);
    FAILS(lin_comm_open("1", &comm, &err), LIN_UNSUPPORTED, "2 processes were started together", "mpicc");
}
END_TEST

TEST_MAIN("comm", TEST(sums_have_the_order_of_the_ranks), TEST(all_learn_the_same), TESTS(a_wait_ends, 0, 3),
          TEST(other_versions_are_refused), TEST(alone))
