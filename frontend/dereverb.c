// dereverb.c - weighted prediction error; see dereverb.h.

#include "frontend/dereverb.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    TAPS = 10,
    DELAY = 3,
    BLOCK = 5,                     // frames that are learned together
    HELD = BLOCK + DELAY + TAPS,   // frames: X(t) to the last of x(t - BLOCK)
    PAIRS = TAPS * (TAPS + 1) / 2, // of R, which is Hermitian: its lower triangle
    FIRST = 60,                    // loud frames before the first solution
    SURE = 200,                    // loud frames without reverberation after which few are learned
    SELDOM = 8,                    // blocks from one solution to the next while there is no reverberation
    LANES = 4                      // lines computed together
};

#define FORGET 0.9995F
#define RIDGE 0.2F
#define QUIETEST 3e-2F
#define TINY 1e-20F // for lines without sound
#define MOST 1e38F  // more than the power of any sound: 2^124, of a second of LIN_AUDIO_LARGEST
#define FADE 0.9988F
#define LOUD 1e-3F
#define CHANCE 7.0F
#define NO_ROOM 0.03F
#define ROOM 0.05F
#define TONES 0.6F

typedef float lane __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

// A complex number of each of LANES lines.
typedef struct lanes {
    lane re, im;
} lanes;

// Of LANES lines, a band; lines beyond the last are 0.
typedef struct filter {
    lanes R[PAIRS], p[TAPS], g[TAPS];
} filter;

// The last frames follow it, lanes [HELD][bands]: only they are touched in every frame.
struct lin_dereverb {
    int32_t lines, newest;        // newest: the place of X(t) among the last frames, then X(t - 1), ...
    int32_t frames, blocks;       // frames until the end of this block; blocks until the next solution
    float loudest, learned, room; // learned: loud frames, which fade as R does
    float loud[1 + BLOCK];        // 1 or 0, newest first
    filter filters[];             // [bands]
};

// Row i and column j of a lower triangle, i >= j.
static int at(int i, int j) { return i * (i + 1) / 2 + j; }

static int bands_of(int lines) { return (lines + LANES - 1) / LANES; }

size_t lin_dereverb_bytes(int lines)
{
    return sizeof(lin_dereverb) + (size_t)bands_of(lines) * (sizeof(filter) + HELD * sizeof(lanes));
}

// [bands]: X(t - k)
static lanes *frame_at(lin_dereverb *s, int k)
{
    return (lanes *)(s->filters + bands_of(s->lines)) + (s->newest + k) % HELD * bands_of(s->lines);
}

void lin_dereverb_reset(lin_dereverb *s, int lines)
{
    memset(s, 0, lin_dereverb_bytes(lines));
    s->lines = lines;
    s->frames = BLOCK;
    s->blocks = 1;
}

int lin_dereverb_is_state(const void *bytes, int lines)
{
    lin_dereverb head;
    memcpy(&head, bytes, sizeof head);
    if (head.lines != lines || head.newest < 0 || head.newest >= HELD || head.frames < 1 || head.frames > BLOCK ||
        head.blocks < 1 || head.blocks > SELDOM ||
        !(head.loudest >= 0 && head.learned >= 0 && head.room >= 0 && head.room <= 1))
        return 0;
    for (int i = 0; i <= BLOCK; i++)
        if (head.loud[i] != 0 && head.loud[i] != 1) return 0;
    for (size_t i = offsetof(lin_dereverb, loudest); i < lin_dereverb_bytes(lines); i += sizeof(float)) {
        float value;
        memcpy(&value, (const char *)bytes + i, sizeof value);
        if (!(fabsf(value) <= MOST)) return 0;
    }
    return 1;
}

// a - b c*
static inline lanes less(lanes a, lanes b, lanes c)
{
    return (lanes){a.re - (b.re * c.re + b.im * c.im), a.im - (b.im * c.re - b.re * c.im)};
}

// forget sum + a b*
static inline lanes accumulated(lanes sum, float forget, lanes a, lanes b)
{
    return (lanes){forget * sum.re + (a.re * b.re + a.im * b.im), forget * sum.im + (a.im * b.re - a.re * b.im)};
}

static inline lanes scaled(lanes a, lane by) { return (lanes){a.re * by, a.im * by}; }

static inline lane power_of(lanes a) { return a.re * a.re + a.im * a.im; }

// Adds the loud ones of the BLOCK frames before the newest to R and p. held [HELD]: X(t), X(t - 1), ...
static void learn(filter *f, const lanes *held, const float *loud)
{
    lanes weighted[BLOCK][TAPS]; // x / v of frame t - 1 - e
    float forget[BLOCK];
    for (int e = 0; e < BLOCK; e++) {
        const lanes *x = held + 1 + e + DELAY;
        lane v = (power_of(held[e]) + power_of(held[e + 1]) + power_of(held[e + 2])) / 3, least = {0};
        forget[e] = loud[1 + e] > 0 ? FORGET : 1;
        for (int k = 0; k < TAPS; k++) least += power_of(x[k]) * (QUIETEST / TAPS);
        for (int l = 0; l < LANES; l++) v[l] = v[l] > least[l] ? v[l] : least[l];
        for (int k = 0; k < TAPS; k++) weighted[e][k] = scaled(x[k], loud[1 + e] / (v + TINY));
    }
    for (int i = 0; i < TAPS; i++) {
        for (int j = 0; j <= i; j++) {
            lanes sum = f->R[at(i, j)];
            for (int e = BLOCK - 1; e >= 0; e--) sum = accumulated(sum, forget[e], weighted[e][i], held[1 + e + DELAY + j]);
            f->R[at(i, j)] = sum;
        }
        lanes sum = f->p[i];
        for (int e = BLOCK - 1; e >= 0; e--) sum = accumulated(sum, forget[e], weighted[e][i], held[1 + e]);
        f->p[i] = sum;
    }
}

