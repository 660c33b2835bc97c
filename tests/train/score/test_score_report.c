// train/score/score_report.c, score_json.c, score_html.c, score_compare.c: the reports of a score,
// against sclite's printouts and sc_stats' test, and by parsing them again.
//
//   test_score_report [FOLDER]     FOLDER (default tests/golden) holds what tests/golden/score.py makes
#include "train/score/score_report.h"

#include <cJSON.h>

#include "base/textfile.h"
#include "tests/train/score/transcripts.h"

static lin_score *s, *other;
static lin_score_intervals v;
static lin_buffer out;

static void drop(void)
{
    lin_score_destroy(s);
    lin_score_destroy(other);
    lin_score_intervals_free(&v);
    lin_buffer_free(&out);
}

static lin_score *score(const char *ref, const char *hyp, const lin_score_options *o)
{
    lin_score *made;
    OK(lin_score_texts(ref, strlen(ref), "r.txt", hyp, strlen(hyp), "h.txt", o, &made, &err));
    return made;
}

static const lin_bootstrap_options draws = {.resamples = 200, .seed = 1, .random = lin_random_below};

static const char some_ref[] = "s1-1 a b c d\ns2-1 a a\ns1-2\ns2-2 x y\ns3-1 a b c\n";
static const char some_hyp[] = "s1-1 a x c d e\ns1-2\ns2-1 a\ns2-2 x y\ns3-1 b a c\n";

START_TEST(alignments_are_sclites)
{
    char *text;
    size_t n;
    int checked = 0;
    OK(lin_score_files(golden_path("score_ref.trn"), golden_path("score_hyp.trn"), NULL, &s, &err));
    OK(lin_text_read(golden_path("score_align.txt"), &text, &n, &err));
    lin_score_report r = {.score = s, .measure = "PER"};
    for (char *block = text; *block; checked++) { // each ends with an empty line
        char id[200], *end = strstr(block, "\n\n") + 2;
        ck_assert_int_eq(sscanf(block, "id: (%199[^)])", id), 1);
        int u = 0;
        while (strcmp(lin_score_utterance(s, u), id)) u++;
        lin_buffer_clear(&out);
        lin_score_align(&r, u, &out);
        ck_assert_msg(out.n == (size_t)(end - block) && !memcmp(out.data, block, out.n), "%.*s\nsclite:\n%.*s", (int)out.n,
                      out.data, (int)(end - block), block);
        block = end;
    }
    ck_assert_int_ge(checked, 20);
    lin_free(text);
}
END_TEST

START_TEST(alignments_of_other_scripts)
{
    lin_score_options o = {.read.case_sensitive = 1};
    s = score("u-1 été x Ab\n", "u-1 ete ab\n", &o);
    lin_score_report r = {.score = s, .measure = "WER"};
    lin_score_align(&r, 0, &out);
    ck_assert_str_eq(out.data, "id: (u-1)\nScores: (#C #S #D #I) 0 2 1 0\n"
                               "REF:  éTé X   AB \nHYP:  *** ETE AB \nEval: D   S   S  \n\n");
    lin_buffer_clear(&out);
    r.keep_case = 1;
    lin_score_align(&r, 0, &out);
    HAS(out.data, " Ab ", " ab ");
}
END_TEST

