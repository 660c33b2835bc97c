// Grammars: which sentences they accept, what is refused and where the message says so, other files, large ones, failing memory.
#include "lexicon/grammar.h"

#include "tests/lexicon/support.h"

static lin_written *numbers;
static lin_grammar *g;
static lin_tree *tree;

static void setup(void) { OK(lin_written_load("share/linnet/en/numbers.txt", &numbers, &err)); }

static void drop(void)
{
    lin_tree_destroy(tree);
    lin_grammar_destroy(g);
    tree = NULL;
    g = NULL;
}

static void teardown(void)
{
    drop();
    lin_written_destroy(numbers);
}

// A tree of the grammar's words, each with a phone for its number and the last one again, so that words share beginnings.
static void make_tree(void)
{
    static int labels[3000][2];
    static lin_tree_entry entries[3000];
    const int n = lin_grammar_words(g);
    ck_assert_int_le(n, 3000);
    for (int i = 0; i < n; i++) {
        labels[i][0] = 1 + i % 7;
        labels[i][1] = 1 + i / 7 % 7;
        entries[i] = (lin_tree_entry){lin_grammar_word(g, i), labels[i], 2, 0, 0};
    }
    OK(lin_tree_create_list(entries, n, 9, NULL, 0, &tree, &err));
    OK(lin_grammar_bind(g, tree, &err));
}

// The end of a word in the tree; its node, and that node's parent.
static uint32_t end_of(const char *word, uint32_t *node)
{
    const int number = lin_tree_find(tree, word, strlen(word));
    for (*node = 0; *node < (uint32_t)tree->n_nodes; ++*node)
        for (uint32_t e = tree->nodes[*node].end; e < tree->nodes[*node + 1].end; e++)
            if (tree->ends[e].word == number) return e;
    return LIN_GRAMMAR_NONE;
}

// 1: a sentence of the grammar; "*" is a word outside it. Every word that may follow must be allowed at all nodes on its way.
static int accepts(const char *sentence)
{
    char copy[400];
    uint32_t state = LIN_GRAMMAR_START, node;
    snprintf(copy, sizeof copy, "%s", sentence);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        if (!strcmp(word, "*")) {
            state = lin_grammar_unknown(g, state);
        } else {
            const uint32_t end = end_of(word, &node);
            const uint32_t next = end == LIN_GRAMMAR_NONE ? LIN_GRAMMAR_NONE : lin_grammar_step(g, state, end);
            if (next != LIN_GRAMMAR_NONE) {
                uint32_t parent = 0;
                while (tree->nodes[parent + 1].child <= node) parent++;
                ck_assert(lin_grammar_allows(g, state, node) && lin_grammar_allows(g, state, parent));
            }
            state = next;
        }
        if (state == LIN_GRAMMAR_NONE) return 0;
    }
    return lin_grammar_is_end(g, state);
}

/* ---- what is accepted ------------------------------------------------------------------------------------------------------ */

#define HOME "# home\nturn (on | off) [the] $lamp\n$lamp = lamp | ceiling light\n\nHow warm is it?\n"
#define JSGF                                                                                                                     \
    "#JSGF V1.0 UTF-8 en;\ngrammar home;\n/* of\nlights */\n"                                                                  \
    "public <command> = <action> [the] (light {l} | lamp) | /0.3/ call <who>; // people\n"                                       \
    "<action> = \"turn\" (on | off) <NULL>;\n<who> = anna | \"john; smith\";\npublic <stop> = stop;\n"

