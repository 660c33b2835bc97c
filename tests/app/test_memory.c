// A command that runs out of memory: its report is complete or fails.
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>

#include "app/common.h"
#include "tests/support.h"

static unsigned long allocations, failing_at;

static void *allocate(size_t bytes)
{
    if (++allocations != failing_at) return malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

// The report, and the exit status.
static int info(int json, char *out, size_t capacity)
{
    const char *model = "tests/golden/en/default.safetensors";
    char *argv[] = {(char *)(uintptr_t)model, (char *)(uintptr_t) "--json"};
    lin_parsed parsed = {0};
    void *values = calloc(1, lin_command_info.values_size);
    OK(lin_options_begin(&lin_command_info, values, &parsed, &err));
    OK(lin_options_command_line(&parsed, json ? 2 : 1, argv, &err));
    fflush(stdout);
    const int keep = dup(1), to = open(test_path("out"), O_RDWR | O_CREAT | O_TRUNC, 0600), errors = dup(2),
              null = open("/dev/null", O_WRONLY);
    dup2(to, 1);
    dup2(null, 2); // its messages are expected; hide them
    const int status = lin_command_info.run(&parsed);
    fflush(stdout);
    dup2(keep, 1);
    dup2(errors, 2);
    const ssize_t n = pread(to, out, capacity - 1, 0);
    out[n > 0 ? n : 0] = 0;
    close(keep);
    close(errors);
    close(null);
    close(to);
    lin_options_free(&parsed);
    free(values);
    return status;
}

START_TEST(info_is_whole_or_an_error)
{
    static char whole[1 << 16], out[1 << 16];
    cJSON_Hooks hooks = {allocate, free};
    cJSON_InitHooks(&hooks);
    allocations = failing_at = 0;
    ck_assert_int_eq(info(0, whole, sizeof whole), LIN_EXIT_OK);
    HAS(whole, "fingerprint");
    const unsigned long all = allocations;
    // The provenance is read and printed last.
    for (unsigned long k = all > 40 ? all - 40 : 1; k <= all; k++) {
        allocations = 0;
        failing_at = k;
        const int status = info(0, out, sizeof out);
        test_require(status == LIN_EXIT_OK ? strcmp(out, whole) == 0 : status == LIN_EXIT_FAILED && !*out, "%lu of %lu: %d\n%s",
                     k, all, status, out);
    }
    failing_at = 0;
    cJSON_InitHooks(NULL);
}
END_TEST

TEST_MAIN("app/memory", TEST(info_is_whole_or_an_error))