START_TEST(text_report)
{
    s = score(some_ref, some_hyp, NULL);
    lin_score_report r = {.score = s, .measure = "PER", .utterances = 1, .confusions = 2, .alignments = 1};
    OK(lin_score_text(&r, &out, &err));
    HAS(out.data,
        "id: (s3-1)\nScores: (#C #S #D #I) 2 0 1 1\nREF:  A b * c \nHYP:  * b A c \nEval: D   I   \n\n",
        "id: (s1-2)\nScores: (#C #S #D #I) 0 0 0 0\n\nid: (s2-2)",
        "\ns2-1                            1        2    50.00     0.00    50.00     0.00    50.00   100.00\n",
        "substitutions (1 in all)\n    count % of ref\n        1    50.00  b -> x\n\n",
        "deletions (2 in all)\n    count % of ref\n        2    50.00  a\n\n",
        "insertions (2 in all)\n    count % of hyp\n        1    33.33  a\n        1   100.00  e\n\n",
        "most confused pairs (1 in all)\n    count   % both\n        1    33.33  b <-> x\n\n");
    ck_assert_ptr_null(strstr(out.data, "interval"));
    OK(lin_score_bootstrap(s, &draws, 1, &v, &err));
    lin_buffer_clear(&out);
    r = (lin_score_report){.score = s, .measure = "WER", .intervals = &v};
    OK(lin_score_text(&r, &out, &err));
    const char *last = strstr(out.data, "WER 45.45 %: 1 substitutions, 2 deletions, 2 insertions in 11 tokens of 5 utterances\n");
    ck_assert_ptr_nonnull(last); // the last line, which scripts read
    ck_assert_str_eq(strchr(last, '\n'), "\n");
    HAS(out.data, "] over 5 utterances, [", "] over 3 speakers (bootstrap, 200 resamples, seed 1)\n");
}
END_TEST

START_TEST(notes)
{
    lin_phone_map *map;
    static const char rules[] = "a b\nq\n";
    OK(lin_phone_map_parse(rules, sizeof rules - 1, "m", 0, &map, &err));
    lin_score_options o = {.read.map = map, .hyp_format = LIN_TRN_CTM};
    s = score("u-1 a q z\nu-2 a\n", "u-1 1 0 1 b\nu-1 1 1 1 y\nu-1 1 2 1 z\n", &o);
    lin_score_report r = {.score = s, .measure = "PER"};
    OK(lin_score_text(&r, &out, &err));
    HAS(out.data, "\n1 utterances have no line in the CTM hypothesis and count as deleted\n",
        "\n1 tokens were deleted by the map\n", "\nnot in the map, scored as they are: z, y\nPER 66.67 %");
    lin_buffer_clear(&out);
    OK(lin_score_json(&r, &out, &err));
    HAS(out.data, "\"map\":{\"deleted\":1,\"unmapped\":[\"z\",\"y\"]}");
    lin_score *again;
    static const char ref[] = "u-1 x y", hyp[] = "u-1 y z";
    const lin_score_options mapped = {.read.map = map};
    FAIL_EVERY_ALLOCATION(lin_score_texts(ref, sizeof ref - 1, "r", hyp, sizeof hyp - 1, "h", &mapped, &again, NULL),
                          lin_score_destroy(again));
    lin_phone_map_destroy(map);
}
END_TEST

// A map of phones and a hypothesis of words, hundreds of thousands of which are not in the map. A linear search for each would
// exceed the test's time limit.
START_TEST(many_tokens_that_are_not_in_the_map)
{
    enum { MANY = 400000, TOGETHER = 100 };
    lin_phone_map *map;
    OK(lin_phone_map_parse("a b\n", 4, "m", 0, &map, &err));
    lin_score_options o = {.read.map = map};
    lin_buffer ref = {0}, hyp = {0};
    char text[64];
    for (int i = 0; i < MANY; i++) {
        if (i % TOGETHER == 0) {
            snprintf(text, sizeof text, "\nu%d r%d", i, i / TOGETHER % 7);
            lin_buffer_text(&ref, text);
            snprintf(text, sizeof text, "\nu%d", i);
            lin_buffer_text(&hyp, text);
        }
        snprintf(text, sizeof text, " h%d", i);
        lin_buffer_text(&hyp, text);
    }
    s = score(ref.data, hyp.data, &o);
    ck_assert_int_eq(s->unmapped.n, MANY + 7);
    for (int i = 0; i < MANY + 7; i++) {
        const char *token = lin_symbols_text(&s->unmapped, i);
        ck_assert_int_eq(token[0], i < 7 ? 'r' : 'h');
        ck_assert_int_eq(atoi(token + 1), i < 7 ? i : i - 7);
    }
    lin_buffer_free(&ref);
    lin_buffer_free(&hyp);
    lin_phone_map_destroy(map);
}
END_TEST

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    ck_assert_msg(cJSON_IsNumber(item), "%s", key);
    return item->valuedouble;
}

