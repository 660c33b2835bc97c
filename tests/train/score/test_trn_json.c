// train/score/trn.c, JSON and maps: linnet's objects and those of other programs, refused and hostile lines.
#include "train/score/trn.h"

#include <cJSON.h>
#include <errno.h>

#include "decoder/writers.h"
#include "tests/train/score/transcripts.h"

static const lin_trn_options any = {0}, words = {.unit = LIN_TRN_WORDS}, exact = {.case_sensitive = 1};

START_TEST(phones_words_and_text)
{
    static const char text[] =
        "{\"id\":\"U1\",\"phones\":[{\"phone\":\"HH\",\"start\":0.1},{\"phone\":\"IY\"}],"
        "\"words\":[{\"word\":\"he\",\"start\":0.1}]}\n"
        "\n"
        "{\"words\":[],\"phones\":[],\"id\":\"u 2\"}\r\n"
        "{\"phones\":[\"A\",\"b\"],\"id\":\"u3\",\"words\":[\"caf\\u00e9\",\"{x}\"]}";
    ck_assert_str_eq(read_back(text, "x.jsonl", any), "u1: hh iy | u 2: | u3: a b");
    ck_assert_str_eq(read_back(text, "x", any), "u1: hh iy | u 2: | u3: a b"); // known by its first line
    ck_assert_str_eq(read_back(text, "x", exact), "U1: HH IY | u 2: | u3: A b");
    ck_assert_str_eq(read_back(text, "x.json", words), "u1: he | u 2: | u3: caf\xC3\xA9 {x}");
    static const char others[] = "{\"id\": \"a\", \"text\": \"the cat\", \"x\": [1, {\"y\": null}]}\n"
                                 "{\"id\": \"b\", \"text\": \"\"}\n"
                                 "  {\"id\": \"c\", \"text\": \" one\\ttwo  \"}  \n";
    ck_assert_str_eq(read_back(others, "x", any), "a: the cat | b: | c: one two");
    ck_assert_str_eq(read_back(others, "x", words), "a: the cat | b: | c: one two");
    // a list takes precedence over the text; an utterance of braces is not JSON
    // Words outside the lexicon have phones and no spelling; they count as the other formats write them.
    const char unknown[] = "{\"id\":\"a\",\"words\":[{\"word\":\"the\",\"known\":true,\"phones\":[\"DH\"]},"
                           "{\"word\":\"\",\"known\":false,\"phones\":[\"HH\",\"ow\"]}]}";
    ck_assert_str_eq(read_back(unknown, "x", words), "a: the [hh_ow]");
    ck_assert_str_eq(read_back("{\"id\":\"a\",\"text\":\"the cat\",\"phones\":[\"DH\"]}", "x", any), "a: dh");
    ck_assert_str_eq(read_back("{\"id\":\"a\",\"text\":\"the cat\",\"phones\":[\"DH\"]}", "x", words), "a: the cat");
    ck_assert_str_eq(read_back("{x} b\n", "x.txt", any), "{x}: b");
}
END_TEST

START_TEST(reads_what_the_writer_writes)
{
    static lin_path_phone phones[] = {{.label = 1, .start = 0, .end = 2}, {.label = 39, .start = 5, .end = 6}};
    lin_phones *set;
    lin_result r = {0};
    lin_buffer out = {0};
    OK(lin_phones_create(NULL, &set, &err));
    OK(lin_result_begin(&r, "one \"two\"", NULL, 1, &err));
    OK(lin_result_add_path(&r, &(lin_path){.phones = phones, .n_phones = 2}, 0.03, NULL, NULL, &err));
    lin_writer_options o = {.phones = set};
    OK(lin_write(lin_writer_find("json"), &r, &o, &out, &err));
    ck_assert_str_eq(read_back(out.data, "x.jsonl", exact), "one \"two\": AA ZH");
    lin_buffer_free(&out);
    lin_result_free(&r);
    lin_phones_destroy(set);
}
END_TEST

