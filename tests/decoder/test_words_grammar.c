// decoder/words.c with a grammar: against brute force over the sentences of random grammars.
#include <math.h>

#include "tests/decoder/words_case.h"

/* ---- random grammars, and the sentences that they mean by definition ------------------------------------------------------- */

enum { SENTENCES_MOST = 400, WORDS_MOST = 6, TEXT_MOST = 4000 };

typedef struct sentence {
    int n, words[WORDS_MOST];
} sentence;

// Longer sentences than fit into the rows are left out.
typedef struct language {
    int n;
    sentence of[SENTENCES_MOST];
} language;

static int contains(const language *l, const int *words, int n)
{
    for (int i = 0; i < l->n; i++)
        if (l->of[i].n == n && !memcmp(l->of[i].words, words, sizeof(int) * (size_t)n)) return 1;
    return 0;
}

static void add_sentence(language *l, const sentence *s)
{
    if (contains(l, s->words, s->n)) return;
    test_require(l->n < SENTENCES_MOST, "more sentences than fit");
    l->of[l->n++] = *s;
}

static void unite(language *l, const language *more)
{
    for (int i = 0; i < more->n; i++) add_sentence(l, &more->of[i]);
}

static void append(language *l, const language *then)
{
    language both = {0};
    for (int i = 0; i < l->n; i++) {
        for (int k = 0; k < then->n; k++) {
            sentence s = l->of[i];
            if (s.n + then->of[k].n > WORDS_MOST) continue;
            memcpy(s.words + s.n, then->of[k].words, sizeof(int) * (size_t)then->of[k].n);
            s.n += then->of[k].n;
            add_sentence(&both, &s);
        }
    }
    *l = both;
}

static void write_text(char *text, const char *more) { strncat(text, more, TEXT_MOST - strlen(text) - 1); }

static void draw_choices(const world *w, drawn *d, int depth, char *text, language *l);

// A word, a group, or an option.
static void draw_item(const world *w, drawn *d, int depth, char *text, language *l)
{
    const int kind = depth ? below(d, 5) : 0;
    *l = (language){0};
    if (kind < 3) {
        const int word = below(d, w->n_words);
        write_text(text, w->names[word]);
        add_sentence(l, &(sentence){1, {word}});
        return;
    }
    write_text(text, kind == 3 ? "(" : "[");
    draw_choices(w, d, depth - 1, text, l);
    write_text(text, kind == 3 ? ")" : "]");
    if (kind == 4) add_sentence(l, &(sentence){0});
}

static void draw_choices(const world *w, drawn *d, int depth, char *text, language *l)
{
    *l = (language){0};
    for (int i = 1 + below(d, 3); i-- > 0;) {
        language way = {.n = 1}, *item = test_buffer(1, sizeof *item);
        for (int k = 1 + below(d, 3); k-- > 0;) {
            draw_item(w, d, depth, text, item);
            append(&way, item);
            write_text(text, " ");
        }
        test_buffer_free(item);
        unite(l, &way);
        if (i) write_text(text, "| ");
    }
}

// Phrases, some of which refer to a rule.
static void draw_grammar(const world *w, drawn *d, char *text, language *l)
{
    language rule, phrase;
    *l = (language){0};
    strcpy(text, "# any\n$rule = ");
    draw_choices(w, d, 1, text, &rule);
    for (int i = 1 + below(d, 4); i-- > 0;) {
        write_text(text, "\n");
        draw_choices(w, d, 2, text, &phrase);
        if (below(d, 2)) {
            language whole = {0}; // the phrase in brackets, then the rule
            char *line = strrchr(text, '\n') + 1, bracketed[TEXT_MOST];
            snprintf(bracketed, sizeof bracketed, "(%s) $rule", line);
            strcpy(line, bracketed);
            unite(&whole, &phrase);
            append(&whole, &rule);
            phrase = whole;
        }
        unite(l, &phrase);
    }
    write_text(text, "\n");
}

/* ---- the search ------------------------------------------------------------------------------------------------------------ */