START_TEST(json_report)
{
    s = score(some_ref, some_hyp, NULL);
    other = score(some_ref, some_ref, NULL);
    lin_score_comparison c;
    OK(lin_score_bootstrap(s, &draws, 1, &v, &err));
    OK(lin_score_compare(s, other, &draws, &c, &err));
    lin_score_report r = {.score = s, .measure = "P\"R", .intervals = &v, .comparison = &c, .other_name = "o", .utterances = 1};
    OK(lin_score_json(&r, &out, &err));
    cJSON *json = cJSON_Parse(out.data), *item;
    ck_assert_msg(json != NULL, "%s", out.data);
    ck_assert_str_eq(cJSON_GetObjectItem(json, "measure")->valuestring, "P\"R");
    ck_assert_double_eq_tol(number(json, "rate"), 5 / 11.0, 1e-6);
    item = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "speakers"), 1);
    ck_assert_str_eq(cJSON_GetObjectItem(item, "id")->valuestring, "s2");
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(item, "interval")), 2);
    item = cJSON_GetObjectItem(json, "bootstrap");
    ck_assert_double_eq(number(item, "resamples"), 200);
    ck_assert_double_eq_tol(cJSON_GetArrayItem(cJSON_GetObjectItem(item, "over_speakers"), 1)->valuedouble, v.speakers.high,
                            1e-6);
    item = cJSON_GetObjectItem(json, "against");
    ck_assert_double_eq_tol(number(item, "difference"), 5 / 11.0, 1e-6);
    ck_assert_double_eq(number(item, "worse_utterances"), 3);
    ck_assert_double_eq(number(cJSON_GetObjectItem(item, "matched_pairs"), "segments"), c.segments.segments);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "utterances_by_id")), 5);
    // the matrix adds up to the counts of each token
    cJSON *matrix = cJSON_GetObjectItem(json, "matrix"), *rows = cJSON_GetObjectItem(matrix, "counts"), *names, *tokens;
    names = cJSON_GetObjectItem(matrix, "tokens");
    tokens = cJSON_GetObjectItem(json, "tokens_by_name");
    int n = cJSON_GetArraySize(names);
    ck_assert_int_eq(n, s->tokens.n);
    ck_assert_int_eq(cJSON_GetArraySize(rows), n + 1);
    for (int i = 0; i < n; i++) {
        const cJSON *token = cJSON_GetArrayItem(tokens, i), *row = cJSON_GetArrayItem(rows, i);
        double across = 0, down = 0;
        ck_assert_str_eq(cJSON_GetObjectItem(token, "token")->valuestring, cJSON_GetArrayItem(names, i)->valuestring);
        for (int j = 0; j <= n; j++) across += cJSON_GetArrayItem(row, j)->valuedouble;
        for (int j = 0; j <= n; j++) down += cJSON_GetArrayItem(cJSON_GetArrayItem(rows, j), i)->valuedouble;
        ck_assert_double_eq(across, number(token, "tokens"));
        ck_assert_double_eq(down, number(token, "correct") + number(token, "in_place_of_others") + number(token, "insertions"));
        ck_assert_double_eq(cJSON_GetArrayItem(row, n)->valuedouble, number(token, "deletions"));
        ck_assert_double_eq(cJSON_GetArrayItem(row, i)->valuedouble, number(token, "correct"));
    }
    cJSON_Delete(json);
}
END_TEST

