// intruder.c - stands for ffmpeg, and tries what a decoder that was taken over would. On standard error it names what succeeded,
// as an error of ffmpeg; the file `victim` beside it is what it wants to change.
//
//   LINNET_FFMPEG=.../intruder linnet transcribe file.m4a      "... [error] succeeded: none"
//   with a file `stay` beside it: leaves processes behind that never end, and waits itself; `linger`: it ends, they do not
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { FORKS = 201, MOST = 1 << 10 };

static char got[MOST] = "", victim[MOST], beside[MOST];

static void note(const char *name, int succeeded)
{
    const size_t n = strlen(got);
    if (succeeded) snprintf(got + n, sizeof got - n, " %s", name);
}

// A call without valid arguments: the kernel refuses it in another way than the sandbox does.
static void try_call(const char *name, long number, int want)
{
    errno = 0;
    const long result = syscall(number, -1L, -1L, -1L, -1L, -1L, -1L);
    note(name, result >= 0 || errno != want);
}

static void change_files(void)
{
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    const int fd = open("/proc/self/fd/0", O_RDONLY);
    int flags = 0;
    note("chmod", chmod(victim, 0777) == 0);
    note("fchmod", fchmod(0, 0777) == 0);
    note("chown", chown(victim, getuid(), getgid()) == 0);
    note("fchown", fchown(0, getuid(), getgid()) == 0);
    note("setxattr", setxattr(victim, "user.linnet", "x", 1, 0) == 0);
    note("fsetxattr", fsetxattr(0, "user.linnet", "x", 1, 0) == 0);
    note("utimes", utimensat(AT_FDCWD, victim, times, 0) == 0);
    note("futimes", futimens(0, times) == 0);
    note("truncate", truncate(victim, 0) == 0);
    note("truncating", open(victim, O_RDONLY | O_TRUNC) >= 0 || open(victim, O_ACCMODE | O_TRUNC) >= 0);
    note("truncating-input", open("/proc/self/fd/0", O_RDONLY | O_TRUNC) >= 0);
    note("reading", open(victim, O_RDONLY) >= 0);
    note("unlink", unlink(victim) == 0);
    note("flags", fd < 0 || ioctl(fd, _IOR('f', 1, long), &flags) == 0 || errno != EPERM);
}

static void take_memory(void)
{
    const int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
    if (id >= 0) shmctl(id, IPC_RMID, NULL);
    note("shmget", id >= 0);
    const int rights = PROT_READ | PROT_WRITE;
    note("shared-memory", mmap(NULL, 1 << 20, rights, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    note("stack-memory", mmap(NULL, 1 << 20, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) != MAP_FAILED);
}

static void reach_out(void)
{
    struct rlimit limit;
    note("socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    note("limits-of-others", syscall(SYS_prlimit64, getppid() ? getppid() : 1, RLIMIT_CORE, NULL, &limit) == 0);
    note("life", prctl(PR_SET_PDEATHSIG, 0) == 0);
    note("setuid", syscall(SYS_setresuid, -1, -1, -1) == 0);
}

static int nothing(void *context) { return context != NULL; }

static void take_kernel(void)
{
    static const struct { const char *name; long number; int want; } calls[] = {
        {"setns", SYS_setns, EPERM},
        {"unshare", SYS_unshare, EPERM},
        {"mount", SYS_mount, EPERM},
        {"ptrace", SYS_ptrace, EPERM},
        {"bpf", SYS_bpf, EPERM},
        {"keyctl", SYS_keyctl, EPERM},
        {"init_module", SYS_init_module, EPERM},
        {"delete_module", SYS_delete_module, EPERM},
        {"kexec_load", SYS_kexec_load, EPERM},
#ifdef SYS_kexec_file_load
        {"kexec_file_load", SYS_kexec_file_load, EPERM},
#endif
        {"open_by_handle_at", SYS_open_by_handle_at, EPERM},
        // younger ones, as on a kernel without them
        {"pidfd_send_signal", 424, ENOSYS},
        {"io_uring_setup", 425, ENOSYS},
        {"open_tree", 428, ENOSYS},
        {"move_mount", 429, ENOSYS},
        {"fsopen", 430, ENOSYS},
        {"pidfd_open", 434, ENOSYS},
        {"clone3", 435, ENOSYS},
        {"openat2", 437, ENOSYS},
        {"pidfd_getfd", 438, ENOSYS},
        {"process_madvise", 440, ENOSYS},
        {"mount_setattr", 442, ENOSYS},
        {"fchmodat2", 452, ENOSYS},
        {"setxattrat", 463, ENOSYS},
#ifdef __x86_64__
        {"x32-getpid", 0x40000000 + 39, ENOSYS},
        {"x32-ptrace", 0x40000000 + 521, ENOSYS},
#endif
    };
    static const struct { const char *name; int flag; } spaces[] = {
        {"new-user", CLONE_NEWUSER}, {"new-pid", CLONE_NEWPID}, {"new-net", CLONE_NEWNET}, {"new-ipc", CLONE_NEWIPC},
        {"new-uts", CLONE_NEWUTS}, {"new-mount", CLONE_NEWNS}, {"new-cgroup", CLONE_NEWCGROUP}, {"parent", CLONE_PARENT},
    };
    static char stack[1 << 16] __attribute__((aligned(16)));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) try_call(calls[i].name, calls[i].number, calls[i].want);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        const pid_t pid = clone(nothing, stack + sizeof stack, spaces[i].flag | SIGCHLD, NULL);
        note(spaces[i].name, pid >= 0 || errno != EPERM);
        if (pid > 0) waitpid(pid, NULL, 0);
    }
}

// A process that its parent has left, in a session of its own if it may.
static void leave_one_behind(void)
{
    int ends[2];
    char told = 0;
    if (pipe(ends) != 0) return;
    const pid_t pid = fork();
    if (pid == 0) {
        const char is_free = setsid() >= 0;
        if (fork() == 0) {
            if (write(ends[1], &is_free, 1) != 1) _exit(1);
            for (;;) pause();
        }
        _exit(0);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
    note("setsid", pid > 0 && read(ends[0], &told, 1) == 1 && told);
    if (fork() == 0) {
        const int is_free = setpgid(0, 0) == 0;
        _exit(is_free);
    }
    int status = 0;
    wait(&status);
    note("setpgid", WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void multiply(void)
{
    pid_t children[FORKS];
    int n = 0;
    for (; n < FORKS; n++) {
        children[n] = fork();
        if (children[n] == 0)
            for (;;) pause();
        if (children[n] < 0) break;
    }
    note("forks", n == FORKS);
    for (int i = 0; i < n; i++) kill(children[i], SIGKILL);
    for (int i = 0; i < n; i++) waitpid(children[i], NULL, 0);
}

static int is_there(const char *name)
{
    snprintf(beside + strlen(victim) - strlen("victim"), 16, "%s", name);
    struct stat st;
    return stat(beside, &st) == 0;
}

int main(void)
{
    const ssize_t n = readlink("/proc/self/exe", victim, sizeof victim - 16);
    char *slash = n > 0 ? strrchr(victim, '/') : NULL;
    if (!slash) return 1;
    strcpy(slash + 1, "victim");
    strcpy(beside, victim);
    leave_one_behind();
    if (is_there("stay"))
        for (;;) pause();
    if (is_there("linger")) {
        fprintf(stderr, "[error] lingers\n");
        _exit(1); // without closing the pipes of the one that stays
    }
    change_files();
    take_memory();
    reach_out();
    take_kernel();
    multiply();
    fprintf(stderr, "[error] succeeded:%s\n", *got ? got : " none");
    return 1;
}
