// search.c - one interface for all searches; see search.h.

#include "decoder/search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "decoder/rows.h"

lin_search lin_search_greedy(int V) { return (lin_search){.kind = LIN_SEARCH_GREEDY, .V = V}; }

lin_search lin_search_beam(const lin_beam *beam, int V, uint64_t id)
{
    return (lin_search){.kind = LIN_SEARCH_BEAM, .V = V, .of = beam, .id = id};
}

lin_search lin_search_words(const lin_words *words, int V, uint64_t id)
{
    return (lin_search){.kind = LIN_SEARCH_WORDS, .V = V, .of = words, .id = id};
}

lin_search lin_search_for_keywords(lin_search search, const lin_keywords *keywords, int after)
{
    search.keywords = keywords;
    search.after = keywords ? after : 0;
    if (keywords) search.id = lin_hash_pair(search.id, lin_keywords_fingerprint(keywords));
    if (search.after) search.id = lin_hash_pair(search.id, (uint64_t)after);
    return search;
}

const char *lin_search_name(lin_search_kind kind)
{
    static const char *const names[] = {"greedy", "beam", "words"};
    return names[kind];
}

static size_t search_bytes(const lin_search *s)
{
    return s->kind == LIN_SEARCH_BEAM    ? lin_beam_bytes(s->of)
           : s->kind == LIN_SEARCH_WORDS ? lin_words_bytes(s->of)
                                         : sizeof(lin_greedy);
}

// Where the state of the keywords begins, behind that of the search.
static size_t keywords_at(const lin_search *s) { return (search_bytes(s) + 7) / 8 * 8; }

static void *of_keywords(const lin_search *s, void *state) { return (char *)state + keywords_at(s); }

// With `after`: whether the search runs now. While it is asleep, the last rows are kept, because a keyword is certain only some
// rows after its end, where decoding begins.
enum { KEPT = 32 };
typedef struct waking {
    int64_t since, frame, until; // first of the segment; the next; decoding goes on until this one
    int64_t asleep;
} waking;

static size_t waking_at(const lin_search *s) { return (keywords_at(s) + lin_keywords_bytes(s->keywords) + 7) / 8 * 8; }

static waking *of_waking(const lin_search *s, void *state) { return (waking *)(void *)((char *)state + waking_at(s)); }

static float *kept_row(const lin_search *s, waking *w, int64_t frame)
{
    return (float *)(w + 1) + (size_t)(frame % KEPT) * (size_t)s->V;
}

static int is_asleep(const lin_search *s, void *state) { return s->after && of_waking(s, state)->asleep; }

size_t lin_search_bytes(const lin_search *s)
{
    if (s->after) return waking_at(s) + sizeof(waking) + KEPT * (size_t)s->V * sizeof(float);
    return s->keywords ? keywords_at(s) + lin_keywords_bytes(s->keywords) : search_bytes(s);
}

static void reset(const lin_search *s, void *state, int64_t first_frame, int carry)
{
    if (s->kind == LIN_SEARCH_BEAM) lin_beam_reset(s->of, state, first_frame);
    else if (s->kind == LIN_SEARCH_WORDS) lin_words_reset(s->of, state, first_frame);
    else lin_greedy_reset(state, s->V, first_frame, carry);
}

void lin_search_reset(const lin_search *s, void *state, int64_t first_frame, int carry)
{
    reset(s, state, first_frame, carry);
    if (s->after) {
        const int64_t until = first_frame ? of_waking(s, state)->until : 0;
        memset(of_waking(s, state), 0, lin_search_bytes(s) - waking_at(s));
        *of_waking(s, state) = (waking){first_frame, first_frame, until, first_frame >= until};
    }
    if (!s->keywords || carry) return; // keywords in progress go on
    memset((char *)state + search_bytes(s), 0, keywords_at(s) - search_bytes(s));
    lin_keywords_reset(s->keywords, of_keywords(s, state), first_frame);
}

static lin_status push(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n_frames,
                       lin_path *settled, lin_error *err)
{
    if (s->kind == LIN_SEARCH_BEAM)
        return lin_beam_push(s->of, state, context ? context->phones : NULL, logp, n_frames, settled, err);
    if (s->kind == LIN_SEARCH_WORDS)
        return lin_words_push(s->of, state, context ? context->words : NULL, logp, n_frames, settled, err);
    return lin_greedy_push(state, logp, n_frames, settled, err);
}