// The cells, counted from the alignments.
static void check_matrix(const lin_score_matrix *m)
{
    for (int i = 0; i <= m->n; i++) {
        for (int j = 0; j <= m->n; j++) {
            int ref = i < m->n ? m->tokens[i] : -1, hyp = j < m->n ? m->tokens[j] : -1;
            long long count = 0;
            for (int u = 0; u < s->ref.n; u++) {
                int n;
                const lin_edit_pair *p = lin_score_alignment(s, u, &n);
                for (int k = 0; k < n; k++) count += p[k].ref == ref && p[k].hyp == hyp;
            }
            test_require(m->counts[i * (m->n + 1) + j] == count, "cell %d %d", i, j);
        }
    }
}

START_TEST(pairs_both_ways)
{
    s = score("u-1 zh\nu-2 iy\nu-3 iy\nu-4 a\n", "u-1 iy\nu-2 zh\nu-3 zh\nu-4 b\n", NULL);
    lin_confused_pair *p;
    int n;
    OK(lin_score_confused_pairs(s, &p, &n, &err));
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(lin_score_token(s, p[0].a), "iy"); // twice as zh, which was once iy
    ck_assert_str_eq(lin_score_token(s, p[0].b), "zh");
    ck_assert(p[0].a_as_b == 2 && p[0].b_as_a == 1);
    ck_assert_str_eq(lin_score_token(s, p[1].a), "a");
    ck_assert(p[1].a_as_b == 1 && p[1].b_as_a == 0);
    lin_free(p);
}
END_TEST

START_TEST(tables)
{
    s = score("u-1 zh iy b q1 iy t\nu-2 b b t\n", "u-1 iy zh p q2 zh d\nu-2 p d\n", NULL);
    lin_confused_pair *p;
    lin_score_matrix m;
    int n, worst[9];
    OK(lin_score_confused_pairs(s, &p, &n, &err));
    ck_assert_int_ge(n, 3);
    for (int i = 0; i < n; i++) {
        ck_assert_int_ge(p[i].a_as_b, p[i].b_as_a);
        if (i) ck_assert_int_le(p[i].a_as_b + p[i].b_as_a, p[i - 1].a_as_b + p[i - 1].b_as_a);
    }
    lin_free(p);
    OK(lin_score_matrix_make(s, 100, &m, &err)); // textbook order, others behind
    check_matrix(&m);
    const char *const order[] = {"iy", "b", "d", "p", "t", "zh", "q1", "q2"};
    ck_assert(m.n == 8 && m.left_out == 0);
    for (int i = 0; i < 8; i++) ck_assert_str_eq(lin_score_token(s, m.tokens[i]), order[i]);
    lin_score_matrix_free(&m);
    OK(lin_score_matrix_make(s, 3, &m, &err));
    ck_assert(m.n == 3 && m.left_out == 5);
    check_matrix(&m);
    lin_score_matrix_free(&m);
    ck_assert(lin_score_worst(s, worst, 1) == 1 && worst[0] == 0);
    ck_assert(lin_score_worst(s, worst, 9) == 2 && worst[0] == 0 && worst[1] == 1);
    FAIL_EVERY_ALLOCATION(lin_score_confused_pairs(s, &p, &n, NULL), lin_free(p));
    FAIL_EVERY_ALLOCATION(lin_score_matrix_make(s, 3, &m, NULL), lin_score_matrix_free(&m));
    lin_score_destroy(s);
    s = score("a b (u-1)\na b (u-2)\na b (u-3)\na b (u-4)\n", "a c (u-1)\nc d e (u-2)\na b (u-3)\nc d (u-4)\n", NULL);
    ck_assert(lin_score_worst(s, worst, 2) == 2 && worst[0] == 1 && worst[1] == 3);
    ck_assert(lin_score_worst(s, worst, 4) == 3 && worst[0] == 1 && worst[1] == 3 && worst[2] == 0);
    lin_score_destroy(s);
    s = score("u-1 a a a b b b\n", "u-1 u v w x y z\n", NULL); // pairs that are left out are counted nowhere
    OK(lin_score_matrix_make(s, 2, &m, &err));
    ck_assert(m.n == 2 && m.left_out == 6);
    check_matrix(&m);
    lin_score_matrix_free(&m);
    lin_score_destroy(s);
    s = score("(u-1)\n", "(u-1)\n", NULL); // no tokens at all
    OK(lin_score_matrix_make(s, 3, &m, &err));
    ck_assert(m.n == 0);
    lin_score_matrix_free(&m);
}
END_TEST

