/*
 * bench_words.c - the time of the word search per row, and its words.
 *
 *   build/release/bench/bench_words [-o NAME=VALUE]... [-s SECONDS] [-t OUT] DICTIONARY LM|- FILE.npy...
 *
 * The rows of each file (linnet posteriors) are SECONDS apart (default 0.03). Options are those of decoder/words.h. OUT receives
 * the words as Kaldi text, with the files' names, for linnet score --name WER. Without arguments nothing is measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/npy.h"
#include "decoder/words.h"

static void quit(const lin_error *err)
{
    fprintf(stderr, "bench_words: %s\n", err->message);
    exit(1);
}

static void set_option(lin_words_options *o, const char *text)
{
    const char *equals = strchr(text, '=');
    const double value = equals ? atof(equals + 1) : 0;
    const size_t n = equals ? (size_t)(equals - text) : 0;
    const struct {
        const char *name;
        int *whole;
        double *number;
    } table[] = {{"width", &o->width, NULL},         {"score", NULL, &o->score},
                 {"labels", &o->labels, NULL},       {"blank", NULL, &o->blank},
                 {"lm_weight", NULL, &o->lm_weight}, {"bonus", NULL, &o->bonus},
                 {"unknown", NULL, &o->unknown},     {"unknown_phone", NULL, &o->unknown_phone},
                 {"rivals", &o->rivals, NULL},       {"n_best", &o->n_best, NULL},
                 {"longest", &o->longest, NULL}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strlen(table[i].name) != n || memcmp(table[i].name, text, n)) continue;
        if (table[i].whole) *table[i].whole = (int)value;
        else *table[i].number = value;
        return;
    }
    fprintf(stderr, "bench_words: no option %s\n", text);
    exit(2);
}

static void print_words(FILE *out, const lin_words *words, const char *path, const lin_path *found)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    fprintf(out, "%.*s", (int)strcspn(name, "."), name);
    for (int i = 0; i < found->n_words; i++) {
        const char *text = lin_words_text(words, NULL, found->words[i].word);
        fprintf(out, " %s", text ? text : "<unk>");
    }
    fputc('\n', out);
}

typedef struct totals {
    double seconds, score;
    long rows;
} totals;

// One file, in parts of four rows like a live stream.
static void decode(const lin_words *words, void *state, const char *path, FILE *out, totals *sum)
{
    lin_error err = {0};
    lin_path found = {0};
    float *logp;
    size_t T;
    int V;
    if (lin_npy_read(path, &logp, &T, &V, &err)) quit(&err);
    const double begin = lin_now_cpu();
    lin_words_reset(words, state, 0);
    for (size_t at = 0; at < T; at += 4) {
        const int n = T - at < 4 ? (int)(T - at) : 4;
        if (lin_words_push(words, state, NULL, logp + at * (size_t)V, n, &found, &err)) quit(&err);
    }
    if (lin_words_finish(words, state, NULL, &found, &err)) quit(&err);
    sum->seconds += lin_now_cpu() - begin;
    sum->rows += (long)T;
    sum->score += found.score;
    if (out) print_words(out, words, path, &found);
    lin_path_free(&found);
    lin_free(logp);
}

int main(int argc, char **argv)
{
    lin_words_options o = lin_words_options_default();
    double row_s = 0.03;
    FILE *out = NULL;
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-' && argv[at][1]; at += 2) {
        if (argv[at][1] == 'o') set_option(&o, argv[at + 1]);
        else if (argv[at][1] == 's') row_s = atof(argv[at + 1]);
        else if (argv[at][1] == 't') out = fopen(argv[at + 1], "w");
    }
    if (argc - at < 3) {
        puts("words\tnot measured: bench_words DICTIONARY LM|- FILE.npy...");
        return 0;
    }
    lin_error err = {0};
    lin_phones *phones;
    lin_dictionary *dictionary;
    lin_ngram *lm = NULL;
    lin_tree *tree;
    lin_words *words;
    totals sum = {0};
    if (lin_phones_create(NULL, &phones, &err)) quit(&err);
    if (lin_dictionary_load(argv[at], phones, NULL, &dictionary, &err)) quit(&err);
    if (strcmp(argv[at + 1], "-") != 0 && lin_ngram_open(argv[at + 1], &lm, &err)) quit(&err);
    double begin = lin_now_cpu();
    if (lin_tree_create(dictionary, phones, lm, NULL, &tree, &err)) quit(&err);
    printf("tree\t%d words, %d pronunciations, %d nodes, %d words left out\t%.3f s\t%.1f MB\n", lin_tree_words(tree),
           lin_tree_pronunciations(tree), lin_tree_nodes(tree), lin_tree_left_out(tree), lin_now_cpu() - begin,
           1e-6 * (double)lin_tree_bytes(tree));
    if (lin_words_create(tree, lm, &o, &words, &err)) quit(&err);
    void *state = lin_alloc(lin_words_bytes(words), 1);
    if (!state) return 1;
    for (int i = at + 2; i < argc; i++) decode(words, state, argv[i], out, &sum);
    printf("words\t%ld rows\t%.1f us/row\t%.2f %% of real time\t%.0f KB of state\t(score %.3f)\n", sum.rows,
           1e6 * sum.seconds / (double)sum.rows, 100 * sum.seconds / ((double)sum.rows * row_s),
           1e-3 * (double)lin_words_bytes(words), sum.score);
    if (out) fclose(out);
    lin_free(state);
    lin_words_destroy(words);
    lin_tree_destroy(tree);
    lin_ngram_destroy(lm);
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    return 0;
}