// Asleep: looks for keywords only, up to the row with which one is found; *n: how many rows that are.
static lin_status wait_for_keyword(const lin_search *s, void *state, const lin_search_context *context, const float *logp,
                                   int n_frames, int *n, lin_path *settled, lin_error *err)
{
    waking *w = of_waking(s, state);
    const int before = settled->n_keywords;
    for (*n = 0; *n < n_frames && settled->n_keywords == before; ++*n, logp += s->V) {
        lin_keywords_push(s->keywords, of_keywords(s, state), logp, 1, settled);
        memcpy(kept_row(s, w, w->frame++), logp, (size_t)s->V * sizeof *logp);
    }
    if (settled->n_keywords == before) return LIN_OK;
    int64_t from = settled->keywords[settled->n_keywords - 1].end;
    if (from < w->frame - KEPT) from = w->frame - KEPT;
    if (from < w->since) from = w->since;
    w->asleep = 0;
    w->until = settled->keywords[settled->n_keywords - 1].end + s->after;
    reset(s, state, from, 0);
    for (; from < w->frame; from++) LIN_TRY(push(s, state, context, kept_row(s, w, from), 1, settled, err));
    return LIN_OK;
}

static lin_status push_after(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n_frames,
                             lin_path *settled, lin_error *err)
{
    waking *w = of_waking(s, state);
    LIN_TRY(lin_rows_check_numbers(logp, n_frames, s->V, w->frame, err));
    int waited = 0;
    if (w->asleep) LIN_TRY(wait_for_keyword(s, state, context, logp, n_frames, &waited, settled, err));
    const int before = settled->n_keywords;
    logp += (size_t)waited * (size_t)s->V;
    n_frames -= waited;
    if (!n_frames) return LIN_OK;
    LIN_TRY(push(s, state, context, logp, n_frames, settled, err));
    lin_keywords_push(s->keywords, of_keywords(s, state), logp, n_frames, settled);
    w->frame += n_frames;
    if (settled->n_keywords > before) w->until = settled->keywords[settled->n_keywords - 1].end + s->after;
    return LIN_OK;
}

lin_status lin_search_push(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n_frames,
                           lin_path *settled, lin_error *err)
{
    if (s->keywords) LIN_TRY(lin_keywords_reserve(s->keywords, n_frames, settled, err));
    if (s->after) return push_after(s, state, context, logp, n_frames, settled, err);
    LIN_TRY(push(s, state, context, logp, n_frames, settled, err));
    if (s->keywords) lin_keywords_push(s->keywords, of_keywords(s, state), logp, n_frames, settled);
    return LIN_OK;
}

int lin_search_hypotheses(const lin_search *s, void *state)
{
    if (is_asleep(s, state)) return 1;
    if (s->kind == LIN_SEARCH_BEAM) return lin_beam_hypotheses(s->of, state);
    return s->kind == LIN_SEARCH_WORDS ? lin_words_hypotheses(s->of, state) : 1;
}

lin_status lin_search_nbest(const lin_search *s, void *state, int which, lin_path *tail, lin_error *err)
{
    if (is_asleep(s, state)) {
        lin_path_clear(tail);
        return LIN_OK;
    }
    if (s->kind == LIN_SEARCH_BEAM) return lin_beam_nbest(s->of, state, which, tail, err);
    if (s->kind == LIN_SEARCH_WORDS) return lin_words_nbest(s->of, state, which, tail, err);
    if (which != 0) return lin_fail(err, LIN_INVALID, "greedy decoding has one result, not number %d", which);
    lin_path_clear(tail);
    LIN_TRY(lin_path_reserve(tail, 1, 0, err));
    tail->n_phones = lin_greedy_pending(state, tail->phones);
    return LIN_OK;
}

lin_status lin_search_finish(const lin_search *s, void *state, const lin_search_context *context, lin_path *settled,
                             lin_error *err)
{
    if (is_asleep(s, state)) return LIN_OK;
    if (s->kind == LIN_SEARCH_BEAM) return lin_beam_finish(s->of, state, settled, err);
    if (s->kind == LIN_SEARCH_WORDS) return lin_words_finish(s->of, state, context ? context->words : NULL, settled, err);
    return settled ? lin_greedy_finish(state, settled, err) : LIN_OK; // NULL: the open run is kept for nbest
}

lin_status lin_search_finish_keywords(const lin_search *s, void *state, lin_path *settled, lin_error *err)
{
    if (!s->keywords) return LIN_OK;
    LIN_TRY(lin_keywords_reserve(s->keywords, 0, settled, err));
    const int before = settled->n_keywords;
    lin_keywords_finish(s->keywords, of_keywords(s, state), settled);
    if (s->after && settled->n_keywords > before)
        of_waking(s, state)->until = settled->keywords[settled->n_keywords - 1].end + s->after;
    return LIN_OK;
}

