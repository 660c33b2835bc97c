// Prose as words, a model learnt from sentences, damaged models, and readable text that does not depend on how words come.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "train/learn/punctuation_learn.h"
#include "lexicon/readable.h"
#include "lexicon/written.h"
#include "tests/lexicon/support.h"

// The words, capitals shown by ^, quotations by ", each with its mark.
static const char *prose_of(const char *text)
{
    static lin_buffer out;
    lin_prose p = {0};
    OK(lin_prose_read(&p, text, strlen(text), NULL));
    lin_buffer_clear(&out);
    lin_buffer_text(&out, "");
    for (int i = 0; i < p.n; i++) {
        if (i) lin_buffer_char(&out, ' ');
        if (p.words[i].quoted) lin_buffer_char(&out, '"');
        if (p.words[i].capital) lin_buffer_char(&out, '^');
        lin_buffer_text(&out, p.text.data + p.words[i].text);
        if (p.words[i].mark) lin_buffer_char(&out, ",.?"[p.words[i].mark - 1]);
    }
    lin_prose_free(&p);
    return out.data;
}

static const char *const prose_table[][2] = {
    {"He went home.", "^he went home."},
    {"\"What is it?\" said Mr. Brown; \"I know.\"", "\"^what is it? said ^mister ^brown. \"^i know."},
    {"She\xE2\x80\x99s here--at last: go!", "^she's here, at last, go."},
    {"a well-known man - old", "a well known man, old"},
    {"Wait... no", "^wait no"},
    {"Wait . . . no", "^wait no"},
    {"J. B. Priestley left", "^j ^b ^priestley left"},
    {"It was I. Then", "^it was ^i. ^then"},
    {"1,815 men, 3.5 miles, etc. and so", "# men, # miles, etc and so"},
    {"caf\xC3\xA9 \xC3\x89tienne", "cafe ^etienne"},
    {"'Tis the dogs' home", "\"^tis the dogs home"},
    {"\xE2\x80\x9CGo,\xE2\x80\x9D she said\xE2\x80\x94softly.", "\"^go, she said, softly."},
    {"_Never_ again?!", "^never again?"},
    {"", ""}, {"...", ""}, {"\xFF\xFE '", ""},
};

START_TEST(prose)
{
    ck_assert_str_eq(prose_of(prose_table[_i][0]), prose_table[_i][1]);
}
END_TEST

START_TEST(paragraphs)
{
    const char *text = "\n\nOne\nline.\n \nTwo.\n\n\n";
    lin_paragraphs p;
    lin_paragraphs_begin(&p, text, strlen(text));
    ck_assert(lin_paragraphs_next(&p));
    ck_assert_int_eq((int)p.n, 9);
    ck_assert(lin_paragraphs_next(&p));
    ck_assert_int_eq(strncmp(p.text, "Two.", 4), 0);
    ck_assert(!lin_paragraphs_next(&p));
    ck_assert(lin_prose_is_running("He went home and slept.", 23));
    ck_assert(!lin_prose_is_running("# He went home and slept.", 25));
    ck_assert(!lin_prose_is_running("CHAPTER ONE. THE HOUSE", 22));
    ck_assert(!lin_prose_is_running("He went home and slept", 22));
    ck_assert(!lin_prose_is_running("see Project Gutenberg for this.", 31));
}
END_TEST

static lin_buffer book(void)
{
    lin_buffer text = {0};
    for (int i = 0; i < 300; i++) {
        lin_buffer_text(&text, "He went to London, and she stayed at home. What did he want? He saw the dog.\n\n");
        lin_buffer_text(&text, "What did she say? She saw London. The dog stayed, and he went home.\n\n");
    }
    return text;
}

static const lin_punctuation_learn_options small = {.mark_slots = 2000, .capital_slots = 1000, .bits = 16};

static lin_punctuation *model(void)
{
    lin_buffer text = book();
    lin_punctuation_learn_report report;
    lin_punctuation *p;
    OK(lin_punctuation_learn(text.data, text.n, &small, &p, &report, &err));
    ck_assert_int_eq((int)report.paragraphs, 600);
    ck_assert_int_eq((int)report.marks[LIN_MARK_QUESTION], 600);
    lin_buffer_free(&text);
    lin_written *numbers;
    OK(lin_written_load("share/linnet/en/numbers.txt", &numbers, &err));
    p->numbers = numbers;
    return p;
}

static lin_punctuation *rules;

static void setup(void) { rules = model(); }

static void teardown(void) { lin_punctuation_destroy(rules); }

