// decoder/beam.c: against greedy at width 1, the sum over all alignments on small cases, a plain search in the log domain with
// times and skipped frames, ties, rows of any size.
#include "decoder/search.h"
#include "tests/decoder/beam_cases.h"

/* ---- greedy ---------------------------------------------------------------------------------------------------------------- */

static void as_greedy(const float *logp, int T, int V, int64_t first, lin_beam_options options)
{
    lin_path want = {0};
    lin_greedy g;
    lin_greedy_reset(&g, V, first, 0);
    OK(lin_greedy_push(&g, logp, T, &want, &err));
    search s = begin(V, NULL, NULL, options, first);
    push(&s, NULL, logp, T);
    // No later than greedy: only a phone directly followed by its neighbour may still be provisional.
    ck_assert_int_eq(s.settled.n_phones, want.n_phones);
    check_state(&s);
    OK(lin_greedy_finish(&g, &want, &err));
    OK(lin_beam_finish(s.beam, s.state, &s.settled, &err));
    want.score = s.settled.score, want.acoustic = s.settled.acoustic, want.language = s.settled.language;
    same_path(&s.settled, &want);
    double sum = 0;
    for (int t = 0; t < T; t++) {
        float best = logp[t * V];
        for (int k = 1; k < V; k++) best = fmaxf(best, logp[t * V + k]);
        sum += (double)best;
    }
    ck_assert(fabs(s.settled.score - sum) < 1e-9 && s.settled.acoustic == s.settled.score && s.settled.language == 0);
    lin_path_free(&want);
    end(&s);
}

START_TEST(width_one_is_greedy)
{
    static float logp[MAX_T * MAX_V];
    for (uint64_t seed = 0; seed < 300; seed++) {
        int V = 2 + (int)lin_random_below(seed, 1u << 20, MAX_V - 2), T = (int)lin_random_below(seed, (1u << 20) + 1, MAX_T);
        lin_beam_options options = wide(1);
        if (seed % 2) random_rows(logp, T, V, seed, seed % 3 ? 3 : 12);
        else peaky_rows(logp, T, V, seed);
        if (seed % 5 == 1) { // ties for the best label
            for (int t = 0; t < T; t++) {
                logp[t * V + (int)lin_random_below(seed, (uint64_t)t, (uint32_t)V)] = -0.2f;
                logp[t * V + (int)lin_random_below(~seed, (uint64_t)t, (uint32_t)V)] = -0.2f;
            }
        }
        if (seed % 3 == 1) options.score = 5;
        if (seed % 4 >= 2) options.labels = 1 + (int)(seed % 7);
        if (seed % 4 == 3) options.blank = 0.9;
        if (seed % 7 == 3) options.longest = 1;
        as_greedy(logp, T, V, seed % 3 ? 0 : 86400LL * 100 * 1000, options);
    }
}
END_TEST

/* ---- every prefix ---------------------------------------------------------------------------------------------------------- */

// Sequences of V-1 labels that fit into T frames: one that repeats the last needs a blank before it.
static int count_prefixes(int V, int T, int is_first)
{
    if (T < 1) return T == 0;
    return 1 + (V - 1 - !is_first) * count_prefixes(V, T - 1, 0) + (is_first ? 0 : count_prefixes(V, T - 2, 0));
}

// The prefix's score apart from the acoustic one, computed from model and context directly.
static double weight_of(const int *labels, int n, const lin_ngram *lm, const int *words, const lin_context *context,
                        const lin_beam_options *o, int finished, double *language)
{
    lin_ngram_state at = lm ? lin_ngram_begin(lm) : 0;
    int place = 0;
    double weight = 0;
    *language = 0;
    for (int i = 0; i < n; i++) {
        if (lm) *language += (double)lin_ngram_score(lm, at, words[labels[i]], &at);
        if (context) weight += (double)lin_context_next(context, &place, labels[i]);
    }
    if (finished && lm && n) *language += (double)lin_ngram_end(lm, at);
    if (finished && context) weight += (double)lin_context_finish(context, &place);
    return weight + o->lm_weight * *language + o->bonus * n;
}

