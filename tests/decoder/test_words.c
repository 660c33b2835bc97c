// decoder/words.c: against brute force over all sequences of words and alignments.
#include <pthread.h>
#include <stddef.h>

#include "decoder/words_internal.h"
#include "tests/decoder/words_case.h"

// With an exhaustive beam and no recombination: the best sequences and their scores, exactly.
START_TEST(test_truth)
{
    for (uint64_t seed = (uint64_t)_i * 40; seed < (uint64_t)_i * 40 + 40; seed++) {
        static world w;
        variant v;
        truth t;
        search s;
        draw_case(seed, &w, &v, &t);
        begin(&s, &w, &v.o, v.lm, v.context);
        s.words->all_histories = 1;
        feed(&s, w.logp, w.T);
        ck_assert_int_eq(s.settled.n_words, 0);
        finish(&s);
        const int n = count_hypotheses(&s);
        test_require(n == (t.n < 20 ? t.n : 20), "seed %d: %d hypotheses of %d", (int)seed, n, t.n);
        for (int i = 0; i < n; i++) {
            const lin_path *found = read_nbest(&s, i);
            const int which = truth_of(&t, found);
            test_require(which >= 0, "seed %d: hypothesis %d does not exist", (int)seed, i);
            const sequence *is = &t.found[which];
            test_require(fabs(found->score - t.found[i].score) < 1e-5, "seed %d: hypothesis %d has score %.9g, not %.9g",
                         (int)seed, i, found->score, t.found[i].score);
            test_require(fabs(found->score - is->score) < 1e-5 && fabs(found->acoustic - is->acoustic) < 1e-5 &&
                             fabs(found->language - is->language) < 1e-5,
                         "seed %d: hypothesis %d has scores %.9g %.9g %.9g, its words %.9g %.9g %.9g", (int)seed, i, found->score,
                         found->acoustic, found->language, is->score, is->acoustic, is->language);
            check_shape(found, 0, w.T);
        }
        FAILS(lin_words_nbest(s.words, s.state, n, &s.found, &err), LIN_INVALID, "does not exist");
        end(&s);
    }
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------------------------------------- */

enum { LONG_T = 400 };

typedef struct stream {
    world w;
    float logp[LONG_T * V_MAX];
    variant v;
} stream;

static void begin_stream(stream *x, uint64_t seed) { x->v = draw_stream(&x->w, x->logp, LONG_T, seed); }

static void all_at_once(const stream *x, search *s)
{
    begin(s, &x->w, &x->v.o, x->v.lm, x->v.context);
    feed(s, x->logp, LONG_T);
}

static void check_same_nbest(search *a, void *other)
{
    lin_path of_other = {0};
    const int n = count_hypotheses(a);
    ck_assert_int_eq(n, lin_words_hypotheses(a->words, other));
    for (int i = 0; i < n; i++) {
        OK(lin_words_nbest(a->words, other, i, &of_other, &err));
        same_path(read_nbest(a, i), &of_other);
    }
    lin_path_free(&of_other);
}

// Moves that are left out early, and words that are scored without a search in the language model, change no bit.
START_TEST(test_shortcuts)
{
    const int seeds = 100;
    int filtered = 0;
    for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
        static stream x;
        search s;
        lin_path without = {0};
        begin_stream(&x, seed);
        x.v.o.score = seed % 8 ? (double)(1 + seed % 6) : 0;
        all_at_once(&x, &s);
        filtered += s.words->pairs.n > 0;
        void *other = test_buffer(lin_words_bytes(s.words), 1);
        lin_words_reset(s.words, other, 0);
        s.words->pairs.n = 0;
        s.words->thorough = !x.v.context; // a bonus of the context comes after the first comparison with the floor
        OK(lin_words_push(s.words, other, s.context, x.logp, LONG_T, &without, &err));
        same_path(&s.settled, &without);
        check_same_nbest(&s, other);
        finish(&s);
        OK(lin_words_finish(s.words, other, s.context, &without, &err));
        same_path(&s.settled, &without);
        test_guards(other, "the other state");
        test_buffer_free(other);
        lin_path_free(&without);
        end(&s);
    }
    ck_assert_int_gt(filtered, seeds / 4);
}
END_TEST

