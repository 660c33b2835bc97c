#include "decoder/score.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/edit.h"
#include "kernels/memory.h"
#include "lexicon/textfile.h"

// An error type: token indices, -1 for nothing.
typedef struct confusion {
    int ref, hyp;
    long long count;
} confusion;

struct lin_score {
    lin_symbols tokens;
    lin_trn ref, hyp;
    lin_symbols speakers;
    lin_score_counts total;
    lin_score_counts *by_speaker;   // [speakers.n]
    lin_score_counts *by_utterance; // [ref.n]
    confusion *confusions;          // sorted by falling count
    size_t n_confusions, confusions_capacity;
    int n_without_line; // utterances that a CTM hypothesis does not mention
};

double lin_score_rate(const lin_score_counts *c)
{
    long long errors = c->sub + c->del + c->ins;
    if (c->n_ref) return (double)errors / (double)c->n_ref;
    return errors ? 1 : 0;
}

static void add_counts(lin_score_counts *to, const lin_score_counts *c)
{
    to->utterances += c->utterances;
    to->wrong += c->wrong;
    to->n_ref += c->n_ref;
    to->correct += c->correct;
    to->sub += c->sub;
    to->del += c->del;
    to->ins += c->ins;
}

// Ids of one side that the other lacks: how many, and the first few behind `list`.
static int missing(const lin_trn *from, const lin_trn *in, char *list, size_t capacity)
{
    int n = 0;
    size_t used = 0;
    list[0] = '\0';
    for (int u = 0; u < from->n; u++) {
        const char *id = lin_symbols_text(&from->ids, u);
        size_t k = from->ids.items[u].n;
        if (lin_symbols_find(&in->ids, id, k) >= 0) continue;
        if (used + k + 3 < capacity && n < 10) {
            if (n) used += (size_t)(stpcpy(list + used, ", ") - (list + used));
            memcpy(list + used, id, k + 1);
            used += k;
        } else if (used + 6 < capacity && n <= 10) {
            memcpy(list + used, ", ...", 6);
            used = capacity;
        }
        n++;
    }
    return n;
}

static lin_status check_utterances(lin_score *s, const char *ref_name, const char *hyp_name, lin_error *err)
{
    char lost[360], extra[360];
    int n_lost = missing(&s->ref, &s->hyp, lost, sizeof lost), n_extra = missing(&s->hyp, &s->ref, extra, sizeof extra);
    if (s->hyp.format == LIN_TRN_CTM) {
        s->n_without_line = n_lost;
        n_lost = 0;
    }
    if (!n_lost && !n_extra) return LIN_OK;
    char first[480] = "", second[480] = "";
    if (n_lost) snprintf(first, sizeof first, "hypothesis %.80s lacks %d (%s)", hyp_name, n_lost, lost);
    if (n_extra) snprintf(second, sizeof second, "reference %.80s lacks %d (%s)", ref_name, n_extra, extra);
    return lin_fail(err, LIN_MISMATCH, "the utterances differ: %s%s%s", first, n_lost && n_extra ? ", " : "", second);
}

static lin_status note_error(lin_score *s, int ref, int hyp, lin_error *err)
{
    if (s->n_confusions == s->confusions_capacity) {
        size_t capacity = 2 * s->n_confusions + 256;
        confusion *larger = lin_resize(s->confusions, capacity, sizeof *larger);
        if (!larger) return lin_no_memory(err, "a table of errors", capacity * sizeof *larger);
        s->confusions = larger;
        s->confusions_capacity = capacity;
    }
    s->confusions[s->n_confusions++] = (confusion){.ref = ref, .hyp = hyp, .count = 1};
    return LIN_OK;
}

static int by_pair(const void *a, const void *b)
{
    const confusion *x = a, *y = b;
    if (x->ref != y->ref) return x->ref < y->ref ? -1 : 1;
    return x->hyp < y->hyp ? -1 : x->hyp > y->hyp;
}

static int by_count(const void *a, const void *b)
{
    const confusion *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return by_pair(a, b);
}

// Joins equal pairs.
static void fold_confusions(lin_score *s)
{
    size_t n = 0;
    if (!s->n_confusions) return;
    qsort(s->confusions, s->n_confusions, sizeof *s->confusions, by_pair);
    for (size_t i = 0; i < s->n_confusions; i++) {
        if (n && !by_pair(&s->confusions[n - 1], &s->confusions[i])) s->confusions[n - 1].count += s->confusions[i].count;
        else s->confusions[n++] = s->confusions[i];
    }
    s->n_confusions = n;
}

static lin_status score_utterance(lin_score *s, int u, lin_error *err)
{
    static const lin_trn_utterance nothing = {0};
    const char *id = lin_symbols_text(&s->ref.ids, u);
    int v = lin_symbols_find(&s->hyp.ids, id, s->ref.ids.items[u].n), n_steps;
    const lin_trn_utterance *r = &s->ref.utterances[u], *h = v >= 0 ? &s->hyp.utterances[v] : &nothing;
    const int *ref = r->n ? s->ref.tokens + r->first : NULL, *hyp = h->n ? s->hyp.tokens + h->first : NULL;
    lin_score_counts *c = &s->by_utterance[u];
    lin_edit_step *steps = lin_alloc((size_t)r->n + (size_t)h->n, sizeof *steps);
    if (!steps) return lin_no_memory(err, "an alignment", ((size_t)r->n + (size_t)h->n) * sizeof *steps);
    lin_status status = lin_edit_align(ref, r->n, hyp, h->n, steps, &n_steps, err);
    *c = (lin_score_counts){.utterances = 1, .n_ref = r->n};
    for (int k = 0; k < n_steps && !status; k++) {
        int a = steps[k].ref < 0 ? -1 : ref[steps[k].ref], b = steps[k].hyp < 0 ? -1 : hyp[steps[k].hyp];
        c->correct += a == b;
        c->sub += a != b && a >= 0 && b >= 0;
        c->del += b < 0;
        c->ins += a < 0;
        if (a != b) status = note_error(s, a, b, err);
    }
    c->wrong = c->sub + c->del + c->ins > 0;
    lin_free(steps);
    return status;
}

