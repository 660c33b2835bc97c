// From chains of records to phones and words.

#include <float.h>

#include "decoder/words_internal.h"

void words_follow_line(const space *s, int at, int frames, double logp, line *to)
{
    while (at >= 0 && to->n < WORDS_LINE_MAX && !words_is_settled(s, &s->records[at])) {
        const record *r = &s->records[at];
        if (r->word != WORD_INSIDE) to->words[to->n++] = (tip){r->history, logp, at, frames};
        frames = r->before_frames;
        logp = r->before_logp;
        at = r->before;
    }
}

void words_token_line(const space *s, const token *t, line *to)
{
    const arm *a = better_arm(t);
    const int inside = a->record >= 0 && s->records[a->record].word == WORD_INSIDE && !words_is_settled(s, &s->records[a->record]);
    to->n = 0;
    to->inside = inside ? (tip){0, a->logp, a->record, a->frames} : (tip){0, 0, -1, 0};
    words_follow_line(s, a->record, a->frames, a->logp, to);
}

// ---- confidence -------------------------------------------------------------------------------------------------------------

// The words of a line that a chain has not: so many, counted from the last one. Chains share what they share from the start on.
static int differing(const space *s, const line *of, int at)
{
    for (; at >= 0 && !words_is_settled(s, &s->records[at]); at = s->records[at].before) {
        const record *r = &s->records[at];
        if (r->word == WORD_INSIDE) continue;
        const int number = of->n - (int)(r->n_words - s->h->settled);
        if (number >= 0 && number < of->n && of->words[number].history == r->history) return number;
    }
    return of->n;
}

// A rival with this much of the line's probability has not the words from..to-1 of it.
static void contest(double *shares, int from, int to, double probability)
{
    for (int i = from; i < to; i++) shares[i] += probability;
}

void words_shares(const lin_words *w, const space *s, const token *t, const line *of, double *shares)
{
    for (int i = 0; i < of->n; i++) shares[i] = 1;
    for (int i = 0; i < s->h->n_tokens; i++) {
        const token *other = &s->tokens[i];
        if (other != t) contest(shares, 0, differing(s, of, better_arm(other)->record), exp(fmin(other->total - t->total, 0)));
    }
    for (int i = 0; i <= of->n; i++) {
        const uint64_t history = i < of->n ? of->words[i].history : 0;
        for (int k = -1; (k = words_next_alternative(w, s, history, k)) >= 0;) {
            const alternative *a = &s->alternatives[k];
            contest(shares, i, differing(s, of, a->loser.record), exp(-a->lost));
        }
    }
    for (int i = 0; i < of->n; i++) shares[i] = 1 / shares[i];
}

// ---- paths ------------------------------------------------------------------------------------------------------------------

static int count_phones(const space *s, int at)
{
    int n = 0;
    for (; at >= 0 && !words_is_settled(s, &s->records[at]); at = s->records[at].before) {
        if (n++ && s->records[at].word != WORD_INSIDE) return n - 1;
    }
    return n;
}

static void set_phones(const space *s, const tip *end, int n, lin_path_phone *phones)
{
    int at = end->record, frames = end->frames;
    double logp = end->logp;
    for (int k = n; k-- > 0; at = s->records[at].before) {
        const record *r = &s->records[at];
        const float confidence = fminf(fmaxf((float)exp(logp / frames), FLT_MIN), 1);
        phones[k] = (lin_path_phone){r->label, confidence, r->start, r->start + frames};
        frames = r->before_frames;
        logp = r->before_logp;
    }
}

static void add_word(const space *s, const tip *end, double share, int64_t limit, lin_path *path)
{
    const int n = count_phones(s, end->record), word = s->records[end->record].word;
    lin_path_phone *phones = &path->phones[path->n_phones];
    double sum = 0;
    set_phones(s, end, n, phones);
    for (int k = n; k-- > 0; limit = phones[k].start) {
        if (phones[k].end > limit) phones[k].end = limit;
        if (phones[k].start >= phones[k].end) phones[k].start = phones[k].end - 1;
        sum += log((double)phones[k].confidence);
    }
    path->words[path->n_words++] = (lin_path_word){.word = word == WORD_INSIDE ? LIN_WORD_UNKNOWN : word,
                                                   .first_phone = path->n_phones,
                                                   .n_phones = n,
                                                   .confidence = fmaxf((float)(exp(sum / n) * share), FLT_MIN),
                                                   .start = phones[0].start,
                                                   .end = phones[n - 1].end};
    path->n_phones += n;
}

lin_status words_append_line(const space *s, const line *of, const double *shares, int from, int to, int64_t limit, lin_path *path,
                             lin_error *err)
{
    const int inside = to < 0 && of->inside.record >= 0, last = to < 0 ? 0 : to;
    int n_phones = inside ? count_phones(s, of->inside.record) : 0;
    for (int i = from; i >= last; i--) n_phones += count_phones(s, of->words[i].record);
    lin_status status = lin_path_reserve(path, n_phones, from - last + 1 + inside, err);
    if (status) return status;
    for (int i = from; i >= last; i--) add_word(s, &of->words[i], shares[i], limit, path);
    if (inside) {
        add_word(s, &of->inside, 1, limit, path);
        path->incomplete = !s->h->finished;
    }
    return LIN_OK;
}
