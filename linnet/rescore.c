// rescore.c - a second pass over the best hypotheses of an utterance; see rescore.h.

#include "linnet/rescore.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "linnet/word_network.h"
#include "model/token_scorer.h"

struct lin_rescoring {
    const lin_rescorer *of;
    lin_token_scorer *scorer;
    int *tokens, *offsets; // of hypothesis i: offsets[i] .. offsets[i+1]-1
    double *logp, *passed; // [n]: by the network; of the words that it passes over
    int n;
    size_t room_tokens, room_offsets, room_logp, room_passed;
    lin_rescoring *next; // that is free
};

struct lin_rescorer {
    lin_word_network network;
    double weight, lm_weight;
    double unknown; // natural logarithm by the n-gram model of a word that the network cannot spell
    int *labels;    // the piece of each phone; NULL: it scores words
    pthread_mutex_t lock;
    lin_rescoring *free; // as many as utterances ended at the same time
};

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

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
    return lin_fail(err, LIN_MISMATCH, "%s is of other words: it spells with a-z and the apostrophe, and %d of the %d words of "
                                       "the lexicon have other characters, such as %s", path, others, words, first);
}

// Each phone is one piece, a word of small letters: "_aa".
static lin_status find_phones(lin_rescorer *r, const char *path, const lin_phones *phones, lin_error *err)
{
    const int V = lin_phones_count(phones);
    const char *first = NULL;
    int missing = 0;
    r->labels = lin_calloc((size_t)V, sizeof *r->labels);
    if (!r->labels) return lin_no_memory(err, "phones of a network", (size_t)V * sizeof *r->labels);
    for (int i = 1; i < V; i++) {
        const char *name = lin_phones_cmu(phones, i) ? lin_phones_cmu(phones, i) : lin_phones_name(phones, i);
        const size_t n = strlen(name);
        char piece[LIN_PHONE_NAME_MAX + 2] = "_";
        for (size_t c = 0; c < n; c++) piece[c + 1] = lin_lower(name[c]);
        r->labels[i] = lin_symbols_find(&r->network.pieces->names, piece, n + 1);
        if (r->labels[i] < 0 && !missing++) first = name;
    }
    if (!missing) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "%s is no model of these phonemes: it has no piece for %d of the %d, such as %s; if it is "
                                       "one of words, add --words", path, missing, V - 1, first);
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
        const double unknown = (double)lin_ngram_score(lm, lin_ngram_empty(lm), LIN_NGRAM_UNKNOWN, &after);
        if (isfinite(unknown)) r->unknown = unknown;
    }
    lin_status status = lin_word_network_open(path, "cpu", LIN_PRECISION_FP32, &r->network, err);
    if (status == LIN_OK && r->network.model->eight_bits) {
        lin_word_network_close(&r->network);
        status = lin_word_network_open(path, "cpu", LIN_PRECISION_INT8, &r->network, err);
    }
    if (status == LIN_OK) status = tree ? check_lexicon(path, tree, err) : find_phones(r, path, phones, err);
    if (status == LIN_OK) *out = r;
    else lin_rescorer_close(r);
    return status;
}

static void destroy(lin_rescoring *u)
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
    for (lin_rescoring *u = r->free, *next; u; u = next) {
        next = u->next;
        destroy(u);
    }
    lin_word_network_close(&r->network);
    lin_free(r->labels);
    pthread_mutex_destroy(&r->lock);
    lin_free(r);
}

