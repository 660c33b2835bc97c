/*
 * cores.h - the processor cores that this process may use: its affinity mask, as taskset, cgroups and job schedulers set it.
 *
 * Threads: any.
 */
#ifndef LIN_BASE_CORES_H
#define LIN_BASE_CORES_H

/* Their number, 1 or more. */
int lin_cores(void);

/* The same, `most` at most: threads for work that more of them do not make faster. */
int lin_cores_up_to(int most);

/* The system's number of core i, 0 <= i < lin_cores(); 0 if there is no such core or the system does not report it. */
int lin_core_number(int i);

/* Requests that the calling thread runs only on core i. If the system refuses, nothing changes. */
void lin_core_pin(int i);

#endif
