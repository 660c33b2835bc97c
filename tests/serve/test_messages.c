// What clients of linnet serve send, and the answers in the forms of other servers, against their definitions.
#include <math.h>
#include <sndfile.h>

#include "base/memory.h"
#include "serve/serve.h"
#include "tests/lexicon/support.h"

static lin_error failure;

static lin_status parse(const char *path, const char *text, lin_message *m, lin_error *err)
{
    return lin_protocol_find(path, 0)->parse(text, strlen(text), m, err);
}

START_TEST(vosk_messages)
{
    lin_message m = lin_message_default(16000);
    static const char config[] =
        "{ \"config\" : { \"sample_rate\" : 8000, \"words\": 0, \"max_alternatives\": 3, \"model\": \"x\", "
        "\"phrase_list\": [\"zero one\", \"[unk]\", \"two\"] } }";
    OK(parse("/vosk", config, &m, &err));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_CONFIG);
    ck_assert_int_eq(m.rate_hz, 8000);
    ck_assert_int_eq(m.words, 0);
    ck_assert_int_eq(m.alternatives, 3);
    ck_assert_int_eq(m.n_phrases, 3);
    ck_assert_mem_eq(m.phrases.data, "zero one\0[unk]\0two", 19);
    OK(parse("/vosk", "{\"config\":{\"sample_rate\":\"16000.0\",\"max_alternatives\":\"2\",\"words\":\"yes\"}}", &m, &err));
    ck_assert(m.rate_hz == 16000 && m.alternatives == 2 && m.words == 1);
    OK(parse("/vosk", "{\"config\":{\"sample_rate\":\"8000\",\"words\":\"\"}}", &m, &err));
    ck_assert(m.rate_hz == 8000 && m.alternatives == 2 && m.words == 0);
    OK(parse("/vosk", "{\"config\":{\"max_alternatives\":100000}}", &m, &err));
    ck_assert_int_eq(m.alternatives, 100000);
    OK(parse("/vosk", "{\"eof\" : 1}", &m, &err));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_EOF);
    OK(parse("/vosk", "{\"reset\":1}", &m, &err));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_RESET);
    ck_assert_int_eq(m.rate_hz, 8000);
    static const char *const bad[] = {"", "[]", "{", "{}", "{\"config\":1}", "{\"config\":{\"sample_rate\":1}}",
                                      "{\"config\":{\"sample_rate\":8000.5}}", "{\"config\":{\"sample_rate\":\"fast\"}}",
                                      "{\"config\":{\"sample_rate\":\"8000 Hz\"}}", "{\"config\":{\"sample_rate\":[]}}",
                                      "{\"config\":{\"phrase_list\":[1]}}", "{\"config\":{\"sample_rate\":1e999}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(parse("/vosk", bad[i], &m, &failure) != LIN_OK, "%s", bad[i]);
    FAILS(parse("/vosk", "{\"config\":{\"max_alternatives\":-1}}", &m, &err), LIN_INVALID,
          "max_alternatives must be a whole number from 0 to 2147483647");
    FAILS(parse("/vosk", "{\"config\":{\"phrase_list\":\"x\"}}", &m, &err), LIN_INVALID, "phrase_list must be a list");
    lin_message_free(&m);
}
END_TEST

START_TEST(own_messages)
{
    lin_message m = lin_message_default(16000);
    static const char config[] = "{\"type\":\"config\",\"rate_hz\":44100,\"channels\":2,\"format\":\"f32le\",\"partials\":false,"
                                 "\"readable\":true,\"state_s\":0.1,\"resume\":true,\"push_to_talk\":true,\"phrases\":[]}";
    OK(parse("/v1/stream", config, &m, &err));
    ck_assert_int_eq(m.rate_hz, 44100);
    ck_assert_int_eq(m.channels, 2);
    ck_assert_int_eq(m.format, LIN_SAMPLES_F32);
    ck_assert_int_eq(m.partials, 0);
    ck_assert_int_eq(m.readable, 1);
    ck_assert_int_eq(m.resume && m.n_phrases == 0, 1);
    ck_assert_double_eq(m.state_s, 0.5);
    OK(parse("/v1/stream", "{\"type\":\"end\"}", &m, &err));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_EOF);
    OK(parse("/v1/stream", "{\"type\":\"end_utterance\"}", &m, &err));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_END_UTTERANCE);
    OK(parse("/v1/stream", "{\"type\":\"config\",\"format\":\"ogg_opus\"}", &m, &err));
    ck_assert_int_eq(m.format, LIN_SAMPLES_OPUS);
    FAILS(parse("/v1/stream", "{\"type\":\"config\",\"format\":\"mp3\"}", &m, &err), LIN_INVALID, "");
    OK(parse("/v1/stream", "{\"type\":\"phrases\",\"phrases\":[\"one\",\"two\"]}", &m, &err));
    ck_assert(m.kind == LIN_MESSAGE_PHRASES && m.n_phrases == 2);
    FAILS(parse("/v1/stream", "{\"type\":\"phrases\"}", &m, &err), LIN_INVALID, "");
    FAILS(parse("/v1/stream", "{\"type\":\"config\",\"rate\":1}", &m, &err), LIN_INVALID, "\"rate\"");
    ck_assert_int_ne(parse("/v1/stream", "{\"type\":\"x\"}", &m, &failure), LIN_OK);
    lin_message_free(&m);
}
END_TEST

