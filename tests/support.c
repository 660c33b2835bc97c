// What test programs share: see the header.
#include "tests/support.h"

#include <dirent.h>
#include <ftw.h>

// Before the buffer are 64 bytes that end with its size; after it 64 guard bytes, or, under AddressSanitizer, the end of the
// block, so that reads are checked too.
enum { TEST_HEAD = 64, TEST_GUARD_BYTE = 0xA5 };
#if TEST_ASAN
enum { TEST_TAIL = 0 };
#else
enum { TEST_TAIL = 64 };
#endif

void *test_allocate_aligned(size_t bytes)
{
    void *block = NULL;
    return posix_memalign(&block, 64, bytes) == 0 ? block : NULL;
}

void *(*test_allocate)(size_t bytes) = test_allocate_aligned;
void (*test_release)(void *block) = free;

void test_poison(void *buffer, size_t bytes)
{
    if (bytes) memset(buffer, 0xFF, bytes);
}

void *test_buffer_shifted(size_t count, size_t size, size_t shift)
{
    size_t bytes = count * size, head = TEST_HEAD + shift * size;
    unsigned char *base = test_allocate(head + bytes + TEST_TAIL), *user = base + head;
    ck_assert_msg(base != NULL, "out of memory in a test");
    memset(base, TEST_GUARD_BYTE, head);
    memcpy(user - 16, &bytes, sizeof bytes);
    memcpy(user - 8, &head, sizeof head);
    test_poison(user, bytes);
    memset(user + bytes, TEST_GUARD_BYTE, TEST_TAIL);
    return user;
}

void *test_buffer(size_t count, size_t size) { return test_buffer_shifted(count, size, 0); }

void test_guards(const void *buffer, const char *what)
{
    const unsigned char *user = buffer;
    size_t bytes, head;
    memcpy(&bytes, user - 16, sizeof bytes);
    memcpy(&head, user - 8, sizeof head);
    test_require(head >= TEST_HEAD && head <= 2 * TEST_HEAD, "%s: the bytes right before a buffer were overwritten", what);
    for (size_t i = 0; i < head - 16; i++) {
        if (user[(ptrdiff_t)i - (ptrdiff_t)head] != TEST_GUARD_BYTE) {
            ck_abort_msg("%s: byte %zu before a buffer of %zu bytes was overwritten", what, head - i, bytes);
        }
    }
    for (int i = 0; i < TEST_TAIL; i++) {
        if (user[bytes + (size_t)i] != TEST_GUARD_BYTE) {
            ck_abort_msg("%s: byte %d after a buffer of %zu bytes was overwritten", what, i, bytes);
        }
    }
}

void test_buffer_free(void *buffer)
{
    if (!buffer) return;
    size_t head;
    memcpy(&head, (unsigned char *)buffer - 8, sizeof head);
    test_release((unsigned char *)buffer - head);
}

void test_free_each(void *const *buffers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (buffers[i]) test_guards(buffers[i], "a buffer");
        test_buffer_free(buffers[i]);
    }
}

void test_fill_f64(double *x, size_t n, uint64_t key, double lo, double hi)
{
    for (size_t i = 0; i < n; i++) x[i] = lo + (hi - lo) * lin_random_uniform(key, i);
}

void test_fill_f32(float *x, size_t n, uint64_t key, double lo, double hi)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)(lo + (hi - lo) * lin_random_uniform(key, i));
}

double *test_random_f64(size_t n, uint64_t key, double lo, double hi)
{
    double *x = test_buffer(n, sizeof *x);
    test_fill_f64(x, n, key, lo, hi);
    return x;
}

double *test_widened(const float *x, size_t n)
{
    double *wide = test_buffer(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = (double)x[i];
    return wide;
}

// Fails unless |got - want| <= tolerance * scale. scale is the largest finite |want|, or `floor` if that is larger; `floor` is
// the size of the terms of a sum that may cancel. Infinities and NaNs must be equal in kind.
static double test_scale(const double *want, size_t n, double floor)
{
    double largest = floor;
    for (size_t i = 0; i < n; i++)
        if (isfinite(want[i])) largest = fmax(largest, fabs(want[i]));
    return largest;
}

static void test_close_one(const char *what, double got, double want, size_t i, size_t n, double tolerance, double scale)
{
    int same = isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= tolerance * scale;
    test_require(same, "%s: element %zu of %zu is %.9g, expected %.9g (tolerance %.3g of %.6g)", what, i, n, got, want, tolerance,
                 scale);
}

void test_close_f64(const char *what, const double *got, const double *want, size_t n, double tolerance)
{
    double scale = test_scale(want, n, 0);
    for (size_t i = 0; i < n; i++) test_close_one(what, got[i], want[i], i, n, tolerance, scale);
}

void test_close_scaled_f32(const char *what, const float *got, const double *want, size_t n, double tolerance,
                           double floor)
{
    double scale = test_scale(want, n, floor);
    for (size_t i = 0; i < n; i++) test_close_one(what, (double)got[i], want[i], i, n, tolerance, scale);
}

void test_close_f32(const char *what, const float *got, const double *want, size_t n, double tolerance)
{
    test_close_scaled_f32(what, got, want, n, tolerance, 0);
}

void test_same_f32(const char *what, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&got[i], &want[i], sizeof *got) == 0) continue;
        ck_abort_msg("%s: element %zu of %zu is %.9g, not bit for bit %.9g", what, i, n, (double)got[i], (double)want[i]);
    }
}

