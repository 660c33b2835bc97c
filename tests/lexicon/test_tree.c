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
            x->entries[x->n] = (lin_tree_entry){x->names[w], x->labels[x->n], n, 0, 0};
        }
    }
}

// The child of a node by a label, -1: none.
static int child_of(const lin_tree *t, int node, int label)
{
    const lin_tree_node *nodes = t->nodes;
    for (uint32_t c = nodes[node].child; c < nodes[node + 1].child; c++) {
        if (nodes[c].label == label) return (int)c;
    }
    return -1;
}

static int ends_of(const lin_tree *t, int node, const lin_tree_end **ends)
{
    const lin_tree_node *nodes = t->nodes;
    *ends = t->ends + nodes[node].end;
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
        OK(lin_tree_create_list(x.entries, x.n, x.V, NULL, 0, &t, &err));
        ck_assert_int_eq(check_node(t, &x, LIN_TREE_ROOT, labels, 0), t->n_nodes);
        ck_assert_int_eq(t->words.n, x.n_words);
        ck_assert_int_eq(t->n_ends, x.n);
        ck_assert_int_eq(t->n_outputs, x.V);
        for (int w = 0; w < x.n_words; w++) ck_assert_int_eq(lin_tree_find(t, x.names[w], strlen(x.names[w])), w);
        ck_assert_int_eq(lin_tree_find(t, "x", 1), -1);
        ck_assert_ptr_null(lin_tree_word(t, -1));
        ck_assert_ptr_null(lin_tree_word(t, x.n_words));
        lin_tree_destroy(t);
    }
}
END_TEST

static const char arpa[] = "\\data\\\nngram 1=8\nngram 2=2\n\n"
                           "\\1-grams:\n-99 <s>\n-1.0 </s>\n-2.0 HELLO\n-1.5 world\n-0.5 cat\n-3.0 plan\n-2.5 plane\n"
                           "-4.0 elsewhere\n\n\\2-grams:\n-1.0 HELLO world\n-0.5 cat plan\n\n\\end\\\n";

static const char packed[] = "test_tree.tree";
static lin_phones *phones;
static lin_dictionary *d;
static lin_ngram *lm;

static void setup(void)
{
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_parse(small_dictionary, strlen(small_dictionary), "small", phones, &d, &err));
    OK(lin_ngram_parse(arpa, strlen(arpa), "arpa", &lm, &err));
}

static void teardown(void)
{
    lin_ngram_destroy(lm);
    lin_dictionary_destroy(d);
    lin_phones_destroy(phones);
}

static float brute_ahead(const lin_tree *t, const lin_ngram *by, int node, float rarest)
{
    const lin_tree_node *nodes = t->nodes;
    const lin_tree_end *ends;
    float best = rarest;
    for (int i = ends_of(t, node, &ends); i-- > 0;) {
        if (ends[i].lm_word >= 0) best = fmaxf(best, lin_ngram_unigram(by, ends[i].lm_word));
    }
    for (uint32_t c = nodes[node].child; c < nodes[node + 1].child; c++) best = fmaxf(best, brute_ahead(t, by, (int)c, rarest));
    return best;
}

