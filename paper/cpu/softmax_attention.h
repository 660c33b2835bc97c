/*
 * softmax_attention.h - softmax attention of one utterance and one head, in tiles; softmax_attention.c has the threads.
 *
 * Queries lie in the lanes of the vectors: a block of queries is transposed once, [E, queries], and then meets the keys in tiles
 * of LIN_SOFTMAX_TILE, each of which is a small matrix product S = K Qᵀ [keys, queries], the exponentials with the running
 * maximum and sum of each lane (Milakov & Gimelshein 2018; Dao et al. 2022), and a product Oᵀ += Vᵀ P. No pass needs a sum across
 * the lanes, keys and values are read in place, and the bits of a query depend only on its own values and on the keys up to it:
 * tiles begin at multiples of LIN_SOFTMAX_TILE from the utterance's first frame, cached frames included, and every sum runs in
 * the order of the keys.
 *
 * At most four queries, as of a live stream, have a path of their own with the keys in the lanes and the same sums. E is at most
 * 1024 (scratch). A key that a query does not see has the weight 0, so a value that is not finite may reach up to 63 frames
 * before its own.
 *
 * Scores are in units of ln 2: queries are multiplied by log2(e) / sqrt(E), and exponentials are powers of two.
 */
#ifndef LIN_PAPER_CPU_SOFTMAX_ATTENTION_H
#define LIN_PAPER_CPU_SOFTMAX_ATTENTION_H

#include "kernels/cpu/cpu.h"

/* LIN_SOFTMAX_CHUNK: rows of a work item, a multiple of every block of queries. */
enum { LIN_SOFTMAX_TILE = 64, LIN_SOFTMAX_CHUNK = 192 };

/* One head of one utterance. Frame i of q, dq: + i stride; of y, dy: + i width; of lse: + i H. Frame j of k, v, dk, dv: + j
 * stride_k; the first `past` of them have no query. Pointers that a pass does not use are not read. */
typedef struct lin_softmax_head {
    int T, past, E, causal;
    size_t stride, stride_k, width, H;
    const float *q, *k, *v, *y, *dy, *lse;
    float *y_out, *lse_out, *dq, *dk, *dv;
} lin_softmax_head;

/* y_out, and lse_out if it is not NULL, of rows first .. end-1. */
LIN_DISPATCH_DECLARE(void, lin_softmax_rows_forward, (const lin_softmax_head *head, int first, int end, float *scratch));

/* Frames first .. end-1 (multiples of LIN_SOFTMAX_CHUNK, or T) of dq, of dk and dv, or, LIN_SOFTMAX_ALL, all three of all frames.
 * All ways give the same bits. past is 0. */
typedef enum lin_softmax_part { LIN_SOFTMAX_ALL, LIN_SOFTMAX_QUERIES, LIN_SOFTMAX_KEYS } lin_softmax_part;
LIN_DISPATCH_DECLARE(void, lin_softmax_part_backward,
                     (const lin_softmax_head *head, lin_softmax_part part, int first, int end, float *scratch));

/* With all scores in memory, p [T, T]; the backward pass leaves dL/ds there. */
LIN_DISPATCH_DECLARE(void, lin_softmax_naive_head_forward, (const lin_softmax_head *head, float *p, float *scratch));
LIN_DISPATCH_DECLARE(void, lin_softmax_naive_head_backward, (const lin_softmax_head *head, float *p, float *scratch));

#endif