lin_status lin_rescorer_begin(lin_rescorer *r, lin_rescoring **out, lin_error *err)
{
    pthread_mutex_lock(&r->lock);
    lin_rescoring *u = r->free;
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

void lin_rescorer_end(lin_rescorer *r, lin_rescoring *u)
{
    pthread_mutex_lock(&r->lock);
    u->next = r->free;
    r->free = u;
    pthread_mutex_unlock(&r->lock);
}

/* ---- hypotheses ------------------------------------------------------------------------------------------------------------ */

// Words as pieces at the end of the tokens, of which there are *n.
static lin_status add_words(lin_rescoring *u, const lin_path *path, lin_result_speller spell, const void *context, size_t *n,
                            lin_error *err)
{
    for (int i = 0; i < path->n_words; i++) {
        const char *word = spell(context, path->words[i].word);
        const size_t bytes = word ? strlen(word) : 0;
        int pieces;
        if (lin_pieces_check(word, bytes, NULL) != LIN_OK) {
            u->passed[u->n] += u->of->unknown;
            continue;
        }
        lin_status status = lin_grow(&u->tokens, &u->room_tokens, *n + bytes + 1, sizeof *u->tokens, "hypotheses", err);
        if (status == LIN_OK)
            status = lin_pieces_encode(u->of->network.pieces, word, bytes, u->tokens + *n, (int)bytes + 1, &pieces, err);
        if (status != LIN_OK) return status;
        *n += (size_t)pieces;
    }
    return LIN_OK;
}

static lin_status add_phones(lin_rescoring *u, const lin_path *path, size_t *n, lin_error *err)
{
    const size_t more = (size_t)path->n_phones;
    const lin_status status = lin_grow(&u->tokens, &u->room_tokens, *n + more + 1, sizeof *u->tokens, "hypotheses", err);
    for (int i = 0; i < path->n_phones && status == LIN_OK; i++) u->tokens[(*n)++] = u->of->labels[path->phones[i].label];
    return status;
}

static lin_status add_path(lin_rescoring *u, const lin_path *path, lin_result_speller spell, const void *context, size_t *n,
                           lin_error *err)
{
    return u->of->labels ? add_phones(u, path, n, err) : add_words(u, path, spell, context, n, err);
}

static lin_status add_end(lin_rescoring *u, size_t *n, lin_error *err)
{
    const lin_status status = lin_grow(&u->tokens, &u->room_tokens, *n + 1, sizeof *u->tokens, "hypotheses", err);
    if (status == LIN_OK) u->tokens[(*n)++] = 0; // <s>
    return status;
}

lin_status lin_rescoring_add(lin_rescoring *u, const lin_path *settled, const lin_path *tail, lin_result_speller spell,
                             const void *context, lin_error *err)
{
    const size_t more = (size_t)u->n + 1;
    lin_status status = lin_grow(&u->offsets, &u->room_offsets, more + 1, sizeof *u->offsets, "hypotheses", err);
    if (status == LIN_OK) status = lin_grow(&u->logp, &u->room_logp, more, sizeof *u->logp, "hypotheses", err);
    if (status == LIN_OK) status = lin_grow(&u->passed, &u->room_passed, more, sizeof *u->passed, "hypotheses", err);
    if (status != LIN_OK) return status;
    if (!u->n) u->offsets[0] = 0;
    size_t n = (size_t)u->offsets[u->n];
    u->passed[u->n] = 0;
    status = add_end(u, &n, err);
    if (status == LIN_OK) status = add_path(u, settled, spell, context, &n, err);
    if (status == LIN_OK) status = add_path(u, tail, spell, context, &n, err);
    // Of a hypothesis that it cannot spell at all, such as silence, the network knows nothing: <s> alone has a logarithm of 0.
    const int is_spelled = n > (size_t)u->offsets[u->n] + 1;
    if (status == LIN_OK && is_spelled) status = add_end(u, &n, err);
    if (status != LIN_OK) return status;
    if (!is_spelled) u->passed[u->n] = tail->language;
    u->offsets[++u->n] = (int)n;
    return LIN_OK;
}

static int compare(const void *a, const void *b)
{
    const lin_rescored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void lin_rescored_sort(lin_rescored *list, int n) { qsort(list, (size_t)n, sizeof *list, compare); }

lin_status lin_rescoring_run(lin_rescoring *u, lin_rescored *list, lin_error *err)
{
    const lin_rescorer *r = u->of;
    const lin_status status = lin_token_scorer_run(u->scorer, u->tokens, u->offsets, u->n, u->logp, err);
    for (int i = 0; i < u->n && status == LIN_OK; i++) {
        const double change = r->weight * (u->logp[i] + u->passed[i] - list[i].language);
        list[i].language += change;
        list[i].score += r->lm_weight * change;
    }
    return status;
}
