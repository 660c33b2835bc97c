// lexicon/g2p.c and transcript.c: endings, clitics, spellings, letters and rules;
// text to labels, the list of unknown words, hostile text.
#include "lexicon/transcript.h"

#include "base/textfile.h"
#include "base/unicode.h"
#include "train/learn/g2p_learn.h"
#include "lexicon/g2p.h"
#include "tests/lexicon/support.h"

static lin_phones *phones;
static lin_dictionary *dictionary;
static lin_g2p_rules *learnt; // from the dictionary
static lin_g2p *g;
static lin_transcriber *t;

static void make(const lin_phones *set, const lin_dictionary *of, const lin_g2p_rules *rules)
{
    lin_transcriber_destroy(t);
    lin_g2p_destroy(g);
    OK(lin_g2p_create(set, of, rules, &g, &err));
    OK(lin_transcriber_create(of, g, &t, &err));
}

static void setup(void)
{
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_parse(small_dictionary, sizeof small_dictionary - 1, "small", phones, &dictionary, &err));
    lin_ngram *lm;
    const lin_g2p_learn_options o = lin_g2p_learn_options_default();
    OK(lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err));
    OK(lin_g2p_rules_create(lm, "small", phones, &learnt, &err));
    make(phones, dictionary, NULL);
}

