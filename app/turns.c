// turns.c - what several speakers say as one transcript; see turns.h.

#include "app/turns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const double PAUSE_S = 0.5, LONG_PAUSE_S = 2;

// Words, or phones where none were looked for, of one result without a pause between them.
typedef struct piece {
    int of, first, n;
    double start_s, end_s;
} piece;

typedef struct pieces {
    piece *items;
    int n, capacity;
} pieces;

static double start_of(const lin_result *r, int i) { return r->has_words ? r->words[i].start_s : r->phones[i].start_s; }
static double end_of(const lin_result *r, int i) { return r->has_words ? r->words[i].end_s : r->phones[i].end_s; }

static lin_status add_pieces(pieces *p, const lin_result *r, int of, lin_error *err)
{
    const int n = r->has_words ? r->n_words : r->n_phones;
    for (int i = 0; i < n; i++) {
        piece *last = p->n ? &p->items[p->n - 1] : NULL;
        if (i && start_of(r, i) - last->end_s < PAUSE_S) {
            last->n++;
            last->end_s = fmax(last->end_s, end_of(r, i));
            continue;
        }
        lin_status status = lin_grow_int(&p->items, &p->capacity, (int64_t)p->n + 1, sizeof *p->items, "turns", err);
        if (status != LIN_OK) return status;
        p->items[p->n++] = (piece){of, i, 1, start_of(r, i), end_of(r, i)};
    }
    return LIN_OK;
}

static int by_time(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
    return x->of != y->of ? (x->of > y->of) - (x->of < y->of) : (x->first > y->first) - (x->first < y->first);
}

// Pieces of one speaker that nobody interrupts become one.
static void join(pieces *p)
{
    int kept = 0;
    for (int i = 0; i < p->n; i++) {
        piece *last = kept ? &p->items[kept - 1] : NULL;
        const piece *now = &p->items[i];
        if (last && last->of == now->of && now->start_s - last->end_s < LONG_PAUSE_S) {
            last->n += now->n;
            last->end_s = fmax(last->end_s, now->end_s);
        } else {
            p->items[kept++] = *now;
        }
    }
    p->n = kept;
}

static lin_status add_turn(lin_turns *t, const char *name, const lin_result *from, const piece *p, double until_s, lin_error *err)
{
    char id[512];
    const int before = t->capacity;
    lin_status status = lin_grow_int(&t->items, &t->capacity, (int64_t)t->n + 1, sizeof *t->items, "turns", err);
    if (status != LIN_OK) return status;
    memset(t->items + before, 0, (size_t)(t->capacity - before) * sizeof *t->items);
    lin_turn *turn = &t->items[t->n];
    snprintf(id, sizeof id, "%.300s-%.100s-%04d", name, from->speaker, t->n + 1);
    for (char *c = id; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 127 || *c == '(' || *c == ')') *c = '_'; // TRN and CTM cannot hold them
    status = lin_result_begin(&turn->result, id, from->speaker, from->channel, err);
    if (status == LIN_OK) status = lin_result_append_part(&turn->result, from, p->first, p->n, err);
    turn->result.seconds = from->seconds;
    turn->start_s = p->start_s;
    turn->end_s = p->end_s;
    turn->until_s = fmax(until_s, p->end_s);
    t->n += status == LIN_OK;
    return status;
}

lin_status lin_turns_make(lin_turns *t, const char *name, const lin_result *const *results, int n, lin_error *err)
{
    pieces p = {0};
    lin_status status = LIN_OK;
    t->n = 0;
    for (int i = 0; i < n && status == LIN_OK; i++) status = add_pieces(&p, results[i], i, err);
    if (p.n) qsort(p.items, (size_t)p.n, sizeof *p.items, by_time);
    join(&p);
    for (int i = 0; i < p.n && status == LIN_OK; i++)
        status = add_turn(t, name, results[p.items[i].of], &p.items[i], i + 1 < p.n ? p.items[i + 1].start_s : INFINITY, err);
    lin_free(p.items);
    return status;
}

void lin_turns_free(lin_turns *t)
{
    for (int i = 0; i < t->capacity; i++) lin_result_free(&t->items[i].result);
    lin_free(t->items);
    *t = (lin_turns){0};
}