// Whatever the cuts, the samples are those of the whole.
START_TEST(samples)
{
    unsigned char bytes[64];
    float whole[32], cut[34];
    for (int i = 0; i < 64; i++) bytes[i] = (unsigned char)(i * 37);
    for (int format = 0; format < 2; format++) {
        const size_t n = format ? 16 : 32;
        lin_sample_rest rest = {0};
        ck_assert_uint_eq(lin_samples_take((lin_sample_format)format, bytes, 64, &rest, whole), n);
        for (size_t step = 1; step < 9; step++) {
            size_t made = 0;
            for (size_t at = 0; at < 64; at += step)
                made +=
                    lin_samples_take((lin_sample_format)format, bytes + at, 64 - at < step ? 64 - at : step, &rest, cut + made);
            ck_assert_uint_eq(made, n);
            ck_assert_mem_eq(cut, whole, n * sizeof *cut);
        }
    }
    lin_sample_rest rest = {0};
    ck_assert_uint_eq(lin_samples_take(LIN_SAMPLES_S16, "\x00\x80\xff\x7f", 4, &rest, whole), 2);
    ck_assert_float_eq(whole[0], -1);
    ck_assert_float_eq(whole[1], 32767.0f / 32768);
    const float odd[] = {NAN, INFINITY, -0.25f, 1e30f};
    ck_assert_uint_eq(lin_samples_take(LIN_SAMPLES_F32, odd, sizeof odd, &rest, whole), 4);
    ck_assert_float_eq(whole[0], 0);
    ck_assert_float_eq(whole[1], 0);
    ck_assert_float_eq(whole[2], -0.25f);
    ck_assert_float_eq(whole[3], 8);
}
END_TEST

// All bytes, against libsndfile.
START_TEST(telephones)
{
    unsigned char bytes[256];
    float got[256], want[256];
    for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)i;
    for (int a = 0; a < 2; a++) {
        lin_sample_rest rest = {0};
        SF_INFO about = {.samplerate = 8000, .channels = 1, .format = SF_FORMAT_RAW | (a ? SF_FORMAT_ALAW : SF_FORMAT_ULAW)};
        SNDFILE *file = sf_open(test_file("telephone.raw", bytes, sizeof bytes), SFM_READ, &about);
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(sf_read_float(file, want, 256), 256);
        sf_close(file);
        ck_assert_uint_eq(lin_samples_take(a ? LIN_SAMPLES_ALAW : LIN_SAMPLES_MULAW, bytes, 256, &rest, got), 256);
        ck_assert_int_eq(rest.n, 0);
        ck_assert_mem_eq(got, want, sizeof got);
    }
}
END_TEST

static const char type[] = "multipart/form-data; boundary=\"AaB03x\"";
static const char body[] =
    "preamble\r\n--AaB03x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n"
    "--AaB03x \t\r\ncontent-type: audio/wav\r\nContent-Disposition: form-data; filename=\"a;name=b.wav\"; name=file\r\n"
    "\r\nRI\r\n--AaB03FF\r\n\r\n--AaB03x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n\r\n--AaB03x--\r\n";