static lin_status score_all(lin_score *s, lin_error *err)
{
    int n = s->ref.n, speaker;
    lin_status status = LIN_OK;
    s->by_utterance = lin_calloc((size_t)n, sizeof *s->by_utterance);
    s->by_speaker = lin_calloc((size_t)n, sizeof *s->by_speaker); // there are no more speakers than utterances
    if (!s->by_utterance || !s->by_speaker) return lin_no_memory(err, "a score", 2 * (size_t)n * sizeof *s->by_speaker);
    for (int u = 0; u < n && !status; u++) {
        const char *id = lin_symbols_text(&s->ref.ids, u);
        if ((status = score_utterance(s, u, err))) break;
        status = lin_symbols_add(&s->speakers, id, lin_trn_speaker(id, s->ref.ids.items[u].n), &speaker, err);
        if (status) break;
        add_counts(&s->by_speaker[speaker], &s->by_utterance[u]);
        add_counts(&s->total, &s->by_utterance[u]);
        if (s->n_confusions > 100000) fold_confusions(s); // keeps the list short, whatever the length of the files
    }
    fold_confusions(s);
    if (s->n_confusions) qsort(s->confusions, s->n_confusions, sizeof *s->confusions, by_count);
    return status;
}

lin_status lin_score_texts(const char *ref, size_t n_ref, const char *ref_name, const char *hyp, size_t n_hyp, const char *hyp_name,
                           const lin_score_options *options, lin_score **score, lin_error *err)
{
    lin_trn_options ro = {0}, ho = {0};
    *score = NULL;
    if (options) {
        ro = (lin_trn_options){.format = options->ref_format, .case_sensitive = options->case_sensitive};
        ho = (lin_trn_options){.format = options->hyp_format, .case_sensitive = options->case_sensitive};
    }
    lin_score *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a score", sizeof *s);
    lin_status status = lin_trn_parse(ref, n_ref, ref_name, &ro, &s->tokens, &s->ref, err);
    if (!status && !s->ref.n) status = lin_fail(err, LIN_FORMAT, "%s: there is no utterance in it", ref_name);
    if (!status) status = lin_trn_parse(hyp, n_hyp, hyp_name, &ho, &s->tokens, &s->hyp, err);
    if (!status) status = check_utterances(s, ref_name, hyp_name, err);
    if (!status) status = score_all(s, err);
    if (status) {
        lin_score_destroy(s);
        return status;
    }
    *score = s;
    return LIN_OK;
}

lin_status lin_score_files(const char *ref_path, const char *hyp_path, const lin_score_options *options, lin_score **score,
                           lin_error *err)
{
    char *ref, *hyp = NULL;
    size_t n_ref, n_hyp;
    *score = NULL;
    lin_status status = lin_text_read(ref_path, &ref, &n_ref, err);
    if (!status) status = lin_text_read(hyp_path, &hyp, &n_hyp, err);
    if (!status) status = lin_score_texts(ref, n_ref, ref_path, hyp, n_hyp, hyp_path, options, score, err);
    lin_free(ref);
    lin_free(hyp);
    return status;
}

void lin_score_destroy(lin_score *s)
{
    if (!s) return;
    lin_trn_free(&s->ref);
    lin_trn_free(&s->hyp);
    lin_symbols_free(&s->tokens);
    lin_symbols_free(&s->speakers);
    lin_free(s->by_speaker);
    lin_free(s->by_utterance);
    lin_free(s->confusions);
    lin_free(s);
}

lin_score_counts lin_score_total(const lin_score *s) { return s->total; }

int lin_score_speakers(const lin_score *s) { return s->speakers.n; }

const char *lin_score_speaker(const lin_score *s, int index, lin_score_counts *counts)
{
    if (counts) *counts = s->by_speaker[index];
    return lin_symbols_text(&s->speakers, index);
}

int lin_score_without_line(const lin_score *s) { return s->n_without_line; }

int lin_score_utterances(const lin_score *s) { return s->ref.n; }

const char *lin_score_utterance(const lin_score *s, int index, lin_score_counts *counts)
{
    if (counts) *counts = s->by_utterance[index];
    return lin_symbols_text(&s->ref.ids, index);
}

int lin_score_confusions(const lin_score *s) { return (int)s->n_confusions; }

lin_score_confusion lin_score_confusion_at(const lin_score *s, int index)
{
    const confusion *c = &s->confusions[index];
    return (lin_score_confusion){
        .ref = c->ref < 0 ? NULL : lin_symbols_text(&s->tokens, c->ref),
        .hyp = c->hyp < 0 ? NULL : lin_symbols_text(&s->tokens, c->hyp),
        .count = c->count,
    };
}
