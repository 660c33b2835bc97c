// All word sequences that fit into a few rows, by brute force.
#include "tests/decoder/words_truth.h"

int below(drawn *d, int n) { return (int)lin_random_below(d->seed, d->at++, (uint32_t)n); }

double tenth(drawn *d, int n) { return -(double)(50 + below(d, n)) / 1000; }

void draw_rows(float *logp, int T, int V, drawn *d, double sharpness)
{
    for (int t = 0; t < T; t++) {
        double x[64], sum = 0;
        for (int v = 0; v < V; v++) sum += x[v] = exp(sharpness * lin_random_uniform(d->seed, d->at++));
        for (int v = 0; v < V; v++) logp[t * V + v] = (float)log(x[v] / sum);
    }
}

static int lm_has(const world *w, int word) { return word == w->n_words + 1 ? w->unk : word != w->lacks; }

static void draw_lm(world *w, drawn *d)
{
    const int n = w->n_words + 3;
    w->order = 1 + below(d, 3);
    w->unk = below(d, 2);
    w->lacks = w->n_words > 2 ? below(d, w->n_words + 2) - 2 : -1; // not the only one
    for (int a = 0; a < n; a++) {
        w->uni[a] = tenth(d, 2000);
        w->uni_back[a] = tenth(d, 500);
        for (int b = 0; b < n; b++) {
            const int ends = a == w->n_words || b == w->n_words + 2; // </s> comes last, <s> first
            w->bi[a][b] = w->order > 1 && !ends && below(d, 2) ? tenth(d, 2000) : 1;
            w->bi_back[a][b] = w->bi[a][b] < 1 && w->order > 2 ? tenth(d, 500) : 0;
            for (int c = 0; c < n; c++) w->tri[a][b][c] = 1;
        }
    }
    for (int a = 0; w->order > 2 && a < n; a++) {
        for (int b = 0; b < n; b++) {
            for (int c = 0; c < n; c++) {
                if (w->bi[a][b] < 1 && w->bi[b][c] < 1 && below(d, 2)) w->tri[a][b][c] = tenth(d, 2000);
            }
        }
    }
    int order = 1; // of the rest without the missing words
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++) {
            for (int c = 0; c < n; c++) {
                if (!lm_has(w, a) || !lm_has(w, b) || !lm_has(w, c)) w->tri[a][b][c] = 1;
                if (w->tri[a][b][c] < 1) order = 3;
            }
            if (!lm_has(w, a) || !lm_has(w, b)) w->bi[a][b] = 1;
            if (w->bi[a][b] < 1 && order < 2) order = 2;
        }
    }
    w->order = order;
}

void draw_world(world *w, uint64_t seed)
{
    drawn d = {seed, 0};
    *w = (world){.V = 3 + below(&d, 2), .T = 3 + below(&d, 3), .n_words = 2 + below(&d, 4)};
    for (int i = 0; i < w->n_words; i++) snprintf(w->names[i], sizeof w->names[i], "w%c", 'a' + i);
    for (int i = 0; i < w->n_words; i++) {
        for (int k = 1 + (below(&d, 4) == 0); k-- > 0;) {
            const int p = w->n_prons++;
            w->word[p] = i;
            w->n_labels[p] = 1 + below(&d, 3);
            for (int l = 0; l < w->n_labels[p]; l++) w->labels[p][l] = 1 + below(&d, w->V - 1);
            if (k == 0 && p && w->word[p - 1] == i && w->n_labels[p] == w->n_labels[p - 1] &&
                !memcmp(w->labels[p], w->labels[p - 1], sizeof(int) * (size_t)w->n_labels[p])) {
                w->n_prons--; // the same pronunciation again
            }
            w->entries[p] = (lin_tree_entry){w->names[i], w->labels[p], w->n_labels[p], 0, 0};
        }
    }
    drawn of_prons = {seed + 1000003, 0};
    for (int p = 0; p < w->n_prons && seed % 2; p++) w->entries[p].logp = -(float)below(&of_prons, 97) / 32;
    draw_rows(w->logp, w->T, w->V, &d, 4);
    draw_lm(w, &d);
    w->n_phrases = below(&d, 4);
    for (int i = 0; i < w->n_phrases; i++) {
        w->phrase_n[i] = 1 + below(&d, 3);
        for (int k = 0; k < w->phrase_n[i]; k++) w->phrase[i][k] = below(&d, w->n_words);
        w->phrase_bonus[i] = (1 + below(&d, 24)) / 8.0;
        for (int k = 0; k < i; k++) { // equal phrases: only the larger bonus would count
            if (w->phrase_n[i] == w->phrase_n[k] && !memcmp(w->phrase[i], w->phrase[k], sizeof(int) * (size_t)w->phrase_n[i])) {
                w->phrase_bonus[i] = 0;
            }
        }
    }
}

