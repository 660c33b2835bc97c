// search.c - one interface for all searches; see search.h. A table of functions for each kind.

#include "decoder/search.h"

#include <math.h>

#include "decoder/greedy.h"

typedef struct search_class {
    const char *name;
    size_t (*bytes)(const lin_search *s);
    void (*reset)(const lin_search *s, void *state, int64_t first_frame, int carry);
    lin_status (*push)(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n,
                       lin_path *settled, lin_error *err);
    int (*hypotheses)(const lin_search *s, void *state);
    lin_status (*nbest)(const lin_search *s, void *state, int which, lin_path *tail, lin_error *err);
    lin_status (*finish)(const lin_search *s, void *state, const lin_search_context *context, lin_path *settled, lin_error *err);
    lin_status (*check)(const lin_search *s, const void *state, size_t n, lin_error *err);
} search_class;

/* ---- greedy ---------------------------------------------------------------------------------------------------------------- */

static size_t greedy_bytes(const lin_search *s)
{
    (void)s;
    return sizeof(lin_greedy);
}

static void greedy_reset(const lin_search *s, void *state, int64_t first_frame, int carry)
{
    lin_greedy_reset(state, s->V, first_frame, carry);
}

static lin_status greedy_push(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n,
                              lin_path *settled, lin_error *err)
{
    (void)s, (void)context;
    int got;
    lin_status status = lin_path_reserve(settled, n, 0, err);
    if (status == LIN_OK) status = lin_greedy_push(state, logp, n, settled->phones + settled->n_phones, n, &got, err);
    if (status == LIN_OK) settled->n_phones += got;
    return status;
}

static int greedy_hypotheses(const lin_search *s, void *state)
{
    (void)s, (void)state;
    return 1;
}

static lin_status greedy_nbest(const lin_search *s, void *state, int which, lin_path *tail, lin_error *err)
{
    (void)s;
    if (which != 0) return lin_fail(err, LIN_INVALID, "greedy decoding has one result, not number %d", which);
    lin_path_clear(tail);
    lin_status status = lin_path_reserve(tail, 1, 0, err);
    if (status == LIN_OK) tail->n_phones = lin_greedy_pending(state, tail->phones);
    return status;
}

static lin_status greedy_finish(const lin_search *s, void *state, const lin_search_context *context, lin_path *settled,
                                lin_error *err)
{
    (void)s, (void)context;
    int got;
    if (!settled) return LIN_OK; // the open run is kept for nbest
    lin_status status = lin_path_reserve(settled, 1, 0, err);
    if (status != LIN_OK) return status;
    lin_greedy_finish(state, settled->phones + settled->n_phones, &got);
    settled->n_phones += got;
    return LIN_OK;
}

static lin_status greedy_check(const lin_search *s, const void *state, size_t n, lin_error *err)
{
    const lin_greedy *g = state;
    if (n != sizeof *g) {
        return lin_fail(err, LIN_MISMATCH, "a decoder state of %zu bytes, but greedy decoding has %zu", n, sizeof *g);
    }
    if (g->n_outputs != s->V || g->label < -1 || g->label >= s->V || g->emitted < 0 || g->emitted > 1 || g->start < 0 ||
        g->frame < g->start || (g->label > 0 && !g->emitted && g->frame == g->start) || !isfinite(g->sum_logp)) {
        return lin_fail(err, LIN_FORMAT, "the decoder state is damaged");
    }
    return LIN_OK;
}

/* ---- beams over phones, and words ------------------------------------------------------------------------------------------ */

// From lin_beam_* and lin_words_*, over their object; part: theirs of the context.
#define FUNCTIONS(name, part)                                                                                                    \
    static size_t name##_bytes(const lin_search *s) { return lin_##name##_bytes(s->of); }                                        \
    static void name##_reset(const lin_search *s, void *state, int64_t first_frame, int carry)                                   \
    {                                                                                                                            \
        (void)carry;                                                                                                             \
        lin_##name##_reset(s->of, state, first_frame);                                                                           \
    }                                                                                                                            \
    static lin_status name##_push(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n, \
                                  lin_path *settled, lin_error *err)                                                             \
    {                                                                                                                            \
        return lin_##name##_push(s->of, state, context ? context->part : NULL, logp, n, settled, err);                           \
    }                                                                                                                            \
    static int name##_hypotheses(const lin_search *s, void *state) { return lin_##name##_hypotheses(s->of, state); }             \
    static lin_status name##_nbest(const lin_search *s, void *state, int which, lin_path *tail, lin_error *err)                  \
    {                                                                                                                            \
        return lin_##name##_nbest(s->of, state, which, tail, err);                                                               \
    }                                                                                                                            \
    static lin_status name##_finish(const lin_search *s, void *state, const lin_search_context *context, lin_path *settled,      \
                                    lin_error *err)                                                                              \
    {                                                                                                                            \
        return lin_##name##_finish(s->of, state, context ? context->part : NULL, settled, err);                                  \
    }                                                                                                                            \
    static lin_status name##_check(const lin_search *s, const void *state, size_t n, lin_error *err)                             \
    {                                                                                                                            \
        return lin_##name##_check(s->of, state, n, err);                                                                         \
    }

FUNCTIONS(beam, phones)
FUNCTIONS(words, words)

/* ---- all of them ----------------------------------------------------------------------------------------------------------- */

static const search_class classes[LIN_SEARCH_KINDS] = {
    [LIN_SEARCH_GREEDY] = {"greedy", greedy_bytes, greedy_reset, greedy_push, greedy_hypotheses, greedy_nbest, greedy_finish,
                           greedy_check},
    [LIN_SEARCH_BEAM] = {"beam", beam_bytes, beam_reset, beam_push, beam_hypotheses, beam_nbest, beam_finish, beam_check},
    [LIN_SEARCH_WORDS] = {"words", words_bytes, words_reset, words_push, words_hypotheses, words_nbest, words_finish,
                          words_check},
};

lin_search lin_search_greedy(int V) { return (lin_search){.kind = LIN_SEARCH_GREEDY, .V = V}; }

lin_search lin_search_beam(const lin_beam *beam, int V, uint64_t id)
{
    return (lin_search){LIN_SEARCH_BEAM, V, beam, id};
}

lin_search lin_search_words(const lin_words *words, int V, uint64_t id)
{
    return (lin_search){LIN_SEARCH_WORDS, V, words, id};
}

const char *lin_search_name(lin_search_kind kind) { return classes[kind].name; }

size_t lin_search_bytes(const lin_search *s) { return classes[s->kind].bytes(s); }

void lin_search_reset(const lin_search *s, void *state, int64_t first_frame, int carry)
{
    classes[s->kind].reset(s, state, first_frame, carry);
}

lin_status lin_search_push(const lin_search *s, void *state, const lin_search_context *context, const float *logp, int n_frames,
                           lin_path *settled, lin_error *err)
{
    return classes[s->kind].push(s, state, context, logp, n_frames, settled, err);
}

int lin_search_hypotheses(const lin_search *s, void *state) { return classes[s->kind].hypotheses(s, state); }

lin_status lin_search_nbest(const lin_search *s, void *state, int which, lin_path *tail, lin_error *err)
{
    return classes[s->kind].nbest(s, state, which, tail, err);
}

lin_status lin_search_finish(const lin_search *s, void *state, const lin_search_context *context, lin_path *settled,
                             lin_error *err)
{
    return classes[s->kind].finish(s, state, context, settled, err);
}

lin_status lin_search_check(const lin_search *s, const void *state, size_t n, lin_error *err)
{
    return classes[s->kind].check(s, state, n, err);
}
