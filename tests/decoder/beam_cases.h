/*
 * beam_cases.h - helpers for the tests of decoder/beam: rows of several kinds, a small language model, a search with its state.
 */
#ifndef LIN_TESTS_DECODER_BEAM_CASES_H
#define LIN_TESTS_DECODER_BEAM_CASES_H

#include "decoder/beam.h"
#include "tests/decoder/peaky_rows.h"

enum { MAX_T = 400, MAX_LENGTH = 64 };

SUPPORT const char arpa[] =
    "\\data\\\nngram 1=6\nngram 2=7\nngram 3=3\n\n\\1-grams:\n-0.7 </s>\n-99 <s> -0.3\n-0.5 A -0.2\n-0.6 B "
    "-0.4\n-0.9 C -0.1\n-1.5 <unk> -0.3\n\n\\2-grams:\n-0.3 <s> A -0.1\n-0.4 A B -0.2\n-1.1 A A\n-0.9 B A "
    "-0.3\n-0.2 C </s>\n-0.8 B </s>\n-0.5 A C -0.1\n\n\\3-grams:\n-0.1 <s> A B\n-0.6 A B A\n-0.2 B A "
    "C\n\n\\end\\\n";

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

SUPPORT void break_ties(float *logp, int n, uint64_t key)
{
    for (int i = 0; i < n; i++) logp[i] -= 1e-4f * (float)lin_random_uniform(~key, (uint64_t)i);
}

/* ---- a search -------------------------------------------------------------------------------------------------------------- */

typedef struct search {
    lin_beam *beam;
    void *state;
    lin_path settled, tail;
} search;

SUPPORT lin_beam_options wide(int width)
{
    return (lin_beam_options){.width = width, .longest = MAX_LENGTH};
}

SUPPORT search begin(int V, const lin_ngram *lm, const int *labels, lin_beam_options options, int64_t first)
{
    search s = {0};
    OK(lin_beam_create(V, lm, labels, &options, &s.beam, &err));
    s.state = lin_alloc(lin_beam_bytes(s.beam), 1);
    ck_assert(s.state != NULL);
    lin_beam_reset(s.beam, s.state, first);
    return s;
}

SUPPORT void end(search *s)
{
    lin_beam_destroy(s->beam);
    lin_free(s->state);
    lin_path_free(&s->settled);
    lin_path_free(&s->tail);
}

SUPPORT void push(search *s, const lin_context *context, const float *logp, int n)
{
    OK(lin_beam_push(s->beam, s->state, context, logp, n, &s->settled, &err));
}

SUPPORT void check_state(const search *s) { OK(lin_beam_check(s->beam, s->state, lin_beam_bytes(s->beam), &err)); }

SUPPORT void same_path(const lin_path *got, const lin_path *want)
{
    ck_assert_int_eq(got->n_phones, want->n_phones);
    for (int i = 0; i < want->n_phones; i++) {
        const lin_path_phone *g = &got->phones[i], *w = &want->phones[i];
        ck_assert(g->label == w->label && g->start == w->start && g->end == w->end);
        ck_assert(memcmp(&g->confidence, &w->confidence, sizeof g->confidence) == 0);
    }
    ck_assert(got->score == want->score && got->acoustic == want->acoustic && got->language == want->language);
}

// Graves 2006, eq. 5 to 8: the forward variables of a sequence of labels with blanks around each.
SUPPORT double acoustic_of(const float *logp, int T, int V, const int *labels, int n)
{
    double alpha[33] = {1}, next[33];
    for (int t = 0; t < T; t++) {
        for (int s = 0; s <= 2 * n; s++) {
            const int label = s % 2 ? labels[s / 2] : 0;
            next[s] = alpha[s] + (s && t ? alpha[s - 1] : 0) + (s == 1 && !t ? 1 : 0);
            if (t && s % 2 && s > 1 && label != labels[s / 2 - 1]) next[s] += alpha[s - 2];
            if (!t && s > 1) next[s] = 0;
            next[s] *= exp((double)logp[t * V + label]);
        }
        memcpy(alpha, next, sizeof next);
    }
    return log(alpha[2 * n] + (n ? alpha[2 * n - 1] : 0));
}

#endif