static const char *lm_name(const world *w, int word)
{
    return word < w->n_words ? w->names[word] : word == w->n_words ? "</s>" : word == w->n_words + 1 ? "<unk>" : "<s>";
}

lin_ngram *world_lm(const world *w)
{
    static char text[200000], body[3][60000];
    int n = w->n_words + 3, counts[3] = {0}, used[3] = {0};
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++) {
            for (int c = 0; c < n; c++) {
                counts[1] += b == c && lm_has(w, a) && lm_has(w, b) && w->bi[a][b] < 1;
                counts[2] += lm_has(w, a) && lm_has(w, b) && lm_has(w, c) && w->tri[a][b][c] < 1;
            }
        }
    }
    for (int a = 0; a < n; a++) {
        if (!lm_has(w, a)) continue;
        counts[0]++;
        used[0] += snprintf(body[0] + used[0], 200, "%.3f\t%s", w->uni[a], lm_name(w, a));
        used[0] +=
            counts[1] ? snprintf(body[0] + used[0], 200, "\t%.3f\n", w->uni_back[a]) : snprintf(body[0] + used[0], 200, "\n");
        for (int b = 0; b < n; b++) {
            if (!lm_has(w, b) || w->bi[a][b] >= 1) continue;
            used[1] += snprintf(body[1] + used[1], 200, "%.3f\t%s %s", w->bi[a][b], lm_name(w, a), lm_name(w, b));
            used[1] += counts[2] ? snprintf(body[1] + used[1], 200, "\t%.3f\n", w->bi_back[a][b])
                                 : snprintf(body[1] + used[1], 200, "\n");
            for (int c = 0; c < n; c++) {
                if (!lm_has(w, c) || w->tri[a][b][c] >= 1) continue;
                used[2] += snprintf(body[2] + used[2], 200, "%.3f\t%s %s %s\n", w->tri[a][b][c], lm_name(w, a), lm_name(w, b),
                                    lm_name(w, c));
            }
        }
    }
    int order = counts[2] ? 3 : counts[1] ? 2 : 1, at = snprintf(text, sizeof text, "\\data\\\n");
    for (int k = 0; k < order; k++) at += snprintf(text + at, 100, "ngram %d=%d\n", k + 1, counts[k]);
    for (int k = 0; k < order; k++)
        at += snprintf(text + at, sizeof text - (size_t)at, "\n\\%d-grams:\n%.*s", k + 1, used[k], body[k]);
    at += snprintf(text + at, 20, "\n\\end\\\n");
    lin_ngram *lm;
    OK(lin_ngram_parse(text, (size_t)at, "world", &lm, &err));
    return lm;
}

// log10 P(word | a b); a = -1: the context is b; b = -1: it is empty.
static double lm_log10(const world *w, int a, int b, int word)
{
    if (a >= 0 && b >= 0 && w->tri[a][b][word] < 1) return w->tri[a][b][word];
    const double back = a >= 0 && b >= 0 && w->bi[a][b] < 1 && w->order > 2 ? w->bi_back[a][b] : 0;
    if (b >= 0 && w->bi[b][word] < 1) return back + w->bi[b][word];
    return back + (b >= 0 ? w->uni_back[b] * (w->order > 1) : 0) + w->uni[word];
}

static double context_bonus(const world *w, const sequence *s)
{
    double sum = 0;
    for (int i = 0; i < w->n_phrases; i++) {
        for (int at = 0; at + w->phrase_n[i] <= s->n; at++) {
            if (!memcmp(s->words + at, w->phrase[i], sizeof(int) * (size_t)w->phrase_n[i])) sum += w->phrase_bonus[i];
        }
    }
    return sum;
}

