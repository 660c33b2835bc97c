// train/learn/pronunciations: counts and probabilities by hand, what is written read again, failing allocations.
#include "train/learn/pronunciations.h"

#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_dictionary *dictionary;

static void open_dictionary(const char *list, const char *text)
{
    OK(lin_phones_create(list, &phones, &err));
    OK(lin_dictionary_parse(text, strlen(text), "d", phones, &dictionary, &err));
}

static void close_dictionary(void)
{
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

// A word was heard so many times with pronunciation `which` of the dictionary.
static lin_status hear(lin_pronunciations *heard, const char *word, int which, int times, lin_error *why)
{
    const int *labels;
    const int n = lin_dictionary_find(dictionary, word, strlen(word), which, &labels);
    lin_status status = LIN_OK;
    while (times-- > 0 && status == LIN_OK) status = lin_pronunciations_count(heard, word, strlen(word), labels, n, why);
    return status;
}

static const char *const text = "either IY1 DH ER0\neither 0.1 AY1 DH ER0\na AH0\na EY1\na AA\none W AH1 N\n"
                                "never N EH V ER\nnever 0.02 N EH V\n";

START_TEST(by_hand)
{
    lin_pronunciations heard = {0};
    lin_buffer out = {0};
    open_dictionary(NULL, text);
    OK(hear(&heard, "either", 0, 1, &err));
    OK(hear(&heard, "EITHER", 1, 3, &err));
    OK(hear(&heard, "a", 0, 7, &err));
    OK(hear(&heard, "a", 2, 1, &err));
    OK(hear(&heard, "one", 0, 5, &err));
    OK(lin_pronunciations_count(&heard, "unknown", 7, (int[]){1, 2}, 2, &err));
    OK(lin_pronunciations_count(&heard, "one", 3, (int[]){1, 2}, 2, &err)); // a pronunciation that it has not
    OK(lin_pronunciations_write(&heard, dictionary, phones, &out, &err));
    // (1 + 1) / (3 + 1); (0 + 1) / (7 + 1), (1 + 1) / (7 + 1); the best comes first, of equal ones the dictionary's first. A word
    // that was not heard keeps its probabilities.
    ck_assert_str_eq(out.data, "either\t1.0000\tAY1 DH ER0\neither\t0.5000\tIY1 DH ER0\n"
                               "a\t1.0000\tAH0\na\t0.2500\tAA\na\t0.1250\tEY1\none\t1.0000\tW AH1 N\n"
                               "never\t1.0000\tN EH V ER\nnever\t0.0200\tN EH V\n");
    ck_assert_int_eq(heard.words, 12);
    lin_dictionary *again;
    OK(lin_dictionary_parse(out.data, out.n, "again", phones, &again, &err));
    ck_assert(fabs(exp(lin_dictionary_logp(again, "a", 1, 2)) - 0.125) < 1e-6);
    ck_assert(lin_dictionary_has_stress(again));
    lin_dictionary_destroy(again);
    lin_buffer_free(&out);
    lin_pronunciations_free(&heard);
    close_dictionary();
}
END_TEST

// The second pronunciation of `word` is heard so often, if it is not NULL.
static void learns(const char *set, const char *lexicon, const char *word, int times, const char *want)
{
    lin_pronunciations heard = {0};
    lin_buffer out = {0};
    open_dictionary(set, lexicon);
    if (word) OK(hear(&heard, word, 1, times, &err));
    OK(lin_pronunciations_write(&heard, dictionary, phones, &out, &err));
    ck_assert_str_eq(out.data, want);
    lin_buffer_free(&out);
    lin_pronunciations_free(&heard);
    close_dictionary();
}

// However often a word was heard, no pronunciation is impossible.
START_TEST(a_frequent_word) { learns(NULL, "a AH\na EY\n", "a", 50000, "a\t1.0000\tEY\na\t0.0001\tAH\n"); }
END_TEST

// The marks of a set of its own, as the dictionary reads them.
START_TEST(other_phones)
{
    learns(LIN_PHONES_BLANK "\town a h l o", "halo h ˈa l o\nhalo h a l ˈo\nhola ˈo l a\n", NULL, 0,
           "halo\t1.0000\th ˈa l o\nhola\t1.0000\tˈo l a\n");
}
END_TEST

static lin_status heard_and_written(void)
{
    lin_pronunciations heard = {0};
    lin_buffer out = {0};
    lin_status status = hear(&heard, "either", 1, 2, NULL);
    if (status == LIN_OK) status = hear(&heard, "a", 1, 1, NULL);
    if (status == LIN_OK) status = lin_pronunciations_write(&heard, dictionary, phones, &out, NULL);
    lin_buffer_free(&out);
    lin_pronunciations_free(&heard);
    return status;
}

START_TEST(failing_allocations)
{
    open_dictionary(NULL, text);
    FAIL_EVERY_ALLOCATION(heard_and_written(), (void)0);
    close_dictionary();
}
END_TEST

TEST_MAIN("pronunciations", TEST(by_hand), TEST(a_frequent_word), TEST(other_phones), TEST(failing_allocations))