// With n_best 1 the settled part and the rest equal the best hypothesis of a search that settles nothing before the end.
START_TEST(test_settled_is_best)
{
    int early = 0, others = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        static stream x;
        search s[2]; // that settles early, and that does not
        begin_stream(&x, seed);
        x.v.o.longest = LIN_WORDS_LONGEST_MAX;
        x.v.o.settle = 0;
        for (int i = 0; i < 2; i++) {
            x.v.o.n_best = 1 + i;
            all_at_once(&x, &s[i]);
            if (i == 0) early += s[i].settled.n_words;
            else ck_assert_int_eq(s[i].settled.n_words, 0);
            (void)read_nbest(&s[i], 0);
            finish(&s[i]);
        }
        const lin_path *settled = &s[0].settled, *whole = &s[1].settled;
        int same = settled->n_words == whole->n_words;
        for (int i = 0; i < whole->n_words && same; i++) same = settled->words[i].word == whole->words[i].word;
        // With alternatives, exact scores decide at the end.
        ck_assert(settled->score < whole->score + 1e-9 && (same || settled->score < whole->score));
        others += !same;
        end(&s[0]);
        end(&s[1]);
    }
    ck_assert_int_gt(early, 500);
    ck_assert_int_lt(others, 32); // of 40, in rows at random with beams that are far too narrow
}
END_TEST

static lin_status push_and_drop(const search *s, const stream *x)
{
    lin_path path = {0};
    lin_words_reset(s->words, s->state, 0);
    lin_status status = lin_words_push(s->words, s->state, s->context, x->logp, 100, &path, NULL);
    if (status == LIN_OK) status = lin_words_nbest(s->words, s->state, 0, &path, NULL);
    lin_path_free(&path);
    return status;
}

START_TEST(test_memory)
{
    static stream x;
    search s;
    begin_stream(&x, 7);
    begin(&s, &x.w, &x.v.o, 1, 1);
    lin_words *again;
    FAIL_EVERY_ALLOCATION(lin_words_create(s.tree, s.lm, &x.v.o, &again, NULL), lin_words_destroy(again));
    FAIL_EVERY_ALLOCATION(push_and_drop(&s, &x), (void)0);
    end(&s);
}
END_TEST

typedef struct on_stack {
    search s;
    stream x;
    int n;
    lin_status status;
} on_stack;

static void *on_small_stack(void *context)
{
    on_stack *o = context;
    lin_path path = {0};
    o->status = lin_words_push(o->s.words, o->s.state, o->s.context, o->x.logp, LONG_T, &path, NULL);
    o->n = lin_words_hypotheses(o->s.words, o->s.state);
    if (o->status == LIN_OK) o->status = lin_words_nbest(o->s.words, o->s.state, o->n - 1, &path, NULL);
    if (o->status == LIN_OK) o->status = lin_words_finish(o->s.words, o->s.state, o->s.context, &path, NULL);
    lin_path_free(&path);
    return NULL;
}

// Threads with a stack of 100 KB, as on some systems, or the smallest there is.
START_TEST(test_small_stack)
{
    static on_stack o;
    pthread_attr_t attributes;
    pthread_t thread;
    begin_stream(&o.x, 4);
    o.x.v.o.n_best = 5;
    begin(&o.s, &o.x.w, &o.x.v.o, 1, 1);
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    const long least = sysconf(_SC_THREAD_STACK_MIN);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, least > 100 << 10 ? (size_t)least : 100 << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, on_small_stack, &o), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    OK(o.status);
    ck_assert_int_gt(o.n, 1);
    end(&o.s);
}
END_TEST

// Fields that random changes rarely hit.
START_TEST(test_states_that_lie)
{
    static stream x;
    search s;
    begin_stream(&x, 1);
    x.v.o.n_best = 1;
    begin(&s, &x.w, &x.v.o, 1, 0);
    feed(&s, x.logp, 60);
    const size_t n = lin_words_bytes(s.words);
    void *copy = test_buffer(n, 1);
    const lin_words_view to = lin_words_view_of(s.words, copy);
    for (int lie = 0; lie < 5; lie++) {
        memcpy(copy, s.state, n);
        OK(lin_words_check(s.words, copy, n, &err));
        ck_assert_int_gt(to.h->n_traces, 0);
        if (lie == 0) { // a run that would overflow its counter
            to.h->first_frame = -(INT64_C(1) << 40);
            to.hyps[0].endings[LIN_LABEL_ENDING].frames = INT32_MAX;
        } else if (lie == 1) {
            for (int k = 0; k < 2; k++) to.hyps[0].endings[k].sum = to.hyps[0].endings[k].best = -INFINITY;
        } else if (lie == 2) {
            to.traces[to.h->n_traces - 1].before_frames = INT32_MAX;
        } else if (lie == 3) {
            to.traces[to.h->n_traces - 1].start = to.h->frame;
        } else {
            to.h->n_hyps = 0;
        }
        FAILS(lin_words_check(s.words, copy, n, &err), LIN_FORMAT, "damaged");
    }
    memcpy(copy, s.state, n);
    to.h->magic++;
    FAILS(lin_words_check(s.words, copy, n, &err), LIN_FORMAT, "the bytes are not the state of a word search");
    test_buffer_free(copy);
    end(&s);
}
END_TEST

