// api_session.c - linnet.h: sessions, whose views wait until the caller asks for them.

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "linnet/api.h"
#include "linnet/session.h"

// Phrases of a session, which its forks share.
typedef struct own_phrases {
    atomic_int owners;
    lin_phrases made;
} own_phrases;

struct linnet_session {
    linnet_model *model, *second; // second: of a second pass; NULL: none
    linnet_decoder *decoder; // NULL: greedy
    linnet_session_options options;
    lin_decoding decoding;
    own_phrases *phrases; // NULL: the decoder's
    lin_session *session;
    linnet_utterance *seen; // [n]: n_ended that wait, the first `next` of them seen; one that grows; then those for later use
    int n_ended, next, changed, n, capacity; // changed: the one that grows, since it was asked for
    float *block; // [BLOCK, channels], of 16-bit samples
};

enum { BLOCK = 1024 };

/* ---- views that wait ------------------------------------------------------------------------------------------------------- */

lin_status lin_api_utterance_create(linnet_model *model, linnet_utterance *seen, lin_error *err)
{
    *seen = (linnet_utterance){0};
    lin_status status = lin_api_result_create(model, &seen->settled, err);
    if (status == LIN_OK) status = lin_api_result_create(model, &seen->provisional, err);
    if (status != LIN_OK) lin_api_utterance_release(seen);
    return status;
}

void lin_api_utterance_clear(linnet_utterance *seen)
{
    lin_api_result_clear(seen->settled);
    lin_api_result_clear(seen->provisional);
    seen->number = 0;
    seen->end = LINNET_GROWS;
}

void lin_api_utterance_release(linnet_utterance *seen)
{
    linnet_result_destroy(seen->settled);
    linnet_result_destroy(seen->provisional);
    *seen = (linnet_utterance){0};
}

lin_status lin_api_utterance_show(linnet_utterance *seen, const lin_session_view *view, lin_error *err)
{
    const int ended = view->end != LINNET_GROWS;
    // The same utterance only grows; with alternatives, and by a second pass, its final form is decoded anew.
    const int anew = view->replaced || (ended && view->settled->n_alternatives);
    if (seen->number != view->utterance || anew) lin_api_result_clear(seen->settled);
    lin_api_result_clear(seen->provisional);
    lin_status status = lin_api_result_follow(seen->settled, view->settled, ended, err);
    if (status == LIN_OK) status = lin_api_result_follow(seen->provisional, view->provisional, 0, err);
    if (status != LIN_OK) {
        lin_api_utterance_clear(seen);
        return status;
    }
    seen->number = view->utterance;
    seen->end = view->end;
    seen->incomplete = view->incomplete;
    seen->start_s = view->start_s;
    seen->end_s = view->end_s;
    seen->processed_s = view->processed_s;
    return LIN_OK;
}

static void free_views(linnet_session *s)
{
    for (int i = 0; i < s->n; i++) lin_api_utterance_release(&s->seen[i]);
    lin_free(s->seen);
}

static void drop_views(linnet_session *s)
{
    s->n_ended = s->next = s->changed = 0;
    if (s->n) lin_api_utterance_clear(&s->seen[0]);
}

// seen[n_ended] is there.
static lin_status make_view(linnet_session *s, lin_error *err)
{
    if (s->n_ended < s->n) return LIN_OK;
    lin_status status = lin_grow_int(&s->seen, &s->capacity, (int64_t)s->n + 1, sizeof *s->seen, "utterances", err);
    if (status == LIN_OK) status = lin_api_utterance_create(s->model, &s->seen[s->n], err);
    if (status == LIN_OK) s->n++;
    return status;
}

static lin_status show(void *context, const lin_session_view *view, lin_error *err)
{
    linnet_session *s = context;
    lin_status status = make_view(s, err);
    if (status == LIN_OK) status = lin_api_utterance_show(&s->seen[s->n_ended], view, err);
    if (status != LIN_OK) return status;
    s->changed = view->end == LINNET_GROWS;
    if (s->changed) return LIN_OK;
    s->n_ended++;
    if (s->n_ended < s->n) lin_api_utterance_clear(&s->seen[s->n_ended]);
    return LIN_OK;
}

