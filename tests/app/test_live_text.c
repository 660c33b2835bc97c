// app/live_text.c: live results as text and JSON. app/inputs.c: files that are written while they are watched.
#include "app/live_text.h"

#include <sys/stat.h>

#include "app/inputs.h"
#include "tests/lexicon/support.h"

static lin_buffer out;
static int partial_phones; // of put

static const char *shown(const lin_writer_options *words, const lin_result *result, int open)
{
    lin_buffer_clear(&out);
    OK(lin_live_put_text(&out, words, result, open, &err));
    return out.data;
}

static const char *put(const lin_writer_options *words, const lin_session_view *view, const char *settled, const char *open,
                       const char *readable)
{
    lin_buffer_clear(&out);
    lin_live_texts texts = {.has_readable = readable != NULL};
    lin_buffer_text(&texts.settled, settled);
    lin_buffer_text(&texts.open, open);
    if (readable) lin_buffer_text(&texts.readable, readable);
    lin_live_put_json(&out, words, view, &texts, 0.25, partial_phones);
    lin_live_texts_free(&texts);
    return out.data;
}

START_TEST(as_text)
{
    lin_phones *set;
    OK(lin_phones_create(NULL, &set, &err));
    const lin_writer_options names = {.phones = set}, ipa = {.phones = set, .ipa = 1};
    lin_result settled = {0}, guess = {0};
    const int hh = lin_phones_find(set, "HH", 2), ah = lin_phones_find(set, "AH", 2);
    char text[] = "hello\0\"a\"";
    lin_result_phone phones[] = {{.label = hh, .confidence = 0.5f, .start_s = 1, .end_s = 1.03, .goodness = NAN},
                                 {.label = ah, .confidence = 0.25f, .start_s = 1.03, .end_s = 1.06, .goodness = NAN}};
    const lin_result_word first = {.known = 1, .n_phones = 1, .confidence = 0.5f, .start_s = 1, .end_s = 1.03};
    const lin_result_word second = {.text = 5, .first_phone = 1, .n_phones = 1, .confidence = 0.25f, .start_s = 1.03,
                                    .end_s = 1.06};
    lin_result_word words[] = {first, second}, more[] = {first, second};
    more[0].text = 6;
    OK(lin_result_begin(&settled, "live", NULL, 1, &err));
    lin_result r = settled, p = settled;
    r.phones = p.phones = phones;
    r.n_phones = p.n_phones = 2;
    r.words = words;
    p.words = more;
    r.n_words = p.n_words = 2;
    r.text = p.text = text;
    r.has_words = p.has_words = 1;
    lin_session_view v = {.utterance = 3, .revision = 4, .settled = &r, .provisional = &p, .incomplete = 1, .old_phones = 1,
                          .old_words = 1,
                       .start_s = 1, .end_s = 1.06, .processed_s = 1.09};
    ck_assert_str_eq(shown(&names, &r, 0), "hello [ah]");
    ck_assert_str_eq(shown(&names, &p, 1), "\"a\" [ah-]");
    ck_assert_str_eq(shown(&ipa, &p, 1), "\"a\" [ʌ-]");
    ck_assert_str_eq(shown(&names, &guess, 0), "");
    ck_assert_str_eq(put(&names, &v, "S", "P", NULL),
                     "{\"type\":\"partial\",\"utterance\":3,\"revision\":4,\"start\":1.000,\"end\":1.060,\"heard\":1.090,"
                     "\"latency_ms\":250,\"stable\":\"S\",\"unstable\":\"P\",\"new_words\":[{\"word\":\"\",\"known\":false,"
                     "\"start\":1.030,\"end\":1.060,\"confidence\":0.2500,\"first_phone\":1,\"phones\":[\"AH\"]}],"
                     "\"partial_words\":[{\"word\":\"\\\"a\\\"\",\"known\":true,\"start\":1.000,\"end\":1.030,"
                     "\"confidence\":0.5000,\"first_phone\":2,\"phones\":[\"HH\"],\"complete\":true},{\"word\":\"\","
                     "\"known\":false,\"start\":1.030,\"end\":1.060,\"confidence\":0.2500,\"first_phone\":3,"
                     "\"phones\":[\"AH\"],\"complete\":false}]}\n");
    partial_phones = 1;
    HAS(put(&names, &v, "S", "P", NULL),
        ",\"new_phones\":[{\"phone\":\"AH\",\"start\":1.030,\"end\":1.060,\"confidence\":0.2500}],"
        "\"partial_phones\":[{\"phone\":\"HH\",\"start\":1.000,");
    partial_phones = 0;
    v.end = LINNET_AFTER;
    r.n_phones = r.n_words = 1;
    ck_assert_str_eq(
        put(&names, &v, "hello", "", "Hello."),
        "{\"type\":\"final\",\"utterance\":3,\"revision\":4,\"start\":1.000,\"end\":1.060,\"heard\":1.090,"
        "\"latency_ms\":250,\"ended_by\":\"after\",\"text\":\"hello\",\"readable\":\"Hello.\",\"phones\":[{\"phone\":\"HH\","
        "\"start\":1.000,\"end\":1.030,\"confidence\":0.5000}],\"words\":[{\"word\":\"hello\",\"known\":true,"
        "\"start\":1.000,\"end\":1.030,\"confidence\":0.5000,\"first_phone\":0,\"phones\":[\"HH\"]}]}\n");
    lin_result alternatives[] = {r, r};
    alternatives[0].n_phones = alternatives[0].n_words = 0;
    alternatives[1].score = -1.5;
    r.alternatives = alternatives;
    r.n_alternatives = 2;
    ck_assert_str_eq(strstr(put(&ipa, &v, "hello", "", NULL), ",\"alternatives\":"),
                     ",\"alternatives\":[{\"text\":\"\",\"phones\":[],\"words\":[],\"score\":0.0000,\"acoustic\":0.0000,"
                     "\"language\":0.0000},{\"text\":\"hello\",\"phones\":[{\"phone\":\"h\",\"start\":1.000,\"end\":1.030,"
                     "\"confidence\":0.5000}],\"words\":[{\"word\":\"hello\",\"known\":true,\"start\":1.000,\"end\":1.030,"
                     "\"confidence\":0.5000,\"first_phone\":0,\"phones\":[\"h\"]}],\"score\":-1.5000,"
                     "\"acoustic\":0.0000,\"language\":0.0000}]}\n");
    // A failed allocation is remembered by the buffer.
    unsigned long k = 0;
    lin_live_texts texts = {0};
    lin_buffer_text(&texts.settled, "hello");
    do {
        lin_buffer_free(&out);
        lin_memory_fail_at(++k);
        lin_live_put_json(&out, &ipa, &v, &texts, 0.25, 0);
        lin_memory_fail_at(0);
    } while (lin_buffer_status(&out, NULL) == LIN_NO_MEMORY);
    lin_live_texts_free(&texts);
    ck_assert_uint_gt(k, 2);
    HAS(out.data, "-1.5000");
    lin_buffer_free(&out);
    lin_live_put_context(&out, 2, "");
    lin_live_put_context(&out, 0, "x:1: \"no\"");
    ck_assert_str_eq(out.data, "{\"type\":\"context\",\"phrases\":2}\n"
                               "{\"type\":\"context\",\"phrases\":0,\"message\":\"x:1: \\\"no\\\"\"}\n");
    lin_buffer_free(&out);
    lin_result_free(&settled);
    lin_phones_destroy(set);
}
END_TEST