// The beam has every prefix with the sum over its alignments; together they are all alignments.
static void check_prefixes(search *s, const float *logp, int V, int T, const lin_ngram *lm, const int *words,
                           const lin_context *context, const lin_beam_options *o, int finished)
{
    const int n = lin_beam_hypotheses(s->beam, s->state);
    const lin_path *tail = &s->tail;
    double before = INFINITY, all = 1, sum = 0;
    ck_assert_int_eq(n, count_prefixes(V, T, 1));
    for (int which = 0; which < n; which++) {
        int labels[16];
        OK(lin_beam_nbest(s->beam, s->state, which, &s->tail, &err));
        for (int i = 0; i < tail->n_phones; i++) labels[i] = tail->phones[i].label;
        double language, weight = weight_of(labels, tail->n_phones, lm, words, context, o, finished, &language);
        const double acoustic = ctc_log(logp, T, V, labels, tail->n_phones, 0);
        test_require(fabs(tail->acoustic - acoustic) < 1e-9, "prefix %d: %.12g, expected %.12g", which, tail->acoustic, acoustic);
        ck_assert(fabs(tail->language - language) < 1e-9);
        ck_assert(fabs(tail->score - (acoustic + weight)) < 1e-9);
        ck_assert(tail->score <= before);
        before = tail->score;
        sum += exp(acoustic);
    }
    for (int t = 0; t < T; t++) {
        double row = 0;
        for (int v = 0; v < V; v++) row += exp((double)logp[t * V + v]);
        all *= row;
    }
    ck_assert_double_eq_tol(sum, all, 1e-12);
}

static void exhaust(uint64_t seed, int V, int T, const lin_ngram *lm, const lin_context *context, lin_beam_options o)
{
    float logp[8 * 4];
    random_rows(logp, T, V, seed, 1 + (double)(seed % 8));
    int known[] = {-1, 0, 0, -1};
    for (int k = 1; lm && k < 4; k++) known[k] = lin_ngram_find(lm, (const char[]){(char)('A' + k - 1)}, 1);
    if (seed % 5 == 4) known[3] = -1; // <unk>
    search s = begin(V, lm, known, o, 0);
    for (int t = 0; t < T; t++) {
        push(&s, context, logp + t * V, 1);
        check_state(&s);
    }
    ck_assert_int_eq(s.settled.n_phones, 0); // not before the empty prefix is out
    check_prefixes(&s, logp, V, T, lm, known, context, &o, 0);
    OK(lin_beam_finish(s.beam, s.state, NULL, &err));
    check_prefixes(&s, logp, V, T, lm, known, context, &o, 1);
    OK(lin_beam_nbest(s.beam, s.state, 0, &s.tail, &err));
    lin_beam_reset(s.beam, s.state, 0);
    push(&s, context, logp, T);
    OK(lin_beam_finish(s.beam, s.state, &s.settled, &err));
    same_path(&s.settled, &s.tail);
    end(&s);
}

START_TEST(an_exhaustive_beam_gives_the_sum_over_all_paths)
{
    const int a[] = {1, 2}, b[] = {2, 1, 2}, c[] = {3};
    const lin_context_phrase phrases[] = {{a, 2, 1.5}, {b, 3, 2}, {c, 1, -0.5}};
    lin_ngram *lm;
    lin_context *context;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    OK(lin_context_create(phrases, 3, &context, &err));
    for (uint64_t seed = 0; seed < 24; seed++) { // each V with each T
        int V = 2 + (int)(seed / 8 % 3), T = 1 + (int)(seed % 8);
        if (V == 4 && T > 6) T -= 4; // more than 1,024 prefixes
        lin_beam_options o = wide(LIN_BEAM_MAX);
        exhaust(seed, V, T, NULL, NULL, o);
        o.lm_weight = 0.7;
        o.bonus = 0.4;
        exhaust(seed, V, T, lm, NULL, o);
        exhaust(seed, V, T, NULL, context, o);
        exhaust(seed, V, T, lm, context, o);
    }
    lin_context_destroy(context);
    lin_ngram_destroy(lm);
}
END_TEST

