/*
 * select.h - the k-th largest of some numbers without sorting them: the threshold of a beam.
 *
 * Hoare's selection: linear time on average. For decoder/beam and decoder/words. Threads: no shared state.
 */
#ifndef LIN_DECODER_SELECT_H
#define LIN_DECODER_SELECT_H

/* The k-th largest, 1 <= k <= n, of x [n], whose order changes. None of them may be NaN. */
static inline double lin_select_largest(double *x, int n, int k)
{
    int from = 0, to = n - 1;
    while (from < to) {
        const double pivot = x[from + (to - from) / 2];
        int i = from, j = to;
        while (i <= j) {
            while (x[i] > pivot) i++;
            while (x[j] < pivot) j--;
            if (i > j) break;
            const double swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (k - 1 <= j) to = j;
        else if (k - 1 >= i) from = i;
        else break;
    }
    return x[k - 1];
}

#endif
