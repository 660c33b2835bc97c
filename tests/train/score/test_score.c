// train/score/edit.c, trn.c, score.c: against sclite's counts and a brute-force search; readers of three formats; hostile files.
//
//   test_score [FOLDER]     with a FOLDER that tests/golden/score.py made only its counts are compared
#include "train/score/score.h"

#include <cJSON.h>

#include "train/score/edit.h"
#include "train/score/score_report.h"
#include "tests/train/score/transcripts.h"

START_TEST(counts_are_sclites)
{
    ck_assert_int_ge(compare_with_sclite("score_ref.trn", "score_hyp.trn", "score_counts.txt"), 100);
}
END_TEST

START_TEST(counts_of_real_output_are_sclites)
{
    ck_assert_int_ge(compare_with_sclite("score_real_ref.trn", "score_real_hyp.trn", "score_real_counts.txt"), 20);
}
END_TEST

// The smallest weight, by exhaustive search.
static int least(const int *r, int n, const int *h, int m)
{
    if (!n || !m) return 3 * (n + m);
    int match = least(r + 1, n - 1, h + 1, m - 1) + (*r == *h ? 0 : 4);
    int del = 3 + least(r + 1, n - 1, h, m), ins = 3 + least(r, n, h + 1, m - 1);
    int best = match < del ? match : del;
    return best < ins ? best : ins;
}

START_TEST(edit_distance_is_least)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        int ref[6], hyp[6], n = (int)lin_random_below(seed, 0, 7), m = (int)lin_random_below(seed, 1, 7), n_steps;
        uint32_t alphabet = 1 + lin_random_below(seed, 2, 3);
        for (int i = 0; i < 6; i++) {
            ref[i] = (int)lin_random_below(seed, (uint64_t)i + 3, alphabet);
            hyp[i] = (int)lin_random_below(seed, (uint64_t)i + 9, alphabet);
        }
        lin_edit_counts c;
        lin_edit_pair steps[12];
        OK(lin_edit_distance(ref, n, hyp, m, &c, &err));
        ck_assert_int_eq(4 * c.sub + 3 * c.del + 3 * c.ins, least(ref, n, hyp, m));
        ck_assert_int_eq(c.correct + c.sub + c.del, n);
        ck_assert_int_eq(c.correct + c.sub + c.ins, m);
        OK(lin_edit_align(ref, n, hyp, m, 0, steps, &n_steps, &err)); // the same choices, and every token once
        int i = 0, j = 0;
        for (int k = 0; k < n_steps; k++) {
            ck_assert(steps[k].ref >= 0 || steps[k].hyp >= 0);
            if (steps[k].ref >= 0) ck_assert_int_eq(steps[k].ref, ref[i++]);
            if (steps[k].hyp >= 0) ck_assert_int_eq(steps[k].hyp, hyp[j++]);
            if (steps[k].ref < 0) c.ins--;
            else if (steps[k].hyp < 0) c.del--;
            else if (!steps[k].is_right) c.sub--;
        }
        ck_assert(i == n && j == m && !c.sub && !c.del && !c.ins);
    }
}
END_TEST

START_TEST(long_sequences)
{
    int *a = malloc(5000 * sizeof *a), *b = malloc(5000 * sizeof *b);
    lin_edit_counts c;
    for (int i = 0; i < 5000; i++) {
        a[i] = (int)lin_random_below(1, (uint64_t)i, 39);
        b[i] = i < 10 ? 99 : a[i - 10];
    }
    OK(lin_edit_distance(a, 5000, b, 5000, &c, &err));
    ck_assert(c.correct == 4990 && c.sub == 0 && c.del == 10 && c.ins == 10);
    OK(lin_edit_distance(a, 0, b, 5000, &c, &err));
    ck_assert(c.ins == 5000 && !c.sub && !c.del);
    FAIL_EVERY_ALLOCATION(lin_edit_distance(a, 3, b, 5000, &c, NULL), (void)0);
    lin_edit_pair steps[6];
    int n;
    FAIL_EVERY_ALLOCATION(lin_edit_align(a, 3, b, 3, 0, steps, &n, NULL), (void)0);
    FAILS(lin_edit_distance(a, -1, b, 2, &c, &err), LIN_INVALID, "-1");
    FAILS(lin_edit_align(a, 300000, b, 300000, 0, steps, &n, &err), LIN_INVALID, "too many");
    free(a);
    free(b);
}
END_TEST

