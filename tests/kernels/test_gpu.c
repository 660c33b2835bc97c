// [cuda] The loader of the CUDA backend, with a fake driver and the emulated backend: it opens what it finds, and for each thing
// that can be missing there is one message. Each query runs in a separate process, because a process keeps its first answer.
#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>

#include "kernels/ops.h"
#include "tests/support.h"

enum { ANSWER = 2048, MAX_SETTINGS = 4 };

typedef void (*question)(char *answer, size_t capacity);

static char driver[PATH_MAX + 64], library[PATH_MAX + 64];

// build/CONFIG/emulated is beside build/CONFIG/tests.
static void find_emulated(void)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    ck_assert_int_gt(n, 0);
    program[n] = 0;
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(program, '/');
        ck_assert_ptr_nonnull(slash);
        *slash = 0;
    }
    snprintf(driver, sizeof driver, "%s/emulated/libcuda.so.1", program);
    snprintf(library, sizeof library, "%s/emulated/liblinnet_cuda.so", program);
    ck_assert_msg(access(driver, R_OK) == 0 && access(library, R_OK) == 0, "%s or %s was not built", driver, library);
}

// The answer of a child process with these settings ("NAME=value") and one emulated GPU.
static const char *ask(question q, const char *const *settings)
{
    static char answer[ANSWER];
    int ends[2];
    find_emulated();
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setenv("LINNET_CUDA_DRIVER", driver, 1);
        setenv("LINNET_CUDA_LIBRARY", library, 1);
        unsetenv("CUDA_VISIBLE_DEVICES");
        for (int i = 0; settings && settings[i]; i++) {
            char name[64];
            const char *equals = strchr(settings[i], '=');
            snprintf(name, sizeof name, "%.*s", (int)(equals - settings[i]), settings[i]);
            setenv(name, equals + 1, 1);
        }
        memset(answer, 0, sizeof answer);
        q(answer, sizeof answer);
        _exit(write(ends[1], answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n; got < sizeof answer && (n = read(ends[0], answer + got, sizeof answer - got)) > 0;) got += (size_t)n;
    close(ends[0]);
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0 && got == sizeof answer, "the child ended with status %x",
                  status);
    return answer;
}

/* ---- questions ------------------------------------------------------------------------------------------------------------- */

// "auto CPU-OR-GPU; cuda STATUS MESSAGE"
static void who(char *answer, size_t capacity)
{
    const lin_ops *automatic, *ops;
    lin_error err = {0};
    lin_status first = lin_backend_open("auto", LIN_PRECISION_FP32, &automatic, NULL);
    lin_status status = lin_backend_open("cuda", LIN_PRECISION_TF32, &ops, &err);
    if ((status == LIN_OK) != (ops != NULL) || first != LIN_OK)
        snprintf(answer, capacity, "a table without LIN_OK, or the reverse");
    else snprintf(answer, capacity, "auto %s; cuda %s %s", automatic->name, lin_status_name(status),
                  ops ? ops->name : err.message);
}

static void open_three(char *answer, size_t capacity)
{
    const lin_ops *ops;
    lin_error err = {0};
    lin_status status = lin_backend_open("cuda:3", LIN_PRECISION_FP32, &ops, &err);
    snprintf(answer, capacity, "%s %s", lin_status_name(status), err.message);
}

// A product on the last GPU: the table must also work.
static void work(char *answer, size_t capacity)
{
    const lin_ops *ops;
    lin_error err = {0};
    lin_exec *exec = NULL;
    float *x = NULL, got[2] = {0};
    const float host[2] = {3, -4};
    int n = 0;
    lin_device device;
    while (lin_device_get(n, &device)) n++;
    char name[32];
    snprintf(name, sizeof name, "cuda:%d", n - 1);
    lin_status status = lin_backend_open(name, LIN_PRECISION_BF16, &ops, &err);
    if (status == LIN_OK) status = ops->exec_create(ops, 0, &exec, &err);
    if (status == LIN_OK) status = ops->memory_create(exec, sizeof host, (void **)&x, &err);
    if (status == LIN_OK) {
        ops->upload(exec, x, host, sizeof host);
        ops->relu_backward(exec, x, x, x, 2, 2);
        ops->download(exec, got, x, sizeof got);
        status = ops->finish(exec, &err);
        ops->memory_destroy(exec, x);
    }
    if (exec) ops->exec_destroy(exec);
    if (status == LIN_OK) {
        snprintf(answer, capacity, "%d GPUs, device %d, precision %d: %g %g", n, ops->device, (int)ops->precision, (double)got[0],
                 (double)got[1]);
    } else {
        snprintf(answer, capacity, "%s", err.message);
    }
}

static void devices(char *answer, size_t capacity)
{
    lin_device d;
    int built_for, found;
    const char *why = lin_device_why_none(&built_for, &found);
    int n = snprintf(answer, capacity, "why \"%s\" driver %d built %d", why, found, built_for > 0);
    for (int i = 0; lin_device_get(i, &d); i++) {
        n += snprintf(answer + n, capacity - (size_t)n, "; %d: %d.%d memory %d free %d why_not \"%s\"", i, d.major, d.minor,
                      d.memory_bytes > 0, d.free_bytes > 0, d.why_not);
    }
    if (lin_device_get(-1, &d)) snprintf(answer, capacity, "there is a GPU -1");
}

static void built_for(char *answer, size_t capacity)
{
    int version;
    lin_device_why_none(&version, NULL);
    snprintf(answer, capacity, "%d", version / 1000);
}

static void *answers(void *unused)
{
    (void)unused;
    return *lin_device_why_none(NULL, NULL) ? "no" : "yes";
}

