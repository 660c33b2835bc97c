// tasks.c - the copy task, ListOps and Pathfinder; see tasks.h.

#include "paper/tasks.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- copy ------------------------------------------------------------------------------------------------------------------ */

int lin_copy_make(int length, int symbols, uint64_t key, int *tokens, int *targets)
{
    assert(length >= 4 && symbols >= 1);
    const int n = 1 + (int)lin_random_below(key, 0, (uint32_t)(length - 2) / 2), rows = 2 * n + 1;
    tokens[0] = tokens[n + 1] = 0;
    for (int i = 1; i <= n; i++) {
        const int symbol = 1 + (int)lin_random_below(key, (uint64_t)i, (uint32_t)symbols);
        tokens[i] = symbol;
        if (n + 1 + i < rows) tokens[n + 1 + i] = symbol;
        targets[n + i] = symbol;
    }
    for (int i = 0; i <= n; i++) targets[i] = -1;
    return rows;
}

/* ---- ListOps --------------------------------------------------------------------------------------------------------------- */

enum { TRIES = 1000000, MOST_ARGUMENTS = 64 };

typedef struct listing {
    const lin_listops *how;
    uint64_t key, drawn;
    int *tokens, n;
} listing;

static int draw(listing *l, int n) { return (int)lin_random_below(l->key, l->drawn++, (uint32_t)n); }

