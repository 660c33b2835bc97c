// decoder/beam.c: against greedy at width 1, the sum over every path on small cases, a plain search in the log domain; splits,
// forks, saved and damaged states, times, contexts that change, long streams, bad arguments.
#include "decoder/beam.h"

#include "decoder/greedy.h"
#include "tests/lexicon/support.h"

enum { MAX_T = 400, MAX_V = 45, MAX_LENGTH = 64 };

static const char arpa[] = "\\data\\\nngram 1=6\nngram 2=7\nngram 3=3\n\n\\1-grams:\n-0.7 </s>\n-99 <s> -0.3\n-0.5 A -0.2\n-0.6 B "
                           "-0.4\n-0.9 C -0.1\n-1.5 <unk> -0.3\n\n\\2-grams:\n-0.3 <s> A -0.1\n-0.4 A B -0.2\n-1.1 A A\n-0.9 B A "
                           "-0.3\n-0.2 C </s>\n-0.8 B </s>\n-0.5 A C -0.1\n\n\\3-grams:\n-0.1 <s> A B\n-0.6 A B A\n-0.2 B A "
                           "C\n\n\\end\\\n";

/* ---- rows ----------------------------------------------------------------------------------------------------------------- */

// Normalised rows of any sharpness.
static void random_rows(float *logp, int T, int V, uint64_t key, double sharpness)
{
    for (int t = 0; t < T; t++) {
        double x[MAX_V], sum = 0;
        for (int k = 0; k < V; k++) {
            x[k] = sharpness * lin_random_uniform(key, (uint64_t)(t * V + k));
            sum += exp(x[k]);
        }
        for (int k = 0; k < V; k++) logp[t * V + k] = (float)(x[k] - log(sum));
    }
}

// Rows as networks give: blanks, with peaks of one to four frames, now and then doubtful between two labels, and exact ties.
static void peaky_rows(float *logp, int T, int V, uint64_t key)
{
    int label = 0, rival = 1, left = 0;
    for (int t = 0; t < T; t++) {
        uint64_t at = (uint64_t)t * 64;
        if (!left--) {
            label = label && lin_random_below(key, at, 4) ? 0 : 1 + (int)lin_random_below(key, at + 1, (uint32_t)V - 1);
            rival = (int)lin_random_below(key, at + 2, (uint32_t)V);
            left = (int)lin_random_below(key, at + 3, label ? 4 : 8);
        }
        double x[MAX_V], sum = 0;
        for (int k = 0; k < V; k++) {
            x[k] = -12 + 4 * lin_random_uniform(key, at + 8 + (uint64_t)k);
            if (k == label) x[k] = 0;
            else if (k == rival) x[k] = -(double)lin_random_below(key, at + 4, 5) * 2;
            sum += exp(x[k]);
        }
        for (int k = 0; k < V; k++) logp[t * V + k] = (float)(x[k] - log(sum));
    }
}

static void break_ties(float *logp, int n, uint64_t key)
{
    for (int i = 0; i < n; i++) logp[i] -= 1e-4f * (float)lin_random_uniform(~key, (uint64_t)i);
}

/* ---- a search -------------------------------------------------------------------------------------------------------------- */

typedef struct search {
    lin_beam *beam;
    void *state;
    lin_path settled, tail;
} search;

static lin_beam_options wide(int width)
{
    return (lin_beam_options){.width = width, .longest = MAX_LENGTH};
}

static search begin(int V, const lin_ngram *lm, const int *labels, lin_beam_options options, int64_t first)
{
    search s = {0};
    OK(lin_beam_create(V, lm, labels, &options, &s.beam, &err));
    s.state = lin_alloc(lin_beam_bytes(s.beam), 1);
    ck_assert(s.state != NULL);
    lin_beam_reset(s.beam, s.state, first);
    return s;
}

static void end(search *s)
{
    lin_beam_destroy(s->beam);
    lin_free(s->state);
    lin_path_free(&s->settled);
    lin_path_free(&s->tail);
}

static void push(search *s, const lin_context *context, const float *logp, int n)
{
    OK(lin_beam_push(s->beam, s->state, context, logp, n, &s->settled, &err));
}

static void check_state(const search *s) { OK(lin_beam_check(s->beam, s->state, lin_beam_bytes(s->beam), &err)); }

static void same_path(const lin_path *got, const lin_path *want)
{
    ck_assert_int_eq(got->n_phones, want->n_phones);
    for (int i = 0; i < want->n_phones; i++) {
        const lin_path_phone *g = &got->phones[i], *w = &want->phones[i];
        ck_assert(g->label == w->label && g->start == w->start && g->end == w->end);
        ck_assert(memcmp(&g->confidence, &w->confidence, sizeof g->confidence) == 0);
    }
    ck_assert(got->score == want->score && got->acoustic == want->acoustic && got->language == want->language);
}

