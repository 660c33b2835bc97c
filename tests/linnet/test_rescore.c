// Hypotheses that another language model judges (linnet/judges.h): scores and their order are those of the formula, computed one
// by one; words that the network cannot spell; phones; many utterances at once; what is refused.
#include "linnet/judges.h"

#include <pthread.h>

#include "tests/lexicon/support.h"
#include "tests/linnet/word_networks.h"

enum { WORDS = 8, N = 40, MOST = 12 };

static const char *const words[WORDS] = {"a", "the", "cat", "dog's", "sees", "naïve", "o", "understands"};
static const char arpa[] = "\\data\\\nngram 1=5\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-2.5 <unk>\n-1 a\n-1 the\n\n\\end\\\n";

static const char *network;
static lin_ngram *lm;
static lin_tree *tree;
static lin_rescorer *rescorer;
static lin_word_network by_hand;

static const double WEIGHT = 0.35, LM_WEIGHT = 0.8;

static lin_tree *tree_of(const char *const *list, int n)
{
    static const int label = 1;
    lin_tree_entry entries[WORDS];
    lin_tree *made;
    for (int i = 0; i < n; i++) entries[i] = (lin_tree_entry){list[i], &label, 1, 0, 0};
    OK(lin_tree_create_list(entries, n, 3, NULL, 0, &made, NULL));
    return made;
}

static void begin(void)
{
    network = test_path("network");
    write_word_network(network, lin_pieces_characters, LIN_PIECES_FIRST);
    OK(lin_ngram_parse(arpa, strlen(arpa), "arpa", &lm, &err));
    tree = tree_of(words, WORDS);
    OK(lin_rescorer_open(network, WEIGHT, LM_WEIGHT, lm, tree, NULL, &rescorer, &err));
    OK(lin_word_network_open(network, "cpu", LIN_PRECISION_FP32, &by_hand, &err));
}

static void end(void)
{
    lin_word_network_close(&by_hand);
    lin_rescorer_close(rescorer);
    lin_tree_destroy(tree);
    lin_ngram_destroy(lm);
}

/* ---- hypotheses ------------------------------------------------------------------------------------------------------------ */

typedef struct hypothesis {
    lin_path path;
    lin_path_word words[MOST];
} hypothesis;

static const char *spell(const void *context, int word)
{
    (void)context;
    return word < 0 ? NULL : words[word];
}

static void draw(hypothesis *h, uint64_t seed)
{
    const int n = (int)lin_random_below(seed, 0, MOST + 1);
    *h = (hypothesis){.path = {.n_words = n, .score = -100 * lin_random_uniform(seed, 1),
                               .language = -50 * lin_random_uniform(seed, 2)}};
    for (int i = 0; i < n; i++) h->words[i].word = (int)lin_random_below(seed, 3 + (uint64_t)i, WORDS + 1) - 1;
    h->path.words = h->words;
}

static int is_other(const char *word) { return !word || !strcmp(word, "naïve"); }

static int nothing_spelled(const lin_path *p)
{
    for (int i = 0; i < p->n_words; i++)
        if (!is_other(spell(NULL, p->words[i].word))) return 0;
    return 1;
}