// n words as they begin, 0.3 s each; taken after every `each` words.
static const char *readable_at(const lin_punctuation *p, const char *const *words, const double *starts, int n, int each,
                               double paragraph_s)
{
    static lin_buffer out;
    lin_readable r;
    lin_readable_begin(&r, p);
    if (paragraph_s > 0) r.paragraph_s = paragraph_s;
    lin_buffer_clear(&out);
    lin_buffer_text(&out, "");
    for (int i = 0; i <= n; i++) {
        const char *w = i < n ? words[i] : "", *word = *w == '[' ? "" : w + (*w == '*');
        if (i < n) OK(lin_readable_push(&r, word, starts[i], starts[i] + 0.3, !strchr("[*", *w), &err));
        else OK(lin_readable_finish(&r, &err));
        if (i < n && i % each) continue;
        for (int k = 0; k < r.n; k++) lin_buffer_format(&out, "%s ", lin_readable_token_text(&r, k));
        lin_readable_clear(&r);
    }
    lin_readable_free(&r);
    return out.data;
}

// Words between blanks, with pauses of gap_s.
static const char *readable_of(const lin_punctuation *p, const char *text, int each, double gap_s)
{
    const char *words[64];
    double starts[64];
    char line[256];
    int n = 0;
    snprintf(line, sizeof line, "%s", text);
    for (char *w = strtok(line, " "); w; w = strtok(NULL, " "), n++) words[n] = w, starts[n] = n * (0.3 + gap_s);
    return readable_at(p, words, starts, n, each, 0);
}

static const char *const readable_table[][2] = {
    {"he went to london and she stayed at home what did he want",
     "He went to London, and she stayed at home. What did he want? "},
    {"what did she say she saw london", "What did she say? She saw London. "},
    {"i saw twenty three dogs", "I saw 23 dogs. "},
    {"nineteen eighty four", "1984. "},
    {"he saw [d_ao_g]", "He saw [...]. "},
    {"he saw *zorblat", "He saw zorblat. "},
    {"*zorblat saw", "Zorblat saw. "},
    {"[sh_er] [m_er] he saw [d_ao_g] [z] the dog", "[...] he saw [...] the dog. "},
    {"he went to mister london and saw mister", "He went to Mr. London, and saw mister. "},
    {"\xC3\xA9l saw", "\xC3\x89l saw. "},
    {"", ""},
};

// Without rules numbers and titles stay words.
START_TEST(no_rules)
{
    lin_written_destroy(rules->numbers);
    rules->numbers = NULL;
    ck_assert_str_eq(readable_of(rules, "i saw twenty three dogs", 1, 0.05), "I saw twenty three dogs. ");
}
END_TEST

// What is written with a point at its end gets no second one.
START_TEST(points)
{
    lin_written_destroy(rules->numbers);
    OK(lin_written_load("share/linnet/de/numbers.txt", &rules->numbers, &err));
    ck_assert_str_eq(readable_of(rules, "am zwanzigsten", 1, 0.05), "Am 20. ");
}
END_TEST

START_TEST(readable)
{
    for (int each = 1; each < 20; each += 3)
        ck_assert_str_eq(readable_of(rules, readable_table[_i][0], each, 0.1), readable_table[_i][1]);
}
END_TEST

// A name stays one where what is around the word says nothing, and only there.
START_TEST(names)
{
    lin_buffer text = {0};
    for (int i = 0; i < 300; i++)
        lin_buffer_text(&text, "He went to see Miss Rose. He went to see the rose. I see the rose. He has a rose. "
                               "The dog and cat saw it, and Ann saw it.\n\n");
    lin_punctuation *p;
    OK(lin_punctuation_learn(text.data, text.n, &small, &p, NULL, &err));
    lin_buffer_free(&text);
    HAS(readable_of(p, "the dog and rose saw it", 1, 0.01), "and rose");
    for (int each = 1; each < 20; each += 3) {
        const char *out = readable_of(p, "he went to see miss rose the dog and rose saw it he went to see the rose", each, 0.01);
        HAS(out, "Miss Rose", "and Rose", "the rose");
    }
    lin_punctuation_destroy(p);
}
END_TEST

// A second without a word ends a sentence of words that say nothing, but makes none of one or two words.
START_TEST(short_sentences)
{
    static const char *const words[] = {"dog", "cat", "pig", "cow", "hen", "fox", "owl"};
    static const char *const texts[] = {"Dog, cat pig cow hen fox owl. ", "Dog cat, pig cow hen fox owl. ",
                                        "Dog cat pig. Cow hen fox owl. ", "Dog cat pig cow? Hen fox owl. ",
                                        "Dog cat pig cow hen, fox owl. ", "Dog cat pig cow hen fox, owl. "};
    for (int pause = 1; pause < 7; pause++) {
        double starts[7];
        for (int i = 0; i < 7; i++) starts[i] = i * 0.31 + (i >= pause);
        ck_assert_str_eq(readable_at(rules, words, starts, 7, 1, 0), texts[pause - 1]);
    }
}
END_TEST