/* ---- greedy ---------------------------------------------------------------------------------------------------------------- */

static void as_greedy(const float *logp, int T, int V, int64_t first, lin_beam_options options)
{
    static lin_greedy_phone want[MAX_T + 1];
    lin_greedy g;
    int n, last;
    lin_greedy_reset(&g, V, first, 0);
    OK(lin_greedy_push(&g, logp, T, want, T, &n, &err));
    search s = begin(V, NULL, NULL, options, first);
    push(&s, NULL, logp, T);
    // No later than greedy does it: only a phone whose neighbour follows at once may still be open.
    ck_assert_int_eq(s.settled.n_phones, n);
    check_state(&s);
    lin_greedy_finish(&g, want + n, &last);
    n += last;
    OK(lin_beam_finish(s.beam, s.state, NULL, &s.settled, &err));
    ck_assert_int_eq(s.settled.n_phones, n);
    for (int i = 0; i < n; i++) {
        const lin_path_phone *p = &s.settled.phones[i];
        ck_assert(p->label == want[i].label && p->start == want[i].start && p->end == want[i].end);
        ck_assert(memcmp(&p->confidence, &want[i].confidence, sizeof p->confidence) == 0);
    }
    double sum = 0;
    for (int t = 0; t < T; t++) {
        float best = logp[t * V];
        for (int k = 1; k < V; k++) best = fmaxf(best, logp[t * V + k]);
        sum += (double)best;
    }
    ck_assert(fabs(s.settled.score - sum) < 1e-9 && s.settled.acoustic == s.settled.score && s.settled.language == 0);
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
        if (seed % 5 == 1) { // ties of the best
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

/* ---- every path ------------------------------------------------------------------------------------------------------------ */

// A prefix as a number: digits 1 .. V-1 in base V, the first phone highest. Sums and best paths of all T-frame paths.
typedef struct census {
    int V, T;
    double sum[1 << 16], best[1 << 16];
    int best_path[1 << 16]; // as a number, the first frame highest
} census;

static int power(int base, int n) { return n ? base * power(base, n - 1) : 1; }

static void count_paths(census *c, const float *logp, int V, int T)
{
    c->V = V;
    c->T = T;
    memset(c->sum, 0, sizeof c->sum);
    memset(c->best, 0, sizeof c->best);
    for (int path = 0, n = power(V, T); path < n; path++) {
        int prefix = 0, last = 0;
        double p = 1;
        for (int t = 0; t < T; t++) {
            int label = path / power(V, T - 1 - t) % V;
            p *= exp((double)logp[t * V + label]);
            if (label && label != last) prefix = prefix * V + label;
            last = label;
        }
        c->sum[prefix] += p;
        if (p > c->best[prefix]) {
            c->best[prefix] = p;
            c->best_path[prefix] = path;
        }
    }
}

static int digits(int prefix, int V, int *labels)
{
    int n = 0;
    for (int rest = prefix; rest; rest /= V) n++;
    for (int i = n - 1; i >= 0; i--, prefix /= V) labels[i] = prefix % V;
    return n;
}

// What the prefix weighs beside its sound, asked of model and context themselves.
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
    if (finished && lm) *language += (double)lin_ngram_end(lm, at);
    if (finished && context) weight += (double)lin_context_finish(context, &place);
    return weight + o->lm_weight * *language + o->bonus * n;
}

static void check_times(const census *c, const float *logp, int prefix, const lin_path *tail)
{
    int T = c->T, V = c->V, i = 0;
    for (int t = 0; t < T;) {
        const int path = c->best_path[prefix], label = path / power(V, T - 1 - t) % V;
        int stop = t;
        double sum = 0;
        for (; stop < T && path / power(V, T - 1 - stop) % V == label; stop++) sum += (double)logp[stop * V + label];
        if (label) {
            const lin_path_phone *p = &tail->phones[i++];
            test_require(p->start == t && p->end == stop, "phone %d of prefix %d: frames %d-%d, expected %d-%d", i, prefix,
                         (int)p->start, (int)p->end, t, stop);
            ck_assert(fabs((double)p->confidence - exp(sum / (stop - t))) < 1e-6);
        }
        t = stop;
    }
}

static void check_prefixes(const search *s, const census *c, const float *logp, const lin_ngram *lm, const int *words,
                           const lin_context *context, const lin_beam_options *o, int finished)
{
    static char seen[1 << 16];
    int n = 0, labels[16];
    lin_path tail = {0};
    double before = INFINITY;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < (1 << 16); i++) n += c->sum[i] > 0;
    ck_assert_int_eq(lin_beam_prefixes(s->beam, s->state), n);
    for (int which = 0; which < n; which++) {
        OK(lin_beam_nbest(s->beam, s->state, which, &tail, &err));
        int prefix = 0;
        for (int i = 0; i < tail.n_phones; i++) prefix = prefix * c->V + tail.phones[i].label;
        ck_assert(c->sum[prefix] > 0 && !seen[prefix]);
        seen[prefix] = 1;
        double language, weight = weight_of(labels, digits(prefix, c->V, labels), lm, words, context, o, finished, &language);
        test_require(fabs(tail.acoustic - log(c->sum[prefix])) < 1e-9, "prefix %d: %.12g, expected %.12g", prefix, tail.acoustic,
                     log(c->sum[prefix]));
        ck_assert(fabs(tail.language - language) < 1e-9);
        ck_assert(fabs(tail.score - (log(c->sum[prefix]) + weight)) < 1e-9);
        ck_assert(tail.score <= before);
        before = tail.score;
        check_times(c, logp, prefix, &tail);
    }
    lin_path_free(&tail);
}