START_TEST(maps)
{
    lin_phone_map *map;
    static const char rules[] = "ax ah\nq\n";
    OK(lin_phone_map_parse(rules, sizeof rules - 1, "m", 0, &map, &err));
    lin_trn_options o = {.map = map};
    ck_assert_str_eq(read_back("AX q t (u1)\nq Q ah t zz (u2)\n", "x.trn", o), "u1: ah t | u2: ah t zz ?t ?zz -3");
    ck_assert_str_eq(read_back("u 1 0 1 ax\nu 1 1 1 q\nv 1 0 1 q\n", "x.ctm", o), "u: ah | v: -2");
    ck_assert_str_eq(read_back("{\"id\":\"u\",\"phones\":[\"Q\",\"AX\"]}", "x", o), "u: ah -1");
    ck_assert_str_eq(read_back("u ax q\n", "x.txt", o), "u: ah -1");
    FAIL_EVERY_ALLOCATION(parse("u ax q t\n", 9, "x.txt", o, NULL), (void)0);
    lin_phone_map_destroy(map);
}
END_TEST

START_TEST(bad_objects)
{
#define PARSE(text) parse(text, sizeof(text) - 1, "x.jsonl", any, &err)
    FAILS(PARSE(""), LIN_FORMAT, "no utterance");
    FAILS(PARSE("{\"id\":\"a\",\"text\":\"\"}\n{\"id\":\"b\""), LIN_FORMAT, "x.jsonl:2: not JSON at byte");
    FAILS(PARSE("a b c"), LIN_FORMAT, "x.jsonl:1: not JSON at byte 1 of the line");
    FAILS(PARSE("[]"), LIN_FORMAT, "x.jsonl:1: a line must hold one JSON object");
    FAILS(PARSE("17"), LIN_FORMAT, "one JSON object");
    FAILS(PARSE("{\"id\":\"a\",\"text\":\"\"} {}"), LIN_FORMAT, "something follows the object at byte 22");
    FAILS(PARSE("{\"text\":\"a\"}"), LIN_FORMAT, "has no \"id\"");
    FAILS(PARSE("{\"id\":\"a\"}"), LIN_FORMAT, "neither a list \"phones\" nor a string \"text\"");
    FAILS(PARSE("{\"id\":\"a\",\"words\":[]}"), LIN_FORMAT, "neither a list \"phones\" nor");
    FAILS(PARSE("{\"id\":\"a\",\"phones\":\"AA\"}"), LIN_FORMAT, "neither a list");
    FAILS(PARSE("{\"id\":\"a\",\"text\":3}"), LIN_FORMAT, "neither a list");
    FAILS(PARSE("{\"id\":7,\"text\":\"a\"}"), LIN_FORMAT, "\"id\" is no string");
    FAILS(PARSE("{\"id\":\"\",\"text\":\"a\"}"), LIN_FORMAT, "\"id\" is empty");
    FAILS(PARSE("{\"id\":\"a\\nb\",\"text\":\"a\"}"), LIN_FORMAT, "\"id\" holds a control character: 'a?b'");
    FAILS(PARSE("{\"id\":\"a\",\"text\":\"a\\u0007\"}"), LIN_FORMAT, "\"text\" holds a control character");
    FAILS(PARSE("{\"id\":\"a\",\"phones\":[\"A\",3]}"), LIN_FORMAT, "\"phone\" is no string");
    FAILS(PARSE("{\"id\":\"a\",\"phones\":[{\"word\":\"x\"}]}"), LIN_FORMAT, "\"phone\" is no string");
    FAILS(PARSE("{\"id\":\"a\",\"phones\":[{\"phone\":\"\"}]}"), LIN_FORMAT, "\"phone\" is empty");
    FAILS(PARSE("{\"id\":\"a\",\"phones\":[\"A B\"]}"), LIN_FORMAT, "\"phone\" holds a blank or control character: 'A B'");
    FAILS(PARSE("{\"id\":\"a\",\"text\":\"\"}\n\n{\"id\":\"A\",\"text\":\"\"}"), LIN_FORMAT,
          "x.jsonl:3: utterance 'A' is there twice, first in line 1");
    FAILS(PARSE("{\"id\":\"a\",\"text\":\"\x01\"}"), LIN_FORMAT, "x.jsonl:1: control character 0x01");
}
END_TEST

