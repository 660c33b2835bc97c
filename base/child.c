// child.c - starting a program in a sandbox; see child.h.

#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"

#ifdef __linux__
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#endif

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

// MOST_TASKS: processes and threads; ffmpeg has about ten threads.
enum { MOST_FILES = 64, MOST_TASKS = 64, MOST_VARIABLES = 16, VARIABLE = 4096, STACK = 1 << 18 };
#define MOST_STACK (INT64_C(8) << 20) // of each; RLIMIT_DATA does not count it

static int shares_group;

void lin_child_share_group(void) { shares_group = 1; }

static int is_off(void)
{
    const char *wanted = getenv("LINNET_SANDBOX");
    return wanted && strcmp(wanted, "off") == 0;
}

#ifdef __linux__

/* ---- Landlock: which files may be opened ----------------------------------------------------------------------------------- */

// linux/landlock.h is younger than some C libraries; its numbers are the same on all machines.
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, RULE_PATH_BENEATH = 1, ASK_VERSION = 1 };
enum { EXECUTE = 1, WRITE_FILE = 2, READ_FILE = 4, READ_DIR = 8 };

typedef struct ruleset_attributes {
    uint64_t files, network, scoped;
} ruleset_attributes;

typedef struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed)) path_beneath;

static int landlock_version(void) { return (int)syscall(CREATE_RULESET, NULL, 0, ASK_VERSION); }

static void allow_descriptor(int rules, int fd, uint64_t rights)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) return;
    const path_beneath rule = {S_ISDIR(st.st_mode) ? rights : rights & ~(uint64_t)READ_DIR, fd};
    syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0);
}

static void allow(int rules, const char *path, uint64_t rights)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    allow_descriptor(rules, fd, rights);
    if (fd >= 0) close(fd);
}

// A program outside the system's folders has libraries of its own: PREFIX/bin/ffmpeg those in PREFIX/lib.
static void allow_program(int rules, const char *program)
{
    char path[PATH_MAX + 8];
    allow(rules, program, READ_FILE | EXECUTE);
    if (!realpath(program, path)) return;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash) *slash = 0;
    }
    if (!*path) return;
    strcat(path, "/lib");
    allow(rules, path, READ_FILE | READ_DIR | EXECUTE);
}

static void allow_list(int rules, const char *list)
{
    char path[PATH_MAX];
    while (list && *list) {
        const size_t n = strcspn(list, ":");
        if (n && n < sizeof path) {
            memcpy(path, list, n);
            path[n] = 0;
            allow(rules, path, READ_FILE | READ_DIR | EXECUTE);
        }
        list += n + (list[n] == ':');
    }
}