static void exhaust(uint64_t seed, int V, int T, const lin_ngram *lm, const lin_context *context, lin_beam_options o)
{
    static census c;
    float logp[8 * 4];
    random_rows(logp, T, V, seed, 1 + (double)(seed % 8));
    count_paths(&c, logp, V, T);
    int known[] = {-1, 0, 0, -1};
    for (int k = 1; lm && k < 4; k++) known[k] = lin_ngram_find(lm, (const char[]){(char)('A' + k - 1)}, 1);
    if (seed % 5 == 4) known[3] = -1; // <unk>
    search s = begin(V, lm, known, o, 0);
    for (int t = 0; t < T; t++) {
        push(&s, context, logp + t * V, 1);
        check_state(&s);
    }
    ck_assert_int_eq(s.settled.n_phones, 0); // not before the empty prefix is out
    check_prefixes(&s, &c, logp, lm, known, context, &o, 0);
    OK(lin_beam_finish(s.beam, s.state, context, NULL, &err));
    check_prefixes(&s, &c, logp, lm, known, context, &o, 1);
    OK(lin_beam_nbest(s.beam, s.state, 0, &s.tail, &err));
    lin_beam_reset(s.beam, s.state, 0);
    push(&s, context, logp, T);
    OK(lin_beam_finish(s.beam, s.state, context, &s.settled, &err));
    same_path(&s.settled, &s.tail);
    end(&s);
}

START_TEST(an_exhaustive_beam_gives_the_sum_over_all_paths)
{
    const int a[] = {1, 2}, b[] = {2, 1, 2}, c[] = {3};
    const int *phrases[] = {a, b, c}, lengths[] = {2, 3, 1};
    const double bonuses[] = {1.5, 2, -0.5};
    lin_ngram *lm;
    lin_context *context;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    OK(lin_context_create(phrases, lengths, bonuses, 3, &context, &err));
    for (uint64_t seed = 0; seed < 96; seed++) {
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

/* ---- a plain search: log domain, whole sequences, nothing shared ------------------------------------------------------------ */

enum { PLAIN_T = 150, PLAIN_WIDTH = 8 };

typedef struct plain_end {
    double sum, best;
    int n; // phones complete, and the open one
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

static double add_logs(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

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

// Takes an end of another hypothesis over if it is better: `sum` and `best` as they become.
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
    ck_assert_int_eq(lin_beam_prefixes(s.beam, s.state), n);
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
                         "seed %d, T %d, prefix %d of %d, phone %d of %d: %d %d-%d, expected %d %d-%d", (int)seed, T, i, n, k, e->n,
                         p->label, (int)p->start, (int)p->end, h->labels[k], (int)e->phones[k].start, (int)e->phones[k].end);
            ck_assert(fabs((double)p->confidence - exp(e->logp[k] / (double)(p->end - p->start))) < 1e-6);
        }
    }
    end(&s);
}