// Every element is closed, and no text is taken for markup.
static void check_html(const char *html)
{
    static const char *const pairs[] = {"html", "head",  "body",    "main", "style", "title",
                                        "svg",  "table", "details", "div",  "span",  "text"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char open[32], open_attribute[32], close[32];
        int n = 0;
        snprintf(open, sizeof open, "<%s>", pairs[i]);
        snprintf(open_attribute, sizeof open_attribute, "<%s ", pairs[i]);
        snprintf(close, sizeof close, "</%s>", pairs[i]);
        for (const char *at = html; (at = strstr(at, open)); at++) n++;
        for (const char *at = html; (at = strstr(at, open_attribute)); at++) n++;
        ck_assert_msg(n > 0, "no %s", pairs[i]);
        for (const char *at = html; (at = strstr(at, close)); at++) n--;
        ck_assert_msg(n == 0, "%s: %d more begin than end", pairs[i], n);
    }
    ck_assert_ptr_null(strstr(html, "<script"));
    ck_assert_ptr_null(strstr(html, "http"));
}

START_TEST(html_report)
{
    static const char ref[] = "u<b>-1 <i>a</i> &amp; \"q\" x\nv-1 a\xFF b c\nw-1 a\n";
    s = score(ref, "u<b>-1 <script> it's x\nv-1 a b\nw-1 a d\n", NULL);
    other = score(ref, "u<b>-1\nv-1\nw-1\n", NULL);
    lin_score_comparison c;
    OK(lin_score_bootstrap(s, &draws, 1, &v, &err));
    OK(lin_score_compare(s, other, &draws, &c, &err));
    lin_score_report r = {.score = s, .measure = "PER", .ref_name = "<ref>", .hyp_name = "h&p", .intervals = &v, .comparison = &c,
                          .other_name = "<o>"};
    OK(lin_score_html(&r, &out, &err));
    check_html(out.data);
    HAS(out.data, "<title>PER 75.00 %: h&amp;p</title>", "&lt;ref&gt;", "Against &lt;o&gt;", "&lt;i&gt;a&lt;/i&gt;", "&amp;amp;",
        "&quot;q&quot;", "it&#39;s", "&lt;script&gt;", "u&lt;b&gt;-1", "a\xEF\xBF\xBD", "over 3 utterances", "recognised as",
        " deleted: ", " inserted: ", "style=\"width:100.00%\"");
    ck_assert_ptr_null(strchr(out.data, '\xFF'));
    lin_buffer_clear(&out);
    r = (lin_score_report){.score = other, .measure = "PER"};
    OK(lin_score_html(&r, &out, &err));
    check_html(out.data);
}
END_TEST

// An hour of speech in one utterance: only its beginning is written, so that the page can be opened.
START_TEST(html_of_a_long_utterance)
{
    lin_buffer ref = {0};
    lin_buffer_text(&ref, "u-1");
    for (int i = 0; i < 2500; i++) lin_buffer_text(&ref, " a b");
    s = score(ref.data, "u-1 a b x b", NULL);
    lin_score_report r = {.score = s, .measure = "PER"};
    OK(lin_score_html(&r, &out, &err));
    check_html(out.data);
    HAS(out.data, "and 3000 more");
    int n = 0;
    for (const char *at = out.data; (at = strstr(at, "<span class=\"e\">")); at++) n++;
    ck_assert_msg(n >= 1996 && n <= 2000, "%d errors are shown", n);
    lin_buffer_free(&ref);
}
END_TEST