// As linnet lm score computes it: the pieces of a sentence alone, in double precision where they are added.
static double logp_of(const lin_path *settled, const lin_path *tail, double *passed)
{
    static float features[1024], logp[LIN_PIECES_FIRST * 1024];
    int tokens[1024] = {0}, n = 1;
    double sum = 0;
    lin_worker *worker;
    *passed = 0;
    if (nothing_spelled(settled) && nothing_spelled(tail)) return tail->language; // it stays as it is
    for (int part = 0; part < 2; part++) {
        const lin_path *p = part ? tail : settled;
        for (int i = 0; i < p->n_words; i++) {
            const char *word = spell(NULL, p->words[i].word);
            if (is_other(word)) { // -2.5, to base 10, of <unk>
                *passed += -2.5 * log(10);
                continue;
            }
            tokens[n++] = 1;
            for (; *word; word++) tokens[n++] = *word == '\'' ? 2 : 3 + *word - 'a';
        }
    }
    tokens[n++] = 0;
    for (int t = 0; t < n; t++) features[t] = (float)tokens[t];
    OK(lin_worker_create(by_hand.encoder, 1, &worker, &err));
    OK(lin_encoder_run(worker, features, (const int[]){0, n - 1}, 1, logp, &err));
    lin_worker_destroy(worker);
    for (int t = 1; t < n; t++) sum += (double)logp[(t - 1) * LIN_PIECES_FIRST + tokens[t]];
    return sum;
}

// Hypotheses that are there, for lin_judge.
typedef struct given {
    const lin_path *first;
    size_t stride; // bytes from one to the next
} given;

static lin_status read_given(void *context, int number, lin_path *tail, lin_error *why)
{
    const given *g = context;
    (void)why;
    *tail = *(const lin_path *)(const void *)((const char *)g->first + (size_t)number * g->stride);
    return LIN_OK;
}

static lin_status judge(lin_rescorer *r, const lin_path *settled, given g, int n, lin_result_speller speller, lin_judged *to,
                        lin_error *why)
{
    lin_path tail = {0};
    const lin_hypotheses h = {.n = n, .settled = settled, .tail = &tail, .read = read_given, .context = &g, .spell = speller};
    return lin_judge(r, NULL, &h, to, why);
}

static void rescore(const lin_path *settled, const hypothesis *h, int n, lin_judged *to)
{
    OK(judge(rescorer, settled, (given){&h[0].path, sizeof *h}, n, spell, to, &err));
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

START_TEST(the_scores_of_the_formula_in_their_order)
{
    static hypothesis h[N], first;
    lin_judged got[N];
    for (uint64_t seed = 0; seed < 3; seed++) {
        int moved = 0, spelled = 0;
        draw(&first, 1000 + seed);
        if (seed == 0) first.path.n_words = 0;
        for (int i = 0; i < N; i++) draw(&h[i], seed * 100 + (uint64_t)i);
        rescore(&first.path, h, N, got);
        for (int i = 0; i < N; i++) {
            const lin_path *p = &h[got[i].number].path;
            double passed;
            const double logp = logp_of(&first.path, p, &passed),
                         language = (1 - WEIGHT) * p->language + WEIGHT * (logp + passed);
            ck_assert_double_eq_tol(got[i].language, language, 1e-5); // -2.5 is a float in the n-gram model
            ck_assert_double_eq_tol(got[i].score, p->score + LM_WEIGHT * (language - p->language), 1e-5);
            if (passed == 0) { // nothing but the network, added in the same order
                spelled++;
                ck_assert_double_eq_tol(got[i].language, language, 1e-12);
            }
            ck_assert(i == 0 || got[i - 1].score >= got[i].score);
            moved += got[i].number != i;
        }
        ck_assert_int_gt(moved, N / 2);
        ck_assert_int_gt(spelled, seed ? -1 : 2);
    }
}
END_TEST

START_TEST(equal_hypotheses_keep_their_order)
{
    static hypothesis h[3];
    lin_judged got[3];
    const lin_path nothing = {0};
    draw(&h[0], 5);
    h[1] = h[2] = h[0];
    for (int i = 1; i < 3; i++) h[i].path.words = h[i].words;
    rescore(&nothing, h, 3, got);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(got[i].number, i);
    ck_assert(got[0].score == got[1].score && got[1].score == got[2].score);
}
END_TEST

// Silence, and unknown words alone: nothing changes, or a network that knows no empty sentences would make words of silence.
START_TEST(nothing_that_the_network_spells)
{
    static hypothesis h[2];
    lin_judged got[2];
    const lin_path nothing = {0};
    draw(&h[0], 5);
    h[0].path.n_words = 0;
    draw(&h[1], 6);
    h[1].path.n_words = 2;
    h[1].path.score = h[0].path.score - 1;
    h[1].words[0].word = -1;
    h[1].words[1].word = 5;
    rescore(&nothing, h, 2, got);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(got[i].number, i);
        ck_assert(got[i].score == h[i].path.score && got[i].language == h[i].path.language);
    }
}
END_TEST

