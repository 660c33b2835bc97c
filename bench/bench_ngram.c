/*
 * bench_ngram.c - a language model: seconds to read its ARPA file, bytes and milliseconds of the packed one, nanoseconds per
 * query.
 *
 *   build/release/bench/bench_ngram MODEL.arpa[.gz]
 *
 * Queries: random words and states (every one reads cold memory), and walks along the model's own n-grams. Best of five.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"
#include "lexicon/ngram_file.h"

enum { ROUNDS = 5, QUERIES = 2000000 };

typedef struct query {
    lin_ngram_state state;
    int word;
} query;

static int die(const lin_error *err)
{
    fprintf(stderr, "bench_ngram: %s\n", err->message);
    return 1;
}

// Nanoseconds per query; `follow`: from the state that the previous query gave.
static double time_queries(const lin_ngram *lm, const query *queries, int follow)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = lin_now_cpu();
        lin_ngram_state state = lin_ngram_begin(lm), next;
        for (size_t i = 0; i < QUERIES; i++) {
            lin_ngram_score(lm, follow ? state : queries[i].state, queries[i].word, &next);
            state = next;
        }
        best = fmin(best, lin_now_cpu() - start);
    }
    return 1e9 * best / QUERIES;
}

static void draw_random(const lin_ngram *lm, query *queries)
{
    for (uint64_t i = 0; i < QUERIES; i++) {
        queries[i].state = lin_random_below(1, 2 * i, lin_ngram_states(lm));
        queries[i].word = (int)lin_random_below(1, 2 * i + 1, (uint32_t)lin_ngram_words(lm));
    }
}

// Each next word is one of those that the model has after the present context, or any if it has none.
static void draw_walk(const lin_ngram *lm, query *queries)
{
    lin_ngram_state state = lin_ngram_begin(lm);
    for (uint64_t i = 0; i < QUERIES; i++) {
        uint32_t first = 0, end = 0, draw = (uint32_t)(lin_random_bits(2, i) >> 32);
        int k = state ? lin_ngram_state_level(lm, state) : 0;
        if (state) lin_ngram_children(lm, k, state, &first, &end);
        queries[i].word = end > first ? (int)lin_ngram_gram_word(lm, k + 1, first + draw % (end - first))
                                      : (int)(draw % (uint32_t)lin_ngram_words(lm));
        lin_ngram_score(lm, state, queries[i].word, &state);
    }
}

int main(int argc, char **argv)
{
    lin_error err = {0};
    lin_ngram *lm, *packed;
    if (argc < 2) {
        printf("bench_ngram MODEL.arpa[.gz]: no model given, nothing measured\n");
        return 0;
    }
    double read_s = 1e9, open_s = 1e9, start;
    for (int round = 0; round < ROUNDS; round++) {
        start = lin_now_cpu();
        if (lin_ngram_open(argv[1], &lm, &err)) return die(&err);
        read_s = fmin(read_s, lin_now_cpu() - start);
        if (round + 1 < ROUNDS) lin_ngram_destroy(lm);
    }
    char path[64];
    snprintf(path, sizeof path, "/tmp/bench_ngram.%ld.lm", (long)getpid());
    start = lin_now_cpu();
    if (lin_ngram_write(lm, path, &err)) return die(&err);
    double write_s = lin_now_cpu() - start;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        start = lin_now_cpu();
        if (lin_ngram_open(path, &packed, &err)) return die(&err);
        open_s = fmin(open_s, lin_now_cpu() - start);
        if (round + 1 < 2 * ROUNDS) lin_ngram_destroy(packed);
    }
    printf("read\t%.2f s\tpacked %.2f MB\twritten %.0f ms\topened %.2f ms\t%u states\n", read_s, (double)packed->size / 1e6,
           1e3 * write_s, 1e3 * open_s, (unsigned)lin_ngram_states(lm));
    for (int k = 1; k <= lin_ngram_order(lm); k++)
        printf("order %d\t%lld n-grams\t%u inner\tcodes of %u and %u bits\n", k, (long long)lin_ngram_count(lm, k),
               (unsigned)lm->levels[k].inner, lm->levels[k].logp_bits, lm->levels[k].backoff_bits);
    query *queries = lin_alloc(QUERIES, sizeof *queries);
    if (!queries) return 1;
    draw_random(packed, queries);
    printf("random\t%.0f ns a query\n", time_queries(packed, queries, 0));
    draw_walk(packed, queries);
    printf("walks\t%.0f ns a query\n", time_queries(packed, queries, 1));
    unlink(path);
    lin_free(queries);
    lin_ngram_destroy(packed);
    lin_ngram_destroy(lm);
    return 0;
}