START_TEST(forms)
{
    lin_form form;
    ck_assert_int_eq(lin_form_parse(type, body, sizeof body - 1, &form, &failure), LIN_OK);
    ck_assert_int_eq(form.n, 3);
    for (int i = 0; i < 3; i++) {
        const char *name = i == 1 ? "file" : "model";
        ck_assert_uint_eq(form.parts[i].n_name, strlen(name));
        ck_assert_mem_eq(form.parts[i].name, name, strlen(name));
    }
    ck_assert_int_eq(lin_form_is(&form.parts[0], "whisper"), 1);
    ck_assert_int_eq(lin_form_is(&form.parts[2], ""), 1);
    const lin_form_part *file = &form.parts[1];
    ck_assert_uint_eq(file->n, 15);
    ck_assert_mem_eq(file->data, "RI\r\n--AaB03FF\r\n", 15);
    // Any shorter body breaks off, but for the line end behind it.
    for (size_t n = 0; n < sizeof body - 3; n++) {
        char *part = lin_alloc(n, 1); // so that a byte too far is seen
        memcpy(part, body, n);
        ck_assert_msg(lin_form_parse(type, part, n, &form, &failure) == LIN_FORMAT, "%zu bytes", n);
        lin_free(part);
    }
    ck_assert_int_eq(lin_form_parse("text/plain", body, sizeof body - 1, &form, &failure), LIN_FORMAT);
    ck_assert_int_eq(lin_form_parse("multipart/form-data", body, sizeof body - 1, &form, &failure), LIN_FORMAT);
    ck_assert_int_eq(lin_form_parse("multipart/form-data; boundary=", body, sizeof body - 1, &form, &failure), LIN_FORMAT);
    lin_buffer many = {0};
    for (int i = 0; i < LIN_MESSAGE_MOST_PHRASES; i++)
        lin_buffer_text(&many, "--AaB03x\r\nContent-Disposition: form-data; name=\"phrases[]\"\r\n\r\na phrase\r\n");
    lin_buffer_text(&many, body + strlen("preamble\r\n"));
    ck_assert_int_eq(lin_form_parse(type, many.data, many.n, &form, &failure), LIN_OK);
    ck_assert_int_eq(form.n, LIN_MESSAGE_MOST_PHRASES + 3);
    lin_buffer_free(&many);
}
END_TEST