// By Cholesky's decomposition: R + ridge = L L^H, L z = p, L^H g = z. Returns the sum of p^H g over the lines.
static float solve(filter *f)
{
    lanes L[PAIRS], *g = f->g;
    lane ridge = {0}, inverse[TAPS], explained = {0};
    float sum = 0;
    memcpy(L, f->R, sizeof L);
    for (int i = 0; i < TAPS; i++) ridge += L[at(i, i)].re * (RIDGE / TAPS);
    ridge += TINY;
    for (int i = 0; i < TAPS; i++) {
        for (int j = 0; j < i; j++) {
            lanes left = L[at(i, j)];
            for (int k = 0; k < j; k++) left = less(left, L[at(i, k)], L[at(j, k)]);
            L[at(i, j)] = scaled(left, inverse[j]);
        }
        lane diagonal = L[at(i, i)].re;
        lanes z = f->p[i];
        for (int k = 0; k < i; k++) {
            const lanes l = L[at(i, k)];
            diagonal -= power_of(l);
            z.re -= l.re * g[k].re - l.im * g[k].im;
            z.im -= l.re * g[k].im + l.im * g[k].re;
        }
        // Only rounding can make the rest of a diagonal negative.
        for (int l = 0; l < LANES; l++) inverse[i][l] = 1 / sqrtf((diagonal[l] > 0 ? diagonal[l] : 0) + ridge[l]);
        g[i] = scaled(z, inverse[i]);
    }
    for (int i = TAPS - 1; i >= 0; i--) {
        for (int k = i + 1; k < TAPS; k++) g[i] = less(g[i], g[k], L[at(k, i)]);
        g[i] = scaled(g[i], inverse[i]);
        explained += f->p[i].re * g[i].re + f->p[i].im * g[i].im;
    }
    for (int l = 0; l < LANES; l++) sum += explained[l];
    return sum;
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

static void learn_block(lin_dereverb *s)
{
    int loud = 0;
    for (int e = 1; e <= BLOCK; e++) loud += s->loud[e] > 0;
    if (!loud) return;
    const int solves = s->learned >= FIRST && !--s->blocks;
    if (!solves && s->learned >= SURE && !(s->room > 0)) return;
    for (int e = 0; e < loud; e++) s->learned = FORGET * s->learned + 1;
    for (int i = 0; i < bands_of(s->lines); i++) {
        lanes held[HELD];
        for (int k = 0; k < HELD; k++) held[k] = frame_at(s, k)[i];
        learn(&s->filters[i], held, s->loud);
    }
    if (!solves) return;
    float explained = 0;
    for (int i = 0; i < bands_of(s->lines); i++) explained += solve(&s->filters[i]);
    const float part = (explained / (float)s->lines - CHANCE) / s->learned;
    s->room = fminf(fmaxf((part - NO_ROOM) / (ROOM - NO_ROOM), 0), 1);
    s->blocks = s->room > 0 ? 1 : SELDOM;
    if (part > TONES) { // a filter that predicts tones would distort speech after them
        s->learned = s->room = 0;
        memset(s->filters, 0, (size_t)bands_of(s->lines) * sizeof *s->filters);
    }
}

void lin_dereverb_frame(lin_dereverb *s, const kiss_fft_cpx *spectrum, float *power)
{
    float level = 0;
    s->newest = (s->newest + HELD - 1) % HELD;
    lanes *X = frame_at(s, 0);
    for (int i = 0; i < bands_of(s->lines); i++, X++) {
        const int from = i * LANES, n = s->lines - from < LANES ? s->lines - from : LANES;
        for (int l = 0; l < n; l++) {
            X->re[l] = spectrum[from + l].r;
            X->im[l] = spectrum[from + l].i;
        }
        lane observed = power_of(*X);
        for (int l = 0; l < n; l++) level += observed[l];
        if (s->room > 0) {
            lanes echo = {{0}, {0}}; // -g^H x
            for (int k = 0; k < TAPS; k++) echo = less(echo, frame_at(s, DELAY + k)[i], s->filters[i].g[k]);
            observed = power_of((lanes){X->re + s->room * echo.re, X->im + s->room * echo.im});
            for (int l = 0; l < n; l++) observed[l] = observed[l] < MOST ? observed[l] : 0; // of a forged state
        }
        memcpy(power + from, &observed, (size_t)n * sizeof *power);
    }
    s->loudest = fmaxf(level, FADE * s->loudest);
    memmove(s->loud + 1, s->loud, BLOCK * sizeof *s->loud);
    s->loud[0] = level > LOUD * s->loudest ? 1 : 0;
    if (--s->frames) return;
    s->frames = BLOCK;
    learn_block(s);
}
