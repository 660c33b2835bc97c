// dereverb.c - weighted prediction error; see dereverb.h.

#include "frontend/dereverb.h"

#include <math.h>
#include <string.h>

enum {
    TAPS = 10,
    DELAY = 3,
    PAIRS = TAPS * (TAPS + 1) / 2, // of R, which is Hermitian: its lower triangle
    HELD = 1 + DELAY + TAPS,       // frames: X(t) to the last of x(t - 1)
    FIRST = 50,                    // frames without a prediction
    EVERY = 5,                     // frames from one solution to the next
    LANES = 16                     // lines computed together
};

#define FORGET 0.9995F
#define RIDGE 0.2F
#define QUIETEST 3e-2F
#define TINY 1e-20F // for lines without sound

// A complex number of each of LANES lines.
typedef struct lanes {
    float re[LANES], im[LANES];
} lanes;

typedef struct band {
    lanes held[HELD]; // the last frames, newest first
    lanes R[PAIRS], p[TAPS], g[TAPS];
} band;

struct lin_dereverb {
    int lines, due; // due: frames until g is solved
    band bands[];   // of LANES lines; those beyond the last are 0
};

// Row i and column j of a lower triangle, i >= j.
static int at(int i, int j) { return i * (i + 1) / 2 + j; }

static int bands_of(int lines) { return (lines + LANES - 1) / LANES; }

size_t lin_dereverb_bytes(int lines) { return sizeof(lin_dereverb) + (size_t)bands_of(lines) * sizeof(band); }

void lin_dereverb_reset(lin_dereverb *s, int lines)
{
    memset(s, 0, lin_dereverb_bytes(lines));
    s->lines = lines;
    s->due = FIRST + 1;
}

int lin_dereverb_is_state(const void *bytes, int lines)
{
    lin_dereverb head;
    memcpy(&head, bytes, sizeof head);
    if (head.lines != lines || head.due < 1 || head.due > FIRST + 1) return 0;
    for (size_t i = sizeof head; i < lin_dereverb_bytes(lines); i += sizeof(float)) {
        float value;
        memcpy(&value, (const char *)bytes + i, sizeof value);
        if (!(fabsf(value) < 1e30F)) return 0;
    }
    return 1;
}

// a -= b c*
static void subtract(lanes *restrict a, const lanes *restrict b, const lanes *restrict c)
{
    for (int l = 0; l < LANES; l++) {
        a->re[l] -= b->re[l] * c->re[l] + b->im[l] * c->im[l];
        a->im[l] -= b->im[l] * c->re[l] - b->re[l] * c->im[l];
    }
}

// sum = FORGET sum + w a b*
static void accumulate(lanes *restrict sum, const float *restrict w, const lanes *a, const lanes *b)
{
    for (int l = 0; l < LANES; l++) {
        const float re = w[l] * a->re[l], im = w[l] * a->im[l];
        sum->re[l] = FORGET * sum->re[l] + re * b->re[l] + im * b->im[l];
        sum->im[l] = FORGET * sum->im[l] + im * b->re[l] - re * b->im[l];
    }
}

static void add_power(float *restrict sum, const lanes *a, float factor)
{
    for (int l = 0; l < LANES; l++) sum[l] += factor * (a->re[l] * a->re[l] + a->im[l] * a->im[l]);
}

static void scale(lanes *restrict a, const float *restrict by)
{
    for (int l = 0; l < LANES; l++) {
        a->re[l] *= by[l];
        a->im[l] *= by[l];
    }
}

// Adds the frame before the newest one to R and p.
static void learn(band *b)
{
    const lanes *x = b->held + 1 + DELAY;
    float v[LANES] = {0}, least[LANES] = {0}, w[LANES];
    for (int ago = 0; ago < 3; ago++) add_power(v, &b->held[ago], 1.0F / 3);
    for (int k = 0; k < TAPS; k++) add_power(least, &x[k], QUIETEST / TAPS);
    for (int l = 0; l < LANES; l++) w[l] = 1 / (fmaxf(v[l], least[l]) + TINY);
    for (int i = 0; i < TAPS; i++) {
        for (int j = 0; j <= i; j++) accumulate(&b->R[at(i, j)], w, &x[i], &x[j]);
        accumulate(&b->p[i], w, &x[i], &b->held[1]);
    }
}

// By Cholesky's decomposition: R + ridge = L L^H, L z = p, L^H g = z.
static void solve(band *b)
{
    lanes L[PAIRS], *g = b->g;
    float ridge[LANES], inverse[TAPS][LANES];
    memcpy(L, b->R, sizeof L);
    memcpy(g, b->p, sizeof b->p);
    for (int l = 0; l < LANES; l++) ridge[l] = TINY;
    for (int i = 0; i < TAPS; i++)
        for (int l = 0; l < LANES; l++) ridge[l] += RIDGE / TAPS * L[at(i, i)].re[l];
    for (int i = 0; i < TAPS; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++) subtract(&L[at(i, j)], &L[at(i, k)], &L[at(j, k)]);
            scale(&L[at(i, j)], inverse[j]);
        }
        for (int k = 0; k < i; k++) subtract(&L[at(i, i)], &L[at(i, k)], &L[at(i, k)]);
        // What is left of a diagonal is not below 0 but for rounding.
        for (int l = 0; l < LANES; l++) inverse[i][l] = 1 / sqrtf(fmaxf(L[at(i, i)].re[l], 0) + ridge[l]);
        for (int k = 0; k < i; k++) {
            for (int l = 0; l < LANES; l++) {
                g[i].re[l] -= L[at(i, k)].re[l] * g[k].re[l] - L[at(i, k)].im[l] * g[k].im[l];
                g[i].im[l] -= L[at(i, k)].re[l] * g[k].im[l] + L[at(i, k)].im[l] * g[k].re[l];
            }
        }
        scale(&g[i], inverse[i]);
    }
    for (int i = TAPS - 1; i >= 0; i--) {
        for (int k = i + 1; k < TAPS; k++) subtract(&g[i], &g[k], &L[at(k, i)]);
        scale(&g[i], inverse[i]);
    }
}

void lin_dereverb_frame(lin_dereverb *s, const kiss_fft_cpx *spectrum, float *power)
{
    s->due--;
    for (int from = 0; from < s->lines; from += LANES) {
        band *b = &s->bands[from / LANES];
        const int n = s->lines - from < LANES ? s->lines - from : LANES;
        memmove(b->held + 1, b->held, sizeof b->held - sizeof *b->held);
        for (int l = 0; l < n; l++) {
            b->held->re[l] = spectrum[from + l].r;
            b->held->im[l] = spectrum[from + l].i;
        }
        lanes y = b->held[0];
        for (int k = 0; k < TAPS; k++) subtract(&y, &b->held[DELAY + k], &b->g[k]);
        for (int l = 0; l < n; l++) power[from + l] = y.re[l] * y.re[l] + y.im[l] * y.im[l];
        learn(b);
        if (!s->due) solve(b);
    }
    if (!s->due) s->due = EVERY;
}
