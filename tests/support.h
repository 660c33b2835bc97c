/*
 * support.h - helpers for test programs: random fills, poisoned and guarded buffers, comparisons within a tolerance whose message
 * names the element, temporary folders, and the main function of a Check program.
 *
 *   float *y = test_buffer(n, sizeof *y);          // all bytes 0xFF (a NaN), guard bytes before and after
 *   ...
 *   test_guards(y, "linear_forward");              // fails if a byte outside was written
 *   test_close_f32("y", y, want, n, 1e-5);
 *   test_buffer_free(y);
 */
#ifndef LIN_TESTS_SUPPORT_H
#define LIN_TESTS_SUPPORT_H

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

// 1 under AddressSanitizer, else 0: loops that take long there run a part of their cases.
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif
#ifndef TEST_ASAN
#define TEST_ASAN 0
#endif

// 1 unless paper/ was left out of the build (PAPER=0): tests of all kinds of networks leave out those that it lacks.
#ifdef LIN_NO_PAPER
#define TEST_PAPER 0
#else
#define TEST_PAPER 1
#endif
#define TEST_LACKS(config) (!TEST_PAPER && lin_config_check(config, NULL) == LIN_UNSUPPORTED)

/* An assertion for loops over elements: Check's own takes a microsecond or more, because it reports each call to the parent
 * process. */
