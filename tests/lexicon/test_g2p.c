// train/learn/g2p_learn.c and lexicon/g2p.c: the likelihood of the alignments against their enumeration, the search against all
// sequences of pairs, held-out words, files that are not rules, hostile words.
#include "train/learn/g2p_learn.h"

#include <math.h>

#include "lexicon/g2p.h"
#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_dictionary *dictionary;

static void setup(void)
{
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_parse(small_dictionary, sizeof small_dictionary - 1, "small", phones, &dictionary, &err));
}

static void teardown(void)
{
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

// The likelihood in the first iteration, in which P(phones | letter) is the same for all letters: enumerates every alignment.
static double enumerated(int letters, int m)
{
    const double V = lin_phones_count(phones), one = 0.9 / (V + 1), two = 0.1 / (V * V);
    if (m < 0) return 0;
    if (letters == 0) return m == 0;
    return one * enumerated(letters - 1, m) + one * enumerated(letters - 1, m - 1) + two * enumerated(letters - 1, m - 2);
}

START_TEST(likelihood_of_all_alignments)
{
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    lin_g2p_learn_report report;
    lin_ngram *lm;
    double bits = 0;
    int n = 0;
    for (int w = 0; w < lin_dictionary_count(dictionary); w++) {
        const char *word = lin_dictionary_word(dictionary, w);
        const int *labels;
        if (strspn(word, "abcdefghijklmnopqrstuvwxyz") != strlen(word)) continue;
        for (int k = 0, m; (m = lin_dictionary_find(dictionary, word, strlen(word), k, &labels)) > 0; k++, n++)
            bits -= log2(enumerated((int)strlen(word), m));
    }
    o.iterations = 1;
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, &report, &err));
    lin_ngram_destroy(lm);
    ck_assert_int_eq(report.pronunciations, n);
    ck_assert_int_eq(report.left_out, 2); // 'tis, hyphen-ated
    ck_assert_double_eq_tol(report.bits, bits / n, 1e-9 * bits);
    double before = report.bits; // each iteration increases the likelihood of the words
    for (o.iterations = 2; o.iterations < 8; o.iterations++) {
        OK(lin_g2p_learn(dictionary, phones, &o, &lm, &report, &err));
        lin_ngram_destroy(lm);
        ck_assert_double_le(report.bits, before + 1e-12);
        before = report.bits;
    }
}
END_TEST

// All sequences of pairs that spell a word, each scored by the n-gram model.
typedef struct enumeration {
    const lin_ngram *lm;
    const char *word;
    float best;
    char phones[256];
} enumeration;

static void enumerate(enumeration *e, size_t at, lin_ngram_state state, float logp, const char *so_far)
{
    if (!e->word[at]) {
        logp += lin_ngram_end(e->lm, state);
        if (logp > e->best) {
            e->best = logp;
            snprintf(e->phones, sizeof e->phones, "%s", so_far);
        }
        return;
    }
    for (int w = 0; w < lin_ngram_words(e->lm); w++) {
        const char *text = lin_ngram_word(e->lm, w);
        char more[256];
        lin_ngram_state next;
        if (text[0] != e->word[at] || text[1] != '|') continue;
        snprintf(more, sizeof more, "%s%s%s", so_far, *so_far && text[2] ? " " : "", text + 2);
        for (char *c = more; *c; c++) *c = *c == '+' ? ' ' : *c;
        const float score = lin_ngram_score(e->lm, state, w, &next);
        enumerate(e, at + 1, next, logp + score, more);
    }
}

START_TEST(best_of_all_sequences)
{
    static const char *const words[] = {"hello", "cat", "happy", "lord", "kat", "pay", "dolly", "wor", "jud", "sorb", "ly", "h"};
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    o.minimum = 1;
    lin_ngram *lm, *copy;
    lin_g2p_rules *rules;
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err));
    OK(lin_g2p_learn(dictionary, phones, &o, &copy, NULL, &err));
    ck_assert_uint_eq(lin_ngram_fingerprint(lm), lin_ngram_fingerprint(copy)); // the same bytes every time
    OK(lin_g2p_rules_create(copy, "small", phones, &rules, &err));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        enumeration e = {.lm = lm, .word = words[i], .best = -INFINITY};
        int labels[64], n;
        enumerate(&e, 0, lin_ngram_begin(lm), 0, "");
        OK(lin_g2p_rules_apply(rules, words[i], strlen(words[i]), labels, 64, &n, &err));
        ck_assert_str_eq(named(phones, labels, n), e.phones);
    }
    lin_g2p_rules_destroy(rules);
    lin_ngram_destroy(lm);
}
END_TEST