static void begin_grammar(search *s, const world *w, const char *text, const lin_words_options *o, double least)
{
    *s = (search){0};
    OK(lin_grammar_parse(text, strlen(text), "grammar", NULL, NULL, &s->grammar, &err));
    begin_with(s, w->entries, w->n_prons, w->V, o, least, 0);
}

static void draw(uint64_t seed, world *w, lin_words_options *o, truth *t, char *text, language *l)
{
    drawn d = {seed, 3000000};
    draw_world(w, seed);
    *o = exhaustive();
    o->bonus = 0.5 * (below(&d, 7) - 3);
    o->unknown = -INFINITY;
    o->blank_penalty = 0.75 * below(&d, 3);
    draw_grammar(w, &d, text, l);
    *t = (truth){.w = w, .o = o, .found = all};
    find_truth(t);
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (contains(l, all[i].words, all[i].n)) all[n++] = all[i];
    t->n = n;
}

// All sentences of the grammar that fit into the rows, in the order of their scores, and nothing else.
START_TEST(test_sentences)
{
    static world w;
    static language l;
    static char text[TEXT_MOST];
    lin_words_options o;
    truth t;
    for (uint64_t seed = (uint64_t)_i * 30; seed < (uint64_t)_i * 30 + 30; seed++) {
        search s;
        draw(seed, &w, &o, &t, text, &l);
        begin_grammar(&s, &w, text, &o, 0);
        s.words->all_histories = 1;
        feed(&s, w.logp, w.T);
        ck_assert_int_eq(s.settled.n_words, 0);
        finish(&s);
        const int n = count_hypotheses(&s);
        const lin_path *found = read_nbest(&s, 0);
        if (!t.n || !all[0].n) {
            test_require(found->n_words == 0, "seed %d: %d words are no sentence", (int)seed, found->n_words);
        } else {
            test_require(n == (t.n < 20 ? t.n : 20), "seed %d: %d hypotheses of %d\n%s", (int)seed, n, t.n, text);
            for (int i = 0; i < n; i++) {
                const int which = truth_of(&t, read_nbest(&s, i));
                test_require(which >= 0, "seed %d: hypothesis %d is no sentence", (int)seed, i);
                test_require(fabs(found->score - all[i].score) < 1e-5 && fabs(found->acoustic - all[which].acoustic) < 1e-5,
                             "seed %d: hypothesis %d has score %.9g, not %.9g", (int)seed, i, found->score, all[i].score);
                check_shape(found, 0, w.T);
            }
        }
        end(&s);
    }
}
END_TEST

// Any split of the rows gives the same, also through a saved state; with one hypothesis nothing is settled before the end.
START_TEST(test_splits)
{
    static world w;
    static language l;
    static char text[TEXT_MOST];
    lin_words_options o;
    truth t;
    for (uint64_t seed = 500; seed < 560; seed++) {
        search s[2];
        draw(seed, &w, &o, &t, text, &l);
        o.n_best = 1 + (int)(seed % 2);
        for (int i = 0; i < 2; i++) begin_grammar(&s[i], &w, text, &o, 0.05);
        feed(&s[0], w.logp, w.T);
        for (int i = 0; i < w.T; i++) {
            feed(&s[1], w.logp + i * w.V, 1);
            check_state(&s[1]);
            ck_assert_int_eq(s[1].settled.n_words, 0);
        }
        for (int i = 0; i < 2; i++) finish(&s[i]);
        check_state(&s[1]);
        const lin_path *one = &s[0].settled, *other = &s[1].settled;
        ck_assert_int_eq(one->n_words, other->n_words);
        for (int i = 0; i < one->n_words; i++) {
            ck_assert_int_eq(one->words[i].word, other->words[i].word);
            ck_assert(!memcmp(&one->words[i].confidence, &other->words[i].confidence, sizeof one->words[i].confidence));
        }
        for (int i = 0; i < 2; i++) end(&s[i]);
    }
}
END_TEST

/* ---- confidence ------------------------------------------------------------------------------------------------------------ */