/* ---- a plain search: log domain, whole sequences, no shared code ----------------------------------------------------------- */

enum { PLAIN_T = 150, PLAIN_WIDTH = 8 };

typedef struct plain_end {
    double sum, best;
    int n; // complete phones, and the open one
    lin_path_phone phones[PLAIN_T];
    double logp[PLAIN_T];
} plain_end;

typedef struct plain_hyp {
    int labels[PLAIN_T], n, place, known; // known: it was in the beam before
    lin_ngram_state lm;
    double weight, language;
    plain_end blank, label;
} plain_hyp;

static plain_hyp plain_now[PLAIN_WIDTH], plain_next[PLAIN_WIDTH * MAX_V];

static double plain_total(const plain_hyp *h) { return add_logs(h->blank.sum, h->label.sum); }

static void plain_frame(plain_end *e, int label, int t, double logp, int begins)
{
    if (begins) {
        e->phones[e->n] = (lin_path_phone){.label = label, .start = t};
        e->logp[e->n++] = 0;
    }
    e->phones[e->n - 1].end = t + 1;
    e->logp[e->n - 1] += logp;
}

// Takes over the end of another hypothesis if it is better: `sum` and `best` are the new values.
static void plain_take(plain_end *to, const plain_end *from, double sum, double best, int label, int t, double logp, int begins)
{
    double total = add_logs(to->sum, sum);
    if (sum > -INFINITY && best > to->best) {
        *to = *from;
        to->best = best;
        if (label) plain_frame(to, label, t, logp, begins);
    }
    to->sum = total;
}

static void plain_extend(plain_hyp *to, const plain_hyp *from, int label, double gain, const float *row, int t)
{
    const double y = (double)row[label] + gain;
    plain_take(&to->label, &from->blank, from->blank.sum + y, from->blank.best + y, label, t, (double)row[label], 1);
    if (from->n && from->labels[from->n - 1] == label) return;
    plain_take(&to->label, &from->label, from->label.sum + y, from->label.best + y, label, t, (double)row[label], 1);
}

static const plain_end nowhere = {.sum = -INFINITY, .best = -INFINITY};

static int by_plain_total(const void *a, const void *b)
{
    double left = plain_total(a), right = plain_total(b);
    return (left < right) - (left > right);
}