/* ---- by hand --------------------------------------------------------------------------------------------------------------- */

static const char *hear(search *s, const char *labels)
{
    static char text[400];
    float logp[100 * HAND_V];
    lin_path_clear(&s->settled);
    lin_words_reset(s->words, s->state, 100);
    feed(s, logp, say(logp, labels));
    finish(s);
    text[0] = '\0';
    for (int i = 0; i < s->settled.n_words; i++) {
        const char *word = lin_words_text(s->words, NULL, s->settled.words[i].word);
        strcat(text, i ? " " : "");
        strcat(text, word ? word : "?");
    }
    return text;
}

START_TEST(test_times)
{
    const lin_words_options o = plain();
    search s;
    const lin_path *p = &s.settled;
    by_hand(&s, &o, NULL);
    ck_assert_str_eq(hear(&s, "0011200220330"), "ab bc");
    ck_assert_int_eq(p->words[0].start, 102);
    ck_assert_int_eq(p->words[0].end, 105);
    ck_assert_int_eq(p->words[1].start, 107);
    ck_assert_int_eq(p->words[1].end, 112);
    ck_assert_int_eq(p->phones[0].label, 1);
    ck_assert_int_eq(p->phones[0].end, 104);
    ck_assert_int_eq(p->phones[1].start, 104);
    ck_assert_int_eq(p->phones[3].start, 110);
    ck_assert_float_eq_tol(p->phones[3].confidence, 0.9f, 1e-6f);
    ck_assert(p->words[0].confidence > 0.2f && p->words[0].confidence < 0.46f); // "ab's" sounds alike
    ck_assert(p->words[1].confidence > 0.7f && p->words[1].confidence <= 0.91f);
    // Labels repeat with a blank between them, within words and across them.
    ck_assert_str_eq(hear(&s, "2022"), "bb");
    ck_assert_str_eq(hear(&s, "1202023"), "ab bb c");
    ck_assert_str_eq(hear(&s, "12023"), "ab bc");
    ck_assert_str_eq(hear(&s, "123"), "abc");
    ck_assert_str_eq(hear(&s, "303303"), "c c c");
    ck_assert_str_eq(hear(&s, "0000"), "");
    ck_assert_int_eq(p->n_phones, 0);
    end(&s);
}
END_TEST

// No word has a longer pause inside than the gap; between words there may be any.
START_TEST(test_gaps)
{
    static const struct {
        int gap;
        const char *labels, *words;
    } cases[] = {{0, "10000000002", "ab"}, {3, "10002", "ab"},  {3, "1100022", "ab"},    {3, "1200000000003", "ab c"},
                 {3, "120003", "abc"},     {3, "1200003", "ab c"}, {3, "0000000000120", "ab"}};
    static const char *const torn[] = {"100002", "11000022", "100000000002"};
    lin_words_options o = plain();
    search s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.gap = cases[i].gap;
        by_hand(&s, &o, NULL);
        const char *heard = hear(&s, cases[i].labels);
        ck_assert_msg(strcmp(heard, cases[i].words) == 0, "%s: %s", cases[i].labels, heard);
        end(&s);
    }
    o.unknown = -0.5;
    for (o.gap = 3; o.gap >= 0; o.gap -= 3) {
        by_hand(&s, &o, NULL);
        for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
            const char *heard = hear(&s, torn[i]);
            ck_assert_msg(strcmp(heard, o.gap ? "? ?" : "ab") == 0, "%s, gap %d: %s", torn[i], o.gap, heard);
        }
        end(&s);
    }
    o.gap = 3;
    // With room for one hypothesis, it is kept where there is no other.
    o.width = 1;
    o.unknown = -INFINITY;
    by_hand(&s, &o, NULL);
    ck_assert_str_eq(hear(&s, "2000000000000002"), "bb");
    ck_assert_int_eq(s.settled.words[0].end, 116);
    end(&s);
}
END_TEST

