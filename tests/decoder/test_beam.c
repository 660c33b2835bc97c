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
    for (uint64_t seed = 0; seed < 600; seed++) {
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
    for (uint64_t seed = 0; seed < 240; seed++) {
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

int main(void)
{
    Suite *suite = suite_create("beam");
    TCase *tests = tcase_create("beam");
    tcase_add_test(tests, width_one_is_greedy);
    tcase_add_test(tests, an_exhaustive_beam_gives_the_sum_over_all_paths);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
