// diarizer.c - who speaks when, in one channel; see diarizer.h.

#include "linnet/diarizer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

// Fitted to dialogues of voices of the training sets (bench/diarize.py).
static const double PAUSE_S = 0.22, WINDOW_S = 1.5, HOP_S = 0.75;
static const double SHORTEST_WINDOW_S = 0.7; // a shorter piece does not count among the voices
static const double LEAST_COSINE = 0.44;     // between two groups of one speaker
static const double SHORTEST_S = 3;          // speech of a speaker
// Of a path: a change of the speaker costs as much as this many seconds that fit another speaker by a cosine of 1; at a pause.
static const double CHANGE = 0.4, CHANGE_AT_PAUSE = 0.1;

enum { AT_ONCE = 800 }; // vectors whose cosines with all others are kept

/* ---- groups ---------------------------------------------------------------------------------------------------------------- */

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)(a[i] * b[i]);
    return sum;
}

static const float *sum_of(const lin_voice_groups *g, int i) { return g->sums + (size_t)i * (size_t)g->size; }

static double cosine(const lin_voice_groups *g, int a, int b)
{
    return dot(sum_of(g, a), sum_of(g, b), g->size) / ((double)g->weights[a] * (double)g->weights[b]);
}

// Of each group the nearest other one, by cosines [n, n].
typedef struct neighbours {
    float *cosines;
    int *nearest; // -1: it was joined with another, or may be joined with none
    int n, fixed;
} neighbours;

static void find_nearest(neighbours *b, const lin_voice_groups *g, int i)
{
    const float *row = b->cosines + (size_t)i * (size_t)b->n;
    int best = -1;
    for (int j = 0; j < b->n; j++) {
        if (j == i || g->weights[j] <= 0 || (i < b->fixed && j < b->fixed)) continue;
        if (best < 0 || row[j] > row[best]) best = j;
    }
    b->nearest[i] = best;
}

static void compare(neighbours *b, const lin_voice_groups *g, int i)
{
    for (int j = 0; j < b->n; j++) {
        if (j == i || g->weights[j] <= 0) continue;
        const float c = (float)cosine(g, i, j);
        b->cosines[(size_t)i * (size_t)b->n + (size_t)j] = b->cosines[(size_t)j * (size_t)b->n + (size_t)i] = c;
    }
}

// The group whose nearest one is the nearest of all; -1: none may be joined.
static int nearest_of_all(const neighbours *b, const lin_voice_groups *g, double *cosine_of)
{
    int best = -1;
    for (int i = 0; i < b->n; i++) {
        if (g->weights[i] <= 0 || b->nearest[i] < 0) continue;
        const double c = (double)b->cosines[(size_t)i * (size_t)b->n + (size_t)b->nearest[i]];
        if (best < 0 || c > *cosine_of) best = i, *cosine_of = c;
    }
    return best;
}

static void join(neighbours *b, lin_voice_groups *g, int into, int from)
{
    float *sum = g->sums + (size_t)into * (size_t)g->size;
    for (int d = 0; d < g->size; d++) sum[d] += sum_of(g, from)[d];
    g->weights[into] += g->weights[from];
    g->weights[from] = 0;
    compare(b, g, into);
    for (int i = 0; i < b->n; i++) {
        if (g->weights[i] <= 0) continue;
        const int near = b->nearest[i];
        const float *row = b->cosines + (size_t)i * (size_t)b->n;
        if (i == into || near == into || near == from) find_nearest(b, g, i);
        else if (near >= 0 && row[into] > row[near] && !(i < b->fixed && into < b->fixed)) b->nearest[i] = into;
    }
}

// Closes the gaps that joined groups have left, or those that are lighter than `least` from number `fixed` on.
static void close_up(lin_voice_groups *g, int fixed, double least)
{
    int kept = 0;
    for (int i = 0; i < g->n; i++) {
        if (g->weights[i] <= 0 || (i >= fixed && (double)g->weights[i] < least)) continue;
        memmove(g->sums + (size_t)kept * (size_t)g->size, sum_of(g, i), (size_t)g->size * sizeof *g->sums);
        g->weights[kept++] = g->weights[i];
    }
    g->n = kept;
}

static lin_status join_all(lin_voice_groups *g, int fixed, int wanted, double least, lin_error *err)
{
    const size_t m = (size_t)g->n;
    neighbours b = {.n = g->n, .fixed = fixed};
    b.cosines = lin_alloc(m * m, sizeof *b.cosines);
    b.nearest = lin_alloc(m, sizeof *b.nearest);
    const int failed = !b.cosines || !b.nearest;
    int left = g->n, at;
    double c = 0;
    for (int i = 0; i < g->n && !failed; i++) compare(&b, g, i);
    for (int i = 0; i < g->n && !failed; i++) find_nearest(&b, g, i);
    while (!failed && (!wanted || left > wanted) && (at = nearest_of_all(&b, g, &c)) >= 0 && (wanted || c >= least)) {
        const int other = b.nearest[at];
        join(&b, g, at < other ? at : other, at < other ? other : at);
        left--;
    }
    close_up(g, 0, 0);
    lin_free(b.cosines);
    lin_free(b.nearest);
    return failed ? lin_no_memory(err, "speakers", m * m * sizeof *b.cosines) : LIN_OK;
}

