// token_scorer.c - log-probabilities of sequences of tokens, common prefixes once; see token_scorer.h.

#include "model/token_scorer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/encoder.h"

/*
 * The sequences are sorted, so that those with a common prefix are neighbours. A branch is a range of them that agree up to row
 * `from` at least: it is run from its state as far as they agree, and then divided into a branch for each different next token.
 * The branches of a level, each with a state of its own, run together in passes.
 *
 *   <s> a b c <s>        a branch <s> a, then two: b, which is divided into c and d, and e
 *   <s> a b d <s>
 *   <s> a e <s>
 */
typedef struct branch {
    int low, high; // of the sorted sequences; the state is that of number `low`
    int from, to;  // rows
} branch;

typedef struct sequence {
    const int *tokens;
    int n, number; // number: of the caller's sequences
} sequence;

struct lin_token_scorer {
    const lin_encoder *encoder;
    lin_worker *worker;
    int keeps; // a state of constant size
    // of the sequences of a run
    sequence *sorted;
    double *sums;         // [n], by the order of the sorted ones
    float *states;        // [n, state_count]
    branch *branches;     // [2, n]: a level, and the next
    size_t room_sorted, room_sums, room_states, room_branches;
    // of a pass
    float *features, *logp;
    size_t room_features, room_logp;
};

lin_status lin_token_scorer_create(const lin_encoder *encoder, lin_token_scorer **out, lin_error *err)
{
    const lin_config *c = &encoder->model->config;
    *out = NULL;
    if (!c->tokens || !c->causal || c->mixture || !encoder->ops->on_host)
        return lin_fail(err, LIN_UNSUPPORTED, "this model does not predict tokens from those before, or not on a CPU");
    lin_token_scorer *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "scores of tokens", sizeof *s);
    s->encoder = encoder;
    s->keeps = !lin_config_why_not_stream(c) && !lin_config_cache_count(c);
    const lin_status status = lin_worker_create(encoder, 1, &s->worker, err);
    if (status == LIN_OK) *out = s;
    else lin_token_scorer_destroy(s);
    return status;
}

void lin_token_scorer_destroy(lin_token_scorer *s)
{
    if (!s) return;
    lin_worker_destroy(s->worker);
    lin_free(s->sorted);
    lin_free(s->sums);
    lin_free(s->states);
    lin_free(s->branches);
    lin_free(s->features);
    lin_free(s->logp);
    lin_free(s);
}

/* ---- sequences ------------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const sequence *x = a, *y = b;
    for (int i = 0; i < x->n && i < y->n; i++)
        if (x->tokens[i] != y->tokens[i]) return x->tokens[i] < y->tokens[i] ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

// Every token but the last makes a row.
static int rows_of(const sequence *q) { return q->n - 1; }

// The row up to which the sequences of a branch agree. They are sorted, so it suffices to compare the first and the last.
static int agree(const lin_token_scorer *s, int low, int high, int from)
{
    const sequence *x = &s->sorted[low], *y = &s->sorted[high - 1];
    const int most = rows_of(x) < rows_of(y) ? rows_of(x) : rows_of(y);
    while (from < most && x->tokens[from] == y->tokens[from]) from++;
    return from;
}

static lin_status take(lin_token_scorer *s, const int *tokens, const int *offsets, int n, lin_error *err)
{
    const lin_config *c = &s->encoder->model->config;
    const size_t count = (size_t)n, floats = s->keeps ? s->encoder->state_count : 0;
    LIN_TRY(lin_grow(&s->sorted, &s->room_sorted, count, sizeof *s->sorted, "sequences", err));
    LIN_TRY(lin_grow(&s->sums, &s->room_sums, count, sizeof *s->sums, "sequences", err));
    LIN_TRY(lin_grow(&s->branches, &s->room_branches, 2 * count, sizeof *s->branches, "sequences", err));
    LIN_TRY(lin_grow(&s->states, &s->room_states, count * floats, sizeof *s->states, "sequences", err));
    for (int i = 0; i < n; i++) {
        s->sorted[i] = (sequence){tokens + offsets[i], offsets[i + 1] - offsets[i], i};
        s->sums[i] = 0;
        if (s->sorted[i].n < 1) return lin_fail(err, LIN_INVALID, "sequence %d is empty", i);
        for (int t = 0; t < s->sorted[i].n; t++) {
            const int token = s->sorted[i].tokens[t];
            if (token < 0 || token >= c->tokens || (t && token >= c->outputs))
                return lin_fail(err, LIN_INVALID, "token %d of sequence %d is %d, which the network does not have", t, i, token);
        }
    }
    if (n) qsort(s->sorted, count, sizeof *s->sorted, compare);
    return LIN_OK;
}

/* ---- passes ---------------------------------------------------------------------------------------------------------------- */

static void put_tokens(const lin_token_scorer *s, const int *tokens, int n, int row)
{
    const size_t D = (size_t)s->encoder->model->config.mel_bins;
    memset(s->features + (size_t)row * D, 0, (size_t)n * D * sizeof *s->features);
    for (int t = 0; t < n; t++) s->features[(size_t)(row + t) * D] = (float)tokens[t]; // a token is the sum of its row
}

