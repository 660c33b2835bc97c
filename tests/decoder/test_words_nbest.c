// decoder/words_nbest.c, with its exact sums and confidences: against brute force over all sequences of words.
#include "tests/decoder/words_case.h"

// The probability of each word of a path among all sequences: the sum over the sequences whose alignment to the path with the
// fewest edits matches the word.
static void true_shares(const truth *t, const sequence *path, double *shares)
{
    double sum = 0, most = t->found[0].score;
    for (int k = 0; k < path->n; k++) shares[k] = 0;
    for (int q = 0; q < t->n; q++) {
        const sequence *s = &t->found[q];
        const double p = exp(s->score - most);
        int cost[T_MAX + 1][T_MAX + 1];
        sum += p;
        for (int i = 0; i <= path->n; i++) {
            for (int k = 0; k <= s->n; k++) {
                cost[i][k] = i && k ? cost[i - 1][k - 1] + (path->words[i - 1] != s->words[k - 1]) : i + k;
                if (i && k && cost[i - 1][k] < cost[i][k]) cost[i][k] = cost[i - 1][k] + 1;
                if (i && k && cost[i][k - 1] < cost[i][k]) cost[i][k] = cost[i][k - 1] + 1;
            }
        }
        for (int i = path->n, k = s->n; i && k;) {
            const int same = path->words[i - 1] == s->words[k - 1];
            if (cost[i][k] == cost[i - 1][k - 1] + !same) {
                i--, k--;
                if (same) shares[i] += p;
            } else if (cost[i][k] == cost[i - 1][k] + 1) {
                i--;
            } else {
                k--;
            }
        }
    }
    for (int k = 0; k < path->n; k++) shares[k] /= sum;
}

// The factor of a confidence apart from the geometric mean of its phones' confidences.
static double share_of(const lin_path *p, int word)
{
    const lin_path_word *is = &p->words[word];
    double sum = 0;
    for (int k = 0; k < is->n_phones; k++) sum += log((double)p->phones[is->first_phone + k].confidence);
    return (double)is->confidence / exp(sum / is->n_phones);
}

// Recombination may lose sequences and never makes new ones: each listed one exists with its exact score; the best is nearly
// always right, the best five are mostly those of brute force,
// and confidences are close to the probabilities among all sequences.
START_TEST(test_recombination)
{
    int right = 0, among = 0, cases = 0, wanted = 0, listed = 0, exact = 0, n_shares = 0;
    double off = 0;
    for (uint64_t seed = 1000; seed < 1150; seed++) {
        static world w;
        variant v;
        truth t;
        search s;
        double shares[T_MAX];
        draw_case(seed, &w, &v, &t);
        v.o.n_best = 10;
        begin(&s, &w, &v.o, v.lm, v.context);
        feed(&s, w.logp, w.T);
        check_state(&s);
        for (int i = 0; i < count_hypotheses(&s); i++) (void)read_nbest(&s, i);
        check_state(&s);
        finish(&s);
        double last = INFINITY;
        for (int i = 0; i < count_hypotheses(&s); i++) {
            const lin_path *found = read_nbest(&s, i);
            const int which = truth_of(&t, found);
            test_require(which >= 0, "seed %d: hypothesis %d does not exist", (int)seed, i);
            const sequence *is = &t.found[which];
            check_shape(found, 0, w.T);
            ck_assert(found->score <= last);
            last = found->score;
            test_require(found->score < is->score + 1e-5, "seed %d: hypothesis %d has score %.9g, its words %.9g", (int)seed, i,
                         found->score, is->score);
            listed++;
            exact += found->score > is->score - 1e-5; // another pronunciation may be better
            right += i == 0 && is->score > t.found[0].score - 1e-5;
            among += i < 5 && is->score > t.found[t.n < 5 ? t.n - 1 : 4].score - 1e-5;
            if (i == 0) true_shares(&t, is, shares);
            double more = 0; // the sum only: which of two equal words is kept is not defined
            for (int k = 0; i == 0 && k < is->n; k++, n_shares++) more += share_of(found, k) - shares[k];
            off += fabs(more);
        }
        cases++;
        wanted += t.n < 5 ? t.n : 5;
        end(&s);
    }
    test_require(exact >= listed * 99 / 100, "%d of %d scores are exact", exact, listed);
    test_require(right >= cases * 98 / 100, "the best sequence was found in %d of %d cases", right, cases);
    test_require(among >= wanted * 93 / 100, "%d of the %d best five were found", among, wanted);
    test_require(off < 0.09 * n_shares, "the shares of %d words are off by %.4f", n_shares, off / n_shares);
}
END_TEST