START_TEST(a_plain_search_finds_the_same)
{
    const int a[] = {1, 2}, b[] = {2, 1, 2}, c[] = {4};
    const int *phrases[] = {a, b, c}, lengths[] = {2, 3, 1};
    const double bonuses[] = {1.5, 2, -0.5};
    lin_ngram *lm;
    lin_context *context;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    OK(lin_context_create(phrases, lengths, bonuses, 3, &context, &err));
    for (uint64_t seed = 0; seed < 160; seed++) against_plain(seed, seed / 2 % 2 ? lm : NULL, seed / 4 % 2 ? context : NULL);
    lin_context_destroy(context);
    lin_ngram_destroy(lm);
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------------------------------------- */

START_TEST(any_split_fork_or_saved_state_goes_on_alike)
{
    static float logp[MAX_T * MAX_V];
    const int phrase[] = {1, 2};
    const int *phrases[] = {phrase}, lengths[] = {2};
    const double bonuses[] = {2};
    lin_ngram *lm;
    lin_context *context;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    OK(lin_context_create(phrases, lengths, bonuses, 1, &context, &err));
    for (uint64_t seed = 0; seed < 150; seed++) {
        const int V = 5 + (int)(seed % 30), T = 40 + (int)lin_random_below(seed, 1u << 20, MAX_T - 40);
        int words[MAX_V];
        for (int k = 0; k < V; k++) words[k] = k % 7 - 1;
        lin_beam_options o = lin_beam_options_default();
        o.longest = 1 + (int)(seed % 20);
        o.width = seed % 3 ? 12 : 3;
        if (seed % 4 == 0) random_rows(logp, T, V, seed, 5);
        else peaky_rows(logp, T, V, seed);
        const lin_ngram *model = seed % 2 ? lm : NULL;
        const lin_context *use = seed % 5 ? NULL : context;
        search whole = begin(V, model, words, o, 7), parts = begin(V, model, words, o, 7);
        const size_t bytes = lin_beam_bytes(whole.beam);
        void *saved = lin_alloc(bytes, 1);
        push(&whole, use, logp, T);
        int most = 0;
        OK(lin_path_reserve(&parts.settled, T + o.longest, 0, &err));
        OK(lin_path_reserve(&parts.tail, o.longest, 0, &err));
        unsigned long allocations = lin_memory_count();
        for (int t = 0, i = 0; t < T; i++) {
            int step = (int)lin_random_below(seed, (1u << 21) + (uint64_t)i, seed % 4 ? 6 : 60);
            if (step > T - t) step = T - t;
            push(&parts, use, logp + t * V, step);
            t += step;
            OK(lin_beam_nbest(parts.beam, parts.state, 0, &parts.tail, &err));
            if (parts.tail.n_phones > most) most = parts.tail.n_phones;
            memcpy(saved, parts.state, bytes); // another place in memory
            memset(parts.state, 0xA5, bytes);
            void *swap = saved;
            saved = parts.state;
            parts.state = swap;
        }
        ck_assert_uint_eq(lin_memory_count(), allocations);
        check_state(&parts);
        ck_assert(most <= o.longest);
        ck_assert(memcmp(whole.state, parts.state, bytes) == 0);
        OK(lin_beam_finish(whole.beam, whole.state, use, &whole.settled, &err));
        OK(lin_beam_finish(parts.beam, parts.state, use, &parts.settled, &err));
        same_path(&parts.settled, &whole.settled);
        check_state(&parts);
        for (int i = 1; i < whole.settled.n_phones; i++)
            ck_assert(whole.settled.phones[i].start >= whole.settled.phones[i - 1].end);
        lin_beam_reset(parts.beam, parts.state, 7); // nothing of the old segment is left
        lin_path_clear(&parts.settled);
        push(&parts, use, logp, T);
        OK(lin_beam_finish(parts.beam, parts.state, use, &parts.settled, &err));
        same_path(&parts.settled, &whole.settled);
        ck_assert(memcmp(whole.state, parts.state, bytes) == 0);
        lin_free(saved);
        end(&whole);
        end(&parts);
    }
    lin_context_destroy(context);
    lin_ngram_destroy(lm);
}
END_TEST

// Where the best prefix is greedy's, its best alignment is the best path, which is greedy's.
START_TEST(times_are_those_of_the_best_path)
{
    static float logp[MAX_T * MAX_V];
    static lin_greedy_phone want[MAX_T + 1];
    int same = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        const int V = 20, T = 20;
        int n, last, alike;
        lin_greedy g;
        peaky_rows(logp, T, V, seed * 77);
        break_ties(logp, T * V, seed);
        lin_greedy_reset(&g, V, 0, 0);
        OK(lin_greedy_push(&g, logp, T, want, T, &n, &err));
        lin_greedy_finish(&g, want + n, &last);
        n += last;
        search s = begin(V, NULL, NULL, lin_beam_options_default(), 0);
        push(&s, NULL, logp, T);
        OK(lin_beam_finish(s.beam, s.state, NULL, &s.settled, &err));
        alike = s.settled.n_phones == n;
        for (int i = 0; i < n && alike; i++) alike = s.settled.phones[i].label == want[i].label;
        for (int i = 0; i < n && alike; i++) {
            const lin_path_phone *p = &s.settled.phones[i];
            ck_assert(p->start == want[i].start && p->end == want[i].end && p->confidence == want[i].confidence);
        }
        same += alike;
        end(&s);
    }
    ck_assert_msg(same >= 50, "only %d", same);
}
END_TEST