static const struct {
    const char *grammar;
    int repeats;
    const char *yes[8], *no[8];
} cases[] = {
    {HOME, 0, {"turn on the lamp", "turn off lamp", "turn on ceiling light", "how warm is it"},
     {"turn the lamp", "turn on the", "lamp", "turn on the light", "turn on the lamp how warm is it", ""}},
    {HOME, 1, {"turn on the lamp how warm is it", "how warm is it how warm is it"}, {"how warm how warm is it", ""}},
    {"[please] stop [now]\n", 0, {"stop", "please stop", "please stop now"}, {"please", "stop please", "please now"}},
    {"a [b [c] | d]\n", 0, {"a", "a b", "a b c", "a d"}, {"a c", "a b d", "b"}},
    {"a b\na c\na\n", 0, {"a", "a b", "a c"}, {"b", "a b c"}},
    {"channel $number 8..11\n", 0, {"channel eight", "channel nine", "channel ten", "channel eleven"},
     {"channel seven", "channel twelve", "channel", "eight"}},
    {"at 5 o'clock\n$5 more\n", 0, {"at five o'clock", "five dollars more"}, {"at five", "at o'clock"}},
    {"go [unk] now\n[unk]\n", 0, {"go * now", "*"}, {"go now", "* now", "* *", "go *"}},
    {"stop\n[unk]\n", 1, {"stop", "stop * stop", "* *"}, {""}},
    {JSGF, 0, {"turn on light", "turn off the lamp", "call anna", "call john smith", "stop"},
     {"turn on the", "anna", "call stop", "light", "l"}},
    {"cafe\u0301 o\uFB03ce\n", 0, {"caf\u00E9 office"}, {"cafe office"}},
    {"\uFEFF#JSGF V1.0;\npublic <a> = cafe\u0301;\n", 0, {"caf\u00E9"}, {"cafe"}},
    {"\xEF\xBB\xBF" "caf\xC3\xA9\r\n  # no comment words\r\nA-B\r\n", 0, {"caf\xC3\xA9", "a-b"}, {"cafe", "comment"}},
    {"#JSGF V1.0\npublic\t<on> = on {http://a.b; \\}} now\n | off {c};\npublic\n<stop> = stop{//}it;\n", 0,
     {"on now", "off", "stop it"}, {"on", "on b now", "stop"}},
    {"$greeting.to-me = hello | hi\n$greeting.to-me you\nwell, $greeting.to-me.\n", 0, {"hello you", "hi you", "well hi"},
     {"you", "hello"}},
};

START_TEST(test_accepted)
{
    lin_grammar_list list = {0};
    OK(lin_grammar_parse(cases[_i].grammar, strlen(cases[_i].grammar), "x", numbers, cases[_i].repeats ? &list : NULL, &g, &err));
    make_tree();
    for (int i = 0; i < 8 && cases[_i].yes[i]; i++)
        ck_assert_msg(accepts(cases[_i].yes[i]), "'%s' is a sentence", cases[_i].yes[i]);
    for (int i = 0; i < 8 && cases[_i].no[i]; i++)
        ck_assert_msg(!accepts(cases[_i].no[i]), "'%s' is no sentence", cases[_i].no[i]);
}
END_TEST

START_TEST(test_utf16)
{
    static const char text[] = "#JSGF V1.0;\npublic <a> = on | off;\n";
    char wide[2 * sizeof text] = "\xFF\xFE";
    for (size_t i = 0; i < sizeof text - 1; i++) wide[2 + 2 * i] = text[i];
    OK(lin_grammar_parse(wide, sizeof wide, "x", NULL, NULL, &g, &err));
    make_tree();
    ck_assert(accepts("on") && accepts("off") && !accepts("a"));
}
END_TEST

// From the beginning only words that begin a sentence are allowed.
START_TEST(test_allowed)
{
    static const char text[] = "one two\nthree four\n";
    uint32_t node;
    OK(lin_grammar_parse(text, sizeof text - 1, "x", NULL, NULL, &g, &err));
    make_tree();
    static const struct { const char *word; int allowed; } words[] = {{"one", 1}, {"two", 0}, {"three", 1}, {"four", 0}};
    for (int i = 0; i < 4; i++) {
        end_of(words[i].word, &node);
        ck_assert_msg(lin_grammar_allows(g, LIN_GRAMMAR_START, node) == words[i].allowed, "%s", words[i].word);
    }
    ck_assert(!lin_grammar_has_unknown(g));
}
END_TEST

// Numbers that begin alike share their states, without which this grammar is too large.
START_TEST(test_ranges)
{
    static const char text[] = "set $number 1..9000 to $number 1..9000 and $number 1..9000\n";
    OK(lin_grammar_parse(text, strlen(text), "x", numbers, NULL, &g, &err));
    make_tree();
    ck_assert(accepts("set nine thousand to eight and four hundred and twenty"));
    ck_assert(!accepts("set nine thousand one to eight and four hundred and twenty"));
}
END_TEST