// The steps are the same for every block size.
START_TEST(alignment_in_blocks)
{
    enum { MOST = 40 };
    for (uint64_t seed = 0; seed < 2000; seed++) {
        int a[MOST], b[MOST], n_want, n_got;
        int n = (int)lin_random_below(seed, 0, MOST + 1), m = (int)lin_random_below(seed, 1, MOST + 1);
        uint32_t alphabet = 1 + lin_random_below(seed, 2, 5);
        lin_edit_pair want[2 * MOST], got[2 * MOST];
        for (int i = 0; i < MOST; i++) {
            a[i] = (int)lin_random_below(seed, (uint64_t)i + 100, alphabet);
            b[i] = (int)lin_random_below(seed, (uint64_t)i + 200, alphabet);
        }
        OK(lin_edit_align(a, n, b, m, 0, want, &n_want, &err));
        size_t bytes = lin_random_below(seed, 3, MOST * MOST);
        OK(lin_edit_align(a, n, b, m, bytes + 1, got, &n_got, &err));
        test_require(n_want == n_got && !memcmp(want, got, (size_t)n_want * sizeof *want), "%d and %d tokens in %zu bytes", n, m,
                     bytes);
    }
    int a[3] = {1, 2, 3}, n;
    lin_edit_pair steps[6];
    FAIL_EVERY_ALLOCATION(lin_edit_align(a, 3, a, 3, 1, steps, &n, NULL), (void)0);
}
END_TEST

START_TEST(three_formats)
{
    lin_trn_options any = {0}, exact = {.case_sensitive = 1}, kaldi = {.format = LIN_TRN_KALDI};
    ck_assert_str_eq(read_back(";; comment\n\nAA b (S1-a)\r\n(s1-b)\n c\t(x) (s1-c) \n", "x.trn", any),
                     "s1-a: aa b | s1-b: | s1-c: c ? x");
    ck_assert_str_eq(read_back("AA b (S1-a)", "x", exact), "S1-a: AA b");
    ck_assert_str_eq(read_back("u1 AA B\nu2\n\n u3 @ {x} b*\n", "x.txt", any), "u1: aa b | u2: | u3: @ {x} b*");
    ck_assert_str_eq(read_back("u1 1 2 3 (4)\n", "x", kaldi), "u1: 1 2 3 (4)");
    ck_assert_str_eq(read_back(";; c\nu2 A 0.5 .1 two 0.9\nu1 A 3 0 x\nu2 A 0.25 .1 one\nu2 A 0.5 0 three\n", "x", any),
                     "u2: one two three | u1: x");
    ck_assert_str_eq(read_back("", "x.ctm", any), "");
    ck_assert_str_eq(read_back("{ a / (b) @/ {c d/e*} /} (f) a/b {a} (u)", "x.trn", any),
                     "u: { a / ? b @ / { c d / e } } ? f a/b { a }");
    ck_assert_str_eq(read_back("u 1 0 1 z*\nu 1 * * <alt_begin>\nu 1 2 1 b\nu 1 * * <ALT>\nu 1 1 1 c\nu 1 2 1 @\nu 1 * * <ALT>\n"
                               "u 1 * * <ALT_END>\nu 1 1.5 1 (y)\n", "x.ctm", any), "u: z ? y { b / c @ / @ }");
    ck_assert_str_eq(read_back(";; LABEL\nf A Ann 0 1 <o> x {y/z}\nf A Ben 1 2 ignore_time_segment_in_scoring\nf A ann 2 3\n",
                               "x.stm", any),
                     "ann-000: x { y / z } | ann-001:");
    ck_assert_str_eq(read_back("f 1 s 0 1 <o,f> a\n", "x", any), "s-000: a"); // recognised by its label
    ck_assert_str_eq(read_back("f 1 s 0 1 a\n", "x", any), "f: 1 s 0 1 a");
}
END_TEST

