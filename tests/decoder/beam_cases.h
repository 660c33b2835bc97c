/*
 * beam_cases.h - helpers for the tests of decoder/beam: rows of several kinds, a small language model, a search with its state.
 */
#ifndef LIN_TESTS_DECODER_BEAM_CASES_H
#define LIN_TESTS_DECODER_BEAM_CASES_H

#include "decoder/beam.h"
#include "tests/decoder/paths.h"
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

#endif
