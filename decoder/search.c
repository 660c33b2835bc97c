// search.c - one interface for all searches; see search.h.

#include "decoder/search.h"

#include <math.h>

#include "decoder/greedy.h"

lin_search lin_search_greedy(int V) { return (lin_search){.kind = LIN_SEARCH_GREEDY, .V = V}; }

lin_search lin_search_beam(const lin_beam *beam, int V, uint64_t id)
{
    return (lin_search){LIN_SEARCH_BEAM, V, beam, id};
}

lin_search lin_search_words(const lin_words *words, int V, uint64_t id)
{
    return (lin_search){LIN_SEARCH_WORDS, V, words, id};
}

const char *lin_search_name(lin_search_kind kind)
{
    static const char *const names[] = {"greedy", "beam", "words"};
    return names[kind];
}

size_t lin_search_bytes(const lin_search *s)
{
    return s->kind == LIN_SEARCH_BEAM    ? lin_beam_bytes(s->of)
           : s->kind == LIN_SEARCH_WORDS ? lin_words_bytes(s->of)
                                         : sizeof(lin_greedy);
}

void lin_search_reset(const lin_search *s, void *state, int64_t first_frame, int carry)
{
    if (s->kind == LIN_SEARCH_BEAM) lin_beam_reset(s->of, state, first_frame);
    else if (s->kind == LIN_SEARCH_WORDS) lin_words_reset(s->of, state, first_frame);
    else lin_greedy_reset(state, s->V, first_frame, carry);
}

lin_status lin_search_push(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n_frames,
                           lin_path *settled, lin_error *err)
{
    int got;
    if (s->kind == LIN_SEARCH_BEAM)
        return lin_beam_push(s->of, state, context ? context->phones : NULL, logp, n_frames, settled, err);
    if (s->kind == LIN_SEARCH_WORDS)
        return lin_words_push(s->of, state, context ? context->words : NULL, logp, n_frames, settled, err);
    LIN_TRY(lin_path_reserve(settled, n_frames, 0, err));
    LIN_TRY(lin_greedy_push(state, logp, n_frames, settled->phones + settled->n_phones, n_frames, &got, err));
    settled->n_phones += got;
    return LIN_OK;
}

int lin_search_hypotheses(const lin_search *s, void *state)
{
    if (s->kind == LIN_SEARCH_BEAM) return lin_beam_hypotheses(s->of, state);
    return s->kind == LIN_SEARCH_WORDS ? lin_words_hypotheses(s->of, state) : 1;
}

lin_status lin_search_nbest(const lin_search *s, void *state, int which, lin_path *tail, lin_error *err)
{
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
    int got;
    if (s->kind == LIN_SEARCH_BEAM) return lin_beam_finish(s->of, state, settled, err);
    if (s->kind == LIN_SEARCH_WORDS) return lin_words_finish(s->of, state, context ? context->words : NULL, settled, err);
    if (!settled) return LIN_OK; // the open run is kept for nbest
    LIN_TRY(lin_path_reserve(settled, 1, 0, err));
    lin_greedy_finish(state, settled->phones + settled->n_phones, &got);
    settled->n_phones += got;
    return LIN_OK;
}

lin_status lin_search_check(const lin_search *s, const void *state, size_t n, lin_error *err)
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
