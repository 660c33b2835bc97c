// decoder/result.c: phones, words and alternatives as they arrive, memory that is reused, and every allocation failing.
#include "decoder/result.h"

#include "tests/lexicon/support.h"

static const char *const spellings[] = {"hello", "world", ""};

static const char *spell(const void *context, int word) { return word < 3 ? ((const char *const *)context)[word] : NULL; }

static lin_path_phone phones[] = {{.label = 5, .confidence = 0.5f, .start = 2, .end = 4},
                                  {.label = 6, .confidence = 0.25f, .start = 5, .end = 6},
                                  {.label = 7, .confidence = 1, .start = 9, .end = 12}};
static lin_path_word words[] = {
    {.word = 1, .first_phone = 0, .n_phones = 2, .confidence = 0.75f, .start = 2, .end = 6},
    {.word = LIN_WORD_UNKNOWN, .first_phone = 2, .n_phones = 1, .confidence = 0.125f, .start = 9, .end = 12}};
static const lin_path path = {
    .phones = phones, .n_phones = 3, .words = words, .n_words = 2, .score = -3, .acoustic = -2, .language = -1};

static lin_result r;

static void drop(void)
{
    lin_result_free(&r);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

START_TEST(phones_and_words)
{
    OK(lin_result_begin(&r, "u", "anna", 2, &err));
    ck_assert_str_eq(r.id, "u");
    ck_assert_str_eq(r.speaker, "anna");
    ck_assert(r.channel == 2 && r.seconds == 0 && !r.has_words);
    OK(lin_result_add_path(&r, &(lin_path){.phones = phones, .n_phones = 2}, 0.03, NULL, NULL, &err));
    ck_assert(!r.has_words && r.n_phones == 2 && lin_result_items(&r) == 2);
    const lin_item phone = lin_result_item(&r, 1);
    ck_assert(phone.start_s == r.phones[1].start_s && phone.end_s == r.phones[1].end_s && phone.confidence == 0.25);
    OK(lin_result_add_path(&r, &path, 0.03, spell, spellings, &err));
    ck_assert(r.has_words && r.n_phones == 5 && r.n_words == 2 && lin_result_items(&r) == 2);
    const lin_item word = lin_result_item(&r, 1);
    ck_assert(word.start_s == r.words[1].start_s && word.end_s == r.words[1].end_s && word.confidence == 0.125);
    ck_assert(r.score == -3 && r.acoustic == -2 && r.language == -1);
    for (int i = 0; i < 3; i++) {
        const lin_result_phone *p = &r.phones[2 + i];
        ck_assert(p->label == phones[i].label && p->confidence == phones[i].confidence && isnan(p->goodness));
        ck_assert(p->start_s == 0.03 * (double)phones[i].start && p->end_s == 0.03 * (double)phones[i].end);
    }
    // Phones of the path are appended to the existing ones.
    ck_assert(r.words[0].first_phone == 2 && r.words[0].n_phones == 2 && r.words[1].first_phone == 4 && r.words[1].n_phones == 1);
    ck_assert(r.words[0].known && !r.words[1].known);
    ck_assert(r.words[0].confidence == 0.75f && r.words[0].start_s == 0.03 * 2 && r.words[1].end_s == 0.03 * 12);
    ck_assert_str_eq(lin_result_word_text(&r, 0), "world");
    ck_assert_str_eq(lin_result_word_text(&r, 1), "");
    ck_assert_ptr_null(lin_result_word_text(&r, 2));
    ck_assert_ptr_null(lin_result_word_text(&r, -1));
    OK(lin_result_add_path(&r, &path, 0.03, spell, spellings, &err));
    ck_assert_int_eq(r.words[2].first_phone, 5);
    ck_assert_str_eq(lin_result_word_text(&r, 2), "world");
    OK(lin_result_begin(&r, r.id, r.speaker, 1, &err)); // its own name
    ck_assert_str_eq(r.id, "u");
    ck_assert(r.n_phones == 0 && r.n_words == 0 && !r.has_words && r.score == 0 && r.acoustic == 0 && r.language == 0);
    OK(lin_result_begin(&r, "v", NULL, 1, &err));
    ck_assert_str_eq(r.speaker, "");
    lin_result_free(&r); // and once more behind each test
}
END_TEST

// The mean of the probabilities, not of their logarithms: one phone that was not said makes a word of two worth a half.
START_TEST(goodness)
{
    static const float probabilities[] = {1, 0, 0.5f, 0.25f, 0.75f};
    OK(lin_result_begin(&r, "u", NULL, 1, &err));
    OK(lin_result_add_path(&r, &(lin_path){.phones = phones, .n_phones = 2}, 0.03, NULL, NULL, &err));
    OK(lin_result_add_path(&r, &path, 0.03, spell, spellings, &err));
    ck_assert(isnan(lin_result_goodness(&r, 0, 5)));
    for (int i = 0; i < 5; i++) r.phones[i].goodness = logf(probabilities[i]);
    ck_assert_double_eq_tol(lin_result_goodness(&r, 0, 2), log(0.5), 1e-6);
    ck_assert_double_eq_tol(lin_result_goodness(&r, 2, 1), log(0.5), 1e-6);
    ck_assert_double_eq_tol(lin_result_goodness(&r, 0, 5), log(0.5), 1e-6);
    ck_assert(lin_result_goodness(&r, 1, 1) == -INFINITY);
    r.phones[1].goodness = NAN; // was not measured
    ck_assert(lin_result_goodness(&r, 0, 2) == 0 && isnan(lin_result_goodness(&r, 1, 1)) && isnan(lin_result_goodness(&r, 0, 0)));
}
END_TEST

// A result without words differs from one whose word search found none.
START_TEST(words_looked_for)
{
    const lin_path nothing = {0};
    const lin_path no_words = {.phones = phones, .n_phones = 3};
    lin_path_word odd[] = {{.word = 2, .n_phones = 1}, {.word = 3, .n_phones = 1}, {.word = 0, .n_phones = 1}};
    const lin_path spelled_oddly = {.phones = phones, .n_phones = 1, .words = odd, .n_words = 3};
    OK(lin_result_add_path(&r, &no_words, 0.01, NULL, NULL, &err));
    ck_assert_int_eq(r.has_words, 0);
    OK(lin_result_add_path(&r, &nothing, 0.01, spell, spellings, &err));
    ck_assert_int_eq(r.has_words, 1);
    lin_result_clear(&r);
    ck_assert_int_eq(r.has_words + r.n_phones, 0);
    OK(lin_result_add_path(&r, &spelled_oddly, 0.01, spell, spellings, &err));
    ck_assert(!r.words[0].known && !r.words[1].known && r.words[2].known); // an empty spelling, none, one
    lin_result_clear(&r);
    OK(lin_result_add_path(&r, &spelled_oddly, 0.01, NULL, NULL, &err));
    ck_assert(r.has_words && !r.words[2].known);
}
END_TEST

START_TEST(what_is_refused)
{
    static const int wrong[][2] = {{-1, 1}, {0, -1}, {3, 1}, {0, 4}, {2, 0x7fffffff}, {-0x7fffffff - 1, 0}};
    OK(lin_result_add_path(&r, &(lin_path){.phones = phones, .n_phones = 3}, 0.01, NULL, NULL, &err));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lin_path_word word = {.word = 0, .first_phone = wrong[i][0], .n_phones = wrong[i][1]};
        const lin_path bad = {.phones = phones, .n_phones = 3, .words = &word, .n_words = 1};
        FAILS(lin_result_add_path(&r, &bad, 0.01, spell, spellings, &err), LIN_INVALID, "word 0 of a path has ");
    }
    const lin_path endless = {.phones = phones, .n_phones = 0x7fffffff};
    FAILS(lin_result_add_path(&r, &endless, 0.01, NULL, NULL, &err), LIN_INVALID, "too many elements for a result");
    ck_assert(r.n_phones == 3 && r.n_words == 0 && !r.has_words);
}
END_TEST

