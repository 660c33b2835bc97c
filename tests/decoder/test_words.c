// decoder/words.c: against brute force over all sequences of words and alignments.
#include "tests/decoder/words_truth.h"

static sequence *all; // room for what brute force finds

typedef struct search {
    lin_ngram *lm;
    lin_tree *tree;
    lin_words *words;
    lin_word_context *context;
    void *state;
} search;

static void begin(search *s, const world *w, const lin_words_options *o, int with_lm, int with_context)
{
    *s = (search){0};
    if (with_lm) s->lm = world_lm(w);
    OK(lin_tree_create_list(w->entries, w->n_prons, w->V, s->lm, NULL, &s->tree, &err));
    OK(lin_words_create(s->tree, s->lm, o, &s->words, &err));
    s->state = test_buffer(lin_words_bytes(s->words), 1);
    lin_words_reset(s->words, s->state, 0);
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

static void end(search *s)
{
    if (s->state) test_guards(s->state, "a state of words");
    test_buffer_free(s->state);
    lin_word_context_destroy(s->context);
    lin_words_destroy(s->words);
    lin_tree_destroy(s->tree);
    lin_ngram_destroy(s->lm);
}

static lin_words_options exhaustive(void)
{
    lin_words_options o = lin_words_options_default();
    o.width = 4096;
    o.score = 0;
    o.labels = 0;
    o.blank = 0;
    o.rivals = LIN_WORDS_MAX;
    o.n_best = 20;
    o.longest = LIN_WORDS_LONGEST_MAX;
    return o;
}

// Options, language model and context of a case.
typedef struct variant {
    lin_words_options o;
    int lm, context;
} variant;

static variant draw_variant(uint64_t seed)
{
    drawn d = {seed, 1000000};
    variant v = {exhaustive(), below(&d, 3) > 0, below(&d, 2)};
    v.o.lm_weight = 0.25 * (1 + below(&d, 6));
    v.o.bonus = 0.5 * (below(&d, 7) - 3);
    v.o.unknown = below(&d, 2) ? -INFINITY : -0.5 * (1 + below(&d, 10));
    v.o.unknown_phone = -0.5 * below(&d, 6);
    return v;
}

static void draw_case(uint64_t seed, world *w, variant *v, truth *t)
{
    draw_world(w, seed);
    *v = draw_variant(seed);
    if (v->o.unknown > -INFINITY && w->T > 4) w->T = 4;
    *t = (truth){.w = w, .o = &v->o, .with_lm = v->lm, .with_context = v->context, .found = all};
    find_truth(t);
}

static void check_shape(const lin_path *p, int64_t from, int64_t to)
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

// With an exhaustive beam and no recombination: the best sequences and their scores, exactly.
START_TEST(test_truth)
{
    for (uint64_t seed = (uint64_t)_i * 40; seed < (uint64_t)_i * 40 + 40; seed++) {
        static world w;
        variant v;
        truth t;
        search s;
        lin_path none = {0}, found = {0};
        draw_case(seed, &w, &v, &t);
        begin(&s, &w, &v.o, v.lm, v.context);
        OK(lin_words_push(s.words, s.state, s.context, w.logp, w.T, &none, &err));
        OK(lin_words_finish(s.words, s.state, s.context, NULL, &err));
        const int n = lin_words_hypotheses(s.words, s.state);
        test_require(n == (t.n < 20 ? t.n : 20), "seed %d: %d hypotheses of %d", (int)seed, n, t.n);
        for (int i = 0; i < n; i++) {
            OK(lin_words_nbest(s.words, s.state, i, &found, &err));
            const sequence *is = &t.found[truth_of(&t, &found)];
            test_require(fabs(found.score - t.found[i].total) < 1e-5, "seed %d: hypothesis %d has score %.9g, not %.9g", (int)seed, i,
                         found.score, t.found[i].total);
            test_require(fabs(found.score - is->total) < 1e-5 && fabs(found.acoustic - is->acoustic) < 1e-5 &&
                             fabs(found.language - is->language) < 1e-5,
                         "seed %d: hypothesis %d has scores %.9g %.9g %.9g, its words %.9g %.9g %.9g", (int)seed, i, found.score,
                         found.acoustic, found.language, is->total, is->acoustic, is->language);
            check_shape(&found, 0, w.T);
        }
        FAILS(lin_words_nbest(s.words, s.state, n, &found, &err), LIN_INVALID, "there is no hypothesis");
        ck_assert_int_eq(none.n_words, 0);
        lin_path_free(&none);
        lin_path_free(&found);
        end(&s);
    }
}
END_TEST

static void setup(void)
{
    all = malloc(sizeof *all * FOUND_MAX);
    ck_assert_ptr_nonnull(all);
}

static void teardown(void) { free(all); }

int main(void)
{
    Suite *suite = suite_create("decoder/words");
    TCase *brute = tcase_create("brute force");
    tcase_add_checked_fixture(brute, setup, teardown);
    tcase_add_loop_test(brute, test_truth, 0, 10);
    suite_add_tcase(suite, brute);
    return test_run(suite);
}