// Adds a token; if there is no room it is only counted.
static void put(listing *l, int token)
{
    if (l->n < l->how->most) l->tokens[l->n] = token;
    l->n++;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int value_of(int operator, int *values, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += values[i];
    if (operator == LIN_LISTOPS_SM) return sum % 10;
    qsort(values, (size_t)n, sizeof *values, by_value);
    if (operator == LIN_LISTOPS_MIN) return values[0];
    if (operator == LIN_LISTOPS_MAX) return values[n - 1];
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Draws a list or a digit and returns its value; beyond the bounds it is cut short, because it will be drawn again.
static int expression(listing *l, int depth)
{
    int values[MOST_ARGUMENTS];
    if (depth > 0 && (depth + 1 >= l->how->depth || draw(l, 4) > 0)) {
        const int digit = draw(l, 10);
        put(l, digit);
        return digit;
    }
    const int n = 2 + draw(l, l->how->arguments - 1), operator = LIN_LISTOPS_MIN + draw(l, 4);
    put(l, operator);
    for (int i = 0; i < n; i++) values[i] = l->n > l->how->most ? 0 : expression(l, depth + 1);
    put(l, LIN_LISTOPS_END);
    return value_of(operator, values, n);
}

lin_status lin_listops_make(const lin_listops *how, uint64_t key, int *tokens, int *T, int *value, lin_error *err)
{
    assert(how->least >= 1 && how->most >= how->least && how->depth >= 2 && how->arguments >= 2 &&
           how->arguments <= MOST_ARGUMENTS);
    for (uint64_t tried = 0; tried < TRIES; tried++) {
        listing l = {.how = how, .key = lin_random_key(key, tried), .tokens = tokens};
        *value = expression(&l, 0);
        if (l.n < how->least || l.n > how->most) continue;
        tokens[l.n] = LIN_LISTOPS_ASK;
        *T = l.n + 1;
        return LIN_OK;
    }
    return lin_fail(err, LIN_INVALID,
                    "none of %d lists had %d to %d tokens, with at most %d arguments in %d levels; widen the "
                    "range, or change these",
                    TRIES, how->least, how->most, how->arguments, how->depth);
}

/* ---- Pathfinder ------------------------------------------------------------------------------------------------------------ */

enum { SIDE = LIN_PATHFINDER_SIDE, LONGEST = 28, EDGE = 2, APART = 4, APART_SHORT = 2, SHORT = 7, TRIES_OF_PATH = 100,
       TRIES_OF_SHORT = 60 };

static const double turn = 0.35, spread = 2.6; // most radians per step; pixels between a path and its own earlier part

typedef struct drawing {
    uint64_t key, drawn;
    int *pixels;
    unsigned char taken[LIN_PATHFINDER_PIXELS]; // too near to a path
} drawing;

typedef struct path {
    double x[LONGEST + 1], y[LONGEST + 1];
    int n; // steps
} path;

static double uniform(drawing *d, double from, double to)
{
    return from + (to - from) * lin_random_uniform(d->key, d->drawn++);
}

static int pixel_of(double x, double y) { return (int)lround(y) * SIDE + (int)lround(x); }

// Returns 0 if the path leaves the picture, or comes near another path or itself.
static int try_path(drawing *d, path *p, int steps)
{
    double angle = uniform(d, 0, 6.283185307179586), bend = 0;
    p->x[0] = uniform(d, EDGE, SIDE - 1 - EDGE);
    p->y[0] = uniform(d, EDGE, SIDE - 1 - EDGE);
    p->n = steps;
    for (int i = 0;; i++) {
        const double x = p->x[i], y = p->y[i];
        if (x < EDGE || x > SIDE - 1 - EDGE || y < EDGE || y > SIDE - 1 - EDGE || d->taken[pixel_of(x, y)]) return 0;
        for (int j = 0; j < i - 4; j++)
            if (hypot(x - p->x[j], y - p->y[j]) < spread) return 0;
        if (i == steps) return 1;
        if (i % 4 == 0) bend = uniform(d, -turn, turn);
        angle += bend;
        p->x[i + 1] = x + cos(angle);
        p->y[i + 1] = y + sin(angle);
    }
}

// Draws dashes of three pixels with gaps of one. Pixels around it are marked as taken, so that two paths, with their dots, are at
// least three pixels apart.
static void draw_path(drawing *d, const path *p)
{
    const int apart = p->n == SHORT ? APART_SHORT : APART;
    const int value = 128 + (int)lin_random_below(d->key, d->drawn++, 96);
    for (int i = 0; i <= p->n; i++) {
        const int at = pixel_of(p->x[i], p->y[i]), row = at / SIDE, column = at % SIDE;
        if (i % 4 < 3) d->pixels[at] = value;
        for (int y = row - apart; y <= row + apart; y++)
            for (int x = column - apart; x <= column + apart; x++)
                if (x >= 0 && x < SIDE && y >= 0 && y < SIDE) d->taken[y * SIDE + x] = 1;
    }
}

// A cross of five pixels.
static void draw_dot(drawing *d, const path *p, int end)
{
    const int at = pixel_of(p->x[end ? p->n : 0], p->y[end ? p->n : 0]);
    d->pixels[at] = d->pixels[at - 1] = d->pixels[at + 1] = d->pixels[at - SIDE] = d->pixels[at + SIDE] = 255;
}

static int place(drawing *d, path *p, int steps, int tries)
{
    for (int i = 0; i < tries; i++)
        if (try_path(d, p, steps)) {
            draw_path(d, p);
            return 1;
        }
    return 0;
}

int lin_pathfinder_make(int length, int distractors, uint64_t key, int *pixels)
{
    assert(length >= 8 && length <= LONGEST);
    const int connected = (int)lin_random_below(key, 0, 2);
    path paths[2], other;
    drawing d = {.key = key, .drawn = 1, .pixels = pixels};
    do { // the second long path may find no room next to the first
        memset(d.taken, 0, sizeof d.taken);
        memset(pixels, 0, LIN_PATHFINDER_PIXELS * sizeof *pixels);
    } while (!place(&d, &paths[0], length, TRIES_OF_PATH) || !place(&d, &paths[1], length, TRIES_OF_PATH));
    for (int i = 0; i < distractors; i++) place(&d, &other, SHORT, TRIES_OF_SHORT);
    const int first = (int)lin_random_below(d.key, d.drawn++, 2), end = (int)lin_random_below(d.key, d.drawn++, 2);
    draw_dot(&d, &paths[first], end);
    if (connected) draw_dot(&d, &paths[first], !end);
    else draw_dot(&d, &paths[!first], (int)lin_random_below(d.key, d.drawn++, 2));
    return connected;
}
