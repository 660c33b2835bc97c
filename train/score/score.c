// score.c - counting errors by utterance, speaker and token; see score.h.

#include "train/score/score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "train/score/bootstrap.h"
#include "train/score/edit.h"
#include "train/score/glm.h"
#include "train/score/trn.h"

double lin_score_rate(const lin_score_counts *c) { return lin_bootstrap_quotient(c->sub + c->del + c->ins, c->n_ref); }

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

// Counts the ids that only one side has, and appends the first few to `list`.
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
    const char *hint = s->ref.format == LIN_TRN_STM && n_extra ? "; for the lines of an STM give a CTM, which has times" : "";
    return lin_fail(err, LIN_MISMATCH, "the utterances differ: %s%s%s%s", first, n_lost && n_extra ? ", " : "", second, hint);
}

static lin_status note_error(lin_score *s, int ref, int hyp, lin_error *err)
{
    LIN_TRY(lin_grow(&s->confusions, &s->confusions_capacity, s->n_confusions + 1, sizeof *s->confusions, "a table of errors",
                     err));
    s->confusions[s->n_confusions++] = (lin_score_confusion){.ref = ref, .hyp = hyp, .count = 1};
    return LIN_OK;
}

static int by_pair(const void *a, const void *b)
{
    const lin_score_confusion *x = a, *y = b;
    if (x->ref != y->ref) return x->ref < y->ref ? -1 : 1;
    return x->hyp < y->hyp ? -1 : x->hyp > y->hyp;
}

static int by_count(const void *a, const void *b)
{
    const lin_score_confusion *x = a, *y = b;
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
    s->n_confusions = s->n_folded = n;
}

static void count_pair(lin_score *s, lin_score_counts *c, const lin_edit_pair *p)
{
    lin_score_token_counts *r = p->ref >= 0 ? &s->by_token[p->ref] : NULL, *h = p->hyp >= 0 ? &s->by_token[p->hyp] : NULL;
    if (p->is_right && !r) r = h; // an optional word of the hypothesis, which sclite counts as a word of the reference
    c->n_ref += r != NULL;
    if (r) r->n_ref++;
    if (p->is_right) {
        c->correct++;
        r->correct++;
    } else if (r && h) {
        c->sub++;
        r->sub++;
        h->put++;
    } else if (r) {
        c->del++;
        r->del++;
    } else if (h) {
        c->ins++;
        h->ins++;
    }
}

static int has_choices(const int *tokens, int n)
{
    for (int i = 0; i < n; i++) {
        if (tokens[i] < 0) return 1;
    }
    return 0;
}

static lin_status score_utterance(lin_score *s, int u, lin_error *err)
{
    static const lin_trn_utterance nothing = {0};
    const char *id = lin_symbols_text(&s->ref.ids, u);
    int v = lin_symbols_find(&s->hyp.ids, id, s->ref.ids.items[u].n), n;
    const lin_trn_utterance *r = &s->ref.utterances[u], *h = v >= 0 ? &s->hyp.utterances[v] : &nothing;
    const int *ref = r->n ? s->ref.tokens + r->first : NULL, *hyp = h->n ? s->hyp.tokens + h->first : NULL;
    lin_score_counts *c = &s->by_utterance[u];
    lin_edit_pair *pairs = s->pairs + s->n_pairs;
    const int choices = has_choices(ref, r->n) || has_choices(hyp, h->n);
    lin_status status = (choices ? lin_edit_choices : lin_edit_align)(ref, r->n, hyp, h->n, 0, pairs, &n, err);
    *c = (lin_score_counts){.utterances = 1};
    for (int k = 0; k < n && status == LIN_OK; k++) {
        const lin_edit_pair *p = &pairs[k];
        s->n_pairs++;
        count_pair(s, c, p);
        if (!p->is_right) status = note_error(s, p->ref, p->hyp, err);
    }
    c->wrong = c->sub + c->del + c->ins > 0;
    return status;
}

const char *lin_score_token(const lin_score *s, int token) { return token < 0 ? NULL : lin_symbols_text(&s->tokens, token); }

int lin_score_has_choices(const lin_score *s, int u)
{
    const lin_trn_utterance *r = &s->ref.utterances[u];
    return r->n && has_choices(s->ref.tokens + r->first, r->n);
}

