/*
 * child.h - starts a program that reads bytes from strangers, with what it needs and no more.
 *
 * The child gets three descriptors and no others, and of the environment PATH, LD_LIBRARY_PATH and what `keep` names. It gets no
 * signals of the terminal. Limits hold everywhere: of memory, processor time and descriptors; it cannot write bytes to files. On
 * Linux, where the kernel has them, Landlock allows it to read only the system's programs and libraries, its own, and the file
 * that is its standard input, and a seccomp filter refuses sockets, io_uring and calls that reach into other processes. All of
 * that holds for its own children too.
 * LINNET_SANDBOX=off leaves Landlock, the filter and the limits out, for programs that cannot work with them (snap).
 *
 *   lin_child child = {.argv = argv, .in = file, .out = pipe, .err = other_pipe, .memory_bytes = 1 << 30, .cpu_s = 600};
 *   int error = lin_child_start(&child, &pid);
 *   ...;
 *   lin_child_kill(pid);                        // then waitpid
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
} lin_child;

/* 0, or an errno: ENOENT if there is no such program. It has a process group of its own, unless lin_child_share_group was
 * called. */
int lin_child_start(const lin_child *child, pid_t *pid);

/* Ends it, and what it has started. */
void lin_child_kill(pid_t pid);

/* For a process that is such a child itself: whoever ends it ends its children too. */
void lin_child_share_group(void);

/* What holds for a child that starts now: a sum of these. */
enum { LIN_CHILD_LANDLOCK = 1, LIN_CHILD_SECCOMP = 2 };
int lin_child_protection(void);

#endif