// All sequences of pairs that have these phones, with at most two silent letters in a row; worse ones than the best are left.
typedef struct spellings {
    const lin_ngram *lm;
    const char *phones[8];
    float best;
    char word[64];
} spellings;

static void enumerate_spellings(spellings *e, int at, int silent, lin_ngram_state state, float logp, const char *so_far)
{
    if (logp <= e->best) return;
    if (!e->phones[at]) {
        const float all = logp + lin_ngram_end(e->lm, state);
        if (all > e->best) {
            e->best = all;
            snprintf(e->word, sizeof e->word, "%s", so_far);
        }
    }
    for (int w = 0; w < lin_ngram_words(e->lm); w++) {
        const char *text = lin_ngram_word(e->lm, w);
        char more[64], pair[32] = "";
        int n = 0;
        if (text[1] != '|') continue;
        if (text[2]) n = strchr(text, '+') ? 2 : 1;
        for (int k = 0; k < n && e->phones[at + k]; k++) {
            snprintf(pair + strlen(pair), sizeof pair - strlen(pair), "%s%s", k ? "+" : "", e->phones[at + k]);
        }
        if (strcmp(pair, text + 2) || (n == 0 && silent == 2) || strlen(so_far) > 20) continue;
        snprintf(more, sizeof more, "%s%c", so_far, text[0]);
        lin_ngram_state next;
        const float score = lin_ngram_score(e->lm, state, w, &next);
        enumerate_spellings(e, at + n, n ? 0 : silent + 1, next, logp + score, more);
    }
}

START_TEST(best_of_all_spellings)
{
    static const char *const words[] = {"HH AH L OW", "K AE T", "S AO", "P EY", "B", "L IY", "D AA L IY", "W ER L D"};
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    o.minimum = 1;
    lin_ngram *lm, *copy;
    lin_g2p_rules *rules;
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err));
    OK(lin_g2p_learn(dictionary, phones, &o, &copy, NULL, &err));
    OK(lin_g2p_rules_create(copy, "small", phones, &rules, &err));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        spellings e = {.lm = lm, .best = -INFINITY};
        char text[64], word[64];
        int labels[8], n = 0;
        snprintf(text, sizeof text, "%s", words[i]);
        for (char *name = strtok(text, " "); name; name = strtok(NULL, " ")) {
            e.phones[n] = name;
            labels[n++] = lin_phones_find(phones, name, strlen(name));
        }
        enumerate_spellings(&e, 0, 0, lin_ngram_begin(lm), 0, "");
        OK(lin_g2p_rules_spell(rules, labels, n, word, sizeof word, &err));
        ck_assert_str_eq(word, e.word);
        FAILS(lin_g2p_rules_spell(rules, labels, n, word, strlen(e.word), &err), LIN_TOO_SMALL, "bytes");
    }
    int zh[300];
    char word[8];
    for (int i = 0; i < 300; i++) zh[i] = lin_phones_find(phones, "ZH", 2);
    FAILS(lin_g2p_rules_spell(rules, zh, 1, word, sizeof word, &err), LIN_UNSUPPORTED, "no letters");
    FAILS(lin_g2p_rules_spell(rules, zh, 0, word, sizeof word, &err), LIN_INVALID, "0 phones");
    FAILS(lin_g2p_rules_spell(rules, zh, 300, word, sizeof word, &err), LIN_INVALID, "300 phones");
    lin_g2p_rules_destroy(rules);
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(held_out_words)
{
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    lin_g2p_learn_report all, part;
    lin_ngram *lm;
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, &all, &err));
    lin_ngram_destroy(lm);
    o.hold_out = 2;
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, &part, &err));
    lin_ngram_destroy(lm);
    ck_assert_int_lt(part.words, all.words);
    ck_assert_int_ge(2 * part.words + 4, all.words);
}
END_TEST