// Kaldi's utt2spk is Kaldi text with one token in every line.
static lin_status read_speakers(lin_trn *table, const char *path, int case_sensitive, lin_symbols *names, lin_error *err)
{
    lin_trn_options o = {.format = LIN_TRN_KALDI, .case_sensitive = case_sensitive};
    char *text;
    size_t n;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status == LIN_OK) status = lin_trn_parse(text, n, path, &o, names, table, err);
    lin_free(text);
    for (int u = 0; u < table->n && status == LIN_OK; u++) {
        if (table->utterances[u].n == 1) continue;
        status = lin_fail(err, LIN_FORMAT, "%s:%d: a line holds an utterance and its speaker, here are %d fields", path,
                          table->utterances[u].line, table->utterances[u].n + 1);
    }
    return status;
}

// The speaker of every utterance, numbered by first appearance in the reference.
static lin_status find_speakers(lin_score *s, const char *path, int case_sensitive, lin_error *err)
{
    lin_trn table = {0};
    lin_symbols names = {0};
    lin_status status = path ? read_speakers(&table, path, case_sensitive, &names, err) : LIN_OK;
    for (int u = 0; u < s->ref.n && status == LIN_OK; u++) {
        const char *id = lin_symbols_text(&s->ref.ids, u), *name = id;
        size_t n = s->ref.ids.items[u].n;
        if (path) {
            char shown[LIN_QUOTE];
            int v = lin_symbols_find(&table.ids, id, n);
            if (v < 0) {
                status = lin_fail(err, LIN_MISMATCH, "%s has no line for utterance '%s'", path, lin_quote(shown, id, n));
                break;
            }
            int token = table.tokens[table.utterances[v].first];
            name = lin_symbols_text(&names, token);
            n = names.items[token].n;
        } else if (s->ref.format == LIN_TRN_STM) {
            const int speaker = s->ref.utterances[u].group;
            name = lin_symbols_text(&s->ref.speakers, speaker);
            n = s->ref.speakers.items[speaker].n;
        } else {
            n = lin_trn_speaker(id, n);
        }
        status = lin_symbols_add(&s->speakers, name, n, &s->speaker_of[u], err);
    }
    lin_trn_free(&table);
    lin_symbols_free(&names);
    return status;
}

static lin_status gather_unmapped(lin_score *s, const lin_symbols *from, lin_error *err)
{
    int index;
    lin_status status = LIN_OK;
    for (int i = 0; i < from->n && status == LIN_OK; i++)
        status = lin_symbols_add(&s->unmapped, lin_symbols_text(from, i), from->items[i].n, &index, err);
    return status;
}

static lin_status make_tables(lin_score *s, lin_error *err)
{
    const size_t n = (size_t)s->ref.n;
    s->by_utterance = lin_calloc(n, sizeof *s->by_utterance);
    s->by_speaker = lin_calloc(n, sizeof *s->by_speaker); // there are at most as many speakers as utterances
    s->speaker_of = lin_calloc(n, sizeof *s->speaker_of);
    s->first_pair = lin_calloc(n + 1, sizeof *s->first_pair);
    s->by_token = lin_calloc((size_t)s->tokens.n, sizeof *s->by_token);
    s->pairs = lin_alloc(s->ref.n_tokens + s->hyp.n_tokens, sizeof *s->pairs);
    if (s->by_utterance && s->by_speaker && s->speaker_of && s->first_pair && s->by_token && s->pairs) return LIN_OK;
    return lin_no_memory(err, "a score", 2 * n * sizeof *s->by_speaker + (s->ref.n_tokens + s->hyp.n_tokens) * sizeof *s->pairs);
}

