// Events of clients of OpenAI's realtime protocol, and base64 against RFC 4648's examples.
#include "base/json.h"
#include "base/memory.h"
#include "serve/serve.h"
#include "tests/lexicon/support.h"

static lin_error failure;

START_TEST(base64)
{
    static const struct {
        const char *text, *bytes;
    } cases[] = {{"", ""},
                 {"Zg==", "f"},
                 {"Zm8=", "fo"},
                 {"Zm9v", "foo"},
                 {"Zm9vYg==", "foob"},
                 {"Zm9vYmE=", "fooba"},
                 {"Zm9vYmFy", "foobar"}};
    unsigned char bytes[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const long n = lin_base64_decode(cases[i].text, strlen(cases[i].text), bytes);
        ck_assert_int_eq(n, (long)strlen(cases[i].bytes));
        ck_assert_mem_eq(bytes, cases[i].bytes, (size_t)n);
    }
    ck_assert_int_eq(lin_base64_decode("+/+/", 4, bytes), 3);
    ck_assert_mem_eq(bytes, "\xfb\xff\xbf", 3);
    static const char *const bad[] = {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9\n", "Zm 9", "Zm9-", "=m9v"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        test_require(lin_base64_decode(bad[i], strlen(bad[i]), bytes) < 0, "%s", bad[i]);
}
END_TEST

static lin_status parse(lin_message *m, const char *text) { return lin_protocol_realtime.parse(text, strlen(text), m, &failure); }

#define INPUT(members) "{\"type\":\"session.update\",\"session\":{\"audio\":{\"input\":{" members "}}}}"

// What is refused changes nothing: the client goes on as before.
START_TEST(refused_updates)
{
    static const char *const bad[] = {
        INPUT("\"format\":{\"type\":\"audio/pcmu\",\"rate\":16000}"),
        INPUT("\"format\":{\"type\":\"audio/pcma\"},\"turn_detection\":{\"prefix_padding_ms\":-1}"),
        INPUT("\"format\":{\"type\":\"mp3\"},\"turn_detection\":{\"type\":\"server_vad\"}"),
        INPUT("\"format\":5"),
        INPUT("\"format\":{\"type\":5,\"rate\":8000}"),
        INPUT("\"turn_detection\":\"server_vad\""),
        INPUT("\"turn_detection\":false"),
        INPUT("\"turn_detection\":{\"prefix_padding_ms\":\"10\"}"),
        INPUT("\"transcription\":\"x\""),
        INPUT("\"transcription\":{\"language\":5}"),
        INPUT("\"format\":{\"type\":\"audio/pcmu\"},\"transcription\":{\"language\":\"de\",\"prompt\":\"x, y\"}"),
        INPUT("\"transcription\":{\"languages\":[\"de\",\"fr\"]}"),
        INPUT("\"transcription\":{\"languages\":\"en\"}"),
        INPUT("\"transcription\":{\"prompt\":5}"),
        INPUT("\"transcription\":{\"keywords\":\"x\"}"),
        "{\"type\":\"session.update\",\"session\":{\"audio\":[]}}",
        "{\"type\":\"session.update\",\"session\":{\"audio\":{\"input\":1}}}",
        "{\"type\":\"session.update\",\"session\":{\"turn_detection\":1}}"};
    lin_message m = lin_message_default(24000);
    m.language = "en";
    OK(parse(&m, INPUT("\"format\":{\"type\":\"audio/pcm\",\"rate\":16000},\"turn_detection\":null,"
                       "\"transcription\":{\"language\":\"en\",\"prompt\":\"Norland\"}")));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        test_require(parse(&m, bad[i]) != LIN_OK, "%s", bad[i]);
        test_require(m.format == LIN_SAMPLES_S16 && m.rate_hz == 16000 && m.manual && m.padding_s == 0.3 && m.n_phrases == 1,
                     "changed by %s", bad[i]);
    }
    OK(parse(&m, INPUT("\"format\":null,\"transcription\":null")));
    ck_assert(m.format == LIN_SAMPLES_S16 && m.rate_hz == 16000 && m.manual && m.n_phrases == 1);
    lin_message_free(&m);
}
END_TEST