// Apostrophes, hyphens and blanks of typography; ids and names of phones keep them.
START_TEST(typography)
{
    lin_phones *phones;
    OK(lin_phones_create(NULL, &phones, &err));
    const lin_trn_options any = {0}, exact = {.case_sensitive = 1}, ipa = {.phones = phones};
    ck_assert_str_eq(read_back("l’a Don’t\u00a0x\u202fy ‘go’ well‐known e‑mail – é\n", "x.txt", any),
                     "l’a: don't x y 'go' well-known e-mail – é");
    ck_assert_str_eq(read_back("{ Don’t\u00a0x / a } (it’s) (u)", "x.trn", exact), "u: { Don't x / a } ? it's");
    ck_assert_str_eq(read_back("u 1 0 1 it’s\n", "x.ctm", any), "u: it's");
    ck_assert_str_eq(read_back("{\"id\": \"u\", \"text\": \"it\\u2019s\\u00a0so\"}", "x.json", any), "u: it's so");
    ck_assert_str_eq(read_back("u k’ a\n", "x.txt", ipa), "u: k’ aa");
    lin_phones_destroy(phones);
}
END_TEST

START_TEST(normalized)
{
    lin_written *written;
    OK(lin_written_load("share/linnet/en/numbers.txt", &written, &err));
    const lin_trn_options plain = {.normalize = 1, .unit = LIN_TRN_WORDS},
                          how = {.normalize = 1, .unit = LIN_TRN_WORDS, .written = written};
    static const char *const lines[][3] = {
        {"“Well-known,” he said: ‘Don’t!’ — Café; AT&T… (u)", "x.trn", "well known he said don't café at&t"},
        {"It cost $5 million (20%) [laughs] 2nd (u)", "x.trn", "it cost five million dollars ? twenty ? percent second"},
        {"{ 5 km / Mr. } (U.S.) dogs' (u)", "x.trn", "{ five km / mister } ? u ? s dogs"},
        {"u 2nd $5 million ^,x [hh_ah] “…” 1.05\n", "x.txt",
         "second five million dollars ^,x [hh_ah] { one point zero five / one point five / point zero five / one point oh five "
         "/ point oh five }"},
        {"u 1 0 1 Mr.\nu 1 1 1 2nd\nu 1 2 1 …\n", "x.ctm", "mister second"},
        {"u 1 * * <ALT_BEGIN>\nu 1 0 1 20\nu 1 * * <ALT>\nu 1 0 1 A-B\nu 1 * * <ALT_END>\n", "x.ctm", "{ twenty / a b }"},
        {"{\"id\": \"u\", \"text\": \"Mr. X, 2nd\"}", "x.json", "mister x second"},
        {"{\"id\": \"u\", \"words\": [\"E-mail,\", {\"word\": \"\", \"known\": false, \"phones\": [\"AH\", \"N\"]}]}", "x.json",
         "e mail [ah_n]"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char want[400];
        const char *got = read_back(lines[i][0], lines[i][1], how);
        snprintf(want, sizeof want, "u: %s", lines[i][2]);
        ck_assert_str_eq(got, want);
    }
    ck_assert_str_eq(read_back("Mr. X, 21 ^ (u)", "x.trn", plain), "u: mr x 21 ^");
    static const char some[] = "2nd ‘x’ ^ $5m { 5 } (y) (u)";
    FAIL_EVERY_ALLOCATION(parse(some, sizeof some - 1, "x.trn", how, NULL), (void)0);
    lin_written_destroy(written);
}
END_TEST

START_TEST(bad_files)
{
    lin_trn_options any = {0};
#define PARSE(text, name) parse(text, sizeof(text) - 1, name, any, &err)
    FAILS(PARSE("", "x.trn"), LIN_FORMAT, "no utterance");
    FAILS(PARSE("\n;; c\n", "x"), LIN_FORMAT, "no utterance");
    FAILS(PARSE("a b\n", "x.trn"), LIN_FORMAT, "x.trn:1: no utterance id");
    FAILS(PARSE("a b ()\n", "x.trn"), LIN_FORMAT, "no utterance id");
    FAILS(PARSE("a b )(\n", "x.trn"), LIN_FORMAT, "no utterance id");
    FAILS(PARSE("a b (u\n", "x.trn"), LIN_FORMAT, "no utterance id");
    FAILS(PARSE("a (u-1) b\n", "x.trn"), LIN_FORMAT, "behind the utterance id: 'b'");
    FAILS(PARSE("a (u-1)\nb (U-1)\n", "x.trn"), LIN_FORMAT, "x.trn:2: utterance 'U-1' is there twice, first in line 1");
    FAILS(PARSE("a\x02 (u-1)\n", "x.trn"), LIN_FORMAT, "x.trn:1: control character 0x02 at byte 2");
    FAILS(PARSE("a\0 (u-1)\n", "x.trn"), LIN_FORMAT, "x.trn is not a text (byte 2 is 0)");
    FAILS(PARSE("a\fb (u-1)\n", "x.trn"), LIN_FORMAT, "control character 0x0c");
    FAILS(PARSE("{ a / b c (u-1)\n", "x.trn"), LIN_FORMAT, "x.trn:1: a closing brace is missing");
    FAILS(PARSE("a } c (u-1)\n", "x.trn"), LIN_FORMAT, "'}': a brace begins or ends");
    FAILS(PARSE("a{b } (u-1)\n", "x.trn"), LIN_FORMAT, "'a{b'");
    FAILS(PARSE("a { / } (u-1)\n", "x.trn"), LIN_FORMAT, "nothing between the braces");
    FAILS(PARSE("{{{{{{{{{{{{{{{{{ a }}}}}}}}}}}}}}}}} (u-1)\n", "x.trn"), LIN_FORMAT, "too many braces");
    FAILS(PARSE("a;b (u-1)\n", "x.trn"), LIN_UNSUPPORTED, "'a;b'");
    FAILS(PARSE("a\\b (u-1)\n", "x.trn"), LIN_UNSUPPORTED, "inside words");
    FAILS(PARSE("u 1 0 1\n", "x.ctm"), LIN_FORMAT, "5 or 6 fields");
    FAILS(PARSE("u 1 0 1 a 1 1\n", "x.ctm"), LIN_FORMAT, "7 or more");
    FAILS(PARSE("u 1 -1 1 a\n", "x.ctm"), LIN_FORMAT, "from 0 on: '-1 1'");
    FAILS(PARSE("u 1 0 nan a\n", "x.ctm"), LIN_FORMAT, "must be numbers");
    FAILS(PARSE("u 1 0 1 a\nu 2 1 1 a\n", "x.ctm"), LIN_FORMAT, "two channels");
    FAILS(PARSE("u 1 * * a\n", "x.ctm"), LIN_FORMAT, "must be numbers");
    FAILS(PARSE("u 1 * * <ALT_BEGIN>\n", "x.ctm"), LIN_FORMAT, "has no <ALT_END>");
    FAILS(PARSE("u 1 * * <ALT_BEGIN>\nu 1 * * <ALT_BEGIN>\n", "x.ctm"), LIN_FORMAT, "x.ctm:2: <ALT_BEGIN> within");
    FAILS(PARSE("u 1 * * <ALT>\n", "x.ctm"), LIN_FORMAT, "no <ALT_BEGIN>");
    FAILS(PARSE("u 1 * * <ALT_BEGIN>\nv 1 0 1 a\n", "x.ctm"), LIN_FORMAT, "two utterances");
    FAILS(PARSE("u 1 * * <ALT_BEGIN>\nv 1 * * <ALT_END>\n", "x.ctm"), LIN_FORMAT, "two utterances");
    FAILS(PARSE("f 1 s 0\n", "x.stm"), LIN_FORMAT, "x.stm:1: an STM line has");
    FAILS(PARSE("f 1 s 0 x a\n", "x.stm"), LIN_FORMAT, "'0 x'");
    FAILS(PARSE("f 1 s 2 1 a\n", "x.stm"), LIN_FORMAT, "in this order: '2 1'");
    FAILS(PARSE(";; c\n", "x.stm"), LIN_FORMAT, "no utterance");
}
END_TEST

START_TEST(long_lines)
{
    size_t n = 1 << 20;
    char *line = malloc(n);
    memset(line, 'a', n);
    FAILS(parse(line, n, "x.trn", (lin_trn_options){0}, &err), LIN_FORMAT, "no utterance id in parentheses at the end of 'aaa");
    memcpy(line + n - 4, " (u)", 4);
    OK(parse(line, n, "x.trn", (lin_trn_options){0}, &err)); // a long token is a token
    for (size_t i = 0; i + 4 < n; i += 2) memcpy(line + i, "a ", 2);
    OK(parse(line, n, "x.trn", (lin_trn_options){0}, &err));
    free(line);
}
END_TEST

START_TEST(speakers)
{
    static const char *const cases[][2] = {{"ab-c_d", "ab"}, {"ab_c-d", "ab_c"}, {"ab_c_d", "ab"}, {"abc", "abc"},
                                           {"-x", "-x"},     {"", ""},           {"a-", "a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(lin_trn_speaker(cases[i][0], strlen(cases[i][0])), strlen(cases[i][1]));
    }
}
END_TEST

static lin_status score(const char *ref, const char *hyp, const char *hyp_name, lin_score **s, lin_error *err)
{
    return lin_score_texts(ref, strlen(ref), "r.trn", hyp, strlen(hyp), hyp_name, NULL, s, err);
}

START_TEST(utterances_must_be_the_same)
{
    lin_score *s;
    FAILS(score("a (u-1)\nb (u-2)\nc (u-3)\n", "a (u-1)\n", "h.trn", &s, &err), LIN_MISMATCH,
          "hypothesis h.trn lacks 2 (u-2, u-3)");
    FAILS(score("a (u-1)\n", "a (u-1)\nb (u-2)\n", "h.trn", &s, &err), LIN_MISMATCH, "reference r.trn lacks 1 (u-2)");
    FAILS(score("a (u-1)\n", "a (u-3)\n", "h.trn", &s, &err), LIN_MISMATCH, "h.trn lacks 1 (u-1), reference r.trn lacks 1 (u-3)");
    FAILS(score("", "a (u-3)\n", "h.trn", &s, &err), LIN_FORMAT, "r.trn: the file has no utterance");
    char many[12000] = "";
    for (int i = 0; i < 500; i++) sprintf(many + strlen(many), "a (u-%d)\n", i);
    FAILS(score(many, "a (u-1)\n", "h.trn", &s, &err), LIN_MISMATCH, "lacks 499 (u-0, u-2, u-3,");
    FAILS(score(many, "a (u-1)\n", "h.trn", &s, &err), LIN_MISMATCH, ", ...)");
    memset(many, 'u', 5000);
    memcpy(many, "a (", 3);
    memcpy(many + 5000, ")\n", 3);
    FAILS(score(many, "a (u-1)\n", "h.trn", &s, &err), LIN_MISMATCH, "lacks 1 (");
    // CTM has no line for an empty result
    OK(score("a (u-1)\nb c (u-2)\n", "u-1 1 0 1 a\n", "h.ctm", &s, &err));
    ck_assert_int_eq(s->n_without_line, 1);
    ck_assert_int_eq(s->total.del, 2);
    lin_score_destroy(s);
    FAILS(score("a (u-1)\n", "u-2 1 0 1 a\n", "h.ctm", &s, &err), LIN_MISMATCH, "r.trn lacks 1 (u-2)");
}
END_TEST

static const char some_ref[] = "a b c d (s1-1)\na a (s2-1)\n(s1-2)\nx y (s2-2)\n";
static const char some_hyp[] = "s1-1 a x c d e\ns1-2\ns2-1 a\ns2-2 x y\n";

START_TEST(reports)
{
    lin_score *s;
    lin_buffer out = {0};
    OK(score(some_ref, some_hyp, "h", &s, &err));
    lin_score_counts c = s->total;
    ck_assert(c.utterances == 4 && c.wrong == 2 && c.n_ref == 8 && c.correct == 6 && c.sub == 1 && c.del == 1 && c.ins == 1);
    ck_assert(fabs(lin_score_rate(&c) - 0.375) < 1e-12);
    lin_score_report r = {.score = s, .measure = "PER"};
    OK(lin_score_text(&r, &out, &err));
    ck_assert_str_eq(out.data,
                     "speaker                      utts   tokens   % corr    % sub    % del    % ins    % PER   % utts\n"
                     "s1                              2        4    75.00    25.00     0.00    25.00    50.00    50.00\n"
                     "s2                              2        4    75.00     0.00    25.00     0.00    25.00    50.00\n"
                     "all                             4        8    75.00    12.50    12.50    12.50    37.50    50.00\n\n"
                     "PER 37.50 %: 1 substitutions, 1 deletions, 1 insertions in 8 tokens of 4 utterances\n");
    lin_buffer_clear(&out);
    r.utterances = 1;
    OK(lin_score_json(&r, &out, &err));
    cJSON *json = cJSON_Parse(out.data);
    ck_assert_msg(json != NULL, "%s", out.data);
    ck_assert_int_eq(cJSON_GetObjectItem(json, "tokens")->valueint, 8);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "speakers")), 2);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "utterances_by_id")), 4);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "confusions")), 3);
    ck_assert(fabs(cJSON_GetObjectItem(json, "rate")->valuedouble - 0.375) < 1e-9);
    cJSON_Delete(json);
    lin_buffer_free(&out);
    lin_score_destroy(s);
    lin_score_destroy(NULL);
    // no tokens in the reference: errors, but no rate, as sclite's UNDEF
    OK(score("(u-1)\n", "a (u-1)\n", "h", &s, &err));
    c = s->total;
    ck_assert(isnan(lin_score_rate(&c)) && c.ins == 1 && c.wrong == 1);
    r = (lin_score_report){.score = s, .measure = "WER"};
    OK(lin_score_text(&r, &out, &err));
    ck_assert_str_eq(out.data,
                     "speaker                      utts   tokens   % corr    % sub    % del    % ins    % WER   % utts\n"
                     "u                               1        0        -        -        -        -        -   100.00\n"
                     "all                             1        0        -        -        -        -        -   100.00\n\n"
                     "WER - %: 0 substitutions, 0 deletions, 1 insertions in 0 tokens of 1 utterances\n");
    lin_buffer_clear(&out);
    OK(lin_score_json(&r, &out, &err));
    ck_assert_ptr_nonnull(strstr(out.data, "\"insertions\":1,\"rate\":null"));
    lin_buffer_clear(&out);
    OK(lin_score_html(&r, &out, &err));
    ck_assert_ptr_nonnull(strstr(out.data, "<h1>WER - %</h1>"));
    ck_assert_ptr_nonnull(strstr(out.data, "style=\"width:0.00%\""));
    lin_buffer_free(&out);
    lin_score_destroy(s);
}
END_TEST

