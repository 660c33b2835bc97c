/*
 * child_calls.h - the system calls that a child of base/child.c may make, as data. Included there only.
 *
 * The list is what dynamic loaders, C libraries (glibc, musl), shells, ffmpeg, libsndfile and sanitizers call to read a file that
 * is open, to compute with threads, to write to pipes, and to start programs. What is missing fails: with ENOSYS from number 424
 * on, where the numbers of all machines are the same, so that C libraries fall back to older calls as on an older kernel (clone3,
 * openat2); else with EPERM. So a call that a kernel adds later is refused.
 */
#ifndef LIN_BASE_CHILD_CALLS_H
#define LIN_BASE_CHILD_CALLS_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { FIRST_YOUNG = 424 };

/* When a row holds: always, or for these versions of Landlock. */
enum { ALWAYS, WITHOUT_LANDLOCK, BEFORE_TRUNCATE /* 1 and 2 */, SINCE_TRUNCATE /* from 3 on */ };

/* The call is allowed if the lower 32 bits of this argument, masked, have this value. */
typedef struct allowed_call {
    int number;
    uint8_t when, argument;
    uint32_t mask, value;
} allowed_call;

#define ANY(name) {SYS_##name, ALWAYS, 0, 0, 0}
#define ONE(name, argument, value) {SYS_##name, ALWAYS, argument, ~0u, value}