static const char hand_arpa[] = "\\data\\\nngram 1=7\nngram 2=3\n\n"
                                "\\1-grams:\n-1.0 <s> -0.3\n-1.0 </s>\n"
                                "-1.2 AB -0.2\n-1.0 AB'S -0.2\n-1.0 BC -0.1\n-1.5 BB 0\n-1.0 C 0\n\n"
                                "\\2-grams:\n-0.1 AB BC\n-0.1 <s> AB\n-0.7 AB'S BC\n\n\\end\\\n";

// "ab" and "ab's" sound alike: it waits until the other one is too unlikely, and at most `wait` rows from its last phone.
START_TEST(test_waiting)
{
    static const struct {
        double settle;
        int wait, rows; // 0: it is settled by the end only
    } cases[] = {{0, 1, 0}, {1000, 4, 5}, {1000, 6, 7}, {1000, 1 << 30, 0}, {0.01, 1 << 30, 3}};
    lin_words_options o = plain();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search s;
        float logp[20 * HAND_V];
        o.settle = cases[i].settle;
        o.wait = cases[i].wait;
        by_hand(&s, &o, hand_arpa);
        const int T = say(logp, "1200000000000");
        int rows = 0;
        for (int t = 0; t < T; t++) {
            feed(&s, logp + t * HAND_V, 1);
            if (s.settled.n_words && !rows) rows = t + 1;
        }
        ck_assert_msg(rows == cases[i].rows, "settle %g, wait %d: after %d rows", o.settle, o.wait, rows);
        finish(&s);
        ck_assert_int_eq(s.settled.n_words, 1);
        ck_assert_str_eq(lin_words_text(s.words, NULL, s.settled.words[0].word), "ab");
        end(&s);
    }
}
END_TEST

// The confidence of a word as a function of what the product is made of: the same words, in their order.
START_TEST(test_sure)
{
    int n = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        static stream x;
        search s[2];
        begin_stream(&x, seed);
        for (int i = 0; i < 2; i++) {
            if (i) memcpy(x.v.o.sure, (double[3]){-0.3, 0.6, 0.7}, sizeof x.v.o.sure);
            all_at_once(&x, &s[i]);
            finish(&s[i]);
        }
        const lin_path *plain_path = &s[0].settled, *sure = &s[1].settled;
        ck_assert_int_eq(plain_path->n_words, sure->n_words);
        for (int i = 0; i < plain_path->n_words; i++, n++) {
            const lin_path_word *a = &plain_path->words[i], *b = &sure->words[i];
            double mean = 0;
            for (int k = 0; k < a->n_phones; k++)
                mean += log((double)plain_path->phones[a->first_phone + k].confidence) / a->n_phones;
            const double share = fmin((double)a->confidence / exp(mean), 1);
            const double odds = exp(-0.3 + (0.6 + 0.7 * exp(mean)) * fmin(fmax(log(share / (1 - share)), -5), 5));
            ck_assert_int_eq(a->word, b->word);
            ck_assert_double_eq_tol((double)b->confidence, odds / (1 + odds), 1e-3);
        }
        end(&s[0]);
        end(&s[1]);
    }
    ck_assert_int_gt(n, 200);
}
END_TEST

START_TEST(test_unknown_words)
{
    lin_words_options o = plain();
    o.unknown = -4;
    search s;
    const lin_path *p = &s.settled;
    by_hand(&s, &o, NULL);
    ck_assert_str_eq(hear(&s, "11200440033004400112"), "ab ? ab");
    ck_assert_int_eq(p->words[1].word, LIN_WORD_UNKNOWN);
    ck_assert_int_eq(p->words[1].n_phones, 3);
    ck_assert_int_eq(p->phones[p->words[1].first_phone].label, 4);
    ck_assert_int_eq(p->phones[p->words[1].first_phone + 1].label, 3);
    ck_assert_int_eq(p->words[1].start, 105);
    ck_assert_int_eq(p->words[1].end, 115);
    ck_assert_ptr_null(lin_words_text(s.words, NULL, LIN_WORD_UNKNOWN));
    // Without words outside the lexicon, a search with no complete word at the end returns an error.
    end(&s);
    o.unknown = -INFINITY;
    o.width = 1;
    by_hand(&s, &o, NULL);
    ck_assert_str_eq(hear(&s, "1111"), "?");
    ck_assert_int_eq(p->phones[0].label, 1);
    end(&s);
}
END_TEST