// Those that the caller has seen go behind the others.
static void recycle(linnet_session *s)
{
    for (int i = 0; s->next && i + s->next < s->n; i++) {
        const linnet_utterance old = s->seen[i];
        s->seen[i] = s->seen[i + s->next];
        s->seen[i + s->next] = old;
    }
    s->n_ended -= s->next;
    s->next = 0;
}

const linnet_utterance *linnet_session_next(linnet_session *s)
{
    if (s && s->next < s->n_ended) return &s->seen[s->next++];
    if (!s || !s->changed) return NULL;
    s->changed = 0;
    return &s->seen[s->n_ended];
}

/* ---- sessions -------------------------------------------------------------------------------------------------------------- */

static const linnet_session_options defaults = {.channels = 1, .channel = LINNET_MIX, .endpoints = 1, .silence_before_s = 5,
                                                .silence_after_s = 0.8, .longest_s = 30, .reset_at_endpoints = -1};

void linnet_session_options_init(linnet_session_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

static void drop_phrases(own_phrases *p)
{
    if (!p || atomic_fetch_sub(&p->owners, 1) > 1) return;
    lin_phrases_free(&p->made);
    lin_free(p);
}

// A session without the one inside.
static lin_status create_shell(linnet_model *model, const linnet_session_options *o, linnet_session **session, lin_error *err)
{
    linnet_session *s = lin_calloc(1, sizeof *s);
    *session = NULL;
    if (!s) return lin_no_memory(err, "a session", sizeof *s);
    s->model = lin_api_keep_model(model);
    s->decoder = lin_api_keep_decoder(o->decoder);
    if (o->second_pass) s->second = lin_api_keep_model(o->second_pass);
    s->options = *o;
    if (!s->options.rate_hz) s->options.rate_hz = model->info.sample_hz;
    lin_status status = lin_api_decoding(model, o->decoder, &s->decoding, err);
    if (status == LIN_OK) *session = s;
    else linnet_session_destroy(s);
    return status;
}

static lin_status create(linnet_model *model, const linnet_session_options *given, linnet_session **session, lin_error *err)
{
    linnet_session_options o = defaults;
    linnet_session *s;
    *session = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    lin_status status = lin_api_take(&o, sizeof o, given, "session_options", err);
    if (status == LIN_OK && o.channel < LINNET_MIX)
        status = lin_fail(err, LIN_INVALID, "channel is %d: LINNET_MIX, or 0 and more", o.channel);
    if (status == LIN_OK) status = create_shell(model, &o, &s, err);
    if (status != LIN_OK) return status;
    lin_session_options how = lin_session_options_default();
    how.rate_hz = s->options.rate_hz;
    how.channels = o.channels;
    how.channel = o.channel == LINNET_MIX ? LIN_CHANNEL_MIX : o.channel;
    how.resets = o.reset_at_endpoints < 0 ? !model->r.forgets : o.reset_at_endpoints;
    how.rules.before_s = o.endpoints ? o.silence_before_s : 0;
    how.rules.after_s = o.endpoints ? o.silence_after_s : 0;
    how.rules.longest_s = o.endpoints ? o.longest_s : 0;
    how.decoding = &s->decoding;
    how.saves = o.can_save != 0;
    how.second = s->second ? &s->second->r : NULL;
    status = lin_session_create(&model->r, &how, &(lin_utterances_sink){.context = s, .show = show}, &s->session, err);
    if (status == LIN_OK) *session = s;
    else linnet_session_destroy(s);
    return status;
}

linnet_status linnet_session_create(linnet_model *model, const linnet_session_options *options, linnet_session **session,
                                    linnet_error *err)
{
    return create(model, options, session, err);
}

void linnet_session_destroy(linnet_session *s)
{
    if (!s) return;
    lin_session_destroy(s->session);
    free_views(s);
    drop_phrases(s->phrases);
    lin_free(s->block);
    linnet_decoder_destroy(s->decoder);
    linnet_model_destroy(s->model);
    linnet_model_destroy(s->second);
    lin_free(s);
}

static lin_status push(linnet_session *s, const float *samples, size_t n, lin_error *err)
{
    if (n && !samples) return lin_fail(err, LIN_INVALID, "there are no samples");
    if (n > INT_MAX) return lin_fail(err, LIN_INVALID, "%zu samples are too many for one call; the limit is %d", n, INT_MAX);
    recycle(s);
    return lin_session_push(s->session, samples, (int)n, err);
}

linnet_status linnet_session_push(linnet_session *s, const float *samples, size_t n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    return push(s, samples, n, err);
}

static lin_status push_int16(linnet_session *s, const int16_t *samples, size_t n, lin_error *err)
{
    const size_t channels = (size_t)s->options.channels;
    if (n && !samples) return lin_fail(err, LIN_INVALID, "there are no samples");
    if (!s->block) s->block = lin_alloc(BLOCK * channels, sizeof *s->block);
    if (!s->block) return lin_no_memory(err, "samples", BLOCK * channels * sizeof *s->block);
    lin_status status = n ? LIN_OK : push(s, s->block, 0, err);
    recycle(s);
    for (size_t done = 0; done < n && status == LIN_OK;) {
        const size_t piece = n - done < BLOCK ? n - done : BLOCK;
        for (size_t i = 0; i < piece * channels; i++) s->block[i] = (float)samples[done * channels + i] / 32768;
        status = lin_session_push(s->session, s->block, (int)piece, err);
        done += piece;
    }
    return status;
}

linnet_status linnet_session_push_int16(linnet_session *s, const int16_t *samples, size_t n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    return push_int16(s, samples, n, err);
}

linnet_status linnet_session_end_utterance(linnet_session *s, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    recycle(s);
    return lin_session_end_utterance(s->session, err);
}

linnet_status linnet_session_finish(linnet_session *s, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    recycle(s);
    return lin_session_finish(s->session, err);
}

linnet_status linnet_session_reset(linnet_session *s, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    drop_views(s);
    return lin_session_reset(s->session, err);
}

static lin_status set_phrases(linnet_session *s, const linnet_phrase *phrases, int n, lin_error *err)
{
    if (s->decoding.n_best > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "phrases of a session with alternatives (n_best over 1) cannot be changed");
    own_phrases *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "phrases", sizeof *p);
    atomic_init(&p->owners, 1);
    lin_status status = lin_decoding_make_phrases(&s->decoding, phrases, n, &p->made, err);
    if (status != LIN_OK) {
        drop_phrases(p);
        return status;
    }
    s->decoding.context = (lin_search_context){.phones = p->made.phones, .words = p->made.words};
    drop_phrases(s->phrases);
    s->phrases = p;
    return LIN_OK;
}