// *made: a descriptor of the rules; -1 if the kernel has no Landlock. Returns 0, or an errno.
static int make_rules(const char *program, const char *also, int in, int *made)
{
    static const char *const system[] = {"/bin",           "/lib",      "/lib32",     "/lib64",    "/usr/bin",
                                         "/usr/lib",       "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/bin",
                                         "/usr/local/lib", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"};
    // Landlock ABI 1 to 5: 2 adds refer, 3 truncate, 5 ioctl on devices.
    static const uint64_t files[] = {0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
    const int version = landlock_version();
    *made = -1;
    if (version < 1) return 0;
    const ruleset_attributes all = {files[version < 5 ? version - 1 : 4], version >= 4 ? 3 : 0, version >= 6 ? 3 : 0};
    const size_t size = version >= 6 ? sizeof all : version >= 4 ? offsetof(ruleset_attributes, scoped) : sizeof all.files;
    const int rules = lin_system_above_2((int)syscall(CREATE_RULESET, &all, size, 0));
    if (rules < 0) return errno;
    fcntl(rules, F_SETFD, FD_CLOEXEC);
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) allow(rules, system[i], READ_FILE | READ_DIR | EXECUTE);
    allow(rules, "/etc/ld.so.cache", READ_FILE);
    allow(rules, "/etc/ld.so.preload", READ_FILE);
    allow(rules, "/dev/null", READ_FILE | WRITE_FILE);
    allow(rules, "/dev/urandom", READ_FILE);
    if (SANITIZED) allow(rules, "/proc", READ_FILE | READ_DIR);
    allow_program(rules, program);
    if (also) allow_program(rules, also);
    allow_list(rules, getenv("LD_LIBRARY_PATH"));
    allow_descriptor(rules, in, READ_FILE); // opened again as /proc/self/fd/0
    *made = rules;
    return 0;
}

/* ---- seccomp: which calls are allowed -------------------------------------------------------------------------------------- */

/*
 * What dynamic loaders, C libraries (glibc, musl), shells, ffmpeg, libsndfile and sanitizers call to read a file that is open, to
 * compute with threads, to write to pipes, and to start programs. Calls that are not listed fail: with ENOSYS from number 424 on,
 * where the numbers of all machines are the same, so that C libraries fall back to older calls as on an older kernel (clone3,
 * openat2); else with EPERM. So a call that a kernel adds later is refused.
 */
enum { FIRST_YOUNG = 424 };

// When a row holds: always, or for these versions of Landlock.
enum { ALWAYS, WITHOUT_LANDLOCK, BEFORE_TRUNCATE /* 1 and 2 */, SINCE_TRUNCATE /* from 3 on */ };

// The call is allowed if the lower 32 bits of this argument, masked, have this value.
typedef struct allowed_call {
    int number;
    uint8_t when, argument;
    uint32_t mask, value;
} allowed_call;

#define ANY(name) {SYS_##name, ALWAYS, 0, 0, 0}
#define ONE(name, argument, value) {SYS_##name, ALWAYS, argument, ~0u, value}

// Landlock refuses to open files for writing, but its first versions overlook that O_TRUNC changes a file.
#define OPENS(name, flags)                                                                                                       \
    {SYS_##name, WITHOUT_LANDLOCK, flags, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},                                              \
        {SYS_##name, BEFORE_TRUNCATE, flags, O_TRUNC, 0}, {SYS_##name, BEFORE_TRUNCATE, flags, O_ACCMODE, O_WRONLY},             \
        {SYS_##name, BEFORE_TRUNCATE, flags, O_ACCMODE, O_RDWR}, {SYS_##name, SINCE_TRUNCATE, flags, 0, 0}

// CLONE_NEW..., CLONE_PARENT and CLONE_PTRACE
#define CLONE_REFUSED 0x7e02a080u
// MAP_SHARED and MAP_GROWSDOWN: RLIMIT_DATA does not count such memory
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
    // signals; Landlock and the namespace refuse those to other processes
    ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(rt_sigpending), ANY(rt_sigsuspend), ANY(rt_sigtimedwait),
    ANY(sigaltstack), ANY(kill), ANY(tkill), ANY(tgkill),
    // time
    ANY(nanosleep), ANY(clock_nanosleep), ANY(clock_gettime), ANY(clock_getres), ANY(gettimeofday), ANY(times), ANY(getitimer),
    ANY(setitimer),
    // information about itself and the machine
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

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif

#ifdef ARCHITECTURE

// EFAULT: the kernel has filters, and did not find one here.
static int has_filters(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != 0 && errno == EFAULT; }

enum { CALLS = sizeof allowed_calls / sizeof *allowed_calls, OF_CALL = 6 };

static int holds(int when, int version)
{
    return when == ALWAYS || when == (version < 1 ? WITHOUT_LANDLOCK : version < 3 ? BEFORE_TRUNCATE : SINCE_TRUNCATE);
}

// On x86-64, 32-bit calls have another architecture and end the child; those of x32 have numbers from 0x40000000 on and fail like
// all that are not in the table. 0, or an errno; 0 where the kernel has no filters.
static int refuse_calls(int version)
{
    const unsigned number = (unsigned)offsetof(struct seccomp_data, nr);
    struct sock_filter code[OF_CALL * CALLS + 8] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number)};
    int n = 4;
    for (int i = 0; i < CALLS; i++) {
        const allowed_call *c = &allowed_calls[i];
        const unsigned argument = (unsigned)offsetof(struct seccomp_data, args) + 8u * c->argument; // its lower half
        if (!holds(c->when, version)) continue;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)c->number, 0, c->mask ? 5 : 1);
        if (c->mask) {
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument);
            code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask);
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->value, 0, 1);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        if (c->mask) code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number);
    }
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_YOUNG, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    return !has_filters() || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : errno;
}

