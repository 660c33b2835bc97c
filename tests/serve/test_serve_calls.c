// The table of calls: which one a request means, what its forms may hold, and what is made of it; languages; prompts as phrases.
#include "serve/serve_calls.h"

#include "base/json.h"
#include "base/memory.h"
#include "tests/lexicon/support.h"

static lin_error failure;

START_TEST(routes)
{
    int known;
    ck_assert_int_eq(lin_call_find("POST", "/v1/audio/transcriptions", &known)->kind, LIN_CALL_TRANSCRIBE);
    ck_assert_int_eq(lin_call_find("HEAD", "/healthz", &known)->kind, LIN_CALL_HEALTH);
    ck_assert_ptr_null(lin_call_find("GET", "/v1/align", &known));
    ck_assert_int_eq(known, 1);
    ck_assert_ptr_null(lin_call_find("GET", "/v1/align/", &known));
    ck_assert_int_eq(known, 0);
}
END_TEST

// A form of "name=value" texts.
static void make(lin_form *form, const char *const *fields)
{
    form->n = 0;
    for (; *fields; fields++) {
        const char *equals = strchr(*fields, '=');
        form->parts[form->n++] = (lin_form_part){.name = *fields, .n_name = (size_t)(equals - *fields), .data = equals + 1,
                                                 .n = strlen(equals + 1)};
    }
}

START_TEST(forms)
{
    int known;
    lin_form form;
    lin_buffer ignored = {0};
    char text[32];
    const lin_call *call = lin_call_find("POST", "/v1/audio/transcriptions", &known);
    static const char *const good[] = {"file=x",
                                       "model=y",
                                       "temperature=0.5",
                                       "timestamp_granularities[]=word",
                                       "a\r\nb=1",
                                       "stream=True",
                                       "response_format=",
                                       "timestamp_granularities[]=segment",
                                       "phrases[0]=p",
                                       "none=",
                                       "file=",
                                       "model=z",
                                       NULL};
    make(&form, good);
    OK(lin_call_check(call, &form, &ignored, &failure));
    ck_assert_str_eq(ignored.data, "model, temperature, a??b, model");
    lin_call_value(call, &form, "response_format", text, sizeof text);
    ck_assert_str_eq(text, "json");
    lin_call_value(call, &form, "nothing", text, sizeof text);
    ck_assert_str_eq(text, "");
    lin_call_value(call, &form, "file", text, 1);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(lin_call_flag(call, &form, "stream"), 1);
    ck_assert_int_eq(lin_form_is(lin_call_part(call, &form, "timestamp_granularities", 1), "segment"), 1);
    ck_assert_ptr_null(lin_call_part(call, &form, "none", 0));
    ck_assert_ptr_nonnull(lin_call_part(call, &form, "phrases", 0));
    static const char *const bad[][2] = {{"x=1", "the form has no file"},
                                         {"file=", "file is empty"},
                                         {"response_format=jso", "response_format must be one of json|verbose_json|"},
                                         {"response_format=json text", "response_format"},
                                         {"temperature=1.5", "temperature must be a number from 0 to 1"},
                                         {"temperature=nan", "temperature"},
                                         {"temperature=0.5x", "temperature"},
                                         {"timestamp_granularities=words", "timestamp_granularities"},
                                         {"stream=2", "stream must be true or false"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make(&form, (const char *const[]){bad[i][0], i < 2 ? "y=2" : "file=x", NULL});
        test_require(lin_call_check(call, &form, &ignored, &failure) == LIN_INVALID, "%s", bad[i][0]);
        test_require(strstr(failure.message, bad[i][1]) != NULL, "%s: %s", bad[i][0], failure.message);
    }
    static const char *const twice[][2] = {
        {"file[]=y", "the form has 2 fields file: send one, and the other files in requests of their own"},
        {"language=en", "the form has 2 fields language: send one"}};
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
        make(&form, (const char *const[]){"file=x", "language=en", twice[i][0], NULL});
        FAILS(lin_call_check(call, &form, &ignored, &err), LIN_INVALID, twice[i][1]);
    }
    lin_buffer_free(&ignored);
}
END_TEST

START_TEST(languages)
{
    static const char *const yes[] = {"", "en", "EN", "en-US", "en_GB", "English", "auto"}, *const no[] = {"de", "e", "eng",
                                                                                                           "enx", "german"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) test_require(lin_language_is(yes[i], "en"), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) test_require(!lin_language_is(no[i], "en"), "%s", no[i]);
    ck_assert_int_eq(lin_language_is("fy-NL", "fy"), 1);
    ck_assert_int_eq(lin_language_is("ru", "und"), 1);
    ck_assert_str_eq(lin_language_name("en"), "english");
    ck_assert_str_eq(lin_language_name("fy"), "fy");
}
END_TEST