static lin_status fill(int alternatives)
{
    lin_status status = lin_result_begin(&r, "an-id", "speaker", 1, NULL);
    for (int i = 0; i < 100 && status == LIN_OK; i++) {
        const lin_result before = r;
        status = lin_result_add_path(&r, &path, 0.01, spell, spellings, NULL);
        if (status != LIN_OK) {
            ck_assert(r.n_phones == before.n_phones && r.n_words == before.n_words && r.text_used == before.text_used);
            ck_assert(r.has_words == before.has_words && r.score == before.score);
        }
    }
    for (int i = 0; i < alternatives && status == LIN_OK; i++) {
        lin_result *other = lin_result_add_alternative(&r);
        if (!other) return LIN_NO_MEMORY;
        ck_assert(other->n_phones == 0 && other->n_words == 0 && !other->has_words && other->n_alternatives == 0);
        for (int k = 0; k <= i && status == LIN_OK; k++) status = lin_result_add_path(other, &path, 0.02, spell, spellings, NULL);
    }
    return status;
}

START_TEST(alternatives)
{
    ck_assert_int_eq(fill(80), LIN_OK);
    ck_assert_int_eq(r.n_alternatives, 80);
    for (int i = 0; i < 80; i++) {
        ck_assert_int_eq(r.alternatives[i].n_words, 2 * (i + 1));
        ck_assert_str_eq(lin_result_word_text(&r.alternatives[i], 2 * i), "world");
        ck_assert(r.alternatives[i].words[2 * i].first_phone == 3 * i);
    }
    // The next utterance reuses the memory: only its two names are allocated.
    const unsigned long live = lin_memory_live(), count = lin_memory_count();
    ck_assert_int_eq(fill(80), LIN_OK);
    ck_assert_uint_eq(lin_memory_count() - count, 2);
    ck_assert_uint_eq(lin_memory_live(), live);
    ck_assert_int_eq(r.n_alternatives, 80);
    ck_assert_int_eq(r.alternatives[79].n_words, 160);
    lin_result_clear(&r);
    ck_assert_int_eq(r.n_alternatives, 0);
    ck_assert_str_eq(r.id, "an-id");
}
END_TEST

static lin_status everything(void)
{
    lin_status status = fill(3);
    if (status == LIN_OK) {
        status = lin_result_begin(&r, "another", NULL, 1, NULL);
        if (status != LIN_OK) ck_assert(!r.id && !r.speaker && r.n_phones == 0 && r.n_words == 0 && r.n_alternatives == 0);
    }
    lin_result_free(&r);
    return status;
}

START_TEST(out_of_memory) { FAIL_EVERY_ALLOCATION(everything(), (void)0); }
END_TEST

TEST_MAIN_WITH(NULL, drop, "result", TEST(phones_and_words), TEST(goodness), TEST(words_looked_for), TEST(what_is_refused),
               TEST(alternatives), TEST(out_of_memory))