static void threads(char *answer, size_t capacity)
{
    enum { N = 8 };
    pthread_t ids[N];
    int yes = 0;
    for (int i = 0; i < N; i++)
        if (pthread_create(&ids[i], NULL, answers, NULL) != 0) return;
    for (int i = 0; i < N; i++) {
        void *said;
        pthread_join(ids[i], &said);
        yes += strcmp(said, "yes") == 0;
    }
    snprintf(answer, capacity, "%d of %d", yes, N);
}

/* ---- answers --------------------------------------------------------------------------------------------------------------- */

#define ASK(q, ...) ask(q, (const char *const[]){__VA_ARGS__, NULL})

static void refused(const char *answer, const char *sentence)
{
    static const char begins[] = "auto cpu; cuda unsupported ";
    ck_assert_msg(strncmp(answer, begins, strlen(begins)) == 0, "%s", answer);
    answer += strlen(begins);
    ck_assert_msg(strncmp(answer, sentence, strlen(sentence)) == 0, "\"%s\" does not begin with \"%s\"", answer, sentence);
}

START_TEST(no_driver)
{
    const char *answer = ASK(who, "LINNET_CUDA_DRIVER=/nonexistent/libcuda.so.1");
    refused(answer, "no NVIDIA driver on this machine (/nonexistent/libcuda.so.1: cannot open shared object file");
    refused(ASK(who, "LINNET_CUDA_DRIVER=libm.so.6"), "libm.so.6 is not an NVIDIA driver: ");
}
END_TEST

START_TEST(old_driver)
{
    char setting[64], sentence[128];
    const int major = atoi(ask(built_for, NULL));
    snprintf(setting, sizeof setting, "LINNET_EMULATION_DRIVER=%d", (major - 1) * 1000 + 40);
    snprintf(sentence, sizeof sentence, "the driver supports CUDA %d.4, this build needs %d.0 or newer: update the driver",
             major - 1, major);
    refused(ASK(who, setting), sentence);
}
END_TEST

START_TEST(no_gpu)
{
    refused(ASK(who, "LINNET_EMULATION_DEVICES=0"), "the driver found no GPU");
    refused(ASK(who, "LINNET_EMULATION_DEVICES=0", "CUDA_VISIBLE_DEVICES=7"),
            "the driver found no GPU (CUDA_VISIBLE_DEVICES is \"7\")");
    refused(ASK(who, "LINNET_EMULATION_CUINIT=999"), "cannot initialise the NVIDIA driver: unknown error");
}
END_TEST

START_TEST(no_library)
{
    const char *answer = ASK(who, "LINNET_CUDA_LIBRARY=/nonexistent/x.so");
    refused(answer, "cannot open liblinnet_cuda.so: /nonexistent/x.so: cannot open shared object file");
    HAS(answer, "build it with make where nvcc is installed");
    refused(ASK(who, "LINNET_CUDA_LIBRARY=libm.so.6"), "libm.so.6 is not a CUDA backend of linnet: ");
    answer = ASK(who, "LINNET_CUDA_LIBRARY=/proc/self/status"); // exists, but is no library
    refused(answer, "cannot open liblinnet_cuda.so: /proc/self/status: ");
    ck_assert_msg(strstr(answer, "nvcc") == NULL, "%s", answer);
}
END_TEST

START_TEST(found)
{
    ck_assert_str_eq(ASK(who, "LINNET_EMULATION_DEVICES=1"), "auto cuda; cuda ok cuda");
    ck_assert_str_eq(ASK(open_three, "LINNET_EMULATION_DEVICES=2"), "unsupported there is no GPU 3; the last is 1");
    ck_assert_str_eq(ASK(work, "LINNET_EMULATION_DEVICES=2"), "2 GPUs, device 1, precision 2: 6 0");
    ck_assert_str_eq(ASK(threads, "LINNET_EMULATION_DEVICES=1"), "8 of 8");
    ck_assert_str_eq(ASK(threads, "LINNET_EMULATION_DEVICES=0"), "0 of 8");
}
END_TEST

START_TEST(listed)
{
    const char *answer =
        ASK(devices, "LINNET_EMULATION_DEVICES=2", "LINNET_EMULATION_DRIVER=13010", "LINNET_EMULATION_CAPABILITY=89");
    ck_assert_str_eq(answer,
                     "why \"\" driver 13010 built 1; 0: 8.9 memory 1 free 1 why_not \"\"; 1: 8.9 memory 1 free 1 why_not \"\"");
    answer = ASK(devices, "LINNET_EMULATION_DEVICES=0");
    ck_assert_str_eq(answer, "why \"the driver found no GPU\" driver 13000 built 1");
}
END_TEST

// Too old: listed with the reason, refused by name, skipped by auto.
START_TEST(old_gpu)
{
    const char *answer = ASK(who, "LINNET_EMULATION_CAPABILITY=75");
    refused(answer, "GPU 0 (");
    HAS(answer, "has compute capability 7.5, this build needs 8.0 or newer");
    answer = ASK(devices, "LINNET_EMULATION_CAPABILITY=75");
    HAS(answer, "; 0: 7.5 memory 1 free 0 why_not \"GPU 0 (");
}
END_TEST

#ifdef __SANITIZE_THREAD__ // the emulated backend is not built
TEST_MAIN("kernels/gpu", TEST(no_driver))
#else
TEST_MAIN("kernels/gpu", TEST(no_driver), TEST(old_driver), TEST(no_gpu), TEST(no_library), TEST(found), TEST(listed),
          TEST(old_gpu))
#endif