static lin_status make_room(lin_token_scorer *s, int rows, lin_error *err)
{
    const lin_config *c = &s->encoder->model->config;
    const size_t n = (size_t)rows;
    LIN_TRY(lin_grow(&s->features, &s->room_features, n * (size_t)c->mel_bins, sizeof *s->features, "sequences", err));
    return lin_grow(&s->logp, &s->room_logp, n * (size_t)c->outputs, sizeof *s->logp, "sequences", err);
}

// Adds ln P of the next token of each sequence of the branch, whose rows begin at row `at` of the pass.
static void add_up(lin_token_scorer *s, const branch *b, int at)
{
    const size_t V = (size_t)s->encoder->model->config.outputs;
    for (int i = b->low; i < b->high; i++)
        for (int t = b->from; t < b->to; t++)
            s->sums[i] += (double)s->logp[(size_t)(at + t - b->from) * V + (size_t)s->sorted[i].tokens[t + 1]];
}

// Runs branches [n], which together have at most as many rows as the worker has room for.
static lin_status pass(lin_token_scorer *s, const branch *b, int n, lin_error *err)
{
    int offsets[LIN_WORKER_UTTERANCES + 1] = {0};
    float *states[LIN_WORKER_UTTERANCES];
    for (int i = 0; i < n; i++) {
        offsets[i + 1] = offsets[i] + b[i].to - b[i].from;
        states[i] = s->states + (size_t)b[i].low * s->encoder->state_count;
    }
    if (!offsets[n]) return LIN_OK;
    LIN_TRY(make_room(s, offsets[n], err));
    for (int i = 0; i < n; i++) put_tokens(s, s->sorted[b[i].low].tokens + b[i].from, b[i].to - b[i].from, offsets[i]);
    LIN_TRY(lin_worker_pass(s->worker, s->features, offsets, offsets, n, states, s->logp, err));
    for (int i = 0; i < n; i++) add_up(s, &b[i], offsets[i]);
    return LIN_OK;
}

// Divides a branch at its end into branches; sequences that end there are complete.
static int divide(lin_token_scorer *s, const branch *b, branch *to)
{
    const size_t floats = s->encoder->state_count;
    int n = 0, low = b->low;
    while (low < b->high && rows_of(&s->sorted[low]) == b->to) low++;
    for (int high; low < b->high; low = high) {
        for (high = low + 1; high < b->high && s->sorted[high].tokens[b->to] == s->sorted[low].tokens[b->to]; high++) continue;
        if (low != b->low) // the first branch takes over the state
            memcpy(s->states + (size_t)low * floats, s->states + (size_t)b->low * floats, floats * sizeof *s->states);
        to[n++] = (branch){low, high, b->to, agree(s, low, high, b->to)};
    }
    return n;
}

static lin_status run_tree(lin_token_scorer *s, int n, lin_error *err)
{
    const int most = s->encoder->pass_rows;
    branch *level = s->branches, *next = level + n;
    int branches = 1;
    memset(s->states, 0, s->encoder->state_count * sizeof *s->states);
    level[0] = (branch){0, n, 0, agree(s, 0, n, 0)};
    while (branches) {
        int more = 0;
        for (int i = 0, k, rows; i < branches; i = k) {
            for (k = i, rows = 0; k < branches && k - i < LIN_WORKER_UTTERANCES && rows < most; k++) {
                branch *b = &level[k];
                if (b->to - b->from > most - rows) b->to = b->from + most - rows; // continues in the next level
                rows += b->to - b->from;
            }
            LIN_TRY(pass(s, level + i, k - i, err));
        }
        for (int i = 0; i < branches; i++) more += divide(s, &level[i], next + more);
        branch *const done = level;
        level = next;
        next = done;
        branches = more;
    }
    return LIN_OK;
}

// Runs each sequence whole, several of them in a pass.
static lin_status run_whole(lin_token_scorer *s, int n, lin_error *err)
{
    for (int i = 0, k; i < n; i = k) {
        int offsets[LIN_WORKER_UTTERANCES + 1] = {0};
        for (k = i; k < n && k - i < LIN_WORKER_UTTERANCES && offsets[k - i] < LIN_HOST_ROWS; k++)
            offsets[k - i + 1] = offsets[k - i] + rows_of(&s->sorted[k]);
        LIN_TRY(make_room(s, offsets[k - i], err));
        for (int q = i; q < k; q++) put_tokens(s, s->sorted[q].tokens, rows_of(&s->sorted[q]), offsets[q - i]);
        LIN_TRY(lin_encoder_run(s->worker, s->features, offsets, k - i, s->logp, err));
        for (int q = i; q < k; q++) add_up(s, &(branch){q, q + 1, 0, rows_of(&s->sorted[q])}, offsets[q - i]);
    }
    return LIN_OK;
}

lin_status lin_token_scorer_run(lin_token_scorer *s, const int *tokens, const int *offsets, int n, double *logp, lin_error *err)
{
    assert(n >= 0);
    LIN_TRY(take(s, tokens, offsets, n, err));
    if (n) LIN_TRY(s->keeps ? run_tree(s, n, err) : run_whole(s, n, err));
    for (int i = 0; i < n; i++) logp[s->sorted[i].number] = s->sums[i];
    return LIN_OK;
}
