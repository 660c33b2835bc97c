// Random back-off models, their text, and their scores by the definition.
#include "tests/lexicon/random_model.h"

const gram *model_find(const model *m, const int *words, int n)
{
    for (int i = m->begins[n]; i < m->begins[n] + m->counts[n]; i++)
        if (!memcmp(m->grams[i].words, words, (size_t)n * sizeof *words)) return &m->grams[i];
    return NULL;
}

// log10 P(words[n - 1] | the words before it).
static double model_score(const model *m, const int *words, int n)
{
    if (n > m->order) return model_score(m, words + (n - m->order), m->order);
    const gram *found = model_find(m, words, n);
    if (found) return found->logp;
    if (n == 1) return -INFINITY;
    const gram *context = model_find(m, words, n - 1);
    return (context ? context->backoff : 0) + model_score(m, words + 1, n - 1);
}

int model_is_context(const model *m, const gram *g)
{
    if (g->n == m->order) return 0;
    if (g->backoff < 0 || g->backoff > 0) return 1;
    for (int i = m->begins[g->n + 1]; i < m->begins[g->n + 1] + m->counts[g->n + 1]; i++)
        if (!memcmp(m->grams[i].words, g->words, (size_t)g->n * sizeof *g->words)) return 1;
    return 0;
}

uint32_t model_draw(model *m, uint32_t below) { return lin_random_below(m->key, m->draws++, below); }

// Four decimals, as in most files, or more; 10 % are 0 where that is legal.
static double model_number(model *m, double lo, double hi)
{
    static const double scales[] = {1e4, 1e4, 1e6, 1e2};
    double x = lo + (hi - lo) * lin_random_uniform(m->key, m->draws++), scale = scales[model_draw(m, 4)];
    if (lo <= 0 && hi >= 0 && model_draw(m, 10) == 0) return 0;
    return round(x * scale) / scale;
}

static void model_add(model *m, const int *words, int n)
{
    if (m->n == MODEL_MOST) return;
    gram *g = &m->grams[m->n++];
    *g = (gram){.n = n, .logp = model_number(m, -7, 0)};
    memcpy(g->words, words, (size_t)n * sizeof *words);
    if (n == 1 && words[0] == m->begin) g->logp = -99;
    if (n < m->order && model_draw(m, 3)) g->backoff = model_number(m, -2, 0.3);
    m->counts[n]++;
}

model *random_model(uint64_t key, int order, int n_words, double children, int whole, int special)
{
    model *m = lin_calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    *m = (model){.order = order, .n_words = n_words, .key = key};
    m->begin = special & 1 ? 0 : -1;
    m->end = special & 2 ? 1 : -1;
    m->unknown = special & 4 ? 2 : -1;
    for (int w = 0; w < n_words; w++) model_add(m, &w, 1);
    for (int k = 2; k <= order; k++) {
        m->begins[k] = m->n;
        for (int c = m->begins[k - 1]; c < m->begins[k - 1] + m->counts[k - 1]; c++) {
            int words[LIN_NGRAM_MAX_ORDER];
            memcpy(words, m->grams[c].words, sizeof words);
            for (int w = 0; w < n_words; w++) {
                words[k - 1] = w;
                if (lin_random_uniform(m->key, m->draws++) * n_words >= children) continue;
                if (!whole || model_find(m, words + 1, k - 1)) model_add(m, words, k);
            }
        }
    }
    return m;
}

// Not in alphabetical order; the special words are <s>, </s>, <unk>.
static const char *model_word(const model *m, int w)
{
    static char names[4][16];
    static int next;
    char *name = names[next++ % 4];
    if (w == m->begin) return "<s>";
    if (w == m->end) return "</s>";
    if (w == m->unknown) return "<unk>";
    snprintf(name, sizeof names[0], "%c%s%d", 'a' + w * 7 % 26, w % 3 ? "" : "\xC3\xA9", w);
    return name;
}

static int common_divisor(int a, int b) { return b ? common_divisor(b, a % b) : a; }

static void write_model(const model *m, FILE *file)
{
    fprintf(file, "\\data\\\n");
    for (int k = 1; k <= m->order; k++) fprintf(file, "ngram %d=%d\n", k, m->counts[k]);
    for (int k = 1; k <= m->order; k++) {
        fprintf(file, "\n\\%d-grams:\n", k);
        int n = m->counts[k], step = m->key % 4 ? 1 : 1 + n / 3;
        while (common_divisor(n, step) > 1) step++;
        for (int i = 0, at = 0; i < n; i++, at = (at + step) % n) { // all of them, in some order
            const gram *g = &m->grams[m->begins[k] + at];
            fprintf(file, "%.9g", g->logp);
            for (int j = 0; j < k; j++) fprintf(file, "%c%s", j && g->n % 2 ? ' ' : '\t', model_word(m, g->words[j]));
            if (k < m->order && (g->backoff < 0 || g->backoff > 0 || i % 2)) fprintf(file, "\t%.9g", g->backoff);
            fputc('\n', file);
        }
    }
    fprintf(file, "\n\\end\\\n");
}

char *model_text(const model *m, size_t *n)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, n);
    ck_assert_ptr_nonnull(file);
    write_model(m, file);
    fclose(file);
    return text;
}

lin_ngram *model_parse(const model *m)
{
    size_t n;
    lin_ngram *lm;
    char *text = model_text(m, &n);
    OK(lin_ngram_parse(text, n, "random.arpa", &lm, &err));
    free(text);
    return lm;
}

int word_in(const lin_ngram *lm, const model *m, int w)
{
    const char *name = model_word(m, w);
    return lin_ngram_find(lm, name, strlen(name));
}

// True if the n-gram's context (its words without the last) is a suffix of these n words.
static int model_follows(const gram *g, const int *words, int n)
{
    return g->n > 1 && g->n - 1 <= n && !memcmp(words + n - (g->n - 1), g->words, (size_t)(g->n - 1) * sizeof *words);
}

void walk_compare(const lin_ngram *lm, model *m, int steps, double tolerance)
{
    enum { LONGEST = 40 };
    int words[LONGEST], n = 0;
    lin_ngram_state state = LIN_NGRAM_EMPTY, next;
    for (int i = 0; i < steps; i++) {
        if (n + 2 >= LONGEST || model_draw(m, 12) == 0) { // a new sentence
            n = 0;
            if (m->begin >= 0) words[n++] = m->begin;
            state = lin_ngram_begin(lm);
        }
        int w = (int)model_draw(m, (uint32_t)m->n_words);
        if (model_draw(m, 3)) { // an n-gram of the model
            const gram *g = &m->grams[model_draw(m, (uint32_t)m->n)];
            for (int tries = 0; tries < 50 && !model_follows(g, words, n); tries++) g = &m->grams[model_draw(m, (uint32_t)m->n)];
            w = g->words[g->n - 1];
        }
        words[n++] = w;
        double want = model_score(m, words, n) * log(10), got = (double)lin_ngram_score(lm, state, word_in(lm, m, w), &next);
        test_require(fabs(got - want) <= tolerance, "order %d, key %llu, step %d: %.8g, not %.8g", m->order,
                     (unsigned long long)m->key, i, got, want);
        test_require(next < lin_ngram_states(lm), "state %u of %u", next, lin_ngram_states(lm));
        if (m->end >= 0) {
            words[n] = m->end;
            double end = model_score(m, words, n + 1) * log(10);
            test_require(fabs((double)lin_ngram_end(lm, next) - end) <= tolerance, "the end after step %d", i);
        }
        state = next;
    }
}
