// [native] What a started program may do: descriptors, variables, files, network, memory, time; see base/child.h. The program
// that is started is a shell, or this one with the name of a task.
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support.h"

static const char *secret, *given;

static void setup(void)
{
    secret = test_file("secret", "hidden\n", 7);
    given = test_file("given", "given\n", 6);
    unsetenv("LINNET_SANDBOX");
}

typedef struct ran {
    int error, status;
    char said[512];
} ran;

static ran run(lin_child child)
{
    ran r = {0};
    int ends[2];
    pid_t pid;
    ck_assert_int_eq(pipe(ends), 0);
    child.in = open(given, O_RDONLY | O_CLOEXEC);
    child.out = child.err = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
    close(ends[1]);
    r.error = lin_child_start(&child, &pid);
    close(child.in);
    close(child.out);
    ssize_t n;
    size_t at = 0;
    while ((n = read(ends[0], r.said + at, sizeof r.said - 1 - at)) > 0) at += (size_t)n;
    close(ends[0]);
    if (!r.error) ck_assert_int_eq(waitpid(pid, &r.status, 0), pid);
    return r;
}

static ran shell(const char *command)
{
    const char *const argv[] = {"sh", "-c", command, "sh", secret, given, NULL};
    return run((lin_child){.program = "sh", .argv = argv});
}

static ran task(const char *name, int64_t memory_bytes, int cpu_s)
{
    const char *const argv[] = {"test", name, secret, NULL};
    return run((lin_child){.program = "/proc/self/exe", .argv = argv, .memory_bytes = memory_bytes, .cpu_s = cpu_s});
}

START_TEST(descriptors_and_variables)
{
    ck_assert_str_eq(shell("cat").said, "given\n");
    const int open_here = open(secret, O_RDONLY); // without close-on-exec
    char command[128];
    snprintf(command, sizeof command, "if [ -e /proc/self/fd/%d ]; then echo open; else echo closed; fi", open_here);
    if (access("/proc/self/fd", F_OK) == 0) ck_assert_str_eq(shell(command).said, "closed\n");
    close(open_here);
    setenv("SECRET_OF_TEST", "s", 1);
    setenv("KEPT_BY_TEST", "k", 1);
    static const char *const keep[] = {"KEPT_BY_TEST", NULL};
    const char *const argv[] = {"sh", "-c", "echo ${SECRET_OF_TEST-none} ${KEPT_BY_TEST-none} ${PATH:+path}", NULL};
    ck_assert_str_eq(run((lin_child){.program = "sh", .argv = argv, .keep = keep}).said, "none k path\n");
}
END_TEST

START_TEST(programs_that_cannot_be_started)
{
    const char *const argv[] = {"x", NULL};
    ck_assert_int_eq(run((lin_child){.program = "no-such-program-of-linnet", .argv = argv}).error, ENOENT);
    ck_assert_int_eq(run((lin_child){.program = "/nowhere/x", .argv = argv}).error, ENOENT);
    ck_assert_int_eq(run((lin_child){.program = secret, .argv = argv}).error, EACCES);
}
END_TEST

START_TEST(files)
{
    ck_assert_str_eq(shell("cat \"$1\" 2> /dev/null || echo refused").said,
                     lin_child_protection() & LIN_CHILD_LANDLOCK ? "refused\n" : "hidden\n");
    if (access("/proc/self/fd", F_OK) == 0) ck_assert_str_eq(shell("cat /proc/self/fd/0").said, "given\n"); // opened again
    shell("trap '' XFSZ; echo x >> \"$1\"; echo x > \"$1.new\"");
    FILE *f = fopen(secret, "r");
    char text[16] = "";
    ck_assert(f && fgets(text, sizeof text, f));
    fclose(f);
    ck_assert_str_eq(text, "hidden\n");
    ck_assert_int_eq(shell("exit 3").status, 3 << 8);
    setenv("LINNET_SANDBOX", "off", 1);
    ck_assert_str_eq(shell("cat \"$1\"").said, "hidden\n");
}
END_TEST