START_TEST(confusions_are_sorted)
{
    lin_score *s;
    OK(score("a b a b c (u-1)\n", "x b x b (u-1)\n", "h", &s, &err));
    const lin_score_confusion *c = s->confusions;
    ck_assert_int_eq((int)s->n_confusions, 2);
    ck_assert_str_eq(lin_score_token(s, c[0].ref), "a");
    ck_assert_str_eq(lin_score_token(s, c[0].hyp), "x");
    ck_assert_int_eq(c[0].count, 2);
    ck_assert_str_eq(lin_score_token(s, c[1].ref), "c");
    ck_assert_int_eq(c[1].hyp, -1);
    lin_score_destroy(s);
}
END_TEST

// Speakers from a table, in the order of the reference; a folded id finds its line.
START_TEST(speakers_from_a_table)
{
    static const char two[] = "A-1 a b\na-2 c\nb-1 d\n", hyps[] = "a-1 a\na-2 x\nb-1 d\n";
    lin_score *s;
    lin_score_counts c;
    const char *path = test_path("utt2spk");
    lin_score_options o = {.utt2spk_path = path};
#define TABLE(text) test_write_file(path, text, sizeof(text) - 1)
#define SCORE(err) lin_score_texts(two, sizeof two - 1, "r", hyps, sizeof hyps - 1, "h", &o, &s, err)
    TABLE("b-1 Zoe\nA-1 tom\na-2 zoe\nc-9 else\n");
    OK(SCORE(&err));
    ck_assert_int_eq(s->speakers.n, 2);
    ck_assert_str_eq(lin_score_speaker(s, 0), "tom");
    c = s->by_speaker[0];
    ck_assert(c.n_ref == 2 && c.del == 1);
    ck_assert_str_eq(lin_score_speaker(s, 1), "zoe");
    c = s->by_speaker[1];
    ck_assert(c.n_ref == 2 && c.sub == 1 && c.utterances == 2);
    ck_assert(s->speaker_of[0] == 0 && s->speaker_of[1] == 1 && s->speaker_of[2] == 1);
    lin_score_destroy(s);
    TABLE("b-1 zoe\nA-1 tom\n");
    FAILS(SCORE(&err), LIN_MISMATCH, "utt2spk has no line for utterance 'a-2'");
    TABLE("b-1 zoe\nA-1 tom\na-2 x y\n");
    FAILS(SCORE(&err), LIN_FORMAT, "utt2spk:3: a line holds an utterance and its speaker, here are 3 fields");
    TABLE("b-1\n");
    FAILS(SCORE(&err), LIN_FORMAT, "utt2spk:1: a line holds an utterance and its speaker, here are 1 fields");
    o.utt2spk_path = "/nowhere/utt2spk";
    FAILS(SCORE(&err), LIN_IO, "/nowhere/utt2spk");
    TABLE("b-1 Zoe\nA-1 tom\na-2 zoe\n");
    o.utt2spk_path = path;
    FAIL_EVERY_ALLOCATION(SCORE(NULL), lin_score_destroy(s));
}
END_TEST

