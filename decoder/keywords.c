// keywords.c - spotting of keywords; see keywords.h.

#include "decoder/keywords.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "decoder/rows.h"

// The most that a frame costs: a phone that the network missed altogether is one bad phone, not the end of the keyword.
#define WORST (-8.0f)

// One pronunciation: phones with a blank between two, in cells from number `first` on.
typedef struct chain {
    int keyword, first, n;
    float least; // the lowest score of a path that reaches the threshold; scores never rise
    float phones;
} chain;

struct lin_keywords {
    int n, V, gap, n_chains, n_cells;
    int shortest; // phones of the shortest pronunciation
    chain *chains;
    int *first;  // [n + 1] the first chain of each keyword
    int *labels; // [n_cells]
    size_t *at;  // [n] where a keyword begins in `text`
    char *text;
    uint64_t fingerprint;
};

// The best path that is in a cell now. Frames count from the beginning of the segment.
typedef struct cell {
    float score; // -INFINITY: none
    int32_t start, since; // first frame of the path; of its stay in a blank
} cell;

typedef struct peak {
    float confidence; // 0: no keyword is in progress
    int32_t start, end;
    int32_t last; // where the one before ended
} peak;

typedef struct state_header {
    int64_t first_frame;
    int32_t frame, reserved;
} state_header;

/* ---- the list -------------------------------------------------------------------------------------------------------------- */

// The end of the pronunciation that begins at label i.
static int way_end(const lin_keyword *it, int i)
{
    while (i < it->n_labels && it->labels[i]) i++;
    return i;
}

static lin_status check(const lin_keyword *it, int V, lin_error *err)
{
    if (!it->text || !*it->text) return lin_fail(err, LIN_INVALID, "a keyword has no text");
    if (!isnan(it->threshold) && !(it->threshold > 0 && it->threshold <= 1))
        return lin_fail(err, LIN_INVALID, "the keyword '%.100s': its threshold is %g; it must be a confidence above 0, at most 1",
                        it->text, it->threshold);
    for (int i = 0; i <= it->n_labels; i = way_end(it, i) + 1) {
        const int n = way_end(it, i) - i;
        if (n < 1 || n > LIN_KEYWORD_PHONES_MAX)
            return lin_fail(err, LIN_INVALID, "the keyword '%.100s' has a pronunciation of %d phones; 1 to %d are possible",
                            it->text, n, LIN_KEYWORD_PHONES_MAX);
    }
    for (int i = 0; i < it->n_labels; i++)
        if (it->labels[i] < 0 || it->labels[i] >= V)
            return lin_fail(err, LIN_INVALID, "the keyword '%.100s' has phone %d of %d", it->text, it->labels[i], V - 1);
    return LIN_OK;
}

// The default is by the shortest pronunciation: about one false alarm in an hour of read speech (bench/keywords.py).
static double threshold(const lin_keyword *it)
{
    int least = LIN_KEYWORD_PHONES_MAX;
    if (!isnan(it->threshold)) return it->threshold;
    for (int i = 0; i < it->n_labels; i = way_end(it, i) + 1) least = way_end(it, i) - i < least ? way_end(it, i) - i : least;
    return exp(-fmin(1.5, fmax(0.1, 0.1 + 0.3 * (least - 4)))); // shorter ones need a higher confidence
}

static void add_chains(lin_keywords *k, int number, const lin_keyword *it)
{
    const double nats = log(threshold(it));
    k->first[number] = k->n_chains;
    for (int i = 0; i < it->n_labels; i = way_end(it, i) + 1) {
        const int n = way_end(it, i) - i;
        if (n < k->shortest) k->shortest = n;
        k->chains[k->n_chains++] = (chain){number, k->n_cells, 2 * n - 1, (float)(nats * n), (float)n};
        for (int phone = 0; phone < n; phone++) {
            if (phone > 0) k->labels[k->n_cells++] = 0;
            k->labels[k->n_cells++] = it->labels[i + phone];
        }
    }
    k->first[number + 1] = k->n_chains;
}