START_TEST(test_language_model)
{
    lin_tree *t;
    for (int all = 0; all < 2; all++) {
        OK(lin_tree_create(d, phones, lm, all, &t, &err));
        ck_assert_int_eq(t->words.n, all ? lin_dictionary_count(d) : 5);
        ck_assert_int_eq(t->n_left_out, all ? 0 : lin_dictionary_count(d) - 5);
        ck_assert_str_eq(t->first_left_out, all ? "" : "a");
        ck_assert_int_ge(lin_tree_find(t, "Hello", 5), 0);
        ck_assert_int_eq(lin_tree_find(t, "kiss", 4) >= 0, all);
        ck_assert_uint_eq(t->lm_fingerprint, lin_ngram_fingerprint(lm));
        const float rarest = lin_ngram_unigram(lm, lin_ngram_find(lm, "plan", 4));
        for (int i = 0; i < t->n_nodes; i++) {
            ck_assert(t->nodes[i].ahead == brute_ahead(t, lm, i, rarest));
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
    // Words that were added are there though the language model lacks them. They count as <unk>, if it has that.
    const char added[] = "zebra Z IY B R AH\nkiss K IH S\n";
    lin_dictionary *more;
    OK(lin_dictionary_parse(small_dictionary, strlen(small_dictionary), "small", phones, &more, &err));
    OK(lin_dictionary_add(more, added, strlen(added), "added", phones, &err));
    OK(lin_tree_create(more, phones, lm, 0, &t, &err));
    ck_assert_int_eq(t->words.n, 7);
    ck_assert_int_eq(t->n_left_out, lin_dictionary_count(more) - 7);
    ck_assert_int_ge(lin_tree_find(t, "zebra", 5), 0);
    ck_assert_int_ge(lin_tree_find(t, "kiss", 4), 0);
    int z = child_of(t, LIN_TREE_ROOT, lin_phones_find(phones, "Z", 1));
    ck_assert(t->nodes[z].ahead == lin_ngram_unigram(lm, lin_ngram_find(lm, "plan", 4)));
    lin_tree_destroy(t);
    lin_ngram *open;
    static const char with_unknown[] = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1.0 </s>\n-2.0 hello\n-0.9 <unk>\n-3.0 plan\n"
                                       "\\end\\\n";
    OK(lin_ngram_parse(with_unknown, strlen(with_unknown), "open", &open, &err));
    OK(lin_tree_create(more, phones, open, 0, &t, &err));
    z = child_of(t, LIN_TREE_ROOT, lin_phones_find(phones, "Z", 1));
    ck_assert(t->nodes[z].ahead == lin_ngram_unigram(open, LIN_NGRAM_UNKNOWN));
    for (int i = 0; i < t->n_ends; i++)
        ck_assert_int_ge(t->ends[i].lm_word, LIN_NGRAM_UNKNOWN);
    const int p = child_of(t, LIN_TREE_ROOT, lin_phones_find(phones, "P", 1)); // play, plane: left out; plan is the rarest
    ck_assert(t->nodes[p].ahead == lin_ngram_unigram(open, lin_ngram_find(open, "plan", 4)));
    lin_tree_destroy(t);
    // So does one that the language model has, but finds rarer than <unk>.
    OK(lin_dictionary_add(more, "plan P L AE N\n", 14, "added", phones, &err));
    OK(lin_tree_create(more, phones, open, 0, &t, &err));
    ck_assert(t->nodes[child_of(t, LIN_TREE_ROOT, lin_phones_find(phones, "P", 1))].ahead ==
              lin_ngram_unigram(open, LIN_NGRAM_UNKNOWN));
    lin_dictionary_destroy(more);
    lin_ngram_destroy(open);
    lin_tree_destroy(t);
    lin_ngram_destroy(lm);
    const char other[] = "\\data\\\nngram 1=2\n\n\\1-grams:\n-1 <s>\n-1 </s>\n\n\\end\\\n";
    OK(lin_ngram_parse(other, strlen(other), "other", &lm, &err));
    FAILS(lin_tree_create(d, phones, lm, 0, &t, &err), LIN_MISMATCH, "'hello'");
    ck_assert_ptr_null(t);
    OK(lin_tree_create(d, phones, lm, 1, &t, &err));
    lin_tree_destroy(t);
}
END_TEST

// The identity that a saved state of a search stores: another phone, spelling or word end gives another identity.
START_TEST(test_fingerprint)
{
    const int labels[] = {1, 2, 1};
    const lin_tree_entry trees[][2] = {{{"cat", labels, 2, 0, 0}, {"do", labels, 3, 0, 0}},
                                       {{"cut", labels, 2, 0, 0}, {"do", labels, 3, 0, 0}},
                                       {{"cat", labels, 2, 0, 0}, {"do", labels + 1, 2, 0, 0}},
                                       {{"ca", labels, 2, 0, 0}, {"tdo", labels, 3, 0, 0}},
                                       {{"cat", labels, 1, 0, 0}, {"do", labels, 3, 0, 0}}};
    uint64_t seen[5];
    for (int i = 0; i < 5; i++) {
        lin_tree *t, *again;
        OK(lin_tree_create_list(trees[i], 2, 3, NULL, 0, &t, &err));
        OK(lin_tree_create_list(trees[i], 2, 3, NULL, 0, &again, &err));
        seen[i] = t->fingerprint;
        ck_assert_uint_eq(seen[i], again->fingerprint);
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
    FAILS(lin_tree_create_list(&(lin_tree_entry){"x", good, 0, 0, 0}, 1, 3, NULL, 0, &t, &err), LIN_INVALID, "'x' has 0 phones");
    FAILS(lin_tree_create_list(&(lin_tree_entry){"x", bad, 2, 0, 0}, 1, 3, NULL, 0, &t, &err), LIN_INVALID, "'x' has phone 3");
    FAILS(lin_tree_create_list(&(lin_tree_entry){"", good, 2, 0, 0}, 1, 3, NULL, 0, &t, &err), LIN_INVALID, "0 bytes");
    FAILS(lin_tree_create_list(NULL, 0, 1, NULL, 0, &t, &err), LIN_INVALID, "1 outputs");
    ck_assert_ptr_null(t);
    OK(lin_tree_create_list(NULL, 0, 3, NULL, 0, &t, &err));
    ck_assert_int_eq(t->n_nodes, 1);
    ck_assert_int_eq(child_of(t, LIN_TREE_ROOT, 1), -1);
    lin_tree_destroy(t);
    lin_tree_destroy(NULL);
}
END_TEST

static void compare_trees(const lin_tree *a, const lin_tree *b)
{
    const size_t n = (size_t)a->n_nodes, m = (size_t)a->n_ends;
    ck_assert_int_eq(b->n_nodes, (int)n);
    ck_assert_int_eq(b->n_ends, (int)m);
    ck_assert_int_eq(b->words.n, a->words.n);
    ck_assert_int_eq(b->n_outputs, a->n_outputs);
    ck_assert_int_eq(b->n_left_out, a->n_left_out);
    ck_assert_str_eq(b->first_left_out, a->first_left_out);
    ck_assert_uint_eq(b->fingerprint, a->fingerprint);
    ck_assert_uint_eq(b->lm_fingerprint, a->lm_fingerprint);
    ck_assert_mem_eq(b->nodes, a->nodes, (n + 1) * sizeof(lin_tree_node));
    if (m) ck_assert_mem_eq(b->ends, a->ends, m * sizeof(lin_tree_end));
    const float *logps = a->logps;
    ck_assert_int_eq(b->logps != NULL, logps != NULL);
    if (logps) ck_assert_mem_eq(b->logps, logps, m * sizeof *logps);
    const lin_ngram_pairs pairs = a->pairs, same = b->pairs;
    ck_assert_uint_eq(same.n, pairs.n);
    if (pairs.n) ck_assert_mem_eq(same.bits, pairs.bits, pairs.n * sizeof *pairs.bits);
    for (int i = 0; i < a->words.n; i++) {
        const char *word = lin_tree_word(a, i);
        ck_assert_str_eq(lin_tree_word(b, i), word);
        ck_assert_int_eq(lin_tree_find(b, word, strlen(word)), i);
    }
    ck_assert_int_eq(lin_tree_find(b, "nosuchword", 10), -1);
}

static unsigned char *read_packed(size_t *n)
{
    char *bytes;
    OK(lin_text_read(packed, &bytes, n, &err));
    return (unsigned char *)bytes;
}

// A packed tree is the tree; one of another lexicon, and a damaged one, are refused.
START_TEST(test_packed)
{
    lin_tree *t, *again;
    OK(lin_tree_create(d, phones, lm, 0, &t, &err));
    remove(packed);
    FAILS(lin_tree_open(packed, 7, lin_phones_count(phones), lm, &again, &err), LIN_IO, packed);
    OK(lin_tree_write(t, 7, packed, &err));
    FAILS(lin_tree_open(packed, 8, lin_phones_count(phones), lm, &again, &err), LIN_MISMATCH, "another lexicon");
    ck_assert_ptr_null(again);
    OK(lin_tree_open(packed, 7, lin_phones_count(phones), lm, &again, &err));
    compare_trees(t, again);
    OK(lin_tree_write(again, 7, packed, &err)); // over the file that is open
    compare_trees(t, again);
    lin_tree_destroy(again);
    FAIL_EVERY_ALLOCATION(lin_tree_open(packed, 7, lin_phones_count(phones), lm, &again, NULL), lin_tree_destroy(again));

    size_t n;
    unsigned char *bytes = read_packed(&n);
    for (size_t i = 0; i < n; i++) { // every byte but the padding behind the header
        if (i >= sizeof(lin_tree_header) && i < (sizeof(lin_tree_header) + 63) / 64 * 64) continue;
        bytes[i] ^= 0x10;
        test_write_file(packed, bytes, n);
        const lin_status status = lin_tree_open(packed, 7, lin_phones_count(phones), lm, &again, NULL);
        test_require(status == LIN_FORMAT || status == LIN_MISMATCH, "byte %zu: %s", i, lin_status_name(status));
        bytes[i] ^= 0x10;
    }
    for (size_t cut = 0; cut < n; cut += 1 + cut / 4) {
        test_write_file(packed, bytes, cut);
        FAILS(lin_tree_open(packed, 7, lin_phones_count(phones), lm, &again, &err), LIN_FORMAT, packed);
    }
    lin_free(bytes);
    lin_tree_destroy(t);
    OK(lin_tree_create_list(NULL, 0, 3, NULL, 0, &t, &err)); // empty: its table of words has no slot
    OK(lin_tree_write(t, 7, packed, &err));
    OK(lin_tree_open(packed, 7, 3, NULL, &again, &err));
    compare_trees(t, again);
    lin_tree_destroy(again);
    lin_tree_destroy(t);
    remove(packed);
}
END_TEST

// Walks all of a tree as a search does; the address sanitizer sees a step outside.
static long walk(const lin_tree *t, int node, int depth)
{
    const lin_tree_node *nodes = t->nodes;
    const lin_tree_end *ends;
    long sum = 0;
    ck_assert_int_le(depth, LIN_PRONUNCIATION_MAX);
    for (int i = ends_of(t, node, &ends); i-- > 0;) sum += (long)strlen(lin_tree_word(t, ends[i].word));
    for (uint32_t c = nodes[node].child; c < nodes[node + 1].child; c++) sum += nodes[c].label + walk(t, (int)c, depth + 1);
    return sum;
}

// Opens a forged file, with a checksum that fits.
static lin_status open_forged(unsigned char *bytes, size_t n, int V, const lin_ngram *by)
{
    lin_tree *t;
    const uint64_t sum = lin_tree_sum(bytes, n);
    memcpy(bytes + offsetof(lin_tree_header, sum), &sum, 8);
    test_write_file(packed, bytes, n);
    const lin_status status = lin_tree_open(packed, 7, V, by, &t, NULL);
    if (status != LIN_OK) return status;
    ck_assert_int_eq(t->n_outputs, V);
    ck_assert_int_ge(walk(t, LIN_TREE_ROOT, 0), 0);
    for (int i = 0; i < t->words.n; i++) lin_tree_find(t, lin_tree_word(t, i), strlen(lin_tree_word(t, i)));
    lin_tree_destroy(t);
    return LIN_OK;
}

// Files that were forged, with a checksum that fits: refused, or walked without a step outside.
START_TEST(test_forged)
{
    static lexicon x;
    lin_tree *t;
    int refused = 0;
    draw(&x, 3);
    OK(lin_tree_create_list(x.entries, x.n, x.V, NULL, 0, &t, &err));
    OK(lin_tree_write(t, 7, packed, &err));
    lin_tree_destroy(t);
    size_t n;
    unsigned char *good = read_packed(&n), *bytes = malloc(n);
    for (uint64_t seed = 0; seed < 4000; seed++) {
        memcpy(bytes, good, n);
        for (uint64_t k = 0; k < 1 + seed % 3; k++) {
            const size_t at = lin_random_below(seed, 3 * k, (uint32_t)(n - 8)) / 4 * 4;
            const uint32_t kind = lin_random_below(seed, 3 * k + 1, 4);
            uint32_t value;
            memcpy(&value, bytes + at, 4);
            value = kind == 0 ? value + 1 : kind == 1 ? value - 1 : kind == 2 ? UINT32_MAX
                    : lin_random_below(seed, 3 * k + 2, 1000);
            memcpy(bytes + at, &value, 4);
        }
        refused += open_forged(bytes, n, x.V, NULL) != LIN_OK;
    }
    test_require(refused > 1000 && refused < 4000, "%d of 4000 were refused", refused);
    lin_free(good);
    free(bytes);
    remove(packed);
}
END_TEST

// Every number of the header, and of an end and a node, is checked against the rest of the file,
// the phones and the language model.
START_TEST(test_forged_numbers)
{
    static const struct {
        size_t at;
        int is_free; // nothing depends on it
    } numbers[] = {{offsetof(lin_tree_header, n_outputs), 0}, {offsetof(lin_tree_header, n_nodes), 0},
                   {offsetof(lin_tree_header, n_ends), 0},    {offsetof(lin_tree_header, n_words), 0},
                   {offsetof(lin_tree_header, n_slots), 0},   {offsetof(lin_tree_header, n_pairs), 0},
                   {offsetof(lin_tree_header, text_used), 0}, {offsetof(lin_tree_header, text_used) + 4, 0},
                   {offsetof(lin_tree_header, size), 0},      {offsetof(lin_tree_header, size) + 4, 0},
                   {offsetof(lin_tree_header, lm_fingerprint), 0}, {offsetof(lin_tree_header, n_left_out), 1},
                   {offsetof(lin_tree_header, fingerprint), 1}};
    lin_tree *t;
    OK(lin_tree_create(d, phones, lm, 0, &t, &err));
    OK(lin_tree_write(t, 7, packed, &err));
    size_t n;
    const int V = lin_phones_count(phones);
    unsigned char *bytes = read_packed(&n);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint32_t value, others[] = {0, 0, 1, 2, 40, 1000, 1 << 20, INT32_MAX, UINT32_MAX, 0, 0};
        memcpy(&value, bytes + numbers[i].at, 4);
        others[0] = value + 1;
        others[9] = value - 1;
        others[10] = 2 * value;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            if (others[k] == value) continue;
            memcpy(bytes + numbers[i].at, &others[k], 4);
            const lin_status status = open_forged(bytes, n, V, lm);
            // The sections are padded: a text or a table that is a little larger may still fit them.
            const int fits = status == LIN_OK && (numbers[i].is_free || others[k] < value + 64);
            test_require(status == LIN_FORMAT || fits, "number %zu: %u instead of %u: %s", i, others[k], value,
                         lin_status_name(status));
        }
        memcpy(bytes + numbers[i].at, &value, 4);
    }
    ck_assert_int_eq(open_forged(bytes, n, V, lm), LIN_OK);
    ck_assert_int_eq(open_forged(bytes, n, V + 1, lm), LIN_FORMAT); // another phone set
    ck_assert_int_eq(open_forged(bytes, n, V, NULL), LIN_FORMAT);   // no language model
    const size_t nodes = (sizeof(lin_tree_header) + 63) / 64 * 64;
    const size_t ends = nodes + (((size_t)t->n_nodes + 1) * sizeof(lin_tree_node) + 63) / 64 * 64;
    const size_t words = ends + ((size_t)t->n_ends * sizeof(lin_tree_end) + 63) / 64 * 64;
    const size_t slots = words + ((size_t)t->words.n * sizeof(lin_symbol) + 63) / 64 * 64;
    const size_t last = t->nodes[LIN_TREE_ROOT + 1].child - 1; // of the root's children: any larger label would be in order
    const struct {
        size_t at;
        int32_t value;
    } wrong[] = {{ends + 4, lin_ngram_words(lm)}, {ends + 4, -2}, {ends, t->words.n},
                 {nodes + last * 16 + 12, V}, {nodes + 16 + 12, 0}, {nodes + 16 + 8, 0x7fc00000}, {nodes + 16 + 8, 0x7f800000},
                 {nodes + 16 + 8, -8388608}, {nodes + 16 + 4, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int32_t value;
        memcpy(&value, bytes + wrong[i].at, 4);
        memcpy(bytes + wrong[i].at, &wrong[i].value, 4);
        test_require(open_forged(bytes, n, V, lm) == LIN_FORMAT, "number %zu of the sections is used", i);
        memcpy(bytes + wrong[i].at, &value, 4);
    }
    for (size_t i = 0; i < t->words.n_slots; i++) // a full table: no search for an unknown word would end
        if (t->words.slots[i] < 0) memset(bytes + slots + 4 * i, 0, 4);
    ck_assert_int_eq(open_forged(bytes, n, V, lm), LIN_FORMAT);
    lin_free(bytes);
    remove(packed);
    lin_tree_destroy(t);
}
END_TEST

// The probabilities of a dictionary, beside the ends: in the fingerprint, in the packed tree, and checked there.
START_TEST(test_probabilities)
{
    static const char text[] = "a 0.5 AH\na EY\nan 0.25 AH N\n", plain[] = "a AH\na EY\nan AH N\n";
    lin_tree *t, *without, *again;
    const int V = lin_phones_count(phones), ah = lin_phones_find(phones, "AH", 2), n = lin_phones_find(phones, "N", 1);
    lin_dictionary_destroy(d);
    OK(lin_dictionary_parse(plain, strlen(plain), "plain", phones, &d, &err));
    OK(lin_tree_create(d, phones, NULL, 0, &without, &err));
    ck_assert_ptr_null(without->logps);
    lin_dictionary_destroy(d);
    OK(lin_dictionary_parse(text, strlen(text), "small", phones, &d, &err));
    OK(lin_tree_create(d, phones, NULL, 0, &t, &err));
    FAIL_EVERY_ALLOCATION(lin_tree_create(d, phones, NULL, 0, &again, NULL), lin_tree_destroy(again));
    ck_assert(t->fingerprint != without->fingerprint);
    ck_assert_int_eq(t->n_ends, 3);
    const lin_tree_node *nodes = t->nodes;
    const int a = child_of(t, LIN_TREE_ROOT, ah), an = child_of(t, a, n);
    const float *logps = t->logps;
    ck_assert(fabsf(logps[nodes[a].end] - logf(0.5f)) < 1e-6f && fabsf(logps[nodes[an].end] - logf(0.25f)) < 1e-6f);
    ck_assert(logps[nodes[child_of(t, LIN_TREE_ROOT, lin_phones_find(phones, "EY", 2))].end] >= 0);
    OK(lin_tree_write(t, 7, packed, &err));
    OK(lin_tree_open(packed, 7, V, NULL, &again, &err));
    compare_trees(t, again);
    lin_tree_destroy(again);
    size_t size;
    unsigned char *bytes = read_packed(&size);
    static const float bad[] = {0.5f, -2e4f, NAN, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) { // the last section: three numbers and its padding
        memcpy(bytes + size - 64, &bad[i], sizeof *bad);
        ck_assert_int_eq(open_forged(bytes, size, V, NULL), LIN_FORMAT);
    }
    memcpy(bytes + size - 64, logps, sizeof *logps);
    ck_assert_int_eq(open_forged(bytes, size, V, NULL), LIN_OK);
    static const uint64_t counts[] = {1, 2, 4, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memcpy(bytes + offsetof(lin_tree_header, n_logps), &counts[i], 8);
        ck_assert_int_eq(open_forged(bytes, size, V, NULL), LIN_FORMAT);
    }
    lin_free(bytes);
    remove(packed);
    lin_tree_destroy(t);
    lin_tree_destroy(without);
}
END_TEST

// As many words and phones as in CMUdict.
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
        entries[i] = (lin_tree_entry){names[i], labels[i], 4 + i % 4, 0, 0};
    }
    OK(lin_tree_create_list(entries, N, 40, NULL, 0, &t, &err));
    ck_assert_int_eq(t->words.n, N);
    const size_t bytes = (size_t)t->n_nodes * sizeof *t->nodes + (size_t)t->n_ends * sizeof *t->ends + t->words.text_capacity +
                         (size_t)t->words.capacity * sizeof *t->words.items + t->words.n_slots * sizeof *t->words.slots;
    test_require(bytes < 20u << 20, "%zu bytes", bytes);
    lin_tree_destroy(t);
    free(names);
    free(labels);
    free(entries);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "lexicon/tree", TEST(test_random), TEST(test_language_model), TEST(test_fingerprint),
               TEST(test_bad), TEST(test_packed), TEST(test_forged), TEST(test_forged_numbers), TEST(test_probabilities),
               TEST(test_large))
