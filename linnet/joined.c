// joined.c - one result from a decoder that begins anew at endpoints; see joined.h.

#include "linnet/joined.h"

#include <string.h>

#include "base/memory.h"

void lin_joined_begin(lin_joined *j)
{
    j->score = j->acoustic = j->language = 0;
    j->n = 0;
}

void lin_joined_free(lin_joined *j)
{
    for (int i = 0; i < j->capacity; i++) lin_result_free(&j->segments[i]);
    lin_free(j->segments);
    lin_free(j->choices);
    lin_free(j->n_choices);
    *j = (lin_joined){0};
}

/* ---- alternatives ---------------------------------------------------------------------------------------------------------- */

// Room for one more segment, emptied.
static lin_status add_segment(lin_joined *j, int n_best, lin_result **segment, lin_error *err)
{
    const int before = j->capacity;
    const int64_t n = (int64_t)j->n + 1;
    lin_status status = lin_grow_int(&j->segments, &j->capacity, n, sizeof *j->segments, "alternatives", err);
    if (j->capacity > before)
        memset(j->segments + before, 0, (size_t)(j->capacity - before) * sizeof *j->segments);
    if (status == LIN_OK)
        status = lin_grow_int(&j->choices, &j->choices_capacity, n * n_best, sizeof *j->choices, "alternatives", err);
    if (status == LIN_OK)
        status = lin_grow_int(&j->n_choices, &j->n_choices_capacity, n, sizeof *j->n_choices, "alternatives", err);
    if (status != LIN_OK) return status;
    *segment = &j->segments[j->n++];
    lin_result_clear(*segment);
    return LIN_OK;
}

// Alternative number `which` of a segment; one without any has itself.
static const lin_result *alternative(const lin_result *segment, int which)
{
    return segment->n_alternatives ? &segment->alternatives[which] : segment;
}

// The best n_best pairs of a choice so far and an alternative of the newest segment. Both lists fall in score, so pair (a, b) has
// at least (a+1)(b+1)-1 before it.
static void choose(lin_joined *j, int n_best)
{
    const lin_result *segment = &j->segments[j->n - 1];
    const lin_joined_choice none = {.score = 0}, *old = j->n > 1 ? j->choices + (size_t)(j->n - 2) * (size_t)n_best : &none;
    lin_joined_choice *new = j->choices + (size_t)(j->n - 1) * (size_t)n_best;
    const int n_old = j->n > 1 ? j->n_choices[j->n - 2] : 1, n_more = segment->n_alternatives ? segment->n_alternatives : 1;
    int n = 0;
    for (int a = 0; a < n_old; a++) {
        for (int b = 0; b < n_more && (a + 1) * (b + 1) <= n_best; b++) {
            const double score = old[a].score + alternative(segment, b)->score;
            int at = n;
            while (at > 0 && new[at - 1].score < score) at--;
            if (at == n_best) continue;
            if (n < n_best) n++;
            memmove(new + at + 1, new + at, (size_t)(n - 1 - at) * sizeof *new);
            new[at] = (lin_joined_choice){.score = score, .before = a, .alternative = b};
        }
    }
    j->n_choices[j->n - 1] = n;
}

// The whole by choice number `which`. chosen: room for a number for each segment.
static lin_status append_choice(const lin_joined *j, int n_best, int which, int *chosen, lin_result *result, lin_error *err)
{
    for (int i = j->n - 1; i >= 0; i--) {
        const lin_joined_choice *c = &j->choices[(size_t)i * (size_t)n_best + (size_t)which];
        chosen[i] = c->alternative;
        which = c->before;
    }
    lin_status status = LIN_OK;
    for (int i = 0; i < j->n && status == LIN_OK; i++)
        status = lin_result_append(result, alternative(&j->segments[i], chosen[i]), err);
    return status;
}

static lin_status append_all(lin_joined *j, int n_best, lin_result *result, lin_error *err)
{
    int *chosen = lin_calloc((size_t)j->n, sizeof *chosen);
    if (!chosen) return lin_no_memory(err, "alternatives", (size_t)j->n * sizeof *chosen);
    lin_status status = append_choice(j, n_best, 0, chosen, result, err);
    for (int i = 0; i < j->n_choices[j->n - 1] && status == LIN_OK; i++) {
        lin_result *whole = lin_result_add_alternative(result);
        status = whole ? append_choice(j, n_best, i, chosen, whole, err) : lin_no_memory(err, "alternatives", sizeof *whole);
    }
    lin_free(chosen);
    return status;
}

/* ---- segments -------------------------------------------------------------------------------------------------------------- */

static lin_status end_segment(lin_joined *j, lin_decoder *d, lin_result *result, lin_error *err)
{
    const int n_best = d->decoding->n_best;
    lin_status status;
    if (n_best > 1) {
        status = add_segment(j, n_best, &result, err);
        if (status == LIN_OK) status = lin_decoder_finish(d, result, err);
        if (status == LIN_OK) choose(j, n_best);
        return status;
    }
    // The decoder leaves the scores of this segment.
    status = lin_decoder_finish(d, result, err);
    j->score += result->score;
    j->acoustic += result->acoustic;
    j->language += result->language;
    return status;
}

lin_status lin_joined_endpoint(lin_joined *j, lin_decoder *d, int64_t row, int carry, lin_result *result, lin_error *err)
{
    lin_status status = end_segment(j, d, result, err);
    if (status == LIN_OK) lin_search_reset(&d->decoding->search, d->state, row, carry);
    return status;
}

lin_status lin_joined_finish(lin_joined *j, lin_decoder *d, lin_result *result, lin_error *err)
{
    lin_status status = end_segment(j, d, result, err);
    if (status == LIN_OK && d->decoding->n_best > 1) return append_all(j, d->decoding->n_best, result, err);
    result->score = j->score;
    result->acoustic = j->acoustic;
    result->language = j->language;
    return status;
}