static int plain_step(int n, const float *row, int t, int V, const lin_ngram *lm, const int *words, const lin_context *context,
                      const lin_beam_options *o)
{
    const int skipped = o->blank > 0 && (double)row[0] >= log(o->blank);
    int m = 0;
    for (int i = 0; i < n; i++) {
        const plain_hyp *h = &plain_now[i];
        plain_hyp *next = &plain_next[m++];
        *next = *h;
        next->blank = next->label = nowhere;
        plain_take(&next->blank, &h->blank, h->blank.sum + (double)row[0], h->blank.best + (double)row[0], 0, t, 0, 0);
        plain_take(&next->blank, &h->label, h->label.sum + (double)row[0], h->label.best + (double)row[0], 0, t, 0, 0);
        if (skipped) continue;
        if (h->n) {
            const int last = h->labels[h->n - 1];
            const double y = (double)row[last];
            plain_take(&next->label, &h->label, h->label.sum + y, h->label.best + y, last, t, y, 0);
        }
        for (int k = 0; k < n; k++) {
            const plain_hyp *shorter = &plain_now[k];
            if (shorter->n + 1 != h->n || !(memcmp(shorter->labels, h->labels, (size_t)shorter->n * sizeof(int)) == 0)) continue;
            plain_extend(next, shorter, h->labels[h->n - 1], h->weight - shorter->weight, row, t);
        }
    }
    for (int i = 0; i < n && !skipped; i++) {
        const plain_hyp *h = &plain_now[i];
        for (int k = 1; k < V; k++) {
            int better = 0, there = 0;
            for (int other = 1; other < V; other++) better += row[other] > row[k] || (row[other] == row[k] && other < k);
            if (o->labels && better >= o->labels) continue;
            for (int other = 0; other < n && !there; other++) {
                const plain_hyp *longer = &plain_now[other];
                there = longer->n == h->n + 1 && memcmp(longer->labels, h->labels, (size_t)h->n * sizeof(int)) == 0 &&
                        longer->labels[h->n] == k;
            }
            if (there) continue;
            plain_hyp *next = &plain_next[m++];
            *next = *h;
            next->labels[next->n++] = k;
            next->blank = next->label = nowhere;
            double logp = lm ? (double)lin_ngram_score(lm, h->lm, words[k], &next->lm) : 0;
            next->language += logp;
            next->weight += o->bonus + o->lm_weight * logp;
            if (context) next->weight += (double)lin_context_next(context, &next->place, k);
            plain_extend(next, h, k, next->weight - h->weight, row, t);
        }
    }
    if (!skipped) qsort(plain_next, (size_t)m, sizeof *plain_next, by_plain_total);
    const double least = !skipped && o->score > 0 ? plain_total(&plain_next[0]) - o->score : -INFINITY;
    n = 0;
    for (int i = 0; i < m && i < o->width; i++) {
        plain_hyp *h = &plain_now[n];
        if (plain_total(&plain_next[i]) < least || plain_total(&plain_next[i]) == -INFINITY) continue;
        *h = plain_next[i];
        plain_end *weak = h->blank.sum < h->label.sum ? &h->blank : &h->label;
        if (weak->sum < least) *weak = nowhere;
        n++;
    }
    qsort(plain_now, (size_t)n, sizeof *plain_now, by_plain_total);
    return n;
}

