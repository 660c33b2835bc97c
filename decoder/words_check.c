// Whether bytes from a file can be a state of a word search: every number that is used as an index, a count or a loop's bound.

#include "decoder/words_internal.h"

static int in(int64_t value, int64_t from, int64_t to) { return value >= from && value <= to; }

static int number_or_none(double value) { return !isnan(value) && value != INFINITY; }

static int good_arm(const words_header *h, const arm *a)
{
    if (!in(a->record, -1, h->n_records - 1) || !number_or_none(a->sum) || !number_or_none(a->best) || isnan(a->logp)) return 0;
    return in(a->frames, a->record < 0 ? 0 : 1, INT32_MAX - 1);
}

static int good_token(const lin_words *w, const words_header *h, const token *t)
{
    if (!in(t->node, PLACE_UNKNOWN, h->context_id ? INT32_MAX : w->n_nodes - 1) || !in(t->last, 0, w->V - 1)) return 0;
    if (w->lm ? t->lm_state >= lin_ngram_states(w->lm) : t->lm_state != 0) return 0;
    if (!in(t->n_words, 0, h->n_records) || !in(t->n_phones, 0, h->n_records) || !in(t->n_inside, 0, LIN_PRONUNCIATION_MAX)) return 0;
    if (!isfinite(t->language) || !isfinite(t->outer) || !isfinite(t->ahead) || !isfinite(t->promise)) return 0;
    if (!isfinite(t->mass) || !isfinite(t->total)) return 0;
    return good_arm(h, &t->arms[BLANK_ARM]) && good_arm(h, &t->arms[LABEL_ARM]);
}

// Chains go back to older records, and count their words.
static int good_record(const lin_words *w, const space *s, int i)
{
    const record *r = &s->records[i];
    if (!in(r->before, -1, i - 1) || !in(r->label, 1, w->V - 1) || !in(r->word, WORD_INSIDE, INT32_MAX)) return 0;
    if (!in(r->before_frames, r->before < 0 ? 0 : 1, INT32_MAX) || isnan(r->before_logp)) return 0;
    if (!in(r->start, s->h->first_frame, s->h->frame)) return 0;
    const uint32_t words = r->n_words - (r->word != WORD_INSIDE);
    return r->before < 0 ? (int32_t)(words - s->h->settled) <= 0 : words == s->records[r->before].n_words;
}

static int good_alternative(const words_header *h, const alternative *a)
{
    if (a->used != 1 || !in(a->loser.record, -1, h->n_records - 1) || !(a->lost >= 0) || !isfinite(a->lost)) return 0;
    return in(a->loser.frames, a->loser.record < 0 ? 0 : 1, INT32_MAX) && !isnan(a->loser.logp) && isfinite(a->lost_acoustic) &&
           isfinite(a->lost_language);
}

lin_status lin_words_check(const lin_words *w, const void *state, size_t n, lin_error *err)
{
    if (n != w->bytes) return lin_fail(err, LIN_MISMATCH, "a state of %zu bytes; this word search has %zu", n, w->bytes);
    const space s = words_space(w, (void *)(uintptr_t)state);
    const words_header *h = s.h;
    if (h->magic != WORDS_MAGIC) return lin_fail(err, LIN_FORMAT, "the bytes are not the state of a word search");
    if (h->fingerprint != w->fingerprint) {
        return lin_fail(err, LIN_MISMATCH, "the state belongs to a word search with another lexicon, language model or options");
    }
    int good = in(h->n_tokens, 1, w->o.width) && in(h->n_records, 0, w->n_records) && in(h->n_alternatives, 0, w->n_alternatives) &&
               in(h->finished, 0, 1) && h->frame >= h->first_frame;
    for (int i = 0; good && i < h->n_tokens; i++) good = good_token(w, h, &s.tokens[i]);
    for (int i = 0; good && i < h->n_records; i++) good = good_record(w, &s, i);
    int used = 0;
    for (int i = 0; good && i < w->n_alternatives; i++) {
        if (!s.alternatives[i].used) continue;
        good = good_alternative(h, &s.alternatives[i]);
        used++;
    }
    good = good && used == h->n_alternatives && used < w->n_alternatives && h->settled_end >= h->first_frame && h->settled_end <= h->frame;
    return good ? LIN_OK : lin_fail(err, LIN_FORMAT, "the state of a word search is damaged");
}
