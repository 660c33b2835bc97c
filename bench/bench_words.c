/*
 * bench_words.c - the time of the word search per row, and its words.
 *
 *   build/release/bench/bench_words [-o NAME=VALUE]... [-s SECONDS] [-t OUT] DICTIONARY LM|- FILE.npy...
 *
 * The rows of each file (linnet posteriors) are SECONDS apart (default 0.03). Options are those of decoder/words.h. OUT receives
 * the words as Kaldi text, with the files' names, for linnet score --name WER. -d 1 measures too, row by row, how long after a
 * word's end it is settled, and how many provisional words were taken back for each final one. Without arguments nothing is
 * measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "base/memory.h"
#include "train/lab/npy.h"
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
                 {"settle", NULL, &o->settle},       {"wait", &o->wait, NULL},
                 {"blank_penalty", NULL, &o->blank_penalty},
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

// Delays of words in rows: how many words were settled that many rows after their end.
enum { LATEST = 1000 };
typedef struct totals {
    double seconds, score;
    long rows, words, taken_back;
    long delays[LATEST];
} totals;

// Rows that the given part of all words waited at most.
static int delay(const totals *sum, double part)
{
    long n = 0;
    int rows = 0;
    for (; rows < LATEST - 1 && (double)(n += sum->delays[rows]) < part * (double)sum->words; rows++)
        ;
    return rows;
}

// The words of a path from number `from` on were settled when so many rows were there.
static void count_delays(const lin_path *found, int from, int64_t rows, totals *sum)
{
    for (; from < found->n_words; from++, sum->words++) {
        const int64_t late = rows - found->words[from].end;
        sum->delays[late < 0 ? 0 : late < LATEST ? late : LATEST - 1]++;
    }
}

// After a push: the words that were settled by it, and those shown before that are not shown now.
static void watch(const lin_words *words, void *state, const lin_path *found, int n_before, int64_t row, lin_path *shown,
                  totals *sum)
{
    lin_error err = {0};
    lin_path tail = {0};
    count_delays(found, n_before, row, sum);
    if (lin_words_nbest(words, state, 0, &tail, &err)) quit(&err);
    const int n_tail = tail.n_words - (tail.n_words > 0 && tail.words[tail.n_words - 1].word == LIN_WORD_UNKNOWN);
    int same = 0; // words of `shown`, which was behind the first n_before
    for (; same < shown->n_words; same++) {
        const int at = n_before + same;
        const int settled = at < found->n_words;
        if (!settled && at - found->n_words >= n_tail) break;
        if (shown->words[same].word != (settled ? found->words[at].word : tail.words[at - found->n_words].word)) break;
    }
    sum->taken_back += shown->n_words - same;
    tail.n_words = n_tail;
    lin_path_free(shown);
    *shown = tail;
}

// One file, in parts of four rows like a live stream.
static void decode(const lin_words *words, void *state, const char *path, FILE *out, int watched, totals *sum)
{
    lin_error err = {0};
    lin_path found = {0}, shown = {0};
    float *logp;
    size_t T;
    int V;
    if (lin_npy_read(path, &logp, &T, &V, &err)) quit(&err);
    const double begin = lin_now_cpu();
    lin_words_reset(words, state, 0);
    const size_t part = watched ? 1 : 4;
    for (size_t at = 0; at < T; at += part) {
        const int n = T - at < part ? (int)(T - at) : (int)part, n_before = found.n_words;
        if (lin_words_push(words, state, NULL, logp + at * (size_t)V, n, &found, &err)) quit(&err);
        if (watched) watch(words, state, &found, n_before, (int64_t)at + n, &shown, sum);
    }
    const int n_before = found.n_words;
    if (lin_words_finish(words, state, NULL, &found, &err)) quit(&err);
    if (watched) count_delays(&found, n_before, (int64_t)T, sum);
    lin_path_free(&shown);
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
    int at = 1, watched = 0;
    for (; at + 1 < argc && argv[at][0] == '-' && argv[at][1]; at += 2) {
        if (argv[at][1] == 'o') set_option(&o, argv[at + 1]);
        else if (argv[at][1] == 's') row_s = atof(argv[at + 1]);
        else if (argv[at][1] == 'd') watched = atoi(argv[at + 1]);
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
    printf("tree\t%d words, %d pronunciations, %d nodes, %d words left out\t%.3f s\n", tree->words.n, tree->n_ends,
           tree->n_nodes, tree->n_left_out, lin_now_cpu() - begin);
    if (lin_words_create(tree, lm, &o, &words, &err)) quit(&err);
    void *state = lin_alloc(lin_words_bytes(words), 1);
    if (!state) return 1;
    for (int i = at + 2; i < argc; i++) decode(words, state, argv[i], out, watched, &sum);
    printf("words\t%ld rows\t%.1f us/row\t%.2f %% of real time\t%.0f KB of state\t(score %.3f)\n", sum.rows,
           1e6 * sum.seconds / (double)sum.rows, 100 * sum.seconds / ((double)sum.rows * row_s),
           1e-3 * (double)lin_words_bytes(words), sum.score);
    if (watched)
        printf("settled\t%ld words\t%.2f s after its end at the median, %.2f at the 95th percentile\t%.2f withdrawn for each\n",
               sum.words, row_s * delay(&sum, 0.5), row_s * delay(&sum, 0.95), (double)sum.taken_back / (double)sum.words);
    if (out) fclose(out);
    lin_free(state);
    lin_words_destroy(words);
    lin_tree_destroy(tree);
    lin_ngram_destroy(lm);
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    return 0;
}