/* What opens files for writing is Landlock's, but its first versions do not see that O_TRUNC changes a file. */
#define OPENS(name, flags)                                                                                                       \
    {SYS_##name, WITHOUT_LANDLOCK, flags, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},                                              \
        {SYS_##name, BEFORE_TRUNCATE, flags, O_TRUNC, 0}, {SYS_##name, BEFORE_TRUNCATE, flags, O_ACCMODE, O_WRONLY},             \
        {SYS_##name, BEFORE_TRUNCATE, flags, O_ACCMODE, O_RDWR}, {SYS_##name, SINCE_TRUNCATE, flags, 0, 0}

/* CLONE_NEW..., CLONE_PARENT and CLONE_PTRACE */
#define CLONE_REFUSED 0x7e02a080u
/* MAP_SHARED and MAP_GROWSDOWN: RLIMIT_DATA does not count such memory */
#define MAP_REFUSED 0x101u

static const allowed_call allowed_calls[] = {
    // bytes and descriptors
    ANY(read), ANY(write), ANY(readv), ANY(writev), ANY(pread64), ANY(pwrite64), ANY(preadv), ANY(lseek), ANY(sendfile),
    ANY(copy_file_range), ANY(fadvise64), ANY(close), ANY(dup), ANY(dup3), ANY(pipe2), ANY(ppoll), ANY(pselect6),
    ANY(epoll_create1), ANY(epoll_ctl), ANY(epoll_pwait), ANY(eventfd2), {436 /* close_range */, ALWAYS, 0, 0, 0},
    {SYS_fcntl, ALWAYS, 1, ~7u, 0}, // F_DUPFD to F_SETLKW
    ONE(fcntl, 1, F_DUPFD_CLOEXEC), ONE(fcntl, 1, 1032 /* F_GETPIPE_SZ */),
    ONE(ioctl, 1, 0x5401 /* TCGETS */), ONE(ioctl, 1, 0x802c542a /* TCGETS2 */), ONE(ioctl, 1, 0x540f /* TIOCGPGRP */),
    ONE(ioctl, 1, 0x5413 /* TIOCGWINSZ */), ONE(ioctl, 1, 0x541b /* FIONREAD */), ONE(ioctl, 1, 0x5421 /* FIONBIO */),
    ONE(ioctl, 1, 0x5450 /* FIONCLEX */), ONE(ioctl, 1, 0x5451 /* FIOCLEX */),
    // files
    OPENS(openat, 2), ANY(fstat), ANY(newfstatat), ANY(statx), ANY(faccessat), {439 /* faccessat2 */, ALWAYS, 0, 0, 0},
    ANY(readlinkat), ANY(getdents64), ANY(statfs), ANY(fstatfs), ANY(getcwd), ANY(chdir), ANY(fchdir), ANY(umask),
    // memory
    {SYS_mmap, ALWAYS, 3, MAP_REFUSED, 0}, ANY(munmap), ANY(mremap), ANY(mprotect), ANY(madvise), ANY(brk), ANY(mincore),
    ANY(membarrier), {462 /* mseal */, ALWAYS, 0, 0, 0},
    // processes and threads
    {SYS_clone, ALWAYS, 0, CLONE_REFUSED, 0}, ANY(execve), ANY(exit), ANY(exit_group), ANY(wait4), ANY(waitid), ANY(futex),
    {449 /* futex_waitv */, ALWAYS, 0, 0, 0}, ANY(set_tid_address), ANY(set_robust_list), ANY(get_robust_list), ANY(sched_yield),
    ANY(sched_getaffinity), ANY(sched_getparam), ANY(sched_getscheduler), ANY(sched_get_priority_max),
    ANY(sched_get_priority_min), ANY(getcpu), ANY(restart_syscall),
#ifdef SYS_rseq
    ANY(rseq),
#endif
    // signals; those to other processes are Landlock's and the namespace's
    ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(rt_sigpending), ANY(rt_sigsuspend), ANY(rt_sigtimedwait),
    ANY(sigaltstack), ANY(kill), ANY(tkill), ANY(tgkill),
    // time
    ANY(nanosleep), ANY(clock_nanosleep), ANY(clock_gettime), ANY(clock_getres), ANY(gettimeofday), ANY(times), ANY(getitimer),
    ANY(setitimer),
    // what it is, and where
    ANY(getpid), ANY(getppid), ANY(gettid), ANY(getpgid), ANY(getsid), ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid),
    ANY(getgroups), ANY(getresuid), ANY(getresgid), ANY(capget), ANY(getpriority), ANY(getrusage), ANY(sysinfo), ANY(uname),
    ANY(getrandom), ONE(personality, 0, 0xffffffff),
    // limits of its own
    ONE(prlimit64, 0, 0), ANY(getrlimit), ANY(setrlimit),
    // a sandbox of its own, and names of threads and memory
    ONE(prctl, 0, 3 /* PR_GET_DUMPABLE */), ONE(prctl, 0, 15 /* PR_SET_NAME */), ONE(prctl, 0, 16 /* PR_GET_NAME */),
    ONE(prctl, 0, 21 /* PR_GET_SECCOMP */), ONE(prctl, 0, 22 /* PR_SET_SECCOMP */), ONE(prctl, 0, 23 /* PR_CAPBSET_READ */),
    ONE(prctl, 0, 38 /* PR_SET_NO_NEW_PRIVS */), ONE(prctl, 0, 39 /* PR_GET_NO_NEW_PRIVS */),
    ONE(prctl, 0, 0x53564d41 /* PR_SET_VMA */),
    {444 /* landlock_create_ruleset */, ALWAYS, 0, 0, 0}, {445, ALWAYS, 0, 0, 0}, {446, ALWAYS, 0, 0, 0},
#ifdef __x86_64__ // other machines never had these
    OPENS(open, 1), ANY(stat), ANY(lstat), ANY(access), ANY(readlink), ANY(getdents), ANY(pipe), ANY(dup2), ANY(poll),
    ANY(select), ANY(epoll_create), ANY(epoll_wait), ANY(eventfd), ANY(fork), ANY(vfork), ANY(getpgrp), ANY(time), ANY(alarm),
    ANY(pause), ANY(arch_prctl),
#endif
#ifdef __riscv
    {258 /* riscv_hwprobe */, ALWAYS, 0, 0, 0}, {259 /* riscv_flush_icache */, ALWAYS, 0, 0, 0},
#endif
};

#endif