static void teardown(void)
{
    lin_transcriber_destroy(t);
    lin_g2p_destroy(g);
    t = NULL;
    g = NULL;
    lin_g2p_rules_destroy(learnt);
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static const char *said(const char *word, lin_g2p_how want)
{
    int labels[LIN_PRONUNCIATION_MAX], n;
    lin_g2p_how how;
    lin_error err = {0};
    lin_status status = lin_g2p_pronounce(g, word, strlen(word), labels, LIN_PRONUNCIATION_MAX, &n, &how, &err);
    ck_assert_msg(status == LIN_OK, "%s: %s", word, err.message);
    ck_assert_msg(how == want, "%s: %s instead of %s", word, lin_g2p_how_name(how), lin_g2p_how_name(want));
    return named(phones, labels, n);
}

// Messages show the user's text unchanged, except control characters and bytes that are not UTF-8; no character is cut.
START_TEST(quotes_keep_utf8)
{
    char out[LIN_QUOTE];
#define QUOTED(text) lin_quote(out, text, sizeof(text) - 1)
    ck_assert_str_eq(QUOTED(""), "");
    static const char letters[] = "Gr\xC3\xB6\xC3\x9F" "e \xE2\x80\x99 \xF0\x9F\x90\xA6";
    ck_assert_str_eq(QUOTED(letters), letters);
    ck_assert_str_eq(QUOTED("a\tb\x7F\xC2\x9B" "c\xFF\xC3"), "a?b?" "??" "c??"); // 0x9B would begin a terminal's command
    char text[LIN_QUOTE + 8];
    for (int before = 0; before < 4; before++) {
        memset(text, 'x', sizeof text);
        for (int at = before; at + 3 <= (int)sizeof text; at += 3) memcpy(text + at, "\xE2\x82\xAC", 3);
        lin_quote(out, text, sizeof text);
        const size_t n = strlen(out);
        unsigned code;
        ck_assert_uint_ge(n, LIN_QUOTE - 7);
        ck_assert_str_eq(out + n - 3, "...");
        size_t at = 0, k = 1;
        for (; k > 0; at += k) k = lin_utf8_decode(out + at, n - at, &code);
        ck_assert_uint_eq(at, n);
        memset(text, 'x', sizeof text);
        ck_assert_uint_eq(strlen(lin_quote(out, text, (size_t)(LIN_QUOTE - 1 + before))), LIN_QUOTE - 1);
    }
}
END_TEST

START_TEST(derived_words)
{
    static const char *const cases[][2] = {
        {"moths", "M AO TH S"}, {"judges", "JH AH JH IH Z"}, {"rose's", "R OW Z IH Z"}, {"judged", "JH AH JH D"},
        {"cats", "K AE T S"}, {"cat's", "K AE T S"}, {"plays", "P L EY Z"}, {"bus's", "B AH S IH Z"}, {"played", "P L EY D"},
        {"wanted", "W AA N T IH D"}, {"laughed", "L AE F T"}, {"kissed", "K IH S T"}, {"planed", "P L EY N D"},
        {"playing", "P L EY IH NG"}, {"hoping", "HH OW P IH NG"}, {"flies", "F L AY Z"}, {"happiness", "HH AE P IY N AH S"},
        {"darkness", "D AA R K N AH S"}, {"hopeless", "HH OW P L AH S"}, {"colour", "K AH L ER"}, {"colours", "K AH L ER Z"},
        {"coloured", "K AH L ER D"}, {"we'll", "W IY AH L"}, {"we've", "W IY AH V"}, {"we'd", "W IY D"},
        {"want'd", "W AA N T IH D"}, {"d'you", "D Y UW"}, {"m'lord", "M L AO R D"}, {"cat-bus", "K AE T B AH S"},
        {"cat&bus", "K AE T AH N D B AH S"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(said(cases[i][0], LIN_G2P_DERIVED), cases[i][1]);
    }
    ck_assert_str_eq(said("pbx", LIN_G2P_SPELLED), "P IY B IY EH K S");
    ck_assert_str_eq(said("AT&T", LIN_G2P_SPELLED), "EY T IY AH N D T IY");
    ck_assert_str_eq(said("'hello'", LIN_G2P_DICTIONARY), "HH AH L OW");
    ck_assert_str_eq(said("'tis", LIN_G2P_DICTIONARY), "T IH Z");
    ck_assert_str_eq(said("hyphen-ated", LIN_G2P_DICTIONARY), "HH AY");
    ck_assert_str_eq(said("--cat-", LIN_G2P_DICTIONARY), "K AE T");
    lin_g2p_destroy(NULL);
}
END_TEST

START_TEST(without_rules_the_word_is_named)
{
    int labels[8], n;
    FAILS(lin_g2p_pronounce(g, "zorblatt", 8, labels, 8, &n, NULL, &err), LIN_UNSUPPORTED, "'zorblatt' is not in the dictionary");
    FAILS(lin_g2p_pronounce(g, "", 0, labels, 8, &n, NULL, &err), LIN_INVALID, "no letters");
    FAILS(lin_g2p_pronounce(g, "'-'", 3, labels, 8, &n, NULL, &err), LIN_INVALID, "no letters");
    FAILS(lin_g2p_pronounce(g, "a1", 2, labels, 8, &n, NULL, &err), LIN_INVALID, "letters, apostrophes");
    FAILS(lin_g2p_pronounce(g, "a\n", 2, labels, 8, &n, NULL, &err), LIN_INVALID, "'a?'");
    FAILS(lin_g2p_pronounce(g, "hello", 5, labels, 3, &n, NULL, &err), LIN_TOO_SMALL, "3");
    char word[300];
    memset(word, 'a', sizeof word);
    FAILS(lin_g2p_pronounce(g, word, 256, labels, 8, &n, NULL, &err), LIN_INVALID, "256 letters");
}
END_TEST

START_TEST(letter_to_sound_rules)
{
    lin_g2p_destroy(g);
    OK(lin_g2p_create(phones, NULL, learnt, &g, &err));
    ck_assert_str_eq(said("hello", LIN_G2P_RULES), "HH AH L OW"); // a word that they were learnt from
    ck_assert_str_eq(said("Cat's", LIN_G2P_RULES), "K AE T S");
    ck_assert_str_eq(said("pbx", LIN_G2P_SPELLED), "P IY B IY EH K S");
    lin_g2p_destroy(g);
    lin_phones *few;
    OK(lin_phones_create("<blank> AA B", &few, &err));
    FAILS(lin_g2p_create(few, NULL, learnt, &g, &err), LIN_MISMATCH, "no AE");
    lin_phones_destroy(few);
    FAIL_EVERY_ALLOCATION(lin_g2p_create(phones, dictionary, learnt, &g, NULL), (lin_g2p_destroy(g), g = NULL));
}
END_TEST

static const char *line_of(const lin_phones *set, const char *text)
{
    const int *labels;
    int n;
    lin_error err = {0};
    lin_status status = lin_transcriber_line(t, text, strlen(text), &labels, &n, &err);
    ck_assert_msg(status == LIN_OK, "'%s': %s", text, err.message);
    return named(set, labels, n);
}

static const char *line(const char *text) { return line_of(phones, text); }

START_TEST(text_to_labels)
{
    ck_assert_str_eq(line("HELLO world"), "HH AH L OW W ER L D");
    ck_assert_str_eq(line("  Hello,\tworld!\n"), "HH AH L OW W ER L D");
    ck_assert_str_eq(line("\"We\" -- a cat? (You... 'A')"), "W IY AH K AE T Y UW AH");
    ck_assert_str_eq(line(""), "");
    ck_assert_str_eq(line(" - ' -- . "), "");
    ck_assert_str_eq(line("\xE2\x80\x9Cwe\xE2\x80\x99ll\xE2\x80\x9D c\xC3\xA2t\xE2\x80\xA6"), "W IY AH L K AE T");
    ck_assert_str_eq(line("hyphen-ated cat-world"), "HH AY K AE T W ER L D");
    lin_transcriber_destroy(NULL);
}
END_TEST

START_TEST(unknown_words_are_listed_once)
{
    ck_assert_str_eq(line("CATS hello cats"), "K AE T S HH AH L OW K AE T S");
    ck_assert_str_eq(line("pbx Cats"), "P IY B IY EH K S K AE T S");
    ck_assert_int_eq(lin_transcriber_unknown_count(t), 2);
    lin_unknown_word u = lin_transcriber_unknown(t, 0);
    ck_assert_str_eq(u.word, "cats");
    ck_assert_int_eq(u.count, 3);
    ck_assert_int_eq(u.how, LIN_G2P_DERIVED);
    ck_assert_str_eq(named(phones, u.labels, u.n_labels), "K AE T S");
    u = lin_transcriber_unknown(t, 1);
    ck_assert_str_eq(u.word, "pbx");
    ck_assert_int_eq(u.count, 1);
    ck_assert_int_eq(u.how, LIN_G2P_SPELLED);
    ck_assert_int_eq(lin_transcriber_words(t), 5);
    ck_assert_int_eq(lin_transcriber_unknown_words(t), 4);
}
END_TEST

START_TEST(marks_are_no_words)
{
    static const char *const marks[] = {"[laughs]", "<noise>",       "(coughs)",      "(laughing)",     "(clears throat)",
                                        "{sigh}",   "*Laughter*",    "&=laughs",      "[\xE7\xAC\x91]", "[00:01:12]",
                                        "<unk>",    "(Music, loud)", "[he said (so)]"};
    static const char *const others[] = {"", "(you)", "(or so I think)", "[", "[]", "[no end", "[line\nend]",
                                         "(coughs and then it goes on)", "(noisome)", "*really*", "& x", "&=", "a[b]", "[a [b]",
                                         "(music2)", "<<a>"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char more[64];
        snprintf(more, sizeof more, "%s) x]", marks[i]);
        ck_assert_msg(lin_mark_length(more, strlen(more)) == strlen(marks[i]), "%s", marks[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(lin_mark_length(others[i], strlen(others[i])) == 0, "%s", others[i]);
    char longer[LIN_MARK_MAX + 2];
    memset(longer, 'a', sizeof longer);
    longer[0] = '[';
    longer[LIN_MARK_MAX - 1] = ']';
    ck_assert_uint_eq(lin_mark_length(longer, sizeof longer), LIN_MARK_MAX);
    longer[LIN_MARK_MAX - 1] = 'a', longer[LIN_MARK_MAX] = ']';
    ck_assert_uint_eq(lin_mark_length(longer, sizeof longer), 0);

    const char *first;
    ck_assert_int_eq(lin_transcriber_marks(t, &first), 0);
    ck_assert_str_eq(first, "");
    ck_assert_str_eq(line("[laughs 2 times]hello<noise>world (coughs)"), "HH AH L OW W ER L D");
    ck_assert_int_eq(lin_transcriber_marks(t, &first), 3);
    ck_assert_str_eq(first, "[laughs 2 times]");
    ck_assert_int_eq(lin_transcriber_words(t), 2);
    ck_assert_str_eq(line("[a] - <b>"), "");
    ck_assert_int_eq(lin_transcriber_marks(t, NULL), 5);
}
END_TEST

// A letter with a period is the spelled letter.
START_TEST(spelled_letters)
{
    static const char with[] = "a AH\na. EY\na.'s EY Z\nb B IY\nb. B IY\nm. EH M\ncat K AE T\n'scat S K AE T\n";
    lin_dictionary *letters;
    OK(lin_dictionary_parse(with, sizeof with - 1, "with", phones, &letters, &err));
    make(phones, letters, NULL);
    ck_assert_str_eq(line("A cat"), "AH K AE T");
    ck_assert_str_eq(line("A. CAT"), "EY K AE T");
    ck_assert_str_eq(line("a cat A."), "AH K AE T EY");
    ck_assert_str_eq(line("M. B. A. cat M.B.A."), "EH M B IY EY K AE T EH M B IY EY");
    ck_assert_str_eq(line("A.'S cat a.'s"), "EY Z K AE T EY Z");
    ck_assert_int_eq(lin_transcriber_unknown_words(t), 0);
    ck_assert_str_eq(line("A.'scat a cat."), "EY S K AE T AH K AE T");
    lin_dictionary_destroy(letters);
    make(phones, dictionary, NULL); // in this one the name of the letter is its second pronunciation
    ck_assert_str_eq(line("A. cat a"), "EY K AE T AH");
}
END_TEST

// A set of phones of its own: letters of any script, accents that matter, rules of its own.
START_TEST(other_languages)
{
    static const char text[] = "schon ʃ oː n\nschön ʃ øː n\nбор b o r\nöl øː l\nspiel ʃ p iː l\nan a n\nda d a\nnu n u\n"
                               "sapi s a p i\n<unk> spn\nl'an l a n\n";
    lin_phones *own;
    lin_dictionary *d;
    lin_ngram *lm;
    lin_g2p_rules *rules;
    lin_g2p_learn_report report;
    const int *labels;
    int n;
    lin_g2p_learn_options how = lin_g2p_learn_options_default();
    how.minimum = 1;
    OK(lin_dictionary_phones(text, strlen(text), "d", &own, &err));
    OK(lin_dictionary_parse(text, strlen(text), "d", own, &d, &err));
    OK(lin_g2p_learn(d, own, &how, &lm, &report, &err));
    ck_assert_int_eq(report.words, 10);
    ck_assert_int_eq(report.left_out, 1); // <unk>
    ck_assert_int_eq(report.letters, 17);
    OK(lin_g2p_rules_create(lm, "r", own, &rules, &err));
    make(own, d, rules);
    ck_assert_str_eq(line_of(own, "Schon SCHÖN, «Öl»! Бор…"), "ʃ oː n ʃ øː n øː l b o r");
    ck_assert_str_eq(line_of(own, "l'an"), "l a n");
    ck_assert_str_eq(line_of(own, "Öl-An"), "øː l a n");
    ck_assert_int_eq(lin_transcriber_unknown_count(t), 1);
    ck_assert_int_eq(lin_transcriber_unknown(t, 0).how, LIN_G2P_DERIVED);
    ck_assert_str_eq(line_of(own, "dapi"), "d a p i");
    ck_assert_str_eq(line_of(own, "dápi"), "d a p i"); // the letter without its accent
    ck_assert_str_eq(line_of(own, "d'api"), "d a p i");
    ck_assert_str_eq(lin_transcriber_unknown(t, 2).word, "dápi");
    ck_assert_int_eq(lin_transcriber_unknown(t, 2).how, LIN_G2P_RULES);
    FAILS(lin_transcriber_line(t, "an ж", strlen("an ж"), &labels, &n, &err), LIN_UNSUPPORTED, "no sound for 'ж'");
    lin_g2p_rules_destroy(rules);
    make(own, d, NULL);
    FAILS(lin_transcriber_line(t, "schun", 5, &labels, &n, &err), LIN_UNSUPPORTED, "no letter-to-sound rules for these phones");
    lin_dictionary_destroy(d);
    lin_phones_destroy(own);
}
END_TEST

START_TEST(words_one_by_one)
{
    static const char text[] = "  \"H\xC3\xA9llo\" \xE2\x80\x94 don\xE2\x80\x99t, well-known--a";
    static const char *const words[] = {"h\xC3\xA9llo", "don't", "well-known", "a"};
    static const char *const written[] = {"H\xC3\xA9llo", "don\xE2\x80\x99t", "well-known", "a"};
    lin_spelling word;
    size_t at = 0, n = sizeof text - 1;
    for (int i = 0; i < 4; i++) {
        OK(lin_spelling_next(text, n, &at, &word, &err));
        ck_assert_uint_eq(word.n, strlen(words[i]));
        ck_assert_mem_eq(word.word, words[i], word.n);
        ck_assert_uint_eq(word.end - word.begin, strlen(written[i]));
        ck_assert_mem_eq(text + word.begin, written[i], word.end - word.begin);
    }
    OK(lin_spelling_next(text, n, &at, &word, &err));
    ck_assert(word.n == 0 && at == n);
    OK(lin_spelling_next(text, n, &at, &word, &err)); // and stays there
    ck_assert_uint_eq(word.n, 0);
    at = 0;
    OK(lin_spelling_next("ab 1", 4, &at, &word, &err));
    FAILS(lin_spelling_next("ab 1", 4, &at, &word, &err), LIN_FORMAT, "'1' at byte 4");
}
END_TEST

START_TEST(bad_text)
{
    const int *labels;
    int n;
    line("hello world hello world hello world"); // the transcriber keeps its memory
#define LINE(text) lin_transcriber_line(t, text, sizeof(text) - 1, &labels, &n, &err)
    FAILS(LINE("hello \x07 world"), LIN_FORMAT, "a control character, 0x07, at byte 7");
    FAILS(LINE("hello\0world"), LIN_FORMAT, "a control character, 0x00, at byte 6");
    FAILS(LINE("a 4th cat"), LIN_FORMAT, "'4' at byte 3");
    FAILS(LINE("cat & world"), LIN_FORMAT, "'&' at byte 5");
    FAILS(LINE("&world"), LIN_FORMAT, "'&' at byte 1");
    FAILS(LINE("cat& world"), LIN_FORMAT, "'&' at byte 4");
    FAILS(LINE("caf\xE9"), LIN_FORMAT, "byte 4, 0xe9, is not UTF-8");
    FAILS(LINE("\xC0\x80"), LIN_FORMAT, "byte 1, 0xc0, is not UTF-8");
    FAILS(LINE("\xED\xA0\x80"), LIN_FORMAT, "is not UTF-8");
    FAILS(LINE("a \xD0\xB6"), LIN_INVALID, "the letter U+0436 of '\xD0\xB6' is not used in English spelling");
    FAILS(LINE("a \uFF05"), LIN_FORMAT, "the character U+FF05 at byte 3: no rule reads it");
    FAILS(LINE("a \u2030"), LIN_FORMAT, "the character U+2030 at byte 3: no rule reads it");
    FAILS(LINE("a \xE2\x82\xAC"), LIN_FORMAT, "the character U+20AC at byte 3: no rule reads it; write numbers and symbols");
    FAILS(LINE("a \xE2\x82"), LIN_FORMAT, "byte 3");
    FAILS(LINE("hello zorblatt"), LIN_UNSUPPORTED, "'zorblatt'");
    char word[300];
    memset(word, 'a', sizeof word);
    FAILS(lin_transcriber_line(t, word, sizeof word, &labels, &n, &err), LIN_INVALID, "longer than 255");
    // A line of a file in UTF-16: the byte after its end belongs to its last character.
    FAILS(lin_transcriber_line(t, "\xFF\xFEh\0i\0", 6, &labels, &n, &err), LIN_FORMAT, "iconv -f UTF-16");
    ck_assert_str_eq(line("cat"), "K AE T"); // still usable
    lin_transcriber_destroy(t);
    OK(lin_transcriber_create(dictionary, NULL, &t, &err));
    line("hello");
    FAILS(LINE("hello zorblatt"), LIN_INVALID, "'zorblatt' at byte 7 is not in the dictionary");
}
END_TEST

static lin_status whole(void)
{
    lin_transcriber *own;
    const int *labels;
    int n;
    char text[10000];
    size_t used = 0;
    for (int i = 0; i < 200; i++) {
        used += (size_t)sprintf(text + used, "hello cats cat-%.*ss ", 1 + i % 26, "bcdfghjklmnpqrstvwxzbcdfgh");
    }
    lin_status status = lin_transcriber_create(dictionary, g, &own, NULL);
    if (status != LIN_OK) return status;
    status = lin_transcriber_line(own, text, used, &labels, &n, NULL);
    if (status == LIN_UNSUPPORTED) status = LIN_OK; // reached the words that need the rules
    lin_transcriber_destroy(own);
    return status;
}

START_TEST(out_of_memory) { FAIL_EVERY_ALLOCATION(whole(), (void)0); }
END_TEST

TEST_MAIN_WITH(setup, teardown, "transcript", TEST(quotes_keep_utf8), TEST(derived_words), TEST(without_rules_the_word_is_named),
               TEST(letter_to_sound_rules), TEST(text_to_labels), TEST(unknown_words_are_listed_once), TEST(marks_are_no_words),
               TEST(spelled_letters), TEST(other_languages), TEST(words_one_by_one), TEST(bad_text), TEST(out_of_memory))
