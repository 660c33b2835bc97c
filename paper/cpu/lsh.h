/*
 * lsh.h - what lsh.c gives to the code of each instruction set (lsh_body.h): LSH attention of one utterance and one head.
 */
#ifndef LIN_PAPER_CPU_LSH_H
#define LIN_PAPER_CPU_LSH_H

#include <stddef.h>

#include "kernels/ops.h"

/* Pointers are to the head's part of the first row; row t is at + t * stride of its matrix. */
typedef struct lin_lsh_head {
    int T, E, causal;
    lin_lsh lsh;
    size_t qv_stride, y_stride, lse_stride; /* floats from one row to the next */
    size_t order_stride;                    /* ints from one round to the next */
    size_t rotations_stride;                /* floats from one round of R to the next */
    const float *q, *v, *R, *dy, *y_in, *lse_in;
    float *y, *lse, *dq, *dv;
    int *order_out;   /* lin_lsh_head_sort writes it, */
    const int *order; /* and the others read it */
    float *scratch;   /* LIN_SCRATCH_BYTES */
} lin_lsh_head;

/* Columns of R in use: half the number of buckets. */
static inline int lin_lsh_columns(const lin_lsh *lsh, int T)
{
    const int64_t span = 2 * (int64_t)lsh->chunk, half = (T + span - 1) / span;
    return half < lsh->rotations ? (int)half : lsh->rotations;
}

#endif