START_TEST(events)
{
    lin_message m = lin_message_default(24000);
    OK(parse(&m,
             "{\"type\":\"session.update\",\"session\":{\"type\":\"transcription\",\"audio\":{\"input\":{\"format\":{\"type\":"
             "\"audio/pcm\","
             "\"rate\":16000},\"transcription\":{\"model\":\"x\",\"language\":\"en-US\",\"prompt\":\"Mister Dashwood, GPT-4\","
             "\"keywords\":[\"Norland Park\",1]},\"turn_detection\":null}}}}"));
    ck_assert(m.kind == LIN_MESSAGE_CONFIG && m.rate_hz == 16000 && m.manual && m.n_phrases == 2);
    ck_assert_int_eq(m.advises, 1);
    ck_assert_double_eq(m.padding_s, 0.3);
    ck_assert_mem_eq(m.phrases.data, "mister dashwood\0norland park", 29);
    OK(parse(
        &m,
        "{\"type\":\"transcription_session.update\",\"session\":{\"input_audio_format\":\"pcm16\",\"turn_detection\":{\"type\":"
        "\"server_vad\"}}}"));
    ck_assert(m.rate_hz == 24000 && !m.manual && m.n_phrases == 2 && !m.advises);
    ck_assert_int_eq(m.format, LIN_SAMPLES_S16);
    OK(parse(&m, INPUT("\"format\":{\"type\":\"audio/pcma\",\"rate\":8000}")));
    ck_assert(m.format == LIN_SAMPLES_ALAW && m.rate_hz == 8000);
    m.language = "en"; // one of many
    static const char many[] = INPUT(
        "\"transcription\":{\"languages\":["
        "\"de\",\"fr\",\"es\",\"it\",\"nl\",\"pl\",\"pt\",\"ru\","
        "\"tr\",\"uk\",\"cs\",\"da\",\"fi\",\"el\",\"he\",\"hi\","
        "\"hu\",\"ja\",\"ko\",\"no\",\"ro\",\"sv\",\"en\"]}");
    OK(parse(&m, many));
    OK(parse(&m, INPUT("\"transcription\":{\"language\":\"\",\"languages\":[\"\"]}")));
    OK(parse(&m, "{\"type\":\"input_audio_buffer.append\",\"audio\":\"AAD/fw==\"}"));
    ck_assert(m.kind == LIN_MESSAGE_SOUND && m.n_sound == 4);
    ck_assert_mem_eq(m.sound, "\0\0\xff\x7f", 4);
    OK(parse(&m, "{\"type\":\"input_audio_buffer.append\",\"audio\":\"\"}"));
    ck_assert_uint_eq(m.n_sound, 0);
    OK(parse(&m, "{\"type\":\"input_audio_buffer.commit\",\"event_id\":\"x\"}"));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_RESET);
    OK(parse(&m, "{\"type\":\"input_audio_buffer.clear\"}"));
    ck_assert_int_eq(m.kind, LIN_MESSAGE_CLEAR);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"type\":1}",
        "{\"type\":\"response.create\"}",
        "{\"type\":\"session.update\"}",
        "{\"type\":\"input_audio_buffer.append\"}",
        "{\"type\":\"input_audio_buffer.append\",\"audio\":\"A\"}",
        "{\"type\":\"session.update\",\"session\":{\"type\":\"realtime\"}}",
        "{\"type\":\"session.update\",\"session\":{\"input_audio_format\":\"mp3\"}}",
        "{\"type\":\"session.update\",\"session\":{\"audio\":{\"input\":{\"format\":{\"rate\":1}}}}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) test_require(parse(&m, bad[i]) != LIN_OK, "%s", bad[i]);
    lin_message_free(&m);
}
END_TEST