// Very improbable words outside the lexicon do not change a confidence.
START_TEST(test_confidence_beside_unknown)
{
    const int seeds = 60;
    int n = 0;
    for (uint64_t seed = 2000; seed < 2000 + (uint64_t)seeds; seed++) {
        static world w;
        variant v;
        search s[2];
        draw_world(&w, seed);
        v = draw_variant(seed);
        v.o.n_best = 1;
        for (int i = 0; i < 2; i++) {
            v.o.unknown = i ? -15 : -INFINITY;
            v.o.unknown_phone = 0;
            begin(&s[i], &w, &v.o, 0, 0);
            feed(&s[i], w.logp, w.T);
            finish(&s[i]);
        }
        const lin_path *a = &s[0].settled, *b = &s[1].settled;
        // If a search ends without a complete word, the two differ.
        for (int k = 0; a->n_words == b->n_words && k < a->n_words; k++, n++) {
            if (a->words[k].word != b->words[k].word) break;
            test_require(fabsf(a->words[k].confidence - b->words[k].confidence) < 0.02f,
                         "seed %d: word %d has confidence %.3f, with unknown words %.3f", (int)seed, k,
                         (double)a->words[k].confidence, (double)b->words[k].confidence);
        }
        end(&s[0]);
        end(&s[1]);
    }
    ck_assert_int_gt(n, seeds * 2 / 3);
}
END_TEST

// Two phones, three words: impossible sequences must not be listed.
START_TEST(test_impossible_alternatives)
{
    static const int labels[][2] = {{1, 0}, {1, 2}, {2, 1}};
    static const lin_tree_entry entries[] = {{"ox", labels[0], 1, 0, 0}, {"ab", labels[1], 2, 0, 0}, {"bo", labels[2], 2, 0, 0}};
    static const double rows[2][2][3] = {{{.5, .4, .1}, {.2, .7, .1}}, {{.1, .8, .1}, {.1, .8, .1}}};
    static const struct {
        const char *words;
        double p;
    } is[2][4] = {{{"ox ", .71}, {"", .1}, {"bo ", .07}, {"ab ", .04}}, {{"ox ", .8}, {"ab ", .08}, {"bo ", .08}, {"", .01}}};
    lin_words_options o = lin_words_options_default();
    o.bonus = 0;
    o.blank_penalty = 0;
    o.unknown = -INFINITY;
    o.n_best = 10;
    for (int r = 0; r < 2; r++) {
        search s = {0};
        float logp[6];
        begin_with(&s, entries, 3, 3, &o, 0, 0);
        for (int i = 0; i < 6; i++) logp[i] = (float)log(rows[r][i / 3][i % 3]);
        feed(&s, logp, 2);
        finish(&s);
        ck_assert_int_eq(count_hypotheses(&s), 4);
        for (int i = 0; i < 4; i++) {
            char text[20] = "";
            const lin_path *p = read_nbest(&s, i);
            for (int k = 0; k < p->n_words; k++) strcat(strcat(text, lin_words_text(s.words, NULL, p->words[k].word)), " ");
            ck_assert_str_eq(text, is[r][i].words);
            ck_assert_double_eq_tol(exp(p->score), is[r][i].p, 1e-6);
        }
        end(&s);
    }
}
END_TEST

static double path_log(const lin_path *p, const float *logp, int T, int V, double blank_penalty)
{
    int *labels = malloc(sizeof *labels * (size_t)(p->n_phones + 1));
    for (int i = 0; i < p->n_phones; i++) labels[i] = p->phones[i].label;
    const double sum = ctc_log(logp, T, V, labels, p->n_phones, blank_penalty);
    free(labels);
    return sum;
}

