// frames.c - operations on the frames of an utterance: one work item per utterance.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/acoustics.h"
#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_standardise, (float *y, const float *x, const float *mean, const float *istd, int D));
LIN_DISPATCH_DECLARE(void, lin_sinusoid_rows,
                     (float *x, int rows, int C, int pairs, double *s, double *c, const double *ws, const double *wc));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

// One row y [D] = (x - mean) istd.
void LIN_NAME(lin_standardise)(float *y, const float *x, const float *mean, const float *istd, int D)
{
    for (int d = 0; d < D; d += LIN_WIDTH)
        vput_lanes(y, (vlanes(x, d, D) - vlanes(mean, d, D)) * vlanes(istd, d, D), d, D);
}

/* x [rows, C], columns 2 i .. 2 i + 1 for `pairs` values of i: x += (s, c), with (s, c) rotated by (ws, wc) from row to row. */
void LIN_NAME(lin_sinusoid_rows)(float *x, int rows, int C, int pairs, double *s, double *c, const double *ws, const double *wc)
{
    for (int t = 0; t < rows; t++, x += C)
        for (int i = 0; i < pairs; i++) {
            double sine = s[i], cosine = c[i];
            x[2 * i] += (float)sine;
            x[2 * i + 1] += (float)cosine;
            s[i] = sine * wc[i] + cosine * ws[i];
            c[i] = cosine * wc[i] - sine * ws[i];
        }
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum {
    COLUMNS = 64,  // bins whose late energy is kept on the stack; columns of an embedding that a thread adds
    PAIRS = 64,    // column pairs of one tile of sinusoids
    TURNS = 64,    // rows after which sine and cosine are computed directly again
    MOST_ROWS = 1 << 24 // floats count exactly up to this
};

typedef struct frames_job {
    float *y;
    const float *x, *mean, *istd;
    const int *in_offsets, *out_offsets;
    int width, stack, span;
} frames_job;

static void stack_piece(void *context, int b, int thread)
{
    const frames_job *job = context;
    (void)thread;
    const float *in = job->x + (size_t)job->in_offsets[b] * (size_t)job->width;
    float *out = job->y + (size_t)job->out_offsets[b] * (size_t)job->width * (size_t)job->span;
    int last = job->in_offsets[b + 1] - job->in_offsets[b] - 1;
    for (int t = 0; t < job->out_offsets[b + 1] - job->out_offsets[b]; t++)
        for (int j = 0; j < job->span; j++, out += job->width) {
            int frame = t * job->stack + j < last ? t * job->stack + j : last;
            LIN_DISPATCH(lin_standardise)(out, in + (size_t)frame * (size_t)job->width, job->mean, job->istd, job->width);
        }
}

void lin_cpu_stack_frames(lin_exec *exec, float *y, const float *x, const float *mean, const float *istd, const lin_segments *in,
                          const lin_segments *out, int D, int stack, int ahead)
{
    assert(lin_segments_hold(in) && lin_segments_hold(out) && in->B == out->B && D > 0 && stack >= 1 && ahead >= 0);
    frames_job job = {y, x, mean, istd, in->offsets, out->offsets, D, stack, stack + ahead};
    lin_pool_run(lin_threads_for(exec, out->rows, job.span * D, LIN_SMALL), in->B, stack_piece, &job);
}

typedef struct sinusoid_job {
    float *x;
    const int *offsets;
    int C;
    float *const *states;
    size_t at;
} sinusoid_job;

// One utterance. The angles grow by a constant from row to row, so sine and cosine are rotated (in double). Every TURNS rows,
// counted from the start of the utterance, they are computed directly again; rows of earlier calls are skipped.
static void sinusoid_piece(void *context, int b, int thread)
{
    const sinusoid_job *job = context;
    (void)thread;
    size_t C = (size_t)job->C;
    float *before = job->states && job->states[b] ? job->states[b] + job->at : NULL;
    const long begin = before ? (long)*before : 0, end = begin + job->offsets[b + 1] - job->offsets[b];
    float *x = job->x + (size_t)job->offsets[b] * C, passed[2 * PAIRS];
    for (int first = 0; first < job->C / 2 && begin < end; first += PAIRS) {
        int pairs = job->C / 2 - first < PAIRS ? job->C / 2 - first : PAIRS;
        double w[PAIRS], ws[PAIRS], wc[PAIRS], s[PAIRS], c[PAIRS];
        for (int i = 0; i < pairs; i++) {
            w[i] = pow(10000.0, -2.0 * (first + i) / job->C);
            ws[i] = sin(w[i]);
            wc[i] = cos(w[i]);
        }
        for (long t = begin / TURNS * TURNS, next; t < end; t = next) {
            next = t + TURNS < end ? t + TURNS : end;
            for (int i = 0; i < pairs; i++) {
                s[i] = sin((double)t * w[i]);
                c[i] = cos((double)t * w[i]);
            }
            for (; t < begin; t++) {
                memset(passed, 0, sizeof passed);
                LIN_DISPATCH(lin_sinusoid_rows)(passed, 1, 2 * pairs, pairs, s, c, ws, wc);
            }
            float *at = x + (size_t)(t - begin) * C + 2 * first;
            LIN_DISPATCH(lin_sinusoid_rows)(at, (int)(next - t), job->C, pairs, s, c, ws, wc);
        }
    }
    if (before) *before = (float)(end < MOST_ROWS ? end : MOST_ROWS);
}

void lin_cpu_add_sinusoid(lin_exec *exec, float *x, const lin_segments *segments, int C, float *const *states, size_t at)
{
    assert(lin_segments_hold(segments) && C > 0);
    sinusoid_job job = {x, segments->offsets, C, states, at};
    lin_pool_run(lin_threads_for(exec, segments->rows, C, LIN_SMALL), segments->B, sinusoid_piece, &job);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------------------- */

typedef struct embed_job {
    float *dtable;
    const float *dy, *x;
    int rows, D, n, C;
} embed_job;

static size_t token_of(const float *x, int D, int n)
{
    float sum = 0;
    for (int d = 0; d < D; d++) sum += x[d];
    return (size_t)fminf(fmaxf(floorf(sum + 0.5F), 0), (float)(n - 1));
}

void lin_cpu_embed_forward(lin_exec *exec, float *y, const float *x, const float *table, int rows, int D, int n, int C)
{
    (void)exec; // only copies: one thread uses the full memory bandwidth
    for (int r = 0; r < rows; r++, x += D, y += C) memcpy(y, table + token_of(x, D, n) * (size_t)C, (size_t)C * sizeof *y);
}

// A thread has some columns of all rows, so that sums are in the order of the rows.
static void embed_piece(void *context, int piece, int thread)
{
    const embed_job *job = context;
    (void)thread;
    const int from = piece * COLUMNS, to = from + COLUMNS < job->C ? from + COLUMNS : job->C;
    for (int r = 0; r < job->rows; r++) {
        const float *dy = job->dy + (size_t)r * (size_t)job->C;
        float *sum = job->dtable + token_of(job->x + (size_t)r * (size_t)job->D, job->D, job->n) * (size_t)job->C;
        for (int c = from; c < to; c++) sum[c] += dy[c];
    }
}

void lin_cpu_embed_backward(lin_exec *exec, float *dtable, const float *dy, const float *x, int rows, int D, int n, int C)
{
    embed_job job = {dtable, dy, x, rows, D, n, C};
    lin_pool_run(lin_threads_for(exec, rows, C, LIN_SMALL), (C + COLUMNS - 1) / COLUMNS, embed_piece, &job);
}

typedef struct gather_job {
    float *x;
    const lin_gather *items;
    const lin_mask *masks;
    const int *offsets;
    int D;
} gather_job;

static float power_of(const unsigned char *codes, const float *steps, int d, int D)
{
    const float feature = steps[d] + steps[D + d] * (float)codes[d];
    return expf(feature < LIN_ACOUSTICS_MOST ? feature : LIN_ACOUSTICS_MOST);
}

// A frame between two recorded ones, `share` of the way to the next. Features are linear in their codes.
typedef struct uttered {
    const unsigned char *codes, *next; // [D]
    float share;
} uttered;

static uttered frame_of(const lin_gather *item, int t, int T, int D)
{
    uttered u;
    u.codes = item->codes + (size_t)lin_gather_between(item, t, T, &u.share) * (size_t)D;
    u.next = u.share > 0 ? u.codes + D : u.codes;
    return u;
}

static float code_of(const uttered *u, int d)
{
    const float code = (float)u->codes[d];
    return code + u->share * ((float)u->next[d] - code);
}

// The power of bin d of the warped speech, read at warp[d].
static float spoken(const lin_acoustics *a, const uttered *u, const float *steps, int d, int D)
{
    int low, high;
    const float f = lin_acoustics_between(a, d, D, &low, &high), x = steps[low] + steps[D + low] * code_of(u, low),
                y = steps[high] + steps[D + high] * code_of(u, high), feature = x + f * (y - x);
    return expf(feature < LIN_ACOUSTICS_MOST ? feature : LIN_ACOUSTICS_MOST);
}

// Adds the voices of frame t to y [n], for the bins from `first` on.
static void add_voices(float *y, const lin_acoustics *a, int t, int first, int n, int D)
{
    for (int v = 0; v < a->n_voices; v++) {
        const lin_acoustics_voice *voice = &a->voices[v];
        const unsigned char *codes = voice->codes + (size_t)lin_acoustics_voice_frame(voice, t) * (size_t)D;
        for (int i = 0; i < n; i++) y[i] += voice->scale * power_of(codes, voice->steps, first + i, D);
    }
}

// The normalised features x [T, D] of an utterance with its acoustics.
static void hear(float *x, const lin_gather *item, int T, int D)
{
    const lin_acoustics *a = item->acoustics;
    const float *pass = a->bins, *hiss = pass + D, *spread = hiss + D, *shapes = pass + 4 * D;
    for (int first = 0; first < D; first += COLUMNS) {
        const int n = D - first < COLUMNS ? D - first : COLUMNS;
        float late[COLUMNS] = {0}, before[COLUMNS] = {0}, speech[COLUMNS], room[COLUMNS], voices[COLUMNS];
        for (int t = 0; t < T; t++) {
            const uttered u = frame_of(item, t, T, D);
            float *row = x + (size_t)t * (size_t)D;
            int shape = 0;
            const float noise = a->noise > 0 ? a->noise * expf(lin_acoustics_level(a, t, &shape)) : 0;
            for (int i = 0; i < n; i++) {
                const float p = a->speech > 0 ? spoken(a, &u, item->steps, first + i, D) : 0;
                late[i] = a->decay * late[i] + (1 - a->decay) * before[i];
                before[i] = p;
                speech[i] = a->speech * p;
                room[i] = a->speech * a->room * late[i];
                voices[i] = 0;
            }
            add_voices(voices, a, t, first, n, D);
            for (int i = 0; i < n; i++) {
                const int d = first + i;
                const float other = room[i] + noise * shapes[shape * D + d];
                float y = pass[d] * speech[i];
                if (other > 0 || voices[i] > 0 || hiss[d] > 0) {
                    const uint64_t index = (uint64_t)t * (uint64_t)D + (uint64_t)d;
                    const float root = lin_acoustics_root(a, spread[d], index), g = root * root * root;
                    y = pass[d] * lin_acoustics_meet(a, spread[d], index, speech[i], other, voices[i], g) + hiss[d] * g;
                }
                row[d] = (logf(y > LIN_ACOUSTICS_FLOOR ? y : LIN_ACOUSTICS_FLOOR) - item->mean[d]) * item->istd[d];
            }
        }
    }
}

// The same without acoustics, at the recorded speed or another.
static void read_frames(float *x, const lin_gather *item, int T, int D)
{
    const float *smallest = item->steps, *step = item->steps + D, *mean = item->mean, *istd = item->istd;
    for (int t = 0; t < T; t++, x += D) {
        const uttered u = frame_of(item, t, T, D);
        if (u.share > 0)
            for (int d = 0; d < D; d++) x[d] = (smallest[d] + step[d] * code_of(&u, d) - mean[d]) * istd[d];
        else
            for (int d = 0; d < D; d++) x[d] = (smallest[d] + step[d] * (float)u.codes[d] - mean[d]) * istd[d];
    }
}

static void gather_piece(void *context, int b, int thread)
{
    const gather_job *job = context;
    (void)thread;
    const lin_gather *item = job->items + b;
    const int T = job->offsets[b + 1] - job->offsets[b], D = job->D;
    float *x = job->x + (size_t)job->offsets[b] * (size_t)D;
    if (!item->codes && T > 0) memset(x, 0, (size_t)T * (size_t)D * sizeof *x);
    if (item->codes && item->acoustics) hear(x, item, T, D);
    else if (item->codes) read_frames(x, item, T, D);
    const int n_masks = item->codes ? item->n_masks : 0;
    for (const lin_mask *m = job->masks + item->first_mask; m < job->masks + item->first_mask + n_masks; m++) {
        const int t1 = m->t1 < T ? m->t1 : T, d0 = m->d0 > 0 ? m->d0 : 0, d1 = m->d1 < D ? m->d1 : D;
        for (int t = m->t0 > 0 ? m->t0 : 0; t < t1; t++)
            for (int d = d0; d < d1; d++) x[(size_t)t * (size_t)D + (size_t)d] = 0;
    }
}

void lin_cpu_gather(lin_exec *exec, float *x, const lin_gather *items, const lin_mask *masks, const lin_segments *segments, int D)
{
    assert(lin_segments_hold(segments) && D > 0);
    gather_job job = {x, items, masks, segments->offsets, D};
    lin_pool_run(lin_threads_for(exec, segments->rows, D, LIN_SMALL), segments->B, gather_piece, &job);
}

typedef struct carry_job {
    float *y;
    const float *x;
    float *const *tails;
    const int *in_offsets, *out_offsets, *have, *keep;
    size_t at;
    int width;
} carry_job;

static void carry_piece(void *context, int b, int thread)
{
    const carry_job *job = context;
    (void)thread;
    const size_t width = (size_t)job->width, row = width * sizeof(float), have = (size_t)job->have[b],
                 keep = (size_t)job->keep[b];
    const size_t fresh = (size_t)(job->in_offsets[b + 1] - job->in_offsets[b]);
    assert(keep <= have + fresh);
    float *y = job->y + (size_t)job->out_offsets[b] * width, *tail = have + keep ? job->tails[b] + job->at : NULL;
    if (have) memcpy(y, tail, have * row);
    if (fresh) memcpy(y + have * width, job->x + (size_t)job->in_offsets[b] * width, fresh * row);
    if (keep) memcpy(tail, y + (have + fresh - keep) * width, keep * row);
}

void lin_cpu_carry(lin_exec *exec, float *y, const lin_segments *out, const float *x, const lin_segments *in, float *const *tails,
                   size_t at, const int *have, const int *keep, int width)
{
    assert(lin_segments_hold(in) && lin_segments_hold(out) && in->B == out->B && width > 0);
    carry_job job = {y, x, tails, in->offsets, out->offsets, have, keep, at, width};
    lin_pool_run(lin_threads_for(exec, out->rows, width, LIN_SMALL), out->B, carry_piece, &job);
}

/* ---- greedy decoding, as decoder/search.h defines it: one work item per stream --------------------------------------------- */

typedef struct greedy_job {
    lin_phone *phones;
    int *n_phones;
    const float *logp;
    const int *offsets, *slots;
    lin_run *runs;
    int V;
} greedy_job;

// The run as a phone; returns 0 if the run is blank or was already returned.
static int end_run(const lin_run *run, lin_phone *phone)
{
    if (run->label <= 0 || run->emitted) return 0;
    double mean = run->sum_logp / (double)(run->frame - run->start);
    float confidence = (float)exp(mean < 0 ? mean : 0);
    *phone = (lin_phone){.label = run->label, .confidence = confidence, .start = run->start, .end = run->frame};
    return 1;
}

// Index of the largest of V values, the first of equals; -1 if one is NaN or the largest is infinite.
static int best_of(const float *row, int V)
{
    int best = 0, ordered = row[0] == row[0];
    for (int v = 1; v < V; v++) {
        ordered &= row[v] == row[v];
        if (row[v] > row[best]) best = v;
    }
    return ordered && isfinite(row[best]) ? best : -1;
}

static void stream_piece(void *context, int b, int thread)
{
    const greedy_job *job = context;
    (void)thread;
    job->n_phones[b] = 0;
    if (job->slots[b] < 0) return;
    lin_run run = job->runs[job->slots[b]];
    int n = 0;
    for (int r = job->offsets[b]; r < job->offsets[b + 1]; r++) {
        const float *row = job->logp + (size_t)r * (size_t)job->V;
        int label = best_of(row, job->V);
        if (label < 0) {
            job->n_phones[b] = -1;
            return;
        }
        if (label != run.label) {
            n += end_run(&run, &job->phones[job->offsets[b] + n]);
            run = (lin_run){.label = label, .start = run.frame, .frame = run.frame};
        }
        run.sum_logp += (double)row[label];
        run.frame++;
    }
    job->runs[job->slots[b]] = run;
    job->n_phones[b] = n;
}

void lin_cpu_greedy(lin_exec *exec, lin_phone *phones, int *n_phones, const float *logp, const lin_segments *segments, int V,
                    lin_run *runs, const int *slots)
{
    greedy_job job = {phones, n_phones, logp, segments->offsets, slots, runs, V};
    lin_pool_run(lin_threads_for(exec, segments->rows, V, LIN_SMALL), segments->B, stream_piece, &job);
}
#endif
