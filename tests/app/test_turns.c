// app/results.c: turns of several speakers in the order of time; short pauses, interruptions, phones without words, no speech.
#include "app/results.h"

#include "tests/lexicon/support.h"

static const char *spell(const void *context, int word)
{
    (void)word;
    return context;
}

// "0.5 0.7 hello 0.8 1.0 you": words with their times, two phones each; all are keywords, which begin a little before.
static void say(lin_result *r, const char *speaker, int channel, const char *text)
{
    OK(lin_result_begin(r, "call", speaker, channel, &err));
    r->has_words = 1;
    r->seconds = 60;
    double from, to;
    char word[16];
    for (int n; sscanf(text, "%lf %lf %15s %n", &from, &to, word, &n) == 3; text += n) {
        const int64_t a = (int64_t)(from * 100 + 0.5), b = (int64_t)(to * 100 + 0.5);
        lin_path_phone phones[] = {{.label = 1, .confidence = 1, .start = a, .end = a + 1},
                                   {.label = 2, .confidence = 1, .start = b - 1, .end = b}};
        lin_path_word said = {.n_phones = 2, .confidence = 1, .start = a, .end = b};
        const lin_path path = {.phones = phones, .n_phones = 2, .words = &said, .n_words = 1};
        OK(lin_result_add_path(r, &path, 0.01, spell, word, &err));
        OK(lin_result_add_keyword(r, word, 1, from - 0.01, to, &err));
    }
}

// "anna hello you / ben yes / "
static const char *told(const lin_turns *t)
{
    static char text[1024];
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < t->n; i++) {
        const lin_result *r = &t->items[i].result;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", r->speaker);
        for (int w = 0; w < r->n_words; w++) n += (size_t)snprintf(text + n, sizeof text - n, " %s", lin_result_word_text(r, w));
        n += (size_t)snprintf(text + n, sizeof text - n, " / ");
    }
    return text;
}

static const struct {
    const char *anna, *ben, *want;
} cases[] = {
    {"0.5 0.7 hello 0.8 1.0 you", "2.0 2.3 yes", "anna hello you / ben yes / "},
    {"5 6 later", "1 2 first", "ben first / anna later / "},
    // A pause of a second is one turn if nobody speaks in it, two if somebody does; one of three seconds is always two.
    {"0 1 a 2 3 b", "9 10 c", "anna a b / ben c / "},
    {"0 1 a 2 3 b", "1.2 1.8 c", "anna a / ben c / anna b / "},
    {"0 1 a 4 5 b", "9 10 c", "anna a / anna b / ben c / "},
    // Within a sentence nobody is cut off, even if the other speaks meanwhile.
    {"0 1 a 1.2 2 b 2.1 3 c", "1.1 1.3 mhm", "anna a b c / ben mhm / "},
    {"0 1 a 2 3 b", "0 1 c 2 3 d", "anna a / ben c / anna b / ben d / "},
    {"", "1 2 alone", "ben alone / "},
    {"", "", ""},
};

START_TEST(turns_in_the_order_of_time)
{
    lin_result anna = {0}, ben = {0};
    lin_turns t = {0};
    say(&anna, "anna", 1, cases[_i].anna);
    say(&ben, "ben", 2, cases[_i].ben);
    const lin_result *list[] = {&anna, &ben};
    for (int again = 0; again < 2; again++) {
        OK(lin_turns_make(&t, "call", list, 2, &err));
        ck_assert_str_eq(told(&t), cases[_i].want);
    }
    for (int i = 0; i < t.n; i++) {
        const lin_turn *turn = &t.items[i];
        const lin_result *r = &turn->result;
        char id[64];
        snprintf(id, sizeof id, "call-%s-%04d", r->speaker, i + 1);
        ck_assert_str_eq(r->id, id);
        ck_assert_int_eq(r->channel, strcmp(r->speaker, "anna") ? 2 : 1);
        ck_assert_int_eq(r->n_phones, 2 * r->n_words);
        ck_assert_int_eq(r->words[r->n_words - 1].first_phone, r->n_phones - 2);
        ck_assert_int_eq(r->n_keywords, r->n_words);
        ck_assert_str_eq(r->text + r->keywords[0].text, lin_result_word_text(r, 0));
        ck_assert_double_eq(turn->start_s, r->words[0].start_s);
        ck_assert_double_eq(turn->end_s, r->words[r->n_words - 1].end_s);
        ck_assert(turn->until_s >= turn->end_s && r->seconds == 60);
        if (i) ck_assert(turn->start_s >= turn[-1].start_s);
    }
    lin_turns_free(&t);
    lin_result_free(&anna);
    lin_result_free(&ben);
}
END_TEST

static lin_status make_and_free(const lin_result *const list[2])
{
    lin_turns t = {0};
    const lin_status status = lin_turns_make(&t, "x", list, 2, NULL);
    lin_turns_free(&t);
    return status;
}

START_TEST(turns_of_phones)
{
    lin_result r[2] = {{0}};
    lin_turns t = {0};
    for (int i = 0; i < 2; i++) {
        OK(lin_result_begin(&r[i], "x", i ? "b (1)" : "a", i + 1, &err));
        lin_path_phone phones[] = {{.label = 1 + i, .confidence = 1, .start = i, .end = i + 1},
                                   {.label = 3, .confidence = 1, .start = 10, .end = 11}};
        const lin_path path = {.phones = phones, .n_phones = 2};
        OK(lin_result_add_path(&r[i], &path, 1, NULL, NULL, &err));
    }
    const lin_result *list[] = {&r[0], &r[1]};
    OK(lin_turns_make(&t, "x y", list, 2, &err));
    ck_assert_int_eq(t.n, 4);
    ck_assert_str_eq(t.items[1].result.id, "x_y-b__1_-0002");
    ck_assert_int_eq(t.items[1].result.phones[0].label, 2);
    ck_assert_int_eq(t.items[1].result.has_words, 0);
    ck_assert_double_eq(t.items[0].until_s, 1);
    lin_turns_free(&t);
    FAIL_EVERY_ALLOCATION(make_and_free(list), (void)0);
    for (int i = 0; i < 2; i++) lin_result_free(&r[i]);
}
END_TEST

TEST_MAIN("app/turns", TESTS(turns_in_the_order_of_time, 0, sizeof cases / sizeof *cases), TEST(turns_of_phones))