#define test_require(condition, ...)                 \
    do {                                             \
        if (!(condition)) ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* ---- buffers --------------------------------------------------------------------------------------------------------------- */

/* Allocates the blocks of buffers: 64-byte aligned, NULL if there is no memory. A test of a GPU sets functions here, before its
 * first buffer, that allocate memory which host and device can access. */
void *test_allocate_aligned(size_t bytes);
extern void *(*test_allocate)(size_t bytes);
extern void (*test_release)(void *block);

/* Sets every byte to 0xFF: a NaN in float and double, -1 in an int. */
void test_poison(void *buffer, size_t bytes);

/* `count` elements aligned to 64 bytes plus `shift` elements, poisoned. A shift finds code that relies on an alignment that is
 * not guaranteed. */
void *test_buffer_shifted(size_t count, size_t size, size_t shift);

void *test_buffer(size_t count, size_t size);

/* Fails if a byte before or behind a buffer was written; `what` stands in the message. */
void test_guards(const void *buffer, const char *what);

void test_buffer_free(void *buffer);

/* Checks the guards of buffers and frees them: TEST_FREE(x, y, z). */
void test_free_each(void *const *buffers, size_t n);
#define TEST_FREE(...) test_free_each((void *const[]){__VA_ARGS__}, sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *))

/* ---- random fills: element i is a function of (key, i) --------------------------------------------------------------------- */

void test_fill_f64(double *x, size_t n, uint64_t key, double lo, double hi);

void test_fill_f32(float *x, size_t n, uint64_t key, double lo, double hi);

/* A new buffer filled so. */
double *test_random_f64(size_t n, uint64_t key, double lo, double hi);

/* The same numbers in a new buffer. */
double *test_widened(const float *x, size_t n);

/* ---- closeness ------------------------------------------------------------------------------------------------------------- */

void test_close_f64(const char *what, const double *got, const double *want, size_t n, double tolerance);

void test_close_scaled_f32(const char *what, const float *got, const double *want, size_t n, double tolerance, double floor);

void test_close_f32(const char *what, const float *got, const double *want, size_t n, double tolerance);

/* The same bits; NaNs count as equal to themselves. */
void test_same_f32(const char *what, const float *got, const float *want, size_t n);

/* gradient [n] of loss(context) by x [n], which the context refers to, against central differences of fourth order: with steps of
 * 1e-3 the error of their formula is about 1e-12 and that of rounding 1e-13 / 1e-3. */
void test_gradient(const char *what, double (*loss)(void *context), void *context, double *x, const double *gradient, size_t n);

/* ---- temporary folders ----------------------------------------------------------------------------------------------------- */

/* The path of a file in a folder of this test, of the folder itself if the name is "". The folder is made when it is first asked
 * for, and removed after the test; with TEST_MAIN_ONCE at the end. The path is valid as long as the folder is. */
const char *test_path(const char *name);

/* Writes a whole file there; its path. */
const char *test_file(const char *name, const void *bytes, size_t n);

/* Entries of a folder. */
int test_folder_entries(const char *path);

/* Writes a whole file. */
void test_write_file(const char *path, const void *bytes, size_t n);

/* Reads a file, of which at most so many bytes count; the number read. */
size_t test_read_file(const char *path, void *bytes, size_t most);

/* ---- statuses -------------------------------------------------------------------------------------------------------------- */

/* Each brings its own `err`: OK(lin_text_read(path, &text, &n, &err)). */
#define OK(call)                                                                                                                 \
    do {                                                                                                                         \
        lin_error err = {0};                                                                                                     \
        lin_status status_ = (call);                                                                                             \
        ck_assert_msg(status_ == LIN_OK, "%s: %s", lin_status_name(status_), err.message);                                       \
    } while (0)

/* The call fails with this status; its message contains these texts, is one line and has no full stop; no block is left. */
#define FAILS(call, want, ...)                                                                                                   \
    do {                                                                                                                         \
        lin_error err = {0};                                                                                                     \
        unsigned long live_ = lin_memory_live();                                                                                 \
        lin_status status_ = (call);                                                                                             \
        ck_assert_msg(status_ == (want), "%s instead of %s: %s", lin_status_name(status_), lin_status_name(want), err.message);  \
        HAS(err.message, __VA_ARGS__);                                                                                           \
        ck_assert_msg(!strpbrk(err.message, "\n\r\x1b") && err.message[strlen(err.message) - 1] != '.', "'%s'", err.message);    \
        ck_assert_uint_le(lin_memory_live(), live_);                                                                             \
    } while (0)

/* The text contains each of these: HAS(json, "\"id\"", "\"text\""). */
#define HAS(text, ...)                                                                                                           \
    do {                                                                                                                         \
        const char *const parts_[] = {__VA_ARGS__}, *const text_ = (text);                                                       \
        for (size_t i_ = 0; i_ < sizeof parts_ / sizeof *parts_; i_++)                                                           \
            ck_assert_msg(strstr(text_, parts_[i_]) != NULL, "'%s' is not in '%s'", parts_[i_], text_);                          \
    } while (0)

/* ---- failing allocations --------------------------------------------------------------------------------------------------- */

/*
 * Runs `call` (a lin_status) with the first, second, ... allocation failing until it succeeds. Each failed call must return
 * LIN_NO_MEMORY, leak nothing and, in the second form, leave `object` NULL. `undo` runs after the success.
 */
#define FAIL_EVERY_ALLOCATION(call, undo) FAIL_EVERY_ALLOCATION_OF(NULL, call, undo)
#define FAIL_EVERY_ALLOCATION_OF(object, call, undo)                                                                             \
    do {                                                                                                                         \
        unsigned long live_ = lin_memory_live(), k_ = 0;                                                                         \
        for (lin_status status_ = LIN_NO_MEMORY; status_ != LIN_OK;) {                                                           \
            lin_memory_fail_at(++k_);                                                                                            \
            status_ = (call);                                                                                                    \
            lin_memory_fail_at(0);                                                                                               \
            if (status_ == LIN_OK) break;                                                                                        \
            ck_assert_msg(status_ == LIN_NO_MEMORY, "allocation %lu failed: %s", k_, lin_status_name(status_));                  \
            ck_assert_msg(lin_memory_live() == live_, "allocation %lu failed and left a block", k_);                             \
            ck_assert_msg(!(object), "allocation %lu failed and left a pointer", k_);                                            \
        }                                                                                                                        \
        ck_assert_msg(k_ > 1, "nothing was allocated");                                                                          \
        undo;                                                                                                                    \
        ck_assert_uint_eq(lin_memory_live(), live_);                                                                             \
    } while (0)

/* ---- the main function of a test program ----------------------------------------------------------------------------------- */

/*
 * The main function of most test programs, with the name of the suite and its tests in order; the second form runs setup before
 * and teardown after each test (NULL: nothing), the third begin and end once, around all of them, and after behind each.
 *
 *   TEST_MAIN("decoder/rows", TEST(one), TESTS(for_each_row, 0, 4))       // the second with _i = 0, 1, 2, 3
 */
#define TEST_MAIN(name, ...) TEST_MAIN_WITH(NULL, NULL, name, __VA_ARGS__)
#define TEST_MAIN_WITH(setup, teardown, name, ...) TEST_MAIN_OF(NULL, NULL, setup, teardown, name, __VA_ARGS__)
#define TEST_MAIN_ONCE(begin, end, after, name, ...) TEST_MAIN_OF(begin, end, NULL, after, name, __VA_ARGS__)
#define TEST_MAIN_OF(begin, end, setup, teardown, name, ...)                                                                     \
    int main(void)                                                                                                               \
    {                                                                                                                            \
        const test_entry tests[] = {__VA_ARGS__};                                                                                \
        return test_all(name, begin, end, setup, teardown, tests, sizeof tests / sizeof *tests);                                 \
    }
#define TEST(test) {test, 0, 1}
#define TESTS(test, from, to) {test, from, to}

typedef struct test_entry {
    const TTest *test;
    int from, to;
} test_entry;

int test_all(const char *name, void (*begin)(void), void (*end)(void), void (*setup)(void), void (*teardown)(void),
             const test_entry *tests, size_t n);

/* For programs whose tests need more: the exit status. */
int test_run(Suite *suite);

#endif
