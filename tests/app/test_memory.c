// Commands that run out of memory: a line that cannot be stored is an error, not the end of the file; a report is complete or
// fails.
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>

#include "app/common.h"
#include "app/inputs.h"
#include "base/memory.h"
#include "tests/support.h"

START_TEST(lines_are_read)
{
    const char text[] = "one\r\n\ntwo\0half\nlast";
    test_file("lines", text, sizeof text - 1);
    lin_line_reader r = {.file = fopen(test_path("lines"), "rb"), .name = "lines"};
    const struct {
        const char *text;
        size_t n;
    } wanted[] = {{"one", 3}, {"", 0}, {"two\0half", 8}, {"last", 4}};
    for (int i = 0; i < 4; i++) {
        OK(lin_line_next(&r, &err));
        ck_assert_int_eq(r.number, i + 1);
        ck_assert_uint_eq(r.n, wanted[i].n);
        ck_assert_int_eq(memcmp(r.text, wanted[i].text, r.n + 1), 0);
    }
    for (int i = 0; i < 2; i++) {
        OK(lin_line_next(&r, &err));
        ck_assert_ptr_null(r.text);
    }
    fclose(r.file);
    // A read error is reported: a folder.
    r.file = fopen("/", "rb");
    FAILS(lin_line_next(&r, &err), LIN_IO, "cannot read lines: Is a directory");
    ck_assert_ptr_null(r.text);
    fclose(r.file);
    lin_line_free(&r);
}
END_TEST

START_TEST(a_line_without_memory_is_no_end)
{
    static char text[2000];
    lin_error why = {0};
    memset(text, 'a', sizeof text);
    memcpy(text, "b\n", 2);
    test_file("long", text, sizeof text);
    for (unsigned long k = 1;; k++) {
        lin_line_reader r = {.file = fopen(test_path("long"), "rb"), .name = "long"};
        lin_memory_fail_at(k);
        lin_status status = lin_line_next(&r, &why);
        if (status == LIN_OK) status = lin_line_next(&r, &why);
        lin_memory_fail_at(0);
        const int ended = status == LIN_OK;
        if (ended) ck_assert_uint_eq(r.n, sizeof text - 2);
        else ck_assert_msg(status == LIN_NO_MEMORY && strstr(why.message, "long:") && !r.text, "%s", why.message);
        fclose(r.file);
        lin_line_free(&r);
        if (!ended) continue;
        ck_assert_uint_gt(k, 2);
        break;
    }
}
END_TEST

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
    const char *model = "share/linnet/en/default.safetensors";
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
    ck_assert_msg(strstr(whole, "fingerprint"), "%s", whole);
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

TEST_MAIN("app/memory", TEST(lines_are_read), TEST(a_line_without_memory_is_no_end),
          TEST(info_is_whole_or_an_error))