// Phones whose frames are known: runs of given lengths at given places, some side by side, some repeated across blanks.
START_TEST(known_onsets)
{
    enum { N = 40, V = 12 };
    static float logp[MAX_T * V];
    int64_t starts[N], ends[N];
    int labels[N], T = 0;
    for (int i = 0; i < N; i++) {
        int blanks = (int)lin_random_below(5, (uint64_t)i * 3, 5), run = 1 + (int)lin_random_below(5, (uint64_t)i * 3 + 1, 4);
        labels[i] = 1 + (int)lin_random_below(5, (uint64_t)i * 3 + 2, V - 1);
        if (i && labels[i] == labels[i - 1] && !blanks) blanks = 1;
        for (int t = 0; t < blanks + run; t++)
            for (int k = 0; k < V; k++) logp[(T + t) * V + k] = k == (t < blanks ? 0 : labels[i]) ? -0.1f : -4.75f;
        starts[i] = T + blanks;
        ends[i] = T += blanks + run;
    }
    for (int width = 1; width <= 64; width *= 4) {
        lin_beam_options o = lin_beam_options_default();
        o.width = width;
        search s = begin(V, NULL, NULL, o, 1000);
        push(&s, NULL, logp, T);
        OK(lin_beam_finish(s.beam, s.state, NULL, &s.settled, &err));
        ck_assert_int_eq(s.settled.n_phones, N);
        for (int i = 0; i < N; i++) {
            const lin_path_phone *p = &s.settled.phones[i];
            ck_assert(p->label == labels[i] && p->start == 1000 + starts[i] && p->end == 1000 + ends[i]);
            ck_assert(fabs((double)p->confidence - exp(-0.1)) < 1e-6);
        }
        end(&s);
    }
}
END_TEST

// A skipped frame is a frame whose other outputs are impossible.
START_TEST(skipped_frames_are_only_blank)
{
    static float logp[MAX_T * MAX_V], only[MAX_T * MAX_V];
    for (uint64_t seed = 0; seed < 60; seed++) {
        const int V = 9, T = 120;
        lin_beam_options o = lin_beam_options_default();
        int skipped = 0;
        peaky_rows(logp, T, V, seed);
        for (int t = 0; t < T; t++) {
            int skip = exp((double)logp[t * V]) >= 0.8;
            skipped += skip;
            for (int k = 0; k < V; k++) only[t * V + k] = skip && k ? -INFINITY : logp[t * V + k];
        }
        ck_assert(skipped > 5);
        o.blank = 0.8;
        search a = begin(V, NULL, NULL, o, 0);
        o.blank = 0;
        search b = begin(V, NULL, NULL, o, 0);
        push(&a, NULL, logp, T);
        push(&b, NULL, only, T);
        OK(lin_beam_finish(a.beam, a.state, NULL, &a.settled, &err));
        OK(lin_beam_finish(b.beam, b.state, NULL, &b.settled, &err));
        same_path(&a.settled, &b.settled);
        end(&a);
        end(&b);
    }
}
END_TEST

// A million frames: the same 1,000 over and over gain the same each time, memory stands still, the state stays sound.
START_TEST(a_million_frames)
{
    enum { BLOCK = 1000, V = 8 };
    static float logp[BLOCK * V];
    peaky_rows(logp, BLOCK, V, 3);
    for (int k = 0; k < 20; k++)
        for (int i = 0; i < V; i++) logp[k * V + i] = i ? -20 : -1e-8f; // all begin from the same place
    for (int width = 1; width <= 4; width += 3) {
        lin_beam_options o = lin_beam_options_default();
        o.width = width;
        o.longest = 20;
        search s = begin(V, NULL, NULL, o, INT64_C(1) << 40);
        OK(lin_path_reserve(&s.settled, BLOCK + o.longest, 0, &err));
        OK(lin_path_reserve(&s.tail, o.longest, 0, &err));
        unsigned long allocations = lin_memory_count();
        double scores[2] = {0}, gain = 0;
        long phones = 0, per_block = 0;
        for (int block = 0; block < 1000; block++) {
            push(&s, NULL, logp, BLOCK);
            if (block == 500) per_block = s.settled.n_phones;
            if (block > 500) phones += s.settled.n_phones;
            lin_path_clear(&s.settled);
            OK(lin_beam_nbest(s.beam, s.state, 0, &s.tail, &err));
            if (block == 9) scores[0] = s.tail.score;
            if (block == 10) gain = s.tail.score - scores[0];
            scores[1] = s.tail.score;
        }
        ck_assert_uint_eq(lin_memory_count(), allocations);
        check_state(&s);
        ck_assert_int_eq((int)phones, (int)per_block * 499);
        test_require(fabs(scores[1] - scores[0] - 990 * gain) < 1e-7 * fabs(scores[1]) / 100, "%.12g, expected %.12g",
                     scores[1] - scores[0], 990 * gain);
        end(&s);
    }
}
END_TEST

