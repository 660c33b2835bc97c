// judges.c - another language model and another network judge the hypotheses of an utterance; see judges.h.

#include "linnet/judges.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "decoder/rows.h"
#include "model/token_scorer.h"

/* ---- networks of tokens ---------------------------------------------------------------------------------------------------- */

lin_status lin_word_network_pieces(const char *path, int tokens, const char *names, lin_pieces **pieces, lin_error *err)
{
    lin_error why = {0};
    *pieces = NULL;
    if (!tokens) return lin_fail(err, LIN_MISMATCH, "%s is not a network of words: it is a model of sound", path);
    const lin_status status = lin_pieces_create(names, pieces, &why);
    return status == LIN_OK ? status : lin_fail(err, status, "%s is not a network of words: %s", path, why.message);
}

lin_status lin_word_network_open(const char *path, const char *device, lin_precision precision, lin_word_network *m,
                                 lin_error *err)
{
    *m = (lin_word_network){0};
    LIN_TRY(lin_recognizer_open_encoder(path, NULL, 0, device, precision, &m->model, &m->encoder, err));
    const lin_config *c = &m->model->config;
    lin_status status = lin_word_network_pieces(path, c->tokens, m->model->phones, &m->pieces, err);
    if (status == LIN_OK && (!c->causal || c->tokens < m->pieces->names.n || c->mixture))
        status = lin_fail(err, LIN_MISMATCH, "%s does not predict each piece from those before it", path);
    if (status != LIN_OK) lin_word_network_close(m);
    return status;
}

void lin_word_network_close(lin_word_network *m)
{
    lin_encoder_destroy(m->encoder);
    lin_pieces_destroy(m->pieces);
    lin_model_destroy(m->model);
    *m = (lin_word_network){0};
}

/* ---- a rescorer ------------------------------------------------------------------------------------------------------------ */

// Working memory for an utterance.
typedef struct rescoring {
    const lin_rescorer *of;
    lin_token_scorer *scorer;
    int *tokens, *offsets; // of hypothesis i: offsets[i] .. offsets[i+1]-1
    double *logp, *passed; // [n]: by the network; of the words that it passes over
    int n;
    size_t room_tokens, room_offsets, room_logp, room_passed;
    struct rescoring *next; // that is free
} rescoring;

struct lin_rescorer {
    lin_word_network network;
    double weight, lm_weight;
    double unknown; // natural logarithm by the n-gram model of a word that the network cannot spell
    int *labels;    // the piece of each phone; NULL: it scores words
    pthread_mutex_t lock;
    rescoring *free; // as many as utterances ended at the same time
};

static lin_status check_lexicon(const char *path, const lin_tree *tree, lin_error *err)
{
    const int words = tree->words.n;
    const char *first = NULL;
    int others = 0;
    for (int i = 0; i < words; i++) {
        const char *word = lin_tree_word(tree, i);
        if (lin_pieces_check(word, strlen(word), NULL) != LIN_OK && !others++) first = word;
    }
    if (2 * others <= words) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "%s does not fit the lexicon: it spells with a-z and the apostrophe, and %d of the %d "
                                       "words of the lexicon have other characters, such as %s", path, others, words, first);
}

// Finds the piece of each phone, a word of small letters, "_aa": its label if not NULL. How many phones have none; first: one.
static int match_phones(const lin_pieces *pieces, const lin_phones *phones, int *labels, const char **first)
{
    int missing = 0;
    for (int i = 1; i < lin_phones_count(phones); i++) {
        const char *name = lin_phones_cmu(phones, i) ? lin_phones_cmu(phones, i) : lin_phones_name(phones, i);
        const size_t n = strlen(name);
        char piece[LIN_PHONE_NAME_MAX + 2] = "_";
        for (size_t c = 0; c < n; c++) piece[c + 1] = lin_lower(name[c]);
        const int at = lin_symbols_find(&pieces->names, piece, n + 1);
        if (labels) labels[i] = at;
        if (at < 0 && !missing++) *first = name;
    }
    return missing;
}

