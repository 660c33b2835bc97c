// lexicon/tree.c: random lexicons against the plain list of their pronunciations; language models in upper and lower case;
// look-ahead; limits; a lexicon as large as CMUdict.
#include "lexicon/tree.h"

#include "base/textfile.h"
#include "tests/lexicon/support.h"

enum { MAX_WORDS = 60, MAX_ENTRIES = 200, LENGTH = 6 };

typedef struct lexicon {
    int n, n_words, V;
    char names[MAX_WORDS][16];
    int labels[MAX_ENTRIES][LENGTH];
    lin_tree_entry entries[MAX_ENTRIES];
} lexicon;

static void draw(lexicon *x, uint64_t seed)
{
    uint64_t at = 2;
    *x = (lexicon){.V = 2 + (int)lin_random_below(seed, 0, 5), .n_words = 1 + (int)lin_random_below(seed, 1, MAX_WORDS)};
    for (int w = 0; w < x->n_words; w++) {
        snprintf(x->names[w], sizeof x->names[w], "w%d", w);
        for (int k = 1 + (int)lin_random_below(seed, at++, 3); k-- > 0; x->n++) {
            const int n = 1 + (int)lin_random_below(seed, at++, LENGTH);
            for (int i = 0; i < n; i++) x->labels[x->n][i] = 1 + (int)lin_random_below(seed, at++, (uint32_t)x->V - 1);
            x->entries[x->n] = (lin_tree_entry){x->names[w], x->labels[x->n], n};
        }
    }
}

// The child of a node by a label, -1: none.
static int child_of(const lin_tree *t, int node, int label)
{
    const lin_tree_node *nodes = lin_tree_node_array(t);
    for (uint32_t c = nodes[node].child; c < nodes[node + 1].child; c++) {
        if (nodes[c].label == label) return (int)c;
    }
    return -1;
}

static int ends_of(const lin_tree *t, int node, const lin_tree_end **ends)
{
    const lin_tree_node *nodes = lin_tree_node_array(t);
    *ends = lin_tree_end_array(t) + nodes[node].end;
    return (int)(nodes[node + 1].end - nodes[node].end);
}

static int begins_with(const lin_tree_entry *e, const int *labels, int n)
{
    return e->n_labels >= n && !memcmp(e->labels, labels, sizeof(int) * (size_t)n);
}

// Every path from the root: its words are those of the list, in the same order; a child exists if a longer entry has this prefix.
static int check_node(const lin_tree *t, const lexicon *x, int node, int *labels, int n)
{
    const lin_tree_end *ends;
    const int n_ends = ends_of(t, node, &ends);
    int at = 0, nodes = 1, last = node;
    for (int i = 0; i < x->n; i++) {
        if (x->entries[i].n_labels != n || !begins_with(&x->entries[i], labels, n)) continue;
        ck_assert_int_lt(at, n_ends);
        ck_assert_str_eq(lin_tree_word(t, ends[at++].word), x->entries[i].word);
    }
    ck_assert_int_eq(at, n_ends);
    for (labels[n] = 0; labels[n] < x->V; labels[n]++) {
        int longer = 0;
        for (int i = 0; i < x->n; i++) longer += begins_with(&x->entries[i], labels, n + 1);
        const int child = child_of(t, node, labels[n]);
        ck_assert_int_eq(child >= 0, longer > 0);
        if (child < 0) continue;
        ck_assert_int_gt(child, last);
        last = child;
        nodes += check_node(t, x, child, labels, n + 1);
    }
    return nodes;
}

START_TEST(test_random)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        static lexicon x;
        int labels[LENGTH + 2];
        lin_tree *t;
        draw(&x, seed);
        OK(lin_tree_create_list(x.entries, x.n, x.V, NULL, NULL, &t, &err));
        ck_assert_int_eq(check_node(t, &x, LIN_TREE_ROOT, labels, 0), lin_tree_nodes(t));
        ck_assert_int_eq(lin_tree_words(t), x.n_words);
        ck_assert_int_eq(lin_tree_pronunciations(t), x.n);
        ck_assert_int_eq(lin_tree_outputs(t), x.V);
        for (int w = 0; w < x.n_words; w++) ck_assert_int_eq(lin_tree_find(t, x.names[w], strlen(x.names[w])), w);
        ck_assert_int_eq(lin_tree_find(t, "x", 1), -1);
        ck_assert_ptr_null(lin_tree_word(t, -1));
        ck_assert_ptr_null(lin_tree_word(t, x.n_words));
        lin_tree_destroy(t);
    }
}
END_TEST

