/*
 * words_case.h - searches over the random cases of words_truth.h and over a hand-made lexicon, for the tests of decoder/words.
 */
#ifndef LIN_TESTS_DECODER_WORDS_CASE_H
#define LIN_TESTS_DECODER_WORDS_CASE_H

#include "decoder/words_internal.h"
#include "lexicon/grammar.h"
#include "tests/decoder/words_truth.h"

static sequence *all; // space for the sequences that brute force finds

typedef struct search {
    lin_ngram *lm;
    lin_grammar *grammar;
    lin_tree *tree;
    lin_words *words;
    lin_word_context *context;
    void *state;
    lin_path settled, found; // by pushes and by the end; the hypothesis that was read last
} search;

// Over these words, with the language model or the grammar that the search has; least: of the grammar.
SUPPORT void begin_with(search *s, const lin_tree_entry *entries, int n, int V, const lin_words_options *o, double least,
                        int first_frame)
{
    OK(lin_tree_create_list(entries, n, V, s->lm, 1, &s->tree, &err));
    if (s->grammar) OK(lin_grammar_bind(s->grammar, s->tree, &err));
    OK(s->grammar ? lin_words_create_grammar(s->tree, s->grammar, least, o, &s->words, &err)
                  : lin_words_create(s->tree, s->lm, o, &s->words, &err));
    s->state = test_buffer(lin_words_bytes(s->words), 1);
    lin_words_reset(s->words, s->state, first_frame);
}

SUPPORT void begin(search *s, const world *w, const lin_words_options *o, int with_lm, int with_context)
{
    *s = (search){0};
    if (with_lm) s->lm = world_lm(w);
    begin_with(s, w->entries, w->n_prons, w->V, o, 0, 0);
    if (!with_context) return;
    lin_word_phrase phrases[4];
    char texts[4][40];
    for (int i = 0; i < w->n_phrases; i++) {
        texts[i][0] = '\0';
        for (int k = 0; k < w->phrase_n[i]; k++) {
            strcat(texts[i], k ? " " : "");
            strcat(texts[i], w->names[w->phrase[i][k]]);
        }
        phrases[i] = (lin_word_phrase){texts[i], w->phrase_bonus[i]};
    }
    OK(lin_word_context_create(s->tree, phrases, w->n_phrases, NULL, &s->context, &err));
}

SUPPORT void end(search *s)
{
    if (s->state) test_guards(s->state, "a state of words");
    test_buffer_free(s->state);
    lin_path_free(&s->settled);
    lin_path_free(&s->found);
    lin_word_context_destroy(s->context);
    lin_words_destroy(s->words);
    lin_tree_destroy(s->tree);
    lin_grammar_destroy(s->grammar);
    lin_ngram_destroy(s->lm);
}

SUPPORT void feed(search *s, const float *logp, int T)
{
    OK(lin_words_push(s->words, s->state, s->context, logp, T, &s->settled, &err));
}

SUPPORT void finish(search *s) { OK(lin_words_finish(s->words, s->state, s->context, &s->settled, &err)); }

SUPPORT const lin_path *read_nbest(search *s, int i)
{
    OK(lin_words_nbest(s->words, s->state, i, &s->found, &err));
    return &s->found;
}

SUPPORT void check_state(const search *s) { OK(lin_words_check(s->words, s->state, lin_words_bytes(s->words), &err)); }

SUPPORT int count_hypotheses(const search *s) { return lin_words_hypotheses(s->words, s->state); }

SUPPORT lin_words_options exhaustive(void)
{
    lin_words_options o = lin_words_options_default();
    o.width = 4096;
    o.score = 0;
    o.labels = 0;
    o.blank = 0;
    o.n_best = 20;
    o.longest = LIN_WORDS_LONGEST_MAX;
    return o;
}

// Options, language model and context of a case.
typedef struct variant {
    lin_words_options o;
    int lm, context;
} variant;

SUPPORT variant draw_variant(uint64_t seed)
{
    drawn d = {seed, 1000000};
    variant v = {exhaustive(), below(&d, 3) > 0, below(&d, 2)};
    v.o.lm_weight = 0.25 * (1 + below(&d, 6));
    v.o.bonus = 0.5 * (below(&d, 7) - 3);
    v.o.unknown = below(&d, 2) ? -INFINITY : -0.5 * (1 + below(&d, 10));
    v.o.unknown_phone = -0.5 * below(&d, 6);
    v.o.blank_penalty = 0.75 * below(&d, 3);
    return v;
}