lin_status lin_keywords_create(const lin_keyword *list, int n, int V, int gap, lin_keywords **keywords, lin_error *err)
{
    size_t labels = 0, bytes = 0;
    *keywords = NULL;
    if (n < 1 || n > LIN_KEYWORDS_MAX)
        return lin_fail(err, LIN_INVALID, "%d keywords; 1 to %d are possible", n, LIN_KEYWORDS_MAX);
    for (int i = 0; i < n; i++) {
        LIN_TRY(check(&list[i], V, err));
        labels += (size_t)list[i].n_labels + 1;
        bytes += strlen(list[i].text) + 1;
    }
    lin_keywords *k = lin_calloc(1, sizeof *k);
    if (!k) return lin_no_memory(err, "keywords", sizeof *k);
    *k = (lin_keywords){.n = n, .V = V, .gap = gap, .shortest = LIN_KEYWORD_PHONES_MAX};
    k->chains = lin_alloc(labels, sizeof *k->chains);
    k->labels = lin_alloc(2 * labels, sizeof *k->labels);
    k->first = lin_alloc((size_t)n + 1, sizeof *k->first);
    k->at = lin_alloc((size_t)n, sizeof *k->at);
    k->text = lin_alloc(bytes, 1);
    if (!k->chains || !k->first || !k->labels || !k->at || !k->text) {
        lin_keywords_destroy(k);
        return lin_no_memory(err, "keywords", labels * sizeof *k->chains);
    }
    bytes = 0;
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(list[i].text) + 1;
        add_chains(k, i, &list[i]);
        memcpy(k->text + (k->at[i] = bytes), list[i].text, length);
        bytes += length;
    }
    k->fingerprint = lin_hash(k->text, bytes, lin_hash_pair((uint64_t)V, (uint64_t)gap));
    k->fingerprint = lin_hash(k->labels, (size_t)k->n_cells * sizeof *k->labels, k->fingerprint);
    k->fingerprint = lin_hash(k->chains, (size_t)k->n_chains * sizeof *k->chains, k->fingerprint);
    *keywords = k;
    return LIN_OK;
}

void lin_keywords_destroy(lin_keywords *k)
{
    if (!k) return;
    lin_free(k->chains);
    lin_free(k->first);
    lin_free(k->labels);
    lin_free(k->at);
    lin_free(k->text);
    lin_free(k);
}

const char *lin_keywords_text(const lin_keywords *k, int number) { return k->text + k->at[number]; }
uint64_t lin_keywords_fingerprint(const lin_keywords *k) { return k->fingerprint; }

/* ---- one stream ------------------------------------------------------------------------------------------------------------ */

size_t lin_keywords_bytes(const lin_keywords *k)
{
    return sizeof(state_header) + (size_t)k->n * sizeof(peak) + (size_t)k->n_cells * sizeof(cell);
}

static peak *peaks(void *state) { return (peak *)((state_header *)state + 1); }
static cell *cells(const lin_keywords *k, void *state) { return (cell *)(peaks(state) + k->n); }

void lin_keywords_reset(const lin_keywords *k, void *state, int64_t first_frame)
{
    *(state_header *)state = (state_header){.first_frame = first_frame};
    for (int i = 0; i < k->n; i++) peaks(state)[i] = (peak){0};
    for (int i = 0; i < k->n_cells; i++) cells(k, state)[i] = (cell){.score = -INFINITY};
}

static float cost(const float *row, int label, float best) { return fmaxf(row[label] - best, WORST); }

// Moves the paths of a pronunciation on by one frame; those that began before `oldest` end.
static void step(const lin_keywords *k, const chain *c, cell *paths, const float *row, float best, int32_t frame, int32_t oldest)
{
    const int *labels = k->labels + c->first;
    for (int i = c->n - 1; i >= 0; i--) {
        cell from = paths[i];
        const int blank = i % 2;
        if (blank && frame - from.since > k->gap) from.score = -INFINITY;
        if (i > 0 && paths[i - 1].score > from.score) {
            from = paths[i - 1];
            from.since = frame;
        }
        if (i == 0 && from.score < 0) from = (cell){0, frame, frame}; // a path may begin here
        if (i > 1 && !blank && labels[i] != labels[i - 2] && paths[i - 2].score > from.score) from = paths[i - 2];
        if (from.score > -INFINITY) from.score += cost(row, labels[i], best);
        if (from.score < c->least || from.start < oldest) from.score = -INFINITY;
        paths[i] = from;
    }
}

