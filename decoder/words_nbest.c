// The n best sequences of words.

#include <string.h>

#include "decoder/words_internal.h"

void words_remember(const lin_words *w, space *s, const candidate *winner, const candidate *loser)
{
    (void)w, (void)s, (void)winner, (void)loser;
}

static lin_status token_path(const space *s, const token *t, lin_path *path, lin_error *err)
{
    const arm *a = better_arm(t);
    lin_status status = words_trace(s, a->record, a->frames, a->logp, path, err);
    if (status) return status;
    path->score = t->total;
    path->acoustic = t->mass;
    path->language = t->language;
    return LIN_OK;
}

lin_status words_append_best(const lin_words *w, const space *s, lin_path *path, lin_error *err)
{
    (void)w;
    return token_path(s, &s->tokens[words_best(s)], path, err);
}

int lin_words_hypotheses(const lin_words *w, const void *state)
{
    (void)w, (void)state;
    return 1;
}

lin_status lin_words_nbest(const lin_words *w, const void *state, int which, lin_path *tail, lin_error *err)
{
    if (which) return lin_fail(err, LIN_INVALID, "no hypothesis %d", which);
    const space s = words_space(w, (void *)state);
    lin_path_clear(tail);
    return words_append_best(w, &s, tail, err);
}