static void weigh_words(truth *t, sequence *s, int n_unknown_phones)
{
    const world *w = t->w;
    int a = -1, b = w->n_words + 2;
    double outer = 0;
    for (int i = 0; i < s->n; i++) {
        const int unknown = s->words[i] < 0, lacking = unknown || s->words[i] == w->lacks;
        outer += t->o->bonus + (unknown ? t->o->unknown : 0);
        if (!t->with_lm) continue;
        if (lacking && !w->unk) { // the context is lost
            outer += unknown || t->o->unknown == -INFINITY ? 0 : t->o->unknown;
            a = b = -1;
            continue;
        }
        const int word = lacking ? w->n_words + 1 : s->words[i];
        s->language += log(10) * lm_log10(w, a, b, word);
        a = b;
        b = word;
    }
    if (t->with_lm && s->n) s->language += log(10) * lm_log10(w, a, b, w->n_words); // no words are no sentence
    if (t->with_context) outer += context_bonus(w, s);
    outer += t->o->lm_weight * s->prons;
    s->score = s->acoustic + t->o->lm_weight * s->language + outer + t->o->unknown_phone * n_unknown_phones;
}

// Of a sequence of words, only the best pronunciations count.
static void keep_sequence(truth *t, const sequence *s)
{
    for (int i = 0; i < t->n; i++) {
        sequence *old = &t->found[i];
        if (old->n != s->n || memcmp(old->words, s->words, sizeof(int) * (size_t)s->n)) continue;
        if (s->score > old->score) *old = *s;
        return;
    }
    test_require(t->n < FOUND_MAX, "more sequences than fit");
    t->found[t->n++] = *s;
}

void enumerate(truth *t, sequence *s, int *labels, int n, int n_unknown)
{
    const world *w = t->w;
    sequence whole = *s;
    whole.acoustic = ctc_log(w->logp, w->T, w->V, labels, n, t->o->blank_penalty);
    whole.language = 0;
    if (whole.acoustic == -INFINITY) return; // longer ones do not fit either
    weigh_words(t, &whole, n_unknown);
    keep_sequence(t, &whole);
    for (int p = 0; p < w->n_prons; p++) {
        if (n + w->n_labels[p] > w->T) continue;
        memcpy(labels + n, w->labels[p], sizeof(int) * (size_t)w->n_labels[p]);
        s->words[s->n++] = w->word[p];
        s->prons += (double)w->entries[p].logp;
        enumerate(t, s, labels, n + w->n_labels[p], n_unknown);
        s->prons -= (double)w->entries[p].logp;
        s->n--;
    }
    if (t->o->unknown == -INFINITY) return;
    for (int length = 1, all = w->V - 1; n + length <= w->T; length++, all *= w->V - 1) {
        for (int code = 0; code < all; code++) {
            int name = 0;
            for (int k = 0, rest = code; k < length; k++, rest /= w->V - 1) {
                labels[n + k] = 1 + rest % (w->V - 1);
                name = name * 10 + labels[n + k];
            }
            s->words[s->n++] = -1 - name;
            enumerate(t, s, labels, n + length, n_unknown + length);
            s->n--;
        }
    }
}

static int by_total(const void *a, const void *b)
{
    const sequence *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

void find_truth(truth *t)
{
    sequence s = {0};
    int labels[2 * T_MAX];
    t->n = 0;
    enumerate(t, &s, labels, 0, 0);
    qsort(t->found, (size_t)t->n, sizeof *t->found, by_total);
}

int truth_of(const truth *t, const lin_path *path)
{
    sequence s = {.n = path->n_words};
    ck_assert_int_le(s.n, T_MAX);
    for (int i = 0; i < s.n; i++) {
        const lin_path_word *word = &path->words[i];
        int name = 0;
        for (int k = 0; k < word->n_phones; k++) name = name * 10 + path->phones[word->first_phone + k].label;
        s.words[i] = word->word == LIN_WORD_UNKNOWN ? -1 - name : word->word;
    }
    for (int i = 0; i < t->n; i++) {
        if (t->found[i].n == s.n && !memcmp(t->found[i].words, s.words, sizeof(int) * (size_t)s.n)) return i;
    }
    return -1;
}