// 1 if a path that overlaps a keyword's peak may still beat it; scores of paths never rise.
static int may_rise(const lin_keywords *k, const cell *all, int number, const peak *p)
{
    for (int i = k->first[number]; i < k->first[number + 1]; i++) {
        const chain *c = &k->chains[i];
        const float least = logf(p->confidence) * c->phones;
        for (int j = c->first; j < c->first + c->n; j++)
            if (all[j].score > least && all[j].start < p->end) return 1;
    }
    return 0;
}

static void give(int number, peak *p, int64_t first_frame, lin_path *found)
{
    assert(found->n_keywords < found->keywords_capacity); // lin_keywords_reserve
    found->keywords[found->n_keywords++] =
        (lin_path_keyword){number, p->confidence, first_frame + p->start, first_frame + p->end};
    *p = (peak){.last = p->end};
}

// A keyword takes a frame for each of its phones; one may wait to be reported, and the next may have begun before these frames.
lin_status lin_keywords_reserve(const lin_keywords *k, int n_frames, lin_path *found, lin_error *err)
{
    return lin_path_reserve_keywords(found, (int64_t)k->n * (n_frames / k->shortest + 2), err);
}

void lin_keywords_push(const lin_keywords *k, void *state, const float *logp, int n_frames, lin_path *found)
{
    state_header *h = state;
    peak *p = peaks(state);
    for (int t = 0; t < n_frames; t++, h->frame++) {
        const float *row = logp + (int64_t)t * k->V;
        const float best = lin_row_most(row, k->V);
        for (int i = 0; i < k->n_chains; i++) {
            const chain *c = &k->chains[i];
            cell *paths = cells(k, state) + c->first;
            peak *of = &p[c->keyword];
            step(k, c, paths, row, best, h->frame, of->last);
            const cell *end = &paths[c->n - 1];
            const float confidence = end->score > -INFINITY ? expf(end->score / c->phones) : 0;
            // One that follows cannot be better in place of this one.
            if (of->confidence > 0 && confidence > 0 && end->start >= of->end) give(c->keyword, of, h->first_frame, found);
            if (confidence > of->confidence) {
                of->confidence = confidence;
                of->start = end->start;
                of->end = h->frame + 1;
            }
        }
        for (int i = 0; i < k->n; i++)
            if (p[i].confidence > 0 && p[i].end <= h->frame && !may_rise(k, cells(k, state), i, &p[i]))
                give(i, &p[i], h->first_frame, found);
    }
}

void lin_keywords_finish(const lin_keywords *k, void *state, lin_path *found)
{
    for (int i = 0; i < k->n; i++)
        if (peaks(state)[i].confidence > 0) give(i, &peaks(state)[i], ((state_header *)state)->first_frame, found);
}

lin_status lin_keywords_check(const lin_keywords *k, const void *state, size_t n, lin_error *err)
{
    const state_header *h = state;
    const peak *p = (const peak *)(h + 1);
    const cell *c = (const cell *)(p + k->n);
    if (n != lin_keywords_bytes(k))
        return lin_fail(err, LIN_MISMATCH, "a state of keywords of %zu bytes, but these have %zu", n, lin_keywords_bytes(k));
    int fits = h->first_frame >= 0 && h->frame >= 0;
    for (int i = 0; i < k->n && fits; i++)
        fits = p[i].confidence >= 0 && p[i].confidence <= 1 && p[i].start >= 0 && p[i].start <= p[i].end &&
               p[i].end <= h->frame && p[i].last >= 0 && p[i].last <= h->frame;
    for (int i = 0; i < k->n_cells && fits; i++)
        fits = c[i].score <= 0 && (c[i].score == -INFINITY || (c[i].start >= 0 && c[i].start <= h->frame && c[i].since >= 0 &&
                                                               c[i].since <= h->frame));
    return fits ? LIN_OK : lin_fail(err, LIN_FORMAT, "the state of keywords is damaged");
}