// 2^12 sentences of 25 words are 38 states: alternatives that end alike are one.
START_TEST(test_small)
{
    char text[400] = "";
    for (int i = 0; i < 12; i++) strcat(text, "(a | b) c ");
    strcat(text, "d\n");
    OK(lin_grammar_parse(text, strlen(text), "x", NULL, NULL, &g, &err));
    ck_assert_uint_eq(lin_grammar_states(g), 12 * 2 + 2);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------------------------------------- */

START_TEST(test_refused)
{
    static const struct {
        const char *text;
        lin_status status;
        const char *message;
    } refused[] = {
        {"", LIN_FORMAT, "x has no phrase"},
        {"# nothing\n$a = b\n", LIN_FORMAT, "x has no phrase"},
        {"hello\nturn (on\n", LIN_FORMAT, "x:2: a ')' is missing"},
        {"turn on]\n", LIN_FORMAT, "x:1: there is a ']' too many"},
        {"(a]\n", LIN_FORMAT, "x:1: there is a ']' too many"},
        {"a | | b\n", LIN_FORMAT, "x:1: there are no words here"},
        {"a ()\n", LIN_FORMAT, "x:1: there are no words"},
        {"$größe = klein\nso $größe\nin $straße\n", LIN_FORMAT, "x:3: $straße is not defined"},
        {"call $who\n", LIN_FORMAT, "x:1: $who is not defined: write a line that begins with $who ="},
        {"a $a\n\n$a = b $b\n$b = c $a\n", LIN_FORMAT, "x:4: 'a' contains itself"},
        {"$a = b\n$a = c\nd\n", LIN_FORMAT, "x:2: 'a' is defined twice"},
        {"to $number\n", LIN_FORMAT, "x:1: $number needs a range"},
        {"to $number 5..1\n", LIN_FORMAT, "a range must go up"},
        {"to $number 1..-5\n", LIN_FORMAT, "needs a range"},
        {"to $number 1..1000000000\n", LIN_FORMAT, "needs a range of at most nine digits behind it"},
        {"to $number 1..20000\n", LIN_FORMAT, "at most 10000"},
        {"to $number 1..2\n", LIN_FORMAT, "no rules for the numbers"},
        {"to 5\n", LIN_FORMAT, "x:1"},
        {"#JSGF V1.0;\n<a> = b;\n", LIN_FORMAT, "x has no public rule"},
        {"#JSGF V1.0;\npublic <a> = b", LIN_FORMAT, "x:2: the last rule has no ';'"},
        {"#JSGF V1.0;\n\npublic <a> = b*;\n", LIN_UNSUPPORTED, "x:3: repetition"},
        {"#JSGF V1.0;\nimport <other.*>;\npublic <a> = b;\n", LIN_UNSUPPORTED, "x:2: imports"},
        {"#JSGF V1.0;\npublic <a> = <b>;\n", LIN_FORMAT, "x:2: <b> is not defined"},
        {"#JSGF V1.0;\npublic <a> = <>;\n", LIN_FORMAT, "x:2: <> is not defined"},
        {"#JSGF V1.0;\npublic <a> = <b;\n", LIN_FORMAT, "x:2: '<' is not closed"},
        {"#JSGF V1.0;\npublic a = b;\n", LIN_FORMAT, "x:2: 'public a = b' is not a rule"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        g = (lin_grammar *)refused; // to be cleared
        FAILS(lin_grammar_parse(refused[i].text, strlen(refused[i].text), "x", NULL, NULL, &g, &err), refused[i].status,
              refused[i].message);
        ck_assert_ptr_null(g);
    }
    char deep[400];
    memset(deep, '(', 100);
    strcpy(deep + 100, "a\n");
    FAILS(lin_grammar_parse(deep, strlen(deep), "x", NULL, NULL, &g, &err), LIN_FORMAT, "nested");
    // Every reference is a copy.
    lin_buffer large = {0};
    for (int i = 0; i < 8; i++) lin_buffer_format(&large, "$r%d = (a $r%d | b $r%d)\n", i, i + 1, i + 1);
    lin_buffer_text(&large, "$r8 = c");
    for (int i = 0; i < LIN_GRAMMAR_STATES_MAX / 256; i++) lin_buffer_text(&large, " c");
    lin_buffer_text(&large, "\n$r0\n");
    FAILS(lin_grammar_parse(large.data, large.n, "x", NULL, NULL, &g, &err), LIN_UNSUPPORTED, "too large");
    lin_buffer_clear(&large);
    for (int i = 0; i < 250; i++) lin_buffer_text(&large, "a $number 1..200 ");
    FAILS(lin_grammar_parse(large.data, large.n, "x", numbers, NULL, &g, &err), LIN_UNSUPPORTED, "too large");
    lin_buffer_free(&large);
    // Behind each of its words are all of the groups.
    lin_buffer slow = {0};
    lin_buffer_text(&slow, "#JSGF V1.0;\npublic <a> = (a");
    for (int i = 0; i < 10000; i++) lin_buffer_format(&slow, " | a%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676);
    lin_buffer_text(&slow, ")");
    for (int i = 0; i < 10000; i++) lin_buffer_text(&slow, " (<NULL>)");
    lin_buffer_text(&slow, " b;\n");
    FAILS(lin_grammar_parse(slow.data, slow.n, "x", NULL, NULL, &g, &err), LIN_UNSUPPORTED, "too large");
    lin_buffer_free(&slow);
}
END_TEST

/* ---- lists ----------------------------------------------------------------------------------------------------------------- */

static lin_status say(void *context, const char *word, size_t n, lin_error *error)
{
    (void)n;
    if (*word == 'z') return lin_fail(error, *(lin_status *)context, "nobody says %s", word);
    return LIN_OK;
}

// What cannot be read or said, also by a definition or as a number, is left out of a list; the rest of it remains.
START_TEST(test_list)
{
    static const char text[] = "$lamp = light | [zebra] (\n(on\nturn on\nthe $lamp\nzero off\nthe $bulb\nroom 0\n"
                               "$open = a (b\noff [the light]\n";
    static const char none[] = "(on\nzero\n";
    lin_status what = LIN_INVALID;
    lin_grammar_list list = {.say = say, .context = &what};
    OK(lin_grammar_parse(text, sizeof text - 1, "x", numbers, &list, &g, &err));
    ck_assert_int_eq(list.left_out, 5);
    ck_assert_str_eq(list.first.message, "x:2: a ')' is missing");
    for (int i = 0; i < lin_grammar_words(g); i++) ck_assert_int_ne(*lin_grammar_word(g, i), 'z');
    make_tree();
    ck_assert(accepts("off turn on off the light") && !accepts("on") && !accepts("the light"));
    drop();
    list.left_out = 0;
    FAILS(lin_grammar_parse(none, sizeof none - 1, "x", numbers, &list, &g, &err), LIN_FORMAT, "x:1: a ')' is missing");
    what = LIN_IO;
    FAILS(lin_grammar_parse(text, sizeof text - 1, "x", numbers, &list, &g, &err), LIN_IO, "x:1: nobody says zebra");
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static const char *write_file(const char *name, const char *text) { return test_file(name, text, strlen(text)); }

START_TEST(test_files)
{
    lin_buffer files = {0};
    lin_buffer_bytes(&files, "", 1); // FAILS must find no other memory afterwards than before
    lin_buffer_clear(&files);
    const char *path = write_file("home.txt", "call $contacts\nwrite to $contacts\n"), *other = test_path("contacts.txt");
    FAILS(lin_grammar_open(path, NULL, &files, &g, &err), LIN_FORMAT, "$contacts is not defined");
    ck_assert_str_eq(files.data, other); // which may be written later
    lin_buffer_clear(&files);
    write_file("contacts.txt", "# people\nanna [smith]\n$title = doctor | mister\n$title jones\n");
    OK(lin_grammar_open(path, NULL, &files, &g, &err));
    ck_assert_str_eq(files.data, other);
    ck_assert_uint_eq(files.n, strlen(other) + 1);
    make_tree();
    ck_assert(accepts("call anna") && accepts("write to doctor jones") && accepts("call anna smith"));
    ck_assert(!accepts("call jones") && !accepts("anna"));
    drop();
    write_file("contacts.txt", "anna (\n");
    FAILS(lin_grammar_open(path, NULL, &files, &g, &err), LIN_FORMAT, "contacts.txt:1: there are no words here");
    FAILS(lin_grammar_open("/nowhere/x", NULL, NULL, &g, &err), LIN_IO, "/nowhere/x");
    write_file("contacts.txt", "# nobody\n");
    FAILS(lin_grammar_open(path, NULL, &files, &g, &err), LIN_FORMAT, "contacts.txt has no phrase");
    write_file("contacts.txt", "#JSGF V1.0;\npublic <who> = anna | bob;\n");
    OK(lin_grammar_open(path, NULL, &files, &g, &err));
    make_tree();
    ck_assert(accepts("call anna") && accepts("write to bob") && !accepts("anna"));
    lin_buffer_free(&files);
}
END_TEST

START_TEST(test_memory)
{
    g = (lin_grammar *)HOME; // to be cleared
    FAIL_EVERY_ALLOCATION_OF(g, lin_grammar_parse(HOME, strlen(HOME), "x", NULL, NULL, &g, NULL), drop());
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "lexicon/grammar", TESTS(test_accepted, 0, sizeof cases / sizeof *cases), TEST(test_utf16),
               TEST(test_allowed), TEST(test_ranges), TEST(test_small), TEST(test_refused), TEST(test_list), TEST(test_files),
               TEST(test_memory))