static lin_status learn_and_apply(void)
{
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    lin_ngram *lm;
    lin_g2p_rules *rules;
    int labels[16], n;
    lin_status status = lin_g2p_learn(dictionary, phones, &o, &lm, NULL, NULL);
    if (status == LIN_OK) status = lin_g2p_rules_create(lm, "small", phones, &rules, NULL);
    if (status != LIN_OK) return status;
    char word[32];
    status = lin_g2p_rules_apply(rules, "hello", 5, labels, 16, &n, NULL);
    if (status == LIN_OK) status = lin_g2p_rules_spell(rules, labels, n, word, sizeof word, NULL);
    lin_g2p_rules_destroy(rules);
    return status;
}

START_TEST(bad_input)
{
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    lin_ngram *lm;
    lin_g2p_rules *rules;
    lin_phones *few;
    int labels[16], n;
    static const char arpa[] = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 cat\n\n\\end\\\n";
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "words", &lm, &err));
    FAILS(lin_g2p_rules_open("none.g2p", phones, &rules, &err), LIN_IO, "none.g2p");
    FAILS(lin_g2p_rules_create(lm, "words.lm", phones, &rules, &err), LIN_MISMATCH,
          "words.lm is not a set of letter-to-sound rules: 'cat'");
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err));
    OK(lin_phones_create("<blank> AA B", &few, &err));
    FAILS(lin_g2p_rules_create(lm, "small.g2p", few, &rules, &err), LIN_MISMATCH, "lacks a phone");
    lin_phones_destroy(few);
    o.order = 10;
    FAILS(lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err), LIN_INVALID, "order 1 to 9");
    o = lin_g2p_learn_options_default();
    lin_dictionary *signs;
    OK(lin_dictionary_parse("'s Z\nb B IY EH S T\n", 19, "signs", phones, &signs, &err));
    FAILS(lin_g2p_learn(signs, phones, &o, &lm, NULL, &err), LIN_INVALID, "no word of the letters a to z");
    lin_dictionary_destroy(signs);
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err));
    OK(lin_g2p_rules_create(lm, "small", phones, &rules, &err));
    char word[LIN_WORD_MAX + 1];
    memset(word, 'a', sizeof word);
    FAILS(lin_g2p_rules_apply(rules, "", 0, labels, 16, &n, &err), LIN_INVALID, "0 letters");
    FAILS(lin_g2p_rules_apply(rules, word, sizeof word, labels, 16, &n, &err), LIN_INVALID, "256 letters");
    FAILS(lin_g2p_rules_apply(rules, "a-b", 3, labels, 16, &n, &err), LIN_INVALID, "a to z");
    FAILS(lin_g2p_rules_apply(rules, "quiz", 4, labels, 16, &n, &err), LIN_UNSUPPORTED, "no sound for 'q'");
    FAILS(lin_g2p_rules_apply(rules, word, LIN_WORD_MAX, labels, 16, &n, &err), LIN_TOO_SMALL, "16");
    lin_g2p_rules_destroy(rules);
    lin_g2p_rules_destroy(NULL);
    FAIL_EVERY_ALLOCATION(learn_and_apply(), (void)0);
}
END_TEST

// "c|+B+5": the phones +B and 5, as no phone of the set is called B+5.
START_TEST(plus_signs_in_names)
{
    static const char arpa[] = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 c|+B+5\n-1 d|D\n\n\\end\\\n";
    lin_ngram *lm;
    lin_g2p_rules *rules;
    lin_phones *own;
    int labels[4], n;
    OK(lin_phones_create("<blank> +B 5 D", &own, &err));
    OK(lin_ngram_parse(arpa, sizeof arpa - 1, "own", &lm, &err));
    OK(lin_g2p_rules_create(lm, "own", own, &rules, &err));
    OK(lin_g2p_rules_apply(rules, "cd", 2, labels, 4, &n, &err));
    ck_assert(n == 3 && labels[0] == 1 && labels[1] == 2 && labels[2] == 3);
    lin_g2p_rules_destroy(rules);
    lin_phones_destroy(own);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "g2p", TEST(likelihood_of_all_alignments), TEST(best_of_all_sequences),
               TEST(best_of_all_spellings), TEST(held_out_words), TEST(bad_input),
               TEST(plus_signs_in_names))