void test_gradient(const char *what, double (*loss)(void *context), void *context, double *x, const double *gradient, size_t n)
{
    const double h = 1e-3, steps[4] = {-2 * h, -h, h, 2 * h};
    double *numeric = test_buffer(n, sizeof *numeric), largest = 0.01; // where a gradient is 0, differences give some 1e-14
    for (size_t i = 0; i < n; i++) {
        const double keep = x[i];
        double at[4];
        for (int s = 0; s < 4; s++) {
            x[i] = keep + steps[s];
            at[s] = loss(context);
        }
        x[i] = keep;
        numeric[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
        largest = fmax(largest, fabs(numeric[i]));
    }
    for (size_t i = 0; i < n; i++)
        test_require(fabs(gradient[i] - numeric[i]) <= 1e-8 * largest, "%s: element %zu of %zu is %.12g, by differences %.12g",
                     what, i, n, gradient[i], numeric[i]);
    test_buffer_free(numeric);
}

static int test_remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

// The first path is that of the folder. Check forks for each test, and a test may fork: only the process that made it removes it.
enum { TEST_MOST_PATHS = 200 };
static char *test_paths[TEST_MOST_PATHS];
static int test_n_paths;
static pid_t test_owner;

static void test_folder_remove(void)
{
    if (!test_n_paths || test_owner != getpid()) return;
    nftw(test_paths[0], test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    while (test_n_paths) free(test_paths[--test_n_paths]);
}

const char *test_path(const char *name)
{
    const char *base = getenv("TMPDIR");
    char path[4096];
    if (!test_n_paths) {
        snprintf(path, sizeof path, "%s/linnet-test-XXXXXX", base && *base ? base : "/tmp");
        ck_assert_msg(mkdtemp(path) != NULL, "cannot make the folder %s", path);
        test_paths[test_n_paths++] = strdup(path);
        test_owner = getpid();
        static int once;
        if (!once++) atexit(test_folder_remove);
    }
    if (!*name) return test_paths[0];
    snprintf(path, sizeof path, "%s/%s", test_paths[0], name);
    for (int i = 0; i < test_n_paths; i++)
        if (strcmp(test_paths[i], path) == 0) return test_paths[i];
    ck_assert_int_lt(test_n_paths, TEST_MOST_PATHS);
    return test_paths[test_n_paths++] = strdup(path);
}

const char *test_file(const char *name, const void *bytes, size_t n)
{
    const char *path = test_path(name);
    test_write_file(path, bytes, n);
    return path;
}

int test_folder_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    ck_assert_msg(dir != NULL, "cannot open the folder %s", path);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

void test_write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "cannot create %s", path);
    ck_assert(fwrite(bytes, 1, n, file) == n);
    ck_assert(fclose(file) == 0);
}

size_t test_read_file(const char *path, void *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    const size_t n = fread(bytes, 1, most, file);
    fclose(file);
    return n;
}

// Check's limit of 4 seconds of wall time for each test is too short on a loaded machine or under a sanitizer.
__attribute__((constructor)) static void test_patience(void) { setenv("CK_DEFAULT_TIMEOUT", "300", 0); }

int test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int test_all(const char *name, void (*begin)(void), void (*end)(void), void (*setup)(void), void (*teardown)(void),
             const test_entry *tests, size_t n)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_unchecked_fixture(cases, begin, end);
    tcase_add_checked_fixture(cases, setup, teardown);
    if (!begin) tcase_add_checked_fixture(cases, NULL, test_folder_remove); // else it is that of all tests
    for (size_t i = 0; i < n; i++) tcase_add_loop_test(cases, tests[i].test, tests[i].from, tests[i].to);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