static void against_plain(uint64_t seed, const lin_ngram *lm, const lin_context *context)
{
    static float logp[PLAIN_T * 8];
    const int V = 3 + (int)(seed % 5);
    const int T = 1 + (int)lin_random_below(seed, 1u << 20, PLAIN_T - 1);
    int words[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    for (int k = 1; lm && k < 4; k++) words[k] = lin_ngram_find(lm, (const char[]){(char)('A' + k - 1)}, 1);
    lin_beam_options o = {.width = 2 + (int)(seed % (PLAIN_WIDTH - 1)), .longest = PLAIN_T, .lm_weight = 0.6, .bonus = 0.3};
    if (seed % 2) o.score = 3 + (double)(seed % 5);
    if (seed % 3) o.labels = 1 + (int)(seed % 4);
    if (seed % 4 == 1) o.blank = 0.6;
    if (seed % 5 < 2) random_rows(logp, T, V, seed, 1 + (double)(seed % 9));
    else peaky_rows(logp, T, V, seed);
    break_ties(logp, T * V, seed);
    plain_now[0] = (plain_hyp){.lm = lm ? lin_ngram_begin(lm) : 0, .blank = {.sum = 0}, .label = nowhere};
    search s = begin(V, lm, words, o, 0);
    int n = 1;
    for (int t = 0; t < T; t++) {
        n = plain_step(n, logp + t * V, t, V, lm, words, context, &o);
        push(&s, context, logp + t * V, 1);
    }
    check_state(&s);
    ck_assert_int_eq(lin_beam_hypotheses(s.beam, s.state), n);
    for (int i = 0; i < n; i++) {
        OK(lin_beam_nbest(s.beam, s.state, i, &s.tail, &err));
        const plain_hyp *h = &plain_now[i];
        const plain_end *e = h->blank.best >= h->label.best ? &h->blank : &h->label;
        test_require(fabs(s.tail.score - plain_total(h)) < 1e-9 && fabs(s.tail.language - h->language) < 1e-9,
                     "seed %d, prefix %d: score %.12g, expected %.12g", (int)seed, i, s.tail.score, plain_total(h));
        ck_assert_int_eq(s.settled.n_phones + s.tail.n_phones, e->n);
        for (int k = 0; k < e->n; k++) {
            const int settled = s.settled.n_phones;
            const lin_path_phone *p = k < settled ? &s.settled.phones[k] : &s.tail.phones[k - settled];
            test_require(p->label == h->labels[k] && p->start == e->phones[k].start && p->end == e->phones[k].end,
                         "seed %d, T %d, prefix %d of %d, phone %d of %d: %d %d-%d, expected %d %d-%d", (int)seed, T, i, n, k,
                         e->n, p->label, (int)p->start, (int)p->end, h->labels[k], (int)e->phones[k].start,
                         (int)e->phones[k].end);
            ck_assert(fabs((double)p->confidence - exp(e->logp[k] / (double)(p->end - p->start))) < 1e-6);
        }
    }
    end(&s);
}

START_TEST(a_plain_search_finds_the_same)
{
    const int a[] = {1, 2}, b[] = {2, 1, 2}, c[] = {4};
    const lin_context_phrase phrases[] = {{a, 2, 1.5}, {b, 3, 2}, {c, 1, -0.5}};
    lin_ngram *lm;
    lin_context *context;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    OK(lin_context_create(phrases, 3, &context, &err));
    for (uint64_t seed = 0; seed < 160; seed++) against_plain(seed, seed / 2 % 2 ? lm : NULL, seed / 4 % 2 ? context : NULL);
    lin_context_destroy(context);
    lin_ngram_destroy(lm);
}
END_TEST

// Among equally probable labels the lower ones are kept.
START_TEST(ties_among_labels)
{
    const float row[] = {-1, -2, -1.5f, -1.5f, -1.5f};
    lin_beam_options o = wide(8);
    for (int labels = 1; labels <= 3; labels++) {
        o.labels = labels;
        search s = begin(5, NULL, NULL, o, 0);
        push(&s, NULL, row, 1);
        ck_assert_int_eq(lin_beam_hypotheses(s.beam, s.state), 1 + labels);
        for (int i = 1; i <= labels; i++) {
            OK(lin_beam_nbest(s.beam, s.state, i, &s.tail, &err));
            ck_assert(s.tail.n_phones == 1 && s.tail.phones[0].label == 1 + i);
        }
        end(&s);
    }
}
END_TEST

// Rows with a constant added to every value: the same prefixes, and scores that differ by that constant per row.
START_TEST(rows_that_are_not_normalised)
{
    enum { V = 6, T = 50 };
    const float by[] = {-3000, -60, -49, 49, 51, 4000};
    static float logp[T * V], moved[T * V];
    peaky_rows(logp, T, V, 9);
    for (int i = 0; i < T * V; i++) logp[i] = (float)(nearbyint((double)logp[i] * 64) / 64); // exact after any shift
    lin_beam_options o = lin_beam_options_default();
    o.blank = 0; // it is compared with the rows as given
    search s = begin(V, NULL, NULL, o, 0);
    push(&s, NULL, logp, T);
    OK(lin_beam_finish(s.beam, s.state, &s.settled, &err));
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        search m = begin(V, NULL, NULL, o, 0);
        for (int k = 0; k < T * V; k++) moved[k] = logp[k] + by[i];
        push(&m, NULL, moved, T);
        OK(lin_beam_finish(m.beam, m.state, &m.settled, &err));
        ck_assert_int_eq(m.settled.n_phones, s.settled.n_phones);
        for (int k = 0; k < s.settled.n_phones; k++) ck_assert_int_eq(m.settled.phones[k].label, s.settled.phones[k].label);
        test_require(fabs(m.settled.score - s.settled.score - T * (double)by[i]) < 1e-7, "%g: %.12g, expected %.12g",
                     (double)by[i], m.settled.score, s.settled.score + T * (double)by[i]);
        end(&m);
    }
    end(&s);
}
END_TEST

TEST_MAIN("beam", TEST(width_one_is_greedy), TEST(an_exhaustive_beam_gives_the_sum_over_all_paths),
          TEST(a_plain_search_finds_the_same), TEST(ties_among_labels), TEST(rows_that_are_not_normalised))
