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

#include "base/rng.h"

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

/* ---- random fills: element i is a function of (key, i) --------------------------------------------------------------------- */

void test_fill_f64(double *x, size_t n, uint64_t key, double lo, double hi);

void test_fill_f32(float *x, size_t n, uint64_t key, double lo, double hi);

/* ---- closeness ------------------------------------------------------------------------------------------------------------- */

void test_close_f64(const char *what, const double *got, const double *want, size_t n, double tolerance);

void test_close_scaled_f32(const char *what, const float *got, const double *want, size_t n, double tolerance, double floor);

void test_close_f32(const char *what, const float *got, const double *want, size_t n, double tolerance);

/* The same bits; NaNs count as equal to themselves. */
void test_same_f32(const char *what, const float *got, const float *want, size_t n);

/* ---- temporary folders ----------------------------------------------------------------------------------------------------- */

/* Makes a new empty folder and writes its path. */
void test_folder(char *path, size_t capacity);

void test_folder_remove(const char *path);

/* Entries of a folder. */
int test_folder_entries(const char *path);

/* Writes a whole file. */
void test_write_file(const char *path, const void *bytes, size_t n);

/* ---- the main function of a test program ----------------------------------------------------------------------------------- */

int test_run(Suite *suite);

#endif