static lin_status check(const lin_search *s, const void *state, size_t n, lin_error *err)
{
    const lin_greedy *g = state;
    if (s->kind == LIN_SEARCH_BEAM) return lin_beam_check(s->of, state, n, err);
    if (s->kind == LIN_SEARCH_WORDS) return lin_words_check(s->of, state, n, err);
    if (n != sizeof *g) {
        return lin_fail(err, LIN_MISMATCH, "a decoder state of %zu bytes, but greedy decoding has %zu", n, sizeof *g);
    }
    if (g->n_outputs != s->V || g->label < -1 || g->label >= s->V || g->emitted < 0 || g->emitted > 1 || g->start < 0 ||
        g->frame < g->start || (g->label > 0 && !g->emitted && g->frame == g->start) || !isfinite(g->sum_logp)) {
        return lin_fail(err, LIN_FORMAT, "the decoder state is damaged");
    }
    return LIN_OK;
}

lin_status lin_search_check(const lin_search *s, const void *state, size_t n, lin_error *err)
{
    if (s->keywords && n == lin_search_bytes(s)) {
        const waking *w = of_waking(s, (void *)(uintptr_t)state);
        LIN_TRY(lin_keywords_check(s->keywords, (const char *)state + keywords_at(s), lin_keywords_bytes(s->keywords), err));
        if (s->after && (w->since < 0 || w->frame < w->since || w->until < 0 || w->until > w->frame + s->after || w->asleep < 0 ||
                         w->asleep > 1))
            return lin_fail(err, LIN_FORMAT, "the state of keywords is damaged");
        n = search_bytes(s);
    }
    return check(s, state, n, err);
}

/* ---- greedy decoding ------------------------------------------------------------------------------------------------------- */

void lin_greedy_reset(lin_greedy *g, int n_outputs, int64_t first_frame, int carry)
{
    int32_t label = carry ? g->label : -1;
    *g = (lin_greedy){.n_outputs = n_outputs, .label = label, .emitted = label > 0, .start = first_frame, .frame = first_frame};
}

// Of a state that lin_greedy_reset began, or that was checked after it was loaded.
static int holds(const lin_greedy *g)
{
    return g->n_outputs >= 1 && g->label >= -1 && g->label < g->n_outputs && g->start <= g->frame;
}

int lin_greedy_pending(const lin_greedy *g, lin_path_phone *phone)
{
    if (g->label <= 0 || g->emitted) return 0;
    assert(g->start < g->frame); // a run has a frame at least
    double mean = g->sum_logp / (double)(g->frame - g->start);
    float confidence = (float)exp(mean < 0 ? mean : 0);
    *phone = (lin_path_phone){.label = g->label, .confidence = confidence, .start = g->start, .end = g->frame};
    return 1;
}

lin_status lin_greedy_push(lin_greedy *greedy, const float *logp, int n_frames, lin_path *settled, lin_error *err)
{
    lin_greedy g = *greedy;
    int n = settled->n_phones;
    if (n_frames < 0 || g.n_outputs < 1) return lin_fail(err, LIN_INVALID, "greedy decoding of %d frames", n_frames);
    LIN_TRY(lin_rows_check_numbers(logp, n_frames, g.n_outputs, g.frame, err));
    LIN_TRY(lin_path_reserve(settled, n_frames, 0, err));
    assert(holds(&g));
    for (int t = 0; t < n_frames; t++) {
        const float *row = logp + (int64_t)t * g.n_outputs;
        const int label = lin_row_best(row, 0, g.n_outputs);
        if (label != g.label) {
            n += lin_greedy_pending(&g, &settled->phones[n]);
            g.label = label;
            g.emitted = 0;
            g.start = g.frame;
            g.sum_logp = 0;
        }
        g.sum_logp += (double)row[label];
        g.frame++;
    }
    *greedy = g;
    settled->n_phones = n;
    return LIN_OK;
}

lin_status lin_greedy_finish(lin_greedy *g, lin_path *settled, lin_error *err)
{
    LIN_TRY(lin_path_reserve(settled, 1, 0, err));
    if (!lin_greedy_pending(g, &settled->phones[settled->n_phones])) return LIN_OK;
    settled->n_phones++;
    g->emitted = 1;
    return LIN_OK;
}
