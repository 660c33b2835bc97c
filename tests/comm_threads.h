/*
 * comm_threads.h - communicators of threads: a transport of train/comm.h within one process, for tests.
 *
 *   test_world *world = test_world_create(3);
 *   test_world_run(world, work, context);      // work(comm, context) in a thread for each rank; returns when all have ended
 *   test_world_free(world);
 */
#ifndef LIN_TESTS_COMM_THREADS_H
#define LIN_TESTS_COMM_THREADS_H

#include "train/comm.h"

typedef struct test_world test_world;

test_world *test_world_create(int size);
void test_world_free(test_world *world);
void test_world_run(test_world *world, void (*work)(lin_comm *comm, void *context), void *context);

/* From its n-th start of messages on this rank's transport fails, and so do those of the others, as when its process ends. 0:
 * never. */
void test_world_fail(test_world *world, int rank, int n);

/* Starts of messages by this rank so far. */
int test_world_starts(const test_world *world, int rank);

#endif