static const char arpa[] = "\\data\\\nngram 1=8\n\n"
                           "\\1-grams:\n-99 <s>\n-1.0 </s>\n-2.0 HELLO\n-1.5 world\n-0.5 cat\n-3.0 plan\n-2.5 plane\n"
                           "-4.0 elsewhere\n\n\\end\\\n";

static float brute_ahead(const lin_tree *t, const lin_ngram *lm, int node, float rarest)
{
    const lin_tree_node *nodes = lin_tree_node_array(t);
    const lin_tree_end *ends;
    float best = rarest;
    for (int i = ends_of(t, node, &ends); i-- > 0;) {
        if (ends[i].lm_word >= 0) best = fmaxf(best, lin_ngram_unigram(lm, ends[i].lm_word));
    }
    for (uint32_t c = nodes[node].child; c < nodes[node + 1].child; c++) best = fmaxf(best, brute_ahead(t, lm, (int)c, rarest));
    return best;
}

START_TEST(test_language_model)
{
    lin_phones *phones;
    lin_dictionary *d;
    lin_ngram *lm;
    lin_tree *t;
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_parse(small_dictionary, strlen(small_dictionary), "small", phones, NULL, &d, &err));
    OK(lin_ngram_parse(arpa, strlen(arpa), "arpa", &lm, &err));
    for (int all = 0; all < 2; all++) {
        OK(lin_tree_create(d, phones, lm, &(lin_tree_options){.all_words = all}, &t, &err));
        ck_assert_int_eq(lin_tree_words(t), all ? lin_dictionary_count(d) : 5);
        ck_assert_int_eq(lin_tree_left_out(t), all ? 0 : lin_dictionary_count(d) - 5);
        ck_assert_str_eq(lin_tree_first_left_out(t), all ? "" : "a");
        ck_assert_int_ge(lin_tree_find(t, "Hello", 5), 0);
        ck_assert_int_eq(lin_tree_find(t, "kiss", 4) >= 0, all);
        ck_assert_uint_eq(lin_tree_lm_fingerprint(t), lin_ngram_fingerprint(lm));
        const float rarest = lin_ngram_unigram(lm, lin_ngram_find(lm, "plan", 4));
        for (int i = 0; i < lin_tree_nodes(t); i++) {
            ck_assert(lin_tree_node_array(t)[i].ahead == brute_ahead(t, lm, i, rarest));
        }
        // Both pronunciations of hello, and its number in the language model in upper or lower case.
        const char *ways[] = {"HH AH L OW", "HH EH L OW"};
        for (int k = 0; k < 2; k++) {
            const char *at = ways[k], *end = at + strlen(at), *field;
            size_t n;
            int node = LIN_TREE_ROOT;
            while (lin_field_next(&at, end, &field, &n)) node = child_of(t, node, lin_phones_find(phones, field, n));
            const lin_tree_end *ends;
            ck_assert_int_eq(ends_of(t, node, &ends), 1);
            ck_assert_str_eq(lin_tree_word(t, ends[0].word), "hello");
            ck_assert_int_eq(ends[0].lm_word, lin_ngram_find(lm, "HELLO", 5));
        }
        lin_tree_destroy(t);
    }
    lin_ngram_destroy(lm);
    const char other[] = "\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\n-1 </s>\n\n\\end\\\n";
    OK(lin_ngram_parse(other, strlen(other), "other", &lm, &err));
    FAILS(lin_tree_create(d, phones, lm, NULL, &t, &err), LIN_MISMATCH, "'hello'");
    ck_assert_ptr_null(t);
    OK(lin_tree_create(d, phones, lm, &(lin_tree_options){.all_words = 1}, &t, &err));
    lin_tree_destroy(t);
    FAIL_EVERY_ALLOCATION(lin_tree_create(d, phones, NULL, NULL, &t, NULL), lin_tree_destroy(t));
    lin_ngram_destroy(lm);
    lin_dictionary_destroy(d);
    lin_phones_destroy(phones);
}
END_TEST