/* ---- contexts that change --------------------------------------------------------------------------------------------------- */

// With every prefix in the beam: at the change, after `before` frames, all prefixes that fit in them are known and lose what was
// unfinished; the phones behind these are matched by the new phrases alone.
static double weight_across(const int *labels, int n, int before, const lin_context *first, const lin_context *second)
{
    double weight = 0;
    int place = 0, known = 0, frames = 0;
    for (; known < n; known++) {
        frames += 1 + (known && labels[known] == labels[known - 1]);
        if (frames > before) break;
        if (first) weight += (double)lin_context_next(first, &place, labels[known]);
    }
    if (first) weight += (double)lin_context_finish(first, &place);
    for (int i = known; second && i < n; i++) weight += (double)lin_context_next(second, &place, labels[i]);
    return second ? weight + (double)lin_context_finish(second, &place) : weight;
}

START_TEST(phrases_may_change_between_pushes)
{
    enum { V = 3, T = 7 };
    static census c;
    const int a[] = {1, 2, 1}, b[] = {2, 2}, d[] = {2, 1};
    const int *first_phrases[] = {a, b}, *second_phrases[] = {d, a}, lengths[] = {3, 2}, other[] = {2, 3};
    const double bonuses[] = {3, 1}, others[] = {2, 1.5};
    lin_context *contexts[3] = {NULL};
    float logp[T * V];
    OK(lin_context_create(first_phrases, lengths, bonuses, 2, &contexts[1], &err));
    OK(lin_context_create(second_phrases, other, others, 2, &contexts[2], &err));
    for (uint64_t seed = 0; seed < 54; seed++) {
        const lin_context *first = contexts[seed % 3], *second = contexts[seed / 3 % 3];
        const int before = 1 + (int)(seed / 9);
        random_rows(logp, T, V, seed, 3);
        count_paths(&c, logp, V, T);
        search s = begin(V, NULL, NULL, wide(LIN_BEAM_MAX), 0);
        push(&s, first, logp, before);
        push(&s, second, logp, 0); // without frames nothing changes
        push(&s, first, logp, 0);
        push(&s, second, logp + before * V, T - before);
        check_state(&s);
        OK(lin_beam_finish(s.beam, s.state, second, NULL, &err));
        double last = INFINITY;
        for (int which = 0; which < lin_beam_prefixes(s.beam, s.state); which++) {
            int labels[16], prefix = 0;
            OK(lin_beam_nbest(s.beam, s.state, which, &s.tail, &err));
            for (int i = 0; i < s.tail.n_phones; i++) prefix = prefix * V + (labels[i] = s.tail.phones[i].label);
            double want = log(c.sum[prefix]) + (first == second ? weight_across(labels, s.tail.n_phones, 0, NULL, first)
                                                                : weight_across(labels, s.tail.n_phones, before, first, second));
            test_require(fabs(s.tail.acoustic - log(c.sum[prefix])) < 1e-9 && fabs(s.tail.score - want) < 1e-9,
                         "seed %d, prefix %d: %.12g, expected %.12g", (int)seed, prefix, s.tail.score, want);
            ck_assert(s.tail.score <= last);
            last = s.tail.score;
        }
        end(&s);
    }
    lin_context_destroy(contexts[1]);
    lin_context_destroy(contexts[2]);
}
END_TEST

/* ---- what may go wrong ------------------------------------------------------------------------------------------------------ */