static lin_status reserve_groups(lin_voice_groups *g, int n, lin_error *err)
{
    int capacity = g->capacity;
    if (n <= capacity) return LIN_OK;
    LIN_TRY(lin_grow_int(&g->weights, &capacity, n, sizeof *g->weights, "speakers", err));
    float *sums = lin_resize(g->sums, (size_t)capacity * (size_t)g->size, sizeof *sums);
    if (!sums) return lin_no_memory(err, "speakers", (size_t)capacity * (size_t)g->size * sizeof *sums);
    g->sums = sums;
    g->capacity = capacity;
    return LIN_OK;
}

lin_status lin_voice_groups_add(lin_voice_groups *g, const float *vectors, const float *weights, int n, int fixed, int wanted,
                                double least, lin_error *err)
{
    assert(fixed <= g->n);
    int at = 0, more;
    do {
        more = n - at < AT_ONCE ? n - at : AT_ONCE;
        LIN_TRY(reserve_groups(g, g->n + more, err));
        for (int i = at; i < at + more; i++) {
            float *sum = g->sums + (size_t)g->n * (size_t)g->size;
            if (weights[i] <= 0) continue;
            for (int d = 0; d < g->size; d++) sum[d] = weights[i] * vectors[(size_t)i * (size_t)g->size + (size_t)d];
            g->weights[g->n++] = weights[i];
        }
        at += more;
        LIN_TRY(join_all(g, fixed, at < n ? 0 : wanted, least, err));
    } while (at < n);
    return LIN_OK;
}

/* ---- windows --------------------------------------------------------------------------------------------------------------- */

// Words, or phones where no words were looked for.
static double start_of(const lin_result *r, int i) { return lin_result_item(r, i).start_s - LIN_SPEECH_BEFORE_S; }

static double end_of(const lin_result *r, int i) { return lin_result_item(r, i).end_s + LIN_SPEECH_BEHIND_S; }

static int is_pause(const lin_result *r, double end_s, int next) { return start_of(r, next) - end_s >= PAUSE_S; }

typedef struct windows {
    double *start_s, *end_s; // of the frames
    float *vectors, *weights; // [n, size]; [n], 0: too short for a voice of its own
    int n, starts_capacity, ends_capacity, vectors_capacity, weights_capacity;
} windows;

static lin_status add_window(const lin_diarizer *d, const lin_matrix *frames, windows *w, double start_s, double end_s,
                             lin_error *err)
{
    const int size = d->speakers.size;
    int from = (int)lround(start_s / d->hop_s), to = (int)lround(end_s / d->hop_s);
    if (to > frames->rows) to = frames->rows;
    if (to < 1) return LIN_OK;
    from = from < 0 ? 0 : from < to ? from : to - 1;
    LIN_TRY(lin_grow_int(&w->start_s, &w->starts_capacity, w->n + 1, sizeof *w->start_s, "speakers", err));
    LIN_TRY(lin_grow_int(&w->end_s, &w->ends_capacity, w->n + 1, sizeof *w->end_s, "speakers", err));
    LIN_TRY(lin_grow_int(&w->weights, &w->weights_capacity, w->n + 1, sizeof *w->weights, "speakers", err));
    LIN_TRY(lin_grow_int(&w->vectors, &w->vectors_capacity, (int64_t)(w->n + 1) * size, sizeof *w->vectors, "speakers", err));
    float *vector = w->vectors + (size_t)w->n * (size_t)size;
    LIN_TRY(lin_voice_vector(d->voice, frames->data + (size_t)from * (size_t)frames->columns, to - from, vector, err));
    w->start_s[w->n] = start_s;
    w->end_s[w->n] = end_s;
    w->weights[w->n++] = end_s - start_s < SHORTEST_WINDOW_S ? 0 : (float)(end_s - start_s);
    return LIN_OK;
}

// Windows of speech without a pause, equally far apart.
static lin_status add_speech(const lin_diarizer *d, const lin_matrix *frames, windows *w, double start_s, double end_s,
                             lin_error *err)
{
    const double rest_s = end_s - start_s - WINDOW_S;
    const int steps = rest_s > 0 ? (int)ceil(rest_s / HOP_S) : 0;
    for (int i = 0; i <= steps; i++) {
        const double from_s = start_s + (steps ? rest_s * i / steps : 0);
        LIN_TRY(add_window(d, frames, w, from_s, steps ? from_s + WINDOW_S : end_s, err));
    }
    return LIN_OK;
}

