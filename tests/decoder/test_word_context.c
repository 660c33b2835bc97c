// decoder/context.c with decoder/words.c: phrases that decide between words, words that only the context has, contexts that
// change while a stream runs. test_words.c compares the scores of phrases with brute force.
#include "base/textfile.h"
#include "decoder/words.h"
#include "tests/lexicon/support.h"

enum { V = LIN_PHONES_DEFAULT_COUNT, T_MAX = 400 };

static lin_phones *phones;
static lin_dictionary *dictionary;
static lin_g2p *g2p;
static lin_tree *tree;
static lin_words *words;
static void *state;
static lin_path found;

static const char homophones[] = "right R AY T\nwrite R AY T\nrite R AY T\nletter L EH T ER\na AH\nthe DH AH\n";

static void setup(void)
{
    lin_words_options o = lin_words_options_default();
    o.blank_penalty = 0;
    o.bonus = 0;
    o.unknown = -INFINITY;
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_parse(homophones, strlen(homophones), "small", phones, &dictionary, &err));
    OK(lin_g2p_create(phones, dictionary, NULL, &g2p, &err));
    OK(lin_tree_create(dictionary, phones, NULL, 0, &tree, &err));
    OK(lin_words_create(tree, NULL, &o, &words, &err));
    state = test_buffer(lin_words_bytes(words), 1);
    lin_words_reset(words, state, 0);
    found = (lin_path){0};
}

static void teardown(void)
{
    lin_path_free(&found);
    test_buffer_free(state);
    lin_words_destroy(words);
    lin_tree_destroy(tree);
    lin_g2p_destroy(g2p);
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
}

static lin_word_context *context_of(const char *text, double bonus, const char *text2, double bonus2)
{
    lin_word_context *c;
    const lin_word_phrase phrases[] = {{text, bonus}, {text2, bonus2}};
    OK(lin_word_context_create(tree, phrases, text2 ? 2 : text ? 1 : 0, g2p, &c, &err));
    return c;
}

// Rows of the named phones: two rows of each phone, then one blank.
static int say(float *logp, const char *text)
{
    const char *at = text, *end = text + strlen(text), *field;
    size_t n;
    int T = 0;
    while (lin_field_next(&at, end, &field, &n)) {
        for (int k = 0; k < 3; k++, T++) {
            const int label = k < 2 ? lin_phones_find(phones, field, n) : 0;
            ck_assert_int_ge(label, 0);
            for (int v = 0; v < V; v++) logp[T * V + v] = (float)log(v == label ? 0.9 : 0.1 / (V - 1));
        }
    }
    return T;
}

static const char *text_of(const lin_word_context *c)
{
    static char text[1000];
    text[0] = '\0';
    for (int i = 0; i < found.n_words; i++) {
        const char *word = lin_words_text(words, c, found.words[i].word);
        strcat(text, i ? " " : "");
        strcat(text, word ? word : "?");
    }
    return text;
}

static void push(const lin_word_context *c, const char *text)
{
    static float logp[T_MAX * V];
    OK(lin_words_push(words, state, c, logp, say(logp, text), &found, &err));
}

static const char *hear(const lin_word_context *c, const char *text)
{
    lin_path_clear(&found);
    lin_words_reset(words, state, 0);
    push(c, text);
    OK(lin_words_finish(words, state, c, &found, &err));
    return text_of(c);
}

START_TEST(test_phrases)
{
    lin_word_context *write = context_of("write a letter", 3, "the right letter", 3), *none = context_of(NULL, 0, NULL, 0);
    lin_word_context *rite = context_of("Rite", 1, NULL, 0);
    ck_assert_str_eq(hear(write, "R AY T AH L EH T ER"), "write a letter");
    const double with = found.score;
    ck_assert_str_eq(hear(write, "DH AH R AY T L EH T ER"), "the right letter");
    ck_assert_str_eq(hear(rite, "DH AH R AY T"), "the rite");
    (void)hear(none, "R AY T AH L EH T ER");
    ck_assert_double_eq_tol(with, found.score + 3, 1e-4);
    const double without = found.score;
    (void)hear(NULL, "R AY T AH L EH T ER");
    ck_assert_double_eq_tol(found.score, without, 1e-4);
    lin_word_context_destroy(write);
    lin_word_context_destroy(none);
    lin_word_context_destroy(rite);
}
END_TEST