START_TEST(bad_rows_change_nothing)
{
    float logp[6 * 4], bad[6 * 4];
    search s = begin(4, NULL, NULL, lin_beam_options_default(), 50);
    const size_t bytes = lin_beam_bytes(s.beam);
    void *before = malloc(bytes);
    random_rows(logp, 6, 4, 1, 4);
    push(&s, NULL, logp, 3);
    memcpy(before, s.state, bytes);
    const int n = s.settled.n_phones;
    const float hostile[] = {NAN, INFINITY, -NAN};
    for (size_t i = 0; i < 3 * 6; i++) {
        memcpy(bad, logp, sizeof bad);
        bad[4 + i % 4] = hostile[i % 3];
        FAILS(lin_beam_push(s.beam, s.state, NULL, bad, 6, &s.settled, &err), LIN_NUMERIC, "frame 54: ");
    }
    memcpy(bad, logp, sizeof bad);
    for (int k = 0; k < 4; k++) bad[k] = -INFINITY;
    FAILS(lin_beam_push(s.beam, s.state, NULL, bad, 6, &s.settled, &err), LIN_NUMERIC, "frame 53: ");
    FAILS(lin_beam_push(s.beam, s.state, NULL, logp, -1, &s.settled, &err), LIN_INVALID, "-1 frames");
    lin_path none = {0};
    lin_memory_fail_at(1);
    FAILS(lin_beam_push(s.beam, s.state, NULL, logp, 3, &none, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(1);
    FAILS(lin_beam_finish(s.beam, s.state, NULL, &none, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(1);
    FAILS(lin_beam_nbest(s.beam, s.state, 0, &none, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(0);
    FAILS(lin_beam_nbest(s.beam, s.state, lin_beam_prefixes(s.beam, s.state), &s.tail, &err), LIN_INVALID, "was asked for");
    FAILS(lin_beam_nbest(s.beam, s.state, -1, &s.tail, &err), LIN_INVALID, "prefix -1");
    ck_assert(memcmp(before, s.state, bytes) == 0 && s.settled.n_phones == n);
    OK(lin_beam_finish(s.beam, s.state, NULL, NULL, &err));
    FAILS(lin_beam_push(s.beam, s.state, NULL, logp, 1, &s.settled, &err), LIN_INVALID, "reset");
    FAILS(lin_beam_finish(s.beam, s.state, NULL, NULL, &err), LIN_INVALID, "reset");
    free(before);
    end(&s);
}
END_TEST

// Rows at the ends of float, hard zeros, rows that are no probabilities, and a model that allows nothing.
START_TEST(strange_rows)
{
    static const char one_word[] = "\\data\\\nngram 1=1\n\n\\1-grams:\n-1 A\n\n\\end\\\n";
    const float values[] = {-INFINITY, 0, -3.4e38f, 3.4e38f, -1e-30f, 90, -700, -0.0f, 1};
    const int words[] = {-1, -1, 0, -1};
    lin_ngram *lm;
    OK(lin_ngram_parse(one_word, sizeof one_word - 1, "one.arpa", &lm, &err));
    for (uint64_t seed = 0; seed < 400; seed++) {
        float logp[30 * 4];
        lin_beam_options o = lin_beam_options_default();
        o.width = 1 + (int)(seed % 7);
        o.bonus = (double)(seed % 3) * 100 - 100;
        o.score = seed % 2 ? 0 : 2;
        o.blank = seed % 5 ? 0 : 0.5;
        for (int i = 0; i < 30 * 4; i++) logp[i] = values[lin_random_below(seed, (uint64_t)i, seed % 11 ? 9 : 2)];
        for (int t = 0; t < 30; t++) {
            if (logp[t * 4] == -INFINITY && logp[t * 4 + 1] == -INFINITY && logp[t * 4 + 2] == -INFINITY) logp[t * 4 + 3] = 0;
        }
        search s = begin(4, seed % 3 ? NULL : lm, words, o, 0);
        for (int t = 0; t < 30; t++) {
            push(&s, NULL, logp + t * 4, 1);
            check_state(&s);
        }
        OK(lin_beam_finish(s.beam, s.state, NULL, &s.settled, &err));
        ck_assert(!isnan(s.settled.score));
        for (int i = 0; i < s.settled.n_phones; i++) {
            const lin_path_phone *p = &s.settled.phones[i];
            ck_assert(p->start < p->end && (double)p->confidence >= 0 && (double)p->confidence <= 1);
            if (seed % 3 == 0) ck_assert_int_eq(p->label, 2);
        }
        end(&s);
    }
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(damaged_states)
{
    enum { V = 6, T = 60 };
    float logp[T * V];
    const int words[] = {-1, 0, 3, 4, 5, 2};
    lin_ngram *lm;
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    lin_beam_options o = lin_beam_options_default();
    o.width = 5;
    o.longest = 6;
    random_rows(logp, T, V, 1, 5);
    search s = begin(V, lm, words, o, 0), other = begin(V, NULL, NULL, o, 0);
    const size_t bytes = lin_beam_bytes(s.beam);
    push(&s, NULL, logp, T / 2);
    unsigned char *damaged = lin_alloc(bytes, 1);
    int refused = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        lin_error err = {0};
        memcpy(damaged, s.state, bytes);
        const size_t at = 16 + lin_random_below(seed, 0, (uint32_t)(bytes - 16)); // not what says whose it is
        if (seed % 2) {
            damaged[at] ^= (unsigned char)(1 << lin_random_below(seed, 1, 8));
        } else {
            int32_t value = (int32_t)lin_random_below(seed, 2, 50) - 5;
            memcpy(damaged + (at / 4 * 4 < bytes - 4 ? at / 4 * 4 : bytes - 4), &value, sizeof value);
        }
        lin_status status = lin_beam_check(s.beam, damaged, bytes, &err);
        ck_assert(status == LIN_OK || status == LIN_FORMAT);
        refused += status == LIN_FORMAT;
        if (status) continue;
        lin_path_clear(&s.settled);
        status = lin_beam_push(s.beam, damaged, NULL, logp + T / 2 * V, T / 2, &s.settled, NULL);
        if (!status) lin_beam_finish(s.beam, damaged, NULL, &s.settled, NULL);
    }
    ck_assert_msg(refused > 3000, "%d", refused);
    FAILS(lin_beam_check(s.beam, s.state, bytes - 1, &err), LIN_MISMATCH, "other options");
    FAILS(lin_beam_check(other.beam, s.state, bytes, &err), LIN_MISMATCH, "another language model");
    damaged[0] ^= 1;
    FAILS(lin_beam_check(s.beam, damaged, bytes, &err), LIN_MISMATCH, "other options");
    memcpy(damaged, s.state, bytes);
    memset(damaged + bytes / 2, 0xFF, bytes / 4);
    FAILS(lin_beam_check(s.beam, damaged, bytes, &err), LIN_FORMAT, "damaged");
    lin_memory_fail_at(1);
    FAILS(lin_beam_check(s.beam, s.state, bytes, &err), LIN_NO_MEMORY, "");
    lin_memory_fail_at(0);
    lin_free(damaged);
    end(&s);
    end(&other);
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(bad_options)
{
    lin_beam *beam;
    lin_ngram *lm;
    const int words[] = {-1, 0, 3, 4}, beyond[] = {-1, 0, 3, 9};
    const struct {
        lin_beam_options o;
        const char *text;
    } cases[] = {
        {{.width = 0, .longest = 5}, "width is 0"},
        {{.width = LIN_BEAM_MAX + 1, .longest = 5}, "width is 1025; it must lie within 1 and 1024"},
        {{.width = 1, .longest = 0}, "longest is 0"},
        {{.width = 1, .longest = 5, .score = -1}, "score is -1"},
        {{.width = 1, .longest = 5, .score = (double)NAN}, "score is nan"},
        {{.width = 1, .longest = 5, .labels = -1}, "labels is -1"},
        {{.width = 1, .longest = 5, .blank = 1.5}, "blank is 1.5"},
        {{.width = 1, .longest = 5, .lm_weight = -0.5}, "lm_weight is -0.5"},
        {{.width = 1, .longest = 5, .bonus = (double)INFINITY}, "bonus is inf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FAILS(lin_beam_create(4, NULL, NULL, &cases[i].o, &beam, &err), LIN_INVALID, cases[i].text);
        ck_assert(beam == NULL);
    }
    lin_beam_options o = lin_beam_options_default();
    FAILS(lin_beam_create(0, NULL, NULL, &o, &beam, &err), LIN_INVALID, "outputs is 0");
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "small.arpa", &lm, &err));
    FAILS(lin_beam_create(4, lm, NULL, &o, &beam, &err), LIN_INVALID, "no words for the labels");
    FAILS(lin_beam_create(4, lm, beyond, &o, &beam, &err), LIN_INVALID, "label 3 is word 9");
    FAIL_EVERY_ALLOCATION(lin_beam_create(4, lm, words, &o, &beam, NULL), lin_beam_destroy(beam));
    lin_beam_destroy(NULL);
    o.labels = 3; // more outputs than there are, one output
    search s = begin(1, NULL, NULL, o, 0);
    float row[] = {-0.5f, 0, -1};
    push(&s, NULL, row, 3);
    OK(lin_beam_finish(s.beam, s.state, NULL, &s.settled, &err));
    ck_assert(s.settled.n_phones == 0 && fabs(s.settled.score + 1.5) < 1e-12);
    end(&s);
    lin_ngram_destroy(lm);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("beam");
    TCase *tests = tcase_create("beam");
    tcase_add_test(tests, width_one_is_greedy);
    tcase_add_test(tests, an_exhaustive_beam_gives_the_sum_over_all_paths);
    tcase_add_test(tests, a_plain_search_finds_the_same);
    tcase_add_test(tests, any_split_fork_or_saved_state_goes_on_alike);
    tcase_add_test(tests, times_are_those_of_the_best_path);
    tcase_add_test(tests, known_onsets);
    tcase_add_test(tests, skipped_frames_are_only_blank);
    tcase_add_test(tests, a_million_frames);
    tcase_add_test(tests, phrases_may_change_between_pushes);
    tcase_add_test(tests, bad_rows_change_nothing);
    tcase_add_test(tests, strange_rows);
    tcase_add_test(tests, damaged_states);
    tcase_add_test(tests, bad_options);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