static const char *spell_phone(const void *context, int word)
{
    (void)context;
    return word == 1 ? "a" : "b";
}

static void rescore_with(lin_rescorer *r, const lin_path *paths, int n, lin_judged *to)
{
    OK(judge(r, &paths[0], (given){paths, sizeof *paths}, n, spell_phone, to, &err));
}

// Phones are scored as words that are spelled like them.
START_TEST(phones_as_words)
{
    char list[128];
    const char *both[] = {"a", "b"};
    lin_path phones[N] = {{0}}, said[N] = {{0}};
    lin_path_phone labels[N][MOST];
    lin_path_word numbers[N][MOST];
    lin_judged got[N], wanted[N];
    lin_rescorer *of_phones, *of_words;
    lin_phones *set, *more;
    const char *path = test_path("phones");
    snprintf(list, sizeof list, "%s _a _b", lin_pieces_characters);
    write_word_network(path, list, LIN_PIECES_FIRST + 2);
    lin_tree *of_both = tree_of(both, 2);
    OK(lin_phones_create("<blank> A b", &set, &err));
    OK(lin_phones_create("<blank> A b ZH", &more, &err));
    OK(lin_rescorer_open(path, WEIGHT, LM_WEIGHT, lm, of_both, NULL, &of_words, &err));
    OK(lin_rescorer_open(path, WEIGHT, LM_WEIGHT, lm, NULL, set, &of_phones, &err));
    for (int i = 0; i < N; i++) {
        const uint64_t seed = (uint64_t)i + 50;
        const int n = i == 1 ? 0 : (int)lin_random_below(seed, 0, MOST + 1);
        for (int k = 0; k < n; k++)
            labels[i][k].label = numbers[i][k].word = 1 + (int)lin_random_below(seed, 1 + (uint64_t)k, 2);
        phones[i] = (lin_path){.phones = labels[i], .n_phones = n, .score = -20 * lin_random_uniform(seed, 90), .language = -n};
        said[i] = phones[i];
        said[i].phones = NULL;
        said[i].n_phones = 0;
        said[i].words = numbers[i];
        said[i].n_words = n;
    }
    rescore_with(of_phones, phones, N, got);
    rescore_with(of_words, said, N, wanted);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(got[i].number, wanted[i].number);
        ck_assert(got[i].score == wanted[i].score && got[i].language == wanted[i].language);
    }
    const lin_path silence[2] = {{.score = -1, .language = -2}, {.score = -3, .language = -4}};
    rescore_with(of_phones, silence, 2, got);
    ck_assert(got[0].score == -1 && got[0].language == -2 && got[1].score == -3);
    lin_rescorer_close(of_phones);
    lin_rescorer_close(of_words);
    FAILS(lin_rescorer_open(path, 1, 1, lm, NULL, more, &of_phones, &err), LIN_MISMATCH, "no piece for 1 of the 3, such as ZH");
    lin_phones_destroy(set);
    lin_phones_destroy(more);
    lin_tree_destroy(of_both);
}
END_TEST

static lin_judged want[4][N];

static void *repeat(void *context)
{
    static hypothesis h[4][N];
    const int k = *(const int *)context;
    const lin_path nothing = {0};
    lin_judged got[N];
    for (int i = 0; i < N; i++) draw(&h[k][i], (uint64_t)(k * 100 + i));
    for (int again = 0; again < 10; again++) {
        rescore(&nothing, h[k], N, got);
        for (int i = 0; i < N; i++)
            test_require(got[i].number == want[k][i].number && got[i].score == want[k][i].score, "hypothesis %d", i);
    }
    return NULL;
}