// The identity that a saved state of a search stores: another phone, spelling or word end gives another identity.
START_TEST(test_fingerprint)
{
    const int labels[] = {1, 2, 1};
    const lin_tree_entry trees[][2] = {{{"cat", labels, 2}, {"do", labels, 3}},
                                       {{"cut", labels, 2}, {"do", labels, 3}},
                                       {{"cat", labels, 2}, {"do", labels + 1, 2}},
                                       {{"ca", labels, 2}, {"tdo", labels, 3}},
                                       {{"cat", labels, 1}, {"do", labels, 3}}};
    uint64_t seen[5];
    for (int i = 0; i < 5; i++) {
        lin_tree *t, *again;
        OK(lin_tree_create_list(trees[i], 2, 3, NULL, NULL, &t, &err));
        OK(lin_tree_create_list(trees[i], 2, 3, NULL, NULL, &again, &err));
        seen[i] = lin_tree_fingerprint(t);
        ck_assert_uint_eq(seen[i], lin_tree_fingerprint(again));
        for (int k = 0; k < i; k++) ck_assert_msg(seen[i] != seen[k], "trees %d and %d", i, k);
        lin_tree_destroy(t);
        lin_tree_destroy(again);
    }
}
END_TEST

START_TEST(test_bad)
{
    lin_tree *t;
    const int good[] = {1, 2}, bad[] = {1, 3};
    FAILS(lin_tree_create_list(&(lin_tree_entry){"x", good, 0}, 1, 3, NULL, NULL, &t, &err), LIN_INVALID, "'x' has 0 phones");
    FAILS(lin_tree_create_list(&(lin_tree_entry){"x", bad, 2}, 1, 3, NULL, NULL, &t, &err), LIN_INVALID, "'x' has phone 3");
    FAILS(lin_tree_create_list(&(lin_tree_entry){"", good, 2}, 1, 3, NULL, NULL, &t, &err), LIN_INVALID, "0 bytes");
    FAILS(lin_tree_create_list(NULL, 0, 1, NULL, NULL, &t, &err), LIN_INVALID, "1 outputs");
    ck_assert_ptr_null(t);
    OK(lin_tree_create_list(NULL, 0, 3, NULL, NULL, &t, &err));
    ck_assert_int_eq(lin_tree_nodes(t), 1);
    ck_assert_int_eq(child_of(t, LIN_TREE_ROOT, 1), -1);
    lin_tree_destroy(t);
    lin_tree_destroy(NULL);
    // The dictionary already refuses words without phones and unknown phones, with file and line.
    lin_phones *phones;
    lin_dictionary *d;
    OK(lin_phones_create(NULL, &phones, &err));
    FAILS(lin_dictionary_parse("a AH\nb\n", 7, "x.dict", phones, NULL, &d, &err), LIN_FORMAT, "x.dict:2: 'b' has no phones");
    FAILS(lin_dictionary_parse("a AH\nb QQ\n", 10, "x.dict", phones, NULL, &d, &err), LIN_FORMAT, "x.dict:2: 'QQ' is not a phone");
    lin_phones_destroy(phones);
}
END_TEST

// As many words and phones as in CMUdict. bench/bench_words measures the time for the real one.
START_TEST(test_large)
{
    enum { N = 134000, L = 7 };
    char (*names)[16] = malloc(sizeof *names * N);
    int (*labels)[L] = malloc(sizeof *labels * N);
    lin_tree_entry *entries = malloc(sizeof *entries * N);
    lin_tree *t;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof *names, "%d", i);
        for (int k = 0; k < L; k++) labels[i][k] = 1 + (int)(39 * pow(lin_random_uniform(5, (uint64_t)(i * L + k)), 2));
        entries[i] = (lin_tree_entry){names[i], labels[i], 4 + i % 4};
    }
    OK(lin_tree_create_list(entries, N, 40, NULL, NULL, &t, &err));
    ck_assert_int_eq(lin_tree_words(t), N);
    test_require(lin_tree_bytes(t) < 20u << 20, "%zu bytes", lin_tree_bytes(t));
    lin_tree_destroy(t);
    free(names);
    free(labels);
    free(entries);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lexicon/tree");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, test_random);
    tcase_add_test(cases, test_language_model);
    tcase_add_test(cases, test_fingerprint);
    tcase_add_test(cases, test_bad);
    tcase_add_test(cases, test_large);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