/* ---- two systems ----------------------------------------------------------------------------------------------------------- */

START_TEST(matched_pairs_are_sc_stats)
{
    lin_score *a, *b;
    lin_score_comparison c, d;
    int segments;
    double mean, deviation, z;
    OK(lin_score_files(golden_path("score_pairs_ref.trn"), golden_path("score_pairs_a.trn"), NULL, &a, &err));
    OK(lin_score_files(golden_path("score_pairs_ref.trn"), golden_path("score_pairs_b.trn"), NULL, &b, &err));
    OK(lin_score_compare(a, b, &draws, &c, &err));
    FILE *file = fopen(golden_path("score_pairs.txt"), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "#%*[^\n]\n%d %lf %lf %lf", &segments, &mean, &deviation, &z), 4);
    fclose(file);
    ck_assert_int_eq(c.segments.segments, segments);
    ck_assert_double_eq_tol(c.segments.mean, mean, 0.000501);
    ck_assert_double_eq_tol(c.segments.deviation, deviation, 0.000501);
    ck_assert_double_eq_tol(fabs(c.segments.z), fabs(z), 0.000501);
    OK(lin_score_compare(b, a, &draws, &d, &err)); // the other way round
    ck_assert(d.segments.z == -c.segments.z && d.segments.p == c.segments.p && d.difference == -c.difference);
    ck_assert(d.better == c.worse && d.worse == c.better && c.better > c.worse);
    ck_assert(fabs(d.utterances.interval.low + c.utterances.interval.high) < 1e-12);
    ck_assert(c.utterances.improvement > 0.99 && d.utterances.improvement < 0.01);
    ck_assert_int_eq(c.utterances.interval.units, a->ref.n);
    ck_assert_int_eq(c.speakers.interval.units, 7);
    OK(lin_score_compare(a, a, &draws, &d, &err));
    ck_assert(d.segments.p == 1 && d.segments.z == 0 && d.difference == 0 && d.utterances.equal == 1);
    lin_score_destroy(a);
    lin_score_destroy(b);
}
END_TEST

// Segments by hand: cut at two consecutive tokens that both systems have right, with no insertion between.
START_TEST(segments)
{
    static const struct {
        const char *ref, *a, *b;
        int n;
        double mean;
    } cases[] = {
        {"u-1 p q r s t u\n", "u-1 x q r s t y\n", "u-1 p q r s t z\n", 2, 0.5},   // two apart
        {"u-1 p q r s t u\n", "u-1 p q x s y u\n", "u-1 p q r s t u\n", 1, 2},     // one right between them: together
        {"u-1 p q r s\n", "u-1 p q r s t\n", "u-1 o p q r s\n", 2, 0},             // insertions at both ends
        {"u-1 p q r s\n", "u-1 x q o r y\n", "u-1 p q r s\n", 1, 3},               // an insertion between two that are right
        {"u-1 p q\nu-2 r s\n", "u-1 p x\nu-2 x s\n", "u-1 p q\nu-2 r s\n", 2, 1},  // never across utterances
        {"u-1\n", "u-1 a b\n", "u-1 a\n", 1, 1},                                   // nothing said
        {"u-1 p q r\n", "u-1 p q r\n", "u-1 p q r\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_score *a = score(cases[i].ref, cases[i].a, NULL), *b = score(cases[i].ref, cases[i].b, NULL);
        lin_score_comparison c;
        OK(lin_score_compare(a, b, &draws, &c, &err));
        ck_assert_msg(c.segments.segments == cases[i].n && fabs(c.segments.mean - cases[i].mean) < 1e-12,
                      "case %zu: %d segments, %g", i, c.segments.segments, c.segments.mean);
        lin_score_destroy(a);
        lin_score_destroy(b);
    }
}
END_TEST

START_TEST(references_must_be_the_same)
{
    static const char *const others[][2] = {
        {"s1-1 a b c d\ns2-1 a a\ns1-2\ns2-2 x y\ns3-1 a b x\n", "differ in utterance 's3-1'"},
        {"s1-1 a b c d\ns2-1 a a\ns1-2\ns2-2 x y\ns3-1 a b c d\n", "differ in utterance 's3-1'"},
        {"s1-1 a b c d\ns2-1 a a\ns1-2\ns2-2 x y\ns3-2 a b c\n", "differ in utterance 's3-1'"},
        {"s1-1 a b c d\ns2-1 a a\ns1-2\n", "5 and 3 utterances of 3 and 2 speakers"}};
    lin_score *a = score(some_ref, some_hyp, NULL);
    lin_score_comparison c;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        lin_score *b = score(others[i][0], others[i][0], NULL);
        FAILS(lin_score_compare(a, b, &draws, &c, &err), LIN_MISMATCH, others[i][1]);
        lin_score_destroy(b);
    }
    lin_score_destroy(a);
}
END_TEST