START_TEST(prompts)
{
    static const struct {
        const char *text, *phrases; // with a bar behind each
    } cases[] = {{"", ""},
                 {"  ,,. \n", ""},
                 {"Mister Dashwood, of Norland-Park;\nElinor's (sister): GPT-4, na\xc3\xafve! five",
                  "mister dashwood|of norland park|"
                  "elinor's|sister|na\xc3\xafve|five|"},
                 // typographic quotation marks, an apostrophe, a hyphen and a no-break space; Cyrillic; what is no UTF-8
                 {"\xe2\x80\x9cWasn\xe2\x80\x99t\xe2\x80\x9d \xe2\x80\x98it\xe2\x80\x99 na\xc3\x8fVE\xe2\x80\x90ly\xc2\xa0so"
                  "\xe2\x80\xa6",
                  "wasn't|it na\xc3\xafve ly so|"},
                 {"\xd0\x94\xd0\xb0 \xd0\x9d\xd0\xb5\xd1\x82, 5 \xd0\xb4\xd0\xb0, \xd0, x",
                  "\xd0\xb4\xd0\xb0 \xd0\xbd\xd0\xb5\xd1\x82|x|"},
                 {"one two three four five six", "one two three four five six|"},
                 {"one two three four five six seven. eight", "eight|"},
                 {"'quoted' 'words", "quoted words|"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_buffer out = {0};
        const int n = lin_prompt_phrases(cases[i].text, strlen(cases[i].text), &out);
        int bars = 0;
        for (size_t k = 0; k < out.n; k++) {
            if (out.data[k]) continue;
            out.data[k] = '|';
            bars++;
        }
        test_require(n == bars && !strcmp(out.data ? out.data : "", cases[i].phrases), "%s: %s", cases[i].text,
                     out.data ? out.data : "");
        lin_buffer_free(&out);
    }
    char *many = lin_alloc(8000, 1);
    for (int i = 0; i < 8000; i++) many[i] = i % 2 ? ',' : 'a';
    lin_buffer out = {0};
    ck_assert_int_eq(lin_prompt_phrases(many, 8000, &out), LIN_MESSAGE_MOST_PHRASES);
    lin_buffer_free(&out);
    lin_free(many);
}
END_TEST

START_TEST(descriptions)
{
    lin_buffer out = {0};
    cJSON *json;
    lin_calls_put_openapi(&out, "1.2.3");
    ck_assert_ptr_null(strstr(out.data, "English")); // the model may have any language
    OK(lin_json_parse(out.data, out.n, "openapi", 0, &json, &failure));
    const cJSON *paths = cJSON_GetObjectItem(json, "paths");
    ck_assert_int_gt(cJSON_GetArraySize(paths), 10);
    for (const cJSON *path = paths->child; path; path = path->next) {
        int known;
        const cJSON *call = path->child; // its only method
        const lin_call *c = lin_call_find(strcmp(call->string, "get") ? "POST" : "GET", path->string, &known);
        ck_assert_ptr_nonnull(c);
        ck_assert_int_eq(cJSON_HasObjectItem(call, "requestBody"), c->fields != NULL);
        const cJSON *content = cJSON_GetObjectItem(cJSON_GetObjectItem(call, "requestBody"), "content"),
                    *schema = cJSON_GetObjectItem(cJSON_GetObjectItem(content, "multipart/form-data"), "schema"),
                    *fields = cJSON_GetObjectItem(schema, "properties");
        for (const lin_field *f = c->fields; f && f->name; f++) {
            const cJSON *field = cJSON_GetObjectItem(fields, f->name);
            ck_assert_ptr_nonnull(field);
            test_require(f->about && (f->type == LIN_FIELD_CHOICE) == (f->choices != NULL), "%s %s", c->path, f->name);
            test_require(f->type != LIN_FIELD_FLAG || f->otherwise, "%s %s", c->path, f->name);
            test_require(cJSON_HasObjectItem(field, "format") == !strcmp(f->name, "file"), "%s: a file", f->name);
            test_require(cJSON_HasObjectItem(f->many ? cJSON_GetObjectItem(field, "items") : field, "enum") ==
                             (f->choices != NULL),
                         "%s: its values", f->name);
        }
    }
    cJSON_Delete(json);
    lin_buffer_clear(&out);
    const char *sockets[2][2] = {{"/x", "one <protocol>"}, {"/y", "another"}};
    lin_calls_put_page(&out, "1.2.3", sockets, 2);
    HAS(out.data, "<code>/x</code><td>one &lt;protocol&gt;</tr>", "<code>/y</code><td>another</tr>");
    lin_buffer_free(&out);
}
END_TEST

TEST_MAIN("serve/serve_calls", TEST(routes), TEST(forms), TEST(languages), TEST(prompts), TEST(descriptions))