START_TEST(a_file_that_is_watched)
{
    lin_watch w = {0};
    double now = 100;
    const char *list = test_file("list", "a\n", 2);
    ck_assert(!lin_watch_changed(&w, now));
    ck_assert_int_eq(lin_watch_add(&w, list, NULL), LIN_OK);
    for (int i = 0; i < 5; i++) ck_assert(!lin_watch_changed(&w, now += 0.6));
    test_write_file(list, "bb\n", 3);
    ck_assert(!lin_watch_changed(&w, now += 0.1)); // too soon to look again
    ck_assert(!lin_watch_changed(&w, now += 0.6)); // it may still be written
    test_write_file(list, "bbb\n", 4);
    ck_assert(!lin_watch_changed(&w, now += 0.6));
    ck_assert(!lin_watch_changed(&w, now += 0.1));
    ck_assert(lin_watch_changed(&w, now += 0.6));
    ck_assert(!lin_watch_changed(&w, now += 0.6));
    remove(list);
    for (int i = 0; i < 3; i++) ck_assert(!lin_watch_changed(&w, now += 0.6));
    test_write_file(list, "cccc\n", 5);
    ck_assert(!lin_watch_changed(&w, now += 0.6));
    ck_assert(lin_watch_changed(&w, now += 0.6));
    remove(list);
    ck_assert_int_eq(mkfifo(list, 0600), 0);
    for (int i = 0; i < 3; i++) ck_assert(!lin_watch_changed(&w, now += 0.6));
    // A second file, which is not there yet; the first one stays as it is.
    remove(list);
    test_write_file(list, "d\n", 2);
    char other[256];
    snprintf(other, sizeof other, "%s-other", list);
    remove(other);
    ck_assert(lin_watch_add(&w, list, NULL) == LIN_OK && lin_watch_add(&w, other, NULL) == LIN_OK);
    ck_assert_int_eq(w.n, 2);
    ck_assert(!lin_watch_changed(&w, now += 0.6));
    ck_assert(lin_watch_changed(&w, now += 0.6));
    test_write_file(other, "e\n", 2);
    ck_assert(!lin_watch_changed(&w, now += 0.6));
    ck_assert(lin_watch_changed(&w, now += 0.6));
    for (int i = 0; i < 3; i++) ck_assert(!lin_watch_changed(&w, now += 0.6));
    remove(other);
    lin_watch_free(&w);
}
END_TEST

TEST_MAIN("app/live_text, app/inputs", TEST(as_text), TEST(a_file_that_is_watched))