#else
static int has_filters(void) { return 0; }

static int refuse_calls(int version) { return 0 * version; }
#endif

// In the child. 0, or an errno: a protection that the kernel has is never skipped.
static int enter_sandbox(int rules)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    if (rules >= 0 && syscall(RESTRICT_SELF, rules, 0) != 0) return errno;
    return refuse_calls(rules < 0 ? 0 : landlock_version());
}

/* ---- another user, and how many processes it may have ---------------------------------------------------------------------- */

// The kernel limits processes by user, and root not at all. systemd uses these numbers for services with DynamicUser.
enum { FIRST_USER = 61184, USERS = 4096 };

static unsigned some_user(void)
{
    static atomic_uint used;
    return FIRST_USER + ((unsigned)getpid() * 61u + atomic_fetch_add(&used, 1)) % USERS;
}

/*
 * In the child of root: becomes a user that owns no file. Of root's capabilities it keeps that of reading files, which Landlock
 * limits. Raw calls, because the C library's would change all threads of the parent, whose memory it shares. 0, or an errno.
 */
static int leave_root(unsigned user)
{
    static const int kept[] = {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct had[2], has[2];
    memset(has, 0, sizeof has);
    if (syscall(SYS_capget, &header, had) != 0) return errno;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return errno;
    // A container may not let root be another user: then the number of processes has no limit.
    if (syscall(SYS_setresuid, user, user, user) != 0) return errno == EPERM || errno == EINVAL ? 0 : errno;
    for (int i = 0; i < 2; i++) has[0].permitted |= had[0].permitted & 1u << kept[i];
    has[0].effective = has[0].inheritable = has[0].permitted;
    if (syscall(SYS_capset, &header, has) != 0) return errno;
    for (int i = 0; i < 2; i++)
        if (has[0].permitted & 1u << kept[i] && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) != 0) return errno;
    return 0;
}

// RLIMIT_NPROC counts all processes of the user; since Linux 5.14, in a user namespace of its own, only those in it. Elsewhere
// the number of all tasks of the machine is an upper bound.
static int most_tasks(int is_counted_apart)
{
    struct utsname name;
    int major = 0, minor = 0, all = 0;
    if (is_counted_apart && uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
        (major > 5 || (major == 5 && minor >= 14)))
        return MOST_TASKS;
    FILE *f = fopen("/proc/loadavg", "re");
    if (!f) return 0;
    if (fscanf(f, "%*s %*s %*s %*d/%d", &all) != 1) all = -MOST_TASKS;
    fclose(f);
    return all + MOST_TASKS;
}

/* ---- a namespace of processes: all of them end with the first one ---------------------------------------------------------- */

// Root needs no user namespace; in a container it may get no namespace at all.
static int namespaces(void) { return geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID; }

// Shares memory as vfork does: fork would copy the page tables of a server's gigabytes, and each later write would fault.
static pid_t split(int (*function)(void *), void *context, unsigned char *stack, int spaces)
{
    const int shared = SANITIZED ? 0 : CLONE_VM | CLONE_VFORK;
    return clone(function, stack + STACK, shared | spaces | SIGCHLD, context);
}

static int nothing(void *context) { return context != NULL; }

int lin_child_protection(void)
{
    if (is_off()) return 0;
    int has = landlock_version() > 0 ? LIN_CHILD_LANDLOCK : 0;
    if (has_filters()) has |= LIN_CHILD_SECCOMP;
    unsigned char *stack = lin_alloc(STACK, 1);
    const pid_t pid = stack ? split(nothing, NULL, stack, namespaces()) : -1;
    if (pid > 0) has |= LIN_CHILD_NAMESPACE;
    if (pid > 0) waitpid(pid, NULL, 0);
    lin_free(stack);
    return has;
}