linnet_status linnet_session_set_phrases(linnet_session *s, const linnet_phrase *phrases, int n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    return set_phrases(s, phrases, n, err);
}

static lin_status save(linnet_session *s, void **bytes, size_t *n, lin_error *err)
{
    lin_state state = {0};
    lin_status status = lin_session_save(s->session, &state, err);
    if (status != LIN_OK) {
        lin_state_free(&state);
        return status;
    }
    lin_state_seal(&state);
    *bytes = state.bytes; // the caller's from now on
    *n = state.n;
    return LIN_OK;
}

linnet_status linnet_session_save(linnet_session *s, void **bytes, size_t *n, linnet_error *err)
{
    *bytes = NULL;
    *n = 0;
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    return save(s, bytes, n, err);
}

linnet_status linnet_session_load(linnet_session *s, const void *bytes, size_t n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    lin_state state = {0};
    drop_views(s);
    lin_status status = bytes ? lin_state_parse(bytes, n, "the saved session", &state, err)
                              : lin_fail(err, LIN_INVALID, "there is no saved session");
    if (status == LIN_OK) status = lin_session_load(s->session, &state, err);
    else lin_session_reset(s->session, NULL);
    lin_state_free(&state);
    return status;
}

static lin_status fork_session(linnet_session *s, linnet_session **copy, lin_error *err)
{
    linnet_session *c;
    lin_status status = create_shell(s->model, &s->options, &c, err);
    if (status != LIN_OK) return status;
    status = lin_session_fork(s->session, &(lin_utterances_sink){.context = c, .show = show}, &c->session, err);
    if (status != LIN_OK) {
        linnet_session_destroy(c);
        return status;
    }
    c->phrases = s->phrases;
    if (c->phrases) atomic_fetch_add(&c->phrases->owners, 1);
    c->decoding.context = s->decoding.context;
    lin_session_decode_by(c->session, &c->decoding);
    *copy = c;
    return LIN_OK;
}

linnet_status linnet_session_fork(linnet_session *s, linnet_session **copy, linnet_error *err)
{
    *copy = NULL;
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    return fork_session(s, copy, err);
}
