// Makes phones and words from trace-backs.

#include <float.h>

#include "decoder/words_internal.h"

void lin_words_follow_traces(const lin_words *w, const lin_words_view *s, lin_words_step end, lin_words_traceback *to)
{
    while (end.trace >= 0 && to->n < w->n_traceback && !lin_words_is_settled(s, &s->traces[end.trace])) {
        const lin_words_trace *r = &s->traces[end.trace];
        if (r->word != LIN_WORD_INSIDE) to->ends[to->n_words++] = to->n;
        to->phones[to->n++] = end;
        end = (lin_words_step){r->before_logp, r->before, r->before_frames};
    }
}

void lin_words_traceback_of(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, lin_words_traceback *to)
{
    const lin_words_ending *a = lin_words_better_ending(t);
    to->n = to->n_words = 0;
    lin_words_follow_traces(w, s, (lin_words_step){a->logp, a->trace, a->frames}, to);
}

/* ---- confidence ------------------------------------------------------------------------------------------------------------ */

static const lin_words_trace *word_end(const lin_words_view *s, const lin_words_traceback *of, int word)
{
    return &s->traces[of->phones[of->ends[word]].trace];
}

static int64_t word_start(const lin_words_view *s, const lin_words_traceback *of, int word)
{
    const int first = word + 1 < of->n_words ? of->ends[word + 1] - 1 : of->n - 1;
    return s->traces[of->phones[first].trace].start;
}

int lin_words_same(const lin_words_view *s, const lin_words_traceback *a, int i, const lin_words_traceback *b, int k)
{
    const lin_words_trace *x = word_end(s, a, i), *y = word_end(s, b, k);
    return x->word == y->word && x->word >= 0 && word_start(s, a, i) <= y->start && word_start(s, b, k) <= x->start;
}

// A rival with this share of the probability differs from the trace-back in some words from number `from` on, counted from the
// last one: those that the rival does not have at an overlapping time. Trace-backs share a common beginning.
static void contest(const lin_words_view *s, const lin_words_traceback *of, int from, int at, double probability, double *shares)
{
    int to = of->n_words;
    while (at >= 0 && !lin_words_is_settled(s, &s->traces[at])) {
        const lin_words_trace *r = &s->traces[at];
        int64_t start = r->start;
        const int number = of->n_words - (int)(r->n_words - s->h->settled);
        if (r->word != LIN_WORD_INSIDE && number >= 0 && number < to && word_end(s, of, number)->history == r->history) {
            to = number;
            break;
        }
        for (at = r->before; at >= 0 && s->traces[at].word == LIN_WORD_INSIDE; at = s->traces[at].before)
            start = s->traces[at].start;
        if (r->word < 0) continue;
        while (from < to && word_start(s, of, from) > r->start) shares[from++] += probability;
        if (from < to && word_end(s, of, from)->word == r->word && word_end(s, of, from)->start >= start) from++;
    }
    while (from < to) shares[from++] += probability;
}

void lin_words_shares(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, const lin_words_traceback *of,
                      double *shares)
{
    for (int i = 0; i < of->n_words; i++) shares[i] = 1;
    for (int i = 0; i < s->h->n_hyps; i++) {
        const lin_words_hyp *other = &s->hyps[i];
        if (other != t) contest(s, of, 0, lin_words_better_ending(other)->trace, exp(fmin(other->score - t->score, 0)), shares);
    }
    int behind = 0; // words that end after phone number i
    for (int i = 0; i <= of->n; i++) {
        const lin_words_trace *r = i < of->n ? &s->traces[of->phones[i].trace] : NULL;
        const uint64_t key = r ? lin_words_trace_key(w, s, r) : s->h->settled_history;
        // Inside a word of the lexicon the loser has the same word; in a word outside the lexicon it has other phones.
        const int from = r && r->node == LIN_PLACE_UNKNOWN && behind > 0 ? behind - 1 : behind;
        for (int k = -1; (k = lin_words_next_alternative(w, s, key, k)) >= 0;) {
            const lin_words_alternative *a = &s->alternatives[k];
            contest(s, of, from, a->end.trace, exp(-a->lost), shares);
        }
        behind += r && r->word != LIN_WORD_INSIDE;
    }
    for (int i = 0; i < of->n_words; i++) shares[i] = 1 / shares[i];
}

/* ---- paths ----------------------------------------------------------------------------------------------------------------- */

// Phones of a trace-back from number first (the word's first one) down to last.
static void add_word(const lin_words_view *s, const lin_words_traceback *of, int first, int last, double share, int64_t limit,
                     lin_path *path)
{
    const int n = first - last + 1, word = s->traces[of->phones[last].trace].word;
    lin_path_phone *phones = &path->phones[path->n_phones];
    double sum = 0;
    for (int k = n; k-- > 0; limit = phones[k].start) {
        const lin_words_step *p = &of->phones[first - k];
        const lin_words_trace *r = &s->traces[p->trace];
        const float confidence = fminf(fmaxf((float)exp(p->logp / p->frames), FLT_MIN), 1);
        phones[k] = (lin_path_phone){r->label, confidence, r->start, r->start + p->frames};
        if (phones[k].end > limit) phones[k].end = limit;
        if (phones[k].start >= phones[k].end) phones[k].start = phones[k].end - 1;
        sum += log((double)confidence);
    }
    path->words[path->n_words++] = (lin_path_word){.word = word == LIN_WORD_INSIDE ? LIN_WORD_UNKNOWN : word,
                                                   .first_phone = path->n_phones,
                                                   .n_phones = n,
                                                   .confidence = fmaxf((float)(exp(sum / n) * share), FLT_MIN),
                                                   .start = phones[0].start,
                                                   .end = phones[n - 1].end};
    path->n_phones += n;
}

lin_status lin_words_append_traceback(const lin_words_view *s, const lin_words_traceback *of, const double *shares,
                                      int only_first, int64_t limit, lin_path *path, lin_error *err)
{
    const int inside = of->n > 0 && (!of->n_words || of->ends[0] > 0);
    const int n_phones = only_first ? of->n - of->ends[of->n_words - 1] : of->n, n_words = only_first ? 1 : of->n_words + inside;
    lin_status status = lin_path_reserve(path, n_phones, n_words, err);
    if (status != LIN_OK) return status;
    int first = of->n - 1;
    for (int i = of->n_words; i-- > 0; first = of->ends[i] - 1) {
        add_word(s, of, first, of->ends[i], shares[i], limit, path);
        if (only_first) return LIN_OK;
    }
    if (inside) {
        add_word(s, of, first, 0, 1, limit, path);
        path->incomplete = !s->h->finished;
    }
    return LIN_OK;
}