#else // another system

static int make_rules(const char *program, const char *also, int in, int *made)
{
    (void)program, (void)also, (void)in;
    *made = -1;
    return 0;
}

static int enter_sandbox(int rules) { return 0 * rules; }

int lin_child_protection(void) { return 0; }

#endif

/* ---- the child: until exec only calls that are safe in a handler, because other threads may hold any lock ------------------ */

typedef struct start {
    const lin_child *child;
    const char *path;
    char *const *environment;
    int rules, told, confined; // told: the pipe for the errno of a failure
    unsigned user;             // 0: the same
    int tasks;                 // most of them; 0: no limit
} start;

static void lower(struct rlimit *limit, int64_t most, int grace)
{
    const rlim_t wanted = (rlim_t)most;
    if (limit->rlim_max == RLIM_INFINITY || limit->rlim_max > wanted) limit->rlim_max = wanted + (rlim_t)grace;
    if (limit->rlim_cur == RLIM_INFINITY || limit->rlim_cur > wanted) limit->rlim_cur = wanted;
}

// A macro, because the type of `what` differs between C libraries.
#define LIMIT(what, most, grace)                                                                                                 \
    do {                                                                                                                         \
        struct rlimit limit;                                                                                                     \
        if (getrlimit(what, &limit) != 0) break;                                                                                 \
        lower(&limit, most, grace);                                                                                              \
        setrlimit(what, &limit);                                                                                                 \
    } while (0)

static void close_others(int told, int rules)
{
#if defined __linux__ && defined SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 4u /* close on exec */) == 0) return;
#endif
    for (int fd = 3; fd < 1024; fd++)
        if (fd != told && fd != rules) close(fd);
}

// No limit of memory with a sanitizer, whose shadow memory would count. 0, or an errno.
static int confine(const start *s)
{
    LIMIT(RLIMIT_CORE, 0, 0);
    LIMIT(RLIMIT_FSIZE, 0, 0);
    LIMIT(RLIMIT_NOFILE, MOST_FILES, 0);
    LIMIT(RLIMIT_STACK, MOST_STACK, 0);
    if (s->child->memory_bytes && !SANITIZED) LIMIT(RLIMIT_DATA, s->child->memory_bytes, 0);
    if (s->child->cpu_s) LIMIT(RLIMIT_CPU, s->child->cpu_s, 2); // SIGXCPU, then SIGKILL if it is ignored
    if (s->tasks) LIMIT(RLIMIT_NPROC, s->tasks, 0);
#ifdef __linux__
    const int error = s->user ? leave_root(s->user) : 0;
    if (error) return error;
    if (s->child->is_bound && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
#endif
    return enter_sandbox(s->rules);
}

static void become(const start *s)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++) sigaction(number, &action, NULL);
    if (!shares_group) setpgid(0, 0); // Ctrl-C is handled by the parent
    if (dup2(s->child->in, 0) < 0 || dup2(s->child->out, 1) < 0 || dup2(s->child->err, 2) < 0) return;
    close_others(s->told, s->rules);
    const int error = s->confined ? confine(s) : 0;
    if (error) {
        errno = error;
        return;
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(s->path, (char *const *)(uintptr_t)s->child->argv, s->environment);
}

static void fail_in_child(int told)
{
    const int error = errno ? errno : ENOEXEC;
    const ssize_t n = write(told, &error, sizeof error);
    _exit(n == sizeof error ? 127 : 126);
}

static int begin(void *context)
{
    const start *s = context;
    become(s);
    fail_in_child(s->told);
    return 0;
}