START_TEST(secrets)
{
    static const char list[] = "\xEF\xBB\xBF# tokens\n\n first\nsecond \r\nthird";
    const size_t n = sizeof list - 1;
    ck_assert_int_eq(lin_token_known(list, n, "first", 5), 1);
    ck_assert_int_eq(lin_token_known("\xEF\xBB\xBFzero\n", 8, "zero", 4), 1);
    ck_assert_int_eq(lin_token_known(list, n, "second", 6), 1);
    ck_assert_int_eq(lin_token_known(list, n, "third", 5), 1);
    static const char *const wrong[] = {"",         "sec",        "secon",   "secondx", "seconD",
                                        "# tokens", "thirdthird", "first\n", "tokens",  "s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!lin_token_known(list, n, wrong[i], strlen(wrong[i])), "%s", wrong[i]);
    ck_assert_int_eq(lin_token_known("", 0, "x", 1), 0);
    const char *token;
    ck_assert_uint_eq(lin_token_find("Bearer abc", "access_token=xyz", "", &token), 3);
    ck_assert_str_eq(token, "abc");
    ck_assert_uint_eq(lin_token_find("", "a=b&access_token=xyz&c=d", "", &token), 3);
    ck_assert_int_eq(strncmp(token, "xyz", 3), 0);
    ck_assert_uint_eq(lin_token_find("Basic abc", "not_access_token=xyz", "realtime, x-openai-insecure-api-key.y", &token), 0);
    ck_assert_uint_eq(lin_token_find("", "", "realtime,openai-insecure-api-key.k.1, openai-beta.realtime-v1", &token), 3);
    ck_assert_int_eq(strncmp(token, "k.1", 3), 0);
    ck_assert_uint_eq(lin_token_find("", "", "openai-insecure-api-key.", &token), 0);
    const char *const origins[] = {"https://a.example"};
    static const struct {
        const char *host;
        int allowed;
    } names[] = {{"", 1},           {"localhost", 1},       {"LOCALHOST.:80", 1}, {"127.0.0.1:8090", 1}, {"[::1]:8090", 1},
                 {"own:8090", 1},   {"speech.example", 1},  {"h", 0},             {"localhost.evil", 0}, {"127.0.0.1.evil", 0},
                 {"own.evil:1", 0}, {"speech.example.", 1}, {"1evil", 0},         {"evil:127", 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const hosts[] = {"speech.example"};
        test_require(lin_host_allowed(names[i].host, "own", hosts, 1) == names[i].allowed, "%s", names[i].host);
        ck_assert_int_eq(lin_host_allowed(names[i].host, "own", (const char *const[]){"*"}, 1), 1);
    }
    ck_assert_int_eq(lin_origin_allowed("http://h:1", "h", 1, NULL, 0), 1);
    ck_assert_int_eq(lin_origin_allowed("http://[::1]:1", "[::1]", 1, NULL, 0), 1);
    ck_assert_int_eq(lin_origin_allowed("http://h:1", "h", 0, NULL, 0), 0);
    ck_assert_int_eq(lin_origin_allowed("http://h:1", "h:2", 1, NULL, 0), 0);
    ck_assert_int_eq(lin_origin_allowed("http://h.evil:1", "h", 1, NULL, 0), 0);
    ck_assert_int_eq(lin_origin_allowed("null", "", 1, NULL, 0), 0);
    ck_assert_int_eq(lin_origin_allowed("", "h:1", 0, NULL, 0), 1);
    ck_assert_int_eq(lin_origin_allowed("http://h:1", "h:1", 0, NULL, 0), 1);
    ck_assert_int_eq(lin_origin_allowed("http://h:2", "h:1", 0, NULL, 0), 0);
    ck_assert_int_eq(lin_origin_allowed("null", "h:1", 0, NULL, 0), 0);
    ck_assert_int_eq(lin_origin_allowed("https://a.example", "h:1", 0, origins, 1), 1);
    ck_assert_int_eq(lin_origin_allowed("https://a.example.evil", "h:1", 0, origins, 1), 0);
    ck_assert_int_eq(lin_origin_allowed("https://b.example", "h:1", 0, (const char *const[]){"*"}, 1), 1);
}
END_TEST

// A result of three phones, and of two words with a pause of a second between them.
static void make(lin_result *r, int with_words)
{
    static char text[] = "one\0";
    static lin_result_phone phones[] = {{.label = 1, .confidence = 0.5f, .start_s = 0.1, .end_s = 0.2, .goodness = NAN},
                                        {.label = 2, .confidence = 0.25f, .start_s = 0.2, .end_s = 0.4, .goodness = NAN},
                                        {.label = 3, .confidence = 1, .start_s = 1.4, .end_s = 1.6, .goodness = NAN}};
    static lin_result_word words[] = {
        {.known = 1, .n_phones = 2, .confidence = 0.5f, .start_s = 0.1, .end_s = 0.4},
        {.text = 4, .first_phone = 2, .n_phones = 1, .confidence = 1, .start_s = 1.4, .end_s = 1.6}};
    *r = (lin_result){.id = text, .speaker = text + 4, .channel = 1, .seconds = 2.5, .phones = phones, .n_phones = 3,
                      .has_words = with_words, .words = words, .n_words = with_words ? 2 : 0, .text = text, .text_used = 5};
}

START_TEST(answers)
{
    lin_result r = {0};
    lin_buffer out = {0};
    lin_phones *set;
    OK(lin_phones_create(NULL, &set, &failure));
    lin_writer_options words = {.phones = set};
    make(&r, 1);
    r.phones[2].label = lin_phones_find(set, "AH", 2);
    lin_vosk_put_items(&out, &words, &r);
    ck_assert_str_eq(out.data, "{\"conf\":0.500000,\"end\":0.400,\"start\":0.100,\"word\":\"one\"},"
                               "{\"conf\":1.000000,\"end\":1.600,\"start\":1.400,\"word\":\"[ah]\"}");
    lin_buffer_clear(&out);
    const lin_verbose how = {.language = "en", .text = "one two", .segments = 1, .items = 1};
    ck_assert_int_eq(lin_openai_put_verbose(&out, &words, &r, &how, &failure), LIN_OK);
    ck_assert_str_eq(out.data,
                     "{\"task\":\"transcribe\",\"language\":\"en\",\"duration\":2.500,\"text\":\"one two\",\"words\":["
                     "{\"word\":\"one\",\"start\":0.100,\"end\":0.400},{\"word\":\"[ah]\",\"start\":1.400,\"end\":1.600}],"
                     "\"segments\":["
                     "{\"id\":0,\"seek\":0,\"start\":0.100,\"end\":0.400,\"text\":\"one\",\"tokens\":[],\"temperature\":0.0,"
                     "\"avg_logprob\":-0.6931,\"compression_ratio\":1.0,\"no_speech_prob\":0.0},"
                     "{\"id\":1,\"seek\":0,\"start\":1.400,\"end\":1.600,\"text\":\"[ah]\",\"tokens\":[],\"temperature\":0.0,"
                     "\"avg_logprob\":0.0000,\"compression_ratio\":1.0,\"no_speech_prob\":0.0}]}");
    lin_buffer_clear(&out);
    lin_vosk_put_alternatives(&out, &words, &r, 2, 0);
    ck_assert_str_eq(out.data, "{\"alternatives\":[{\"confidence\":0.750000,\"text\":\"one [ah]\"}]}");
    lin_buffer_clear(&out);
    make(&r, 0);
    r.phones[1].label = lin_phones_find(set, "AE", 2);
    lin_vosk_put_items(&out, &words, &r);
    HAS(out.data, "{\"conf\":0.250000,\"end\":0.400,\"start\":0.200,\"word\":\"AE\"}");
    lin_buffer_clear(&out);
    make(&r, 1);
    r.words[1].first_phone = 1;
    r.words[1].n_phones = 2;
    words.ipa = 1;
    lin_vosk_put_alternatives(&out, &words, &r, 1, 1); // each word is spelled as it is in the text
    HAS(out.data, "\"word\":\"[æʌ]\"}],\"text\":\"one [æʌ]\"");
    lin_buffer_clear(&out);
    lin_openai_put_error(&out, 429, "too \"many\"");
    ck_assert_str_eq(out.data,
                     "{\"error\":{\"message\":\"too \\\"many\\\"\",\"type\":\"rate_limit_error\",\"param\":null,\"code\":null}}");
    lin_buffer_free(&out);
    lin_phones_destroy(set);
}
END_TEST

// A list that would refuse everybody, or one of its clients, is an error; a token that can be guessed is named.
START_TEST(lists_of_tokens)
{
    static const char strong[] = "# a\n\n0123456789abcdef\n", utf16[] = "\xFF\xFE" "a\0b\0\n";
    static const char *const empty[] = {"", "\n", " \t\r\n\n", "# abc\n", "\xEF\xBB\xBF\n"};
    int weak = -1;
    OK(lin_tokens_check("t", strong, sizeof strong - 1, &weak, &failure));
    ck_assert_int_eq(weak, 0);
    OK(lin_tokens_check("t", "# a\n\n0123456789abcde\nx", 22, &weak, &failure));
    ck_assert_int_eq(weak, 3);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        FAILS(lin_tokens_check("t", empty[i], strlen(empty[i]), &weak, &err), LIN_FORMAT, "t has no token");
    FAILS(lin_tokens_check("t", utf16, sizeof utf16 - 1, &weak, &err), LIN_FORMAT, "t:1: no request can hold");
}
END_TEST

START_TEST(behind_proxies)
{
    static const char *const proxies[] = {"127.0.0.1", "10.0.0.2", "::1"};
    static const struct {
        const char *address, *forwarded_for, *forwarded, *client;
    } cases[] = {{"192.0.2.1", "198.51.100.7", "", "192.0.2.1"},
                 {"127.0.0.1", "", "", "127.0.0.1"},
                 {"127.0.0.1", "198.51.100.7", "", "198.51.100.7"},
                 {"::ffff:127.0.0.1", "198.51.100.7", "", "198.51.100.7"},
                 {"::ffff:192.0.2.1", "", "", "192.0.2.1"},
                 {"127.0.0.1", "1.1.1.1, 198.51.100.7 , 10.0.0.2", "", "198.51.100.7"},
                 {"127.0.0.1", "1.1.1.1,198.51.100.7:4711", "for=2.2.2.2", "198.51.100.7"},
                 {"127.0.0.1", "10.0.0.2", "", "10.0.0.2"},
                 {"127.0.0.1", "2001:db8::1", "", "2001:db8::1"},
                 {"::1", "", "for=192.0.2.43, For=\"[2001:db8::1]:4711\";proto=https", "2001:db8::1"},
                 {"::1", "", "by=x;for=192.0.2.60:80;proto=http", "192.0.2.60"},
                 {"::1", "", "proto=http", "::1"},
                 {"127.0.0.1", ",", "", "127.0.0.1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        lin_client_address(cases[i].address, cases[i].forwarded_for, cases[i].forwarded, proxies, 3, out, sizeof out);
        ck_assert_str_eq(out, cases[i].client);
    }
}
END_TEST

TEST_MAIN("serve/messages", TEST(vosk_messages), TEST(own_messages), TEST(samples), TEST(telephones), TEST(forms),
          TEST(secrets), TEST(lists_of_tokens), TEST(answers), TEST(behind_proxies))