START_TEST(test_homophones)
{
    lin_words_options o = plain();
    o.n_best = 4;
    search s;
    by_hand(&s, &o, hand_arpa);
    ck_assert_str_eq(hear(&s, "11202330"), "ab bc");
    int found = 0;
    ck_assert_int_eq(count_hypotheses(&s), 4);
    for (int i = 1; i < 4; i++) {
        const lin_path *p = read_nbest(&s, i);
        found += p->n_words == 2 && !strcmp(lin_words_text(s.words, NULL, p->words[0].word), "ab's") &&
                 !strcmp(lin_words_text(s.words, NULL, p->words[1].word), "bc");
    }
    ck_assert_int_eq(found, 1);
    end(&s);
}
END_TEST

// Hypotheses that differ in the last label after a word, or in the context, are not merged: both continue also with one rival.
START_TEST(test_different_futures)
{
    static const int labels[][2] = {{2, 0}, {3, 0}, {2, 4}};
    static const lin_tree_entry entries[] = {{"b", labels[0], 1, 0, 0}, {"c", labels[1], 1, 0, 0}, {"bd", labels[2], 2, 0, 0}};
    lin_words_options o = plain();
    float logp[4 * HAND_V];
    for (int context = 0; context < 2; context++) {
        search s = {0};
        o.bonus = context ? 0 : 2;
        begin_with(&s, entries, 3, HAND_V, &o, 0, 0);
        if (context) OK(lin_word_context_create(s.tree, &(lin_word_phrase){"c c", 4}, 1, NULL, &s.context, &err));
        const int T = say(logp, context ? "2024" : "224");
        logp[2] = logf(context ? 0.6f : 0.5f); // b rather than c, but that needs a blank before bd
        logp[3] = logf(context ? 0.3f : 0.45f);
        feed(&s, logp, T);
        finish(&s);
        ck_assert_int_eq(s.settled.n_words, 2);
        ck_assert_int_eq(s.settled.words[0].word, context ? 0 : 1);
        ck_assert_int_eq(s.settled.words[1].word, 2);
        end(&s);
    }
}
END_TEST

START_TEST(test_options)
{
    search s;
    lin_words *words;
    const lin_words_options o = plain();
    by_hand(&s, &o, hand_arpa);
    const struct { const char *name; size_t at; int whole; double bad; } cases[] = {
        {"width", offsetof(lin_words_options, width), 1, 0}, {"width", offsetof(lin_words_options, width), 1, LIN_WORDS_MAX + 1},
        {"score", offsetof(lin_words_options, score), 0, -1}, {"score", offsetof(lin_words_options, score), 0, NAN},
        {"labels", offsetof(lin_words_options, labels), 1, -1}, {"blank", offsetof(lin_words_options, blank), 0, 1.5},
        {"lm_weight", offsetof(lin_words_options, lm_weight), 0, -1}, {"bonus", offsetof(lin_words_options, bonus), 0, INFINITY},
        {"unknown", offsetof(lin_words_options, unknown), 0, 1},
        {"unknown_phone", offsetof(lin_words_options, unknown_phone), 0, 1},
        {"settle", offsetof(lin_words_options, settle), 0, -1}, {"settle", offsetof(lin_words_options, settle), 0, NAN},
        {"sure", offsetof(lin_words_options, sure), 0, NAN},
        {"n_best", offsetof(lin_words_options, n_best), 1, 0},
        {"longest", offsetof(lin_words_options, longest), 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_words_options bad = o;
        const int whole = (int)(cases[i].whole ? cases[i].bad : 0);
        if (cases[i].whole) memcpy((char *)&bad + cases[i].at, &whole, sizeof whole);
        else memcpy((char *)&bad + cases[i].at, &cases[i].bad, sizeof cases[i].bad);
        FAILS(lin_words_create(s.tree, s.lm, &bad, &words, &err), LIN_INVALID, cases[i].name);
        ck_assert_ptr_null(words);
    }
    FAILS(lin_words_create(s.tree, NULL, &o, &words, &err), LIN_MISMATCH, "another language model");
    end(&s);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "decoder/words", TESTS(test_truth, 0, 10), TEST(test_shortcuts), TEST(test_settled_is_best),
               TEST(test_memory), TEST(test_small_stack), TEST(test_states_that_lie), TEST(test_times), TEST(test_gaps),
               TEST(test_sure), TEST(test_waiting), TEST(test_unknown_words), TEST(test_homophones),
               TEST(test_different_futures), TEST(test_options))
