/*
 * cores.h - the processor cores that this process may use: its affinity mask, as taskset, cgroups and job schedulers set it.
 *
 * Threads: any.
 */
#ifndef LIN_BASE_CORES_H
#define LIN_BASE_CORES_H

/* How many there are, 1 or more. */
int lin_cores(void);

/* The system's number of the i-th of them, 0 <= i < lin_cores(); 0 where there is no such core or the system does not tell. */
int lin_core_number(int i);

/* Asks the system to run the calling thread on the i-th of them only. A wish: nothing happens where the system refuses. */
void lin_core_pin(int i);

#endif