// Speakers in any order: each one's interval is that of its own utterances.
START_TEST(intervals_of_speakers)
{
    s = score(some_ref, some_hyp, NULL);
    lin_score_intervals w;
    static const lin_bootstrap_unit second[] = {{1, 2}, {0, 2}};
    lin_bootstrap_interval want;
    OK(lin_score_bootstrap(s, &draws, 1, &v, &err));
    OK(lin_bootstrap_rate(second, 2, &draws, &want, &err));
    ck_assert(v.by_speaker[1].low == want.low && v.by_speaker[1].high == want.high && v.by_speaker[1].units == 2);
    ck_assert(v.by_speaker[0].units == 2 && v.by_speaker[2].units == 1 && v.by_speaker[2].low == 2.0 / 3);
    ck_assert(v.utterances.units == 5 && v.speakers.units == 3);
    FAIL_EVERY_ALLOCATION(lin_score_bootstrap(s, &draws, 1, &w, NULL), lin_score_intervals_free(&w));
}
END_TEST

START_TEST(out_of_memory)
{
    s = score(some_ref, some_hyp, NULL);
    other = score(some_ref, some_ref, NULL);
    lin_score_comparison c;
    OK(lin_score_bootstrap(s, &draws, 1, &v, &err));
    FAIL_EVERY_ALLOCATION(lin_score_compare(s, other, &draws, &c, NULL), (void)0);
    lin_score_report r = {.score = s, .measure = "PER", .intervals = &v, .comparison = &c, .utterances = 1, .alignments = 1,
                          .confusions = 3};
#define REPORT(function) (lin_buffer_free(&out), function(&r, &out, NULL) ? (lin_buffer_free(&out), LIN_NO_MEMORY) : LIN_OK)
    FAIL_EVERY_ALLOCATION(REPORT(lin_score_text), lin_buffer_free(&out));
    FAIL_EVERY_ALLOCATION(REPORT(lin_score_json), lin_buffer_free(&out));
    FAIL_EVERY_ALLOCATION(REPORT(lin_score_html), lin_buffer_free(&out));
}
END_TEST

TEST_MAIN_WITH(NULL, drop, "score_report", TEST(alignments_are_sclites), TEST(alignments_of_other_scripts), TEST(text_report),
               TEST(notes), TEST(many_tokens_that_are_not_in_the_map), TEST(json_report), TEST(pairs_both_ways),
               TEST(tables), TEST(html_report), TEST(html_of_a_long_utterance), TEST(matched_pairs_are_sc_stats), TEST(segments),
               TEST(references_must_be_the_same), TEST(intervals_of_speakers), TEST(out_of_memory))