// Longer inputs than brute force can handle, with all kinds of pruning.
SUPPORT variant draw_stream(world *w, float *logp, int T, uint64_t seed)
{
    drawn d = {seed, 2000000};
    draw_world(w, seed);
    variant v = draw_variant(seed);
    v.o.width = 1 + below(&d, 40);
    v.o.score = below(&d, 2) ? 0 : 8;
    v.o.labels = below(&d, 3);
    v.o.blank = below(&d, 2) ? 0 : 0.7;
    (void)below(&d, 2); // unused; without it all later draws, for which the limits of the tests were chosen, would be others
    v.o.n_best = below(&d, 2) ? 1 : 5;
    v.o.longest = 1 + below(&d, 30);
    draw_rows(logp, T, w->V, &d, 8);
    v.o.gap = below(&d, 2) * (1 + below(&d, 4));
    v.o.settle = below(&d, 2) * (1 + below(&d, 8));
    v.o.wait = 1 + below(&d, 60);
    return v;
}

SUPPORT void draw_case(uint64_t seed, world *w, variant *v, truth *t)
{
    draw_world(w, seed);
    *v = draw_variant(seed);
    if (v->o.unknown > -INFINITY && w->T > 4) w->T = 4;
    *t = (truth){.w = w, .o = &v->o, .with_lm = v->lm, .with_context = v->context, .found = all};
    find_truth(t);
}

SUPPORT void check_shape(const lin_path *p, int64_t from, int64_t to)
{
    int phone = 0;
    int64_t at = from;
    for (int i = 0; i < p->n_words; i++) {
        const lin_path_word *word = &p->words[i];
        ck_assert_int_eq(word->first_phone, phone);
        ck_assert_int_ge(word->n_phones, 1);
        ck_assert(word->confidence > 0 && word->confidence <= 1);
        ck_assert_int_eq(word->start, p->phones[phone].start);
        for (int k = 0; k < word->n_phones; k++, phone++) {
            ck_assert_int_ge(p->phones[phone].start, at);
            ck_assert_int_gt(p->phones[phone].end, p->phones[phone].start);
            ck_assert(p->phones[phone].confidence > 0 && p->phones[phone].confidence <= 1);
            at = p->phones[phone].end;
        }
        ck_assert_int_eq(word->end, at);
    }
    ck_assert_int_eq(phone, p->n_phones);
    ck_assert_int_le(at, to);
}

/* ---- by hand --------------------------------------------------------------------------------------------------------------- */

enum { HAND_V = 5 };

// Rows with one label each, of probability 0.9.
SUPPORT int say(float *logp, const char *labels)
{
    int T = 0;
    for (; labels[T]; T++) {
        for (int v = 0; v < HAND_V; v++) logp[T * HAND_V + v] = (float)log(v == labels[T] - '0' ? 0.9 : 0.025);
    }
    return T;
}

static const int hand_labels[][3] = {{1, 2, 0}, {2, 3, 0}, {2, 2, 0}, {1, 2, 0}, {3, 0, 0}, {1, 2, 3}};
static const lin_tree_entry hand_words[] = {
    {"ab", hand_labels[0], 2, 0, 0},   {"bc", hand_labels[1], 2, 0, 0}, {"bb", hand_labels[2], 2, 0, 0},
    {"ab's", hand_labels[3], 2, 0, 0}, {"c", hand_labels[4], 1, 0, 0},  {"abc", hand_labels[5], 3, 0, 0}};

SUPPORT void by_hand(search *s, const lin_words_options *o, const char *arpa)
{
    *s = (search){0};
    if (arpa) OK(lin_ngram_parse(arpa, strlen(arpa), "hand", &s->lm, &err));
    begin_with(s, hand_words, 6, HAND_V, o, 0, 100);
}

SUPPORT lin_words_options plain(void)
{
    lin_words_options o = lin_words_options_default();
    o.bonus = 0;
    o.blank_penalty = 0;
    o.unknown = -10;
    o.unknown_phone = -1;
    return o;
}

SUPPORT void setup(void)
{
    all = malloc(sizeof *all * FOUND_MAX);
    ck_assert_ptr_nonnull(all);
}

SUPPORT void teardown(void) { free(all); }

#endif