// What labels say, of probability 0.9 each, by a grammar of the words ab, ba and c with phones 1 2, 2 1 and 3.
static int hear_by(const char *grammar, const char *labels, double least, double *confidence)
{
    static const int prons[][2] = {{1, 2}, {2, 1}, {3}};
    static const lin_tree_entry entries[] = {{"ab", prons[0], 2, 0, 0}, {"ba", prons[1], 2, 0, 0}, {"c", prons[2], 1, 0, 0}};
    static float logp[100 * HAND_V];
    lin_words_options o = lin_words_options_default();
    search s = {0};
    o.bonus = o.blank_penalty = 0;
    o.unknown_phone = log(0.3);
    OK(lin_grammar_parse(grammar, strlen(grammar), "grammar", NULL, &(lin_grammar_list){0}, &s.grammar, &err));
    o.unknown = lin_grammar_has_unknown(s.grammar) ? 0 : -INFINITY;
    begin_with(&s, entries, 3, HAND_V, &o, least, 0);
    feed(&s, logp, say(logp, labels));
    finish(&s);
    const lin_path *path = &s.settled;
    int code = 0;
    for (int i = 0; i < path->n_words; i++) code = 10 * code + (path->words[i].word < 0 ? 9 : path->words[i].word + 1);
    *confidence = path->n_words ? (double)path->words[0].confidence : 0;
    end(&s);
    return code;
}

START_TEST(test_confidence)
{
    double c;
    ck_assert_int_eq(hear_by("ab\nba\n", "0102010", 0.5, &c), 0); // no sentence: what is left over is a phone of another word
    ck_assert_int_eq(hear_by("ab\nba\n", "01020", 0.5, &c), 1);
    ck_assert_msg(c > 0.95, "%g", c);
    ck_assert_int_eq(hear_by("ab\nba\n", "0201", 0.5, &c), 2);
    ck_assert_int_eq(hear_by("ab\nba\n", "01020201", 0.5, &c), 12); // the list repeats
    ck_assert_int_eq(hear_by("ab\n", "0303", 0.5, &c), 0);
    ck_assert_int_eq(hear_by("ab\nc\n", "03", 0.5, &c), 3);
    ck_assert_int_eq(hear_by("ab\n[unk]\n", "01020", 0.3, &c), 1);
    ck_assert_int_eq(hear_by("ab\n[unk]\n", "0303", 0.3, &c), 9); // another word
    ck_assert_int_eq(hear_by("ab\n", "000", 0.5, &c), 0);
    // One of two phones was another one, whose logarithm is ln 0.025 - ln 0.9 below the loop's: exp(-3.58 / 2).
    ck_assert_int_eq(hear_by("ab\n", "0103", 0.1, &c), 1);
    ck_assert_msg(fabs(c - exp((log(0.025) - log(0.9)) / 2)) < 0.02, "%g", c);
    ck_assert_int_eq(hear_by("ab\n", "0103", 0.3, &c), 0);
}
END_TEST

// A state goes on with another grammar: what it has heard of its sentence is dropped.
START_TEST(test_another_grammar)
{
    static world w;
    static language l;
    static char text[TEXT_MOST];
    lin_words_options o;
    truth t;
    search a, b;
    lin_path path = {0};
    draw(7, &w, &o, &t, text, &l);
    begin_grammar(&a, &w, text, &o, 0);
    begin_grammar(&b, &w, "wa\n", &o, 0);
    ck_assert_uint_eq(lin_words_bytes(a.words), lin_words_bytes(b.words));
    OK(lin_words_push(a.words, a.state, NULL, w.logp, w.T, &path, &err));
    OK(lin_words_nbest(b.words, a.state, 0, &path, &err));
    ck_assert_int_eq(path.n_words, 0);
    OK(lin_words_push(b.words, a.state, NULL, w.logp, w.T, &path, &err));
    OK(lin_words_finish(b.words, a.state, NULL, &path, &err));
    ck_assert_int_eq(path.n_words, 1);
    ck_assert_int_eq(path.words[0].start >= w.T, 1);
    FAILS(lin_words_check(a.words, a.state, lin_words_bytes(a.words), &err), LIN_MISMATCH, "another lexicon");
    lin_path_free(&path);
    end(&a);
    end(&b);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "decoder/words_grammar", TESTS(test_sentences, 0, 10), TEST(test_splits), TEST(test_confidence),
               TEST(test_another_grammar))