// Sentences too long for brute force: every listed score is the exact score of its phones, for any beam width. The sums of some
// sentences fit in the memory of one at the same time, those of the long ones do not.
START_TEST(test_exact_scores)
{
    int listed = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        enum { ROWS = 400 };
        static world w;
        static float logp[ROWS * V_MAX];
        search s;
        drawn d = {seed, 5000000};
        const int T = seed % 10 ? 60 : ROWS;
        draw_world(&w, seed);
        variant v = draw_variant(seed);
        v.o.width = 4 + below(&d, 60);
        v.o.score = below(&d, 2) ? 0 : 8;
        draw_rows(logp, T, w.V, &d, 8);
        begin(&s, &w, &v.o, v.lm, v.context);
        feed(&s, logp, T);
        ck_assert_int_eq(s.settled.n_words, 0);
        for (int finished = 0; finished < 2; finished++) {
            double last = INFINITY;
            if (finished) finish(&s);
            const int n = count_hypotheses(&s);
            for (int i = !finished; i < n; i++, listed++) { // before the end the best one has the score of the search
                const lin_path *p = read_nbest(&s, i);
                const double exact = path_log(p, logp, T, w.V, v.o.blank_penalty);
                test_require(fabs(p->acoustic - exact) < 1e-6, "seed %d: hypothesis %d has %.9g, its phones %.9g", (int)seed, i,
                             p->acoustic, exact);
                ck_assert(p->score <= last);
                last = p->score;
            }
        }
        end(&s);
    }
    ck_assert_int_gt(listed, 1000);
}
END_TEST

// More rows than are stored for exact scores: silence and settled rows are dropped; if the rest is too long, hypotheses without
// an exact score are not listed.
START_TEST(test_more_rows_than_kept)
{
    enum { ROWS = 9000 };
    static float logp[(ROWS + 20) * HAND_V];
    static const char *const said[] = {"112", "11"};
    for (int half = 0; half < 2; half++) {
        lin_words_options o = plain();
        search s;
        o.n_best = 4;
        o.unknown = half ? -INFINITY : -10;
        o.score = half ? 5 : 14; // 5: no complete word survives
        by_hand(&s, &o, NULL);
        int T = say(logp, said[half]);
        const char blank[] = "0";
        for (int i = 0; i < ROWS; i++) (void)say(logp + (T + i) * HAND_V, blank);
        T += ROWS;
        T += say(logp + T * HAND_V, half ? "2" : "223");
        for (int i = 0; i < T; i++) { // nearly certain rows, or a phone in the silence would score better
            for (int v = 0; v < HAND_V; v++) logp[i * HAND_V + v] = logf(logp[i * HAND_V + v] > -1 ? 0.9999f : 0.000025f);
        }
        feed(&s, logp, T);
        check_state(&s);
        const int n_words = s.settled.n_words, n_phones = s.settled.n_phones;
        finish(&s);
        const lin_words_view parts = lin_words_view_of(s.words, s.state);
        ck_assert_int_eq(parts.h->rows_lost, half);
        ck_assert_int_eq(n_words, !half);
        for (int i = 0; i < count_hypotheses(&s); i++) {
            const lin_path *tail = read_nbest(&s, i);
            lin_path *whole = &s.settled;
            whole->n_phones = n_phones;
            OK(lin_path_reserve(whole, tail->n_phones, 1, &err));
            for (int k = 0; k < tail->n_phones; k++) whole->phones[whole->n_phones++] = tail->phones[k];
            const double exact = path_log(whole, logp, T, HAND_V, 0);
            test_require(tail->acoustic < exact + 1e-6 && (i || tail->acoustic > exact - 0.01), "hypothesis %d: %.9g, exact %.9g",
                         i, tail->acoustic, exact);
        }
        end(&s);
    }
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "decoder/words_nbest", TEST(test_recombination), TEST(test_confidence_beside_unknown),
               TEST(test_impossible_alternatives), TEST(test_exact_scores), TEST(test_more_rows_than_kept))