static lin_status make_windows(const lin_diarizer *d, const lin_matrix *frames, const lin_result *r, double offset_s, windows *w,
                               lin_error *err)
{
    for (int first = 0, next, n = lin_result_items(r); first < n; first = next) {
        double end_s = end_of(r, first);
        for (next = first + 1; next < n && !is_pause(r, end_s, next); next++) end_s = fmax(end_s, end_of(r, next));
        LIN_TRY(add_speech(d, frames, w, start_of(r, first) - offset_s, end_s - offset_s, err));
    }
    return LIN_OK;
}

/* ---- a path ---------------------------------------------------------------------------------------------------------------- */

// How well items [n] fit the speakers [k], in seconds: scores [n, k], of the windows that overlap them.
static void score_items(const lin_diarizer *d, const lin_result *r, double offset_s, const windows *w, float *scores)
{
    const lin_voice_groups *g = &d->speakers;
    for (int i = 0, first = 0; i < lin_result_items(r); i++) {
        const double start_s = start_of(r, i) - offset_s, end_s = end_of(r, i) - offset_s;
        double total_s = 0;
        float *row = scores + (size_t)i * (size_t)g->n;
        memset(row, 0, (size_t)g->n * sizeof *row);
        while (first < w->n && w->end_s[first] <= start_s) first++;
        for (int j = first; j < w->n && w->start_s[j] < end_s; j++) {
            const double both_s = fmin(end_s, w->end_s[j]) - fmax(start_s, w->start_s[j]);
            if (both_s <= 0) continue;
            const float *v = w->vectors + (size_t)j * (size_t)g->size;
            total_s += both_s;
            for (int k = 0; k < g->n; k++)
                row[k] += (float)(both_s * dot(v, sum_of(g, k), g->size) / sqrt(dot(sum_of(g, k), sum_of(g, k), g->size)));
        }
        for (int k = 0; k < g->n && total_s > 0; k++) row[k] *= (float)((end_s - start_s) / total_s);
    }
}