#ifdef __linux__
// Without namespaces where the kernel, or the container, has none. *s is changed for the child.
static pid_t divide(start *s)
{
    unsigned char *stack = lin_alloc(STACK, 1);
    pid_t pid = -1;
    if (!stack) errno = ENOMEM;
    else if (s->confined && !shares_group) {
        const int spaces = namespaces(), has_users = (spaces & CLONE_NEWUSER) != 0;
        s->user = s->child->is_bound && geteuid() == 0 ? some_user() : 0;
        s->tasks = s->user ? MOST_TASKS : most_tasks(has_users);
        pid = split(begin, s, stack, spaces);
        if (pid < 0 && has_users) s->tasks = most_tasks(0);
    }
    if (pid < 0 && stack) pid = split(begin, s, stack, 0);
    // The child's change of user cleared this flag of the memory that they shared.
    if (s->user && !SANITIZED) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    lin_free(stack);
    return pid;
}
#else
static pid_t divide(start *s)
{
    const pid_t pid = fork();
    if (pid == 0) begin(s);
    return pid;
}
#endif

// Signals stay blocked from here until the child has removed the handlers.
static int launch(start *s, int asked, pid_t *pid)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = divide(s);
    if (*pid < 0) error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(s->told);
    ssize_t n = 0;
    int why = 0;
    if (!error) {
        do n = read(asked, &why, sizeof why);
        while (n < 0 && errno == EINTR);
    }
    if (n == (ssize_t)sizeof why) {
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) continue;
        error = why;
    }
    if (error) *pid = 0;
    return error;
}

/* ---- before it ------------------------------------------------------------------------------------------------------------- */

// As a shell looks for a program. 0, or an errno.
static int find(const char *name, char *path, size_t capacity)
{
    const char *folders = getenv("PATH");
    int error = ENOENT;
    if (strchr(name, '/')) return snprintf(path, capacity, "%s", name) < (int)capacity ? 0 : ENAMETOOLONG;
    if (!folders) folders = "/usr/local/bin:/usr/bin:/bin";
    for (const char *at = folders;; at++) {
        const int n = (int)strcspn(at, ":");
        struct stat st;
        if (snprintf(path, capacity, "%.*s%s%s", n, at, n ? "/" : "./", name) < (int)capacity && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode)) {
            if (access(path, X_OK) == 0) return 0;
            error = EACCES;
        }
        at += n;
        if (!*at) return error;
    }
}

// The environment: "NAME=value" for each that is set.
static void keep_variables(const char *const *more, char *text, size_t capacity, char **environment)
{
    static const char *const always[] = {"PATH",         "LD_LIBRARY_PATH", "LINNET_SANDBOX", "ASAN_OPTIONS",
                                         "UBSAN_OPTIONS", "TSAN_OPTIONS",   NULL};
    int n = 0;
    for (const char *const *list = always; list; list = list == always ? more : NULL) {
        for (int i = 0; list[i] && n < MOST_VARIABLES - 1; i++) {
            const char *value = getenv(list[i]);
            const int length = value ? snprintf(text, capacity, "%s=%s", list[i], value) : 0;
            if (!value || length < 0 || (size_t)length >= capacity) continue;
            environment[n++] = text;
            text += length + 1;
            capacity -= (size_t)length + 1;
        }
    }
    environment[n] = NULL;
}

int lin_child_start(const lin_child *child, pid_t *pid)
{
    char path[PATH_MAX], also[PATH_MAX], text[VARIABLE], *environment[MOST_VARIABLES];
    int ends[2];
    *pid = 0;
    int error = find(child->program, path, sizeof path);
    if (error) return error;
    if (lin_system_pipe(ends) != 0) return errno;
    keep_variables(child->keep, text, sizeof text, environment);
    const int confined = !is_off(), has_also = child->also && find(child->also, also, sizeof also) == 0;
    start s = {.child = child, .path = path, .environment = environment, .rules = -1, .told = ends[1], .confined = confined};
    if (confined) error = make_rules(path, has_also ? also : NULL, child->in, &s.rules);
    if (!error) error = launch(&s, ends[0], pid);
    else close(ends[1]);
    close(ends[0]);
    if (s.rules >= 0) close(s.rules);
    return error;
}

void lin_child_kill(pid_t pid) { kill(shares_group ? pid : -pid, SIGKILL); }

pid_t lin_child_wait(pid_t pid, int *status, int options)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | options) != 0) return -1;
    if (info.si_pid == 0) return 0;
    lin_child_kill(pid); // while it is still a zombie, no other process and no other group has its number
    return waitpid(pid, status, 0);
}
