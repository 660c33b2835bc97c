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

#include "base/system.h"

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

enum { MOST_FILES = 64, MOST_VARIABLES = 16, VARIABLE = 4096 };

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

// Programs that are not the system's bring their libraries along: PREFIX/bin/ffmpeg those in PREFIX/lib.
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

// A descriptor of the rules, -1 if the kernel has none.
static int make_rules(const char *program, const char *also, int in)
{
    static const char *const system[] = {"/bin",           "/lib",      "/lib32",     "/lib64",    "/usr/bin",
                                         "/usr/lib",       "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/bin",
                                         "/usr/local/lib", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"};
    // The rights that each version added: refer, truncate, and control of devices.
    static const uint64_t files[] = {0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
    const int version = landlock_version();
    if (version < 1) return -1;
    const ruleset_attributes all = {files[version < 5 ? version - 1 : 4], version >= 4 ? 3 : 0, version >= 6 ? 3 : 0};
    const size_t size = version >= 6 ? sizeof all : version >= 4 ? offsetof(ruleset_attributes, scoped) : sizeof all.files;
    const int rules = (int)syscall(CREATE_RULESET, &all, size, 0);
    if (rules < 0) return -1;
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
    return rules;
}

/* ---- seccomp: which calls are refused -------------------------------------------------------------------------------------- */

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

#ifdef ARCHITECTURE

#ifndef SYS_io_uring_setup // younger than some C libraries
#define SYS_io_uring_setup 425
#endif

static const int refused[] = {
    // the network; io_uring opens sockets behind the filter's back
    SYS_socket, SYS_io_uring_setup,
    // other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_perf_event_open, SYS_userfaultfd, SYS_bpf,
    // what only root may do, if the server is root
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_open_by_handle_at, SYS_init_module,
    SYS_finit_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_settimeofday, SYS_clock_settime, SYS_sethostname,
    // keys
    SYS_add_key, SYS_request_key, SYS_keyctl,
};
enum { REFUSED = sizeof refused / sizeof *refused };

// Calls of another architecture (32 bits, x32) have other numbers: the child ends.
static int refuse_calls(void)
{
    const unsigned number = (unsigned)offsetof(struct seccomp_data, nr);
    const unsigned architecture = (unsigned)offsetof(struct seccomp_data, arch);
    struct sock_filter code[REFUSED + 8] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, architecture), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, REFUSED + 1, 0)};
    int n = 5;
    for (int i = 0; i < REFUSED; i++, n++)
        code[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], (unsigned char)(REFUSED - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

#else
static int refuse_calls(void) { return 0; }
#endif

// In the child.
static void enter_sandbox(int rules)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
    if (rules >= 0) syscall(RESTRICT_SELF, rules, 0);
    refuse_calls();
}

int lin_child_protection(void)
{
    if (is_off()) return 0;
    int has = landlock_version() > 0 ? LIN_CHILD_LANDLOCK : 0;
#ifdef ARCHITECTURE
    // EFAULT: the kernel has filters, and did not find one here.
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != 0 && errno == EFAULT) has |= LIN_CHILD_SECCOMP;
#endif
    return has;
}

#else // another system

static int make_rules(const char *program, const char *also, int in)
{
    (void)program, (void)also, (void)in;
    return -1;
}

static void enter_sandbox(int rules) { (void)rules; }

int lin_child_protection(void) { return 0; }

#endif

/* ---- the child: until exec only calls that are safe in a handler, because other threads may hold any lock ------------------ */

typedef struct start {
    const lin_child *child;
    const char *path;
    char *const *environment;
    int rules, told, confined; // told: the pipe for the errno of a failure
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

// The limit of memory is left out where a sanitizer's shadow would count.
static void confine(const start *s)
{
    LIMIT(RLIMIT_CORE, 0, 0);
    LIMIT(RLIMIT_FSIZE, 0, 0);
    LIMIT(RLIMIT_NOFILE, MOST_FILES, 0);
    if (s->child->memory_bytes && !SANITIZED) LIMIT(RLIMIT_DATA, s->child->memory_bytes, 0);
    if (s->child->cpu_s) LIMIT(RLIMIT_CPU, s->child->cpu_s, 2); // SIGXCPU, and SIGKILL for who ignores it
    enter_sandbox(s->rules);
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
    if (s->confined) confine(s);
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

// vfork: a server with gigabytes of memory would copy its page tables, and fault at each write after that.
#if defined __linux__ && !SANITIZED
#define FORK vfork
#else
#define FORK fork
#endif

static pid_t split(const start *s)
{
    const pid_t pid = FORK();
    if (pid == 0) {
        become(s);
        fail_in_child(s->told);
    }
    return pid;
}

// Signals stay blocked from here until the child has removed the handlers.
static int launch(const start *s, int asked, pid_t *pid)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = split(s);
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

static int above_2(int fd)
{
    if (fd < 0 || fd > 2) return fd;
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return copy;
}

int lin_child_start(const lin_child *child, pid_t *pid)
{
    char path[PATH_MAX], also[PATH_MAX], text[VARIABLE], *environment[MOST_VARIABLES];
    int ends[2];
    *pid = 0;
    int error = find(child->program, path, sizeof path);
    if (error) return error;
    if (lin_system_pipe(ends) != 0) return errno;
    for (int i = 0; i < 2; i++) ends[i] = above_2(ends[i]);
    keep_variables(child->keep, text, sizeof text, environment);
    const int confined = !is_off(), has_also = child->also && find(child->also, also, sizeof also) == 0;
    const int rules = confined ? above_2(make_rules(path, has_also ? also : NULL, child->in)) : -1;
    const start s = {child, path, environment, rules, ends[1], confined};
    if (ends[0] < 0 || ends[1] < 0) error = EMFILE;
    if (!error) error = launch(&s, ends[0], pid);
    else if (ends[1] >= 0) close(ends[1]);
    if (ends[0] >= 0) close(ends[0]);
    if (s.rules >= 0) close(s.rules);
    return error;
}

void lin_child_kill(pid_t pid) { kill(shares_group ? pid : -pid, SIGKILL); }