// The best sequence of speakers: the scores become sums, back [n, k] where they came from; speaker [n].
static void find_path(const lin_result *r, int k, float *scores, int *back, int *speaker)
{
    const int n = lin_result_items(r);
    int best = 0;
    for (int i = 0; i < n; i++) {
        float *row = scores + (size_t)i * (size_t)k;
        const float *before = row - k;
        const double change = i && is_pause(r, end_of(r, i - 1), i) ? CHANGE_AT_PAUSE : CHANGE;
        for (int s = 0; s < k && i; s++) {
            const int stays = (double)before[s] >= (double)before[best] - change;
            back[(size_t)i * (size_t)k + (size_t)s] = stays ? s : best;
            row[s] += stays ? before[s] : before[best] - (float)change;
        }
        best = 0;
        for (int s = 1; s < k; s++) best = row[s] > row[best] ? s : best;
    }
    for (int i = n - 1; i >= 0; i--) {
        speaker[i] = best;
        best = i ? back[(size_t)i * (size_t)k + (size_t)best] : 0;
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

// Groups of too little speech are noise, or two voices in a window; the heaviest one stays if there is no other.
static void drop_short(lin_voice_groups *g, int known)
{
    double most = 0;
    for (int i = 0; i < g->n && !known; i++) most = fmax(most, (double)g->weights[i]);
    close_up(g, known, known || most > SHORTEST_S ? SHORTEST_S : most);
}

// Gives the phones of the items their speakers. New ones are numbered as they are first heard, behind those that are known; a
// group in which nobody speaks is dropped.
static lin_status number_speakers(lin_diarizer *d, int known, lin_result *r, const int *speaker, lin_error *err)
{
    lin_voice_groups *g = &d->speakers;
    int number[LIN_SPEAKERS_MOST] = {0}, n = known;
    const size_t size = (size_t)g->size, all = (size_t)g->n * (size + 1);
    float *old = lin_alloc(all, sizeof *old), *weights = old + (size_t)g->n * size;
    if (!old) return lin_no_memory(err, "speakers", all * sizeof *old);
    for (int i = 0; i < known; i++) number[i] = i + 1;
    for (int i = 0; i < lin_result_items(r); i++) {
        if (!number[speaker[i]]) number[speaker[i]] = ++n;
        const int first = r->has_words ? r->words[i].first_phone : i, phones = r->has_words ? r->words[i].n_phones : 1;
        for (int p = first; p < first + phones; p++) r->phones[p].speaker = number[speaker[i]];
    }
    memcpy(old, g->sums, (size_t)g->n * size * sizeof *old);
    memcpy(weights, g->weights, (size_t)g->n * sizeof *weights);
    for (int i = 0; i < g->n; i++) {
        if (!number[i]) continue;
        memcpy(g->sums + (size_t)(number[i] - 1) * size, old + (size_t)i * size, size * sizeof *old);
        g->weights[number[i] - 1] = weights[i];
    }
    g->n = n;
    lin_free(old);
    return LIN_OK;
}

static lin_status mark(lin_diarizer *d, const lin_matrix *frames, windows *w, lin_result *r, double offset_s, lin_error *err)
{
    lin_voice_groups *g = &d->speakers;
    const int known = g->n, most = d->most > 0 ? d->most : LIN_SPEAKERS_MOST;
    LIN_TRY(make_windows(d, frames, r, offset_s, w, err));
    if (!w->n) return LIN_OK;
    float longest = 0;
    for (int i = 0; i < w->n; i++) longest = w->weights[i] > longest ? w->weights[i] : longest;
    for (int i = 0; i < w->n && !known && longest <= 0; i++) w->weights[i] = 1; // all are short
    LIN_TRY(lin_voice_groups_add(g, w->vectors, w->weights, w->n, known, d->wanted > 0 ? d->wanted : 0, LEAST_COSINE, err));
    if (d->wanted < 0) drop_short(g, known);
    if (g->n > most) LIN_TRY(lin_voice_groups_add(g, NULL, NULL, 0, known, most, 0, err));
    const size_t n = (size_t)lin_result_items(r), k = (size_t)g->n;
    float *scores = lin_alloc(n * k, sizeof *scores);
    int *back = lin_alloc(n * k, sizeof *back), *speaker = lin_alloc(n, sizeof *speaker);
    lin_status status = scores && back && speaker ? LIN_OK : lin_no_memory(err, "speakers", n * k * sizeof *scores);
    if (status == LIN_OK) {
        score_items(d, r, offset_s, w, scores);
        find_path(r, g->n, scores, back, speaker);
        status = number_speakers(d, known, r, speaker, err);
    }
    lin_free(scores);
    lin_free(back);
    lin_free(speaker);
    return status;
}

lin_status lin_diarizer_mark(lin_diarizer *d, const lin_matrix *frames, lin_result *r, double start_s, lin_error *err)
{
    windows w = {0};
    const int known = d->speakers.n;
    d->speakers.size = lin_voice_size(d->voice);
    lin_status status = mark(d, frames, &w, r, start_s, err);
    if (status != LIN_OK) d->speakers.n = known; // groups that were not joined yet are no speakers
    lin_free(w.start_s);
    lin_free(w.end_s);
    lin_free(w.vectors);
    lin_free(w.weights);
    if (status == LIN_OK) status = lin_result_set_voices(r, d->speakers.sums, d->speakers.n, d->speakers.size, err);
    return status;
}

void lin_diarizer_forget(lin_diarizer *d) { d->speakers.n = 0; }

/* ---- saved streams --------------------------------------------------------------------------------------------------------- */

// Of each speaker the weight, then the sum.
size_t lin_diarizer_count(const lin_diarizer *d) { return (size_t)d->speakers.n * ((size_t)d->speakers.size + 1); }

void lin_diarizer_save(const lin_diarizer *d, float *to)
{
    const lin_voice_groups *g = &d->speakers;
    for (int i = 0; i < g->n; i++) {
        *to++ = g->weights[i];
        memcpy(to, sum_of(g, i), (size_t)g->size * sizeof *to);
        to += g->size;
    }
}

lin_status lin_diarizer_load(lin_diarizer *d, const float *from, size_t count, lin_error *err)
{
    lin_voice_groups *g = &d->speakers;
    const size_t size = (size_t)lin_voice_size(d->voice), n = count / (size + 1);
    int wrong = count % (size + 1) != 0 || n > LIN_SPEAKERS_MOST;
    for (size_t i = 0; i < count && !wrong; i++) wrong = !isfinite(from[i]) || (i % (size + 1) == 0 && from[i] <= 0);
    g->n = 0;
    g->size = (int)size;
    if (wrong) return lin_fail(err, LIN_FORMAT, "the vectors of its speakers are damaged");
    LIN_TRY(reserve_groups(g, (int)n, err));
    for (size_t i = 0; i < n; i++, from += size + 1) {
        g->weights[i] = *from;
        memcpy(g->sums + i * size, from + 1, size * sizeof *from);
    }
    g->n = (int)n;
    return LIN_OK;
}

void lin_diarizer_close(lin_diarizer *d)
{
    lin_free(d->speakers.sums);
    lin_free(d->speakers.weights);
    *d = (lin_diarizer){0};
}