START_TEST(network_and_other_processes)
{
    if (!(lin_child_protection() & LIN_CHILD_SECCOMP)) return;
    ck_assert_str_eq(task("socket", 0, 0).said, "Operation not permitted\n");
    ck_assert_str_eq(task("nested socket", 0, 0).said, "Operation not permitted\n");
    setenv("LINNET_SANDBOX", "off", 1);
    ck_assert_str_eq(task("socket", 0, 0).said, "Success\n");
}
END_TEST

// What has no descriptor left for Landlock does not start without it.
START_TEST(nothing_is_left_out)
{
    if (!(lin_child_protection() & LIN_CHILD_LANDLOCK)) return;
    const char *const argv[] = {"sh", "-c", "exit 0", NULL};
    const int in = open(given, O_RDONLY | O_CLOEXEC), out = dup(1), free_one = dup(in);
    struct rlimit limit;
    pid_t pid;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    close(free_one);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)free_one + 2; // for the pipe that tells of a failure
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const int error = lin_child_start(&(lin_child){.program = "sh", .argv = argv, .in = in, .out = out, .err = out}, &pid);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    close(in);
    close(out);
    ck_assert_int_eq(error, EMFILE);
    ck_assert_int_eq(pid, 0);
}
END_TEST

START_TEST(memory_and_time)
{
    ck_assert_str_eq(task("memory", 0, 0).said, "enough\n");
#if defined __linux__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    ck_assert_str_eq(task("memory", 64 << 20, 0).said, "not enough\n");
#endif
    const ran r = task("time", 0, 1);
    ck_assert(WIFSIGNALED(r.status) && (WTERMSIG(r.status) == SIGXCPU || WTERMSIG(r.status) == SIGKILL));
}
END_TEST

START_TEST(all_of_it_is_ended)
{
    const char *const argv[] = {"sh", "-c", "sleep 1000 & echo started; wait", NULL};
    const char *const left[] = {"sh", "-c", "sleep 1000 & echo started", NULL};
    int ends[2], in = open(given, O_RDONLY | O_CLOEXEC), status;
    char text[16];
    pid_t pid;
    ck_assert_int_eq(pipe(ends), 0);
    const int out = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
    close(ends[1]);
    ck_assert_int_eq(lin_child_start(&(lin_child){.program = "sh", .argv = left, .in = in, .out = out, .err = out}, &pid), 0);
    ck_assert_int_eq(read(ends[0], text, sizeof text), 8);
    ck_assert_int_eq(lin_child_wait(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(lin_child_start(&(lin_child){.program = "sh", .argv = argv, .in = in, .out = out, .err = out}, &pid), 0);
    close(out);
    ck_assert_int_eq(read(ends[0], text, sizeof text), 8);
    lin_child_kill(pid);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(read(ends[0], text, sizeof text), 0); // its own child had the pipe too
    close(ends[0]);
    close(in);
}
END_TEST

/* ---- tasks of the started program ------------------------------------------------------------------------------------------ */

static int do_task(const char *name)
{
    if (strcmp(name, "nested socket") == 0) {
        const char *const argv[] = {"test", "socket", NULL};
        int status;
        pid_t pid;
        const lin_child child = {.program = "/proc/self/exe", .argv = argv, .in = dup(dup(dup(0))), .out = dup(1), .err = dup(2)};
        const int error = lin_child_start(&child, &pid);
        if (error) dprintf(1, "not started: %s\n", strerror(error));
        else waitpid(pid, &status, 0);
    } else if (strcmp(name, "socket") == 0) {
        errno = 0;
        socket(AF_UNIX, SOCK_STREAM, 0);
        dprintf(1, "%s\n", strerror(errno));
    } else if (strcmp(name, "memory") == 0) {
        volatile char *much = malloc(200 << 20);
        if (much) much[100 << 20] = 1;
        dprintf(1, much ? "enough\n" : "not enough\n");
    } else if (strcmp(name, "time") == 0) {
        for (volatile unsigned i = 0;; i++) continue;
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    const test_entry tests[] = {TEST(descriptors_and_variables), TEST(programs_that_cannot_be_started), TEST(files),
                                TEST(network_and_other_processes), TEST(nothing_is_left_out), TEST(memory_and_time),
                                TEST(all_of_it_is_ended)};
    if (argc > 1) return do_task(argv[1]);
    return test_all("base/child", NULL, NULL, setup, NULL, tests, sizeof tests / sizeof *tests);
}