static lin_status score_all(lin_score *s, const lin_score_options *options, lin_error *err)
{
    lin_status status = make_tables(s, err);
    if (status == LIN_OK) status = find_speakers(s, options->utt2spk_path, options->read.case_sensitive, err);
    if (status == LIN_OK) status = gather_unmapped(s, &s->ref.unmapped, err);
    if (status == LIN_OK) status = gather_unmapped(s, &s->hyp.unmapped, err);
    s->n_deleted = s->ref.n_deleted + s->hyp.n_deleted;
    if (status != LIN_OK) return status;
    for (int u = 0; u < s->ref.n && status == LIN_OK; u++) {
        status = score_utterance(s, u, err);
        s->first_pair[u + 1] = s->n_pairs;
        add_counts(&s->by_speaker[s->speaker_of[u]], &s->by_utterance[u]);
        add_counts(&s->total, &s->by_utterance[u]);
        if (s->n_confusions > 2 * s->n_folded + 100000)
            fold_confusions(s); // bounds the list for files of any length
    }
    fold_confusions(s);
    if (s->n_confusions) qsort(s->confusions, s->n_confusions, sizeof *s->confusions, by_count);
    return status;
}

// Prepares an STM for the comparison with the hypothesis.
static lin_status match_stm(lin_score *s, const char *ref_name, const char *hyp_name, lin_error *err)
{
    if (s->ref.format != LIN_TRN_STM || s->hyp.format == LIN_TRN_STM) return LIN_OK;
    if (s->hyp.format == LIN_TRN_CTM) return lin_stm_cut(&s->ref, ref_name, &s->hyp, hyp_name, err);
    return lin_stm_rename(&s->ref, &s->hyp, err);
}

// Contractions, spellings and compounds that count as the same, on both sides.
static lin_status apply_glm(lin_score *s, const lin_score_options *o, lin_error *err)
{
    char *text;
    size_t n;
    lin_glm glm = {0};
    // numbers stay: none is left
    const lin_trn_options how = {.case_sensitive = o->read.case_sensitive, .normalize = o->read.normalize};
    if (!o->glm_path) return LIN_OK;
    lin_status status = lin_text_read(o->glm_path, &text, &n, err);
    if (status == LIN_OK) status = lin_glm_parse(text, n, o->glm_path, &how, &s->tokens, &glm, err);
    if (status == LIN_OK) status = lin_glm_apply(&glm, &s->ref, err);
    if (status == LIN_OK) status = lin_glm_apply(&glm, &s->hyp, err);
    lin_glm_free(&glm);
    lin_free(text);
    return status;
}

lin_status lin_score_texts(const char *ref, size_t n_ref, const char *ref_name, const char *hyp, size_t n_hyp,
                           const char *hyp_name, const lin_score_options *options, lin_score **score, lin_error *err)
{
    static const lin_score_options defaults = {0};
    const lin_score_options *o = options ? options : &defaults;
    lin_trn_options how = o->read;
    *score = NULL;
    lin_score *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a score", sizeof *s);
    lin_status status = lin_trn_parse(ref, n_ref, ref_name, &how, &s->tokens, &s->ref, err);
    if (status == LIN_OK && !s->ref.n) status = lin_fail(err, LIN_FORMAT, "%s: the file has no utterance", ref_name);
    how.format = o->hyp_format;
    how.is_hypothesis = 1;
    how.by_channel = s->ref.format == LIN_TRN_STM;
    if (status == LIN_OK) status = lin_trn_parse(hyp, n_hyp, hyp_name, &how, &s->tokens, &s->hyp, err);
    if (status == LIN_OK) status = match_stm(s, ref_name, hyp_name, err);
    if (status == LIN_OK) status = check_utterances(s, ref_name, hyp_name, err);
    if (status == LIN_OK) status = apply_glm(s, o, err);
    if (status == LIN_OK) status = score_all(s, o, err);
    if (status != LIN_OK) {
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
    if (status == LIN_OK) status = lin_text_read(hyp_path, &hyp, &n_hyp, err);
    if (status == LIN_OK) status = lin_score_texts(ref, n_ref, ref_path, hyp, n_hyp, hyp_path, options, score, err);
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
    lin_symbols_free(&s->unmapped);
    lin_free(s->by_speaker);
    lin_free(s->by_utterance);
    lin_free(s->speaker_of);
    lin_free(s->pairs);
    lin_free(s->first_pair);
    lin_free(s->by_token);
    lin_free(s->confusions);
    lin_free(s);
}

const lin_edit_pair *lin_score_alignment(const lin_score *s, int utterance, int *n)
{
    *n = (int)(s->first_pair[utterance + 1] - s->first_pair[utterance]);
    return s->pairs + s->first_pair[utterance];
}
