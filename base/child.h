/*
 * child.h - starts a program that reads bytes from strangers, with what it needs and no more.
 *
 * The child inherits three descriptors, and from the environment PATH, LD_LIBRARY_PATH and what `keep` names. Signals of the
 * terminal do not reach it. Everywhere its memory, processor time and descriptors are limited, and it cannot write to files. On
 * Linux, where the kernel has them:
 *
 *   Landlock    it reads only the system's programs and libraries, its own, and the file that is its standard input
 *   seccomp     it makes only the calls of base/child.c: none that changes a file's rights, owner or times, that makes a
 *               socket, a namespace, a session or memory that no limit counts, or that reaches into other processes or the kernel
 *   namespace   of processes: it sees no others, and all that it has started end with it. Needs root's CAP_SYS_ADMIN, or user
 *               namespaces; without either, lin_child_wait and lin_child_kill end its process group, which it cannot leave
 *   tasks       64 processes and threads. Without a user namespace (Linux 5.14) or another user (is_bound): 64 more than all that
 *               run on the machine; no limit for root
 *
 * The same holds for its own children. If the kernel has a protection but cannot set it up, for lack of memory or descriptors,
 * that is an error. LINNET_SANDBOX=off disables Landlock, the filter and the limits, for programs that cannot work with them
 * (snap).
 *
 *   lin_child child = {.argv = argv, .in = file, .out = pipe, .err = other_pipe, .memory_bytes = 1 << 30, .cpu_s = 600};
 *   int error = lin_child_start(&child, &pid);
 *   ...;
 *   lin_child_kill(pid);                        // then lin_child_wait
 *
 * Threads: any.
 */
#ifndef LIN_BASE_CHILD_H
#define LIN_BASE_CHILD_H

#include <stdint.h>
#include <sys/types.h>

typedef struct lin_child {
    const char *program;       /* a path, or a name that is looked for on the PATH */
    const char *const *argv;   /* ends with NULL */
    const char *also;          /* another program that it may start; or NULL */
    const char *const *keep;   /* names of environment variables, ends with NULL; or NULL */
    int in, out, err;          /* its descriptors 0, 1 and 2; at least 3 here */
    int64_t memory_bytes;      /* writable memory; 0: no limit */
    int cpu_s;                 /* processor time; 0: no limit */
    int is_bound;              /* it ends with the thread that starts it, and does not run as root; Linux */
} lin_child;

/* 0, or an errno: ENOENT if there is no such program. It has a process group of its own, unless lin_child_share_group was
 * called. */
int lin_child_start(const lin_child *child, pid_t *pid);

/* Ends it, and what it has started. */
void lin_child_kill(pid_t pid);

/* As waitpid, with WNOHANG or 0; when it has ended, what it has started is ended too. */
pid_t lin_child_wait(pid_t pid, int *status, int options);

/* For a process that is such a child itself: its children stay in its process group, so they end with it. */
void lin_child_share_group(void);

/* The protections that a child started now would have: a sum of these. */
enum { LIN_CHILD_LANDLOCK = 1, LIN_CHILD_SECCOMP = 2, LIN_CHILD_NAMESPACE = 4 };
int lin_child_protection(void);

#endif
