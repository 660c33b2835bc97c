/*
 * linear_int8_body.h - rows of x on their grids, and linear_body.h for eight-bit operands: included once per instruction set by
 * linear_int8_<set>.c, which defines what linear_body.h needs without TAIL, and
 *
 *   PER_WORD   elements in a word: 4 or 2
 *   SHIFT      of four elements in a word: what is subtracted from u and zero so that they fit the instruction, 0 or 128
 *
 * The files are compiled with -ffp-contract=off: a fused multiply-add would give other bits than a processor without one.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/linear_int8.h"

#define TAIL LIN_INT8_TAIL
#define PAIRS 0
#include "kernels/cpu/linear_body.h"

// Floats in the order of whole numbers, and back: negative ones have their other bits inverted. Infinities and NaNs are outside
// of all finite values.
static inline int32_t in_order(int32_t bits) { return bits ^ (bits >> 31 & 0x7FFFFFFF); }

static inline float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// A sum with it has the nearest whole number, ties to even, in its low bits.
static const float rounder = 0x1.8p23F;

typedef struct grid {
    float step, inverse;
    int32_t zero;
} grid;

static grid grid_of(const float *x, int k)
{
    const int32_t infinity = 0x7F800000;
    int32_t lowest = 0, highest = 0;
    for (int t = 0; t < k; t++) {
        const int32_t at = in_order(bits_of(x[t]));
        lowest = at < lowest ? at : lowest;
        highest = at > highest ? at : highest;
    }
    if (highest >= infinity || lowest <= -infinity - 1) return (grid){.step = NAN};
    const float lo = float_of(in_order(lowest));
    const double range = (double)float_of(highest) - (double)lo;
    if (range < 0x1p-100) return (grid){.step = 0};
    grid g = {.step = (float)(range / 255), .inverse = (float)(255 / range)};
    g.zero = bits_of(rounder) - bits_of(lo * g.inverse + rounder);
    return g;
}

#if PER_WORD == 4
typedef unsigned char element;
#else
typedef int16_t __attribute__((may_alias)) element; // in the place of floats
#endif

void LIN_NAME(lin_int8_round)(float *words, const float *x, int rows, int k)
{
    const int depth = (k + PER_WORD - 1) / PER_WORD;
    // The grid of the next row is asked for before this row is rounded, which hides the latency of its divisions.
    grid next = rows > 0 ? grid_of(x, k) : (grid){0};
    for (; rows > 0; rows--, x += k, words += depth + TAIL) {
        const grid g = next;
        if (rows > 1) next = grid_of(x + k, k);
        const int32_t from = g.zero - bits_of(rounder), less = PER_WORD == 4 ? 0 : g.zero;
        element *to = (element *)(void *)words;
        words[depth - 1] = 0; // elements beyond k
        for (int t = 0; t < k; t++) {
            int32_t u = bits_of(x[t] * g.inverse + rounder) + from;
            u = u < 0 ? 0 : u > 255 ? 255 : u;
            to[t] = (element)((u - less) ^ (PER_WORD == 4 ? SHIFT : 0));
        }
        words[depth] = g.step;
        words[depth + 1] = float_of(PER_WORD == 4 ? g.zero - SHIFT : 0);
    }
}
