// Checks that bytes from a file are a state of a word search: every number that is used as an index, a count or a loop bound, and
// the relations between hypotheses and traces that the search relies on.

#include <string.h>

#include "decoder/words_internal.h"

enum { FRAMES_MAX = 1 << 30 }; // of one run: as many more fit before an int32_t overflows

static int in(int64_t value, int64_t from, int64_t to) { return value >= from && value <= to; }

// No sum of logarithms is near this limit; larger ones could overflow.
static int logarithm(double value) { return fabs(value) < 1e15; }

// A trace refers to an older one and counts its words.
static int good_trace(const lin_words *w, const lin_words_view *s, int i)
{
    const lin_words_trace *r = &s->traces[i];
    if (!in(r->before, -1, i - 1) || !in(r->label, 1, w->V - 1) || !in(r->word, LIN_WORD_INSIDE, INT32_MAX)) return 0;
    if (!in(r->before_frames, r->before < 0 ? 0 : 1, FRAMES_MAX) || !logarithm(r->before_logp)) return 0;
    if (!in(r->start, r->before < 0 ? s->h->first_frame : s->traces[r->before].start + 1, s->h->frame - 1)) return 0;
    const uint32_t words = r->n_words - (r->word != LIN_WORD_INSIDE);
    return r->before < 0 ? (int32_t)(words - s->h->settled) <= 0 : words == s->traces[r->before].n_words;
}

// Both endings have the words and phones of the hypothesis, in alignments of their own.
static int good_ending(const lin_words_view *s, const lin_words_hyp *t, const lin_words_ending *a)
{
    if (!in(a->trace, -1, s->h->n_traces - 1) || !logarithm(a->logp)) return 0;
    const int64_t rows = s->h->frame - s->h->first_frame;
    if (!in(a->frames, a->trace < 0 ? 0 : 1, rows < FRAMES_MAX ? rows : FRAMES_MAX)) return 0;
    if (a->best == -INFINITY && a->sum == -INFINITY) return 1;
    if (!logarithm(a->sum) || !logarithm(a->best)) return 0;
    int n_words = 0, n_phones = 0;
    for (int at = a->trace; at >= 0 && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before) {
        n_words += s->traces[at].word != LIN_WORD_INSIDE;
        n_phones++;
    }
    return lin_words_first_of(s, a->trace, NULL) == t->first && n_words == t->n_words && n_phones == t->n_phones;
}

static int good_hyp(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t)
{
    if (!in(t->node, LIN_PLACE_UNKNOWN, s->h->context_id ? INT32_MAX : w->n_nodes - 1) || !in(t->last, 0, w->V - 1)) return 0;
    if (w->lm ? t->lm_state >= lin_ngram_states(w->lm) : t->lm_state != 0) return 0;
    if (!in(t->n_words, 0, w->o.longest) || !in(t->n_inside, 0, LIN_PRONUNCIATION_MAX)) return 0;
    if (!logarithm(t->language) || !logarithm(t->weight) || !logarithm(t->ahead) || !logarithm(t->pending)) return 0;
    if (!logarithm(t->acoustic) || !logarithm(t->score)) return 0;
    if (lin_words_better_ending(t)->best == -INFINITY) return 0;
    return good_ending(s, t, &t->endings[LIN_BLANK_ENDING]) && good_ending(s, t, &t->endings[LIN_LABEL_ENDING]);
}

static int good_alternative(const lin_words_view *s, const lin_words_alternative *a)
{
    if (a->used != 1 || !in(a->end.trace, -1, s->h->n_traces - 1) || !(a->lost >= 0) || !logarithm(a->lost)) return 0;
    if (!logarithm(a->winner_level) || !logarithm(a->loser_level) || !logarithm(a->loser_best)) return 0;
    return in(a->end.frames, a->end.trace < 0 ? 0 : 1, FRAMES_MAX) && logarithm(a->end.logp) && logarithm(a->lost_weight) &&
           logarithm(a->lost_language);
}

static int good_header(const lin_words *w, const lin_words_header *h)
{
    return in(h->n_hyps, 1, w->o.width) && in(h->n_traces, 0, w->n_traces) && in(h->n_alternatives, 0, w->n_alternatives - 1) &&
           in(h->finished, 0, 1) && in(h->first_frame, INT64_MIN / 4, INT64_MAX / 4) &&
           in(h->frame, h->first_frame, INT64_MAX / 2);
}

lin_status lin_words_check(const lin_words *w, const void *state, size_t n, lin_error *err)
{
    uint64_t magic = 0;
    if (n >= sizeof magic) memcpy(&magic, state, sizeof magic);
    if (magic == LIN_WORDS_MAGIC_OLD) {
        return lin_fail(err, LIN_MISMATCH, "the state is of an earlier version's word search, which this version cannot resume");
    }
    if (n != w->bytes) return lin_fail(err, LIN_MISMATCH, "a state of %zu bytes, but this word search has %zu", n, w->bytes);
    const lin_words_view s = lin_words_view_of(w, (void *)(uintptr_t)state);
    const lin_words_header *h = s.h;
    if (h->magic != LIN_WORDS_MAGIC) return lin_fail(err, LIN_FORMAT, "the bytes are not the state of a word search");
    if (h->fingerprint != w->fingerprint) {
        return lin_fail(err, LIN_MISMATCH, "the state belongs to a word search with another lexicon, language model or options");
    }
    int good = good_header(w, h), used = 0;
    for (int i = 0; good && i < h->n_traces; i++) good = good_trace(w, &s, i);
    for (int i = 0; good && i < h->n_hyps; i++) good = good_hyp(w, &s, &s.hyps[i]);
    for (int i = 0; good && i < w->n_alternatives; i++) {
        if (!s.alternatives[i].used) continue;
        good = good_alternative(&s, &s.alternatives[i]);
        used++;
    }
    good = good && used == h->n_alternatives && lin_words_good_rows(w, &s) && lin_words_good_ranking(w, &s);
    if (good) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "the state of a word search is damaged");
}
