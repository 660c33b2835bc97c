// cores.c - counting and choosing processor cores; see cores.h.

#include "base/cores.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#ifdef __linux__

int lin_cores(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n;
}

int lin_core_number(int i)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    for (int core = 0, seen = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &set) && seen++ == i) return core;
    return 0;
}

void lin_core_pin(int i)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)lin_core_number(i), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

#else // no affinity: every core of the machine

int lin_cores(void)
{
    const int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n;
}

int lin_core_number(int i)
{
    (void)i;
    return 0;
}

void lin_core_pin(int i) { (void)i; }

#endif

int lin_cores_up_to(int most)
{
    const int n = lin_cores();
    return n < most ? n : most;
}
