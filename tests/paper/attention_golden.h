/*
 * attention_golden.h - golden values of attention from PyTorch: tests/golden/softmax.py and mapped.py. A row of a file is
 * qkv [3, C], dy, y [C], dqkv [3, C].
 */
#ifndef LIN_TESTS_PAPER_ATTENTION_GOLDEN_H
#define LIN_TESTS_PAPER_ATTENTION_GOLDEN_H

#include "base/memory.h"
#include "tests/support.h"
#include "train/lab/npy.h"

typedef struct attention_golden {
    double *qkv, *dy, *y, *dqkv;
} attention_golden;

/* Rows [n, width] of a file; lin_free releases them. */
static inline float *golden_rows(const char *path, size_t n, int width)
{
    lin_error err = {0};
    float *rows;
    size_t got;
    int columns;
    ck_assert_msg(lin_npy_read(path, &rows, &got, &columns, &err) == LIN_OK, "%s", err.message);
    ck_assert(got == n && columns == width);
    return rows;
}

static inline attention_golden attention_golden_read(const char *path, size_t n, size_t C)
{
    float *rows = golden_rows(path, n, (int)(8 * C));
    attention_golden g = {test_buffer(3 * n * C, 8), test_buffer(n * C, 8), test_buffer(n * C, 8), test_buffer(3 * n * C, 8)};
    for (size_t t = 0; t < n; t++)
        for (size_t c = 0; c < 8 * C; c++) {
            double *to = c < 3 * C   ? g.qkv + t * 3 * C + c
                         : c < 4 * C ? g.dy + t * C + c - 3 * C
                         : c < 5 * C ? g.y + t * C + c - 4 * C
                                     : g.dqkv + t * 3 * C + c - 5 * C;
            *to = (double)rows[t * 8 * C + c];
        }
    lin_free(rows);
    return g;
}

/* y and dqkv as computed, against those of the file, which this releases. */
static inline void attention_golden_check(attention_golden g, const double *y, const double *dqkv, size_t n, size_t C)
{
    test_close_f64("y", y, g.y, n * C, 2e-7);
    test_close_f64("dqkv", dqkv, g.dqkv, 3 * n * C, 2e-7);
    TEST_FREE(g.qkv, g.dy, g.y, g.dqkv);
}

#endif