static lin_status find_phones(lin_rescorer *r, const char *path, const lin_phones *phones, lin_error *err)
{
    const int V = lin_phones_count(phones);
    const char *first;
    r->labels = lin_calloc((size_t)V, sizeof *r->labels);
    if (!r->labels) return lin_no_memory(err, "phones of a network", (size_t)V * sizeof *r->labels);
    const int missing = match_phones(r->network.pieces, phones, r->labels, &first);
    if (!missing) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "%s is not a model of these phonemes: it has no piece for %d of the %d, such as %s; if it "
                                       "is one of words, add --words", path, missing, V - 1, first);
}

// Words need more pieces than those of all phones and their first halves.
static int is_of_phones(const lin_pieces *pieces, const lin_phones *phones)
{
    const char *first;
    return phones && pieces->names.n <= LIN_PIECES_FIRST + 2 * lin_phones_count(phones) &&
           match_phones(pieces, phones, NULL, &first) == 0;
}

lin_status lin_rescorer_open(const char *path, double weight, double lm_weight, const lin_ngram *lm, const lin_tree *tree,
                             const lin_phones *phones, lin_rescorer **out, lin_error *err)
{
    *out = NULL;
    lin_rescorer *r = lin_calloc(1, sizeof *r);
    if (!r) return lin_no_memory(err, "rescoring", sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    r->weight = weight;
    r->lm_weight = lm_weight;
    if (lm) {
        lin_ngram_state after;
        const double unknown = (double)lin_ngram_score(lm, LIN_NGRAM_EMPTY, LIN_NGRAM_UNKNOWN, &after);
        if (isfinite(unknown)) r->unknown = unknown;
    }
    lin_status status = lin_word_network_open(path, "cpu", LIN_PRECISION_AUTO, &r->network, err);
    if (status == LIN_OK && tree && is_of_phones(r->network.pieces, phones))
        status = lin_fail(err, LIN_MISMATCH, "%s is a model of phonemes; leave out --words, or name one of words", path);
    if (status == LIN_OK) status = tree ? check_lexicon(path, tree, err) : find_phones(r, path, phones, err);
    if (status == LIN_OK) *out = r;
    else lin_rescorer_close(r);
    return status;
}

static void destroy(rescoring *u)
{
    lin_token_scorer_destroy(u->scorer);
    lin_free(u->tokens);
    lin_free(u->offsets);
    lin_free(u->logp);
    lin_free(u->passed);
    lin_free(u);
}

void lin_rescorer_close(lin_rescorer *r)
{
    if (!r) return;
    for (rescoring *u = r->free, *next; u; u = next) {
        next = u->next;
        destroy(u);
    }
    lin_word_network_close(&r->network);
    lin_free(r->labels);
    pthread_mutex_destroy(&r->lock);
    lin_free(r);
}

// Memory for one utterance; one that has ended leaves it to the next.
static lin_status take_memory(lin_rescorer *r, rescoring **out, lin_error *err)
{
    pthread_mutex_lock(&r->lock);
    rescoring *u = r->free;
    if (u) r->free = u->next;
    pthread_mutex_unlock(&r->lock);
    *out = u;
    if (u) {
        u->n = 0;
        return LIN_OK;
    }
    u = lin_calloc(1, sizeof *u);
    if (!u) return lin_no_memory(err, "rescoring", sizeof *u);
    u->of = r;
    const lin_status status = lin_token_scorer_create(r->network.encoder, &u->scorer, err);
    if (status == LIN_OK) *out = u;
    else destroy(u);
    return status;
}

static void give_memory(lin_rescorer *r, rescoring *u)
{
    pthread_mutex_lock(&r->lock);
    u->next = r->free;
    r->free = u;
    pthread_mutex_unlock(&r->lock);
}

static lin_status reserve_tokens(rescoring *u, size_t n, lin_error *err)
{
    return lin_grow(&u->tokens, &u->room_tokens, n, sizeof *u->tokens, "hypotheses", err);
}

// Words as pieces at the end of the tokens, of which there are *n.
static lin_status add_words(rescoring *u, const lin_path *path, const lin_hypotheses *h, size_t *n, lin_error *err)
{
    for (int i = 0; i < path->n_words; i++) {
        const char *word = h->spell(h->spell_context, path->words[i].word);
        const size_t bytes = word ? strlen(word) : 0;
        int pieces;
        if (lin_pieces_check(word, bytes, NULL) != LIN_OK) {
            u->passed[u->n] += u->of->unknown;
            continue;
        }
        LIN_TRY(reserve_tokens(u, *n + bytes + 1, err));
        LIN_TRY(lin_pieces_encode(u->of->network.pieces, word, bytes, u->tokens + *n, (int)bytes + 1, &pieces, err));
        *n += (size_t)pieces;
    }
    return LIN_OK;
}

static lin_status add_path(rescoring *u, const lin_path *path, const lin_hypotheses *h, size_t *n, lin_error *err)
{
    if (!u->of->labels) return add_words(u, path, h, n, err);
    LIN_TRY(reserve_tokens(u, *n + (size_t)path->n_phones + 1, err));
    for (int i = 0; i < path->n_phones; i++) u->tokens[(*n)++] = u->of->labels[path->phones[i].label];
    return LIN_OK;
}

static lin_status add_end(rescoring *u, size_t *n, lin_error *err)
{
    LIN_TRY(reserve_tokens(u, *n + 1, err));
    u->tokens[(*n)++] = 0; // <s>
    return LIN_OK;
}

// One more hypothesis, whose rest is h->tail.
static lin_status add_hypothesis(rescoring *u, const lin_hypotheses *h, lin_error *err)
{
    const size_t more = (size_t)u->n + 1;
    LIN_TRY(lin_grow(&u->offsets, &u->room_offsets, more + 1, sizeof *u->offsets, "hypotheses", err));
    LIN_TRY(lin_grow(&u->logp, &u->room_logp, more, sizeof *u->logp, "hypotheses", err));
    LIN_TRY(lin_grow(&u->passed, &u->room_passed, more, sizeof *u->passed, "hypotheses", err));
    if (!u->n) u->offsets[0] = 0;
    const size_t first = (size_t)u->offsets[u->n];
    size_t n = first;
    u->passed[u->n] = 0;
    LIN_TRY(add_end(u, &n, err));
    LIN_TRY(add_path(u, h->settled, h, &n, err));
    LIN_TRY(add_path(u, h->tail, h, &n, err));
    // Of a hypothesis that it cannot spell at all, such as silence, the network knows nothing: <s> alone has a logarithm of 0.
    if (n > first + 1) LIN_TRY(add_end(u, &n, err));
    else u->passed[u->n] = h->tail->language;
    u->offsets[++u->n] = (int)n;
    return LIN_OK;
}

static lin_status rescore(rescoring *u, lin_judged *list, lin_error *err)
{
    const lin_rescorer *r = u->of;
    LIN_TRY(lin_token_scorer_run(u->scorer, u->tokens, u->offsets, u->n, u->logp, err));
    for (int i = 0; i < u->n; i++) {
        const double change = r->weight * (u->logp[i] + u->passed[i] - list[i].language);
        list[i].language += change;
        list[i].score += r->lm_weight * change;
    }
    return LIN_OK;
}

/* ---- a combiner ------------------------------------------------------------------------------------------------------------ */

// In place of the logarithm of 0: a hypothesis that the second network excludes comes after all others, in their order.
static const double LEAST = -1e6;

struct lin_combiner {
    lin_second_network *network;
    int V;
    double weight, blank; // blank: added to the natural logarithm of each row's blank
    double *p;            // [rows, V + 1]: probabilities divided by the largest one of the row, and its logarithm
    int rows;
    int32_t *labels;      // of a hypothesis
    double *sums;
    size_t room, room_labels, room_sums;
};

lin_status lin_combiner_create(const lin_recognizer *first, const lin_recognizer *second, double weight, double blank_penalty,
                               int language, int n_threads, lin_combiner **combiner, lin_error *err)
{
    *combiner = NULL;
    if (!second || !(weight > 0)) return LIN_OK;
    lin_combiner *c = lin_calloc(1, sizeof *c);
    if (!c) return lin_no_memory(err, "a second network", sizeof *c);
    c->V = second->V;
    c->weight = weight;
    c->blank = -blank_penalty;
    const lin_status status = lin_second_network_create(first, second, n_threads, language, &c->network, err);
    if (status == LIN_OK) *combiner = c;
    else lin_combiner_destroy(c);
    return status;
}

void lin_combiner_destroy(lin_combiner *c)
{
    if (!c) return;
    lin_second_network_destroy(c->network);
    lin_free(c->p);
    lin_free(c->labels);
    lin_free(c->sums);
    lin_free(c);
}

void lin_combiner_begin(lin_combiner *c)
{
    if (c) c->rows = 0;
}

static lin_status keep_rows(void *context, const float *logp, int n, lin_error *err)
{
    lin_combiner *c = context;
    const size_t columns = (size_t)c->V + 1;
    LIN_TRY(lin_grow(&c->p, &c->room, ((size_t)c->rows + (size_t)n) * columns, sizeof *c->p, "rows of a second network", err));
    for (int t = 0; t < n; t++) {
        double *p = c->p + (size_t)c->rows++ * columns;
        p[c->V] = lin_sums_scaled(logp + (size_t)t * (size_t)c->V, c->V, p);
        p[0] *= exp(c->blank);
    }
    return LIN_OK;
}

lin_status lin_combiner_push(lin_combiner *c, const float *frames, int n, lin_error *err)
{
    return c ? lin_second_network_run(c->network, frames, n, keep_rows, c, err) : LIN_OK;
}

// Natural logarithm of the sum over all alignments of the labels; NAN if rows are not numbers.
static double sum_of(lin_combiner *c, int n)
{
    lin_sums q = {.labels = c->labels, .sums = c->sums, .n = n};
    double ends[2];
    lin_sums_begin(&q, 0, -INFINITY);
    for (int t = 0; t < c->rows; t++) {
        const double *p = c->p + (size_t)t * ((size_t)c->V + 1);
        if (!isfinite(p[c->V])) return NAN;
        lin_sums_row(&q, p, p[c->V], c->rows - 1 - t);
    }
    lin_sums_ends(&q, ends);
    const double most = fmax(ends[0], ends[1]);
    return most > LEAST ? most + log1p(exp(fmin(ends[0], ends[1]) - most)) : LEAST;
}

// Changes acoustic and score of the rest of a hypothesis.
static lin_status combine(lin_combiner *c, const lin_path *settled, lin_path *tail, lin_error *err)
{
    const size_t n = (size_t)settled->n_phones + (size_t)tail->n_phones;
    LIN_TRY(lin_grow(&c->labels, &c->room_labels, n + 1, sizeof *c->labels, "hypotheses", err));
    LIN_TRY(lin_grow(&c->sums, &c->room_sums, 2 * n + 2, sizeof *c->sums, "hypotheses", err));
    if (!c->rows) return LIN_OK;
    int k = 0;
    c->labels[k++] = 0;
    for (int i = 0; i < settled->n_phones; i++) c->labels[k++] = settled->phones[i].label;
    for (int i = 0; i < tail->n_phones; i++) c->labels[k++] = tail->phones[i].label;
    const double second = sum_of(c, k - 1), change = c->weight * (second - tail->acoustic);
    if (isnan(change)) return LIN_OK;
    tail->acoustic += change;
    tail->score += change;
    return LIN_OK;
}

/* ---- both ------------------------------------------------------------------------------------------------------------------ */

static lin_status judge(rescoring *u, lin_combiner *combiner, const lin_hypotheses *h, lin_judged *list, lin_error *err)
{
    for (int i = 0; i < h->n; i++) {
        const lin_path *tail = h->tail;
        LIN_TRY(h->read(h->context, i, h->tail, err));
        if (u) LIN_TRY(add_hypothesis(u, h, err));
        if (combiner) LIN_TRY(combine(combiner, h->settled, h->tail, err));
        list[i] = (lin_judged){.number = i, .score = tail->score, .acoustic = tail->acoustic, .language = tail->language};
    }
    return u ? rescore(u, list, err) : LIN_OK;
}

static int compare(const void *a, const void *b)
{
    const lin_judged *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

lin_status lin_judge(lin_rescorer *rescorer, lin_combiner *combiner, const lin_hypotheses *h, lin_judged *list, lin_error *err)
{
    rescoring *u = NULL;
    if (rescorer) LIN_TRY(take_memory(rescorer, &u, err));
    const lin_status status = judge(u, combiner, h, list, err);
    if (u) give_memory(rescorer, u);
    if (status == LIN_OK) qsort(list, (size_t)h->n, sizeof *list, compare);
    return status;
}