// Counts for each token, and the pairs it was aligned in.
START_TEST(tokens_and_pairs)
{
    lin_score *s;
    lin_score_token_counts c;
    int n;
    OK(score("a b a c (u-1)\n(u-2)\nb (u-3)\n", "a x a (u-1)\na (u-2)\n(u-3)\n", "h", &s, &err));
    const lin_edit_pair *p = lin_score_alignment(s, 0, &n);
    ck_assert_int_eq(n, 4);
    ck_assert(p[0].ref == p[0].hyp && p[1].ref >= 0 && p[1].hyp >= 0 && p[1].ref != p[1].hyp && p[3].hyp == -1);
    p = lin_score_alignment(s, 1, &n);
    ck_assert(n == 1 && p[0].ref == -1 && !strcmp(lin_score_token(s, p[0].hyp), "a"));
    ck_assert_int_eq(s->tokens.n, 4);
    ck_assert_str_eq(lin_score_token(s, 0), "a");
    c = s->by_token[0];
    ck_assert(c.n_ref == 2 && c.correct == 2 && c.sub == 0 && c.del == 0 && c.ins == 1 && c.put == 0);
    ck_assert_str_eq(lin_score_token(s, 1), "b");
    c = s->by_token[1];
    ck_assert(c.n_ref == 2 && c.correct == 0 && c.sub == 1 && c.del == 1 && c.ins == 0 && c.put == 0);
    ck_assert_str_eq(lin_score_token(s, 3), "x");
    c = s->by_token[3];
    ck_assert(c.n_ref == 0 && c.ins == 0 && c.put == 1);
    lin_score_destroy(s);
}
END_TEST

