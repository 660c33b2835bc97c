// decoder/result.c, buffer.c, writers.c: each format to the byte, ids of any bytes, what a format cannot hold, every allocation
// failing.
#include "decoder/writers.h"

#include <cJSON.h>
#include <locale.h>

#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_result result;

static void setup(void)
{
    static const lin_greedy_phone some[] = {
        {.label = 1, .confidence = 0.9877f, .start = 3, .end = 7}, {.label = 39, .confidence = 1.0f, .start = 100, .end = 101}};
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_result_begin(&result, "utt-1", "anna", 2, &err));
    OK(lin_result_add(&result, some, 2, 0.03, &err));
    result.seconds = 3.1415926;
}

static void teardown(void)
{
    lin_result_free(&result);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static const char *written(const char *writer, lin_writer_options options)
{
    static char text[4096];
    lin_buffer out = {0};
    options.phones = phones;
    OK(lin_writer_find(writer)->write(&result, &options, &out, &err));
    ck_assert_uint_lt(out.n, sizeof text);
    memcpy(text, out.data, out.n + 1);
    lin_buffer_free(&out);
    return text;
}

START_TEST(formats)
{
    lin_writer_options plain = {0}, ids = {.with_id = 1}, ipa = {.ipa = 1};
    ck_assert_str_eq(written("text", plain), "AA ZH\n");
    ck_assert_str_eq(written("text", ids), "utt-1 AA ZH\n");
    ck_assert_str_eq(written("text", ipa), "ɑ ʒ\n");
    ck_assert_str_eq(written("trn", plain), "AA ZH (utt-1)\n");
    ck_assert_str_eq(written("ctm", plain), "utt-1 2 0.090 0.120 AA 0.9877\nutt-1 2 3.000 0.030 ZH 1.0000\n");
    ck_assert_str_eq(written("json", plain), "{\"id\":\"utt-1\",\"channel\":2,\"speaker\":\"anna\",\"seconds\":3.142,\"phones\":["
                                             "{\"phone\":\"AA\",\"start\":0.090,\"end\":0.210,\"confidence\":0.9877},"
                                             "{\"phone\":\"ZH\",\"start\":3.000,\"end\":3.030,\"confidence\":1.0000}]}\n");
    OK(lin_result_begin(&result, "u", NULL, 1, &err));
    ck_assert_int_eq(result.n_phones, 0);
    ck_assert_str_eq(written("text", plain), "\n");
    ck_assert_str_eq(written("text", ids), "u\n");
    ck_assert_str_eq(written("trn", plain), "(u)\n");
    ck_assert_str_eq(written("ctm", plain), ";; u has no phones\n");
    ck_assert_str_eq(written("json", plain), "{\"id\":\"u\",\"channel\":1,\"seconds\":0.000,\"phones\":[]}\n");
}
END_TEST

START_TEST(the_table)
{
    int n = 0;
    for (; lin_writer_at(n); n++) ck_assert_ptr_eq(lin_writer_find(lin_writer_at(n)->name), lin_writer_at(n));
    ck_assert_int_ge(n, 4);
    ck_assert_ptr_null(lin_writer_at(-1));
    ck_assert_ptr_null(lin_writer_find("nonsense"));
    ck_assert_str_eq(lin_writer_for_file("a.b/x.ctm")->name, "ctm");
    ck_assert_str_eq(lin_writer_for_file("x.jsonl")->name, "json");
    ck_assert_ptr_null(lin_writer_for_file("a.ctm/x"));
    ck_assert_ptr_null(lin_writer_for_file("x"));
}
END_TEST

// Whatever the id, the line is JSON that an independent parser reads back.
START_TEST(json_of_any_id)
{
    lin_writer_options plain = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        char id[40];
        uint32_t n = lin_random_below(seed, 0, sizeof id);
        for (uint32_t i = 0; i < n; i++) id[i] = (char)(1 + lin_random_below(seed, i + 1, seed % 2 ? 255 : 127));
        id[n] = '\0';
        OK(lin_result_begin(&result, id, id, 1, &err));
        const char *line = written("json", plain);
        ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
        cJSON *json = cJSON_Parse(line);
        ck_assert_msg(json != NULL, "%s", line);
        const char *back = cJSON_GetObjectItem(json, "id")->valuestring;
        if (seed % 2 == 0) ck_assert_str_eq(back, id);
        cJSON_Delete(json);
    }
    OK(lin_result_begin(&result, "\xC3\xA9\xFF\xC3\"\\\n\xED\xA0\x80\xF4\x90\x80\x80", "", 1, &err));
    ck_assert_str_eq(written("json", plain), "{\"id\":\"é\xEF\xBF\xBD\xEF\xBF\xBD\\\"\\\\\\u000a\xEF\xBF\xBD\xEF\xBF\xBD"
                                             "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
                                             "\",\"channel\":1,\"seconds\":0.000,"
                                             "\"phones\":[]}\n");
}
END_TEST