START_TEST(utterances_of_several_threads)
{
    static hypothesis h[N];
    static const int numbers[4] = {0, 1, 2, 3};
    const lin_path nothing = {0};
    pthread_t threads[4];
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < N; i++) draw(&h[i], (uint64_t)(k * 100 + i));
        rescore(&nothing, h, N, want[k]);
    }
    for (int k = 0; k < 4; k++) ck_assert_int_eq(pthread_create(&threads[k], NULL, repeat, (void *)&numbers[k]), 0);
    for (int k = 0; k < 4; k++) pthread_join(threads[k], NULL);
}
END_TEST

static lin_status whole_utterance(lin_rescorer *r, const hypothesis *h)
{
    const lin_path nothing = {0};
    lin_judged list[N];
    return judge(r, &nothing, (given){&h[0].path, sizeof *h}, N, spell, list, NULL);
}

START_TEST(failing_allocations)
{
    static hypothesis h[N];
    lin_rescorer *r = NULL;
    FAIL_EVERY_ALLOCATION_OF(r, lin_rescorer_open(network, WEIGHT, LM_WEIGHT, lm, tree, NULL, &r, NULL),
                             lin_rescorer_close(r); r = NULL);
    for (int i = 0; i < N; i++) draw(&h[i], (uint64_t)i);
    const unsigned long live = lin_memory_live();
    lin_status status = LIN_NO_MEMORY;
    for (unsigned long k = 1; status != LIN_OK; k++) {
        OK(lin_rescorer_open(network, WEIGHT, LM_WEIGHT, lm, tree, NULL, &r, &err));
        lin_memory_fail_at(k);
        status = whole_utterance(r, h);
        lin_memory_fail_at(0);
        ck_assert(status == LIN_OK || status == LIN_NO_MEMORY);
        ck_assert_int_eq(whole_utterance(r, h), LIN_OK); // the next one is as if nothing had been
        lin_rescorer_close(r);
        ck_assert_uint_eq(lin_memory_live(), live);
        ck_assert(status == LIN_NO_MEMORY || k > 5);
    }
}
END_TEST

START_TEST(what_is_refused)
{
    static const char *const greek[] = {"ένα", "δύο", "a"};
    lin_rescorer *r;
    lin_tree *of_greek = tree_of(greek, 3);
    const char *other = test_path("other"), *none = test_path("none");
    FAILS(lin_rescorer_open(network, 1, 1, lm, of_greek, NULL, &r, &err), LIN_MISMATCH, "2 of the 3 words of the lexicon");
    lin_tree_destroy(of_greek);
    FAILS(lin_rescorer_open(none, 1, 1, lm, tree, NULL, &r, &err), LIN_IO, none);
    write_word_network(other, "<blank> a b", 0);
    FAILS(lin_rescorer_open(other, 1, 1, lm, tree, NULL, &r, &err), LIN_MISMATCH, "it is a model of sound");
    write_word_network(other, "a b c", 3);
    FAILS(lin_rescorer_open(other, 1, 1, lm, tree, NULL, &r, &err), LIN_MISMATCH, "the symbols are not pieces of words");
    test_write_file(other, arpa, strlen(arpa));
    FAILS(lin_rescorer_open(other, 1, 1, lm, tree, NULL, &r, &err), LIN_FORMAT, other);
    ck_assert_ptr_null(r);
}
END_TEST

TEST_MAIN_WITH(begin, end, "linnet/rescore", TEST(the_scores_of_the_formula_in_their_order),
               TEST(equal_hypotheses_keep_their_order), TEST(nothing_that_the_network_spells), TEST(phones_as_words),
               TEST(utterances_of_several_threads), TEST(failing_allocations), TEST(what_is_refused))
