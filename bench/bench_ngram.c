/*
 * bench_ngram.c - a language model: seconds to read its ARPA file, bytes and milliseconds of the packed one, nanoseconds per
 * query.
 *
 *   build/release/bench/bench_ngram MODEL.arpa[.gz] [TEXT]
 *
 * Queries: random words and states (every one reads cold memory), walks along the model's own n-grams, and, if a text is
 * given, its lines (lower-cased words from <s> to </s>; words that the model lacks start a new context) with the perplexity. Best
 * of five.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/textfile.h"
#include "lexicon/ngram_file.h"

enum { ROUNDS = 5, QUERIES = 2000000 };

typedef struct query {
    lin_ngram_state state;
    int word; // -1: the next query begins at <s>, and this is no query
} query;

static int die(const lin_error *err)
{
    fprintf(stderr, "bench_ngram: %s\n", err->message);
    return 1;
}

// Nanoseconds per query; `follow`: from the state that the previous query gave.
static double time_queries(const lin_ngram *lm, const query *queries, size_t n, int follow, double *sum)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = lin_now_cpu();
        lin_ngram_state state = lin_ngram_begin(lm), next;
        *sum = 0;
        for (size_t i = 0; i < n; i++) {
            if (queries[i].word < 0) {
                state = lin_ngram_begin(lm);
                continue;
            }
            *sum += (double)lin_ngram_score(lm, follow ? state : queries[i].state, queries[i].word, &next);
            state = next;
        }
        best = fmin(best, lin_now_cpu() - start);
    }
    return 1e9 * best / (double)n;
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

static int time_text(const lin_ngram *lm, const char *path)
{
    lin_error err = {0};
    char *text, word[256];
    size_t n, n_queries = 0, n_words = 0;
    if (lin_text_read(path, &text, &n, &err)) return die(&err);
    query *queries = lin_alloc(n + 2, sizeof *queries); // no more words than bytes
    if (!queries) return 1;
    lin_lines lines = {0};
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *field;
        size_t n_field;
        queries[n_queries++].word = -1;
        while (lin_field_next(&at, lines.text + lines.n, &field, &n_field)) {
            for (size_t i = 0; i < n_field && i < sizeof word; i++) word[i] = lin_lower(field[i]);
            queries[n_queries].word = n_field <= sizeof word ? lin_ngram_find(lm, word, n_field) : -1;
            n_words += queries[n_queries++].word >= 0;
        }
        queries[n_queries].word = lin_ngram_find(lm, "</s>", 4);
        n_words += queries[n_queries++].word >= 0;
    }
    double sum, ns = time_queries(lm, queries, n_queries, 1, &sum);
    printf("text\t%zu words that the model has\t%.0f ns a query\tperplexity %.4f\n", n_words, ns, exp(-sum / (double)n_words));
    lin_free(queries);
    lin_free(text);
    return 0;
}

int main(int argc, char **argv)
{
    lin_error err = {0};
    lin_ngram *lm, *packed;
    if (argc < 2) {
        printf("bench_ngram MODEL.arpa[.gz] [TEXT]: no model given, nothing measured\n");
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
    double sum;
    draw_random(packed, queries);
    printf("random\t%.0f ns a query\n", time_queries(packed, queries, QUERIES, 0, &sum));
    draw_walk(packed, queries);
    printf("walks\t%.0f ns a query\n", time_queries(packed, queries, QUERIES, 1, &sum));
    int status = argc > 2 ? time_text(packed, argv[2]) : 0;
    unlink(path);
    lin_free(queries);
    lin_ngram_destroy(packed);
    lin_ngram_destroy(lm);
    return status;
}