START_TEST(out_of_memory)
{
    lin_score *s;
    static const char ctm[] = "s1-1 1 0 1 a\ns2-1 1 0 1 b\n";
    FAIL_EVERY_ALLOCATION(score(some_ref, some_hyp, "h", &s, NULL), lin_score_destroy(s));
    FAIL_EVERY_ALLOCATION(score(some_ref, ctm, "h.ctm", &s, NULL), lin_score_destroy(s));
    const char *ref = test_path("ref.trn");
    const char *hyp = test_path("hyp.txt");
    FAILS(lin_score_files(ref, hyp, NULL, &s, &err), LIN_IO, "ref.trn: No such file");
    test_write_file(ref, some_ref, sizeof some_ref - 1);
    FAILS(lin_score_files(ref, hyp, NULL, &s, &err), LIN_IO, "hyp.txt: No such file");
    test_write_file(hyp, some_hyp, sizeof some_hyp - 1);
    FAIL_EVERY_ALLOCATION(lin_score_files(ref, hyp, NULL, &s, NULL), lin_score_destroy(s));
}
END_TEST

int main(int argc, char **argv)
{
    const test_entry tests[] = {TEST(counts_are_sclites), TEST(counts_of_real_output_are_sclites), TEST(edit_distance_is_least),
                                TEST(long_sequences), TEST(alignment_in_blocks), TEST(three_formats), TEST(typography),
                                TEST(normalized), TEST(bad_files), TEST(long_lines), TEST(speakers),
                                TEST(utterances_must_be_the_same), TEST(reports), TEST(confusions_are_sorted),
                                TEST(speakers_from_a_table), TEST(tokens_and_pairs), TEST(out_of_memory)};
    if (argc > 1) golden_folder = argv[1];
    return test_all("score", NULL, NULL, NULL, NULL, tests, argc > 1 ? 2 : sizeof tests / sizeof *tests);
}