START_TEST(what_a_format_cannot_hold)
{
    lin_writer_options o = {.phones = phones}, ids = {.phones = phones, .with_id = 1};
    lin_buffer out = {0};
    lin_buffer_text(&out, "before");
    static const char *const bad[] = {"a b", "a\tb", "a\nb", "a\x7f", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        OK(lin_result_begin(&result, bad[i], NULL, 1, &err));
        ck_assert_int_eq(lin_writer_find("ctm")->write(&result, &o, &out, NULL), LIN_INVALID);
        ck_assert_int_eq(lin_writer_find("trn")->write(&result, &o, &out, NULL), LIN_INVALID);
        ck_assert_int_eq(lin_writer_find("text")->write(&result, &ids, &out, NULL), LIN_INVALID);
    }
    OK(lin_result_begin(&result, "a(b)", NULL, 1, &err));
    FAILS(lin_writer_find("trn")->write(&result, &o, &out, &err), LIN_INVALID, "'a(b)' cannot stand in TRN: byte 2");
    static const lin_greedy_phone wrong[] = {{.label = 40}, {.label = 0}, {.label = -1}};
    for (int i = 0; i < 3; i++) {
        OK(lin_result_begin(&result, "u", NULL, 1, &err));
        OK(lin_result_add(&result, &wrong[i], 1, 0.01, &err));
        for (int w = 0; lin_writer_at(w); w++) ck_assert_int_eq(lin_writer_at(w)->write(&result, &o, &out, NULL), LIN_INVALID);
    }
    ck_assert_str_eq(out.data, "before");
    lin_buffer_free(&out);
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {{0, 3, "0.000"},         {1.0005, 3, "1.001"}, {-0.0001, 3, "0.000"}, {-2.5, 0, "-3"},
                 {0.999999, 3, "1.000"},
                 {36000, 3, "36000.000"}, {NAN, 2, "0.00"},     {INFINITY, 1, "0.0"},   {1e300, 0, "900000000"},
                 {0.05, 9, "0.050000000"}};
    setlocale(LC_ALL, "de_DE.UTF-8"); // where it is installed, its decimal comma must not show
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_buffer out = {0};
        lin_buffer_fixed(&out, cases[i].value, cases[i].digits);
        ck_assert_str_eq(out.data, cases[i].text);
        lin_buffer_free(&out);
    }
    lin_buffer out = {0};
    lin_buffer_text(&out, "ab");
    lin_buffer_pad(&out, 0, 4, 1);
    lin_buffer_pad(&out, 2, 4, 0);
    lin_buffer_pad(&out, 0, 2, 0);
    ck_assert_str_eq(out.data, "  ab  ");
    lin_buffer_free(&out);
}
END_TEST

START_TEST(files)
{
    lin_buffer out = {0};
    FILE *full = fopen("/dev/full", "w");
    lin_buffer_text(&out, "text");
    if (full) {
        FAILS(lin_buffer_write(&out, full, "x.txt", &err), LIN_IO, "cannot write x.txt: No space left");
        fclose(full);
    }
    lin_buffer_free(&out);
    FILE *null = fopen("/dev/null", "w");
    OK(lin_buffer_write(&out, null, "null", &err));
    fclose(null);
}
END_TEST

static lin_status everything(void)
{
    lin_writer_options o = {.phones = phones, .with_id = 1};
    static const lin_greedy_phone p = {.label = 5, .start = 1, .end = 2};
    lin_result r = {0};
    lin_buffer out = {0};
    lin_status status = lin_result_begin(&r, "an-id", "speaker", 1, NULL);
    for (int i = 0; i < 200 && !status; i++) status = lin_result_add(&r, &p, 1, 0.01, NULL);
    for (int w = 0; lin_writer_at(w) && !status; w++) {
        size_t before = out.n;
        status = lin_writer_at(w)->write(&r, &o, &out, NULL);
        if (status) ck_assert_uint_eq(out.n, before);
    }
    if (status == LIN_OK) status = lin_result_begin(&r, "another", NULL, 1, NULL);
    lin_buffer_free(&out);
    lin_result_free(&r);
    return status;
}

START_TEST(out_of_memory) { FAIL_EVERY_ALLOCATION(everything(), (void)0); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("writers");
    TCase *tc = tcase_create("writers");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, formats);
    tcase_add_test(tc, the_table);
    tcase_add_test(tc, json_of_any_id);
    tcase_add_test(tc, what_a_format_cannot_hold);
    tcase_add_test(tc, numbers);
    tcase_add_test(tc, files);
    tcase_add_test(tc, out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
