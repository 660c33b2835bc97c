// random_features.c - orthogonal random features by Gram-Schmidt; see attentions.h.

#include "paper/attentions.h"

#include <math.h>
#include <stddef.h>

#include "base/hash.h"

// Gaussian i of a key (Box & Muller 1958).
static double gaussian(uint64_t key, uint64_t i)
{
    return sqrt(-2 * log(1 - lin_random_uniform(key, 2 * i))) * cos(6.283185307179586 * lin_random_uniform(key, 2 * i + 1));
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

// row -= its part along the n rows before it, which are orthonormal.
static void project_out(float *row, int n, int E)
{
    for (int i = 1; i <= n; i++) {
        const float *other = row - (ptrdiff_t)i * E;
        const double along = dot(row, other, E);
        for (int e = 0; e < E; e++) row[e] = (float)((double)row[e] - along * (double)other[e]);
    }
}

static double normalise(float *row, int E)
{
    const double length = sqrt(dot(row, row, E));
    for (int e = 0; e < E && length > 0; e++) row[e] = (float)((double)row[e] / length);
    return length;
}

// A uniform direction orthogonal to the n rows before it. Gaussians that (almost) lie in the space of these are drawn again.
static void draw_direction(float *row, int n, int E, uint64_t key)
{
    for (uint64_t attempt = 0;; attempt++) {
        for (int e = 0; e < E; e++) row[e] = (float)gaussian(key, attempt * (uint64_t)E + (uint64_t)e);
        if (normalise(row, E) == 0) continue;
        project_out(row, n, E);
        if (normalise(row, E) < 1e-4) continue;
        project_out(row, n, E); // again: the first time left rounding errors, which dividing by a small length made larger
        normalise(row, E);
        return;
    }
}

void lin_random_features(float *omega, int H, int D, int E, uint64_t seed)
{
    for (int h = 0; h < H; h++) {
        float *head = omega + (size_t)h * (size_t)D * (size_t)E;
        const uint64_t key = lin_random_key(seed, (uint64_t)h);
        for (int d = 0; d < D; d++)
            draw_direction(head + (size_t)d * (size_t)E, d % E, E, lin_random_key(key, 2 * (uint64_t)d));
        for (int d = 0; d < D; d++) { // lengths last: the projections need unit vectors
            double squares = 0;
            for (int e = 0; e < E; e++) squares += pow(gaussian(lin_random_key(key, 2 * (uint64_t)d + 1), (uint64_t)e), 2);
            float *row = head + (size_t)d * (size_t)E;
            for (int e = 0; e < E; e++) row[e] = (float)(sqrt(squares) * (double)row[e]);
        }
    }
}
