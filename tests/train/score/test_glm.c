// train/score/glm.c: rules by hand, what they leave alone, refused files, failing memory; the map that is installed.
#include "train/score/glm.h"
#include "tests/train/score/transcripts.h"

static lin_symbols tokens;
static lin_trn trn;
static lin_glm glm;

static const lin_trn_options usual;

static lin_status parse_map(const char *rules, lin_error *err)
{
    lin_glm_free(&glm);
    return lin_glm_parse(rules, strlen(rules), "map", &usual, &tokens, &glm, err);
}

// What the rules make of a line of a TRN, as text.
static const char *applied(const char *rules, const char *words)
{
    static char out[400];
    static const char *const marks[] = {[-LIN_EDIT_OPEN] = "{",
                                        [-LIN_EDIT_OR] = "/",
                                        [-LIN_EDIT_CLOSE] = "}",
                                        [-LIN_EDIT_NULL] = "@",
                                        [-LIN_EDIT_OPTIONAL] = "?"};
    char line[400];
    snprintf(line, sizeof line, "%s (a)\nx (b)\n", words);
    lin_trn_free(&trn);
    OK(lin_trn_parse(line, strlen(line), "text", &(lin_trn_options){.format = LIN_TRN_TRN}, &tokens, &trn, &err));
    OK(parse_map(rules, &err));
    OK(lin_glm_apply(&glm, &trn, &err));
    *out = '\0';
    for (int i = 0; i < trn.utterances[0].n; i++) {
        const int t = trn.tokens[trn.utterances[0].first + (size_t)i];
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", i ? " " : "",
                 t < 0 ? marks[-t] : lin_symbols_text(&tokens, t));
    }
    ck_assert_int_eq(trn.utterances[1].n, 1); // the line behind it is whole
    ck_assert_str_eq(lin_symbols_text(&tokens, trn.tokens[trn.utterances[1].first]), "x");
    return out;
}

static void done(void)
{
    lin_trn_free(&trn);
    lin_glm_free(&glm);
    lin_symbols_free(&tokens);
}

START_TEST(rules_replace_words)
{
    static const char rules[] =
        ";; a comment\n*name \"x\"\n\ncolour => color / [ ] __ [ ] ;; so\n[GREY] => gray\nany one => anyone/[]__[]\n"
        "it's => { it's / it is / it has } / [ ] __ [ ]\nuh => (uh)\n%breath =>\nany => some\na b c => z\na b => y\n"
        "a b => w\na b d => never\ncolor => never\n";
    ck_assert_str_eq(applied(rules, "The Colour grey"), "the color gray");
    ck_assert_str_eq(applied(rules, "any one of any"), "anyone of some");
    ck_assert_str_eq(applied(rules, "it's"), "{ it's / it is / it has }");
    ck_assert_str_eq(applied(rules, "uh %breath no"), "? uh no");
    ck_assert_str_eq(applied(rules, "%breath"), "");
    ck_assert_str_eq(applied(rules, "a b c a b d a"), "z y d a"); // the first rule that fits, not the longest
    ck_assert_str_eq(applied(rules, "{ colour / { grey } / any one } colour (grey)"),
                     "{ colour / { grey } / any one } color ? grey");
    ck_assert_str_eq(applied(rules, "a { b } any { one }"), "a { b } some { one }");
    ck_assert_str_eq(applied(rules, ""), "");
    done();
}
END_TEST

static lin_status parse_alone(const char *rules, lin_error *err)
{
    lin_status status = parse_map(rules, err);
    done();
    return status;
}

START_TEST(refused)
{
    FAILS(parse_alone("a => b\nc d\n", &err), LIN_FORMAT, "map:2: 'c d': a rule is 'words => words'");
    FAILS(parse_alone(" => b\n", &err), LIN_FORMAT, "map:1: there is no word before '=>'");
    FAILS(parse_alone("a => { b / c\n", &err), LIN_FORMAT, "map:1: a closing brace is missing");
    FAILS(parse_alone("a => b / [the] __ [ ]\n", &err), LIN_UNSUPPORTED, "map:1: the context '/ [the] __ [ ]' is not supported");
    FAILS(parse_alone("a => b / [ ] __\n", &err), LIN_UNSUPPORTED, "is not supported");
    FAILS(parse_alone("a => b;c\n", &err), LIN_UNSUPPORTED, "; and \\ are not supported inside words");
    FAILS(parse_alone("a => \x01\n", &err), LIN_FORMAT, "control character 0x01");
    FAILS(parse_alone(";; nothing\n", &err), LIN_FORMAT, "map: the file has no rule");
    FAILS(parse_alone("", &err), LIN_FORMAT, "map: the file has no rule");
}
END_TEST

static const char line[] = "a c a (u)\n", rules_of_it[] = "a => { b / c d }\nc => a\n";

static lin_status all_of_it(void)
{
    lin_error e = {0};
    lin_status status = lin_trn_parse(line, sizeof line - 1, "text", NULL, &tokens, &trn, &e);
    if (status == LIN_OK) status = lin_glm_parse(rules_of_it, sizeof rules_of_it - 1, "map", &usual, &tokens, &glm, &e);
    if (status == LIN_OK) status = lin_glm_apply(&glm, &trn, &e);
    if (status != LIN_OK) done();
    return status;
}

START_TEST(failing_memory) { FAIL_EVERY_ALLOCATION(all_of_it(), done()); }
END_TEST

// Both sides of a pair are the same words, whichever is the reference.
START_TEST(the_installed_map)
{
    static const char one[] = "he's got any colour it is can't be to-day grey centre (a)\nthe dog's bone (b)\n",
                      two[] = "he has got any color it's cannot be to-day gray center (a)\nthe dog is bone (b)\n";
    const lin_score_options options = {.read.format = LIN_TRN_TRN,
                                       .hyp_format = LIN_TRN_TRN,
                                       .glm_path = "share/linnet/en/words.glm"};
    for (int turn = 0; turn < 2; turn++) {
        lin_score *score;
        lin_score_counts c;
        OK(lin_score_texts(turn ? two : one, strlen(turn ? two : one), "r", turn ? one : two, strlen(turn ? one : two), "h",
                           &options, &score, &err));
        c = score->by_utterance[0];
        ck_assert_int_eq(c.sub + c.del + c.ins, 0);
        c = score->by_utterance[1];
        ck_assert_int_eq(c.sub + c.del + c.ins, 2); // a noun may be a possessive
        lin_score_destroy(score);
    }
}
END_TEST

// The speakers of an STM stay those of its lines.
START_TEST(speakers_of_an_stm)
{
    static const char ref[] = "talk 1 ann 0 1 any colour\ntalk 1 bob 1 2 grey\n", hyp[] = "talk 1 0.2 0.2 any\n";
    const lin_score_options options = {
        .read.format = LIN_TRN_STM, .hyp_format = LIN_TRN_CTM, .glm_path = "share/linnet/en/words.glm"};
    lin_score *score;
    OK(lin_score_texts(ref, strlen(ref), "r", hyp, strlen(hyp), "h", &options, &score, &err));
    ck_assert_int_eq(score->speakers.n, 2);
    ck_assert_str_eq(lin_score_speaker(score, 0), "ann");
    ck_assert_str_eq(lin_score_speaker(score, 1), "bob");
    lin_score_destroy(score);
}
END_TEST

TEST_MAIN("glm", TEST(rules_replace_words), TEST(refused), TEST(failing_memory), TEST(the_installed_map),
          TEST(speakers_of_an_stm))