// Each session has a number of its own, and the name of a language is escaped.
START_TEST(sessions)
{
    char ids[2][64];
    lin_serve server = {.language = "x-\"\\y"};
    for (int i = 0; i < 2; i++) {
        lin_client client = {.serve = &server, .config = lin_message_default(24000)};
        lin_buffer out = {0};
        cJSON *json;
        lin_protocol_find("/v1/realtime", 0)->greet(&client, &out);
        OK(lin_json_parse(out.data, out.n, "the event", 0, &json, &failure));
        const cJSON *session = cJSON_GetObjectItem(json, "session"),
                    *input = cJSON_GetObjectItem(cJSON_GetObjectItem(session, "audio"), "input");
        snprintf(ids[i], sizeof ids[i], "%s", cJSON_GetObjectItem(session, "id")->valuestring);
        ck_assert_str_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(input, "transcription"), "language")->valuestring, "x-\"\\y");
        cJSON_Delete(json);
        lin_buffer_free(&out);
    }
    ck_assert_str_ne(ids[0], ids[1]);
}
END_TEST

// Appends "TYPE MS ITEM " of the events of speech that wait.
static void take_speech(lin_client *c, lin_buffer *out)
{
    for (lin_web_message m; lin_serve_stream_next(c, &m);) {
        cJSON *json;
        OK(lin_json_parse(m.data, m.n, "the event", 0, &json, &failure));
        const char *type = cJSON_GetObjectItem(json, "type")->valuestring, *speech = strstr(type, ".speech_");
        const cJSON *ms = cJSON_GetObjectItem(json, "audio_start_ms"), *item = cJSON_GetObjectItem(json, "item_id");
        if (!ms) ms = cJSON_GetObjectItem(json, "audio_end_ms");
        if (speech) lin_buffer_format(out, "%s %d %s ", speech + 8, ms->valueint, item->valuestring);
        cJSON_Delete(json);
    }
}

// What was heard at 1 s is taken back at 2 s; the item is said at 5 s.
START_TEST(speech_that_is_taken_back)
{
    static const lin_protocol *const protocol = &lin_protocol_realtime;
    lin_serve server = {.language = "en"};
    lin_client client = {.serve = &server, .protocol = protocol, .config = lin_message_default(24000)};
    lin_buffer got = {0};
    const lin_result none = {0};
    lin_result_phone phone = {.label = 1};
    lin_phones *set;
    OK(lin_phones_create(NULL, &set, &failure));
    const lin_result one = {.phones = &phone, .n_phones = 1};
    lin_session_view v = {.utterance = 1, .settled = &none, .provisional = &one, .start_s = 1, .processed_s = 1.5};
    client.out.client = &client;
    server.live.words = (lin_writer_options){.phones = set};
    pthread_mutex_init(&client.out.lock, NULL);
    lin_settling_begin(&client.out.settling, &server.live.words);
    protocol->show(&client.out, &v);
    v.provisional = &none;
    v.processed_s = 2;
    protocol->show(&client.out, &v);
    protocol->show(&client.out, &v); // nothing new
    v.settled = &one;
    v.start_s = 5;
    v.processed_s = 6;
    protocol->show(&client.out, &v);
    v.end = LINNET_AFTER;
    protocol->show(&client.out, &v);
    take_speech(&client, &got);
    ck_assert_str_eq(got.data, "started 700 item_1 stopped 2000 item_1 started 4700 item_1 stopped 6000 item_1 ");
    lin_buffer_free(&got);
    lin_buffer_free(&client.out.waiting);
    lin_buffer_free(&client.out.sending);
    lin_settling_free(&client.out.settling);
    pthread_mutex_destroy(&client.out.lock);
    lin_phones_destroy(set);
}
END_TEST

TEST_MAIN("serve/realtime", TEST(speech_that_is_taken_back), TEST(base64), TEST(events), TEST(refused_updates), TEST(sessions))