// NeMo's: the id is the path, with the place of a part; the hypothesis is pred_text where it is there.
START_TEST(manifests)
{
    static const char text[] = "{\"audio_filepath\":\"x/a.wav\",\"duration\":2,\"text\":\"A B\",\"pred_text\":\"A\"}\n"
                               "{\"audio_filepath\":\"x/a.wav\",\"offset\":1.25,\"text\":\"C\",\"pred_text\":\"\"}\n"
                               "{\"id\":\"u\",\"audio_filepath\":\"x/a.wav\",\"text\":\"D\"}\n";
    lin_trn_options o = {.format = LIN_TRN_JSON};
    for (o.is_hypothesis = 0; o.is_hypothesis < 2; o.is_hypothesis++) {
        lin_symbols tokens = {0};
        lin_trn trn;
        OK(lin_trn_parse(text, sizeof text - 1, "m", &o, &tokens, &trn, &err));
        ck_assert_int_eq(trn.n, 3);
        ck_assert_str_eq(lin_symbols_text(&trn.ids, 0), "x/a.wav");
        ck_assert_str_eq(lin_symbols_text(&trn.ids, 1), "x/a.wav-1250");
        ck_assert_str_eq(lin_symbols_text(&trn.ids, 2), "u");
        ck_assert_int_eq(trn.utterances[0].n, o.is_hypothesis ? 1 : 2);
        ck_assert_int_eq(trn.utterances[1].n, o.is_hypothesis ? 0 : 1);
        ck_assert_int_eq(trn.utterances[2].n, 1);
        lin_trn_free(&trn);
        lin_symbols_free(&tokens);
    }
}
END_TEST

START_TEST(hostile_lines)
{
    size_t n = 3 << 20;
    char *line = malloc(17 << 20);
    memset(line, '[', n);
    FAILS(parse(line, n, "x.json", any, &err), LIN_FORMAT, "x.json:1: not JSON");
    memcpy(line, "{\"id\":\"a\",\"text\":", 17);
    FAILS(parse(line, n, "x.json", any, &err), LIN_FORMAT, "not JSON");
    memset(line, ',', 7 << 20);
    memcpy(line, "{\"id\":[1,1", 10);
    FAILS(parse(line, 7 << 20, "x.json", any, &err), LIN_FORMAT, "a line of up to 7340025 values is too long");
    // Long lines are valid: an hour of speech with alternatives.
    memset(line, ' ', 17 << 20);
    memcpy(line, "{\"id\":\"a\",\"text\":\"b\"}", 21);
    OK(parse(line, 17 << 20, "x.json", any, &err));
    free(line);
}
END_TEST

static int fail_after;
static void *failing(size_t n)
{
    if (fail_after-- > 0) return malloc(n);
    errno = ENOMEM;
    return NULL;
}

START_TEST(out_of_memory)
{
    static const char text[] = "{\"id\":\"a\",\"phones\":[\"A\",\"b\"]}\n{\"id\":\"c\",\"text\":\"one two\"}\n";
    FAIL_EVERY_ALLOCATION(parse(text, sizeof text - 1, "x", any, NULL), (void)0);
    cJSON_Hooks hooks = {.malloc_fn = failing, .free_fn = free}; // and those of cJSON
    cJSON_InitHooks(&hooks);
    int k = 0;
    for (lin_status status = LIN_NO_MEMORY; status; k++) {
        fail_after = k;
        status = parse(text, sizeof text - 1, "x", any, NULL);
        ck_assert_msg(status == LIN_OK || status == LIN_NO_MEMORY, "%s after %d allocations", lin_status_name(status), k);
        ck_assert_uint_eq(lin_memory_live(), 0);
    }
    cJSON_InitHooks(NULL);
    ck_assert_int_gt(k, 10);
}
END_TEST

TEST_MAIN("trn_json", TEST(phones_words_and_text), TEST(reads_what_the_writer_writes), TEST(maps), TEST(bad_objects),
          TEST(manifests), TEST(hostile_lines), TEST(out_of_memory))