// "pbx" is spelled letter by letter, P IY B IY EH K S, and is not in the lexicon.
START_TEST(test_new_words)
{
    const char sound[] = "DH AH P IY B IY EH K S AH";
    lin_word_context *c = context_of("PBX", 4, "letter the pbx", 1);
    ck_assert_str_ne(hear(NULL, sound), "the pbx a");
    ck_assert_str_eq(hear(c, sound), "the pbx a");
    ck_assert_int_ge(found.words[1].word, tree->words.n);
    ck_assert_ptr_null(lin_words_text(words, NULL, found.words[1].word));
    ck_assert_int_eq(found.words[1].n_phones, 7);
    ck_assert_int_eq(found.words[1].start, 6);
    // After the context changes it is an unknown word with the same phones.
    lin_words_reset(words, state, 0);
    lin_path_clear(&found);
    push(c, sound);
    push(NULL, "R AY T");
    OK(lin_words_finish(words, state, NULL, &found, &err));
    ck_assert_int_ge(found.n_words, 3);
    int unknown = 0;
    for (int i = 0; i < found.n_words; i++) unknown += found.words[i].word >= tree->words.n;
    ck_assert(unknown == 0 || found.words[1].word >= tree->words.n); // settled before, or not any more
    // Also in the middle of the word.
    lin_words_reset(words, state, 0);
    lin_path_clear(&found);
    push(c, "DH AH P IY B IY");
    push(NULL, "AH");
    OK(lin_words_check(words, state, lin_words_bytes(words), &err));
    OK(lin_words_finish(words, state, NULL, &found, &err));
    for (int i = 0; i < found.n_words; i++) ck_assert_int_lt(found.words[i].word, tree->words.n);
    lin_word_context_destroy(c);
}
END_TEST

// The bonus of an unfinished phrase is taken back when its context is replaced.
START_TEST(test_change)
{
    lin_word_context *c = context_of("the right letter", 6, NULL, 0), *other = context_of("a letter", 6, NULL, 0);
    double plain = 0;
    for (int with = 0; with < 3; with++) {
        const lin_word_context *first = with ? c : NULL, *then = with == 2 ? other : NULL;
        lin_words_reset(words, state, 0);
        lin_path_clear(&found);
        push(first, "DH AH R AY T");
        push(then, "AH AH");
        OK(lin_words_finish(words, state, then, &found, &err));
        if (with)
            ck_assert_double_eq_tol(found.score, plain, 0.02); // sums over alignments differ a little where histories recombine
        plain = found.score;
    }
    // The new context counts from the row where it is set.
    lin_words_reset(words, state, 0);
    lin_path_clear(&found);
    push(c, "DH AH");
    push(other, "AH L EH T ER");
    OK(lin_words_finish(words, state, other, &found, &err));
    ck_assert_str_eq(text_of(other), "the a letter");
    const double with = found.score;
    (void)hear(NULL, "DH AH AH L EH T ER");
    ck_assert_double_eq_tol(with, found.score + 6, 0.02);
    lin_word_context_destroy(c);
    lin_word_context_destroy(other);
}
END_TEST

// finish reserves memory before it changes the state: the unfinished word is one more than before.
START_TEST(test_room)
{
    lin_word_context *c = context_of("PBX", 4, NULL, 0);
    push(c, "P IY B IY");
    ck_assert_int_eq(found.n_words, 0);
    OK(lin_path_reserve(&found, 100, 1, &err));
    found.words_capacity = 1;
    lin_memory_fail_at(1);
    const lin_status status = lin_words_finish(words, state, NULL, &found, NULL);
    lin_memory_fail_at(0);
    OK(status);
    ck_assert_int_eq(found.n_words, 1);
    ck_assert_int_eq(found.words[0].word, LIN_WORD_UNKNOWN);
    lin_word_context_destroy(c);
}
END_TEST

START_TEST(test_bad)
{
    lin_word_context *c;
    FAILS(lin_word_context_create(tree, &(lin_word_phrase){"the pbx", 1}, 1, NULL, &c, &err), LIN_INVALID, "'pbx'");
    FAILS(lin_word_context_create(tree, &(lin_word_phrase){"the zebra", 1}, 1, g2p, &c, &err), LIN_UNSUPPORTED, "'zebra'");
    FAILS(lin_word_context_create(tree, &(lin_word_phrase){"the 4", 1}, 1, g2p, &c, &err), LIN_INVALID, "'4'");
    FAILS(lin_word_context_create(tree, &(lin_word_phrase){" ", 1}, 1, g2p, &c, &err), LIN_INVALID, "phrase 1");
    FAILS(lin_word_context_create(tree, &(lin_word_phrase){"the", NAN}, 1, g2p, &c, &err), LIN_INVALID, "phrase 1");
    FAILS(lin_word_context_create(tree, NULL, -1, g2p, &c, &err), LIN_INVALID, "-1 phrases");
    ck_assert_ptr_null(c);
    const lin_word_phrase phrases[] = {{"write a letter", 1}, {"pbx the pbx", 2}};
    FAIL_EVERY_ALLOCATION(lin_word_context_create(tree, phrases, 2, g2p, &c, NULL), lin_word_context_destroy(c));
    lin_word_context_destroy(NULL);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "decoder/word_context", TEST(test_phrases), TEST(test_new_words), TEST(test_change),
               TEST(test_room), TEST(test_bad))