// A longer pause than paragraph_s ends the text before it, however the words come.
START_TEST(pauses_end_texts)
{
    static const char *const words[] = {"london", "he", "saw"};
    static const double starts[] = {5, 9, 9.3};
    for (int each = 1; each < 4; each++) ck_assert_str_eq(readable_at(rules, words, starts, 3, each, 2), "London. He saw. ");
}
END_TEST

// A pause between the words of a number divides it; what stays as it is does not depend on how words come.
START_TEST(numbers_in_pieces)
{
    static const char said[] = "at five thirty he went one twenty five and two hundred and six dogs";
    char all[256];
    snprintf(all, sizeof all, "%s", readable_of(rules, said, 100, 0.05));
    HAS(all, "At 5:30 ", "one twenty five", "206 dogs");
    for (int each = 1; each < 9; each++) ck_assert_str_eq(readable_of(rules, said, each, 0.05), all);
    const char *apart = readable_of(rules, "twenty three", 100, 0.5);
    HAS(apart, "20");
    ck_assert_ptr_null(strstr(apart, "23"));
}
END_TEST

START_TEST(same_bytes_and_back)
{
    lin_punctuation *again = model(), *read;
    const char *path = test_path("punctuation");
    ck_assert_uint_eq(rules->n, again->n);
    ck_assert_mem_eq(rules->slots, again->slots, rules->n);
    OK(lin_punctuation_write(again, path, &err));
    OK(lin_punctuation_open(path, &read, &err));
    ck_assert_mem_eq(rules->slots, read->slots, rules->n);
    lin_punctuation_destroy(again);
    lin_punctuation_destroy(read);
}
END_TEST

// Each byte of the header, some of the others, and every length.
START_TEST(damaged)
{
    lin_punctuation *q;
    lin_punctuation_header h = rules->header;
    lin_buffer file = {0};
    lin_error why = {0};
    h.checksum = 0;
    h.checksum = lin_hash(rules->slots, rules->n, lin_hash(&h, sizeof h, 0));
    lin_buffer_bytes(&file, (const char *)&h, sizeof h);
    lin_buffer_bytes(&file, (const char *)rules->slots, rules->n);
    OK(lin_punctuation_parse(file.data, file.n, "good", &q, &err));
    lin_punctuation_destroy(q);
    for (size_t i = 0; i < file.n; i += i < sizeof h ? 1 : 97) {
        file.data[i] = (char)(file.data[i] ^ 4);
        const lin_status status = lin_punctuation_parse(file.data, file.n, "bad", &q, &why);
        ck_assert_msg(status == LIN_FORMAT || status == LIN_UNSUPPORTED, "byte %zu", i);
        ck_assert_ptr_null(q);
        file.data[i] = (char)(file.data[i] ^ 4);
    }
    for (size_t n = 0; n < file.n; n += n < 100 ? 1 : 331)
        FAILS(lin_punctuation_parse(file.data, n, "short", &q, &err), LIN_FORMAT, n < sizeof h ? "" : "is truncated or damaged");
    lin_buffer_free(&file);
}
END_TEST

START_TEST(bad_options)
{
    lin_punctuation *p;
    lin_punctuation_learn_options o = small;
    o.bits = 20;
    FAILS(lin_punctuation_learn("He is. She is.", 14, &o, &p, NULL, &err), LIN_INVALID, "");
    FAILS(lin_punctuation_learn("no sentence here", 16, &small, &p, NULL, &err), LIN_INVALID, "no paragraph");
}
END_TEST

static lin_status whole_way(lin_punctuation **p)
{
    return lin_punctuation_learn("He went home and slept. She saw it.", 35, &small, p, NULL, NULL);
}

// Its first token ends the sentence, before there is a text.
static lin_status one_sentence(lin_readable *r)
{
    lin_readable_begin(r, rules);
    lin_status status = lin_readable_push(r, "slept", 0, 0.3, 1, NULL);
    if (status == LIN_OK) status = lin_readable_finish(r, NULL);
    if (status != LIN_OK) lin_readable_free(r);
    return status;
}

START_TEST(failing_allocations)
{
    lin_punctuation *p;
    FAIL_EVERY_ALLOCATION(whole_way(&p), lin_punctuation_destroy(p));
    lin_readable r;
    FAIL_EVERY_ALLOCATION(one_sentence(&r), lin_readable_free(&r));
}
END_TEST

TEST_MAIN_ONCE(setup, teardown, NULL, "readable", TESTS(prose, 0, sizeof prose_table / sizeof *prose_table), TEST(paragraphs),
               TEST(no_rules), TEST(points), TESTS(readable, 0, sizeof readable_table / sizeof *readable_table), TEST(names),
               TEST(short_sentences), TEST(pauses_end_texts), TEST(numbers_in_pieces), TEST(same_bytes_and_back), TEST(damaged),
               TEST(bad_options), TEST(failing_allocations))
